//! The door service: what the repository's hook, the operator and CI ask, and a person's way past the door.

use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::sync::Arc;

use tonic::{Code, Request, Response, Status};

use super::answer::{Failure, wakes};
use super::call::{Call, answered, answered_about, answered_to_operator, blocking, request_key};
use super::operator::{OperatorFault, find_team, repository_path, with_home};
use super::pin;
use super::shared::Shared;
use super::target;
use crate::artifact::repository::Repository;
use crate::artifact::{self, publishing};
use crate::coordinator::{Coordinator, Publication, TeamHandle, publication};
use crate::door::ledger::{Logged, LoggedMove, Passed};
use crate::door::{Grant, Guard, Move, RefKind, held, judge, refs};
use crate::home::Home;
use crate::protocol::charter::Charter;
use crate::protocol::escalation::record_ref;
use crate::protocol::name::{Digest, TeamName, shown};
use crate::protocol::rejection::Violation;
use crate::protocol::review::CircleState;
use crate::protocol::{Answer, Command, Team};
use crate::publish;
use crate::wire::proto::door_service_server::DoorService;
use crate::wire::status_code::status_with_reason;
use crate::wire::{Arguments, command, proto, timestamp};

/// Pushes past the door that are kept for the audit.
const PASSED_MAX: usize = 10_000;

/// The service.
pub(super) struct Door(pub(super) Arc<Shared>);

#[tonic::async_trait]
impl DoorService for Door {
    async fn check_push(
        &self,
        request: Request<proto::CheckPushRequest>,
    ) -> Result<Response<proto::CheckPushResponse>, Status> {
        answered_to_operator(&self.0, "check push", request, check_push).await
    }

    async fn describe_door(
        &self,
        request: Request<proto::DescribeDoorRequest>,
    ) -> Result<Response<proto::DescribeDoorResponse>, Status> {
        answered_to_operator(&self.0, "describe door", request, describe).await
    }

    async fn check_commit(
        &self,
        request: Request<proto::CheckCommitRequest>,
    ) -> Result<Response<proto::CheckCommitResponse>, Status> {
        if super::auth::operator(&self.0, request.metadata()).is_ok() {
            return answered_to_operator(&self.0, "check commit", request, check_commit_for_operator).await;
        }
        if let Some(team) = super::auth::reader(&self.0, request.metadata()) {
            let check = |team: TeamHandle, request| async move { check_commit(&team, &request).await };
            return answered_about(&self.0, team, "check commit", request, check).await;
        }
        let check = |call: Call, request| async move { check_commit(&call.team, &request).await };
        answered(&self.0, "check commit", request, check).await
    }

    async fn break_glass(
        &self,
        request: Request<proto::BreakGlassRequest>,
    ) -> Result<Response<proto::BreakGlassResponse>, Status> {
        answered(&self.0, "break glass", request, break_glass).await
    }
}

async fn check_push(
    shared: Arc<Shared>,
    request: proto::CheckPushRequest,
) -> Result<proto::CheckPushResponse, Failure> {
    let mut arguments = Arguments::default();
    // Left out where there is one team; a slip in a name must not become that one.
    let name: Option<Option<TeamName>> = match request.team.as_str() {
        "" => Some(None),
        name => arguments.read("team", name).map(Some),
    };
    let name = arguments.finish(name)?;
    let team = find_team(&shared.coordinator, name.as_ref())?;
    let artifacts = shared.artifacts(team.name()).ok_or_else(beginning)?;
    let git = artifacts.repository()?.refs();
    if git.folder().as_os_str().as_bytes() != &*request.repository {
        let message = format!("{} guards another repository", team.name());
        return Err(status_with_reason(Code::FailedPrecondition, "OTHER_REPOSITORY", &message, &[]).into());
    }
    let moves: Vec<Move> = request.moves.into_iter().map(one_move).collect();
    let aliases = refs::aliases(git, &moves).await.map_err(artifact::Failure::Fault)?;
    let (guard, seq) =
        team.read(|team, _| team.adopted().and_then(|adopted| Guard::of(&adopted.charter))).await?;
    let guard = guard.ok_or_else(Failure::unexpected)?;
    let verdicts = judge(&guard, &moves, &aliases);
    let unmet: Vec<(usize, &Violation)> =
        verdicts.iter().enumerate().filter_map(|(index, said)| Some((index, said.as_ref()?))).collect();
    let sequence = seq.0;
    if unmet.is_empty() {
        return Ok(proto::CheckPushResponse { sequence, ..Default::default() });
    }
    if let Some(passed) = past_the_door(&shared, &team, &guard, &moves, &unmet).await? {
        let let_in = unmet.iter().map(|(index, _)| &moves[*index]);
        let name = |one: &Move| String::from_utf8_lossy(&one.name).into_owned();
        let let_in: Vec<_> = let_in.map(|one| (name(one), one.to.clone())).collect();
        let (shared, team) = (shared.clone(), team.clone());
        tokio::spawn(async move { target::once_moved(&shared, &team, &let_in).await });
        return Ok(proto::CheckPushResponse { sequence, refused: Vec::new(), passed });
    }
    for (index, violation) in &unmet {
        team.push_refused(&shown(&moves[*index].shown(), 200), violation);
    }
    let refused = unmet.into_iter().map(|(index, violation)| proto::RefRefusal {
        index: u32::try_from(index).expect("a message holds fewer"),
        code: violation.code().to_owned(),
        message: violation.to_string(),
        remedy: violation.remedy(),
    });
    Ok(proto::CheckPushResponse { sequence, refused: refused.collect(), passed: Vec::new() })
}

