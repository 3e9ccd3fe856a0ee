//! From start to end: where it listens, who holds the home, TLS, health, reflection.

use std::time::{Duration, Instant};

use countersign::home::Home;
use countersign::server::{self, StartFault, TlsFiles};
use countersign::store::Fault;
use countersign::wire::proto;
use tonic::transport::{Certificate, Channel, ClientTlsConfig};
use tonic::{Code, Request};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;
use tonic_types::StatusExt;

use crate::site::{Member, Site, refused, request_id};

#[tokio::test]
async fn a_running_server_says_where_it_is_and_a_second_one_is_told() {
    let mut site = Site::bundles().await;
    let addr = site.running.as_ref().unwrap().addr();
    let said = site.home.read_server().unwrap();
    assert_eq!((said.addr, said.pid), (addr, std::process::id()));
    assert_eq!(said.started_at, "2027-01-15T08:00:00Z");

    let Err(second) = server::start(site.options()).await else { panic!("two servers") };
    assert_eq!(second.to_string(), format!("the folder is held by process {} at {addr}", std::process::id()));
    assert!(matches!(second, StartFault::Store(Fault::Held { .. })));
    assert_eq!(site.home.read_server(), Some(said), "it left the first one's file alone");

    site.stop().await;
    assert_eq!(site.home.read_server(), None);
    site.start().await;
    site.member("app").status().await;
}

#[tokio::test]
async fn a_server_that_cannot_start_says_why() {
    let site = Site::bundles().await;
    let other = Site::unserved();
    let taken = server::Options { listen: site.running.as_ref().unwrap().addr(), ..other.options() };
    let fault = server::start(taken).await.err().unwrap();
    assert!(matches!(fault, StartFault::Listen { .. }) && fault.remedy().contains("port"), "{fault}");
    assert_eq!(other.home.read_server(), None);
    // It let go of the home.
    server::start(other.options()).await.unwrap().shutdown().await;

    for listen in ["0.0.0.0:0", "[::]:0", "192.0.2.1:4170"] {
        let open = server::Options { listen: listen.parse().unwrap(), ..other.options() };
        let fault = server::start(open).await.err().unwrap();
        assert!(matches!(fault, StartFault::NotLoopback { .. }), "{fault}");
        assert!(fault.remedy().contains("--tls-cert"), "{}", fault.remedy());
    }
    let nowhere = Home::at(other.folder.path().join("nowhere"));
    let missing =
        server::start(server::Options { home: nowhere.clone(), ..other.options() }).await.err().unwrap();
    assert!(missing.remedy().contains("countersign init"), "{missing}");
    assert!(!nowhere.path().exists());

    let tls = TlsFiles { certificate: "/nonexistent/cert.pem".into(), key: "/nonexistent/key.pem".into() };
    let fault = server::start(server::Options { tls: Some(tls), ..other.options() }).await.err().unwrap();
    assert!(matches!(fault, StartFault::TlsFile { .. }), "{fault}");
}

#[tokio::test]
async fn tls_needs_the_certificate_it_was_given() {
    let mut site = Site::bundles().await;
    site.stop().await;
    let certified = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let (certificate, key) = (site.folder.path().join("cert.pem"), site.folder.path().join("key.pem"));
    std::fs::write(&certificate, certified.cert.pem()).unwrap();
    std::fs::write(&key, certified.signing_key.serialize_pem()).unwrap();
    let tls = TlsFiles { certificate, key };
    // With a certificate it may listen for everybody.
    let listen = "0.0.0.0:0".parse().unwrap();
    let options = server::Options { tls: Some(tls.clone()), listen, ..site.options() };
    site.running = Some(server::start(options).await.unwrap());
    let port = site.running.as_ref().unwrap().addr().port();

    let trust = ClientTlsConfig::new()
        .ca_certificate(Certificate::from_pem(certified.cert.pem()))
        .domain_name("localhost");
    let endpoint = |scheme: &str| Channel::from_shared(format!("{scheme}://127.0.0.1:{port}")).unwrap();
    let channel = endpoint("https").tls_config(trust).unwrap().connect().await.unwrap();
    assert_eq!(Member::new(channel, &site.tokens["app"]).status().await.member, "app");
    // In the clear nothing is answered, and with another root nothing is trusted.
    let plain = Member::new(endpoint("http").connect_lazy(), &site.tokens["app"]);
    assert!(plain.clone().review.get_status(proto::GetStatusRequest::default()).await.is_err());
    let other = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let distrust = ClientTlsConfig::new()
        .ca_certificate(Certificate::from_pem(other.cert.pem()))
        .domain_name("localhost");
    assert!(endpoint("https").tls_config(distrust).unwrap().connect().await.is_err());

    std::fs::write(&tls.key, "no key").unwrap();
    site.stop().await;
    let fault = server::start(server::Options { tls: Some(tls), ..site.options() }).await.err().unwrap();
    assert!(matches!(fault, StartFault::Tls { .. }), "{fault}");
}

