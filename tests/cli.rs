//! The real program, as its callers have it: exit codes, JSON, screens, files and their modes.

#[path = "cli/amounts.rs"]
mod amounts;
#[path = "cli/charters.rs"]
mod charters;
#[path = "cli/home.rs"]
mod home;
#[path = "support/place.rs"]
mod place;
#[path = "cli/room.rs"]
mod room;
#[path = "cli/rules.rs"]
mod rules;

use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use place::{PROGRAM, Place, Ran, charter, mode, text};
use regex::Regex;

/// What differs from run to run, named by what it is.
fn redacted(text: &str) -> String {
    let rules = [
        (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "TIME"),
        (r"\b[0-9a-f]{64}\b", "DIGEST64"),
        (r"----- [0-9a-f]{16}\n", "----- NONCE\n"),
        (r"\b[0-9a-f]{40}\b", "DIGEST40"),
        (r":[0-9a-f]{12}\b", ":DIGEST12"),
        (r"\b\d+ (s|min)\b", "AGO"),
        (r"/\S*/\.tmp[^/\s]*", "FOLDER"),
        (r"127\.0\.0\.1:\d+", "ADDR"),
    ];
    let mut out = text.to_owned();
    for (pattern, word) in rules {
        out = Regex::new(pattern).expect("it is a pattern").replace_all(&out, word).into_owned();
    }
    out
}

/// A screen: what was asked, how it exited, what it showed.
fn screen(place: &Place, args: &[&str]) -> String {
    let ran = place.run(args);
    let shown =
        redacted(&format!("$ countersign {}\n{}{}exit {}\n", args.join(" "), ran.out, ran.err, ran.exit));
    // What is padded to the width of a time or an age is not what is looked at.
    Regex::new(r" {3,}").expect("it is a pattern").replace_all(&shown, "  ").into_owned()
}

fn code(ran: &Ran) -> String {
    text(&ran.json()["code"])
}

// ---- screens and JSON ----

#[test]
fn screens_of_a_review() {
    let place = Place::served();
    let mut all = String::new();
    let mut show = |args: &[&str]| {
        all.push_str(&screen(&place, args));
        all.push('\n');
    };
    show(&["--as", "app", "status"]);
    let first = place.propose("fn lex() {}\n");
    show(&["--as", "sec", "show", "parser"]);
    show(&["--as", "sec", "diff", "parser@1"]);
    show(&["--as", "sec", "object", &first, "Overflows on a 2 GiB input", "--at", "src/lexer.rs:1"]);
    show(&["--as", "sec", "note", &first, "lex could say more", "--at", "src/lexer.rs:1"]);
    show(&["--as", "arch", "approve", &first]);
    place.write("work/src/lexer.rs", "fn lex() -> u64 { 0 }\n");
    show(&["--as", "app", "propose", "parser", "--path", "work", "--summary", "Wider"]);
    show(&["--as", "app", "objections", "parser"]);
    show(&[
        "--as",
        "app",
        "propose",
        "parser",
        "--path",
        "work",
        "--summary",
        "Wider",
        "--answer",
        "o1=u64 now",
    ]);
    show(&["--as", "app", "status"]);
    show(&["--as", "app", "explain", "parser"]);
    show(&["--as", "arch", "escalate", "parser", "who is right?"]);
    show(&["--as", "dana", "escalations", "list"]);
    show(&["--as", "dana", "escalations", "answer", "e1", "--decide", "dismiss", "--reason", "sec is"]);
    show(&["--as", "dana", "overrule", "o1", "--reason", "we ship it"]);
    show(&["--as", "app", "withdraw", "parser", "--reason", "one more look"]);
    show(&["--as", "app", "confirm", "implement:000000000000"]);
    show(&["--as", "app", "graph"]);
    show(&["--as", "app", "log", "--from", "4", "--limit", "2"]);
    show(&["verify"]);
    insta::assert_snapshot!(all);
}

#[test]
fn json_of_a_review() {
    let place = Place::served();
    let first = place.propose("fn lex() {}\n");
    let mut all = String::new();
    let mut show = |args: &[&str]| {
        let ran = place.run(&[&["--json"], args].concat());
        let json = serde_json::to_string_pretty(&ran.json()).unwrap();
        all.push_str(&redacted(&format!(
            "$ countersign --json {}\n{json}\nexit {}\n\n",
            args.join(" "),
            ran.exit
        )));
    };
    show(&["--as", "sec", "show", "parser@1"]);
    show(&["--as", "sec", "object", &first, "Overflows", "--failing-test", "cargo test", "--exit", "101"]);
    show(&["--as", "app", "objections", "parser"]);
    show(&["--as", "app", "status"]);
    show(&["--as", "app", "explain", "parser"]);
    show(&["--as", "app", "approve", &first]);
    show(&["--as", "app", "confirm", "implement:000000000000"]);
    show(&["--as", "app", "withdraw", "parser", "--reason", "x"]);
    insta::assert_snapshot!(all);
}

