//! The server: gRPC in front of the coordinator. It says who calls, parses, gets the facts about
//! artifacts, submits, and prints. It decides nothing: an `if` about the protocol belongs below.
//!
//! ```text
//!   call ──► auth: who ──► wire: message → command ──► facts: git, bundles ──► coordinator: submit
//!                                                                                   │
//!   answer ◄────────────────────── wire: state → message, rejection → status ◄──────┘
//! ```

mod admin;
mod answer;
mod artifact;
mod audit;
mod auth;
mod call;
mod charter;
mod check;
pub mod door;
mod entrance;
mod escalation;
mod facts;
mod listen;
mod log;
pub mod metrics;
pub mod operator;
mod pin;
mod review;
mod room;
mod rule;
mod shared;
mod staging;
mod target;

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::MissedTickBehavior;
use tonic::service::Routes;
use tonic::transport::server::TcpIncoming;
use tonic::transport::{Identity, Server, ServerTlsConfig};
use tonic_health::ServingStatus;
use tonic_health::server::HealthReporter;

use crate::artifact::TeamArtifacts;
use crate::coordinator::{Clock, Coordinator};
use crate::home::{Home, HomeFault, ServerFile};
use crate::judge::CelRulebook;
use crate::notify::Channels;
use crate::page::{self, Page};
use crate::protocol::charter::MemberKind;
use crate::protocol::name::{MemberName, TeamName};
use crate::publish;
use crate::store::Fault;
use crate::store::sqlite::SqliteStore;
use crate::wire::proto;
use operator::{OperatorFault, chain};
use proto::admin_service_server::AdminServiceServer;
use proto::artifact_service_server::ArtifactServiceServer;
use proto::door_service_server::DoorServiceServer;
use proto::escalation_service_server::EscalationServiceServer;
use proto::listen_service_server::ListenServiceServer;
use proto::log_service_server::LogServiceServer;
use proto::page_service_server::PageServiceServer;
use proto::review_service_server::ReviewServiceServer;
use proto::room_service_server::RoomServiceServer;
use proto::rule_service_server::RuleServiceServer;
use shared::Shared;

/// The longest message that is taken, in bytes.
pub const MESSAGE_BYTES_MAX: usize = 4 << 20;

/// Calls of one connection that are answered at the same time; further ones wait.
const CALLS_PER_CONNECTION_MAX: usize = 512;

/// Streams that one connection may open at the same time.
const STREAMS_PER_CONNECTION_MAX: u32 = 1024;

/// How long calls that are under way may still take once the server ends.
const DRAIN_TIME_MAX: Duration = Duration::from_secs(5);

/// How often a silent connection is asked whether somebody is there, and how long it may not answer.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(30);
const KEEPALIVE_TIME_MAX: Duration = Duration::from_secs(20);

/// How often the server says that it runs.
const PULSE: Duration = Duration::from_secs(1);

/// What a server is started with.
pub struct Options {
    /// Its home folder.
    pub home: Home,
    /// Where it listens; port 0 takes a free one.
    pub listen: SocketAddr,
    /// Its certificate. Needed where it listens for other machines.
    pub tls: Option<TlsFiles>,
    /// Where the room page is; none where there is to be none.
    pub page: Option<PageAddr>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
}

/// Where the room page listens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageAddr {
    /// There, and nowhere else; port 0 takes a free one.
    At(SocketAddr),
    /// There, or at a free port where that one is taken.
    Near(SocketAddr),
}

/// A certificate and its key, as PEM files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate, with those that lead to its root.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

