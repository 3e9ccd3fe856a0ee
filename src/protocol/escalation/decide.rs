//! decide: escalate, and a person's answer. One function a decision.

use std::collections::BTreeSet;

use super::{
    Answer as AnswerCommand, BreakGlass, Cause, Decision as PersonsDecision, Escalate, Escalated, Escalation,
    EscalationClosed, GLASS_REFS_MAX, GLASS_SPAN_MAX,
};
use crate::protocol::answer::Answer;
use crate::protocol::charter::{is_full_ref, patterns};
use crate::protocol::event::Event;
use crate::protocol::name::{MemberName, PhaseName, says_nothing, shown};
use crate::protocol::rejection::{Rejection, Violation, list};
use crate::protocol::review::{self, Objection, Proposal, ReviewerExcused, ReviewerReplaced};
use crate::protocol::team::{Ask, Decision};
use crate::protocol::time::Span;

/// Puts a subject before a person, unless, in this order: it is unknown, there is no text, or the same
/// member did so already and waits for the answer.
pub(in crate::protocol) fn escalate(ask: Ask<'_>, command: &Escalate) -> Decision {
    let review = ask.review();
    let located = review.locate(&command.subject);
    let phase = command.subject.parse().ok().filter(|phase| review.phase_state(phase).is_some());
    let mut unmet = Vec::new();
    if located.is_none() && phase.is_none() {
        let known = review.proposals().map(|proposal| proposal.name.as_str());
        let known = known.chain(review.circles().map(|circle| circle.name.as_str()));
        unmet.push(ask.unknown(&command.subject, known.chain(review.current_phase().map(PhaseName::as_str))));
    }
    if says_nothing(&command.text) {
        unmet.push(Violation::EmptyText { what: "text".to_owned() });
    }
    ask.check_text("text", &command.text, &mut unmet);
    if let Some(open) = ask.team.escalations().open_of(Cause::Asked, &command.subject, ask.by) {
        let (escalation, subject) = (open.opened.id.to_string(), command.subject.clone());
        unmet.push(Violation::EscalationOpen { escalation, subject, member: ask.by.clone() });
    }
    if let Some(rejection) = Rejection::of(unmet) {
        return Decision::refuse(rejection);
    }
    let id = ask.team.escalations().next_id();
    let proposal = located.as_ref().and_then(|(proposal, _)| *proposal);
    let circle = located.filter(|(proposal, _)| proposal.is_none()).map(|(_, circle)| circle.name.clone());
    let escalated = Escalated {
        id,
        proposal: proposal.map(|proposal| proposal.name.clone()),
        circle,
        member: Some(ask.by.clone()),
        ..Escalated::new(Cause::Asked, command.subject.clone(), command.text.clone())
    };
    Decision::accept(vec![escalated.into()], Answer::Escalated { escalation: id })
}

/// Opens the door for pushes, unless, in this order: it names no ref that the charter protects or one that it
/// doesn't, it would stand open for too long, the member is no person, or there is no reason. Every person hears
/// of it, and it stays before them until one dismisses it.
pub(in crate::protocol) fn break_glass(ask: Ask<'_>, command: &BreakGlass) -> Decision {
    let protected = ask.charter.repository.iter().flat_map(|repository| &repository.protected);
    let protected: Vec<&str> = protected.map(String::as_str).collect();
    // A checked charter's patterns compile; of one whose don't, nothing is opened.
    let set = patterns(protected.iter().copied()).unwrap_or_default();
    let malformed = |argument: &str, expected: &str, given: &str, form: String| Violation::Malformed {
        argument: argument.to_owned(),
        expected: expected.to_owned(),
        given: shown(given, 200),
        form,
    };
    let mut unmet = Vec::new();
    let form = match protected.as_slice() {
        [] => "nothing: this charter protects no ref".to_owned(),
        some => format!("full names that match one of: {}", some.join(", ")),
    };
    let wrong = command.refs.iter().filter(|name| !is_full_ref(name) || !set.is_match(name));
    unmet.extend(wrong.map(|name| malformed("ref", "a ref that the charter protects", name, form.clone())));
    if command.refs.is_empty() || command.refs.len() > GLASS_REFS_MAX {
        let (count, expected) = (command.refs.len().to_string(), format!("1 to {GLASS_REFS_MAX} refs"));
        unmet.push(malformed("ref", &expected, &count, form));
    }
    if command.span <= Span(0) || command.span > GLASS_SPAN_MAX {
        let form = format!("at most {GLASS_SPAN_MAX}");
        unmet.push(malformed("for", "a short time", &command.span.to_string(), form));
    }
    ask.check_person("break the glass", &mut unmet);
    ask.check_reason("break the glass", &command.reason, &mut unmet);
    if let Some(rejection) = Rejection::of(unmet) {
        return Decision::refuse(rejection);
    }
    let id = ask.team.escalations().next_id();
    let how = if command.once { "one push" } else { "any push" };
    let text = format!("the door is open for {how} within {}: {}", command.span, command.reason);
    let escalated = Escalated {
        id,
        member: Some(ask.by.clone()),
        ..Escalated::new(Cause::BrokenGlass, command.refs.join(" "), text)
    };
    Decision::accept(vec![escalated.into()], Answer::Escalated { escalation: id })
}

