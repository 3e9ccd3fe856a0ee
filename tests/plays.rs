//! Every play, on every stage.

mod support;

use std::collections::BTreeSet;

use countersign::protocol::Violation;
use support::coordinated::Coordinated;
use support::play;

#[test]
fn against_the_core_over_the_memory_store() {
    play::play_all(Coordinated::with_charter);
}

/// Codes that the server gives before the core is asked, or that need a part that is not there yet.
/// Each is shown by the test named beside it.
const SHOWN_ELSEWHERE: &[(&str, &str)] = &[];

#[test]
fn every_code_is_shown_by_a_play() {
    let shown = play::codes_shown();
    let elsewhere: BTreeSet<&str> = SHOWN_ELSEWHERE.iter().map(|(code, _)| *code).collect();
    let missing: Vec<&str> = Violation::CODES
        .iter()
        .map(|(code, _)| *code)
        .filter(|code| !shown.contains(*code) && !elsewhere.contains(code))
        .collect();
    assert!(missing.is_empty(), "no play shows {missing:?}");
}
