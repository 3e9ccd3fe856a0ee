//! The world of one run: a team, its clock, its members and its log, and the oracle that watches.

use std::collections::{BTreeMap, BTreeSet};

use countersign::judge::CelJudge;
use countersign::protocol::artifact::{Artifact, ArtifactFacts, ArtifactKind, Identity, RepoPath};
use countersign::protocol::charter::RuleMode;
use countersign::protocol::deadline::ServerResumed;
use countersign::protocol::escalation::Cause;
use countersign::protocol::name::{Actor, CircleRef, Digest, MemberName, ObjectionId, ProposalName, Seq};
use countersign::protocol::review::{
    Circle, Confirm, Proposal, ProposalState, Propose, Requirement, RequirementState, Version, requirement,
};
use countersign::protocol::time::{Span, Time};
use countersign::protocol::{
    Adopt, Answer, Command, Decision, Event, Obligation, ObligationKind, Rejection, Team, Violation, charter,
};
use sha2::{Digest as _, Sha256};

use super::asked::{Asked, asked, told as line};
use super::dice::Dice;
use super::faults::Mishap;
use super::history::{Entry, Remark};
use super::oracle::{Broken, LIMITS, Oracle, Verdict, demand};
use super::served::Served;
use super::server::Kept;
use super::step::{Comeback, Step};
use super::stored::Fact;
use super::told;

/// When every run begins.
const OPENING: Time = Time(1_767_258_000_000_000);

/// What a run saw, so that a test can say that it saw enough.
#[derive(Debug, Default)]
pub struct Seen {
    pub runs: usize,
    pub steps: usize,
    pub events: BTreeMap<&'static str, usize>,
    pub codes: BTreeMap<&'static str, usize>,
    /// Runs in which the last phase was published.
    pub finished: usize,
    /// What went wrong with stores, servers and notifiers, and what was asked twice.
    pub mishaps: BTreeMap<&'static str, usize>,
}

impl Seen {
    pub fn add(&mut self, other: Self) {
        self.runs += other.runs;
        self.steps += other.steps;
        self.finished += other.finished;
        for (what, count) in other.mishaps {
            *self.mishaps.entry(what).or_default() += count;
        }
        for (kind, count) in other.events {
            *self.events.entry(kind).or_default() += count;
        }
        for (code, count) in other.codes {
            *self.codes.entry(code).or_default() += count;
        }
    }
}

/// One stored event.
pub struct Row {
    pub at: Time,
    pub kind: String,
    pub schema: u32,
    pub body: String,
}

/// What a run is told by: every step, and a line for each command.
#[derive(Default)]
pub struct Record {
    pub steps: Vec<Step>,
    pub story: Vec<String>,
}

pub struct World<'a> {
    pub judge: &'a CelJudge,
    pub dice: Dice,
    /// The state that the log so far gives.
    pub team: Team,
    pub members: Vec<MemberName>,
    pub in_git: bool,
    /// Circle references that were current once.
    pub old_refs: Vec<CircleRef>,
    pub seen: Seen,
    /// The run so far, where somebody will read it.
    pub record: Option<Record>,
    /// Whether everything is looked at after each step, as in a repetition.
    pub careful: bool,
    /// The server that decides; where there is none, the core is asked directly.
    pub served: Option<Served>,
    pub now: Time,
    offered: u32,
    pub log: Vec<Row>,
    pub oracle: Oracle,
}

impl<'a> World<'a> {
    /// A team with that charter.
    pub fn new(judge: &'a CelJudge, dice: Dice, text: &str, kept: Option<Kept>) -> Result<Self, Broken> {
        let parsed = charter::parse("charter.toml", text)
            .unwrap_or_else(|found| panic!("the charter is refused: {found}\n{text}"));
        let mut world = Self {
            judge,
            dice,
            team: Team::new(),
            members: parsed.members.keys().cloned().collect(),
            in_git: parsed.repository.is_some(),
            old_refs: Vec::new(),
            seen: Seen::default(),
            record: None,
            careful: false,
            served: None,
            now: OPENING,
            offered: 0,
            log: Vec::new(),
            oracle: Oracle::default(),
        };
        let digest = Digest::of_bytes(Sha256::digest(text).into());
        let adopt = Adopt { text: text.to_owned(), digest, charter: parsed, rules: Vec::new() };
        match kept {
            None => drop(world.perform_at(OPENING, &Actor::Operator, &Command::Adopt(Box::new(adopt)))?),
            Some(kept) => world.begin_served(kept, adopt)?,
        }
        Ok(world)
    }

