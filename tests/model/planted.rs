//! Planted faults: each reason for which the core refuses something is left out in turn, and somebody must notice,
//! the model or the simulation. `cargo planted` prints who does.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use countersign::judge::CelJudge;
use countersign::protocol::planted::{Guard, gathered, plant};

use crate::model::search::{Leave, search};
use crate::model::worlds::{self, Size};
use crate::simulation::{Mode, Run, run};

/// How much of the simulation is tried.
const SEEDS: u64 = 200;
const STEPS: usize = 250;

/// The model searches no longer than that for one fault.
const LONG: Duration = Duration::from_secs(60);

/// The guards of the verb table, in its order, that can be left out: where nothing is known of what a command
/// names, nothing could come of it anyhow.
const TABLE: &[(&str, &[&str])] = &[
    (
        "propose",
        &[
            "NOT_PRODUCER",
            "PHASE_CLOSED",
            "CIRCLE_COMPLETE",
            "EMPTY_PROPOSAL",
            "UNCHANGED_PROPOSAL",
            "OUTSIDE_OWNERSHIP",
            "VERSION_CONFLICT",
            "UNREAD_OBJECTIONS",
            "UNANSWERED_OBJECTIONS",
            "COOLDOWN_ACTIVE",
            "ROUND_LIMIT",
            "SECRET_FOUND",
        ],
    ),
    (
        "approve",
        &[
            "NOT_REVIEWER",
            "OWN_WORK",
            "STALE_VERSION",
            "DIGEST_MISMATCH",
            "UNREAD_VERSION",
            "WITHDRAWN",
            "OBJECTION_HELD",
            "FAILING_TEST",
            "PLACE_UNKNOWN",
            "VOTE_LIMIT",
            "CIRCLE_COMPLETE",
        ],
    ),
    (
        "object",
        &[
            "NOT_REVIEWER",
            "STALE_VERSION",
            "DIGEST_MISMATCH",
            "UNREAD_VERSION",
            "WITHDRAWN",
            "PLACE_UNKNOWN",
            "VOTE_LIMIT",
            "CIRCLE_COMPLETE",
            "EMPTY_TEXT",
        ],
    ),
    (
        "note",
        &[
            "NOT_REVIEWER",
            "STALE_VERSION",
            "DIGEST_MISMATCH",
            "UNREAD_VERSION",
            "WITHDRAWN",
            "PLACE_UNKNOWN",
            "NOTE_LIMIT",
            "CIRCLE_COMPLETE",
            "EMPTY_TEXT",
        ],
    ),
    (
        "resolve",
        &["NOT_OBJECTOR", "OBJECTION_CLOSED", "NOTHING_CHANGED", "UNREAD_VERSION", "REASON_REQUIRED"],
    ),
    ("overrule", &["NOT_A_PERSON", "OWN_WORK", "REASON_REQUIRED"]),
    (
        "withdraw",
        &[
            "NOT_PRODUCER",
            "NOTHING_TO_WITHDRAW",
            "REASON_REQUIRED",
            "COOLDOWN_ACTIVE",
            "FLIP_LIMIT",
            "CIRCLE_COMPLETE",
        ],
    ),
    ("confirm", &["NOT_PARTICIPANT", "STALE_CONFIRM"]),
    ("escalate", &["EMPTY_TEXT"]),
    ("adopt", &["NOT_A_PERSON", "REASON_REQUIRED", "CHARTER_UNFIT"]),
    ("answer", &["NOT_A_PERSON", "REASON_REQUIRED"]),
];

/// Guards without which every guarantee holds, each with what it is for.
const COURTESIES: &[(&str, &str, &str)] = &[(
    "propose",
    "UNKNOWN_SUBJECT",
    "an answer to what isn't there is dropped when the version is stored; who slipped is told",
)];

/// Who noticed, and when.
struct Found {
    by: &'static str,
    how: String,
    after: Duration,
}