#[test]
fn help_names_every_command() {
    let place = Place::empty();
    let help = place.run(&["help"]).done();
    for command in ["propose", "approve", "confirm", "status", "member", "escalations", "verify"] {
        assert!(help.out.contains(&format!("  {command} ")), "{command}: {}", help.out);
        let own = place.run(&["help", command]).done();
        assert!(own.out.lines().all(|line| line.chars().count() <= 100), "{}", own.out);
    }
    let script = place.run(&["completions", "bash"]).done();
    assert!(script.out.contains("countersign"));
    place.run(&["man", "pages"]).done();
    assert!(place.path("pages/countersign-escalations-answer.1").exists());
}

// ---- exit codes ----

#[test]
fn each_way_to_end_has_its_exit_code() {
    let place = Place::served();
    let exit = |args: &[&str]| place.run(args).exit;
    assert_eq!(exit(&["--as", "app", "status"]), 0);
    assert_eq!(exit(&["--as", "app", "show", "nothing"]), 1);
    assert_eq!(exit(&["--as", "app", "show"]), 2);
    assert_eq!(exit(&["--as", "app", "--addr", "127.0.0.1:1", "status"]), 3);
    assert_eq!(exit(&["--as", "stranger", "status"]), 5);
    assert_eq!(exit(&["status"]), 5);

    let unreachable = place.run(&["--json", "--as", "app", "--addr", "127.0.0.1:1", "status"]);
    assert_eq!(code(&unreachable), "SERVER_UNREACHABLE");
    assert!(text(&unreachable.json()["remedy"]).ends_with(": countersign serve --listen 127.0.0.1:1"));
    let stranger = place.run(&["--json", "--as", "stranger", "status"]);
    assert_eq!((code(&stranger), &stranger.json()["ok"]), ("UNAUTHENTICATED".to_owned(), &false.into()));

    assert!(text(&stranger.json()["message"]).ends_with("there are tokens for app, arch, dana and sec"));

    // Whatever goes wrong, who asked for JSON gets it, with a code.
    for (args, exit, code_of) in [
        (&["approve"] as &[&str], 2, "USAGE"),
        (&["init", "--charter", "none.toml"], 2, "USAGE"),
        (&["charter", "check", "none.toml"], 2, "USAGE"),
        (&["team", "add", "--charter", "none.toml"], 2, "USAGE"),
        (&["member", "token", "stranger"], 1, "UNKNOWN_MEMBER"),
        (&["demo", "--into", "."], 1, "FOLDER_NOT_EMPTY"),
    ] {
        let told = place.run(&[&["--json"], args].concat());
        assert_eq!((told.exit, code(&told)), (exit, code_of.to_owned()), "{args:?}: {told:?}");
    }
    for words in [&["completions", "bash"] as &[&str], &["man"]] {
        assert_eq!(place.run(&[&["--json"], words].concat()).done().json()["ok"], true);
    }

    let nowhere = Place::empty();
    let nobody = nowhere.run(&["--json", "--as", "app", "status"]);
    assert_eq!((nobody.exit, code(&nobody)), (3, "SERVER_UNREACHABLE".to_owned()));
    assert_eq!(code(&nowhere.run(&["--json", "verify"])), "NO_HOME");
}

#[test]
fn a_token_of_another_speaks_for_nobody() {
    let place = Place::served();
    let mut command = place.command(".", &["--json", "--as", "sec", "status"]);
    let refused =
        Ran::of(&command.env("COUNTERSIGN_TOKEN_FILE", ".countersign/tokens/app").output().unwrap());
    assert_eq!((refused.exit, code(&refused)), (5, "UNAUTHENTICATED".to_owned()));
    assert_eq!(refused.json()["message"], "the token speaks for app of atlas, not for sec");
    let mut command = place.command(".", &["--json", "--as", "app", "status"]);
    Ran::of(&command.env("COUNTERSIGN_TOKEN_FILE", ".countersign/tokens/app").output().unwrap()).done();
}

/// Whether what a client sent holds a whole HEADERS frame, behind the preface of 24 bytes.
fn holds_headers(sent: &[u8]) -> bool {
    let mut rest = sent.get(24..).unwrap_or_default();
    while let [a, b, c, kind, _, _, _, _, _, after @ ..] = rest {
        let length = usize::from(*a) << 16 | usize::from(*b) << 8 | usize::from(*c);
        if after.len() < length {
            return false;
        }
        if *kind == 1 {
            return true;
        }
        rest = &after[length..];
    }
    false
}

