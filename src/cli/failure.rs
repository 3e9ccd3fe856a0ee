//! Why a command ends otherwise than done, in the one form that output prints and scripts read.

use std::fmt;
use std::net::SocketAddr;

use serde_json::{Map, Value};

pub use crate::client::json::Unmet;
use crate::client::json::refusal;
use crate::client::{self, UploadFailure};
use crate::protocol::name::Malformed;
use crate::protocol::rejection::{Fact, Violation};
use crate::{artifact, store};

/// How the process ends. The numbers are an interface: they never change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Done.
    Done = 0,
    /// The protocol's no, or a fault that is told as one.
    Refused = 1,
    /// The command line can't be understood.
    Usage = 2,
    /// No server can be reached.
    Unreachable = 3,
    /// A wait came to its end.
    TimedOut = 4,
    /// The caller isn't known, or may not speak for that member.
    Unauthenticated = 5,
    /// Another listener of the same member took over.
    Superseded = 6,
    /// Nobody can say whether a write was stored.
    OutcomeUnknown = 7,
}

/// Why a command ends otherwise than done.
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    /// How the process ends.
    pub exit: Exit,
    /// Every unmet condition; at least one.
    pub unmet: Vec<Unmet>,
    /// How many more there are, where the server could not tell all.
    pub more: u32,
    /// The id with which to ask again, where the outcome is unknown.
    pub request_id: Option<String>,
    /// What was found all the same, for scripts.
    pub found: Option<Box<Map<String, Value>>>,
}

impl Failure {
    /// One condition, without facts.
    pub fn new(exit: Exit, code: &str, message: impl fmt::Display, remedy: impl Into<String>) -> Self {
        let unmet = Unmet {
            code: code.to_owned(),
            message: message.to_string(),
            remedy: remedy.into(),
            rule: String::new(),
            facts: Map::new(),
        };
        Self { exit, unmet: vec![unmet], more: 0, request_id: None, found: None }
    }

    /// A refusal that needs no server to be known.
    pub fn refused(code: &str, message: impl fmt::Display, remedy: impl Into<String>) -> Self {
        Self::new(Exit::Refused, code, message, remedy)
    }

    /// A command line that can't be understood.
    pub fn usage(message: impl fmt::Display) -> Self {
        Self::new(Exit::Usage, "USAGE", message, "run: countersign help")
    }

    /// An argument that is not of its form, as the server would refuse it.
    pub fn malformed(argument: &str, wrong: Malformed) -> Self {
        let Malformed { expected, given, form } = wrong;
        let (expected, form) = (expected.to_owned(), form.to_owned());
        Violation::Malformed { argument: argument.to_owned(), expected, given, form }.into()
    }

    /// Something of the system's, such as a file that can't be written.
    pub fn io(what: impl fmt::Display, problem: &std::io::Error) -> Self {
        Self::refused(
            "IO",
            format!("{what}: {problem}"),
            "look at the path and its permissions, then run it again",
        )
    }

    /// With a fact.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        if let Some(first) = self.unmet.first_mut() {
            first.facts.insert(name.to_owned(), value.into());
        }
        self
    }

    /// The first condition's code.
    pub fn code(&self) -> &str {
        self.unmet.first().map_or("", |first| &first.code)
    }

    /// As scripts read it: `code`, `message`, `facts` and `remedy` are those of the first condition.
    pub fn json(&self) -> Value {
        let mut out = refusal(&self.unmet, self.request_id.as_deref(), self.more);
        out.extend(self.found.iter().flat_map(|found| (**found).clone()));
        out.into()
    }
}

