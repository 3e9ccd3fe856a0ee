//! A durable approve beside an echo that stores nothing, in one run: the ratio is what counts, since
//! absolute figures drift with whatever else the machine does.
//!
//! `cargo bench --bench approve [-- --seconds 3 --rounds 3 --clients 1,16,64,256]`
//!
//! Both sides are unary gRPC calls of this process to itself over loopback, multiplexed over a few
//! connections; an approve is decided, chained, committed with `synchronous=FULL` and answered after
//! the commit. Clients are spread over 64 teams, and then put into one single team.

use std::sync::Arc;
use std::time::{Duration, Instant};

use countersign::coordinator::SystemClock;
use countersign::home::Home;
use countersign::server::{self, operator};
use countersign::wire::proto;
use countersign::wire::proto::artifact_service_client::ArtifactServiceClient;
use countersign::wire::proto::review_service_client::ReviewServiceClient;
use hdrhistogram::Histogram;
use tonic::transport::{Channel, Endpoint, Server};
use tonic::{Request, Response, Status};

const TEAMS: usize = 64;
const CONNECTIONS: usize = 4;

#[tokio::main]
async fn main() {
    let options = Options::from_args();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let teams = Teams::start(folder.path()).await;
    let echo = echo::start().await;
    println!(
        "calls a second; median and 99th percentile in milliseconds; {} s a round, medians of {} rounds",
        options.seconds, options.rounds
    );
    println!(
        "{:>7}  {:>28}  {:>28}  {:>28}  {:>6}  {:>8}",
        "clients", "echo", "approve, 64 teams", "approve, 1 team", "ratio", "1 team"
    );
    for clients in options.clients {
        let mut runs: [Vec<Run>; 3] = Default::default();
        for _ in 0..options.rounds {
            // Interleaved, so that what disturbs one side disturbs the other.
            runs[0].push(load(clients, options.seconds, |client| echo.call(client)).await);
            runs[1]
                .push(load(clients, options.seconds, |client| teams.approve(client, client % TEAMS)).await);
            runs[2].push(load(clients, options.seconds, |client| teams.approve(client, 0)).await);
        }
        let [echoed, approved, single] = runs.map(median);
        println!(
            "{clients:>7}  {:>28}  {:>28}  {:>28}  {:>6.2}  {:>8.2}",
            echoed.to_string(),
            approved.to_string(),
            single.to_string(),
            approved.rate / echoed.rate,
            single.rate / echoed.rate,
        );
    }
    teams.running.shutdown().await;
}

struct Options {
    seconds: u64,
    rounds: usize,
    clients: Vec<usize>,
}

impl Options {
    fn from_args() -> Self {
        let args: Vec<String> = std::env::args().collect();
        let value = |name: &str| {
            let at = args.iter().position(|arg| arg == name)?;
            args.get(at + 1).cloned()
        };
        let number = |name, default: u64| value(name).and_then(|text| text.parse().ok()).unwrap_or(default);
        let clients = value("--clients").unwrap_or_else(|| "1,16,64,256".to_owned());
        Self {
            seconds: number("--seconds", 3),
            rounds: number("--rounds", 3) as usize,
            clients: clients.split(',').filter_map(|count| count.parse().ok()).collect(),
        }
    }
}

/// What one round measured.
#[derive(Clone)]
struct Run {
    rate: f64,
    median_ms: f64,
    p99_ms: f64,
}

impl std::fmt::Display for Run {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:.0}/s {:.2} {:.2}", self.rate, self.median_ms, self.p99_ms)
    }
}

fn median(mut runs: Vec<Run>) -> Run {
    runs.sort_by(|one, other| one.rate.total_cmp(&other.rate));
    runs.swap_remove(runs.len() / 2)
}

/// One client: it has one call under way.
trait Client: Send + 'static {
    fn call(&mut self) -> impl Future<Output = ()> + Send;
}

/// So many clients, for so long.
async fn load<C: Client>(clients: usize, seconds: u64, client: impl Fn(usize) -> C) -> Run {
    let began = Instant::now();
    let until = began + Duration::from_secs(seconds);
    let tasks: Vec<_> = (0..clients)
        .map(|index| {
            let mut client = client(index);
            tokio::spawn(async move {
                let mut times = histogram();
                while Instant::now() < until {
                    let began = Instant::now();
                    client.call().await;
                    times.saturating_record(began.elapsed().as_micros() as u64);
                }
                times
            })
        })
        .collect();
    let mut times = histogram();
    for task in tasks {
        times.add(task.await.expect("a client ends")).expect("the same range");
    }
    let ms = |quantile| times.value_at_quantile(quantile) as f64 / 1000.0;
    Run { rate: times.len() as f64 / began.elapsed().as_secs_f64(), median_ms: ms(0.5), p99_ms: ms(0.99) }
}

fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, 60_000_000, 3).expect("a minute in microseconds, to three digits")
}

async fn connect(addr: std::net::SocketAddr) -> Vec<Channel> {
    let endpoint = Endpoint::from_shared(format!("http://{addr}")).expect("an address makes a URI");
    let mut channels = Vec::new();
    for _ in 0..CONNECTIONS {
        channels.push(endpoint.connect().await.expect("the server listens"));
    }
    channels
}

/// The approving side: a server with its teams, each with a version that its reviewer has read.
struct Teams {
    running: server::Running,
    channels: Vec<Channel>,
    reviewers: Vec<Reviewer>,
}

#[derive(Clone)]
struct Reviewer {
    token: String,
    reference: String,
}

struct Approver {
    client: ReviewServiceClient<Channel>,
    reviewer: Reviewer,
}

