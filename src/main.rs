//! The `countersign` program: parse, run, exit code.

fn main() {}
