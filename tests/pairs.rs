//! Every two commands of a small team, in both orders, on every stage of its work.
//!
//! Races are decided by the log: of any two commands the second meets what the first left. The table
//! says, for each state, what a command alone gets there, and what it gets instead after each other
//! command. Beside it stand the laws that hold for every step, whatever the table says.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

use countersign::judge::CelJudge;
use countersign::protocol::artifact::{Artifact, ArtifactFacts, ArtifactKind, RepoPath};
use countersign::protocol::deadline::ServerResumed;
use countersign::protocol::delivery::Acknowledge;
use countersign::protocol::escalation::{
    self, BreakGlass, Cause, Escalate, MovedRef, ReportMoved, ReportPutBack, ReportSent, ReportUnheard,
    Silence, Unheard,
};
use countersign::protocol::name::{Actor, Digest, EscalationId, MemberName, MessageId, Seq, VersionRef};
use countersign::protocol::review::{
    Approve, Circle, CircleState, Confirm, Note, Object, Overrule, Proposal, Propose, PublishFailure, Read,
    ReadObjections, ReportCheck, ReportPublish, RequirementState, Resolve, Run, SETTLED_BY_STATE,
    TargetMoved, Undone, VoteKind, Withdraw, plainly_met, requirement,
};
use countersign::protocol::room::{Evidence, JudgeClaim, Say, Verdict};
use countersign::protocol::rule::Rule;
use countersign::protocol::time::{Span, Time};
use countersign::protocol::{Adopt, Command, Effect, Event, Team, adoption, charter};
use sha2::{Digest as _, Sha256};

const CHARTER: &str = include_str!("plays/charters/solo.toml");
const TIGHT: &str = include_str!("plays/charters/tight.toml");

/// What the stages add to the solo team: a door, a check, so that one can be reported, and a way to persons.
const MORE: &str = "[repository]\npath = \"atlas.git\"\nprotected = [\"refs/heads/main\"]\n[checks]\nrequired = [\"ci\"]\n\
                    [channels.ops]\ncommand = \"notify\"\n";

/// What stands above the page.
const MADE: &str =
    "<!-- Made from the code by tests/pairs.rs; UPDATE=1 cargo test --test pairs rewrites it. -->\n";

macro_rules! verbs {
    ($($pattern:pat => $verb:literal,)*) => {
        /// Every verb that the core has: a further one doesn't compile before it stands here.
        const VERBS: &[&str] = &[$($verb,)*];

        fn verb(command: &Command) -> &'static str {
            match command {
                $($pattern => $verb,)*
            }
        }
    };
}

verbs! {
    Command::Adopt(_) => "adopt the first charter",
    Command::Revise(_) => "adopt another charter",
    Command::Propose(_) => "propose",
    Command::Read(_) => "read",
    Command::ReadObjections(_) => "read objections",
    Command::Approve(_) => "approve",
    Command::Object(_) => "object",
    Command::Note(_) => "note",
    Command::Resolve(_) => "resolve",
    Command::Overrule(_) => "overrule",
    Command::Withdraw(_) => "withdraw",
    Command::ReportCheck(_) => "report a check",
    Command::Confirm(_) => "confirm",
    Command::ReportPublish(_) => "report on publishing",
    Command::ReportTarget(_) => "report on a target",
    Command::Escalate(_) => "escalate",
    Command::AnswerEscalation(_) => "answer an escalation",
    Command::BreakGlass(_) => "break the glass",
    Command::Acknowledge(_) => "acknowledge a wake",
    Command::Say(_) => "say",
    Command::JudgeClaim(_) => "give a verdict",
    Command::ReportSent(_) => "report news as sent",
    Command::ReportMoved(_) => "report moved refs",
    Command::ReportUnheard(_) => "report who does not hear",
    Command::ReportPutBack(_) => "report a ref as put back",
    Command::TimePassed => "time passes",
    Command::ResumeServer(_) => "a server is back",
}

/// One command of the cast: its name in the table, who gives it, and what it asks for.
#[derive(Clone)]
struct Line {
    name: &'static str,
    who: Actor,
    command: Command,
}

