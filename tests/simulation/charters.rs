//! Random charters: small teams with small limits, so that every limit is reached; and random changes to
//! the charter in force, most of which a team can go on under.

use std::fmt::Write as _;

use countersign::protocol::charter::{
    Charter, ConfirmKind, Deliverable, MemberKind, Phase, ReviewEdge, RuleMode,
};
use countersign::protocol::name::MemberName;

use super::dice::Dice;

pub const PRODUCERS: [&str; 4] = ["app", "net", "doc", "web"];
pub const REVIEWERS: [&str; 4] = ["sec", "arch", "perf", "qa"];
pub const HUMANS: [&str; 2] = ["dana", "kim"];
const LENSES: [&str; 4] = ["correctness", "security", "design", "concurrency"];
const PHASES: [&str; 3] = ["plan", "implement", "release"];

/// The rules that a charter may take less strictly.
const RULES: [&str; 14] = [
    "confirm/already-landed",
    "confirm/approval-missing",
    "confirm/failing-test",
    "confirm/open-escalation",
    "confirm/open-objection",
    "confirm/own-unaccepted",
    "confirm/required-check",
    "confirm/reviewer-ineligible",
    "confirm/unchecked-consensus",
    "confirm/undelivered",
    "confirm/undoes-landed",
    "confirm/unmerged",
    "confirm/unread",
    "confirm/unresolved-objection",
];

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
    if dice.percent(20) {
        text.push_str("[rules]\n");
        for rule in dice.some(&RULES, 15) {
            let _ = writeln!(text, "\"{rule}\" = \"{}\"", if dice.percent(50) { "warn" } else { "off" });
        }
    }
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

/// The charter in force, changed in one to three places.
pub fn changed(dice: &mut Dice, charter: &Charter) -> Charter {
    let mut new = charter.clone();
    for _ in 0..dice.between(1, 3) {
        change(dice, &mut new);
    }
    new
}

fn change(dice: &mut Dice, charter: &mut Charter) {
    let members: Vec<MemberName> = charter.members.keys().cloned().collect();
    let somebody = dice.pick(&members).cloned().expect("a team has members");
    let other = dice.pick(&members).cloned().expect("a team has members");
    let phases = charter.phases.len();
    let index = dice.below(phases);
    let phase = &mut charter.phases[index];
    match dice.below(12) {
        0 => {
            charter.limits.rounds = 1 + dice.below(4) as u32;
            charter.limits.vote_changes = 1 + dice.below(4) as u32;
            charter.limits.withdraw_flips = 1 + dice.below(3) as u32;
        }
        1 | 2 => {
            let rule = dice.pick(&RULES).expect("there are rules").to_string();
            let mode = [RuleMode::Enforce, RuleMode::Warn, RuleMode::Off];
            charter.rules.modes.insert(rule, *dice.pick(&mode).expect("there are modes"));
        }
        3 => {
            // Somebody new, who reviews.
            let known: Vec<&str> = REVIEWERS.into_iter().chain(PRODUCERS).collect();
            let name: MemberName = dice.pick(&known).expect("there are names").parse().expect("it is a name");
            let emails = vec![format!("{name}@example.org")];
            let member = charter.members.entry(name.clone()).or_default();
            if member.emails.is_empty() {
                member.emails = emails;
            }
            let of = phase.deliverables.first().map(|held| held.producer.clone());
            review(dice, phase, name, of);
        }
        4 => leave(charter, &somebody),
        5 | 6 => {
            let of = dice.pick(&phase.deliverables).map(|held| held.producer.clone());
            review(dice, phase, somebody, of);
        }
        7 | 8 if !phase.reviews.is_empty() => {
            let gone = dice.below(phase.reviews.len());
            phase.reviews.remove(gone);
        }
        9 => {
            // Of a producer who is reviewed here already.
            let of = dice.pick(&phase.reviews).map(|edge| edge.of.clone());
            let name = format!("{}-more-{}", phase.name, dice.below(4)).parse().expect("it is a name");
            let fresh = phase.deliverables.iter().all(|held| held.name != name);
            if let Some(producer) = of.filter(|_| fresh) {
                phase.deliverables.push(Deliverable { name, producer, target: None });
            }
        }
        10 if phase.deliverables.len() > 1 => {
            let gone = dice.below(phase.deliverables.len());
            phase.deliverables.remove(gone);
        }
        11 if phases < PHASES.len() => {
            let name = PHASES[phases].parse().expect("it is a name");
            let confirm = if dice.percent(50) { ConfirmKind::Together } else { ConfirmKind::Each };
            let deliverable = format!("{name}-late").parse().expect("it is a name");
            let deliverables =
                vec![Deliverable { name: deliverable, producer: somebody.clone(), target: None }];
            let mut added = Phase { name, confirm, deliverables, reviews: Vec::new() };
            review(dice, &mut added, other, Some(somebody));
            charter.phases.push(added);
        }
        _ => {
            if let Some(held) = phase.deliverables.last_mut() {
                held.producer = somebody;
            }
        }
    }
}

