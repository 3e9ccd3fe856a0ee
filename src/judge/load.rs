//! Reading rule files: TOML, every key known, every text there, every condition compiled and tried on
//! the sample, at least one example that must deny and one that must pass. All that is wrong with a
//! file is reported at once, each with its line and column.

use std::fmt;
use std::path::Path;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::bounds::RULE_FILE_BYTES_MAX;
use super::compile::{Condition, compile};
use super::evaluate::evaluate;
use super::example::{self, Example};
use super::sample;
use super::words::Words;
use crate::protocol::adoption::RuleFault;
use crate::protocol::name::nearest;
use crate::protocol::rule::{About, Moment, Owner, Rule};

/// Why a rule, or a folder of rules, is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct LoadError {
    /// The file or folder.
    pub file: String,
    /// Line and column in it, both from one; none where it couldn't be read.
    pub place: Option<(usize, usize)>,
    /// What is wrong.
    pub text: String,
    /// The known word that was probably meant.
    pub nearest: Option<String>,
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file)?;
        if let Some((line, column)) = self.place {
            write!(f, ":{line}:{column}")?;
        }
        write!(f, ": {}", self.text)?;
        match &self.nearest {
            Some(nearest) => write!(f, "; did you mean {nearest:?}?"),
            None => Ok(()),
        }
    }
}

/// As the core tells it.
impl From<LoadError> for RuleFault {
    fn from(error: LoadError) -> Self {
        let count = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        let (line, column) = error.place.unwrap_or_default();
        Self {
            file: error.file,
            line: count(line),
            column: count(column),
            what: error.text,
            nearest: error.nearest.unwrap_or_default(),
        }
    }
}

/// Every key of a rule file: its name, whether it must be there, what it says.
pub(super) const KEYS: &[(&str, bool, &str)] = &[
    ("title", true, "one line that says what it demands"),
    ("incident", true, "the incident that taught it"),
    ("when", true, "when it is asked"),
    ("about", true, "what it looks at: it is asked once for each"),
    ("applies", false, "a condition: where it is false, the rule has nothing to say"),
    ("deny", true, "a condition: where it is true, the rule denies"),
    ("overruled", false, "a condition: where it is true, a person's decision stands in the rule's stead"),
    ("message", true, "what it says when it denies"),
    ("owes", true, "who then owes"),
    ("remedy", true, "the command that remedies it"),
    ("examples", true, "views on which it must deny, and on which it must pass"),
];

pub(super) const MOMENTS: &[(&str, Moment)] = &[
    ("propose", Moment::Propose),
    ("approve", Moment::Approve),
    ("confirm", Moment::Confirm),
    ("text", Moment::Text),
];

pub(super) const ABOUTS: &[(&str, About)] = &[
    ("circle", About::Circle),
    ("proposal", About::Proposal),
    ("review", About::Review),
    ("objection", About::Objection),
    ("check", About::Check),
    ("escalation", About::Escalation),
    ("text", About::Text),
];

pub(super) const OWNERS: &[(&str, Owner)] = &[
    ("producer", Owner::Producer),
    ("reviewers", Owner::Reviewers),
    ("confirmer", Owner::Confirmer),
    ("person", Owner::Person),
    ("author", Owner::Author),
];

/// A rule with its conditions compiled and its examples merged over the sample.
#[derive(Debug)]
pub(super) struct Loaded {
    pub(super) rule: Rule,
    pub(super) conditions: Conditions,
    pub(super) examples: Vec<Example>,
}

/// A rule's compiled conditions.
#[derive(Debug)]
pub(super) struct Conditions {
    pub(super) applies: Option<Condition>,
    pub(super) deny: Condition,
    pub(super) overruled: Option<Condition>,
}

/// What can't be read at all.
pub(super) fn unreadable(path: &Path, text: impl Into<String>) -> LoadError {
    LoadError { file: path.display().to_string(), place: None, text: text.into(), nearest: None }
}

/// One rule, from the text of its file.
pub(super) fn rule(
    file: &str,
    stem: &str,
    folder: Option<Moment>,
    text: &str,
) -> Result<Loaded, Vec<LoadError>> {
    let mut reader = Reader { file, text, errors: Vec::new() };
    let loaded = reader.rule(stem, folder);
    match loaded {
        Some(loaded) if reader.errors.is_empty() => Ok(loaded),
        _ => {
            reader.errors.sort_by_key(|error| error.place);
            Err(reader.errors)
        }
    }
}

