//! What one command costs in the core, on a large team, whatever its history.
//!
//! `cargo bench --bench core [-- --quick]`
//!
//! Budget 3: deciding, applying and comparing who owes what, for a command on a team with 40 members and
//! 500 proposals, under 50 µs in the median, after 2,500 events as after 100,000. Budget 4: confirm with
//! every shipped rule on that team under 300 µs, and a rule that means harm ends at its bounds.
//!
//! No store, no clock, no network: what is timed is exactly what a team's task does between taking a
//! command and queueing its events.

mod figures;

use std::time::{Duration, Instant};

use countersign::judge::CelJudge;
use countersign::protocol::name::Actor;
use countersign::protocol::review::{Confirm, requirement};
use countersign::protocol::rule::{Judge, Judgement};
use countersign::protocol::{Command, Team};
use figures::team::{Driven, Shape, member, name, read};
use figures::{at_most, median, nanos};

const EVENTS: u64 = 100_000;
const EVENTS_QUICK: u64 = 10_000;
const COMMAND_BUDGET_US: f64 = 50.0;
const CONFIRM_BUDGET_US: f64 = 300.0;
/// How much more a command may cost after forty times the history, before it is called dependent on it.
const HISTORY_BUDGET: f64 = 1.25;

fn main() {
    let judge = figures::team::shipped();
    let quick = figures::quick();
    let events = if quick { EVENTS_QUICK } else { EVENTS };
    let rounds = if quick { 2 } else { 6 };
    let shape = Shape { agents: 38, proposals: 500, together: false, escalations: 0 };
    let young = Driven::start(&judge, shape);
    let old = young.clone().until(&judge, events);
    println!(
        "a command on a team with {} members and {} proposals: µs, median and 99th percentile",
        shape.agents + 2,
        shape.proposals
    );
    let (few, many) = (young.team.seq().0, old.team.seq().0);
    println!("{:>12}  {:>18}  {:>18}  {:>7}", "", format!("{few} events"), format!("{many} events"), "ratio");
    let verbs: [(&str, Verb); 4] = [
        ("propose", |driven, proposal| (driven.shape.producer(proposal), driven.propose(proposal))),
        ("show", |driven, proposal| (driven.shape.reviewers(proposal)[0].clone(), read(proposal))),
        ("approve", |driven, proposal| {
            (driven.shape.reviewers(proposal)[0].clone(), driven.approve(proposal))
        }),
        ("object", |driven, proposal| (driven.shape.reviewers(proposal)[1].clone(), driven.object(proposal))),
    ];
    let (mut slowest, mut steepest) = (0.0_f64, 0.0_f64);
    for (verb, command) in verbs {
        let mut times: [Vec<u64>; 2] = Default::default();
        for _ in 0..rounds {
            // Interleaved, so that what disturbs one side disturbs the other.
            times[0].extend(each_proposal(&judge, &young, verb, command));
            times[1].extend(each_proposal(&judge, &old, verb, command));
        }
        let [young, old] = times.map(Spread::of);
        println!("{verb:>12}  {young:>18}  {old:>18}  {:>7.2}", old.median / young.median);
        slowest = slowest.max(old.median);
        steepest = steepest.max(old.median / young.median);
    }
    let verdict = at_most(slowest, COMMAND_BUDGET_US);
    println!("budget 3: {slowest:.1} µs, at most {COMMAND_BUDGET_US} µs: {verdict}");
    let verdict = at_most(steepest, HISTORY_BUDGET);
    println!(
        "budget 3: {steepest:.2} times as much after a long history, at most {HISTORY_BUDGET}: {verdict}"
    );

    println!("\nconfirm with every shipped rule: µs, median and 99th percentile");
    let alone = confirms(&judge, &old, rounds);
    println!("{:>12}  {alone:>18}  a circle of 1 of the {} proposals", "each", shape.proposals);
    for proposals in [10, 100, 500] {
        let together = Shape { agents: 38, proposals, together: true, escalations: 0 };
        let driven = Driven::start(&judge, together);
        let found = confirms(&judge, &driven, rounds);
        println!("{:>12}  {found:>18}  a circle of {proposals}", "together");
    }
    let verdict = at_most(alone.median, CONFIRM_BUDGET_US);
    println!("budget 4: {:.1} µs, at most {CONFIRM_BUDGET_US} µs: {verdict}", alone.median);
    hostile(&old.team);
}

