//! One suite for all stores.

use std::borrow::Cow;
use std::path::Path;

use countersign::protocol::name::{Actor, Digest, Seq, TeamName};
use countersign::protocol::time::Time;
use countersign::store::memory::{MemoryStore, NextCommit};
use countersign::store::sqlite::{SqliteReader, SqliteStore};
use countersign::store::{Batch, CommitFault, Credential, Fault, Reader, Refused, Request, Row, Writer};
use rusqlite::Connection;
use tempfile::TempDir;

type Opened = Result<(Box<dyn Writer>, Box<dyn Reader>), Fault>;

/// A place where logs are kept, over restarts of the server.
trait Home {
    fn new() -> Self;
    fn open(&self) -> Opened;
    /// Runs `commit` while the store can't store anything and knows it.
    fn while_full(&self, commit: &mut dyn FnMut());
    /// Runs `commit` while the store can't know what becomes of it.
    fn while_unsure(&self, commit: &mut dyn FnMut());
}

struct Memory(MemoryStore);

impl Home for Memory {
    fn new() -> Self {
        Self(MemoryStore::new())
    }

    fn open(&self) -> Opened {
        Ok((Box::new(self.0.writer()?), Box::new(self.0.reader())))
    }

    fn while_full(&self, commit: &mut dyn FnMut()) {
        self.0.fail_next(NextCommit::NotStored);
        commit();
    }

    fn while_unsure(&self, commit: &mut dyn FnMut()) {
        self.0.fail_next(NextCommit::UnknownAndNotStored);
        commit();
    }
}

struct Sqlite(TempDir);

impl Home for Sqlite {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn open(&self) -> Opened {
        let (writer, reader) = SqliteStore::open(self.0.path(), "a test")?;
        Ok((Box::new(writer), Box::new(reader)))
    }

    /// Another program sits in a write transaction.
    fn while_full(&self, commit: &mut dyn FnMut()) {
        let other = Connection::open(self.0.path().join("countersign.db")).unwrap();
        other.execute_batch("BEGIN IMMEDIATE").unwrap();
        commit();
        other.execute_batch("ROLLBACK").unwrap();
    }

    /// The file is away, and comes back before the restart.
    fn while_unsure(&self, commit: &mut dyn FnMut()) {
        let (here, away) = (self.0.path().join("countersign.db"), self.0.path().join("away"));
        std::fs::rename(&here, &away).unwrap();
        commit();
        std::fs::rename(&away, &here).unwrap();
    }
}

pub fn team(name: &str) -> TeamName {
    name.parse().unwrap()
}

pub fn member(name: &str) -> Actor {
    Actor::Member(name.parse().unwrap())
}

pub fn row(seq: u64, actor: &str, kind: &'static str, body: &str) -> Row {
    Row {
        seq: Seq(seq),
        at: Time(1_700_000_000_000_000 + i64::try_from(seq).unwrap() * 1_500_000),
        actor: member(actor),
        kind: Cow::Borrowed(kind),
        schema: 1,
        body: body.to_owned(),
        request: None,
    }
}

pub fn requested(row: Row, id: &str) -> Row {
    let digest = Digest::of_bytes([7; 32]);
    let request = Request { id: id.to_owned(), digest, answer: format!("{{\"seq\":{}}}", row.seq) };
    Row { request: Some(request), ..row }
}

pub fn batch(team: &TeamName, rows: Vec<Row>) -> Batch {
    Batch { team: team.clone(), rows }
}

/// `count` batches of one row each, from `from` on.
pub fn single_rows(team: &TeamName, from: u64, count: u64) -> Vec<Batch> {
    let rows = (from..from + count).map(|seq| {
        let body = format!("{{\"text\":\"word number {seq} of {team}\"}}");
        requested(row(seq, "app", "noted", &body), &format!("r{seq}"))
    });
    rows.map(|row| batch(team, vec![row])).collect()
}

fn credential(number: u8, team: &TeamName, member: &str) -> Credential {
    Credential {
        hash: Digest::of_bytes([number; 32]),
        team: team.clone(),
        member: member.parse().unwrap(),
        issued_at: Time(i64::from(number)),
        revoked_at: None,
        of_page: number.is_multiple_of(2),
    }
}

