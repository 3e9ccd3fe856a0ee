//! The logs as the database holds them: rows to and from columns, and their proof.

use rusqlite::types::FromSql;
use rusqlite::{CachedStatement, Connection, OptionalExtension, params};

use super::connection::{failed, words};
use super::witness::Mark;
use crate::protocol::name::{Actor, Digest, Seq, TeamName};
use crate::protocol::time::Time;
use crate::store::chain::{Link, Tail};
use crate::store::{Fault, Request, Row};

/// Bits of a place that hold the sequence number; the team's id stands above them.
const SEQ_BITS: u32 = 40;
const SEQ_MAX: u64 = (1 << SEQ_BITS) - 1;

const INSERT: &str = "INSERT INTO log \
     (place, at, actor, kind, schema, chain, request_id, request_digest, answer, body) \
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)";
const SELECT: &str = "SELECT place, at, actor, kind, schema, chain, request_id, request_digest, answer, body \
     FROM log WHERE place BETWEEN ?1 AND ?2 ORDER BY place LIMIT ?3";

/// The key of that row.
fn place(team: i64, seq: Seq) -> i64 {
    // A log of 2^40 rows would take decades of its hardware.
    (team << SEQ_BITS) | i64::try_from(seq.0.min(SEQ_MAX)).expect("40 bits fit into 64")
}

fn seq_of(place: i64) -> Seq {
    Seq(place.cast_unsigned() & SEQ_MAX)
}

/// All teams by name, with their ids.
pub(super) fn teams(conn: &Connection) -> Result<Vec<(i64, TeamName)>, Fault> {
    let read = || -> rusqlite::Result<Vec<(i64, String)>> {
        let mut statement = conn.prepare_cached("SELECT id, name FROM teams ORDER BY name")?;
        statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
    };
    let teams = read().map_err(|error| failed("reading the teams", &error))?;
    let parsed = teams.into_iter().map(|(id, name)| name.parse().map(|name| (id, name)));
    parsed
        .collect::<Result<_, _>>()
        .map_err(|error| Fault::Failed { what: format!("reading the teams: {error}") })
}

/// The id of that team.
pub(super) fn team_id(conn: &Connection, team: &TeamName) -> Result<i64, Fault> {
    let read = || -> rusqlite::Result<Option<i64>> {
        let mut statement = conn.prepare_cached("SELECT id FROM teams WHERE name = ?1")?;
        statement.query_row([team.as_str()], |row| row.get(0)).optional()
    };
    let found = read().map_err(|error| failed("reading the teams", &error))?;
    found.ok_or_else(|| Fault::UnknownTeam { team: team.clone() })
}

/// Some team whose log is not empty.
pub(super) fn first_with_events(conn: &Connection) -> Result<Option<(i64, TeamName)>, Fault> {
    for (id, team) in teams(conn)? {
        if tail(conn, id, &team)?.seq > Seq(0) {
            return Ok(Some((id, team)));
        }
    }
    Ok(None)
}

/// Appends a row.
pub(super) fn insert(conn: &Connection, team: i64, row: &Row, link: &Link) -> rusqlite::Result<()> {
    let request = row.request.as_ref();
    conn.prepare_cached(INSERT)?.execute(params![
        place(team, row.seq),
        row.at.0,
        row.actor.to_string(),
        row.kind,
        row.schema,
        link.as_bytes(),
        request.map(|request| &request.id),
        request.map(|request| bytes_of(&request.digest)),
        request.map(|request| &request.answer),
        row.body,
    ])?;
    Ok(())
}

/// Where that log ends, as it stands.
pub(super) fn tail(conn: &Connection, id: i64, team: &TeamName) -> Result<Tail, Fault> {
    let last = || -> rusqlite::Result<Option<i64>> {
        conn.prepare_cached("SELECT max(place) FROM log WHERE place BETWEEN ?1 AND ?2")?
            .query_row([place(id, Seq(0)), place(id, Seq(SEQ_MAX))], |row| row.get(0))
    };
    let last = last().map_err(|error| failed(&format!("looking for the end of {team}'s log"), &error))?;
    let found = tail_at(conn, id, team, last.map_or(Seq(0), seq_of))?;
    Ok(found.unwrap_or_else(|| Tail::empty(team)))
}

