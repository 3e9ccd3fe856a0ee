//! The counters for whoever watches the server: one page in the text format of OpenMetrics, for the operator's
//! token alone. What is counted comes from the log, but for what rules denied since the start.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use prometheus_client::encoding::{EncodeLabelSet, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use tonic::metadata::MetadataMap;
use tonic::service::AxumRouter;

use super::auth;
use super::shared::Shared;

/// Where the page is.
pub const PATH: &str = "/metrics";

const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct OfTeam {
    team: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct OfPatch {
    team: String,
    patch: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct OfCause {
    team: String,
    cause: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct OfRule {
    team: String,
    rule: String,
}

/// The one route.
pub(super) fn router(shared: Arc<Shared>) -> AxumRouter {
    AxumRouter::new().route(PATH, get(page)).with_state(shared)
}

async fn page(State(shared): State<Arc<Shared>>, headers: HeaderMap) -> Response {
    // Names of teams and of rules are nobody else's to know.
    if auth::operator(&shared, &MetadataMap::from_headers(headers)).is_err() {
        let challenge = [(header::WWW_AUTHENTICATE, "Bearer")];
        return (StatusCode::UNAUTHORIZED, challenge, "the operator's token is needed\n").into_response();
    }
    match written(&shared) {
        Ok(text) => ([(header::CONTENT_TYPE, CONTENT_TYPE)], text).into_response(),
        Err(fault) => {
            tracing::error!(%fault, "the counters can't be written");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}

fn written(shared: &Shared) -> Result<String, std::fmt::Error> {
    let events = Family::<OfTeam, Counter>::default();
    let recoveries = Family::<OfPatch, Counter>::default();
    let escalations = Family::<OfCause, Gauge>::default();
    let denials = Family::<OfRule, Counter>::default();
    for (team, counts) in shared.coordinator.counts() {
        let team = team.to_string();
        events.get_or_create(&OfTeam { team: team.clone() }).inc_by(counts.events);
        // Zero is the good news: each patch is there from the start.
        for (patch, count) in counts.recoveries {
            let patch = patch.as_str().to_owned();
            recoveries.get_or_create(&OfPatch { team: team.clone(), patch }).inc_by(count);
        }
        for (cause, count) in counts.escalations {
            let of = OfCause { team: team.clone(), cause: cause.to_owned() };
            escalations.get_or_create(&of).set(i64::try_from(count).unwrap_or(i64::MAX));
        }
        for (rule, count) in counts.denials {
            denials.get_or_create(&OfRule { team: team.clone(), rule }).inc_by(count);
        }
    }
    let mut registry = Registry::with_prefix("countersign");
    registry.register("events", "Events of the team's log", events);
    registry.register("recovery_patches", "How often a patch fired that must never fire", recoveries);
    registry.register("escalations_open", "Escalations that wait for a person", escalations);
    registry.register("rule_denials", "Commands that a rule refused since the server started", denials);
    let mut out = String::new();
    text::encode(&mut out, &registry)?;
    Ok(out)
}
