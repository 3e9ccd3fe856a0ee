//! `countersign hook`: what a harness runs when its agent begins, is written to, or is about to end its
//! turn.
//!
//! It holds nobody up for longer than its patience, and ends with 0 whatever happens: an agent whose
//! server is away may end its turn, and is told why. An agent that owes something is kept once; where it
//! still owes when it ends its turn again, it may.

use std::env;
use std::io::Read;
use std::time::Duration;

use clap::Args;
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout_at};

use super::failure::{Exit, Failure};
use super::harness::{Asked, Harness, Occasion, Said};
use super::output::{Answer, visible};
use super::speaker::{self, Global, Speaker};
use super::words::{self, counted};
use crate::client::proto::{
    GetRosterRequest, GetStatusRequest, GetStatusResponse, Obligation, Presence, RosterEntry,
};
use crate::client::time_of;
use crate::protocol::time::{Span, Time};

/// The longest that a harness may say, in bytes: a prompt can be long.
const INPUT_BYTES_MAX: u64 = 16 << 20;

/// Obligations that are told; of the others, how many there are.
const OWED_SHOWN_MAX: usize = 10;

/// Answers a harness's hook: tells what the member owes, and keeps an agent that owes from ending its turn
///
/// It reads the harness's words from standard input and answers in its form, always with exit code 0.
#[derive(Args, Debug)]
pub struct Hook {
    /// The harness
    harness: Harness,
    /// When it is run
    occasion: Occasion,
    /// How long the harness's words and the server are waited for
    #[arg(long, value_name = "DUR", default_value = "80ms")]
    patience: Span,
}

/// What the server says of a member, as far as a hook needs it.
#[derive(Debug, Default)]
struct Owing {
    team: String,
    member: String,
    /// What it owes, oldest first.
    owed: Vec<Obligation>,
    /// For whom it waits, and where.
    waiting: Vec<String>,
    /// Whether a wake reaches it.
    listening: bool,
}

impl Hook {
    pub(super) async fn run(self, global: &Global) -> Result<Answer, Failure> {
        let patience = Duration::from_micros(self.patience.0.unsigned_abs());
        let until = Instant::now() + patience;
        let silent = || Err(format!("nothing within {}", self.patience));
        let said = match timeout_at(until, self.asked()).await.unwrap_or_else(|_| silent()) {
            Ok(asked) => {
                enter(&asked);
                // An agent that is nobody here has nothing to do with it.
                if !speaker::is_anybody(global) {
                    return Ok(Answer::verbatim(""));
                }
                let owing = timeout_at(until, owing(global)).await;
                let late = || {
                    let why = format!("the server did not answer within {}", self.patience);
                    Failure::new(Exit::Unreachable, "SERVER_UNREACHABLE", why, "run: countersign status")
                };
                said(self.occasion, &asked, owing.unwrap_or_else(|_| Err(late())), words::now())
            }
            Err(why) => Said::Aside(format!(
                "countersign: {} said what can't be read: {}",
                self.harness,
                visible(&why)
            )),
        };
        Ok(Answer::verbatim(self.harness.print(self.occasion, &said)))
    }

    /// What the harness says. A thread of its own reads it: one that never says all holds nobody up, and the
    /// process ends without it.
    async fn asked(&self) -> Result<Asked, String> {
        let (tell, told) = oneshot::channel();
        let read = move || {
            let mut input = String::new();
            let read = std::io::stdin().lock().take(INPUT_BYTES_MAX).read_to_string(&mut input);
            // Where nobody waits any longer, nobody is told.
            let _ = tell.send(read.map(|_| input));
        };
        let started = std::thread::Builder::new().spawn(read);
        started.map_err(|why| why.to_string())?;
        let input = told.await.map_err(|why| why.to_string())?.map_err(|why| why.to_string())?;
        self.harness.read(&input)
    }
}

