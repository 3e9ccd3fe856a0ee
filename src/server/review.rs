//! The review service. Each method parses, gets the facts, submits, and prints.

use std::sync::Arc;

use tonic::{Code, Request, Response, Status};

use super::answer::{Failure, wakes};
use super::call::{Call, TIME_MAX, answered, request_key};
use super::charter::{adopt_charter, get_charter};
use super::check::report_check;
use super::escalation::{open_of, show_failing, show_presence};
use super::facts;
use super::pin::Pin;
use super::shared::Shared;
use super::target::{self, Scope};
use crate::artifact::{Artifacts, Diff, FileChange, FileStatus};
use crate::coordinator::{Attempt, RequestKey};
use crate::protocol::artifact::{Artifact, ArtifactFacts, ArtifactKind};
use crate::protocol::name::{Actor, CircleRef, MemberName, Seq, VersionRef, nearest, shown};
use crate::protocol::review::requirement;
use crate::protocol::review::{Circle, Compared, Proposal, Version, last_read, read_before, read_last};
use crate::protocol::time::Time;
use crate::protocol::{Answer, Command, Team, Violation};
use crate::wire::command::{self, Offered};
use crate::wire::proto::review_service_server::ReviewService;
use crate::wire::status::whole_circle;
use crate::wire::status_code::status_with_reason;
use crate::wire::{proto, requirement as requirement_message, status, timestamp, version};

/// Files that show lists; of the rest, only how many there are.
const FILES_SHOWN_MAX: usize = 1_000;

/// The longest diff, in bytes before escapes.
const DIFF_BYTES_MAX: usize = 768 << 10;

/// The service.
pub(super) struct Review(pub(super) Arc<Shared>);

macro_rules! methods {
    ($($method:ident: $request:ident => $response:ident, $verb:literal;)*) => {
        #[tonic::async_trait]
        impl ReviewService for Review {
            $(async fn $method(
                &self,
                request: Request<proto::$request>,
            ) -> Result<Response<proto::$response>, Status> {
                answered(&self.0, $verb, request, $method).await
            })*
        }
    };
}

methods! {
    propose: ProposeRequest => ProposeResponse, "propose";
    show: ShowRequest => ShowResponse, "show";
    diff: DiffRequest => DiffResponse, "diff";
    objections: ObjectionsRequest => ObjectionsResponse, "objections";
    approve: ApproveRequest => ApproveResponse, "approve";
    object: ObjectRequest => ObjectResponse, "object";
    note: NoteRequest => NoteResponse, "note";
    resolve: ResolveRequest => ResolveResponse, "resolve";
    overrule: OverruleRequest => OverruleResponse, "overrule";
    withdraw: WithdrawRequest => WithdrawResponse, "withdraw";
    report_check: ReportCheckRequest => ReportCheckResponse, "check report";
    confirm: ConfirmRequest => ConfirmResponse, "confirm";
    get_status: GetStatusRequest => GetStatusResponse, "status";
    explain: ExplainRequest => ExplainResponse, "explain";
    get_proposal: GetProposalRequest => GetProposalResponse, "proposal";
    get_charter: GetCharterRequest => GetCharterResponse, "charter";
    adopt_charter: AdoptCharterRequest => AdoptCharterResponse, "adopt";
}

