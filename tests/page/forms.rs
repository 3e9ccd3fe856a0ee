//! What a person fills in: nothing goes but by its own button, and what is shown is what is sent.

use countersign::wire::proto;

use crate::browser::{Browser, Room};
use crate::site::charter;

const ENTER: &str = "\u{E007}";

/// The parser's record.
async fn record(room: &Room) -> proto::GetProposalResponse {
    let asked = proto::GetProposalRequest { name: "parser".to_owned() };
    room.site.member("app").review.get_proposal(asked).await.unwrap().into_inner()
}

#[tokio::test(flavor = "multi_thread")]
async fn enter_in_a_field_votes_for_nobody_and_an_approval_drops_no_words() {
    let room = Room::bundles().await;
    let browser = Browser::start().await;
    room.site.member("app").offer("fn parse() {}\n", 0, &[]).await;
    room.site.member("sec").show("parser").await;
    browser.enter(&room.link("sec").await).await;
    browser.view("#/proposals/parser", "Your part").await;
    browser.sees("Approve parser@1").await;
    browser.click("#vote-text").await;
    browser.keys("Long lines are slow.").await;
    browser.click("#vote-at").await;
    browser.keys(&format!("src/parser.rs:1{ENTER}{ENTER}")).await;
    // The button says which way it goes. An approval has no place for words, so it doesn't go with them.
    browser.click("form[data-do=vote] button[value=approve]").await;
    browser.sees("An approval carries no words.").await;
    assert_eq!(browser.value("document.getElementById('vote-text').value").await, "Long lines are slow.");
    browser.click("form[data-do=vote] button[value=note]").await;
    browser.sees("Done: note parser@1").await;
    let told = record(&room).await;
    assert!(told.versions[0].votes.is_empty(), "{:?}", told.versions[0].votes);
    let [note] = told.objections.as_slice() else { panic!("{:?}", told.objections) };
    assert_eq!(
        (note.text.as_str(), note.at.as_slice()),
        ("Long lines are slow.", &["src/parser.rs:1".to_owned()][..])
    );
    // Without words it goes.
    assert_eq!(browser.value("document.getElementById('vote-text').value").await, "");
    browser.click("#vote-at").await;
    browser.keys("src/parser.rs:1").await;
    browser.click("form[data-do=vote] button[value=approve]").await;
    browser.sees("Done: approve parser@1").await;
    assert_eq!(record(&room).await.versions[0].votes.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_is_judged_by_the_button_that_is_pressed() {
    let room = Room::bundles().await;
    let browser = Browser::start().await;
    let claim = proto::SayRequest {
        text: "No input is slow.".to_owned(),
        claim: Some(proto::Evidence { at: vec!["src/parser.rs:1".to_owned()], ran: Vec::new() }),
        ..Default::default()
    };
    room.speaker("app").say(claim).await.unwrap();
    browser.enter(&room.link("sec").await).await;
    browser.view("#/room", "No input is slow.").await;
    browser.click("form[data-do=verdict] input").await;
    browser.keys(&format!("A line of 2 MiB takes a minute.{ENTER}{ENTER}")).await;
    browser.click("form[data-do=verdict] button[value=refuted]").await;
    browser.sees("m1 is refuted").await;
    browser
        .until("document.querySelector('.entry.is-verdict').textContent.includes('A line of 2 MiB')")
        .await;
    assert_eq!(browser.value("document.querySelectorAll('.entry.is-verdict').length").await, 1);
    assert_eq!(browser.value("document.querySelectorAll('form[data-do=verdict]').length").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn whom_a_form_names_is_whom_it_sends_also_when_the_team_grows_meanwhile() {
    let room = Room::bundles().await;
    let browser = Browser::start().await;
    let text = "Who looks at it?".to_owned();
    let asked = proto::EscalateRequest { subject: "parser".to_owned(), text, ..Default::default() };
    room.site.member("arch").escalation.escalate(asked).await.unwrap();
    browser.enter(&room.link("dana").await).await;
    browser.sees("Who looks at it?").await;
    browser.is_live().await;
    browser.click("#member-e1").await;
    browser.keys(&format!("sec{ENTER}")).await;
    let chosen = "(() => { const select = document.getElementById('member-e1'); \
                  return [select.value, select.selectedOptions[0].textContent, new FormData(select.form).get('member')].join(' '); })()";
    assert_eq!(browser.value(chosen).await, "sec sec sec");
    // Who joins stands before all others.
    room.adopt(&charter("atlas").replace("[members.app]", "[members.ann]\n\n[members.app]")).await;
    browser
        .until("[...document.querySelectorAll('#member-e1 option')].some((one) => one.textContent === 'ann')")
        .await;
    assert_eq!(browser.value(chosen).await, "sec sec sec");
    let wrong = "[...document.querySelectorAll('#member-e1 option, #reviewer-e1 option')] \
                 .filter((one) => one.value !== '' && one.value !== one.textContent).length";
    assert_eq!(browser.value(wrong).await, 0);
    // Who left stands no longer there.
    room.adopt(&charter("atlas")).await;
    browser
        .until(
            "![...document.querySelectorAll('#member-e1 option')].some((one) => one.textContent === 'ann')",
        )
        .await;
    assert_eq!(browser.value(chosen).await, "sec sec sec");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_decision_says_whose_place_is_taken_where_several_review() {
    let room = Room::bundles().await;
    let browser = Browser::start().await;
    let text = "Who looks at it instead?".to_owned();
    let asked = proto::EscalateRequest { subject: "implement".to_owned(), text, ..Default::default() };
    room.site.member("app").escalation.escalate(asked).await.unwrap();
    browser.enter(&room.link("dana").await).await;
    browser.sees("Who looks at it instead?").await;
    browser.click("#reason-e1").await;
    browser.keys("sec is away").await;
    browser.click("#member-e1").await;
    browser.keys(&format!("arch{ENTER}")).await;
    browser.click(".decide button[value=replace]").await;
    browser.sees("it is not said whose review it is").await;
    browser.click("#reviewer-e1").await;
    browser.keys(&format!("sec{ENTER}")).await;
    browser.click(".decide button[value=replace]").await;
    browser.sees("No escalation is open.").await;
    let reviewers = record(&room).await.proposal.unwrap().reviewers;
    assert!(reviewers.iter().all(|reviewer| reviewer.member == "arch"), "{reviewers:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_differs_since_the_last_reading_is_the_servers_to_say() {
    let room = Room::bundles().await;
    let browser = Browser::start().await;
    let (mut app, mut sec) = (room.site.member("app"), room.site.member("sec"));
    app.offer("one\n", 0, &[]).await;
    sec.show("parser").await;
    app.offer("two\n", 1, &[]).await;
    app.offer("three\n", 2, &[]).await;
    browser.enter(&room.link("sec").await).await;
    browser.view("#/proposals/parser", "Since my last reading").await;
    browser.click("form[data-do=diff] button[name=since]").await;
    browser.until("document.querySelector('tr.del .text').textContent === 'one'").await;
    browser.until("document.querySelector('tr.add .text').textContent === 'three'").await;
    browser.sees("against @1").await;
    // That was a reading of the current version alone, and arch had none before.
    browser.enter(&room.link("arch").await).await;
    browser.view("#/proposals/parser", "Since my last reading").await;
    browser.click("form[data-do=diff] button[name=since]").await;
    browser.sees("You were shown no version before it, so this is all of it.").await;
    browser.sees("against its base").await;
    let read = record(&room)
        .await
        .versions
        .iter()
        .map(|one| one.reviewers.iter().filter(|by| by.read).count())
        .collect::<Vec<_>>();
    assert_eq!(read, [1, 0, 2]);
}
