//! A seeded simulation: members who behave, who are lazy, confused or hostile, a clock that is set back
//! and forth, charters that change, and an oracle that reads the log. It drives the core alone, or the
//! real coordinator over a store, with processes that die, requests that are repeated, and stores and
//! notifiers that fail.
//!
//! In reading order: `charters` makes a team; `acts` what its members try; `told` what they are told
//! to do; `world` performs it; `server`, `faults` and `served` have a real server perform it; `stored`,
//! `history`, `strictness`, `oracle` and `room` judge what was stored, apart from the core. `step` is what a run comes to;
//! `script` writes it as a play.

#![allow(dead_code)] // The test and the example each use their part.

mod acts;
mod asked;
mod charters;
mod dice;
mod faults;
mod history;
mod oracle;
mod room;
mod script;
mod served;
mod server;
pub mod step;
mod stored;
mod strictness;
mod told;
mod world;

use std::fmt;
use std::num::NonZero;
use std::ops::Range;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use countersign::judge::CelJudge;
use countersign::protocol::time::Span;

use dice::Dice;
use faults::Mishap;
use oracle::{Broken, Verdict};
use server::Kept;
use step::{Step, shortest};
pub use world::Seen;
use world::{Record, World};

/// How many steps of a failed run are told.
const STEPS_TOLD: usize = 30;

/// How often a failed run is repeated to make it shorter.
const REPEATED_MAX: usize = 2_000;

/// How long a failed run is made shorter.
const SHORTENED_MAX: Duration = Duration::from_secs(60);

/// What a run drives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// The core alone.
    Core,
    /// The coordinator over the store in memory.
    Memory,
    /// The coordinator over SQLite, on a real disk.
    Disk,
}

impl Mode {
    pub const ALL: [(&'static str, Self); 3] =
        [("core", Self::Core), ("memory", Self::Memory), ("disk", Self::Disk)];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, mode)| *mode == self).map_or("core", |(name, _)| name)
    }

    fn kept(self) -> Option<Kept> {
        match self {
            Self::Core => None,
            Self::Memory => Some(Kept::InMemory),
            Self::Disk => Some(Kept::OnDisk),
        }
    }
}

/// One run: the same each time.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    pub mode: Mode,
    pub seed: u64,
    pub steps: usize,
}

/// A run in which a guarantee doesn't hold.
#[derive(Debug)]
pub struct Failure {
    pub run: Run,
    broken: Broken,
    story: Vec<String>,
    /// The shortest steps that still break it.
    shortest: Vec<Step>,
    charter: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for line in &self.story[self.story.len().saturating_sub(STEPS_TOLD)..] {
            writeln!(f, "  {line}")?;
        }
        let Run { mode, seed, steps } = self.run;
        writeln!(f, "SEED={seed} breaks {} in step {}", self.broken, self.story.len())?;
        writeln!(f, "repeat it: cargo sim --mode {} --from {seed} --seeds 1 --steps {steps}", mode.name())
    }
}

/// One run. A failed one is run once more, to be told, and made as short as it gets.
pub fn run(judge: &CelJudge, run: Run) -> Result<Seen, Box<Failure>> {
    let (charter, dice) = beginning(run.seed);
    match played(judge, run, &charter, dice, false) {
        (_, seen, Ok(())) => Ok(seen),
        (_, _, Err(broken)) => {
            // What follows takes a while, and may be stopped.
            eprintln!("SEED={} over {} breaks {broken}; it is made shorter", run.seed, run.mode.name());
            let begun = Instant::now();
            let (_, dice) = beginning(run.seed);
            let (record, _, again) = played(judge, run, &charter, dice, true);
            let Record { steps, story } = record.unwrap_or_default();
            if run.mode == Mode::Core {
                let seed = run.seed;
                assert_eq!(again, Err(broken.clone()), "SEED={seed} went otherwise the second time");
            }
            let shortest = shortest(&steps, REPEATED_MAX, |steps| {
                if begun.elapsed() > SHORTENED_MAX {
                    return false;
                }
                let repeated = repeat(judge, run.mode, &charter, steps).1;
                repeated.is_err_and(|now| now.guarantee == broken.guarantee)
            });
            Err(Box::new(Failure { run, broken, story, shortest, charter }))
        }
    }
}