#[test]
fn a_server_that_dies_in_the_middle_leaves_the_outcome_unknown() {
    let place = Place::served();
    // Takes a connection, reads the call, and goes away.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = listener.local_addr().unwrap().to_string();
    let dying = std::thread::spawn(move || {
        for _ in 0..2 {
            let (mut stream, _) = listener.accept().unwrap();
            // An empty SETTINGS frame, so that the connection stands.
            stream.write_all(&[0, 0, 0, 4, 0, 0, 0, 0, 0]).unwrap();
            let (mut read, mut piece) = (Vec::new(), [0; 4096]);
            // The preface, and then all frames up to the call's headers.
            while !holds_headers(&read) {
                match stream.read(&mut piece).unwrap() {
                    0 => break,
                    count => read.extend_from_slice(&piece[..count]),
                }
            }
        }
    });
    let unknown =
        place.run(&["--json", "--as", "app", "--addr", &addr, "withdraw", "parser", "--reason", "x"]);
    assert_eq!((unknown.exit, code(&unknown)), (7, "OUTCOME_UNKNOWN".to_owned()), "{unknown:?}");
    let request_id = text(&unknown.json()["request_id"]);
    assert!(text(&unknown.json()["remedy"]).contains(&request_id));
    // A question that got no answer changed nothing: that is a server that can't be reached.
    let question = place.run(&["--json", "--as", "app", "--addr", &addr, "status"]);
    assert_eq!((question.exit, code(&question)), (3, "SERVER_UNREACHABLE".to_owned()));
    dying.join().unwrap();
}

#[test]
fn what_is_not_understood_is_refused_and_never_ignored() {
    let place = Place::served();
    let reference = place.propose("fn lex() {}\n");
    place.run(&["--as", "sec", "show", "parser"]).done();
    for args in [
        &["--as", "sec", "approve", &reference, "APPROVE"] as &[&str],
        &["--as", "sec", "approve", &reference, "--force"],
        &["--as", "sec", "approve", &reference, "--text-file", "x"],
        &["--as", "sec", "approve", &reference, "--output", "@x"],
        &["--as", "sec", "approve", &reference, "--ran", "true", "--output", "run.txt"],
        &["--as", "sec", "object", &reference, "one", "two"],
        &["--as", "sec", "object", &reference, "one", "--output", "@run.txt"],
        &["--as", "sec", "object", &reference, "one", "--text-file", "-"],
        &["--as", "sec", "status", "--request-id", "0193a5c8-0000-7000-8000-000000000000"],
        &["--as", "sec", "approve", &reference, "--request-id", "mine"],
        &["--as", "app", "propose", "parser"],
        &["--as", "app", "propose", "parser", "--path", "work", "--commit", "HEAD"],
        &["--as", "app", "propose", "parser", "--path", "work", "--answer", "o1"],
        &["--as", "app", "propose", "parser", "--path", "work", "--answer", "o1=a", "--answer", "o1=b"],
        &["--as", "App", "status"],
        &["listen-to-me"],
    ] {
        let refused = place.run(args);
        assert_eq!((refused.exit, refused.out.as_str()), (2, ""), "{args:?}: {refused:?}");
        assert!(!refused.err.is_empty(), "{args:?}");
    }
    let status = place.run(&["--as", "sec", "--json", "status"]).json();
    assert_eq!(status["proposals"][0]["approvals"], serde_json::json!([]));
}

#[test]
fn what_a_code_speaks_of_is_the_servers_to_refuse() {
    let place = Place::served();
    let reference = place.propose("fn lex() {}\n");
    place.run(&["--as", "sec", "show", "parser"]).done();
    for (args, expected) in [
        (&["--as", "sec", "object", &reference] as &[&str], "EMPTY_TEXT"),
        (&["--as", "app", "withdraw", "parser"], "REASON_REQUIRED"),
        (&["--as", "sec", "resolve", "o1", "--mistaken"], "UNKNOWN_SUBJECT"),
        (&["--as", "sec", "approve", "parser@1"], "MALFORMED"),
        (&["--as", "app", "propose", "No Name", "--path", "work"], "MALFORMED"),
        (&["--as", "app", "escalate", "parser"], "EMPTY_TEXT"),
    ] {
        let refused = place.run(&[&["--json"], args].concat());
        assert_eq!((refused.exit, code(&refused)), (1, expected.to_owned()), "{args:?}");
        let json = refused.json();
        assert!(!text(&json["remedy"]).is_empty() && json["violations"][0]["code"] == expected, "{json}");
    }
}

// ---- texts ----

