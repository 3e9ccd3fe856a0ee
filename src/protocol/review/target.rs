//! Where open work stands to the ref that it is meant for: what git said of it last, and whether its producer owes
//! a version because of that.
//!
//! Git is never asked here. The server asks it about each [`Comparison`], and reports what it says; what is known
//! already changes nothing.

use serde::{Deserialize, Serialize};

use super::event::{Conflict, TargetMoved, Undone};
use super::state::{Circle, Proposal, Review, Version};
use crate::protocol::answer::Answer;
use crate::protocol::artifact::ArtifactKind;
use crate::protocol::charter::{Charter, PublishHow, RuleMode};
use crate::protocol::event::Event;
use crate::protocol::name::{Digest, ProposalName, VersionRef};
use crate::protocol::team::{Decision, Team};
use crate::protocol::time::Time;

/// The rules that deny by what git says of a version.
pub(super) const ALREADY_LANDED: &str = "confirm/already-landed";
pub(super) const UNDOES_LANDED: &str = "confirm/undoes-landed";
pub(super) const UNMERGED: &str = "confirm/unmerged";

/// What git last said of a version, where that lets nobody be done with it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Said {
    /// Since when it says something of the kind.
    pub since: Time,
    /// The last report.
    pub report: TargetMoved,
}

/// How a current version stands to its target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing<'a> {
    /// Since when.
    pub since: Time,
    /// The last report.
    pub report: &'a TargetMoved,
    /// What it doesn't merge with, while that counts.
    pub conflict: Option<&'a Conflict>,
}

impl Standing<'_> {
    /// Whether a rule denies by it.
    pub(super) fn denied_by(&self, rule: &str) -> bool {
        match rule {
            ALREADY_LANDED => self.report.empty,
            UNDOES_LANDED => self.report.undone.is_some(),
            UNMERGED => self.conflict.is_some(),
            _ => false,
        }
    }
}

impl TargetMoved {
    /// Whether there is nothing to be said against the version.
    pub fn says_nothing(&self) -> bool {
        !self.empty && self.undone.is_none() && self.conflict.is_none()
    }

    fn says_as(&self, other: &Self) -> bool {
        (self.empty, &self.undone, &self.conflict) == (other.empty, &other.undone, &other.conflict)
    }
}

/// What git is to be asked: how versions that finish together, and are meant for one ref, stand to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Comparison {
    /// The ref.
    pub target: String,
    /// Whether it may only move forward to the versions' own commits.
    pub forward_only: bool,
    /// The versions. Of two that don't merge with one another the later one is in the way.
    pub versions: Vec<Compared>,
}

/// A version that is compared with its target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compared {
    /// Which one.
    pub reference: VersionRef,
    /// Its commit.
    pub commit: Digest,
    /// The commits of the proposal's versions before it: its work may have begun with them.
    pub earlier: Vec<Digest>,
}

/// Versions of one proposal whose beginnings are asked about.
const EARLIER_MAX: usize = 8;

impl Review {
    /// How a proposal's current version stands to its target, where git says anything against it. What it doesn't
    /// merge with counts for as long as that is current itself.
    pub fn standing<'a>(&'a self, proposal: &'a Proposal) -> Option<Standing<'a>> {
        let said = proposal.current()?.standing.as_ref().filter(|_| proposal.withdrawal.is_none())?;
        let counts = |conflict: &&Conflict| conflict.with.iter().all(|other| self.is_current(other));
        let conflict = said.report.conflict.as_ref().filter(counts);
        let standing = Standing { since: said.since, report: &said.report, conflict };
        let something = said.report.empty || said.report.undone.is_some() || conflict.is_some();
        something.then_some(standing)
    }

    fn is_current(&self, reference: &VersionRef) -> bool {
        self.proposal(&reference.proposal).is_some_and(|proposal| {
            let stands = proposal.dropped.is_none() && proposal.withdrawal.is_none();
            let same = |version: &Version| version.reference(&proposal.name) == *reference;
            stands && proposal.current().is_some_and(same)
        })
    }

    /// Since when git stands in a proposal's way, by the rules that the charter enforces.
    pub(super) fn in_the_way(&self, charter: &Charter, proposal: &Proposal) -> Option<Time> {
        charter.target_of(&proposal.name)?;
        let standing = self.standing(proposal)?;
        let enforced =
            |rule: &str| charter.rules.modes.get(rule).copied().unwrap_or_default() == RuleMode::Enforce;
        let mut rules = [ALREADY_LANDED, UNDOES_LANDED, UNMERGED].into_iter();
        rules.any(|rule| standing.denied_by(rule) && enforced(rule)).then_some(standing.since)
    }

