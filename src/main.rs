//! The `countersign` program: parse, run, exit code.

use std::process::ExitCode;

/// Takes from two cores at once without a lock between them, and gives back what sleeping teams held.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    ExitCode::from(countersign::cli::run(std::env::args_os()) as u8)
}
