//! A team: its charter, its review, its escalations, and the questions that can be put to them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::adoption::{self, Revise};
use super::answer::Answer;
use super::artifact::RepoPath;
use super::charter::Charter;
use super::deadline::{self, Deadlines, ServerResumed};
use super::delivery::{self, Deliveries};
use super::escalation::{self, Cause, Escalated, Escalations, MovedRef};
use super::event::{CharterAdopted, Event, PhaseOpened};
use super::name::{
    Actor, CircleName, Digest, EscalationId, MemberName, ProposalName, Seq, says_nothing, shown,
};
use super::obligation::{Obligation, ObligationKind, deadline};
use super::ownership::Ownership;
use super::recovery::Recoveries;
use super::rejection::{Rejection, Violation};
use super::review::{self, Circle, Review};
use super::room::{self, Room};
use super::rule::{Judge, OwnRule};
use super::time::Time;

/// The charter in force.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Adopted {
    /// 1, 2, 3…
    pub revision: u32,
    /// SHA-256 of the text.
    pub digest: Digest,
    /// The file, verbatim.
    pub text: Arc<str>,
    /// What it was read as.
    pub charter: Charter,
    /// The team's own rules, by id.
    pub rules: Arc<[OwnRule]>,
    /// When it was put in force.
    pub at: Time,
}

/// Put a first charter in force, as the operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Adopt {
    /// The file, verbatim.
    pub text: String,
    /// SHA-256 of the text.
    pub digest: Digest,
    /// What it was read as.
    pub charter: Charter,
    /// The team's own rules, by id: read and tried by whoever asks.
    pub rules: Vec<OwnRule>,
}

/// What may be asked of a team.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // Each variant's content says what it asks for.
pub enum Command {
    Adopt(Box<Adopt>),
    Revise(Box<Revise>),
    Propose(Box<review::Propose>),
    Read(review::Read),
    ReadObjections(review::ReadObjections),
    Approve(review::Approve),
    Object(review::Object),
    Note(review::Note),
    Resolve(review::Resolve),
    Overrule(review::Overrule),
    Withdraw(review::Withdraw),
    ReportCheck(review::ReportCheck),
    Confirm(review::Confirm),
    ReportPublish(review::ReportPublish),
    ReportTarget(Box<review::TargetMoved>),
    Escalate(escalation::Escalate),
    AnswerEscalation(escalation::Answer),
    BreakGlass(escalation::BreakGlass),
    Acknowledge(delivery::Acknowledge),
    Say(room::Say),
    JudgeClaim(room::JudgeClaim),
    ReportSent(escalation::ReportSent),
    ReportMoved(escalation::ReportMoved),
    ReportUnheard(escalation::ReportUnheard),
    ReportPutBack(escalation::ReportPutBack),
    TimePassed,
    ResumeServer(ServerResumed),
}

impl Command {
    /// What is asked, in one word.
    pub fn verb(&self) -> &'static str {
        match self {
            Self::Adopt(_) | Self::Revise(_) => "adopt",
            Self::Propose(_) => "propose",
            Self::Read(_) => "read",
            Self::ReadObjections(_) => "objections",
            Self::Approve(_) => "approve",
            Self::Object(_) => "object",
            Self::Note(_) => "note",
            Self::Resolve(_) => "resolve",
            Self::Overrule(_) => "overrule",
            Self::Withdraw(_) => "withdraw",
            Self::ReportCheck(_) => "check",
            Self::Confirm(_) => "confirm",
            Self::ReportPublish(_) => "report",
            Self::ReportTarget(_) => "compare",
            Self::Escalate(_) => "escalate",
            Self::AnswerEscalation(_) => "answer",
            Self::BreakGlass(_) => "break the glass",
            Self::Acknowledge(_) => "acknowledge",
            Self::Say(_) => "say",
            Self::JudgeClaim(_) => "verdict",
            Self::ReportSent(_) => "sent",
            Self::ReportMoved(_) => "moved",
            Self::ReportUnheard(_) => "unheard",
            Self::ReportPutBack(_) => "put back",
            Self::TimePassed => "time",
            Self::ResumeServer(_) => "resume",
        }
    }
}

