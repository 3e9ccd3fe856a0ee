//! What the benches share: their options, the verdict on a budget, and a large team.

#![allow(dead_code)] // Each bench uses its part.

pub mod echo;
pub mod program;
pub mod team;

/// The program's own.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

use std::time::Duration;

use tonic::transport::{Channel, Endpoint};

/// Connections over which all calls are multiplexed.
pub const CONNECTIONS: usize = 4;

/// Whether the short form was asked for: `-- --quick`, or `QUICK=1`.
pub fn quick() -> bool {
    std::env::args().any(|arg| arg == "--quick") || std::env::var_os("QUICK").is_some()
}

/// The value after that option.
pub fn option(name: &str) -> Option<String> {
    let args: Vec<String> = std::env::args().collect();
    let at = args.iter().position(|arg| arg == name)?;
    args.get(at + 1).cloned()
}

/// The number after that option, or another one.
pub fn number(name: &str, default: u64) -> u64 {
    option(name).and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// `met` or `MISSED`, where less is better.
pub fn at_most(found: f64, budget: f64) -> &'static str {
    if found <= budget { "met" } else { "MISSED" }
}

/// `met` or `MISSED`, where more is better.
pub fn at_least(found: f64, budget: f64) -> &'static str {
    if found >= budget { "met" } else { "MISSED" }
}

/// The middle one.
pub fn median<T: PartialOrd + Copy>(values: &mut [T]) -> T {
    values.sort_by(|one, other| one.partial_cmp(other).expect("figures can be compared"));
    values[values.len() / 2]
}

/// Nanoseconds.
pub fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

/// Milliseconds.
pub fn millis(span: Duration) -> f64 {
    span.as_secs_f64() * 1000.0
}

/// What the process has in memory now, in MiB; nothing where the system doesn't say.
pub fn resident_mib() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<f64>().ok().map(|kib| kib / 1024.0)
}

/// What the process has taken of the processors so far, in seconds; nothing where the system doesn't say.
pub fn cpu_seconds() -> Option<f64> {
    const TICKS_A_SECOND: f64 = 100.0;
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // After the name, which stands in brackets: user and system time are the 12th and 13th.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = |at: usize| fields.get(at)?.parse::<f64>().ok();
    Some((ticks(11)? + ticks(12)?) / TICKS_A_SECOND)
}

/// As many connections as are shared by all clients.
pub async fn connect(addr: std::net::SocketAddr) -> Vec<Channel> {
    let endpoint = Endpoint::from_shared(format!("http://{addr}")).expect("an address makes a URI");
    let mut channels = Vec::new();
    for _ in 0..CONNECTIONS {
        channels.push(endpoint.connect().await.expect("the server listens"));
    }
    channels
}
