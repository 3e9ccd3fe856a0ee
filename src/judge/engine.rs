//! [`CelJudge`]: the shipped rules and a team's own, compiled once and asked often.

use std::path::Path;

use super::evaluate::{Fault, evaluate};
use super::example::{Example, Expected};
use super::load::{self, Conditions, LoadError, Loaded};
use super::own;
use crate::protocol::rule::{About, Judge, Judgement, Moment, OwnRule, Owner, Rule, View};

macro_rules! shipped {
    ($($id:literal),* $(,)?) => {
        /// The rules that every team has: id and text, in the order of their ids.
        pub(super) const SHIPPED: &[(&str, &str)] =
            &[$(($id, include_str!(concat!("../../rules/", $id, ".toml")))),*];
    };
}

shipped![
    "confirm/already-landed",
    "confirm/approval-missing",
    "confirm/failing-test",
    "confirm/open-escalation",
    "confirm/open-objection",
    "confirm/own-unaccepted",
    "confirm/required-check",
    "confirm/reviewer-ineligible",
    "confirm/unchecked-consensus",
    "confirm/undelivered",
    "confirm/undoes-landed",
    "confirm/unmerged",
    "confirm/unread",
    "confirm/unresolved-objection",
    "text/claim-without-evidence",
    "text/number-without-method",
    "text/total-without-breakdown",
];

/// Judges by rules that were read, typed and tried when it was made. Cheap to ask, and free to share:
/// it holds no state.
#[derive(Debug)]
pub struct CelJudge {
    // One entry a rule in each of the three, in the order of ids.
    rules: Vec<Rule>,
    /// Or why a rule of the log can't be read by this version.
    conditions: Vec<Result<Conditions, String>>,
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
        Self::load(&[]).expect("the shipped rules are part of this build, and a test loads them")
    }

    /// The shipped rules, and a team's own beside them.
    ///
    /// Everything that is wrong with those is reported, file by file. A rule of its own can't replace a
    /// shipped one: that would switch it off without a word in the charter.
    pub fn load(own: &[OwnRule]) -> Result<Self, Vec<LoadError>> {
        let mut errors = own::check_set(own);
        let mut rules = Vec::new();
        let shipped = SHIPPED.iter().map(|(id, text)| (format!("rules/{id}.toml"), *id, *text));
        let own = own.iter().map(|rule| (format!("{}.toml", rule.id), rule.id.as_str(), rule.text.as_str()));
        for (file, id, text) in shipped.chain(own) {
            match load(&file, id, text) {
                Ok(rule) => rules.push(rule),
                Err(more) => errors.extend(more),
            }
        }
        if errors.is_empty() { Ok(Self::of(rules)) } else { Err(errors) }
    }

    /// The shipped rules, and those that a person put in force once. One that this version can't read any
    /// longer denies whatever it is asked about, and says why.
    pub(super) fn from_log(own: &[OwnRule]) -> Self {
        let shipped = SHIPPED.iter().map(|(id, text)| {
            load(&format!("rules/{id}.toml"), id, text).expect("the shipped rules are part of this build")
        });
        let mut judge = Self::of(shipped.collect());
        for rule in own {
            let (loaded, condition, examples) = match load(&format!("{}.toml", rule.id), &rule.id, &rule.text)
            {
                Ok(loaded) => (loaded.rule, Ok(loaded.conditions), loaded.examples),
                Err(errors) => {
                    let why = errors.first().map_or(String::new(), ToString::to_string);
                    (unreadable(&rule.id), Err(format!("this version can't read it: {why}")), Vec::new())
                }
            };
            let at = judge.rules.partition_point(|known| known.id < loaded.id);
            judge.rules.insert(at, loaded);
            judge.conditions.insert(at, condition);
            judge.examples.insert(at, examples);
        }
        judge
    }

    /// One candidate rule alone, whatever folder its file stands in.
    pub fn candidate(file: &Path) -> Result<Self, Vec<LoadError>> {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let (stem, text) = own::text(file, &name).map_err(|error| vec![error])?;
        Self::candidate_text(&file.display().to_string(), stem, &text)
    }

    /// The same, from its text; `file` is what errors call it, `stem` the name that its id ends in.
    pub fn candidate_text(file: &str, stem: &str, text: &str) -> Result<Self, Vec<LoadError>> {
        load::rule(file, stem, None, text).map(|rule| Self::of(vec![rule]))
    }

    /// A judge by these rules.
    pub(super) fn of(mut loaded: Vec<Loaded>) -> Self {
        loaded.sort_by(|left, right| left.rule.id.cmp(&right.rule.id));
        let mut judge = Self { rules: Vec::new(), conditions: Vec::new(), examples: Vec::new() };
        for Loaded { rule, conditions, examples } in loaded {
            judge.rules.push(rule);
            judge.conditions.push(Ok(conditions));
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
        let conditions = match &self.conditions[rule] {
            Ok(conditions) => conditions,
            Err(why) => return Judgement::Error(why.clone()),
        };
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

/// One rule by its id.
fn load(file: &str, id: &str, text: &str) -> Result<Loaded, Vec<LoadError>> {
    let Some((moment, stem)) = own::parts(id) else {
        let text = "a rule's id is its folder and its name: confirm/no-friday".to_owned();
        return Err(vec![LoadError { file: file.to_owned(), place: None, text, nearest: None }]);
    };
    load::rule(file, stem, Some(moment), text)
}

/// What stands in the place of a rule that can't be read.
fn unreadable(id: &str) -> Rule {
    let when = own::parts(id).map_or(Moment::Confirm, |(moment, _)| moment);
    Rule {
        id: id.to_owned(),
        title: "A rule of the team's own that this version can't read".to_owned(),
        incident: String::new(),
        when,
        about: match when {
            Moment::Confirm => About::Circle,
            Moment::Propose | Moment::Approve => About::Proposal,
            Moment::Text => About::Text,
        },
        applies: None,
        deny: "true".to_owned(),
        overruled: None,
        message: String::new(),
        owes: Owner::Person,
        remedy: "countersign charter adopt FILE --reason TEXT".to_owned(),
    }
}
