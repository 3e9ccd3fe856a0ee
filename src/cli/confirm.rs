//! `countersign confirm`: exactly what a circle holds.

use clap::Args;

use super::failure::Failure;
use super::output::{Answer, visible};
use super::speaker::{Global, Speaker, Write};
use super::{json as form, words};
use crate::client::proto::ConfirmRequest;

/// Confirms exactly what a circle holds; the last participant's confirmation completes it.
#[derive(Args, Debug)]
pub struct Confirm {
    /// The circle's exact reference, as `status` shows it: implement:3fa91c20d8e7
    #[arg(value_name = "CIRCLE-REF")]
    reference: String,
    #[command(flatten)]
    write: Write,
}

impl Confirm {
    pub(super) async fn run(self, global: &Global) -> Result<Answer, Failure> {
        let speaker = Speaker::connect(global).await?;
        let request = ConfirmRequest { request_id: self.write.id(), reference: self.reference };
        let confirmed = speaker.client.confirm(request).await?;
        let circle = visible(&confirmed.circle);
        let mut text = if confirmed.complete {
            format!("{circle} is complete\n")
        } else {
            format!(
                "{circle} is confirmed; it waits for {}\n",
                visible(&words::names(&confirmed.waiting_for))
            )
        };
        text.push_str(&words::woke(&confirmed.woke, words::now()));
        Ok(Answer::new(form::confirmed(&confirmed), text))
    }
}
