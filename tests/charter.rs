//! Charters: what passes, and what is refused at which line and column, in which words.
//!
//! A refused charter is the small one below with one thing changed. The snapshots hold what a person
//! would see.

use std::fmt::Write;

use countersign::protocol::charter::{
    CHARTER_BYTES_MAX, Charter, Diagnostics, Graph, MEMBERS_MAX, PHASES_MAX, check, parse, parse_bytes,
};
use proptest::prelude::*;

const EXAMPLE: &str = include_str!("charters/example.toml");
const SMALL: &str = include_str!("charters/small.toml");

/// What is refused: a title, the text that is replaced in the small charter, and what replaces it.
type Case = (&'static str, &'static str, &'static str);

fn refused(text: &str) -> Diagnostics {
    parse("charter.toml", text).expect_err("the charter is refused")
}

fn screens(cases: &[Case]) -> String {
    let mut out = String::new();
    for (title, from, to) in cases {
        assert!(SMALL.contains(from), "{title}: {from} is in the small charter");
        let text = SMALL.replacen(from, to, 1);
        let found = match parse("charter.toml", &text) {
            Ok(_) => panic!("{title}: is accepted"),
            Err(found) => found,
        };
        out.push_str(&format!("## {title}\n\n{found}\n\n"));
    }
    out
}

#[test]
fn the_whole_grammar_is_read() {
    let charter = parse("charter.toml", EXAMPLE).unwrap_or_else(|found| panic!("{found}"));
    insta::assert_json_snapshot!("example", charter);
    insta::assert_snapshot!("example_graph", Graph::of(&charter));
    insta::assert_snapshot!("example_mermaid", Graph::of(&charter).mermaid());
}

#[test]
fn a_charter_reads_back_from_the_log_as_it_was_stored() {
    for text in [EXAMPLE, SMALL] {
        let charter = parse("charter.toml", text).unwrap();
        let stored = serde_json::to_string(&charter).unwrap();
        assert_eq!(serde_json::from_str::<Charter>(&stored).unwrap(), charter);
    }
}

#[test]
fn what_is_left_out_has_its_default() {
    let example = parse("charter.toml", EXAMPLE).unwrap();
    let small = parse("charter.toml", SMALL).unwrap();
    assert_eq!(example.limits, small.limits);
    assert_eq!(small.publish.target, "refs/heads/main");
    let guarded = "[repository]\npath = 'x.git'\n[publish]\ntarget = 'refs/heads/trunk'\n[team]";
    let guarded = parse("c", &SMALL.replace("[team]", guarded)).unwrap();
    assert_eq!(guarded.repository.unwrap().protected, ["refs/heads/trunk"]);
}

#[test]
fn what_toml_refuses_is_shown_where_it_stands() {
    let screens = screens(&[
        ("two faults are both told", "kind = \"human\"", "kind = \nabout \"x\""),
        ("a key twice", "kind = \"human\"", "kind = \"human\"\nkind = \"agent\""),
        ("a NUL", "kind = \"human\"", "kind = \"hu\0man\""),
        ("an unclosed text", "lens = \"security\"", "lens = \"security"),
        ("a terminal's escape", "kind = \"human\"", "kind = \"\u{1b}[2Jhuman\""),
    ]);
    insta::assert_snapshot!(screens);
}

#[test]
fn keys_and_types_are_those_of_the_grammar() {
    let screens = screens(&[
        ("a misspelt key that is needed", "reviewer = \"sec\"", "reviwer = \"sec\""),
        ("a misspelt section", "[[phases]]", "[[phase]]"),
        ("a misspelt section of one", "[members.dana]", "[membres.dana]"),
        ("a key like no other", "[members.sec]", "[members.sec]\nxyzzy = 1"),
        ("one [phases]", "[[phases.reviews]]\nreviewer = \"sec\"", "[phases.reviews]\nreviewer = \"sec\""),
        ("a member that is no table", "[members.app]\n", "[members]\napp = 1\n"),
        ("no team", "[team]\nname = \"small\"", ""),
        ("no name of the team", "name = \"small\"", ""),
        ("an edge without a lens", "lens = \"security\"", ""),
        ("a number for a text", "name = \"small\"", "name = 7"),
        ("a text for a flag", "[members.sec]", "[members.sec]\nwatch = \"yes\""),
        ("a text for a list", "[members.sec]", "[members.sec]\nowns = \"src/**\""),
        ("a mixed list", "[members.sec]", "[members.sec]\nowns = [\"src/**\", 1]"),
        ("a fraction for a count", "[limits]", "[limits]\nrounds = 1.5"),
        ("a negative count", "[limits]", "[limits]\nrounds = -1"),
        ("a count that is too large", "[limits]", "[limits]\nrounds = 99999999999999999999"),
        ("a duration without unit", "[limits]", "[limits]\nstall_after = 30"),
        ("a duration in days", "[limits]", "[limits]\nstall_after = \"2d\""),
        ("a kind that is none", "kind = \"human\"", "kind = \"humane\""),
        ("a way to confirm that is none", "confirm = \"together\"", "confirm = \"all\""),
        ("a rule's mode that is none", "[team]", "rules.\"confirm/stale\" = \"warm\"\n[team]"),
        ("a rule's id that is none", "[team]", "rules.stale = \"warn\"\n[team]"),
        ("a misspelt folder", "[team]", "rules.fodler = \"x\"\n[team]"),
        (
            "findings of every step that can be told",
            "[limits]",
            "[limits]\nround = 3\nnotes = 0\nstall_after = \"x\"",
        ),
    ]);
    insta::assert_snapshot!(screens);
}

#[test]
fn names_have_one_form_and_none_looks_like_another() {
    let screens = screens(&[
        ("upper case", "[members.sec]", "[members.Sec]"),
        ("a Cyrillic letter", "[members.sec]", "[members.\"s\u{435}c\"]"),
        ("an invisible character", "producer = \"app\"", "producer = \"a\u{200b}pp\""),
        ("an empty name", "producer = \"app\"", "producer = \"\""),
        ("an escape in a text", "kind = \"human\"", "kind = \"human\"\nabout = \"x\\u001B]52;c;\""),
        ("two lines about a member", "kind = \"human\"", "kind = \"human\"\nabout = \"x\\ny\""),
        ("an empty text", "kind = \"human\"", "kind = \"human\"\nabout = \" \""),
        ("members that look alike", "[members.sec]", "[members.s-ec]\n[members.sec]"),
        ("a member called all", "[members.dana]", "[members.all]\n[members.dana]"),
        ("a deliverable called staging", "name = \"parser\"", "name = \"staging\""),
        ("a deliverable that git can't name", "name = \"parser\"", "name = \"parser.lock\""),
        ("a phase and a deliverable of one name", "name = \"parser\"", "name = \"build\""),
        ("a deliverable that looks like the phase", "name = \"parser\"", "name = \"bu1ld\""),
        (
            "two deliverables of one name",
            "[[phases.reviews]]",
            "[[phases.deliverables]]\nname = \"parser\"\nproducer = \"app\"\n[[phases.reviews]]",
        ),
        (
            "two phases of one name",
            "[[phases]]",
            "[[phases]]\nname = \"build\"\nreviews = [{ reviewer = \"sec\", of = \"app\", lens = \"plan\" }]\n\
             deliverables = [{ name = \"plan\", producer = \"app\" }]\n[[phases]]",
        ),
    ]);
    insta::assert_snapshot!(screens);
}

#[test]
fn a_team_that_could_never_finish_is_refused() {
    let screens = screens(&[
        ("no person", "kind = \"human\"", ""),
        ("an unknown reviewer", "reviewer = \"sec\"", "reviewer = \"secc\""),
        ("an unknown producer of an edge", "of = \"app\"", "of = \"ap\""),
        ("an unknown producer of a deliverable", "producer = \"app\"", "producer = \"parser\""),
        ("a sole reviewer of their own work", "reviewer = \"sec\"", "reviewer = \"app\""),
        ("a deliverable without a reviewer", "producer = \"app\"", "producer = \"sec\""),
        (
            "the same edge twice",
            "[[phases.reviews]]",
            "[[phases.reviews]]\nreviewer = \"sec\"\nof = \"app\"\nlens = \"security\"\n[[phases.reviews]]",
        ),
        ("the referee reviews", "[members.sec]", "[members.sec]\nkind = \"referee\""),
        ("the referee produces", "[members.app]", "[members.app]\nkind = \"referee\""),
        ("another owns everything", "[members.sec]", "[members.sec]\nowns = [\"**\"]"),
        ("nothing owed together", "[[phases.deliverables]]\nname = \"parser\"\nproducer = \"app\"", ""),
        ("nobody may propose", "[[phases]]", "[[phases]]\nname = \"polish\"\nconfirm = \"each\"\n[[phases]]"),
    ]);
    insta::assert_snapshot!(screens);
    insta::assert_snapshot!("nobody_and_nothing", refused("[team]\nname = \"empty\"\n"));
}

#[test]
fn limits_bound_churn_and_every_wait() {
    let screens = screens(&[
        (
            "counts of zero",
            "[limits]",
            "[limits]\nwithdraw_flips = 0\nrounds = 0\nvote_changes = 0\nnotes = 0\ntext_bytes = 0",
        ),
        ("no cooldown, no stall", "[limits]", "[limits]\nwithdraw_cooldown = \"0s\"\nstall_after = \"0s\""),
        ("texts above a mebibyte", "[limits]", "[limits]\ntext_bytes = 1048577"),
        ("more than a year", "[limits]", "[limits]\nanswer_within = \"8785h\""),
        (
            "a year is allowed, a million and one are not",
            "[limits]",
            "[limits]\nanswer_within = \"8784h\"\nrounds = 1000001",
        ),
    ]);
    insta::assert_snapshot!(screens);
}

#[test]
fn settings_lead_somewhere() {
    let screens = screens(&[
        (
            "an unknown channel",
            "kind = \"human\"",
            "kind = \"human\"\nnotify = [\"opps\"]\n[channels.ops]\ncommand = \"x\"",
        ),
        (
            "an agent that is notified",
            "[members.sec]",
            "[members.sec]\nnotify = [\"ops\"]\n[channels.ops]\ncommand = \"x\"",
        ),
        ("a channel to nowhere", "[team]", "[channels.ops]\n[team]"),
        (
            "a channel to two places",
            "[team]",
            "[channels.ops]\nwebhook = \"https://x\"\ncommand = \"x\"\n[team]",
        ),
        (
            "a secret that signs nothing",
            "[team]",
            "[channels.ops]\ncommand = \"x\"\nsecret_file = \"s\"\nallow_private = true\n[team]",
        ),
        (
            "a webhook that is no address",
            "[team]",
            "[channels.Ops]\nwebhook = \"file:///etc/passwd\"\n[team]",
        ),
        (
            "an e-mail of two",
            "[members.sec]",
            "emails = [\"a@x.org\"]\n[members.sec]\nemails = [\"b@x.org\", \"A@X.org\"]",
        ),
        (
            "an e-mail that is none, and one twice",
            "[members.sec]",
            "[members.sec]\nemails = [\"sec\", \"b@x.org\", \"b@x.org\"]",
        ),
        ("a colour by name", "[members.sec]", "[members.sec]\ncolour = \"teal\""),
        (
            "owned paths that match nothing",
            "[members.sec]",
            "[members.sec]\nowns = [\"src/[a\", \"/etc/**\", \"../x\", \"./a\", \"b/\"]",
        ),
        ("an empty list", "[members.sec]", "[members.sec]\nowns = []"),
        ("checks", "[team]", "[checks]\nrequired = [\"ci\", \"CI build\", \"ci\"]\n[team]"),
        ("publishing without a repository", "[team]", "[publish]\ntarget = \"refs/heads/main\"\n[team]"),
        (
            "a target without a repository",
            "producer = \"app\"",
            "producer = \"app\"\ntarget = \"refs/heads/x\"",
        ),
    ]);
    insta::assert_snapshot!(screens);
}

#[test]
fn what_is_published_goes_through_the_door() {
    let screens = screens(&[
        ("a repository without a path", "[team]", "[repository]\nurl = \"x\"\n[team]"),
        ("nothing protected", "[team]", "[repository]\npath = \"x\"\nprotected = []\n[team]"),
        (
            "patterns that are none",
            "[team]",
            "[repository]\npath = \"x\"\n\
             protected = [\"main\", \"refs/heads/{a\", \"refs/countersign/x\", \"refs/**\", \"refs/heads/\", \"refs/heads/*\"]\n[team]",
        ),
        (
            "the default target is open",
            "[team]",
            "[repository]\npath = \"x\"\nprotected = [\"refs/heads/release/*\"]\n[team]",
        ),
        (
            "a target of two levels under a star",
            "[team]",
            "[repository]\npath = \"x\"\nprotected = [\"refs/heads/*\"]\n[publish]\ntarget = \"refs/heads/a/b\"\n[team]",
        ),
        (
            "a short name",
            "[team]",
            "[repository]\npath = \"x\"\nprotected = [\"refs/heads/*\"]\n[publish]\ntarget = \"main\"\n[team]",
        ),
        (
            "a check that has no time",
            "[team]",
            "[repository]\npath = \"x\"\n[publish]\nhow = \"rebase\"\ncheck = \"make\"\ncheck_timeout = \"0s\"\n[team]",
        ),
    ]);
    insta::assert_snapshot!(screens);
    let guarded = SMALL.replacen("[team]", "[repository]\npath = \"x\"\n[team]", 1);
    let elsewhere =
        guarded.replacen("producer = \"app\"", "producer = \"app\"\ntarget = \"refs/heads/x\"", 1);
    insta::assert_snapshot!("deliverable_target", refused(&elsewhere));
}

#[test]
fn the_sizes_are_bounded() {
    let long = "#".repeat(CHARTER_BYTES_MAX + 1);
    insta::assert_snapshot!("too_long", refused(&long));
    assert!(parse_bytes("c", long.as_bytes()).is_err());
    // The bound itself is read.
    let whole = format!("{SMALL}\n#{}", "x".repeat(CHARTER_BYTES_MAX - SMALL.len() - 2));
    assert_eq!(whole.len(), CHARTER_BYTES_MAX);
    assert!(parse("c", &whole).is_ok());

    // app, sec and dana are three.
    let crowd = |count: usize| {
        (0..count).fold(SMALL.to_owned(), |mut text, index| {
            write!(text, "\n[members.m{}]", letters(index)).unwrap();
            text
        })
    };
    assert!(parse("c", &crowd(MEMBERS_MAX - 3)).is_ok());
    insta::assert_snapshot!("too_many_members", refused(&crowd(MEMBERS_MAX - 2)));

    // What comes in lists of tables is told at the first.
    let phases = SMALL.to_owned() + &"\n[[phases]]\nname = \"again\"\nconfirm = \"each\"".repeat(PHASES_MAX);
    insta::assert_snapshot!("too_many_phases", refused(&phases));
}

/// Names without digits, which look alike sooner.
fn letters(index: usize) -> String {
    const LETTERS: &[u8; 8] = b"abcdefgh";
    [index / 64, index / 8, index].map(|digit| char::from(LETTERS[digit % 8])).iter().collect()
}

#[test]
fn more_findings_than_a_screen_holds_are_counted() {
    let many = (0..30).fold(SMALL.to_owned(), |mut text, _| {
        text.push_str("\n[[phases.reviews]]\nreviewer = \"nobody-we-know\"\nof = \"app\"\nlens = \"plan\"");
        text
    });
    let found = refused(&many);
    assert!(found.to_string().ends_with("\n\nand 39 more"), "{found}");
}

#[test]
fn bytes_that_are_no_text_have_a_place_too() {
    let mut bytes = SMALL.as_bytes().to_vec();
    let at = SMALL.find("human").unwrap();
    bytes[at] = 0xff;
    insta::assert_snapshot!("not_utf8", parse_bytes("charter.toml", &bytes).unwrap_err());
    assert_eq!(parse_bytes("c", SMALL.as_bytes()), parse("c", SMALL));
    assert_eq!(parse_bytes("c", format!("\u{feff}{SMALL}").as_bytes()), parse("c", SMALL));
}

#[test]
fn lines_and_columns_hold_for_windows_and_for_wide_characters() {
    let text = SMALL.replace('\n', "\r\n").replace("kind = \"human\"", "about = \"é€😀\u{202e}\"");
    let found = &refused(&text).findings;
    let line = text[..text.find("about").unwrap()].matches('\n').count() + 1;
    assert_eq!((found[0].line, found[0].column), (line, 9), "{found:?}");
    assert_eq!(text[found[0].span.clone()].chars().next(), Some('"'));
}

/// A person's answer makes a charter without a text; its findings still have a place.
#[test]
fn a_charter_without_a_text_is_checked_too() {
    let mut charter = parse("c", SMALL).unwrap();
    charter.phases[0].reviews[0].reviewer = "nobody-we-know".parse().unwrap();
    let unmet = check(&charter);
    assert_eq!(
        unmet[0].to_string(),
        "phases[0].reviews[0].reviewer: no member who reviews is called nobody-we-know"
    );
}

#[test]
fn deep_nesting_is_refused_and_not_followed() {
    for (open, close) in [("[", "]"), ("{ a = ", " }")] {
        let depth = 100_000;
        let text = format!("x = {}1{}", open.repeat(depth), close.repeat(depth));
        assert!(parse("c", &text).is_err());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn no_bytes_make_the_reader_fall(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        show(&bytes);
    }

    #[test]
    fn no_text_makes_the_reader_fall(text in "(?s)[\\PC\n\r\t=\\[\\]\"'{}.,#\u{1b}\u{202e}]{0,200}") {
        show(text.as_bytes());
    }

    /// Pieces of the example cut out, doubled, and put where they don't belong.
    #[test]
    fn no_mutation_makes_the_reader_fall(
        edits in proptest::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), 0_usize..40, any::<u8>()), 1..6)
    ) {
        let mut bytes = EXAMPLE.as_bytes().to_vec();
        for (at, from, length, noise) in edits {
            let (at, from) = (at.index(bytes.len()), from.index(bytes.len()));
            let piece = match noise % 3 {
                0 => Vec::new(),
                1 => bytes[from..(from + length).min(bytes.len())].to_vec(),
                _ => vec![noise],
            };
            let to = if noise % 2 == 0 { (at + length).min(bytes.len()) } else { at };
            bytes.splice(at..to, piece);
        }
        show(&bytes);
    }
}

/// What is accepted passes the check once more; what is refused can be shown, and is inert.
fn show(bytes: &[u8]) {
    match parse_bytes("charter.toml", bytes) {
        Ok(charter) => assert_eq!(check(&charter), []),
        Err(found) => {
            assert!(!found.findings.is_empty());
            let screen = found.to_string();
            assert!(!screen.contains(|c: char| c.is_control() && c != '\n'), "{screen:?}");
            assert!(!screen.contains(['\u{202e}', '\u{200b}']), "{screen:?}");
            for finding in &found.findings {
                assert!(finding.line >= 1 && finding.column >= 1);
                assert!(found.text.get(finding.span.clone()).is_some());
            }
        }
    }
}
