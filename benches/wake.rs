//! What waiting costs: the wake of one among many, the memory of those who wait, and a whole process from the post to
//! the waiter's end.
//!
//! `cargo bench --bench wake [-- --quick] [--hcom PATH]`
//!
//! Budget 5: 10,000 blocked listeners under 12 KB each over few connections and 35 KB with one each, and the 99th percentile of a wake among them
//! at most twice that among ten; from the post to the end of the waiter's process under 15 ms, and five times faster than
//! hcom, side by side, where `--hcom` names its program. The server is a process of its own, so its memory is its own.

mod figures;

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use countersign::home::Home;
use countersign::wire::proto::listen_response::Said;
use countersign::wire::proto::listen_service_client::ListenServiceClient;
use countersign::wire::proto::room_service_client::RoomServiceClient;
use countersign::wire::proto::{AcknowledgeRequest, ListenRequest, ListenResponse, SayRequest, Waking};
use figures::program::{Served, program, ran};
use figures::{at_least, at_most, median, millis, number, option, quick};
use tonic::transport::{Channel, Endpoint};
use tonic::{Request, Streaming};

/// KB of the server's memory for each blocked listener: over few connections, and with one for each.
const KIB_BUDGET: f64 = 12.0;
const KIB_ALONE_BUDGET: f64 = 35.0;

/// The 99th percentile of a wake among many, of that among ten.
const AMONG_BUDGET: f64 = 2.0;

/// From the post to the end of the waiter's process, in milliseconds.
const PROCESS_BUDGET: f64 = 15.0;

/// How many times faster than hcom.
const HCOM_BUDGET: f64 = 5.0;

/// Members of a team who only wait.
const IDLE: usize = 190;

/// Listeners of one connection: below what the server lets one connection open.
const STREAMS_PER_CONNECTION: usize = 1_000;

struct Place {
    folder: tempfile::TempDir,
    addr: String,
    served: Served,
}

impl Place {
    /// A home of so many teams, and a server.
    fn of(teams: usize) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        for team in 0..teams {
            let file = folder.path().join(format!("team-{team}.toml"));
            std::fs::write(&file, charter(team)).expect("it can be written");
            let verb: &[&str] = if team == 0 { &["init"] } else { &["team", "add"] };
            let mut add = program(folder.path(), verb);
            ran(add.arg("--charter").arg(&file));
        }
        let served = Served::start(folder.path());
        let addr = Home::at(folder.path().join(".countersign")).read_server().expect("it serves").addr;
        Self { folder, addr: addr.to_string(), served }
    }

    async fn connect(&self) -> Channel {
        let endpoint = Endpoint::from_shared(format!("http://{}", self.addr)).expect("a URI");
        endpoint.connect().await.expect("the server listens")
    }

    /// The token of a team's member.
    fn token(&self, team: usize, member: &str) -> String {
        let home = Home::at(self.folder.path().join(".countersign"));
        let several = Some(format!("team-{team}").parse().expect("a name"));
        let member = member.parse().expect("a name");
        let places = [home.token_file(several.as_ref(), &member), home.token_file(None, &member)];
        let text = places.iter().find_map(|place| std::fs::read_to_string(place).ok());
        text.expect("it has a token").trim().to_owned()
    }

    /// What the server has in memory, in KiB.
    fn resident_kib(&self) -> f64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.served.id())).expect("it runs");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("it says so");
        line.trim().trim_end_matches("kB").trim().parse().expect("a number")
    }
}

fn charter(team: usize) -> String {
    let idle: String = (0..IDLE).map(|n| format!("[members.idle-{n}]\n")).collect();
    format!(
        "[team]\nname = \"team-{team}\"\n[members.app]\n[members.sec]\n[members.dana]\nkind = \"human\"\n{idle}\
         [[phases]]\nname = \"implement\"\nconfirm = \"together\"\n\
         deliverables = [{{ name = \"parser\", producer = \"app\" }}]\n\
         reviews = [{{ reviewer = \"sec\", of = \"app\", lens = \"security\" }}]\n"
    )
}

fn bearing<T>(token: &str, message: T) -> Request<T> {
    let mut request = Request::new(message);
    let bearer = format!("Bearer {token}").parse().expect("a token is ASCII");
    request.metadata_mut().insert("authorization", bearer);
    request
}

