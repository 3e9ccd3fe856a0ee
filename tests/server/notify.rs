//! Persons are told: by a real webhook that hangs, fails, redirects and recovers, and by a command.

use countersign::protocol::time::Span;
use countersign::wire::proto;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::mpsc;

use super::site::{Site, charter};

/// What the receiving end answers next.
enum Answer {
    Status(&'static str),
    /// The connection is held, and nothing said, until the other end gives up.
    Hang,
}

/// A receiving end on loopback that answers as it is told, and shows what it got.
struct Receiver {
    address: String,
    answers: mpsc::UnboundedSender<Answer>,
    got: mpsc::UnboundedReceiver<String>,
}

impl Receiver {
    async fn listen() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}/hook", listener.local_addr().unwrap());
        let (answers, mut next) = mpsc::unbounded_channel();
        let (tell, got) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let Some(answer) = next.recv().await else { return };
                let mut request = Vec::new();
                let mut piece = [0; 4096];
                while !whole(&request) {
                    match stream.read(&mut piece).await {
                        Ok(0) | Err(_) => break,
                        Ok(read) => request.extend_from_slice(&piece[..read]),
                    }
                }
                drop(tell.send(String::from_utf8(request).unwrap()));
                match answer {
                    Answer::Status(line) => {
                        let head =
                            format!("HTTP/1.1 {line}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
                        drop(stream.write_all(head.as_bytes()).await);
                    }
                    Answer::Hang => drop(tokio::spawn(async move { stream.read(&mut [0; 1]).await })),
                }
            }
        });
        Self { address, answers, got }
    }

    fn will(&self, answer: Answer) {
        assert!(self.answers.send(answer).is_ok());
    }

    async fn got(&mut self) -> String {
        self.got.recv().await.unwrap()
    }
}

fn whole(request: &[u8]) -> bool {
    let text = String::from_utf8_lossy(request);
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let length =
        head.lines().find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
    body.len() >= length.unwrap_or(0)
}

fn header<'a>(request: &'a str, name: &str) -> &'a str {
    let lines = request.lines().filter_map(|line| line.split_once(": "));
    lines.clone().find(|(key, _)| key.eq_ignore_ascii_case(name)).map_or("", |(_, value)| value)
}

fn with_channel(channel: &str) -> String {
    charter("atlas").replace("kind = \"human\"", "kind = \"human\"\nnotify = [\"ops\"]")
        + &format!("\n[channels.ops]\n{channel}\n")
}

async fn escalate(site: &Site, subject: &str) {
    let request = proto::EscalateRequest {
        subject: subject.to_owned(),
        text: "who decides?".to_owned(),
        ..Default::default()
    };
    site.member("app").escalation.escalate(request).await.unwrap();
}