/// Whether these arguments ask for a hook. Then nothing may end with the parser's code, which a harness
/// takes as the order to go on.
pub fn is_asked_for(args: &[std::ffi::OsString]) -> bool {
    let mut words = args.iter().skip(1).map(|arg| arg.to_string_lossy());
    while let Some(word) = words.next() {
        match word.as_ref() {
            "--as" | "--team" | "--addr" | "--ca" => drop(words.next()),
            flag if flag.starts_with('-') => {}
            command => return command == "hook",
        }
    }
    false
}

/// The agent's folder is where its token and its server are looked for.
fn enter(asked: &Asked) {
    let Some(folder) = &asked.folder else { return };
    // Where it is gone, the hook's own folder has to do.
    let _ = env::set_current_dir(folder);
}

async fn owing(global: &Global) -> Result<Owing, Failure> {
    let speaker = Speaker::connect(global).await?;
    let status = speaker.client.get_status(GetStatusRequest { at_least: 0 });
    let (status, roster) = tokio::try_join!(status, speaker.client.get_roster(GetRosterRequest {}))?;
    let GetStatusResponse { team, member, obligations, waiting, .. } = status;
    let owed = obligations.into_iter().filter(|owed| owed.member == member).collect();
    let waiting = waiting.into_iter().filter(|waiting| waiting.member == member);
    let waiting = waiting.filter(|waiting| !waiting.waiting_for.is_empty()).map(|waiting| {
        let mut on: Vec<String> = waiting.waiting_for.into_iter().map(|on| on.member).collect();
        on.sort();
        on.dedup();
        format!("{} in {}", visible(&words::names(&on)), visible(&waiting.circle))
    });
    let waiting = waiting.collect();
    let listens = |entry: &RosterEntry| entry.name == member && entry.presence() == Presence::Listening;
    let listening = roster.members.iter().any(listens);
    Ok(Owing { team, member, owed, waiting, listening })
}

/// What there is to say.
fn said(occasion: Occasion, asked: &Asked, owing: Result<Owing, Failure>, now: Time) -> Said {
    let owing = match owing {
        Ok(owing) => owing,
        Err(failure) => return Said::Aside(away(occasion, &failure)),
    };
    let owes = !owing.owed.is_empty();
    match occasion {
        Occasion::Stop if owes && asked.kept_already => Said::Aside(format!(
            "countersign: {} still owes {}, and was told so",
            visible(&owing.member),
            counted(owing.owed.len() as u64, "thing")
        )),
        Occasion::Stop if owes => Said::GoOn(format!(
            "{}Do that before you end your turn. What you can't do, put before a person:\n  \
             countersign escalate SUBJECT 'why'\n{}",
            owed(&owing, now),
            if owing.listening {
                ""
            } else {
                "What comes next wakes you where this runs in the background: countersign listen\n"
            },
        )),
        Occasion::Stop => Said::Aside(at_rest(&owing)),
        Occasion::Prompt if owes => Said::Beside(owed(&owing, now)),
        Occasion::Prompt => Said::Nothing,
        Occasion::SessionStart if owes => Said::Beside(owed(&owing, now)),
        Occasion::SessionStart => Said::Beside(at_rest(&owing)),
    }
}

/// Why nothing is known, in one sentence.
fn away(occasion: Occasion, failure: &Failure) -> String {
    let told = failure.unmet.first().map(|unmet| visible(&unmet.message)).unwrap_or_default();
    let end = if occasion == Occasion::Stop { "; the turn may end" } else { "" };
    format!("countersign: {told}{end}")
}

/// What is owed, a line each with its command.
fn owed(owing: &Owing, now: Time) -> String {
    let Owing { team, member, owed, .. } = owing;
    let mut out = format!("You are {} of the team {}, and owe:\n", visible(member), visible(team));
    for Obligation { kind, subject, since, command, .. } in owed.iter().take(OWED_SHOWN_MAX) {
        let since = since.as_ref().map(|since| words::ago(time_of(since), now));
        let since = since.map(|since| format!(", for {since}")).unwrap_or_default();
        out.push_str(&format!("  {} {}{since}: {}\n", visible(kind), visible(subject), visible(command)));
    }
    match owed.len().saturating_sub(OWED_SHOWN_MAX) {
        0 => {}
        more => out.push_str(&format!("  and {more} more: countersign status\n")),
    }
    out
}

