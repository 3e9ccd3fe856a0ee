//! `countersign status`: who holds the ball, on one screen.

use std::collections::BTreeSet;

use super::failure::Failure;
use super::output::{Answer, visible};
use super::speaker::{Global, Speaker};
use super::{json as form, words};
use crate::client::proto::{Circle, GetStatusRequest, GetStatusResponse, Obligation};
use crate::client::time_of;
use crate::protocol::time::Time;
use clap::Args;

/// Rows of a table that are shown to a person; `--json` has them all.
const ROWS_SHOWN_MAX: usize = 15;

/// Shows who holds the ball: circles, proposals, who owes what with the command, escalations.
#[derive(Args, Debug)]
pub struct Status {}

impl Status {
    pub(super) async fn run(self, global: &Global) -> Result<Answer, Failure> {
        let speaker = Speaker::connect(global).await?;
        let status = speaker.client.get_status(GetStatusRequest { at_least: 0 }).await?;
        let json = form::status(&status);
        Ok(Answer::new(json, screen(&status, words::now())))
    }
}

fn screen(status: &GetStatusResponse, now: Time) -> String {
    let mut out =
        format!("{}, as {}, at {}\n", visible(&status.team), visible(&status.member), status.sequence);
    let circles = status.circles.iter().map(|circle| {
        vec![
            circle.reference.clone(),
            state_of(circle, now),
            words::names(&circle.confirmed),
            words::names(&circle.waiting_for),
        ]
    });
    section(&mut out, &["CIRCLE", "STATE", "CONFIRMED BY", "WAITING FOR"], circles.collect());

    for circle in status.circles.iter().filter(|circle| !circle.unpublished_because.is_empty()) {
        out.push_str(&format!(
            "{} could not be published: {}\n",
            visible(&circle.name),
            visible(&circle.unpublished_because)
        ));
        if circle.publish_check.is_some() {
            out.push_str(&format!(
                "  All that the check printed: countersign explain {}\n",
                visible(&circle.name)
            ));
        }
    }

    let proposals = status.proposals.iter().map(|proposal| {
        let approvals: Vec<String> = proposal
            .approvals
            .iter()
            .map(|approval| {
                let overruled = if approval.overruled { " OVERRULED" } else { "" };
                format!("{} ({}){overruled}", approval.by, approval.lens)
            })
            .collect();
        let reference = if proposal.reference.is_empty() { &proposal.name } else { &proposal.reference };
        let mut state = form::proposal_state(proposal.state());
        if let Some(until) = &proposal.cooldown_until {
            state.push_str(&format!(", may come back at {}", time_of(until)));
        }
        vec![
            reference.clone(),
            state,
            proposal.producer.clone(),
            words::names(&approvals),
            words::names(&proposal.open_objections),
        ]
    });
    section(&mut out, &["PROPOSAL", "STATE", "PRODUCER", "APPROVED BY", "OPEN"], proposals.collect());

    // What the caller owes comes first; each part stays in the order of the server: oldest first.
    let (own, others): (Vec<&Obligation>, Vec<&Obligation>) =
        status.obligations.iter().partition(|obligation| obligation.member == status.member);
    let owed = own.into_iter().chain(others).map(|obligation| {
        let since =
            obligation.since.as_ref().map_or_else(String::new, |since| words::ago(time_of(since), now));
        let due = obligation.due.as_ref().map_or_else(|| "-".to_owned(), |due| time_of(due).to_string());
        vec![
            obligation.member.clone(),
            obligation.kind.clone(),
            obligation.subject.clone(),
            since,
            due,
            obligation.command.clone(),
        ]
    });
    let owed: Vec<Vec<String>> = owed.collect();
    if owed.is_empty() {
        out.push_str("\nnobody owes anything\n");
    } else {
        section(&mut out, &["OWES", "WHAT", "ABOUT", "FOR", "DUE", "COMMAND"], owed);
    }
    for waiting in &status.waiting {
        let on: BTreeSet<&str> = waiting.waiting_for.iter().map(|on| on.member.as_str()).collect();
        if !on.is_empty() {
            let on: Vec<String> = on.into_iter().map(str::to_owned).collect();
            out.push_str(&format!(
                "{} waits for {} in {}\n",
                visible(&waiting.member),
                words::names(&on),
                visible(&waiting.circle)
            ));
        }
    }

    if !status.escalations.is_empty() {
        let escalations = status.escalations.iter().map(|escalation| {
            vec![
                escalation.id.clone(),
                escalation.cause.clone(),
                escalation.subject.clone(),
                words::names(&escalation.decisions),
                format!(
                    "countersign escalations answer {} --decide {} --reason TEXT",
                    escalation.id,
                    escalation.decisions.first().map_or("DECISION", String::as_str)
                ),
            ]
        });
        section(&mut out, &["ESCALATION", "CAUSE", "ABOUT", "DECISIONS", "COMMAND"], escalations.collect());
    }
    let fired: Vec<String> = status
        .recovery_patches
        .iter()
        .filter(|(_, count)| **count > 0)
        .map(|(name, count)| format!("{name} {count}"))
        .collect();
    if !fired.is_empty() {
        out.push_str(&format!("\nrecovery patches fired: {}\n", visible(&fired.join(", "))));
    }
    if !status.attempts.is_empty() {
        let attempts = status.attempts.iter().map(|attempt| {
            let at = attempt.at.as_ref().map_or_else(String::new, |at| words::ago(time_of(at), now));
            vec![
                if attempt.member.is_empty() { attempt.reference.clone() } else { attempt.member.clone() },
                attempt.code.clone(),
                attempt.count.to_string(),
                at,
                attempt.message.clone(),
            ]
        });
        section(&mut out, &["REFUSED", "WITH", "TIMES", "LAST", "SAID"], attempts.collect());
    }
    out
}

/// Where a circle stands; while it is being published, since when.
fn state_of(circle: &Circle, now: Time) -> String {
    let state = form::circle_state(circle);
    match &circle.publishing_since {
        Some(since) => format!("{state}, publishing for {}", words::ago(time_of(since), now)),
        None => state,
    }
}

fn section(out: &mut String, head: &[&str], mut rows: Vec<Vec<String>>) {
    let more = rows.len().saturating_sub(ROWS_SHOWN_MAX);
    rows.truncate(ROWS_SHOWN_MAX);
    out.push('\n');
    out.push_str(&words::table(head, rows));
    if more > 0 {
        out.push_str(&format!("  and {more} more: --json shows them all\n"));
    }
}
