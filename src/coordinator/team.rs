//! One team's task: it alone decides for its team, one command after the other.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, RwLock, Weak};

use tokio::sync::{Notify, mpsc, oneshot, watch};

use super::answered::{Recent, decode, encode};
use super::attempts::Attempts;
use super::counts::Counts;
use super::hearing::{Hearing, Taken};
use super::loading::{self, Loaded};
use super::notifier::{Deliveries, Failing, Notifier};
use super::outcome::{Done, Refusal, RequestKey};
use super::performing::Performing;
use super::presence::{Presence, Wake};
use super::publisher::Publisher;
use super::writer::{Queued, WriterHandle};
use super::{Clock, Inner, Parts, Progress, Progressing, Reply, Slept, UNPOISONED};
use crate::protocol::deadline::ServerResumed;
use crate::protocol::delivery::Acknowledge;
use crate::protocol::escalation::{Cause, UNHEARD_MIN};
use crate::protocol::name::{Actor, EscalationId, MemberName, Seq, TeamName};
use crate::protocol::rule::{Judge, Rulebook};
use crate::protocol::time::{Span, Time};
use crate::protocol::{Command, Effect, Event, Obligation, Team, Violation};
use crate::store::{Batch, Fault, Reader, Request, Row};

/// How many commands of one team wait to be decided before callers wait.
const INBOX_MAX: usize = 1024;

/// A running team keeps a snapshot after so many times the rows that are worth one.
const SNAPSHOT_EVERY: u64 = 10;

/// How long a team for which nothing is open stays in memory after it was last asked something; and after
/// the start, if nobody asks at all.
const IDLE: Span = Span::seconds(10 * 60);
const UNASKED: Span = Span::seconds(1);

/// One team. Cheap to clone; all clones are one.
#[derive(Clone)]
pub struct TeamHandle {
    name: TeamName,
    inbox: mpsc::Sender<Submitted>,
    shared: Arc<Shared>,
}

/// What the team's task and its readers share.
pub(super) struct Shared {
    /// The state after everything that was decided, stored or not.
    pub(super) team: RwLock<Team>,
    /// How far the log is.
    pub(super) progress: Progressing,
    /// Wakes the task where what it decided is void, so that it isn't woken by every commit.
    voided: Arc<Notify>,
    pub(super) hearing: Arc<Hearing>,
    pub(super) deliveries: Mutex<Deliveries>,
    attempts: Mutex<Attempts>,
    rulebook: Arc<dyn Rulebook>,
    /// Judges by the rules that the charter in force came with.
    judge: RwLock<Arc<dyn Judge>>,
    pub(super) clock: Arc<dyn Clock>,
    /// The row of the last snapshot; 0 for none.
    snapshot: AtomicU64,
}

impl Shared {
    /// The team's time: it goes on from the last event, whatever the wall clock says.
    fn now(&self) -> Time {
        self.hearing.now()
    }

    /// Whether all that was decided is stored.
    fn is_settled(&self, team: &Team) -> bool {
        let progress = self.progress.1.borrow();
        progress.stored == team.seq().0 && progress.loaded == progress.epoch
    }

    fn rows_since_snapshot(&self, team: &Team) -> u64 {
        team.seq().0.saturating_sub(self.snapshot.load(Ordering::Relaxed))
    }

    /// Keeps a snapshot of what is stored. Says whether it did.
    fn keep(&self, reader: &dyn Reader, name: &TeamName, team: &Team) -> bool {
        match loading::keep(reader, name, team) {
            Ok(()) => {
                self.snapshot.fetch_max(team.seq().0, Ordering::Relaxed);
                true
            }
            Err(fault) => {
                tracing::warn!(team = %name, %fault, "no snapshot was kept; the next start takes longer");
                false
            }
        }
    }

    /// Has the team asked what time brings no later than then.
    fn expect(&self, at: Time) {
        self.progress.0.send_if_modified(|progress| {
            let sooner = progress.deadline.is_none_or(|known| at < known);
            if sooner {
                progress.deadline = Some(at);
            }
            sooner
        });
    }

    fn counts(&self) -> Counts {
        let team = self.team.read().expect(UNPOISONED);
        Counts::of(&team, &self.attempts.lock().expect(UNPOISONED))
    }

    fn judge(&self) -> Arc<dyn Judge> {
        self.judge.read().expect(UNPOISONED).clone()
    }

