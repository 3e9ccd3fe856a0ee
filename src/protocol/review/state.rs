//! State: what the review's events add up to.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::event::{CircleCompleted, Closing, Objected, PublishedRef, Run};
use super::target::Said;
use crate::protocol::artifact::{Artifact, Identity, Place, RepoPath};
use crate::protocol::charter::{Charter, Limits, MemberKind, Phase};
use crate::protocol::name::{
    CircleName, Digest, Lens, MemberName, ObjectionId, PhaseName, ProposalName, Subject, VersionRef,
};
use crate::protocol::rejection::Violation;
use crate::protocol::time::Time;

/// The review domain's part of a team.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Review {
    /// Every phase that opened, in order, and how it stands.
    pub(super) phases: Vec<(PhaseName, PhaseState)>,
    /// Every circle, by name.
    pub(super) circles: BTreeMap<CircleName, Circle>,
    /// The circles in the order in which they opened.
    pub(super) circle_order: Vec<CircleName>,
    /// Every proposal, by name.
    pub(super) proposals: BTreeMap<ProposalName, Proposal>,
    /// Versions that were offered so far.
    pub(super) offered: u64,
    /// Where each objection and note stands.
    pub(super) objection_home: BTreeMap<ObjectionId, ProposalName>,
}

/// How a phase that opened stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PhaseState {
    /// Its deliverables are owed.
    Open,
    /// What it owes is published.
    Published,
    /// A person closed it.
    Closed,
}

impl PhaseState {
    /// Its stable name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Published => "published",
            Self::Closed => "closed",
        }
    }
}

/// The producers, reviewers and proposals that finish together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Circle {
    /// Its name.
    pub name: CircleName,
    /// Its phase.
    pub phase: PhaseName,
    /// Its proposals, in the charter's order, and one by itself where it is ad hoc.
    pub proposals: Vec<ProposalName>,
    /// Where it stands.
    pub state: CircleState,
    /// Who confirmed, and exactly what.
    pub confirmed: BTreeMap<MemberName, Digest>,
    /// How often a failed publish opened it again.
    pub reopened: u32,
    /// How often a person decided about it.
    pub decided: u32,
    /// What it held when a dissent round was last called.
    pub dissent: Option<Digest>,
    /// What it was completed with, once it was.
    pub completed: Option<CircleCompleted>,
    /// When; from then on it is being published, until it is.
    pub completed_at: Option<Time>,
    /// The refs that publishing it moved.
    pub published: Vec<PublishedRef>,
    /// Why it couldn't be published, from when it opened again until it is complete again.
    pub unpublished: Option<String>,
    /// What last came of the check on what was to be published.
    pub publish_check: Option<Run>,
    /// When a version, a vote, a resolve, a confirmation or a decision last moved it.
    pub progress_at: Time,
    /// The proposals that are not yet accepted; kept so that nobody scans all of them.
    pub unaccepted: BTreeSet<ProposalName>,
}

/// Where a circle stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum CircleState {
    /// Work goes on.
    Open,
    /// Everybody confirmed: votes and versions are final.
    Complete,
    /// What it holds was published.
    Published,
    /// A person closed its phase, or dropped all that it held.
    Closed,
}

impl CircleState {
    /// Its stable name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Complete => "complete",
            Self::Published => "published",
            Self::Closed => "closed",
        }
    }
}

