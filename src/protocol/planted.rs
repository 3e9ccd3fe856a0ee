//! Planted faults, in builds with the feature `planted` alone: one reason of one verb is left out, so that a
//! test can show that somebody notices. Nothing of it is in any other build.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;

use super::rejection::Violation;
use super::team::Command;

/// A reason that a verb no longer gives.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Guard {
    /// The verb, in one word.
    pub verb: &'static str,
    /// The code; of `CONFIRM_BLOCKED` with the rule behind a space, or without one for all of them.
    pub code: String,
}

thread_local! {
    static LEFT_OUT: RefCell<Option<Guard>> = const { RefCell::new(None) };
    static ASKED: Cell<&'static str> = const { Cell::new("") };
    static GATHERED: RefCell<Gathered> = const { RefCell::new(Gathered { all: BTreeSet::new(), alone: BTreeSet::new() }) };
}

/// From here on, and on this thread, that guard is gone; or none is.
pub fn plant(guard: Option<Guard>) {
    LEFT_OUT.set(guard);
}

/// The reasons that were given.
#[derive(Clone, Debug, Default)]
pub struct Gathered {
    /// Every one.
    pub all: BTreeSet<Guard>,
    /// Those that once were the only one: without any other, nothing changes where it is left out.
    pub alone: BTreeSet<Guard>,
}

/// Every reason that was given on this thread since this was last asked.
pub fn gathered() -> Gathered {
    GATHERED.take()
}

/// How the guard behind a reason is called.
fn code(violation: &Violation) -> String {
    match violation {
        Violation::ConfirmBlocked { rule, .. } => format!("{} {rule}", violation.code()),
        other => other.code().to_owned(),
    }
}

pub(super) fn asked(command: &Command) {
    ASKED.set(command.verb());
}

/// The reasons that are still given.
pub(super) fn left(mut violations: Vec<Violation>) -> Vec<Violation> {
    let verb = ASKED.get();
    let given: BTreeSet<Guard> =
        violations.iter().map(|violation| Guard { verb, code: code(violation) }).collect();
    GATHERED.with_borrow_mut(|gathered| {
        if given.len() == 1 {
            gathered.alone.extend(given.iter().cloned());
        }
        gathered.all.extend(given);
        let blocked = Guard { verb, code: "CONFIRM_BLOCKED".to_owned() };
        if !violations.is_empty() && violations.iter().all(|one| one.code() == blocked.code) {
            gathered.alone.insert(blocked.clone());
            gathered.all.insert(blocked);
        }
    });
    LEFT_OUT.with_borrow(|guard| {
        let Some(guard) = guard.as_ref().filter(|guard| guard.verb == verb) else { return };
        violations.retain(|violation| {
            let code = code(violation);
            code != guard.code && code.split(' ').next() != Some(guard.code.as_str())
        });
    });
    violations
}