async fn propose(call: Call, request: proto::ProposeRequest) -> Result<proto::ProposeResponse, Failure> {
    let key = request_key(&request)?;
    let offered = Offered::of(request)?;
    let (kind, digest) = (offered.kind, offered.digest.clone());
    let (artifact, known) = match (facts::of_offer(&call, &offered).await, &key) {
        (Ok(found), _) => found,
        // A retry gets its first answer, also when the staged ref is gone by now. The coordinator
        // looks at the request before the command, so nothing is ever decided on these words.
        (Err(_), Some(key)) if call.was_answered(key).await? => {
            let artifact = Artifact { kind, digest: digest.clone(), content: digest.clone(), base: None };
            (artifact, ArtifactFacts::default())
        }
        (Err(failure), _) => return Err(failure),
    };
    let command = Command::Propose(Box::new(offered.command(artifact, known)));
    let done = call.submit(command, key).await?;
    let Answer::Proposed { reference, digest, escalated } = done.answer else {
        return Err(Failure::unexpected());
    };
    if kind == ArtifactKind::Commit {
        let (proposal, version) = (reference.proposal.clone(), reference.version);
        pin(&call, &Pin { proposal, version, commit: digest.clone() }).await?;
        target::catch_up(&call.shared, &call.team, &Scope::Around(reference.proposal.clone())).await;
    }
    let look = |team: &Team, _: Time| {
        let (charter, proposal, found) = find(team, &reference)?;
        version::target(charter, team.review(), proposal, found)
    };
    let (target, _) = call.team.read(look).await?;
    Ok(proto::ProposeResponse {
        sequence: done.seq.0,
        reference: reference.to_string(),
        proposal: reference.proposal.to_string(),
        version: reference.version,
        digest: digest.to_string(),
        woke: wakes(&done.woke),
        called_out: done.called_out,
        escalated: escalated.iter().map(ToString::to_string).collect(),
        target,
    })
}

/// Pins an accepted version before anybody is told of it. What can't be pinned now is pinned by a
/// retry, or when the server starts again; until then the producer keeps asking.
async fn pin(call: &Call, pin: &Pin) -> Result<(), Failure> {
    let artifacts = call.artifacts()?;
    let _turn = call.turn().await;
    let repository = artifacts.repository()?;
    repository.pin(&pin.proposal, pin.version, &pin.commit).await.map_err(|failure| {
        let message = format!(
            "{}@{} is accepted, and its commit is not pinned yet: ask again with the same request id",
            pin.proposal, pin.version
        );
        Failure::fault(Code::Unavailable, "OUTCOME_UNKNOWN", &message, &failure)
    })
}

async fn show(call: Call, request: proto::ShowRequest) -> Result<proto::ShowResponse, Failure> {
    let key = request_key(&request)?;
    let artifacts = call.artifacts()?;
    let mut reading = Reading::of(&call, &request.subject).await?;
    let files = loop {
        let files = {
            let _turn = call.turn().await;
            artifacts.files(&reading.artifact, None).await?
        };
        if reading.record(&call, &key).await? {
            break files;
        }
    };
    let reference = reading.reference;
    target::catch_up(&call.shared, &call.team, &Scope::Around(reference.proposal.clone())).await;
    let look = |team: &Team, _: Time| {
        let (charter, proposal, found) = find(team, &reference)?;
        let earlier = last_read(proposal, &call.member, found.number).unwrap_or(0);
        let shown = files.iter().take(FILES_SHOWN_MAX).map(|change| file_change(team, change));
        let files: Vec<proto::FileChange> = shown.collect();
        Some((version::version(charter, team.review(), proposal, found), files, earlier))
    };
    let (found, seq) = call.team.read(look).await?;
    let (mut version, shown, read_before) = found.ok_or_else(Failure::unexpected)?;
    if let Some(target) = version.target.as_mut().filter(|target| target.commit.is_empty()) {
        let at = artifacts.repository()?.tip(&target.name).await?;
        target.commit = at.map(|commit| commit.to_string()).unwrap_or_default();
    }
    Ok(proto::ShowResponse {
        sequence: seq.0,
        version: Some(version),
        files_total: files.len() as u64,
        files: shown,
        read_before,
    })
}

