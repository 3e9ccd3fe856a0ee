//! The rule service: what judges a team, and what a candidate would say of it.

use std::path::Path;
use std::sync::Arc;

use tonic::{Request, Response, Status};

use super::answer::Failure;
use super::call::{Call, answered};
use super::shared::Shared;
use crate::judge::CelJudge;
use crate::protocol::adoption::RuleFault;
use crate::protocol::rejection::Rejection;
use crate::protocol::review::requirement;
use crate::protocol::rule::{self, Judge, Moment};
use crate::protocol::{Team, Violation};
use crate::wire::proto::rule_service_server::RuleService;
use crate::wire::{proto, requirement as message};

/// The service.
pub(super) struct Rules(pub(super) Arc<Shared>);

#[tonic::async_trait]
impl RuleService for Rules {
    async fn list_rules(
        &self,
        request: Request<proto::ListRulesRequest>,
    ) -> Result<Response<proto::ListRulesResponse>, Status> {
        answered(&self.0, "list rules", request, list).await
    }

    async fn check_rule(
        &self,
        request: Request<proto::CheckRuleRequest>,
    ) -> Result<Response<proto::CheckRuleResponse>, Status> {
        answered(&self.0, "check rule", request, check).await
    }
}

async fn list(call: Call, _: proto::ListRulesRequest) -> Result<proto::ListRulesResponse, Failure> {
    let attempts = call.team.attempts();
    let look = |team: &Team, _| {
        let judge = call.team.judge();
        let rule = |rule: &rule::Rule| proto::Rule {
            denied: attempts.rules().get(&rule.id).copied().unwrap_or(0),
            ..rule_message(team, rule)
        };
        judge.rules().iter().map(rule).collect()
    };
    let (rules, seq) = call.team.read(look).await?;
    Ok(proto::ListRulesResponse { sequence: seq.0, rules })
}

async fn check(call: Call, request: proto::CheckRuleRequest) -> Result<proto::CheckRuleResponse, Failure> {
    let stem = Path::new(&request.file).file_stem().unwrap_or_default().to_string_lossy();
    let (file, stem, text) = (request.file.clone(), stem.into_owned(), request.text.clone());
    let candidate = {
        let _turn = call.shared.compiling.lock().await;
        let compiled = move || CelJudge::candidate_text(&file, &stem, &text);
        tokio::task::spawn_blocking(compiled).await.map_err(|_| Failure::unexpected())?
    };
    let candidate = candidate.map_err(|errors| {
        let refused = errors.into_iter().map(|error| Violation::from(&RuleFault::from(error)));
        Rejection::from(refused.collect::<Vec<_>>())
    })?;
    let look = |team: &Team, _| {
        let rule = candidate.rules().first().map(|rule| rule_message(team, rule));
        let tried = requirement::tried(team, &candidate, &call.member);
        (rule, tried.iter().map(message::requirement).collect())
    };
    let ((rule, requirements), seq) = call.team.read(look).await?;
    Ok(proto::CheckRuleResponse { sequence: seq.0, rule, requirements })
}

fn rule_message(team: &Team, rule: &rule::Rule) -> proto::Rule {
    let adopted = team.adopted();
    let mode = adopted.and_then(|adopted| adopted.charter.rules.modes.get(&rule.id)).copied();
    proto::Rule {
        id: rule.id.clone(),
        title: rule.title.clone(),
        when: rule.when.to_string(),
        about: rule.about.to_string(),
        owes: rule.owes.to_string(),
        mode: mode.unwrap_or_default().as_str().to_owned(),
        own: adopted.is_some_and(|adopted| adopted.rules.iter().any(|own| own.id == rule.id)),
        denied: 0,
        called_out: if rule.when == Moment::Confirm { 0 } else { team.called_out(&rule.id) },
        incident: rule.incident.clone(),
        remedy: rule.remedy.clone(),
    }
}
