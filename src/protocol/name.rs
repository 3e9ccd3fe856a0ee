//! Names and references: how everything in a team is called, in one canonical form.
//!
//! A name is lower-case ASCII, so that no two names differ only by case, script, normal form or an
//! invisible character. Two names that merely look alike share a [`skeleton`] and a charter that
//! holds both is refused.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// The longest name, in bytes.
pub const NAME_BYTES_MAX: usize = 64;

/// Hexadecimal digits of a digest that a reference shows.
pub const REFERENCE_DIGITS: usize = 12;

/// Why a text is not a name, a digest or a reference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Malformed {
    /// What the text was meant to be: "a member's name", "a version reference"…
    pub expected: &'static str,
    /// The text as it came, control characters shown.
    pub given: String,
    /// The form that would be accepted.
    pub form: &'static str,
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\" is not {}: {}", self.given, self.expected, self.form)
    }
}

impl std::error::Error for Malformed {}

/// Shows a text that may be hostile on one line: control, bidirectional, zero-width and tag
/// characters become visible escapes, and what is longer than `chars_max` ends in "…".
pub fn shown(text: &str, chars_max: usize) -> String {
    let mut out = String::new();
    for (index, c) in text.chars().enumerate() {
        if index == chars_max {
            out.push('…');
            break;
        }
        push_visible(&mut out, c);
    }
    out
}

/// Appends `c`, or its escape where a terminal or a page would obey it instead of showing it.
pub fn push_visible(out: &mut String, c: char) {
    if is_hidden(c) {
        out.extend(c.escape_unicode());
    } else {
        out.push(c);
    }
}

/// Whether a terminal or page would act on `c`, or show nothing for it.
pub fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{2800}' | '\u{3164}' | '\u{fdd0}'..='\u{fdef}'
            | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
            | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
        || u32::from(c) & 0xfffe == 0xfffe
}

/// The words that remedies and help texts write where a text or a command of one's own belongs.
pub const PLACEHOLDERS: [&str; 4] = ["TEXT", "CMD", "…", "..."];

/// Whether a text says nothing: it is empty, or nothing in it shows, or it is a placeholder that was left
/// as it stood.
pub fn says_nothing(text: &str) -> bool {
    let nothing = |c: char| c.is_whitespace() || is_hidden(c);
    text.chars().all(nothing) || PLACEHOLDERS.contains(&text.trim_matches(nothing))
}

/// What two names that look alike have in common: separators dropped, and characters that are
/// taken for one another folded together (0 and o; 1, i and l; rn and m; vv and w).
pub fn skeleton(name: &str) -> String {
    let folded: String = name
        .chars()
        .filter(char::is_ascii_alphanumeric)
        .map(|c| match c {
            '0' => 'o',
            '1' | 'i' => 'l',
            other => other,
        })
        .collect();
    folded.replace("rn", "m").replace("vv", "w")
}

/// The nearest of `known` to `given`, where one is near enough to be meant. A text that is longer than any
/// name is meant for none: the distance costs the product of the lengths.
pub fn nearest<'a>(given: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if given.len() > NAME_BYTES_MAX {
        return None;
    }
    known
        .into_iter()
        .map(|word| (strsim::damerau_levenshtein(given, word), word))
        .filter(|(distance, word)| *distance <= 1 + word.len() / 3)
        .min()
        .map(|(_, word)| word)
}

fn check_name(text: &str, expected: &'static str) -> Result<(), Malformed> {
    let bytes = text.as_bytes();
    let separator = |b: u8| matches!(b, b'-' | b'_' | b'.');
    let well_formed = !bytes.is_empty()
        && bytes.len() <= NAME_BYTES_MAX
        && bytes[0].is_ascii_lowercase()
        && bytes.iter().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || separator(*b))
        && !bytes.windows(2).any(|pair| separator(pair[0]) && separator(pair[1]))
        && !separator(bytes[bytes.len() - 1]);
    if well_formed {
        return Ok(());
    }
    Err(Malformed {
        expected,
        given: shown(text, NAME_BYTES_MAX),
        form: "1 to 64 of a-z and 0-9, a letter first, with single - _ or . between them",
    })
}

