//! decide: phases, one after the other. What a person ends, and which phase opens once another has
//! nothing left.

use super::event::{DeliverableDropped, PhaseClosed};
use super::state::{CircleState, PhaseState, Proposal};
use crate::protocol::charter::{Charter, ConfirmKind};
use crate::protocol::event::{Event, PhaseOpened};
use crate::protocol::name::{CircleName, PhaseName};
use crate::protocol::team::{Ask, Team};

/// Closes a phase, as a person decided, and opens the next; or why it can't be closed: it isn't open, or
/// something complete in it is yet to be published.
pub(in crate::protocol) fn close_phase(
    ask: Ask<'_>,
    phase: &PhaseName,
    reason: &str,
) -> Result<Vec<Event>, String> {
    let review = ask.review();
    match review.phase_state(phase) {
        Some(PhaseState::Open) => {}
        Some(state) => return Err(format!("phase {phase} is {}", state.as_str())),
        None => return Err(format!("phase {phase} is pending")),
    }
    let mut circles = review.circles().filter(|circle| circle.phase == *phase);
    if let Some(circle) = circles.find(|circle| circle.state == CircleState::Complete) {
        return Err(format!("{} is complete and being published; ask again once that is done", circle.name));
    }
    let closed = PhaseClosed { phase: phase.clone(), by: ask.by.clone(), reason: reason.to_owned() };
    let opened = next(ask.team, ask.charter, phase).map(Event::from);
    Ok([closed.into()].into_iter().chain(opened).collect())
}

/// Drops a proposal, as a person decided. A circle with nothing left is closed with it.
pub(in crate::protocol) fn drop_deliverable(ask: Ask<'_>, proposal: &Proposal, reason: &str) -> Vec<Event> {
    let circle = ask.circle_of(proposal);
    let dropped =
        DeliverableDropped { proposal: proposal.name.clone(), by: ask.by.clone(), reason: reason.to_owned() };
    let last = circle.proposals.iter().all(|name| *name == proposal.name);
    let opened = if last { after(ask.team, ask.charter, &circle.phase, &[&circle.name]) } else { None };
    [Event::from(dropped)].into_iter().chain(opened.map(Event::from)).collect()
}

/// The phase that opens once these circles are final too: where a phase finishes together, and nothing of it
/// is left. One in which each finishes by itself stays open, for what is proposed ad hoc, until a person
/// closes it.
pub(super) fn after(
    team: &Team,
    charter: &Charter,
    phase: &PhaseName,
    finished: &[&CircleName],
) -> Option<PhaseOpened> {
    let (_, of) = charter.phase(phase)?;
    let mut circles = team.review().circles().filter(|circle| circle.phase == *phase);
    let is_final = |state: CircleState| matches!(state, CircleState::Published | CircleState::Closed);
    let done = circles.all(|circle| is_final(circle.state) || finished.contains(&&circle.name));
    if of.confirm == ConfirmKind::Each || !done { None } else { next(team, charter, phase) }
}

/// The first phase behind that one that hasn't opened.
pub(super) fn next(team: &Team, charter: &Charter, phase: &PhaseName) -> Option<PhaseOpened> {
    let (index, _) = charter.phase(phase)?;
    let mut behind = charter.phases[index + 1..].iter();
    let next = behind.find(|next| team.review().phase_state(&next.name).is_none())?;
    Some(PhaseOpened { phase: next.name.clone() })
}