/// What came of a command: events to store, and what to answer once they are stored. Only the first
/// refusal at a limit has events beside a rejection: its escalation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// What happened, in order.
    pub events: Vec<Event>,
    /// The answer, or the no.
    pub outcome: Result<Answer, Rejection>,
}

impl Decision {
    pub(super) fn accept(events: Vec<Event>, answer: Answer) -> Self {
        Self { events, outcome: Ok(answer) }
    }

    pub(super) fn refuse(rejection: impl Into<Rejection>) -> Self {
        Self { events: Vec::new(), outcome: Err(rejection.into()) }
    }
}

/// What the server owes the world, by the log. Done again until the log says that it is done.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Effect {
    /// A circle is complete: publish what it holds, then report.
    Publish {
        /// The circle.
        circle: CircleName,
        /// Exactly what it holds.
        manifest: Digest,
    },
    /// A person is to be told of an escalation: send it, then report.
    Notify {
        /// The escalation.
        escalation: EscalationId,
        /// Its opening, 0, or a reminder: 1, 2, 3…
        level: u32,
        /// The charter's channel.
        channel: String,
    },
    /// A person decided that a ref belongs where the server left it: put it back, then report.
    PutBack {
        /// The escalation that says which ref, from where, and where to.
        escalation: EscalationId,
    },
}

/// A command as it is judged: by whom, when, on what.
#[derive(Clone, Copy)]
pub(super) struct Ask<'a> {
    pub(super) team: &'a Team,
    pub(super) charter: &'a Charter,
    pub(super) judge: &'a dyn Judge,
    pub(super) now: Time,
    pub(super) by: &'a MemberName,
}

/// One team, as its log says.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Team {
    seq: Seq,
    at: Time,
    adopted: Option<Adopted>,
    /// Every charter that was ever in force, oldest first.
    revisions: Vec<Adopted>,
    /// Compiled from the charter in force.
    #[serde(skip)]
    ownership: Ownership,
    review: Review,
    room: Room,
    escalations: Escalations,
    deadlines: Deadlines,
    recoveries: Recoveries,
    deliveries: Deliveries,
    /// How often each rule called out.
    called_out: BTreeMap<String, u64>,
    /// Where guarded refs came to stand, oldest first.
    moves: Vec<RefMove>,
}

/// Where a guarded ref came to stand by the log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefMove {
    /// The place in the log.
    pub seq: Seq,
    /// The ref's full name.
    pub name: String,
    /// Where it was; nowhere where publishing made it.
    pub from: Option<Digest>,
    /// Where it belongs from here on; nowhere where a person left it away.
    pub to: Option<Digest>,
    /// Whether a person decided it, wherever it was; else it was published.
    pub decided: bool,
}

impl Team {
    /// A team without a charter: only [`Command::Adopt`] is accepted.
    pub fn new() -> Self {
        Self::default()
    }

    /// The last event's place in the log.
    pub fn seq(&self) -> Seq {
        self.seq
    }

    /// The last event's time.
    pub fn at(&self) -> Time {
        self.at
    }

    /// The charter in force.
    pub fn adopted(&self) -> Option<&Adopted> {
        self.adopted.as_ref()
    }

    /// The charter that was in force as that revision.
    pub fn revision(&self, revision: u32) -> Option<&Adopted> {
        self.revisions.iter().find(|adopted| adopted.revision == revision)
    }

    /// The review domain's state.
    pub fn review(&self) -> &Review {
        &self.review
    }

    /// The room's state.
    pub fn room(&self) -> &Room {
        &self.room
    }

    /// Every escalation.
    pub fn escalations(&self) -> &Escalations {
        &self.escalations
    }

    /// How often each recovery patch fired.
    pub fn recoveries(&self) -> &Recoveries {
        &self.recoveries
    }

    /// What each member was shown.
    pub fn deliveries(&self) -> &Deliveries {
        &self.deliveries
    }

    /// Where guarded refs came to stand, oldest first.
    pub fn ref_moves(&self) -> &[RefMove] {
        &self.moves
    }

