//! The real server with real SQLite, killed at each of its writes, with a disk that fails at each of them,
//! and on files that were damaged: what was acknowledged is there, what was not is settled by asking again,
//! and nothing is silently shorter.

// clippy.toml allows it in tests, but takes only functions marked as tests for such.
#![allow(clippy::unwrap_used)]

// It is shared with the tests of the command line, and each uses its part.
#[allow(dead_code)]
#[path = "support/place.rs"]
mod place;

#[path = "crash/server.rs"]
mod server;
#[path = "crash/story.rs"]
mod story;

#[path = "crash/commits.rs"]
mod commits;
#[path = "crash/damage.rs"]
mod damage;
#[path = "crash/upgrade.rs"]
mod upgrade;
