//! The guarded repository: what its commits are, change and hold.
//!
//! Refs are read and pinned in the repository itself. All else is asked at a *desk*: an empty git
//! folder of ours that borrows the repository's objects. So nothing that the repository is
//! configured with has a say in what a commit means: no attributes that hide a file from a diff, no
//! drivers, no replaced objects, no mailmap. What git writes while it tries a merge goes to a desk
//! that is thrown away, never into the repository.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::sync::{Mutex, mpsc};

use super::answers::{TreeRecord, parse_authors, parse_changes, parse_touched, records};
use super::git::{Git, SHORT};
use super::lines::{self, Known, LineCache};
use super::merge::{Trees, merge_trees};
use super::target::Answers;
use super::{Diff, Entries, Entry, EntryKind, Failure, Fault, FileChange, Refused, Result, path, secrets};
use crate::protocol::artifact::{
    Artifact, ArtifactFacts, ArtifactKind, FOLLOWED_FILES_MAX, Identity, Place, RepoPath,
};
use crate::protocol::name::{Digest, ProposalName, shown};

/// Paths that one version may touch.
pub const PATHS_MAX: usize = 20_000;
/// Authors and co-authors that one version may have.
pub const AUTHORS_MAX: usize = 1_000;
/// The largest file whose lines are counted, in bytes.
pub const COUNTED_BYTES_MAX: u64 = 8 << 20;
/// Files of a commit that is fetched.
pub const FETCHED_FILES_MAX: usize = 100_000;
/// The largest file of a commit that is fetched, in bytes.
pub const FETCHED_FILE_BYTES_MAX: u64 = 64 << 20;
/// All of a commit that is fetched, in bytes.
pub const FETCHED_BYTES_MAX: u64 = 512 << 20;

/// What git may print when it lists paths or authors, in bytes.
pub(super) const LIST_BYTES_MAX: usize = 64 << 20;
/// Merge bases of one commit and its target. More than one means that they merged each other.
const MERGE_BASES_MAX: usize = 16;

/// Where members bring commits, each by its whole id.
pub const STAGING: &str = "refs/countersign/staging/";
/// Commits of which one proposal's facts ask whether they have landed.
const LANDED_ASKED_MAX: usize = 200;

/// The guarded bare repository.
#[derive(Debug)]
pub struct Repository {
    refs: Git,
    pub(super) desk: Git,
    pub(super) objects: PathBuf,
    pub(super) format: ObjectFormat,
    lines: LineCache,
    pub(super) compared: Mutex<Answers>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ObjectFormat {
    Sha1,
    Sha256,
}

impl ObjectFormat {
    fn name(self) -> &'static str {
        match self {
            Self::Sha1 => "sha1",
            Self::Sha256 => "sha256",
        }
    }

    fn digits(self) -> usize {
        match self {
            Self::Sha1 => 40,
            Self::Sha256 => 64,
        }
    }

    /// The tree without entries; git knows it whether it is stored or not.
    pub(super) fn empty_tree(self) -> Digest {
        match self {
            Self::Sha1 => "4b825dc642cb6eb9a060e54bf8d69288fbee4904",
            Self::Sha256 => "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321",
        }
        .parse()
        .expect("both are digests")
    }
}

impl Repository {
    /// Opens the bare repository at `path`. The desk is the folder `desk`, made where missing.
    ///
    /// # Errors
    /// [`Fault::NotARepository`], [`Fault::NotBare`].
    pub async fn open(path: &Path, desk: &Path) -> Result<Self> {
        let folder = path.canonicalize().map_err(Fault::io(path))?;
        let refs = Git::at(&folder);
        let asked = ["rev-parse", "--is-bare-repository", "--show-object-format"];
        let answer = refs.run(&asked, SHORT).await?;
        if answer.code != Some(0) {
            return Err(Fault::NotARepository { path: folder, said: answer.said }.into());
        }
        let format = match answer.stdout.as_slice() {
            b"true\nsha1\n" => ObjectFormat::Sha1,
            b"true\nsha256\n" => ObjectFormat::Sha256,
            other if other.starts_with(b"false\n") => return Err(Fault::NotBare { path: folder }.into()),
            _ => return Err(answer.unreadable().into()),
        };
        let objects = folder.join("objects");
        std::fs::create_dir_all(desk).map_err(Fault::io(desk))?;
        let desk = desk.canonicalize().map_err(Fault::io(desk))?;
        lay_desk(&desk, format, None)?;
        let desk = Git::at(&desk).with_objects(&objects);
        Ok(Self { refs, desk, objects, format, lines: LineCache::default(), compared: Mutex::default() })
    }