#[test]
fn a_text_is_stored_byte_for_byte_or_refused_with_the_limit() {
    const LIMIT: usize = 65_536;
    let place = Place::served();
    let reference = place.propose("fn lex() {}\n");
    place.run(&["--as", "sec", "show", "parser"]).done();
    let texts = [
        "`rm -rf $HOME` \"quoted\" 'too' \\ \r\n\r\nlast line without an end".to_owned(),
        "\u{feff}😀 שלום \u{202e}over\u{202c} \u{1b}[2J \u{9b} \u{200b}\u{e0041}\n".to_owned(),
        "é".repeat(LIMIT / 2 - 1) + "x",
        "x".repeat(LIMIT),
    ];
    for given in &texts {
        let noted = place
            .run_with(given.as_bytes(), &["--as", "sec", "--json", "note", &reference, "--text-file", "-"]);
        assert_eq!(noted.done().json()["stored"]["text"], given.len());
    }
    let too_long = "x".repeat(LIMIT + 1);
    let refused = place
        .run_with(too_long.as_bytes(), &["--as", "sec", "--json", "note", &reference, "--text-file", "-"]);
    assert_eq!((refused.exit, code(&refused)), (1, "TEXT_TOO_LARGE".to_owned()));
    let facts = &refused.json()["facts"];
    assert_eq!((&facts["bytes"], &facts["limit"]), (&(LIMIT + 1).into(), &LIMIT.into()));

    let read = place.run(&["--as", "app", "--json", "objections", "parser"]).done().json();
    let kept: Vec<String> = read["objections"].as_array().unwrap().iter().map(|o| text(&o["text"])).collect();
    assert_eq!(kept, texts);

    let huge = vec![b'x'; 8 << 20];
    let refused = place.run_with(&huge, &["--as", "sec", "--json", "note", &reference, "--text-file", "-"]);
    assert_eq!((refused.exit, code(&refused)), (1, "TEXT_TOO_LARGE".to_owned()));
    let refused = place.run_with(b"\xff", &["--as", "sec", "note", &reference, "--text-file", "-"]);
    assert_eq!(refused.exit, 2, "{refused:?}");
}

#[test]
fn hostile_texts_are_inert_on_every_screen() {
    const HOSTILE: &str = "\u{1b}]52;c;eA==\u{7}\u{9b}2J\u{202e}\u{200b}\u{e0041}\u{2028}";
    let place = Place::served();
    let work = format!("fn lex() {{}} // {HOSTILE}\n");
    place.write("work/src/lexer.rs", &work);
    place.write("work/na\u{202e}me\u{1b}.rs", &work);
    let proposed =
        place.run(&["--as", "app", "--json", "propose", "parser", "--path", "work", "--summary", HOSTILE]);
    let reference = text(&proposed.done().json()["ref"]);
    place.write("run.txt", HOSTILE);
    place.run(&["--as", "sec", "show", "parser"]).done();
    let objected =
        &["--as", "sec", "object", &reference, HOSTILE, "--failing-test", HOSTILE, "--output", "@run.txt"];
    let screens = [
        place.run(objected).done(),
        place.run(&["--as", "sec", "show", "parser"]).done(),
        place.run(&["--as", "sec", "diff", "parser"]).done(),
        place.run(&["--as", "app", "objections", "parser"]).done(),
        place.run(&["--as", "app", "status"]).done(),
        place.run(&["--as", "app", "explain", "parser"]).done(),
        place.run(&["--as", "app", "log"]).done(),
        place.run(&["--as", "app", "escalate", "parser", HOSTILE]).done(),
        place.run(&["--as", "dana", "escalations", "list"]).done(),
        place.run(&["--as", "app", "show", &format!("parser{HOSTILE}")]),
        place.run(&["--as", "sec", "approve", &reference, "--checked", HOSTILE]),
        place.run(&["--as", "app", "propose", "parser", "--path", HOSTILE]),
    ];
    for ran in &screens {
        let shown = format!("{}{}", ran.out, ran.err);
        let obeyed =
            shown.chars().find(|c| "\u{1b}\u{7}\u{9b}\u{202e}\u{200b}\u{e0041}\u{2028}".contains(*c));
        assert_eq!(obeyed, None, "{ran:?}");
    }
    let printed = place.run(&["--as", "app", "--json", "objections", "parser"]).done().out;
    assert!(!printed.contains(['\u{9b}', '\u{202e}', '\u{200b}', '\u{e0041}']), "{printed:?}");
    // What is compared is not in vain: the texts are there, and JSON has them as they were given.
    assert!(screens[3].out.contains("\\u{202e}"), "{:?}", screens[3]);
    let json = place.run(&["--as", "app", "--json", "objections", "parser"]).done().json();
    assert_eq!(text(&json["objections"][0]["text"]), HOSTILE);
    assert_eq!(text(&json["objections"][0]["failing_test"]["output"]), HOSTILE);
}

