//! The architecture as a table, and the source held to it.
//!
//! [`MAY_USE`] says which module may name which other. A path through `crate::` that the table doesn't
//! have is a failure with its file and line, and so is a use in the table that nothing makes: the table
//! is neither wider nor narrower than what stands.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Every module of ours, and the modules that it may use. What a module may use beyond a layer's
/// rule is an exception with its own row in [`PARTS_TOGETHER`].
const MAY_USE: &[(&str, &[&str])] = &[
    ("protocol", &[]),
    ("judge", &["protocol"]),
    ("store", &["protocol"]),
    ("artifact", &["protocol"]),
    ("door", &["protocol", "artifact"]),
    ("coordinator", &["protocol", "store"]),
    ("home", &["protocol", "coordinator"]),
    ("wire", &["protocol"]),
    ("shell", &[]),
    ("notify", &["protocol", "coordinator", "home", "shell"]),
    // It calls the server's services as anybody does, in the same process.
    ("page", &["protocol", "coordinator", "wire"]),
    ("publish", &["protocol", "coordinator", "artifact", "home", "shell"]),
    (
        "server",
        &[
            "protocol",
            "judge",
            "store",
            "artifact",
            "door",
            "coordinator",
            "home",
            "notify",
            "publish",
            "wire",
            "page",
        ],
    ),
    // What a token is, and how a folder becomes a bundle, are the same on both sides of the wire.
    ("client", &["protocol", "artifact", "coordinator", "wire"]),
    // A team's own rules are read, and their examples run, where they stand.
    ("cli", &["protocol", "judge", "store", "artifact", "door", "coordinator", "home", "client"]),
];

/// The files that put the parts together: they alone may use the server from above it. Each with its
/// reason.
const PARTS_TOGETHER: &[(&str, &str)] = &[
    ("src/cli/serve.rs", "it starts the server"),
    ("src/cli/demo/stage.rs", "it starts a server of its own to talk to"),
    ("src/cli/operator.rs", "it works on a home that no server serves"),
];

/// Crates that only some modules may know, and which.
const ONLY_KNOWN_TO: &[(&str, &[&str])] = &[
    ("tonic", &["wire", "server", "client", "page"]),
    ("tonic_prost", &["wire"]),
    ("tonic_types", &["wire"]),
    ("tonic_health", &["server"]),
    ("tonic_reflection", &["server"]),
    ("axum", &["server", "page"]),
    ("hyper", &["page"]),
    ("hyper_util", &["page"]),
    ("prometheus_client", &["server"]),
    ("prost", &["wire", "server", "client"]),
    ("prost_types", &["wire", "server", "client"]),
    ("rusqlite", &["store"]),
    ("reqwest", &["notify"]),
    ("rustls", &["notify"]),
    ("hmac", &["notify"]),
    ("cel", &["judge"]),
    ("clap", &["cli"]),
    ("clap_complete", &["cli"]),
    ("clap_mangen", &["cli"]),
    ("comfy_table", &["cli"]),
    ("jsonc_parser", &["cli"]),
    ("tracing_subscriber", &["cli"]),
    ("anyhow", &["main"]),
    ("mimalloc", &["main"]),
];

/// Files that know a crate beyond that, each with its reason.
const KNOWS_MORE: &[(&str, &str, &str)] = &[(
    "src/cli/demo/stage.rs",
    "tonic",
    "one of its reviewers is a gRPC client of its own making, to show that one can",
)];

/// What the core may not name: a clock, the world, threads, an order that differs between two runs.
/// clippy.toml has the same by type, and sees through a rename.
const NEVER_IN_THE_CORE: &[&str] = &[
    "tokio",
    "tonic",
    "prost",
    "rusqlite",
    "tracing",
    "getrandom",
    "uuid",
    "tempfile",
    "reqwest",
    "std::fs",
    "std::net",
    "std::io",
    "std::env",
    "std::process",
    "std::thread",
    "std::os",
    "std::path",
    "std::time",
    "SystemTime",
    "Instant",
    "Timestamp::now",
    "Zoned::now",
    "HashMap",
    "HashSet",
    "RandomState",
    "Mutex",
    "RwLock",
    "async",
];