    /// Git on the repository itself, for its refs alone.
    pub fn refs(&self) -> &Git {
        &self.refs
    }

    /// That `commit` is staged: `refs/countersign/staging/<commit>` points to it, and it is a
    /// commit. The server fetches from no path that a client names.
    ///
    /// # Errors
    /// [`Refused::NotStaged`], [`Refused::NotACommit`].
    pub async fn staged(&self, commit: &Digest) -> Result<()> {
        if self.resolve(&format!("{STAGING}{commit}")).await?.as_ref() != Some(commit) {
            return Err(Refused::NotStaged { commit: commit.clone() }.into());
        }
        self.is_commit(commit).await
    }

    /// Takes a commit's staging ref away; what a version holds is kept by another.
    pub async fn unstage(&self, commit: &Digest) -> Result<()> {
        let reference = format!("{STAGING}{commit}");
        let asked = ["update-ref", "--no-deref", "-d", &reference, commit.as_str()];
        self.refs.run(&asked, SHORT).await?.ok()?;
        Ok(())
    }

    /// Keeps `commit` for ever as `refs/countersign/<proposal>/<version>`. Doing it again changes
    /// nothing; a version that is pinned to another commit is never moved.
    ///
    /// # Errors
    /// [`Refused::Unpinnable`], [`Refused::Unknown`], [`Refused::NotACommit`], [`Refused::Pinned`].
    pub async fn pin(&self, proposal: &ProposalName, version: u32, commit: &Digest) -> Result<()> {
        let name = proposal.as_str();
        // `staging/` is everybody's, and git keeps `.lock` for itself.
        if name == "staging" || name.ends_with(".lock") {
            return Err(Refused::Unpinnable { name: name.to_owned() }.into());
        }
        self.is_commit(commit).await?;
        let reference = format!("refs/countersign/{name}/{version}");
        let nothing = "0".repeat(self.format.digits());
        let asked = ["update-ref", "--no-deref", "--end-of-options", &reference, commit.as_str(), &nothing];
        let answer = self.refs.run(&asked, SHORT).await?;
        if answer.code == Some(0) {
            return Ok(());
        }
        match self.resolve(&reference).await? {
            Some(found) if found == *commit => Ok(()),
            Some(found) => Err(Refused::Pinned { reference, found }.into()),
            None => Err(answer.fault().into()),
        }
    }

    /// What is known of `commit` when it is proposed for `target`, the full name of a ref.
    ///
    /// The paths are those that differ from where the commit left its target; where there are
    /// several such places (each merged the other), from any of them. It is empty when nothing
    /// differs, or when merging it into the target would leave the target's tree as it is: what it
    /// does has landed by another way. A target that does not exist yet counts as an empty tree.
    ///
    /// # Errors
    /// [`Refused::RefName`], [`Refused::Unknown`], [`Refused::NotACommit`], [`Refused::TooLarge`].
    pub async fn facts(&self, commit: &Digest, target: &str) -> Result<(Artifact, ArtifactFacts)> {
        check_ref_name(target)?;
        self.is_commit(commit).await?;
        let base = self.resolve(target).await?;
        if let Some(base) = &base {
            self.is_commit(base).await?;
        }
        let content = self.tree(commit).await?;
        let bases = match &base {
            Some(base) => self.merge_bases(base, commit).await?,
            None => Vec::new(),
        };
        let (mut paths, mut files) = (BTreeSet::new(), BTreeSet::new());
        let empty_tree = self.format.empty_tree();
        for from in if bases.is_empty() { std::slice::from_ref(&empty_tree) } else { &bases } {
            self.collect_paths(from, commit, &mut paths, &mut files).await?;
        }
        paths.iter().try_for_each(path::check_components)?;
        let empty = paths.is_empty()
            || match &base {
                Some(base) => self.merges_to_nothing(base, commit).await?,
                None => false,
            };
        let secrets = secrets::added(&self.desk, bases.first().unwrap_or(&empty_tree), commit).await?;
        let authors = self.authors(commit, base.as_ref()).await?;
        let artifact = Artifact { kind: ArtifactKind::Commit, digest: commit.clone(), content, base };
        let files = files.into_iter().take(FOLLOWED_FILES_MAX).collect();
        Ok((artifact, ArtifactFacts { empty, paths: paths.into_iter().collect(), files, authors, secrets }))
    }

