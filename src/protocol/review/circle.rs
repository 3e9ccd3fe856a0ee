//! Circles: what they hold, exactly, and who takes part.

use std::collections::BTreeSet;

use sha2::{Digest as _, Sha256};

use super::state::{Circle, CircleState, Proposal, Review};
use crate::protocol::charter::Charter;
use crate::protocol::name::{CircleRef, Digest, MemberName, ProposalName};
use crate::protocol::team::Effect;
use crate::protocol::time::Time;

/// The producers and reviewers of those proposals.
pub(super) fn participants_of<'a>(
    charter: &'a Charter,
    circle: &Circle,
    proposals: impl Iterator<Item = &'a Proposal>,
) -> BTreeSet<&'a MemberName> {
    let mut participants = BTreeSet::new();
    let Some((_, phase)) = charter.phase(&circle.phase) else { return participants };
    for proposal in proposals {
        participants.insert(&proposal.producer);
        participants.extend(proposal.edges(phase).map(|edge| edge.reviewer));
    }
    participants
}

impl Review {
    /// The digest of what a circle holds now: the charter's revision, how often the circle was opened
    /// again and a person decided about it, and each proposal with its current version and digest.
    pub fn manifest(&self, revision: u32, circle: &Circle) -> Digest {
        let mut hasher = Sha256::new();
        hasher.update(format!("countersign circle 1\n{}\n{revision}\n{}\n", circle.name, circle.reopened));
        // Whoever confirmed before a person decided has not confirmed what the decision left.
        if circle.decided > 0 {
            hasher.update(format!("decided {}\n", circle.decided));
        }
        for name in &circle.proposals {
            // One that begins with the version that is judged has none yet.
            hasher.update(match self.proposals.get(name).and_then(Proposal::current) {
                Some(version) => format!("{name}@{}:{}\n", version.number, version.artifact.digest),
                None => format!("{name}@0\n"),
            });
        }
        Digest::of_bytes(hasher.finalize().into())
    }

    /// What a circle is called now, exactly: what it was completed with, once it was.
    pub fn circle_ref(&self, revision: u32, circle: &Circle) -> CircleRef {
        let digest = match &circle.completed {
            Some(completed) => completed.manifest.clone(),
            None => self.manifest(revision, circle),
        };
        CircleRef { circle: circle.name.clone(), digest: (&digest).into() }
    }

    /// The producers and reviewers of a circle's proposals: those who confirm it.
    pub fn participants<'a>(&'a self, charter: &'a Charter, circle: &'a Circle) -> BTreeSet<&'a MemberName> {
        participants_of(charter, circle, circle.proposals.iter().filter_map(|name| self.proposals.get(name)))
    }

    /// Who confirmed exactly `manifest`.
    pub fn confirmed<'a>(
        &self,
        circle: &'a Circle,
        manifest: &'a Digest,
    ) -> impl Iterator<Item = &'a MemberName> {
        circle.confirmed.iter().filter(move |(_, confirmed)| *confirmed == manifest).map(|(member, _)| member)
    }

    /// Whether, as far as the core can tell without rules, nothing but confirmations is missing: every
    /// proposal is accepted, and its producer has read all that is open.
    pub fn is_settled(&self, circle: &Circle) -> bool {
        let read = |name: &ProposalName| self.proposals[name].unread().next().is_none();
        circle.unaccepted.is_empty() && circle.proposals.iter().all(read)
    }

    pub(in crate::protocol) fn effects(&self) -> Vec<Effect> {
        // After nearly every command there is none; that is seen without looking up each by its name.
        if self.circles.values().all(|circle| circle.state != CircleState::Complete) {
            return Vec::new();
        }
        let complete = self.circles().filter(|circle| circle.state == CircleState::Complete);
        let publish = complete.filter_map(|circle| circle.completed.as_ref()).map(|completed| {
            Effect::Publish { circle: completed.circle.clone(), manifest: completed.manifest.clone() }
        });
        publish.collect()
    }

    /// When withdrawn work may come back.
    pub(in crate::protocol) fn cooling<'a>(
        &'a self,
        charter: &'a Charter,
    ) -> impl Iterator<Item = Time> + 'a {
        let open = self.circles().filter(|circle| circle.is_open());
        let proposals = open.flat_map(|circle| &circle.proposals).map(|name| &self.proposals[name]);
        let cooling = proposals.filter(|proposal| proposal.withdrawal.is_some());
        cooling.filter_map(|proposal| proposal.cool_at(&charter.limits))
    }
}