/// The largest file that needs no reason, in lines.
const FILE_LINES_MAX: usize = 800;

/// Larger files, each with the one story that it tells.
const LONG_FILES: &[(&str, &str)] = &[
    (
        "tests/artifact.rs",
        "one suite of hostile trees and folders over real git; its first hundred lines build the repositories",
    ),
    ("tests/support/play.rs", "the language of plays: every act, how it is read, and what comes of it"),
    ("tests/support/coordinated.rs", "one way to run a play: each act, a command, and what is seen of it"),
    ("tests/model/check.rs", "one table: what holds in every state, and after every step"),
    (
        "tests/simulation/oracle.rs",
        "one table: what each event must have been allowed by, read top to bottom",
    ),
];

/// Places that wait by the clock because nothing gives them an event to wait for.
const SLEEPS: &[(&str, &str)] = &[
    ("src/coordinator/clock.rs", "it is the clock by which deadlines are waited for"),
    ("src/cli/listen.rs", "a server that is away gives no event when it is back"),
    (
        "src/cli/demo/stage.rs",
        "it waits a real cooldown out, and asks for what a server does by itself: getting ready, publishing",
    ),
    ("src/publish/mod.rs", "nobody tells when whoever moved a target meanwhile is done"),
    ("src/server/target.rs", "git tells nobody when it has moved a ref that a hook let pass"),
];

/// Domains of the core. None imports another: what passes between them passes through the files of
/// `src/protocol/` itself.
const DOMAINS: &[&str] = &["review", "room"];

#[test]
fn modules_use_what_the_table_says_and_nothing_else() {
    let known: BTreeSet<&str> = MAY_USE.iter().map(|(module, _)| *module).collect();
    let mut wrong = Vec::new();
    for source in sources("src") {
        let Some(from) = source.module() else { continue };
        if from == "lib" || from == "main" {
            continue;
        }
        let Some((_, may)) = MAY_USE.iter().find(|(module, _)| *module == from) else {
            wrong.push(format!("{}: the module {from} has no row in the table", source.name));
            continue;
        };
        for (line, used) in source.uses() {
            let own = used == from || !known.contains(used.as_str());
            let together = PARTS_TOGETHER.iter().any(|(file, _)| *file == source.name);
            if !own && !together && !may.contains(&used.as_str()) {
                wrong.push(format!("{}:{line}: {from} uses {used}", source.name));
            }
        }
    }
    none(&wrong);
}

#[test]
fn the_table_is_no_wider_than_what_stands() {
    let sources = sources("src");
    let mut wrong = Vec::new();
    for (module, may) in MAY_USE {
        let of_module = sources.iter().filter(|source| source.module().as_deref() == Some(*module));
        let used: BTreeSet<String> = of_module.flat_map(Source::uses).map(|(_, used)| used).collect();
        let idle = may.iter().filter(|name| !used.contains(**name));
        wrong.extend(idle.map(|name| format!("{module} may use {name} and doesn't: take it out of its row")));
    }
    let gone = PARTS_TOGETHER.iter().filter(|(file, _)| !root().join(file).exists());
    wrong.extend(gone.map(|(file, _)| format!("{file} isn't there any more: take it off the list")));
    none(&wrong);
}

#[test]
fn the_table_has_no_cycle() {
    let rows: BTreeMap<&str, &[&str]> = MAY_USE.iter().copied().collect();
    let mut done: BTreeSet<&str> = BTreeSet::new();
    while done.len() < rows.len() {
        let before = done.len();
        for (module, uses) in &rows {
            if uses.iter().all(|used| done.contains(used)) {
                done.insert(module);
            }
        }
        let stuck: Vec<&&str> = rows.keys().filter(|module| !done.contains(**module)).collect();
        assert!(done.len() > before, "these use one another in a circle: {stuck:?}");
    }
}

