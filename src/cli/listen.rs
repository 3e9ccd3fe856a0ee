//! `countersign listen`: blocked until the member owes something; the end of the process is the wake.
//!
//! What was printed counts as shown only once it was flushed and the server was told so: killed in between, the
//! next one prints the same. A server that goes away and comes back is waited for.

use std::cmp::Ordering;
use std::io;
use std::process::Stdio;
use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::process::Command;
use tokio::time::{Instant, sleep, timeout, timeout_at};

use super::failure::{Exit, Failure};
use super::output::{self, Answer, visible};
use super::speaker::{Global, Speaker, find_home};
use super::text::Fence;
use super::{json as form, words};
use crate::client::proto::listen_response::Said;
use crate::client::proto::{AcknowledgeRequest, ListenRequest, Obligation, Waking};
use crate::client::{Listening, time_of};
use crate::protocol::time::{Span, Time};

/// How long is waited before a server that is away is looked for again: twice as long each time, up to the second.
const AGAIN_AFTER: Duration = Duration::from_millis(20);
const AGAIN_AFTER_MAX: Duration = Duration::from_secs(1);

/// How long it is tried to say that a wake was taken. It was printed by then: at worst it is printed once more.
const ACKNOWLEDGE_TIME_MAX: Duration = Duration::from_secs(30);

/// Blocks until you owe something that you were not shown, prints what you owe with the command for each, and ends.
///
/// Run it as the last thing of a turn, or beside one: the end of the process is what wakes you. Its last line names
/// what woke you; where that is missing, it was killed, and the next one prints the same again. What you bring
/// about yourself does not wake you.
#[derive(Args, Debug)]
pub struct Listen {
    /// End with exit code 4 when nothing is owed for that long, such as 90s or 20m
    #[arg(long, value_name = "DUR")]
    timeout: Option<Span>,
    /// End with exit code 3 when the server stays away for that long
    #[arg(long, value_name = "DUR", default_value = "10m")]
    patience: Span,
    /// Wake on everything that others do; for the referee, and members with watch = true
    #[arg(long)]
    watch: bool,
    /// Run this on each wake, with the JSON on its standard input, and go on listening; a wake whose command
    /// fails comes again
    #[arg(long, value_name = "CMD")]
    exec: Option<String>,
    /// Only what is owed for this proposal, circle or objection; may be given several times
    #[arg(long = "for", value_name = "NAME")]
    subjects: Vec<String>,
    /// Only what is owed of this kind: review, read, revise…; may be given several times
    #[arg(long = "topic", value_name = "KIND")]
    kinds: Vec<String>,
}

/// What is kept over lost connections.
struct Place {
    session: Option<(Speaker, Listening)>,
    own: Vec<String>,
    watched: u64,
    /// Since when the server is away, or looked for.
    away: Option<Instant>,
    is_told_away: bool,
    again_after: Duration,
    /// What was taken last on this stream.
    taken: Option<Taken>,
}

/// A wake that was taken.
struct Taken {
    obligations: Vec<String>,
    /// Where the log was when the server took note of it.
    sequence: u64,
}

impl Place {
    /// Whether that was on its way when the server took note that its wake was taken: whatever of it is news comes
    /// once more.
    fn is_past(&self, waking: &Waking) -> bool {
        self.taken.as_ref().is_some_and(|taken| match waking.sequence.cmp(&taken.sequence) {
            Ordering::Less => true,
            Ordering::Equal => {
                let shown = waking.woke_by.iter().all(|id| taken.obligations.contains(id));
                shown && waking.watched <= self.watched
            }
            Ordering::Greater => false,
        })
    }
}

impl Listen {
    pub(super) async fn run(self, global: &Global) -> Result<Answer, Failure> {
        let mut place = Place {
            session: None,
            own: Vec::new(),
            watched: 0,
            away: None,
            is_told_away: false,
            again_after: AGAIN_AFTER,
            taken: None,
        };
        loop {
            let until = self.timeout.map(|within| Instant::now() + duration(within));
            let waking = match until {
                Some(until) => timeout_at(until, self.hear(global, &mut place))
                    .await
                    .unwrap_or_else(|_| Err(self.timed_out()))?,
                None => self.hear(global, &mut place).await?,
            };
            let member = place.session.as_ref().map(|(speaker, _)| speaker.member.to_string());
            let answer = answer(&member.unwrap_or_default(), &waking, words::now())?;
            let Some(command) = &self.exec else {
                output::put(&answer, global.json).map_err(|problem| unprinted(&problem))?;
                let mut rest = Answer::verbatim("");
                rest.warnings.extend(self.acknowledge(global, &mut place, &waking).await);
                return Ok(rest);
            };
            match execute(command, &answer).await {
                Ok(()) => {
                    if let Some(warning) = self.acknowledge(global, &mut place, &waking).await {
                        output::warn(&warning);
                    }
                }
                Err(why) => output::warn(&format!("{}: {why}; it comes again", waking.wake)),
            }
        }
    }

