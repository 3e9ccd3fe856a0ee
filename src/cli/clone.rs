//! The caller's clone of the repository: where its git folder is, and what is asked of git there.
//!
//! Here git runs as the member's own, with the member's configuration and credentials, which is not
//! so on the server's side. It never gets anything of ours in its environment.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use std::{env, fs};

use tokio::process::Command;

use super::failure::Failure;
use super::output::visible;
use crate::protocol::name::{Digest, MemberName, TeamName};
use crate::protocol::rejection::Violation;

/// How long git may take to push.
const PUSH_TIME_MAX: Duration = Duration::from_secs(120);

/// Lines of git's own words that are told.
const GIT_LINES_MAX: usize = 6;

/// The git folder of a clone. In a linked work tree it is that work tree's own, so each has its own
/// member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CloneFolder {
    git: PathBuf,
}

impl CloneFolder {
    /// That of the clone which the current folder is in: what `GIT_DIR` names, or the nearest `.git`.
    pub fn here() -> Option<Self> {
        match env::var_os("GIT_DIR") {
            Some(named) if !named.is_empty() => Self::of_git(Path::new(&named)),
            _ => Self::above(&env::current_dir().ok()?),
        }
    }

    /// That of the clone at `folder`, or of the one it is in.
    pub fn above(folder: &Path) -> Option<Self> {
        folder.ancestors().find_map(|folder| Self::of_dot_git(&folder.join(".git")))
    }

    /// Whether a clone's files begin at `folder`.
    pub fn at(folder: &Path) -> bool {
        Self::of_dot_git(&folder.join(".git")).is_some()
    }

    /// A folder, or the file that a linked work tree or a submodule has in its place.
    fn of_dot_git(path: &Path) -> Option<Self> {
        if path.is_dir() {
            return Self::of_git(path);
        }
        let text = fs::read_to_string(path).ok()?;
        let named = text.strip_prefix("gitdir:")?.trim();
        Self::of_git(&path.parent()?.join(named))
    }

    fn of_git(path: &Path) -> Option<Self> {
        // Any git folder has a HEAD; an empty `.git` that something left behind has none.
        path.join("HEAD").symlink_metadata().ok()?;
        Some(Self { git: path.canonicalize().ok()? })
    }

    /// What Countersign keeps in it: a member's token, the server's address, what was told here.
    pub fn folder(&self) -> PathBuf {
        self.git.join("countersign")
    }

    /// Where that member's token is.
    pub fn token_file(&self, member: &MemberName) -> PathBuf {
        self.folder().join("tokens").join(member.as_str())
    }

    /// Where the server's address is, with the team.
    pub fn place_file(&self) -> PathBuf {
        self.folder().join("server.json")
    }

    /// The member whose token it holds, where it holds one alone.
    pub fn only_member(&self) -> Option<MemberName> {
        let held = fs::read_dir(self.folder().join("tokens")).ok()?;
        let mut names = held.filter_map(|file| file.ok()?.file_name().to_str()?.parse().ok());
        names.next().filter(|_| names.next().is_none())
    }

    /// The full id of the commit that `revision` names here.
    pub async fn commit(&self, revision: &str) -> Result<Digest, Failure> {
        let wanted = format!("{revision}^{{commit}}");
        let args = ["rev-parse", "--verify", "--quiet", "--end-of-options", &wanted];
        let answered = git(args, PUSH_TIME_MAX).await?;
        let id = answered.out.trim().parse().ok().filter(|_| answered.success);
        id.ok_or_else(|| Failure::usage(format!("\"{}\" names no commit of this clone", visible(revision))))
    }

    /// Where a commit is pushed to be proposed: the remote that is named, or `served`, where the server says
    /// the repository is. A path of the server's machine that isn't there on this one gives way to the clone's
    /// own remote.
    pub async fn stage_at(&self, named: Option<&str>, served: &str) -> Result<String, Failure> {
        if let Some(name) = named {
            return match self.has_remote(name).await? {
                true => Ok(name.to_owned()),
                false => Err(Failure::usage(format!("this clone has no remote \"{}\"", visible(name)))),
            };
        }
        let is_path = served.starts_with('/');
        if !is_path || Path::new(served).exists() {
            return Ok(served.to_owned());
        }
        let chosen = git(["config", "--get", "remote.pushDefault"], PUSH_TIME_MAX).await?;
        let chosen = Some(chosen.out.trim().to_owned()).filter(|name| !name.is_empty());
        let own = chosen.unwrap_or_else(|| "origin".to_owned());
        Ok(if self.has_remote(&own).await? { own } else { served.to_owned() })
    }

