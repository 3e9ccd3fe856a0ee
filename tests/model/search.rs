//! The search: every state that can be reached, breadth first, so that what is found first is shortest.

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::fmt;
use std::time::{Duration, Instant};

use countersign::judge::CelJudge;
use countersign::protocol::escalation::Cause;
use countersign::protocol::name::{Actor, CircleName, CircleRef, ObjectionId, ProposalName, Seq};
use countersign::protocol::time::Time;
use countersign::protocol::{
    Adopt, Command, Effect, Event, Obligation, ObligationKind, Team, Violation, charter,
};

use super::canon::{self, Both};
use super::check::{Asking, Broken, Verdict, demand};
use super::facts::{Facts, State, changes};
use super::told;
use super::world::{Attempt, Used, World, digest_of};

/// A state, by the core and by the facts.
#[derive(Clone)]
pub struct Node {
    pub team: Team,
    pub facts: Facts,
    pub now: Time,
    pub used: Used,
    /// What is owed, and when the team next wants to be asked.
    pub owed: Vec<Obligation>,
    pub deadline: Option<Time>,
    /// What each circle is called now, and what it was last called before.
    pub refs: BTreeMap<CircleName, (CircleRef, Option<CircleRef>)>,
    /// Its place in the trail.
    id: u32,
}

/// What a search saw.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    pub states: usize,
    /// Accepted commands, each from a state to one.
    pub transitions: usize,
    /// Commands that were refused.
    pub refused: usize,
    /// How many steps the farthest state is away.
    pub depth: usize,
    /// States in which nothing is open any longer.
    pub ends: usize,
    pub took: Duration,
    pub codes: BTreeMap<(&'static str, String), usize>,
    pub events: BTreeMap<&'static str, usize>,
}

/// A state in which a guarantee doesn't hold, with a shortest way there.
#[derive(Debug)]
pub struct Counterexample {
    pub world: &'static str,
    pub broken: Broken,
    pub steps: Vec<String>,
    pub states: usize,
    pub took: Duration,
}

impl fmt::Display for Counterexample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "# {}: {}", self.broken.guarantee, self.broken.what)?;
        let (world, states, seconds) = (self.world, self.states, self.took.as_secs_f64());
        writeln!(f, "# world {world}, after {states} states and {seconds:.1} s; a shortest way there:")?;
        for step in &self.steps {
            writeln!(f, "\n{step}")?;
        }
        Ok(())
    }
}

/// How far a search may go beside its bounds.
#[derive(Clone, Copy, Debug, Default)]
pub struct Leave {
    /// No more states than that, where there is such a limit.
    pub states: Option<usize>,
    pub time: Option<Duration>,
}

struct Search<'a> {
    judge: &'a CelJudge,
    world: &'a World,
    seen: Seen,
    visited: HashSet<u128>,
    /// By which attempt of which state each state was first reached.
    trail: Vec<(u32, u32)>,
    queue: VecDeque<Node>,
}

/// Looks at every state within a world's bounds; tells whether it saw all of them.
pub fn search(judge: &CelJudge, world: &World, leave: Leave) -> Result<(Seen, bool), Box<Counterexample>> {
    let begun = Instant::now();
    let mut search = Search {
        judge,
        world,
        seen: Seen::default(),
        visited: HashSet::new(),
        trail: Vec::new(),
        queue: VecDeque::new(),
    };
    let first = search.first();
    let key = search.key(&first);
    search.visited.insert(key);
    search.trail.push((0, 0));
    search.queue.push_back(first);
    let mut depth = BTreeMap::from([(0_u32, 0_usize)]);
    let mut all = true;
    while let Some(mut node) = search.queue.pop_front() {
        search.ask(&mut node);
        let at = depth.remove(&node.id).unwrap_or(0);
        search.seen.depth = search.seen.depth.max(at);
        let beyond = leave.states.is_some_and(|most| search.seen.states >= most)
            || leave.time.is_some_and(|most| begun.elapsed() >= most);
        if beyond {
            all = false;
            break;
        }
        let known = search.trail.len();
        if let Err((broken, step)) = search.expand(&node) {
            let mut steps = search.way(node.id);
            steps.extend(step);
            let (states, took) = (search.seen.states, begun.elapsed());
            return Err(Box::new(Counterexample { world: world.name, broken, steps, states, took }));
        }
        depth.extend((known..search.trail.len()).map(|id| (id as u32, at + 1)));
    }
    search.seen.took = begun.elapsed();
    Ok((search.seen, all))
}

type Found<T> = Result<T, (Broken, Option<String>)>;

