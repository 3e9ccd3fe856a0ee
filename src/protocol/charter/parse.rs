//! From the text of `charter.toml` to a [`Charter`], or to everything that is wrong with it.
//!
//! Three steps, each of which reports all that it finds: TOML's own grammar; then ours (keys, types,
//! forms of names and durations); then whether the charter can be satisfied ([`check`]). The document
//! is walked by hand instead of by serde, which stops at the first finding.

use std::collections::BTreeMap;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::super::time::Span;
use super::check::{Place, Step, check, is_name};
use super::diagnostic::{Diagnostics, Finding};
use super::read::{Reader, Table};
use super::{
    Channel, Charter, ConfirmKind, Deliverable, Limits, Member, MemberKind, Phase, Publish, PublishHow,
    Repository, ReviewEdge, RuleMode, RuleSettings,
};

/// The longest charter, in bytes.
pub const CHARTER_BYTES_MAX: usize = 1 << 20;

/// Where everything goes that names no target of its own.
const TARGET_DEFAULT: &str = "refs/heads/main";

const CHECK_TIMEOUT_DEFAULT: Span = Span::seconds(20 * 60);

const KINDS: &[(&str, MemberKind)] =
    &[("agent", MemberKind::Agent), ("referee", MemberKind::Referee), ("human", MemberKind::Human)];

const HOWS: &[(&str, PublishHow)] =
    &[("merge", PublishHow::Merge), ("fast-forward", PublishHow::FastForward)];

const MODES: &[(&str, RuleMode)] =
    &[("enforce", RuleMode::Enforce), ("warn", RuleMode::Warn), ("off", RuleMode::Off)];

const CONFIRMS: &[(&str, ConfirmKind)] = &[("together", ConfirmKind::Together), ("each", ConfirmKind::Each)];

/// Reads the bytes of a charter: [`parse`], once they are known to be UTF-8.
///
/// # Errors
///
/// As [`parse`], and where the first byte stands that is no UTF-8.
pub fn parse_bytes(file: &str, bytes: &[u8]) -> Result<Charter, Diagnostics> {
    if bytes.len() > CHARTER_BYTES_MAX {
        return Err(too_long(file, bytes.len()));
    }
    match std::str::from_utf8(bytes) {
        Ok(text) => parse(file, text),
        Err(fault) => {
            // The lossy text is the same up to the fault, and has U+FFFD in its place.
            let at = fault.valid_up_to();
            let what = format!("byte {:#04x} is not UTF-8", bytes[at]);
            let found = Finding { span: at..at + '\u{fffd}'.len_utf8(), what, help: None };
            Err(Diagnostics::new(file, &String::from_utf8_lossy(bytes), vec![found]))
        }
    }
}

/// Reads and checks a charter. `file` is what the findings call it; nothing is opened.
///
/// # Errors
///
/// A text above [`CHARTER_BYTES_MAX`]; else all faults of TOML's grammar; else all of the charter's
/// keys, types and forms, together with what makes the charter one that can't be satisfied. The
/// latter is left out where a member, channel, phase or edge could not be read: it would blame names
/// for being unknown that merely stand beside a fault.
pub fn parse(file: &str, text: &str) -> Result<Charter, Diagnostics> {
    if text.len() > CHARTER_BYTES_MAX {
        return Err(too_long(file, text.len()));
    }
    let mut reader = Reader::default();
    let (document, faults) = DeTable::parse_recoverable(text);
    for fault in &faults {
        reader.refuse(fault.span().unwrap_or(text.len()..text.len()), grammar(fault.message()), None);
    }
    if !faults.is_empty() {
        return Err(Diagnostics::new(file, text, reader.found));
    }
    let charter = read_charter(&mut reader, document.get_ref());
    // Without a hole there is a charter; with one, its findings say why.
    if let Some(charter) = charter.filter(|_| !reader.hole) {
        for unmet in check(&charter) {
            reader.refuse(span_of(document.get_ref(), &unmet.place), unmet.what, unmet.help);
        }
        if reader.found.is_empty() {
            return Ok(charter);
        }
    }
    Err(Diagnostics::new(file, text, reader.found))
}

