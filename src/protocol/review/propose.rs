//! decide: propose.

use std::collections::BTreeSet;

use super::command::Propose;
use super::event::{Closing, Proposed};
use super::state::{Objection, ObjectionKind, PhaseState, Proposal, Version};
use crate::protocol::answer::Answer;
use crate::protocol::escalation::{Cause, Escalated};
use crate::protocol::event::Event;
use crate::protocol::name::{EscalationId, MemberName, ObjectionId, says_nothing};
use crate::protocol::rejection::{Rejection, Violation, list};
use crate::protocol::team::{Ask, Decision};

/// Accepts a version, unless, in this order: the proposal is unknown, a text is too large, the member
/// isn't its producer, the phase isn't open, the circle is complete, it is empty or unchanged, it
/// touches what others own, it doesn't follow the current version, objections are unread or
/// unanswered, it is cooling down, or it went through too many rounds.
pub(in crate::protocol) fn propose(ask: Ask<'_>, command: &Propose) -> Decision {
    let proposal = match ask.proposal(&command.proposal) {
        Ok(proposal) => proposal,
        Err(violation) => return Decision::refuse(violation),
    };
    let mut unmet = Vec::new();
    check_texts(ask, proposal, command, &mut unmet);
    check_standing(ask, proposal, &mut unmet);
    check_content(ask, proposal, command, &mut unmet);
    check_read_and_answered(ask, proposal, command, &mut unmet);

    let mut events = Vec::new();
    let cool_at = proposal.withdrawal.as_ref().and_then(|_| proposal.cool_at(&ask.charter.limits));
    if let Some(until) = cool_at.filter(|until| ask.now < *until) {
        unmet.push(Violation::CooldownActive { proposal: proposal.name.clone(), until });
    }
    let round = proposal.next_is_round();
    let limit = ask.charter.limits.rounds;
    if round && proposal.rounds >= limit && proposal.producer == *ask.by {
        let escalation = ask.limit_escalation(
            Cause::RoundLimit,
            proposal.name.as_str(),
            proposal,
            || rounds_evidence(proposal),
            &mut events,
        );
        let rounds = proposal.rounds;
        unmet.push(Violation::RoundLimit { proposal: proposal.name.clone(), rounds, limit, escalation });
    }
    if let Some(rejection) = Rejection::of(unmet) {
        return Decision { events, outcome: Err(rejection) };
    }

    let proposed = Proposed {
        proposal: proposal.name.clone(),
        version: proposal.current_number() + 1,
        producer: ask.by.clone(),
        artifact: command.artifact.clone(),
        summary: command.summary.clone(),
        answers: command.answers.clone(),
        paths: command.facts.paths.clone(),
        authors: command.facts.authors.clone(),
        round,
    };
    accept(ask, proposal, proposed)
}

fn check_texts(ask: Ask<'_>, proposal: &Proposal, command: &Propose, unmet: &mut Vec<Violation>) {
    for (id, text) in &command.answers {
        if !proposal.objections.iter().any(|objection| objection.id == *id) {
            let known =
                proposal.objections.iter().map(|objection| objection.id.to_string()).collect::<Vec<_>>();
            unmet.push(ask.unknown(&id.to_string(), known.iter().map(String::as_str)));
        }
        ask.check_text("answer", text, unmet);
    }
    ask.check_text("summary", &command.summary, unmet);
}

fn check_standing(ask: Ask<'_>, proposal: &Proposal, unmet: &mut Vec<Violation>) {
    if proposal.producer != *ask.by {
        unmet.push(Violation::NotProducer {
            proposal: proposal.name.clone(),
            producer: proposal.producer.clone(),
            member: ask.by.to_string(),
            verb: "propose".to_owned(),
        });
    }
    if ask.review().phase_state(&proposal.phase) == Some(PhaseState::Published) {
        unmet.push(Violation::PhaseClosed { phase: proposal.phase.clone(), state: "published".to_owned() });
    }
    ask.check_circle_open(proposal, unmet);
}

fn check_content(ask: Ask<'_>, proposal: &Proposal, command: &Propose, unmet: &mut Vec<Violation>) {
    if command.facts.empty {
        unmet.push(Violation::EmptyProposal { proposal: proposal.name.clone() });
    }
    if let Some((version, objections)) = unchanged_from(proposal, command) {
        unmet.push(Violation::UnchangedProposal {
            proposal: proposal.name.clone(),
            same_as: version.reference(&proposal.name),
            objections,
        });
    }
    let mut paths = Vec::new();
    let mut owners: BTreeSet<&MemberName> = BTreeSet::new();
    for (path, owned_by) in ask.team.ownership().foreign(ask.by, &command.facts.paths) {
        paths.push(path.to_string());
        owners.extend(owned_by);
    }
    if !paths.is_empty() {
        let owners = owners.into_iter().cloned().collect();
        unmet.push(Violation::OutsideOwnership { proposal: proposal.name.clone(), paths, owners });
    }
    let current = proposal.current_number();
    if command.after != current {
        unmet.push(Violation::VersionConflict {
            proposal: proposal.name.clone(),
            after: command.after,
            current,
            current_ref: proposal.current_ref(),
        });
    }
}

