//! One condition on one view. Allocates nothing that grows, recurses no deeper than the condition
//! stands, and counts every step.
//!
//! The first fault ends it. CEL lets `a || b` be true where `a` went wrong and `b` is true; here that
//! is a fault, because a rule that went wrong is no pass.

use std::collections::BTreeMap;

use super::bounds::{PATTERN_TEXT_BYTES_MAX, STEPS_MAX};
use super::compile::{Arithmetic, Condition, Order, Part, Quantifier, Search};
use crate::protocol::rule::{Value, View};

/// Why a condition has no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Fault {
    #[error("it divides by zero")]
    DivisionByZero,
    #[error("a number is out of range")]
    OutOfRange,
    #[error("it takes more than {STEPS_MAX} steps")]
    TooManySteps,
    #[error("a text of {0} bytes is more than the {PATTERN_TEXT_BYTES_MAX} that a pattern is tried on")]
    TextTooLong(usize),
    #[error("the view has no {0:?}")]
    Missing(&'static str),
    #[error("the view has another kind of value than is documented, where {0} is asked")]
    Kind(&'static str),
}

/// A value as a condition sees it: borrowed from the view or the rule, or a scalar.
#[derive(Clone, Copy, Debug)]
enum Seen<'a> {
    Bool(bool),
    Int(i64),
    Text(&'a str),
    List(&'a [Value]),
    Map(&'a BTreeMap<&'static str, Value>),
}

impl<'a> From<&'a Value> for Seen<'a> {
    fn from(value: &'a Value) -> Self {
        match value {
            Value::Bool(value) => Self::Bool(*value),
            Value::Int(value) => Self::Int(*value),
            Value::Text(text) => Self::Text(text),
            Value::List(values) => Self::List(values),
            Value::Map(map) => Self::Map(map),
        }
    }
}

/// What `condition` says of `view`.
pub(super) fn evaluate(condition: &Condition, view: &View) -> Result<bool, Fault> {
    Evaluation { view, items: Vec::new(), steps: 0 }.bool(&condition.0)
}

struct Evaluation<'a> {
    view: &'a View,
    /// The items that the quantifiers around the current place look at, outermost first.
    items: Vec<&'a Value>,
    steps: u32,
}

impl<'a> Evaluation<'a> {
    fn spend(&mut self, steps: usize) -> Result<(), Fault> {
        let steps = u32::try_from(steps).unwrap_or(u32::MAX);
        self.steps = self.steps.saturating_add(steps);
        if self.steps > STEPS_MAX { Err(Fault::TooManySteps) } else { Ok(()) }
    }

    fn bool(&mut self, part: &'a Part) -> Result<bool, Fault> {
        match self.see(part)? {
            Seen::Bool(value) => Ok(value),
            _ => Err(Fault::Kind("a bool")),
        }
    }

    fn int(&mut self, part: &'a Part) -> Result<i64, Fault> {
        match self.see(part)? {
            Seen::Int(value) => Ok(value),
            _ => Err(Fault::Kind("an int")),
        }
    }

