//! What follows from what just happened, without anybody asking for it: escalations that progress
//! answered are closed, a dissent round is called, and the referee calls out, in the same batch.

use std::collections::BTreeSet;

use super::escalation::{self, Cause, Escalated, Escalation, EscalationClosed};
use super::event::Event;
use super::name::{CircleName, ProposalName};
use super::obligation::Obligation;
use super::recovery;
use super::referee;
use super::review::{self, Circle, CircleState};
use super::rule::Judge;
use super::team::Team;
use super::time::Time;

/// What follows from a batch of events.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Aftermath {
    /// What happened with them; it is stored in the same batch, as the server's own doing.
    pub events: Vec<Event>,
    /// What is owed of all that the batch can have changed, as long as no events follow.
    pub owed: Vec<Obligation>,
}

impl Team {
    /// A proposal around which these events can have changed what is owed.
    pub fn touched(&self, events: &[Event]) -> Option<ProposalName> {
        let first = |circle: Option<&Circle>| circle.and_then(|circle| circle.proposals.first().cloned());
        // What an escalation is about, or one of the circle that it is about: it decides who may confirm.
        let about = |opened: &Escalated| opened.proposal.clone().or_else(|| first(self.circle_of(opened)));
        events.iter().find_map(|event| match event {
            Event::Proposed(event) => Some(event.proposal.clone()),
            Event::VersionRead(event) => Some(event.proposal.clone()),
            Event::ObjectionsRead(event) => Some(event.proposal.clone()),
            Event::Approved(event) => Some(event.proposal.clone()),
            Event::Objected(event) => Some(event.proposal.clone()),
            Event::Noted(event) => Some(event.proposal.clone()),
            Event::ObjectionClosed(event) => Some(event.proposal.clone()),
            Event::Withdrawn(event) => Some(event.proposal.clone()),
            Event::CheckReported(event) => Some(event.proposal.clone()),
            Event::TargetMoved(event) => Some(event.reference.proposal.clone()),
            Event::Confirmed(event) => first(self.review().circle(&event.circle)),
            Event::CircleReopened(event) => {
                event.owing.first().cloned().or_else(|| first(self.review().circle(&event.circle)))
            }
            Event::Escalated(event) => about(event),
            Event::EscalationClosed(event) => {
                self.escalations().get(event.id).and_then(|escalation| about(&escalation.opened))
            }
            _ => None,
        })
    }

    /// What is owed of all that these events can have changed; `around` is a proposal that they touched.
    pub fn owed_around(
        &self,
        judge: &dyn Judge,
        now: Time,
        events: &[Event],
        around: Option<&ProposalName>,
    ) -> Vec<Obligation> {
        let owed = self.obligations_around(judge, now, around);
        self.with_further(owed, judge, now, events)
    }

    /// With what is owed elsewhere of what these events can have changed: in the room, or around any proposal.
    fn with_further(
        &self,
        mut owed: Vec<Obligation>,
        judge: &dyn Judge,
        now: Time,
        events: &[Event],
    ) -> Vec<Obligation> {
        if touch_all(events) {
            return self.all_obligations(judge, now);
        }
        if events.iter().any(|event| matches!(event, Event::Said(_) | Event::ClaimJudged(_))) {
            owed.extend(self.answers_owed());
        }
        owed
    }

    /// What follows from these events, which were folded in just before; `around` is a proposal that they
    /// touched. What follows has no consequences itself.
    pub fn aftermath(
        &self,
        judge: &dyn Judge,
        now: Time,
        events: &[Event],
        around: Option<&ProposalName>,
    ) -> Aftermath {
        let Some(adopted) = self.adopted().filter(|_| !events.is_empty()) else {
            return Aftermath::default();
        };
        let owed = self.obligations_around(judge, now, around);
        let mut followed = review::call_dissent(self, judge, events);
        followed.extend(referee::call_outs(self, judge, events));
        if self.escalations().open().next().is_some() {
            let moved = Moved::by(self, events);
            let answered = |escalation: &&Escalation| moved.answers(self, judge, now, escalation);
            followed.extend(self.escalations().open().filter(answered).map(|escalation| {
                let reason = moved.reason(self, &escalation.opened);
                EscalationClosed { id: escalation.opened.id, by: None, decision: None, reason }.into()
            }));
        }
        let circle = around.and_then(|name| self.review().proposal(name));
        let circle = circle.and_then(|proposal| self.review().circle(&proposal.circle));
        // Whoever owes around the proposal owes in its circle; only where nobody does is the rest asked.
        let owes = |circle: &Circle| !owed.is_empty() || self.somebody_owes(judge, now, circle);
        let next = self.escalations().next_id();
        followed.extend(recovery::repairs(self, &adopted.charter, circle.into_iter(), owes, next));
        let owed = self.with_further(owed, judge, now, events);
        Aftermath { events: followed, owed }
    }

    /// Whether somebody owes something in a circle, or something that moves it, or a cooldown will make
    /// it so.
    pub(super) fn somebody_owes(&self, judge: &dyn Judge, now: Time, circle: &Circle) -> bool {
        let limits = self.adopted().map(|adopted| &adopted.charter.limits);
        let cools = |name: &ProposalName| {
            let proposal = self.review().proposal(name).zip(limits);
            proposal.is_some_and(|(proposal, limits)| self.review().cools(proposal, limits, now))
        };
        circle
            .proposals
            .iter()
            .any(|name| cools(name) || !self.obligations_around(judge, now, Some(name)).is_empty())
    }
}

/// Whether these events can change what is owed around any proposal: work begins, ends, or opens again.
fn touch_all(events: &[Event]) -> bool {
    let wide = |event: &Event| {
        matches!(
            event,
            Event::CharterAdopted(_)
                | Event::PhaseOpened(_)
                | Event::PhaseClosed(_)
                | Event::CirclePublished(_)
                | Event::CircleReopened(_)
                | Event::DeliverableDropped(_)
                | Event::ReviewerReplaced(_)
                | Event::ReviewerExcused(_)
        )
    };
    events.iter().any(wide)
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
            Cause::MemberDeaf => {
                let member = opened.member.as_ref();
                member.is_some_and(|member| !escalation::holds_up(team, judge, now, member))
            }
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
            Cause::MemberDeaf => escalation::OWES_NOTHING,
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
    owed.iter().chain(&team.answers_owed()).any(|owed| {
        Some(&owed.id) == opened.obligation.as_ref() && Some(&owed.member) == opened.member.as_ref()
    })
}
