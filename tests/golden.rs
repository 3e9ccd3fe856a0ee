//! Golden logs: logs as each released version stored them. Every build proves them, replays them to the
//! state that they held, and serves them.
//!
//! `golden/RELEASE/NAME.jsonl` has a row of the log a line, with its link; `NAME.state` what it comes to;
//! `golden/heads` where each ends. None of them ever changes: a log that a server stored can't be rewritten
//! either. `UPDATE=1` adds what [`PLAYS`] names and isn't there yet, and writes over nothing.

// clippy.toml allows it in tests, but takes only functions marked as tests for such.
#![allow(clippy::unwrap_used)]

mod support;

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use countersign::coordinator::{Coordinator, HandClock};
use countersign::judge::{CelJudge, CelRulebook};
use countersign::protocol::delivery::Woken;
use countersign::protocol::escalation::{
    Cause, Decision, Escalated, EscalationClosed, EscalationSent, MovedRef, RefPutBack,
};
use countersign::protocol::name::{Actor, Digest, MemberName, Seq, TeamName};
use countersign::protocol::recovery::{Patch, RecoveryFired};
use countersign::protocol::review::{
    CircleCompleted, CirclePublished, CircleReopened, PublishedMerge, PublishedRef, Run,
};
use countersign::protocol::time::Time;
use countersign::protocol::{Event, Team};
use countersign::store::chain::{Link, Tail};
use countersign::store::memory::MemoryStore;
use countersign::store::sqlite::SqliteStore;
use countersign::store::{Batch, Reader, Request, Row, Writer};
use serde_json::{Value, json};
use support::coordinated::{Coordinated, objections, standing};
use support::play::{play, tests_folder};

/// The release whose logs are added now.
const RELEASE: &str = "0.1";

/// The plays whose logs are kept; together they hold an event of every kind, but for [`BY_HAND`].
const PLAYS: &[&str] = &[
    "adoption/limits-lowered",
    "checks/none-of-them-is-a-pass",
    "circle/everything-that-blocks",
    "escalation/asked-by-a-member",
    "escalation/excused",
    "escalation/replaced",
    "listen/half-a-deadline",
    "listen/owed-again",
    "phases/closed-with-work-open",
    "phases/dropped",
    "requests/of-every-kind",
    "room/a-ring-of-mentions",
    "room/claims",
    "rules/at-propose",
    "rules/call-outs",
    "time/away",
    "time/stall",
    "target/two-that-do-not-merge",
];

/// Events that no play has, because only a disk, a network or a log from before a rule brings them: they
/// follow the log of this play, as far as its circle's completion.
const BY_HAND: (&str, &str) = ("by-hand", "escalation/asked-by-a-member");

/// A wake that was recorded and that nobody took follows the log of this play.
const WAKE_BY_HAND: (&str, &str) = ("wake-by-hand", "listen/owed-again");

/// The same of refs that moved, and of publishing to a repository.
const MOVED: &str = "by-hand-moved-refs";

/// One golden log.
struct Golden {
    team: TeamName,
    rows: Vec<(Row, Link)>,
}

fn folder() -> PathBuf {
    tests_folder().join("golden")
}

/// `RELEASE/NAME` of every log that is there.
fn names() -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for release in fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path()) {
        if !release.is_dir() {
            continue;
        }
        for file in fs::read_dir(&release).unwrap().map(|entry| entry.unwrap().path()) {
            if file.extension().is_some_and(|end| end == "jsonl") {
                let (release, name) = (release.file_name().unwrap(), file.file_stem().unwrap());
                names.insert(format!("{}/{}", release.to_str().unwrap(), name.to_str().unwrap()));
            }
        }
    }
    assert!(!names.is_empty(), "the golden logs are gone");
    names
}

/// A row as a line: what the log holds, with nothing read and written anew but the JSON around it.
fn line(team: &TeamName, row: &Row, link: &Link) -> String {
    let request = row.request.as_ref().map(
        |request| json!({ "id": request.id, "digest": request.digest.to_string(), "answer": request.answer }),
    );
    json!({
        "team": team.as_str(),
        "seq": row.seq.0,
        "at": row.at.0,
        "actor": row.actor.to_string(),
        "kind": row.kind,
        "schema": row.schema,
        "request": request,
        "chain": link.digest().to_string(),
        "body": row.body,
    })
    .to_string()
}

