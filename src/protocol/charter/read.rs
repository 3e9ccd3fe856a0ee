//! Taking typed values out of a TOML document, every finding with its place.
//!
//! A value that is not what it should be leaves a finding and is passed over, so that one reading
//! tells all that is wrong.

use std::borrow::Cow;
use std::ops::Range;
use std::str::FromStr;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::super::name::{Malformed, NAME_BYTES_MAX, is_hidden, nearest, shown};
use super::super::time::Span;
use super::check::FINDINGS_MAX;
use super::diagnostic::Finding;

type Key<'d> = Spanned<Cow<'d, str>>;
type Value<'d> = Spanned<DeValue<'d>>;

/// The findings so far.
#[derive(Default)]
pub(super) struct Reader {
    pub found: Vec<Finding>,
    /// Whether something that others refer to could not be read.
    pub hole: bool,
}

/// A table whose keys are all looked at already.
pub(super) struct Table<'d> {
    /// How findings call it: `[members.app]`, `[[phases]]`.
    label: String,
    /// Its name in the text, or itself where it has none.
    pub span: Range<usize>,
    entries: &'d DeTable<'d>,
    /// Known keys that are absent, and that an unknown key was probably meant to be: their absence
    /// is told already.
    pub misspelt: Vec<&'static str>,
}

impl Table<'_> {
    pub fn has(&self, key: &str) -> bool {
        self.entries.contains_key(key)
    }
}

impl Reader {
    /// Beyond [`FINDINGS_MAX`] nothing is kept: nobody mends that many at a time, and the time that
    /// a hostile text takes stays bounded.
    pub fn refuse(&mut self, span: Range<usize>, what: String, help: Option<String>) {
        if self.found.len() < FINDINGS_MAX {
            self.found.push(Finding { span, what, help });
        }
    }

    /// Reads what nothing else refers to: what is wrong there makes no hole.
    pub fn apart<T>(&mut self, read: impl FnOnce(&mut Self) -> T) -> T {
        let hole = self.hole;
        let value = read(self);
        self.hole = hole;
        value
    }

    /// Refuses a value, and with it whatever needed it.
    fn pass_over(&mut self, span: Range<usize>, what: String, help: Option<String>) {
        self.hole = true;
        self.refuse(span, what, help);
    }

    /// Refuses a key that `label` doesn't know, and gives the one that was probably meant.
    pub fn unknown_key(
        &mut self,
        label: &str,
        key: &Key<'_>,
        known: &[&'static str],
        form: Option<&str>,
    ) -> Option<&'static str> {
        if self.found.len() >= FINDINGS_MAX {
            return None;
        }
        let near = nearest(key.get_ref(), known.iter().copied());
        let help = match (near, form) {
            (Some(near), _) => format!("the nearest known key is `{near}`"),
            (None, Some(form)) => form.to_owned(),
            (None, None) => format!("known here: {}", known.join(", ")),
        };
        self.refuse(
            key.span(),
            format!("{label} has no key `{}`", shown(key.get_ref(), NAME_BYTES_MAX)),
            Some(help),
        );
        known.iter().copied().find(|word| Some(*word) == near)
    }

