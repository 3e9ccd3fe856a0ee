//! Who listens, and whom a wake reaches: a team's ears. In memory alone, also while the team sleeps.
//!
//! Each member has at most one listener. It is woken by name: what happens to others costs it nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use tokio::sync::Notify;

use super::presence::{Presence, Seen, THINKING_MAX, Wake, WakeOutcome, passed_over};
use super::{Clock, UNPOISONED};
use crate::protocol::delivery::{Acknowledge, Due};
use crate::protocol::escalation::{ReportUnheard, Silence, Unheard};
use crate::protocol::name::{MemberName, Seq, WakeId};
use crate::protocol::time::{Span, Time};
use crate::protocol::{Obligation, ObligationKind, Team};

/// What a listener wants to hear of; all, where nothing is named.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Narrowed {
    /// Only of these proposals, circles and objections, by their names.
    pub subjects: Vec<String>,
    /// Only of these kinds.
    pub kinds: Vec<ObligationKind>,
}

impl Narrowed {
    /// Whether that is among what it wants to hear of.
    pub fn admits(&self, owed: &Obligation) -> bool {
        let about = |name: &String| {
            let subject = owed.subject.as_str();
            // A name stands for all of its versions, and for what a circle holds now.
            subject
                .strip_prefix(name.as_str())
                .is_some_and(|rest| rest.is_empty() || rest.starts_with(['@', ':']))
        };
        (self.subjects.is_empty() || self.subjects.iter().any(about))
            && (self.kinds.is_empty() || self.kinds.contains(&owed.kind))
    }
}

/// How a listener begins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Arming {
    /// What it wants to hear of.
    pub narrowed: Narrowed,
    /// Whether everything that happens wakes it.
    pub watch: bool,
    /// What its member brought about itself while it listened, before its connection was lost: obligations, by
    /// their ids.
    pub own: BTreeSet<String>,
}

/// All ears of a team.
pub(super) struct Hearing {
    clock: Arc<dyn Clock>,
    /// By how much the team's time is ahead of the clock.
    ahead: Span,
    heard: Mutex<Heard>,
}

#[derive(Default)]
struct Heard {
    /// Since when it is known who hears; time in which no server ran counts for nothing.
    begun: Time,
    /// Until when it is known in which time no server ran, by the clock.
    gaps_told: Time,
    members: BTreeMap<MemberName, Member>,
    /// Members whose listeners watch everything.
    watching: BTreeSet<MemberName>,
    last: u64,
    /// The server ends: so does whoever listens.
    ended: bool,
}

#[derive(Default)]
struct Member {
    seen: Seen,
    listener: Option<Listener>,
    /// The wake that its listener sent last, until it is taken.
    sent: Option<Sending>,
}

/// A wake that was sent.
struct Sending {
    wake: WakeId,
    /// What it showed; and where something ended and is owed anew since, from which place in the log on.
    shown: BTreeMap<String, Option<Seq>>,
}

/// A wake that was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Taken {
    /// Up to where the log was shown, where its listener says so.
    pub(super) watched: Option<Seq>,
}

/// One listener, as whoever wakes it knows it.
struct Listener {
    number: u64,
    arming: Arming,
    poked: bool,
    /// Whether `arming.own` is not what the listener was last told.
    own_moved: bool,
    taken: Option<Taken>,
    bell: Arc<Notify>,
}

/// What a listener finds when its bell rings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Heed {
    /// Another listener of the same member took over.
    pub(super) superseded: bool,
    /// The server ends.
    pub(super) ended: bool,
    /// Something may be owed that wasn't.
    pub(super) poked: bool,
    /// The wake that it sent last was taken.
    pub(super) taken: Option<Taken>,
    /// What the member brought about itself, where that changed.
    pub(super) own: Option<BTreeSet<String>>,
}

impl Hearing {
    pub(super) fn new(clock: Arc<dyn Clock>, ahead: Span) -> Self {
        let now = clock.now();
        let heard = Heard { begun: now + ahead, gaps_told: now, ..Heard::default() };
        Self { clock, ahead, heard: Mutex::new(heard) }
    }

