//! Members whom no wake reaches while others wait for them: each is put before a person once, until it is heard again.
//!
//! Who hears is known to the server alone, and is about now: it comes in as a report, and nothing of it is stored but
//! what the escalation says.

use std::collections::BTreeSet;
use std::fmt;

use super::{Cause, Escalated, Escalation, EscalationClosed, WaitingOn};
use crate::protocol::answer::Answer;
use crate::protocol::event::Event;
use crate::protocol::name::{EscalationId, MemberName};
use crate::protocol::obligation::{Obligation, ObligationKind};
use crate::protocol::rule::Judge;
use crate::protocol::team::{Decision, Team};
use crate::protocol::time::{Span, Time};

/// How long no wake must have reached a member, at least, before a person is told.
pub const UNHEARD_MIN: Span = Span::seconds(120);

/// A person is told after that part of the time in which something may be owed.
const UNHEARD_PART: i64 = 4;

/// How it is that no wake reaches a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Silence {
    /// It took a wake or spoke, and did not listen again.
    Deaf,
    /// Nothing of it is connected.
    Offline,
}

impl fmt::Display for Silence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Deaf => "deaf",
            Self::Offline => "offline",
        })
    }
}

/// A member who listened once, and whom no wake reaches now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unheard {
    /// Who.
    pub member: MemberName,
    /// How.
    pub how: Silence,
    /// Since when; time without a server counts for nothing.
    pub since: Time,
    /// When it was heard last; nothing where that was before the server began.
    pub heard: Option<Time>,
}

/// The server's report of everybody whom no wake reaches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReportUnheard {
    /// They.
    pub members: Vec<Unheard>,
    /// Members who listened before the server began, too short ago to say more: nobody is told of them, and what was
    /// told of them stands.
    pub unknown: BTreeSet<MemberName>,
}

impl ReportUnheard {
    /// Whether every member who ever listened hears.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty() && self.unknown.is_empty()
    }

    /// Whether nothing was heard of a member since it was told of.
    fn is_silent(&self, member: &MemberName, told_at: Time) -> bool {
        let silent = |one: &Unheard| one.member == *member && one.heard.is_none_or(|heard| heard < told_at);
        self.unknown.contains(member) || self.members.iter().any(silent)
    }
}

/// Whether others wait for it: the circle isn't done without it.
fn blocks(owed: &Obligation) -> bool {
    !matches!(owed.kind, ObligationKind::Answer | ObligationKind::Decide)
}

/// Whether a member owes something that others wait for.
pub(in crate::protocol) fn holds_up(team: &Team, judge: &dyn Judge, now: Time, member: &MemberName) -> bool {
    team.obligations(judge, now, member).iter().any(blocks)
}

impl Team {
    /// Whether a person was told that no wake reaches that member, and it wasn't heard since.
    pub fn is_told_unheard(&self, member: &MemberName) -> bool {
        self.escalations().open_on(Cause::MemberDeaf, member.as_str()).is_some()
    }

    /// When the server is to report next, if nothing happens before: somebody is to be told of then, or may have
    /// gone silent meanwhile. Never, as long as nobody waits for anybody.
    pub fn next_unheard(&self, judge: &dyn Judge, now: Time, report: &ReportUnheard) -> Option<Time> {
        let owed = self.blocking(judge, now);
        let told = report.members.iter().filter(|one| !self.is_told_unheard(&one.member));
        let told = told.filter_map(|one| self.told_at(&owed, one)).filter(|at| *at > now);
        (!owed.is_empty()).then(|| told.chain([now + UNHEARD_MIN]).min()).flatten()
    }

    fn blocking(&self, judge: &dyn Judge, now: Time) -> Vec<Obligation> {
        let mut owed = self.all_obligations(judge, now);
        owed.retain(blocks);
        owed
    }

