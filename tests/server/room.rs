//! The room over real gRPC: who will hear, and a backlog that is read page by page.

use std::time::{Duration, Instant};

use countersign::wire::proto;
use countersign::wire::proto::room_service_client::RoomServiceClient;
use tonic::transport::Channel;

use crate::site::{Bearer, Site, refused, request_id};

type Room = RoomServiceClient<tonic::service::interceptor::InterceptedService<Channel, Bearer>>;

fn room(site: &Site, member: &str) -> Room {
    RoomServiceClient::with_interceptor(site.channel(), Bearer::of(site.tokens[member].expose()))
}

fn saying(text: &str) -> proto::SayRequest {
    proto::SayRequest { text: text.to_owned(), ..Default::default() }
}

#[tokio::test]
async fn whom_a_message_mentions_is_told_to_its_author_and_a_retry_gets_the_same_answer() {
    let mut site = Site::bundles().await;
    let mut app = room(&site, "app");
    let request = proto::SayRequest { request_id: request_id(1), ..saying("@sec, and @dana too") };
    let said = app.say(request.clone()).await.unwrap().into_inner();
    let woke: Vec<&str> = said.woke.iter().map(|wake| wake.member.as_str()).collect();
    assert_eq!((said.message.as_str(), woke), ("m1", vec!["dana", "sec"]));
    for wake in &said.woke {
        assert_eq!(wake.outcome(), proto::WakeOutcome::Stored, "nobody listens");
        assert_eq!(wake.presence(), proto::Presence::NotJoined);
    }
    site.restart().await;
    assert_eq!(room(&site, "app").say(request).await.unwrap().into_inner(), said);
    let (code, _) = refused(room(&site, "app").say(saying("@sek?")).await);
    assert_eq!(code, "UNKNOWN_MEMBER");
    let verdict = proto::JudgeClaimRequest { message: "m1".to_owned(), ..Default::default() };
    assert_eq!(refused(room(&site, "sec").judge_claim(verdict).await).0, "MALFORMED");
}

#[tokio::test]
async fn the_first_page_of_a_long_backlog_comes_at_once_and_says_how_many_more() {
    const MESSAGES: u32 = 10_000;
    const AT_ONCE: u32 = 100;
    let mut site = Site::bundles().await;
    let app = room(&site, "app");
    for _ in 0..MESSAGES / AT_ONCE {
        let saying = (0..AT_ONCE).map(|_| {
            let mut app = app.clone();
            tokio::spawn(async move { app.say(saying("so it goes, and so it went")).await.unwrap() })
        });
        for said in saying.collect::<Vec<_>>() {
            said.await.unwrap();
        }
    }
    // A server that comes back has it from its log.
    site.restart().await;
    let mut sec = room(&site, "sec");
    let begun = Instant::now();
    let newest = sec.list_transcript(proto::ListTranscriptRequest::default()).await.unwrap().into_inner();
    assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
    let ids = |page: &proto::ListTranscriptResponse| {
        let id = |entry: Option<&proto::TranscriptEntry>| entry.map(|entry| entry.id.clone()).unwrap();
        (id(page.entries.first()), id(page.entries.last()), page.earlier, page.later)
    };
    assert_eq!(ids(&newest), ("m9951".to_owned(), "m10000".to_owned(), 9_950, 0));

    let before = proto::ListTranscriptRequest {
        before: newest.entries[0].sequence,
        page_size: 1_000,
        ..Default::default()
    };
    let earlier = sec.list_transcript(before).await.unwrap().into_inner();
    assert_eq!(ids(&earlier), ("m8951".to_owned(), "m9950".to_owned(), 8_950, 50));

    // Read forward, every message comes once.
    let (mut after, mut read) = (0, 0_u32);
    let mut from = "m1".to_owned();
    loop {
        let page = proto::ListTranscriptRequest { page_size: 1_000, after, from: from.clone(), before: 0 };
        let page = sec.list_transcript(page).await.unwrap().into_inner();
        for entry in &page.entries {
            read += 1;
            assert_eq!(entry.id, format!("m{read}"));
        }
        assert_eq!(u64::from(read) + page.later, u64::from(MESSAGES));
        if page.later == 0 {
            break;
        }
        (after, from) = (page.entries.last().unwrap().sequence, String::new());
    }
    let unknown = proto::ListTranscriptRequest { from: "m10001".to_owned(), ..Default::default() };
    assert_eq!(refused(sec.list_transcript(unknown).await).0, "UNKNOWN_SUBJECT");
}
