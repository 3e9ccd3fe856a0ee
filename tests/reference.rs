//! The reference pages that are made from the code. `UPDATE=1` rewrites them; without it, a page that
//! differs from the code fails.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use countersign::judge::CelJudge;
use countersign::protocol::charter::{self, CHARTER_BYTES_MAX, Limits};
use countersign::protocol::rejection::Class;
use countersign::protocol::rule::{About, Judge, Moment, Owner};
use countersign::protocol::{Event, Violation};

/// The charter that shows the whole grammar; tests/charter.rs holds it to that.
const GRAMMAR: &str = "tests/charters/example.toml";

/// What stands above every page.
const MADE: &str =
    "<!-- Made from the code by tests/reference.rs; UPDATE=1 cargo test --test reference rewrites it. -->\n";

#[test]
fn rejections() {
    let mut page = page("Rejections");
    page.push_str(
        "A rejection is the protocol's no. It has a stable code, one sentence, the facts of that sentence, and a\n\
         remedy: the command that would work, or who can. All unmet conditions are reported at once; the first is\n\
         the rejection's code. The order for each verb stands in [protocol.md](../protocol.md#the-verbs). Codes are\n\
         never renamed or reused.\n\n\
         | code | class | it means |\n| --- | --- | --- |\n",
    );
    assert_eq!(Violation::CODES.len(), Violation::MEANINGS.len());
    for ((code, class), meaning) in Violation::CODES.iter().zip(Violation::MEANINGS) {
        let meaning = meaning.split_whitespace().collect::<Vec<_>>().join(" ");
        line(&mut page, format_args!("| `{code}` | {} | {} |", class_name(*class), cell(&meaning)));
    }
    page.push_str("\n## Classes\n\n| class | gRPC status | ask again? |\n| --- | --- | --- |\n");
    for (class, status, again) in [
        (Class::Malformed, "INVALID_ARGUMENT", "with other content"),
        (Class::Forbidden, "PERMISSION_DENIED", "no"),
        (Class::Missing, "NOT_FOUND", "with other content"),
        (Class::Precondition, "FAILED_PRECONDITION", "after the remedy"),
        (Class::Conflict, "ABORTED", "read, then again"),
        (Class::Limit, "RESOURCE_EXHAUSTED", "later, or smaller, or after a person decided"),
    ] {
        line(&mut page, format_args!("| {} | {status} | {again} |", class_name(class)));
    }
    compare("docs/reference/rejections.md", &page);
}

#[test]
fn commands() {
    let made = format!("{MADE}\n{}", countersign::cli::reference());
    compare("docs/reference/commands.md", &made);
}

#[test]
fn events() {
    let mut page = page("Events");
    page.push_str(
        "Events are facts: what a decision stored. Each has a stable name and the number of the form in which this\n\
         version writes it. The body is JSON. A form is never changed: a new one gets the next number, and an old\n\
         one is lifted when it is read. Fields that are empty or absent are left out.\n\n\
         | name | form | it means | fields |\n| --- | --- | --- | --- |\n",
    );
    let described = documented_events();
    assert_eq!(described.len(), Event::KINDS.len(), "the page reads the same table as the code");
    for ((kind, schema), event) in Event::KINDS.iter().zip(&described) {
        assert_eq!(*kind, event.kind, "the page reads the same table as the code");
        let fields: Vec<String> =
            fields_of(&event.variant).iter().map(|field| format!("`{field}`")).collect();
        line(
            &mut page,
            format_args!("| `{kind}` | {schema} | {} | {} |", cell(&event.meaning), fields.join(", ")),
        );
    }
    page.push_str(
        "\nBeside its body each row of a log holds its sequence number, its time, who it comes from, and its link of\n\
         the hash chain; the first row of a decision also holds the request that it answers and the answer. The\n\
         views for people stand in [operating.md](../operating.md#reading-the-log).\n",
    );
    compare("docs/reference/events.md", &page);
}

#[test]
fn rules() {
    let judge = CelJudge::shipped();
    let mut page = page("The shipped rules");
    page.push_str(
        "Every team has these. The charter sets a rule to `enforce` (the default), `warn` or `off` by its id. How a\n\
         rule is written, and which words it may use, stands in [rules/README.md](../../rules/README.md).\n\n\
         | rule | asked at | about each | who owes | it demands |\n| --- | --- | --- | --- | --- |\n",
    );
    for rule in judge.rules() {
        line(
            &mut page,
            format_args!(
                "| [`{id}`](../../rules/{id}.toml) | {} | {} | {} | {} |",
                moment(rule.when),
                about(rule.about),
                owner(rule.owes),
                cell(&rule.title),
                id = rule.id,
            ),
        );
    }
    for rule in judge.rules() {
        line(&mut page, format_args!("\n## {}\n", rule.id));
        line(&mut page, format_args!("{}\n", rule.incident.trim()));
        if let Some(applies) = &rule.applies {
            line(&mut page, format_args!("- applies where `{applies}`"));
        }
        line(&mut page, format_args!("- denies where `{}`", rule.deny));
        if let Some(overruled) = &rule.overruled {
            line(&mut page, format_args!("- a person's decision stands in its stead where `{overruled}`"));
        }
        line(&mut page, format_args!("- says: {}", rule.message));
        line(&mut page, format_args!("- remedy: `{}`", rule.remedy));
    }
    compare("docs/reference/rules.md", &page);
}

