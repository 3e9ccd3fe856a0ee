//! A thin typed client: one method a call, each with a deadline and a request id.
//!
//! It decides nothing and retries nothing. What it adds to the generated code is what a caller needs
//! to act on: whether there is a server at all, whether it knows the caller, and — where a write got
//! no answer — the request id with which asking again is safe.

mod bundle;
mod failure;
mod listening;

use std::future::Future;
use std::time::Duration;

use tonic::metadata::{Ascii, MetadataValue};
use tonic::service::Interceptor;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint};
use tonic::{Request, Response, Status};

use proto::admin_service_client::AdminServiceClient;
use proto::artifact_service_client::ArtifactServiceClient;
use proto::door_service_client::DoorServiceClient;
use proto::escalation_service_client::EscalationServiceClient;
use proto::listen_service_client::ListenServiceClient;
use proto::log_service_client::LogServiceClient;
use proto::page_service_client::PageServiceClient;
use proto::review_service_client::ReviewServiceClient;
use proto::room_service_client::RoomServiceClient;
use proto::rule_service_client::RuleServiceClient;

pub use bundle::{FetchedPiece, Fetching, UploadFailure};
pub use failure::{Failure, sockets_allowed};
pub use listening::Listening;

/// What goes over the wire, as plain structures.
pub use crate::wire::proto;
/// How messages are told in JSON, and the log in minutes.
pub use crate::wire::{json, minutes, time_of};
/// A time as the wire has it; see [`time_of`].
pub use prost_types::Timestamp;

use crate::coordinator::token::Token;
use crate::protocol::name::{MemberName, TeamName};
use crate::wire::status_code::{DETAILS_BYTES_ASKED_MAX, DETAILS_MAX};

/// How long a connection may take to stand.
pub const CONNECT_TIME_MAX: Duration = Duration::from_secs(3);

/// How long an answer may take.
pub const CALL_TIME_MAX: Duration = Duration::from_secs(30);

/// How long an answer may take where the server reads a whole artifact first.
pub const ARTIFACT_TIME_MAX: Duration = Duration::from_secs(150);

/// How often a silent connection is asked whether the server is there, and how long it may not answer.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(20);
const KEEPALIVE_TIME_MAX: Duration = Duration::from_secs(20);

/// The longest answer, in bytes: a diff and its frame.
const ANSWER_BYTES_MAX: usize = 64 * 1024 * 1024;

/// The longest headers and trailers, in bytes: a refusal with everything that is unmet, in base64.
const HEADERS_BYTES_MAX: u32 = 512 * 1024;

/// Where the server is.
#[derive(Clone, Debug)]
pub struct Server {
    /// `HOST:PORT`, `http://HOST:PORT` or `https://HOST:PORT`.
    pub address: String,
    /// The certificate authority that vouches for the server, as PEM; with one, TLS is spoken.
    pub authority: Option<Vec<u8>>,
}

/// For whom the client speaks.
#[derive(Clone, Debug)]
pub struct Caller {
    /// The credential: it alone says who it is.
    pub token: Token,
    /// Whom the caller takes the token to speak for; the server refuses it where it is another's.
    pub member: Option<MemberName>,
    /// The team that the caller takes it to be of, likewise.
    pub team: Option<TeamName>,
}

/// A connection that speaks for one member.
#[derive(Clone, Debug)]
pub struct Client {
    address: String,
    channel: Channel,
    credential: Credential,
}

/// A connection that speaks for the operator.
#[derive(Clone, Debug)]
pub struct Admin {
    client: Client,
}

/// Puts the credential into every call.
#[derive(Clone, Debug)]
struct Credential {
    bearer: MetadataValue<Ascii>,
    member: Option<MetadataValue<Ascii>>,
    team: Option<MetadataValue<Ascii>>,
}

impl Interceptor for Credential {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        let metadata = request.metadata_mut();
        metadata.insert("authorization", self.bearer.clone());
        metadata.insert(DETAILS_MAX, MetadataValue::from(DETAILS_BYTES_ASKED_MAX));
        if let Some(member) = &self.member {
            metadata.insert("countersign-member", member.clone());
        }
        if let Some(team) = &self.team {
            metadata.insert("countersign-team", team.clone());
        }
        Ok(request)
    }
}

impl Credential {
    fn of(caller: &Caller) -> Self {
        const ASCII: &str = "tokens and names are ASCII";
        let mut bearer: MetadataValue<Ascii> =
            format!("Bearer {}", caller.token.expose()).parse().expect(ASCII);
        bearer.set_sensitive(true);
        Self {
            bearer,
            member: caller.member.as_ref().map(|name| name.as_str().parse().expect(ASCII)),
            team: caller.team.as_ref().map(|name| name.as_str().parse().expect(ASCII)),
        }
    }
}

