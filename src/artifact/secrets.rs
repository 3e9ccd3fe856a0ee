//! Secrets in what a version adds. Lines that its base holds already are nobody's news: whoever touches
//! an old file isn't refused for what landed long ago.

use std::collections::BTreeSet;
use std::ffi::OsStr;

use sha2::{Digest as _, Sha256};
use tokio::io::{AsyncBufReadExt as _, BufReader};

use super::git::Git;
use super::{Fault, Result};
use crate::protocol::artifact::{FoundSecret, RepoPath, SECRETS_MAX};
use crate::protocol::name::Digest;
use crate::protocol::secret;

/// The longest part of a line that is looked at in one piece; a file without lines has longer ones.
const PIECE_BYTES_MAX: usize = 1 << 20;

/// Lines with a secret that are looked at on each side.
const LOOKED_AT_MAX: usize = 1_000;

/// What pieces of a line overlap by: more than any secret is long.
const OVERLAP_BYTES: usize = 512;

/// The secrets in lines of `new` that `old` doesn't have: the first of them.
pub(super) fn first_added(path: &RepoPath, old: &[u8], new: &[u8]) -> Option<FoundSecret> {
    let lines = new.split(|byte| *byte == b'\n').zip(1_u32..);
    lines.filter(|(line, _)| secret::may_stand_in(line)).find_map(|(line, number)| {
        let found = secret::find(&String::from_utf8_lossy(line))?;
        let known = old.split(|byte| *byte == b'\n').any(|known| without_cr(known) == without_cr(line));
        let found = FoundSecret { path: path.clone(), line: number, kind: found.kind.to_owned() };
        (!known).then_some(found)
    })
}

/// The secrets in lines that `commit` has and `from` doesn't, the first of each file, by path.
pub(super) async fn added(desk: &Git, from: &Digest, commit: &Digest) -> Result<Vec<FoundSecret>> {
    let asked = [
        "diff-tree",
        "-r",
        "-p",
        "-U0",
        "--text",
        "--no-color",
        "--no-renames",
        "--no-ext-diff",
        "--no-textconv",
        "--src-prefix=a/",
        "--dst-prefix=b/",
        "--end-of-options",
        from.as_str(),
        commit.as_str(),
        "--",
    ];
    let asked = asked.map(OsStr::new);
    let mut child = desk.converse(&asked)?;
    let printed = child.stdout.take().expect("a conversation has an output");
    let reading = async {
        let mut scanner = Scanner::default();
        let mut printed = BufReader::with_capacity(PIECE_BYTES_MAX, printed);
        loop {
            let piece = printed.fill_buf().await?;
            if piece.is_empty() || scanner.added.len() >= LOOKED_AT_MAX {
                break;
            }
            let length = piece.len();
            scanner.take(piece);
            printed.consume(length);
        }
        // Nobody reads on where there is enough to tell.
        let whole = scanner.added.len() < LOOKED_AT_MAX;
        let code = if whole { child.wait().await?.code() } else { Some(0) };
        Ok::<_, std::io::Error>((scanner.end(), code))
    };
    let ended = tokio::time::timeout(desk.time_max(), reading).await;
    let (verb, time_max) = ("diff-tree".to_owned(), desk.time_max());
    let ended = ended.map_err(|_| Fault::TimedOut { verb: verb.clone(), time_max });
    match ended.and_then(|read| read.map_err(|source| Fault::NotStarted { source })) {
        Ok((found, Some(0))) => Ok(found),
        Ok((_, code)) => {
            let code = code.map_or_else(|| "a signal".to_owned(), |code| code.to_string());
            Err(Fault::Git { verb, code, said: String::new() }.into())
        }
        Err(fault) => Err(fault.into()),
    }
}

