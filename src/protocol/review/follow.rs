//! What follows the work: open objections, rounds, flips and the cooldown of work that a producer took back
//! follow it into whatever of the same producer takes it up, under any name.

use std::collections::BTreeSet;

use super::command::Propose;
use super::state::{Circle, Objection, Proposal, Review, Version};
use crate::protocol::charter::Limits;
use crate::protocol::name::{Digest, ObjectionId, ProposalName};
use crate::protocol::rejection::Violation;
use crate::protocol::team::Ask;
use crate::protocol::time::Time;

/// What a version takes up of other proposals.
pub(super) struct Followed<'a> {
    /// The proposals whose work it is; of the same producer and phase, and not over.
    pub(super) sources: Vec<&'a Proposal>,
}

impl<'a> Followed<'a> {
    /// By the paths that it touches, and what it leaves there.
    pub(super) fn of(ask: Ask<'a>, proposal: &Proposal, command: &Propose) -> Self {
        let paths: BTreeSet<_> = command.facts.paths.iter().collect();
        let files: BTreeSet<&Digest> = command.facts.files.iter().collect();
        let taken_back = |source: &Proposal| {
            let mut touched = source.versions.iter().flat_map(|version| &version.paths);
            source.withdrawal.is_some() && touched.any(|path| paths.contains(path))
        };
        let objected = |source: &Proposal| {
            let objected =
                |version: &&Version| source.open_objections().any(|open| open.is_raised_on(version.number));
            if source.open_objections().next().is_none() {
                return false;
            }
            let mut left = source.versions.iter().filter(objected).flat_map(|version| &version.files);
            left.any(|file| files.contains(file))
        };
        let same = |source: &&Proposal| source.producer == proposal.producer && source.name != proposal.name;
        // Mostly there is none, and then nothing is put in order.
        let takes_up = |source: &Proposal| taken_back(source) || objected(source);
        if !ask.review().proposals.values().filter(same).any(takes_up) {
            return Self { sources: Vec::new() };
        }
        let circles =
            ask.review().circles().filter(|circle| circle.is_open() && circle.phase == proposal.phase);
        let others =
            circles.flat_map(|circle| &circle.proposals).filter_map(|name| ask.review().proposal(name));
        let sources = others.filter(same).filter(|source| takes_up(source));
        Self { sources: sources.collect() }
    }

    /// Those of which something is new to the proposal.
    pub(super) fn news(&self, proposal: &Proposal) -> Vec<&'a Proposal> {
        let new = |source: &&&Proposal| {
            let open = source.open_objections().any(|open| !stands(proposal, open));
            open || !proposal.kin.contains(&source.name)
        };
        self.sources.iter().filter(new).copied().collect()
    }

    /// The open objections that aren't the proposal's own yet.
    pub(super) fn objections(&self, proposal: &Proposal) -> Vec<&'a Objection> {
        let mut seen = BTreeSet::new();
        let open = self.sources.iter().flat_map(|source| source.open_objections());
        open.filter(|open| !stands(proposal, open) && seen.insert(open.id)).collect()
    }

    /// Every open objection of theirs was shown to the producer, where it was raised.
    pub(super) fn check_read(&self, unmet: &mut Vec<Violation>) {
        for source in &self.sources {
            let unread: Vec<&Objection> = source.unread().collect();
            if unread.is_empty() {
                continue;
            }
            let by: BTreeSet<_> = unread.iter().map(|objection| objection.by.clone()).collect();
            let unread: Vec<ObjectionId> = unread.iter().map(|objection| objection.id).collect();
            let proposal = source.name.clone();
            unmet.push(Violation::UnreadObjections { proposal, unread, by: by.into_iter().collect() });
        }
    }

    /// Work that was taken back stays away for a while, whatever it is called.
    pub(super) fn check_cooled(&self, ask: Ask<'_>, unmet: &mut Vec<Violation>) {
        for source in self.sources.iter().filter(|source| source.withdrawal.is_some()) {
            if let Some(until) = source.cool_at(&ask.charter.limits).filter(|until| ask.now < *until) {
                unmet.push(Violation::CooldownActive { proposal: source.name.clone(), until });
            }
        }
    }

    /// The versions of other names that it may not merely repeat: objections to them stand, or were answered
    /// otherwise.
    pub(super) fn versions(&self) -> impl Iterator<Item = (&'a Proposal, &'a Version)> {
        self.sources
            .iter()
            .copied()
            .flat_map(|source| source.versions.iter().map(move |version| (source, version)))
    }

    /// Their names, in order.
    pub(super) fn names(sources: &[&Proposal]) -> Vec<ProposalName> {
        sources.iter().map(|source| source.name.clone()).collect()
    }
}

/// What is open on other work that was taken back, and touched what the current version touches.
pub(super) fn foreseen<'a>(review: &'a Review, proposal: &Proposal) -> Vec<&'a Objection> {
    let mut found = std::collections::BTreeMap::new();
    for source in taken_back(review, proposal) {
        let news = source.open_objections().filter(|open| !stands(proposal, open));
        found.extend(news.map(|objection| (objection.id, objection)));
    }
    found.into_values().collect()
}

/// When the last of that work may come back.
pub(super) fn cool_at(review: &Review, proposal: &Proposal, limits: &Limits) -> Option<Time> {
    taken_back(review, proposal).into_iter().filter_map(|source| source.cool_at(limits)).max()
}

impl Review {
    /// Whether the end of a cooldown will have the producer owe a version of it: its own, or that of work that it
    /// takes up.
    pub(in crate::protocol) fn cools(&self, proposal: &Proposal, limits: &Limits, now: Time) -> bool {
        proposal.withdrawal.is_some() || cool_at(self, proposal, limits).is_some_and(|cool_at| now < cool_at)
    }
}

fn taken_back<'a>(review: &'a Review, proposal: &Proposal) -> Vec<&'a Proposal> {
    let Some(current) = proposal.current() else { return Vec::new() };
    let withdrawn = |source: &&Proposal| {
        let same = source.producer == proposal.producer && source.phase == proposal.phase;
        same && source.withdrawal.is_some() && source.name != proposal.name && source.dropped.is_none()
    };
    let open = |source: &&Proposal| review.circle(&source.circle).is_some_and(Circle::is_open);
    let withdrawn: Vec<&Proposal> = review.proposals.values().filter(withdrawn).filter(open).collect();
    // Mostly there is none.
    if withdrawn.is_empty() {
        return withdrawn;
    }
    let paths: BTreeSet<_> = current.paths.iter().collect();
    let touches = |source: &&Proposal| {
        source.versions.iter().flat_map(|version| &version.paths).any(|path| paths.contains(path))
    };
    withdrawn.into_iter().filter(touches).collect()
}

fn stands(proposal: &Proposal, objection: &Objection) -> bool {
    proposal.objections.iter().any(|known| known.id == objection.id)
}
