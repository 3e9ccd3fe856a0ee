//! Who will hear: facts about now, kept in memory and never stored.

use std::collections::BTreeMap;

use crate::protocol::name::MemberName;
use crate::protocol::time::Time;

/// Whether a wake will reach a member now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// It was seen before, and nothing of it is connected now.
    Offline,
    /// It was never seen.
    NotJoined,
}

impl Presence {
    /// The one of that stable name; a name that this version doesn't know is nobody's presence now.
    pub fn named(name: &str) -> Self {
        if name == Self::NotJoined.as_str() { Self::NotJoined } else { Self::Offline }
    }

    /// Its stable name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Offline => "offline",
            Self::NotJoined => "not-joined",
        }
    }
}

/// What became of the news that a command made for a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WakeOutcome {
    /// It waits for the member.
    Stored,
}

/// A member whose obligations a command changed, and whether it will hear of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wake {
    /// The member.
    pub member: MemberName,
    /// What became of it.
    pub outcome: WakeOutcome,
    /// Whether a wake will reach it now.
    pub presence: Presence,
    /// Since when; nothing where it was always so.
    pub since: Option<Time>,
}

/// When each member of a team was last heard of.
#[derive(Debug, Default)]
pub struct LastSeen(BTreeMap<MemberName, Time>);

impl LastSeen {
    /// The member spoke.
    pub fn saw(&mut self, member: &MemberName, at: Time) {
        match self.0.get_mut(member) {
            Some(seen) => *seen = at,
            None => {
                self.0.insert(member.clone(), at);
            }
        }
    }

    /// What a member who now owes something will hear.
    pub fn wake(&self, member: &MemberName) -> Wake {
        let since = self.0.get(member).copied();
        let presence = if since.is_some() { Presence::Offline } else { Presence::NotJoined };
        Wake { member: member.clone(), outcome: WakeOutcome::Stored, presence, since }
    }
}