/// Reads a diff without context, piece by piece, and looks at the lines that it adds.
#[derive(Debug, Default)]
struct Scanner {
    /// What of the current line has arrived.
    line: Vec<u8>,
    path: Option<RepoPath>,
    /// Lines of the hunk that are still to come: removed ones and added ones.
    left: (u64, u64),
    /// The number of the next added line.
    number: u32,
    /// Secrets in added lines, with the digest of what the line holds.
    added: Vec<(FoundSecret, [u8; 32])>,
    /// The digests of removed lines that hold one: what moved is no news.
    removed: BTreeSet<[u8; 32]>,
}

impl Scanner {
    fn take(&mut self, piece: &[u8]) {
        let mut rest = piece;
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            self.line.extend_from_slice(&rest[..end]);
            self.end_line();
            rest = &rest[end + 1..];
        }
        self.line.extend_from_slice(rest);
        if self.line.len() > PIECE_BYTES_MAX && self.left != (0, 0) {
            self.look();
            let keep = self.line.len() - OVERLAP_BYTES;
            let first = self.line[0];
            self.line.drain(..keep);
            // Which side the line is of stands before every part of it.
            self.line.insert(0, first);
        }
    }

    /// The first of each file that wasn't there before, by path.
    fn end(mut self) -> Vec<FoundSecret> {
        if !self.line.is_empty() {
            self.end_line();
        }
        let mut found: Vec<FoundSecret> = Vec::new();
        for (secret, line) in self.added {
            let again = found.last().is_some_and(|last| last.path == secret.path);
            if !again && !self.removed.contains(&line) && found.len() < SECRETS_MAX {
                found.push(secret);
            }
        }
        found
    }

    fn end_line(&mut self) {
        if self.left == (0, 0) {
            self.header();
        } else {
            self.look();
            match self.line.first() {
                Some(b'-') => self.left.0 = self.left.0.saturating_sub(1),
                Some(b'+') => {
                    self.left.1 = self.left.1.saturating_sub(1);
                    self.number = self.number.saturating_add(1);
                }
                // That a file ends without a line break.
                _ => {}
            }
        }
        self.line.clear();
    }

    fn header(&mut self) {
        if let Some(name) = self.line.strip_prefix(b"+++ ") {
            // Git puts a tab after a name with a space in it.
            let name = unquoted(name.strip_suffix(b"\t").unwrap_or(name));
            // Of a file that is gone the removed lines alone are looked at.
            self.path = Some(RepoPath::from_bytes(name.strip_prefix(b"b/").unwrap_or(&name)));
        } else if let Some(hunk) = self.line.strip_prefix(b"@@ -") {
            let hunk = String::from_utf8_lossy(hunk);
            let mut sides = hunk.split(' ');
            let old = sides.next().and_then(side);
            let new = sides.next().and_then(|new| side(new.strip_prefix('+')?));
            let ((_, old), (number, new)) = (old.unwrap_or_default(), new.unwrap_or_default());
            self.left = (old, new);
            self.number = u32::try_from(number).unwrap_or(u32::MAX);
        }
    }

    /// Looks at what there is of a line.
    fn look(&mut self) {
        let (Some((side, line)), Some(path)) = (self.line.split_first(), &self.path) else { return };
        if self.added.len() >= LOOKED_AT_MAX || !secret::may_stand_in(line) {
            return;
        }
        let Some(found) = secret::find(&String::from_utf8_lossy(line)) else { return };
        let digest = Sha256::digest(without_cr(line)).into();
        if *side == b'+' {
            let (path, kind) = (path.clone(), found.kind.to_owned());
            self.added.push((FoundSecret { path, line: self.number, kind }, digest));
        } else if self.removed.len() < LOOKED_AT_MAX {
            self.removed.insert(digest);
        }
    }
}

