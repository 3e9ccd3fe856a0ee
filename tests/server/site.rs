//! A team with its server, and its members' clients.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use countersign::coordinator::HandClock;
use countersign::coordinator::token::Token;
use countersign::home::Home;
use countersign::protocol::time::Time;
use countersign::server::operator::{self, CharterFile};
use countersign::server::{self, Options, Running};
use countersign::wire::proto;
use proto::admin_service_client::AdminServiceClient;
use proto::artifact_service_client::ArtifactServiceClient;
use proto::escalation_service_client::EscalationServiceClient;
use proto::log_service_client::LogServiceClient;
use proto::review_service_client::ReviewServiceClient;
use tempfile::TempDir;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::service::Interceptor;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::Channel;
use tonic::{Code, Request, Status};

pub const START: Time = Time(1_800_000_000_000_000);

const MEMBERS: &str = r#"
[limits]
withdraw_cooldown = "2m"
rounds = 2
notes = 2

[members.app]
emails = ["app@example.org"]
owns = ["src/**"]

[members.sec]
emails = ["sec@example.org"]

[members.arch]
owns = ["docs/**"]

[members.dana]
kind = "human"

[[phases]]
name = "implement"
confirm = "together"
deliverables = [{ name = "parser", producer = "app" }]
reviews = [
    { reviewer = "sec", of = "app", lens = "security" },
    { reviewer = "arch", of = "app", lens = "design" },
]

[[phases]]
name = "release"
confirm = "together"
deliverables = [{ name = "changelog", producer = "app" }]
reviews = [{ reviewer = "sec", of = "app", lens = "security" }]
"#;

/// The charter of a team whose versions are bundles.
pub fn charter(team: &str) -> String {
    format!("[team]\nname = \"{team}\"\n{MEMBERS}")
}

/// The charter of a team that guards `atlas.git`.
pub fn guarding_charter(team: &str) -> String {
    let repository = "[repository]\npath = \"atlas.git\"\nprotected = [\"refs/heads/main\"]\n";
    format!("[team]\nname = \"{team}\"\n\n{repository}{MEMBERS}")
}

/// A folder with a charter, a home, and a server.
pub struct Site {
    pub folder: TempDir,
    pub home: Home,
    pub clock: Arc<HandClock>,
    pub tokens: BTreeMap<String, Token>,
    pub running: Option<Running>,
}

impl Site {
    /// A team whose versions are bundles, served.
    pub async fn bundles() -> Self {
        let mut site = Self::unserved();
        site.add_team(&charter("atlas")).await;
        site.start().await;
        site
    }

    /// A team that guards a repository, served, and the repository.
    pub async fn guarding() -> (Self, Yard) {
        let mut site = Self::unserved();
        let yard = Yard::init(&site.folder.path().join("atlas.git"));
        site.add_team(&guarding_charter("atlas")).await;
        site.start().await;
        (site, yard)
    }

    /// A home without a team and without a server.
    pub fn unserved() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::create(folder.path().join(".countersign")).unwrap();
        let clock = Arc::new(HandClock::at(START));
        Self { folder, home, clock, tokens: BTreeMap::new(), running: None }
    }

    pub async fn add_team(&mut self, charter: &str) {
        let folder = self.folder.path();
        let clock = self.clock.clone();
        let file = CharterFile::alone("charter.toml", charter.as_bytes(), folder);
        let adding = operator::add_team_by(clock, &self.home, file);
        let added = adding.await.unwrap();
        self.tokens.extend(added.tokens.into_iter().map(|(member, token)| (member.to_string(), token)));
    }

    pub fn options(&self) -> Options {
        let listen: SocketAddr = "127.0.0.1:0".parse().unwrap();
        Options { home: self.home.clone(), listen, tls: None, page: None, clock: self.clock.clone() }
    }

    pub async fn start(&mut self) {
        self.running = Some(server::start(self.options()).await.unwrap());
    }

    pub async fn stop(&mut self) {
        self.running.take().unwrap().shutdown().await;
    }

    pub async fn restart(&mut self) {
        self.stop().await;
        self.start().await;
    }

    pub fn channel(&self) -> Channel {
        let addr = self.running.as_ref().unwrap().addr();
        Channel::from_shared(format!("http://{addr}")).unwrap().connect_lazy()
    }

    /// A member's clients.
    pub fn member(&self, name: &str) -> Member {
        Member::new(self.channel(), &self.tokens[name])
    }

    pub fn operator(&self) -> AdminServiceClient<Authorized> {
        admin(self.channel(), &self.home.operator_token().unwrap())
    }
}

pub type Authorized = InterceptedService<Channel, Bearer>;

pub fn admin(channel: Channel, token: &Token) -> AdminServiceClient<Authorized> {
    AdminServiceClient::with_interceptor(channel, Bearer::of(token.expose()))
}

