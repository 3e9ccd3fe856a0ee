//! Much to show, and nothing that jumps.

use std::fmt::Write;

use countersign::wire::proto;

use crate::browser::{Browser, Room};
use crate::screens;

/// How far what stood there moved without a hand on it since it was asked last, and what.
async fn shifts(browser: &Browser) -> Vec<String> {
    let script = "window.shifts ??= []; \
        const saw = (list) => window.shifts.push(...list.getEntries().filter((one) => !one.hadRecentInput)); \
        window.sees ??= (() => { const one = new PerformanceObserver(saw); one.observe({ type: 'layout-shift', buffered: true }); return one; })(); \
        requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(() => { \
            saw({ getEntries: () => window.sees.takeRecords() }); \
            done(window.shifts.splice(0).map((one) => one.value + ': ' + (one.sources ?? []).map((source) => source.node?.outerHTML?.slice(0, 80) + \
            ' from ' + [source.previousRect, source.currentRect].map((at) => [at.x, at.y, at.width, at.height].join(' ')).join(' to ')).join(' | '))); \
        })))";
    let shifts = browser.run_until_done(script).await;
    shifts.as_array().unwrap().iter().map(|one| one.as_str().unwrap().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_moves_as_the_first_view_comes_nor_when_something_happens() {
    let room = screens::busy().await;
    let browser = Browser::start().await;
    browser.enter(&room.link("dana").await).await;
    browser.is_live().await;
    assert_eq!(shifts(&browser).await, [""; 0], "the first view");
    // Any view may be the first one.
    for (hash, shows) in screens::VIEWS {
        browser.view(hash, shows).await;
        browser.reload().await;
        browser.sees(shows).await;
        browser.is_live().await;
        assert_eq!(shifts(&browser).await, [""; 0], "{hash}");
    }
    // What is as long as before moves nothing else: a card whose reviewer reads, a member who listens.
    let room = Room::bundles().await;
    room.site.member("app").offer("fn parse() {}\n", 0, &[]).await;
    browser.enter(&room.link("dana").await).await;
    browser.is_live().await;
    browser.view("#/proposals", "sec security not read").await;
    // Another view was opened by no hand.
    shifts(&browser).await;
    room.site.member("sec").show("parser").await;
    browser.sees("sec security read").await;
    assert_eq!(shifts(&browser).await, [""; 0], "a reading");
    browser.view("#/roster", "never seen").await;
    shifts(&browser).await;
    let mut dana = room.listener("dana");
    let listens = proto::ListenRequest { stays: true, ..Default::default() };
    let mut heard = dana.listen(listens).await.unwrap().into_inner();
    heard.message().await.unwrap();
    browser.sees("1 of them can hear now").await;
    assert_eq!(shifts(&browser).await, [""; 0], "a member who listens");
}

#[tokio::test(flavor = "multi_thread")]
async fn two_hundred_proposals_are_on_the_board_and_found() {
    const COUNT: usize = 200;
    let mut charter = String::from(
        "[team]\nname = \"atlas\"\n\n[members.app]\n\n[members.sec]\n\n[members.dana]\nkind = \"human\"\n\n\
         [[phases]]\nname = \"implement\"\nconfirm = \"together\"\n\
         reviews = [{ reviewer = \"sec\", of = \"app\", lens = \"security\" }]\ndeliverables = [\n",
    );
    for number in 1..COUNT {
        writeln!(charter, "    {{ name = \"part-{number}\", producer = \"app\" }},").unwrap();
    }
    charter.push_str("    { name = \"parser\", producer = \"app\" },\n]\n");
    let room = Room::of(&charter).await;
    let browser = Browser::start().await;
    room.site.member("app").offer("fn parse() {}\n", 0, &[]).await;
    browser.enter(&room.link("dana").await).await;
    browser.view("#/proposals", "part-199").await;
    let cards = "document.querySelectorAll('.card').length";
    assert_eq!(browser.value(cards).await, COUNT);
    assert_eq!(browser.value("document.querySelectorAll('.to-deliver .card').length").await, COUNT - 1);
    // What happens to one is seen to, and the others stay what they are.
    browser.run("window.other = document.querySelector('.card[href=\"#/proposals/part-7\"]')").await;
    room.site.member("sec").show("parser").await;
    browser.sees("sec security read").await;
    assert_eq!(browser.value("window.other.isConnected").await, true);
    browser.keys("/").await;
    browser.until("document.activeElement.type === 'search'").await;
    browser.keys("part-19").await;
    browser.until(&format!("{cards} === 11")).await;
    // Who comes back finds the filter as it was, in the field and on the board.
    browser.view("#/now", "Who owes what").await;
    browser.view("#/proposals", "part-19").await;
    assert_eq!(browser.value("document.getElementById('filter').value").await, "part-19");
    assert_eq!(browser.value(cards).await, 11);
    assert_eq!(browser.value("document.documentElement.scrollWidth <= innerWidth").await, true);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_each_revision_of_the_charter_changed_is_shown() {
    let room = Room::bundles().await;
    let browser = Browser::start().await;
    browser.enter(&room.link("dana").await).await;
    browser.view("#/charter", "What revision 1 changed").await;
    browser.sees("It is the first.").await;
    let grown = crate::site::charter("atlas")
        .replace("[members.app]", "[members.ann]\nabout = \"reads all\"\n\n[members.app]");
    room.adopt(&grown).await;
    browser.sees("What revision 2 changed").await;
    browser.until("document.querySelector('[aria-labelledby=revisions] ul').textContent.includes('member ann: added')").await;
    browser.click("[data-do=revision][data-number='1']").await;
    browser.sees("It is the first.").await;
    browser.click("[data-do=revision][data-number='2']").await;
    browser.until("document.querySelector('[aria-labelledby=revisions] ul').textContent.includes('member ann: added')").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn presence_alone_is_asked_for_each_second_and_events_once() {
    let room = Room::bundles().await;
    let browser = Browser::start().await;
    room.site.member("app").offer("fn parse() {}\n", 0, &[]).await;
    browser.enter(&room.link("dana").await).await;
    browser.is_live().await;
    let asked = |path: &str| {
        format!(
            "performance.getEntriesByType('resource').filter((one) => one.name.includes('/api/{path}')).length"
        )
    };
    browser.view("#/roster", "can hear now").await;
    browser.until(&format!("{} >= 2", asked("roster"))).await;
    let before = browser.value(&asked("status")).await;
    browser.until(&format!("{} >= 6", asked("roster"))).await;
    assert_eq!(browser.value(&asked("status")).await, before);
    // A proposal's events are read on from the last one that was read.
    browser.view("#/proposals/parser", "offered version 1").await;
    let whole = browser.value(&asked("proposals/parser/timeline?after=0&")).await;
    room.site.member("sec").show("parser").await;
    browser.sees("was shown version 1").await;
    browser.sees("offered version 1").await;
    assert_eq!(browser.value(&asked("proposals/parser/timeline?after=0&")).await, whole);
}
