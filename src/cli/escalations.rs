//! `countersign escalate` and `countersign escalations`: questions put to a person, and their answers.

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::failure::Failure;
use super::output::{Answer, visible};
use super::speaker::{Global, Speaker, Write};
use super::text::{Fence, Reason, TextFile};
use super::{json as form, words};
use crate::client::proto::{AnswerEscalationRequest, EscalateRequest, Escalation, ListEscalationsRequest};
use crate::client::time_of;

/// Escalations that one call of the server lists.
const PAGE_MAX: u32 = 1_000;

/// Puts a proposal, an objection, a circle or a phase before a person.
#[derive(Args, Debug)]
pub struct Escalate {
    /// A proposal, an objection, a circle or a phase
    subject: String,
    /// What the person is asked
    text: Option<String>,
    #[command(flatten)]
    text_file: TextFile,
    #[command(flatten)]
    write: Write,
}

impl Escalate {
    pub(super) async fn run(self, global: &Global) -> Result<Answer, Failure> {
        let text = self.text_file.or(self.text, "TEXT", "text")?;
        let speaker = Speaker::connect(global).await?;
        let request = EscalateRequest {
            request_id: self.write.id(),
            subject: self.subject.clone(),
            text: text.clone(),
        };
        let escalated = speaker.client.escalate(request).await?;
        let stored = [("text".to_owned(), text.as_str())];
        let told = format!(
            "{} puts {} before a person\n{}{}",
            visible(&escalated.escalation),
            visible(&self.subject),
            words::stored(&stored),
            words::woke(&escalated.woke, words::now())
        );
        let itself = one(&speaker, &escalated.escalation).await?;
        Ok(Answer::new(form::escalated(&escalated, &itself, Some(words::stored_json(&stored))), told))
    }
}

/// Questions put to a person.
#[derive(Args, Debug)]
pub struct Escalations {
    #[command(subcommand)]
    command: EscalationsCommand,
}

#[derive(Subcommand, Debug)]
enum EscalationsCommand {
    /// Lists the escalations that wait for a person
    #[command(after_help = "Example:\n  countersign escalations list")]
    List {
        /// Also those that are answered or closed
        #[arg(long)]
        all: bool,
    },
    /// Answers an escalation, as a person
    #[command(after_help = "Example:
  countersign escalations answer e1 --decide raise-limit --reason 'the findings are new each time'
  countersign escalations answer e2 --decide replace --member arch --reason 'sec is away'
  countersign escalations answer e3 --decide close-phase --reason 'all is done'

Refused with UNKNOWN_SUBJECT, NOT_A_PERSON, REASON_REQUIRED, ESCALATION_CLOSED, DECISION_UNFIT,
DECISION_IMPOSSIBLE, DELIVERABLE_DROPPED, CIRCLE_COMPLETE, OWN_WORK.")]
    Answer {
        /// The escalation's id: e1
        #[arg(value_name = "eN")]
        escalation: String,
        /// One of the decisions that `escalations list` shows
        #[arg(long, value_name = "DECISION")]
        decide: Option<String>,
        /// Who reviews instead, who is excused, or whose objections are overruled
        #[arg(long = "member", value_name = "MEMBER")]
        named: Option<String>,
        /// Whose place that member takes, where it isn't plain
        #[arg(long, value_name = "MEMBER")]
        reviewer: Option<String>,
        #[command(flatten)]
        reason: Reason,
        #[command(flatten)]
        write: Write,
    },
}

impl Escalations {
    pub(super) async fn run(self, global: &Global) -> Result<Answer, Failure> {
        match self.command {
            EscalationsCommand::List { all } => list(global, all).await,
            EscalationsCommand::Answer { escalation, decide, named, reviewer, reason, write } => {
                let reason = reason.read()?;
                let request = AnswerEscalationRequest {
                    request_id: write.id(),
                    escalation,
                    decision: decide.unwrap_or_default(),
                    reason,
                    member: named.unwrap_or_default(),
                    reviewer: reviewer.unwrap_or_default(),
                };
                answer(global, request).await
            }
        }
    }
}