async fn diff(call: Call, request: proto::DiffRequest) -> Result<proto::DiffResponse, Failure> {
    let key = request_key(&request)?;
    let command = command::read(&request.subject)?;
    let from = match request.since_read {
        false => request.from,
        true => {
            let (found, _) =
                call.team.read(|team, _| read_last(team, &call.member, &command.subject)).await?;
            found?
        }
    };
    let since = match from {
        0 => None,
        from => {
            let earlier =
                call.team.read(|team, _| read_before(team, &call.member, &command.subject, from)).await?;
            Some(earlier.0?)
        }
    };
    let artifacts = call.artifacts()?;
    let mut reading = Reading::of(&call, &request.subject).await?;
    let (diff, target) = loop {
        let diff = {
            let _turn = call.turn().await;
            let merged = if request.on_target { on_target(&call, &artifacts, &reading).await? } else { None };
            match merged {
                Some(merged) => merged,
                None => {
                    let diff = artifacts.diff(&reading.artifact, since.as_ref(), DIFF_BYTES_MAX).await?;
                    (diff, String::new())
                }
            }
        };
        if reading.record(&call, &key).await? {
            break diff;
        }
    };
    let ((), seq) = call.team.read(|_, _| ()).await?;
    Ok(proto::DiffResponse {
        sequence: seq.0,
        reference: reading.reference.to_string(),
        text: diff.text,
        truncated: diff.truncated,
        from,
        target,
    })
}

/// What merging a version would change on its target, and where that stands; nothing where it doesn't merge, or is
/// meant for none.
async fn on_target(
    call: &Call,
    artifacts: &Artifacts,
    reading: &Reading,
) -> Result<Option<(Diff, String)>, Failure> {
    let name = call.team.peek(|team| {
        let charter = &team.adopted()?.charter;
        charter.target_of(&reading.reference.proposal).map(str::to_owned)
    });
    let Some(name) = name.filter(|_| reading.artifact.kind == ArtifactKind::Commit) else { return Ok(None) };
    let repository = artifacts.repository()?;
    let tip = repository.tip(&name).await?;
    let (reference, commit) = (reading.reference.clone(), reading.artifact.digest.clone());
    let version = Compared { reference, commit, earlier: Vec::new() };
    let diff = repository.diff_on_target(tip.as_ref(), &version, DIFF_BYTES_MAX).await?;
    let at = tip.map_or_else(|| name.clone(), |tip| format!("{name} at {tip}"));
    Ok(diff.map(|diff| (diff, at)))
}

async fn objections(
    call: Call,
    request: proto::ObjectionsRequest,
) -> Result<proto::ObjectionsResponse, Failure> {
    let key = request_key(&request)?;
    let command = Command::ReadObjections(command::objections(&request)?);
    let done = call.submit(command, key).await?;
    let Answer::ObjectionsRead { proposal: name } = done.answer else { return Err(Failure::unexpected()) };
    // What came in between is shown and not recorded as read: it has to be read once more.
    let look = |team: &Team, _: Time| {
        let proposal = team.review().proposal(&name)?;
        let objections = proposal.objections.iter();
        let objections = objections.map(|objection| version::objection(proposal, objection)).collect();
        Some((objections, proposal.current_number()))
    };
    let (found, seq) = call.team.read(look).await?;
    let (objections, version) = found.ok_or_else(Failure::unexpected)?;
    Ok(proto::ObjectionsResponse { sequence: seq.0, objections, version })
}

async fn approve(call: Call, request: proto::ApproveRequest) -> Result<proto::ApproveResponse, Failure> {
    let key = request_key(&request)?;
    let vote = command::approve(request)?;
    let found = facts::places(&call, &vote.reference, &vote.places).await?;
    let done = call.submit(Command::Approve(vote.command(&found)), key).await?;
    let Answer::Approved { reference, .. } = done.answer else { return Err(Failure::unexpected()) };
    Ok(proto::ApproveResponse {
        sequence: done.seq.0,
        reference: reference.to_string(),
        woke: wakes(&done.woke),
        called_out: done.called_out,
    })
}

async fn object(call: Call, request: proto::ObjectRequest) -> Result<proto::ObjectResponse, Failure> {
    let key = request_key(&request)?;
    let vote = command::object(request)?;
    let found = facts::places(&call, &vote.reference, &vote.places).await?;
    let done = call.submit(Command::Object(vote.objection(&found)), key).await?;
    let Answer::Raised { objection, reference } = done.answer else { return Err(Failure::unexpected()) };
    Ok(proto::ObjectResponse {
        sequence: done.seq.0,
        objection: objection.to_string(),
        reference: reference.to_string(),
        woke: wakes(&done.woke),
        called_out: done.called_out,
    })
}

