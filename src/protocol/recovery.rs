//! Recovery patches: after-the-fact repairs that must never fire, since a rule forbids what they repair.
//! Each counts how often it did. When one fires, a person is told: the rules have a hole.
//!
//! They are reached by logs that were written before their rule.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::{Deserialize, Serialize};

use super::charter::Charter;
use super::delivery;
use super::escalation::{Cause, Escalated};
use super::event::Event;
use super::name::{EscalationId, ProposalName};
use super::review::{Circle, CircleState, Proposal};
use super::team::Team;
use super::time::Time;

/// Which repair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Patch {
    /// A completion that counted approvals of an older version is void.
    DropStaleApproval,
    /// An open objection whose holder left the team goes to a person.
    RehomeOrphanObjection,
    /// A circle that was completed without one of its deliverables is open again.
    ReopenUndelivered,
    /// Nobody owes anything, and nothing is final: a person is told.
    BreakMutualWait,
    /// A wake that a log counts as shown, and that nobody took, is sent again.
    ResendLostWake,
}

impl Patch {
    /// Every patch.
    pub const ALL: &[Self] = &[
        Self::DropStaleApproval,
        Self::RehomeOrphanObjection,
        Self::ReopenUndelivered,
        Self::BreakMutualWait,
        Self::ResendLostWake,
    ];

    /// Its stable name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::DropStaleApproval => "drop-stale-approval",
            Self::RehomeOrphanObjection => "rehome-orphan-objection",
            Self::ReopenUndelivered => "reopen-undelivered",
            Self::BreakMutualWait => "break-mutual-wait",
            Self::ResendLostWake => "resend-lost-wake",
        }
    }
}

impl fmt::Display for Patch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A recovery patch fired.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecoveryFired {
    /// Which one.
    pub patch: Patch,
    /// What it repaired: a circle, an objection or a wake.
    pub subject: String,
    /// What was found.
    pub found: String,
}

/// How often each patch fired, and on what.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recoveries {
    fired: BTreeMap<Patch, u64>,
    /// Each hole is told once.
    known: BTreeSet<(Patch, String)>,
}

impl Recoveries {
    /// How often each patch fired.
    pub fn counters(&self) -> impl Iterator<Item = (Patch, u64)> {
        Patch::ALL.iter().map(|patch| (*patch, self.fired.get(patch).copied().unwrap_or(0)))
    }

    pub(super) fn fired(&mut self, event: &RecoveryFired) {
        *self.fired.entry(event.patch).or_default() += 1;
        self.known.insert((event.patch, event.subject.clone()));
    }

    fn knows(&self, fired: &RecoveryFired) -> bool {
        self.known.contains(&(fired.patch, fired.subject.clone()))
    }
}

/// What must be repaired in these circles, as events: what fired, and what a person is told. `owes` says
/// whether somebody owes something in a circle, or a deadline will make it so.
pub(super) fn repairs<'a>(
    team: &Team,
    charter: &Charter,
    circles: impl Iterator<Item = &'a Circle>,
    owes: impl Fn(&Circle) -> bool,
    mut next: EscalationId,
) -> Vec<Event> {
    let mut events = Vec::new();
    // What follows the work stands in several places, and is one thing.
    let mut told: BTreeSet<(Patch, String)> = BTreeSet::new();
    for circle in circles {
        let found = completed_wrongly(team, circle)
            .into_iter()
            .chain(orphans(team, charter, circle))
            .chain(nobody_owes(circle, &owes));
        for fired in found.filter(|fired| !team.recoveries().knows(fired)) {
            if !told.insert((fired.patch, fired.subject.clone())) {
                continue;
            }
            let text = format!("{}: {}; the rules have a hole", fired.patch, fired.found);
            // An orphan is answered as one whose holder was seen to leave.
            let cause = match fired.patch {
                Patch::RehomeOrphanObjection => Cause::ReviewerGone,
                _ => Cause::Recovery,
            };
            let located = team.review().locate(&fired.subject);
            let proposal = located.and_then(|(proposal, _)| proposal);
            let escalated = Escalated {
                id: next,
                proposal: proposal.map(|proposal| proposal.name.clone()),
                circle: proposal.is_none().then(|| circle.name.clone()),
                ..Escalated::new(cause, fired.subject.clone(), text)
            };
            next = EscalationId(next.0 + 1);
            events.extend([Event::from(fired), escalated.into()]);
        }
    }
    events
}

/// The wakes that a log counts as shown, and that nobody took in time, as events: each is sent again.
pub(super) fn resend(team: &Team, now: Time, mut next: EscalationId) -> Vec<Event> {
    let mut events = Vec::new();
    for fired in delivery::lost(team, now) {
        let text = format!("{}: {}; the rules have a hole", fired.patch, fired.found);
        let escalated =
            Escalated { id: next, ..Escalated::new(Cause::Recovery, fired.subject.clone(), text) };
        next = EscalationId(next.0 + 1);
        events.extend([Event::from(fired), escalated.into()]);
    }
    events
}

/// A completion that a rule of today forbids.
fn completed_wrongly(team: &Team, circle: &Circle) -> Vec<RecoveryFired> {
    let Some(completed) = &circle.completed else { return Vec::new() };
    let mut fired = Vec::new();
    let mut fire = |patch, found| {
        fired.push(RecoveryFired { patch, subject: circle.name.to_string(), found });
    };
    let stale = completed.entries.iter().find_map(|entry| {
        let mut counted = entry.approvals.iter();
        counted.find(|counted| counted.version != entry.version).map(|counted| (entry, counted))
    });
    if let Some((entry, counted)) = stale {
        let (proposal, version) = (&entry.proposal, entry.version);
        fire(
            Patch::DropStaleApproval,
            format!(
                "{} was completed with {}'s approval of {proposal}@{}, and holds {proposal}@{version}",
                circle.name, counted.by, counted.version
            ),
        );
    }
    let held = |name: &ProposalName| completed.entries.iter().any(|entry| entry.proposal == *name);
    let missing = circle.proposals.iter().find(|name| !held(name));
    let undelivered =
        |name: &&ProposalName| team.review().proposal(name).is_none_or(|held| held.current().is_none());
    if let Some(name) = missing.or_else(|| circle.proposals.iter().find(undelivered)) {
        fire(Patch::ReopenUndelivered, format!("{} was completed without {name}", circle.name));
    }
    fired
}

/// Open objections of members whom the charter no longer has, and of whom no person was told.
fn orphans(team: &Team, charter: &Charter, circle: &Circle) -> Vec<RecoveryFired> {
    if !circle.is_open() {
        return Vec::new();
    }
    let proposals = circle.proposals.iter().filter_map(|name| team.review().proposal(name));
    let open = proposals.flat_map(Proposal::open_objections);
    let orphaned = open.filter(|objection| !charter.members.contains_key(&objection.by));
    let told = |objection: &str| team.escalations().open_on(Cause::ReviewerGone, objection).is_some();
    orphaned
        .filter(|objection| !told(&objection.id.to_string()))
        .map(|objection| RecoveryFired {
            patch: Patch::RehomeOrphanObjection,
            subject: objection.id.to_string(),
            found: format!("{} holds {}, and is no member", objection.by, objection.id),
        })
        .collect()
}

fn nobody_owes(circle: &Circle, owes: impl Fn(&Circle) -> bool) -> Option<RecoveryFired> {
    (circle.state == CircleState::Open && !owes(circle)).then(|| RecoveryFired {
        patch: Patch::BreakMutualWait,
        subject: circle.name.to_string(),
        found: format!("{} is open, and nobody owes anything", circle.name),
    })
}
