//! The real coordinator over a real store, as a process that may die and come back.

use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use countersign::coordinator::{
    AtOnce, Clock, Coordinator, Done, HandClock, Refusal, RequestKey, TeamHandle,
};
use countersign::home::Home;
use countersign::judge::CelRulebook;
use countersign::protocol::name::{Actor, Digest, MemberName, Seq, TeamName};
use countersign::protocol::time::{Span, Time};
use countersign::protocol::{Adopt, Command, Effect, Team};
use countersign::store::memory::MemoryStore;
use countersign::store::sqlite::SqliteStore;
use countersign::store::{Reader, Row, Writer};
use sha2::{Digest as _, Sha256};
use tokio::runtime::Runtime;

use super::faults::{Doubtful, Mishap, Plan, Unreliable};
use super::oracle::Broken;
use super::step::Comeback;

/// How often a server that has something to do is asked whether it is done.
const SETTLE_MAX: usize = 20_000;

/// How long a store may take to close.
const CLOSE_MAX: Duration = Duration::from_secs(60);

/// How many rows are read at a time.
const ROWS: usize = 4096;

/// Where a server keeps its logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    InMemory,
    OnDisk,
}

enum Place {
    Memory(MemoryStore),
    Disk(tempfile::TempDir, Home),
}

/// What one who asked got.
#[derive(Clone, Debug)]
pub enum Reply {
    Answered(Result<Done, Refusal>),
    Lost,
}

/// A command with the id under which it is asked for, and asked for again.
#[derive(Clone, Debug)]
pub struct Asking {
    pub who: Actor,
    pub command: Command,
    pub key: RequestKey,
}

impl Asking {
    pub fn new(who: Actor, command: Command, id: String) -> Self {
        let digest = Digest::of_bytes(Sha256::digest(format!("{command:?}")).into());
        Self { who, command, key: RequestKey { id, digest } }
    }
}

/// A server that runs.
struct Running {
    runtime: Runtime,
    coordinator: Coordinator,
    team: TeamHandle,
    ended: Receiver<()>,
}

/// The server of a run, and what outlives it.
pub struct Server {
    running: Option<Running>,
    place: Place,
    clock: Arc<HandClock>,
    /// When it last ran; on disk the home's own file says it.
    alive: Option<Time>,
    pub plan: Arc<Plan>,
    pub notifier: Arc<Unreliable>,
    name: TeamName,
}

impl Server {
    /// A server with a team whose first charter is adopted.
    pub fn begin(kept: Kept, now: Time, adopt: Adopt) -> Result<Self, Broken> {
        let place = match kept {
            Kept::InMemory => Place::Memory(MemoryStore::new()),
            Kept::OnDisk => {
                let folder = tempfile::tempdir().map_err(|error| broken("disk", &error))?;
                let home =
                    Home::create(folder.path().join("home")).map_err(|fault| broken("disk", &fault))?;
                Place::Disk(folder, home)
            }
        };
        let mut server = Self {
            running: None,
            place,
            clock: Arc::new(HandClock::at(now)),
            alive: None,
            plan: Arc::default(),
            notifier: Arc::default(),
            name: adopt.charter.team.clone(),
        };
        let (runtime, coordinator, ended) = server.open()?;
        let team = runtime.block_on(coordinator.add_team(adopt)).map_err(|error| broken("G1", &error))?;
        server.running = Some(Running { runtime, coordinator, team, ended });
        Ok(server)
    }

