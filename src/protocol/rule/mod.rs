//! Rules: written conditions that are checked before anyone may say "done".
//!
//! A [`Rule`] says what it looks at, when it denies, what it then says, who owes and which command
//! remedies it. Its condition is an expression over a [`View`], the words of which [`view::FIELDS`]
//! documents. The core makes the view and asks a [`Judge`]; the engine that evaluates expressions
//! stands outside (`src/judge/`).
//!
//! Rules of [`Moment::Text`] are the referee's: they look at the form of what somebody says, refuse
//! nothing, and have a call-out appended.

pub mod own;
pub mod view;

use std::fmt;
use std::sync::Arc;

pub use own::{OwnRule, changes};
pub use view::{Value, View};

/// When a rule is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Moment {
    /// Before a version is accepted.
    Propose,
    /// Before an approval is accepted.
    Approve,
    /// Before a confirmation is accepted.
    Confirm,
    /// After a text was accepted; it refuses nothing.
    Text,
}

/// What a rule looks at: it is asked once for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum About {
    /// The circle: words `circle` and `confirmer`.
    Circle,
    /// Each proposal of the circle: also `proposal`.
    Proposal,
    /// Each review that a proposal must have, one a reviewer and lens: also `review`.
    Review,
    /// Each objection and note on a proposal: also `objection`.
    Objection,
    /// Each check that the charter requires of a proposal: also `check`.
    Check,
    /// Each open escalation about the circle or one of its proposals: `circle`, `confirmer`, `escalation`.
    Escalation,
    /// A text that somebody wrote: `text` alone.
    Text,
}

/// Who owes once a rule denies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Owner {
    /// The proposal's producer.
    Producer,
    /// The reviewer in question, or all of the proposal's.
    Reviewers,
    /// Whoever confirms.
    Confirmer,
    /// A person.
    Person,
    /// Whoever wrote the text. It is a courtesy: nothing waits for it.
    Author,
}

/// A rule, read and checked: it has an owner and a remedy, and its expressions compile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Its folder and file name: `confirm/open-objection`.
    pub id: String,
    /// One line that says what it demands.
    pub title: String,
    /// The incident that taught it.
    pub incident: String,
    /// When it is asked.
    pub when: Moment,
    /// What it looks at.
    pub about: About,
    /// Where it has nothing to say: a condition, or always asked.
    pub applies: Option<String>,
    /// When it denies: a condition.
    pub deny: String,
    /// When a person's decision stands in its stead: a condition, or never.
    pub overruled: Option<String>,
    /// What it says when it denies; `{proposal.ref}` and the like are filled in from the view.
    pub message: String,
    /// Who then owes.
    pub owes: Owner,
    /// The command that remedies it, filled in like the message.
    pub remedy: String,
}

/// What a judge says of one rule on one view.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// It has nothing to say here.
    NotApplicable,
    /// It is met.
    Passes,
    /// A person decided in its stead.
    Overruled,
    /// It is not met.
    Denies,
    /// Its condition failed or ran over its bounds; that is no pass.
    Error(String),
}

/// Evaluates rules. Deterministic: the same rule on the same view gets the same judgement.
pub trait Judge: Send + Sync {
    /// The rules, in the order of their ids.
    fn rules(&self) -> &[Rule];

    /// What the rule at that index of [`Judge::rules`] says of `view`.
    fn judge(&self, rule: usize, view: &View) -> Judgement;
}

/// Makes the judge of a team.
pub trait Rulebook: Send + Sync {
    /// Judges by the shipped rules and a team's own. An own rule that can't be read stays a rule that denies
    /// and says so: what a person put in force never falls silent.
    fn judge(&self, own: &[OwnRule]) -> Arc<dyn Judge>;
}

/// The most characters of one value in a message, and the most bytes of a message and of a remedy. A remedy's
/// values are commands, which a cut would break.
const VALUE_CHARS_MAX: usize = 400;
const MESSAGE_BYTES_MAX: usize = 2 << 10;
const REMEDY_BYTES_MAX: usize = 16 << 10;

/// A rule's message, filled in from the view; long values are cut.
pub fn message(rule: &Rule, view: &View) -> String {
    fill(&rule.message, view, VALUE_CHARS_MAX, MESSAGE_BYTES_MAX)
}

/// A rule's remedy, filled in from the view.
pub fn remedy(rule: &Rule, view: &View) -> String {
    fill(&rule.remedy, view, usize::MAX, REMEDY_BYTES_MAX)
}

/// Fills `{proposal.ref}` and the like from the view. A word that the view does not have stays as
/// it stands: the loader has refused such a text already.
fn fill(template: &str, view: &View, value_chars_max: usize, bytes_max: usize) -> String {
    let mut out = String::with_capacity(template.len());
    let mut rest = template;
    while let Some(open) = rest.find('{') {
        out.push_str(&rest[..open]);
        let after = &rest[open + 1..];
        match after.find('}').and_then(|close| Some((close, view.at(&after[..close])?))) {
            Some((close, value)) => {
                let mut shown = value.to_string();
                if let Some((at, _)) = shown.char_indices().nth(value_chars_max) {
                    shown.truncate(at);
                    shown.push('…');
                }
                out.push_str(&shown);
                if out.len() > bytes_max {
                    let end = (0..=bytes_max).rev().find(|end| out.is_char_boundary(*end)).unwrap_or(0);
                    out.truncate(end);
                    out.push('…');
                    return out;
                }
                rest = &after[close + 1..];
            }
            None => {
                out.push('{');
                rest = after;
            }
        }
    }
    out.push_str(rest);
    out
}

impl About {
    /// Whether it is about one proposal of the circle, so that there is a producer and reviewers.
    pub fn has_proposal(self) -> bool {
        !matches!(self, Self::Circle | Self::Escalation | Self::Text)
    }
}

impl fmt::Display for About {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Circle => "circle",
            Self::Proposal => "proposal",
            Self::Review => "review",
            Self::Objection => "objection",
            Self::Check => "check",
            Self::Escalation => "escalation",
            Self::Text => "text",
        })
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Producer => "producer",
            Self::Reviewers => "reviewers",
            Self::Confirmer => "confirmer",
            Self::Person => "person",
            Self::Author => "author",
        })
    }
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Propose => "propose",
            Self::Approve => "approve",
            Self::Confirm => "confirm",
            Self::Text => "text",
        })
    }
}