// ---- writes ----

#[test]
fn a_write_that_is_asked_again_has_one_effect() {
    let place = Place::served();
    let reference = place.propose("fn lex() {}\n");
    place.run(&["--as", "sec", "show", "parser"]).done();
    let id = "0193a5c8-0000-7000-8000-00000000000a";
    let object =
        |words: &str| place.run(&["--as", "sec", "--json", "object", &reference, words, "--request-id", id]);
    let first = object("Overflows").done().json();
    assert_eq!(object("Overflows").done().json()["objection"], first["objection"]);
    let reused = object("Something else");
    assert_eq!((reused.exit, code(&reused)), (1, "REQUEST_ID_REUSED".to_owned()));
    let read = place.run(&["--as", "app", "--json", "objections", "parser"]).json();
    assert_eq!(read["objections"].as_array().unwrap().len(), 1);
}

#[test]
fn a_propose_that_is_asked_again_is_the_same_propose_whatever_was_told_since() {
    let place = Place::served();
    place.write("work/src/lexer.rs", b"fn lex() {}\n");
    let id = "0193a5c8-0000-7000-8000-00000000000b";
    let propose = || {
        let args = ["--as", "app", "--json", "propose", "parser", "--path", "work", "--request-id", id];
        place.run(&args).done().json()
    };
    let first = propose();
    // Its answer told this folder of version 1; the request is the one that followed none.
    assert_eq!(propose()["ref"], first["ref"]);
    place.run(&["--as", "app", "show", "parser"]).done();
    assert_eq!(propose()["ref"], first["ref"]);
}

#[test]
fn evidence_keeps_its_commands_apart() {
    let place = Place::served();
    let reference = place.propose("fn lex() {}\n");
    place.run(&["--as", "sec", "show", "parser"]).done();
    place.write("one.txt", b"ok\xff\n");
    let approve = ["--as", "sec", "--json", "approve", &reference, "--ran", "cargo test", "--exit", "0"];
    let more =
        ["--output", "@one.txt", "--ran", "cargo bench", "--exit", "-1", "--checked", "src/lexer.rs:1"];
    place.run(&[&approve as &[&str], &more].concat()).done();
    let vote = &place.run(&["--as", "app", "--json", "show", "parser"]).json()["votes"][0];
    let expected = serde_json::json!([
        { "command": "cargo test", "exit": 0, "output": "ok\\xff\n" },
        { "command": "cargo bench", "exit": -1, "output": null },
    ]);
    assert_eq!((&vote["ran"], &vote["checked"]), (&expected, &serde_json::json!(["src/lexer.rs:1"])));
}

#[test]
fn a_required_check_is_reported_and_shown_with_who_says_so() {
    let mut place = Place::with(&charter("[checks]\nrequired = [\"ci\"]"));
    place.serve();
    let reference = place.propose("fn lex() {}\n");
    place.write("run.txt", b"2 passed\n");
    let report = |more: &[&str]| {
        place.run(&[&["--as", "app", "--json", "check", "report", &reference] as &[&str], more].concat())
    };
    let unknown = report(&["c", "--exit", "0"]);
    assert_eq!((unknown.exit, text(&unknown.json()["code"])), (1, "UNKNOWN_CHECK".to_owned()), "{unknown:?}");
    assert_eq!(report(&["ci"]).done().json()["status"], "skipped");
    let told = report(&["ci", "--exit", "0", "--output", "@run.txt"]).done().json();
    assert_eq!(
        (&told["status"], &told["check"], &told["stored"]["output"]),
        (&serde_json::json!("passed"), &serde_json::json!("ci"), &serde_json::json!(9),)
    );
    let check = &place.run(&["--as", "sec", "--json", "show", "parser"]).done().json()["checks"][0];
    let known = ["name", "status", "by", "exit", "output"].map(|key| check[key].clone());
    assert_eq!(serde_json::json!(known), serde_json::json!(["ci", "passed", "app", 0, "2 passed\n"]));
    let shown = place.run(&["--as", "sec", "show", "parser"]).done().out;
    assert!(shown.contains("check ci: passed, reported by app, exit 0"), "{shown}");
}

