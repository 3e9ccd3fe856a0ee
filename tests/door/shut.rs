//! Whatever can't be told keeps the door shut.

use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;
use std::time::{Duration, Instant};

use super::guarded::{Guarded, kill};
use super::hook::executable;
use super::place::Ran;

/// What the hook may take, and what a busy machine adds to it.
const SHUT_TIME_MAX: Duration = Duration::from_secs(10 + 15);

#[test]
fn while_no_server_runs_nothing_protected_moves_and_nothing_else_does_either() {
    let mut guarded = Guarded::unserved();
    for form in ["HEAD:refs/heads/main", "HEAD:refs/heads/free"] {
        let told = guarded.refused(&[form]);
        assert!(told.contains("refused DOOR_SHUT") && told.contains("no server runs"), "{told}");
    }
    guarded.place.serve();
    guarded.push(&["HEAD:refs/heads/free"]).done();
    // A server that was killed leaves its address behind.
    guarded.signal("-KILL");
    guarded.place.commit("app", "src/more.rs", "fn more() {}\n");
    let told = guarded.refused(&["HEAD:refs/heads/free"]);
    assert!(told.contains("refused DOOR_SHUT"), "{told}");
}

#[test]
fn a_server_that_says_nothing_is_not_waited_for_and_one_that_is_killed_meanwhile_said_nothing() {
    let guarded = Guarded::served();
    guarded.signal("-STOP");
    let began = Instant::now();
    let told = guarded.refused(&["HEAD:refs/heads/main"]);
    let took = began.elapsed();
    assert!(told.contains("refused DOOR_SHUT"), "{told}");
    assert!(took < SHUT_TIME_MAX, "{took:?}");

    let pushing = pushing(&guarded);
    let hook = hook_of(&guarded);
    guarded.signal("-KILL");
    let pushed = Ran::of(&pushing.wait_with_output().unwrap());
    assert_eq!(pushed.exit, 1, "{pushed:?}");
    assert!(pushed.err.contains("refused DOOR_SHUT"), "{pushed:?} ({hook})");
    assert_eq!(guarded.at("refs/heads/free"), guarded.id("HEAD~1"));
}

#[test]
fn a_hook_that_is_killed_let_nothing_in() {
    let guarded = Guarded::served();
    guarded.signal("-STOP");
    let pushing = pushing(&guarded);
    kill("-KILL", &hook_of(&guarded));
    let pushed = Ran::of(&pushing.wait_with_output().unwrap());
    assert_eq!(pushed.exit, 1, "{pushed:?}");
    guarded.signal("-CONT");
    assert_eq!(guarded.at("refs/heads/free"), guarded.id("HEAD~1"));
    guarded.push(&["HEAD:refs/heads/free"]).done();
}

#[test]
fn a_server_that_is_killed_between_its_yes_and_the_refs_knows_afterwards_what_it_let_in() {
    let mut guarded = Guarded::bare();
    // The hook from before runs once the server has said yes, and git moves the refs once it has ended.
    let between = "#!/bin/sh\ntouch asked\nuntil [ -e go ]; do sleep 0.01; done\n";
    executable(&guarded, "atlas.git/hooks/pre-receive", between);
    guarded.place.run(&["door", "install"]).done();
    guarded.place.serve();
    let glass = ["--ref", "refs/heads/main", "--reason", "the build is broken"];
    guarded.place.run(&[&["--as", "dana", "door", "break-glass"], &glass[..]].concat()).done();
    let mut push = guarded.git_command(&["push", "origin", "HEAD:refs/heads/main", "HEAD:refs/heads/free"]);
    let pushing = push.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let asked = guarded.place.path("atlas.git/asked");
    let began = Instant::now();
    while !asked.exists() {
        assert!(began.elapsed() < SHUT_TIME_MAX, "the hook from before does not run");
        std::thread::yield_now();
    }
    guarded.place.kill_server();
    guarded.place.write("atlas.git/go", "");
    let pushed = Ran::of(&pushing.wait_with_output().unwrap());
    assert_eq!(pushed.exit, 0, "{pushed:?}");
    let head = guarded.id("HEAD");
    assert_eq!((guarded.at("refs/heads/main"), guarded.at("refs/heads/free")), (head.clone(), head));
    guarded.place.serve();
    assert_eq!(guarded.moved(), [""; 0], "it is written down before it is said");
    guarded.place.commit("app", "src/more.rs", "fn more() {}\n");
    guarded.refused(&["HEAD:refs/heads/main"]);
}

