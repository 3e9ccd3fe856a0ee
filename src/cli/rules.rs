//! `countersign rules`: the rules that judge a team, and those that are on their way.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::failure::Failure;
use super::output::{Answer, visible};
use super::speaker::{Global, Speaker};
use super::{charter, json as form, words};
use crate::client::proto::{self, CheckRuleRequest, ListRulesRequest, Requirement, RequirementState};
use crate::judge::{CelJudge, ExampleOutcome, Expected, LoadError, own};
use crate::protocol::charter::Charter;
use crate::protocol::rejection::counted;
use crate::protocol::rule::{Judge as _, Judgement, Moment, OwnRule};

/// The charter that is taken where none is named.
const CHARTER_NAME: &str = "charter.toml";

/// The rules that judge a team.
#[derive(Args, Debug)]
pub struct Rules {
    #[command(subcommand)]
    command: RulesCommand,
}

#[derive(Subcommand, Debug)]
enum RulesCommand {
    /// Lists the rules that judge the team, and how often each denied
    #[command(after_help = "Example:
  countersign rules list

How often a rule denied is counted since the server started; call-outs are counted by the log.")]
    List,
    /// Runs the examples of the shipped rules and of a team's own, here
    #[command(after_help = "Examples:
  countersign rules test
  countersign rules test --charter charter.toml
  countersign rules test --folder rules

Own rules are those of the folder that the charter names; ./charter.toml is taken where it is there.

Refused with RULE_REFUSED, CHARTER_REFUSED, EXAMPLES_FAILED.")]
    Test {
        /// The charter whose own rules are tested
        #[arg(long, value_name = "FILE", conflicts_with = "folder")]
        charter: Option<PathBuf>,
        /// A folder of own rules
        #[arg(long, value_name = "DIR")]
        folder: Option<PathBuf>,
    },
    /// Tries a candidate rule on the team as it is now, and changes nothing
    #[command(after_help = "Example:
  countersign rules check --rule rules/confirm/no-friday.toml

A rule of propose is asked about every current version, one of approve about every approval that counts.

Refused with RULE_REFUSED, EXAMPLES_FAILED.")]
    Check {
        /// The rule's file
        #[arg(long, value_name = "FILE")]
        rule: PathBuf,
    },
}

impl Rules {
    /// `test` needs no server.
    pub(super) fn alone(&self) -> Option<Result<Answer, Failure>> {
        match &self.command {
            RulesCommand::Test { charter, folder } => Some(test(charter.as_deref(), folder.as_deref())),
            RulesCommand::List | RulesCommand::Check { .. } => None,
        }
    }

    pub(super) async fn run(self, global: &Global) -> Result<Answer, Failure> {
        match self.command {
            RulesCommand::List => list(global).await,
            RulesCommand::Test { charter, folder } => test(charter.as_deref(), folder.as_deref()),
            RulesCommand::Check { rule } => check(&rule, global).await,
        }
    }
}

/// The rules of the folder that a charter names, beside it.
pub fn own_rules(file: &Path, charter: &Charter) -> Result<Vec<OwnRule>, Failure> {
    let Some(folder) = &charter.rules.folder else { return Ok(Vec::new()) };
    let folder = file.parent().unwrap_or(Path::new("")).join(folder);
    own::read_folder(&folder).map_err(|errors| refused(&errors))
}

/// As the server takes them.
pub fn sent(rules: Vec<OwnRule>) -> Vec<proto::OwnRule> {
    rules.into_iter().map(|rule| proto::OwnRule { id: rule.id, text: rule.text }).collect()
}

/// As the server tells them.
pub fn received(rules: Vec<proto::OwnRule>) -> Vec<OwnRule> {
    rules.into_iter().map(|rule| OwnRule { id: rule.id, text: rule.text }).collect()
}

/// Refuses a charter with rules that can't be put in force.
pub fn check_own(file: &Path, bytes: &[u8], charter: &Charter) -> Result<Vec<OwnRule>, Failure> {
    let rules = own_rules(file, charter)?;
    let text = String::from_utf8_lossy(bytes);
    own::check(&file.display().to_string(), &text, charter, &rules).map_err(|errors| refused(&errors))?;
    Ok(rules)
}