/// Adds an `authorization` to every call.
#[derive(Clone)]
pub struct Bearer(MetadataValue<Ascii>);

impl Bearer {
    pub fn of(token: &str) -> Self {
        Self(format!("Bearer {token}").parse().unwrap())
    }
}

impl Interceptor for Bearer {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        request.metadata_mut().insert("authorization", self.0.clone());
        Ok(request)
    }
}

/// What one member calls with.
#[derive(Clone)]
pub struct Member {
    pub review: ReviewServiceClient<Authorized>,
    pub artifact: ArtifactServiceClient<Authorized>,
    pub escalation: EscalationServiceClient<Authorized>,
    pub log: LogServiceClient<Authorized>,
}

impl Member {
    pub fn new(channel: Channel, token: &Token) -> Self {
        let bearer = Bearer::of(token.expose());
        Self {
            review: ReviewServiceClient::with_interceptor(channel.clone(), bearer.clone()),
            artifact: ArtifactServiceClient::with_interceptor(channel.clone(), bearer.clone()),
            escalation: EscalationServiceClient::with_interceptor(channel.clone(), bearer.clone()),
            log: LogServiceClient::with_interceptor(channel, bearer),
        }
    }

    /// Uploads files; the bundle's digest.
    pub async fn upload(&mut self, files: &[(&[u8], &[u8])]) -> Result<proto::UploadBundleResponse, Status> {
        let mut pieces = Vec::new();
        for (path, content) in files {
            pieces.push(head(path, content.len()));
            // In two pieces, as long ones come.
            for half in content.chunks(content.len().div_ceil(2).max(1)) {
                pieces.push(content_piece(half));
            }
        }
        self.upload_pieces(pieces).await
    }

    pub async fn upload_pieces(
        &mut self,
        pieces: Vec<proto::UploadBundleRequest>,
    ) -> Result<proto::UploadBundleResponse, Status> {
        let pieces = tokio_stream::iter(pieces);
        self.artifact.upload_bundle(pieces).await.map(tonic::Response::into_inner)
    }

    /// Uploads one file and proposes it for `parser`; the version's reference.
    pub async fn offer(&mut self, content: &str, after: u32, answers: &[(&str, &str)]) -> String {
        let request = self.offering(content, after, answers).await;
        self.review.propose(request).await.unwrap().into_inner().reference
    }

    /// The request of [`offer`](Self::offer), once its file is there.
    pub async fn offering(
        &mut self,
        content: &str,
        after: u32,
        answers: &[(&str, &str)],
    ) -> proto::ProposeRequest {
        let digest = self.upload(&[(b"src/parser.rs", content.as_bytes())]).await.unwrap().digest;
        proto::ProposeRequest {
            proposal: "parser".to_owned(),
            kind: proto::ArtifactKind::Bundle.into(),
            digest,
            summary: "Streaming parser".to_owned(),
            answers: answers.iter().map(|(id, text)| ((*id).to_owned(), (*text).to_owned())).collect(),
            after,
            ..Default::default()
        }
    }

    pub async fn show(&mut self, subject: &str) -> proto::ShowResponse {
        let request = proto::ShowRequest { subject: subject.to_owned(), ..Default::default() };
        self.review.show(request).await.unwrap().into_inner()
    }

    pub async fn approve(&mut self, reference: &str) -> Result<proto::ApproveResponse, Status> {
        let reference = reference.to_owned();
        let request = proto::ApproveRequest { reference, ..Default::default() };
        self.review.approve(request).await.map(tonic::Response::into_inner)
    }

    pub async fn object(&mut self, reference: &str, text: &str) -> Result<proto::ObjectResponse, Status> {
        let (reference, text) = (reference.to_owned(), text.to_owned());
        let request = proto::ObjectRequest { reference, text, ..Default::default() };
        self.review.object(request).await.map(tonic::Response::into_inner)
    }

    pub async fn objections(&mut self) -> Vec<proto::Objection> {
        let request = proto::ObjectionsRequest { proposal: "parser".to_owned(), ..Default::default() };
        self.review.objections(request).await.unwrap().into_inner().objections
    }

    pub async fn confirm(&mut self, reference: &str) -> Result<proto::ConfirmResponse, Status> {
        let request = proto::ConfirmRequest { reference: reference.to_owned(), ..Default::default() };
        self.review.confirm(request).await.map(tonic::Response::into_inner)
    }

    pub async fn status(&mut self) -> proto::GetStatusResponse {
        self.status_at_least(0).await
    }

    pub async fn status_at_least(&mut self, at_least: u64) -> proto::GetStatusResponse {
        self.review.get_status(proto::GetStatusRequest { at_least }).await.unwrap().into_inner()
    }
}

pub fn head(path: &[u8], size: usize) -> proto::UploadBundleRequest {
    let head = proto::FileHead { path: path.to_vec().into(), executable: false, size: size as u64 };
    proto::UploadBundleRequest { piece: Some(proto::upload_bundle_request::Piece::Head(head)) }
}

