//! `countersign approve`: for exactly one version.

use clap::Args;

use super::evidence::Ran;
use super::failure::Failure;
use super::output::{Answer, visible};
use super::speaker::{Global, Speaker, Write};
use super::{json as form, words};
use crate::client::proto::ApproveRequest;

/// Approves exactly one version, with what was checked and run.
#[derive(Args, Debug)]
pub struct Approve {
    /// The exact reference, as `show` printed it: parser@2:41d0c9aa1e53
    #[arg(value_name = "REF")]
    reference: String,
    /// A place that was checked: PATH, PATH:LINE or PATH:FIRST-LAST; may be given several times
    #[arg(long, value_name = "PLACE")]
    checked: Vec<String>,
    #[command(flatten)]
    ran: Ran,
    /// An own objection that this version answers; may be given several times
    #[arg(long, value_name = "oN")]
    resolve: Vec<String>,
    #[command(flatten)]
    write: Write,
}

impl Approve {
    pub(super) async fn run(self, global: &Global) -> Result<Answer, Failure> {
        let ran = self.ran.read()?;
        let outputs: Vec<(String, String)> = ran
            .iter()
            .filter_map(|run| Some((format!("output of {}", run.command), run.output.clone()?)))
            .collect();
        let speaker = Speaker::connect(global).await?;
        let request = ApproveRequest {
            request_id: self.write.id(),
            reference: self.reference,
            checked: self.checked,
            ran,
            resolve: self.resolve,
        };
        let approved = speaker.client.approve(request).await?;
        let stored: Vec<(String, &str)> =
            outputs.iter().map(|(what, text)| (visible(what), text.as_str())).collect();
        let text = format!(
            "approved {}\n{}{}{}",
            visible(&approved.reference),
            words::stored(&stored),
            words::woke(&approved.woke, words::now()),
            words::called_out(&approved.called_out)
        );
        Ok(Answer::new(form::approved(&approved, Some(words::stored_json(&stored))), text))
    }
}
