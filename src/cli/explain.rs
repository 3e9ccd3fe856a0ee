//! `countersign explain`: every requirement, with who can meet it.

use super::failure::Failure;
use super::output::{Answer, visible};
use super::speaker::{Global, Speaker};
use super::{json as form, words};
use crate::client::proto::{ExplainRequest, Requirement, RequirementState};
use clap::Args;

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
        let mut text = format!("{}\n", visible(&explained.circle));
        for requirement in &explained.requirements {
            text.push_str(&described(requirement));
        }
        Ok(Answer::new(form::explained(&self.name, &explained), text))
    }
}

/// A requirement: in one line where nothing is to be done about it, else with what it lacks and who can
/// meet it how.
fn described(requirement: &Requirement) -> String {
    let mode = match requirement.mode.as_str() {
        "" | "enforce" => String::new(),
        mode => format!(" ({})", visible(mode)),
    };
    let state = form::requirement_state(requirement);
    let mut out = format!("{state:<15} {}{mode}\n", visible(&requirement.name));
    if matches!(requirement.state(), RequirementState::Unsatisfied | RequirementState::Error) {
        out.push_str(&format!("    {}\n", visible(&requirement.detail)));
        let who = visible(&words::names(&requirement.who));
        out.push_str(&match requirement.command.as_str() {
            "" => format!("    {who} can meet it\n"),
            command => format!("    {who} can: {}\n", visible(command)),
        });
    }
    out
}