/// The line of that place in the text of a charter, from 1; where it isn't written, of what would hold it.
pub(in crate::protocol) fn line_of(text: &str, place: &Place) -> usize {
    let (document, _) = DeTable::parse_recoverable(text);
    let start = span_of(document.get_ref(), place).start;
    text.get(..start).map_or(1, |before| before.matches('\n').count() + 1)
}

/// The line of a key of `[rules]` in the text of a charter, from 1: what is wrong with it may be known to
/// whoever loads the rules alone.
pub fn line_of_rule(text: &str, key: &str) -> usize {
    line_of(text, &Place::key("rules").then(key))
}

fn too_long(file: &str, length: usize) -> Diagnostics {
    let what = format!("the charter has {length} bytes; at most {CHARTER_BYTES_MAX} are read");
    Diagnostics::new(file, "", vec![Finding { span: 0..0, what, help: None }])
}

/// TOML's own words, in the tone of ours.
fn grammar(message: &str) -> String {
    format!("not TOML: {}", message.replace("invalid", "malformed"))
}

/// Where a place of the charter stands in its text; where it isn't written, what would hold it.
fn span_of(document: &DeTable<'_>, place: &Place) -> std::ops::Range<usize> {
    let mut span = 0..0;
    let mut table = Some(document);
    let mut value: Option<&Spanned<DeValue<'_>>> = None;
    for step in place.steps() {
        let next = match step {
            Step::Key(key) => {
                table.and_then(|table| table.get_key_value(key.as_str())).map(|(key, value)| {
                    // A table is marked at its name, everything else at its value.
                    let tables = value.get_ref().as_array().is_some_and(|items| items.iter().any(is_table));
                    span = if is_table(value) || tables { key.span() } else { value.span() };
                    value
                })
            }
            Step::Item(index) => value.and_then(|value| value.get_ref().get(*index)).inspect(|value| {
                span = value.span();
            }),
        };
        let Some(found) = next else { break };
        value = Some(found);
        table = found.get_ref().as_table();
    }
    span
}

fn is_table(value: &Spanned<DeValue<'_>>) -> bool {
    value.get_ref().is_table()
}

fn read_charter(reader: &mut Reader, document: &DeTable<'_>) -> Option<Charter> {
    const KEYS: &[&str] =
        &["team", "repository", "publish", "limits", "members", "channels", "rules", "checks", "phases"];
    let top = reader.top(document, KEYS);
    let team = read_team(reader, &top);
    let repository = reader.section(&top, "repository", &["path", "url", "protected"]);
    let publish = reader.section(&top, "publish", &["target", "how", "check", "check_timeout"]);
    if let (Some(publish), None) = (&publish, &repository)
        && !top.has("repository")
    {
        let help = "add [repository], or leave [publish] out: bundles of files are published by the server";
        reader.refuse(
            publish.span.clone(),
            "[publish] without a [repository]".to_owned(),
            Some(help.to_owned()),
        );
    }
    let publish = read_publish(reader, publish.as_ref());
    let repository = repository.and_then(|table| read_repository(reader, &table, &publish));
    let limits = reader.apart(|reader| read_limits(reader, &top));
    let members = read_members(reader, &top);
    let channels = read_channels(reader, &top);
    let rules = reader.apart(|reader| read_rules(reader, &top));
    let checks = reader.section(&top, "checks", &["required"]);
    let required_checks =
        checks.and_then(|table| reader.get(&table, "required", Reader::texts)).unwrap_or_default();
    let phases = read_phases(reader, &top);
    Some(Charter {
        team: team?,
        repository,
        publish,
        limits,
        members,
        channels,
        rules,
        required_checks,
        phases,
    })
}

