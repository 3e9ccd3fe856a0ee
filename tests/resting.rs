//! Snapshots, and teams that sleep: what is in memory is never anything else than what the log says, and of
//! what nobody works on nothing is in memory.

// clippy.toml allows it in tests, but takes only functions marked as tests for such.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use countersign::coordinator::{Clock, Coordinator, HandClock, RequestKey, TeamHandle};
use countersign::judge::{CelJudge, CelRulebook};
use countersign::protocol::artifact::{Artifact, ArtifactFacts, ArtifactKind};
use countersign::protocol::escalation::Escalate;
use countersign::protocol::name::{Actor, Digest, Seq, TeamName};
use countersign::protocol::review::{Approve, Confirm, Propose, Read};
use countersign::protocol::time::{Span, Time};
use countersign::protocol::{Adopt, Command, Team, charter};
use countersign::store::Writer;
use countersign::store::memory::MemoryStore;
use countersign::store::sqlite::SqliteStore;
use sha2::{Digest as _, Sha256};

/// One phase that finishes together: with its circle published, the team is quiet.
const CHARTER: &str = r#"
[team]
name = "atlas"
[members.app]
about = "The application"
[members.sec]
about = "Security"
[members.dana]
kind = "human"
about = "Convenes the team"
[[phases]]
name = "implement"
confirm = "together"
deliverables = [{ name = "parser", producer = "app" }]
reviews = [{ reviewer = "sec", of = "app", lens = "security" }]
"#;

fn digest(text: &str) -> Digest {
    Digest::of_bytes(Sha256::digest(text).into())
}

fn atlas() -> TeamName {
    "atlas".parse().unwrap()
}

struct World {
    store: MemoryStore,
    clock: Arc<HandClock>,
    coordinator: Coordinator,
}

impl World {
    async fn begin() -> Self {
        let (store, clock) = (MemoryStore::new(), Arc::new(HandClock::at(Time(1_000_000))));
        store.keep_snapshots(4);
        let coordinator = start(&store, &clock);
        let charter = charter::parse("charter.toml", CHARTER).unwrap();
        let adopt = Adopt { text: CHARTER.to_owned(), digest: digest(CHARTER), charter, rules: Vec::new() };
        coordinator.add_team(adopt).await.unwrap();
        Self { store, clock, coordinator }
    }

    fn team(&self) -> TeamHandle {
        self.coordinator.team(&atlas()).unwrap()
    }

    async fn give(&self, who: &str, command: Command) {
        self.team().submit(who.parse().unwrap(), command, None).await.unwrap();
    }

    /// From the proposal to the published circle.
    async fn finish(&self) {
        self.give("app", propose("one")).await;
        self.give("sec", Command::Read(Read { subject: "parser@1".parse().unwrap() })).await;
        let reference = self.team().peek(|team| team.review().proposals().next().unwrap().current_ref());
        let ran = countersign::protocol::review::Run {
            command: "cargo test".to_owned(),
            exit: Some(0),
            output: Some("ok".to_owned()),
        };
        let (checked, resolve) = (Vec::new(), Vec::new());
        let approve = Approve { reference: reference.parse().unwrap(), checked, ran: vec![ran], resolve };
        self.give("sec", Command::Approve(approve)).await;
        for who in ["app", "sec"] {
            let reference = self.team().peek(|team| {
                let revision = team.adopted().unwrap().revision;
                team.review().circle_ref(revision, team.review().circles().next().unwrap())
            });
            self.give(who, Command::Confirm(Confirm { reference })).await;
        }
        until(|| self.team().peek(Team::is_quiet)).await;
    }

    /// Persons are told of whatever is late, and reminded as often as they are; then no deadline is left, and only
    /// what is open keeps the team awake.
    async fn let_every_deadline_pass(&self) {
        for _ in 0..12 {
            self.clock.advance(Span::seconds(365 * 24 * 3600));
            self.team().read(|_, _| ()).await.unwrap();
        }
        assert_eq!(self.team().peek(|team| team.next_deadline(&CelJudge::shipped(), self.clock.now())), None);
        self.clock.advance(Span::seconds(3600));
        everything_due_is_done().await;
    }

