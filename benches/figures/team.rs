//! A large team, made by the commands that its members would give.

use std::fmt::Write as _;

use countersign::judge::CelJudge;
use countersign::protocol::artifact::{Artifact, ArtifactFacts, ArtifactKind, Place, RepoPath};
use countersign::protocol::charter;
use countersign::protocol::escalation::Escalate;
use countersign::protocol::name::{Actor, CircleName, Digest, MemberName, ProposalName, Seq, VersionRef};
use countersign::protocol::review::{
    Approve, Confirm, NamedPlace, Object, Propose, Read, ReportPublish, Run,
};
use countersign::protocol::rule::Judge;
use countersign::protocol::time::{Span, Time};
use countersign::protocol::{Adopt, Command, Event, Obligation, Team};
use countersign::store::Row;
use sha2::{Digest as _, Sha256};

/// How many of each there are, and how they finish.
#[derive(Clone, Copy)]
pub struct Shape {
    /// Half of them produce, half review; two persons come on top.
    pub agents: usize,
    pub proposals: usize,
    /// Whether all proposals finish together, or each by itself.
    pub together: bool,
    /// Escalations that wait for a person.
    pub escalations: usize,
}

impl Shape {
    /// The charter of such a team: each producer has two reviewers.
    pub fn charter(self, team: &str) -> String {
        let half = self.agents / 2;
        let mut text = format!("[team]\nname = \"{team}\"\n");
        for human in ["dana", "erin"] {
            writeln!(text, "[members.{human}]\nkind = \"human\"\nabout = \"A person\"")
                .expect("a string takes all");
        }
        for index in 0..half {
            writeln!(text, "[members.p{index}]\nabout = \"Produces\"").expect("a string takes all");
            writeln!(text, "[members.r{index}]\nabout = \"Reviews\"").expect("a string takes all");
        }
        let confirm = if self.together { "together" } else { "each" };
        writeln!(text, "[[phases]]\nname = \"build\"\nconfirm = \"{confirm}\"\ndeliverables = [")
            .expect("a string takes all");
        for index in 0..self.proposals {
            writeln!(text, "{{ name = \"part{index}\", producer = \"p{}\" }},", index % half)
                .expect("a string takes all");
        }
        writeln!(text, "]\nreviews = [").expect("a string takes all");
        for index in 0..half {
            let next = (index + 1) % half;
            for (reviewer, lens) in [(index, "correctness"), (next, "security")] {
                writeln!(text, "{{ reviewer = \"r{reviewer}\", of = \"p{index}\", lens = \"{lens}\" }},")
                    .expect("a string takes all");
            }
        }
        writeln!(text, "]").expect("a string takes all");
        text
    }

    pub fn producer(self, proposal: usize) -> Actor {
        member(&format!("p{}", proposal % (self.agents / 2)))
    }

    pub fn reviewers(self, proposal: usize) -> [Actor; 2] {
        let half = self.agents / 2;
        let first = proposal % half;
        [member(&format!("r{first}")), member(&format!("r{}", (first + 1) % half))]
    }
}

pub fn member(name: &str) -> Actor {
    name.parse().expect("it is a name")
}

pub fn name(proposal: usize) -> ProposalName {
    format!("part{proposal}").parse().expect("it is a name")
}

pub fn digest(text: &str) -> Digest {
    Digest::of_bytes(Sha256::digest(text).into())
}

pub fn adopt(text: &str) -> Command {
    let charter = charter::parse("charter.toml", text).unwrap_or_else(|found| panic!("{found}"));
    Command::Adopt(Box::new(Adopt {
        text: text.to_owned(),
        digest: digest(text),
        charter,
        rules: Vec::new(),
    }))
}

/// A team in memory, driven as its task drives it.
#[derive(Clone)]
pub struct Driven {
    pub team: Team,
    pub now: Time,
    pub shape: Shape,
    /// What a store would have, where somebody wants it.
    pub rows: Option<Vec<Row>>,
}

impl Driven {
    /// Adopts the charter, offers a first version of everything, and has it read and approved.
    pub fn start(judge: &dyn Judge, shape: Shape) -> Self {
        Self::start_keeping(judge, shape, None)
    }

    /// The same, and keeps the rows of its log.
    pub fn start_keeping(judge: &dyn Judge, shape: Shape, rows: Option<Vec<Row>>) -> Self {
        let now = "2026-01-01T09:00:00Z".parse().expect("it is a time");
        let mut driven = Self { team: Team::new(), now, shape, rows };
        driven.take(judge, &Actor::Operator, &adopt(&shape.charter("large")));
        driven.sweep(judge);
        for index in 0..shape.escalations {
            let subject = name(index).to_string();
            let escalate = Escalate { subject, text: format!("Which way should {index} go?") };
            driven.take(judge, &shape.producer(index), &Command::Escalate(escalate));
        }
        driven
    }

    /// Goes on until the log has that many events.
    pub fn until(mut self, judge: &dyn Judge, events: u64) -> Self {
        while self.team.seq().0 < events {
            self.sweep(judge);
        }
        self
    }

    /// One more version of every proposal, read and approved by both its reviewers.
    fn sweep(&mut self, judge: &dyn Judge) {
        for proposal in 0..self.shape.proposals {
            self.take(judge, &self.shape.producer(proposal), &self.propose(proposal));
            for reviewer in self.shape.reviewers(proposal) {
                self.take(judge, &reviewer, &read(proposal));
                self.take(judge, &reviewer, &self.approve(proposal));
            }
        }
    }

