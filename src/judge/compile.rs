//! From a condition's text to a [`Condition`]: parsed as CEL, then typed against the documented words.
//!
//! CEL's parser gives a tree in which everything may stand anywhere. What leaves here is a tree of a
//! closed set of parts, each with operands of the kinds that it takes, every word one that the view
//! has: so no name, no call and no mix of kinds is left to go wrong while a rule is asked.

use cel::Env;
use cel::common::ast::{CallExpr, Expr, IdedExpr, LiteralValue, SourceInfo, operators};
use regex::{Regex, RegexBuilder};

use super::bounds::{
    self, BRACKETS_DEEP_MAX, PARTS_DEEP_MAX, PARTS_MAX, PATTERN_BYTES_MAX, PATTERN_SIZE_MAX, PATTERNS_MAX,
    QUANTIFIERS_DEEP_MAX, STACK_BYTES,
};
use super::words::{Words, item_of};
use crate::protocol::name::nearest;
use crate::protocol::rule::Value;
use crate::protocol::rule::view::Kind;

/// A condition that is within its bounds, uses documented words alone and answers yes or no.
#[derive(Debug)]
pub(super) struct Condition(pub(super) Part);

/// One part of a condition.
#[derive(Debug)]
pub(super) enum Part {
    /// Written in the rule: a scalar, or a list of scalars.
    Constant(Value),
    /// A top-level word of the view.
    Word(&'static str),
    /// The item that the quantifier at that depth looks at, counted from the outermost.
    Item(usize),
    /// A field of a map.
    Field(Box<Part>, &'static str),
    Not(Box<Part>),
    Negate(Box<Part>),
    And(Box<[Part; 2]>),
    Or(Box<[Part; 2]>),
    /// `a ? b : c`.
    Choose(Box<[Part; 3]>),
    Equal(Box<[Part; 2]>),
    Unequal(Box<[Part; 2]>),
    Order(Order, Box<[Part; 2]>),
    Arithmetic(Arithmetic, Box<[Part; 2]>),
    /// A scalar in a list.
    In(Box<[Part; 2]>),
    Size(Box<Part>),
    Search(Search, Box<[Part; 2]>),
    Matches(Box<Part>, Regex),
    /// The list, and what is asked of each item.
    Quantify(Quantifier, Box<[Part; 2]>),
}

/// How two numbers or texts stand to each other.
#[derive(Clone, Copy, Debug)]
pub(super) enum Order {
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// On whole numbers.
#[derive(Clone, Copy, Debug)]
pub(super) enum Arithmetic {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

/// One text in another.
#[derive(Clone, Copy, Debug)]
pub(super) enum Search {
    Contains,
    StartsWith,
    EndsWith,
}

/// Of how many items something must hold.
#[derive(Clone, Copy, Debug)]
pub(super) enum Quantifier {
    All,
    Exists,
    ExistsOne,
}

/// Why a condition is refused.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    /// The byte of the condition at which it shows.
    pub(super) at: usize,
    /// What is wrong.
    pub(super) text: String,
    /// The known word that was probably meant.
    pub(super) nearest: Option<&'static str>,
}

/// Every function that a condition may call, as `rules/README.md` shows them.
pub(super) const FUNCTIONS: &[&str] =
    &["size", "contains", "startsWith", "endsWith", "matches", "all", "exists", "exists_one"];

/// The kind of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Type {
    Bool,
    Int,
    Text,
    Ints,
    Texts,
    /// Maps with the fields of that word.
    Maps(&'static str),
    /// A map with the fields of that word.
    Map(&'static str),
}

impl Type {
    fn of(path: &'static str, kind: Kind) -> Self {
        match kind {
            Kind::Bool => Self::Bool,
            Kind::Int => Self::Int,
            Kind::Text => Self::Text,
            Kind::Texts => Self::Texts,
            Kind::Maps => Self::Maps(item_of(path).expect("a test holds every list of maps to its items")),
        }
    }

    fn item(self) -> Option<Self> {
        match self {
            Self::Ints => Some(Self::Int),
            Self::Texts => Some(Self::Text),
            Self::Maps(word) => Some(Self::Map(word)),
            Self::Bool | Self::Int | Self::Text | Self::Map(_) => None,
        }
    }

    fn shown(self) -> String {
        match self {
            Self::Bool => "a bool".into(),
            Self::Int => "an int".into(),
            Self::Text => "a text".into(),
            Self::Ints => "a list of ints".into(),
            Self::Texts => "a list of texts".into(),
            Self::Maps(word) => format!("a list of {word}s"),
            Self::Map(word) => format!("the word {word:?} as a whole"),
        }
    }
}

/// Parses and types a condition.
///
/// On a thread of its own, because the parser recurses: its stack is sized for the worst that the
/// bounds let through, and what goes wrong on it stays on it.
pub(super) fn compile(source: &str, words: Words) -> Result<Condition, Refusal> {
    bounds::check(source).map_err(|(at, text)| Refusal { at, text, nearest: None })?;
    std::thread::scope(|scope| {
        std::thread::Builder::new()
            .name("judge-compile".into())
            .stack_size(STACK_BYTES)
            .spawn_scoped(scope, || parse(source, words))
            .map_err(|fault| refuse(0, format!("no thread to compile it on: {fault}")))?
            .join()
            .unwrap_or_else(|_| Err(refuse(0, "the parser gave up on it")))
    })
}

fn parse(source: &str, words: Words) -> Result<Condition, Refusal> {
    // Without macros: `all` and the like arrive as the calls that were written, not as the loops that
    // CEL's standard macros make of them.
    let depth = u16::try_from(BRACKETS_DEEP_MAX).expect("a small constant");
    let parser = Env::default().parser().enable_optional_syntax(false).max_recursion_depth(depth);
    let (tree, places) = parser.parse_with_source_info(source).map_err(|errors| {
        let first = errors.errors.first();
        let (at, said) = first.map_or((0, ""), |error| (offset(source, error.pos), error.msg.as_str()));
        let said = said.trim_start_matches("Syntax error: ");
        // The parser lists all that could stand there, which is most of the language.
        let said = said.split(" expecting").next().unwrap_or(said);
        refuse(at, format!("this is no expression: {said}"))
    })?;
    let mut typing = Typing { words, places, items: Vec::new(), parts: 0, patterns: 0, deep: 0 };
    let (part, kind) = typing.part(&tree)?;
    if kind != Type::Bool {
        return Err(typing.refuse(&tree, format!("{}; a condition is a bool", kind.shown())));
    }
    Ok(Condition(part))
}

/// The byte at a line and column, both from one.
fn offset(source: &str, (line, column): (isize, isize)) -> usize {
    let line = usize::try_from(line).unwrap_or(1).max(1);
    let column = usize::try_from(column).unwrap_or(1).max(1);
    let before: usize = source.split_inclusive('\n').take(line - 1).map(str::len).sum();
    (before + column - 1).min(source.len())
}

fn refuse(at: usize, text: impl Into<String>) -> Refusal {
    Refusal { at, text: text.into(), nearest: None }
}

/// The walk over the parsed tree.
struct Typing {
    words: Words,
    places: SourceInfo,
    /// The variables of the quantifiers around the current place, outermost first.
    items: Vec<(String, Type)>,
    parts: usize,
    patterns: usize,
    deep: usize,
}

impl Typing {
    fn refuse(&self, tree: &IdedExpr, text: impl Into<String>) -> Refusal {
        let at = self.places.offset_for(tree.id).map_or(0, |(start, _)| start as usize);
        refuse(at, text)
    }

    fn part(&mut self, tree: &IdedExpr) -> Result<(Part, Type), Refusal> {
        self.parts += 1;
        if self.parts > PARTS_MAX {
            return Err(self.refuse(tree, format!("more than {PARTS_MAX} words, constants and operators")));
        }
        if self.deep >= PARTS_DEEP_MAX {
            return Err(self.refuse(tree, format!("parts stand more than {PARTS_DEEP_MAX} deep")));
        }
        self.deep += 1;
        let typed = match &tree.expr {
            Expr::Literal(literal) => self.literal(tree, literal),
            Expr::Ident(name) => self.word(tree, name),
            Expr::Select(select) => self.field(tree, &select.operand, &select.field),
            Expr::List(list) if list.optional_indices.is_empty() => self.list(tree, &list.elements),
            Expr::Call(call) => self.call(tree, call),
            Expr::List(_) | Expr::Map(_) | Expr::Struct(_) | Expr::Comprehension(_) | Expr::Unspecified => {
                Err(self.refuse(tree, "a condition makes no maps or messages"))
            }
        }?;
        self.deep -= 1;
        Ok(typed)
    }

    fn literal(&self, tree: &IdedExpr, literal: &LiteralValue) -> Result<(Part, Type), Refusal> {
        let (value, kind) = match literal {
            LiteralValue::Boolean(value) => (Value::Bool(*value.inner()), Type::Bool),
            LiteralValue::Int(value) => (Value::Int(*value.inner()), Type::Int),
            LiteralValue::String(value) => (Value::from(value.inner()), Type::Text),
            LiteralValue::Bytes(_) | LiteralValue::Double(_) | LiteralValue::Null | LiteralValue::UInt(_) => {
                return Err(self.refuse(tree, "a constant that is no bool, int or text"));
            }
        };
        Ok((Part::Constant(value), kind))
    }

    fn word(&self, tree: &IdedExpr, name: &str) -> Result<(Part, Type), Refusal> {
        if let Some(item) = self.items.iter().rposition(|(known, _)| known == name) {
            return Ok((Part::Item(item), self.items[item].1));
        }
        match self.words.tops().find(|word| *word == name) {
            Some(word) => Ok((Part::Word(word), Type::Map(word))),
            None => Err(Refusal {
                nearest: nearest(name, self.words.tops()),
                ..self.refuse(tree, format!("unknown word {name:?}"))
            }),
        }
    }

    fn field(&mut self, tree: &IdedExpr, of: &IdedExpr, name: &str) -> Result<(Part, Type), Refusal> {
        let (part, kind) = self.part(of)?;
        let Type::Map(word) = kind else {
            return Err(self.refuse(tree, format!("{} has no field {name:?}", kind.shown())));
        };
        match self.words.field(word, name) {
            Some((field, path, kind)) => Ok((Part::Field(Box::new(part), field), Type::of(path, kind))),
            None => Err(Refusal {
                nearest: nearest(name, self.words.fields(word).map(|(field, ..)| field)),
                ..self.refuse(tree, format!("unknown word \"{word}.{name}\""))
            }),
        }
    }

    fn list(&mut self, tree: &IdedExpr, elements: &[IdedExpr]) -> Result<(Part, Type), Refusal> {
        let mut values = Vec::with_capacity(elements.len());
        let mut kinds = Vec::with_capacity(elements.len());
        for element in elements {
            match self.part(element)? {
                (Part::Constant(value), kind) => {
                    values.push(value);
                    kinds.push(kind);
                }
                _ => return Err(self.refuse(element, "a list holds constants alone")),
            }
        }
        let kind = match kinds.first() {
            Some(Type::Int) if kinds.iter().all(|kind| *kind == Type::Int) => Type::Ints,
            Some(Type::Text) if kinds.iter().all(|kind| *kind == Type::Text) => Type::Texts,
            _ => return Err(self.refuse(tree, "a list holds ints or texts, at least one, and all of a kind")),
        };
        Ok((Part::Constant(Value::List(values)), kind))
    }

    fn call(&mut self, tree: &IdedExpr, call: &CallExpr) -> Result<(Part, Type), Refusal> {
        let name = call.func_name.as_str();
        match (name, call.target.as_deref(), call.args.as_slice()) {
            (operators::LOGICAL_NOT, None, [of]) => {
                Ok((Part::Not(Box::new(self.operand(of, "!", Type::Bool)?)), Type::Bool))
            }
            (operators::NEGATE, None, [of]) => {
                Ok((Part::Negate(Box::new(self.operand(of, "-", Type::Int)?)), Type::Int))
            }
            (operators::LOGICAL_AND, None, [left, right]) => {
                Ok((Part::And(self.operands(left, right, "&&", Type::Bool)?), Type::Bool))
            }
            (operators::LOGICAL_OR, None, [left, right]) => {
                Ok((Part::Or(self.operands(left, right, "||", Type::Bool)?), Type::Bool))
            }
            (operators::CONDITIONAL, None, [condition, yes, no]) => {
                let condition = self.operand(condition, "?", Type::Bool)?;
                let (yes, left) = self.part(yes)?;
                let (no, right) = self.part(no)?;
                if left != right {
                    let text = format!("`? :` gives {} or {}", left.shown(), right.shown());
                    return Err(self.refuse(tree, text));
                }
                Ok((Part::Choose(Box::new([condition, yes, no])), left))
            }
            (operators::EQUALS, None, [left, right]) => {
                Ok((Part::Equal(self.alike(tree, left, right, "==", true)?), Type::Bool))
            }
            (operators::NOT_EQUALS, None, [left, right]) => {
                Ok((Part::Unequal(self.alike(tree, left, right, "!=", true)?), Type::Bool))
            }
            (operators::IN, None, [item, list]) => {
                let (item, kind) = self.part(item)?;
                let (list, kinds) = self.part(list)?;
                if !matches!(kind, Type::Int | Type::Text) || kinds.item() != Some(kind) {
                    return Err(self.refuse(tree, format!("{} `in` {}", kind.shown(), kinds.shown())));
                }
                Ok((Part::In(Box::new([item, list])), Type::Bool))
            }
            ("size", Some(of), []) | ("size", None, [of]) => {
                let (part, kind) = self.part(of)?;
                if kind != Type::Text && kind.item().is_none() {
                    return Err(self.refuse(tree, format!("{} has no size", kind.shown())));
                }
                Ok((Part::Size(Box::new(part)), Type::Int))
            }
            ("matches", Some(of), [pattern]) => {
                let of = self.operand(of, "matches", Type::Text)?;
                self.patterns += 1;
                if self.patterns > PATTERNS_MAX {
                    return Err(
                        self.refuse(tree, format!("more than {PATTERNS_MAX} patterns; `(a|b)` is one"))
                    );
                }
                Ok((Part::Matches(Box::new(of), self.pattern(pattern)?), Type::Bool))
            }
            (_, Some(of), [argument]) if let Some(how) = search(name) => {
                Ok((Part::Search(how, self.operands(of, argument, name, Type::Text)?), Type::Bool))
            }
            (_, Some(of), [item, asked]) if let Some(how) = quantifier(name) => {
                self.quantify(tree, how, of, item, asked)
            }
            (_, None, [left, right]) if let Some((how, sign)) = order(name) => {
                Ok((Part::Order(how, self.alike(tree, left, right, sign, false)?), Type::Bool))
            }
            (_, None, [left, right]) if let Some((how, sign)) = arithmetic(name) => {
                Ok((Part::Arithmetic(how, self.operands(left, right, sign, Type::Int)?), Type::Int))
            }
            (operators::INDEX, ..) => Err(self.refuse(tree, "an index; ask with `exists` or `in`")),
            ("has", ..) => Err(self.refuse(tree, "`has`; every documented word is always there")),
            _ if FUNCTIONS.contains(&name) => Err(self.refuse(tree, format!("`{name}` is called otherwise"))),
            _ => Err(Refusal {
                nearest: nearest(name, FUNCTIONS.iter().copied()),
                ..self.refuse(tree, format!("unknown function {name:?}"))
            }),
        }
    }

    /// An operand of the kind that `sign` takes.
    fn operand(&mut self, tree: &IdedExpr, sign: &str, takes: Type) -> Result<Part, Refusal> {
        let (part, kind) = self.part(tree)?;
        if kind != takes {
            let text = format!("`{sign}` takes {}; this is {}", takes.shown(), kind.shown());
            return Err(self.refuse(tree, text));
        }
        Ok(part)
    }

    fn operands(
        &mut self,
        left: &IdedExpr,
        right: &IdedExpr,
        sign: &str,
        takes: Type,
    ) -> Result<Box<[Part; 2]>, Refusal> {
        Ok(Box::new([self.operand(left, sign, takes)?, self.operand(right, sign, takes)?]))
    }

    /// Two scalars of one kind; bools only where no order is asked.
    fn alike(
        &mut self,
        tree: &IdedExpr,
        left: &IdedExpr,
        right: &IdedExpr,
        sign: &str,
        bools: bool,
    ) -> Result<Box<[Part; 2]>, Refusal> {
        let (left, kind) = self.part(left)?;
        let (right, other) = self.part(right)?;
        let comparable = matches!(kind, Type::Int | Type::Text) || (bools && kind == Type::Bool);
        if kind != other || !comparable {
            let text = format!("`{sign}` compares {} with {}", kind.shown(), other.shown());
            return Err(self.refuse(tree, text));
        }
        Ok(Box::new([left, right]))
    }

    fn pattern(&mut self, tree: &IdedExpr) -> Result<Regex, Refusal> {
        let (Part::Constant(Value::Text(pattern)), _) = self.part(tree)? else {
            return Err(self.refuse(tree, "a pattern that isn't written in the rule"));
        };
        if pattern.len() > PATTERN_BYTES_MAX {
            let text = format!("a pattern of {} bytes; {PATTERN_BYTES_MAX} are allowed", pattern.len());
            return Err(self.refuse(tree, text));
        }
        RegexBuilder::new(&pattern).size_limit(PATTERN_SIZE_MAX).build().map_err(|fault| {
            let said = fault.to_string();
            // The parser of patterns draws a picture above its one sentence.
            let said = said.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned();
            self.refuse(tree, format!("this is no pattern: {said}"))
        })
    }

    fn quantify(
        &mut self,
        tree: &IdedExpr,
        how: Quantifier,
        of: &IdedExpr,
        item: &IdedExpr,
        asked: &IdedExpr,
    ) -> Result<(Part, Type), Refusal> {
        let (list, kind) = self.part(of)?;
        let Some(kind) = kind.item() else {
            return Err(self.refuse(tree, format!("{} has no items to ask", kind.shown())));
        };
        let Expr::Ident(name) = &item.expr else {
            return Err(self.refuse(item, "a name for the item is to stand here"));
        };
        // One name, one meaning: a variable that hid a word would change what the rest says.
        if self.words.tops().any(|word| word == name) || self.items.iter().any(|(known, _)| known == name) {
            return Err(self.refuse(item, format!("{name:?} means something already")));
        }
        if self.items.len() == QUANTIFIERS_DEEP_MAX {
            let text = format!("`all` and `exists` more than {QUANTIFIERS_DEEP_MAX} deep");
            return Err(self.refuse(tree, text));
        }
        self.items.push((name.clone(), kind));
        let asked = self.operand(asked, "all, exists", Type::Bool)?;
        self.items.pop();
        Ok((Part::Quantify(how, Box::new([list, asked])), Type::Bool))
    }
}

fn search(name: &str) -> Option<Search> {
    Some(match name {
        "contains" => Search::Contains,
        "startsWith" => Search::StartsWith,
        "endsWith" => Search::EndsWith,
        _ => return None,
    })
}

fn quantifier(name: &str) -> Option<Quantifier> {
    Some(match name {
        operators::ALL => Quantifier::All,
        operators::EXISTS => Quantifier::Exists,
        operators::EXISTS_ONE => Quantifier::ExistsOne,
        _ => return None,
    })
}

fn order(name: &str) -> Option<(Order, &'static str)> {
    Some(match name {
        operators::LESS => (Order::Less, "<"),
        operators::LESS_EQUALS => (Order::LessOrEqual, "<="),
        operators::GREATER => (Order::Greater, ">"),
        operators::GREATER_EQUALS => (Order::GreaterOrEqual, ">="),
        _ => return None,
    })
}

fn arithmetic(name: &str) -> Option<(Arithmetic, &'static str)> {
    Some(match name {
        operators::ADD => (Arithmetic::Add, "+"),
        operators::SUBSTRACT => (Arithmetic::Subtract, "-"),
        operators::MULTIPLY => (Arithmetic::Multiply, "*"),
        operators::DIVIDE => (Arithmetic::Divide, "/"),
        operators::MODULO => (Arithmetic::Remainder, "%"),
        _ => return None,
    })
}
