//! When two states of the core are the same one. What can change nothing any longer is left out: texts, the
//! votes on versions that are past, the numbers of escalations, and by how much a moment is past that nobody
//! waits for.

use std::hash::{DefaultHasher, Hash, Hasher};

use countersign::protocol::name::MessageId;
use countersign::protocol::review::{Circle, CircleState, Proposal, ProposalState, Version};
use countersign::protocol::time::Time;
use countersign::protocol::{Obligation, Team};

/// Two hashes of one content: enough bits that no two states of a search meet by chance.
#[derive(Clone)]
pub struct Both(DefaultHasher, DefaultHasher);

impl Default for Both {
    fn default() -> Self {
        let (one, mut other) = (DefaultHasher::new(), DefaultHasher::new());
        other.write_u64(0x5bd1_e995);
        Self(one, other)
    }
}

impl Hasher for Both {
    fn write(&mut self, bytes: &[u8]) {
        self.0.write(bytes);
        self.1.write(bytes);
    }

    fn finish(&self) -> u64 {
        self.0.finish()
    }
}

impl Both {
    pub fn key(&self) -> u128 {
        u128::from(self.0.finish()) << 64 | u128::from(self.1.finish())
    }
}

/// Everything of a team that decides what can come; with a moment in `late` where deadlines pass.
pub fn team(team: &Team, late: Option<Time>, now: Time, to: &mut Both) {
    let review = team.review();
    let charter = team.adopted().map(|adopted| (adopted.digest.as_str(), adopted.revision));
    charter.hash(to);
    let phases = team.adopted().map(|adopted| &adopted.charter.phases);
    for phase in phases.into_iter().flatten() {
        review.phase_state(&phase.name).map(countersign::protocol::review::PhaseState::as_str).hash(to);
    }
    for known in review.circles() {
        circle(team, late, known, to);
    }
    for known in review.proposals() {
        proposal(team, now, known, to);
    }
    review.dropped().for_each(|known| known.name.hash(to));
    let room = team.room();
    for id in (1..=room.last().map_or(0, |last| last.0)).map(MessageId) {
        let message = room.message(id).map(|known| (&known.by, known.root, known.length, known.claim));
        message.hash(to);
        room.verdicts(id).for_each(|verdict| verdict.hash(to));
        for member in team.adopted().into_iter().flat_map(|adopted| adopted.charter.members.keys()) {
            room.asked(member).any(|(asked, _)| asked == id).hash(to);
        }
    }
    let mut open: Vec<_> = team.escalations().open().collect();
    open.sort_by_key(|one| (one.opened.cause, &one.opened.subject, &one.opened.member));
    for escalation in open {
        let opened = &escalation.opened;
        (opened.cause.as_str(), &opened.subject, &opened.member, &opened.proposal, &opened.circle).hash(to);
        (&opened.obligation, escalation.reminders()).hash(to);
        opened.waiting_on.iter().for_each(|one| one.member.hash(to));
        let last = escalation.reminded.map_or(escalation.opened_at, |(_, at)| at);
        late.map(|now| (now - last).0).hash(to);
    }
}

/// What is owed, and until when.
pub fn owed(owed: &[Obligation], now: Time, to: &mut Both) {
    for one in owed {
        (&one.member, one.kind, &one.id).hash(to);
        one.due.map(|due| (due - now).0).hash(to);
    }
}

/// With a moment where deadlines pass: how long a circle stands still counts then.
fn circle(team: &Team, now: Option<Time>, circle: &Circle, to: &mut Both) {
    (&circle.name, circle.state.as_str(), &circle.proposals, &circle.unaccepted).hash(to);
    if circle.state != CircleState::Open {
        return;
    }
    let revision = team.adopted().map_or(0, |adopted| adopted.revision);
    let manifest = team.review().manifest(revision, circle);
    // Only what is confirmed of what it holds now can still count.
    team.review().confirmed(circle, &manifest).for_each(|member| member.hash(to));
    (circle.dissent.as_ref() == Some(&manifest)).hash(to);
    now.map(|now| (now - circle.progress_at).0).hash(to);
}

fn proposal(team: &Team, now: Time, proposal: &Proposal, to: &mut Both) {
    let review = team.review();
    (&proposal.name, &proposal.producer).hash(to);
    let state = review.proposal_state(proposal);
    state.as_str().hash(to);
    if matches!(state, ProposalState::Published | ProposalState::Closed | ProposalState::Dropped) {
        // What is final stays as it is; that votes on it are refused is tried all the same.
        proposal.current_number().hash(to);
        return;
    }
    for version in &proposal.versions {
        (version.artifact.digest.as_str(), version.objected).hash(to);
        version.authors.iter().for_each(|author| author.email.hash(to));
    }
    if let Some(version) = proposal.current() {
        current(version, to);
    }
    for objection in &proposal.objections {
        (objection.id, objection.blocks(), &objection.by, objection.version).hash(to);
        (objection.status(), objection.read).hash(to);
        objection.failing_test.as_ref().map(|run| &run.command).hash(to);
        objection.from.hash(to);
    }
    (proposal.withdrawal.is_some(), proposal.publish_failed.is_some()).hash(to);
    let limits = team.adopted().map(|adopted| &adopted.charter.limits);
    let cools = limits.and_then(|limits| proposal.cool_at(limits)).map(|at| (at - now).0.max(0));
    cools.unwrap_or(0).hash(to);
    (proposal.flips, proposal.rounds, &proposal.kin).hash(to);
    (&proposal.stand_ins, &proposal.excused).hash(to);
}

fn current(version: &Version, to: &mut Both) {
    version.read_by.keys().for_each(|member| member.hash(to));
    for (member, ballot) in &version.ballots {
        (
            member,
            ballot.cast.map(countersign::protocol::review::VoteKind::as_str),
            ballot.changes,
            ballot.notes,
        )
            .hash(to);
        if let Some(vote) = &ballot.vote {
            (vote.kind.as_str(), &vote.lenses, vote.checked.len()).hash(to);
            vote.ran.iter().for_each(|run| (&run.command, run.passed()).hash(to));
        }
    }
    version.overruled.hash(to);
    version.standing.as_ref().is_some_and(|said| said.report.undone.is_some()).hash(to);
    version.checks.iter().for_each(|(name, report)| (name, report.status()).hash(to));
}