#[test]
fn every_guard_that_is_left_out_is_missed_by_somebody() {
    let judge = CelJudge::shipped();
    let only = std::env::var("GUARD").ok();
    // Where a reason never stands alone, leaving it out changes nothing: there is nothing to search.
    let mut worlds = Vec::new();
    let (mut guards, mut alone) = (BTreeSet::new(), BTreeSet::new());
    for world in worlds::all(Size::Small) {
        let begun = Instant::now();
        gathered();
        search(&judge, &world, Leave::default()).unwrap_or_else(|found| panic!("{found}"));
        let given = gathered();
        guards.extend(given.all);
        alone.extend(given.alone.iter().cloned());
        worlds.push((begun.elapsed(), world, given.alone));
    }
    worlds.sort_by_key(|(took, ..)| *took);
    let mut seeds = Vec::new();
    for seed in 0..SEEDS {
        run(&judge, of_core(seed)).unwrap_or_else(|found| panic!("{found}"));
        let given = gathered();
        guards.extend(given.all);
        alone.extend(given.alone.iter().cloned());
        seeds.push((seed, given.alone));
    }
    for (verb, codes) in TABLE {
        for code in *codes {
            let guard = Guard { verb, code: (*code).to_owned() };
            assert!(guards.contains(&guard), "{verb} is never refused with {code}");
        }
    }
    // What panics is told as what was found.
    std::panic::set_hook(Box::new(|_| {}));
    println!("| verb | guard left out | by the model | by the simulation | what it breaks |");
    println!("| --- | --- | --- | --- | --- |");
    let mut unseen = BTreeSet::new();
    for guard in guards {
        if only.as_ref().is_some_and(|only| *only != format!("{} {}", guard.verb, guard.code)) {
            continue;
        }
        plant(Some(guard.clone()));
        let some = worlds.iter().filter(|(_, _, alone)| alone.contains(&guard)).map(|(_, world, _)| world);
        let model = by_the_model(&judge, some);
        let some = seeds.iter().filter(|(_, alone)| alone.contains(&guard)).map(|(seed, _)| *seed);
        let simulation = by_the_simulation(&judge, some);
        plant(None);
        let after = |found: &Option<Found>| {
            found
                .as_ref()
                .map_or("-".to_owned(), |found| format!("{:.2} s, {}", found.after.as_secs_f64(), found.by))
        };
        let beside = if alone.contains(&guard) { "" } else { "never the only reason" };
        let how = model.as_ref().or(simulation.as_ref()).map_or(beside, |found| found.how.as_str());
        let (one, other) = (after(&model), after(&simulation));
        println!("| {} | `{}` | {one} | {other} | {how} |", guard.verb, guard.code);
        if model.is_none() && simulation.is_none() && alone.contains(&guard) {
            unseen.insert((guard.verb, guard.code));
        }
    }
    let _ = std::panic::take_hook();
    if only.is_none() {
        let known: BTreeSet<(&str, String)> =
            COURTESIES.iter().map(|(verb, code, _)| (*verb, (*code).to_owned())).collect();
        assert_eq!(unseen, known, "guards that nobody misses, and those of which it is said why");
    }
}

fn by_the_model<'a>(
    judge: &CelJudge,
    worlds: impl Iterator<Item = &'a crate::model::World>,
) -> Option<Found> {
    let begun = Instant::now();
    for world in worlds {
        let left = LONG.checked_sub(begun.elapsed())?;
        let leave = Leave { time: Some(left), ..Leave::default() };
        let found = catch_unwind(AssertUnwindSafe(|| search(judge, world, leave)));
        let how = match found {
            Ok(Ok(_)) => continue,
            Ok(Err(found)) => format!("{}: {}", found.broken.guarantee, first_words(&found.broken.what)),
            Err(_) => "it panics".to_owned(),
        };
        return Some(Found { by: world.name, how, after: begun.elapsed() });
    }
    None
}

fn of_core(seed: u64) -> Run {
    Run { mode: Mode::Core, seed, steps: STEPS }
}

fn by_the_simulation(judge: &CelJudge, seeds: impl Iterator<Item = u64>) -> Option<Found> {
    const RUNS_MAX: usize = 60;
    let begun = Instant::now();
    for seed in seeds.take(RUNS_MAX) {
        let how = match catch_unwind(AssertUnwindSafe(|| run(judge, of_core(seed)))) {
            Ok(Ok(_)) => continue,
            Ok(Err(found)) => {
                first_words(&found.to_string().lines().last().unwrap_or_default().replace("SEED=", ""))
            }
            Err(_) => "it panics".to_owned(),
        };
        return Some(Found { by: "random", how, after: begun.elapsed() });
    }
    None
}

/// Enough to see what it is about, in one cell of a table.
fn first_words(text: &str) -> String {
    let text = text.replace('|', "/").replace('\n', " ");
    if text.chars().count() <= 90 { text } else { text.chars().take(90).chain(['…']).collect() }
}
