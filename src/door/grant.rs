//! Where a person opened the door for a while. Kept in memory alone: a server that ends has shut it.

use crate::protocol::name::{EscalationId, MemberName};
use crate::protocol::time::Time;

/// Openings of one team that are kept; more at a time are nobody's need.
const GRANTS_MAX: usize = 64;

/// One opening.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// The escalation by which persons hear of it.
    pub escalation: EscalationId,
    /// Who opened it.
    pub by: MemberName,
    /// For which refs, by their full names.
    pub refs: Vec<String>,
    /// Until when.
    pub until: Time,
    /// Whether the first push that needs it uses it up.
    pub once: bool,
}

/// The openings of one team.
#[derive(Clone, Debug, Default)]
pub struct Grants(Vec<Grant>);

impl Grants {
    /// Opens the door; says whether there was room.
    pub fn open(&mut self, grant: Grant, now: Time) -> bool {
        self.0.retain(|known| now < known.until);
        let room = self.0.len() < GRANTS_MAX;
        if room {
            self.0.push(grant);
        }
        room
    }

    /// The openings by which one push may move all of these refs, one for each; none where there is no opening
    /// for one of them. What is used up by it is used up.
    pub fn take(&mut self, refs: &[&str], now: Time) -> Option<Vec<Grant>> {
        self.0.retain(|known| now < known.until);
        let for_ref = |name: &&str| {
            let fits = |grant: &&Grant| grant.refs.iter().any(|open| open == name);
            // One that stands open anyhow is taken before one that would be used up.
            let lasting = self.0.iter().filter(|grant| !grant.once).find(fits);
            lasting.or_else(|| self.0.iter().find(fits)).cloned()
        };
        let taken: Vec<Grant> = refs.iter().map(for_ref).collect::<Option<_>>()?;
        self.0.retain(|known| !(known.once && taken.contains(known)));
        Some(taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grant(id: u32, refs: &[&str], once: bool) -> Grant {
        Grant {
            escalation: EscalationId(id),
            by: "dana".parse().unwrap(),
            refs: refs.iter().map(|name| (*name).to_owned()).collect(),
            until: Time(10),
            once,
        }
    }

    #[test]
    fn an_opening_is_for_its_refs_its_time_and_where_it_says_so_for_one_push() {
        let mut grants = Grants::default();
        assert!(grants.open(grant(1, &["refs/heads/a", "refs/heads/b"], true), Time(0)));
        assert_eq!(grants.take(&["refs/heads/a", "refs/heads/c"], Time(1)), None, "all or nothing");
        assert_eq!(
            grants.take(&["refs/heads/a", "refs/heads/b"], Time(1)).unwrap().len(),
            2,
            "one push, two refs"
        );
        assert_eq!(grants.take(&["refs/heads/a"], Time(1)), None, "it is used up");

        assert!(grants.open(grant(2, &["refs/heads/a"], false), Time(2)));
        assert!(grants.open(grant(3, &["refs/heads/a"], true), Time(2)));
        assert_eq!(grants.take(&["refs/heads/a"], Time(3)).unwrap()[0].escalation, EscalationId(2));
        assert!(grants.take(&["refs/heads/a"], Time(9)).is_some());
        assert_eq!(grants.take(&["refs/heads/a"], Time(10)), None, "its time is up");
    }

    #[test]
    fn no_more_openings_are_kept_than_anybody_needs() {
        let mut grants = Grants::default();
        for id in 0..GRANTS_MAX {
            assert!(grants.open(grant(u32::try_from(id).unwrap(), &["refs/heads/a"], false), Time(0)));
        }
        assert!(!grants.open(grant(99, &["refs/heads/a"], false), Time(0)));
        assert!(
            grants.open(grant(99, &["refs/heads/a"], false), Time(10)),
            "those whose time is up make room"
        );
    }
}
