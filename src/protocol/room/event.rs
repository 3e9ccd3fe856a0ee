//! Event: what happened in the room. These forms are stored.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::protocol::artifact::Place;
use crate::protocol::evidence::Run;
use crate::protocol::name::{Malformed, MemberName, MessageId, shown};

/// What a claim or a verdict is given with.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evidence {
    /// Places.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub at: Vec<Place>,
    /// Commands that were run.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub ran: Vec<Run>,
}

/// A member said something in the room.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Said {
    /// Its id.
    pub id: MessageId,
    /// Who said it.
    pub by: MemberName,
    /// What was said, verbatim.
    pub text: String,
    /// Whom it mentions, but for its author.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub mentions: Vec<MemberName>,
    /// What about.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub about: Option<String>,
    /// The message that it answers.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub reply: Option<MessageId>,
    /// With which evidence, where it is a claim.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub claim: Option<Evidence>,
    /// The message with which its chain of mentions begins.
    pub root: MessageId,
    /// How long that chain is with it.
    pub length: u32,
    /// Whether the chain is longer than it may be: then nobody owes an answer.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub ended: bool,
}

/// A member gave a verdict on another's claim.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClaimJudged {
    /// Which claim.
    pub message: MessageId,
    /// Who checked it.
    pub by: MemberName,
    /// The verdict.
    pub verdict: Verdict,
    /// How it was checked, in words.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub text: Option<String>,
    /// Places that were looked at.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub at: Vec<Place>,
    /// Commands that were run.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub ran: Vec<Run>,
}

/// What a check of a claim came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// It holds.
    Supported,
    /// It doesn't.
    Refuted,
    /// It can't be checked.
    Unverifiable,
}

impl Verdict {
    /// Every verdict.
    pub const ALL: &[Self] = &[Self::Supported, Self::Refuted, Self::Unverifiable];

    /// Its stable name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Supported => "supported",
            Self::Refuted => "refuted",
            Self::Unverifiable => "unverifiable",
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Verdict {
    type Err = Malformed;
    fn from_str(text: &str) -> Result<Self, Malformed> {
        let known = Self::ALL.iter().copied().find(|verdict| verdict.as_str() == text);
        known.ok_or_else(|| Malformed {
            expected: "a verdict",
            given: shown(text, 64),
            form: "one of: supported, refuted, unverifiable",
        })
    }
}
