//! What is said in the room, and the verdicts on it: see `check` for the rest.

use std::collections::BTreeMap;

use countersign::protocol::Command;
use countersign::protocol::room::{ClaimJudged, Said};

use super::check::{Asking, Broken, Verdict, demand};
use super::facts::{Facts, Heard};

impl Facts {
    pub(super) fn heard(&mut self, asking: &Asking<'_>, event: &Said) -> Verdict {
        let Command::Say(say) = asking.command else {
            return Err(Broken { guarantee: "G14", what: format!("nobody said {}", event.id) });
        };
        let (by, claim) = (event.by.to_string(), event.claim.is_some());
        self.said.push(Heard { by, claim, verdicts: BTreeMap::new() });
        let id = self.said.len() as u32;
        demand!("form", event.id.0 == id, "{} is not the next one", event.id);
        let answered = say.reply.map_or(0, |reply| reply.0);
        demand!("room", answered < id, "{} answers m{answered}, which nobody said", event.id);
        let known = say.to.iter().all(|name| self.rules().members.contains(name.as_str()));
        demand!("G14", known, "{} is to {:?}", event.id, say.to);
        Ok(())
    }

    pub(super) fn judged(&mut self, event: &ClaimJudged) -> Verdict {
        let by = event.by.as_str();
        let said = self.said.get_mut(event.message.0 as usize - 1);
        let claim = said.filter(|said| said.claim);
        let Some(claim) = claim else {
            return Err(Broken {
                guarantee: "room",
                what: format!("{} is no claim, and was judged", event.message),
            });
        };
        demand!("G3", claim.by != by, "{by} judged its own {}", event.message);
        let verdict = event.verdict.to_string();
        let before = claim.verdicts.insert(by.to_owned(), verdict.clone());
        demand!("room", before != Some(verdict), "{by} judged {} twice alike", event.message);
        Ok(())
    }
}