/// A producer's offer for a deliverable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Proposal {
    /// Its name.
    pub name: ProposalName,
    /// Who produces it.
    pub producer: MemberName,
    /// Its phase.
    pub phase: PhaseName,
    /// Its circle.
    pub circle: CircleName,
    /// Whether it is no deliverable of the charter.
    pub ad_hoc: bool,
    /// The other proposals with which it is the same work: flips, rounds and cooldown count for all of them.
    pub kin: BTreeSet<ProposalName>,
    /// When its phase opened, or it was first offered where it is ad hoc.
    pub opened_at: Time,
    /// Its versions; the first is 1.
    pub versions: Vec<Version>,
    /// Objections and notes, oldest first.
    pub objections: Vec<Objection>,
    /// The withdrawal in force, if the current version is withdrawn.
    pub withdrawal: Option<Withdrawal>,
    /// When it was last withdrawn, also after it came back.
    pub flipped_at: Option<Time>,
    /// Accepted withdrawals since the limit last counted anew.
    pub flips: u32,
    /// Versions that followed an objected one, since the limit last counted anew.
    pub rounds: u32,
    /// Whether a failed publish left it owing a version that is no round.
    pub publish_failed: Option<String>,
    /// Who reviews it in whose place, by a person's decision.
    pub stand_ins: BTreeMap<MemberName, MemberName>,
    /// Since when each stand-in reviews.
    pub appointed: BTreeMap<MemberName, Time>,
    /// Reviewers whom a person excused from it.
    pub excused: BTreeSet<MemberName>,
    /// Since a person dropped it: nobody owes anything for it.
    pub dropped: Option<Dropped>,
}

/// Why and when a person dropped a proposal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dropped {
    /// By whom.
    pub by: MemberName,
    /// When.
    pub at: Time,
    /// Why.
    pub reason: String,
}

impl Dropped {
    /// What refuses whatever would still be done with it.
    pub(in crate::protocol) fn violation(&self, proposal: &ProposalName) -> Violation {
        let (proposal, by, reason) = (proposal.clone(), self.by.clone(), self.reason.clone());
        Violation::DeliverableDropped { proposal, by, reason }
    }
}

/// Who reviews a proposal, and through which lens: an edge of the charter, as persons' decisions left it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge<'a> {
    /// The reviewer.
    pub reviewer: &'a MemberName,
    /// The lens.
    pub lens: &'a Lens,
}

/// Why and when a version was taken back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Withdrawal {
    /// By whom.
    pub by: MemberName,
    /// When.
    pub at: Time,
    /// Why.
    pub reason: String,
}

/// An immutable artifact that was offered, and what reviewers said of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Version {
    /// 1, 2, 3…
    pub number: u32,
    /// What it is.
    pub artifact: Artifact,
    /// Who offered it.
    pub producer: MemberName,
    /// When.
    pub at: Time,
    /// What the producer says about it.
    pub summary: String,
    /// What the producer answered to each objection.
    pub answers: BTreeMap<ObjectionId, String>,
    /// Every path that it touches.
    pub paths: Vec<RepoPath>,
    /// What the files hold that it touches, by digest.
    pub files: Vec<Digest>,
    /// Who authored it.
    pub authors: Vec<Identity>,
    /// Who was shown it, and since when.
    pub read_by: BTreeMap<MemberName, Time>,
    /// Every reviewer's ballot.
    pub ballots: BTreeMap<MemberName, Ballot>,
    /// Reviewers in whose stead a person decided on this version.
    pub overruled: BTreeSet<MemberName>,
    /// Whether an objection was raised on it that wasn't a mistake.
    pub objected: bool,
    /// The last report of each check, by the check's name.
    pub checks: BTreeMap<String, CheckReport>,
    /// Its place among all versions of the team, in the order in which they were offered.
    pub offered: u64,
    /// What git last said of it against its target; nothing where that is nothing.
    pub standing: Option<Said>,
}

/// What came of a check on exactly one version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckReport {
    /// Who reported it.
    pub by: MemberName,
    /// When.
    pub at: Time,
    /// How it exited; nothing where it was skipped.
    pub exit: Option<i32>,
    /// What it printed.
    pub output: Option<String>,
}

impl CheckReport {
    /// Whether it ran and exited with 0; nothing else is a pass.
    pub fn passed(&self) -> bool {
        self.exit == Some(0)
    }

    /// `passed`, `failed` or `skipped`.
    pub fn status(&self) -> &'static str {
        match self.exit {
            Some(0) => "passed",
            Some(_) => "failed",
            None => "skipped",
        }
    }
}

/// One reviewer's part in one version.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ballot {
    /// The vote that counts: the last one, unless a resolve took it back.
    pub vote: Option<Vote>,
    /// The last vote that was cast.
    pub cast: Option<VoteKind>,
    /// How often the vote changed, since the limit last counted anew.
    pub changes: u32,
    /// Notes left.
    pub notes: u32,
}