type Verb = fn(&Driven, usize) -> (Actor, Command);

/// Gives the command once on every proposal of a copy; what it costs each time.
fn each_proposal(judge: &CelJudge, driven: &Driven, verb: &str, command: Verb) -> Vec<u64> {
    let mut driven = driven.clone();
    // A version that was shown is shown again without an event: only a new one is read.
    if verb == "show" {
        for proposal in 0..driven.shape.proposals {
            let (who, command) = (driven.shape.producer(proposal), driven.propose(proposal));
            driven.take(judge, &who, &command);
        }
    }
    (0..driven.shape.proposals)
        .map(|proposal| {
            let (who, command) = command(&driven, proposal);
            let began = Instant::now();
            let events = driven.take(judge, &who, &command);
            let took = nanos(began.elapsed());
            assert!(!events.is_empty(), "{verb} did nothing");
            took
        })
        .collect()
}

/// What the first confirmation of a circle costs.
fn confirms(judge: &CelJudge, driven: &Driven, rounds: usize) -> Spread {
    let mut times = Vec::new();
    let review = driven.team.review();
    let circles: Vec<_> = review.circles().map(|circle| circle.name.clone()).take(100).collect();
    for _ in 0..rounds {
        for name in &circles {
            let circle = review.circle(name).expect("it is one of them");
            let revision = driven.team.adopted().expect("it has a charter").revision;
            let command = Command::Confirm(Confirm { reference: review.circle_ref(revision, circle) });
            let first = review.proposal(&circle.proposals[0]).expect("it is there");
            let who = Actor::Member(first.producer.clone());
            let began = Instant::now();
            let decision = driven.team.handle(judge, driven.now, &who, &command);
            times.push(nanos(began.elapsed()));
            decision.outcome.expect("everything is approved");
        }
    }
    Spread::of(times)
}

/// A rule that walks every pair of pairs in a circle of 500.
const HOSTILE: &str = r#"
title = "Everything is compared with everything"
incident = "A rule of somebody else's, taken over without a look."
when = "confirm"
about = "circle"
deny = 'circle.proposals.all(a, circle.proposals.all(b, a.name != b.ref))'
message = "{circle.name} has two of one name"
owes = "person"
remedy = "countersign status"

[[examples.deny]]
because = "nothing is compared"
circle.proposals = []

[[examples.pass]]
because = "one has the other's name"
circle.proposals = [{ name = "x", ref = "x" }]
"#;

fn hostile(team: &Team) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("hostile.toml");
    std::fs::write(&file, HOSTILE).expect("it can be written");
    let judge = CelJudge::candidate(&file).unwrap_or_else(|found| panic!("{found:?}"));
    let shape = Shape { agents: 38, proposals: 500, together: true, escalations: 0 };
    let large = Driven::start(&figures::team::shipped(), shape);
    let charter = &large.team.adopted().expect("it has a charter").charter;
    let circle = large.team.review().circles().next().expect("there is one");
    let Actor::Member(who) = member("p0") else { unreachable!("p0 is a member") };
    let mut times: Vec<Duration> = Vec::new();
    let mut ended = true;
    for _ in 0..5 {
        let began = Instant::now();
        let found = requirement::of_circle(&large.team, charter, &judge, circle, &who);
        times.push(began.elapsed());
        ended &= found.iter().all(|one| one.state == requirement::RequirementState::Error);
    }
    let took = median(&mut times);
    let _ = (team, name(0), Judgement::Passes, judge.rules().len());
    println!("budget 4: a hostile rule on a circle of 500 ends after {took:?}, and denies: {ended}");
}

/// The middle of what was measured, and its end, in microseconds.
struct Spread {
    median: f64,
    p99: f64,
}

impl Spread {
    fn of(mut nanos: Vec<u64>) -> Self {
        nanos.sort_unstable();
        let at = |part: usize| nanos[(nanos.len() - 1) * part / 100] as f64 / 1000.0;
        Self { median: at(50), p99: at(99) }
    }
}

impl std::fmt::Display for Spread {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(&format!("{:.1} {:.1}", self.median, self.p99))
    }
}
