//! Publishing: what a completed circle holds comes to stand where everybody gets it.

use std::future::{Future, ready};
use std::pin::Pin;

use crate::protocol::Team;
use crate::protocol::artifact::ArtifactKind;
use crate::protocol::charter::Publish;
use crate::protocol::escalation::MovedRef;
use crate::protocol::name::{CircleName, CircleRef, Digest, TeamName, VersionRef};
use crate::protocol::review::{Circle, CountedApproval, PublishFailure, PublishedRef, Run};
use crate::protocol::time::{Span, Time};

/// How long is waited after a first fault; twice as long after each further one.
const PAUSE: Span = Span::seconds(2);

/// The longest wait between two attempts.
const PAUSE_MAX: Span = Span::seconds(60);

/// Faults in a row after which persons are told, and the circle opens again.
pub(super) const FAULTS_MAX: u32 = 8;

/// What is to be published: the commits that a completed circle holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Publication {
    /// The team.
    pub team: TeamName,
    /// The circle, exactly.
    pub circle: CircleRef,
    /// What it holds, by its whole digest.
    pub manifest: Digest,
    /// When it was completed.
    pub at: Time,
    /// Its versions that are commits, in the circle's order.
    pub versions: Vec<PublishedVersion>,
    /// How the charter has them published.
    pub settings: Publish,
}

/// A version that is to be published.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublishedVersion {
    /// Which one.
    pub reference: VersionRef,
    /// Its commit.
    pub commit: Digest,
    /// The full name of the ref that is to hold it.
    pub target: String,
    /// What its producer says about it.
    pub summary: String,
    /// Who approved it.
    pub approvals: Vec<CountedApproval>,
}

/// What came of publishing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Published {
    /// Why nothing moved; nothing where all did.
    pub failure: Option<PublishFailure>,
    /// The refs that moved, all at once.
    pub refs: Vec<PublishedRef>,
    /// What came of the charter's check, where it was run.
    pub check: Option<Run>,
}

/// Moves refs to what was reviewed. It may be asked for the same again, also by another process after a crash,
/// and then says what came of it the first time.
pub trait Publisher: Send + Sync {
    /// Publishes; an error is a fault, told in words, and the same is tried again later.
    fn publish<'a>(
        &'a self,
        publication: &'a Publication,
    ) -> Pin<Box<dyn Future<Output = Result<Published, String>> + Send + 'a>>;

    /// Moves a ref back to where it was left, if it still is where it was found; an error says why it can't, and
    /// is final.
    fn put_back<'a>(
        &'a self,
        team: &'a TeamName,
        moved: &'a MovedRef,
    ) -> Pin<Box<dyn Future<Output = Result<(), String>> + Send + 'a>>;
}

/// Publishes nothing, and takes its time over it: for those who only open a home.
#[derive(Clone, Copy, Debug)]
pub struct Unpublishing;

impl Publisher for Unpublishing {
    fn publish<'a>(
        &'a self,
        _: &'a Publication,
    ) -> Pin<Box<dyn Future<Output = Result<Published, String>> + Send + 'a>> {
        Box::pin(std::future::pending())
    }

    fn put_back<'a>(
        &'a self,
        _: &'a TeamName,
        _: &'a MovedRef,
    ) -> Pin<Box<dyn Future<Output = Result<(), String>> + Send + 'a>> {
        Box::pin(std::future::pending())
    }
}

/// Says at once that all is done: for those who have no repository.
#[derive(Clone, Copy, Debug)]
pub struct AtOnce;

impl Publisher for AtOnce {
    fn publish<'a>(
        &'a self,
        _: &'a Publication,
    ) -> Pin<Box<dyn Future<Output = Result<Published, String>> + Send + 'a>> {
        Box::pin(ready(Ok(Published { failure: None, refs: Vec::new(), check: None })))
    }

    fn put_back<'a>(
        &'a self,
        _: &'a TeamName,
        _: &'a MovedRef,
    ) -> Pin<Box<dyn Future<Output = Result<(), String>> + Send + 'a>> {
        Box::pin(ready(Ok(())))
    }
}

/// What of a complete circle is to be published beyond the deliverables' published pointers: none where it holds
/// bundles alone, or is not complete with that any longer.
pub fn publication(team: &Team, name: &CircleName, manifest: &Digest) -> Option<Publication> {
    let charter = &team.adopted()?.charter;
    let circle = team.review().circle(name)?;
    let completed = circle.completed.as_ref().filter(|completed| completed.manifest == *manifest)?;
    let versions = completed.entries.iter().filter_map(|entry| {
        let proposal = team.review().proposal(&entry.proposal)?;
        let version = proposal.version(entry.version)?;
        (version.artifact.kind == ArtifactKind::Commit).then(|| PublishedVersion {
            reference: version.reference(&entry.proposal),
            commit: version.artifact.digest.clone(),
            target: entry.target(charter).to_owned(),
            summary: version.summary.clone(),
            approvals: entry.approvals.clone(),
        })
    });
    let versions: Vec<PublishedVersion> = versions.collect();
    (!versions.is_empty()).then(|| Publication {
        team: charter.team.clone(),
        circle: CircleRef { circle: name.clone(), digest: manifest.into() },
        manifest: manifest.clone(),
        at: completed_at(circle),
        versions,
        settings: charter.publish.clone(),
    })
}

fn completed_at(circle: &Circle) -> Time {
    circle.completed_at.unwrap_or(circle.progress_at)
}

/// How long is waited after so many faults in a row.
pub(super) fn pause_after(faults: u32) -> Span {
    Span(PAUSE.0.saturating_mul(1 << faults.saturating_sub(1).min(20))).min(PAUSE_MAX)
}
