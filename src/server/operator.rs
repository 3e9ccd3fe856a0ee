//! What whoever holds the home folder may do: add teams, issue tokens, end them. The functions here
//! do it where no server runs; [`AdminService`](super::admin) does the same work in a running one.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use sha2::{Digest as _, Sha256};

use super::pin;
use crate::artifact::{self, Artifacts};
use crate::coordinator::token::Token;
use crate::coordinator::{AddTeamError, Clock, Coordinator, READER, SystemClock, TeamHandle};
use crate::home::{Home, HomeFault};
use crate::judge::{CelRulebook, LoadError, own};
use crate::protocol::charter::{self, Charter, Diagnostics};
use crate::protocol::name::{Actor, Digest, MemberName, TeamName, nearest};
use crate::protocol::rejection::list;
use crate::protocol::rule::OwnRule;
use crate::protocol::{Adopt, Command};
use crate::store::Fault;
use crate::store::sqlite::SqliteStore;

/// A team that was added, with a token for every member. The tokens are told once: the server keeps
/// their hashes alone.
#[derive(Debug)]
pub struct AddedTeam {
    /// The team.
    pub team: TeamName,
    /// A token for every member, by name.
    pub tokens: Vec<(MemberName, Token)>,
}

/// Why what the operator asked for was not done.
#[derive(Debug, thiserror::Error)]
pub enum OperatorFault {
    /// The home folder can't be read or written.
    #[error(transparent)]
    Home(#[from] HomeFault),
    /// The store refused: another server holds the folder, a log is damaged…
    #[error(transparent)]
    Store(Fault),
    /// The charter can't be taken; the findings have their places.
    #[error("{0}")]
    Charter(Diagnostics),
    /// A rule that comes with the charter can't be put in force, or the charter names one that isn't there.
    #[error("{}", lines(.0))]
    Rules(Vec<LoadError>),
    /// The guarded repository can't be used.
    #[error("the repository {} of {team}: {}", .path.display(), chain(.source))]
    Repository {
        /// Whose.
        team: TeamName,
        /// Where it should be.
        path: PathBuf,
        /// What is wrong with it.
        source: artifact::Failure,
    },
    /// The team guards no repository.
    #[error("{team} guards no repository")]
    NoRepository {
        /// Which team.
        team: TeamName,
    },
    /// The repository keeps versions of another log, which pins never replace.
    #[error("the repository {} keeps {reference}, of another team or an earlier home", .path.display())]
    Pinned {
        /// The repository.
        path: PathBuf,
        /// The first such ref.
        reference: String,
    },
    /// The team's artifacts can't be kept.
    #[error("the artifacts of {team}: {}", chain(.source))]
    Artifacts {
        /// Whose.
        team: TeamName,
        /// What is wrong.
        source: artifact::Failure,
    },
    /// A team of that name is there already.
    #[error("there is a team {team} already")]
    TeamTaken {
        /// The name.
        team: TeamName,
    },
    /// No team of that name.
    #[error("there is no team {team} here")]
    UnknownTeam {
        /// The name.
        team: TeamName,
        /// The nearest that is.
        nearest: Option<String>,
    },
    /// No team was named, and there are several.
    #[error("there are several teams here: {}", list(.teams))]
    TeamNeeded {
        /// Their names.
        teams: Vec<TeamName>,
    },
    /// There is no team at all.
    #[error("there is no team here yet")]
    NoTeam,
    /// The team has no member of that name.
    #[error("{team} has no member {member}")]
    UnknownMember {
        /// The team.
        team: TeamName,
        /// The name.
        member: MemberName,
        /// The nearest that is.
        nearest: Option<String>,
    },
    /// The first charter wasn't adopted.
    #[error("the charter was not adopted: {reason}")]
    NotAdopted {
        /// Why.
        reason: String,
    },
}

impl OperatorFault {
    /// A stable code, as rejections have one.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Home(_) => "HOME_UNUSABLE",
            Self::Store(Fault::Held { .. }) => "HOME_HELD",
            Self::Store(Fault::Damaged { .. } | Fault::Cut { .. } | Fault::Witness { .. }) => "LOG_DAMAGED",
            Self::Store(_) => "STORE_UNUSABLE",
            Self::Charter(_) => "CHARTER_REFUSED",
            Self::Rules(_) => "RULE_REFUSED",
            Self::Repository { .. } => "REPOSITORY_UNUSABLE",
            Self::NoRepository { .. } => "NO_REPOSITORY",
            Self::Pinned { .. } => "REPOSITORY_IN_USE",
            Self::Artifacts { .. } => "ARTIFACTS_UNUSABLE",
            Self::TeamTaken { .. } => "TEAM_TAKEN",
            Self::UnknownTeam { .. } | Self::NoTeam => "UNKNOWN_TEAM",
            Self::TeamNeeded { .. } => "TEAM_NEEDED",
            Self::UnknownMember { .. } => "UNKNOWN_MEMBER",
            Self::NotAdopted { .. } => "NOT_ADOPTED",
        }
    }

    /// What to do about it.
    pub fn remedy(&self) -> String {
        match self {
            Self::Home(_) => "see that the folder is yours, then ask again".to_owned(),
            Self::Store(fault) => store_remedy(fault),
            Self::Charter(_) => "mend the charter; run: countersign charter check FILE".to_owned(),
            Self::Rules(_) => "mend it, then run: countersign rules test --charter FILE".to_owned(),
            Self::Repository { .. } => {
                "give the path of a bare repository, relative to the charter; run: git init --bare PATH"
                    .to_owned()
            }
            Self::NoRepository { .. } => {
                "name one in the charter's [repository], and put it in force: countersign charter adopt FILE --reason TEXT"
                    .to_owned()
            }
            Self::Pinned { reference, .. } => format!(
                "give the team a repository of its own, or, if nothing needs these versions any longer, \
                 delete each of them: git update-ref -d {reference}"
            ),
            Self::Artifacts { .. } => "see that the home folder is yours and has room".to_owned(),
            Self::TeamTaken { .. } => "give the team another name in the charter".to_owned(),
            Self::UnknownTeam { nearest: Some(nearest), .. } => format!("use {nearest}"),
            Self::UnknownTeam { .. } | Self::NoTeam => {
                "add it: countersign team add --charter FILE".to_owned()
            }
            Self::TeamNeeded { teams } => format!("name one of them: {}", list(teams)),
            Self::UnknownMember { nearest: Some(nearest), .. } => format!("use {nearest}"),
            Self::UnknownMember { .. } => "name a member of the charter".to_owned(),
            Self::NotAdopted { .. } => "ask again".to_owned(),
        }
    }
}

