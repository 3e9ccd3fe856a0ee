//! How commands speak to people and agents of what several of them speak of.

use comfy_table::{ContentArrangement, Table, presets};

use super::json;
use super::output::visible;
use super::text::Fence;
use crate::client::{proto, time_of};
use crate::coordinator::{Clock, SystemClock};
pub use crate::protocol::rejection::counted;
use crate::protocol::time::Time;

/// The present, for how long ago things were. Shown only: nothing is decided by it.
pub fn now() -> Time {
    SystemClock::start().now()
}

/// How long ago that was, in its largest unit: `3 min`.
pub fn ago(since: Time, now: Time) -> String {
    let seconds = (now - since).0 / 1_000_000;
    match seconds {
        0..=99 => format!("{seconds} s"),
        100..=5_999 => format!("{} min", seconds / 60),
        6_000..=172_799 => format!("{} h", seconds / 3_600),
        _ => format!("{} days", seconds / 86_400),
    }
}

/// Whom a command woke, a sentence each; that it woke nobody is said too.
pub fn woke(woke: &[proto::Wake], now: Time) -> String {
    if woke.is_empty() {
        return "this woke nobody\n".to_owned();
    }
    let mut out = String::new();
    for wake in woke {
        let (member, presence) = (visible(&wake.member), json::presence(wake));
        let since = wake.since.as_ref().map(|since| format!(" for {}", ago(time_of(since), now)));
        out.push_str(&match (wake.outcome(), presence.as_str()) {
            (proto::WakeOutcome::Woke, _) => format!("woke {member}\n"),
            (_, "listening") => format!("stored for {member}, who listens for other things only\n"),
            (_, "not-joined") => format!("stored for {member}, who was never here\n"),
            (_, presence) => format!(
                "stored for {member}, who is not listening ({presence}{})\n",
                since.unwrap_or_default()
            ),
        });
    }
    out
}

/// Whether a wake reaches one on whom something waits, where that was said.
pub fn hears(waiting: &proto::Waiting, now: Time) -> Option<String> {
    let presence = waiting.presence();
    if presence == proto::Presence::Unspecified {
        return None;
    }
    let since = waiting.present_since.as_ref().map(|since| format!(" for {}", ago(time_of(since), now)));
    Some(format!("{}{}", json::presence_name(presence), since.unwrap_or_default()))
}

/// What rules that refuse nothing say of it.
pub fn called_out(said: &[String]) -> String {
    said.iter().map(|said| format!("called out {}\n", visible(said))).collect()
}

/// Texts that were stored, with their sizes: proof that none was cut or mangled on the way.
pub fn stored(texts: &[(String, &str)]) -> String {
    let sizes: Vec<String> = texts
        .iter()
        .filter(|(_, text)| !text.is_empty())
        .map(|(what, text)| format!("{what} {}", bytes(text.len())))
        .collect();
    if sizes.is_empty() { String::new() } else { format!("stored: {}\n", sizes.join(", ")) }
}

/// The same for scripts: `{"summary": 16}`.
pub fn stored_json(texts: &[(String, &str)]) -> serde_json::Value {
    let sizes = texts.iter().filter(|(_, text)| !text.is_empty());
    let sizes: serde_json::Map<_, _> = sizes.map(|(what, text)| (what.clone(), text.len().into())).collect();
    sizes.into()
}

fn bytes(count: usize) -> String {
    counted(count as u64, "byte")
}

/// A table without lines, as wide as its content; cells are shown with nothing that a terminal obeys.
pub fn table(head: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(head.iter().map(ToString::to_string));
    for row in rows {
        table.add_row(row.iter().map(|cell| visible(cell)));
    }
    let mut out = String::new();
    for line in table.to_string().lines() {
        // Every cell is padded by a column on both sides; the first one needs none.
        out.push_str(line.strip_prefix(' ').unwrap_or(line).trim_end());
        out.push('\n');
    }
    out
}