macro_rules! names {
    ($($(#[$doc:meta])* $name:ident = $expected:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(Arc<str>);

        impl $name {
            /// The name's text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = Malformed;
            fn from_str(text: &str) -> Result<Self, Malformed> {
                check_name(text, $expected)?;
                Ok(Self(text.into()))
            }
        }

        impl TryFrom<String> for $name {
            type Error = Malformed;
            fn try_from(text: String) -> Result<Self, Malformed> {
                text.parse()
            }
        }

        impl From<$name> for String {
            fn from(name: $name) -> String {
                name.0.as_ref().to_owned()
            }
        }

        impl std::borrow::Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    )*};
}

names! {
    /// A team: one charter, one log, one set of members.
    TeamName = "a team's name";
    /// An agent, a person or the referee.
    MemberName = "a member's name";
    /// A stretch of work.
    PhaseName = "a phase's name";
    /// A deliverable, or an ad-hoc proposal in a phase that confirms each by itself.
    ProposalName = "a proposal's name";
    /// A circle: it bears the name of its phase, or of its one proposal.
    CircleName = "a circle's name";
    /// What a reviewer looks for: correctness, design, security, concurrency, plan…
    Lens = "a lens";
}

impl From<&PhaseName> for CircleName {
    fn from(phase: &PhaseName) -> Self {
        Self(phase.0.clone())
    }
}

impl From<&ProposalName> for CircleName {
    fn from(proposal: &ProposalName) -> Self {
        Self(proposal.0.clone())
    }
}

/// A content digest in lower-case hexadecimal: a git object id (40 or 64 digits) or a SHA-256
/// (64 digits).
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Digest(Arc<str>);

impl Digest {
    /// All the digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The digits that a reference shows.
    pub fn short(&self) -> &str {
        &self.0[..REFERENCE_DIGITS]
    }

    /// The digest of 32 bytes.
    pub fn of_bytes(bytes: [u8; 32]) -> Self {
        use fmt::Write;
        let mut text = String::with_capacity(64);
        for byte in bytes {
            write!(text, "{byte:02x}").expect("a String takes every write");
        }
        Self(text.into())
    }
}

impl FromStr for Digest {
    type Err = Malformed;
    fn from_str(text: &str) -> Result<Self, Malformed> {
        let hexadecimal = text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        if matches!(text.len(), 40 | 64) && hexadecimal {
            return Ok(Self(text.into()));
        }
        Err(Malformed {
            expected: "a digest",
            given: shown(text, NAME_BYTES_MAX),
            form: "40 or 64 of 0-9 and a-f",
        })
    }
}

impl TryFrom<String> for Digest {
    type Error = Malformed;
    fn try_from(text: String) -> Result<Self, Malformed> {
        text.parse()
    }
}

impl From<Digest> for String {
    fn from(digest: Digest) -> String {
        digest.0.as_ref().to_owned()
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The first digits of a digest, as a reference carries them: at least [`REFERENCE_DIGITS`].
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DigestPrefix(Arc<str>);

impl DigestPrefix {
    /// The digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether `digest` begins with these digits.
    pub fn names(&self, digest: &Digest) -> bool {
        digest.0.starts_with(&*self.0)
    }
}

impl From<&Digest> for DigestPrefix {
    fn from(digest: &Digest) -> Self {
        Self(digest.short().into())
    }
}

impl FromStr for DigestPrefix {
    type Err = Malformed;
    fn from_str(text: &str) -> Result<Self, Malformed> {
        let hexadecimal = text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        if (REFERENCE_DIGITS..=64).contains(&text.len()) && hexadecimal {
            return Ok(Self(text.into()));
        }
        Err(Malformed {
            expected: "the first digits of a digest",
            given: shown(text, NAME_BYTES_MAX),
            form: "12 to 64 of 0-9 and a-f",
        })
    }
}

impl fmt::Display for DigestPrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for DigestPrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// One version of a proposal, exactly: `parser@2:41d0c9aa1e53`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct VersionRef {
    /// Whose version.
    pub proposal: ProposalName,
    /// 1, 2, 3…
    pub version: u32,
    /// The first digits of the artifact's digest.
    pub digest: DigestPrefix,
}

impl fmt::Display for VersionRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}:{}", self.proposal, self.version, self.digest)
    }
}

impl FromStr for VersionRef {
    type Err = Malformed;
    fn from_str(text: &str) -> Result<Self, Malformed> {
        match text.parse::<Subject>() {
            Ok(Subject { proposal, version: Some(version), digest: Some(digest) }) => {
                Ok(Self { proposal, version, digest })
            }
            _ => Err(Malformed {
                expected: "an exact version reference",
                given: shown(text, NAME_BYTES_MAX * 2),
                form: "NAME@VERSION:DIGEST, such as parser@2:41d0c9aa1e53, as `countersign show` prints it",
            }),
        }
    }
}

