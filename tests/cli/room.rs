//! The room as agents and persons have it: texts byte for byte, a brief, and hostile words on a terminal.

use std::process::{Command, Stdio};

use countersign::protocol::name::is_hidden;

use crate::place::{PROGRAM, Place, text};

/// What would clear a screen, set a clipboard, rename a window, turn text around or hide it.
const HOSTILE: &str =
    "a\u{1b}[2J\u{1b}]52;c;ZXZpbA==\u{7}\u{1b}]0;evil\u{7}\u{9b}31m\u{202e}\u{200b}\u{e0041}\r\n\tb";

#[test]
fn a_text_is_kept_byte_for_byte_or_refused() {
    let place = Place::served();
    let longest = "ä".repeat(32 * 1024);
    let bodies = [
        "`date` $HOME \"quoted\" 'single'\r\n\ttab 😀 \u{202b}שלום\u{202c}",
        HOSTILE,
        &longest[2..],
        &longest,
    ];
    for body in bodies {
        let said = place
            .run_with(body.as_bytes(), &["--as", "app", "--json", "say", "--text-file", "-"])
            .done()
            .json();
        assert_eq!(said["stored"]["text"], body.len());
        let read = place.run(&["--as", "sec", "--json", "transcript", "--limit", "1"]).done().json();
        assert_eq!(read["messages"][0]["id"], said["message"]);
        assert_eq!(text(&read["messages"][0]["text"]), body);
    }
    let long = format!("{longest}x");
    let refused = place.run_with(long.as_bytes(), &["--as", "app", "--json", "say", "--text-file", "-"]);
    assert_eq!((refused.exit, text(&refused.json()["code"])), (1, "TEXT_TOO_LARGE".to_owned()));
    assert_eq!(refused.json()["facts"]["limit"], 65_536);
}

#[test]
fn hostile_words_have_no_effect_on_a_terminal() {
    let place = Place::served();
    place.run_with(HOSTILE.as_bytes(), &["--as", "app", "say", "--claim", "--text-file", "-"]).done();
    place.run(&["--as", "sec", "verdict", "m1", "refuted", HOSTILE]).done();
    place.run(&["--as", "app", "escalate", "parser", HOSTILE]).done();
    let question = format!("@arch {HOSTILE}");
    place.run_with(question.as_bytes(), &["--as", "app", "say", "--text-file", "-"]).done();
    place.write("event.json", "{}");
    for command in [
        "listen",
        "roster",
        "transcript",
        "minutes implement",
        "brief",
        "brief --paste",
        "status",
        "--json transcript",
        "hook claude-code session-start < event.json",
        "hook claude-code stop < event.json",
    ] {
        // A terminal of its own, so that the program sees one.
        let mut script = Command::new("script");
        script.args(["-qec", &format!("{PROGRAM} --as arch {command}"), "/dev/null"]);
        let output = script.current_dir(place.path(".")).stdin(Stdio::null()).output();
        let output = output.expect("script; install it: apt-get install bsdutils");
        let shown = String::from_utf8(output.stdout).expect("what is printed is UTF-8");
        assert!(output.status.success() && !shown.is_empty(), "{command}: {shown}");
        // The terminal itself turns each end of a line into two characters.
        let obeyed = shown.replace("\r\n", "\n");
        let obeyed: Vec<char> = obeyed.chars().filter(|c| is_hidden(*c) && !"\n\t".contains(*c)).collect();
        assert!(obeyed.is_empty(), "{command}: {obeyed:?}\n{shown:?}");
    }
    let shown = place.run(&["--as", "arch", "transcript"]).done().out;
    let escapes =
        r"a\u{1b}[2J\u{1b}]52;c;ZXZpbA==\u{7}\u{1b}]0;evil\u{7}\u{9b}31m\u{202e}\u{200b}\u{e0041}\u{d}";
    assert_eq!(shown.matches(escapes).count(), 4, "{shown}");
}

#[test]
fn a_brief_makes_a_fresh_session_a_member_again() {
    let place = Place::served();
    let reference = place.propose("fn lex() {}\n");
    place.run(&["--as", "app", "say", "@sec is it wide enough?", "--about", "parser"]).done();
    let brief = place.run(&["--as", "sec", "brief"]).done().out;
    assert!(brief.lines().count() <= 60, "{brief}");
    for line in [
        "You are sec, in the team atlas",
        "You review the work of: app for security in implement",
        "You owe:",
        "countersign show parser@1",
        "countersign say --reply m1 TEXT",
        "House rules:",
        "countersign approve REF --checked PLACE",
    ] {
        assert!(brief.contains(line), "{line} is not in\n{brief}");
    }
    let json = place.run(&["--as", "sec", "--json", "brief"]).done().json();
    assert_eq!(json["owes"].as_array().map(Vec::len), Some(2), "{json}");
    assert_eq!(json["reviews"][0], "app for security in implement");
    let awaits = place.run(&["--as", "app", "brief"]).done().out;
    assert!(
        awaits.contains("You owe nothing.") && awaits.contains("You wait for: arch (review)"),
        "{awaits}"
    );
    assert!(!awaits.contains(&reference), "a reference comes from one's own reading: {awaits}");
    let paste = place.run(&["--as", "sec", "brief", "--paste"]).done().out;
    assert!(paste.lines().count() <= 60 && paste.contains("COUNTERSIGN_AS=sec"), "{paste}");
    assert!(paste.contains("countersign brief") && !paste.contains("You owe:"), "{paste}");
    let person = place.run(&["--as", "dana", "brief"]).done().out;
    assert!(person.contains("a person") && person.contains("escalations answer"), "{person}");
}

#[test]
fn what_is_said_tells_whom_it_woke_and_what_ended() {
    let place = Place::served();
    let mut last = place.run(&["--as", "app", "say", "@sec your turn"]).done().out;
    assert!(
        last.contains("m1 stands\nstored: text 14 bytes\nstored for sec, who was never here\n"),
        "{last}"
    );
    for turn in 1..9 {
        let (by, to) = [("app", "sec"), ("sec", "app")][turn % 2];
        let reply = format!("m{turn}");
        last = place.run(&["--as", by, "say", &format!("@{to} your turn"), "--reply", &reply]).done().out;
    }
    let ended = "the chain of mentions from m1 is longer than it may be: nobody owes an answer, and a person is told, by e1";
    assert!(last.contains(ended), "{last}");
    let nobody = place.run(&["--as", "arch", "say", "All quiet"]).done().out;
    assert!(nobody.contains("this woke nobody"), "{nobody}");
    let transcript = place.run(&["--as", "arch", "transcript", "--limit", "2"]).done().out;
    assert!(transcript.starts_with("9 more before: countersign transcript --before "), "{transcript}");
    assert!(transcript.contains("e1: mention-chain about m1"), "{transcript}");
}
