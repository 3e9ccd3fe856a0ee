//! A no as a gRPC status, and back: the class gives the code, the details carry everything else.
//!
//! | class | code | details beside ErrorInfo and our own Rejection |
//! | --- | --- | --- |
//! | malformed | INVALID_ARGUMENT | BadRequest |
//! | forbidden | PERMISSION_DENIED | PreconditionFailure |
//! | missing | NOT_FOUND | PreconditionFailure |
//! | precondition | FAILED_PRECONDITION | PreconditionFailure |
//! | conflict | ABORTED | PreconditionFailure |
//! | limit | RESOURCE_EXHAUSTED | PreconditionFailure, RetryInfo where there is a time |
//!
//! Details travel as a trailer, and trailers of more than 8 KiB are dropped on the way by some
//! proxies and clients. So what is told shrinks until it fits: what is said twice first, then long texts
//! and lists of facts, then the last violations; both say how much is missing. A caller who takes more says
//! so in the metadata of its call, as the command line does: [`DETAILS_MAX`].

use std::collections::BTreeMap;

use prost::Message;
use prost_types::Any;
use tonic::metadata::MetadataMap;
use tonic::{Code, Status};
use tonic_types::pb;

use super::proto;
use crate::protocol::name::shown;
use crate::protocol::rejection::{Class, Fact};
use crate::protocol::time::Time;
use crate::protocol::{Rejection, Violation};

/// The domain of every reason.
pub const DOMAIN: &str = "countersign.v1";

/// Details of one status, in bytes before the trailer's base64, which adds a third.
const DETAILS_BYTES_MAX: usize = 6 * 1024;

/// The key under which a caller says how many bytes of details it takes.
pub const DETAILS_MAX: &str = "countersign-details-max";

/// As many as any caller gets.
pub const DETAILS_BYTES_ASKED_MAX: usize = 192 * 1024;

/// How many bytes of details a caller takes, by the metadata of its call.
pub fn details_room(metadata: &MetadataMap) -> usize {
    let asked = metadata.get(DETAILS_MAX).and_then(|value| value.to_str().ok()?.parse().ok());
    asked.map_or(DETAILS_BYTES_MAX, |asked: usize| asked.clamp(DETAILS_BYTES_MAX, DETAILS_BYTES_ASKED_MAX))
}

/// The sentence of a status, in characters: it travels percent-encoded.
const MESSAGE_CHARS_MAX: usize = 400;

const REJECTION_URL: &str = "type.googleapis.com/countersign.v1.Rejection";
const ERROR_INFO_URL: &str = "type.googleapis.com/google.rpc.ErrorInfo";
const PRECONDITION_URL: &str = "type.googleapis.com/google.rpc.PreconditionFailure";
const BAD_REQUEST_URL: &str = "type.googleapis.com/google.rpc.BadRequest";
const RETRY_INFO_URL: &str = "type.googleapis.com/google.rpc.RetryInfo";

/// How much of a rejection is told.
#[derive(Clone, Copy)]
struct Room {
    violations: usize,
    /// Of them, in google.rpc's own form beside ours.
    described: usize,
    items: usize,
    chars: usize,
    /// Whether facts are told that a violation's sentence and remedy say already.
    twice: bool,
}

/// From all of it to what always fits.
const ROOMS: [Room; 7] = [
    Room { violations: 1_000, described: 1_000, items: 1_000, chars: 4_000, twice: true },
    Room { violations: 1_000, described: 16, items: 64, chars: 2_000, twice: false },
    Room { violations: 64, described: 16, items: 64, chars: 1_000, twice: false },
    Room { violations: 32, described: 4, items: 16, chars: 500, twice: false },
    Room { violations: 12, described: 2, items: 8, chars: 200, twice: false },
    Room { violations: 5, described: 1, items: 4, chars: 80, twice: false },
    Room { violations: 1, described: 1, items: 2, chars: 80, twice: false },
];

/// The code of a class.
pub fn code_of(class: Class) -> Code {
    match class {
        Class::Malformed => Code::InvalidArgument,
        Class::Forbidden => Code::PermissionDenied,
        Class::Missing => Code::NotFound,
        Class::Precondition => Code::FailedPrecondition,
        Class::Conflict => Code::Aborted,
        Class::Limit => Code::ResourceExhausted,
    }
}