impl From<client::Failure> for Failure {
    fn from(failure: client::Failure) -> Self {
        use client::Failure as Client;
        let message = failure.to_string();
        match failure {
            Client::Refused(rejection) => Self {
                exit: Exit::Refused,
                unmet: rejection.violations.into_iter().map(Unmet::from).collect(),
                more: rejection.more,
                request_id: None,
                found: None,
            },
            Client::Unreachable { address, .. } => {
                Self::new(Exit::Unreachable, "SERVER_UNREACHABLE", message, started_by_the_operator(&address))
                    .with("address", address)
            }
            Client::SocketsForbidden { address, .. } => Self::new(
                Exit::Unreachable,
                "SOCKETS_FORBIDDEN",
                message,
                "let this process use the network, or run the command outside the sandbox",
            )
            .with("address", address),
            Client::Unauthenticated { .. } => Self::new(
                Exit::Unauthenticated,
                "UNAUTHENTICATED",
                message,
                "the operator can: countersign member token MEMBER",
            ),
            Client::OutcomeUnknown { request_id, .. } => {
                let mut unknown = Self::new(
                    Exit::OutcomeUnknown,
                    "OUTCOME_UNKNOWN",
                    message,
                    format!("run the same command again with --request-id {request_id}: it has one effect"),
                )
                .with("request_id", request_id.clone());
                unknown.request_id = Some(request_id);
                unknown
            }
            Client::TimedOut { address, .. } => {
                Self::new(Exit::TimedOut, "TIMED_OUT", message, "run it again; it changes nothing")
                    .with("address", address)
            }
            Client::Broken { code, .. } => {
                Self::refused(&code, message, "the operator can look into the server's log")
            }
        }
    }
}

/// A refusal of the core's table that is known before a server is asked.
impl From<Violation> for Failure {
    fn from(violation: Violation) -> Self {
        let facts = violation.facts().into_iter().map(|(name, fact)| {
            let value = match fact {
                Fact::Text(text) => text.into(),
                Fact::Number(number) => number.into(),
                Fact::Texts(texts) => texts.into(),
            };
            (name.to_owned(), value)
        });
        let unmet = Unmet {
            code: violation.code().to_owned(),
            message: violation.to_string(),
            remedy: violation.remedy(),
            rule: String::new(),
            facts: facts.collect(),
        };
        Self { exit: Exit::Refused, unmet: vec![unmet], more: 0, request_id: None, found: None }
    }
}

impl From<artifact::Failure> for Failure {
    fn from(failure: artifact::Failure) -> Self {
        use artifact::Refused;
        let message = sentence(&failure);
        match failure {
            artifact::Failure::Refused(Refused::TooLarge { what, count, limit }) => {
                Violation::ArtifactTooLarge { what, found: count, limit }.into()
            }
            artifact::Failure::Refused(Refused::NotEmpty { path }) => {
                Self::refused("FOLDER_NOT_EMPTY", message, "name a folder that isn't there yet")
                    .with("path", path.display().to_string())
            }
            artifact::Failure::Refused(
                Refused::UnsafePath { path, .. }
                | Refused::PathTaken { path, .. }
                | Refused::NotAFile { path, .. },
            ) => Violation::PathUnsafe { because: message, path: path.to_string() }.into(),
            _ => Self::refused("IO", message, "look at the folder and its permissions, then run it again"),
        }
    }
}

impl From<UploadFailure> for Failure {
    fn from(failure: UploadFailure) -> Self {
        match failure {
            UploadFailure::Folder(folder) => folder.into(),
            UploadFailure::Call(call) => call.into(),
        }
    }
}

impl From<store::Fault> for Failure {
    fn from(fault: store::Fault) -> Self {
        const RESTORE: &str = "stop the server and put the latest backup in the home's place; nothing after this sequence can be trusted";
        let message = fault.to_string();
        match fault {
            store::Fault::Damaged { team, seq, .. } => Self::refused("LOG_DAMAGED", message, RESTORE)
                .with("team", team.to_string())
                .with("sequence", seq.0),
            store::Fault::Cut { team, found, witnessed } => Self::refused("LOG_DAMAGED", message, RESTORE)
                .with("team", team.to_string())
                .with("sequence", found.0.saturating_add(1))
                .with("found", found.0)
                .with("witnessed", witnessed.0),
            store::Fault::Witness { path, .. } => Self::refused(
                "LOG_DAMAGED",
                message,
                "put the witness back with its database, or, if that is lost: countersign verify --accept-head",
            )
            .with("path", path),
            store::Fault::Held { holder } => {
                Self::refused("HOME_HELD", message, "stop that server, or use another home: COUNTERSIGN_HOME")
                    .with("holder", holder)
            }
            store::Fault::Newer { found, known } => Self::refused(
                "STORE_UNUSABLE",
                message,
                "use the version of countersign that wrote it, or a newer one",
            )
            .with("found", found)
            .with("known", known),
            store::Fault::UnknownTeam { team } => Self::refused(
                "UNKNOWN_TEAM",
                message,
                "the operator can: countersign team add --charter FILE",
            )
            .with("team", team.to_string()),
            store::Fault::TeamTaken { team } => {
                Self::refused("TEAM_TAKEN", message, "give the team another name in its charter")
                    .with("team", team.to_string())
            }
            store::Fault::Replaced { path } => {
                Self::refused("STORE_UNUSABLE", message, "put the file back, then start the server again")
                    .with("path", path)
            }
            store::Fault::NotEmpty { path, holds } => {
                Self::refused("FOLDER_TAKEN", message, "name a folder that is new or empty")
                    .with("path", path)
                    .with("holds", holds)
            }
            store::Fault::Failed { .. } => Self::refused(
                "STORE_UNUSABLE",
                message,
                "look at the home's folder, its disk and its permissions",
            ),
        }
    }
}

