//! The small worlds: a charter each, what may be tried in it, and how far.

use std::collections::{BTreeMap, BTreeSet};

use countersign::protocol::adoption::Revise;
use countersign::protocol::artifact::{Artifact, ArtifactFacts, ArtifactKind, Identity, RepoPath};
use countersign::protocol::charter;
use countersign::protocol::escalation::{Answer, Decision, Escalate};
use countersign::protocol::name::{
    Actor, CircleName, Digest, DigestPrefix, MemberName, MessageId, ObjectionId, ProposalName, Subject,
    VersionRef,
};
use countersign::protocol::review::{
    Approve, Confirm, NamedPlace, Note, Object, Overrule, Propose, PublishFailure, Read, ReadObjections,
    ReportCheck, ReportPublish, Resolve, Run, TargetMoved, Undone, Withdraw,
};
use countersign::protocol::room::{Evidence, JudgeClaim, Say, Verdict};
use countersign::protocol::{Command, Effect};
use sha2::{Digest as _, Sha256};

use super::facts::{Facts, State, Work};
use super::search::Node;

/// How far a search goes: where a bound is reached, that is no longer tried; everything else is.
#[derive(Clone, Copy, Debug, Default)]
pub struct Bounds {
    /// Of each proposal.
    pub versions: usize,
    /// Objections and notes, over all proposals.
    pub objections: usize,
    pub notes: usize,
    /// Answers of persons to escalations.
    pub decisions: u32,
    /// Escalations that members ask for.
    pub asked: u32,
    /// Deadlines that pass.
    pub waits: u32,
    /// Publishes that fail.
    pub failures: u32,
    /// How often git says otherwise of a version than before.
    pub moves: u32,
    /// Charters, the first counted.
    pub revisions: u32,
    pub withdrawals: u32,
    /// Proposals beside the charter's.
    pub ad_hoc: usize,
    /// Messages in the room.
    pub said: usize,
}

/// A world.
#[derive(Clone, Debug)]
pub struct World {
    pub name: &'static str,
    pub charter: String,
    /// Charters that a person may put in force.
    pub others: Vec<Revise>,
    pub bounds: Bounds,
    /// What must come about in it, by the names of events.
    pub shows: &'static [&'static str],
    /// What must be refused in it: verbs and codes.
    pub refuses: &'static [(&'static str, &'static str)],
    /// A version's content may be that of an earlier one.
    pub repeats: bool,
    /// Who may have a hand in a version.
    pub co_author: Option<&'static str>,
    /// Objections may bring a failing test.
    pub tests: bool,
    /// Approvals may come without evidence.
    pub bare: bool,
    /// Who reads, though nobody asked it to.
    pub outsider: Option<&'static str>,
    /// Texts may be what no text may be.
    pub texts: bool,
    /// Whether deadlines pass, beside the end of a cooldown.
    pub late: bool,
    /// Who may take a reviewer's place.
    pub spare: Option<&'static str>,
}

/// What was tried so far that has a bound and that no fact counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Used {
    pub decisions: u32,
    pub asked: u32,
    pub waits: u32,
    pub failures: u32,
    pub moves: u32,
    pub withdrawals: u32,
}

pub type Attempt = (Actor, Command);

const HOUR: i64 = 3_600_000_000;
const REASON: &str = "so be it";
/// A failing test.
const TEST: &str = "suite";

pub fn digest_of(text: &str) -> Digest {
    Digest::of_bytes(Sha256::digest(text).into())
}

/// A charter as a person would adopt it.
pub fn revision(text: &str) -> Revise {
    let charter = charter::parse("charter.toml", text);
    Revise {
        text: text.to_owned(),
        digest: digest_of(text),
        charter,
        rules: Vec::new(),
        refused: Vec::new(),
        reason: String::new(),
    }
}

fn bundle(content: Digest) -> Artifact {
    Artifact { kind: ArtifactKind::Bundle, digest: content.clone(), content, base: None }
}

fn path_of(name: &str, producer: &str) -> RepoPath {
    RepoPath::from_bytes(format!("{producer}/{name}.rs").as_bytes())
}

