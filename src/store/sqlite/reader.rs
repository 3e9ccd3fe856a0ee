//! Those who read: a small pool of connections that can't write.

use std::path::Path;
use std::sync::{Arc, Condvar, Mutex};

use rusqlite::Connection;
use rusqlite::backup::{Backup, StepResult};

use super::connection::{self, failed};
use super::home::{self, Home, Identity, create_private};
use super::witness::{self, Mark, Marks, Witness};
use super::{credentials, log, refuse_lost, schema};
use crate::protocol::name::{Actor, Digest, Seq, TeamName};
use crate::store::chain::Tail;
use crate::store::snapshot::Snapshots;
use crate::store::{Credential, Fault, Head, Reader, Request, Row};

/// How many may read at once; the next one waits for a connection.
const CONNECTIONS_MAX: usize = 8;

/// One who reads a home folder. Clones share their connections.
#[derive(Clone)]
pub struct SqliteReader {
    shared: Arc<Shared>,
}

struct Shared {
    home: Home,
    opened: Mutex<Identity>,
    pool: Mutex<Pool>,
    returned: Condvar,
}

#[derive(Default)]
struct Pool {
    idle: Vec<Connection>,
    lent: usize,
}

impl SqliteReader {
    /// Opens the folder to read alone, also while a server holds it: for `verify` and `backup`.
    pub fn open_read_only(home: &Path) -> Result<Self, Fault> {
        let home = Home::new(home);
        if !home.database().exists() {
            return Err(home::missing(&home.database()));
        }
        schema::look(&home)?;
        let reader = Self::new(home)?;
        reader.with(schema::check)?;
        Ok(reader)
    }

    /// Proves what stands beside the logs: that every team that was witnessed is there, and that every
    /// credential is as it was issued.
    pub fn verify_home(&self) -> Result<(), Fault> {
        // The witness first: the snapshot that is taken after it can only be further on.
        let marks = witness::read(&self.shared.home.witness())?;
        self.with(|conn| {
            refuse_lost(&marks, &log::teams(conn)?)?;
            credentials::all(conn).map(drop)
        })
    }

    pub(super) fn new(home: Home) -> Result<Self, Fault> {
        let opened = Mutex::new(home.identity()?);
        let shared = Shared { home, opened, pool: Mutex::default(), returned: Condvar::new() };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// Lends a connection to `read`. What it reads is one snapshot: rows, head and index agree.
    fn with<T>(&self, read: impl FnOnce(&Connection) -> Result<T, Fault>) -> Result<T, Fault> {
        let shared = &*self.shared;
        shared.check_identity()?;
        let lent = shared.borrow()?;
        let snapshot = lent.conn().unchecked_transaction();
        let snapshot = snapshot.map_err(|error| failed("beginning to read", &error))?;
        read(&snapshot)
    }

    /// Proves every log of `conn` against `marks`.
    fn verify_all(&self, conn: &Connection, marks: &Marks) -> Result<Vec<(TeamName, Tail)>, Fault> {
        let teams = log::teams(conn)?;
        refuse_lost(marks, &teams)?;
        let verified = teams.into_iter().map(|(id, team)| {
            let tail = self.verify_one(conn, id, &team, marks.get(&team))?;
            Ok((team, tail))
        });
        verified.collect()
    }

    fn verify_one(
        &self,
        conn: &Connection,
        id: i64,
        team: &TeamName,
        mark: Option<&Mark>,
    ) -> Result<Tail, Fault> {
        let tail = log::verify(conn, id, team, mark)?;
        if let Some(mark) = mark {
            mark.check_reached(&self.shared.home.witness(), team, tail.seq)?;
        }
        if mark.is_none() && tail.seq > Seq(0) {
            return Err(witness::unmarked(&self.shared.home.witness(), team));
        }
        Ok(tail)
    }

    fn copy(&self, into: &Home, marks: &Marks) -> Result<(), Fault> {
        let copying = |error: rusqlite::Error| failed("copying the database", &error);
        create_private(&into.database())?;
        let mut copy = Connection::open(into.database()).map_err(copying)?;
        self.with(|conn| {
            // All pages in one step: one snapshot, which in WAL mode blocks no writer.
            let backup = Backup::new(conn, &mut copy).map_err(copying)?;
            match backup.step(-1).map_err(copying)? {
                StepResult::Done => Ok(()),
                stopped => {
                    Err(Fault::Failed { what: format!("copying the database: it stopped ({stopped:?})") })
                }
            }
        })?;
        // A copy that does not prove itself is no backup, and its witness vouches for it from now on.
        let tails = self.verify_all(&copy, marks)?;
        credentials::all(&copy)?;
        copy.close().map_err(|(_, error)| copying(error))?;
        Witness::create(&into.witness(), &tails)?;
        into.tighten()?;
        into.sync()
    }
}

impl Reader for SqliteReader {
    fn teams(&self) -> Result<Vec<TeamName>, Fault> {
        self.with(|conn| Ok(log::teams(conn)?.into_iter().map(|(_, team)| team).collect()))
    }

