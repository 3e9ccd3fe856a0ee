//! The core, in small worlds and completely: every state that can be reached holds every guarantee.
//!
//! `MODEL=full cargo model` goes as far as docs/model.md says; `cargo planted` leaves out one guard after the other.

#[path = "model/mod.rs"]
mod model;

#[cfg(feature = "planted")]
#[path = "model/planted.rs"]
mod planted;
#[cfg(feature = "planted")]
#[path = "simulation/mod.rs"]
mod simulation;

use countersign::judge::CelJudge;
use model::search::{Leave, Seen, search};
use model::worlds::{self, Size};

fn size() -> Size {
    match std::env::var("MODEL").ok().as_deref() {
        None | Some("small") => Size::Small,
        Some("full") => Size::Full,
        Some(other) => panic!("MODEL is small or full, not {other}"),
    }
}

/// Looks at every state of a world, and that the world is worth it.
fn hold(name: &str) {
    let (judge, size) = (CelJudge::shipped(), size());
    let world = worlds::all(size).into_iter().find(|world| world.name == name);
    let world = world.unwrap_or_else(|| panic!("there is no world {name}"));
    let (seen, all) = search(&judge, &world, Leave::default()).unwrap_or_else(|found| panic!("{found}"));
    assert!(all, "{name} was not searched to its end");
    let Seen { states, transitions, refused, depth, ends, took, .. } = &seen;
    println!(
        "{size:?} {name}: {states} states, {transitions} transitions, {refused} refusals, {depth} deep, {ends} with \
         nothing open, in {:.1} s; {:?}",
        took.as_secs_f64(),
        world.bounds
    );
    // A world in which nothing happens would hold everything.
    let published = world.shows.contains(&"circle-published");
    assert!(*ends > 0 || !published, "{name} never comes to an end");
    for kind in world.shows {
        assert!(seen.events.contains_key(kind), "{name} never shows {kind}");
    }
    for (verb, code) in world.refuses {
        let known = seen.codes.keys().any(|(by, what)| by == verb && what == code);
        assert!(known, "{name} never refuses to {verb} with {code}");
    }
}

#[test]
fn two_reviewers_and_every_limit_leave_nobody_stuck() {
    hold("solo");
}

#[test]
fn a_reviewer_with_a_hand_in_the_work_and_texts_that_no_text_may_be() {
    hold("texts");
}

#[test]
fn what_is_claimed_is_shown_by_tests_checks_and_evidence() {
    hold("tests");
}

#[test]
fn two_who_review_each_other_finish_together_after_a_publish_that_failed() {
    hold("pair");
}

#[test]
fn whoever_a_person_replaces_excuses_or_overrules() {
    hold("persons");
}

#[test]
fn whatever_is_late_goes_to_a_person() {
    hold("late");
}

#[test]
fn charters_adopted_while_work_goes_on_leave_nobody_stuck() {
    hold("charters");
}

#[test]
fn where_each_finishes_by_itself_what_is_beside_the_charter_does_too() {
    hold("each");
}

#[test]
fn what_a_producer_withdrew_cools_under_all_of_its_names() {
    hold("beside");
}

#[test]
fn what_members_say_to_one_another_is_judged_by_others_alone() {
    hold("room");
}
