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
    /// By the hash of what signs in, and until when.
    waiting: Mutex<BTreeMap<Digest, Link>>,
}

#[derive(Debug)]
struct Link {
    team: TeamName,
    member: MemberName,
    until: Time,
}

/// Why there is no link.
#[derive(Debug, thiserror::Error)]
pub enum LinkFault {
    /// As many wait as may.
    #[error("as many links wait to be used as may at the same time")]
    TooMany,
    /// There are no random bits.
    #[error("no link could be made: {0}")]
    Random(#[from] getrandom::Error),
}

impl Links {
    /// To the page that is served there.
    pub fn to(addr: SocketAddr) -> Self {
        Self { addr, waiting: Mutex::default() }
    }

    /// Where the page is.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// A fresh link for that member, and until when it signs in.
    pub fn issue(
        &self,
        team: &TeamName,
        member: &MemberName,
        now: Time,
    ) -> Result<(String, Time), LinkFault> {
        let secret = Token::generate()?;
        let until = now + LINK_TIME_MAX;
        let mut waiting = self.waiting.lock().expect(UNPOISONED);
        waiting.retain(|_, link| link.until > now);
        if waiting.len() >= LINKS_MAX {
            return Err(LinkFault::TooMany);
        }
        let link = Link { team: team.clone(), member: member.clone(), until };
        waiting.insert(secret.hash(), link);
        Ok((format!("http://{}/#in={}", self.addr, secret.expose()), until))
    }

    /// Whom it signs in; it is used up by that.
    pub(super) fn exchange(&self, secret: &Token, now: Time) -> Option<(TeamName, MemberName)> {
        let link = self.waiting.lock().expect(UNPOISONED).remove(&secret.hash())?;
        (link.until > now).then_some((link.team, link.member))
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
        let (link, until) = links.issue(&team, &dana, Time(0)).unwrap();
        assert_eq!(
            (until, link.starts_with("http://127.0.0.1:7412/#in=csgn_")),
            (Time(LINK_TIME_MAX.0), true)
        );
        assert_eq!(links.exchange(&secret(&link), Time(1)), Some((team.clone(), dana.clone())));
        assert_eq!(links.exchange(&secret(&link), Time(1)), None);

        let (late, until) = links.issue(&team, &dana, Time(0)).unwrap();
        assert_eq!(links.exchange(&secret(&late), until), None);
        assert_eq!(links.exchange(&Token::generate().unwrap(), Time(0)), None);
    }

    #[test]
    fn links_that_nobody_uses_do_not_pile_up() {
        let links = Links::to("127.0.0.1:7412".parse().unwrap());
        let (team, dana) = ("atlas".parse().unwrap(), "dana".parse().unwrap());
        for _ in 0..LINKS_MAX {
            links.issue(&team, &dana, Time(0)).unwrap();
        }
        assert!(matches!(links.issue(&team, &dana, Time(0)), Err(LinkFault::TooMany)));
        links.issue(&team, &dana, Time(LINK_TIME_MAX.0)).unwrap();
    }
}