    /// The team's time.
    pub(super) fn now(&self) -> Time {
        self.clock.now() + self.ahead
    }

    /// Until it is that time of the team.
    pub(super) async fn wait_until(&self, at: Time) {
        self.clock.wait_until(Time(at.0.saturating_sub(self.ahead.0))).await;
    }

    /// By how much the team's time is ahead of the clock.
    pub(super) fn ahead(&self) -> Span {
        self.ahead
    }

    /// A member begins to listen; a listener that it has is over.
    pub(super) fn arm(self: &Arc<Self>, member: &MemberName, arming: Arming) -> Ear {
        let (now, bell) = (self.now(), Arc::new(Notify::new()));
        let mut heard = self.heard();
        heard.last += 1;
        let number = heard.last;
        if arming.watch {
            heard.watching.insert(member.clone());
        } else {
            heard.watching.remove(member);
        }
        let listener =
            Listener { number, arming, poked: false, own_moved: false, taken: None, bell: bell.clone() };
        let known = heard.members.entry(member.clone()).or_default();
        known.seen.listens(now);
        known.sent = None;
        if let Some(before) = known.listener.replace(listener) {
            before.bell.notify_one();
        }
        drop(heard);
        Ear { hearing: self.clone(), member: member.clone(), number, bell }
    }

    /// The member did something.
    pub(super) fn spoke(&self, member: &MemberName, at: Time) {
        let mut heard = self.heard();
        match heard.members.get_mut(member) {
            Some(known) => known.seen.spoke(at),
            None => heard.members.entry(member.clone()).or_default().seen.spoke(at),
        }
    }

    /// Members who owe something that they did not owe before hear of it, and what the one who brought it about
    /// owes by it wakes nobody. `fresh` is what is owed anew, up to that place in the log.
    pub(super) fn tell(
        &self,
        who: Option<&MemberName>,
        fresh: &[&Obligation],
        seq: Seq,
        known: impl Fn(&MemberName) -> bool,
    ) -> Vec<Wake> {
        let mut of: BTreeMap<&MemberName, Vec<&Obligation>> = BTreeMap::new();
        fresh.iter().for_each(|owed| of.entry(&owed.member).or_default().push(owed));
        if of.is_empty() {
            return Vec::new();
        }
        let now = self.now();
        let mut heard = self.heard();
        let mut woke = Vec::new();
        for (member, fresh) in of {
            let ids = || fresh.iter().map(|owed| owed.id.clone());
            let mut heard_of = heard.members.get_mut(member);
            if let Some(sent) = heard_of.as_mut().and_then(|known| known.sent.as_mut()) {
                sent.anew(&fresh, seq);
            }
            let listener = heard_of.and_then(|known| known.listener.as_mut());
            if who == Some(member) {
                if let Some(listener) = listener {
                    listener.arming.own.extend(ids());
                    listener.moved();
                }
                continue;
            }
            let mut hears = false;
            if let Some(listener) = listener {
                let own = listener.arming.own.len();
                listener.arming.own.retain(|id| !fresh.iter().any(|owed| owed.id == *id));
                if listener.arming.own.len() < own {
                    listener.moved();
                }
                hears = fresh.iter().any(|owed| listener.arming.narrowed.admits(owed));
                if hears {
                    listener.poke();
                }
            }
            let (presence, since) = heard.presence(member, now, known(member));
            let woken = hears && presence == Presence::Listening;
            let outcome = if woken { WakeOutcome::Woke } else { WakeOutcome::Stored };
            woke.push(Wake { member: member.clone(), outcome, presence, since });
        }
        woke
    }

    /// Something happened: whoever watches everything is woken, but who did it.
    pub(super) fn happened(&self, who: Option<&MemberName>) {
        let mut heard = self.heard();
        let Heard { members, watching, .. } = &mut *heard;
        for member in watching.iter().filter(|member| who != Some(*member)) {
            if let Some(listener) = members.get_mut(member).and_then(|known| known.listener.as_mut()) {
                listener.poke();
            }
        }
    }

