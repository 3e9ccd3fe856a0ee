//! The store: one append-only log per team, and who may speak for whom.
//!
//! The store orders events and does not interpret them: to it an event is a kind, a schema number
//! and a JSON text. Each row is chained to the row before it by SHA-256 ([`chain`]), and the head of
//! each chain is witnessed outside the database, so that a flipped byte or a cut tail is refused by
//! name and place, never silently shorter.
//!
//! [Snapshots](snapshot) of what a log added up to stand beside it, as a cache.
//!
//! One writer commits what all teams have queued in one transaction ([`Writer::commit`]); readers
//! never block it. Two stores stand behind the same traits: [`memory`] for tests, with faults on
//! demand, and [`sqlite`].

pub mod chain;
pub mod memory;
pub mod snapshot;
pub mod sqlite;

use std::borrow::Cow;
use std::path::Path;

use crate::protocol::name::{Actor, Digest, MemberName, Seq, TeamName};
use crate::protocol::time::Time;
use snapshot::Snapshots;

/// One event as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Its place in the team's log; the first is 1, and there are no gaps.
    pub seq: Seq,
    /// When it was decided. Never before the row before it.
    pub at: Time,
    /// Who it comes from.
    pub actor: Actor,
    /// Its stable name: `proposed`, `approved`…
    pub kind: Cow<'static, str>,
    /// The version of that kind's form.
    pub schema: u32,
    /// The event as JSON, byte for byte as it was chained.
    pub body: String,
    /// The request that it answers; on the first event of a batch alone.
    pub request: Option<Request>,
}

/// What settles a repeated request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The member's own id for it.
    pub id: String,
    /// SHA-256 of what it asked for.
    pub digest: Digest,
    /// The answer that it got, as JSON.
    pub answer: String,
}

/// Events of one decision: stored together or not at all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// Whose log.
    pub team: TeamName,
    /// The rows, in order; the first follows the log's head, or the batch is [`Refused`].
    pub rows: Vec<Row>,
}

/// Where a log ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// Its last row; 0 for an empty log.
    pub seq: Seq,
    /// The chain up to and with that row.
    pub chain: Digest,
}

/// Why one batch of a commit was not stored, while the others were.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// Somebody else appended first.
    #[error("{team}'s log ends at {found}, not at {expected}")]
    Conflict {
        /// Whose log.
        team: TeamName,
        /// The head that the batch follows.
        expected: Seq,
        /// The head there is.
        found: Seq,
    },
    /// No team of that name.
    #[error("there is no team {team}")]
    UnknownTeam {
        /// The name.
        team: TeamName,
    },
}

/// Why a whole commit was not answered with success.
#[derive(Debug, thiserror::Error)]
pub enum CommitFault {
    /// Nothing of it was stored, for certain; the store can be asked again (a full disk).
    #[error("nothing was stored: {reason}")]
    NotStored {
        /// What the store said.
        reason: String,
    },
    /// Nobody can say whether it was stored. The process must end: only a fresh look at the log,
    /// by the same request id, settles it. A failed fsync is never retried.
    #[error("whether it was stored is unknown: {reason}")]
    Unknown {
        /// What the store said.
        reason: String,
    },
}

/// What is broken in the store or under it.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// Another server holds the folder.
    #[error("the folder is held by {holder}")]
    Held {
        /// What that server wrote about itself: process id and address.
        holder: String,
    },
    /// A row does not prove itself.
    #[error("{team}'s log is damaged at {seq}: {what}")]
    Damaged {
        /// Whose log.
        team: TeamName,
        /// The first row that can't be trusted.
        seq: Seq,
        /// What does not fit.
        what: String,
    },
    /// The log ends before its witnessed head.
    #[error("{team}'s log ends at {found}, but {witnessed} was witnessed")]
    Cut {
        /// Whose log.
        team: TeamName,
        /// The last row there is.
        found: Seq,
        /// The last row there was.
        witnessed: Seq,
    },
    /// The witness file is missing or unreadable.
    #[error("the witness {path} can't be read: {what}")]
    Witness {
        /// The file.
        path: String,
        /// What is wrong with it.
        what: String,
    },
    /// The database was written by a newer version; it was not touched.
    #[error("the database has form {found}; this version knows forms up to {known}")]
    Newer {
        /// The form there is.
        found: u32,
        /// The newest form that this version knows.
        known: u32,
    },
    /// No team of that name.
    #[error("there is no team {team}")]
    UnknownTeam {
        /// The name.
        team: TeamName,
    },
    /// A team of that name is there already.
    #[error("there is a team {team} already")]
    TeamTaken {
        /// The name.
        team: TeamName,
    },
    /// A file is no longer the one that was opened: deleted or swapped. It is the database, the witness or
    /// the lock.
    #[error("{path} was replaced under the server")]
    Replaced {
        /// The file.
        path: String,
    },
    /// A copy needs a folder of its own.
    #[error("the folder {path} is not empty: it holds {holds}")]
    NotEmpty {
        /// The folder.
        path: String,
        /// What is in it, or the first of that.
        holds: String,
    },
    /// The store failed in another way.
    #[error("{what}")]
    Failed {
        /// What it was doing, and what went wrong.
        what: String,
    },
}