fn review(dice: &mut Dice, phase: &mut Phase, reviewer: MemberName, of: Option<MemberName>) {
    let lens = dice.pick(&LENSES).expect("there are lenses").parse().expect("it is a lens");
    if let Some(of) = of.filter(|of| *of != reviewer) {
        let edge = ReviewEdge { reviewer, of, lens };
        if !phase.reviews.contains(&edge) {
            phase.reviews.push(edge);
        }
    }
}

/// A member leaves, and with it what the charter has of it.
fn leave(charter: &mut Charter, gone: &MemberName) {
    charter.members.remove(gone);
    for phase in &mut charter.phases {
        phase.reviews.retain(|edge| edge.reviewer != *gone && edge.of != *gone);
        phase.deliverables.retain(|held| held.producer != *gone);
    }
}

/// A charter as a file; as much of the grammar as these charters have.
pub fn text(charter: &Charter) -> String {
    let mut text = format!("[team]\nname = \"{}\"\n", charter.team);
    if let Some(repository) = &charter.repository {
        let _ = writeln!(text, "[repository]\npath = \"{}\"", repository.path);
        let _ = writeln!(text, "protected = {:?}", repository.protected);
    }
    let limits = &charter.limits;
    let _ = writeln!(
        text,
        "[limits]\nwithdraw_cooldown = \"{}\"\nwithdraw_flips = {}\nrounds = {}\nvote_changes = {}\nnotes = {}\n\
         text_bytes = {}",
        limits.withdraw_cooldown,
        limits.withdraw_flips,
        limits.rounds,
        limits.vote_changes,
        limits.notes,
        limits.text_bytes,
    );
    text.push_str("[rules]\n");
    for (rule, mode) in &charter.rules.modes {
        let mode = match mode {
            RuleMode::Enforce => "enforce",
            RuleMode::Warn => "warn",
            RuleMode::Off => "off",
        };
        let _ = writeln!(text, "\"{rule}\" = \"{mode}\"");
    }
    text.push_str("[channels.ops]\ncommand = \"notify\"\n");
    for (name, member) in &charter.members {
        let _ = writeln!(text, "[members.{name}]");
        list(&mut text, "emails", &member.emails);
        list(&mut text, "owns", &member.owns);
        list(&mut text, "notify", &member.notify);
        if member.kind == MemberKind::Human {
            text.push_str("kind = \"human\"\n");
        }
    }
    if !charter.required_checks.is_empty() {
        text.push_str("[checks]\n");
        list(&mut text, "required", &charter.required_checks);
    }
    for phase in &charter.phases {
        let confirm = if phase.confirm == ConfirmKind::Together { "together" } else { "each" };
        let _ = writeln!(text, "[[phases]]\nname = \"{}\"\nconfirm = \"{confirm}\"", phase.name);
        for Deliverable { name, producer, .. } in &phase.deliverables {
            let _ = writeln!(text, "[[phases.deliverables]]\nname = \"{name}\"\nproducer = \"{producer}\"");
        }
        for ReviewEdge { reviewer, of, lens } in &phase.reviews {
            let _ = writeln!(
                text,
                "[[phases.reviews]]\nreviewer = \"{reviewer}\"\nof = \"{of}\"\nlens = \"{lens}\""
            );
        }
    }
    text
}

/// A list, where there is something to say.
fn list(text: &mut String, key: &str, items: &[String]) {
    if !items.is_empty() {
        let _ = writeln!(text, "{key} = {items:?}");
    }
}

#[cfg(test)]
#[test]
fn a_charter_written_out_reads_back_as_it_was_and_most_changes_are_charters() {
    use countersign::protocol::charter::parse;
    let mut taken = 0;
    for seed in 0..300 {
        let mut dice = Dice::of(seed);
        let first = parse("charter.toml", &random(&mut dice)).expect("a random charter is accepted");
        let again = parse("charter.toml", &text(&first)).map_err(|found| found.to_string());
        assert_eq!(again, Ok(first.clone()), "seed {seed}");
        taken += u32::from(parse("charter.toml", &text(&changed(&mut dice, &first))).is_ok());
    }
    assert!(taken > 150, "of 300 changes {taken} leave a charter");
}