fn appended_rows_read_back_as_they_were<H: Home>() {
    let home = H::new();
    let (mut writer, reader) = home.open().unwrap();
    let (demo, other) = (team("demo"), team("other"));
    writer.add_team(&demo, Time(1)).unwrap();
    writer.add_team(&other, Time(1)).unwrap();
    assert!(matches!(writer.add_team(&demo, Time(2)), Err(Fault::TeamTaken { .. })));
    assert_eq!(reader.teams().unwrap(), [demo.clone(), other.clone()]);
    assert_eq!(reader.head(&demo).unwrap().seq, Seq(0));
    assert_ne!(reader.head(&demo).unwrap().chain, reader.head(&other).unwrap().chain);

    let hostile = "{\"text\":\"`$HOME` \\\" \r\n 🦀 \u{202e}\u{0}\"}";
    let large = format!("\"{}\"", "x".repeat(64 * 1024));
    let rows = vec![
        requested(row(1, "app", "proposed", hostile), "r1"),
        row(2, "app", "noted", &large),
        Row { actor: Actor::Server, schema: u32::MAX, body: String::new(), ..row(3, "app", "noted", "") },
        Row { actor: Actor::Operator, ..row(4, "app", "noted", "{}") },
    ];
    let outcomes = writer.commit(&[
        batch(&demo, rows[..2].to_vec()),
        batch(&other, vec![row(1, "sec", "noted", "{}")]),
        batch(&demo, rows[2..].to_vec()),
        batch(&other, vec![]),
    ]);
    let heads: Vec<_> = outcomes.unwrap().into_iter().map(Result::unwrap).collect();
    assert_eq!(heads.iter().map(|head| head.seq.0).collect::<Vec<_>>(), [2, 1, 4, 1]);
    assert_eq!(heads[1], heads[3]);

    for limit in [1, 3, 100, usize::MAX] {
        assert_eq!(reader.rows(&demo, Seq(1), limit).unwrap(), rows[..limit.min(4)]);
    }
    assert_eq!(reader.rows(&demo, Seq(0), 100).unwrap(), rows);
    assert_eq!(reader.rows(&demo, Seq(3), 100).unwrap(), rows[2..]);
    assert_eq!(reader.rows(&demo, Seq(5), 100).unwrap(), []);
    assert_eq!(reader.rows(&demo, Seq(500), 100).unwrap(), []);
    assert_eq!(reader.head(&demo).unwrap(), heads[2]);
    assert_eq!(reader.verify(&demo).unwrap(), heads[2]);
    assert_eq!(reader.verify(&other).unwrap(), heads[1]);

    let nobody = team("nobody");
    assert!(matches!(reader.head(&nobody), Err(Fault::UnknownTeam { .. })));
    assert!(matches!(reader.rows(&nobody, Seq(1), 1), Err(Fault::UnknownTeam { .. })));
    assert!(matches!(reader.verify(&nobody), Err(Fault::UnknownTeam { .. })));

    drop((writer, reader));
    let (_, reader) = home.open().unwrap();
    assert_eq!(reader.rows(&demo, Seq(1), 100).unwrap(), rows);
    assert_eq!(reader.verify(&demo).unwrap(), heads[2]);
}

fn a_conflicting_batch_is_refused_while_the_others_stand<H: Home>() {
    let home = H::new();
    let (mut writer, reader) = home.open().unwrap();
    let (demo, other) = (team("demo"), team("other"));
    writer.add_team(&demo, Time(1)).unwrap();
    writer.add_team(&other, Time(1)).unwrap();
    let rows = |team: &TeamName, seq: u64| batch(team, vec![row(seq, "app", "noted", "{}")]);
    let outcomes = writer
        .commit(&[
            rows(&demo, 1),
            rows(&demo, 1),
            rows(&demo, 3),
            rows(&team("nobody"), 1),
            rows(&demo, 2),
            rows(&other, 1),
            rows(&other, 0),
        ])
        .unwrap();
    let conflict = |team: &TeamName, expected, found| {
        Err(Refused::Conflict { team: team.clone(), expected: Seq(expected), found: Seq(found) })
    };
    assert_eq!(outcomes[0].as_ref().unwrap().seq, Seq(1));
    assert_eq!(outcomes[1], conflict(&demo, 0, 1));
    assert_eq!(outcomes[2], conflict(&demo, 2, 1));
    assert_eq!(outcomes[3], Err(Refused::UnknownTeam { team: team("nobody") }));
    assert_eq!(outcomes[4].as_ref().unwrap().seq, Seq(2));
    assert_eq!(outcomes[5].as_ref().unwrap().seq, Seq(1));
    assert_eq!(outcomes[6], conflict(&other, 0, 1));
    assert_eq!(reader.verify(&demo).unwrap().seq, Seq(2));
    assert_eq!(reader.verify(&other).unwrap().seq, Seq(1));
}

