//! apply: folds one event into the room.

use super::event::Said;
use super::state::{Message, Room};
use crate::protocol::charter::Charter;
use crate::protocol::event::Event;
use crate::protocol::name::{MemberName, MessageId, Seq};
use crate::protocol::time::Time;

impl Room {
    pub(in crate::protocol) fn apply(&mut self, charter: &Charter, seq: Seq, at: Time, event: &Event) {
        match event {
            Event::Said(said) => self.said(seq, at, said),
            Event::ClaimJudged(judged) => {
                let verdicts = self.verdicts.entry(judged.message).or_default();
                verdicts.insert(judged.by.clone(), judged.verdict);
                self.answered(&judged.by, |id| id == judged.message);
            }
            Event::CharterAdopted(_) => return self.left(charter),
            Event::Escalated(_) | Event::EscalationClosed(_) | Event::CalledOut(_) => {}
            _ => return,
        }
        self.entries.push(seq);
    }

    fn said(&mut self, seq: Seq, at: Time, said: &Said) {
        if let Some(answered) = said.reply {
            // Whoever answers a message has read what came before it in the same chain.
            let root = self.message(answered).map(|message| message.root);
            let same: Vec<MessageId> = self
                .asked(&said.by)
                .map(|(id, _)| id)
                .filter(|id| *id <= answered)
                .filter(|id| self.message(*id).is_some_and(|of| !of.claim && Some(of.root) == root))
                .collect();
            self.answered(&said.by, |id| same.contains(&id));
        }
        self.messages.push(Message {
            by: said.by.clone(),
            seq,
            root: said.root,
            length: said.length,
            claim: said.claim.is_some(),
        });
        if said.ended {
            self.ended.insert(said.root);
        }
        for member in said.mentions.iter().filter(|_| !said.ended) {
            self.asked.entry(member.clone()).or_default().insert(said.id, at);
        }
    }

    fn answered(&mut self, by: &MemberName, which: impl Fn(MessageId) -> bool) {
        if let Some(asked) = self.asked.get_mut(by) {
            asked.retain(|id, _| !which(*id));
            if asked.is_empty() {
                self.asked.remove(by);
            }
        }
    }

    /// Who left owes no answer, and nobody waits for one to what they said.
    fn left(&mut self, charter: &Charter) {
        let there = |member: &MemberName| charter.members.contains_key(member);
        let messages = &self.messages;
        let stays = |id: &MessageId| {
            let message = messages.get((id.0 as usize).saturating_sub(1));
            message.is_some_and(|message| there(&message.by))
        };
        self.asked.retain(|member, asked| {
            asked.retain(|id, _| stays(id));
            there(member) && !asked.is_empty()
        });
    }
}
