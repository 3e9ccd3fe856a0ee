//! The coordinator: no answer before its commit, one commit for many teams, and what becomes of
//! decisions when a commit stores nothing, or when nobody can say.

// clippy.toml allows it in tests, but takes only functions marked as tests for such.
#![allow(clippy::unwrap_used)]

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::sync::{Arc, Mutex};
use std::task::Poll;

use countersign::coordinator::{Coordinator, HandClock, Refusal, RequestKey, TeamHandle};
use countersign::judge::CelRulebook;
use countersign::protocol::artifact::{Artifact, ArtifactFacts, ArtifactKind};
use countersign::protocol::name::{Actor, Digest, MemberName, Seq, TeamName};
use countersign::protocol::review::{Propose, Read, Withdraw};
use countersign::protocol::rule::{Judge, Judgement, OwnRule, Rule, Rulebook, View};
use countersign::protocol::time::{Span, Time};
use countersign::protocol::{Adopt, Command, Team, charter};
use countersign::store::memory::{MemoryStore, NextCommit};
use countersign::store::{Batch, CommitFault, Credential, Fault, Head, Reader, Refused, Writer};

const CHARTER: &str = include_str!("plays/charters/solo.toml");

fn digest(text: &str) -> Digest {
    use sha2::{Digest as _, Sha256};
    Digest::of_bytes(Sha256::digest(text).into())
}

fn app() -> Actor {
    "app".parse().unwrap()
}

fn propose(text: &str, after: u32) -> Command {
    let artifact =
        Artifact { kind: ArtifactKind::Bundle, digest: digest(text), content: digest(text), base: None };
    Command::Propose(Box::new(Propose {
        proposal: "parser".parse().unwrap(),
        artifact,
        facts: ArtifactFacts::default(),
        summary: text.to_owned(),
        answers: Default::default(),
        after,
    }))
}

fn withdraw() -> Command {
    Command::Withdraw(Withdraw { proposal: "parser".parse().unwrap(), reason: "one more look".to_owned() })
}

fn key(id: &str) -> Option<RequestKey> {
    Some(RequestKey { id: id.to_owned(), digest: digest(id) })
}

fn start(writer: Box<dyn Writer>, store: &MemoryStore) -> Coordinator {
    let clock = Arc::new(HandClock::at(Time(1_000_000)));
    let (reader, judge) = (Arc::new(store.reader()), Arc::new(CelRulebook::default()));
    Coordinator::start(writer, reader, judge, clock).unwrap()
}

async fn team(coordinator: &Coordinator, name: &str) -> TeamHandle {
    let text = CHARTER.replace("atlas", name);
    let charter = charter::parse("charter.toml", &text).unwrap();
    let digest = digest(&text);
    coordinator.add_team(Adopt { text, digest, charter, rules: Vec::new() }).await.unwrap()
}

fn version(team: &TeamHandle) -> u32 {
    team.peek(|team| team.review().proposals().next().unwrap().current_number())
}

/// A writer whose commits wait until the test lets them through, and that counts them.
struct Gated<W> {
    inner: W,
    gate: Arc<Mutex<mpsc::Receiver<()>>>,
    commits: Arc<AtomicUsize>,
    batches: Arc<AtomicUsize>,
}

impl<W: Writer> Writer for Gated<W> {
    fn commit(&mut self, batches: &[Batch]) -> Result<Vec<Result<Head, Refused>>, CommitFault> {
        self.gate.lock().unwrap().recv().unwrap();
        self.commits.fetch_add(1, Ordering::SeqCst);
        self.batches.fetch_add(batches.len(), Ordering::SeqCst);
        self.inner.commit(batches)
    }

    fn add_team(&mut self, team: &TeamName, at: Time) -> Result<(), Fault> {
        self.inner.add_team(team, at)
    }

    fn add_credential(&mut self, credential: &Credential) -> Result<(), Fault> {
        self.inner.add_credential(credential)
    }

    fn replace_credentials(&mut self, credential: &Credential) -> Result<(), Fault> {
        self.inner.replace_credentials(credential)
    }

    fn revoke_credentials(&mut self, team: &TeamName, member: &MemberName, at: Time) -> Result<usize, Fault> {
        self.inner.revoke_credentials(team, member, at)
    }

    fn revoke_credential(&mut self, hash: &Digest, at: Time) -> Result<bool, Fault> {
        self.inner.revoke_credential(hash, at)
    }
}

struct Gate {
    open: mpsc::Sender<()>,
    commits: Arc<AtomicUsize>,
    batches: Arc<AtomicUsize>,
}