    fn open<'d>(
        &mut self,
        label: String,
        span: Range<usize>,
        entries: &'d DeTable<'d>,
        known: &[&'static str],
    ) -> Table<'d> {
        let mut misspelt = Vec::new();
        for (key, value) in entries.iter().filter(|(key, _)| !known.contains(&key.get_ref().as_ref())) {
            let Some(meant) = self.unknown_key(&label, key, known, None) else { continue };
            let absent = !entries.contains_key(meant);
            // Something that others refer to may stand under the key: `[membres.dana]`.
            self.hole |= absent || matches!(value.get_ref(), DeValue::Table(_) | DeValue::Array(_));
            if absent {
                misspelt.push(meant);
            }
        }
        Table { label, span, entries, misspelt }
    }

    /// The document itself.
    pub fn top<'d>(&mut self, document: &'d DeTable<'d>, known: &[&'static str]) -> Table<'d> {
        self.open("the charter".to_owned(), 0..0, document, known)
    }

    /// The table `[key]`, where there is one.
    pub fn section<'d>(&mut self, top: &Table<'d>, key: &str, known: &[&'static str]) -> Option<Table<'d>> {
        let (name, value) = top.entries.get_key_value(key)?;
        let entries = self.as_table(&format!("[{key}]"), value)?;
        Some(self.open(format!("[{key}]"), name.span(), entries, known))
    }

    /// What stands in `[key]`, whatever the keys.
    pub fn entries<'d>(&mut self, top: &Table<'d>, key: &str) -> Vec<(&'d Key<'d>, &'d Value<'d>)> {
        let value = top.entries.get(key);
        let table = value.and_then(|value| self.as_table(&format!("[{key}]"), value));
        table.map(|entries| entries.iter().collect()).unwrap_or_default()
    }

    /// The tables `[section.NAME]`, each with its name.
    pub fn named_tables<'d>(
        &mut self,
        top: &Table<'d>,
        section: &str,
        known: &[&'static str],
    ) -> Vec<(&'d Key<'d>, Table<'d>)> {
        let mut tables = Vec::new();
        for (name, value) in self.entries(top, section) {
            let label = format!("[{section}.{}]", shown(name.get_ref(), NAME_BYTES_MAX));
            if let Some(entries) = self.as_table(&label, value) {
                tables.push((name, self.open(label, name.span(), entries, known)));
            }
        }
        tables
    }

    /// The tables `[[key]]`, in their order.
    pub fn tables<'d>(&mut self, parent: &Table<'d>, key: &str, known: &[&'static str]) -> Vec<Table<'d>> {
        let label = match parent.label.strip_prefix("[[").and_then(|label| label.strip_suffix("]]")) {
            Some(outer) => format!("[[{outer}.{key}]]"),
            None => format!("[[{key}]]"),
        };
        let Some((name, value)) = parent.entries.get_key_value(key) else { return Vec::new() };
        let Some(items) = value.get_ref().as_array() else {
            let what = format!("`{key}` is {}, not a list of tables", with_article(value.get_ref()));
            self.pass_over(name.span(), what, Some(format!("write {label} above each")));
            return Vec::new();
        };
        let mut tables = Vec::new();
        for item in items {
            if let Some(entries) = self.as_table(&label, item) {
                tables.push(self.open(label.clone(), item.span(), entries, known));
            }
        }
        tables
    }

    fn as_table<'d>(&mut self, label: &str, value: &'d Value<'d>) -> Option<&'d DeTable<'d>> {
        let table = value.get_ref().as_table();
        if table.is_none() {
            let what = format!("{label} is {}, not a table", with_article(value.get_ref()));
            self.pass_over(value.span(), what, None);
        }
        table
    }

    /// What `read` makes of the value at `key`, where there is one.
    pub fn get<'d, T>(
        &mut self,
        table: &Table<'d>,
        key: &str,
        read: impl FnOnce(&mut Self, &'d Value<'d>) -> Option<T>,
    ) -> Option<T> {
        read(self, table.entries.get(key)?)
    }

    /// What `read` makes of the value at `key`, which must be there.
    pub fn need<'d, T>(
        &mut self,
        table: &Table<'d>,
        key: &str,
        read: impl FnOnce(&mut Self, &'d Value<'d>) -> Option<T>,
    ) -> Option<T> {
        if !table.has(key) && !table.misspelt.contains(&key) {
            self.pass_over(table.span.clone(), format!("{} has no `{key}`", table.label), None);
        }
        self.get(table, key, read)
    }

    fn mistyped(&mut self, value: &Value<'_>, expected: &str) {
        let what = format!("expected {expected}, found {}", with_article(value.get_ref()));
        self.pass_over(value.span(), what, None);
    }

    /// One line of text, not empty, all of it visible.
    pub fn text(&mut self, value: &Value<'_>) -> Option<String> {
        self.visible_text(value, |_| false)
    }

    /// As [`Reader::text`], of several lines where they are wanted.
    pub fn command(&mut self, value: &Value<'_>) -> Option<String> {
        self.visible_text(value, |c| matches!(c, '\n' | '\t'))
    }

    fn visible_text(&mut self, value: &Value<'_>, allowed: fn(char) -> bool) -> Option<String> {
        let Some(text) = value.get_ref().as_str() else {
            self.mistyped(value, "a text");
            return None;
        };
        if text.trim().is_empty() {
            self.pass_over(value.span(), "the text is empty".to_owned(), None);
            return None;
        }
        if let Some(hidden) = text.chars().find(|c| is_hidden(*c) && !allowed(*c)) {
            let code = u32::from(hidden);
            let what = format!("the text holds U+{code:04X}, which a terminal would obey or hide");
            self.pass_over(value.span(), what, Some("write one line of visible characters".to_owned()));
            return None;
        }
        Some(text.to_owned())
    }

    /// A list of texts; not an empty one, which would say neither "none" nor "all".
    pub fn texts(&mut self, value: &Value<'_>) -> Option<Vec<String>> {
        let Some(items) = value.get_ref().as_array() else {
            self.mistyped(value, "a list of texts");
            return None;
        };
        if items.is_empty() {
            let help = "leave the key out where there is nothing to say".to_owned();
            self.pass_over(value.span(), "the list is empty".to_owned(), Some(help));
        }
        Some(items.iter().filter_map(|item| self.text(item)).collect())
    }

    pub fn flag(&mut self, value: &Value<'_>) -> Option<bool> {
        let flag = value.get_ref().as_bool();
        if flag.is_none() {
            self.mistyped(value, "true or false");
        }
        flag
    }

    pub fn count(&mut self, value: &Value<'_>) -> Option<u32> {
        let Some(integer) = value.get_ref().as_integer() else {
            self.mistyped(value, "a whole number");
            return None;
        };
        let count = u32::from_str_radix(integer.as_str(), integer.radix()).ok();
        if count.is_none() {
            let what =
                format!("{} is not a whole number from 0 to {}", shown(integer.as_str(), 40), u32::MAX);
            self.pass_over(value.span(), what, None);
        }
        count
    }

    pub fn length(&mut self, value: &Value<'_>) -> Option<Span> {
        if let Some(integer) = value.get_ref().as_integer() {
            let what = "a duration has a unit".to_owned();
            let help = format!("such as \"{}s\", in quotes", shown(integer.as_str(), 20));
            self.pass_over(value.span(), what, Some(help));
            return None;
        }
        self.name(value)
    }

    /// A text that has a form of its own: a name, a duration.
    pub fn name<T: FromStr<Err = Malformed>>(&mut self, value: &Value<'_>) -> Option<T> {
        let Some(text) = value.get_ref().as_str() else {
            self.mistyped(value, "a text");
            return None;
        };
        self.named(value.span(), text)
    }

    /// As [`Reader::name`], of a text that stands at `span`.
    pub fn named<T: FromStr<Err = Malformed>>(&mut self, span: Range<usize>, text: &str) -> Option<T> {
        match text.parse() {
            Ok(name) => Some(name),
            Err(Malformed { expected, given, form }) => {
                // Letters of other scripts can look like those that are allowed.
                let foreign = text.chars().find(|c| !c.is_ascii());
                let help = foreign
                    .map_or_else(|| form.to_owned(), |c| format!("{form}; it holds U+{:04X}", u32::from(c)));
                self.pass_over(span, format!("\"{given}\" is not {expected}"), Some(help));
                None
            }
        }
    }

    /// One of a few words.
    pub fn word<T: Copy>(&mut self, value: &Value<'_>, words: &[(&'static str, T)]) -> Option<T> {
        let Some(text) = value.get_ref().as_str() else {
            self.mistyped(value, &either(words));
            return None;
        };
        let found = words.iter().find(|(word, _)| *word == text);
        if found.is_none() {
            let near = nearest(text, words.iter().map(|(word, _)| *word));
            let what = format!("\"{}\" is not {}", shown(text, NAME_BYTES_MAX), either(words));
            self.pass_over(value.span(), what, near.map(|near| format!("the nearest is \"{near}\"")));
        }
        found.map(|(_, meaning)| *meaning)
    }
}

/// `"agent", "referee" or "human"`.
fn either<T>(words: &[(&'static str, T)]) -> String {
    let quoted: Vec<String> = words.iter().map(|(word, _)| format!("\"{word}\"")).collect();
    let (last, others) = quoted.split_last().expect("every set of words has some");
    format!("{} or {last}", others.join(", "))
}

fn with_article(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a text",
        DeValue::Integer(_) => "a whole number",
        DeValue::Float(_) => "a fraction",
        DeValue::Boolean(_) => "a true or false",
        DeValue::Datetime(_) => "a date or time",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}
