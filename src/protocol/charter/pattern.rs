//! Patterns of paths and refs, and the names of refs: one meaning for the charter's check, the door
//! and the rules of ownership.

use globset::{Glob, GlobBuilder, GlobSet, GlobSetBuilder};

/// The longest pattern, in bytes: what it compiles to stays far below the engine's own limit.
pub const PATTERN_BYTES_MAX: usize = 1024;

/// One pattern: `*` and `?` stay within a folder, `**` crosses them.
///
/// # Errors
///
/// What the pattern is not, in globset's words.
pub fn glob(pattern: &str) -> Result<Glob, globset::Error> {
    GlobBuilder::new(pattern).literal_separator(true).build()
}

/// Matches what any of the patterns matches.
///
/// # Errors
///
/// As [`glob`], and patterns that together are too large to compile. A checked charter's are not.
pub fn patterns<'a>(all: impl IntoIterator<Item = &'a str>) -> Result<GlobSet, globset::Error> {
    let mut set = GlobSetBuilder::new();
    for pattern in all {
        set.add(glob(pattern)?);
    }
    set.build()
}

/// Whether that is a full ref name that git would take: `refs/heads/main`.
///
/// As `git check-ref-format`, but for names outside `refs/`, which are not full.
pub fn is_full_ref(name: &str) -> bool {
    let component = |part: &str| !part.is_empty() && !part.starts_with('.') && !part.ends_with(".lock");
    let forbidden =
        |c: char| c.is_control() || matches!(c, ' ' | '~' | '^' | ':' | '?' | '*' | '[' | '\\' | '\u{7f}');
    name.starts_with("refs/")
        && name.split('/').all(component)
        && !name.ends_with('.')
        && !name.contains("..")
        && !name.contains("@{")
        && !name.contains(forbidden)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stays_within_its_folder() {
        let set = patterns(["refs/heads/release/*", "src/**"]).unwrap();
        for (name, matched) in [
            ("refs/heads/release/1", true),
            ("refs/heads/release/1/2", false),
            ("refs/heads/release", false),
            ("src/a/b.rs", true),
            ("srcs/a.rs", false),
        ] {
            assert_eq!(set.is_match(name), matched, "{name}");
        }
    }

    #[test]
    fn a_full_ref_is_one_that_git_takes() {
        for good in ["refs/heads/main", "refs/heads/a/b-c_d.e", "refs/tags/v1@2", "refs/heads/ü"] {
            assert!(is_full_ref(good), "{good}");
        }
        for bad in [
            "main",
            "heads/main",
            "refs/",
            "refs/heads/",
            "refs//main",
            "refs/heads/.a",
            "refs/heads/a.",
            "refs/heads/a..b",
            "refs/heads/a.lock",
            "refs/heads/a.lock/b",
            "refs/heads/a b",
            "refs/heads/a*",
            "refs/heads/a@{b",
            "refs/heads/a\u{7f}",
            "refs/heads/a\\b",
            "refs/heads/a\n",
        ] {
            assert!(!is_full_ref(bad), "{bad:?}");
        }
    }
}
