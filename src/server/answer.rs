//! Why a call isn't answered with success, and what is told of it.

use prost_types::Timestamp;
use tonic::{Code, Status};

use super::operator::{OperatorFault, chain};
use crate::artifact;
use crate::coordinator::{self, Refusal, Wake};
use crate::protocol::time::Time;
use crate::protocol::{Rejection, Violation};
use crate::store::Fault;
use crate::wire::status_code::{status_of, status_with_reason, status_with_remedy};
use crate::wire::{proto, timestamp};

/// Why a call isn't answered with success. Rejections are the protocol's no; the rest is a fault, and
/// was logged.
#[derive(Debug)]
pub(super) enum Failure {
    Rejected(Rejection),
    Status(Box<Status>),
}

impl Failure {
    /// With details of at most `bytes`.
    pub(super) fn into_status(self, now: Time, bytes: usize) -> Status {
        match self {
            Self::Rejected(rejection) => status_of(&rejection, now, bytes),
            Self::Status(status) => *status,
        }
    }

    /// A fault that is told by its kind alone: what the system said stays in the server's log.
    pub(super) fn fault(code: Code, reason: &str, message: &str, fault: &dyn std::error::Error) -> Self {
        tracing::error!(reason, fault = chain(fault), "a call met a fault");
        status_with_reason(code, reason, message, &[]).into()
    }

    /// The answer is of another kind than the command: the coordinator's mistake.
    pub(super) fn unexpected() -> Self {
        tracing::error!("an answer is of another kind than its command");
        status_with_reason(Code::Internal, "INTERNAL", "the answer is of another kind than the command", &[])
            .into()
    }
}

impl From<Status> for Failure {
    fn from(status: Status) -> Self {
        Self::Status(Box::new(status))
    }
}

impl From<Rejection> for Failure {
    fn from(rejection: Rejection) -> Self {
        Self::Rejected(rejection)
    }
}

impl From<Violation> for Failure {
    fn from(violation: Violation) -> Self {
        Self::Rejected(violation.into())
    }
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        let (code, reason) = match refusal {
            Refusal::Rejected { rejection, .. } => return Self::Rejected(rejection),
            Refusal::NotStored { .. } => (Code::Unavailable, "NOT_STORED"),
            Refusal::Unknown { .. } => (Code::Unavailable, "OUTCOME_UNKNOWN"),
            Refusal::Ended => (Code::Unavailable, "SERVER_ENDING"),
            Refusal::Damaged { .. } => (Code::DataLoss, "LOG_DAMAGED"),
        };
        status_with_reason(code, reason, &refusal.to_string(), &[]).into()
    }
}

impl From<Fault> for Failure {
    fn from(fault: Fault) -> Self {
        tracing::error!(%fault, "the store met a fault");
        let seq = match &fault {
            Fault::Damaged { seq, .. } => Some(*seq),
            // The first row that can't be trusted is the one that should follow.
            Fault::Cut { found, .. } => Some(crate::protocol::name::Seq(found.0 + 1)),
            _ => None,
        };
        match seq {
            Some(seq) => {
                let metadata = [("sequence", seq.to_string())];
                status_with_reason(Code::DataLoss, "LOG_DAMAGED", &fault.to_string(), &metadata).into()
            }
            None => status_with_reason(Code::Unavailable, "STORE_UNUSABLE", &fault.to_string(), &[]).into(),
        }
    }
}

impl From<artifact::Failure> for Failure {
    fn from(failure: artifact::Failure) -> Self {
        match failure {
            artifact::Failure::Refused(refused) => of_refused(refused),
            artifact::Failure::Fault(fault @ artifact::Fault::Damaged { .. }) => {
                let message = "stored files are damaged; the server's log says which";
                Self::fault(Code::DataLoss, "ARTIFACT_DAMAGED", message, &fault)
            }
            artifact::Failure::Fault(fault) => {
                let message = "the artifact could not be looked at; the server's log says why";
                Self::fault(Code::Internal, "ARTIFACT_FAULT", message, &fault)
            }
        }
    }
}

