//! `countersign explain`: every requirement, with who can meet it.

use super::failure::Failure;
use super::output::{Answer, visible};
use super::speaker::{Global, Speaker};
use super::text::Fence;
use super::{json as form, words};
use crate::client::proto::{Circle, ExplainRequest, Requirement, RequirementState};
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
        if let Some(circle) = &explained.about {
            text.push_str(&publishing(circle, &Fence::fresh()?));
        }
        Ok(Answer::new(form::explained(&self.name, &explained), text))
    }
}

/// How publishing goes or went, where there is something to say of it. What the check printed is a text of whoever
/// wrote what it ran.
fn publishing(circle: &Circle, fence: &Fence) -> String {
    let mut out = String::new();
    if circle.publishing_since.is_some() {
        out.push_str("It is complete, and the server publishes it.\n");
    }
    if !circle.unpublished_because.is_empty() {
        out.push_str("It could not be published:\n");
        out.push_str(&fence.around("why", &circle.unpublished_because));
    }
    for one in &circle.published {
        out.push_str(&format!("published: {} is at {}\n", visible(&one.name), visible(&one.to)));
    }
    if let Some(check) = &circle.publish_check {
        let exit = check.exit.map_or_else(|| "no exit".to_owned(), |exit| format!("exit {exit}"));
        out.push_str(&format!("the check \"{}\" ended with {exit}\n", visible(&check.command)));
        if !check.output.is_empty() {
            out.push_str(&fence.around("output", &check.output));
        }
    }
    out
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
