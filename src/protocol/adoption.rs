//! decide: adopt. A person puts another charter in force, while work goes on.
//!
//! What can't be is refused, with its line in the file: a charter that takes from work that is open those
//! who could finish it, or that says something else of what is over. Everything else follows in the same
//! batch: what leaves the charter is dropped, what lost its holder goes to a person, and where a limit is
//! lower than what was used, a person is asked before anybody is refused.

use std::collections::BTreeSet;

use super::answer::Answer;
use super::charter::{Charter, ConfirmKind, Deliverable, Diagnostics, Phase, Place, line_of};
use super::escalation::{Cause, Escalated};
use super::event::{CharterAdopted, Event, PhaseOpened};
use super::name::{Digest, EscalationId, PhaseName, ProposalName, skeleton};
use super::rejection::{Rejection, Violation};
use super::review::{self, Circle, CircleState, DeliverableDropped, PhaseState, Proposal};
use super::rule::OwnRule;
use super::secret;
use super::team::{Ask, Decision};

/// Put another charter in force, as a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Revise {
    /// The file, verbatim.
    pub text: String,
    /// SHA-256 of the text.
    pub digest: Digest,
    /// What it was read as, or what is wrong with it.
    pub charter: Result<Charter, Diagnostics>,
    /// The team's own rules, by id.
    pub rules: Vec<OwnRule>,
    /// What is wrong with them, or with what the charter says of rules.
    pub refused: Vec<RuleFault>,
    /// Why.
    pub reason: String,
}

/// What is wrong with a rule that comes with a charter, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleFault {
    /// The rule's file, or the charter's.
    pub file: String,
    /// From 1; 0 where it has no place in the file.
    pub line: u32,
    /// From 1; 0 where it has no place in the file.
    pub column: u32,
    /// What is wrong.
    pub what: String,
    /// The known word that was probably meant; empty where there is none.
    pub nearest: String,
}

impl From<&RuleFault> for Violation {
    fn from(fault: &RuleFault) -> Self {
        let RuleFault { file, line, column, what, nearest } = fault.clone();
        Self::RuleRefused { file, line, column, what, nearest }
    }
}

/// Puts another charter in force, unless, in this order: the member is no person, there is no reason, the
/// text is no charter, a rule that comes with it is none, it is the one in force, or the team can't go on under it.
pub(super) fn adopt(ask: Ask<'_>, command: &Revise) -> Decision {
    let mut unmet = Vec::new();
    ask.check_person("adopt a charter", &mut unmet);
    ask.check_reason("adopt", &command.reason, &mut unmet);
    let texts = command.rules.iter().map(|rule| (format!("rule {}", rule.id), rule.text.as_str()));
    let texts = std::iter::once(("charter".to_owned(), command.text.as_str())).chain(texts);
    unmet.extend(texts.filter_map(|(what, text)| {
        let found = secret::find(text)?;
        Some(Violation::SecretFound { what, kind: found.kind.to_owned(), line: found.line })
    }));
    let charter = match &command.charter {
        Ok(charter) => Some(charter),
        Err(found) => {
            unmet.extend(found.findings.iter().map(|finding| Violation::CharterRefused {
                line: count(finding.line),
                column: count(finding.column),
                what: finding.what.clone(),
                help: finding.help.clone().unwrap_or_default(),
            }));
            None
        }
    };
    unmet.extend(command.refused.iter().map(Violation::from));
    let adopted = ask.team.adopted().expect("who asks is a member of the charter in force");
    if command.digest == adopted.digest && command.rules[..] == adopted.rules[..] {
        unmet.push(Violation::UnchangedCharter { revision: adopted.revision });
    }
    let changing =
        charter.map(|charter| Changing { ask, text: &command.text, old: ask.charter, new: charter });
    if let Some(changing) = &changing {
        unmet.extend(changing.unfit());
    }
    if let Some(rejection) = Rejection::of(unmet) {
        return Decision::refuse(rejection);
    }
    let changing = changing.expect("what is no charter was refused");
    let revision = adopted.revision + 1;
    let mut events = vec![Event::from(CharterAdopted {
        revision,
        digest: command.digest.clone(),
        reason: Some(command.reason.clone()),
        text: command.text.clone(),
        charter: changing.new.clone(),
        rules: command.rules.clone(),
    })];
    changing.follow(&command.reason, &mut events);
    Decision::accept(events, Answer::Adopted { revision })
}

