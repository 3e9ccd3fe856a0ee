//! Minutes from the log as it is listed, page by page: the one way from events to what they say.

use super::{proto, time_of};
use crate::protocol::Event;
use crate::protocol::minutes::Minutes;
use crate::protocol::name::{Actor, Seq};
use crate::protocol::time::Time;

/// Events of one page of the log.
const PAGE: u32 = 1_000;

/// The log as far as it was read.
#[derive(Default)]
pub struct Reading {
    minutes: Minutes,
    /// Where the next page begins; 0 where the log ends.
    next: Option<u64>,
    sequence: u64,
}

/// What the log holds and this program can't read.
#[derive(Debug, thiserror::Error)]
#[error("event {sequence} can't be read: {why}")]
pub struct Unreadable {
    sequence: u64,
    why: String,
}

impl Reading {
    /// The page to ask for, until the log ends.
    pub fn wants(&self) -> Option<proto::ListEventsRequest> {
        let from = self.next.unwrap_or(1);
        (from > 0).then_some(proto::ListEventsRequest { from, page_size: PAGE })
    }

    /// Takes the page that was asked for.
    pub fn take(&mut self, page: &proto::ListEventsResponse) -> Result<(), Unreadable> {
        for event in &page.events {
            let sequence = event.sequence;
            let unreadable = |why: String| Unreadable { sequence, why };
            let at = event.at.as_ref().map_or(Time::default(), time_of);
            let actor: Actor = event.actor.parse().map_err(|_| unreadable("it names no actor".to_owned()))?;
            let read = Event::decode(&event.kind, event.schema, &event.body);
            self.minutes.take(Seq(sequence), at, &actor, &read.map_err(|why| unreadable(why.to_string()))?);
            self.sequence = sequence;
        }
        // A page that holds nothing ends it, too.
        self.next = Some(if page.events.is_empty() { 0 } else { page.next });
        Ok(())
    }

    /// What was read, and as far as which sequence.
    pub fn done(self) -> (Minutes, u64) {
        (self.minutes, self.sequence)
    }
}