fn rows_that_no_log_could_hold_are_not_stored<H: Home>() {
    let home = H::new();
    let (mut writer, reader) = home.open().unwrap();
    let demo = team("demo");
    writer.add_team(&demo, Time(1)).unwrap();
    let good = row(1, "app", "noted", "{}");
    let gap = row(3, "app", "noted", "{}");
    let early = Row { at: Time(good.at.0 - 1), ..row(2, "app", "noted", "{}") };
    for bad in [gap, early.clone()] {
        let refused = writer.commit(&[batch(&demo, vec![good.clone(), bad])]);
        assert!(matches!(refused, Err(CommitFault::NotStored { .. })));
        assert_eq!(reader.head(&demo).unwrap().seq, Seq(0));
    }
    writer.commit(&[batch(&demo, vec![good])]).unwrap()[0].as_ref().unwrap();
    assert!(matches!(writer.commit(&[batch(&demo, vec![early])]), Err(CommitFault::NotStored { .. })));
    assert_eq!(reader.verify(&demo).unwrap().seq, Seq(1));
}

fn a_request_is_found_again_after_a_restart<H: Home>() {
    let home = H::new();
    let (mut writer, reader) = home.open().unwrap();
    let (demo, other) = (team("demo"), team("other"));
    writer.add_team(&demo, Time(1)).unwrap();
    writer.add_team(&other, Time(1)).unwrap();
    let first = requested(row(1, "app", "noted", "{}"), "same");
    let again = requested(row(2, "sec", "noted", "{}"), "same");
    writer.commit(&[batch(&demo, vec![first.clone(), again.clone()])]).unwrap();
    drop((writer, reader));
    let (_, reader) = home.open().unwrap();
    let found = |team: &TeamName, actor: &str, id: &str| reader.request(team, &member(actor), id).unwrap();
    assert_eq!(found(&demo, "app", "same"), first.request);
    assert_eq!(found(&demo, "sec", "same"), again.request);
    assert_eq!(found(&demo, "app", "other"), None);
    assert_eq!(found(&demo, "arch", "same"), None);
    assert_eq!(found(&other, "app", "same"), None);
}

fn credentials_last_and_end<H: Home>() {
    let home = H::new();
    let (mut writer, reader) = home.open().unwrap();
    let (demo, other) = (team("demo"), team("other"));
    writer.add_team(&demo, Time(1)).unwrap();
    writer.add_team(&other, Time(1)).unwrap();
    let given = [
        credential(1, &demo, "app"),
        credential(2, &demo, "app"),
        credential(3, &demo, "sec"),
        credential(4, &other, "app"),
    ];
    for credential in &given {
        writer.add_credential(credential).unwrap();
    }
    assert!(writer.add_credential(&given[0]).is_err());
    assert!(matches!(
        writer.add_credential(&credential(9, &team("nobody"), "app")),
        Err(Fault::UnknownTeam { .. })
    ));
    let app = "app".parse().unwrap();
    let replaced = Credential { issued_at: Time(40), ..credential(7, &demo, "zoe") };
    writer.add_credential(&credential(6, &demo, "zoe")).unwrap();
    writer.replace_credentials(&replaced).unwrap();
    assert!(writer.replace_credentials(&replaced).is_err(), "it is stored already");
    let of_zoe = reader.credentials().unwrap().into_iter().filter(|known| known.member.as_str() == "zoe");
    let ends: Vec<_> = of_zoe.map(|known| (known.hash == replaced.hash, known.revoked_at)).collect();
    assert!(ends.contains(&(true, None)) && ends.contains(&(false, Some(Time(40)))), "{ends:?}");
    writer.add_credential(&credential(8, &demo, "app")).unwrap();
    let one = credential(8, &demo, "app").hash;
    assert!(writer.revoke_credential(&one, Time(45)).unwrap());
    assert!(!writer.revoke_credential(&one, Time(46)).unwrap(), "it is ended already");
    assert!(!writer.revoke_credential(&Digest::of_bytes([99; 32]), Time(46)).unwrap());
    let ended = reader.credentials().unwrap().into_iter().find(|known| known.hash == one).unwrap();
    assert_eq!(ended.revoked_at, Some(Time(45)));
    assert_eq!(writer.revoke_credentials(&demo, &app, Time(50)).unwrap(), 2);
    assert_eq!(writer.revoke_credentials(&demo, &app, Time(60)).unwrap(), 0);
    drop((writer, reader));
    let (_, reader) = home.open().unwrap();
    let mut expected = given.to_vec();
    expected[0].revoked_at = Some(Time(50));
    expected[1].revoked_at = Some(Time(50));
    expected.push(Credential { revoked_at: Some(Time(45)), ..credential(8, &demo, "app") });
    let mut stored = reader.credentials().unwrap();
    stored.retain(|known| known.member.as_str() != "zoe");
    assert_eq!(stored, expected);
}

