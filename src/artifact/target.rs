//! How versions stand to their target now: whether they still change anything, merge, and leave what landed alone.
//!
//! All of it is asked of a merge that is tried at a desk of its own and thrown away. Work is *taken back* where
//! merging a version gives a file a state that it had before work landed on it, although that work is younger than
//! the version's base. A plain merge never does that by itself: it takes a version that has the landed work in its
//! history and drops it, or one whose content stems from before it although its history doesn't.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;

use tokio::sync::Mutex;

use super::answers::{Difference, parse_difference, records};
use super::git::{Answer, Git};
use super::merge::{Onto, Part, is_ancestor, put};
use super::repository::{LIST_BYTES_MAX, PLAIN_DIFF, Repository, os};
use super::{Diff, Fault, Result};
use crate::protocol::artifact::RepoPath;
use crate::protocol::name::{Digest, VersionRef};
use crate::protocol::review::{Compared, Comparison, Conflict, NAMED_MAX, TargetMoved, Undone};
use crate::protocol::time::Time;

/// Places at which a version's work may have begun that are looked at: the oldest.
const BASES_MAX: usize = 16;
/// Paths by which git is asked for what landed; of more it is asked for everything.
const PATHS_ASKED_MAX: usize = 200;

/// What git said last, by what it was asked. The same versions and the same target have the same answer.
#[derive(Debug, Default)]
pub struct Answers(Vec<(Comparison, Option<Digest>, Vec<TargetMoved>)>);

/// Answers that are kept.
const ANSWERS_MAX: usize = 512;

impl Answers {
    /// What was said, where it was asked before.
    pub fn get(&self, of: &Comparison, tip: Option<&Digest>) -> Option<Vec<TargetMoved>> {
        let found = self.0.iter().find(|(known, at, _)| at.as_ref() == tip && known == of);
        found.map(|(.., reports)| reports.clone())
    }

    /// Keeps what was said; the oldest is let go.
    pub fn keep(&mut self, of: Comparison, tip: Option<Digest>, reports: Vec<TargetMoved>) {
        let same = |known: &Comparison| known.versions.first() == of.versions.first();
        self.0.retain(|(known, ..)| !same(known));
        if self.0.len() >= ANSWERS_MAX {
            self.0.remove(0);
        }
        self.0.push((of, tip, reports));
    }
}

impl Repository {
    /// What was asked and said before. Whoever asks holds it meanwhile.
    pub fn compared(&self) -> &Mutex<Answers> {
        &self.compared
    }

    /// How versions that finish together stand to their target, which is at `tip`: one report for each.
    ///
    /// # Errors
    /// [`Refused::Unknown`](super::Refused::Unknown), [`Refused::NotACommit`](super::Refused::NotACommit).
    pub async fn compare(&self, of: &Comparison, tip: Option<&Digest>) -> Result<Vec<TargetMoved>> {
        for commit in tip.into_iter().chain(of.versions.iter().map(|version| &version.commit)) {
            self.is_commit(commit).await?;
        }
        let folder = tempfile::tempdir().map_err(Fault::io(&std::env::temp_dir()))?;
        let desk = self.borrowing_desk(folder.path())?;
        let trial = Trial { repository: self, desk, tip, forward_only: of.forward_only };
        let mut reports = Vec::new();
        let mut alone = Vec::new();
        for version in &of.versions {
            let mut report = TargetMoved {
                target: of.target.clone(),
                commit: tip.cloned(),
                reference: version.reference.clone(),
                empty: false,
                undone: None,
                conflict: None,
            };
            match trial.onto(tip, version).await? {
                Ok((_, tree)) => {
                    let before = match tip {
                        Some(tip) => self.tree(tip).await?,
                        None => self.format.empty_tree(),
                    };
                    report.empty = tree == before;
                    if let Some(tip) = tip.filter(|_| !report.empty) {
                        report.undone = trial.undone(tip, &tree, version).await?;
                    }
                    alone.push(version);
                }
                Err(conflict) => report.conflict = Some(conflict),
            }
            reports.push(report);
        }
        for (reference, conflict) in trial.together(&alone).await? {
            let found = reports.iter_mut().find(|report| report.reference == reference);
            found.into_iter().for_each(|report| report.conflict = Some(conflict.clone()));
        }
        Ok(reports)
    }
}

