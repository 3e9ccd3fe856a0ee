//! A unary call over gRPC that gives back the 200 bytes that it got, and stores nothing.

use std::convert::Infallible;
use std::task::{Context, Poll};

use tonic::body::Body;
use tonic::codegen::{BoxFuture, Service, http};
use tonic::server::{Grpc, NamedService, UnaryService};
use tonic::transport::{Channel, Server};
use tonic::{Request, Response, Status};
use tonic_prost::ProstCodec;

use super::{CONNECTIONS, connect};

/// What is said, and said back.
#[derive(Clone, PartialEq, prost::Message)]
struct Said {
    #[prost(string, tag = "1")]
    text: String,
}

pub struct Echo {
    pub addr: std::net::SocketAddr,
    channels: Vec<Channel>,
}

pub struct Speaker(tonic::client::Grpc<Channel>);

pub async fn start() -> Echo {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let addr = listener.local_addr().expect("it is bound");
    let incoming = tonic::transport::server::TcpIncoming::from(listener).with_nodelay(Some(true));
    tokio::spawn(Server::builder().add_service(EchoServer).serve_with_incoming(incoming));
    Echo { addr, channels: connect(addr).await }
}

impl Echo {
    pub fn call(&self, client: usize) -> Speaker {
        Speaker(tonic::client::Grpc::new(self.channels[client % CONNECTIONS].clone()))
    }
}

impl Speaker {
    /// One that has a connection already.
    pub fn on(channel: Channel) -> Self {
        Self(tonic::client::Grpc::new(channel))
    }

    /// Says 200 bytes, and hears them.
    pub async fn say(&mut self) {
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