/// A member who blocks.
async fn listen(channel: &Channel, token: &str) -> Streaming<ListenResponse> {
    let asked = bearing(token, ListenRequest { stays: true, ..ListenRequest::default() });
    let stream = ListenServiceClient::new(channel.clone()).listen(asked).await;
    let mut stream = stream.expect("it may listen").into_inner();
    let armed = stream.message().await.expect("it goes on").and_then(|message| message.said);
    assert!(matches!(armed, Some(Said::Armed(_))), "{armed:?}");
    stream
}

async fn waking(stream: &mut Streaming<ListenResponse>) -> Waking {
    loop {
        let message = stream.message().await.expect("it goes on").and_then(|message| message.said);
        if let Some(Said::Waking(waking)) = message {
            return waking;
        }
    }
}

async fn say(channel: &Channel, token: &str, text: &str, reply: &str) -> String {
    let request = SayRequest { text: text.to_owned(), reply: reply.to_owned(), ..SayRequest::default() };
    let said = RoomServiceClient::new(channel.clone()).say(bearing(token, request)).await;
    said.expect("it is said").into_inner().message
}

/// Wakes of one member, from the post on, in milliseconds.
async fn wakes(place: &Place, count: usize) -> Vec<f64> {
    let (app, sec) = (place.token(0, "app"), place.token(0, "sec"));
    let (posting, hearing) = (place.connect().await, place.connect().await);
    let mut stream = listen(&hearing, &sec).await;
    let mut times = Vec::new();
    for _ in 0..count {
        let began = Instant::now();
        let (message, waking) = tokio::join!(say(&posting, &app, "@sec which one?", ""), waking(&mut stream));
        times.push(millis(began.elapsed()));
        let obligations = waking.obligations.iter().map(|owed| owed.id.clone()).collect();
        let (watched, sequence) = (waking.watched, waking.sequence);
        let taken = AcknowledgeRequest { wake: waking.wake, obligations, watched, sequence };
        let acknowledged = ListenServiceClient::new(hearing.clone()).acknowledge(bearing(&sec, taken)).await;
        acknowledged.expect("it is taken");
        say(&hearing, &sec, "the first one", &message).await;
    }
    times
}

/// Members who block, over so many connections as they need.
struct Crowd<'a> {
    place: &'a Place,
    streams_per_connection: usize,
    connections: Vec<Channel>,
    blocked: Vec<Streaming<ListenResponse>>,
}

impl<'a> Crowd<'a> {
    fn of(place: &'a Place, streams_per_connection: usize) -> Self {
        Self { place, streams_per_connection, connections: Vec::new(), blocked: Vec::new() }
    }

    /// Has so many block; the KB of the server that each further one takes.
    async fn grow(&mut self, up_to: usize) -> f64 {
        let (before, were) = (self.place.resident_kib(), self.blocked.len());
        for n in were..up_to {
            if n >= self.connections.len() * self.streams_per_connection {
                self.connections.push(self.place.connect().await);
            }
            let channel = self.connections.last().expect("there is one");
            let token = self.place.token(n / IDLE, &format!("idle-{}", n % IDLE));
            self.blocked.push(listen(channel, &token).await);
        }
        (self.place.resident_kib() - before) / (up_to - were) as f64
    }
}

fn percentile_99(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() * 99 / 100]
}

fn main() {
    let many = number("--listeners", if quick() { 1_000 } else { 10_000 }) as usize;
    let count = number("--wakes", if quick() { 200 } else { 2_000 }) as usize;
    let rounds = number("--rounds", if quick() { 10 } else { 50 }) as usize;
    let place = Place::of(many.div_ceil(IDLE));
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let mut crowd = Crowd::of(&place, STREAMS_PER_CONNECTION);
        crowd.grow(10).await;
        let mut among_ten = wakes(&place, count).await;
        let each = crowd.grow(many).await;
        let mut among_many = wakes(&place, count).await;
        let (ten, all) = (percentile_99(&mut among_ten), percentile_99(&mut among_many));
        println!(
            "a wake, {count} of them: among ten median {:.2} ms, p99 {ten:.2} ms; among {many} median {:.2} ms, p99 {all:.2} ms",
            median(&mut among_ten),
            median(&mut among_many)
        );
        let ratio = all / ten;
        println!("budget 5: p99 {ratio:.2} times that among ten, at most {AMONG_BUDGET}: {}", at_most(ratio, AMONG_BUDGET));
        println!(
            "budget 5: {each:.1} KB of the server for each of {many} listeners, at most {KIB_BUDGET}: {}",
            at_most(each, KIB_BUDGET)
        );
    });
    // What one server let go of it would take up again: another one tells what a connection costs.
    let alone = Place::of(many.div_ceil(IDLE));
    runtime.block_on(async {
        let mut crowd = Crowd::of(&alone, 1);
        crowd.grow(10).await;
        let each = crowd.grow(many).await;
        println!(
            "budget 5: {each:.1} KB for each of {many} with a connection of its own, at most {KIB_ALONE_BUDGET}: {}",
            at_most(each, KIB_ALONE_BUDGET)
        );
    });
    drop(alone);
    processes(&place, rounds, &runtime);
}

