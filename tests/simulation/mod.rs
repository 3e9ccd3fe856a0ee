//! A seeded simulation of the core: members who behave, who are lazy, confused or hostile, a clock
//! that is set back and forth, a server that publishes or can't, and an oracle that reads the log.
//!
//! In reading order: `charters` makes a team; `acts` what its members try; `told` what they are told
//! to do; `world` performs it; `stored`, `history` and `oracle` judge what was stored, apart from the
//! core.

#![allow(dead_code)] // The test and the example each use their part.

mod acts;
mod asked;
mod charters;
mod dice;
mod history;
mod oracle;
mod stored;
mod told;
mod world;

use std::fmt;

use countersign::judge::CelJudge;

use oracle::Broken;
pub use world::Seen;
use world::World;

/// How many steps of a failed run are told.
const STEPS_TOLD: usize = 30;

/// A run in which a guarantee doesn't hold.
#[derive(Debug)]
pub struct Failure {
    pub seed: u64,
    pub steps: usize,
    broken: Broken,
    story: Vec<String>,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for line in &self.story[self.story.len().saturating_sub(STEPS_TOLD)..] {
            writeln!(f, "  {line}")?;
        }
        writeln!(f, "SEED={} breaks {} in step {}", self.seed, self.broken, self.story.len())
    }
}

/// One run. It is the same each time; a failed one is run once more, to be told.
pub fn run(judge: &CelJudge, seed: u64, steps: usize) -> Result<Seen, Box<Failure>> {
    match World::new(judge, seed, false).and_then(|mut world| world.play(steps).map(|()| world.seen)) {
        Ok(seen) => Ok(seen),
        Err(broken) => {
            let mut story = Vec::new();
            if let Ok(mut world) = World::new(judge, seed, true) {
                let again = world.play(steps);
                assert_eq!(again, Err(broken.clone()), "SEED={seed} went otherwise the second time");
                story = world.story.unwrap_or_default();
            }
            Err(Box::new(Failure { seed, steps, broken, story }))
        }
    }
}
