//! Staged commits that nobody proposed: each is let go once it was seen so for a day.
//!
//! A day is counted from when this process saw the ref first, by its own clock, so that no clock of another machine,
//! and no date in a commit, lets one go early. A server that begins anew counts anew.

use std::collections::{BTreeMap, BTreeSet};

use super::answer::Failure;
use super::pin;
use super::shared::Shared;
use crate::artifact;
use crate::artifact::repository::Repository;
use crate::door::refs;
use crate::protocol::name::{Digest, TeamName};
use crate::protocol::time::{Span, Time};

/// How long a staged commit is kept that nobody proposes.
const KEPT_FOR: Span = Span::seconds(24 * 60 * 60);

/// What is staged in one repository and was not known to be proposed, and since when.
#[derive(Debug, Default)]
pub(super) struct Unproposed {
    since: BTreeMap<Digest, Time>,
    /// A version holds these: it does so for ever.
    proposed: BTreeSet<Digest>,
}

impl Unproposed {
    /// Takes in what is staged now; tells what was for long enough.
    fn look(&mut self, now: Time, staged: &BTreeSet<Digest>) -> Vec<Digest> {
        self.since.retain(|commit, _| staged.contains(commit));
        self.proposed.retain(|commit| staged.contains(commit));
        for commit in staged.difference(&self.proposed) {
            self.since.entry(commit.clone()).or_insert(now);
        }
        let due = self.since.iter().filter(|(_, since)| now - **since >= KEPT_FOR);
        due.map(|(commit, _)| commit.clone()).collect()
    }

    /// It is there no longer: pushed again, it counts anew, also where nobody looked in between.
    fn is_gone(&mut self, commit: &Digest) {
        self.since.remove(commit);
    }

    fn is_proposed(&mut self, commit: &Digest) {
        self.since.remove(commit);
        self.proposed.insert(commit.clone());
    }
}

/// Lets go of what nobody proposed. A team that sleeps is woken only where something is old enough.
pub(super) async fn sweep(
    shared: &Shared,
    name: &TeamName,
    repository: &Repository,
    unproposed: &mut Unproposed,
) -> Result<(), Failure> {
    let staged = refs::staged(repository.refs()).await.map_err(artifact::Failure::Fault)?;
    let due = unproposed.look(shared.now(), &staged);
    if due.is_empty() {
        return Ok(());
    }
    let Some(team) = shared.coordinator.team(name) else { return Ok(()) };
    let owed = team.peek(pin::owed);
    for commit in due {
        if owed.iter().any(|pin| pin.commit == commit) {
            unproposed.is_proposed(&commit);
        } else {
            repository.unstage(&commit).await?;
            unproposed.is_gone(&commit);
            tracing::info!(team = %name, %commit, "nobody proposed what was staged a day ago: it is let go");
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_staged_is_let_go_a_day_after_it_was_first_seen_unproposed() {
        let id = |digit: &str| digit.repeat(40).parse::<Digest>().unwrap();
        let (one, two) = (id("1"), id("2"));
        let both = BTreeSet::from([one.clone(), two.clone()]);
        let only = |commit: &Digest| BTreeSet::from([commit.clone()]);
        let (start, hour) = (Time(1_790_000_000_000_000), Span::seconds(60 * 60));
        let mut unproposed = Unproposed::default();
        assert_eq!(unproposed.look(start, &only(&one)), []);
        assert_eq!(unproposed.look(start + hour, &both), []);
        assert_eq!(unproposed.look(start + Span(KEPT_FOR.0 - 1), &both), []);
        assert_eq!(unproposed.look(start + KEPT_FOR, &both), std::slice::from_ref(&one));
        // It stays due until it is gone, or known to be proposed.
        unproposed.is_proposed(&one);
        assert_eq!(unproposed.look(start + KEPT_FOR + hour, &both), std::slice::from_ref(&two));
        // What was pushed again counts anew.
        unproposed.is_gone(&two);
        assert_eq!(unproposed.look(start + KEPT_FOR + hour, &both), []);
    }
}