    /// Where `commit` left the history of `base`: their merge base, and of several the one with the
    /// smallest id, because git orders them by dates. None when they share no history.
    pub async fn fork_point(&self, base: &Digest, commit: &Digest) -> Result<Option<Digest>> {
        self.is_commit(base).await?;
        self.is_commit(commit).await?;
        Ok(self.merge_bases(base, commit).await?.into_iter().next())
    }

    /// Whether the commit holds the file with these lines. A symbolic link has its target as its
    /// only line, a submodule has none.
    ///
    /// # Errors
    /// [`Refused::Unknown`], [`Refused::NotACommit`]; [`Refused::TooLarge`] where lines of a file
    /// above [`COUNTED_BYTES_MAX`] are named.
    pub async fn has_place(&self, commit: &Digest, place: &Place) -> Result<bool> {
        if let Some(known) = self.lines.get(commit, &place.path) {
            return Ok(known.holds(place));
        }
        // A path that no tree holds is not git's to interpret.
        let bytes = match path::canonical_bytes(&place.path) {
            Some(bytes) if in_a_tree(&bytes) => bytes,
            _ => return Ok(false),
        };
        self.is_commit(commit).await?;
        let asked = [
            OsStr::new("ls-tree"),
            "-z".as_ref(),
            "-l".as_ref(),
            "--full-tree".as_ref(),
            "--end-of-options".as_ref(),
            commit.as_str().as_ref(),
            os(&bytes),
        ];
        let listed = self.desk.run(&asked, SHORT * 4).await?.ok()?;
        let known = match listed.stdout.strip_suffix(b"\0").and_then(TreeRecord::parse) {
            Some(record) if record.path == bytes && record.kind == EntryKind::Submodule => Known::Lines(0),
            Some(record) if record.path == bytes => {
                if record.size > COUNTED_BYTES_MAX {
                    if place.lines.is_none() {
                        return Ok(true);
                    }
                    let what = format!("bytes in {}", place.path);
                    return Err(too_large(what, record.size, COUNTED_BYTES_MAX));
                }
                let asked = ["cat-file", "blob", record.id.as_str()];
                let limit = usize::try_from(COUNTED_BYTES_MAX).expect("8 MiB fit into every usize");
                Known::Lines(lines::count(&self.desk.run(&asked, limit).await?.ok()?.stdout))
            }
            // Nothing there, or a folder.
            _ => Known::Absent,
        };
        self.lines.put(commit, &place.path, known);
        Ok(known.holds(place))
    }

    /// The files that differ between `from` (nothing where left out) and `commit`, by path.
    ///
    /// # Errors
    /// [`Refused::Unknown`], [`Refused::NotACommit`], [`Refused::TooLarge`].
    pub async fn files(&self, commit: &Digest, from: Option<&Digest>) -> Result<Vec<FileChange>> {
        let from = self.side(from).await?;
        self.is_commit(commit).await?;
        let mut asked = vec!["diff-tree", "-r", "-z", "--raw", "--numstat"];
        asked.extend(PLAIN_DIFF);
        asked.extend(["--end-of-options", from.as_str(), commit.as_str(), "--"]);
        let answer = self.desk.run(&asked, LIST_BYTES_MAX).await?.ok()?;
        if answer.truncated {
            return Err(too_large("bytes of paths", LIST_BYTES_MAX as u64 + 1, LIST_BYTES_MAX as u64));
        }
        let changes = parse_changes(&answer.stdout).ok_or_else(|| answer.unreadable())?;
        if changes.len() > PATHS_MAX {
            return Err(too_large("paths", changes.len() as u64, PATHS_MAX as u64));
        }
        Ok(changes)
    }

