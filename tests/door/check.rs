//! `check --commit`: the same door for a forge's CI.

use super::guarded::Guarded;
use super::place::{Ran, text};

fn checked(guarded: &Guarded, args: &[&str]) -> Ran {
    guarded.place.run_in("app", &[&["--json", "check"], args].concat())
}

#[test]
fn only_a_commit_that_a_completed_circle_holds_passes() {
    let guarded = Guarded::served();
    let by = |who: &str, args: &[&str]| {
        guarded.place.run_in("app", &[&["--as", who, "--json"], args].concat()).done().json()
    };
    let refused = |args: &[&str]| {
        let refused = checked(&guarded, args);
        assert_eq!(
            (refused.exit, refused.json()["code"].as_str()),
            (1, Some("NOT_COUNTERSIGNED")),
            "{refused:?}"
        );
        text(&refused.json()["remedy"])
    };
    let propose = |summary: &str| {
        text(&by("app", &["propose", "parser", "--commit", "HEAD", "--summary", summary])["ref"])
    };
    let first = guarded.id("HEAD");
    assert!(refused(&["--commit", &first]).contains("countersign propose NAME"));
    propose("Parser");
    assert!(refused(&["--commit", &first]).ends_with("countersign explain parser"));
    guarded.place.commit("app", "src/parser.rs", "fn parse() { todo!() }\n");
    let second = propose("Parser, again");
    for reviewer in ["sec", "arch"] {
        by(reviewer, &["show", "parser@2"]);
        by(reviewer, &["approve", &second, "--checked", "src/parser.rs:1"]);
    }
    refused(&["--commit", "HEAD"]);
    let circle = text(&by("app", &["status"])["circles"][0]["ref"]);
    for member in ["sec", "arch", "app"] {
        by(member, &["confirm", &circle]);
    }
    let held = checked(&guarded, &["--commit", "HEAD"]).done().json();
    assert_eq!((&held["ref"], &held["commit"]), (&second.clone().into(), &guarded.id("HEAD").into()));
    assert_eq!((&held["circle"], &held["target"]), (&"implement".into(), &"refs/heads/main".into()));
    checked(&guarded, &["--commit", "HEAD", "--ref", "refs/heads/main"]).done();
    refused(&["--commit", "HEAD", "--ref", "refs/heads/release/1"]);
    refused(&["--commit", &first]);
    refused(&["--commit", "HEAD~2"]);

    // Where there is no home: by a token, at an address.
    let outside = |token: &str| {
        let mut check = guarded.place.command(".", &["--json", "check", "--commit", &guarded.id("HEAD")]);
        let home = tempfile::tempdir().unwrap();
        check.current_dir(home.path()).env("COUNTERSIGN_ADDR", guarded.place.addr());
        check.env("COUNTERSIGN_TOKEN_FILE", guarded.place.path(token));
        Ran::of(&check.output().unwrap())
    };
    outside(".countersign/tokens/sec").done();
    guarded.place.run(&["member", "token", "ci"]).done();
    outside(".countersign/tokens/ci").done();
    // It may ask this and nothing else, and speaks for nobody.
    let token = guarded.place.path(".countersign/tokens/ci");
    for args in [["--as", "ci", "status"], ["--as", "nobody", "status"], ["--as", "sec", "status"]] {
        let mut other = guarded.place.command(".", &args);
        let other = Ran::of(&other.env("COUNTERSIGN_TOKEN_FILE", &token).output().unwrap());
        assert_eq!(other.exit, 5, "{args:?}: {other:?}");
    }
    guarded.place.write("ended", std::fs::read(&token).unwrap());
    guarded.place.run(&["member", "token", "ci", "--revoke"]).done();
    assert_eq!(outside("ended").exit, 5, "an ended token is a stranger's");
    guarded.place.write("stranger", format!("csgn_{}\n", "0".repeat(64)));
    assert_eq!(outside("stranger").exit, 5);
    assert_eq!(outside("nowhere").exit, 1);

    for bad in ["abc", "refs/heads/nowhere", "--all"] {
        let outcome = checked(&guarded, &["--commit", bad]);
        assert_ne!(outcome.exit, 0, "{bad}");
    }
    guarded.signal("-KILL");
    assert_eq!(checked(&guarded, &["--commit", "HEAD"]).exit, 3, "silence is no pass");
}