#[test]
fn every_module_is_in_the_table_and_in_the_reading_order() {
    let contents = read("src/lib.rs");
    let declared: BTreeSet<&str> =
        contents.lines().filter_map(|line| line.strip_prefix("pub mod ")?.strip_suffix(';')).collect();
    let rows: BTreeSet<&str> = MAY_USE.iter().map(|(module, _)| *module).collect();
    let missing: Vec<&&str> = declared.difference(&rows).collect();
    assert!(missing.is_empty(), "these have no row: {missing:?}");
    for module in declared {
        assert!(contents.contains(&format!("[`{module}`]")), "lib.rs does not introduce {module}");
    }
}

#[test]
fn crates_are_known_where_the_table_says() {
    let mut wrong = Vec::new();
    for source in sources("src") {
        let Some(module) = source.module() else { continue };
        for (number, line) in source.lines() {
            for (name, modules) in ONLY_KNOWN_TO {
                let more = KNOWS_MORE.iter().any(|(file, known, _)| *file == source.name && known == name);
                if names_crate(line, name) && !modules.contains(&module.as_str()) && !more {
                    wrong.push(format!("{}:{number}: {module} knows {name}", source.name));
                }
            }
        }
    }
    none(&wrong);
}

#[test]
fn the_core_is_pure() {
    let mut wrong = Vec::new();
    for source in sources("src/protocol") {
        for (number, line) in source.lines() {
            for word in NEVER_IN_THE_CORE.iter().filter(|word| has_word(line, word)) {
                wrong.push(format!("{}:{number}: {word}", source.name));
            }
        }
    }
    none(&wrong);
    assert!(
        read("src/protocol/mod.rs")
            .contains("#![warn(clippy::disallowed_types, clippy::disallowed_methods)]"),
        "the core switches on the lints that keep it pure"
    );
}

#[test]
fn domains_do_not_import_one_another() {
    let mut wrong = Vec::new();
    for domain in DOMAINS {
        for source in sources(&format!("src/protocol/{domain}")) {
            for (number, line) in source.lines() {
                for other in DOMAINS.iter().filter(|other| *other != domain) {
                    if line.contains(&format!("protocol::{other}")) {
                        wrong.push(format!("{}:{number}: {domain} imports {other}", source.name));
                    }
                }
            }
        }
    }
    none(&wrong);
}

#[test]
fn time_is_taken_in_one_place() {
    // Deadlines of a call, a cache or a wait may use the monotonic clock; only this file says what
    // time it is for whatever is decided or stored.
    let mut wrong = Vec::new();
    for source in sources("src").iter().filter(|source| source.name != "src/coordinator/clock.rs") {
        for (number, line) in source.lines() {
            if ["SystemTime", "Timestamp::now", "Zoned::now"].iter().any(|word| has_word(line, word)) {
                wrong.push(format!("{}:{number}: {}", source.name, line.trim()));
            }
        }
    }
    none(&wrong);
}

#[test]
fn what_is_serializable_in_the_core_is_what_events_and_answers_hold() {
    // Commands, rejections, obligations and rules make no promise to a log. Nor does the state: what it is for
    // snapshots is good for the very core that wrote it, and told by its fingerprint.
    let promised_nothing = [
        "protocol/rejection.rs",
        "protocol/obligation.rs",
        "protocol/ownership.rs",
        "protocol/rule/mod.rs",
        "protocol/rule/view.rs",
        "protocol/review/command.rs",
        "protocol/review/requirement.rs",
    ];
    let mut wrong = Vec::new();
    for file in promised_nothing {
        let source = Source::read(Path::new("src").join(file));
        for (number, line) in source.lines() {
            if has_word(line, "Serialize") || has_word(line, "Deserialize") {
                wrong.push(format!("{}:{number}", source.name));
            }
        }
    }
    none(&wrong);
}

