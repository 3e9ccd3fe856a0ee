//! The facts about artifacts that a command brings along: the core never asks for them.

use super::answer::Failure;
use super::call::Call;
use crate::artifact::{Failure as ArtifactFailure, Offer, Refused};
use crate::protocol::Violation;
use crate::protocol::artifact::{Artifact, ArtifactFacts, ArtifactKind, Place};
use crate::protocol::name::{Digest, VersionRef};
use crate::wire::command::Offered;

/// What is known of an offered artifact: a staged commit against its target, or a bundle against the
/// version that it follows.
pub(super) async fn of_offer(call: &Call, offered: &Offered) -> Result<(Artifact, ArtifactFacts), Failure> {
    let against = call.team.peek(|team| Against::of(team, offered));
    let wanted = against.wanted;
    if offered.kind != wanted {
        let (given, wanted) = (name_of(offered.kind).to_owned(), name_of(wanted).to_owned());
        return Err(Violation::ArtifactKindUnfit { given, wanted }.into());
    }
    let artifacts = call.artifacts()?;
    let _turn = call.turn().await;
    let offer = match wanted {
        ArtifactKind::Commit => {
            artifacts.repository()?.staged(&offered.digest).await?;
            Offer::Commit { commit: &offered.digest, target: &against.target }
        }
        ArtifactKind::Bundle => {
            Offer::Bundle { digest: &offered.digest, previous: against.previous.as_ref() }
        }
    };
    Ok(artifacts.facts(offer).await?)
}

/// What an offer is compared with.
struct Against {
    wanted: ArtifactKind,
    target: String,
    /// The version that the offer says it follows. If it is another than the current one, the offer
    /// is refused, so these are the right facts whenever they count.
    previous: Option<Digest>,
}

impl Against {
    fn of(team: &crate::protocol::Team, offered: &Offered) -> Self {
        let charter = team.adopted().map(|adopted| &adopted.charter);
        let target = charter.and_then(|charter| charter.target_of(&offered.proposal));
        let followed =
            team.review().proposal(&offered.proposal).and_then(|proposal| proposal.version(offered.after));
        Self {
            wanted: if target.is_some() { ArtifactKind::Commit } else { ArtifactKind::Bundle },
            target: target.unwrap_or_default().to_owned(),
            previous: followed.map(|version| version.artifact.digest.clone()),
        }
    }
}

/// Whether the version that is spoken of has each of these places. Where there is no such version,
/// the core says so, whatever stands here.
pub(super) async fn places(
    call: &Call,
    reference: &VersionRef,
    places: &[Place],
) -> Result<Vec<bool>, Failure> {
    let artifact = call.team.peek(|team| {
        let version = team.review().proposal(&reference.proposal)?.version(reference.version)?;
        Some(version.artifact.clone())
    });
    let Some(artifact) = artifact.filter(|_| !places.is_empty()) else {
        return Ok(vec![false; places.len()]);
    };
    let artifacts = call.artifacts()?;
    let _turn = call.turn().await;
    let mut found = Vec::with_capacity(places.len());
    for place in places {
        found.push(match artifacts.has_place(&artifact, place).await {
            // Its lines aren't counted, so it has none to point at.
            Err(ArtifactFailure::Refused(Refused::TooLarge { .. })) => false,
            answer => answer?,
        });
    }
    Ok(found)
}

/// What the protocol calls an artifact of that kind.
pub(super) fn name_of(kind: ArtifactKind) -> &'static str {
    match kind {
        ArtifactKind::Commit => "commit",
        ArtifactKind::Bundle => "bundle",
    }
}
