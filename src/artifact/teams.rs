//! Every team's artifacts, once they are open: what is started before them waits here.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::watch;

use super::Artifacts;
use crate::protocol::name::TeamName;

/// The artifacts of a server's teams. Cheap to clone; all clones are one.
#[derive(Clone, Debug)]
pub struct TeamArtifacts(Arc<watch::Sender<BTreeMap<TeamName, Arc<Artifacts>>>>);

impl Default for TeamArtifacts {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(BTreeMap::new())))
    }
}

impl TeamArtifacts {
    /// What a team's versions are made of, if that is open.
    pub fn get(&self, team: &TeamName) -> Option<Arc<Artifacts>> {
        self.0.borrow().get(team).cloned()
    }

    /// All that are open, by team.
    pub fn all(&self) -> Vec<(TeamName, Arc<Artifacts>)> {
        self.0.borrow().iter().map(|(name, artifacts)| (name.clone(), artifacts.clone())).collect()
    }

    /// From here on they are the team's.
    pub fn keep(&self, team: TeamName, artifacts: Artifacts) {
        self.0.send_modify(|known| drop(known.insert(team, Arc::new(artifacts))));
    }

    /// The same as [`TeamArtifacts::get`], once it is open.
    pub async fn opened(&self, team: &TeamName) -> Arc<Artifacts> {
        let mut known = self.0.subscribe();
        let known = known.wait_for(|known| known.contains_key(team)).await;
        known.expect("the sender is held here")[team].clone()
    }
}