/// Many runs, on all cores: what they saw, or the first of those that fail.
pub fn run_all(
    judge: &CelJudge,
    seeds: Range<u64>,
    of: impl Fn(u64) -> Run + Sync,
) -> Result<Seen, Box<Failure>> {
    let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
    let (next, failed) = (AtomicU64::new(seeds.start), AtomicU64::new(u64::MAX));
    let work = || {
        let mut seen = Seen::default();
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= seeds.end || failed.load(Ordering::Relaxed) < seed {
                return Ok(seen);
            }
            match run(judge, of(seed)) {
                Ok(one) => seen.add(one),
                Err(failure) => {
                    failed.fetch_min(seed, Ordering::Relaxed);
                    return Err(failure);
                }
            }
        }
    };
    let ended: Vec<Result<Seen, Box<Failure>>> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..cores).map(|_| scope.spawn(work)).collect();
        workers.into_iter().map(|worker| worker.join().unwrap_or_else(|p| resume_unwind(p))).collect()
    });
    let mut seen = Seen::default();
    let mut failures = Vec::new();
    for one in ended {
        match one {
            Ok(one) => seen.add(one),
            Err(failure) => failures.push(failure),
        }
    }
    match failures.into_iter().min_by_key(|failure| failure.run.seed) {
        Some(failure) => Err(failure),
        None => Ok(seen),
    }
}

/// The charter of a seed, and the dice as they lie then.
fn beginning(seed: u64) -> (String, Dice) {
    let mut dice = Dice::of(seed);
    let charter = charters::random(&mut dice);
    (charter, dice)
}

fn played(
    judge: &CelJudge,
    run: Run,
    charter: &str,
    dice: Dice,
    tell: bool,
) -> (Option<Record>, Seen, Verdict) {
    match World::new(judge, dice, charter, run.mode.kept()) {
        Ok(mut world) => {
            world.record = tell.then(Record::default);
            let verdict = world.play(run.steps);
            world.seen.runs = 1;
            (world.record, world.seen, verdict)
        }
        Err(broken) => (None, Seen::default(), Err(broken)),
    }
}

/// What comes of time that passes so for a team that has only begun: how long, whether with a server that stands
/// still, and whether what is stored first then isn't.
pub fn passed(judge: &CelJudge, mode: Mode, stretches: &[(Span, bool, bool)]) -> Result<(), String> {
    let step = |(span, away, lost): &(Span, bool, bool)| Step::Pass {
        span: *span,
        away: *away,
        mishap: if *lost { Mishap::NotStored } else { Mishap::None },
    };
    let steps: Vec<Step> = stretches.iter().map(step).collect();
    let (charter, _) = beginning(0);
    repeat(judge, mode, &charter, &steps).1.map_err(|broken| broken.to_string())
}

/// What comes of exactly these steps.
fn repeat(judge: &CelJudge, mode: Mode, charter: &str, steps: &[Step]) -> (Vec<String>, Verdict) {
    let mut world = match World::new(judge, Dice::of(0), charter, mode.kept()) {
        Ok(world) => world,
        Err(broken) => return (Vec::new(), Err(broken)),
    };
    world.careful = true;
    world.record = Some(Record::default());
    let verdict = steps.iter().try_for_each(|step| world.take(step));
    (world.record.unwrap_or_default().story, verdict)
}

impl Failure {
    /// Writes the shortest steps as a play, with its charters, into that folder.
    pub fn write_play(&self, judge: &CelJudge, folder: &Path) -> std::io::Result<PathBuf> {
        let name = format!("{}-{}", self.run.mode.name(), self.run.seed);
        let because = format!(
            "{} was broken in {} of {} steps:\n{}",
            self.broken.guarantee,
            self.shortest.len(),
            self.story.len(),
            self.broken.what
        );
        script::of(judge, &self.charter, &self.shortest, &name, &because).write(folder)
    }

    pub fn shortest(&self) -> &[Step] {
        &self.shortest
    }
}

/// A run that holds, as a play; what each command came to stands beside its line.
pub fn as_play(judge: &CelJudge, run: Run, name: &str) -> script::Script {
    let (charter, dice) = beginning(run.seed);
    let (record, ..) = played(judge, run, &charter, dice, true);
    script::of(judge, &charter, &record.unwrap_or_default().steps, name, "a run of the simulation")
}
