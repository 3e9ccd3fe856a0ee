//! Random teams, random commands, an independent oracle: the core alone, and the coordinator over both
//! stores with everything failing around it.
//!
//! `SEED=…` repeats one run; `cargo sim` runs many. What fails is printed with the command that repeats it, and
//! written as a play, as short as it gets, to `target/simulation`.

#[path = "simulation/mod.rs"]
mod simulation;
mod support;

use std::path::Path;
use std::time::Instant;

use countersign::judge::CelJudge;
use countersign::protocol::Event;
use countersign::protocol::time::Span;
use simulation::step::shortest;
use simulation::{Mode, Run, Seen, as_play, passed, run_all};
use support::coordinated::Coordinated;
use support::play;

/// As many as fit into about a minute on two cores with the profile of the tests; `./prove` runs a million.
const SEEDS: u64 = 340;
const STEPS: usize = 250;

/// With a server in it each step passes through two threads, and is stored.
const SEEDS_IN_MEMORY: u64 = 60;
const STEPS_IN_MEMORY: usize = 120;

/// Each step is flushed to the disk.
const SEEDS_ON_DISK: u64 = 4;
const STEPS_ON_DISK: usize = 60;

#[test]
fn the_guarantees_hold_whatever_anybody_does() {
    let Some(seen) = simulated(Mode::Core, SEEDS, STEPS) else { return };
    // What must never fire is fired by logs from before its rule, in a test of its own; and nobody listens here:
    // wakes have their plays, and tests of their own.
    const ELSEWHERE: [&str; 4] = ["recovery-fired", "delivered", "owed-again", "woken"];
    for (kind, _) in Event::KINDS.iter().filter(|(kind, _)| !ELSEWHERE.contains(kind)) {
        assert!(seen.events.contains_key(kind), "no run stored {kind}");
    }
    let missing: Vec<&&str> = CODES.iter().filter(|code| !seen.codes.contains_key(*code)).collect();
    assert!(missing.is_empty(), "no run was refused with {missing:?}");
    assert!(seen.finished >= 10, "{} runs came to their end", seen.finished);
}

#[test]
fn they_hold_over_a_coordinator_around_which_everything_fails() {
    let Some(seen) = simulated(Mode::Memory, SEEDS_IN_MEMORY, STEPS_IN_MEMORY) else { return };
    let missing: Vec<&&str> = MISHAPS.iter().filter(|what| !seen.mishaps.contains_key(*what)).collect();
    assert!(missing.is_empty(), "in no run was it so that {missing:?}");
    for kind in ["circle-published", "circle-reopened", "escalation-sent", "server-resumed"] {
        assert!(seen.events.contains_key(kind), "no run stored {kind}");
    }
}

#[test]
fn they_hold_over_a_coordinator_on_a_disk() {
    simulated(Mode::Disk, SEEDS_ON_DISK, STEPS_ON_DISK);
}

/// What these runs saw; nothing where but one of them was asked for.
fn simulated(mode: Mode, seeds: u64, steps: usize) -> Option<Seen> {
    let judge = CelJudge::shipped();
    let given = std::env::var("SEED").ok().map(|text| text.parse::<u64>().expect("SEED is a number"));
    let seeds = given.map_or(0..seeds, |seed| seed..seed + 1);
    println!("SEED={} to {} over {}, {steps} steps each", seeds.start, seeds.end - 1, mode.name());
    let begun = Instant::now();
    match run_all(&judge, seeds, |seed| Run { mode, seed, steps }) {
        Ok(seen) => {
            let runs = seen.runs;
            println!("{seen:#?}\n{runs} runs, {} steps in {:?}", seen.steps, begun.elapsed());
            given.is_none().then_some(seen)
        }
        Err(failure) => {
            let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/simulation");
            let play = failure.write_play(&judge, &folder).expect("what fails can be written down");
            panic!("{failure}as a play of {} steps: {}", failure.shortest().len(), play.display());
        }
    }
}

/// What goes wrong around a coordinator, and must have gone wrong.
const MISHAPS: &[&str] = &[
    "lost reply",
    "not stored",
    "unknown, and stored",
    "unknown, and not stored",
    "died after the store",
    "died before the store",
    "by itself",
    "ended in order",
    "killed",
    "clock set back",
    "asked twice",
    "request id reused",
    "news refused",
];

#[test]
fn time_without_a_server_counts_for_nobody_however_often_and_whatever_isnt_stored() {
    let judge = CelJudge::shipped();
    let (short, long) = (Span::seconds(8), Span::seconds(3600));
    // Two in a row, with nothing asked between them.
    assert_eq!(passed(&judge, Mode::Memory, &[(short, true, false), (long, true, false)]), Ok(()));
    // A store that is full when the first is told.
    assert_eq!(passed(&judge, Mode::Memory, &[(short, true, false), (long, false, true)]), Ok(()));
}

#[test]
fn the_shortest_list_that_fails_holds_what_it_fails_by_and_nothing_else() {
    // It fails where 3 comes before 7, and 40 is anywhere.
    let fails = |steps: &[u32]| {
        let at = |wanted| steps.iter().position(|step| *step == wanted);
        at(40).is_some() && at(3).zip(at(7)).is_some_and(|(three, seven)| three < seven)
    };
    let all: Vec<u32> = (0..100).collect();
    assert_eq!(shortest(&all, 1000, fails), [3, 7, 40]);
    let mut asked = 0;
    let within = shortest(&all, 5, |steps| {
        asked += 1;
        fails(steps)
    });
    assert_eq!(asked, 5, "it is asked no more often than it may");
    assert!(fails(&within) && within.len() < all.len(), "what is left fails, and is shorter");
    assert_eq!(shortest(&all, 1000, |_| true), [0; 0]);
    assert_eq!(shortest(&all, 1000, |steps| steps.len() == 100), all, "nothing can be left out");
}

#[test]
fn a_run_written_as_a_play_goes_as_it_went() {
    let judge = CelJudge::shipped();
    let mut compared = 0;
    for seed in 0..12 {
        let folder = tempfile::tempdir().expect("there is a place for temporary files");
        // A whole path is where a play looks for its charter, too.
        let name = folder.path().join("run").display().to_string();
        let script = as_play(&judge, Run { mode: Mode::Core, seed, steps: 40 }, &name);
        script.write(folder.path()).expect("it can be written");
        let went = play::play(&script.play, &Coordinated::with_charter);
        compared += script.agrees_with(&went).unwrap_or_else(|what| panic!("seed {seed}: {what}\n{went}"));
    }
    assert!(compared >= 150, "{compared} commands came to the same");
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
    "UNKNOWN_MEMBER",
    "MEMBER_LEFT",
    "NOT_A_CLAIM",
    "OWN_CLAIM",
    "ALREADY_JUDGED",
];
