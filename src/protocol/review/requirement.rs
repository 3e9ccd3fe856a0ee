//! What must hold before a circle is done: one computation, which confirm refuses by and explain shows.

use std::sync::Arc;

use super::event::Undone;
use super::gate;
use super::printed::next_command;
use super::state::{CheckReport, Circle, Edge, Objection, ObjectionKind, Proposal, Review, Version};
use crate::protocol::charter::{Charter, Phase, RuleMode};
use crate::protocol::escalation::Escalated;
use crate::protocol::name::{MemberName, ProposalName};
use crate::protocol::rule::{self, About, Judge, Judgement, Moment, Owner, Rule, Value, View};
use crate::protocol::team::Team;

/// What mends a rule that can't be judged.
pub(super) const ADOPT_COMMAND: &str = "countersign charter adopt FILE --reason TEXT";

/// One thing that must hold, and whether it does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requirement {
    /// The rule that demands it.
    pub rule: String,
    /// How strictly the charter takes that rule.
    pub mode: RuleMode,
    /// What it is about: a circle, a proposal, a review, an objection.
    pub subject: String,
    /// The proposal that it is about, where it is about one.
    pub proposal: Option<ProposalName>,
    /// Whether it holds.
    pub state: RequirementState,
    /// Who can meet it.
    pub who: Vec<MemberName>,
    /// The command that would meet it.
    pub command: String,
    /// In words.
    pub detail: String,
    owes: Owner,
    about: About,
}

/// Whether a requirement holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RequirementState {
    /// It does.
    Satisfied,
    /// It doesn't.
    Unsatisfied,
    /// A person decided in its stead.
    Overruled,
    /// There is nothing to hold.
    NotApplicable,
    /// It couldn't be computed; that is no pass.
    Error,
}

impl RequirementState {
    /// Its stable name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Satisfied => "SATISFIED",
            Self::Unsatisfied => "UNSATISFIED",
            Self::Overruled => "OVERRULED",
            Self::NotApplicable => "NOT_APPLICABLE",
            Self::Error => "ERROR",
        }
    }
}

impl Requirement {
    /// Its name: the rule and what it is about.
    pub fn name(&self) -> String {
        format!("{} {}", self.rule, self.subject)
    }

    /// What the rule looks at.
    pub fn about(&self) -> About {
        self.about
    }

    /// Who owes once it is denied.
    pub fn owes(&self) -> Owner {
        self.owes
    }
}

/// Everything that must hold before `confirmer` may confirm that circle, by rule and then in the
/// order of its proposals.
pub fn of_circle(
    team: &Team,
    charter: &Charter,
    judge: &dyn Judge,
    circle: &Circle,
    confirmer: &MemberName,
) -> Vec<Requirement> {
    of_circle_by(team, charter, judge, circle, confirmer, |_| true)
}

/// The same, for the rules that `wanted` picks.
pub fn of_circle_by(
    team: &Team,
    charter: &Charter,
    judge: &dyn Judge,
    circle: &Circle,
    confirmer: &MemberName,
    wanted: impl Fn(&Rule) -> bool,
) -> Vec<Requirement> {
    let Some((_, phase)) = charter.phase(&circle.phase) else { return Vec::new() };
    let mut out = Vec::new();
    let mut subjects: Option<Subjects<'_>> = None;
    for (index, rule) in judge.rules().iter().enumerate() {
        if rule.when != Moment::Confirm || !wanted(rule) {
            continue;
        }
        // Nothing is built where no rule is asked.
        let subjects = subjects.get_or_insert_with(|| Subjects::of(team, charter, phase, circle, confirmer));
        let mode = charter.rules.modes.get(&rule.id).copied().unwrap_or_default();
        for subject in subjects.about(rule.about) {
            out.push(requirement(judge, index, rule, mode, subject, circle, confirmer, charter));
        }
    }
    out
}

/// What a candidate rule says of everything that it can be asked about now. One of propose is asked about
/// every current version, and one of approve about every approval that counts, as though it were offered
/// once more.
pub fn tried(team: &Team, candidate: &dyn Judge, asker: &MemberName) -> Vec<Requirement> {
    let Some(charter) = team.adopted().map(|adopted| &adopted.charter) else { return Vec::new() };
    let mut out = Vec::new();
    for circle in team.review().circles().filter(|circle| circle.is_open()) {
        let Some((_, phase)) = charter.phase(&circle.phase) else { continue };
        out.extend(of_circle(team, charter, candidate, circle, asker));
        for proposal in circle.proposals.iter().filter_map(|name| team.review().proposal(name)) {
            for (index, rule) in candidate.rules().iter().enumerate() {
                for subject in gate::again(team, charter, phase, circle, proposal, rule.when) {
                    out.push(requirement(
                        candidate,
                        index,
                        rule,
                        RuleMode::Enforce,
                        &subject,
                        circle,
                        asker,
                        charter,
                    ));
                }
            }
        }
    }
    out
}