fn gated(store: &MemoryStore) -> (Box<dyn Writer>, Gate) {
    let (open, gate) = mpsc::channel();
    let (commits, batches) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let writer = Gated {
        inner: store.writer().unwrap(),
        gate: Arc::new(Mutex::new(gate)),
        commits: commits.clone(),
        batches: batches.clone(),
    };
    (Box::new(writer), Gate { open, commits, batches })
}

/// Begins it, and says whether it is still under way after everything else had its turn.
async fn waits<F: Future + Unpin>(future: &mut F) -> bool {
    for _ in 0..100 {
        let under_way =
            poll_fn(|context| Poll::Ready(Pin::new(&mut *future).poll(context).is_pending())).await;
        if !under_way {
            return false;
        }
        tokio::task::yield_now().await;
    }
    true
}

#[tokio::test]
async fn no_answer_and_no_look_leaves_before_its_commit() {
    let store = MemoryStore::new();
    let (writer, gate) = gated(&store);
    let coordinator = start(writer, &store);
    gate.open.send(()).unwrap();
    let team = team(&coordinator, "atlas").await;

    let mut proposed = Box::pin(team.submit(app(), propose("one", 0), None));
    assert!(waits(&mut proposed).await, "an accepted command waits for its commit");
    // The state is ahead of the log, and whoever looks at it waits until it is not.
    assert_eq!(version(&team), 1);
    let mut seen = Box::pin(team.read(|team, _| team.review().proposals().next().unwrap().current_number()));
    assert!(waits(&mut seen).await, "a look at what is not stored waits");
    // So does the no that was decided on it, and the answer that changes nothing.
    let mut refused = Box::pin(team.submit(app(), propose("two", 0), None));
    assert!(waits(&mut refused).await, "a rejection that reflects what is not stored waits");
    let read = Command::Read(Read { subject: "parser@1".parse().unwrap() });
    let mut reading = Box::pin(team.submit(app(), read, None));
    assert!(waits(&mut reading).await);

    gate.open.send(()).unwrap();
    gate.open.send(()).unwrap();
    let done = proposed.await.unwrap();
    assert_eq!(seen.await.unwrap(), (1, done.seq));
    assert!(
        matches!(refused.await, Err(Refusal::Rejected { rejection, .. }) if rejection.code() == "VERSION_CONFLICT")
    );
    reading.await.unwrap();
}

#[tokio::test]
async fn what_all_teams_have_queued_is_one_commit() {
    let store = MemoryStore::new();
    let (writer, gate) = gated(&store);
    let coordinator = start(writer, &store);
    let mut teams = Vec::new();
    for index in 0..20 {
        gate.open.send(()).unwrap();
        teams.push(team(&coordinator, &format!("team{index}q")).await);
    }
    let (commits, batches) = (gate.commits.load(Ordering::SeqCst), gate.batches.load(Ordering::SeqCst));
    let mut submitted: Vec<_> =
        teams.iter().map(|team| Box::pin(team.submit(app(), propose("one", 0), None))).collect();
    for proposed in &mut submitted {
        assert!(waits(proposed).await);
    }
    // The first commit may have begun with one of them; the second takes all the others.
    gate.open.send(()).unwrap();
    gate.open.send(()).unwrap();
    for proposed in submitted {
        proposed.await.unwrap();
    }
    assert_eq!(gate.batches.load(Ordering::SeqCst) - batches, 20);
    assert!(gate.commits.load(Ordering::SeqCst) - commits <= 2, "one commit for what was queued");
}

#[tokio::test]
async fn a_commit_that_stored_nothing_undoes_what_was_decided_on_it_and_the_next_one_works() {
    let store = MemoryStore::new();
    let (writer, gate) = gated(&store);
    let coordinator = start(writer, &store);
    gate.open.send(()).unwrap();
    let team = team(&coordinator, "atlas").await;
    store.fail_next(NextCommit::NotStored);
    let mut proposed = Box::pin(team.submit(app(), propose("one", 0), key("r1")));
    assert!(waits(&mut proposed).await);
    let mut withdrawn = Box::pin(team.submit(app(), withdraw(), None));
    assert!(waits(&mut withdrawn).await);
    let mut seen = Box::pin(team.read(|team, _| team.review().proposals().next().unwrap().current_number()));
    assert!(waits(&mut seen).await);

    gate.open.send(()).unwrap();
    gate.open.send(()).unwrap();
    assert!(matches!(proposed.await, Err(Refusal::NotStored { .. })));
    assert!(matches!(withdrawn.await, Err(Refusal::NotStored { .. })), "it was decided on what is void");
    assert_eq!(store.reader().head(team.name()).unwrap().seq.0, 2, "the log holds the charter and its phase");

    // Who looked meanwhile saw what is void, and looks again; nobody needs to ask for anything first.
    assert_eq!(seen.await.unwrap(), (0, Seq(2)));
    let look = |team: &Team, _| team.review().proposals().next().unwrap().current_number();
    assert_eq!(team.read(look).await.unwrap(), (0, Seq(2)), "reads go on");

    // The same request is as fresh as before, and the state is that of the log.
    for _ in 0..4 {
        gate.open.send(()).unwrap();
    }
    let done = team.submit(app(), propose("one", 0), key("r1")).await.unwrap();
    assert_eq!((done.seq.0, version(&team)), (3, 1));
    team.submit(app(), withdraw(), None).await.unwrap();
}