pub fn content_piece(content: &[u8]) -> proto::UploadBundleRequest {
    let content = proto::upload_bundle_request::Piece::Content(content.to_vec().into());
    proto::UploadBundleRequest { piece: Some(content) }
}

/// The code of a refusal, and its status' code.
#[track_caller]
pub fn refused<T: std::fmt::Debug>(answer: Result<T, Status>) -> (String, Code) {
    let status = answer.unwrap_err();
    let rejection = countersign::wire::rejection_of(&status);
    let code = rejection.map(|rejection| rejection.violations[0].code.clone());
    let reason = countersign::wire::reason_of(&status);
    assert_eq!(code.as_ref().or(reason.as_ref()), reason.as_ref(), "{status:?}");
    (reason.unwrap_or_default(), status.code())
}

/// A fresh request id, the same in every run.
pub fn request_id(n: u32) -> String {
    format!("01890a5d-ac96-774b-bcce-{n:012}")
}

/// A bare repository, with commits made in it without a work tree.
pub struct Yard {
    pub path: PathBuf,
}

impl Yard {
    pub fn init(path: &Path) -> Self {
        let yard = Self { path: path.to_owned() };
        std::fs::create_dir_all(path).unwrap();
        yard.git(&["init", "-q", "--bare", "-b", "main", "."]);
        let first = yard.commit(&[("README.md", "# Atlas\n")], None, "dana@example.org");
        yard.git(&["update-ref", "refs/heads/main", &first]);
        yard
    }

    pub fn git(&self, arguments: &[&str]) -> String {
        self.git_as(arguments, "", "app@example.org")
    }

    fn git_as(&self, arguments: &[&str], input: &str, email: &str) -> String {
        use std::io::Write;
        let mut git = Command::new("git");
        git.arg("-C").arg(&self.path).args(arguments);
        git.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
        for role in ["AUTHOR", "COMMITTER"] {
            git.env(format!("GIT_{role}_NAME"), "somebody").env(format!("GIT_{role}_EMAIL"), email);
            git.env(format!("GIT_{role}_DATE"), "2026-01-01T00:00:00Z");
        }
        git.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
        let mut child = git.spawn().expect("git is needed: install it");
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "git {arguments:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    /// A commit that holds the parent's files and these; its id.
    pub fn commit(&self, files: &[(&str, &str)], parent: Option<&str>, email: &str) -> String {
        let mut listed = Vec::new();
        if let Some(parent) = parent {
            let tree = self.git(&["ls-tree", "-r", parent]);
            listed.extend(tree.lines().map(str::to_owned));
        }
        let index = self.path.join("test-index");
        let _ = std::fs::remove_file(&index);
        let with_index = |arguments: &[&str], input: &str| {
            let mut all = vec!["-c", "core.bare=true"];
            all.extend(arguments);
            // One index a commit, thrown away with it.
            let file = index.to_str().unwrap().to_owned();
            let mut git = Command::new("git");
            git.arg("-C").arg(&self.path).args(&all).env("GIT_INDEX_FILE", file);
            git.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
            let mut child = git.spawn().unwrap();
            std::io::Write::write_all(&mut child.stdin.take().unwrap(), input.as_bytes()).unwrap();
            let output = child.wait_with_output().unwrap();
            assert!(output.status.success());
            String::from_utf8(output.stdout).unwrap().trim().to_owned()
        };
        for (path, content) in files {
            let blob = self.git_as(&["hash-object", "-w", "--stdin"], content, email);
            listed.retain(|line| !line.ends_with(&format!("\t{path}")));
            listed.push(format!("100644 blob {blob}\t{path}"));
        }
        with_index(&["update-index", "--index-info"], &(listed.join("\n") + "\n"));
        let tree = with_index(&["write-tree"], "");
        let mut arguments = vec!["commit-tree", &tree, "-m", "work"];
        if let Some(parent) = parent {
            arguments.extend(["-p", parent]);
        }
        self.git_as(&arguments, "", email)
    }

    /// The same, where a push to staging leaves it.
    pub fn staged(&self, files: &[(&str, &str)], parent: &str, email: &str) -> String {
        let commit = self.commit(files, Some(parent), email);
        self.git(&["update-ref", &format!("refs/countersign/staging/{commit}"), &commit]);
        commit
    }

    pub fn main(&self) -> String {
        self.git(&["rev-parse", "refs/heads/main"])
    }
}

/// A request that offers a commit for `parser`.
pub fn offering_commit(commit: &str, after: u32) -> proto::ProposeRequest {
    proto::ProposeRequest {
        proposal: "parser".to_owned(),
        kind: proto::ArtifactKind::Commit.into(),
        digest: commit.to_owned(),
        summary: "Streaming parser".to_owned(),
        after,
        ..Default::default()
    }
}
