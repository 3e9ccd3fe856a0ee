//! The server over real gRPC: a store on disk, real bundles and a real git, a clock moved by hand.

// clippy.toml allows it in tests, but takes only functions marked as tests for such.
#![allow(clippy::unwrap_used)]

#[path = "server/site.rs"]
mod site;

#[path = "server/admin.rs"]
mod admin;
#[path = "server/bundles.rs"]
mod bundles;
#[path = "server/identity.rs"]
mod identity;
#[path = "server/lifecycle.rs"]
mod lifecycle;
#[path = "server/metrics.rs"]
mod metrics;
#[path = "server/notify.rs"]
mod notify;
#[path = "server/page.rs"]
mod page;
#[path = "server/refusals.rs"]
mod refusals;
#[path = "server/repository.rs"]
mod repository;
#[path = "server/room.rs"]
mod room;
#[path = "server/staging.rs"]
mod staging;
#[path = "server/target.rs"]
mod target;
