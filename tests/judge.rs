//! The rule engine: the shipped rules do what their examples say, hostile rules end at their bounds,
//! and the loader says where and what.

// The lint knows only functions that are tests themselves, not those that these share.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use countersign::judge::{CelJudge, CelRulebook, ExampleOutcome, LoadError, bounds, own};
use countersign::protocol::rule::view::{FIELDS, Kind};
use countersign::protocol::rule::{
    Judge, Judgement, Moment, OwnRule, Owner, Rulebook, Value, View, message, remedy,
};
use proptest::prelude::*;

/// A rule in which all is well, one key a line.
const GOOD: &str = r#"title = "A title"
incident = "An incident"
when = "confirm"
about = "proposal"
applies = "proposal.delivered"
deny = "proposal.withdrawn"
message = "{proposal.name} is withdrawn"
owes = "producer"
remedy = "countersign propose {proposal.name}"
[[examples.deny]]
because = "it is withdrawn"
proposal.withdrawn = true
[[examples.pass]]
because = "it is not"
"#;

/// [`GOOD`] with the line of `key` replaced, or removed.
fn with(key: &str, line: &str) -> String {
    let start = format!("{key} =");
    assert!(GOOD.lines().any(|known| known.starts_with(&start)), "{key}");
    let mut text: String = GOOD
        .lines()
        .map(|known| if known.starts_with(&start) { line } else { known })
        .collect::<Vec<_>>()
        .join("\n");
    text.push('\n');
    text
}

fn deny(condition: &str) -> String {
    with("deny", &format!("deny = '''{condition}'''"))
}

/// The shipped rules and those of a folder.
fn load_folder(own: &Path) -> Result<CelJudge, Vec<LoadError>> {
    CelJudge::load(&own::read_folder(own)?)
}

/// Loads that text as a candidate rule.
fn candidate(text: &str) -> Result<CelJudge, Vec<LoadError>> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("rule.toml");
    std::fs::write(&file, text).unwrap();
    CelJudge::candidate(&file).map_err(|errors| {
        errors.into_iter().map(|error| LoadError { file: "rule.toml".into(), ..error }).collect()
    })
}

