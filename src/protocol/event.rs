//! Events: what happened. They are facts, and with their answers the only thing that is stored.
//!
//! Each has a stable name and a schema number; its JSON form is part of the log's format and pinned
//! by snapshots. A form is never changed: a new one gets the next number, and the old one is lifted
//! when it is read.

use serde::{Deserialize, Serialize};

use super::deadline::ServerResumed;
use super::delivery::{Delivered, OwedAgain, Woken};
use super::escalation::{Escalated, EscalationClosed, EscalationReminded, EscalationSent, RefPutBack};
use super::name::{Digest, PhaseName};
use super::recovery::RecoveryFired;
use super::referee::CalledOut;
use super::review::{
    Approved, CheckReported, CircleCompleted, CirclePublished, CircleReopened, Confirmed, DeliverableDropped,
    DissentCalled, Noted, Objected, ObjectionClosed, ObjectionsRead, PhaseClosed, Proposed, ReviewerExcused,
    ReviewerReplaced, TargetMoved, VersionRead, Withdrawn,
};
use super::room::{ClaimJudged, Said};
use super::rule::OwnRule;
use super::time::Time;
use super::{Adopted, charter::Charter};

/// A phase opened: its deliverables are owed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PhaseOpened {
    /// The phase.
    pub phase: PhaseName,
}

/// A charter was adopted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CharterAdopted {
    /// 1, 2, 3…
    pub revision: u32,
    /// SHA-256 of the text.
    pub digest: Digest,
    /// Why; none for the first.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub reason: Option<String>,
    /// The charter file, verbatim.
    pub text: String,
    /// What it was read as, so that a later reader can't read it otherwise.
    pub charter: Charter,
    /// The team's own rules, by id.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub rules: Vec<OwnRule>,
}

impl From<&CharterAdopted> for Adopted {
    fn from(event: &CharterAdopted) -> Self {
        Self {
            revision: event.revision,
            digest: event.digest.clone(),
            text: event.text.as_str().into(),
            charter: event.charter.clone(),
            rules: event.rules.as_slice().into(),
            at: Time::default(),
        }
    }
}

/// Why a stored event can't be read.
#[derive(Debug, thiserror::Error)]
pub enum Unreadable {
    /// An event of that name isn't known.
    #[error("there is no event \"{kind}\" of form {schema} in this version")]
    Unknown {
        /// Its name.
        kind: String,
        /// Its form.
        schema: u32,
    },
    /// Its JSON isn't of its form.
    #[error("the event \"{kind}\" is not of its form")]
    Form {
        /// Its name.
        kind: String,
        /// What doesn't fit.
        source: serde_json::Error,
    },
}

macro_rules! events {
    ($($(#[$doc:meta])* $variant:ident = $kind:literal, $schema:literal;)*) => {
        /// What happened.
        #[allow(clippy::large_enum_variant)] // Events live for one batch; a box each would cost more.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum Event {
            $($(#[$doc])* $variant($variant),)*
        }

        impl Event {
            /// Every event's stable name and the schema number in which it is written.
            pub const KINDS: &[(&str, u32)] = &[$(($kind, $schema)),*];

            /// The stable name.
            pub fn kind(&self) -> &'static str {
                match self { $(Self::$variant(_) => $kind,)* }
            }

            /// Whether an event of that stable name is news for whoever watches everything: that somebody was
            /// shown something, or is to be shown it again, is none.
            pub fn is_news(kind: &str) -> bool {
                !matches!(kind, "delivered" | "owed-again")
            }

            /// The number of the form in which it is written.
            pub fn schema(&self) -> u32 {
                match self { $(Self::$variant(_) => $schema,)* }
            }

            /// The stored form.
            pub fn encode(&self) -> String {
                let encoded = match self { $(Self::$variant(event) => serde_json::to_string(event),)* };
                encoded.expect("an event has string keys and no failing part")
            }

            /// Reads a stored form.
            pub fn decode(kind: &str, schema: u32, body: &str) -> Result<Self, Unreadable> {
                match (kind, schema) {
                    $(($kind, $schema) => serde_json::from_str(body)
                        .map(Self::$variant)
                        .map_err(|source| Unreadable::Form { kind: kind.to_owned(), source }),)*
                    _ => Err(Unreadable::Unknown { kind: kind.to_owned(), schema }),
                }
            }
        }

        $(impl From<$variant> for Event {
            fn from(event: $variant) -> Self {
                Self::$variant(event)
            }
        })*
    };
}

events! {
    /// A charter was adopted.
    CharterAdopted = "charter-adopted", 1;
    /// A phase opened.
    PhaseOpened = "phase-opened", 1;
    /// A producer offered a version.
    Proposed = "proposed", 1;
    /// A member was shown a version.
    VersionRead = "version-read", 1;
    /// A producer was shown objections and notes.
    ObjectionsRead = "objections-read", 1;
    /// A reviewer approved a version.
    Approved = "approved", 1;
    /// A reviewer objected to a version.
    Objected = "objected", 1;
    /// A reviewer left a note on a version.
    Noted = "noted", 1;
    /// An objection was closed by its objector or by a person.
    ObjectionClosed = "objection-closed", 1;
    /// A producer withdrew a version.
    Withdrawn = "withdrawn", 1;
    /// A member reported what came of a required check on a version.
    CheckReported = "check-reported", 1;
    /// All is approved and nobody attached evidence: a dissent round.
    DissentCalled = "dissent-called", 1;
    /// A rule that refuses nothing says that something is missing.
    CalledOut = "called-out", 1;
    /// Git says otherwise than before how a current version stands to its target.
    TargetMoved = "target-moved", 1;
    /// A participant confirmed a circle.
    Confirmed = "confirmed", 1;
    /// The last participant confirmed.
    CircleCompleted = "circle-completed", 1;
    /// What the circle holds was published.
    CirclePublished = "circle-published", 1;
    /// What the circle holds couldn't be published; it is open again.
    CircleReopened = "circle-reopened", 1;
    /// A person had another member review in a reviewer's place.
    ReviewerReplaced = "reviewer-replaced", 1;
    /// A person excused a reviewer from a proposal.
    ReviewerExcused = "reviewer-excused", 1;
    /// A person closed a phase.
    PhaseClosed = "phase-closed", 1;
    /// A person dropped a deliverable, or what was proposed ad hoc.
    DeliverableDropped = "deliverable-dropped", 1;
    /// Something was put before a person.
    Escalated = "escalated", 1;
    /// A person was asked once more.
    EscalationReminded = "escalation-reminded", 1;
    /// A channel took the news of an escalation.
    EscalationSent = "escalation-sent", 1;
    /// An escalation was answered, or closed by progress.
    EscalationClosed = "escalation-closed", 1;
    /// A member said something in the room.
    Said = "said", 1;
    /// A member gave a verdict on another's claim.
    ClaimJudged = "claim-judged", 1;
    /// A ref was put back by a person's decision, or that was tried.
    RefPutBack = "ref-put-back", 1;
    /// A recovery patch fired.
    RecoveryFired = "recovery-fired", 1;
    /// A server runs again; the time in between counts towards no deadline.
    ServerResumed = "server-resumed", 1;
    /// A member took a wake, and was shown what it owes.
    Delivered = "delivered", 1;
    /// What a member was shown ended, and is owed again.
    OwedAgain = "owed-again", 1;
    /// A wake was sent, and counted as shown before anybody took it.
    Woken = "woken", 1;
}
