//! The store in memory: the same promises as [`super::sqlite`] but for the disk, with faults on demand.
//!
//! A [`MemoryStore`] is the folder that a server would open: it outlives the writers and readers
//! that are made from it, so dropping a writer and asking for another is a restart.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};

use super::chain::{self, Link, Tail};
use super::snapshot::{self, Snapshot, Snapshots};
use super::sqlite::{SqliteStore, home};
use super::{Batch, CommitFault, Credential, Fault, Head, Reader, Refused, Request, Row, Writer};
use crate::protocol::name::{Actor, Digest, MemberName, Seq, TeamName};
use crate::protocol::time::Time;

/// What the next commit comes to, instead of success.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextCommit {
    /// [`CommitFault::NotStored`]: as on a full disk. The commit after it works.
    NotStored,
    /// [`CommitFault::Unknown`], and yet the rows are there: as when the fsync of a commit fails.
    UnknownAndStored,
    /// [`CommitFault::Unknown`], and nothing is there.
    UnknownAndNotStored,
}

/// Logs and credentials in memory, shared by all clones.
#[derive(Clone, Default)]
pub struct MemoryStore {
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    teams: BTreeMap<TeamName, Log>,
    credentials: Vec<Credential>,
    snapshots: BTreeMap<TeamName, Vec<u8>>,
    /// After how many rows a snapshot is worth its while; never, where nobody asked for them.
    rows_between: Option<u64>,
    next_commit: Option<NextCommit>,
    /// Counts the writers: those but the newest were superseded.
    writers: u64,
    /// Whether the newest writer met an unknown outcome and must not go on.
    ended: bool,
}

struct Log {
    created_at: Time,
    rows: Vec<(Row, Link)>,
    tail: Tail,
    /// What a server would keep outside the database.
    witnessed: Tail,
}

impl MemoryStore {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }

    /// Has snapshots kept whenever a log has grown by so many rows.
    pub fn keep_snapshots(&self, rows_between: u64) {
        self.locked().rows_between = Some(rows_between);
    }

    /// Changes the kept snapshot of that team, as a failing disk or a person does. Says whether there was one.
    pub fn change_snapshot(&self, team: &TeamName, change: impl FnOnce(&mut Vec<u8>)) -> bool {
        self.locked().snapshots.get_mut(team).map(change).is_some()
    }

    /// Opens it for writing, as a server does that starts: what the last commit came to is settled,
    /// and a log that was cut or changed below its witnessed head is refused.
    pub fn writer(&self) -> Result<MemoryWriter, Fault> {
        let mut state = self.locked();
        for (team, log) in &mut state.teams {
            log.check_witness(team)?;
            log.tail = log.last(team);
            log.witnessed = log.tail;
        }
        state.writers += 1;
        state.ended = false;
        Ok(MemoryWriter { store: self.clone(), number: state.writers })
    }

    /// Opens it for reading.
    pub fn reader(&self) -> MemoryReader {
        MemoryReader { store: self.clone() }
    }

    /// Decides what the next commit comes to.
    pub fn fail_next(&self, next: NextCommit) {
        self.locked().next_commit = Some(next);
    }

    /// Turns one bit in the body of that row, as a failing disk does. Says whether it did.
    pub fn flip_bit(&self, team: &TeamName, seq: Seq) -> bool {
        self.change(team, |log| {
            let Some((row, _)) = log.rows.iter_mut().find(|(row, _)| row.seq == seq) else { return false };
            // The lowest bit of an ASCII character, so that the text stays a text.
            let Some(last) = row.body.pop().and_then(|last| u8::try_from(last).ok()) else { return false };
            row.body.push(char::from(last ^ 1));
            true
        })
    }

    /// Cuts off every row of that team after `last`, as a lost tail of a file does. Says whether
    /// there were any.
    pub fn cut(&self, team: &TeamName, last: Seq) -> bool {
        self.change(team, |log| {
            let before = log.rows.len();
            log.rows.retain(|(row, _)| row.seq <= last);
            log.rows.len() < before
        })
    }

    fn change(&self, team: &TeamName, change: impl FnOnce(&mut Log) -> bool) -> bool {
        self.locked().teams.get_mut(team).is_some_and(change)
    }

    fn locked(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nothing panics while it holds the lock")
    }
}

impl Log {
    /// Where the rows end, which is what a reader sees.
    fn last(&self, team: &TeamName) -> Tail {
        let last = self.rows.last();
        last.map_or_else(|| Tail::empty(team), |(row, link)| Tail { seq: row.seq, at: row.at, link: *link })
    }

