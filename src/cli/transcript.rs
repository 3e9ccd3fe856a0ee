//! `countersign transcript`: what was said in the room, what came of claims, and what went to a person.

use clap::Args;
use serde_json::{Value, json};

use super::failure::Failure;
use super::output::{Answer, visible};
use super::speaker::{Global, Speaker};
use super::text::Fence;
use super::{json as form, words};
use crate::client::proto::{EntryKind, ListTranscriptRequest, TranscriptEntry};
use crate::client::time_of;

/// Shows the room: messages, claims and verdicts, call-outs, and what went to a person; the newest page.
#[derive(Args, Debug)]
pub struct Transcript {
    /// At most that many entries
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1000))]
    limit: u32,
    /// From this message on
    #[arg(long, value_name = "mN", conflicts_with_all = ["after", "before"])]
    from: Option<String>,
    /// What follows this sequence of the log
    #[arg(long, value_name = "SEQ", conflicts_with = "before")]
    after: Option<u64>,
    /// What stands before this sequence of the log
    #[arg(long, value_name = "SEQ")]
    before: Option<u64>,
}

impl Transcript {
    pub(super) async fn run(self, global: &Global) -> Result<Answer, Failure> {
        let speaker = Speaker::connect(global).await?;
        let request = ListTranscriptRequest {
            page_size: self.limit,
            after: self.after.unwrap_or_default(),
            before: self.before.unwrap_or_default(),
            from: self.from.unwrap_or_default(),
        };
        let page = speaker.client.list_transcript(request).await?;
        let fence = Fence::fresh()?;
        let mut text = String::new();
        let (first, last) = (page.entries.first(), page.entries.last());
        if let Some(first) = first.filter(|_| page.earlier > 0) {
            text.push_str(&format!(
                "{} more before: countersign transcript --before {}\n",
                page.earlier, first.sequence
            ));
        }
        for entry in &page.entries {
            text.push_str(&shown(entry, &fence));
        }
        if page.entries.is_empty() {
            text.push_str("nothing was said\n");
        }
        if let Some(last) = last.filter(|_| page.later > 0) {
            text.push_str(&format!(
                "{} more after: countersign transcript --after {}\n",
                page.later, last.sequence
            ));
        }
        Ok(Answer::new(
            json!({
                "messages": page.entries.iter().map(form::entry).collect::<Value>(),
                "earlier": page.earlier,
                "later": page.later,
                "more": page.earlier + page.later,
                "sequence": page.sequence,
            }),
            text,
        ))
    }
}

/// One entry: who said what to whom, and the words in a fence.
fn shown(entry: &TranscriptEntry, fence: &Fence) -> String {
    let (id, by) = (visible(&entry.id), visible(&entry.by));
    let at = entry.at.as_ref().map_or_else(String::new, |at| time_of(at).to_string());
    let mut out = format!("{at} ");
    let label = match entry.kind() {
        EntryKind::Message | EntryKind::Claim => {
            let does = if entry.kind() == EntryKind::Claim { "claims" } else { "says" };
            out.push_str(&format!("{id}: {by} {does}"));
            if !entry.mentions.is_empty() {
                out.push_str(&format!(", to {}", visible(&entry.mentions.join(", "))));
            }
            if !entry.reply.is_empty() {
                out.push_str(&format!(", in answer to {}", visible(&entry.reply)));
            }
            if !entry.about.is_empty() {
                out.push_str(&format!(", about {}", visible(&entry.about)));
            }
            if entry.ended {
                out.push_str(&format!("; the chain from {} ended here", visible(&entry.root)));
            }
            format!("{id} by {by}")
        }
        EntryKind::Verdict => {
            out.push_str(&format!("{id} is {}, says {by}", form::verdict(entry.verdict())));
            format!("verdict of {by}")
        }
        EntryKind::Escalation => {
            out.push_str(&format!("{id}: {} about {}", visible(&entry.word), visible(&entry.about)));
            id.clone()
        }
        EntryKind::Decision if by.is_empty() => {
            out.push_str(&format!("{id} is closed"));
            format!("end of {id}")
        }
        EntryKind::Decision => {
            out.push_str(&format!("{by} answered {id}: {}", visible(&entry.word)));
            format!("reason of {by}")
        }
        EntryKind::CallOut => {
            let (what, rule) = (visible(&entry.about), visible(&entry.word));
            out.push_str(&format!("called out on the {what} {id} of {by} by {rule}"));
            rule
        }
        EntryKind::Unspecified => id.clone(),
    };
    out.push('\n');
    if !entry.text.is_empty() {
        out.push_str(&fence.around(&label, &entry.text));
    }
    if let Some(evidence) = &entry.evidence {
        if !evidence.at.is_empty() {
            out.push_str(&format!("  at {}\n", visible(&evidence.at.join(", "))));
        }
        for run in &evidence.ran {
            out.push_str(&words::run("evidence", &id, run, fence));
        }
    }
    out
}
