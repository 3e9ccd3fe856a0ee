//! A store and a notifier that fail when a run has them fail.

use std::collections::BTreeSet;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::sync::{Condvar, Mutex, MutexGuard};

use countersign::coordinator::{Notice, Notifier};
use countersign::protocol::name::{Digest, EscalationId, MemberName, Seq, TeamName};
use countersign::protocol::time::Time;
use countersign::store::{Batch, CommitFault, Credential, Fault, Head, Refused, Writer};

/// What goes wrong with the next commit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mishap {
    /// Nothing.
    #[default]
    None,
    /// Nobody waits for the answer; the request is made once more.
    LostReply,
    /// Nothing is stored, and the server goes on: a full disk.
    NotStored,
    /// Nobody can say whether it was stored: the server ends, and another one settles it.
    Unknown { stored: bool, jump: i64 },
    /// The server dies between the store and the answer, or before the store.
    Died { stored: bool, jump: i64 },
}

impl Mishap {
    /// Its name in what a run saw.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::LostReply => "lost reply",
            Self::NotStored => "not stored",
            Self::Unknown { stored: true, .. } => "unknown, and stored",
            Self::Unknown { stored: false, .. } => "unknown, and not stored",
            Self::Died { stored: true, .. } => "died after the store",
            Self::Died { stored: false, .. } => "died before the store",
        }
    }

    /// How far the clock stands elsewhere when the server is back.
    pub fn jump(self) -> i64 {
        match self {
            Self::Unknown { jump, .. } | Self::Died { jump, .. } => jump,
            Self::None | Self::LostReply | Self::NotStored => 0,
        }
    }
}

/// What a run has the store do, and what the store did.
#[derive(Default)]
pub struct Plan {
    state: Mutex<Planned>,
    opened: Condvar,
}

#[derive(Default)]
struct Planned {
    next: Mishap,
    /// While it is shut, the writer waits between two commits.
    shut: bool,
    /// Whether a commit came to nobody knows what.
    broke: bool,
    /// The first and the last row of each batch that was stored, in order.
    batches: Vec<(Seq, Seq)>,
}

impl Plan {
    /// The next commit comes to that.
    pub fn next(&self, mishap: Mishap) {
        self.locked().next = mishap;
    }

    /// Nothing more goes wrong. Says whether all that was planned did.
    pub fn clear(&self) -> bool {
        std::mem::take(&mut self.locked().next) == Mishap::None
    }

    pub fn shut(&self) {
        self.locked().shut = true;
    }

    pub fn open(&self) {
        self.locked().shut = false;
        self.opened.notify_all();
    }

    /// Whether the writer has ended since it was last asked.
    pub fn take_broke(&self) -> bool {
        std::mem::take(&mut self.locked().broke)
    }

    pub fn take_batches(&self) -> Vec<(Seq, Seq)> {
        std::mem::take(&mut self.locked().batches)
    }

    fn locked(&self) -> MutexGuard<'_, Planned> {
        self.state.lock().expect("nothing panics while it holds the lock")
    }
}

/// A store's writer that does what the plan says.
pub struct Doubtful {
    pub inner: Box<dyn Writer>,
    pub plan: Arc<Plan>,
    /// Told when the writer is gone, and with it what it holds.
    pub ended: Sender<()>,
}

impl Drop for Doubtful {
    fn drop(&mut self) {
        // What it holds goes first: who is told opens the same store.
        self.inner = Box::new(Gone);
        // Nobody waits for the one that a run ends with.
        self.ended.send(()).unwrap_or_default();
    }
}