fn said(errors: &[LoadError]) -> String {
    errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

/// The sample that examples start from: what a rule's last example that changes nothing sees.
fn sample() -> View {
    let judge = candidate(GOOD).unwrap();
    judge.examples().last().unwrap().1.view.clone()
}

/// The judgement of a rule that denies by that condition.
fn judged(condition: &str, view: &View) -> Judgement {
    let judge = candidate(&deny(condition)).unwrap_or_else(|errors| panic!("{}", said(&errors)));
    judge.judge(0, view)
}

#[test]
fn every_shipped_rule_does_what_its_examples_say() {
    let judge = CelJudge::shipped();
    let outcomes = judge.run_examples();
    for outcome in &outcomes {
        assert!(outcome.holds(), "{outcome:?}");
    }
    assert!(outcomes.len() > 2 * judge.rules().len());
}

#[test]
fn every_shipped_file_is_embedded_and_in_order() {
    let files: Vec<String> =
        own::read_folder(Path::new("rules")).unwrap().into_iter().map(|rule| rule.id).collect();
    let judge = CelJudge::shipped();
    assert_eq!(judge.rules().iter().map(|rule| rule.id.clone()).collect::<Vec<_>>(), files);
}

/// The texts of the shipped rules, filled in: what a member reads who is refused.
#[test]
fn what_the_shipped_rules_say() {
    let judge = CelJudge::shipped();
    let mut out = String::new();
    for (rule, example) in judge.examples() {
        let index = judge.rules().iter().position(|known| known.id == rule.id).unwrap();
        let judgement = judge.judge(index, &example.view);
        writeln!(out, "{} line {}: {judgement:?}: {}", rule.id, example.line, example.because).unwrap();
        if judgement == Judgement::Denies {
            let (message, remedy) = (message(rule, &example.view), remedy(rule, &example.view));
            writeln!(out, "    {message}\n    {:?} owes: {remedy}", rule.owes).unwrap();
        }
    }
    insta::assert_snapshot!(out);
}

#[test]
fn an_example_that_does_not_hold_is_told() {
    let judge = candidate(&deny("proposal.rounds > 3")).unwrap();
    let outcomes = judge.run_examples();
    assert_eq!(outcomes.iter().map(ExampleOutcome::holds).collect::<Vec<_>>(), [false, true]);
    assert_eq!((outcomes[0].line, &*outcomes[0].because), (10, "it is withdrawn"));
}

#[test]
fn what_a_condition_can_say() {
    let view = sample();
    for (condition, holds) in [
        ("true && !false", true),
        ("proposal.rounds + 2 * 3 - 1 == 6", true),
        ("7 / 2 == 3 && 7 % 2 == 1 && -7 / 2 == -3", true),
        ("proposal.version >= 2 && proposal.version < 3 && proposal.version != 9", true),
        ("proposal.name < 'q' && 'B' < 'a'", true),
        ("proposal.delivered == true", true),
        ("proposal.name == \"parser\" && size(proposal.name) == 6 && proposal.name.size() == 6", true),
        ("'\\u00e9'.size() == 1", true),
        (
            "proposal.name.startsWith('par') && proposal.name.endsWith('ser') && proposal.name.contains('rs')",
            true,
        ),
        ("proposal.name.matches('^pa.+r$')", true),
        ("proposal.name.matches('^ar')", false),
        ("proposal.name in ['lexer', 'parser'] && 2 in [1, 2] && !(3 in [1, 2])", true),
        ("'sec' in circle.participants", true),
        ("circle.participants.all(p, size(p) == 3)", true),
        ("circle.participants.exists(p, p == 'arch')", false),
        ("circle.participants.exists_one(p, p == 'sec')", true),
        ("circle.participants.exists_one(p, size(p) == 3)", false),
        ("circle.proposals.all(p, circle.participants.exists(m, m == p.producer))", true),
        ("proposal.withdrawn ? false : proposal.accepted", true),
        ("size(proposal.open_objections) == 0 // what stands behind it is a comment ((((", true),
        ("proposal.unread.all(id, 1 / 0 == 0)", true),
    ] {
        let expected = if holds { Judgement::Denies } else { Judgement::Passes };
        assert_eq!(judged(condition, &view), expected, "{condition}");
    }
}

/// What can only show while a rule is asked ends in an error, and an error is no pass.
#[test]
fn what_goes_wrong_is_an_error_even_beside_something_true() {
    let mut view = sample();
    set(&mut view, "proposal", "version", Value::Int(0));
    set(&mut view, "proposal", "rounds", Value::Int(i64::MAX));
    set(&mut view, "proposal", "name", "a".repeat(bounds::PATTERN_TEXT_BYTES_MAX + 1).into());
    for (condition, fault) in [
        ("4 / proposal.version == 2", "it divides by zero"),
        ("4 % proposal.version == 2", "it divides by zero"),
        ("4 / proposal.version == 2 || true", "it divides by zero"),
        ("!(4 / proposal.version == 2 && false)", "it divides by zero"),
        (
            "circle.participants.exists(p, p == 'app' || 4 / proposal.version == 2) && 1 / proposal.version == 1",
            "it divides by zero",
        ),
        ("proposal.rounds + 1 > 0", "a number is out of range"),
        ("proposal.rounds * 2 > 0", "a number is out of range"),
        ("-proposal.rounds - 2 < 0", "a number is out of range"),
        (
            "proposal.name.matches('(a+)+$')",
            "a text of 4097 bytes is more than the 4096 that a pattern is tried on",
        ),
    ] {
        assert_eq!(judged(condition, &view), Judgement::Error(fault.into()), "{condition}");
    }
}

/// A view that isn't as documented is a fault of the core: it denies, and nothing panics.
#[test]
fn a_view_that_is_not_as_documented_is_an_error() {
    let lacking = View::default();
    assert_eq!(
        judged("proposal.withdrawn", &lacking),
        Judgement::Error("the view has no \"proposal\"".into())
    );
    let mut mistyped = sample();
    set(&mut mistyped, "proposal", "withdrawn", "yes".into());
    let asked = "the view has another kind of value than is documented, where a bool is asked";
    assert_eq!(judged("proposal.withdrawn", &mistyped), Judgement::Error(asked.into()));
}

/// Sets a field of a word.
fn set(view: &mut View, word: &'static str, field: &'static str, value: Value) {
    let Some(Value::Map(fields)) = view.words.get(word) else { panic!("{word}") };
    let mut fields = BTreeMap::clone(fields);
    fields.insert(field, value);
    view.words.insert(word, Value::Map(Arc::new(fields)));
}

/// Hostile conditions, and the words with which each is refused before it is ever asked.
#[test]
fn attacks_are_refused_at_load() {
    let doubling = (0..9).fold("proposal.name".to_owned(), |text, _| format!("[{text}].map(x, x + x)[0]"));
    let nested = "circle.proposals.all(a, circle.proposals.all(b, circle.proposals.all(c, true)))";
    for (name, condition, refusal) in [
        ("a chain of 5,000 terms", vec!["1"; 5_000].join("+") + " > 0", "a condition of 10003 bytes"),
        ("a chain within the size", vec!["1"; 1_000].join("+") + " > 0", "more than 64 deep"),
        ("a chain of 300 bools", vec!["true"; 300].join("&&"), "more than 300 words"),
        ("a chain of choices", "true?true:".repeat(200) + "true", "this is no expression"),
        ("a long run of selections", format!("proposal{}", ".x".repeat(1_000)), "more than 64 deep"),
        ("a text doubled nine times", doubling, "an index"),
        ("texts put together", "size(proposal.name + proposal.name) > 3".into(), "`+` takes an int"),
        ("lists put together", "size(proposal.unread + proposal.unread) > 3".into(), "`+` takes an int"),
        ("loops in loops in loops", nested.into(), "more than 2 deep"),
        ("an unknown function beside true", "nosuch(1) || true".into(), "unknown function \"nosuch\""),
        ("an unknown function behind true", "true || nosuch(1)".into(), "unknown function \"nosuch\""),
        ("an unknown word beside true", "nosuch || true".into(), "unknown word \"nosuch\""),
        ("a pattern from the view", "'x'.matches(proposal.name)".into(), "a pattern that isn't written"),
        ("a huge pattern", "'x'.matches('(a{1000}){1000}')".into(), "this is no pattern"),
        ("a broken pattern", "'x'.matches('(')".into(), "this is no pattern: unclosed group"),
        ("a long pattern", format!("'x'.matches('{}')", "a".repeat(257)), "a pattern of 257 bytes"),
        ("deep brackets", "(".repeat(900) + "true" + &")".repeat(900), "brackets more than 24 deep"),
        ("deep lists", "[".repeat(900) + &"]".repeat(900), "brackets more than 24 deep"),
        ("many negations", "!".repeat(1_999) + "(1 == 2) && 1", "`&&` takes a bool"),
        ("an unknown field", "proposal.naem == 'x'".into(), "unknown word \"proposal.naem\""),
        ("a field of a text", "proposal.name.first == 'x'".into(), "a text has no field"),
        ("a word of another subject", "review.vote == 'approve'".into(), "unknown word \"review\""),
        ("no bool", "proposal.version".into(), "an int; a condition is a bool"),
        ("a whole word", "proposal".into(), "the word \"proposal\" as a whole"),
        ("a division by zero", "1 / 0 == 1".into(), "tried on the sample, it divides by zero"),
        ("kinds mixed", "proposal.name == 1".into(), "`==` compares a text with an int"),
        ("kinds mixed behind true", "true || proposal.name < 1".into(), "`<` compares"),
        ("bools ordered", "true < false".into(), "`<` compares a bool with a bool"),
        ("lists compared", "proposal.unread == proposal.unread".into(), "`==` compares a list of texts"),
        ("no number", "1.5 > 1.0".into(), "a constant that is no bool, int or text"),
        ("null", "proposal.name == null".into(), "a constant that is no bool, int or text"),
        ("a map", "size({'a': 1}) == 1".into(), "makes no maps"),
        ("a message", "Some{a: 1} == 1".into(), "makes no maps"),
        ("a mixed list", "1 in [1, 'a']".into(), "a list holds ints or texts"),
        ("an empty list", "1 in []".into(), "a list holds ints or texts"),
        ("an item for another list", "1 in proposal.unread".into(), "an int `in` a list of texts"),
        ("a word hidden by an item", "circle.participants.all(proposal, true)".into(), "means something"),
        (
            "an item after its list",
            "circle.participants.all(p, true) && p == 'x'".into(),
            "unknown word \"p\"",
        ),
        ("presence", "has(proposal.name)".into(), "`has`; every documented word is always there"),
        ("an inner name of the parser", "@result".into(), "this is no expression"),
        ("a rooted name", ".proposal.name == 'x'".into(), "unknown word \".proposal\""),
        ("an optional", "proposal.?name == 'x'".into(), "this is no expression"),
        ("a text without end", "proposal.name == 'x".into(), "this is no expression"),
        ("nothing but a comment", "// true".into(), "this is no expression"),
        ("a look-alike letter", "pr\u{43e}posal.withdrawn".into(), "the character U+043E"),
    ] {
        let begun = Instant::now();
        let errors = candidate(&deny(&condition)).err().unwrap_or_else(|| panic!("{name} was accepted"));
        assert!(said(&errors).contains(refusal), "{name}: {}", said(&errors));
        assert!(begun.elapsed() < Duration::from_secs(10), "{name} took {:?}", begun.elapsed());
    }
}

/// The file around the condition is read on the caller's stack.
#[test]
fn deep_files_are_refused_too() {
    let n = 5_000;
    for (name, text) in [
        ("lists", format!("x = {}", "[".repeat(n))),
        ("tables", format!("x = {}", "{a=".repeat(n))),
        ("a dotted key", format!("{}x = 1", "x.".repeat(n))),
        ("a dotted header", format!("[{}x]\nx = 1", "x.".repeat(n))),
        ("closed lists", format!("{GOOD}\ncircle.proposals = {}{}", "[".repeat(n), "]".repeat(n))),
        ("a deep example", format!("{GOOD}\ncircle.{}x = 1", "proposals.".repeat(900))),
    ] {
        assert!(candidate(&text).is_err(), "{name}");
    }
}

/// The deepest and widest conditions that are accepted, of every shape that nests.
fn worst_accepted() -> Vec<String> {
    let longest = |make: &dyn Fn(usize) -> String| {
        let accepted = |n: usize| candidate(&deny(&make(n))).is_ok();
        let (mut fits, mut not) = (1, 2 * bounds::PARTS_MAX);
        assert!(accepted(fits) && !accepted(not), "{}", make(fits));
        while not - fits > 1 {
            let middle = fits.midpoint(not);
            if accepted(middle) { fits = middle } else { not = middle }
        }
        make(fits)
    };
    vec![
        longest(&|n| vec!["1"; n].join("+") + " > 0"),
        longest(&|n| vec!["true"; n].join("&&")),
        longest(&|n| "(".repeat(n) + "true" + &")".repeat(n)),
        longest(&|n| "!(".repeat(n) + "true" + &")".repeat(n)),
        longest(&|n| "true?(".repeat(n) + "true" + &"):false".repeat(n)),
        longest(&|n| "false?false:".repeat(n) + "true"),
        longest(&|n| "-(1+".repeat(n) + "1" + &")".repeat(n) + " != 0"),
        longest(&|n| {
            let chain = vec!["1"; n].join("+");
            format!("circle.proposals.all(a, circle.participants.exists(b, {chain} > 0))")
        }),
        longest(&|n| {
            let items: Vec<_> = (0..n).map(|item| item.to_string()).collect();
            format!("!(-1 in [{}])", items.join(","))
        }),
    ]
}

#[test]
fn the_worst_accepted_conditions_need_little_stack_and_time() {
    let view = sample();
    let conditions = worst_accepted();
    for condition in &conditions {
        let judge = candidate(&deny(condition)).unwrap();
        let view = &view;
        let (judgement, took) = std::thread::scope(|scope| {
            std::thread::Builder::new()
                .stack_size(512 << 10)
                .spawn_scoped(scope, || {
                    let begun = Instant::now();
                    (judge.judge(0, view), begun.elapsed())
                })
                .unwrap()
                .join()
                .unwrap()
        });
        assert!(matches!(judgement, Judgement::Denies | Judgement::Passes), "{condition}: {judgement:?}");
        assert!(took < Duration::from_secs(2), "{condition}: {took:?}");
    }
    // The bounds are what ended the search, not the search itself.
    assert!(conditions[0].len() > 100, "{}", conditions[0]);
    assert!(conditions[2].starts_with(&"(".repeat(bounds::BRACKETS_DEEP_MAX - 1)), "{}", conditions[2]);
}

#[test]
fn loops_over_a_huge_circle_end_at_the_budget() {
    let mut view = sample();
    let proposal = view.words["proposal"].clone();
    set(&mut view, "circle", "proposals", Value::List(vec![proposal; 5_000]));
    set(
        &mut view,
        "circle",
        "participants",
        vec![Value::from("x".repeat(60_000)); 5_000].into_iter().collect(),
    );
    let ended = Judgement::Error(format!("it takes more than {} steps", bounds::STEPS_MAX));
    for condition in [
        "circle.proposals.all(a, circle.proposals.all(b, a.version == b.version))",
        "circle.proposals.all(a, circle.proposals.all(b, a.version == b.version)) || true",
        "circle.participants.exists(p, p.contains('y'))",
        "circle.participants.exists(p, size(p) == 0)",
        "'y' in circle.participants || circle.participants.all(p, p in circle.participants)",
    ] {
        let judge = candidate(&deny(condition)).unwrap();
        let begun = Instant::now();
        assert_eq!(judge.judge(0, &view), ended, "{condition}");
        assert!(begun.elapsed() < Duration::from_secs(2), "{condition} took {:?}", begun.elapsed());
    }
    // What looks at each proposal once stays within it.
    let once = "circle.proposals.exists(p, p.withdrawn)";
    assert_eq!(judged(once, &view), Judgement::Passes);
}

/// Every refusal of the loader, as a writer of rules reads it.
#[test]
fn what_the_loader_says() {
    let long = format!("# {}\n{GOOD}", "x".repeat(bounds::RULE_FILE_BYTES_MAX));
    let tables = GOOD.split_once("[[").unwrap().0;
    let cases: Vec<(&str, String)> = vec![
        ("not TOML", with("title", "title = ")),
        ("too long", long),
        ("an unknown key", with("title", "titel = \"A title\"")),
        ("a key far from all", format!("severity = 3\n{GOOD}")),
        ("no title", with("title", "")),
        ("no incident", with("incident", "")),
        ("no owner", with("owes", "")),
        ("no remedy", with("remedy", "")),
        ("no moment", with("when", "")),
        ("no condition", with("deny", "")),
        ("empty texts", with("remedy", "remedy = ' '")),
        ("two lines", with("remedy", "remedy = \"one\\ntwo\"")),
        ("no text", with("message", "message = 3")),
        ("an unknown moment", with("when", "when = \"confrim\"")),
        ("an unknown subject", with("about", "about = \"proposals\"")),
        ("an unknown owner", with("owes", "owes = \"reviewer\"")),
        ("an owner that is not there", with("about", "about = \"circle\"")),
        ("nobody confirms yet", with("when", "when = \"propose\"").replace("producer", "confirmer")),
        ("an unknown word in a text", with("message", "message = \"{proposal.nmae} is gone\"")),
        ("a brace without end", with("message", "message = \"{proposal.name is gone\"")),
        (
            "a condition's place",
            with("deny", "deny = \"\"\"\nproposal.withdrawn ||\n  proposal.acepted\"\"\""),
        ),
        ("a condition with escapes", with("deny", "deny = \"proposal.acepted == \\u0028true)\"")),
        ("a slip in a function", deny("proposal.name.startWith('p')")),
        ("a function called otherwise", deny("proposal.name.startsWith('p', 1)")),
        (
            "faults of three conditions",
            deny("1").replace("applies = \"proposal.delivered\"", "applies = '2'\noverruled = '3'"),
        ),
        ("no examples", tables.to_owned()),
        ("no passing example", GOOD.split_once("[[examples.pass]]").unwrap().0.to_owned()),
        ("examples of another kind", GOOD.replace("[[examples.pass]]", "[[examples.passes]]")),
        ("one example, no list", GOOD.replace("[[examples.pass]]", "[examples.pass]")),
        ("examples as a text", format!("{tables}examples = 'none'\n")),
        ("an example without a reason", with("because", "")),
        ("an unknown word in an example", with("proposal.withdrawn", "propsal.withdrawn = true")),
        ("an unknown field in an example", with("proposal.withdrawn", "proposal.withdrawm = true")),
        ("a word set whole", with("proposal.withdrawn", "proposal = true")),
        ("another kind in an example", with("proposal.withdrawn", "proposal.withdrawn = \"yes\"")),
        ("another kind in a list", with("proposal.withdrawn", "proposal.unread = [1]")),
        ("a slip in a listed proposal", with("proposal.withdrawn", "circle.proposals = [{ nmae = 'a' }]")),
    ];
    let mut out = String::new();
    for (name, text) in cases {
        let errors = candidate(&text).err().unwrap_or_else(|| panic!("{name} was accepted"));
        writeln!(out, "{name}\n    {}", said(&errors).replace('\n', "\n    ")).unwrap();
    }
    insta::assert_snapshot!(out);
}

/// A team's folder with those files.
fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    folder
}

