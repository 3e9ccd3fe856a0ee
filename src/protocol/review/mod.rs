//! The review domain: proposals, versions, votes, objections, withdrawals, circles.
//!
//! In reading order: [`command`] what may be asked; [`event`] what happened; [`state`] what events add
//! up to; the decisions, one file a group of verbs ([`propose`](fn@propose), `read`, `vote`,
//! `closing`, `withdraw`, `check`, `confirm`, `target`, and `dissent`, which follows from a vote); `apply`; [`obligations`](fn@obligations); and
//! [`requirement`], the one computation behind confirm and explain. `printed` has the commands that they name.

mod ad_hoc;
mod apply;
mod check;
mod circle;
mod closing;
pub mod command;
mod confirm;
mod dissent;
pub mod event;
mod follow;
mod gate;
mod obligations;
mod phase;
mod printed;
mod propose;
mod read;
pub mod requirement;
mod revise;
pub mod state;
mod target;
mod vote;
mod withdraw;

pub use command::{
    Approve, Confirm, NamedPlace, Note, Object, Overrule, Propose, PublishFailure, Read, ReadObjections,
    ReportCheck, ReportPublish, Resolve, Withdraw,
};
pub use event::{
    Approved, CheckReported, CircleCompleted, CirclePublished, CircleReopened, Closing, CompletedEntry,
    Confirmed, Conflict, CountedApproval, DeliverableDropped, DissentCalled, NAMED_MAX, Noted, Objected,
    ObjectionClosed, ObjectionsRead, PhaseClosed, Proposed, PublishedMerge, PublishedRef, ReviewerExcused,
    ReviewerReplaced, Run, TargetMoved, Undone, VersionRead, Withdrawn,
};
pub(super) use phase::{close_phase, drop_deliverable};
pub use read::{last_read, read_before, read_last};
pub use requirement::{Requirement, RequirementState};
pub(super) use state::edges_under;
pub use state::{
    Ballot, CheckReport, Circle, CircleState, Edge, Objection, ObjectionKind, PhaseState, Proposal,
    ProposalState, Review, Version, Vote, VoteKind,
};

pub(super) use check::report_check;
pub(super) use closing::{overrule, overrule_all, resolve};
pub(super) use confirm::{confirm, report_publish};
pub(super) use dissent::call as call_dissent;
pub(super) use obligations::obligations;
pub use obligations::{SETTLED_BY_STATE, plainly_met};
pub(super) use propose::propose;
pub(super) use propose::{rounds_evidence, words_of_both};
pub(super) use read::{read, read_objections};
pub(super) use target::report_target;
pub use target::{Compared, Comparison, Said, Standing, told};
pub(super) use vote::{approve, note, object};
pub(super) use withdraw::withdraw;

use super::charter::Phase;
use super::escalation::{Cause, Escalated, EscalationClosed};
use super::event::Event;
use super::name::{ObjectionId, ProposalName};
use super::rejection::Violation;
use super::team::Ask;

impl<'a> Ask<'a> {
    /// The proposal of that name, or why there is none: unknown, or its phase hasn't opened.
    fn proposal(&self, name: &ProposalName) -> Result<&'a Proposal, Violation> {
        if let Some(proposal) = self.review().proposal(name) {
            return Ok(proposal);
        }
        if let Some((phase, _)) = self.charter.deliverable(name) {
            return Err(Violation::PhaseClosed { phase: phase.name.clone(), state: "pending".to_owned() });
        }
        Err(self.unknown(name.as_str(), self.review().proposals().map(|proposal| proposal.name.as_str())))
    }

    /// The objection or note of that id, with its proposal; of those to which it followed the work, the one in
    /// which the asker can rather close it.
    fn objection(&self, id: ObjectionId) -> Result<(&'a Proposal, &'a Objection), Violation> {
        let closable = |(proposal, objection): &(&Proposal, &Objection)| {
            let open = proposal.dropped.is_none() && self.circle_of(proposal).is_open();
            let answered = proposal.withdrawal.is_none() && objection.version < proposal.current_number();
            let read = proposal.current().is_some_and(|version| version.read_by.contains_key(self.by));
            (open, answered, read)
        };
        // Of equals the first, where it was raised.
        let places: Vec<_> = self.review().places(id).collect();
        let best = places.into_iter().rev().max_by_key(closable);
        best.ok_or_else(|| self.unknown(&id.to_string(), []))
    }

    /// The charter's phase of a proposal.
    fn phase_of(&self, proposal: &Proposal) -> &'a Phase {
        let found = self.charter.phase(&proposal.phase).map(|(_, phase)| phase);
        found.expect("a proposal's phase is one of the charter's: it was opened from it")
    }

    /// Who reviews a proposal.
    pub(in crate::protocol) fn edges(
        &self,
        proposal: &'a Proposal,
    ) -> impl Iterator<Item = Edge<'a>> + use<'a> {
        proposal.edges(self.phase_of(proposal))
    }

    /// The circle of a proposal.
    fn circle_of(&self, proposal: &Proposal) -> &'a Circle {
        self.review().circle(&proposal.circle).expect("a proposal's circle opened with it")
    }

    /// Refuses what would change a circle that is complete, or what a person ended.
    fn check_circle_open(&self, proposal: &Proposal, unmet: &mut Vec<Violation>) {
        let circle = self.circle_of(proposal);
        if let Some(dropped) = &proposal.dropped {
            unmet.push(dropped.violation(&proposal.name));
        } else if circle.state == CircleState::Closed {
            let (phase, state) = (proposal.phase.clone(), CircleState::Closed.as_str().to_owned());
            unmet.push(Violation::PhaseClosed { phase, state });
        } else if !circle.is_open() {
            unmet.push(Violation::CircleComplete {
                circle: circle.name.to_string(),
                state: circle.state.as_str().to_owned(),
            });
        }
    }

    /// The escalation of a limit: the open one, or a new one that the refusal opens.
    fn limit_escalation(
        &self,
        cause: Cause,
        subject: &str,
        proposal: &Proposal,
        text: impl FnOnce() -> String,
        events: &mut Vec<Event>,
    ) -> String {
        let escalations = self.team.escalations();
        let open = match cause {
            // Every reviewer has a limit of its own; the others are the proposal's.
            Cause::VoteLimit => escalations.open_of(cause, subject, self.by),
            _ => escalations.open_on(cause, subject),
        };
        if let Some(open) = open {
            return open.opened.id.to_string();
        }
        let id = self.team.escalations().next_id();
        events.push(
            Escalated {
                id,
                proposal: Some(proposal.name.clone()),
                member: Some(self.by.clone()),
                ..Escalated::new(cause, subject, text())
            }
            .into(),
        );
        id.to_string()
    }

    /// Closes the escalations with that cause on that subject, since progress answered them.
    fn close_by_progress(&self, cause: Cause, subject: &str, reason: &str, events: &mut Vec<Event>) {
        let on = |opened: &Escalated| opened.cause == cause && opened.subject == subject;
        for open in self.team.escalations().open().filter(|escalation| on(&escalation.opened)) {
            let closed =
                EscalationClosed { id: open.opened.id, by: None, decision: None, reason: reason.to_owned() };
            events.push(closed.into());
        }
    }
}