/// The end of the log's beginning up to and with `seq`, as it stands; none where there is no such row.
pub(super) fn tail_at(conn: &Connection, id: i64, team: &TeamName, seq: Seq) -> Result<Option<Tail>, Fault> {
    if seq == Seq(0) {
        return Ok(Some(Tail::empty(team)));
    }
    let find = || -> rusqlite::Result<Option<Tail>> {
        let mut statement = conn.prepare_cached("SELECT at, chain FROM log WHERE place = ?1")?;
        let tail = statement.query_row([place(id, seq)], |row| {
            Ok(Tail { seq, at: Time(row.get(0)?), link: Link::from(row.get::<_, [u8; 32]>(1)?) })
        });
        tail.optional()
    };
    find().map_err(|error| damaged(team, seq, words(&error)))
}

/// Reads the rows after `tail` in order, `limit` at most, proves each against the row before it and
/// hands it to `each`. Says where they end.
pub(super) fn prove(
    conn: &Connection,
    id: i64,
    team: &TeamName,
    mut tail: Tail,
    limit: usize,
    mut each: impl FnMut(Row, &Tail) -> Result<(), Fault>,
) -> Result<Tail, Fault> {
    let reading = |tail: &Tail, error: &rusqlite::Error| damaged(team, Seq(tail.seq.0 + 1), words(error));
    let mut statement: CachedStatement<'_> =
        conn.prepare_cached(SELECT).map_err(|error| failed("reading a log", &error))?;
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let from = Seq(tail.seq.0 + 1);
    let mut rows = statement
        .query(params![place(id, from), place(id, Seq(SEQ_MAX)), limit])
        .map_err(|error| reading(&tail, &error))?;
    loop {
        let columns = match rows.next() {
            Ok(Some(columns)) => columns,
            Ok(None) => return Ok(tail),
            Err(error) => return Err(reading(&tail, &error)),
        };
        let (row, link) = row_of(columns).map_err(|what| damaged(team, Seq(tail.seq.0 + 1), what))?;
        tail = tail.prove(team, &row, &link)?;
        each(row, &tail)?;
    }
}

/// Proves the last rows of that log: the witnessed one, and those that the witness has not seen yet.
pub(super) fn prove_end(conn: &Connection, id: i64, team: &TeamName, mark: &Mark) -> Result<Tail, Fault> {
    let before = Seq(mark.seq.0.saturating_sub(1));
    let found = tail(conn, id, team)?.seq;
    if found < mark.seq {
        return Err(Fault::Cut { team: team.clone(), found, witnessed: mark.seq });
    }
    let start = tail_at(conn, id, team, before)?
        .ok_or_else(|| damaged(team, before, "there is no such row".to_owned()))?;
    check_mark(team, &start, mark)?;
    prove(conn, id, team, start, usize::MAX, |_, tail| check_mark(team, tail, mark))
}

/// Proves that whole log, also against its witness where one is given, in one snapshot.
pub(super) fn verify(
    conn: &Connection,
    id: i64,
    team: &TeamName,
    mark: Option<&Mark>,
) -> Result<Tail, Fault> {
    let start = Tail::empty(team);
    if let Some(mark) = mark {
        check_mark(team, &start, mark)?;
    }
    let end = prove(conn, id, team, start, usize::MAX, |row, tail| {
        if let Some(mark) = mark {
            check_mark(team, tail, mark)?;
        }
        check_index(conn, id, team, &row)
    })?;
    match mark {
        Some(mark) if end.seq < mark.seq => {
            Err(Fault::Cut { team: team.clone(), found: end.seq, witnessed: mark.seq })
        }
        _ => Ok(end),
    }
}

fn check_mark(team: &TeamName, tail: &Tail, mark: &Mark) -> Result<(), Fault> {
    if tail.seq == mark.seq && tail.link.digest() != mark.chain {
        return Err(damaged(team, tail.seq, "the row's chain is not the one that was witnessed".to_owned()));
    }
    Ok(())
}

