//! A durable approve beside an echo that stores nothing, in one run: the ratio is what counts, since
//! absolute figures drift with whatever else the machine does.
//!
//! `cargo bench --bench approve [-- --quick] [-- --seconds 3 --rounds 3 --clients 1,16,64,256 --ids]`
//!
//! Both sides are unary gRPC calls of this process to itself over loopback, multiplexed over a few
//! connections; an approve is decided, chained, committed with `synchronous=FULL` and answered after
//! the commit. Clients are spread over 64 teams, and then put into one single team. With `--ids` each approve has
//! a request id of its own, as the client of this program makes one.
//!
//! Budget 1: 0.42 of the echo at 64 clients and 0.55 at 256, in one team 0.30; budget 2: 0.28 at 16. The third
//! figure beside each rate is the processor time a call in microseconds, both ends together. etcd is not beside
//! them: it is not a part of this repository.

use std::sync::Arc;
use std::time::{Duration, Instant};

use countersign::coordinator::SystemClock;
use countersign::home::Home;
use countersign::server::{self, operator};
use countersign::wire::proto;
use countersign::wire::proto::artifact_service_client::ArtifactServiceClient;
use countersign::wire::proto::review_service_client::ReviewServiceClient;
use hdrhistogram::Histogram;
use tonic::Request;
use tonic::transport::Channel;

mod figures;

use figures::{CONNECTIONS, at_least, connect, cpu_seconds, echo, number, option, quick};

const TEAMS: usize = 64;

/// By how many clients: what an approve is to reach of the echo, over 64 teams.
const BUDGETS: [(usize, f64); 3] = [(16, 0.28), (64, 0.42), (256, 0.55)];
/// The same in one team, at 64 clients.
const BUDGET_ONE_TEAM: f64 = 0.30;

#[tokio::main]
async fn main() {
    let options = Options::from_args();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let teams = Teams::start(folder.path()).await;
    let echo = echo::start().await;
    println!(
        "calls a second; median and 99th percentile in milliseconds; processor time a call in microseconds; \
         {} s a round, medians of {} rounds",
        options.seconds, options.rounds
    );
    println!(
        "{:>7}  {:>30}  {:>30}  {:>30}  {:>6}  {:>8}",
        "clients", "echo", "approve, 64 teams", "approve, 1 team", "ratio", "1 team"
    );
    let mut verdicts = Vec::new();
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
            "{clients:>7}  {:>30}  {:>30}  {:>30}  {:>6.2}  {:>8.2}",
            echoed.to_string(),
            approved.to_string(),
            single.to_string(),
            approved.rate / echoed.rate,
            single.rate / echoed.rate,
        );
        let (ratio, one) = (approved.rate / echoed.rate, single.rate / echoed.rate);
        if let Some((_, budget)) = BUDGETS.iter().find(|(at, _)| *at == clients) {
            verdicts.push(format!(
                "{clients} clients: {ratio:.2} of the echo, at least {budget}: {}",
                at_least(ratio, *budget)
            ));
        }
        if clients == 64 {
            let verdict = at_least(one, BUDGET_ONE_TEAM);
            verdicts.push(format!(
                "64 clients, one team: {one:.2} of the echo, at least {BUDGET_ONE_TEAM}: {verdict}"
            ));
        }
    }
    verdicts.iter().for_each(|verdict| println!("budgets 1 and 2, {verdict}"));
    teams.running.shutdown().await;
}

struct Options {
    seconds: u64,
    rounds: usize,
    clients: Vec<usize>,
}

impl Options {
    fn from_args() -> Self {
        let clients = option("--clients").unwrap_or_else(|| "1,16,64,256".to_owned());
        let (seconds, rounds) = if quick() { (1, 1) } else { (3, 3) };
        Self {
            seconds: number("--seconds", seconds),
            rounds: number("--rounds", rounds) as usize,
            clients: clients.split(',').filter_map(|count| count.parse().ok()).collect(),
        }
    }
}

/// What one round measured.
#[derive(Clone)]
struct Run {
    rate: f64,
    cpu_us: f64,
    median_ms: f64,
    p99_ms: f64,
}

impl std::fmt::Display for Run {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:.0}/s {:.2} {:.2} {:.0}", self.rate, self.median_ms, self.p99_ms, self.cpu_us)
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
    let (began, cpu) = (Instant::now(), cpu_seconds());
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
    let (calls, took) = (times.len() as f64, began.elapsed().as_secs_f64());
    let cpu = cpu.zip(cpu_seconds()).map_or(f64::NAN, |(before, after)| after - before);
    Run { rate: calls / took, cpu_us: 1e6 * cpu / calls, median_ms: ms(0.5), p99_ms: ms(0.99) }
}

fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, 60_000_000, 3).expect("a minute in microseconds, to three digits")
}

impl Client for echo::Speaker {
    async fn call(&mut self) {
        self.say().await;
    }
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
    /// Whether each call has a request id.
    ids: bool,
}

impl Client for Approver {
    async fn call(&mut self) {
        let message = proto::ApproveRequest {
            request_id: if self.ids { uuid::Uuid::now_v7().to_string() } else { String::new() },
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
        let options = server::Options { home, listen, tls: None, page: None, clock };
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
        let (client, reviewer) = (ReviewServiceClient::new(channel), self.reviewers[team].clone());
        Approver { client, reviewer, ids: std::env::args().any(|arg| arg == "--ids") }
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
