//! Listening: how a listener begins, and what it takes.

use super::proto;
use super::request::Arguments;
use crate::protocol::delivery::{ACKNOWLEDGED_MAX, Acknowledge};
use crate::protocol::name::Seq;
use crate::protocol::{ObligationKind, Rejection};

/// Names that a listener may be narrowed to, and their bytes.
const NARROWED_MAX: usize = 100;
const NARROWED_BYTES_MAX: usize = 200;

/// What a listener wants to hear of: names and kinds, once each is known to be of its form.
pub fn narrowed(request: &proto::ListenRequest) -> Result<(Vec<String>, Vec<ObligationKind>), Rejection> {
    let mut arguments = Arguments::default();
    let lists = [("subjects", &request.subjects), ("kinds", &request.kinds)];
    for (name, list) in lists {
        if list.len() > NARROWED_MAX || list.iter().any(|one| one.len() > NARROWED_BYTES_MAX) {
            let expected = format!("at most {NARROWED_MAX}, each of at most {NARROWED_BYTES_MAX} bytes");
            arguments.refuse(name, &expected, &list.len().to_string(), "names as status shows them");
        }
    }
    if request.own.len() > ACKNOWLEDGED_MAX {
        let expected = format!("at most {ACKNOWLEDGED_MAX}");
        arguments.refuse("own", &expected, &request.own.len().to_string(), "those that the server told");
    }
    let kinds: Vec<ObligationKind> = request
        .kinds
        .iter()
        .filter_map(|kind| {
            let known = ObligationKind::named(kind);
            if known.is_none() {
                let names: Vec<&str> = ObligationKind::ALL.iter().map(|kind| kind.as_str()).collect();
                arguments.refuse(
                    "kinds",
                    "a kind of obligation",
                    kind,
                    &format!("one of: {}", names.join(", ")),
                );
            }
            known
        })
        .collect();
    arguments.finish(Some((request.subjects.clone(), kinds)))
}

/// Reads that a wake was taken.
pub fn acknowledge(request: proto::AcknowledgeRequest) -> Result<Acknowledge, Rejection> {
    let mut arguments = Arguments::default();
    let wake = arguments.read("wake", &request.wake);
    let wake = arguments.finish(wake)?;
    let watched = (request.watched > 0).then_some(Seq(request.watched));
    let seq = Seq(request.sequence);
    Ok(Acknowledge { wake, obligations: request.obligations, watched, seq })
}
