//! A run with a real server in it: what happens reaches it as requests, what came of them is read from
//! its log, and stores, processes, clocks and notifiers fail on the way.

use std::collections::BTreeMap;

use countersign::coordinator::{Done, Refusal, RequestKey};
use countersign::protocol::name::{Actor, Seq};
use countersign::protocol::review::{self, PublishFailure};
use countersign::protocol::time::{Span, Time};
use countersign::protocol::{Adopt, Answer, Command, Decision, Effect, Event, ObligationKind, Rejection};
use countersign::store;

use super::asked::{Asked, asked, told as line};
use super::faults::{Mishap, News};
use super::oracle::{Broken, Verdict, demand};
use super::server::{Asking, Kept, Reply, Server};
use super::step::{Comeback, Step};
use super::stored::Fact;
use super::told;
use super::world::{Row, World};

/// How often one request is made before it counts as never settled.
const ROUNDS_MAX: usize = 8;

/// After how many requests the notifier refuses what it is told next.
const NEWS_REFUSED_EACH: usize = 7;

/// The longest wait between two attempts to tell a person, and a little more.
const RETRY_MAX: Span = Span::seconds(11 * 60);

/// How long a team waits before it asks a store again that took nothing, and a little more.
const NOT_STORED_PAUSE: Span = Span::seconds(2);

/// A server that stands still for less is no absence.
const STOOD_STILL_MIN: Span = Span::seconds(2);

/// The server of a run, with what was asked of it.
pub struct Served {
    pub server: Server,
    /// Requests that were accepted, with what they got.
    answered: Vec<(Asking, Done)>,
    requests: usize,
    /// Until when the server stood still last, in the team's time, where the log has to say so next.
    stood_still: Option<Time>,
}

/// How a command came out in the end.
#[derive(Clone)]
enum Outcome {
    Done(Done),
    Rejected(Rejection, Seq),
}

impl Outcome {
    fn seq(&self) -> Seq {
        match self {
            Self::Done(done) => done.seq,
            Self::Rejected(_, seq) => *seq,
        }
    }

    fn decided(self, events: Vec<Event>) -> Decision {
        match self {
            Self::Done(done) => Decision { events, outcome: Ok(done.answer) },
            Self::Rejected(rejection, _) => Decision { events, outcome: Err(rejection) },
        }
    }
}