#[test]
fn a_teams_own_rules_stand_beside_the_shipped_ones() {
    let approve = with("when", "when = \"approve\"");
    let own = folder(&[
        ("README.md", "ours"),
        ("confirm/no-withdrawn.toml", GOOD),
        ("confirm/.no-withdrawn.toml.swp", "\u{0}"),
        ("approve/also.toml", &approve),
    ]);
    let judge = load_folder(own.path()).unwrap();
    let ids: Vec<_> = judge.rules().iter().map(|rule| &*rule.id).collect();
    assert!(ids.is_sorted());
    assert_eq!(ids.len(), CelJudge::shipped().rules().len() + 2);
    assert!(ids.contains(&"confirm/no-withdrawn") && ids.contains(&"approve/also"));
    assert!(judge.run_examples().iter().all(ExampleOutcome::holds));
}

#[test]
fn a_stored_rule_that_cannot_be_read_any_longer_denies() {
    let own = |id: &str, text: &str| OwnRule { id: id.into(), text: text.into() };
    let stored = [
        own("approve/broken", "no TOML"),
        own("confirm/good", GOOD),
        own("confirm/older", &deny("proposal.a_word_that_was")),
        own("text/broken", ""),
    ];
    let judge = CelRulebook::default().judge(&stored);
    assert!(judge.rules().iter().map(|rule| &rule.id).is_sorted());
    let said = |id: &str| {
        let index = judge.rules().iter().position(|rule| rule.id == id).unwrap();
        judge.judge(index, &sample())
    };
    assert_eq!(said("confirm/good"), Judgement::Passes);
    for id in ["approve/broken", "confirm/older", "text/broken"] {
        let judged = said(id);
        assert!(
            matches!(&judged, Judgement::Error(why) if why.starts_with("this version can't read it")),
            "{judged:?}"
        );
    }
    let of = |id: &str| judge.rules().iter().find(|rule| rule.id == id).unwrap();
    assert_eq!((of("approve/broken").when, of("text/broken").when), (Moment::Approve, Moment::Text));
    assert_eq!(of("confirm/older").owes, Owner::Person);
}

