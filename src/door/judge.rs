//! What the door says of a push: pure, from the charter, the moves, and where the door stands open.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use globset::GlobSet;

use super::moves::{Move, legible};
use crate::protocol::charter::{Charter, patterns};
use crate::protocol::rejection::Violation;

/// Where every member may leave a commit.
const STAGING: &[u8] = b"refs/countersign/staging/";
/// Where the server keeps what was proposed.
const OURS: &[u8] = b"refs/countersign";

/// What a ref is to the door.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefKind {
    /// Anybody's.
    Free,
    /// Where members leave commits to be proposed.
    Staging,
    /// The server's own, which keeps a version.
    Kept,
    /// The charter protects it.
    Protected,
}

/// Which refs the door guards.
#[derive(Clone, Debug)]
pub struct Guard {
    protected: GlobSet,
    /// A deliverable for each target, to be named where somebody pushes to it.
    deliverables: BTreeMap<String, String>,
}

impl Guard {
    /// By that charter. None where its patterns can't be used, and then nothing may move.
    pub fn of(charter: &Charter) -> Option<Self> {
        let protected = charter.repository.iter().flat_map(|repository| &repository.protected);
        let mut deliverables = BTreeMap::new();
        for deliverable in charter.phases.iter().flat_map(|phase| &phase.deliverables) {
            let target = deliverable.target.as_ref().unwrap_or(&charter.publish.target);
            deliverables.entry(target.clone()).or_insert_with(|| deliverable.name.to_string());
        }
        Some(Self { protected: patterns(protected.map(String::as_str)).ok()?, deliverables })
    }

    /// By those patterns alone.
    pub fn of_patterns(protected: &[String]) -> Option<Self> {
        let protected = patterns(protected.iter().map(String::as_str)).ok()?;
        Some(Self { protected, deliverables: BTreeMap::new() })
    }

    /// What the ref of that name is.
    pub fn kind(&self, name: &[u8]) -> RefKind {
        // `refs/countersign` itself would stand in the way of all that lies below it.
        let ours = name.strip_prefix(OURS).is_some_and(|rest| rest.is_empty() || rest[0] == b'/');
        if name.starts_with(STAGING) {
            RefKind::Staging
        } else if ours {
            RefKind::Kept
        } else if self.protected.is_match(Path::new(OsStr::from_bytes(name))) {
            RefKind::Protected
        } else {
            RefKind::Free
        }
    }

    fn direct_push(&self, name: &[u8]) -> Violation {
        let reference = legible(name);
        let deliverable = self.deliverables.get(&reference).map_or("NAME", String::as_str).to_owned();
        Violation::DirectPush { reference, deliverable }
    }
}

/// What stands against each move; nothing where it may be made. `aliases` are the symbolic refs among them, and
/// what they lead to: whoever pushes to one moves the other.
///
/// A protected ref is refused in any form. Whether a person opened the door for it is asked afterwards.
pub fn judge(guard: &Guard, moves: &[Move], aliases: &BTreeMap<Vec<u8>, Vec<u8>>) -> Vec<Option<Violation>> {
    moves.iter().map(|one| one_move(guard, one, aliases.get(&one.name))).collect()
}

fn one_move(guard: &Guard, one: &Move, leads_to: Option<&Vec<u8>>) -> Option<Violation> {
    match guard.kind(&one.name) {
        RefKind::Kept | RefKind::Protected => return Some(guard.direct_push(&one.name)),
        RefKind::Staging => {
            let because = staged(one, leads_to)?;
            return Some(Violation::StagingRef { reference: one.shown(), because: because.to_owned() });
        }
        RefKind::Free => {}
    }
    let behind = leads_to?;
    // A staging ref that is reached by another name would escape its own rule.
    (guard.kind(behind) != RefKind::Free).then(|| guard.direct_push(behind))
}

