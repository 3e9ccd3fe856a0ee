//! Files that were damaged, lost, or put back from another day: refused by name, sequence and remedy, or
//! harmless and shown to be.

use std::fs;
use std::path::PathBuf;

use rusqlite::Connection;
use serde_json::Value;

use crate::place::{Place, Ran, charter};
use crate::server::{Server, log};
use crate::story::{ACTS, Story, assert_verifies, code, copy_of, events};

const PAGE: usize = 4_096;

/// Numbers that look random and are the same in each run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % bound
    }
}

/// A home of two teams in which the story was played, with a WAL that was never copied.
fn played() -> Place {
    let story = Story::new();
    let place = story.copy();
    place.write("other/charter.toml", charter("").replace("atlas", "bravo"));
    place.run(&["team", "add", "--charter", "other/charter.toml"]).done();
    let server = Server::start(&place);
    for act in 0..ACTS - 1 {
        story.act_of(&place, act, Some("atlas")).done();
    }
    server.kill();
    place
}

/// The same, closed in order.
fn closed() -> Place {
    let place = played();
    assert!(Server::start(&place).end().success());
    place
}

fn home(place: &Place, file: &str) -> PathBuf {
    place.path(&format!(".countersign/{file}"))
}

fn verify(place: &Place) -> Ran {
    place.run(&["--json", "verify"])
}

/// That `verify` and `serve` both refuse, and in the same words; what `serve` says.
#[track_caller]
fn refused(place: &Place) -> Value {
    let before = fs::read(home(place, "countersign.db")).ok();
    assert_ne!(verify(place).exit, 0);
    let json = Server::refused(place);
    assert_eq!(fs::read(home(place, "countersign.db")).ok(), before, "refusing changed what there is");
    assert!(!json["remedy"].as_str().unwrap().is_empty(), "{json}");
    json
}

/// What a server would read of a home, proved first; or the refusal.
fn read(place: &Place) -> Result<Vec<(String, String, Option<String>)>, Ran> {
    let verified = verify(place);
    if verified.exit == 0 { Ok(events(place)) } else { Err(verified) }
}

/// A bit turned at each of these places, one after the other: refused with a code and a remedy, or the log
/// reads as it did. Says how many were refused, and how many of these by their place.
fn flipped(whole: &Place, file: &str, places: impl Iterator<Item = usize>) -> (usize, usize) {
    let sound = read(&copy_of(whole)).unwrap();
    let bytes = fs::read(home(whole, file)).unwrap();
    let (mut refused, mut placed) = (0, 0);
    let copy = copy_of(whole);
    for at in places {
        let mut bytes = bytes.clone();
        bytes[at] ^= 1 << (at % 8);
        fs::write(home(&copy, file), bytes).unwrap();
        match read(&copy) {
            Ok(found) => assert!(found == sound, "{file}, byte {at}: another log is read: {found:?}"),
            Err(ran) => {
                let json = ran.json();
                let known = ["LOG_DAMAGED", "STORE_UNUSABLE"].contains(&code(&ran).as_str());
                assert!(known && !json["remedy"].as_str().unwrap().is_empty(), "{file}, byte {at}: {ran:?}");
                refused += 1;
                placed += usize::from(json["facts"]["sequence"].as_u64().is_some());
            }
        }
    }
    (refused, placed)
}

#[test]
fn a_bit_turned_on_any_page_of_the_database_is_refused_or_changes_nothing_that_is_read() {
    let whole = closed();
    let pages = fs::read(home(&whole, "countersign.db")).unwrap().len() / PAGE;
    let mut dice = Dice(43);
    let offsets: Vec<usize> = (0..pages)
        .flat_map(|page| std::iter::repeat_n(page, 12))
        .map(|page| page * PAGE + dice.below(PAGE))
        .collect();
    let (refused, placed) = flipped(&whole, "countersign.db", offsets.into_iter());
    println!("{refused} refused of {}, {placed} by their place", pages * 12);
    assert!(refused >= pages && placed > 0, "{refused} refused, {placed} by their place, of {pages} pages");
}

