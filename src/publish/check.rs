//! The charter's check: a command that must pass on what is about to be published.
//!
//! It finds the merged tree byte for byte in a folder of its own, without a `.git`: no hook, filter or attribute had a
//! say in it. It is run as one group of processes, and that ends as a whole: at its time limit, and with the server,
//! also where that is killed. What leaves the group, for a session of its own, goes on.
//!
//! It is no sandbox: it runs as the server's user, and may do what that may.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use crate::artifact::folder::Extraction;
use crate::artifact::repository::Repository;
use crate::artifact::{Entry, EntryKind, Failure, Fault};
use crate::protocol::name::{CircleRef, Digest, TeamName, shown};
use crate::protocol::review::Run;
use crate::protocol::secret;
use crate::protocol::time::Span;
use crate::shell::{self, Tail};

/// What is kept of a check's output: its end, in bytes.
pub const OUTPUT_BYTES_MAX: usize = 16 << 10;

/// The last line of the output, in characters, as it is quoted.
const QUOTED_MAX: usize = 200;

/// The variables that a check keeps of the server's. No credential is among them; those that stand in the user's files
/// it can read.
const KEPT: [&str; 4] = ["PATH", "HOME", "LANG", "TMPDIR"];

/// Runs the command, and holds the other end of its input: once that closes, because the command has ended or the
/// server has, all that is in its group still is ended.
const GUARDED: &str = r#"exec 3<&0 </dev/null
(cat <&3; kill -KILL 0) >/dev/null 2>&1 &
exec sh -c "$1" 3<&- 2>&1"#;

/// What is run, and what for.
pub(super) struct About<'a> {
    pub(super) line: &'a str,
    pub(super) time_max: Span,
    pub(super) team: &'a TeamName,
    pub(super) circle: &'a CircleRef,
    pub(super) target: &'a str,
}

/// What came of a check.
pub(super) struct Checked {
    /// The command, its exit code where it has one, and the end of its output.
    pub(super) run: Run,
    /// Why it is no pass; nothing where it is one.
    pub(super) because: Option<String>,
}

/// Runs the check on what `commit` holds. Folders that a killed server left below `folder` are removed first.
pub(super) async fn run(
    repository: &Repository,
    commit: &Digest,
    folder: &Path,
    about: &About<'_>,
) -> Result<Checked, Failure> {
    let place = clear(folder)?;
    let tree = place.path().join("tree");
    lay_out(repository, commit, &tree).await?;
    let ended = run_in(&tree, place.path(), about).await.map_err(Fault::io(&tree))?;
    let output = told(&ended.output);
    let time_max = about.time_max.0 / 1_000_000;
    let because = match (ended.timed_out, ended.exit) {
        (true, _) => Some(format!("took longer than {time_max} s, and was ended")),
        (false, Some(0)) => None,
        (false, Some(exit)) => Some(format!("ended with exit {exit}{}", quoted(&output))),
        (false, None) => Some(format!("was killed{}", quoted(&output))),
    };
    let exit = if ended.timed_out { None } else { ended.exit };
    Ok(Checked { run: Run { command: about.line.to_owned(), exit, output: Some(output) }, because })
}

fn quoted(output: &str) -> String {
    match output.lines().rev().find(|line| !line.trim().is_empty()) {
        Some(line) => format!(": {}", shown(line.trim(), QUOTED_MAX)),
        None => String::new(),
    }
}

/// A new folder below `folder`, in which nothing else is left.
fn clear(folder: &Path) -> Result<tempfile::TempDir, Fault> {
    std::fs::create_dir_all(folder).map_err(Fault::io(folder))?;
    for left in std::fs::read_dir(folder).map_err(Fault::io(folder))? {
        let left: PathBuf = left.map_err(Fault::io(folder))?.path();
        if let Err(why) = std::fs::remove_dir_all(&left) {
            tracing::warn!(path = %left.display(), %why, "what an old check left can't be removed");
        }
    }
    tempfile::Builder::new().prefix("run-").tempdir_in(folder).map_err(Fault::io(folder))
}

