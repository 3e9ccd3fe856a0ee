//! Forms of the database: which one a file has, and how an older one becomes this version's.

use std::fs::File;
use std::io::{ErrorKind, Read};

use rusqlite::{Connection, TransactionBehavior};

use super::connection::{self, failed};
use super::home::{Home, io_fault};
use crate::store::Fault;

/// Marks a database as ours ("CSGN").
const APPLICATION_ID: u32 = 0x4353_474e;

/// The step to form 1, the step from there to form 2… A step is never changed once it was released.
const MIGRATIONS: [&str; 2] =
    [include_str!("schema/001-logs.sql"), include_str!("schema/002-page-tokens.sql")];

/// The form that this version writes.
const FORM: u32 = MIGRATIONS.len() as u32;

/// Looks at the database without touching a byte of it, and refuses a newer form or another
/// program's file. A file that is missing or empty is fine.
pub(super) fn look(home: &Home) -> Result<(), Fault> {
    found_form(home).map(drop)
}

/// Whether there is no database yet, or one that was never given a form.
pub(super) fn is_unmade(home: &Home) -> Result<bool, Fault> {
    Ok(found_form(home)? == 0)
}

/// The form of the database; 0 where it has none yet.
fn found_form(home: &Home) -> Result<u32, Fault> {
    let path = home.database();
    let mut header = [0; 100];
    match File::open(&path).and_then(|mut file| file.read_exact(&mut header)) {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(0),
        // Shorter than a header: SQLite decides.
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(0),
        Err(error) => return Err(io_fault("reading", &path, &error)),
    }
    // Offsets of the file format: magic, user_version, application_id.
    let number = |at: usize| u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
    if !header.starts_with(b"SQLite format 3\0") {
        return Err(Fault::Failed { what: format!("{} is not a database", path.display()) });
    }
    let (application_id, form) = (number(68), number(60));
    judge(application_id, form)?;
    // A server that was killed may have left the first page in the WAL.
    if !home.wal().exists() {
        return Ok(form);
    }
    let conn = connection::read_only(&path)?;
    let (application_id, form) = numbers(&conn)?;
    judge(application_id, form)?;
    Ok(form)
}

/// Brings an older form, or an empty file, to this version's, in one transaction.
pub(super) fn upgrade(conn: &mut Connection) -> Result<(), Fault> {
    upgrade_by(conn, &MIGRATIONS)
}

fn upgrade_by(conn: &mut Connection, migrations: &[&str]) -> Result<(), Fault> {
    // Read again under the write lock: what was looked at before may have changed since.
    let transaction = conn
        .transaction_with_behavior(TransactionBehavior::Immediate)
        .map_err(|error| failed("looking at the database's form", &error))?;
    let (application_id, form) = numbers(&transaction)?;
    judge(application_id, form)?;
    if application_id == 0 {
        let objects: i64 = transaction
            .query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))
            .map_err(|error| failed("looking at the database's form", &error))?;
        if objects > 0 {
            return Err(Fault::Failed { what: "the database belongs to another program".to_owned() });
        }
    }
    if form as usize == migrations.len() {
        return Ok(());
    }
    let upgraded = migrations[form as usize..]
        .iter()
        .try_for_each(|step| transaction.execute_batch(step))
        .and_then(|()| transaction.pragma_update(None, "application_id", APPLICATION_ID))
        .and_then(|()| transaction.pragma_update(None, "user_version", migrations.len() as u32))
        .and_then(|()| transaction.commit());
    upgraded.map_err(|error| failed("upgrading the database", &error))
}

/// Refuses a database whose tables, indexes or views are not what this form says: a trigger or a
/// changed column would make the server store something else than it thinks.
pub(super) fn check(conn: &Connection) -> Result<(), Fault> {
    let reading = |error: rusqlite::Error| failed("reading the database's schema", &error);
    let expected = Connection::open_in_memory().map_err(reading)?;
    // Whoever only reads may read an older form, as it was made then.
    let (_, form) = numbers(conn)?;
    let steps = if form == 0 { &MIGRATIONS[..] } else { &MIGRATIONS[..form.min(FORM) as usize] };
    steps.iter().try_for_each(|step| expected.execute_batch(step)).map_err(reading)?;
    let expected = objects(&expected).map_err(reading)?;
    let found = objects(conn).map_err(reading)?;
    if let Some((_, name, _)) = expected.iter().find(|object| !found.contains(object)) {
        return Err(Fault::Failed { what: format!("the database's {name} is not what this version made") });
    }
    // Views and indexes that people add do no harm.
    let added = found.iter().find(|object| {
        matches!(object.0.as_str(), "table" | "trigger") && !expected.contains(object) && !internal(&object.1)
    });
    match added {
        Some((what, name, _)) => Err(Fault::Failed {
            what: format!("the database has a {what} {name} that this version did not make"),
        }),
        None => Ok(()),
    }
}

