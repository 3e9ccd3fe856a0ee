//! One listener: blocked until its member owes something that it was not shown.
//!
//! It holds no team, so that one for which nothing is open sleeps while its members listen; and it runs only when
//! its bell rings. What it sends is computed from what is stored; that it was taken is told by another call.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::hearing::{Arming, Ear, Hearing, Heed};
use super::team::{Refusal, TeamHandle};
use super::{Coordinator, READER};
use crate::protocol::Team;
use crate::protocol::charter::MemberKind;
pub use crate::protocol::delivery::Due;
use crate::protocol::name::{Actor, Digest, MemberName, Seq, TeamName};
use crate::protocol::time::{Span, Time};
use crate::store::Row;

/// How long a wake that was sent may wait until it is taken; then it is sent again, and after twice as long.
const TAKEN_WITHIN: Span = Span::seconds(10);
const TAKEN_WITHIN_MAX: Span = Span::seconds(300);

/// Events that one wake shows to whoever watches everything.
const WATCHED_MAX: usize = 500;

/// What a listener hears.
#[derive(Clone, Debug, PartialEq)]
pub enum Said {
    /// Nothing is owed that was not shown: it is blocked from here on.
    Armed {
        /// Up to where the log is stored.
        seq: Seq,
    },
    /// Its member owes something that it was not shown.
    Woken(Box<Waking>),
    /// What the member brought about itself: it wakes nobody, also after the connection was lost.
    Own(BTreeSet<String>),
}

/// A wake, as it is sent.
#[derive(Clone, Debug, PartialEq)]
pub struct Waking {
    /// What is owed, and which of it woke.
    pub due: Due,
    /// What happened, for whoever watches everything; oldest first.
    pub events: Vec<Row>,
    /// Up to where that is; nothing for whoever doesn't watch.
    pub watched: Option<Seq>,
    /// The place in the log that it reflects.
    pub seq: Seq,
}

/// Why a listener is over without a wake.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Turned {
    /// Another listener of the same member took over.
    #[error("another listener of the same member took over")]
    Superseded,
    /// The token speaks for nobody any longer.
    #[error("the token speaks for nobody here")]
    Stranger,
    /// Not everybody watches everything.
    #[error("{member} may not watch everything: it is no referee, and the charter does not say watch = true")]
    NoWatcher {
        /// Who asked.
        member: MemberName,
    },
    /// The server ends, or the team can't be read.
    #[error(transparent)]
    Refused(#[from] Refusal),
}

/// One listener.
pub struct Listening {
    coordinator: Coordinator,
    token: Digest,
    team: TeamName,
    member: MemberName,
    arming: Arming,
    /// Whether it goes on listening after a wake was taken.
    stays: bool,
    /// From where it watches, as long as it took no wake.
    watched: Option<Seq>,
    /// Whether it was told that it is blocked.
    armed: bool,
    ear: Ear,
    hearing: Arc<Hearing>,
    phase: Phase,
}

enum Phase {
    /// Something may be owed that it has not looked at.
    Rung,
    /// Nothing is; something that was shown is to be shown once more then.
    Blocked(Option<Time>),
    /// A wake was sent, and is not taken yet.
    Sent(Box<Waking>, Time, Span),
    Over,
}

impl Coordinator {
    /// A member begins to listen; a listener that it has is over. `watched` is up to where the log was shown to
    /// whoever watches everything, if that is known.
    pub fn listen(
        &self,
        token: &super::token::Token,
        arming: Arming,
        stays: bool,
        watched: Option<Seq>,
    ) -> Result<Listening, Turned> {
        let token = token.hash();
        let (handle, member) = self.speaks_for(&token).ok_or(Turned::Stranger)?;
        let may_watch = |team: &Team| {
            let charter = team.adopted().map(|adopted| &adopted.charter);
            let known = charter.and_then(|charter| charter.members.get(&member));
            known.is_some_and(|known| known.watch || known.kind == MemberKind::Referee)
        };
        debug_assert_ne!(member.as_str(), READER, "it is no member");
        if arming.watch && !handle.peek(may_watch) {
            return Err(Turned::NoWatcher { member });
        }
        let hearing = handle.hearing().clone();
        let ear = hearing.arm(&member, arming.clone());
        Ok(Listening {
            coordinator: self.clone(),
            token,
            team: handle.name().clone(),
            member,
            arming: Arming { own: BTreeSet::new(), ..arming },
            stays,
            watched,
            ear,
            hearing,
            armed: false,
            phase: Phase::Rung,
        })
    }
}

impl Listening {
    /// What it hears next; nothing once a wake was taken, unless it stays. Let go while it waits, it has missed
    /// nothing.
    pub async fn next(&mut self) -> Option<Result<Said, Turned>> {
        loop {
            let said = match &self.phase {
                Phase::Over => return None,
                Phase::Rung => self.look().await,
                Phase::Blocked(again_at) => self.wait(*again_at).await,
                Phase::Sent(_, again_at, within) => self.wait_until_taken(*again_at, *within).await,
            };
            match said {
                Ok(None) => {}
                Ok(Some(said)) => return Some(Ok(said)),
                Err(turned) => {
                    self.phase = Phase::Over;
                    return Some(Err(turned));
                }
            }
        }
    }