/// What a reading command may be given: `parser`, `parser@2` or `parser@2:41d0c9aa1e53`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subject {
    /// The proposal.
    pub proposal: ProposalName,
    /// The version; the current one where it is left out.
    pub version: Option<u32>,
    /// The first digits of its digest, checked where given.
    pub digest: Option<DigestPrefix>,
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.proposal)?;
        if let Some(version) = self.version {
            write!(f, "@{version}")?;
        }
        if let Some(digest) = &self.digest {
            write!(f, ":{digest}")?;
        }
        Ok(())
    }
}

impl FromStr for Subject {
    type Err = Malformed;
    fn from_str(text: &str) -> Result<Self, Malformed> {
        let malformed = || Malformed {
            expected: "a reference",
            given: shown(text, NAME_BYTES_MAX * 2),
            form: "NAME, NAME@VERSION or NAME@VERSION:DIGEST, such as parser@2:41d0c9aa1e53",
        };
        let Some((name, rest)) = text.split_once('@') else {
            return Ok(Self {
                proposal: text.parse().map_err(|_| malformed())?,
                version: None,
                digest: None,
            });
        };
        let proposal = name.parse().map_err(|_| malformed())?;
        let (version, digest) = match rest.split_once(':') {
            Some((version, digest)) => (version, Some(digest.parse().map_err(|_| malformed())?)),
            None => (rest, None),
        };
        let canonical = version.bytes().all(|b| b.is_ascii_digit()) && !version.starts_with('0');
        let version = version.parse().ok().filter(|_| canonical).ok_or_else(malformed)?;
        Ok(Self { proposal, version: Some(version), digest })
    }
}

/// A circle's manifest, exactly: `implement:3fa91c20d8e7`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct CircleRef {
    /// The circle.
    pub circle: CircleName,
    /// The first digits of its manifest's digest.
    pub digest: DigestPrefix,
}

impl fmt::Display for CircleRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.circle, self.digest)
    }
}

impl FromStr for CircleRef {
    type Err = Malformed;
    fn from_str(text: &str) -> Result<Self, Malformed> {
        let parsed = text.split_once(':').and_then(|(circle, digest)| {
            Some(Self { circle: circle.parse().ok()?, digest: digest.parse().ok()? })
        });
        parsed.ok_or_else(|| Malformed {
            expected: "a circle's reference",
            given: shown(text, NAME_BYTES_MAX * 2),
            form: "NAME:DIGEST, such as implement:3fa91c20d8e7, as `countersign status` shows it",
        })
    }
}

macro_rules! stored_as_text {
    ($($name:ident),*) => {$(
        impl TryFrom<String> for $name {
            type Error = Malformed;
            fn try_from(text: String) -> Result<Self, Malformed> {
                text.parse()
            }
        }

        impl From<$name> for String {
            fn from(reference: $name) -> String {
                reference.to_string()
            }
        }
    )*};
}

stored_as_text!(VersionRef, CircleRef);

macro_rules! numbered {
    ($($(#[$doc:meta])* $name:ident = $letter:literal, $expected:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(pub u32);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}{}", $letter, self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }

        impl FromStr for $name {
            type Err = Malformed;
            fn from_str(text: &str) -> Result<Self, Malformed> {
                let number = text.strip_prefix($letter).filter(|digits| {
                    digits.bytes().all(|b| b.is_ascii_digit()) && !digits.starts_with('0')
                });
                number.and_then(|digits| digits.parse().ok()).map(Self).ok_or_else(|| Malformed {
                    expected: $expected,
                    given: shown(text, NAME_BYTES_MAX),
                    form: concat!($letter, " and a number, such as ", $letter, "1"),
                })
            }
        }

        impl TryFrom<String> for $name {
            type Error = Malformed;
            fn try_from(text: String) -> Result<Self, Malformed> {
                text.parse()
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> String {
                id.to_string()
            }
        }
    )*};
}

numbered! {
    /// An objection or a note, numbered over the team: `o1`.
    ObjectionId = 'o', "an objection's id";
    /// An escalation, numbered over the team: `e1`.
    EscalationId = 'e', "an escalation's id";
    /// A wake, numbered over a member: `w1`.
    WakeId = 'w', "a wake's id";
    /// A message or a claim, numbered over the team: `m1`.
    MessageId = 'm', "a message's id";
}

/// A place in the log: 1 is a team's first event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Seq(pub u64);

impl fmt::Display for Seq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// Who a command or an event comes from.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Actor {
    /// A member, known by its own token.
    Member(MemberName),
    /// The server itself: publishing, deadlines.
    Server,
    /// Whoever holds the server's home folder: adopts a team's first charter.
    Operator,
}

impl Actor {
    /// The member, where it is one.
    pub fn member(&self) -> Option<&MemberName> {
        match self {
            Self::Member(name) => Some(name),
            Self::Server | Self::Operator => None,
        }
    }
}

impl fmt::Display for Actor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Member(name) => write!(f, "{name}"),
            // No member's name holds a colon.
            Self::Server => f.write_str(":server"),
            Self::Operator => f.write_str(":operator"),
        }
    }
}

