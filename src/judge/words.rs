//! Which words a rule may use: the part of [`FIELDS`] that a view of its moment and subject has.

use crate::protocol::rule::view::{FIELDS, Kind};
use crate::protocol::rule::{About, Moment};

/// What an item of a list of maps is: it has that word's fields.
const ITEMS: &[(&str, &str)] = &[("circle.proposals", "proposal")];

/// The words of a rule that is asked at one moment about one kind of thing.
#[derive(Clone, Copy, Debug)]
pub(super) struct Words {
    /// When the rule is asked.
    pub(super) when: Moment,
    /// What it is about.
    pub(super) about: About,
}

impl Words {
    /// Those that have every word between them.
    #[cfg(test)]
    pub(super) fn all() -> [Self; 7] {
        [
            (Moment::Confirm, About::Review),
            (Moment::Confirm, About::Objection),
            (Moment::Confirm, About::Check),
            (Moment::Confirm, About::Escalation),
            (Moment::Propose, About::Proposal),
            (Moment::Approve, About::Proposal),
            (Moment::Text, About::Text),
        ]
        .map(|(when, about)| Self { when, about })
    }

    /// The top-level words.
    pub(super) fn tops(self) -> impl Iterator<Item = &'static str> {
        let about = self.about;
        let confirms = self.when == Moment::Confirm;
        [
            ("circle", self.when != Moment::Text),
            // Nobody confirms yet when a version or an approval is judged.
            ("confirmer", confirms),
            ("proposal", about.has_proposal()),
            ("review", about == About::Review),
            ("objection", about == About::Objection),
            ("check", about == About::Check),
            ("escalation", about == About::Escalation),
            ("offer", self.when == Moment::Propose),
            ("approval", self.when == Moment::Approve),
            ("text", self.when == Moment::Text),
        ]
        .into_iter()
        .filter_map(|(word, there)| there.then_some(word))
    }

    /// The fields of a top-level word, or of an item that has the fields of one: name, path, kind.
    pub(super) fn fields(self, word: &str) -> impl Iterator<Item = (&'static str, &'static str, Kind)> {
        let confirms = self.when == Moment::Confirm;
        FIELDS.iter().filter_map(move |(path, kind, _)| {
            let field = path.strip_prefix(word)?.strip_prefix('.')?;
            (confirms || field != "confirmer_is_producer").then_some((field, *path, *kind))
        })
    }

    /// One field of a word.
    pub(super) fn field(self, word: &str, field: &str) -> Option<(&'static str, &'static str, Kind)> {
        self.fields(word).find(|(name, ..)| *name == field)
    }

    /// Whether a text may say `{path}`.
    pub(super) fn has(self, path: &str) -> bool {
        path.split_once('.').is_some_and(|(word, field)| {
            self.tops().any(|top| top == word) && self.field(word, field).is_some()
        })
    }

    /// Every path.
    pub(super) fn paths(self) -> impl Iterator<Item = &'static str> {
        self.tops().flat_map(move |word| self.fields(word).map(|(_, path, _)| path))
    }
}

/// The word whose fields an item of that list of maps has.
pub(super) fn item_of(path: &str) -> Option<&'static str> {
    ITEMS.iter().find(|(list, _)| *list == path).map(|(_, word)| *word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_list_of_maps_says_what_its_items_are() {
        for (path, kind, _) in FIELDS {
            assert_eq!(*kind == Kind::Maps, item_of(path).is_some(), "{path}");
        }
    }

    #[test]
    fn every_documented_word_is_some_rules_word() {
        let all = Words::all();
        for (path, ..) in FIELDS {
            assert!(all.iter().any(|words| words.has(path)), "{path}");
        }
    }

    #[test]
    fn nobody_confirms_before_a_confirmation() {
        let words = Words { when: Moment::Approve, about: About::Proposal };
        assert!(!words.has("confirmer.name"));
        assert!(!words.has("proposal.confirmer_is_producer"));
        assert!(words.has("proposal.name"));
        assert!(!words.has("review.vote"));
    }
}