    /// Writes down what happens next.
    pub fn happens(&mut self, step: impl FnOnce() -> Step) {
        if let Some(record) = &mut self.record {
            record.steps.push(step());
        }
    }

    /// Repeats one step.
    pub fn take(&mut self, step: &Step) -> Verdict {
        match step.clone() {
            Step::Pass { span, away, mishap } => self.pass(span, away, mishap),
            Step::Said { said, back, mishap } => self.say(said, back, mishap).map(drop),
            Step::Obeyed { owed, command, mishap } => {
                let still = |known: &Obligation| {
                    (&known.id, &known.member, &known.command) == (&owed.id, &owed.member, &owed.command)
                };
                match self.owed().iter().any(still) {
                    true => self.obeys(&owed, command, mishap),
                    false => Ok(()),
                }
            }
            Step::Repeated { which, otherwise } => self.repeat(which, otherwise),
            Step::Restarted(comeback) => self.restart(comeback),
        }
    }

    pub fn owed(&self) -> Vec<Obligation> {
        self.team.all_obligations(self.judge, self.now)
    }

    /// Time passes; now and then a lot of it, and now and then without a server. What is late then is put
    /// before a person.
    pub fn pass_time(&mut self) -> Verdict {
        let seconds = match self.dice.below(20) {
            0 => self.dice.between(60, 240),
            1 => 3600,
            _ => self.dice.between(0, 9),
        };
        let span = Span((seconds * 1_000 + self.dice.below(1_000)) as i64 * 1_000);
        let away = self.dice.percent(10);
        // What a server does by itself goes wrong too.
        let mishap = self.mishap();
        self.pass(span, away, mishap)
    }

    fn pass(&mut self, span: Span, away: bool, mishap: Mishap) -> Verdict {
        self.happens(|| Step::Pass { span, away, mishap });
        if self.served.is_some() {
            return self.pass_served(span, away, mishap);
        }
        let before = self.now;
        self.now = self.now + span;
        if away {
            let from = before.max(self.team.at());
            let resumed = Command::ResumeServer(ServerResumed { from, to: self.now.max(from) });
            self.perform_at(self.now, &Actor::Server, &resumed)?;
        }
        // As the coordinator asks: at the deadline that the core names, or later.
        if self.team.next_deadline(self.judge, self.now).is_some_and(|at| at <= self.now) {
            self.perform_at(self.now, &Actor::Server, &Command::TimePassed)?;
            let left = self.team.next_deadline(self.judge, self.now);
            demand!(
                "G13",
                left.is_none_or(|at| at > self.now),
                "asked at {}, and late since {left:?}",
                self.now
            );
        }
        self.oracle.nothing_stalls_unseen(self.now.0)
    }

    /// Has a command decided; stores and folds what comes of it, and asks the oracle.
    /// The clock that the core is given is set back now and then; the log's own time never is.
    pub fn perform(&mut self, who: &Actor, command: &Command) -> Result<Decision, Broken> {
        let set_back = if self.dice.percent(10) { self.dice.below(4_000) as i64 * 1_000_000 } else { 0 };
        let mishap = self.mishap();
        let mut decided = self.say(vec![(who.clone(), command.clone())], Span(set_back), mishap)?;
        Ok(decided.pop().expect("one command has one outcome"))
    }

    /// Has some commands decided, all before the first is answered.
    pub fn say(
        &mut self,
        said: Vec<(Actor, Command)>,
        back: Span,
        mishap: Mishap,
    ) -> Result<Vec<Decision>, Broken> {
        self.happens(|| Step::Said { said: said.clone(), back, mishap });
        if self.served.is_some() {
            return self.ask_server(said, mishap);
        }
        let now = Time(self.now.0 - back.0);
        said.iter().map(|(who, command)| self.perform_at(now, who, command)).collect()
    }