fn read_line(text: &str) -> (TeamName, Row, Link) {
    let json: Value = serde_json::from_str(text).unwrap();
    let text = |name: &str| json[name].as_str().unwrap().to_owned();
    let request = json["request"].as_object().map(|request| Request {
        id: request["id"].as_str().unwrap().to_owned(),
        digest: request["digest"].as_str().unwrap().parse().unwrap(),
        answer: request["answer"].as_str().unwrap().to_owned(),
    });
    let row = Row {
        seq: Seq(json["seq"].as_u64().unwrap()),
        at: Time(json["at"].as_i64().unwrap()),
        actor: text("actor").parse().unwrap(),
        kind: text("kind").into(),
        schema: u32::try_from(json["schema"].as_u64().unwrap()).unwrap(),
        body: text("body"),
        request,
    };
    let chain = text("chain");
    let byte = |at: usize| u8::from_str_radix(&chain[2 * at..2 * at + 2], 16).unwrap();
    let link: [u8; 32] = std::array::from_fn(byte);
    (text("team").parse().unwrap(), row, Link::from(link))
}

fn read(name: &str) -> Golden {
    let text = fs::read_to_string(folder().join(format!("{name}.jsonl"))).unwrap();
    let lines: Vec<_> = text.lines().map(read_line).collect();
    let team = lines[0].0.clone();
    Golden { team, rows: lines.into_iter().map(|(_, row, link)| (row, link)).collect() }
}

/// Every row proved by the chain, computed anew from what it holds.
fn prove(golden: &Golden) -> Tail {
    let proved = golden
        .rows
        .iter()
        .try_fold(Tail::empty(&golden.team), |tail, (row, link)| tail.prove(&golden.team, row, link));
    proved.unwrap_or_else(|fault| panic!("{fault}"))
}

/// The state that a log comes to: the fold of its events.
fn folded(rows: impl IntoIterator<Item = Row>) -> Team {
    let mut team = Team::new();
    for row in rows {
        let event = Event::decode(&row.kind, row.schema, &row.body).unwrap_or_else(|why| panic!("{why}"));
        team.apply(row.seq, row.at, &event);
    }
    team
}

/// What can be asked of a state, but for what rules say: these change with their files.
fn told(team: &Team) -> String {
    let now = team.at();
    let seen = standing(team, &CelJudge::shipped(), now);
    let mut out = format!("{} events, the last at {now}\n", team.seq().0);
    let adopted = team.adopted().unwrap();
    writeln!(out, "charter {} {}", adopted.revision, adopted.digest).unwrap();
    for phase in &adopted.charter.phases {
        writeln!(out, "phase {} {:?}", phase.name, team.review().phase_state(&phase.name)).unwrap();
    }
    for (_, reference, state, confirmed) in &seen.circles {
        writeln!(out, "circle {reference} {state}, confirmed by {}", confirmed.join(", ")).unwrap();
    }
    for (name, reference, state, approvals, open) in &seen.proposals {
        let (approvals, open) = (approvals.join(", "), open.join(", "));
        writeln!(out, "proposal {name} {reference} {state}, approvals {approvals}, open {open}").unwrap();
    }
    for proposal in team.review().proposals() {
        for version in (1..=proposal.current_number()).filter_map(|number| proposal.version(number)) {
            let approved = adopted.charter.members.keys().filter(|member| version.approved_by(member));
            let approved: Vec<&str> = approved.map(MemberName::as_str).collect();
            let reference = version.reference(&proposal.name);
            writeln!(out, "version {reference} approved by {}", approved.join(", ")).unwrap();
        }
        for objection in objections(team, &proposal.name) {
            writeln!(out, "{objection}").unwrap();
        }
    }
    let open: BTreeSet<String> = team.escalations().open().map(|open| open.opened.id.to_string()).collect();
    for escalation in team.escalations().all() {
        let opened = &escalation.opened;
        let state = if open.contains(&opened.id.to_string()) { "open" } else { "closed" };
        let reminders = escalation.reminders();
        writeln!(
            out,
            "escalation {} {} {} {state}, {reminders} reminders",
            opened.id, opened.cause, opened.subject
        )
        .unwrap();
    }
    for (patch, count) in team.recoveries().counters().filter(|(_, count)| *count > 0) {
        writeln!(out, "recovery {} {count}", patch.as_str()).unwrap();
    }
    out
}

/// The log of a play as it is stored today.
fn played(name: &str) -> Golden {
    let text = fs::read_to_string(tests_folder().join(format!("plays/{name}.play"))).unwrap();
    let kept: RefCell<Option<MemoryStore>> = RefCell::default();
    play(&text, &|charter: &str| {
        let stage = Coordinated::with_charter(charter);
        *kept.borrow_mut() = Some(stage.store());
        stage
    });
    let reader = kept.into_inner().unwrap().reader();
    let team = reader.teams().unwrap().remove(0);
    linked(team.clone(), reader.rows(&team, Seq(1), usize::MAX).unwrap())
}

