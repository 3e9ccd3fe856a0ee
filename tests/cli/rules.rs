//! Rules of a team's own, as whoever convenes the team has them: written, tried, put in force, counted.

use super::code;
use super::place::{Place, charter, text};

const TICKET: &str = r##"title = "A version names its ticket"
incident = "Nobody could say later why the buffer had shrunk."
when = "propose"
about = "proposal"
deny = "!offer.summary.matches('#[0-9]+')"
message = "version {offer.version} of {proposal.name} names no ticket"
owes = "producer"
remedy = "countersign propose {proposal.name} --path DIR --summary '#TICKET: TEXT'"

[[examples.deny]]
because = "the summary names none"

[[examples.pass]]
because = "it names one"
offer.summary = "#12: the lock moved"
"##;

fn ruled() -> String {
    charter("") + "\n[rules]\nfolder = \"rules\"\n"
}

fn rule_of<'a>(listed: &'a serde_json::Value, id: &str) -> &'a serde_json::Value {
    listed["rules"].as_array().unwrap().iter().find(|rule| rule["id"] == id).unwrap()
}

#[test]
fn an_incident_becomes_a_rule_that_denies() {
    let mut place = Place::served();
    let first = place.propose("fn lex() {}\n");
    place.write("rules/propose/names-a-ticket.toml", TICKET);
    place.write("next.toml", ruled());

    // On its examples, without a server; a shipped rule's are run with them.
    let tested = place.run(&["--json", "rules", "test", "--charter", "next.toml"]).done().json();
    let own = rule_of(&tested, "propose/names-a-ticket");
    assert_eq!((&own["own"], &own["examples"]), (&true.into(), &2.into()));
    assert_eq!(rule_of(&tested, "confirm/unread")["own"], false);
    assert_eq!(place.run(&["--json", "rules", "test", "--folder", "rules"]).done().json(), tested);

    // On the team as it is: what it would have refused, and nothing is changed.
    let before = place.run(&["--json", "--as", "sec", "log"]).done().json();
    let check = ["--json", "--as", "sec", "rules", "check", "--rule", "rules/propose/names-a-ticket.toml"];
    let tried = place.run(&check).done().json();
    assert_eq!((&tried["asked"], &tried["denied"]), (&1.into(), &1.into()));
    assert_eq!(tried["requirements"][0]["name"], format!("propose/names-a-ticket {first}"));
    assert_eq!(place.run(&["--json", "--as", "sec", "log"]).done().json(), before);
    let shown = place.run(&check[1..]).done().out;
    assert!(shown.contains("asked about 1 thing of the team now, it denies 1:"), "{shown}");

    // In force, with its text in the log, and told by the diff.
    let checked = place.run(&["--json", "--as", "dana", "charter", "check", "next.toml"]).done().json();
    let added = "own rule propose/names-a-ticket: added";
    assert!(checked["diff"].as_array().unwrap().contains(&added.into()), "{checked}");
    let adopt = ["--json", "--as", "dana", "charter", "adopt", "next.toml", "--reason", "see the buffer"];
    assert_eq!(place.run(&adopt).done().json()["diff"], checked["diff"]);
    let in_force = place.run(&["--json", "--as", "app", "charter", "show"]).done().json();
    assert_eq!(in_force["rules"], serde_json::json!([{ "id": "propose/names-a-ticket", "text": TICKET }]));
    assert!(
        place
            .run(&["--as", "app", "charter", "show"])
            .done()
            .out
            .contains("----- begin own rule propose/names-a-ticket -----")
    );

    // It denies, by name, also after the server was away; how often is counted.
    place.write("work/src/lexer.rs", "fn lex() -> u8 { 1 }\n");
    let propose = ["--json", "--as", "app", "propose", "parser", "--path", "work", "--summary", "smaller"];
    let denied = place.run(&propose);
    assert_eq!((code(&denied), denied.exit), ("RULE_DENIED".to_owned(), 1));
    let violation = &denied.json()["violations"][0];
    assert_eq!(violation["rule"], "propose/names-a-ticket");
    assert!(text(&violation["remedy"]).starts_with("app can: countersign propose parser"), "{violation}");
    place.run(&propose);
    let listed = place.run(&["--json", "--as", "app", "rules", "list"]).done().json();
    let rule = rule_of(&listed, "propose/names-a-ticket");
    assert_eq!((&rule["own"], &rule["denied"], &rule["mode"]), (&true.into(), &2.into(), &"enforce".into()));
    let told = place.run(&["--as", "app", "rules", "list"]).done().out;
    assert!(told.contains("propose/names-a-ticket, own, denied 2 times\n"), "{told}");

    place.end_server();
    place.serve();
    assert_eq!(code(&place.run(&propose)), "RULE_DENIED");
    let named = [&propose[..8], &["#12: smaller"]].concat();
    place.run(&named).done();

    // The same text with another rule beside it is another revision.
    place.write("rules/propose/names-a-ticket.toml", TICKET.replace("names no ticket", "has no ticket"));
    let again = place.run(&adopt).done().json();
    assert_eq!(again["diff"], serde_json::json!(["own rule propose/names-a-ticket: changed"]));
    assert_eq!(code(&place.run(&adopt)), "UNCHANGED_CHARTER");
}

