//! How long the room page takes until its first view stands, in a real browser on this machine.
//!
//! `cargo bench --bench page [-- --quick]`
//!
//! Budget: under 300 ms, for a team with 200 proposals of which one is under review: from the beginning of a load
//! by who is signed in to the last of its large paints. The shell's bytes are a test's to bound.

// The browser is that of the tests, which may.
#![allow(clippy::unwrap_used)]

#[path = "../tests/page/browser.rs"]
#[allow(dead_code)] // The tests use the rest of it.
mod browser;
mod figures;
#[path = "../tests/server/site.rs"]
#[allow(dead_code)] // As above.
mod site;

use std::fmt::Write;

use browser::{Browser, Room};
use figures::at_most;

const PROPOSALS: usize = 200;
const BUDGET_MS: f64 = 300.0;

/// When the page was painted last, in milliseconds from the beginning of its load.
const PAINTED: &str = "new PerformanceObserver((list) => done(list.getEntries().at(-1).startTime)) \
                       .observe({ type: 'largest-contentful-paint', buffered: true })";

#[tokio::main]
async fn main() {
    let rounds = if figures::quick() { 5 } else { 25 };
    let room = Room::of(&charter()).await;
    room.site.member("app").offer("fn parse() {}\n", 0, &[]).await;
    let browser = Browser::start().await;
    browser.enter(&room.link("dana").await).await;
    println!("milliseconds until the first view of a team with {PROPOSALS} proposals; {rounds} rounds");
    for (what, hash, shows) in
        [("what waits", "#/now", "Who owes what"), ("the board", "#/proposals", "part-199")]
    {
        browser.view(hash, shows).await;
        let mut took = Vec::new();
        for _ in 0..rounds {
            browser.reload().await;
            browser.sees(shows).await;
            took.push(browser.run_until_done(PAINTED).await.as_f64().unwrap());
        }
        let worst = took.iter().copied().fold(0.0, f64::max);
        let median = figures::median(&mut took);
        let verdict = at_most(median, BUDGET_MS);
        println!("{what:>12}  {median:.0} ms, at worst {worst:.0}; at most {BUDGET_MS} ms: {verdict}");
    }
}

fn charter() -> String {
    let mut charter = String::from(
        "[team]\nname = \"atlas\"\n\n[members.app]\n\n[members.sec]\n\n[members.dana]\nkind = \"human\"\n\n\
         [[phases]]\nname = \"implement\"\nconfirm = \"together\"\n\
         reviews = [{ reviewer = \"sec\", of = \"app\", lens = \"security\" }]\ndeliverables = [\n\
         {name = \"parser\", producer = \"app\" },\n",
    );
    for number in 1..PROPOSALS {
        writeln!(charter, "    {{ name = \"part-{number}\", producer = \"app\" }},").unwrap();
    }
    charter + "]\n"
}
