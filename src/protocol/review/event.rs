//! Event: what happened in review. These forms are stored.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::protocol::artifact::{Artifact, Identity, Place, RepoPath};
use crate::protocol::charter::Charter;
pub use crate::protocol::evidence::Run;
use crate::protocol::name::{
    CircleName, Digest, Lens, MemberName, ObjectionId, PhaseName, ProposalName, VersionRef,
};

/// A producer offered a version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Proposed {
    /// Of which proposal.
    pub proposal: ProposalName,
    /// Its number.
    pub version: u32,
    /// Who offered it.
    pub producer: MemberName,
    /// What it is.
    pub artifact: Artifact,
    /// What the producer says about it.
    pub summary: String,
    /// What the producer answers to each objection.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub answers: BTreeMap<ObjectionId, String>,
    /// Every path that it touches.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub paths: Vec<RepoPath>,
    /// Who authored it, by its commits.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub authors: Vec<Identity>,
    /// Whether it follows an objected version.
    pub round: bool,
    /// The phase in which it is ad hoc; nothing for a deliverable of the charter.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub ad_hoc: Option<PhaseName>,
    /// What the files hold that it touches, by digest.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub files: Vec<Digest>,
    /// The proposals whose work it takes up: their open objections, rounds and flips follow it.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub follows: Vec<ProposalName>,
}

/// A member was shown a version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VersionRead {
    /// Of which proposal.
    pub proposal: ProposalName,
    /// Which version.
    pub version: u32,
    /// By whom.
    pub by: MemberName,
}

/// A producer was shown objections and notes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObjectionsRead {
    /// On which proposal.
    pub proposal: ProposalName,
    /// By whom.
    pub by: MemberName,
    /// Those not read before.
    pub objections: Vec<ObjectionId>,
}

/// A reviewer approved a version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Approved {
    /// Of which proposal.
    pub proposal: ProposalName,
    /// Which version.
    pub version: u32,
    /// By whom.
    pub by: MemberName,
    /// Through which lenses.
    pub lenses: Vec<Lens>,
    /// Places that were checked.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub checked: Vec<Place>,
    /// Commands that were run.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub ran: Vec<Run>,
}

/// A reviewer objected to a version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Objected {
    /// The objection's id.
    pub id: ObjectionId,
    /// On which proposal.
    pub proposal: ProposalName,
    /// On which version.
    pub version: u32,
    /// By whom.
    pub by: MemberName,
    /// Through which lenses.
    pub lenses: Vec<Lens>,
    /// What is wrong.
    pub text: String,
    /// Where.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub at: Vec<Place>,
    /// A command that fails, and will pass once this is mended.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub failing_test: Option<Run>,
}

/// A reviewer left a note on a version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Noted {
    /// The note's id.
    pub id: ObjectionId,
    /// On which proposal.
    pub proposal: ProposalName,
    /// On which version.
    pub version: u32,
    /// By whom.
    pub by: MemberName,
    /// Through which lenses.
    pub lenses: Vec<Lens>,
    /// What is noted.
    pub text: String,
    /// Where.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub at: Vec<Place>,
}

/// An objection was closed by its objector or by a person.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObjectionClosed {
    /// Which one.
    pub id: ObjectionId,
    /// On which proposal.
    pub proposal: ProposalName,
    /// By whom.
    pub by: MemberName,
    /// In which way.
    pub how: Closing,
    /// The current version when it was closed.
    pub version: u32,
    /// Why.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub reason: Option<String>,
}

/// In which way an objection was closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Closing {
    /// A newer version answers it, says its objector.
    Resolved,
    /// It was a mistake, says its objector.
    Mistaken,
    /// A person decided against it; shown for ever.
    Overruled,
}

/// A producer withdrew a version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Withdrawn {
    /// Of which proposal.
    pub proposal: ProposalName,
    /// Which version.
    pub version: u32,
    /// By whom.
    pub by: MemberName,
    /// Why.
    pub reason: String,
}

/// A member reported what came of a required check on a version. The last report counts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckReported {
    /// Of which proposal.
    pub proposal: ProposalName,
    /// Which version.
    pub version: u32,
    /// The check's name in the charter.
    pub name: String,
    /// How it exited; nothing where it was skipped.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub exit: Option<i32>,
    /// What it printed, where that was kept.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub output: Option<String>,
    /// Who reports it.
    pub by: MemberName,
}

/// All that was missing is approved, and nobody attached evidence: each who approves is asked for some.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DissentCalled {
    /// In which circle.
    pub circle: CircleName,
    /// Exactly what it held.
    pub manifest: Digest,
    /// The proposals that nobody attached evidence to.
    pub proposals: Vec<ProposalName>,
}

/// A participant confirmed a circle.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Confirmed {
    /// Which circle.
    pub circle: CircleName,
    /// Exactly what it held.
    pub manifest: Digest,
    /// By whom.
    pub by: MemberName,
}