#[test]
fn what_is_wrong_with_a_folder_is_told_for_every_file() {
    let own = folder(&[
        ("confirm/unread.toml", GOOD),
        ("confirm/a b.toml", GOOD),
        ("confirm/slip.tml", GOOD),
        ("confirm/bad.toml", &deny("proposal.acepted")),
        ("approve/misplaced.toml", GOOD),
    ]);
    std::fs::write(own.path().join("confirm/bytes.toml"), [0xff]).unwrap();
    let here = own.path().display().to_string();
    let told = |own: &Path| said(&load_folder(own).unwrap_err()).replace(&here, "rules");
    insta::assert_snapshot!("folder", told(own.path()));

    let slips = folder(&[("confrim/a.toml", GOOD), ("loose.toml", GOOD)]);
    let here = slips.path().display().to_string();
    let told = said(&load_folder(slips.path()).unwrap_err()).replace(&here, "rules");
    insta::assert_snapshot!("folder_slips", told);

    // A shipped rule can't be replaced; the first folder has other faults that are told before it.
    let shadow = folder(&[("confirm/unread.toml", GOOD)]);
    let told = said(&load_folder(shadow.path()).unwrap_err());
    assert!(
        told.ends_with("confirm/unread is a shipped rule; the charter's [rules] can switch it off"),
        "{told}"
    );

    let gone = load_folder(&shadow.path().join("gone")).unwrap_err();
    assert!(gone[0].text.starts_with("this folder can't be read"), "{}", gone[0]);
}