impl From<Fault> for OperatorFault {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::TeamTaken { team } => Self::TeamTaken { team },
            Fault::UnknownTeam { team } => Self::UnknownTeam { team, nearest: None },
            other => Self::Store(other),
        }
    }
}

/// What to do about a store that refuses.
pub(super) fn store_remedy(fault: &Fault) -> String {
    match fault {
        Fault::Held { .. } => "use that server, or end it first",
        Fault::Damaged { .. } | Fault::Cut { .. } => {
            "restore the home from a backup; nothing was changed here"
        }
        Fault::Witness { .. } => "restore the witness, or the home, from a backup",
        Fault::Newer { .. } => "use the newer program; nothing was changed here",
        Fault::Replaced { .. } => "put the file back, then start again",
        Fault::UnknownTeam { .. }
        | Fault::TeamTaken { .. }
        | Fault::NotEmpty { .. }
        | Fault::Failed { .. } => "see that the home folder is yours and has room, then start again",
    }
    .to_owned()
}

/// A fault with its sources, on one line.
pub(super) fn chain(fault: &dyn std::error::Error) -> String {
    let mut text = fault.to_string();
    let mut source = fault.source();
    while let Some(cause) = source {
        text.push_str(&format!(": {cause}"));
        source = cause.source();
    }
    text
}

/// Adds a team to a home that no server serves: its first charter is adopted, and every member gets a
/// token. `file` is what errors call the charter, `folder` what its paths are relative to.
///
/// The tokens are not written anywhere: [`Home::write_token`] does that.
pub async fn add_team(home: &Home, charter: CharterFile<'_>) -> Result<AddedTeam, OperatorFault> {
    add_team_by(Arc::new(SystemClock::after(home.read_alive())), home, charter).await
}

/// The same by another clock than the machine's: a team's time never runs backwards, so its log begins
/// by the clock of the server that will serve it.
pub async fn add_team_by(
    clock: Arc<dyn Clock>,
    home: &Home,
    charter: CharterFile<'_>,
) -> Result<AddedTeam, OperatorFault> {
    let coordinator = open(home, clock)?;
    let added = add_team_with(&coordinator, home, charter).await;
    coordinator.shutdown().await;
    added.map(|(added, _)| added)
}