    /// Every deadline that is left passes, and so does the time after which a team sleeps.
    async fn let_it_rest(&self) {
        self.clock.advance(Span::seconds(365 * 24 * 3600));
        // The deadline is asked about, and only then does the team know that there is none.
        self.team().read(|_, _| ()).await.unwrap();
        self.clock.advance(Span::seconds(3600));
        until(|| !self.coordinator.is_awake(&atlas())).await;
    }
}

fn start(store: &MemoryStore, clock: &Arc<HandClock>) -> Coordinator {
    let (writer, reader) = (Box::new(store.writer().unwrap()), Arc::new(store.reader()));
    Coordinator::start(writer, reader, Arc::new(CelRulebook::default()), clock.clone()).unwrap()
}

fn propose(text: &str) -> Command {
    let (kind, content) = (ArtifactKind::Bundle, digest(text));
    Command::Propose(Box::new(Propose {
        proposal: "parser".parse().unwrap(),
        artifact: Artifact { kind, digest: content.clone(), content, base: None },
        facts: ArtifactFacts::default(),
        summary: text.to_owned(),
        answers: Default::default(),
        after: 0,
    }))
}

/// Lets the other tasks go on until it is so; a test that waits for nothing is ended by its runner.
async fn until(mut so: impl FnMut() -> bool) {
    while !so() {
        tokio::task::yield_now().await;
    }
}

/// Lets whatever could be due be done, also what is done on threads for what blocks: a team that goes to sleep
/// keeps its snapshot there first.
async fn everything_due_is_done() {
    for _ in 0..50 {
        tokio::task::yield_now().await;
        tokio::task::spawn_blocking(|| ()).await.unwrap();
    }
}

fn whole(team: &TeamHandle) -> String {
    team.peek(|team| format!("{team:?}"))
}

#[tokio::test]
async fn a_finished_team_sleeps_and_whoever_asks_for_it_finds_it_as_it_was() {
    let world = World::begin().await;
    world.finish().await;
    let before = whole(&world.team());
    world.let_it_rest().await;
    assert_eq!(whole(&world.team()), before);
    assert!(world.coordinator.is_awake(&atlas()));
    let team = world.team();
    let (same, _) = team.read(|team, _| format!("{team:?}")).await.unwrap();
    assert_eq!(same, before);
    drop(team);
    world.let_it_rest().await;
}

#[tokio::test]
async fn what_is_counted_of_a_team_that_sleeps_is_told_and_wakes_nobody() {
    let world = World::begin().await;
    world.finish().await;
    let before = world.coordinator.counts();
    assert!(before[0].1.events > 0 && before[0].1.recoveries.iter().all(|(_, count)| *count == 0));
    world.let_it_rest().await;
    assert_eq!(world.coordinator.counts(), before);
    assert!(!world.coordinator.is_awake(&atlas()));
}

#[tokio::test]
async fn a_team_with_open_work_or_a_question_to_a_person_never_sleeps() {
    let world = World::begin().await;
    world.let_every_deadline_pass().await;
    assert!(world.coordinator.is_awake(&atlas()), "the parser is owed");

    let world = World::begin().await;
    world.finish().await;
    let escalate = Escalate { subject: "parser".to_owned(), text: "Was that right?".to_owned() };
    world.give("app", Command::Escalate(escalate)).await;
    world.let_every_deadline_pass().await;
    assert!(world.coordinator.is_awake(&atlas()), "a person is asked");
}

#[tokio::test]
async fn a_team_that_somebody_holds_does_not_sleep() {
    let world = World::begin().await;
    world.finish().await;
    let held = world.team();
    world.clock.advance(Span::seconds(365 * 24 * 3600));
    held.read(|_, _| ()).await.unwrap();
    for _ in 0..3 {
        world.clock.advance(Span::seconds(3600));
        everything_due_is_done().await;
        assert!(world.coordinator.is_awake(&atlas()));
    }
    drop(held);
    world.let_it_rest().await;
}