#[tokio::test]
async fn health_serves_until_the_end_and_open_streams_do_not_keep_it() {
    let mut site = Site::bundles().await;
    let mut health = HealthClient::new(site.channel());
    for service in ["", "countersign.v1.ReviewService", "countersign.v1.AdminService"] {
        let asked = HealthCheckRequest { service: service.to_owned() };
        let answer = health.check(asked).await.unwrap().into_inner();
        assert_eq!(answer.status(), ServingStatus::Serving, "{service}");
    }
    let asked = HealthCheckRequest { service: String::new() };
    let mut watch = health.watch(asked).await.unwrap().into_inner();
    assert_eq!(watch.message().await.unwrap().unwrap().status(), ServingStatus::Serving);
    let begun = Instant::now();
    let (ended, last) = tokio::join!(site.stop(), watch.message());
    assert_eq!((ended, last.unwrap().unwrap().status()), ((), ServingStatus::NotServing));
    assert!(begun.elapsed() < Duration::from_secs(30));
}

#[tokio::test]
async fn reflection_lists_every_service_in_both_versions() {
    let site = Site::bundles().await;
    let expected = ["AdminService", "ArtifactService", "EscalationService", "LogService", "ReviewService"];
    macro_rules! listed {
        ($version:ident) => {{
            use tonic_reflection::pb::$version::ServerReflectionRequest;
            use tonic_reflection::pb::$version::server_reflection_client::ServerReflectionClient;
            use tonic_reflection::pb::$version::server_reflection_request::MessageRequest;
            use tonic_reflection::pb::$version::server_reflection_response::MessageResponse;
            let message_request = Some(MessageRequest::ListServices(String::new()));
            let asked = ServerReflectionRequest { host: String::new(), message_request };
            let mut client = ServerReflectionClient::new(site.channel());
            let answers = client.server_reflection_info(tokio_stream::iter([asked])).await.unwrap();
            let answer = answers.into_inner().message().await.unwrap().unwrap().message_response.unwrap();
            let MessageResponse::ListServicesResponse(listed) = answer else { panic!("{answer:?}") };
            listed.service.into_iter().map(|service| service.name).collect::<Vec<_>>()
        }};
    }
    for listed in [listed!(v1), listed!(v1alpha)] {
        for service in expected {
            assert!(listed.contains(&format!("countersign.v1.{service}")), "{listed:?}");
        }
        assert!(listed.contains(&"grpc.health.v1.Health".to_owned()), "{listed:?}");
    }
}

#[tokio::test]
async fn a_caller_who_stops_waiting_leaves_nothing_half_done() {
    let site = Site::bundles().await;
    let mut app = site.member("app");
    let offer = proto::ProposeRequest { request_id: request_id(3), ..app.offering("one\n", 0, &[]).await };
    let mut hasty = Request::new(offer.clone());
    hasty.set_timeout(Duration::from_nanos(1));
    assert_eq!(app.review.propose(hasty).await.unwrap_err().code(), Code::Cancelled);
    // The same request id settles it: one version, whether the first was carried out or not.
    let settled = app.review.propose(offer).await.unwrap().into_inner();
    assert_eq!((settled.version, app.status().await.proposals[0].version), (1, 1));

    // Waiting for what never comes ends with the caller's time.
    let mut waiting = Request::new(proto::GetStatusRequest { at_least: 1_000 });
    waiting.set_timeout(Duration::from_millis(20));
    assert_eq!(app.review.get_status(waiting).await.unwrap_err().code(), Code::Cancelled);
}

#[tokio::test]
async fn a_log_that_was_changed_by_hand_is_told_by_its_place() {
    let mut site = Site::bundles().await;
    let mut app = site.member("app");
    app.offer("one\n", 0, &[]).await;
    let database = rusqlite::Connection::open(site.home.path().join("countersign.db")).unwrap();
    let edit = "UPDATE log SET body = replace(body, 'Streaming', 'Screaming') WHERE seq = 3";
    assert_eq!(database.execute(edit, []).unwrap(), 1);
    drop(database);

    let status = app.log.verify_log(proto::VerifyLogRequest {}).await.unwrap_err();
    assert_eq!(status.code(), Code::DataLoss);
    assert_eq!(status.get_error_details().error_info().unwrap().metadata["sequence"], "3");
    assert_eq!(refused(Err::<(), _>(status)).0, "LOG_DAMAGED");
    let list = proto::ListEventsRequest::default();
    assert_eq!(app.log.list_events(list).await.unwrap_err().code(), Code::DataLoss);

    site.stop().await;
    let fault = server::start(site.options()).await.err().unwrap();
    assert!(fault.to_string().contains("atlas's log is damaged at 3"), "{fault}");
    assert!(fault.remedy().contains("backup"), "{}", fault.remedy());
    assert_eq!(site.home.read_server(), None);
}
