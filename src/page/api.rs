//! The routes below `/api`: JSON to messages, and back.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value, json};
use tonic::Status;

use super::Shared;
use super::calls::{Caller, http_status};
use super::timeline;
use crate::coordinator::token::Token;
use crate::protocol::charter::{self, Charter, MemberKind};
use crate::wire::json::{self as form, Unmet, refusal};
use crate::wire::{proto, reason_of, rejection_of};

/// How a member comes in.
const SIGN_IN: &str = "countersign page --as MEMBER";

/// Escalations that are told at once.
const ESCALATIONS_MAX: u32 = 1_000;

/// An answer, or why there is none.
pub(super) type Answered = Result<Response, Refused>;

/// Why a request has no answer, as it is told. Boxed, so that what goes well carries no room for it.
pub(super) struct Refused(Box<Response>);

impl From<Response> for Refused {
    fn from(told: Response) -> Self {
        Self(Box::new(told))
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        *self.0
    }
}

/// An answer that says `ok`.
pub(super) fn done(value: Value) -> Response {
    let mut out = Map::from_iter([("ok".to_owned(), Value::Bool(true))]);
    if let Value::Object(members) = value {
        out.extend(members);
    }
    in_json(StatusCode::OK, &out.into())
}

fn in_json(status: StatusCode, value: &Value) -> Response {
    (status, [(header::CONTENT_TYPE, "application/json")], value.to_string()).into_response()
}

/// A refusal of the page's own.
pub(super) fn told(status: StatusCode, code: &str, message: &str, remedy: &str) -> Response {
    let unmet = Unmet {
        code: code.to_owned(),
        message: message.to_owned(),
        remedy: remedy.to_owned(),
        rule: String::new(),
        facts: Map::new(),
    };
    in_json(status, &refusal(&[unmet], None, 0).into())
}

/// A service's no.
#[expect(clippy::needless_pass_by_value, reason = "it is what map_err gives")]
pub(super) fn refused(status: Status) -> Response {
    let code = StatusCode::from_u16(http_status(&status)).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    match rejection_of(&status) {
        Some(rejection) => {
            let unmet: Vec<Unmet> = rejection.violations.into_iter().map(Unmet::from).collect();
            in_json(code, &refusal(&unmet, None, rejection.more).into())
        }
        None => {
            let reason = reason_of(&status).unwrap_or_else(|| "INTERNAL".to_owned());
            let remedy = if code == StatusCode::UNAUTHORIZED { SIGN_IN } else { "try it again" };
            told(code, &reason, status.message(), remedy)
        }
    }
}

/// The token of a request's header, where it speaks for somebody.
pub(super) fn token(shared: &Shared, headers: &HeaderMap) -> Result<Token, Refused> {
    let bearer = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let token = bearer.and_then(|value| Token::parse(value.strip_prefix("Bearer ")?).ok());
    token.filter(|token| shared.coordinator.authenticate(token).is_some()).ok_or_else(|| nobody().into())
}

/// That a token speaks for nobody.
pub(super) fn nobody() -> Response {
    let message = "nobody is signed in by that";
    told(StatusCode::UNAUTHORIZED, "UNAUTHENTICATED", message, SIGN_IN)
}

pub(super) fn caller(shared: &Shared, headers: &HeaderMap) -> Result<Caller, Refused> {
    Ok(Caller::of(&shared.services, &token(shared, headers)?))
}

/// Exchanges what a link holds for a token that lives in the page.
pub(super) async fn sign_in(State(shared): State<Arc<Shared>>, body: Bytes) -> Answered {
    let given = fields(&body)?;
    let now = shared.coordinator.clock().now();
    let link = Token::parse(given.text("link")).ok();
    let whose = link.as_ref().and_then(|secret| shared.links.exchange(secret, now));
    let (secret, (team, member)) = link.as_ref().zip(whose).ok_or_else(link_used)?;
    let token = shared.coordinator.issue_page_token(&team, &member).await.map_err(|fault| {
        tracing::error!(%fault, "no token could be issued for the page");
        told(
            StatusCode::SERVICE_UNAVAILABLE,
            "STORE_UNUSABLE",
            "no token could be kept",
            "ask for a fresh link",
        )
    })?;
    // Who lost its tokens while this one was made doesn't get it.
    if !shared.links.settle(secret) {
        if let Err(fault) = shared.coordinator.end_token(&token).await {
            tracing::error!(%fault, "a token of a link that ended could not be ended");
        }
        return Err(link_used().into());
    }
    Ok(done(json!({ "token": token.expose(), "team": team.as_str(), "member": member.as_str() })))
}

