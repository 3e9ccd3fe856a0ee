//! One listener: blocked until its member owes something that it was not shown.
//!
//! It holds no team, so that one for which nothing is open sleeps while its members listen; and it runs only when
//! its bell rings. What it sends is computed from what is stored; that it was taken is told by another call.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::hearing::{Arming, Ear, Hearing};
use super::outcome::Refusal;
use super::team::TeamHandle;
use super::{Coordinator, READER};
pub use crate::protocol::delivery::Due;
use crate::protocol::name::{Actor, Digest, MemberName, Seq, TeamName};
use crate::protocol::time::{Span, Time};
use crate::protocol::{Event, Rejection, Team, Violation};
use crate::store::{Fault, Reader, Row};

/// How long a wake that was sent may wait until it is taken; then it is sent again, and after twice as long.
const TAKEN_WITHIN: Span = Span::seconds(10);
const TAKEN_WITHIN_MAX: Span = Span::seconds(300);

/// Events that one wake shows to whoever watches everything, and their bodies in bytes: it ends with the one that
/// reaches that.
const WATCHED_MAX: usize = 500;
const WATCHED_BYTES: usize = 1 << 20;

/// Rows of the log that are read at once.
const READ_MAX: usize = 64;

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
    /// The token speaks for nobody any longer.
    #[error("the token speaks for nobody here")]
    Stranger,
    /// Another listener of the same member took over, or the member may not watch everything.
    #[error("{0}")]
    Unmet(Rejection),
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
    /// Nothing is; something is to be shown once more, or in spite of all, then.
    Blocked(Option<Time>),
    /// A wake was sent, and is not taken yet.
    Sent(Sent),
    Over,
}

/// A wake that was sent. When it is sent again, it is computed anew.
#[derive(Clone, Copy)]
struct Sent {
    again_at: Time,
    /// How long it waits until then.
    within: Span,
    /// Up to where it showed the log.
    watched: Option<Seq>,
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
        debug_assert_ne!(member.as_str(), READER, "it is no member");
        if arming.watch && !handle.peek(|team| may_watch(team, &member)) {
            return Err(Turned::Unmet(Violation::NotAWatcher { member }.into()));
        }
        let hearing = handle.hearing().clone();
        let ear = hearing.arm(&member, arming.clone());
        handle.is_listened_to(&member);
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
                Phase::Rung => self.look(None).await,
                Phase::Blocked(again_at) => self.wait(*again_at, None).await,
                Phase::Sent(sent) => self.wait(Some(sent.again_at), Some(*sent)).await,
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

    /// Looks whether something is owed that was not shown, by what is stored. `sent` is a wake that nobody took in
    /// time: what it showed may be owed no longer, and other things may be.
    async fn look(&mut self, sent: Option<Sent>) -> Result<Option<Said>, Turned> {
        let handle = self.handle()?;
        let own = self.ear.own();
        let judge = handle.judge();
        let look = |team: &Team, now: Time| {
            let watched = self.arming.watch.then(|| (may_watch(team, &self.member), team.deliveries()));
            let watched = watched.map(|(may, deliveries)| may.then(|| deliveries.watched(&self.member)));
            (team.due(&*judge, now, &self.member), watched)
        };
        let ((mut due, watched), seq) = handle.read(look).await?;
        drop(handle);
        // Who was shown something before goes on from there; who never was watches from where it began.
        let shown = watched.flatten().filter(|shown| *shown > Seq(0));
        self.watched.get_or_insert(shown.unwrap_or(seq));
        due.owed.retain(|owed| self.arming.narrowed.admits(owed));
        // What the member brought about itself is not for ever: past half of its time it is shown all the same.
        let is_news = |id: &String| !own.contains(id) || due.late.contains(id);
        due.fresh.retain(|id| is_news(id) && due.owed.iter().any(|owed| owed.id == *id));
        let (events, watched) = match watched {
            None => (Vec::new(), None),
            Some(Some(watched)) => self.events(watched, seq).await?,
            Some(None) => {
                let member = self.member.clone();
                return Err(Turned::Unmet(Violation::NotAWatcher { member }.into()));
            }
        };
        if due.fresh.is_empty() && events.is_empty() {
            let armed = !std::mem::replace(&mut self.armed, true);
            if sent.is_some() {
                self.ear.lapsed();
            }
            self.phase = Phase::Blocked(due.again_at);
            return Ok(armed.then_some(Said::Armed { seq }));
        }
        self.ear.woke(&due);
        let within = sent.map_or(TAKEN_WITHIN, |sent| Span((sent.within.0 * 2).min(TAKEN_WITHIN_MAX.0)));
        self.phase = Phase::Sent(Sent { again_at: self.hearing.now() + within, within, watched });
        Ok(Some(Said::Woken(Box::new(Waking { due, events, watched, seq }))))
    }

