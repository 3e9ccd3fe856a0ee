//! What a command takes on the disk, with its indexes and all that stands beside it.
//!
//! `cargo bench --bench disk [-- --quick]`
//!
//! Budget 8: at most 1.5 KB a command. The commands are those of a review: a version of three files, two
//! reviewers who are shown it and approve it with what they ran, and in every fifth version an objection
//! that is read and answered. Each has a request id, as the client makes one. The size is that of the
//! whole home once the server has ended.

mod figures;

use std::path::Path;
use std::sync::Arc;

use countersign::coordinator::{Coordinator, HandClock, RequestKey, TeamHandle};
use countersign::protocol::name::Actor;
use countersign::protocol::review::{Approve, Propose, ReadObjections};
use countersign::protocol::time::Span;
use countersign::protocol::{Command, Team};
use countersign::store::sqlite::SqliteStore;
use figures::at_most;
use figures::team::{self, Shape, approve, name, object, propose, read};

const BUDGET_KB: f64 = 1.5;
const TEAMS: usize = 8;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let commands = if figures::quick() { 4_000 } else { 40_000 };
    println!("KB on the disk a command; {commands} commands of {TEAMS} teams");
    let reviewing = measure(commands, Work::Review).await;
    let approving = measure(commands, Work::ApproveAgain).await;
    for (what, found) in [("a review's commands", &reviewing), ("approvals alone", &approving)] {
        println!(
            "{what:>20}  {:.2} KB a command, {:.2} events a command; of it {:.2} KB rows' texts",
            found.kb, found.events, found.texts_kb
        );
    }
    let verdict = at_most(reviewing.kb.max(approving.kb), BUDGET_KB);
    println!("budget 8: {:.2} KB, at most {BUDGET_KB} KB: {verdict}", reviewing.kb.max(approving.kb));
}

#[derive(Clone, Copy, PartialEq)]
enum Work {
    Review,
    ApproveAgain,
}

struct Found {
    kb: f64,
    events: f64,
    texts_kb: f64,
}

async fn measure(commands: usize, work: Work) -> Found {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let home = folder.path().join("home");
    let clock = Arc::new(HandClock::at("2026-01-01T09:00:00Z".parse().expect("it is a time")));
    let (writer, reader) = SqliteStore::open(&home, "a bench").expect("a fresh home opens");
    let judge = Arc::new(countersign::judge::CelRulebook::default());
    let (writer, reader) = (Box::new(writer), Arc::new(reader));
    let coordinator = Coordinator::start(writer, reader, judge, clock.clone()).expect("it starts");
    let shape = Shape { agents: 10, proposals: 20, together: false, escalations: 0 };
    let mut teams = Vec::new();
    for index in 0..TEAMS {
        let Command::Adopt(adopt) = team::adopt(&shape.charter(&format!("team{index}x"))) else {
            unreachable!("that is what adopt makes");
        };
        teams.push(coordinator.add_team(*adopt).await.expect("the charter is adopted"));
    }
    let mut asked = Asked { clock, count: 0 };
    for team in &teams {
        for proposal in 0..shape.proposals {
            asked.version(shape, team, proposal).await;
        }
    }
    'all: loop {
        for proposal in 0..shape.proposals {
            for team in &teams {
                match work {
                    Work::Review => asked.round(shape, team, proposal).await,
                    Work::ApproveAgain => {
                        let who = shape.reviewers(proposal)[0].clone();
                        asked.submit(team, who, |team| approve(team, proposal)).await;
                    }
                }
            }
            if asked.count >= commands {
                break 'all;
            }
        }
    }
    // The charters and the empty database are in it too.
    let given = asked.count as f64;
    let events: u64 = teams.iter().map(|team| team.peek(|team| team.seq().0)).sum();
    let texts: u64 = teams.iter().map(|team| texts(&coordinator, team)).sum();
    drop(teams);
    coordinator.shutdown().await;
    let kb = |bytes: u64| bytes as f64 / given / 1024.0;
    Found { kb: kb(size(&home)), events: events as f64 / given, texts_kb: kb(texts) }
}

