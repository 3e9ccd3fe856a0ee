//! The core: the protocol itself, and nothing else. No I/O, clock, async, randomness or hash order
//! crosses this line: time, facts and rules come in as values, events and rejections go out.
//!
//! ```text
//!                 who, when, command, facts, judge
//!                               │
//!              ┌────────────────▼───────────────┐
//!   Team ────► │ handle: decides, changes nothing│ ────► events, and an answer or a rejection
//!     ▲        └─────────────────────────────────┘              │
//!     └────────────────────── apply: folds ◄───────────────────-┘
//!
//!   Team ────► obligations · requirements · aftermath · effects · next_deadline      (pure questions)
//! ```
//!
//! `apply` never fails and never consults a rule: an event is a fact. Whoever drives the core stores
//! the events of a decision before anybody sees its answer.

#![warn(clippy::disallowed_types, clippy::disallowed_methods)]

pub mod adoption;
pub mod answer;
pub mod artifact;
pub mod charter;
pub mod deadline;
pub mod delivery;
pub mod escalation;
pub mod event;
pub mod evidence;
pub mod minutes;
pub mod name;
pub mod obligation;
mod ownership;
#[cfg(feature = "planted")]
pub mod planted;
mod progress;
pub mod recovery;
pub mod referee;
pub mod rejection;
pub mod review;
pub mod room;
pub mod rule;
pub mod secret;
mod snapshot;
mod team;
pub mod time;
pub mod waiting;

pub use answer::Answer;
pub use event::{CharterAdopted, Event, PhaseOpened};
pub use obligation::{Obligation, ObligationKind};
pub use progress::Aftermath;
pub use rejection::{Rejection, Violation};
pub use team::{Adopt, Adopted, Command, Decision, Effect, RefMove, Team};
