//! The views say what a small scripted log says.

use countersign::protocol::time::Time;
use countersign::store::Writer;
use countersign::store::sqlite::SqliteStore;
use rusqlite::Connection;
use rusqlite::types::ValueRef;

use super::suite::{batch, row, team};

/// Runs a query; a line a row, columns by " | ".
fn query(conn: &Connection, sql: &str) -> Vec<String> {
    let mut statement = conn.prepare(sql).unwrap();
    let columns = statement.column_count();
    let shown = |value: ValueRef<'_>| match value {
        ValueRef::Null => "-".to_owned(),
        ValueRef::Integer(number) => number.to_string(),
        other => other.as_str().unwrap().to_owned(),
    };
    let rows = statement.query_map([], |row| {
        let cells = (0..columns).map(|column| row.get_ref(column).map(shown));
        Ok(cells.collect::<Result<Vec<_>, _>>()?.join(" | "))
    });
    rows.unwrap().collect::<Result<_, _>>().unwrap()
}

fn proposed(proposal: &str, version: u32) -> (&'static str, String) {
    let body = format!(
        r#"{{"proposal":"{proposal}","version":{version},"producer":"app","artifact":{{"kind":"bundle","digest":"d{version}"}},"summary":"s{version}","answers":{{}},"paths":[],"authors":[],"round":{}}}"#,
        version > 1
    );
    ("proposed", body)
}

fn approved(proposal: &str, version: u32, by: &str) -> (&'static str, String) {
    let body = format!(
        r#"{{"proposal":"{proposal}","version":{version},"by":"{by}","lenses":["design"],"checked":[],"ran":[]}}"#
    );
    ("approved", body)
}

fn objected(id: &str, proposal: &str, version: u32, by: &str) -> (&'static str, String) {
    let body = format!(
        r#"{{"id":"{id}","proposal":"{proposal}","version":{version},"by":"{by}","lenses":["design"],"text":"wrong","at":[]}}"#
    );
    ("objected", body)
}

fn event(kind: &'static str, body: &str) -> (&'static str, String) {
    (kind, body.to_owned())
}