#[test]
fn what_the_referee_calls_out_is_told_and_counted() {
    let place = Place::served();
    let first = place.propose("fn lex() {}\n");
    place.run(&["--as", "sec", "show", &first]).done();
    place.run(&["--as", "sec", "object", &first, "it is 40 % slower"]).done();
    let log = place.run(&["--as", "dana", "log"]).done().out;
    assert!(log.contains("called-out") && log.contains("text/claim-without-evidence"), "{log}");
    let listed = place.run(&["--json", "--as", "dana", "rules", "list"]).done().json();
    for id in ["text/claim-without-evidence", "text/number-without-method"] {
        assert_eq!(rule_of(&listed, id)["called_out"], 1, "{id}");
    }
    assert_eq!(rule_of(&listed, "text/total-without-breakdown")["called_out"], 0);
}

#[test]
fn rules_that_cannot_be_put_in_force_are_told_at_their_place_before_anything_is_made() {
    let place = Place::empty();
    place.write("charter.toml", ruled());
    // A folder that isn't there, one without rules, a rule with slips, an example that fails.
    let init = ["--json", "init", "--charter", "charter.toml"];
    assert_eq!(code(&place.run(&init)), "RULE_REFUSED");
    place.write("rules/README.md", "ours\n");
    assert_eq!(code(&place.run(&init)), "RULE_REFUSED");
    place.write("rules/propose/slip.toml", TICKET.replace("offer.summary.matches", "offer.sumary.matches"));
    let slip = place.run(&init);
    assert_eq!(code(&slip), "RULE_REFUSED");
    let finding = &slip.json()["facts"]["findings"][0];
    assert_eq!((&finding["line"], &finding["nearest"]), (&5.into(), &"summary".into()));
    assert_eq!(code(&place.run(&["--json", "charter", "check", "charter.toml"])), "RULE_REFUSED");
    assert!(!place.path(".countersign").exists(), "nothing was made");

    place.write("rules/propose/slip.toml", TICKET.replace("#12: the lock", "the lock"));
    let failing = place.run(&["--json", "rules", "test"]);
    assert_eq!((code(&failing), failing.exit), ("EXAMPLES_FAILED".to_owned(), 1));
    assert!(
        text(&failing.json()["message"]).contains("propose/slip, line 13: it must pass"),
        "{}",
        failing.out
    );

    place.write("rules/propose/slip.toml", TICKET);
    place.run(&init).done();

    // A mode for a rule that isn't there is a slip as well.
    let misnamed = ruled() + "\"propose/slipp\" = \"off\"\n";
    place.write("other.toml", &misnamed);
    let told = place.run(&["--json", "charter", "check", "other.toml"]);
    assert_eq!(told.json()["facts"]["findings"][0]["nearest"], "propose/slip");
}

#[test]
fn whoever_tries_to_close_anothers_objection_is_refused_counted_and_seen() {
    let place = Place::served();
    let first = place.propose("fn lex() {}\n");
    place.run(&["--as", "sec", "show", &first]).done();
    place.run(&["--as", "sec", "object", &first, "no", "--at", "src/lexer.rs"]).done();
    for member in ["app", "app", "arch"] {
        let refused =
            place.run(&["--json", "--as", member, "resolve", "o1", "--mistaken", "--reason", "it is fine"]);
        assert_eq!(code(&refused), "NOT_OBJECTOR");
    }
    let overruled = place.run(&["--json", "--as", "app", "overrule", "o1", "--reason", "it is fine"]);
    assert_eq!(code(&overruled), "NOT_A_PERSON");

    let status = place.run(&["--json", "--as", "dana", "status"]).done().json();
    let attempts: Vec<_> = status["attempts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| (text(&one["member"]), text(&one["code"]), one["count"].as_u64().unwrap()))
        .collect();
    let expected = [("app", "NOT_A_PERSON", 1), ("app", "NOT_OBJECTOR", 2), ("arch", "NOT_OBJECTOR", 1)];
    assert_eq!(attempts, expected.map(|(member, code, count)| (member.to_owned(), code.to_owned(), count)));
    let screen = place.run(&["--as", "dana", "status"]).done().out;
    assert!(screen.contains("REFUSED") && screen.contains("NOT_OBJECTOR"), "{screen}");
    assert_eq!(status["proposals"][0]["open_objections"], serde_json::json!(["o1"]));
}
