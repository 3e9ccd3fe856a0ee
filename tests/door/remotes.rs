//! Staging from clones elsewhere: over http with a password, over ssh, by the clone's own remote.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use super::guarded::Guarded;
use super::place::{Process, Ran, text};

/// git's own http-backend, on loopback.
struct Forge {
    _process: Process,
    url: String,
}

impl Forge {
    fn of(guarded: &Guarded) -> Self {
        guarded.place.git("atlas.git", &["config", "http.receivepack", "true"]);
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/door/forge.py");
        let mut forge = Command::new("python3");
        forge.arg(script).arg(guarded.place.path(".")).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut process = forge.spawn().expect("python3");
        let mut port = String::new();
        let out = process.stdout.take().expect("its output is piped");
        BufReader::new(out).read_line(&mut port).expect("its line");
        let url = format!("http://app:secret@127.0.0.1:{}/atlas.git", port.trim());
        Self { _process: Process(process), url }
    }
}

/// Proposes the clone's commit; what came of it.
fn propose(guarded: &Guarded, more: &[&str], ssh: Option<&str>) -> Ran {
    let args = ["--json", "--as", "app", "propose", "parser", "--commit", "HEAD", "--summary", "First"];
    let mut propose = guarded.place.command("app", &[&args[..], more].concat());
    if let Some(ssh) = ssh {
        propose.env("GIT_SSH", guarded.place.path(ssh)).env("GIT_SSH_VARIANT", "simple");
    }
    Ran::of(&propose.stdin(Stdio::null()).output().expect("the program"))
}

/// That this was proposed, and is staged and pinned as the clone has it.
fn is_proposed(guarded: &Guarded, ran: Ran) {
    let head = guarded.id("HEAD");
    assert_eq!(text(&ran.done().json()["digest"]), head);
    assert_eq!(guarded.at(&format!("refs/countersign/staging/{head}")), head);
}

#[test]
fn a_commit_is_staged_over_http_and_a_direct_push_there_meets_the_door() {
    let guarded = Guarded::served();
    let forge = Forge::of(&guarded);
    guarded.place.git("app", &["remote", "add", "forge", &forge.url]);
    let pushed = guarded.git_command(&["push", "forge", "HEAD:refs/heads/main"]).output().expect("git");
    let pushed = Ran::of(&pushed);
    assert!(pushed.exit == 1 && pushed.err.contains("refused DIRECT_PUSH"), "{pushed:?}");
    is_proposed(&guarded, propose(&guarded, &["--remote", "forge"], None));
    assert_eq!(guarded.at("refs/heads/main"), guarded.id("HEAD~1"));
}

#[test]
fn a_commit_is_staged_over_ssh_by_the_clones_own_remote() {
    let guarded = Guarded::served();
    guarded.place.write("ssh", "#!/bin/sh\nshift\nexec env -i PATH=\"$PATH\" sh -c \"$*\"\n");
    let ssh = guarded.place.path("ssh");
    std::fs::set_permissions(&ssh, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("a mode");
    let url = format!("ssh://forge.example.org{}", guarded.place.path("atlas.git").display());
    guarded.place.git("app", &["remote", "add", "forge", &url]);
    is_proposed(&guarded, propose(&guarded, &["--remote", "forge"], Some("ssh")));
}

#[test]
fn a_path_that_is_not_here_gives_way_to_the_clones_own_remote() {
    let mut guarded = Guarded::unserved();
    let charter = std::fs::read_to_string(guarded.place.path("charter.toml")).expect("the charter");
    guarded.place.serve();
    let elsewhere =
        charter.replace("path = \"atlas.git\"", "path = \"atlas.git\"\nurl = \"/not/here/atlas.git\"");
    guarded.place.write("charter.toml", elsewhere);
    let adopt = ["--as", "dana", "charter", "adopt", "charter.toml", "--reason", "clones are elsewhere"];
    guarded.place.run(&adopt).done();
    is_proposed(&guarded, propose(&guarded, &[], None));
}

#[test]
fn a_remote_that_the_clone_does_not_have_is_a_mistake_and_no_path() {
    let guarded = Guarded::served();
    let path = guarded.place.path("atlas.git").display().to_string();
    for name in ["nowhere", "--upload-pack=id", path.as_str()] {
        let ran = propose(&guarded, &[&format!("--remote={name}")], None);
        assert_eq!((ran.exit, text(&ran.json()["code"])), (2, "USAGE".to_owned()), "{ran:?}");
    }
    assert_eq!(guarded.at(&format!("refs/countersign/staging/{}", guarded.id("HEAD"))), "");
}
