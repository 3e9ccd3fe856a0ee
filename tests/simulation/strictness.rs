//! What a charter's rules refuse, by their ids: the oracle demands no more than the charter in force does.

use super::history::History;
use super::stored::{Fact, TargetMoved};

impl History {
    /// Whether the charter refuses what that rule denies.
    pub fn enforces(&self, rule: &str) -> bool {
        let modes = self.charter().map(|charter| &charter.rules.modes);
        modes.and_then(|modes| modes.get(rule)).is_none_or(|mode| mode == "enforce")
    }

    pub fn enforces_all(&self) -> bool {
        self.charter().is_some_and(|charter| charter.rules.modes.values().all(|mode| mode == "enforce"))
    }

    /// Whether the team guards a repository.
    fn guards(&self) -> bool {
        self.charter().is_some_and(|charter| charter.repository.is_some())
    }

    /// The current version as references name it.
    pub fn current_reference(&self, proposal: &str) -> Option<String> {
        let current = self.current(proposal)?.what;
        Some(format!("{proposal}@{}:{}", current.version, &current.artifact.digest[..12]))
    }

    /// What git said last of the current version.
    pub fn said_by_git(&self, proposal: &str) -> Option<&TargetMoved> {
        let current = self.current_reference(proposal)?;
        self.facts().rev().find_map(|(_, _, fact)| match fact {
            Fact::Moved(event) if event.reference == current => Some(event),
            _ => None,
        })
    }

    /// What stands in the way of a confirmation, each with the rule that says so; for a producer also that
    /// its own work isn't accepted.
    pub fn denied(&self, proposal: &str, own: bool) -> Vec<(&'static str, String)> {
        let mut denied = Vec::new();
        let current = self.current(proposal).map(|current| current.what.version);
        if current.is_none() || self.is_withdrawn(proposal) {
            denied.push(("confirm/undelivered", "it has no version".to_owned()));
        }
        for remark in self.remarks_on(proposal) {
            let newer =
                current.is_some_and(|current| remark.version < current) && !self.is_withdrawn(proposal);
            if remark.is_open_objection() {
                let rule = if newer { "confirm/unresolved-objection" } else { "confirm/open-objection" };
                denied.push((rule, format!("{} by {} is open", remark.id, remark.by)));
            }
            if remark.closed.is_none() && !remark.read {
                denied.push(("confirm/unread", format!("{} is unread", remark.id)));
            }
        }
        let reviewed = current.filter(|_| !self.is_withdrawn(proposal));
        for (edge, version) in self.edges(proposal).iter().flat_map(|edge| reviewed.map(|v| (edge, v))) {
            let by = &edge.reviewer;
            if self.is_overruled(by, proposal, version) {
                continue;
            }
            if let Some(own) = self.own_work(by, proposal, version) {
                denied.push(("confirm/reviewer-ineligible", own));
            } else if !self.approves(by, proposal, version) {
                denied.push(("confirm/approval-missing", format!("{by} doesn't approve {version}")));
            }
        }
        if own && let Some(unmet) = self.unmet(proposal) {
            denied.push(("confirm/own-unaccepted", unmet));
        }
        if let Some(unproven) = self.failed_check(proposal) {
            denied.push(("confirm/required-check", unproven));
        }
        // What was withdrawn is published by nobody.
        if self.guards()
            && !self.is_withdrawn(proposal)
            && let Some(said) = self.said_by_git(proposal)
        {
            if said.empty {
                denied.push(("confirm/already-landed", "it changes nothing".to_owned()));
            }
            if said.undone.is_some() {
                denied.push(("confirm/undoes-landed", format!("it takes back {:?}", said.undone)));
            }
            let counts = |with: &String| {
                let name = with.split('@').next().unwrap_or_default();
                let stands = !self.is_dropped(name) && !self.is_withdrawn(name);
                stands && self.current_reference(name).as_ref() == Some(with)
            };
            if said.conflict.as_ref().is_some_and(|conflict| conflict.with.iter().all(counts)) {
                denied.push(("confirm/unmerged", format!("it doesn't merge: {:?}", said.conflict)));
            }
        }
        if self.unmet(proposal).is_none() && self.unevidenced(proposal) {
            denied.push(("confirm/unchecked-consensus", "nobody attached evidence".to_owned()));
        }
        denied.retain(|(rule, _)| self.enforces(rule));
        denied
    }

    /// A check that is required and didn't pass.
    fn failed_check(&self, proposal: &str) -> Option<String> {
        let version = self.current(proposal).filter(|_| !self.is_withdrawn(proposal))?.what.version;
        for check in &self.charter()?.required_checks {
            let last = self.facts().rev().find_map(|(_, _, fact)| match fact {
                Fact::CheckReported(event)
                    if event.proposal == proposal && event.version == version && event.name == *check =>
                {
                    Some(event.exit)
                }
                _ => None,
            });
            if last != Some(Some(0)) {
                return Some(format!("the last report of {check} is {last:?}"));
            }
        }
        None
    }

    fn unevidenced(&self, proposal: &str) -> bool {
        let version = self.current(proposal).map_or(0, |current| current.what.version);
        let edges = self.edges(proposal);
        let approved = edges.iter().any(|edge| self.approves(&edge.reviewer, proposal, version));
        approved && self.evidence(proposal) == 0
    }
}