/// Why a server doesn't start.
#[derive(Debug, thiserror::Error)]
pub enum StartFault {
    /// Tokens would cross the network in the clear.
    #[error(
        "{addr} can be reached from other machines, and without TLS tokens would cross the network in the clear"
    )]
    NotLoopback {
        /// Where it was to listen.
        addr: SocketAddr,
    },
    /// The page's tokens would cross the network in the clear.
    #[error("{addr} can be reached from other machines, and the room page is for this one")]
    PageNotLoopback {
        /// Where the page was to listen.
        addr: SocketAddr,
    },
    /// It can't listen there.
    #[error("the server can't listen on {addr}: {source}")]
    Listen {
        /// Where.
        addr: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// The certificate or its key can't be read.
    #[error("the TLS file {} can't be read: {source}", .path.display())]
    TlsFile {
        /// Which file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The certificate and its key can't be used.
    #[error("the TLS certificate and its key can't be used: {what}")]
    Tls {
        /// What is wrong.
        what: String,
    },
    /// The home folder can't be read or written.
    #[error(transparent)]
    Home(#[from] HomeFault),
    /// The store refused: another server holds the folder, a log is damaged…
    #[error(transparent)]
    Store(#[from] Fault),
    /// A team's artifacts or repository can't be used.
    #[error(transparent)]
    Team(OperatorFault),
}

impl StartFault {
    /// What to do about it.
    pub fn remedy(&self) -> String {
        match self {
            Self::NotLoopback { .. } => {
                "listen on 127.0.0.1, or give a certificate: --tls-cert FILE --tls-key FILE".to_owned()
            }
            Self::PageNotLoopback { .. } => {
                "give the page an address of this machine, such as --page 127.0.0.1:0; from another machine, reach it \
                 by: ssh -L"
                    .to_owned()
            }
            Self::Listen { source, .. } if source.kind() == io::ErrorKind::AddrInUse => {
                "take another port, or port 0 for a free one".to_owned()
            }
            Self::Listen { .. } => "listen on an address of this machine, such as 127.0.0.1:0".to_owned(),
            Self::TlsFile { .. } | Self::Tls { .. } => {
                "give a certificate and its own key as PEM files that the server may read".to_owned()
            }
            Self::Home(HomeFault::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                "make the home first: countersign init --charter FILE".to_owned()
            }
            Self::Home(_) => "see that the home folder is yours, then start again".to_owned(),
            Self::Store(fault) => operator::store_remedy(fault),
            Self::Team(fault) => fault.remedy(),
        }
    }
}

/// A server that serves.
pub struct Running {
    addr: SocketAddr,
    shared: Arc<Shared>,
    health: HealthReporter,
    said: ServerFile,
    stop: oneshot::Sender<()>,
    served: JoinHandle<Result<(), tonic::transport::Error>>,
    pulse: JoinHandle<()>,
    page: Option<Page>,
    audit: JoinHandle<()>,
}

/// Opens the store, reads every team, pins what isn't, listens, and says in `server.json` where.
pub async fn start(options: Options) -> Result<Running, StartFault> {
    let Options { home, listen, tls, page, clock } = options;
    if tls.is_none() && !listen.ip().to_canonical().is_loopback() {
        return Err(StartFault::NotLoopback { addr: listen });
    }
    if let Some(PageAddr::At(addr) | PageAddr::Near(addr)) = page
        && !addr.ip().is_loopback()
    {
        return Err(StartFault::PageNotLoopback { addr });
    }
    let tls = tls.map(tls_config).transpose()?;
    let mut server = Server::builder()
        // Whoever scrapes the counters speaks it.
        .accept_http1(true)
        .concurrency_limit_per_connection(CALLS_PER_CONNECTION_MAX)
        .max_concurrent_streams(STREAMS_PER_CONNECTION_MAX)
        .http2_keepalive_interval(Some(KEEPALIVE_INTERVAL))
        .http2_keepalive_timeout(Some(KEEPALIVE_TIME_MAX));
    if let Some(tls) = tls {
        server = server.tls_config(tls).map_err(|fault| StartFault::Tls { what: chain(&fault) })?;
    }

    let operator = home.operator_token()?.hash();
    let process = std::process::id();
    let (writer, reader) = SqliteStore::open(home.path(), &format!("process {process}"))?;
    let in_use = |source| StartFault::Listen { addr: listen, source };
    let listener = TcpListener::bind(listen).await.map_err(in_use)?;
    let addr = listener.local_addr().map_err(in_use)?;
    let page = match page {
        None => None,
        Some(page) => Some(bind_page(page).await?),
    };
    writer.set_holder(&format!("process {process} at {addr}"))?;
    let rulebook = Arc::new(CelRulebook::default());
    let notifier = Arc::new(Channels::of(&home));
    let (writer, reader) = (Box::new(writer), Arc::new(reader));
    let artifacts = TeamArtifacts::default();
    let publisher = Arc::new(audit::Watched::new(publish::Git::of(&home, &artifacts)));
    let coordinator =
        Coordinator::start_acting(writer, reader, rulebook, clock.clone(), notifier, publisher.clone())?;
    let links = page.as_ref().map(page::Bound::links);
    let shared = Arc::new(Shared::new(coordinator, home, operator, artifacts, links));
    publisher.watch(&shared);
    if let Err(fault) = open_teams(&shared).await {
        shared.coordinator.clone().shutdown().await;
        return Err(StartFault::Team(fault));
    }

    let (health, routes) = routes(&shared);
    let page = page.map(|page| page.serve(shared.coordinator.clone(), routes.clone()));
    let said = ServerFile::of_this_process(addr, page.as_ref().map(Page::addr), clock.now());
    let (stop, stopped) = oneshot::channel::<()>();
    let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
    let router = server.add_routes(routes);
    let served = tokio::spawn(router.serve_with_incoming_shutdown(incoming, async {
        // A handle that is gone ends the server too.
        drop(stopped.await);
    }));
    set_health(&health, ServingStatus::Serving).await;
    if let Err(fault) = shared.home.write_server(&said) {
        served.abort();
        shared.coordinator.clone().shutdown().await;
        return Err(fault.into());
    }
    let pulse = tokio::spawn(beat(shared.clone()));
    let audit = tokio::spawn(audit::watch(shared.clone()));
    tracing::info!(%addr, "serving");
    Ok(Running { addr, shared, health, said, stop, served, pulse, page, audit })
}

async fn bind_page(addr: PageAddr) -> Result<page::Bound, StartFault> {
    let (wanted, free) = match addr {
        PageAddr::At(addr) => (addr, None),
        PageAddr::Near(addr) => (addr, Some(SocketAddr::new(addr.ip(), 0))),
    };
    let bound = match (page::bind(wanted).await, free) {
        (Err(taken), Some(free)) if taken.kind() == io::ErrorKind::AddrInUse => page::bind(free).await,
        (bound, _) => bound,
    };
    bound.map_err(|source| StartFault::Listen { addr: wanted, source })
}

impl Running {
    /// Where it listens.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Where the room page is.
    pub fn page(&self) -> Option<SocketAddr> {
        self.page.as_ref().map(Page::addr)
    }

    /// A link to the room page for each person of every team, which signs that person in once; none where there is
    /// no page, or where there are more persons than that.
    pub fn links(&self, persons_max: usize) -> Vec<(TeamName, MemberName, String)> {
        let Some(page) = &self.page else { return Vec::new() };
        let persons = self.shared.coordinator.teams().into_iter().flat_map(|team| {
            let persons = team.peek(|team| {
                let members = team.adopted().into_iter().flat_map(|adopted| &adopted.charter.members);
                let persons = members.filter(|(_, member)| member.kind == MemberKind::Human);
                persons.map(|(name, _)| name.clone()).collect::<Vec<_>>()
            });
            persons.into_iter().map(move |person| (team.name().clone(), person))
        });
        let persons: Vec<_> = persons.take(persons_max.saturating_add(1)).collect();
        if persons.len() > persons_max {
            return Vec::new();
        }
        let linked = persons.into_iter().filter_map(|(team, person)| {
            let (link, _) = page.links().issue(&team, &person, self.shared.now(), || true).ok()?;
            Some((team, person, link))
        });
        linked.collect()
    }

    /// Resolves once nobody can say any longer whether a command was stored, with what the store said.
    /// The process must end then: only a fresh start settles it.
    pub async fn broken(&self) -> String {
        self.shared.coordinator.broken().await
    }

    /// Takes no more calls, finishes those that are under way, closes the store, and takes
    /// `server.json` away.
    pub async fn shutdown(self) {
        let Self { shared, health, said, stop, mut served, pulse, page, audit, .. } = self;
        audit.abort();
        set_health(&health, ServingStatus::NotServing).await;
        // They would keep the server until its patience ends.
        shared.coordinator.end_listening();
        // The only failure is a server that has ended already.
        let _ = stop.send(());
        if let Some(page) = page {
            page.shutdown(DRAIN_TIME_MAX).await;
        }
        // A stream that is never read must not keep the server.
        if tokio::time::timeout(DRAIN_TIME_MAX, &mut served).await.is_err() {
            tracing::warn!("calls were still under way when the server ended");
            served.abort();
        }
        if let Err(fault) = shared.home.remove_server(&said) {
            tracing::error!(%fault, "server.json stays behind");
        }
        shared.coordinator.clone().shutdown().await;
        pulse.abort();
        say_alive(&shared);
        tracing::info!("ended");
    }
}

/// Keeps the clock, and whoever starts the next server, told that this one runs.
async fn beat(shared: Arc<Shared>) {
    let mut every = tokio::time::interval(PULSE);
    every.set_missed_tick_behavior(MissedTickBehavior::Skip);
    loop {
        every.tick().await;
        shared.coordinator.clock().beat();
        let shared = shared.clone();
        // A disk that hangs must hold up nobody. What ends this task is the end of the server.
        let _ = tokio::task::spawn_blocking(move || say_alive(&shared)).await;
    }
}

fn say_alive(shared: &Shared) {
    if let Err(fault) = shared.home.write_alive(shared.coordinator.clock().now()) {
        tracing::debug!(%fault, "the time could not be written down");
    }
}

/// Opens what every team's versions are made of, and pins the commits that the log has and the
/// repository lacks.
async fn open_teams(shared: &Shared) -> Result<(), OperatorFault> {
    for team in shared.coordinator.teams() {
        let Some(charter) = team.peek(|team| team.adopted().map(|adopted| adopted.charter.clone())) else {
            continue; // Its addition was cut off; asked again, it is finished.
        };
        let artifacts = operator::open_artifacts(&shared.home, &charter).await?;
        let owed = team.peek(pin::owed);
        let caught_up = pin::catch_up(&artifacts, &owed).await;
        let pinned =
            caught_up.map_err(|source| OperatorFault::Artifacts { team: team.name().clone(), source })?;
        if pinned > 0 {
            tracing::warn!(team = %team.name(), pinned, "versions were not pinned, and are now");
        }
        shared.keep_artifacts(team.name().clone(), artifacts);
        target::catch_up(shared, &team, &target::Scope::All).await;
    }
    Ok(())
}

const REVIEW: &str = "countersign.v1.ReviewService";
const ARTIFACT: &str = "countersign.v1.ArtifactService";
const ESCALATION: &str = "countersign.v1.EscalationService";
const LISTEN: &str = "countersign.v1.ListenService";
const ROOM: &str = "countersign.v1.RoomService";
const RULE: &str = "countersign.v1.RuleService";
const LOG: &str = "countersign.v1.LogService";
const DOOR: &str = "countersign.v1.DoorService";
const PAGE: &str = "countersign.v1.PageService";
const ADMIN: &str = "countersign.v1.AdminService";

async fn set_health(health: &HealthReporter, status: ServingStatus) {
    for service in ["", REVIEW, ARTIFACT, ESCALATION, LISTEN, ROOM, RULE, LOG, DOOR, PAGE, ADMIN] {
        health.set_service_status(service, status).await;
    }
}

/// Every service, with health and reflection.
fn routes(shared: &Arc<Shared>) -> (HealthReporter, Routes) {
    let (reporter, health) = tonic_health::server::health_reporter();
    let bounded = MESSAGE_BYTES_MAX;
    let review = ReviewServiceServer::new(review::Review(shared.clone()));
    let artifact = ArtifactServiceServer::new(artifact::Artifact(shared.clone()));
    let escalation = EscalationServiceServer::new(escalation::Escalation(shared.clone()));
    let listen = ListenServiceServer::new(listen::Listen(shared.clone()));
    let room = RoomServiceServer::new(room::Room(shared.clone()));
    let rule = RuleServiceServer::new(rule::Rules(shared.clone()));
    let log = LogServiceServer::new(log::Log(shared.clone()));
    let door = DoorServiceServer::new(door::Door(shared.clone()));
    let entrance = PageServiceServer::new(entrance::Entrance(shared.clone()));
    let admin = AdminServiceServer::new(admin::Admin(shared.clone()));
    let reflection = || {
        tonic_reflection::server::Builder::configure()
            .register_encoded_file_descriptor_set(proto::DESCRIPTORS)
            .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
    };
    const COMPILED: &str = "the descriptors were compiled with this program";
    let routes = Routes::from(metrics::router(shared.clone()))
        .add_service(health)
        .add_service(reflection().build_v1().expect(COMPILED))
        .add_service(reflection().build_v1alpha().expect(COMPILED))
        .add_service(review.max_decoding_message_size(bounded))
        .add_service(artifact.max_decoding_message_size(bounded))
        .add_service(escalation.max_decoding_message_size(bounded))
        .add_service(listen.max_decoding_message_size(bounded))
        .add_service(room.max_decoding_message_size(bounded))
        .add_service(rule.max_decoding_message_size(bounded))
        .add_service(log.max_decoding_message_size(bounded))
        .add_service(door.max_decoding_message_size(bounded))
        .add_service(entrance.max_decoding_message_size(bounded))
        .add_service(admin.max_decoding_message_size(bounded));
    (reporter, routes)
}

fn tls_config(files: TlsFiles) -> Result<ServerTlsConfig, StartFault> {
    let read = |path: PathBuf| std::fs::read(&path).map_err(|source| StartFault::TlsFile { path, source });
    let identity = Identity::from_pem(read(files.certificate)?, read(files.key)?);
    Ok(ServerTlsConfig::new().identity(identity))
}