impl Search<'_> {
    fn first(&self) -> Node {
        let text = self.world.charter.clone();
        let charter = charter::parse("charter.toml", &text)
            .unwrap_or_else(|found| panic!("the charter of {} is refused: {found}", self.world.name));
        let adopt =
            Command::Adopt(Box::new(Adopt { digest: digest_of(&text), text, charter, rules: Vec::new() }));
        let node = Node {
            team: Team::new(),
            facts: Facts::default(),
            now: Time(1_767_258_000_000_000),
            used: Used::default(),
            owed: Vec::new(),
            deadline: None,
            refs: BTreeMap::new(),
            id: 0,
        };
        let (next, _) = self.step(&node, &Actor::Operator, &adopt).expect("a team begins");
        next.expect("a team begins").0
    }

    /// Who owes in a state, and when it wants to be asked.
    fn ask(&self, node: &mut Node) {
        node.owed = node.team.all_obligations(self.judge, node.now);
        node.deadline = node.team.next_deadline(self.judge, node.now);
    }

    /// Who owes follows from the rest; but until when, where deadlines pass, is told by nothing else.
    fn key(&self, node: &Node) -> u128 {
        use std::hash::Hash;
        let mut hasher = Both::default();
        canon::team(&node.team, self.world.late.then_some(node.now), node.now, &mut hasher);
        if self.world.late {
            canon::owed(&node.team.all_obligations(self.judge, node.now), node.now, &mut hasher);
        }
        node.facts.hash(&mut hasher);
        node.used.hash(&mut hasher);
        hasher.key()
    }

    fn attempts(&self, node: &Node) -> (Vec<Attempt>, usize) {
        let mut attempts = Vec::new();
        // What members are told to do comes first.
        for owed in &node.owed {
            if let Ok(command) = told::command(self.world, node, owed) {
                attempts.push((Actor::Member(owed.member.clone()), command));
            }
        }
        let told = attempts.len();
        attempts.extend(self.world.attempts(node));
        (attempts, told)
    }

    /// Tries everything in a state, and judges the state itself.
    fn expand(&mut self, node: &Node) -> Found<()> {
        self.seen.states += 1;
        self.stands(node).map_err(|broken| (broken, None))?;
        let (attempts, told) = self.attempts(node);
        if told != node.owed.len() {
            for owed in &node.owed {
                let read = told::command(self.world, node, owed);
                read.map_err(|what| (Broken { guarantee: "G8", what }, None))?;
            }
        }
        for (index, (who, command)) in attempts.iter().enumerate() {
            let owed = node.owed.get(index).filter(|_| index < told);
            let passes = told::between(node.now, self.moment(node, command));
            let line = || Some(told::line(who, command, passes));
            let (next, codes) = self.step(node, who, command).map_err(|broken| (broken, line()))?;
            if let Some(owed) = owed {
                let works = codes.is_none() && next.is_some();
                let what = || format!("{owed:?} came to nothing: {codes:?}");
                let nothing = || Broken { guarantee: "G8", what: what() };
                if !works {
                    return Err((nothing(), line()));
                }
            }
            for code in codes.iter().flatten() {
                *self.seen.codes.entry((command.verb(), code.clone())).or_default() += 1;
            }
            if codes.is_some() {
                self.seen.refused += 1;
            }
            let Some((mut next, kinds)) = next else { continue };
            if codes.is_none() {
                self.seen.transitions += 1;
            }
            for kind in kinds {
                *self.seen.events.entry(kind).or_default() += 1;
            }
            if let Some(owed) = owed {
                let same = |one: &&Obligation| {
                    (&one.id, &one.member, &one.command) == (&owed.id, &owed.member, &owed.command)
                };
                let after = next.team.obligations(self.judge, next.now, &owed.member);
                if after.iter().any(|one| same(&one)) {
                    let what = format!("{owed:?} was done, and is owed as before");
                    return Err((Broken { guarantee: "G8", what }, line()));
                }
            }
            if !self.within(&next) || !self.visited.insert(self.key(&next)) {
                continue;
            }
            next.id = self.trail.len() as u32;
            self.trail.push((node.id, index as u32));
            self.queue.push_back(next);
        }
        Ok(())
    }

    /// Obligations lead beyond the bounds too; there the search ends.
    fn within(&self, node: &Node) -> bool {
        let bounds = &self.world.bounds;
        let works = node.facts.works.values();
        works.clone().all(|work| work.offers.len() <= bounds.versions)
            && node.used.decisions <= bounds.decisions
    }

    fn moment(&self, node: &Node, command: &Command) -> Time {
        let late = matches!(command, Command::TimePassed);
        node.deadline.filter(|_| late).map_or(node.now, |at| at.max(node.now))
    }

    /// One command in one state: the state after it, where something came of it, and why it was refused.
    #[allow(clippy::type_complexity)] // A state with what happened, and a refusal's codes.
    fn step(
        &self,
        node: &Node,
        who: &Actor,
        command: &Command,
    ) -> Result<(Option<(Node, Vec<&'static str>)>, Option<Vec<String>>), Broken> {
        let now = self.moment(node, command);
        let decision = node.team.handle(self.judge, now, who, command);
        let codes = decision
            .outcome
            .as_ref()
            .err()
            .map(|rejection| rejection.violations().iter().map(code).collect::<Vec<String>>());
        let asking = Asking { who, command };
        if decision.events.is_empty() && now == node.now {
            if codes.is_none() {
                node.facts.nothing_came(&asking)?;
            }
            return Ok((None, codes));
        }
        let mut next = node.clone();
        next.now = now;
        next.facts.pass(told::between(node.now, now));
        let about = node.team.touched(&decision.events);
        for event in &decision.events {
            next.team.apply(Seq(next.team.seq().0 + 1), now, event);
        }
        let aftermath = next.team.aftermath(self.judge, now, &decision.events, about.as_ref());
        for event in &aftermath.events {
            next.team.apply(Seq(next.team.seq().0 + 1), now, event);
        }
        let events: Vec<&Event> = decision.events.iter().chain(&aftermath.events).collect();
        let kinds = events.iter().map(|event| event.kind()).collect();
        if let Some(codes) = &codes {
            let codes: Vec<&str> = codes.iter().map(String::as_str).collect();
            let all: Vec<Event> = events.iter().map(|event| (*event).clone()).collect();
            next.facts.refused(&asking, &codes, &all)?;
        } else {
            for event in &events {
                next.facts.event(&asking, event)?;
            }
        }
        count(&mut next.used, command, codes.is_some());
        // Who owes is asked where it is needed: most states are known already.
        (next.owed, next.deadline) = (Vec::new(), None);
        self.names(node, &mut next, &events)?;
        Ok((Some((next, kinds)), codes))
    }

    /// G1: a circle has another name exactly when it holds something else.
    fn names(&self, node: &Node, next: &mut Node, events: &[&Event]) -> Verdict {
        let review = next.team.review();
        let revision = next.team.adopted().map_or(0, |adopted| adopted.revision);
        for circle in review.circles() {
            let now = review.circle_ref(revision, circle);
            let before = node.refs.get(&circle.name).map(|(before, _)| before.clone());
            let open = |facts: &Facts| {
                facts.rings.get(circle.name.as_str()).is_some_and(|ring| ring.state == State::Open)
            };
            if let Some(before) = before.as_ref().filter(|_| open(&node.facts) && open(&next.facts)) {
                let other = events.iter().any(|event| otherwise(&node.facts, circle.name.as_str(), event));
                demand!("G1", (*before != now) == other, "{before} became {now}, and changed: {other}");
            }
            let old = node.refs.get(&circle.name).and_then(|(_, old)| old.clone());
            let old = before.filter(|before| *before != now).or(old);
            next.refs.insert(circle.name.clone(), (now, old));
        }
        Ok(())
    }

    /// What must hold in a state: nobody is left with nothing to do (G8), and no repair was needed.
    fn stands(&mut self, node: &Node) -> Verdict {
        let fired = node.team.recoveries().counters().find(|(_, count)| *count > 0);
        demand!("recovery", fired.is_none(), "{fired:?} fired");
        let facts = &node.facts;
        for (circle, ring) in &facts.rings {
            let of = |effect: &Effect| matches!(effect, Effect::Publish { circle: one, .. } if one.as_str() == circle);
            let publishes = node.team.effects().iter().any(of);
            let complete = ring.state == State::Complete;
            demand!(
                "G8",
                publishes == complete,
                "{circle} is {:?}, and is published: {publishes}",
                ring.state
            );
        }
        let pending = facts
            .rules()
            .phases
            .iter()
            .find(|phase| !facts.phases.iter().any(|(opened, _)| *opened == phase.name));
        let over = facts.phases.iter().all(|(_, over)| *over);
        demand!("G8", !over || pending.is_none(), "all that opened is over, and {pending:?} doesn't open");
        let open: Vec<String> = facts.open_rings().map(|(circle, _)| circle.clone()).collect();
        if open.is_empty() && !facts.rings.values().any(|ring| ring.state == State::Complete) {
            self.seen.ends += 1;
        }
        for circle in open {
            let moved = node.owed.iter().any(|owed| moves(node, &circle, owed));
            let will = moved || self.will(node, &circle)?;
            demand!("G8", will, "{circle} is open, and nobody owes: {:?}", node.owed);
            for (name, work) in node.facts.works_of(&circle) {
                let review = node.team.review();
                let known: Option<ProposalName> = name.parse().ok();
                let core = known.as_ref().and_then(|name| review.proposal(name));
                let met = facts.unmet(name, work).is_none() && !work.failed;
                let says = core.and_then(|core| review.circle(&core.circle).map(|circle| (core, circle)));
                let says = says.is_some_and(|(core, circle)| !circle.unaccepted.contains(&core.name));
                demand!("G2", says == met, "{name} is taken for accepted: {says}; it is: {met}");
            }
        }
        Ok(())
    }

    /// Whether a deadline makes it so that somebody owes; others may pass before it.
    fn will(&self, node: &Node, circle: &str) -> Result<bool, Broken> {
        const DEADLINES_MAX: usize = 8;
        let mut later = node.clone();
        for _ in 0..DEADLINES_MAX {
            self.ask(&mut later);
            if later.deadline.is_none() {
                return Ok(false);
            }
            let (Some((mut next, _)), _) = self.step(&later, &Actor::Server, &Command::TimePassed)? else {
                return Ok(false);
            };
            self.ask(&mut next);
            if next.owed.iter().any(|owed| moves(&next, circle, owed)) {
                return Ok(true);
            }
            later = next;
        }
        Ok(false)
    }

    /// The commands that lead to a state, made anew from the trail.
    fn way(&self, id: u32) -> Vec<String> {
        let mut path = Vec::new();
        let mut at = id;
        while at != 0 {
            let (parent, index) = self.trail[at as usize];
            path.push(index);
            at = parent;
        }
        let mut node = self.first();
        let mut steps = Vec::new();
        for index in path.into_iter().rev() {
            self.ask(&mut node);
            let (who, command) = self.attempts(&node).0.swap_remove(index as usize);
            let next = self.step(&node, &who, &command);
            let Ok((Some((next, _)), _)) = next else { panic!("the same command came to something else") };
            steps.push(told::line(&who, &command, told::between(node.now, next.now)));
            node = next;
        }
        steps
    }
}

