//! Countersign: a protocol for teams of coding agents, enforced by a server.
//!
//! In reading order:
//!
//! - [`protocol`]: the core. Pure: no clock, no I/O, no async, no randomness.
//! - [`judge`]: the engine behind the core's rules.
//! - [`store`]: the append-only logs, and who may speak for whom.
//! - [`artifact`]: what versions are made of: commits of a repository, bundles of files.
//! - [`door`]: git: which refs move only to what was reviewed, and the hook that sees to it.
//! - [`coordinator`]: one task a team; decides, commits, answers.
//! - [`home`]: the folder of a server, and who may read what in it.
//! - [`shell`]: a command line of the charter's, run within bounds.
//! - [`notify`]: persons are told of escalations: webhooks, commands.
//! - [`publish`]: what a circle completed comes to stand in the repository.
//! - [`wire`]: the only module that knows protobuf.
//! - [`page`]: the room page: what a browser gets.
//! - [`server`], [`client`], [`cli`]: they translate, and hold no rules.

#![warn(clippy::unwrap_used)]

pub mod artifact;
pub mod cli;
pub mod client;
pub mod coordinator;
pub mod door;
pub mod home;
pub mod judge;
pub mod notify;
pub mod page;
pub mod protocol;
pub mod publish;
pub mod server;
pub mod shell;
pub mod store;
pub mod wire;