#[test]
fn no_second_tls_provider_comes_in() {
    let lock = read("Cargo.lock");
    for name in ["aws-lc-rs", "aws-lc-sys", "openssl-sys"] {
        assert!(
            !lock.contains(&format!("name = \"{name}\"")),
            "{name} is in Cargo.lock: ring is the one provider"
        );
    }
}

#[test]
fn a_long_file_has_its_reason() {
    let mut wrong = Vec::new();
    let mut long = BTreeSet::new();
    for source in sources("src").into_iter().chain(sources("tests")).chain(sources("benches")) {
        let lines = source.text.lines().count();
        if lines > FILE_LINES_MAX {
            long.insert(source.name.clone());
            if !LONG_FILES.iter().any(|(file, _)| *file == source.name) {
                wrong.push(format!("{}: {lines} lines, and no reason", source.name));
            }
        }
    }
    wrong.extend(
        LONG_FILES
            .iter()
            .filter(|(file, _)| !long.contains(*file))
            .map(|(file, _)| format!("{file} is not that long any more: take it off the list")),
    );
    none(&wrong);
}

#[test]
fn no_test_is_switched_off_and_nothing_sleeps() {
    let own = file!();
    let mut wrong = Vec::new();
    let mut sleeping = BTreeSet::new();
    for source in sources("src").into_iter().chain(sources("tests")) {
        // This file names what it looks for.
        if source.name == own {
            continue;
        }
        for (number, line) in source.all_lines() {
            if line.contains("#[ignore") {
                wrong.push(format!("{}:{number}: a test is switched off", source.name));
            }
            if has_word(line, "sleep") && line.contains("sleep(") {
                sleeping.insert(source.name.clone());
                if !SLEEPS.iter().any(|(file, _)| *file == source.name) {
                    wrong.push(format!("{}:{number}: it sleeps, and no reason is given", source.name));
                }
            }
        }
    }
    wrong.extend(
        SLEEPS
            .iter()
            .filter(|(file, _)| !sleeping.contains(*file))
            .map(|(file, _)| format!("{file} does not sleep any more: take it off the list")),
    );
    none(&wrong);
}

#[test]
fn no_module_is_a_drawer() {
    let drawers = ["utils", "util", "helpers", "helper", "common", "manager", "types", "misc"];
    let mut wrong = Vec::new();
    for source in sources("src") {
        let parts = Path::new(&source.name).iter().filter_map(|part| part.to_str());
        if parts.map(|part| part.trim_end_matches(".rs")).any(|part| drawers.contains(&part)) {
            wrong.push(source.name);
        }
    }
    none(&wrong);
}

#[test]
fn nothing_that_is_handed_out_names_this_machine() {
    // Roots under which people and build machines keep their own files.
    let roots = ["home", "root", "Users", "work", "workspace", "workspaces", "builds", "mnt", "media", "srv"];
    let mut wrong = Vec::new();
    for file in handed_out() {
        let text = read(&file);
        for (number, line) in text.lines().enumerate() {
            for root in roots {
                if names_root(line, root) {
                    wrong.push(format!("{}:{}: /{root}/…", file.display(), number + 1));
                }
            }
        }
    }
    none(&wrong);
}

#[test]
fn links_between_the_documents_lead_somewhere() {
    let mut wrong = Vec::new();
    for file in handed_out().into_iter().filter(|file| file.extension().is_some_and(|end| end == "md")) {
        let text = read(&file);
        for (number, line) in text.lines().enumerate() {
            for (link, anchor) in links(line) {
                let folder = file.parent().unwrap_or(Path::new(""));
                let target = if link.is_empty() { file.clone() } else { folder.join(&link) };
                let place = format!("{}:{}", file.display(), number + 1);
                if !root().join(&target).exists() {
                    wrong.push(format!("{place}: there is no {link}"));
                } else if let Some(anchor) =
                    anchor.filter(|_| target.extension().is_some_and(|end| end == "md"))
                {
                    let there = headings(&read(&target));
                    if !there.contains(&anchor) {
                        wrong.push(format!("{place}: {link} has no #{anchor}"));
                    }
                }
            }
        }
    }
    none(&wrong);
}

