//! Requests that were answered: their answers as they are stored, and the latest of them in memory.

use std::collections::{BTreeMap, VecDeque};

use serde::{Deserialize, Serialize};

use super::outcome::{Done, RequestKey};
use super::presence::{Presence, Wake, WakeOutcome};
use crate::protocol::Answer;
use crate::protocol::name::{Actor, Digest, MemberName, Seq};
use crate::protocol::time::Time;

/// Requests whose answers are kept in memory; older ones are looked up in the log. More than can wait
/// for a commit, so that one is always in the one or in the other.
const REQUESTS_KEPT: usize = 8192;

/// The stored form of an answer: with whom it woke and what was called out, so that a repeated request gets the very same.
#[derive(Serialize, Deserialize)]
struct StoredAnswer {
    #[serde(flatten)]
    answer: Answer,
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    woke: Vec<StoredWake>,
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    called_out: Vec<String>,
}

#[derive(Serialize, Deserialize)]
struct StoredWake {
    member: MemberName,
    presence: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    since: Option<Time>,
    /// Whether it reached the member; left out where it waited.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    woke: bool,
}

pub(super) fn encode(done: &Done) -> String {
    let woke = done.woke.iter().map(|wake| StoredWake {
        member: wake.member.clone(),
        presence: wake.presence.as_str().to_owned(),
        since: wake.since,
        woke: wake.outcome == WakeOutcome::Woke,
    });
    let (answer, called_out) = (done.answer.clone(), done.called_out.clone());
    let stored = StoredAnswer { answer, woke: woke.collect(), called_out };
    serde_json::to_string(&stored).expect("an answer has string keys and no failing part")
}

/// The answer as it was first given; nothing where a newer version wrote a form that this one does
/// not know.
pub(super) fn decode(stored: &str, seq: Seq) -> Option<Done> {
    let stored: StoredAnswer = serde_json::from_str(stored).ok()?;
    let woke = stored.woke.into_iter().map(|wake| Wake {
        member: wake.member,
        outcome: if wake.woke { WakeOutcome::Woke } else { WakeOutcome::Stored },
        presence: Presence::named(&wake.presence),
        since: wake.since,
    });
    Some(Done { answer: stored.answer, woke: woke.collect(), called_out: stored.called_out, seq })
}

/// The latest accepted requests.
#[derive(Default)]
pub(super) struct Recent {
    answers: BTreeMap<(Actor, String), (Digest, Done)>,
    order: VecDeque<(Actor, String)>,
}

impl Recent {
    pub(super) fn get(&self, who: &Actor, id: &str) -> Option<&(Digest, Done)> {
        self.answers.get(&(who.clone(), id.to_owned()))
    }

    pub(super) fn keep(&mut self, who: Actor, key: RequestKey, done: Done) {
        let name = (who, key.id);
        self.answers.insert(name.clone(), (key.digest, done));
        self.order.push_back(name);
        if self.order.len() > REQUESTS_KEPT
            && let Some(oldest) = self.order.pop_front()
        {
            self.answers.remove(&oldest);
        }
    }
}
