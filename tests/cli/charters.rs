//! Charters, as whoever convenes a team has them.

use super::code;
use super::place::{Place, charter, text};

#[test]
fn a_charter_is_checked_adopted_and_shown() {
    let place = Place::served();
    let first = place.propose("fn lex() {}\n");
    let without_sec = charter("")
        .replace("[members.sec]\n", "[members.new]\n")
        .replace("reviewer = \"sec\"", "reviewer = \"new\"");
    place.write("next.toml", &without_sec);

    // Alone it says what it is; asked as a member, also what it would change.
    let alone = place.run(&["--json", "charter", "check", "next.toml"]).done().json();
    assert!(alone.get("diff").is_none(), "{alone}");
    let known = place.run(&["--json", "--as", "app", "charter", "check", "next.toml"]).done().json();
    assert_eq!((&known["revision"], &known["digest"]), (&2.into(), &alone["digest"]));
    let edge = "edge new → app (security) in implement: added";
    assert!(known["diff"].as_array().unwrap().contains(&edge.into()), "{known}");

    let adopt: &[&str] = &["charter", "adopt", "next.toml"];
    let refused = place.run(&[&["--json", "--as", "app"], adopt].concat());
    assert_eq!((code(&refused), refused.exit), ("NOT_A_PERSON".to_owned(), 1));
    let adopted = place.run(&[&["--json", "--as", "dana"], adopt, &["--reason", "sec is away"]].concat());
    let adopted = adopted.done().json();
    assert_eq!((&adopted["revision"], &adopted["digest"]), (&2.into(), &alone["digest"]));
    assert_eq!(adopted["diff"], known["diff"]);
    let woke: Vec<_> = adopted["woke"].as_array().unwrap().iter().map(|one| text(&one["member"])).collect();
    assert_eq!(woke, ["new"], "who owes a review by it hears of it");

    // Who was added has no token yet, and who was taken away speaks for nobody.
    let vote: &[&str] = &["show", &first];
    assert_eq!(place.run(&[&["--as", "new"], vote].concat()).exit, 5);
    assert_eq!(place.run(&[&["--as", "sec"], vote].concat()).exit, 5);
    place.run(&["member", "token", "new"]).done();
    place.run(&[&["--as", "new"], vote].concat()).done();

    let shown = |args: &[&str]| {
        place.run(&[&["--json", "--as", "app", "charter", "show"], args].concat()).done().json()
    };
    assert_eq!((&shown(&[])["revision"], text(&shown(&[])["text"])), (&2.into(), without_sec));
    assert_eq!(text(&shown(&["--revision", "1"])["text"]), charter(""));
    assert_eq!(shown(&["--diff", "1..2"])["diff"], known["diff"]);
    assert_ne!(shown(&["--diff", "2..1"])["diff"], known["diff"]);
    let unknown = place.run(&["--json", "--as", "app", "charter", "show", "--revision", "3"]);
    assert_eq!(code(&unknown), "UNKNOWN_SUBJECT");
    let log = place.run(&["--json", "--as", "app", "log"]).done().json().to_string();
    assert!(log.contains("\"reason\":\"sec is away\""), "{log}");
}