impl Repository {
    /// What merging a version would change on its target, which is at `tip`, in at most `bytes_max` bytes before
    /// escapes. Nothing where it doesn't merge.
    ///
    /// # Errors
    /// [`Refused::Unknown`](super::Refused::Unknown), [`Refused::NotACommit`](super::Refused::NotACommit).
    pub async fn diff_on_target(
        &self,
        tip: Option<&Digest>,
        version: &Compared,
        bytes_max: usize,
    ) -> Result<Option<Diff>> {
        self.is_commit(&version.commit).await?;
        let folder = tempfile::tempdir().map_err(Fault::io(&std::env::temp_dir()))?;
        let desk = self.borrowing_desk(folder.path())?;
        let trial = Trial { repository: self, desk, tip, forward_only: false };
        let Ok((_, tree)) = trial.onto(tip, version).await? else { return Ok(None) };
        let from = tip.cloned().unwrap_or_else(|| self.format.empty_tree());
        self.diff_at(&trial.desk, &from, &tree, bytes_max).await.map(Some)
    }
}

/// A desk at which merges are tried.
struct Trial<'a> {
    repository: &'a Repository,
    desk: Git,
    tip: Option<&'a Digest>,
    forward_only: bool,
}

/// Where putting a version onto a commit leads, and what that holds; or why it doesn't go.
type Put = std::result::Result<(Digest, Digest), Conflict>;