#[tokio::test]
async fn an_unknown_outcome_ends_the_coordinator_and_the_same_request_settles_it() {
    for (fault, stored) in [(NextCommit::UnknownAndStored, true), (NextCommit::UnknownAndNotStored, false)] {
        let store = MemoryStore::new();
        let coordinator = start(Box::new(store.writer().unwrap()), &store);
        let team = team(&coordinator, "atlas").await;
        store.fail_next(fault);
        let unknown = team.submit(app(), propose("one", 0), key("r1")).await;
        assert!(matches!(unknown, Err(Refusal::Unknown { .. })), "{unknown:?}");
        coordinator.broken().await;
        let after = team.submit(app(), withdraw(), None).await;
        assert!(
            matches!(after, Err(Refusal::Ended | Refusal::Unknown { .. })),
            "nothing is accepted any more"
        );

        // A new process looks at the log afresh.
        let again = start(Box::new(store.writer().unwrap()), &store);
        let team = again.team(team.name()).unwrap();
        assert_eq!(version(&team), u32::from(stored));
        let done = team.submit(app(), propose("one", 0), key("r1")).await.unwrap();
        assert_eq!(version(&team), 1, "one effect, whatever became of the first try");
        let once_more = team.submit(app(), propose("one", 0), key("r1")).await.unwrap();
        assert_eq!((done.answer, done.woke), (once_more.answer, once_more.woke), "and one answer");
    }
}

/// Judges as a program with a fault does.
struct Faulty;

impl Rulebook for Faulty {
    fn judge(&self, _: &[OwnRule]) -> Arc<dyn Judge> {
        Arc::new(Self)
    }
}

impl Judge for Faulty {
    fn rules(&self) -> &[Rule] {
        panic!("a fault of the program")
    }

    fn judge(&self, _: usize, _: &View) -> Judgement {
        Judgement::Passes
    }
}

#[tokio::test]
async fn a_fault_in_what_decides_for_a_team_ends_the_coordinator() {
    let store = MemoryStore::new();
    let first = start(Box::new(store.writer().unwrap()), &store);
    team(&first, "atlas").await;
    first.shutdown().await;
    let (clock, reader) = (Arc::new(HandClock::at(Time(1_000_000))), Arc::new(store.reader()));
    let writer = Box::new(store.writer().unwrap());
    let coordinator = Coordinator::start(writer, reader, Arc::new(Faulty), clock).unwrap();
    let team = coordinator.team(&"atlas".parse().unwrap()).unwrap();
    let refused = team.submit(app(), propose("one", 0), None).await;
    assert_eq!(refused, Err(Refusal::Ended));
    assert_eq!(coordinator.broken().await, "what decides for atlas broke");
}

#[tokio::test]
async fn a_repetition_that_comes_before_the_commit_gets_the_same_answer_after_it() {
    let store = MemoryStore::new();
    let (writer, gate) = gated(&store);
    let coordinator = start(writer, &store);
    gate.open.send(()).unwrap();
    let team = team(&coordinator, "atlas").await;
    let mut first = Box::pin(team.submit(app(), propose("one", 0), key("r1")));
    assert!(waits(&mut first).await);
    let mut second = Box::pin(team.submit(app(), propose("one", 0), key("r1")));
    assert!(waits(&mut second).await, "it waits for the same commit");
    gate.open.send(()).unwrap();
    gate.open.send(()).unwrap();
    assert_eq!(first.await.unwrap(), second.await.unwrap());
    assert_eq!(version(&team), 1);
    let other = RequestKey { id: "r1".to_owned(), digest: digest("another body") };
    let reused = team.submit(app(), withdraw(), Some(other)).await;
    assert!(
        matches!(reused, Err(Refusal::Rejected { rejection, .. }) if rejection.code() == "REQUEST_ID_REUSED")
    );
}

