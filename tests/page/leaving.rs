//! Who comes after whom in a tab, and what the page says while it can't know.

use std::path::Path;
use std::time::Duration;

use countersign::coordinator::token::Token;
use countersign::wire::proto;

use crate::browser::{Browser, Room};

/// How long something may take to be seen.
const SEEN_WITHIN: Duration = Duration::from_secs(30);

async fn token(browser: &Browser) -> Option<Token> {
    let kept = browser.value("sessionStorage.getItem('countersign-token')").await;
    kept.as_str().map(|text| Token::parse(text).unwrap())
}

async fn is_taken(room: &Room, token: &Token) -> bool {
    let mut member = crate::site::Member::new(room.site.channel(), token);
    member.review.get_status(proto::GetStatusRequest::default()).await.is_ok()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_next_member_in_a_tab_gets_nothing_of_the_one_before_and_stays() {
    let room = Room::bundles().await;
    let browser = Browser::start().await;
    browser.enter(&room.link("dana").await).await;
    browser.is_live().await;
    let first = token(&browser).await.unwrap();
    browser.view("#/room", "It will wake nobody.").await;
    browser.click("#say").await;
    browser.keys("@sec what only dana writes").await;
    browser.sees("It will be stored for sec").await;
    // A link in the same tab: the one before is out, here and on the server.
    browser.enter(&room.link("sec").await).await;
    browser.until("document.getElementById('team').textContent === 'atlas, as sec'").await;
    browser.is_live().await;
    let second = token(&browser).await.unwrap();
    let ended = async {
        while is_taken(&room, &first).await {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(SEEN_WITHIN, ended).await.expect("the token of the one before ends");
    browser.view("#/room", "It will wake nobody.").await;
    assert_eq!(browser.value("document.getElementById('say').value").await, "");
    // Signed out, and in again: what the old stream says of its token is nothing to the new one.
    browser.click("[data-do=keys]").await;
    browser.click("#keys [data-do=out]").await;
    browser.sees("You signed out.").await;
    assert!(!is_taken(&room, &second).await);
    browser.enter(&room.link("arch").await).await;
    browser.is_live().await;
    room.site.member("app").offer("fn parse() {}\n", 0, &[]).await;
    browser.view("#/proposals", "parser@1").await;
    room.site.member("sec").show("parser").await;
    browser.sees("sec security read").await;
    assert_eq!(browser.value("document.getElementById('team').textContent").await, "atlas, as arch");
    assert_eq!(browser.value("document.getElementById('line').textContent").await, "live");
    assert_eq!(browser.complaints().await.iter().filter(|line| line.contains("Uncaught")).count(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_could_not_be_signed_out_is_told_so() {
    let mut room = Room::bundles().await;
    let browser = Browser::start().await;
    browser.enter(&room.link("dana").await).await;
    browser.is_live().await;
    let token = token(&browser).await.unwrap();
    let at = room.down().await;
    browser.click("[data-do=keys]").await;
    browser.click("#keys [data-do=out]").await;
    browser
        .until("document.getElementById('trouble').textContent.startsWith('You are still signed in')")
        .await;
    assert_eq!(browser.value("sessionStorage.length").await, 1);
    room.up(at).await;
    browser.is_live().await;
    assert!(is_taken(&room, &token).await);
    browser.click("[data-do=keys]").await;
    browser.click("#keys [data-do=out]").await;
    browser.sees("You signed out.").await;
    assert!(!is_taken(&room, &token).await);
    assert_eq!(browser.value("document.getElementById('trouble').hidden").await, true);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_out_of_date_says_so_and_what_fails_is_said() {
    let room = Room::bundles().await;
    let browser = Browser::start().await;
    browser.enter(&room.link("dana").await).await;
    browser.is_live().await;
    browser.view("#/proposals", "To deliver").await;
    // The stream stands, and what it is a reason to look at can't be had.
    browser.cut_off(&["/api/status"]).await;
    room.site.member("app").offer("fn parse() {}\n", 0, &[]).await;
    browser.until("document.getElementById('line').textContent.startsWith('out of date')").await;
    browser.cut_off(&[]).await;
    browser.sees("parser@1").await;
    browser.is_live().await;
    // So it is with whatever a button asks for.
    let trouble = "document.getElementById('trouble').textContent.includes(\"can't be reached\")";
    browser.view("#/room", "It will wake nobody.").await;
    browser.cut_off(&["/api/minutes", "/api/mentions"]).await;
    browser.click("form[data-do=minutes] button").await;
    browser.until(trouble).await;
    browser.click("#say").await;
    browser.keys("@sec").await;
    browser.sees("Whom it will wake can't be said").await;
    browser.cut_off(&["/api/charter?revision"]).await;
    browser.view("#/charter", "What revision 1 changed").await;
    assert_eq!(browser.value("document.getElementById('trouble').hidden").await, true);
    browser.click("[data-do=revision]").await;
    browser.until(trouble).await;
    let unsaid = browser.complaints().await.into_iter().filter(|line| line.contains("Uncaught"));
    assert_eq!(unsaid.collect::<Vec<_>>(), [""; 0]);
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &to);
        } else {
            std::fs::copy(entry.path(), to).unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_that_was_put_back_is_followed_from_its_own_end() {
    let mut room = Room::bundles().await;
    let browser = Browser::start().await;
    browser.enter(&room.link("dana").await).await;
    browser.is_live().await;
    let (home, kept) = (room.site.folder.path().join(".countersign"), room.site.folder.path().join("kept"));
    let at = room.down().await;
    copy(&home, &kept);
    room.up(at).await;
    for number in 1..=20 {
        let said = proto::SayRequest { text: format!("word {number} is lost"), ..Default::default() };
        room.speaker("sec").say(said).await.unwrap();
    }
    browser.view("#/room", "word 20 is lost").await;
    // The home of before is put in its place, whole.
    let at = room.down().await;
    std::fs::remove_dir_all(&home).unwrap();
    copy(&kept, &home);
    room.up(at).await;
    browser.sees("Nothing was said yet.").await;
    browser.is_live().await;
    // What is new is heard of, though its sequence was heard of before.
    browser.view("#/proposals", "To deliver").await;
    room.site.member("app").offer("fn parse() {}\n", 0, &[]).await;
    browser.sees("parser@1").await;
    // By now nothing but the stream is a reason to look.
    room.site.member("sec").show("parser").await;
    browser.sees("sec security read").await;
    browser.view("#/room", "Nothing was said yet.").await;
}