    fn open(&self) -> Result<(Runtime, Coordinator, Receiver<()>), Broken> {
        // The rules are read once: a server that comes back has the same.
        static RULEBOOK: LazyLock<Arc<CelRulebook>> = LazyLock::new(Arc::default);
        let (inner, reader): (Box<dyn Writer>, Arc<dyn Reader>) = match &self.place {
            Place::Memory(store) => {
                let writer = store.writer().map_err(|fault| broken("G11", &fault))?;
                (Box::new(writer), Arc::new(store.reader()))
            }
            Place::Disk(_, home) => {
                let opened = SqliteStore::open(home.path(), "the simulation");
                let (writer, reader) = opened.map_err(|fault| broken("G11", &fault))?;
                (Box::new(writer), Arc::new(reader))
            }
        };
        let (tell, ended) = mpsc::channel();
        let writer = Box::new(Doubtful { inner, plan: self.plan.clone(), ended: tell });
        self.notifier.forget();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| broken("disk", &error))?;
        let coordinator = runtime.block_on(async {
            let (clock, notifier) = (self.clock.clone(), self.notifier.clone());
            Coordinator::start_acting(writer, reader, RULEBOOK.clone(), clock, notifier, Arc::new(AtOnce))
        });
        let coordinator = coordinator.map_err(|fault| broken("G10", &fault))?;
        Ok((runtime, coordinator, ended))
    }

    fn running(&self) -> &Running {
        self.running.as_ref().expect("a server runs between two steps")
    }

    /// Ends the server, and begins another one, with a clock that perhaps stands elsewhere.
    pub fn restart(&mut self, comeback: Comeback) -> Result<(), Broken> {
        let ran_until = self.clock.now();
        match &self.place {
            Place::Memory(_) => self.alive = Some(ran_until),
            Place::Disk(_, home) => home.write_alive(ran_until).map_err(|fault| broken("disk", &fault))?,
        }
        let Running { runtime, coordinator, team, ended } =
            self.running.take().expect("a server runs between two steps");
        drop(team);
        if comeback.in_order {
            runtime.block_on(coordinator.shutdown());
        } else {
            drop(coordinator);
        }
        drop(runtime);
        ended.recv_timeout(CLOSE_MAX).map_err(|error| broken("store", &error))?;
        self.plan.take_broke();
        let alive = match &self.place {
            Place::Memory(_) => self.alive,
            Place::Disk(_, home) => home.read_alive(),
        };
        let begins = Time(ran_until.0 + comeback.jump * 1_000_000);
        // As the machine's clock tells it: what is still to come was told by a clock that was wrong.
        let from = alive.filter(|at| *at <= begins).unwrap_or_default();
        self.clock = Arc::new(HandClock::at(from));
        self.clock.pause(begins - from);
        let (runtime, coordinator, ended) = self.open()?;
        let team = coordinator.team(&self.name).ok_or_else(|| broken("G10", &"the team is gone"))?;
        self.running = Some(Running { runtime, coordinator, team, ended });
        Ok(())
    }

    /// Time passes; in a pause no server runs that could do anything.
    pub fn pass(&self, span: Span, pause: bool) {
        if pause { self.clock.pause(span) } else { self.clock.advance(span) }
    }

    /// The team's time.
    pub fn now(&self) -> Result<Time, Broken> {
        let running = self.running();
        let seen = running.runtime.block_on(running.team.read(|_, now| now));
        seen.map(|(now, _)| now).map_err(|refusal| broken("G7", &refusal))
    }

    /// Has all that decided, in their order, with nobody answered before the last is queued: what they
    /// leave is one commit.
    pub fn ask(&self, asking: Vec<Asking>, mishap: Mishap) -> Vec<Reply> {
        let Running { runtime, coordinator, team, .. } = self.running();
        let (together, lost) = (asking.len() > 1, mishap == Mishap::LostReply);
        self.plan.next(mishap);
        let replies = runtime.block_on(async {
            let gate = together.then(|| {
                self.plan.shut();
                let (coordinator, team) = (coordinator.clone(), self.name.clone());
                let nobody: MemberName = "nobody".parse().expect("it is a name");
                tokio::spawn(async move { drop(coordinator.revoke_tokens(&team, &nobody).await) })
            });
            // The gate stands in the queue before anything else does.
            tokio::task::yield_now().await;
            let mut asked = Vec::new();
            for Asking { who, command, key } in asking {
                let team = team.clone();
                asked.push(tokio::spawn(async move { team.submit(who, command, Some(key)).await }));
            }
            if together || lost {
                // All tasks run on this thread: after as many turns each has been decided.
                for _ in 0..TURNS {
                    tokio::task::yield_now().await;
                }
            }
            self.plan.open();
            if let Some(gate) = gate {
                drop(gate.await);
            }
            let mut replies = Vec::new();
            for reply in asked {
                if lost {
                    reply.abort();
                }
                replies.push(reply.await.map_or(Reply::Lost, Reply::Answered));
            }
            replies
        });
        self.plan.clear();
        if matches!(mishap, Mishap::Died { .. }) {
            replies.iter().map(|_| Reply::Lost).collect()
        } else {
            replies
        }
    }

    /// Waits until everything that is owed to the world was tried, and what came of it is stored. Says
    /// whether the server still runs.
    pub fn settle(&self) -> Result<bool, Broken> {
        let Running { runtime, coordinator, team, .. } = self.running();
        runtime.block_on(async {
            for _ in 0..SETTLE_MAX {
                let looked = tokio::select! {
                    biased;
                    _ = coordinator.broken() => return Ok(false),
                    looked = team.read(|team, _| self.waits(team)) => looked,
                };
                match looked {
                    Ok((false, _)) => return Ok(true),
                    Ok((true, _)) => tokio::task::yield_now().await,
                    Err(refusal) => return Err(broken("G7", &refusal)),
                }
            }
            let owed = team.peek(Team::effects);
            let (failing, now) = (team.failing(), self.clock.now());
            let what = format!("the server never rests: at {now} it owes {owed:?}, and {failing:?} failed");
            Err(broken("G8", &what))
        })
    }

    /// Whether something is owed to the world that isn't known to wait for its next time.
    fn waits(&self, team: &Team) -> bool {
        let (failing, now) = (self.running().team.failing(), self.clock.now());
        team.effects().iter().any(|effect| match effect {
            Effect::Publish { .. } | Effect::PutBack { .. } => true,
            Effect::Notify { escalation, channel, .. } => {
                let known = failing.get(&(*escalation, channel.clone()));
                known.is_none_or(|failing| failing.next_at <= now)
            }
        })
    }

    /// What is stored from that place on.
    pub fn rows(&self, from: Seq) -> Result<Vec<Row>, Broken> {
        let reader = self.running().coordinator.reader();
        let mut rows: Vec<Row> = Vec::new();
        loop {
            let next = Seq(from.0 + rows.len() as u64);
            let read = reader.rows(&self.name, next, ROWS).map_err(|fault| broken("G11", &fault))?;
            let last = read.len() < ROWS;
            rows.extend(read);
            if last {
                return Ok(rows);
            }
        }
    }

    /// How far the log is.
    pub fn head(&self) -> Result<Seq, Broken> {
        let head = self.running().coordinator.reader().head(&self.name);
        head.map(|head| head.seq).map_err(|fault| broken("G11", &fault))
    }

    /// How far the log is; proved from its first row.
    pub fn verified(&self) -> Result<Seq, Broken> {
        let head = self.running().coordinator.reader().verify(&self.name);
        head.map(|head| head.seq).map_err(|fault| broken("G11", &fault))
    }

    /// What the server takes the log for.
    pub fn peek<T>(&self, look: impl FnOnce(&Team) -> T) -> T {
        self.running().team.peek(look)
    }
}

/// Turns of the runtime's one thread, each of which lets every task go on.
const TURNS: usize = 256;

fn broken(guarantee: &'static str, what: &dyn std::fmt::Display) -> Broken {
    Broken { guarantee, what: what.to_string() }
}
