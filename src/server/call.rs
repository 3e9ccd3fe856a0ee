//! One call: authenticated, bounded in time, and carried out in a task of its own, so that a caller
//! who goes away leaves nothing half done.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::SemaphorePermit;
use tonic::metadata::MetadataMap;
use tonic::{Code, Request, Response, Status};
use tracing::Instrument;

use super::answer::Failure;
use super::auth;
use super::shared::Shared;
use crate::artifact::Artifacts;
use crate::coordinator::{Done, RequestKey, TeamHandle};
use crate::protocol::Command;
use crate::protocol::name::{Actor, MemberName};
use crate::wire::status_code::status_with_reason;
use crate::wire::{Write, request_id};

/// How long a call may take where its caller says nothing.
pub(super) const TIME_MAX: Duration = Duration::from_secs(30);

/// How long the arrival of a bundle may take where its caller says nothing.
pub(super) const UPLOAD_TIME_MAX: Duration = Duration::from_secs(10 * 60);

/// One call of a member.
pub(super) struct Call {
    pub(super) shared: Arc<Shared>,
    pub(super) team: TeamHandle,
    pub(super) member: MemberName,
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
    let time_max = time_max(request.metadata(), TIME_MAX)?;
    let span = tracing::debug_span!("call", verb, team = %team.name(), %member);
    let call = Call { shared: shared.clone(), team, member };
    carried_out(shared, time_max, span, work(call, request.into_inner())).await
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
    let time_max = time_max(request.metadata(), TIME_MAX)?;
    let span = tracing::debug_span!("call", verb, operator = true);
    carried_out(shared, time_max, span, work(shared.clone(), request.into_inner())).await
}

/// Carries a call out in its own task, for at most that long as far as the caller is concerned: what
/// was begun is finished all the same.
pub(super) async fn carried_out<T, F>(
    shared: &Arc<Shared>,
    time_max: Duration,
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
    match tokio::time::timeout(time_max, task).await {
        Ok(Ok(Ok(answer))) => Ok(Response::new(answer)),
        Ok(Ok(Err(failure))) => Err(failure.into_status(shared.now())),
        Ok(Err(stopped)) => {
            let message = "the call was stopped; the server's log says why";
            Err(Failure::fault(Code::Internal, "INTERNAL", message, &stopped).into_status(shared.now()))
        }
        Err(_) => Err(status_with_reason(
            Code::DeadlineExceeded,
            "OUTCOME_UNKNOWN",
            "the time is up, and the call may still be carried out: ask again with the same request id",
            &[],
        )),
    }
}

/// How long the caller waits, by `grpc-timeout`; `default` where it doesn't say.
pub(super) fn time_max(metadata: &MetadataMap, default: Duration) -> Result<Duration, Status> {
    let Some(value) = metadata.get("grpc-timeout") else { return Ok(default) };
    let parsed = value.to_str().ok().and_then(parse_timeout);
    parsed.map(|given| given.min(default)).ok_or_else(|| {
        status_with_reason(Code::InvalidArgument, "MALFORMED", "grpc-timeout is not of its form", &[])
    })
}

/// 1 to 8 digits and a unit, as the gRPC protocol has it.
fn parse_timeout(text: &str) -> Option<Duration> {
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    if digits.is_empty() || digits.len() > 8 || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let count: u64 = digits.parse().ok()?;
    match unit {
        "H" => Some(Duration::from_secs(count * 3_600)),
        "M" => Some(Duration::from_secs(count * 60)),
        "S" => Some(Duration::from_secs(count)),
        "m" => Some(Duration::from_millis(count)),
        "u" => Some(Duration::from_micros(count)),
        "n" => Some(Duration::from_nanos(count)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timeout_has_digits_and_a_unit() {
        for (text, micros) in
            [("1H", 3_600_000_000), ("2M", 120_000_000), ("30S", 30_000_000), ("5m", 5_000), ("7u", 7)]
        {
            assert_eq!(parse_timeout(text), Some(Duration::from_micros(micros)), "{text}");
        }
        assert_eq!(parse_timeout("9n"), Some(Duration::from_nanos(9)));
        for bad in ["", "S", "1", "1s", "-1S", "123456789S", "1é", "é"] {
            assert_eq!(parse_timeout(bad), None, "{bad}");
        }
    }
}
