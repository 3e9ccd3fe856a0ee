//! Refs that stand where the server did not leave them: each is put before a person once, who says where it belongs.

use serde::{Deserialize, Serialize};

use super::{Cause, Decision as PersonsDecision, Escalated, EscalationClosed, Escalations};
use crate::protocol::answer::Answer;
use crate::protocol::event::Event;
use crate::protocol::name::{Digest, EscalationId, Seq};
use crate::protocol::team::{Decision, Effect, Team};

/// Moved refs that are before a person at a time; further ones follow once these are decided.
const OPENED_MAX: usize = 16;

/// Refs that are the server's alone: each is where the log says, and nowhere else.
const OURS: &str = "refs/countersign/";

/// Where the repository keeps what a circle published, each by the digest of what that held. No proposal has such a
/// name.
pub const RECORDS: &str = "refs/countersign/+published/";

/// The ref that keeps the record of a circle with that content.
pub fn record_ref(manifest: &Digest) -> String {
    format!("{RECORDS}{manifest}")
}

/// How a ref was moved without the server.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct MovedRef {
    /// Its full name.
    #[serde(rename = "ref")]
    pub name: String,
    /// Where the server left it; nowhere where it should not be there.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub from: Option<Digest>,
    /// Where it is; nowhere where it is gone.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub to: Option<Digest>,
}

/// A ref was put back by a person's decision, or that was tried.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefPutBack {
    /// The escalation by which it was decided.
    pub escalation: EscalationId,
    /// The ref's full name.
    #[serde(rename = "ref")]
    pub name: String,
    /// Why it stands as it stood; nothing where it was put back.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub because: Option<String>,
}

/// The server's report of every guarded ref that stands where it did not leave it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReportMoved {
    /// They.
    pub moved: Vec<MovedRef>,
    /// What the log held when the server began to look: where a ref belongs may have changed since.
    pub seen: Seq,
}

/// The server's report that it put a ref back, or that it can't.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportPutBack {
    /// The escalation by which it was decided.
    pub escalation: EscalationId,
    /// Why it stands as it stood; nothing where it was put back.
    pub because: Option<String>,
}

impl Escalated {
    /// The decisions that answer it; the first is the one that is offered first.
    pub fn decisions(&self) -> &'static [PersonsDecision] {
        match self.cause {
            // Elsewhere than where the log has it, a ref of the server's own is wrong for ever.
            Cause::MovedRef if self.subject.starts_with(OURS) => &[PersonsDecision::PutBack],
            cause => cause.decisions(),
        }
    }
}

impl MovedRef {
    fn told(&self) -> String {
        let place = |at: &Option<Digest>| at.as_ref().map_or("nowhere".to_owned(), ToString::to_string);
        let (from, to) = (place(&self.from), place(&self.to));
        format!("{} moved without the server, from {from} to {to}", self.name)
    }
}

/// Opens an escalation for each ref that moved since the last report, and closes those of refs that are back or
/// moved on. Of a ref that was published to, accepted or put back since the server began to look, the report says
/// nothing: the next one does.
pub(in crate::protocol) fn report_moved(team: &Team, report: &ReportMoved) -> Decision {
    let known = team.escalations();
    let is_late = |name: &str| {
        let moved = team.ref_moves().iter().rev().find(|one| one.name == name).map(|one| one.seq);
        moved.max(known.put_back.get(name).copied()) > Some(report.seen)
    };
    let being_put_back =
        |moved: &MovedRef| known.to_put_back().any(|one| one.opened.moved.as_ref() == Some(moved));
    let mut events: Vec<Event> = Vec::new();
    let told = known.open().filter(|open| open.opened.cause == Cause::MovedRef);
    for open in told.filter(|open| !is_late(&open.opened.subject)) {
        let same = |moved: &MovedRef| open.opened.moved.as_ref() == Some(moved);
        if !report.moved.iter().any(same) {
            let moved_on = report.moved.iter().any(|moved| moved.name == open.opened.subject);
            let reason = if moved_on { "the ref was moved on" } else { "the ref is where it belongs" };
            let (id, reason) = (open.opened.id, reason.to_owned());
            events.push(EscalationClosed { id, by: None, decision: None, reason }.into());
        }
    }
    let is_open = |moved: &MovedRef| known.open().any(|open| open.opened.moved.as_ref() == Some(moved));
    let is_new = |moved: &&MovedRef| !is_open(moved) && !being_put_back(moved) && !is_late(&moved.name);
    let mut new: Vec<&MovedRef> = report.moved.iter().filter(is_new).collect();
    // What a complete circle waits for comes first.
    let awaited = team.awaited_refs();
    new.sort_by_key(|moved| !awaited.contains(&moved.name));
    let closing = events.len();
    let open = known.open().filter(|open| open.opened.cause == Cause::MovedRef).count();
    new.truncate(OPENED_MAX.saturating_sub(open - closing));
    for (id, moved) in (known.next_id().0..).zip(new) {
        let escalated = Escalated {
            id: EscalationId(id),
            moved: Some(moved.clone()),
            ..Escalated::new(Cause::MovedRef, moved.name.clone(), moved.told())
        };
        events.push(escalated.into());
    }
    Decision::accept(events, Answer::Recorded)
}

