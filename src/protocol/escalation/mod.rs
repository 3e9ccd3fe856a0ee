//! Escalations: questions put to a person, with the evidence and the answers that would unblock
//! them. Nothing is ever forced through by silence.
//!
//! This is the one place through which domains put something before a person.

mod decide;
mod moved;
mod outbox;
mod unheard;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::{Deserialize, Serialize};

use super::name::{CircleName, EscalationId, MemberName, ProposalName, Seq};
use super::obligation::{Obligation, ObligationKind};
use super::time::{Span, Time};

pub(super) use decide::{answer, break_glass, escalate};
pub use moved::{MovedRef, RECORDS, RefPutBack, ReportMoved, ReportPutBack, record_ref};
pub(super) use moved::{holds, owed as refs_owed, report_moved, report_put_back};
pub use outbox::ReportSent;
pub(super) use outbox::{owed, report_sent};
pub(super) use unheard::{OWES_NOTHING, holds_up, report_unheard};
pub use unheard::{ReportUnheard, Silence, UNHEARD_MIN, Unheard};

/// Why something is before a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// A circle made no progress for too long.
    Stall,
    /// A member owes something for too long.
    Overdue,
    /// No wake reaches a member, and others wait for it.
    MemberDeaf,
    /// Too many versions followed an objected one.
    RoundLimit,
    /// Withdrawn too often.
    FlipLimit,
    /// A reviewer changed its vote on a version too often.
    VoteLimit,
    /// A review edge has no reviewer who may approve this version.
    ReviewerNotEligible,
    /// A member who holds an open objection left the team.
    ReviewerGone,
    /// A reviewer objects to the same version again after being overruled on it.
    OverruledAgain,
    /// What a circle holds could not be published.
    PublishFailure,
    /// A rule could not be judged, and so denies.
    RuleError,
    /// A recovery patch fired: the rules have a hole.
    Recovery,
    /// A person opened the door for a while.
    BrokenGlass,
    /// Members mentioned one another for too long.
    MentionChain,
    /// A guarded ref stands where the server did not leave it.
    MovedRef,
    /// A member asked for it.
    Asked,
}

/// What a person may decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Decision {
    /// The deadline counts anew from here.
    Extend,
    /// The objections in question close, and stand overruled for ever.
    Overrule,
    /// Another member reviews in a reviewer's place.
    Replace,
    /// A reviewer need not review this work: others look through the same lens.
    Excuse,
    /// The limit counts anew from here.
    RaiseLimit,
    /// A deliverable, or what was proposed ad hoc, leaves its circle.
    DropDeliverable,
    /// What is open in a phase ends as it is, and the next phase opens.
    ClosePhase,
    /// The server moves a ref back to where it left it, if nobody moved it further.
    PutBack,
    /// A ref belongs where it was moved to.
    AcceptMove,
    /// Nothing is to be done.
    Dismiss,
}

