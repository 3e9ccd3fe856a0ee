//! `countersign serve`: the one place that puts store, coordinator, server and home together.

use std::env;
use std::fs::OpenOptions;
use std::io::{self, IsTerminal, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use serde_json::json;
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::EnvFilter;

use super::failure::{Exit, Failure, sentence};
use super::init::{Made, init, is_there};
use super::output::{Answer, inert, visible};
use super::speaker::{Global, find_home};
use crate::client::sockets_allowed;
use crate::coordinator::SystemClock;
use crate::home::Home;
use crate::protocol::charter::STARTER;
use crate::server::{self, Options, PageAddr, Running, StartFault, TlsFiles};
use crate::store::sqlite::SqliteStore;

/// Where a server listens when nothing else is said.
pub const DEFAULT_ADDR: &str = "127.0.0.1:7411";

/// Persons for whom a link is printed at the start; where there are more, each asks for one.
const LINKS_SHOWN_MAX: usize = 4;

/// The charter's name in the current folder.
const CHARTER_NAME: &str = "charter.toml";

/// Serves the home's teams until it is told to end.
#[derive(Args, Debug)]
pub struct Serve {
    /// Where to listen; port 0 takes a free one
    #[arg(long, value_name = "ADDR", default_value = DEFAULT_ADDR)]
    listen: SocketAddr,
    /// The server's certificate as PEM; needed where other machines can reach it
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// The certificate's key as PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// Where the room page is, on this machine alone; port 0 takes a free one [default: the port after --listen's, or
    /// a free one where that is taken]
    #[arg(long, value_name = "ADDR", conflicts_with = "no_page")]
    page: Option<SocketAddr>,
    /// Serve no room page
    #[arg(long)]
    no_page: bool,
}

impl Serve {
    pub(super) async fn run(self, global: &Global) -> Result<Answer, Failure> {
        if let Err(why) = sockets_allowed() {
            return Err(forbidden(self.listen, &why));
        }
        follow_log();
        // Installed before anybody can be told that the server is ready.
        let signals = signal(SignalKind::interrupt())
            .and_then(|interrupt| Ok((interrupt, signal(SignalKind::terminate())?)));
        let (mut interrupt, mut terminate) = signals.map_err(|why| Failure::io("signals", &why))?;
        let (home, made) = home().await?;
        let tls = self.tls_cert.zip(self.tls_key).map(|(certificate, key)| TlsFiles { certificate, key });
        let with_tls = tls.is_some();
        let options = Options {
            home: home.clone(),
            listen: self.listen,
            tls,
            page: (!self.no_page).then(|| self.page.map_or_else(|| near(self.listen), PageAddr::At)),
            clock: Arc::new(SystemClock::after(home.read_alive())),
        };
        let running = match server::start(options).await {
            Ok(running) => running,
            Err(fault) => {
                // Whoever holds the store, or a log that is there, is nothing to be cleared away.
                if !matches!(fault, StartFault::Store(_) | StartFault::Team(_)) {
                    made.unmake();
                }
                return Err(refused(self.listen, fault));
            }
        };

        let addr = running.addr();
        let ready = if global.json {
            let mut json = json!({
                "ok": true,
                "addr": addr.to_string(),
                "pid": std::process::id(),
                "home": home.path().display().to_string(),
            });
            if let Some(page) = running.page() {
                json["page"] = page.to_string().into();
            }
            inert(&json)
        } else {
            let scheme = if with_tls { "https" } else { "http" };
            let serving =
                format!("serving {} at {scheme}://{addr}", visible(&home.path().display().to_string()));
            serving + &entrances(&running)
        };
        tell(&mut io::stdout(), &ready);

        let broken = tokio::select! {
            what = running.broken() => Some(what),
            _ = interrupt.recv() => None,
            _ = terminate.recv() => None,
        };
        running.shutdown().await;
        match broken {
            None => Ok(Answer::verbatim("")),
            Some(what) => Err(Failure::refused(
                "STORE_BROKEN",
                format!("the server has ended, and the last writes may not be stored: {what}"),
                "look at the disk and at what the server printed, then run: countersign serve; whoever waits asks \
                 again with the same --request-id",
            )),
        }
    }
}

/// The port after that one, for the page.
fn near(listen: SocketAddr) -> PageAddr {
    let port = match listen.port() {
        0 => 0,
        port => port.checked_add(1).unwrap_or(0),
    };
    PageAddr::Near(SocketAddr::from((Ipv4Addr::LOCALHOST, port)))
}

/// How persons come into the room page: a link each, where they are few.
fn entrances(running: &Running) -> String {
    let Some(page) = running.page() else { return String::new() };
    let links = running.links(LINKS_SHOWN_MAX);
    let mut out = format!("\nthe room page is at http://{page}/");
    if links.is_empty() {
        out.push_str("; a link that signs in: countersign page --as MEMBER");
    }
    for (team, person, link) in links {
        out.push_str(&format!("\n  {person} of {team} signs in, once, within ten minutes: {link}"));
    }
    out
}

/// The home, made here where there is none: from the charter in the current folder, or from a starter
/// that is written there.
async fn home() -> Result<(Home, Made), Failure> {
    // A home whose making was cut off holds no team, and is made now.
    if let Some(home) = find_home()
        && !SqliteStore::teams_of(home.path())?.is_empty()
    {
        // A home that was put back from a backup has no token of the operator yet.
        return Ok((Home::create(home.path())?, Made::default()));
    }
    let mut made = Made::default();
    let charter = PathBuf::from(CHARTER_NAME);
    if !is_there(&charter) {
        made.0.push(charter.clone());
        let written = OpenOptions::new().write(true).create_new(true).open(&charter);
        written
            .and_then(|mut file| file.write_all(STARTER.as_bytes()))
            .map_err(|why| Failure::io(CHARTER_NAME, &why))?;
        note(&format!(
            "there was no charter here: a starter is in {CHARTER_NAME}, and in force. To change it, edit it; \
             then a person runs: countersign charter adopt {CHARTER_NAME} --reason TEXT"
        ));
    }
    let (home, team, tokens) = match init(&charter, &mut made).await {
        Ok(done) => done,
        Err(failure) => {
            made.unmake();
            return Err(failure);
        }
    };
    note(&format!(
        "{team} is in {}, with a token for each of its {} members",
        home.path().display(),
        tokens.len()
    ));
    Ok((home, made))
}

/// The server's own log on standard error, as `COUNTERSIGN_LOG` filters it.
fn follow_log() {
    let filter = env::var("COUNTERSIGN_LOG").ok().filter(|filter| !filter.is_empty());
    let filter =
        EnvFilter::try_new(filter.as_deref().unwrap_or("warn,countersign=info")).unwrap_or_else(|wrong| {
            note(&format!("COUNTERSIGN_LOG is not a log filter, such as countersign=debug: {wrong}"));
            EnvFilter::new("warn,countersign=info")
        });
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(|| Unfailing(io::stderr()))
        .with_ansi(io::stderr().is_terminal());
    // In one process only the first server's log is set up; a second one writes to the same.
    let _ = log.try_init();
}

/// Standard error that takes everything: a log on a full disk, or one that nobody reads any longer, must
/// not end what writes to it.
struct Unfailing(io::Stderr);

impl Write for Unfailing {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        // What can't be written is lost; the log that counts is in the store.
        let _ = self.0.write_all(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let _ = self.0.flush();
        Ok(())
    }
}

fn note(text: &str) {
    tell(&mut io::stderr(), text);
}

/// A server goes on where nobody reads what it says.
fn tell(out: &mut dyn Write, text: &str) {
    let _ = writeln!(out, "{text}").and_then(|()| out.flush());
}

fn forbidden(listen: SocketAddr, why: &io::Error) -> Failure {
    Failure::new(
        Exit::Unreachable,
        "SOCKETS_FORBIDDEN",
        format!("this sandbox forbids sockets, so no server can listen on {listen}: {why}"),
        "let this process use the network, or run the server outside the sandbox",
    )
}

fn refused(listen: SocketAddr, fault: StartFault) -> Failure {
    let fault = match fault {
        StartFault::Store(store) => return store.into(),
        StartFault::Team(team) => return team.into(),
        other => other,
    };
    let (message, remedy) = (sentence(&fault), fault.remedy());
    let code = match &fault {
        StartFault::Store(_) | StartFault::Team(_) => "STORE_UNUSABLE",
        StartFault::NotLoopback { .. } | StartFault::PageNotLoopback { .. } => "NOT_LOOPBACK",
        // An address below 1024 is denied too, and is no sandbox's doing.
        StartFault::Listen { source, .. }
            if source.kind() == io::ErrorKind::PermissionDenied
                && (listen.port() == 0 || listen.port() >= 1024) =>
        {
            return forbidden(listen, source);
        }
        StartFault::Listen { .. } => "CANNOT_LISTEN",
        StartFault::TlsFile { .. } | StartFault::Tls { .. } => "TLS_UNUSABLE",
        StartFault::Home(_) => "HOME_UNUSABLE",
    };
    Failure::refused(code, message, remedy)
}
