//! decide: propose.

use std::collections::BTreeSet;

use super::ad_hoc;
use super::command::Propose;
use super::event::{Closing, Proposed};
use super::follow::{Followed, foreseen};
use super::gate;
use super::state::{CircleState, Objection, ObjectionKind, PhaseState, Proposal, Version};
use crate::protocol::answer::Answer;
use crate::protocol::escalation::{Cause, Escalated};
use crate::protocol::event::Event;
use crate::protocol::name::{EscalationId, MemberName, ObjectionId, ProposalName, VersionRef, says_nothing};
use crate::protocol::rejection::{Rejection, Violation, counted, list};
use crate::protocol::secret;
use crate::protocol::team::{Ask, Decision};

/// Accepts a version, unless, in this order: the proposal is unknown, a text is too large, the member
/// isn't its producer, the phase isn't open, the circle is complete, no proposal can bear the name, it is
/// empty or unchanged, it touches what others own, it doesn't follow the current version, objections are
/// unread or unanswered, it is cooling down, it went through too many rounds, a file of it holds a secret, or a
/// propose rule denies.
pub(in crate::protocol) fn propose(ask: Ask<'_>, command: &Propose) -> Decision {
    let known = ask.review().proposal(&command.proposal);
    let (begun, unfit) = match known {
        Some(_) => (None, Vec::new()),
        None => match ad_hoc::begin(ask, &command.proposal) {
            Ok((begun, unfit)) => (Some(begun), unfit),
            Err(violation) => return Decision::refuse(violation),
        },
    };
    let proposal = known.or(begun.as_ref()).expect("what isn't known begins, or was refused");
    let followed = Followed::of(ask, proposal, command);
    let mut unmet = Vec::new();
    check_texts(ask, proposal, &followed, command, &mut unmet);
    unmet.extend(unfit);
    check_standing(ask, proposal, &mut unmet);
    check_content(ask, proposal, &followed, command, &mut unmet);
    check_read_and_answered(ask, proposal, &followed, command, &mut unmet);

    let mut events = Vec::new();
    check_cooled(ask, proposal, &mut unmet);
    followed.check_cooled(ask, &mut unmet);
    let news = followed.news(proposal);
    let objected = proposal.next_is_round();
    let round = objected || news.iter().any(|source| source.next_is_round());
    let limit = ask.charter.limits.rounds;
    // Whose rounds are spent, a person is asked about: of work that goes on here, where it began.
    let began = news.iter().copied().filter(|source| source.rounds >= limit);
    let spent = began.chain([proposal]).find(|known| known.rounds >= limit);
    if let Some(spent) = spent.filter(|_| round && proposal.producer == *ask.by) {
        // What begins isn't known yet, and has no rounds but those of its kin.
        let kin = || spent.kin.iter().find_map(|name| ask.review().proposal(name));
        let known = ask.review().proposal(&spent.name).or_else(kin).unwrap_or(spent);
        let evidence = || rounds_evidence(known);
        let subject = known.name.as_str();
        let escalation = ask.limit_escalation(Cause::RoundLimit, subject, known, evidence, &mut events);
        let (proposal, rounds) = (known.name.clone(), known.rounds);
        unmet.push(Violation::RoundLimit { proposal, rounds, limit, escalation });
    }
    // Paths and addresses stand in the log for ever.
    let names = command.facts.paths.iter().map(|path| ("path of a file", path.to_string()));
    let authors = command.facts.authors.iter().map(|author| ("author of a commit", author.email.clone()));
    unmet.extend(names.chain(authors).filter_map(|(what, text)| {
        let found = secret::find(&text)?;
        Some(Violation::SecretFound { what: what.to_owned(), kind: found.kind.to_owned(), line: found.line })
    }));
    unmet.extend(command.facts.secrets.iter().map(|found| Violation::SecretFound {
        what: format!("file {}", found.path),
        kind: found.kind.clone(),
        line: found.line,
    }));
    let mut verdict = gate::of_offer(ask, proposal, command, round);
    verdict.refuse(&mut unmet, &mut events);
    if let Some(rejection) = Rejection::of(unmet) {
        return Decision { events, outcome: Err(rejection) };
    }

    let taken_up = followed.objections(proposal);
    let answered = |id: &ObjectionId| {
        proposal.objections.iter().chain(taken_up.iter().copied()).any(|objection| objection.id == *id)
    };
    let answers = command.answers.iter().filter(|(id, _)| answered(id));
    let answers = answers.map(|(id, text)| (*id, text.clone())).collect();
    let proposed = Proposed {
        proposal: proposal.name.clone(),
        version: proposal.current_number() + 1,
        producer: ask.by.clone(),
        artifact: command.artifact.clone(),
        summary: command.summary.clone(),
        answers,
        paths: command.facts.paths.clone(),
        authors: command.facts.authors.clone(),
        round,
        ad_hoc: begun.as_ref().map(|begun| begun.phase.clone()),
        files: command.facts.files.clone(),
        follows: Followed::names(&news),
    };
    let mut decision = accept(ask, proposal, proposed);
    decision.events.extend(verdict.warned);
    decision
}