#[test]
fn a_bit_turned_in_any_frame_of_the_wal_is_refused_or_changes_nothing_that_is_read() {
    let whole = played();
    let frames = (fs::read(home(&whole, "countersign.db-wal")).unwrap().len() - 32) / (PAGE + 24);
    assert!(frames > 4, "{frames}");
    let mut dice = Dice(44);
    let offsets: Vec<usize> = (0..frames)
        .flat_map(|frame| std::iter::repeat_n(frame, 6))
        .map(|frame| 32 + frame * (PAGE + 24) + dice.below(PAGE + 24))
        .collect();
    let (refused, placed) = flipped(&whole, "countersign.db-wal", (0..32).step_by(5).chain(offsets));
    println!("{refused} refused of {}, {placed} by their place", frames * 6 + 7);
    assert!(placed >= frames, "{refused} refused, {placed} by their place, of {frames} frames");
}

#[test]
fn a_wal_or_a_database_that_was_cut_is_never_silently_shorter() {
    for (file, whole) in [("countersign.db-wal", played()), ("countersign.db", closed())] {
        let bytes = fs::read(home(&whole, file)).unwrap();
        let sound = read(&copy_of(&whole)).unwrap();
        let copy = copy_of(&whole);
        let mut dice = Dice(45);
        let lengths = [0, 1, 31, 32, 99, 100, bytes.len() - 1, bytes.len() - PAGE].into_iter();
        for kept in lengths.chain((0..20).map(|_| dice.below(bytes.len())).collect::<Vec<_>>()) {
            fs::write(home(&copy, file), &bytes[..kept]).unwrap();
            match read(&copy) {
                Ok(found) => assert!(found == sound, "{file} cut to {kept}: {found:?}"),
                Err(ran) => {
                    let known = ["LOG_DAMAGED", "STORE_UNUSABLE"].contains(&code(&ran).as_str());
                    assert!(known, "{file} cut to {kept}: {ran:?}");
                }
            }
        }
        // Most of what was cut off holds acknowledged rows: there is no length at which all is well.
        fs::write(home(&copy, file), &bytes[..bytes.len() / 2]).unwrap();
        assert_ne!(verify(&copy).exit, 0, "{file}");
    }
}

#[test]
fn rows_that_are_gone_are_told_by_their_sequence_and_what_to_do() {
    let whole = closed();
    let sql = |statements: &str| {
        let copy = copy_of(&whole);
        Connection::open(home(&copy, "countersign.db")).unwrap().execute_batch(statements).unwrap();
        copy
    };
    let cut = refused(&sql("DELETE FROM log WHERE team = 1 AND seq > 4"));
    assert_eq!((&cut["code"], &cut["facts"]["sequence"]), (&"LOG_DAMAGED".into(), &5.into()), "{cut}");
    assert!(cut["message"].as_str().unwrap().contains("atlas's log ends at 4"), "{cut}");
    assert!(cut["remedy"].as_str().unwrap().contains("backup"), "{cut}");

    let gone = refused(&sql("DELETE FROM log WHERE team = 2"));
    assert!(gone["message"].as_str().unwrap().contains("bravo's log ends at 0"), "{gone}");
    let gone = refused(&sql(
        "DELETE FROM log WHERE team = 2; DELETE FROM credentials WHERE team = 2; DELETE FROM teams WHERE id = 2",
    ));
    assert!(gone["message"].as_str().unwrap().contains("bravo's log ends at 0"), "{gone}");
}

#[test]
fn an_older_copy_that_was_put_back_is_refused_by_the_witness() {
    let whole = closed();
    let older = fs::read(home(&whole, "countersign.db")).unwrap();
    let server = Server::start(&whole);
    whole.run(&["--as", "dana", "--team", "atlas", "escalate", "implement", "Who decides?"]).done();
    assert!(server.end().success());
    fs::write(home(&whole, "countersign.db"), older).unwrap();
    let told = refused(&whole);
    assert_eq!(told["code"], "LOG_DAMAGED", "{told}");
    assert!(told["message"].as_str().unwrap().contains("was witnessed"), "{told}");

    // A person can say that this is where it goes on; it is never assumed.
    whole.run(&["verify", "--accept-head"]).done();
    assert_verifies(&whole);
    assert!(Server::start(&whole).end().success());
}

