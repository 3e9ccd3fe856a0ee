//! The coordinator: one task a team decides; one writer commits what all teams have queued in one
//! transaction; no answer leaves before its events are stored.
//!
//! ```text
//!   submit ──► team's task ──► decides in memory ──► writer's queue ──► one commit ──► answers
//!                   │                                     ▲
//!   read ──► Team (short lock), then waits until what it saw is stored
//! ```
//!
//! A team's task goes on deciding while its batches wait for the commit, on the state that they will
//! leave. If a commit is known to have stored nothing (a full disk), every batch that was decided on
//! top of it is refused and the team is read from its log again. If nobody can say whether a commit
//! stored anything, the outcome is answered as unknown and the process must end: only a fresh look at
//! the log, by the same request id, settles it.
//!
//! A team for which nothing is open, no deadline runs and nobody asks sleeps: its task ends, and of its state
//! nothing stays in memory. Whoever asks for it next finds it awake.

mod answered;
mod attempts;
pub mod clock;
mod counts;
mod hearing;
mod listening;
mod loading;
pub mod notifier;
mod outcome;
mod performing;
pub mod place;
pub mod presence;
pub mod publisher;
mod team;
pub mod token;
mod writer;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, RwLock};
use std::thread;

use tokio::sync::{oneshot, watch};

pub use attempts::{Attempt, Attempts};
pub use clock::{Clock, HandClock, SystemClock};
pub use counts::Counts;
pub use hearing::{Arming, Narrowed};
pub use listening::{Due, Listening, Said, Turned, Waking};
pub use notifier::{Failing, Notice, Notifier, Silent};
pub use outcome::{Done, Refusal, RequestKey};
pub use presence::{Presence, Wake, WakeOutcome};
pub use publisher::{AtOnce, Publication, Published, PublishedVersion, Publisher, Unpublishing, publication};
pub use team::TeamHandle;

use crate::protocol::charter::Charter;
use crate::protocol::name::{Actor, Digest, MemberName, TeamName};
use crate::protocol::rule::Rulebook;
use crate::protocol::time::Time;
use crate::protocol::{Adopt, Command};
use crate::store::{Credential, Fault, Reader, Writer};
use token::Token;
use writer::WriterHandle;

/// All teams of a home. Cheap to clone; all clones are one.
#[derive(Clone)]
pub struct Coordinator {
    inner: Arc<Inner>,
}

struct Inner {
    parts: Parts,
    teams: RwLock<BTreeMap<TeamName, Slot>>,
    /// Teams are woken one after the other, so that none gets two tasks.
    waking: Mutex<()>,
    /// Why the process must end, once a log doesn't prove itself or a team's task broke.
    broken: watch::Sender<Option<String>>,
    /// Live credentials by the hash of their token.
    credentials: RwLock<BTreeMap<Digest, Known>>,
}

/// What a live credential stands for.
#[derive(Clone)]
struct Known {
    team: TeamName,
    member: MemberName,
    /// The how manieth of a room page it is; none for all others.
    page: Option<u64>,
}

impl Known {
    /// With the number that it has where it is a page's.
    fn of(credential: Credential, number: u64) -> (Digest, Self) {
        let Credential { hash, team, member, of_page, .. } = credential;
        (hash, Self { team, member, page: of_page.then_some(number) })
    }

    fn is_of(&self, team: &TeamName, member: &MemberName) -> bool {
        (&self.team, &self.member) == (team, member)
    }
}

/// Room pages that one member is signed in on. One more ends the oldest.
pub const PAGE_TOKENS_MAX: usize = 16;

/// What every team's task works with.
#[derive(Clone)]
struct Parts {
    writer: WriterHandle,
    reader: Arc<dyn Reader>,
    rulebook: Arc<dyn Rulebook>,
    clock: Arc<dyn Clock>,
    notifier: Arc<dyn Notifier>,
    publisher: Arc<dyn Publisher>,
}

/// A team, as far as it is in memory.
enum Slot {
    Awake(TeamHandle),
    Asleep(Slept),
}