#[test]
fn a_version_follows_what_this_clone_was_told() {
    let mut place = Place::with_repository();
    place.serve();
    for clone in ["one", "two"] {
        place.git(".", &["clone", "-q", "atlas.git", clone]);
        place.run(&["member", "token", "app", "--keep", "--into", clone]).done();
        place.commit(clone, "src/lexer.rs", &format!("fn {clone}() {{}}\n"));
    }
    let propose = |clone: &str, more: &[&str]| {
        place.run_in(
            clone,
            &[&["--json", "propose", "parser", "--commit", "HEAD", "--summary", "x"], more].concat(),
        )
    };
    let first = propose("one", &[]).done().json();
    assert_eq!(
        (&first["version"], &first["digest"]),
        (&1.into(), &place.git("one", &["rev-parse", "HEAD"]).into())
    );

    // The other clone was told of nothing, and a refusal tells it nothing either.
    for _ in 0..2 {
        let conflict = propose("two", &[]);
        assert_eq!((conflict.exit, code(&conflict)), (1, "VERSION_CONFLICT".to_owned()));
        assert_eq!(conflict.json()["facts"]["current"], 1);
    }
    place.run_in("two", &["show", "parser@1"]).done();
    assert_eq!(propose("two", &[]).done().json()["version"], 2);

    // What the first was told is its own propose; an old version that it looks at is not the current one.
    place.commit("one", "src/lexer.rs", "fn one_more() {}\n");
    place.run_in("one", &["show", "parser@1"]).done();
    assert_eq!(code(&propose("one", &[])), "VERSION_CONFLICT");
    place.run_in("one", &["objections", "parser"]).done();
    assert_eq!(propose("one", &[]).done().json()["version"], 3);

    place.commit("two", "src/lexer.rs", "fn two_more() {}\n");
    assert_eq!(propose("two", &["--after", "3"]).done().json()["version"], 4);
}

#[test]
fn git_gets_nothing_of_ours_and_its_own_words_are_told() {
    let mut place = Place::with_repository();
    place.serve();
    place.git(".", &["clone", "-q", "atlas.git", "app"]);
    place.commit("app", "src/lexer.rs", "fn lex() {}\n");

    // A git that writes down what it is given.
    let git = Command::new("sh").args(["-c", "command -v git"]).output().unwrap();
    let git = String::from_utf8(git.stdout).unwrap();
    let script = format!(
        "#!/bin/sh\n{{ env; echo \"$@\"; }} >> '{}'\nexec {} \"$@\"\n",
        place.path("seen").display(),
        git.trim()
    );
    place.write("bin/git", script);
    std::fs::set_permissions(place.path("bin/git"), std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", place.path("bin").display(), std::env::var("PATH").unwrap());
    let propose = ["--as", "app", "propose", "parser", "--commit", "HEAD", "--summary", "x"];
    let mut command = place.command("app", &propose);
    command
        .env("PATH", path)
        .env("COUNTERSIGN_TEAM", "atlas")
        .env("COUNTERSIGN_TOKEN_FILE", place.path(".countersign/tokens/app"));
    Ran::of(&command.output().unwrap()).done();
    let seen = std::fs::read_to_string(place.path("seen")).unwrap();
    assert!(seen.contains("refs/countersign/staging/"), "{seen}");
    assert!(!seen.contains("COUNTERSIGN_") && !seen.contains("csgn_"), "{seen}");

    let nothing = place.run_in("app", &["--as", "app", "propose", "parser", "--commit", "no-such-branch"]);
    assert_eq!(nothing.exit, 2, "{nothing:?}");
    place.commit("app", "src/lexer.rs", "fn lex() -> u64 { 0 }\n");
    place.write("atlas.git/hooks/pre-receive", "#!/bin/sh\necho 'no room' >&2\nexit 1\n");
    let hook = place.path("atlas.git/hooks/pre-receive");
    std::fs::set_permissions(hook, std::fs::Permissions::from_mode(0o755)).unwrap();
    let refused = place.run_in("app", &["--json", "--as", "app", "propose", "parser", "--commit", "HEAD"]);
    assert_eq!((refused.exit, code(&refused)), (1, "NOT_STAGED".to_owned()));
    assert!(text(&refused.json()["message"]).contains("no room"), "{refused:?}");
}

#[test]
fn a_version_is_fetched_as_it_was_proposed() {
    let place = Place::served();
    place.write("work/run.sh", "#!/bin/sh\n");
    std::fs::set_permissions(place.path("work/run.sh"), std::fs::Permissions::from_mode(0o755)).unwrap();
    place.write("work/big.bin", vec![7; 300_000]);
    place.write("work/empty", "");
    place.propose("fn lex() {}\n");
    let fetched = place.run(&["--as", "sec", "--json", "fetch", "parser@1", "-o", "out"]).done().json();
    assert_eq!(fetched["fetched"]["files"], 4);
    let same =
        Command::new("diff").arg("-r").arg(place.path("work")).arg(place.path("out")).output().unwrap();
    assert!(same.status.success(), "{same:?}");
    assert_eq!(mode(&place.path("out/run.sh")) & 0o111, 0o111);
    assert_eq!(mode(&place.path("out/empty")) & 0o111, 0);
    let again = place.run(&["--as", "sec", "--json", "fetch", "parser@1", "-o", "out"]);
    assert_eq!((again.exit, code(&again)), (1, "FOLDER_NOT_EMPTY".to_owned()));
}

// ---- the server's life ----

#[test]
fn a_server_without_a_home_starts_with_a_starter_and_ends_in_order() {
    let mut place = Place::empty();
    place.serve();
    assert!(std::fs::read_to_string(place.path("charter.toml")).unwrap().starts_with("# Who produces"));
    assert_eq!(text(&place.run(&["--json", "--as", "app", "status"]).done().json()["team"]), "starter");

    let second = place.run(&["--json", "serve", "--listen", "127.0.0.1:0"]);
    assert_eq!((second.exit, code(&second)), (1, "HOME_HELD".to_owned()));
    assert!(text(&second.json()["message"]).contains(&place.addr()), "{second:?}");
    let open = place.run(&["--json", "serve", "--listen", "0.0.0.0:0"]);
    assert_eq!(code(&open), "NOT_LOOPBACK");

    assert_eq!(place.end_server(), 0);
    assert!(!place.path(".countersign/server.json").exists());
}

#[test]
fn a_server_with_a_certificate_is_spoken_to_over_tls() {
    let mut place = Place::with(&charter(""));
    let made = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).unwrap();
    place.write("cert.pem", made.cert.pem());
    place.write("key.pem", made.signing_key.serialize_pem());
    let ready = place.serve_with(&["--tls-cert", "cert.pem", "--tls-key", "key.pem"]);
    assert!(ready.contains("https://127.0.0.1:"), "{ready}");
    place.run(&["--as", "app", "--ca", "cert.pem", "status"]).done();
    place.run(&["--ca", "cert.pem", "member", "token", "app"]).done();
    assert_eq!(place.run(&["--as", "app", "status"]).exit, 3, "without TLS there is no server to be seen");
    let https = format!("https://{}", place.addr());
    assert_eq!(place.run(&["--as", "app", "--addr", &https, "status"]).exit, 2, "nobody vouches for it");
}