    /// Judges by the rules of the charter that is in force now.
    fn appoint(&self) {
        let judge = judge_of(&*self.rulebook, &self.team.read().expect(UNPOISONED));
        *self.judge.write().expect(UNPOISONED) = judge;
    }
}

fn judge_of(rulebook: &dyn Rulebook, team: &Team) -> Arc<dyn Judge> {
    rulebook.judge(team.adopted().map_or(&[], |adopted| &adopted.rules))
}

pub(super) struct Submitted {
    pub(super) who: Actor,
    pub(super) command: Command,
    pub(super) request: Option<RequestKey>,
    pub(super) reply: Reply,
}

impl TeamHandle {
    /// Starts the team's task.
    pub(super) fn open(
        name: TeamName,
        loaded: Loaded,
        slept: Slept,
        parts: Parts,
        coordinator: Weak<Inner>,
    ) -> Self {
        let Loaded { team, snapshot } = loaded;
        let Parts { writer, reader, rulebook, clock, notifier, publisher } = parts;
        let judge = RwLock::new(judge_of(&*rulebook, &team));
        // A log that is ahead of the clock: a wall clock that was set back must not stop the team's time.
        let fresh = || Arc::new(Hearing::new(clock.clone(), team.at() - clock.now()));
        let hearing = slept.hearing.unwrap_or_else(fresh);
        let sleeps_at = clock.now() + UNASKED;
        // What passed while nobody was there to ask is asked about first.
        let deadline = Some(Time(i64::MIN));
        let progress = watch::channel(Progress { stored: team.seq().0, deadline, ..Progress::default() });
        let shared = Arc::new(Shared {
            team: RwLock::new(team),
            progress,
            voided: Arc::default(),
            hearing,
            deliveries: Mutex::default(),
            attempts: Mutex::new(slept.attempts),
            rulebook,
            judge,
            clock,
            snapshot: AtomicU64::new(snapshot.map_or(0, |begun| begun.seq.0)),
        });
        let (inbox, commands) = mpsc::channel(INBOX_MAX);
        let handle = Self { name: name.clone(), inbox, shared: shared.clone() };
        let task = Task {
            name,
            shared,
            writer,
            reader,
            notifier,
            publisher,
            inbox: handle.inbox.downgrade(),
            recent: Recent::default(),
            epoch: 0,
            unreadable: false,
            performing: BTreeSet::new(),
            gaps_told: slept.gaps_told.unwrap_or(Time(i64::MIN)),
            coordinator: coordinator.clone(),
            sleeps_at,
        };
        let task = tokio::spawn(task.run(commands));
        let team = handle.name.clone();
        tokio::spawn(async move {
            // Nobody decides for its team any longer: a server that went on would leave everybody waiting.
            if task.await.is_err_and(|ended| ended.is_panic())
                && let Some(coordinator) = coordinator.upgrade()
            {
                coordinator.task_broke(&team);
            }
        });
        handle
    }

    /// Keeps a snapshot, where all of the team is stored and there is enough that the last one doesn't have.
    pub(super) fn keep_snapshot(&self, reader: &dyn Reader) {
        let team = self.shared.team.read().expect(UNPOISONED);
        if self.shared.is_settled(&team) && self.shared.rows_since_snapshot(&team) >= rows_between(reader) {
            self.shared.keep(reader, &self.name, &team);
        }
    }

    /// The team's name.
    pub fn name(&self) -> &TeamName {
        &self.name
    }

    /// Has a command decided and, where it was accepted, stored. Once it was queued it is carried out,
    /// also when the caller goes away.
    pub async fn submit(
        &self,
        who: Actor,
        command: Command,
        request: Option<RequestKey>,
    ) -> Result<Done, Refusal> {
        let (reply, answer) = oneshot::channel();
        let submitted = Submitted { who, command, request, reply };
        self.inbox.send(submitted).await.map_err(|_| Refusal::Ended)?;
        answer.await.unwrap_or(Err(Refusal::Ended))
    }