/// Who a token speaks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Credential {
    /// SHA-256 of the token; the token itself is stored nowhere on the server.
    pub hash: Digest,
    /// In which team.
    pub team: TeamName,
    /// As which member.
    pub member: MemberName,
    /// Since when.
    pub issued_at: Time,
    /// Until when, once it was revoked.
    pub revoked_at: Option<Time>,
    /// Whether a room page has it.
    pub of_page: bool,
}

/// The one who appends. Lives on one thread.
pub trait Writer: Send {
    /// Stores all batches in one transaction and makes it durable before it returns. Says for each
    /// batch, in order, where the log ends now, or why that one was refused; the others stand.
    fn commit(&mut self, batches: &[Batch]) -> Result<Vec<Result<Head, Refused>>, CommitFault>;

    /// Why nothing more can be stored, once an outcome is unknown or a sync failed, whatever was being done:
    /// the process must end.
    fn ended(&self) -> Option<&str> {
        None
    }

    /// Makes an empty log.
    fn add_team(&mut self, team: &TeamName, at: Time) -> Result<(), Fault>;

    /// Stores a credential.
    fn add_credential(&mut self, credential: &Credential) -> Result<(), Fault>;

    /// Stores a credential in the place of those before it, which end as it begins: both, or neither.
    fn replace_credentials(&mut self, credential: &Credential) -> Result<(), Fault>;

    /// Ends every credential of that member that is not ended yet; says how many.
    fn revoke_credentials(&mut self, team: &TeamName, member: &MemberName, at: Time) -> Result<usize, Fault>;

    /// Ends one credential, unless it is ended or unknown; says whether it did.
    fn revoke_credential(&mut self, hash: &Digest, at: Time) -> Result<bool, Fault>;
}

/// Those who read. Shared by all tasks; each call is short and may block on the disk.
pub trait Reader: Send + Sync {
    /// All teams, by name.
    fn teams(&self) -> Result<Vec<TeamName>, Fault>;

    /// Where that team's log ends.
    fn head(&self, team: &TeamName) -> Result<Head, Fault>;

    /// Rows of that team from `from` on, in order, `limit` at most, each proved against the chain
    /// (the row before `from` is taken as it stands).
    fn rows(&self, team: &TeamName, from: Seq, limit: usize) -> Result<Vec<Row>, Fault>;

    /// The chain up to and with that row, as it stands; nothing where there is no such row.
    fn chain_at(&self, team: &TeamName, seq: Seq) -> Result<Option<Digest>, Fault>;

    /// Where snapshots of the logs are kept.
    fn snapshots(&self) -> &dyn Snapshots;

    /// The request of that id which this actor made before, if any.
    fn request(&self, team: &TeamName, actor: &Actor, id: &str) -> Result<Option<Request>, Fault>;

    /// Every credential, also the ended ones.
    fn credentials(&self) -> Result<Vec<Credential>, Fault>;

    /// Proves that team's whole log, from its first row to its witnessed head.
    fn verify(&self, team: &TeamName) -> Result<Head, Fault>;

    /// Writes a copy of everything, consistent as of one commit, while the writer goes on.
    fn backup(&self, into: &Path) -> Result<(), Fault>;
}
