//! What is counted of a team, for whoever watches the server: told without waking one that sleeps.

use std::collections::BTreeMap;

use super::attempts::Attempts;
use crate::protocol::Team;
use crate::protocol::recovery::Patch;

/// What is counted of one team.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Events of its log.
    pub events: u64,
    /// How often each recovery patch fired; zero is there, too.
    pub recoveries: Vec<(Patch, u64)>,
    /// Open escalations by their causes.
    pub escalations: BTreeMap<&'static str, u64>,
    /// How often each rule refused a command since the server started, by the rule's id.
    pub denials: BTreeMap<String, u64>,
}

impl Counts {
    /// Those of a team as it is.
    pub(super) fn of(team: &Team, attempts: &Attempts) -> Self {
        let mut escalations = BTreeMap::new();
        for open in team.escalations().open() {
            *escalations.entry(open.opened.cause.as_str()).or_default() += 1;
        }
        Self {
            events: team.seq().0,
            recoveries: team.recoveries().counters().collect(),
            escalations,
            denials: attempts.rules().clone(),
        }
    }
}
