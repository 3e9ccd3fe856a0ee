//! What follows from what just happened, without anybody asking for it: escalations that progress
//! answered are closed, and a dissent round is called, in the same batch.

use std::collections::BTreeSet;

use super::escalation::{Cause, Escalation, EscalationClosed};
use super::event::Event;
use super::name::CircleName;
use super::review;
use super::rule::Judge;
use super::team::Team;
use super::time::Time;

impl Team {
    /// What follows from these events, which were folded in just before. Its own events are stored with
    /// them, and have no consequences themselves.
    pub fn consequences(&self, judge: &dyn Judge, now: Time, events: &[Event]) -> Vec<Event> {
        if events.is_empty() {
            return Vec::new();
        }
        let mut followed = review::call_dissent(self, judge, events);
        followed.extend(self.answered_by(judge, now, events));
        followed
    }

    /// The escalations that these events answered.
    fn answered_by(&self, judge: &dyn Judge, now: Time, events: &[Event]) -> Vec<Event> {
        if self.escalations().open().next().is_none() {
            return Vec::new();
        }
        let moved = Moved::by(self, events);
        let answered = |escalation: &&Escalation| moved.answers(self, judge, now, escalation);
        self.escalations()
            .open()
            .filter(answered)
            .map(|escalation| {
                let reason = moved.reason(escalation.opened.cause);
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
        if within(&self.completed) && !matches!(opened.cause, Cause::Asked | Cause::Recovery) {
            return true;
        }
        match opened.cause {
            Cause::Stall => within(&self.progressed),
            Cause::PublishFailure => within(&self.revised),
            Cause::RuleError => self.adopted,
            Cause::Overdue => !still_owed(team, judge, now, escalation),
            _ => false,
        }
    }

    fn reason(&self, cause: Cause) -> String {
        let reason = match cause {
            Cause::Stall => "there is progress",
            Cause::Overdue => "it is no longer owed",
            Cause::PublishFailure => "a new version followed",
            Cause::RuleError if self.adopted => "another charter is in force",
            _ => "the circle is complete",
        };
        reason.to_owned()
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
