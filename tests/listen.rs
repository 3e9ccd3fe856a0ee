//! Who owes something is woken, once for each thing: on the coordinator with a clock that moves by hand, and by
//! real processes against a real server that is killed. The rules of waking are shown by tests/plays/listen.

// clippy.toml allows it in tests, but takes only functions marked as tests for such.
#![allow(clippy::unwrap_used)]

mod support;

#[path = "listen/blocked.rs"]
mod blocked;
#[path = "support/place.rs"]
#[allow(dead_code)] // It is shared with the tests of the command line.
mod place;
#[path = "listen/processes.rs"]
mod processes;
#[path = "listen/raced.rs"]
mod raced;