#[test]
fn a_folder_holds_so_many_rules() {
    let names: Vec<_> = (0..=bounds::RULES_MAX).map(|n| format!("confirm/r{n}.toml")).collect();
    let own = folder(&names.iter().map(|name| (&**name, "x")).collect::<Vec<_>>());
    let errors = load_folder(own.path()).unwrap_err();
    assert_eq!(errors.last().unwrap().text, "more than 256 rules");
}

/// Made once: a test asks it a thousand times.
fn shipped() -> &'static CelJudge {
    static SHIPPED: LazyLock<CelJudge> = LazyLock::new(CelJudge::shipped);
    &SHIPPED
}

/// The shipped rules that deny.
fn denying(view: &View) -> Vec<&'static str> {
    let rules = shipped().rules().iter().enumerate();
    rules
        .filter(|(index, _)| shipped().judge(*index, view) == Judgement::Denies)
        .map(|(_, rule)| &*rule.id)
        .collect()
}

/// A value of a documented kind, as wild as the core could make it.
fn value(path: &'static str, kind: Kind) -> BoxedStrategy<Value> {
    let text = prop_oneof![
        Just(""),
        Just("approve"),
        Just("object"),
        Just("none"),
        Just("open"),
        Just("overruled"),
        Just("objection"),
        Just("note"),
        Just("\u{1b}[31m{proposal.name}"),
        Just("a'\"\\"),
    ]
    .prop_map(Value::from);
    match kind {
        Kind::Bool => any::<bool>().prop_map(Value::Bool).boxed(),
        Kind::Int => prop_oneof![any::<i64>(), 0..4_i64].prop_map(Value::Int).boxed(),
        Kind::Text => text.boxed(),
        Kind::Texts => prop::collection::vec(text, 0..4).prop_map(Value::List).boxed(),
        Kind::Maps => {
            assert_eq!(path, "circle.proposals");
            prop::collection::vec(word("proposal"), 0..3).prop_map(Value::List).boxed()
        }
    }
}