/// One charter in another's place.
struct Changing<'a> {
    ask: Ask<'a>,
    text: &'a str,
    old: &'a Charter,
    new: &'a Charter,
}

impl<'a> Changing<'a> {
    /// Everything for which the team can't go on under it.
    fn unfit(&self) -> Vec<Violation> {
        let mut unfit = Vec::new();
        let mut refuse = |place: Place, what: String| {
            unfit.push(Violation::CharterUnfit { line: count(line_of(self.text, &place)), what });
        };
        if self.old.team != self.new.team {
            let place = Place::key("team").then("name");
            refuse(place, format!("the team is {}, and keeps its name", self.old.team));
        }
        let path = |charter: &Charter| charter.repository.as_ref().map(|repository| repository.path.clone());
        if path(self.old) != path(self.new) {
            let is = path(self.old).map_or("bundles".to_owned(), |path| format!("commits of {path}"));
            let place = Place::key("repository").then("path");
            refuse(place, format!("versions of this team are {is}, and stay so: add another team"));
        }
        self.phases(&mut refuse);
        for circle in self.ask.review().circles() {
            self.circle(circle, &mut refuse);
        }
        self.names(&mut refuse);
        unfit
    }

    /// Phases that opened stay, in their order, of their kind, and before all that are pending.
    fn phases(&self, refuse: &mut impl FnMut(Place, String)) {
        let review = self.ask.review();
        let opened = self.old.phases.iter().filter(|phase| review.phase_state(&phase.name).is_some());
        let mut last = None;
        for old in opened {
            let Some((index, new)) = self.new.phase(&old.name) else {
                refuse(
                    Place::key("phases"),
                    format!("phase {} has opened, and can't be taken away", old.name),
                );
                continue;
            };
            let place = Place::key("phases").item(index);
            if new.confirm != old.confirm {
                let what = format!("phase {} has opened: what finishes together in it stays so", old.name);
                refuse(place.clone().then("confirm"), what);
            }
            if last.is_some_and(|last| index < last) {
                let what = format!("phase {} has opened, and can't stand before an earlier one", old.name);
                refuse(place.clone().then("name"), what);
            }
            last = last.max(Some(index));
            if review.phase_state(&old.name) != Some(PhaseState::Open) {
                self.over(new, &place, refuse);
            }
        }
        let pending = |phase: &&Phase| review.phase_state(&phase.name).is_none();
        for (index, phase) in self.new.phases.iter().enumerate().filter(|(_, phase)| pending(phase)) {
            if last.is_some_and(|last| index < last) {
                let place = Place::key("phases").item(index).then("name");
                refuse(place, format!("phase {} would never open: a later one has opened", phase.name));
            }
        }
    }

    /// Nobody would ever owe what is new in a phase that is over.
    fn over(&self, phase: &Phase, place: &Place, refuse: &mut impl FnMut(Place, String)) {
        for (index, deliverable) in phase.deliverables.iter().enumerate() {
            let known = self.ask.review().proposal(&deliverable.name);
            if known.is_none_or(|known| known.phase != phase.name) {
                let place = place.clone().then("deliverables").item(index).then("name");
                let what = format!("phase {} is over, and nobody would owe {}", phase.name, deliverable.name);
                refuse(place, what);
            }
        }
    }

    /// What is open can be finished under it, by whoever produces it now and at least one reviewer.
    fn circle(&self, circle: &Circle, refuse: &mut impl FnMut(Place, String)) {
        if !matches!(circle.state, CircleState::Open | CircleState::Complete) {
            return;
        }
        let Some((index, phase)) = self.new.phase(&circle.phase) else { return };
        let place = Place::key("phases").item(index);
        if circle.state == CircleState::Complete {
            let here = |charter: &Charter| -> Vec<Deliverable> {
                let phase = charter.phase(&circle.phase).map(|(_, phase)| phase);
                let of = |deliverable: &&Deliverable| match phase.map(|phase| phase.confirm) {
                    Some(ConfirmKind::Together) => true,
                    _ => deliverable.name.as_str() == circle.name.as_str(),
                };
                phase.into_iter().flat_map(|phase| &phase.deliverables).filter(of).cloned().collect()
            };
            if here(self.old) != here(self.new) {
                let what = format!("{} is complete and being published: what it owes stays", circle.name);
                refuse(place.then("deliverables"), what);
            }
            return;
        }
        for proposal in circle.proposals.iter().filter_map(|name| self.ask.review().proposal(name)) {
            self.proposal(proposal, phase, &place, refuse);
        }
    }

