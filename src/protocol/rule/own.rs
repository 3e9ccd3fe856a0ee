//! Rules of a team's own, as they stand in the log.

use serde::{Deserialize, Serialize};

/// A rule of a team's own, as its file says it. It stands in the log with the charter that it came with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnRule {
    /// Its folder and file name, without the ending: `confirm/no-friday`.
    pub id: String,
    /// The file, verbatim.
    pub text: String,
}

/// What another set of own rules changes, a line each.
pub fn changes(old: &[OwnRule], new: &[OwnRule]) -> Vec<String> {
    let find = |rules: &[OwnRule], id: &str| rules.iter().find(|rule| rule.id == id).cloned();
    let mut ids: Vec<&str> = old.iter().chain(new).map(|rule| rule.id.as_str()).collect();
    ids.sort_unstable();
    ids.dedup();
    let change = |id: &str| match (find(old, id), find(new, id)) {
        (None, _) => Some(format!("own rule {id}: added")),
        (_, None) => Some(format!("own rule {id}: removed")),
        (Some(old), Some(new)) => (old.text != new.text).then(|| format!("own rule {id}: changed")),
    };
    ids.into_iter().filter_map(change).collect()
}
