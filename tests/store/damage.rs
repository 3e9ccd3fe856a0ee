//! Damage of any kind is refused by name and place, or it changed nothing that anybody reads.

use std::fs;
use std::path::{Path, PathBuf};

use countersign::protocol::name::{Digest, Seq, TeamName};
use countersign::protocol::time::Time;
use countersign::store::sqlite::{SqliteReader, SqliteStore};
use countersign::store::{Credential, Fault, Head, Reader, Request, Row, Writer};
use rusqlite::Connection;
use tempfile::TempDir;

use super::suite::{copy_of, member, row, single_rows, team};

const ROWS: u64 = 40;

/// A home of two teams that was closed in order.
fn home() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    drop(fill(folder.path()));
    folder
}

fn fill(folder: &Path) -> (impl Writer + use<>, SqliteReader) {
    let (mut writer, reader) = SqliteStore::open(folder, "a test").unwrap();
    let teams = [team("demo"), team("other")];
    for (team, number) in teams.iter().zip(1..) {
        writer.add_team(team, Time(1)).unwrap();
        let hash = Digest::of_bytes([number; 32]);
        let (member, issued_at) = ("app".parse().unwrap(), Time(5));
        let team = team.clone();
        let credential = Credential { hash, team, member, issued_at, revoked_at: None, of_page: false };
        writer.add_credential(&credential).unwrap();
    }
    for team in &teams {
        writer.commit(&single_rows(team, 1, ROWS)).unwrap();
    }
    (writer, reader)
}

fn database(folder: &TempDir) -> PathBuf {
    folder.path().join("countersign.db")
}

fn sql(folder: &TempDir, statements: &str) {
    Connection::open(database(folder)).unwrap().execute_batch(statements).unwrap();
}

fn open(folder: &TempDir) -> Result<(), Fault> {
    SqliteStore::open(folder.path(), "a test").map(drop)
}

fn verify(folder: &TempDir, name: &str) -> Result<Head, Fault> {
    SqliteReader::open_read_only(folder.path())?.verify(&team(name))
}