#[test]
fn the_charter() {
    let text = read(GRAMMAR);
    charter::parse(GRAMMAR, &text).unwrap_or_else(|found| panic!("{found}"));
    let mut page = page("The charter");
    write!(
        page,
        "A charter is a TOML file of at most {} KiB. Unknown keys are refused, with the nearest known one, and so is\n\
         a team that could never finish; every finding has its file, line and column. `countersign charter check FILE`\n\
         says so without a server.\n\n\
         ## The whole grammar\n\n```toml\n{}```\n\n\
         ## Limits\n\n| key | default | what it bounds |\n| --- | --- | --- |\n",
        CHARTER_BYTES_MAX >> 10,
        text,
    )
    .expect("a String takes every write");
    let limits = Limits::default();
    let defaults: [(&str, String); 10] = [
        ("withdraw_cooldown", limits.withdraw_cooldown.to_string()),
        ("withdraw_flips", limits.withdraw_flips.to_string()),
        ("rounds", limits.rounds.to_string()),
        ("vote_changes", limits.vote_changes.to_string()),
        ("notes", limits.notes.to_string()),
        ("stall_after", limits.stall_after.to_string()),
        ("answer_within", limits.answer_within.to_string()),
        ("deliver_within", limits.deliver_within.to_string()),
        ("text_bytes", limits.text_bytes.to_string()),
        ("escalation_reminders", limits.escalation_reminders.to_string()),
    ];
    let documented = documented_fields(&read("src/protocol/charter/mod.rs"), "Limits");
    let keys: Vec<&str> = documented.iter().map(|(key, _)| key.as_str()).collect();
    assert_eq!(keys, defaults.each_ref().map(|(key, _)| *key), "every limit has its default here");
    for ((key, default), (_, meaning)) in defaults.iter().zip(&documented) {
        line(&mut page, format_args!("| `{key}` | {default} | {} |", cell(meaning)));
    }
    page.push_str(
        "\n## The starter\n\nA charter to begin with. Lines that begin with `#:` are offers.\n\n```toml\n",
    );
    page.push_str(charter::STARTER);
    page.push_str("```\n");
    compare("docs/reference/charter.md", &page);
}

/// The table of verbs is the one thing about the core that is written by hand: at least no code that
/// it names is invented, and none that the core has is forgotten.
#[test]
fn the_verb_table_names_the_codes_that_there_are() {
    let text = read("docs/protocol.md");
    let known: Vec<&str> = Violation::CODES.iter().map(|(code, _)| *code).collect();
    for code in &known {
        assert!(text.contains(&format!("`{code}`")), "docs/protocol.md does not speak of {code}");
    }
    let shouted = text
        .split('`')
        .skip(1)
        .step_by(2)
        .filter(|word| word.contains('_') && word.bytes().all(|b| b.is_ascii_uppercase() || b == b'_'));
    let states = ["NOT_APPLICABLE"];
    for code in shouted {
        assert!(known.contains(&code) || states.contains(&code), "docs/protocol.md invents {code}");
    }
}

