//! The one place where time is taken.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use crate::protocol::time::{Span, Time};

/// Says what time it is.
pub trait Clock: Send + Sync {
    /// The time; never before an earlier answer of the same clock.
    fn now(&self) -> Time;
}

/// The machine's clock: the wall clock is read once, and the monotonic one carries it on, so that a
/// jump of the wall clock moves no deadline of a running process.
#[derive(Debug)]
pub struct SystemClock {
    started: Instant,
    started_at: Time,
}

impl SystemClock {
    /// Reads the wall clock.
    pub fn start() -> Self {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let micros = i64::try_from(since_epoch.as_micros()).unwrap_or(i64::MAX);
        Self { started: Instant::now(), started_at: Time(micros) }
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Time {
        let elapsed = i64::try_from(self.started.elapsed().as_micros()).unwrap_or(i64::MAX);
        self.started_at + Span(elapsed)
    }
}

/// A clock that moves by hand.
#[derive(Debug)]
pub struct HandClock(AtomicI64);

impl HandClock {
    /// A clock that stands at `at`.
    pub fn at(at: Time) -> Self {
        Self(AtomicI64::new(at.0))
    }

    /// Moves it on.
    pub fn advance(&self, span: Span) {
        self.0.fetch_add(span.0, Ordering::SeqCst);
    }
}

impl Clock for HandClock {
    fn now(&self) -> Time {
        Time(self.0.load(Ordering::SeqCst))
    }
}
