//! The administration service: the work of [`operator`](super::operator), in a running server.

use std::path::Path;
use std::sync::Arc;

use tonic::{Request, Response, Status};

use super::answer::Failure;
use super::call::answered_to_operator;
use super::charter::own_rules;
use super::operator::{CharterFile, add_team_with, holder};
use super::shared::Shared;
use crate::coordinator::token::Token;
use crate::protocol::name::{MemberName, TeamName, shown};
use crate::protocol::{Rejection, Violation};
use crate::wire::proto::admin_service_server::AdminService;
use crate::wire::{Arguments, proto};

/// The service.
pub(super) struct Admin(pub(super) Arc<Shared>);

#[tonic::async_trait]
impl AdminService for Admin {
    async fn add_team(
        &self,
        request: Request<proto::AddTeamRequest>,
    ) -> Result<Response<proto::AddTeamResponse>, Status> {
        answered_to_operator(&self.0, "add team", request, add_team).await
    }

    async fn issue_token(
        &self,
        request: Request<proto::IssueTokenRequest>,
    ) -> Result<Response<proto::IssueTokenResponse>, Status> {
        answered_to_operator(&self.0, "issue token", request, issue_token).await
    }

    async fn revoke_tokens(
        &self,
        request: Request<proto::RevokeTokensRequest>,
    ) -> Result<Response<proto::RevokeTokensResponse>, Status> {
        answered_to_operator(&self.0, "revoke tokens", request, revoke_tokens).await
    }

    async fn list_teams(
        &self,
        request: Request<proto::ListTeamsRequest>,
    ) -> Result<Response<proto::ListTeamsResponse>, Status> {
        answered_to_operator(&self.0, "list teams", request, list_teams).await
    }
}

async fn add_team(
    shared: Arc<Shared>,
    request: proto::AddTeamRequest,
) -> Result<proto::AddTeamResponse, Failure> {
    let folder = Path::new(&request.folder);
    if !folder.is_absolute() {
        return Err(Violation::Malformed {
            argument: "folder".to_owned(),
            expected: "an absolute path".to_owned(),
            given: shown(&request.folder, 120),
            form: "the folder that the charter lies in".to_owned(),
        }
        .into());
    }
    let _turn = shared.adding.lock().await;
    let rules = own_rules(request.rules);
    let file = CharterFile { name: &request.file, bytes: &request.charter, folder, rules: &rules };
    let added = add_team_with(&shared.coordinator, &shared.home, file).await;
    let (added, artifacts) = added?;
    shared.keep_artifacts(added.team.clone(), artifacts);
    let tokens = added.tokens.iter().map(|(member, token)| issued(&added.team, member, token)).collect();
    Ok(proto::AddTeamResponse { team: added.team.to_string(), tokens })
}

async fn issue_token(
    shared: Arc<Shared>,
    request: proto::IssueTokenRequest,
) -> Result<proto::IssueTokenResponse, Failure> {
    let (team, member) = whose(&request.team, &request.member)?;
    let (team, holder) = holder(&shared.coordinator, team.as_ref(), &member)?;
    // Links are a way to a token, and end with the tokens.
    let links = shared.links.as_deref().filter(|_| !request.keep);
    let _ending = links.map(|links| links.end(&team, &holder));
    let token = shared.coordinator.issue_token(&team, &holder, request.keep).await?;
    Ok(proto::IssueTokenResponse { token: Some(issued(&team, &member, &token)) })
}

async fn revoke_tokens(
    shared: Arc<Shared>,
    request: proto::RevokeTokensRequest,
) -> Result<proto::RevokeTokensResponse, Failure> {
    let (team, member) = whose(&request.team, &request.member)?;
    let (team, holder) = holder(&shared.coordinator, team.as_ref(), &member)?;
    let _ending = shared.links.as_deref().map(|links| links.end(&team, &holder));
    let revoked = shared.coordinator.revoke_tokens(&team, &holder).await?;
    Ok(proto::RevokeTokensResponse { revoked: revoked as u64 })
}

async fn list_teams(
    shared: Arc<Shared>,
    _request: proto::ListTeamsRequest,
) -> Result<proto::ListTeamsResponse, Failure> {
    let mut teams = Vec::new();
    for team in shared.coordinator.teams() {
        let look = |team: &crate::protocol::Team, _| {
            let members = team.adopted().map(|adopted| adopted.charter.members.keys());
            members.into_iter().flatten().map(ToString::to_string).collect()
        };
        let (members, seq) = team.read(look).await?;
        teams.push(proto::TeamSummary { name: team.name().to_string(), members, sequence: seq.0 });
    }
    Ok(proto::ListTeamsResponse { teams })
}

fn whose(team: &str, member: &str) -> Result<(Option<TeamName>, MemberName), Rejection> {
    let mut arguments = Arguments::default();
    let team = if team.is_empty() { Some(None) } else { arguments.read("team", team).map(Some) };
    let member = arguments.read("member", member);
    arguments.finish(team.zip(member))
}

fn issued(team: &TeamName, member: &MemberName, token: &Token) -> proto::IssuedToken {
    proto::IssuedToken {
        team: team.to_string(),
        member: member.to_string(),
        token: token.expose().to_owned(),
    }
}