#[tokio::test]
async fn an_older_request_than_memory_holds_is_found_in_the_log() {
    let store = MemoryStore::new();
    let coordinator = start(Box::new(store.writer().unwrap()), &store);
    let team = team(&coordinator, "atlas").await;
    let first = team.submit(app(), propose("one", 0), key("r0")).await.unwrap();
    let sec: Actor = "sec".parse().unwrap();
    let read = Command::Read(Read { subject: "parser@1".parse().unwrap() });
    team.submit(sec.clone(), read, None).await.unwrap();
    let reference = team.peek(|team| team.review().proposals().next().unwrap().current_ref());
    for index in 1..1_200 {
        let approve = countersign::protocol::review::Approve {
            reference: reference.parse().unwrap(),
            checked: Vec::new(),
            ran: Vec::new(),
            resolve: Vec::new(),
        };
        team.submit(sec.clone(), Command::Approve(approve), key(&format!("r{index}"))).await.unwrap();
    }
    let again = team.submit(app(), propose("one", 0), key("r0")).await.unwrap();
    assert_eq!((again.answer, again.woke), (first.answer, first.woke));
}

#[tokio::test]
async fn a_wall_clock_that_was_set_back_does_not_stop_the_teams_time() {
    let store = MemoryStore::new();
    let coordinator = start(Box::new(store.writer().unwrap()), &store);
    let team = team(&coordinator, "atlas").await;
    team.submit(app(), propose("one", 0), None).await.unwrap();
    team.submit(app(), withdraw(), None).await.unwrap();
    let last = team.peek(Team::at);
    coordinator.shutdown().await;

    // An hour earlier, by the machine; the cooldown of two minutes ends two minutes later all the same.
    let clock = Arc::new(HandClock::at(Time(last.0 - 3_600_000_000)));
    let (writer, reader) = (Box::new(store.writer().unwrap()), Arc::new(store.reader()));
    let again = Coordinator::start(writer, reader, Arc::new(CelRulebook::default()), clock.clone()).unwrap();
    let team = again.team(team.name()).unwrap();
    let cooling = team.submit(app(), propose("two", 1), None).await;
    assert!(
        matches!(cooling, Err(Refusal::Rejected { rejection, .. }) if rejection.code() == "COOLDOWN_ACTIVE")
    );
    clock.advance(Span::seconds(120));
    team.submit(app(), propose("two", 1), None).await.unwrap();
    assert!(team.peek(Team::at) > last);
}

#[tokio::test]
async fn what_is_queued_is_stored_before_the_end() {
    let store = MemoryStore::new();
    let (writer, gate) = gated(&store);
    let coordinator = start(writer, &store);
    gate.open.send(()).unwrap();
    let team = team(&coordinator, "atlas").await;
    let mut proposed = Box::pin(team.submit(app(), propose("one", 0), None));
    assert!(waits(&mut proposed).await);
    let mut ending = Box::pin(coordinator.shutdown());
    assert!(waits(&mut ending).await, "it ends after the commit");
    gate.open.send(()).unwrap();
    ending.await;
    proposed.await.unwrap();
    assert_eq!(store.reader().head(team.name()).unwrap().seq.0, 3);
    assert!(matches!(team.submit(app(), withdraw(), None).await, Err(Refusal::Ended)));
}

#[tokio::test]
async fn a_token_speaks_for_one_member_until_it_is_ended() {
    let store = MemoryStore::new();
    let coordinator = start(Box::new(store.writer().unwrap()), &store);
    let team = team(&coordinator, "atlas").await;
    let sec: MemberName = "sec".parse().unwrap();
    let first = coordinator.issue_token(team.name(), &sec, false).await.unwrap();
    assert_eq!(coordinator.authenticate(&first).unwrap().1, sec);
    let second = coordinator.issue_token(team.name(), &sec, true).await.unwrap();
    assert!(coordinator.authenticate(&first).is_some(), "kept");
    let third = coordinator.issue_token(team.name(), &sec, false).await.unwrap();
    assert!(coordinator.authenticate(&first).is_none() && coordinator.authenticate(&second).is_none());
    coordinator.shutdown().await;

    let again = start(Box::new(store.writer().unwrap()), &store);
    assert_eq!(again.authenticate(&third).unwrap().1, sec, "over a restart");
    assert!(again.authenticate(&second).is_none());
    assert_eq!(again.revoke_tokens(team.name(), &sec).await.unwrap(), 1);
    assert!(again.authenticate(&third).is_none());
}
