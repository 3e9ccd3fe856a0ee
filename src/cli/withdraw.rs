//! `countersign withdraw`: taking the current version back.

use clap::Args;
use serde_json::json;

use super::failure::Failure;
use super::output::{Answer, visible};
use super::speaker::{Global, Speaker, Write};
use super::text::Reason;
use super::{json as form, words};
use crate::client::proto::WithdrawRequest;
use crate::client::time_of;

/// Takes a proposal's current version back; its approvals lapse, and it stays away for a while.
#[derive(Args, Debug)]
pub struct Withdraw {
    /// The proposal
    name: String,
    #[command(flatten)]
    reason: Reason,
    #[command(flatten)]
    write: Write,
}

impl Withdraw {
    pub(super) async fn run(self, global: &Global) -> Result<Answer, Failure> {
        let reason = self.reason.read()?;
        let speaker = Speaker::connect(global).await?;
        let request = WithdrawRequest {
            request_id: self.write.id(),
            proposal: self.name.clone(),
            reason: reason.clone(),
        };
        let withdrawn = speaker.client.withdraw(request).await?;
        let until = withdrawn.cooldown_until.as_ref().map(|until| time_of(until).to_string());
        let back = until
            .as_deref()
            .map_or_else(|| "may come back now".to_owned(), |until| format!("may come back at {until}"));
        let stored = [("reason".to_owned(), reason.as_str())];
        let text = format!(
            "{} is withdrawn and {back}; {} of {} withdrawals are used\n{}{}",
            visible(&self.name),
            withdrawn.flips,
            withdrawn.flips.saturating_add(withdrawn.flips_left),
            words::stored(&stored),
            words::woke(&withdrawn.woke, words::now())
        );
        Ok(Answer::new(
            json!({
                "proposal": self.name,
                "cooldown_until": until,
                "flips": withdrawn.flips,
                "flips_left": withdrawn.flips_left,
                "woke": form::woke(&withdrawn.woke),
                "stored": words::stored_json(&stored),
                "sequence": withdrawn.sequence,
            }),
            text,
        ))
    }
}
