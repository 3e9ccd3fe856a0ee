//! decide: approve, object, note. Each speaks of exactly one version.

use std::collections::BTreeSet;

use super::command::{Approve, NamedPlace, Note, Object};
use super::event::{Approved, Closing, Noted, Objected, ObjectionClosed, Run};
use super::gate;
use super::propose::rounds_evidence;
use super::state::{Objection, Proposal, Version, VoteKind};
use crate::protocol::answer::Answer;
use crate::protocol::artifact::Place;
use crate::protocol::escalation::{Cause, Escalated};
use crate::protocol::event::Event;
use crate::protocol::name::{EscalationId, Lens, MemberName, ObjectionId, VersionRef};
use crate::protocol::rejection::{Rejection, Violation};
use crate::protocol::team::{Ask, Decision};

/// What a vote speaks of, once it is known.
struct Ballot<'a> {
    proposal: &'a Proposal,
    version: &'a Version,
    /// The version that was named, with the digits that references show.
    reference: VersionRef,
    lenses: Vec<Lens>,
}

/// Approves a version, unless, in this order: it is unknown, a text is too large, the member doesn't
/// review it, it is the member's own work, it isn't the current version or has another digest, the
/// member wasn't shown it, it is withdrawn, the member holds an open objection that this doesn't
/// resolve, its failing test isn't shown to pass, a place is unknown, the vote changed too often, the
/// circle is complete, or an approve rule denies.
pub(in crate::protocol) fn approve(ask: Ask<'_>, command: &Approve) -> Decision {
    let ballot = match find(ask, &command.reference) {
        Ok(ballot) => ballot,
        Err(violation) => return Decision::refuse(violation),
    };
    let (proposal, version) = (ballot.proposal, ballot.version);
    // Named twice, it closes once.
    let resolving: Vec<ObjectionId> =
        command.resolve.iter().copied().collect::<BTreeSet<_>>().into_iter().collect();
    let mut unmet = Vec::new();
    for run in &command.ran {
        ask.check_run(run, &mut unmet);
    }
    check_reviewer(ask, &ballot, &mut unmet);
    if let Some(because) = proposal.own_work(ask.charter, version, ask.by) {
        let reference = ballot.reference.to_string();
        unmet.push(Violation::OwnWork { reference, member: ask.by.clone(), because });
    }
    check_version(ask, &command.reference, &ballot, &mut unmet);
    check_held(ask, &ballot, &resolving, &mut unmet);
    check_failing_tests(ask, &ballot, &command.ran, &mut unmet);
    check_places(&ballot, &command.checked, &mut unmet);
    let mut events = Vec::new();
    check_vote_limit(ask, &ballot, VoteKind::Approve, &mut unmet, &mut events);
    ask.check_circle_open(proposal, &mut unmet);
    let mut verdict = gate::of_approval(ask, proposal, &ballot.reference, &ballot.lenses, command);
    verdict.refuse(&mut unmet, &mut events);
    if let Some(rejection) = Rejection::of(unmet) {
        return Decision { events, outcome: Err(rejection) };
    }

    for id in &resolving {
        events.push(
            ObjectionClosed {
                id: *id,
                proposal: proposal.name.clone(),
                by: ask.by.clone(),
                how: Closing::Resolved,
                version: version.number,
                reason: None,
            }
            .into(),
        );
    }
    for name in super::closing::left_without(ask, proposal, &resolving, Closing::Resolved) {
        let reason = "no objection is open";
        ask.close_by_progress(Cause::RoundLimit, name.as_str(), reason, &mut events);
    }
    events.push(
        Approved {
            proposal: proposal.name.clone(),
            version: version.number,
            by: ask.by.clone(),
            lenses: ballot.lenses,
            checked: places(&command.checked),
            ran: command.ran.clone(),
        }
        .into(),
    );
    events.extend(verdict.warned);
    Decision::accept(events, Answer::Approved { reference: ballot.reference, resolved: resolving })
}