fn a_backup_is_a_home_that_verifies<H: Home>() {
    let home = H::new();
    let (mut writer, reader) = home.open().unwrap();
    let demo = team("demo");
    writer.add_team(&demo, Time(1)).unwrap();
    writer.add_team(&team("quiet"), Time(1)).unwrap();
    writer.add_credential(&credential(1, &demo, "app")).unwrap();
    writer.commit(&single_rows(&demo, 1, 20)).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("copy");
    reader.backup(&copy).unwrap();
    let head = reader.head(&demo).unwrap();
    // The writer went on; the copy is as of then.
    writer.commit(&single_rows(&demo, 21, 1)).unwrap();

    assert!(matches!(reader.backup(&copy), Err(Fault::NotEmpty { .. })), "nothing is overwritten");
    assert_eq!(mode(&copy), 0o700);
    for file in ["countersign.db", "witness"] {
        assert_eq!(mode(&copy.join(file)), 0o600, "{file}");
    }
    assert_eq!(SqliteReader::open_read_only(&copy).unwrap().verify(&demo).unwrap(), head);
    let (mut writer, copied) = SqliteStore::open(&copy, "a test").unwrap();
    assert_eq!(copied.rows(&demo, Seq(1), 100).unwrap(), reader.rows(&demo, Seq(1), 20).unwrap());
    assert_eq!(copied.credentials().unwrap(), reader.credentials().unwrap());
    assert_eq!(copied.teams().unwrap(), reader.teams().unwrap());
    writer.commit(&single_rows(&demo, 21, 1)).unwrap()[0].as_ref().unwrap();
    assert_eq!(copied.verify(&demo).unwrap(), reader.verify(&demo).unwrap());
}

fn a_commit_that_was_not_stored_leaves_nothing_and_the_next_one_works<H: Home>() {
    let home = H::new();
    let (mut writer, reader) = home.open().unwrap();
    let demo = team("demo");
    writer.add_team(&demo, Time(1)).unwrap();
    writer.commit(&single_rows(&demo, 1, 2)).unwrap();
    home.while_full(&mut || {
        let refused = writer.commit(&single_rows(&demo, 3, 2));
        assert!(matches!(refused, Err(CommitFault::NotStored { .. })), "{refused:?}");
        assert_eq!(reader.head(&demo).unwrap().seq, Seq(2));
        assert_eq!(reader.rows(&demo, Seq(1), 9).unwrap().len(), 2);
    });
    writer.commit(&single_rows(&demo, 3, 2)).unwrap()[0].as_ref().unwrap();
    assert_eq!(reader.verify(&demo).unwrap().seq, Seq(4));
    drop((writer, reader));
    assert_eq!(home.open().unwrap().1.verify(&demo).unwrap().seq, Seq(4));
}