    fn proposal(
        &self,
        proposal: &Proposal,
        phase: &Phase,
        place: &Place,
        refuse: &mut impl FnMut(Place, String),
    ) {
        let (name, producer) = (&proposal.name, &proposal.producer);
        let found = phase.deliverables.iter().enumerate().find(|(_, deliverable)| deliverable.name == *name);
        let mut place = place.clone().then("reviews");
        match found {
            Some((index, deliverable)) if deliverable.producer != *producer => {
                // The charter's own check has it that somebody reviews the new producer.
                if !proposal.versions.is_empty() {
                    let place = Place::key("phases").item(self.index(phase));
                    let place = place.then("deliverables").item(index).then("producer");
                    refuse(
                        place,
                        format!("{name} is {producer}'s work already: drop it, and name another one"),
                    );
                }
                return;
            }
            Some(_) => {}
            // It is dropped.
            None if !proposal.ad_hoc => return,
            None => {}
        }
        if !self.new.members.contains_key(producer) {
            place = Place::key("members");
            let what =
                format!("{producer} has {name} open: drop it, or close its phase, before {producer} leaves");
            return refuse(place, what);
        }
        if review::edges_under(self.new, phase, proposal).next().is_none() {
            let what = format!("nobody would review {name}, which is open");
            refuse(place, what);
        }
    }

    fn index(&self, phase: &Phase) -> usize {
        self.new.phase(&phase.name).map_or(0, |(index, _)| index)
    }

    /// A name that a proposal or circle of the log bears, or resembles, is no name for something new.
    fn names(&self, refuse: &mut impl FnMut(Place, String)) {
        let review = self.ask.review();
        let known: Vec<&Proposal> = review.proposals().chain(review.dropped()).collect();
        let alike = |name: &str| {
            known
                .iter()
                .find(|known| skeleton(known.name.as_str()) == skeleton(name))
                .map(|known| &known.name)
        };
        for (index, phase) in self.new.phases.iter().enumerate() {
            let place = Place::key("phases").item(index);
            if let Some(known) = alike(phase.name.as_str()) {
                let what = format!("phase {}: there is a proposal {known} already", phase.name);
                refuse(place.clone().then("name"), what);
            }
            for (index, deliverable) in phase.deliverables.iter().enumerate() {
                // What a person dropped may go on standing in the file, but not come back to it.
                let listed = self.old.deliverable(&deliverable.name).is_some();
                let own = review.proposal(&deliverable.name).is_some_and(|own| {
                    !own.ad_hoc && own.phase == phase.name && (own.dropped.is_none() || listed)
                });
                if let Some(known) = alike(deliverable.name.as_str()).filter(|_| !own) {
                    let place = place.clone().then("deliverables").item(index).then("name");
                    refuse(place, format!("there is a proposal {known} already: choose another name"));
                }
            }
        }
    }

    /// What follows in the same batch.
    fn follow(&self, reason: &str, events: &mut Vec<Event>) {
        let review = self.ask.review();
        let by = self.ask.by.clone();
        let open = || review.circles().filter(|circle| circle.is_open()).flat_map(|circle| &circle.proposals);
        let named = |name: &ProposalName| self.new.deliverable(name).is_some();
        let mut dropped = BTreeSet::new();
        for proposal in open().filter_map(|name| review.proposal(name)) {
            if !proposal.ad_hoc && !named(&proposal.name) {
                let (proposal, reason) = (proposal.name.clone(), reason.to_owned());
                dropped.insert(proposal.clone());
                events.push(DeliverableDropped { proposal, by: by.clone(), reason }.into());
            }
        }
        let mut next = self.ask.team.escalations().next_id();
        let mut seen = BTreeSet::new();
        for proposal in open().filter_map(|name| review.proposal(name)) {
            if !dropped.contains(&proposal.name) {
                for escalated in self.asked_of_a_person(proposal, &mut seen) {
                    events.push(Escalated { id: next, ..escalated }.into());
                    next = EscalationId(next.0 + 1);
                }
            }
        }
        let waits = review.current_phase().is_none_or(|current| self.is_emptied(current, &dropped));
        let pending = self.new.phases.iter().find(|phase| review.phase_state(&phase.name).is_none());
        if let Some(phase) = pending.filter(|_| waits) {
            events.push(PhaseOpened { phase: phase.name.clone() }.into());
        }
    }

