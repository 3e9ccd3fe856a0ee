//! The room page in a real browser: Chromium without a window, driven as a person would, while members speak gRPC.

// clippy.toml allows it in tests, but takes only functions marked as tests for such.
#![allow(clippy::unwrap_used)]

#[path = "page/browser.rs"]
mod browser;
#[allow(dead_code)] // The server's own tests use the rest of it.
#[path = "server/site.rs"]
mod site;

#[path = "page/axe.rs"]
mod axe;
#[path = "page/day.rs"]
mod day;
#[path = "page/foreign.rs"]
mod foreign;
#[path = "page/forms.rs"]
mod forms;
#[path = "page/hostile.rs"]
mod hostile;
#[path = "page/leaving.rs"]
mod leaving;
#[path = "page/screens.rs"]
mod screens;
#[path = "page/steady.rs"]
mod steady;