    fn perform_at(&mut self, now: Time, who: &Actor, command: &Command) -> Result<Decision, Broken> {
        self.seen.steps += 1;
        let decision = self.team.handle(self.judge, now, who, command);
        if self.careful || self.dice.percent(5) {
            let again = self.team.handle(self.judge, now, who, command);
            demand!("G12", again == decision, "decided once {decision:?} and once {again:?}");
        }
        let at = now.max(self.team.at());
        let mut facts = Vec::new();
        let mut happened = decision.events.clone();
        let mut folded = 0;
        while folded < happened.len() {
            let event = &happened[folded];
            let (kind, body) = (event.kind().to_owned(), event.encode());
            let row = Row { at, kind, schema: event.schema(), body };
            self.team.apply(Seq(self.team.seq().0 + 1), at, event);
            facts.push(self.fact(row)?);
            folded += 1;
            if folded == decision.events.len() {
                let about = self.team.touched(&decision.events);
                let aftermath = self.team.aftermath(self.judge, at, &decision.events, about.as_ref());
                happened.extend(aftermath.events);
            }
        }
        if let Some(record) = &mut self.record {
            record.story.push(line(now, who, command, &decision));
        }
        self.judged(&asked(who, command), &decision, facts)?;
        Ok(decision)
    }

    /// What a stored row says, to the oracle.
    pub fn fact(&mut self, row: Row) -> Result<Entry, Broken> {
        let fact = Fact::read(&row.kind, &row.body).map_err(|what| Broken { guarantee: "form", what })?;
        *self.seen.events.entry(fact.kind()).or_default() += 1;
        let at = row.at.0;
        self.log.push(row);
        Ok(Entry { at, fact })
    }

    /// Has the oracle judge what came of a command, and looks whether the state is as the log has it.
    pub fn judged(&mut self, asked: &Asked, decision: &Decision, facts: Vec<Entry>) -> Verdict {
        let codes: Option<Vec<&'static str>> = decision
            .outcome
            .as_ref()
            .err()
            .map(|rejection| rejection.violations().iter().map(Violation::code).collect());
        for code in codes.iter().flatten() {
            *self.seen.codes.entry(code).or_default() += 1;
        }
        if let (Ok(Answer::Withdrawn { cooldown_until, .. }), Some(first)) =
            (&decision.outcome, facts.first())
        {
            let cooldown =
                self.oracle.history().charter().map_or(0, |charter| charter.limits.withdraw_cooldown);
            let (at, told) = (first.at, cooldown_until.0);
            demand!("G5", told == at + cooldown, "withdrawn at {at} and told to come back at {told}");
        }
        let changed = !facts.is_empty();
        if asked.verb == "revise" {
            let charter = self.team.adopted().map(|adopted| &adopted.charter);
            let joined = charter.into_iter().flat_map(|charter| charter.members.keys());
            let joined: Vec<MemberName> =
                joined.filter(|member| !self.members.contains(*member)).cloned().collect();
            self.members.extend(joined);
        }
        self.oracle.step(asked, codes.as_deref(), facts)?;
        let fired = self.team.recoveries().counters().find(|(_, count)| *count > 0);
        demand!("recovery", fired.is_none(), "{fired:?} fired");
        if changed {
            if matches!(asked.verb, "say" | "verdict" | "revise") {
                self.answers_agree()?;
            }
            self.agrees()?;
            self.somebody_owes()?;
            self.explains_as_it_refuses()?;
            self.remember_refs();
        }
        Ok(())
    }

    /// The answers that are owed in the room are those that the oracle works out.
    fn answers_agree(&self) -> Verdict {
        let answers = self.team.answers_owed().into_iter();
        let answers: BTreeSet<_> = answers.map(|owed| (owed.member.to_string(), owed.subject)).collect();
        let by_the_log = self.oracle.history().answers_owed();
        demand!("G9", answers == by_the_log, "{answers:?} are owed, and by the log {by_the_log:?}");
        Ok(())
    }

