//! Deliveries: what a member was shown of what it owes, so that whoever owes is woken once for each thing, over
//! restarts too.
//!
//! A wake is computed: what a member owes and was not shown. Only its acknowledgement is stored, by the member
//! that took it; a wake that nobody acknowledged is made again, with the same id. What is still owed at half its
//! deadline is shown once more. What ended and is owed again is another thing, and is shown as such.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::answer::Answer;
use super::event::Event;
use super::name::{MemberName, Seq, WakeId, shown};
use super::obligation::Obligation;
use super::recovery::{Patch, RecoveryFired};
use super::rejection::{Rejection, Violation};
use super::rule::Judge;
use super::team::{Ask, Decision, Team};
use super::time::{Span, Time};

/// Obligations that one acknowledgement may name.
pub const ACKNOWLEDGED_MAX: usize = 10_000;

/// How long a wake that a log records may stand without its delivery.
pub const WAKE_WITHIN: Span = Span::seconds(60);

/// Say that a wake was taken: what it showed was put out whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Acknowledge {
    /// The wake.
    pub wake: WakeId,
    /// The obligations that it showed, by their ids.
    pub obligations: Vec<String>,
    /// Up to where the log was shown to whoever watches everything.
    pub watched: Option<Seq>,
    /// The place in the log that the wake reflected. What it showed and is owed anew since was not shown; only who
    /// sent it knows, and leaves that out of `obligations` before anything is decided.
    pub seq: Seq,
}

/// A member took a wake: it was shown what it owes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delivered {
    /// Who.
    pub member: MemberName,
    /// Which wake of that member.
    pub wake: WakeId,
    /// What it was shown that is still owed.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub obligations: Vec<String>,
    /// What it was shown before, and still owes.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub earlier: Vec<String>,
    /// Up to where the log was shown to whoever watches everything.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub watched: Option<Seq>,
}

/// What a member was shown ended, and is owed again: it is to be shown anew.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwedAgain {
    /// Who owes.
    pub member: MemberName,
    /// What, by the ids of the obligations.
    pub obligations: Vec<String>,
}

/// A wake was sent, and counted as shown before anybody took it. No server does so any longer: a log can hold it
/// all the same, and what never arrived is sent again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Woken {
    /// Who.
    pub member: MemberName,
    /// Which wake of that member.
    pub wake: WakeId,
    /// What it was to show.
    pub obligations: Vec<String>,
}

/// What each member was shown.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deliveries(BTreeMap<MemberName, Shown>);

/// What one member was shown.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Shown {
    /// Wakes that it took.
    taken: u32,
    /// What it was shown last, and when: never more than it owed then.
    obligations: BTreeMap<String, Time>,
    /// Up to where it watched the log.
    watched: Seq,
    /// A recorded wake that nobody took.
    untaken: Option<(Time, Woken)>,
}

impl Deliveries {
    /// Whether that member ever took a wake.
    pub fn knows(&self, member: &MemberName) -> bool {
        self.0.contains_key(member)
    }

    /// The id of that member's next wake: it stays until it is taken.
    pub fn next_wake(&self, member: &MemberName) -> WakeId {
        WakeId(self.0.get(member).map_or(0, |shown| shown.taken) + 1)
    }

    /// Up to where that member watched the log.
    pub fn watched(&self, member: &MemberName) -> Seq {
        self.0.get(member).map_or(Seq(0), |shown| shown.watched)
    }

    fn shown_at(&self, member: &MemberName, obligation: &str) -> Option<Time> {
        self.0.get(member)?.obligations.get(obligation).copied()
    }

    /// When the first of the recorded wakes that nobody took is lost.
    pub(super) fn lost_at(&self) -> Option<Time> {
        self.untaken().map(|(at, _)| at).min()
    }

    /// The recorded wakes that nobody took, and when each is lost.
    fn untaken(&self) -> impl Iterator<Item = (Time, &Woken)> {
        let recorded = self.0.values().filter_map(|shown| shown.untaken.as_ref());
        recorded.map(|(at, woken)| (*at + WAKE_WITHIN, woken))
    }

    pub(super) fn delivered(&mut self, at: Time, event: &Delivered) {
        let known = self.0.entry(event.member.clone()).or_default();
        let before = std::mem::take(&mut known.obligations);
        let earlier = event.earlier.iter().filter_map(|id| Some((id.clone(), *before.get(id)?)));
        known.obligations = earlier.chain(event.obligations.iter().map(|id| (id.clone(), at))).collect();
        known.taken = known.taken.max(event.wake.0);
        known.watched = known.watched.max(event.watched.unwrap_or_default());
        known.untaken.take_if(|(_, woken)| woken.wake <= event.wake);
    }

    pub(super) fn owed_again(&mut self, event: &OwedAgain) {
        if let Some(known) = self.0.get_mut(&event.member) {
            known.obligations.retain(|id, _| !event.obligations.contains(id));
        }
    }

    pub(super) fn woken(&mut self, at: Time, event: &Woken) {
        let known = self.0.entry(event.member.clone()).or_default();
        known.obligations.extend(event.obligations.iter().map(|id| (id.clone(), at)));
        known.untaken = Some((at, event.clone()));
    }

    /// A lost wake is to be sent again: what it was to show counts as not shown.
    pub(super) fn resend(&mut self, fired: &RecoveryFired) {
        for known in self.0.values_mut() {
            if let Some((_, woken)) = known.untaken.take_if(|(_, woken)| subject(woken) == fired.subject) {
                known.obligations.retain(|id, _| !woken.obligations.contains(id));
            }
        }
    }
}

