//! decide: withdraw.

use super::command::Withdraw;
use super::event::Withdrawn;
use crate::protocol::answer::Answer;
use crate::protocol::escalation::Cause;
use crate::protocol::rejection::{Rejection, Violation};
use crate::protocol::team::{Ask, Decision};

/// Takes the current version back, unless, in this order: the proposal is unknown, the member isn't
/// its producer, there is nothing to withdraw, there is no reason, the last withdrawal is still
/// cooling down, there were too many, or the circle is complete.
pub(in crate::protocol) fn withdraw(ask: Ask<'_>, command: &Withdraw) -> Decision {
    let proposal = match ask.proposal(&command.proposal) {
        Ok(proposal) => proposal,
        Err(violation) => return Decision::refuse(violation),
    };
    let limits = &ask.charter.limits;
    let mut unmet = Vec::new();
    let mut events = Vec::new();
    if proposal.producer != *ask.by {
        unmet.push(Violation::NotProducer {
            proposal: proposal.name.clone(),
            producer: proposal.producer.to_string(),
            member: ask.by.to_string(),
            verb: "withdraw".to_owned(),
            reviewed: Vec::new(),
        });
    }
    let nothing = if proposal.current().is_none() {
        Some("not delivered yet")
    } else {
        proposal.withdrawal.as_ref().map(|_| "withdrawn already")
    };
    if let Some(state) = nothing {
        let state = state.to_owned();
        unmet.push(Violation::NothingToWithdraw { proposal: proposal.name.clone(), state });
    }
    ask.check_reason("withdraw", &command.reason, &mut unmet);
    if let Some(until) = proposal.cool_at(limits).filter(|until| ask.now < *until) {
        unmet.push(Violation::CooldownActive { proposal: proposal.name.clone(), until });
    }
    // Where nothing is to be withdrawn, or any longer, no limit stands in the way, and nobody is asked.
    let flips = nothing.is_none() && ask.circle_of(proposal).is_open() && proposal.producer == *ask.by;
    if flips && proposal.flips >= limits.withdraw_flips {
        let evidence =
            || format!("{} withdrew {} {} times: {}", ask.by, proposal.name, proposal.flips, command.reason);
        let escalation =
            ask.limit_escalation(Cause::FlipLimit, proposal.name.as_str(), proposal, evidence, &mut events);
        unmet.push(Violation::FlipLimit {
            proposal: proposal.name.clone(),
            flips: proposal.flips,
            limit: limits.withdraw_flips,
            escalation,
        });
    }
    ask.check_circle_open(proposal, &mut unmet);
    if let Some(rejection) = Rejection::of(unmet) {
        return Decision { events, outcome: Err(rejection) };
    }
    let withdrawn = Withdrawn {
        proposal: proposal.name.clone(),
        version: proposal.current_number(),
        by: ask.by.clone(),
        reason: command.reason.clone(),
    };
    events.push(withdrawn.into());
    let flips = proposal.flips + 1;
    let answer = Answer::Withdrawn {
        cooldown_until: ask.now + limits.withdraw_cooldown,
        flips,
        flips_left: limits.withdraw_flips - flips,
    };
    Decision::accept(events, answer)
}
