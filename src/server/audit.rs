//! The audit: guarded refs that stand where the server did not leave them are put before a person, at start, on a
//! timer, before anything is published, and whenever the operator asks. What nobody proposed is let go on the way.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use sha2::{Digest as _, Sha256};
use tokio::time::MissedTickBehavior;

use super::answer::Failure;
use super::door::{Seen, passed};
use super::pin;
use super::shared::Shared;
use super::staging;
use super::target;
use crate::artifact::repository::Repository;
use crate::artifact::{Artifacts, Fault, publishing};
use crate::coordinator::{Publication, Published, Publisher, TeamHandle};
use crate::door::ledger::{Begun, audit};
use crate::door::{Guard, RefKind, refs};
use crate::protocol::escalation::{Cause, MovedRef, ReportMoved, record_ref};
use crate::protocol::name::{Actor, Digest, TeamName};
use crate::protocol::review::CircleState;
use crate::protocol::{Command, Team};
use crate::publish;

/// How often every guarded repository is looked at.
const EVERY: Duration = Duration::from_secs(60);

/// Looks at every team's repository, again and again. A team that sleeps is woken only where a ref moved since it
/// was last found in order.
pub(super) async fn watch(shared: Arc<Shared>) {
    let mut every = tokio::time::interval(EVERY);
    every.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut sound: BTreeMap<TeamName, Digest> = BTreeMap::new();
    let mut unproposed: BTreeMap<TeamName, staging::Unproposed> = BTreeMap::new();
    loop {
        tokio::select! {
            _ = every.tick() => {}
            () = shared.audit.notified() => {}
        }
        for (name, artifacts) in shared.all_artifacts() {
            let Ok(repository) = artifacts.repository() else { continue };
            let known = unproposed.entry(name.clone()).or_default();
            if let Err(failure) = staging::sweep(&shared, &name, repository, known).await {
                tracing::warn!(team = %name, ?failure, "what is staged could not be looked at");
            }
            match look_at(&shared, &name, repository, sound.get(&name)).await {
                Ok(Some(found)) => drop(sound.insert(name, found)),
                Ok(None) => drop(sound.remove(&name)),
                Err(failure) => {
                    tracing::warn!(team = %name, ?failure, "the guarded repository could not be looked at");
                }
            }
        }
    }
}

/// Looks at one; what its refs come to, where all of them are in order.
async fn look_at(
    shared: &Arc<Shared>,
    name: &TeamName,
    repository: &Repository,
    sound: Option<&Digest>,
) -> Result<Option<Digest>, Failure> {
    let all = all_refs(repository).await.map_err(crate::artifact::Failure::Fault)?;
    if sound == Some(&all) && !shared.coordinator.is_awake(name) {
        return Ok(Some(all));
    }
    let Some(team) = shared.coordinator.team(name) else { return Ok(None) };
    let moved = report(shared, &team).await?;
    forget_records(repository, &team).await?;
    target::catch_up(shared, &team, &target::Scope::All).await;
    Ok(moved.is_empty().then_some(all))
}

/// What all refs come to.
async fn all_refs(repository: &Repository) -> Result<Digest, Fault> {
    const LIST_BYTES_MAX: usize = 64 << 20;
    let asked = ["for-each-ref", "--format=%(objectname) %(refname)"];
    let listed = repository.refs().run(&asked, LIST_BYTES_MAX).await?.ok()?;
    Ok(Digest::of_bytes(Sha256::digest(&listed.stdout).into()))
}

/// Records that say no more than the log does are not needed any longer.
async fn forget_records(repository: &Repository, team: &TeamHandle) -> Result<(), Failure> {
    let records = publishing::records(repository.refs()).await.map_err(crate::artifact::Failure::Fault)?;
    let look = |team: &Team, _| {
        let published = team.review().circles().filter(|circle| circle.state == CircleState::Published);
        let manifests = published.filter_map(|circle| circle.completed.as_ref());
        manifests.map(|completed| completed.manifest.clone()).collect::<Vec<Digest>>()
    };
    if records.is_empty() {
        return Ok(());
    }
    let (published, _) = team.read(look).await?;
    for record in records.values().filter(|record| published.contains(&record.manifest)) {
        repository.forget_record(&record.manifest).await?;
    }
    Ok(())
}

/// Looks at a team's repository, and has the team put before a person what moved; nothing where it has no door.
pub(super) async fn report(shared: &Arc<Shared>, team: &TeamHandle) -> Result<Vec<MovedRef>, Failure> {
    let Some(artifacts) = shared.artifacts(team.name()) else { return Ok(Vec::new()) };
    let seen = team.peek(Team::seq);
    let mut moved = look(shared, team, &artifacts).await?;
    if !moved.is_empty() {
        // What the server itself moved between two looks at log and refs is in order at the second.
        let again = look(shared, team, &artifacts).await?;
        moved.retain(|one| again.contains(one));
    }
    let open = team.peek(|team| team.escalations().open().any(|one| one.opened.cause == Cause::MovedRef));
    if open || !moved.is_empty() {
        let command = Command::ReportMoved(ReportMoved { moved: moved.clone(), seen });
        team.submit(Actor::Server, command, None).await?;
    }
    Ok(moved)
}