    /// Has these members' listeners look again; everybody's, where none is named.
    pub(super) fn poke(&self, only: Option<&BTreeSet<MemberName>>) {
        let mut heard = self.heard();
        for (member, known) in &mut heard.members {
            if let Some(listener) = known.listener.as_mut()
                && only.is_none_or(|only| only.contains(member))
            {
                listener.poke();
            }
        }
    }

    /// Ends every listener, now and later.
    pub(super) fn end(&self) {
        self.heard().ended = true;
        self.poke(None);
    }

    /// Whether anybody listened to this process, so that it may go silent.
    pub(super) fn may_go_silent(&self) -> bool {
        self.heard().members.values().any(|known| known.seen.listened())
    }

    /// Whether anybody listens.
    pub(super) fn is_heard(&self) -> bool {
        self.heard().members.values().any(|known| known.listener.is_some())
    }

    /// Leaves out what a member was not shown by the wake that it took: what ended and is owed anew since.
    pub(super) fn keep_shown(&self, member: &MemberName, took: &mut Acknowledge) {
        let heard = self.heard();
        let sent = heard.members.get(member).and_then(|known| known.sent.as_ref());
        if let Some(sent) = sent.filter(|sent| sent.wake == took.wake) {
            let anew = |id: &String| sent.shown.get(id).copied().flatten();
            took.obligations.retain(|id| anew(id).is_none_or(|anew| anew <= took.seq));
        }
    }

    /// The member took that wake. Of one that its listener did not send, or that was taken before, that listener
    /// hears nothing.
    pub(super) fn acknowledged(&self, member: &MemberName, wake: WakeId, taken: Taken) {
        let now = self.now();
        let mut heard = self.heard();
        let known = heard.members.entry(member.clone()).or_default();
        let sent = known.sent.take_if(|sent| sent.wake == wake).is_some();
        if sent || known.listener.is_none() {
            known.seen.took(now);
        }
        if let Some(listener) = known.listener.as_mut().filter(|_| sent) {
            listener.taken = Some(taken);
            listener.bell.notify_one();
        }
    }

    /// Which of the team's members listened once, to this process or the one before, and are reached by no wake now.
    pub(super) fn unheard(&self, team: &Team) -> ReportUnheard {
        let now = self.now();
        let heard = self.heard();
        let mut report = ReportUnheard::default();
        for member in members(team) {
            let seen = heard.members.get(member).map(|known| known.seen).unwrap_or_default();
            if !seen.listened() && !team.deliveries().knows(member) && !team.is_told_unheard(member) {
                continue;
            }
            let (presence, since) = seen.presence(now, true);
            let how = match presence {
                Presence::Deaf => Silence::Deaf,
                Presence::Offline => Silence::Offline,
                _ => continue,
            };
            if seen.heard().is_none() && now - heard.begun <= THINKING_MAX {
                // It may have taken a wake just before, and work.
                report.unknown.insert(member.clone());
                continue;
            }
            let since = since.unwrap_or(heard.begun);
            report.members.push(Unheard { member: member.clone(), how, since, heard: seen.heard() });
        }
        report
    }

    /// Whether a wake reaches the team's members now, and since when that is so.
    pub(super) fn roster(&self, team: &Team) -> Vec<(MemberName, Presence, Option<Time>)> {
        let now = self.now();
        let heard = self.heard();
        let one = |member: &MemberName| {
            let (presence, since) = heard.presence(member, now, team.deliveries().knows(member));
            (member.clone(), presence, since)
        };
        members(team).map(one).collect()
    }

    /// What was heard. A stretch in which no server ran is nobody's silence, whoever looks first after it.
    fn heard(&self) -> std::sync::MutexGuard<'_, Heard> {
        let mut heard = self.heard.lock().expect(UNPOISONED);
        for (from, to) in self.clock.gaps(heard.gaps_told) {
            // One that still lasts is told again, longer.
            let from = from.max(heard.gaps_told);
            heard.gaps_told = to;
            heard.resumed(from + self.ahead, to + self.ahead);
        }
        heard
    }
}

fn members(team: &Team) -> impl Iterator<Item = &MemberName> {
    team.adopted().into_iter().flat_map(|adopted| adopted.charter.members.keys())
}

