//! Versions, votes and objections as messages.

use super::{proto, texts, timestamp};
use crate::protocol::artifact::{ArtifactKind, RepoPath};
use crate::protocol::charter::Charter;
use crate::protocol::review::{
    Circle, Closing, Edge, Objection, ObjectionKind, Proposal, ProposalState, Review, Run, Version, VoteKind,
};

/// One version with what its reviewers said, and the proposal's objections.
pub fn version(charter: &Charter, review: &Review, proposal: &Proposal, version: &Version) -> proto::Version {
    let author = |author: &crate::protocol::artifact::Identity| proto::Identity {
        name: author.name.clone(),
        email: author.email.clone(),
        member: charter.member_of_email(&author.email).map(ToString::to_string).unwrap_or_default(),
    };
    proto::Version {
        reference: version.reference(&proposal.name).to_string(),
        proposal: proposal.name.to_string(),
        version: version.number,
        digest: version.artifact.digest.to_string(),
        kind: artifact_kind(version.artifact.kind).into(),
        summary: version.summary.clone(),
        producer: version.producer.to_string(),
        proposed_at: Some(timestamp(version.at)),
        current: version.number == proposal.current_number(),
        current_reference: proposal.current_ref(),
        state: proposal_state(review.proposal_state(proposal)).into(),
        authors: version.authors.iter().map(author).collect(),
        reviewers: reviewers(charter, proposal, version),
        votes: votes(version),
        objections: proposal
            .objections
            .iter()
            .map(|objection| self::objection(proposal, objection))
            .collect(),
        base: version.artifact.base.as_ref().map(ToString::to_string).unwrap_or_default(),
        answers: version.answers.iter().map(|(id, text)| (id.to_string(), text.clone())).collect(),
        checks: charter.required_checks.iter().map(|name| check(version, name)).collect(),
        target: target(charter, review, proposal, version),
    }
}

/// How a version that may still be published stands to its target, as git said last.
pub fn target(
    charter: &Charter,
    review: &Review,
    proposal: &Proposal,
    version: &Version,
) -> Option<proto::Target> {
    let open = review.circle(&proposal.circle).is_some_and(Circle::is_open) && proposal.dropped.is_none();
    let current = version.number == proposal.current_number() && proposal.withdrawal.is_none();
    let name = charter.target_of(&proposal.name).filter(|_| open && current)?.to_owned();
    let Some(standing) = review.standing(proposal) else {
        return Some(proto::Target { name, ..Default::default() });
    };
    let (report, undone) = (standing.report, standing.report.undone.as_ref());
    let (conflict, told) = (standing.conflict, |path: &RepoPath| path.as_str().to_owned());
    Some(proto::Target {
        name,
        commit: report.commit.as_ref().map(ToString::to_string).unwrap_or_default(),
        landed: report.empty,
        undone: undone.into_iter().flat_map(|undone| &undone.files).map(told).collect(),
        undone_total: undone.map_or(0, |undone| undone.files_total),
        undone_commits: undone.into_iter().flat_map(|undone| texts(&undone.commits)).collect(),
        undone_commits_total: undone.map_or(0, |undone| undone.commits_total),
        conflict: conflict.map(|conflict| report.conflict_told(conflict)).unwrap_or_default(),
        conflicts_with: conflict.into_iter().flat_map(|conflict| texts(&conflict.with)).collect(),
        conflicts: conflict.into_iter().flat_map(|conflict| &conflict.paths).map(told).collect(),
        conflicts_total: conflict.map_or(0, |conflict| conflict.paths_total),
    })
}

/// How a check stands: by its last report's exit, where there is a report.
pub fn check_status(reported: Option<Option<i32>>) -> proto::CheckStatus {
    match reported {
        None => proto::CheckStatus::Missing,
        Some(None) => proto::CheckStatus::Skipped,
        Some(Some(0)) => proto::CheckStatus::Passed,
        Some(Some(_)) => proto::CheckStatus::Failed,
    }
}

/// How a required check stands on a version.
fn check(version: &Version, name: &str) -> proto::Check {
    let report = version.checks.get(name);
    proto::Check {
        name: name.to_owned(),
        status: check_status(report.map(|report| report.exit)).into(),
        by: report.map(|report| report.by.to_string()).unwrap_or_default(),
        at: report.map(|report| timestamp(report.at)),
        exit: report.and_then(|report| report.exit),
        output: report.and_then(|report| report.output.clone()),
    }
}