    fn check_witness(&self, team: &TeamName) -> Result<(), Fault> {
        let Tail { seq, link, .. } = self.witnessed;
        let found = self.last(team).seq;
        if found < seq {
            return Err(Fault::Cut { team: team.clone(), found, witnessed: seq });
        }
        match self.rows.iter().find(|(row, _)| row.seq == seq) {
            Some((_, stored)) if *stored != link => Err(Fault::Damaged {
                team: team.clone(),
                seq,
                what: "the row's chain is not the one that was witnessed".to_owned(),
            }),
            _ => Ok(()),
        }
    }
}

/// The one who appends to a [`MemoryStore`].
pub struct MemoryWriter {
    store: MemoryStore,
    number: u64,
}

impl Writer for MemoryWriter {
    fn commit(&mut self, batches: &[Batch]) -> Result<Vec<Result<Head, Refused>>, CommitFault> {
        let mut state = self.store.locked();
        if state.ended || state.writers != self.number {
            let reason = "an earlier commit's outcome is unknown, or another writer was opened since";
            return Err(CommitFault::Unknown { reason: reason.to_owned() });
        }
        let next = state.next_commit.take();
        if next == Some(NextCommit::NotStored) {
            return Err(CommitFault::NotStored { reason: "the disk is full".to_owned() });
        }
        let planned = chain::plan(batches, |team| state.teams.get(team).map(|log| log.tail))?;
        state.ended = next.is_some();
        if next != Some(NextCommit::UnknownAndNotStored) {
            for (batch, extension) in batches.iter().zip(&planned) {
                let Ok(extension) = extension else { continue };
                let log = state.teams.get_mut(&batch.team).expect("the plan found the team");
                log.rows.extend(batch.rows.iter().cloned().zip(extension.links.iter().copied()));
                log.tail = extension.tail;
                if next.is_none() {
                    // The witness never runs ahead of what is known to be stored.
                    log.witnessed = log.tail;
                }
            }
        }
        if next.is_some() {
            let reason = "the disk reported a fault while it wrote the commit";
            return Err(CommitFault::Unknown { reason: reason.to_owned() });
        }
        Ok(planned.into_iter().map(|planned| planned.map(|extension| extension.tail.head())).collect())
    }

    fn add_team(&mut self, team: &TeamName, at: Time) -> Result<(), Fault> {
        let mut state = self.store.locked();
        if state.teams.contains_key(team) {
            return Err(Fault::TeamTaken { team: team.clone() });
        }
        let tail = Tail::empty(team);
        state.teams.insert(team.clone(), Log { created_at: at, rows: Vec::new(), tail, witnessed: tail });
        Ok(())
    }

    fn add_credential(&mut self, credential: &Credential) -> Result<(), Fault> {
        let mut state = self.store.locked();
        if !state.teams.contains_key(&credential.team) {
            return Err(Fault::UnknownTeam { team: credential.team.clone() });
        }
        if state.credentials.iter().any(|known| known.hash == credential.hash) {
            return Err(Fault::Failed { what: "the credential is stored already".to_owned() });
        }
        state.credentials.push(credential.clone());
        Ok(())
    }

    fn replace_credentials(&mut self, credential: &Credential) -> Result<(), Fault> {
        // First what can be refused.
        self.add_credential(credential)?;
        let mut state = self.store.locked();
        let before = state.credentials.iter_mut().filter(|known| {
            let same = known.team == credential.team && known.member == credential.member;
            same && known.revoked_at.is_none() && known.hash != credential.hash
        });
        before.for_each(|known| known.revoked_at = Some(credential.issued_at));
        Ok(())
    }

    fn revoke_credentials(&mut self, team: &TeamName, member: &MemberName, at: Time) -> Result<usize, Fault> {
        let mut state = self.store.locked();
        if !state.teams.contains_key(team) {
            return Err(Fault::UnknownTeam { team: team.clone() });
        }
        let open = state.credentials.iter_mut().filter(|credential| {
            credential.team == *team && credential.member == *member && credential.revoked_at.is_none()
        });
        Ok(open.map(|credential| credential.revoked_at = Some(at)).count())
    }

    fn revoke_credential(&mut self, hash: &Digest, at: Time) -> Result<bool, Fault> {
        let mut state = self.store.locked();
        let mut open =
            state.credentials.iter_mut().filter(|known| known.hash == *hash && known.revoked_at.is_none());
        Ok(open.next().map(|credential| credential.revoked_at = Some(at)).is_some())
    }
}