impl Client for Approver {
    async fn call(&mut self) {
        let message = proto::ApproveRequest {
            reference: self.reviewer.reference.clone(),
            ran: vec![proto::Run {
                command: "cargo test".to_owned(),
                exit: Some(0),
                output: Some("o".repeat(120)),
            }],
            ..Default::default()
        };
        self.client
            .approve(with_token(message, &self.reviewer.token))
            .await
            .expect("an approval is accepted");
    }
}

impl Teams {
    async fn start(folder: &std::path::Path) -> Self {
        let home = Home::create(folder.join(".countersign")).expect("a fresh home");
        let mut tokens = Vec::new();
        for index in 0..TEAMS {
            let charter =
                include_str!("../tests/plays/charters/solo.toml").replace("atlas", &format!("team{index}x"));
            let file = operator::CharterFile::alone("charter.toml", charter.as_bytes(), folder);
            let added = operator::add_team(&home, file).await;
            tokens.push(added.expect("the charter is adopted").tokens);
        }
        let listen = "127.0.0.1:0".parse().expect("an address");
        let clock = Arc::new(SystemClock::start());
        let options = server::Options { home, listen, tls: None, clock };
        let running = server::start(options).await.expect("the server starts");
        let channels = connect(running.addr()).await;
        let mut reviewers = Vec::new();
        for tokens in tokens {
            let token = |name: &str| {
                let found = tokens.iter().find(|(member, _)| member.as_str() == name);
                found.expect("a member of the charter").1.expose().to_owned()
            };
            let reference = propose(&channels[0], &token("app")).await;
            let message = proto::ShowRequest { subject: reference.clone(), ..Default::default() };
            let request = with_token(message, &token("sec"));
            ReviewServiceClient::new(channels[0].clone()).show(request).await.expect("it is shown");
            reviewers.push(Reviewer { token: token("sec"), reference });
        }
        Self { running, channels, reviewers }
    }

    fn approve(&self, client: usize, team: usize) -> Approver {
        let channel = self.channels[client % CONNECTIONS].clone();
        Approver { client: ReviewServiceClient::new(channel), reviewer: self.reviewers[team].clone() }
    }
}

async fn propose(channel: &Channel, token: &str) -> String {
    use proto::upload_bundle_request::Piece;
    let head = proto::FileHead { path: "src/parser.rs".into(), executable: false, size: 3 };
    let pieces = [Piece::Head(head), Piece::Content("one".into())];
    let pieces = pieces.map(|piece| proto::UploadBundleRequest { piece: Some(piece) });
    let upload = with_token(tokio_stream::iter(pieces), token);
    let bundle = ArtifactServiceClient::new(channel.clone()).upload_bundle(upload).await;
    let message = proto::ProposeRequest {
        proposal: "parser".to_owned(),
        kind: proto::ArtifactKind::Bundle.into(),
        digest: bundle.expect("it is uploaded").into_inner().digest,
        ..Default::default()
    };
    let proposed = ReviewServiceClient::new(channel.clone()).propose(with_token(message, token)).await;
    proposed.expect("it stands").into_inner().reference
}

fn with_token<T>(message: T, token: &str) -> Request<T> {
    let mut request = Request::new(message);
    let bearer = format!("Bearer {token}").parse().expect("a token is ASCII");
    request.metadata_mut().insert("authorization", bearer);
    request
}

/// The echoing side: a unary call that gives back the 200 bytes that it got.
mod echo {
    use std::convert::Infallible;
    use std::task::{Context, Poll};

    use tonic::body::Body;
    use tonic::codegen::{BoxFuture, Service, http};
    use tonic::server::{Grpc, NamedService, UnaryService};
    use tonic_prost::ProstCodec;

    use super::*;

    #[derive(Clone, PartialEq, prost::Message)]
    struct Said {
        #[prost(string, tag = "1")]
        text: String,
    }

    pub(super) struct Echo {
        channels: Vec<Channel>,
    }

    pub(super) struct Speaker(tonic::client::Grpc<Channel>);

    pub(super) async fn start() -> Echo {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let addr = listener.local_addr().expect("it is bound");
        let incoming = tonic::transport::server::TcpIncoming::from(listener).with_nodelay(Some(true));
        tokio::spawn(Server::builder().add_service(EchoServer).serve_with_incoming(incoming));
        Echo { channels: connect(addr).await }
    }

    impl Echo {
        pub(super) fn call(&self, client: usize) -> Speaker {
            Speaker(tonic::client::Grpc::new(self.channels[client % CONNECTIONS].clone()))
        }
    }

    impl Client for Speaker {
        async fn call(&mut self) {
            self.0.ready().await.expect("the server listens");
            let path = http::uri::PathAndQuery::from_static("/echo.Echo/Say");
            let message = Request::new(Said { text: "e".repeat(200) });
            let said: Response<Said> =
                self.0.unary(message, path, ProstCodec::default()).await.expect("it echoes");
            assert_eq!(said.into_inner().text.len(), 200);
        }
    }

    #[derive(Clone)]
    struct EchoServer;

    struct Say;

    impl UnaryService<Said> for Say {
        type Response = Said;
        type Future = std::future::Ready<Result<Response<Said>, Status>>;

        fn call(&mut self, request: Request<Said>) -> Self::Future {
            std::future::ready(Ok(Response::new(request.into_inner())))
        }
    }

    impl NamedService for EchoServer {
        const NAME: &'static str = "echo.Echo";
    }

    impl Service<http::Request<Body>> for EchoServer {
        type Response = http::Response<Body>;
        type Error = Infallible;
        type Future = BoxFuture<Self::Response, Self::Error>;

        fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
            Poll::Ready(Ok(()))
        }

        fn call(&mut self, request: http::Request<Body>) -> Self::Future {
            Box::pin(async { Ok(Grpc::new(ProstCodec::<Said, Said>::default()).unary(Say, request).await) })
        }
    }
}