/// The documents name tests and plays as what would go red: they must be there.
#[test]
fn every_test_that_the_guarantees_name_is_there() {
    let tests: String =
        sources("src").into_iter().chain(sources("tests")).map(|source| source.text).collect();
    let mut wrong = Vec::new();
    let mut named = 0;
    for document in ["docs/guarantees.md", "SECURITY.md"] {
        for (number, line) in read(document).lines().enumerate() {
            for code in line.split('`').skip(1).step_by(2) {
                let is_test = code.contains('_')
                    && code.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_');
                if is_test {
                    named += 1;
                    if !tests.contains(&format!("fn {code}(")) && !tests.contains(&format!("fn {code}<")) {
                        wrong.push(format!("{document}:{}: there is no test {code}", number + 1));
                    }
                }
                let is_file = code.ends_with(".play") || code.ends_with(".rs");
                if is_file && !root().join(code).exists() {
                    wrong.push(format!("{document}:{}: there is no {code}", number + 1));
                }
            }
        }
    }
    none(&wrong);
    assert!(named > 20, "the guarantees name their tests; only {named} were found");
}

// The scanner -----------------------------------------------------------------------------------

/// A Rust file: what stands in it, and the same without comments, texts and unit tests.
struct Source {
    /// Its path from the package's root.
    name: String,
    text: String,
    code: String,
}

impl Source {
    fn read(path: impl AsRef<Path>) -> Self {
        let text = read(&path);
        let code = without_tests(&without_comments(&text));
        Self { name: path.as_ref().display().to_string(), text, code }
    }

    /// The module of ours that the file belongs to.
    fn module(&self) -> Option<String> {
        let first = Path::new(&self.name).strip_prefix("src").ok()?.iter().next()?.to_str()?;
        Some(first.trim_end_matches(".rs").to_owned())
    }

    /// Lines of code, counted from 1.
    fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.code.lines().enumerate().map(|(index, line)| (index + 1, line))
    }

    /// Every line, also of comments and tests.
    fn all_lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.text.lines().enumerate().map(|(index, line)| (index + 1, line))
    }

    /// How many `super::` lead from the file's module to the crate's root.
    fn depth(&self) -> usize {
        let path = Path::new(&self.name).strip_prefix("src").unwrap_or(Path::new(&self.name));
        path.iter().count() - usize::from(path.ends_with("mod.rs"))
    }

    /// What follows each way to the crate's root, also in braces over several lines, with its line.
    fn uses(&self) -> Vec<(usize, String)> {
        let climb = "super::".repeat(self.depth());
        let mut found = Vec::new();
        for way in ["crate::", climb.as_str()] {
            for (at, _) in self.code.match_indices(way) {
                // `$crate::` is ours as well; `somecrate::` is not.
                if self.code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == ':') {
                    continue;
                }
                let line = self.code[..at].matches('\n').count() + 1;
                let rest = &self.code[at + way.len()..];
                let names = match rest.strip_prefix('{') {
                    None => vec![word(rest)],
                    Some(group) => top_names(group),
                };
                found.extend(names.into_iter().filter(|name| !name.is_empty()).map(|name| (line, name)));
            }
        }
        found
    }
}

fn word(text: &str) -> String {
    text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
}

/// The first name of each item of a group, up to its closing brace.
fn top_names(group: &str) -> Vec<String> {
    let (mut names, mut deep, mut start) = (Vec::new(), 0, true);
    for (at, c) in group.char_indices() {
        match c {
            '{' => deep += 1,
            '}' if deep == 0 => break,
            '}' => deep -= 1,
            ',' if deep == 0 => start = true,
            c if start && !c.is_whitespace() => {
                names.push(word(&group[at..]));
                start = false;
            }
            _ => {}
        }
    }
    names
}