async fn note(call: Call, request: proto::NoteRequest) -> Result<proto::NoteResponse, Failure> {
    let key = request_key(&request)?;
    let vote = command::note(request)?;
    let found = facts::places(&call, &vote.reference, &vote.places).await?;
    let done = call.submit(Command::Note(vote.note(&found)), key).await?;
    let Answer::Raised { objection, reference } = done.answer else { return Err(Failure::unexpected()) };
    Ok(proto::NoteResponse {
        sequence: done.seq.0,
        objection: objection.to_string(),
        reference: reference.to_string(),
        woke: wakes(&done.woke),
        called_out: done.called_out,
    })
}

async fn resolve(call: Call, request: proto::ResolveRequest) -> Result<proto::ResolveResponse, Failure> {
    let key = request_key(&request)?;
    let done = call.submit(Command::Resolve(command::resolve(request)?), key).await?;
    let Answer::ObjectionClosed { objection } = done.answer else { return Err(Failure::unexpected()) };
    Ok(proto::ResolveResponse {
        sequence: done.seq.0,
        objection: objection.to_string(),
        woke: wakes(&done.woke),
    })
}

async fn overrule(call: Call, request: proto::OverruleRequest) -> Result<proto::OverruleResponse, Failure> {
    let key = request_key(&request)?;
    let done = call.submit(Command::Overrule(command::overrule(request)?), key).await?;
    let Answer::ObjectionClosed { objection } = done.answer else { return Err(Failure::unexpected()) };
    Ok(proto::OverruleResponse {
        sequence: done.seq.0,
        objection: objection.to_string(),
        woke: wakes(&done.woke),
    })
}

async fn withdraw(call: Call, request: proto::WithdrawRequest) -> Result<proto::WithdrawResponse, Failure> {
    let key = request_key(&request)?;
    let done = call.submit(Command::Withdraw(command::withdraw(request)?), key).await?;
    let Answer::Withdrawn { cooldown_until, flips, flips_left } = done.answer else {
        return Err(Failure::unexpected());
    };
    Ok(proto::WithdrawResponse {
        sequence: done.seq.0,
        cooldown_until: Some(timestamp(cooldown_until)),
        flips,
        flips_left,
        woke: wakes(&done.woke),
    })
}

async fn confirm(call: Call, request: proto::ConfirmRequest) -> Result<proto::ConfirmResponse, Failure> {
    let key = request_key(&request)?;
    let command = command::confirm(&request)?;
    // What git says now is part of what is confirmed; where it says nothing, nobody confirms.
    target::compare(&call.shared, &call.team, &Scope::Circle(command.reference.circle.clone())).await?;
    let done = call.submit(Command::Confirm(command), key).await?;
    let Answer::Confirmed { circle, complete, waiting_for } = done.answer else {
        return Err(Failure::unexpected());
    };
    Ok(proto::ConfirmResponse {
        sequence: done.seq.0,
        circle: circle.to_string(),
        complete,
        waiting_for: waiting_for.iter().map(ToString::to_string).collect(),
        woke: wakes(&done.woke),
    })
}

async fn get_status(
    call: Call,
    request: proto::GetStatusRequest,
) -> Result<proto::GetStatusResponse, Failure> {
    // Bounded here, since the task of a call outlives its caller.
    let reached = tokio::time::timeout(TIME_MAX, call.team.wait_until_stored(Seq(request.at_least))).await;
    reached.map_err(|_| {
        let message = "the log does not hold that sequence yet";
        status_with_reason(Code::DeadlineExceeded, "SEQUENCE_NOT_REACHED", message, &[])
    })??;
    let look = |team: &Team, now: Time| status::status(team, &*call.team.judge(), now, &call.member);
    let mut status = call.team.read(look).await?.0;
    show_failing(&call.team, &mut status.escalations);
    let waits = status.waiting.iter_mut().flat_map(|waiting| &mut waiting.waiting_for);
    show_presence(&call.team, open_of(&mut status.escalations).chain(waits));
    let attempts = call.team.attempts();
    status.attempts = attempts.all().map(attempt).chain(attempts.pushes().map(push)).collect();
    Ok(status)
}

