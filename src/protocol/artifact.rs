//! What a version is made of, and what git and the bundle store know about it.
//!
//! The core never looks at a repository: it is told, inside the command.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::name::{Digest, Malformed, push_visible, shown};

/// The immutable content of a version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Artifact {
    /// A commit or a bundle.
    pub kind: ArtifactKind,
    /// Names it exactly: the commit's id, or the bundle's digest.
    pub digest: Digest,
    /// The same for the same content: the commit's tree, or the bundle's digest. Two commits with
    /// other messages or parents may share it.
    pub content: Digest,
    /// The commit that the target stood at when the artifact was offered; none for a bundle, and
    /// none where the target does not exist yet.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub base: Option<Digest>,
}

/// What an artifact is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ArtifactKind {
    /// A git commit in the guarded repository.
    Commit,
    /// Files kept by digest.
    Bundle,
}

/// Files of one version that are known again at another path.
pub const FOLLOWED_FILES_MAX: usize = 1_000;

/// What is known of an artifact when it is proposed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ArtifactFacts {
    /// Whether it changes nothing against its target, or holds no files.
    pub empty: bool,
    /// Every path it touches: both sides of a rename, deletions, modes, symlinks, submodules.
    /// Sorted, each once.
    pub paths: Vec<RepoPath>,
    /// What those of them hold that it leaves behind, by digest, so that a file is known again at another
    /// path. Sorted, each once; at most [`FOLLOWED_FILES_MAX`].
    pub files: Vec<Digest>,
    /// Authors and co-authors of the commits reachable from it and not from its target. Sorted,
    /// each once.
    pub authors: Vec<Identity>,
    /// Secrets in what it leaves behind and its base doesn't hold there: the first of each file, in the order
    /// of paths; at most [`SECRETS_MAX`].
    pub secrets: Vec<FoundSecret>,
}

/// The most secrets that are told of one artifact.
pub const SECRETS_MAX: usize = 20;

/// Where a file holds a secret. What it is, is never told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundSecret {
    /// The file.
    pub path: RepoPath,
    /// Its line; the first is 1.
    pub line: u32,
    /// Whose form it has.
    pub kind: String,
}

/// A name and an e-mail address, as a commit carries them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Identity {
    /// The address; it decides whose commit this is.
    pub email: String,
    /// The name as written.
    pub name: String,
}

/// A path in an artifact: git's bytes as text, where what is no UTF-8 stands as `\xNN` and a
/// backslash as `\\`, so that nothing is lost and two paths never become one.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RepoPath(Arc<str>);

impl RepoPath {
    /// From git's bytes.
    pub fn from_bytes(bytes: &[u8]) -> Self {
        use fmt::Write;
        let mut text = String::with_capacity(bytes.len());
        for chunk in bytes.utf8_chunks() {
            text.push_str(&chunk.valid().replace('\\', "\\\\"));
            for byte in chunk.invalid() {
                write!(text, "\\x{byte:02x}").expect("a String takes every write");
            }
        }
        Self(text.into())
    }

    /// Git's bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let bytes = self.0.as_bytes();
        let mut out = Vec::with_capacity(bytes.len());
        let mut index = 0;
        while index < bytes.len() {
            match (bytes[index], bytes.get(index + 1)) {
                (b'\\', Some(b'x')) => {
                    let digits = self.0.get(index + 2..index + 4).unwrap_or("");
                    out.push(u8::from_str_radix(digits, 16).unwrap_or(b'?'));
                    index += 4;
                }
                (b'\\', Some(_)) => {
                    out.push(b'\\');
                    index += 2;
                }
                (byte, _) => {
                    out.push(byte);
                    index += 1;
                }
            }
        }
        out
    }

    /// The text form.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Control characters are shown, not sent.
impl fmt::Display for RepoPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = String::with_capacity(self.0.len());
        self.0.chars().for_each(|c| push_visible(&mut out, c));
        f.write_str(&out)
    }
}

impl fmt::Debug for RepoPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// A place in a version: `src/lexer.rs`, `src/lexer.rs:112` or `src/lexer.rs:80-140`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Place {
    /// The file.
    pub path: RepoPath,
    /// First and last line, counted from 1; the whole file where left out.
    pub lines: Option<(u32, u32)>,
}

impl std::str::FromStr for Place {
    type Err = Malformed;
    fn from_str(text: &str) -> Result<Self, Malformed> {
        let malformed = || Malformed {
            expected: "a place",
            given: shown(text, 120),
            form: "PATH, PATH:LINE or PATH:FIRST-LAST with lines from 1",
        };
        let whole = || Self { path: RepoPath(text.into()), lines: None };
        let Some((path, lines)) = text.rsplit_once(':') else {
            return if text.is_empty() { Err(malformed()) } else { Ok(whole()) };
        };
        let (first, last) = lines.split_once('-').unwrap_or((lines, lines));
        let is_number = |digits: &str| !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
        if !is_number(first) || !is_number(last) {
            return Ok(whole());
        }
        let (first, last) = (first.parse().map_err(|_| malformed())?, last.parse().map_err(|_| malformed())?);
        if path.is_empty() || first == 0 || last < first {
            return Err(malformed());
        }
        Ok(Self { path: RepoPath(path.into()), lines: Some((first, last)) })
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.lines {
            None => write!(f, "{}", self.path),
            Some((first, last)) if first == last => write!(f, "{}:{first}", self.path),
            Some((first, last)) => write!(f, "{}:{first}-{last}", self.path),
        }
    }
}

impl TryFrom<String> for Place {
    type Error = Malformed;
    fn try_from(text: String) -> Result<Self, Malformed> {
        text.parse()
    }
}

impl From<Place> for String {
    fn from(place: Place) -> String {
        match place.lines {
            None => place.path.as_str().to_owned(),
            Some((first, last)) if first == last => format!("{}:{first}", place.path.as_str()),
            Some((first, last)) => format!("{}:{first}-{last}", place.path.as_str()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_lose_nothing() {
        for bytes in
            [&b"src/a.rs"[..], b"a\\b", b"\xff\xfe", b"a\\x41", b"new\nline", "é".as_bytes(), b"\\\xff\\"]
        {
            assert_eq!(RepoPath::from_bytes(bytes).to_bytes(), bytes, "{bytes:?}");
        }
        assert_ne!(RepoPath::from_bytes(b"\\xff"), RepoPath::from_bytes(b"\xff"));
        assert_eq!(RepoPath::from_bytes(b"a\nb").to_string(), "a\\u{a}b");
    }

    #[test]
    fn places_read_back_as_they_are_written() {
        for text in ["src/lexer.rs", "src/lexer.rs:112", "src/lexer.rs:80-140", "a:b", "a:b:3"] {
            assert_eq!(text.parse::<Place>().unwrap().to_string(), text);
        }
        for bad in ["", ":3", "a:0", "a:5-4", "a:99999999999"] {
            assert!(bad.parse::<Place>().is_err(), "{bad}");
        }
    }
}