/// Whether what is owed moves a circle: it is about it, and is no question that it doesn't wait for.
fn moves(node: &Node, circle: &str, owed: &Obligation) -> bool {
    let facts = &node.facts;
    let named = owed.subject.split(['@', ':']).next().unwrap_or_default();
    let of = |name: &str| facts.works.get(name).is_some_and(|work| work.circle == circle);
    let raised = owed.subject.parse().ok().is_some_and(|id: ObjectionId| {
        facts.works.values().any(|work| work.circle == circle && work.remarks.contains_key(&id.0))
    });
    if !(named == circle || of(named) || raised) {
        return false;
    }
    if owed.kind != ObligationKind::Decide {
        return true;
    }
    // Until all else is settled, these stand in nobody's way.
    let settled = facts.works_of(circle).all(|(name, work)| {
        let read = work.remarks.values().all(|remark| remark.closed.is_some() || remark.read);
        facts.unmet(name, work).is_none() && !work.failed && read
    });
    let id = owed.id.strip_prefix("decide:e").and_then(|id| id.parse().ok());
    let cause = id.and_then(|id: u32| facts.asked.get(&id)).map(|asked| asked.cause);
    cause.is_some_and(|cause| match cause {
        Cause::Stall | Cause::Overdue | Cause::Recovery => false,
        Cause::Asked | Cause::FlipLimit | Cause::PublishFailure => settled,
        _ => true,
    })
}