async fn list(global: &Global, all: bool) -> Result<Answer, Failure> {
    let speaker = Speaker::connect(global).await?;
    let (escalations, sequence) = every(&speaker, all).await?;
    let fence = Fence::fresh()?;
    let mut text = String::new();
    for escalation in &escalations {
        text.push_str(&described(escalation, &fence));
    }
    if escalations.is_empty() {
        text.push_str("no escalation waits for a person\n");
    }
    let json = json!({
        "escalations": escalations.iter().map(form::escalation).collect::<Value>(),
        "sequence": sequence,
    });
    Ok(Answer::new(json, text))
}

/// Every escalation, or every one that is open, and what the answer reflects.
async fn every(speaker: &Speaker, all: bool) -> Result<(Vec<Escalation>, u64), Failure> {
    let mut escalations: Vec<Escalation> = Vec::new();
    let mut page_token = String::new();
    let sequence = loop {
        let request = ListEscalationsRequest { all, page_size: PAGE_MAX, page_token };
        let page = speaker.client.list_escalations(request).await?;
        escalations.extend(page.escalations);
        page_token = page.next_page_token;
        if page_token.is_empty() {
            break page.sequence;
        }
    };
    Ok((escalations, sequence))
}

/// The one of that id, as scripts read it.
async fn one(speaker: &Speaker, id: &str) -> Result<Value, Failure> {
    let (escalations, _) = every(speaker, true).await?;
    Ok(escalations.iter().filter(|escalation| escalation.id == id).map(form::escalation).collect())
}

fn described(escalation: &Escalation, fence: &Fence) -> String {
    let id = visible(&escalation.id);
    let mut out = format!(
        "{id}: {} about {}, {}",
        visible(&escalation.cause),
        visible(&escalation.subject),
        form::escalation_state(escalation)
    );
    if let Some(at) = &escalation.opened_at {
        out.push_str(&format!(", opened at {}", time_of(at)));
    }
    if escalation.reminders > 0 {
        out.push_str(&format!(", {}", words::counted(escalation.reminders.into(), "reminder")));
    }
    out.push('\n');
    out.push_str(&fence.around(&id, &escalation.text));
    for waiting in &escalation.waiting_on {
        let since =
            waiting.since.as_ref().map_or_else(String::new, |since| format!(" since {}", time_of(since)));
        let hears =
            words::hears(waiting, words::now()).map_or_else(String::new, |hears| format!(" ({hears})"));
        out.push_str(&format!(
            "  waits for {}: {}{since}{hears}\n",
            visible(&waiting.member),
            visible(&waiting.kind)
        ));
    }
    for delivery in &escalation.deliveries {
        let channel = visible(&delivery.channel);
        match &delivery.sent_at {
            Some(at) => out.push_str(&format!("  told by {channel} at {}\n", time_of(at))),
            None => out.push_str(&format!("  not told by {channel} yet\n")),
        }
        if delivery.failures > 0 {
            let times = words::counted(delivery.failures.into(), "time");
            out.push_str(&format!("  {channel} failed {times}: {}\n", visible(&delivery.why)));
        }
    }
    if escalation.decision.is_empty() {
        for decision in &escalation.decisions {
            out.push_str(&format!(
                "  countersign escalations answer {id} --decide {}{} --reason TEXT\n",
                visible(decision),
                if decision == "replace" { " --member MEMBER" } else { "" }
            ));
        }
    } else {
        let (by, decision) = (visible(&escalation.answered_by), visible(&escalation.decision));
        out.push_str(&format!("  {by} decided: {decision}\n"));
        out.push_str(&fence.around(&format!("reason of {by}"), &escalation.reason));
    }
    out
}

async fn answer(global: &Global, request: AnswerEscalationRequest) -> Result<Answer, Failure> {
    let speaker = Speaker::connect(global).await?;
    let (decision, reason) = (request.decision.clone(), request.reason.clone());
    let answered = speaker.client.answer_escalation(request).await?;
    let stored = [("reason".to_owned(), reason.as_str())];
    let text = format!(
        "{} is answered: {}\n{}{}",
        visible(&answered.escalation),
        visible(&decision),
        words::stored(&stored),
        words::woke(&answered.woke, words::now())
    );
    let itself = one(&speaker, &answered.escalation).await?;
    let stored = Some(words::stored_json(&stored));
    Ok(Answer::new(form::answered(&answered, &decision, &itself, stored), text))
}
