//! Escalations as messages, with who holds them up.

use super::{proto, timestamp};
use crate::protocol::escalation::{Escalation, WaitingOn};
use crate::protocol::rule::Judge;
use crate::protocol::time::Time;
use crate::protocol::{Obligation, ObligationKind, Team, waiting};

/// One escalation. While it is open it says who waits on whom: the members who owe something around
/// its proposal, or else the people who owe the decision.
pub fn escalation(team: &Team, judge: &dyn Judge, now: Time, escalation: &Escalation) -> proto::Escalation {
    let opened = &escalation.opened;
    let closed = escalation.closed.as_ref();
    let state = match closed {
        None => proto::EscalationState::Open,
        Some(closed) if closed.by.is_some() => proto::EscalationState::Answered,
        Some(_) => proto::EscalationState::Closed,
    };
    let waiting = match closed {
        None => holding(team, judge, now, escalation),
        Some(_) => opened.waiting_on.clone(),
    };
    proto::Escalation {
        id: opened.id.to_string(),
        cause: opened.cause.to_string(),
        subject: opened.subject.clone(),
        text: opened.text.clone(),
        opened_at: Some(timestamp(escalation.opened_at)),
        state: state.into(),
        waiting_on: waiting.iter().map(waiting_on).collect(),
        reminders: escalation.reminders(),
        deliveries: escalation
            .sent
            .iter()
            .map(|(channel, (level, at))| proto::Delivery {
                channel: channel.clone(),
                level: *level,
                sent_at: Some(timestamp(*at)),
                ..Default::default()
            })
            .collect(),
        decisions: super::texts(opened.decisions()),
        decision: closed.and_then(|closed| closed.decision).map(|made| made.to_string()).unwrap_or_default(),
        answered_by: closed
            .and_then(|closed| closed.by.as_ref())
            .map(ToString::to_string)
            .unwrap_or_default(),
        reason: closed.map(|closed| closed.reason.clone()).unwrap_or_default(),
    }
}

/// Who holds an open escalation's subject up.
fn holding(team: &Team, judge: &dyn Judge, now: Time, escalation: &Escalation) -> Vec<WaitingOn> {
    let opened = &escalation.opened;
    let owed = match (&opened.proposal, team.circle_of(opened), team.adopted()) {
        (None, Some(circle), Some(adopted)) => {
            let owed = team.all_obligations(judge, now);
            return waiting::of_circle(team, &adopted.charter, &owed, now, circle).owing;
        }
        _ => team.obligations_around(judge, now, opened.proposal.as_ref()),
    };
    let is_human =
        |owed: &Obligation| team.adopted().is_some_and(|adopted| adopted.charter.is_human(&owed.member));
    let decide = format!("decide:{}", opened.id);
    let (work, decisions): (Vec<&Obligation>, Vec<&Obligation>) =
        owed.iter().partition(|owed| owed.kind != ObligationKind::Decide);
    let mut waiting: Vec<&Obligation> = work.into_iter().filter(|owed| !is_human(owed)).collect();
    if waiting.is_empty() {
        waiting = decisions.into_iter().filter(|owed| owed.id == decide).collect();
    }
    waiting.into_iter().map(WaitingOn::from).collect()
}

/// One of those on whom something waits.
pub(super) fn waiting_on(waiting: &WaitingOn) -> proto::Waiting {
    proto::Waiting {
        member: waiting.member.to_string(),
        kind: waiting.kind.to_string(),
        since: Some(timestamp(waiting.since)),
        ..Default::default()
    }
}