    /// What the core says of each proposal is what the oracle works out.
    fn agrees(&self) -> Verdict {
        let (review, history) = (self.team.review(), self.oracle.history());
        // What is long published is looked at now and then.
        let all = self.careful || self.seen.steps.is_multiple_of(8);
        for proposal in review.proposals() {
            if !all && review.proposal_state(proposal) == ProposalState::Published {
                continue;
            }
            let circle = history.circle_state(proposal.circle.as_str());
            let name = proposal.name.as_str();
            let unmet = history.unmet(name);
            let known = review
                .circle(&proposal.circle)
                .is_some_and(|circle| circle.unaccepted.contains(&proposal.name) == unmet.is_some());
            // What was done under an earlier charter stays done.
            let known = known || circle != "open";
            demand!("G2", known, "{name} is taken for accepted, or isn't, and by the log {unmet:?}");
            let expected = match (circle, history.current(name)) {
                ("open", None) => "to-deliver",
                ("open", Some(_)) if history.is_withdrawn(name) => "withdrawn",
                ("open", Some(_)) => {
                    let open = history.remarks_on(name).iter().any(Remark::is_open_objection);
                    match (open, &unmet) {
                        (true, _) => "objected",
                        (false, Some(_)) => "under-review",
                        (false, None) => "accepted",
                    }
                }
                (state, _) => state,
            };
            let state = review.proposal_state(proposal).as_str();
            demand!(
                "G2",
                state == expected,
                "{name} is {state}, and by the log {expected}: {:?}",
                history.unmet(name)
            );
        }
        Ok(())
    }

    /// G8: in every open circle somebody owes something that moves it, or will when a cooldown ends.
    fn somebody_owes(&self) -> Verdict {
        let owed = self.owed();
        for circle in self.team.review().circles().filter(|circle| circle.is_open()) {
            let moved = owed.iter().any(|obligation| self.moves(circle, obligation)) || self.cools(circle);
            let waits = moved || self.waits_for_a_reviewer(circle);
            demand!("G8", waits, "{} is open and nobody owes: {owed:?}", circle.name);
        }
        Ok(())
    }

    /// What explain calls unmet is exactly what confirm refuses by, for whoever takes part.
    fn explains_as_it_refuses(&self) -> Verdict {
        if !self.careful && !self.seen.steps.is_multiple_of(4) {
            return Ok(());
        }
        let (review, adopted) = (self.team.review(), self.team.adopted().expect("a charter comes first"));
        let charter = &adopted.charter;
        for circle in review.circles().filter(|circle| circle.is_open()) {
            let reference = review.circle_ref(adopted.revision, circle);
            let confirm = Command::Confirm(Confirm { reference });
            for member in review.participants(charter, circle) {
                let explained = requirement::of_circle(&self.team, charter, self.judge, circle, member);
                let unmet = explained.iter().filter(|requirement| {
                    let state = requirement.state;
                    let met = !matches!(state, RequirementState::Unsatisfied | RequirementState::Error);
                    !met && requirement.mode == RuleMode::Enforce
                });
                let unmet: Vec<String> = unmet.map(Requirement::name).collect();
                let who = Actor::Member(member.clone());
                let outcome = self.team.handle(self.judge, self.now, &who, &confirm).outcome;
                let refused: Vec<String> = outcome
                    .err()
                    .iter()
                    .flat_map(Rejection::violations)
                    .map(|violation| match violation {
                        Violation::ConfirmBlocked { rule, subject, .. } => format!("{rule} {subject}"),
                        other => other.code().to_owned(),
                    })
                    .collect();
                demand!("G8", unmet == refused, "{member}: explain {unmet:?}, confirm {refused:?}");
            }
        }
        Ok(())
    }

