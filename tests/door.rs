//! The door: real bare repositories, real clones, real pushes, and the real program as their hook.

#[path = "door/around.rs"]
mod around;
#[path = "door/check.rs"]
mod check;
#[path = "door/crowd.rs"]
mod crowd;
#[path = "door/forged.rs"]
mod forged;
#[path = "door/glass.rs"]
mod glass;
#[path = "door/guarded.rs"]
mod guarded;
#[path = "door/hook.rs"]
mod hook;
#[path = "door/moved.rs"]
mod moved;
#[path = "support/place.rs"]
#[allow(dead_code)] // It is shared with the tests of the command line.
mod place;
#[path = "door/publish.rs"]
mod publish;
#[path = "door/pushes.rs"]
mod pushes;
#[path = "door/remotes.rs"]
mod remotes;
#[path = "door/shop.rs"]
mod shop;
#[path = "door/shut.rs"]
mod shut;
