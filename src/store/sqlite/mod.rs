//! The store on disk: one SQLite database for all teams of a home folder.
//!
//! ```text
//! home/                0700
//!   countersign.db     0600, with -wal and -shm beside it: logs, credentials, views for people
//!   witness            0600, the head of every log, outside the database
//!   snapshots/TEAM     0600, what a log added up to at some row: a cache that can be deleted
//!   lock               0600, held by the one server that writes; says who that is
//! ```
//!
//! A commit is one transaction, durable when it returns (`synchronous = FULL` in WAL mode); then its
//! heads go to the [`witness`]. SQLite's own checks call a log sound whose end is missing (a WAL cut
//! short is a WAL that ends there) or whose text was changed by hand; the [chain](super::chain) and
//! the witness find both.
//!
//! # When a home is refused
//!
//! [`SqliteStore::open`] refuses rather than guess. A newer form ([`Fault::Newer`]) wants the newer
//! program. A log that is shorter than its witness ([`Fault::Cut`]) or doesn't match it
//! ([`Fault::Damaged`]) wants a backup. A lost witness ([`Fault::Witness`]), or a person's decision to
//! go on with a shorter log, wants [`SqliteStore::rewitness`]: it proves every chain and takes the
//! heads as they stand.

mod connection;
mod credentials;
pub(in crate::store) mod home;
mod lock;
mod log;
mod reader;
mod schema;
mod snapshots;
mod witness;
mod writer;

use std::path::Path;

use rusqlite::Connection;

pub use self::reader::SqliteReader;
pub use self::writer::SqliteWriter;

use self::home::Home;
use self::lock::HomeLock;
use self::witness::{Marks, Witness};
use super::chain::Tail;
use super::{Fault, Head, Reader};
use crate::protocol::name::{Seq, TeamName};

/// A home folder's database.
pub struct SqliteStore;

impl SqliteStore {
    /// Opens the folder for a server, or makes it; `holder` is what a second server is told, such as
    /// the process id and the address. Held until the writer is dropped.
    ///
    /// Faults, in the order in which they are checked: [`Fault::Newer`] (nothing was touched then),
    /// [`Fault::Held`], [`Fault::Witness`], [`Fault::Cut`], [`Fault::Damaged`]. Only the ends of the
    /// logs are proved here; the rest is where it is read, and by [`verify`](super::Reader::verify).
    pub fn open(home: &Path, holder: &str) -> Result<(SqliteWriter, SqliteReader), Fault> {
        let home = Home::new(home);
        schema::look(&home)?;
        home.prepare()?;
        let lock = HomeLock::take(&home.lock(), holder)?;
        let witness = Witness::open(&home.witness())?;
        if !home.database().exists() {
            if let Some((_, marks)) = &witness {
                refuse_lost(marks, &[])?;
            }
            home::create_private(&home.database())?;
        }
        home.tighten()?;
        let conn = connect(&home)?;

        let (witness, marks) = match witness {
            Some(opened) => opened,
            None => {
                if let Some((_, team)) = log::first_with_events(&conn)? {
                    return Err(witness::fault(
                        &home.witness(),
                        format!("it is missing, and {team} has a log"),
                    ));
                }
                (Witness::create(&home.witness(), &[])?, Marks::new())
            }
        };
        let tails = prove_ends(&conn, &home, &marks)?;
        // What a WAL holds may never have reached the disk: a process that died of a failed fsync
        // leaves it in the page cache, where the next fsync finds nothing to do. Copied into the
        // database and synced there, it is durable before anybody is told that it is stored.
        connection::checkpoint(&conn).map_err(|error| connection::not_copied(&error))?;
        let reader = SqliteReader::new(home.clone())?;
        let writer = SqliteWriter::new(home, conn, tails, witness, lock)?;
        Ok((writer, reader))
    }

    /// The teams of that folder; none where there is no database yet, or where its making was cut off.
    pub fn teams_of(home: &Path) -> Result<Vec<TeamName>, Fault> {
        if schema::is_unmade(&Home::new(home))? {
            return Ok(Vec::new());
        }
        SqliteReader::open_read_only(home)?.teams()
    }

    /// Takes the logs as they stand: proves every chain from its first row, without the witness, and
    /// writes a new witness. For a person who has lost the witness, or who accepts that a log is
    /// shorter than it was; says which heads were taken. Refused while a server holds the folder.
    pub fn rewitness(home: &Path) -> Result<Vec<(TeamName, Head)>, Fault> {
        let home = Home::new(home);
        schema::look(&home)?;
        if !home.database().exists() {
            return Err(home::missing(&home.database()));
        }
        home.prepare()?;
        let _lock = HomeLock::take(&home.lock(), "a person who renews the witness")?;
        home.tighten()?;
        let conn = connect(&home)?;
        let mut tails = Vec::new();
        for (id, team) in log::teams(&conn)? {
            let tail = log::verify(&conn, id, &team, None)?;
            tails.push((team, tail));
        }
        connection::checkpoint(&conn).map_err(|error| connection::not_copied(&error))?;
        Witness::create(&home.witness(), &tails)?;
        Ok(tails.into_iter().map(|(team, tail)| (team, tail.head())).collect())
    }
}

/// The write connection, with the database in this version's form.
fn connect(home: &Home) -> Result<Connection, Fault> {
    let mut conn = connection::read_write(&home.database())?;
    schema::upgrade(&mut conn)?;
    schema::check(&conn)?;
    Ok(conn)
}

/// Compares the end of every log with its witness, and says where the logs end. Also the rows that the
/// witness had not seen yet are proved: it is about to vouch for them.
fn prove_ends(conn: &Connection, home: &Home, marks: &Marks) -> Result<Vec<(i64, TeamName, Tail)>, Fault> {
    let teams = log::teams(conn)?;
    refuse_lost(marks, &teams)?;
    let mut tails = Vec::with_capacity(teams.len());
    for (id, team) in teams {
        let tail = match marks.get(&team) {
            Some(mark) => {
                let tail = log::prove_end(conn, id, &team, mark)?;
                mark.check_reached(&home.witness(), &team, tail.seq)?;
                tail
            }
            None => log::tail(conn, id, &team)?,
        };
        if !marks.contains_key(&team) && tail.seq > Seq(0) {
            return Err(witness::unmarked(&home.witness(), &team));
        }
        tails.push((id, team, tail));
    }
    Ok(tails)
}

/// Refuses where the witness knows a team that the database doesn't.
fn refuse_lost(marks: &Marks, teams: &[(i64, TeamName)]) -> Result<(), Fault> {
    let lost = marks.iter().find(|(team, _)| teams.iter().all(|(_, known)| known != *team));
    match lost {
        None => Ok(()),
        Some((team, mark)) if mark.seq > Seq(0) => {
            Err(Fault::Cut { team: team.clone(), found: Seq(0), witnessed: mark.seq })
        }
        Some((team, _)) => {
            Err(Fault::Failed { what: format!("the witness knows team {team}, the database does not") })
        }
    }
}