/// A team with its log as it would be stored.
#[derive(Clone)]
struct Stage {
    team: Team,
    log: Vec<(Time, &'static str, u32, String)>,
    now: Time,
}

fn actor(name: &str) -> Actor {
    name.parse().unwrap()
}

fn digest(text: &str) -> Digest {
    Digest::of_bytes(Sha256::digest(text).into())
}

impl Stage {
    fn open(judge: &CelJudge, text: &str) -> Self {
        let charter = charter::parse("charter.toml", text).unwrap_or_else(|found| panic!("{found}"));
        let adopt = Adopt { text: text.to_owned(), digest: digest(text), charter, rules: Vec::new() };
        let now = "2026-01-01T09:00:00Z".parse().unwrap();
        let mut stage = Self { team: Team::new(), log: Vec::new(), now };
        let line = Line { name: "adopt", who: Actor::Operator, command: Command::Adopt(Box::new(adopt)) };
        assert_eq!(stage.take(judge, &line), "ok");
        stage
    }

    /// Decides one command, checks the laws of the step, and folds what happened in: "ok" or the code.
    fn take(&mut self, judge: &CelJudge, line: &Line) -> &'static str {
        let decision = self.team.handle(judge, self.now, &line.who, &line.command);
        let again = self.team.handle(judge, self.now, &line.who, &line.command);
        assert_eq!(decision, again, "{}: the same question has one answer", line.name);
        let before = self.team.clone();
        for event in &decision.events {
            let seq = Seq(self.team.seq().0 + 1);
            self.log.push((self.now, event.kind(), event.schema(), event.encode()));
            self.team.apply(seq, self.now, event);
        }
        let about = "parser".parse().unwrap();
        for event in self.team.aftermath(judge, self.now, &decision.events, Some(&about)).events {
            assert!(!matches!(event, Event::RecoveryFired(_)), "{}: {event:?}", line.name);
            let seq = Seq(self.team.seq().0 + 1);
            self.log.push((self.now, event.kind(), event.schema(), event.encode()));
            self.team.apply(seq, self.now, &event);
        }
        match &decision.outcome {
            Ok(_) => self.accepted(&before, line, &decision.events),
            Err(_) => {
                let escalations = decision.events.iter().all(|event| matches!(event, Event::Escalated(_)));
                assert!(
                    escalations && decision.events.len() <= 1,
                    "{}: a refusal changes nothing",
                    line.name
                );
            }
        }
        self.holds(judge, line.name);
        decision.outcome.map_or_else(|rejection| rejection.code(), |_| "ok")
    }

    /// What an accepted command promises, each said anew from the state before it.
    fn accepted(&self, before: &Team, line: &Line, events: &[Event]) {
        let by = line.who.member();
        let old = |name| before.review().proposal(name);
        match &line.command {
            Command::Propose(propose) => {
                let (old, new) = (old(&propose.proposal).unwrap(), self.parser().unwrap());
                assert_eq!(new.current_number(), old.current_number() + 1);
                assert_eq!(propose.after, old.current_number(), "nobody passes a version that was not told");
                assert!(new.current().unwrap().ballots.is_empty(), "a new version has no votes");
                assert!(old.unread().next().is_none(), "all was read");
                assert!(old.open_objections().all(|open| propose.answers.contains_key(&open.id)));
                assert_eq!(self.confirmations(), 0, "confirmations lapse");
            }
            Command::Approve(approve) => {
                let (by, old) = (by.unwrap(), old(&approve.reference.proposal).unwrap());
                let current = old.current().unwrap();
                assert_eq!(current.reference(&old.name), approve.reference, "exactly the current version");
                assert!(current.read_by.contains_key(by), "it was shown");
                assert!(old.withdrawal.is_none() && old.producer != *by);
                let held = self.parser().unwrap().open_objections().any(|open| open.by == *by);
                assert!(!held, "nobody approves over an own objection");
            }
            Command::Object(object) => {
                let old = old(&object.reference.proposal).unwrap();
                assert_eq!(old.current().unwrap().reference(&old.name), object.reference);
                assert!(self.parser().unwrap().open_objections().any(|open| open.by == *by.unwrap()));
            }
            Command::Confirm(confirm) => {
                let circle = before.review().circle(&confirm.reference.circle).unwrap();
                let reference = before.review().circle_ref(before.adopted().unwrap().revision, circle);
                assert_eq!(confirm.reference, reference, "exactly what it holds");
                let open = before.review().proposals().any(|known| known.open_objections().next().is_some());
                assert!(!open || !circle.is_open(), "nothing is confirmed over an open objection");
            }
            Command::Read(_) => {
                let read = events.iter().all(|event| matches!(event, Event::VersionRead(_)));
                assert!(read, "a reading is all that it leaves");
            }
            _ => {}
        }
    }

