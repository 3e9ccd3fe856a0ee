//! A team's state as messages: who holds the ball.

use super::escalation::{escalation, waiting_on};
use super::version::{edges, proposal_state, reviewers};
use super::{proto, texts, timestamp};
use crate::protocol::charter::Charter;
use crate::protocol::name::{MemberName, Seq};
use crate::protocol::review::{Circle, CircleState, Proposal, ProposalState, PublishedRef};
use crate::protocol::rule::Judge;
use crate::protocol::time::Time;
use crate::protocol::{Obligation, Team, waiting};

/// Everything that status shows; `sequence` is the team's own.
pub fn status(team: &Team, judge: &dyn Judge, now: Time, member: &MemberName) -> proto::GetStatusResponse {
    let mut response = proto::GetStatusResponse {
        member: member.to_string(),
        sequence: sequence(team.seq()),
        ..Default::default()
    };
    let Some(adopted) = team.adopted() else { return response };
    let (charter, review) = (&adopted.charter, team.review());
    response.team = charter.team.to_string();
    response.circles = review.circles().map(|one| circle(team, charter, adopted.revision, one)).collect();
    let proposals = review.proposals().chain(review.dropped());
    response.proposals = proposals.map(|one| proposal(team, charter, now, one)).collect();
    let owed = team.all_obligations(judge, now);
    response.obligations = owed.iter().map(obligation).collect();
    let open = review.circles().filter(|circle| circle.is_open());
    response.waiting = open.flat_map(|circle| waiting(team, charter, &owed, now, circle)).collect();
    response.recovery_patches =
        team.recoveries().counters().map(|(patch, count)| (patch.to_string(), count)).collect();
    let open = team.escalations().open();
    response.escalations = open.map(|one| escalation(team, judge, now, one)).collect();
    response
}

/// A place in the log.
pub fn sequence(seq: Seq) -> u64 {
    seq.0
}

/// One circle at a glance.
fn circle(team: &Team, charter: &Charter, revision: u32, circle: &Circle) -> proto::Circle {
    let review = team.review();
    let manifest = match &circle.completed {
        Some(completed) => completed.manifest.clone(),
        None => review.manifest(revision, circle),
    };
    let confirmed: Vec<&MemberName> = review.confirmed(circle, &manifest).collect();
    let participants = review.participants(charter, circle);
    let state = match circle.state {
        CircleState::Open => proto::CircleState::Open,
        CircleState::Complete => proto::CircleState::Complete,
        CircleState::Published => proto::CircleState::Published,
        CircleState::Closed => proto::CircleState::Closed,
    };
    let publishing_since = circle.completed_at.filter(|_| circle.state == CircleState::Complete);
    proto::Circle {
        name: circle.name.to_string(),
        reference: review.circle_ref(revision, circle).to_string(),
        state: state.into(),
        waiting_for: texts(participants.into_iter().filter(|member| !confirmed.contains(member))),
        confirmed: texts(confirmed),
        proposals: texts(&circle.proposals),
        phase: circle.phase.to_string(),
        publishing_since: publishing_since.map(timestamp),
        published: circle.published.iter().map(published).collect(),
        unpublished_because: circle.unpublished.clone().unwrap_or_default(),
        publish_check: circle.publish_check.as_ref().map(|run| proto::PublishCheck {
            command: run.command.clone(),
            exit: run.exit,
            output: String::new(),
        }),
    }
}

/// One circle with all that the check printed.
pub fn whole_circle(team: &Team, charter: &Charter, revision: u32, of: &Circle) -> proto::Circle {
    let mut told = circle(team, charter, revision, of);
    if let (Some(check), Some(run)) = (&mut told.publish_check, &of.publish_check) {
        check.output = run.output.clone().unwrap_or_default();
    }
    told
}

fn published(one: &PublishedRef) -> proto::PublishedRef {
    proto::PublishedRef {
        name: one.name.clone(),
        from: one.from.as_ref().map(ToString::to_string).unwrap_or_default(),
        to: one.to.to_string(),
        merges: one.merges.iter().map(|merge| merge.commit.to_string()).collect(),
    }
}

/// One proposal at a glance, with the approvals that count: those of a version that is current,
/// stands, and could be published.
pub fn proposal(team: &Team, charter: &Charter, now: Time, proposal: &Proposal) -> proto::Proposal {
    let state = team.review().proposal_state(proposal);
    let current = proposal.current();
    let counting = current.filter(|_| proposal.withdrawal.is_none() && proposal.publish_failed.is_none());
    let approvals = counting.into_iter().flat_map(|version| {
        edges(charter, proposal).filter_map(|edge| {
            let overruled = version.overruled.contains(edge.reviewer);
            (overruled || version.approved_by(edge.reviewer)).then(|| proto::Approval {
                by: edge.reviewer.to_string(),
                lens: edge.lens.to_string(),
                version: version.number,
                overruled: overruled && !version.approved_by(edge.reviewer),
            })
        })
    });
    let cooling = if state == ProposalState::Withdrawn { proposal.cool_at(&charter.limits) } else { None };
    proto::Proposal {
        name: proposal.name.to_string(),
        version: proposal.current_number(),
        reference: current.map(|version| version.reference(&proposal.name).to_string()).unwrap_or_default(),
        state: proposal_state(state).into(),
        producer: proposal.producer.to_string(),
        approvals: approvals.collect(),
        open_objections: proposal.open_objections().map(|objection| objection.id.to_string()).collect(),
        circle: proposal.circle.to_string(),
        cooldown_until: cooling.filter(|until| *until > now).map(timestamp),
        reviewers: current.map(|version| reviewers(charter, proposal, version)).unwrap_or_default(),
        summary: current.map(|version| version.summary.clone()).unwrap_or_default(),
        proposed_at: current.map(|version| timestamp(version.at)),
    }
}

/// Who waits for whom in a circle.
fn waiting(
    team: &Team,
    charter: &Charter,
    owed: &[Obligation],
    now: Time,
    circle: &Circle,
) -> Vec<proto::WaitFor> {
    let graph = waiting::of_circle(team, charter, owed, now, circle);
    let waiting_for: Vec<proto::Waiting> = graph.owing.iter().map(waiting_on).collect();
    let waits = |member: &MemberName| proto::WaitFor {
        member: member.to_string(),
        circle: circle.name.to_string(),
        waiting_for: waiting_for.clone(),
    };
    graph.waiting.iter().map(waits).collect()
}

/// One obligation.
pub fn obligation(owed: &Obligation) -> proto::Obligation {
    proto::Obligation {
        id: owed.id.clone(),
        member: owed.member.to_string(),
        kind: owed.kind.to_string(),
        subject: owed.subject.clone(),
        since: Some(timestamp(owed.since)),
        due: owed.due.map(timestamp),
        command: owed.command.clone(),
    }
}
