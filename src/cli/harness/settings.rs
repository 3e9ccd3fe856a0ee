//! Settings in JSON, with or without comments, edited in place: what isn't ours keeps its form.

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstArray, CstInputValue, CstNode, CstObject, CstRootNode};
use serde_json::Value;

use super::{Harness, SettingsFault};

/// A file of settings: an object.
pub(super) struct Settings {
    root: CstRootNode,
    object: Object,
}

/// An object in them.
pub(super) struct Object {
    node: CstObject,
    harness: Harness,
}

/// A list in them.
pub(super) struct Array {
    node: CstArray,
    harness: Harness,
}

impl Settings {
    /// An empty text is an empty object.
    pub(super) fn parse(text: &str, harness: Harness) -> Result<Self, SettingsFault> {
        let text = if text.trim().is_empty() { "{}\n" } else { text };
        let root = CstRootNode::parse(text, &ParseOptions::default())
            .map_err(|why| SettingsFault::NoJson(why.to_string()))?;
        let node = root.object_value().ok_or_else(|| SettingsFault::Form("settings".to_owned(), harness))?;
        Ok(Self { root, object: Object { node, harness } })
    }

    pub(super) fn text(&self) -> String {
        self.root.to_string()
    }
}

impl std::ops::Deref for Settings {
    type Target = Object;
    fn deref(&self) -> &Object {
        &self.object
    }
}

impl Object {
    fn form(&self, name: &str) -> SettingsFault {
        SettingsFault::Form(name.to_owned(), self.harness)
    }

    /// The object of that name, which is made where there is none.
    pub(super) fn object(&self, name: &str) -> Result<Self, SettingsFault> {
        let node = self.node.object_value_or_create(name).ok_or_else(|| self.form(name))?;
        Ok(Self { node, harness: self.harness })
    }

    /// The list of that name, which is made where there is none.
    pub(super) fn array(&self, name: &str) -> Result<Array, SettingsFault> {
        let node = self.node.array_value_or_create(name).ok_or_else(|| self.form(name))?;
        node.ensure_multiline();
        Ok(Array { node, harness: self.harness })
    }

    /// The object of that name, where there is one.
    pub(super) fn find_object(&self, name: &str) -> Result<Option<Self>, SettingsFault> {
        self.node.get(name).map(|_| self.object(name)).transpose()
    }

    /// The list of that name, where there is one.
    pub(super) fn find_array(&self, name: &str) -> Result<Option<Array>, SettingsFault> {
        let found = self.node.get(name).map(|member| member.array_value().ok_or_else(|| self.form(name)));
        Ok(found.transpose()?.map(|node| Array { node, harness: self.harness }))
    }

    /// The text of that name.
    pub(super) fn word(&self, name: &str) -> Option<String> {
        self.node.get(name)?.value()?.as_string_lit()?.decoded_value().ok()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.node.properties().is_empty()
    }

    pub(super) fn remove_member(&self, name: &str) {
        if let Some(member) = self.node.get(name) {
            member.remove();
        }
    }

    pub(super) fn remove(self) {
        self.node.remove();
    }
}

impl Array {
    pub(super) fn push(&self, value: &Value) {
        self.node.append(input(value));
    }

    /// Its elements that are objects.
    pub(super) fn objects(&self) -> Vec<Object> {
        let elements = self.node.elements();
        let objects = elements.iter().filter_map(CstNode::as_object);
        objects.map(|node| Object { node, harness: self.harness }).collect()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.node.elements().is_empty()
    }
}

/// A value, as the editor takes it.
fn input(value: &Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(yes) => CstInputValue::Bool(*yes),
        Value::Number(number) => CstInputValue::Number(number.to_string()),
        Value::String(text) => CstInputValue::String(text.clone()),
        Value::Array(elements) => CstInputValue::Array(elements.iter().map(input).collect()),
        Value::Object(members) => {
            CstInputValue::Object(members.iter().map(|(name, value)| (name.clone(), input(value))).collect())
        }
    }
}

/// A word of a shell's command line that means just this text.
pub(super) fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_quoted_where_a_shell_would_read_more_in_it() {
        assert_eq!(quoted("/usr/bin/countersign"), "/usr/bin/countersign");
        assert_eq!(quoted("/a b/$(id)"), "'/a b/$(id)'");
        assert_eq!(quoted("it's"), "'it'\\''s'");
        assert_eq!(quoted(""), "''");
    }
}