async fn explain(call: Call, request: proto::ExplainRequest) -> Result<proto::ExplainResponse, Failure> {
    if let Some(scope) = call.team.peek(|team| scope_of(team, &request.name)) {
        target::catch_up(&call.shared, &call.team, &scope).await;
    }
    let look = |team: &Team, _: Time| explained(team, &call, &request.name);
    let (explained, seq) = call.team.read(look).await?;
    Ok(proto::ExplainResponse { sequence: seq.0, ..explained? })
}

async fn get_proposal(
    call: Call,
    request: proto::GetProposalRequest,
) -> Result<proto::GetProposalResponse, Failure> {
    let look = |team: &Team, now: Time| {
        let review = team.review();
        let named = request.name.parse().ok().and_then(|name| review.proposal(&name));
        let (Some(proposal), Some(adopted)) = (named, team.adopted()) else {
            let known = review.proposals().map(|proposal| proposal.name.as_str());
            let nearest = nearest(&request.name, known).unwrap_or_default().to_owned();
            return Err(Violation::UnknownSubject { subject: shown(&request.name, 200), nearest });
        };
        let charter = &adopted.charter;
        let told = |one: &Version| proto::Version {
            objections: Vec::new(),
            ..version::version(charter, review, proposal, one)
        };
        let objections = proposal.objections.iter();
        Ok(proto::GetProposalResponse {
            sequence: 0,
            proposal: Some(status::proposal(team, charter, now, proposal)),
            versions: proposal.versions.iter().map(told).collect(),
            objections: objections.map(|objection| version::objection(proposal, objection)).collect(),
        })
    };
    let (found, seq) = call.team.read(look).await?;
    Ok(proto::GetProposalResponse { sequence: seq.0, ..found? })
}

/// What the name of a proposal or a circle stands for.
fn scope_of(team: &Team, name: &str) -> Option<Scope> {
    let proposal = name.parse().ok().filter(|name| team.review().proposal(name).is_some());
    proposal.map(Scope::Around).or_else(|| name.parse().ok().map(Scope::Circle))
}

fn attempt((member, code, attempt): (&MemberName, &str, &Attempt)) -> proto::Attempt {
    proto::Attempt {
        member: member.to_string(),
        code: code.to_owned(),
        count: attempt.count,
        at: Some(timestamp(attempt.at)),
        message: attempt.said.clone(),
        reference: String::new(),
    }
}

fn push((reference, code, attempt): (&str, &str, &Attempt)) -> proto::Attempt {
    proto::Attempt {
        member: String::new(),
        code: code.to_owned(),
        count: attempt.count,
        at: Some(timestamp(attempt.at)),
        message: attempt.said.clone(),
        reference: reference.to_owned(),
    }
}

/// The circle of that name, or of the exact reference that it has now.
fn circle_named<'a>(team: &'a Team, name: &str) -> Option<&'a Circle> {
    let review = team.review();
    let named = name.parse().ok().and_then(|name| review.circle(&name));
    named.or_else(|| {
        let asked: CircleRef = name.parse().ok()?;
        let circle = review.circle(&asked.circle)?;
        (review.circle_ref(team.adopted()?.revision, circle) == asked).then_some(circle)
    })
}