impl Trial<'_> {
    async fn onto(&self, at: Option<&Digest>, version: &Compared) -> Result<Put> {
        let part = Part {
            reference: version.reference.clone(),
            commit: version.commit.clone(),
            summary: String::new(),
            trailers: Vec::new(),
        };
        let not = |paths, count, not_forward| {
            Err(Conflict { with: Vec::new(), paths, paths_total: total(count), not_forward })
        };
        Ok(match put(&self.desk, at, &part, self.forward_only, Time(0)).await? {
            Onto::At { commit, made: Some(tree) } => Ok((commit, tree)),
            Onto::At { commit, made: None } => {
                let tree = self.repository.tree_at(&self.desk, &commit).await?;
                Ok((commit, tree))
            }
            Onto::Conflict { mut paths, count } => {
                paths.truncate(NAMED_MAX);
                not(paths, count, false)
            }
            Onto::NotForward => not(Vec::new(), 0, true),
        })
    }

    /// The versions that don't merge with those before them, each with which.
    async fn together(&self, versions: &[&Compared]) -> Result<Vec<(VersionRef, Conflict)>> {
        let mut conflicts = Vec::new();
        let mut at = self.tip.cloned();
        let mut merged: Vec<&Compared> = Vec::new();
        for version in versions.iter().copied().filter(|_| versions.len() > 1) {
            match self.onto(at.as_ref(), version).await? {
                Ok((commit, _)) => {
                    at = Some(commit);
                    merged.push(version);
                }
                Err(conflict) => {
                    let mut with = Vec::new();
                    for before in &merged {
                        if self.conflict(before, version).await? {
                            with.push(before.reference.clone());
                        }
                    }
                    // None of them alone, but all of them together.
                    if with.is_empty() {
                        with = merged.iter().map(|before| before.reference.clone()).collect();
                    }
                    conflicts.push((version.reference.clone(), Conflict { with, ..conflict }));
                }
            }
        }
        Ok(conflicts)
    }

    async fn conflict(&self, one: &Compared, other: &Compared) -> Result<bool> {
        Ok(match self.onto(self.tip, one).await? {
            Ok((commit, _)) => self.onto(Some(&commit), other).await?.is_err(),
            Err(_) => false,
        })
    }

    /// What merging a version, which leaves `tree`, takes back of the work that landed since its base.
    async fn undone(&self, tip: &Digest, tree: &Digest, version: &Compared) -> Result<Option<Undone>> {
        let changed = self.differences(tip.as_str(), tree.as_str()).await?;
        let changed = by_path(&changed)?;
        let mut found = Found::default();
        for base in self.bases(tip, version).await? {
            let landed = self.differences(base.as_str(), tip.as_str()).await?;
            let landed = by_path(&landed)?;
            let mut both: BTreeMap<&[u8], &Difference<'_>> = BTreeMap::new();
            both.extend(changed.iter().filter(|(path, _)| landed.contains_key(*path)).map(|(p, d)| (*p, d)));
            if !both.is_empty() {
                self.taken_back(tip, &base, both, &mut found).await?;
            }
        }
        let gone: Vec<RepoPath> =
            found.files.iter().filter(|(_, gone)| **gone).map(|(p, _)| p.clone()).collect();
        if !gone.is_empty() {
            let renamed = self.renamed(tip, tree).await?;
            gone.iter().filter(|path| renamed.contains(*path)).for_each(|path| found.forget(path));
        }
        Ok(found.told())
    }

    /// Those of `changed` to which merging gives a state that they had before work landed on them since `base`.
    async fn taken_back(
        &self,
        tip: &Digest,
        base: &Digest,
        mut changed: BTreeMap<&[u8], &Difference<'_>>,
        found: &mut Found,
    ) -> Result<()> {
        let without = format!("^{base}");
        let mut asked: Vec<&OsStr> = ["log", "-z", "--first-parent", "-m", "-r", "--raw", "--no-abbrev"]
            .into_iter()
            .chain(["--no-color", "--no-show-signature", "--format=tformat:%H"])
            .chain(PLAIN_DIFF)
            .chain(["--end-of-options", tip.as_str(), without.as_str(), "--"])
            .map(OsStr::new)
            .collect();
        if changed.len() <= PATHS_ASKED_MAX {
            asked.extend(changed.keys().map(|path| os(path)));
        }
        // Cut, it is the newest that is known, and that is strict enough.
        let answer = self.desk.run(&asked, LIST_BYTES_MAX).await?.ok()?;
        let mut records = records(&answer.stdout);
        let mut commit: Option<Digest> = None;
        // One commit may touch thousands of files.
        let mut in_base: BTreeMap<Digest, bool> = BTreeMap::new();
        let mut touching: BTreeMap<&[u8], Vec<Digest>> = BTreeMap::new();
        while let Some(record) = records.next() {
            let text = record.strip_prefix(b"\n").unwrap_or(record);
            if text.is_empty() {
                continue;
            }
            if !text.starts_with(b":") {
                commit = std::str::from_utf8(text).ok().and_then(|id| id.parse().ok());
                if commit.is_none() {
                    return Err(answer.unreadable().into());
                }
                continue;
            }
            let step = match parse_difference(record, &mut records) {
                Some(step) => step,
                None if answer.truncated => break,
                None => return Err(answer.unreadable().into()),
            };
            let (Some(commit), Some(change)) = (&commit, changed.get(step.path)) else { continue };
            let commits = touching.entry(step.path).or_default();
            commits.push(commit.clone());
            if step.before != change.after {
                continue;
            }
            // Git's list stops by dates, and may name what the base has where dates lie.
            let before = match in_base.get(commit) {
                Some(known) => *known,
                None => is_ancestor(&self.desk, commit, base).await?,
            };
            in_base.insert(commit.clone(), before);
            if !before {
                found.add(RepoPath::from_bytes(step.path), change.after.is_nothing(), commits);
            }
            changed.remove(step.path);
        }
        Ok(())
    }

    /// Where the work of a version may have begun: where its commits, or those of the versions before it, left
    /// what the target holds now. The target itself is none: nothing has landed since.
    async fn bases(&self, tip: &Digest, version: &Compared) -> Result<Vec<Digest>> {
        let mut bases = self.begun(tip, &version.commit).await?;
        for earlier in &version.earlier {
            bases.extend(self.repository.common(tip, earlier).await?);
        }
        let mut seen = BTreeSet::from([tip.clone()]);
        bases.retain(|base| seen.insert(base.clone()));
        bases.truncate(BASES_MAX);
        Ok(bases)
    }

    /// The parents that the target holds of commits that it doesn't, oldest first; a version that merged the target
    /// on its way has several.
    async fn begun(&self, tip: &Digest, commit: &Digest) -> Result<Vec<Digest>> {
        let common = self.repository.common(tip, commit).await?;
        let without = format!("^{tip}");
        let asked =
            ["rev-list", "--topo-order", "--parents", "--end-of-options", commit.as_str(), &without, "--"];
        let answer = self.desk.run(&asked, LIST_BYTES_MAX).await?.ok()?;
        let text = std::str::from_utf8(&answer.stdout).map_err(|_| answer.unreadable())?;
        let mut parents: Vec<(&str, Vec<&str>)> = Vec::new();
        for line in text.lines() {
            let mut ids = line.split(' ');
            parents.push((ids.next().unwrap_or_default(), ids.collect()));
        }
        // Git's list may name what the target has where dates lie by years: all that a common commit leads to.
        let mut landed: BTreeSet<&str> = common.iter().map(Digest::as_str).collect();
        for (id, of) in &parents {
            if landed.contains(id) {
                landed.extend(of);
            }
        }
        let own: BTreeSet<&str> =
            parents.iter().map(|(id, _)| *id).filter(|id| !landed.contains(id)).collect();
        let mut begun: Vec<Digest> = Vec::new();
        for (_, of) in parents.iter().rev().filter(|(id, _)| own.contains(id)) {
            for parent in of.iter().filter(|parent| !own.contains(*parent)) {
                begun.push(parent.parse().map_err(|_| answer.unreadable())?);
            }
        }
        begun.extend(common);
        Ok(begun)
    }

    async fn differences(&self, from: &str, to: &str) -> Result<Answer> {
        let mut asked = vec!["diff-tree", "-r", "-z", "--raw", "--no-abbrev"];
        asked.extend(PLAIN_DIFF);
        asked.extend(["--end-of-options", from, to, "--"]);
        Ok(self.desk.run(&asked, LIST_BYTES_MAX).await?.ok()?)
    }

    /// Paths that went elsewhere: what they held is there still.
    async fn renamed(&self, tip: &Digest, tree: &Digest) -> Result<BTreeSet<RepoPath>> {
        let mut asked = vec!["diff-tree", "-r", "-z", "--raw", "--no-abbrev", "--find-renames"];
        asked.extend(&PLAIN_DIFF[1..]);
        asked.extend(["--end-of-options", tip.as_str(), tree.as_str(), "--"]);
        let answer = self.desk.run(&asked, LIST_BYTES_MAX).await?.ok()?;
        let mut renamed = BTreeSet::new();
        let mut records = records(&answer.stdout);
        while let Some(head) = records.next() {
            let found = match parse_difference(head, &mut records) {
                Some(found) => found,
                None if answer.truncated => break,
                None => return Err(answer.unreadable().into()),
            };
            renamed.extend(found.from.map(RepoPath::from_bytes));
        }
        Ok(renamed)
    }
}

