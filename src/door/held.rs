//! Whether a completed circle holds a commit: the same door for any forge's CI.

use crate::protocol::Team;
use crate::protocol::artifact::ArtifactKind;
use crate::protocol::charter::Charter;
use crate::protocol::name::{CircleName, Digest, ProposalName, VersionRef};
use crate::protocol::rejection::Violation;
use crate::protocol::review::CircleState;

/// The version that a commit is.
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

/// The version of a completed circle that the commit is, reviewed for `target`; for any ref where that is empty.
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
            let reviewed_for = charter.map(|charter| target_of(charter, &entry.proposal)).unwrap_or_default();
            if is_it && (target.is_empty() || target == reviewed_for) {
                return Ok(Held {
                    reference: version.reference(&entry.proposal),
                    circle: circle.name.clone(),
                    state: circle.state,
                    target: reviewed_for,
                });
            }
        }
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

/// The ref that a proposal is reviewed for.
fn target_of(charter: &Charter, proposal: &ProposalName) -> String {
    let own = charter.deliverable(proposal).and_then(|(_, deliverable)| deliverable.target.clone());
    own.unwrap_or_else(|| charter.publish.target.clone())
}
