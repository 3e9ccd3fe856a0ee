//! The core: the protocol itself, and nothing else. No I/O, clock, async, randomness or hash order
//! crosses this line: time, facts and rules come in as values, events and rejections go out.

#![warn(clippy::disallowed_types, clippy::disallowed_methods)]

pub mod artifact;
pub mod charter;
pub mod name;
pub mod rule;
pub mod time;
