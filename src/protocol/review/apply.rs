//! apply: folds the review's events into its state. It never fails and consults no rule: an event
//! is a fact.

use std::collections::{BTreeMap, BTreeSet};

use super::event::{CirclePublished, Closing, DeliverableDropped, Objected, PhaseClosed, Proposed};
use super::state::{
    Ballot, CheckReport, Circle, CircleState, Closed, Dropped, Objection, ObjectionKind, PhaseState,
    Proposal, Review, Version, Vote, VoteKind, Withdrawal,
};
use crate::protocol::charter::{Charter, ConfirmKind, Phase, ReviewEdge};
use crate::protocol::escalation::{Cause, Decision, Escalated};
use crate::protocol::event::Event;
use crate::protocol::name::{CircleName, MemberName, PhaseName, ProposalName};
use crate::protocol::recovery::{Patch, RecoveryFired};
use crate::protocol::time::Time;

impl Review {
    /// Folds one event in. `charter` is the one in force after the event.
    pub(in crate::protocol) fn apply(&mut self, charter: &Charter, at: Time, event: &Event) {
        match event {
            Event::PhaseOpened(opened) => {
                if let Some((_, phase)) = charter.phase(&opened.phase) {
                    self.open_phase(phase, at);
                }
            }
            Event::Proposed(proposed) => self.propose(at, proposed),
            Event::VersionRead(read) => {
                if let Some(version) = self.version_mut(&read.proposal, read.version) {
                    version.read_by.entry(read.by.clone()).or_insert(at);
                }
            }
            Event::ObjectionsRead(read) => {
                if let Some(proposal) = self.proposals.get_mut(&read.proposal) {
                    let shown = |objection: &&mut Objection| read.objections.contains(&objection.id);
                    proposal.objections.iter_mut().filter(shown).for_each(|objection| objection.read = true);
                }
            }
            Event::Approved(approved) => {
                let vote = Vote {
                    kind: VoteKind::Approve,
                    at,
                    lenses: approved.lenses.clone(),
                    checked: approved.checked.clone(),
                    ran: approved.ran.clone(),
                };
                self.vote(&approved.proposal, approved.version, &approved.by, vote);
            }
            Event::Objected(objected) => self.object(at, objected),
            Event::Noted(noted) => {
                let Some(proposal) = self.proposals.get_mut(&noted.proposal) else { return };
                self.objection_home.insert(noted.id, noted.proposal.clone());
                proposal.objections.push(Objection {
                    id: noted.id,
                    kind: ObjectionKind::Note,
                    by: noted.by.clone(),
                    lenses: noted.lenses.clone(),
                    version: noted.version,
                    at,
                    text: noted.text.clone(),
                    places: noted.at.clone(),
                    failing_test: None,
                    closed: None,
                    read: false,
                    from: None,
                });
                if let Some(ballot) = self.ballot_mut(&noted.proposal, noted.version, &noted.by) {
                    ballot.notes += 1;
                }
            }
            Event::ObjectionClosed(closed) => {
                let how =
                    Closed { how: closed.how, by: closed.by.clone(), at, reason: closed.reason.clone() };
                let places: Vec<ProposalName> =
                    self.places(closed.id).map(|(proposal, _)| proposal.name.clone()).collect();
                for name in &places {
                    let objections = self.proposals.get_mut(name).map(|proposal| &mut proposal.objections);
                    let known = |objection: &&mut Objection| objection.id == closed.id;
                    for objection in objections.into_iter().flatten().filter(known) {
                        objection.closed = Some(how.clone());
                    }
                }
                if let Some((home, objection)) = self.objection(closed.id) {
                    let (home, raised_on, by) = (home.name.clone(), objection.version, objection.by.clone());
                    self.close(&home, raised_on, &by, closed.how);
                }
                for name in &places {
                    self.settle_named(charter, at, name, true);
                }
            }
            Event::Withdrawn(withdrawn) => {
                let Some(proposal) = self.proposals.get_mut(&withdrawn.proposal) else { return };
                proposal.withdrawal =
                    Some(Withdrawal { by: withdrawn.by.clone(), at, reason: withdrawn.reason.clone() });
                let circle = proposal.circle.clone();
                self.count(&withdrawn.proposal, |work| {
                    work.flipped_at = Some(at);
                    work.flips += 1;
                });
                self.lapse_all(&circle);
            }
            Event::CheckReported(reported) => {
                let (by, exit, output) = (reported.by.clone(), reported.exit, reported.output.clone());
                if let Some(version) = self.version_mut(&reported.proposal, reported.version) {
                    version.checks.insert(reported.name.clone(), CheckReport { by, at, exit, output });
                }
            }
            Event::TargetMoved(moved) => {
                let reference = &moved.reference;
                if let Some(version) = self.version_mut(&reference.proposal, reference.version) {
                    version.compare(at, moved);
                }
            }
            Event::DissentCalled(called) => {
                if let Some(circle) = self.circles.get_mut(&called.circle) {
                    circle.dissent = Some(called.manifest.clone());
                }
            }
            Event::Confirmed(confirmed) => {
                if let Some(circle) = self.circles.get_mut(&confirmed.circle) {
                    circle.confirmed.insert(confirmed.by.clone(), confirmed.manifest.clone());
                }
            }
            Event::CircleCompleted(completed) => {
                if let Some(circle) = self.circles.get_mut(&completed.circle) {
                    circle.state = CircleState::Complete;
                    circle.completed = Some(completed.clone());
                    circle.completed_at = Some(at);
                    circle.unpublished = None;
                }
            }
            Event::CirclePublished(published) => self.publish(charter, published),
            Event::CircleReopened(reopened) => {
                let Some(circle) = self.circles.get_mut(&reopened.circle) else { return };
                circle.state = CircleState::Open;
                let completed = circle.completed.take();
                circle.completed_at = None;
                circle.unpublished = Some(reopened.because.clone());
                circle.publish_check.clone_from(&reopened.check);
                circle.reopened += 1;
                circle.confirmed.clear();
                for name in &reopened.owing {
                    if let Some(proposal) = self.proposals.get_mut(name) {
                        proposal.publish_failed = Some(reopened.because.clone());
                    }
                }
                self.lapse_reopened(charter, &reopened.circle, completed.as_ref());
            }
            Event::RecoveryFired(fired) => self.repair(fired),
            Event::ReviewerReplaced(replaced) => {
                let (name, by) = (&replaced.proposal, Some(&replaced.stand_in));
                self.hand_over(charter, at, name, &replaced.reviewer, by);
            }
            Event::ReviewerExcused(excused) => {
                self.hand_over(charter, at, &excused.proposal, &excused.reviewer, None);
            }
            Event::PhaseClosed(closed) => self.close_phase(closed, at),
            Event::DeliverableDropped(dropped) => self.drop_proposal(charter, dropped, at),
            // A revised charter is part of every open circle's digest, so that what was confirmed
            // before no longer counts.
            Event::CharterAdopted(_) => self.revise(charter, at),
            Event::Escalated(_)
            | Event::EscalationReminded(_)
            | Event::EscalationSent(_)
            | Event::EscalationClosed(_)
            | Event::RefPutBack(_)
            | Event::CalledOut(_)
            | Event::Said(_)
            | Event::ClaimJudged(_)
            | Event::ServerResumed(_)
            | Event::Delivered(_)
            | Event::OwedAgain(_)
            | Event::Woken(_) => {}
        }
        self.settle(charter, at, event);
    }

