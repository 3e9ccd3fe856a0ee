//! What versions are made of: commits of the guarded repository, and bundles of files kept by
//! digest. One small front, [`Artifacts`], stands before both.
//!
//! Nothing here runs what an artifact holds. Git is asked by plumbing alone, with a configuration
//! of our own ([`repository`]); files are read from objects, never from a work tree, and written
//! only below a folder that was made for them ([`folder`]).
//!
//! An expected problem is [`Refused`] and becomes a rejection; what is broken is a [`Fault`].

pub mod bundle;
pub mod folder;
pub mod git;
pub mod manifest;
pub mod merge;
pub mod path;
pub mod publishing;
pub mod repository;
pub mod target;

mod answers;
mod lines;
mod secrets;
mod teams;
mod unified;

use std::path::{Path, PathBuf};

use tokio::sync::mpsc;

use crate::protocol::artifact::{Artifact, ArtifactFacts, ArtifactKind, Place, RepoPath};
use crate::protocol::name::Digest;
use bundle::{BundleBuilder, Bundles};
use repository::Repository;
pub use teams::TeamArtifacts;

/// Why an artifact is not taken, or a question about it has no answer: expected, and told to the
/// member.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// `refs/countersign/staging/<commit>` does not point to it.
    #[error("commit {commit} is not staged")]
    NotStaged {
        /// The id that was given.
        commit: Digest,
    },
    /// The staged object is a tag, a tree or a blob.
    #[error("{digest} is a {found}, not a commit")]
    NotACommit {
        /// The id that was given.
        digest: Digest,
        /// What it is.
        found: String,
    },
    /// No such commit in the repository, no such bundle in the store.
    #[error("there is no {digest} here")]
    Unknown {
        /// What was asked for.
        digest: Digest,
    },
    /// The server guards no repository, so there are no commits.
    #[error("this server guards no repository")]
    NoRepository,
    /// Not the full name of a ref, such as `refs/heads/main`.
    #[error("\"{name}\" is not the full name of a ref")]
    RefName {
        /// The name as it came, control characters shown.
        name: String,
    },
    /// A proposal's name that can't stand in a ref's: `staging`, or one that ends in `.lock`.
    #[error("\"{name}\" can't name a proposal whose commits are pinned")]
    Unpinnable {
        /// The proposal's name.
        name: String,
    },
    /// The version is pinned to another commit, for ever.
    #[error("{reference} is pinned to {found} already")]
    Pinned {
        /// The ref.
        reference: String,
        /// The commit that it keeps.
        found: Digest,
    },
    /// More than is taken.
    #[error("{count} {what} are above the limit of {limit}")]
    TooLarge {
        /// What was counted: "paths", "files", "bytes in src/big.bin"…
        what: String,
        /// How many were found before counting stopped: at least this many.
        count: u64,
        /// How many are taken.
        limit: u64,
    },
    /// A path that could name something outside its folder, or git's own.
    #[error("the path \"{path}\" {why}")]
    UnsafePath {
        /// The path.
        path: RepoPath,
        /// What is wrong with it.
        why: &'static str,
    },
    /// Two files that can't stand beside one another.
    #[error("the path \"{path}\" {why}")]
    PathTaken {
        /// The later one.
        path: RepoPath,
        /// What the earlier one is to it.
        why: &'static str,
    },
    /// A symbolic link, a device, a pipe, a socket or a submodule where only files are taken.
    #[error("\"{path}\" is {found}, and only files are taken")]
    NotAFile {
        /// Where it is.
        path: RepoPath,
        /// What it is.
        found: &'static str,
    },
    /// Files are only written into a new or empty folder.
    #[error("{} exists and is not an empty folder", .path.display())]
    NotEmpty {
        /// The folder.
        path: PathBuf,
    },
}

