//! How long a server takes until it is ready, and what it then has in memory.
//!
//! `cargo bench --bench start [-- --quick] [-- --teams 100 --events 10000]`
//!
//! Budget 7: 1,000,000 events and 100 teams ready in under 2 s with snapshots, in 15 s without; and memory
//! grows with the open work, not with the history. Each start is that of a process of its own, which
//! opens the store, proves what is to be proved, and has every team decide. What is timed ends when each
//! team has answered one read.
//!
//! Of the teams every tenth has open work; the others have finished theirs.

mod figures;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use countersign::coordinator::{Coordinator, SystemClock};
use countersign::protocol::name::TeamName;
use countersign::protocol::time::Time;
use countersign::store::sqlite::SqliteStore;
use countersign::store::{Batch, Row, Writer};
use figures::team::{self, Driven, Shape};
use figures::{at_most, cpu_seconds, median, number, option, resident_mib};

const READY_BUDGET_S: f64 = 2.0;
const REPLAYED_BUDGET_S: f64 = 15.0;
/// How much more memory ninety finished teams beside ten open ones may take than the ten alone.
const MEMORY_BUDGET: f64 = 1.5;
const OPEN_IN: usize = 10;
/// How long a server is watched after it is ready.
const SETTLES: Duration = Duration::from_secs(3);

fn main() {
    if let Some(home) = option("--home") {
        return child(Path::new(&home), option("--settle").is_some());
    }
    let quick = figures::quick();
    let teams = number("--teams", if quick { 20 } else { 100 }) as usize;
    let events = number("--events", if quick { 2_000 } else { 10_000 });
    let rounds = if quick { 1 } else { 3 };
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (all, open) = (folder.path().join("all"), folder.path().join("open"));
    let began = Instant::now();
    let open_log = log_of(events, false);
    let finished_log = log_of(events, true);
    let is_open = |index: usize| index.is_multiple_of(OPEN_IN);
    let logs = |index: usize| if is_open(index) { &open_log } else { &finished_log };
    let stored = fill(&all, (0..teams).map(|index| (index, logs(index))));
    fill(&open, (0..teams).filter(|index| is_open(*index)).map(|index| (index, logs(index))));
    println!("{teams} teams with {stored} events, made in {:.1} s", began.elapsed().as_secs_f64());

    let mut replayed = Vec::new();
    let mut ready = Vec::new();
    for _ in 0..rounds {
        forget(&all);
        replayed.push(start(&all, false));
        // The one before it left its snapshots as it ended.
        ready.push(start(&all, false));
    }
    let seconds = |found: &[Started]| median(&mut found.iter().map(|one| one.seconds).collect::<Vec<_>>());
    let (without, with) = (seconds(&replayed), seconds(&ready));
    let cpu = |found: &[Started]| median(&mut found.iter().map(|one| one.cpu).collect::<Vec<_>>());
    let (cpu_without, cpu_with) = (cpu(&replayed), cpu(&ready));
    println!(
        "ready without snapshots: {without:.2} s, {cpu_without:.2} s of the processors; with: {with:.2} s, {cpu_with:.2} s; \
         ratio {:.1}",
        without / with
    );
    println!(
        "budget 7: {without:.2} s without snapshots, at most {REPLAYED_BUDGET_S} s: {}",
        at_most(without, REPLAYED_BUDGET_S)
    );
    println!(
        "budget 7: {with:.2} s with snapshots, at most {READY_BUDGET_S} s: {}",
        at_most(with, READY_BUDGET_S)
    );

    start(&open, false);
    let settled = start(&all, true);
    let alone = start(&open, true);
    println!(
        "memory: {:.0} MiB as it gets ready, {:.0} MiB {} s later; the teams with open work alone {:.0} MiB and {:.0} MiB",
        settled.mib_ready,
        settled.mib,
        SETTLES.as_secs(),
        alone.mib_ready,
        alone.mib
    );
    println!("teams in memory then: {} of {teams}", settled.awake);
    let ratio = settled.mib / alone.mib;
    println!(
        "budget 7: {ratio:.2} times the memory of the open work, at most {MEMORY_BUDGET}: {}",
        at_most(ratio, MEMORY_BUDGET)
    );
}