impl Heard {
    fn resumed(&mut self, from: Time, to: Time) {
        self.begun = passed_over(self.begun, from, to);
        for known in self.members.values_mut() {
            known.seen.resumed(from, to);
        }
    }

    fn presence(&self, member: &MemberName, now: Time, known: bool) -> (Presence, Option<Time>) {
        match self.members.get(member) {
            Some(found) => found.seen.presence(now, known),
            None => Seen::default().presence(now, known),
        }
    }
}

impl Sending {
    fn anew(&mut self, fresh: &[&Obligation], seq: Seq) {
        for owed in fresh {
            if let Some(anew) = self.shown.get_mut(&owed.id) {
                *anew = Some(seq);
            }
        }
    }
}

impl Listener {
    fn poke(&mut self) {
        self.poked = true;
        self.bell.notify_one();
    }

    fn moved(&mut self) {
        self.own_moved = true;
        self.bell.notify_one();
    }
}

/// A listener's own end. Dropped, nobody listens any longer.
pub(super) struct Ear {
    hearing: Arc<Hearing>,
    member: MemberName,
    number: u64,
    bell: Arc<Notify>,
}

impl Ear {
    /// Waits until there is something to heed.
    pub(super) async fn heed(&self) -> Heed {
        loop {
            let heed = self.look();
            if heed != Heed::default() {
                return heed;
            }
            // What rang in between left its permit.
            self.bell.notified().await;
        }
    }

    fn look(&self) -> Heed {
        let mut heard = self.hearing.heard();
        let ended = heard.ended;
        let listener = heard.members.get_mut(&self.member).and_then(|known| known.listener.as_mut());
        let Some(listener) = listener.filter(|listener| listener.number == self.number) else {
            return Heed { superseded: true, ..Heed::default() };
        };
        Heed {
            superseded: false,
            ended,
            poked: std::mem::take(&mut listener.poked),
            taken: listener.taken.take(),
            own: std::mem::take(&mut listener.own_moved).then(|| listener.arming.own.clone()),
        }
    }

    /// What the member brought about itself while this one listens.
    pub(super) fn own(&self) -> BTreeSet<String> {
        let heard = self.hearing.heard();
        let known = heard.members.get(&self.member).and_then(|known| known.listener.as_ref());
        known
            .filter(|known| known.number == self.number)
            .map(|known| known.arming.own.clone())
            .unwrap_or_default()
    }

    /// A wake was sent: until it listens again, the member thinks.
    pub(super) fn woke(&self, due: &Due) {
        self.if_current(|known, now| {
            let before = known.sent.take().filter(|sent| sent.wake == due.wake);
            let mut shown = before.map(|sent| sent.shown).unwrap_or_default();
            for owed in &due.owed {
                shown.entry(owed.id.clone()).or_default();
            }
            known.sent = Some(Sending { wake: due.wake, shown });
            known.seen.woken(now);
        });
    }

    /// What it sent is owed no longer, and it is blocked again.
    pub(super) fn lapsed(&self) {
        self.if_current(|known, now| known.seen.listens(now));
    }

    /// Its wake was taken, and it goes on listening. The act is over: what it made its member owe is news now.
    pub(super) fn goes_on(&self) {
        self.if_current(|known, now| {
            known.seen.listens(now);
            if let Some(listener) = &mut known.listener
                && !std::mem::take(&mut listener.arming.own).is_empty()
            {
                listener.moved();
            }
        });
    }

    fn if_current(&self, change: impl FnOnce(&mut Member, Time)) {
        let now = self.hearing.now();
        let mut heard = self.hearing.heard();
        if let Some(known) = heard.members.get_mut(&self.member)
            && known.listener.as_ref().is_some_and(|listener| listener.number == self.number)
        {
            change(known, now);
        }
    }
}

impl Drop for Ear {
    fn drop(&mut self) {
        let now = self.hearing.now();
        let mut heard = self.hearing.heard();
        let Heard { members, watching, .. } = &mut *heard;
        if let Some(known) = members.get_mut(&self.member)
            && known.listener.take_if(|listener| listener.number == self.number).is_some()
        {
            watching.remove(&self.member);
            known.seen.left(now);
        }
    }
}