impl Writer for Doubtful {
    fn commit(&mut self, batches: &[Batch]) -> Result<Vec<Result<Head, Refused>>, CommitFault> {
        let next = std::mem::take(&mut self.plan.locked().next);
        let reason = || "the run has it so".to_owned();
        let stored = match next {
            Mishap::NotStored => return Err(CommitFault::NotStored { reason: reason() }),
            Mishap::Unknown { stored, .. } | Mishap::Died { stored, .. } => stored,
            Mishap::None | Mishap::LostReply => true,
        };
        let outcome = if stored { Some(self.inner.commit(batches)?) } else { None };
        let mut plan = self.plan.locked();
        for (batch, head) in batches.iter().zip(outcome.iter().flatten()) {
            if let (Ok(head), Some(first)) = (head, batch.rows.first()) {
                plan.batches.push((first.seq, head.seq));
            }
        }
        match (next, outcome) {
            (Mishap::None | Mishap::LostReply, Some(outcome)) => Ok(outcome),
            _ => {
                plan.broke = true;
                Err(CommitFault::Unknown { reason: reason() })
            }
        }
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

    /// The gate: no run has credentials, so that this holds the writer and touches nothing.
    fn revoke_credentials(&mut self, _: &TeamName, _: &MemberName, _: Time) -> Result<usize, Fault> {
        let mut planned = self.plan.locked();
        while planned.shut {
            planned = self.plan.opened.wait(planned).expect("nothing panics while it holds the lock");
        }
        Ok(0)
    }

    fn revoke_credential(&mut self, hash: &Digest, at: Time) -> Result<bool, Fault> {
        self.inner.revoke_credential(hash, at)
    }
}

/// In the place of a writer that is closed.
struct Gone;

const GONE: &str = "the writer is closed";

impl Writer for Gone {
    fn commit(&mut self, _: &[Batch]) -> Result<Vec<Result<Head, Refused>>, CommitFault> {
        Err(CommitFault::NotStored { reason: GONE.to_owned() })
    }

    fn add_team(&mut self, _: &TeamName, _: Time) -> Result<(), Fault> {
        Err(Fault::Failed { what: GONE.to_owned() })
    }

    fn add_credential(&mut self, _: &Credential) -> Result<(), Fault> {
        Err(Fault::Failed { what: GONE.to_owned() })
    }

    fn replace_credentials(&mut self, _: &Credential) -> Result<(), Fault> {
        Err(Fault::Failed { what: GONE.to_owned() })
    }

    fn revoke_credentials(&mut self, _: &TeamName, _: &MemberName, _: Time) -> Result<usize, Fault> {
        Err(Fault::Failed { what: GONE.to_owned() })
    }

    fn revoke_credential(&mut self, _: &Digest, _: Time) -> Result<bool, Fault> {
        Err(Fault::Failed { what: GONE.to_owned() })
    }
}

/// News as it was taken: of which escalation, at which level, by which channel.
pub type News = (EscalationId, u32, String);

/// A notifier that refuses as often as it is told to.
#[derive(Default)]
pub struct Unreliable(Mutex<Told>);

#[derive(Default)]
struct Told {
    refusals_left: u32,
    refused: usize,
    /// What was taken since the server began.
    taken: BTreeSet<News>,
    /// What was ever taken.
    ever: BTreeSet<News>,
    twice: Option<News>,
}

impl Unreliable {
    pub fn refuse(&self, times: u32) {
        self.locked().refusals_left = times;
    }

    /// Another server doesn't know what the one before it sent, where the log doesn't.
    pub fn forget(&self) {
        self.locked().taken.clear();
    }

    /// How often it refused.
    pub fn refused(&self) -> usize {
        self.locked().refused
    }

    pub fn took(&self, news: &News) -> bool {
        self.locked().ever.contains(news)
    }

    /// What one server sent twice.
    pub fn twice(&self) -> Option<News> {
        self.locked().twice.clone()
    }

    fn locked(&self) -> MutexGuard<'_, Told> {
        self.0.lock().expect("nothing panics while it holds the lock")
    }
}

impl Notifier for Unreliable {
    fn send<'a>(
        &'a self,
        notice: &'a Notice,
    ) -> Pin<Box<dyn Future<Output = Result<(), String>> + Send + 'a>> {
        Box::pin(async move {
            let mut told = self.locked();
            if told.refusals_left > 0 {
                told.refusals_left -= 1;
                told.refused += 1;
                return Err("the other end doesn't answer".to_owned());
            }
            let news = (notice.escalation.opened.id, notice.level, notice.name.clone());
            told.ever.insert(news.clone());
            if !told.taken.insert(news.clone()) {
                told.twice = Some(news);
            }
            Ok(())
        })
    }
}
