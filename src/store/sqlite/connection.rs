//! Connections: how they are set up, and what SQLite's codes mean in words.

use std::path::Path;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags};

use crate::store::Fault;

/// How long a write waits for another program, such as a shell that somebody left in a transaction.
/// Short: every team waits behind it.
const WRITE_WAIT: Duration = Duration::from_millis(250);
const READ_WAIT: Duration = Duration::from_millis(1_000);
const STATEMENTS_MAX: usize = 32;

/// The connection that writes; the file must be there.
pub(super) fn read_write(path: &Path) -> Result<Connection, Fault> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let set_up = || -> rusqlite::Result<Connection> {
        let conn = Connection::open_with_flags(path, flags)?;
        conn.busy_timeout(WRITE_WAIT)?;
        // Closing must not write: a refused home stays as it is for whoever examines it, and after a
        // failed fsync nothing may be tried again. A clean end checkpoints by itself.
        conn.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
        let mode: String = conn.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0))?;
        debug_assert_eq!(mode, "wal");
        // FULL: a commit returns when the WAL is on disk. No mmap: a disk fault there is a signal. No
        // checkpoints of SQLite's own: it keeps to itself when a sync of theirs fails.
        conn.execute_batch(
            "PRAGMA synchronous = FULL;
             PRAGMA foreign_keys = ON;
             PRAGMA cell_size_check = ON;
             PRAGMA wal_autocheckpoint = 0;
             PRAGMA journal_size_limit = 67108864;",
        )?;
        conn.query_row("PRAGMA mmap_size = 0", [], |_| Ok(()))?;
        conn.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
        Ok(conn)
    };
    set_up().map_err(|error| failed("opening the database", &error))
}

/// A connection that can only read.
pub(super) fn read_only(path: &Path) -> Result<Connection, Fault> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let set_up = || -> rusqlite::Result<Connection> {
        let conn = Connection::open_with_flags(path, flags)?;
        conn.busy_timeout(READ_WAIT)?;
        conn.execute_batch("PRAGMA query_only = ON; PRAGMA cell_size_check = ON;")?;
        conn.query_row("PRAGMA mmap_size = 0", [], |_| Ok(()))?;
        conn.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
        Ok(conn)
    };
    set_up().map_err(|error| failed("opening the database to read", &error))
}

/// Copies the WAL into the database, syncs that, and empties the WAL as far as readers allow.
pub(super) fn checkpoint(conn: &Connection) -> rusqlite::Result<()> {
    conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
}

/// Copies as much of the WAL as readers allow without waiting for them, so that it is written anew from
/// its start.
pub(super) fn checkpoint_passively(conn: &Connection) -> rusqlite::Result<()> {
    conn.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()))
}

/// The fault of a checkpoint.
pub(super) fn not_copied(error: &rusqlite::Error) -> Fault {
    failed("copying the write-ahead log into the database", error)
}

/// The fault of an operation that failed under no particular row.
pub(super) fn failed(doing: &str, error: &rusqlite::Error) -> Fault {
    Fault::Failed { what: format!("{doing}: {}", words(error)) }
}

/// What SQLite says, in words that help whoever runs the server.
pub(super) fn words(error: &rusqlite::Error) -> String {
    let failure = match error {
        rusqlite::Error::SqliteFailure(failure, _) => failure,
        rusqlite::Error::FromSqlConversionFailure(..)
        | rusqlite::Error::IntegralValueOutOfRange(..)
        | rusqlite::Error::InvalidColumnType(..) => {
            return "it holds something else than it should".to_owned();
        }
        other => return other.to_string(),
    };
    let fact = match failure.code {
        ErrorCode::DiskFull => "the disk is full",
        ErrorCode::ReadOnly => "the database can't be written",
        ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => "another program holds the database",
        ErrorCode::DatabaseCorrupt => "the database's pages don't fit together",
        ErrorCode::NotADatabase => "the file is not a database",
        ErrorCode::SystemIoFailure => "the disk reported a fault",
        _ => return error.to_string(),
    };
    format!("{fact} (SQLite code {})", failure.extended_code)
}