/// Writes all that the commit holds into a new folder. Links come last, so that nothing is written through one.
async fn lay_out(repository: &Repository, commit: &Digest, tree: &Path) -> Result<(), Failure> {
    let mut entries = repository.entries(commit).await?;
    let mut extraction = Extraction::into_new(tree)?;
    let mut links: Vec<Entry> = Vec::new();
    while let Some(entry) = entries.next().await {
        let entry = entry?;
        if entry.kind == EntryKind::Symlink {
            links.push(entry);
            continue;
        }
        extraction = tokio::task::spawn_blocking(move || extraction.write(&entry).map(|()| extraction))
            .await
            .expect("writing a file doesn't panic")?;
    }
    for link in links {
        // As a file it stands where the link is to be, so that its path was looked at as any other's.
        extraction.write(&link)?;
        let place = tree.join(std::ffi::OsStr::new(&os(&link.path.to_bytes())));
        let target = os(&link.bytes);
        std::fs::remove_file(&place).and_then(|()| symlink(&target, &place)).map_err(Fault::io(&place))?;
    }
    Ok(())
}

fn os(bytes: &[u8]) -> std::ffi::OsString {
    std::os::unix::ffi::OsStringExt::from_vec(bytes.to_vec())
}

struct Ended {
    exit: Option<i32>,
    timed_out: bool,
    output: Tail,
}

async fn run_in(tree: &Path, temporary: &Path, about: &About<'_>) -> std::io::Result<Ended> {
    let mut command = shell::command(&[GUARDED, "sh", about.line], tree, &KEPT);
    command
        .env("TMPDIR", temporary)
        .env("COUNTERSIGN_TEAM", about.team.as_str())
        .env("COUNTERSIGN_CIRCLE", about.circle.to_string())
        .env("COUNTERSIGN_TARGET", about.target)
        // Errors join it, so that all lines stand as they came.
        .stdout(Stdio::piped());
    let mut child = command.spawn()?;
    // Closed when this ends, however it ends: then the whole group does.
    let _leash = child.stdin.take();
    let mut output = Tail::of(OUTPUT_BYTES_MAX);
    let out = child.stdout.take();
    let limit = Duration::from_micros(u64::try_from(about.time_max.0).unwrap_or(0));
    let ended = tokio::time::timeout(limit, shell::follow(&mut child, out, &mut output));
    match ended.await {
        Ok(ended) => Ok(Ended { exit: ended?.code(), timed_out: false, output }),
        Err(_) => {
            // Its group follows once the leash is let go of.
            child.kill().await?;
            Ok(Ended { exit: None, timed_out: true, output })
        }
    }
}

/// The output as a text in whole lines, without what must not stand in a log.
fn told(output: &Tail) -> String {
    let text = String::from_utf8_lossy(output.kept());
    let text = match output.dropped() {
        0 => text.as_ref(),
        _ => text.split_once('\n').map_or(text.as_ref(), |(_, whole)| whole),
    };
    let mut told = match output.dropped() {
        0 => String::new(),
        dropped => format!("[{dropped} bytes before this are left out]\n"),
    };
    let hidden = secret::find(text).is_some();
    for line in text.split_inclusive('\n') {
        if hidden && secret::find(line).is_some() {
            told.push_str("[a line with a secret is left out]\n");
        } else {
            told.extend(line.chars().map(|c| if c == '\0' { '\u{fffd}' } else { c }));
        }
    }
    // A key of several lines is in none of them.
    if secret::find(&told).is_some() { "[it held a secret, and is left out]\n".to_owned() } else { told }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_end_of_an_output_is_kept_and_no_secret() {
        let mut tail = Tail::of(OUTPUT_BYTES_MAX);
        tail.take(&b"x".repeat(OUTPUT_BYTES_MAX));
        tail.take(b"\nlast\0\n");
        assert_eq!(told(&tail), "[7 bytes before this are left out]\nlast\u{fffd}\n");
        let mut tail = Tail::of(OUTPUT_BYTES_MAX);
        tail.take(format!("one\nkey AKIA{} here\ntwo\n", "IOSFODNN7EXAMPLE").as_bytes());
        assert_eq!(told(&tail), "one\n[a line with a secret is left out]\ntwo\n");
        assert_eq!(quoted("a\nb \n\n"), ": b");
    }
}