#[allow(clippy::too_many_arguments)] // They are the parts of one sentence: who asks what of whom.
fn requirement(
    judge: &dyn Judge,
    index: usize,
    rule: &Rule,
    mode: RuleMode,
    subject: &Subject<'_>,
    circle: &Circle,
    confirmer: &MemberName,
    charter: &Charter,
) -> Requirement {
    let judgement = match mode {
        RuleMode::Off => Judgement::NotApplicable,
        RuleMode::Enforce | RuleMode::Warn => judge.judge(index, &subject.view),
    };
    let (state, detail) = match judgement {
        Judgement::NotApplicable if mode == RuleMode::Off => {
            (RequirementState::NotApplicable, "switched off in the charter".to_owned())
        }
        Judgement::NotApplicable => (RequirementState::NotApplicable, rule.title.clone()),
        Judgement::Passes => (RequirementState::Satisfied, rule.title.clone()),
        Judgement::Overruled => (RequirementState::Overruled, rule.title.clone()),
        Judgement::Denies => (RequirementState::Unsatisfied, rule::message(rule, &subject.view)),
        Judgement::Error(what) => {
            (RequirementState::Error, format!("{} could not be judged: {what}", rule.id))
        }
    };
    let open = matches!(state, RequirementState::Unsatisfied | RequirementState::Error);
    // What can't be judged is nobody's to mend but a person's.
    let owes = if state == RequirementState::Error { Owner::Person } else { rule.owes };
    let (who, command) = if state == RequirementState::Error {
        (charter.humans().cloned().collect(), ADOPT_COMMAND.to_owned())
    } else if open {
        let reviewers = subject.reviewers.iter().copied();
        let who = who(rule.owes, subject.proposal, reviewers, confirmer, charter);
        (who, rule::remedy(rule, &subject.view))
    } else {
        (Vec::new(), String::new())
    };
    Requirement {
        rule: rule.id.clone(),
        mode,
        subject: subject.name.clone().unwrap_or_else(|| circle.name.to_string()),
        proposal: subject.proposal.map(|proposal| proposal.name.clone()),
        state,
        who,
        command,
        detail,
        owes,
        about: rule.about,
    }
}

/// Whom a rule's owner names, where `by` asks.
pub(super) fn who<'a>(
    owes: Owner,
    proposal: Option<&Proposal>,
    reviewers: impl Iterator<Item = &'a MemberName>,
    by: &MemberName,
    charter: &Charter,
) -> Vec<MemberName> {
    match owes {
        Owner::Producer => proposal.map(|proposal| proposal.producer.clone()).into_iter().collect(),
        Owner::Reviewers => reviewers.cloned().collect(),
        Owner::Confirmer | Owner::Author => vec![by.clone()],
        Owner::Person => charter.humans().cloned().collect(),
    }
}

/// One thing that a rule can be asked about.
pub(super) struct Subject<'a> {
    /// Nothing for the circle itself.
    pub(super) name: Option<String>,
    pub(super) proposal: Option<&'a Proposal>,
    /// Who owes where reviewers do: the reviewer or objector in question, or all of the proposal's.
    pub(super) reviewers: Vec<&'a MemberName>,
    pub(super) view: View,
}

/// Everything in a circle that a rule can be asked about, by kind.
struct Subjects<'a> {
    circle: Vec<Subject<'a>>,
    proposals: Vec<Subject<'a>>,
    reviews: Vec<Subject<'a>>,
    objections: Vec<Subject<'a>>,
    checks: Vec<Subject<'a>>,
    escalations: Vec<Subject<'a>>,
}