    /// Looks at the team, then waits until all that was seen is stored; where a commit stored nothing,
    /// looks again. `look` runs under a short lock: it must not wait for anything.
    pub async fn read<T>(&self, look: impl Fn(&Team, Time) -> T) -> Result<(T, Seq), Refusal> {
        let mut progress = self.shared.progress.1.clone();
        loop {
            let asked = self.shared.now();
            let caught_up = |progress: &Progress| {
                progress.loaded == progress.epoch && progress.deadline.is_none_or(|at| at > asked)
            };
            let loaded = progress.wait_for(caught_up).await;
            let epoch = loaded.map_err(|_| Refusal::Ended)?.epoch;
            let (seen, seq) = {
                let team = self.shared.team.read().expect(UNPOISONED);
                (look(&team, self.shared.now()), team.seq())
            };
            let void = |progress: &Progress| progress.epoch != epoch;
            let reached = progress.wait_for(|progress| progress.stored >= seq.0 || void(progress)).await;
            if !void(&*reached.map_err(|_| Refusal::Ended)?) {
                return Ok((seen, seq));
            }
        }
    }

    /// Takes note that a member took a wake, once that is stored: see [`Acknowledge`].
    pub async fn acknowledge(&self, member: &MemberName, took: Acknowledge) -> Result<Done, Refusal> {
        let (wake, taken) = (took.wake, Taken { watched: took.watched });
        let done = self.submit(Actor::Member(member.clone()), Command::Acknowledge(took), None).await?;
        self.shared.hearing.acknowledged(member, wake, taken);
        Ok(done)
    }

    /// A member listens: who was told that it doesn't is told so, and when it goes away that is seen in time.
    pub(super) fn is_listened_to(&self, member: &MemberName) {
        let wait = self.peek(|team| match team.is_told_unheard(member) {
            true => Some(Span(0)),
            false => (!team.is_quiet()).then_some(UNHEARD_MIN),
        });
        if let Some(wait) = wait {
            self.shared.expect(self.shared.now() + wait);
            self.shared.voided.notify_one();
        }
    }

    /// Every member with whether a wake reaches it now, and since when that is so.
    pub fn roster(&self) -> Vec<(MemberName, Presence, Option<Time>)> {
        self.peek(|team| self.shared.hearing.roster(team))
    }

    /// Looks at what every event so far, stored or not, adds up to. For what can't be taken back by a
    /// crash: the charter in force, the form of an artifact.
    pub fn peek<T>(&self, look: impl FnOnce(&Team) -> T) -> T {
        look(&self.shared.team.read().expect(UNPOISONED))
    }

    /// The rules that judge this team.
    pub fn judge(&self) -> Arc<dyn Judge> {
        self.shared.judge()
    }

    /// What was tried and refused since the server started.
    pub fn attempts(&self) -> Attempts {
        self.shared.attempts.lock().expect(UNPOISONED).clone()
    }

    /// Who listens.
    pub(super) fn hearing(&self) -> &Arc<Hearing> {
        &self.shared.hearing
    }

    /// What is counted of it.
    pub(super) fn counts(&self) -> Counts {
        self.shared.counts()
    }

    /// Notes that a push to that ref was refused.
    pub fn push_refused(&self, reference: &str, violation: &Violation) {
        let at = self.shared.now();
        self.shared.attempts.lock().expect(UNPOISONED).push_refused(reference, at, violation);
    }

    /// The channels that do not take the news of an escalation, as far as this process knows.
    pub fn failing(&self) -> BTreeMap<(EscalationId, String), Failing> {
        self.shared.deliveries.lock().expect(UNPOISONED).failing()
    }

    /// Waits until the log is stored up to that place.
    pub async fn wait_until_stored(&self, seq: Seq) -> Result<(), Refusal> {
        let mut progress = self.shared.progress.1.clone();
        progress.wait_for(|progress| progress.stored >= seq.0).await.map_err(|_| Refusal::Ended)?;
        Ok(())
    }
}

struct Task {
    name: TeamName,
    shared: Arc<Shared>,
    writer: WriterHandle,
    reader: Arc<dyn Reader>,
    notifier: Arc<dyn Notifier>,
    publisher: Arc<dyn Publisher>,
    /// The way back to this task, for reports on effects; weak, so that it does not keep it alive.
    inbox: mpsc::WeakSender<Submitted>,
    recent: Recent,
    /// The epoch of the state that it decides on.
    epoch: u64,
    /// Whether the log couldn't be read again; the next command tries.
    unreadable: bool,
    /// Effects under way.
    performing: BTreeSet<Effect>,
    /// Until when the team knows in which time no server ran, by the clock.
    gaps_told: Time,
    coordinator: Weak<Inner>,
    /// When it may go to sleep, by the clock.
    sleeps_at: Time,
}

