//! The second stage: a real server over real gRPC, on SQLite, with a real git where the charter has a
//! repository; only the clock moves by hand.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use countersign::coordinator::HandClock;
use countersign::door::ledger::Begun;
use countersign::home::Home;
use countersign::protocol::name::TeamName;
use countersign::protocol::time::Span;
use countersign::server::{self, Running, operator};
use countersign::wire::proto::admin_service_client::AdminServiceClient;
use countersign::wire::proto::artifact_service_client::ArtifactServiceClient;
use countersign::wire::proto::door_service_client::DoorServiceClient;
use countersign::wire::proto::escalation_service_client::EscalationServiceClient;
use countersign::wire::proto::listen_response::Said;
use countersign::wire::proto::listen_service_client::ListenServiceClient;
use countersign::wire::proto::log_service_client::LogServiceClient;
use countersign::wire::proto::review_service_client::ReviewServiceClient;
use countersign::wire::proto::room_service_client::RoomServiceClient;
use countersign::wire::proto::rule_service_client::RuleServiceClient;
use countersign::wire::proto::{self, upload_bundle_request::Piece};
use countersign::wire::rejection_of;
use tempfile::TempDir;
use tokio::runtime::Runtime;
use tonic::transport::Channel;
use tonic::{Code, Request, Status};

use super::coordinated::{
    called_out_line, landed, objection_line, opening, requirement_line, transcript_line,
};
use super::play::{
    Act, Files, Proposing, Ran, Refusal, Seen, Stage, Standing, candidate_file, charter_text, own_rules,
};

pub struct Served {
    runtime: Runtime,
    folder: TempDir,
    clock: Arc<HandClock>,
    running: Option<Running>,
    channel: Channel,
    tokens: BTreeMap<String, String>,
    in_git: bool,
    /// What main holds.
    main: Files,
}

fn bearing<T>(token: &str, message: T) -> Request<T> {
    let mut request = Request::new(message);
    request.metadata_mut().insert("authorization", format!("Bearer {token}").parse().unwrap());
    request
}

