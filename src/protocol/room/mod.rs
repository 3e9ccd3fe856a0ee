//! The room domain: messages, mentions, claims and the verdicts on them.
//!
//! In reading order: [`command`] what may be asked; [`event`] what happened; [`state`] what events add up to; the
//! decisions, [`say`](fn@say) and `judge_claim`, with [`mention`], which finds whom a text names; `apply`; and
//! [`obligations`](fn@obligations).

mod apply;
pub mod command;
pub mod event;
mod judge_claim;
pub mod mention;
mod obligations;
mod say;
pub mod state;

pub use command::{JudgeClaim, Say};
pub use event::{ClaimJudged, Evidence, Said, Verdict};
pub use say::CHAIN_MAX;
pub use state::{Message, Room};

pub(super) use judge_claim::judge_claim;
pub(super) use obligations::obligations;
pub(super) use say::say;

use super::name::MessageId;
use super::rejection::Violation;
use super::team::Ask;

impl Room {
    /// The message of that id, or that nobody said it.
    pub fn known_message(&self, id: MessageId) -> Result<&Message, Violation> {
        let nearest = || self.last().map(|last| last.to_string());
        self.message(id).ok_or_else(|| Violation::UnknownSubject {
            subject: id.to_string(),
            nearest: nearest().unwrap_or_default(),
        })
    }
}

impl<'a> Ask<'a> {
    fn message(&self, id: MessageId) -> Result<&'a Message, Violation> {
        self.team.room().known_message(id)
    }
}
