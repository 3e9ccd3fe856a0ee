//! Arguments and request ids: what is not of its form is refused by its name, all at once.

use std::str::FromStr;

use prost::Message;
use sha2::{Digest as _, Sha256};

use super::proto;
use crate::protocol::name::{Digest, Malformed, shown};
use crate::protocol::{Rejection, Violation};

/// Reads the arguments of one request, and remembers each that is not of its form.
#[derive(Debug, Default)]
pub struct Arguments {
    unmet: Vec<Violation>,
}

impl Arguments {
    /// The argument `name` as what it stands for; none where it isn't.
    pub fn read<T: FromStr<Err = Malformed>>(&mut self, name: &str, text: &str) -> Option<T> {
        match text.parse() {
            Ok(value) => Some(value),
            Err(malformed) => {
                self.unmet.push(of_malformed(name, &malformed));
                None
            }
        }
    }

    /// The same for each of several.
    pub fn read_all<'a, T: FromStr<Err = Malformed>>(
        &mut self,
        name: &str,
        texts: impl IntoIterator<Item = &'a String>,
    ) -> Vec<T> {
        texts.into_iter().filter_map(|text| self.read(name, text)).collect()
    }

    /// Refuses the argument `name`.
    pub fn refuse(&mut self, name: &str, expected: &str, given: &str, form: &str) {
        self.unmet.push(Violation::Malformed {
            argument: name.to_owned(),
            expected: expected.to_owned(),
            given: shown(given, 120),
            form: form.to_owned(),
        });
    }

    /// What was read, unless something was refused.
    ///
    /// `value` is none only where an argument was refused.
    pub fn finish<T>(self, value: Option<T>) -> Result<T, Rejection> {
        match Rejection::of(self.unmet) {
            Some(rejection) => Err(rejection),
            None => Ok(value.expect("an argument that isn't there was refused")),
        }
    }
}

/// The refusal of one argument.
pub fn of_malformed(name: &str, malformed: &Malformed) -> Violation {
    Violation::Malformed {
        argument: name.to_owned(),
        expected: malformed.expected.to_owned(),
        given: malformed.given.clone(),
        form: malformed.form.to_owned(),
    }
}

/// A request that is recorded, and so may carry an id of the caller's own.
pub trait Write: Message + Clone {
    /// The method's name.
    const METHOD: &'static str;

    /// The id; empty for none.
    fn request_id(&self) -> &str;

    /// The same request without its id.
    fn without_id(&self) -> Self;
}

macro_rules! writes {
    ($($method:literal: $request:ident,)*) => {$(
        impl Write for proto::$request {
            const METHOD: &'static str = $method;

            fn request_id(&self) -> &str {
                &self.request_id
            }

            fn without_id(&self) -> Self {
                Self { request_id: String::new(), ..self.clone() }
            }
        }
    )*};
}

writes! {
    "Propose": ProposeRequest,
    "Show": ShowRequest,
    "Diff": DiffRequest,
    "Objections": ObjectionsRequest,
    "Approve": ApproveRequest,
    "Object": ObjectRequest,
    "Note": NoteRequest,
    "Resolve": ResolveRequest,
    "Overrule": OverruleRequest,
    "Withdraw": WithdrawRequest,
    "ReportCheck": ReportCheckRequest,
    "Confirm": ConfirmRequest,
    "AdoptCharter": AdoptCharterRequest,
    "Fetch": FetchRequest,
    "Escalate": EscalateRequest,
    "AnswerEscalation": AnswerEscalationRequest,
    "BreakGlass": BreakGlassRequest,
    "Say": SayRequest,
    "JudgeClaim": JudgeClaimRequest,
}

/// The request's id in its canonical form, with the SHA-256 of what it asks for: the method and the
/// message without the id. None where it carries none.
///
/// Maps are encoded in order, so the same request always has the same digest.
pub fn request_id<W: Write>(request: &W) -> Result<Option<(String, Digest)>, Violation> {
    let given = request.request_id();
    if given.is_empty() {
        return Ok(None);
    }
    let id = uuid::Uuid::try_parse(given).ok().filter(|_| given.len() == HYPHENATED).ok_or_else(|| {
        Violation::Malformed {
            argument: "request_id".to_owned(),
            expected: "a UUID".to_owned(),
            given: shown(given, 80),
            form: "32 hexadecimal digits in the form 8-4-4-4-12, or leave it out".to_owned(),
        }
    })?;
    let mut hasher = Sha256::new();
    hasher.update(W::METHOD);
    hasher.update([0]);
    hasher.update(request.without_id().encode_to_vec());
    Ok(Some((id.hyphenated().to_string(), Digest::of_bytes(hasher.finalize().into()))))
}

/// Characters of a UUID as 8-4-4-4-12.
const HYPHENATED: usize = 36;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::rejection::Fact;

    const ID: &str = "01890A5D-AC96-774B-BCCE-B302099A8057";

    fn propose(id: &str, summary: &str) -> proto::ProposeRequest {
        let answers = (1..40).map(|n| (format!("o{n}"), format!("answer {n}"))).collect();
        let (request_id, summary) = (id.to_owned(), summary.to_owned());
        proto::ProposeRequest { request_id, summary, answers, ..Default::default() }
    }

    #[test]
    fn the_same_request_has_the_same_digest_whatever_its_id() {
        let (id, digest) = request_id(&propose(ID, "one")).unwrap().unwrap();
        assert_eq!(id, ID.to_lowercase());
        let other = "01890a5d-ac96-774b-bcce-b302099a8058";
        assert_eq!(request_id(&propose(other, "one")).unwrap().unwrap().1, digest);
        assert_ne!(request_id(&propose(ID, "two")).unwrap().unwrap().1, digest);
        let show = proto::ShowRequest { request_id: ID.to_owned(), ..Default::default() };
        let objections = proto::ObjectionsRequest { request_id: ID.to_owned(), ..Default::default() };
        assert_ne!(request_id(&show).unwrap(), request_id(&objections).unwrap());
    }

    #[test]
    fn an_id_is_a_uuid_or_nothing() {
        assert_eq!(request_id(&propose("", "one")), Ok(None));
        for bad in
            ["1", " ", "01890a5dac96774bbcceb302099a8057", &format!("{{{ID}}}"), &format!("urn:uuid:{ID}")]
        {
            let Err(Violation::Malformed { argument, .. }) = request_id(&propose(bad, "one")) else {
                panic!("{bad}")
            };
            assert_eq!(argument, "request_id");
        }
    }

    #[test]
    fn every_argument_that_is_not_of_its_form_is_told() {
        let mut arguments = Arguments::default();
        let one = arguments.read::<crate::protocol::name::ObjectionId>("objection", "x1");
        let two = arguments.read::<crate::protocol::name::VersionRef>("reference", "parser\u{0}");
        let rejection = arguments.finish(one.zip(two)).unwrap_err();
        assert_eq!(rejection.violations().len(), 2);
        assert_eq!(rejection.first().facts()["argument"], Fact::Text("objection".to_owned()));
    }
}
