//! A channel that is a command of this machine.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::process::Command;

use crate::coordinator::Notice;
use crate::protocol::name::shown;
use crate::shell::{self, Tail};

/// How long a command may take.
const TIME_MAX: Duration = Duration::from_secs(30);

/// What is kept of its errors, in bytes.
const SAID_BYTES_MAX: usize = 2048;

/// What it said of a failure, in characters.
const SAID_MAX: usize = 300;

/// The variables that a command keeps of the server's; no credential is among them.
const KEPT: [&str; 7] =
    ["PATH", "HOME", "LANG", "DISPLAY", "XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS", "TMPDIR"];

/// Runs the command by the shell, beside the charter, with the text on its standard input and what it is
/// about in its environment. Success is exit 0; one that takes too long is ended.
pub(super) async fn run(line: &str, folder: &Path, notice: &Notice, text: &str) -> Result<(), String> {
    let opened = &notice.escalation.opened;
    let mut command = shell::command(&[line], folder, &KEPT);
    command
        .env("COUNTERSIGN_TEAM", notice.team.as_str())
        .env("COUNTERSIGN_ESCALATION", opened.id.to_string())
        .env("COUNTERSIGN_CAUSE", opened.cause.as_str())
        .env("COUNTERSIGN_LEVEL", notice.level.to_string())
        .env("COUNTERSIGN_SUBJECT", shown(&opened.subject, SAID_MAX))
        .stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| format!("the command can't be run: {error}"))?;
    let group = child.id();
    let input = child.stdin.take();
    let text = text.to_owned();
    tokio::spawn(async move {
        if let Some(mut input) = input {
            // A command that reads nothing of it is no failure.
            let _ = input.write_all(text.as_bytes()).await;
        }
    });
    let mut said = Tail::of(SAID_BYTES_MAX);
    let errors = child.stderr.take();
    let ended = shell::follow(&mut child, errors, &mut said);
    let Ok(ended) = tokio::time::timeout(TIME_MAX, ended).await else {
        end_group(group).await;
        return Err(format!("the command took longer than {} s, and was ended", TIME_MAX.as_secs()));
    };
    let status = ended.map_err(|error| format!("the command got lost: {error}"))?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("the command ended with {status}: {}", last_line(&said)))
    }
}

/// Ends a command with all that it started.
async fn end_group(group: Option<u32>) {
    let Some(group) = group else { return };
    let ended = Command::new("kill").args(["-KILL", "--", &format!("-{group}")]).status().await;
    if !ended.is_ok_and(|status| status.success()) {
        tracing::warn!(group, "a command that took too long could not be ended");
    }
}

fn last_line(said: &Tail) -> String {
    let text = String::from_utf8_lossy(said.kept());
    shown(text.trim_end().lines().last().unwrap_or_default(), SAID_MAX)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{channel, notice};
    use super::*;

    #[tokio::test]
    async fn a_command_gets_the_words_and_no_credential() {
        let folder = tempfile::tempdir().expect("a folder");
        let about = notice(channel(), 1, "sec owes");
        let line = "cat > told; env >> told; echo $COUNTERSIGN_ESCALATION:$COUNTERSIGN_LEVEL >> told";
        run(line, folder.path(), &about, "the words\n").await.expect("it ran");
        let told = std::fs::read_to_string(folder.path().join("told")).expect("it wrote");
        assert!(told.starts_with("the words\n") && told.ends_with("e3:1\n"), "{told}");
        assert!(!told.contains("TOKEN") && !told.contains("CARGO"), "{told}");
    }

    #[tokio::test]
    async fn a_command_that_fails_says_how() {
        let folder = tempfile::tempdir().expect("a folder");
        let about = notice(channel(), 0, "sec owes");
        let failed =
            run("echo no display >&2; exit 3", folder.path(), &about, "").await.expect_err("it fails");
        assert!(failed.contains("exit status: 3") && failed.ends_with("no display"), "{failed}");
    }

    #[tokio::test]
    async fn what_a_command_leaves_running_or_says_without_end_holds_nothing_up() {
        let folder = tempfile::tempdir().expect("a folder");
        let about = notice(channel(), 0, "sec owes");
        // It holds its output open for longer than a command may take.
        let left = "sleep 60 & echo $! > left; exit 0";
        run(left, folder.path(), &about, "").await.expect("it ended in good order");
        let pid = std::fs::read_to_string(folder.path().join("left")).expect("it wrote");
        let ended = std::process::Command::new("kill").arg(pid.trim()).status().expect("kill runs");
        assert!(ended.success(), "what it left running still runs");
        let loud = "head -c 50000000 /dev/zero | tr '\\0' 'x' >&2; echo >&2; echo last >&2; exit 1";
        let failed = run(loud, folder.path(), &about, "").await.expect_err("it fails");
        assert!(failed.ends_with("last"), "{failed}");
    }
}