/// What a lost wake is called in front of a person.
fn subject(woken: &Woken) -> String {
    format!("{} {}", woken.member, woken.wake)
}

/// What a member owes, as one who listens sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Due {
    /// The wake that shows it.
    pub wake: WakeId,
    /// All that is owed, oldest first.
    pub owed: Vec<Obligation>,
    /// Those of them that were not shown, or are to be shown once more, by their ids.
    pub fresh: BTreeSet<String>,
    /// Those of the fresh ones that are owed past half of their time.
    pub late: BTreeSet<String>,
    /// When something gets past half of its time that was not shown since, if nothing happens before.
    pub again_at: Option<Time>,
}

impl Team {
    /// What that member owes at that time, and what of it was not shown.
    pub fn due(&self, judge: &dyn Judge, now: Time, member: &MemberName) -> Due {
        let now = now.max(self.at());
        let owed = self.obligations(judge, now, member);
        let deliveries = self.deliveries();
        let mut due = Due {
            wake: deliveries.next_wake(member),
            owed: Vec::new(),
            fresh: BTreeSet::new(),
            late: BTreeSet::new(),
            again_at: None,
        };
        for one in &owed {
            let (shown_at, half) = (deliveries.shown_at(member, &one.id), self.half_of(one));
            if shown_at.is_none() {
                due.fresh.insert(one.id.clone());
            }
            match half {
                Some(half) if shown_at.is_none_or(|at| at < half) => {
                    if half <= now {
                        due.fresh.insert(one.id.clone());
                        due.late.insert(one.id.clone());
                    } else {
                        due.again_at = Some(due.again_at.map_or(half, |known| known.min(half)));
                    }
                }
                _ => {}
            }
        }
        Due { owed, ..due }
    }

    /// What had ended and is owed again by a member to whom it was shown, as events. `before` and `after` are what
    /// is owed around the same things.
    pub fn owed_again(&self, before: &[Obligation], after: &[Obligation]) -> Vec<Event> {
        let known: BTreeSet<_> = before.iter().map(|owed| (&owed.member, owed.id.as_str())).collect();
        let mut again: BTreeMap<&MemberName, Vec<String>> = BTreeMap::new();
        for owed in after {
            let fresh = !known.contains(&(&owed.member, owed.id.as_str()));
            if fresh && self.deliveries().shown_at(&owed.member, &owed.id).is_some() {
                again.entry(&owed.member).or_default().push(owed.id.clone());
            }
        }
        let event = |(member, obligations): (&MemberName, _)| {
            OwedAgain { member: member.clone(), obligations }.into()
        };
        again.into_iter().map(event).collect()
    }
}

/// Decides an acknowledgement. Refused where it names too many obligations. A wake that was taken before, or one
/// of which nothing is owed any longer, is taken without a trace.
pub(super) fn acknowledge(ask: Ask<'_>, command: &Acknowledge) -> Decision {
    let Acknowledge { wake, obligations, watched, .. } = command;
    if obligations.len() > ACKNOWLEDGED_MAX {
        return Decision::refuse(too_many(obligations.len()));
    }
    let deliveries = ask.team.deliveries();
    let next = deliveries.next_wake(ask.by);
    if *wake > next {
        return Decision::refuse(unknown_wake(*wake, next));
    }
    if *wake < next {
        return Decision::accept(Vec::new(), Answer::Recorded);
    }
    let due = ask.team.due(ask.judge, ask.now, ask.by);
    let named: BTreeSet<&str> = obligations.iter().map(String::as_str).collect();
    let (mut now, mut earlier, mut news) = (Vec::new(), Vec::new(), false);
    for owed in due.owed {
        let fresh = due.fresh.contains(&owed.id);
        if named.contains(owed.id.as_str()) && fresh {
            news = true;
            now.push(owed.id);
        } else if deliveries.shown_at(ask.by, &owed.id).is_some() {
            earlier.push(owed.id);
        }
    }
    // Nobody was shown what is still to come.
    let watched = watched.map(|seq| seq.min(ask.team.seq())).filter(|seq| *seq > deliveries.watched(ask.by));
    if !news && watched.is_none() {
        return Decision::accept(Vec::new(), Answer::Recorded);
    }
    let (member, wake) = (ask.by.clone(), *wake);
    let event = Delivered { member, wake, obligations: now, earlier, watched };
    Decision::accept(vec![event.into()], Answer::Recorded)
}

fn too_many(found: usize) -> Rejection {
    Violation::Malformed {
        argument: "obligations".to_owned(),
        expected: format!("at most {ACKNOWLEDGED_MAX}"),
        given: found.to_string(),
        form: "those that the wake showed".to_owned(),
    }
    .into()
}

fn unknown_wake(given: WakeId, next: WakeId) -> Rejection {
    Violation::Malformed {
        argument: "wake".to_owned(),
        expected: "a wake that was made".to_owned(),
        given: shown(&given.to_string(), 40),
        form: format!("{next}, once it has come"),
    }
    .into()
}

/// The recorded wakes that nobody took in time.
pub(super) fn lost(team: &Team, now: Time) -> impl Iterator<Item = RecoveryFired> {
    team.deliveries().untaken().filter(move |(at, _)| *at <= now).map(|(_, woken)| RecoveryFired {
        patch: Patch::ResendLostWake,
        subject: subject(woken),
        found: format!("{} was sent {}, and nobody took it", woken.member, woken.wake),
    })
}
