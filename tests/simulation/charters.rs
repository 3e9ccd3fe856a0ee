//! Random charters: small teams with small limits, so that every limit is reached.

use std::fmt::Write as _;

use super::dice::Dice;

pub const PRODUCERS: [&str; 4] = ["app", "net", "doc", "web"];
pub const REVIEWERS: [&str; 4] = ["sec", "arch", "perf", "qa"];
pub const HUMANS: [&str; 2] = ["dana", "kim"];
const LENSES: [&str; 4] = ["correctness", "security", "design", "concurrency"];
const PHASES: [&str; 3] = ["plan", "implement", "release"];

/// The text of a charter that is accepted.
pub fn random(dice: &mut Dice) -> String {
    let producers = &PRODUCERS[..dice.between(1, 4)];
    let reviewers = &REVIEWERS[..dice.between(1, 4)];
    let humans = &HUMANS[..dice.between(1, 2)];
    let mut text = "[team]\nname = \"atlas\"\n".to_owned();
    if dice.percent(50) {
        text.push_str("[repository]\npath = \"atlas.git\"\nprotected = [\"refs/heads/main\"]\n");
    }
    let _ = writeln!(
        text,
        "[limits]\nwithdraw_cooldown = \"{}s\"\nwithdraw_flips = {}\nrounds = {}\nvote_changes = {}\n\
         notes = {}\ntext_bytes = {}",
        dice.between(1, 120),
        dice.between(1, 3),
        dice.between(1, 4),
        dice.between(1, 3),
        dice.between(1, 2),
        dice.between(48, 64),
    );
    text.push_str("[channels.ops]\ncommand = \"notify\"\n");
    for name in producers.iter().chain(reviewers).chain(humans) {
        let _ =
            writeln!(text, "[members.{name}]\nemails = [\"{name}@example.org\", \"{name}@home.example\"]");
        if humans.contains(name) {
            text.push_str("kind = \"human\"\nnotify = [\"ops\"]\n");
        }
        if dice.percent(60) {
            let _ = writeln!(text, "owns = [\"src/{name}/**\", \"{name}.md\"]");
        }
    }
    if dice.percent(30) {
        text.push_str("[checks]\nrequired = [\"ci\"]\n");
    }
    for phase in &PHASES[..dice.between(1, 3)] {
        push_phase(&mut text, dice, phase, producers, reviewers, humans);
    }
    text
}

fn push_phase(
    text: &mut String,
    dice: &mut Dice,
    phase: &str,
    producers: &[&str],
    reviewers: &[&str],
    humans: &[&str],
) {
    let confirm = if dice.percent(50) { "together" } else { "each" };
    let _ = writeln!(text, "[[phases]]\nname = \"{phase}\"\nconfirm = \"{confirm}\"");
    let mut working = dice.some(producers, 60);
    if working.is_empty() {
        working.push(producers[0]);
    }
    if dice.percent(10) {
        working.push(humans[0]);
    }
    for producer in &working {
        for number in 1..=if dice.percent(25) { 2 } else { 1 } {
            let _ = writeln!(
                text,
                "[[phases.deliverables]]\nname = \"{phase}-{producer}-{number}\"\nproducer = \"{producer}\""
            );
        }
    }
    // Everybody may review, also whoever produces something else.
    let everybody: Vec<&str> =
        reviewers.iter().chain(reviewers).chain(producers).chain(humans).copied().collect();
    for producer in &working {
        let mut edges: Vec<(&str, &str)> = Vec::new();
        for _ in 0..dice.between(1, 4) {
            let reviewer = *dice.pick(&everybody).expect("there is a reviewer");
            let lens = *dice.pick(&LENSES).expect("there are lenses");
            if reviewer != *producer && !edges.contains(&(reviewer, lens)) {
                edges.push((reviewer, lens));
            }
        }
        if edges.is_empty() {
            edges.push((reviewers[0], LENSES[0]));
        }
        for (reviewer, lens) in edges {
            let _ = writeln!(
                text,
                "[[phases.reviews]]\nreviewer = \"{reviewer}\"\nof = \"{producer}\"\nlens = \"{lens}\""
            );
        }
    }
}
