//! Merging what a circle holds onto its target: git's own merge machinery, at a desk, never in a work tree.
//!
//! The versions are taken one after the other. What the target holds already adds nothing, what follows it moves
//! it forward, and anything else becomes a merge commit with trailers. All that such a commit says, its time
//! included, is given, so that merging again makes the very same commits: after a crash nothing is made twice.

use std::fmt::Write;
use std::path::Path;

use super::answers::records;
use super::git::{Answer, Git, SHORT};
use super::repository::{Repository, lay_desk};
use super::{Fault, Result};
use crate::protocol::artifact::RepoPath;
use crate::protocol::name::{Digest, VersionRef, shown};
use crate::protocol::time::Time;

/// Paths of a conflict that are told; further ones are counted.
pub const CONFLICT_PATHS_MAX: usize = 20;

/// Who makes merge commits, as git writes it.
const COMMITTER: &str = "Countersign <countersign@localhost>";

/// The longest subject of a merge commit, in characters.
const SUBJECT_CHARS_MAX: usize = 72;

/// What git may print when it lists conflicts, in bytes.
const LIST_BYTES_MAX: usize = 64 << 20;

/// A version that is to be merged, and what its merge commit says of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Which version.
    pub reference: VersionRef,
    /// Its commit.
    pub commit: Digest,
    /// What its producer says about it; the first line becomes the commit's subject.
    pub summary: String,
    /// The commit's trailers, each `Key: value`, in order.
    pub trailers: Vec<String>,
}

/// What is merged onto a target, in which order and when.
#[derive(Clone, Copy, Debug)]
pub struct Merging<'a> {
    /// Where the target is; nowhere where it doesn't exist yet.
    pub tip: Option<&'a Digest>,
    /// The versions, in the order in which their circle lists them.
    pub parts: &'a [Part],
    /// Whether the target may only move forward to the versions' own commits.
    pub forward_only: bool,
    /// The time that merge commits carry.
    pub at: Time,
}

/// A merge commit that was made for one version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MergeCommit {
    /// Its id.
    pub commit: Digest,
    /// The version that it merges.
    pub reference: VersionRef,
}

/// Where a target comes to stand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Merged {
    /// The commit; where the target was, if it holds everything already.
    pub to: Digest,
    /// Its tree.
    pub tree: Digest,
    /// The merge commits on the way there, oldest first. None where it only moved forward.
    pub merges: Vec<MergeCommit>,
}

/// What came of merging.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MergeOutcome {
    /// All of it merges.
    Merged(Merged),
    /// One version doesn't merge with the target and the versions before it.
    Conflict {
        /// Which one.
        reference: VersionRef,
        /// The first paths that are in conflict.
        paths: Vec<RepoPath>,
        /// How many there are in all.
        count: usize,
    },
    /// One version doesn't follow the target, and may not be merged.
    NotForward {
        /// Which one.
        reference: VersionRef,
    },
}

impl Repository {
    /// Tries a merge and keeps nothing of it.
    ///
    /// # Errors
    /// [`Refused::Unknown`](super::Refused::Unknown), [`Refused::NotACommit`](super::Refused::NotACommit).
    pub async fn try_merge(&self, merging: Merging<'_>) -> Result<MergeOutcome> {
        let folder = tempfile::tempdir().map_err(Fault::io(&std::env::temp_dir()))?;
        let desk = self.borrowing_desk(folder.path())?;
        self.merge_at(&desk, merging).await
    }

    /// Merges, and keeps the commits among the repository's objects. No ref is touched. Of a merge that conflicts
    /// nothing is kept.
    ///
    /// # Errors
    /// As [`Repository::try_merge`].
    pub async fn merge(&self, merging: Merging<'_>) -> Result<MergeOutcome> {
        match self.try_merge(merging).await? {
            MergeOutcome::Merged(_) => self.merge_at(&self.desk, merging).await,
            other => Ok(other),
        }
    }

    /// A desk in an empty folder that borrows the repository's objects, and keeps what is written there to itself.
    pub(super) fn borrowing_desk(&self, folder: &Path) -> Result<Git> {
        let place = folder.canonicalize().map_err(Fault::io(folder))?;
        lay_desk(&place, self.format, Some(&self.objects))?;
        Ok(Git::at(&place).with_time_max(self.desk.time_max()).unflushed())
    }

    async fn merge_at(&self, desk: &Git, merging: Merging<'_>) -> Result<MergeOutcome> {
        for commit in merging.tip.into_iter().chain(merging.parts.iter().map(|part| &part.commit)) {
            self.is_commit(commit).await?;
        }
        let (mut at, mut merges) = (merging.tip.cloned(), Vec::new());
        for part in merging.parts {
            let reference = part.reference.clone();
            match put(desk, at.as_ref(), part, merging.forward_only, merging.at).await? {
                Onto::At { commit, made } => {
                    if made.is_some() {
                        merges.push(MergeCommit { commit: commit.clone(), reference });
                    }
                    at = Some(commit);
                }
                Onto::Conflict { paths, count } => {
                    return Ok(MergeOutcome::Conflict { reference, paths, count });
                }
                Onto::NotForward => return Ok(MergeOutcome::NotForward { reference }),
            }
        }
        let to = at.expect("a circle holds at least one version");
        let tree = self.tree_at(desk, &to).await?;
        Ok(MergeOutcome::Merged(Merged { to, tree, merges }))
    }
}

/// What comes of putting a version onto a commit.
pub(super) enum Onto {
    /// Where that leads, and the tree of the merge commit that was made for it; none where what was there holds the
    /// version already, or the version follows it.
    At { commit: Digest, made: Option<Digest> },
    /// It doesn't merge.
    Conflict { paths: Vec<RepoPath>, count: usize },
    /// It doesn't follow, and may not be merged.
    NotForward,
}

