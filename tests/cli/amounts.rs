//! Much of everything: files of a version, reasons of a refusal.

use super::code;
use super::place::{Place, charter, text};

#[test]
fn a_bundle_of_very_many_small_files_travels_both_ways() {
    const FILES: usize = 10_000;
    let place = Place::served();
    for number in 0..FILES {
        place.write(&format!("many/{}/{number}", number % 100), number.to_string());
    }
    let proposed =
        place.run(&["--json", "--as", "app", "propose", "parser", "--path", "many", "--summary", "all"]);
    let reference = text(&proposed.done().json()["ref"]);
    for folder in ["one", "two", "three"] {
        let fetched = place.run(&["--json", "--as", "sec", "fetch", &reference, "-o", folder]).done().json();
        assert_eq!(fetched["fetched"]["files"], FILES);
    }
    assert_eq!(std::fs::read_to_string(place.path("three/99/9999")).unwrap(), "9999");
}

#[test]
fn everything_that_blocks_a_confirmation_arrives_however_much_it_is() {
    let one = "{ name = \"parser\", producer = \"app\" }";
    let held = (0..40).map(|n| format!(", {{ name = \"part-{n}\", producer = \"app\" }}"));
    let given = charter("").replacen(one, &format!("{one}{}", held.collect::<String>()), 1);
    let mut place = Place::with(&given);
    place.serve();
    let status = place.run(&["--json", "--as", "sec", "status"]).done().json();
    let circle = text(&status["circles"][0]["ref"]);
    let refused = place.run(&["--json", "--as", "sec", "confirm", &circle]);
    assert_eq!((refused.exit, code(&refused).as_str()), (1, "CONFIRM_BLOCKED"));
    let explained = place.run(&["--json", "--as", "sec", "explain", "implement"]).done().json();
    let unmet = explained["requirements"].as_array().unwrap().iter();
    let unmet = unmet.filter(|requirement| requirement["state"] == "UNSATISFIED").count();
    let violations = refused.json()["violations"].as_array().unwrap().clone();
    assert_eq!(unmet, 41, "one for each deliverable");
    assert_eq!(violations.len(), unmet, "every rule, for each that it is about");
    assert!(violations.iter().all(|violation| violation["code"] == "CONFIRM_BLOCKED"
        && violation["rule"].as_str().unwrap().starts_with("confirm/")
        && !violation["remedy"].as_str().unwrap().is_empty()));
}
