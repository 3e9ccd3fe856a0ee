//! What all services of a server share.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::{Mutex, Notify, Semaphore};

use crate::artifact::{Artifacts, TeamArtifacts};
use crate::coordinator::Coordinator;
use crate::coordinator::place::Places;
use crate::door::Grants;
use crate::home::Home;
use crate::page::link::Links;
use crate::protocol::name::{Digest, TeamName};
use crate::protocol::time::Time;

/// Calls that are carried out at the same time; further ones wait. A call whose caller went away
/// still counts until it is done.
const CALLS_MAX: usize = 4096;

/// Calls that look at artifacts at the same time: each may run git, or hash files.
const LOOKS_MAX: usize = 16;

/// Bundles that arrive at the same time, and those of one member.
const UPLOADS_MAX: usize = 16;
const UPLOADS_OF_MEMBER_MAX: usize = 4;

/// Versions that are fetched at the same time, and by one member.
const FETCHES_MAX: usize = 64;
const FETCHES_OF_MEMBER_MAX: usize = 8;

pub(super) struct Shared {
    pub(super) coordinator: Coordinator,
    pub(super) home: Home,
    /// The hash of the operator's token.
    pub(super) operator: Digest,
    artifacts: TeamArtifacts,
    /// Teams are added one after the other: the first is special.
    pub(super) adding: Mutex<()>,
    /// Rules are compiled one set after the other.
    pub(super) compiling: Mutex<()>,
    pub(super) calls: Arc<Semaphore>,
    pub(super) looks: Semaphore,
    pub(super) uploads: Arc<Places>,
    pub(super) fetches: Arc<Places>,
    /// The links into the room page, where one is served.
    pub(super) links: Option<Arc<Links>>,
    /// Where persons opened a team's door for a while.
    pub(super) doors: Mutex<BTreeMap<TeamName, Grants>>,
    /// Has the guarded repositories looked at now.
    pub(super) audit: Notify,
}

impl Shared {
    pub(super) fn new(
        coordinator: Coordinator,
        home: Home,
        operator: Digest,
        artifacts: TeamArtifacts,
        links: Option<Arc<Links>>,
    ) -> Self {
        Self {
            coordinator,
            home,
            operator,
            artifacts,
            adding: Mutex::default(),
            compiling: Mutex::default(),
            calls: Arc::new(Semaphore::new(CALLS_MAX)),
            looks: Semaphore::new(LOOKS_MAX),
            uploads: Places::new(UPLOADS_MAX, UPLOADS_OF_MEMBER_MAX),
            fetches: Places::new(FETCHES_MAX, FETCHES_OF_MEMBER_MAX),
            links,
            doors: Mutex::default(),
            audit: Notify::new(),
        }
    }

    pub(super) fn now(&self) -> Time {
        self.coordinator.clock().now()
    }

    /// What a team's versions are made of.
    pub(super) fn artifacts(&self, team: &TeamName) -> Option<Arc<Artifacts>> {
        self.artifacts.get(team)
    }

    /// The same of all teams.
    pub(super) fn all_artifacts(&self) -> Vec<(TeamName, Arc<Artifacts>)> {
        self.artifacts.all()
    }

    pub(super) fn keep_artifacts(&self, team: TeamName, artifacts: Artifacts) {
        self.artifacts.keep(team, artifacts);
    }
}