    /// Whether git stands in the way of nothing that a circle holds.
    pub(super) fn is_clear(&self, charter: &Charter, circle: &Circle) -> bool {
        let mut proposals = circle.proposals.iter().filter_map(|name| self.proposal(name));
        proposals.all(|proposal| self.in_the_way(charter, proposal).is_none())
    }

    /// What git is to be asked about a circle: its current versions by the refs that they are meant for, in the
    /// order in which they were offered. Nothing once it is no longer open.
    pub fn comparisons(&self, charter: &Charter, circle: &Circle) -> Vec<Comparison> {
        let mut out: Vec<Comparison> = Vec::new();
        let standing = |name: &ProposalName| {
            let proposal = self.proposal(name).filter(|proposal| proposal.withdrawal.is_none())?;
            let current = proposal.current()?;
            let target = charter.target_of(name).filter(|_| current.artifact.kind == ArtifactKind::Commit)?;
            Some((proposal, current, target))
        };
        let mut offered: Vec<_> = circle.proposals.iter().filter_map(standing).collect();
        offered.sort_by_key(|(_, current, _)| current.offered);
        for (proposal, current, target) in offered.into_iter().filter(|_| circle.is_open()) {
            let before = proposal.versions.iter().rev().skip(1);
            let commits = before.filter(|version| version.artifact.kind == ArtifactKind::Commit);
            let compared = Compared {
                reference: current.reference(&proposal.name),
                commit: current.artifact.digest.clone(),
                earlier: commits.take(EARLIER_MAX).map(|version| version.artifact.digest.clone()).collect(),
            };
            match out.iter_mut().find(|known| known.target == target) {
                Some(known) => known.versions.push(compared),
                None => out.push(Comparison {
                    target: target.to_owned(),
                    forward_only: charter.publish.how == PublishHow::FastForward,
                    versions: vec![compared],
                }),
            }
        }
        out
    }

    /// Whether a report says something new: of the current version of open work, what isn't known of it.
    pub fn is_news(&self, report: &TargetMoved) -> bool {
        let Some(proposal) = self.proposal(&report.reference.proposal) else { return false };
        let open = self.circle(&proposal.circle).is_some_and(Circle::is_open) && proposal.dropped.is_none();
        let current =
            proposal.current().filter(|version| version.reference(&proposal.name) == report.reference);
        open && current.is_some_and(|current| match &current.standing {
            None => !report.says_nothing(),
            Some(known) => !known.report.says_as(report),
        })
    }
}

/// The server's report of what git says. What isn't news changes nothing.
pub(in crate::protocol) fn report_target(team: &Team, report: &TargetMoved) -> Decision {
    let events = if team.review().is_news(report) { vec![Event::from(report.clone())] } else { Vec::new() };
    Decision::accept(events, Answer::Recorded)
}

impl Version {
    /// Keeps what git says.
    pub(super) fn compare(&mut self, at: Time, report: &TargetMoved) {
        let since = self.standing.as_ref().map_or(at, |known| known.since);
        self.standing = (!report.says_nothing()).then(|| Said { since, report: report.clone() });
    }
}

impl Undone {
    /// The files, and how many more there are.
    pub fn files_told(&self) -> Vec<String> {
        told(self.files.iter().map(ToString::to_string), self.files_total)
    }

    /// The commits, and how many more there are.
    pub fn commits_told(&self) -> Vec<String> {
        told(self.commits.iter().map(|commit| commit.short().to_string()), self.commits_total)
    }
}

impl TargetMoved {
    /// What a conflict is, in words: with what, and where.
    pub fn conflict_told(&self, conflict: &Conflict) -> String {
        let with = match conflict.with.as_slice() {
            [] => self.target.clone(),
            with => with.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
        };
        if conflict.not_forward {
            return format!("does not follow {with}, which may only move forward");
        }
        let paths = told(conflict.paths.iter().map(ToString::to_string), conflict.paths_total);
        format!("does not merge with {with}: {}", paths.join(", "))
    }
}

/// Some of them by name, and how many more there are.
pub fn told(named: impl ExactSizeIterator<Item = String>, total: u32) -> Vec<String> {
    let more = total.saturating_sub(u32::try_from(named.len()).unwrap_or(u32::MAX));
    named.chain((more > 0).then(|| format!("{more} more"))).collect()
}