    /// What holds in every state.
    fn holds(&self, judge: &CelJudge, after: &str) {
        let (team, review) = (&self.team, self.team.review());
        for circle in review.circles() {
            let owed = circle
                .proposals
                .iter()
                .any(|name| !team.obligations_around(judge, self.now, Some(name)).is_empty());
            let cooling = team.next_deadline(judge, self.now).is_some();
            assert!(!circle.is_open() || owed || cooling, "after {after}: nobody owes in {}", circle.name);
            self.settled_as_the_rules_say(judge, circle, after);
            let Some(completed) = &circle.completed else { continue };
            for entry in &completed.entries {
                let proposal = review.proposal(&entry.proposal).unwrap();
                let current = proposal.current().unwrap();
                assert_eq!((entry.version, &entry.digest), (current.number, &current.artifact.digest));
                assert!(proposal.open_objections().next().is_none());
                assert!(entry.approvals.iter().all(|counted| {
                    counted.version == entry.version
                        && (counted.overruled || current.approved_by(&counted.by))
                }));
                assert_eq!(entry.approvals.len(), 2, "every edge counts");
            }
        }
        for proposal in review.proposals() {
            for (index, version) in proposal.versions.iter().enumerate() {
                assert_eq!(version.number as usize, index + 1);
                for (member, ballot) in &version.ballots {
                    let holds = |open: &&_| by_on(open, member, version.number);
                    let objects = proposal.open_objections().filter(holds).count() > 0;
                    let vote = ballot.vote.as_ref().map(|vote| vote.kind);
                    assert!(
                        !objects || vote == Some(VoteKind::Object),
                        "after {after}: an objection is a vote"
                    );
                }
            }
        }
        assert_eq!(self.replayed(), format!("{:?}", self.team), "after {after}: the log tells it all");
    }

    /// Where the state says that a circle is settled, the rules that it speaks for all pass; where it
    /// says that it isn't, one of them denies.
    fn settled_as_the_rules_say(&self, judge: &CelJudge, circle: &Circle, after: &str) {
        if !circle.is_open() {
            return;
        }
        let (team, charter) = (&self.team, &self.team.adopted().unwrap().charter);
        for confirmer in team.review().participants(charter, circle) {
            let spoken_for = |rule: &Rule| SETTLED_BY_STATE.contains(&rule.id.as_str());
            let asked = requirement::of_circle_by(team, charter, judge, circle, confirmer, spoken_for);
            let denied = asked
                .iter()
                .any(|asked| matches!(asked.state, RequirementState::Unsatisfied | RequirementState::Error));
            assert_eq!(team.review().is_settled(circle), !denied, "after {after}: {asked:#?}");
            if team.review().is_settled(circle) {
                let met = |rule: &Rule| plainly_met(team, charter, circle, &rule.id);
                let asked = requirement::of_circle_by(team, charter, judge, circle, confirmer, met);
                let denied = asked.iter().find(|asked| asked.state == RequirementState::Unsatisfied);
                assert_eq!(denied, None, "after {after}");
            }
        }
    }

    /// The state that the stored log gives.
    fn replayed(&self) -> String {
        let mut team = Team::new();
        for (index, (at, kind, schema, body)) in self.log.iter().enumerate() {
            let event = Event::decode(kind, *schema, body).unwrap();
            team.apply(Seq(index as u64 + 1), *at, &event);
        }
        format!("{team:?}")
    }

    fn parser(&self) -> Option<&Proposal> {
        self.team
            .review()
            .proposal("parser".parse::<countersign::protocol::name::ProposalName>().as_ref().unwrap())
    }

    fn confirmations(&self) -> usize {
        self.team.review().circles().map(|circle| circle.confirmed.len()).sum()
    }

