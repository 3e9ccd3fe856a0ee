//! Commands as they are printed: what obligations, requirements and remedies name. Each is accepted as it stands
//! once `TEXT`, `DIR` and `FILE` are filled in.

use super::follow::foreseen;
use super::state::{Objection, Proposal, Review};
use crate::protocol::charter::{Charter, Phase};
use crate::protocol::name::MemberName;
use crate::protocol::rejection::quoted;

impl Proposal {
    /// The command by which its producer proposes the next version: with an answer to each open objection.
    pub fn propose_command(&self, charter: &Charter) -> String {
        let artifact = if charter.repository.is_some() { "--commit HEAD" } else { "--path DIR" };
        let mut command = format!("countersign propose {} {artifact} --summary TEXT", self.name);
        for objection in self.open_objections() {
            command.push_str(&format!(" --answer {}=TEXT", objection.id));
        }
        command
    }

    /// The command by which that reviewer approves the current version: with every own objection that it
    /// has to resolve, and every test that it has to show.
    pub fn approval_command(&self, phase: &Phase, reviewer: &MemberName) -> String {
        let mut command = format!("countersign approve {}", self.current_ref());
        for objection in self.objections.iter().filter(|objection| objection.by == *reviewer) {
            if objection.blocks() {
                command.push_str(&format!(" --resolve {}", objection.id));
            }
        }
        let own = |objection: &&Objection| objection.by == *reviewer && objection.test_stands();
        let own = self.objections.iter().filter(own).filter_map(Objection::test);
        let mut tests: Vec<&str> = Vec::new();
        for test in own.chain(self.unshown(phase, reviewer)) {
            if !tests.contains(&test) {
                tests.push(test);
            }
        }
        for test in tests {
            command.push_str(&format!(" --ran {} --exit 0 --output @FILE", quoted(test)));
        }
        command
    }
}

/// The command by which a producer proposes the next version of `proposal`, with an answer to all that it would
/// take up where it touches what the current version touches.
pub(super) fn next_command(review: &Review, charter: &Charter, proposal: &Proposal) -> String {
    let mut command = proposal.propose_command(charter);
    foreseen(review, proposal)
        .iter()
        .for_each(|objection| command.push_str(&format!(" --answer {}=TEXT", objection.id)));
    command
}
