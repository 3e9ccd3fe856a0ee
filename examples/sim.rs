//! Long runs of the simulation: `cargo sim -- --seeds 10000 --steps 500 --from 1`.

#[path = "../tests/simulation/mod.rs"]
mod simulation;

use std::process::ExitCode;
use std::time::Instant;

use clap::Parser;
use countersign::judge::CelJudge;
use simulation::{Seen, run};

/// Simulates random teams and checks the guarantees after every step.
#[derive(Parser)]
struct Arguments {
    /// How many runs.
    #[arg(long, default_value_t = 10_000)]
    seeds: u64,
    /// How many steps each.
    #[arg(long, default_value_t = 300)]
    steps: usize,
    /// The first seed.
    #[arg(long, default_value_t = 0)]
    from: u64,
}

fn main() -> ExitCode {
    let Arguments { seeds, steps, from } = Arguments::parse();
    println!("SEED={from} and {seeds} in all, {steps} steps each");
    let (judge, begun) = (CelJudge::shipped(), Instant::now());
    let mut seen = Seen::default();
    for seed in from..from.saturating_add(seeds) {
        match run(&judge, seed, steps) {
            Ok(one) => seen.add(one),
            Err(failure) => {
                eprintln!("{failure}");
                return ExitCode::FAILURE;
            }
        }
    }
    let per_second = seen.steps as f64 / begun.elapsed().as_secs_f64();
    println!("{seen:#?}");
    println!("{} steps, {per_second:.0} a second", seen.steps);
    ExitCode::SUCCESS
}