    /// The unified difference between `from` (nothing where left out) and `to`, in at most
    /// `bytes_max` bytes before escapes.
    ///
    /// # Errors
    /// [`Refused::Unknown`], [`Refused::NotACommit`].
    pub async fn diff(&self, from: Option<&Digest>, to: &Digest, bytes_max: usize) -> Result<Diff> {
        let from = self.side(from).await?;
        self.is_commit(to).await?;
        self.diff_at(&self.desk, &from, to, bytes_max).await
    }

    /// The difference between two trees that stand at `desk`.
    pub(super) async fn diff_at(
        &self,
        desk: &Git,
        from: &Digest,
        to: &Digest,
        bytes_max: usize,
    ) -> Result<Diff> {
        let mut asked = vec!["diff-tree", "-r", "-p", "--full-index", "--no-color"];
        asked.extend(PLAIN_DIFF);
        asked.extend(["--src-prefix=a/", "--dst-prefix=b/"]);
        asked.extend(["--end-of-options", from.as_str(), to.as_str(), "--"]);
        let answer = desk.run(&asked, bytes_max).await?.ok()?;
        Ok(Diff::cut(answer.stdout, bytes_max, answer.truncated))
    }

    /// All that the commit holds. The limits are checked before the first entry is given.
    ///
    /// # Errors
    /// [`Refused::Unknown`], [`Refused::NotACommit`], [`Refused::TooLarge`].
    pub async fn entries(&self, commit: &Digest) -> Result<Entries> {
        self.is_commit(commit).await?;
        let asked = ["ls-tree", "-r", "-z", "-l", "--full-tree", "--end-of-options", commit.as_str()];
        let answer = self.desk.run(&asked, LIST_BYTES_MAX).await?.ok()?;
        if answer.truncated {
            return Err(too_large("bytes of paths", LIST_BYTES_MAX as u64 + 1, LIST_BYTES_MAX as u64));
        }
        let records: Option<Vec<TreeRecord>> = records(&answer.stdout).map(TreeRecord::parse).collect();
        let records = records.ok_or_else(|| answer.unreadable())?;
        if records.len() > FETCHED_FILES_MAX {
            return Err(too_large("files", records.len() as u64, FETCHED_FILES_MAX as u64));
        }
        if let Some(big) = records.iter().find(|record| record.size > FETCHED_FILE_BYTES_MAX) {
            let what = format!("bytes in {}", RepoPath::from_bytes(&big.path));
            return Err(too_large(what, big.size, FETCHED_FILE_BYTES_MAX));
        }
        let total: u64 = records.iter().map(|record| record.size).sum();
        if total > FETCHED_BYTES_MAX {
            return Err(too_large("bytes", total, FETCHED_BYTES_MAX));
        }
        let (sender, receiver) = mpsc::channel(4);
        let desk = self.desk.clone();
        tokio::spawn(async move {
            if let Err(fault) = send_entries(&desk, records, &sender).await {
                // Nobody listens any more: nobody misses it.
                let _ = sender.send(Err(fault.into())).await;
            }
        });
        Ok(Entries(receiver))
    }

    /// What a ref points to.
    pub(super) async fn resolve(&self, reference: &str) -> Result<Option<Digest>> {
        let asked = ["show-ref", "--verify", "--hash", "--end-of-options", reference];
        let answer = self.refs.run(&asked, SHORT).await?;
        match answer.code {
            Some(0) => Ok(Some(answer.word()?.parse().map_err(|_| answer.unreadable())?)),
            Some(1) => Ok(None),
            // Without --quiet a missing ref ends in 128, as a broken repository does; only the
            // words tell them apart, and the locale is ours.
            Some(128) if answer.said.ends_with("not a valid ref") => Ok(None),
            _ => Err(answer.fault().into()),
        }
    }

    /// That `digest` names a commit here. A short digest in a SHA-256 repository would be taken for
    /// an abbreviation, so the length counts.
    pub(super) async fn is_commit(&self, digest: &Digest) -> Result<()> {
        let unknown = || Failure::from(Refused::Unknown { digest: digest.clone() });
        if digest.as_str().len() != self.format.digits() {
            return Err(unknown());
        }
        let answer = self.desk.run(&["cat-file", "-t", digest.as_str()], SHORT).await?;
        match answer.code {
            Some(0) => match answer.word()? {
                "commit" => Ok(()),
                found => Err(Refused::NotACommit { digest: digest.clone(), found: shown(found, 20) }.into()),
            },
            Some(128) if answer.said.starts_with("fatal: git cat-file: could not get object info") => {
                Err(unknown())
            }
            _ => Err(answer.fault().into()),
        }
    }