/// A text of the file and where it stands.
struct Said {
    at: usize,
    end: usize,
    text: String,
}

/// Reads one file and gathers what is wrong with it.
pub(super) struct Reader<'a> {
    file: &'a str,
    text: &'a str,
    errors: Vec<LoadError>,
}

impl Reader<'_> {
    /// Notes what is wrong at that byte of the file.
    pub(super) fn refuse(&mut self, at: usize, text: impl Into<String>, nearest: Option<&str>) {
        let place = Some(self.place(at));
        let nearest = nearest.map(Into::into);
        self.errors.push(LoadError { file: self.file.into(), place, text: text.into(), nearest });
    }

    /// The line and column of a byte of the file, both from one; columns count characters.
    pub(super) fn place(&self, at: usize) -> (usize, usize) {
        let before = self.text.get(..at).unwrap_or(self.text);
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
    }

    fn rule(&mut self, stem: &str, folder: Option<Moment>) -> Option<Loaded> {
        if self.text.len() > RULE_FILE_BYTES_MAX {
            self.refuse(0, format!("a rule file of more than {RULE_FILE_BYTES_MAX} bytes"), None);
            return None;
        }
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if stem.is_empty() || !stem.chars().all(plain) {
            self.refuse(0, "a rule file's name is made of a-z, 0-9 and -", None);
        }
        let table = match DeTable::parse(self.text) {
            Ok(table) => table.into_inner(),
            Err(fault) => {
                let at = fault.span().map_or(0, |span| span.start);
                self.refuse(at, format!("this is not TOML: {}", fault.message()), None);
                return None;
            }
        };
        self.keys(&table);
        let title = self.line(&table, "title");
        let incident = self.said(&table, "incident");
        let when = self.one_of(&table, "when", MOMENTS);
        let about = self.one_of(&table, "about", ABOUTS);
        let owes = self.one_of(&table, "owes", OWNERS);
        let applies = self.said(&table, "applies");
        let deny = self.said(&table, "deny");
        let overruled = self.said(&table, "overruled");
        let message = self.said(&table, "message");
        let remedy = self.line(&table, "remedy");
        // What follows needs to know which words there are.
        let ((when, when_at), (about, about_at), (owes, owes_at)) = (when?, about?, owes?);
        if folder.is_some_and(|folder| folder != when) {
            self.refuse(when_at, format!("when is {when}, and the file stands in another folder"), None);
        }
        let words = Words { when, about };
        self.subject(words, about_at);
        self.owner(words, owes, owes_at);
        for text in [&message, &remedy].into_iter().flatten() {
            self.template(words, text);
        }
        let conditions = Conditions {
            applies: applies.as_ref().and_then(|said| self.condition(words, said)),
            overruled: overruled.as_ref().and_then(|said| self.condition(words, said)),
            deny: deny.as_ref().and_then(|said| self.condition(words, said))?,
        };
        let examples = example::read(self, &table, words);
        let rule = Rule {
            id: format!("{when}/{stem}"),
            title: title?.text,
            incident: incident?.text,
            when,
            about,
            applies: applies.map(|said| said.text),
            deny: deny?.text,
            overruled: overruled.map(|said| said.text),
            message: message?.text,
            owes,
            remedy: remedy?.text,
        };
        Some(Loaded { rule, conditions, examples })
    }

    /// Notes keys that nobody knows, and keys that aren't there.
    fn keys(&mut self, table: &DeTable<'_>) {
        for key in table.keys() {
            if !KEYS.iter().any(|(known, ..)| known == key.get_ref()) {
                let near = nearest(key.get_ref(), KEYS.iter().map(|(known, ..)| *known));
                self.refuse(key.span().start, format!("unknown key {:?}", key.get_ref()), near);
            }
        }
        for (key, _, meaning) in
            KEYS.iter().filter(|(key, required, _)| *required && !table.contains_key(*key))
        {
            self.refuse(0, format!("no {key:?}: {meaning}"), None);
        }
    }

    /// A text at a key; a missing one is noted by [`Reader::keys`].
    fn said(&mut self, table: &DeTable<'_>, key: &str) -> Option<Said> {
        let value = table.get(key)?;
        let text = self.string(key, value)?;
        Some(Said { at: value.span().start, end: value.span().end, text })
    }

    /// A text of one line.
    fn line(&mut self, table: &DeTable<'_>, key: &str) -> Option<Said> {
        let said = self.said(table, key)?;
        if said.text.chars().any(char::is_control) {
            self.refuse(said.at, format!("{key} is one line"), None);
        }
        Some(said)
    }

    /// The text of a value, without the white space around it.
    pub(super) fn string(&mut self, key: &str, value: &Spanned<DeValue<'_>>) -> Option<String> {
        let at = value.span().start;
        let Some(text) = value.get_ref().as_str() else {
            self.refuse(at, format!("{key} is a text, not {}", value.get_ref().type_str()), None);
            return None;
        };
        if text.trim().is_empty() {
            self.refuse(at, format!("{key} says nothing"), None);
            return None;
        }
        Some(text.trim().to_owned())
    }

    fn one_of<T: Copy>(
        &mut self,
        table: &DeTable<'_>,
        key: &str,
        known: &[(&'static str, T)],
    ) -> Option<(T, usize)> {
        let said = self.said(table, key)?;
        if let Some((_, value)) = known.iter().find(|(word, _)| *word == said.text) {
            return Some((*value, said.at));
        }
        let words: Vec<_> = known.iter().map(|(word, _)| *word).collect();
        let text = format!("{key} is one of {}, not {:?}", words.join(", "), said.text);
        self.refuse(said.at, text, nearest(&said.text, words));
        None
    }

    /// What there is to look at depends on when the rule is asked.
    fn subject(&mut self, words: Words, at: usize) {
        let fits = match words.when {
            Moment::Confirm => words.about != About::Text,
            Moment::Propose | Moment::Approve => words.about == About::Proposal,
            Moment::Text => words.about == About::Text,
        };
        if !fits {
            let looks_at = match words.when {
                Moment::Confirm => "the circle and what it holds",
                Moment::Propose | Moment::Approve => "the proposal",
                Moment::Text => "a text",
            };
            self.refuse(at, format!("a rule of {} looks at {looks_at}", words.when), None);
        }
    }

    /// A rule without somebody there who can owe makes a dead end.
    fn owner(&mut self, words: Words, owes: Owner, at: usize) {
        match owes {
            Owner::Author if words.when != Moment::Text => {
                self.refuse(
                    at,
                    format!("a rule of {} is about no text that has an author", words.when),
                    None,
                );
            }
            Owner::Author => {}
            _ if words.when == Moment::Text => {
                self.refuse(at, "of a text only its author can owe anything", None);
            }
            Owner::Reviewers if words.about == About::Check => {
                self.refuse(at, "a check has no reviewer who could owe", None);
            }
            Owner::Producer | Owner::Reviewers if !words.about.has_proposal() => {
                let about =
                    ABOUTS.iter().find(|(_, about)| *about == words.about).map_or("", |(name, _)| name);
                let text = format!("a rule about the {about} has no one proposal whose members could owe");
                self.refuse(at, text, None);
            }
            Owner::Confirmer if words.when != Moment::Confirm => {
                self.refuse(at, format!("nobody confirms when a rule of {} is asked", words.when), None);
            }
            _ => {}
        }
    }

    /// Every `{word}` of a text must be one that the view has.
    fn template(&mut self, words: Words, said: &Said) {
        let mut rest = said.text.as_str();
        while let Some(open) = rest.find('{') {
            let after = &rest[open + 1..];
            let Some(close) = after.find('}') else {
                self.refuse(said.at, "a { without its }", None);
                return;
            };
            let path = &after[..close];
            if !words.has(path) {
                self.refuse(said.at, format!("unknown word {{{path}}}"), nearest(path, words.paths()));
            }
            rest = &after[close + 1..];
        }
    }

    /// Compiles a condition and tries it on the sample.
    fn condition(&mut self, words: Words, said: &Said) -> Option<Condition> {
        // A condition stands in its file as it reads, unless it was written with escapes.
        let verbatim = self.text.get(said.at..said.end).and_then(|raw| raw.find(&said.text));
        match compile(&said.text, words) {
            Ok(condition) => match evaluate(&condition, &sample::view(sample::draft(words))) {
                Ok(_) => Some(condition),
                Err(fault) => {
                    self.refuse(said.at, format!("tried on the sample, {fault}"), None);
                    None
                }
            },
            Err(refusal) => {
                let at = verbatim.map_or(said.at, |start| said.at + start + refusal.at);
                self.refuse(at, refusal.text, refusal.nearest);
                None
            }
        }
    }
}
