//! The view that examples start from and on which each condition is tried once when it is loaded: a
//! circle in which all is well.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::words::Words;
use crate::protocol::rule::{Value, View};

/// A view in the making: the fields of each top-level word.
pub(super) type Draft = BTreeMap<&'static str, BTreeMap<&'static str, Value>>;

/// What all is well looks like: `parser@2` of app, approved by sec, one objection answered and resolved.
pub(super) fn draft(words: Words) -> Draft {
    let mut draft: Draft = words.tops().map(|word| (word, fields(words, word))).collect();
    mirror(words, &mut draft);
    draft
}

/// The sample's values of one word.
pub(super) fn fields(words: Words, word: &str) -> BTreeMap<&'static str, Value> {
    words.fields(word).filter_map(|(field, path, _)| Some((field, value(path)?))).collect()
}

/// Lets the circle's list hold what `proposal` says, so that the two can't differ.
pub(super) fn mirror(words: Words, draft: &mut Draft) {
    let proposal = draft.get("proposal").cloned().unwrap_or_else(|| fields(words, "proposal"));
    if let Some(circle) = draft.get_mut("circle") {
        circle.insert("proposals", Value::List(vec![Value::Map(Arc::new(proposal))]));
    }
}

/// The draft as a rule sees it.
pub(super) fn view(draft: Draft) -> View {
    View { words: draft.into_iter().map(|(word, fields)| (word, Value::Map(Arc::new(fields)))).collect() }
}

/// The sample's value at a path; `circle.proposals` is [`mirror`]'s.
pub(super) fn value(path: &str) -> Option<Value> {
    let texts = |texts: &[&str]| texts.iter().copied().map(Value::from).collect::<Value>();
    Some(match path {
        "confirmer.name" => "app".into(),
        "confirmer.produces" => true.into(),
        "circle.name" | "circle.phase" => "implement".into(),
        "circle.ref" => "implement:3fa91c20d8e7".into(),
        "circle.dissent" => false.into(),
        "circle.participants" => texts(&["app", "sec"]),
        "proposal.name" => "parser".into(),
        "proposal.producer" => "app".into(),
        "proposal.delivered" => true.into(),
        "proposal.version" => 2_i64.into(),
        "proposal.ref" => "parser@2:41d0c9aa1e53".into(),
        "proposal.propose" => "countersign propose parser --commit HEAD --summary TEXT".into(),
        "proposal.withdrawn" | "proposal.unpublishable" => false.into(),
        "proposal.accepted" => true.into(),
        "proposal.rounds" | "proposal.approvals" | "proposal.evidence" => 1_i64.into(),
        "proposal.open_objections" | "proposal.unread" => texts(&[]),
        "proposal.confirmer_is_producer" => true.into(),
        "proposal.target" => "refs/heads/main".into(),
        "proposal.landed" => false.into(),
        "proposal.undone" | "proposal.undone_commits" => texts(&[]),
        "proposal.conflict" => "".into(),
        "review.reviewer" => "sec".into(),
        "review.lens" => "security".into(),
        "review.vote" => "approve".into(),
        "review.voted_version" => 2_i64.into(),
        "review.read" | "review.eligible" => true.into(),
        "review.overruled" => false.into(),
        "review.evidence" => 1_i64.into(),
        "review.approve" => "countersign approve parser@2:41d0c9aa1e53".into(),
        "review.unshown" => texts(&[]),
        "objection.id" => "o1".into(),
        "objection.by" => "sec".into(),
        "objection.kind" => "objection".into(),
        "objection.version" => 1_i64.into(),
        "objection.status" => "resolved".into(),
        "objection.read" => true.into(),
        "objection.failing_test" => "cargo test huge_input".into(),
        "check.name" => "ci".into(),
        "check.status" => "passed".into(),
        "check.by" => "app".into(),
        "escalation.id" => "e1".into(),
        "escalation.cause" => "stall".into(),
        "escalation.subject" => "implement".into(),
        "escalation.needs_decision" => false.into(),
        "escalation.decide" => "extend".into(),
        "offer.version" => 3_i64.into(),
        "offer.by" => "app".into(),
        "offer.summary" => "The lock moved, and a test holds it there".into(),
        "offer.paths" => texts(&["src/lexer.rs"]),
        "offer.authors" => texts(&["app@example.org"]),
        "offer.answers" => texts(&["o1"]),
        "offer.round" => true.into(),
        "approval.ref" => "parser@2:41d0c9aa1e53".into(),
        "approval.by" => "sec".into(),
        "approval.lenses" => texts(&["security"]),
        "approval.checked" => texts(&["src/lexer.rs:80-140"]),
        "approval.ran" => texts(&["cargo test lexer"]),
        "approval.resolves" => texts(&["o1"]),
        "text.kind" => "objection".into(),
        "text.by" => "sec".into(),
        "text.subject" => "o1".into(),
        "text.body" => "Overflows on a large input, see src/lexer.rs:112".into(),
        "text.figures" | "text.totals" => texts(&[]),
        "text.range" | "text.method" => false.into(),
        "text.places" => 1_i64.into(),
        "text.commands" => 0_i64.into(),
        "text.numbers" => 0_i64.into(),
        "text.again" => "countersign object parser@2:41d0c9aa1e53 TEXT --at PLACE".into(),
        _ => return None,
    })
}

/// Whether a value is of a documented kind.
#[cfg(test)]
fn is_of(value: &Value, kind: crate::protocol::rule::view::Kind) -> bool {
    use crate::protocol::rule::view::Kind;
    match (value, kind) {
        (Value::Bool(_), Kind::Bool) | (Value::Int(_), Kind::Int) | (Value::Text(_), Kind::Text) => true,
        (Value::List(items), Kind::Texts) => items.iter().all(|item| matches!(item, Value::Text(_))),
        (Value::List(items), Kind::Maps) => items.iter().all(|item| matches!(item, Value::Map(_))),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::rule::view::FIELDS;

    #[test]
    fn the_sample_has_every_documented_word_in_its_kind() {
        for words in Words::all() {
            let view = view(draft(words));
            for (path, kind, _) in FIELDS.iter().filter(|(path, ..)| words.has(path)) {
                let value = view.at(path).unwrap_or_else(|| panic!("the sample lacks {path}"));
                assert!(is_of(value, *kind), "{path} is {value:?}");
            }
        }
    }
}
