//! One-time links: how a member comes in without typing a token.
//!
//! What signs in stands behind the link's `#`, so no browser sends it to anybody, no log has it, and no other page is
//! told of it. The page exchanges it for a token of its own.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Mutex;

use crate::coordinator::token::Token;
use crate::protocol::name::{Digest, MemberName, TeamName};
use crate::protocol::time::{Span, Time};

/// How long a link signs in.
pub const LINK_TIME_MAX: Span = Span(10 * 60 * 1_000_000);

/// Links that wait to be used.
const LINKS_MAX: usize = 1_000;

/// The links that wait to be used.
#[derive(Debug)]
pub struct Links {
    addr: SocketAddr,
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    /// By the hash of what signs in.
    waiting: BTreeMap<Digest, Link>,
    /// Whose tokens are being ended, and by how many calls.
    ending: BTreeMap<Whose, usize>,
}

type Whose = (TeamName, MemberName);

#[derive(Debug)]
struct Link {
    whose: Whose,
    until: Time,
    /// Whether it was used, and its token isn't given out yet.
    used: bool,
}

/// That a member's tokens are being ended. While it is held, nobody comes in by a link of that member.
#[derive(Debug)]
#[must_use = "links sign in again once it is dropped"]
pub struct Ending<'a> {
    links: &'a Links,
    whose: Whose,
}

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        let mut kept = self.links.kept.lock().expect(UNPOISONED);
        if let Some(count) = kept.ending.get_mut(&self.whose) {
            *count -= 1;
            if *count == 0 {
                kept.ending.remove(&self.whose);
            }
        }
    }
}

/// Why there is no link.
#[derive(Debug, thiserror::Error)]
pub enum LinkFault {
    /// As many wait as may.
    #[error("as many links wait to be used as may at the same time")]
    TooMany,
    /// Whoever asked has no token any longer.
    #[error("the token that asked for a link has ended")]
    Ended,
    /// There are no random bits.
    #[error("no link could be made: {0}")]
    Random(#[from] getrandom::Error),
}

impl Links {
    /// To the page that is served there.
    pub fn to(addr: SocketAddr) -> Self {
        Self { addr, kept: Mutex::default() }
    }

    /// Where the page is.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// A fresh link for that member, and until when it signs in. `still` says whether whoever asks may still have one;
    /// it is asked where no ending comes in between.
    pub fn issue(
        &self,
        team: &TeamName,
        member: &MemberName,
        now: Time,
        still: impl FnOnce() -> bool,
    ) -> Result<(String, Time), LinkFault> {
        let secret = Token::generate()?;
        let until = now + LINK_TIME_MAX;
        let whose = (team.clone(), member.clone());
        let mut kept = self.kept.lock().expect(UNPOISONED);
        if kept.ending.contains_key(&whose) || !still() {
            return Err(LinkFault::Ended);
        }
        kept.waiting.retain(|_, link| link.until > now);
        if kept.waiting.len() >= LINKS_MAX {
            return Err(LinkFault::TooMany);
        }
        kept.waiting.insert(secret.hash(), Link { whose, until, used: false });
        Ok((format!("http://{}/#in={}", self.addr, secret.expose()), until))
    }

    /// Ends the member's links, also those that were used and whose token isn't given out yet. It stays so until what
    /// is given is dropped: by then the member's tokens have ended, too.
    pub fn end(&self, team: &TeamName, member: &MemberName) -> Ending<'_> {
        let whose = (team.clone(), member.clone());
        let mut kept = self.kept.lock().expect(UNPOISONED);
        kept.waiting.retain(|_, link| link.whose != whose);
        *kept.ending.entry(whose.clone()).or_default() += 1;
        Ending { links: self, whose }
    }

    /// Whom it signs in; it is used up by that. The token may be given out once [`settle`](Self::settle) says so.
    pub(super) fn exchange(&self, secret: &Token, now: Time) -> Option<(TeamName, MemberName)> {
        let mut kept = self.kept.lock().expect(UNPOISONED);
        let link = kept.waiting.get_mut(&secret.hash())?;
        if link.used {
            return None;
        }
        link.used = true;
        let (whose, until) = (link.whose.clone(), link.until);
        if until > now {
            return Some(whose);
        }
        kept.waiting.remove(&secret.hash());
        None
    }

    /// Whether nothing ended the link since it was exchanged.
    pub(super) fn settle(&self, secret: &Token) -> bool {
        self.kept.lock().expect(UNPOISONED).waiting.remove(&secret.hash()).is_some()
    }
}

const UNPOISONED: &str = "nothing panics while it holds this lock";

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(link: &str) -> Token {
        Token::parse(link.split_once("#in=").unwrap().1).unwrap()
    }

    #[test]
    fn a_link_signs_in_once_and_not_for_ever() {
        let links = Links::to("127.0.0.1:7412".parse().unwrap());
        let (team, dana) = ("atlas".parse().unwrap(), "dana".parse::<MemberName>().unwrap());
        let (link, until) = links.issue(&team, &dana, Time(0), || true).unwrap();
        assert_eq!(
            (until, link.starts_with("http://127.0.0.1:7412/#in=csgn_")),
            (Time(LINK_TIME_MAX.0), true)
        );
        assert_eq!(links.exchange(&secret(&link), Time(1)), Some((team.clone(), dana.clone())));
        assert_eq!(links.exchange(&secret(&link), Time(1)), None);
        assert!(links.settle(&secret(&link)) && !links.settle(&secret(&link)));

        let (late, until) = links.issue(&team, &dana, Time(0), || true).unwrap();
        assert_eq!(links.exchange(&secret(&late), until), None);
        assert_eq!(links.exchange(&Token::generate().unwrap(), Time(0)), None);
    }

    #[test]
    fn links_that_nobody_uses_do_not_pile_up() {
        let links = Links::to("127.0.0.1:7412".parse().unwrap());
        let (team, dana) = ("atlas".parse().unwrap(), "dana".parse().unwrap());
        for _ in 0..LINKS_MAX {
            links.issue(&team, &dana, Time(0), || true).unwrap();
        }
        assert!(matches!(links.issue(&team, &dana, Time(0), || true), Err(LinkFault::TooMany)));
        links.issue(&team, &dana, Time(LINK_TIME_MAX.0), || true).unwrap();
    }

    #[test]
    fn who_has_no_token_any_longer_comes_in_by_no_link() {
        let links = Links::to("127.0.0.1:7412".parse().unwrap());
        let (team, dana) = ("atlas".parse().unwrap(), "dana".parse().unwrap());
        let sec = "sec".parse().unwrap();
        let issue = |member| links.issue(&team, member, Time(0), || true);
        let (unused, used) = (issue(&dana).unwrap().0, issue(&dana).unwrap().0);
        let other = issue(&sec).unwrap().0;
        links.exchange(&secret(&used), Time(1)).unwrap();
        let ending = links.end(&team, &dana);
        // What is under way gives no token out, and nothing begins before the tokens have ended.
        assert!(!links.settle(&secret(&used)));
        assert_eq!(links.exchange(&secret(&unused), Time(1)), None);
        assert!(matches!(issue(&dana), Err(LinkFault::Ended)));
        drop(ending);
        // Whoever asked before and comes late is asked again.
        assert!(matches!(links.issue(&team, &dana, Time(0), || false), Err(LinkFault::Ended)));
        assert!(issue(&dana).is_ok());
        links.exchange(&secret(&other), Time(1)).unwrap();
        assert!(links.settle(&secret(&other)));
    }
}
