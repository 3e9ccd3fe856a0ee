//! decide: escalate, and a person's answer. One function a decision.

use super::{
    Answer as AnswerCommand, Cause, Decision as PersonsDecision, Escalate, Escalated, EscalationClosed,
};
use crate::protocol::answer::Answer;
use crate::protocol::event::Event;
use crate::protocol::name::{CircleName, Subject};
use crate::protocol::rejection::{Rejection, Violation};
use crate::protocol::team::{Ask, Decision};

/// Puts a subject before a person, unless, in this order: it is unknown, or there is no text.
pub(in crate::protocol) fn escalate(ask: Ask<'_>, command: &Escalate) -> Decision {
    let review = ask.review();
    let objection =
        command.subject.parse().ok().and_then(|id| review.objection(id)).map(|(proposal, _)| proposal);
    let named = command.subject.parse::<Subject>().ok();
    let proposal = objection.or_else(|| named.and_then(|subject| review.proposal(&subject.proposal)));
    let circle = command.subject.parse().ok().and_then(|name: CircleName| review.circle(&name));
    let mut unmet = Vec::new();
    if proposal.is_none() && circle.is_none() {
        let known = review.proposals().map(|proposal| proposal.name.as_str());
        unmet.push(
            ask.unknown(&command.subject, known.chain(review.circles().map(|circle| circle.name.as_str()))),
        );
    }
    if command.text.trim().is_empty() {
        unmet.push(Violation::EmptyText { what: "text".to_owned() });
    }
    ask.check_text("text", &command.text, &mut unmet);
    if let Some(rejection) = Rejection::of(unmet) {
        return Decision::refuse(rejection);
    }
    let id = ask.team.escalations().next_id();
    let escalated = Escalated {
        id,
        cause: Cause::Asked,
        subject: command.subject.clone(),
        proposal: proposal.map(|proposal| proposal.name.clone()),
        member: Some(ask.by.clone()),
        text: command.text.clone(),
    };
    Decision::accept(vec![escalated.into()], Answer::Escalated { escalation: id })
}

/// Answers an escalation, unless, in this order: it is unknown, the member is no person, there is no
/// reason, it is closed, or the decision answers nothing of its kind.
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
    let fitting = escalation.opened.cause.decisions();
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
    let mut events = match command.decision {
        PersonsDecision::RaiseLimit | PersonsDecision::Dismiss => Vec::new(),
    };
    let closed = EscalationClosed {
        id,
        by: Some(ask.by.clone()),
        decision: Some(command.decision),
        reason: command.reason.clone(),
    };
    events.insert(0, Event::from(closed));
    Decision::accept(events, Answer::EscalationAnswered { escalation: id })
}
