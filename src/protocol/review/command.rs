//! Command: what a member may ask for in review.

use std::collections::BTreeMap;

use super::event::{PublishedRef, Run};
use crate::protocol::artifact::{Artifact, ArtifactFacts, Place};
use crate::protocol::name::{CircleName, CircleRef, Digest, ObjectionId, ProposalName, Subject, VersionRef};

/// Offer a version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Propose {
    /// Of which deliverable.
    pub proposal: ProposalName,
    /// What it is.
    pub artifact: Artifact,
    /// What git or the bundle store knows about it.
    pub facts: ArtifactFacts,
    /// What the producer says about it.
    pub summary: String,
    /// What the producer answers to each objection.
    pub answers: BTreeMap<ObjectionId, String>,
    /// The version that it follows, as the producer was last told; 0 for none.
    pub after: u32,
}

/// Be shown a version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Read {
    /// Which one; the current where no version is given.
    pub subject: Subject,
}

/// Be shown the objections and notes on a proposal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadObjections {
    /// Which proposal.
    pub proposal: ProposalName,
}

/// A place that a reviewer names, and whether the version has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedPlace {
    /// The place.
    pub place: Place,
    /// Whether the version has it: a fact from git or the bundle store.
    pub found: bool,
}

/// Approve a version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Approve {
    /// Exactly which one.
    pub reference: VersionRef,
    /// Places that were checked.
    pub checked: Vec<NamedPlace>,
    /// Commands that were run.
    pub ran: Vec<Run>,
    /// Own objections that this version answers.
    pub resolve: Vec<ObjectionId>,
}

/// Object to a version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Object {
    /// Exactly which one.
    pub reference: VersionRef,
    /// What is wrong.
    pub text: String,
    /// Where.
    pub at: Vec<NamedPlace>,
    /// A command that fails.
    pub failing_test: Option<Run>,
}

/// Leave a note on a version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// Exactly which one.
    pub reference: VersionRef,
    /// What is noted.
    pub text: String,
    /// Where.
    pub at: Vec<NamedPlace>,
}

/// Close an own objection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolve {
    /// Which one.
    pub objection: ObjectionId,
    /// Whether it was a mistake, rather than answered by a newer version.
    pub mistaken: bool,
    /// Why; needed where it was a mistake.
    pub reason: String,
}

/// Close somebody's objection, as a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Overrule {
    /// Which one.
    pub objection: ObjectionId,
    /// Why.
    pub reason: String,
}

/// Take the current version back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Withdraw {
    /// Of which proposal.
    pub proposal: ProposalName,
    /// Why.
    pub reason: String,
}

/// Report what came of a check that the charter requires, run on a version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportCheck {
    /// On exactly which one.
    pub reference: VersionRef,
    /// Which check.
    pub name: String,
    /// How it exited; nothing where it was skipped.
    pub exit: Option<i32>,
    /// What it printed.
    pub output: Option<String>,
}

/// Say that a circle is done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Confirm {
    /// Exactly what it holds.
    pub reference: CircleRef,
}

/// The server's report that it published what a circle holds, or that it can't.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportPublish {
    /// Which circle.
    pub circle: CircleName,
    /// Exactly what it holds.
    pub manifest: Digest,
    /// Why it can't be published, and whose proposals are in the way; nothing where it was.
    pub failure: Option<PublishFailure>,
    /// The refs that moved; none where it holds bundles, or nothing moved.
    pub refs: Vec<PublishedRef>,
    /// What came of the charter's check, where it was run.
    pub check: Option<Run>,
}

/// Why what a circle holds can't be published.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublishFailure {
    /// In one sentence.
    pub because: String,
    /// The proposals whose producers owe a new version.
    pub owing: Vec<ProposalName>,
}