/// Answers an escalation, unless, in this order: it is unknown, the member is no person, there is no
/// reason, it is closed, the decision answers nothing of its kind, or it can't be carried out.
pub(in crate::protocol) fn answer(ask: Ask<'_>, command: &AnswerCommand) -> Decision {
    let id = command.escalation;
    let Some(escalation) = ask.team.escalations().get(id) else {
        return Decision::refuse(ask.unknown(&id.to_string(), []));
    };
    let mut unmet = Vec::new();
    ask.check_person("answer an escalation", &mut unmet);
    ask.check_reason("answer", &command.reason, &mut unmet);
    if let Some(closed) = &escalation.closed {
        let how = if closed.by.is_some() { "answered" } else { "closed by progress" };
        unmet.push(Violation::EscalationClosed { escalation: id.to_string(), how: how.to_owned() });
    }
    let fitting = escalation.opened.decisions();
    if !fitting.contains(&command.decision) {
        unmet.push(Violation::DecisionUnfit {
            escalation: id.to_string(),
            decision: command.decision.to_string(),
            fitting: fitting.iter().map(ToString::to_string).collect(),
        });
    }
    if let Some(rejection) = Rejection::of(unmet) {
        return Decision::refuse(rejection);
    }
    let answering = Answering { ask, escalation, command };
    if let Err(rejection) = answering.check_fitting() {
        return Decision::refuse(rejection);
    }
    let effect = match command.decision {
        // A ref that belongs where it is, or is put back, follows from the answer itself.
        PersonsDecision::Extend
        | PersonsDecision::RaiseLimit
        | PersonsDecision::PutBack
        | PersonsDecision::AcceptMove
        | PersonsDecision::Dismiss => Ok(Vec::new()),
        PersonsDecision::Overrule => answering.overrule(),
        PersonsDecision::Replace => answering.replace(),
        PersonsDecision::Excuse => answering.excuse(),
        PersonsDecision::DropDeliverable => answering.drop_deliverable(),
        PersonsDecision::ClosePhase => answering.close_phase(),
    };
    let effect = match effect {
        Ok(events) => events,
        Err(rejection) => return Decision::refuse(rejection),
    };
    let closed = EscalationClosed {
        id,
        by: Some(ask.by.clone()),
        decision: Some(command.decision),
        reason: command.reason.clone(),
    };
    let same = |event: &Event| matches!(event, Event::EscalationClosed(closed) if closed.id == id);
    let events = effect.into_iter().filter(|event| !same(event)).chain([closed.into()]).collect();
    Decision::accept(events, Answer::EscalationAnswered { escalation: id })
}

/// An answer that is being carried out.
#[derive(Clone, Copy)]
struct Answering<'a> {
    ask: Ask<'a>,
    escalation: &'a Escalation,
    command: &'a AnswerCommand,
}

impl<'a> Answering<'a> {
    fn impossible(&self, because: impl Into<String>) -> Rejection {
        Violation::DecisionImpossible {
            escalation: self.command.escalation.to_string(),
            decision: self.command.decision.to_string(),
            because: because.into(),
        }
        .into()
    }

