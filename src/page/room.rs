//! The routes of the room and the roster: what was said, who can hear, the minutes.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::Response;
use serde_json::{Value, json};

use super::Shared;
use super::api::{Answered, caller, done, fields, number, refused, token, told};
use crate::protocol::room::mention::mentioned;
use crate::wire::minutes::{Reading, Unreadable};
use crate::wire::{json as form, proto};

/// Entries of the transcript that are told at once.
const ENTRIES: u32 = 100;

/// Every member, with whether a wake reaches it now.
pub(super) async fn roster(State(shared): State<Arc<Shared>>, headers: HeaderMap) -> Answered {
    let caller = caller(&shared, &headers)?;
    let asked = caller.asks(proto::GetRosterRequest {});
    let roster = caller.listen().get_roster(asked).await.map_err(refused)?.into_inner();
    let members: Value = roster.members.iter().map(form::member).collect();
    Ok(done(json!({ "members": members, "sequence": roster.sequence })))
}

/// A page of the transcript: the newest, or the one before a sequence.
pub(super) async fn transcript(State(shared): State<Arc<Shared>>, headers: HeaderMap, uri: Uri) -> Answered {
    let caller = caller(&shared, &headers)?;
    let before = number(&uri, "before");
    let asked = proto::ListTranscriptRequest { page_size: ENTRIES, before, ..Default::default() };
    let page = caller.room().list_transcript(caller.asks(asked)).await.map_err(refused)?.into_inner();
    let messages: Value = page.entries.iter().map(form::entry).collect();
    Ok(done(json!({ "messages": messages, "earlier": page.earlier, "sequence": page.sequence })))
}

/// Whom a text would mention, as the core reads it.
pub(super) async fn mentions(State(shared): State<Arc<Shared>>, headers: HeaderMap, body: Bytes) -> Answered {
    token(&shared, &headers)?;
    let given = fields(&body)?;
    Ok(done(json!({ "names": mentioned(given.text("text")) })))
}

/// The minutes of a phase or a circle, from the log alone.
pub(super) async fn minutes(
    State(shared): State<Arc<Shared>>,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Answered {
    let caller = caller(&shared, &headers)?;
    let mut reading = Reading::default();
    while let Some(page) = reading.wants() {
        let page = caller.log().list_events(caller.asks(page)).await.map_err(refused)?.into_inner();
        reading.take(&page).map_err(|fault| unreadable(&fault))?;
    }
    let (minutes, sequence) = reading.done();
    let text = minutes.of(&name).map_err(|violation| {
        told(StatusCode::NOT_FOUND, violation.code(), &violation.to_string(), &violation.remedy())
    })?;
    Ok(done(json!({ "name": name, "minutes": text, "sequence": sequence })))
}

fn unreadable(fault: &Unreadable) -> Response {
    tracing::error!(%fault, "the log can't be read for the page");
    let message = "the log holds what this program can't read";
    told(StatusCode::INTERNAL_SERVER_ERROR, "EVENT_UNREADABLE", message, "the operator can look into the log")
}
