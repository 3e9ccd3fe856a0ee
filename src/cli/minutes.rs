//! `countersign minutes`: the record of a phase or a circle, from the log alone.

use clap::Args;
use serde_json::json;

use super::failure::{Exit, Failure};
use super::output::Answer;
use super::speaker::{Global, Speaker};
use crate::client::minutes::{Reading, Unreadable};

/// Prints the minutes of a phase or a circle in Markdown: claims and verdicts, votes, decisions, all words verbatim.
#[derive(Args, Debug)]
pub struct Minutes {
    /// A phase or a circle
    #[arg(value_name = "PHASE|CIRCLE")]
    name: String,
}

impl Minutes {
    pub(super) async fn run(self, global: &Global) -> Result<Answer, Failure> {
        let speaker = Speaker::connect(global).await?;
        let mut reading = Reading::default();
        while let Some(page) = reading.wants() {
            reading.take(&speaker.client.list_events(page).await?).map_err(newer)?;
        }
        let (minutes, sequence) = reading.done();
        let text = minutes.of(&self.name)?;
        Ok(Answer::new(json!({ "name": self.name, "minutes": text, "sequence": sequence }), text))
    }
}

/// A newer server wrote what this program can't read.
#[expect(clippy::needless_pass_by_value, reason = "it is what map_err gives")]
fn newer(unreadable: Unreadable) -> Failure {
    let remedy = "use a program that is as new as the server";
    Failure::new(Exit::Refused, "EVENT_UNREADABLE", unreadable.to_string(), remedy)
}
