//! The dissent round: a circle in which all is approved, and nobody attached evidence to a proposal.
//!
//! What lets nobody confirm is the rule; this calls the round when the last approval that was missing
//! arrives, so that the log says when and on what. An approval with evidence ends it for its proposal, and so
//! does an objection.

use std::collections::BTreeSet;

use super::event::DissentCalled;
use super::requirement::{self, RequirementState};
use super::state::Circle;
use crate::protocol::charter::RuleMode;
use crate::protocol::event::Event;
use crate::protocol::name::CircleName;
use crate::protocol::rule::Judge;
use crate::protocol::team::Team;

/// The rule that calls it.
pub(super) const RULE: &str = "confirm/unchecked-consensus";

/// The rounds that these events call, which were folded in just before.
pub(in crate::protocol) fn call(team: &Team, judge: &dyn Judge, events: &[Event]) -> Vec<Event> {
    let review = team.review();
    let mut circles: BTreeSet<&CircleName> = BTreeSet::new();
    for event in events {
        let name = match event {
            Event::Approved(event) => &event.proposal,
            // The approval that was missing is needed no longer, or was given already.
            Event::ObjectionClosed(event) => &event.proposal,
            Event::ReviewerReplaced(event) => &event.proposal,
            Event::ReviewerExcused(event) => &event.proposal,
            // Nothing of git's stands in the way any longer.
            Event::TargetMoved(event) => &event.reference.proposal,
            _ => continue,
        };
        circles.extend(review.proposal(name).map(|proposal| &proposal.circle));
    }
    let circles = circles.into_iter().filter_map(|name| review.circle(name));
    circles.filter_map(|circle| round(team, judge, circle)).map(Event::from).collect()
}

fn round(team: &Team, judge: &dyn Judge, circle: &Circle) -> Option<DissentCalled> {
    let (review, adopted) = (team.review(), team.adopted()?);
    let charter = &adopted.charter;
    let open = circle.is_open() && review.is_settled(circle) && review.is_clear(charter, circle);
    if !open || super::plainly_met(team, charter, circle, RULE) {
        return None;
    }
    let manifest = review.manifest(adopted.revision, circle);
    let confirmer = review.participants(charter, circle).into_iter().next()?;
    if circle.dissent.as_ref() == Some(&manifest) {
        return None;
    }
    let asked = requirement::of_circle_by(team, charter, judge, circle, confirmer, |rule| rule.id == RULE);
    let denied = asked.into_iter().filter(|requirement| {
        requirement.mode == RuleMode::Enforce && requirement.state == RequirementState::Unsatisfied
    });
    let proposals: Vec<_> = denied.filter_map(|requirement| requirement.proposal).collect();
    (!proposals.is_empty()).then(|| DissentCalled { circle: circle.name.clone(), manifest, proposals })
}