impl Cause {
    /// Its stable name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Stall => "stall",
            Self::Overdue => "overdue",
            Self::MemberDeaf => "member-deaf",
            Self::RoundLimit => "round-limit",
            Self::FlipLimit => "flip-limit",
            Self::VoteLimit => "vote-limit",
            Self::ReviewerNotEligible => "reviewer-not-eligible",
            Self::ReviewerGone => "reviewer-gone",
            Self::OverruledAgain => "overruled-again",
            Self::PublishFailure => "publish-failure",
            Self::RuleError => "rule-error",
            Self::Recovery => "recovery",
            Self::BrokenGlass => "broken-glass",
            Self::MentionChain => "mention-chain",
            Self::MovedRef => "moved-ref",
            Self::Asked => "asked",
        }
    }

    /// The decisions that answer it; the first is the one that is offered first.
    pub fn decisions(self) -> &'static [Decision] {
        use Decision::{
            AcceptMove, ClosePhase, Dismiss, DropDeliverable, Excuse, Extend, Overrule, PutBack, RaiseLimit,
            Replace,
        };
        match self {
            Self::Stall | Self::Overdue => {
                &[Extend, Overrule, Replace, Excuse, DropDeliverable, ClosePhase, Dismiss]
            }
            // There is no deadline that could count anew.
            Self::MemberDeaf => &[Dismiss, Overrule, Replace, Excuse, DropDeliverable, ClosePhase],
            // Dismissing these would leave work that nobody may move.
            Self::RoundLimit => &[RaiseLimit, Overrule, DropDeliverable, ClosePhase],
            Self::VoteLimit => &[RaiseLimit, Replace, DropDeliverable, ClosePhase],
            Self::ReviewerGone => &[Overrule, DropDeliverable, ClosePhase],
            Self::FlipLimit => &[RaiseLimit, DropDeliverable, ClosePhase, Dismiss],
            Self::ReviewerNotEligible => &[Dismiss, Replace, Excuse, DropDeliverable, ClosePhase],
            Self::OverruledAgain => &[Dismiss, Overrule, DropDeliverable, ClosePhase],
            Self::PublishFailure => &[Dismiss, DropDeliverable, ClosePhase],
            Self::RuleError | Self::Recovery | Self::BrokenGlass | Self::MentionChain => &[Dismiss],
            // Dismissing it would leave a ref of which nobody said where it belongs.
            Self::MovedRef => &[PutBack, AcceptMove],
            Self::Asked => &[Dismiss, Extend, Overrule, Replace, Excuse, DropDeliverable, ClosePhase],
        }
    }

    /// Whether work waits for the person's decision; of the others a person is only told.
    pub fn needs_a_decision(self) -> bool {
        !matches!(
            self,
            Self::Stall
                | Self::Overdue
                | Self::MemberDeaf
                | Self::Recovery
                | Self::BrokenGlass
                | Self::MentionChain
        )
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Decision {
    /// Every decision, by its stable name.
    pub const ALL: &[(&str, Self)] = &[
        ("extend", Self::Extend),
        ("overrule", Self::Overrule),
        ("replace", Self::Replace),
        ("excuse", Self::Excuse),
        ("raise-limit", Self::RaiseLimit),
        ("drop-deliverable", Self::DropDeliverable),
        ("close-phase", Self::ClosePhase),
        ("put-back", Self::PutBack),
        ("accept-move", Self::AcceptMove),
        ("dismiss", Self::Dismiss),
    ];
}

impl Decision {
    /// Whether it changes what a circle's participants confirm; a deadline or a limit that counts anew
    /// does not.
    pub fn changes_the_circle(self) -> bool {
        !matches!(self, Self::Extend | Self::RaiseLimit | Self::PutBack | Self::AcceptMove | Self::Dismiss)
    }
}

impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = Self::ALL.iter().find(|(_, decision)| decision == self);
        f.write_str(named.map_or("", |(name, _)| name))
    }
}

/// Who held things up when something was put before a person.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitingOn {
    /// Who owes.
    pub member: MemberName,
    /// What kind of thing, by its stable name.
    #[serde(with = "kind_name")]
    pub kind: ObligationKind,
    /// What about.
    pub subject: String,
    /// Since when.
    pub since: Time,
}

/// Obligations make no promise to a log; their kinds' names do.
mod kind_name {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    use crate::protocol::obligation::ObligationKind;

    pub(super) fn serialize<S: Serializer>(kind: &ObligationKind, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(kind.as_str())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<ObligationKind, D::Error> {
        let name = String::deserialize(from)?;
        ObligationKind::named(&name).ok_or_else(|| D::Error::custom(format!("nobody owes \"{name}\"")))
    }
}

impl From<&Obligation> for WaitingOn {
    fn from(owed: &Obligation) -> Self {
        let Obligation { member, kind, subject, since, .. } = owed.clone();
        Self { member, kind, subject, since }
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
    /// The circle it belongs to, where it belongs to no single proposal.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub circle: Option<CircleName>,
    /// The obligation that is overdue.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub obligation: Option<String>,
    /// The member whose limit or review it is, where there is one; else who asked.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub member: Option<MemberName>,
    /// The evidence, in words.
    pub text: String,
    /// Who held things up, where it is about waiting.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub waiting_on: Vec<WaitingOn>,
    /// How a ref was moved, where it is about one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub moved: Option<MovedRef>,
}

impl Escalated {
    /// With nothing but its cause, what it is about, and the evidence; the id is given when it is decided.
    pub fn new(cause: Cause, subject: impl Into<String>, text: String) -> Self {
        Self {
            id: EscalationId(0),
            cause,
            subject: subject.into(),
            proposal: None,
            circle: None,
            obligation: None,
            member: None,
            text,
            waiting_on: Vec::new(),
            moved: None,
        }
    }
}

/// A person was asked once more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EscalationReminded {
    /// Of which escalation.
    pub id: EscalationId,
    /// The reminder's number: 1, 2, 3…
    pub level: u32,
}

/// A channel took the news of an escalation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EscalationSent {
    /// Of which escalation.
    pub id: EscalationId,
    /// Of its opening, 0, or of a reminder: 1, 2, 3…
    pub level: u32,
    /// By which channel.
    pub channel: String,
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

/// Open the door for pushes to protected refs, as a person. It is put before every person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BreakGlass {
    /// Full names of the refs that may be pushed to.
    pub refs: Vec<String>,
    /// For how long.
    pub span: Span,
    /// Whether the first push that needs it uses it up.
    pub once: bool,
    /// Why.
    pub reason: String,
}

