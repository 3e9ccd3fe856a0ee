//! Recovery patches: logs from before a rule make each one fire, once; in every other run they are silent.

// clippy.toml allows it in tests, but takes only functions marked as tests for such.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use countersign::coordinator::{Coordinator, HandClock, TeamHandle};
use countersign::judge::CelRulebook;
use countersign::protocol::artifact::{Artifact, ArtifactKind};
use countersign::protocol::delivery::{Delivered, WAKE_WITHIN, Woken};
use countersign::protocol::name::{Actor, Digest, Seq, TeamName};
use countersign::protocol::recovery::Patch;
use countersign::protocol::review::{
    Approved, CircleCompleted, CompletedEntry, CountedApproval, Objected, Proposed, VersionRead,
};
use countersign::protocol::time::{Span, Time};
use countersign::protocol::{CharterAdopted, Event, PhaseOpened, charter};
use countersign::store::memory::MemoryStore;
use countersign::store::{Batch, Row, Writer};

const AT: Time = Time(1_767_258_000_000_000);

fn charter_of(members: &str, phases: &str) -> String {
    format!("[team]\nname = \"atlas\"\n{members}\n[members.dana]\nkind = \"human\"\n{phases}")
}

const MEMBERS: &str = "[members.app]\n[members.sec]\n[members.arch]";

const PHASE: &str = r#"
[[phases]]
name = "implement"
confirm = "together"
deliverables = [{ name = "parser", producer = "app" }]
reviews = [
    { reviewer = "sec", of = "app", lens = "security" },
    { reviewer = "arch", of = "app", lens = "design" },
]
"#;

fn adopted(revision: u32, text: &str) -> Event {
    let charter = charter::parse("charter.toml", text).unwrap_or_else(|found| panic!("{found}"));
    CharterAdopted {
        revision,
        digest: digest("a"),
        reason: None,
        text: text.to_owned(),
        charter,
        rules: Vec::new(),
    }
    .into()
}

fn opened() -> Event {
    PhaseOpened { phase: "implement".parse().unwrap() }.into()
}

/// What every log here begins with, and what follows.
fn log<const N: usize>(phase: &str, more: [Event; N]) -> Vec<Event> {
    let begun = [adopted(1, &charter_of(MEMBERS, phase)), opened(), proposed(1)];
    begun.into_iter().chain(more).collect()
}

fn digest(digit: &str) -> Digest {
    digit.repeat(64).parse().unwrap()
}

fn proposed(version: u32) -> Event {
    let content = digest(&version.to_string());
    Proposed {
        proposal: "parser".parse().unwrap(),
        version,
        producer: "app".parse().unwrap(),
        artifact: Artifact { kind: ArtifactKind::Bundle, digest: content.clone(), content, base: None },
        summary: String::new(),
        answers: Default::default(),
        paths: Vec::new(),
        authors: Vec::new(),
        round: false,
        ad_hoc: None,
        files: Vec::new(),
        follows: Vec::new(),
    }
    .into()
}

fn read(by: &str, version: u32) -> Event {
    VersionRead { proposal: "parser".parse().unwrap(), version, by: by.parse().unwrap() }.into()
}

fn approved(by: &str, lens: &str, version: u32) -> Event {
    Approved {
        proposal: "parser".parse().unwrap(),
        version,
        by: by.parse().unwrap(),
        lenses: vec![lens.parse().unwrap()],
        checked: Vec::new(),
        ran: Vec::new(),
    }
    .into()
}

fn completed(held: &[(&str, u32, u32)]) -> Event {
    let entry = |(name, version, counted): &(&str, u32, u32)| CompletedEntry {
        proposal: name.parse().unwrap(),
        version: *version,
        digest: digest(&version.to_string()),
        approvals: vec![CountedApproval {
            by: "sec".parse().unwrap(),
            lens: "security".parse().unwrap(),
            version: *counted,
            overruled: false,
        }],
        target: None,
    };
    let entries = held.iter().map(entry).collect();
    CircleCompleted { circle: "implement".parse().unwrap(), manifest: digest("c"), entries }.into()
}

/// Opens a server's team over a log as it was stored.
async fn served(events: &[Event]) -> (Coordinator, TeamHandle, Arc<HandClock>) {
    let name: TeamName = "atlas".parse().unwrap();
    let store = MemoryStore::new();
    let mut writer = store.writer().unwrap();
    writer.add_team(&name, AT).unwrap();
    let row = |(seq, event): (u64, &Event)| Row {
        seq: Seq(seq),
        at: AT,
        actor: Actor::Server,
        kind: event.kind().into(),
        schema: event.schema(),
        body: event.encode(),
        request: None,
    };
    let rows = (1..).zip(events).map(row).collect();
    writer.commit(&[Batch { team: name.clone(), rows }]).unwrap()[0].as_ref().unwrap();
    let clock = Arc::new(HandClock::at(AT));
    let judge = Arc::new(CelRulebook::default());
    let coordinator =
        Coordinator::start(Box::new(writer), Arc::new(store.reader()), judge, clock.clone()).unwrap();
    let team = coordinator.team(&name).unwrap();
    (coordinator, team, clock)
}

/// What fired, which escalations are open, and how the circles stand.
async fn found(team: &TeamHandle) -> (Vec<(Patch, u64)>, Vec<String>, Vec<String>) {
    let look = |team: &countersign::protocol::Team, _: Time| {
        let fired = team.recoveries().counters().filter(|(_, count)| *count > 0).collect();
        let open =
            team.escalations().open().map(|open| format!("{} {}", open.opened.cause, open.opened.subject));
        let circles =
            team.review().circles().map(|circle| format!("{} {}", circle.name, circle.state.as_str()));
        (fired, open.collect(), circles.collect())
    };
    team.read(look).await.unwrap().0
}