    /// Waits for the next wake, over restarts of the server.
    async fn hear(&self, global: &Global, place: &mut Place) -> Result<Waking, Failure> {
        loop {
            match self.listen(global, place).await {
                Ok(waking) if place.is_past(&waking) => {}
                Ok(waking) => return Ok(waking),
                Err(failure) => {
                    place.session = None;
                    self.wait_for_server(place, failure).await?;
                }
            }
        }
    }

    /// The next wake on the open stream, or on a fresh one.
    async fn listen(&self, global: &Global, place: &mut Place) -> Result<Waking, Failure> {
        if place.session.is_none() {
            // One that takes the connection and says nothing is away, too.
            let since = *place.away.get_or_insert_with(Instant::now);
            let left = duration(self.patience).saturating_sub(since.elapsed());
            let opened = timeout(left, self.open(global, place)).await;
            place.session = Some(opened.unwrap_or_else(|_| Err(away("the server said nothing")))?);
            place.taken = None;
        }
        let Some((_, listening)) = &mut place.session else { unreachable!("it was opened just now") };
        loop {
            let said = listening.next().await.map_err(superseded)?;
            if said.is_some() {
                (place.away, place.is_told_away, place.again_after) = (None, false, AGAIN_AFTER);
            }
            match said {
                Some(Said::Armed(armed)) => {
                    place.watched = place.watched.max(armed.sequence * u64::from(place.watched == 0));
                }
                Some(Said::Own(own)) => place.own = own.obligations,
                Some(Said::Waking(waking)) => return Ok(waking),
                None => return Err(away("the server ended the stream")),
            }
        }
    }

    async fn open(&self, global: &Global, place: &Place) -> Result<(Speaker, Listening), Failure> {
        let speaker = Speaker::connect(global).await?;
        let request = ListenRequest {
            subjects: self.subjects.clone(),
            kinds: self.kinds.clone(),
            watch: self.watch,
            stays: self.exec.is_some(),
            own: place.own.clone(),
            watched: place.watched,
        };
        let listening = speaker.client.listen(request).await.map_err(superseded)?;
        Ok((speaker, listening))
    }

    /// Waits a moment for a server that is away; fails where it is something else, or it stayed away too long.
    async fn wait_for_server(&self, place: &mut Place, failure: Failure) -> Result<(), Failure> {
        if !is_away(&failure) {
            return Err(failure);
        }
        if !place.is_told_away {
            place.is_told_away = true;
            output::warn(&format!("the server is away; it is waited for, for {}", self.patience));
        }
        let since = *place.away.get_or_insert_with(Instant::now);
        let left = duration(self.patience).saturating_sub(since.elapsed());
        if left.is_zero() {
            return Err(Failure { exit: Exit::Unreachable, ..failure });
        }
        sleep(place.again_after.min(left)).await;
        place.again_after = (place.again_after * 2).min(AGAIN_AFTER_MAX);
        Ok(())
    }

    /// Says that a wake was taken; what kept it from being said.
    async fn acknowledge(&self, global: &Global, place: &mut Place, waking: &Waking) -> Option<String> {
        let request = AcknowledgeRequest {
            wake: waking.wake.clone(),
            obligations: waking.obligations.iter().map(|owed| owed.id.clone()).collect(),
            watched: waking.watched,
            sequence: waking.sequence,
        };
        let until = Instant::now() + ACKNOWLEDGE_TIME_MAX.min(duration(self.patience));
        let mut again_after = AGAIN_AFTER;
        loop {
            let said = match &place.session {
                Some((speaker, _)) => {
                    speaker.client.acknowledge(request.clone()).await.map_err(Failure::from)
                }
                None => match Speaker::connect(global).await {
                    Ok(speaker) => speaker.client.acknowledge(request.clone()).await.map_err(Failure::from),
                    Err(failure) => Err(failure),
                },
            };
            match said {
                Ok(answer) => {
                    place.taken = Some(Taken { obligations: request.obligations, sequence: answer.sequence });
                    place.watched = place.watched.max(waking.watched);
                    return None;
                }
                Err(failure) if is_away(&failure) && Instant::now() < until => {
                    place.session = None;
                    sleep(again_after).await;
                    again_after = (again_after * 2).min(AGAIN_AFTER_MAX);
                }
                Err(failure) => {
                    let message = failure.unmet.first().map_or("", |first| &first.message);
                    return Some(format!(
                        "{} could not be acknowledged, and comes again: {message}",
                        waking.wake
                    ));
                }
            }
        }
    }

    fn timed_out(&self) -> Failure {
        let within = self.timeout.unwrap_or_default();
        Failure::new(
            Exit::TimedOut,
            "TIMED_OUT",
            format!("nothing was owed for {within} that was not shown"),
            "run: countersign listen",
        )
        .with("timeout", within.to_string())
    }
}

const AWAY: &str = "SERVER_UNREACHABLE";

fn away(why: &str) -> Failure {
    Failure::new(Exit::Unreachable, AWAY, why, "run: countersign serve").with("address", "")
}

