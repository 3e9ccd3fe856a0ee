//! The writer: one thread that owns the store's write side. It takes what all teams have queued and
//! commits it in one transaction, then answers.

use std::sync::Arc;
use std::thread;

use tokio::runtime::Handle;
use tokio::sync::{Mutex, Notify, mpsc, oneshot, watch};

use super::outcome::{Done, Refusal};
use super::{Progress, Reply};
use crate::store::{Batch, CommitFault, Fault, Writer};

/// How many batches one transaction takes at most.
const BATCHES_MAX: usize = 256;

/// From how many answers on they are given within the runtime.
const TOLD_WITHIN: usize = 4;

/// How many queued batches make a team's task wait.
const QUEUE_MAX: usize = 4096;

/// A decision that waits to be stored.
pub(super) struct Queued {
    /// Its events; none where an answer only waits for what it reflects.
    pub(super) batch: Option<Batch>,
    /// How far its team's log is.
    pub(super) progress: watch::Sender<Progress>,
    /// Wakes its team's task where what it decided is void.
    pub(super) voided: Arc<Notify>,
    /// The epoch in which it was decided.
    pub(super) decided_in: u64,
    /// Whom to tell, and what.
    pub(super) reply: Option<(Reply, Result<Done, Refusal>)>,
}

type Task = Box<dyn FnOnce(&mut dyn Writer) + Send>;

enum Message {
    Commit(Box<Queued>),
    Ask(Task),
    Close,
}

/// The way to the writer. Cheap to clone.
#[derive(Clone)]
pub(super) struct WriterHandle {
    queue: mpsc::Sender<Message>,
    broken: watch::Receiver<Option<String>>,
    thread: Arc<Mutex<Option<thread::JoinHandle<()>>>>,
}

impl WriterHandle {
    pub(super) fn start(writer: Box<dyn Writer>) -> Self {
        let (queue, messages) = mpsc::channel(QUEUE_MAX);
        let (broke, broken) = watch::channel(None);
        let runtime = Handle::current();
        let run = move || run(writer, messages, &broke, &runtime);
        let thread = thread::Builder::new().name("writer".to_owned()).spawn(run);
        let thread = thread.expect("a process that starts can have a thread");
        Self { queue, broken, thread: Arc::new(Mutex::new(Some(thread))) }
    }

    /// Queues a decision; waits while too much is queued. A closed writer answers `Ended`.
    pub(super) async fn commit(&self, queued: Queued) {
        if let Err(mpsc::error::SendError(Message::Commit(queued))) =
            self.queue.send(Message::Commit(Box::new(queued))).await
        {
            answer(queued.reply, Some(&Refusal::Ended));
        }
    }

    /// Does something else with the store, between two commits.
    pub(super) async fn ask<T: Send + 'static>(
        &self,
        task: impl FnOnce(&mut dyn Writer) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, Fault> {
        let (reply, answer) = oneshot::channel();
        let task: Task = Box::new(move |writer| drop(reply.send(task(writer))));
        let ended = || Fault::Failed { what: "the server is ending".to_owned() };
        self.queue.send(Message::Ask(task)).await.map_err(|_| ended())?;
        answer.await.map_err(|_| ended())?
    }

    /// Resolves once the outcome of a commit is unknown.
    pub(super) async fn broken(&self) -> String {
        let mut broken = self.broken.clone();
        let what = broken.wait_for(Option::is_some).await;
        match what {
            Ok(what) => what.clone().unwrap_or_default(),
            // The writer ended in good order: nothing is broken, now or later.
            Err(_) => std::future::pending().await,
        }
    }

    /// Commits what is queued and closes the store.
    pub(super) async fn close(&self) {
        // The only failure is a writer that has ended already.
        self.queue.send(Message::Close).await.unwrap_or_default();
        let thread = self.thread.lock().await.take();
        if let Some(thread) = thread {
            let joined = tokio::task::spawn_blocking(move || thread.join()).await;
            if !matches!(joined, Ok(Ok(()))) {
                tracing::error!("the writer ended by a panic");
            }
        }
    }
}

fn run(
    mut writer: Box<dyn Writer>,
    mut messages: mpsc::Receiver<Message>,
    broke: &watch::Sender<Option<String>>,
    runtime: &Handle,
) {
    let mut taken = Vec::with_capacity(BATCHES_MAX);
    while messages.blocking_recv_many(&mut taken, BATCHES_MAX) > 0 {
        let mut queued = Vec::with_capacity(taken.len());
        for message in taken.drain(..) {
            match message {
                Message::Commit(item) => queued.push(*item),
                Message::Ask(task) => {
                    // What was queued before it comes before it.
                    if let Err(unknown) = commit(&mut *writer, std::mem::take(&mut queued), runtime) {
                        return end(unknown, messages, broke);
                    }
                    task(&mut *writer);
                    if let Some(why) = writer.ended().map(str::to_owned) {
                        return end(why, messages, broke);
                    }
                }
                Message::Close => messages.close(),
            }
        }
        if let Err(unknown) = commit(&mut *writer, queued, runtime) {
            return end(unknown, messages, broke);
        }
        if let Some(why) = writer.ended().map(str::to_owned) {
            return end(why, messages, broke);
        }
    }
}

