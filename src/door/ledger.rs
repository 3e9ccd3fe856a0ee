//! Where the door left each guarded ref: what an audit holds the repository to.
//!
//! A ref stands where it stood when the door was installed, or where a push that a person let through left it,
//! or, of a version, where the log says. Anything else moved without the server.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::moves::is_nothing;
use crate::artifact::publishing::Record;
use crate::protocol::Team;
use crate::protocol::escalation::RECORDS;
use crate::protocol::name::Digest;
use crate::protocol::review::CircleState;

/// How the refs stood when the door was put in.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Begun {
    /// What the charter protected then.
    pub protected: Vec<String>,
    /// Every protected ref, and where it was.
    pub refs: BTreeMap<String, String>,
}

/// A push that a person let through: by the time it was asked for, the ref was at `from`, and git moved it to `to`
/// unless something else stood in the way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Passed {
    /// The ref.
    #[serde(rename = "ref")]
    pub name: String,
    /// Where it was; zeros for nowhere.
    pub from: String,
    /// Where it was to be; zeros for nowhere.
    pub to: String,
    /// The escalation that told persons.
    pub escalation: String,
    /// How far the log was by then.
    #[serde(default)]
    pub sequence: u64,
}

/// What the log says of where guarded refs belong.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Logged {
    /// Where each version is pinned.
    pub kept: BTreeMap<String, String>,
    /// Where publishing and persons' decisions left refs, oldest first.
    pub moves: Vec<LoggedMove>,
    /// What circles published, by its whole digest, by the log or by a record of the server's: of these the
    /// repository may keep records.
    pub manifests: BTreeSet<String>,
    /// What records of the server's say and the log doesn't yet: a server that dies between a move and its report
    /// leaves it so.
    pub recorded: Vec<LoggedMove>,
}

/// Where a ref belongs by the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoggedMove {
    /// The place in the log.
    pub sequence: u64,
    /// The ref.
    pub name: String,
    /// Where it was; nowhere where it was not there.
    pub from: Option<String>,
    /// Where it was left; nowhere where it belongs nowhere.
    pub to: Option<String>,
    /// Whether a person decided it, wherever it was.
    pub decided: bool,
}

impl Logged {
    /// By that team's log; `kept` is where it has the versions.
    pub fn of(team: &Team, kept: BTreeMap<String, String>) -> Self {
        let text = |id: &Option<Digest>| id.as_ref().map(ToString::to_string);
        let moves = team.ref_moves().iter().map(|one| LoggedMove {
            sequence: one.seq.0,
            name: one.name.clone(),
            from: text(&one.from),
            to: text(&one.to),
            decided: one.decided,
        });
        let published = team.review().circles().filter(|circle| circle.state == CircleState::Published);
        let completed = published.filter_map(|circle| circle.completed.as_ref());
        let manifests = completed.map(|completed| completed.manifest.to_string()).collect();
        Self { kept, moves: moves.collect(), manifests, recorded: Vec::new() }
    }

    /// Takes a record into account of which it is certain that the server wrote it: anybody who may write to the
    /// repository can write one.
    pub fn record(&mut self, record: &Record) {
        self.manifests.insert(record.manifest.to_string());
        self.recorded.extend(record.refs.iter().map(|one| LoggedMove {
            sequence: u64::MAX,
            name: one.name.clone(),
            from: one.from.as_ref().map(ToString::to_string),
            to: Some(one.to.to_string()),
            decided: false,
        }));
    }
}

/// A ref that stands where the door didn't leave it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moved {
    /// The ref.
    pub name: String,
    /// Where the door left it; nowhere where the ref should not be there.
    pub from: Option<String>,
    /// Where it is; nowhere where it is gone.
    pub to: Option<String>,
}

/// What an audit found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Audit {
    /// Refs that moved without the server.
    pub moved: Vec<Moved>,
    /// Refs that the charter protects since the door was put in, and that nobody watches yet.
    pub unwatched: Vec<String>,
    /// How many are where they should be.
    pub sound: usize,
}

impl Begun {
    /// The same, with refs that are protected since then. What is watched already stays as it is: installing
    /// again must not make a moved ref right.
    pub fn joined(
        mut self,
        protected: &[String],
        unwatched: &[String],
        now: &BTreeMap<String, String>,
    ) -> Self {
        for name in unwatched {
            self.refs.extend(now.get(name).map(|at| (name.clone(), at.clone())));
        }
        self.protected = protected.to_vec();
        self
    }
}