    /// The team, as long as the member may listen. It is let go at once.
    fn handle(&self) -> Result<TeamHandle, Turned> {
        let speaks = self.coordinator.speaks_for(&self.token);
        let known = speaks.filter(|(handle, member)| *handle.name() == self.team && *member == self.member);
        known.map(|(handle, _)| handle).ok_or(Turned::Stranger)
    }

    /// Looks whether something is owed that was not shown, by what is stored.
    async fn look(&mut self) -> Result<Option<Said>, Turned> {
        let handle = self.handle()?;
        let own = self.ear.own();
        let judge = handle.judge();
        let look = |team: &Team, now: Time| {
            (team.due(&*judge, now, &self.member), team.deliveries().watched(&self.member))
        };
        let ((mut due, watched), seq) = handle.read(look).await?;
        drop(handle);
        self.watched.get_or_insert(seq);
        due.owed.retain(|owed| self.arming.narrowed.admits(owed));
        due.fresh.retain(|id| !own.contains(id) && due.owed.iter().any(|owed| owed.id == *id));
        let (events, watched) =
            if self.arming.watch { self.events(watched, seq).await? } else { (Vec::new(), None) };
        if due.fresh.is_empty() && events.is_empty() {
            let armed = !std::mem::replace(&mut self.armed, true);
            self.phase = Phase::Blocked(due.again_at);
            return Ok(armed.then_some(Said::Armed { seq }));
        }
        self.ear.woke();
        let waking = Box::new(Waking { due, events, watched, seq });
        let again_at = self.hearing.now() + TAKEN_WITHIN;
        self.phase = Phase::Sent(waking.clone(), again_at, TAKEN_WITHIN);
        Ok(Some(Said::Woken(waking)))
    }

    /// What others did since it was last shown, and up to where that is.
    async fn events(&mut self, shown: Seq, stored: Seq) -> Result<(Vec<Row>, Option<Seq>), Turned> {
        // Who never took a wake watches from where it began.
        let after = if shown == Seq(0) {
            self.watched.unwrap_or(stored)
        } else {
            shown.max(self.watched.unwrap_or_default())
        };
        if after >= stored {
            return Ok((Vec::new(), None));
        }
        let (reader, team) = (self.coordinator.reader(), self.team.clone());
        let rows = move || reader.rows(&team, Seq(after.0 + 1), WATCHED_MAX);
        let damaged = |reason: String| Turned::Refused(Refusal::Damaged { reason });
        let rows = tokio::task::spawn_blocking(rows).await.map_err(|stopped| damaged(stopped.to_string()))?;
        let mut rows = rows.map_err(|fault| damaged(fault.to_string()))?;
        rows.retain(|row| row.seq <= stored);
        let last = rows.last().map_or(stored, |row| row.seq);
        let news = |row: &Row| {
            row.actor != Actor::Member(self.member.clone())
                && !["delivered", "owed-again"].contains(&&*row.kind)
        };
        rows.retain(news);
        if rows.is_empty() {
            // What it did itself is nothing to show it, now or later.
            self.watched = Some(last);
        }
        Ok((rows, Some(last)))
    }

    async fn wait(&mut self, again_at: Option<Time>) -> Result<Option<Said>, Turned> {
        let heed = match again_at {
            None => self.ear.heed().await,
            Some(at) => tokio::select! {
                heed = self.ear.heed() => heed,
                () = self.hearing.wait_until(at) => Heed { poked: true, ..Heed::default() },
            },
        };
        if heed.poked {
            self.phase = Phase::Rung;
        }
        Ok(still(heed)?.map(Said::Own))
    }

    async fn wait_until_taken(&mut self, again_at: Time, within: Span) -> Result<Option<Said>, Turned> {
        let heed = tokio::select! {
            heed = self.ear.heed() => Some(heed),
            () = self.hearing.wait_until(again_at) => None,
        };
        let Phase::Sent(waking, again_at, waits) = &mut self.phase else { return Ok(None) };
        let Some(heed) = heed else {
            *waits = Span((within.0 * 2).min(TAKEN_WITHIN_MAX.0));
            *again_at = self.hearing.now() + *waits;
            return Ok(Some(Said::Woken(waking.clone())));
        };
        let (acknowledged, watched) = (heed.acknowledged, waking.watched);
        let own = still(heed)?.map(Said::Own);
        if acknowledged {
            self.phase = if self.stays { Phase::Rung } else { Phase::Over };
            if self.stays {
                self.watched = self.watched.max(watched);
                self.ear.listens();
            }
        }
        Ok(own)
    }
}

/// What its member brought about itself, unless the listener is over.
fn still(heed: Heed) -> Result<Option<BTreeSet<String>>, Turned> {
    match heed {
        Heed { superseded: true, .. } => Err(Turned::Superseded),
        Heed { ended: true, .. } => Err(Turned::Refused(Refusal::Ended)),
        Heed { own, .. } => Ok(own),
    }
}