/// What a start came to.
#[derive(Clone, Copy)]
struct Started {
    seconds: f64,
    /// Of all cores together, from the process's begin on.
    cpu: f64,
    mib_ready: f64,
    mib: f64,
    /// Teams in memory at the end.
    awake: f64,
}

fn start(home: &Path, settle: bool) -> Started {
    let own = std::env::current_exe().expect("a bench has a path");
    let mut command = Command::new(own);
    command.arg("--home").arg(home);
    if settle {
        command.args(["--settle", "yes"]);
    }
    let output = command.output().expect("a bench can start itself");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("it prints five numbers");
    let numbers: Vec<f64> = text.split_whitespace().map(|word| word.parse().expect("a number")).collect();
    Started {
        seconds: numbers[0],
        cpu: numbers[1],
        mib_ready: numbers[2],
        mib: numbers[3],
        awake: numbers[4],
    }
}

/// The process that is measured.
fn child(home: &Path, settle: bool) {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let judge = Arc::new(countersign::judge::CelRulebook::default());
        let began = Instant::now();
        let (writer, reader) = SqliteStore::open(home, "a bench").expect("the home opens");
        let clock = Arc::new(SystemClock::start());
        let (writer, reader) = (Box::new(writer), Arc::new(reader));
        let coordinator = Coordinator::start(writer, reader, judge, clock).expect("it starts");
        let names = coordinator.reader().teams().expect("the store is open");
        for team in coordinator.teams() {
            team.read(|team, _| team.seq()).await.expect("it answers");
        }
        let seconds = began.elapsed().as_secs_f64();
        let cpu = cpu_seconds().unwrap_or(f64::NAN);
        let mib_ready = resident_mib().unwrap_or(f64::NAN);
        if settle {
            tokio::time::sleep(SETTLES).await;
        }
        let awake = names.iter().filter(|name| coordinator.is_awake(name)).count();
        println!("{seconds} {cpu} {mib_ready} {} {awake}", resident_mib().unwrap_or(f64::NAN));
        coordinator.shutdown().await;
    });
}

/// The log of a team with that many events, about: its last ones are open work, or finish everything.
fn log_of(events: u64, finished: bool) -> Vec<Row> {
    let judge = team::shipped();
    let shape = Shape { agents: 10, proposals: 50, together: false, escalations: 0 };
    let mut driven = Driven::start_keeping(&judge, shape, Some(Vec::new())).until(&judge, events);
    if finished {
        driven.finish(&judge);
    }
    driven.rows.expect("they were to be kept")
}

/// Writes the logs into a home; says how many rows there are. Only the team's name differs from one to
/// the next.
fn fill<'a>(home: &Path, logs: impl Iterator<Item = (usize, &'a Vec<Row>)>) -> usize {
    let (mut writer, _) = SqliteStore::open(home, "a bench").expect("a fresh home opens");
    let mut stored = 0;
    for (index, rows) in logs {
        let team: TeamName = format!("team{index}x").parse().expect("it is a name");
        writer.add_team(&team, Time(0)).expect("it is new");
        for some in rows.chunks(2_000) {
            let batch = Batch { team: team.clone(), rows: some.to_vec() };
            let outcomes = writer.commit(&[batch]).expect("the disk takes it");
            stored += some.len();
            assert!(outcomes.iter().all(Result::is_ok));
        }
    }
    stored
}

/// Takes every snapshot away.
fn forget(home: &Path) {
    let folder: PathBuf = home.join("snapshots");
    if folder.exists() {
        std::fs::remove_dir_all(folder).expect("snapshots can be deleted");
    }
}