impl World<'_> {
    pub fn begin_served(&mut self, kept: Kept, adopt: Adopt) -> Verdict {
        let command = Command::Adopt(Box::new(adopt.clone()));
        let server = Server::begin(kept, self.now, adopt)?;
        self.served = Some(Served { server, answered: Vec::new(), requests: 0, stood_still: None });
        self.settle()?;
        let outcome = Outcome::Done(Done {
            answer: Answer::Adopted { revision: 1 },
            woke: vec![],
            called_out: vec![],
            seq: Seq(0),
        });
        let asking = Asking::new(Actor::Operator, command, "r0".to_owned());
        self.take_in(&[asking], &[outcome]).map(drop)
    }

    fn served(&mut self) -> &mut Served {
        self.served.as_mut().expect("it is asked for where there is a server")
    }

    /// What goes wrong next, if anything.
    pub fn mishap(&mut self) -> Mishap {
        if self.served.is_none() || !self.dice.percent(12) {
            return Mishap::None;
        }
        self.some_mishap()
    }

    fn some_mishap(&mut self) -> Mishap {
        let (stored, jump) = (self.dice.percent(50), self.jump());
        match self.dice.below(5) {
            0 => Mishap::LostReply,
            1 => Mishap::NotStored,
            2 | 3 => Mishap::Unknown { stored, jump },
            _ => Mishap::Died { stored, jump },
        }
    }

    /// By how much the machine's clock stands elsewhere once a server is back: time went by, or somebody set it.
    fn jump(&mut self) -> i64 {
        match self.dice.below(8) {
            0 => self.dice.between(0, 7200) as i64,
            1 => -(self.dice.between(0, 7200) as i64),
            2 => 20 * 365 * 24 * 3600,
            3 => -(20 * 365 * 24 * 3600),
            _ => self.dice.below(20) as i64,
        }
    }

    pub fn comeback(&mut self) -> Comeback {
        Comeback { in_order: self.dice.percent(50), jump: self.jump() }
    }

    fn saw(&mut self, what: &'static str) {
        *self.seen.mishaps.entry(what).or_default() += 1;
    }

    /// Has the server decide, whatever goes wrong on the way: each request is made with the same id until
    /// it is settled.
    pub fn ask_server(
        &mut self,
        said: Vec<(Actor, Command)>,
        mishap: Mishap,
    ) -> Result<Vec<Decision>, Broken> {
        self.seen.steps += said.len();
        self.saw(mishap.name());
        let served = self.served();
        if served.requests.is_multiple_of(NEWS_REFUSED_EACH) {
            served.server.notifier.refuse(2);
        }
        let mut asking = Vec::new();
        for (who, command) in said {
            served.requests += 1;
            asking.push(Asking::new(who, command, format!("r{}", served.requests)));
        }
        let mut outcomes: Vec<Option<Outcome>> = vec![None; asking.len()];
        let mut next = mishap;
        for _ in 0..ROUNDS_MAX {
            let open: Vec<usize> = (0..asking.len()).filter(|index| outcomes[*index].is_none()).collect();
            if open.is_empty() {
                break;
            }
            let mishap = std::mem::take(&mut next);
            let asked = open.iter().map(|index| asking[*index].clone()).collect();
            let replies = self.served().server.ask(asked, mishap);
            for (index, reply) in open.into_iter().zip(replies) {
                outcomes[index] = self.replied(mishap, reply)?;
            }
            let ended = matches!(mishap, Mishap::Died { .. });
            if ended || self.served().server.plan.take_broke() {
                self.served().stood_still = None;
                self.served().server.restart(Comeback { in_order: false, jump: mishap.jump() })?;
            }
            self.settle()?;
        }
        let Some(outcomes) = outcomes.into_iter().collect::<Option<Vec<Outcome>>>() else {
            return Err(Broken { guarantee: "G10", what: format!("after {mishap:?} it is never settled") });
        };
        let decided = self.take_in(&asking, &outcomes)?;
        if mishap == Mishap::NotStored {
            // A store that takes nothing is not asked again at once.
            self.served().server.pass(NOT_STORED_PAUSE, false);
            self.settle()?;
            self.take_in(&[], &[])?;
        }
        let done = asking.into_iter().zip(outcomes).zip(&decided);
        let done = done.filter_map(|((asking, outcome), decision)| match outcome {
            Outcome::Done(done) if !decision.events.is_empty() => Some((asking, done)),
            _ => None,
        });
        let done: Vec<(Asking, Done)> = done.collect();
        self.served().answered.extend(done);
        Ok(decided)
    }

    /// An answer is one, unless something went wrong that makes it none.
    fn replied(&mut self, mishap: Mishap, reply: Reply) -> Result<Option<Outcome>, Broken> {
        let uncertain = matches!(mishap, Mishap::Unknown { .. } | Mishap::Died { .. });
        Ok(match reply {
            Reply::Lost => None,
            Reply::Answered(Ok(done)) => {
                let stored = self.served().server.head()?;
                demand!("G10", done.seq <= stored, "{} was told and {stored} is stored", done.seq);
                Some(Outcome::Done(done))
            }
            Reply::Answered(Err(Refusal::Rejected { rejection, seq })) => {
                Some(Outcome::Rejected(rejection, seq))
            }
            Reply::Answered(Err(Refusal::NotStored { .. })) if mishap == Mishap::NotStored => None,
            Reply::Answered(Err(Refusal::Unknown { .. } | Refusal::Ended)) if uncertain => None,
            Reply::Answered(Err(other)) => {
                return Err(Broken { guarantee: "G10", what: format!("after {mishap:?}: {other}") });
            }
        })
    }

    /// Reads what was stored since, has the oracle judge each batch as what it was asked as, and what
    /// stored nothing at the place in the log that its answer reflects.
    fn take_in(&mut self, asking: &[Asking], outcomes: &[Outcome]) -> Result<Vec<Decision>, Broken> {
        let from = Seq(self.team.seq().0 + 1);
        let rows = self.served().server.rows(from)?;
        let batches = self.served().server.plan.take_batches();
        for (index, row) in rows.iter().enumerate() {
            demand!("G11", row.seq.0 == from.0 + index as u64, "{} stands in place {index}", row.seq);
        }
        let mut owners: Vec<Option<usize>> = Vec::new();
        for (first, last) in &batches {
            let row = first.0.checked_sub(from.0).and_then(|index| rows.get(index as usize));
            let Some(row) = row else {
                return Err(Broken { guarantee: "G10", what: format!("{first} was stored and isn't there") });
            };
            owners.push(asking.iter().zip(outcomes).position(|(asking, outcome)| {
                match (&row.request, outcome) {
                    (Some(request), _) => asking.key.id == request.id && asking.who == row.actor,
                    // The first refusal at a limit has no request: asked again, it is decided again.
                    (None, Outcome::Rejected(_, seq)) => {
                        asking.who.member().is_some() && asking.who == row.actor && seq == last
                    }
                    (None, Outcome::Done(_)) => asking.who == row.actor && asking.who == Actor::Operator,
                }
            }));
        }
        let told: u64 = batches.iter().map(|(first, last)| last.0 + 1 - first.0).sum();
        demand!("G10", told == rows.len() as u64, "{} rows are there, and {told} were stored", rows.len());
        for (index, asking) in asking.iter().enumerate() {
            let own = owners.iter().filter(|owner| **owner == Some(index)).count();
            demand!("G12", own <= 1, "{} had {own} effects", asking.key.id);
        }
        let mut quiet: Vec<(Seq, usize)> = Vec::new();
        for (index, outcome) in outcomes.iter().enumerate() {
            if !owners.contains(&Some(index)) {
                quiet.push((outcome.seq(), index));
            }
        }
        quiet.sort();
        let mut decided: BTreeMap<usize, Decision> = BTreeMap::new();
        let mut quiet = quiet.into_iter().peekable();
        let mut rows = rows.into_iter();
        for ((first, last), owner) in batches.into_iter().zip(owners) {
            while let Some((_, index)) = quiet.next_if(|(seq, _)| *seq < first) {
                decided.insert(index, self.one(&asking[index], &outcomes[index], Vec::new())?);
            }
            let batch: Vec<store::Row> = rows.by_ref().take((last.0 + 1 - first.0) as usize).collect();
            match owner {
                Some(index) => {
                    decided.insert(index, self.one(&asking[index], &outcomes[index], batch)?);
                }
                None => self.by_itself(batch)?,
            }
        }
        for (_, index) in quiet {
            decided.insert(index, self.one(&asking[index], &outcomes[index], Vec::new())?);
        }
        self.as_the_server_says()?;
        self.knows_of_standstills()?;
        Ok(decided.into_values().collect())
    }

    /// One command, as it came out, with what was stored of it.
    fn one(
        &mut self,
        asking: &Asking,
        outcome: &Outcome,
        batch: Vec<store::Row>,
    ) -> Result<Decision, Broken> {
        let Asking { who, command, .. } = asking;
        let (events, facts) = self.fold(batch)?;
        let decision = outcome.clone().decided(events);
        let now = self.now;
        if let Some(record) = &mut self.record {
            record.story.push(line(now, who, command, &decision));
        }
        self.judged(&asked(who, command), &decision, facts)?;
        Ok(decision)
    }

    /// What the server stored without having been asked by anybody here: what it asks itself, and a first
    /// refusal at a limit of which nobody was told.
    fn by_itself(&mut self, batch: Vec<store::Row>) -> Verdict {
        let Some(first) = batch.first() else { return Ok(()) };
        let who = first.actor.clone();
        let (events, facts) = self.fold(batch)?;
        let (verb, subject, digits, failure) = match &events[0] {
            Event::CirclePublished(event) => {
                ("report", event.circle.to_string(), Some(event.manifest.to_string()), false)
            }
            Event::EscalationSent(event) => {
                let news: News = (event.id, event.level, event.channel.clone());
                let took = self.served().server.notifier.took(&news);
                demand!("G13", took, "{news:?} counts as sent, and nobody took it");
                ("sent", event.id.to_string(), None, false)
            }
            Event::ServerResumed(_) => ("resume", String::new(), None, false),
            _ => ("time", String::new(), None, false),
        };
        let by = who.to_string();
        let now = self.now;
        if let Some(record) = &mut self.record {
            let kinds: Vec<&str> = events.iter().map(Event::kind).collect();
            record.story.push(format!("{now} {by}: {verb} {subject} by itself → [{}]", kinds.join(" ")));
        }
        if who == Actor::Server {
            let asked = Asked { by, verb, subject, digits, failure, ..Asked::default() };
            return self.judged(&asked, &Decision { events, outcome: Ok(Answer::Recorded) }, facts);
        }
        let Event::Escalated(event) = &events[0] else {
            return Err(Broken { guarantee: "G14", what: format!("{by} stored {events:?} unasked") });
        };
        let asked = Asked { by, verb: "unheard", subject: event.subject.clone(), ..Asked::default() };
        self.judged_unheard(&asked, event.cause.as_str(), facts)
    }

    /// Folds stored rows into the state that the log gives.
    fn fold(&mut self, batch: Vec<store::Row>) -> Result<(Vec<Event>, Vec<super::history::Entry>), Broken> {
        let (mut events, mut facts) = (Vec::new(), Vec::new());
        for row in batch {
            let event = Event::decode(&row.kind, row.schema, &row.body)
                .map_err(|fault| Broken { guarantee: "G10", what: format!("{fault}: {}", row.body) })?;
            self.team.apply(row.seq, row.at, &event);
            let store::Row { at, kind, schema, body, .. } = row;
            facts.push(self.fact(Row { at, kind: kind.into_owned(), schema, body })?);
            events.push(event);
        }
        Ok((events, facts))
    }

    /// Time in which a server stood still counts for nobody: what is decided after it comes after the log's
    /// word on it, whatever became of the first one.
    fn knows_of_standstills(&mut self) -> Verdict {
        let Some(until) = self.served().stood_still else { return Ok(()) };
        let known = self.oracle.history().entries.iter().rev();
        let after = known.take_while(|entry| entry.at >= until.0);
        let told = after.filter(|entry| matches!(&entry.fact, Fact::Resumed(event) if event.to == until.0));
        let (told, later) = (told.count(), self.team.at() >= until);
        demand!("G13", told > 0 || !later, "the server stood still until {until}, and the log knows nothing");
        if told > 0 {
            self.served().stood_still = None;
        }
        Ok(())
    }

    /// What the server takes the state for is what its log gives, once it rests.
    fn as_the_server_says(&mut self) -> Verdict {
        let now = self.served().server.now()?;
        self.now = now;
        let (seq, team) = (self.team.seq(), &self.team);
        let server = &self.served.as_ref().expect("there is one").server;
        let same = server.peek(|known| {
            (known.seq() == seq && known.at() == team.at()).then(|| {
                known.adopted() == team.adopted()
                    && known.review() == team.review()
                    && known.escalations() == team.escalations()
            })
        });
        demand!("G10", same == Some(true), "the server's state isn't its log's at {seq}: {same:?}");
        let twice = server.notifier.twice();
        demand!("G13", twice.is_none(), "one server sent {twice:?} twice");
        Ok(())
    }

    /// Waits until the server rests. What ends it meanwhile is ended, and another begins.
    fn settle(&mut self) -> Verdict {
        for _ in 0..ROUNDS_MAX {
            if self.served().server.settle()? {
                return Ok(());
            }
            self.served().stood_still = None;
            self.served().server.restart(Comeback { in_order: false, jump: 0 })?;
        }
        Err(Broken { guarantee: "G8", what: "the server ends whenever it begins".to_owned() })
    }

    pub fn pass_served(&mut self, span: Span, away: bool, mishap: Mishap) -> Verdict {
        let mishap = if mishap == Mishap::LostReply { Mishap::None } else { mishap };
        let server = &self.served().server;
        server.plan.next(mishap);
        server.pass(span, away);
        self.settle()?;
        let open = self.team.review().circles().any(review::Circle::is_open);
        if away && open && span >= STOOD_STILL_MIN && matches!(mishap, Mishap::None | Mishap::NotStored) {
            self.served().stood_still = Some(self.served().server.now()?);
        }
        let happened = self.served().server.plan.clear();
        if happened && mishap != Mishap::None {
            self.saw("by itself");
            self.served().server.pass(NOT_STORED_PAUSE, false);
            self.settle()?;
        }
        self.take_in(&[], &[])?;
        self.oracle.nothing_stalls_unseen(self.now.0)
    }

    pub fn restart_served(&mut self, comeback: Comeback) -> Verdict {
        self.saw(if comeback.in_order { "ended in order" } else { "killed" });
        if comeback.jump < 0 {
            self.saw("clock set back");
        }
        self.served().stood_still = None;
        self.served().server.restart(comeback)?;
        self.settle()?;
        self.take_in(&[], &[])?;
        // All of it, as it was.
        let seq = self.served().server.verified()?;
        demand!("G10", seq == self.team.seq(), "{seq} is stored, and {} was", self.team.seq());
        let rows = self.served().server.rows(Seq(1))?;
        let known = rows.iter().zip(&self.log);
        let same = known.filter(|(row, known)| {
            (row.at, &*row.kind, row.schema, &row.body) == (known.at, &known.kind, known.schema, &known.body)
        });
        demand!("G10", same.count() == self.log.len(), "the log isn't what it was");
        self.oracle.nothing_stalls_unseen(self.now.0)?;
        self.replay()
    }

    /// An accepted request once more, perhaps with another content.
    pub fn repeat(&mut self, which: usize, otherwise: bool) -> Verdict {
        self.happens(|| Step::Repeated { which, otherwise });
        let served = self.served();
        if served.answered.is_empty() {
            return Ok(());
        }
        let (mut asking, done) = served.answered[which % served.answered.len()].clone();
        if otherwise {
            let RequestKey { id, .. } = asking.key;
            asking = Asking::new(asking.who, Command::TimePassed, id);
        }
        let id = asking.key.id.clone();
        let reply = served.server.ask(vec![asking], Mishap::None).pop();
        self.seen.steps += 1;
        match reply {
            Some(Reply::Answered(Ok(again))) => {
                self.saw("asked twice");
                let same = (&again.answer, &again.woke) == (&done.answer, &done.woke);
                demand!("G12", same && !otherwise, "{id}: {done:?}, and asked again {again:?}");
            }
            Some(Reply::Answered(Err(Refusal::Rejected { rejection, .. }))) => {
                self.saw("request id reused");
                let reused = rejection.code() == "REQUEST_ID_REUSED";
                demand!("G12", otherwise && reused, "{id} asked again is {rejection}");
            }
            other => demand!("G12", false, "{id} asked again: {other:?}"),
        }
        self.settle()?;
        // Whatever it stored would be nobody's.
        self.take_in(&[], &[]).map(drop)
    }

    /// Several at once; or a confirmation that completes a circle, and with it the report that it can't be
    /// published; or a request that was answered long ago.
    pub fn crowd(&mut self) -> Verdict {
        let mishap = self.mishap();
        match self.dice.below(4) {
            0 => {
                let (which, otherwise) = (self.dice.below(1000), self.dice.percent(25));
                self.repeat(which, otherwise)
            }
            1 => self.cannot_publish(mishap),
            _ => {
                let mut said = Vec::new();
                for _ in 0..self.dice.between(2, 4) {
                    let owed = self.owed();
                    let Some(member) = self.dice.pick(&self.members).cloned() else { return Ok(()) };
                    let Some(owed) = self.dice.pick(&owed).cloned().filter(|_| self.dice.percent(60)) else {
                        let command = self.command(&member);
                        said.push((Actor::Member(member), command));
                        continue;
                    };
                    let command = told::command(self, &owed.command);
                    let command = command.map_err(|what| Broken { guarantee: "G8", what })?;
                    said.push((Actor::Member(owed.member), command));
                }
                self.say(said, Span::ZERO, mishap).map(drop)
            }
        }
    }

    fn cannot_publish(&mut self, mishap: Mishap) -> Verdict {
        let mut owed = self.owed();
        owed.retain(|owed| owed.kind == ObligationKind::Confirm);
        let Some(owed) = self.dice.pick(&owed).cloned() else { return Ok(()) };
        let command = told::command(self, &owed.command);
        let command = command.map_err(|what| Broken { guarantee: "G8", what })?;
        let Command::Confirm(confirm) = &command else { return Ok(()) };
        let review = self.team.review();
        let Some(circle) = review.circle(&confirm.reference.circle) else { return Ok(()) };
        let failure =
            PublishFailure { because: "the target moved".to_owned(), owing: circle.proposals.clone() };
        let report = review::ReportPublish {
            circle: circle.name.clone(),
            manifest: review.manifest(self.revision(), circle),
            failure: Some(failure),
            refs: Vec::new(),
            check: None,
        };
        let said =
            vec![(Actor::Member(owed.member), command), (Actor::Server, Command::ReportPublish(report))];
        self.say(said, Span::ZERO, mishap).map(drop)
    }

    /// At the end, when nothing fails any longer, everything that is owed to the world gets done.
    pub fn rests(&mut self) -> Verdict {
        if self.served.is_none() {
            return Ok(());
        }
        self.served().server.notifier.refuse(0);
        self.pass_served(RETRY_MAX, false, Mishap::None)?;
        let owed: Vec<Effect> = self.team.effects();
        demand!("G13", owed.is_empty(), "{owed:?} is owed to the world for ever");
        let refused = self.served().server.notifier.refused();
        if refused > 0 {
            self.saw("news refused");
        }
        Ok(())
    }
}