/// Who must approve a version, and how each stands to it.
pub(super) fn reviewers(charter: &Charter, proposal: &Proposal, version: &Version) -> Vec<proto::Reviewer> {
    let reviewer = |edge: Edge<'_>| {
        let until = proposal.versions.iter().rev().filter(|earlier| earlier.number <= version.number);
        let mut votes = until.filter_map(|earlier| {
            let vote = earlier.ballots.get(edge.reviewer)?.vote.as_ref()?;
            Some((vote_kind(vote.kind), earlier.number))
        });
        let (vote, voted_on) = votes.next().unwrap_or_default();
        let overruled = version.overruled.contains(edge.reviewer);
        proto::Reviewer {
            member: edge.reviewer.to_string(),
            lens: edge.lens.to_string(),
            eligible: proposal.own_work(charter, version, edge.reviewer).is_none(),
            read: version.read_by.contains_key(edge.reviewer),
            vote: vote.into(),
            voted_on,
            overruled: overruled && !version.approved_by(edge.reviewer),
        }
    };
    edges(charter, proposal).map(reviewer).collect()
}

fn vote_kind(kind: VoteKind) -> proto::VoteKind {
    match kind {
        VoteKind::Approve => proto::VoteKind::Approve,
        VoteKind::Object => proto::VoteKind::Object,
    }
}

/// Who reviews a proposal.
pub(super) fn edges<'a>(
    charter: &'a Charter,
    proposal: &'a Proposal,
) -> impl Iterator<Item = Edge<'a>> + use<'a> {
    let phase = charter.phase(&proposal.phase).map(|(_, phase)| phase);
    phase.into_iter().flat_map(|phase| proposal.edges(phase))
}

fn votes(version: &Version) -> Vec<proto::Vote> {
    let cast = version.ballots.iter().filter_map(|(by, ballot)| Some((by, ballot.vote.as_ref()?)));
    let vote =
        |(by, vote): (&crate::protocol::name::MemberName, &crate::protocol::review::Vote)| proto::Vote {
            by: by.to_string(),
            lenses: texts(&vote.lenses),
            version: version.number,
            kind: vote_kind(vote.kind).into(),
            at: Some(timestamp(vote.at)),
            checked: vote.checked.iter().cloned().map(String::from).collect(),
            ran: vote.ran.iter().map(run).collect(),
        };
    cast.map(vote).collect()
}

/// One objection or note, with what the producer answered to it.
pub fn objection(proposal: &Proposal, objection: &Objection) -> proto::Objection {
    let kind = match objection.kind {
        ObjectionKind::Objection => proto::ObjectionKind::Objection,
        ObjectionKind::Note => proto::ObjectionKind::Note,
    };
    let closed = objection.closed.as_ref();
    let status = match closed.map(|closed| closed.how) {
        None => proto::ObjectionStatus::Open,
        Some(Closing::Resolved) => proto::ObjectionStatus::Resolved,
        Some(Closing::Mistaken) => proto::ObjectionStatus::Mistaken,
        Some(Closing::Overruled) => proto::ObjectionStatus::Overruled,
    };
    let answers = proposal.versions.iter().filter_map(|version| {
        let text = version.answers.get(&objection.id)?.clone();
        Some(proto::Reply { version: version.number, text })
    });
    let raised_on = objection.from.as_ref().map(|(proposal, version)| format!("{proposal}@{version}"));
    proto::Objection {
        id: objection.id.to_string(),
        by: objection.by.to_string(),
        lenses: texts(&objection.lenses),
        version: objection.from.as_ref().map_or(objection.version, |(_, version)| *version),
        raised_on: raised_on.unwrap_or_default(),
        kind: kind.into(),
        text: objection.text.clone(),
        at: objection.places.iter().cloned().map(String::from).collect(),
        failing_test: objection.failing_test.as_ref().map(run),
        status: status.into(),
        raised_at: Some(timestamp(objection.at)),
        read: objection.read,
        closed_by: closed.map(|closed| closed.by.to_string()).unwrap_or_default(),
        reason: closed.and_then(|closed| closed.reason.clone()).unwrap_or_default(),
        answers: answers.collect(),
    }
}

fn run(run: &Run) -> proto::Run {
    proto::Run { command: run.command.clone(), exit: run.exit, output: run.output.clone() }
}

/// What an artifact is.
pub fn artifact_kind(kind: ArtifactKind) -> proto::ArtifactKind {
    match kind {
        ArtifactKind::Commit => proto::ArtifactKind::Commit,
        ArtifactKind::Bundle => proto::ArtifactKind::Bundle,
    }
}

/// Where a proposal stands.
pub fn proposal_state(state: ProposalState) -> proto::ProposalState {
    match state {
        ProposalState::ToDeliver => proto::ProposalState::ToDeliver,
        ProposalState::UnderReview => proto::ProposalState::UnderReview,
        ProposalState::Objected => proto::ProposalState::Objected,
        ProposalState::Accepted => proto::ProposalState::Accepted,
        ProposalState::Withdrawn => proto::ProposalState::Withdrawn,
        ProposalState::Complete => proto::ProposalState::Complete,
        ProposalState::Published => proto::ProposalState::Published,
        ProposalState::Closed => proto::ProposalState::Closed,
        ProposalState::Dropped => proto::ProposalState::Dropped,
    }
}