impl Served {
    pub fn with_charter(name: &str) -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let text = charter_text(name);
        let in_git = text.contains("[repository]");
        if in_git {
            seed(folder.path());
        }
        let home = Home::create(folder.path().join(".countersign")).unwrap();
        let clock = Arc::new(HandClock::at(opening()));
        let file = format!("{name}.toml");
        let rules = own_rules(&text);
        let file = operator::CharterFile {
            name: &file,
            bytes: text.as_bytes(),
            folder: folder.path(),
            rules: &rules,
        };
        let adding = operator::add_team_by(clock.clone(), &home, file);
        let added = runtime.block_on(adding).unwrap_or_else(|fault| panic!("{fault}"));
        let tokens = added
            .tokens
            .iter()
            .map(|(member, token)| (member.to_string(), token.expose().to_owned()))
            .collect();
        let (running, channel) = runtime.block_on(start(&folder, &clock));
        Self { runtime, folder, clock, running: Some(running), channel, tokens, in_git, main: landed() }
    }

    fn request<T>(&self, member: &str, message: T) -> Request<T> {
        bearing(&self.tokens[member], message)
    }

    fn review(&self) -> ReviewServiceClient<Channel> {
        ReviewServiceClient::new(self.channel.clone())
    }

    fn escalations(&self) -> EscalationServiceClient<Channel> {
        EscalationServiceClient::new(self.channel.clone())
    }

    /// The operator issues a token to whoever a charter brought.
    fn admit(&mut self) {
        let home = Home::at(self.folder.path().join(".countersign"));
        let token = home.operator_token().unwrap().expose().to_owned();
        let mut client = AdminServiceClient::new(self.channel.clone());
        let teams = client.list_teams(bearing(&token, proto::ListTeamsRequest {}));
        let teams = self.runtime.block_on(teams).unwrap().into_inner().teams;
        for member in &teams[0].members {
            if !self.tokens.contains_key(member) {
                let (team, member) = (teams[0].name.clone(), member.clone());
                let message = proto::IssueTokenRequest { team, member: member.clone(), keep: false };
                let issued = client.issue_token(bearing(&token, message));
                let issued = self.runtime.block_on(issued).unwrap().into_inner();
                self.tokens.insert(member, issued.token.unwrap().token);
            }
        }
    }

    fn propose(&self, member: &str, proposing: &Proposing) -> Result<Seen, Status> {
        let (kind, digest) = if self.in_git {
            (proto::ArtifactKind::Commit, commit(self.folder.path(), proposing))
        } else {
            (proto::ArtifactKind::Bundle, self.upload(member, &proposing.files)?)
        };
        let message = proto::ProposeRequest {
            request_id: uuid_of(&proposing.request),
            proposal: proposing.proposal.clone(),
            kind: kind.into(),
            digest,
            summary: proposing.summary.clone(),
            answers: proposing.answers.iter().cloned().collect(),
            after: proposing.after,
        };
        let request = self.request(member, message);
        let answer = self.runtime.block_on(async { self.review().propose(request).await })?.into_inner();
        Ok(Seen::Proposed { reference: answer.reference, escalated: answer.escalated })
    }

    fn upload(&self, member: &str, files: &Files) -> Result<String, Status> {
        let mut pieces = Vec::new();
        for (path, text) in files {
            let (path, size) = (path.clone().into_bytes().into(), text.len() as u64);
            pieces.push(Piece::Head(proto::FileHead { path, executable: false, size }));
            pieces.push(Piece::Content(text.clone().into_bytes().into()));
        }
        let pieces = pieces.into_iter().map(|piece| proto::UploadBundleRequest { piece: Some(piece) });
        let request = self.request(member, tokio_stream::iter(pieces.collect::<Vec<_>>()));
        let mut client = ArtifactServiceClient::new(self.channel.clone());
        Ok(self.runtime.block_on(async { client.upload_bundle(request).await })?.into_inner().digest)
    }

    fn try_act(&mut self, member: &str, act: &Act) -> Result<Seen, Status> {
        macro_rules! call {
            ($client:expr, $method:ident, $message:expr) => {{
                let request = self.request(member, $message);
                let mut client = $client;
                self.runtime.block_on(async { client.$method(request).await })?.into_inner()
            }};
        }
        Ok(match act.clone() {
            Act::Propose(proposing) => self.propose(member, &proposing)?,
            Act::Show { subject } => {
                let message = proto::ShowRequest { request_id: String::new(), subject };
                let answer = call!(self.review(), show, message);
                Seen::Shown { reference: answer.version.unwrap_or_default().reference }
            }
            Act::Objections { proposal } => {
                let message = proto::ObjectionsRequest { request_id: String::new(), proposal };
                let answer = call!(self.review(), objections, message);
                Seen::Objections { lines: answer.objections.iter().map(objection).collect() }
            }
            Act::Approve { reference, checked, ran, resolve, request } => {
                let ran = ran.iter().map(run).collect();
                let request_id = uuid_of(&request);
                let message = proto::ApproveRequest { request_id, reference, checked, ran, resolve };
                Seen::Approved { reference: call!(self.review(), approve, message).reference }
            }
            Act::Object { reference, text, at, failing_test, request } => {
                let (request_id, failing_test) = (uuid_of(&request), failing_test.as_ref().map(run));
                let message = proto::ObjectRequest { request_id, reference, text, at, failing_test };
                let answer = call!(self.review(), object, message);
                Seen::Raised { id: answer.objection, reference: answer.reference }
            }
            Act::Note { reference, text, at } => {
                let message = proto::NoteRequest { request_id: String::new(), reference, text, at };
                let answer = call!(self.review(), note, message);
                Seen::Raised { id: answer.objection, reference: answer.reference }
            }
            Act::Resolve { objection, mistaken, reason } => {
                let request_id = String::new();
                let message = proto::ResolveRequest { request_id, objection, mistaken, reason };
                Seen::Closed { id: call!(self.review(), resolve, message).objection }
            }
            Act::Overrule { objection, reason } => {
                let message = proto::OverruleRequest { request_id: String::new(), objection, reason };
                Seen::Closed { id: call!(self.review(), overrule, message).objection }
            }
            Act::Withdraw { proposal, reason } => {
                let message = proto::WithdrawRequest { request_id: String::new(), proposal, reason };
                let answer = call!(self.review(), withdraw, message);
                let until = answer.cooldown_until.unwrap_or_default();
                let micros = until.seconds * 1_000_000 + i64::from(until.nanos) / 1_000;
                Seen::Withdrawn {
                    flips: answer.flips,
                    flips_left: answer.flips_left,
                    until: countersign::protocol::time::Time(micros).to_string(),
                }
            }
            Act::ReportCheck { reference, name, exit, output } => {
                let request_id = String::new();
                let message = proto::ReportCheckRequest { request_id, reference, name, exit, output };
                let answer = call!(self.review(), report_check, message);
                let status = lower(answer.status().as_str_name(), "CHECK_STATUS_");
                Seen::Checked { name: answer.name, status, reference: answer.reference }
            }
            Act::Confirm { reference } => {
                let message = proto::ConfirmRequest { request_id: String::new(), reference };
                let answer = call!(self.review(), confirm, message);
                Seen::Confirmed { complete: answer.complete, waiting_for: answer.waiting_for }
            }
            Act::Explain { name } => {
                let answer = call!(self.review(), explain, proto::ExplainRequest { name });
                Seen::Requirements { lines: answer.requirements.iter().map(requirement).collect() }
            }
            Act::CalledOut => {
                let request = proto::ListEventsRequest::default();
                let log = LogServiceClient::new(self.channel.clone());
                let events = call!(log, list_events, request).events;
                let called = events.iter().filter(|event| event.kind == "called-out");
                Seen::CalledOut { lines: called.map(|event| called_out_line(&event.body)).collect() }
            }
            Act::TryRule { name } => {
                let text = std::fs::read_to_string(candidate_file(&name)).unwrap();
                let message = proto::CheckRuleRequest { file: format!("{name}.toml"), text };
                let answer = call!(RuleServiceClient::new(self.channel.clone()), check_rule, message);
                Seen::Requirements { lines: answer.requirements.iter().map(requirement).collect() }
            }
            Act::Adopt { charter, reason } => {
                let rules = own_rules(&charter).into_iter();
                let message = proto::AdoptCharterRequest {
                    request_id: String::new(),
                    file: "charter.toml".to_owned(),
                    charter: charter.into_bytes().into(),
                    reason,
                    rules: rules.map(|rule| proto::OwnRule { id: rule.id, text: rule.text }).collect(),
                };
                let revision = call!(self.review(), adopt_charter, message).revision;
                self.admit();
                Seen::Adopted { revision }
            }
            Act::Escalate { subject, text } => {
                let message = proto::EscalateRequest { request_id: String::new(), subject, text };
                Seen::Escalated { id: call!(self.escalations(), escalate, message).escalation }
            }
            Act::Listen { subjects, kinds, killed } => {
                let message = proto::ListenRequest { subjects, kinds, ..Default::default() };
                let mut stream = call!(ListenServiceClient::new(self.channel.clone()), listen, message);
                let said = self.runtime.block_on(stream.message())?.and_then(|said| said.said);
                let Some(Said::Waking(waking)) = said else {
                    drop(stream);
                    self.hung_up(member, proto::Presence::Listening);
                    return Ok(Seen::Heard { woken: None });
                };
                let proto::Waking { wake, obligations, woke_by, watched, sequence, .. } = waking;
                let owed = obligations.iter().map(|owed| format!("{} {}", owed.kind, owed.subject)).collect();
                if !killed {
                    let obligations = obligations.into_iter().map(|owed| owed.id).collect();
                    let wake = wake.clone();
                    let message = proto::AcknowledgeRequest { wake, obligations, watched, sequence };
                    call!(ListenServiceClient::new(self.channel.clone()), acknowledge, message);
                }
                drop(stream);
                if killed {
                    self.hung_up(member, proto::Presence::Thinking);
                }
                Seen::Heard { woken: Some((wake, owed, woke_by)) }
            }
            Act::Say { text, to, reply, about, claim, request } => {
                let message = proto::SayRequest {
                    request_id: uuid_of(&request),
                    text,
                    to,
                    about: about.unwrap_or_default(),
                    reply: reply.unwrap_or_default(),
                    claim: claim.map(|(at, ran)| evidence(at, &ran)),
                };
                let answer = call!(RoomServiceClient::new(self.channel.clone()), say, message);
                let escalation = Some(answer.escalation).filter(|id| !id.is_empty());
                let woke = answer.woke.into_iter().map(|wake| wake.member).collect();
                Seen::Said { id: answer.message, ended: answer.ended, escalation, woke }
            }
            Act::Verdict { message, verdict, text, at, ran } => {
                let named = proto::Verdict::from_str_name(&format!("VERDICT_{}", verdict.to_uppercase()));
                let message = proto::JudgeClaimRequest {
                    request_id: String::new(),
                    message,
                    verdict: named.unwrap_or_default().into(),
                    text,
                    evidence: Some(evidence(at, &ran)),
                };
                let answer = call!(RoomServiceClient::new(self.channel.clone()), judge_claim, message);
                let verdict = lower(answer.verdict().as_str_name(), "VERDICT_");
                Seen::Judged { id: answer.message, verdict }
            }
            Act::Transcript => {
                let request = proto::ListTranscriptRequest { page_size: 1_000, ..Default::default() };
                let answer = call!(RoomServiceClient::new(self.channel.clone()), list_transcript, request);
                Seen::Transcript { lines: answer.entries.iter().map(transcript_line).collect() }
            }
            Act::Answer { escalation, decision, member, reviewer, reason } => {
                let message = proto::AnswerEscalationRequest {
                    request_id: String::new(),
                    escalation,
                    decision,
                    reason,
                    member: member.unwrap_or_default(),
                    reviewer: reviewer.unwrap_or_default(),
                };
                Seen::Answered { id: call!(self.escalations(), answer_escalation, message).escalation }
            }
        })
    }

    /// Waits until the server knows that a member's stream is gone.
    fn hung_up(&self, member: &str, was: proto::Presence) {
        let mut client = ListenServiceClient::new(self.channel.clone());
        let is_there = |entry: &proto::RosterEntry| entry.name == member && entry.presence() == was;
        loop {
            let request = self.request(member, proto::GetRosterRequest::default());
            let roster = self.runtime.block_on(client.get_roster(request)).unwrap().into_inner();
            if !roster.members.iter().any(is_there) {
                return;
            }
        }
    }

    /// As somebody whom the charter in force still has.
    fn status(&self) -> proto::GetStatusResponse {
        let mut asked = self.tokens.keys().map(|member| {
            let request = self.request(member, proto::GetStatusRequest::default());
            self.runtime.block_on(async { self.review().get_status(request).await })
        });
        let known =
            asked.find(|answer| !answer.as_ref().is_err_and(|status| status.code() == Code::Unauthenticated));
        known.unwrap().unwrap().into_inner()
    }
}

