//! obligations: what the review's state makes members owe. Each names a command that is accepted.

use super::dissent;
use super::follow;
use super::printed::next_command;
use super::requirement::{self, RequirementState};
use super::state::{CheckReport, Circle, Objection, Proposal, Version};
use super::target;
use crate::protocol::charter::{Charter, Phase, RuleMode};
use crate::protocol::escalation::Cause;
use crate::protocol::name::{MemberName, ProposalName};
use crate::protocol::obligation::{Obligation, ObligationKind, deadline};
use crate::protocol::rule::{About, Judge, Owner, Rule};
use crate::protocol::team::Team;
use crate::protocol::time::Time;

/// The shipped rules that say in words what [`Review::is_settled`](super::Review::is_settled)
/// computes. Once a circle is settled they pass, so that the question who owes need not ask them
/// again; a test holds the two together.
pub const SETTLED_BY_STATE: &[&str] = &[
    "confirm/approval-missing",
    "confirm/open-objection",
    "confirm/own-unaccepted",
    "confirm/reviewer-ineligible",
    "confirm/undelivered",
    "confirm/unread",
    "confirm/unresolved-objection",
];

/// Whether one look at the state shows that this shipped rule passes on all of a settled circle. Where it
/// doesn't, the rule is asked; a test holds the two together.
pub fn plainly_met(team: &Team, charter: &Charter, circle: &Circle, rule: &str) -> bool {
    let mut current = circle
        .proposals
        .iter()
        .filter_map(|name| team.review().proposal(name))
        .filter_map(|proposal| Some((proposal, proposal.current()?)));
    match rule {
        "confirm/required-check" => {
            let passed = |version: &Version| {
                let report = |name: &String| version.checks.get(name);
                charter.required_checks.iter().all(|name| report(name).is_some_and(CheckReport::passed))
            };
            charter.required_checks.is_empty() || current.all(|(_, version)| passed(version))
        }
        target::ALREADY_LANDED | target::UNDOES_LANDED | target::UNMERGED => current.all(|(proposal, _)| {
            let standing = team.review().standing(proposal);
            standing.is_none_or(|standing| !standing.denied_by(rule))
        }),
        "confirm/open-escalation" => !team.escalations().open().any(|escalation| {
            let opened = &escalation.opened;
            opened.cause.needs_a_decision()
                && team.circle_of(opened).is_some_and(|about| about.name == circle.name)
        }),
        dissent::RULE => {
            let Some((_, phase)) = charter.phase(&circle.phase) else { return false };
            current.all(|(proposal, _)| proposal.evidence(phase) > 0 || proposal.approving(phase).is_empty())
        }
        "confirm/failing-test" => {
            let Some((_, phase)) = charter.phase(&circle.phase) else { return false };
            current.all(|(proposal, _)| {
                let tested = proposal.objections.iter().any(|objection| objection.failing_test.is_some());
                !tested
                    || proposal
                        .edges(phase)
                        .all(|edge| proposal.unshown(phase, edge.reviewer).next().is_none())
            })
        }
        _ => false,
    }
}

/// What everybody owes around one proposal, or around all of them.
pub(in crate::protocol) fn obligations(
    team: &Team,
    charter: &Charter,
    judge: &dyn Judge,
    now: Time,
    around: Option<&ProposalName>,
    owed: &mut Vec<Obligation>,
) {
    let review = team.review();
    // Around one proposal nobody looks through all circles: there may be hundreds.
    let only = around.map(|name| review.proposal(name).and_then(|proposal| review.circle(&proposal.circle)));
    let all = only.is_none().then(|| review.circles()).into_iter().flatten();
    for circle in only.flatten().into_iter().chain(all).filter(|circle| circle.is_open()) {
        let before = owed.len();
        for name in circle.proposals.iter().filter(|name| around.is_none_or(|only| *only == **name)) {
            if let Some(proposal) = review.proposal(name) {
                Owing { team, charter, now, proposal, owed }.proposal();
            }
        }
        if owed.len() == before && review.is_settled(circle) && review.is_clear(charter, circle) {
            confirmations(team, charter, judge, circle, owed);
        }
    }
}

/// What is owed around one proposal.
struct Owing<'a, 'b> {
    team: &'a Team,
    charter: &'a Charter,
    now: Time,
    proposal: &'a Proposal,
    owed: &'b mut Vec<Obligation>,
}

impl Owing<'_, '_> {
    fn proposal(&mut self) {
        let proposal = self.proposal;
        self.read();
        match proposal.current() {
            None => {
                let command = proposal.propose_command(self.charter);
                let producer = &proposal.producer;
                self.producer_owes(
                    ObligationKind::Deliver,
                    format!("deliver:{}", proposal.name),
                    producer,
                    proposal.opened_at,
                    command,
                );
            }
            Some(current) => {
                self.revise(current);
                if proposal.withdrawal.is_none() && proposal.publish_failed.is_none() {
                    self.reviews(current);
                }
            }
        }
    }

