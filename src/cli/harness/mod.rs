//! Harnesses: the programs that run coding agents, as far as they run hooks. What they say to a hook,
//! what they read of it, and where their settings name the commands that they run.
//!
//! A harness knows forms alone; what is said is for [`super::hook`] to decide. A further one is a file
//! beside `claude_code`, and a name here.

mod claude_code;
mod settings;

use std::fmt;
use std::path::{Path, PathBuf};

use clap::ValueEnum;

/// A harness that is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Harness {
    /// Anthropic's Claude Code
    ClaudeCode,
}

/// When a harness runs a hook.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Occasion {
    /// A session begins, goes on, or was compacted
    SessionStart,
    /// Somebody wrote to the agent
    Prompt,
    /// The agent is about to end its turn
    Stop,
}

impl Occasion {
    const ALL: [Self; 3] = [Self::SessionStart, Self::Prompt, Self::Stop];

    fn name(self) -> &'static str {
        match self {
            Self::SessionStart => "session-start",
            Self::Prompt => "prompt",
            Self::Stop => "stop",
        }
    }
}

/// Which of a harness's settings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Scope {
    /// Of this clone, for its user alone
    #[default]
    Local,
    /// Of this clone, for everybody who works on the project
    Project,
    /// Of the user, in every folder
    User,
}

/// What a harness says when it runs a hook.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Asked {
    /// Where the agent works.
    pub folder: Option<PathBuf>,
    /// Whether the agent goes on already because a stop hook kept it.
    pub kept_already: bool,
}

/// What a hook has to say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said {
    /// Nothing that anybody needs to know.
    Nothing,
    /// To the agent: don't end the turn, for this reason.
    GoOn(String),
    /// To the agent, beside what it reads anyhow.
    Beside(String),
    /// To whoever looks on: nothing is held up.
    Aside(String),
}

/// Why settings can't be edited.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingsFault {
    /// They are no JSON.
    #[error("{0}")]
    NoJson(String),
    /// Something stands where the hooks belong.
    #[error("\"{0}\" is not of the form that {1} reads")]
    Form(String, Harness),
}

/// A line of ours in a harness's settings: when it is run, and the command.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Line {
    occasion: Occasion,
    command: String,
}

impl Harness {
    /// Reads what it says to a hook.
    ///
    /// # Errors
    /// What is wrong with it, in words.
    pub fn read(self, input: &str) -> Result<Asked, String> {
        match self {
            Self::ClaudeCode => claude_code::read(input),
        }
    }

    /// What is said, as it reads it; empty where there is nothing to say.
    pub fn print(self, occasion: Occasion, said: &Said) -> String {
        match self {
            Self::ClaudeCode => claude_code::print(occasion, said),
        }
    }

    /// Where its settings are, for a clone at `root` and a user at `home`.
    pub fn settings(self, scope: Scope, root: &Path, home: &Path) -> PathBuf {
        match self {
            Self::ClaudeCode => claude_code::settings(scope, root, home),
        }
    }

    /// Settings in which its hooks run `program` with these flags. Whatever else stands in them stays as it is, and
    /// lines of ours from before are replaced.
    ///
    /// # Errors
    /// Both of [`SettingsFault`].
    pub fn with_hooks(self, text: &str, program: &Path, flags: &[String]) -> Result<String, SettingsFault> {
        let speaks: String = flags.iter().map(|flag| format!(" {}", settings::quoted(flag))).collect();
        let lines = Occasion::ALL.map(|occasion| Line {
            occasion,
            command: format!(
                "{}{speaks} hook {self} {}",
                settings::quoted(&program.to_string_lossy()),
                occasion.name()
            ),
        });
        match self {
            Self::ClaudeCode => claude_code::with_lines(text, &lines),
        }
    }

    /// Settings in which nothing of ours is left; what was there only to hold it goes too.
    ///
    /// # Errors
    /// Both of [`SettingsFault`].
    pub fn without_hooks(self, text: &str) -> Result<String, SettingsFault> {
        match self {
            Self::ClaudeCode => claude_code::without_lines(text),
        }
    }

    /// Whether a command is a line of ours for it, whichever program and member it names.
    fn is_ours(self, command: &str) -> bool {
        command.contains("countersign")
            && Occasion::ALL
                .iter()
                .any(|occasion| command.ends_with(&format!(" hook {self} {}", occasion.name())))
    }
}

impl fmt::Display for Harness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ClaudeCode => "claude-code",
        })
    }
}