    /// Every command that somebody might give in this state, spoken of what stands in it.
    fn cast(&self) -> Vec<Line> {
        let proposal = self.parser().unwrap();
        let review = self.team.review();
        let circle = review.circles().next().unwrap();
        let mut lines = Vec::new();
        let mut line = |name, who: &str, command| lines.push(Line { name, who: actor(who), command });
        line("app proposes", "app", self.propose("this"));
        line("app proposes from another clone", "app", self.propose("that"));
        line("app reads objections", "app", read_objections());
        line("app withdraws", "app", withdraw());
        if let Some(current) = proposal.current() {
            let reference = current.reference(&proposal.name);
            for (name, who) in [("sec reads", "sec"), ("arch reads", "arch")] {
                line(name, who, read(&reference.to_string()));
            }
            for (name, who) in [("sec approves", "sec"), ("arch approves", "arch")] {
                let own = proposal.open_objections().filter(|open| open.by.as_str() == who);
                let resolve = own.map(|open| open.id).collect();
                let ran = Run { command: "cargo test".to_owned(), exit: Some(0), output: None };
                let (checked, ran) = (Vec::new(), vec![ran]);
                let reference = reference.clone();
                line(name, who, Command::Approve(Approve { reference, checked, ran, resolve }));
            }
            for (name, who) in [("sec objects", "sec"), ("arch objects", "arch")] {
                line(name, who, object(&reference.to_string()));
            }
            let (reference, text) = (reference.clone(), "typo".to_owned());
            line("sec notes", "sec", Command::Note(Note { reference, text, at: Vec::new() }));
        }
        if let Some(open) = proposal.open_objections().next() {
            let objection = open.id;
            let resolve = |mistaken| Resolve { objection, mistaken, reason: "so it is".to_owned() };
            line("sec resolves", "sec", Command::Resolve(resolve(false)));
            line("sec was mistaken", "sec", Command::Resolve(resolve(true)));
            let reason = "it is none".to_owned();
            line("dana overrules", "dana", Command::Overrule(Overrule { objection, reason }));
        }
        let reference = review.circle_ref(self.team.adopted().unwrap().revision, circle);
        for (name, who) in [("app confirms", "app"), ("sec confirms", "sec"), ("arch confirms", "arch")] {
            line(name, who, Command::Confirm(Confirm { reference: reference.clone() }));
        }
        line("dana adopts", "dana", self.revise());
        line("the operator adopts", ":operator", self.adopt());
        if let Some(current) = proposal.current() {
            for (name, exit) in [("arch reports a pass", Some(0)), ("arch reports a failure", Some(1))] {
                let (reference, output) = (current.reference(&proposal.name), None);
                let check = ReportCheck { reference, name: "ci".to_owned(), exit, output };
                line(name, "arch", Command::ReportCheck(check));
            }
            line("git says it takes work back", ":server", moved(current.reference(&proposal.name), true));
            line("git says all is well", ":server", moved(current.reference(&proposal.name), false));
        }
        for (escalation, decision, name) in self.asked() {
            let (member, reviewer, reason) = (None, None, "decided".to_owned());
            let answer = escalation::Answer { escalation, decision, member, reviewer, reason };
            line(name, "dana", Command::AnswerEscalation(answer));
        }
        if let Some(Effect::Notify { escalation, level, channel }) =
            self.team.effects().into_iter().find(|effect| matches!(effect, Effect::Notify { .. }))
        {
            let sent = ReportSent { escalation, level, channel };
            line("the server tells dana", ":server", Command::ReportSent(sent));
        }
        let moved =
            MovedRef { name: "refs/heads/main".to_owned(), from: None, to: Some(digest("elsewhere")) };
        let report = |moved: &[MovedRef]| {
            Command::ReportMoved(ReportMoved { moved: moved.to_vec(), seen: self.team.seq() })
        };
        line("the server finds main moved", ":server", report(std::slice::from_ref(&moved)));
        line("the server finds no ref moved", ":server", report(&[]));
        let (member, heard) = ("sec".parse().unwrap(), Some(self.began()));
        let sec = Unheard { member, how: Silence::Deaf, since: self.began(), heard };
        let report = |members| Command::ReportUnheard(ReportUnheard { members, unknown: BTreeSet::new() });
        line("the server finds sec deaf", ":server", report(vec![sec]));
        line("the server finds that all hear", ":server", report(Vec::new()));
        let mut to_put_back = self.team.escalations().to_put_back();
        let escalation = to_put_back.next().map_or(EscalationId(1), |one| one.opened.id);
        let done = ReportPutBack { escalation, because: None };
        line("the server puts main back", ":server", Command::ReportPutBack(done));
        line("time passes", ":server", Command::TimePassed);
        let resumed = ServerResumed { from: self.team.at(), to: self.now };
        line("the server is back", ":server", Command::ResumeServer(resumed));
        let (subject, text) = ("parser".to_owned(), "who decides?".to_owned());
        line("arch escalates", "arch", Command::Escalate(Escalate { subject, text }));
        let say = |text: &str, reply: Option<u32>, claim: bool| {
            Command::Say(Say {
                text: text.to_owned(),
                to: Vec::new(),
                about: Some("parser".to_owned()),
                reply: reply.map(MessageId),
                claim: claim.then(Evidence::default),
            })
        };
        line("sec claims", "sec", say("@arch it holds", None, true));
        line("arch answers", "arch", say("it does", Some(1), false));
        for (name, who) in [("arch gives a verdict", "arch"), ("sec gives a verdict", "sec")] {
            let (message, verdict) = (MessageId(1), Verdict::Refuted);
            let (text, evidence) = (String::new(), Evidence::default());
            line(name, who, Command::JudgeClaim(JudgeClaim { message, verdict, text, evidence }));
        }
        let (refs, reason) = (vec!["refs/heads/main".to_owned()], "the build is broken".to_owned());
        let glass = BreakGlass { refs, span: Span::seconds(60), once: true, reason };
        line("dana breaks the glass", "dana", Command::BreakGlass(glass));
        let due = self.team.due(&CelJudge::shipped(), self.now, &"sec".parse().unwrap());
        let obligations = due.owed.into_iter().map(|owed| owed.id).collect();
        let took = Acknowledge { wake: due.wake, obligations, watched: None, seq: self.team.seq() };
        line("sec takes a wake", "sec", Command::Acknowledge(took));
        if circle.state == CircleState::Complete {
            let because = "the target moved".to_owned();
            let failure = PublishFailure { because, owing: vec![proposal.name.clone()] };
            for (name, failure) in
                [("the server publishes", None), ("the server can't publish", Some(failure))]
            {
                let manifest = circle.completed.as_ref().unwrap().manifest.clone();
                let circle = circle.name.clone();
                let command = Command::ReportPublish(ReportPublish {
                    circle,
                    manifest,
                    failure,
                    refs: Vec::new(),
                    check: None,
                });
                lines.push(Line { name, who: Actor::Server, command });
            }
        }
        lines
    }