    fn read(&mut self) {
        let proposal = self.proposal;
        let Some(newest) = proposal.unread().last() else { return };
        let since = proposal.unread().map(|objection| objection.at).min().unwrap_or(newest.at);
        let id = format!("read:{}:{}", proposal.name, newest.id);
        let command = format!("countersign objections {}", proposal.name);
        self.answer_owed(
            ObligationKind::Read,
            id,
            &proposal.producer,
            proposal.name.to_string(),
            since,
            command,
        );
    }

    /// A version is owed once the current one is objected to, withdrawn, could not be published, doesn't stand
    /// well to its target, or was left without a reviewer by a person's decision; all that is open was read, and
    /// nothing else stands before it.
    fn revise(&mut self, current: &Version) {
        let proposal = self.proposal;
        let mut on_current =
            proposal.open_objections().filter(|objection| objection.version == current.number);
        let since = if let Some(withdrawal) = &proposal.withdrawal {
            let cool_at = proposal.cool_at(&self.charter.limits).unwrap_or(withdrawal.at);
            if self.now < cool_at {
                return; // The end of the cooldown is a deadline of the team.
            }
            cool_at
        } else if proposal.publish_failed.is_some() {
            current.at
        } else if let Some(first) = on_current.next() {
            first.at
        } else if let Some(since) = self.team.review().in_the_way(self.charter, proposal) {
            since
        } else if self.lacks_a_reviewer(current) {
            current.at
        } else {
            return;
        };
        // The end of that cooldown is a deadline of the team, too.
        let cool_at = follow::cool_at(self.team.review(), proposal, &self.charter.limits);
        if cool_at.is_some_and(|cool_at| self.now < cool_at) {
            return;
        }
        let since = cool_at.map_or(since, |cool_at| since.max(cool_at));
        let before_a_person =
            self.team.escalations().open_on(Cause::RoundLimit, proposal.name.as_str()).is_some();
        if proposal.unread().next().is_some() || before_a_person {
            return;
        }
        let command = next_command(self.team.review(), self.charter, proposal);
        let id = format!("revise:{}@{}", proposal.name, current.number);
        self.producer_owes(ObligationKind::Revise, id, &proposal.producer, since, command);
    }

    /// Whether a review of the current version can be given by nobody, and no person is asked about it
    /// any longer: only a version without the reviewer's hand in it leads on.
    fn lacks_a_reviewer(&self, current: &Version) -> bool {
        let proposal = self.proposal;
        let Some((_, phase)) = self.charter.phase(&proposal.phase) else { return false };
        let asked = self.team.escalations().open_on(Cause::ReviewerNotEligible, &proposal.current_ref());
        asked.is_none()
            && proposal.edges(phase).any(|edge| {
                !current.overruled.contains(edge.reviewer)
                    && proposal.own_work(self.charter, current, edge.reviewer).is_some()
            })
    }

    fn reviews(&mut self, current: &Version) {
        let proposal = self.proposal;
        let Some((_, phase)) = self.charter.phase(&proposal.phase) else { return };
        let mut seen: Vec<&MemberName> = Vec::new();
        let mut reviewing: Vec<&MemberName> = Vec::new();
        for edge in proposal.edges(phase) {
            let reviewer = edge.reviewer;
            if seen.contains(&reviewer) {
                continue;
            }
            seen.push(reviewer);
            let ineligible = proposal.own_work(self.charter, current, reviewer).is_some();
            if ineligible || current.vote(reviewer).is_some() || current.overruled.contains(reviewer) {
                continue;
            }
            let escalations = self.team.escalations();
            if escalations.open_of(Cause::VoteLimit, &proposal.current_ref(), reviewer).is_some() {
                continue; // A person owes.
            }
            reviewing.push(reviewer);
            self.review(phase, current, reviewer);
        }
        // Whoever owes a review closes their older objections with it, and whoever objects to the current
        // version has the producer answer all of them. Everybody else still has to say what became of
        // theirs: a person decided in their stead, they may not approve, or they review no longer.
        let objects = |member: &MemberName| {
            proposal.open_objections().any(|open| open.version == current.number && open.by == *member)
        };
        let stray = |objection: &&Objection| {
            let by = &objection.by;
            // What a member held who left is before a person.
            let member = self.charter.members.contains_key(by);
            member && objection.version < current.number && !reviewing.contains(&by) && !objects(by)
        };
        for objection in proposal.open_objections().filter(stray) {
            let id = format!("resolve:{}", objection.id);
            let command = if current.read_by.contains_key(&objection.by) {
                format!("countersign resolve {}", objection.id)
            } else {
                format!("countersign show {}@{}", proposal.name, current.number)
            };
            let subject = objection.id.to_string();
            self.answer_owed(ObligationKind::Resolve, id, &objection.by, subject, current.at, command);
        }
    }