    /// What others did since it was last shown, and up to where that is.
    async fn events(&mut self, shown: Seq, stored: Seq) -> Result<(Vec<Row>, Option<Seq>), Turned> {
        let after = shown.max(self.watched.unwrap_or(stored));
        if after >= stored {
            return Ok((Vec::new(), None));
        }
        let (reader, team, member) = (self.coordinator.reader(), self.team.clone(), self.member.clone());
        let news = move || news(&*reader, &team, &Actor::Member(member), after, stored);
        let damaged = |reason: String| Turned::Refused(Refusal::Damaged { reason });
        let read = tokio::task::spawn_blocking(news).await.map_err(|stopped| damaged(stopped.to_string()))?;
        let (rows, last) = read.map_err(|fault| damaged(fault.to_string()))?;
        if rows.is_empty() {
            // What it did itself is nothing to show it, now or later.
            self.watched = Some(last);
        }
        Ok((rows, Some(last)))
    }

    /// Waits for its bell, or for that time; `sent` is a wake that is not taken yet.
    async fn wait(&mut self, until: Option<Time>, sent: Option<Sent>) -> Result<Option<Said>, Turned> {
        let heed = match until {
            None => Some(self.ear.heed().await),
            Some(at) => tokio::select! {
                heed = self.ear.heed() => Some(heed),
                () = self.hearing.wait_until(at) => None,
            },
        };
        let Some(heed) = heed else { return self.look(sent).await };
        if heed.superseded {
            let member = self.member.clone();
            return Err(Turned::Unmet(Violation::Superseded { member }.into()));
        }
        if heed.ended {
            return Err(Turned::Refused(Refusal::Ended));
        }
        if let Some(taken) = heed.taken {
            self.phase = if self.stays { Phase::Rung } else { Phase::Over };
            if self.stays {
                // Who doesn't say what it was shown was shown what was sent last.
                let shown = taken.watched.or(sent.and_then(|sent| sent.watched));
                self.watched = self.watched.max(shown);
                self.ear.goes_on();
            }
        } else if heed.poked {
            match sent {
                None => self.phase = Phase::Rung,
                // Whoever is busy with it is not sent each thing that happens meanwhile; but what is new waits no
                // longer than the first time.
                Some(sent) => {
                    // A token that was ended hears nothing more.
                    self.handle()?;
                    let again_at = sent.again_at.min(self.hearing.now() + TAKEN_WITHIN);
                    self.phase = Phase::Sent(Sent { again_at, ..sent });
                }
            }
        }
        Ok(heed.own.map(Said::Own))
    }
}

fn may_watch(team: &Team, member: &MemberName) -> bool {
    team.adopted().is_some_and(|adopted| adopted.charter.may_watch(member))
}

/// What others did after one place of a log, as far as it is news and fits into one wake; and up to where that is.
fn news(
    reader: &dyn Reader,
    team: &TeamName,
    member: &Actor,
    mut after: Seq,
    stored: Seq,
) -> Result<(Vec<Row>, Seq), Fault> {
    let (mut news, mut bytes) = (Vec::new(), 0);
    while after < stored {
        let rows = reader.rows(team, Seq(after.0 + 1), READ_MAX)?;
        if rows.is_empty() {
            return Ok((news, stored));
        }
        for row in rows {
            if row.seq > stored || news.len() >= WATCHED_MAX || bytes >= WATCHED_BYTES {
                return Ok((news, after));
            }
            after = row.seq;
            if row.actor != *member && Event::is_news(&row.kind) {
                bytes += row.body.len();
                news.push(row);
            }
        }
    }
    Ok((news, after))
}