#[test]
fn a_witness_that_is_gone_or_cut_is_refused_until_a_person_renews_it() {
    let whole = closed();
    let bytes = fs::read(home(&whole, "witness")).unwrap();
    for kept in [None, Some(0), Some(1), Some(255), Some(400), Some(bytes.len() - 1)] {
        let copy = copy_of(&whole);
        match kept {
            None => fs::remove_file(home(&copy, "witness")).unwrap(),
            Some(kept) => fs::write(home(&copy, "witness"), &bytes[..kept]).unwrap(),
        }
        let told = refused(&copy);
        assert_eq!(told["code"], "LOG_DAMAGED", "{kept:?}: {told}");
        assert!(told["remedy"].as_str().unwrap().contains("verify --accept-head"), "{kept:?}: {told}");
        copy.run(&["verify", "--accept-head"]).done();
        assert!(Server::start(&copy).end().success());
        assert_verifies(&copy);
    }
}

#[test]
fn a_home_that_lost_database_and_witness_is_not_begun_anew_without_a_word() {
    let whole = closed();
    for file in ["countersign.db", "witness"] {
        fs::remove_file(home(&whole, file)).unwrap();
    }
    let init = ["--json", "init", "--charter", "charter.toml"];
    for told in [Server::refused(&whole), whole.run(&init).json()] {
        assert_eq!(told["code"], "HOME_UNUSABLE", "{told}");
        assert!(told["message"].as_str().unwrap().contains("held the log of atlas"), "{told}");
        assert!(told["remedy"].as_str().unwrap().contains("backup"), "{told}");
        assert!(!home(&whole, "countersign.db").exists());
    }
    // What the remedy names works.
    fs::rename(whole.path(".countersign"), whole.path("away")).unwrap();
    whole.run(&["init", "--charter", "charter.toml"]).done();
}

#[test]
fn a_server_whose_files_were_deleted_or_swapped_stops_acknowledging_and_says_which() {
    let whole = closed();
    for file in ["countersign.db", "countersign.db-wal", "witness", "lock"] {
        for swapped in [false, true] {
            let place = copy_of(&whole);
            let server = Server::start(&place);
            let escalate = |member: &str| {
                let args = ["--team", "atlas", "escalate", "implement", "Who decides?"];
                place.run(&[["--json", "--as", member].as_slice(), &args].concat())
            };
            escalate("app").done();
            let held = events(&place);
            let bytes = fs::read(home(&place, file)).unwrap();
            // Kept under another name, so that a new file can't get its number.
            fs::rename(home(&place, file), place.path("kept")).unwrap();
            if swapped {
                fs::write(home(&place, file), bytes).unwrap();
            }
            let told = escalate("dana");
            assert_ne!(told.exit, 0, "{file}: {told:?}");
            assert!(
                told.out.contains(&format!("{file} was replaced"))
                    || told.out.contains("countersign.db was replaced"),
                "{told:?}"
            );
            if ["witness", "lock"].contains(&file) {
                // Nobody could say what it holds that others don't: it ends. Without its database it goes on
                // refusing what it is asked.
                assert_eq!(server.ended().code(), Some(1), "{file}: {}", log(&place));
            } else {
                let again = escalate("dana");
                assert_ne!(again.exit, 0, "{file}: {again:?}");
                server.end();
            }
            // Put back, it starts with all that was acknowledged.
            fs::rename(place.path("kept"), home(&place, file)).unwrap();
            let server = Server::start(&place);
            assert!(held.iter().all(|event| events(&place).contains(event)), "{file}");
            escalate("sec").done();
            assert!(server.end().success());
            assert_verifies(&place);
        }
    }
}

#[test]
fn a_backup_into_a_folder_that_is_taken_says_by_what() {
    let place = closed();
    place.write("full/theirs", "x");
    let told = place.run(&["--json", "backup", "full"]);
    assert_eq!((told.exit, code(&told).as_str()), (1, "FOLDER_TAKEN"), "{told:?}");
    assert_eq!(told.json()["facts"]["holds"], "theirs");
    place.run(&["backup", "copy"]).done();
}