#[test]
fn verify_and_backup_need_no_server_and_mind_none() {
    let mut place = Place::served();
    let reference = place.propose("fn lex() {}\n");
    let served = place.run(&["--json", "verify"]).done().json();
    assert_eq!(served["teams"][0]["team"], "atlas");
    place.run(&["backup", "copy"]).done();
    assert_eq!(mode(&place.path("copy")), 0o700);
    assert!(!place.path("copy/tokens").exists() && !place.path("copy/operator.token").exists());
    assert_eq!(place.run(&["backup", "copy"]).exit, 1, "a folder that holds something is not written into");
    assert_eq!(place.end_server(), 0);
    assert_eq!(place.run(&["--json", "verify"]).done().json(), served);

    // The copy takes the home's place, bundles and all.
    std::fs::rename(place.path(".countersign"), place.path("lost")).unwrap();
    std::fs::rename(place.path("copy"), place.path(".countersign")).unwrap();
    assert_eq!(place.run(&["--json", "verify"]).done().json(), served);
    place.serve();
    place.run(&["member", "token", "sec"]).done();
    place.run(&["--as", "sec", "fetch", &reference, "-o", "out"]).done();
    assert_eq!(std::fs::read_to_string(place.path("out/src/lexer.rs")).unwrap(), "fn lex() {}\n");
}

#[test]
fn a_log_that_was_edited_is_refused_by_its_sequence() {
    let mut place = Place::served();
    place.propose("fn lex() {}\n");
    assert_eq!(place.end_server(), 0);
    let database = rusqlite::Connection::open(place.path(".countersign/countersign.db")).unwrap();
    let changed = database
        .execute("UPDATE log SET body = replace(body, 'Streaming', 'Screaming') WHERE kind = 'proposed'", [])
        .unwrap();
    assert_eq!(changed, 1);
    let seq: i64 =
        database.query_row("SELECT seq FROM log WHERE kind = 'proposed'", [], |row| row.get(0)).unwrap();
    drop(database);
    let refused = place.run(&["--json", "verify"]);
    assert_eq!((refused.exit, code(&refused)), (1, "LOG_DAMAGED".to_owned()));
    assert_eq!(refused.json()["facts"]["sequence"], seq);
    assert!(text(&refused.json()["remedy"]).contains("backup"), "{refused:?}");
    assert_eq!(place.run(&["serve", "--listen", "127.0.0.1:0"]).exit, 1);
}