async fn start(folder: &TempDir, clock: &Arc<HandClock>) -> (Running, Channel) {
    let home = Home::at(folder.path().join(".countersign"));
    let listen = "127.0.0.1:0".parse().unwrap();
    let options = server::Options { home, listen, tls: None, page: None, clock: clock.clone() };
    let running = server::start(options).await.unwrap_or_else(|fault| panic!("{fault}"));
    let endpoint = format!("http://{}", running.addr());
    let channel = Channel::from_shared(endpoint).unwrap().connect().await.unwrap();
    (running, channel)
}

impl Stage for Served {
    fn base(&self) -> Option<Files> {
        self.in_git.then(|| self.main.clone())
    }

    fn act(&mut self, member: &str, act: &Act) -> Seen {
        match self.try_act(member, act) {
            Ok(seen) => seen,
            Err(status) => {
                let rejection = rejection_of(&status).unwrap_or_else(|| panic!("{status:?}"));
                assert_ne!(status.code(), Code::Unknown, "{status:?}");
                let shown = |violation: &proto::Violation| Refusal {
                    code: violation.code.clone(),
                    message: violation.message.clone(),
                    remedy: violation.remedy.clone(),
                };
                Seen::Refused { violations: rejection.violations.iter().map(shown).collect() }
            }
        }
    }