fn read_team(reader: &mut Reader, top: &Table<'_>) -> Option<super::TeamName> {
    if let Some(team) = reader.section(top, "team", &["name"]) {
        return reader.need(&team, "name", Reader::name);
    }
    if !top.has("team") && !top.misspelt.contains(&"team") {
        let help = "begin with [team] and name = \"…\"".to_owned();
        reader.refuse(0..0, "the charter has no [team] with its name".to_owned(), Some(help));
    }
    reader.hole = true;
    None
}

fn read_publish(reader: &mut Reader, table: Option<&Table<'_>>) -> Publish {
    let mut publish = Publish {
        target: TARGET_DEFAULT.to_owned(),
        how: PublishHow::Merge,
        check: None,
        check_timeout: CHECK_TIMEOUT_DEFAULT,
    };
    let Some(table) = table else { return publish };
    if let Some(target) = reader.get(table, "target", Reader::text) {
        publish.target = target;
    }
    reader.apart(|reader| {
        if let Some(how) = reader.get(table, "how", |reader, value| reader.word(value, HOWS)) {
            publish.how = how;
        }
        publish.check = reader.get(table, "check", Reader::command);
        if let Some(timeout) = reader.get(table, "check_timeout", Reader::length) {
            publish.check_timeout = timeout;
        }
    });
    publish
}

fn read_repository(reader: &mut Reader, table: &Table<'_>, publish: &Publish) -> Option<Repository> {
    let path = reader.need(table, "path", Reader::text);
    let url = reader.get(table, "url", Reader::text);
    let protected = reader.get(table, "protected", Reader::texts);
    // Where nothing is said, at least what the team publishes to has its door.
    let protected = protected.unwrap_or_else(|| vec![publish.target.clone()]);
    Some(Repository { path: path?, url, protected })
}

fn read_limits(reader: &mut Reader, top: &Table<'_>) -> Limits {
    const KEYS: &[&str] = &[
        "withdraw_cooldown",
        "withdraw_flips",
        "rounds",
        "vote_changes",
        "notes",
        "stall_after",
        "answer_within",
        "deliver_within",
        "text_bytes",
        "escalation_reminders",
    ];
    let mut limits = Limits::default();
    if let Some(table) = reader.section(top, "limits", KEYS) {
        for (key, limit) in [
            ("withdraw_cooldown", &mut limits.withdraw_cooldown),
            ("stall_after", &mut limits.stall_after),
            ("answer_within", &mut limits.answer_within),
            ("deliver_within", &mut limits.deliver_within),
        ] {
            *limit = reader.get(&table, key, Reader::length).unwrap_or(*limit);
        }
        for (key, limit) in [
            ("withdraw_flips", &mut limits.withdraw_flips),
            ("rounds", &mut limits.rounds),
            ("vote_changes", &mut limits.vote_changes),
            ("notes", &mut limits.notes),
            ("text_bytes", &mut limits.text_bytes),
            ("escalation_reminders", &mut limits.escalation_reminders),
        ] {
            *limit = reader.get(&table, key, Reader::count).unwrap_or(*limit);
        }
    }
    limits
}

fn read_members(reader: &mut Reader, top: &Table<'_>) -> BTreeMap<super::MemberName, Member> {
    const KEYS: &[&str] = &["kind", "about", "emails", "owns", "colour", "workdir", "watch", "notify"];
    let mut members = BTreeMap::new();
    for (key, table) in reader.named_tables(top, "members", KEYS) {
        let name = reader.named(key.span(), key.get_ref());
        let mut emails = reader.get(&table, "emails", Reader::texts).unwrap_or_default();
        emails.iter_mut().for_each(|email| email.make_ascii_lowercase());
        let kind = reader.get(&table, "kind", |reader, value| reader.word(value, KINDS));
        let member = Member {
            kind: kind.unwrap_or_default(),
            about: reader.get(&table, "about", Reader::text).unwrap_or_default(),
            emails,
            owns: reader.get(&table, "owns", Reader::texts).unwrap_or_default(),
            colour: reader.get(&table, "colour", Reader::text),
            workdir: reader.get(&table, "workdir", Reader::text),
            watch: reader.get(&table, "watch", Reader::flag).unwrap_or_default(),
            notify: reader.get(&table, "notify", Reader::texts).unwrap_or_default(),
        };
        if let Some(name) = name {
            members.insert(name, member);
        }
    }
    members
}

