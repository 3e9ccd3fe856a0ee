//! What the tests share: plays, and the stages that they are played on.

#![allow(dead_code)] // Each test binary uses its part.

pub mod coordinated;
pub mod play;
pub mod screen;
pub mod served;
