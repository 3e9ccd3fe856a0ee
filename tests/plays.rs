//! Every play, on every stage.

mod support;

use std::collections::BTreeSet;

use countersign::protocol::Violation;
use countersign::protocol::time::Span;
use support::coordinated::Coordinated;
use support::play::{self, Act, Files, Seen, Stage, Standing};
use support::served::Served;

#[test]
fn against_the_core_over_the_memory_store() {
    play::play_all(Coordinated::with_charter);
}

#[test]
fn over_grpc_on_sqlite_and_git() {
    if std::env::var_os("UPDATE").is_none() {
        play::play_all(Served::with_charter);
    }
}

/// A server that ends after each command is no other server: what it knows is what it stored.
struct Forgetful(Coordinated);

impl Stage for Forgetful {
    fn base(&self) -> Option<Files> {
        self.0.base()
    }

    fn act(&mut self, member: &str, act: &Act) -> Seen {
        let seen = self.0.act(member, act);
        self.0.restart();
        seen
    }

    fn standing(&mut self) -> Standing {
        self.0.standing()
    }

    fn wait(&mut self, span: Span) {
        self.0.wait(span);
    }

    fn away(&mut self, span: Span) {
        self.0.away(span);
    }

    fn restart(&mut self) {
        self.0.restart();
    }

    fn land(&mut self, files: &Files) {
        self.0.land(files);
    }

    fn move_ref(&mut self, name: &str) {
        self.0.move_ref(name);
    }
}

#[test]
fn against_a_server_that_ends_after_each_command() {
    if std::env::var_os("UPDATE").is_none() {
        play::play_all(|charter| Forgetful(Coordinated::with_charter(charter)));
    }
}

/// A server that begins from a snapshot and the rows after it is no other server, and neither is one whose
/// snapshot is damaged: each has exactly the state that the whole log adds up to.
struct Resuming {
    stage: Coordinated,
    restarts: usize,
    /// Snapshots that were there, sound and damaged.
    met: [usize; 2],
}

/// So that there are rows after most snapshots.
const SNAPSHOT_ROWS: u64 = 3;

impl Resuming {
    fn with_charter(charter: &str) -> Self {
        let stage = Coordinated::with_charter(charter);
        stage.keep_snapshots(SNAPSHOT_ROWS);
        Self { stage, restarts: 0, met: [0, 0] }
    }

    fn resume(&mut self) {
        self.restarts += 1;
        let (restarts, damages) = (self.restarts, self.restarts.is_multiple_of(3));
        let there = self.stage.restart_changing(|snapshot| {
            if damages {
                let at = restarts * 7919 % snapshot.len();
                snapshot[at] ^= 1;
            }
        });
        self.met[usize::from(damages)] += usize::from(there);
        let [found, replayed] = self.stage.with_replayed();
        assert_eq!(found.1, replayed.1);
        assert_eq!(found.0, replayed.0, "what a snapshot doesn't keep");
    }
}

impl Stage for Resuming {
    fn base(&self) -> Option<Files> {
        self.stage.base()
    }

    fn act(&mut self, member: &str, act: &Act) -> Seen {
        let seen = self.stage.act(member, act);
        self.resume();
        seen
    }

    fn standing(&mut self) -> Standing {
        self.stage.standing()
    }

    fn wait(&mut self, span: Span) {
        self.stage.wait(span);
    }

    fn away(&mut self, span: Span) {
        self.stage.away(span);
    }

    fn restart(&mut self) {
        self.resume();
    }

    fn land(&mut self, files: &Files) {
        self.stage.land(files);
        self.resume();
    }

    fn move_ref(&mut self, name: &str) {
        self.stage.move_ref(name);
        self.resume();
    }
}

impl Drop for Resuming {
    fn drop(&mut self) {
        if !std::thread::panicking() && self.restarts >= 9 {
            assert!(
                self.met.iter().all(|met| *met > 0),
                "a play of {} steps met {:?}",
                self.restarts,
                self.met
            );
        }
    }
}

#[test]
fn against_a_server_that_begins_from_snapshots_sound_and_damaged() {
    if std::env::var_os("UPDATE").is_none() {
        play::play_all(Resuming::with_charter);
    }
}

/// Codes that the server gives before the core is asked, or that no member of a play can meet: each with
/// the file and the test that show it.
const SHOWN_ELSEWHERE: &[(&str, &str, &str)] = &[
    ("NOT_ADOPTED", "pairs.rs", "a_team_without_a_charter_does_nothing"),
    ("NOT_A_WATCHER", "listen/processes.rs", "each_end_has_its_exit_code_and_the_last_line_names_what_woke"),
    ("SUPERSEDED", "listen/processes.rs", "each_end_has_its_exit_code_and_the_last_line_names_what_woke"),
    ("DIRECT_PUSH", "door/pushes.rs", "a_direct_push_is_refused_and_says_how_to_propose"),
    ("STAGING_REF", "door/pushes.rs", "a_staging_ref_is_made_once_by_the_whole_id_of_its_commit"),
    ("NOT_COUNTERSIGNED", "door/check.rs", "only_a_commit_that_a_completed_circle_holds_passes"),
    ("NOT_STAGED", "server/repository.rs", "a_commit_is_staged_proposed_and_pinned"),
    ("ARTIFACT_TOO_LARGE", "server/bundles.rs", "a_bundle_that_cannot_be_taken_is_refused_by_its_place"),
    ("PATH_UNSAFE", "server/bundles.rs", "a_bundle_that_cannot_be_taken_is_refused_by_its_place"),
    ("ARTIFACT_KIND_UNFIT", "server/bundles.rs", "a_bundle_that_cannot_be_taken_is_refused_by_its_place"),
];

#[test]
fn every_code_is_shown_by_a_play() {
    let shown = play::codes_shown();
    let elsewhere: BTreeSet<&str> = SHOWN_ELSEWHERE.iter().map(|(code, ..)| *code).collect();
    let known: BTreeSet<&str> = Violation::CODES.iter().map(|(code, _)| *code).collect();
    let missing: Vec<&&str> =
        known.iter().filter(|code| !shown.contains(**code) && !elsewhere.contains(**code)).collect();
    assert!(missing.is_empty(), "no play shows {missing:?}");
    for (code, file, test) in SHOWN_ELSEWHERE {
        assert!(known.contains(code), "{test} shows {code}, which nothing can give");
        assert!(!shown.contains(*code), "a play shows {code}, not only {test}");
        let text = std::fs::read_to_string(play::tests_folder().join(file)).unwrap();
        let body = text.split(&format!("fn {test}(")).nth(1);
        let body = body.unwrap_or_else(|| panic!("{file} has no {test}")).split("\n}\n").next().unwrap();
        assert!(body.contains(&format!("\"{code}\"")), "{test} in {file} does not show {code}");
    }
}