/// What is broken in the artifacts or under them.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// The git program is missing, or the system starts no process.
    #[error("git could not be started")]
    NotStarted {
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// Git took too long, and was stopped.
    #[error("git {verb} was stopped after {time_max:?}")]
    TimedOut {
        /// The git command.
        verb: String,
        /// Its time limit.
        time_max: std::time::Duration,
    },
    /// Git ended otherwise than it may.
    #[error("git {verb} ended with {code}: {said}")]
    Git {
        /// The git command.
        verb: String,
        /// Its exit code, or "a signal".
        code: String,
        /// The start of what it said, control characters shown.
        said: String,
    },
    /// Git answered in a form that it does not have.
    #[error("git {verb} answered in an unknown form: {said}")]
    Unreadable {
        /// The git command.
        verb: String,
        /// The start of its answer, control characters shown.
        said: String,
    },
    /// The folder is no git repository.
    #[error("{} is not a git repository: {said}", .path.display())]
    NotARepository {
        /// The folder.
        path: PathBuf,
        /// What git said.
        said: String,
    },
    /// The repository has a work tree, and so would be changed behind the server's back.
    #[error("{} is not a bare repository: `git clone --bare` makes one", .path.display())]
    NotBare {
        /// The folder.
        path: PathBuf,
    },
    /// A file or folder of ours could not be used.
    #[error("{}", .path.display())]
    Io {
        /// Which one.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// Others move what is to be moved, again and again.
    #[error("{what}")]
    Unsteady {
        /// What.
        what: String,
    },
    /// Stored bytes are missing or do not have the digest that they are kept under.
    #[error("what is kept as {digest} is damaged: {what}")]
    Damaged {
        /// The digest.
        digest: Digest,
        /// What is wrong.
        what: &'static str,
    },
}

impl Fault {
    pub(crate) fn io(path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.to_owned();
        |source| Self::Io { path, source }
    }
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// Expected: the member is told.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// Broken: it is logged.
    #[error(transparent)]
    Fault(#[from] Fault),
}

/// An answer, or why there is none.
pub type Result<T> = std::result::Result<T, Failure>;

/// What an entry of an artifact is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EntryKind {
    /// A file.
    File,
    /// A file that may be run.
    Executable,
    /// A symbolic link; its bytes are its target. Only in commits.
    Symlink,
    /// A submodule, without bytes. Only in commits.
    Submodule,
}

/// One file of an artifact, whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Where it stands.
    pub path: RepoPath,
    /// What it is.
    pub kind: EntryKind,
    /// What it holds.
    pub bytes: Vec<u8>,
}

/// The entries of an artifact as they are read, in the order of their paths' bytes. The first
/// failure ends them.
#[derive(Debug)]
pub struct Entries(mpsc::Receiver<Result<Entry>>);

impl Entries {
    /// The next one; none at the end.
    pub async fn next(&mut self) -> Option<Result<Entry>> {
        self.0.recv().await
    }

    /// The next one; none at the end. For threads outside the runtime.
    pub fn next_blocking(&mut self) -> Option<Result<Entry>> {
        self.0.blocking_recv()
    }
}

/// What happened to a file between two artifacts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileStatus {
    /// It is new.
    Added,
    /// Its content changed, and perhaps its mode.
    Modified,
    /// It is gone.
    Deleted,
    /// The same content; it may be run now, or no longer.
    ModeChanged,
    /// A file became a symbolic link or a submodule, or the other way round.
    TypeChanged,
}

/// One line of `show`'s list of files. A rename is a deletion and an addition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileChange {
    /// Where it stands.
    pub path: RepoPath,
    /// What happened to it.
    pub status: FileStatus,
    /// Lines that it has and had not; 0 where it is binary.
    pub added_lines: u64,
    /// Lines that it had and has not; 0 where it is binary.
    pub deleted_lines: u64,
    /// Whether it is no text, by git's rule: a NUL among its first 8,000 bytes.
    pub binary: bool,
}

/// A unified diff. Bytes that are no UTF-8 stand as `\xNN`. Backslashes stand as they are, because
/// this is code that people read; who needs the bytes fetches them. Control characters are the
/// author's: whoever prints it makes them visible.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Diff {
    /// The text.
    pub text: String,
    /// Whether it was cut, at the end of a line, because there was more than asked for.
    pub truncated: bool,
}

impl Diff {
    /// At most `bytes_max` of `bytes`, in whole lines.
    fn cut(mut bytes: Vec<u8>, bytes_max: usize, more: bool) -> Self {
        let truncated = more || bytes.len() > bytes_max;
        if truncated {
            bytes.truncate(bytes_max);
            bytes.truncate(bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1));
        }
        Self { text: legible(&bytes), truncated }
    }
}

/// Bytes as text: what is no UTF-8 stands as `\xNN`.
fn legible(bytes: &[u8]) -> String {
    use std::fmt::Write;
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        for byte in chunk.invalid() {
            write!(text, "\\x{byte:02x}").expect("a String takes every write");
        }
    }
    text
}

/// What is offered for a version, and what it is compared with.
#[derive(Clone, Copy, Debug)]
pub enum Offer<'a> {
    /// A commit for a ref.
    Commit {
        /// Its id.
        commit: &'a Digest,
        /// The full name of the ref that it is meant for: `refs/heads/main`.
        target: &'a str,
    },
    /// A bundle.
    Bundle {
        /// Its digest.
        digest: &'a Digest,
        /// The bundle of the proposal's version before, where there is one.
        previous: Option<&'a Digest>,
    },
}

