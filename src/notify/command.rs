//! A channel that is a command of this machine.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::process::Command;

use crate::coordinator::Notice;
use crate::protocol::name::shown;

/// How long a command may take.
const TIME_MAX: Duration = Duration::from_secs(30);

/// What it said of a failure, in characters.
const SAID_MAX: usize = 300;

/// The variables that a command keeps of the server's; no credential is among them.
const KEPT: [&str; 7] =
    ["PATH", "HOME", "LANG", "DISPLAY", "XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS", "TMPDIR"];

/// Runs the command by the shell, beside the charter, with the text on its standard input and what it is
/// about in its environment. Success is exit 0; one that takes too long is ended.
pub(super) async fn run(line: &str, folder: &Path, notice: &Notice, text: &str) -> Result<(), String> {
    let opened = &notice.escalation.opened;
    let mut command = Command::new("sh");
    command.arg("-c").arg(line).current_dir(folder).env_clear();
    for name in KEPT {
        if let Some(value) = std::env::var_os(name) {
            command.env(name, value);
        }
    }
    command
        .env("COUNTERSIGN_TEAM", notice.team.as_str())
        .env("COUNTERSIGN_ESCALATION", opened.id.to_string())
        .env("COUNTERSIGN_CAUSE", opened.cause.as_str())
        .env("COUNTERSIGN_LEVEL", notice.level.to_string())
        .env("COUNTERSIGN_SUBJECT", shown(&opened.subject, SAID_MAX))
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    let mut child = command.spawn().map_err(|error| format!("the command can't be run: {error}"))?;
    let input = child.stdin.take();
    let text = text.to_owned();
    let write = async move {
        if let Some(mut input) = input {
            // A command that reads nothing of it is no failure.
            let _ = input.write_all(text.as_bytes()).await;
        }
    };
    let ended = async { tokio::join!(child.wait_with_output(), write).0 };
    let ended = tokio::time::timeout(TIME_MAX, ended).await;
    let Ok(ended) = ended else {
        return Err(format!("the command took longer than {} s", TIME_MAX.as_secs()));
    };
    let output = ended.map_err(|error| format!("the command got lost: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let said = shown(said.trim_end().lines().last().unwrap_or_default(), SAID_MAX);
    Err(format!("the command ended with {}: {said}", output.status))
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
}
