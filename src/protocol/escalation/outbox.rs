//! The outbox: which channels have yet to be told of which escalation. It is computed from the log, so
//! that a restart tells nobody twice and forgets nobody.

use std::collections::BTreeSet;

use super::EscalationSent;
use crate::protocol::answer::Answer;
use crate::protocol::charter::Charter;
use crate::protocol::name::EscalationId;
use crate::protocol::team::{Decision, Effect, Team};

/// The server's report that a channel took the news.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportSent {
    /// Of which escalation.
    pub escalation: EscalationId,
    /// Of its opening, 0, or of a reminder: 1, 2, 3…
    pub level: u32,
    /// By which channel.
    pub channel: String,
}

/// What is still to be sent: each open escalation's latest level, by every channel of a person. A level
/// that another one followed is not sent any more.
pub(in crate::protocol) fn owed<'a>(
    team: &'a Team,
    charter: &'a Charter,
) -> impl Iterator<Item = Effect> + 'a {
    team.escalations().open().flat_map(move |escalation| {
        let level = escalation.reminders();
        let unsent =
            move |channel: &&String| escalation.sent.get(*channel).is_none_or(|(sent, _)| *sent < level);
        channels(charter).into_iter().filter(unsent).map(move |channel| Effect::Notify {
            escalation: escalation.opened.id,
            level,
            channel: channel.clone(),
        })
    })
}

/// Every channel by which some person is told, once each.
fn channels(charter: &Charter) -> BTreeSet<&String> {
    let named =
        charter.humans().filter_map(|name| charter.members.get(name)).flat_map(|member| &member.notify);
    named.filter(|channel| charter.channels.contains_key(*channel)).collect()
}

/// Records that a channel took the news; once for each level.
pub(in crate::protocol) fn report_sent(team: &Team, report: &ReportSent) -> Decision {
    let known = team.escalations().get(report.escalation);
    let news = known.is_some_and(|escalation| {
        let sent = escalation.sent.get(&report.channel);
        report.level <= escalation.reminders() && sent.is_none_or(|(level, _)| *level < report.level)
    });
    let ReportSent { escalation: id, level, channel } = report.clone();
    let events = if news { vec![EscalationSent { id, level, channel }.into()] } else { Vec::new() };
    Decision::accept(events, Answer::Recorded)
}