/// Whether an event changes what an open circle holds.
fn otherwise(facts: &Facts, circle: &str, event: &Event) -> bool {
    let of = |name: &str| facts.works.get(name).is_some_and(|work| work.circle == circle);
    match event {
        Event::CharterAdopted(_) => true,
        Event::Proposed(event) => of(event.proposal.as_str()),
        Event::DeliverableDropped(event) => of(event.proposal.as_str()),
        Event::CircleReopened(event) => event.circle.as_str() == circle,
        Event::EscalationClosed(event) => {
            let about = facts.asked.get(&event.id.0).and_then(|asked| asked.circle.as_deref());
            event.decision.is_some_and(changes) && about == Some(circle)
        }
        _ => false,
    }
}

fn count(used: &mut Used, command: &Command, refused: bool) {
    match command {
        _ if refused => {}
        Command::AnswerEscalation(_) => used.decisions += 1,
        Command::Escalate(_) => used.asked += 1,
        Command::TimePassed => used.waits += 1,
        Command::ReportPublish(report) => used.failures += u32::from(report.failure.is_some()),
        Command::ReportTarget(_) => used.moves += 1,
        Command::Withdraw(_) => used.withdrawals += 1,
        _ => {}
    }
}

/// How a reason is called: of what a rule denies, with the rule.
pub fn code(violation: &Violation) -> String {
    match violation {
        Violation::ConfirmBlocked { rule, .. } => format!("{} {rule}", violation.code()),
        other => other.code().to_owned(),
    }
}
