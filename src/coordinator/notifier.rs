//! Telling persons: outside of the log, and never in a command's way.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::pin::Pin;

use super::presence::Presence;
use crate::protocol::charter::Channel;
use crate::protocol::escalation::Escalation;
use crate::protocol::name::{EscalationId, MemberName, TeamName};
use crate::protocol::time::{Span, Time};

/// How long is waited after a first failure; twice as long after each further one.
const PAUSE: Span = Span::seconds(2);

/// The longest wait between two attempts.
const PAUSE_MAX: Span = Span::seconds(10 * 60);

/// What a channel is to tell.
#[derive(Clone, Debug)]
pub struct Notice {
    /// The team.
    pub team: TeamName,
    /// The channel's name.
    pub name: String,
    /// Where it leads.
    pub channel: Channel,
    /// What is before a person.
    pub escalation: Escalation,
    /// Its opening, 0, or a reminder: 1, 2, 3…
    pub level: u32,
    /// When it is told.
    pub at: Time,
    /// Whether a wake reaches each on whom it waits, and since when that is so.
    pub hears: Vec<(MemberName, Presence, Option<Time>)>,
}

/// Sends news to persons. An error is told in words, and the same is tried again later.
pub trait Notifier: Send + Sync {
    /// Sends one; done when the other end took it.
    fn send<'a>(
        &'a self,
        notice: &'a Notice,
    ) -> Pin<Box<dyn Future<Output = Result<(), String>> + Send + 'a>>;
}

/// Sends nothing, and takes its time over it: for those who only open a home.
#[derive(Clone, Copy, Debug)]
pub struct Silent;

impl Notifier for Silent {
    fn send<'a>(&'a self, _: &'a Notice) -> Pin<Box<dyn Future<Output = Result<(), String>> + Send + 'a>> {
        Box::pin(std::future::pending())
    }
}

/// A channel that does not take the news.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failing {
    /// How often it was tried.
    pub attempts: u32,
    /// Why it failed last.
    pub why: String,
    /// When it is tried again.
    pub next_at: Time,
}

/// What is known of deliveries in this process.
#[derive(Debug, Default)]
pub(super) struct Deliveries {
    /// Each with the level that fails: a later one takes the place of the one before it.
    failing: BTreeMap<(EscalationId, String), (u32, Failing)>,
    /// What was sent, also where the log does not know it yet: a full disk must not send it again.
    sent: BTreeSet<(EscalationId, u32, String)>,
}

impl Deliveries {
    pub(super) fn failing(&self) -> BTreeMap<(EscalationId, String), Failing> {
        let failing = self.failing.iter().map(|(of, (_, failing))| (of.clone(), failing.clone()));
        failing.collect()
    }

    pub(super) fn was_sent(&self, id: EscalationId, level: u32, channel: &str) -> bool {
        self.sent.contains(&(id, level, channel.to_owned()))
    }

    pub(super) fn sent(&mut self, id: EscalationId, level: u32, channel: &str) {
        self.dropped(id, level, channel);
        self.sent.insert((id, level, channel.to_owned()));
    }

    /// It is not to be sent any longer. What fails at a later level goes on failing.
    pub(super) fn dropped(&mut self, id: EscalationId, level: u32, channel: &str) {
        let of = (id, channel.to_owned());
        if self.failing.get(&of).is_some_and(|(failing, _)| *failing <= level) {
            self.failing.remove(&of);
        }
    }

    /// Records a failure; when to try again.
    pub(super) fn failed(
        &mut self,
        id: EscalationId,
        level: u32,
        channel: &str,
        why: String,
        now: Time,
    ) -> Time {
        let known = self.failing.entry((id, channel.to_owned()));
        let (of, failing) =
            known.or_insert((level, Failing { attempts: 0, why: String::new(), next_at: now }));
        *of = level.max(*of);
        let doubled = PAUSE.0.saturating_mul(1 << failing.attempts.min(20));
        failing.attempts += 1;
        failing.why = why;
        failing.next_at = now + Span(doubled).min(PAUSE_MAX);
        failing.next_at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_failure_waits_twice_as_long_up_to_a_bound() {
        let mut deliveries = Deliveries::default();
        let id = EscalationId(1);
        let mut waits = Vec::new();
        for _ in 0..12 {
            waits.push(deliveries.failed(id, 0, "ops", "no".to_owned(), Time(0)).0 / 1_000_000);
        }
        assert_eq!(waits[..5], [2, 4, 8, 16, 32]);
        assert_eq!(waits[11], 600);
        assert_eq!(deliveries.failing()[&(id, "ops".to_owned())].attempts, 12);
        deliveries.sent(id, 0, "ops");
        assert!(deliveries.failing().is_empty() && deliveries.was_sent(id, 0, "ops"));
    }

    #[test]
    fn what_is_not_to_be_sent_any_longer_hides_no_reminder_that_fails() {
        let mut deliveries = Deliveries::default();
        let id = EscalationId(1);
        deliveries.failed(id, 0, "ops", "no".to_owned(), Time(0));
        deliveries.failed(id, 1, "ops", "still no".to_owned(), Time(0));
        deliveries.dropped(id, 0, "ops");
        assert_eq!(deliveries.failing()[&(id, "ops".to_owned())].why, "still no");
        deliveries.dropped(id, 1, "ops");
        assert!(deliveries.failing().is_empty());
    }
}