/// Issues a token for a member, in a home that no server serves; the tokens before it end unless
/// `keep`. The team may be left out where there is one.
pub async fn issue_token(
    home: &Home,
    team: Option<&TeamName>,
    member: &MemberName,
    keep: bool,
) -> Result<(TeamName, Token), OperatorFault> {
    let coordinator = open(home, Arc::new(SystemClock::after(home.read_alive())))?;
    let issued = async {
        let (team, holder) = holder(&coordinator, team, member)?;
        let token = coordinator.issue_token(&team, &holder, keep).await?;
        Ok((team, token))
    }
    .await;
    coordinator.shutdown().await;
    issued
}

/// Ends every token of a member, in a home that no server serves; says how many. The team may be left
/// out where there is one.
pub async fn revoke_tokens(
    home: &Home,
    team: Option<&TeamName>,
    member: &MemberName,
) -> Result<usize, OperatorFault> {
    let coordinator = open(home, Arc::new(SystemClock::after(home.read_alive())))?;
    let revoked = async {
        let (team, holder) = holder(&coordinator, team, member)?;
        Ok(coordinator.revoke_tokens(&team, &holder).await?)
    }
    .await;
    coordinator.shutdown().await;
    revoked
}

/// Looks at a home that no server serves.
pub(super) async fn with_home<T, F>(
    home: &Home,
    look: impl FnOnce(Coordinator) -> F,
) -> Result<T, OperatorFault>
where
    F: Future<Output = Result<T, OperatorFault>>,
{
    let coordinator = open(home, Arc::new(SystemClock::after(home.read_alive())))?;
    let seen = look(coordinator.clone()).await;
    coordinator.shutdown().await;
    seen
}

fn open(home: &Home, clock: Arc<dyn Clock>) -> Result<Coordinator, OperatorFault> {
    let holder =
        format!("process {}, which adds a team or a token, or looks at the door", std::process::id());
    let (writer, reader) = SqliteStore::open(home.path(), &holder)?;
    let rulebook = Arc::new(CelRulebook::default());
    Ok(Coordinator::start(Box::new(writer), Arc::new(reader), rulebook, clock)?)
}

/// Each on a line of its own.
fn lines(errors: &[LoadError]) -> String {
    errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

/// A charter with what comes with it.
#[derive(Clone, Copy, Debug)]
pub struct CharterFile<'a> {
    /// What errors call the file.
    pub name: &'a str,
    /// The file, verbatim.
    pub bytes: &'a [u8],
    /// What its paths are relative to.
    pub folder: &'a Path,
    /// The rules of its own folder.
    pub rules: &'a [OwnRule],
}

impl<'a> CharterFile<'a> {
    /// One that comes without rules of its own.
    pub fn alone(name: &'a str, bytes: &'a [u8], folder: &'a Path) -> Self {
        Self { name, bytes, folder, rules: &[] }
    }
}

pub(super) async fn add_team_with(
    coordinator: &Coordinator,
    home: &Home,
    file: CharterFile<'_>,
) -> Result<(AddedTeam, Artifacts), OperatorFault> {
    let parsed = charter::parse_bytes(file.name, file.bytes).map_err(OperatorFault::Charter)?;
    let text = String::from_utf8_lossy(file.bytes).into_owned();
    own::check(file.name, &text, &parsed, file.rules).map_err(OperatorFault::Rules)?;
    let team = parsed.team.clone();
    // A team whose first charter was cut off by a crash is there and has none.
    let begun = coordinator.team(&team);
    if begun.as_ref().is_some_and(|begun| begun.peek(|team| team.adopted().is_some())) {
        return Err(OperatorFault::TeamTaken { team });
    }
    if coordinator.teams().iter().all(|known| *known.name() == team) {
        home.set_first_team(&team)?;
    }
    home.set_charter_folder(&team, file.folder)?;
    let artifacts = open_artifacts(home, &parsed).await?;
    if let (Ok(repository), Some(path)) = (artifacts.repository(), repository_path(home, &parsed)?) {
        let pinned = pin::pinned(repository).await.map_err(|source| OperatorFault::Repository {
            team: team.clone(),
            path: path.clone(),
            source,
        })?;
        if let Some(reference) = pinned.into_keys().next() {
            return Err(OperatorFault::Pinned { path, reference });
        }
    }

    let digest = Digest::of_bytes(Sha256::digest(file.bytes).into());
    let members: Vec<MemberName> = parsed.members.keys().cloned().collect();
    let adopt = Adopt { text, digest, charter: parsed, rules: file.rules.to_vec() };
    match begun {
        None => {
            coordinator.add_team(adopt).await.map_err(|error| match error {
                AddTeamError::Store(fault) => fault.into(),
                AddTeamError::Adopt(reason) => OperatorFault::NotAdopted { reason },
            })?;
        }
        Some(begun) => {
            let adopted = begun.submit(Actor::Operator, Command::Adopt(Box::new(adopt)), None).await;
            adopted.map_err(|refusal| OperatorFault::NotAdopted { reason: refusal.to_string() })?;
        }
    }
    let mut tokens = Vec::with_capacity(members.len());
    for member in members {
        let token = coordinator.issue_token(&team, &member, false).await?;
        tokens.push((member, token));
    }
    Ok((AddedTeam { team, tokens }, artifacts))
}