    /// When the first charter came.
    fn began(&self) -> Time {
        self.log[0].0
    }

    /// The first charter, once more.
    fn adopt(&self) -> Command {
        let adopted = self.team.adopted().unwrap();
        let (text, digest) = (adopted.text.to_string(), adopted.digest.clone());
        Command::Adopt(Box::new(Adopt { text, digest, charter: adopted.charter.clone(), rules: Vec::new() }))
    }

    /// What a person may decide of the first thing that waits for it.
    fn asked(&self) -> Vec<(EscalationId, escalation::Decision, &'static str)> {
        let Some(first) = self.team.escalations().open().next() else { return Vec::new() };
        vec![
            (first.opened.id, escalation::Decision::Dismiss, "dana dismisses"),
            (first.opened.id, escalation::Decision::Extend, "dana gives more time"),
            (first.opened.id, escalation::Decision::PutBack, "dana has it put back"),
            (first.opened.id, escalation::Decision::AcceptMove, "dana accepts the move"),
            (first.opened.id, escalation::Decision::DropDeliverable, "dana drops the parser"),
            (first.opened.id, escalation::Decision::ClosePhase, "dana closes the phase"),
        ]
    }

    /// The charter in force, with a limit more.
    fn revise(&self) -> Command {
        let adopted = self.team.adopted().unwrap();
        let text = format!("{}\n# one more\n", adopted.text);
        let charter = charter::parse("charter.toml", &text);
        let reason = "one more".to_owned();
        Command::Revise(Box::new(adoption::Revise {
            digest: digest(&text),
            text,
            charter,
            rules: Vec::new(),
            refused: Vec::new(),
            reason,
        }))
    }