/// Objects to a version, unless, in this order: it is unknown, a text is too large, the member doesn't
/// review it, it isn't the current version or has another digest, the member wasn't shown it, it is
/// withdrawn, a place is unknown, the vote changed too often, the circle is complete, or there is no
/// text.
pub(in crate::protocol) fn object(ask: Ask<'_>, command: &Object) -> Decision {
    let ballot = match find(ask, &command.reference) {
        Ok(ballot) => ballot,
        Err(violation) => return Decision::refuse(violation),
    };
    let (proposal, version) = (ballot.proposal, ballot.version);
    let mut unmet = Vec::new();
    ask.check_text("text", &command.text, &mut unmet);
    command.failing_test.iter().for_each(|run| ask.check_run(run, &mut unmet));
    check_reviewer(ask, &ballot, &mut unmet);
    check_version(ask, &command.reference, &ballot, &mut unmet);
    check_places(&ballot, &command.at, &mut unmet);
    let mut events = Vec::new();
    check_vote_limit(ask, &ballot, VoteKind::Object, &mut unmet, &mut events);
    ask.check_circle_open(proposal, &mut unmet);
    ask.check_given("text", &command.text, &mut unmet);
    if let Some(rejection) = Rejection::of(unmet) {
        return Decision { events, outcome: Err(rejection) };
    }

    let id = ask.review().next_objection();
    events.push(
        Objected {
            id,
            proposal: proposal.name.clone(),
            version: version.number,
            by: ask.by.clone(),
            lenses: ballot.lenses,
            text: command.text.clone(),
            at: places(&command.at),
            failing_test: command.failing_test.clone(),
        }
        .into(),
    );
    let words = format!("{id} by {} on version {}: {}\n", ask.by, version.number, command.text);
    escalate_objection(ask, proposal, version, &ballot.reference, id, words, &mut events);
    Decision::accept(events, Answer::Raised { objection: id, reference: ballot.reference })
}

/// Leaves a note on a version, unless the conditions of an objection are unmet, or there are too many
/// notes of this reviewer on it.
pub(in crate::protocol) fn note(ask: Ask<'_>, command: &Note) -> Decision {
    let ballot = match find(ask, &command.reference) {
        Ok(ballot) => ballot,
        Err(violation) => return Decision::refuse(violation),
    };
    let (proposal, version) = (ballot.proposal, ballot.version);
    let mut unmet = Vec::new();
    ask.check_text("text", &command.text, &mut unmet);
    check_reviewer(ask, &ballot, &mut unmet);
    check_version(ask, &command.reference, &ballot, &mut unmet);
    check_places(&ballot, &command.at, &mut unmet);
    ask.check_circle_open(proposal, &mut unmet);
    ask.check_given("text", &command.text, &mut unmet);
    let notes = version.ballots.get(ask.by).map_or(0, |known| known.notes);
    let limit = ask.charter.limits.notes;
    if notes >= limit {
        unmet.push(Violation::NoteLimit { reference: ballot.reference.clone(), notes, limit });
    }
    if let Some(rejection) = Rejection::of(unmet) {
        return Decision::refuse(rejection);
    }
    let id = ask.review().next_objection();
    let noted = Noted {
        id,
        proposal: proposal.name.clone(),
        version: version.number,
        by: ask.by.clone(),
        lenses: ballot.lenses,
        text: command.text.clone(),
        at: places(&command.at),
    };
    Decision::accept(vec![noted.into()], Answer::Raised { objection: id, reference: ballot.reference })
}

/// The version that a reference names. An unknown number is nearest to the current one.
pub(super) fn named<'a>(
    ask: Ask<'a>,
    reference: &VersionRef,
) -> Result<(&'a Proposal, &'a Version), Violation> {
    let proposal = ask.proposal(&reference.proposal)?;
    let version = proposal.version(reference.version).ok_or_else(|| Violation::UnknownSubject {
        subject: reference.to_string(),
        nearest: proposal.current().map(|_| proposal.current_ref()).unwrap_or_default(),
    })?;
    Ok((proposal, version))
}

fn find<'a>(ask: Ask<'a>, reference: &VersionRef) -> Result<Ballot<'a>, Violation> {
    let (proposal, version) = named(ask, reference)?;
    let own = ask.edges(proposal).filter(|edge| edge.reviewer == ask.by);
    let lenses = own.map(|edge| edge.lens.clone()).collect();
    Ok(Ballot { proposal, version, reference: version.reference(&proposal.name), lenses })
}

