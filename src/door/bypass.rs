//! Who could go around the door, and how to close that. A hook holds whoever comes through git; whoever may write
//! the repository's files doesn't come through git.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;

use super::hook::{Hooks, Standing, Way};
use crate::artifact::git::Git;

/// One way around, and what closes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bypass {
    /// A stable name.
    pub name: &'static str,
    /// Who could do what.
    pub who: String,
    /// How to close it.
    pub close: String,
}

/// Looks for ways around. What can't be looked at counts as open.
pub fn look(git: &Git, hooks: &Hooks, way: &Way, standing: Standing) -> Vec<Bypass> {
    let mut found = Vec::new();
    if standing != Standing::Ours {
        found.push(Bypass {
            name: "hook",
            who: format!(
                "everybody who may push: the hook {} is {}",
                hooks.hook().display(),
                standing.as_str()
            ),
            close: "run: countersign door install".to_owned(),
        });
    }
    found.extend(overridden(git));
    let repository = git.folder();
    let files = [
        repository.to_owned(),
        repository.join("config"),
        repository.join("refs"),
        repository.join("packed-refs"),
        repository.join("objects"),
        hooks.folder.clone(),
        hooks.hook(),
        hooks.kept(),
        way.program.clone(),
    ];
    let mut open: Vec<String> = Vec::new();
    for file in &files {
        match writable_by_others(file) {
            Ok(None) => {}
            Ok(Some(whom)) => open.push(format!("{} ({whom})", file.display())),
            Err(why) if why.kind() == io::ErrorKind::NotFound => {}
            Err(why) => open.push(format!("{} ({why})", file.display())),
        }
    }
    if !open.is_empty() {
        found.push(Bypass {
            name: "permissions",
            who: format!("whoever may write these moves refs without git: {}", open.join(", ")),
            close: format!("run: chmod -R go-w {}", quoted(repository)),
        });
    }
    match (owner(repository), owner(&way.home)) {
        (Ok(one), Ok(other)) if one != other => found.push(Bypass {
            name: "other-owner",
            who: format!("user {one} owns the repository, and the server's home is user {other}'s"),
            close: "give both to one user, the server's own: pushes of others can't ask the server, and are refused"
                .to_owned(),
        }),
        (Ok(one), Ok(_)) => found.push(Bypass {
            name: "same-user",
            who: format!("everything that runs as user {one}: it can write the refs, the hook and the server's home"),
            close: "have the server and the repository belong to a user of their own, and members push over ssh \
                    (git-shell as that user) or http (git http-backend)"
                .to_owned(),
        }),
        (one, other) => found.push(Bypass {
            name: "unknown-owner",
            who: format!("nobody can say whose these are: {one:?}, {other:?}"),
            close: "run it as the user whose the repository and the home are".to_owned(),
        }),
    }
    found
}

/// A hooks folder that is set for a user or the machine stands in for the repository's, unless the repository
/// sets its own. Asked as whoever looks, with their own configuration.
fn overridden(git: &Git) -> Option<Bypass> {
    let asked = Command::new("git")
        .args(["config", "--show-origin", "--get", "core.hooksPath"])
        .current_dir(git.folder())
        .env("GIT_DIR", git.folder())
        .output();
    let said = match asked {
        Ok(answer) if answer.status.code() == Some(1) => return None,
        Ok(answer) if answer.status.success() => String::from_utf8_lossy(&answer.stdout).trim().to_owned(),
        Ok(answer) => String::from_utf8_lossy(&answer.stderr).trim().to_owned(),
        Err(why) => why.to_string(),
    };
    // The repository's own is the one that was followed; its origin is a path inside the repository.
    let own = ["file:config", &format!("file:{}", git.folder().join("config").display())]
        .iter()
        .any(|origin| said.split('\t').next() == Some(origin));
    (!own).then(|| Bypass {
        name: "hooks-path",
        who: format!("git of this user takes its hooks from elsewhere: {said}"),
        close: "set it in the repository, where it wins: git config core.hooksPath hooks".to_owned(),
    })
}

/// Who beside its owner may write it.
fn writable_by_others(path: &Path) -> io::Result<Option<&'static str>> {
    let mode = fs::metadata(path)?.mode();
    Ok(match (mode & 0o020 != 0, mode & 0o002 != 0) {
        (_, true) => Some("everybody"),
        (true, false) => Some("its group"),
        (false, false) => None,
    })
}

fn owner(path: &Path) -> io::Result<u32> {
    fs::metadata(path).map(|found| found.uid())
}

fn quoted(path: &Path) -> String {
    format!("'{}'", path.display().to_string().replace('\'', "'\\''"))
}