    fn standing(&mut self) -> Standing {
        // What the server owes the world is done before anybody looks, unless a person has to say something first.
        let status = loop {
            let status = self.status();
            let busy = |circle: &proto::Circle| circle.state() == proto::CircleState::Complete;
            let held = |known: &proto::Escalation| {
                known.cause == "moved-ref" && known.state() == proto::EscalationState::Open
            };
            if !status.circles.iter().any(busy) || status.escalations.iter().any(held) {
                break status;
            }
        };
        let approval = |approval: &proto::Approval| {
            let mark = if approval.overruled { ", overruled" } else { "" };
            format!("{} ({}{mark})", approval.by, approval.lens)
        };
        let circle = |circle: proto::Circle| {
            let state = lower(circle.state().as_str_name(), "CIRCLE_STATE_");
            (circle.name, circle.reference, state, circle.confirmed)
        };
        let proposal = |proposal: proto::Proposal| {
            let state = lower(proposal.state().as_str_name(), "PROPOSAL_STATE_");
            let approvals = proposal.approvals.iter().map(approval).collect();
            (proposal.name, proposal.reference, state, approvals, proposal.open_objections)
        };
        Standing {
            circles: status.circles.into_iter().map(circle).collect(),
            proposals: status.proposals.into_iter().map(proposal).collect(),
            obligations: status
                .obligations
                .into_iter()
                .map(|owed| (owed.member, owed.kind, owed.subject, owed.command))
                .collect(),
            escalations: status
                .escalations
                .into_iter()
                .filter(|known| known.state() == proto::EscalationState::Open)
                .map(|known| (known.id, known.cause, known.subject))
                .collect(),
        }
    }