async fn fires_once(events: &[Event], patch: Patch, escalation: &str, circle: &str) {
    let (coordinator, team, clock) = served(events).await;
    let expected = (vec![(patch, 1)], vec![escalation.to_owned()], vec![circle.to_owned()]);
    assert_eq!(found(&team).await, expected);
    // Asked again, also much later, it is the same hole.
    clock.advance(Span::seconds(60));
    assert_eq!(found(&team).await, expected);
    coordinator.shutdown().await;
}

#[tokio::test]
async fn a_completion_that_counted_an_older_version_is_void() {
    let log = log(
        PHASE,
        [read("sec", 1), approved("sec", "security", 1), proposed(2), completed(&[("parser", 2, 1)])],
    );
    fires_once(&log, Patch::DropStaleApproval, "recovery implement", "implement open").await;
}

#[tokio::test]
async fn a_circle_that_was_completed_without_a_deliverable_is_open_again() {
    let two = PHASE.replace(
        "[{ name = \"parser\", producer = \"app\" }]",
        "[{ name = \"parser\", producer = \"app\" }, { name = \"notes\", producer = \"app\" }]",
    );
    let log = log(&two, [completed(&[("parser", 1, 1)])]);
    fires_once(&log, Patch::ReopenUndelivered, "recovery implement", "implement open").await;
}

#[tokio::test]
async fn an_objection_whose_holder_left_unseen_goes_to_a_person() {
    let objected = Objected {
        id: "o1".parse().unwrap(),
        proposal: "parser".parse().unwrap(),
        version: 1,
        by: "sec".parse().unwrap(),
        lenses: vec!["security".parse().unwrap()],
        text: "overflows".to_owned(),
        at: Vec::new(),
        failing_test: None,
    };
    let without = PHASE.replace("    { reviewer = \"sec\", of = \"app\", lens = \"security\" },\n", "");
    let log = log(
        PHASE,
        [read("sec", 1), objected.into(), adopted(2, &charter_of("[members.app]\n[members.arch]", &without))],
    );
    fires_once(&log, Patch::RehomeOrphanObjection, "reviewer-gone o1", "implement open").await;
}

#[tokio::test]
async fn a_circle_in_which_nobody_owes_anything_goes_to_a_person() {
    // Its phase was taken out of the charter while it was open.
    let other = PHASE.replace("implement", "release").replace("parser", "notes");
    let log = log(PHASE, [adopted(2, &charter_of(MEMBERS, &other))]);
    fires_once(&log, Patch::BreakMutualWait, "recovery implement", "implement open").await;
}

#[tokio::test]
async fn a_wake_that_was_recorded_and_never_taken_is_sent_again() {
    let obligations = vec!["review:parser@1".to_owned()];
    let woken = Woken { member: "sec".parse().unwrap(), wake: "w1".parse().unwrap(), obligations };
    let events = log(PHASE, [woken.into()]);
    let (coordinator, team, clock) = served(&events).await;
    let due = |team: &countersign::protocol::Team, now| {
        let due = team.due(&countersign::judge::CelJudge::shipped(), now, &"sec".parse().unwrap());
        (due.wake.to_string(), due.fresh.into_iter().collect::<Vec<_>>())
    };
    let open = vec!["implement open".to_owned()];
    assert_eq!(found(&team).await, (Vec::new(), Vec::new(), open.clone()), "its time is not over");
    assert_eq!(team.read(due).await.unwrap().0, ("w1".to_owned(), Vec::new()), "it counts as shown");
    for _ in 0..2 {
        clock.advance(WAKE_WITHIN);
        let fired = (vec![(Patch::ResendLostWake, 1)], vec!["recovery sec w1".to_owned()], open.clone());
        assert_eq!(found(&team).await, fired);
        let fresh = vec!["review:parser@1".to_owned()];
        assert_eq!(team.read(due).await.unwrap().0, ("w1".to_owned(), fresh), "it is sent again");
    }
    coordinator.shutdown().await;
}

#[tokio::test]
async fn a_wake_that_was_recorded_and_taken_is_not_lost() {
    let (member, wake) = ("sec".parse().unwrap(), "w1".parse().unwrap());
    let obligations = vec!["review:parser@1".to_owned()];
    let woken: Woken = Woken { member, wake, obligations: obligations.clone() };
    let (member, earlier, watched) = (woken.member.clone(), Vec::new(), None);
    let taken = Delivered { member, wake, obligations, earlier, watched };
    let (coordinator, team, clock) = served(&log(PHASE, [woken.into(), taken.into()])).await;
    clock.advance(WAKE_WITHIN);
    assert_eq!(found(&team).await, (Vec::new(), Vec::new(), vec!["implement open".to_owned()]));
    coordinator.shutdown().await;
}

#[tokio::test]
async fn a_log_of_today_makes_none_of_them_fire() {
    let log = log(PHASE, [read("sec", 1), approved("sec", "security", 1)]);
    let (coordinator, team, clock) = served(&log).await;
    clock.advance(Span::seconds(60));
    assert_eq!(found(&team).await, (Vec::new(), Vec::new(), vec!["implement open".to_owned()]));
    coordinator.shutdown().await;
}
