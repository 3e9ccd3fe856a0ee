//! `countersign resolve` and `countersign overrule`: how an objection closes.

use clap::Args;

use super::failure::Failure;
use super::output::{Answer, visible};
use super::speaker::{Global, Speaker, Write};
use super::text::Reason;
use super::{json as form, words};
use crate::client::proto::{OverruleRequest, OverruleResponse, ResolveRequest, ResolveResponse};

/// Closes an own objection: a newer version answers it, or it was a mistake.
#[derive(Args, Debug)]
pub struct Resolve {
    /// The objection's id: o1
    #[arg(value_name = "oN")]
    objection: String,
    /// It was a mistake; needs a reason
    #[arg(long)]
    mistaken: bool,
    #[command(flatten)]
    reason: Reason,
    #[command(flatten)]
    write: Write,
}

impl Resolve {
    pub(super) async fn run(self, global: &Global) -> Result<Answer, Failure> {
        let reason = self.reason.read()?;
        let speaker = Speaker::connect(global).await?;
        let request = ResolveRequest {
            request_id: self.write.id(),
            objection: self.objection,
            mistaken: self.mistaken,
            reason: reason.clone(),
        };
        let resolved = speaker.client.resolve(request).await?;
        Ok(closed("closed", &resolved, &reason))
    }
}

/// Closes somebody's objection, as a person; it is shown as OVERRULED for ever.
#[derive(Args, Debug)]
pub struct Overrule {
    /// The objection's id: o1
    #[arg(value_name = "oN")]
    objection: String,
    #[command(flatten)]
    reason: Reason,
    #[command(flatten)]
    write: Write,
}

impl Overrule {
    pub(super) async fn run(self, global: &Global) -> Result<Answer, Failure> {
        let reason = self.reason.read()?;
        let speaker = Speaker::connect(global).await?;
        let request = OverruleRequest {
            request_id: self.write.id(),
            objection: self.objection,
            reason: reason.clone(),
        };
        let overruled = speaker.client.overrule(request).await?;
        let OverruleResponse { sequence, objection, woke } = overruled;
        Ok(closed("OVERRULED", &ResolveResponse { sequence, objection, woke }, &reason))
    }
}

fn closed(how: &str, answer: &ResolveResponse, reason: &str) -> Answer {
    let stored = [("reason".to_owned(), reason)];
    let text = format!(
        "{} is {how}\n{}{}",
        visible(&answer.objection),
        words::stored(&stored),
        words::woke(&answer.woke, words::now())
    );
    Answer::new(form::resolved(answer, Some(words::stored_json(&stored))), text)
}