#[tokio::test]
async fn a_request_is_still_answered_as_before_after_a_sleep_and_members_are_still_known() {
    let world = World::begin().await;
    world.finish().await;
    let sec: Actor = "sec".parse().unwrap();
    let token = world.coordinator.issue_token(&atlas(), sec.member().unwrap(), false).await.unwrap();
    let key = || Some(RequestKey { id: "r1".to_owned(), digest: digest("r1") });
    let escalate =
        || Command::Escalate(Escalate { subject: "parser".to_owned(), text: "Was that right?".to_owned() });
    let first = world.team().submit(sec.clone(), escalate(), key()).await.unwrap();
    let answer = countersign::protocol::escalation::Answer {
        escalation: "e1".parse().unwrap(),
        decision: world
            .team()
            .peek(|team| team.escalations().open().next().unwrap().opened.cause.decisions()[0]),
        member: None,
        reviewer: None,
        reason: "It was".to_owned(),
    };
    world.give("dana", Command::AnswerEscalation(answer)).await;
    until(|| world.team().peek(Team::is_quiet)).await;
    world.let_it_rest().await;
    let again = world.team().submit(sec, escalate(), key()).await.unwrap();
    assert_eq!(again.answer, first.answer, "one effect, and one answer");
    world.let_it_rest().await;
    assert_eq!(world.coordinator.authenticate(&token).unwrap().1.as_str(), "sec");
}

/// Changes a snapshot, and seals it anew: what is wrong is then told by something else.
fn reseal(snapshot: &mut Vec<u8>, from: &str, to: &str) {
    let sealed = snapshot.len() - 32;
    let text = String::from_utf8(snapshot[..sealed].to_vec()).unwrap();
    assert!(text.contains(from), "{from}");
    *snapshot = text.replacen(from, to, 1).into_bytes();
    let seal = Sha256::digest(&*snapshot);
    snapshot.extend(seal);
}

#[tokio::test]
async fn a_snapshot_of_another_chain_or_another_core_is_ignored_and_replaced() {
    type Change = fn(&mut Vec<u8>);
    let changes: [(&str, Change); 4] = [
        ("another core", |snapshot| reseal(snapshot, Team::CORE, "0123456789abcdef")),
        ("another chain", |snapshot| {
            let text = String::from_utf8_lossy(snapshot).into_owned();
            let at = text.find("\"chain\":\"").unwrap() + 9;
            reseal(snapshot, &text[at..at + 64], &"0".repeat(64));
        }),
        ("a row that isn't there", |snapshot| {
            let text = String::from_utf8_lossy(snapshot).into_owned();
            let at = text.find("\"seq\":").unwrap();
            let end = at + text[at..].find(',').unwrap();
            reseal(snapshot, &text[at..end], "\"seq\":999");
        }),
        ("another state", |snapshot| reseal(snapshot, "\"rounds\":0", "\"rounds\":\"none\"")),
    ];
    for (what, change) in changes {
        let world = World::begin().await;
        world.finish().await;
        let before = whole(&world.team());
        let Ended { store, clock } = end(world).await;
        assert!(store.change_snapshot(&atlas(), change), "{what}");
        let mut damaged = Vec::new();
        store.change_snapshot(&atlas(), |kept| damaged = kept.clone());
        let coordinator = start(&store, &clock);
        assert_eq!(whole(&coordinator.team(&atlas()).unwrap()), before, "{what}");
        coordinator.shutdown().await;
        store.change_snapshot(&atlas(), |kept| assert_ne!(*kept, damaged, "{what}: it is replaced"));
    }
}

struct Ended {
    store: MemoryStore,
    clock: Arc<HandClock>,
}

async fn end(world: World) -> Ended {
    let World { store, clock, coordinator } = world;
    coordinator.shutdown().await;
    Ended { store, clock }
}