    /// How often a rule called out.
    pub fn called_out(&self, rule: &str) -> u64 {
        self.called_out.get(rule).copied().unwrap_or(0)
    }

    pub(super) fn deadlines(&self) -> &Deadlines {
        &self.deadlines
    }

    /// The circle that an escalation is about, where it is about one.
    pub fn circle_of(&self, opened: &Escalated) -> Option<&Circle> {
        let proposal = opened.proposal.as_ref().and_then(|name| self.review.proposal(name));
        let circle = proposal.map(|proposal| &proposal.circle).or(opened.circle.as_ref());
        circle.and_then(|name| self.review.circle(name))
    }

    /// Compiles what isn't kept in a snapshot.
    pub(super) fn compile(&mut self) {
        self.ownership =
            self.adopted.as_ref().map(|adopted| Ownership::of(&adopted.charter)).unwrap_or_default();
    }

    /// Who owns a path, by the charter in force.
    pub fn owners_of(&self, path: &RepoPath) -> Vec<&MemberName> {
        self.ownership.owners(path)
    }

    pub(super) fn ownership(&self) -> &Ownership {
        &self.ownership
    }

    /// Decides a command; changes nothing. The same team, command, time and judge give the same
    /// decision.
    ///
    /// `now` is never before the last event's time: where it is, that time is taken.
    pub fn handle(&self, judge: &dyn Judge, now: Time, who: &Actor, command: &Command) -> Decision {
        let now = now.max(self.at);
        #[cfg(feature = "planted")]
        super::planted::asked(command);
        let Some(adopted) = &self.adopted else {
            return match (who, command) {
                (Actor::Operator, Command::Adopt(adopt)) => first_charter(adopt),
                _ => Decision::refuse(Violation::NotAdopted { member: who.to_string() }),
            };
        };
        let charter = &adopted.charter;
        let by = match (who, command) {
            (Actor::Server, Command::ReportPublish(report)) => {
                return review::report_publish(self, charter, report);
            }
            (Actor::Server, Command::ReportTarget(report)) => return review::report_target(self, report),
            (Actor::Server, Command::ReportSent(report)) => return escalation::report_sent(self, report),
            (Actor::Server, Command::ReportMoved(report)) => return escalation::report_moved(self, report),
            (Actor::Server, Command::ReportUnheard(report)) => {
                return escalation::report_unheard(self, judge, now, report);
            }
            (Actor::Server, Command::ReportPutBack(report)) => {
                return escalation::report_put_back(self, report);
            }
            (Actor::Server, Command::TimePassed) => return deadline::time_passed(self, charter, judge, now),
            (Actor::Server, Command::ResumeServer(resumed)) => return deadline::resumed(self, resumed),
            (Actor::Member(by), _) if charter.members.contains_key(by) => by,
            _ => {
                return Decision::refuse(Violation::NotParticipant {
                    circle: charter.team.to_string(),
                    member: who.to_string(),
                    participants: charter.members.keys().cloned().collect(),
                });
            }
        };
        let ask = Ask { team: self, charter, judge, now, by };
        match command {
            Command::Revise(command) => adoption::adopt(ask, command),
            Command::Propose(command) => review::propose(ask, command),
            Command::Read(command) => review::read(ask, command),
            Command::ReadObjections(command) => review::read_objections(ask, command),
            Command::Approve(command) => review::approve(ask, command),
            Command::Object(command) => review::object(ask, command),
            Command::Note(command) => review::note(ask, command),
            Command::Resolve(command) => review::resolve(ask, command),
            Command::Overrule(command) => review::overrule(ask, command),
            Command::Withdraw(command) => review::withdraw(ask, command),
            Command::ReportCheck(command) => review::report_check(ask, command),
            Command::Confirm(command) => review::confirm(ask, command),
            Command::Escalate(command) => escalation::escalate(ask, command),
            Command::AnswerEscalation(command) => escalation::answer(ask, command),
            Command::BreakGlass(command) => escalation::break_glass(ask, command),
            Command::Acknowledge(command) => delivery::acknowledge(ask, command),
            Command::Say(command) => room::say(ask, command),
            Command::JudgeClaim(command) => room::judge_claim(ask, command),
            Command::Adopt(_)
            | Command::ReportPublish(_)
            | Command::ReportTarget(_)
            | Command::ReportSent(_)
            | Command::ReportMoved(_)
            | Command::ReportUnheard(_)
            | Command::ReportPutBack(_)
            | Command::TimePassed
            | Command::ResumeServer(_) => Decision::refuse(Violation::NotAPerson {
                verb: "do what is the server's own".to_owned(),
                member: by.to_string(),
                persons: Vec::new(),
            }),
        }
    }

