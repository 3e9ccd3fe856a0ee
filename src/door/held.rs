//! Whether a completed circle holds a commit: the same door for any forge's CI.

use crate::protocol::Team;
use crate::protocol::artifact::ArtifactKind;
use crate::protocol::name::{CircleName, Digest, VersionRef};
use crate::protocol::rejection::Violation;
use crate::protocol::review::CircleState;

/// The version that a commit is, or that it merged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// Its exact reference.
    pub reference: VersionRef,
    /// The circle that holds it.
    pub circle: CircleName,
    /// How far that is: complete or published.
    pub state: CircleState,
    /// The ref that it was reviewed for.
    pub target: String,
}

/// The version of a completed circle that the commit is, reviewed for `target`; for any ref where that is empty. Of a
/// merge commit that the server made and left on that ref: the version that it merged.
///
/// # Errors
/// [`Violation::NotCountersigned`]: also for a commit of a version that another one followed, and for one that only
/// stands in the history of what was reviewed.
pub fn held(team: &Team, commit: &Digest, target: &str) -> Result<Held, Violation> {
    let charter = team.adopted().map(|adopted| &adopted.charter);
    let review = team.review();
    for circle in
        review.circles().filter(|one| matches!(one.state, CircleState::Complete | CircleState::Published))
    {
        for entry in circle.completed.iter().flat_map(|completed| &completed.entries) {
            let Some(proposal) = review.proposal(&entry.proposal) else { continue };
            let Some(version) = proposal.version(entry.version) else { continue };
            let is_it = version.artifact.kind == ArtifactKind::Commit && version.artifact.digest == *commit;
            let reviewed_for = charter.map(|charter| entry.target(charter)).unwrap_or_default();
            if is_it && (target.is_empty() || target == reviewed_for) {
                return Ok(Held {
                    reference: version.reference(&entry.proposal),
                    circle: circle.name.clone(),
                    state: circle.state,
                    target: reviewed_for.to_owned(),
                });
            }
        }
    }
    if let Some(held) = merged(team, commit, target) {
        return Ok(held);
    }
    let has_it = |proposal: &&crate::protocol::review::Proposal| {
        proposal.versions.iter().any(|version| version.artifact.digest == *commit)
    };
    let holder = review.proposals().find(has_it).map(|proposal| proposal.name.to_string());
    Err(Violation::NotCountersigned {
        commit: commit.to_string(),
        target: crate::protocol::name::shown(target, 200),
        holder: holder.unwrap_or_default(),
    })
}

/// The version that a recorded merge commit published.
fn merged(team: &Team, commit: &Digest, target: &str) -> Option<Held> {
    for circle in team.review().circles() {
        let refs = circle.published.iter().filter(|one| target.is_empty() || one.name == target);
        for one in refs {
            if let Some(merge) = one.merges.iter().find(|merge| merge.commit == *commit) {
                return Some(Held {
                    reference: merge.version.clone(),
                    circle: circle.name.clone(),
                    state: circle.state,
                    target: one.name.clone(),
                });
            }
        }
    }
    None
}