/// Puts a version onto what is there.
pub(super) async fn put(
    desk: &Git,
    there: Option<&Digest>,
    part: &Part,
    forward_only: bool,
    at: Time,
) -> Result<Onto> {
    let stands = |commit: &Digest| Onto::At { commit: commit.clone(), made: None };
    let Some(tip) = there else { return Ok(stands(&part.commit)) };
    if is_ancestor(desk, &part.commit, tip).await? {
        return Ok(stands(tip));
    }
    if is_ancestor(desk, tip, &part.commit).await? {
        return Ok(stands(&part.commit));
    }
    if forward_only {
        return Ok(Onto::NotForward);
    }
    Ok(match merge_trees(desk, tip, &part.commit).await? {
        Trees::Merge(tree) => {
            let commit = write_merge(desk, &tree, tip, part, at).await?;
            Onto::At { commit, made: Some(tree) }
        }
        Trees::Conflict { paths, count } => Onto::Conflict { paths, count },
    })
}

/// What came of merging two commits.
pub(super) enum Trees {
    Merge(Digest),
    Conflict { paths: Vec<RepoPath>, count: usize },
}

/// Merges two commits, as trees.
pub(super) async fn merge_trees(desk: &Git, tip: &Digest, commit: &Digest) -> Result<Trees> {
    let asked = [
        "merge-tree",
        "--write-tree",
        "-z",
        "--name-only",
        "--no-messages",
        "--allow-unrelated-histories",
        tip.as_str(),
        commit.as_str(),
    ];
    let answer = desk.run(&asked, LIST_BYTES_MAX).await?;
    match answer.code {
        Some(0) if !answer.truncated => Ok(Trees::Merge(id_of(&answer)?)),
        // Only a list of conflicts is too long to be read whole; its last path may be cut.
        Some(1) | None if answer.truncated || answer.code == Some(1) => {
            // The tree with the conflicts in it comes first, then each path once.
            let names: Vec<&[u8]> = records(&answer.stdout).skip(1).filter(|name| !name.is_empty()).collect();
            let paths =
                names.iter().take(CONFLICT_PATHS_MAX).map(|name| RepoPath::from_bytes(name)).collect();
            Ok(Trees::Conflict { paths, count: names.len() })
        }
        _ => Err(answer.fault().into()),
    }
}

/// Writes the merge of `part` onto `tip`: a commit of just these words, whatever this machine's clock, user and
/// configuration say.
async fn write_merge(desk: &Git, tree: &Digest, tip: &Digest, part: &Part, at: Time) -> Result<Digest> {
    let text = merge_text(tree, tip, part, at);
    let asked = ["hash-object", "-t", "commit", "-w", "--stdin"];
    let answer = desk.run_with_input(&asked, text.as_bytes(), SHORT).await?.ok()?;
    Ok(id_of(&answer)?)
}

fn merge_text(tree: &Digest, tip: &Digest, part: &Part, at: Time) -> String {
    // Before 1970 git knows no time.
    let seconds = at.0.div_euclid(1_000_000).max(0);
    let (name, version) = (&part.reference.proposal, part.reference.version);
    let said = part.summary.lines().next().unwrap_or_default().trim();
    let subject = format!("Publish {name}@{version}: {said}");
    let mut text = format!(
        "tree {tree}\nparent {tip}\nparent {}\nauthor {COMMITTER} {seconds} +0000\n\
         committer {COMMITTER} {seconds} +0000\n\n{}\n",
        part.commit,
        shown(subject.trim_end_matches([':', ' ']), SUBJECT_CHARS_MAX)
    );
    if !part.trailers.is_empty() {
        text.push('\n');
    }
    for trailer in &part.trailers {
        // One line each: a trailer says nothing that it wasn't given.
        writeln!(text, "{}", shown(trailer, usize::MAX)).expect("a String takes every write");
    }
    text
}

/// Whether `of` is or follows `one`.
pub(super) async fn is_ancestor(desk: &Git, one: &Digest, of: &Digest) -> Result<bool> {
    let answer = desk.run(&["merge-base", "--is-ancestor", one.as_str(), of.as_str()], SHORT).await?;
    match answer.code {
        Some(code @ (0 | 1)) => Ok(code == 0),
        _ => Err(answer.fault().into()),
    }
}

fn id_of(answer: &Answer) -> std::result::Result<Digest, Fault> {
    answer.word()?.parse().map_err(|_| answer.unreadable())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_merge_says_what_it_merges_and_no_more() {
        let id = |digit: &str| digit.repeat(40).parse::<Digest>().unwrap();
        let part = Part {
            reference: "parser@2:333333333333".parse().unwrap(),
            commit: id("3"),
            summary: "Faster\nCo-authored-by: Eve <eve@x>".to_owned(),
            trailers: vec!["Approved-by: sec\nSigned-off-by: eve".to_owned()],
        };
        let text = merge_text(&id("1"), &id("2"), &part, Time(1_790_000_000_900_000));
        let (one, two, three) = (id("1"), id("2"), id("3"));
        assert_eq!(
            text,
            format!(
                "tree {one}\nparent {two}\nparent {three}\n\
                 author Countersign <countersign@localhost> 1790000000 +0000\n\
                 committer Countersign <countersign@localhost> 1790000000 +0000\n\n\
                 Publish parser@2: Faster\n\nApproved-by: sec\\u{{a}}Signed-off-by: eve\n"
            )
        );
        let silent = Part { summary: String::new(), trailers: Vec::new(), ..part };
        assert!(merge_text(&one, &two, &silent, Time(-1)).ends_with(" 0 +0000\n\nPublish parser@2\n"));
    }
}