fn check_texts(
    ask: Ask<'_>,
    proposal: &Proposal,
    followed: &Followed<'_>,
    command: &Propose,
    unmet: &mut Vec<Violation>,
) {
    let new = followed.objections(proposal);
    let known = || proposal.objections.iter().chain(new.iter().copied());
    // What was foreseen and isn't taken up after all needs no answer, and takes one.
    let foreseen = foreseen(ask.review(), proposal);
    for (id, text) in &command.answers {
        if foreseen.iter().all(|objection| objection.id != *id)
            && !known().any(|objection| objection.id == *id)
        {
            let known = known().map(|objection| objection.id.to_string()).collect::<Vec<_>>();
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
            producer: proposal.producer.to_string(),
            member: ask.by.to_string(),
            verb: "propose".to_owned(),
            reviewed: Vec::new(),
        });
    }
    let Some(circle) = ask.review().circle(&proposal.circle) else { return };
    let phase = ask.review().phase_state(&proposal.phase).filter(|state| *state != PhaseState::Open);
    // Of a circle that was closed with its phase, the check below says the same.
    if let Some(state) = phase.filter(|_| circle.state != CircleState::Closed) {
        let (phase, state) = (proposal.phase.clone(), state.as_str().to_owned());
        unmet.push(Violation::PhaseClosed { phase, state });
    }
    ask.check_circle_open(proposal, unmet);
}

/// Withdrawn work stays away for a while, also under a new name.
fn check_cooled(ask: Ask<'_>, proposal: &Proposal, unmet: &mut Vec<Violation>) {
    let begins = proposal.ad_hoc && proposal.versions.is_empty();
    if proposal.withdrawal.is_none() && !begins {
        return;
    }
    let limits = &ask.charter.limits;
    if let Some(until) = proposal.cool_at(limits).filter(|until| ask.now < *until) {
        let kin = proposal.kin.iter().filter_map(|name| ask.review().proposal(name));
        let withdrawn = kin.filter(|kin| kin.withdrawal.is_some());
        let last = withdrawn.chain([proposal]).max_by_key(|kin| kin.withdrawal.as_ref().map(|one| one.at));
        let proposal = last.unwrap_or(proposal).name.clone();
        unmet.push(Violation::CooldownActive { proposal, until });
    }
}

