//! One call: authenticated, bounded in time, and carried out in a task of its own, so that a caller
//! who goes away leaves nothing half done.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::SemaphorePermit;
use tonic::{Code, Request, Response, Status};
use tracing::Instrument;

use super::answer::Failure;
use super::auth;
use super::shared::Shared;
use crate::artifact::Artifacts;
use crate::coordinator::{Done, RequestKey, TeamHandle};
use crate::protocol::Command;
use crate::protocol::name::{Actor, MemberName};
use crate::wire::status_code::{details_room, status_with_reason};
use crate::wire::{Write, request_id};

/// How long a call may take. A caller who gives less time, by `grpc-timeout`, is let go by tonic then.
pub(super) const TIME_MAX: Duration = Duration::from_secs(30);

/// How long the arrival of a bundle may take.
pub(super) const UPLOAD_TIME_MAX: Duration = Duration::from_secs(10 * 60);

/// One call of a member.
pub(super) struct Call {
    pub(super) shared: Arc<Shared>,
    pub(super) team: TeamHandle,
    pub(super) member: MemberName,
    /// Details of a refusal, in bytes.
    pub(super) details: usize,
}

impl Call {
    /// Has a command decided and stored.
    pub(super) async fn submit(&self, command: Command, key: Option<RequestKey>) -> Result<Done, Failure> {
        Ok(self.team.submit(Actor::Member(self.member.clone()), command, key).await?)
    }

    /// Whether a command with this request id was accepted and stored before.
    pub(super) async fn was_answered(&self, key: &RequestKey) -> Result<bool, Failure> {
        let reader = self.shared.coordinator.reader();
        let (team, id) = (self.team.name().clone(), key.id.clone());
        let who = Actor::Member(self.member.clone());
        Ok(blocking(move || reader.request(&team, &who, &id)).await??.is_some())
    }

    /// What the team's versions are made of.
    pub(super) fn artifacts(&self) -> Result<Arc<Artifacts>, Failure> {
        self.shared.artifacts(self.team.name()).ok_or_else(|| {
            let message = "the team is being added; ask again";
            status_with_reason(Code::Unavailable, "TEAM_BEGINNING", message, &[]).into()
        })
    }

    /// A turn to look at artifacts.
    pub(super) async fn turn(&self) -> SemaphorePermit<'_> {
        self.shared.looks.acquire().await.expect(NEVER_CLOSED)
    }
}

pub(super) const NEVER_CLOSED: &str = "nobody closes this semaphore";

/// The key that settles a repetition of this request.
pub(super) fn request_key<W: Write>(request: &W) -> Result<Option<RequestKey>, Failure> {
    Ok(request_id(request)?.map(|(id, digest)| RequestKey { id, digest }))
}

/// Does what blocks on a thread of its own.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Failure> {
    tokio::task::spawn_blocking(work).await.map_err(|stopped| {
        Failure::fault(
            Code::Internal,
            "INTERNAL",
            "the call was stopped; the server's log says why",
            &stopped,
        )
    })
}

/// Answers one call of a member.
pub(super) async fn answered<M, T, W, F>(
    shared: &Arc<Shared>,
    verb: &'static str,
    request: Request<M>,
    work: W,
) -> Result<Response<T>, Status>
where
    T: Send + 'static,
    W: FnOnce(Call, M) -> F,
    F: Future<Output = Result<T, Failure>> + Send + 'static,
{
    let (team, member) = auth::member(shared, request.metadata())?;
    let bounds = Bounds { time: TIME_MAX, details: details_room(request.metadata()) };
    let span = tracing::debug_span!("call", verb, team = %team.name(), %member);
    let call = Call { shared: shared.clone(), team, member, details: bounds.details };
    carried_out(shared, bounds, span, work(call, request.into_inner())).await
}

/// Answers one call of the operator.
pub(super) async fn answered_to_operator<M, T, W, F>(
    shared: &Arc<Shared>,
    verb: &'static str,
    request: Request<M>,
    work: W,
) -> Result<Response<T>, Status>
where
    T: Send + 'static,
    W: FnOnce(Arc<Shared>, M) -> F,
    F: Future<Output = Result<T, Failure>> + Send + 'static,
{
    auth::operator(shared, request.metadata())?;
    let bounds = Bounds { time: TIME_MAX, details: details_room(request.metadata()) };
    let span = tracing::debug_span!("call", verb, operator = true);
    carried_out(shared, bounds, span, work(shared.clone(), request.into_inner())).await
}