impl Task {
    async fn run(mut self, mut commands: mpsc::Receiver<Submitted>) {
        // What a log from before its rule holds is repaired before anything is done for it.
        self.pass_time().await;
        self.perform_effects();
        let (clock, voided) = (self.shared.clock.clone(), self.shared.voided.clone());
        // A wait for the same moment is kept from one command to the next.
        let mut timer = (self.wakes_at(), clock.wait_until(self.wakes_at()));
        loop {
            if timer.0 != self.wakes_at() {
                timer = (self.wakes_at(), clock.wait_until(self.wakes_at()));
            }
            let submitted = tokio::select! {
                submitted = commands.recv() => submitted,
                // Whoever only looks must not wait for the next command.
                () = voided.notified(), if !self.unreadable => {
                    self.catch_up();
                    continue;
                }
                () = &mut timer.1, if !self.unreadable && (self.deadline().is_some() || self.is_quiet()) => {
                    // It is over, and not to be waited for once more.
                    timer = (Time(i64::MIN), clock.wait_until(Time(i64::MAX)));
                    if self.deadline().is_some() {
                        self.pass_time().await;
                    } else if self.fall_asleep(&mut commands).await {
                        return;
                    }
                    continue;
                }
            };
            let Some(submitted) = submitted else { return };
            match self.catch_up() {
                Some(reason) => drop(submitted.reply.send(Err(Refusal::Damaged { reason }))),
                None => {
                    self.pass_time().await;
                    let who = submitted.who.member().cloned();
                    self.decide(submitted).await;
                    let team = &self.shared.team;
                    if who.is_some_and(|who| team.read().expect(UNPOISONED).is_told_unheard(&who)) {
                        self.shared.expect(self.shared.now());
                    }
                    self.sleeps_at = clock.now() + IDLE;
                    self.keep_snapshot_at_times();
                }
            }
        }
    }

    /// When the team next wants to be asked, in its own time.
    fn deadline(&self) -> Option<Time> {
        self.shared.progress.1.borrow().deadline
    }

    /// The same by the clock; where there is no deadline, when it may go to sleep.
    fn wakes_at(&self) -> Time {
        self.deadline().map_or(self.sleeps_at, |at| Time(at.0.saturating_sub(self.shared.hearing.ahead().0)))
    }

    /// Whether nothing is open that time or the world could move.
    fn is_quiet(&self) -> bool {
        let team = self.shared.team.read().expect(UNPOISONED);
        self.performing.is_empty() && team.is_quiet()
    }

    /// Lets the team go out of memory. Says whether it did: then this task is over.
    async fn fall_asleep(&mut self, commands: &mut mpsc::Receiver<Submitted>) -> bool {
        self.sleeps_at = self.shared.clock.now() + IDLE;
        let (shared, reader, name) = (self.shared.clone(), self.reader.clone(), self.name.clone());
        // Only this task decides, so that nothing is added meanwhile.
        let saved = tokio::task::spawn_blocking(move || {
            let team = shared.team.read().expect(UNPOISONED);
            let short = shared.rows_since_snapshot(&team) < rows_between(&*reader);
            shared.is_settled(&team) && (short || shared.keep(&*reader, &name, &team))
        });
        if !saved.await.unwrap_or(false) {
            return false;
        }
        let Some(coordinator) = self.coordinator.upgrade() else { return false };
        let (shared, gaps_told) = (&self.shared, self.gaps_told);
        coordinator.put_to_sleep(&self.name, || {
            // This task's, and that of the handle that the coordinator has.
            let held = Arc::strong_count(shared) > 2 || !commands.is_empty();
            (!held).then(|| Slept {
                counts: shared.counts(),
                hearing: Some(shared.hearing.clone()),
                attempts: std::mem::take(&mut *shared.attempts.lock().expect(UNPOISONED)),
                gaps_told: Some(gaps_told),
            })
        })
    }