    /// A version with that content after the current one, which answers all that is open.
    fn propose(&self, content: &str) -> Command {
        let proposal = self.parser().unwrap();
        let content = digest(content);
        let answers: BTreeMap<_, _> =
            proposal.open_objections().map(|open| (open.id, "mended".to_owned())).collect();
        Command::Propose(Box::new(Propose {
            proposal: proposal.name.clone(),
            artifact: Artifact { kind: ArtifactKind::Bundle, digest: content.clone(), content, base: None },
            facts: ArtifactFacts::default(),
            summary: String::new(),
            answers,
            after: proposal.current_number(),
        }))
    }

    /// Gives the cast's line of that name, which must be accepted.
    fn play(&mut self, judge: &CelJudge, names: &[&str]) {
        for name in names {
            let line = self.cast().into_iter().find(|line| line.name == *name).unwrap();
            assert_eq!(self.take(judge, &line), "ok", "{name}");
        }
    }
}

fn by_on(open: &countersign::protocol::review::Objection, member: &MemberName, version: u32) -> bool {
    open.by == *member && open.version == version
}

/// What git says of a version.
fn moved(reference: VersionRef, takes_back: bool) -> Command {
    let files = vec![RepoPath::from_bytes(b"src/lexer.rs")];
    let undone = Undone { files, files_total: 1, commits: vec![digest("landed")], commits_total: 1 };
    Command::ReportTarget(Box::new(TargetMoved {
        target: "refs/heads/main".to_owned(),
        commit: Some(digest("landed")),
        reference,
        empty: false,
        undone: takes_back.then_some(undone),
        conflict: None,
    }))
}

fn read(subject: &str) -> Command {
    Command::Read(Read { subject: subject.parse().unwrap() })
}

fn read_objections() -> Command {
    Command::ReadObjections(ReadObjections { proposal: "parser".parse().unwrap() })
}

fn withdraw() -> Command {
    Command::Withdraw(Withdraw {
        proposal: "parser".parse().unwrap(),
        reason: "the lock is wrong".to_owned(),
    })
}

fn object(reference: &str) -> Command {
    let (reference, text) = (reference.parse().unwrap(), "overflows".to_owned());
    Command::Object(Object { reference, text, at: Vec::new(), failing_test: None })
}

/// Every stage of a small team's work, by the accepted commands that lead there from the one before.
fn stages(judge: &CelJudge) -> Vec<(&'static str, Stage)> {
    let opened = Stage::open(
        judge,
        &format!("{MORE}{}", CHARTER.replace("kind = \"human\"", "kind = \"human\"\nnotify = [\"ops\"]")),
    );
    let after = |stage: &Stage, names: &[&str]| {
        let mut stage = stage.clone();
        stage.play(judge, names);
        stage
    };
    let proposed = after(&opened, &["app proposes"]);
    let read = after(&proposed, &["sec reads", "arch reads"]);
    let mut deaf = read.clone();
    deaf.now = deaf.now + Span::seconds(600);
    deaf.play(judge, &["the server finds sec deaf"]);
    let objected = after(&read, &["sec objects", "arch approves"]);
    let mut answered = after(&objected, &["app reads objections"]);
    // Other content than before, as a revision has.
    let revision = Line { name: "app revises", who: actor("app"), command: answered.propose("revised") };
    assert_eq!(answered.take(judge, &revision), "ok");
    answered.play(judge, &["sec reads", "arch reads"]);
    let unchecked = after(&read, &["sec approves", "arch approves"]);
    let accepted = after(&unchecked, &["arch reports a pass"]);
    let escalated = after(&accepted, &["arch escalates"]);
    let confirmed = after(&accepted, &["app confirms", "arch confirms"]);
    let complete = after(&confirmed, &["sec confirms"]);
    let withdrawn = after(&read, &["app withdraws"]);
    let mut cooled = withdrawn.clone();
    cooled.now = cooled.now + Span::seconds(120);
    vec![
        ("nothing is there", opened),
        ("proposed, and nobody has read it", proposed),
        ("read, and nobody has voted", read),
        ("read, and a person is told that sec is deaf", deaf),
        ("sec objects, arch approves", objected),
        ("answered by a version that both have read", answered),
        ("approved by all, and the check is not reported", unchecked),
        ("accepted", accepted.clone()),
        ("accepted, and a person is asked", escalated.clone()),
        ("confirmed by all but sec", confirmed),
        ("complete, not yet published", complete.clone()),
        ("published", after(&complete, &["the server publishes"])),
        ("reopened: it could not be published", after(&complete, &["the server can't publish"])),
        ("dropped by a person", after(&escalated, &["dana drops the parser"])),
        ("closed by a person", after(&escalated, &["dana closes the phase"])),
        ("withdrawn, cooling down", withdrawn),
        ("withdrawn, cooled down", cooled),
    ]
}

