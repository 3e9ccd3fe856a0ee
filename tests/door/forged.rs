//! Records of what was published, as others write them, and as a server leaves them that dies at the worst moment.

use super::moved::{answer, behind_the_door, told, told_of};
use super::place::text;
use super::shop::{Shop, charter};

/// Blocks the first time, until somebody writes into `go`, and passes at once where there is `free`.
const BLOCKING: &str = "check = '''cd ../../../../..; echo $$ >> began; test -e free || read go < go'''";

fn blocking(publish: &str) -> Shop {
    let shop = Shop::served(&format!("{BLOCKING}{publish}"), "each");
    let made = std::process::Command::new("mkfifo").arg(shop.place.path("go")).status().unwrap();
    assert!(made.success());
    shop
}

fn go_on(shop: &Shop) {
    shop.place.write("free", "");
    std::fs::write(shop.place.path("go"), "go\n").unwrap();
}

/// What the completed circle holds, by its whole digest.
fn manifest(shop: &Shop) -> String {
    let log = shop.by("dana", &["log"]).done().json();
    let mut events = log["events"].as_array().unwrap().iter();
    let completed = events.find(|event| event["kind"] == "circle-completed").expect("it is complete");
    text(&completed["body"]["manifest"])
}

#[test]
fn a_forged_record_takes_a_branch_nowhere_and_is_told_as_a_moved_ref() {
    let mut shop = blocking("");
    shop.reviewed("app", "parser", "src/parser.rs", "fn parse() {}\n");
    let before = shop.at("refs/heads/main");
    shop.place.commit("bee", "src/evil.rs", "fn evil() {}\n");
    let evil = shop.place.git("bee", &["rev-parse", "HEAD"]);
    shop.place.git("bee", &["push", "-q", "origin", "HEAD:refs/heads/free"]);
    shop.confirm("parser", &["app", "sec"]);
    shop.appears("began");
    let manifest = manifest(&shop);
    let refs = serde_json::json!([{ "ref": "refs/heads/main", "from": before, "to": evil }]);
    shop.place.write("record", serde_json::json!({ "manifest": manifest, "refs": refs }).to_string());
    let blob = shop.place.git("atlas.git", &["hash-object", "-w", "../record"]);
    let record = format!("refs/countersign/+published/{manifest}");
    shop.place.git("atlas.git", &["update-ref", &record, &blob]);
    go_on(&shop);
    let (id, decisions) = told_of(&shop, &record);
    assert_eq!(decisions, serde_json::json!(["put-back"]), "it is the server's alone");
    let accept = ["escalations", "answer", &id, "--decide", "accept-move", "--reason", "no"];
    assert_eq!(shop.by("dana", &accept).json()["code"], "DECISION_UNFIT");
    assert_eq!(shop.at("refs/heads/main"), before);
    assert_eq!(shop.place.run_in("app", &["--json", "check", "--commit", &evil]).exit, 1);
    assert_eq!(shop.moved(), [record.as_str()]);
    // Without a server the audit says the same.
    shop.place.kill_server();
    assert_eq!(shop.moved(), [record.as_str()]);
    // Also where somebody moved the branch to where the record says.
    shop.place.git("atlas.git", &["update-ref", "refs/heads/main", &evil]);
    assert_eq!(shop.moved(), [record.as_str(), "refs/heads/main"]);
    shop.place.git("atlas.git", &["update-ref", "refs/heads/main", &before]);
    shop.place.serve();
    answer(&shop, &id, "put-back");
    let published = shop.becomes("parser", "published");
    assert_eq!(published["published"][0]["to"], shop.place.git("app", &["rev-parse", "HEAD"]).as_str());
    assert!(!shop.holds(&evil));
    assert_eq!((shop.moved(), shop.escalations()), (Vec::<String>::new(), Vec::new()));
}

/// A server that has written its record and is gone before git has moved the branch: where that was.
fn cut_between(shop: &mut Shop) -> String {
    shop.place.serve_in(&[("COUNTERSIGN_CUT", "after-move")]);
    let before = shop.at("refs/heads/main");
    shop.reviewed("app", "parser", "src/parser.rs", "fn parse() {}\n");
    let reference = text(&shop.circle("parser")["ref"]);
    shop.by("app", &["confirm", &reference]).done();
    // The answer may be lost with the server.
    shop.by("sec", &["confirm", &reference]);
    shop.place.server_died();
    shop.place.git("atlas.git", &["update-ref", "refs/heads/main", &before]);
    before
}

#[test]
fn a_record_whose_branch_never_moved_is_no_strangers_and_is_published_again() {
    let mut shop = Shop::unserved("", "each");
    let before = cut_between(&mut shop);
    assert_eq!(shop.moved(), [""; 0], "nobody moved anything");
    shop.place.serve();
    let published = shop.becomes("parser", "published");
    assert_eq!(published["published"][0]["from"], before.as_str());
    assert_eq!(shop.at("refs/heads/main"), shop.place.git("app", &["rev-parse", "HEAD"]));
    assert_eq!(shop.moved(), [""; 0]);
    assert_eq!(shop.escalations(), []);
}