/// A vote on exactly one version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Vote {
    /// Which way.
    pub kind: VoteKind,
    /// When.
    pub at: Time,
    /// For all lenses of the member.
    pub lenses: Vec<Lens>,
    /// Places that were checked.
    pub checked: Vec<Place>,
    /// Commands that were run.
    pub ran: Vec<Run>,
}

/// Which way a vote goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum VoteKind {
    /// For.
    Approve,
    /// Against.
    Object,
}

impl VoteKind {
    /// Its stable name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Approve => "approve",
            Self::Object => "object",
        }
    }
}

/// An objection or a note.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Objection {
    /// Its id.
    pub id: ObjectionId,
    /// Whether it blocks.
    pub kind: ObjectionKind,
    /// Who raised it.
    pub by: MemberName,
    /// Through which lenses.
    pub lenses: Vec<Lens>,
    /// On which version.
    pub version: u32,
    /// When.
    pub at: Time,
    /// What it says.
    pub text: String,
    /// Where.
    pub places: Vec<Place>,
    /// A command that fails.
    pub failing_test: Option<Run>,
    /// How it was closed, once it was.
    pub closed: Option<Closed>,
    /// Whether the proposal's producer was shown it.
    pub read: bool,
    /// Where it was raised, where it followed the work from another proposal. Its version is then the one
    /// before which it came here.
    pub from: Option<(ProposalName, u32)>,
}

/// Whether it blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ObjectionKind {
    /// It blocks until it is closed.
    Objection,
    /// It must be read and blocks nobody.
    Note,
}

/// How an objection was closed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Closed {
    /// In which way.
    pub how: Closing,
    /// By whom.
    pub by: MemberName,
    /// When.
    pub at: Time,
    /// Why.
    pub reason: Option<String>,
}

/// Where a proposal stands; later ones win.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum ProposalState {
    /// It has no version.
    ToDeliver,
    /// Reviewers owe.
    UnderReview,
    /// An objection is open.
    Objected,
    /// All its reviewers approved, and nothing is open.
    Accepted,
    /// The current version is taken back.
    Withdrawn,
    /// Its circle is complete.
    Complete,
    /// Its circle is published.
    Published,
    /// Its phase was closed before it was published.
    Closed,
    /// A person dropped it.
    Dropped,
}

impl ProposalState {
    /// Its stable name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ToDeliver => "to-deliver",
            Self::UnderReview => "under-review",
            Self::Objected => "objected",
            Self::Accepted => "accepted",
            Self::Withdrawn => "withdrawn",
            Self::Complete => "complete",
            Self::Published => "published",
            Self::Closed => "closed",
            Self::Dropped => "dropped",
        }
    }
}

impl Objection {
    /// Whether it is an objection, and open.
    pub fn blocks(&self) -> bool {
        self.kind == ObjectionKind::Objection && self.closed.is_none()
    }

    /// The command that fails.
    pub(super) fn test(&self) -> Option<&str> {
        self.failing_test.as_ref().map(|run| run.command.as_str())
    }

    /// Whether its failing test has still to be shown: it was neither taken back nor decided against.
    pub(super) fn test_stands(&self) -> bool {
        self.closed.as_ref().is_none_or(|closed| closed.how == Closing::Resolved)
    }

    /// `open`, `resolved`, `mistaken` or `overruled`.
    pub fn status(&self) -> &'static str {
        match self.closed.as_ref().map(|closed| closed.how) {
            None => "open",
            Some(Closing::Resolved) => "resolved",
            Some(Closing::Mistaken) => "mistaken",
            Some(Closing::Overruled) => "overruled",
        }
    }

    pub(super) fn raised(event: &Objected, at: Time) -> Self {
        Self {
            id: event.id,
            kind: ObjectionKind::Objection,
            by: event.by.clone(),
            lenses: event.lenses.clone(),
            version: event.version,
            at,
            text: event.text.clone(),
            places: event.at.clone(),
            failing_test: event.failing_test.clone(),
            closed: None,
            read: false,
            from: None,
        }
    }

    /// Whether it was raised on that version of the proposal that it stands in.
    pub fn is_raised_on(&self, version: u32) -> bool {
        self.from.is_none() && self.version == version
    }
}

