//! The one place where time is taken.

use std::future::Future;
use std::pin::Pin;
use std::sync::Mutex;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use tokio::sync::watch;

use super::UNPOISONED;
use crate::protocol::time::{Span, Time};

/// A clock that isn't [beaten](Clock::beat) for longer than this stood still with its process.
const PAUSE_MIN: Span = Span::seconds(10);

/// A stretch in which no server ran, or the one that did stood still.
pub type Gap = (Time, Time);

/// Says what time it is.
pub trait Clock: Send + Sync {
    /// The time; never before an earlier answer of the same clock.
    fn now(&self) -> Time;

    /// Resolves once it is that time.
    fn wait_until(&self, at: Time) -> Pin<Box<dyn Future<Output = ()> + Send + '_>>;

    /// The stretches without a server that ended after that time, oldest first.
    fn gaps(&self, after: Time) -> Vec<Gap>;

    /// Says that the process runs; to be said every second.
    fn beat(&self);
}

/// The machine's clock: the wall clock is read once, and the monotonic one carries it on, so that a
/// jump of the wall clock moves no deadline of a running process.
#[derive(Debug)]
pub struct SystemClock {
    started: Instant,
    started_at: Time,
    pulse: Mutex<Pulse>,
}

/// When the process was seen to run.
#[derive(Debug, Default)]
struct Pulse {
    last: Option<Time>,
    gaps: Vec<Gap>,
}

impl SystemClock {
    /// Reads the wall clock.
    pub fn start() -> Self {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let micros = i64::try_from(since_epoch.as_micros()).unwrap_or(i64::MAX);
        Self { started: Instant::now(), started_at: Time(micros), pulse: Mutex::default() }
    }

    /// The same, for a home in which a server last ran at that time; nothing where that isn't known.
    pub fn after(ran_until: Option<Time>) -> Self {
        let mut clock = Self::start();
        // One that is still to come was told by a clock that was wrong: then nothing is known.
        let known = ran_until.filter(|at| *at <= clock.started_at);
        let gap = (known.unwrap_or_default(), clock.started_at);
        clock.pulse.get_mut().expect(UNPOISONED).gaps.push(gap);
        clock
    }
}

impl Pulse {
    /// The stretch since the last beat, where it is too long.
    fn pause(&self, now: Time) -> Option<Gap> {
        self.last.filter(|last| now - *last > PAUSE_MIN).map(|last| (last, now))
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Time {
        let elapsed = i64::try_from(self.started.elapsed().as_micros()).unwrap_or(i64::MAX);
        self.started_at + Span(elapsed)
    }

    fn wait_until(&self, at: Time) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        let left = u64::try_from((at - self.now()).0).unwrap_or_default();
        Box::pin(tokio::time::sleep(Duration::from_micros(left)))
    }

    fn gaps(&self, after: Time) -> Vec<Gap> {
        let pulse = self.pulse.lock().expect(UNPOISONED);
        // Whoever asks before the next beat is told of the pause all the same.
        let known = pulse.gaps.iter().copied().chain(pulse.pause(self.now()));
        known.filter(|(_, to)| *to > after).collect()
    }

    fn beat(&self) {
        let now = self.now();
        let mut pulse = self.pulse.lock().expect(UNPOISONED);
        let pause = pulse.pause(now);
        pulse.gaps.extend(pause);
        pulse.last = Some(now);
    }
}

/// A clock that moves by hand.
#[derive(Debug)]
pub struct HandClock {
    now: watch::Sender<Time>,
    gaps: Mutex<Vec<Gap>>,
}

impl HandClock {
    /// A clock that stands at `at`.
    pub fn at(at: Time) -> Self {
        Self { now: watch::Sender::new(at), gaps: Mutex::default() }
    }

    /// Moves it on.
    pub fn advance(&self, span: Span) {
        self.now.send_modify(|now| *now = *now + span);
    }

    /// Moves it on, with no server running meanwhile.
    pub fn pause(&self, span: Span) {
        let from = self.now();
        self.gaps.lock().expect(UNPOISONED).push((from, from + span));
        self.advance(span);
    }
}

impl Clock for HandClock {
    fn now(&self) -> Time {
        *self.now.borrow()
    }

    fn wait_until(&self, at: Time) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        let mut now = self.now.subscribe();
        // The sender lives as long as the clock that is borrowed here.
        Box::pin(async move { drop(now.wait_for(|now| *now >= at).await) })
    }

    fn gaps(&self, after: Time) -> Vec<Gap> {
        self.gaps.lock().expect(UNPOISONED).iter().copied().filter(|(_, to)| *to > after).collect()
    }

    fn beat(&self) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_stood_still_is_a_stretch_without_a_server() {
        let seconds = |count: i64| Time(count * 1_000_000);
        let mut pulse = Pulse::default();
        assert_eq!(pulse.pause(seconds(100)), None, "nobody beats this clock");
        pulse.last = Some(seconds(100));
        assert_eq!(pulse.pause(seconds(110)), None);
        assert_eq!(pulse.pause(seconds(111)), Some((seconds(100), seconds(111))));
    }

    #[test]
    fn what_ran_before_is_told_from_when_it_is_known() {
        let clock = SystemClock::after(Some(Time(5)));
        assert_eq!(clock.gaps(Time(0)), [(Time(5), clock.started_at)]);
        assert_eq!(clock.gaps(clock.started_at), []);
        let set_back = SystemClock::after(Some(Time(i64::MAX)));
        assert_eq!(set_back.gaps(Time(0)), [(Time(0), set_back.started_at)], "nobody is blamed");
    }
}
