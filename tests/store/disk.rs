//! What a failing disk does, with the system's own calls failing under SQLite.

use std::fs;
use std::path::Path;
use std::process::Command;

use countersign::protocol::name::Seq;
use countersign::protocol::time::Time;
use countersign::store::sqlite::SqliteStore;
use countersign::store::{CommitFault, Reader, Writer};

use super::suite::{copy_of, member, single_rows, team};

/// Runs that test again in a process whose calls can be made to fail: by what `child` writes into the
/// file that it is given.
fn with_failing_calls(test: &str, child: fn(folder: &Path, fault: &Path)) {
    if let (Some(folder), Some(fault)) = (std::env::var_os("STORE_FOLDER"), std::env::var_os("STORE_FAULT")) {
        child(Path::new(&folder), Path::new(&fault));
        return println!("done to the end");
    }
    let folder = tempfile::tempdir().unwrap();
    let library = folder.path().join("faults.so");
    // A C compiler is there: SQLite was built with it.
    let built = Command::new("cc")
        .args(["-shared", "-fPIC", "-o"])
        .arg(&library)
        .args([concat!(env!("CARGO_MANIFEST_DIR"), "/tests/store/faults.c"), "-ldl"])
        .status();
    assert!(built.is_ok_and(|status| status.success()), "needs a C compiler: apt-get install gcc libc6-dev");
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "--nocapture", test])
        .env("LD_PRELOAD", &library)
        .env("STORE_FOLDER", folder.path().join("home"))
        .env("STORE_FAULT", folder.path().join("fault"))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&child.stdout);
    let why = String::from_utf8_lossy(&child.stderr);
    assert!(child.status.success() && said.contains("done to the end"), "{said}{why}");
}

#[test]
fn a_full_disk_stores_nothing_reads_go_on_and_space_that_returns_is_used() {
    with_failing_calls(
        "disk::a_full_disk_stores_nothing_reads_go_on_and_space_that_returns_is_used",
        |folder, fault| {
            let demo = team("demo");
            let (mut writer, reader) = SqliteStore::open(folder, "a test").unwrap();
            writer.add_team(&demo, Time(1)).unwrap();
            writer.commit(&single_rows(&demo, 1, 3)).unwrap();
            fs::write(fault, "full").unwrap();
            for _ in 0..2 {
                match writer.commit(&single_rows(&demo, 4, 2)) {
                    Err(CommitFault::NotStored { reason }) => assert!(reason.contains("full"), "{reason}"),
                    other => panic!("{other:?}"),
                }
                assert_eq!(reader.verify(&demo).unwrap().seq, Seq(3));
            }
            fs::remove_file(fault).unwrap();
            // Killed now, it would find nothing of it either.
            let killed = copy_of(folder);
            let (_, found) = SqliteStore::open(killed.path(), "a test").unwrap();
            assert_eq!(found.verify(&demo).unwrap().seq, Seq(3));

            writer.commit(&single_rows(&demo, 4, 2)).unwrap()[1].as_ref().unwrap();
            assert_eq!(reader.verify(&demo).unwrap().seq, Seq(5));
            drop((writer, reader));
            let (_, reader) = SqliteStore::open(folder, "a test").unwrap();
            assert_eq!(reader.verify(&demo).unwrap().seq, Seq(5));
        },
    );
}

#[test]
fn a_commit_whose_fsync_failed_is_unknown_and_its_request_settles_it() {
    with_failing_calls(
        "disk::a_commit_whose_fsync_failed_is_unknown_and_its_request_settles_it",
        |folder, fault| {
            let demo = team("demo");
            let (mut writer, reader) = SqliteStore::open(folder, "a test").unwrap();
            writer.add_team(&demo, Time(1)).unwrap();
            writer.commit(&single_rows(&demo, 1, 3)).unwrap();
            fs::write(fault, "eio").unwrap();
            assert!(matches!(writer.commit(&single_rows(&demo, 4, 1)), Err(CommitFault::Unknown { .. })));
            fs::remove_file(fault).unwrap();
            // The disk works again, and yet nothing is tried again by this writer.
            assert!(matches!(writer.commit(&single_rows(&demo, 4, 1)), Err(CommitFault::Unknown { .. })));
            drop((writer, reader));
            // This time it was stored: the row is there after all, and answers its request.
            let (mut writer, reader) = SqliteStore::open(folder, "a test").unwrap();
            assert!(reader.request(&demo, &member("app"), "r4").unwrap().is_some());
            assert_eq!(reader.verify(&demo).unwrap().seq, Seq(4));
            writer.commit(&single_rows(&demo, 5, 1)).unwrap()[0].as_ref().unwrap();
        },
    );
}

#[test]
fn a_checkpoint_whose_fsync_failed_ends_the_writer_and_what_it_stored_is_there() {
    with_failing_calls(
        "disk::a_checkpoint_whose_fsync_failed_ends_the_writer_and_what_it_stored_is_there",
        |folder, fault| {
            let demo = team("demo");
            let (mut writer, reader) = SqliteStore::open(folder, "a test").unwrap();
            writer.add_team(&demo, Time(1)).unwrap();
            fs::write(fault, "eio-db").unwrap();
            // A commit touches the WAL alone, so that it goes well, until the WAL is to be copied.
            let mut stored = 0;
            while writer.ended().is_none() {
                stored += 1;
                writer.commit(&single_rows(&demo, stored, 1)).unwrap()[0].as_ref().unwrap();
                let wal = fs::metadata(folder.join("countersign.db-wal")).unwrap().len();
                assert!(wal < 16 << 20, "after {stored} rows {wal} bytes were never copied");
            }
            assert!(
                writer.ended().is_some_and(|why| why.contains("write-ahead log")),
                "{:?}",
                writer.ended()
            );
            fs::remove_file(fault).unwrap();
            // The disk works again, and yet nothing is tried again by this writer.
            let next = single_rows(&demo, stored + 1, 1);
            assert!(matches!(writer.commit(&next), Err(CommitFault::Unknown { .. })));
            drop((writer, reader));
            let (_writer, reader) = SqliteStore::open(folder, "a test").unwrap();
            assert_eq!(reader.verify(&demo).unwrap().seq, Seq(stored));
        },
    );
}