fn linked(team: TeamName, rows: Vec<Row>) -> Golden {
    let mut tail = Tail::empty(&team);
    let link = |row: Row| {
        tail = tail.follow(&team, &row).unwrap();
        (row, tail.link)
    };
    let rows = rows.into_iter().map(link).collect();
    Golden { team, rows }
}

/// A log as far as its circle's completion.
fn completed() -> (TeamName, Vec<Row>, CircleCompleted) {
    let Golden { team, rows } = played(BY_HAND.1);
    let mut rows: Vec<Row> = rows.into_iter().map(|(row, _)| row).collect();
    let completed = rows.iter().position(|row| row.kind == "circle-completed").unwrap();
    rows.truncate(completed + 1);
    let Event::CircleCompleted(circle) = Event::decode("circle-completed", 1, &rows[completed].body).unwrap()
    else {
        unreachable!()
    };
    (team, rows, circle)
}

fn followed(team: TeamName, mut rows: Vec<Row>, more: impl IntoIterator<Item = (Actor, Event)>) -> Golden {
    let at = rows.last().unwrap().at;
    for (actor, event) in more {
        let seq = Seq(rows.len() as u64 + 1);
        let (kind, schema, body) = (event.kind().into(), event.schema(), event.encode());
        rows.push(Row { seq, at, actor, kind, schema, body, request: None });
    }
    linked(team, rows)
}

/// The events that no play has, after a log that is as it was before them.
fn by_hand() -> Golden {
    let (team, rows, circle) = completed();
    let more: [Event; 3] = [
        EscalationSent { id: "e1".parse().unwrap(), level: 0, channel: "ops".to_owned() }.into(),
        CircleReopened {
            circle: circle.circle.clone(),
            because: "it conflicts".to_owned(),
            owing: Vec::new(),
            check: None,
        }
        .into(),
        RecoveryFired {
            patch: Patch::BreakMutualWait,
            subject: circle.circle.to_string(),
            found: "nobody owes".to_owned(),
        }
        .into(),
    ];
    followed(team, rows, more.map(|event| (Actor::Server, event)))
}

/// A wake as no server records it any longer, after a log of one who listened.
fn wake_by_hand() -> Golden {
    let Golden { team, rows } = played(WAKE_BY_HAND.1);
    let mut rows: Vec<Row> = rows.into_iter().map(|(row, _)| row).collect();
    let taken = rows.iter().rposition(|row| row.kind == "delivered").unwrap();
    rows.truncate(taken + 1);
    let (member, wake) = ("arch".parse().unwrap(), "w1".parse().unwrap());
    let woken = Woken { member, wake, obligations: vec!["review:parser@1".to_owned()] };
    followed(team, rows, [(Actor::Server, woken.into())])
}

/// A target that moved twice without the server: it is put back, then taken as it is, and published to.
fn moved_refs() -> Golden {
    let (team, rows, circle) = completed();
    let id = |digit: &str| Some(digit.repeat(40).parse::<Digest>().unwrap());
    let main = "refs/heads/main";
    let told = |escalation: &str| -> Event {
        let moved = MovedRef { name: main.to_owned(), from: id("1"), to: id("2") };
        let text = "refs/heads/main moved without the server".to_owned();
        Escalated {
            id: escalation.parse().unwrap(),
            moved: Some(moved),
            ..Escalated::new(Cause::MovedRef, main, text)
        }
        .into()
    };
    let answered = |escalation: &str, decision| -> Event {
        let (by, reason) = (Some("dana".parse().unwrap()), "we looked".to_owned());
        EscalationClosed { id: escalation.parse().unwrap(), by, decision: Some(decision), reason }.into()
    };
    let dana = || Actor::Member("dana".parse().unwrap());
    let put_back = RefPutBack { escalation: "e2".parse().unwrap(), name: main.to_owned(), because: None };
    let merge =
        PublishedMerge { commit: id("4").unwrap(), version: "parser@1:333333333333".parse().unwrap() };
    let published = CirclePublished {
        circle: circle.circle,
        manifest: circle.manifest,
        refs: vec![PublishedRef {
            name: main.to_owned(),
            from: id("2"),
            to: id("4").unwrap(),
            merges: vec![merge],
        }],
        check: Some(Run { command: "make test".to_owned(), exit: Some(0), output: Some("ok\n".to_owned()) }),
    };
    followed(
        team,
        rows,
        [
            (Actor::Server, told("e2")),
            (dana(), answered("e2", Decision::PutBack)),
            (Actor::Server, put_back.into()),
            (Actor::Server, told("e3")),
            (dana(), answered("e3", Decision::AcceptMove)),
            (Actor::Server, published.into()),
        ],
    )
}

