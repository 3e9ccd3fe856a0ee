//! The one who appends: one transaction a commit, durable before it returns.

use std::collections::{BTreeSet, HashMap};

use rusqlite::{Connection, ErrorCode};

use super::connection::{self, failed, words};
use super::home::{Beside, Home, Identity};
use super::lock::HomeLock;
use super::witness::Witness;
use super::{credentials, log};
use crate::protocol::name::{Digest, MemberName, Seq, TeamName};
use crate::protocol::time::Time;
use crate::store::chain::{self, Extension, Tail};
use crate::store::{Batch, CommitFault, Credential, Fault, Head, Refused, Writer};

/// How many pages a WAL may have before it is copied into the database. About: it is counted by what is
/// stored.
const WAL_PAGES_MAX: usize = 1_000;

const PAGE_BYTES: usize = 4_096;

/// What a row takes beside its texts, in pages: one of the table, one of the index, one now and then for a
/// split.
const ROW_PAGES: usize = 2;

/// The writer of a home folder; there is one. Dropping it lets the folder go.
pub struct SqliteWriter {
    // In the order in which they are let go: the lock last.
    conn: Connection,
    witness: Witness,
    lock: HomeLock,
    home: Home,
    opened: Identity,
    beside: Beside,
    /// Pages that the WAL may have by now.
    wal_pages: usize,
    /// Where each log ends, so that a commit reads nothing.
    logs: HashMap<TeamName, Log>,
    /// Logs whose end is stored and not yet witnessed.
    unwitnessed: BTreeSet<TeamName>,
    /// Why nothing more may be written: an outcome that nobody knows.
    ended: Option<String>,
}

#[derive(Clone, Copy, Debug)]
struct Log {
    id: i64,
    tail: Tail,
}

impl SqliteWriter {
    pub(super) fn new(
        home: Home,
        conn: Connection,
        tails: Vec<(i64, TeamName, Tail)>,
        witness: Witness,
        lock: HomeLock,
    ) -> Result<Self, Fault> {
        let (opened, beside) = (home.identity()?, home.beside());
        let unwitnessed = tails.iter().map(|(_, team, _)| team.clone()).collect();
        let logs = tails.into_iter().map(|(id, team, tail)| (team, Log { id, tail })).collect();
        let mut writer =
            Self { conn, witness, lock, home, opened, beside, wal_pages: 0, logs, unwitnessed, ended: None };
        writer.bear_witness()?;
        writer.witness.sync().map_err(|error| writer.witness_fault(&error))?;
        Ok(writer)
    }

    /// Changes what a second server is told: the address, once the server has one.
    pub fn set_holder(&self, holder: &str) -> Result<(), Fault> {
        self.lock.set_holder(holder)
    }

    /// Writes the ends that the witness doesn't have yet.
    fn bear_witness(&mut self) -> Result<(), Fault> {
        while let Some(team) = self.unwitnessed.first() {
            let written = self.witness.write(team, &self.logs[team].tail);
            written.map_err(|error| self.witness_fault(&error))?;
            self.unwitnessed.pop_first();
        }
        if self.witness.owes_sync()
            && let Err(error) = self.witness.sync()
        {
            let fault = self.witness_fault(&error);
            return Err(self.unsynced(fault));
        }
        Ok(())
    }

    /// What is true after a sync that failed: any line before it may be lost, and asking again would be
    /// told that all is well.
    fn unsynced(&mut self, fault: Fault) -> Fault {
        self.ended = Some(fault.to_string());
        fault
    }

    /// Copies the WAL where it has grown long. What was stored stands; but after a sync that failed nothing
    /// more is.
    fn shorten_wal(&mut self, batches: &[Batch]) {
        let texts = |row: &crate::store::Row| {
            row.body.len() + row.request.as_ref().map_or(0, |request| request.answer.len())
        };
        let rows = batches.iter().flat_map(|batch| &batch.rows);
        self.wal_pages += rows.map(|row| ROW_PAGES + texts(row) / PAGE_BYTES).sum::<usize>();
        if self.wal_pages < WAL_PAGES_MAX {
            return;
        }
        self.wal_pages = 0;
        let copied = connection::checkpoint_passively(&self.conn);
        self.see_checkpoint(&copied);
    }

    /// Readers may delay a checkpoint. A disk that failed in it ends the writer.
    fn see_checkpoint(&mut self, copied: &rusqlite::Result<()>) {
        let Err(error) = copied else { return };
        let fault = connection::not_copied(error);
        if error.sqlite_error_code() == Some(ErrorCode::SystemIoFailure) {
            tracing::error!(%fault, "what was stored is in the write-ahead log alone");
            self.unsynced(fault);
        } else {
            tracing::warn!(%fault, "what was stored is in the write-ahead log alone");
        }
    }