/// Refs that one breaking of the glass may name.
pub const GLASS_REFS_MAX: usize = 16;

/// How long the door may stand open at one breaking.
pub const GLASS_SPAN_MAX: Span = Span::seconds(3_600);

/// Answer an escalation, as a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Which one.
    pub escalation: EscalationId,
    /// The decision, by its name.
    pub decision: Decision,
    /// Who reviews instead, or who is excused, or whose objections are overruled.
    pub member: Option<MemberName>,
    /// Whose place the member takes, where that isn't plain.
    pub reviewer: Option<MemberName>,
    /// Why.
    pub reason: String,
}

/// One escalation, as it stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Escalation {
    /// What was put before a person.
    pub opened: Escalated,
    /// When.
    pub opened_at: Time,
    /// How often the person was reminded, and when last.
    pub reminded: Option<(u32, Time)>,
    /// The latest level that each channel took, and when.
    pub sent: BTreeMap<String, (u32, Time)>,
    /// How it ended, once it did.
    pub closed: Option<EscalationClosed>,
}

impl Escalation {
    /// How often the person was reminded.
    pub fn reminders(&self) -> u32 {
        self.reminded.map_or(0, |(level, _)| level)
    }
}

/// Every escalation of a team.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Escalations {
    all: BTreeMap<EscalationId, Escalation>,
    /// The open ones; always few.
    open: Vec<EscalationId>,
    /// Those of which a person decided that a ref is to be put back, until it was tried.
    to_put_back: BTreeSet<EscalationId>,
    /// When each ref was put back last, or that was tried.
    put_back: BTreeMap<String, Seq>,
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

    /// Those of which a person decided that a ref is to be put back, and it wasn't tried yet.
    pub fn to_put_back(&self) -> impl Iterator<Item = &Escalation> {
        self.to_put_back.iter().filter_map(|id| self.all.get(id))
    }

    pub(super) fn put_back(&mut self, seq: Seq, event: &RefPutBack) {
        self.to_put_back.remove(&event.escalation);
        self.put_back.insert(event.name.clone(), seq);
    }

    /// The id that the next one gets.
    pub fn next_id(&self) -> EscalationId {
        EscalationId(self.all.last_key_value().map_or(1, |(id, _)| id.0 + 1))
    }

    pub(super) fn opened(&mut self, at: Time, event: &Escalated) {
        let escalation = Escalation {
            opened: event.clone(),
            opened_at: at,
            reminded: None,
            sent: BTreeMap::new(),
            closed: None,
        };
        self.all.insert(event.id, escalation);
        self.open.push(event.id);
    }

    pub(super) fn reminded(&mut self, at: Time, event: &EscalationReminded) {
        if let Some(escalation) = self.all.get_mut(&event.id) {
            escalation.reminded = Some((event.level, at));
        }
    }

    pub(super) fn sent(&mut self, at: Time, event: &EscalationSent) {
        if let Some(escalation) = self.all.get_mut(&event.id) {
            escalation.sent.insert(event.channel.clone(), (event.level, at));
        }
    }

    pub(super) fn closed(&mut self, event: &EscalationClosed) {
        self.open.retain(|id| *id != event.id);
        if event.decision == Some(Decision::PutBack) {
            self.to_put_back.insert(event.id);
        }
        if let Some(escalation) = self.all.get_mut(&event.id) {
            escalation.closed = Some(event.clone());
        }
    }
}