    async fn side(&self, from: Option<&Digest>) -> Result<Digest> {
        match from {
            Some(commit) => self.is_commit(commit).await.map(|()| commit.clone()),
            None => Ok(self.format.empty_tree()),
        }
    }

    pub(super) async fn tree(&self, commit: &Digest) -> Result<Digest> {
        self.tree_at(&self.desk, commit).await
    }

    /// The tree of a commit that stands at `desk`.
    pub(super) async fn tree_at(&self, desk: &Git, commit: &Digest) -> Result<Digest> {
        let peeled = format!("{commit}^{{tree}}");
        let answer = desk.run(&["rev-parse", "--verify", "--quiet", &peeled], SHORT).await?.ok()?;
        Ok(answer.word()?.parse().map_err(|_| answer.unreadable())?)
    }

    /// Sorted by id.
    async fn merge_bases(&self, one: &Digest, other: &Digest) -> Result<Vec<Digest>> {
        let bases = self.common(one, other).await?;
        if bases.len() > MERGE_BASES_MAX {
            return Err(too_large("merge bases", bases.len() as u64, MERGE_BASES_MAX as u64));
        }
        Ok(bases)
    }

    /// Merge bases, sorted by id; of a list that is too long, its start.
    pub(super) async fn common(&self, one: &Digest, other: &Digest) -> Result<Vec<Digest>> {
        let asked = ["merge-base", "--all", "--end-of-options", one.as_str(), other.as_str()];
        let answer = self.desk.run(&asked, SHORT * 16).await?;
        match answer.code {
            Some(0) => {}
            None if answer.truncated => {}
            Some(1) if answer.stdout.is_empty() => return Ok(Vec::new()),
            _ => return Err(answer.fault().into()),
        }
        let text = std::str::from_utf8(&answer.stdout).map_err(|_| answer.unreadable())?;
        let whole = if answer.truncated { text.rfind('\n').unwrap_or(0) } else { text.len() };
        let bases: std::result::Result<Vec<Digest>, _> = text[..whole].lines().map(str::parse).collect();
        let mut bases = bases.map_err(|_| answer.unreadable())?;
        bases.sort_unstable();
        Ok(bases)
    }

    async fn collect_paths(
        &self,
        from: &Digest,
        to: &Digest,
        into: &mut BTreeSet<RepoPath>,
        files: &mut BTreeSet<Digest>,
    ) -> Result<()> {
        let mut asked = vec!["diff-tree", "-r", "-z", "--raw", "--no-abbrev"];
        asked.extend(PLAIN_DIFF);
        asked.extend(["--end-of-options", from.as_str(), to.as_str(), "--"]);
        let answer = self.desk.run(&asked, LIST_BYTES_MAX).await?.ok()?;
        let touched = parse_touched(&answer.stdout);
        let touched = if answer.truncated {
            touched.unwrap_or_default()
        } else {
            touched.ok_or_else(|| answer.unreadable())?
        };
        for (path, left) in touched {
            into.insert(path);
            files.extend(left);
        }
        if into.len() > PATHS_MAX || answer.truncated {
            return Err(too_large("paths", into.len() as u64, PATHS_MAX as u64));
        }
        Ok(())
    }

    /// Whether the target's tree would stay as it is if `commit` were merged into it.
    async fn merges_to_nothing(&self, target: &Digest, commit: &Digest) -> Result<bool> {
        let folder = tempfile::tempdir().map_err(Fault::io(&std::env::temp_dir()))?;
        match merge_trees(&self.borrowing_desk(folder.path())?, target, commit).await? {
            Trees::Merge(tree) => Ok(tree == self.tree(target).await?),
            // It does something.
            Trees::Conflict { .. } => Ok(false),
        }
    }

