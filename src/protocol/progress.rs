//! What follows from what just happened, without anybody asking for it: escalations that progress
//! answered are closed, in the same batch.

use std::collections::BTreeSet;

use super::escalation::{Cause, Escalated, Escalation, EscalationClosed};
use super::event::Event;
use super::name::{CircleName, ProposalName};
use super::review::CircleState;
use super::rule::Judge;
use super::team::Team;
use super::time::Time;

impl Team {
    /// What follows from these events, which were folded in just before. Its own events are stored with
    /// them, and have no consequences themselves.
    pub fn consequences(&self, judge: &dyn Judge, now: Time, events: &[Event]) -> Vec<Event> {
        if events.is_empty() || self.escalations().open().next().is_none() {
            return Vec::new();
        }
        let moved = Moved::by(self, events);
        let answered = |escalation: &&Escalation| moved.answers(self, judge, now, escalation);
        self.escalations()
            .open()
            .filter(answered)
            .map(|escalation| {
                let reason = moved.reason(self, &escalation.opened);
                EscalationClosed { id: escalation.opened.id, by: None, decision: None, reason }.into()
            })
            .collect()
    }
}

/// What a batch of events moved.
#[derive(Default)]
struct Moved {
    /// Circles that made progress.
    progressed: BTreeSet<CircleName>,
    /// Circles with a new version.
    revised: BTreeSet<CircleName>,
    /// Circles that became final.
    completed: BTreeSet<CircleName>,
    /// Circles that a person closed, with their phase or with all that they held.
    closed: BTreeSet<CircleName>,
    /// Proposals that a person dropped.
    dropped: BTreeSet<ProposalName>,
    /// Whether another charter is in force.
    adopted: bool,
}

impl Moved {
    fn by(team: &Team, events: &[Event]) -> Self {
        let mut moved = Self::default();
        for event in events {
            let proposal = match event {
                Event::Proposed(event) => &event.proposal,
                Event::Approved(event) => &event.proposal,
                Event::Objected(event) => &event.proposal,
                Event::ObjectionClosed(event) => &event.proposal,
                Event::Confirmed(event) => {
                    moved.progressed.insert(event.circle.clone());
                    continue;
                }
                Event::CircleCompleted(event) => {
                    moved.completed.insert(event.circle.clone());
                    continue;
                }
                Event::EscalationClosed(closed) if closed.by.is_some() => {
                    let opened = team.escalations().get(closed.id).map(|escalation| &escalation.opened);
                    let circle = opened.and_then(|opened| team.circle_of(opened));
                    moved.progressed.extend(circle.map(|circle| circle.name.clone()));
                    continue;
                }
                Event::PhaseClosed(closed) => {
                    let circles = team
                        .review()
                        .circles()
                        .filter(|circle| circle.phase == closed.phase && circle.state == CircleState::Closed);
                    moved.closed.extend(circles.map(|circle| circle.name.clone()));
                    continue;
                }
                Event::DeliverableDropped(event) => {
                    moved.dropped.insert(event.proposal.clone());
                    let circle = team.review().proposal(&event.proposal).map(|proposal| &proposal.circle);
                    let circle = circle.and_then(|name| team.review().circle(name));
                    if let Some(circle) = circle.filter(|circle| circle.state == CircleState::Closed) {
                        moved.closed.insert(circle.name.clone());
                    }
                    &event.proposal
                }
                Event::CharterAdopted(_) => {
                    moved.adopted = true;
                    continue;
                }
                _ => continue,
            };
            let Some(circle) = team.review().proposal(proposal).map(|proposal| proposal.circle.clone())
            else {
                continue;
            };
            if matches!(event, Event::Proposed(_)) {
                moved.revised.insert(circle.clone());
            }
            moved.progressed.insert(circle);
        }
        moved
    }

