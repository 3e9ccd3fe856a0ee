//! Whether a charter can be satisfied, and everything in it is known.
//!
//! A gate that nobody can pass is worse than none: either the team stands still, or somebody opens
//! it by hand and it never held. So what can't be met is refused here, before it judges anyone.
//! [`check`] looks at a [`Charter`] and not at its text, because a person's answer (a reviewer
//! replaced, a limit raised) makes a new charter without one.
//!
//! What is *not* refused, and why:
//!
//! - a person who produces, though they are the team's only one. Nobody could then overrule an
//!   objection to their work, but nobody has to: the reviewers can approve, the objector can resolve,
//!   and the person can still adopt a charter with another reviewer.
//! - a review edge to somebody who owes no deliverable of that phase, and a member with no part in
//!   any phase: nothing waits for them.
//! - `answer_within` and `deliver_within` of zero, which are no deadlines: `stall_after`, which can't
//!   be zero, still brings a standstill before a person.

mod people;
mod phases;
mod settings;

use std::fmt;

use super::super::name::{Lens, MemberName, NAME_BYTES_MAX, nearest, shown};
use super::Charter;

pub use phases::reserved_proposal;

/// Findings that are kept. Nobody mends more at a time, and a hostile charter costs bounded time.
pub const FINDINGS_MAX: usize = 200;

/// The most members of a team.
pub const MEMBERS_MAX: usize = 200;
/// The most phases.
pub const PHASES_MAX: usize = 50;
/// The most deliverables, over all phases.
pub const DELIVERABLES_MAX: usize = 1_000;
/// The most review edges, over all phases.
pub const REVIEW_EDGES_MAX: usize = 5_000;
/// The most patterns of owned paths, over all members.
pub const OWNED_PATTERNS_MAX: usize = 2_000;
/// The most channels, protected patterns, and required checks; of each.
pub const SETTINGS_MAX: usize = 200;

/// Something that a charter doesn't meet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unmet {
    /// Where.
    pub place: Place,
    /// What is wrong.
    pub what: String,
    /// What would be right, where that is known.
    pub help: Option<String>,
}

impl fmt::Display for Unmet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.what)
    }
}

/// A place in a charter, whether or not it stands there: `phases[0].reviews[2].of`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place(Vec<Step>);

/// A step further into a charter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// To what a key names.
    Key(String),
    /// To an item of a list, from 0.
    Item(usize),
}

impl Place {
    pub(in crate::protocol) fn key(key: &str) -> Self {
        Self::default().then(key)
    }

    pub(in crate::protocol) fn then(mut self, key: &str) -> Self {
        self.0.push(Step::Key(key.to_owned()));
        self
    }

    pub(in crate::protocol) fn item(mut self, index: usize) -> Self {
        self.0.push(Step::Item(index));
        self
    }

    fn member(name: &MemberName) -> Self {
        Self::key("members").then(name.as_str())
    }

    /// The steps that lead there.
    pub fn steps(&self) -> &[Step] {
        &self.0
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, step) in self.0.iter().enumerate() {
            match step {
                Step::Key(key) if index == 0 => f.write_str(key)?,
                Step::Key(key) => write!(f, ".{key}")?,
                Step::Item(item) => write!(f, "[{item}]")?,
            }
        }
        Ok(())
    }
}

/// Everything that the charter doesn't meet; nothing where it can be adopted.
///
/// A charter above the sizes that are allowed is only told so.
pub fn check(charter: &Charter) -> Vec<Unmet> {
    let mut findings = Findings::default();
    sizes(charter, &mut findings);
    if findings.0.is_empty() {
        people::check_members(charter, &mut findings);
        people::check_emails(charter, &mut findings);
        settings::check_channels(charter, &mut findings);
        settings::check_limits(charter, &mut findings);
        settings::check_repository(charter, &mut findings);
        settings::check_required_checks(charter, &mut findings);
        phases::check_phases(charter, &mut findings);
        phases::check_circle_names(charter, &mut findings);
    }
    findings.0
}

fn sizes(charter: &Charter, findings: &mut Findings) {
    let deliverables = charter.phases.iter().map(|phase| phase.deliverables.len()).sum();
    let edges = charter.phases.iter().map(|phase| phase.reviews.len()).sum();
    let owned = charter.members.values().map(|member| member.owns.len()).sum();
    let protected = charter.repository.as_ref().map_or(0, |repository| repository.protected.len());
    let repository = Place::key("repository").then("protected");
    for (place, what, size, size_max) in [
        (Place::key("members"), "members", charter.members.len(), MEMBERS_MAX),
        (Place::key("phases"), "phases", charter.phases.len(), PHASES_MAX),
        (Place::key("phases"), "deliverables", deliverables, DELIVERABLES_MAX),
        (Place::key("phases"), "review edges", edges, REVIEW_EDGES_MAX),
        (Place::key("members"), "patterns of owned paths", owned, OWNED_PATTERNS_MAX),
        (Place::key("channels"), "channels", charter.channels.len(), SETTINGS_MAX),
        (repository, "protected patterns", protected, SETTINGS_MAX),
        (
            Place::key("checks").then("required"),
            "required checks",
            charter.required_checks.len(),
            SETTINGS_MAX,
        ),
    ] {
        if size > size_max {
            findings.refuse(place, format!("{size} {what}; at most {size_max} are allowed"));
        }
    }
}

/// What has been found so far.
#[derive(Default)]
struct Findings(Vec<Unmet>);

impl Findings {
    fn refuse(&mut self, place: Place, what: impl Into<String>) {
        self.add(place, what.into(), None);
    }

    fn refuse_with(&mut self, place: Place, what: impl Into<String>, help: impl Into<String>) {
        self.add(place, what.into(), Some(help.into()));
    }

    fn add(&mut self, place: Place, what: String, help: Option<String>) {
        if self.0.len() < FINDINGS_MAX {
            self.0.push(Unmet { place, what, help });
        }
    }

    /// Whether nothing was found at that place or within it.
    fn is_empty_at(&self, place: &Place) -> bool {
        !self.0.iter().any(|unmet| unmet.place.0.starts_with(&place.0))
    }

    /// Refuses a name that isn't among the known ones of its kind.
    fn unknown<'a>(
        &mut self,
        place: Place,
        kind: &str,
        given: &str,
        known: impl IntoIterator<Item = &'a str>,
    ) {
        // Looking for the nearest is what costs.
        if self.0.len() < FINDINGS_MAX {
            let help = nearest(given, known).map(|near| format!("the nearest is {near}"));
            self.add(place, format!("no {kind} is called {}", shown(given, NAME_BYTES_MAX)), help);
        }
    }
}

/// Whether that has the form that all names share.
pub(super) fn is_name(text: &str) -> bool {
    text.parse::<Lens>().is_ok()
}
