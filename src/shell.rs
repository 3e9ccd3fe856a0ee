//! A command line of the charter's, run by the shell: with an environment of its own, as a group of processes, and
//! followed to its end, of which no more is kept than its last words.

use std::io;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{Child, Command};

/// How long is waited for the end of the output once the command has ended: what it left running may hold it open.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// A script for the shell with its arguments, in `folder`. Of the server's environment it keeps the variables that
/// are named, so that no credential is among them. It is the first of a group of its own, so that all that it starts can be
/// ended with it.
pub fn command(script: &[&str], folder: &Path, kept: &[&str]) -> Command {
    let mut command = Command::new("sh");
    command.arg("-c").args(script).current_dir(folder).env_clear();
    for name in kept {
        if let Some(value) = std::env::var_os(name) {
            command.env(name, value);
        }
    }
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .kill_on_drop(true);
    command
}

/// Follows a command to its end, and what it says on `from`. It has ended when the command has, whatever that left
/// running.
///
/// # Errors
/// Where the system can't say how it ended.
pub async fn follow(
    child: &mut Child,
    from: Option<impl AsyncRead + Unpin>,
    said: &mut Tail,
) -> io::Result<ExitStatus> {
    let reading = said.read(from);
    tokio::pin!(reading);
    let mut silent = false;
    loop {
        tokio::select! {
            () = &mut reading, if !silent => silent = true,
            ended = child.wait() => {
                if !silent {
                    // They may still be on their way; nothing is lost where they are not.
                    let _ = tokio::time::timeout(LAST_WORDS, &mut reading).await;
                }
                return ended;
            }
        }
    }
}

/// The end of what a command says, whatever it says.
#[derive(Debug)]
pub struct Tail {
    bytes_max: usize,
    kept: Vec<u8>,
    dropped: usize,
}

impl Tail {
    /// One that keeps so many bytes.
    pub fn of(bytes_max: usize) -> Self {
        Self { bytes_max, kept: Vec::new(), dropped: 0 }
    }

    /// What is kept.
    pub fn kept(&self) -> &[u8] {
        &self.kept
    }

    /// How many bytes came before that.
    pub fn dropped(&self) -> usize {
        self.dropped
    }

    async fn read(&mut self, from: Option<impl AsyncRead + Unpin>) {
        let Some(mut from) = from else { return };
        let mut piece = [0; 4096];
        // What can't be read any longer has ended.
        while let Ok(read @ 1..) = from.read(&mut piece).await {
            self.take(&piece[..read]);
        }
    }

    /// More of it.
    pub fn take(&mut self, piece: &[u8]) {
        self.kept.extend_from_slice(piece);
        let more = self.kept.len().saturating_sub(self.bytes_max);
        self.kept.drain(..more);
        self.dropped += more;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tail_keeps_the_end_and_says_how_much_went_before() {
        let mut tail = Tail::of(3);
        tail.take(b"ab");
        assert_eq!((tail.kept(), tail.dropped()), (&b"ab"[..], 0));
        tail.take(b"cdef");
        assert_eq!((tail.kept(), tail.dropped()), (&b"def"[..], 3));
    }
}
