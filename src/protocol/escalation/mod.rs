//! Escalations: questions put to a person, with the evidence and the answers that would unblock
//! them. Nothing is ever forced through by silence.
//!
//! This is the one place through which domains put something before a person.

mod decide;

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::name::{EscalationId, MemberName, ProposalName};
use super::time::Time;

pub(super) use decide::{answer, escalate};

/// Why something is before a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// Too many versions followed an objected one.
    RoundLimit,
    /// Withdrawn too often.
    FlipLimit,
    /// A reviewer changed its vote on a version too often.
    VoteLimit,
    /// A review edge has no reviewer who may approve this version.
    ReviewerNotEligible,
    /// A reviewer objects to the same version again after being overruled on it.
    OverruledAgain,
    /// A member asked for it.
    Asked,
}

/// What a person may decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Decision {
    /// The limit counts anew from here.
    RaiseLimit,
    /// Nothing is to be done.
    Dismiss,
}

impl Cause {
    /// Its stable name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::RoundLimit => "round-limit",
            Self::FlipLimit => "flip-limit",
            Self::VoteLimit => "vote-limit",
            Self::ReviewerNotEligible => "reviewer-not-eligible",
            Self::OverruledAgain => "overruled-again",
            Self::Asked => "asked",
        }
    }

    /// The decisions that answer it.
    pub fn decisions(self) -> &'static [Decision] {
        match self {
            // Dismissing these would leave work that nobody may move.
            Self::RoundLimit | Self::VoteLimit => &[Decision::RaiseLimit],
            Self::FlipLimit => &[Decision::RaiseLimit, Decision::Dismiss],
            Self::ReviewerNotEligible | Self::OverruledAgain | Self::Asked => &[Decision::Dismiss],
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Decision {
    /// Every decision, by its stable name.
    pub const ALL: &[(&str, Self)] = &[("raise-limit", Self::RaiseLimit), ("dismiss", Self::Dismiss)];
}

impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = Self::ALL.iter().find(|(_, decision)| decision == self);
        f.write_str(named.map_or("", |(name, _)| name))
    }
}

/// Something was put before a person.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Escalated {
    /// Its id.
    pub id: EscalationId,
    /// Why.
    pub cause: Cause,
    /// What about: a proposal, a version, a circle, an objection.
    pub subject: String,
    /// The proposal it belongs to, where there is one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub proposal: Option<ProposalName>,
    /// The member whose limit or review it is, where there is one; else who asked.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub member: Option<MemberName>,
    /// The evidence, in words.
    pub text: String,
}

/// An escalation was answered, or closed by progress.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EscalationClosed {
    /// Which one.
    pub id: EscalationId,
    /// By whom it was answered; nobody where progress closed it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub by: Option<MemberName>,
    /// What was decided.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub decision: Option<Decision>,
    /// Why.
    pub reason: String,
}

/// Put a subject before a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Escalate {
    /// What about: a proposal, an objection or a circle.
    pub subject: String,
    /// What the person is asked.
    pub text: String,
}

/// Answer an escalation, as a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Which one.
    pub escalation: EscalationId,
    /// The decision, by its name.
    pub decision: Decision,
    /// Why.
    pub reason: String,
}

/// One escalation, as it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Escalation {
    /// What was put before a person.
    pub opened: Escalated,
    /// When.
    pub opened_at: Time,
    /// How it ended, once it did.
    pub closed: Option<EscalationClosed>,
}

/// Every escalation of a team.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Escalations {
    all: BTreeMap<EscalationId, Escalation>,
    /// The open ones; always few.
    open: Vec<EscalationId>,
}

impl Escalations {
    /// Every escalation, oldest first.
    pub fn all(&self) -> impl DoubleEndedIterator<Item = &Escalation> {
        self.all.values()
    }

    /// Those that wait for an answer, oldest first.
    pub fn open(&self) -> impl Iterator<Item = &Escalation> {
        self.open.iter().map(|id| &self.all[id])
    }

    /// The one of that id.
    pub fn get(&self, id: EscalationId) -> Option<&Escalation> {
        self.all.get(&id)
    }

    /// The open one with that cause on that subject.
    pub fn open_on(&self, cause: Cause, subject: &str) -> Option<&Escalation> {
        self.open()
            .find(|escalation| escalation.opened.cause == cause && escalation.opened.subject == subject)
    }

    /// The open one with that cause on that subject because of that member.
    pub fn open_of(&self, cause: Cause, subject: &str, member: &MemberName) -> Option<&Escalation> {
        let of = |escalation: &&Escalation| {
            let opened = &escalation.opened;
            opened.cause == cause && opened.subject == subject && opened.member.as_ref() == Some(member)
        };
        self.open().find(of)
    }

    /// The id that the next one gets.
    pub fn next_id(&self) -> EscalationId {
        EscalationId(self.all.last_key_value().map_or(1, |(id, _)| id.0 + 1))
    }

    pub(super) fn opened(&mut self, at: Time, event: &Escalated) {
        let escalation = Escalation { opened: event.clone(), opened_at: at, closed: None };
        self.all.insert(event.id, escalation);
        self.open.push(event.id);
    }

    pub(super) fn closed(&mut self, event: &EscalationClosed) {
        self.open.retain(|id| *id != event.id);
        if let Some(escalation) = self.all.get_mut(&event.id) {
            escalation.closed = Some(event.clone());
        }
    }
}
