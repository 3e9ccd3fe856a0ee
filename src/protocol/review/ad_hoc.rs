//! Ad hoc: what a producer offers beside the charter's deliverables, in an open phase of kind `each`.
//!
//! Each is a circle of its own, named after the proposal. One work of a producer may not be split over
//! many names to escape a limit: flips, rounds and cooldown count per producer and phase.

use super::state::{Proposal, Review};
use crate::protocol::charter::{ConfirmKind, reserved_proposal};
use crate::protocol::name::{MemberName, PhaseName, ProposalName, skeleton};
use crate::protocol::rejection::Violation;
use crate::protocol::team::Ask;
use crate::protocol::time::Time;

impl Review {
    /// A proposal of that name as it begins: with all that its producer did ad hoc in this phase.
    pub(super) fn ad_hoc(
        &self,
        name: ProposalName,
        producer: MemberName,
        phase: PhaseName,
        at: Time,
    ) -> Proposal {
        let kin = |known: &&Proposal| known.ad_hoc && known.producer == producer && known.phase == phase;
        let kin: Vec<&Proposal> = self.proposals.values().filter(kin).collect();
        // What is the same work has the same counts.
        let (flips, rounds, flipped_at) = (
            kin.iter().map(|known| known.flips).max(),
            kin.iter().map(|known| known.rounds).max(),
            kin.iter().filter_map(|known| known.flipped_at).max(),
        );
        let kin = kin.into_iter().flat_map(|known| known.kin.iter().chain([&known.name])).cloned().collect();
        let circle = (&name).into();
        Proposal {
            ad_hoc: true,
            kin,
            flipped_at,
            flips: flips.unwrap_or(0),
            rounds: rounds.unwrap_or(0),
            ..Proposal::fresh(name, producer, phase, circle, at)
        }
    }
}

/// A new name, where one may be proposed: with what stands against it, the member's part in the phase
/// before the name. Where the name is one of a pending phase, or no phase of kind `each` is open, that is all.
pub(super) fn begin(ask: Ask<'_>, name: &ProposalName) -> Result<(Proposal, Vec<Violation>), Violation> {
    let open = ask.review().current_phase().and_then(|open| ask.charter.phase(open)).map(|(_, phase)| phase);
    let each = open.filter(|phase| phase.confirm == ConfirmKind::Each);
    let Some(phase) = each.filter(|_| ask.charter.deliverable(name).is_none()) else {
        return ask.proposal(name).map(|known| (known.clone(), Vec::new()));
    };
    let mut unmet = Vec::new();
    if phase.reviewers_of(ask.by).next().is_none() {
        let mut reviewed: Vec<MemberName> = phase.reviews.iter().map(|edge| edge.of.clone()).collect();
        reviewed.sort();
        reviewed.dedup();
        unmet.push(Violation::NotProducer {
            proposal: name.clone(),
            producer: String::new(),
            member: ask.by.to_string(),
            verb: "propose".to_owned(),
            reviewed,
        });
    }
    if let Some(because) = unusable(ask, name) {
        unmet.push(Violation::NameUnusable { proposal: name.clone(), because });
    }
    let begun = ask.review().ad_hoc(name.clone(), ask.by.clone(), phase.name.clone(), ask.now);
    Ok((begun, unmet))
}

/// Why no new proposal can bear that name: circles are named by phases and proposals, and no two of
/// them share a name or look alike.
fn unusable(ask: Ask<'_>, name: &ProposalName) -> Option<String> {
    if let Some(because) = reserved_proposal(name) {
        return Some(because.to_owned());
    }
    let phases = ask.charter.phases.iter();
    let named = phases.flat_map(|phase| {
        let deliverables = phase.deliverables.iter().map(|deliverable| deliverable.name.as_str());
        deliverables.chain([phase.name.as_str()])
    });
    let review = ask.review();
    let opened = review.proposals.keys().map(ProposalName::as_str);
    let circles = review.circles().map(|circle| circle.name.as_str());
    let taken = |known: &str| known == name.as_str() || skeleton(known) == skeleton(name.as_str());
    let other = named.chain(opened).chain(circles).find(|known| taken(known))?;
    Some(if other == name.as_str() {
        "a phase is called so".to_owned()
    } else {
        format!("{other} looks alike")
    })
}
