//! The room as its members use it: minutes, by the log alone; a long backlog; and hostile words on a terminal.

// clippy.toml allows it in tests, but takes only functions marked as tests for such.
#![allow(clippy::unwrap_used)]

mod support;

use std::cell::RefCell;

use countersign::protocol::Event;
use countersign::protocol::minutes::Minutes;
use countersign::protocol::name::{Seq, is_hidden};
use countersign::store::Reader;
use countersign::store::memory::MemoryStore;
use support::coordinated::Coordinated;
use support::play::play;

/// A phase in which everything is said: claims and verdicts, votes, an escalation, hostile words.
const STORY: &str = r#"
dana: say "@all, we begin" --about implement

app: propose parser --summary "Streaming `parser` ``` with ticks"

sec: say "The lexer never allocates\u{a}@arch check it" --claim --at src/lexer.rs:80-140 --ran "cargo test alloc" --exit 0 --output "ok" --about parser

arch: verdict m2 refuted "line 112 does\u{1b}]52;c;ZXZpbA==\u{7}" --at src/lexer.rs:112 --ran "cargo bench" --exit 1

arch: verdict m2 supported "it is gone with version 2"

sec: show parser

sec: object parser@1 "overflows \u{202e}\u{200b}\u{e0041} and\u{d}\u{a}# Not a heading" --at src/parser.rs --failing-test "cargo test huge"

app: objections parser

app: escalate o1 "sec and I want opposite things"

dana: answer e1 --decide dismiss --reason "mend it"

app: propose parser --summary "mended" --answer o1="added a check"

sec: show parser

sec: approve parser@2 --resolve o1 --ran "cargo test huge" --exit 0 --output "ok"

arch: show parser

arch: say "It reads better" --reply m1

arch: approve parser@2 --checked src/parser.rs

app: status

app: confirm implement

sec: status

sec: confirm implement

arch: status

arch: confirm implement

app: say "On to the release"

arch: say "@app the notes?" --about notes
"#;

/// The log of a story, told on a stage.
fn told(story: &str) -> (MemoryStore, String) {
    let kept = RefCell::new(None);
    let seen = play(story, &|charter: &str| {
        let stage = Coordinated::with_charter(charter);
        kept.replace(Some(stage.store()));
        stage
    });
    (kept.take().unwrap(), seen)
}

fn minutes_of(store: &MemoryStore) -> Minutes {
    let reader = store.reader();
    let team = reader.teams().unwrap().remove(0);
    let mut minutes = Minutes::default();
    for row in reader.rows(&team, Seq(1), usize::MAX).unwrap() {
        let event = Event::decode(&row.kind, row.schema, &row.body).unwrap();
        minutes.take(row.seq, row.at, &row.actor, &event);
    }
    minutes
}

#[test]
fn minutes_tell_who_claimed_what_who_checked_it_and_what_was_decided() {
    let (store, seen) = told(STORY);
    assert!(!seen.contains("refused"), "{seen}");
    let text = minutes_of(&store).of("implement").unwrap();
    insta::assert_snapshot!(text);
    assert_eq!(text, minutes_of(&store).of("implement").unwrap(), "the same log gives the same minutes");
    let release = minutes_of(&store).of("release").unwrap();
    assert!(release.contains("On to the release") && release.contains("the notes?"), "{release}");
    assert!(!release.contains("we begin") && !text.contains("the notes?"));
    assert_eq!(minutes_of(&store).of("parser").unwrap().lines().next(), Some("# Minutes of implement"));
    let unknown = minutes_of(&store).of("implment").unwrap_err();
    assert_eq!(
        (unknown.code(), unknown.remedy().as_str()),
        ("UNKNOWN_SUBJECT", "use implement, or run: countersign status")
    );
}

#[test]
fn no_words_leave_their_block_in_the_minutes() {
    let (store, _) = told(STORY);
    let text = minutes_of(&store).of("implement").unwrap();
    assert!(!text.chars().any(|c| is_hidden(c) && c != '\n'), "{text:?}");
    assert!(text.contains(r"line 112 does\u{1b}]52;c;ZXZpbA==\u{7}"), "{text}");
    assert!(text.contains(r"overflows \u{202e}\u{200b}\u{e0041} and\u{d}"), "{text}");
    // Words with ticks of their own stand between more of them.
    assert!(text.contains("````text\n  Streaming `parser` ``` with ticks\n  ````\n"), "{text}");
    // A line of somebody's is never a heading or an entry of ours: it is indented, within its block.
    assert_eq!(text.lines().filter(|line| line.starts_with('#')).count(), 5, "{text}");
}