/// Connects and speaks for `caller`.
///
/// # Errors
/// [`Failure::SocketsForbidden`], [`Failure::Unreachable`].
pub async fn connect(server: &Server, caller: &Caller) -> Result<Client, Failure> {
    let channel = channel(server).await?;
    Ok(Client { address: server.address.clone(), channel, credential: Credential::of(caller) })
}

/// Connects and speaks for the operator, by the home's own token.
///
/// # Errors
/// [`Failure::SocketsForbidden`], [`Failure::Unreachable`].
pub async fn connect_operator(server: &Server, token: &Token) -> Result<Admin, Failure> {
    let caller = Caller { token: token.clone(), member: None, team: None };
    Ok(Admin { client: connect(server, &caller).await? })
}

async fn channel(server: &Server) -> Result<Channel, Failure> {
    let address = server.address.clone();
    let unreachable = |why: &(dyn std::error::Error + 'static)| failure::unreachable(&address, why);
    let uri = uri(server);
    let mut endpoint = Endpoint::from_shared(uri.clone())
        .map_err(|why| unreachable(&why))?
        .user_agent(concat!("countersign/", env!("CARGO_PKG_VERSION")))
        .map_err(|why| unreachable(&why))?
        .connect_timeout(CONNECT_TIME_MAX)
        .http2_max_header_list_size(HEADERS_BYTES_MAX)
        .http2_keep_alive_interval(KEEPALIVE_INTERVAL)
        .keep_alive_timeout(KEEPALIVE_TIME_MAX)
        .tcp_nodelay(true);
    if uri.starts_with("https://") {
        let mut tls = ClientTlsConfig::new();
        if let Some(authority) = &server.authority {
            tls = tls.ca_certificate(Certificate::from_pem(authority));
        }
        endpoint = endpoint.tls_config(tls).map_err(|why| unreachable(&why))?;
    }
    // The connect timeout does not cover the handshakes above TCP; this does.
    let connected = tokio::time::timeout(CONNECT_TIME_MAX, endpoint.connect()).await;
    match connected {
        Ok(connected) => connected.map_err(|why| unreachable(&why)),
        Err(_) => {
            let why = format!("no connection within {} s", CONNECT_TIME_MAX.as_secs());
            Err(Failure::Unreachable { address: server.address.clone(), why })
        }
    }
}

/// The address as a URI: TLS where it says so, or where there is an authority to check it with.
fn uri(server: &Server) -> String {
    let given = server.address.trim_end_matches('/');
    match (given.split_once("://"), &server.authority) {
        (Some(_), _) => given.to_owned(),
        (None, Some(_)) => format!("https://{given}"),
        (None, None) => format!("http://{given}"),
    }
}

/// A fresh id for a write: version 7, so that those of one caller sort by time.
pub fn fresh_request_id() -> String {
    uuid::Uuid::now_v7().to_string()
}

type Channeled = InterceptedService<Channel, Credential>;

macro_rules! calls {
    ($($(#[doc = $doc:literal])* $kind:ident $service:ident.$method:ident($request:ident) -> $response:ident within $within:ident;)*) => {
        impl Client {$(
            $(#[doc = $doc])*
            pub async fn $method(&self, request: proto::$request) -> Result<proto::$response, Failure> {
                calls!(@$kind self, $service, $method, request, $within)
            }
        )*}
    };
    (@write $self:ident, $service:ident, $method:ident, $request:ident, $within:ident) => {{
        let mut request = $request;
        if request.request_id.is_empty() {
            request.request_id = fresh_request_id();
        }
        let request_id = request.request_id.clone();
        let mut service = $self.$service();
        $self.answer(Some(&request_id), $within, service.$method(Request::new(request))).await
    }};
    (@read $self:ident, $service:ident, $method:ident, $request:ident, $within:ident) => {{
        let mut service = $self.$service();
        $self.answer(None, $within, service.$method(Request::new($request))).await
    }};
}

calls! {
    /// Offers a version.
    write review.propose(ProposeRequest) -> ProposeResponse within ARTIFACT_TIME_MAX;
    /// Shows a version, and records the reading.
    write review.show(ShowRequest) -> ShowResponse within ARTIFACT_TIME_MAX;
    /// Shows a version as a diff, and records the reading.
    write review.diff(DiffRequest) -> DiffResponse within ARTIFACT_TIME_MAX;
    /// Shows a proposal's objections, and records the reading.
    write review.objections(ObjectionsRequest) -> ObjectionsResponse within CALL_TIME_MAX;
    /// Approves exactly one version.
    write review.approve(ApproveRequest) -> ApproveResponse within CALL_TIME_MAX;
    /// Objects to exactly one version.
    write review.object(ObjectRequest) -> ObjectResponse within CALL_TIME_MAX;
    /// Leaves a note on exactly one version.
    write review.note(NoteRequest) -> NoteResponse within CALL_TIME_MAX;
    /// Closes an own objection.
    write review.resolve(ResolveRequest) -> ResolveResponse within CALL_TIME_MAX;
    /// Closes somebody's objection, as a person.
    write review.overrule(OverruleRequest) -> OverruleResponse within CALL_TIME_MAX;
    /// Takes a proposal's current version back.
    write review.withdraw(WithdrawRequest) -> WithdrawResponse within CALL_TIME_MAX;
    /// Reports what came of a required check on exactly one version.
    write review.report_check(ReportCheckRequest) -> ReportCheckResponse within CALL_TIME_MAX;
    /// Confirms exactly what a circle holds.
    write review.confirm(ConfirmRequest) -> ConfirmResponse within CALL_TIME_MAX;
    /// Who holds the ball.
    read review.get_status(GetStatusRequest) -> GetStatusResponse within CALL_TIME_MAX;
    /// Every requirement of a proposal or a circle.
    read review.explain(ExplainRequest) -> ExplainResponse within CALL_TIME_MAX;
    /// Every version and objection of a proposal.
    read review.get_proposal(GetProposalRequest) -> GetProposalResponse within CALL_TIME_MAX;
    /// A link that signs the caller in to the room page.
    read page.open_page(OpenPageRequest) -> OpenPageResponse within CALL_TIME_MAX;
    /// Puts another charter in force, as a person.
    write review.adopt_charter(AdoptCharterRequest) -> AdoptCharterResponse within CALL_TIME_MAX;
    /// The charter in force, or an earlier revision.
    read review.get_charter(GetCharterRequest) -> GetCharterResponse within CALL_TIME_MAX;
    /// Puts a subject before a person.
    write escalation.escalate(EscalateRequest) -> EscalateResponse within CALL_TIME_MAX;
    /// A page of escalations.
    read escalation.list_escalations(ListEscalationsRequest) -> ListEscalationsResponse within CALL_TIME_MAX;
    /// Says that a wake was taken.
    read listen_calls.acknowledge(AcknowledgeRequest) -> AcknowledgeResponse within CALL_TIME_MAX;
    /// Every member, with whether a wake reaches it now.
    read listen_calls.get_roster(GetRosterRequest) -> GetRosterResponse within CALL_TIME_MAX;
    /// The rules that judge the team.
    read rule.list_rules(ListRulesRequest) -> ListRulesResponse within CALL_TIME_MAX;
    /// What a candidate rule would say.
    read rule.check_rule(CheckRuleRequest) -> CheckRuleResponse within CALL_TIME_MAX;
    /// Answers an escalation, as a person.
    write escalation.answer_escalation(AnswerEscalationRequest) -> AnswerEscalationResponse within CALL_TIME_MAX;
    /// Says something in the room.
    write room.say(SayRequest) -> SayResponse within CALL_TIME_MAX;
    /// Gives a verdict on another's claim.
    write room.judge_claim(JudgeClaimRequest) -> JudgeClaimResponse within CALL_TIME_MAX;
    /// A page of the transcript.
    read room.list_transcript(ListTranscriptRequest) -> ListTranscriptResponse within CALL_TIME_MAX;
    /// Opens the door for a while, as a person.
    write door.break_glass(BreakGlassRequest) -> BreakGlassResponse within CALL_TIME_MAX;
    /// Whether a completed circle holds a commit.
    read door.check_commit(CheckCommitRequest) -> CheckCommitResponse within CALL_TIME_MAX;
    /// A page of the log.
    read log.list_events(ListEventsRequest) -> ListEventsResponse within CALL_TIME_MAX;
}

impl Admin {
    /// Adds a team.
    pub async fn add_team(&self, request: proto::AddTeamRequest) -> Result<proto::AddTeamResponse, Failure> {
        let mut service = self.service();
        self.client.answer(None, ARTIFACT_TIME_MAX, service.add_team(Request::new(request))).await
    }

    /// Issues a fresh token for a member.
    pub async fn issue_token(
        &self,
        request: proto::IssueTokenRequest,
    ) -> Result<proto::IssueTokenResponse, Failure> {
        let mut service = self.service();
        self.client.answer(None, CALL_TIME_MAX, service.issue_token(Request::new(request))).await
    }

    /// Ends every token of a member.
    pub async fn revoke_tokens(
        &self,
        request: proto::RevokeTokensRequest,
    ) -> Result<proto::RevokeTokensResponse, Failure> {
        let mut service = self.service();
        self.client.answer(None, CALL_TIME_MAX, service.revoke_tokens(Request::new(request))).await
    }

    /// Whether a push may move these refs.
    pub async fn check_push(
        &self,
        request: proto::CheckPushRequest,
    ) -> Result<proto::CheckPushResponse, Failure> {
        // A refusal names each of the refs, and there may be as many as a question holds.
        let mut service = self.client.door().max_decoding_message_size(ANSWER_BYTES_MAX);
        self.client.answer(None, CALL_TIME_MAX, service.check_push(Request::new(request))).await
    }

    /// Which repository is guarded.
    pub async fn describe_door(
        &self,
        request: proto::DescribeDoorRequest,
    ) -> Result<proto::DescribeDoorResponse, Failure> {
        let mut service = self.client.door().max_decoding_message_size(ANSWER_BYTES_MAX);
        self.client.answer(None, CALL_TIME_MAX, service.describe_door(Request::new(request))).await
    }

    /// Whether a completed circle holds a commit.
    pub async fn check_commit(
        &self,
        request: proto::CheckCommitRequest,
    ) -> Result<proto::CheckCommitResponse, Failure> {
        self.client.check_commit(request).await
    }

    fn service(&self) -> AdminServiceClient<Channeled> {
        AdminServiceClient::with_interceptor(self.client.channel.clone(), self.client.credential.clone())
    }
}

impl Client {
    fn review(&self) -> ReviewServiceClient<Channeled> {
        ReviewServiceClient::with_interceptor(self.channel.clone(), self.credential.clone())
            .max_decoding_message_size(ANSWER_BYTES_MAX)
    }

    fn artifact(&self) -> ArtifactServiceClient<Channeled> {
        ArtifactServiceClient::with_interceptor(self.channel.clone(), self.credential.clone())
    }

    fn escalation(&self) -> EscalationServiceClient<Channeled> {
        EscalationServiceClient::with_interceptor(self.channel.clone(), self.credential.clone())
    }

    fn listen_calls(&self) -> ListenServiceClient<Channeled> {
        ListenServiceClient::with_interceptor(self.channel.clone(), self.credential.clone())
            .max_decoding_message_size(ANSWER_BYTES_MAX)
    }

    fn room(&self) -> RoomServiceClient<Channeled> {
        RoomServiceClient::with_interceptor(self.channel.clone(), self.credential.clone())
            .max_decoding_message_size(ANSWER_BYTES_MAX)
    }

    fn rule(&self) -> RuleServiceClient<Channeled> {
        RuleServiceClient::with_interceptor(self.channel.clone(), self.credential.clone())
            .max_decoding_message_size(ANSWER_BYTES_MAX)
    }

    fn door(&self) -> DoorServiceClient<Channeled> {
        DoorServiceClient::with_interceptor(self.channel.clone(), self.credential.clone())
    }

    fn page(&self) -> PageServiceClient<Channeled> {
        PageServiceClient::with_interceptor(self.channel.clone(), self.credential.clone())
    }

    fn log(&self) -> LogServiceClient<Channeled> {
        LogServiceClient::with_interceptor(self.channel.clone(), self.credential.clone())
            .max_decoding_message_size(ANSWER_BYTES_MAX)
    }

    /// Waits for an answer; `request_id` is that of a write, whose outcome is unknown without one.
    async fn answer<T>(
        &self,
        request_id: Option<&str>,
        within: Duration,
        call: impl Future<Output = Result<Response<T>, Status>>,
    ) -> Result<T, Failure> {
        match tokio::time::timeout(within, call).await {
            Ok(Ok(response)) => Ok(response.into_inner()),
            Ok(Err(status)) => Err(failure::of_status(&self.address, request_id, &status)),
            Err(_) => Err(failure::of_silence(&self.address, request_id, within)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_taken_in_every_form() {
        let server = |address: &str, authority: Option<&[u8]>| Server {
            address: address.to_owned(),
            authority: authority.map(<[u8]>::to_vec),
        };
        assert_eq!(uri(&server("127.0.0.1:7411", None)), "http://127.0.0.1:7411");
        assert_eq!(uri(&server("http://host:1/", None)), "http://host:1");
        assert_eq!(uri(&server("https://host:1", None)), "https://host:1");
        assert_eq!(uri(&server("host:1", Some(b"pem"))), "https://host:1");
    }

    #[test]
    fn request_ids_of_one_caller_sort_by_time() {
        let ids: Vec<String> = (0..100).map(|_| fresh_request_id()).collect();
        assert!(ids.is_sorted() && ids.windows(2).all(|pair| pair[0] != pair[1]));
    }
}