/// A version with content that no version had, by that producer.
pub fn fresh(
    _: &World,
    facts: &Facts,
    name: &ProposalName,
    by: &MemberName,
    answers: &[ObjectionId],
) -> Propose {
    let after = facts.works.get(name.as_str()).map_or(0, |work| work.offers.len());
    Propose {
        artifact: bundle(digest_of(&format!("{name} {}", after + 1))),
        facts: ArtifactFacts {
            empty: false,
            paths: vec![path_of(name.as_str(), by.as_str())],
            files: Vec::new(),
            authors: vec![author(by.as_str())],
            secrets: Vec::new(),
        },
        proposal: name.clone(),
        summary: "more".to_owned(),
        answers: answers.iter().map(|id| (*id, "done".to_owned())).collect(),
        after: after as u32,
    }
}

fn author(member: &str) -> Identity {
    Identity { email: format!("{member}@example.org"), name: member.to_owned() }
}

impl World {
    /// Everything that may be tried in a state: what is right, and what is wrong in one thing.
    pub fn attempts(&self, node: &Node) -> Vec<Attempt> {
        let mut tries = Tries { world: self, node, facts: &node.facts, out: Vec::new() };
        for (name, work) in &node.facts.works {
            let name: ProposalName = name.parse().expect("it is a name");
            tries.offers(&name, work);
            tries.readings(&name, work);
            tries.votes(&name, work);
            tries.closings(work);
            tries.withdrawals(&name);
            tries.checks(&name, work);
        }
        tries.ad_hoc();
        tries.confirmations();
        tries.persons();
        tries.room();
        tries.server();
        tries.out
    }
}

struct Tries<'a> {
    world: &'a World,
    node: &'a Node,
    facts: &'a Facts,
    out: Vec<Attempt>,
}