/// The version with the same content that forbids it, and the objections to that one that do.
fn unchanged_from<'a>(proposal: &'a Proposal, command: &Propose) -> Option<(&'a Version, Vec<ObjectionId>)> {
    let same = |version: &&Version| version.artifact.content == command.artifact.content;
    let counted = |version: &Version| -> Vec<ObjectionId> {
        let counts = |objection: &&Objection| {
            objection.version == version.number
                && objection.kind == ObjectionKind::Objection
                && objection.closed.as_ref().is_none_or(|closed| closed.how == Closing::Resolved)
        };
        proposal.objections.iter().filter(counts).map(|objection| objection.id).collect()
    };
    proposal.versions.iter().rev().filter(same).find_map(|version| {
        let objections = counted(version);
        let forbids = version.number == proposal.current_number() || !objections.is_empty();
        forbids.then_some((version, objections))
    })
}

fn check_read_and_answered(ask: Ask<'_>, proposal: &Proposal, command: &Propose, unmet: &mut Vec<Violation>) {
    if proposal.producer != *ask.by {
        // What is unread is between the producer and its reviewers.
        return;
    }
    let unread: Vec<&Objection> = proposal.unread().collect();
    if !unread.is_empty() {
        let by: BTreeSet<&MemberName> = unread.iter().map(|objection| &objection.by).collect();
        unmet.push(Violation::UnreadObjections {
            proposal: proposal.name.clone(),
            unread: unread.iter().map(|objection| objection.id).collect(),
            by: by.into_iter().cloned().collect(),
        });
    }
    let answered =
        |objection: &Objection| command.answers.get(&objection.id).is_some_and(|text| !says_nothing(text));
    let unanswered: Vec<ObjectionId> = proposal
        .open_objections()
        .filter(|objection| !answered(objection))
        .map(|objection| objection.id)
        .collect();
    if !unanswered.is_empty() {
        unmet.push(Violation::UnansweredObjections {
            proposal: proposal.name.clone(),
            unanswered,
            command: proposal.propose_command(ask.charter),
        });
    }
}

/// The version stands; an edge that it leaves without an eligible reviewer goes to a person at once,
/// and what was before a person because of the version before it is closed.
fn accept(ask: Ask<'_>, proposal: &Proposal, proposed: Proposed) -> Decision {
    let version = Version {
        number: proposed.version,
        artifact: proposed.artifact.clone(),
        producer: proposed.producer.clone(),
        at: ask.now,
        summary: String::new(),
        answers: Default::default(),
        paths: Vec::new(),
        authors: proposed.authors.clone(),
        read_by: Default::default(),
        ballots: Default::default(),
        overruled: BTreeSet::new(),
        objected: false,
        checks: Default::default(),
    };
    let reference = version.reference(&proposal.name);
    let digest = proposed.artifact.digest.clone();
    let mut events = vec![Event::from(proposed)];
    let before = proposal.current_ref();
    for cause in [Cause::ReviewerNotEligible, Cause::OverruledAgain, Cause::VoteLimit] {
        ask.close_by_progress(cause, &before, &format!("{reference} followed"), &mut events);
    }
    let mut blocked: BTreeSet<(&MemberName, String)> = BTreeSet::new();
    for edge in ask.edges(proposal) {
        if let Some(because) = proposal.own_work(ask.charter, &version, edge.reviewer) {
            blocked.insert((edge.reviewer, because));
        }
    }
    let mut escalated = Vec::new();
    if !blocked.is_empty() {
        let id = EscalationId(ask.team.escalations().next_id().0);
        let because: Vec<String> = blocked
            .iter()
            .map(|(reviewer, because)| format!("{reviewer} may not approve: {because}"))
            .collect();
        events.push(
            Escalated {
                id,
                proposal: Some(proposal.name.clone()),
                member: blocked.first().map(|(reviewer, _)| (*reviewer).clone()),
                ..Escalated::new(Cause::ReviewerNotEligible, reference.to_string(), list(&because))
            }
            .into(),
        );
        escalated.push(id);
    }
    Decision::accept(events, Answer::Proposed { reference, digest, escalated })
}

/// Both sides' words, for the person who decides about another round.
pub(super) fn rounds_evidence(proposal: &Proposal) -> String {
    let mut text = String::new();
    for objection in proposal.open_objections() {
        text.push_str(&format!(
            "{} by {} on version {}: {}\n",
            objection.id, objection.by, objection.version, objection.text
        ));
        for version in proposal.versions.iter().filter(|version| version.number > objection.version) {
            if let Some(answer) = version.answers.get(&objection.id) {
                text.push_str(&format!(
                    "  {} answered with version {}: {answer}\n",
                    proposal.producer, version.number
                ));
            }
        }
    }
    text
}