    /// What was completed wrongly is open again; its phase with it.
    fn repair(&mut self, fired: &RecoveryFired) {
        if !matches!(fired.patch, Patch::DropStaleApproval | Patch::ReopenUndelivered) {
            return;
        }
        let Some(circle) =
            fired.subject.parse().ok().and_then(|name| self.circles.get_mut::<CircleName>(&name))
        else {
            return;
        };
        circle.state = CircleState::Open;
        (circle.completed, circle.completed_at) = (None, None);
        circle.reopened += 1;
        circle.confirmed.clear();
        let phase = circle.phase.clone();
        if let Some((_, state)) = self.phases.iter_mut().find(|(name, _)| *name == phase) {
            *state = PhaseState::Open;
        }
    }

    /// A person decided about a circle: that is progress; where it changes what is confirmed, it voids the
    /// circle's confirmations.
    pub(in crate::protocol) fn decided(&mut self, at: Time, circle: Option<&CircleName>, changes: bool) {
        if let Some(circle) =
            circle.and_then(|name| self.circles.get_mut(name)).filter(|circle| circle.is_open())
        {
            circle.progress_at = at;
            if changes {
                circle.decided += 1;
                circle.confirmed.clear();
            }
        }
    }

    /// From here on somebody else looks through a reviewer's lenses, or nobody needs to.
    fn hand_over(
        &mut self,
        charter: &Charter,
        at: Time,
        name: &ProposalName,
        from: &MemberName,
        to: Option<&MemberName>,
    ) {
        let Some(proposal) = self.proposals.get_mut(name) else { return };
        let Some((_, phase)) = charter.phase(&proposal.phase) else { return };
        let stands_in =
            |edge: &&ReviewEdge| proposal.stand_ins.get(&edge.reviewer).unwrap_or(&edge.reviewer) == from;
        let places: Vec<MemberName> = phase
            .reviewers_of(&proposal.producer)
            .filter(stands_in)
            .map(|edge| edge.reviewer.clone())
            .collect();
        for place in places {
            match to {
                Some(to) => drop(proposal.stand_ins.insert(place, to.clone())),
                None => drop(proposal.excused.insert(place)),
            }
        }
        let Some(to) = to else { return };
        proposal.appointed.insert(to.clone(), at);
        // What the stand-in said, or was overruled on, was through its own lenses alone: it says anew
        // what it sees through those that it looks through now. An objection stays until it is answered.
        let objects = proposal.open_objections().any(|open| open.by == *to);
        if let Some(current) = proposal.versions.last_mut() {
            current.overruled.remove(to);
            if let Some(ballot) = current.ballots.get_mut(to).filter(|_| !objects) {
                // It is owed, and so no change of a vote.
                (ballot.vote, ballot.cast) = (None, None);
            }
        }
    }

