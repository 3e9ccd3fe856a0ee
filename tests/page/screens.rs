//! The main views of a team that is busy: what docs/page/ shows. To take them again:
//! `UPDATE=1 cargo nextest run --test page screens`.

use countersign::protocol::time::Span;
use countersign::wire::proto;

use crate::browser::{Browser, Room};

/// The views, and what each shows once it is there.
pub const VIEWS: [(&str, &str); 6] = [
    ("#/now", "Who owes what"),
    ("#/proposals", "Under review"),
    ("#/proposals/parser", "Answered with version 2"),
    ("#/room", "the width is a usize now"),
    ("#/roster", "keeps the design whole"),
    ("#/charter", "Who reviews whom"),
];

const CHARTER: &str = r#"
[team]
name = "atlas"

[members.app]
about = "writes the parser"
owns = ["src/**"]

[members.docs]
about = "writes the manual"
owns = ["docs/**"]

[members.sec]
about = "looks for holes"

[members.arch]
about = "keeps the design whole"

[members.dana]
kind = "human"

[[phases]]
name = "implement"
confirm = "together"
deliverables = [
    { name = "parser", producer = "app" },
    { name = "lexer", producer = "app" },
    { name = "manual", producer = "docs" },
]
reviews = [
    { reviewer = "sec", of = "app", lens = "security" },
    { reviewer = "arch", of = "app", lens = "design" },
    { reviewer = "arch", of = "docs", lens = "correctness" },
]
"#;

/// A team in the middle of its work.
pub async fn busy() -> Room {
    let room = Room::of(CHARTER).await;
    let [mut app, mut docs, mut sec, mut arch] =
        ["app", "docs", "sec", "arch"].map(|name| room.site.member(name));
    let first = app.offer("pub fn parse(input: &[u8]) -> Tree {\n    walk(input)\n}\n", 0, &[]).await;
    let text = b"# The manual\n\nRun `atlas parse FILE`.\n".as_slice();
    let digest = docs.upload(&[(b"docs/manual.md".as_slice(), text)]).await.unwrap().digest;
    let manual = proto::ProposeRequest {
        proposal: "manual".to_owned(),
        kind: proto::ArtifactKind::Bundle.into(),
        digest,
        summary: "The manual's first chapter".to_owned(),
        ..Default::default()
    };
    let manual = docs.review.propose(manual).await.unwrap().into_inner().reference;
    room.site.clock.advance(Span(4 * 60 * 1_000_000));
    arch.show("manual").await;
    arch.approve(&manual).await.unwrap();
    sec.show("parser").await;
    let objected = proto::ObjectRequest {
        reference: first,
        text: "It overflows on an input of more than 2 GiB: the width is an i32.".to_owned(),
        at: vec!["src/parser.rs:2".to_owned()],
        failing_test: Some(proto::Run {
            command: "cargo test huge_input".to_owned(),
            exit: Some(101),
            output: Some("thread 'huge_input' panicked: attempt to add with overflow\n".to_owned()),
        }),
        ..Default::default()
    };
    sec.review.object(objected).await.unwrap();
    room.site.clock.advance(Span(7 * 60 * 1_000_000));
    app.objections().await;
    let text =
        "pub fn parse(input: &[u8]) -> Tree {\n    let width = input.len();\n    walk(input, width)\n}\n";
    app.offer(text, 1, &[("o1", "The width is a usize now, and the test is added.")]).await;
    arch.show("parser").await;
    let asked = proto::EscalateRequest {
        subject: "parser".to_owned(),
        text: "sec wants a bound on the input, arch wants none: which is it?".to_owned(),
        ..Default::default()
    };
    arch.escalation.escalate(asked).await.unwrap();
    let claim = proto::SayRequest {
        text: "@sec the width is a usize now: please look again.".to_owned(),
        about: "parser".to_owned(),
        claim: Some(proto::Evidence {
            at: vec!["src/parser.rs:2".to_owned()],
            ran: vec![proto::Run {
                command: "cargo test huge_input".to_owned(),
                exit: Some(0),
                output: None,
            }],
        }),
        ..Default::default()
    };
    room.speaker("app").say(claim).await.unwrap();
    room.site.clock.advance(Span(3 * 60 * 1_000_000));
    room
}

#[tokio::test(flavor = "multi_thread")]
async fn screens_of_the_main_views() {
    let room = busy().await;
    let browser = Browser::start().await;
    browser.enter(&room.link("dana").await).await;
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/page");
    let names = ["now", "proposals", "proposal", "room", "roster", "charter"];
    for ((hash, shows), name) in VIEWS.into_iter().zip(names) {
        browser.run(&format!("location.hash = '{hash}'")).await;
        browser.sees(shows).await;
        if name == "proposal" {
            browser.run("document.querySelector('#diff-from').value = '1'").await;
            browser.click("form[data-do=diff] button").await;
            browser.until("document.querySelector('tr.add .text')").await;
            browser.run("window.scrollTo(0, 0)").await;
        }
        let more = if ["now", "proposal"].contains(&name) { 3 } else { 1 };
        for (kind, width, dark) in
            [("", 1100, false), ("-dark", 1100, true), ("-phone", 375, false)].into_iter().take(more)
        {
            browser.size(width, 760).await;
            browser.dark(dark).await;
            let png = bytes_of(&browser.screen().await);
            assert!(png.starts_with(b"\x89PNG"), "{name}{kind}");
            // Pixels differ between machines; that there is a picture of each view doesn't.
            let file = folder.join(format!("{name}{kind}.png"));
            if std::env::var_os("UPDATE").is_some() {
                std::fs::create_dir_all(&folder).unwrap();
                std::fs::write(file, png).unwrap();
            } else {
                assert!(file.exists(), "{}: take it by UPDATE=1", file.display());
            }
        }
    }
    let loaded = "return performance.getEntriesByType('resource').filter((one) => !one.name.includes('/api/')) \
                  .reduce((sum, one) => sum + one.transferSize, performance.getEntriesByType('navigation')[0].transferSize)";
    let drawn = "return performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd";
    println!("loaded and run after {} ms", browser.run(drawn).await);
    println!("the shell: {} bytes", browser.run(loaded).await);
}

/// The bytes that a base64 text stands for.
fn bytes_of(text: &str) -> Vec<u8> {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let (mut out, mut bits, mut held) = (Vec::new(), 0, 0_u32);
    for digit in text.bytes().filter_map(|byte| DIGITS.iter().position(|digit| *digit == byte)) {
        held = held << 6 | u32::try_from(digit).unwrap();
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            out.push((held >> bits & 0xff) as u8);
        }
    }
    out
}
