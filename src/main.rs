//! The `countersign` program: parse, run, exit code.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(countersign::cli::run(std::env::args_os()) as u8)
}
