//! Golden logs: logs as each released version stored them. Every build proves them, replays them to the
//! state that they held, and serves them.
//!
//! `golden/RELEASE/NAME.jsonl` has a row of the log a line, with its link; `NAME.state` what it comes to;
//! `golden/heads` where each ends. A file here is never changed: a log that a server stored can't be either.
//! `UPDATE=1` adds what [`PLAYS`] names and isn't there yet, and writes over nothing.

// clippy.toml allows it in tests, but takes only functions marked as tests for such.
#![allow(clippy::unwrap_used)]

mod support;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use countersign::judge::CelJudge;
use countersign::protocol::name::{Digest, Seq, TeamName};
use countersign::protocol::{Event, Team};
use countersign::store::chain::{Link, Tail};
use countersign::store::memory::MemoryStore;
use countersign::store::sqlite::SqliteStore;
use countersign::store::{Batch, Reader, Request, Row, Writer};
use serde_json::{Value, json};
use support::coordinated::{Coordinated, objections, standing};
use support::play::{play, tests_folder};

fn team() -> TeamName {
    "atlas".parse().unwrap()
}

#[test]
fn discover() {
    let mut kinds: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for file in support::play::play_files() {
        let text = fs::read_to_string(&file).unwrap();
        let slot: RefCell<Option<MemoryStore>> = RefCell::default();
        play(&text, &|name: &str| {
            let stage = Coordinated::with_charter(name);
            *slot.borrow_mut() = Some(stage.store());
            stage
        });
        let Some(store) = slot.into_inner() else { continue };
        let reader = store.reader();
        for team in reader.teams().unwrap() {
            let rows = reader.rows(&team, Seq(1), usize::MAX).unwrap();
            let set: BTreeSet<String> = rows.iter().map(|row| row.kind.to_string()).collect();
            let size: usize = rows.iter().map(|row| row.body.len() + 200).sum();
            println!("{team} {} {size} {}", file.display(), set.len());
            for kind in set {
                kinds.entry(kind).or_default().push(file.file_name().unwrap().to_str().unwrap().to_owned());
            }
        }
    }
    for (kind, _) in Event::KINDS {
        let of = kinds.get(*kind).cloned().unwrap_or_default();
        println!("KIND {kind} {} {:?}", of.len(), of.iter().take(4).collect::<Vec<_>>());
    }
}