    fn witness_fault(&self, error: &std::io::Error) -> Fault {
        super::witness::fault(self.witness.path(), format!("writing it: {error}"))
    }

    /// Refuses to write after an unknown outcome, and to a file that nobody will find again.
    fn check_alive(&mut self) -> Result<(), Fault> {
        if let Some(reason) = &self.ended {
            return Err(Fault::Failed { what: reason.clone() });
        }
        let found = self.home.check_identity(&mut self.opened);
        let found = found.and_then(|()| self.home.check_beside(&self.beside));
        if let Err(fault) = &found {
            self.ended = Some(fault.to_string());
        }
        found
    }

    /// Inserts what was planned. A batch that another writer overtook is refused, and so are those of
    /// its team after it; says where such logs end in truth.
    fn insert_all(
        &self,
        batches: &[Batch],
        planned: &mut [Result<Extension, Refused>],
    ) -> Result<HashMap<TeamName, Tail>, rusqlite::Error> {
        let mut overtaken: HashMap<TeamName, Tail> = HashMap::new();
        for (batch, plan) in batches.iter().zip(planned) {
            let Ok(extension) = plan else { continue };
            let team = &batch.team;
            let Some(first) = batch.rows.first() else { continue };
            if !overtaken.contains_key(team) {
                let id = self.logs[team].id;
                self.run("SAVEPOINT batch")?;
                let inserted = batch
                    .rows
                    .iter()
                    .zip(&extension.links)
                    .try_for_each(|(row, link)| log::insert(&self.conn, id, row, link));
                match inserted {
                    Ok(()) => {
                        self.run("RELEASE batch")?;
                        continue;
                    }
                    Err(error) if error.sqlite_error_code() == Some(ErrorCode::ConstraintViolation) => {
                        self.run("ROLLBACK TO batch")?;
                        self.run("RELEASE batch")?;
                        let tail = log::tail(&self.conn, id, team).map_err(|_| error)?;
                        overtaken.insert(team.clone(), tail);
                    }
                    Err(error) => return Err(error),
                }
            }
            let expected = Seq(first.seq.0 - 1);
            *plan = Err(Refused::Conflict { team: team.clone(), expected, found: overtaken[team].seq });
        }
        Ok(overtaken)
    }

    fn run(&self, sql: &str) -> rusqlite::Result<()> {
        self.conn.prepare_cached(sql)?.execute([]).map(drop)
    }

    /// What a fault before the commit took place comes to: nothing was stored, once the transaction is
    /// gone.
    fn roll_back(&mut self, error: &rusqlite::Error) -> CommitFault {
        let reason = words(error);
        // SQLite ends the transaction by itself after some faults.
        if !self.conn.is_autocommit() && self.run("ROLLBACK").is_err() {
            return self.end(format!("{reason}, and the transaction could not be taken back"));
        }
        CommitFault::NotStored { reason }
    }

    /// What a fault of COMMIT itself comes to. Only a full disk is known not to have stored anything:
    /// SQLite reports it for a write, never for a sync, and writes the frame that makes a transaction
    /// count last of all, so that one is missing or torn, and ignored at every later start. (It takes
    /// the transaction back by itself then.) After anything else the rows may be there.
    fn judge_commit(&mut self, error: &rusqlite::Error) -> CommitFault {
        match error.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => self.roll_back(error),
            _ => self.end(words(error)),
        }
    }

    fn end(&mut self, reason: String) -> CommitFault {
        self.ended = Some(reason.clone());
        CommitFault::Unknown { reason }
    }

    /// Changes what stands beside the logs, in a transaction of its own.
    fn change<T>(
        &mut self,
        doing: &str,
        change: impl FnOnce(&Connection) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        self.check_alive()?;
        self.run("BEGIN IMMEDIATE").map_err(|error| failed(doing, &error))?;
        let changed = match change(&self.conn) {
            Ok(changed) => changed,
            Err(fault) => {
                if !self.conn.is_autocommit() && self.run("ROLLBACK").is_err() {
                    self.ended = Some(fault.to_string());
                }
                return Err(fault);
            }
        };
        if let Err(error) = self.run("COMMIT") {
            // Whether it ends the writer matters here; the caller is told the same either way.
            let _ = self.judge_commit(&error);
            return Err(failed(doing, &error));
        }
        // The witness does not cover what stands beside the logs, and a WAL that is cut short would
        // bring a revoked credential back. So it doesn't stay in the WAL; readers may delay that.
        let copied = connection::checkpoint(&self.conn);
        self.see_checkpoint(&copied);
        Ok(changed)
    }
}