#[test]
fn the_room_pages_own_codes_are_those_of_its_table() {
    let source: String = fs::read_dir(root().join("src/page"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_file())
        .map(read)
        .collect();
    // A code stands behind the status, on the same line or the next.
    let answered = source.match_indices("StatusCode::").filter_map(|(at, _)| {
        let (status, rest) = source[at..].split_once(',')?;
        let code = rest.trim_start().strip_prefix('"')?.split('"').next()?;
        let is_code = code.chars().all(|c| c.is_ascii_uppercase() || c == '_');
        (!status.contains(')') && is_code).then(|| code.to_owned())
    });
    let answered: BTreeSet<String> = answered.collect();
    let operating = read(root().join("docs/operating.md"));
    let table = operating.split("with these of its own:").nth(1).unwrap().split("\n## ").next().unwrap();
    let rows = table.lines().filter_map(|line| line.strip_prefix("| ")?.split(' ').next());
    let told: BTreeSet<String> = rows.filter(|code| *code != "Code").map(str::to_owned).collect();
    assert_eq!(answered, told);
    assert!(told.contains("FOREIGN_PAGE"), "{told:?}");
}

/// An event as the table in the source has it.
struct Described {
    variant: String,
    kind: String,
    meaning: String,
}

/// The rows of the `events!` table with their comments.
fn documented_events() -> Vec<Described> {
    let source = read("src/protocol/event.rs");
    let (_, table) = source.split_once("\nevents! {\n").expect("the table of events");
    let (table, _) = table.split_once("\n}").expect("the table ends");
    let (mut found, mut meaning) = (Vec::new(), String::new());
    for row in table.lines().map(str::trim) {
        if let Some(comment) = row.strip_prefix("///") {
            meaning = format!("{meaning} {}", comment.trim()).trim().to_owned();
        } else if let Some((variant, rest)) = row.split_once(" = ") {
            let kind = rest.split('"').nth(1).expect("a kind stands in quotes").to_owned();
            found.push(Described {
                variant: variant.to_owned(),
                kind,
                meaning: std::mem::take(&mut meaning),
            });
        }
    }
    found
}

/// The stored fields of an event.
fn fields_of(variant: &str) -> Vec<String> {
    for file in [
        "src/protocol/event.rs",
        "src/protocol/review/event.rs",
        "src/protocol/escalation/mod.rs",
        "src/protocol/room/event.rs",
        "src/protocol/escalation/moved.rs",
        "src/protocol/deadline.rs",
        "src/protocol/delivery.rs",
        "src/protocol/recovery.rs",
        "src/protocol/referee/mod.rs",
    ] {
        let fields = documented_fields(&read(file), variant);
        if !fields.is_empty() {
            return fields.into_iter().map(|(name, _)| name).collect();
        }
    }
    panic!("no struct {variant} stands where events do");
}

/// Public fields of a struct with their comments.
fn documented_fields(source: &str, name: &str) -> Vec<(String, String)> {
    let Some((_, body)) = source.split_once(&format!("pub struct {name} {{\n")) else { return Vec::new() };
    let (body, _) = body.split_once("\n}").expect("a struct ends");
    let (mut fields, mut meaning) = (Vec::new(), String::new());
    for row in body.lines().map(str::trim) {
        if let Some(comment) = row.strip_prefix("///") {
            meaning = format!("{meaning} {}", comment.trim()).trim().to_owned();
        } else if let Some(field) = row.strip_prefix("pub ").and_then(|row| row.split_once(':')) {
            fields.push((field.0.to_owned(), std::mem::take(&mut meaning)));
        }
    }
    fields
}

fn page(title: &str) -> String {
    format!("{MADE}\n# {title}\n\n")
}

fn line(page: &mut String, text: std::fmt::Arguments<'_>) {
    writeln!(page, "{text}").expect("a String takes every write");
}

/// A text as a cell of a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

fn class_name(class: Class) -> &'static str {
    match class {
        Class::Malformed => "malformed",
        Class::Forbidden => "forbidden",
        Class::Missing => "missing",
        Class::Precondition => "precondition",
        Class::Conflict => "conflict",
        Class::Limit => "limit",
    }
}

fn moment(moment: Moment) -> &'static str {
    match moment {
        Moment::Propose => "propose",
        Moment::Approve => "approve",
        Moment::Confirm => "confirm",
        Moment::Text => "text",
    }
}

fn about(about: About) -> &'static str {
    match about {
        About::Circle => "circle",
        About::Proposal => "proposal",
        About::Review => "review",
        About::Objection => "objection",
        About::Check => "required check",
        About::Escalation => "open escalation",
        About::Text => "text",
    }
}

fn owner(owner: Owner) -> &'static str {
    match owner {
        Owner::Producer => "the producer",
        Owner::Reviewers => "its reviewers",
        Owner::Confirmer => "who confirms",
        Owner::Person => "a person",
        Owner::Author => "its author",
    }
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: impl AsRef<Path>) -> String {
    let path = path.as_ref();
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn compare(path: &str, made: &str) {
    if std::env::var_os("UPDATE").is_some() {
        let file = root().join(path);
        let folder = file.parent().expect("a page stands in a folder");
        fs::create_dir_all(folder).expect("the folder can be made");
        fs::write(&file, made).expect("the page can be written");
        return;
    }
    let stands = read(path);
    let differs = stands.lines().zip(made.lines()).position(|(stands, made)| stands != made);
    let line = differs.unwrap_or_else(|| stands.lines().count().min(made.lines().count()));
    assert!(
        stands == made,
        "{path}:{} is not what the code says; UPDATE=1 rewrites it\n stands: {}\n   code: {}",
        line + 1,
        stands.lines().nth(line).unwrap_or("the end"),
        made.lines().nth(line).unwrap_or("the end"),
    );
}
