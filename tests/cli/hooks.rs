//! Hooks of agents' harnesses: what they answer, whatever the server does, and the settings that run them.

use std::io::Write;
use std::net::TcpListener;
use std::process::Stdio;

use serde_json::{Value, json};

use super::place::{Place, Process, Ran, text};

/// Runs the hook as the harness does: in its clone, its words on standard input.
fn hook(place: &Place, clone: &str, occasion: &str, said: &Value, more: &[&str]) -> Ran {
    let patience: &[&str] = if more.contains(&"--patience") { &[] } else { &["--patience", "20s"] };
    let args = [&["hook", "claude-code", occasion], patience, more].concat();
    let mut hook = place.command(clone, &args);
    // Everything comes from the clone, as in a shell of the agent's.
    hook.env_remove("COUNTERSIGN_HOME").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut hook = hook.spawn().expect("the program");
    let mut input = hook.stdin.take().expect("its input is piped");
    input.write_all(said.to_string().as_bytes()).expect("it reads");
    drop(input);
    Ran::of(&hook.wait_with_output().expect("it ends"))
}

fn stop(kept_already: bool) -> Value {
    json!({ "session_id": "s", "hook_event_name": "Stop", "stop_hook_active": kept_already })
}

/// A served team, and a clone of app's and of sec's.
fn cloned() -> Place {
    let place = Place::served();
    for member in ["app", "sec"] {
        place.git(".", &["init", "-q", member]);
        place.run(&["member", "token", member, "--into", member]).done();
    }
    place
}

/// A listener of a member's, that is armed.
fn listener(place: &Place, member: &str) -> Process {
    let mut listen = place.command(member, &["listen"]);
    let listening = listen.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let listener = Process(listening.expect("the program"));
    let armed = |roster: &Value| {
        let members = roster["members"].as_array().expect("members");
        members.iter().any(|entry| entry["name"] == member && entry["presence"] == "listening")
    };
    while !armed(&place.run(&["--json", "--as", "dana", "roster"]).done().json()) {}
    listener
}

#[test]
fn whoever_owes_is_kept_once_and_whoever_waits_may_rest() {
    let mut place = cloned();
    let kept = hook(&place, "app", "stop", &stop(false), &[]).done().json();
    assert_eq!(kept["decision"], "block");
    let reason = text(&kept["reason"]);
    assert!(reason.starts_with("You are app of the team atlas, and owe:\n  deliver parser"), "{reason}");
    assert!(reason.contains(": countersign propose parser"), "{reason}");

    let let_go = hook(&place, "app", "stop", &stop(true), &[]).done().json();
    assert_eq!(let_go, json!({ "systemMessage": "countersign: app still owes 1 thing, and was told so" }));

    let waits = hook(&place, "sec", "stop", &stop(false), &[]).done().json();
    let message = "countersign: sec owes nothing and waits for app in implement";
    assert_eq!(waits, json!({ "systemMessage": format!("{message}; nothing wakes it: countersign listen") }));
    let armed = listener(&place, "sec");
    let waits = hook(&place, "sec", "stop", &stop(false), &[]).done().json();
    assert_eq!(waits, json!({ "systemMessage": message }));
    drop(armed);

    let told = hook(&place, "app", "prompt", &json!({ "prompt": "hello" }), &[]).done().json();
    assert_eq!(told["hookSpecificOutput"]["hookEventName"], "UserPromptSubmit");
    assert!(text(&told["hookSpecificOutput"]["additionalContext"]).contains("deliver parser"), "{told}");
    assert_eq!(hook(&place, "sec", "prompt", &json!({}), &[]).done().out, "");

    let began = hook(&place, "sec", "session-start", &json!({ "source": "compact" }), &[]).done().json();
    assert_eq!(began["hookSpecificOutput"]["hookEventName"], "SessionStart");
    assert!(text(&began["hookSpecificOutput"]["additionalContext"]).contains("sec"), "{began}");

    // The server away, and one that takes the connection and says nothing.
    place.end_server();
    let away = hook(&place, "app", "stop", &stop(false), &[]).done().json();
    assert!(text(&away["systemMessage"]).ends_with("; the turn may end"), "{away}");
    let mute = TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = mute.local_addr().unwrap().to_string();
    let args = ["--addr", addr.as_str(), "hook", "claude-code", "stop"];
    let mut asked = place.command("app", &args);
    let output = asked.stdin(Stdio::null()).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "also of words that are none");
    let late = hook(&place, "app", "stop", &stop(false), &["--patience", "50ms", "--addr", &addr]).done();
    let late = text(&late.json()["systemMessage"]);
    assert_eq!(late, "countersign: the server did not answer within 50ms; the turn may end");
    // A harness that never says all that it has to say.
    let mut asked = place.command("app", &["hook", "claude-code", "stop", "--patience", "50ms"]);
    let mut asked = asked.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let held = asked.stdin.take();
    let mute = Ran::of(&asked.wait_with_output().unwrap()).done().json();
    let said = "countersign: claude-code said what can't be read: nothing within 50ms";
    assert_eq!(mute, json!({ "systemMessage": said }));
    drop(held);
}

