//! Killed, and with a disk that fails, at each write and each sync of a commit.

use std::ops::Range;
use std::os::unix::process::ExitStatusExt;

use crate::place::{Place, charter};
use crate::server::{Fault, Server, What, fired, log, run_with_fault};
use crate::story::{ACTS, Story, TOKEN, Told, assert_verifies, code};

/// The calls by which a home's files change.
const CALLS: [&str; 3] = ["pwrite64", "fsync", "ftruncate"];

/// No story has more calls of one kind.
const CALLS_MAX: usize = 400;

/// Every call with `CRASH=whole`; by itself each call of one commit, and of the longer stories only every
/// ninth write.
fn sample() -> usize {
    if std::env::var_os("CRASH").is_some_and(|how| how == "whole") { 1 } else { 9 }
}

/// Runs `story` once for each call until none is left at which the fault takes place; of writes, only for
/// every `stride`th. Says how often it took place.
fn at_each_call(what: What, calls: &[&'static str], stride: usize, story: impl Fn(Fault) -> bool) -> usize {
    let mut times = 0;
    for call in calls {
        // There are far fewer of the others.
        let stride = if *call == "pwrite64" || calls == MAKING { stride } else { stride.min(2) };
        for at in (1..CALLS_MAX).step_by(stride) {
            let fault = Fault { call, what, at };
            println!("{fault:?}"); // Shown where the story fails.
            if !story(fault) {
                break;
            }
            times += 1;
        }
    }
    times
}

/// The acts with a server that meets the fault, and what must hold then; whether it took place.
fn commits(story: &Story, acts: Range<usize>, fault: Fault) -> bool {
    let place = story.copy();
    let mut server = Server::start(&place);
    server.meet(&place, fault);
    let told = story.play(&place, acts);

    server.spare();
    let fired = match fault.what {
        // No write comes after its command's answer: killed there, it has not answered.
        What::Kill => told.iter().any(|(_, ran)| ran.exit != 0),
        _ => fired(&place),
    };
    let unknown = told.iter().any(|(_, ran)| code(ran) == "OUTCOME_UNKNOWN");
    if fired && fault.what == What::Kill {
        assert_eq!(server.ended().signal(), Some(9));
    } else if !story.takes_more(&place) {
        assert!(fired && fault.what != What::Kill, "{told:?} {}", log(&place));
        assert_eq!(server.ended().code(), Some(1), "{}", log(&place));
        assert!(log(&place).contains("the process must end"), "{}", log(&place));
    } else {
        // Unsure of what it stored, it must end, and a flush that failed must not be tried again.
        assert!(!unknown && (fault.call != "fsync" || !fired), "{told:?} {}", log(&place));
        // It goes on by itself: asked again on the same server, everything is settled.
        story.settle(&place, &told);
        assert!(server.end().success(), "{}", log(&place));
    }
    assert!(fired || told.iter().all(|(_, ran)| ran.exit == 0), "{told:?} {}", log(&place));
    found_again(story, &place, &told);
    fired
}

/// What must hold of a home whose server ended in any way: it starts again, with all that was acknowledged.
fn found_again(story: &Story, place: &Place, told: &Told) {
    assert_verifies(place);
    let server = Server::start(place);
    story.assert_kept(place, told);
    assert_verifies(place);
    story.settle(place, told);
    assert_verifies(place);
    assert!(server.end().success(), "{}", log(place));
    assert_verifies(place);
}

#[test]
fn a_server_killed_at_any_write_of_one_commit_lost_nothing_that_it_acknowledged() {
    let story = Story::new();
    let times = at_each_call(What::Kill, &CALLS, 1, |fault| commits(&story, 0..1, fault));
    assert!(times >= 6, "{times}");
}

#[test]
fn a_disk_that_fails_at_any_write_of_one_commit_leaves_it_unknown_and_the_request_settles_it() {
    let story = Story::new();
    let times = at_each_call(What::Eio, &CALLS, 1, |fault| commits(&story, 0..1, fault));
    assert!(times >= 6, "{times}");
}

#[test]
fn a_disk_that_is_full_at_any_write_of_one_commit_stores_nothing_or_all_of_it() {
    let story = Story::new();
    let times = at_each_call(What::Enospc, &CALLS, 1, |fault| commits(&story, 0..1, fault));
    assert!(times >= 6, "{times}");
}

/// A credential stands beside the logs, and is copied into the database before it is answered.
#[test]
fn a_disk_that_fails_at_any_write_of_a_new_token_ends_the_server_where_it_is_unsure() {
    let story = Story::new();
    let times = at_each_call(What::Eio, &CALLS, 1, |fault| commits(&story, TOKEN..ACTS, fault));
    assert!(times >= 8, "{times}");
}

#[test]
fn a_series_of_commits_and_a_token_outlive_every_fault_at_every_call() {
    let story = Story::new();
    assert_eq!(TOKEN + 1, ACTS);
    for what in [What::Kill, What::Eio, What::Enospc] {
        let times = at_each_call(what, &CALLS, sample(), |fault| commits(&story, 0..ACTS, fault));
        assert!(times >= 6, "{what:?}: {times}");
    }
}

/// From a start on a home whose server was killed, over one commit, to an end in good order.
fn start_and_end(story: &Story, fault: Fault) -> bool {
    let (place, acknowledged) = story.killed_after_the_first();
    let told = match Server::start_with(&place, fault) {
        Err(_) => Vec::new(),
        Ok(server) => {
            let told = story.play(&place, 0..3);
            // It may have ended by itself; either way no more is said to it.
            server.end();
            told
        }
    };
    let fired = fired(&place);
    assert!(fired || told.iter().all(|(_, ran)| ran.exit == 0), "{told:?} {}", log(&place));
    // What was acknowledged before it started is there in any case.
    let told = if told.is_empty() { vec![(0, acknowledged)] } else { told };
    found_again(story, &place, &told);
    fired
}

#[test]
fn a_server_that_meets_a_fault_as_it_starts_or_ends_leaves_a_home_that_starts() {
    let story = Story::new();
    for what in [What::Kill, What::Eio, What::Enospc] {
        let times = at_each_call(what, &CALLS, sample(), |fault| start_and_end(&story, fault));
        assert!(times >= 6, "{what:?}: {times}");
    }
}

/// The calls by which a home is made.
const MAKING: [&str; 8] = ["pwrite64", "write", "fsync", "ftruncate", "rename", "unlink", "mkdir", "chmod"];

/// A home that is killed in the making is made by asking again.
fn making(fault: Fault) -> bool {
    let init = ["init", "--charter", "charter.toml"];
    let place = Place::empty();
    place.write("charter.toml", charter(""));
    run_with_fault(&place, fault, &init);
    if !fired(&place) {
        return false;
    }
    let made = place.run(&[&["--json"], init.as_slice()].concat());
    // Cut off after the team was there, all that is left to make is a token for who has none.
    if made.exit != 0 {
        assert_eq!(code(&made), "TEAM_TAKEN", "{made:?}");
        for member in MEMBERS {
            place.run(&["member", "token", member]).done();
        }
    }
    let server = Server::start(&place);
    for member in MEMBERS {
        let speaks = place.run(&["--as", member, "status"]);
        assert_eq!(speaks.exit, 0, "{member}: {speaks:?}, after {made:?}");
    }
    assert!(server.end().success());
    assert_verifies(&place);
    true
}

#[test]
fn a_home_whose_making_was_cut_off_is_made_by_asking_again() {
    let times = at_each_call(What::Kill, &MAKING, sample(), making);
    assert!(times >= 10, "{times}");
}

const MEMBERS: [&str; 4] = ["app", "sec", "arch", "dana"];
