//! What every store promises, and what the one on disk adds: modes, the lock, and that damage of
//! any kind is refused by name and place.

// clippy.toml allows it in tests, but takes only functions marked as tests for such.
#![allow(clippy::unwrap_used)]

#[path = "store/suite.rs"]
mod suite;

#[path = "store/damage.rs"]
mod damage;
#[path = "store/disk.rs"]
mod disk;
#[path = "store/folder.rs"]
mod folder;
#[path = "store/views.rs"]
mod views;