impl Tries<'_> {
    fn by(&mut self, member: &str, command: Command) {
        let member: MemberName = member.parse().expect("it is a name");
        self.out.push((Actor::Member(member), command));
    }

    fn members(&self) -> Vec<String> {
        self.facts.rules().members.iter().cloned().collect()
    }

    /// Texts that no text may be, where the world tries them.
    fn wrong(&self) -> Vec<String> {
        if self.world.texts { wrong_texts() } else { Vec::new() }
    }

    /// Whether work on it can still be done, or at least be refused for being final.
    fn live(&self, work: &Work) -> bool {
        self.facts.rings.get(&work.circle).is_some_and(|ring| ring.state == State::Open) && !work.dropped
    }

    fn offers(&mut self, name: &ProposalName, work: &Work) {
        let bounds = &self.world.bounds;
        if work.offers.len() >= bounds.versions {
            return;
        }
        let producer: MemberName = work.producer.parse().expect("it is a name");
        let open: Vec<ObjectionId> = work
            .remarks
            .iter()
            .filter(|(_, remark)| remark.blocks())
            .map(|(id, _)| ObjectionId(*id))
            .collect();
        let right = fresh(self.world, self.facts, name, &producer, &open);
        let say = |propose: &Propose| Command::Propose(Box::new(propose.clone()));
        self.by(&work.producer, say(&right));
        if !self.live(work) {
            return;
        }
        if let Some(helper) = self.world.co_author.filter(|helper| *helper != work.producer) {
            let mut helped = right.clone();
            helped.facts.authors.push(author(helper));
            self.by(&work.producer, say(&helped));
        }
        if self.world.repeats {
            let contents: BTreeSet<&String> = work.offers.iter().map(|offer| &offer.content).collect();
            for content in contents {
                let artifact = bundle(content.parse().expect("it is a digest"));
                self.by(&work.producer, say(&Propose { artifact, ..right.clone() }));
            }
        }
        if !open.is_empty() {
            self.by(&work.producer, say(&Propose { answers: BTreeMap::new(), ..right.clone() }));
        }
        let unknown = BTreeMap::from([(ObjectionId(99), "done".to_owned())]);
        let answers = right.answers.iter().map(|(id, text)| (*id, text.clone())).chain(unknown).collect();
        self.by(&work.producer, say(&Propose { answers, ..right.clone() }));
        self.by(&work.producer, say(&Propose { after: right.after + 1, ..right.clone() }));
        let mut empty = right.clone();
        empty.facts.empty = true;
        self.by(&work.producer, say(&empty));
        for text in self.wrong() {
            self.by(&work.producer, say(&Propose { summary: text, ..right.clone() }));
        }
        for member in self.members() {
            let mut foreign = right.clone();
            if member == work.producer {
                continue;
            }
            // By somebody else, and on what somebody else owns.
            self.by(&member, say(&Propose { facts: own_paths(&right, &member), ..right.clone() }));
            foreign.facts.paths = vec![path_of("secret", &member)];
            if self.facts.rules().owned.iter().any(|(_, owner)| *owner == member) {
                self.by(&work.producer, say(&foreign));
            }
        }
    }

    fn readings(&mut self, name: &ProposalName, work: &Work) {
        self.by(&work.producer.clone(), Command::ReadObjections(ReadObjections { proposal: name.clone() }));
        if work.offers.is_empty() || !self.live(work) {
            return;
        }
        let read = |digest: Option<DigestPrefix>| {
            let subject = Subject { proposal: name.clone(), version: Some(work.offers.len() as u32), digest };
            Command::Read(Read { subject })
        };
        let mut readers: BTreeSet<String> =
            self.facts.edges(work).into_iter().map(|(reviewer, _)| reviewer).collect();
        readers.extend(self.world.outsider.map(str::to_owned));
        readers.extend(work.remarks.values().filter(|one| one.blocks()).map(|one| one.by.clone()));
        for reader in readers.iter().filter(|one| self.facts.rules().members.contains(*one)) {
            self.by(reader, read(None));
        }
    }

    fn references(&self, name: &ProposalName, work: &Work) -> Vec<VersionRef> {
        let mut references = Vec::new();
        let named = |version: usize, digest: &str| VersionRef {
            proposal: name.clone(),
            version: version as u32,
            digest: digest[..12].parse().expect("they are digits"),
        };
        for (index, offer) in work.offers.iter().enumerate().rev().take(2) {
            references.push(named(index + 1, &offer.digest));
        }
        if let [.., before, last] = work.offers.as_slice()
            && before.digest != last.digest
        {
            // The digits of the version before, behind the current number.
            references.push(named(work.offers.len(), &before.digest));
        } else if !work.offers.is_empty() {
            references.push(named(work.offers.len(), "0123456789ab"));
        }
        references
    }

    fn votes(&mut self, name: &ProposalName, work: &Work) {
        let bounds = self.world.bounds;
        let remarks = || self.facts.works.values().flat_map(|work| work.remarks.values());
        let objections = remarks().filter(|remark| !remark.is_note).count();
        let notes = remarks().filter(|remark| remark.is_note).count();
        let references = self.references(name, work);
        let found = |found| vec![NamedPlace { place: "lib.rs:1".parse().expect("it is a place"), found }];
        for member in self.members() {
            let own = |test: bool| {
                let own = work.remarks.iter().filter(|(_, one)| one.by == member && one.stands());
                let tests = own.filter(|(_, one)| !test || one.test.is_some());
                tests.map(|(id, one)| (ObjectionId(*id), one.clone())).collect::<Vec<_>>()
            };
            let held: Vec<ObjectionId> =
                own(false).iter().filter(|(_, one)| one.blocks()).map(|(id, _)| *id).collect();
            let tested: BTreeSet<String> = own(true).into_iter().filter_map(|(_, one)| one.test).collect();
            let run = |exit: i32, output: Option<&str>| -> Vec<Run> {
                let run = |command: &String| Run {
                    command: command.clone(),
                    exit: Some(exit),
                    output: output.map(str::to_owned),
                };
                tested.iter().map(run).collect()
            };
            // Who votes at all: reviewers, the producer, and those who read unasked.
            let may = !self.facts.lenses(work, &member).is_empty() || work.shown.contains(&member);
            let concerned = may || member == work.producer;
            for reference in references.iter().filter(|_| concerned) {
                let right = Approve {
                    reference: reference.clone(),
                    checked: found(true),
                    ran: run(0, Some("ok")),
                    resolve: held.clone(),
                };
                let current = reference.version as usize == work.offers.len();
                self.by(&member, Command::Approve(right.clone()));
                let object = Object {
                    reference: reference.clone(),
                    text: "no".to_owned(),
                    at: found(true),
                    failing_test: None,
                };
                let note = Note { reference: reference.clone(), text: "hm".to_owned(), at: Vec::new() };
                // Where the vote can't change any more, it is tried all the same.
                let spent = work
                    .changes
                    .get(&member)
                    .is_some_and(|(last, count)| *last == Some(true) && *count >= self.facts.rules().changes);
                if objections < bounds.objections || spent {
                    self.by(&member, Command::Object(object.clone()));
                }
                if notes < bounds.notes {
                    self.by(&member, Command::Note(note.clone()));
                }
                if !current || !may || !self.live(work) {
                    continue;
                }
                if self.world.bare {
                    self.by(&member, Command::Approve(Approve { checked: Vec::new(), ..right.clone() }));
                }
                self.by(&member, Command::Approve(Approve { checked: found(false), ..right.clone() }));
                if !held.is_empty() {
                    self.by(&member, Command::Approve(Approve { resolve: Vec::new(), ..right.clone() }));
                }
                // What others hold, what is closed, and what nobody raised.
                let foreign = work.remarks.keys().map(|id| ObjectionId(*id)).chain([ObjectionId(99)]);
                for id in foreign.filter(|id| !held.contains(id)).collect::<Vec<_>>() {
                    let resolve = held.iter().copied().chain([id]).collect();
                    self.by(&member, Command::Approve(Approve { resolve, ..right.clone() }));
                }
                if !tested.is_empty() {
                    for ran in [Vec::new(), run(1, Some("no")), run(0, None)] {
                        self.by(&member, Command::Approve(Approve { ran, ..right.clone() }));
                    }
                }
                let wrong_run = |output: String| {
                    let run = Run { command: "other".to_owned(), exit: Some(0), output: Some(output) };
                    right.ran.iter().cloned().chain([run]).collect::<Vec<_>>()
                };
                for text in self.wrong() {
                    self.by(&member, Command::Approve(Approve { ran: wrong_run(text), ..right.clone() }));
                }
                let nothing = Run { command: " ".to_owned(), exit: Some(0), output: Some("ok".to_owned()) };
                let ran = right.ran.iter().cloned().chain([nothing]).collect();
                self.by(&member, Command::Approve(Approve { ran, ..right.clone() }));
                let texts: Vec<String> = self.wrong().into_iter().chain([" ".to_owned()]).collect();
                if objections < bounds.objections {
                    if self.world.tests {
                        let test =
                            Run { command: TEST.to_owned(), exit: Some(1), output: Some("no".to_owned()) };
                        let failing_test = Some(test);
                        self.by(&member, Command::Object(Object { failing_test, ..object.clone() }));
                    }
                    self.by(&member, Command::Object(Object { at: found(false), ..object.clone() }));
                    for text in texts.clone() {
                        self.by(&member, Command::Object(Object { text, ..object.clone() }));
                    }
                }
                if notes < bounds.notes {
                    self.by(&member, Command::Note(Note { at: found(false), ..note.clone() }));
                    for text in texts {
                        self.by(&member, Command::Note(Note { text, ..note.clone() }));
                    }
                }
            }
        }
    }

    fn closings(&mut self, work: &Work) {
        for (id, remark) in &work.remarks {
            let objection = ObjectionId(*id);
            for member in self.members() {
                let resolve = |mistaken: bool, reason: &str| {
                    Command::Resolve(Resolve { objection, mistaken, reason: reason.to_owned() })
                };
                let concerned = member == remark.by || work.shown.contains(&member);
                if concerned {
                    self.by(&member, resolve(false, ""));
                    self.by(&member, resolve(true, REASON));
                }
                let overrule =
                    |reason: &str| Command::Overrule(Overrule { objection, reason: reason.to_owned() });
                self.by(&member, overrule(REASON));
                if remark.closed.is_some() || !self.live(work) {
                    continue;
                }
                let texts: Vec<String> = self.wrong().into_iter().chain([" ".to_owned()]).collect();
                for text in texts {
                    if member == remark.by {
                        self.by(&member, resolve(true, &text));
                        self.by(&member, resolve(false, &text));
                    }
                    if self.facts.is_human(&member) {
                        self.by(&member, overrule(&text));
                    }
                }
            }
        }
    }

    fn withdrawals(&mut self, name: &ProposalName) {
        if self.node.used.withdrawals >= self.world.bounds.withdrawals {
            return;
        }
        let withdraw =
            |reason: &str| Command::Withdraw(Withdraw { proposal: name.clone(), reason: reason.to_owned() });
        for member in self.members() {
            self.by(&member, withdraw(REASON));
        }
        let producer = self.facts.works[name.as_str()].producer.clone();
        for text in self.wrong().into_iter().chain([" ".to_owned()]) {
            self.by(&producer, withdraw(&text));
        }
    }

    fn checks(&mut self, name: &ProposalName, work: &Work) {
        if self.facts.rules().checks.is_empty() {
            return;
        }
        for reference in self.references(name, work) {
            for (check, exit) in [("ci", Some(0)), ("ci", Some(1)), ("ci", None), ("cd", Some(0))] {
                let report = |output: String| {
                    let (name, output) = (check.to_owned(), Some(output));
                    Command::ReportCheck(ReportCheck { reference: reference.clone(), name, exit, output })
                };
                self.by(&work.producer.clone(), report("ok".to_owned()));
                for text in self.wrong() {
                    self.by(&work.producer.clone(), report(text));
                }
            }
        }
    }

    /// What is proposed beside the charter, also by those whom nobody reviews, and under names that are taken.
    fn ad_hoc(&mut self) {
        let bounds = self.world.bounds;
        let known = self.facts.works.values().filter(|work| work.ad_hoc).count();
        if known >= bounds.ad_hoc {
            return;
        }
        let new = format!("extra{}", known + 1);
        let taken: Vec<String> = self.facts.rules().phases.iter().map(|phase| phase.name.clone()).collect();
        for member in self.members() {
            for name in taken.iter().chain([&new]) {
                let (name, by) = (name.parse().expect("it is a name"), member.parse().expect("it is a name"));
                let propose = fresh(self.world, self.facts, &name, &by, &[]);
                self.by(&member, Command::Propose(Box::new(propose)));
            }
        }
    }

    fn confirmations(&mut self) {
        for (circle, refs) in &self.node.refs {
            for member in self.members() {
                for reference in [Some(&refs.0), refs.1.as_ref()].into_iter().flatten() {
                    self.by(&member, Command::Confirm(Confirm { reference: reference.clone() }));
                }
            }
            let _: &CircleName = circle;
        }
    }

    fn persons(&mut self) {
        let (bounds, used) = (self.world.bounds, self.node.used);
        let members = self.members();
        if used.asked < bounds.asked {
            let works = self.facts.works.keys().cloned();
            for subject in works.chain(["nothing".to_owned()]).collect::<Vec<String>>() {
                let texts = self.wrong().into_iter().chain([REASON.to_owned(), " ".to_owned()]);
                for text in texts {
                    let escalate = Command::Escalate(Escalate { subject: subject.clone(), text });
                    self.by(&members[0], escalate);
                }
            }
        }
        if used.decisions < bounds.decisions {
            self.answers(&members);
        }
        if self.facts.revision < bounds.revisions {
            let human = self.facts.rules().humans.first().cloned().expect("a team has a person");
            for (index, other) in self.world.others.iter().enumerate() {
                let revise = |reason: &str| {
                    Command::Revise(Box::new(Revise { reason: reason.to_owned(), ..other.clone() }))
                };
                self.by(&human, revise(REASON));
                // Of one that could be adopted, and only of one, also what is wrong with who asks, and how.
                if index != 1 {
                    continue;
                }
                for member in members.iter().filter(|member| **member != human) {
                    self.by(member, revise(REASON));
                }
                for text in self.wrong().into_iter().chain([" ".to_owned()]) {
                    self.by(&human, revise(&text));
                }
            }
        }
    }

    /// Everybody claims or says something to somebody, and gives a verdict on everything.
    fn room(&mut self) {
        if self.world.bounds.said == 0 {
            return;
        }
        let members = self.members();
        let said = self.facts.said.len();
        for (index, member) in members.iter().enumerate() {
            let next = members[(index + 1) % members.len()].clone();
            for message in (1..=said as u32 + 1).map(MessageId) {
                for verdict in [Verdict::Supported, Verdict::Refuted] {
                    let (text, evidence) = (String::new(), Evidence::default());
                    let judge = JudgeClaim { message, verdict, text, evidence };
                    self.by(member, Command::JudgeClaim(judge));
                }
            }
            if said >= self.world.bounds.said {
                continue;
            }
            let replies = (1..=said as u32 + 1).map(MessageId).map(Some);
            for reply in std::iter::once(None).chain(replies) {
                for claim in [None, Some(Evidence::default())] {
                    let (text, to, about) = (REASON.to_owned(), vec![next.clone()], None);
                    let say = Say { text, to, about, reply, claim };
                    self.by(member, Command::Say(say.clone()));
                    self.by(member, Command::Say(Say { text: " ".to_owned(), ..say.clone() }));
                    self.by(member, Command::Say(Say { to: vec!["mallory".to_owned()], ..say }));
                }
            }
        }
    }

    fn answers(&mut self, members: &[String]) {
        let last = self.facts.asked_ever;
        for id in 1..=last {
            let open = self.facts.asked.get(&id);
            let fitting = open.map_or(&[Decision::Dismiss][..], |asked| asked.cause.decisions());
            for member in members.iter().filter(|one| open.is_some() || self.facts.is_human(one)) {
                let human = self.facts.is_human(member);
                for (_, decision) in Decision::ALL {
                    // One that doesn't fit, and one by somebody who may not, is enough of each.
                    let unfit = *decision == Decision::RaiseLimit;
                    if !fitting.contains(decision) && !unfit || !human && *decision != fitting[0] {
                        continue;
                    }
                    self.answer(member, id, *decision, None, REASON);
                    let names = matches!(decision, Decision::Replace | Decision::Excuse);
                    let spare = self.world.spare.filter(|_| names && open.is_some());
                    let reviewers = self.facts.works.values().flat_map(|work| self.facts.edges(work));
                    let reviewers: BTreeSet<String> = reviewers.map(|(one, _)| one).collect();
                    let named = spare.map(str::to_owned).into_iter().chain(reviewers);
                    for other in named.filter(|_| names && self.world.spare.is_some()).collect::<Vec<_>>() {
                        self.answer(member, id, *decision, Some(&other), REASON);
                    }
                }
                if human && open.is_some() {
                    for text in self.wrong().into_iter().chain([" ".to_owned()]) {
                        self.answer(member, id, fitting[0], None, &text);
                    }
                }
            }
        }
    }

    fn answer(&mut self, by: &str, id: u32, decision: Decision, member: Option<&str>, reason: &str) {
        let member = member.map(|one| one.parse().expect("it is a name"));
        let escalation = countersign::protocol::name::EscalationId(id);
        let reason = reason.to_owned();
        let answer = Answer { escalation, decision, member, reviewer: None, reason };
        self.by(by, Command::AnswerEscalation(answer));
    }

    fn server(&mut self) {
        for effect in self.node.team.effects() {
            let Effect::Publish { circle, manifest } = effect else { continue };
            let report = |failure| {
                let (circle, manifest) = (circle.clone(), manifest.clone());
                Command::ReportPublish(ReportPublish {
                    circle,
                    manifest,
                    failure,
                    refs: Vec::new(),
                    check: None,
                })
            };
            self.out.push((Actor::Server, report(None)));
            if self.node.used.failures < self.world.bounds.failures {
                for (name, _) in self.facts.works_of(circle.as_str()) {
                    let owing = vec![name.parse().expect("it is a name")];
                    let because = "the merge conflicts".to_owned();
                    self.out.push((Actor::Server, report(Some(PublishFailure { because, owing }))));
                }
            }
        }
        if self.node.used.moves < self.world.bounds.moves {
            let review = self.node.team.review();
            let open = review.circles().filter(|circle| circle.is_open());
            for name in open.flat_map(|circle| &circle.proposals) {
                let Some(proposal) = review.proposal(name) else { continue };
                let Some(current) = proposal.current() else { continue };
                let files = vec![path_of(name.as_str(), "arch")];
                let commits = vec![digest_of("landed")];
                let undone = Undone { files, files_total: 1, commits, commits_total: 1 };
                let report = TargetMoved {
                    target: "refs/heads/main".to_owned(),
                    commit: None,
                    reference: current.reference(name),
                    empty: false,
                    undone: current.standing.is_none().then_some(undone),
                    conflict: None,
                };
                self.out.push((Actor::Server, Command::ReportTarget(Box::new(report))));
            }
        }
        let near = self.node.deadline.is_some_and(|at| self.world.late || (at - self.node.now).0 <= HOUR);
        if self.node.used.waits < self.world.bounds.waits && near {
            self.out.push((Actor::Server, Command::TimePassed));
        }
    }
}

/// Too long, with a byte that cuts it short elsewhere, and with a key that would stand in the log for ever.
fn wrong_texts() -> Vec<String> {
    vec!["x".repeat(101), "a\0b".to_owned(), format!("AKIA{}", "IOSFODNN7EXAMPLE")]
}

fn own_paths(right: &Propose, member: &str) -> ArtifactFacts {
    ArtifactFacts { paths: vec![path_of(right.proposal.as_str(), member)], ..right.facts.clone() }
}