/// Every requirement of a proposal's circle that is about the proposal or the whole, or every one of
/// a circle.
fn explained(team: &Team, call: &Call, name: &str) -> Result<proto::ExplainResponse, Violation> {
    let review = team.review();
    let proposal = name.parse().ok().and_then(|name| review.proposal(&name));
    let circle = match proposal {
        Some(proposal) => review.circle(&proposal.circle),
        None => circle_named(team, name),
    };
    let (Some(circle), Some(adopted)) = (circle, team.adopted()) else {
        let known = review.proposals().map(|proposal| proposal.name.as_str());
        let known = known.chain(review.circles().map(|circle| circle.name.as_str()));
        let nearest = nearest(name, known).unwrap_or_default().to_owned();
        return Err(Violation::UnknownSubject { subject: shown(name, 200), nearest });
    };
    let requirements =
        requirement::of_circle(team, &adopted.charter, &*call.team.judge(), circle, &call.member);
    let asked = requirements.iter().filter(|requirement| {
        let about = requirement.proposal.as_ref();
        proposal.is_none_or(|asked| about.is_none_or(|about| *about == asked.name))
    });
    Ok(proto::ExplainResponse {
        requirements: asked.map(requirement_message::requirement).collect(),
        circle: review.circle_ref(adopted.revision, circle).to_string(),
        about: Some(whole_circle(team, &adopted.charter, adopted.revision, circle)),
        sequence: 0,
    })
}

/// A reading that is recorded once what it is of was looked at: what can't be looked at was not shown.
pub(super) struct Reading {
    /// Exactly which version.
    pub(super) reference: VersionRef,
    /// What it is made of.
    pub(super) artifact: Artifact,
}

impl Reading {
    /// What would be read now.
    pub(super) async fn of(call: &Call, subject: &str) -> Result<Self, Failure> {
        let command = Command::Read(command::read(subject)?);
        let who = Actor::Member(call.member.clone());
        // Deciding changes nothing.
        let would = |team: &Team, now: Time| team.handle(&*call.team.judge(), now, &who, &command).outcome;
        match call.team.read(would).await?.0? {
            Answer::Read { reference } => Self::exactly(call, reference),
            _ => Err(Failure::unexpected()),
        }
    }

    fn exactly(call: &Call, reference: VersionRef) -> Result<Self, Failure> {
        let found = call.team.peek(|team| find(team, &reference).map(|(_, _, found)| found.artifact.clone()));
        Ok(Self { artifact: found.ok_or_else(Failure::unexpected)?, reference })
    }

    /// Records it. False where it is of another version now, since a repeated request is answered with
    /// what was current then: that one is still to be looked at.
    pub(super) async fn record(&mut self, call: &Call, key: &Option<RequestKey>) -> Result<bool, Failure> {
        let command = Command::Read(command::read(&self.reference.to_string())?);
        let Answer::Read { reference } = call.submit(command, key.clone()).await?.answer else {
            return Err(Failure::unexpected());
        };
        let same = reference == self.reference;
        if !same {
            *self = Self::exactly(call, reference)?;
        }
        Ok(same)
    }
}

/// The version of an exact reference that the core gave.
pub(super) fn find<'a>(
    team: &'a Team,
    reference: &VersionRef,
) -> Option<(&'a crate::protocol::charter::Charter, &'a Proposal, &'a Version)> {
    let charter = &team.adopted()?.charter;
    let proposal = team.review().proposal(&reference.proposal)?;
    Some((charter, proposal, proposal.version(reference.version)?))
}

/// One file that a version changes. Its path is told as the log has it, so that two paths never
/// become one; whoever prints it shows what a terminal would obey.
fn file_change(team: &Team, change: &FileChange) -> proto::FileChange {
    let status = match change.status {
        FileStatus::Added => "added",
        FileStatus::Modified => "modified",
        FileStatus::Deleted => "deleted",
        FileStatus::ModeChanged => "mode-changed",
        FileStatus::TypeChanged => "type-changed",
    };
    proto::FileChange {
        path: change.path.as_str().to_owned(),
        status: status.to_owned(),
        added_lines: change.added_lines,
        deleted_lines: change.deleted_lines,
        binary: change.binary,
        owners: team.owners_of(&change.path).into_iter().map(ToString::to_string).collect(),
    }
}