    /// Everybody confirms everything, and all of it is published; a person closes the phase.
    pub fn finish(&mut self, judge: &dyn Judge) {
        let circles: Vec<_> = self.team.review().circles().map(|circle| circle.name.clone()).collect();
        for circle in circles {
            let first = self.shape_of(&circle);
            let members = std::iter::once(self.shape.producer(first)).chain(self.shape.reviewers(first));
            for who in members {
                let revision = self.team.adopted().expect("it has a charter").revision;
                let review = self.team.review();
                let reference = review.circle_ref(revision, review.circle(&circle).expect("it is there"));
                self.take(judge, &who, &Command::Confirm(Confirm { reference }));
            }
            let found = self.team.review().circle(&circle).expect("it is there");
            let completed = found.completed.as_ref().expect("everybody confirmed");
            let report = ReportPublish {
                circle: circle.clone(),
                manifest: completed.manifest.clone(),
                failure: None,
                refs: Vec::new(),
                check: None,
            };
            self.take(judge, &Actor::Server, &Command::ReportPublish(report));
        }
    }

    fn shape_of(&self, circle: &CircleName) -> usize {
        let proposal = self.team.review().circle(circle).expect("it is there").proposals[0].clone();
        proposal.as_str().trim_start_matches("part").parse().expect("its number")
    }

    /// Decides a command and all that follows from it, as a team's task does.
    pub fn take(&mut self, judge: &dyn Judge, who: &Actor, command: &Command) -> Vec<Event> {
        self.now = self.now + Span(1_000);
        let decision = self.team.handle(judge, self.now, who, command);
        if let Err(rejection) = &decision.outcome {
            panic!("{who}: {rejection}");
        }
        let about = touched(command);
        let before = self.team.obligations_around(judge, self.now, about);
        self.fold(who, &decision.events);
        let aftermath = self.team.aftermath(judge, self.now, &decision.events, about);
        self.fold(&Actor::Server, &aftermath.events);
        let after = if aftermath.events.is_empty() {
            aftermath.owed
        } else {
            self.team.obligations_around(judge, self.now, about)
        };
        std::hint::black_box(woken(&before, &after));
        std::hint::black_box(self.team.effects());
        std::hint::black_box(self.team.least_deadline());
        decision.events
    }

    fn fold(&mut self, who: &Actor, events: &[Event]) {
        for event in events {
            let seq = Seq(self.team.seq().0 + 1);
            self.team.apply(seq, self.now, event);
            if let Some(rows) = &mut self.rows {
                let (at, actor, kind) = (self.now, who.clone(), event.kind().into());
                let (schema, body) = (event.schema(), event.encode());
                rows.push(Row { seq, at, actor, kind, schema, body, request: None });
            }
        }
    }

    pub fn propose(&self, proposal: usize) -> Command {
        propose(&self.team, proposal)
    }

    pub fn approve(&self, proposal: usize) -> Command {
        approve(&self.team, proposal)
    }

    pub fn object(&self, proposal: usize) -> Command {
        object(&self.team, proposal)
    }
}

/// The next version: three files, with what is known of them.
pub fn propose(team: &Team, proposal: usize) -> Command {
    let current = team
        .review()
        .proposal(&name(proposal))
        .map_or(0, countersign::protocol::review::Proposal::current_number);
    let content = digest(&format!("{proposal} {current}"));
    let paths = (0..3).map(|file| format!("src/part{proposal}/{file}.rs"));
    let facts = ArtifactFacts {
        paths: paths.map(|path| RepoPath::from_bytes(path.as_bytes())).collect(),
        files: (0..3).map(|file| digest(&format!("{proposal} {current} {file}"))).collect(),
        ..ArtifactFacts::default()
    };
    Command::Propose(Box::new(Propose {
        proposal: name(proposal),
        artifact: Artifact { kind: ArtifactKind::Bundle, digest: content.clone(), content, base: None },
        facts,
        summary: "A further step, with the reader kept as it was".to_owned(),
        answers: Default::default(),
        after: current,
    }))
}

/// An approval with a command that was run, and what it printed.
pub fn approve(team: &Team, proposal: usize) -> Command {
    Command::Approve(Approve {
        reference: reference(team, proposal),
        checked: Vec::new(),
        ran: vec![Run { command: "cargo test".to_owned(), exit: Some(0), output: Some("o".repeat(120)) }],
        resolve: Vec::new(),
    })
}

/// An objection to one line.
pub fn object(team: &Team, proposal: usize) -> Command {
    let place: Place = "src/lexer.rs:112".parse().expect("it is a place");
    Command::Object(Object {
        reference: reference(team, proposal),
        text: "It overflows on an input of two gibibytes".to_owned(),
        at: vec![NamedPlace { place, found: true }],
        failing_test: None,
    })
}

fn reference(team: &Team, proposal: usize) -> VersionRef {
    let found = team.review().proposal(&name(proposal)).expect("it was offered");
    found.current().expect("it was offered").reference(&found.name)
}

pub fn read(proposal: usize) -> Command {
    Command::Read(Read { subject: name(proposal).as_str().parse().expect("it is a subject") })
}

fn touched(command: &Command) -> Option<&ProposalName> {
    match command {
        Command::Propose(propose) => Some(&propose.proposal),
        Command::Read(read) => Some(&read.subject.proposal),
        Command::Approve(approve) => Some(&approve.reference.proposal),
        Command::Object(object) => Some(&object.reference.proposal),
        _ => None,
    }
}

fn woken(before: &[Obligation], after: &[Obligation]) -> Vec<MemberName> {
    let known =
        |owed: &&Obligation| !before.iter().any(|known| known.member == owed.member && known.id == owed.id);
    after.iter().filter(known).map(|owed| owed.member.clone()).collect()
}

pub fn shipped() -> CelJudge {
    CelJudge::shipped()
}
