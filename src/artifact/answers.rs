//! What git's answers mean: the forms of its plumbing, read strictly.

use std::collections::BTreeMap;

use super::{EntryKind, FileChange, FileStatus, legible};
use crate::protocol::artifact::{Identity, RepoPath};
use crate::protocol::name::Digest;

/// The records of a `-z` answer.
pub(super) fn records(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    bytes.split_inclusive(|byte| *byte == 0).map(|record| record.strip_suffix(b"\0").unwrap_or(record))
}

/// A line of `ls-tree -l`.
pub(super) struct TreeRecord {
    pub(super) kind: EntryKind,
    pub(super) id: Digest,
    pub(super) size: u64,
    pub(super) path: Vec<u8>,
}

impl TreeRecord {
    /// `<mode> SP <type> SP <id> SP <size, padded> TAB <path>`. A folder is none.
    pub(super) fn parse(record: &[u8]) -> Option<Self> {
        let tab = record.iter().position(|byte| *byte == b'\t')?;
        let mut words = std::str::from_utf8(&record[..tab]).ok()?.split_ascii_whitespace();
        let (mode, _, id, size) = (words.next()?, words.next()?, words.next()?, words.next()?);
        let kind = match mode {
            "120000" => EntryKind::Symlink,
            "160000" => EntryKind::Submodule,
            "100755" => EntryKind::Executable,
            // Old trees hold 100664.
            file if file.starts_with("100") => EntryKind::File,
            _ => return None,
        };
        let size = if kind == EntryKind::Submodule { 0 } else { size.parse().ok()? };
        Some(Self { kind, id: id.parse().ok()?, size, path: record[tab + 1..].to_vec() })
    }
}

/// The raw records, then the numbers, of `diff-tree -z --raw --numstat`.
pub(super) fn parse_changes(bytes: &[u8]) -> Option<Vec<FileChange>> {
    let mut changes: BTreeMap<&[u8], FileChange> = BTreeMap::new();
    let mut records = records(bytes);
    while let Some(record) = records.next() {
        if let Some(raw) = record.strip_prefix(b":") {
            let path = records.next()?;
            let words: Vec<&str> = std::str::from_utf8(raw).ok()?.split(' ').collect();
            let &[old_mode, new_mode, old_id, new_id, status] = words.as_slice() else { return None };
            let status = match status {
                "A" => FileStatus::Added,
                "D" => FileStatus::Deleted,
                "T" => FileStatus::TypeChanged,
                "M" if old_id == new_id && old_mode != new_mode => FileStatus::ModeChanged,
                "M" => FileStatus::Modified,
                _ => return None,
            };
            let path_of = RepoPath::from_bytes(path);
            let change =
                FileChange { path: path_of, status, added_lines: 0, deleted_lines: 0, binary: false };
            changes.insert(path, change);
        } else {
            let mut fields = record.splitn(3, |byte| *byte == b'\t');
            let (added, deleted, path) = (fields.next()?, fields.next()?, fields.next()?);
            let change = changes.get_mut(path)?;
            let number = |digits: &[u8]| std::str::from_utf8(digits).ok()?.parse().ok();
            if (added, deleted) == (b"-", b"-") {
                change.binary = true;
            } else {
                (change.added_lines, change.deleted_lines) = (number(added)?, number(deleted)?);
            }
        }
    }
    Some(changes.into_values().collect())
}

/// Each path of `diff-tree -z --raw`, with the id of what it leaves there; none where it leaves nothing.
pub(super) fn parse_touched(bytes: &[u8]) -> Option<Vec<(RepoPath, Option<Digest>)>> {
    let mut touched = Vec::new();
    let mut records = records(bytes);
    while let Some(record) = records.next() {
        let path = RepoPath::from_bytes(records.next()?);
        let raw = std::str::from_utf8(record.strip_prefix(b":")?).ok()?;
        let id = raw.split(' ').nth(3)?;
        let gone = id.bytes().all(|digit| digit == b'0');
        touched.push((path, if gone { None } else { Some(id.parse().ok()?) }));
    }
    Some(touched)
}

/// What stands at a path: its mode and the id of what it holds; all zeros where there is nothing.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct State<'a> {
    mode: &'a str,
    id: &'a str,
}

impl State<'_> {
    pub(super) fn is_nothing(&self) -> bool {
        self.mode.bytes().all(|digit| digit == b'0')
    }
}

/// A path that differs between two trees.
pub(super) struct Difference<'a> {
    pub(super) path: &'a [u8],
    pub(super) before: State<'a>,
    pub(super) after: State<'a>,
    /// Where it stood before, of a rename.
    pub(super) from: Option<&'a [u8]>,
}