    /// A limit counts anew from here.
    pub(in crate::protocol) fn raise_limit(&mut self, escalated: &Escalated, decision: Decision) {
        if decision != Decision::RaiseLimit {
            return;
        }
        let Some(name) = &escalated.proposal else { return };
        match escalated.cause {
            Cause::RoundLimit => self.count(name, |work| work.rounds = 0),
            Cause::FlipLimit => self.count(name, |work| work.flips = 0),
            Cause::VoteLimit => {
                let Some(proposal) = self.proposals.get_mut(name) else { return };
                let member = escalated.member.as_ref();
                let ballots = proposal.versions.last_mut().map(|version| &mut version.ballots);
                if let Some(ballot) =
                    ballots.zip(member).and_then(|(ballots, member)| ballots.get_mut(member))
                {
                    ballot.changes = 0;
                }
            }
            _ => {}
        }
    }

    fn open_phase(&mut self, phase: &Phase, at: Time) {
        self.phases.push((phase.name.clone(), PhaseState::Open));
        let mut circles: Vec<(CircleName, Vec<ProposalName>)> = Vec::new();
        let names = phase.deliverables.iter().map(|deliverable| deliverable.name.clone());
        match phase.confirm {
            ConfirmKind::Together => circles.push(((&phase.name).into(), names.collect())),
            ConfirmKind::Each => circles.extend(names.map(|name| ((&name).into(), vec![name]))),
        }
        for deliverable in &phase.deliverables {
            let circle = match phase.confirm {
                ConfirmKind::Together => (&phase.name).into(),
                ConfirmKind::Each => (&deliverable.name).into(),
            };
            let (name, producer) = (deliverable.name.clone(), deliverable.producer.clone());
            let proposal = Proposal::fresh(name, producer, phase.name.clone(), circle, at);
            self.proposals.insert(deliverable.name.clone(), proposal);
        }
        for (name, proposals) in circles {
            self.open_circle(name, &phase.name, proposals, at);
        }
    }

