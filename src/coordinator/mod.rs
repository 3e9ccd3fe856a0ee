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

mod attempts;
pub mod clock;
pub mod notifier;
pub mod presence;
mod team;
pub mod token;
mod writer;

use std::collections::BTreeMap;
use std::sync::{Arc, RwLock};

use tokio::sync::{oneshot, watch};

pub use attempts::{Attempt, Attempts};
pub use clock::{Clock, HandClock, SystemClock};
pub use notifier::{Failing, Notice, Notifier, Silent};
pub use presence::{Presence, Wake, WakeOutcome};
pub use team::{Done, Refusal, RequestKey, TeamHandle};

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
    writer: WriterHandle,
    reader: Arc<dyn Reader>,
    rulebook: Arc<dyn Rulebook>,
    clock: Arc<dyn Clock>,
    notifier: Arc<dyn Notifier>,
    teams: RwLock<BTreeMap<TeamName, TeamHandle>>,
    /// Live credentials by the hash of their token.
    credentials: RwLock<BTreeMap<Digest, (TeamName, MemberName)>>,
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
    /// Reads every team's log, each proved against its chain, and starts the writer. Nobody is notified.
    ///
    /// Fails with the first log that does not prove itself.
    pub fn start(
        writer: Box<dyn Writer>,
        reader: Arc<dyn Reader>,
        rulebook: Arc<dyn Rulebook>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, Fault> {
        Self::start_notifying(writer, reader, rulebook, clock, Arc::new(Silent))
    }

    /// The same, with a way to tell persons what is before them.
    pub fn start_notifying(
        writer: Box<dyn Writer>,
        reader: Arc<dyn Reader>,
        rulebook: Arc<dyn Rulebook>,
        clock: Arc<dyn Clock>,
        notifier: Arc<dyn Notifier>,
    ) -> Result<Self, Fault> {
        let credentials = reader.credentials()?;
        let live = credentials.into_iter().filter(|credential| credential.revoked_at.is_none());
        let inner = Inner {
            writer: WriterHandle::start(writer),
            reader,
            rulebook,
            clock,
            notifier,
            teams: RwLock::default(),
            credentials: RwLock::new(
                live.map(|credential| (credential.hash, (credential.team, credential.member))).collect(),
            ),
        };
        let coordinator = Self { inner: Arc::new(inner) };
        for team in coordinator.inner.reader.teams()? {
            coordinator.open(&team)?;
        }
        Ok(coordinator)
    }

    /// The team of that name.
    pub fn team(&self, name: &TeamName) -> Option<TeamHandle> {
        self.inner.teams.read().expect(UNPOISONED).get(name).cloned()
    }

    /// Every team, by name.
    pub fn teams(&self) -> Vec<TeamHandle> {
        self.inner.teams.read().expect(UNPOISONED).values().cloned().collect()
    }

    /// The log, for those who list and verify it.
    pub fn reader(&self) -> Arc<dyn Reader> {
        self.inner.reader.clone()
    }

    /// The clock.
    pub fn clock(&self) -> Arc<dyn Clock> {
        self.inner.clock.clone()
    }

    /// Adds a team with its first charter. Members get their tokens with
    /// [`issue_token`](Self::issue_token).
    pub async fn add_team(&self, adopt: Adopt) -> Result<TeamHandle, AddTeamError> {
        let name = adopt.charter.team.clone();
        let at = self.inner.clock.now();
        let (team, created) = (name.clone(), self.inner.writer.ask(move |writer| writer.add_team(&name, at)));
        created.await?;
        let handle = self.open(&team)?;
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
        let token = Token::generate().map_err(|error| Fault::Failed { what: error.to_string() })?;
        let credential = Credential {
            hash: token.hash(),
            team: team.clone(),
            member: member.clone(),
            issued_at: self.inner.clock.now(),
            revoked_at: None,
        };
        let stored = credential.clone();
        let store = move |writer: &mut dyn Writer| {
            if keep { writer.add_credential(&stored) } else { writer.replace_credentials(&stored) }
        };
        self.inner.writer.ask(store).await?;
        let mut credentials = self.inner.credentials.write().expect(UNPOISONED);
        if !keep {
            credentials.retain(|_, known| (&known.0, &known.1) != (team, member));
        }
        credentials.insert(credential.hash, (credential.team, credential.member));
        drop(credentials);
        Ok(token)
    }

    /// Ends every token of a member; says how many.
    pub async fn revoke_tokens(&self, team: &TeamName, member: &MemberName) -> Result<usize, Fault> {
        let (at, ended, of) = (self.inner.clock.now(), team.clone(), member.clone());
        // From here on they are refused, also while the store is still writing it down.
        self.inner
            .credentials
            .write()
            .expect(UNPOISONED)
            .retain(|_, known| (&known.0, &known.1) != (team, member));
        self.inner.writer.ask(move |writer| writer.revoke_credentials(&ended, &of, at)).await
    }

    /// Who that token speaks for, if anybody. A member that the charter no longer has is nobody.
    pub fn authenticate(&self, token: &Token) -> Option<(TeamHandle, MemberName)> {
        let known = self.inner.credentials.read().expect(UNPOISONED).get(&token.hash()).cloned();
        let (team, member) = known?;
        let handle = self.team(&team)?;
        let is_member = |charter: &Charter| charter.members.contains_key(&member);
        let known = handle.peek(|team| team.adopted().is_some_and(|adopted| is_member(&adopted.charter)));
        known.then_some((handle, member))
    }

    /// Resolves once nobody can say any longer whether a commit was stored: the process must end.
    pub async fn broken(&self) -> String {
        self.inner.writer.broken().await
    }

    /// Takes no more commands, commits what is queued, and closes the store.
    pub async fn shutdown(self) {
        self.inner.writer.close().await;
    }

    fn open(&self, name: &TeamName) -> Result<TeamHandle, Fault> {
        let Inner { writer, reader, rulebook, clock, notifier, .. } = &*self.inner;
        let (writer, reader, rulebook) = (writer.clone(), reader.clone(), rulebook.clone());
        let (clock, notifier) = (clock.clone(), notifier.clone());
        let handle = TeamHandle::open(name.clone(), writer, reader, rulebook, clock, notifier)?;
        self.inner.teams.write().expect(UNPOISONED).insert(name.clone(), handle.clone());
        Ok(handle)
    }
}

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
