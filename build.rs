//! Compiles the protos without protoc, and keeps their descriptors for reflection.

use std::{env, fs, path::PathBuf};

use prost::Message;

const PROTOS: [&str; 7] = ["resources", "review", "artifact", "escalation", "rule", "log", "admin"];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo::rerun-if-changed=proto");
    let files = PROTOS.map(|name| format!("countersign/v1/{name}.proto"));
    let descriptors = protox::compile(&files, ["proto"])?;
    let out = PathBuf::from(env::var("OUT_DIR")?);
    fs::write(out.join("countersign.v1.bin"), descriptors.encode_to_vec())?;
    // Maps in order, so that the same message always has the same bytes: repeated requests are compared by them.
    tonic_prost_build::configure().bytes(".").btree_map(".").compile_fds(descriptors)?;
    Ok(())
}