/// What the artifacts don't take, in the protocol's words.
fn of_refused(refused: artifact::Refused) -> Failure {
    use artifact::Refused;
    let words = refused.to_string();
    let violation = match refused {
        Refused::NotStaged { commit } => Violation::NotStaged { commit: commit.to_string() },
        Refused::NotACommit { digest, found } => Violation::Malformed {
            argument: "digest".to_owned(),
            expected: format!("a commit, but a {found}"),
            given: digest.to_string(),
            form: "the full id of a commit".to_owned(),
        },
        Refused::Unknown { digest } => {
            Violation::UnknownSubject { subject: digest.to_string(), nearest: String::new() }
        }
        Refused::NoRepository => {
            Violation::ArtifactKindUnfit { given: "commit".to_owned(), wanted: "bundle".to_owned() }
        }
        Refused::TooLarge { what, count, limit } => Violation::ArtifactTooLarge { what, found: count, limit },
        Refused::UnsafePath { path, why } | Refused::PathTaken { path, why } => {
            Violation::PathUnsafe { path: path.to_string(), because: format!("it {why}") }
        }
        Refused::NotAFile { path, found } => Violation::PathUnsafe {
            path: path.to_string(),
            because: format!("it is {found}, and only files are taken"),
        },
        Refused::RefName { .. }
        | Refused::Unpinnable { .. }
        | Refused::Pinned { .. }
        | Refused::NotEmpty { .. } => {
            return Failure::fault(Code::Internal, "ARTIFACT_FAULT", &words, &refused);
        }
    };
    violation.into()
}

impl From<OperatorFault> for Failure {
    fn from(fault: OperatorFault) -> Self {
        let code = match &fault {
            OperatorFault::Charter(_) | OperatorFault::TeamNeeded { .. } => Code::InvalidArgument,
            OperatorFault::UnknownTeam { .. }
            | OperatorFault::NoTeam
            | OperatorFault::UnknownMember { .. } => Code::NotFound,
            OperatorFault::TeamTaken { .. } => Code::AlreadyExists,
            OperatorFault::Rules(_)
            | OperatorFault::NoRepository { .. }
            | OperatorFault::Repository { .. }
            | OperatorFault::Pinned { .. } => Code::FailedPrecondition,
            OperatorFault::Home(_)
            | OperatorFault::Artifacts { .. }
            | OperatorFault::Store(_)
            | OperatorFault::NotAdopted { .. } => {
                tracing::error!(%fault, "the operator's command met a fault");
                Code::Unavailable
            }
        };
        status_with_remedy(code, fault.code(), &fault.to_string(), &fault.remedy()).into()
    }
}

/// Whose obligations a command changed, as messages.
pub(super) fn wakes(woke: &[Wake]) -> Vec<proto::Wake> {
    woke.iter().map(wake).collect()
}

fn wake(wake: &Wake) -> proto::Wake {
    let outcome = match wake.outcome {
        coordinator::WakeOutcome::Woke => proto::WakeOutcome::Woke,
        coordinator::WakeOutcome::Stored => proto::WakeOutcome::Stored,
    };
    let presence = presence(wake.presence);
    let since: Option<Timestamp> = wake.since.map(timestamp);
    proto::Wake { member: wake.member.to_string(), outcome: outcome.into(), presence: presence.into(), since }
}

/// Whether a wake reaches a member, as the wire has it.
pub(super) fn presence(presence: coordinator::Presence) -> proto::Presence {
    match presence {
        coordinator::Presence::Listening => proto::Presence::Listening,
        coordinator::Presence::Thinking => proto::Presence::Thinking,
        coordinator::Presence::ReArming => proto::Presence::ReArming,
        coordinator::Presence::Deaf => proto::Presence::Deaf,
        coordinator::Presence::Offline => proto::Presence::Offline,
        coordinator::Presence::NotJoined => proto::Presence::NotJoined,
    }
}
