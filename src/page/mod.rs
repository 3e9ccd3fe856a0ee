//! The room page: what a browser gets. On a listener of its own it serves a few files that are part of the program,
//! and below `/api` the same calls as gRPC takes, as JSON, each carried out by the same services in this process.
//!
//! ```text
//!   request ──► guard: Host, Origin, Sec-Fetch-Site ──► assets: the shell, which holds nothing of a team
//!                         │
//!                         └─► token ──► api: JSON → message ──► the services ──► message → JSON
//!                                  └──► stream: events, as they are stored, from a sequence on
//! ```
//!
//! It decides nothing. Whoever has no token gets nothing of a team; what a member may do is the services' to say.

mod api;
mod assets;
mod calls;
mod guard;
pub mod link;
mod room;
mod serve;
mod stream;
mod timeline;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::middleware;
use axum::routing::{get, post};
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinHandle;
use tonic::service::Routes;

use crate::coordinator::Coordinator;
use crate::coordinator::place::Places;
use link::Links;

/// Streams that are open at the same time, and those of one member.
const STREAMS_MAX: usize = 128;
const STREAMS_OF_MEMBER_MAX: usize = 16;

/// Requests that are answered at the same time; further ones wait.
const REQUESTS_MAX: usize = 64;

/// What every route works with.
struct Shared {
    coordinator: Coordinator,
    /// The server's services, called in this process.
    services: Routes,
    links: Arc<Links>,
    /// `127.0.0.1:7412`: the only host that a request may name.
    host: String,
    streams: Arc<Places>,
    requests: Semaphore,
    /// Says that the page ends; streams end with it.
    ending: watch::Receiver<bool>,
}

/// The page's listener, before it serves.
pub struct Bound {
    listener: TcpListener,
    links: Arc<Links>,
}

/// A page that is served.
pub struct Page {
    links: Arc<Links>,
    end: watch::Sender<bool>,
    served: JoinHandle<()>,
}

/// Listens there; port 0 takes a free one.
pub async fn bind(listen: SocketAddr) -> io::Result<Bound> {
    let listener = TcpListener::bind(listen).await?;
    let links = Arc::new(Links::to(listener.local_addr()?));
    Ok(Bound { listener, links })
}

impl Bound {
    /// The links that sign in.
    pub fn links(&self) -> Arc<Links> {
        self.links.clone()
    }

    /// Serves the page.
    pub fn serve(self, coordinator: Coordinator, services: Routes) -> Page {
        let Self { listener, links } = self;
        let (end, ending) = watch::channel(false);
        let shared = Arc::new(Shared {
            coordinator,
            services,
            links: links.clone(),
            host: links.addr().to_string(),
            streams: Places::new(STREAMS_MAX, STREAMS_OF_MEMBER_MAX),
            requests: Semaphore::new(REQUESTS_MAX),
            ending: ending.clone(),
        });
        Page { links, end, served: tokio::spawn(serve::serve(listener, router(shared), ending)) }
    }
}

impl Page {
    /// Where it is.
    pub fn addr(&self) -> SocketAddr {
        self.links.addr()
    }

    /// The links that sign in.
    pub fn links(&self) -> &Links {
        &self.links
    }

    /// Takes no more requests, and ends every stream.
    pub async fn shutdown(self, within: std::time::Duration) {
        let Self { end, mut served, .. } = self;
        end.send_replace(true);
        // A browser that keeps its connection open must not keep the server.
        if tokio::time::timeout(within, &mut served).await.is_err() {
            served.abort();
        }
    }
}

fn router(shared: Arc<Shared>) -> Router {
    let api = Router::new()
        .route("/sign-in", post(api::sign_in))
        .route("/sign-out", post(api::sign_out))
        .route("/status", get(api::status))
        .route("/proposals/{name}", get(api::proposal))
        .route("/proposals/{name}/explain", get(api::explain))
        .route("/proposals/{name}/timeline", get(api::timeline))
        .route("/escalations", get(api::escalations))
        .route("/charter", get(api::charter))
        .route("/rules", get(api::rules))
        .route("/roster", get(room::roster))
        .route("/transcript", get(room::transcript))
        .route("/mentions", post(room::mentions))
        .route("/minutes/{name}", get(room::minutes))
        .route("/stream", get(stream::stream))
        .route("/do/{verb}", post(api::act))
        .fallback(api::unknown);
    let guarded = middleware::from_fn_with_state(shared.clone(), guard::guard);
    let router = Router::new().nest("/api", api).fallback(assets::asset).layer(guarded);
    router.with_state(shared)
}
