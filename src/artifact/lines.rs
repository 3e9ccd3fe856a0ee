//! How many lines a file has, and what was learnt of that before.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use crate::protocol::artifact::{Place, RepoPath};
use crate::protocol::name::Digest;

/// Answers that are kept. A review names a few places, so thousands serve many teams.
const ANSWERS_MAX: usize = 4096;

/// How many lines `bytes` have; an unfinished last one counts.
pub(super) fn count(bytes: &[u8]) -> u64 {
    let ends = bytes.iter().filter(|byte| **byte == b'\n').count() as u64;
    ends + u64::from(bytes.last().is_some_and(|byte| *byte != b'\n'))
}

/// What is known of a path in an artifact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Known {
    /// There is no such file.
    Absent,
    /// The file has this many lines.
    Lines(u64),
}

impl Known {
    /// Whether the file is there and has the lines of `place`.
    pub(super) fn holds(self, place: &Place) -> bool {
        match self {
            Self::Absent => false,
            Self::Lines(lines) => place.lines.is_none_or(|(_, last)| u64::from(last) <= lines),
        }
    }
}

/// Answers by artifact and path. They never go stale: an artifact is named by its content.
#[derive(Debug, Default)]
pub(super) struct LineCache(Mutex<HashMap<(Digest, RepoPath), Known>>);

impl LineCache {
    pub(super) fn get(&self, digest: &Digest, path: &RepoPath) -> Option<Known> {
        let answers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        answers.get(&(digest.clone(), path.clone())).copied()
    }

    pub(super) fn put(&self, digest: &Digest, path: &RepoPath, known: Known) {
        let mut answers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Forgetting everything now and then costs a few processes, and keeps no order of use.
        if answers.len() >= ANSWERS_MAX {
            answers.clear();
        }
        answers.insert((digest.clone(), path.clone()), known);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_counted_as_editors_count_them() {
        for (bytes, lines) in [(&b""[..], 0), (b"a", 1), (b"a\n", 1), (b"a\nb", 2), (b"\n\n", 2)] {
            assert_eq!(count(bytes), lines, "{bytes:?}");
        }
    }

    #[test]
    fn a_place_needs_its_file_and_its_last_line() {
        let place = |text: &str| text.parse::<Place>().unwrap();
        assert!(Known::Lines(3).holds(&place("a:1-3")));
        assert!(!Known::Lines(3).holds(&place("a:1-4")));
        assert!(Known::Lines(0).holds(&place("a")));
        assert!(!Known::Absent.holds(&place("a")));
    }
}