fn check_reviewer(ask: Ask<'_>, ballot: &Ballot<'_>, unmet: &mut Vec<Violation>) {
    if ballot.lenses.is_empty() {
        let mut reviewers: Vec<MemberName> =
            ask.edges(ballot.proposal).map(|edge| edge.reviewer.clone()).collect();
        reviewers.sort();
        reviewers.dedup();
        unmet.push(Violation::NotReviewer {
            proposal: ballot.proposal.name.clone(),
            member: ask.by.to_string(),
            reviewers,
        });
    }
}

fn check_version(ask: Ask<'_>, given: &VersionRef, ballot: &Ballot<'_>, unmet: &mut Vec<Violation>) {
    let (proposal, version) = (ballot.proposal, ballot.version);
    check_current(given, proposal, version, unmet);
    if !version.read_by.contains_key(ask.by) {
        unmet.push(Violation::UnreadVersion { reference: ballot.reference.clone(), member: ask.by.clone() });
    }
    check_standing(proposal, version, unmet);
}

/// The version is the current one, and the reference has its digest.
pub(super) fn check_current(
    given: &VersionRef,
    proposal: &Proposal,
    version: &Version,
    unmet: &mut Vec<Violation>,
) {
    if let Some(current) = proposal.current().filter(|current| current.number != version.number) {
        let current = current.reference(&proposal.name);
        unmet.push(Violation::StaleVersion { given: given.clone(), current });
    }
    if !given.digest.names(&version.artifact.digest) {
        let actual = version.reference(&proposal.name);
        unmet.push(Violation::DigestMismatch { given: given.clone(), actual });
    }
}

/// The current version isn't withdrawn.
pub(super) fn check_standing(proposal: &Proposal, version: &Version, unmet: &mut Vec<Violation>) {
    if let Some(withdrawal) = &proposal.withdrawal {
        // It is the current version that is withdrawn, whichever was named.
        let current = proposal.current().unwrap_or(version);
        let reference = current.reference(&proposal.name);
        unmet.push(Violation::Withdrawn { reference, by: withdrawal.by.clone() });
    }
}

/// Own open objections are resolved in the same call, and what is resolved is such a one.
fn check_held(ask: Ask<'_>, ballot: &Ballot<'_>, resolving: &[ObjectionId], unmet: &mut Vec<Violation>) {
    let own = |objection: &&Objection| objection.by == *ask.by;
    let open: Vec<&Objection> = ballot.proposal.open_objections().filter(own).collect();
    let held: Vec<ObjectionId> =
        open.iter().map(|objection| objection.id).filter(|id| !resolving.contains(id)).collect();
    if !held.is_empty() {
        let here = |objection: &&&Objection| {
            objection.version == ballot.proposal.current_number() && held.contains(&objection.id)
        };
        let on_this_version = open.iter().filter(here).map(|objection| objection.id).collect();
        let approval = ballot.proposal.approval_command(ask.phase_of(ballot.proposal), ask.by);
        unmet.push(Violation::ObjectionHeld { held, on_this_version, approval });
    }
    for id in resolving {
        match ballot.proposal.objections.iter().find(|objection| objection.id == *id) {
            Some(objection) => super::closing::check_resolvable(ask, ballot.proposal, objection, unmet),
            None => unmet.push(ask.unknown(&id.to_string(), [])),
        }
    }
}

/// Every own failing test that wasn't mistaken or overruled passes on this very version, by the same
/// command.
fn check_failing_tests(ask: Ask<'_>, ballot: &Ballot<'_>, ran: &[Run], unmet: &mut Vec<Violation>) {
    for objection in ballot.proposal.objections.iter().filter(|objection| objection.by == *ask.by) {
        let Some(test) = &objection.failing_test else { continue };
        let stands = objection.closed.as_ref().is_none_or(|closed| closed.how == Closing::Resolved);
        let shown = ran.iter().any(|run| run.command == test.command && run.passed());
        if stands && !shown {
            unmet.push(Violation::FailingTest {
                reference: ballot.reference.clone(),
                objection: objection.id,
                command: test.command.clone(),
                approval: ballot.proposal.approval_command(ask.phase_of(ballot.proposal), ask.by),
            });
        }
    }
}

