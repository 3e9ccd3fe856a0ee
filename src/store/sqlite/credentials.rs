//! Credentials as the database holds them. They stand outside the logs, so each is sealed by itself: one
//! that was changed by hand or by a disk speaks for nobody, and the store says so.

use rusqlite::{Connection, OptionalExtension, params};
use sha2::{Digest as _, Sha256};

use super::connection::failed;
use super::log::{bytes_of, digest_of, team_id};
use crate::protocol::name::{Digest, MemberName, TeamName};
use crate::protocol::time::Time;
use crate::store::chain::field;
use crate::store::{Credential, Fault};

const SEAL_TAG: &[u8] = b"countersign credential 1";

/// Stores one. It must not be there yet.
pub(super) fn insert(conn: &Connection, credential: &Credential) -> Result<(), Fault> {
    let storing = |error: rusqlite::Error| failed("storing a credential", &error);
    let team = team_id(conn, &credential.team)?;
    let hash = bytes_of(&credential.hash);
    let known: Option<i64> = conn
        .query_row("SELECT 1 FROM credentials WHERE hash = ?1", [&hash], |row| row.get(0))
        .optional()
        .map_err(storing)?;
    if known.is_some() {
        return Err(Fault::Failed { what: "the credential is stored already".to_owned() });
    }
    conn.execute(
        "INSERT INTO credentials (hash, team, member, issued_at, revoked_at, seal, of_page) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        params![
            hash,
            team,
            credential.member.as_str(),
            credential.issued_at.0,
            credential.revoked_at.map(|at| at.0),
            seal(credential),
            credential.of_page,
        ],
    )
    .map_err(storing)?;
    Ok(())
}

/// Ends those of that member that are not ended yet, and says how many.
pub(super) fn revoke(
    conn: &Connection,
    team: &TeamName,
    member: &MemberName,
    at: Time,
) -> Result<usize, Fault> {
    team_id(conn, team)?;
    let open: Vec<Credential> = all(conn)?
        .into_iter()
        .filter(|known| known.team == *team && known.member == *member && known.revoked_at.is_none())
        .collect();
    for credential in &open {
        end(conn, credential, at)?;
    }
    Ok(open.len())
}

/// Ends the one of that hash, unless it is ended or unknown; says whether it did.
pub(super) fn revoke_one(conn: &Connection, hash: &Digest, at: Time) -> Result<bool, Fault> {
    let known = all(conn)?.into_iter().find(|known| known.hash == *hash && known.revoked_at.is_none());
    known.as_ref().map(|credential| end(conn, credential, at)).transpose().map(|ended| ended.is_some())
}

fn end(conn: &Connection, credential: &Credential, at: Time) -> Result<(), Fault> {
    let ended = Credential { revoked_at: Some(at), ..credential.clone() };
    conn.execute(
        "UPDATE credentials SET revoked_at = ?2, seal = ?3 WHERE hash = ?1",
        params![bytes_of(&ended.hash), at.0, seal(&ended)],
    )
    .map_err(|error| failed("ending a credential", &error))?;
    Ok(())
}

type Columns = (Vec<u8>, String, String, i64, Option<i64>, bool, Vec<u8>);

/// All of them, each with its seal checked.
pub(super) fn all(conn: &Connection) -> Result<Vec<Credential>, Fault> {
    let read = || -> rusqlite::Result<Vec<Columns>> {
        // Form 1 knew no pages.
        let of_page: String = conn.query_row(
            "SELECT coalesce(max(name), '0') FROM pragma_table_info('credentials') WHERE name = 'of_page'",
            [],
            |row| row.get(0),
        )?;
        let mut statement = conn.prepare_cached(&format!(
            "SELECT hash, coalesce(teams.name, ''), member, issued_at, revoked_at, seal, {of_page} \
             FROM credentials LEFT JOIN teams ON teams.id = team ORDER BY issued_at, hash",
        ))?;
        let columns = statement.query_map([], |row| {
            let (of_page, stored) = (row.get(6)?, row.get(5)?);
            Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?, of_page, stored))
        })?;
        columns.collect()
    };
    let stored = read().map_err(|error| failed("reading the credentials", &error))?;
    stored.into_iter().map(unseal).collect::<Result<_, _>>().map_err(|what| Fault::Failed { what })
}

fn unseal(
    (hash, team, member, issued_at, revoked_at, of_page, stored): Columns,
) -> Result<Credential, String> {
    let damaged = || "a credential is damaged: it does not match its seal".to_owned();
    let credential = Credential {
        hash: digest_of(&hash).map_err(|_| damaged())?,
        team: team.parse().map_err(|_| damaged())?,
        member: member.parse().map_err(|_| damaged())?,
        issued_at: Time(issued_at),
        revoked_at: revoked_at.map(Time),
        of_page,
    };
    if seal(&credential).as_slice() != stored {
        return Err(damaged());
    }
    Ok(credential)
}

fn seal(credential: &Credential) -> [u8; 32] {
    let mut hash = Sha256::new();
    field(&mut hash, SEAL_TAG);
    field(&mut hash, credential.hash.as_str().as_bytes());
    field(&mut hash, credential.team.as_str().as_bytes());
    field(&mut hash, credential.member.as_str().as_bytes());
    field(&mut hash, &credential.issued_at.0.to_be_bytes());
    match credential.revoked_at {
        None => field(&mut hash, &[]),
        Some(at) => field(&mut hash, &at.0.to_be_bytes()),
    }
    // The seals of form 1 hold for all others.
    if credential.of_page {
        field(&mut hash, b"page");
    }
    hash.finalize().into()
}
