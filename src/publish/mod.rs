//! Publishing to the guarded repository: what a completed circle holds is merged onto its targets, checked, and all
//! refs move at once.
//!
//! ```text
//!   the log ──► effect (core) ──► coordinator ──► Git ──┬─► artifact: merge, at a desk
//!                    ▲                                  ├─► check: the charter's command, in a folder of its own
//!                    └────────── report ◄───────────────┴─► artifact: one transaction, with its record
//! ```
//!
//! Each step may be cut off. Before the transaction nothing moved, and all is done again; after it the record in the
//! repository says from where, and is reported. It is believed only where merging again from there gives the same:
//! others may write to the repository, too.

mod check;

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::Mutex as TurnMutex;

use crate::artifact::merge::{MergeOutcome, Merged, Merging, Part};
use crate::artifact::publishing::{Moving, Record, Standing};
use crate::artifact::repository::Repository;
use crate::artifact::{Failure, Fault, TeamArtifacts};
use crate::coordinator::{Publication, Published, PublishedVersion, Publisher};
use crate::home::Home;
use crate::protocol::artifact::RepoPath;
use crate::protocol::charter::PublishHow;
use crate::protocol::escalation::{MovedRef, record_ref};
use crate::protocol::name::{Digest, ProposalName, TeamName};
use crate::protocol::review::{self, PublishFailure, PublishedMerge, PublishedRef, Run};

/// How often a target may move while a circle is being merged onto it, before that counts as a fault.
const TRIES_MAX: u32 = 8;

/// The pause after a first try; twice as long after each further one.
const PAUSE: Duration = Duration::from_millis(20);

/// Paths of a conflict that are named in a sentence.
const PATHS_NAMED_MAX: usize = 5;

/// Publishes to the teams' guarded repositories.
#[derive(Debug)]
pub struct Git {
    artifacts: TeamArtifacts,
    home: Home,
    /// A team's circles are published one after the other: what was checked is what the next is merged onto.
    turns: Mutex<BTreeMap<TeamName, Arc<TurnMutex<()>>>>,
}

/// What one target comes to hold.
struct Landing<'a> {
    target: &'a str,
    from: Option<Digest>,
    merged: Merged,
    proposals: Vec<ProposalName>,
}

/// Asks whether a publication's targets are where they belong.
pub type Sound<'a> =
    dyn Fn() -> Pin<Box<dyn Future<Output = Result<(), String>> + Send + 'a>> + Send + Sync + 'a;

impl Git {
    /// For the home's teams, whose artifacts are opened later.
    pub fn of(home: &Home, artifacts: &TeamArtifacts) -> Self {
        Self { artifacts: artifacts.clone(), home: home.clone(), turns: Mutex::default() }
    }

    /// Waits until a team's artifacts are open.
    pub async fn opened(&self, team: &TeamName) {
        self.artifacts.opened(team).await;
    }

    /// Publishes it. Just before anything moves it is asked whether that is `sound`: where the targets moved since,
    /// nothing does.
    ///
    /// # Errors
    /// Whatever breaks, and what isn't sound; it is tried again.
    pub async fn published(
        &self,
        publication: &Publication,
        sound: &Sound<'_>,
    ) -> Result<Published, Failure> {
        let artifacts = self.artifacts.opened(&publication.team).await;
        let repository = artifacts.repository()?;
        let turn = self.turn(&publication.team);
        let _turn = turn.lock().await;
        let mut passed: Option<(Vec<Digest>, Option<Run>)> = None;
        // What a crash left moved, where the rest has to be merged again.
        let mut done: Vec<PublishedRef> = Vec::new();
        for tried in 0..TRIES_MAX {
            if tried > 0 {
                tokio::time::sleep(PAUSE * 2_u32.pow(tried - 1)).await;
            }
            if let Some(record) = repository.record(&publication.manifest).await? {
                if !is_ours(repository, publication, &record).await? {
                    let what = format!(
                        "{} is no record of the server's: it moved without the server, and waits for a person",
                        record_ref(&publication.manifest)
                    );
                    return Err(Failure::Fault(Fault::Unsteady { what }));
                }
                match repository.finish(&record).await? {
                    Standing::Done => {
                        let Record { refs, check, .. } = record;
                        return Ok(Published { failure: None, refs, check });
                    }
                    Standing::Partly(moved) => done = moved,
                }
                repository.forget_record(&publication.manifest).await?;
            }
            let landings = match merge_all(repository, publication, &done).await? {
                Ok(landings) => landings,
                Err(failure) => return Ok(failed(failure, None)),
            };
            let trees: Vec<Digest> = landings.iter().map(|landing| landing.merged.tree.clone()).collect();
            // A target that moved to the same trees need not be checked again.
            let known = passed.take().filter(|(known, _)| *known == trees);
            let check = match known {
                Some((_, check)) => check,
                None => match self.check(repository, publication, &landings).await? {
                    Ok(check) => check,
                    Err((failure, check)) => return Ok(failed(failure, Some(check))),
                },
            };
            let record = Record {
                manifest: publication.manifest.clone(),
                refs: in_order(publication, &done, landings),
                check: check.clone(),
            };
            sound().await.map_err(|what| Failure::Fault(Fault::Unsteady { what }))?;
            cut("before-move");
            if repository.publish(&record, &done).await? == Moving::Done {
                cut("after-move");
                let Record { refs, check, .. } = record;
                return Ok(Published { failure: None, refs, check });
            }
            passed = Some((trees, check));
        }
        let what = format!("a target of {} moved {TRIES_MAX} times meanwhile", publication.circle);
        Err(Failure::Fault(Fault::Unsteady { what }))
    }

