//! What the operator's commands have in common: they act on the home, through the server that runs
//! on it or, where none does, on the folder itself.

use std::path::{Path, PathBuf};

use super::failure::{Failure, sentence};
use super::rules;
use super::speaker::{Global, server};
use crate::client::proto::{
    AddTeamRequest, DescribeDoorRequest, IssueTokenRequest, IssuedToken, RevokeTokensRequest,
};
use crate::client::{self, Admin};
use crate::coordinator::token::Token;
use crate::door::ledger::Passed;
use crate::home::{Home, HomeFault};
use crate::protocol::name::{MemberName, TeamName};
use crate::protocol::rule::OwnRule;
use crate::server::door::{self, Guarded};
use crate::server::operator::{self, CharterFile, OperatorFault};

/// The way to a home's state.
pub enum Operator {
    /// A server runs on it: it alone may write.
    Served(Admin, Home),
    /// None does.
    Alone(Home),
}

/// A token, and whose it is.
pub struct Issued {
    /// In which team.
    pub team: TeamName,
    /// As which member.
    pub member: MemberName,
    /// The token.
    pub token: Token,
}

impl Operator {
    /// Of that home. A `server.json` that a killed server left behind leads nowhere, and then the
    /// folder is taken; if a server does hold it after all, its lock says so.
    pub async fn of(home: Home, global: &Global) -> Result<Self, Failure> {
        if home.read_server().is_none() {
            return Ok(Self::Alone(home));
        }
        let token = home.operator_token()?;
        let server = server(global, None, Some(&home))?;
        match client::connect_operator(&server, &token).await {
            Ok(admin) => Ok(Self::Served(admin, home)),
            Err(client::Failure::Unreachable { .. }) => Ok(Self::Alone(home)),
            Err(failure) => Err(failure.into()),
        }
    }

    /// The home.
    pub fn home(&self) -> &Home {
        match self {
            Self::Served(_, home) | Self::Alone(home) => home,
        }
    }

    /// Adds a team, and writes its members' tokens into the home; says which team, and where.
    pub async fn add_team(
        &self,
        file: &Path,
        charter: &[u8],
        rules: Vec<OwnRule>,
    ) -> Result<(TeamName, Vec<PathBuf>), Failure> {
        let name = file.display().to_string();
        let file = std::path::absolute(file).map_err(|why| Failure::io(file.display(), &why))?;
        let folder = file.parent().unwrap_or(Path::new("/"));
        let issued: Vec<Issued> = match self {
            Self::Served(admin, _) => {
                let folder = folder.to_str().ok_or_else(|| {
                    Failure::usage(format!(
                        "{}: a running server takes no path that is not UTF-8",
                        folder.display()
                    ))
                })?;
                let request = AddTeamRequest {
                    file: name,
                    charter: charter.to_vec().into(),
                    folder: folder.to_owned(),
                    rules: rules::sent(rules),
                };
                admin.add_team(request).await?.tokens.iter().map(issued).collect::<Result<_, _>>()?
            }
            Self::Alone(home) => {
                let file = CharterFile { name: &name, bytes: charter, folder, rules: &rules };
                let added = operator::add_team(home, file).await?;
                let team = added.team;
                let with_team = |(member, token)| Issued { team: team.clone(), member, token };
                added.tokens.into_iter().map(with_team).collect()
            }
        };
        let written = issued
            .iter()
            .map(|issued| self.home().write_token(Some(&issued.team), &issued.member, &issued.token));
        let written: Vec<PathBuf> = written.collect::<Result<_, _>>()?;
        let team = issued.first().map(|issued| issued.team.clone());
        let team = team
            .ok_or_else(|| Failure::refused("INTERNAL", "the team has no member", "look into the charter"))?;
        Ok((team, written))
    }

    /// Issues a fresh token for a member.
    pub async fn issue_token(
        &self,
        team: Option<&TeamName>,
        member: &MemberName,
        keep: bool,
    ) -> Result<Issued, Failure> {
        match self {
            Self::Served(admin, _) => {
                let request = IssueTokenRequest { team: named(team), member: member.to_string(), keep };
                issued(&admin.issue_token(request).await?.token.unwrap_or_default())
            }
            Self::Alone(home) => {
                let (team, token) = operator::issue_token(home, team, member, keep).await?;
                Ok(Issued { team, member: member.clone(), token })
            }
        }
    }

    /// The guarded repository, and where its refs should be by the log.
    pub async fn guarded(&self, team: Option<&TeamName>) -> Result<Guarded, Failure> {
        match self {
            Self::Served(admin, _) => {
                let told = admin.describe_door(DescribeDoorRequest { team: named(team) }).await?;
                Guarded::told(told).ok_or_else(|| {
                    Failure::refused(
                        "INTERNAL",
                        "the server told a team that is none",
                        "look into the server's log",
                    )
                })
            }
            Self::Alone(home) => Ok(door::guarded(home, team).await?),
        }
    }

    /// The pushes that persons let past that team's door.
    pub fn passed(&self, team: &TeamName) -> Result<Vec<Passed>, Failure> {
        Ok(door::passed(self.home(), team)?)
    }

    /// Ends every token of a member; says how many.
    pub async fn revoke_tokens(&self, team: Option<&TeamName>, member: &MemberName) -> Result<u64, Failure> {
        match self {
            Self::Served(admin, _) => {
                let request = RevokeTokensRequest { team: named(team), member: member.to_string() };
                Ok(admin.revoke_tokens(request).await?.revoked)
            }
            Self::Alone(home) => Ok(operator::revoke_tokens(home, team, member).await? as u64),
        }
    }
}

fn named(team: Option<&TeamName>) -> String {
    team.map(ToString::to_string).unwrap_or_default()
}

fn issued(told: &IssuedToken) -> Result<Issued, Failure> {
    let wrong =
        || Failure::refused("INTERNAL", "the server told a token that is none", "look into the server's log");
    Ok(Issued {
        team: told.team.parse().map_err(|_| wrong())?,
        member: told.member.parse().map_err(|_| wrong())?,
        token: Token::parse(&told.token).map_err(|_| wrong())?,
    })
}

impl From<HomeFault> for Failure {
    fn from(fault: HomeFault) -> Self {
        Self::refused("HOME_UNUSABLE", sentence(&fault), fault.remedy())
    }
}

impl From<OperatorFault> for Failure {
    fn from(fault: OperatorFault) -> Self {
        match fault {
            OperatorFault::Charter(found) => super::charter::refused(&found),
            OperatorFault::Store(fault) => fault.into(),
            other => Self::refused(other.code(), sentence(&other), other.remedy()),
        }
    }
}
