//! Texts that would be something else: markup, controls, names that turn around, lines without an end.

use countersign::wire::proto;

use crate::browser::{Browser, Room};

const MARKUP: &str = "<img src=x onerror=\"window.taken=1\"><script>window.taken=1</script><a href=\"javascript:window.taken=1\">x</a>";

#[tokio::test(flavor = "multi_thread")]
async fn what_others_write_is_shown_and_never_obeyed() {
    // What a member is about is in the charter; whoever writes that is trusted with less than with markup.
    let about = serde_json::Value::from(MARKUP).to_string();
    let charter =
        crate::site::charter("atlas").replace("[members.sec]", &format!("[members.sec]\nabout = {about}"));
    let room = Room::of(&charter).await;
    let (mut app, mut sec) = (room.site.member("app"), room.site.member("sec"));
    let long = "W".repeat(3_000);
    let text = format!("{MARKUP}\u{202e}turned\u{202c}\u{1b}[31m\u{200b} {long}");
    let content = format!("{text}\n");
    let path = format!("src/{MARKUP}\u{202e}.rs").replace("/s", "-s");
    let digest = app.upload(&[(path.as_bytes(), content.as_bytes())]).await;
    // Paths that can't be kept are refused at the door, and then only the texts are hostile.
    let digest = match digest {
        Ok(kept) => kept.digest,
        Err(_) => app.upload(&[(b"src/<b>.rs", content.as_bytes())]).await.unwrap().digest,
    };
    let offered = proto::ProposeRequest {
        proposal: "parser".to_owned(),
        kind: proto::ArtifactKind::Bundle.into(),
        digest,
        summary: text.clone(),
        ..Default::default()
    };
    let reference = app.review.propose(offered).await.unwrap().into_inner().reference;
    sec.show("parser").await;
    sec.object(&reference, &text).await.unwrap();
    let request =
        proto::EscalateRequest { subject: "parser".into(), text: text.clone(), ..Default::default() };
    sec.escalation.escalate(request).await.unwrap();

    let claim = proto::Evidence {
        at: vec![format!("src/{MARKUP}\u{202e}.rs:1")],
        ran: vec![proto::Run { command: text.clone(), exit: Some(1), output: Some(text.clone()) }],
    };
    let said = proto::SayRequest { text: text.clone(), claim: Some(claim), ..Default::default() };
    room.speaker("sec").say(said).await.unwrap();

    let browser = Browser::start().await;
    browser.size(375, 700).await;
    browser.enter(&room.link("dana").await).await;
    for hash in ["#/now", "#/proposals", "#/proposals/parser", "#/room", "#/roster", "#/charter"] {
        browser.run(&format!("location.hash = '{hash}'")).await;
        browser.sees("onerror").await;
        if hash == "#/proposals/parser" {
            browser.click("form[data-do=diff] button").await;
            browser.until("document.querySelector('tr.add .text')").await;
        }
        let (main, page) = ("document.querySelector('main')", "document.documentElement");
        let shown = browser.run(&format!("return {main}.textContent")).await;
        let shown = shown.as_str().unwrap();
        if !["#/roster", "#/charter"].contains(&hash) {
            assert!(shown.contains("\\u{202e}turned\\u{202c}\\u{1b}[31m\\u{200b}"), "{hash}");
        }
        assert!(!shown.contains('\u{202e}') && !shown.contains('\u{1b}'), "{hash}");
        for wrong in [
            format!("{main}.querySelectorAll('img, script, iframe, a[href^=javascript]').length"),
            "window.taken ?? 0".to_owned(),
            format!("Math.max(0, {page}.scrollWidth - innerWidth)"),
            "performance.getEntriesByType('resource').filter((one) => new URL(one.name).origin !== location.origin).length"
                .to_owned(),
        ] {
            assert_eq!(browser.run(&format!("return {wrong}")).await, 0, "{hash}: {wrong}");
        }
    }
    assert_eq!(browser.complaints().await, [""; 0]);
}