/// The records of `diff-tree -z --raw`, or of one commit in `log -z --raw`, from the first that is one.
pub(super) fn parse_difference<'a>(
    head: &'a [u8],
    rest: &mut impl Iterator<Item = &'a [u8]>,
) -> Option<Difference<'a>> {
    let raw = std::str::from_utf8(head.strip_prefix(b"\n").unwrap_or(head).strip_prefix(b":")?).ok()?;
    let words: Vec<&str> = raw.split(' ').collect();
    let &[old_mode, new_mode, old_id, new_id, status] = words.as_slice() else { return None };
    let path = rest.next()?;
    let (from, path) = if status.starts_with('R') { (Some(path), rest.next()?) } else { (None, path) };
    let (before, after) = (State { mode: old_mode, id: old_id }, State { mode: new_mode, id: new_id });
    Some(Difference { path, before, after, from })
}

/// A commit with its author and co-authors. None where git's answer has another form.
pub(super) fn parse_authors(record: &[u8]) -> Option<(Digest, Vec<Identity>)> {
    let text = legible(record);
    let mut lines = text.split('\n');
    let id = lines.next()?.parse().ok()?;
    let (email, name) = (lines.next()?, lines.next()?);
    // A commit that claims an encoding in which its own header can't be read hides who wrote it.
    if email.trim().is_empty() && name.trim().is_empty() {
        return None;
    }
    let mut identities = vec![identity(name, email)];
    // Git calls only the last block of a message trailers; who squashes or edits a message leaves them
    // anywhere. Whoever is named as a co-author is one.
    let mut lines = lines.peekable();
    while let Some(line) = lines.next() {
        let Some(value) = co_authored_by(line) else { continue };
        let mut value = value.to_owned();
        while let Some(folded) =
            lines.next_if(|next| next.starts_with([' ', '\t']) && co_authored_by(next).is_none())
        {
            value.push_str(folded);
        }
        if !value.trim().is_empty() {
            identities.extend(co_authors(&value));
        }
    }
    Some((id, identities))
}

/// What stands behind `Co-authored-by:`, in whatever case and however far indented.
fn co_authored_by(line: &str) -> Option<&str> {
    const KEY: &str = "co-authored-by";
    let line = line.trim_start();
    let key = line.get(..KEY.len()).filter(|key| key.eq_ignore_ascii_case(KEY))?;
    line[key.len()..].trim_start().strip_prefix(':')
}

fn identity(name: &str, email: &str) -> Identity {
    Identity { email: email.trim().to_lowercase(), name: name.trim().to_owned() }
}

/// Whoever a trailer names: each address in angle brackets, or else the whole text.
fn co_authors(trailer: &str) -> Vec<Identity> {
    let mut found = Vec::new();
    let mut rest = trailer;
    while let Some((name, after)) = rest.split_once('<') {
        let Some((email, after)) = after.split_once('>') else { break };
        // `<<a@b>` is a@b to whoever reads it.
        found.push(identity(name.trim_start_matches([',', ';', ' ']), email.trim_start_matches('<')));
        rest = after;
    }
    if found.is_empty() {
        let text = trailer.trim_matches(['<', '>', ' ']);
        let (email, name) = if text.contains('@') { (text, "") } else { ("", text) };
        found.push(identity(name, email));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_that_hides_its_author_is_not_read() {
        let id = "1".repeat(40);
        assert_eq!(parse_authors(format!("{id}\n\n\nmessage\n").as_bytes()), None);
        let nameless = parse_authors(format!("{id}\n\nJust a name\nmessage\n").as_bytes()).unwrap();
        assert_eq!(nameless.1[0].name, "Just a name");
    }

    #[test]
    fn a_trailer_names_everyone_in_it() {
        let emails = |text: &str| co_authors(text).into_iter().map(|i| i.email).collect::<Vec<_>>();
        assert_eq!(emails("Sec <SEC@Team.example>"), ["sec@team.example"]);
        assert_eq!(emails("A <a@x>, B <b@x>"), ["a@x", "b@x"]);
        assert_eq!(emails("sec@team.example"), ["sec@team.example"]);
        assert_eq!(emails("\"X <sec@x>\" <other@x>"), ["sec@x", "other@x"]);
        assert_eq!(emails("<<sec@x>"), ["sec@x"]);
        assert_eq!(emails("Sec <sec@x"), ["sec <sec@x"]);
        assert_eq!(co_authors("just a name")[0].name, "just a name");
    }

    #[test]
    fn a_tree_record_is_read_or_refused() {
        let id = "1".repeat(40);
        let kind = |mode: &str, size: &str| {
            let record = format!("{mode} any {id} {size:>7}\ta\tb c");
            TreeRecord::parse(record.as_bytes()).map(|record| (record.kind, record.size, record.path))
        };
        assert_eq!(kind("100644", "12"), Some((EntryKind::File, 12, b"a\tb c".to_vec())));
        assert_eq!(kind("100664", "0"), Some((EntryKind::File, 0, b"a\tb c".to_vec())));
        assert_eq!(kind("160000", "-"), Some((EntryKind::Submodule, 0, b"a\tb c".to_vec())));
        assert_eq!(kind("040000", "-"), None);
        assert_eq!(kind("100644", "-"), None);
    }
}
