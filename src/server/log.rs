//! The log service: what happened, in order, and the proof that nothing of it was changed.

use std::sync::Arc;

use tonic::{Request, Response, Status};

use super::answer::Failure;
use super::call::{Call, answered, blocking};
use super::escalation::page_size;
use super::shared::Shared;
use crate::protocol::name::Seq;
use crate::store::Row;
use crate::wire::proto::log_service_server::LogService;
use crate::wire::{proto, timestamp};

/// Events of one page where the caller doesn't say, and at most.
const PAGE: usize = 100;
const PAGE_MAX: usize = 1_000;

/// Bodies of one page, in bytes: a page ends with the event that reaches it.
const PAGE_BYTES: usize = 1 << 20;

/// The service.
pub(super) struct Log(pub(super) Arc<Shared>);

#[tonic::async_trait]
impl LogService for Log {
    async fn list_events(
        &self,
        request: Request<proto::ListEventsRequest>,
    ) -> Result<Response<proto::ListEventsResponse>, Status> {
        answered(&self.0, "list events", request, list).await
    }

    async fn verify_log(
        &self,
        request: Request<proto::VerifyLogRequest>,
    ) -> Result<Response<proto::VerifyLogResponse>, Status> {
        answered(&self.0, "verify", request, verify).await
    }
}

async fn list(call: Call, request: proto::ListEventsRequest) -> Result<proto::ListEventsResponse, Failure> {
    let (reader, team) = (call.shared.coordinator.reader(), call.team.name().clone());
    let from = Seq(request.from.max(1));
    let size = page_size(request.page_size, PAGE, PAGE_MAX);
    let read = move || Ok::<_, crate::store::Fault>((reader.rows(&team, from, size)?, reader.head(&team)?));
    let (rows, head) = blocking(read).await??;
    let mut bytes = 0;
    let mut events = Vec::with_capacity(rows.len());
    for row in rows {
        if bytes >= PAGE_BYTES {
            break;
        }
        bytes += row.body.len();
        events.push(event(row));
    }
    let last = events.last().map_or(head.seq.0, |event| event.sequence);
    let next = if last < head.seq.0 { last + 1 } else { 0 };
    Ok(proto::ListEventsResponse { sequence: head.seq.0, events, next })
}

async fn verify(call: Call, _request: proto::VerifyLogRequest) -> Result<proto::VerifyLogResponse, Failure> {
    let (reader, team) = (call.shared.coordinator.reader(), call.team.name().clone());
    let head = blocking(move || reader.verify(&team)).await??;
    Ok(proto::VerifyLogResponse { sequence: head.seq.0, chain: head.chain.to_string() })
}

/// One event of the log, its body byte for byte as it was chained.
pub(super) fn event(row: Row) -> proto::Event {
    proto::Event {
        sequence: row.seq.0,
        at: Some(timestamp(row.at)),
        actor: row.actor.to_string(),
        kind: row.kind.into_owned(),
        schema: row.schema,
        body: row.body,
    }
}