/// Whole processes: one waits, the other posts.
fn processes(place: &Place, rounds: usize, runtime: &tokio::runtime::Runtime) {
    let hcom = option("--hcom").map(|program| Hcom::at(PathBuf::from(program)));
    let (sec, channel) = (place.token(0, "sec"), runtime.block_on(place.connect()));
    let root = place.folder.path();
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        let mut wait = program(root, &["--team", "team-0", "--as", "sec", "listen"]);
        let waiter = wait.stdin(Stdio::null()).stdout(Stdio::null()).spawn().expect("the program starts");
        while !is_listening(root) {}
        let began = Instant::now();
        let mut post =
            program(root, &["--json", "--team", "team-0", "--as", "app", "say", "@sec which one?"]);
        let posted = post.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("the program starts");
        ours.push(ended(waiter, began));
        let said = posted.wait_with_output().expect("it ends").stdout;
        let said: serde_json::Value = serde_json::from_slice(&said).expect("JSON");
        let message = said["message"].as_str().expect("its id").to_owned();
        runtime.block_on(say(&channel, &sec, "the first one", &message));
        if let Some(hcom) = &hcom {
            theirs.push(hcom.round());
        }
    }
    let median_ours = median(&mut ours);
    println!(
        "budget 5: from the post to the end of the waiter's process {median_ours:.1} ms, median of {rounds}, at most {PROCESS_BUDGET}: {}",
        at_most(median_ours, PROCESS_BUDGET)
    );
    if theirs.is_empty() {
        println!("hcom is not compared: pip install hcom==0.7.31, and name its program with --hcom");
    } else {
        let median_theirs = median(&mut theirs);
        let ratio = median_theirs / median_ours;
        println!(
            "budget 5: hcom takes {median_theirs:.1} ms, {ratio:.1} times as long, at least {HCOM_BUDGET}: {}",
            at_least(ratio, HCOM_BUDGET)
        );
    }
}

fn ended(mut waiter: Child, began: Instant) -> f64 {
    let status = waiter.wait().expect("it ends");
    let took = millis(began.elapsed());
    assert!(status.success(), "{status}");
    took
}

fn is_listening(root: &Path) -> bool {
    let mut roster = program(root, &["--json", "--team", "team-0", "--as", "dana", "roster"]);
    let roster = roster.output().expect("the program starts").stdout;
    let roster: serde_json::Value = serde_json::from_slice(&roster).expect("JSON");
    let members = roster["members"].as_array().expect("members");
    members.iter().any(|entry| entry["name"] == "sec" && entry["presence"] == "listening")
}

/// hcom, in a folder of its own.
struct Hcom {
    program: PathBuf,
    folder: tempfile::TempDir,
    name: String,
}

impl Hcom {
    fn at(program: PathBuf) -> Self {
        let mut hcom =
            Self { program, folder: tempfile::tempdir().expect("a temporary folder"), name: String::new() };
        let started = hcom.command(&["start"]).output().expect("hcom starts");
        let said = String::from_utf8_lossy(&started.stdout).into_owned();
        let name = said.split("[hcom:").nth(1).and_then(|rest| rest.split(']').next());
        hcom.name = name.expect("it gives a name").to_owned();
        hcom
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.env("HOME", self.folder.path()).env("HCOM_DIR", self.folder.path().join("hcom"));
        command.current_dir(self.folder.path()).stdin(Stdio::null()).args(args);
        command
    }

    /// One wait and one post.
    fn round(&self) -> f64 {
        let wait = ["listen", "--name", &self.name, "--timeout", "20"];
        let mut waiter = self.command(&wait).stdout(Stdio::piped()).spawn().expect("hcom starts");
        let out = waiter.stdout.take().expect("its output is piped");
        // It says that it listens before it does; what follows is read to its end.
        let mut lines = BufReader::new(out).lines();
        lines.next();
        let began = Instant::now();
        let post = self.command(&["send", &format!("@{}", self.name), "-b", "--", "which one?"]).output();
        assert!(post.expect("hcom starts").status.success());
        let took = ended(waiter, began);
        lines.for_each(drop);
        took
    }
}
