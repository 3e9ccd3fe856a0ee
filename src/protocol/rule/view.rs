//! The words that a rule may use: a documented view of the state, as plain values.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// A value in a view.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// Yes or no.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A text.
    Text(Arc<str>),
    /// Several, in order.
    List(Vec<Value>),
    /// Named parts.
    Map(Arc<BTreeMap<&'static str, Value>>),
}

/// What a rule sees: its top-level words with their values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct View {
    /// `circle`, `confirmer`, and by what the rule is about `proposal`, `review`, `objection`,
    /// `check`, `escalation`; by when it is asked `offer`, `approval`, `text`.
    pub words: BTreeMap<&'static str, Value>,
}

impl View {
    /// The value at a dotted path, such as `proposal.ref`.
    pub fn at(&self, path: &str) -> Option<&Value> {
        let mut parts = path.split('.');
        let mut value = self.words.get(parts.next()?)?;
        for part in parts {
            let Value::Map(map) = value else { return None };
            value = map.get(part)?;
        }
        Some(value)
    }
}

/// The kind of a documented word's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// [`Value::Bool`].
    Bool,
    /// [`Value::Int`].
    Int,
    /// [`Value::Text`].
    Text,
    /// [`Value::List`] of [`Value::Text`].
    Texts,
    /// [`Value::List`] of maps; the fields of an item stand in [`FIELDS`] under `path[]`.
    Maps,
}

