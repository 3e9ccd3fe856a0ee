//! The stream: what is stored, as it is stored, from a sequence on. A page that was cut off asks again from the last
//! one that it had.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::IntoResponse;
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};
use tokio_stream::StreamExt;
use tokio_stream::wrappers::ReceiverStream;

use super::Shared;
use super::api::{Answered, nobody, number, token, told};
use super::calls::Caller;
use crate::coordinator::place::{Full, Place};
use crate::coordinator::token::Token;
use crate::protocol::name::Seq;
use crate::wire::proto;

/// How long nothing is said while nothing happens. It also bounds how long an ended token goes on.
const SILENCE_MAX: Duration = Duration::from_secs(10);

/// Events of one piece.
const EVENTS_MAX: u32 = 200;

/// Pieces that wait for a slow reader. What is behind them waits in the log.
const PIECES_MAX: usize = 2;

pub(super) async fn stream(State(shared): State<Arc<Shared>>, headers: HeaderMap, uri: Uri) -> Answered {
    let token = token(&shared, &headers)?;
    let (team, member) = shared.coordinator.authenticate(&token).ok_or_else(nobody)?;
    let place = shared.streams.try_take(team.name(), &member).map_err(|full| {
        let message = match full {
            Full::OfMember => "as many of your pages are open as may at the same time",
            Full::All => "as many pages are open as may at the same time",
        };
        told(StatusCode::TOO_MANY_REQUESTS, "STREAMS_MAX", message, "close a page, then reload this one")
    })?;
    let after = number(&uri, "after");
    let (pieces, receiver) = mpsc::channel(PIECES_MAX);
    tokio::spawn(follow(shared, token, after, pieces, place));
    let body = Body::from_stream(ReceiverStream::new(receiver).map(Ok::<_, Infallible>));
    Ok(([(header::CONTENT_TYPE, "text/event-stream")], body).into_response())
}

/// Sends until the page goes away, the server ends, or the token does.
async fn follow(
    shared: Arc<Shared>,
    token: Token,
    mut after: u64,
    pieces: mpsc::Sender<Bytes>,
    _place: Place,
) {
    let mut ending = shared.ending.clone();
    let caller = Caller::of(&shared.services, &token);
    // Said at once, so that whoever is in between passes on that the stream stands.
    if pieces.send(Bytes::from_static(b": it stands\n\n")).await.is_err() {
        return;
    }
    // A log that is shorter than what the page has seen is another one: a backup was put back. Whoever has no token any
    // longer is told so below.
    if let Some((team, _)) = shared.coordinator.authenticate(&token) {
        let Ok(((), head)) = team.read(|_, _| ()).await else { return };
        if after > head.0 {
            after = head.0;
            let piece = format!("event: anew\nid: {after}\ndata: {{\"sequence\":{after}}}\n\n");
            if pieces.send(Bytes::from(piece)).await.is_err() {
                return;
            }
        }
    }
    loop {
        // Asked each time: a token that ended is nobody's, and a team that slept has another handle.
        let Some((team, _)) = shared.coordinator.authenticate(&token) else {
            let _ = pieces.send(Bytes::from_static(b"event: signed-out\ndata: {}\n\n")).await;
            return;
        };
        let stored = tokio::time::timeout(SILENCE_MAX, team.wait_until_stored(Seq(after.saturating_add(1))));
        let piece = tokio::select! {
            () = ended(&mut ending) => return,
            () = pieces.closed() => return,
            stored = stored => match stored {
                Ok(Ok(())) => match since(&caller, after).await {
                    Some((last, piece)) => {
                        after = last;
                        piece
                    }
                    // The token may have ended since it was asked.
                    None if shared.coordinator.authenticate(&token).is_none() => continue,
                    None => return,
                },
                Ok(Err(_)) => return,
                Err(_) => Bytes::from_static(b": nothing happens\n\n"),
            },
        };
        if pieces.send(piece).await.is_err() {
            return;
        }
    }
}

/// Resolves once the page ends.
pub(super) async fn ended(ending: &mut watch::Receiver<bool>) {
    let _ = ending.wait_for(|ending| *ending).await.map(|_| ());
}

/// The events after that sequence as one piece, and its last one's sequence. The page looks for itself: of each it is
/// told which kind it is.
async fn since(caller: &Caller, after: u64) -> Option<(u64, Bytes)> {
    let asked = proto::ListEventsRequest { from: after.saturating_add(1), page_size: EVENTS_MAX };
    let page = caller.log().list_events(caller.asks(asked)).await.ok()?.into_inner();
    let last = page.events.last()?.sequence;
    let events = page.events.iter().map(|event| json!({ "sequence": event.sequence, "kind": event.kind }));
    let events: Value = events.collect();
    let data = json!({ "sequence": last, "head": page.sequence, "events": events });
    // JSON has no line break outside of its escapes.
    Some((last, Bytes::from(format!("id: {last}\ndata: {data}\n\n"))))
}
