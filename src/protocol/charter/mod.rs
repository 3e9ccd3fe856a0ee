//! The charter: who produces, who reviews whom and through which lens, and within which limits.
//!
//! [`Charter`] is a charter that was read and checked: it can be satisfied, and every name in it is
//! known. [`parse()`] makes one from `charter.toml`, or says at which line and column it can't.
//! A charter is adopted as an event and stored whole, so these types are part of the log's format.

mod changes;
mod check;
mod diagnostic;
mod graph;
mod parse;
mod pattern;
mod read;
mod starter;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::name::{Lens, MemberName, PhaseName, ProposalName, TeamName};
use super::time::Span;

pub use changes::diff;
pub use check::{
    DELIVERABLES_MAX, FINDINGS_MAX, MEMBERS_MAX, OWNED_PATTERNS_MAX, PHASES_MAX, Place, REVIEW_EDGES_MAX,
    SETTINGS_MAX, Step, Unmet, check, reserved_proposal,
};
pub use diagnostic::{Diagnostic, Diagnostics, FINDINGS_SHOWN_MAX};
pub use graph::Graph;
pub(in crate::protocol) use parse::line_of;
pub use parse::{CHARTER_BYTES_MAX, line_of_rule, parse, parse_bytes};
pub use pattern::{PATTERN_BYTES_MAX, glob, is_full_ref, patterns};
pub use starter::STARTER;

/// A checked charter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Charter {
    /// The team's name.
    pub team: TeamName,
    /// The guarded repository; without one, artifacts are bundles of files.
    pub repository: Option<Repository>,
    /// How what was reviewed is published.
    pub publish: Publish,
    /// What bounds the team's churn and its waiting.
    pub limits: Limits,
    /// Everybody, by name.
    pub members: BTreeMap<MemberName, Member>,
    /// Where escalations are sent, by name.
    pub channels: BTreeMap<String, Channel>,
    /// The team's own rules, and what became of the shipped ones.
    pub rules: RuleSettings,
    /// Names of the checks that must have passed on the current version.
    pub required_checks: Vec<String>,
    /// The stretches of work, one after the other; at least one.
    pub phases: Vec<Phase>,
}

/// The guarded repository.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Repository {
    /// A bare repository on the server's machine, relative to the charter's folder.
    pub path: String,
    /// What members push to, where it is not the path.
    pub url: Option<String>,
    /// Patterns of refs that move only to what was reviewed.
    pub protected: Vec<String>,
}

/// How what was reviewed is published.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Publish {
    /// The ref that moves, where a deliverable names none of its own.
    pub target: String,
    /// By which way.
    pub how: PublishHow,
    /// A command that must pass on the merged tree.
    pub check: Option<String>,
    /// How long that command may take.
    pub check_timeout: Span,
}

/// How a target moves to what was reviewed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PublishHow {
    /// By a merge commit where it can't be fast-forwarded.
    Merge,
    /// Only by fast-forward.
    FastForward,
}

/// What bounds a team's churn and its waiting. A duration of zero is no deadline.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// How long withdrawn work stays away.
    pub withdraw_cooldown: Span,
    /// Accepted withdrawals of one piece of work.
    pub withdraw_flips: u32,
    /// Versions that follow an objected one.
    pub rounds: u32,
    /// Changes of one reviewer's vote on one version.
    pub vote_changes: u32,
    /// Notes of one reviewer on one version.
    pub notes: u32,
    /// How long a circle may make no progress.
    pub stall_after: Span,
    /// How long a review, a reading, a resolve, a confirmation or an answer may take.
    pub answer_within: Span,
    /// How long a deliverable or a revision may take.
    pub deliver_within: Span,
    /// The longest text, in bytes of UTF-8.
    pub text_bytes: u32,
    /// Reminders of one escalation.
    pub escalation_reminders: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            withdraw_cooldown: Span::seconds(120),
            withdraw_flips: 2,
            rounds: 5,
            vote_changes: 4,
            notes: 10,
            stall_after: Span::seconds(30 * 60),
            answer_within: Span::seconds(20 * 60),
            deliver_within: Span::ZERO,
            text_bytes: 65_536,
            escalation_reminders: 3,
        }
    }
}

/// One member of the team.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    /// What kind of member.
    pub kind: MemberKind,
    /// One line about it.
    pub about: String,
    /// Commit identities that are this member's, lower-case.
    pub emails: Vec<String>,
    /// Patterns of paths that are this member's; closed to everybody who does not own them too.
    pub owns: Vec<String>,
    /// Its colour on the page, `#RRGGBB`.
    pub colour: Option<String>,
    /// Where it works.
    pub workdir: Option<String>,
    /// Whether everything wakes it.
    pub watch: bool,
    /// Channels by which escalations reach it.
    pub notify: Vec<String>,
}