/// Why somebody who owes nothing may rest.
fn at_rest(owing: &Owing) -> String {
    let mut out = format!("countersign: {} owes nothing", visible(&owing.member));
    if !owing.waiting.is_empty() {
        out.push_str(&format!(" and waits for {}", owing.waiting.join(", and for ")));
    }
    if !owing.listening {
        out.push_str("; nothing wakes it: countersign listen");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::Timestamp;

    fn owing(kinds: &[&str], waiting: &[&str]) -> Owing {
        let owed = kinds.iter().map(|kind| Obligation {
            member: "app".to_owned(),
            kind: (*kind).to_owned(),
            subject: "parser@1".to_owned(),
            since: Some(Timestamp { seconds: 0, nanos: 0 }),
            command: format!("countersign {kind} parser"),
            ..Obligation::default()
        });
        Owing {
            team: "atlas".to_owned(),
            member: "app".to_owned(),
            owed: owed.collect(),
            waiting: waiting.iter().map(ToString::to_string).collect(),
            listening: true,
        }
    }

    fn told(occasion: Occasion, kept_already: bool, owing: Owing) -> Said {
        said(occasion, &Asked { folder: None, kept_already }, Ok(owing), Time(180_000_000))
    }

    #[test]
    fn whoever_owes_is_kept_once() {
        let Said::GoOn(reason) = told(Occasion::Stop, false, owing(&["read", "revise"], &[])) else {
            panic!("it is kept");
        };
        assert!(reason.starts_with(
            "You are app of the team atlas, and owe:\n  read parser@1, for 3 min: countersign read parser\n"
        ));
        let again = told(Occasion::Stop, true, owing(&["read"], &[]));
        assert_eq!(again, Said::Aside("countersign: app still owes 1 thing, and was told so".to_owned()));
    }

    #[test]
    fn whoever_waits_may_rest_and_it_is_said_for_whom() {
        let rest = told(Occasion::Stop, false, owing(&[], &["sec in implement"]));
        assert_eq!(
            rest,
            Said::Aside("countersign: app owes nothing and waits for sec in implement".to_owned())
        );
        let deaf = told(Occasion::Stop, false, Owing { listening: false, ..owing(&[], &[]) });
        let said = "countersign: app owes nothing; nothing wakes it: countersign listen";
        assert_eq!(deaf, Said::Aside(said.to_owned()));
        assert_eq!(told(Occasion::Prompt, false, owing(&[], &[])), Said::Nothing);
    }

    #[test]
    fn a_server_that_is_away_keeps_nobody() {
        let away = Failure::new(Exit::Unreachable, "SERVER_UNREACHABLE", "no server runs on x", "");
        for occasion in [Occasion::Stop, Occasion::Prompt, Occasion::SessionStart] {
            let said = said(occasion, &Asked::default(), Err(away.clone()), Time(0));
            assert!(matches!(&said, Said::Aside(why) if why.contains("no server runs on x")), "{said:?}");
        }
    }

    #[test]
    fn a_long_list_says_how_many_more() {
        let Said::Beside(text) = told(Occasion::Prompt, false, owing(&["read"; 25], &[])) else {
            panic!("it is told");
        };
        assert_eq!(text.lines().count(), 12);
        assert!(text.ends_with("  and 15 more: countersign status\n"), "{text}");
    }

    #[test]
    fn a_hook_is_known_by_its_first_word() {
        let asked = |line: &str| is_asked_for(&line.split(' ').map(Into::into).collect::<Vec<_>>());
        assert!(asked("countersign --as app --json hook claude-code stopp"));
        assert!(asked("countersign hook"));
        assert!(!asked("countersign --as hook status hook"));
        assert!(!asked("countersign"));
    }
}
