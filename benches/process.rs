//! What a whole process of the program costs, beside a trivial client of the same kind.
//!
//! `cargo bench --bench process [-- --quick]`
//!
//! Budget 6: `countersign status` and `approve` under twice a trivial gRPC client: one that reads its command
//! line, connects, makes one unary call and prints what it hears; a hook of a harness under 100 ms. Interleaved,
//! against servers of this process; the program is the very one that is shipped. An approve is durable, which the
//! echo is not.

mod figures;

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Instant;

use countersign::coordinator::SystemClock;
use countersign::home::Home;
use countersign::server::{self, operator};
use figures::program::{self, ran, ran_with};
use figures::{at_most, echo, median, millis, number, option, quick};
use tonic::transport::Endpoint;

const BUDGET: f64 = 2.0;

/// A hook may take so long, in milliseconds.
const HOOK_BUDGET: f64 = 100.0;

/// What a harness says to its hook; the other commands read nothing.
const HARNESS_SAYS: &str = r#"{"stop_hook_active": false}"#;

fn main() {
    if let Some(addr) = option("--trivial") {
        return trivial(&addr);
    }
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let rounds = number("--rounds", if quick() { 15 } else { 100 }) as usize;
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (running, echo) = runtime.block_on(async {
        let home = Home::create(folder.path().join(".countersign")).expect("a fresh home");
        let charter = include_str!("../tests/plays/charters/solo.toml");
        let file = operator::CharterFile::alone("charter.toml", charter.as_bytes(), folder.path());
        let added = operator::add_team(&home, file).await;
        for (member, token) in added.expect("the charter is adopted").tokens {
            home.write_token(None, &member, &token).expect("it can be written");
        }
        let listen = "127.0.0.1:0".parse().expect("an address");
        let clock = Arc::new(SystemClock::start());
        let running = server::start(server::Options { home, listen, tls: None, page: None, clock }).await;
        (running.expect("the server starts"), echo::start().await)
    });
    let files = folder.path().join("work");
    std::fs::create_dir(&files).expect("a fresh folder");
    std::fs::write(files.join("parser.rs"), "fn parse() {}\n").expect("it can be written");
    let program = |member: &str, arguments: &[&str]| {
        let mut command = program::program(folder.path(), &["--as", member]);
        command.args(arguments);
        command
    };
    ran(&mut program("app", &["propose", "parser", "--path", "work", "--summary", "First"]));
    ran(&mut program("sec", &["show", "parser"]));
    let status = ran(&mut program("sec", &["status", "--json"]));
    let at = status.find("parser@1:").expect("status names the version");
    let reference: String =
        status[at..].chars().take_while(|c| c.is_ascii_alphanumeric() || "@:".contains(*c)).collect();
    let own = std::env::current_exe().expect("a bench has a path");
    let mut times: [Vec<f64>; 4] = Default::default();
    for _ in 0..rounds {
        let mut trivial = Command::new(&own);
        trivial.args(["--trivial", &echo.addr.to_string()]);
        let approve = ["approve", reference.as_str(), "--checked", "parser.rs"];
        let hook = program("app", &["hook", "claude-code", "stop"]);
        let commands = [trivial, program("sec", &["status"]), program("sec", &approve), hook];
        for (mut command, times) in commands.into_iter().zip(&mut times) {
            let began = Instant::now();
            ran_with(&mut command, HARNESS_SAYS);
            times.push(millis(began.elapsed()));
        }
    }
    let [trivial, status, approve, hook] = times.map(|mut times| median(&mut times));
    println!(
        "a whole process, median of {rounds}: trivial {trivial:.1} ms, status {status:.1} ms, approve {approve:.1} ms, \
         stop hook {hook:.1} ms"
    );
    for (what, found) in [("status", status), ("approve", approve)] {
        let ratio = found / trivial;
        println!(
            "budget 6: {what} takes {ratio:.2} times the trivial one, at most {BUDGET}: {}",
            at_most(ratio, BUDGET)
        );
    }
    println!("budget 6: a hook takes {hook:.1} ms, at most {HOOK_BUDGET}: {}", at_most(hook, HOOK_BUDGET));
    runtime.block_on(running.shutdown());
    assert!(Path::new(&files).exists());
}

/// The client that is compared with.
fn trivial(addr: &str) {
    let parsed = clap::Command::new("trivial")
        .arg(clap::Arg::new("trivial").long("trivial").required(true))
        .get_matches();
    assert_eq!(parsed.get_one::<String>("trivial").map(String::as_str), Some(addr));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let endpoint = Endpoint::from_shared(format!("http://{addr}")).expect("an address makes a URI");
        let channel = endpoint.connect().await.expect("the server listens");
        echo::Speaker::on(channel).say().await;
    });
    println!("said");
}