    /// Folds one event in: `seq` is its place in the log, one after the last.
    pub fn apply(&mut self, seq: Seq, at: Time, event: &Event) {
        self.seq = seq;
        self.at = self.at.max(at);
        match event {
            Event::CharterAdopted(adopted) => {
                self.ownership = Ownership::of(&adopted.charter);
                if let Some(before) = &self.adopted {
                    self.review.lapse_decisions(&before.charter, &adopted.charter);
                    self.review.lapse_retargeted(&before.charter, &adopted.charter);
                }
                self.adopted = Some(Adopted { at, ..adopted.into() });
                self.revisions.extend(self.adopted.clone());
            }
            Event::Escalated(escalated) => self.escalations.opened(at, escalated),
            Event::EscalationClosed(closed) => {
                if let Some(escalation) = self.escalations.get(closed.id) {
                    self.deadlines.closed(at, escalation, closed);
                    if closed.decision == Some(escalation::Decision::AcceptMove)
                        && let Some(MovedRef { name, to, .. }) = escalation.opened.moved.clone()
                    {
                        self.moves.push(RefMove { seq, name, from: None, to, decided: true });
                    }
                    if let Some(decision) = closed.decision {
                        let circle = self.circle_of(&escalation.opened).map(|circle| circle.name.clone());
                        self.review.decided(at, circle.as_ref(), decision.changes_the_circle());
                        self.review.raise_limit(&escalation.opened, decision);
                    }
                }
                self.escalations.closed(closed);
            }
            Event::EscalationSent(sent) => self.escalations.sent(at, sent),
            Event::RefPutBack(done) => self.escalations.put_back(seq, done),
            Event::CirclePublished(published) => {
                self.moves.extend(published.refs.iter().map(|one| RefMove {
                    seq,
                    name: one.name.clone(),
                    from: one.from.clone(),
                    to: Some(one.to.clone()),
                    decided: false,
                }));
            }
            Event::EscalationReminded(reminded) => self.escalations.reminded(at, reminded),
            Event::RecoveryFired(fired) => {
                self.recoveries.fired(fired);
                self.deliveries.resend(fired);
            }
            Event::Delivered(delivered) => self.deliveries.delivered(at, delivered),
            Event::OwedAgain(again) => self.deliveries.owed_again(again),
            Event::Woken(woken) => self.deliveries.woken(at, woken),
            Event::ServerResumed(resumed) => self.deadlines.resumed(resumed),
            Event::CalledOut(called) => *self.called_out.entry(called.rule.clone()).or_default() += 1,
            _ => {}
        }
        if let Some(adopted) = &self.adopted {
            self.review.apply(&adopted.charter, at, event);
            self.room.apply(&adopted.charter, seq, at, event);
        }
    }

    /// What that member owes at that time, oldest first.
    pub fn obligations(&self, judge: &dyn Judge, now: Time, member: &MemberName) -> Vec<Obligation> {
        let mut owed = self.all_obligations(judge, now);
        owed.retain(|obligation| obligation.member == *member);
        owed
    }

    /// What everybody owes at that time, oldest first.
    pub fn all_obligations(&self, judge: &dyn Judge, now: Time) -> Vec<Obligation> {
        let now = now.max(self.at);
        let mut owed = Vec::new();
        if let Some(adopted) = &self.adopted {
            review::obligations(self, &adopted.charter, judge, now, None, &mut owed);
            room::obligations(&self.room, &adopted.charter, &mut owed);
            self.decisions_owed(&adopted.charter, &mut owed);
        }
        self.set_due(&mut owed);
        owed.sort_by(|one, other| {
            (one.since, &one.id, &one.member).cmp(&(other.since, &other.id, &other.member))
        });
        owed
    }

