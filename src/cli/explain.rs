//! `countersign explain`: every requirement, with who can meet it.

use clap::Args;
use serde_json::{Value, json};

use super::failure::Failure;
use super::output::{Answer, visible};
use super::speaker::{Global, Speaker};
use super::{json as form, words};
use crate::client::proto::ExplainRequest;

/// Shows every requirement of a proposal or a circle, who can meet it, and the next command.
#[derive(Args, Debug)]
pub struct Explain {
    /// A proposal or a circle
    name: String,
}

impl Explain {
    pub(super) async fn run(self, global: &Global) -> Result<Answer, Failure> {
        let speaker = Speaker::connect(global).await?;
        let explained = speaker.client.explain(ExplainRequest { name: self.name.clone() }).await?;
        let rows = explained.requirements.iter().map(|requirement| {
            let mode = if requirement.mode == "enforce" || requirement.mode.is_empty() {
                String::new()
            } else {
                format!(" ({})", requirement.mode)
            };
            vec![
                format!("{}{mode}", form::requirement_state(requirement)),
                requirement.name.clone(),
                requirement.detail.clone(),
                words::names(&requirement.who),
                if requirement.command.is_empty() { "-".to_owned() } else { requirement.command.clone() },
            ]
        });
        let mut text = format!("{}\n\n", visible(&explained.circle));
        text.push_str(&words::table(&["STATE", "REQUIREMENT", "DETAIL", "WHO", "COMMAND"], rows));
        Ok(Answer::new(
            json!({
                "name": self.name,
                "circle": explained.circle,
                "requirements": explained.requirements.iter().map(form::requirement).collect::<Value>(),
                "sequence": explained.sequence,
            }),
            text,
        ))
    }
}
