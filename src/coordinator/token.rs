//! Tokens: 256 random bits that speak for one member. The server keeps their hash alone.

use std::fmt;

use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest as _, Sha256};

use crate::protocol::name::Digest;

/// What a token begins with, so that scanners for secrets know it.
pub const TOKEN_PREFIX: &str = "csgn_";

const TOKEN_BYTES: usize = 32;

/// A token. It does not print.
#[derive(Clone)]
pub struct Token(SecretString);

/// A text that has not a token's form.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("a token is csgn_ and 64 of 0-9 and a-f")]
pub struct NotAToken;

impl Token {
    /// A fresh one.
    pub fn generate() -> Result<Self, getrandom::Error> {
        use fmt::Write;
        let mut bytes = [0_u8; TOKEN_BYTES];
        getrandom::fill(&mut bytes)?;
        let mut text = String::from(TOKEN_PREFIX);
        for byte in bytes {
            write!(text, "{byte:02x}").expect("a String takes every write");
        }
        Ok(Self(text.into()))
    }

    /// The token of that text; white space around it, as a file leaves it, does not count.
    pub fn parse(text: &str) -> Result<Self, NotAToken> {
        let text = text.trim();
        let digits = text.strip_prefix(TOKEN_PREFIX).ok_or(NotAToken)?;
        let hexadecimal = digits.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        if digits.len() != TOKEN_BYTES * 2 || !hexadecimal {
            return Err(NotAToken);
        }
        Ok(Self(text.to_owned().into()))
    }

    /// What the server keeps. Looking it up takes no longer for a near miss: who does not know 256
    /// random bits can't choose their hash.
    pub fn hash(&self) -> Digest {
        Digest::of_bytes(Sha256::digest(self.expose()).into())
    }

    /// The text, for the one file or header that it goes into.
    pub fn expose(&self) -> &str {
        self.0.expose_secret()
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("csgn_…")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_reads_back_and_does_not_print() {
        let token = Token::generate().unwrap();
        let again = Token::parse(&format!("  {}\n", token.expose())).unwrap();
        assert_eq!(token.hash(), again.hash());
        assert_eq!(format!("{token:?}"), "csgn_…");
        for bad in ["", "csgn_", "csgn_00", &token.expose()[1..], &token.expose().to_uppercase()] {
            assert!(Token::parse(bad).is_err(), "{bad}");
        }
    }
}
