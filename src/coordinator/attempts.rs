//! What was tried and refused, since the server started: counted in memory, and shown.

use std::collections::BTreeMap;

use crate::protocol::Rejection;
use crate::protocol::Violation;
use crate::protocol::name::MemberName;
use crate::protocol::time::Time;

/// The most characters of what the last one said: everybody's `status` shows them.
const SAID_CHARS_MAX: usize = 300;

/// One member's refusals with one code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// How many.
    pub count: u64,
    /// When the last was.
    pub at: Time,
    /// What it said.
    pub said: String,
}

/// Refusals of a team. Bounded: members and codes are few.
#[derive(Clone, Debug, Default)]
pub struct Attempts {
    by: BTreeMap<(MemberName, &'static str), Attempt>,
    rules: BTreeMap<String, u64>,
    pushes: BTreeMap<String, (&'static str, Attempt)>,
}

/// Refs of which refused pushes are counted apart; those to further ones are counted together. Whoever pushes can
/// make up any number of names.
const REFS_MAX: usize = 256;

/// What further refs are counted as.
const FURTHER_REFS: &str = "further refs";

impl Attempts {
    /// Notes a refusal.
    pub(super) fn refused(&mut self, member: Option<&MemberName>, at: Time, rejection: &Rejection) {
        for rule in rejection.violations().iter().filter_map(Violation::rule) {
            *self.rules.entry(rule.to_owned()).or_default() += 1;
        }
        let Some(member) = member else { return };
        let said: String = rejection.first().to_string().chars().take(SAID_CHARS_MAX).collect();
        let known = self.by.entry((member.clone(), rejection.code()));
        let attempt = known.or_insert(Attempt { count: 0, at, said: String::new() });
        *attempt = Attempt { count: attempt.count + 1, at, said };
    }

    /// Notes a refused push to that ref. Git knows nobody, so it is nobody's.
    pub(super) fn push_refused(&mut self, reference: &str, at: Time, violation: &Violation) {
        let known = self.pushes.contains_key(reference) || self.pushes.len() < REFS_MAX;
        let name = if known { reference } else { FURTHER_REFS };
        let before = self.pushes.get(name).map_or(0, |(_, attempt)| attempt.count);
        let said = violation.to_string().chars().take(SAID_CHARS_MAX).collect();
        let attempt = Attempt { count: before + 1, at, said };
        self.pushes.insert(name.to_owned(), (violation.code(), attempt));
    }

    /// Refused pushes by ref, with the last one's code.
    pub fn pushes(&self) -> impl Iterator<Item = (&str, &'static str, &Attempt)> {
        self.pushes.iter().map(|(reference, (code, attempt))| (reference.as_str(), *code, attempt))
    }

    /// By member and code.
    pub fn all(&self) -> impl Iterator<Item = (&MemberName, &'static str, &Attempt)> {
        self.by.iter().map(|((member, code), attempt)| (member, *code, attempt))
    }

    /// How often each rule refused a command, by the rule's id.
    pub fn rules(&self) -> &BTreeMap<String, u64> {
        &self.rules
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pushes_are_counted_by_ref_and_made_up_names_together() {
        let mut attempts = Attempts::default();
        let refused = |reference: &str| Violation::DirectPush {
            reference: reference.to_owned(),
            deliverable: "parser".to_owned(),
        };
        let push = |attempts: &mut Attempts, name: &str| attempts.push_refused(name, Time(1), &refused(name));
        push(&mut attempts, "refs/heads/main");
        (0..1000).for_each(|number| push(&mut attempts, &format!("refs/tags/{number}")));
        push(&mut attempts, "refs/heads/main");
        let count = |name: &str| attempts.pushes().find(|one| one.0 == name).map(|one| one.2.count);
        assert_eq!(count("refs/heads/main"), Some(2));
        assert_eq!(attempts.pushes().count(), REFS_MAX + 1);
        assert_eq!(count(FURTHER_REFS), Some(1001 - REFS_MAX as u64));
    }
}
