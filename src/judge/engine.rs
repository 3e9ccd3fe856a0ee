//! [`CelJudge`]: the shipped rules and a team's own, compiled once and asked often.

use std::path::Path;

use super::evaluate::{Fault, evaluate};
use super::example::{Example, Expected};
use super::load::{self, Conditions, LoadError, Loaded, MOMENTS};
use crate::protocol::rule::{Judge, Judgement, Rule, View};

macro_rules! shipped {
    ($($id:literal),* $(,)?) => {
        /// The rules that every team has: id and text, in the order of their ids.
        const SHIPPED: &[(&str, &str)] =
            &[$(($id, include_str!(concat!("../../rules/", $id, ".toml")))),*];
    };
}

shipped![
    "confirm/approval-missing",
    "confirm/failing-test",
    "confirm/open-escalation",
    "confirm/open-objection",
    "confirm/own-unaccepted",
    "confirm/required-check",
    "confirm/reviewer-ineligible",
    "confirm/unchecked-consensus",
    "confirm/undelivered",
    "confirm/unread",
    "confirm/unresolved-objection",
];

/// Judges by rules that were read, typed and tried when it was made. Cheap to ask, and free to share:
/// it holds no state.
#[derive(Debug)]
pub struct CelJudge {
    // One entry a rule in each of the three, in the order of ids.
    rules: Vec<Rule>,
    conditions: Vec<Conditions>,
    examples: Vec<Vec<Example>>,
}

/// What became of one example.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExampleOutcome {
    /// The rule's id.
    pub rule: String,
    /// The line of the rule's file at which the example stands.
    pub line: usize,
    /// Why the rule must say what is expected.
    pub because: String,
    /// What it must say.
    pub expected: Expected,
    /// What it says.
    pub judgement: Judgement,
}

impl ExampleOutcome {
    /// Whether the rule said what it must. An error is neither a denial for cause nor a pass.
    pub fn holds(&self) -> bool {
        match self.expected {
            Expected::Deny => self.judgement == Judgement::Denies,
            Expected::Pass => {
                matches!(self.judgement, Judgement::Passes | Judgement::NotApplicable | Judgement::Overruled)
            }
        }
    }
}

impl CelJudge {
    /// The shipped rules alone.
    pub fn shipped() -> Self {
        Self::load(None).expect("the shipped rules are part of this build, and a test loads them")
    }

    /// The shipped rules, and those of a team's own folder beside them.
    ///
    /// Everything that is wrong in that folder is reported, file by file. A rule of its own can't
    /// replace a shipped one: that would switch it off without a word in the charter.
    pub fn load(own: Option<&Path>) -> Result<Self, Vec<LoadError>> {
        let mut errors = Vec::new();
        let mut rules = Vec::new();
        for (id, text) in SHIPPED {
            let (folder, stem) = id.split_once('/').expect("an id is a folder and a name");
            let folder = MOMENTS.iter().find(|(name, _)| *name == folder).map(|(_, moment)| *moment);
            match load::rule(&format!("rules/{id}.toml"), stem, folder, text) {
                Ok(rule) => rules.push(rule),
                Err(more) => errors.extend(more),
            }
        }
        if let Some(path) = own {
            match load::folder(path) {
                Ok(own) => {
                    for rule in own {
                        if SHIPPED.iter().any(|(id, _)| *id == rule.rule.id) {
                            errors.push(LoadError {
                                file: path.join(&rule.rule.id).with_extension("toml").display().to_string(),
                                place: None,
                                text: format!(
                                    "{} is a shipped rule; the charter's [rules] can switch it off",
                                    rule.rule.id
                                ),
                                nearest: None,
                            });
                        } else {
                            rules.push(rule);
                        }
                    }
                }
                Err(more) => errors.extend(more),
            }
        }
        if errors.is_empty() { Ok(Self::of(rules)) } else { Err(errors) }
    }

    /// One candidate rule alone, whatever folder its file stands in.
    pub fn candidate(file: &Path) -> Result<Self, Vec<LoadError>> {
        load::file(file, None).map(|rule| Self::of(vec![rule]))
    }

    /// A judge by these rules.
    pub(super) fn of(mut loaded: Vec<Loaded>) -> Self {
        loaded.sort_by(|left, right| left.rule.id.cmp(&right.rule.id));
        let mut judge = Self { rules: Vec::new(), conditions: Vec::new(), examples: Vec::new() };
        for Loaded { rule, conditions, examples } in loaded {
            judge.rules.push(rule);
            judge.conditions.push(conditions);
            judge.examples.push(examples);
        }
        judge
    }

    /// Every example with its rule, in the order of ids and then of lines.
    pub fn examples(&self) -> impl Iterator<Item = (&Rule, &Example)> {
        self.rules
            .iter()
            .zip(&self.examples)
            .flat_map(|(rule, examples)| examples.iter().map(move |example| (rule, example)))
    }

    /// Asks every rule about each of its examples.
    pub fn run_examples(&self) -> Vec<ExampleOutcome> {
        self.rules
            .iter()
            .zip(&self.examples)
            .enumerate()
            .flat_map(|(index, (rule, examples))| {
                examples.iter().map(move |example| ExampleOutcome {
                    rule: rule.id.clone(),
                    line: example.line,
                    because: example.because.clone(),
                    expected: example.expected,
                    judgement: self.judge(index, &example.view),
                })
            })
            .collect()
    }
}

impl Judge for CelJudge {
    fn rules(&self) -> &[Rule] {
        &self.rules
    }

    fn judge(&self, rule: usize, view: &View) -> Judgement {
        let conditions = &self.conditions[rule];
        let holds = |condition| evaluate(condition, view);
        let judged = || -> Result<Judgement, Fault> {
            if let Some(applies) = &conditions.applies
                && !holds(applies)?
            {
                return Ok(Judgement::NotApplicable);
            }
            // Before `deny`: what a person decided is shown as decided, not as never in question.
            if let Some(overruled) = &conditions.overruled
                && holds(overruled)?
            {
                return Ok(Judgement::Overruled);
            }
            Ok(if holds(&conditions.deny)? { Judgement::Denies } else { Judgement::Passes })
        };
        judged().unwrap_or_else(|fault| Judgement::Error(fault.to_string()))
    }
}