    /// Keeps a snapshot in the background once the log has grown enough.
    fn keep_snapshot_at_times(&self) {
        let every = rows_between(&*self.reader).saturating_mul(SNAPSHOT_EVERY);
        let (team, last) = {
            let team = self.shared.team.read().expect(UNPOISONED);
            if self.shared.rows_since_snapshot(&team) < every {
                return;
            }
            // The next one is due so much later, whatever becomes of this one.
            (team.clone(), self.shared.snapshot.swap(team.seq().0, Ordering::Relaxed))
        };
        let (shared, reader, name) = (self.shared.clone(), self.reader.clone(), self.name.clone());
        let epoch = self.epoch;
        tokio::spawn(async move {
            let mut progress = shared.progress.1.clone();
            let seq = team.seq().0;
            let stored =
                progress.wait_for(|progress| progress.stored >= seq || progress.epoch != epoch).await;
            let stored = stored.is_ok_and(|progress| progress.epoch == epoch);
            let kept = stored && {
                let shared = shared.clone();
                let keep = move || shared.keep(&*reader, &name, &team);
                tokio::task::spawn_blocking(keep).await.unwrap_or(false)
            };
            if !kept {
                // Not while a later one is there.
                let _ = shared.snapshot.compare_exchange(seq, last, Ordering::Relaxed, Ordering::Relaxed);
            }
        });
    }

    /// What is late by now came before whatever is asked now: the team decides what comes of it, once it
    /// knows in which time no server ran.
    async fn pass_time(&mut self) {
        // As it is before the first stretch is told: that is told now, and later than all of them.
        let last = self.shared.team.read().expect(UNPOISONED).at();
        for (from, to) in self.shared.clock.gaps(self.gaps_told) {
            self.gaps_told = to;
            let ahead = self.shared.hearing.ahead();
            let resumed = ServerResumed { from: (from + ahead).max(last), to: to + ahead };
            self.ask_itself(Command::ResumeServer(resumed)).await;
        }
        let now = self.shared.now();
        if self.deadline().is_none_or(|at| at > now) {
            return;
        }
        self.ask_itself(Command::TimePassed).await;
        self.report_unheard().await;
        self.look_again();
        let next = {
            let team = self.shared.team.read().expect(UNPOISONED);
            let (judge, unheard) = (self.shared.judge(), self.shared.hearing.unheard(&team));
            // Nobody can go silent who never listened.
            let listens = self.shared.hearing.may_go_silent() || !unheard.is_empty();
            let silent = if listens { team.next_unheard(&*judge, now, &unheard) } else { None };
            // What has passed was just asked about: there is nothing in it that is not decided.
            team.next_deadline(&*judge, now).into_iter().chain(silent).filter(|at| *at > now).min()
        };
        self.shared.progress.0.send_modify(|progress| progress.deadline = next);
    }

    /// Has the team decide whom a person is told of because no wake reaches it.
    async fn report_unheard(&mut self) {
        let report = {
            let team = self.shared.team.read().expect(UNPOISONED);
            let told = team.escalations().open().any(|open| open.opened.cause == Cause::MemberDeaf);
            Some(self.shared.hearing.unheard(&team)).filter(|report| told || !report.members.is_empty())
        };
        if let Some(report) = report {
            self.ask_itself(Command::ReportUnheard(report)).await;
        }
    }

    /// Has the team decide what the server asks; nobody waits for the answer.
    async fn ask_itself(&mut self, command: Command) {
        let (reply, _) = oneshot::channel();
        self.decide(Submitted { who: Actor::Server, command, request: None, reply }).await;
    }

    /// What was just decided can have a deadline no sooner than the least that there is.
    fn expect_deadline(&self, now: Time) {
        let least = self.shared.team.read().expect(UNPOISONED).least_deadline();
        if let Some(least) = least {
            self.shared.expect(now + least);
        }
    }

    /// Reads the log again where what was decided on top of it is void. Gives the reason where it can't.
    fn catch_up(&mut self) -> Option<String> {
        let epoch = self.shared.progress.1.borrow().epoch;
        if epoch == self.epoch {
            return None;
        }
        let team = match loading::load(&*self.reader, &self.name) {
            Ok(loaded) => loaded.team,
            Err(fault) => {
                tracing::error!(team = %self.name, %fault, "the log can't be read");
                self.unreadable = true;
                return Some(fault.to_string());
            }
        };
        let stored = team.seq().0;
        *self.shared.team.write().expect(UNPOISONED) = team;
        self.shared.appoint();
        self.shared.progress.0.send_modify(|progress| {
            progress.stored = stored;
            progress.loaded = epoch;
            // A store that takes nothing is not asked again at once.
            progress.deadline = Some(self.shared.now() + Span::seconds(1));
        });
        self.epoch = epoch;
        self.unreadable = false;
        self.recent = Recent::default();
        // That no server ran was perhaps among what wasn't stored; what the log knows of it isn't told twice.
        self.gaps_told = Time(i64::MIN);
        self.performing.clear();
        self.perform_effects();
        // What they were rung for is perhaps void, or was read with the rest.
        self.shared.hearing.poke(None);
        None
    }