    pub(super) fn open_circle(
        &mut self,
        name: CircleName,
        phase: &PhaseName,
        proposals: Vec<ProposalName>,
        at: Time,
    ) {
        self.circle_order.push(name.clone());
        let circle = Circle::fresh(name.clone(), phase, proposals, at);
        self.circles.insert(name, circle);
    }

    /// A proposal that no charter names begins, in a circle of its own.
    fn begin_ad_hoc(&mut self, phase: &PhaseName, at: Time, event: &Proposed) {
        if self.proposals.contains_key(&event.proposal) {
            return;
        }
        let begun = self.ad_hoc(event.proposal.clone(), event.producer.clone(), phase.clone(), at);
        for name in &begun.kin {
            if let Some(kin) = self.proposals.get_mut(name) {
                kin.kin.insert(event.proposal.clone());
            }
        }
        self.open_circle(begun.circle.clone(), phase, vec![begun.name.clone()], at);
        self.proposals.insert(begun.name.clone(), begun);
    }

    /// What is open on a proposal, and what its work went through, follow that work into another one: from here on
    /// both are the same work. The objections keep their ids, and close in both at once.
    fn follow(&mut self, name: &ProposalName, source: &ProposalName) {
        let (Some(into), Some(from)) = (self.proposals.get(name), self.proposals.get(source)) else { return };
        let kin: BTreeSet<ProposalName> =
            into.kin.iter().chain(&from.kin).chain([name, source]).cloned().collect();
        let (flips, rounds) = (into.flips.max(from.flips), into.rounds.max(from.rounds));
        let flipped_at = into.flipped_at.max(from.flipped_at);
        let version = into.current_number();
        let new = |objection: &&Objection| !into.objections.iter().any(|known| known.id == objection.id);
        let follows = |objection: &Objection| Objection {
            version,
            from: Some(objection.from.clone().unwrap_or_else(|| (source.clone(), objection.version))),
            ..objection.clone()
        };
        let objections: Vec<Objection> = from.open_objections().filter(new).map(follows).collect();
        for member in &kin {
            let Some(work) = self.proposals.get_mut(member) else { continue };
            (work.flips, work.rounds, work.flipped_at) = (flips, rounds, flipped_at);
            work.kin = kin.iter().filter(|other| *other != member).cloned().collect();
        }
        if let Some(into) = self.proposals.get_mut(name) {
            into.objections.extend(objections);
        }
    }

    /// Counts on a proposal and all that is the same work.
    fn count(&mut self, name: &ProposalName, count: impl Fn(&mut Proposal)) {
        let Some(kin) = self.proposals.get(name).map(|proposal| proposal.kin.clone()) else { return };
        for name in kin.iter().chain([name]) {
            self.proposals.get_mut(name).into_iter().for_each(&count);
        }
    }

    fn propose(&mut self, at: Time, event: &Proposed) {
        if let Some(phase) = &event.ad_hoc {
            self.begin_ad_hoc(phase, at, event);
        }
        event.follows.iter().for_each(|source| self.follow(&event.proposal, source));
        self.offered += 1;
        let Some(proposal) = self.proposals.get_mut(&event.proposal) else { return };
        proposal.versions.push(Version {
            number: event.version,
            artifact: event.artifact.clone(),
            producer: event.producer.clone(),
            at,
            summary: event.summary.clone(),
            answers: event.answers.clone(),
            paths: event.paths.clone(),
            files: event.files.clone(),
            authors: event.authors.clone(),
            read_by: BTreeMap::new(),
            ballots: BTreeMap::new(),
            overruled: BTreeSet::new(),
            objected: false,
            checks: BTreeMap::new(),
            offered: self.offered,
            standing: None,
        });
        proposal.withdrawal = None;
        proposal.publish_failed = None;
        let circle = proposal.circle.clone();
        self.count(&event.proposal, |work| work.rounds += u32::from(event.round));
        self.lapse_all(&circle);
    }

