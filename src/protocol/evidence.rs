//! Evidence: what a vote, a claim or a verdict is given with. It is what a member says; nothing of it is run.

use serde::{Deserialize, Serialize};

use super::rejection::Violation;
use super::team::Ask;

/// A command that was run, as evidence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// The command.
    pub command: String,
    /// How it exited, where that is known.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub exit: Option<i32>,
    /// What it printed, where that was kept.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub output: Option<String>,
}

impl Run {
    /// Whether it exited with 0, and its output was kept.
    pub fn passed(&self) -> bool {
        self.exit == Some(0) && self.output.is_some()
    }
}

impl Ask<'_> {
    /// Refuses a command that was run and isn't named, or that or whose output is too long or holds a secret.
    pub(super) fn check_run(&self, run: &Run, unmet: &mut Vec<Violation>) {
        self.check_text("command", &run.command, unmet);
        self.check_given("command", &run.command, unmet);
        if let Some(output) = &run.output {
            self.check_text("output", output, unmet);
        }
    }
}