    fn head(&self, team: &TeamName) -> Result<Head, Fault> {
        self.with(|conn| Ok(log::tail(conn, log::team_id(conn, team)?, team)?.head()))
    }

    fn rows(&self, team: &TeamName, from: Seq, limit: usize) -> Result<Vec<Row>, Fault> {
        self.with(|conn| {
            let id = log::team_id(conn, team)?;
            let before = Seq(from.0.saturating_sub(1));
            let Some(start) = log::tail_at(conn, id, team, before)? else {
                // Past the end there is nothing to read; inside the log the row must be there.
                return match log::tail(conn, id, team)?.seq {
                    last if last < before => Ok(Vec::new()),
                    _ => Err(Fault::Damaged {
                        team: team.clone(),
                        seq: before,
                        what: "there is no such row".to_owned(),
                    }),
                };
            };
            let mut rows = Vec::new();
            log::prove(conn, id, team, start, limit, |row, _| {
                rows.push(row);
                Ok(())
            })?;
            Ok(rows)
        })
    }

    fn chain_at(&self, team: &TeamName, seq: Seq) -> Result<Option<Digest>, Fault> {
        let tail = self.with(|conn| log::tail_at(conn, log::team_id(conn, team)?, team, seq))?;
        Ok(tail.map(|tail| tail.link.digest()))
    }

    fn snapshots(&self) -> &dyn Snapshots {
        &self.shared.home
    }

    fn request(&self, team: &TeamName, actor: &Actor, id: &str) -> Result<Option<Request>, Fault> {
        self.with(|conn| log::request(conn, log::team_id(conn, team)?, team, actor, id))
    }

    fn credentials(&self) -> Result<Vec<Credential>, Fault> {
        self.with(credentials::all)
    }

    fn verify(&self, team: &TeamName) -> Result<Head, Fault> {
        // The witness first: the snapshot that is taken after it can only be further on.
        let marks = witness::read(&self.shared.home.witness())?;
        self.with(|conn| {
            let mark = marks.get(team);
            let id = match (log::team_id(conn, team), mark) {
                (Err(Fault::UnknownTeam { .. }), Some(_)) => {
                    refuse_lost(&marks, &log::teams(conn)?)?;
                    return Err(Fault::UnknownTeam { team: team.clone() });
                }
                (id, _) => id?,
            };
            Ok(self.verify_one(conn, id, team, mark)?.head())
        })
    }

    fn backup(&self, into: &Path) -> Result<(), Fault> {
        let marks = witness::read(&self.shared.home.witness())?;
        let there = into.exists();
        let into = home::fresh(into)?;
        let copied = self.copy(&into, &marks);
        if copied.is_err() {
            // The folder was empty, so all that is in it is ours; what can't be removed has no
            // witness, and is refused when it is opened.
            into.remove(!there);
        }
        copied
    }
}

impl Shared {
    fn check_identity(&self) -> Result<(), Fault> {
        let mut opened = self.opened.lock().expect("nothing panics while it holds the lock");
        self.home.check_identity(&mut opened)
    }

    fn borrow(&self) -> Result<Lent<'_>, Fault> {
        let pool = self.pool.lock().expect("nothing panics while it holds the lock");
        let full = |pool: &mut Pool| pool.idle.is_empty() && pool.lent >= CONNECTIONS_MAX;
        let mut pool = self.returned.wait_while(pool, full).expect("nothing panics while it holds the lock");
        pool.lent += 1;
        let idle = pool.idle.pop();
        drop(pool);
        // From here on the loan is counted, and dropping it gives it back.
        let mut lent = Lent { shared: self, conn: idle };
        if lent.conn.is_none() {
            lent.conn = Some(connection::read_only(&self.home.database())?);
        }
        Ok(lent)
    }
}

/// A connection on loan.
struct Lent<'a> {
    shared: &'a Shared,
    conn: Option<Connection>,
}

impl Lent<'_> {
    fn conn(&self) -> &Connection {
        self.conn.as_ref().expect("a loan that was given out has its connection")
    }
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        // A poisoned pool means that a reader panicked; the others go on without it.
        if let Ok(mut pool) = self.shared.pool.lock() {
            pool.lent -= 1;
            pool.idle.extend(self.conn.take());
        }
        self.shared.returned.notify_one();
    }
}
