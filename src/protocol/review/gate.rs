//! Rules that are asked before a version or an approval is accepted.
//!
//! What they see is the state before the command, and what is offered beside it. Nothing is built where no
//! rule is asked.

use super::command::{Approve, Propose};
use super::event::Run;
use super::requirement::{ADOPT_COMMAND, Subject, circle_view, proposal_view, who};
use super::state::{Circle, Proposal};
use crate::protocol::artifact::{Identity, RepoPath};
use crate::protocol::charter::{Charter, Phase, RuleMode};
use crate::protocol::event::Event;
use crate::protocol::name::{Lens, MemberName, ObjectionId, VersionRef};
use crate::protocol::referee::CalledOut;
use crate::protocol::rejection::Violation;
use crate::protocol::rule::{self, Judgement, Moment, Owner, Rule, Value, View};
use crate::protocol::team::{Ask, Team};

/// What the rules of one moment say of one command.
#[derive(Debug, Default)]
pub(super) struct Verdict {
    /// One for each rule that denies.
    pub(super) denied: Vec<Violation>,
    /// What a person must see to: a rule that can't be judged, or that only a person can satisfy.
    pub(super) escalated: Option<Event>,
    /// What rules that only warn say.
    pub(super) warned: Vec<Event>,
}

impl Verdict {
    /// Adds what stands in the way. A person is asked only where nothing else stands there.
    pub(super) fn refuse(&mut self, unmet: &mut Vec<Violation>, events: &mut Vec<Event>) {
        let escalated = self.escalated.take().filter(|_| unmet.is_empty());
        events.extend(escalated);
        unmet.append(&mut self.denied);
    }
}

/// What the propose rules say of an offer.
pub(super) fn of_offer(ask: Ask<'_>, proposal: &Proposal, command: &Propose, round: bool) -> Verdict {
    let number = proposal.current_number() + 1;
    let offer = Offer {
        number,
        by: ask.by,
        summary: &command.summary,
        paths: &command.facts.paths,
        authors: &command.facts.authors,
        answers: command.answers.keys().copied().collect(),
        round,
    };
    judge(ask, Moment::Propose, proposal, &format!("{}@{number}", proposal.name), &[], || offer.view())
}

/// What the approve rules say of an approval.
pub(super) fn of_approval(
    ask: Ask<'_>,
    proposal: &Proposal,
    reference: &VersionRef,
    lenses: &[Lens],
    command: &Approve,
) -> Verdict {
    let checked: Vec<String> = command.checked.iter().map(|named| named.place.to_string()).collect();
    let view = || approval_view(reference, ask.by, lenses, &checked, &command.ran, &command.resolve);
    judge(ask, Moment::Approve, proposal, &reference.to_string(), &[ask.by], view)
}

/// What stands, as though it were offered once more: the current version, or the approvals that count.
pub(super) fn again<'a>(
    team: &'a Team,
    charter: &Charter,
    phase: &'a Phase,
    circle: &Circle,
    proposal: &'a Proposal,
    when: Moment,
) -> Vec<Subject<'a>> {
    let Some(current) = proposal.current() else { return Vec::new() };
    let reference = current.reference(&proposal.name);
    let subject = |reviewers: Vec<&'a MemberName>, offered: Value| {
        let by = reviewers.first().copied().unwrap_or(&proposal.producer);
        let view = view_of(team, charter, phase, circle, proposal, by, when, offered);
        Subject { name: Some(reference.to_string()), proposal: Some(proposal), reviewers, view }
    };
    match when {
        Moment::Propose => {
            let offer = Offer {
                number: current.number,
                by: &current.producer,
                summary: &current.summary,
                paths: &current.paths,
                authors: &current.authors,
                answers: current.answers.keys().copied().collect(),
                round: current.number > 1 && proposal.rounds > 0,
            };
            vec![subject(Vec::new(), offer.view())]
        }
        Moment::Approve => {
            let approves = |member: &&MemberName| current.approved_by(member);
            let mut reviewers: Vec<&MemberName> =
                proposal.edges(phase).map(|edge| edge.reviewer).filter(approves).collect();
            reviewers.sort();
            reviewers.dedup();
            let approval = |member: &'a MemberName| {
                let vote = current.vote(member)?;
                let own = proposal.edges(phase).filter(|edge| edge.reviewer == member);
                let lenses: Vec<Lens> = own.map(|edge| edge.lens.clone()).collect();
                let checked: Vec<String> = vote.checked.iter().map(ToString::to_string).collect();
                let view = approval_view(&reference, member, &lenses, &checked, &vote.ran, &[]);
                Some(subject(vec![member], view))
            };
            reviewers.into_iter().filter_map(approval).collect()
        }
        Moment::Confirm | Moment::Text => Vec::new(),
    }
}

/// A version as it is offered.
struct Offer<'a> {
    number: u32,
    by: &'a MemberName,
    summary: &'a str,
    paths: &'a [RepoPath],
    authors: &'a [Identity],
    answers: Vec<ObjectionId>,
    round: bool,
}

