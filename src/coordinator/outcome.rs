//! What becomes of a command: what it is answered, or why it isn't.

use super::presence::Wake;
use crate::protocol::name::{Digest, Seq};
use crate::protocol::{Answer, Rejection};

/// What settles a repeated request.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RequestKey {
    /// The caller's own id.
    pub id: String,
    /// SHA-256 of what it asks for.
    pub digest: Digest,
}

/// What an accepted command gets back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Done {
    /// The answer.
    pub answer: Answer,
    /// Members whose obligations it changed.
    pub woke: Vec<Wake>,
    /// What rules that refuse nothing say of it, each with its rule.
    pub called_out: Vec<String>,
    /// The place in the log that the answer reflects.
    pub seq: Seq,
}

/// Why a command was not answered with success.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The protocol's no.
    #[error("{rejection}")]
    Rejected {
        /// It.
        rejection: Rejection,
        /// The place in the log that it reflects.
        seq: Seq,
    },
    /// Nothing was stored, for certain: the store is full, say. Ask again.
    #[error("nothing was stored: {reason}")]
    NotStored {
        /// What the store said.
        reason: String,
    },
    /// Nobody can say whether it was stored. Ask again with the same request id once the server is
    /// back.
    #[error("whether it was stored is unknown: {reason}")]
    Unknown {
        /// What the store said.
        reason: String,
    },
    /// The team's log can't be read.
    #[error("{reason}")]
    Damaged {
        /// What the store said.
        reason: String,
    },
    /// The server is ending; nothing was done.
    #[error("the server is ending")]
    Ended,
}
