//! Why a call has no answer that it could use.

use std::error::Error;
use std::io;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use tonic::{Code, Status};

use super::proto;
use crate::wire;

/// Why a call has no answer that it could use.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The protocol's no, whole.
    #[error("{}", .0.violations.first().map_or("", |first| first.message.as_str()))]
    Refused(proto::Rejection),
    /// Nothing answers there.
    #[error("no server answers at {address}: {why}")]
    Unreachable {
        /// Where it was sought.
        address: String,
        /// What the system said.
        why: String,
    },
    /// This process may not use the network: that says nothing about the server.
    #[error("this sandbox forbids sockets, so nothing is known about the server at {address}: {why}")]
    SocketsForbidden {
        /// Where the server was sought.
        address: String,
        /// What the system said.
        why: String,
    },
    /// The credential is not known, ended, or speaks for another.
    #[error("{why}")]
    Unauthenticated {
        /// What the server said.
        why: String,
    },
    /// Nobody can say whether it was stored; the same request id settles it.
    #[error("nobody can say whether it was stored: {why}")]
    OutcomeUnknown {
        /// The id with which to ask again.
        request_id: String,
        /// What went wrong.
        why: String,
    },
    /// A question, which changes nothing, got no answer in time.
    #[error("no answer from {address} in time: {why}")]
    TimedOut {
        /// Who was asked.
        address: String,
        /// How long was waited.
        why: String,
    },
    /// Something is broken in the server or under it.
    #[error("{why}")]
    Broken {
        /// The server's word for it, or gRPC's.
        code: String,
        /// What the server said.
        why: String,
    },
}

/// Whether this process may make sockets at all; asked before a runtime is built, which needs some
/// itself and would only panic.
///
/// # Errors
/// What the system said.
pub fn sockets_allowed() -> io::Result<()> {
    match UnixStream::pair() {
        Err(denied) if denied.kind() == io::ErrorKind::PermissionDenied => Err(denied),
        _ => Ok(()),
    }
}

/// No connection: because there is no server, or because the system lets nobody look.
pub(super) fn unreachable(address: &str, why: &(dyn Error + 'static)) -> Failure {
    let address = address.to_owned();
    match io_error(why) {
        Some(io) if io.kind() == io::ErrorKind::PermissionDenied => {
            Failure::SocketsForbidden { address, why: io.to_string() }
        }
        Some(io) => Failure::Unreachable { address, why: io.to_string() },
        None => Failure::Unreachable { address, why: innermost(why).to_string() },
    }
}

/// A status instead of an answer. For a write that may have reached the log, every status that does
/// not come from a decision leaves the outcome unknown.
pub(super) fn of_status(address: &str, request_id: Option<&str>, status: &Status) -> Failure {
    if let Some(rejection) = wire::rejection_of(status) {
        return Failure::Refused(rejection);
    }
    let why = status.message().to_owned();
    let reason = wire::reason_of(status);
    // A status with a source was made on this side: the connection broke, whatever the code says. A
    // server that speaks TLS to who does not may be taken for one that broke the protocol.
    if status.source().is_some() {
        return match request_id {
            Some(id) => Failure::OutcomeUnknown { request_id: id.to_owned(), why },
            None => Failure::Unreachable { address: address.to_owned(), why },
        };
    }
    match (status.code(), request_id) {
        (Code::Unauthenticated | Code::PermissionDenied, _) => Failure::Unauthenticated { why },
        // Of these the server knows that nothing was stored.
        (Code::Unavailable, _)
            if matches!(reason.as_deref(), Some("NOT_STORED" | "STORE_UNUSABLE" | "TEAM_BEGINNING")) =>
        {
            Failure::Broken { code: reason.unwrap_or_default(), why }
        }
        (
            Code::Unavailable
            | Code::Unknown
            | Code::Cancelled
            | Code::DeadlineExceeded
            | Code::Aborted
            | Code::Internal,
            Some(id),
        ) => Failure::OutcomeUnknown { request_id: id.to_owned(), why },
        (Code::DeadlineExceeded, None) => Failure::TimedOut { address: address.to_owned(), why },
        (Code::Unavailable | Code::Unknown | Code::Cancelled, None) => {
            Failure::Unreachable { address: address.to_owned(), why }
        }
        (code, _) => Failure::Broken { code: reason.unwrap_or_else(|| word(code).to_owned()), why },
    }
}

/// No answer in time.
pub(super) fn of_silence(address: &str, request_id: Option<&str>, within: Duration) -> Failure {
    let why = format!("no answer within {} s", within.as_secs());
    match request_id {
        Some(id) => Failure::OutcomeUnknown { request_id: id.to_owned(), why },
        None => Failure::TimedOut { address: address.to_owned(), why },
    }
}

fn innermost<'a>(error: &'a (dyn Error + 'static)) -> &'a (dyn Error + 'static) {
    let mut error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    error
}

fn io_error<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a io::Error> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(io) = error.downcast_ref::<io::Error>() {
            return Some(io);
        }
        next = error.source();
    }
    None
}

