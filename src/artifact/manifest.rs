//! What a bundle's digest is the digest of.
//!
//! The canonical encoding, which never changes under its first line:
//!
//! ```text
//! countersign-bundle 1\n
//! <mode> SP <size> SP <digest> SP <path> NUL      once for each file
//! ```
//!
//! `<mode>` is `x` for a file that may be run and `-` for any other; `<size>` is its bytes in
//! decimal without leading zeros; `<digest>` is the SHA-256 of its bytes in lower-case hexadecimal;
//! `<path>` is the path's bytes as they are, which hold no NUL. Files stand in the order of their
//! paths' bytes. The bundle's digest is the SHA-256 of it all.

use std::collections::BTreeMap;

use sha2::{Digest as _, Sha256};

use super::path;
use crate::protocol::artifact::RepoPath;
use crate::protocol::name::Digest;

const FIRST_LINE: &[u8] = b"countersign-bundle 1\n";

/// One file of a bundle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BundledFile {
    /// Where it stands.
    pub path: RepoPath,
    /// Whether it may be run.
    pub executable: bool,
    /// How many bytes it has.
    pub size: u64,
    /// SHA-256 of its bytes.
    pub digest: Digest,
}

/// The files of a bundle, by their paths' bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Manifest {
    files: BTreeMap<Vec<u8>, BundledFile>,
}

impl Manifest {
    /// Adds a file whose path was checked.
    pub fn insert(&mut self, file: BundledFile) {
        self.files.insert(file.path.to_bytes(), file);
    }

    /// The file at a path.
    pub fn get(&self, path: &RepoPath) -> Option<&BundledFile> {
        self.files.get(&path::canonical_bytes(path)?)
    }

    /// All files, in order.
    pub fn files(&self) -> impl Iterator<Item = &BundledFile> {
        self.files.values()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// The canonical encoding.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = FIRST_LINE.to_vec();
        for (path, file) in &self.files {
            let mode = if file.executable { 'x' } else { '-' };
            out.extend_from_slice(format!("{mode} {} {} ", file.size, file.digest).as_bytes());
            out.extend_from_slice(path);
            out.push(0);
        }
        out
    }

    /// The bundle's digest.
    pub fn digest(&self) -> Digest {
        sha256(&self.encode())
    }

    /// Reads the encoding back; none for anything that [`Manifest::encode`] does not write.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let mut manifest = Self::default();
        for record in bytes.strip_prefix(FIRST_LINE)?.split_inclusive(|byte| *byte == 0) {
            let mut parts = record.strip_suffix(b"\0")?.splitn(4, |byte| *byte == b' ');
            let executable = match parts.next()? {
                b"x" => true,
                b"-" => false,
                _ => return None,
            };
            let mut text = || std::str::from_utf8(parts.next()?).ok();
            let (size, digest) = (text()?.parse().ok()?, text()?.parse().ok()?);
            let path = RepoPath::from_bytes(parts.next()?);
            manifest.insert(BundledFile { path, executable, size, digest });
        }
        (manifest.encode() == bytes).then_some(manifest)
    }
}

/// SHA-256 of bytes.
pub(super) fn sha256(bytes: &[u8]) -> Digest {
    Digest::of_bytes(Sha256::digest(bytes).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest() -> Manifest {
        let mut manifest = Manifest::default();
        for (path, executable, bytes) in
            [(&b"b"[..], true, &b"run"[..]), (b"a\n", false, b""), (b"\xff x", false, b"y")]
        {
            manifest.insert(BundledFile {
                path: RepoPath::from_bytes(path),
                executable,
                size: bytes.len() as u64,
                digest: sha256(bytes),
            });
        }
        manifest
    }

    #[test]
    fn the_encoding_is_the_documented_one_and_reads_back() {
        let manifest = manifest();
        let encoded = manifest.encode();
        let expected = [
            &b"countersign-bundle 1\n"[..],
            b"- 0 e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855 a\n\0",
            b"x 3 ",
            sha256(b"run").as_str().as_bytes(),
            b" b\0- 1 ",
            sha256(b"y").as_str().as_bytes(),
            b" \xff x\0",
        ]
        .concat();
        assert_eq!(encoded, expected);
        assert_eq!(Manifest::decode(&encoded), Some(manifest));
    }

    #[test]
    fn the_digest_of_nothing_never_changes() {
        assert_eq!(Manifest::default().digest(), sha256(b"countersign-bundle 1\n"));
    }

    #[test]
    fn another_encoding_of_the_same_is_refused() {
        let good = manifest().encode();
        assert!(Manifest::decode(&good[..good.len() - 1]).is_none());
        let text = String::from_utf8_lossy(&good).replace("x 3", "x 03");
        assert!(Manifest::decode(text.as_bytes()).is_none());
        assert!(Manifest::decode(b"countersign-bundle 2\n").is_none());
    }
}
