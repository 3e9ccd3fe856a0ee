//! Databases of other versions: the oldest is brought to this version's form as a whole, killed at any
//! write or not; a newer one is refused, and not a byte of it is touched.

use std::collections::BTreeMap;
use std::fs;

use rusqlite::Connection;
use serde_json::Value;

use crate::place::{Place, charter};
use crate::server::{Fault, Server, What, fired, log};
use crate::story::{assert_verifies, code, copy_of};

/// A home as release 0.1 left it, with its witness.
const OLDEST: (&str, &str) = (include_str!("../golden/form-1.sql"), include_str!("../golden/form-1.witness"));

/// Where its log ended.
const HEAD: (i64, &str) = (8, "ae8c9fd2f4e190fa8591c73ee6403fd5b9833e9d0faee7db76de389a09c676b9");

/// The form that this version writes.
const FORM: u32 = 2;

fn oldest() -> Place {
    let place = Place::empty();
    place.write("charter.toml", charter(""));
    place.write(".countersign/witness", OLDEST.1);
    place.write(".countersign/first-team", "atlas\n");
    place.write(".countersign/teams/atlas/folder", "..");
    let database = Connection::open(place.path(".countersign/countersign.db")).unwrap();
    database.execute_batch(OLDEST.0).unwrap();
    place
}

fn form(place: &Place) -> u32 {
    let database = Connection::open(place.path(".countersign/countersign.db")).unwrap();
    database.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap()
}

/// The rows of the release, as they are stored now.
fn rows(place: &Place) -> Vec<(i64, String, Vec<u8>, String)> {
    let database = Connection::open(place.path(".countersign/countersign.db")).unwrap();
    let mut rows =
        database.prepare("SELECT place, kind, chain, body FROM log WHERE seq <= ?1 ORDER BY place").unwrap();
    let rows =
        rows.query_map([HEAD.0], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))).unwrap();
    rows.collect::<Result<_, _>>().unwrap()
}

/// That a server goes on with it, for members who have a token again.
#[track_caller]
fn goes_on(place: &Place) {
    let server = Server::start(place);
    for member in ["app", "sec"] {
        place.run(&["member", "token", member]).done();
    }
    let status = place.run(&["--json", "--as", "app", "status"]).done().json();
    assert_eq!(status["proposals"][0]["ref"], "parser@1:d3f76219f313", "{status}");
    place.run(&["--as", "sec", "escalate", "implement", "Who decides?"]).done();
    assert!(server.end().success(), "{}", log(place));
    assert_verifies(place);
}

#[test]
fn the_oldest_form_is_brought_to_this_version_with_every_row_as_it_was() {
    let place = oldest();
    let before = rows(&place);
    assert_eq!((before.len() as i64, form(&place)), (HEAD.0, 1));
    assert!(Server::start(&place).end().success(), "{}", log(&place));
    assert_eq!((rows(&place), form(&place)), (before, FORM));
    let chain: String = rows(&place).last().unwrap().2.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(chain, HEAD.1);
    assert_verifies(&place);
    goes_on(&place);
}

#[test]
fn the_oldest_form_is_proved_and_copied_before_it_is_brought_to_this_version() {
    let place = oldest();
    place.run(&["verify"]).done();
    place.run(&["backup", "copy"]).done();
    assert_eq!(form(&place), 1);
}

#[test]
fn a_server_killed_as_it_opens_the_oldest_form_leaves_it_whole_in_one_form_or_the_other() {
    let whole = oldest();
    let before = rows(&whole);
    let mut times = 0;
    for call in ["pwrite64", "fsync", "ftruncate"] {
        for at in 1..200 {
            let fault = Fault { call, what: What::Kill, at };
            println!("{fault:?}"); // Shown where it fails.
            let place = copy_of(&whole);
            if let Ok(server) = Server::start_with(&place, fault) {
                server.end();
            }
            if !fired(&place) {
                break;
            }
            times += 1;
            let found = form(&place);
            assert!(found == 1 || found == FORM, "{found}");
            assert_eq!(rows(&place), before);
            if at % 4 == 1 {
                goes_on(&place);
            } else {
                assert!(Server::start(&place).end().success(), "{}", log(&place));
                assert_verifies(&place);
            }
            assert_eq!((rows(&place), form(&place)), (before.clone(), FORM));
        }
    }
    assert!(times >= 5, "{times}");
}

/// Every file of the home, byte for byte.
fn contents(place: &Place) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(place.path(".countersign")).unwrap().map(Result::unwrap);
    let files = entries.filter(|entry| entry.path().is_file());
    files.map(|entry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap())).collect()
}

#[test]
fn a_newer_form_is_refused_by_every_command_and_not_a_byte_of_it_is_touched() {
    let place = oldest();
    assert!(Server::start(&place).end().success(), "{}", log(&place));
    let newer = FORM + 1;
    let database = Connection::open(place.path(".countersign/countersign.db")).unwrap();
    database.pragma_update(None, "user_version", newer).unwrap();
    drop(database);
    let before = contents(&place);
    for args in [
        &["verify"] as &[&str],
        &["verify", "--accept-head"],
        &["backup", "copy"],
        &["member", "token", "app"],
        &["init", "--charter", "charter.toml"],
    ] {
        let told = place.run(&[&["--json"], args].concat());
        assert_eq!((told.exit, code(&told).as_str()), (1, "STORE_UNUSABLE"), "{args:?}: {told:?}");
        let json: Value = told.json();
        let said = json["message"].as_str().unwrap();
        assert!(said.contains(&format!("form {newer}")), "{args:?}: {said}");
        assert!(json["remedy"].as_str().unwrap().contains("newer"), "{args:?}: {json}");
        assert!(contents(&place) == before, "{args:?} touched something");
        assert!(!place.path("copy").exists());
    }
    assert_eq!(Server::refused(&place)["code"], "STORE_UNUSABLE");
    assert!(contents(&place) == before);
}
