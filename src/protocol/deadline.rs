//! Deadlines: when what is owed is late, when a circle stalls, when a person is asked once more.
//!
//! A passing deadline is a request to the core like any other: whoever drives it asks with
//! [`Command::TimePassed`](super::Command::TimePassed) at [`Team::next_deadline`]. Time in which no
//! server ran counts towards none of them.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::answer::Answer;
use super::charter::Charter;
use super::escalation::{self, Cause, Decision as PersonsDecision, Escalated, EscalationReminded, WaitingOn};
use super::escalation::{Escalation, EscalationClosed};
use super::event::Event;
use super::name::{EscalationId, MemberName};
use super::obligation::{Obligation, ObligationKind};
use super::recovery;
use super::review::Circle;
use super::rule::Judge;
use super::team::{Decision, Team};
use super::time::{Span, Time};
use super::waiting;

/// A stretch without a server that is shorter counts as none.
const AWAY_MIN: Span = Span::seconds(1);

/// A server runs again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerResumed {
    /// When one was last known to run.
    pub from: Time,
    /// Since when one runs again.
    pub to: Time,
}

/// What moves deadlines.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Deadlines {
    /// Stretches in which no server ran, oldest first.
    away: Vec<(Time, Time)>,
    /// What a person decided about what was overdue, by obligation and member.
    #[serde(with = "super::snapshot::pairs")]
    decided: BTreeMap<(String, MemberName), Decided>,
}

/// What a person decided about something overdue, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Decided {
    at: Time,
    /// Whether it counts anew from then on, or there is no deadline any longer.
    anew: bool,
}

impl Deadlines {
    /// The moment when that much time has passed in which a server ran.
    pub(super) fn after(&self, since: Time, within: Span) -> Time {
        let mut at = since + within;
        let first = self.away.partition_point(|(_, to)| *to <= since);
        for (from, to) in &self.away[first..] {
            if *from >= at {
                break;
            }
            at = at + (*to - (*from).max(since));
        }
        at
    }

    /// Sets until when something is owed, whatever its kind: where it has a deadline, that is told by
    /// how long it may take.
    fn set_due(&self, owed: &mut Obligation) {
        let Some(due) = owed.due else { return };
        let within = due - owed.since;
        let key = (owed.id.clone(), owed.member.clone());
        owed.due = match self.decided.get(&key).filter(|decided| decided.at >= owed.since) {
            Some(Decided { anew: false, .. }) => None,
            Some(Decided { at, .. }) => Some(self.after(*at, within)),
            None => Some(self.after(owed.since, within)),
        };
    }

    /// Since when something is owed, and how long it may be; nothing where that has no end.
    fn time_of(&self, owed: &Obligation) -> Option<(Time, Span)> {
        let due = owed.due?;
        let key = (owed.id.clone(), owed.member.clone());
        let decided = self.decided.get(&key).filter(|decided| decided.at >= owed.since);
        let since = decided.map_or(owed.since, |decided| decided.at);
        let away = |(from, to): &(Time, Time)| ((*to).min(due) - (*from).max(since)).0;
        let first = self.away.partition_point(|(_, to)| *to <= since);
        let away: i64 = self.away[first..].iter().take_while(|(from, _)| *from < due).map(away).sum();
        Some((since, Span((due - since).0 - away)))
    }

    pub(super) fn resumed(&mut self, resumed: &ServerResumed) {
        let from = self.away.last().map_or(resumed.from, |(_, to)| resumed.from.max(*to));
        if resumed.to > from {
            self.away.push((from, resumed.to));
        }
    }

    pub(super) fn closed(&mut self, at: Time, escalation: &Escalation, closed: &EscalationClosed) {
        let opened = &escalation.opened;
        if let (Some(decision), Some(id), Some(member)) =
            (closed.decision, &opened.obligation, &opened.member)
        {
            let anew = decision == PersonsDecision::Extend;
            self.decided.insert((id.clone(), member.clone()), Decided { at, anew });
        }
    }
}

impl Team {
    pub(super) fn set_due(&self, owed: &mut [Obligation]) {
        owed.iter_mut().for_each(|owed| self.deadlines().set_due(owed));
    }

