//! State: what the room's events add up to. It keeps no texts: those stand in the log, and [`Room::entries`] says
//! where.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::event::Verdict;
use crate::protocol::name::{MemberName, MessageId, Seq};
use crate::protocol::time::Time;

/// What is known of a message without its text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// Who said it.
    pub by: MemberName,
    /// Its place in the log.
    pub seq: Seq,
    /// The message with which its chain of mentions begins.
    pub root: MessageId,
    /// How long that chain is with it.
    pub length: u32,
    /// Whether it is a claim.
    pub claim: bool,
}

/// The room.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Room {
    /// By number, the first one first.
    pub(super) messages: Vec<Message>,
    /// Answers that are owed, and since when.
    pub(super) asked: BTreeMap<MemberName, BTreeMap<MessageId, Time>>,
    /// The last verdict of each member on each claim.
    pub(super) verdicts: BTreeMap<MessageId, BTreeMap<MemberName, Verdict>>,
    /// Chains of mentions that ended, by the message with which they began.
    pub(super) ended: BTreeSet<MessageId>,
    /// Where in the log the transcript's entries stand.
    pub(super) entries: Vec<Seq>,
}

impl Room {
    /// The message of that id.
    pub fn message(&self, id: MessageId) -> Option<&Message> {
        self.messages.get((id.0 as usize).checked_sub(1)?)
    }

    /// The newest message.
    pub fn last(&self) -> Option<MessageId> {
        u32::try_from(self.messages.len()).ok().filter(|count| *count > 0).map(MessageId)
    }

    /// The id that the next message gets.
    pub fn next_id(&self) -> MessageId {
        MessageId(self.last().map_or(1, |last| last.0 + 1))
    }

    /// Messages that wait for an answer of that member, with since when; oldest first.
    pub fn asked(&self, member: &MemberName) -> impl Iterator<Item = (MessageId, Time)> {
        self.asked.get(member).into_iter().flatten().map(|(id, since)| (*id, *since))
    }

    /// Whether somebody owes an answer.
    pub fn is_waiting(&self) -> bool {
        !self.asked.is_empty()
    }

    /// Whether the chain of mentions that began with that message ended.
    pub fn is_ended(&self, root: MessageId) -> bool {
        self.ended.contains(&root)
    }

    /// The last verdict of each member on a claim.
    pub fn verdicts(&self, claim: MessageId) -> impl Iterator<Item = (&MemberName, Verdict)> {
        self.verdicts.get(&claim).into_iter().flatten().map(|(member, verdict)| (member, *verdict))
    }

    /// Where in the log the transcript's entries stand, in order: messages, verdicts, call-outs, and what was put
    /// before a person and decided.
    pub fn entries(&self) -> &[Seq] {
        &self.entries
    }
}