async fn look(
    shared: &Arc<Shared>,
    team: &TeamHandle,
    artifacts: &Artifacts,
) -> Result<Vec<MovedRef>, Failure> {
    let Ok(repository) = artifacts.repository() else { return Ok(Vec::new()) };
    let unusable = |fault: crate::home::HomeFault| {
        tracing::error!(team = %team.name(), %fault, "what the door left can't be read");
        Failure::unexpected()
    };
    let Some(text) = shared.home.read_door(team.name()).map_err(unusable)? else { return Ok(Vec::new()) };
    let begun: Begun = serde_json::from_slice(&text).map_err(|_| Failure::unexpected())?;
    let passed = passed(&shared.home, team.name()).map_err(unusable)?;
    // What is not pinned yet, or no longer, is pinned.
    pin::catch_up(artifacts, &team.peek(pin::owed)).await?;
    let look = |team: &Team, _| {
        let guard = team.adopted().and_then(|adopted| Guard::of(&adopted.charter));
        guard.map(|guard| (guard, Seen::of(team)))
    };
    let (seen, _) = team.read(look).await?;
    let Some((guard, seen)) = seen else { return Ok(Vec::new()) };
    let broken = crate::artifact::Failure::Fault;
    let log = seen.log(repository).await?;
    let now = refs::guarded(repository.refs(), &guard).await.map_err(broken)?;
    let before = Guard::of_patterns(&begun.protected).ok_or_else(Failure::unexpected)?;
    let was_protected = |name: &str| before.kind(name.as_bytes()) == RefKind::Protected;
    let found = audit(&begun, &passed, &log, &now, was_protected);
    let id = |at: Option<String>| at.and_then(|at| at.parse().ok());
    let moved = found.moved.into_iter();
    Ok(moved.map(|one| MovedRef { name: one.name, from: id(one.from), to: id(one.to) }).collect())
}

/// Publishing that looks first whether its targets are where they belong: nothing is merged onto what came past
/// the door, until a person has said what becomes of it.
pub(super) struct Watched {
    git: publish::Git,
    shared: OnceLock<Weak<Shared>>,
}

impl Watched {
    pub(super) fn new(git: publish::Git) -> Self {
        Self { git, shared: OnceLock::new() }
    }

    /// From here on it can look.
    pub(super) fn watch(&self, shared: &Arc<Shared>) {
        // A second time changes nothing: there is one server.
        let _ = self.shared.set(Arc::downgrade(shared));
    }

    /// What else is open stands to other targets now.
    async fn compare(&self, team: &TeamName) {
        let Some(shared) = self.shared.get().and_then(Weak::upgrade) else { return };
        let Some(team) = shared.coordinator.team(team) else { return };
        target::catch_up(&shared, &team, &target::Scope::All).await;
    }

    async fn check(&self, publication: &Publication) -> Result<(), String> {
        self.git.opened(&publication.team).await;
        let ending = || "the server is beginning or ending".to_owned();
        let shared = self.shared.get().and_then(Weak::upgrade).ok_or_else(ending)?;
        let team = shared.coordinator.team(&publication.team).ok_or_else(ending)?;
        let moved = report(&shared, &team).await.map_err(|failure| format!("{failure:?}"))?;
        let targets = publication.versions.iter().map(|version| version.target.clone());
        let mut refs = targets.chain([record_ref(&publication.manifest)]);
        match refs.find(|target| moved.iter().any(|one| one.name == *target)) {
            Some(target) => Err(format!("{target} moved without the server, and waits for a person")),
            None => Ok(()),
        }
    }
}

impl Publisher for Watched {
    fn publish<'a>(
        &'a self,
        publication: &'a Publication,
    ) -> Pin<Box<dyn Future<Output = Result<Published, String>> + Send + 'a>> {
        Box::pin(async move {
            self.check(publication).await?;
            // Much may happen while a check runs: it is looked once more before anything moves.
            let sound =
                || -> Pin<Box<dyn Future<Output = _> + Send + '_>> { Box::pin(self.check(publication)) };
            let published = self.git.published(publication, &sound).await;
            self.compare(&publication.team).await;
            published.map_err(|failure| failure.to_string())
        })
    }

    fn put_back<'a>(
        &'a self,
        team: &'a TeamName,
        moved: &'a MovedRef,
    ) -> Pin<Box<dyn Future<Output = Result<(), String>> + Send + 'a>> {
        self.git.put_back(team, moved)
    }
}