/// What became of the only escalation, once it is as wanted.
async fn delivery(site: &Site, wanted: impl Fn(&proto::Delivery) -> bool) -> proto::Delivery {
    loop {
        let status = site.member("app").status().await;
        let found = status.escalations.iter().flat_map(|known| &known.deliveries).find(|known| wanted(known));
        if let Some(found) = found {
            return found.clone();
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_webhook_is_tried_until_it_takes_the_news_and_holds_up_nobody() {
    let mut receiver = Receiver::listen().await;
    let mut site = Site::unserved();
    std::fs::write(site.folder.path().join("ops.secret"), "s3cret\n").unwrap();
    let channel =
        format!("webhook = \"{}\"\nsecret_file = \"ops.secret\"\nallow_private = true", receiver.address);
    site.add_team(&with_channel(&channel)).await;
    site.start().await;

    receiver.will(Answer::Hang);
    escalate(&site, "parser").await;
    let first = receiver.got().await;
    // It hangs; the team goes on.
    site.member("app").offer("one\n", 0, &[]).await;
    assert!(site.member("app").status().await.escalations[0].deliveries.is_empty());
    let hung = delivery(&site, |known| known.failures == 1).await;
    assert!(hung.why.contains("did not answer within"), "{}", hung.why);

    for (line, failures, why) in [
        ("500 Internal Server Error", 2, "answered 500"),
        ("302 Found\r\nlocation: http://127.0.0.1:1/", 3, "redirects are not followed"),
    ] {
        receiver.will(Answer::Status(line));
        site.clock.advance(Span::seconds(60));
        receiver.got().await;
        let failed = delivery(&site, |known| known.failures == failures).await;
        assert!(failed.why.contains(why) && failed.sent_at.is_none(), "{}", failed.why);
    }

    receiver.will(Answer::Status("200 OK"));
    site.clock.advance(Span::seconds(60));
    let taken = receiver.got().await;
    let sent = delivery(&site, |known| known.sent_at.is_some()).await;
    assert_eq!((sent.failures, sent.level), (0, 0));
    assert_eq!(header(&first, "countersign-delivery"), "atlas/e1/0/ops");
    assert_eq!(header(&taken, "countersign-delivery"), "atlas/e1/0/ops", "the same for every attempt");
    let body = taken.split_once("\r\n\r\n").unwrap().1;
    let json: serde_json::Value = serde_json::from_str(body).unwrap();
    assert!(json["text"].as_str().unwrap().contains("atlas: e1 asked of parser\nwho decides?\n"), "{json}");
    assert_eq!(json["metadata"]["event_payload"]["escalation"], "e1");
    let signed = header(&taken, "countersign-signature");
    let seconds = signed.strip_prefix("t=").unwrap().split(',').next().unwrap();
    assert_eq!(signed, format!("t={seconds},v1={}", hmac(b"s3cret", &format!("{seconds}.{body}"))));
    assert!(!taken.contains("s3cret"));

    // A restart tells nobody again; the reminder does, once.
    site.restart().await;
    for _ in 0..3 {
        receiver.will(Answer::Status("200 OK"));
    }
    site.clock.advance(Span::seconds(20 * 60));
    let mut told = Vec::new();
    for _ in 0..3 {
        told.push(header(&receiver.got().await, "countersign-delivery").to_owned());
    }
    told.sort();
    assert_eq!(told, ["atlas/e1/1/ops", "atlas/e2/0/ops", "atlas/e3/0/ops"], "two reviews are overdue");
    delivery(&site, |known| known.level == 1).await;
    site.stop().await;
    assert!(receiver.got.try_recv().is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_private_address_is_reached_only_where_the_charter_allows_it() {
    let receiver = Receiver::listen().await;
    let port = receiver.address.rsplit(':').next().unwrap().to_owned();
    for host in ["127.0.0.1", "localhost", "[::1]"] {
        let mut site = Site::unserved();
        site.add_team(&with_channel(&format!("webhook = \"http://{host}:{port}\""))).await;
        site.start().await;
        escalate(&site, "parser").await;
        let refused = delivery(&site, |known| known.failures == 1).await;
        assert!(refused.why.contains("is a private address"), "{host}: {}", refused.why);
        site.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_is_told_beside_the_charter() {
    let mut site = Site::unserved();
    site.add_team(&with_channel("command = \"cat > told\"")).await;
    site.start().await;
    escalate(&site, "parser").await;
    delivery(&site, |known| known.sent_at.is_some()).await;
    let told = std::fs::read_to_string(site.folder.path().join("told")).unwrap();
    assert!(told.starts_with("atlas: e1 asked of parser\nwho decides?\n"), "{told}");
    site.stop().await;
}

/// Computed apart, by openssl.
fn hmac(key: &[u8], text: &str) -> String {
    use std::io::Write as _;
    let key = String::from_utf8(key.to_vec()).unwrap();
    let mut child = std::process::Command::new("openssl")
        .args(["dgst", "-sha256", "-hmac", &key])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    String::from_utf8(output.stdout).unwrap().split_whitespace().last().unwrap().to_owned()
}