fn check_content(
    ask: Ask<'_>,
    proposal: &Proposal,
    followed: &Followed<'_>,
    command: &Propose,
    unmet: &mut Vec<Violation>,
) {
    if command.facts.empty {
        unmet.push(Violation::EmptyProposal { proposal: proposal.name.clone() });
    }
    if let Some((same_as, objections)) = unchanged_from(proposal, followed, command) {
        unmet.push(Violation::UnchangedProposal { proposal: proposal.name.clone(), same_as, objections });
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
fn unchanged_from(
    proposal: &Proposal,
    followed: &Followed<'_>,
    command: &Propose,
) -> Option<(VersionRef, Vec<ObjectionId>)> {
    let same = |version: &Version| version.artifact.content == command.artifact.content;
    let counted = |of: &Proposal, version: &Version| -> Vec<ObjectionId> {
        let counts = |objection: &&Objection| {
            objection.is_raised_on(version.number)
                && objection.kind == ObjectionKind::Objection
                && objection.closed.as_ref().is_none_or(|closed| closed.how == Closing::Resolved)
        };
        of.objections.iter().filter(counts).map(|objection| objection.id).collect()
    };
    let own = proposal.versions.iter().rev().map(|version| (proposal, version));
    own.chain(followed.versions()).filter(|(_, version)| same(version)).find_map(|(of, version)| {
        let objections = counted(of, version);
        let current = of.name == proposal.name && version.number == proposal.current_number();
        (current || !objections.is_empty()).then(|| (version.reference(&of.name), objections))
    })
}

fn check_read_and_answered(
    ask: Ask<'_>,
    proposal: &Proposal,
    followed: &Followed<'_>,
    command: &Propose,
    unmet: &mut Vec<Violation>,
) {
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
    followed.check_read(unmet);
    let new = followed.objections(proposal);
    let open = proposal.open_objections().chain(new.iter().copied());
    let unanswered: Vec<ObjectionId> =
        open.filter(|objection| !answered(objection)).map(|objection| objection.id).collect();
    if !unanswered.is_empty() {
        let mut command = proposal.propose_command(ask.charter);
        new.iter().for_each(|objection| command.push_str(&format!(" --answer {}=TEXT", objection.id)));
        let proposal = proposal.name.clone();
        unmet.push(Violation::UnansweredObjections { proposal, unanswered, command });
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
        files: Vec::new(),
        authors: proposed.authors.clone(),
        read_by: Default::default(),
        ballots: Default::default(),
        overruled: BTreeSet::new(),
        objected: false,
        checks: Default::default(),
        offered: 0,
        standing: None,
    };
    let reference = version.reference(&proposal.name);
    let digest = proposed.artifact.digest.clone();
    let round = proposed.round;
    let follows = proposed.follows.clone();
    let mut events = vec![Event::from(proposed)];
    let before = proposal.current_ref();
    for cause in [Cause::ReviewerNotEligible, Cause::OverruledAgain, Cause::VoteLimit] {
        ask.close_by_progress(cause, &before, &format!("{reference} followed"), &mut events);
    }
    let mut blocked: BTreeSet<(&MemberName, String)> = BTreeSet::new();
    for edge in proposal.edges(ask.phase_of(proposal)) {
        if let Some(because) = proposal.own_work(ask.charter, &version, edge.reviewer) {
            blocked.insert((edge.reviewer, because));
        }
    }
    let mut escalated = Vec::new();
    let mut next = ask.team.escalations().next_id();
    if !blocked.is_empty() {
        let id = next;
        next = EscalationId(next.0 + 1);
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
    if round || !follows.is_empty() {
        escalated.extend(spent_rounds(ask, proposal, round, &follows, next, &mut events));
    }
    Decision::accept(events, Answer::Proposed { reference, digest, escalated })
}

/// Where this round is the last one, the next version of whatever else is the same work would be one too many:
/// a person is asked with this, and the producer waits.
fn spent_rounds(
    ask: Ask<'_>,
    proposal: &Proposal,
    round: bool,
    follows: &[ProposalName],
    mut next: EscalationId,
    events: &mut Vec<Event>,
) -> Vec<EscalationId> {
    let sources: Vec<&Proposal> = follows.iter().filter_map(|name| ask.review().proposal(name)).collect();
    let rounds = sources.iter().copied().chain([proposal]).map(|work| work.rounds).max().unwrap_or(0);
    if rounds + u32::from(round) < ask.charter.limits.rounds {
        return Vec::new();
    }
    let kin = sources.iter().copied().chain([proposal]).flat_map(|work| &work.kin).chain(follows);
    let kin: BTreeSet<&ProposalName> = kin.filter(|name| **name != proposal.name).collect();
    let mut escalated = Vec::new();
    for kin in kin.into_iter().filter_map(|name| ask.review().proposal(name)) {
        let told = ask.team.escalations().open_on(Cause::RoundLimit, kin.name.as_str()).is_some();
        if told || !kin.next_is_round() || kin.dropped.is_some() || !ask.circle_of(kin).is_open() {
            continue;
        }
        let opened = Escalated {
            id: next,
            proposal: Some(kin.name.clone()),
            member: Some(kin.producer.clone()),
            ..Escalated::new(Cause::RoundLimit, kin.name.as_str(), rounds_evidence(kin))
        };
        events.push(opened.into());
        escalated.push(next);
        next = EscalationId(next.0 + 1);
    }
    escalated
}

/// Both sides' words, for the person who decides about another round.
pub(in crate::protocol) fn rounds_evidence(proposal: &Proposal) -> String {
    let rounds = counted(proposal.rounds.into(), "round");
    let words = proposal.open_objections().map(|objection| words_of_both(proposal, objection));
    std::iter::once(format!("{} went through {rounds}\n", proposal.name)).chain(words).collect()
}

/// What one objection says, and all that was answered to it.
pub(in crate::protocol) fn words_of_both(proposal: &Proposal, objection: &Objection) -> String {
    let (id, by) = (objection.id, &objection.by);
    let mut text = format!("{id} by {by} on version {}: {}\n", objection.version, objection.text);
    for version in proposal.versions.iter().filter(|version| version.number > objection.version) {
        if let Some(answer) = version.answers.get(&objection.id) {
            let (producer, number) = (&proposal.producer, version.number);
            text.push_str(&format!("  {producer} answered with version {number}: {answer}\n"));
        }
    }
    text
}