/// What is wrong with rules, each finding with its place.
fn refused(errors: &[LoadError]) -> Failure {
    let places = errors.iter().map(|error| {
        json!({
            "file": error.file,
            "line": error.place.map(|(line, _)| line),
            "column": error.place.map(|(_, column)| column),
            "what": error.text,
            "nearest": error.nearest,
        })
    });
    let findings: Value = places.collect();
    let told: Vec<String> = errors.iter().map(ToString::to_string).collect();
    Failure::refused("RULE_REFUSED", told.join("\n"), "mend it, then run: countersign rules test")
        .with("findings", findings)
}

async fn list(global: &Global) -> Result<Answer, Failure> {
    let speaker = Speaker::connect(global).await?;
    let listed = speaker.client.list_rules(ListRulesRequest {}).await?;
    let mut text = String::new();
    for rule in &listed.rules {
        let mode = if rule.mode == "enforce" { String::new() } else { format!(" ({})", visible(&rule.mode)) };
        let own = if rule.own { ", own" } else { "" };
        let told = match (rule.denied, rule.called_out) {
            (0, 0) => String::new(),
            (denied, 0) => format!(", denied {}", counted(denied, "time")),
            (0, called) => format!(", called out {}", counted(called, "time")),
            (denied, called) => {
                format!(", denied {}, called out {}", counted(denied, "time"), counted(called, "time"))
            }
        };
        text.push_str(&format!("{}{mode}{own}{told}\n    {}\n", visible(&rule.id), visible(&rule.title)));
    }
    let rules: Value = listed.rules.iter().map(form::rule).collect();
    Ok(Answer::new(json!({ "rules": rules, "sequence": listed.sequence }), text))
}

fn test(named: Option<&Path>, folder: Option<&Path>) -> Result<Answer, Failure> {
    let rules = match (named, folder) {
        (_, Some(folder)) => own::read_folder(folder).map_err(|errors| refused(&errors))?,
        (Some(file), None) => own_of(file)?,
        (None, None) if Path::new(CHARTER_NAME).exists() => own_of(Path::new(CHARTER_NAME))?,
        (None, None) => Vec::new(),
    };
    let judge = CelJudge::load(&rules).map_err(|errors| refused(&errors))?;
    let own: Vec<&str> = rules.iter().map(|rule| rule.id.as_str()).collect();
    tested(&judge.run_examples(), &own)
}

fn own_of(file: &Path) -> Result<Vec<OwnRule>, Failure> {
    let (bytes, charter) = charter::read(file)?;
    check_own(file, &bytes, &charter)
}

/// What came of examples, by rule.
fn tested(outcomes: &[ExampleOutcome], own: &[&str]) -> Result<Answer, Failure> {
    let mut by_rule: BTreeMap<&str, Vec<&ExampleOutcome>> = BTreeMap::new();
    for outcome in outcomes {
        by_rule.entry(&outcome.rule).or_default().push(outcome);
    }
    let fails = |outcome: &&&ExampleOutcome| !outcome.holds();
    let failed = outcomes.iter().filter(|outcome| !outcome.holds()).count() as u64;
    let mut text = String::new();
    for (rule, outcomes) in &by_rule {
        let own = if own.contains(rule) { ", own" } else { "" };
        let count = outcomes.len() as u64;
        let broken: Vec<&&ExampleOutcome> = outcomes.iter().filter(fails).collect();
        text.push_str(&match broken.len() {
            0 if count == 1 => format!("{rule}{own}: 1 example holds\n"),
            0 => format!("{rule}{own}: {count} examples hold\n"),
            fail => format!("{rule}{own}: {fail} of {} not as it must be\n", counted(count, "example")),
        });
        for outcome in broken {
            text.push_str(&format!("    {}\n", told(outcome)));
        }
    }
    let rules: Value = by_rule
        .iter()
        .map(|(rule, outcomes)| {
            let fail: Vec<Value> = outcomes.iter().filter(fails).map(|one| example_json(one)).collect();
            json!({ "id": rule, "own": own.contains(rule), "examples": outcomes.len(), "failed": fail })
        })
        .collect();
    if failed > 0 {
        let lines: Vec<String> = outcomes
            .iter()
            .filter(|one| !one.holds())
            .map(|one| format!("{}, {}", one.rule, told(one)))
            .collect();
        return Err(Failure::refused(
            "EXAMPLES_FAILED",
            lines.join("\n"),
            "mend the rule or its example, then run: countersign rules test",
        )
        .with("rules", rules));
    }
    let (examples, of) = (outcomes.len() as u64, by_rule.len() as u64);
    text.push_str(&format!(
        "{} of {} are as they must be\n",
        counted(examples, "example"),
        counted(of, "rule")
    ));
    Ok(Answer::new(json!({ "rules": rules, "examples": examples }), text))
}

