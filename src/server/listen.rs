//! The listen service: who owes something is woken.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio_stream::Stream;
use tonic::{Code, Request, Response, Status};

use super::answer::{Failure, presence};
use super::auth;
use super::call::{Call, answered};
use super::log::event;
use super::shared::Shared;
use crate::coordinator::{Arming, Listening, Narrowed, Said, Turned, Waking};
use crate::protocol::name::Seq;
use crate::protocol::time::Time;
use crate::wire::proto::listen_response::Said as Sent;
use crate::wire::proto::listen_service_server::ListenService;
use crate::wire::status::obligation;
use crate::wire::status_code::{details_room, status_with_reason};
use crate::wire::{listen as read, proto, timestamp};

/// The service.
pub(super) struct Listen(pub(super) Arc<Shared>);

type Next = Pin<Box<dyn Future<Output = (Listening, Option<Result<Said, Turned>>)> + Send>>;

/// What one listener hears. It needs no task of its own: it runs when its bell rings.
pub(super) struct Heard {
    next: Option<Next>,
    /// Bytes of details that the caller takes.
    room: usize,
}

impl Heard {
    fn of(listening: Listening, room: usize) -> Self {
        Self { next: Some(Box::pin(next(listening))), room }
    }
}

async fn next(mut listening: Listening) -> (Listening, Option<Result<Said, Turned>>) {
    let said = listening.next().await;
    (listening, said)
}

impl Stream for Heard {
    type Item = Result<proto::ListenResponse, Status>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Some(pending) = &mut self.next else { return Poll::Ready(None) };
        let (listening, said) = ready!(pending.as_mut().poll(context));
        let said = said.map(|said| said.map(self::said).map_err(|why| turned(why, self.room)));
        self.next = matches!(said, Some(Ok(_))).then(|| Box::pin(next(listening)) as Next);
        Poll::Ready(said)
    }
}

#[tonic::async_trait]
impl ListenService for Listen {
    type ListenStream = Heard;

    async fn listen(&self, request: Request<proto::ListenRequest>) -> Result<Response<Heard>, Status> {
        // Whom the caller takes itself to be is looked at too.
        auth::member(&self.0, request.metadata())?;
        let token = auth::bearer(request.metadata())?;
        let room = details_room(request.metadata());
        let request = request.into_inner();
        let narrowed = read::narrowed(&request);
        let (subjects, kinds) =
            narrowed.map_err(|refused| Failure::from(refused).into_status(self.0.now(), room))?;
        let arming = Arming {
            narrowed: Narrowed { subjects, kinds },
            watch: request.watch,
            own: request.own.into_iter().collect(),
        };
        let watched = (request.watched > 0).then_some(Seq(request.watched));
        let listening = self.0.coordinator.listen(&token, arming, request.stays, watched);
        Ok(Response::new(Heard::of(listening.map_err(|why| turned(why, room))?, room)))
    }

    async fn acknowledge(
        &self,
        request: Request<proto::AcknowledgeRequest>,
    ) -> Result<Response<proto::AcknowledgeResponse>, Status> {
        answered(&self.0, "acknowledge", request, acknowledge).await
    }

    async fn get_roster(
        &self,
        request: Request<proto::GetRosterRequest>,
    ) -> Result<Response<proto::GetRosterResponse>, Status> {
        answered(&self.0, "roster", request, roster).await
    }
}

async fn acknowledge(
    call: Call,
    request: proto::AcknowledgeRequest,
) -> Result<proto::AcknowledgeResponse, Failure> {
    let done = call.team.acknowledge(&call.member, read::acknowledge(request)?).await?;
    Ok(proto::AcknowledgeResponse { sequence: done.seq.0 })
}

async fn roster(call: Call, _request: proto::GetRosterRequest) -> Result<proto::GetRosterResponse, Failure> {
    let judge = call.team.judge();
    let (owed, seq) = call.team.read(|team, now| team.all_obligations(&*judge, now)).await?;
    let entry = |(name, is, since): (crate::protocol::name::MemberName, _, Option<_>)| proto::RosterEntry {
        owes: u32::try_from(owed.iter().filter(|owed| owed.member == name).count()).unwrap_or(u32::MAX),
        name: name.to_string(),
        presence: presence(is).into(),
        since: since.map(timestamp),
    };
    Ok(proto::GetRosterResponse {
        sequence: seq.0,
        members: call.team.roster().into_iter().map(entry).collect(),
    })
}

fn said(said: Said) -> proto::ListenResponse {
    let said = match said {
        Said::Armed { seq } => Sent::Armed(proto::Armed { sequence: seq.0 }),
        Said::Woken(waking) => Sent::Waking(self::waking(*waking)),
        Said::Own(own) => Sent::Own(proto::Own { obligations: own.into_iter().collect() }),
    };
    proto::ListenResponse { said: Some(said) }
}

fn waking(waking: Waking) -> proto::Waking {
    let Waking { due, events, watched, seq } = waking;
    // Oldest first, as what is owed.
    let woke_by = due.owed.iter().filter(|owed| due.fresh.contains(&owed.id)).map(|owed| owed.id.clone());
    proto::Waking {
        wake: due.wake.to_string(),
        woke_by: woke_by.collect(),
        obligations: due.owed.iter().map(obligation).collect(),
        events: events.into_iter().map(event).collect(),
        watched: watched.unwrap_or_default().0,
        sequence: seq.0,
    }
}

fn turned(turned: Turned, room: usize) -> Status {
    // Nothing of it has a time that could be told from now.
    let status = |failure: Failure| failure.into_status(Time(0), room);
    match turned {
        Turned::Unmet(rejection) => status(rejection.into()),
        Turned::Stranger => {
            status_with_reason(Code::Unauthenticated, "UNAUTHENTICATED", &turned.to_string(), &[])
        }
        Turned::Refused(refusal) => status(refusal.into()),
    }
}