/// The protocol's no as a status, with details of at most `bytes`. `now` turns a time at which asking again
/// can help into a delay.
pub fn status_of(rejection: &Rejection, now: Time, bytes: usize) -> Status {
    let code = code_of(rejection.first().class());
    let message = shown(&rejection.first().to_string(), MESSAGE_CHARS_MAX);
    let details = ROOMS.iter().map(|room| details(rejection, *room, now, code, &message));
    let fitting = details.scan(false, |fits, details| {
        let before = std::mem::replace(fits, details.len() <= bytes);
        (!before).then_some(details)
    });
    let details = fitting.last().expect("there is always a first room");
    Status::with_details(code, message, details.into())
}

/// A status that is no rejection: who calls, an unknown outcome, a damaged log. `metadata` are its
/// operands.
pub fn status_with_reason(code: Code, reason: &str, message: &str, metadata: &[(&str, String)]) -> Status {
    let message = shown(message, MESSAGE_CHARS_MAX);
    let metadata = metadata.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
    let details = vec![error_info(reason, metadata)];
    Status::with_details(code, message.clone(), encoded(code, &message, details).into())
}

/// A no of the operator's commands: as a rejection has, with a code, a sentence and a remedy.
pub fn status_with_remedy(code: Code, reason: &str, message: &str, remedy: &str) -> Status {
    let violation = proto::Violation {
        code: reason.to_owned(),
        // Several lines: a charter's findings with their excerpts.
        message: cut(message, DETAILS_BYTES_MAX / 2),
        remedy: remedy.to_owned(),
        ..Default::default()
    };
    let rejection = proto::Rejection { violations: vec![violation], more: 0 };
    let message = shown(message.lines().next().unwrap_or_default(), MESSAGE_CHARS_MAX);
    let details = vec![error_info(reason, BTreeMap::new()), any(REJECTION_URL, &rejection)];
    Status::with_details(code, message.clone(), encoded(code, &message, details).into())
}

/// The rejection that a status carries, for clients.
pub fn rejection_of(status: &Status) -> Option<proto::Rejection> {
    let found = detail(status, REJECTION_URL)?;
    proto::Rejection::decode(found.value.as_slice()).ok().filter(|found| !found.violations.is_empty())
}

/// The reason that a status carries, whether it is a rejection or not, for clients: `UNREAD_VERSION`,
/// `OUTCOME_UNKNOWN`, `UNAUTHENTICATED`…
pub fn reason_of(status: &Status) -> Option<String> {
    let info = pb::ErrorInfo::decode(detail(status, ERROR_INFO_URL)?.value.as_slice()).ok()?;
    (info.domain == DOMAIN).then_some(info.reason)
}

fn detail(status: &Status, type_url: &str) -> Option<Any> {
    let whole = pb::Status::decode(status.details()).ok()?;
    whole.details.into_iter().find(|detail| detail.type_url == type_url)
}

fn details(rejection: &Rejection, room: Room, now: Time, code: Code, message: &str) -> Vec<u8> {
    let violations = rejection.violations();
    let told = &violations[..violations.len().min(room.violations)];
    let first = rejection.first();
    let facts = first.facts().into_iter();
    let metadata = facts.map(|(name, fact)| (name.to_owned(), fact_text(&fact, room))).collect();
    let mut details = vec![error_info(first.code(), metadata)];

    let (malformed, unmet): (Vec<&Violation>, Vec<&Violation>) =
        told.iter().partition(|violation| violation.class() == Class::Malformed);
    if !unmet.is_empty() {
        let violations =
            unmet.into_iter().take(room.described).map(|violation| pb::precondition_failure::Violation {
                r#type: violation.code().to_owned(),
                subject: subject(violation, room),
                description: shown(&violation.to_string(), room.chars),
            });
        details.push(any(PRECONDITION_URL, &pb::PreconditionFailure { violations: violations.collect() }));
    }
    if !malformed.is_empty() {
        let violations = malformed.into_iter().map(|violation| pb::bad_request::FieldViolation {
            field: subject(violation, room),
            description: shown(&violation.to_string(), room.chars),
            reason: violation.code().to_owned(),
            ..Default::default()
        });
        details.push(any(BAD_REQUEST_URL, &pb::BadRequest { field_violations: violations.collect() }));
    }
    if let Violation::CooldownActive { until, .. } = first {
        let left = *until - now;
        let seconds = left.0.div_euclid(1_000_000);
        let nanos = i32::try_from(left.0.rem_euclid(1_000_000) * 1_000).expect("below a second");
        let retry_delay = Some(prost_types::Duration { seconds, nanos });
        details.push(any(RETRY_INFO_URL, &pb::RetryInfo { retry_delay }));
    }
    let whole = proto::Rejection {
        violations: told.iter().map(|violation| violation_message(violation, room)).collect(),
        more: u32::try_from(violations.len() - told.len()).unwrap_or(u32::MAX),
    };
    details.push(any(REJECTION_URL, &whole));
    encoded(code, message, details)
}

