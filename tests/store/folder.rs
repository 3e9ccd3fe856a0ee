//! The folder: modes, the lock, forms, space.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use countersign::protocol::name::{Seq, TeamName};
use countersign::protocol::time::Time;
use countersign::store::sqlite::{SqliteReader, SqliteStore};
use countersign::store::{CommitFault, Fault, Reader, Writer};
use rusqlite::Connection;

use super::suite::{batch, mode, requested, row, single_rows, team};

/// Every file of a folder, byte for byte.
fn contents(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(folder).unwrap().map(Result::unwrap);
    entries.map(|entry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap())).collect()
}

/// Runs itself again under each umask; that child makes a home in the folder it is given.
#[test]
fn modes_do_not_depend_on_the_umask() {
    if let Ok(folder) = std::env::var("STORE_MODES_IN") {
        return make_home_and_check_modes(Path::new(&folder));
    }
    for umask in ["000", "022", "277"] {
        let folder = tempfile::tempdir().unwrap();
        let this_test = "folder::modes_do_not_depend_on_the_umask";
        let child = Command::new("sh")
            .args(["-c", &format!("umask {umask}; exec \"$0\" --exact --nocapture {this_test}")])
            .arg(std::env::current_exe().unwrap())
            .env("STORE_MODES_IN", folder.path())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&child.stdout);
        assert!(child.status.success() && said.contains("modes checked"), "umask {umask}: {said}");
    }
}

fn make_home_and_check_modes(folder: &Path) {
    let (home, copy) = (folder.join("home"), folder.join("copy"));
    let (mut writer, reader) = SqliteStore::open(&home, "a test").unwrap();
    writer.add_team(&team("demo"), Time(1)).unwrap();
    writer.commit(&single_rows(&team("demo"), 1, 3)).unwrap();
    reader.backup(&copy).unwrap();
    assert_eq!((mode(&home), mode(&copy)), (0o700, 0o700));
    for file in ["countersign.db", "countersign.db-wal", "countersign.db-shm", "witness", "lock"] {
        assert_eq!(mode(&home.join(file)), 0o600, "{file}");
    }
    for file in ["countersign.db", "witness"] {
        assert_eq!(mode(&copy.join(file)), 0o600, "{file}");
    }
    println!("modes checked");
}

#[test]
fn a_folder_of_somebody_elses_files_is_not_closed_to_others() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("theirs"), "x").unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let refused = SqliteStore::open(folder.path(), "a test").map(drop).unwrap_err().to_string();
    assert!(refused.contains("open to others"), "{refused}");
    assert_eq!(contents(folder.path()).len(), 1);
    fs::remove_file(folder.path().join("theirs")).unwrap();
    SqliteStore::open(folder.path(), "a test").unwrap();
    assert_eq!(mode(folder.path()), 0o700);
}

#[test]
fn a_second_server_is_refused_and_told_by_whom() {
    let folder = tempfile::tempdir().unwrap();
    let (writer, _reader) = SqliteStore::open(folder.path(), "process 17").unwrap();
    let held = || match SqliteStore::open(folder.path(), "process 18").map(drop) {
        Err(Fault::Held { holder }) => holder,
        other => panic!("{other:?}"),
    };
    assert_eq!(held(), "process 17");
    writer.set_holder("process 17 at 127.0.0.1:7777\u{1b}[2J").unwrap();
    assert_eq!(held(), "process 17 at 127.0.0.1:7777\\u{1b}[2J");
    assert!(matches!(SqliteStore::rewitness(folder.path()), Err(Fault::Held { .. })));
    // Those who only read are welcome.
    SqliteReader::open_read_only(folder.path()).unwrap().teams().unwrap();
    drop(writer);
    SqliteStore::open(folder.path(), "process 18").unwrap();
}

#[test]
fn a_newer_form_is_refused_and_not_a_byte_of_it_touched() {
    let folder = tempfile::tempdir().unwrap();
    let (mut writer, reader) = SqliteStore::open(folder.path(), "a test").unwrap();
    writer.add_team(&team("demo"), Time(1)).unwrap();
    drop((writer, reader));
    let database = folder.path().join("countersign.db");
    Connection::open(&database).unwrap().execute_batch("PRAGMA user_version = 3").unwrap();
    let before = contents(folder.path());
    for refused in [
        SqliteStore::open(folder.path(), "a test").map(drop),
        SqliteReader::open_read_only(folder.path()).map(drop),
        SqliteStore::rewitness(folder.path()).map(drop),
    ] {
        assert!(matches!(refused, Err(Fault::Newer { found: 3, known: 2 })), "{refused:?}");
    }
    assert!(contents(folder.path()) == before);
}

#[test]
fn a_newer_form_that_stands_in_the_wal_alone_is_refused_too() {
    let folder = tempfile::tempdir().unwrap();
    let (mut writer, reader) = SqliteStore::open(folder.path(), "a test").unwrap();
    writer.add_team(&team("demo"), Time(1)).unwrap();
    drop((writer, reader));
    let database = folder.path().join("countersign.db");
    // Killed before it could copy its WAL: the connection is still open while the files are copied.
    let newer = Connection::open(&database).unwrap();
    newer.execute_batch("PRAGMA user_version = 4").unwrap();
    let killed = tempfile::tempdir().unwrap();
    for file in ["countersign.db", "countersign.db-wal", "witness"] {
        fs::copy(folder.path().join(file), killed.path().join(file)).unwrap();
    }
    let before = contents(killed.path());
    let refused = SqliteStore::open(killed.path(), "a test").map(drop);
    assert!(matches!(refused, Err(Fault::Newer { found: 4, known: 2 })), "{refused:?}");
    let after = contents(killed.path());
    assert!(before.iter().all(|(file, bytes)| after[file] == *bytes));
    assert!(!after.contains_key("lock"), "it was refused before the folder was taken");
}