/// What SQLite adds by itself, such as the statistics of an ANALYZE.
fn internal(name: &str) -> bool {
    name.starts_with("sqlite_")
}

fn objects(conn: &Connection) -> rusqlite::Result<Vec<(String, String, Option<String>)>> {
    let mut statement = conn.prepare("SELECT type, name, sql FROM sqlite_schema ORDER BY name")?;
    statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?.collect()
}

fn numbers(conn: &Connection) -> Result<(u32, u32), Fault> {
    let number = |pragma| conn.pragma_query_value(None, pragma, |row| row.get::<_, i64>(0));
    let numbers = number("application_id").and_then(|id| Ok((id as u32, number("user_version")? as u32)));
    numbers.map_err(|error| failed("looking at the database's form", &error))
}

fn judge(application_id: u32, form: u32) -> Result<(), Fault> {
    match (application_id, form) {
        (0, 0) => Ok(()),
        (APPLICATION_ID, form) if form > FORM => Err(Fault::Newer { found: form, known: FORM }),
        (APPLICATION_ID, form) if form > 0 => Ok(()),
        _ => Err(Fault::Failed { what: "the database belongs to another program".to_owned() }),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    /// Every object and number of a database, and what it holds.
    fn contents(path: &Path) -> (Vec<String>, (u32, u32), i64) {
        let conn = connection::read_write(path).unwrap();
        let teams = conn.query_row("SELECT count(*) FROM teams", [], |row| row.get(0)).unwrap();
        let objects = objects(&conn).unwrap().into_iter().map(|object| format!("{object:?}"));
        (objects.collect(), numbers(&conn).unwrap(), teams)
    }

    #[test]
    fn an_upgrade_takes_place_as_a_whole_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("countersign.db");
        let open = || Connection::open(&path).unwrap();
        upgrade_by(&mut open(), &MIGRATIONS[..1]).unwrap();
        open().execute("INSERT INTO teams (name, created_at) VALUES ('atlas', 1)", []).unwrap();
        drop(connection::read_write(&path).unwrap());
        let oldest = contents(&path);
        assert_eq!(oldest.1, (APPLICATION_ID, 1));

        let good = "CREATE TABLE later (x INTEGER) STRICT; INSERT INTO later SELECT count(*) FROM teams;";
        let bad = "DELETE FROM teams; INSERT INTO nowhere VALUES (1);";
        let mut conn = connection::read_write(&path).unwrap();
        let refused = upgrade_by(&mut conn, &[MIGRATIONS[0], good, bad]).unwrap_err();
        assert!(refused.to_string().contains("upgrading"), "{refused}");
        drop(conn);
        assert_eq!(contents(&path), oldest, "a step that fails takes those before it back");

        // Killed before the transaction ends: its pages may stand in the WAL, and count for nothing.
        let conn = connection::read_write(&path).unwrap();
        conn.execute_batch(&format!(
            "PRAGMA cache_size = 1; BEGIN IMMEDIATE; {good} PRAGMA user_version = 2;"
        ))
        .unwrap();
        let killed = tempfile::tempdir().unwrap();
        for file in ["countersign.db", "countersign.db-wal"] {
            std::fs::copy(folder.path().join(file), killed.path().join(file)).unwrap();
        }
        assert_eq!(contents(&killed.path().join("countersign.db")), oldest);
        conn.execute_batch("ROLLBACK").unwrap();
        drop(conn);

        let mut conn = connection::read_write(&path).unwrap();
        upgrade_by(&mut conn, &[MIGRATIONS[0], good]).unwrap();
        drop(conn);
        let (objects, numbers, teams) = contents(&path);
        assert_eq!((numbers, teams), ((APPLICATION_ID, 2), 1));
        assert!(objects.iter().any(|object| object.contains("later")));
    }
}
