//! A short series of commits, given to a server by the real command line, and what must be true of it
//! afterwards, whatever befell the server in between.

use std::ops::Range;
use std::path::Path;
use std::process::Command;

use rusqlite::{Connection, OpenFlags};
use serde_json::Value;

use crate::place::{Place, Ran, charter, text};
use crate::server::{Server, log};

/// A home in which nothing was done yet, and the story of what will be.
pub struct Story {
    template: Place,
    /// The exact reference of the version that app will propose.
    reference: String,
}

/// What became of each act, by its number.
pub type Told = Vec<(usize, Ran)>;

/// How many acts a story has.
pub const ACTS: usize = 5;

/// The act that changes credentials, which stand beside the logs.
pub const TOKEN: usize = 4;

/// The id under which an act is asked again.
fn id(act: usize) -> String {
    format!("0193aaaa-0000-7000-8000-{act:012}")
}

impl Story {
    pub fn new() -> Self {
        let template = Place::with(&charter(""));
        template.write("work/src/lexer.rs", "fn lex() {}\n");
        let story = Self { template, reference: String::new() };
        // What a version is called depends on what it holds alone: a copy shows it beforehand.
        let copy = story.copy();
        let server = Server::start(&copy);
        let told = story.act(&copy, 0).done().json();
        assert!(server.end().success());
        Self { reference: text(&told["ref"]), ..story }
    }

    /// A copy of the home as it was in the beginning.
    pub fn copy(&self) -> Place {
        copy_of(&self.template)
    }

    /// A copy in which the first act was acknowledged by a server that was killed then: it stands in the
    /// WAL alone.
    pub fn killed_after_the_first(&self) -> (Place, Ran) {
        let place = self.copy();
        let server = Server::start(&place);
        let acknowledged = self.act(&place, 0).done();
        server.kill();
        (place, acknowledged)
    }

    /// Does one act; asked again it is the same request.
    pub fn act(&self, place: &Place, act: usize) -> Ran {
        self.act_of(place, act, None)
    }

    /// The same, where the home holds several teams.
    pub fn act_of(&self, place: &Place, act: usize, team: Option<&str>) -> Ran {
        let (id, reference) = (id(act), self.reference.as_str());
        let args: Vec<&str> = match act {
            0 => vec!["app", "propose", "parser", "--path", "work", "--summary", "x", "--request-id", &id],
            1 => vec!["sec", "show", "parser@1", "--request-id", &id],
            2 => vec!["sec", "object", reference, "Overflows", "--request-id", &id],
            3 => vec!["app", "objections", "parser", "--request-id", &id],
            TOKEN => return place.run(&["--json", "member", "token", "arch"]),
            _ => unreachable!("there are {ACTS} acts"),
        };
        let team: Vec<&str> = team.iter().flat_map(|team| ["--team", team]).collect();
        place.run(&[&["--json"], team.as_slice(), &["--as"], args.as_slice()].concat())
    }

    /// Whether the server stores anything more: a command besides the story.
    pub fn takes_more(&self, place: &Place) -> bool {
        place.run(&["--as", "app", "escalate", "implement", "Who decides?"]).exit == 0
    }

    /// Does some of them.
    pub fn play(&self, place: &Place, acts: Range<usize>) -> Told {
        acts.map(|act| (act, self.act(place, act))).collect()
    }

    /// What was acknowledged is in the log that a start finds, and nothing is in it twice.
    #[track_caller]
    pub fn assert_kept(&self, place: &Place, told: &Told) {
        let acknowledged = told.iter().filter(|(_, ran)| ran.exit == 0).map(|(act, _)| *act);
        assert_held_once(place, acknowledged);
    }

    /// Each act is asked again, by the same request id: it has one effect, and the answer that it had.
    #[track_caller]
    pub fn settle(&self, place: &Place, told: &Told) {
        for (act, before) in told {
            let now = self.act(place, *act);
            assert_eq!(now.exit, 0, "act {act} asked again: {now:?}, before: {before:?} {}", log(place));
            if before.exit == 0 {
                for part in ["ref", "objection"] {
                    assert_eq!(now.json()[part], before.json()[part], "act {act}: {before:?}");
                }
            }
        }
        assert_held_once(place, told.iter().map(|(act, _)| *act));
        if told.iter().any(|(act, _)| *act == TOKEN) {
            let speaks = place.run(&["--as", "arch", "status"]);
            assert_eq!(speaks.exit, 0, "arch has a token again: {speaks:?}");
        }
    }
}

/// Each of these acts is in the log, and no act is in it twice.
#[track_caller]
fn assert_held_once(place: &Place, acts: impl Iterator<Item = usize>) {
    let events = events(place);
    let times = |(kind, actor): (&str, &str)| {
        events.iter().filter(|event| event.0 == kind && event.1 == actor).count()
    };
    for act in acts.filter(|act| *act != TOKEN) {
        assert_eq!(times(EVENTS[act]), 1, "act {act} in {events:?} {}", log(place));
    }
    for event in EVENTS {
        assert!(times(event) <= 1, "{event:?} is there twice: {events:?}");
    }
}

/// The event by which each act is known in the log, and whose it is.
const EVENTS: [(&str, &str); 4] =
    [("proposed", "app"), ("version-read", "sec"), ("objected", "sec"), ("objections-read", "app")];

/// Kind, actor and request id of each event.
pub fn events(place: &Place) -> Vec<(String, String, Option<String>)> {
    let database = place.path(".countersign/countersign.db");
    let database = Connection::open_with_flags(database, OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap();
    let mut rows = database.prepare("SELECT kind, actor, request_id FROM log ORDER BY place").unwrap();
    let rows = rows.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).unwrap();
    rows.collect::<Result<_, _>>().unwrap()
}

/// The code of a refusal.
pub fn code(ran: &Ran) -> String {
    match serde_json::from_str::<Value>(&ran.out) {
        Ok(json) => json["code"].as_str().unwrap_or_default().to_owned(),
        Err(_) => String::new(),
    }
}

/// Another place with the same in it.
pub fn copy_of(place: &Place) -> Place {
    let copy = Place::empty();
    copy_folder(&place.path("."), &copy.path("."));
    copy
}

/// Copies what is in a folder, with modes.
pub fn copy_folder(from: &Path, to: &Path) {
    let copied = Command::new("cp").arg("-a").arg(from.join(".")).arg(to).status().unwrap();
    assert!(copied.success());
}

/// That every log of the home proves itself.
#[track_caller]
pub fn assert_verifies(place: &Place) {
    let verified = place.run(&["--json", "verify"]);
    assert_eq!(verified.exit, 0, "{verified:?} {}", log(place));
}