fn told(outcome: &ExampleOutcome) -> String {
    let (must, because) = (expected(outcome.expected), visible(&outcome.because));
    format!("line {}: it must {must} because {because}, and {}", outcome.line, said(&outcome.judgement))
}

fn expected(expected: Expected) -> &'static str {
    match expected {
        Expected::Deny => "deny",
        Expected::Pass => "pass",
    }
}

fn said(judgement: &Judgement) -> String {
    match judgement {
        Judgement::NotApplicable => "does not apply".to_owned(),
        Judgement::Passes => "passes".to_owned(),
        Judgement::Overruled => "is overruled".to_owned(),
        Judgement::Denies => "denies".to_owned(),
        Judgement::Error(what) => format!("could not be judged: {}", visible(what)),
    }
}

fn example_json(outcome: &ExampleOutcome) -> Value {
    json!({
        "line": outcome.line,
        "because": outcome.because,
        "expected": expected(outcome.expected),
        "said": said(&outcome.judgement),
    })
}

async fn check(file: &Path, global: &Global) -> Result<Answer, Failure> {
    let candidate = CelJudge::candidate(file).map_err(|errors| refused(&errors))?;
    let tested = tested(&candidate.run_examples(), &[])?;
    let name = file.display().to_string();
    let text = std::fs::read_to_string(file).map_err(|why| Failure::io(&name, &why))?;
    let speaker = Speaker::connect(global).await?;
    let checked = speaker.client.check_rule(CheckRuleRequest { file: name, text }).await?;
    let denies =
        |one: &&Requirement| matches!(one.state(), RequirementState::Unsatisfied | RequirementState::Error);
    let denied: Vec<&Requirement> = checked.requirements.iter().filter(denies).collect();
    let asked = checked.requirements.len() as u64;
    let mut out = tested.text;
    let is_text = candidate.rules().iter().any(|rule| rule.when == Moment::Text);
    out.push_str(&match (asked, denied.len() as u64) {
        _ if is_text => {
            "a rule of text is asked when a text is written: there is nothing to try it on now\n".to_owned()
        }
        (0, _) => "there is nothing that it could be asked about now\n".to_owned(),
        (asked, 0) => format!("asked about {} of the team now, it denies nothing\n", counted(asked, "thing")),
        (asked, denied) => {
            format!("asked about {} of the team now, it denies {denied}:\n", counted(asked, "thing"))
        }
    });
    for one in &denied {
        let who = visible(&words::names(&one.who));
        out.push_str(&format!(
            "  {}: {}\n    {who} can: {}\n",
            visible(&one.subject),
            visible(&one.detail),
            visible(&one.command)
        ));
    }
    let requirements: Value = checked.requirements.iter().map(form::requirement).collect();
    Ok(Answer::new(
        json!({
            "rule": checked.rule.as_ref().map(form::rule),
            "asked": asked,
            "denied": denied.len(),
            "requirements": requirements,
            "sequence": checked.sequence,
        }),
        out,
    ))
}
