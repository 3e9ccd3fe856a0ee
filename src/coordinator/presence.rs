//! Who will hear: facts about now, kept in memory and never stored.

use crate::protocol::name::MemberName;
use crate::protocol::time::{Span, Time};

/// How long a member who was woken, or spoke since, is taken to think.
pub(super) const THINKING_MAX: Span = Span::seconds(600);

/// How long a member who spoke after its wake may take to listen again.
const REARMING_SPOKEN_MAX: Span = Span::seconds(120);

/// How long a member whose listener went away without a wake may take to listen again.
const REARMING_MAX: Span = Span::seconds(10);

/// Whether a wake will reach a member now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// A stream is open, and a wake will reach it.
    Listening,
    /// It was woken, and works.
    Thinking,
    /// Its listener went away without a wake, a moment ago.
    ReArming,
    /// It spoke, and did not listen again.
    Deaf,
    /// It was seen before, and nothing of it is connected now.
    Offline,
    /// It was never seen.
    NotJoined,
}

impl Presence {
    /// Every presence.
    pub const ALL: &[Self] =
        &[Self::Listening, Self::Thinking, Self::ReArming, Self::Deaf, Self::Offline, Self::NotJoined];

    /// The one of that stable name; a name that this version doesn't know is nobody's presence now.
    pub fn named(name: &str) -> Self {
        Self::ALL.iter().copied().find(|known| known.as_str() == name).unwrap_or(Self::Offline)
    }

    /// Its stable name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Listening => "listening",
            Self::Thinking => "thinking",
            Self::ReArming => "re-arming",
            Self::Deaf => "deaf",
            Self::Offline => "offline",
            Self::NotJoined => "not-joined",
        }
    }
}

/// What became of the news that a command made for a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WakeOutcome {
    /// It reached the member.
    Woke,
    /// It waits for the member.
    Stored,
}

impl WakeOutcome {
    /// Its stable name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Woke => "woke",
            Self::Stored => "stored",
        }
    }
}

/// A member whose obligations a command changed, and whether it will hear of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wake {
    /// The member.
    pub member: MemberName,
    /// What became of it.
    pub outcome: WakeOutcome,
    /// Whether a wake will reach it now.
    pub presence: Presence,
    /// Since when; nothing where it was always so.
    pub since: Option<Time>,
}

/// What was heard of one member since the server started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Seen {
    /// When it gave a sign of itself last, whether a server ran since or not.
    heard: Option<Time>,
    spoke: Option<Time>,
    listener: Option<ListenerSeen>,
}

/// What was last heard of a member's listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ListenerSeen {
    Listens(Time),
    /// A wake was sent to it, and perhaps taken.
    Woken(Time, bool),
    Left(Time),
}

impl Seen {
    pub(super) fn spoke(&mut self, at: Time) {
        self.heard = Some(at);
        self.spoke = Some(at);
    }

    pub(super) fn listens(&mut self, at: Time) {
        self.heard = Some(at);
        self.listener = Some(ListenerSeen::Listens(at));
    }

    /// A wake was sent: from then on it thinks.
    pub(super) fn woken(&mut self, at: Time) {
        if !matches!(self.listener, Some(ListenerSeen::Woken(..))) {
            self.listener = Some(ListenerSeen::Woken(at, false));
        }
    }

    /// The wake that was sent was taken.
    pub(super) fn took(&mut self, at: Time) {
        self.heard = Some(at);
        self.woken(at);
        if let Some(ListenerSeen::Woken(_, taken)) = &mut self.listener {
            *taken = true;
        }
    }

    /// Nothing of its listener is connected any longer.
    pub(super) fn left(&mut self, at: Time) {
        if matches!(self.listener, Some(ListenerSeen::Listens(_) | ListenerSeen::Woken(_, false))) {
            self.heard = Some(at);
            self.listener = Some(ListenerSeen::Left(at));
        }
    }

    /// Whether it ever listened to this process.
    pub(super) fn listened(&self) -> bool {
        self.listener.is_some()
    }

    /// When it gave a sign of itself last.
    pub(super) fn heard(&self) -> Option<Time> {
        self.heard
    }