    fn wait(&mut self, span: Span) {
        self.clock.advance(span);
    }

    fn away(&mut self, span: Span) {
        self.end();
        self.clock.pause(span);
        self.begin();
    }

    fn restart(&mut self) {
        self.end();
        self.begin();
    }

    fn land(&mut self, files: &Files) {
        let work = self.folder.path().join("work");
        git(&work, &["checkout", "-q", "main"]);
        git(&work, &["rm", "-rq", "."]);
        write(&work, files);
        git(&work, &["add", "-A"]);
        git(&work, &["commit", "-qm", "somebody's work"]);
        git(&work, &["push", "-q", "../atlas.git", "main:main"]);
        self.main = files.clone();
        // Whoever asks what is missing has git asked.
        let status = self.status();
        for circle in status.circles {
            let member = self.tokens.keys().next().unwrap();
            let request = self.request(member, proto::ExplainRequest { name: circle.name });
            self.runtime.block_on(async { self.review().explain(request).await }).unwrap();
        }
    }

    fn move_ref(&mut self, name: &str) {
        let home = Home::at(self.folder.path().join(".countersign"));
        let atlas = self.folder.path().join("atlas.git");
        let at = git(&atlas, &["rev-parse", name]).trim().to_owned();
        let team = self.team();
        if home.read_door(&team).unwrap().is_none() {
            // No push comes in a play, so that there is nothing for a hook to do.
            let refs = [(name.to_owned(), at.clone())].into();
            let begun = Begun { protected: vec![name.to_owned()], refs };
            home.write_door(&team, &serde_json::to_vec(&begun).unwrap()).unwrap();
        }
        let aside = git(&atlas, &["commit-tree", "-p", &at, "-m", "aside", &format!("{at}^{{tree}}")]);
        git(&atlas, &["update-ref", name, aside.trim()]);
        let token = home.operator_token().unwrap().expose().to_owned();
        let mut door = DoorServiceClient::new(self.channel.clone());
        loop {
            // Whoever asks has the server look.
            let asked = bearing(&token, proto::DescribeDoorRequest::default());
            self.runtime.block_on(door.describe_door(asked)).unwrap();
            let told = |known: &proto::Escalation| {
                known.subject == name && known.state() == proto::EscalationState::Open
            };
            if self.status().escalations.iter().any(told) {
                return;
            }
        }
    }
}

impl Served {
    fn team(&self) -> TeamName {
        self.status().team.parse().unwrap()
    }

    fn end(&mut self) {
        let running = self.running.take().unwrap();
        self.runtime.block_on(running.shutdown());
    }

    fn begin(&mut self) {
        let (running, channel) = self.runtime.block_on(start(&self.folder, &self.clock));
        self.running = Some(running);
        self.channel = channel;
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        if let Some(running) = self.running.take() {
            self.runtime.block_on(running.shutdown());
        }
    }
}

