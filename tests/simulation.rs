//! The core, simulated: random teams, random commands, an independent oracle.
//!
//! `SEED=…` repeats one run; `cargo sim` runs many.

#[path = "simulation/mod.rs"]
mod simulation;

use countersign::judge::CelJudge;
use countersign::protocol::Event;
use simulation::{Seen, run};

/// Enough for every event and every code of the core, and bounded to seconds in a debug build.
const SEEDS: u64 = 160;

/// Seeds beyond them that found something once.
const KEPT: [u64; 1] = [1310];
const STEPS: usize = 250;

#[test]
fn the_guarantees_hold_whatever_anybody_does() {
    let judge = CelJudge::shipped();
    let given = std::env::var("SEED").ok().map(|text| text.parse::<u64>().expect("SEED is a number"));
    let seeds = given.map_or_else(|| (0..SEEDS).chain(KEPT).collect(), |seed| vec![seed]);
    println!("SEED={} to {}", seeds[0], seeds[seeds.len() - 1]);
    let mut seen = Seen::default();
    for seed in seeds {
        match run(&judge, seed, STEPS) {
            Ok(one) => seen.add(one),
            Err(failure) => panic!("{failure}"),
        }
    }
    println!("{seen:#?}");
    if given.is_none() {
        enough(&seen);
    }
}

/// A simulation that never gets anywhere would hold every guarantee.
fn enough(seen: &Seen) {
    // What must never fire is fired by logs from before its rule, in a test of its own.
    for (kind, _) in Event::KINDS.iter().filter(|(kind, _)| *kind != "recovery-fired") {
        assert!(seen.events.contains_key(kind), "no run stored {kind}");
    }
    let missing: Vec<&&str> = CODES.iter().filter(|code| !seen.codes.contains_key(*code)).collect();
    assert!(missing.is_empty(), "no run was refused with {missing:?}");
    assert!(seen.finished >= 10, "{} runs came to their end", seen.finished);
}

/// Every code that the core itself gives.
const CODES: &[&str] = &[
    "TEXT_TOO_LARGE",
    "UNKNOWN_SUBJECT",
    "NOT_PRODUCER",
    "NOT_REVIEWER",
    "NOT_OBJECTOR",
    "NOT_A_PERSON",
    "NOT_PARTICIPANT",
    "OWN_WORK",
    "PHASE_CLOSED",
    "EMPTY_PROPOSAL",
    "UNCHANGED_PROPOSAL",
    "OUTSIDE_OWNERSHIP",
    "VERSION_CONFLICT",
    "UNREAD_OBJECTIONS",
    "UNANSWERED_OBJECTIONS",
    "COOLDOWN_ACTIVE",
    "ROUND_LIMIT",
    "FLIP_LIMIT",
    "VOTE_LIMIT",
    "NOTE_LIMIT",
    "STALE_VERSION",
    "DIGEST_MISMATCH",
    "UNREAD_VERSION",
    "WITHDRAWN",
    "OBJECTION_HELD",
    "FAILING_TEST",
    "UNKNOWN_CHECK",
    "PLACE_UNKNOWN",
    "CIRCLE_COMPLETE",
    "EMPTY_TEXT",
    "REASON_REQUIRED",
    "OBJECTION_CLOSED",
    "NOT_AN_OBJECTION",
    "NOTHING_CHANGED",
    "NOTHING_TO_WITHDRAW",
    "STALE_CONFIRM",
    "CONFIRM_BLOCKED",
    "DECISION_UNFIT",
    "ESCALATION_CLOSED",
];