fn check_places(ballot: &Ballot<'_>, places: &[NamedPlace], unmet: &mut Vec<Violation>) {
    let unknown: Vec<String> =
        places.iter().filter(|named| !named.found).map(|named| named.place.to_string()).collect();
    if !unknown.is_empty() {
        unmet.push(Violation::PlaceUnknown { reference: ballot.reference.clone(), places: unknown });
    }
}

fn check_vote_limit(
    ask: Ask<'_>,
    ballot: &Ballot<'_>,
    kind: VoteKind,
    unmet: &mut Vec<Violation>,
    events: &mut Vec<Event>,
) {
    // On a version that is past, or final, no person could give the vote back by raising the limit.
    let current = ballot.version.number == ballot.proposal.current_number();
    if !current || !ask.circle_of(ballot.proposal).is_open() {
        return;
    }
    let Some(changes) = spent_changes(ask, ballot.version, kind) else { return };
    let escalation = escalate_spent(ask, ballot.proposal, ballot.version, changes, events);
    unmet.push(Violation::VoteLimit {
        reference: ballot.reference.clone(),
        changes,
        limit: ask.charter.limits.vote_changes,
        escalation,
    });
}

/// How often the member changed its vote on a version, where one change to `kind` is one too many.
fn spent_changes(ask: Ask<'_>, version: &Version, kind: VoteKind) -> Option<u32> {
    let known = version.ballots.get(ask.by)?;
    let changes = known.cast.is_some_and(|cast| cast != kind);
    (changes && known.changes >= ask.charter.limits.vote_changes).then_some(known.changes)
}

fn escalate_spent(
    ask: Ask<'_>,
    proposal: &Proposal,
    version: &Version,
    changes: u32,
    events: &mut Vec<Event>,
) -> String {
    let reference = version.reference(&proposal.name).to_string();
    let evidence = || format!("{} changed its vote on {reference} {changes} times", ask.by);
    ask.limit_escalation(Cause::VoteLimit, &reference, proposal, evidence, events)
}

/// Who takes the own objection to the current version back owes a vote on it again. Where the approval
/// would be one change too many, a person is asked with this, and not only after it was refused.
pub(super) fn escalate_spent_approval(
    ask: Ask<'_>,
    proposal: &Proposal,
    closing: &Objection,
    events: &mut Vec<Event>,
) {
    let Some(current) = proposal.current().filter(|current| closing.is_raised_on(current.number)) else {
        return;
    };
    let objects_still = proposal
        .open_objections()
        .any(|open| open.id != closing.id && open.by == *ask.by && open.version == current.number);
    if objects_still || proposal.withdrawal.is_some() {
        return;
    }
    if let Some(changes) = spent_changes(ask, current, VoteKind::Approve) {
        escalate_spent(ask, proposal, current, changes, events);
    }
}

/// An objection goes to a person at once where its objector was overruled on this version, or where
/// the version that would answer it is one round too many: the producer waits.
fn escalate_objection(
    ask: Ask<'_>,
    proposal: &Proposal,
    version: &Version,
    reference: &VersionRef,
    id: ObjectionId,
    words: String,
    events: &mut Vec<Event>,
) {
    let mut next = ask.team.escalations().next_id();
    let mut escalate = |cause, subject: String, text| {
        let opened = ask.team.escalations().open_on(cause, &subject).is_some();
        if !opened {
            let (proposal, member) = (Some(proposal.name.clone()), Some(ask.by.clone()));
            let escalated = Escalated::new(cause, subject, text);
            events.push(Escalated { id: next, proposal, member, ..escalated }.into());
            next = EscalationId(next.0 + 1);
        }
    };
    if version.overruled.contains(ask.by) {
        let text = format!("{} objects again after being overruled: {id}\n{words}", ask.by);
        escalate(Cause::OverruledAgain, reference.to_string(), text);
    }
    if proposal.publish_failed.is_none() && proposal.rounds >= ask.charter.limits.rounds {
        escalate(Cause::RoundLimit, proposal.name.to_string(), rounds_evidence(proposal) + &words);
    }
}

fn places(named: &[NamedPlace]) -> Vec<Place> {
    named.iter().map(|named| named.place.clone()).collect()
}
