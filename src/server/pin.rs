//! Pins: every version that is a commit is kept by a ref of its own, so that it outlives the branch
//! it came from. Level-triggered: what the log holds and the repository lacks is pinned, at start
//! and after each version.

use std::collections::BTreeMap;

use crate::artifact::repository::Repository;
use crate::artifact::{Artifacts, Result};
use crate::protocol::Team;
use crate::protocol::artifact::ArtifactKind;
use crate::protocol::name::{Digest, ProposalName};

/// What git may print when it lists refs, in bytes: far above what any team's versions come to.
const LIST_BYTES_MAX: usize = 64 << 20;

/// A version that must be pinned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pin {
    pub(super) proposal: ProposalName,
    pub(super) version: u32,
    pub(super) commit: Digest,
}

impl Pin {
    pub(super) fn reference(&self) -> String {
        format!("refs/countersign/{}/{}", self.proposal, self.version)
    }
}

/// Every version of a team that is a commit, also of what was dropped.
pub(super) fn owed(team: &Team) -> Vec<Pin> {
    let versions = team
        .review()
        .proposals()
        .chain(team.review().dropped())
        .flat_map(|proposal| proposal.versions.iter().map(move |version| (proposal, version)));
    versions
        .filter(|(_, version)| version.artifact.kind == ArtifactKind::Commit)
        .map(|(proposal, version)| Pin {
            proposal: proposal.name.clone(),
            version: version.number,
            commit: version.artifact.digest.clone(),
        })
        .collect()
}

/// The refs that keep versions, and what each keeps.
pub(super) async fn pinned(repository: &Repository) -> Result<BTreeMap<String, String>> {
    let asked = ["for-each-ref", "--format=%(refname) %(objectname)", "refs/countersign/"];
    let listed = repository.refs().run(&asked, LIST_BYTES_MAX).await?.ok()?;
    let text = String::from_utf8_lossy(&listed.stdout);
    let refs = text.lines().filter_map(|line| line.rsplit_once(' '));
    Ok(refs
        .filter(|(name, _)| !name.starts_with("refs/countersign/staging/"))
        .map(|(name, commit)| (name.to_owned(), commit.to_owned()))
        .collect())
}

/// Pins what isn't; says how many there were. What can't be pinned is logged, and the others are
/// pinned all the same.
pub(super) async fn catch_up(artifacts: &Artifacts, owed: &[Pin]) -> Result<usize> {
    if owed.is_empty() {
        return Ok(0);
    }
    let repository = artifacts.repository()?;
    let kept = pinned(repository).await?;
    let mut count = 0;
    for pin in owed {
        let reference = pin.reference();
        match kept.get(&reference) {
            Some(commit) if commit == pin.commit.as_str() => continue,
            // Asked all the same: it answers with what stands in the way.
            _ => match repository.pin(&pin.proposal, pin.version, &pin.commit).await {
                Ok(()) => count += 1,
                Err(failure) => tracing::error!(reference, %failure, "a version can't be pinned"),
            },
        }
    }
    Ok(count)
}