/// Records that a ref was put back; once.
pub(in crate::protocol) fn report_put_back(team: &Team, report: &ReportPutBack) -> Decision {
    let mut owed = team.escalations().to_put_back().filter(|one| one.opened.id == report.escalation);
    let done = owed.next().map(|escalation| RefPutBack {
        escalation: report.escalation,
        name: escalation.opened.subject.clone(),
        because: report.because.clone(),
    });
    Decision::accept(done.map(Event::from).into_iter().collect(), Answer::Recorded)
}

/// The refs that the server is to put back.
pub(in crate::protocol) fn owed(known: &Escalations) -> impl Iterator<Item = Effect> + '_ {
    known.to_put_back().map(|one| Effect::PutBack { escalation: one.opened.id })
}

/// Whether nothing is published to that ref, because a person has yet to say where it belongs, or it is yet to be
/// put there.
pub(in crate::protocol) fn holds(known: &Escalations, target: &str) -> bool {
    known.open_on(Cause::MovedRef, target).is_some()
        || known.to_put_back().any(|one| one.opened.subject == target)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::time::Time;

    const MAIN: &str = "refs/heads/main";

    /// A team in which a person answered the escalation about main like that, and what came of it.
    fn answered(decision: PersonsDecision) -> Team {
        let moved = moved();
        let opened = Escalated {
            id: EscalationId(1),
            moved: Some(moved.clone()),
            ..Escalated::new(Cause::MovedRef, MAIN.to_owned(), moved.told())
        };
        let (by, reason) = (None, "we looked".to_owned());
        let closed = EscalationClosed { id: EscalationId(1), by, decision: Some(decision), reason };
        let mut events = vec![Event::from(opened), closed.into()];
        if decision == PersonsDecision::PutBack {
            let name = MAIN.to_owned();
            events.push(RefPutBack { escalation: EscalationId(1), name, because: None }.into());
        }
        let mut team = Team::new();
        for (seq, event) in (1..).map(Seq).zip(&events) {
            team.apply(seq, Time::default(), event);
        }
        team
    }

    fn moved() -> MovedRef {
        MovedRef { name: MAIN.to_owned(), from: None, to: Some(Digest::of_bytes([7; 32])) }
    }

    #[test]
    fn a_report_that_was_begun_before_the_answer_opens_nothing_and_a_later_one_does() {
        use PersonsDecision::{AcceptMove, PutBack};
        // The decision, the last sequence number that its effect has, and whether a report opens another.
        for (decision, seen, opens) in [
            (AcceptMove, 0, false),
            (AcceptMove, 1, false),
            (AcceptMove, 2, true),
            (PutBack, 1, false),
            (PutBack, 2, false),
            (PutBack, 3, true),
        ] {
            let report = ReportMoved { moved: vec![moved()], seen: Seq(seen) };
            let decided = report_moved(&answered(decision), &report);
            assert_eq!(decided.events.len(), usize::from(opens), "{decision} seen at {seen}");
        }
    }
}