    fn text(&mut self, part: &'a Part) -> Result<&'a str, Fault> {
        match self.see(part)? {
            Seen::Text(text) => Ok(text),
            _ => Err(Fault::Kind("a text")),
        }
    }

    fn list(&mut self, part: &'a Part) -> Result<&'a [Value], Fault> {
        match self.see(part)? {
            Seen::List(values) => Ok(values),
            _ => Err(Fault::Kind("a list")),
        }
    }

    fn see(&mut self, part: &'a Part) -> Result<Seen<'a>, Fault> {
        self.spend(1)?;
        Ok(match part {
            Part::Constant(value) => value.into(),
            Part::Word(word) => self.view.words.get(word).ok_or(Fault::Missing(word))?.into(),
            // The compiler gives only depths of quantifiers that stand around the part.
            Part::Item(depth) => self.items[*depth].into(),
            Part::Field(of, field) => match self.see(of)? {
                Seen::Map(map) => map.get(field).ok_or(Fault::Missing(field))?.into(),
                _ => return Err(Fault::Kind("a map")),
            },
            Part::Not(of) => Seen::Bool(!self.bool(of)?),
            Part::Negate(of) => Seen::Int(self.int(of)?.checked_neg().ok_or(Fault::OutOfRange)?),
            Part::And(both) => Seen::Bool(self.bool(&both[0])? && self.bool(&both[1])?),
            Part::Or(both) => Seen::Bool(self.bool(&both[0])? || self.bool(&both[1])?),
            Part::Choose(three) => {
                let chosen = if self.bool(&three[0])? { &three[1] } else { &three[2] };
                self.see(chosen)?
            }
            Part::Equal(both) => Seen::Bool(self.compare(both)?.is_eq()),
            Part::Unequal(both) => Seen::Bool(self.compare(both)?.is_ne()),
            Part::Order(how, both) => {
                let stands = self.compare(both)?;
                Seen::Bool(match how {
                    Order::Less => stands.is_lt(),
                    Order::LessOrEqual => stands.is_le(),
                    Order::Greater => stands.is_gt(),
                    Order::GreaterOrEqual => stands.is_ge(),
                })
            }
            Part::Arithmetic(how, both) => Seen::Int(self.reckon(*how, both)?),
            Part::In(both) => Seen::Bool(self.is_in(both)?),
            Part::Size(of) => Seen::Int(self.size(of)?),
            Part::Search(how, both) => Seen::Bool(self.search(*how, both)?),
            Part::Matches(of, pattern) => {
                let text = self.text(of)?;
                if text.len() > PATTERN_TEXT_BYTES_MAX {
                    return Err(Fault::TextTooLong(text.len()));
                }
                self.spend(text.len())?;
                Seen::Bool(pattern.is_match(text))
            }
            Part::Quantify(how, both) => Seen::Bool(self.quantify(*how, both)?),
        })
    }

    /// How two scalars of one kind stand to each other; texts by code points.
    fn compare(&mut self, both: &'a [Part; 2]) -> Result<std::cmp::Ordering, Fault> {
        match (self.see(&both[0])?, self.see(&both[1])?) {
            (Seen::Bool(left), Seen::Bool(right)) => Ok(left.cmp(&right)),
            (Seen::Int(left), Seen::Int(right)) => Ok(left.cmp(&right)),
            (Seen::Text(left), Seen::Text(right)) => {
                self.spend(left.len().min(right.len()) / 64)?;
                Ok(left.cmp(right))
            }
            _ => Err(Fault::Kind("two of a kind")),
        }
    }

    fn reckon(&mut self, how: Arithmetic, both: &'a [Part; 2]) -> Result<i64, Fault> {
        let (left, right) = (self.int(&both[0])?, self.int(&both[1])?);
        match how {
            Arithmetic::Divide | Arithmetic::Remainder if right == 0 => return Err(Fault::DivisionByZero),
            Arithmetic::Add => left.checked_add(right),
            Arithmetic::Subtract => left.checked_sub(right),
            Arithmetic::Multiply => left.checked_mul(right),
            Arithmetic::Divide => left.checked_div(right),
            Arithmetic::Remainder => left.checked_rem(right),
        }
        .ok_or(Fault::OutOfRange)
    }

    fn is_in(&mut self, both: &'a [Part; 2]) -> Result<bool, Fault> {
        let item = self.see(&both[0])?;
        for value in self.list(&both[1])? {
            let same = match (item, value) {
                (Seen::Int(left), Value::Int(right)) => left == *right,
                (Seen::Text(left), Value::Text(right)) => {
                    self.spend(left.len().min(right.len()) / 64)?;
                    left == &**right
                }
                _ => return Err(Fault::Kind("a list of the item's kind")),
            };
            self.spend(1)?;
            if same {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Items of a list, characters of a text.
    fn size(&mut self, of: &'a Part) -> Result<i64, Fault> {
        let size = match self.see(of)? {
            Seen::List(values) => values.len(),
            Seen::Text(text) => {
                self.spend(text.len() / 64)?;
                text.chars().count()
            }
            _ => return Err(Fault::Kind("a list or a text")),
        };
        i64::try_from(size).map_err(|_| Fault::OutOfRange)
    }

    fn search(&mut self, how: Search, both: &'a [Part; 2]) -> Result<bool, Fault> {
        let (text, sought) = (self.text(&both[0])?, self.text(&both[1])?);
        Ok(match how {
            Search::Contains => {
                self.spend(text.len() / 64)?;
                text.contains(sought)
            }
            Search::StartsWith => {
                self.spend(sought.len() / 64)?;
                text.starts_with(sought)
            }
            Search::EndsWith => {
                self.spend(sought.len() / 64)?;
                text.ends_with(sought)
            }
        })
    }

    fn quantify(&mut self, how: Quantifier, both: &'a [Part; 2]) -> Result<bool, Fault> {
        let mut holding = 0_u32;
        for item in self.list(&both[0])? {
            self.items.push(item);
            let holds = self.bool(&both[1]);
            self.items.pop();
            match (how, holds?) {
                (Quantifier::All, false) => return Ok(false),
                (Quantifier::Exists, true) => return Ok(true),
                (_, holds) => holding += u32::from(holds),
            }
        }
        Ok(match how {
            Quantifier::All => true,
            Quantifier::Exists => false,
            Quantifier::ExistsOne => holding == 1,
        })
    }
}