/// Differences by path; of a list that was cut, its start.
fn by_path(answer: &Answer) -> std::result::Result<BTreeMap<&[u8], Difference<'_>>, Fault> {
    let mut out = BTreeMap::new();
    let mut records = records(&answer.stdout);
    while let Some(head) = records.next() {
        match parse_difference(head, &mut records) {
            Some(found) => drop(out.insert(found.path, found)),
            None if answer.truncated => break,
            None => return Err(answer.unreadable()),
        }
    }
    Ok(out)
}

/// What was found to be taken back.
#[derive(Default)]
struct Found {
    /// Each file, and whether it would be gone.
    files: BTreeMap<RepoPath, bool>,
    /// The commits that touched each, newest first.
    commits: BTreeMap<RepoPath, Vec<Digest>>,
}

impl Found {
    fn add(&mut self, path: RepoPath, gone: bool, commits: &[Digest]) {
        self.files.insert(path.clone(), gone);
        let known = self.commits.entry(path).or_default();
        // The one that reaches further back names all that the other does.
        if commits.len() > known.len() {
            *known = commits.to_vec();
        }
    }

    fn forget(&mut self, path: &RepoPath) {
        self.files.remove(path);
        self.commits.remove(path);
    }

    fn told(self) -> Option<Undone> {
        if self.files.is_empty() {
            return None;
        }
        let mut seen = BTreeSet::new();
        let oldest_first = self.commits.into_values().flat_map(|commits| commits.into_iter().rev());
        let commits: Vec<Digest> = oldest_first.filter(|commit| seen.insert(commit.clone())).collect();
        Some(Undone {
            files_total: total(self.files.len()),
            files: self.files.into_keys().take(NAMED_MAX).collect(),
            commits_total: total(commits.len()),
            commits: commits.into_iter().take(NAMED_MAX).collect(),
        })
    }
}

fn total(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}