impl Version {
    /// Its exact reference.
    pub fn reference(&self, proposal: &ProposalName) -> VersionRef {
        VersionRef {
            proposal: proposal.clone(),
            version: self.number,
            digest: (&self.artifact.digest).into(),
        }
    }

    /// The vote of that member that counts on this version.
    pub fn vote(&self, member: &MemberName) -> Option<&Vote> {
        self.ballots.get(member).and_then(|ballot| ballot.vote.as_ref())
    }

    /// Whether an approval of it shows that this command passes: exit 0, with its output.
    pub fn shows(&self, test: &str) -> bool {
        let approvals = self.ballots.values().filter_map(|ballot| ballot.vote.as_ref());
        let mut ran =
            approvals.filter(|vote| vote.kind == VoteKind::Approve).flat_map(|approval| &approval.ran);
        ran.any(|run| run.command == test && run.passed())
    }

    /// Whether that member's approval of this version counts.
    pub fn approved_by(&self, member: &MemberName) -> bool {
        self.vote(member).is_some_and(|vote| vote.kind == VoteKind::Approve)
    }
}

impl Proposal {
    /// Without a version yet.
    pub(super) fn fresh(
        name: ProposalName,
        producer: MemberName,
        phase: PhaseName,
        circle: CircleName,
        opened_at: Time,
    ) -> Self {
        Self {
            name,
            producer,
            phase,
            circle,
            ad_hoc: false,
            kin: BTreeSet::new(),
            opened_at,
            versions: Vec::new(),
            objections: Vec::new(),
            withdrawal: None,
            flipped_at: None,
            flips: 0,
            rounds: 0,
            publish_failed: None,
            stand_ins: BTreeMap::new(),
            appointed: BTreeMap::new(),
            excused: BTreeSet::new(),
            dropped: None,
        }
    }

    /// The current version, also when it is withdrawn.
    pub fn current(&self) -> Option<&Version> {
        self.versions.last()
    }

    /// The current version's number; 0 where there is none.
    pub fn current_number(&self) -> u32 {
        self.current().map_or(0, |version| version.number)
    }

    /// The version of that number.
    pub fn version(&self, number: u32) -> Option<&Version> {
        let index = usize::try_from(number).ok()?.checked_sub(1)?;
        self.versions.get(index)
    }

    /// The current version's exact reference; the name where there is none.
    pub fn current_ref(&self) -> String {
        self.current()
            .map_or_else(|| self.name.to_string(), |version| version.reference(&self.name).to_string())
    }

    /// Open objections; notes don't block.
    pub fn open_objections(&self) -> impl Iterator<Item = &Objection> {
        self.objections.iter().filter(|objection| objection.blocks())
    }

    /// Open objections and notes that the producer wasn't shown.
    pub fn unread(&self) -> impl Iterator<Item = &Objection> {
        self.objections.iter().filter(|objection| objection.closed.is_none() && !objection.read)
    }

    /// Why that member may not approve that version: it proposed one, or its commits name it.
    pub fn own_work(&self, charter: &Charter, version: &Version, member: &MemberName) -> Option<String> {
        if self.producer == *member || self.versions.iter().any(|known| known.producer == *member) {
            return Some(format!("{member} proposed it"));
        }
        let author =
            version.authors.iter().find(|author| charter.member_of_email(&author.email) == Some(member))?;
        Some(format!("{} authored a commit in it", author.email))
    }

    /// Who reviews it, in the charter's order.
    pub fn edges<'a>(&'a self, phase: &'a Phase) -> impl Iterator<Item = Edge<'a>> {
        phase.reviewers_of(&self.producer).filter(|edge| !self.excused.contains(&edge.reviewer)).map(|edge| {
            Edge { reviewer: self.stand_ins.get(&edge.reviewer).unwrap_or(&edge.reviewer), lens: &edge.lens }
        })
    }

    /// Its reviewers who approve the current version.
    pub fn approving<'a>(&'a self, phase: &'a Phase) -> BTreeSet<&'a MemberName> {
        let approves =
            |reviewer: &&MemberName| self.current().is_some_and(|current| current.approved_by(reviewer));
        self.edges(phase).map(|edge| edge.reviewer).filter(approves).collect()
    }