    fn object(&mut self, at: Time, event: &Objected) {
        let vote = Vote {
            kind: VoteKind::Object,
            at,
            lenses: event.lenses.clone(),
            checked: event.at.clone(),
            ran: event.failing_test.iter().cloned().collect(),
        };
        self.objection_home.insert(event.id, event.proposal.clone());
        if let Some(proposal) = self.proposals.get_mut(&event.proposal) {
            proposal.objections.push(Objection::raised(event, at));
        }
        if let Some(version) = self.version_mut(&event.proposal, event.version) {
            version.objected = true;
        }
        self.vote(&event.proposal, event.version, &event.by, vote);
    }

    fn close(&mut self, proposal: &ProposalName, raised_on: u32, by: &MemberName, how: Closing) {
        let Some(proposal) = self.proposals.get_mut(proposal) else { return };
        let counts = |objection: &Objection| {
            objection.is_raised_on(raised_on)
                && objection.kind == ObjectionKind::Objection
                && objection.closed.as_ref().is_none_or(|closed| closed.how == Closing::Resolved)
        };
        let objected = proposal.objections.iter().any(counts);
        let holds_more = proposal
            .objections
            .iter()
            .any(|other| other.blocks() && other.by == *by && other.is_raised_on(raised_on));
        let Some(version) = proposal.versions.get_mut(raised_on as usize - 1) else { return };
        version.objected = objected;
        match how {
            // An earlier approval is never revived: the objector has no vote until it votes.
            Closing::Resolved | Closing::Mistaken => {
                if let Some(ballot) = version.ballots.get_mut(by).filter(|_| !holds_more) {
                    ballot.vote = None;
                }
            }
            Closing::Overruled => {
                version.overruled.insert(by.clone());
            }
        }
    }

    fn vote(&mut self, proposal: &ProposalName, version: u32, by: &MemberName, vote: Vote) {
        if let Some(ballot) = self.ballot_mut(proposal, version, by) {
            let changed = ballot.cast.is_some_and(|cast| cast != vote.kind);
            ballot.changes += u32::from(changed);
            ballot.cast = Some(vote.kind);
            ballot.vote = Some(vote);
        }
        // A later vote of a member lapses its own confirmation.
        let circle = self.proposals.get(proposal).map(|proposal| &proposal.circle);
        if let Some(circle) = circle.and_then(|name| self.circles.get_mut(name)) {
            circle.confirmed.remove(by);
        }
    }

    fn publish(&mut self, charter: &Charter, published: &CirclePublished) {
        let Some(circle) = self.circles.get_mut(&published.circle) else { return };
        circle.state = CircleState::Published;
        circle.published.clone_from(&published.refs);
        circle.publish_check.clone_from(&published.check);
        let phase = circle.phase.clone();
        self.finish_phase(charter, &phase);
    }

    /// A phase that finishes together ends with its last circle; one of kind `each` is closed by a person.
    fn finish_phase(&mut self, charter: &Charter, name: &PhaseName) {
        let together = charter.phase(name).is_some_and(|(_, of)| of.confirm == ConfirmKind::Together);
        let mut states = self.circles.values().filter(|circle| circle.phase == *name).map(|one| one.state);
        if !together || states.clone().any(|state| matches!(state, CircleState::Open | CircleState::Complete))
        {
            return;
        }
        let published = states.any(|state| state == CircleState::Published);
        if let Some((_, state)) = self.phases.iter_mut().find(|(phase, _)| phase == name) {
            *state = if published { PhaseState::Published } else { PhaseState::Closed };
        }
    }