/// A request id of a play is a word; over the wire it is a UUID.
fn uuid_of(word: &Option<String>) -> String {
    let Some(word) = word else { return String::new() };
    if uuid::Uuid::parse_str(word).is_ok() {
        return word.clone();
    }
    let mut bytes = [0; 16];
    for (byte, letter) in bytes.iter_mut().zip(word.bytes()) {
        *byte = letter;
    }
    uuid::Builder::from_custom_bytes(bytes).into_uuid().to_string()
}

fn run(ran: &Ran) -> proto::Run {
    proto::Run { command: ran.command.clone(), exit: ran.exit, output: ran.output.clone() }
}

fn evidence(at: Vec<String>, ran: &[Ran]) -> proto::Evidence {
    proto::Evidence { at, ran: ran.iter().map(run).collect() }
}

fn lower(name: &str, prefix: &str) -> String {
    name.strip_prefix(prefix).unwrap_or(name).to_lowercase().replace('_', "-")
}

fn objection(objection: &proto::Objection) -> String {
    objection_line(
        &objection.id,
        &lower(objection.kind().as_str_name(), "OBJECTION_KIND_"),
        &objection.by,
        &objection.lenses,
        &match objection.raised_on.as_str() {
            "" => format!("version {}", objection.version),
            other => other.to_owned(),
        },
        &lower(objection.status().as_str_name(), "OBJECTION_STATUS_"),
        &objection.text,
        &objection.at,
    )
}

fn requirement(requirement: &proto::Requirement) -> String {
    let state = requirement.state().as_str_name().trim_start_matches("REQUIREMENT_STATE_");
    requirement_line(state, &requirement.name, &requirement.who, &requirement.detail, &requirement.command)
}

/// The guarded repository with what landed, and a clone to commit in.
fn seed(folder: &Path) {
    git(folder, &["init", "-q", "--bare", "-b", "main", "atlas.git"]);
    git(folder, &["init", "-q", "-b", "main", "work"]);
    let work = folder.join("work");
    write(&work, &landed());
    git(&work, &["add", "-A"]);
    git(&work, &["commit", "-qm", "start"]);
    git(&work, &["push", "-q", "../atlas.git", "main:main"]);
}

/// Commits the files on top of what landed and stages the commit; gives its id.
fn commit(folder: &Path, proposing: &Proposing) -> String {
    let work = folder.join("work");
    git(&work, &["checkout", "-q", "--detach", "main"]);
    git(&work, &["rm", "-rq", "."]);
    write(&work, &proposing.files);
    git(&work, &["add", "-A"]);
    let mut message = format!("{} after {}", proposing.proposal, proposing.after);
    for email in &proposing.co_authors {
        message.push_str(&format!("\n\nCo-authored-by: {email} <{email}>"));
    }
    let author = proposing.author.as_deref().unwrap_or("team@example.org");
    let author = format!("--author={author} <{author}>");
    git(&work, &["commit", "-q", "--allow-empty", &author, "-m", &message]);
    let id = git(&work, &["rev-parse", "HEAD"]).trim().to_owned();
    git(&work, &["push", "-q", "../atlas.git", &format!("{id}:refs/countersign/staging/{id}")]);
    id
}

fn write(work: &Path, files: &Files) {
    for (path, text) in files {
        let path = work.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
}

fn git(folder: &Path, args: &[&str]) -> String {
    let mut command = Command::new("git");
    command.current_dir(folder).args(args);
    for (name, value) in [
        ("GIT_CONFIG_GLOBAL", "/dev/null"),
        ("GIT_CONFIG_NOSYSTEM", "1"),
        ("GIT_AUTHOR_NAME", "team"),
        ("GIT_AUTHOR_EMAIL", "team@example.org"),
        ("GIT_COMMITTER_NAME", "team"),
        ("GIT_COMMITTER_EMAIL", "team@example.org"),
        ("GIT_AUTHOR_DATE", "2026-01-01T09:00:00Z"),
        ("GIT_COMMITTER_DATE", "2026-01-01T09:00:00Z"),
    ] {
        command.env(name, value);
    }
    let output = command.output().unwrap();
    assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}
