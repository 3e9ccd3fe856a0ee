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
}

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

    /// By member and code.
    pub fn all(&self) -> impl Iterator<Item = (&MemberName, &'static str, &Attempt)> {
        self.by.iter().map(|((member, code), attempt)| (member, *code, attempt))
    }

    /// How often each rule refused a command, by the rule's id.
    pub fn rules(&self) -> &BTreeMap<String, u64> {
        &self.rules
    }
}
