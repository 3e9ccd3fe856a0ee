//! decide: verdict. Whoever made a claim doesn't check it.

use super::command::JudgeClaim;
use super::event::ClaimJudged;
use crate::protocol::answer::Answer;
use crate::protocol::name::says_nothing;
use crate::protocol::rejection::{Rejection, Violation};
use crate::protocol::team::{Ask, Decision};

/// Gives a verdict on a claim, unless, in this order: it is unknown, it is no claim, it is the member's own, the
/// member gave the same verdict before, or a text is too large.
pub(in crate::protocol) fn judge_claim(ask: Ask<'_>, command: &JudgeClaim) -> Decision {
    let id = command.message;
    let message = match ask.message(id) {
        Ok(message) => message,
        Err(violation) => return Decision::refuse(violation),
    };
    let mut unmet = Vec::new();
    if !message.claim {
        unmet.push(Violation::NotAClaim { message: id });
    }
    if message.by == *ask.by {
        unmet.push(Violation::OwnClaim { message: id, member: ask.by.clone() });
    }
    let same = |(member, verdict)| member == ask.by && verdict == command.verdict;
    if ask.team.room().verdicts(id).any(same) {
        unmet.push(Violation::AlreadyJudged { message: id, verdict: command.verdict.to_string() });
    }
    ask.check_text("text", &command.text, &mut unmet);
    command.evidence.ran.iter().for_each(|run| ask.check_run(run, &mut unmet));
    if let Some(rejection) = Rejection::of(unmet) {
        return Decision::refuse(rejection);
    }
    let judged = ClaimJudged {
        message: id,
        by: ask.by.clone(),
        verdict: command.verdict,
        text: (!says_nothing(&command.text)).then(|| command.text.clone()),
        at: command.evidence.at.clone(),
        ran: command.evidence.ran.clone(),
    };
    Decision::accept(vec![judged.into()], Answer::ClaimJudged { message: id, verdict: command.verdict })
}
