//! The door: a guarded repository whose protected refs move only to what a completed circle holds.
//!
//! ```text
//!   git push ──► receive-pack ──► hooks/pre-receive ──► countersign door pre-receive ──► the server
//!                                                              │                             │
//!                           a hook that was there before ◄─────┘ let through ◄── judge ◄─────┘
//! ```
//!
//! This module knows git's side: which ref is what ([`Guard`]), what a push asks for ([`Move`]), what is said of
//! it ([`judge()`]), where a person opened the door for a while ([`Grants`]), how the hook gets into a repository and
//! out again ([`hook`]), which refs stand otherwise than the door left them ([`ledger`]), and who could go around
//! it ([`bypass`]). It talks to no server and keeps no log.
//!
//! Whatever can't be told keeps the door shut. Publishing doesn't come through here: the server moves refs inside
//! the repository, where no pre-receive hook runs, so that there is no word that a push could say to be let in.

pub mod bypass;
mod fault;
mod grant;
mod held;
pub mod hook;
mod judge;
pub mod ledger;
mod moves;
pub mod refs;

pub use fault::DoorFault;
pub use grant::{Grant, Grants};
pub use held::{Held, held};
pub use judge::{Guard, RefKind, judge};
pub use moves::{MOVES_BYTES_MAX, Move, NotMoves, is_nothing, parse_moves};