#[test]
fn another_programs_file_and_a_changed_schema_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let database = folder.path().join("countersign.db");
    let refused = || SqliteStore::open(folder.path(), "a test").map(drop).unwrap_err().to_string();
    fs::write(&database, "a".repeat(5000)).unwrap();
    assert!(refused().contains("is not a database"), "{}", refused());
    fs::remove_file(&database).unwrap();
    Connection::open(&database).unwrap().execute_batch("CREATE TABLE theirs (x)").unwrap();
    assert!(refused().contains("another program"), "{}", refused());
    fs::remove_file(&database).unwrap();
    drop(SqliteStore::open(folder.path(), "a test").unwrap());
    let conn = Connection::open(&database).unwrap();
    conn.execute_batch("CREATE VIEW mine AS SELECT 1; CREATE INDEX fast ON log (kind)").unwrap();
    drop(SqliteStore::open(folder.path(), "a test").unwrap());
    conn.execute_batch(
        "CREATE TRIGGER meddling AFTER INSERT ON log BEGIN DELETE FROM log WHERE place = new.place; END",
    )
    .unwrap();
    assert!(refused().contains("trigger meddling"), "{}", refused());
    conn.execute_batch("DROP TRIGGER meddling; DROP INDEX log_requests").unwrap();
    assert!(refused().contains("log_requests"), "{}", refused());
}

#[test]
fn a_database_that_is_replaced_under_the_server_is_noticed_at_the_next_commit() {
    for file in ["countersign.db", "countersign.db-wal"] {
        for swap in [false, true] {
            let folder = tempfile::tempdir().unwrap();
            let (mut writer, reader) = SqliteStore::open(folder.path(), "a test").unwrap();
            writer.add_team(&team("demo"), Time(1)).unwrap();
            writer.commit(&single_rows(&team("demo"), 1, 3)).unwrap();
            let path = folder.path().join(file);
            let copy = fs::read(&path).unwrap();
            // Kept under another name, so that a new file can't get its number.
            fs::rename(&path, folder.path().join("kept")).unwrap();
            if swap {
                fs::write(&path, copy).unwrap();
            }
            match writer.commit(&single_rows(&team("demo"), 4, 1)) {
                Err(CommitFault::Unknown { reason }) => assert!(reason.contains("replaced"), "{reason}"),
                other => panic!("{other:?}"),
            }
            assert!(matches!(reader.head(&team("demo")), Err(Fault::Replaced { .. })));
            assert!(writer.add_team(&team("other"), Time(1)).is_err());
        }
    }
}

/// Budget: 1.5 KB a command, indexes included, with a body and an answer of the usual size.
#[test]
fn a_command_takes_little_space() {
    let folder = tempfile::tempdir().unwrap();
    let (mut writer, reader) = SqliteStore::open(folder.path(), "a test").unwrap();
    let teams: Vec<TeamName> = (0..8).map(|number| team(&format!("team-{number}"))).collect();
    for team in &teams {
        writer.add_team(team, Time(1)).unwrap();
    }
    let per_team = 250;
    for seq in 1..=per_team {
        let batches: Vec<_> = teams
            .iter()
            .enumerate()
            .map(|(number, team)| {
                let body = format!("{{\"proposal\":\"parser\",\"text\":\"{}\"}}", "x".repeat(600));
                let id = format!("0193{seq:04x}-{number:04x}-7000-8000-000000000000");
                let mut row = requested(row(seq, "app", "approved", &body), &id);
                row.request.as_mut().unwrap().answer = format!("{{\"text\":\"{}\"}}", "y".repeat(250));
                batch(team, vec![row])
            })
            .collect();
        writer.commit(&batches).unwrap();
    }
    assert_eq!(reader.verify(&teams[3]).unwrap().seq, Seq(per_team));
    drop((writer, reader));
    let bytes = fs::metadata(folder.path().join("countersign.db")).unwrap().len();
    let each = bytes / (per_team * teams.len() as u64);
    assert!(each <= 1536, "{each} bytes a command");
}

#[test]
fn a_witness_or_a_lock_that_is_replaced_under_the_server_is_noticed_at_the_next_commit() {
    for file in ["witness", "lock"] {
        for swap in [false, true] {
            let folder = tempfile::tempdir().unwrap();
            let (mut writer, reader) = SqliteStore::open(folder.path(), "a test").unwrap();
            writer.add_team(&team("demo"), Time(1)).unwrap();
            let path = folder.path().join(file);
            let copy = fs::read(&path).unwrap();
            // Kept under another name, so that a new file can't get its number.
            fs::rename(&path, folder.path().join("kept")).unwrap();
            if swap {
                fs::write(&path, copy).unwrap();
            }
            match writer.commit(&single_rows(&team("demo"), 1, 1)) {
                Err(CommitFault::Unknown { reason }) => {
                    assert!(reason.contains(&format!("{file} was replaced")), "{reason}");
                }
                other => panic!("{other:?}"),
            }
            assert!(writer.ended().is_some_and(|why| why.contains(file)));
            // Nothing of it was stored, and who reads goes on.
            assert_eq!(reader.head(&team("demo")).unwrap().seq, Seq(0));
        }
    }
}