#[tokio::test]
async fn a_snapshot_that_says_something_else_than_its_log_ends_the_server_and_is_deleted() {
    let world = World::begin().await;
    world.finish().await;
    let before = whole(&world.team());
    let Ended { store, clock } = end(world).await;
    // Made by hand, seal and all: only what the log adds up to shows it.
    assert!(store.change_snapshot(&atlas(), |snapshot| reseal(snapshot, "\"rounds\":0", "\"rounds\":7")));
    let coordinator = start(&store, &clock);
    let told = coordinator.broken().await;
    assert!(told.contains("not what the log adds up to"), "{told}");
    coordinator.shutdown().await;
    assert!(!store.change_snapshot(&atlas(), |_| ()), "it is deleted");
    let coordinator = start(&store, &clock);
    assert_eq!(whole(&coordinator.team(&atlas()).unwrap()), before);
}

#[tokio::test]
async fn damage_before_a_snapshot_ends_the_server_and_the_next_start_refuses_the_log_by_its_place() {
    let world = World::begin().await;
    world.finish().await;
    let Ended { store, clock } = end(world).await;
    assert!(store.flip_bit(&atlas(), Seq(3)));
    let coordinator = start(&store, &clock);
    let told = coordinator.broken().await;
    assert!(told.contains("atlas's log is damaged at 3"), "{told}");
    coordinator.shutdown().await;
    let (writer, reader) = (Box::new(store.writer().unwrap()), Arc::new(store.reader()));
    let refused = Coordinator::start(writer, reader, Arc::new(CelRulebook::default()), clock);
    assert!(refused.is_err_and(|fault| fault.to_string().contains("damaged at 3")));
}

#[tokio::test]
async fn on_disk_a_snapshot_is_its_owners_alone_and_can_be_deleted() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let clock = Arc::new(HandClock::at(Time(1_000_000)));
    let begin = || {
        let (writer, reader) = SqliteStore::open(folder.path(), "a test").unwrap();
        let (writer, reader): (Box<dyn Writer>, _) = (Box::new(writer), Arc::new(reader));
        Coordinator::start(writer, reader, Arc::new(CelRulebook::default()), clock.clone()).unwrap()
    };
    let coordinator = begin();
    let charter = charter::parse("charter.toml", CHARTER).unwrap();
    let adopt = Adopt { text: CHARTER.to_owned(), digest: digest(CHARTER), charter, rules: Vec::new() };
    let team = coordinator.add_team(adopt).await.unwrap();
    team.submit("app".parse().unwrap(), propose("one"), None).await.unwrap();
    let sec: Actor = "sec".parse().unwrap();
    team.submit(sec.clone(), Command::Read(Read { subject: "parser@1".parse().unwrap() }), None)
        .await
        .unwrap();
    let file = folder.path().join("snapshots/atlas");
    let reference: String = team.peek(|team| team.review().proposals().next().unwrap().current_ref());
    for _ in 0..1_100 {
        let (checked, ran, resolve) = (Vec::new(), Vec::new(), Vec::new());
        let approve = Approve { reference: reference.parse().unwrap(), checked, ran, resolve };
        team.submit(sec.clone(), Command::Approve(approve), None).await.unwrap();
    }
    let before = whole(&team);
    drop(team);
    assert!(!file.exists(), "what is short is read again");
    coordinator.shutdown().await;
    let mode = |path: &std::path::Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&file), mode(file.parent().unwrap())), (0o600, 0o700));
    for damage in [None, Some(()), None] {
        if damage.is_some() {
            std::fs::remove_dir_all(file.parent().unwrap()).unwrap();
        }
        let coordinator = begin();
        assert_eq!(whole(&coordinator.team(&atlas()).unwrap()), before);
        coordinator.shutdown().await;
        assert!(file.exists(), "it is made anew where it is missing");
    }
    assert_eq!(clock.now(), Time(1_000_000));
}