    /// When half of the time is over in which something is owed; nothing where it has no deadline.
    pub(super) fn half_of(&self, owed: &Obligation) -> Option<Time> {
        let (since, within) = self.deadlines().time_of(owed)?;
        Some(self.deadlines().after(since, Span(within.0 / 2)))
    }

    /// That part of the time in which something may be owed; nothing where that has no end.
    pub(super) fn part_of(&self, owed: &Obligation, parts: i64) -> Option<Span> {
        self.deadlines().time_of(owed).map(|(_, within)| Span(within.0 / parts))
    }

    /// When this team next wants to be asked, if nothing happens before: something becomes overdue, a
    /// circle stalls, a person is reminded, or a cooldown ends.
    pub fn next_deadline(&self, judge: &dyn Judge, now: Time) -> Option<Time> {
        let charter = &self.adopted()?.charter;
        let overdue = self.late(judge, now).map(|(at, _)| at).min();
        let stalled = self.stalls(charter).map(|(at, _)| at).min();
        let reminded = self.reminders(charter).map(|(at, ..)| at).min();
        let cooled = self.review().cooling(charter).filter(|at| *at > now).min();
        let lost = self.deliveries().lost_at();
        [overdue, stalled, reminded, cooled, lost].into_iter().flatten().min()
    }

    /// The least time after which something that happens now can have a deadline.
    pub fn least_deadline(&self) -> Option<Span> {
        let limits = &self.adopted()?.charter.limits;
        let spans = [
            limits.answer_within,
            limits.deliver_within,
            limits.stall_after,
            limits.withdraw_cooldown,
            escalation::UNHEARD_MIN,
        ];
        spans.into_iter().filter(|span| !span.is_zero()).min()
    }

    /// What is owed and has a deadline that no person was told of, with when that passes. What a person
    /// owes as a person is reminded of instead.
    fn late(&self, judge: &dyn Judge, now: Time) -> impl Iterator<Item = (Time, Obligation)> {
        let owed = self.all_obligations(judge, now).into_iter();
        owed.filter(|owed| {
            owed.kind != ObligationKind::Decide
                // One thing that a member owes in two ways is told once.
                && self.escalations().open_of(Cause::Overdue, &owed.subject, &owed.member).is_none()
        })
        .filter_map(|owed| owed.due.map(|due| (due, owed)))
    }

    /// The open circles of which no person was told that they stall, with when they will.
    fn stalls<'a>(&'a self, charter: &'a Charter) -> impl Iterator<Item = (Time, &'a Circle)> {
        let after = Some(charter.limits.stall_after).filter(|after| !after.is_zero());
        let told = |circle: &Circle| self.escalations().open_on(Cause::Stall, circle.name.as_str()).is_some();
        let circles = after.into_iter().flat_map(move |after| {
            let open = self.review().circles().filter(|circle| circle.is_open());
            open.map(move |circle| (self.deadlines().after(circle.progress_at, after), circle))
        });
        circles.filter(move |(_, circle)| !told(circle))
    }

    /// The open escalations with a reminder left: when, which, and the how-manieth.
    fn reminders<'a>(&'a self, charter: &'a Charter) -> impl Iterator<Item = (Time, &'a Escalation, u32)> {
        let limits = &charter.limits;
        let every = [limits.answer_within, limits.stall_after].into_iter().find(|every| !every.is_zero());
        let left = |escalation: &&Escalation| escalation.reminders() < limits.escalation_reminders;
        every.into_iter().flat_map(move |every| {
            self.escalations().open().filter(left).map(move |escalation| {
                let last = escalation.reminded.map_or(escalation.opened_at, |(_, at)| at);
                (self.deadlines().after(last, every), escalation, escalation.reminders() + 1)
            })
        })
    }
}

