//! apply: another charter came into force while work is open.

use std::collections::BTreeSet;

use super::event::{CircleCompleted, CompletedEntry};
use super::state::{Edge, Proposal, Review, VoteKind, edges_under, may_stand_in};
use crate::protocol::charter::{Charter, ConfirmKind, Deliverable, Phase};
use crate::protocol::name::{CircleName, Lens, MemberName, PhaseName, ProposalName};
use crate::protocol::time::Time;

impl Review {
    /// What is new in an open phase is owed; what has no version yet is owed by whom the charter names. Stand-ins
    /// who left stand in no longer, and an approval lapses where its reviewer looks through a further lens now,
    /// or may not approve.
    pub(super) fn revise(&mut self, charter: &Charter, at: Time) {
        let Some(name) = self.current_phase().cloned() else { return };
        let Some((_, phase)) = charter.phase(&name) else { return };
        phase.deliverables.iter().for_each(|deliverable| self.owe(phase, deliverable, at));
        if phase.confirm == ConfirmKind::Together
            && let Some(circle) = self.circles.get_mut(&CircleName::from(&phase.name))
        {
            let place = |name: &ProposalName| phase.deliverables.iter().position(|known| known.name == *name);
            circle.proposals.sort_by_key(|name| place(name).unwrap_or(usize::MAX));
        }
        let open =
            self.circles.values().filter(|circle| circle.is_open()).flat_map(|circle| &circle.proposals);
        for name in open.cloned().collect::<Vec<_>>() {
            if let Some(proposal) = self.proposals.get_mut(&name) {
                lapse(charter, phase, proposal);
            }
        }
    }

    /// What was complete when charters changed stands under the one in force once it is open again.
    pub(super) fn lapse_reopened(
        &mut self,
        charter: &Charter,
        circle: &CircleName,
        completed: Option<&CircleCompleted>,
    ) {
        let Some(circle) = self.circles.get(circle) else { return };
        let Some((_, phase)) = charter.phase(&circle.phase) else { return };
        for name in &circle.proposals {
            if let Some(proposal) = self.proposals.get_mut(name) {
                lapse(charter, phase, proposal);
            }
        }
        let entries = completed.into_iter().flat_map(|completed| &completed.entries);
        let meant = |entry: &&CompletedEntry| charter.target_of(&entry.proposal) == entry.target.as_deref();
        for entry in entries.filter(|entry| entry.target.is_some() && !meant(entry)) {
            if let Some(proposal) = self.proposals.get_mut(&entry.proposal) {
                void(proposal);
            }
        }
    }

    /// What was said of open work was said of what it does to the ref that it was meant for. Where the next charter
    /// means it for another one, nobody approves it until they say so again. An objection stands.
    pub(in crate::protocol) fn lapse_retargeted(&mut self, before: &Charter, next: &Charter) {
        let open = self.circles.values().filter(|circle| circle.is_open());
        let open: Vec<ProposalName> = open.flat_map(|circle| &circle.proposals).cloned().collect();
        for name in open.iter().filter(|name| before.target_of(name) != next.target_of(name)) {
            if let Some(proposal) = self.proposals.get_mut(name) {
                void(proposal);
            }
        }
    }

    /// Where a reviewer looks through a further lens under the next charter, what a person decided in its stead on
    /// the current version was not about that one, and says nothing any longer.
    pub(in crate::protocol) fn lapse_decisions(&mut self, before: &Charter, next: &Charter) {
        let Some(name) = self.current_phase() else { return };
        let (Some((_, old)), Some((_, new))) = (before.phase(name), next.phase(name)) else { return };
        for proposal in self.proposals.values_mut() {
            let Some(current) = proposal.current() else { continue };
            let known = |edge: &Edge<'_>| {
                proposal.edges(old).any(|one| one.reviewer == edge.reviewer && one.lens == edge.lens)
            };
            let anew: BTreeSet<MemberName> = edges_under(next, new, proposal)
                .filter(|edge| current.overruled.contains(edge.reviewer) && !known(edge))
                .map(|edge| edge.reviewer.clone())
                .collect();
            undecide(proposal, anew);
        }
    }

    fn owe(&mut self, phase: &Phase, deliverable: &Deliverable, at: Time) {
        let Deliverable { name, producer, .. } = deliverable;
        if let Some(known) = self.proposals.get_mut(name) {
            if known.versions.is_empty() {
                known.producer = producer.clone();
            }
            return;
        }
        let circle: CircleName = match phase.confirm {
            ConfirmKind::Together => (&phase.name).into(),
            ConfirmKind::Each => name.into(),
        };
        let owed = Proposal::fresh(name.clone(), producer.clone(), phase.name.clone(), circle.clone(), at);
        self.proposals.insert(name.clone(), owed);
        match self.circles.get_mut(&circle) {
            Some(circle) => circle.proposals.push(name.clone()),
            None => self.open_circle(circle, &PhaseName::clone(&phase.name), vec![name.clone()], at),
        }
    }
}

/// What a person decided in the stead of these members on the current version says nothing any longer.
fn undecide(proposal: &mut Proposal, anew: BTreeSet<MemberName>) {
    // An objection that is open speaks for itself.
    let objects: BTreeSet<MemberName> =
        proposal.open_objections().map(|objection| objection.by.clone()).collect();
    let Some(current) = proposal.versions.last_mut() else { return };
    for member in anew {
        current.overruled.remove(&member);
        if let Some(ballot) = current.ballots.get_mut(&member).filter(|_| !objects.contains(&member)) {
            // What it says anew is owed, and so no change of a vote.
            (ballot.vote, ballot.cast) = (None, None);
        }
    }
}

/// Nobody approves the current version, and no decision stands in for that.
fn void(proposal: &mut Proposal) {
    let decided = proposal.current().map(|current| current.overruled.clone()).unwrap_or_default();
    undecide(proposal, decided);
    let Some(current) = proposal.versions.last_mut() else { return };
    for ballot in current.ballots.values_mut() {
        if ballot.vote.as_ref().is_some_and(|vote| vote.kind == VoteKind::Approve) {
            ballot.vote = None;
        }
    }
}

fn lapse(charter: &Charter, phase: &Phase, proposal: &mut Proposal) {
    let stands: Vec<_> = proposal
        .stand_ins
        .iter()
        .filter(|(_, stand_in)| may_stand_in(charter, proposal, stand_in))
        .map(|(place, _)| place.clone())
        .collect();
    proposal.stand_ins.retain(|place, _| stands.contains(place));
    let Some(current) = proposal.current() else { return };
    let lapsed = current.ballots.iter().filter(|(member, ballot)| {
        let approves = ballot.vote.as_ref().filter(|vote| vote.kind == VoteKind::Approve);
        let lenses: BTreeSet<&Lens> = edges_under(charter, phase, proposal)
            .filter(|edge| edge.reviewer == *member)
            .map(|edge| edge.lens)
            .collect();
        approves.is_some_and(|vote| {
            lenses.iter().any(|lens| !vote.lenses.contains(lens))
                || proposal.own_work(charter, current, member).is_some()
        })
    });
    let lapsed: Vec<_> = lapsed.map(|(member, _)| member.clone()).collect();
    let Some(current) = proposal.versions.last_mut() else { return };
    for member in lapsed {
        if let Some(ballot) = current.ballots.get_mut(&member) {
            ballot.vote = None;
        }
    }
}
