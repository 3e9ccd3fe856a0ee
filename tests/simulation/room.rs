//! The room: what a log must say of messages, mentions and verdicts, worked out anew.

use std::collections::{BTreeMap, BTreeSet};

use super::history::History;
use super::oracle::{Asked, Broken, Oracle, Verdict, demand};
use super::stored::{ClaimJudged, Fact, Said};

/// A chain of mentions that is longer ends, for good.
const CHAIN: u32 = 8;

impl History {
    fn messages(&self) -> Vec<&Said> {
        let said = self.facts().filter_map(|(_, _, fact)| match fact {
            Fact::Said(said) => Some(said),
            _ => None,
        });
        said.collect()
    }

    fn message(&self, id: &str) -> Option<&Said> {
        self.messages().into_iter().find(|said| said.id == id)
    }

    fn verdicts(&self, claim: &str) -> Vec<&ClaimJudged> {
        let judged = self.facts().filter_map(|(_, _, fact)| match fact {
            Fact::ClaimJudged(judged) if judged.message == claim => Some(judged),
            _ => None,
        });
        judged.collect()
    }

    /// Who owes an answer to which message.
    pub fn answers_owed(&self) -> BTreeSet<(String, String)> {
        let messages: BTreeMap<&str, &Said> =
            self.messages().into_iter().map(|said| (said.id.as_str(), said)).collect();
        let mut owed: BTreeSet<(String, String)> = BTreeSet::new();
        for (_, _, fact) in self.facts() {
            match fact {
                Fact::Said(said) => {
                    let answered = said.reply.as_ref().and_then(|reply| messages.get(reply.as_str()));
                    if let Some(answered) = answered {
                        owed.retain(|(member, id)| {
                            let known = messages[id.as_str()];
                            let same = known.root == answered.root && known.claim.is_none();
                            *member != said.by || !same || number(id) > number(&answered.id)
                        });
                    }
                    let asks = said.mentions.iter().filter(|_| !said.ended);
                    owed.extend(asks.map(|member| (member.clone(), said.id.clone())));
                }
                Fact::ClaimJudged(judged) => {
                    owed.remove(&(judged.by.clone(), judged.message.clone()));
                }
                Fact::Charter(adopted) => owed.retain(|(member, id)| {
                    let members = &adopted.charter.members;
                    members.contains_key(&messages[id.as_str()].by) && members.contains_key(member)
                }),
                _ => {}
            }
        }
        owed
    }
}

impl Oracle {
    pub(super) fn said(&self, asked: &Asked, said: &Said) -> Verdict {
        let history = self.history();
        let messages = history.messages();
        demand!("form", said.id == format!("m{}", messages.len() + 1), "{} is not the next one", said.id);
        demand!("limits", !said.text.trim().is_empty(), "{} says nothing", said.id);
        let charter = history.charter().expect("a charter comes first");
        demand!("limits", said.text.len() <= charter.limits.text_bytes, "{} is too long", said.id);
        let everybody: Vec<&String> = charter.members.keys().filter(|name| **name != said.by).collect();
        let whom: BTreeSet<&String> = if asked.mentions.iter().any(|name| name == "all") {
            everybody.into_iter().collect()
        } else {
            everybody.into_iter().filter(|name| asked.mentions.contains(name)).collect()
        };
        let known = |name: &String| name == "all" || charter.members.contains_key(name);
        demand!("G14", asked.mentions.iter().all(known), "{} is to {:?}", said.id, asked.mentions);
        let mentions: BTreeSet<&String> = said.mentions.iter().collect();
        demand!("G14", whom == mentions, "{:?} are mentioned, and {mentions:?} stands", asked.mentions);
        let reply = said.reply.as_deref().unwrap_or_default();
        demand!("G14", reply == asked.subject, "{} was to answer {:?}", said.id, asked.subject);
        let owed = history.answers_owed();
        let open = owed.iter().filter(|(member, _)| *member == said.by).map(|(_, id)| id.as_str());
        let before: Vec<&Said> =
            open.chain(said.reply.as_deref()).filter_map(|id| history.message(id)).collect();
        demand!("G14", said.reply.is_none() || !before.is_empty(), "{} answers nothing", said.id);
        let longest = before.iter().map(|message| message.length).max().unwrap_or(0);
        let begins = history.is_human(&said.by) || before.is_empty();
        let goes_on = |message: &&Said| message.length == longest && message.root == said.root;
        let (length, root) =
            if begins { (1, said.root == said.id) } else { (longest + 1, before.iter().any(goes_on)) };
        demand!(
            "room",
            said.length == length && root,
            "{} goes on with {} as the {}th",
            said.id,
            said.root,
            said.length
        );
        let over = messages.iter().any(|known| known.ended && known.root == said.root);
        let ended = (said.length > CHAIN || over) && !said.mentions.is_empty();
        demand!("room", said.ended == ended, "{} is the {}th of its chain", said.id, said.length);
        Ok(())
    }

    pub(super) fn claim_judged(&self, asked: &Asked, judged: &ClaimJudged) -> Verdict {
        let history = self.history();
        demand!("G14", asked.subject == judged.message, "{} became {}", asked.subject, judged.message);
        let claim = history.message(&judged.message).filter(|said| said.claim.is_some());
        demand!("room", claim.is_some(), "{} is no claim, and was judged", judged.message);
        let own = claim.is_some_and(|claim| claim.by == judged.by);
        demand!("G3", !own, "{} judged its own {}", judged.by, judged.message);
        let verdicts = history.verdicts(&judged.message);
        let before = verdicts.iter().rev().find(|before| before.by == judged.by);
        let same = before.is_some_and(|before| before.verdict == judged.verdict);
        demand!("room", !same, "{} judged {} twice alike", judged.by, judged.message);
        Ok(())
    }

    /// A person is told of each chain that ended, once, by the message that ended it first.
    pub(super) fn chains_are_told(&self) -> Verdict {
        let history = self.history();
        let ended: BTreeSet<&String> =
            history.messages().into_iter().filter(|said| said.ended).map(|said| &said.root).collect();
        let told: Vec<&String> = history
            .facts()
            .filter_map(|(_, _, fact)| match fact {
                Fact::Escalated(event) if event.cause == "mention-chain" => Some(&event.subject),
                _ => None,
            })
            .collect();
        let once: BTreeSet<&String> = told.iter().copied().collect();
        demand!("G13", once == ended && told.len() == once.len(), "{ended:?} ended, and told were {told:?}");
        Ok(())
    }
}

fn number(id: &str) -> u32 {
    id.trim_start_matches('m').parse().unwrap_or(0)
}