/// A push to a ref that is nobody's, which waits for the server.
fn pushing(guarded: &Guarded) -> std::process::Child {
    let mut push = guarded.git_command(&["push", "origin", "HEAD:refs/heads/free"]);
    push.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// The process of the hook that asks for this repository.
fn hook_of(guarded: &Guarded) -> String {
    let home = guarded.place.path(".countersign").canonicalize().unwrap().display().to_string();
    let began = Instant::now();
    while began.elapsed() < SHUT_TIME_MAX {
        for process in std::fs::read_dir("/proc").unwrap().flatten() {
            let command = std::fs::read(process.path().join("cmdline")).unwrap_or_default();
            let command = String::from_utf8_lossy(&command).into_owned();
            if command.contains("pre-receive\0--home") && command.contains(&home) {
                return process.file_name().into_string().unwrap();
            }
        }
        std::thread::yield_now();
    }
    panic!("no hook runs");
}

#[test]
fn who_may_not_read_the_home_is_told_so_and_a_hook_whose_program_is_gone_refuses() {
    let guarded = Guarded::served();
    let token = guarded.place.path(".countersign/operator.token");
    let kept = std::fs::read(&token).unwrap();
    // As for a user whose it isn't; who runs the tests may be one who reads everything.
    std::fs::remove_file(&token).unwrap();
    let told = guarded.refused(&["HEAD:refs/heads/free"]);
    assert!(
        told.contains("refused DOOR_SHUT") && told.contains("this user may not ask the server"),
        "{told}"
    );
    std::fs::write(&token, kept).unwrap();

    let hook = guarded.place.path("atlas.git/hooks/pre-receive");
    let script = std::fs::read_to_string(&hook).unwrap();
    std::fs::write(&hook, script.replace("program='", "program='/nowhere")).unwrap();
    let told = guarded.refused(&["HEAD:refs/heads/free"]);
    assert!(told.contains("is not there, so the door stays shut"), "{told}");
    let status = guarded.place.run(&["--json", "door", "status"]).done().json();
    assert_eq!(status["standing"], "changed");
    guarded.place.run(&["door", "install"]).done();
    guarded.push(&["HEAD:refs/heads/free"]).done();
    assert_eq!(std::fs::metadata(&hook).unwrap().permissions().mode() & 0o777, 0o755);
}

#[test]
fn the_pushers_environment_does_not_say_whom_the_hook_asks() {
    let guarded = Guarded::served();
    let elsewhere = Guarded::served();
    for (name, value) in [
        ("COUNTERSIGN_ADDR", "127.0.0.1:1".to_owned()),
        ("COUNTERSIGN_HOME", elsewhere.place.path(".countersign").display().to_string()),
        ("COUNTERSIGN_AS", "No Such Member".to_owned()),
        ("COUNTERSIGN_TEAM", "bravo".to_owned()),
        ("COUNTERSIGN_CA", "/nowhere".to_owned()),
        ("COUNTERSIGN_TOKEN_FILE", "/nowhere".to_owned()),
    ] {
        let mut push = guarded.git_command(&["push", "origin", "HEAD:refs/heads/main"]);
        let pushed = Ran::of(&push.env(name, &value).output().unwrap());
        assert!(pushed.exit == 1 && pushed.err.contains("refused DIRECT_PUSH"), "{name}: {pushed:?}");
    }
    // A copy of the repository is not the guarded one, and its hook doesn't pretend so.
    let copy = std::process::Command::new("cp")
        .args(["-r", "atlas.git", "copy.git"])
        .current_dir(guarded.place.path("."))
        .status();
    assert!(copy.unwrap().success());
    let mut push = guarded.git_command(&["push", "../copy.git", "HEAD:refs/heads/free"]);
    let pushed = Ran::of(&push.output().unwrap());
    assert!(pushed.exit == 1 && pushed.err.contains("the hook was made for"), "{pushed:?}");
}
