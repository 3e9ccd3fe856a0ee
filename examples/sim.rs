//! Long runs of the simulation: `cargo sim --seeds 10000 --steps 500 --from 1 --mode memory`.

#[path = "../tests/simulation/mod.rs"]
mod simulation;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use clap::Parser;
use countersign::judge::CelJudge;
use simulation::{Mode, Run, Seen, run_all};

/// How many runs are made between two lines that tell how far it is.
const TOLD_EACH: u64 = 10_000;

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
    /// What is driven: core, memory (the coordinator over the store in memory) or disk (over SQLite).
    #[arg(long, default_value = "core", value_parser = mode)]
    mode: Mode,
    /// Where what fails is written as a play.
    #[arg(long, default_value = "target/simulation")]
    plays: PathBuf,
}

fn mode(name: &str) -> Result<Mode, String> {
    let known = Mode::ALL.iter().find(|(known, _)| *known == name);
    known.map(|(_, mode)| *mode).ok_or_else(|| "core, memory or disk".to_owned())
}

fn main() -> ExitCode {
    let Arguments { seeds, steps, from, mode, plays } = Arguments::parse();
    println!("SEED={from} and {seeds} in all over {}, {steps} steps each", mode.name());
    let (judge, begun) = (CelJudge::shipped(), Instant::now());
    let (mut seen, end) = (Seen::default(), from.saturating_add(seeds));
    let mut next = from;
    while next < end {
        let upto = end.min(next.saturating_add(TOLD_EACH));
        match run_all(&judge, next..upto, |seed| Run { mode, seed, steps }) {
            Ok(some) => seen.add(some),
            Err(failure) => {
                eprint!("{failure}");
                match failure.write_play(&judge, &plays) {
                    Ok(play) => {
                        eprintln!("as a play of {} steps: {}", failure.shortest().len(), play.display());
                    }
                    Err(error) => eprintln!("it could not be written as a play: {error}"),
                }
                return ExitCode::FAILURE;
            }
        }
        next = upto;
        // Whoever stops it here goes on with this number.
        println!("--from {next}: {} runs, {} steps in {:.0?}", seen.runs, seen.steps, begun.elapsed());
    }
    let seconds = begun.elapsed().as_secs_f64();
    let per_second = seen.steps as f64 / seconds;
    println!("{seen:#?}");
    println!("{} runs, {} steps in {seconds:.0} s, {per_second:.0} a second", seen.runs, seen.steps);
    ExitCode::SUCCESS
}
