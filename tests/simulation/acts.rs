//! What members try: what they owe, what they may do, what they may not, and what makes no sense.

use std::collections::BTreeMap;

use countersign::protocol::adoption::Revise;
use countersign::protocol::artifact::{ArtifactFacts, Identity, Place, RepoPath};
use countersign::protocol::charter::ConfirmKind;
use countersign::protocol::escalation::{
    self, Decision, MovedRef, ReportMoved, ReportPutBack, ReportSent, ReportUnheard, Silence, Unheard,
};
use countersign::protocol::name::{
    Actor, CircleRef, Digest, DigestPrefix, EscalationId, MemberName, MessageId, ObjectionId, ProposalName,
    Seq, Subject, VersionRef,
};
use countersign::protocol::review::{
    self, Circle, CircleState, NamedPlace, Proposal, PublishFailure, Run, TargetMoved, Undone, Version,
};
use countersign::protocol::room;
use countersign::protocol::time::{Span, Time};
use countersign::protocol::{Adopt, Command, Effect, Event, ObligationKind, Team, charter};
use sha2::{Digest as _, Sha256};

use super::charters;
use super::oracle::Verdict;
use super::step::Comeback;
use super::world::World;

/// More than any text may have here.
const LONG: &str = "long enough to be more than any charter of the simulation allows for one text";

/// How many steps follow the end.
const STEPS_AFTER: usize = 12;

/// How a member is.
#[derive(Clone, Copy)]
enum Temper {
    /// Does what it owes.
    Diligent,
    /// Does it when it feels like it.
    Lazy,
    /// Tries what it may not do.
    Hostile,
    /// Mixes things up.
    Confused,
}