    /// Nobody is blamed for a stretch in which no server ran.
    pub(super) fn resumed(&mut self, from: Time, to: Time) {
        let later = |at: &mut Time| *at = passed_over(*at, from, to);
        self.spoke.iter_mut().for_each(later);
        if let Some(ListenerSeen::Listens(at) | ListenerSeen::Woken(at, _) | ListenerSeen::Left(at)) =
            &mut self.listener
        {
            later(at);
        }
    }

    /// Whether a wake reaches it now, and since when that is so. `known` says whether it was here before this
    /// process was.
    pub(super) fn presence(&self, now: Time, known: bool) -> (Presence, Option<Time>) {
        match (self.listener, self.spoke) {
            (Some(ListenerSeen::Listens(at)), _) => (Presence::Listening, Some(at)),
            (Some(ListenerSeen::Woken(at, _)), Some(spoke)) if spoke > at => {
                let silent = now - spoke > REARMING_SPOKEN_MAX;
                if silent { (Presence::Deaf, Some(spoke)) } else { (Presence::Thinking, Some(at)) }
            }
            (Some(ListenerSeen::Woken(at, _)), _) if now - at <= THINKING_MAX => {
                (Presence::Thinking, Some(at))
            }
            (Some(ListenerSeen::Woken(at, _)), _) => (Presence::Deaf, Some(at)),
            (Some(ListenerSeen::Left(at)), _) if now - at <= REARMING_MAX => (Presence::ReArming, Some(at)),
            (Some(ListenerSeen::Left(at)), Some(spoke)) if spoke > at => (Presence::Deaf, Some(spoke)),
            (Some(ListenerSeen::Left(at)), _) => (Presence::Offline, Some(at)),
            (None, Some(spoke)) => (Presence::Offline, Some(spoke)),
            (None, None) if known => (Presence::Offline, None),
            (None, None) => (Presence::NotJoined, None),
        }
    }
}

/// A moment, later by as much of a stretch in which no server ran as came after it.
pub(super) fn passed_over(at: Time, from: Time, to: Time) -> Time {
    if at < to { at + (to - from.max(at)) } else { at }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Time {
        Time(seconds * 1_000_000)
    }

    #[test]
    fn a_member_is_heard_of_as_what_it_did_last() {
        let mut seen = Seen::default();
        assert_eq!(seen.presence(at(0), false), (Presence::NotJoined, None));
        assert_eq!(seen.presence(at(0), true), (Presence::Offline, None));
        seen.spoke(at(1));
        assert_eq!(seen.presence(at(900), false), (Presence::Offline, Some(at(1))), "it never listened");
        seen.listens(at(10));
        assert_eq!(seen.presence(at(900), false), (Presence::Listening, Some(at(10))));
        seen.woken(at(20));
        seen.took(at(21));
        seen.left(at(22));
        assert_eq!(seen.presence(at(620), false), (Presence::Thinking, Some(at(20))));
        assert_eq!(seen.presence(at(621), false), (Presence::Deaf, Some(at(20))), "it never spoke");
        seen.spoke(at(30));
        assert_eq!(seen.presence(at(150), false), (Presence::Thinking, Some(at(20))));
        assert_eq!(seen.presence(at(151), false), (Presence::Deaf, Some(at(30))));
        seen.listens(at(200));
        seen.left(at(210));
        assert_eq!(seen.presence(at(220), false), (Presence::ReArming, Some(at(210))));
        assert_eq!(seen.presence(at(221), false), (Presence::Offline, Some(at(210))));
        seen.spoke(at(230));
        assert_eq!(seen.presence(at(231), false), (Presence::Deaf, Some(at(230))));
        seen.listens(at(300));
        seen.woken(at(301));
        seen.left(at(302));
        assert_eq!(
            seen.presence(at(303), false),
            (Presence::ReArming, Some(at(302))),
            "nobody took the wake"
        );
    }

    #[test]
    fn a_paused_server_blames_nobody() {
        let mut seen = Seen::default();
        seen.listens(at(0));
        seen.left(at(5));
        seen.resumed(at(10), at(1000));
        assert_eq!(seen.presence(at(1000), false), (Presence::ReArming, Some(at(995))));
        seen.resumed(at(900), at(990));
        assert_eq!(seen.presence(at(1006), false), (Presence::Offline, Some(at(995))), "it came later");
    }

    #[test]
    fn names_are_read_back() {
        for presence in Presence::ALL {
            assert_eq!(Presence::named(presence.as_str()), *presence);
        }
    }
}