impl Writer for SqliteWriter {
    fn commit(&mut self, batches: &[Batch]) -> Result<Vec<Result<Head, Refused>>, CommitFault> {
        self.check_alive().map_err(|fault| CommitFault::Unknown { reason: fault.to_string() })?;
        // A log must not run away from its witness: what is still owed to it comes first.
        self.bear_witness().map_err(|fault| CommitFault::NotStored { reason: fault.to_string() })?;

        let mut planned = chain::plan(batches, |team| self.logs.get(team).map(|log| log.tail))?;
        self.run("BEGIN IMMEDIATE").map_err(|error| CommitFault::NotStored { reason: words(&error) })?;
        let overtaken = match self.insert_all(batches, &mut planned) {
            Ok(overtaken) => overtaken,
            Err(error) => return Err(self.roll_back(&error)),
        };
        if let Err(error) = self.run("COMMIT") {
            return Err(self.judge_commit(&error));
        }

        let mut outcomes = Vec::with_capacity(planned.len());
        for (batch, plan) in batches.iter().zip(planned) {
            outcomes.push(plan.map(|Extension { tail, .. }| {
                self.set_tail(&batch.team, tail);
                tail.head()
            }));
        }
        for (team, tail) in overtaken {
            self.set_tail(&team, tail);
        }
        // Stored in a file that nobody will find again is not stored.
        self.check_alive().map_err(|fault| CommitFault::Unknown { reason: fault.to_string() })?;
        // The commit stands whatever becomes of its witness; the next one waits for it.
        self.witness.committed();
        if let Err(fault) = self.bear_witness() {
            tracing::error!(%fault, "the heads that were just stored are not witnessed yet");
        }
        self.shorten_wal(batches);
        Ok(outcomes)
    }

    fn ended(&self) -> Option<&str> {
        self.ended.as_deref()
    }

    fn add_team(&mut self, team: &TeamName, at: Time) -> Result<(), Fault> {
        if self.logs.contains_key(team) {
            return Err(Fault::TeamTaken { team: team.clone() });
        }
        let id = self.change("adding a team", |conn| {
            conn.execute(
                "INSERT INTO teams (name, created_at) VALUES (?1, ?2)",
                rusqlite::params![team.as_str(), at.0],
            )
            .map_err(|error| failed("adding a team", &error))?;
            Ok(conn.last_insert_rowid())
        })?;
        self.logs.insert(team.clone(), Log { id, tail: Tail::empty(team) });
        self.unwitnessed.insert(team.clone());
        self.bear_witness()
    }

    fn add_credential(&mut self, credential: &Credential) -> Result<(), Fault> {
        self.change("storing a credential", |conn| credentials::insert(conn, credential))
    }

    fn replace_credentials(&mut self, credential: &Credential) -> Result<(), Fault> {
        self.change("replacing credentials", |conn| {
            credentials::revoke(conn, &credential.team, &credential.member, credential.issued_at)?;
            credentials::insert(conn, credential)
        })
    }

    fn revoke_credentials(&mut self, team: &TeamName, member: &MemberName, at: Time) -> Result<usize, Fault> {
        self.change("ending credentials", |conn| credentials::revoke(conn, team, member, at))
    }

    fn revoke_credential(&mut self, hash: &Digest, at: Time) -> Result<bool, Fault> {
        self.change("ending a credential", |conn| credentials::revoke_one(conn, hash, at))
    }
}

impl SqliteWriter {
    fn set_tail(&mut self, team: &TeamName, tail: Tail) {
        let log = self.logs.get_mut(team).expect("only known teams are planned for");
        if log.tail != tail {
            log.tail = tail;
            self.unwitnessed.insert(team.clone());
        }
    }
}