/// A line without the half of a line end that some editors write.
fn without_cr(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// One side of a hunk: its first line, and how many there are.
fn side(text: &str) -> Option<(u64, u64)> {
    let (first, count) = text.split_once(',').unwrap_or((text, "1"));
    Some((first.parse().ok()?, count.parse().ok()?))
}

/// A name as git quotes it where it has bytes that a terminal would obey.
fn unquoted(name: &[u8]) -> Vec<u8> {
    let Some(quoted) = name.strip_prefix(b"\"").and_then(|name| name.strip_suffix(b"\"")) else {
        return name.to_owned();
    };
    let mut out = Vec::with_capacity(quoted.len());
    let mut rest = quoted;
    while let Some((byte, after)) = rest.split_first() {
        rest = after;
        if *byte != b'\\' {
            out.push(*byte);
            continue;
        }
        let octal = rest.get(..3).filter(|digits| digits.iter().all(|digit| (b'0'..=b'7').contains(digit)));
        if let Some(digits) = octal {
            out.push(digits.iter().fold(0_u8, |byte, digit| byte.wrapping_mul(8).wrapping_add(digit - b'0')));
            rest = &rest[3..];
            continue;
        }
        let Some((escaped, after)) = rest.split_first() else { break };
        rest = after;
        out.push(match escaped {
            b'a' => 7,
            b'b' => 8,
            b't' => b'\t',
            b'n' => b'\n',
            b'v' => 11,
            b'f' => 12,
            b'r' => b'\r',
            other => *other,
        });
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scanned(diff: &[u8], pieces: usize) -> Vec<(String, u32)> {
        let mut scanner = Scanner::default();
        diff.chunks(pieces).for_each(|piece| scanner.take(piece));
        scanner.end().into_iter().map(|found| (found.path.to_string(), found.line)).collect()
    }

    #[test]
    fn added_lines_alone_are_looked_at_and_what_looks_like_a_header_is_none() {
        let key = "AKIAIOSFODNN7EXAMPLE";
        let diff = format!(
            "diff --git a/src/a.rs b/src/a.rs\nindex 1..2 100644\n--- a/src/a.rs\n+++ b/src/a.rs\n\
             @@ -3 +3,3 @@ fn x() {{\n-one\n+++ b/{key}\n+one\n+{key}\n\
             @@ -9,0 +11 @@\n+{key}\n\
             diff --git a/b b/b\n--- a/b\n+++ \"b/\\303\\244 b\\n\"\n@@ -0,0 +1,2 @@\n+fine\n+{key}\n\\ No newline at end of file\n\
             diff --git a/c b/c\n--- a/c\n+++ /dev/null\n@@ -1 +0,0 @@\n-moved {key}\n\
             diff --git a/d b/d\n--- a/d\n+++ b/d\n@@ -0,0 +1 @@\n+moved {key}\r\n"
        );
        for pieces in [1, 7, 100_000] {
            let found = scanned(diff.as_bytes(), pieces);
            assert_eq!(found, [("src/a.rs".to_owned(), 3), ("ä b\\u{a}".to_owned(), 2)], "{pieces}");
        }
    }

    #[test]
    fn a_secret_is_found_wherever_a_long_line_is_cut() {
        let key = "AKIAIOSFODNN7EXAMPLE";
        for before in [PIECE_BYTES_MAX - 10, PIECE_BYTES_MAX - 1, PIECE_BYTES_MAX + 3] {
            let head = "diff --git a/b b/b\n--- /dev/null\n+++ b/b\n@@ -0,0 +1 @@\n+";
            let diff = format!("{head}{} {key} {}\n", " ".repeat(before), " ".repeat(PIECE_BYTES_MAX));
            assert_eq!(scanned(diff.as_bytes(), 65_536).len(), 1, "{before}");
        }
    }

    #[test]
    fn what_stood_there_before_is_no_news() {
        let path = RepoPath::from_bytes(b"a");
        let (old, new) = (b"AKIAIOSFODNN7EXAMPLE\n", b"one\nAKIAIOSFODNN7EXAMPLE\nAKIAIOSFODNN7EXAMPL2\n");
        assert_eq!(first_added(&path, old, new).map(|found| found.line), Some(3));
        assert_eq!(first_added(&path, new, old), None);
    }
}
