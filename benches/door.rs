//! What the door costs a push.
//!
//! `cargo bench --bench door [-- --quick]`
//!
//! Two bare repositories, one with the door and one without, and the same commit pushed to each, to a new ref that is
//! free, interleaved. The budget: 1.5 times the push without the door, and one round trip, which is a process of the
//! program that asks the server one thing.

mod figures;

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use figures::program::{Served, program, ran};
use figures::{at_most, median, millis, number, quick};

const BUDGET: f64 = 1.5;

const CHARTER: &str = r#"
[team]
name = "atlas"
[repository]
path = "guarded.git"
protected = ["refs/heads/main"]
[members.app]
[members.sec]
[members.dana]
kind = "human"
[[phases]]
name = "implement"
confirm = "together"
deliverables = [{ name = "parser", producer = "app" }]
reviews = [{ reviewer = "sec", of = "app", lens = "security" }]
"#;

fn main() {
    let rounds = number("--rounds", if quick() { 15 } else { 100 });
    let folder = tempfile::tempdir().expect("a temporary folder");
    let root = folder.path();
    std::fs::write(root.join("charter.toml"), CHARTER).expect("it can be written");
    for name in ["guarded.git", "free.git"] {
        git(root, &["init", "-q", "--bare", "-b", "main", name]);
    }
    git(root, &["init", "-q", "-b", "main", "clone"]);
    ran(&mut program(root, &["init", "--charter", "charter.toml"]));
    ran(&mut program(root, &["door", "install"]));
    let _served = Served::start(root);

    let clone = root.join("clone");
    let mut times: [Vec<f64>; 3] = Default::default();
    for round in 0..rounds {
        std::fs::write(clone.join("parser.rs"), format!("fn parse() -> u64 {{ {round} }}\n"))
            .expect("a file");
        git(&clone, &["add", "parser.rs"]);
        git(&clone, &["commit", "-q", "-m", "One more"]);
        let refspec = format!("HEAD:refs/heads/round-{round}");
        let push = |to: &str| {
            let mut push = git_command(&clone);
            push.args(["push", "-q", to, &refspec]);
            push
        };
        let ask = program(root, &["--as", "app", "status"]);
        let commands = [push("../free.git"), push("../guarded.git"), ask];
        for (mut command, times) in commands.into_iter().zip(&mut times) {
            let began = Instant::now();
            ran(&mut command);
            times.push(millis(began.elapsed()));
        }
    }
    let [free, guarded, trip] = times.map(|mut times| median(&mut times));
    println!(
        "a push of one commit, median of {rounds}: without the door {free:.1} ms, through it {guarded:.1} ms; \
         one question to the server {trip:.1} ms"
    );
    let ratio = (guarded - trip) / free;
    println!(
        "the door: {ratio:.2} times the push without it, beside one round trip, at most {BUDGET}: {}",
        at_most(ratio, BUDGET)
    );
}

fn git_command(folder: &Path) -> Command {
    let mut command = Command::new("git");
    command.current_dir(folder).env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_SYSTEM", "/dev/null");
    for name in ["GIT_AUTHOR", "GIT_COMMITTER"] {
        command.env(format!("{name}_NAME"), "app").env(format!("{name}_EMAIL"), "app@example.org");
    }
    command
}

fn git(folder: &Path, args: &[&str]) {
    ran(git_command(folder).args(args));
}