    /// Authors and co-authors of what is reachable from `commit` and not from `target`.
    async fn authors(&self, commit: &Digest, target: Option<&Digest>) -> Result<Vec<Identity>> {
        let without = target.map(|target| format!("^{target}"));
        let mut asked = vec![
            "log",
            "-z",
            "--no-mailmap",
            "--no-patch",
            "--no-show-signature",
            "--no-color",
            "--format=tformat:%H%n%ae%n%an%n%B",
            "--end-of-options",
            commit.as_str(),
        ];
        asked.extend(without.as_deref());
        asked.push("--");
        let answer = self.desk.run(&asked, LIST_BYTES_MAX).await?.ok()?;
        if answer.truncated {
            let limit = LIST_BYTES_MAX as u64;
            return Err(too_large("bytes of commits' authors", limit + 1, limit));
        }
        let mut commits_by: BTreeMap<Identity, Vec<Digest>> = BTreeMap::new();
        for record in records(&answer.stdout) {
            let (id, identities) = parse_authors(record).ok_or_else(|| answer.unreadable())?;
            for identity in identities {
                commits_by.entry(identity).or_default().push(id.clone());
            }
            if commits_by.len() > AUTHORS_MAX {
                return Err(too_large("authors", commits_by.len() as u64, AUTHORS_MAX as u64));
            }
        }
        let Some(target) = target else { return Ok(commits_by.into_keys().collect()) };
        self.without_landed(commits_by, commit, target).await
    }

    /// Drops whoever wrote only commits that the target has.
    ///
    /// Git's list of "reachable from here and not from there" stops early by dates, and then names
    /// landed commits where dates lie by years. It never leaves one out. So each author is
    /// confirmed by one commit that the target truly lacks; the proposed one needs no question.
    async fn without_landed(
        &self,
        commits_by: BTreeMap<Identity, Vec<Digest>>,
        commit: &Digest,
        target: &Digest,
    ) -> Result<Vec<Identity>> {
        let mut landed: BTreeMap<Digest, bool> = BTreeMap::from([(commit.clone(), false)]);
        let mut authors = Vec::new();
        'authors: for (identity, commits) in commits_by {
            if commits.iter().any(|id| landed.get(id) == Some(&false)) {
                authors.push(identity);
                continue;
            }
            for id in commits {
                // Out of questions, the strict side: they count as authors.
                let has_landed = match landed.get(&id) {
                    Some(known) => *known,
                    None if landed.len() > LANDED_ASKED_MAX => false,
                    None => {
                        let asked = ["merge-base", "--is-ancestor", id.as_str(), target.as_str()];
                        let answer = self.desk.run(&asked, SHORT).await?;
                        match answer.code {
                            Some(code @ (0 | 1)) => code == 0,
                            _ => return Err(answer.fault().into()),
                        }
                    }
                };
                landed.insert(id, has_landed);
                if !has_landed {
                    authors.push(identity);
                    continue 'authors;
                }
            }
        }
        Ok(authors)
    }
}

/// A diff of trees as they are: a rename is a deletion and an addition, a submodule counts whatever
/// `.gitmodules` says, and no program stands between.
pub(super) const PLAIN_DIFF: [&str; 4] =
    ["--no-renames", "--ignore-submodules=none", "--no-ext-diff", "--no-textconv"];

fn too_large(what: impl Into<String>, count: u64, limit: u64) -> Failure {
    Refused::TooLarge { what: what.into(), count, limit }.into()
}

/// Lays out an empty bare repository, over one that is there.
pub(super) fn lay_desk(
    folder: &Path,
    format: ObjectFormat,
    borrows: Option<&Path>,
) -> std::result::Result<(), Fault> {
    let write = |name: &str, bytes: &[u8]| {
        let path = folder.join(name);
        // Unchanged files are left alone: another process may be reading them.
        match std::fs::read(&path) {
            Ok(found) if found == bytes => Ok(()),
            _ => std::fs::write(&path, bytes).map_err(Fault::io(&path)),
        }
    };
    for name in ["refs", "objects/info"] {
        let path = folder.join(name);
        std::fs::create_dir_all(&path).map_err(Fault::io(&path))?;
    }
    let config = format!(
        "[core]\n\trepositoryformatversion = 1\n\tbare = true\n[extensions]\n\tobjectformat = {}\n",
        format.name()
    );
    write("config", config.as_bytes())?;
    write("HEAD", b"ref: refs/heads/none\n")?;
    if let Some(objects) = borrows {
        let mut line = objects.as_os_str().as_encoded_bytes().to_vec();
        if line.contains(&b'\n') {
            return Err(Fault::NotARepository {
                path: objects.to_owned(),
                said: "git can't borrow objects from a path with a newline".to_owned(),
            });
        }
        line.push(b'\n');
        write("objects/info/alternates", &line)?;
    }
    Ok(())
}