/// Whether that is a server that may come back; not a place where none is known.
fn is_away(failure: &Failure) -> bool {
    let first = failure.unmet.first();
    let known = first.is_some_and(|first| first.facts.contains_key("address")) || find_home().is_some();
    known && matches!(failure.code(), AWAY | "TIMED_OUT")
}

/// That another listener took over has an exit code of its own.
fn superseded(failure: crate::client::Failure) -> Failure {
    let failure = Failure::from(failure);
    let exit = if failure.code() == "SUPERSEDED" { Exit::Superseded } else { failure.exit };
    Failure { exit, ..failure }
}

fn unprinted(problem: &io::Error) -> Failure {
    Failure::io("the wake could not be printed, and comes again", problem)
}

fn duration(span: Span) -> Duration {
    Duration::from_micros(u64::try_from(span.0).unwrap_or_default())
}

/// Runs the command of a wake, with the wake as JSON on its standard input.
async fn execute(command: &str, answer: &Answer) -> Result<(), String> {
    let json = Value::Object(answer.json.clone().unwrap_or_default());
    let mut child = Command::new("sh")
        .args(["-c", command])
        .stdin(Stdio::piped())
        .spawn()
        .map_err(|why| format!("the command can't be run: {why}"))?;
    if let Some(mut stdin) = child.stdin.take() {
        // A command that reads nothing is as good.
        let _ = stdin.write_all(format!("{}\n", output::inert(&json)).as_bytes()).await;
    }
    let status = child.wait().await.map_err(|why| format!("the command was lost: {why}"))?;
    if status.success() { Ok(()) } else { Err(format!("the command ended with {status}")) }
}

/// What woke the member, in one word.
fn woke_by(waking: &Waking) -> String {
    let event =
        || waking.events.first().map(|event| format!("{} {} by {}", event.sequence, event.kind, event.actor));
    waking.woke_by.first().cloned().or_else(event).unwrap_or_default()
}

fn answer(member: &str, waking: &Waking, now: Time) -> Result<Answer, Failure> {
    let mut json = json!({
        "member": member,
        "wake": waking.wake,
        "obligations": waking.obligations.iter().map(form::obligation).collect::<Value>(),
        "woke_by": woke_by(waking),
        "fresh": waking.woke_by,
        "sequence": waking.sequence,
    });
    if waking.watched > 0 {
        json["events"] = waking.events.iter().map(form::event).collect();
    }
    Ok(Answer::new(json, block(member, waking, now, &Fence::fresh()?)))
}

/// What is owed and what happened, in a fence, and below it what woke the member.
fn block(member: &str, waking: &Waking, now: Time, fence: &Fence) -> String {
    let mut lines = String::new();
    for owed in &waking.obligations {
        lines.push_str(&one(owed, waking.woke_by.contains(&owed.id), now));
    }
    for event in &waking.events {
        lines.push_str(&format!("{} {} by {}\n", event.sequence, event.kind, event.actor));
    }
    let owes = words::counted(waking.obligations.len() as u64, "obligation");
    let mut out = fence.around(&format!("{}: {} has {owes}", waking.wake, visible(member)), &lines);
    let more = (waking.woke_by.len() + waking.events.len()).saturating_sub(1);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    out.push_str(&format!("woken by {}{more}\n", visible(&woke_by(waking))));
    out
}

fn one(owed: &Obligation, fresh: bool, now: Time) -> String {
    let since = owed.since.as_ref().map(time_of);
    let since =
        since.map_or_else(String::new, |since| format!(", since {since} ({})", words::ago(since, now)));
    let due = owed.due.as_ref().map_or_else(String::new, |due| format!(", due {}", time_of(due)));
    let shown = if fresh { "" } else { " [shown before]" };
    format!("{} {}{since}{due}{shown}\n  id: {}\n  Run: {}\n", owed.kind, owed.subject, owed.id, owed.command)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::Timestamp;

    #[test]
    fn the_last_line_names_what_woke() {
        let owed = |id: &str| Obligation {
            id: id.to_owned(),
            member: "sec".to_owned(),
            kind: "review".to_owned(),
            subject: "parser@1:41d0c9aa1e53".to_owned(),
            since: Some(Timestamp { seconds: 1, nanos: 0 }),
            due: None,
            command: "countersign show parser@1".to_owned(),
        };
        let waking = Waking {
            wake: "w2".to_owned(),
            obligations: vec![owed("review:parser@1"), owed("confirm:\u{1b}x")],
            woke_by: vec!["review:parser@1".to_owned()],
            ..Waking::default()
        };
        let block = block("sec", &waking, Time(3_000_000), &Fence::fresh().unwrap());
        assert!(block.ends_with("woken by review:parser@1\n"), "{block}");
        assert!(block.contains("----- begin w2: sec has 2 obligations ----- "), "{block}");
        assert!(
            block.contains("review parser@1:41d0c9aa1e53, since 1970-01-01T00:00:01Z (2 s)\n"),
            "{block}"
        );
        assert!(
            block.contains("  Run: countersign show parser@1\n") && block.contains("[shown before]"),
            "{block}"
        );
        assert!(!block.contains('\u{1b}'), "{block}");
    }
}