    async fn decide(&mut self, submitted: Submitted) {
        let Submitted { who, mut command, request, reply } = submitted;
        if let Some(request) = &request {
            match self.answered_before(&who, request) {
                Ok(None) => {}
                Ok(Some(outcome)) => return self.enqueue(None, reply, outcome).await,
                Err(fault) => {
                    let reason = fault.to_string();
                    return drop(reply.send(Err(Refusal::Damaged { reason })));
                }
            }
        }
        let now = self.shared.now();
        match (&who, &mut command) {
            (Actor::Member(member), Command::Acknowledge(took)) => {
                self.shared.hearing.keep_shown(member, took);
            }
            (Actor::Member(member), _) => self.shared.hearing.spoke(member, now),
            _ => {}
        }
        let judge = self.shared.judge();
        let (decision, before, at, seq, touched) = {
            let team = self.shared.team.read().expect(UNPOISONED);
            let decision = team.handle(&*judge, now, &who, &command);
            let touched = team.touched(&decision.events);
            let before = if decision.events.is_empty() {
                Vec::new()
            } else {
                team.owed_around(&*judge, now, &decision.events, touched.as_ref())
            };
            (decision, before, now.max(team.at()), team.seq(), touched)
        };
        if let Err(rejection) = &decision.outcome {
            self.shared.attempts.lock().expect(UNPOISONED).refused(who.member(), at, rejection);
        }
        if decision.events.is_empty() {
            let outcome = match decision.outcome {
                Ok(answer) => Ok(Done { answer, woke: Vec::new(), called_out: Vec::new(), seq }),
                Err(rejection) => Err(Refusal::Rejected { rejection, seq }),
            };
            return self.enqueue(None, reply, outcome).await;
        }

        let mut rows: Vec<Row> = Vec::with_capacity(decision.events.len());
        self.fold(&who, at, &decision.events, &mut rows);
        // What follows from another charter follows by its rules.
        let judge = self.shared.judge();
        // Outside of the write lock: nobody who looks waits while rules are asked.
        let aftermath = {
            let team = self.shared.team.read().expect(UNPOISONED);
            team.aftermath(&*judge, now, &decision.events, touched.as_ref())
        };
        self.fold(&Actor::Server, at, &aftermath.events, &mut rows);
        let (after, again) = {
            let team = self.shared.team.read().expect(UNPOISONED);
            let owed = match aftermath.events.is_empty() {
                true => aftermath.owed,
                false => team.owed_around(&*judge, now, &decision.events, touched.as_ref()),
            };
            let again = team.owed_again(&before, &owed);
            (owed, again)
        };
        self.fold(&Actor::Server, at, &again, &mut rows);
        let last = self.shared.team.read().expect(UNPOISONED).seq();
        self.expect_deadline(at);
        let woke = self.woke(&who, &before, &after, last);
        if decision.events.iter().any(|event| Event::is_news(event.kind())) {
            self.shared.hearing.happened(who.member());
        }
        let called_out = decision.events.iter().chain(&aftermath.events).filter_map(called_out).collect();
        let outcome = match decision.outcome {
            Ok(answer) => Ok(Done { answer, woke, called_out, seq: last }),
            Err(rejection) => Err(Refusal::Rejected { rejection, seq: last }),
        };
        // Only what was accepted is remembered: a refused command may be asked again.
        if let (Some(key), Ok(done), Some(first)) = (request, &outcome, rows.first_mut()) {
            first.request =
                Some(Request { id: key.id.clone(), digest: key.digest.clone(), answer: encode(done) });
            self.recent.keep(who, key, done.clone());
        }
        let batch = Batch { team: self.name.clone(), rows };
        self.enqueue(Some(batch), reply, outcome).await;
        self.perform_effects();
    }