/// One who reads a [`MemoryStore`].
#[derive(Clone)]
pub struct MemoryReader {
    store: MemoryStore,
}

impl Snapshots for MemoryStore {
    fn rows_between(&self) -> u64 {
        self.locked().rows_between.unwrap_or(u64::MAX)
    }

    fn load(&self, team: &TeamName) -> Option<Snapshot> {
        let kept = self.locked().snapshots.get(team).cloned()?;
        snapshot::decode(team, kept)
    }

    fn keep(&self, team: &TeamName, snapshot: &Snapshot) -> Result<(), Fault> {
        self.locked().snapshots.insert(team.clone(), snapshot::encode(team, snapshot));
        Ok(())
    }

    fn forget(&self, team: &TeamName) -> Result<(), Fault> {
        self.locked().snapshots.remove(team);
        Ok(())
    }
}

impl MemoryReader {
    fn log<T>(&self, team: &TeamName, read: impl FnOnce(&Log) -> Result<T, Fault>) -> Result<T, Fault> {
        let state = self.store.locked();
        read(state.teams.get(team).ok_or_else(|| Fault::UnknownTeam { team: team.clone() })?)
    }
}

impl Reader for MemoryReader {
    fn teams(&self) -> Result<Vec<TeamName>, Fault> {
        Ok(self.store.locked().teams.keys().cloned().collect())
    }

    fn head(&self, team: &TeamName) -> Result<Head, Fault> {
        self.log(team, |log| Ok(log.last(team).head()))
    }

    fn rows(&self, team: &TeamName, from: Seq, limit: usize) -> Result<Vec<Row>, Fault> {
        self.log(team, |log| {
            let from = Seq(from.0.max(1));
            let before = log.rows.iter().rfind(|(row, _)| row.seq < from);
            let mut tail = before.map_or_else(
                || Tail::empty(team),
                |(row, link)| Tail { seq: row.seq, at: row.at, link: *link },
            );
            let asked = log.rows.iter().filter(|(row, _)| row.seq >= from).take(limit);
            asked
                .map(|(row, link)| {
                    tail = tail.prove(team, row, link)?;
                    Ok(row.clone())
                })
                .collect()
        })
    }

    fn chain_at(&self, team: &TeamName, seq: Seq) -> Result<Option<Digest>, Fault> {
        let at = |log: &Log| match seq {
            Seq(0) => Some(Tail::empty(team).link),
            _ => log.rows.iter().find(|(row, _)| row.seq == seq).map(|(_, link)| *link),
        };
        self.log(team, |log| Ok(at(log).map(|link| link.digest())))
    }

    fn snapshots(&self) -> &dyn Snapshots {
        &self.store
    }

    fn request(&self, team: &TeamName, actor: &Actor, id: &str) -> Result<Option<Request>, Fault> {
        self.log(team, |log| {
            let theirs = log.rows.iter().filter(|(row, _)| row.actor == *actor);
            Ok(theirs.filter_map(|(row, _)| row.request.clone()).find(|request| request.id == id))
        })
    }

    fn credentials(&self) -> Result<Vec<Credential>, Fault> {
        Ok(self.store.locked().credentials.clone())
    }

    fn verify(&self, team: &TeamName) -> Result<Head, Fault> {
        self.log(team, |log| {
            let proved = log
                .rows
                .iter()
                .try_fold(Tail::empty(team), |tail, (row, link)| tail.prove(team, row, link))?;
            log.check_witness(team)?;
            Ok(proved.head())
        })
    }

    /// The copy is a folder that [`SqliteStore::open`] takes: there is one form on disk.
    fn backup(&self, into: &Path) -> Result<(), Fault> {
        for team in self.teams()? {
            self.verify(&team)?;
        }
        let state = self.store.locked();
        home::fresh(into)?;
        let (mut writer, _) = SqliteStore::open(into, "a backup")?;
        for (team, log) in &state.teams {
            writer.add_team(team, log.created_at)?;
            let rows = log.rows.iter().map(|(row, _)| row.clone()).collect();
            let stored = writer.commit(&[Batch { team: team.clone(), rows }]);
            let outcomes =
                stored.map_err(|fault| Fault::Failed { what: format!("writing a copy: {fault}") })?;
            if let Some(Err(refused)) = outcomes.into_iter().next() {
                return Err(Fault::Failed { what: format!("writing a copy: {refused}") });
            }
        }
        state.credentials.iter().try_for_each(|credential| writer.add_credential(credential))
    }
}
