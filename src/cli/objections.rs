//! `countersign objections`: every objection and note on a proposal.

use clap::Args;

use super::failure::Failure;
use super::output::{Answer, visible};
use super::reading;
use super::speaker::{Global, Speaker, Write};
use super::text::Fence;
use super::{json as form, words};
use crate::client::proto::ObjectionsRequest;

/// Shows every objection and note on a proposal; for its producer, records that they were read.
#[derive(Args, Debug)]
pub struct Objections {
    /// The proposal
    name: String,
    #[command(flatten)]
    write: Write,
}

impl Objections {
    pub(super) async fn run(self, global: &Global) -> Result<Answer, Failure> {
        let speaker = Speaker::connect(global).await?;
        let request = ObjectionsRequest { request_id: self.write.id(), proposal: self.name.clone() };
        let read = speaker.client.objections(request).await?;

        let fence = Fence::fresh()?;
        let mut text = match read.objections.len() {
            0 => format!("no objection or note on {}\n", visible(&self.name)),
            _ => String::new(),
        };
        for objection in &read.objections {
            text.push_str(&words::objection(objection, &fence));
        }
        let mut answer = Answer::new(form::objections(&self.name, &read), text);
        reading::keep_told(&speaker, &self.name, read.version, &mut answer).await;
        Ok(answer)
    }
}