/// Facts of a violation that its sentence, its remedy and its rule say already.
const SAID: [&str; 3] = ["message", "command", "rule"];

fn violation_message(violation: &Violation, room: Room) -> proto::Violation {
    let rule = violation.rule().unwrap_or_default().to_owned();
    let said = |name: &str| violation.rule().is_some() && SAID.contains(&name);
    let facts = violation.facts().into_iter().filter(|(name, _)| room.twice || !said(name));
    proto::Violation {
        code: violation.code().to_owned(),
        message: cut(&violation.to_string(), room.chars),
        remedy: cut(&violation.remedy(), room.chars),
        rule,
        facts: facts.map(|(name, fact)| (name.to_owned(), fact_message(fact, room))).collect(),
    }
}

fn fact_message(fact: Fact, room: Room) -> proto::Fact {
    use proto::fact::Value;
    let value = match fact {
        Fact::Text(text) => Value::Text(cut(&text, room.chars)),
        Fact::Number(number) => Value::Number(number),
        Fact::Texts(items) => Value::Texts(proto::Texts { items: some(items, room) }),
    };
    proto::Fact { value: Some(value) }
}

fn fact_text(fact: &Fact, room: Room) -> String {
    match fact {
        Fact::Text(text) => cut(text, room.chars),
        Fact::Number(number) => number.to_string(),
        Fact::Texts(items) => some(items.clone(), room).join(", "),
    }
}

/// What a violation is about: the first of its operands that says so.
fn subject(violation: &Violation, room: Room) -> String {
    const NAMES: [&str; 12] = [
        "argument",
        "what",
        "subject",
        "reference",
        "given",
        "proposal",
        "objection",
        "circle",
        "escalation",
        "phase",
        "verb",
        "path",
    ];
    let facts = violation.facts();
    let found = NAMES.iter().find_map(|name| facts.get(name));
    found.map(|fact| fact_text(fact, room)).unwrap_or_default()
}

/// The first few; the last item says how many are missing.
fn some(mut items: Vec<String>, room: Room) -> Vec<String> {
    let total = items.len();
    items.truncate(room.items);
    items.iter_mut().for_each(|item| *item = cut(item, room.chars));
    if total > items.len() {
        items.push(format!("… and {} more", total - items.len()));
    }
    items
}