#[test]
fn the_views_say_what_the_log_says() {
    let folder = tempfile::tempdir().unwrap();
    let (mut writer, _reader) = SqliteStore::open(folder.path(), "a test").unwrap();
    let charter = |member: &str| {
        event(
            "charter-adopted",
            &format!(
                r#"{{"revision":1,"digest":"d","text":"t","charter":{{"team":"demo","members":{{"app":{{"kind":"agent","about":"writes"}},"{member}":{{"kind":"human","emails":["dana@x.org"]}}}},"phases":[]}}}}"#
            ),
        )
    };
    let events = [
        charter("gone"),
        charter("dana"),
        proposed("parser", 1),
        approved("parser", 1, "sec"),
        objected("o1", "parser", 1, "arch"),
        approved("parser", 1, "arch"),
        // Everything on version 1 is history from here on.
        proposed("parser", 2),
        event(
            "objection-closed",
            r#"{"id":"o1","proposal":"parser","by":"arch","how":"resolved","version":2}"#,
        ),
        approved("parser", 2, "sec"),
        approved("parser", 2, "arch"),
        objected("o2", "parser", 2, "arch"),
        event(
            "objection-closed",
            r#"{"id":"o2","proposal":"parser","by":"dana","how":"overruled","version":2,"reason":"fine"}"#,
        ),
        proposed("lexer", 1),
        approved("lexer", 1, "sec"),
        event("withdrawn", r#"{"proposal":"lexer","version":1,"by":"app","reason":"later"}"#),
        proposed("docs", 1),
        objected("o3", "docs", 1, "sec"),
        event(
            "noted",
            r#"{"id":"o4","proposal":"docs","version":1,"by":"sec","lenses":[],"text":"nit","at":[]}"#,
        ),
        proposed("guide", 1),
        event(
            "circle-completed",
            r#"{"circle":"guide","manifest":"m","entries":[{"proposal":"guide","version":1,"digest":"d1","approvals":[]}]}"#,
        ),
        event(
            "circle-completed",
            r#"{"circle":"parser","manifest":"m","entries":[{"proposal":"parser","version":2,"digest":"d2","approvals":[]}]}"#,
        ),
        event("circle-published", r#"{"circle":"parser"}"#),
        proposed("pages", 1),
        event(
            "circle-completed",
            r#"{"circle":"pages","manifest":"m","entries":[{"proposal":"pages","version":1,"digest":"d1","approvals":[]}]}"#,
        ),
        event("circle-reopened", r#"{"circle":"pages","because":"the target moved","owing":["pages"]}"#),
        event("escalated", r#"{"id":"e1","cause":"stall","subject":"docs","text":"nobody moves"}"#),
        event("escalated", r#"{"id":"e2","cause":"stall","subject":"lexer","text":"nobody moves"}"#),
        event("escalation-closed", r#"{"id":"e1","by":"dana","decision":"raise-limit","reason":"ok"}"#),
    ];
    // Another team with the same names must not show up in the first one's.
    for name in ["demo", "other"] {
        writer.add_team(&team(name), Time(0)).unwrap();
    }
    let rows = events.iter().zip(1..).map(|((kind, body), seq)| row(seq, "app", kind, body)).collect();
    writer.commit(&[batch(&team("demo"), rows)]).unwrap()[0].as_ref().unwrap();
    let (kind, body) = proposed("parser", 1);
    writer.commit(&[batch(&team("other"), vec![row(1, "app", kind, &body)])]).unwrap()[0].as_ref().unwrap();

    let conn = Connection::open(folder.path().join("countersign.db")).unwrap();
    assert_eq!(
        query(&conn, "SELECT team, seq, at, actor, kind, body FROM events WHERE seq = 22"),
        ["demo | 22 | 2023-11-14T22:13:53.000000Z | app | circle-published | {\"circle\":\"parser\"}"]
    );
    assert_eq!(
        query(&conn, "SELECT team, member, kind, about, emails FROM members ORDER BY member"),
        ["demo | app | agent | writes | -", "demo | dana | human | - | [\"dana@x.org\"]"]
    );
    assert_eq!(
        query(
            &conn,
            "SELECT proposal, version, producer, artifact, digest, summary, round, withdrawn, seq
             FROM versions WHERE team = 'demo' ORDER BY seq"
        ),
        [
            "parser | 1 | app | bundle | d1 | s1 | 0 | 0 | 3",
            "parser | 2 | app | bundle | d2 | s2 | 1 | 0 | 7",
            "lexer | 1 | app | bundle | d1 | s1 | 0 | 1 | 13",
            "docs | 1 | app | bundle | d1 | s1 | 0 | 0 | 16",
            "guide | 1 | app | bundle | d1 | s1 | 0 | 0 | 19",
            "pages | 1 | app | bundle | d1 | s1 | 0 | 0 | 23",
        ]
    );
    assert_eq!(
        query(
            &conn,
            "SELECT team, proposal, version, producer, digest, state, circle FROM proposals
             ORDER BY team, proposal"
        ),
        [
            "demo | docs | 1 | app | d1 | delivered | -",
            "demo | guide | 1 | app | d1 | complete | guide",
            "demo | lexer | 1 | app | d1 | withdrawn | -",
            "demo | pages | 1 | app | d1 | delivered | -",
            "demo | parser | 2 | app | d2 | published | parser",
            "other | parser | 1 | app | d1 | delivered | -",
        ]
    );
    assert_eq!(
        query(&conn, "SELECT team, proposal, version, member, lenses, seq FROM approvals"),
        ["demo | parser | 2 | sec | [\"design\"] | 9"]
    );
    assert_eq!(
        query(
            &conn,
            "SELECT id, proposal, version, member, text, status, closed_by, reason FROM objections ORDER BY id"
        ),
        [
            "o1 | parser | 1 | arch | wrong | resolved | arch | -",
            "o2 | parser | 2 | arch | wrong | overruled | dana | fine",
            "o3 | docs | 1 | sec | wrong | open | - | -",
        ]
    );
    assert_eq!(query(&conn, "SELECT id, proposal, member, text FROM notes"), ["o4 | docs | sec | nit"]);
    assert_eq!(
        query(&conn, "SELECT id, cause, subject, status, decision, closed_by FROM escalations ORDER BY id"),
        ["e1 | stall | docs | answered | raise-limit | dana", "e2 | stall | lexer | open | - | -"]
    );
}
