//! Answers: what an accepted command gets back. They are stored with its events, so that a repeated
//! request gets the first answer again, over restarts too.

use serde::{Deserialize, Serialize};

use super::name::{
    CircleRef, Digest, EscalationId, MemberName, MessageId, ObjectionId, ProposalName, VersionRef,
};
use super::room::Verdict;
use super::time::Time;

/// What an accepted command gets back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "kebab-case")]
pub enum Answer {
    /// A charter is in force.
    Adopted {
        /// Its revision.
        revision: u32,
    },
    /// A version stands.
    Proposed {
        /// Its exact reference.
        reference: VersionRef,
        /// Its whole digest.
        digest: Digest,
        /// Escalations that it opened: an edge without an eligible reviewer.
        escalated: Vec<EscalationId>,
    },
    /// The member was shown this version.
    Read {
        /// Its exact reference.
        reference: VersionRef,
    },
    /// The member was shown the objections on this proposal.
    ObjectionsRead {
        /// The proposal.
        proposal: ProposalName,
    },
    /// The approval counts.
    Approved {
        /// Of exactly this version.
        reference: VersionRef,
        /// Own objections that were resolved with it.
        resolved: Vec<ObjectionId>,
    },
    /// An objection or a note stands.
    Raised {
        /// Its id.
        objection: ObjectionId,
        /// On exactly this version.
        reference: VersionRef,
    },
    /// An objection is closed.
    ObjectionClosed {
        /// Its id.
        objection: ObjectionId,
    },
    /// A version is withdrawn.
    Withdrawn {
        /// When the work may come back.
        cooldown_until: Time,
        /// Accepted withdrawals so far.
        flips: u32,
        /// Those that are left.
        flips_left: u32,
    },
    /// A report of a check stands.
    CheckReported {
        /// On exactly this version.
        reference: VersionRef,
        /// Which check.
        name: String,
        /// How it exited; nothing where it was skipped.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        exit: Option<i32>,
    },
    /// A confirmation stands.
    Confirmed {
        /// Of exactly this.
        circle: CircleRef,
        /// Whether the circle is complete.
        complete: bool,
        /// The participants who haven't confirmed it.
        waiting_for: Vec<MemberName>,
    },
    /// Something is before a person.
    Escalated {
        /// The escalation's id.
        escalation: EscalationId,
    },
    /// An escalation is answered.
    EscalationAnswered {
        /// Its id.
        escalation: EscalationId,
    },
    /// A message stands in the room.
    Said {
        /// Its id.
        message: MessageId,
        /// Whom it mentions.
        #[serde(skip_serializing_if = "Vec::is_empty", default)]
        mentions: Vec<MemberName>,
        /// The message with which its chain of mentions begins.
        root: MessageId,
        /// How long that chain is with it.
        length: u32,
        /// Whether the chain is longer than it may be: then nobody owes an answer.
        #[serde(skip_serializing_if = "std::ops::Not::not", default)]
        ended: bool,
        /// The escalation by which a person hears of it, where this message opened one.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        escalation: Option<EscalationId>,
    },
    /// A verdict stands.
    ClaimJudged {
        /// The claim.
        message: MessageId,
        /// The verdict.
        verdict: Verdict,
    },
    /// The server's own report is recorded.
    Recorded,
}