    /// Whether a phase that finishes together has nothing left once these are dropped.
    fn is_emptied(&self, phase: &PhaseName, dropped: &BTreeSet<ProposalName>) -> bool {
        let review = self.ask.review();
        let Some((_, new)) = self.new.phase(phase).filter(|(_, new)| new.confirm == ConfirmKind::Together)
        else {
            return false;
        };
        let mut circles = review.circles().filter(|circle| circle.phase == *phase);
        let left = circles.any(|circle| circle.proposals.iter().any(|name| !dropped.contains(name)));
        let comes = new.deliverables.iter().any(|known| review.proposal(&known.name).is_none());
        !left && !comes
    }

    /// What nobody but a person can move under the new charter.
    fn asked_of_a_person(
        &self,
        proposal: &Proposal,
        seen: &mut BTreeSet<super::name::ObjectionId>,
    ) -> Vec<Escalated> {
        let escalations = self.ask.team.escalations();
        let about = |cause, subject: String, text: String| Escalated {
            proposal: Some(proposal.name.clone()),
            ..Escalated::new(cause, subject, text)
        };
        let mut asked = Vec::new();
        for objection in proposal.open_objections() {
            let subject = objection.id.to_string();
            let gone = !self.new.members.contains_key(&objection.by);
            let told = escalations.open_on(Cause::ReviewerGone, &subject).is_some();
            if gone && !told && seen.insert(objection.id) {
                let text = review::words_of_both(proposal, objection);
                let by = Some(objection.by.clone());
                asked.push(Escalated { member: by, ..about(Cause::ReviewerGone, subject, text) });
            }
        }
        let rounds = proposal.next_is_round() && proposal.rounds >= self.new.limits.rounds;
        if rounds && escalations.open_on(Cause::RoundLimit, proposal.name.as_str()).is_none() {
            let text = format!(
                "{} went through {} rounds, and the new limit is {}\n{}",
                proposal.name,
                proposal.rounds,
                self.new.limits.rounds,
                review::rounds_evidence(proposal)
            );
            let member = Some(proposal.producer.clone());
            asked.push(Escalated { member, ..about(Cause::RoundLimit, proposal.name.to_string(), text) });
        }
        let Some(current) = proposal.current().filter(|_| proposal.withdrawal.is_none()) else {
            return asked;
        };
        let Some((_, phase)) = self.new.phase(&proposal.phase) else { return asked };
        let reference = proposal.current_ref();
        let mut known = BTreeSet::new();
        let mut blocked: Vec<String> = Vec::new();
        for edge in review::edges_under(self.new, phase, proposal).filter(|edge| known.insert(edge.reviewer))
        {
            let reviewer = edge.reviewer;
            if let Some(because) = proposal.own_work(self.new, current, reviewer) {
                blocked.push(format!("{reviewer} may not approve: {because}"));
                continue;
            }
            let ballot = current.ballots.get(reviewer);
            let spent = ballot.filter(|ballot| {
                let owes = ballot.vote.is_none() && ballot.cast == Some(review::VoteKind::Object);
                owes && ballot.changes >= self.new.limits.vote_changes
            });
            let told = escalations.open_of(Cause::VoteLimit, &reference, reviewer).is_some();
            if let Some(ballot) = spent.filter(|_| !told) {
                let text = format!("{reviewer} changed its vote on {reference} {} times", ballot.changes);
                let member = Some(reviewer.clone());
                asked.push(Escalated { member, ..about(Cause::VoteLimit, reference.clone(), text) });
            }
        }
        let told = escalations.open_on(Cause::ReviewerNotEligible, &reference).is_some();
        let eligible_before = self.old.phase(&proposal.phase).is_some_and(|(_, phase)| {
            proposal.edges(phase).all(|edge| proposal.own_work(self.old, current, edge.reviewer).is_none())
        });
        if !blocked.is_empty() && !told && eligible_before {
            let text = super::rejection::list(&blocked);
            asked.push(about(Cause::ReviewerNotEligible, reference, text));
        }
        asked
    }
}

fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