    /// Runs the charter's check on what each target would hold. Nothing but an exit of 0 in time is a pass.
    async fn check(
        &self,
        repository: &Repository,
        publication: &Publication,
        landings: &[Landing<'_>],
    ) -> Result<Result<Option<Run>, (PublishFailure, Run)>, Failure> {
        let Some(line) = &publication.settings.check else { return Ok(Ok(None)) };
        let mut last = None;
        for landing in landings {
            let folder = self.home.team_home(&publication.team).join("artifacts").join("check");
            let about = check::About {
                line,
                time_max: publication.settings.check_timeout,
                team: &publication.team,
                circle: &publication.circle,
                target: landing.target,
            };
            let checked = check::run(repository, &landing.merged.to, &folder, &about).await?;
            if let Some(because) = checked.because {
                let because = format!("the check \"{line}\" on {} {because}", landing.target);
                let owing = landing.proposals.clone();
                return Ok(Err((PublishFailure { because, owing }, checked.run)));
            }
            last = Some(checked.run);
        }
        Ok(Ok(last))
    }

    fn turn(&self, team: &TeamName) -> Arc<TurnMutex<()>> {
        let mut turns = self.turns.lock().expect("nothing panics while it holds this lock");
        turns.entry(team.clone()).or_default().clone()
    }
}

impl Publisher for Git {
    fn publish<'a>(
        &'a self,
        publication: &'a Publication,
    ) -> Pin<Box<dyn Future<Output = Result<Published, String>> + Send + 'a>> {
        Box::pin(async move {
            let published = self.published(publication, &|| Box::pin(async { Ok(()) })).await;
            published.map_err(|failure| failure.to_string())
        })
    }

    fn put_back<'a>(
        &'a self,
        team: &'a TeamName,
        moved: &'a MovedRef,
    ) -> Pin<Box<dyn Future<Output = Result<(), String>> + Send + 'a>> {
        Box::pin(async move {
            let artifacts = self.artifacts.opened(team).await;
            let repository = artifacts.repository().map_err(|failure| failure.to_string())?;
            match repository.put_back(moved).await {
                Ok(Moving::Done) => Ok(()),
                Ok(Moving::Refused) => Err("it was moved on meanwhile".to_owned()),
                Err(failure) => Err(failure.to_string()),
            }
        })
    }
}

fn failed(failure: PublishFailure, check: Option<Run>) -> Published {
    Published { failure: Some(failure), refs: Vec::new(), check }
}

/// The targets, each once, in the circle's order.
fn targets(publication: &Publication) -> Vec<&str> {
    let mut targets: Vec<&str> = Vec::new();
    for version in &publication.versions {
        if !targets.contains(&version.target.as_str()) {
            targets.push(&version.target);
        }
    }
    targets
}

/// What the circle holds for one target, in its order.
fn versions_for<'a>(publication: &'a Publication, target: &str) -> Vec<&'a PublishedVersion> {
    publication.versions.iter().filter(|version| version.target == target).collect()
}

fn merging<'a>(publication: &Publication, tip: Option<&'a Digest>, parts: &'a [Part]) -> Merging<'a> {
    let forward_only = publication.settings.how == PublishHow::FastForward;
    Merging { tip, parts, forward_only, at: publication.at }
}