#[test]
fn a_reader_that_goes_away_is_no_mistake() {
    let place = Place::served();
    for args in [&["--as", "app", "log"] as &[&str], &["demo", "--into", "played"], &["completions", "bash"]]
    {
        let mut command = place.command(".", args);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let ended = child.wait_with_output().unwrap();
        assert_eq!((ended.status.code(), String::from_utf8_lossy(&ended.stderr)), (Some(0), "".into()));
    }
}

#[test]
fn a_sandbox_without_sockets_is_named_as_such() {
    // A seccomp filter that lets every system call pass but `socket` and `socketpair`, or `connect`,
    // which are not permitted: what sandboxes of agents do.
    const SANDBOX: &str = r#"
import ctypes, os, platform, struct, sys
numbers = {"x86_64": {"socket": 41, "socketpair": 53, "connect": 42},
           "aarch64": {"socket": 198, "socketpair": 199, "connect": 203}}[platform.machine()]
denied = [numbers[name] for name in sys.argv[1].split(",")]
code = struct.pack("HBBI", 0x20, 0, 0, 0)
for index, number in enumerate(denied):
    code += struct.pack("HBBI", 0x15, len(denied) - index, 0, number)
code += struct.pack("HBBI", 0x06, 0, 0, 0x7fff0000) + struct.pack("HBBI", 0x06, 0, 0, 0x00050000 | 1)
buffer = ctypes.create_string_buffer(code, len(code))
program = struct.pack("HxxxxxxQ", len(code) // 8, ctypes.addressof(buffer))
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, program, 0, 0) == 0, os.strerror(ctypes.get_errno())
os.execv(sys.argv[2], sys.argv[2:])
"#;
    let place = Place::served();
    for denied in ["socket,socketpair", "socket", "connect"] {
        let mut python = Command::new("python3");
        python
            .args(["-c", SANDBOX, denied, PROGRAM, "--json", "--as", "app", "status"])
            .current_dir(place.path("."));
        let began = std::time::Instant::now();
        let ran = Ran::of(&python.output().expect("python3; install it: apt-get install python3"));
        let took = began.elapsed();
        assert_eq!((ran.exit, code(&ran)), (3, "SOCKETS_FORBIDDEN".to_owned()), "{denied}: {ran:?}");
        assert!(text(&ran.json()["message"]).contains("this sandbox forbids sockets"), "{ran:?}");
        // Python's own start is in it, and a busy machine.
        assert!(took < std::time::Duration::from_secs(2), "{denied}: {took:?}");
    }
}

/// A member who types nothing but what it is told to, its placeholders filled in, finishes the phase.
#[test]
fn what_is_owed_is_done_by_the_command_that_is_printed() {
    let place = Place::served();
    place.write("files/src/lexer.rs", "fn lex() {}\n");
    let mut kinds = std::collections::BTreeSet::new();
    for turn in 0..40 {
        let status = place.run(&["--json", "--as", "dana", "status"]).done().json();
        let owed = status["obligations"].as_array().unwrap();
        let Some(first) = owed.first() else {
            assert_eq!(status["circles"][0]["state"], "published");
            break;
        };
        let command = text(&first["command"]).replace("TEXT", "words").replace("DIR", "files");
        let command = command.replace("PLACE", "src/lexer.rs:1").replace("CMD", "true");
        let mut args = vec!["--as".to_owned(), text(&first["member"])];
        args.extend(command.split(' ').skip(1).map(str::to_owned));
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        place.run(&args).done();
        kinds.insert(text(&first["kind"]));
        assert!(turn < 39, "it goes on for ever: {status}");
    }
    let kinds: Vec<&str> = kinds.iter().map(String::as_str).collect();
    assert_eq!(kinds, ["attach-evidence", "confirm", "deliver", "review"]);
}

#[test]
fn an_answer_may_stand_in_a_file() {
    let place = Place::served();
    let reference = place.propose("fn lex() {}\n");
    place.run(&["--as", "sec", "show", "parser"]).done();
    place.run(&["--as", "sec", "object", &reference, "too narrow"]).done();
    place.run(&["--as", "app", "objections", "parser"]).done();
    place.write("work/src/lexer.rs", "fn lex() -> u64 { 0 }\n");
    place.write("answer.md", "`u64` \"now\"\n");
    let args = [
        "--as",
        "app",
        "propose",
        "parser",
        "--path",
        "work",
        "--summary",
        "Wider",
        "--answer",
        "o1=@answer.md",
    ];
    place.run(&args).done();
    let json = place.run(&["--as", "sec", "--json", "show", "parser"]).done().json();
    assert_eq!(text(&json["objections"][0]["answers"][0]["text"]), "`u64` \"now\"\n");
}
