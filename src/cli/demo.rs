//! `countersign demo`.

use super::failure::Failure;
use super::output::Answer;

/// Plays a whole review in a temporary folder.
pub async fn run() -> Result<Answer, Failure> {
    Err(Failure::refused("NO_DEMO", "this build has no demo", "run: countersign help"))
}