impl<'a> Subjects<'a> {
    fn of(
        team: &'a Team,
        charter: &'a Charter,
        phase: &'a Phase,
        circle: &'a Circle,
        confirmer: &MemberName,
    ) -> Self {
        let review = team.review();
        let proposals: Vec<&Proposal> =
            circle.proposals.iter().filter_map(|name| review.proposal(name)).collect();
        let views: Vec<Value> = proposals
            .iter()
            .map(|proposal| proposal_view(review, charter, phase, proposal, circle, confirmer))
            .collect();
        let participants = review.participants(charter, circle);
        let produces = proposals.iter().any(|proposal| proposal.producer == *confirmer);
        let mut base = View::default();
        base.words.insert(
            "confirmer",
            [("name", Value::from(confirmer.as_str())), ("produces", produces.into())].into_iter().collect(),
        );
        base.words.insert("circle", circle_view(team, charter, circle, views.clone()));
        let mut subjects = Self {
            circle: Vec::new(),
            proposals: Vec::new(),
            reviews: Vec::new(),
            objections: Vec::new(),
            checks: Vec::new(),
            escalations: Vec::new(),
        };
        for (proposal, view) in proposals.into_iter().zip(views) {
            let edges: Vec<Edge<'_>> = proposal.edges(phase).collect();
            let with = |word: Option<(&'static str, Value)>| {
                let mut words = base.words.clone();
                words.insert("proposal", view.clone());
                words.extend(word);
                View { words }
            };
            for edge in edges.iter().copied() {
                subjects.reviews.push(Subject {
                    name: Some(format!("{} by {} ({})", proposal.name, edge.reviewer, edge.lens)),
                    proposal: Some(proposal),
                    reviewers: vec![edge.reviewer],
                    view: with(Some(("review", review_view(charter, phase, proposal, edge)))),
                });
            }
            for objection in &proposal.objections {
                subjects.objections.push(Subject {
                    name: Some(format!("{} {}", proposal.name, objection.id)),
                    proposal: Some(proposal),
                    reviewers: vec![&objection.by],
                    view: with(Some(("objection", objection_view(objection)))),
                });
            }
            for check in &charter.required_checks {
                subjects.checks.push(Subject {
                    name: Some(format!("{} {check}", proposal.name)),
                    proposal: Some(proposal),
                    reviewers: Vec::new(),
                    view: with(Some(("check", check_view(proposal, check)))),
                });
            }
            let mut reviewers: Vec<&MemberName> = edges.iter().map(|edge| edge.reviewer).collect();
            reviewers.dedup();
            let approving = proposal.approving(phase);
            if !circle.unaccepted.contains(&proposal.name) && !approving.is_empty() {
                reviewers = approving.into_iter().collect();
            }
            let (name, view) = (Some(proposal.name.to_string()), with(None));
            subjects.proposals.push(Subject { name, proposal: Some(proposal), reviewers, view });
        }
        let open = team.escalations().open().filter(|escalation| {
            team.circle_of(&escalation.opened).is_some_and(|about| about.name == circle.name)
        });
        for escalation in open {
            let opened = &escalation.opened;
            let mut words = base.words.clone();
            words.insert("escalation", escalation_view(opened));
            subjects.escalations.push(Subject {
                name: Some(opened.id.to_string()),
                proposal: opened.proposal.as_ref().and_then(|name| review.proposal(name)),
                reviewers: Vec::new(),
                view: View { words },
            });
        }
        subjects.circle.push(Subject {
            name: None,
            proposal: None,
            reviewers: participants.into_iter().collect(),
            view: base,
        });
        subjects
    }

    fn about(&self, about: About) -> &[Subject<'a>] {
        match about {
            About::Circle => &self.circle,
            About::Proposal => &self.proposals,
            About::Review => &self.reviews,
            About::Objection => &self.objections,
            About::Check => &self.checks,
            About::Escalation => &self.escalations,
            About::Text => &[],
        }
    }
}

pub(super) fn circle_view(team: &Team, charter: &Charter, circle: &Circle, proposals: Vec<Value>) -> Value {
    let review = team.review();
    let revision = team.adopted().map_or(0, |adopted| adopted.revision);
    let manifest = review.manifest(revision, circle);
    let participants = review.participants(charter, circle);
    [
        ("name", Value::from(circle.name.as_str())),
        ("ref", review.circle_ref(revision, circle).to_string().into()),
        ("phase", circle.phase.as_str().into()),
        ("dissent", (circle.dissent.as_ref() == Some(&manifest)).into()),
        ("participants", participants.iter().map(|member| Value::from(member.as_str())).collect()),
        ("proposals", Value::List(proposals)),
    ]
    .into_iter()
    .collect()
}

