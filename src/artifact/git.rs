//! The git program: plumbing only, in an environment of our own, within bounds.
//!
//! Nothing of the caller's environment or configuration reaches it, it asks nobody anything, and
//! no hook runs. The commands that are used here start no other program, so that stopping the one
//! process stops all.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};

use super::{Fault, legible};
use crate::protocol::name::shown;

/// How long one call may take.
pub const CALL_TIME_MAX: Duration = Duration::from_secs(30);

/// What is kept of git's complaints, in bytes.
const COMPLAINT_BYTES_MAX: usize = 2048;

/// Answers that are one line.
pub(super) const SHORT: usize = 4096;

/// The git program, set on one git folder.
#[derive(Clone, Debug)]
pub struct Git {
    folder: PathBuf,
    objects: Option<PathBuf>,
    alternates: Option<OsString>,
    time_max: Duration,
    /// What of what it writes is on the disk before it ends.
    fsync: &'static str,
}

/// How a call ended.
#[derive(Debug)]
pub struct Answer {
    verb: String,
    /// Its exit code; none after a signal.
    pub code: Option<i32>,
    /// What it printed, up to the limit.
    pub stdout: Vec<u8>,
    /// Whether there was more. Git was stopped then, and the code means nothing.
    pub truncated: bool,
    /// The start of its complaints, control characters shown.
    pub said: String,
}

impl Git {
    /// Git on the folder at `folder`, an absolute path.
    pub fn at(folder: &Path) -> Self {
        Self {
            folder: folder.to_owned(),
            objects: None,
            alternates: None,
            time_max: CALL_TIME_MAX,
            fsync: "core.fsync=all",
        }
    }

    /// The same with the objects of another repository.
    pub fn with_objects(self, objects: &Path) -> Self {
        Self { objects: Some(objects.to_owned()), ..self }
    }

    /// The same with the objects of a push that isn't accepted yet, as git tells a hook: where they are, and which
    /// others they build on.
    pub fn with_quarantine(self, objects: &Path, alternates: OsString) -> Self {
        Self { objects: Some(objects.to_owned()), alternates: Some(alternates), ..self }
    }

    /// The same with another time limit for each call.
    pub fn with_time_max(self, time_max: Duration) -> Self {
        Self { time_max, ..self }
    }

    /// The same for a folder that is thrown away: nothing waits for the disk.
    pub fn unflushed(self) -> Self {
        Self { fsync: "core.fsync=none", ..self }
    }

    /// The git folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// How long one call may take.
    pub fn time_max(&self) -> Duration {
        self.time_max
    }

