//! A team as bytes, so that a start need not fold a whole log.
//!
//! A snapshot is a cache and no promise: it is good for exactly the core that wrote it. [`Team::CORE`]
//! differs as soon as a line of the core does, whether it changes the form of the state or how events are
//! folded into it, and with it every older snapshot is void.

use super::team::Team;

/// Why bytes are no team.
#[derive(Debug, thiserror::Error)]
#[error("the snapshot holds no team of this core")]
pub struct NoTeam(#[from] serde_json::Error);

impl Team {
    /// Says which core this is.
    pub const CORE: &str = env!("COUNTERSIGN_CORE");

    /// All that the team's log has added up to.
    pub fn snapshot(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("a team has string keys and no failing part")
    }

    /// The team that [`snapshot`](Self::snapshot) of the same core was asked of.
    pub fn restore(snapshot: &[u8]) -> Result<Self, NoTeam> {
        let mut team: Self = serde_json::from_slice(snapshot)?;
        team.compile();
        Ok(team)
    }
}

/// Maps whose keys are no text, as pairs.
pub(super) mod pairs {
    use std::collections::BTreeMap;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(in crate::protocol) fn serialize<K: Serialize, V: Serialize, S: Serializer>(
        map: &BTreeMap<K, V>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        to.collect_seq(map)
    }

    pub(in crate::protocol) fn deserialize<'d, K, V, D>(from: D) -> Result<BTreeMap<K, V>, D::Error>
    where
        K: Ord + Deserialize<'d>,
        V: Deserialize<'d>,
        D: Deserializer<'d>,
    {
        Ok(Vec::<(K, V)>::deserialize(from)?.into_iter().collect())
    }
}
