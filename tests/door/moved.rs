//! Refs that move without the server are put before a person, who says where they belong.

use super::place::text;
use super::shop::Shop;

/// The id of the open escalation about a moved main.
pub fn told(shop: &Shop) -> String {
    let (id, decisions) = told_of(shop, "refs/heads/main");
    assert_eq!(decisions, serde_json::json!(["put-back", "accept-move"]));
    id
}

/// The id of the open escalation about that ref, and the decisions that answer it.
pub fn told_of(shop: &Shop, name: &str) -> (String, serde_json::Value) {
    shop.until("a moved ref is before dana", || {
        // Whoever looks has the server look.
        shop.moved();
        let status = shop.by("dana", &["status"]).done().json();
        let mut open = status["escalations"].as_array().unwrap().iter();
        let found = open.find(|one| one["cause"] == "moved-ref" && one["subject"] == name)?;
        Some((text(&found["id"]), found["decisions"].clone()))
    })
}

pub fn behind_the_door(shop: &Shop) -> (String, String) {
    let before = shop.at("refs/heads/main");
    shop.place.commit("bee", "src/evil.rs", "fn evil() {}\n");
    let head = shop.place.git("bee", &["rev-parse", "HEAD"]);
    shop.place.git("bee", &["push", "-q", "origin", "HEAD:refs/heads/free"]);
    shop.place.git("atlas.git", &["update-ref", "refs/heads/main", &head]);
    (before, head)
}

pub fn answer(shop: &Shop, id: &str, decision: &str) {
    let args = ["escalations", "answer", id, "--decide", decision, "--reason", "we looked"];
    shop.by("dana", &args).done();
}

#[test]
fn a_moved_ref_is_told_once_and_put_back_by_a_persons_decision() {
    let shop = Shop::served("", "each");
    let (before, head) = behind_the_door(&shop);
    let id = told(&shop);
    let shown = shop.by("dana", &["status"]).done().json();
    let said = text(&shown["escalations"][0]["text"]);
    assert_eq!(said, format!("refs/heads/main moved without the server, from {before} to {head}"));
    for bad in ["dismiss", "extend"] {
        let args = ["escalations", "answer", &id, "--decide", bad, "--reason", "no"];
        assert_eq!(shop.by("dana", &args).json()["code"], "DECISION_UNFIT", "{bad}");
    }
    let args = ["escalations", "answer", &id, "--decide", "put-back", "--reason", "mine"];
    assert_eq!(shop.by("app", &args).json()["code"], "NOT_A_PERSON");
    shop.moved();
    assert_eq!(told(&shop), id, "one episode, one escalation");
    answer(&shop, &id, "put-back");
    shop.until("it is put back", || (shop.at("refs/heads/main") == before).then_some(()));
    assert_eq!(shop.moved(), [""; 0]);
    let log = shop.until("it is recorded", || {
        let log = shop.by("dana", &["log"]).done().out;
        log.contains("ref-put-back").then_some(log)
    });
    assert_eq!(log.matches("\"moved-ref\"").count(), 1, "told once");
    // The same again is another episode.
    shop.place.git("atlas.git", &["update-ref", "refs/heads/main", &head]);
    assert_ne!(told(&shop), id);
}

#[test]
fn nothing_is_published_onto_a_moved_ref_until_a_person_took_it_as_it_is() {
    let mut shop = Shop::served("", "each");
    shop.reviewed("app", "parser", "src/parser.rs", "fn parse() {}\n");
    let (_, head) = behind_the_door(&shop);
    shop.confirm("parser", &["app", "sec"]);
    // It is looked at before anything moves: no timer has to come first.
    let id = shop.until("it is told", || {
        let status = shop.by("dana", &["status"]).done().json();
        let open = status["escalations"].as_array().unwrap();
        open.first().map(|one| text(&one["id"]))
    });
    assert_eq!(shop.escalations(), [("moved-ref".to_owned(), "refs/heads/main".to_owned())]);
    // A server that is killed and comes back tells nobody again, and waits as well.
    shop.place.kill_server();
    shop.place.serve();
    assert_eq!((shop.at("refs/heads/main"), told(&shop)), (head.clone(), id.clone()));
    assert_eq!(shop.circle("parser")["state"], "complete");
    answer(&shop, &id, "accept-move");
    let published = shop.becomes("parser", "published");
    assert_eq!(published["published"][0]["from"], head.as_str());
    assert_eq!(shop.moved(), [""; 0]);
    assert_eq!(shop.escalations(), []);
}

#[test]
fn a_ref_that_somebody_puts_back_by_hand_is_no_question_any_longer() {
    let shop = Shop::served("", "each");
    let (before, head) = behind_the_door(&shop);
    told(&shop);
    shop.place.git("atlas.git", &["update-ref", "refs/heads/main", &before, &head]);
    shop.until("the question closes", || {
        shop.moved();
        shop.escalations().is_empty().then_some(())
    });
}

#[test]
fn what_moves_while_a_check_runs_is_told_before_anything_is_published_onto_it() {
    let check =
        "check = '''touch ../../../../../began; until [ -e ../../../../../go ]; do sleep 0.01; done'''";
    let shop = Shop::served(check, "each");
    shop.reviewed("app", "parser", "src/parser.rs", "fn parse() {}\n");
    let reviewed = shop.place.git("app", &["rev-parse", "HEAD"]);
    shop.confirm("parser", &["app", "sec"]);
    shop.appears("began");
    let (before, head) = behind_the_door(&shop);
    shop.place.write("go", "");
    let id = shop.until("it is told", || {
        let open = shop.by("dana", &["status"]).done().json()["escalations"].as_array().unwrap().clone();
        open.first().map(|one| text(&one["id"]))
    });
    assert_eq!(shop.escalations(), [("moved-ref".to_owned(), "refs/heads/main".to_owned())]);
    assert_eq!(
        (shop.at("refs/heads/main"), shop.circle("parser")["state"].as_str()),
        (head, Some("complete"))
    );
    answer(&shop, &id, "put-back");
    shop.becomes("parser", "published");
    assert!(shop.holds(&reviewed) && shop.holds(&before));
    assert_eq!(shop.moved(), [""; 0]);
}
