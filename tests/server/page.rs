//! The room page as plain HTTP: who gets in, and who gets nothing.

use countersign::server::{self, Options, PageAddr};
use countersign::wire::proto;
use countersign::wire::proto::page_service_client::PageServiceClient;
use countersign::wire::proto::room_service_client::RoomServiceClient;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::site::{Bearer, Site, charter, refused};

struct Paged {
    site: Site,
}

impl Paged {
    async fn start() -> Self {
        let mut site = Site::unserved();
        site.add_team(&charter("atlas")).await;
        let page = Some(PageAddr::At("127.0.0.1:0".parse().unwrap()));
        site.running = Some(server::start(Options { page, ..site.options() }).await.unwrap());
        Self { site }
    }

    fn host(&self) -> String {
        self.site.running.as_ref().unwrap().page().unwrap().to_string()
    }

    /// One request with exactly these headers; the status, and all that came back.
    async fn ask(&self, first: &str, headers: &[(&str, &str)], body: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(self.host()).await.unwrap();
        let mut request =
            format!("{first} HTTP/1.1\r\nConnection: close\r\nContent-Length: {}\r\n", body.len());
        for (name, value) in headers {
            request.push_str(&format!("{name}: {value}\r\n"));
        }
        stream.write_all(format!("{request}\r\n{body}").as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        (answer[9..12].parse().unwrap(), answer)
    }

    /// The same as the page itself asks, with that token.
    async fn own(&self, first: &str, token: &str, body: &str) -> (u16, String) {
        let (host, bearer) = (self.host(), format!("Bearer {token}"));
        let origin = format!("http://{host}");
        let mut headers = vec![("Host", host.as_str()), ("Sec-Fetch-Site", "same-origin")];
        if first.starts_with("POST") {
            headers.push(("Origin", &origin));
        }
        if !token.is_empty() {
            headers.push(("Authorization", &bearer));
        }
        self.ask(first, &headers, body).await
    }

    async fn secret(&self, member: &str) -> String {
        let bearer = Bearer::of(self.site.tokens[member].expose());
        let mut client = PageServiceClient::with_interceptor(self.site.channel(), bearer);
        let link = client.open_page(proto::OpenPageRequest {}).await.unwrap().into_inner().link;
        let (page, secret) = link.split_once("/#in=").unwrap();
        assert_eq!(page, format!("http://{}", self.host()));
        secret.to_owned()
    }

    async fn sign_in(&self, member: &str) -> String {
        let (status, answer) = self.enter(&self.secret(member).await).await;
        assert_eq!(status, 200, "{answer}");
        answer["token"].as_str().unwrap().to_owned()
    }

    /// What a link's secret gives.
    async fn enter(&self, secret: &str) -> (u16, Value) {
        let body = format!("{{\"link\":\"{secret}\"}}");
        let (status, answer) = self.own("POST /api/sign-in", "", &body).await;
        (status, parsed(&answer))
    }

    /// A connection on which a request begins, and doesn't end.
    async fn begin(&self, request: &str) -> TcpStream {
        let host = self.host();
        let mut stream = TcpStream::connect(&host).await.unwrap();
        stream.write_all(request.replace("HOST", &host).as_bytes()).await.unwrap();
        stream
    }

    /// The stream after that sequence.
    async fn stream(&self, token: &str, after: u64) -> TcpStream {
        let request = format!(
            "GET /api/stream?after={after} HTTP/1.1\r\nHost: HOST\r\nSec-Fetch-Site: same-origin\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n\r\n"
        );
        self.begin(&request).await
    }

    async fn escalate(&self, subject: &str) {
        let asked =
            proto::EscalateRequest { subject: subject.into(), text: "why?".into(), ..Default::default() };
        self.site.member("app").escalation.escalate(asked).await.unwrap();
    }
}

fn parsed(answer: &str) -> Value {
    serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap()
}

const READS: [&str; 11] = [
    "/api/status",
    "/api/proposals/parser",
    "/api/proposals/parser/explain",
    "/api/proposals/parser/timeline",
    "/api/escalations",
    "/api/charter",
    "/api/rules",
    "/api/roster",
    "/api/transcript",
    "/api/minutes/implement",
    "/api/stream?after=0",
];

const WRITES: [&str; 5] =
    ["/api/do/escalate", "/api/do/answer", "/api/do/say", "/api/mentions", "/api/sign-out"];

#[tokio::test]
async fn without_a_token_nothing_of_a_team_is_reached() {
    let paged = Paged::start().await;
    let operator = paged.site.home.operator_token().unwrap();
    let strange = countersign::coordinator::token::Token::generate().unwrap();
    for token in ["", "csgn_none", operator.expose(), strange.expose()] {
        for read in READS {
            let (status, answer) = paged.own(&format!("GET {read}"), token, "").await;
            assert!(status == 401 && !answer.contains("atlas"), "{read}: {answer}");
        }
        for write in WRITES {
            let (status, answer) = paged.own(&format!("POST {write}"), token, "{}").await;
            assert!(status == 401 && !answer.contains("atlas"), "{write}: {answer}");
        }
    }
    // The shell is the program's, and holds nothing of a team.
    let (status, shell) = paged.own("GET /", "", "").await;
    assert_eq!(status, 200);
    assert!(shell.contains("<!doctype html>") && !shell.contains("atlas"), "{shell}");
}

#[tokio::test]
async fn whoever_is_not_the_page_itself_is_refused_on_every_route_also_with_a_token() {
    let paged = Paged::start().await;
    let token = paged.sign_in("dana").await;
    let bearer = format!("Bearer {token}");
    let host = paged.host();
    let port = host.split(':').nth(1).unwrap();
    let (origin, rebound) = (format!("http://{host}"), format!("rebound.example:{port}"));
    let local = format!("localhost:{port}");
    let of_page = [("Host", host.as_str()), ("Sec-Fetch-Site", "same-origin")];
    let foreign: [&[(&str, &str)]; 8] = [
        &[("Host", &rebound), ("Sec-Fetch-Site", "same-origin")],
        &[("Host", &local), ("Sec-Fetch-Site", "same-origin")],
        &[("Host", &host), ("Sec-Fetch-Site", "same-site")],
        &[("Host", &host), ("Sec-Fetch-Site", "cross-site")],
        &[("Host", &host), ("Sec-Fetch-Site", "same-origin"), ("Origin", "http://127.0.0.1:1")],
        &[("Host", &host), ("Sec-Fetch-Site", "same-origin"), ("Origin", "null")],
        &[("Host", &host), ("Sec-Fetch-Site", "same-origin"), ("Origin", &origin), ("Origin", "null")],
        &[("Host", &host), ("Host", &rebound), ("Sec-Fetch-Site", "same-origin")],
    ];
    for headers in foreign {
        let mut headers = headers.to_vec();
        headers.push(("Authorization", &bearer));
        let reads = READS.iter().chain(&["/", "/app.js", "/nothing", "/api/nothing"]);
        let asked = reads.map(|read| format!("GET {read}"));
        for first in asked.chain(WRITES.iter().map(|write| format!("POST {write}"))) {
            let (status, answer) = paged.ask(&first, &headers, "").await;
            // Two hosts are no HTTP at all.
            assert!(matches!(status, 403 | 400), "{first} {headers:?}: {answer}");
            assert!(
                !answer.contains("atlas") && !answer.contains("doctype"),
                "{first} {headers:?}: {answer}"
            );
        }
    }
    // Without Sec-Fetch-Site, a browser that is too old; without an origin, no browser writes.
    let (status, _) = paged.ask("GET /api/status", &[of_page[0], ("Authorization", &bearer)], "").await;
    assert_eq!(status, 403);
    let written = [of_page[0], of_page[1], ("Authorization", &bearer)];
    assert_eq!(paged.ask("POST /api/sign-out", &written, "{}").await.0, 403);
    // With all of it, it is answered.
    assert_eq!(paged.own("GET /api/status", &token, "").await.0, 200);
}

#[tokio::test]
async fn every_answer_forbids_what_a_page_could_be_made_to_do() {
    let paged = Paged::start().await;
    for first in ["GET /", "GET /app.js", "GET /nothing", "GET /api/status", "POST /api/sign-in", "PUT /"] {
        for (_, answer) in [paged.own(first, "", "{}").await, paged.ask(first, &[("Host", "x")], "").await] {
            let answer = answer.to_lowercase();
            for said in [
                "content-security-policy: default-src 'none'; script-src 'self'; ",
                "frame-ancestors 'none'",
                "x-content-type-options: nosniff",
                "referrer-policy: no-referrer",
                "cross-origin-resource-policy: same-origin",
                "cache-control: no-",
            ] {
                assert!(answer.contains(said), "{first}: {said} is not in {answer}");
            }
            assert!(
                !answer.contains("unsafe-inline") && !answer.contains("access-control-allow"),
                "{answer}"
            );
        }
    }
}

#[tokio::test]
async fn a_link_signs_in_once_and_what_it_gives_ends_by_signing_out() {
    let paged = Paged::start().await;
    let secret = paged.secret("dana").await;
    // It is no token, and a token is no link.
    assert_eq!(paged.own("GET /api/status", &secret, "").await.0, 401);
    let own = paged.site.tokens["dana"].expose().to_owned();
    let body = format!("{{\"link\":\"{own}\"}}");
    assert_eq!(paged.own("POST /api/sign-in", "", &body).await.0, 401);
    let body = format!("{{\"link\":\"{secret}\"}}");
    let (status, answer) = paged.own("POST /api/sign-in", "", &body).await;
    assert_eq!((status, &parsed(&answer)["member"]), (200, &Value::from("dana")));
    let token = parsed(&answer)["token"].as_str().unwrap().to_owned();
    let (status, again) = paged.own("POST /api/sign-in", "", &body).await;
    assert_eq!((status, &parsed(&again)["code"]), (401, &Value::from("LINK_USED")));
    assert_eq!(paged.own("GET /api/status", &token, "").await.0, 200);
    assert_eq!(paged.own("POST /api/sign-out", &token, "{}").await.0, 200);
    assert_eq!(paged.own("GET /api/status", &token, "").await.0, 401);
    // The member's other tokens go on.
    assert_eq!(paged.own("GET /api/status", &own, "").await.0, 200);

    let late = paged.secret("dana").await;
    paged.site.clock.advance(countersign::page::link::LINK_TIME_MAX);
    let body = format!("{{\"link\":\"{late}\"}}");
    assert_eq!(paged.own("POST /api/sign-in", "", &body).await.0, 401);
}

#[tokio::test]
async fn what_a_member_may_do_is_what_it_may_do_elsewhere() {
    let paged = Paged::start().await;
    let (dana, sec) = (paged.sign_in("dana").await, paged.sign_in("sec").await);
    let (status, answer) =
        paged.own("POST /api/do/escalate", &sec, "{\"subject\":\"parser\",\"text\":\"why?\"}").await;
    assert_eq!((status, &parsed(&answer)["escalation"]), (200, &Value::from("e1")), "{answer}");
    assert_eq!(parsed(&answer)["woke"][0]["member"], "dana");
    let body = "{\"escalation\":\"e1\",\"decision\":\"dismiss\",\"reason\":\"so\"}";
    let (status, answer) = paged.own("POST /api/do/answer", &sec, body).await;
    assert_eq!((status, &parsed(&answer)["code"]), (403, &Value::from("NOT_A_PERSON")), "{answer}");
    let without = "{\"escalation\":\"e1\",\"decision\":\"dismiss\"}";
    let (status, answer) = paged.own("POST /api/do/answer", &dana, without).await;
    assert_eq!((status, &parsed(&answer)["code"]), (400, &Value::from("REASON_REQUIRED")), "{answer}");
    assert_eq!(paged.own("POST /api/do/answer", &dana, body).await.0, 200);
    assert_eq!(paged.own("POST /api/do/answer", &dana, "no json").await.0, 400);
    assert_eq!(paged.own("POST /api/do/publish", &dana, "{}").await.0, 404);
    let (status, answer) = paged.own("GET /api/proposals/parsr", &dana, "").await;
    assert_eq!((status, &parsed(&answer)["code"]), (404, &Value::from("UNKNOWN_SUBJECT")), "{answer}");
}

/// Reads a stream until it has said that.
async fn until(stream: &mut TcpStream, said: &str) -> String {
    let mut heard = Vec::new();
    let mut piece = [0; 4096];
    loop {
        let count = stream.read(&mut piece).await.unwrap();
        heard.extend_from_slice(&piece[..count]);
        let text = String::from_utf8_lossy(&heard).into_owned();
        if text.contains(said) {
            return text;
        }
        assert_ne!(count, 0, "the stream ended without {said}: {text}");
    }
}

#[tokio::test]
async fn a_stream_goes_on_where_it_was_left_and_ends_with_its_token() {
    let paged = Paged::start().await;
    let token = paged.sign_in("dana").await;
    let mut stream = paged.stream(&token, 0).await;
    let heard = until(&mut stream, "phase-opened").await;
    assert!(heard.contains("id: 2\ndata: "), "{heard}");
    drop(stream);
    // What happened while it was away, and nothing twice.
    paged.escalate("parser").await;
    let mut stream = paged.stream(&token, 2).await;
    let heard = until(&mut stream, "\"escalated\"").await;
    assert!(heard.contains("id: 3\n") && !heard.contains("charter-adopted"), "{heard}");
    // It is a reason to look, and carries nothing of what would be seen.
    assert!(!heard.contains("why?") && !heard.contains("anew"), "{heard}");
    // An ended token ends what it opened, at the next event at the latest.
    assert_eq!(paged.own("POST /api/sign-out", &token, "{}").await.0, 200);
    paged.escalate("implement").await;
    until(&mut stream, "signed-out").await;
}

#[tokio::test]
async fn a_stream_from_beyond_the_log_says_that_it_is_another_one() {
    let paged = Paged::start().await;
    let token = paged.sign_in("dana").await;
    let mut stream = paged.stream(&token, 99).await;
    until(&mut stream, "event: anew\nid: 2\ndata: {\"sequence\":2}\n\n").await;
    paged.escalate("parser").await;
    until(&mut stream, "id: 3\n").await;
}

#[tokio::test]
async fn one_member_leaves_the_others_their_streams() {
    let paged = Paged::start().await;
    let (dana, sec) = (paged.sign_in("dana").await, paged.sign_in("sec").await);
    let mut open = Vec::new();
    for _ in 0..16 {
        let mut stream = paged.stream(&dana, 0).await;
        until(&mut stream, "it stands").await;
        open.push(stream);
    }
    let one_more = until(&mut paged.stream(&dana, 0).await, "STREAMS_MAX").await;
    assert!(one_more.contains(" 429 ") && one_more.contains("as many of your pages"), "{one_more}");
    until(&mut paged.stream(&sec, 0).await, "it stands").await;
    // A page that is closed makes room for another.
    drop(open.pop());
    while !until(&mut paged.stream(&dana, 0).await, "\r\n\r\n").await.contains(" 200 ") {}
}

#[tokio::test]
async fn requests_that_do_not_end_stop_nobody_and_are_ended() {
    let paged = Paged::start().await;
    let mut bodies = Vec::new();
    for _ in 0..80 {
        let begun = "POST /api/sign-in HTTP/1.1\r\nHost: HOST\r\nOrigin: http://HOST\r\nSec-Fetch-Site: same-origin\r\nContent-Length: 99\r\n\r\n{";
        bodies.push(paged.begin(begun).await);
    }
    let mut heads = Vec::new();
    for _ in 0..8 {
        heads.push(paged.begin("GET / HTTP/1.1\r\nHost: HOST\r\n").await);
    }
    // Others are answered meanwhile: the head of the first that was begun is older than all of this.
    let dana = paged.sign_in("dana").await;
    assert_eq!(paged.own("GET /api/status", &dana, "").await.0, 200);
    for mut body in bodies {
        let answer = until(&mut body, "BODY_LATE").await;
        assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
    }
    for mut head in heads {
        let mut answer = String::new();
        head.read_to_string(&mut answer).await.unwrap();
        assert!(!answer.contains(" 200 "), "{answer}");
    }
    let long = format!("{{\"link\":\"{}\"}}", "x".repeat(3 << 20));
    let mut stream = paged
        .begin(&format!(
            "POST /api/sign-in HTTP/1.1\r\nHost: HOST\r\nOrigin: http://HOST\r\nSec-Fetch-Site: same-origin\r\nContent-Length: {}\r\n\r\n",
            long.len()
        ))
        .await;
    // It is refused before it is all there.
    let _ = stream.write_all(&long.as_bytes()[..(2 << 20) + 1]).await;
    until(&mut stream, " 413 ").await;
}

#[tokio::test]
async fn whoever_loses_its_tokens_comes_in_by_no_link_of_before() {
    let mut paged = Paged::start().await;
    let mut operator = paged.site.operator();
    for (keep, revoke) in [(true, false), (false, false), (false, true)] {
        let (secret, other) = (paged.secret("dana").await, paged.secret("sec").await);
        let (team, member) = ("atlas".to_owned(), "dana".to_owned());
        if revoke {
            let asked = proto::RevokeTokensRequest { team, member };
            assert!(operator.revoke_tokens(asked).await.unwrap().into_inner().revoked > 0);
        } else {
            let asked = proto::IssueTokenRequest { team, member, keep };
            let issued = operator.issue_token(asked).await.unwrap().into_inner().token.unwrap().token;
            let issued = countersign::coordinator::token::Token::parse(&issued).unwrap();
            paged.site.tokens.insert("dana".to_owned(), issued);
        }
        let (status, answer) = paged.enter(&secret).await;
        match keep {
            true => assert_eq!(status, 200, "{answer}"),
            false => assert_eq!((status, &answer["code"]), (401, &Value::from("LINK_USED")), "{answer}"),
        }
        assert_eq!(paged.enter(&other).await.0, 200, "another member's link goes on");
        if !revoke {
            paged.sign_in("dana").await;
        }
    }
}

#[tokio::test]
async fn one_page_too_many_ends_the_oldest_of_that_member_and_no_other_token() {
    let mut paged = Paged::start().await;
    let own = paged.site.tokens["dana"].expose().to_owned();
    let sec = paged.sign_in("sec").await;
    let mut pages = Vec::new();
    for _ in 0..16 {
        pages.push(paged.sign_in("dana").await);
    }
    let taken = async |paged: &Paged, token: &str| paged.own("GET /api/status", token, "").await.0 == 200;
    for page in &pages {
        assert!(taken(&paged, page).await);
    }
    pages.push(paged.sign_in("dana").await);
    assert!(!taken(&paged, &pages[0]).await && taken(&paged, &pages[1]).await);
    // A server that starts again knows them apart, and in which order they came.
    paged.site.stop().await;
    let page = Some(PageAddr::At("127.0.0.1:0".parse().unwrap()));
    paged.site.running = Some(server::start(Options { page, ..paged.site.options() }).await.unwrap());
    assert!(!taken(&paged, &pages[0]).await);
    paged.site.clock.advance(countersign::protocol::time::Span(1));
    pages.push(paged.sign_in("dana").await);
    let mut live = Vec::new();
    for page in &pages {
        live.push(taken(&paged, page).await);
    }
    assert_eq!(live.iter().filter(|live| **live).count(), 16);
    assert!(live[17], "the newest is taken");
    for token in [&own, &sec] {
        assert!(taken(&paged, token).await, "no page of that member's");
    }
}

#[tokio::test]
async fn an_answer_has_all_that_the_command_prints() {
    let paged = Paged::start().await;
    let (dana, sec) = (paged.sign_in("dana").await, paged.sign_in("sec").await);
    let mut app = paged.site.member("app");
    let reference = app.offer("fn parse() {}\n", 0, &[]).await;
    let claim = proto::SayRequest {
        text: "No input is slow.".to_owned(),
        claim: Some(proto::Evidence { at: vec!["src/parser.rs:1".to_owned()], ran: Vec::new() }),
        ..Default::default()
    };
    let bearer = Bearer::of(paged.site.tokens["app"].expose());
    let mut speaker = RoomServiceClient::with_interceptor(paged.site.channel(), bearer);
    speaker.say(claim).await.unwrap();
    let checked =
        json!({ "message": "m1", "verdict": "refuted", "text": "It is.", "at": ["src/parser.rs:1"] });
    let decided = json!({ "escalation": "e1", "decision": "dismiss", "reason": "so" });
    for (token, verb, body, has) in [
        (&sec, "show", json!({ "subject": "parser" }), "ref files read_before sequence"),
        (&sec, "diff", json!({ "subject": "parser" }), "ref from on diff truncated sequence"),
        (
            &sec,
            "note",
            json!({ "ref": reference, "text": "short" }),
            "objection ref woke called_out sequence",
        ),
        (&sec, "objections", json!({ "proposal": "parser" }), "proposal version objections sequence"),
        (&sec, "verdict", checked, "message verdict woke called_out sequence"),
        (&sec, "say", json!({ "text": "so" }), "message mentions woke chain escalation called_out sequence"),
        (
            &sec,
            "escalate",
            json!({ "subject": "parser", "text": "why?" }),
            "escalation escalations woke sequence",
        ),
        (&dana, "answer", decided, "escalation escalations decision woke sequence"),
    ] {
        let (status, answer) = paged.own(&format!("POST /api/do/{verb}"), token, &body.to_string()).await;
        assert_eq!(status, 200, "{verb}: {answer}");
        let answer = parsed(&answer);
        for key in has.split(' ') {
            assert!(answer.get(key).is_some(), "{verb} has no {key}: {answer}");
        }
        if has.contains("escalations") {
            assert_eq!(answer["escalations"][0]["id"], "e1", "{verb}: {answer}");
        }
    }
}

#[tokio::test]
async fn a_timeline_is_read_on_from_where_it_was_read_to() {
    let paged = Paged::start().await;
    let token = paged.sign_in("dana").await;
    paged.escalate("parser").await;
    let read = async |query: &str| {
        let (status, answer) =
            paged.own(&format!("GET /api/proposals/parser/timeline{query}"), &token, "").await;
        assert_eq!(status, 200, "{answer}");
        parsed(&answer)
    };
    let kinds = |told: &Value| -> Vec<String> {
        told["events"]
            .as_array()
            .unwrap()
            .iter()
            .map(|event| event["kind"].as_str().unwrap().to_owned())
            .collect()
    };
    let first = read("").await;
    assert_eq!(kinds(&first).last().unwrap(), "escalated");
    assert_eq!((&first["ids"], &first["sequence"]), (&json!(["e1"]), &Value::from(3)));
    // What the page doesn't show doesn't travel.
    assert!(!first.to_string().contains("why?"), "{first}");
    let body = "{\"escalation\":\"e1\",\"decision\":\"dismiss\",\"reason\":\"so\"}";
    assert_eq!(paged.own("POST /api/do/answer", &token, body).await.0, 200);
    assert_eq!(kinds(&read("?after=3&ids=e1").await), ["escalation-closed"]);
    // Of itself, the answer doesn't say which proposal it is about.
    assert_eq!(kinds(&read("?after=3").await), [""; 0]);
    assert_eq!(kinds(&read("?after=4&ids=e1").await), [""; 0]);
}

#[tokio::test]
async fn the_page_is_on_this_machine_alone_and_where_it_is_told() {
    let mut site = Site::unserved();
    site.add_team(&charter("atlas")).await;
    let open = Options { page: Some(PageAddr::At("0.0.0.0:0".parse().unwrap())), ..site.options() };
    assert!(matches!(server::start(open).await, Err(server::StartFault::PageNotLoopback { .. })));

    let paged = Paged::start().await;
    let taken = paged.host().parse().unwrap();
    let at = Options { page: Some(PageAddr::At(taken)), ..site.options() };
    assert!(matches!(server::start(at).await, Err(server::StartFault::Listen { .. })));
    let near = Options { page: Some(PageAddr::Near(taken)), ..site.options() };
    site.running = Some(server::start(near).await.unwrap());
    let running = site.running.as_ref().unwrap();
    assert!(running.page().is_some_and(|page| page != taken));
    assert_eq!(site.home.read_server().unwrap().page, running.page());
    assert!(running.links(0).is_empty(), "one is more than none");
    let links = running.links(1);
    assert_eq!(links.iter().map(|(_, person, _)| person.as_str()).collect::<Vec<_>>(), ["dana"]);

    // Where there is none, nobody gets a link.
    let without = Site::bundles().await;
    let bearer = Bearer::of(without.tokens["dana"].expose());
    let mut client = PageServiceClient::with_interceptor(without.channel(), bearer);
    let answer = client.open_page(proto::OpenPageRequest {}).await;
    assert_eq!(refused(answer).0, "PAGE_OFF");
    assert!(without.running.as_ref().unwrap().links(9).is_empty());
}