/// Puts before a person what became overdue and what stalls, once each, reminds of what waits for one, and
/// repairs what a log from before its rule holds.
pub(super) fn time_passed(team: &Team, charter: &Charter, judge: &dyn Judge, now: Time) -> Decision {
    let mut next = team.escalations().next_id();
    let mut events = Vec::new();
    let mut escalate = |escalated: Escalated| {
        events.push(Event::from(Escalated { id: next, ..escalated }));
        next = EscalationId(next.0 + 1);
    };
    let mut told: BTreeSet<(String, MemberName)> = BTreeSet::new();
    for (due, owed) in team.late(judge, now).filter(|(due, _)| *due <= now) {
        if told.insert((owed.subject.clone(), owed.member.clone())) {
            escalate(overdue(team, due, owed));
        }
    }
    let stalled: Vec<&Circle> =
        team.stalls(charter).filter(|(at, _)| *at <= now).map(|(_, circle)| circle).collect();
    if !stalled.is_empty() {
        let owed = team.all_obligations(judge, now);
        for circle in stalled {
            escalate(stall(team, charter, &owed, now, circle));
        }
    }
    let (circles, owes) = (team.review().circles(), |circle: &Circle| team.somebody_owes(judge, now, circle));
    let repaired = recovery::repairs(team, charter, circles, owes, next);
    let next = escalated_after(next, &repaired);
    events.extend(repaired.into_iter().chain(recovery::resend(team, now, next)));
    for (_, escalation, level) in team.reminders(charter).filter(|(at, ..)| *at <= now) {
        events.push(EscalationReminded { id: escalation.opened.id, level }.into());
    }
    Decision::accept(events, Answer::Recorded)
}

/// The id that the next escalation gets after these events.
fn escalated_after(next: EscalationId, events: &[Event]) -> EscalationId {
    let last = events.iter().rev().find_map(|event| match event {
        Event::Escalated(escalated) => Some(escalated.id),
        _ => None,
    });
    last.map_or(next, |last| EscalationId(last.0 + 1))
}

/// Takes a stretch in which no server ran out of every deadline; where nothing has one, nothing is stored.
pub(super) fn resumed(team: &Team, resumed: &ServerResumed) -> Decision {
    let waits = team.review().circles().any(Circle::is_open)
        || team.room().is_waiting()
        || team.escalations().open().next().is_some();
    let long = resumed.to - resumed.from >= AWAY_MIN;
    let events = if waits && long { vec![(*resumed).into()] } else { Vec::new() };
    Decision::accept(events, Answer::Recorded)
}

fn overdue(team: &Team, due: Time, owed: Obligation) -> Escalated {
    // A message belongs to no circle, whatever bears its name.
    let located =
        if owed.kind == ObligationKind::Answer { None } else { team.review().locate(&owed.subject) };
    let proposal = located.as_ref().and_then(|(proposal, _)| proposal.map(|proposal| proposal.name.clone()));
    let circle = located.filter(|(proposal, _)| proposal.is_none()).map(|(_, circle)| circle.name.clone());
    let text = format!(
        "{} owes: {} {}, since {}, and it was due {due}\n",
        owed.member, owed.kind, owed.subject, owed.since
    );
    let waiting_on = vec![WaitingOn::from(&owed)];
    Escalated {
        proposal,
        circle,
        member: Some(owed.member),
        obligation: Some(owed.id),
        waiting_on,
        ..Escalated::new(Cause::Overdue, owed.subject, text)
    }
}

/// With the wait-for graph: who waits for whom, for what, and how long.
fn stall(team: &Team, charter: &Charter, owed: &[Obligation], now: Time, circle: &Circle) -> Escalated {
    let graph = waiting::of_circle(team, charter, owed, now, circle);
    let text = format!("{} has made no progress since {}\n{graph}", circle.name, circle.progress_at);
    Escalated {
        circle: Some(circle.name.clone()),
        waiting_on: graph.owing,
        ..Escalated::new(Cause::Stall, circle.name.to_string(), text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_without_a_server_counts_towards_no_deadline() {
        let minutes = |count: i64| Time(count * 60_000_000);
        let mut deadlines = Deadlines::default();
        for (from, to) in [(10, 20), (30, 40), (35, 45), (44, 44)] {
            deadlines.resumed(&ServerResumed { from: minutes(from), to: minutes(to) });
        }
        let after = |since: i64, within: i64| deadlines.after(minutes(since), Span::seconds(within * 60));
        for (since, within, due, why) in [
            (0, 5, 5, "before all"),
            (0, 10, 10, "due as the server ends"),
            (0, 11, 21, "over one"),
            (15, 5, 25, "since within one"),
            (20, 5, 25, "since its end"),
            (0, 20, 30, "up to the second"),
            (0, 21, 46, "over all, and what overlaps counts once"),
            (50, 5, 55, "after all"),
        ] {
            assert_eq!(after(since, within), minutes(due), "{why}");
        }
    }
}