#[track_caller]
fn assert_damaged(result: Result<impl Sized, Fault>, name: &str, at: u64) {
    match result.map(drop) {
        Err(Fault::Damaged { team, seq, .. }) => assert_eq!((team.as_str(), seq), (name, Seq(at))),
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn assert_cut(result: Result<impl Sized, Fault>, name: &str, at: u64, of: u64) {
    match result.map(drop) {
        Err(Fault::Cut { team, found, witnessed }) => {
            assert_eq!((team.as_str(), found, witnessed), (name, Seq(at), Seq(of)));
        }
        other => panic!("{other:?}"),
    }
}

type Everything = (Vec<(TeamName, Head, Vec<Row>, Vec<Option<Request>>)>, Vec<Credential>);

/// All that a server would ever read, proved.
fn everything(folder: &TempDir) -> Result<Everything, Fault> {
    let (_writer, reader) = SqliteStore::open(folder.path(), "a test")?;
    let mut logs = Vec::new();
    for team in reader.teams()? {
        let head = reader.verify(&team)?;
        let rows = reader.rows(&team, Seq(1), usize::MAX)?;
        let requests = (1..=ROWS).map(|seq| reader.request(&team, &member("app"), &format!("r{seq}")));
        let requests = requests.collect::<Result<_, _>>()?;
        logs.push((team, head, rows, requests));
    }
    Ok((logs, reader.credentials()?))
}

/// Turns one bit at `at`, in a copy of the home.
fn flipped(whole: &Path, file: &str, at: usize) -> TempDir {
    let copy = copy_of(whole);
    let path = copy.path().join(file);
    let mut bytes = fs::read(&path).unwrap();
    bytes[at] ^= 1 << (at % 8);
    fs::write(path, bytes).unwrap();
    copy
}

#[test]
fn a_bit_flipped_anywhere_in_the_database_is_refused_or_changes_nothing() {
    let whole = home();
    let sound = everything(&copy_of(whole.path())).unwrap();
    let bytes = fs::read(database(&whole)).unwrap().len();
    let (mut refused, mut placed) = (0, 0);
    // A stride without a common factor with the size of a page meets every part of a page.
    for at in (0..bytes).step_by(211) {
        match everything(&flipped(whole.path(), "countersign.db", at)) {
            Ok(found) => assert!(found == sound, "byte {at} changed what is read"),
            Err(Fault::Damaged { seq, .. }) => {
                assert!((1..=ROWS).contains(&seq.0), "byte {at}: {seq}");
                placed += 1;
            }
            Err(_) => refused += 1,
        }
    }
    assert!(placed > 40 && refused > 10, "{placed} by place and {refused} otherwise of {}", bytes / 211);
}

#[test]
fn a_bit_flipped_anywhere_in_the_wal_is_refused_or_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (writer, reader) = fill(folder.path());
    let killed = copy_of(folder.path());
    drop((writer, reader));
    let sound = everything(&copy_of(killed.path())).unwrap();
    let bytes = fs::read(killed.path().join("countersign.db-wal")).unwrap().len();
    assert!(bytes > 20_000);
    let mut refused = 0;
    for at in (0..bytes).step_by(1009) {
        match everything(&flipped(killed.path(), "countersign.db-wal", at)) {
            Ok(found) => assert!(found == sound, "byte {at} changed what is read"),
            Err(_) => refused += 1,
        }
    }
    assert!(refused > 10, "{refused}");
}

#[test]
fn a_wal_cut_short_is_a_log_cut_short() {
    let folder = home();
    let (mut writer, reader) = SqliteStore::open(folder.path(), "a test").unwrap();
    for seq in ROWS + 1..=ROWS + 5 {
        writer.commit(&single_rows(&team("demo"), seq, 1)).unwrap();
    }
    let killed = copy_of(folder.path());
    drop((writer, reader));
    let wal = killed.path().join("countersign.db-wal");
    let whole = fs::read(&wal).unwrap();
    verify(&killed, "demo").unwrap();
    for kept in [0, 10, whole.len() / 2, whole.len() - 1] {
        let killed = copy_of(killed.path());
        fs::write(killed.path().join("countersign.db-wal"), &whole[..kept]).unwrap();
        for result in [verify(&killed, "demo").map(drop), open(&killed)] {
            match result {
                Err(Fault::Cut { team, found, witnessed: Seq(45) }) => {
                    assert!(team.as_str() == "demo" && (ROWS..45).contains(&found.0), "{found}");
                }
                other => panic!("{kept}: {other:?}"),
            }
        }
        // Refusing left the evidence as it was.
        assert_eq!(fs::read(killed.path().join("countersign.db-wal")).unwrap(), &whole[..kept]);
    }
    fs::remove_file(&wal).unwrap();
    assert_cut(open(&killed), "demo", ROWS, ROWS + 5);
}

#[test]
fn a_column_edited_by_hand_is_found_at_its_row() {
    let whole = home();
    for edit in [
        "at = at + 1",
        "at = at - 1000000000",
        "actor = 'sec'",
        "actor = 'No Name'",
        "kind = 'approved'",
        "schema = 2",
        "schema = -1",
        "body = replace(body, 'word', 'Word')",
        "body = cast(x'ff' AS TEXT)",
        "request_id = 'r999'",
        "request_id = NULL",
        "request_id = NULL, request_digest = NULL, answer = NULL",
        "request_digest = x'00'",
        "request_digest = zeroblob(32)",
        "answer = '{}'",
        "chain = zeroblob(32)",
        "chain = x'00'",
        "place = place + 1000",
    ] {
        for seq in [1, 7, ROWS] {
            let edited = copy_of(whole.path());
            sql(&edited, &format!("UPDATE log SET {edit} WHERE team = 1 AND seq = {seq}"));
            if seq == ROWS && edit.starts_with("place") {
                // Standing further on, the last row leaves a gap before the witnessed end.
                assert_damaged(verify(&edited, "demo"), "demo", ROWS);
                continue;
            }
            assert_damaged(verify(&edited, "demo"), "demo", seq);
            verify(&edited, "other").unwrap();
            let reader = SqliteReader::open_read_only(edited.path()).unwrap();
            assert_damaged(reader.rows(&team("demo"), Seq(1), 100), "demo", seq);
            if seq == ROWS {
                assert_damaged(open(&edited), "demo", seq);
            }
        }
    }
}

#[test]
fn rows_that_are_missing_are_named() {
    let whole = home();
    let cut = copy_of(whole.path());
    sql(&cut, "DELETE FROM log WHERE team = 1 AND seq > 33");
    assert_cut(open(&cut), "demo", 33, ROWS);
    assert_cut(verify(&cut, "demo"), "demo", 33, ROWS);
    verify(&cut, "other").unwrap();

    let emptied = copy_of(whole.path());
    sql(&emptied, "DELETE FROM log WHERE team = 2; DELETE FROM credentials WHERE team = 2");
    assert_cut(open(&emptied), "other", 0, ROWS);
    sql(&emptied, "DELETE FROM teams WHERE id = 2");
    assert_cut(open(&emptied), "other", 0, ROWS);
    assert_cut(verify(&emptied, "other"), "other", 0, ROWS);

    let gap = copy_of(whole.path());
    sql(&gap, "DELETE FROM log WHERE team = 1 AND seq = 7");
    assert_damaged(verify(&gap, "demo"), "demo", 7);
    let reader = SqliteReader::open_read_only(gap.path()).unwrap();
    assert_damaged(reader.rows(&team("demo"), Seq(1), 100), "demo", 7);
    assert_damaged(reader.rows(&team("demo"), Seq(8), 100), "demo", 7);

    let swapped = copy_of(whole.path());
    sql(&swapped, "UPDATE teams SET name = 'x' WHERE id = 1; UPDATE teams SET name = 'demo' WHERE id = 2");
    assert!(open(&swapped).is_err());
}

#[test]
fn what_stands_beside_the_logs_is_proved_with_them() {
    let whole = home();
    let beside = |folder: &TempDir| SqliteReader::open_read_only(folder.path())?.verify_home();
    beside(&whole).unwrap();

    let gone = copy_of(whole.path());
    sql(
        &gone,
        "DELETE FROM log WHERE team = 2; DELETE FROM credentials WHERE team = 2; DELETE FROM teams WHERE id = 2",
    );
    assert_cut(beside(&gone), "other", 0, ROWS);

    let edited = copy_of(whole.path());
    sql(&edited, "UPDATE credentials SET member = 'dana' WHERE team = 1");
    assert!(beside(&edited).unwrap_err().to_string().contains("does not match its seal"));
}

#[test]
fn a_damaged_line_of_the_witness_hides_no_cut_log() {
    const SLOT: usize = 256;
    const LAST: u64 = ROWS + 1;
    let whole = tempfile::tempdir().unwrap();
    let (mut writer, reader) = fill(whole.path());
    writer.commit(&single_rows(&team("demo"), LAST, 1)).unwrap()[0].as_ref().unwrap();
    drop((writer, reader));
    let witness = fs::read(whole.path().join("witness")).unwrap();
    // The first team's pair: the line of the last row stands in one half, of the commit before in the other.
    let names = |half: &usize| {
        let line = String::from_utf8_lossy(&witness[half * SLOT..][..SLOT]).into_owned();
        line.split_whitespace().any(|word| word == format!("{LAST:020}"))
    };
    let newest = (0..2).find(names).expect("the last row is witnessed");
    let damaged = |half: usize, last: u64| {
        let folder = copy_of(whole.path());
        let mut bytes = witness.clone();
        bytes[half * SLOT + 20] ^= 1;
        fs::write(folder.path().join("witness"), bytes).unwrap();
        sql(&folder, &format!("DELETE FROM log WHERE team = 1 AND seq > {last}"));
        [verify(&folder, "demo").map(drop), open(&folder)]
    };
    for refused in damaged(newest, LAST - 1) {
        assert!(matches!(refused, Err(Fault::Witness { .. })), "{refused:?}");
    }
    // A line that a crash tore is no more than that: the log reaches past the other.
    for fine in damaged(newest, LAST) {
        fine.unwrap();
    }
    // The older line was torn and never written again, or a byte of it was changed: who can tell?
    for refused in damaged(1 - newest, LAST) {
        assert!(matches!(refused, Err(Fault::Witness { .. })), "{refused:?}");
    }
}

#[test]
fn a_request_that_the_index_lost_is_found() {
    let folder = home();
    // The index is rebuilt without one row, and then given its true text again.
    sql(
        &folder,
        "DROP INDEX log_requests;
         CREATE INDEX log_requests ON log (request_id, actor) WHERE request_id IS NOT NULL AND request_id <> 'r9';
         PRAGMA writable_schema = ON;
         UPDATE sqlite_schema SET sql = 'CREATE INDEX log_requests ON log (request_id, actor) WHERE request_id IS NOT NULL'
           WHERE name = 'log_requests';",
    );
    open(&folder).unwrap();
    assert_damaged(verify(&folder, "demo"), "demo", 9);
}

#[test]
fn a_credential_edited_by_hand_is_refused() {
    let whole = home();
    for edit in [
        "member = 'dana'",
        "team = 2",
        "issued_at = 1",
        "revoked_at = 1",
        "of_page = 1",
        "hash = zeroblob(32)",
        "seal = x''",
    ] {
        let edited = copy_of(whole.path());
        sql(&edited, &format!("UPDATE credentials SET {edit} WHERE team = 1"));
        let reader = SqliteReader::open_read_only(edited.path()).unwrap();
        let refused = reader.credentials().unwrap_err().to_string();
        assert!(refused.contains("does not match its seal"), "{edit}: {refused}");
    }
}

#[test]
fn a_lost_witness_is_refused_until_a_person_renews_it() {
    let folder = home();
    let witness = folder.path().join("witness");
    let head = verify(&folder, "demo").unwrap();
    fs::remove_file(&witness).unwrap();
    for refused in [open(&folder), verify(&folder, "demo").map(drop)] {
        assert!(matches!(refused, Err(Fault::Witness { .. })), "{refused:?}");
    }
    fs::write(&witness, "").unwrap();
    for refused in [open(&folder), verify(&folder, "demo").map(drop)] {
        assert!(matches!(refused, Err(Fault::Witness { .. })), "{refused:?}");
    }
    let taken = SqliteStore::rewitness(folder.path()).unwrap();
    assert_eq!(taken[0], (team("demo"), head.clone()));
    open(&folder).unwrap();
    assert_eq!(verify(&folder, "demo").unwrap(), head);
}

#[test]
fn a_person_can_accept_a_shorter_log_and_not_a_damaged_one() {
    let folder = home();
    sql(&folder, "DELETE FROM log WHERE team = 1 AND seq > 33");
    assert_cut(open(&folder), "demo", 33, ROWS);
    assert_eq!(SqliteStore::rewitness(folder.path()).unwrap()[0].1.seq, Seq(33));
    let (mut writer, reader) = SqliteStore::open(folder.path(), "a test").unwrap();
    writer.commit(&single_rows(&team("demo"), 34, 1)).unwrap()[0].as_ref().unwrap();
    assert_eq!(reader.verify(&team("demo")).unwrap().seq, Seq(34));
    drop((writer, reader));
    sql(&folder, "UPDATE log SET body = '{}' WHERE team = 1 AND seq = 3");
    assert_damaged(SqliteStore::rewitness(folder.path()), "demo", 3);
}

#[test]
fn a_database_that_is_gone_or_another_one_is_refused() {
    let folder = home();
    let kept = copy_of(folder.path());
    fs::remove_file(database(&folder)).unwrap();
    assert_cut(open(&folder), "demo", 0, ROWS);
    assert!(!database(&folder).exists(), "refusing must not make a new one");
    fs::write(database(&folder), "").unwrap();
    assert_cut(open(&folder), "demo", 0, ROWS);

    // An older copy of the same.
    let (mut writer, reader) = SqliteStore::open(kept.path(), "a test").unwrap();
    let older = copy_of(kept.path());
    writer.commit(&single_rows(&team("other"), ROWS + 1, 1)).unwrap();
    drop((writer, reader));
    fs::copy(kept.path().join("witness"), older.path().join("witness")).unwrap();
    assert_cut(open(&older), "other", ROWS, ROWS + 1);

    // Another one with teams of the same names, and more in it.
    let another = tempfile::tempdir().unwrap();
    let (mut writer, reader) = SqliteStore::open(another.path(), "a test").unwrap();
    for name in ["demo", "other"] {
        writer.add_team(&team(name), Time(1)).unwrap();
        let rows = (1..=60).map(|seq| row(seq, "sec", "noted", "{}")).collect();
        writer.commit(&[super::suite::batch(&team(name), rows)]).unwrap();
    }
    drop((writer, reader));
    fs::copy(kept.path().join("witness"), another.path().join("witness")).unwrap();
    assert_damaged(open(&another), "demo", ROWS);
}

#[test]
fn a_backup_of_a_damaged_home_is_refused_and_leaves_nothing() {
    let folder = home();
    sql(&folder, "UPDATE log SET body = '{}' WHERE team = 2 AND seq = 5");
    let into = tempfile::tempdir().unwrap();
    let reader = SqliteReader::open_read_only(folder.path()).unwrap();
    assert_damaged(reader.backup(&into.path().join("copy")), "other", 5);
    assert!(!into.path().join("copy").exists());
    assert_damaged(reader.backup(into.path()), "other", 5);
    assert_eq!(fs::read_dir(into.path()).unwrap().count(), 0);
}