/// What stays in memory of a team that sleeps, and can't be read from its log.
#[derive(Default)]
struct Slept {
    /// Who listens, and when its members were last heard of; none before the team was ever awake.
    hearing: Option<Arc<hearing::Hearing>>,
    /// What they tried.
    attempts: Attempts,
    /// What was counted of it when it fell asleep.
    counts: Counts,
    /// Until when it knows in which time no server ran.
    gaps_told: Option<Time>,
}

/// Why a team can't be added.
#[derive(Debug, thiserror::Error)]
pub enum AddTeamError {
    /// The store refused.
    #[error(transparent)]
    Store(#[from] Fault),
    /// The team's first charter wasn't taken.
    #[error("the charter was not adopted: {0}")]
    Adopt(String),
}

impl Coordinator {
    /// Reads every team's log, each proved against its chain, and starts the writer. Nobody is notified, and no ref
    /// moves.
    ///
    /// Fails with the first log that does not prove itself.
    pub fn start(
        writer: Box<dyn Writer>,
        reader: Arc<dyn Reader>,
        rulebook: Arc<dyn Rulebook>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, Fault> {
        Self::start_acting(writer, reader, rulebook, clock, Arc::new(Silent), Arc::new(Unpublishing))
    }

    /// The same, with a way to tell persons what is before them, and one to publish commits.
    pub fn start_acting(
        writer: Box<dyn Writer>,
        reader: Arc<dyn Reader>,
        rulebook: Arc<dyn Rulebook>,
        clock: Arc<dyn Clock>,
        notifier: Arc<dyn Notifier>,
        publisher: Arc<dyn Publisher>,
    ) -> Result<Self, Fault> {
        let credentials = reader.credentials()?;
        let live = credentials.into_iter().filter(|credential| credential.revoked_at.is_none());
        let inner = Inner {
            parts: Parts {
                writer: WriterHandle::start(writer),
                reader,
                rulebook,
                clock,
                notifier,
                publisher,
            },
            teams: RwLock::default(),
            waking: Mutex::default(),
            broken: watch::Sender::new(None),
            // In the order in which they were issued.
            credentials: RwLock::new(live.zip(0..).map(|(one, number)| Known::of(one, number)).collect()),
        };
        let coordinator = Self { inner: Arc::new(inner) };
        let reader = coordinator.reader();
        let names = reader.teams()?;
        let loaded = loading::load_all(&*reader, &names)?;
        let mut unproved = Vec::new();
        for (name, loaded) in names.into_iter().zip(loaded) {
            unproved.extend(loaded.snapshot.map(|begun| (name.clone(), begun)));
            coordinator.open(name, loaded, Slept::default());
        }
        coordinator.prove(unproved);
        Ok(coordinator)
    }

    /// The team of that name; it is woken where it sleeps.
    pub fn team(&self, name: &TeamName) -> Option<TeamHandle> {
        match self.inner.teams.read().expect(UNPOISONED).get(name)? {
            Slot::Awake(handle) => return Some(handle.clone()),
            Slot::Asleep(_) => {}
        }
        self.wake(name)
    }

    /// Every team, by name; all are woken.
    pub fn teams(&self) -> Vec<TeamHandle> {
        let names: Vec<TeamName> = self.inner.teams.read().expect(UNPOISONED).keys().cloned().collect();
        names.iter().filter_map(|name| self.team(name)).collect()
    }

    /// What is counted of every team, by name; none is woken.
    pub fn counts(&self) -> Vec<(TeamName, Counts)> {
        let teams = self.inner.teams.read().expect(UNPOISONED);
        let counts = |slot: &Slot| match slot {
            Slot::Awake(handle) => handle.counts(),
            Slot::Asleep(slept) => slept.counts.clone(),
        };
        teams.iter().map(|(name, slot)| (name.clone(), counts(slot))).collect()
    }

    /// Whether that team is in memory.
    pub fn is_awake(&self, name: &TeamName) -> bool {
        matches!(self.inner.teams.read().expect(UNPOISONED).get(name), Some(Slot::Awake(_)))
    }

    /// Reads a sleeping team's log. It is short, or has a snapshot: it was seen to when the team went to sleep.
    fn wake(&self, name: &TeamName) -> Option<TeamHandle> {
        let _one = self.inner.waking.lock().expect(UNPOISONED);
        if self.is_awake(name) {
            return self.team(name);
        }
        match loading::load(&*self.inner.parts.reader, name) {
            Ok(loaded) => {
                let slot = self.inner.teams.write().expect(UNPOISONED).remove(name);
                let slept = match slot {
                    Some(Slot::Asleep(slept)) => slept,
                    _ => Slept::default(),
                };
                Some(self.open(name.clone(), loaded, slept))
            }
            Err(fault) => {
                self.inner.found_damaged(&fault);
                None
            }
        }
    }

    /// Proves what snapshots stand for, behind the server's back.
    fn prove(&self, unproved: Vec<(TeamName, loading::Begun)>) {
        if unproved.is_empty() {
            return;
        }
        let (inner, reader) = (Arc::downgrade(&self.inner), self.reader());
        let run = move || {
            for (name, begun) in unproved {
                let goes_on = || inner.strong_count() > 0;
                if let Err(fault) = loading::prove_rest(&*reader, &name, begun, goes_on)
                    && let Some(inner) = inner.upgrade()
                {
                    return inner.found_damaged(&fault);
                }
            }
        };
        let thread = thread::Builder::new().name("proof".to_owned()).spawn(run);
        thread.expect("a process that starts can have a thread");
    }

    /// Ends whoever listens, now and later: the server ends.
    pub fn end_listening(&self) {
        let teams = self.inner.teams.read().expect(UNPOISONED);
        teams.values().filter_map(Slot::hearing).for_each(|hearing| hearing.end());
    }

    /// Has a member's listener look whether it may still listen.
    fn look_again(&self, team: &TeamName, member: &MemberName) {
        let teams = self.inner.teams.read().expect(UNPOISONED);
        if let Some(hearing) = teams.get(team).and_then(Slot::hearing) {
            hearing.poke(Some(&[member.clone()].into()));
        }
    }

    /// The log, for those who list and verify it.
    pub fn reader(&self) -> Arc<dyn Reader> {
        self.inner.parts.reader.clone()
    }

    /// The clock.
    pub fn clock(&self) -> Arc<dyn Clock> {
        self.inner.parts.clock.clone()
    }

    /// Adds a team with its first charter. Members get their tokens with
    /// [`issue_token`](Self::issue_token).
    pub async fn add_team(&self, adopt: Adopt) -> Result<TeamHandle, AddTeamError> {
        let name = adopt.charter.team.clone();
        let at = self.inner.parts.clock.now();
        let (team, created) =
            (name.clone(), self.inner.parts.writer.ask(move |writer| writer.add_team(&name, at)));
        created.await?;
        let loaded = loading::load(&*self.inner.parts.reader, &team)?;
        let handle = self.open(team, loaded, Slept::default());
        let adopted = handle.submit(Actor::Operator, Command::Adopt(Box::new(adopt)), None).await;
        adopted.map_err(|refusal| AddTeamError::Adopt(refusal.to_string()))?;
        Ok(handle)
    }

    /// Issues a token for a member; the tokens before it end unless `keep`.
    pub async fn issue_token(
        &self,
        team: &TeamName,
        member: &MemberName,
        keep: bool,
    ) -> Result<Token, Fault> {
        let (token, credential) = self.fresh_token(team, member, false)?;
        let stored = credential.clone();
        let store = move |writer: &mut dyn Writer| {
            if keep { writer.add_credential(&stored) } else { writer.replace_credentials(&stored) }
        };
        self.inner.parts.writer.ask(store).await?;
        let mut credentials = self.inner.credentials.write().expect(UNPOISONED);
        if !keep {
            credentials.retain(|_, known| !known.is_of(team, member));
        }
        credentials.extend([Known::of(credential, 0)]);
        drop(credentials);
        self.look_again(team, member);
        Ok(token)
    }

    /// Issues a token for a room page of that member; the oldest of its pages ends where it has as many as may be.
    pub async fn issue_page_token(&self, team: &TeamName, member: &MemberName) -> Result<Token, Fault> {
        let (token, credential) = self.fresh_token(team, member, true)?;
        let (at, stored) = (credential.issued_at, credential.clone());
        self.inner.parts.writer.ask(move |writer| writer.add_credential(&stored)).await?;
        let ended = {
            let mut credentials = self.inner.credentials.write().expect(UNPOISONED);
            let next = credentials.values().filter_map(|known| known.page).max().map_or(0, |last| last + 1);
            credentials.extend([Known::of(credential, next)]);
            let mut pages: Vec<_> = credentials
                .iter()
                .filter(|(_, known)| known.is_of(team, member))
                .filter_map(|(hash, known)| Some((known.page?, hash.clone())))
                .collect();
            pages.sort_unstable();
            pages.truncate(pages.len().saturating_sub(PAGE_TOKENS_MAX));
            // From here on they are refused, also while the store is still writing it down.
            pages.iter().for_each(|(_, hash)| drop(credentials.remove(hash)));
            pages
        };
        self.look_again(team, member);
        let store = move |writer: &mut dyn Writer| {
            ended.iter().try_for_each(|(_, hash)| writer.revoke_credential(hash, at).map(drop))
        };
        self.inner.parts.writer.ask(store).await?;
        Ok(token)
    }

    fn fresh_token(
        &self,
        team: &TeamName,
        member: &MemberName,
        of_page: bool,
    ) -> Result<(Token, Credential), Fault> {
        let token = Token::generate().map_err(|error| Fault::Failed { what: error.to_string() })?;
        let credential = Credential {
            hash: token.hash(),
            team: team.clone(),
            member: member.clone(),
            issued_at: self.inner.parts.clock.now(),
            revoked_at: None,
            of_page,
        };
        Ok((token, credential))
    }

    /// Ends every token of a member; says how many.
    pub async fn revoke_tokens(&self, team: &TeamName, member: &MemberName) -> Result<usize, Fault> {
        let (at, ended, of) = (self.inner.parts.clock.now(), team.clone(), member.clone());
        // From here on they are refused, also while the store is still writing it down.
        self.inner.credentials.write().expect(UNPOISONED).retain(|_, known| !known.is_of(team, member));
        self.look_again(team, member);
        self.inner.parts.writer.ask(move |writer| writer.revoke_credentials(&ended, &of, at)).await
    }

    /// Ends that token; says whether it was one.
    pub async fn end_token(&self, token: &Token) -> Result<bool, Fault> {
        let (at, hash) = (self.inner.parts.clock.now(), token.hash());
        self.inner.credentials.write().expect(UNPOISONED).remove(&hash);
        self.inner.parts.writer.ask(move |writer| writer.revoke_credential(&hash, at)).await
    }

    /// Who that token speaks for, if anybody. A member that the charter no longer has is nobody.
    pub fn authenticate(&self, token: &Token) -> Option<(TeamHandle, MemberName)> {
        self.speaks_for(&token.hash())
    }

    /// The same by the token's hash.
    fn speaks_for(&self, token: &Digest) -> Option<(TeamHandle, MemberName)> {
        let known = self.inner.credentials.read().expect(UNPOISONED).get(token).cloned();
        let Known { team, member, .. } = known?;
        let handle = self.team(&team)?;
        let is_member = |charter: &Charter| charter.members.contains_key(&member);
        let known = handle.peek(|team| team.adopted().is_some_and(|adopted| is_member(&adopted.charter)));
        known.then_some((handle, member))
    }

    /// The team that a read-only token may ask about, if it is one. It speaks for nobody.
    pub fn authenticate_reader(&self, token: &Token) -> Option<TeamHandle> {
        let known = self.inner.credentials.read().expect(UNPOISONED).get(&token.hash()).cloned();
        let known = known.filter(|known| known.member.as_str() == READER)?;
        self.team(&known.team)
    }

    /// Resolves once nobody can say any longer whether a commit was stored, a log doesn't prove itself, or a team's task
    /// broke: the process must end.
    pub async fn broken(&self) -> String {
        let mut broken = self.inner.broken.subscribe();
        tokio::select! {
            what = self.inner.parts.writer.broken() => what,
            Ok(what) = broken.wait_for(Option::is_some) => what.clone().unwrap_or_default(),
        }
    }

    /// Takes no more commands, commits what is queued, keeps snapshots where they are worth it, and closes the
    /// store.
    pub async fn shutdown(self) {
        // What was queued is stored then, so that snapshots have all of it. A writer that has ended keeps none.
        if self.inner.parts.writer.ask(|_| Ok(())).await.is_ok() {
            let inner = self.inner.clone();
            let kept = tokio::task::spawn_blocking(move || inner.keep_snapshots()).await;
            if kept.is_err() {
                tracing::error!("keeping the snapshots ended by a panic");
            }
        }
        self.inner.parts.writer.close().await;
    }

    fn open(&self, name: TeamName, loaded: loading::Loaded, slept: Slept) -> TeamHandle {
        let (parts, coordinator) = (self.inner.parts.clone(), Arc::downgrade(&self.inner));
        let handle = TeamHandle::open(name.clone(), loaded, slept, parts, coordinator);
        self.inner.teams.write().expect(UNPOISONED).insert(name, Slot::Awake(handle.clone()));
        handle
    }
}

impl Slot {
    fn hearing(&self) -> Option<&Arc<hearing::Hearing>> {
        match self {
            Self::Awake(handle) => Some(handle.hearing()),
            Self::Asleep(slept) => slept.hearing.as_ref(),
        }
    }
}

impl Inner {
    fn found_damaged(&self, fault: &Fault) {
        tracing::error!(%fault, "a log does not prove itself; the process must end");
        self.broken.send_replace(Some(fault.to_string()));
    }