    /// Folds events in, and gives their rows.
    fn fold(&self, who: &Actor, at: Time, events: &[Event], rows: &mut Vec<Row>) {
        if events.is_empty() {
            return;
        }
        // Written out before the lock is taken: nobody who looks waits for that.
        let written: Vec<String> = events.iter().map(Event::encode).collect();
        let mut team = self.shared.team.write().expect(UNPOISONED);
        for (event, body) in events.iter().zip(written) {
            let seq = Seq(team.seq().0 + 1);
            team.apply(seq, at, event);
            let (kind, schema) = (event.kind().into(), event.schema());
            rows.push(Row { seq, at, actor: who.clone(), kind, schema, body, request: None });
        }
        drop(team);
        if events.iter().any(|event| matches!(event, Event::CharterAdopted(_))) {
            self.shared.appoint();
        }
    }

    /// The answer that this request got before, or the refusal where it was another command.
    fn answered_before(
        &self,
        who: &Actor,
        request: &RequestKey,
    ) -> Result<Option<Result<Done, Refusal>>, Fault> {
        let seq = self.shared.team.read().expect(UNPOISONED).seq();
        let known = match self.recent.get(who, &request.id) {
            Some((digest, done)) => Some((digest.clone(), Some(done.clone()))),
            None => self
                .reader
                .request(&self.name, who, &request.id)?
                .map(|stored| (stored.digest, decode(&stored.answer, seq))),
        };
        Ok(known.map(|(digest, done)| match done {
            Some(done) if digest == request.digest => Ok(done),
            _ => {
                let rejection = Violation::RequestIdReused { request_id: request.id.clone() }.into();
                Err(Refusal::Rejected { rejection, seq })
            }
        }))
    }

    /// Has the outcome told once everything that it reflects is stored.
    async fn enqueue(&mut self, batch: Option<Batch>, reply: Reply, outcome: Result<Done, Refusal>) {
        if batch.is_none() {
            let seq = self.shared.team.read().expect(UNPOISONED).seq();
            if self.shared.progress.1.borrow().stored >= seq.0 {
                return drop(reply.send(outcome));
            }
        }
        let queued = Queued {
            batch,
            progress: self.shared.progress.0.clone(),
            voided: self.shared.voided.clone(),
            decided_in: self.epoch,
            reply: Some((reply, outcome)),
        };
        self.writer.commit(queued).await;
    }

    /// Other members who owe something that they did not owe before; their listeners hear of it.
    fn woke(&self, who: &Actor, before: &[Obligation], after: &[Obligation], seq: Seq) -> Vec<Wake> {
        let known: BTreeSet<_> = before.iter().map(|owed| (&owed.member, owed.id.as_str())).collect();
        let fresh = after.iter().filter(|owed| !known.contains(&(&owed.member, owed.id.as_str())));
        let fresh: Vec<&Obligation> = fresh.collect();
        let team = self.shared.team.read().expect(UNPOISONED);
        self.shared.hearing.tell(who.member(), &fresh, seq, |member| team.deliveries().knows(member))
    }

    /// Time alone can make something owed: whoever owes looks again whether it was shown.
    fn look_again(&self) {
        if self.shared.hearing.is_heard() {
            let team = self.shared.team.read().expect(UNPOISONED);
            let owed = team.all_obligations(&*self.shared.judge(), self.shared.now());
            self.shared.hearing.poke(Some(&owed.into_iter().map(|owed| owed.member).collect()));
        }
    }

    /// Starts what the log says the server owes the world and nothing has started yet.
    fn perform_effects(&mut self) {
        let (owed, seq) = {
            let team = self.shared.team.read().expect(UNPOISONED);
            (team.effects(), team.seq())
        };
        self.performing.retain(|effect| owed.contains(effect));
        for effect in owed {
            if !self.performing.insert(effect.clone()) {
                continue;
            }
            let performing = Performing {
                team: self.name.clone(),
                shared: self.shared.clone(),
                notifier: self.notifier.clone(),
                publisher: self.publisher.clone(),
                inbox: self.inbox.clone(),
                epoch: self.epoch,
            };
            tokio::spawn(async move { performing.perform(effect, seq).await });
        }
    }
}

fn rows_between(reader: &dyn Reader) -> u64 {
    reader.snapshots().rows_between()
}

/// What a call-out says to whoever it is about.
fn called_out(event: &Event) -> Option<String> {
    match event {
        Event::CalledOut(event) => Some(format!("[{}] {}: {}", event.rule, event.subject, event.says)),
        _ => None,
    }
}