impl Offer<'_> {
    fn view(&self) -> Value {
        [
            ("version", Value::from(self.number)),
            ("by", self.by.as_str().into()),
            ("summary", self.summary.into()),
            ("paths", texts(self.paths.iter().map(ToString::to_string))),
            ("authors", texts(self.authors.iter().map(|author| author.email.clone()))),
            ("answers", texts(self.answers.iter().map(ToString::to_string))),
            ("round", self.round.into()),
        ]
        .into_iter()
        .collect()
    }
}

fn approval_view(
    reference: &VersionRef,
    by: &MemberName,
    lenses: &[Lens],
    checked: &[String],
    ran: &[Run],
    resolves: &[ObjectionId],
) -> Value {
    [
        ("ref", Value::from(reference.to_string())),
        ("by", by.as_str().into()),
        ("lenses", texts(lenses.iter().map(ToString::to_string))),
        ("checked", texts(checked.iter().cloned())),
        ("ran", texts(ran.iter().map(|run| run.command.clone()))),
        ("resolves", texts(resolves.iter().map(ToString::to_string))),
    ]
    .into_iter()
    .collect()
}

fn texts(texts: impl Iterator<Item = String>) -> Value {
    texts.map(Value::from).collect()
}

fn judge(
    ask: Ask<'_>,
    when: Moment,
    proposal: &Proposal,
    subject: &str,
    reviewers: &[&MemberName],
    offered: impl Fn() -> Value,
) -> Verdict {
    let mut verdict = Verdict::default();
    let what = if when == Moment::Propose { "version" } else { "approval" };
    let mut view = None;
    for (index, rule) in ask.judge.rules().iter().enumerate().filter(|(_, rule)| rule.when == when) {
        let mode = ask.charter.rules.modes.get(&rule.id).copied().unwrap_or_default();
        if mode == RuleMode::Off {
            continue;
        }
        let view = view.get_or_insert_with(|| {
            let (phase, names) = (ask.phase_of(proposal), vec![proposal.name.clone()]);
            let begins = || Circle::fresh(proposal.circle.clone(), &proposal.phase, names, ask.now);
            let circle = ask.review().circle(&proposal.circle).cloned().unwrap_or_else(begins);
            view_of(ask.team, ask.charter, phase, &circle, proposal, ask.by, when, offered())
        });
        let (says, errs) = match ask.judge.judge(index, view) {
            Judgement::NotApplicable | Judgement::Passes | Judgement::Overruled => continue,
            Judgement::Denies => (rule::message(rule, view), false),
            Judgement::Error(what) => (format!("{} could not be judged: {what}", rule.id), true),
        };
        if mode == RuleMode::Warn {
            let (rule, by, subject) = (rule.id.clone(), ask.by.clone(), subject.to_owned());
            verdict.warned.push(CalledOut { rule, by, what: what.to_owned(), subject, says }.into());
            continue;
        }
        if (errs || rule.owes == Owner::Person) && verdict.escalated.is_none() {
            verdict.escalated = escalation(ask, proposal, rule, &says);
        }
        // What can't be judged is nobody's to mend but a person's.
        let (owes, command) = match errs {
            true => (Owner::Person, ADOPT_COMMAND.to_owned()),
            false => (rule.owes, rule::remedy(rule, view)),
        };
        let reviewers = reviewers_or_all(ask, proposal, reviewers);
        verdict.denied.push(Violation::RuleDenied {
            rule: rule.id.clone(),
            subject: subject.to_owned(),
            message: says,
            command,
            who: who(owes, Some(proposal), reviewers, ask.by, ask.charter),
        });
    }
    verdict
}

fn reviewers_or_all<'a>(
    ask: Ask<'a>,
    proposal: &'a Proposal,
    named: &[&'a MemberName],
) -> impl Iterator<Item = &'a MemberName> {
    let all = named.is_empty().then(|| proposal.edges(ask.phase_of(proposal)).map(|edge| edge.reviewer));
    named.iter().copied().chain(all.into_iter().flatten()).collect::<Vec<_>>().into_iter()
}

#[allow(clippy::too_many_arguments)] // They are the parts of one sentence: what is offered for what, by whom.
fn view_of(
    team: &Team,
    charter: &Charter,
    phase: &Phase,
    circle: &Circle,
    proposal: &Proposal,
    by: &MemberName,
    when: Moment,
    offered: Value,
) -> View {
    let own = proposal_view(team.review(), charter, phase, proposal, circle, by);
    let views = circle.proposals.iter().filter_map(|name| team.review().proposal(name));
    let mut views: Vec<Value> =
        views.map(|one| proposal_view(team.review(), charter, phase, one, circle, by)).collect();
    // What begins with this version isn't in the state yet.
    let beginning = views.is_empty().then_some(proposal);
    if beginning.is_some() {
        views.push(own.clone());
    }
    let mut view = View::default();
    view.words.insert("circle", circle_view(team, charter, circle, beginning, views));
    view.words.insert("proposal", own);
    view.words.insert(if when == Moment::Propose { "offer" } else { "approval" }, offered);
    view
}

fn escalation(ask: Ask<'_>, proposal: &Proposal, rule: &Rule, says: &str) -> Option<Event> {
    let known = ask.review().circle(&proposal.circle).is_some();
    ask.rule_escalation(&proposal.circle, known, format!("{} {}: {says}", rule.id, proposal.name))
}