/// Who starts a server, so that it is where it is sought. Typed by a member, in its clone, the same command
/// would make another home.
fn started_by_the_operator(address: &str) -> String {
    let bare = address.trim_start_matches("http://").trim_end_matches('/');
    match bare.parse::<SocketAddr>() {
        Ok(listen) => format!("the operator can, where the home is: countersign serve --listen {listen}"),
        Err(_) => format!("the operator can start the server that is to be at {address}"),
    }
}

/// An error and its sources in one sentence.
pub fn sentence(error: &dyn std::error::Error) -> String {
    let mut out = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        let next = error.to_string();
        if !out.ends_with(&next) {
            out.push_str(": ");
            out.push_str(&next);
        }
        source = error.source();
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::proto;

    #[test]
    fn each_way_to_end_has_its_number() {
        let failure = |failure: client::Failure| Failure::from(failure).exit as i32;
        let text = String::new;
        assert_eq!(failure(client::Failure::Refused(proto::Rejection::default())), 1);
        assert_eq!(Failure::usage("x").exit as i32, 2);
        assert_eq!(failure(client::Failure::Unreachable { address: text(), why: text() }), 3);
        assert_eq!(failure(client::Failure::SocketsForbidden { address: text(), why: text() }), 3);
        assert_eq!(failure(client::Failure::TimedOut { address: text(), why: text() }), 4);
        assert_eq!(failure(client::Failure::Unauthenticated { why: text() }), 5);
        assert_eq!(Exit::Superseded as i32, 6);
        assert_eq!(failure(client::Failure::OutcomeUnknown { request_id: text(), why: text() }), 7);
    }

    #[test]
    fn a_server_that_is_not_there_is_the_operators_to_start() {
        for (address, remedy) in [
            (
                "127.0.0.1:7411",
                "the operator can, where the home is: countersign serve --listen 127.0.0.1:7411",
            ),
            ("http://[::1]:80/", "the operator can, where the home is: countersign serve --listen [::1]:80"),
            (
                "https://team.example",
                "the operator can start the server that is to be at https://team.example",
            ),
        ] {
            assert_eq!(started_by_the_operator(address), remedy);
        }
    }

    #[test]
    fn an_unknown_outcome_carries_the_id_that_settles_it() {
        let unknown = client::Failure::OutcomeUnknown { request_id: "r1".to_owned(), why: "gone".to_owned() };
        let json = Failure::from(unknown).json();
        assert_eq!(json["code"], "OUTCOME_UNKNOWN");
        assert_eq!(json["request_id"], "r1");
        assert!(json["remedy"].as_str().unwrap().contains("--request-id r1"));
    }

    #[test]
    fn the_first_condition_is_the_refusals() {
        let violation = |code: &str, rule: &str| proto::Violation {
            code: code.to_owned(),
            message: format!("{code}."),
            remedy: "do it".to_owned(),
            rule: rule.to_owned(),
            facts: [("n".to_owned(), proto::Fact { value: Some(proto::fact::Value::Number(3)) })].into(),
        };
        let rejection =
            proto::Rejection { violations: vec![violation("A", ""), violation("B", "confirm/x")], more: 2 };
        let json = Failure::from(client::Failure::Refused(rejection)).json();
        assert_eq!(
            (&json["ok"], &json["code"], &json["facts"]["n"]),
            (&false.into(), &"A".into(), &3.into())
        );
        assert_eq!(json["violations"][1]["rule"], "confirm/x");
        assert_eq!(json["violations"][0].get("rule"), None);
    }
}
