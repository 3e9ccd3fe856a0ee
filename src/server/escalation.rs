//! The escalation service.

use std::sync::Arc;

use tonic::{Request, Response, Status};

use super::answer::{Failure, presence, wakes};
use super::call::{Call, answered, request_key};
use super::shared::Shared;
use crate::coordinator::TeamHandle;
use crate::protocol::name::EscalationId;
use crate::protocol::time::Time;
use crate::protocol::{Answer, Command, Team};
use crate::wire::proto::escalation_service_server::EscalationService;
use crate::wire::{Arguments, command, escalation, proto, timestamp};

/// Escalations of one page where the caller doesn't say, and at most.
const PAGE: usize = 100;
const PAGE_MAX: usize = 1_000;

/// The service.
pub(super) struct Escalation(pub(super) Arc<Shared>);

#[tonic::async_trait]
impl EscalationService for Escalation {
    async fn escalate(
        &self,
        request: Request<proto::EscalateRequest>,
    ) -> Result<Response<proto::EscalateResponse>, Status> {
        answered(&self.0, "escalate", request, escalate).await
    }

    async fn list_escalations(
        &self,
        request: Request<proto::ListEscalationsRequest>,
    ) -> Result<Response<proto::ListEscalationsResponse>, Status> {
        answered(&self.0, "list escalations", request, list).await
    }

    async fn answer_escalation(
        &self,
        request: Request<proto::AnswerEscalationRequest>,
    ) -> Result<Response<proto::AnswerEscalationResponse>, Status> {
        answered(&self.0, "answer", request, answer).await
    }
}

async fn escalate(call: Call, request: proto::EscalateRequest) -> Result<proto::EscalateResponse, Failure> {
    let key = request_key(&request)?;
    let done = call.submit(Command::Escalate(command::escalate(request)), key).await?;
    let Answer::Escalated { escalation } = done.answer else { return Err(Failure::unexpected()) };
    Ok(proto::EscalateResponse {
        sequence: done.seq.0,
        escalation: escalation.to_string(),
        woke: wakes(&done.woke),
    })
}

async fn answer(
    call: Call,
    request: proto::AnswerEscalationRequest,
) -> Result<proto::AnswerEscalationResponse, Failure> {
    let key = request_key(&request)?;
    let done = call.submit(Command::AnswerEscalation(command::answer(request)?), key).await?;
    let Answer::EscalationAnswered { escalation } = done.answer else { return Err(Failure::unexpected()) };
    Ok(proto::AnswerEscalationResponse {
        sequence: done.seq.0,
        escalation: escalation.to_string(),
        woke: wakes(&done.woke),
    })
}

async fn list(
    call: Call,
    request: proto::ListEscalationsRequest,
) -> Result<proto::ListEscalationsResponse, Failure> {
    let mut arguments = Arguments::default();
    let after = match request.page_token.as_str() {
        "" => Some(EscalationId(0)),
        token => arguments.read("page_token", token),
    };
    let after = arguments.finish(after)?;
    let size = page_size(request.page_size, PAGE, PAGE_MAX);
    let look = |team: &Team, now: Time| {
        let wanted = |one: &&crate::protocol::escalation::Escalation| {
            one.opened.id > after && (request.all || one.closed.is_none())
        };
        // One more than asked for says whether there is a next page.
        let mut found: Vec<_> = team.escalations().all().filter(wanted).take(size + 1).collect();
        let more = found.len() > size;
        found.truncate(size);
        let last = found.last().filter(|_| more).map(|one| one.opened.id.to_string());
        let judge = call.team.judge();
        let listed = found.into_iter().map(|one| escalation::escalation(team, &*judge, now, one)).collect();
        (listed, last.unwrap_or_default())
    };
    let ((mut escalations, next_page_token), seq): ((Vec<proto::Escalation>, String), _) =
        call.team.read(look).await?;
    show_failing(&call.team, &mut escalations);
    show_presence(&call.team, open_of(&mut escalations));
    Ok(proto::ListEscalationsResponse { sequence: seq.0, escalations, next_page_token })
}

/// Beside what the log says was sent: the channels that don't take it.
pub(super) fn show_failing(team: &TeamHandle, escalations: &mut [proto::Escalation]) {
    for ((id, channel), failing) in team.failing() {
        let id = id.to_string();
        let Some(escalation) = escalations.iter_mut().find(|known| known.id == id) else { continue };
        let known = escalation.deliveries.iter_mut().find(|delivery| delivery.channel == channel);
        let failed = proto::Delivery {
            failures: failing.attempts,
            why: failing.why,
            next_at: Some(timestamp(failing.next_at)),
            ..Default::default()
        };
        match known {
            Some(known) => {
                *known = proto::Delivery { channel, level: known.level, sent_at: known.sent_at, ..failed }
            }
            None => escalation.deliveries.push(proto::Delivery { channel, ..failed }),
        }
    }
}

/// Those on whom something waits that is still open.
pub(super) fn open_of(escalations: &mut [proto::Escalation]) -> impl Iterator<Item = &mut proto::Waiting> {
    let open = |one: &&mut proto::Escalation| one.state() == proto::EscalationState::Open;
    escalations.iter_mut().filter(open).flat_map(|one| &mut one.waiting_on)
}

/// Beside who owes: whether a wake reaches them now.
pub(super) fn show_presence<'a>(team: &TeamHandle, waiting: impl Iterator<Item = &'a mut proto::Waiting>) {
    let roster = team.roster();
    for waiting in waiting {
        let known = roster.iter().find(|(member, ..)| member.as_str() == waiting.member);
        if let Some((_, is, since)) = known {
            waiting.presence = presence(*is).into();
            waiting.present_since = since.map(timestamp);
        }
    }
}

/// What the caller asked for, within bounds; 0 is the default.
pub(super) fn page_size(given: u32, default: usize, max: usize) -> usize {
    match usize::try_from(given) {
        Ok(0) => default,
        given => given.unwrap_or(max).min(max),
    }
}
