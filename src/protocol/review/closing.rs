//! decide: resolve and overrule, the two ways in which an objection closes.

use std::collections::BTreeSet;

use super::command::{Overrule, Resolve};
use super::event::{Closing, ObjectionClosed};
use super::state::{Objection, ObjectionKind, Proposal};
use crate::protocol::answer::Answer;
use crate::protocol::escalation::Cause;
use crate::protocol::event::Event;
use crate::protocol::name::{ObjectionId, ProposalName, says_nothing};
use crate::protocol::rejection::{Rejection, Violation};
use crate::protocol::team::{Ask, Decision};

/// Closes an own objection, unless, in this order: it is unknown or a note, another member raised it,
/// it is closed; or, when it was a mistake, there is no reason; or, when it is answered, no version
/// followed or the current one wasn't read; or the circle is complete.
pub(in crate::protocol) fn resolve(ask: Ask<'_>, command: &Resolve) -> Decision {
    let (proposal, objection) = match ask.objection(command.objection) {
        Ok(found) => found,
        Err(violation) => return Decision::refuse(violation),
    };
    let mut unmet = Vec::new();
    if command.mistaken {
        check_own_and_open(ask, objection, &mut unmet);
        ask.check_reason("resolve as mistaken", &command.reason, &mut unmet);
    } else {
        check_resolvable(ask, proposal, objection, &mut unmet);
        ask.check_text("reason", &command.reason, &mut unmet);
        let unread = proposal.current().filter(|version| !version.read_by.contains_key(ask.by));
        if let Some(version) = unread {
            let reference = version.reference(&proposal.name);
            unmet.push(Violation::UnreadVersion { reference, member: ask.by.clone() });
        }
    }
    ask.check_circle_open(proposal, &mut unmet);
    if let Some(rejection) = Rejection::of(unmet) {
        return Decision::refuse(rejection);
    }
    let how = if command.mistaken { Closing::Mistaken } else { Closing::Resolved };
    close(ask, proposal, objection, how, &command.reason)
}

/// Closes somebody's objection, unless, in this order: it is unknown or a note, the member is no
/// person, it is about the person's own work, it is closed, there is no reason, or the circle is complete.
pub(in crate::protocol) fn overrule(ask: Ask<'_>, command: &Overrule) -> Decision {
    let (proposal, objection) = match ask.objection(command.objection) {
        Ok(found) => found,
        Err(violation) => return Decision::refuse(violation),
    };
    let mut unmet = Vec::new();
    ask.check_person("overrule", &mut unmet);
    ask.review().places(objection.id).for_each(|(place, standing)| {
        check_not_own(ask, place, standing, &mut unmet);
    });
    check_open(objection, &mut unmet);
    ask.check_reason("overrule", &command.reason, &mut unmet);
    ask.check_circle_open(proposal, &mut unmet);
    if let Some(rejection) = Rejection::of(unmet) {
        return Decision::refuse(rejection);
    }
    close(ask, proposal, objection, Closing::Overruled, &command.reason)
}

/// Closes open objections by a person's answer to an escalation, unless one is about the person's own work.
pub(in crate::protocol) fn overrule_all(
    ask: Ask<'_>,
    proposal: &Proposal,
    objections: &[&Objection],
    reason: &str,
) -> Result<Vec<Event>, Rejection> {
    let mut unmet = Vec::new();
    for objection in objections {
        check_not_own(ask, proposal, objection, &mut unmet);
    }
    if let Some(rejection) = Rejection::of(unmet) {
        return Err(rejection);
    }
    let mut events = Vec::new();
    for objection in objections {
        events.push(Event::from(closed(ask, proposal, objection, Closing::Overruled, reason)));
    }
    let closing: Vec<ObjectionId> = objections.iter().map(|objection| objection.id).collect();
    if !closing.is_empty() {
        answered(ask, proposal, &closing, Closing::Overruled, &mut events);
    }
    Ok(events)
}