fn word(code: Code) -> &'static str {
    match code {
        Code::DataLoss => "DATA_LOSS",
        Code::Unimplemented => "UNIMPLEMENTED",
        Code::ResourceExhausted => "RESOURCE_EXHAUSTED",
        Code::OutOfRange => "OUT_OF_RANGE",
        Code::InvalidArgument => "INVALID_ARGUMENT",
        Code::NotFound => "NOT_FOUND",
        Code::FailedPrecondition => "FAILED_PRECONDITION",
        Code::AlreadyExists => "ALREADY_EXISTS",
        _ => "INTERNAL",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("transport")]
    struct Transport(#[source] io::Error);

    #[test]
    fn a_forbidden_socket_is_not_a_missing_server() {
        for (denied, forbidden) in [
            (io::Error::from_raw_os_error(1), true),    // EPERM
            (io::Error::from_raw_os_error(13), true),   // EACCES
            (io::Error::from_raw_os_error(111), false), // ECONNREFUSED
        ] {
            let failure = unreachable("127.0.0.1:1", &Transport(denied));
            assert_eq!(matches!(failure, Failure::SocketsForbidden { .. }), forbidden, "{failure}");
        }
    }

    #[test]
    fn a_write_without_an_answer_is_unknown_and_a_question_is_not() {
        for code in [Code::Unavailable, Code::Unknown, Code::Cancelled, Code::DeadlineExceeded] {
            let status = Status::new(code, "the connection went away");
            let write = of_status("a", Some("id"), &status);
            assert!(
                matches!(&write, Failure::OutcomeUnknown { request_id, .. } if request_id == "id"),
                "{code:?}"
            );
            let question = of_status("a", None, &status);
            assert!(matches!(question, Failure::Unreachable { .. } | Failure::TimedOut { .. }), "{code:?}");
        }
        let nothing =
            wire::status_code::status_with_reason(Code::Unavailable, "NOT_STORED", "the disk is full", &[]);
        assert!(
            matches!(of_status("a", Some("id"), &nothing), Failure::Broken { code, .. } if code == "NOT_STORED")
        );
        for code in [Code::Unauthenticated, Code::PermissionDenied] {
            let failure = of_status("a", Some("id"), &Status::new(code, "no"));
            assert!(matches!(failure, Failure::Unauthenticated { .. }), "{code:?}");
        }
        // What stopped may have stored something before; a question that stopped is only broken.
        let stopped = Status::internal("x");
        assert!(matches!(of_status("a", Some("id"), &stopped), Failure::OutcomeUnknown { .. }));
        assert!(matches!(of_status("a", None, &stopped), Failure::Broken { code, .. } if code == "INTERNAL"));
    }

    #[test]
    fn a_status_of_this_side_is_a_connection_that_broke() {
        let broken = || Status::from_error(Box::new(Transport(io::Error::from_raw_os_error(104))));
        for code in [Code::Internal, Code::Unknown, Code::ResourceExhausted] {
            let mut status = Status::new(code, "protocol error");
            assert!(!matches!(of_status("a", Some("id"), &status), Failure::Unreachable { .. }));
            status.set_source(std::sync::Arc::new(broken()));
            assert!(matches!(of_status("a", None, &status), Failure::Unreachable { .. }), "{code:?}");
            assert!(
                matches!(of_status("a", Some("id"), &status), Failure::OutcomeUnknown { .. }),
                "{code:?}"
            );
        }
    }
}