    /// A team's task ended by a fault of this program.
    fn task_broke(&self, team: &TeamName) {
        tracing::error!(%team, "what decides for a team broke; the process must end");
        let what = format!("what decides for {team} broke");
        self.broken.send_replace(Some(what));
    }

    fn keep_snapshots(&self) {
        // After a fault the next start is to read the log from its first row.
        if self.broken.borrow().is_some() {
            return;
        }
        let teams = self.teams.read().expect(UNPOISONED);
        let awake: Vec<TeamHandle> = teams
            .values()
            .filter_map(|slot| match slot {
                Slot::Awake(handle) => Some(handle.clone()),
                Slot::Asleep(_) => None,
            })
            .collect();
        drop(teams);
        awake.iter().for_each(|team| team.keep_snapshot(&*self.parts.reader));
    }

    /// Lets go of a team, unless somebody still holds it or asks it something: `task_ends` says whether its
    /// inbox is empty, and gives what stays.
    fn put_to_sleep(&self, name: &TeamName, task_ends: impl FnOnce() -> Option<Slept>) -> bool {
        // Nobody gets at a handle while this is held.
        let mut teams = self.teams.write().expect(UNPOISONED);
        let Some(slept) = task_ends() else { return false };
        teams.insert(name.clone(), Slot::Asleep(slept));
        true
    }
}

/// Whom a read-only token speaks for. No charter has a member of this name, now or later.
pub const READER: &str = "nobody";

/// Why a lock can't be poisoned: nothing panics while it is held.
const UNPOISONED: &str = "nothing panics while it holds this lock";

/// How far a team's log is, beside what its task has decided.
#[derive(Clone, Copy, Debug, Default)]
struct Progress {
    /// The last row that is stored.
    stored: u64,
    /// Raised when what was decided is void, since a commit stored nothing.
    epoch: u64,
    /// The epoch in which the state was last read from the log.
    loaded: u64,
    /// When the team next wants to be asked, in its own time. Whoever looks at a later time sees what
    /// came of it.
    deadline: Option<Time>,
}

/// The two ends of a team's progress.
type Progressing = (watch::Sender<Progress>, watch::Receiver<Progress>);

/// Where an answer goes.
type Reply = oneshot::Sender<Result<Done, Refusal>>;
