//! How a team comes from its log into memory: from its snapshot and the rows after it, or from all rows. And
//! how a snapshot is made.
//!
//! A snapshot is taken only where the log bears it out: made by this very core, and its row has the link in
//! the chain that it had then. The rows before it are proved too, after the start: see [`prove_rest`].

use std::num::NonZeroUsize;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use sha2::{Digest as _, Sha256};

use super::UNPOISONED;
use crate::protocol::name::{Seq, TeamName};
use crate::protocol::{Event, Team};
use crate::store::snapshot::Snapshot;
use crate::store::{Fault, Head, Reader};

/// Rows that are read at a time when a log is replayed or proved.
const ROWS: usize = 4096;

/// A team as its log has it.
pub(super) struct Loaded {
    pub(super) team: Team,
    /// The snapshot that it was begun from, if there was one.
    pub(super) snapshot: Option<Begun>,
}

/// Where a team was begun from a snapshot.
#[derive(Clone, Copy)]
pub(super) struct Begun {
    pub(super) seq: Seq,
    /// SHA-256 of the state.
    state: [u8; 32],
}

/// One team, by its snapshot and its log.
pub(super) fn load(reader: &dyn Reader, name: &TeamName) -> Result<Loaded, Fault> {
    let (team, snapshot) = restored(reader, name)?.unzip();
    let mut team = team.unwrap_or_default();
    while fold(reader, name, &mut team, ROWS)? == ROWS {}
    Ok(Loaded { team, snapshot })
}

/// Folds the next rows in, so many at most; says how many there were.
fn fold(reader: &dyn Reader, name: &TeamName, team: &mut Team, rows_max: usize) -> Result<usize, Fault> {
    let rows = reader.rows(name, Seq(team.seq().0 + 1), rows_max)?;
    for row in &rows {
        let event = Event::decode(&row.kind, row.schema, &row.body).map_err(|unreadable| Fault::Damaged {
            team: name.clone(),
            seq: row.seq,
            what: unreadable.to_string(),
        })?;
        team.apply(row.seq, row.at, &event);
    }
    Ok(rows.len())
}

/// Many teams, by as many threads as the machine has cores. Fails with the first of them, by their order,
/// whose log does not prove itself.
pub(super) fn load_all(reader: &dyn Reader, names: &[TeamName]) -> Result<Vec<Loaded>, Fault> {
    let next = AtomicUsize::new(0);
    let loaded: Mutex<Vec<(usize, Result<Loaded, Fault>)>> = Mutex::default();
    let cores = thread::available_parallelism().map_or(1, NonZeroUsize::get);
    thread::scope(|scope| {
        for _ in 0..cores.min(names.len()) {
            scope.spawn(|| {
                while let Some((index, name)) = {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    names.get(index).map(|name| (index, name))
                } {
                    let one = load(reader, name);
                    loaded.lock().expect(UNPOISONED).push((index, one));
                }
            });
        }
    });
    let mut loaded = loaded.into_inner().expect(UNPOISONED);
    loaded.sort_by_key(|(index, _)| *index);
    loaded.into_iter().map(|(_, one)| one).collect()
}

/// The team of a snapshot that the log bears out, if there is one.
fn restored(reader: &dyn Reader, name: &TeamName) -> Result<Option<(Team, Begun)>, Fault> {
    let Some(Snapshot { head, core, state }) = reader.snapshots().load(name) else { return Ok(None) };
    if core != Team::CORE || reader.chain_at(name, head.seq)? != Some(head.chain) {
        return Ok(None);
    }
    // It is whole and of this core; what can't be read all the same is none.
    let team = Team::restore(&state).ok().filter(|team| team.seq() == head.seq);
    Ok(team.map(|team| (team, Begun { seq: head.seq, state: Sha256::digest(&state).into() })))
}

/// Keeps a snapshot of a team, all of whose events are stored.
pub(super) fn keep(reader: &dyn Reader, name: &TeamName, team: &Team) -> Result<(), Fault> {
    let seq = team.seq();
    let Some(chain) = reader.chain_at(name, seq)? else {
        return Err(Fault::Failed { what: format!("{name}'s log has no row {seq} to keep a snapshot of") });
    };
    let (core, state) = (Team::CORE.to_owned(), team.snapshot());
    reader.snapshots().keep(name, &Snapshot { head: Head { seq, chain }, core, state })
}

/// Proves the rows that a snapshot stands for, each against the row before it, and that they add up to it, as
/// long as `goes_on`. Where they don't, the snapshot is taken away: the next start reads that log, and refuses
/// it by name and place if it is the log that is damaged.
pub(super) fn prove_rest(
    reader: &dyn Reader,
    name: &TeamName,
    begun: Begun,
    goes_on: impl Fn() -> bool,
) -> Result<(), Fault> {
    let proved = adds_up(reader, name, begun, goes_on);
    if proved.is_err() {
        reader.snapshots().forget(name)?;
    }
    proved
}

fn adds_up(
    reader: &dyn Reader,
    name: &TeamName,
    begun: Begun,
    goes_on: impl Fn() -> bool,
) -> Result<(), Fault> {
    let mut team = Team::new();
    while team.seq() < begun.seq {
        if !goes_on() {
            return Ok(());
        }
        let left = usize::try_from(begun.seq.0 - team.seq().0).unwrap_or(ROWS);
        fold(reader, name, &mut team, left.min(ROWS))?;
    }
    let found: [u8; 32] = Sha256::digest(team.snapshot()).into();
    if found == begun.state {
        return Ok(());
    }
    let what = "the snapshot was not what the log adds up to; it is deleted".to_owned();
    Err(Fault::Damaged { team: name.clone(), seq: begun.seq, what })
}