#[test]
fn every_two_commands_in_both_orders() {
    let judge = CelJudge::shipped();
    let mut page = format!("{MADE}\n{PREFACE}");
    for (title, stage) in stages(&judge) {
        let cast = stage.cast();
        let alone: Vec<&str> = cast.iter().map(|line| stage.clone().take(&judge, line)).collect();
        // By the second command: its other outcomes, with what came before them.
        let mut instead: Vec<BTreeMap<&str, Vec<&str>>> = vec![BTreeMap::new(); cast.len()];
        for (first, first_alone) in cast.iter().zip(&alone) {
            let mut left = stage.clone();
            left.take(&judge, first);
            let untouched = format!("{:?}", left.team) == format!("{:?}", stage.team);
            for (index, (second, second_alone)) in cast.iter().zip(&alone).enumerate() {
                let mut both = left.clone();
                let outcome = both.take(&judge, second);
                if untouched {
                    assert_eq!(outcome, *second_alone, "{} after {}", second.name, first.name);
                }
                if outcome != *second_alone {
                    instead[index].entry(outcome).or_default().push(first.name);
                }
                let votes = |line: &Line| matches!(line.command, Command::Approve(_) | Command::Read(_));
                if votes(first) && votes(second) && first.who != second.who {
                    let mut other = stage.clone();
                    other.take(&judge, second);
                    assert_eq!(other.take(&judge, first), *first_alone);
                    assert_eq!(
                        unordered(&other, &stage),
                        unordered(&both, &stage),
                        "what two members read and approve doesn't depend on who was first"
                    );
                }
            }
        }
        let _ = writeln!(page, "\n## {title}\n\n| command | alone | otherwise |\n| --- | --- | --- |");
        for ((line, outcome), instead) in cast.iter().zip(&alone).zip(instead) {
            let told = |(outcome, after): (&str, Vec<&str>)| {
                format!("{} after: {}", shown(outcome), after.join(", "))
            };
            let instead: Vec<String> = instead.into_iter().map(told).collect();
            let _ = writeln!(page, "| {} | {} | {} |", line.name, shown(outcome), instead.join("; "));
        }
    }
    compare("docs/reference/pairs.md", &page);
}

fn shown(outcome: &str) -> String {
    if outcome == "ok" { outcome.to_owned() } else { format!("`{outcome}`") }
}

const PREFACE: &str = "# Pairs of commands

Races are decided by the log: of any two commands, in either order, the second meets what the first left. For each
state of a small team's work this says what each command comes to alone, and what it comes to instead right after
another one. What isn't said changes nothing: after every other command of the same table it comes to the same as
alone. The references are those of the state: who speaks of a version that another command replaced speaks of an old
one. `ok` is accepted; everything else is the first code of the refusal.
";

/// Compares with the page, or rewrites it.
fn compare(name: &str, page: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, page).unwrap();
    }
    let known = std::fs::read_to_string(&path).unwrap_or_default();
    let differs = known.lines().zip(page.lines()).find(|(known, made)| known != made);
    assert!(known == page, "{name} differs from the code (UPDATE=1 rewrites it): {differs:#?}");
}

#[test]
fn the_table_has_every_verb_and_no_state_is_left_out() {
    let judge = CelJudge::shipped();
    let stages = stages(&judge);
    let casts = stages.iter().flat_map(|(_, stage)| stage.cast());
    let played: BTreeSet<&str> = casts.map(|line| verb(&line.command)).collect();
    let missing: Vec<&&str> = VERBS.iter().filter(|verb| !played.contains(*verb)).collect();
    assert!(missing.is_empty(), "in no state somebody tries to {missing:?}");
    let known: BTreeSet<&str> = stages
        .iter()
        .flat_map(|(_, stage)| {
            let review = stage.team.review();
            review.proposals().chain(review.dropped()).map(|known| review.proposal_state(known).as_str())
        })
        .collect();
    let states = [
        "accepted",
        "closed",
        "complete",
        "dropped",
        "objected",
        "published",
        "to-deliver",
        "under-review",
        "withdrawn",
    ];
    assert_eq!(
        known.into_iter().collect::<Vec<_>>(),
        states,
        "states of the proposal in which pairs are tried"
    );
}