/// The team that is meant; it may be left out where there is one.
pub(super) fn find_team(
    coordinator: &Coordinator,
    team: Option<&TeamName>,
) -> Result<TeamHandle, OperatorFault> {
    if let Some(team) = team {
        // Without waking the others: the door asks this at each push.
        return coordinator.team(team).ok_or_else(|| {
            let teams = coordinator.teams();
            let known = teams.iter().map(|known| known.name().as_str());
            let nearest = nearest(team.as_str(), known).map(str::to_owned);
            OperatorFault::UnknownTeam { team: team.clone(), nearest }
        });
    }
    match coordinator.teams().as_slice() {
        [] => Err(OperatorFault::NoTeam),
        [only] => Ok(only.clone()),
        several => {
            let teams = several.iter().map(|known| known.name().clone()).collect();
            Err(OperatorFault::TeamNeeded { teams })
        }
    }
}

/// Whose token it is that is asked for. `ci` is nobody's but a forge's, unless the charter has such a member:
/// its token may ask whether a circle holds a commit, and nothing else.
pub(super) fn holder(
    coordinator: &Coordinator,
    team: Option<&TeamName>,
    member: &MemberName,
) -> Result<(TeamName, MemberName), OperatorFault> {
    match find_member(coordinator, team, member) {
        Err(OperatorFault::UnknownMember { team, .. }) if member.as_str() == "ci" => {
            Ok((team, READER.parse().expect("it is of a name's form")))
        }
        found => found.map(|team| (team, member.clone())),
    }
}

/// The team that is meant, once it is known to have that member.
fn find_member(
    coordinator: &Coordinator,
    team: Option<&TeamName>,
    member: &MemberName,
) -> Result<TeamName, OperatorFault> {
    let handle = find_team(coordinator, team)?;
    handle.peek(|state| {
        let members = state.adopted().map(|adopted| &adopted.charter.members);
        if members.is_some_and(|members| members.contains_key(member)) {
            return Ok(handle.name().clone());
        }
        let known = members.into_iter().flat_map(|members| members.keys()).map(MemberName::as_str);
        Err(OperatorFault::UnknownMember {
            team: handle.name().clone(),
            member: member.clone(),
            nearest: nearest(member.as_str(), known).map(str::to_owned),
        })
    })
}

/// Where a team's guarded repository is, by its charter.
pub(super) fn repository_path(home: &Home, charter: &Charter) -> Result<Option<PathBuf>, HomeFault> {
    let Some(repository) = &charter.repository else { return Ok(None) };
    Ok(Some(home.charter_folder(&charter.team)?.join(&repository.path)))
}

/// Opens what a team's versions are made of. Each team has its own: no bundle of one is another's.
pub(super) async fn open_artifacts(home: &Home, charter: &Charter) -> Result<Artifacts, OperatorFault> {
    let team = charter.team.clone();
    let repository = repository_path(home, charter)?;
    let opened = Artifacts::open(&home.team_home(&team), repository.as_deref()).await;
    opened.map_err(|source| match repository {
        Some(path) => OperatorFault::Repository { team, path, source },
        None => OperatorFault::Artifacts { team, source },
    })
}