    /// Whether an open escalation is answered by it.
    fn answers(&self, team: &Team, judge: &dyn Judge, now: Time, escalation: &Escalation) -> bool {
        let opened = &escalation.opened;
        let circle = team.circle_of(opened);
        let within = |set: &BTreeSet<CircleName>| circle.is_some_and(|circle| set.contains(&circle.name));
        let dropped = opened.proposal.as_ref().is_some_and(|proposal| self.dropped.contains(proposal));
        if (dropped || within(&self.closed)) && opened.cause != Cause::Recovery {
            return true;
        }
        if within(&self.completed) && !matches!(opened.cause, Cause::Asked | Cause::Recovery) {
            return true;
        }
        match opened.cause {
            Cause::Stall => within(&self.progressed),
            Cause::PublishFailure => within(&self.revised),
            Cause::RuleError => self.adopted,
            Cause::RoundLimit | Cause::FlipLimit | Cause::VoteLimit | Cause::ReviewerNotEligible => {
                self.adopted && !still_stands(team, opened)
            }
            Cause::ReviewerGone => !still_stands(team, opened),
            Cause::Overdue => !still_owed(team, judge, now, escalation),
            _ => false,
        }
    }

    fn reason(&self, team: &Team, opened: &Escalated) -> String {
        let dropped = opened.proposal.as_ref().filter(|proposal| self.dropped.contains(*proposal));
        let closed = team.circle_of(opened).filter(|circle| self.closed.contains(&circle.name));
        let reason = match opened.cause {
            _ if dropped.is_some() => "it was dropped",
            _ if closed.is_some() => "a person closed the circle",
            Cause::Stall => "there is progress",
            Cause::Overdue => "it is no longer owed",
            Cause::PublishFailure => "a new version followed",
            Cause::ReviewerGone if !self.adopted => "the objection is closed",
            Cause::RuleError
            | Cause::RoundLimit
            | Cause::FlipLimit
            | Cause::VoteLimit
            | Cause::ReviewerNotEligible
            | Cause::ReviewerGone
                if self.adopted =>
            {
                "another charter is in force"
            }
            _ => "the circle is complete",
        };
        reason.to_owned()
    }
}

/// Whether under the charter in force a person would be asked the same: a limit is still reached, a reviewer
/// may still not approve, or the holder of an open objection is still gone.
fn still_stands(team: &Team, opened: &Escalated) -> bool {
    let Some(charter) = team.adopted().map(|adopted| &adopted.charter) else { return true };
    let proposal = opened.proposal.as_ref().and_then(|name| team.review().proposal(name));
    let Some(proposal) = proposal else { return true };
    let phase = charter.phase(&proposal.phase).map(|(_, phase)| phase);
    let mut edges = phase.into_iter().flat_map(|phase| proposal.edges(phase));
    let current = proposal.current().filter(|_| proposal.current_ref() == opened.subject);
    match opened.cause {
        Cause::RoundLimit => proposal.rounds >= charter.limits.rounds,
        Cause::FlipLimit => proposal.flips >= charter.limits.withdraw_flips,
        Cause::VoteLimit => current.zip(opened.member.as_ref()).is_none_or(|(current, member)| {
            let changes = current.ballots.get(member).map_or(0, |ballot| ballot.changes);
            edges.any(|edge| edge.reviewer == member) && changes >= charter.limits.vote_changes
        }),
        Cause::ReviewerNotEligible => current.is_none_or(|current| {
            edges.any(|edge| proposal.own_work(charter, current, edge.reviewer).is_some())
        }),
        Cause::ReviewerGone => {
            let found = opened.subject.parse().ok().and_then(|id| team.review().objection(id));
            found.is_some_and(|(_, objection)| {
                objection.closed.is_none() && !charter.members.contains_key(&objection.by)
            })
        }
        _ => true,
    }
}

/// Whether what an overdue member owed is still owed by it.
fn still_owed(team: &Team, judge: &dyn Judge, now: Time, escalation: &Escalation) -> bool {
    let opened = &escalation.opened;
    let around = opened.proposal.as_ref();
    let around = around.or_else(|| team.circle_of(opened).and_then(|circle| circle.proposals.first()));
    let owed = team.obligations_around(judge, now, around);
    owed.iter().any(|owed| {
        Some(&owed.id) == opened.obligation.as_ref() && Some(&owed.member) == opened.member.as_ref()
    })
}