/// Writes a file that isn't there yet.
fn add(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let file = fs::OpenOptions::new().write(true).create_new(true).open(path);
    file.unwrap_or_else(|why| panic!("{}: {why}", path.display())).write_all(text.as_bytes()).unwrap();
}

fn heads() -> String {
    fs::read_to_string(folder().join("heads")).unwrap_or_default()
}

/// Where a log ends, as the list has it.
fn head_line(name: &str, tail: &Tail) -> String {
    format!("{name} {} {}\n", tail.seq, tail.link.digest())
}

#[test]
fn every_play_that_is_named_has_its_golden_log() {
    let sources = PLAYS.iter().copied().chain([BY_HAND.0, WAKE_BY_HAND.0, MOVED]);
    for source in sources {
        let name = format!("{RELEASE}/{}", source.replace('/', "-"));
        let path = folder().join(format!("{name}.jsonl"));
        if path.exists() {
            continue;
        }
        assert!(
            std::env::var_os("UPDATE").is_some(),
            "{} is missing; a new one is added by: UPDATE=1 cargo test --test golden",
            path.display()
        );
        let golden = match source {
            _ if source == BY_HAND.0 => by_hand(),
            MOVED => moved_refs(),
            play if play == WAKE_BY_HAND.0 => wake_by_hand(),
            play => played(play),
        };
        let lines: Vec<String> =
            golden.rows.iter().map(|(row, link)| line(&golden.team, row, link) + "\n").collect();
        add(&path, &lines.concat());
        let rows = golden.rows.iter().map(|(row, _)| row.clone());
        add(&path.with_extension("state"), &told(&folded(rows)));
        fs::write(folder().join("heads"), heads() + &head_line(&name, &prove(&golden))).unwrap();
    }
}

#[test]
fn each_golden_log_proves_itself_and_ends_where_it_always_did() {
    let mut found: Vec<String> = names().iter().map(|name| head_line(name, &prove(&read(name)))).collect();
    let heads = heads();
    let mut pinned: Vec<String> = heads.lines().map(|line| format!("{line}\n")).collect();
    found.sort();
    pinned.sort();
    assert_eq!(found, pinned, "a golden log was changed, taken away, or added without its head");
}

#[test]
fn each_golden_log_replays_to_the_state_that_it_held() {
    for name in names() {
        let golden = read(&name);
        let state = told(&folded(golden.rows.into_iter().map(|(row, _)| row)));
        let pinned = fs::read_to_string(folder().join(format!("{name}.state"))).unwrap();
        assert_eq!(state, pinned, "{name} comes to another state: stored logs do not change their meaning");
    }
}

#[test]
fn every_kind_of_event_occurs_in_a_golden_log() {
    let stored = names().into_iter().flat_map(|name| read(&name).rows);
    let found: BTreeSet<(String, u32)> = stored.map(|(row, _)| (row.kind.into_owned(), row.schema)).collect();
    for (kind, schema) in Event::KINDS {
        let found = found.contains(&((*kind).to_owned(), *schema));
        assert!(found, "no golden log holds {kind} of form {schema}: name a play that does");
    }
}

#[test]
fn each_golden_log_is_stored_read_and_served_as_it_was() {
    for name in names() {
        let golden = read(&name);
        let (team, rows): (_, Vec<Row>) =
            (golden.team.clone(), golden.rows.iter().map(|(row, _)| row.clone()).collect());
        let home = tempfile::tempdir().unwrap();
        let (mut writer, reader) = SqliteStore::open(home.path(), "a test").unwrap();
        writer.add_team(&team, rows[0].at).unwrap();
        let head =
            writer.commit(&[Batch { team: team.clone(), rows: rows.clone() }]).unwrap().remove(0).unwrap();
        assert_eq!(head, prove(&golden).head(), "{name}");
        assert_eq!(reader.rows(&team, Seq(1), usize::MAX).unwrap(), rows, "{name}");
        drop((writer, reader));

        let (writer, reader) = SqliteStore::open(home.path(), "a test").unwrap();
        assert_eq!(reader.verify(&team).unwrap(), head, "{name}");
        let (clock, judge) = (HandClock::at(rows.last().unwrap().at), CelRulebook::default());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let coordinator =
                Coordinator::start(Box::new(writer), Arc::new(reader), Arc::new(judge), Arc::new(clock));
            let coordinator = coordinator.unwrap();
            let served = coordinator.team(&team).unwrap().read(|team, _| team.seq()).await.unwrap().0;
            assert!(served.0 >= head.seq.0, "{name}: {served}");
            coordinator.shutdown().await;
        });
    }
}