/// What happened since, whatever the order.
fn unordered(stage: &Stage, since: &Stage) -> Vec<String> {
    let mut happened: Vec<String> =
        stage.log[since.log.len()..].iter().map(|(_, _, _, body)| body.clone()).collect();
    happened.sort();
    happened
}

#[test]
fn a_dissent_round_is_called_with_the_last_approval_and_once() {
    let judge = CelJudge::shipped();
    let mut stage = Stage::open(&judge, CHARTER);
    stage.play(&judge, &["app proposes", "sec reads", "arch reads"]);
    let reference = stage.parser().unwrap().current_ref().parse().unwrap();
    let bare = Approve { reference, checked: Vec::new(), ran: Vec::new(), resolve: Vec::new() };
    let mut approve = |who: &str| {
        let before = stage.log.len();
        let command = Command::Approve(bare.clone());
        assert_eq!(stage.take(&judge, &Line { name: "approves", who: actor(who), command }), "ok");
        stage.log[before..].iter().map(|(_, kind, ..)| *kind).collect::<Vec<_>>()
    };
    assert_eq!(approve("sec"), ["approved"]);
    assert_eq!(approve("arch"), ["approved", "dissent-called"]);
    assert_eq!(approve("arch"), ["approved"], "asked once for what it holds");
    let (_, _, _, body) = stage.log.iter().find(|(_, kind, ..)| *kind == "dissent-called").unwrap();
    assert!(
        body.contains("\"circle\":\"implement\"") && body.contains("\"proposals\":[\"parser\"]"),
        "{body}"
    );
}

#[test]
fn a_person_who_decides_about_another_round_sees_both_sides_words() {
    let judge = CelJudge::shipped();
    let mut stage = Stage::open(&judge, TIGHT);
    stage.play(&judge, &["app proposes", "sec reads", "sec objects", "app reads objections"]);
    stage.play(&judge, &["app proposes from another clone", "sec reads", "sec objects"]);
    let open: Vec<_> = stage.team.escalations().open().collect();
    assert_eq!(open.len(), 1);
    assert_eq!(open[0].opened.cause, Cause::RoundLimit);
    assert_eq!(
        open[0].opened.text,
        "parser went through 1 round\no1 by sec on version 1: overflows\n  app answered with version 2: mended\no2 by sec on version 2: overflows\n"
    );
}

#[test]
fn a_team_without_a_charter_does_nothing() {
    let judge = CelJudge::shipped();
    let decision = Team::new().handle(&judge, Time(0), &actor("app"), &withdraw());
    assert_eq!(decision.outcome.unwrap_err().code(), "NOT_ADOPTED");
    assert!(decision.events.is_empty());
}

#[test]
fn nothing_is_published_to_a_moved_ref_until_a_person_has_said_where_it_belongs() {
    let judge = CelJudge::shipped();
    let publishes =
        |stage: &Stage| stage.team.effects().iter().any(|effect| matches!(effect, Effect::Publish { .. }));
    for (decision, done) in
        [("dana accepts the move", None), ("dana has it put back", Some("the server puts main back"))]
    {
        let mut stage = Stage::open(&judge, CHARTER);
        let steps = ["app proposes", "sec reads", "arch reads", "sec approves", "arch approves"];
        stage.play(&judge, &steps);
        stage.play(&judge, &["app confirms", "sec confirms", "arch confirms"]);
        assert!(publishes(&stage));
        stage.play(&judge, &["the server finds main moved"]);
        assert!(!publishes(&stage), "it waits for dana");
        stage.play(&judge, &[decision]);
        if let Some(done) = done {
            assert!(!publishes(&stage), "it waits until the ref is put back");
            stage.play(&judge, &[done]);
        }
        assert!(publishes(&stage), "{decision}");
    }
}