    /// What everybody owes at that time around one proposal and its circle, and in escalations: all
    /// that a command on that proposal can have changed. [`answers_owed`](Self::answers_owed) in the room stands beside it.
    pub fn obligations_around(
        &self,
        judge: &dyn Judge,
        now: Time,
        proposal: Option<&ProposalName>,
    ) -> Vec<Obligation> {
        let mut owed = Vec::new();
        if let Some(adopted) = &self.adopted {
            if let Some(proposal) = proposal {
                review::obligations(
                    self,
                    &adopted.charter,
                    judge,
                    now.max(self.at),
                    Some(proposal),
                    &mut owed,
                );
            }
            self.decisions_owed(&adopted.charter, &mut owed);
        }
        self.set_due(&mut owed);
        owed
    }

    /// What is owed in the room: answers to mentions and to claims. It belongs to no circle, and blocks none.
    pub fn answers_owed(&self) -> Vec<Obligation> {
        let mut owed = Vec::new();
        if let Some(adopted) = &self.adopted {
            room::obligations(&self.room, &adopted.charter, &mut owed);
        }
        self.set_due(&mut owed);
        owed
    }

    /// Whether nothing is open that time or the world could move: all circles are final, no member or person is
    /// asked anything, and the server owes nothing.
    pub fn is_quiet(&self) -> bool {
        !self.review.circles().any(Circle::is_open)
            && !self.room.is_waiting()
            && self.escalations.open().next().is_none()
            && self.effects().is_empty()
    }

    /// What the server owes the world.
    pub fn effects(&self) -> Vec<Effect> {
        let mut effects = self.review.effects();
        effects.retain(|effect| !self.is_held(effect));
        effects.extend(escalation::refs_owed(&self.escalations));
        effects.extend(self.adopted.iter().flat_map(|adopted| escalation::owed(self, &adopted.charter)));
        effects
    }

    /// Whether publishing waits for a ref to be where it belongs.
    fn is_held(&self, effect: &Effect) -> bool {
        let awaited = self.refs_of(effect);
        awaited.iter().any(|name| escalation::holds(&self.escalations, name))
    }

    /// The refs that publishing a circle moves, and the one that keeps its record.
    fn refs_of(&self, effect: &Effect) -> Vec<String> {
        let (Effect::Publish { circle, manifest }, Some(adopted)) = (effect, &self.adopted) else {
            return Vec::new();
        };
        let completed = self.review.circle(circle).and_then(|circle| circle.completed.as_ref());
        let entries = completed.iter().flat_map(|completed| &completed.entries);
        let targets = entries.map(|entry| entry.target(&adopted.charter).to_owned());
        targets.chain([escalation::record_ref(manifest)]).collect()
    }

    /// The refs that publishing what is complete moves, and those that keep the records.
    pub(in crate::protocol) fn awaited_refs(&self) -> BTreeSet<String> {
        self.review.effects().iter().flat_map(|effect| self.refs_of(effect)).collect()
    }

    fn decisions_owed(&self, charter: &Charter, owed: &mut Vec<Obligation>) {
        for escalation in self.escalations.open() {
            let id = escalation.opened.id;
            let proposal = escalation.opened.proposal.as_ref().and_then(|name| self.review.proposal(name));
            for human in charter.humans() {
                // Nobody is told to overrule an objection to own work, which would be refused.
                let own = proposal.is_some_and(|proposal| {
                    let current = proposal.current();
                    current.is_some_and(|current| proposal.own_work(charter, current, human).is_some())
                });
                let mut decisions = escalation.opened.decisions().iter();
                let decision =
                    decisions.find(|decision| !own || **decision != escalation::Decision::Overrule);
                owed.push(Obligation {
                    id: format!("decide:{id}"),
                    member: human.clone(),
                    kind: ObligationKind::Decide,
                    subject: escalation.opened.subject.clone(),
                    since: escalation.opened_at,
                    due: deadline(escalation.opened_at, charter.limits.answer_within),
                    command: format!(
                        "countersign escalations answer {id} --decide {} --reason TEXT",
                        decision.unwrap_or(&escalation.opened.decisions()[0])
                    ),
                });
            }
        }
    }
}

