//! Who waits for whom: the graph that a stall is put before a person with, and that status shows.
//!
//! A participant who owes something holds the work up; one who owes nothing waits for all who do.
//! Waiting is no obligation.

use std::collections::BTreeSet;
use std::fmt;

use super::charter::Charter;
use super::escalation::WaitingOn;
use super::name::MemberName;
use super::obligation::{Obligation, ObligationKind};
use super::review::Circle;
use super::team::Team;
use super::time::{Span, Time};

/// The wait-for graph of one circle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitForGraph {
    /// What is owed in it, oldest first.
    pub owing: Vec<WaitingOn>,
    /// The participants who owe nothing, and wait.
    pub waiting: Vec<MemberName>,
    /// When it was drawn.
    pub at: Time,
}

/// The graph of one circle. Decisions that are owed belong to it where an escalation is about it.
///
/// `owed` is all that the team's members owe.
pub fn of_circle(
    team: &Team,
    charter: &Charter,
    owed: &[Obligation],
    now: Time,
    circle: &Circle,
) -> WaitForGraph {
    let review = team.review();
    let here = |owed: &&Obligation| match owed.kind {
        ObligationKind::Decide => team.escalations().open().any(|open| {
            owed.id == format!("decide:{}", open.opened.id) && concerns(team, &open.opened, circle)
        }),
        // Whoever only waits for an answer is held up by nobody.
        ObligationKind::Answer => false,
        _ => review.locate(&owed.subject).is_some_and(|(_, found)| found.name == circle.name),
    };
    let owing: Vec<WaitingOn> = owed.iter().filter(here).map(WaitingOn::from).collect();
    let holding: BTreeSet<&MemberName> = owing.iter().map(|owed| &owed.member).collect();
    let waiting =
        review.participants(charter, circle).into_iter().filter(|member| !holding.contains(*member));
    let waiting = waiting.cloned().collect();
    WaitForGraph { waiting, owing, at: now }
}

fn concerns(team: &Team, opened: &super::escalation::Escalated, circle: &Circle) -> bool {
    team.circle_of(opened).is_some_and(|found| found.name == circle.name)
}

/// One line for each that is owed, and one for those who wait.
impl fmt::Display for WaitForGraph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for owed in &self.owing {
            let WaitingOn { member, kind, subject, since } = owed;
            writeln!(f, "{member} owes: {kind} {subject}, since {since} ({})", whole(self.at - *since))?;
        }
        if self.owing.is_empty() {
            writeln!(f, "nobody owes anything")?;
        }
        let holding: BTreeSet<&str> = self.owing.iter().map(|owed| owed.member.as_str()).collect();
        let holding: Vec<&str> = holding.into_iter().collect();
        for member in &self.waiting {
            writeln!(f, "{member} waits for {}", super::rejection::list(&holding))?;
        }
        Ok(())
    }
}

/// In whole minutes, or seconds below one.
fn whole(span: Span) -> Span {
    let unit = if span >= Span::seconds(60) { 60_000_000 } else { 1_000_000 };
    Span(span.0 / unit * unit)
}