impl World<'_> {
    /// Lets that many steps happen.
    pub fn play(&mut self, steps: usize) -> Verdict {
        let tempers: BTreeMap<MemberName, Temper> = self
            .members
            .clone()
            .into_iter()
            .map(|name| {
                let temper = match self.dice.below(10) {
                    0 => Temper::Hostile,
                    1 | 2 => Temper::Confused,
                    3 | 4 => Temper::Lazy,
                    _ => Temper::Diligent,
                };
                (name, temper)
            })
            .collect();
        let mut last = steps;
        while self.seen.steps < last {
            self.pass_time()?;
            if self.is_finished() {
                // A few more, since final must stay final.
                last = last.min(self.seen.steps + STEPS_AFTER);
            }
            if self.served.is_none() && self.dice.below(1_200) == 0 {
                self.chatter()?;
            }
            match self.dice.below(100) {
                0 => self.adopt()?,
                1..55 => self.discharge(&tempers)?,
                55..88 => self.try_something()?,
                88..98 if self.served.is_some() => self.crowd()?,
                88..93 if self.in_git => self.compare()?,
                88..98 => self.publish()?,
                _ if self.dice.percent(20) => {
                    let comeback = self.comeback();
                    self.restart(comeback)?;
                }
                _ => {}
            }
        }
        self.restart(Comeback { in_order: true, jump: 0 })?;
        self.rests()?;
        self.seen.finished += usize::from(self.is_finished());
        Ok(())
    }

    fn is_finished(&self) -> bool {
        let phases = self.team.adopted().map_or(0, |adopted| adopted.charter.phases.len());
        let opened = self.seen.events.get("phase-opened").copied().unwrap_or_default();
        let over = |circle: &Circle| matches!(circle.state, CircleState::Published | CircleState::Closed);
        opened == phases && self.team.review().circles().all(over)
    }

    /// Somebody does what it owes, each as it is.
    fn discharge(&mut self, tempers: &BTreeMap<MemberName, Temper>) -> Verdict {
        let owed = self.owed();
        let Some(obligation) = self.dice.pick(&owed) else { return self.publish() };
        let does = match tempers.get(&obligation.member) {
            Some(Temper::Diligent) => 85,
            Some(Temper::Confused) => 60,
            Some(Temper::Hostile) => 50,
            Some(Temper::Lazy) | None => 30,
        };
        if obligation.kind == ObligationKind::Review && self.dice.percent(25) {
            return self.speak(&obligation.member);
        }
        if self.dice.percent(does) { self.obey(obligation) } else { self.act_of(&obligation.member) }
    }

    fn try_something(&mut self) -> Verdict {
        if self.dice.percent(3) {
            return self.intrude();
        }
        let Some(member) = self.dice.pick(&self.members).cloned() else { return Ok(()) };
        self.act_of(&member)
    }

    /// Who is no member, or acts as the server.
    fn intrude(&mut self) -> Verdict {
        let strangers = ["mallory", ":operator", ":server"];
        let who = if self.dice.percent(50) {
            self.dice.pick(&strangers).and_then(|name| name.parse().ok()).unwrap_or(Actor::Operator)
        } else {
            self.dice.pick(&self.members).cloned().map_or(Actor::Operator, Actor::Member)
        };
        let adopted = self.team.adopted().expect("a world begins with its charter");
        let adopt = Adopt {
            text: adopted.text.to_string(),
            digest: adopted.digest.clone(),
            charter: adopted.charter.clone(),
            rules: adopted.rules.to_vec(),
        };
        let command = match self.dice.below(3) {
            0 => Command::Adopt(Box::new(adopt)),
            1 => Command::ReportPublish(review::ReportPublish {
                circle: self.circle_ref().circle,
                manifest: Digest::of_bytes([7; 32]),
                failure: None,
                refs: Vec::new(),
                check: None,
            }),
            _ => self.command(&"mallory".parse().expect("it is a name")),
        };
        // A member's command from a stranger, a stranger's from a member, the server's from anybody.
        self.perform(&who, &command).map(|_| ())
    }

    /// A reviewer looks at a version, and says something about it that perhaps is no approval.
    fn speak(&mut self, member: &MemberName) -> Verdict {
        let reference = self.reference(member);
        let VersionRef { proposal, version, digest } = reference.clone();
        let subject = Subject { proposal, version: Some(version), digest: Some(digest) };
        let who = Actor::Member(member.clone());
        self.perform(&who, &Command::Read(review::Read { subject }))?;
        let command = match self.dice.below(10) {
            0..5 => self.object(reference),
            5 | 6 => self.note(reference),
            _ => self.approve(member, reference),
        };
        let decision = self.perform(&who, &command)?;
        if decision.outcome.is_err() {
            return Ok(());
        }
        if self.dice.percent(15) {
            // Once more: a second objection to the same version, or a note too many.
            self.perform(&who, &command)?;
        }
        self.hurry(&command)
    }

    fn act_of(&mut self, member: &MemberName) -> Verdict {
        if self.dice.percent(15) {
            return self.speak(member);
        }
        let command = self.command(member);
        let decision = self.perform(&Actor::Member(member.clone()), &command)?;
        if decision.outcome.is_ok() { self.hurry(&command) } else { Ok(()) }
    }

    /// Somebody who didn't see what just happened confirms all the same.
    fn hurry(&mut self, seen: &Command) -> Verdict {
        let review = self.team.review();
        let home = |id: ObjectionId| review.objection(id).map(|(proposal, _)| proposal.circle.clone());
        let of = |name: &ProposalName| review.proposal(name).map(|proposal| proposal.circle.clone());
        let circle = match seen {
            Command::Withdraw(withdraw) => of(&withdraw.proposal),
            Command::Note(note) => of(&note.reference.proposal),
            Command::ReportCheck(report) => of(&report.reference.proposal),
            Command::ReportTarget(report) => of(&report.reference.proposal),
            Command::Object(object) => of(&object.reference.proposal),
            Command::Propose(propose) => of(&propose.proposal),
            Command::Overrule(overrule) => home(overrule.objection),
            Command::Resolve(resolve) => home(resolve.objection),
            Command::ReportPublish(report) => Some(report.circle.clone()),
            _ => None,
        };
        let revision = self.revision();
        let circle = circle.and_then(|name| review.circle(&name));
        let reference = circle.map(|circle| review.circle_ref(revision, circle));
        match reference {
            Some(reference) if self.dice.percent(60) => self.confirm(reference),
            _ => Ok(()),
        }
    }

    /// One who takes part confirms.
    fn confirm(&mut self, reference: CircleRef) -> Verdict {
        let charter = &self.team.adopted().expect("a world begins with its charter").charter;
        let review = self.team.review();
        let circle = review.circle(&reference.circle);
        let part: Vec<MemberName> = circle
            .map_or(Vec::new(), |circle| review.participants(charter, circle).into_iter().cloned().collect());
        let Some(member) = self.dice.pick(&part).cloned() else { return Ok(()) };
        let command = Command::Confirm(review::Confirm { reference });
        self.perform(&Actor::Member(member), &command).map(|_| ())
    }

    /// The server says what git says of a version: anything, at any time, also of one that is no longer current.
    fn compare(&mut self) -> Verdict {
        let review = self.team.review();
        let offered: Vec<VersionRef> = review
            .proposals()
            .flat_map(|proposal| {
                proposal.versions.iter().rev().take(2).map(|one| one.reference(&proposal.name))
            })
            .collect();
        let Some(reference) = self.dice.pick(&offered).cloned() else { return Ok(()) };
        let others: Vec<VersionRef> =
            offered.into_iter().filter(|other| other.proposal != reference.proposal).collect();
        let path = || vec![RepoPath::from_bytes(b"src/lexer.rs")];
        let says = self.dice.below(5);
        let undone = (says == 1).then(|| Undone {
            files: path(),
            files_total: 1,
            commits: vec![Digest::of_bytes([9; 32])],
            commits_total: 1,
        });
        let with: Vec<VersionRef> = self.dice.pick(&others).cloned().into_iter().collect();
        let conflict = (says >= 3).then(|| review::Conflict {
            with: if says == 3 { Vec::new() } else { with },
            paths: path(),
            paths_total: 1,
            not_forward: false,
        });
        let target = "refs/heads/main".to_owned();
        let report = TargetMoved { target, commit: None, reference, empty: says == 2, undone, conflict };
        let command = Command::ReportTarget(Box::new(report));
        self.perform(&Actor::Server, &command)?;
        if self.dice.percent(20) {
            // Said once more, it is no news.
            self.perform(&Actor::Server, &command)?;
        }
        self.hurry(&command)
    }

    /// The server does what it owes the world, or reports what is long past.
    fn publish(&mut self) -> Verdict {
        if self.served.is_some() {
            return Ok(());
        }
        if self.dice.percent(5) {
            return self.find_moved();
        }
        if self.dice.percent(8) {
            return self.find_unheard();
        }
        let effects = self.team.effects();
        let (circle, mut manifest) = match self.dice.pick(&effects).cloned() {
            None => return Ok(()),
            Some(Effect::Publish { circle, manifest }) => (circle, manifest),
            Some(Effect::PutBack { escalation }) => {
                let because = self.dice.percent(30).then(|| "it was moved on meanwhile".to_owned());
                let report = Command::ReportPutBack(ReportPutBack { escalation, because });
                self.perform(&Actor::Server, &report)?;
                return self.perform(&Actor::Server, &report).map(drop);
            }
            Some(Effect::Notify { escalation, level, channel }) => {
                let report = Command::ReportSent(ReportSent { escalation, level, channel });
                self.perform(&Actor::Server, &report)?;
                // Reported once more after a crash, it is recorded once.
                return self.perform(&Actor::Server, &report).map(drop);
            }
        };
        let held = self.team.review().circle(&circle).map(|circle| circle.proposals.clone());
        let held = held.unwrap_or_default();
        let failure = self.dice.percent(35).then(|| {
            let mut owing = self.dice.some(&held, 50);
            if owing.is_empty() {
                owing = held;
            }
            PublishFailure { because: "the target moved".to_owned(), owing }
        });
        if self.dice.percent(10) {
            manifest = Digest::of_bytes([7; 32]);
        }
        let failed = failure.is_some();
        let report = review::ReportPublish { circle, manifest, failure, refs: Vec::new(), check: None };
        let command = Command::ReportPublish(report);
        self.perform(&Actor::Server, &command)?;
        if self.dice.percent(30) {
            // A crash between the effect and its record: it is reported again.
            self.perform(&Actor::Server, &command)?;
        }
        if failed { self.hurry(&command) } else { Ok(()) }
    }

    /// The server looks at a repository in which somebody moved a ref behind its back, or put it back.
    fn find_moved(&mut self) -> Verdict {
        let to = Digest::of_bytes([if self.dice.percent(50) { 1 } else { 2 }; 32]);
        let moved = MovedRef { name: "refs/heads/main".to_owned(), from: None, to: Some(to) };
        let moved = if self.dice.percent(60) { vec![moved] } else { Vec::new() };
        // It takes a while: the log has gone on meanwhile.
        let seen = Seq(self.team.seq().0.saturating_sub(self.dice.below(12) as u64));
        self.perform(&Actor::Server, &Command::ReportMoved(ReportMoved { moved, seen })).map(drop)
    }

    /// The server looks who hears: some were silent for a while, of some it doesn't know.
    fn find_unheard(&mut self) -> Verdict {
        let mut report = ReportUnheard::default();
        for member in self.members.clone() {
            let ago = Span::seconds(self.dice.below(1_200) as i64);
            let since = Time(self.now.0 - ago.0);
            match self.dice.below(10) {
                0..5 => {}
                5 => drop(report.unknown.insert(member)),
                of => {
                    let heard = (of < 9).then_some(since);
                    report.members.push(Unheard { member, how: Silence::Deaf, since, heard });
                }
            }
        }
        let report = Command::ReportUnheard(report);
        let told = self.perform(&Actor::Server, &report)?.events;
        let person = self.team.adopted().and_then(|adopted| adopted.charter.humans().next().cloned());
        if let Some(person) = person.filter(|_| self.dice.percent(50)) {
            // A person answers for some silence, and it goes on.
            let opened = told.iter().find_map(|event| match event {
                Event::Escalated(event) => Some(event.id),
                _ => None,
            });
            let Some(escalation) = opened else { return Ok(()) };
            let (member, reviewer, reason) = (None, None, "I call it".to_owned());
            let answer =
                escalation::Answer { escalation, decision: Decision::Dismiss, member, reviewer, reason };
            self.perform(&Actor::Member(person), &Command::AnswerEscalation(answer))?;
            self.perform(&Actor::Server, &report)?;
        }
        Ok(())
    }

    pub fn command(&mut self, member: &MemberName) -> Command {
        match self.dice.below(100) {
            0..14 => Command::Propose(Box::new(self.propose(member))),
            14..24 => Command::Read(review::Read { subject: self.subject() }),
            24..29 => {
                Command::ReadObjections(review::ReadObjections { proposal: self.proposal_name(member) })
            }
            29..62 => {
                let reference = self.reference(member);
                match self.dice.below(8) {
                    0..4 => self.approve(member, reference),
                    4..7 => self.object(reference),
                    _ => self.note(reference),
                }
            }
            62..70 => Command::Resolve(review::Resolve {
                objection: self.objection(member),
                mistaken: self.dice.percent(50),
                reason: self.text(),
            }),
            70..76 => {
                Command::Overrule(review::Overrule { objection: self.objection(member), reason: self.text() })
            }
            76..84 => Command::Withdraw(review::Withdraw {
                proposal: self.proposal_name(member),
                reason: self.text(),
            }),
            84 => self.report_check(member),
            _ if self.dice.percent(6) => self.word(member),
            85..88 => Command::Confirm(review::Confirm { reference: self.circle_ref() }),
            88 if self.dice.percent(40) => self.revise(),
            88..91 => {
                let subject = match self.dice.below(5) {
                    4 => {
                        let phase = self.team.review().current_phase();
                        phase.map_or_else(|| "nonsense".to_owned(), ToString::to_string)
                    }
                    0 => self.proposal_name(member).to_string(),
                    1 => self.objection(member).to_string(),
                    2 => self.circle_ref().circle.to_string(),
                    _ => "nonsense".to_owned(),
                };
                Command::Escalate(escalation::Escalate { subject, text: self.text() })
            }
            _ => {
                let known: Vec<EscalationId> =
                    self.team.escalations().all().map(|escalation| escalation.opened.id).collect();
                let mut escalation = self.dice.pick(&known).copied().unwrap_or(EscalationId(1));
                let open: Vec<EscalationId> =
                    self.team.escalations().open().map(|escalation| escalation.opened.id).collect();
                if self.dice.percent(80) {
                    escalation = self.dice.pick(&open).copied().unwrap_or(escalation);
                }
                let decision = match self.dice.below(16) {
                    12..15 => Decision::DropDeliverable,
                    15 => Decision::ClosePhase,
                    0..3 => Decision::RaiseLimit,
                    3..5 => Decision::Extend,
                    5 => Decision::Overrule,
                    6..8 => Decision::Replace,
                    8..10 => Decision::Excuse,
                    _ => Decision::Dismiss,
                };
                let mut somebody = |percent| {
                    if self.dice.percent(percent) { self.dice.pick(&self.members).cloned() } else { None }
                };
                // What a decision does not ask for it refuses.
                let (members, reviewers) = match decision {
                    Decision::Replace => (95, 40),
                    Decision::Overrule | Decision::Excuse => (40, 3),
                    _ => (3, 3),
                };
                let (named, reviewer) = (somebody(members), somebody(reviewers));
                Command::AnswerEscalation(escalation::Answer {
                    escalation,
                    decision,
                    member: named,
                    reviewer,
                    reason: self.text(),
                })
            }
        }
    }

    /// The charter in force, changed.
    fn revise(&mut self) -> Command {
        let adopted = self.team.adopted().expect("a world begins with its charter");
        let changed = charters::changed(&mut self.dice, &adopted.charter);
        let text = format!("# {}\n{}", self.seen.steps, charters::text(&changed));
        let digest = Digest::of_bytes(Sha256::digest(&text).into());
        let charter = charter::parse("charter.toml", &text);
        Command::Revise(Box::new(Revise {
            text,
            digest,
            charter,
            rules: Vec::new(),
            refused: Vec::new(),
            reason: self.text(),
        }))
    }

    /// A person puts another charter in force.
    fn adopt(&mut self) -> Verdict {
        let adopted = self.team.adopted().expect("a world begins with its charter");
        let humans: Vec<MemberName> = adopted.charter.humans().cloned().collect();
        let Some(person) = self.dice.pick(&humans).cloned() else { return Ok(()) };
        let command = self.revise();
        self.perform(&Actor::Member(person), &command).map(drop)
    }

    fn propose(&mut self, member: &MemberName) -> review::Propose {
        let name = self.proposal_name(member);
        let mut offer = self.fresh_version(name.clone(), BTreeMap::new());
        // One of few contents: it comes back, changed or not.
        let again = self.dice.percent(45).then(|| self.dice.below(4));
        let open: Vec<ObjectionId> = self.team.review().proposal(&name).map_or(Vec::new(), |proposal| {
            let unclosed = proposal.objections.iter().filter(|objection| objection.closed.is_none());
            unclosed.map(|objection| objection.id).collect()
        });
        let mut open = open;
        if self.dice.percent(50) {
            // What follows the work is to be answered too.
            open.extend(
                self.team.review().proposals().filter(|known| known.producer == *member).flat_map(|known| {
                    known.open_objections().map(|objection| objection.id).collect::<Vec<_>>()
                }),
            );
        }
        let answered = if self.dice.percent(75) { 100 } else { 50 };
        for id in self.dice.some(&open, answered) {
            let answer = if self.dice.percent(95) { "done" } else { " " };
            offer.answers.insert(id, answer.to_owned());
        }
        if self.dice.percent(4) {
            offer.answers.insert(self.objection(member), self.text());
        }
        if self.dice.percent(8) {
            offer.after = (offer.after + self.dice.below(3) as u32).saturating_sub(1);
        }
        let mut facts = ArtifactFacts { empty: self.dice.percent(4), ..offer.facts };
        if self.dice.percent(12) {
            let reviewers = self.reviewers(&name);
            let among = if self.dice.percent(50) { &reviewers } else { &self.members };
            let author = self.dice.pick(among).expect("a proposal has reviewers").clone();
            let email = match self.dice.below(3) {
                0 => format!("{author}@example.org"),
                1 => format!("{author}@home.example"),
                _ => format!("{author}@EXAMPLE.org"),
            };
            facts.authors.push(Identity { email, name: "somebody".to_owned() });
            facts.authors.sort();
        }
        if self.dice.percent(20) {
            // The same file as in what the same producer took back.
            let own = |known: &&Proposal| known.producer == *member && known.withdrawal.is_some();
            let among: Vec<&Proposal> = self.team.review().proposals().filter(own).collect();
            let other = self.dice.pick(&among).and_then(|other| other.current());
            facts.paths.extend(other.iter().flat_map(|version| version.paths.iter().cloned()));
            facts.paths.sort();
            facts.paths.dedup();
        }
        if self.dice.percent(10) {
            let owner = self.dice.pick(&self.members).expect("a team has members");
            let paths = [format!("src/{owner}/a.rs"), format!("{owner}.md"), format!("notes/{owner}.md")];
            facts.paths.extend(self.dice.pick(&paths).map(|path| RepoPath::from_bytes(path.as_bytes())));
            facts.paths.sort();
            facts.paths.dedup();
        }
        // What it touches is part of what it is.
        let content = again.map_or_else(|| format!("fresh {:?}", offer.artifact), |few| few.to_string());
        offer.artifact = self.artifact(&format!("{name} content {content} in {:?}", facts.paths));
        let summary = if self.dice.percent(97) { "more" } else { LONG };
        review::Propose { facts, summary: summary.to_owned(), ..offer }
    }

    fn reviewers(&self, name: &ProposalName) -> Vec<MemberName> {
        let charter = &self.team.adopted().expect("a world begins with its charter").charter;
        let Some((phase, held)) = charter.deliverable(name) else { return self.members.clone() };
        phase.reviewers_of(&held.producer).map(|edge| edge.reviewer.clone()).collect()
    }

    fn approve(&mut self, member: &MemberName, reference: VersionRef) -> Command {
        let proposal = self.team.review().proposal(&reference.proposal);
        let own: Vec<(ObjectionId, bool, Option<String>)> = proposal.map_or(Vec::new(), |proposal| {
            let own = proposal.objections.iter().filter(|objection| objection.by == *member);
            own.map(|known| {
                (known.id, known.blocks(), known.failing_test.as_ref().map(|test| test.command.clone()))
            })
            .collect()
        });
        let careful = if self.dice.percent(70) { 100 } else { 40 };
        let open: Vec<ObjectionId> = own.iter().filter(|(_, open, _)| *open).map(|(id, ..)| *id).collect();
        let mut resolve = self.dice.some(&open, careful);
        if self.dice.percent(5) {
            // The same one twice, or anybody's.
            resolve.push(resolve.first().copied().unwrap_or(ObjectionId(1)));
        }
        if self.dice.percent(3) {
            resolve.push(self.objection(member));
        }
        let tests: Vec<String> = own.into_iter().filter_map(|(.., test)| test).collect();
        let mut ran = Vec::new();
        for command in self.dice.some(&tests, careful) {
            let exit = if self.dice.percent(90) { Some(0) } else { Some(1) };
            ran.push(Run { command, exit, output: self.dice.percent(90).then(|| "ok".to_owned()) });
        }
        if self.dice.percent(5) {
            let output = self.dice.percent(50).then(|| self.text());
            ran.push(Run { command: self.text(), exit: Some(0), output });
        }
        Command::Approve(review::Approve { reference, checked: self.places(), ran, resolve })
    }

    fn report_check(&mut self, member: &MemberName) -> Command {
        let reference = self.reference(member);
        let name = if self.dice.percent(90) { "ci" } else { "deploy" }.to_owned();
        let exit = match self.dice.below(4) {
            0 => None,
            1 => Some(1),
            _ => Some(0),
        };
        let output = self.dice.percent(50).then(|| self.text());
        Command::ReportCheck(review::ReportCheck { reference, name, exit, output })
    }

    /// Something in the room, or a verdict on what was claimed there.
    fn word(&mut self, member: &MemberName) -> Command {
        let last = self.team.room().last().map_or(0, |last| last.0);
        let asked: Vec<MessageId> = self.team.room().asked(member).map(|(id, _)| id).collect();
        let mut known = MessageId(1 + self.dice.below(last as usize + 1) as u32);
        if self.dice.percent(60) {
            known = self.dice.pick(&asked).copied().unwrap_or(known);
        }
        if self.dice.percent(35) {
            let verdict = *self.dice.pick(room::Verdict::ALL).expect("there are verdicts");
            let text = if self.dice.percent(50) { self.text() } else { String::new() };
            let evidence = room::Evidence::default();
            return Command::JudgeClaim(room::JudgeClaim { message: known, verdict, text, evidence });
        }
        let members = self.members.clone();
        let to = match self.dice.below(20) {
            0 => vec!["mallory".to_owned()],
            1 => vec!["all".to_owned()],
            2..5 => Vec::new(),
            _ => self.dice.pick(&members).iter().map(ToString::to_string).collect(),
        };
        let about = self.dice.percent(20).then(|| self.proposal_name(member).to_string());
        let claim = self.dice.percent(30).then(room::Evidence::default);
        let reply = (last > 0 && self.dice.percent(60)).then_some(known);
        Command::Say(room::Say { text: self.text(), to, about, reply, claim })
    }

    /// Members who answer one another with a mention each, for longer than a chain may be.
    fn chatter(&mut self) -> Verdict {
        let members = self.members.clone();
        for step in 0..12 {
            let by = members[step % members.len()].clone();
            let to = vec![members[(step + 1) % members.len()].to_string()];
            // By an answer, or by a fresh message while one is owed.
            let reply = if self.dice.percent(70) { self.team.room().last() } else { None };
            let (text, about, claim) = ("and you?".to_owned(), None, None);
            let say = room::Say { text, to, about, reply, claim };
            self.perform(&Actor::Member(by), &Command::Say(say))?;
        }
        // A claim among them, which one of them judges twice alike, and who makes it once.
        let claim = Some(room::Evidence::default());
        let (text, to, about, reply) = ("it holds".to_owned(), Vec::new(), None, None);
        let say = room::Say { text, to, about, reply, claim };
        self.perform(&Actor::Member(members[0].clone()), &Command::Say(say))?;
        let Some(message) = self.team.room().last() else { return Ok(()) };
        for by in [1, 1, 0] {
            let (verdict, text) = (room::Verdict::Refuted, String::new());
            let judge = room::JudgeClaim { message, verdict, text, evidence: room::Evidence::default() };
            self.perform(&Actor::Member(members[by].clone()), &Command::JudgeClaim(judge))?;
        }
        Ok(())
    }

    fn note(&mut self, reference: VersionRef) -> Command {
        Command::Note(review::Note { reference, text: self.text(), at: self.places() })
    }

    fn object(&mut self, reference: VersionRef) -> Command {
        let failing_test = self.dice.percent(30).then(|| {
            let command = match self.dice.below(12) {
                0 => " ".to_owned(),
                1 => LONG.to_owned(),
                2..6 => "cargo test 'it''s huge'".to_owned(),
                _ => format!("cargo test case_{}", self.dice.below(3)),
            };
            let output = self.dice.percent(50).then(|| self.text());
            Run { command, exit: Some(101), output }
        });
        Command::Object(review::Object { reference, text: self.text(), at: self.places(), failing_test })
    }

    fn text(&mut self) -> String {
        let texts = ["the lock is held too long", "it overflows", "seen", "no tests"];
        match self.dice.below(25) {
            0 => " \n".to_owned(),
            1 => LONG.to_owned(),
            _ => (*self.dice.pick(&texts).expect("there are texts")).to_owned(),
        }
    }

    fn places(&mut self) -> Vec<NamedPlace> {
        let place: Place = "src/lexer.rs:80-140".parse().expect("it is a place");
        match self.dice.below(10) {
            0 => vec![NamedPlace { place, found: false }],
            1..4 => vec![NamedPlace { place, found: true }],
            _ => Vec::new(),
        }
    }

    /// A proposal; a member's own rather than another.
    fn proposal_name(&mut self, member: &MemberName) -> ProposalName {
        let charter = &self.team.adopted().expect("a world begins with its charter").charter;
        if self.dice.percent(4) {
            // Of a phase that perhaps didn't open yet.
            let all: Vec<&ProposalName> =
                charter.phases.iter().flat_map(|phase| &phase.deliverables).map(|held| &held.name).collect();
            return self.dice.pick(&all).map_or_else(nonsense, |name| (*name).clone());
        }
        let open: Vec<&Proposal> = open_proposals(&self.team);
        let each = self.team.review().current_phase().and_then(|phase| charter.phase(phase));
        if each.is_some_and(|(_, phase)| phase.confirm == ConfirmKind::Each) && self.dice.percent(5) {
            let name = format!("extra-{member}-{}", self.dice.below(4));
            return name.parse().unwrap_or_else(|_| nonsense());
        }
        let own: Vec<&ProposalName> =
            open.iter().filter(|known| known.producer == *member).map(|known| &known.name).collect();
        let all: Vec<&ProposalName> = self.team.review().proposals().map(|known| &known.name).collect();
        let others: Vec<&ProposalName> = open.iter().map(|known| &known.name).collect();
        let among = match self.dice.below(20) {
            0 => all,
            1 | 2 => others,
            _ if own.is_empty() => others,
            _ => own,
        };
        self.dice.pick(&among).map_or_else(nonsense, |name| (*name).clone())
    }

    /// A version; of work that the member reviews rather than of other work, current rather than past.
    fn reference(&mut self, member: &MemberName) -> VersionRef {
        let charter = &self.team.adopted().expect("a world begins with its charter").charter;
        let reviews = |proposal: &&&Proposal| {
            let phase = charter.phase(&proposal.phase).map(|(_, phase)| phase);
            phase.is_some_and(|phase| proposal.edges(phase).any(|edge| edge.reviewer == member))
        };
        let all: Vec<&Proposal> = self.team.review().proposals().collect();
        let open = open_proposals(&self.team);
        let theirs: Vec<&Proposal> = open.iter().filter(reviews).copied().collect();
        let among = match self.dice.below(20) {
            0 => all,
            1 => open,
            _ if theirs.is_empty() => open,
            _ => theirs,
        };
        let Some(proposal) = self.dice.pick(&among) else { return forged(nonsense(), 1) };
        let mut numbers: Vec<&Version> = proposal.versions.iter().collect();
        if self.dice.percent(85) {
            numbers.drain(..numbers.len().saturating_sub(1));
        }
        let Some(version) = self.dice.pick(&numbers) else { return forged(proposal.name.clone(), 1) };
        let exact = version.reference(&proposal.name);
        match self.dice.below(30) {
            0 => forged(exact.proposal, exact.version),
            1 => forged(exact.proposal, exact.version + 1),
            // The digits of an older version behind the current number.
            2 => {
                let digest = (&proposal.versions[0].artifact.digest).into();
                VersionRef { digest, ..exact }
            }
            3 => {
                let whole = version.artifact.digest.as_str().parse();
                VersionRef { digest: whole.expect("a digest begins with its digits"), ..exact }
            }
            _ => exact,
        }
    }

    fn subject(&mut self) -> Subject {
        let nobody = "mallory".parse().expect("it is a name");
        let VersionRef { proposal, version, digest } = self.reference(&nobody);
        match self.dice.below(4) {
            0 => Subject { proposal, version: None, digest: None },
            1 => Subject { proposal, version: Some(version), digest: None },
            _ => Subject { proposal, version: Some(version), digest: Some(digest) },
        }
    }

    /// An objection or a note; a member's own open one rather than any.
    fn objection(&mut self, member: &MemberName) -> ObjectionId {
        let all: Vec<(ObjectionId, bool, bool)> = self
            .team
            .review()
            .proposals()
            .flat_map(|proposal| &proposal.objections)
            .map(|known| (known.id, known.blocks(), known.by == *member))
            .collect();
        let mut among = all.clone();
        if self.dice.percent(80) && among.iter().any(|(_, open, _)| *open) {
            among.retain(|(_, open, _)| *open);
        }
        if self.dice.percent(60) && among.iter().any(|(.., own)| *own) {
            among.retain(|(.., own)| *own);
        }
        match self.dice.pick(&among) {
            Some((id, ..)) if self.dice.percent(97) => *id,
            _ => ObjectionId(all.len() as u32 + 1),
        }
    }

    /// A circle as it is, as it was, or as it never was.
    fn circle_ref(&mut self) -> CircleRef {
        let (review, revision) = (self.team.review(), self.revision());
        let current: Vec<CircleRef> =
            review.circles().map(|circle| review.circle_ref(revision, circle)).collect();
        let among = if self.dice.percent(75) { &current } else { &self.old_refs };
        let mut reference = self.dice.pick(among).cloned().expect("a world begins with an open phase");
        if self.dice.percent(4) {
            reference.digest = forged_digits();
        }
        reference
    }
}

fn open_proposals(team: &Team) -> Vec<&Proposal> {
    let open = |proposal: &&Proposal| team.review().circle(&proposal.circle).is_some_and(Circle::is_open);
    team.review().proposals().filter(open).collect()
}

fn nonsense() -> ProposalName {
    "nonsense".parse().expect("it is a name")
}

fn forged(proposal: ProposalName, version: u32) -> VersionRef {
    VersionRef { proposal, version, digest: forged_digits() }
}

fn forged_digits() -> DigestPrefix {
    "0123456789ab".parse().expect("they are digits")
}
