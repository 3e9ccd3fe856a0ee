//! The worlds, each with small bounds for every day, and with larger ones.

use super::world::{Bounds, World, revision};

/// How far the worlds go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// Seconds in a debug build.
    Small,
    /// Minutes in a release build.
    Full,
}

/// Every world.
pub fn all(size: Size) -> Vec<World> {
    let full = size == Size::Full;
    vec![
        solo(full),
        texts(full),
        tests(full),
        pair(full),
        moved(full),
        persons(full),
        late(full),
        charters(full),
        each(full),
        beside(),
        room(full),
    ]
}

/// The part of a charter that all worlds share: no deadlines but where a world is about them.
const MEMBERS: &str = "[team]
name = \"atlas\"
[members.app]
emails = [\"app@example.org\"]
owns = [\"app/**\"]
[members.arch]
emails = [\"arch@example.org\"]
owns = [\"arch/**\"]
[members.sec]
emails = [\"sec@example.org\"]
[members.dana]
kind = \"human\"
emails = [\"dana@example.org\"]
";

fn limits(rounds: u32, waits: &str) -> String {
    format!(
        "[limits]\nrounds = {rounds}\nwithdraw_flips = 1\nvote_changes = 1\nnotes = 1\nwithdraw_cooldown = \
         \"60s\"\ntext_bytes = 100\nescalation_reminders = 0\n{waits}\n"
    )
}

/// Deadlines that are too far away to pass.
const NEVER_LATE: &str = "stall_after = \"720h\"\nanswer_within = \"720h\"";

fn charter(limits: &str, more: &str) -> String {
    format!("{MEMBERS}{limits}{more}")
}

/// One phase in which app produces, and arch and sec review through those lenses.
fn reviewed_by_two(first: &str, second: &str) -> String {
    format!(
        "[[phases]]\nname = \"implement\"\nconfirm = \"together\"\ndeliverables = [{{ name = \"parser\", \
         producer = \"app\" }}]\nreviews = [{{ reviewer = \"arch\", of = \"app\", lens = \"{first}\" }}, \
         {{ reviewer = \"sec\", of = \"app\", lens = \"{second}\" }}]\n"
    )
}

fn nothing_beside(name: &'static str, charter: String, bounds: Bounds) -> World {
    World {
        name,
        charter,
        others: Vec::new(),
        bounds,
        shows: &["circle-published"],
        refuses: &[],
        repeats: false,
        co_author: None,
        tests: false,
        bare: false,
        outsider: None,
        texts: false,
        late: false,
        spare: None,
    }
}

/// One producer, two reviewers, one deliverable: versions, repeated content, objections, notes, withdrawals,
/// limits and what a person decides at them.
fn solo(full: bool) -> World {
    let bounds = Bounds {
        versions: if full { 3 } else { 2 },
        objections: 1,
        decisions: u32::from(full),
        waits: 1,
        withdrawals: 1,
        ..Bounds::default()
    };
    let charter = charter(&limits(1, NEVER_LATE), &reviewed_by_two("design", "security"));
    World {
        repeats: true,
        shows: &["withdrawn", "objection-closed", "escalated", "escalation-closed", "circle-published"],
        refuses: &[
            ("propose", "UNCHANGED_PROPOSAL"),
            ("propose", "COOLDOWN_ACTIVE"),
            ("approve", "VOTE_LIMIT"),
            ("confirm", "STALE_CONFIRM"),
        ],
        ..nothing_beside("solo", charter, bounds)
    }
}

/// One producer and one reviewer who may have a hand in the work: texts, places, and readers whom nobody asked.
fn texts(full: bool) -> World {
    let versions = if full { 2 } else { 1 };
    let bounds = Bounds { versions, objections: 1, notes: 1, decisions: 1, asked: 1, ..Bounds::default() };
    let more = "[[phases]]\nname = \"implement\"\nconfirm = \"together\"\ndeliverables = [{ name = \"parser\", \
                producer = \"app\" }]\nreviews = [{ reviewer = \"sec\", of = \"app\", lens = \"design\" }]\n";
    let charter = charter(&limits(1, NEVER_LATE), more);
    World {
        texts: true,
        co_author: Some("sec"),
        outsider: Some("dana"),
        shows: &["noted", "escalated", "circle-published"],
        refuses: &[("approve", "OWN_WORK"), ("approve", "NOT_REVIEWER"), ("object", "SECRET_FOUND")],
        ..nothing_beside("texts", charter, bounds)
    }
}

/// Failing tests, a required check, approvals without evidence, and a reviewer who may be replaced.
fn tests(full: bool) -> World {
    let bounds = Bounds { versions: 2, objections: if full { 2 } else { 1 }, ..Bounds::default() };
    let more = "[checks]\nrequired = [\"ci\"]\n[[phases]]\nname = \"implement\"\nconfirm = \"together\"\n\
                deliverables = [{ name = \"parser\", producer = \"app\" }]\nreviews = [{ reviewer = \"sec\", of = \
                \"app\", lens = \"design\" }]\n";
    let charter = charter(&limits(2, NEVER_LATE), more);
    World {
        tests: true,
        bare: true,
        shows: &["check-reported", "dissent-called", "objection-closed", "circle-published"],
        refuses: &[("approve", "FAILING_TEST"), ("confirm", "CONFIRM_BLOCKED confirm/required-check")],
        ..nothing_beside("tests", charter, bounds)
    }
}

/// What git says of a version lets nobody confirm, until it says otherwise or another version follows.
fn moved(full: bool) -> World {
    let bounds = Bounds { versions: 2, objections: usize::from(full), moves: 2, ..Bounds::default() };
    let more = "[repository]\npath = \"atlas.git\"\nprotected = [\"refs/heads/main\"]\n[[phases]]\nname = \
                \"implement\"\nconfirm = \"together\"\ndeliverables = [{ name = \"parser\", producer = \"app\" \
                }]\nreviews = [{ reviewer = \"arch\", of = \"app\", lens = \"design\" }]\n";
    let refuses = &[("confirm", "CONFIRM_BLOCKED confirm/undoes-landed")];
    let shows = &["target-moved", "circle-published"];
    World { shows, refuses, ..nothing_beside("moved", charter(&limits(1, NEVER_LATE), more), bounds) }
}

/// Two who review each other, and finish together; what they made can't be published at first.
fn pair(full: bool) -> World {
    let bounds = Bounds { versions: 2, objections: usize::from(full), failures: 1, ..Bounds::default() };
    let more = "[[phases]]\nname = \"implement\"\nconfirm = \"together\"\ndeliverables = [{ name = \"left\", producer \
                = \"app\" }, { name = \"right\", producer = \"arch\" }]\nreviews = [{ reviewer = \"arch\", of = \
                \"app\", lens = \"design\" }, { reviewer = \"app\", of = \"arch\", lens = \"design\" }]\n";
    let shows = &["circle-reopened", "escalated", "circle-published"];
    World { shows, ..nothing_beside("pair", charter(&limits(1, NEVER_LATE), more), bounds) }
}

/// What persons decide: who reviews instead, who need not, what is overruled, dropped or closed.
fn persons(full: bool) -> World {
    let bounds = Bounds { versions: 1, objections: 1, decisions: 1, asked: 1, ..Bounds::default() };
    let charter = charter(&limits(1, NEVER_LATE), &reviewed_by_two("design", "design"));
    World {
        co_author: full.then_some("sec"),
        spare: Some("dana"),
        shows: &[
            "reviewer-replaced",
            "reviewer-excused",
            "objection-closed",
            "deliverable-dropped",
            "phase-closed",
            "circle-published",
        ],
        ..nothing_beside("persons", charter, bounds)
    }
}

/// Deadlines: what is overdue and what stalls goes to a person.
fn late(full: bool) -> World {
    let bounds = Bounds {
        versions: 1,
        objections: usize::from(full),
        decisions: 1,
        waits: 2,
        withdrawals: 1,
        ..Bounds::default()
    };
    let waits = "stall_after = \"90s\"\nanswer_within = \"40s\"\ndeliver_within = \"50s\"";
    let by_one = "[[phases]]\nname = \"implement\"\nconfirm = \"together\"\ndeliverables = [{ name = \"parser\", \
                  producer = \"app\" }]\nreviews = [{ reviewer = \"sec\", of = \"app\", lens = \"design\" }]\n";
    let reviews = if full { reviewed_by_two("design", "design") } else { by_one.to_owned() };
    let charter = charter(&limits(1, waits), &reviews);
    let shows = &["escalated", "escalation-closed", "circle-published"];
    World { late: true, shows, ..nothing_beside("late", charter, bounds) }
}

/// Charters that are adopted while work goes on, and one that can't be.
fn charters(full: bool) -> World {
    let bounds =
        Bounds { versions: 1, objections: 1, decisions: u32::from(full), revisions: 2, ..Bounds::default() };
    let behind = "[[phases]]\nname = \"release\"\nconfirm = \"together\"\ndeliverables = [{ name = \"notes\", \
                   producer = \"app\" }]\nreviews = [{ reviewer = \"sec\", of = \"app\", lens = \"plan\" }]\n";
    let release = if full { behind } else { "" };
    let limits = limits(1, NEVER_LATE);
    let phase = |owes: &str, reviews: &str| {
        let phase = "[[phases]]\nname = \"implement\"\nconfirm = \"together\"\n";
        charter(&limits, &format!("{phase}deliverables = [{owes}]\nreviews = [{reviews}]\n{release}"))
    };
    let parser = "{ name = \"parser\", producer = \"app\" }";
    let edge = |reviewer: &str, of: &str, lens: &str| {
        format!("{{ reviewer = \"{reviewer}\", of = \"{of}\", lens = \"{lens}\" }}")
    };
    let first = phase(parser, &[edge("arch", "app", "design"), edge("sec", "app", "security")].join(", "));
    let mut others = vec![
        // The one that is in force.
        first.clone(),
        // A reviewer fewer; another lens for the one who stays.
        phase(parser, &[edge("arch", "app", "design"), edge("arch", "app", "security")].join(", ")),
        // What is open is owed no longer, and something else is.
        phase("{ name = \"lexer\", producer = \"arch\" }", &edge("sec", "arch", "design")),
        // No team can go on with parser under another producer.
        phase("{ name = \"parser\", producer = \"arch\" }", &edge("sec", "arch", "design")),
    ];
    if full {
        // More is owed.
        others.push(phase(
            &format!("{parser}, {{ name = \"lexer\", producer = \"arch\" }}"),
            &[edge("sec", "app", "security"), edge("app", "arch", "design")].join(", "),
        ));
    }
    let others = others.iter().map(|text| revision(text)).collect();
    let shows = &["charter-adopted", "deliverable-dropped", "circle-published"];
    let refuses = &[("adopt", "CHARTER_UNFIT"), ("adopt", "UNCHANGED_CHARTER")];
    World { others, shows, refuses, ..nothing_beside("charters", first, bounds) }
}

/// A phase in which each finishes by itself, with what is proposed beside the charter, and a phase after it.
fn each(full: bool) -> World {
    let bounds = Bounds {
        versions: if full { 2 } else { 1 },
        decisions: 1,
        asked: 1,
        waits: 1,
        withdrawals: 1,
        failures: u32::from(full),
        ad_hoc: 1,
        ..Bounds::default()
    };
    let more = "[[phases]]\nname = \"build\"\nconfirm = \"each\"\ndeliverables = [{ name = \"parser\", producer = \
                \"app\" }]\nreviews = [{ reviewer = \"sec\", of = \"app\", lens = \"design\" }]\n[[phases]]\nname = \
                \"release\"\nconfirm = \"together\"\ndeliverables = [{ name = \"notes\", producer = \"arch\" }]\n\
                reviews = [{ reviewer = \"sec\", of = \"arch\", lens = \"plan\" }]\n";
    let shows = &["phase-closed", "phase-opened", "withdrawn", "circle-published"];
    World { shows, ..nothing_beside("each", charter(&limits(1, NEVER_LATE), more), bounds) }
}

/// What one producer offers under two names beside the charter: flips and cooldown count for both.
fn beside() -> World {
    let bounds = Bounds { versions: 1, waits: 1, withdrawals: 2, ad_hoc: 2, ..Bounds::default() };
    let more = "[[phases]]\nname = \"build\"\nconfirm = \"each\"\ndeliverables = [{ name = \"parser\", producer = \
                \"arch\" }]\nreviews = [{ reviewer = \"sec\", of = \"app\", lens = \"design\" }, { reviewer = \
                \"sec\", of = \"arch\", lens = \"design\" }]\n";
    let limits = limits(1, NEVER_LATE).replace("withdraw_flips = 1", "withdraw_flips = 2");
    let refuses = &[("withdraw", "COOLDOWN_ACTIVE"), ("propose", "NAME_UNUSABLE")];
    World { shows: &["withdrawn"], refuses, ..nothing_beside("beside", charter(&limits, more), bounds) }
}

/// What members say to one another, and the verdicts on it, while nothing else moves.
fn room(full: bool) -> World {
    let bounds = Bounds { said: if full { 2 } else { 1 }, ..Bounds::default() };
    let refuses = &[
        ("say", "UNKNOWN_SUBJECT"),
        ("say", "UNKNOWN_MEMBER"),
        ("say", "EMPTY_TEXT"),
        ("verdict", "UNKNOWN_SUBJECT"),
        ("verdict", "NOT_A_CLAIM"),
        ("verdict", "OWN_CLAIM"),
        ("verdict", "ALREADY_JUDGED"),
    ];
    let charter = charter(&limits(1, NEVER_LATE), &reviewed_by_two("design", "security"));
    World { shows: &["said", "claim-judged"], refuses, ..nothing_beside("room", charter, bounds) }
}
