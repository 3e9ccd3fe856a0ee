//! A person's day with the page open.

use countersign::wire::proto;

use crate::browser::{Browser, Room};

#[tokio::test(flavor = "multi_thread")]
async fn a_person_sees_who_holds_the_ball_and_answers_what_waits() {
    let mut room = Room::bundles().await;
    let browser = Browser::start().await;

    // A link signs in, and nothing of it stays in the address.
    let link = room.link("dana").await;
    browser.goto(&link).await;
    browser.sees("Who owes what").await;
    browser.sees("app deliver parser").await;
    assert_eq!(browser.run("return location.hash").await, "#/now");
    browser.until("document.getElementById('line').textContent === 'live'").await;
    // No reload from here on.
    browser.run("window.unbroken = true").await;

    // What members do is seen as they do it.
    browser.keys("gp").await;
    browser.sees("To deliver").await;
    let (mut app, mut sec, mut arch) =
        (room.site.member("app"), room.site.member("sec"), room.site.member("arch"));
    let first = app.offer("fn parse() {}\n", 0, &[]).await;
    browser.until("document.querySelector('.under-review .card').textContent.includes('parser@1')").await;
    browser.sees("sec security not read").await;
    sec.show("parser").await;
    browser.sees("sec security read").await;
    sec.object(&first, "It overflows on long input.").await.unwrap();
    browser.until("document.querySelector('.state.objected .card').textContent.includes('objected')").await;

    // The proposal's own page, by the keyboard alone.
    browser.keys("j\u{E007}").await;
    browser.sees("It overflows on long input.").await;
    assert_eq!(browser.run("return location.hash").await, "#/proposals/parser");
    browser.sees("confirm/open-objection").await;
    app.objections().await;
    let second = app.offer("fn parse() { checked() }\n", 1, &[("o1", "It is checked now.")]).await;
    browser.sees("Answered with version 2: It is checked now.").await;
    browser.until("document.querySelector('.version-of.current').textContent.includes('@2')").await;

    // The diff between two versions; asking for it is a reading.
    browser.run("document.querySelector('#diff-from').value = '1'").await;
    browser.click("form[data-do=diff] button").await;
    browser.until("document.querySelector('tr.add .text').textContent === 'fn parse() { checked() }'").await;
    browser.until("document.querySelector('tr.del .text').textContent === 'fn parse() {}'").await;
    browser.sees("was shown version 2").await;

    // An escalation is heard, and answered with a reason.
    let asked = proto::EscalateRequest {
        subject: "parser".to_owned(),
        text: "Do we ship without streaming?".to_owned(),
        ..Default::default()
    };
    arch.escalation.escalate(asked).await.unwrap();
    browser.until("document.getElementById('alert').textContent.includes('New escalation e1: asked')").await;
    browser.keys("gn").await;
    browser.sees("Do we ship without streaming?").await;
    // Without a reason nothing is sent.
    browser.click(".decide button[value=dismiss]").await;
    assert_eq!(
        browser.run("return document.querySelector('.decide textarea').matches(':invalid')").await,
        true
    );
    browser.click(".decide textarea").await;
    browser.keys("We do.").await;
    // What happens meanwhile takes nothing of what is being written.
    sec.show("parser").await;
    arch.show("parser").await;
    browser.until("document.activeElement.matches('.decide textarea')").await;
    assert_eq!(browser.run("return document.activeElement.value").await, "We do.");
    browser.click(".decide button[value=dismiss]").await;
    browser.sees("No escalation is open.").await;
    browser.until("document.getElementById('said').textContent.startsWith('e1 is answered: dismiss.')").await;
    let status = sec.status().await;
    assert!(status.escalations.is_empty(), "{:?}", status.escalations);

    // A server that was away is found again, and what happened is there without a reload.
    room.restart().await;
    let mut sec = room.site.member("sec");
    sec.show(&second).await;
    let approved = proto::ApproveRequest {
        reference: second.clone(),
        checked: vec!["src/parser.rs:1".to_owned()],
        resolve: vec!["o1".to_owned()],
        ..Default::default()
    };
    sec.review.approve(approved).await.unwrap();
    room.site.member("arch").approve(&second).await.unwrap();
    browser.keys("gp").await;
    browser
        .until(
            "document.querySelector('.state.accepted .card').textContent.includes('sec security approved')",
        )
        .await;
    assert_eq!(browser.run("return window.unbroken").await, true);
    browser.keys("gc").await;
    browser.sees("sec reviews app security").await;
    assert_eq!(browser.run("return document.querySelectorAll('svg.graph').length").await, 2);

    // A mention: whom it will wake is said before, and whom it woke after. Words that name nobody here go nowhere.
    browser.keys("gr").await;
    browser.sees("It will wake nobody.").await;
    browser.click("[data-do=mention][data-name=arch]").await;
    browser.sees("It will be stored for arch").await;
    browser.click("[data-do=mention][data-name=arch]").await;
    browser.sees("It will wake nobody.").await;
    browser.click("[data-do=mention][data-name=sec]").await;
    browser.until("document.querySelector('[data-do=mention][data-name=sec]').ariaPressed === 'true'").await;
    browser.keys("is it safe now?").await;
    assert_eq!(browser.run("return document.activeElement.value").await, "@sec is it safe now?");
    browser.click(".compose .buttons button:not([type])").await;
    browser
        .until("document.getElementById('told-room').textContent.startsWith('m1 is said. Stored for sec')")
        .await;
    browser.until("document.querySelector('.transcript').textContent.includes('@sec is it safe now?')").await;
    browser.keys("@nobdy hello").await;
    browser.sees("Nobody here is called nobdy.").await;

    // Who listens is seen to.
    let mut dana = room.listener("dana");
    let mut heard =
        dana.listen(proto::ListenRequest { stays: true, ..Default::default() }).await.unwrap().into_inner();
    heard.message().await.unwrap();
    browser.run("location.hash = '#/roster'").await;
    browser.sees("listening: a wake reaches it now").await;
    browser.sees("1 of them can hear now").await;

    // The minutes have every word.
    browser.keys("gr").await;
    let keep = "const made = URL.createObjectURL.bind(URL); \
                URL.createObjectURL = (blob) => { window.kept = blob; return made(blob); }";
    browser.run(keep).await;
    browser.click("form[data-do=minutes] button").await;
    browser
        .until("document.getElementById('said').textContent === 'The minutes of implement are downloaded.'")
        .await;
    let minutes = browser.run_until_done("window.kept.text().then(done)").await;
    let minutes = minutes.as_str().unwrap();
    for words in ["It overflows on long input.", "is it safe now?", "We do."] {
        assert!(minutes.contains(words), "{words} is not in {minutes}");
    }

    // Signed out, the tab holds nothing any more, and the server takes its token no longer.
    let token = browser.run("return sessionStorage.getItem('countersign-token')").await;
    let token = countersign::coordinator::token::Token::parse(token.as_str().unwrap()).unwrap();
    browser.keys("?").await;
    browser.until("document.getElementById('keys').open").await;
    browser.click("#keys [data-do=out]").await;
    browser.sees("You signed out.").await;
    assert_eq!(browser.run("return sessionStorage.length").await, 0);
    let mut left = crate::site::Member::new(room.site.channel(), &token);
    let refused = left.review.get_status(proto::GetStatusRequest::default()).await;
    assert_eq!(refused.unwrap_err().code(), tonic::Code::Unauthenticated);

    // The link was used up by signing in.
    browser.goto(&link).await;
    browser.sees("the link was used").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn all_of_it_is_done_without_a_mouse() {
    const TAB: &str = "\u{E004}";
    const ENTER: &str = "\u{E007}";
    let room = Room::bundles().await;
    let browser = Browser::start().await;
    let text = "Do we ship?".to_owned();
    let asked = proto::EscalateRequest { subject: "parser".to_owned(), text, ..Default::default() };
    room.site.member("arch").escalation.escalate(asked).await.unwrap();
    room.site.member("app").offer("fn parse() {}\n", 0, &[]).await;
    browser.enter(&room.link("dana").await).await;
    browser.sees("Do we ship?").await;
    // To the escalation, into it, a reason, past the members, to the first decision.
    browser.keys("j").await;
    browser.until("document.activeElement.matches('.escalation')").await;
    browser.keys(ENTER).await;
    browser.until("document.activeElement.matches('.escalation textarea')").await;
    browser.keys(&format!("We do, go on.{TAB}{TAB}{TAB}")).await;
    browser.until("document.activeElement.value === 'dismiss'").await;
    browser.keys(ENTER).await;
    browser.sees("No escalation is open.").await;
    // The board, its first card, the diff; and back.
    browser.keys("gp").await;
    browser.sees("Under review").await;
    browser.keys("j").await;
    browser.until("document.activeElement.matches('.card')").await;
    browser.keys(ENTER).await;
    browser.sees("What happened").await;
    browser.keys("d").await;
    browser.until("document.activeElement.matches('form[data-do=diff] button')").await;
    browser.keys(ENTER).await;
    browser.until("document.querySelector('tr.add .text')").await;
    browser.keys("u").await;
    browser.sees("To deliver").await;
    browser.keys("/").await;
    browser.until("document.activeElement.type === 'search'").await;
    browser.keys("nothing of that name").await;
    browser.until("document.querySelectorAll('.card').length === 0").await;
    // The keys themselves, and out of them again.
    browser.keys("\u{E00C}?").await;
    browser.until("document.getElementById('keys').open").await;
    browser.keys("\u{E00C}").await;
    browser.until("!document.getElementById('keys').open").await;
    browser.keys("go").await;
    browser.sees("owes nothing").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn much_that_happens_is_seen_and_kept_within_bounds() {
    let room = Room::bundles().await;
    let browser = Browser::start().await;
    browser.enter(&room.link("dana").await).await;
    browser.sees("Who owes what").await;
    browser.keys("gr").await;
    browser.sees("Nothing was said yet.").await;
    let mut sec = room.speaker("sec");
    for number in 1..=600 {
        let text = format!("word {number} of many");
        sec.say(proto::SayRequest { text, ..Default::default() }).await.unwrap();
    }
    browser.sees("word 600 of many").await;
    let drawn = browser.run("return document.querySelectorAll('.entry').length").await;
    assert!((100..=400).contains(&drawn.as_u64().unwrap()), "{drawn}");
    // What is older is there for the asking.
    browser.click("[data-do=earlier]").await;
    browser.until(&format!("document.querySelectorAll('.entry').length > {drawn}")).await;
    println!("the heap holds {} bytes", browser.run("return performance.memory.usedJSHeapSize").await);
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_is_no_person_is_shown_no_decisions_and_refused_them() {
    let room = Room::bundles().await;
    let browser = Browser::start().await;
    let text = "Who decides?".to_owned();
    let asked = proto::EscalateRequest { subject: "parser".to_owned(), text, ..Default::default() };
    room.site.member("arch").escalation.escalate(asked).await.unwrap();
    browser.enter(&room.link("sec").await).await;
    browser.sees("Who decides?").await;
    assert_eq!(browser.run("return document.querySelectorAll('.decide').length").await, 0);
    let script = "import('/server.js').then(({ act }) => act('answer', \
                  { escalation: 'e1', decision: 'dismiss', reason: 'mine' })) \
                  .then(() => done('taken'), (why) => done(why.told.code))";
    assert_eq!(browser.run_until_done(script).await, "NOT_A_PERSON");
}