    fn review(&mut self, phase: &Phase, current: &Version, reviewer: &MemberName) {
        let proposal = self.proposal;
        // Who reviews in another's place owes it since then.
        let since = proposal.appointed.get(reviewer).map_or(current.at, |at| current.at.max(*at));
        let reference = proposal.current_ref();
        let subject = format!("{}@{}", proposal.name, current.number);
        if !current.read_by.contains_key(reviewer) {
            let command = format!("countersign show {subject}");
            let id = format!("review:{subject}");
            return self.answer_owed(ObligationKind::Review, id, reviewer, reference, since, command);
        }
        let command = proposal.approval_command(phase, reviewer);
        let id = format!("review:{subject}");
        self.answer_owed(ObligationKind::Review, id, reviewer, reference, since, command);
    }

    fn producer_owes(
        &mut self,
        kind: ObligationKind,
        id: String,
        member: &MemberName,
        since: Time,
        command: String,
    ) {
        let due = deadline(since, self.charter.limits.deliver_within);
        let subject = self.proposal.name.to_string();
        self.owed.push(Obligation { id, member: member.clone(), kind, subject, since, due, command });
    }

    fn answer_owed(
        &mut self,
        kind: ObligationKind,
        id: String,
        member: &MemberName,
        subject: String,
        since: Time,
        command: String,
    ) {
        let due = deadline(since, self.charter.limits.answer_within);
        self.owed.push(Obligation { id, member: member.clone(), kind, subject, since, due, command });
    }
}

/// Nothing but confirmations is missing, unless a rule that the state can't speak for denies: then
/// whom that rule names owes its remedy.
fn confirmations(
    team: &Team,
    charter: &Charter,
    judge: &dyn Judge,
    circle: &Circle,
    owed: &mut Vec<Obligation>,
) {
    let review = team.review();
    let revision = team.adopted().map_or(0, |adopted| adopted.revision);
    let manifest = review.manifest(revision, circle);
    let reference = review.circle_ref(revision, circle).to_string();
    let confirmed: Vec<&MemberName> = review.confirmed(circle, &manifest).collect();
    let since = circle.progress_at;
    let within = charter.limits.answer_within;
    let unspoken = |rule: &Rule| {
        !SETTLED_BY_STATE.contains(&rule.id.as_str()) && !plainly_met(team, charter, circle, &rule.id)
    };
    for member in review.participants(charter, circle) {
        if confirmed.contains(&member) {
            continue;
        }
        let requirements = requirement::of_circle_by(team, charter, judge, circle, member, unspoken);
        let mut denied = requirements.into_iter().filter(|requirement| {
            let open = matches!(requirement.state, RequirementState::Unsatisfied | RequirementState::Error);
            open && requirement.mode == RuleMode::Enforce
        });
        let Some(first) = denied.next() else {
            owed.push(Obligation {
                id: format!("confirm:{reference}"),
                member: member.clone(),
                kind: ObligationKind::Confirm,
                subject: reference.clone(),
                since,
                due: deadline(since, within),
                command: format!("countersign confirm {reference}"),
            });
            continue;
        };
        for requirement in std::iter::once(first).chain(denied) {
            // Persons owe every decision from the moment it is asked of them.
            if requirement.about() == About::Escalation && requirement.owes() == Owner::Person {
                continue;
            }
            let (kind, within) = match requirement.owes() {
                Owner::Producer => (ObligationKind::Revise, charter.limits.deliver_within),
                Owner::Reviewers if requirement.rule == dissent::RULE => {
                    (ObligationKind::AttachEvidence, within)
                }
                Owner::Reviewers => (ObligationKind::Review, within),
                Owner::Confirmer | Owner::Author => (ObligationKind::Confirm, within),
                Owner::Person => (ObligationKind::Decide, within),
            };
            for owing in &requirement.who {
                let id = format!("{}:{}", kind.as_str(), requirement.name());
                // Two lenses of one reviewer can deny for one reason: what one command mends is owed once.
                let same = |known: &Obligation| {
                    let mends = known.kind == kind && known.command == requirement.command;
                    known.member == *owing && (known.id == id || mends)
                };
                if owed.iter().any(same) {
                    continue;
                }
                owed.push(Obligation {
                    id,
                    member: owing.clone(),
                    kind,
                    // What a deadline or a person can look up again.
                    subject: requirement
                        .proposal
                        .as_ref()
                        .map_or_else(|| requirement.subject.clone(), ToString::to_string),
                    since,
                    due: deadline(since, within),
                    command: requirement.command.clone(),
                });
            }
        }
    }
}