/// Answers one call of whoever may ask about that team.
pub(super) async fn answered_about<M, T, W, F>(
    shared: &Arc<Shared>,
    team: TeamHandle,
    verb: &'static str,
    request: Request<M>,
    work: W,
) -> Result<Response<T>, Status>
where
    T: Send + 'static,
    W: FnOnce(TeamHandle, M) -> F,
    F: Future<Output = Result<T, Failure>> + Send + 'static,
{
    let bounds = Bounds { time: TIME_MAX, details: details_room(request.metadata()) };
    let span = tracing::debug_span!("call", verb, team = %team.name(), reader = true);
    carried_out(shared, bounds, span, work(team, request.into_inner())).await
}

/// What one call may take.
#[derive(Clone, Copy)]
pub(super) struct Bounds {
    pub(super) time: Duration,
    /// Details of its refusal, in bytes.
    pub(super) details: usize,
}

/// Carries a call out in its own task, for at most that long as far as the caller is concerned: what
/// was begun is finished all the same.
pub(super) async fn carried_out<T, F>(
    shared: &Arc<Shared>,
    bounds: Bounds,
    span: tracing::Span,
    work: F,
) -> Result<Response<T>, Status>
where
    T: Send + 'static,
    F: Future<Output = Result<T, Failure>> + Send + 'static,
{
    let calls = shared.calls.clone();
    let task = async move {
        let permit = calls.acquire_owned().await.expect(NEVER_CLOSED);
        // The permit lives as long as the task, not as long as the caller.
        let task = tokio::spawn(
            async move {
                let answer = work.await;
                drop(permit);
                match &answer {
                    Ok(_) => tracing::debug!("done"),
                    Err(Failure::Rejected(rejection)) => tracing::debug!(code = rejection.code(), "rejected"),
                    Err(Failure::Status(status)) => tracing::debug!(code = %status.code(), "not done"),
                }
                answer
            }
            .instrument(span),
        );
        task.await
    };
    match tokio::time::timeout(bounds.time, task).await {
        Ok(Ok(Ok(answer))) => Ok(Response::new(answer)),
        Ok(Ok(Err(failure))) => Err(failure.into_status(shared.now(), bounds.details)),
        Ok(Err(stopped)) => {
            let message = "the call was stopped; the server's log says why";
            Err(Failure::fault(Code::Internal, "INTERNAL", message, &stopped)
                .into_status(shared.now(), bounds.details))
        }
        Err(_) => Err(status_with_reason(
            Code::DeadlineExceeded,
            "OUTCOME_UNKNOWN",
            "the time is up, and the call may still be carried out: ask again with the same request id",
            &[],
        )),
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;

    use super::*;
    use crate::artifact::TeamArtifacts;
    use crate::coordinator::{Coordinator, HandClock};
    use crate::home::Home;
    use crate::judge::CelRulebook;
    use crate::protocol::name::Digest;
    use crate::protocol::time::Time;
    use crate::store::memory::MemoryStore;

    #[tokio::test]
    async fn what_was_begun_is_finished_also_when_the_caller_is_told_that_its_time_is_up() {
        let store = MemoryStore::new();
        let (writer, reader) = (store.writer().unwrap(), store.reader());
        let judge = Arc::new(CelRulebook::default());
        let clock = Arc::new(HandClock::at(Time(0)));
        let coordinator = Coordinator::start(Box::new(writer), Arc::new(reader), judge, clock).unwrap();
        let (home, operator) = (Home::at("/nowhere"), Digest::of_bytes([0; 32]));
        let shared = Arc::new(Shared::new(coordinator, home, operator, TeamArtifacts::default(), None));

        let (go, gone) = oneshot::channel::<()>();
        let (finish, finished) = oneshot::channel();
        let work = async move {
            gone.await.unwrap();
            finish.send("finished").unwrap();
            Ok(())
        };
        let bounds = Bounds { time: Duration::ZERO, details: 0 };
        let answer = carried_out(&shared, bounds, tracing::Span::none(), work).await.unwrap_err();
        assert_eq!(answer.code(), Code::DeadlineExceeded);
        assert_eq!(crate::wire::reason_of(&answer).as_deref(), Some("OUTCOME_UNKNOWN"));
        go.send(()).unwrap();
        assert_eq!(finished.await, Ok("finished"));
    }
}
