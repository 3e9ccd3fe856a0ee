//! decide: confirm, and the server's report on publishing.

use super::command::{Confirm, ReportPublish};
use super::event::{
    CircleCompleted, CirclePublished, CircleReopened, CompletedEntry, Confirmed, CountedApproval,
};
use super::requirement::{self, RequirementState};
use super::state::{Circle, CircleState, PhaseState, Proposal};
use crate::protocol::answer::Answer;
use crate::protocol::artifact::ArtifactKind;
use crate::protocol::charter::{Charter, ConfirmKind, Phase, RuleMode};
use crate::protocol::escalation::{Cause, Escalated};
use crate::protocol::event::Event;
use crate::protocol::name::{CircleRef, Digest, MemberName, PhaseName};
use crate::protocol::rejection::{Rejection, Violation};
use crate::protocol::rule::Owner;
use crate::protocol::team::{Ask, Decision, Team};

/// Confirms exactly what a circle holds, unless, in this order: the circle is unknown or its phase hasn't
/// opened, the member takes no part in it, a person closed it, the reference isn't the current one, or a
/// rule denies. A circle that is complete already answers ok.
pub(in crate::protocol) fn confirm(ask: Ask<'_>, command: &Confirm) -> Decision {
    let given = &command.reference;
    let review = ask.review();
    let Some(circle) = review.circle(&given.circle) else {
        return Decision::refuse(match pending_phase(ask.charter, given) {
            Some(phase) => Violation::PhaseClosed { phase, state: "pending".to_owned() },
            None => ask.unknown(given.circle.as_str(), review.circles().map(|circle| circle.name.as_str())),
        });
    };
    let revision = ask.team.adopted().map_or(0, |adopted| adopted.revision);
    let manifest = match &circle.completed {
        Some(completed) => completed.manifest.clone(),
        None => review.manifest(revision, circle),
    };
    let participants = review.participants(ask.charter, circle);
    let mut unmet = Vec::new();
    if !participants.contains(ask.by) {
        unmet.push(Violation::NotParticipant {
            circle: circle.name.to_string(),
            member: ask.by.to_string(),
            participants: participants.iter().map(|member| (*member).clone()).collect(),
        });
    }
    let current = CircleRef { circle: circle.name.clone(), digest: (&manifest).into() };
    if circle.state == CircleState::Closed {
        unmet.push(match review.phase_state(&circle.phase) {
            Some(PhaseState::Closed) => {
                let (phase, state) = (circle.phase.clone(), PhaseState::Closed.as_str().to_owned());
                Violation::PhaseClosed { phase, state }
            }
            _ => {
                let (circle, state) = (circle.name.to_string(), circle.state.as_str().to_owned());
                Violation::CircleComplete { circle, state }
            }
        });
    }
    if !given.digest.names(&manifest) {
        unmet.push(Violation::StaleConfirm { given: given.clone(), current: current.clone() });
    }
    let mut events = Vec::new();
    if circle.is_open() {
        check_rules(ask, circle, &mut unmet, &mut events);
    }
    if let Some(rejection) = Rejection::of(unmet) {
        return Decision { events, outcome: Err(rejection) };
    }
    if !circle.is_open() {
        let answer = Answer::Confirmed { circle: current, complete: true, waiting_for: Vec::new() };
        return Decision::accept(Vec::new(), answer);
    }

    let mut waiting_for = participants;
    waiting_for.remove(ask.by);
    for member in review.confirmed(circle, &manifest) {
        waiting_for.remove(member);
    }
    let waiting_for: Vec<MemberName> = waiting_for.into_iter().cloned().collect();
    let complete = waiting_for.is_empty();
    let confirmed = Confirmed { circle: circle.name.clone(), manifest: manifest.clone(), by: ask.by.clone() };
    let mut events = vec![Event::from(confirmed)];
    if complete {
        events.push(completed(ask, circle, manifest).into());
    }
    Decision::accept(events, Answer::Confirmed { circle: current, complete, waiting_for })
}

/// The phase in which a circle of that name will open.
fn pending_phase(charter: &Charter, given: &CircleRef) -> Option<PhaseName> {
    let opens = |phase: &&Phase| match phase.confirm {
        ConfirmKind::Together => phase.name.as_str() == given.circle.as_str(),
        ConfirmKind::Each => {
            phase.deliverables.iter().any(|deliverable| deliverable.name.as_str() == given.circle.as_str())
        }
    };
    charter.phases.iter().find(opens).map(|phase| phase.name.clone())
}

