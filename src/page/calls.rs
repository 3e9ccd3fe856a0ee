//! The server's services, called by one member in this process.

use tonic::metadata::{Ascii, MetadataValue};
use tonic::service::Routes;
use tonic::{Code, Request, Status};

use crate::coordinator::token::Token;
use crate::wire::proto::escalation_service_client::EscalationServiceClient;
use crate::wire::proto::listen_service_client::ListenServiceClient;
use crate::wire::proto::log_service_client::LogServiceClient;
use crate::wire::proto::review_service_client::ReviewServiceClient;
use crate::wire::proto::room_service_client::RoomServiceClient;
use crate::wire::proto::rule_service_client::RuleServiceClient;
use crate::wire::status_code::{DETAILS_BYTES_ASKED_MAX, DETAILS_MAX};

/// The longest answer, in bytes. It doesn't leave the process as it is.
const ANSWER_BYTES_MAX: usize = 64 << 20;

/// Whoever calls, by its token alone.
pub(super) struct Caller {
    services: Routes,
    bearer: MetadataValue<Ascii>,
}

impl Caller {
    pub(super) fn of(services: &Routes, token: &Token) -> Self {
        let mut bearer: MetadataValue<Ascii> =
            format!("Bearer {}", token.expose()).parse().expect("a token is ASCII");
        bearer.set_sensitive(true);
        Self { services: services.clone(), bearer }
    }

    /// A request of the caller's.
    pub(super) fn asks<M>(&self, message: M) -> Request<M> {
        let mut request = Request::new(message);
        request.metadata_mut().insert("authorization", self.bearer.clone());
        request.metadata_mut().insert(DETAILS_MAX, MetadataValue::from(DETAILS_BYTES_ASKED_MAX));
        request
    }

    pub(super) fn review(&self) -> ReviewServiceClient<Routes> {
        ReviewServiceClient::new(self.services.clone()).max_decoding_message_size(ANSWER_BYTES_MAX)
    }

    pub(super) fn escalation(&self) -> EscalationServiceClient<Routes> {
        EscalationServiceClient::new(self.services.clone()).max_decoding_message_size(ANSWER_BYTES_MAX)
    }

    pub(super) fn rule(&self) -> RuleServiceClient<Routes> {
        RuleServiceClient::new(self.services.clone()).max_decoding_message_size(ANSWER_BYTES_MAX)
    }

    pub(super) fn listen(&self) -> ListenServiceClient<Routes> {
        ListenServiceClient::new(self.services.clone()).max_decoding_message_size(ANSWER_BYTES_MAX)
    }

    pub(super) fn room(&self) -> RoomServiceClient<Routes> {
        RoomServiceClient::new(self.services.clone()).max_decoding_message_size(ANSWER_BYTES_MAX)
    }

    pub(super) fn log(&self) -> LogServiceClient<Routes> {
        LogServiceClient::new(self.services.clone()).max_decoding_message_size(ANSWER_BYTES_MAX)
    }
}

/// The HTTP status that says the same.
pub(super) fn http_status(status: &Status) -> u16 {
    match status.code() {
        Code::InvalidArgument | Code::OutOfRange => 400,
        Code::Unauthenticated => 401,
        Code::PermissionDenied => 403,
        Code::NotFound => 404,
        Code::AlreadyExists | Code::Aborted | Code::FailedPrecondition => 409,
        Code::ResourceExhausted => 429,
        Code::Unavailable => 503,
        Code::DeadlineExceeded => 504,
        _ => 500,
    }
}