/// Where persons opened the door for all that stands against a push: it is written down, and may be made.
async fn past_the_door(
    shared: &Arc<Shared>,
    team: &TeamHandle,
    guard: &Guard,
    moves: &[Move],
    unmet: &[(usize, &Violation)],
) -> Result<Option<Vec<proto::RefPassed>>, Failure> {
    let named = |(_, violation): &(usize, &Violation)| match violation {
        Violation::DirectPush { reference, .. } if guard.kind(reference.as_bytes()) == RefKind::Protected => {
            Some(reference.clone())
        }
        _ => None,
    };
    let Some(names) = unmet.iter().map(named).collect::<Option<Vec<String>>>() else { return Ok(None) };
    // Held until it is written down: two pushes don't pass by one opening, nor overwrite one another's record.
    let mut doors = shared.doors.lock().await;
    let Some(grants) = doors.get_mut(team.name()) else { return Ok(None) };
    let wanted: Vec<&str> = names.iter().map(String::as_str).collect();
    let Some(taken) = grants.take(&wanted, shared.now()) else { return Ok(None) };
    let by_ref = unmet.iter().map(|(index, _)| &moves[*index]).zip(&names).zip(&taken);
    let passed: Vec<Passed> = by_ref
        .map(|((one, name), grant)| Passed {
            name: name.clone(),
            from: one.from.clone(),
            to: one.to.clone(),
            escalation: grant.escalation.to_string(),
            sequence: team.peek(|team| team.seq().0),
        })
        .collect();
    let (home, of) = (shared.home.clone(), team.name().clone());
    blocking(move || keep_passed(&home, &of, passed)).await??;
    for (grant, name) in taken.iter().zip(&names) {
        tracing::warn!(team = %team.name(), by = %grant.by, reference = name, "a push went past the door");
    }
    let passed = unmet.iter().zip(&taken).map(|((index, _), grant)| proto::RefPassed {
        index: u32::try_from(*index).expect("a message holds fewer"),
        by: grant.by.to_string(),
        escalation: grant.escalation.to_string(),
    });
    Ok(Some(passed.collect()))
}

fn keep_passed(home: &Home, team: &TeamName, more: Vec<Passed>) -> Result<(), Failure> {
    let unusable = |what: String| {
        tracing::error!(%team, what, "a push past the door can't be written down, so it is refused");
        let message = "what passes the door can't be written down";
        Failure::from(status_with_reason(Code::Unavailable, "HOME_UNUSABLE", message, &[]))
    };
    let mut all = passed(home, team).map_err(|fault| unusable(fault.to_string()))?;
    all.extend(more);
    if all.len() > PASSED_MAX {
        return Err(unusable(format!("more than {PASSED_MAX} refs passed")));
    }
    let text = serde_json::to_vec(&all).expect("plain fields have a JSON form");
    home.write_passed(team, &text).map_err(|fault| unusable(fault.to_string()))
}

/// The pushes that persons let past a team's door.
pub fn passed(home: &Home, team: &TeamName) -> Result<Vec<Passed>, crate::home::HomeFault> {
    let Some(text) = home.read_passed(team)? else { return Ok(Vec::new()) };
    serde_json::from_slice(&text).map_err(|_| home.unreadable_passed(team))
}

fn one_move(one: proto::RefMove) -> Move {
    Move { name: one.name.to_vec(), from: one.from, to: one.to, kind: one.kind }
}

fn beginning() -> Failure {
    status_with_reason(Code::Unavailable, "TEAM_BEGINNING", "the team is being added; ask again", &[]).into()
}

