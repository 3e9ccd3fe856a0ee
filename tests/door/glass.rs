//! A person's way past the door: for the refs that are named, for a while, and never in silence.

use super::guarded::Guarded;
use super::place::Ran;

fn break_glass(guarded: &Guarded, who: &str, args: &[&str]) -> Ran {
    guarded.place.run(&[&["--as", who, "--json", "door", "break-glass"], args].concat())
}

#[test]
fn a_person_opens_the_door_for_one_push_and_everybody_hears_of_it() {
    let mut guarded = Guarded::served();
    let args = ["--ref", "refs/heads/main", "--reason", "the build is broken"];
    let opened = break_glass(&guarded, "dana", &args).done().json();
    assert_eq!(opened["escalation"], "e1");
    // What it isn't for stays shut, and doesn't use it up.
    guarded.refused(&["HEAD:refs/tags/v9"]);
    guarded.refused(&["HEAD:refs/heads/main", "HEAD:refs/tags/v9"]);
    guarded.refused(&["HEAD:refs/heads/main", "HEAD:refs/countersign/parser/1"]);
    let pushed = guarded.push(&["HEAD:refs/heads/main", "HEAD:refs/heads/topic"]).done();
    assert!(pushed.err.contains("dana opened the door for refs/heads/main (e1)"), "{pushed:?}");
    assert_eq!(guarded.at("refs/heads/main"), guarded.id("HEAD"));
    assert_eq!(guarded.moved(), [""; 0], "it is written down");
    guarded.refused(&["--force", "HEAD~1:refs/heads/main"]);

    let listed = guarded.place.run(&["--as", "app", "--json", "escalations", "list"]).done().json();
    let escalation = &listed["escalations"][0];
    assert_eq!(
        (&escalation["cause"], &escalation["subject"]),
        (&"broken-glass".into(), &"refs/heads/main".into())
    );
    let told = escalation.to_string();
    assert!(told.contains("the build is broken") && told.contains("one push within 10m"), "{told}");
    guarded.place.end_server();
    guarded.place.serve();
    assert_eq!(guarded.moved(), [""; 0]);
    let back = guarded.id("HEAD~1");
    guarded.place.git("atlas.git", &["update-ref", "refs/heads/main", &back]);
    assert_eq!(guarded.moved(), [""; 0], "git may not have made that push: both ends of it are the door's");
    guarded.place.git("atlas.git", &["update-ref", "-d", "refs/heads/main"]);
    assert_eq!(guarded.moved(), ["refs/heads/main"]);
}

#[test]
fn a_lasting_opening_is_for_its_time_and_ends_with_the_server() {
    let mut guarded = Guarded::served();
    let lasting =
        ["--ref", "refs/tags/v1", "--ref", "refs/tags/v2", "--for", "1h", "--lasting", "--reason", "tags"];
    break_glass(&guarded, "dana", &lasting).done();
    guarded.push(&["HEAD:refs/tags/v1", "HEAD:refs/tags/v2"]).done();
    guarded.push(&["--force", "HEAD~1:refs/tags/v1"]).done();
    guarded.push(&["--delete", "refs/tags/v1"]).done();
    assert_eq!(guarded.moved(), [""; 0]);
    guarded.place.end_server();
    guarded.place.serve();
    guarded.refused(&["HEAD:refs/tags/v1"]);
}

#[test]
fn a_repeated_request_does_not_open_the_door_twice() {
    let guarded = Guarded::served();
    let id = "0193a5c8-0000-7000-8000-000000000001";
    let args = ["--request-id", id, "--ref", "refs/heads/main", "--reason", "once"];
    let first = break_glass(&guarded, "dana", &args).done().json();
    guarded.push(&["HEAD:refs/heads/main"]).done();
    let again = break_glass(&guarded, "dana", &args).done().json();
    assert_eq!(again["escalation"], first["escalation"]);
    guarded.refused(&["--force", "HEAD~1:refs/heads/main"]);
}

#[test]
fn nobody_but_a_person_opens_the_door_nor_without_a_reason_nor_for_what_is_not_protected() {
    let guarded = Guarded::served();
    let main = ["--ref", "refs/heads/main"];
    for (who, args, code) in [
        ("app", vec!["--reason", "I want to"], "NOT_A_PERSON"),
        ("dana", vec![], "REASON_REQUIRED"),
        ("dana", vec!["--reason", "x", "--for", "2h"], "MALFORMED"),
        ("dana", vec!["--reason", "x", "--for", "0s"], "MALFORMED"),
        ("dana", vec!["--reason", "x", "--ref", "refs/heads/free"], "MALFORMED"),
        ("dana", vec!["--reason", "x", "--ref", "refs/heads/*"], "MALFORMED"),
        ("dana", vec!["--reason", "x", "--ref", "refs/countersign/parser/1"], "MALFORMED"),
        ("dana", vec!["--reason", "x", "--ref", "main"], "MALFORMED"),
    ] {
        let refused = break_glass(&guarded, who, &[&main[..], &args].concat());
        assert_eq!((refused.exit, refused.json()["code"].as_str()), (1, Some(code)), "{args:?}: {refused:?}");
    }
    let none = break_glass(&guarded, "dana", &["--reason", "x"]);
    assert_eq!((none.exit, none.json()["code"].as_str()), (1, Some("MALFORMED")));
    guarded.refused(&["HEAD:refs/heads/main"]);
}

#[test]
fn what_lands_past_the_door_is_compared_with_what_is_open() {
    let guarded = Guarded::served();
    let propose = ["--as", "app", "--json", "propose", "parser", "--commit", "HEAD", "--summary", "Parser"];
    guarded.place.run_in("app", &propose).done();
    let revises = || {
        let status = guarded.place.run(&["--as", "app", "--json", "status"]).done().json();
        let owed = status["obligations"].as_array().expect("a list");
        owed.iter().any(|owed| owed["kind"] == "revise")
    };
    assert!(!revises());
    guarded.place.git("app", &["checkout", "-q", "--detach", "HEAD~1"]);
    guarded.place.commit("app", "src/parser.rs", "fn other() {}\n");
    break_glass(&guarded, "dana", &["--ref", "refs/heads/main", "--reason", "the build is broken"]).done();
    guarded.push(&["HEAD:refs/heads/main"]).done();
    // Git moves the ref after the hook has spoken; the server looks by itself until it has.
    assert!((0..2_000).any(|_| revises()));
    let explained = guarded.place.run(&["--as", "app", "explain", "parser"]).done();
    assert!(explained.out.contains("does not merge with refs/heads/main: src/parser.rs"), "{explained:?}");
}