/// Holds the refs as they are to what the door left. `was_protected` is whether the charter protected a ref when the
/// door was put in.
pub fn audit(
    begun: &Begun,
    passed: &[Passed],
    log: &Logged,
    now: &BTreeMap<String, String>,
    was_protected: impl Fn(&str) -> bool,
) -> Audit {
    let mut left: BTreeMap<&str, Vec<Option<&str>>> = BTreeMap::new();
    for (name, at) in &begun.refs {
        left.insert(name, vec![Some(at)]);
    }
    let mut steps: Vec<(u64, Step<'_>)> =
        passed.iter().map(|one| (one.sequence, Step::Passed(one))).collect();
    // A push that was let through when the log was so far came after what stands there.
    steps.extend(log.moves.iter().map(|one| (one.sequence, Step::Logged(one))));
    steps.sort_by_key(|(sequence, step)| (*sequence, matches!(step, Step::Passed(_))));
    for (_, step) in steps {
        match step {
            Step::Passed(one) => {
                let (from, to) = (there(&one.from), there(&one.to));
                let known = left.entry(&one.name).or_insert_with(|| vec![None]);
                // A push from where the ref had been moved to behind the door makes that no better.
                if known.contains(&from) {
                    *known = vec![to, from];
                }
            }
            Step::Logged(one) => {
                let known = left.entry(&one.name).or_insert_with(|| vec![None]);
                if one.decided || known.contains(&one.from.as_deref()) {
                    *known = vec![one.to.as_deref()];
                }
            }
        }
    }
    // Records have no order among them but where each began.
    let mut open: Vec<&LoggedMove> = log.recorded.iter().collect();
    while let Some(next) = open.iter().position(|one| {
        let known = left.get(one.name.as_str());
        known.map_or(one.from.is_none(), |known| known.contains(&one.from.as_deref()))
    }) {
        let one = open.swap_remove(next);
        // Whether git moved it after its record was written, nobody told the log.
        left.insert(&one.name, vec![one.from.as_deref(), one.to.as_deref()]);
    }
    let mut found = Audit::default();
    let names: BTreeSet<&str> = left.keys().copied().chain(now.keys().map(String::as_str)).collect();
    for name in names {
        let at = now.get(name).map(String::as_str);
        if let Some(manifest) = name.strip_prefix(RECORDS) {
            match log.manifests.contains(manifest) {
                true => found.sound += 1,
                false => found.moved.push(moved(name, None, at)),
            }
        } else if name.starts_with("refs/countersign") {
            // A version that is not pinned yet, or no longer, is pinned at the server's next start.
            match (log.kept.get(name).map(String::as_str), at) {
                (Some(wanted), Some(at)) if wanted == at => found.sound += 1,
                (wanted, at) => found.moved.push(moved(name, wanted, at)),
            }
        } else if let Some(known) = left.get(name) {
            if known.contains(&at) {
                found.sound += 1;
            } else {
                found.moved.push(moved(name, known[0], at));
            }
        } else if was_protected(name) {
            found.moved.push(moved(name, None, at));
        } else {
            found.unwatched.push(name.to_owned());
        }
    }
    found
}

/// What moved a ref.
enum Step<'a> {
    Passed(&'a Passed),
    Logged(&'a LoggedMove),
}

fn there(id: &str) -> Option<&str> {
    (!is_nothing(id)).then_some(id)
}

fn moved(name: &str, from: Option<&str>, to: Option<&str>) -> Moved {
    Moved { name: name.to_owned(), from: from.map(str::to_owned), to: to.map(str::to_owned) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOWHERE: &str = "00";

    fn map(refs: &[(&str, &str)]) -> BTreeMap<String, String> {
        refs.iter().map(|(name, at)| ((*name).to_owned(), (*at).to_owned())).collect()
    }

    fn pass(from: &str, to: &str) -> Passed {
        let (from, to, escalation) = (from.to_owned(), to.to_owned(), "e1".to_owned());
        Passed { name: "refs/heads/main".to_owned(), from, to, escalation, sequence: 0 }
    }

    fn moved_from(passed: &[Passed], at: &[(&str, &str)]) -> Vec<(Option<String>, Option<String>)> {
        let begun = Begun { protected: Vec::new(), refs: map(&[("refs/heads/main", "1")]) };
        found_with(&begun, passed, &Logged::default(), &map(at))
            .moved
            .into_iter()
            .map(|moved| (moved.from, moved.to))
            .collect()
    }

    fn found_with(begun: &Begun, passed: &[Passed], log: &Logged, now: &BTreeMap<String, String>) -> Audit {
        audit(begun, passed, log, now, |_| true)
    }

    #[test]
    fn a_ref_is_where_it_began_or_where_a_push_that_was_let_through_left_it() {
        let main = |at| [("refs/heads/main", at)];
        let some = |at: &str| Some(at.to_owned());
        assert_eq!(moved_from(&[], &main("1")), []);
        assert_eq!(moved_from(&[], &main("2")), [(some("1"), some("2"))]);
        assert_eq!(moved_from(&[], &[]), [(some("1"), None)]);
        // Whether git moved it after it was let through, nobody told the door.
        assert_eq!(moved_from(&[pass("1", "2")], &main("1")), []);
        assert_eq!(moved_from(&[pass("1", "2")], &main("2")), []);
        assert_eq!(moved_from(&[pass("1", "2"), pass("2", "3")], &main("1")), [(some("3"), some("1"))]);
        assert_eq!(moved_from(&[pass("1", NOWHERE)], &[]), []);
        // It was moved to 5 behind the door, and pushed on from there.
        assert_eq!(moved_from(&[pass("5", "6")], &main("6")), [(some("1"), some("6"))]);
    }

    #[test]
    fn a_ref_that_came_behind_the_door_moved_and_one_that_is_protected_since_is_unwatched() {
        let begun = Begun { protected: Vec::new(), refs: map(&[("refs/heads/main", "1")]) };
        let now = map(&[("refs/heads/main", "1"), ("refs/heads/release/1", "2"), ("refs/tags/v1", "3")]);
        let log = Logged::default();
        let found = audit(&begun, &[], &log, &now, |name| name.starts_with("refs/heads/"));
        assert_eq!(
            found.moved.iter().map(|one| one.name.as_str()).collect::<Vec<_>>(),
            ["refs/heads/release/1"]
        );
        assert_eq!(found.unwatched, ["refs/tags/v1"]);
        let again = begun.joined(&[], &found.unwatched, &now);
        let found = found_with(&again, &[], &log, &now);
        assert_eq!((found.unwatched.len(), found.moved.len()), (0, 1), "what moved stays moved");
    }

    #[test]
    fn what_was_published_or_decided_counts_in_the_logs_order() {
        let begun = Begun { protected: Vec::new(), refs: map(&[("refs/heads/main", "1")]) };
        let step = |sequence: u64, from: &str, to: &str, decided: bool| LoggedMove {
            sequence,
            name: "refs/heads/main".to_owned(),
            from: Some(from.to_owned()),
            to: Some(to.to_owned()),
            decided,
        };
        let at = |passed: &[Passed], moves: &[LoggedMove], at: &str| {
            let log = Logged { moves: moves.to_vec(), ..Logged::default() };
            let found = found_with(&begun, passed, &log, &map(&[("refs/heads/main", at)]));
            found.moved.into_iter().map(|moved| moved.from.unwrap_or_default()).collect::<Vec<_>>()
        };
        let published = [step(5, "1", "2", false)];
        assert_eq!(at(&[], &published, "2"), [""; 0]);
        assert_eq!(at(&[], &published, "1"), ["2"], "it was put back to where it was before");
        assert_eq!(
            at(&[], &[step(5, "9", "2", false)], "2"),
            ["1"],
            "published onto what moved behind the door"
        );
        assert_eq!(at(&[], &[step(5, "9", "9", true)], "9"), [""; 0], "a person took it as it is");
        let early = Passed { sequence: 4, ..pass("1", "7") };
        assert_eq!(at(std::slice::from_ref(&early), &[step(5, "7", "8", false)], "8"), [""; 0]);
        let late = Passed { sequence: 5, ..pass("2", "7") };
        assert_eq!(at(&[late], &published, "7"), [""; 0]);
        let unasked = Passed { sequence: 3, ..pass("2", "7") };
        assert_eq!(at(&[unasked], &published, "7"), ["2"]);
    }

    #[test]
    fn a_version_is_where_the_log_has_it() {
        let kept = map(&[("refs/countersign/parser/1", "1"), ("refs/countersign/parser/2", "2")]);
        let now = map(&[("refs/countersign/parser/1", "9"), ("refs/countersign/x/1", "3")]);
        let log = Logged { kept, ..Logged::default() };
        let found = found_with(&Begun::default(), &[], &log, &now);
        let moved: Vec<_> = found.moved.iter().map(|one| (one.from.as_deref(), one.to.as_deref())).collect();
        assert_eq!(moved, [(Some("1"), Some("9")), (None, Some("3"))]);
    }
}
