//! `countersign log`: what happened, in order.

use clap::Args;
use serde_json::{Value, json};

use super::failure::Failure;
use super::json as form;
use super::output::Answer;
use super::speaker::{Global, Speaker};
use super::text::Fence;
use crate::client::proto::{Event, ListEventsRequest};
use crate::client::time_of;

/// Events that one call of the server lists.
const PAGE_MAX: u32 = 1_000;

/// Characters of an event's body that are shown to a person; `--json` has all of it.
const BODY_CHARS_MAX: usize = 240;

/// Lists the log's events, in order.
#[derive(Args, Debug)]
pub struct Log {
    /// The first sequence
    #[arg(long, value_name = "N", default_value_t = 1)]
    from: u64,
    /// At most that many
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
}

impl Log {
    pub(super) async fn run(self, global: &Global) -> Result<Answer, Failure> {
        let speaker = Speaker::connect(global).await?;
        let (mut from, mut left) = (self.from, self.limit);
        let mut events: Vec<Event> = Vec::new();
        // A page says where the next one begins; 0 where the log ends.
        let (mut next, mut sequence) = (from, 0);
        while left > 0 {
            let request = ListEventsRequest { from, page_size: left.min(PAGE_MAX) };
            let page = speaker.client.list_events(request).await?;
            left = left.saturating_sub(u32::try_from(page.events.len()).unwrap_or(u32::MAX));
            let listed = !page.events.is_empty();
            events.extend(page.events);
            (next, sequence) = (page.next, page.sequence);
            if next == 0 || !listed {
                break;
            }
            from = next;
        }

        let mut lines = String::new();
        for event in &events {
            let at = event.at.as_ref().map_or_else(String::new, |at| time_of(at).to_string());
            lines.push_str(&format!(
                "{} {at} {} {} {}\n",
                event.sequence,
                event.actor,
                event.kind,
                start_of(&event.body)
            ));
        }
        let mut text = if events.is_empty() {
            format!("there is no event from {} on\n", self.from)
        } else {
            Fence::fresh()?.around("log", &lines)
        };
        if next != 0 {
            text.push_str(&format!("There are more: countersign log --from {next}\n"));
        }
        Ok(Answer::new(
            json!({
                "events": events.iter().map(form::event).collect::<Value>(),
                "next": if next == 0 { Value::Null } else { next.into() },
                "sequence": sequence,
            }),
            text,
        ))
    }
}

fn start_of(body: &str) -> String {
    let mut out: String = body.chars().take(BODY_CHARS_MAX).collect();
    if out.len() < body.len() {
        out.push('…');
    }
    out
}
