//! Compiles the protos without protoc, and keeps their descriptors for reflection; and tells one core from
//! another, so that a snapshot of an older one is never taken for this one's.

use std::path::{Path, PathBuf};
use std::{env, fs};

use prost::Message;

const PROTOS: [&str; 11] = [
    "resources",
    "review",
    "artifact",
    "escalation",
    "listen",
    "room",
    "rule",
    "log",
    "door",
    "admin",
    "page",
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo::rerun-if-changed=proto");
    println!("cargo::rerun-if-changed=src/protocol");
    println!("cargo::rustc-env=COUNTERSIGN_CORE={:016x}", fingerprint(Path::new("src/protocol"))?);
    let files = PROTOS.map(|name| format!("countersign/v1/{name}.proto"));
    let descriptors = protox::compile(&files, ["proto"])?;
    let out = PathBuf::from(env::var("OUT_DIR")?);
    fs::write(out.join("countersign.v1.bin"), descriptors.encode_to_vec())?;
    // Maps in order, so that the same message always has the same bytes: repeated requests are compared by them.
    tonic_prost_build::configure().bytes(".").btree_map(".").compile_fds(descriptors)?;
    Ok(())
}

/// Says which core this is: FNV-1a over the names and texts of its files, in order. Not against an attacker: what
/// a home holds is its owner's.
fn fingerprint(folder: &Path) -> Result<u64, Box<dyn std::error::Error>> {
    const PRIME: u64 = 0x0000_0100_0000_01b3;
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut add = |bytes: &[u8]| {
        for byte in bytes.iter().chain(&(bytes.len() as u64).to_be_bytes()) {
            hash = (hash ^ u64::from(*byte)).wrapping_mul(PRIME);
        }
    };
    let mut entries = Vec::new();
    for entry in fs::read_dir(folder)? {
        entries.push(entry?.path());
    }
    entries.sort();
    for path in entries {
        add(path.to_string_lossy().as_bytes());
        if path.is_dir() {
            add(&fingerprint(&path)?.to_be_bytes());
        } else {
            add(&fs::read(&path)?);
        }
    }
    Ok(hash)
}