/// A guarded repository, and where its refs should be by the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Guarded {
    /// Whose.
    pub team: TeamName,
    /// Its folder.
    pub repository: PathBuf,
    /// Patterns of the refs that move only to what was reviewed.
    pub protected: Vec<String>,
    /// Where the log says that refs belong.
    pub log: Logged,
}

impl Guarded {
    /// As the server told it.
    pub fn told(told: proto::DescribeDoorResponse) -> Option<Self> {
        let repository = PathBuf::from(std::ffi::OsString::from_vec(told.repository.to_vec()));
        let some = |id: String| (!id.is_empty()).then_some(id);
        let told_move = |one: proto::LoggedMove| LoggedMove {
            sequence: one.sequence,
            name: one.name,
            from: some(one.from),
            to: some(one.to),
            decided: one.decided,
        };
        let log = Logged {
            kept: told.kept.into_iter().collect(),
            moves: told.moves.into_iter().map(told_move).collect(),
            manifests: told.manifests.into_iter().collect(),
            recorded: told.recorded.into_iter().map(told_move).collect(),
        };
        Some(Self { team: told.team.parse().ok()?, repository, protected: told.protected, log })
    }
}

/// The guarded repository of a team, in a home that no server serves.
pub async fn guarded(home: &Home, team: Option<&TeamName>) -> Result<Guarded, OperatorFault> {
    let (team, here) = (team.cloned(), home.clone());
    let look = |coordinator| async move {
        let found = find_guarded(&coordinator, &here, team.as_ref())?;
        let log = match found.seen.settled() {
            Some(log) => log,
            None => {
                // Nothing is written to it: records are merged again at desks that are thrown away.
                let unusable = |source: artifact::Failure| OperatorFault::Repository {
                    team: found.team.clone(),
                    path: found.repository.clone(),
                    source,
                };
                let desk = tempfile::tempdir().map_err(artifact::Fault::io(&std::env::temp_dir()));
                let desk = desk.map_err(|fault| unusable(fault.into()))?;
                let repository = Repository::open(&found.repository, desk.path()).await.map_err(unusable)?;
                found.seen.log(&repository).await.map_err(unusable)?
            }
        };
        let Found { team, repository, protected, .. } = found;
        Ok(Guarded { team, repository, protected, log })
    };
    with_home(home, look).await
}

/// A guarded repository, before anybody looked into it.
struct Found {
    team: TeamName,
    repository: PathBuf,
    protected: Vec<String>,
    seen: Seen,
    sequence: u64,
}

fn find_guarded(
    coordinator: &Coordinator,
    home: &Home,
    team: Option<&TeamName>,
) -> Result<Found, OperatorFault> {
    let handle = find_team(coordinator, team)?;
    let name = handle.name().clone();
    let look = |team: &Team| (team.adopted().map(|one| one.charter.clone()), Seen::of(team), team.seq().0);
    let (charter, seen, sequence): (Option<Charter>, _, _) = handle.peek(look);
    let no_repository = || OperatorFault::NoRepository { team: name.clone() };
    let charter = charter.ok_or_else(no_repository)?;
    let path = repository_path(home, &charter)?.ok_or_else(no_repository)?;
    let repository = path.canonicalize().map_err(|source| OperatorFault::Repository {
        team: name.clone(),
        path: path.clone(),
        source: artifact::Fault::Io { path: path.clone(), source }.into(),
    })?;
    let protected = charter.repository.map(|repository| repository.protected).unwrap_or_default();
    Ok(Found { team: name, repository, protected, seen, sequence })
}

/// Where the log says that guarded refs belong, and what is being published.
pub(super) struct Seen {
    log: Logged,
    publishing: Vec<Publication>,
}

impl Seen {
    pub(super) fn of(team: &Team) -> Self {
        let kept = pin::owed(team).iter().map(|pin| (pin.reference(), pin.commit.to_string())).collect();
        let complete = team.review().circles().filter(|circle| circle.state == CircleState::Complete);
        let publishing = complete.filter_map(|circle| {
            let completed = circle.completed.as_ref()?;
            publication(team, &circle.name, &completed.manifest)
        });
        Self { log: Logged::of(team, kept), publishing: publishing.collect() }
    }

    /// What the log says, where no record can say more.
    fn settled(&self) -> Option<Logged> {
        self.publishing.is_empty().then(|| self.log.clone())
    }