fn link_used() -> Response {
    let message = "the link was used, has ended, or is too old: each signs in once, within ten minutes";
    told(StatusCode::UNAUTHORIZED, "LINK_USED", message, SIGN_IN)
}

/// Ends the page's token.
pub(super) async fn sign_out(State(shared): State<Arc<Shared>>, headers: HeaderMap) -> Answered {
    let token = token(&shared, &headers)?;
    shared.coordinator.end_token(&token).await.map_err(|fault| {
        tracing::error!(%fault, "the page's token could not be ended");
        told(
            StatusCode::SERVICE_UNAVAILABLE,
            "STORE_UNUSABLE",
            "the token could not be ended",
            "try it again",
        )
    })?;
    Ok(done(json!({})))
}

pub(super) async fn status(State(shared): State<Arc<Shared>>, headers: HeaderMap) -> Answered {
    let caller = caller(&shared, &headers)?;
    let asked = caller.asks(proto::GetStatusRequest { at_least: 0 });
    let status = caller.review().get_status(asked).await.map_err(refused)?.into_inner();
    let mut out = form::status(&status);
    out["now"] = shared.coordinator.clock().now().to_string().into();
    Ok(done(out))
}

pub(super) async fn proposal(
    State(shared): State<Arc<Shared>>,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Answered {
    let caller = caller(&shared, &headers)?;
    let asked = caller.asks(proto::GetProposalRequest { name });
    let record = caller.review().get_proposal(asked).await.map_err(refused)?.into_inner();
    Ok(done(form::record(&record)))
}

pub(super) async fn explain(
    State(shared): State<Arc<Shared>>,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Answered {
    let caller = caller(&shared, &headers)?;
    let asked = caller.asks(proto::ExplainRequest { name: name.clone() });
    let explained = caller.review().explain(asked).await.map_err(refused)?.into_inner();
    Ok(done(form::explained(&name, &explained)))
}

pub(super) async fn timeline(
    State(shared): State<Arc<Shared>>,
    Path(name): Path<String>,
    headers: HeaderMap,
    uri: Uri,
) -> Answered {
    let caller = caller(&shared, &headers)?;
    let known = given(&uri, "ids").unwrap_or_default().split(',').filter(|id| !id.is_empty());
    let told = timeline::of(&caller, &name, number(&uri, "after"), known).await.map_err(refused)?;
    Ok(done(json!({ "events": told.events, "ids": told.ids, "sequence": told.sequence })))
}

/// The latest escalations, also those that are closed.
pub(super) async fn escalations(State(shared): State<Arc<Shared>>, headers: HeaderMap) -> Answered {
    let caller = caller(&shared, &headers)?;
    let listed = every_escalation(&caller, String::new()).await?;
    let escalations: Value = listed.escalations.iter().map(form::escalation).collect();
    Ok(done(json!({ "escalations": escalations, "sequence": listed.sequence })))
}

/// The one of that id, as a list.
async fn escalation(caller: &Caller, id: &str) -> Result<Value, Refused> {
    let mut page_token = String::new();
    loop {
        let page = every_escalation(caller, page_token).await?;
        let found: Vec<Value> =
            page.escalations.iter().filter(|one| one.id == id).map(form::escalation).collect();
        page_token = page.next_page_token;
        if !found.is_empty() || page_token.is_empty() {
            return Ok(found.into());
        }
    }
}

async fn every_escalation(
    caller: &Caller,
    page_token: String,
) -> Result<proto::ListEscalationsResponse, Refused> {
    let asked = proto::ListEscalationsRequest { all: true, page_size: ESCALATIONS_MAX, page_token };
    Ok(caller.escalation().list_escalations(caller.asks(asked)).await.map_err(refused)?.into_inner())
}

/// The charter, with what the page draws: members, phases, edges.
pub(super) async fn charter(State(shared): State<Arc<Shared>>, headers: HeaderMap, uri: Uri) -> Answered {
    let caller = caller(&shared, &headers)?;
    let revision = number(&uri, "revision");
    let against = number(&uri, "against");
    let asked = caller.asks(proto::GetCharterRequest { revision, against });
    let found = caller.review().get_charter(asked).await.map_err(refused)?.into_inner();
    let mut out = form::charter(&found);
    out["against"] = found.against.into();
    out["graph"] = found.graph.clone().into();
    out["sequence"] = found.sequence.into();
    if let Ok(read) = charter::parse("charter.toml", &found.text) {
        out["members"] = members(&read);
        out["phases"] = phases(&read);
    }
    Ok(done(out))
}

fn members(charter: &Charter) -> Value {
    let member = |(name, member): (&crate::protocol::name::MemberName, &charter::Member)| {
        let kind = match member.kind {
            MemberKind::Agent => "agent",
            MemberKind::Referee => "referee",
            MemberKind::Human => "human",
        };
        json!({ "name": name.as_str(), "kind": kind, "about": member.about, "colour": member.colour })
    };
    charter.members.iter().map(member).collect()
}

fn phases(charter: &Charter) -> Value {
    let phase = |phase: &charter::Phase| {
        let deliverables = phase.deliverables.iter();
        let deliverables =
            deliverables.map(|one| json!({ "name": one.name.as_str(), "producer": one.producer.as_str() }));
        let reviews = phase.reviews.iter().map(|edge| {
            json!({ "reviewer": edge.reviewer.as_str(), "of": edge.of.as_str(), "lens": edge.lens.as_str() })
        });
        json!({
            "name": phase.name.as_str(),
            "deliverables": deliverables.collect::<Value>(),
            "reviews": reviews.collect::<Value>(),
        })
    };
    charter.phases.iter().map(phase).collect()
}

pub(super) async fn rules(State(shared): State<Arc<Shared>>, headers: HeaderMap) -> Answered {
    let caller = caller(&shared, &headers)?;
    let listed = caller.rule().list_rules(caller.asks(proto::ListRulesRequest {})).await.map_err(refused)?;
    let listed = listed.into_inner();
    let rules: Value = listed.rules.iter().map(form::rule).collect();
    Ok(done(json!({ "rules": rules, "sequence": listed.sequence })))
}

pub(super) async fn unknown() -> Response {
    told(StatusCode::NOT_FOUND, "UNKNOWN_ROUTE", "the page has no such route", "reload the page")
}

/// What a member does.
pub(super) async fn act(
    State(shared): State<Arc<Shared>>,
    Path(verb): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Answered {
    let caller = caller(&shared, &headers)?;
    let given = fields(&body)?;
    let request_id = given.text("request_id").to_owned();
    let text = |name: &str| given.text(name).to_owned();
    Ok(match verb.as_str() {
        "show" => {
            let asked = proto::ShowRequest { request_id, subject: text("subject") };
            let shown = caller.review().show(caller.asks(asked)).await.map_err(refused)?.into_inner();
            done(form::shown(&shown))
        }
        "diff" => {
            let asked = proto::DiffRequest {
                request_id,
                subject: text("subject"),
                from: given.number("from"),
                since_read: given.flag("since_read"),
                on_target: given.flag("on_target"),
            };
            let diff = caller.review().diff(caller.asks(asked)).await.map_err(refused)?.into_inner();
            done(form::compared(json!({ "ref": diff.reference, "sequence": diff.sequence }), &diff))
        }
        "objections" => {
            let proposal = text("proposal");
            let asked = proto::ObjectionsRequest { request_id, proposal: proposal.clone() };
            let read = caller.review().objections(caller.asks(asked)).await.map_err(refused)?.into_inner();
            done(form::objections(&proposal, &read))
        }
        "approve" => {
            let asked = proto::ApproveRequest {
                request_id,
                reference: text("ref"),
                checked: given.texts("checked"),
                ran: Vec::new(),
                resolve: given.texts("resolve"),
            };
            let answer = caller.review().approve(caller.asks(asked)).await.map_err(refused)?.into_inner();
            done(form::approved(&answer, None))
        }
        "object" => {
            let (reference, text, at) = (text("ref"), text("text"), given.texts("at"));
            let asked = proto::ObjectRequest { request_id, reference, text, at, failing_test: None };
            let answer = caller.review().object(caller.asks(asked)).await.map_err(refused)?.into_inner();
            done(form::objected(&answer, None))
        }
        "note" => {
            let (reference, text, at) = (text("ref"), text("text"), given.texts("at"));
            let asked = proto::NoteRequest { request_id, reference, text, at };
            let answer = caller.review().note(caller.asks(asked)).await.map_err(refused)?.into_inner();
            let proto::NoteResponse { sequence, objection, reference, woke, called_out } = answer;
            let answer = proto::ObjectResponse { sequence, objection, reference, woke, called_out };
            done(form::objected(&answer, None))
        }
        "resolve" => {
            let (objection, mistaken, reason) = (text("objection"), given.flag("mistaken"), text("reason"));
            let asked = proto::ResolveRequest { request_id, objection, mistaken, reason };
            let answer = caller.review().resolve(caller.asks(asked)).await.map_err(refused)?.into_inner();
            done(form::resolved(&answer, None))
        }
        "overrule" => {
            let asked =
                proto::OverruleRequest { request_id, objection: text("objection"), reason: text("reason") };
            let answer = caller.review().overrule(caller.asks(asked)).await.map_err(refused)?.into_inner();
            let proto::OverruleResponse { sequence, objection, woke } = answer;
            done(form::resolved(&proto::ResolveResponse { sequence, objection, woke }, None))
        }
        "confirm" => {
            let asked = proto::ConfirmRequest { request_id, reference: text("ref") };
            let answer = caller.review().confirm(caller.asks(asked)).await.map_err(refused)?.into_inner();
            done(form::confirmed(&answer))
        }
        "escalate" => {
            let asked = proto::EscalateRequest { request_id, subject: text("subject"), text: text("text") };
            let answer =
                caller.escalation().escalate(caller.asks(asked)).await.map_err(refused)?.into_inner();
            done(form::escalated(&answer, &escalation(&caller, &answer.escalation).await?, None))
        }
        "say" => {
            let asked = proto::SayRequest {
                request_id,
                text: text("text"),
                about: text("about"),
                reply: text("reply"),
                ..Default::default()
            };
            let answer = caller.room().say(caller.asks(asked)).await.map_err(refused)?.into_inner();
            done(form::said(&answer, None))
        }
        "verdict" => {
            let verdict = match given.text("verdict") {
                "supported" => proto::Verdict::Supported,
                "refuted" => proto::Verdict::Refuted,
                "unverifiable" => proto::Verdict::Unverifiable,
                _ => proto::Verdict::Unspecified,
            };
            let evidence = Some(proto::Evidence { at: given.texts("at"), ran: Vec::new() });
            let (message, text) = (text("message"), text("text"));
            let asked =
                proto::JudgeClaimRequest { request_id, message, verdict: verdict.into(), text, evidence };
            let answer = caller.room().judge_claim(caller.asks(asked)).await.map_err(refused)?.into_inner();
            done(form::judged(&answer, None))
        }
        "answer" => {
            let asked = proto::AnswerEscalationRequest {
                request_id,
                escalation: text("escalation"),
                decision: text("decision"),
                reason: text("reason"),
                member: text("member"),
                reviewer: text("reviewer"),
            };
            let answered = caller.escalation().answer_escalation(caller.asks(asked)).await;
            let answer = answered.map_err(refused)?.into_inner();
            let itself = escalation(&caller, &answer.escalation).await?;
            done(form::answered(&answer, given.text("decision"), &itself, None))
        }
        _ => return Err(unknown().await.into()),
    })
}

/// A number of the query; 0 where there is none.
pub(super) fn number<N: std::str::FromStr + Default>(uri: &Uri, name: &str) -> N {
    given(uri, name).and_then(|value| value.parse().ok()).unwrap_or_default()
}

/// A value of the query, as it stands there.
fn given<'a>(uri: &'a Uri, name: &str) -> Option<&'a str> {
    let mut pairs = uri.query().unwrap_or_default().split('&').filter_map(|pair| pair.split_once('='));
    pairs.find_map(|(found, value)| (found == name).then_some(value))
}

/// The members of a JSON body.
pub(super) struct Fields(Map<String, Value>);

pub(super) fn fields(body: &Bytes) -> Result<Fields, Refused> {
    serde_json::from_slice(body).map(Fields).map_err(|_| {
        let message = "the body is no JSON object";
        told(StatusCode::BAD_REQUEST, "MALFORMED", message, "reload the page").into()
    })
}

impl Fields {
    pub(super) fn text(&self, name: &str) -> &str {
        self.0.get(name).and_then(Value::as_str).unwrap_or_default()
    }

    fn texts(&self, name: &str) -> Vec<String> {
        let items = self.0.get(name).and_then(Value::as_array).into_iter().flatten();
        items.filter_map(Value::as_str).map(str::to_owned).collect()
    }

    fn number(&self, name: &str) -> u32 {
        let number = self.0.get(name).and_then(Value::as_u64).unwrap_or_default();
        u32::try_from(number).unwrap_or(u32::MAX)
    }

    fn flag(&self, name: &str) -> bool {
        self.0.get(name).and_then(Value::as_bool).unwrap_or_default()
    }
}