    /// Places checked and commands run that their approvals of the current version name.
    pub fn evidence(&self, phase: &Phase) -> usize {
        let Some(current) = self.current() else { return 0 };
        let approvals = self.approving(phase).into_iter().filter_map(|reviewer| current.vote(reviewer));
        approvals.map(|approval| approval.checked.len() + approval.ran.len()).sum()
    }

    /// The failing tests of resolved objections that no approval of the current version shows to pass, and
    /// that this reviewer answers for: the own ones, and those of objectors who review it no longer.
    pub fn unshown<'a>(
        &'a self,
        phase: &'a Phase,
        reviewer: &'a MemberName,
    ) -> impl Iterator<Item = &'a str> {
        let answers_for = move |objection: &&Objection| {
            let by = &objection.by;
            let resolved = objection.closed.as_ref().is_some_and(|closed| closed.how == Closing::Resolved);
            resolved && (by == reviewer || !self.edges(phase).any(|edge| edge.reviewer == by))
        };
        let tests = self.objections.iter().filter(answers_for).filter_map(Objection::test);
        tests.filter(|test| !self.current().is_some_and(|current| current.shows(test)))
    }

    /// When withdrawn work may come back.
    pub fn cool_at(&self, limits: &Limits) -> Option<Time> {
        self.flipped_at.map(|at| at + limits.withdraw_cooldown)
    }

    /// Whether the version after the current one would be a round.
    pub fn next_is_round(&self) -> bool {
        self.publish_failed.is_none() && self.current().is_some_and(|version| version.objected)
    }

    /// Whether it has a current version that isn't withdrawn, all edges are met on it, and no
    /// objection is open.
    pub fn is_accepted(&self, phase: &Phase) -> bool {
        let Some(current) = self.current() else { return false };
        self.withdrawal.is_none()
            && self.publish_failed.is_none()
            && self.open_objections().next().is_none()
            && self
                .edges(phase)
                .all(|edge| current.approved_by(edge.reviewer) || current.overruled.contains(edge.reviewer))
    }
}

/// Who will review a proposal under a charter that isn't in force yet: a stand-in who leaves, or produces it,
/// stands in no longer.
pub(in crate::protocol) fn edges_under<'a>(
    charter: &'a Charter,
    phase: &'a Phase,
    proposal: &'a Proposal,
) -> impl Iterator<Item = Edge<'a>> {
    let edges =
        phase.reviewers_of(&proposal.producer).filter(|edge| !proposal.excused.contains(&edge.reviewer));
    edges.map(|edge| {
        let stand_in =
            proposal.stand_ins.get(&edge.reviewer).filter(|one| may_stand_in(charter, proposal, one));
        Edge { reviewer: stand_in.unwrap_or(&edge.reviewer), lens: &edge.lens }
    })
}

/// Whether that member may review a proposal in somebody's place.
pub(super) fn may_stand_in(charter: &Charter, proposal: &Proposal, member: &MemberName) -> bool {
    let known = charter.members.get(member);
    proposal.producer != *member && known.is_some_and(|known| known.kind != MemberKind::Referee)
}

impl Circle {
    /// A circle as it opens.
    pub(super) fn fresh(name: CircleName, phase: &PhaseName, proposals: Vec<ProposalName>, at: Time) -> Self {
        Self {
            name,
            phase: phase.clone(),
            unaccepted: proposals.iter().cloned().collect(),
            proposals,
            state: CircleState::Open,
            confirmed: BTreeMap::new(),
            reopened: 0,
            decided: 0,
            dissent: None,
            completed: None,
            completed_at: None,
            published: Vec::new(),
            unpublished: None,
            publish_check: None,
            progress_at: at,
        }
    }

    /// Whether work in it goes on.
    pub fn is_open(&self) -> bool {
        self.state == CircleState::Open
    }
}

impl Review {
    /// The proposal of that name, once its phase opened.
    pub fn proposal(&self, name: &ProposalName) -> Option<&Proposal> {
        self.proposals.get(name)
    }