/// What kind of member.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MemberKind {
    /// A coding agent.
    #[default]
    Agent,
    /// Watches what is said, and calls out.
    Referee,
    /// A person.
    Human,
}

/// Where escalations are sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Channel {
    /// By posting here…
    pub webhook: Option<String>,
    /// …or by running this.
    pub command: Option<String>,
    /// The file whose content signs the webhook.
    pub secret_file: Option<String>,
    /// Whether the webhook may stand on a private address.
    pub allow_private: bool,
}

/// The team's own rules, and what became of the shipped ones.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuleSettings {
    /// The folder with the team's own rules, beside the charter.
    pub folder: Option<String>,
    /// How strictly a rule is taken, by its id; enforced where nothing is said.
    pub modes: BTreeMap<String, RuleMode>,
}

/// How strictly a rule is taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RuleMode {
    /// What it denies is refused.
    #[default]
    Enforce,
    /// What it denies is shown and goes through.
    Warn,
    /// It isn't asked.
    Off,
}

impl RuleMode {
    /// Its word in a charter.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Enforce => "enforce",
            Self::Warn => "warn",
            Self::Off => "off",
        }
    }
}

/// A stretch of work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Phase {
    /// Its name.
    pub name: PhaseName,
    /// What finishes together.
    pub confirm: ConfirmKind,
    /// What it owes.
    pub deliverables: Vec<Deliverable>,
    /// Who reviews whom.
    pub reviews: Vec<ReviewEdge>,
}

/// What finishes together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ConfirmKind {
    /// The whole phase.
    Together,
    /// Every proposal by itself.
    Each,
}

/// A named thing that a phase owes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deliverable {
    /// Its name, which is its proposal's name.
    pub name: ProposalName,
    /// Who produces it.
    pub producer: MemberName,
    /// The ref to which it is published, where it is not the team's.
    pub target: Option<String>,
}

/// A reviewer looks at a producer's work through one lens.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ReviewEdge {
    /// Who reviews.
    pub reviewer: MemberName,
    /// Whose work.
    pub of: MemberName,
    /// What the reviewer looks for.
    pub lens: Lens,
}

impl Charter {
    /// The phase of that name, and its place in the order of phases.
    pub fn phase(&self, name: &PhaseName) -> Option<(usize, &Phase)> {
        self.phases.iter().enumerate().find(|(_, phase)| phase.name == *name)
    }

    /// The deliverable of that name and its phase; no two phases share one.
    pub fn deliverable(&self, name: &ProposalName) -> Option<(&Phase, &Deliverable)> {
        self.phases.iter().find_map(|phase| {
            phase
                .deliverables
                .iter()
                .find(|deliverable| deliverable.name == *name)
                .map(|found| (phase, found))
        })
    }

    /// The full name of the ref that a proposal is meant for; none where the team guards no repository.
    pub fn target_of(&self, proposal: &ProposalName) -> Option<&str> {
        self.repository.as_ref()?;
        let own = self.deliverable(proposal).and_then(|(_, deliverable)| deliverable.target.as_deref());
        Some(own.unwrap_or(&self.publish.target))
    }

    /// Whether that member is a person.
    pub fn is_human(&self, member: &MemberName) -> bool {
        self.members.get(member).is_some_and(|member| member.kind == MemberKind::Human)
    }

    /// Whether everything that others do may wake that member.
    pub fn may_watch(&self, member: &MemberName) -> bool {
        self.members.get(member).is_some_and(|known| known.watch || known.kind == MemberKind::Referee)
    }

    /// Every person, in the order of names.
    pub fn humans(&self) -> impl Iterator<Item = &MemberName> {
        self.members.iter().filter(|(_, member)| member.kind == MemberKind::Human).map(|(name, _)| name)
    }

    /// Whose commit identity that e-mail address is.
    pub fn member_of_email(&self, email: &str) -> Option<&MemberName> {
        let same = |known: &String| known.eq_ignore_ascii_case(email);
        self.members.iter().find(|(_, member)| member.emails.iter().any(same)).map(|(name, _)| name)
    }
}

impl Phase {
    /// Who reviews that producer's work, through which lens, in the charter's order.
    pub fn reviewers_of<'a>(&'a self, producer: &'a MemberName) -> impl Iterator<Item = &'a ReviewEdge> {
        self.reviews.iter().filter(move |edge| edge.of == *producer)
    }
}