    fn moves(&self, circle: &Circle, obligation: &Obligation) -> bool {
        let subject = obligation.subject.as_str();
        let objection = subject.parse().ok().and_then(|id: ObjectionId| self.team.review().objection(id));
        let name = subject.split(['@', ':']).next().unwrap_or_default();
        let about = objection.map_or(name, |(proposal, _)| proposal.name.as_str());
        // One that followed the work is closed wherever it stands.
        let followed = subject.parse().ok().is_some_and(|id: ObjectionId| {
            self.team.review().places(id).any(|(proposal, _)| proposal.circle == circle.name)
        });
        // What is asked about something that was dropped stands before its circle, too.
        let named = about.parse().ok().and_then(|name| self.team.review().proposal(&name));
        let within = followed
            || about == circle.name.as_str()
            || named.is_some_and(|proposal| proposal.circle == circle.name);
        // What a member merely asked, or a limit that stands in nobody's way, moves nothing until all else
        // is settled; then it lets nobody confirm.
        let settled = self.team.review().is_settled(circle);
        let idle = |cause| !settled && matches!(cause, Cause::Asked | Cause::FlipLimit);
        let open = |id: &str| {
            let id = id.strip_prefix("decide:").and_then(|id| id.parse().ok());
            id.and_then(|id| self.team.escalations().get(id)).is_some_and(|known| !idle(known.opened.cause))
        };
        // An answer in the room moves no work.
        let answer = obligation.kind == ObligationKind::Answer;
        within && !answer && (obligation.kind != ObligationKind::Decide || open(&obligation.id))
    }

    fn cools(&self, circle: &Circle) -> bool {
        let deadline = self.team.next_deadline(self.judge, self.now);
        let review = self.team.review();
        // Its own, or that of other work of its producer's which it takes up.
        let takes_up = |proposal: &Proposal, other: &Proposal| {
            let paths = |one: &Version| one.paths.to_vec();
            let current = proposal.current().map(paths).unwrap_or_default();
            let touched = other.versions.iter().flat_map(paths);
            let same = other.producer == proposal.producer && other.phase == proposal.phase;
            other.name == proposal.name || same && touched.into_iter().any(|path| current.contains(&path))
        };
        let cools = |name: &ProposalName| {
            let Some(proposal) = review.proposal(name) else { return false };
            review.proposals().any(|other| other.withdrawal.is_some() && takes_up(proposal, other))
        };
        deadline.is_some() && circle.proposals.iter().any(cools)
    }

    /// The one standstill that is known: an edge whose reviewer may not approve the version, and a
    /// person who dismissed that. `replace` and `excuse` will be the decisions that move it; until then
    /// the producer's next version, or an overruling, does.
    fn waits_for_a_reviewer(&self, circle: &Circle) -> bool {
        let history = self.oracle.history();
        circle.proposals.iter().map(ProposalName::as_str).any(|name| {
            let Some(current) = history.current(name) else { return false };
            let version = current.what.version;
            history.edges(name).iter().any(|edge| {
                history.own_work(&edge.reviewer, name, version).is_some()
                    && !history.is_overruled(&edge.reviewer, name, version)
            })
        })
    }

    /// G8, the strong form: what a member is told to do is accepted, and it is told something else
    /// afterwards. A vote too many alone is refused, and goes to a person at that.
    pub fn obey(&mut self, obligation: &Obligation) -> Verdict {
        let command = told::command(self, &obligation.command);
        let command = command.map_err(|what| Broken { guarantee: "G8", what })?;
        let mishap = self.mishap();
        self.obeys(obligation, command, mishap)
    }

    fn obeys(&mut self, obligation: &Obligation, command: Command, mishap: Mishap) -> Verdict {
        self.happens(|| Step::Obeyed {
            owed: Box::new(obligation.clone()),
            command: command.clone(),
            mishap,
        });
        let who = Actor::Member(obligation.member.clone());
        let decision = match self.served {
            None => self.perform_at(self.now, &who, &command)?,
            Some(_) => {
                let mut decided = self.ask_server(vec![(who, command)], mishap)?;
                decided.pop().expect("one command has one outcome")
            }
        };
        // Another server's clock may stand elsewhere: it decides at another time than the one at which it was told.
        if matches!(mishap, Mishap::Unknown { .. } | Mishap::Died { .. }) {
            return Ok(());
        }
        let limited = |rejection: &Rejection| rejection.code() == "VOTE_LIMIT" && !decision.events.is_empty();
        let works = decision.outcome.as_ref().map_or_else(limited, |_| !decision.events.is_empty());
        demand!("G8", works, "{obligation:?} came to nothing: {:?}", decision.outcome);
        let same = |owed: &Obligation| {
            (&owed.id, &owed.member, &owed.command)
                == (&obligation.id, &obligation.member, &obligation.command)
        };
        let again = self.owed().into_iter().find(same);
        demand!("G8", again.is_none(), "{obligation:?} was done and is owed as before");
        Ok(())
    }

