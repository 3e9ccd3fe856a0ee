//! Obligations: what a member owes now, with the command that discharges it. Everything that waits,
//! wakes, nags or escalates is made from them.

use std::fmt;

use super::name::MemberName;
use super::time::{Span, Time};

/// What kind of thing is owed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ObligationKind {
    /// A deliverable has no version.
    Deliver,
    /// A version waits for this member's vote.
    Review,
    /// Objections or notes weren't read.
    Read,
    /// A version was objected to, withdrawn, or couldn't be published.
    Revise,
    /// An own objection is answered by a newer version.
    Resolve,
    /// All is approved and nobody attached evidence: a dissent round.
    AttachEvidence,
    /// All else in the circle is satisfied.
    Confirm,
    /// A message mentions this member, or asks it to check a claim.
    Answer,
    /// An escalation waits for a person.
    Decide,
}

impl ObligationKind {
    /// Its stable name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Deliver => "deliver",
            Self::Review => "review",
            Self::Read => "read",
            Self::Revise => "revise",
            Self::Resolve => "resolve",
            Self::AttachEvidence => "attach-evidence",
            Self::Confirm => "confirm",
            Self::Answer => "answer",
            Self::Decide => "decide",
        }
    }
}

impl ObligationKind {
    /// Every kind.
    pub const ALL: &[Self] = &[
        Self::Deliver,
        Self::Review,
        Self::Read,
        Self::Revise,
        Self::Resolve,
        Self::AttachEvidence,
        Self::Confirm,
        Self::Answer,
        Self::Decide,
    ];

    /// The one of that stable name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.as_str() == name)
    }
}

impl fmt::Display for ObligationKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What a member owes now.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Obligation {
    /// Names this obligation: the same as long as it is the same thing that is owed, over restarts.
    pub id: String,
    /// Who owes.
    pub member: MemberName,
    /// What kind of thing.
    pub kind: ObligationKind,
    /// What about.
    pub subject: String,
    /// Since when.
    pub since: Time,
    /// Until when, where there is a deadline.
    pub due: Option<Time>,
    /// The command that discharges it, or begins to.
    pub command: String,
}

/// When what is owed since then is late; never where there is no deadline.
pub(super) fn deadline(since: Time, within: Span) -> Option<Time> {
    (!within.is_zero()).then(|| since + within)
}
