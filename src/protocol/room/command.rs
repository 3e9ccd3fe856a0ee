//! Command: what a member may ask for in the room.

use super::event::{Evidence, Verdict};
use crate::protocol::name::MessageId;

/// Say something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Say {
    /// What is said. A member is mentioned in it as `@NAME`, everybody as `@all`.
    pub text: String,
    /// Members that are mentioned beside those of the text, by name; `all` for everybody.
    pub to: Vec<String>,
    /// What about: a proposal, a version, an objection, a circle, a phase, a message or an escalation.
    pub about: Option<String>,
    /// The message that it answers.
    pub reply: Option<MessageId>,
    /// With which evidence, where it is a claim that others may check.
    pub claim: Option<Evidence>,
}

/// Give a verdict on another's claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JudgeClaim {
    /// Which one.
    pub message: MessageId,
    /// The verdict.
    pub verdict: Verdict,
    /// How it was checked.
    pub text: String,
    /// With which evidence.
    pub evidence: Evidence,
}