pub(super) fn proposal_view(
    review: &Review,
    charter: &Charter,
    phase: &Phase,
    proposal: &Proposal,
    circle: &Circle,
    confirmer: &MemberName,
) -> Value {
    let ids = |objections: Vec<&Objection>| -> Value {
        objections.into_iter().map(|objection| Value::from(objection.id.to_string())).collect()
    };
    let texts = |texts: Option<Vec<String>>| texts.into_iter().flatten().map(Value::from).collect::<Value>();
    let standing = review.standing(proposal);
    let undone = standing.and_then(|standing| standing.report.undone.as_ref());
    let conflict = standing.and_then(|standing| Some(standing.report.conflict_told(standing.conflict?)));
    [
        ("name", Value::from(proposal.name.as_str())),
        ("producer", proposal.producer.as_str().into()),
        ("delivered", proposal.current().is_some().into()),
        ("version", proposal.current_number().into()),
        ("ref", proposal.current_ref().into()),
        ("propose", next_command(review, charter, proposal).into()),
        ("withdrawn", proposal.withdrawal.is_some().into()),
        ("unpublishable", proposal.publish_failed.is_some().into()),
        ("accepted", (!circle.unaccepted.contains(&proposal.name)).into()),
        ("rounds", proposal.rounds.into()),
        ("approvals", count(proposal.approving(phase).len())),
        ("evidence", count(proposal.evidence(phase))),
        ("open_objections", ids(proposal.open_objections().collect())),
        ("unread", ids(proposal.unread().collect())),
        ("confirmer_is_producer", (proposal.producer == *confirmer).into()),
        ("target", charter.target_of(&proposal.name).unwrap_or_default().into()),
        ("landed", standing.is_some_and(|standing| standing.report.empty).into()),
        ("undone", texts(undone.map(Undone::files_told))),
        ("undone_commits", texts(undone.map(Undone::commits_told))),
        ("conflict", conflict.unwrap_or_default().into()),
    ]
    .into_iter()
    .collect()
}

fn count(of: usize) -> Value {
    i64::try_from(of).unwrap_or(i64::MAX).into()
}

fn review_view(charter: &Charter, phase: &Phase, proposal: &Proposal, edge: Edge<'_>) -> Value {
    let reviewer = edge.reviewer;
    let current = proposal.current();
    let voted = proposal.versions.iter().rev().find(|version| version.vote(reviewer).is_some());
    let vote = current.and_then(|version| version.vote(reviewer));
    let eligible = current.is_none_or(|version| proposal.own_work(charter, version, reviewer).is_none());
    let evidence = vote.map_or(0, |vote| vote.checked.len() + vote.ran.len());
    let on_current =
        |of: fn(&Version, &MemberName) -> bool| current.is_some_and(|version| of(version, reviewer));
    [
        ("reviewer", Value::from(reviewer.as_str())),
        ("lens", edge.lens.as_str().into()),
        ("vote", vote.map_or("none", |vote| vote.kind.as_str()).into()),
        ("voted_version", voted.map_or(0, |version| version.number).into()),
        ("read", on_current(|version, reviewer| version.read_by.contains_key(reviewer)).into()),
        ("eligible", eligible.into()),
        ("overruled", on_current(|version, reviewer| version.overruled.contains(reviewer)).into()),
        ("approve", proposal.approval_command(phase, reviewer).into()),
        ("unshown", proposal.unshown(phase, reviewer).map(Value::from).collect()),
        ("evidence", count(evidence)),
    ]
    .into_iter()
    .collect()
}

fn objection_view(objection: &Objection) -> Value {
    let kind = match objection.kind {
        ObjectionKind::Objection => "objection",
        ObjectionKind::Note => "note",
    };
    let failing_test: Arc<str> =
        objection.failing_test.as_ref().map_or("", |run| run.command.as_str()).into();
    [
        ("id", Value::from(objection.id.to_string())),
        ("by", objection.by.as_str().into()),
        ("kind", kind.into()),
        ("version", objection.version.into()),
        ("status", objection.status().into()),
        ("read", objection.read.into()),
        ("failing_test", Value::Text(failing_test)),
    ]
    .into_iter()
    .collect()
}

fn check_view(proposal: &Proposal, name: &str) -> Value {
    let report = proposal.current().and_then(|version| version.checks.get(name));
    [
        ("name", Value::from(name)),
        ("status", report.map_or("missing", CheckReport::status).into()),
        ("by", report.map_or("", |report| report.by.as_str()).into()),
    ]
    .into_iter()
    .collect()
}

fn escalation_view(opened: &Escalated) -> Value {
    let offered = opened.decisions().first().map_or(String::new(), ToString::to_string);
    [
        ("id", Value::from(opened.id.to_string())),
        ("cause", opened.cause.as_str().into()),
        ("subject", opened.subject.as_str().into()),
        ("needs_decision", opened.cause.needs_a_decision().into()),
        ("decide", offered.into()),
    ]
    .into_iter()
    .collect()
}
