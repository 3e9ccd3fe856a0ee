//! A rule's examples: the sample with some words changed, and what the rule must say of it.

use std::collections::BTreeMap;
use std::sync::Arc;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::load::Reader;
use super::sample;
use super::words::{Words, item_of};
use crate::protocol::name::nearest;
use crate::protocol::rule::view::Kind;
use crate::protocol::rule::{Value, View};

/// What a rule must say of an example.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// It denies.
    Deny,
    /// It stands in nobody's way: it passes, doesn't apply, or is overruled.
    Pass,
}

/// One example of a rule.
#[derive(Clone, Debug)]
pub struct Example {
    /// The line of the rule's file at which it stands, from one.
    pub line: usize,
    /// What the rule must say.
    pub expected: Expected,
    /// Why it must.
    pub because: String,
    /// The sample with the example's words.
    pub view: View,
}

const EXPECTED: &[(&str, Expected)] = &[("deny", Expected::Deny), ("pass", Expected::Pass)];

/// Reads the examples of a rule file; there must be one of each kind.
pub(super) fn read(reader: &mut Reader<'_>, table: &DeTable<'_>, words: Words) -> Vec<Example> {
    let mut examples = Vec::new();
    // A missing key is noted by the reader.
    let Some(value) = table.get("examples") else { return examples };
    let Some(kinds) = value.get_ref().as_table() else {
        reader.refuse(
            value.span().start,
            "examples stand under [[examples.deny]] and [[examples.pass]]",
            None,
        );
        return examples;
    };
    for (kind, value) in kinds {
        let Some((_, expected)) = EXPECTED.iter().find(|(known, _)| known == kind.get_ref()) else {
            let near = nearest(kind.get_ref(), EXPECTED.iter().map(|(known, _)| *known));
            reader.refuse(kind.span().start, format!("unknown key \"examples.{}\"", kind.get_ref()), near);
            continue;
        };
        let Some(items) = value.get_ref().as_array() else {
            let text = format!("an example stands under [[examples.{}]]", kind.get_ref());
            reader.refuse(kind.span().start, text, None);
            continue;
        };
        examples.extend(items.iter().filter_map(|item| one(reader, item, *expected, words)));
    }
    for (kind, _) in EXPECTED {
        let none =
            |value: &Spanned<DeValue<'_>>| value.get_ref().as_array().is_some_and(|items| items.is_empty());
        if kinds.get(*kind).is_none_or(none) {
            reader.refuse(
                value.span().start,
                format!("no [[examples.{kind}]]: a rule has one at least"),
                None,
            );
        }
    }
    examples.sort_by_key(|example| example.line);
    examples
}

fn one(
    reader: &mut Reader<'_>,
    item: &Spanned<DeValue<'_>>,
    expected: Expected,
    words: Words,
) -> Option<Example> {
    let at = item.span().start;
    let Some(table) = item.get_ref().as_table() else {
        reader.refuse(at, "an example is a table", None);
        return None;
    };
    let because = match table.get("because") {
        Some(value) => reader.string("because", value),
        None => {
            reader.refuse(at, "no \"because\": why the rule must say so", None);
            None
        }
    };
    let mut draft = sample::draft(words);
    let mut own_list = false;
    for (key, value) in table.iter().filter(|(key, _)| key.get_ref() != "because") {
        let Some(word) = words.tops().find(|word| word == key.get_ref()) else {
            let near = nearest(key.get_ref(), words.tops().chain(["because"]));
            reader.refuse(key.span().start, format!("unknown word {:?}", key.get_ref()), near);
            continue;
        };
        own_list |= word == "circle" && value.get_ref().get("proposals").is_some();
        merge(reader, words, word, value, draft.entry(word).or_default());
    }
    if !own_list {
        sample::mirror(words, &mut draft);
    }
    Some(Example { line: reader.place(at).0, expected, because: because?, view: sample::view(draft) })
}

/// Sets the fields of one word.
fn merge(
    reader: &mut Reader<'_>,
    words: Words,
    word: &'static str,
    value: &Spanned<DeValue<'_>>,
    fields: &mut BTreeMap<&'static str, Value>,
) {
    let Some(table) = value.get_ref().as_table() else {
        let text = format!("{word} has fields: {word}.NAME = VALUE");
        reader.refuse(value.span().start, text, None);
        return;
    };
    for (key, value) in table {
        match words.field(word, key.get_ref()) {
            Some((field, path, kind)) => {
                if let Some(value) = typed(reader, words, path, kind, value) {
                    fields.insert(field, value);
                }
            }
            None => {
                let near = nearest(key.get_ref(), words.fields(word).map(|(field, ..)| field));
                reader.refuse(key.span().start, format!("unknown word \"{word}.{}\"", key.get_ref()), near);
            }
        }
    }
}

/// A value of the kind that is documented for its path.
fn typed(
    reader: &mut Reader<'_>,
    words: Words,
    path: &'static str,
    kind: Kind,
    value: &Spanned<DeValue<'_>>,
) -> Option<Value> {
    let typed = match (kind, value.get_ref()) {
        (Kind::Bool, DeValue::Boolean(value)) => Some(Value::Bool(*value)),
        (Kind::Int, value) => int(value).map(Value::Int),
        (Kind::Text, DeValue::String(text)) => Some(Value::from(&**text)),
        (Kind::Texts, DeValue::Array(items)) => {
            return items.iter().map(|item| typed(reader, words, path, Kind::Text, item)).collect();
        }
        // Each item is the sample's with some fields changed, like the example itself.
        (Kind::Maps, DeValue::Array(items)) => {
            let word = item_of(path).unwrap_or(path);
            let item = |item| {
                let mut fields = sample::fields(words, word);
                merge(reader, words, word, item, &mut fields);
                Value::Map(Arc::new(fields))
            };
            Some(items.iter().map(item).collect())
        }
        _ => None,
    };
    if typed.is_none() {
        let takes = match kind {
            Kind::Bool => "true or false",
            Kind::Int => "a whole number",
            Kind::Text => "a text",
            Kind::Texts => "a list of texts",
            Kind::Maps => "a list of tables",
        };
        let text = format!("{path} takes {takes}, not {}", value.get_ref().type_str());
        reader.refuse(value.span().start, text, None);
    }
    typed
}

fn int(value: &DeValue<'_>) -> Option<i64> {
    let int = value.as_integer()?;
    i64::from_str_radix(int.as_str(), int.radix()).ok()
}