/// The last participant confirmed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CircleCompleted {
    /// Which circle.
    pub circle: CircleName,
    /// Exactly what it holds.
    pub manifest: Digest,
    /// Every proposal with what counted for it.
    pub entries: Vec<CompletedEntry>,
}

/// A proposal of a completed circle.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompletedEntry {
    /// Which proposal.
    pub proposal: ProposalName,
    /// Which version.
    pub version: u32,
    /// Its artifact.
    pub digest: Digest,
    /// Who approved it.
    pub approvals: Vec<CountedApproval>,
    /// The full name of the ref that it was reviewed for; where an old log doesn't say, the charter does.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub target: Option<String>,
}

impl CompletedEntry {
    /// The full name of the ref that it was reviewed for.
    pub fn target<'a>(&'a self, charter: &'a Charter) -> &'a str {
        let told = self.target.as_deref().or_else(|| charter.target_of(&self.proposal));
        told.unwrap_or(&charter.publish.target)
    }
}

/// An approval that counted, or a person's decision in its stead.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CountedApproval {
    /// The reviewer.
    pub by: MemberName,
    /// Through which lens.
    pub lens: Lens,
    /// The version that was approved.
    pub version: u32,
    /// Whether a person's overruling stands in for it.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub overruled: bool,
}

/// What the circle holds was published.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CirclePublished {
    /// Which circle.
    pub circle: CircleName,
    /// Exactly what it holds.
    pub manifest: Digest,
    /// The refs that moved, all at once; none where it holds bundles.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub refs: Vec<PublishedRef>,
    /// The check that passed before they moved, where the charter has one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub check: Option<Run>,
}

/// A ref that publishing moved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PublishedRef {
    /// Its full name.
    #[serde(rename = "ref")]
    pub name: String,
    /// Where it was; nowhere where publishing made it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub from: Option<Digest>,
    /// Where it was left.
    pub to: Digest,
    /// The merge commits between the two that the server made, oldest first.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub merges: Vec<PublishedMerge>,
}

/// A merge commit that the server made to publish a version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PublishedMerge {
    /// Its id.
    pub commit: Digest,
    /// The version that it merged.
    pub version: VersionRef,
}

/// What the circle holds couldn't be published; it is open again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CircleReopened {
    /// Which circle.
    pub circle: CircleName,
    /// Why.
    pub because: String,
    /// The proposals whose producers owe a new version.
    pub owing: Vec<ProposalName>,
    /// The check that didn't pass, where that is why.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub check: Option<Run>,
}

/// A person had another member review in a reviewer's place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReviewerReplaced {
    /// Of which proposal.
    pub proposal: ProposalName,
    /// Whose place it was.
    pub reviewer: MemberName,
    /// Who reviews now.
    pub stand_in: MemberName,
    /// The person who decided it.
    pub by: MemberName,
}

/// A person excused a reviewer from a proposal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReviewerExcused {
    /// From which proposal.
    pub proposal: ProposalName,
    /// Who need not review it.
    pub reviewer: MemberName,
    /// The person who decided it.
    pub by: MemberName,
}

/// A person closed a phase: whatever is open in it ends as it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PhaseClosed {
    /// Which phase.
    pub phase: PhaseName,
    /// The person who decided it.
    pub by: MemberName,
    /// Why.
    pub reason: String,
}

/// A person dropped a deliverable, or what was proposed ad hoc: it leaves its circle.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeliverableDropped {
    /// Which proposal.
    pub proposal: ProposalName,
    /// The person who decided it.
    pub by: MemberName,
    /// Why.
    pub reason: String,
}

/// Git says of a current version how it stands to its target now, and that is other than what it said before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TargetMoved {
    /// The ref that the version is meant for.
    pub target: String,
    /// Where that ref stands; nothing where it doesn't exist yet.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub commit: Option<Digest>,
    /// Which version.
    pub reference: VersionRef,
    /// Whether merging it would change nothing.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub empty: bool,
    /// What it would take back of the work that landed since its base.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub undone: Option<Undone>,
    /// What it doesn't merge with.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub conflict: Option<Conflict>,
}

/// The most files, and the most commits, that are named of what a version takes back, or of a conflict.
pub const NAMED_MAX: usize = 20;

/// Work that landed, and that a version would take back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Undone {
    /// Files that would be again what they were before, by path; the first of them.
    pub files: Vec<RepoPath>,
    /// How many there are.
    pub files_total: u32,
    /// The commits that brought what would be gone, oldest first; the first of them.
    pub commits: Vec<Digest>,
    /// How many there are.
    pub commits_total: u32,
}

/// Why a version doesn't merge.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Conflict {
    /// Earlier versions of its circle; none where it is the target itself.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub with: Vec<VersionRef>,
    /// The first paths that are in conflict.
    pub paths: Vec<RepoPath>,
    /// How many there are.
    pub paths_total: u32,
    /// Whether it is only that it doesn't follow a target that may only move forward.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub not_forward: bool,
}