    /// The proposals that it is about: one, or all of a circle.
    fn proposals(&self) -> Vec<&'a Proposal> {
        let review = self.ask.review();
        let opened = &self.escalation.opened;
        if let Some(proposal) = opened.proposal.as_ref().and_then(|name| review.proposal(name)) {
            return vec![proposal];
        }
        let circle = self.ask.team.circle_of(opened);
        circle.iter().flat_map(|circle| &circle.proposals).filter_map(|name| review.proposal(name)).collect()
    }

    /// Refuses members whom the decision does not ask for, and a person's say over who reviews its own work.
    fn check_fitting(&self) -> Result<(), Rejection> {
        use PersonsDecision::{Excuse, Overrule, Replace};
        let (decision, command) = (self.command.decision, self.command);
        if command.member.is_some() && !matches!(decision, Overrule | Replace | Excuse) {
            return Err(self.impossible(format!("{decision} asks for no --member")));
        }
        if command.reviewer.is_some() && decision != Replace {
            return Err(self.impossible(format!("{decision} asks for no --reviewer")));
        }
        if !matches!(decision, Replace | Excuse) {
            return Ok(());
        }
        for proposal in self.proposals() {
            let own = proposal.current().and_then(|current| {
                let because = proposal.own_work(self.ask.charter, current, self.ask.by)?;
                Some((current.reference(&proposal.name).to_string(), because))
            });
            if let Some((reference, because)) = own {
                return Err(Violation::OwnWork { reference, member: self.ask.by.clone(), because }.into());
            }
        }
        Ok(())
    }

    /// Nothing is decided about what is final.
    fn check_open(&self) -> Result<(), Rejection> {
        let proposal =
            self.escalation.opened.proposal.as_ref().and_then(|name| self.ask.review().proposal(name));
        if let Some((proposal, dropped)) = proposal.and_then(|one| Some((one, one.dropped.as_ref()?))) {
            return Err(dropped.violation(&proposal.name).into());
        }
        match self.ask.team.circle_of(&self.escalation.opened).filter(|circle| !circle.is_open()) {
            Some(circle) => {
                let (circle, state) = (circle.name.to_string(), circle.state.as_str().to_owned());
                Err(Violation::CircleComplete { circle, state }.into())
            }
            None => Ok(()),
        }
    }

    /// The objections in question: the one that it is about, else those of the member that is named,
    /// else all that are open.
    fn overrule(&self) -> Result<Vec<Event>, Rejection> {
        self.check_open()?;
        let opened = &self.escalation.opened;
        let single = opened.subject.parse().ok();
        let of = match (&self.command.member, opened.cause) {
            (Some(member), _) => Some(member),
            (None, Cause::OverruledAgain | Cause::ReviewerGone | Cause::Overdue | Cause::MemberDeaf) => {
                opened.member.as_ref()
            }
            (None, _) => None,
        };
        let concerned = |objection: &&Objection| {
            single.is_none_or(|id| objection.id == id) && of.is_none_or(|member| objection.by == *member)
        };
        let mut events = Vec::new();
        // One that followed the work into another proposal of the circle closes once.
        let mut closing = BTreeSet::new();
        for proposal in self.proposals() {
            let objections = proposal.open_objections().filter(concerned);
            let objections: Vec<&Objection> = objections.filter(|open| closing.insert(open.id)).collect();
            let reason = &self.command.reason;
            let mut overruled = review::overrule_all(self.ask, proposal, &objections, reason)?;
            events.append(&mut overruled);
        }
        if events.is_empty() {
            return Err(self.impossible("no objection in question is open"));
        }
        // What is left would have to be answered by a version that is one round too many.
        let left = self.proposals().into_iter().flat_map(|proposal| {
            let current = proposal.current_number();
            proposal.open_objections().filter(move |open| open.version == current)
        });
        let left: Vec<_> = left.map(|open| open.id).filter(|id| !closing.contains(id)).collect();
        if opened.cause == Cause::RoundLimit && !left.is_empty() {
            let what =
                format!("{} would stay open at the limit: leave --member out, or raise-limit", list(&left));
            return Err(self.impossible(what));
        }
        Ok(events)
    }

    /// Another member reviews, in every proposal in question.
    fn replace(&self) -> Result<Vec<Event>, Rejection> {
        self.check_open()?;
        let (charter, by) = (self.ask.charter, self.ask.by.clone());
        let Some(stand_in) = &self.command.member else {
            return Err(self.impossible("it is not said who reviews instead: give --member MEMBER"));
        };
        if !charter.members.contains_key(stand_in) {
            let known = charter.members.keys().map(MemberName::as_str);
            return Err(self.ask.unknown(stand_in.as_str(), known).into());
        }
        let reviewer = self.reviewer(self.command.reviewer.as_ref())?;
        if reviewer == stand_in {
            return Err(self.impossible(format!("{stand_in} reviews it already")));
        }
        let mut events = Vec::new();
        for proposal in self.reviewed_by(reviewer) {
            if proposal.producer == *stand_in {
                return Err(self.impossible(format!("{stand_in} produces {}", proposal.name)));
            }
            let own = proposal.current().and_then(|current| proposal.own_work(charter, current, stand_in));
            if let Some(because) = own {
                return Err(self.impossible(format!("{stand_in} may not approve it: {because}")));
            }
            let (proposal, stand_in) = (proposal.name.clone(), stand_in.clone());
            events.push(
                ReviewerReplaced { proposal, reviewer: reviewer.clone(), stand_in, by: by.clone() }.into(),
            );
        }
        Ok(events)
    }

    /// A reviewer need not review, where others look through all of its lenses.
    fn excuse(&self) -> Result<Vec<Event>, Rejection> {
        self.check_open()?;
        let by = self.ask.by.clone();
        let reviewer = self.reviewer(self.command.member.as_ref())?;
        let mut events = Vec::new();
        for proposal in self.reviewed_by(reviewer) {
            let edges: Vec<_> = self.ask.edges(proposal).collect();
            let may = |other: &MemberName| {
                let current = proposal.current();
                current.is_none_or(|current| proposal.own_work(self.ask.charter, current, other).is_none())
            };
            let mut own = edges.iter().filter(|edge| edge.reviewer == reviewer);
            let alone = own.find(|edge| {
                !edges
                    .iter()
                    .any(|other| other.reviewer != reviewer && other.lens == edge.lens && may(other.reviewer))
            });
            if let Some(edge) = alone {
                return Err(self.impossible(format!(
                    "{reviewer} alone looks at {} through {}: replace it instead",
                    proposal.name, edge.lens
                )));
            }
            let proposal = proposal.name.clone();
            events.push(ReviewerExcused { proposal, reviewer: reviewer.clone(), by: by.clone() }.into());
        }
        Ok(events)
    }

    /// The proposal that it is about leaves its circle; where a circle is in question, the only one in it.
    fn drop_deliverable(&self) -> Result<Vec<Event>, Rejection> {
        self.check_open()?;
        match self.proposals().as_slice() {
            [proposal] => Ok(review::drop_deliverable(self.ask, proposal, &self.command.reason)),
            _ => Err(self.impossible(
                "it is not about one deliverable: put that one before a person, by countersign escalate NAME TEXT",
            )),
        }
    }

    /// The phase that it is about, or that of what it is about.
    fn close_phase(&self) -> Result<Vec<Event>, Rejection> {
        let opened = &self.escalation.opened;
        let circle = self.ask.team.circle_of(opened).map(|circle| circle.phase.clone());
        let Some(phase) = circle.or_else(|| opened.subject.parse().ok()) else {
            return Err(self.impossible("it is about no phase"));
        };
        review::close_phase(self.ask, &phase, &self.command.reason)
            .map_err(|because| self.impossible(because))
    }

    /// Whose review is in question: who is named, else whom the escalation is about, else the only one
    /// who owes a review.
    fn reviewer(&self, named: Option<&'a MemberName>) -> Result<&'a MemberName, Rejection> {
        let reviews = |member: &&MemberName| !self.reviewed_by(member).is_empty();
        if let Some(named) = named {
            return Some(named)
                .filter(reviews)
                .ok_or_else(|| self.impossible(format!("{named} does not review it")));
        }
        if let Some(member) = self.escalation.opened.member.as_ref().filter(reviews) {
            return Ok(member);
        }
        let waiting = self.escalation.opened.waiting_on.iter().map(|waiting| &waiting.member);
        let waiting: BTreeSet<&MemberName> = waiting.filter(reviews).collect();
        match Vec::from_iter(waiting).as_slice() {
            [one] => Ok(one),
            _ => {
                let flag = match self.command.decision {
                    PersonsDecision::Excuse => "--member",
                    _ => "--reviewer",
                };
                Err(self.impossible(format!("it is not said whose review it is: give {flag} MEMBER")))
            }
        }
    }

    fn reviewed_by(&self, reviewer: &MemberName) -> Vec<&'a Proposal> {
        let mut proposals = self.proposals();
        proposals.retain(|proposal| self.ask.edges(proposal).any(|edge| edge.reviewer == reviewer));
        proposals
    }
}