/// That `name` is a ref's full name by git's rules, so that it can mean nothing else.
pub(super) fn check_ref_name(name: &str) -> std::result::Result<(), Refused> {
    let component = |part: &str| !part.is_empty() && !part.starts_with('.') && !part.ends_with(".lock");
    let forbidden = |c: char| c.is_control() || matches!(c, ' ' | '~' | '^' | ':' | '?' | '*' | '[' | '\\');
    let well_formed = name.starts_with("refs/")
        && name.len() <= 1024
        && name.split('/').count() >= 3
        && name.split('/').all(component)
        && !name.ends_with('.')
        && !name.contains("..")
        && !name.contains("@{")
        && !name.contains(forbidden);
    if well_formed { Ok(()) } else { Err(Refused::RefName { name: shown(name, 200) }) }
}

/// Whether a tree can hold this path, and git be handed it.
fn in_a_tree(path: &[u8]) -> bool {
    let component = |part: &[u8]| !matches!(part, b"" | b"." | b"..");
    path.len() <= 4096 && !path.contains(&0) && path.split(|byte| *byte == b'/').all(component)
}

pub(super) fn os(bytes: &[u8]) -> &OsStr {
    std::os::unix::ffi::OsStrExt::from_bytes(bytes)
}

/// Reads each entry from one `cat-file --batch` and sends it; ends when nobody listens.
async fn send_entries(
    desk: &Git,
    records: Vec<TreeRecord>,
    sender: &mpsc::Sender<Result<Entry>>,
) -> std::result::Result<(), Fault> {
    let mut child = desk.converse(&["cat-file".as_ref(), "--batch".as_ref()])?;
    let mut questions = child.stdin.take().expect("stdin was asked for as a pipe");
    let mut answers = BufReader::new(child.stdout.take().expect("stdout was asked for as a pipe"));
    for record in records {
        let bytes = if record.kind == EntryKind::Submodule {
            Vec::new()
        } else {
            let question = async {
                questions.write_all(format!("{}\n", record.id).as_bytes()).await?;
                questions.flush().await?;
                let mut header = String::new();
                answers.read_line(&mut header).await?;
                // The size was listed, and checked; an answer of another is none.
                if header != format!("{} blob {}\n", record.id, record.size) {
                    return Ok(Err(header));
                }
                let size = usize::try_from(record.size).map_err(std::io::Error::other)?;
                let mut bytes = vec![0; size + 1];
                answers.read_exact(&mut bytes).await?;
                bytes.pop();
                Ok::<_, std::io::Error>(Ok(bytes))
            };
            let verb = || "cat-file".to_owned();
            let unreadable = |said: &str| Fault::Unreadable { verb: verb(), said: shown(said, 200) };
            match tokio::time::timeout(desk.time_max(), question).await {
                Ok(Ok(Ok(bytes))) => bytes,
                Ok(Ok(Err(header))) => return Err(unreadable(&header)),
                Ok(Err(broken)) => return Err(unreadable(&broken.to_string())),
                Err(_) => {
                    return Err(Fault::TimedOut { verb: verb(), time_max: desk.time_max() });
                }
            }
        };
        let entry = Entry { path: RepoPath::from_bytes(&record.path), kind: record.kind, bytes };
        if sender.send(Ok(entry)).await.is_err() {
            break;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_full_ref_name_is_a_target() {
        for good in ["refs/heads/main", "refs/heads/$(id)", "refs/heads/;id", "refs/heads/-x", "refs/tags/v1"]
        {
            assert!(check_ref_name(good).is_ok(), "{good}");
        }
        for bad in [
            "",
            "main",
            "HEAD",
            "-x",
            "--all",
            "refs/heads/",
            "refs/heads",
            "refs/heads/a..b",
            "refs/heads/a^",
            "refs/heads/a@{1}",
            "refs/heads/.a",
            "refs/heads/a.lock",
            "refs//a",
            "refs/heads/a\nb",
            "refs/heads/*",
        ] {
            assert!(check_ref_name(bad).is_err(), "{bad}");
        }
    }
}