/// Every path that a rule may use, with its kind and what it means. `rules/README.md` and the
/// reference page are made from it, and the judge refuses a rule that uses another.
pub const FIELDS: &[(&str, Kind, &str)] = &[
    ("confirmer.name", Kind::Text, "the member who confirms"),
    ("confirmer.produces", Kind::Bool, "whether that member produces a proposal of the circle"),
    ("circle.name", Kind::Text, "the circle's name"),
    ("circle.ref", Kind::Text, "the circle's exact reference"),
    ("circle.phase", Kind::Text, "the phase it belongs to"),
    ("circle.dissent", Kind::Bool, "whether a dissent round was called on exactly what it holds"),
    ("circle.participants", Kind::Texts, "the producers and reviewers who confirm"),
    ("circle.proposals", Kind::Maps, "its proposals, each with the words of `proposal`"),
    ("proposal.name", Kind::Text, "the proposal's name"),
    ("proposal.producer", Kind::Text, "who produces it"),
    ("proposal.delivered", Kind::Bool, "whether it has a version"),
    ("proposal.version", Kind::Int, "its current version; 0 where there is none"),
    ("proposal.ref", Kind::Text, "the current version's exact reference; the name where there is none"),
    ("proposal.propose", Kind::Text, "the command that proposes its next version, with what it must answer"),
    ("proposal.withdrawn", Kind::Bool, "whether the current version is withdrawn"),
    (
        "proposal.unpublishable",
        Kind::Bool,
        "whether the current version could not be published, so that another is owed",
    ),
    (
        "proposal.accepted",
        Kind::Bool,
        "whether it is delivered, approved by all its reviewers, and nothing is open on it",
    ),
    ("proposal.rounds", Kind::Int, "versions that followed an objected one"),
    ("proposal.approvals", Kind::Int, "reviewers who approve the current version"),
    (
        "proposal.evidence",
        Kind::Int,
        "places checked and commands run that the approvals of the current version name, all together",
    ),
    ("proposal.open_objections", Kind::Texts, "the ids of its open objections"),
    ("proposal.unread", Kind::Texts, "the ids of open objections and notes that its producer has not read"),
    ("proposal.confirmer_is_producer", Kind::Bool, "whether the member who confirms produces it"),
    ("review.reviewer", Kind::Text, "who reviews"),
    ("review.lens", Kind::Text, "through which lens"),
    (
        "review.vote",
        Kind::Text,
        "the reviewer's vote on the current version: \"approve\", \"object\" or \"none\"",
    ),
    ("review.voted_version", Kind::Int, "the newest version the reviewer voted on; 0 where there is none"),
    ("review.read", Kind::Bool, "whether the reviewer was shown the current version"),
    ("review.eligible", Kind::Bool, "whether the reviewer neither proposed nor authored the current version"),
    (
        "review.overruled",
        Kind::Bool,
        "whether a person's decision stands in for the approval of the current version",
    ),
    ("review.evidence", Kind::Int, "places checked and commands run that the approval names"),
    (
        "review.approve",
        Kind::Text,
        "the command that approves the current version, with all that this reviewer must resolve and show",
    ),
    (
        "review.unshown",
        Kind::Texts,
        "failing tests of resolved objections that no approval of the current version shows to pass: the reviewer's own, and those of objectors who review it no longer",
    ),
    ("objection.id", Kind::Text, "its id, such as o1"),
    ("objection.by", Kind::Text, "who raised it"),
    ("objection.kind", Kind::Text, "\"objection\" or \"note\""),
    ("objection.version", Kind::Int, "the version it was raised on"),
    ("objection.status", Kind::Text, "\"open\", \"resolved\", \"mistaken\" or \"overruled\""),
    ("objection.read", Kind::Bool, "whether the proposal's producer has read it"),
    ("objection.failing_test", Kind::Text, "the command that fails; empty where there is none"),
    ("check.name", Kind::Text, "the name of a check that the charter requires"),
    (
        "check.status",
        Kind::Text,
        "the last report on the current version: \"passed\", \"failed\", \"skipped\", or \"missing\" where there is none",
    ),
    ("check.by", Kind::Text, "who reported it; empty where nobody did"),
    ("escalation.id", Kind::Text, "the id of an open escalation, such as e1"),
    ("escalation.cause", Kind::Text, "why it is before a person, such as \"round-limit\" or \"asked\""),
    ("escalation.subject", Kind::Text, "what it is about"),
    (
        "escalation.needs_decision",
        Kind::Bool,
        "whether work waits for the person's decision; of a stall, something overdue or a recovery one is only told",
    ),
    ("escalation.decide", Kind::Text, "the decision that is offered first"),
    ("offer.version", Kind::Int, "the number that the version would get"),
    ("offer.by", Kind::Text, "who proposes it"),
    ("offer.summary", Kind::Text, "what its producer says of it"),
    ("offer.paths", Kind::Texts, "the paths that it touches"),
    ("offer.authors", Kind::Texts, "the e-mail addresses of its authors and co-authors"),
    ("offer.answers", Kind::Texts, "the ids of the objections that it answers"),
    ("offer.round", Kind::Bool, "whether it follows an objected version"),
    ("approval.ref", Kind::Text, "the exact reference of the version that is approved"),
    ("approval.by", Kind::Text, "who approves it"),
    ("approval.lenses", Kind::Texts, "the lenses that the approval speaks for"),
    ("approval.checked", Kind::Texts, "the places that it names as checked"),
    ("approval.ran", Kind::Texts, "the commands that it names as run"),
    ("approval.resolves", Kind::Texts, "the ids of the objections that it resolves"),
    (
        "text.kind",
        Kind::Text,
        "\"summary\", \"answer\", \"objection\", \"note\", \"reason\", \"question\", \"message\", \"claim\" or \"verdict\"",
    ),
    ("text.by", Kind::Text, "who wrote it"),
    ("text.subject", Kind::Text, "what it is about: a version, an objection, an escalation, a circle"),
    ("text.body", Kind::Text, "its words"),
    (
        "text.figures",
        Kind::Texts,
        "measured numbers in it: with a per cent sign, a unit of time, a rate or a factor, in a sentence that compares or measures, such as `40 %` or `3x`",
    ),
    (
        "text.range",
        Kind::Bool,
        "whether it gives a range: two numbers with a dash or \"to\" between, \"±\", \"at most\", a percentile",
    ),
    (
        "text.method",
        Kind::Bool,
        "whether it says how it was measured: names a command, or a word such as \"measured\", \"median\" or \"runs\"",
    ),
    (
        "text.places",
        Kind::Int,
        "places that it names: files, lines, links and names in backquotes, such as `src/lexer.rs:112`; attached ones included",
    ),
    ("text.commands", Kind::Int, "commands that it names in backquotes or after `$`, attached ones included"),
    ("text.totals", Kind::Texts, "sentences that give a total, such as `74 in total` or `a total of 74`"),
    ("text.numbers", Kind::Int, "numbers in it, of whatever kind"),
    ("text.again", Kind::Text, "the command that says it again, with what is missing"),
];

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<i64> for Value {
    fn from(value: i64) -> Self {
        Self::Int(value)
    }
}

impl From<u32> for Value {
    fn from(value: u32) -> Self {
        Self::Int(value.into())
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Self {
        Self::Text(value.into())
    }
}

impl From<String> for Value {
    fn from(value: String) -> Self {
        Self::Text(value.into())
    }
}

impl FromIterator<(&'static str, Value)> for Value {
    fn from_iter<T: IntoIterator<Item = (&'static str, Value)>>(parts: T) -> Self {
        Self::Map(Arc::new(parts.into_iter().collect()))
    }
}

impl FromIterator<Value> for Value {
    fn from_iter<T: IntoIterator<Item = Value>>(values: T) -> Self {
        Self::List(values.into_iter().collect())
    }
}

/// As a message shows it: lists with commas between.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool(value) => write!(f, "{value}"),
            Self::Int(value) => write!(f, "{value}"),
            Self::Text(value) => f.write_str(value),
            Self::List(values) => {
                for (index, value) in values.iter().enumerate() {
                    if index > 0 {
                        f.write_str(", ")?;
                    }
                    write!(f, "{value}")?;
                }
                Ok(())
            }
            Self::Map(map) => f.write_str(map.get("name").map_or("…".into(), ToString::to_string).as_str()),
        }
    }
}