    /// Whether the clone has a remote of that name; git would take another word for a path.
    async fn has_remote(&self, name: &str) -> Result<bool, Failure> {
        Ok(git(["remote"], PUSH_TIME_MAX).await?.out.lines().any(|remote| remote == name))
    }

    /// Puts the commit where the server takes it from: a ref named by its content, open to every
    /// member, in the repository at `url`, or behind the remote of that name.
    pub async fn stage(&self, commit: &Digest, url: &str) -> Result<(), Failure> {
        let refspec = format!("{commit}:refs/countersign/staging/{commit}");
        // Whatever the clone is configured to push along with a branch stays here, and its hooks are
        // for pushes that publish.
        let args = [
            "push",
            "--quiet",
            "--no-verify",
            "--no-follow-tags",
            "--no-signed",
            "--recurse-submodules=no",
            "--end-of-options",
            url,
            &refspec,
        ];
        let answered = git(args, PUSH_TIME_MAX).await?;
        if answered.success {
            return Ok(());
        }
        let said: Vec<String> = answered
            .err
            .lines()
            .filter(|line| !line.trim().is_empty())
            .take(GIT_LINES_MAX)
            .map(visible)
            .collect();
        let table = Failure::from(Violation::NotStaged { commit: commit.to_string() });
        let message = format!("git did not push {commit} to {}:\n{}", visible(url), said.join("\n"));
        let remedy = format!("see that you can push there: git push {} {refspec}", visible(url));
        Err(Failure::refused(table.code(), message, remedy)
            .with("commit", commit.to_string())
            .with("repository", url))
    }
}

/// Where a clone's token speaks to: what `member token --into` leaves beside it.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Place {
    /// The server's address.
    pub addr: String,
    /// The team.
    pub team: TeamName,
}

impl Place {
    /// As it was left in that clone.
    pub fn of(clone: &CloneFolder) -> Option<Self> {
        serde_json::from_slice(&fs::read(clone.place_file()).ok()?).ok()
    }
}

struct Answered {
    success: bool,
    out: String,
    err: String,
}

async fn git<A: AsRef<OsStr>>(
    args: impl IntoIterator<Item = A>,
    time_max: Duration,
) -> Result<Answered, Failure> {
    let mut command = Command::new("git");
    command.args(args).stdin(Stdio::null()).kill_on_drop(true);
    // A question on the terminal would wait for ever where an agent runs.
    command.env("GIT_TERMINAL_PROMPT", "0").env("LC_ALL", "C");
    for (name, _) in env::vars_os() {
        if name.to_string_lossy().starts_with("COUNTERSIGN_") {
            command.env_remove(name);
        }
    }
    let ran = tokio::time::timeout(time_max, command.output()).await;
    match ran {
        Ok(Ok(output)) => Ok(Answered {
            success: output.status.success(),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }),
        Ok(Err(problem)) => {
            Err(Failure::refused("NO_GIT", format!("git can't be started: {problem}"), "install git"))
        }
        Err(_) => Err(Failure::refused(
            "GIT_TIMED_OUT",
            format!("git was stopped after {} s", time_max.as_secs()),
            "see that the repository can be reached, then run it again",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_clone_is_found_also_by_a_link() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let git = root.join("clone/.git");
        fs::create_dir_all(git.join("worktrees/two")).unwrap();
        fs::create_dir_all(root.join("clone/src/deep")).unwrap();
        fs::create_dir_all(root.join("two")).unwrap();
        fs::create_dir_all(root.join("clone/empty/.git")).unwrap();
        for head in [git.join("HEAD"), git.join("worktrees/two/HEAD")] {
            fs::write(head, "ref: refs/heads/main\n").unwrap();
        }
        fs::write(root.join("two/.git"), "gitdir: ../clone/.git/worktrees/two\n").unwrap();

        let found = |path: &str| CloneFolder::above(&root.join(path)).map(|clone| clone.git);
        assert_eq!(found("clone/src/deep"), Some(git.clone()));
        assert_eq!(found("clone/empty"), Some(git.clone()));
        assert_eq!(found("two"), Some(git.join("worktrees/two")));
    }

    #[test]
    fn a_clone_speaks_for_its_member_only_where_it_holds_one() {
        let folder = tempfile::tempdir().unwrap();
        let clone = CloneFolder { git: folder.path().to_owned() };
        assert_eq!(clone.only_member(), None);
        fs::create_dir_all(clone.folder().join("tokens")).unwrap();
        fs::write(clone.token_file(&"app".parse().unwrap()), "").unwrap();
        assert_eq!(clone.only_member(), Some("app".parse().unwrap()));
        fs::write(clone.token_file(&"sec".parse().unwrap()), "").unwrap();
        assert_eq!(clone.only_member(), None);
    }
}
