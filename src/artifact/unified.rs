//! Unified differences between two bundles' files, in the form that git prints.

use std::fmt::Write as _;
use std::time::Instant;

use similar::{Algorithm, DiffOp, DiffTag};

use super::manifest::BundledFile;

/// Lines shown around a change.
const CONTEXT_LINES: usize = 3;

/// Where git looks for a NUL.
const BINARY_PROBE_BYTES: usize = 8000;

/// One side of a file's change: what the manifest says, and its bytes.
pub(super) type Side<'a> = Option<(&'a BundledFile, &'a [u8])>;

/// Whether it is no text, by git's rule.
pub(super) fn is_binary(bytes: &[u8]) -> bool {
    bytes[..bytes.len().min(BINARY_PROBE_BYTES)].contains(&0)
}

/// The difference by lines. After `deadline` it is coarser, and still true.
fn compare<'a>(
    old: &'a [u8],
    new: &'a [u8],
    deadline: Instant,
) -> (Vec<&'a [u8]>, Vec<&'a [u8]>, Vec<DiffOp>) {
    let split = |bytes: &'a [u8]| bytes.split_inclusive(|byte| *byte == b'\n').collect::<Vec<_>>();
    let (old, new) = (split(old), split(new));
    let operations = similar::capture_diff_slices_deadline(Algorithm::Myers, &old, &new, Some(deadline));
    (old, new, operations)
}

/// Lines added and deleted.
pub(super) fn count_changes(old: &[u8], new: &[u8], deadline: Instant) -> (u64, u64) {
    let (_, _, operations) = compare(old, new, deadline);
    operations.iter().filter(|op| op.tag() != DiffTag::Equal).fold((0, 0), |(added, deleted), op| {
        (added + op.new_range().len() as u64, deleted + op.old_range().len() as u64)
    })
}

/// Appends one file's difference.
pub(super) fn write_file(out: &mut Vec<u8>, old: Side<'_>, new: Side<'_>, deadline: Instant) {
    let Some((any, _)) = new.or(old) else { return };
    let mode = |file: &BundledFile| if file.executable { "100755" } else { "100644" };
    let path = any.path.to_string();
    let mut head = format!("diff --git a/{path} b/{path}\n");
    let line = match (old, new) {
        (None, Some((new, _))) => format!("new file mode {}\n", mode(new)),
        (Some((old, _)), None) => format!("deleted file mode {}\n", mode(old)),
        (Some((old, _)), Some((new, _))) if old.executable != new.executable => {
            format!("old mode {}\nnew mode {}\n", mode(old), mode(new))
        }
        _ => String::new(),
    };
    head.push_str(&line);
    let bytes = |side: Side<'_>| side.map_or(Vec::new(), |(_, bytes)| bytes.to_vec());
    let (old_bytes, new_bytes) = (bytes(old), bytes(new));
    let name = |side: Side<'_>, prefix: &str| {
        side.map_or_else(|| "/dev/null".to_owned(), |_| format!("{prefix}/{path}"))
    };
    let (old_name, new_name) = (name(old, "a"), name(new, "b"));
    if old_bytes == new_bytes {
        out.extend_from_slice(head.as_bytes());
        return;
    }
    if is_binary(&old_bytes) || is_binary(&new_bytes) {
        head.push_str(&format!("Binary files {old_name} and {new_name} differ\n"));
        out.extend_from_slice(head.as_bytes());
        return;
    }
    head.push_str(&format!("--- {old_name}\n+++ {new_name}\n"));
    out.extend_from_slice(head.as_bytes());
    let (old_lines, new_lines, operations) = compare(&old_bytes, &new_bytes, deadline);
    for hunk in similar::group_diff_ops(operations, CONTEXT_LINES) {
        write_hunk(out, &old_lines, &new_lines, &hunk);
    }
}

fn write_hunk(out: &mut Vec<u8>, old: &[&[u8]], new: &[&[u8]], hunk: &[DiffOp]) {
    let (Some(first), Some(last)) = (hunk.first(), hunk.last()) else { return };
    let mut head = String::from("@@");
    for (sign, range) in [
        ('-', first.old_range().start..last.old_range().end),
        ('+', first.new_range().start..last.new_range().end),
    ] {
        // A range of no lines is named by the line before it.
        let start = if range.is_empty() { range.start } else { range.start + 1 };
        write!(head, " {sign}{start}").expect("a String takes every write");
        if range.len() != 1 {
            write!(head, ",{}", range.len()).expect("a String takes every write");
        }
    }
    out.extend_from_slice(head.as_bytes());
    out.extend_from_slice(b" @@\n");
    let mut write_lines = |sign: u8, lines: &[&[u8]]| {
        for line in lines {
            out.push(sign);
            out.extend_from_slice(line);
            if !line.ends_with(b"\n") {
                out.extend_from_slice(b"\n\\ No newline at end of file\n");
            }
        }
    };
    for op in hunk {
        match op.tag() {
            DiffTag::Equal => write_lines(b' ', &old[op.old_range()]),
            _ => {
                write_lines(b'-', &old[op.old_range()]);
                write_lines(b'+', &new[op.new_range()]);
            }
        }
    }
}