/// Nobody can say whether the last commit was stored: everything behind it is unknown or undone.
fn end(unknown: String, mut messages: mpsc::Receiver<Message>, broke: &watch::Sender<Option<String>>) {
    tracing::error!(reason = unknown, "what the disk holds is unknown; the process must end");
    broke.send_replace(Some(unknown));
    messages.close();
    while let Some(message) = messages.blocking_recv() {
        if let Message::Commit(queued) = message {
            answer(queued.reply, Some(&Refusal::Ended));
        }
    }
}

/// Commits in one transaction and answers. Fails only where the outcome is unknown.
fn commit(writer: &mut dyn Writer, queued: Vec<Queued>, runtime: &Handle) -> Result<(), String> {
    let (live, void): (Vec<_>, Vec<_>) =
        queued.into_iter().partition(|item| item.progress.borrow().epoch == item.decided_in);
    for item in void {
        let reason = "what it was decided on could not be stored".to_owned();
        answer(item.reply, Some(&Refusal::NotStored { reason }));
    }
    let mut batches = Vec::with_capacity(live.len());
    let mut waiting = Vec::with_capacity(live.len());
    for mut item in live {
        let has_events = item.batch.take().map(|batch| batches.push(batch)).is_some();
        waiting.push((item, has_events));
    }
    let committed = if batches.is_empty() { Ok(Vec::new()) } else { writer.commit(&batches) };
    let mut outcomes = match committed {
        Ok(outcomes) => outcomes.into_iter(),
        Err(CommitFault::NotStored { reason }) => {
            tracing::warn!(reason, "a commit stored nothing");
            for (item, _) in waiting {
                item.void(&Refusal::NotStored { reason: reason.clone() });
            }
            return Ok(());
        }
        // What was decided isn't void: nobody reads the log again in this process, since what a failed
        // flush left there may be gone after the next.
        Err(CommitFault::Unknown { reason }) => {
            for (item, _) in waiting {
                answer(item.reply, Some(&Refusal::Unknown { reason: reason.clone() }));
            }
            return Err(reason);
        }
    };
    let mut answers = Vec::with_capacity(waiting.len());
    for (item, has_events) in waiting {
        // An answer without events has waited for those before it, and has no outcome of its own.
        match if has_events { outcomes.next() } else { None } {
            // …but what it reflects may have been refused just before it.
            None if item.progress.borrow().epoch != item.decided_in => {
                let reason = "what it was decided on could not be stored".to_owned();
                answer(item.reply, Some(&Refusal::NotStored { reason }));
            }
            None => answers.extend(item.reply),
            Some(Ok(head)) => {
                item.progress.send_modify(|progress| progress.stored = head.seq.0);
                answers.extend(item.reply);
            }
            Some(Err(refused)) => {
                tracing::warn!(%refused, "a batch was not appended");
                item.void(&Refusal::NotStored { reason: refused.to_string() });
            }
        }
    }
    give(answers, runtime);
    Ok(())
}

/// Tells those who wait what came of it.
fn give(answers: Vec<(Reply, Result<Done, Refusal>)>, runtime: &Handle) {
    let many = answers.len() >= TOLD_WITHIN;
    let all = move || answers.into_iter().for_each(|answered| answer(Some(answered), None));
    // To wake a task from outside of the runtime costs a lock, and often a system call. Where there are many, one
    // task is woken that wakes the others from within.
    if many { drop(runtime.spawn(async move { all() })) } else { all() }
}

impl Queued {
    /// What was decided is void, and with it all that its team decided on top of it.
    fn void(self, refusal: &Refusal) {
        let next = self.decided_in + 1;
        self.progress.send_modify(|progress| progress.epoch = progress.epoch.max(next));
        self.voided.notify_one();
        answer(self.reply, Some(refusal));
    }
}

fn answer(reply: Option<(Reply, Result<Done, Refusal>)>, instead: Option<&Refusal>) {
    if let Some((reply, outcome)) = reply {
        // Who asked may have gone; what was stored is stored.
        drop(reply.send(instead.map_or(outcome, |refusal| Err(refusal.clone()))));
    }
}
