//! What happened to one proposal, by the log.

use std::collections::{BTreeSet, VecDeque};

use serde_json::Value;
use tonic::Status;

use super::calls::Caller;
use crate::wire::json as form;
use crate::wire::proto;

/// Events of one page of the log.
const PAGE: u32 = 1_000;

/// The latest that are told.
const TOLD_MAX: usize = 500;

/// What the page shows of an event's body.
const SHOWN: [&str; 11] =
    ["version", "id", "how", "reason", "cause", "decision", "name", "exit", "because", "rule", "says"];

/// What happened since.
pub(super) struct Told {
    pub(super) events: Vec<Value>,
    /// What is about the proposal besides its name: ids of objections and escalations. Whoever asks for what comes
    /// after gives them back.
    pub(super) ids: BTreeSet<String>,
    /// As far as the log was read.
    pub(super) sequence: u64,
}

/// The events after that sequence that are about the proposal, its objections, its circle, and the escalations about
/// those; oldest first.
pub(super) async fn of(
    caller: &Caller,
    name: &str,
    after: u64,
    known: impl Iterator<Item = &str>,
) -> Result<Told, Status> {
    let mut about = About::of(name);
    about.ids.extend(known.take(TOLD_MAX).map(str::to_owned));
    let mut told = VecDeque::new();
    let mut from = after.saturating_add(1);
    let mut sequence = after;
    loop {
        let asked = caller.asks(proto::ListEventsRequest { from, page_size: PAGE });
        let page = caller.log().list_events(asked).await?.into_inner();
        for event in &page.events {
            sequence = event.sequence;
            let mut event = form::event(event);
            if about.takes(&event["body"]) {
                if told.len() == TOLD_MAX {
                    told.pop_front();
                }
                if let Some(body) = event["body"].as_object_mut() {
                    body.retain(|key, _| SHOWN.contains(&key.as_str()));
                }
                told.push_back(event);
            }
        }
        if page.next == 0 || page.events.is_empty() {
            return Ok(Told { events: told.into(), ids: about.ids, sequence });
        }
        from = page.next;
    }
}

/// What an event may be about to be told.
struct About {
    name: String,
    version: String,
    /// Ids of its objections and of escalations about it.
    ids: BTreeSet<String>,
}

impl About {
    fn of(name: &str) -> Self {
        Self { name: name.to_owned(), version: format!("{name}@"), ids: BTreeSet::new() }
    }

    fn takes(&mut self, body: &Value) -> bool {
        let text = |key: &str| body.get(key).and_then(Value::as_str).unwrap_or_default();
        let subject = text("subject");
        let named = text("proposal") == self.name || text("circle") == self.name;
        let subject_is =
            subject == self.name || subject.starts_with(&self.version) || self.ids.contains(subject);
        let listed = |key: &str| body.get(key).and_then(Value::as_array).into_iter().flatten();
        let held = listed("entries")
            .any(|entry| entry.get("proposal").and_then(Value::as_str) == Some(&self.name))
            || ["owing", "proposals"]
                .iter()
                .any(|key| listed(key).any(|one| one.as_str() == Some(&self.name)));
        let taken = named || subject_is || held || self.ids.contains(text("id"));
        if taken && !text("id").is_empty() {
            self.ids.insert(text("id").to_owned());
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_timeline_has_what_is_about_the_proposal_and_nothing_else() {
        let mut about = About::of("parser");
        for (body, taken) in [
            (json!({ "proposal": "parser", "version": 1 }), true),
            (json!({ "proposal": "parser2", "version": 1 }), false),
            (json!({ "subject": "parser@1", "says": "40 %" }), true),
            (json!({ "id": "o1", "proposal": "parser" }), true),
            (json!({ "id": "e1", "subject": "o1" }), true),
            (json!({ "id": "e1", "decision": "extend" }), true),
            (json!({ "id": "e2", "decision": "extend" }), false),
            (json!({ "circle": "implement", "entries": [{ "proposal": "parser" }] }), true),
            (json!({ "circle": "implement", "because": "it conflicts", "owing": ["parser"] }), true),
            (json!({ "circle": "implement", "by": "sec" }), false),
            (json!("parser"), false),
        ] {
            assert_eq!(about.takes(&body), taken, "{body}");
        }
    }
}