/// All fields of a word.
fn word(word: &'static str) -> BoxedStrategy<Value> {
    let fields: Vec<_> = FIELDS
        .iter()
        .filter_map(|(path, kind, _)| {
            let field = path.strip_prefix(word)?.strip_prefix('.')?;
            Some(value(path, *kind).prop_map(move |value| (field, value)))
        })
        .collect();
    fields.prop_map(|fields| fields.into_iter().collect()).boxed()
}

fn views() -> impl Strategy<Value = View> {
    let words = ["circle", "confirmer", "proposal", "review", "objection", "check", "escalation", "text"];
    words
        .map(|name| word(name).prop_map(move |value| (name, value)))
        .to_vec()
        .prop_map(|words| View { words: words.into_iter().collect() })
}

proptest! {
    /// The shipped rules have an answer to every view that is as documented, twice the same.
    #[test]
    fn shipped_rules_judge_every_documented_view(view in views()) {
        let judge = shipped();
        for (index, rule) in judge.rules().iter().enumerate() {
            let judgement = judge.judge(index, &view);
            prop_assert!(!matches!(judgement, Judgement::Error(_)), "{}: {judgement:?}", rule.id);
            prop_assert_eq!(&judgement, &judge.judge(index, &view));
            let said = (message(rule, &view), remedy(rule, &view));
            prop_assert!(said.0.len() < 4 << 10 && said.1.len() < 32 << 10);
        }
    }

    /// Whatever the versions, one of the two rules on open objections speaks, and no more than one owes.
    #[test]
    fn an_open_objection_is_one_rules_matter(view in views()) {
        let mut view = view;
        set(&mut view, "objection", "kind", "objection".into());
        set(&mut view, "objection", "status", "open".into());
        let denying = denying(&view);
        prop_assert_eq!(denying.iter().filter(|id| id.ends_with("-objection")).count(), 1, "{:?}", denying);
    }

    /// A review is settled by an approval of an eligible reviewer or by a person, and by nothing else.
    #[test]
    fn a_review_is_settled_by_an_approval_or_a_person(view in views()) {
        let mut view = view;
        set(&mut view, "proposal", "delivered", true.into());
        set(&mut view, "proposal", "withdrawn", false.into());
        let is = |path, value: &str| view.at(path) == Some(&value.into());
        let holds = |path| view.at(path) == Some(&true.into());
        let settled = holds("review.overruled") || (holds("review.eligible") && is("review.vote", "approve"));
        let denied = denying(&view);
        let denied = denied.contains(&"confirm/approval-missing") || denied.contains(&"confirm/reviewer-ineligible");
        prop_assert_eq!(settled, !denied);
    }

    /// A view that isn't as documented is an error at worst, and never a panic.
    #[test]
    fn shipped_rules_survive_every_other_view(view in views(), lost in 0..8_usize, kind in views()) {
        let judge = shipped();
        let mut view = view;
        let name = *view.words.keys().nth(lost).unwrap();
        view.words.remove(name);
        let odd = kind.words["circle"].clone();
        for (index, _) in judge.rules().iter().enumerate() {
            judge.judge(index, &view);
        }
        view.words.insert(name, Value::List(vec![odd]));
        for (index, _) in judge.rules().iter().enumerate() {
            judge.judge(index, &view);
        }
    }

    /// The loader answers to any text, and the parser to any condition.
    #[test]
    fn any_condition_gets_an_answer(condition in "[a-z0-9.()!&|<>='+*/?: \\[\\]{},\"-]{0,80}") {
        if let Ok(judge) = candidate(&deny(&condition)) {
            judge.judge(0, &sample());
        }
    }

    #[test]
    fn any_file_gets_an_answer(noise in "\\PC{0,40}", at in 0..GOOD.len()) {
        let mut text = GOOD.to_owned();
        text.insert_str(at, &noise);
        let _ = candidate(&text);
    }
}