/// The text with comments and the insides of string literals blanked, lines kept.
fn without_comments(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let skipped = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |end| end + 2)
        } else if c == '"' {
            literal(rest, "\"")
        } else if let Some(hashes) = raw_hashes(rest, &out) {
            let close = format!("\"{}", "#".repeat(hashes));
            let open = 2 + hashes;
            open + rest[open..].find(&close).map_or(rest.len() - open, |end| end + close.len())
        } else if rest.starts_with("'\"'") || rest.starts_with("'\\") {
            // A character that would look like the beginning of a text.
            1 + rest[1..].char_indices().skip(1).find(|(_, c)| *c == '\'').map_or(0, |(at, _)| at + 1)
        } else {
            0
        };
        if skipped == 0 {
            out.push(c);
            rest = &rest[c.len_utf8()..];
        } else {
            out.extend(rest[..skipped].chars().filter(|c| *c == '\n'));
            out.push(' ');
            rest = &rest[skipped..];
        }
    }
    out
}

/// The length of a text literal with its quotes.
fn literal(text: &str, quote: &str) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            c if quote.contains(c) => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// How many hashes a raw text has that begins here, if one does.
fn raw_hashes(rest: &str, before: &str) -> Option<usize> {
    let after = rest.strip_prefix('r')?;
    let hashes = after.bytes().take_while(|b| *b == b'#').count();
    let begins = after[hashes..].starts_with('"');
    let inside_a_name = before.ends_with(|c: char| c.is_alphanumeric() && c != 'b' || c == '_');
    (begins && !inside_a_name).then_some(hashes)
}

/// The code without modules of unit tests: they may put parts together as they like.
fn without_tests(code: &str) -> String {
    let mut out = String::with_capacity(code.len());
    let mut lines = code.lines();
    while let Some(line) = lines.next() {
        if line.trim() != "#[cfg(test)]" {
            out.push_str(line);
            out.push('\n');
            continue;
        }
        out.push('\n');
        let Some(item) = lines.next() else { break };
        out.push('\n');
        let mut deep = depth(item);
        while deep > 0 {
            let Some(line) = lines.next() else { break };
            out.push('\n');
            deep += depth(line);
        }
    }
    out
}

fn depth(line: &str) -> isize {
    line.chars().map(|c| isize::from(c == '{') - isize::from(c == '}')).sum()
}

/// Whether the line names that crate in a path: `name::…`, or alone in a `use`.
fn names_crate(line: &str, name: &str) -> bool {
    line.match_indices(&format!("{name}::"))
        .any(|(at, _)| !line[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == ':'))
        || line.trim() == format!("use {name};")
}

fn has_word(line: &str, word: &str) -> bool {
    let inside = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(word)
        .any(|(at, _)| !line[..at].ends_with(inside) && !line[at + word.len()..].starts_with(inside))
}

/// Whether the line has a path from that root of a file system.
fn names_root(line: &str, root: &str) -> bool {
    line.match_indices(&format!("/{root}/"))
        .any(|(at, _)| !line[..at].ends_with(|c: char| c.is_alphanumeric() || "._-*)~}".contains(c)))
}

/// Relative links of a line of Markdown: file, and anchor where there is one.
fn links(line: &str) -> Vec<(String, Option<String>)> {
    let mut found = Vec::new();
    for (at, _) in line.match_indices("](") {
        let Some(end) = line[at + 2..].find(')') else { continue };
        let link = &line[at + 2..at + 2 + end];
        if link.contains("://") || link.starts_with("mailto:") {
            continue;
        }
        match link.split_once('#') {
            Some((file, anchor)) => found.push((file.to_owned(), Some(anchor.to_owned()))),
            None => found.push((link.to_owned(), None)),
        }
    }
    found
}

