//! `countersign roster`: who hears.

use clap::Args;
use serde_json::{Value, json};

use super::failure::Failure;
use super::output::Answer;
use super::speaker::{Global, Speaker};
use super::{json as form, words};
use crate::client::proto::{GetRosterRequest, RosterEntry};
use crate::client::time_of;
use crate::protocol::time::Time;

/// Shows whether a wake reaches each member now: listening, thinking, re-arming, deaf, offline or not joined.
#[derive(Args, Debug)]
pub struct Roster {}

impl Roster {
    pub(super) async fn run(self, global: &Global) -> Result<Answer, Failure> {
        let speaker = Speaker::connect(global).await?;
        let roster = speaker.client.get_roster(GetRosterRequest {}).await?;
        let json = json!({
            "members": roster.members.iter().map(form::member).collect::<Value>(),
            "sequence": roster.sequence,
        });
        Ok(Answer::new(json, screen(&roster.members, words::now())))
    }
}

fn screen(members: &[RosterEntry], now: Time) -> String {
    let row = |entry: &RosterEntry| {
        let since =
            entry.since.as_ref().map_or_else(|| "-".to_owned(), |since| words::ago(time_of(since), now));
        vec![entry.name.clone(), form::presence_name(entry.presence()), since, entry.owes.to_string()]
    };
    words::table(&["MEMBER", "PRESENCE", "FOR", "OWES"], members.iter().map(row))
}