/// Whether a record says what publishing that would: merged again from where its refs were, the same comes out.
///
/// # Errors
/// A fault of git's. What can't be merged at all is no record of ours.
pub async fn is_ours(
    repository: &Repository,
    publication: &Publication,
    record: &Record,
) -> Result<bool, Failure> {
    let names: Vec<&str> = record.refs.iter().map(|one| one.name.as_str()).collect();
    if record.manifest != publication.manifest || names != targets(publication) {
        return Ok(false);
    }
    for one in &record.refs {
        let versions = versions_for(publication, &one.name);
        let parts: Vec<Part> = versions.iter().map(|version| part(publication, version)).collect();
        match repository.try_merge(merging(publication, one.from.as_ref(), &parts)).await {
            Ok(MergeOutcome::Merged(merged)) => {
                if moved(&one.name, one.from.clone(), merged) != *one {
                    return Ok(false);
                }
            }
            Ok(_) | Err(Failure::Refused(_)) => return Ok(false),
            Err(fault) => return Err(fault),
        }
    }
    Ok(true)
}

/// Merges each target's versions onto it, in the circle's order; or says whose version is in the way. What is done
/// already is left alone.
async fn merge_all<'a>(
    repository: &Repository,
    publication: &'a Publication,
    done: &[PublishedRef],
) -> Result<Result<Vec<Landing<'a>>, PublishFailure>, Failure> {
    let mut landings = Vec::new();
    let left = targets(publication).into_iter().filter(|target| done.iter().all(|one| one.name != *target));
    for target in left {
        let versions = versions_for(publication, target);
        let parts: Vec<Part> = versions.iter().map(|version| part(publication, version)).collect();
        let from = repository.tip(target).await?;
        let merging = merging(publication, from.as_ref(), &parts);
        let at = from.as_ref().map_or("nowhere".to_owned(), |tip| tip.as_str()[..12].to_owned());
        let (reference, what) = match repository.merge(merging).await? {
            MergeOutcome::Merged(merged) => {
                let proposals = versions.iter().map(|version| version.reference.proposal.clone()).collect();
                landings.push(Landing { target, from, merged, proposals });
                continue;
            }
            MergeOutcome::Conflict { reference, paths, count } => {
                let what =
                    format!("does not merge into {target} at {at}: conflict in {}", named(&paths, count));
                (reference, what)
            }
            MergeOutcome::NotForward { reference } => {
                let what = format!("does not follow {target} at {at}, which moves by fast-forward alone");
                (reference, what)
            }
        };
        let because = format!("{reference} {what}");
        return Ok(Err(PublishFailure { because, owing: vec![reference.proposal] }));
    }
    Ok(Ok(landings))
}

fn part(publication: &Publication, version: &PublishedVersion) -> Part {
    let mut trailers = vec![
        format!("Countersign-Proposal: {}", version.reference),
        format!("Countersign-Circle: {}", publication.circle),
    ];
    trailers.extend(version.approvals.iter().map(|approval| {
        let key = if approval.overruled { "Overruled" } else { "Approved-by" };
        format!("{key}: {} ({})", approval.by, approval.lens)
    }));
    Part {
        reference: version.reference.clone(),
        commit: version.commit.clone(),
        summary: version.summary.clone(),
        trailers,
    }
}

fn named(paths: &[RepoPath], count: usize) -> String {
    let some = paths.iter().take(PATHS_NAMED_MAX).map(ToString::to_string);
    review::told(some, u32::try_from(count).unwrap_or(u32::MAX)).join(", ")
}

/// What was done and what lands, in the order of the targets: so a record is compared, and read.
fn in_order(
    publication: &Publication,
    done: &[PublishedRef],
    landings: Vec<Landing<'_>>,
) -> Vec<PublishedRef> {
    let landed = landings.into_iter().map(|landing| moved(landing.target, landing.from, landing.merged));
    let mut refs: Vec<PublishedRef> = done.iter().cloned().chain(landed).collect();
    let targets = targets(publication);
    refs.sort_by_key(|one| targets.iter().position(|target| *target == one.name));
    refs
}

fn moved(target: &str, from: Option<Digest>, merged: Merged) -> PublishedRef {
    let merges = merged.merges.into_iter();
    PublishedRef {
        name: target.to_owned(),
        from,
        to: merged.to,
        merges: merges.map(|made| PublishedMerge { commit: made.commit, version: made.reference }).collect(),
    }
}

/// Where a test has the server die: a build for tests ends here, by the name in its environment.
fn cut(here: &str) {
    #[cfg(debug_assertions)]
    if std::env::var_os("COUNTERSIGN_CUT").is_some_and(|named| named == here) {
        std::process::abort();
    }
    #[cfg(not(debug_assertions))]
    let _ = here;
}