    /// A version with content that nobody has seen, by its producer.
    pub fn fresh_version(&mut self, name: ProposalName, answers: BTreeMap<ObjectionId, String>) -> Propose {
        self.offered += 1;
        let proposal = self.team.review().proposal(&name);
        let after = proposal.map_or(0, Proposal::current_number);
        let producer = proposal.map_or("nobody", |proposal| proposal.producer.as_str());
        // Somebody who is no member may have written it; that makes it nobody else's work.
        let host = if self.dice.percent(80) { "example.org" } else { "elsewhere.example" };
        let authors = vec![Identity { email: format!("{producer}@{host}"), name: producer.to_owned() }];
        let paths = vec![RepoPath::from_bytes(format!("src/{producer}/{name}.rs").as_bytes())];
        Propose {
            artifact: self.artifact(&format!("{name} fresh {}", self.offered)),
            proposal: name,
            facts: ArtifactFacts { empty: false, paths, files: Vec::new(), authors, secrets: Vec::new() },
            summary: "more".to_owned(),
            answers,
            after,
        }
    }

    /// An artifact of that content: each commit has an id of its own, a bundle has its content's.
    pub fn artifact(&mut self, content: &str) -> Artifact {
        self.offered += 1;
        let digest_of = |text: &str| Digest::of_bytes(Sha256::digest(text).into());
        let (content, commit) = (digest_of(content), digest_of(&format!("commit {}", self.offered)));
        if self.in_git {
            Artifact { kind: ArtifactKind::Commit, digest: commit, content, base: None }
        } else {
            Artifact { kind: ArtifactKind::Bundle, digest: content.clone(), content, base: None }
        }
    }

    /// The state made anew from what was stored is the state that runs; it takes its place.
    pub fn restart(&mut self, comeback: Comeback) -> Verdict {
        self.happens(|| Step::Restarted(comeback));
        if self.served.is_some() {
            return self.restart_served(comeback);
        }
        self.replay()
    }

    pub fn replay(&mut self) -> Verdict {
        let mut anew = Team::new();
        for row in &self.log {
            let event = Event::decode(&row.kind, row.schema, &row.body)
                .map_err(|fault| Broken { guarantee: "G10", what: format!("{fault}: {}", row.body) })?;
            anew.apply(Seq(anew.seq().0 + 1), row.at, &event);
        }
        let team = &self.team;
        let same = (anew.seq(), anew.at()) == (team.seq(), team.at())
            && anew.adopted() == team.adopted()
            && anew.review() == team.review()
            && anew.escalations() == team.escalations()
            && anew.all_obligations(self.judge, self.now) == team.all_obligations(self.judge, self.now);
        demand!("G10", same, "by the log {:?}, and running {:?}", anew.review(), team.review());
        self.team = anew;
        Ok(())
    }

    /// The same of a first refusal at a limit of which nobody heard.
    pub fn judged_unheard(&mut self, asked: &Asked, cause: &str, facts: Vec<Entry>) -> Verdict {
        let code = LIMITS.iter().find(|(known, _)| *known == cause).map_or("none", |(_, code)| code);
        self.oracle.step(asked, Some(&[code]), facts)?;
        self.agrees()?;
        self.somebody_owes()
    }

    pub fn revision(&self) -> u32 {
        self.team.adopted().map_or(0, |adopted| adopted.revision)
    }

    fn remember_refs(&mut self) {
        let (review, revision) = (self.team.review(), self.revision());
        for circle in review.circles() {
            let reference = review.circle_ref(revision, circle);
            if !self.old_refs.contains(&reference) {
                self.old_refs.push(reference);
            }
        }
    }
}
