//! Holds `rules/README.md` to the code: its tables are made from it, its example loads.
//! `UPDATE=1` rewrites the tables.

use std::fmt::Write as _;

use super::compile::FUNCTIONS;
use super::load::{self, ABOUTS, KEYS, MOMENTS, OWNERS};
use super::sample;
use super::{bounds, engine::CelJudge};
use crate::protocol::rule::view::{FIELDS, Kind};

const README: &str = "rules/README.md";

fn keys() -> String {
    let mut table = "| key | | |\n| --- | --- | --- |\n".to_owned();
    for (key, required, meaning) in KEYS {
        let required = if *required { "required" } else { "" };
        writeln!(table, "| `{key}` | {required} | {meaning} |").expect("a string takes all");
    }
    table
}

fn words() -> String {
    let mut table = "| word | kind | what it says | in the sample |\n| --- | --- | --- | --- |\n".to_owned();
    for (path, kind, meaning) in FIELDS {
        let kind = match kind {
            Kind::Bool => "bool",
            Kind::Int => "int",
            Kind::Text => "text",
            Kind::Texts => "list of texts",
            Kind::Maps => "list",
        };
        let sample = sample::value(path).map_or("the proposal".into(), |value| match value.to_string() {
            empty if empty.is_empty() => "none".into(),
            value => format!("`{value}`"),
        });
        writeln!(table, "| `{path}` | {kind} | {meaning} | {sample} |").expect("a string takes all");
    }
    table
}

fn limits() -> String {
    let rows = [
        ("bytes of a rule file", bounds::RULE_FILE_BYTES_MAX),
        ("rules of a team's own", bounds::RULES_MAX),
        ("bytes of all of them", bounds::OWN_RULES_BYTES_MAX),
        ("bytes of a condition", bounds::CONDITION_BYTES_MAX),
        ("brackets in one another", bounds::BRACKETS_DEEP_MAX),
        ("words, constants, operators and calls of a condition", bounds::PARTS_MAX),
        ("of these in one another", bounds::PARTS_DEEP_MAX),
        ("`all`, `exists` and `exists_one` in one another", bounds::QUANTIFIERS_DEEP_MAX),
        ("bytes of a pattern", bounds::PATTERN_BYTES_MAX),
        ("patterns of one condition", bounds::PATTERNS_MAX),
        ("patterns of all rules of a team's own", bounds::OWN_PATTERNS_MAX),
        ("bytes of a text that a pattern is tried on", bounds::PATTERN_TEXT_BYTES_MAX),
        ("steps of one evaluation", bounds::STEPS_MAX as usize),
    ];
    let mut table = "| bound | at most |\n| --- | --- |\n".to_owned();
    for (what, most) in rows {
        writeln!(table, "| {what} | {most} |").expect("a string takes all");
    }
    table
}

/// The text with that block's content replaced.
fn replaced(readme: &str, block: &str, content: &str) -> String {
    let open = format!("<!-- {block} -->\n");
    let (before, rest) = readme.split_once(&open).unwrap_or_else(|| panic!("{README} has no {open}"));
    let (_, after) = rest.split_once("<!-- end -->").expect("a block ends");
    format!("{before}{open}{content}<!-- end -->{after}")
}

#[test]
fn its_tables_are_those_of_the_code() {
    let readme = std::fs::read_to_string(README).expect("the README stands beside the rules");
    let made = [("keys", keys()), ("bounds", limits()), ("words", words())]
        .iter()
        .fold(readme.clone(), |readme, (block, content)| replaced(&readme, block, content));
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(README, &made).expect("the README can be written");
    } else {
        assert_eq!(readme, made, "UPDATE=1 rewrites it");
    }
}

#[test]
fn it_names_every_word_of_the_grammar() {
    let readme = std::fs::read_to_string(README).expect("the README stands beside the rules");
    let known = MOMENTS.iter().map(|(word, _)| *word);
    let known = known.chain(ABOUTS.iter().map(|(word, _)| *word)).chain(OWNERS.iter().map(|(word, _)| *word));
    for word in known {
        assert!(readme.contains(&format!("`{word}`")), "{word}");
    }
    for function in FUNCTIONS {
        assert!(readme.contains(&format!("{function}(")), "{function}");
    }
}

#[test]
fn its_example_is_a_rule_that_does_what_its_examples_say() {
    let readme = std::fs::read_to_string(README).expect("the README stands beside the rules");
    let (_, rest) = readme.split_once("```toml\n").expect("it has an example");
    let (text, _) = rest.split_once("```").expect("the example ends");
    let rule = load::rule(README, "example", None, text).unwrap_or_else(|errors| panic!("{errors:?}"));
    let outcomes = CelJudge::of(vec![rule]).run_examples();
    assert!(outcomes.iter().all(super::ExampleOutcome::holds), "{outcomes:?}");
}