fn an_unknown_outcome_ends_the_writer_and_is_settled_by_opening_again<H: Home>() {
    let home = H::new();
    let (mut writer, reader) = home.open().unwrap();
    let demo = team("demo");
    writer.add_team(&demo, Time(1)).unwrap();
    writer.commit(&single_rows(&demo, 1, 1)).unwrap();
    home.while_unsure(&mut || {
        assert!(matches!(writer.commit(&single_rows(&demo, 2, 1)), Err(CommitFault::Unknown { .. })));
    });
    assert!(matches!(writer.commit(&single_rows(&demo, 2, 1)), Err(CommitFault::Unknown { .. })));
    drop((writer, reader));
    let (mut writer, reader) = home.open().unwrap();
    assert_eq!(reader.request(&demo, &member("app"), "r2").unwrap(), None);
    writer.commit(&single_rows(&demo, 2, 1)).unwrap()[0].as_ref().unwrap();
    assert!(reader.request(&demo, &member("app"), "r2").unwrap().is_some());
    assert_eq!(reader.verify(&demo).unwrap().seq, Seq(2));
}

macro_rules! for_all_stores {
    ($($property:ident)*) => {
        mod memory {
            $(#[test] fn $property() { super::$property::<super::Memory>(); })*
        }
        mod sqlite {
            $(#[test] fn $property() { super::$property::<super::Sqlite>(); })*
        }
    };
}

for_all_stores! {
    appended_rows_read_back_as_they_were
    a_conflicting_batch_is_refused_while_the_others_stand
    rows_that_no_log_could_hold_are_not_stored
    a_request_is_found_again_after_a_restart
    credentials_last_and_end
    a_backup_is_a_home_that_verifies
    a_commit_that_was_not_stored_leaves_nothing_and_the_next_one_works
    an_unknown_outcome_ends_the_writer_and_is_settled_by_opening_again
}

/// A fsync that fails after the rows were written: they are there after all.
#[test]
fn in_memory_an_unknown_outcome_can_turn_out_to_be_stored() {
    let home = MemoryStore::new();
    let mut writer = home.writer().unwrap();
    let demo = team("demo");
    writer.add_team(&demo, Time(1)).unwrap();
    home.fail_next(NextCommit::UnknownAndStored);
    assert!(matches!(writer.commit(&single_rows(&demo, 1, 1)), Err(CommitFault::Unknown { .. })));
    let mut writer = home.writer().unwrap();
    assert!(home.reader().request(&demo, &member("app"), "r1").unwrap().is_some());
    let outcome = &writer.commit(&single_rows(&demo, 1, 1)).unwrap()[0];
    assert!(matches!(outcome, Err(Refused::Conflict { found: Seq(1), .. })), "{outcome:?}");
}

#[test]
fn in_memory_damage_and_a_cut_tail_are_refused_by_place() {
    let demo = team("demo");
    let filled = || {
        let home = MemoryStore::new();
        let mut writer = home.writer().unwrap();
        writer.add_team(&demo, Time(1)).unwrap();
        writer.commit(&single_rows(&demo, 1, 5)).unwrap();
        home
    };
    let home = filled();
    assert!(home.flip_bit(&demo, Seq(3)) && !home.flip_bit(&demo, Seq(6)));
    assert!(matches!(home.reader().verify(&demo), Err(Fault::Damaged { seq: Seq(3), .. })));
    assert!(matches!(home.reader().rows(&demo, Seq(1), 9), Err(Fault::Damaged { seq: Seq(3), .. })));
    assert_eq!(home.reader().rows(&demo, Seq(4), 9).unwrap().len(), 2);
    let home = filled();
    assert!(home.cut(&demo, Seq(4)));
    let cut = |fault| matches!(fault, Some(Fault::Cut { found: Seq(4), witnessed: Seq(5), .. }));
    assert!(cut(home.reader().verify(&demo).err()));
    assert!(cut(home.writer().err()));
}

/// The files that a killed server leaves behind.
pub fn copy_of(folder: &Path) -> TempDir {
    let copy = tempfile::tempdir().unwrap();
    for file in ["countersign.db", "countersign.db-wal", "witness"] {
        if folder.join(file).exists() {
            std::fs::copy(folder.join(file), copy.path().join(file)).unwrap();
        }
    }
    copy
}

pub fn mode(path: &Path) -> u32 {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}