impl<'a> Ask<'a> {
    /// Refuses a text that is longer than the charter allows, that holds a NUL (half the tools that read a
    /// log would show it cut there), or a secret.
    pub(super) fn check_text(&self, what: &str, text: &str, unmet: &mut Vec<Violation>) {
        let limit = u64::from(self.charter.limits.text_bytes);
        if text.len() as u64 > limit {
            unmet.push(Violation::TextTooLarge { what: what.to_owned(), bytes: text.len() as u64, limit });
        }
        if let Some(at) = text.find('\0') {
            unmet.push(Violation::Malformed {
                argument: what.to_owned(),
                expected: "plain text".to_owned(),
                given: format!("a NUL at byte {at}"),
                form: "a text without NUL".to_owned(),
            });
        }
        if let Some(secret) = super::secret::find(text) {
            let (what, kind, line) = (what.to_owned(), secret.kind.to_owned(), secret.line);
            unmet.push(Violation::SecretFound { what, kind, line });
        }
    }

    /// The escalation of a rule that no member can satisfy, once under each charter: a person who dismissed it
    /// isn't asked the same again.
    pub(super) fn rule_escalation(&self, circle: &CircleName, known: bool, text: String) -> Option<Event> {
        let since = self.team.adopted().map_or(Time::default(), |adopted| adopted.at);
        let same = |one: &&escalation::Escalation| {
            let opened = &one.opened;
            let again = one.closed.is_none() || (opened.text == text && one.opened_at >= since);
            opened.cause == Cause::RuleError && opened.subject == circle.as_str() && again
        };
        if self.team.escalations().all().any(|one| same(&one)) {
            return None;
        }
        let id = self.team.escalations().next_id();
        let about = known.then(|| circle.clone());
        let opened = Escalated::new(Cause::RuleError, circle.as_str(), text);
        Some(Escalated { id, circle: about, ..opened }.into())
    }

    /// Refuses a member who is no person.
    pub(super) fn check_person(&self, verb: &str, unmet: &mut Vec<Violation>) {
        if !self.charter.is_human(self.by) {
            unmet.push(Violation::NotAPerson {
                verb: verb.to_owned(),
                member: self.by.to_string(),
                persons: self.charter.humans().cloned().collect(),
            });
        }
    }

    /// Refuses a text that says nothing.
    pub(super) fn check_given(&self, what: &str, text: &str, unmet: &mut Vec<Violation>) {
        if says_nothing(text) {
            unmet.push(Violation::EmptyText { what: what.to_owned() });
        }
    }

    /// Refuses a missing reason.
    pub(super) fn check_reason(&self, verb: &str, reason: &str, unmet: &mut Vec<Violation>) {
        if says_nothing(reason) {
            unmet.push(Violation::ReasonRequired { verb: verb.to_owned() });
        }
        self.check_text("reason", reason, unmet);
    }

    pub(super) fn review(&self) -> &'a Review {
        &self.team.review
    }

    /// The refusal for a subject that isn't known, with the nearest that is.
    pub(super) fn unknown<'b>(&self, subject: &str, known: impl IntoIterator<Item = &'b str>) -> Violation {
        let nearest = super::name::nearest(subject, known).unwrap_or_default().to_owned();
        Violation::UnknownSubject { subject: shown(subject, 200), nearest }
    }
}

fn first_charter(adopt: &Adopt) -> Decision {
    let adopted = CharterAdopted {
        revision: 1,
        digest: adopt.digest.clone(),
        reason: None,
        text: adopt.text.clone(),
        charter: adopt.charter.clone(),
        rules: adopt.rules.clone(),
    };
    // A checked charter has a first phase.
    let opened = adopt.charter.phases.first().map(|phase| PhaseOpened { phase: phase.name.clone() });
    let events = std::iter::once(adopted.into()).chain(opened.map(Event::from)).collect();
    Decision::accept(events, Answer::Adopted { revision: 1 })
}