/// A row's request must be found by its id too, or the same request would be done twice.
fn check_index(conn: &Connection, id: i64, team: &TeamName, row: &Row) -> Result<(), Fault> {
    let Some(request) = &row.request else { return Ok(()) };
    let found = || -> rusqlite::Result<bool> {
        conn.prepare_cached(
            "SELECT 1 FROM log INDEXED BY log_requests WHERE request_id = ?1 AND actor = ?2 AND place = ?3",
        )?
        .exists(params![request.id, row.actor.to_string(), place(id, row.seq)])
    };
    match found() {
        Ok(true) => Ok(()),
        Ok(false) => Err(damaged(team, row.seq, "the index of requests does not have the row".to_owned())),
        Err(error) => Err(damaged(team, row.seq, words(&error))),
    }
}

/// The first request of that id which this actor made.
pub(super) fn request(
    conn: &Connection,
    id: i64,
    team: &TeamName,
    actor: &Actor,
    request_id: &str,
) -> Result<Option<Request>, Fault> {
    let find = || -> rusqlite::Result<Option<i64>> {
        let mut statement = conn.prepare_cached(
            "SELECT place FROM log INDEXED BY log_requests \
             WHERE request_id = ?1 AND actor = ?2 AND place BETWEEN ?3 AND ?4 ORDER BY place LIMIT 1",
        )?;
        let key = params![request_id, actor.to_string(), place(id, Seq(0)), place(id, Seq(SEQ_MAX))];
        statement.query_row(key, |row| row.get(0)).optional()
    };
    let Some(found) = find().map_err(|error| failed("looking for a request", &error))? else {
        return Ok(None);
    };
    // An answer is given again only from a row that proves itself.
    let seq = seq_of(found);
    let before = Seq(seq.0 - 1);
    let start = tail_at(conn, id, team, before)?
        .ok_or_else(|| damaged(team, before, "there is no such row".to_owned()))?;
    let mut answered = None;
    prove(conn, id, team, start, 1, |row, _| {
        answered = row.request;
        Ok(())
    })?;
    Ok(answered.filter(|request| request.id == request_id))
}

fn damaged(team: &TeamName, seq: Seq, what: String) -> Fault {
    Fault::Damaged { team: team.clone(), seq, what }
}

/// A row and its link from the columns of [`SELECT`], or what does not fit.
fn row_of(columns: &rusqlite::Row<'_>) -> Result<(Row, Link), String> {
    fn column<T: FromSql>(columns: &rusqlite::Row<'_>, name: &str) -> Result<T, String> {
        columns.get(name).map_err(|error| format!("its {name} can't be read: {}", words(&error)))
    }
    let actor: String = column(columns, "actor")?;
    let request = (
        column::<Option<String>>(columns, "request_id")?,
        column::<Option<Vec<u8>>>(columns, "request_digest")?,
        column::<Option<String>>(columns, "answer")?,
    );
    let request = match request {
        (None, None, None) => None,
        (Some(id), Some(digest), Some(answer)) => Some(Request { id, digest: digest_of(&digest)?, answer }),
        _ => return Err("its request has only some of id, digest and answer".to_owned()),
    };
    let row = Row {
        seq: seq_of(column(columns, "place")?),
        at: Time(column(columns, "at")?),
        actor: actor.parse().map_err(|error| format!("its actor can't be read: {error}"))?,
        kind: column::<String>(columns, "kind")?.into(),
        schema: column(columns, "schema")?,
        body: column(columns, "body")?,
        request,
    };
    Ok((row, Link::from(column::<[u8; 32]>(columns, "chain")?)))
}

/// A digest as half as many bytes.
pub(super) fn bytes_of(digest: &Digest) -> Vec<u8> {
    let value = |digit: u8| match digit {
        b'0'..=b'9' => digit - b'0',
        _ => digit - b'a' + 10,
    };
    let digits = digest.as_str().as_bytes();
    digits.chunks_exact(2).map(|pair| (value(pair[0]) << 4) | value(pair[1])).collect()
}

/// The digest of those bytes.
pub(super) fn digest_of(bytes: &[u8]) -> Result<Digest, String> {
    use std::fmt::Write;
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        write!(text, "{byte:02x}").expect("a String takes every write");
    }
    text.parse().map_err(|error| format!("a digest can't be read: {error}"))
}