    fn command(&self, arguments: &[&OsStr]) -> Command {
        let path = std::env::var_os("PATH").unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into());
        let setting = |key: &str, value: &OsStr| {
            let mut setting = OsString::from(key);
            setting.push(value);
            setting
        };
        let mut command = Command::new("git");
        command
            .env_clear()
            .env("PATH", path)
            .env("HOME", "/nonexistent")
            .env("LC_ALL", "C")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_ATTR_NOSYSTEM", "1")
            .env("GIT_TERMINAL_PROMPT", "0")
            .env("GIT_OPTIONAL_LOCKS", "0")
            // A path is a path, whatever it begins with.
            .env("GIT_LITERAL_PATHSPECS", "1")
            // An object is what its id says, whatever refs/replace/ holds.
            .env("GIT_NO_REPLACE_OBJECTS", "1")
            .env("GIT_NO_LAZY_FETCH", "1");
        if let Some(objects) = &self.objects {
            command.env("GIT_OBJECT_DIRECTORY", objects);
        }
        if let Some(alternates) = &self.alternates {
            command.env("GIT_ALTERNATE_OBJECT_DIRECTORIES", alternates);
        }
        command
            .arg("--no-pager")
            .arg(setting("--git-dir=", self.folder.as_os_str()))
            .arg("-c")
            .arg(setting("safe.directory=", self.folder.as_os_str()))
            .args(["-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false"])
            .args(["-c", "core.quotePath=false", "-c", self.fsync, "-c", "gc.auto=0"])
            .args(arguments)
            // The folder that the server stands in must not matter.
            .current_dir("/")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // Ctrl-C in the server's terminal is the server's to obey.
            .process_group(0)
            .kill_on_drop(true);
        command
    }

    /// Starts git with a pipe to its input, for a conversation; what it complains of is lost.
    pub(super) fn converse(&self, arguments: &[&OsStr]) -> Result<Child, Fault> {
        let mut command = self.command(arguments);
        command.stdin(Stdio::piped()).stderr(Stdio::null());
        command.spawn().map_err(|source| Fault::NotStarted { source })
    }

    /// Runs git to its end, or until it has printed more than `stdout_bytes_max`, or for as long as
    /// a call may take. The first argument is the git command.
    pub async fn run<A: AsRef<OsStr>>(
        &self,
        arguments: &[A],
        stdout_bytes_max: usize,
    ) -> Result<Answer, Fault> {
        self.run_with_input(arguments, &[], stdout_bytes_max).await
    }

    /// The same, with something to read. Git has to read all of it.
    pub async fn run_with_input<A: AsRef<OsStr>>(
        &self,
        arguments: &[A],
        input: &[u8],
        stdout_bytes_max: usize,
    ) -> Result<Answer, Fault> {
        let arguments: Vec<&OsStr> = arguments.iter().map(AsRef::as_ref).collect();
        let verb = arguments.first().map_or_else(String::new, |verb| verb.to_string_lossy().into_owned());
        let mut command = self.command(&arguments);
        if !input.is_empty() {
            command.stdin(Stdio::piped());
        }
        let mut child = command.spawn().map_err(|source| Fault::NotStarted { source })?;
        let stdin = child.stdin.take();
        let stdout = child.stdout.take().expect("stdout was asked for as a pipe");
        let stderr = child.stderr.take().expect("stderr was asked for as a pipe");
        let conversation = async {
            let complaints = tokio::spawn(read_and_drain(stderr, COMPLAINT_BYTES_MAX));
            if let Some(mut stdin) = stdin {
                // Whoever ends without reading it all says why by its code.
                let _ = stdin.write_all(input).await;
            }
            let mut printed = Vec::new();
            let limit = stdout_bytes_max as u64;
            let mut stdout = stdout.take(limit.saturating_add(1));
            stdout.read_to_end(&mut printed).await?;
            let truncated = printed.len() > stdout_bytes_max;
            if truncated {
                printed.truncate(stdout_bytes_max);
                child.kill().await?;
            }
            let status = child.wait().await?;
            let complaints = complaints.await.map_err(std::io::Error::other)??;
            Ok::<_, std::io::Error>((status, printed, truncated, complaints))
        };
        let ended = tokio::time::timeout(self.time_max, conversation).await;
        let Ok(ended) = ended else {
            // Stopped and waited for, so that no half-dead git outlives the answer.
            child.kill().await.map_err(|source| Fault::NotStarted { source })?;
            return Err(Fault::TimedOut { verb, time_max: self.time_max });
        };
        let (status, stdout, truncated, complaints) = ended.map_err(|source| Fault::NotStarted { source })?;
        let said = shown(legible(&complaints).trim(), usize::MAX);
        Ok(Answer { verb, code: status.code(), stdout, truncated, said })
    }
}

impl Answer {
    /// The answer of a call that must end well.
    pub fn ok(self) -> Result<Self, Fault> {
        if self.truncated || self.code == Some(0) { Ok(self) } else { Err(self.fault()) }
    }

    /// An ending that must not be.
    pub fn fault(&self) -> Fault {
        let code = self.code.map_or_else(|| "a signal".to_owned(), |code| code.to_string());
        Fault::Git { verb: self.verb.clone(), code, said: self.said.clone() }
    }

    /// An answer that can't be read.
    pub fn unreadable(&self) -> Fault {
        Fault::Unreadable { verb: self.verb.clone(), said: shown(&legible(&self.stdout), 200) }
    }

    /// The answer as one word.
    pub fn word(&self) -> Result<&str, Fault> {
        let text =
            std::str::from_utf8(&self.stdout).map_err(|_| self.unreadable())?.trim_end_matches(['\n', '\0']);
        if text.is_empty() || text.contains(['\n', '\0']) { Err(self.unreadable()) } else { Ok(text) }
    }
}

/// Keeps the start and reads on, so that a writer never waits for a full pipe.
async fn read_and_drain(mut from: impl AsyncRead + Unpin, bytes_max: usize) -> std::io::Result<Vec<u8>> {
    let mut kept = Vec::new();
    (&mut from).take(bytes_max as u64).read_to_end(&mut kept).await?;
    tokio::io::copy(&mut from, &mut tokio::io::sink()).await?;
    Ok(kept)
}