impl FromStr for Actor {
    type Err = Malformed;
    fn from_str(text: &str) -> Result<Self, Malformed> {
        match text {
            ":server" => Ok(Self::Server),
            ":operator" => Ok(Self::Operator),
            name => name.parse().map(Self::Member),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_one_canonical_form() {
        for good in ["a", "app", "app-1", "a.b_c-d", "x9"] {
            assert_eq!(good.parse::<MemberName>().unwrap().as_str(), good);
        }
        let long = "a".repeat(NAME_BYTES_MAX + 1);
        for bad in [
            "",
            "App",
            "аpp",
            "app\u{200b}",
            "1app",
            "-app",
            "app-",
            "a--b",
            "a b",
            "a/b",
            "a@b",
            "a:b",
            "é",
            "app\n",
            long.as_str(),
        ] {
            assert!(bad.parse::<MemberName>().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn names_that_look_alike_share_a_skeleton() {
        for (one, other) in
            [("app", "a-pp"), ("sec0", "seco"), ("al", "a1"), ("corn", "com"), ("vvat", "wat")]
        {
            assert_eq!(skeleton(one), skeleton(other), "{one} {other}");
        }
        assert_ne!(skeleton("app"), skeleton("apt"));
    }

    #[test]
    fn references_read_back_as_they_are_written() {
        let reference = "parser@2:41d0c9aa1e53";
        assert_eq!(reference.parse::<VersionRef>().unwrap().to_string(), reference);
        let circle = "implement:3fa91c20d8e7";
        assert_eq!(circle.parse::<CircleRef>().unwrap().to_string(), circle);
        for bad in [
            "parser",
            "parser@2",
            "parser@02:41d0c9aa1e53",
            "parser@0:41d0c9aa1e53",
            "parser@2:41D0C9AA1E53",
            "parser@2:41d0",
        ] {
            assert!(bad.parse::<VersionRef>().is_err(), "{bad}");
        }
        for bad in ["o0", "o01", "o", "1", "o-1", "o4294967296"] {
            assert!(bad.parse::<ObjectionId>().is_err(), "{bad}");
        }
    }

    #[test]
    fn what_does_not_show_is_hidden_and_says_nothing() {
        let unseen = [
            '\u{0}',
            '\u{9b}',
            '\u{ad}',
            '\u{34f}',
            '\u{115f}',
            '\u{17b4}',
            '\u{200b}',
            '\u{202e}',
            '\u{2066}',
            '\u{2800}',
            '\u{3164}',
            '\u{fdd0}',
            '\u{fe0f}',
            '\u{feff}',
            '\u{fffe}',
            '\u{1d173}',
            '\u{1ffff}',
            '\u{e0041}',
            '\u{e0100}',
        ];
        for c in unseen {
            assert!(is_hidden(c), "{c:?}");
            assert!(says_nothing(&format!(" {c}\n")), "{c:?}");
            assert!(!shown(&c.to_string(), 10).contains(c), "{c:?}");
        }
        for c in ['a', 'ß', '語', '🙂', '\u{300}', '\u{fffd}'] {
            assert!(!is_hidden(c) && !says_nothing(&c.to_string()), "{c:?}");
        }
        for text in ["", " ", "TEXT", "CMD", " … ", "..."] {
            assert!(says_nothing(text), "{text:?}");
        }
        assert!(!says_nothing("TEXT is missing"));
    }

    #[test]
    fn what_a_terminal_would_obey_is_shown() {
        assert_eq!(shown("a\u{1b}[2Jb\u{202e}c", 80), "a\\u{1b}[2Jb\\u{202e}c");
        assert_eq!(shown("abcdef", 3), "abc…");
    }
}
