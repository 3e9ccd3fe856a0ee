//! Telling persons of an escalation by the charter's channels: a signed webhook, or a local command.
//!
//! ```text
//!   the log ──► outbox (core) ──► coordinator: one attempt after the other ──► Channels ──┬─► webhook
//!                                                                                        └─► command
//! ```
//!
//! What is sent is words: they are inert, short, and name the command that answers.

mod command;
mod webhook;

use std::future::Future;
use std::pin::Pin;

use crate::coordinator::{Notice, Notifier};
use crate::home::Home;
use crate::protocol::name::shown;

/// Characters of one line of the evidence.
const LINE_CHARS_MAX: usize = 500;

/// Lines of the evidence.
const LINES_MAX: usize = 20;

/// The charter's channels, as this machine reaches them.
#[derive(Debug)]
pub struct Channels {
    home: Home,
    webhooks: webhook::Webhooks,
}

impl Channels {
    /// For the teams of a home: secrets lie beside their charters.
    pub fn of(home: &Home) -> Self {
        Self { home: home.clone(), webhooks: webhook::Webhooks::default() }
    }

    async fn tell(&self, notice: &Notice) -> Result<(), String> {
        let text = text(notice);
        let folder = || self.home.charter_folder(&notice.team).map_err(|fault| fault.to_string());
        match (&notice.channel.webhook, &notice.channel.command) {
            (Some(url), _) => {
                let secret = match &notice.channel.secret_file {
                    Some(file) => Some(webhook::read_secret(&folder()?.join(file))?),
                    None => None,
                };
                let allow_private = notice.channel.allow_private;
                let post = webhook::Post { url, secret, allow_private };
                self.webhooks.post(&post, notice, &text).await
            }
            (None, Some(line)) => command::run(line, &folder()?, notice, &text).await,
            (None, None) => Err(format!("channel {} leads nowhere", notice.name)),
        }
    }
}

impl Notifier for Channels {
    fn send<'a>(
        &'a self,
        notice: &'a Notice,
    ) -> Pin<Box<dyn Future<Output = Result<(), String>> + Send + 'a>> {
        Box::pin(self.tell(notice))
    }
}

/// What a person reads: what is before them, the evidence, and how to answer.
fn text(notice: &Notice) -> String {
    let opened = &notice.escalation.opened;
    let (id, cause, subject) = (opened.id, opened.cause, shown(&opened.subject, LINE_CHARS_MAX));
    let reminder = if notice.level > 0 { format!(" (reminder {})", notice.level) } else { String::new() };
    let mut out = format!("{}: {id} {cause} of {subject}{reminder}\n", notice.team);
    let mut lines = opened.text.lines();
    for line in lines.by_ref().take(LINES_MAX) {
        out.push_str(&shown(line, LINE_CHARS_MAX));
        out.push('\n');
    }
    let more = lines.count();
    if more > 0 {
        out.push_str(&format!("… and {more} more lines\n"));
    }
    for (member, presence, since) in &notice.hears {
        let since = since.map_or_else(String::new, |since| format!(" since {since}"));
        out.push_str(&format!("{member} is {}{since}\n", presence.as_str()));
    }
    let decisions: Vec<String> = opened.decisions().iter().map(ToString::to_string).collect();
    out.push_str(&format!(
        "answer with one of {}: countersign escalations answer {id} --decide {} --reason TEXT\n",
        decisions.join(", "),
        decisions[0]
    ));
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::charter::Channel;
    use crate::protocol::escalation::{Cause, Escalated, Escalations};
    use crate::protocol::time::Time;
    use crate::protocol::{Event, Team};

    /// A notice of an escalation with that evidence.
    pub(super) fn notice(channel: Channel, level: u32, evidence: &str) -> Notice {
        let mut team = Team::new();
        let escalated = Escalated {
            id: "e3".parse().expect("an id"),
            ..Escalated::new(Cause::Stall, "implement", evidence.to_owned())
        };
        team.apply(crate::protocol::name::Seq(1), Time(0), &Event::Escalated(escalated));
        let escalations: &Escalations = team.escalations();
        let escalation = escalations.all().next().expect("it was just opened").clone();
        let team = "atlas".parse().expect("a name");
        Notice { team, name: "ops".to_owned(), channel, escalation, level, at: Time(0), hears: Vec::new() }
    }

    pub(super) fn channel() -> Channel {
        Channel { webhook: None, command: None, secret_file: None, allow_private: false }
    }

    #[test]
    fn what_is_told_is_short_inert_and_says_how_to_answer() {
        let evidence = format!("\u{1b}]52;c;aGk=\u{7} sec owes\n{}", "x\n".repeat(30));
        let told = text(&notice(channel(), 2, &evidence));
        assert!(told.starts_with("atlas: e3 stall of implement (reminder 2)\n"), "{told}");
        assert!(!told.contains('\u{1b}') && told.contains("\\u{1b}]52"), "{told}");
        assert!(told.contains("… and 11 more lines"), "{told}");
        let answer = "countersign escalations answer e3 --decide extend --reason TEXT\n";
        assert!(told.ends_with(answer), "{told}");
    }
}