/// A text as it is, or its beginning and "…".
fn cut(text: &str, chars_max: usize) -> String {
    match text.char_indices().nth(chars_max) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

fn error_info(reason: &str, metadata: BTreeMap<String, String>) -> Any {
    let info = pb::ErrorInfo {
        reason: reason.to_owned(),
        domain: DOMAIN.to_owned(),
        metadata: metadata.into_iter().collect(),
    };
    any(ERROR_INFO_URL, &info)
}

fn any(type_url: &str, message: &impl Message) -> Any {
    Any { type_url: type_url.to_owned(), value: message.encode_to_vec() }
}

fn encoded(code: Code, message: &str, details: Vec<Any>) -> Vec<u8> {
    pb::Status { code: code.into(), message: message.to_owned(), details }.encode_to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::name::ObjectionId;

    fn information(status: &Status) -> pb::ErrorInfo {
        pb::ErrorInfo::decode(detail(status, ERROR_INFO_URL).unwrap().value.as_slice()).unwrap()
    }

    #[test]
    fn every_class_has_its_code() {
        let codes: Vec<(&str, Code)> =
            Violation::CODES.iter().map(|(code, class)| (*code, code_of(*class))).collect();
        for (code, expected) in [
            ("MALFORMED", Code::InvalidArgument),
            ("UNKNOWN_SUBJECT", Code::NotFound),
            ("NOT_REVIEWER", Code::PermissionDenied),
            ("UNREAD_VERSION", Code::FailedPrecondition),
            ("STALE_VERSION", Code::Aborted),
            ("ROUND_LIMIT", Code::ResourceExhausted),
        ] {
            assert!(codes.contains(&(code, expected)), "{code}");
        }
    }

    #[test]
    fn a_rejection_reads_back_with_its_facts() {
        let violation = Violation::UnreadObjections {
            proposal: "parser".parse().unwrap(),
            unread: vec![ObjectionId(1), ObjectionId(2)],
            by: vec!["sec".parse().unwrap()],
        };
        let status = status_of(&violation.clone().into(), Time(0), DETAILS_BYTES_MAX);
        assert_eq!(status.code(), Code::FailedPrecondition);
        assert_eq!(reason_of(&status).as_deref(), Some("UNREAD_OBJECTIONS"));
        let info = information(&status);
        assert_eq!(
            (info.metadata["proposal"].as_str(), info.metadata["unread"].as_str()),
            ("parser", "o1, o2")
        );
        let found = rejection_of(&status).unwrap();
        assert_eq!(found.violations.len(), 1);
        assert_eq!(found.violations[0].remedy, violation.remedy());
        let items = vec!["o1".to_owned(), "o2".to_owned()];
        let expected = proto::fact::Value::Texts(proto::Texts { items });
        assert_eq!(found.violations[0].facts["unread"].value, Some(expected));
        assert_eq!(rejection_of(&Status::aborted("no details")), None);
    }

    #[test]
    fn a_cooldown_says_how_long() {
        let until = Time(2_500_000);
        let violation = Violation::CooldownActive { proposal: "parser".parse().unwrap(), until };
        let status = status_of(&violation.into(), Time(1_000_000), DETAILS_BYTES_MAX);
        let retry = detail(&status, RETRY_INFO_URL).unwrap();
        let delay = pb::RetryInfo::decode(retry.value.as_slice()).unwrap().retry_delay.unwrap();
        assert_eq!((delay.seconds, delay.nanos), (1, 500_000_000));
    }

    #[test]
    fn details_fit_into_a_trailer_and_say_what_is_missing() {
        let paths: Vec<String> = (0..20_000).map(|n| format!("src/{n}/{}", "é".repeat(200))).collect();
        let owned =
            Violation::OutsideOwnership { proposal: "parser".parse().unwrap(), paths, owners: vec![] };
        let status = status_of(&owned.into(), Time(0), DETAILS_BYTES_MAX);
        assert!(status.details().len() <= DETAILS_BYTES_MAX, "{}", status.details().len());
        let found = rejection_of(&status).unwrap();
        let Some(proto::fact::Value::Texts(told)) = &found.violations[0].facts["paths"].value else {
            panic!()
        };
        assert!(told.items.last().unwrap().starts_with("… and 199"), "{:?}", told.items.last());

        let blocked = (0..500).map(|n| Violation::ConfirmBlocked {
            rule: format!("confirm/rule-{n}"),
            subject: "parser".to_owned(),
            message: "m".repeat(3_000),
            command: "c".repeat(3_000),
            who: (0..40).map(|m| format!("member-{m}").parse().unwrap()).collect(),
        });
        let rejection: Rejection = blocked.collect::<Vec<_>>().into();
        let status = status_of(&rejection, Time(0), DETAILS_BYTES_MAX);
        assert!(status.details().len() <= DETAILS_BYTES_MAX, "{}", status.details().len());
        let found = rejection_of(&status).unwrap();
        assert_eq!(found.violations.len() + found.more as usize, 500);
        let asked = status_of(&rejection, Time(0), DETAILS_BYTES_ASKED_MAX);
        assert!(asked.details().len() <= DETAILS_BYTES_ASKED_MAX, "{}", asked.details().len());
        assert!(rejection_of(&asked).unwrap().violations.len() > found.violations.len());
        assert_eq!(found.violations[0].rule, "confirm/rule-0");
    }

    #[test]
    fn an_operators_no_keeps_its_lines() {
        let said = "charter.toml:3:1: unknown key\n  | x = 1\n";
        let status = status_with_remedy(Code::InvalidArgument, "CHARTER_REFUSED", said, "mend it");
        assert_eq!(status.message(), "charter.toml:3:1: unknown key");
        let found = rejection_of(&status).unwrap();
        assert_eq!(
            (found.violations[0].message.as_str(), found.violations[0].remedy.as_str()),
            (said, "mend it")
        );
    }
}