fn read_channels(reader: &mut Reader, top: &Table<'_>) -> BTreeMap<String, Channel> {
    const KEYS: &[&str] = &["webhook", "command", "secret_file", "allow_private"];
    let mut channels = BTreeMap::new();
    for (key, table) in reader.named_tables(top, "channels", KEYS) {
        let channel = Channel {
            webhook: reader.get(&table, "webhook", Reader::text),
            command: reader.get(&table, "command", Reader::command),
            secret_file: reader.get(&table, "secret_file", Reader::text),
            allow_private: reader.get(&table, "allow_private", Reader::flag).unwrap_or_default(),
        };
        channels.insert(key.get_ref().clone().into_owned(), channel);
    }
    channels
}

/// Beside `folder`, every key of `[rules]` is a rule's id. Which ids there are is known to whoever
/// loads the rules; here they have the form of one.
fn read_rules(reader: &mut Reader, top: &Table<'_>) -> RuleSettings {
    const MOMENTS: [&str; 4] = ["confirm", "propose", "approve", "text"];
    let mut rules = RuleSettings::default();
    for (key, value) in reader.entries(top, "rules") {
        let id = key.get_ref().as_ref();
        let in_folder = |moment: &&str| {
            id.strip_prefix(*moment).and_then(|rest| rest.strip_prefix('/')).is_some_and(is_name)
        };
        if id == "folder" {
            rules.folder = reader.text(value);
        } else if MOMENTS.iter().any(in_folder) {
            if let Some(mode) = reader.word(value, MODES) {
                rules.modes.insert(id.to_owned(), mode);
            }
        } else {
            let form = "a rule's id is confirm/…, propose/…, approve/… or text/… and its name, in quotes";
            reader.unknown_key("[rules]", key, &["folder"], Some(form));
        }
    }
    rules
}

fn read_phases(reader: &mut Reader, top: &Table<'_>) -> Vec<Phase> {
    const KEYS: &[&str] = &["name", "confirm", "deliverables", "reviews"];
    let mut phases = Vec::new();
    for table in reader.tables(top, "phases", KEYS) {
        let name = reader.need(&table, "name", Reader::name);
        // The stricter kind, where nothing is said.
        let confirm = reader.get(&table, "confirm", |reader, value| reader.word(value, CONFIRMS));
        let confirm = confirm.unwrap_or(ConfirmKind::Together);
        let deliverables = read_deliverables(reader, &table);
        let reviews = read_reviews(reader, &table);
        if let Some(name) = name {
            phases.push(Phase { name, confirm, deliverables, reviews });
        }
    }
    phases
}

fn read_deliverables(reader: &mut Reader, phase: &Table<'_>) -> Vec<Deliverable> {
    let mut deliverables = Vec::new();
    for table in reader.tables(phase, "deliverables", &["name", "producer", "target"]) {
        let name = reader.need(&table, "name", Reader::name);
        let producer = reader.need(&table, "producer", Reader::name);
        let target = reader.get(&table, "target", Reader::text);
        if let (Some(name), Some(producer)) = (name, producer) {
            deliverables.push(Deliverable { name, producer, target });
        }
    }
    deliverables
}

fn read_reviews(reader: &mut Reader, phase: &Table<'_>) -> Vec<ReviewEdge> {
    let mut reviews = Vec::new();
    for table in reader.tables(phase, "reviews", &["reviewer", "of", "lens"]) {
        let reviewer = reader.need(&table, "reviewer", Reader::name);
        let of = reader.need(&table, "of", Reader::name);
        let lens = reader.need(&table, "lens", Reader::name);
        if let (Some(reviewer), Some(of), Some(lens)) = (reviewer, of, lens) {
            reviews.push(ReviewEdge { reviewer, of, lens });
        }
    }
    reviews
}