impl Drop for SqliteWriter {
    fn drop(&mut self) {
        // After an unknown outcome nothing is tried again: the next start looks afresh. Otherwise this
        // only makes that start shorter, so that a fault of it is no matter.
        if self.check_alive().is_ok() {
            let _ = self.bear_witness();
            let _ = self.witness.sync();
            let _ = connection::checkpoint(&self.conn);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use super::*;
    use crate::protocol::name::Actor;
    use crate::store::sqlite::{SqliteReader, SqliteStore};
    use crate::store::{Reader, Row};

    fn open(home: &std::path::Path) -> (SqliteWriter, SqliteReader, TeamName) {
        let (mut writer, reader) = SqliteStore::open(home, "a test").unwrap();
        let team: TeamName = "demo".parse().unwrap();
        if writer.logs.is_empty() {
            writer.add_team(&team, Time(0)).unwrap();
        }
        (writer, reader, team)
    }

    fn batch(team: &TeamName, seq: u64, body_bytes: usize) -> Batch {
        let row = Row {
            seq: Seq(seq),
            at: Time(1),
            actor: Actor::Server,
            kind: Cow::Borrowed("noted"),
            schema: 1,
            body: format!("\"{}\"", "x".repeat(body_bytes)),
            request: None,
        };
        Batch { team: team.clone(), rows: vec![row] }
    }

    fn limit_pages(writer: &SqliteWriter, pages: i64) {
        writer.conn.query_row(&format!("PRAGMA max_page_count = {pages}"), [], |_| Ok(())).unwrap();
    }

    #[test]
    fn a_full_database_stores_nothing_reads_on_and_works_when_there_is_room() {
        let folder = tempfile::tempdir().unwrap();
        let (mut writer, reader, team) = open(folder.path());
        writer.commit(&[batch(&team, 1, 10)]).unwrap();
        limit_pages(&writer, 1);
        match writer.commit(&[batch(&team, 2, 100_000)]) {
            Err(CommitFault::NotStored { reason }) => assert!(reason.contains("full"), "{reason}"),
            other => panic!("{other:?}"),
        }
        assert_eq!(reader.verify(&team).unwrap().seq, Seq(1));
        limit_pages(&writer, 1_000_000);
        writer.commit(&[batch(&team, 2, 100_000)]).unwrap()[0].as_ref().unwrap();
        assert_eq!(reader.verify(&team).unwrap().seq, Seq(2));
    }

    #[test]
    fn a_writer_that_was_overtaken_refuses_that_batch_alone_and_then_follows() {
        let folder = tempfile::tempdir().unwrap();
        let (mut writer, reader, team) = open(folder.path());
        let other: TeamName = "other".parse().unwrap();
        writer.add_team(&other, Time(0)).unwrap();
        // What a second server does on a file system that does not keep locks.
        let overtaking = batch(&team, 1, 10);
        let link = Tail::empty(&team).link.next(&team, &overtaking.rows[0]);
        let conn = connection::read_write(&folder.path().join("countersign.db")).unwrap();
        log::insert(&conn, writer.logs[&team].id, &overtaking.rows[0], &link).unwrap();
        drop(conn);
        let batches = [batch(&team, 1, 20), batch(&other, 1, 20), batch(&team, 2, 20)];
        let outcomes = writer.commit(&batches).unwrap();
        let conflict = |expected| Err(Refused::Conflict { team: team.clone(), expected, found: Seq(1) });
        assert_eq!(outcomes[0], conflict(Seq(0)));
        assert_eq!(outcomes[1].as_ref().unwrap().seq, Seq(1));
        assert_eq!(outcomes[2], conflict(Seq(1)));
        assert_eq!(reader.rows(&team, Seq(1), 9).unwrap(), overtaking.rows);
        writer.commit(&[batch(&team, 2, 20)]).unwrap()[0].as_ref().unwrap();
        assert_eq!(reader.verify(&team).unwrap().seq, Seq(2));
    }

    #[test]
    fn a_witness_that_fell_behind_is_caught_up_and_one_with_another_chain_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let (mut writer, _, team) = open(folder.path());
        writer.commit(&[batch(&team, 1, 10)]).unwrap();
        let behind = std::fs::read(folder.path().join("witness")).unwrap();
        writer.commit(&[batch(&team, 2, 10)]).unwrap();
        writer.commit(&[batch(&team, 3, 10)]).unwrap();
        drop(writer);
        std::fs::write(folder.path().join("witness"), &behind).unwrap();
        let (writer, reader, _) = open(folder.path());
        assert_eq!(reader.verify(&team).unwrap().seq, Seq(3));
        assert_ne!(std::fs::read(folder.path().join("witness")).unwrap(), behind);
        drop(writer);
        let foreign = Tail { link: chain::Link::from([9; 32]), seq: Seq(2), at: Time(0) };
        Witness::create(&folder.path().join("witness"), &[(team.clone(), foreign)]).unwrap();
        match SqliteStore::open(folder.path(), "a test").map(drop) {
            Err(Fault::Damaged { seq, .. }) => assert_eq!(seq, Seq(2)),
            other => panic!("{other:?}"),
        }
    }
}