    /// When a person is told of that silence; never where the member owes nothing that is late some time, or a
    /// person knows of all of it.
    fn told_at(&self, owed: &[Obligation], unheard: &Unheard) -> Option<Time> {
        let member = &unheard.member;
        // A silence is answered once. Where nobody knows whether it is the same one, what was owed then is answered.
        let answered = |owed: &Obligation| {
            let since = unheard.heard.unwrap_or(owed.since);
            let same = |one: &Escalation| {
                let by_a_person = one.closed.as_ref().is_some_and(|closed| closed.by.is_some());
                one.opened.cause == Cause::MemberDeaf
                    && one.opened.member.as_ref() == Some(member)
                    && one.opened_at >= since
                    && by_a_person
            };
            self.escalations().all().rev().any(same)
        };
        let overdue = |owed: &Obligation| {
            self.escalations().open_of(Cause::Overdue, &owed.subject, &owed.member).is_some()
        };
        let of = owed.iter().filter(|owed| owed.member == *member && !overdue(owed) && !answered(owed));
        of.filter_map(|owed| {
            let within = self.part_of(owed, UNHEARD_PART)?.max(UNHEARD_MIN);
            Some(self.deadlines().after(unheard.since.max(owed.since), within))
        })
        .min()
    }
}

/// Opens an escalation for each member whom no wake reached for too long while it owed something that others wait
/// for, and closes those of members who were heard again, or owe nothing of the kind any longer.
pub(in crate::protocol) fn report_unheard(
    team: &Team,
    judge: &dyn Judge,
    now: Time,
    report: &ReportUnheard,
) -> Decision {
    let known = team.escalations();
    let owed = team.blocking(judge, now);
    let mut events: Vec<Event> = Vec::new();
    let mut closed = BTreeSet::new();
    for open in known.open().filter(|open| open.opened.cause == Cause::MemberDeaf) {
        let Some(member) = &open.opened.member else { continue };
        let reason = if !owed.iter().any(|owed| owed.member == *member) {
            OWES_NOTHING
        } else if !report.is_silent(member, open.opened_at) {
            "it was heard again"
        } else {
            continue;
        };
        closed.insert(member);
        let (id, reason) = (open.opened.id, reason.to_owned());
        events.push(EscalationClosed { id, by: None, decision: None, reason }.into());
    }
    let is_told = |member: &MemberName| team.is_told_unheard(member) && !closed.contains(member);
    let due = report
        .members
        .iter()
        .filter(|one| !is_told(&one.member) && team.told_at(&owed, one).is_some_and(|at| at <= now));
    for (id, unheard) in (known.next_id().0..).zip(due) {
        let owed: Vec<_> = owed.iter().filter(|owed| owed.member == unheard.member).collect();
        events.push(Escalated { id: EscalationId(id), ..told(team, unheard, &owed) }.into());
    }
    Decision::accept(events, Answer::Recorded)
}

/// Why it is no longer told that no wake reaches a member.
pub(in crate::protocol) const OWES_NOTHING: &str = "it owes nothing that others wait for";

fn told(team: &Team, unheard: &Unheard, owed: &[&Obligation]) -> Escalated {
    let Unheard { member, how, since, .. } = unheard;
    let mut text = format!("{member} is {how} since {since}: no wake reaches it\n");
    let (mut proposals, mut circles) = (BTreeSet::new(), BTreeSet::new());
    for owed in owed {
        text.push_str(&format!("{member} owes: {} {}, since {}\n", owed.kind, owed.subject, owed.since));
        if let Some((proposal, circle)) = team.review().locate(&owed.subject) {
            proposals.insert(proposal.map(|proposal| &proposal.name));
            circles.insert(&circle.name);
        }
    }
    // Where it holds up one thing only, a person can decide about that.
    let only = |found: BTreeSet<_>| found.into_iter().next();
    let proposal = if proposals.len() == 1 { only(proposals).flatten().cloned() } else { None };
    let circle = if proposal.is_none() && circles.len() == 1 { circles.into_iter().next() } else { None };
    Escalated {
        proposal,
        circle: circle.cloned(),
        member: Some(member.clone()),
        waiting_on: owed.iter().map(|owed| WaitingOn::from(*owed)).collect(),
        ..Escalated::new(Cause::MemberDeaf, member.as_str(), text)
    }
}