#[test]
fn a_hook_that_cannot_be_run_orders_nothing() {
    let place = cloned();
    // An exit of 2 would keep the agent for ever.
    for args in
        [&["hook", "claude-code", "stopp"] as &[&str], &["--as", "A B", "hook", "claude-code", "stop"]]
    {
        let ran = place.run_in("app", args);
        assert_eq!((ran.exit, ran.out.as_str()), (1, ""), "{ran:?}");
    }
    assert_eq!(place.run_in("app", &["status", "--nonsense"]).exit, 2);
    // A folder in which nobody is a member.
    place.git(".", &["init", "-q", "other"]);
    let nobody = hook(&place, "other", "stop", &stop(false), &[]).done();
    assert_eq!((nobody.out.as_str(), nobody.err.as_str()), ("", ""));
    // The folder that the harness names is the one that counts.
    let named = json!({ "cwd": place.path("app"), "stop_hook_active": false });
    assert_eq!(hook(&place, "other", "stop", &named, &[]).done().json()["decision"], "block");
}

#[test]
fn settings_get_the_hooks_and_lose_them_and_the_rest_stays() {
    let place = cloned();
    let before = "{\n  \"model\": \"opus\",\n  \"hooks\": {\n    \"Stop\": [\n      { \"hooks\": [{ \"type\": \"command\", \"command\": \"say done\" }] }\n    ]\n  }\n}\n";
    place.write("app/.claude/settings.local.json", before);
    let settings = || std::fs::read_to_string(place.path("app/.claude/settings.local.json")).unwrap();

    let shown = place.run_in("app", &["--json", "integrate", "claude-code", "--dry-run"]).done().json();
    assert_eq!((shown["changed"].as_bool(), settings()), (Some(false), before.to_owned()));
    assert!(text(&shown["diff"]).contains("\n+"), "{shown}");

    let put = place.run_in("app", &["--json", "--as", "app", "integrate", "claude-code"]).done().json();
    assert_eq!(put["changed"], true);
    let read: Value = serde_json::from_str(&settings()).unwrap();
    let groups = read["hooks"]["Stop"].as_array().unwrap();
    assert_eq!((groups.len(), &groups[0]["hooks"][0]["command"]), (2, &json!("say done")));

    // The line itself, run as the harness runs it: by a shell.
    let line = text(&groups[1]["hooks"][0]["command"]);
    let run = format!("printf '{{\"stop_hook_active\":true}}' | {line} --patience 20s");
    let ran = std::process::Command::new("sh").args(["-c", &run]).current_dir(place.path("app")).output();
    assert!(Ran::of(&ran.unwrap()).done().out.contains("still owes"));

    let again = place.run_in("app", &["--json", "--as", "app", "integrate", "claude-code"]).done().json();
    assert_eq!((again["changed"].as_bool(), text(&again["diff"])), (Some(false), String::new()));
    place.run_in("app", &["integrate", "claude-code", "--remove"]).done();
    assert_eq!(settings(), before);

    place.write("app/.claude/settings.local.json", "{ \"hooks\": 3 }");
    let refused = place.run_in("app", &["--json", "integrate", "claude-code"]);
    assert_eq!((refused.exit, text(&refused.json()["code"])), (1, "SETTINGS_UNREADABLE".to_owned()));
    assert_eq!(settings(), "{ \"hooks\": 3 }");
}

#[test]
fn settings_are_shown_before_they_change_and_stay_where_their_link_leads() {
    let place = cloned();
    let kept = place.path("kept.json");
    std::fs::create_dir_all(place.path("app/.claude")).unwrap();
    std::os::unix::fs::symlink("../../kept.json", place.path("app/.claude/settings.local.json")).unwrap();
    // Nobody can be shown what would change.
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let unseen = place.command("app", &["integrate", "claude-code"]).stdout(full).output().unwrap();
    assert_eq!((unseen.status.code(), kept.exists()), (Some(1), false), "{unseen:?}");

    let flags = ["--as", "app", "--team", "atlas", "--addr", "http://127.0.0.1:1", "--ca", "ca.pem"];
    let put = place.run_in("app", &[&flags[..], &["integrate", "claude-code"]].concat()).done();
    assert!(put.out.contains("\n+") && put.out.contains("its hooks are in"), "{}", put.out);
    let link = std::fs::symlink_metadata(place.path("app/.claude/settings.local.json")).unwrap();
    assert!(link.is_symlink(), "it is a link still");
    let read: Value = serde_json::from_str(&std::fs::read_to_string(kept).unwrap()).unwrap();
    let line = text(&read["hooks"]["Stop"][0]["hooks"][0]["command"]);
    let ca = place.path("app/ca.pem").display().to_string();
    let asks = format!(" --as app --team atlas --addr 'http://127.0.0.1:1' --ca {ca} hook claude-code stop");
    assert!(line.ends_with(&asks), "{line}");
}