#[test]
fn a_branch_that_was_moved_elsewhere_meanwhile_gets_the_commit_all_the_same() {
    let mut shop = Shop::unserved("", "each");
    let before = cut_between(&mut shop);
    shop.place.commit("bee", "src/other.rs", "fn other() {}\n");
    let other = shop.place.git("bee", &["rev-parse", "HEAD"]);
    // The door is shut: no server runs.
    shop.place.git("atlas.git", &["fetch", "-q", "../bee", "HEAD"]);
    shop.place.git("atlas.git", &["update-ref", "refs/heads/main", &other]);
    shop.place.serve();
    let id = told(&shop);
    let status = shop.by("dana", &["status"]).done().json();
    let said = text(&status["escalations"][0]["text"]);
    assert_eq!(said, format!("refs/heads/main moved without the server, from {before} to {other}"));
    answer(&shop, &id, "accept-move");
    let published = shop.becomes("parser", "published");
    assert_eq!(published["published"][0]["from"], other.as_str());
    let commit = shop.place.git("app", &["rev-parse", "HEAD"]);
    assert!(shop.holds(&commit) && shop.holds(&other), "nothing is lost");
    assert_eq!(shop.moved(), [""; 0]);
}

/// The same charter with another branch to publish to.
fn retargeted(publish: &str, confirm: &str) -> String {
    let charter = charter(publish, confirm);
    charter.replace("target = \"refs/heads/main\"", "target = \"refs/heads/release/1\"")
}

fn adopt(shop: &Shop, charter: String) {
    shop.place.write("app/next.toml", charter);
    let adopt = ["charter", "adopt", "next.toml", "--reason", "for the next release"];
    shop.by("dana", &adopt).done();
}

#[test]
fn a_completed_circle_is_published_to_the_branch_that_it_was_reviewed_for() {
    let shop = Shop::served("", "each");
    shop.reviewed("app", "parser", "src/parser.rs", "fn parse() {}\n");
    behind_the_door(&shop);
    shop.confirm("parser", &["app", "sec"]);
    let id = told(&shop);
    adopt(&shop, retargeted("", "each"));
    let commit = shop.place.git("app", &["rev-parse", "HEAD"]);
    let checked = |target: &str| {
        shop.place.run_in("app", &["--json", "check", "--commit", &commit, "--ref", target]).exit
    };
    assert_eq!((checked("refs/heads/main"), checked("refs/heads/release/1")), (0, 1));
    // The branch that it is meant for is held still.
    assert_eq!(shop.circle("parser")["state"], "complete");
    answer(&shop, &id, "put-back");
    let published = shop.becomes("parser", "published");
    assert_eq!(published["published"][0]["ref"], "refs/heads/main");
    assert_eq!((shop.at("refs/heads/main"), shop.at("refs/heads/release/1")), (commit, String::new()));
    assert_eq!(shop.moved(), [""; 0]);
}

#[test]
fn what_opens_again_was_reviewed_for_the_branch_of_before() {
    let how = "how = \"fast-forward\"\n[rules]\n\"confirm/unmerged\" = \"off\"\n";
    let shop = Shop::served(how, "together");
    shop.reviewed("app", "parser", "src/parser.rs", "fn parse() {}\n");
    shop.reviewed("bee", "lexer", "src/lexer.rs", "fn lex() {}\n");
    let before = shop.at("refs/heads/main");
    let aside = ["commit-tree", "-p", &before, "-m", "aside", &format!("{before}^{{tree}}")];
    let aside = shop.place.git("atlas.git", &aside);
    shop.place.git("atlas.git", &["update-ref", "refs/heads/main", &aside]);
    shop.confirm("implement", &["app", "bee", "sec"]);
    let id = told(&shop);
    adopt(&shop, retargeted(how, "together"));
    let approvals = || {
        let status = shop.by("dana", &["status"]).done().json();
        let proposals = status["proposals"].as_array().unwrap();
        let parser = proposals.iter().find(|one| one["name"] == "parser").unwrap();
        parser["approvals"].as_array().unwrap().len()
    };
    assert_eq!(approvals(), 1);
    answer(&shop, &id, "put-back");
    shop.until("lexer does not follow", || {
        shop.circle("implement")["unpublished_because"].is_string().then_some(())
    });
    assert_eq!((approvals(), shop.at("refs/heads/main")), (0, before));
}

#[test]
fn sixteen_moved_refs_are_before_a_person_at_a_time_and_what_is_waited_for_comes_first() {
    let shop = blocking("");
    shop.reviewed("app", "parser", "src/parser.rs", "fn parse() {}\n");
    shop.confirm("parser", &["app", "sec"]);
    shop.appears("began");
    let main = shop.at("refs/heads/main");
    for number in 1..=40 {
        shop.place.git("atlas.git", &["update-ref", &format!("refs/countersign/aside/{number}"), &main]);
    }
    let aside = shop.place.git("app", &["rev-parse", "HEAD"]);
    shop.place.git("atlas.git", &["update-ref", "refs/heads/main", &aside]);
    let id = told(&shop);
    for _ in 0..3 {
        shop.moved();
    }
    answer(&shop, &id, "put-back");
    shop.until("it is put back", || (shop.at("refs/heads/main") == main).then_some(()));
    shop.until("the next is told", || {
        shop.moved();
        let open = shop.escalations();
        (open.len() == 16 && open.iter().all(|(_, subject)| subject != "refs/heads/main")).then_some(())
    });
    go_on(&shop);
    let log = shop.by("dana", &["log"]).done().json();
    let (mut open, mut most) = (0_usize, 0);
    for event in log["events"].as_array().unwrap() {
        match event["kind"].as_str().unwrap() {
            "escalated" => open += 1,
            "escalation-closed" => open -= 1,
            _ => {}
        }
        most = most.max(open);
    }
    assert_eq!(most, 16);
}