    fn close_phase(&mut self, closed: &PhaseClosed, at: Time) {
        if let Some((_, state)) = self.phases.iter_mut().find(|(phase, _)| *phase == closed.phase) {
            *state = PhaseState::Closed;
        }
        let here = |circle: &&mut Circle| circle.phase == closed.phase && circle.is_open();
        for circle in self.circles.values_mut().filter(here) {
            circle.state = CircleState::Closed;
            circle.confirmed.clear();
            circle.progress_at = at;
        }
    }

    fn drop_proposal(&mut self, charter: &Charter, dropped: &DeliverableDropped, at: Time) {
        let Some(proposal) = self.proposals.get_mut(&dropped.proposal) else { return };
        proposal.dropped = Some(Dropped { by: dropped.by.clone(), at, reason: dropped.reason.clone() });
        let Some(circle) = self.circles.get_mut(&proposal.circle) else { return };
        circle.proposals.retain(|name| *name != dropped.proposal);
        circle.unaccepted.remove(&dropped.proposal);
        circle.confirmed.clear();
        circle.progress_at = at;
        if circle.proposals.is_empty() {
            circle.state = CircleState::Closed;
            let phase = circle.phase.clone();
            self.finish_phase(charter, &phase);
        }
    }

    fn lapse_all(&mut self, circle: &CircleName) {
        if let Some(circle) = self.circles.get_mut(circle) {
            circle.confirmed.clear();
        }
    }

    /// Keeps what is derived from the proposal that an event touched.
    fn settle(&mut self, charter: &Charter, at: Time, event: &Event) {
        let (name, progress) = match event {
            Event::Proposed(event) => (&event.proposal, true),
            Event::Approved(event) => (&event.proposal, true),
            Event::Objected(event) => (&event.proposal, true),
            Event::ObjectionClosed(event) => (&event.proposal, true),
            Event::Withdrawn(event) => (&event.proposal, false),
            Event::ReviewerReplaced(event) => (&event.proposal, true),
            Event::ReviewerExcused(event) => (&event.proposal, true),
            Event::Confirmed(event) => {
                if let Some(circle) = self.circles.get_mut(&event.circle) {
                    circle.progress_at = at;
                }
                return;
            }
            // Edges, or what a reopened circle counts, may have changed for every proposal.
            Event::CharterAdopted(_) | Event::CircleReopened(_) | Event::RecoveryFired(_) => {
                return self.settle_all(charter);
            }
            _ => return,
        };
        self.settle_named(charter, at, name, progress);
    }

    fn settle_named(&mut self, charter: &Charter, at: Time, name: &ProposalName, progress: bool) {
        let Some(proposal) = self.proposals.get(name).filter(|proposal| proposal.dropped.is_none()) else {
            return;
        };
        let Some(circle) = self.circles.get_mut(&proposal.circle) else { return };
        if progress {
            circle.progress_at = at;
        }
        settle_one(charter, circle, proposal);
    }

    fn settle_all(&mut self, charter: &Charter) {
        for proposal in self.proposals.values().filter(|proposal| proposal.dropped.is_none()) {
            if let Some(circle) = self.circles.get_mut(&proposal.circle) {
                settle_one(charter, circle, proposal);
            }
        }
    }

    fn version_mut(&mut self, proposal: &ProposalName, version: u32) -> Option<&mut Version> {
        let index = usize::try_from(version).ok()?.checked_sub(1)?;
        self.proposals.get_mut(proposal)?.versions.get_mut(index)
    }

    fn ballot_mut(&mut self, proposal: &ProposalName, version: u32, by: &MemberName) -> Option<&mut Ballot> {
        self.version_mut(proposal, version).map(|version| version.ballots.entry(by.clone()).or_default())
    }
}

fn settle_one(charter: &Charter, circle: &mut Circle, proposal: &Proposal) {
    let Some((_, phase)) = charter.phase(&proposal.phase) else { return };
    if proposal.is_accepted(phase) {
        circle.unaccepted.remove(&proposal.name);
    } else {
        circle.unaccepted.insert(proposal.name.clone());
    }
}