/// Why a staging ref can't be pushed so; nothing where it can.
fn staged(one: &Move, leads_to: Option<&Vec<u8>>) -> Option<&'static str> {
    let named = &one.name[STAGING.len()..];
    if one.deletes() {
        Some("the server removes it once nobody needs it")
    } else if named != one.to.as_bytes() {
        Some("its name is not the whole id of the commit")
    } else if !one.creates() || leads_to.is_some() {
        Some("it never moves")
    } else if one.kind != "commit" {
        Some("that is no commit")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guard() -> Guard {
        let protected = ["refs/heads/main", "refs/heads/release/*", "refs/tags/**"];
        Guard::of_patterns(&protected.map(str::to_owned)).unwrap()
    }

    fn moved(name: &[u8], from: char, to: char, kind: &str) -> Move {
        let id = |digit: char| digit.to_string().repeat(40);
        Move { name: name.to_vec(), from: id(from), to: id(to), kind: kind.to_owned() }
    }

    fn code(one: &Move, aliases: &BTreeMap<Vec<u8>, Vec<u8>>) -> &'static str {
        let said = judge(&guard(), std::slice::from_ref(one), aliases).remove(0);
        said.map_or("", |violation| violation.code())
    }

    #[test]
    fn each_ref_is_of_one_kind() {
        for (name, kind) in [
            (&b"refs/heads/main"[..], RefKind::Protected),
            (b"refs/heads/main2", RefKind::Free),
            (b"refs/heads/release/1", RefKind::Protected),
            (b"refs/heads/release/\xff\xfe", RefKind::Protected),
            (b"refs/heads/release/1/2", RefKind::Free),
            (b"refs/tags/a/b", RefKind::Protected),
            (b"refs/countersign", RefKind::Kept),
            (b"refs/countersign/staging", RefKind::Kept),
            (b"refs/countersign/parser/1", RefKind::Kept),
            (b"refs/countersign/staging/x", RefKind::Staging),
            (b"refs/countersigned/x", RefKind::Free),
        ] {
            assert_eq!(guard().kind(name), kind, "{}", legible(name));
        }
    }

    #[test]
    fn a_protected_ref_is_refused_whatever_is_done_to_it_and_by_whichever_name() {
        let none = BTreeMap::new();
        for (from, to) in [('0', '1'), ('1', '0'), ('1', '2')] {
            assert_eq!(code(&moved(b"refs/heads/main", from, to, "commit"), &none), "DIRECT_PUSH");
            assert_eq!(code(&moved(b"refs/countersign/parser/1", from, to, "commit"), &none), "DIRECT_PUSH");
            let alias = BTreeMap::from([(b"refs/heads/alias".to_vec(), b"refs/heads/main".to_vec())]);
            assert_eq!(code(&moved(b"refs/heads/alias", from, to, "commit"), &alias), "DIRECT_PUSH");
            assert_eq!(code(&moved(b"refs/heads/alias", from, to, "commit"), &none), "");
        }
    }

    #[test]
    fn a_staging_ref_is_made_once_by_the_whole_id_of_a_commit() {
        let none = BTreeMap::new();
        let name = [b"refs/countersign/staging/".to_vec(), vec![b'1'; 40]].concat();
        assert_eq!(code(&moved(&name, '0', '1', "commit"), &none), "");
        for (from, to, kind) in [
            ('0', '2', "commit"),
            ('2', '1', "commit"),
            ('1', '0', "commit"),
            ('0', '1', "tag"),
            ('0', '1', ""),
        ] {
            assert_eq!(code(&moved(&name, from, to, kind), &none), "STAGING_REF", "{from} {to} {kind}");
        }
        assert_eq!(code(&moved(&name[..name.len() - 1], '0', '1', "commit"), &none), "STAGING_REF");
        let alias = BTreeMap::from([(name.clone(), b"refs/heads/x".to_vec())]);
        assert_eq!(code(&moved(&name, '0', '1', "commit"), &alias), "STAGING_REF");
    }
}