/// Every rule that denies, each with who can remedy it. One that can't be judged, or that only a person can
/// satisfy, goes to a person with the first refusal.
fn check_rules(ask: Ask<'_>, circle: &Circle, unmet: &mut Vec<Violation>, events: &mut Vec<Event>) {
    let own = |rule: &str| {
        ask.team.adopted().is_some_and(|adopted| adopted.rules.iter().any(|known| known.id == rule))
    };
    for requirement in requirement::of_circle(ask.team, ask.charter, ask.judge, circle, ask.by) {
        let denies = matches!(requirement.state, RequirementState::Unsatisfied | RequirementState::Error);
        if denies && requirement.mode == RuleMode::Enforce {
            // What a shipped rule has a person owe was put before one when it came to be.
            let persons = requirement.owes() == Owner::Person && own(&requirement.rule);
            if (requirement.state == RequirementState::Error || persons) && events.is_empty() {
                let text = format!("{}: {}", requirement.name(), requirement.detail);
                events.extend(ask.rule_escalation(&circle.name, true, text));
            }
            unmet.push(Violation::ConfirmBlocked {
                rule: requirement.rule,
                subject: requirement.subject,
                message: requirement.detail,
                command: requirement.command,
                who: requirement.who,
            });
        }
    }
}

/// What a circle holds, with the approvals that count on it.
fn completed(ask: Ask<'_>, circle: &Circle, manifest: Digest) -> CircleCompleted {
    let proposals = circle.proposals.iter().filter_map(|name| ask.review().proposal(name));
    let entries = proposals.filter_map(|proposal| completed_entry(ask, proposal)).collect();
    CircleCompleted { circle: circle.name.clone(), manifest, entries }
}

fn completed_entry(ask: Ask<'_>, proposal: &Proposal) -> Option<CompletedEntry> {
    let version = proposal.current()?;
    let counted = ask.edges(proposal).filter_map(|edge| {
        let overruled = !version.approved_by(edge.reviewer);
        let counts = !overruled || version.overruled.contains(edge.reviewer);
        counts.then(|| CountedApproval {
            by: edge.reviewer.clone(),
            lens: edge.lens.clone(),
            version: version.number,
            overruled,
        })
    });
    let is_commit = version.artifact.kind == ArtifactKind::Commit;
    Some(CompletedEntry {
        proposal: proposal.name.clone(),
        version: version.number,
        digest: version.artifact.digest.clone(),
        approvals: counted.collect(),
        target: ask.charter.target_of(&proposal.name).filter(|_| is_commit).map(str::to_owned),
    })
}

/// The server's report: what a complete circle holds was published, and the next phase opens when it
/// was the last circle of a phase that finishes together; or it couldn't be, and the circle is open again with its
/// confirmations void. A report on anything but a complete circle's manifest changes nothing.
pub(in crate::protocol) fn report_publish(
    team: &Team,
    charter: &Charter,
    report: &ReportPublish,
) -> Decision {
    let review = team.review();
    let complete = review.circle(&report.circle).filter(|circle| {
        let same = circle.completed.as_ref().is_some_and(|completed| completed.manifest == report.manifest);
        circle.state == CircleState::Complete && same
    });
    let Some(circle) = complete else { return Decision::accept(Vec::new(), Answer::Recorded) };
    if let Some(failure) = &report.failure {
        let escalated = Escalated {
            id: team.escalations().next_id(),
            circle: Some(circle.name.clone()),
            ..Escalated::new(Cause::PublishFailure, circle.name.to_string(), failure.because.clone())
        };
        let reopened = CircleReopened {
            circle: circle.name.clone(),
            because: failure.because.clone(),
            owing: failure.owing.clone(),
            check: report.check.clone(),
        };
        let again = team.escalations().open_on(Cause::PublishFailure, circle.name.as_str()).is_some();
        let escalated = (!again).then(|| Event::from(escalated));
        return Decision::accept([reopened.into()].into_iter().chain(escalated).collect(), Answer::Recorded);
    }
    let published = CirclePublished {
        circle: circle.name.clone(),
        manifest: report.manifest.clone(),
        refs: report.refs.clone(),
        check: report.check.clone(),
    };
    let mut events = vec![Event::from(published)];
    events.extend(super::phase::after(team, charter, &circle.phase, &[&circle.name]).map(Event::from));
    Decision::accept(events, Answer::Recorded)
}
