//! `countersign minutes`: the record of a phase or a circle, from the log alone.

use clap::Args;
use serde_json::json;

use super::failure::{Exit, Failure};
use super::output::Answer;
use super::speaker::{Global, Speaker};
use crate::client::proto::ListEventsRequest;
use crate::client::time_of;
use crate::protocol::Event;
use crate::protocol::minutes;
use crate::protocol::name::{Actor, Seq};
use crate::protocol::time::Time;

/// Events that one call of the server lists.
const PAGE_MAX: u32 = 1_000;

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
        let mut minutes = minutes::Minutes::default();
        let (mut from, mut sequence) = (1, 0);
        while from > 0 {
            let page = speaker.client.list_events(ListEventsRequest { from, page_size: PAGE_MAX }).await?;
            for event in &page.events {
                let at = event.at.as_ref().map_or(Time::default(), time_of);
                let actor: Actor = event.actor.parse().map_err(Failure::usage)?;
                let read = Event::decode(&event.kind, event.schema, &event.body);
                minutes.take(Seq(event.sequence), at, &actor, &read.map_err(newer)?);
                sequence = event.sequence;
            }
            // A page says where the next one begins; 0 where the log ends.
            from = if page.events.is_empty() { 0 } else { page.next };
        }
        let text = minutes.of(&self.name)?;
        Ok(Answer::new(json!({ "name": self.name, "minutes": text, "sequence": sequence }), text))
    }
}

/// A newer server wrote what this program can't read.
fn newer(unreadable: impl ToString) -> Failure {
    let remedy = "use a program that is as new as the server";
    Failure::new(Exit::Refused, "EVENT_UNREADABLE", unreadable.to_string(), remedy)
}