/// All artifacts of a server.
#[derive(Debug)]
pub struct Artifacts {
    bundles: Bundles,
    repository: Option<Repository>,
}

impl Artifacts {
    /// Opens the bundles under `home/artifacts/`, made where missing, and the guarded repository
    /// where there is one.
    pub async fn open(home: &Path, repository: Option<&Path>) -> Result<Self> {
        let folder = home.join("artifacts");
        let bundles = Bundles::open(&folder)?;
        let repository = match repository {
            Some(path) => Some(Repository::open(path, &folder.join("desk")).await?),
            None => None,
        };
        Ok(Self { bundles, repository })
    }

    /// The guarded repository; [`Refused::NoRepository`] without one.
    pub fn repository(&self) -> Result<&Repository> {
        self.repository.as_ref().ok_or_else(|| Refused::NoRepository.into())
    }

    /// The bundles.
    pub fn bundles(&self) -> &Bundles {
        &self.bundles
    }

    /// Takes the files of a new bundle as they arrive.
    pub fn builder(&self) -> Result<BundleBuilder> {
        self.bundles.builder()
    }

    /// What is known of an artifact when it is proposed.
    pub async fn facts(&self, offer: Offer<'_>) -> Result<(Artifact, ArtifactFacts)> {
        match offer {
            Offer::Commit { commit, target } => self.repository()?.facts(commit, target).await,
            Offer::Bundle { digest, previous } => self.bundles.facts(digest, previous).await,
        }
    }

    /// Whether the artifact has this file, with these lines.
    pub async fn has_place(&self, artifact: &Artifact, place: &Place) -> Result<bool> {
        match artifact.kind {
            ArtifactKind::Commit => self.repository()?.has_place(&artifact.digest, place).await,
            ArtifactKind::Bundle => self.bundles.has_place(&artifact.digest, place).await,
        }
    }

    /// The files that differ between `since` and the artifact. Without `since`: a commit against
    /// where it left its target, a bundle against nothing.
    pub async fn files(&self, artifact: &Artifact, since: Option<&Artifact>) -> Result<Vec<FileChange>> {
        match artifact.kind {
            ArtifactKind::Commit => {
                let repository = self.repository()?;
                let from = commit_before(repository, artifact, since).await?;
                repository.files(&artifact.digest, from.as_ref()).await
            }
            ArtifactKind::Bundle => self.bundles.files(&artifact.digest, bundle_before(since)).await,
        }
    }

    /// The difference between `since` and the artifact, chosen as by [`Artifacts::files`], in at
    /// most `bytes_max` bytes before escapes.
    pub async fn diff(
        &self,
        artifact: &Artifact,
        since: Option<&Artifact>,
        bytes_max: usize,
    ) -> Result<Diff> {
        match artifact.kind {
            ArtifactKind::Commit => {
                let repository = self.repository()?;
                let from = commit_before(repository, artifact, since).await?;
                repository.diff(from.as_ref(), &artifact.digest, bytes_max).await
            }
            ArtifactKind::Bundle => {
                self.bundles.diff(bundle_before(since), &artifact.digest, bytes_max).await
            }
        }
    }

    /// All that the artifact holds, for `fetch`.
    pub async fn entries(&self, artifact: &Artifact) -> Result<Entries> {
        match artifact.kind {
            ArtifactKind::Commit => self.repository()?.entries(&artifact.digest).await,
            ArtifactKind::Bundle => self.bundles.entries(&artifact.digest).await,
        }
    }
}

/// A bundle before a commit has nothing in common with it: the commit then stands by itself.
async fn commit_before(
    repository: &Repository,
    artifact: &Artifact,
    since: Option<&Artifact>,
) -> Result<Option<Digest>> {
    match (since, &artifact.base) {
        (Some(since), _) if since.kind == ArtifactKind::Commit => Ok(Some(since.digest.clone())),
        (_, Some(base)) => repository.fork_point(base, &artifact.digest).await,
        (_, None) => Ok(None),
    }
}

fn bundle_before(since: Option<&Artifact>) -> Option<&Digest> {
    since.filter(|artifact| artifact.kind == ArtifactKind::Bundle).map(|artifact| &artifact.digest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_diff_is_cut_between_lines() {
        let diff = Diff::cut(b"one\ntwo\nthree".to_vec(), 9, false);
        assert_eq!((diff.text.as_str(), diff.truncated), ("one\ntwo\n", true));
        let diff = Diff::cut(b"a\\b \xff\n".to_vec(), 9, false);
        assert_eq!((diff.text.as_str(), diff.truncated), ("a\\b \\xff\n", false));
    }
}
