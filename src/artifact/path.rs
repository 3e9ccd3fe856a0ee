//! Which paths an artifact's files may have.
//!
//! A path is refused when writing it could leave its folder, reach git's own files, or mean another
//! file on another system. The rule is the same for taking a bundle and for writing one out.

use std::collections::BTreeSet;

use super::Refused;
use crate::protocol::artifact::RepoPath;
use crate::protocol::name::is_hidden;

/// The longest path, in bytes.
pub const PATH_BYTES_MAX: usize = 1024;

/// The longest component: what the common file systems take.
const COMPONENT_BYTES_MAX: usize = 255;

/// The bytes of a path that stands in the one canonical form of its bytes; none for another text,
/// such as one with a lone backslash, which names no file.
pub fn canonical_bytes(path: &RepoPath) -> Option<Vec<u8>> {
    let bytes = path.to_bytes();
    (RepoPath::from_bytes(&bytes) == *path).then_some(bytes)
}

/// The path's bytes, where it is safe below any folder.
pub fn check(path: &RepoPath) -> Result<Vec<u8>, Refused> {
    let refuse = |why| Err(Refused::UnsafePath { path: path.clone(), why });
    let Some(bytes) = canonical_bytes(path) else {
        return refuse("is not written in its canonical form");
    };
    if bytes.is_empty() {
        return refuse("is empty");
    }
    if bytes.len() > PATH_BYTES_MAX {
        return refuse("is longer than 1024 bytes");
    }
    if bytes.contains(&0) {
        return refuse("holds a NUL");
    }
    if bytes[0] == b'/' {
        return refuse("is absolute");
    }
    for component in bytes.split(|byte| *byte == b'/') {
        match component {
            b"" => return refuse("has an empty component"),
            b"." | b".." => return refuse("has a component \".\" or \"..\""),
            _ if component.len() > COMPONENT_BYTES_MAX => {
                return refuse("has a component longer than 255 bytes");
            }
            _ if is_git(component) => return refuse("reaches into a git folder"),
            _ => {}
        }
    }
    Ok(bytes)
}

/// Refuses a path of a commit that could not be laid down anywhere: git itself takes trees with such names
/// from those who write objects by hand.
pub fn check_components(path: &RepoPath) -> Result<(), Refused> {
    let refuse = |why| Err(Refused::UnsafePath { path: path.clone(), why });
    for component in path.to_bytes().split(|byte| *byte == b'/') {
        match component {
            b"" => return refuse("has an empty component"),
            b"." | b".." => return refuse("has a component \".\" or \"..\""),
            _ if is_git(component) => return refuse("reaches into a git folder"),
            _ => {}
        }
    }
    Ok(())
}

/// Whether some file system takes `component` for `.git`: any case; characters that HFS+ ignores;
/// dots and spaces that Windows drops from the end, its short name, its streams.
fn is_git(component: &[u8]) -> bool {
    let text: String = String::from_utf8_lossy(component).chars().filter(|c| !is_hidden(*c)).collect();
    let text = text.to_lowercase();
    let text = text.split(':').next().unwrap_or_default().trim_end_matches(['.', ' ']);
    matches!(text, ".git" | "git~1")
}

/// The paths of one artifact so far, each once.
#[derive(Debug, Default)]
pub struct PathSet {
    files: BTreeSet<Vec<u8>>,
    // Folded to lower case: where case does not count (macOS, Windows) `README` and `readme` are
    // one file. Whoever fetches there would be shown the later one alone, and approve what they
    // never saw.
    folded_files: BTreeSet<String>,
    folded_folders: BTreeSet<String>,
}

impl PathSet {
    /// Adds a safe path; its bytes.
    pub fn insert(&mut self, path: &RepoPath) -> Result<Vec<u8>, Refused> {
        let bytes = check(path)?;
        let refuse = |why| Err(Refused::PathTaken { path: path.clone(), why });
        if self.files.contains(&bytes) {
            return refuse("occurs twice");
        }
        let folded = path.as_str().to_lowercase();
        if self.folded_files.contains(&folded) {
            return refuse("differs from another only by case");
        }
        let folders: Vec<&str> =
            folded.char_indices().filter(|(_, c)| *c == '/').map(|(at, _)| &folded[..at]).collect();
        if self.folded_folders.contains(&folded) || folders.iter().any(|f| self.folded_files.contains(*f)) {
            return refuse("is a file where another path needs a folder");
        }
        self.folded_folders.extend(folders.into_iter().map(str::to_owned));
        self.folded_files.insert(folded);
        self.files.insert(bytes.clone());
        Ok(bytes)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.files.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(bytes: &[u8]) -> RepoPath {
        RepoPath::from_bytes(bytes)
    }

    #[test]
    fn unsafe_paths_are_refused_by_name() {
        let long = "a/".repeat(512) + "b";
        let wide = "a".repeat(256);
        for bad in [
            "",
            "/etc/passwd",
            "//a",
            "..",
            "../a",
            "a/../b",
            "a/..",
            ".",
            "./a",
            "a/./b",
            "a//b",
            "a/",
            "a\0b",
            ".git",
            ".git/config",
            "a/.git/b",
            ".GIT/hooks",
            ".Git",
            ".g\u{200c}it/x",
            "git~1/x",
            "GIT~1",
            ".git./x",
            ".git /x",
            ".git::$INDEX_ALLOCATION/x",
            &long,
            &wide,
        ] {
            let refused = check(&path(bad.as_bytes()));
            assert!(
                matches!(&refused, Err(Refused::UnsafePath { path: named, .. }) if *named == path(bad.as_bytes())),
                "{bad:?}: {refused:?}"
            );
        }
        for good in ["a", ".gitignore", ".github/x", "...", "a..b", "-x", "a b", "a\nb", "a\\b", "git", "😀"]
        {
            assert_eq!(check(&path(good.as_bytes())).unwrap(), good.as_bytes(), "{good:?}");
        }
        assert_eq!(check(&path(b"\xff\xfe")).unwrap(), b"\xff\xfe");
    }

    #[test]
    fn a_text_that_is_no_canonical_path_is_refused() {
        for bad in ["a\\q", "a\\", "a\\x2", "\\x2e\\x2e/a", "\\x41"] {
            let place: crate::protocol::artifact::Place = bad.parse().unwrap();
            assert!(check(&place.path).is_err(), "{bad}");
        }
    }

    #[test]
    fn paths_that_can_not_stand_together_are_refused() {
        for (first, second) in [
            ("a", "a"),
            ("README", "readme"),
            ("É", "é"),
            ("a/b", "a"),
            ("a", "a/b"),
            ("A", "a/b"),
            ("a/b/c", "A/B"),
        ] {
            let mut paths = PathSet::default();
            paths.insert(&path(first.as_bytes())).unwrap();
            let refused = paths.insert(&path(second.as_bytes()));
            assert!(matches!(refused, Err(Refused::PathTaken { .. })), "{first} {second}: {refused:?}");
        }
        let mut paths = PathSet::default();
        for fine in ["a/b", "a/c", "A/d", "ab"] {
            paths.insert(&path(fine.as_bytes())).unwrap();
        }
        assert_eq!(paths.len(), 4);
    }
}