/// An objection or a note, whole; what others wrote in its fences.
pub fn objection(objection: &proto::Objection, fence: &Fence) -> String {
    let (id, by) = (visible(&objection.id), visible(&objection.by));
    let mut out = format!(
        "{id}: {} by {by} ({}) on {}, {}",
        json::objection_kind(objection),
        visible(&objection.lenses.join(", ")),
        if objection.raised_on.is_empty() {
            format!("version {}", objection.version)
        } else {
            visible(&objection.raised_on)
        },
        json::objection_status(objection).replace("overruled", "OVERRULED"),
    );
    if !objection.closed_by.is_empty() {
        out.push_str(&format!(" by {}", visible(&objection.closed_by)));
    }
    out.push('\n');
    if !objection.at.is_empty() {
        out.push_str(&format!("  at {}\n", visible(&objection.at.join(", "))));
    }
    out.push_str(&fence.around(&format!("{id} by {by}"), &objection.text));
    if let Some(run) = &objection.failing_test {
        out.push_str(&self::run("failing test", &id, run, fence));
    }
    for reply in &objection.answers {
        out.push_str(&fence.around(&format!("answer to {id} with version {}", reply.version), &reply.text));
    }
    if !objection.reason.is_empty() {
        out.push_str(
            &fence.around(&format!("reason of {}", visible(&objection.closed_by)), &objection.reason),
        );
    }
    out
}

/// A command that was run, and what it printed.
pub fn run(what: &str, of: &str, run: &proto::Run, fence: &Fence) -> String {
    let exit = run.exit.map_or_else(|| "exit not told".to_owned(), |exit| format!("exit {exit}"));
    let output = run.output.as_deref().unwrap_or_default();
    let mut text = format!("$ {}\n", run.command);
    text.push_str(output);
    fence.around(&format!("{what} of {of}, {exit}"), &text)
}

/// Names in a row; a dash for none.
pub fn names(names: &[String]) -> String {
    if names.is_empty() { "-".to_owned() } else { names.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::Timestamp;

    fn wake(
        member: &str,
        outcome: proto::WakeOutcome,
        presence: proto::Presence,
        seconds: Option<i64>,
    ) -> proto::Wake {
        proto::Wake {
            member: member.to_owned(),
            outcome: outcome.into(),
            presence: presence.into(),
            since: seconds.map(|seconds| Timestamp { seconds, nanos: 0 }),
        }
    }

    #[test]
    fn whom_it_woke_is_always_said() {
        use proto::{Presence, WakeOutcome};
        let now = Time(1_000_000_000);
        assert_eq!(woke(&[], now), "this woke nobody\n");
        let all = [
            wake("sec", WakeOutcome::Woke, Presence::Listening, None),
            wake("arch", WakeOutcome::Stored, Presence::Deaf, Some(860)),
            wake("dana", WakeOutcome::Stored, Presence::NotJoined, None),
            wake("eve", WakeOutcome::Stored, Presence::Listening, Some(999)),
        ];
        assert_eq!(
            woke(&all, now),
            "woke sec\nstored for arch, who is not listening (deaf for 2 min)\nstored for dana, who was never here\n\
             stored for eve, who listens for other things only\n"
        );
    }

    #[test]
    fn sizes_are_bytes_and_empty_texts_are_not_told() {
        let texts = [("summary".to_owned(), "é"), ("o1".to_owned(), ""), ("o2".to_owned(), "x")];
        assert_eq!(stored(&texts), "stored: summary 2 bytes, o2 1 byte\n");
        assert_eq!(stored_json(&texts), serde_json::json!({ "summary": 2, "o2": 1 }));
    }

    #[test]
    fn a_table_shows_hidden_characters() {
        let table = table(&["NAME"], [vec!["a\u{202e}b".to_owned()]]);
        assert!(table.contains("a\\u{202e}b"), "{table}");
    }
}