/// The anchors of a document's headings, as GitHub makes them.
fn headings(text: &str) -> BTreeSet<String> {
    let lines = text.lines().filter(|line| line.starts_with('#'));
    lines
        .map(|line| {
            let title = line.trim_start_matches('#').trim().to_lowercase();
            title
                .chars()
                .filter(|c| c.is_alphanumeric() || " -_".contains(*c))
                .collect::<String>()
                .replace(' ', "-")
        })
        .collect()
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: impl AsRef<Path>) -> String {
    let path = path.as_ref();
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// All Rust files below a folder, by name.
fn sources(folder: &str) -> Vec<Source> {
    let sources: Vec<Source> = files(Path::new(folder), "rs").into_iter().map(Source::read).collect();
    assert!(!sources.is_empty(), "{folder} holds no source");
    sources
}

/// What people get to read: documents, protos, rules, charters, the program's own texts.
fn handed_out() -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = files(Path::new(""), "md");
    for (folder, end) in [
        ("docs", "md"),
        ("rules", "toml"),
        ("rules", "md"),
        ("proto", "proto"),
        ("src", "rs"),
        ("src", "toml"),
        ("tests/plays", "play"),
        ("tests/charters", "toml"),
    ] {
        found.extend(files(Path::new(folder), end));
    }
    found.sort();
    found.dedup();
    found
}

/// Files below a folder with that ending; of the package's root its own files alone.
fn files(folder: &Path, end: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        let entries =
            fs::read_dir(root().join(&next)).unwrap_or_else(|error| panic!("{}: {error}", next.display()));
        for entry in entries {
            let entry = entry.expect("a folder that was opened can be listed");
            let path = next.join(entry.file_name());
            let kind = entry.file_type().expect("an entry has a type");
            if kind.is_dir() && folder != Path::new("") {
                folders.push(path);
            } else if kind.is_file() && path.extension().is_some_and(|found| found == end) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

fn none(wrong: &[String]) {
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

mod scanner {
    use super::*;

    #[test]
    fn sees_what_a_file_uses() {
        let code = "use crate::store::{Fault, Row};\nuse crate::{\n  artifact,\n  wire::{proto, x},\n};\nlet a = crate::cli::run;\n";
        let source = Source { name: "src/x.rs".to_owned(), text: code.to_owned(), code: code.to_owned() };
        let uses: Vec<(usize, String)> = source.uses();
        let uses: Vec<(usize, &str)> = uses.iter().map(|(line, name)| (*line, name.as_str())).collect();
        assert_eq!(uses, [(1, "store"), (2, "artifact"), (2, "wire"), (6, "cli")]);

        let code = "use super::super::store::Fault;\nuse super::Other;\n".to_owned();
        let source = Source { name: "src/judge/x.rs".to_owned(), text: code.clone(), code };
        assert_eq!(source.uses(), [(1, "store".to_owned())]);
    }

    #[test]
    fn overlooks_comments_texts_and_unit_tests() {
        let text = "// crate::cli\nlet a = \"crate::cli \\\" HashMap\";\nlet q = '\"'; let b = r#\"x \" tokio\"#;\nlet c = 1; /* async\n */ let d = 2;\n#[cfg(test)]\nmod tests {\n    use crate::cli;\n}\nlet e = HashMap;\n";
        let code = without_tests(&without_comments(text));
        assert_eq!(code.lines().count(), text.lines().count(), "{code}");
        assert!(!code.contains("cli") && !code.contains("tokio") && !code.contains("async"), "{code}");
        assert!(code.lines().nth(9).unwrap().contains("HashMap"), "{code}");
    }

    #[test]
    fn knows_words_and_roots() {
        assert!(has_word("let x: HashMap<a>", "HashMap") && !has_word("MyHashMapper", "HashMap"));
        assert!(names_crate("use tonic::Status;", "tonic") && !names_crate("mytonic::x", "tonic"));
        assert!(names_root("see /home/app/x", "home") && !names_root("../home/x", "home"));
        assert!(!names_root("https://example.org/work/x", "work"));
    }
}
