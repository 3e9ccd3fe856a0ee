//! Accessible, by axe-core: every view, light and dark, wide and narrow.

use std::path::PathBuf;

use crate::browser::Browser;
use crate::screens;

fn axe() -> String {
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache"))).unwrap();
    let tools = cache.join("countersign-tools");
    let file = tools.join("node_modules/axe-core/axe.min.js");
    let tools = tools.display();
    std::fs::read_to_string(&file)
        .unwrap_or_else(|_| panic!("axe-core is needed: npm install --prefix {tools} axe-core@4"))
}

#[tokio::test(flavor = "multi_thread")]
async fn no_view_has_a_finding_that_is_serious_and_none_is_wider_than_a_phone() {
    let room = screens::busy().await;
    let browser = Browser::start().await;
    browser.enter(&room.link("dana").await).await;
    browser.run(&axe()).await;
    let mut found = Vec::new();
    for (hash, shows) in screens::VIEWS {
        browser.run(&format!("location.hash = '{hash}'")).await;
        browser.sees(shows).await;
        for (width, dark) in [(1280, false), (1280, true), (375, false), (375, true)] {
            browser.size(width, 800).await;
            browser.dark(dark).await;
            let script = "axe.run(document, { resultTypes: ['violations'] }).then((found) => done( \
                          found.violations.filter((one) => ['serious', 'critical'].includes(one.impact)) \
                          .map((one) => one.id + ': ' + one.nodes.map((node) => node.html + ' ' + node.failureSummary).join(' | '))), \
                          (why) => done([String(why)]))";
            for finding in browser.run_until_done(script).await.as_array().unwrap() {
                found.push(format!("{hash} at {width}, dark {dark}: {finding}"));
            }
            let wide = browser.run("return document.documentElement.scrollWidth - innerWidth").await;
            if wide.as_i64().unwrap() > 0 {
                found.push(format!("{hash} at {width}: {wide} pixels too wide"));
            }
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
    assert_eq!(browser.complaints().await, [""; 0]);
}