/// Whose work answers an objection decides no more about it than whose work it was raised on.
fn check_not_own(ask: Ask<'_>, proposal: &Proposal, objection: &Objection, unmet: &mut Vec<Violation>) {
    let mut concerned = proposal.versions.iter().filter(|version| version.number >= objection.version);
    let own = concerned.find_map(|version| {
        let because = proposal.own_work(ask.charter, version, ask.by)?;
        Some((version.reference(&proposal.name).to_string(), because))
    });
    if let Some((reference, because)) = own {
        unmet.push(Violation::OwnWork { reference, member: ask.by.clone(), because });
    }
}

/// Refuses to resolve what another raised, what is closed, or what no newer version answers.
pub(super) fn check_resolvable(
    ask: Ask<'_>,
    proposal: &Proposal,
    objection: &Objection,
    unmet: &mut Vec<Violation>,
) {
    check_own_and_open(ask, objection, unmet);
    if objection.kind == ObjectionKind::Objection && objection.version >= proposal.current_number() {
        unmet.push(Violation::NothingChanged { objection: objection.id, version: objection.version });
    }
}

fn check_own_and_open(ask: Ask<'_>, objection: &Objection, unmet: &mut Vec<Violation>) {
    if objection.by != *ask.by {
        unmet.push(Violation::NotObjector {
            objection: objection.id,
            by: objection.by.clone(),
            member: ask.by.to_string(),
        });
    }
    check_open(objection, unmet);
}

fn check_open(objection: &Objection, unmet: &mut Vec<Violation>) {
    if objection.kind == ObjectionKind::Note {
        unmet.push(Violation::NotAnObjection { objection: objection.id });
    } else if let Some(closed) = &objection.closed {
        let how = format!("{} by {}", objection.status(), closed.by);
        unmet.push(Violation::ObjectionClosed { objection: objection.id, how });
    }
}

fn closed(
    ask: Ask<'_>,
    proposal: &Proposal,
    objection: &Objection,
    how: Closing,
    reason: &str,
) -> ObjectionClosed {
    ObjectionClosed {
        id: objection.id,
        proposal: proposal.name.clone(),
        by: ask.by.clone(),
        how,
        version: proposal.current_number(),
        reason: (!says_nothing(reason)).then(|| reason.to_owned()),
    }
}

/// Where these are the last objections that are open, what a person was asked because of them is closed.
fn answered(
    ask: Ask<'_>,
    proposal: &Proposal,
    closing: &[ObjectionId],
    how: Closing,
    events: &mut Vec<Event>,
) {
    let reason = "no objection is open";
    for name in left_without(ask, proposal, closing, how) {
        ask.close_by_progress(Cause::RoundLimit, name.as_str(), reason, events);
        let current = ask.review().proposal(&name).map(Proposal::current_ref);
        let current = current.unwrap_or_default();
        ask.close_by_progress(Cause::OverruledAgain, &current, reason, events);
    }
}

/// The proposal, and wherever else these objections stand, where nothing is open without them. Where one to the
/// current version is resolved, another proposal answered it, and the next version here is a round still.
pub(super) fn left_without(
    ask: Ask<'_>,
    proposal: &Proposal,
    closing: &[ObjectionId],
    how: Closing,
) -> BTreeSet<ProposalName> {
    let places = closing.iter().flat_map(|id| ask.review().places(*id)).map(|(proposal, _)| proposal);
    let left = places.chain([proposal]).filter(|known| {
        let round = how == Closing::Resolved && known.next_is_round();
        !round && known.open_objections().all(|open| closing.contains(&open.id))
    });
    left.map(|known| known.name.clone()).collect()
}

fn close(ask: Ask<'_>, proposal: &Proposal, objection: &Objection, how: Closing, reason: &str) -> Decision {
    let mut events = vec![Event::from(closed(ask, proposal, objection, how, reason))];
    answered(ask, proposal, &[objection.id], how, &mut events);
    if how == Closing::Mistaken {
        for (place, standing) in ask.review().places(objection.id) {
            super::vote::escalate_spent_approval(ask, place, standing, &mut events);
        }
    }
    Decision::accept(events, Answer::ObjectionClosed { objection: objection.id })
}
