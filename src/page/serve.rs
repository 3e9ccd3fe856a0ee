//! The page's connections.

use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::stream::ended;

/// How long a request's head may take to arrive, and a connection may wait for one.
const HEAD_TIME_MAX: Duration = Duration::from_secs(5);

/// How long nothing is accepted once that failed: there may be no file handles for a while.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Serves every connection until the page ends, and those that are there to their end.
pub(super) async fn serve(listener: TcpListener, router: Router, mut ending: watch::Receiver<bool>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            () = ended(&mut ending) => break,
            Some(_) = connections.join_next() => {}
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    connections.spawn(connection(stream, router.clone(), ending.clone()));
                }
                Err(fault) => {
                    tracing::warn!(%fault, "the page could accept no connection");
                    let _ = tokio::time::timeout(ACCEPT_PAUSE, ended(&mut ending)).await;
                }
            },
        }
    }
    drop(listener);
    while connections.join_next().await.is_some() {}
}

async fn connection(stream: TcpStream, router: Router, mut ending: watch::Receiver<bool>) {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEAD_TIME_MAX);
    let served = http.serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    let mut served = std::pin::pin!(served);
    // A browser that goes away is no fault, and neither is one that is late.
    tokio::select! {
        _ = served.as_mut() => return,
        () = ended(&mut ending) => served.as_mut().graceful_shutdown(),
    }
    let _ = served.await;
}