    /// Every proposal, in the order of circles and, within one, of the charter.
    pub fn proposals(&self) -> impl Iterator<Item = &Proposal> {
        self.circles().flat_map(|circle| &circle.proposals).map(|name| &self.proposals[name])
    }

    /// The proposals that persons dropped, by name.
    pub fn dropped(&self) -> impl Iterator<Item = &Proposal> {
        self.proposals.values().filter(|proposal| proposal.dropped.is_some())
    }

    /// The circle of that name.
    pub fn circle(&self, name: &CircleName) -> Option<&Circle> {
        self.circles.get(name)
    }

    /// Every circle, in the order in which they opened.
    pub fn circles(&self) -> impl Iterator<Item = &Circle> {
        self.circle_order.iter().map(|name| &self.circles[name])
    }

    /// The objection or note of that id, with its proposal.
    pub fn objection(&self, id: ObjectionId) -> Option<(&Proposal, &Objection)> {
        let proposal = &self.proposals[self.objection_home.get(&id)?];
        proposal.objections.iter().find(|objection| objection.id == id).map(|objection| (proposal, objection))
    }

    /// Wherever an objection stands: where it was raised, then where it followed the work.
    pub fn places(&self, id: ObjectionId) -> impl Iterator<Item = (&Proposal, &Objection)> {
        let home = self.objection_home.get(&id).and_then(|name| self.proposals.get(name));
        let kin = home.into_iter().flat_map(|home| &home.kin).filter_map(|name| self.proposals.get(name));
        home.into_iter().chain(kin).filter_map(move |proposal| {
            let found = proposal.objections.iter().find(|objection| objection.id == id);
            found.map(|objection| (proposal, objection))
        })
    }

    /// What a member's words name: an objection, a version, a proposal, a circle; a proposal's circle
    /// with it.
    pub fn locate(&self, subject: &str) -> Option<(Option<&Proposal>, &Circle)> {
        let of = |proposal: &'_ Proposal| self.circles.get(&proposal.circle);
        if let Some((proposal, _)) = subject.parse().ok().and_then(|id| self.objection(id)) {
            return of(proposal).map(|circle| (Some(proposal), circle));
        }
        if let Ok(named) = subject.parse::<Subject>()
            && let Some(proposal) = self.proposal(&named.proposal)
        {
            let known = named.version.is_none_or(|version| proposal.version(version).is_some());
            return of(proposal).filter(|_| known).map(|circle| (Some(proposal), circle));
        }
        let circle = subject.split_once(':').map_or(subject, |(circle, _)| circle);
        circle.parse().ok().and_then(|name| self.circle(&name)).map(|circle| (None, circle))
    }

    /// The phase that is open; none before the first and after the last.
    pub fn current_phase(&self) -> Option<&PhaseName> {
        self.phases.iter().rev().find(|(_, state)| *state == PhaseState::Open).map(|(phase, _)| phase)
    }

    /// How a phase stands; nothing where it hasn't opened.
    pub fn phase_state(&self, name: &PhaseName) -> Option<PhaseState> {
        self.phases.iter().find(|(phase, _)| phase == name).map(|(_, state)| *state)
    }

    pub(super) fn next_objection(&self) -> ObjectionId {
        ObjectionId(self.objection_home.last_key_value().map_or(1, |(id, _)| id.0 + 1))
    }

    /// Where a proposal stands.
    pub fn proposal_state(&self, proposal: &Proposal) -> ProposalState {
        let circle = &self.circles[&proposal.circle];
        match circle.state {
            _ if proposal.dropped.is_some() => ProposalState::Dropped,
            CircleState::Closed => ProposalState::Closed,
            CircleState::Published => ProposalState::Published,
            CircleState::Complete => ProposalState::Complete,
            CircleState::Open if proposal.current().is_none() => ProposalState::ToDeliver,
            CircleState::Open if proposal.withdrawal.is_some() => ProposalState::Withdrawn,
            CircleState::Open if proposal.open_objections().next().is_some() => ProposalState::Objected,
            CircleState::Open if circle.unaccepted.contains(&proposal.name) => ProposalState::UnderReview,
            CircleState::Open => ProposalState::Accepted,
        }
    }
}