struct Asked {
    clock: Arc<HandClock>,
    count: usize,
}

impl Asked {
    async fn submit(&mut self, team: &TeamHandle, who: Actor, command: impl FnOnce(&Team) -> Command) {
        self.clock.advance(Span(1_000));
        self.count += 1;
        let command = team.peek(command);
        let id = format!("0190a1b2-c3d4-7e5f-8a9b-{:012x}", self.count);
        let key = RequestKey { digest: team::digest(&id), id };
        team.submit(who, command, Some(key)).await.unwrap_or_else(|refusal| panic!("{refusal}"));
    }

    /// A version that both its reviewers are shown and approve.
    async fn version(&mut self, shape: Shape, team: &TeamHandle, proposal: usize) {
        self.submit(team, shape.producer(proposal), |team| propose(team, proposal)).await;
        for reviewer in shape.reviewers(proposal) {
            self.submit(team, reviewer.clone(), |_| read(proposal)).await;
            self.submit(team, reviewer, |team| approve(team, proposal)).await;
        }
    }

    /// The same, and where its turn comes an objection to it that is a mistake's end: answered by the next
    /// version, and resolved with the approval.
    async fn round(&mut self, shape: Shape, team: &TeamHandle, proposal: usize) {
        self.version(shape, team, proposal).await;
        let current = team
            .peek(|team| team.review().proposal(&name(proposal)).expect("it was offered").current_number());
        // The charter's limit on rounds ends this for each proposal.
        let rounds =
            team.peek(|team| team.review().proposal(&name(proposal)).map_or(0, |found| found.rounds));
        if !current.is_multiple_of(5) || rounds >= 2 {
            return;
        }
        let objector = shape.reviewers(proposal)[1].clone();
        self.submit(team, objector.clone(), |team| object(team, proposal)).await;
        let listed = Command::ReadObjections(ReadObjections { proposal: name(proposal) });
        self.submit(team, shape.producer(proposal), |_| listed).await;
        let raised = team.peek(|team| {
            let found = team.review().proposal(&name(proposal)).expect("it was offered");
            found.open_objections().map(|objection| objection.id).next().expect("it was raised")
        });
        let answered = |team: &Team| match propose(team, proposal) {
            Command::Propose(command) => {
                let answers = [(raised, "The reader checks it before it reads on".to_owned())].into();
                Command::Propose(Box::new(Propose { answers, ..*command }))
            }
            other => other,
        };
        self.submit(team, shape.producer(proposal), answered).await;
        self.submit(team, objector.clone(), |_| read(proposal)).await;
        let resolved = |team: &Team| match approve(team, proposal) {
            Command::Approve(command) => Command::Approve(Approve { resolve: vec![raised], ..command }),
            other => other,
        };
        self.submit(team, objector, resolved).await;
        let other = shape.reviewers(proposal)[0].clone();
        self.submit(team, other.clone(), |_| read(proposal)).await;
        self.submit(team, other, |team| approve(team, proposal)).await;
    }
}

/// The bytes of the texts of a team's rows: bodies, and answers with their requests.
fn texts(coordinator: &Coordinator, team: &TeamHandle) -> u64 {
    use countersign::protocol::name::Seq;
    let rows = coordinator.reader().rows(team.name(), Seq(1), usize::MAX).expect("the log can be read");
    let of = |row: &countersign::store::Row| {
        row.body.len() + row.request.as_ref().map_or(0, |request| request.id.len() + request.answer.len())
    };
    rows.iter().map(of).sum::<usize>() as u64
}

/// Everything in the folder.
fn size(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).expect("the folder is there");
    let entries = entries.map(|entry| entry.expect("an entry").path());
    entries
        .map(|path| if path.is_dir() { size(&path) } else { path.metadata().map_or(0, |meta| meta.len()) })
        .sum()
}