    /// What the log says, and those of the repository's records that say what the server would have done: a server
    /// that dies between a move and its report leaves one. Another's is a ref that moved.
    pub(super) async fn log(&self, repository: &Repository) -> artifact::Result<Logged> {
        if let Some(log) = self.settled() {
            return Ok(log);
        }
        let mut log = self.log.clone();
        let records = publishing::records(repository.refs()).await?;
        for publication in &self.publishing {
            let Some(record) = records.get(&record_ref(&publication.manifest)) else { continue };
            if publish::is_ours(repository, publication, record).await? {
                log.record(record);
            }
        }
        Ok(log)
    }
}

async fn describe(
    shared: Arc<Shared>,
    request: proto::DescribeDoorRequest,
) -> Result<proto::DescribeDoorResponse, Failure> {
    let team = named(&request.team)?;
    let found = find_guarded(&shared.coordinator, &shared.home, team.as_ref())?;
    let artifacts = shared.artifacts(&found.team).ok_or_else(beginning)?;
    let log = found.seen.log(artifacts.repository()?).await?;
    // Whoever looks now has the server look, too.
    shared.audit.notify_one();
    Ok(proto::DescribeDoorResponse {
        sequence: found.sequence,
        team: found.team.to_string(),
        repository: found.repository.into_os_string().into_vec().into(),
        protected: found.protected,
        kept: log.kept.into_iter().collect(),
        moves: log.moves.into_iter().map(logged_move).collect(),
        manifests: log.manifests.into_iter().collect(),
        recorded: log.recorded.into_iter().map(logged_move).collect(),
    })
}

fn logged_move(one: LoggedMove) -> proto::LoggedMove {
    let LoggedMove { sequence, name, from, to, decided } = one;
    proto::LoggedMove { sequence, name, from: from.unwrap_or_default(), to: to.unwrap_or_default(), decided }
}

fn named(team: &str) -> Result<Option<TeamName>, Failure> {
    if team.is_empty() {
        return Ok(None);
    }
    let mut arguments = Arguments::default();
    let read = arguments.read("team", team);
    Ok(Some(arguments.finish(read)?))
}

async fn check_commit_for_operator(
    shared: Arc<Shared>,
    request: proto::CheckCommitRequest,
) -> Result<proto::CheckCommitResponse, Failure> {
    let team = named(&request.team)?;
    let team = find_team(&shared.coordinator, team.as_ref())?;
    check_commit(&team, &request).await
}

async fn check_commit(
    team: &TeamHandle,
    request: &proto::CheckCommitRequest,
) -> Result<proto::CheckCommitResponse, Failure> {
    let whole = matches!(request.commit.len(), 40 | 64);
    let commit: Digest =
        request.commit.parse().ok().filter(|_| whole).ok_or_else(|| Violation::Malformed {
            argument: "commit".to_owned(),
            expected: "a whole commit id".to_owned(),
            given: shown(&request.commit, 80),
            form: "40 or 64 of 0-9 and a-f".to_owned(),
        })?;
    let (found, seq) = team.read(|team, _| held(team, &commit, &request.target)).await?;
    let found = found?;
    let state = match found.state {
        CircleState::Published => proto::CircleState::Published,
        _ => proto::CircleState::Complete,
    };
    Ok(proto::CheckCommitResponse {
        sequence: seq.0,
        reference: found.reference.to_string(),
        circle: found.circle.to_string(),
        state: state.into(),
        target: found.target,
    })
}

async fn break_glass(
    call: Call,
    request: proto::BreakGlassRequest,
) -> Result<proto::BreakGlassResponse, Failure> {
    let key = request_key(&request)?;
    let command = command::break_glass(request)?;
    // A repeated request must not open again what was used up.
    let again = match &key {
        Some(key) => call.was_answered(key).await?,
        None => false,
    };
    let mut doors = call.shared.doors.lock().await;
    let done = call.submit(Command::BreakGlass(command.clone()), key).await?;
    let Answer::Escalated { escalation } = done.answer else { return Err(Failure::unexpected()) };
    let opened = call.team.peek(|team| team.escalations().get(escalation).map(|known| known.opened_at));
    let until = opened.unwrap_or_else(|| call.shared.now()) + command.span;
    let grant = Grant { escalation, by: call.member.clone(), refs: command.refs, until, once: command.once };
    let grants = doors.entry(call.team.name().clone()).or_default();
    if !again && !grants.open(grant, call.shared.now()) {
        let message = "too many openings stand at a time; wait until one has ended";
        return Err(status_with_reason(Code::ResourceExhausted, "DOOR_OPEN", message, &[]).into());
    }
    Ok(proto::BreakGlassResponse {
        sequence: done.seq.0,
        escalation: escalation.to_string(),
        until: Some(timestamp(until)),
        woke: wakes(&done.woke),
    })
}
