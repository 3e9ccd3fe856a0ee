//! Plays: a conversation, and below each line everything that a member would see.
//!
//! ```text
//! # One claim, in two or three lines that say why.
//!
//! app: propose parser
//! ----
//! parser@1 stands
//! arch owes: review parser@1
//! sec owes: review parser@1
//! ```
//!
//! A step is a line `MEMBER: COMMAND…`, or one of `wait 2m`, `away 2h` (no server runs
//! meanwhile), `land PATH=TEXT` (somebody's work lands on main), `move REF` (somebody moves a ref without the server),
//! `restart` and `charter NAME` (the first step; `solo` where there is none). Its output stands below `----` and ends at an empty line.
//! Digests are left out of what is shown. `UPDATE=1` rewrites the output.
//!
//! After each step somebody owes something, unless everything is published or a cooldown runs; and after
//! the last one the play is finished by obedience: the commands that obligations name are given one
//! after the other, and each is accepted.
//!
//! The commands are those of the command line, with what only a play needs beside them: `propose` takes
//! `--file PATH=TEXT` and `--delete PATH` (a fresh text in `src/NAME.rs` where none is given),
//! `--author EMAIL`, `--co-author EMAIL`, `--empty`, and `--stale` for a version that has main in its history and
//! the files that the version before it had; a reference `parser@1` is made exact, unless it
//! carries digits itself; `confirm implement` confirms what this member last saw in `status`; `called-out` lists
//! what the log says was called out; `transcript` what was said, with what came of it; `listen` takes a wake or is
//! blocked, and goes away (with `--killed` before it says that the wake was taken); `try RULE` tries a candidate of
//! tests/plays/charters/candidates.
//! The rules of the folder that a charter names stand beside it in tests/plays/charters.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use super::screen::{said, shown, without_digests};
use countersign::judge::own;
use countersign::protocol::charter;
use countersign::protocol::rule::OwnRule;
use countersign::protocol::time::Span;

/// A text file by path; what a version of a play holds.
pub type Files = BTreeMap<String, String>;

/// What a member does.
#[derive(Clone, Debug, Default)]
pub struct Proposing {
    pub proposal: String,
    pub files: Files,
    /// Against the files of the version before.
    pub touched: BTreeSet<String>,
    pub author: Option<String>,
    pub co_authors: Vec<String>,
    pub empty: bool,
    pub stale: bool,
    pub summary: String,
    pub answers: Vec<(String, String)>,
    pub after: u32,
    pub request: Option<String>,
}

#[derive(Clone, Debug)]
pub struct Ran {
    pub command: String,
    pub exit: Option<i32>,
    pub output: Option<String>,
}

#[derive(Clone, Debug)]
pub enum Act {
    Propose(Box<Proposing>),
    Show {
        subject: String,
    },
    Objections {
        proposal: String,
    },
    Approve {
        reference: String,
        checked: Vec<String>,
        ran: Vec<Ran>,
        resolve: Vec<String>,
        request: Option<String>,
    },
    Object {
        reference: String,
        text: String,
        at: Vec<String>,
        failing_test: Option<Ran>,
        request: Option<String>,
    },
    Note {
        reference: String,
        text: String,
        at: Vec<String>,
    },
    Resolve {
        objection: String,
        mistaken: bool,
        reason: String,
    },
    Overrule {
        objection: String,
        reason: String,
    },
    Withdraw {
        proposal: String,
        reason: String,
    },
    ReportCheck {
        reference: String,
        name: String,
        exit: Option<i32>,
        output: Option<String>,
    },
    Confirm {
        reference: String,
    },
    Explain {
        name: String,
    },
    /// What the log says was called out.
    CalledOut,
    /// What a candidate rule of that name, among the rules of plays, would say.
    TryRule {
        name: String,
    },
    Adopt {
        /// The text of a charter.
        charter: String,
        reason: String,
    },
    Escalate {
        subject: String,
        text: String,
    },
    Listen {
        subjects: Vec<String>,
        kinds: Vec<String>,
        /// Whether it ends before it says that the wake was taken.
        killed: bool,
    },
    Answer {
        escalation: String,
        decision: String,
        member: Option<String>,
        reviewer: Option<String>,
        reason: String,
    },
    Say {
        text: String,
        to: Vec<String>,
        reply: Option<String>,
        about: Option<String>,
        /// The places and the commands of a claim.
        claim: Option<(Vec<String>, Vec<Ran>)>,
        request: Option<String>,
    },
    Verdict {
        message: String,
        verdict: String,
        text: String,
        at: Vec<String>,
        ran: Vec<Ran>,
    },
    /// The room's record.
    Transcript,
}

/// What a member gets to see.
#[derive(Clone, Debug)]
pub enum Seen {
    Proposed {
        reference: String,
        escalated: Vec<String>,
    },
    Shown {
        reference: String,
    },
    Objections {
        lines: Vec<String>,
    },
    Approved {
        reference: String,
    },
    Raised {
        id: String,
        reference: String,
    },
    Closed {
        id: String,
    },
    Withdrawn {
        flips: u32,
        flips_left: u32,
        until: String,
    },
    Checked {
        name: String,
        status: String,
        reference: String,
    },
    Confirmed {
        complete: bool,
        waiting_for: Vec<String>,
    },
    Requirements {
        lines: Vec<String>,
    },
    CalledOut {
        lines: Vec<String>,
    },
    Escalated {
        id: String,
    },
    Answered {
        id: String,
    },
    /// The wake, all that is owed, and what of it woke; nothing where it is blocked.
    Heard {
        woken: Option<(String, Vec<String>, Vec<String>)>,
    },
    Said {
        id: String,
        ended: bool,
        escalation: Option<String>,
        woke: Vec<String>,
    },
    Judged {
        id: String,
        verdict: String,
    },
    Transcript {
        lines: Vec<String>,
    },
    Adopted {
        revision: u32,
    },
    Refused {
        violations: Vec<Refusal>,
    },
}

#[derive(Clone, Debug)]
pub struct Refusal {
    pub code: String,
    pub message: String,
    pub remedy: String,
}

/// Name, current reference, state, approvals that count, open objections.
pub type ProposalLine = (String, String, String, Vec<String>, Vec<String>);

/// The standing that everybody can see.
#[derive(Clone, Debug, Default)]
pub struct Standing {
    /// Circle by circle: name, exact reference, state, confirmed.
    pub circles: Vec<(String, String, String, Vec<String>)>,
    /// Proposal by proposal.
    pub proposals: Vec<ProposalLine>,
    /// Member, kind, subject, command; oldest first.
    pub obligations: Vec<(String, String, String, String)>,
    /// Open ones: id, cause, subject.
    pub escalations: Vec<(String, String, String)>,
}

/// Where a play is played.
pub trait Stage {
    /// The files that a version in git is compared with; without a repository, a version is compared with
    /// the one before it.
    fn base(&self) -> Option<Files>;
    fn act(&mut self, member: &str, act: &Act) -> Seen;
    fn standing(&mut self) -> Standing;
    fn wait(&mut self, span: Span);
    /// Time passes in which no server runs.
    fn away(&mut self, span: Span);
    fn restart(&mut self);
    /// Somebody's work lands on main, which holds these files then.
    fn land(&mut self, files: &Files);
    /// Somebody moves a ref without the server.
    fn move_ref(&mut self, name: &str);
}

/// Plays every file below `tests/plays` on a fresh stage each, and compares or rewrites.
pub fn play_all<S: Stage>(make: impl Fn(&str) -> S) {
    let mut failures = Vec::new();
    let files = play_files();
    assert!(!files.is_empty(), "the plays are gone");
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        println!("{}", file.display()); // Shown where the play panics.
        let played = play(&text, &make);
        if played != text {
            if std::env::var_os("UPDATE").is_some() {
                std::fs::write(&file, played).unwrap();
            } else {
                failures.push(format!("{}\n{}", file.display(), difference(&text, &played)));
            }
        }
    }
    assert!(failures.is_empty(), "{} plays went otherwise:\n\n{}", failures.len(), failures.join("\n"));
}

/// Where the tests stand.
pub fn tests_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests")
}

/// Every play's path, sorted.
pub fn play_files() -> Vec<PathBuf> {
    let root = tests_folder().join("plays");
    let mut files = Vec::new();
    for folder in
        std::fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir())
    {
        files.extend(std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()));
    }
    files.retain(|file| file.extension().is_some_and(|extension| extension == "play"));
    files.sort();
    files
}

/// Every code that some play's expected output shows.
pub fn codes_shown() -> BTreeSet<String> {
    let mut codes = BTreeSet::new();
    for file in play_files() {
        for line in std::fs::read_to_string(file).unwrap().lines() {
            let first = line.strip_prefix("refused ");
            let further = line.strip_prefix("  also ");
            codes.extend(
                first.or(further).map(|code| code.split_whitespace().next().unwrap_or("").to_owned()),
            );
        }
    }
    codes
}

/// The charter that a play begins with.
pub fn charter_text(name: &str) -> String {
    let file =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/plays/charters").join(format!("{name}.toml"));
    std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

/// The file of a candidate rule.
pub fn candidate_file(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/plays/charters/candidates");
    folder.join(format!("{name}.toml"))
}

/// The rules of the folder that a charter names, beside it.
pub fn own_rules(charter: &str) -> Vec<OwnRule> {
    let parsed = charter::parse("charter.toml", charter).ok();
    let Some(folder) = parsed.and_then(|charter| charter.rules.folder) else { return Vec::new() };
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/plays/charters").join(folder);
    own::read_folder(&path).unwrap_or_else(|errors| panic!("{errors:?}"))
}

fn difference(expected: &str, played: &str) -> String {
    let mut out = String::new();
    let (expected, played): (Vec<_>, Vec<_>) = (expected.lines().collect(), played.lines().collect());
    let same = expected.iter().zip(&played).take_while(|(one, other)| one == other).count();
    for line in &expected[same.saturating_sub(6)..same] {
        let _ = writeln!(out, "    {line}");
    }
    for line in expected.iter().skip(same).take(8) {
        let _ = writeln!(out, "  - {line}");
    }
    for line in played.iter().skip(same).take(8) {
        let _ = writeln!(out, "  + {line}");
    }
    out
}

/// Plays one text; gives it back with the output that was seen.
pub fn play<S: Stage>(text: &str, make: &impl Fn(&str) -> S) -> String {
    let mut out = String::new();
    let mut lines = text.lines().peekable();
    let mut charter = "solo".to_owned();
    let mut troupe: Option<Troupe<S>> = None;
    while let Some(line) = lines.next() {
        out.push_str(line);
        out.push('\n');
        let step = line.trim();
        if step.is_empty() || step.starts_with('#') {
            continue;
        }
        if let Some(name) = step.strip_prefix("charter ") {
            assert!(troupe.is_none(), "the charter comes first");
            charter = name.to_owned();
            continue;
        }
        if lines.peek() == Some(&"----") {
            lines.next();
        }
        while lines.peek().is_some_and(|line| !line.is_empty()) {
            lines.next();
        }
        let troupe = troupe.get_or_insert_with(|| Troupe::new(make(&charter)));
        let seen = troupe.step(step);
        if !seen.is_empty() {
            out.push_str("----\n");
            out.push_str(&seen);
        }
    }
    if let Some(mut troupe) = troupe {
        troupe.obey();
    }
    out
}

/// The members of a play, with what each was told.
struct Troupe<S> {
    stage: S,
    /// Exact references by `parser@1`.
    exact: BTreeMap<String, String>,
    /// The version that each member was last told, by proposal.
    told: BTreeMap<(String, String), u32>,
    /// Circle references that each member saw in its last status.
    circles: BTreeMap<(String, String), String>,
    files: BTreeMap<String, Files>,
    /// What each proposal does to main, wherever that stands.
    changes: BTreeMap<String, BTreeMap<String, Option<String>>>,
    before: BTreeMap<String, Vec<String>>,
    texts: u32,
}

impl<S: Stage> Troupe<S> {
    fn new(mut stage: S) -> Self {
        let before = owed(&stage.standing());
        Self {
            stage,
            exact: BTreeMap::new(),
            told: BTreeMap::new(),
            circles: BTreeMap::new(),
            files: BTreeMap::new(),
            changes: BTreeMap::new(),
            before,
            texts: 0,
        }
    }

    fn step(&mut self, step: &str) -> String {
        let mut out = String::new();
        if let Some(span) = step.strip_prefix("wait ") {
            self.stage.wait(span.parse().unwrap());
        } else if let Some(span) = step.strip_prefix("away ") {
            self.stage.away(span.parse().unwrap());
        } else if let Some(file) = step.strip_prefix("land ") {
            let mut files = self.stage.base().expect("work lands where there is a repository");
            let (path, text) = file.split_once('=').unwrap();
            files.insert(path.to_owned(), format!("{text}\n"));
            self.stage.land(&files);
        } else if let Some(name) = step.strip_prefix("move ") {
            self.stage.move_ref(name);
        } else if step == "restart" {
            self.stage.restart();
        } else {
            let (member, command) = step.split_once(": ").unwrap_or_else(|| panic!("no member: {step}"));
            let words = words(command);
            if words[0] == "status" {
                let standing = self.stage.standing();
                for (name, reference, ..) in &standing.circles {
                    self.circles.insert((member.to_owned(), name.clone()), reference.clone());
                }
                out.push_str(&shown(&standing));
            } else {
                let act = self.act(member, &words);
                let seen = self.stage.act(member, &act);
                self.remember(member, &act, &seen);
                out.push_str(&said(&seen));
            }
        }
        let standing = self.stage.standing();
        assert!(somebody_owes(&standing), "after \"{step}\" nobody owes anything:\n{}", shown(&standing));
        let now = owed(&standing);
        let members: BTreeSet<&String> = now.keys().chain(self.before.keys()).collect();
        for member in members {
            let (before, after) = (self.before.get(member), now.get(member));
            if before != after {
                let _ = match after {
                    Some(owed) => writeln!(out, "{member} owes: {}", owed.join(", ")),
                    None => writeln!(out, "{member} owes nothing"),
                };
            }
        }
        self.before = now;
        without_digests(&out)
    }

    /// Finishes the play by obedience alone: everybody does exactly what their oldest obligation says,
    /// and every such command is accepted, until everything is published.
    fn obey(&mut self) {
        const COMMANDS_MAX: usize = 200;
        let mut obeyed_last = String::new();
        for _ in 0..COMMANDS_MAX {
            let standing = self.stage.standing();
            assert!(somebody_owes(&standing), "nobody owes anything:\n{}", shown(&standing));
            if standing.circles.iter().all(|(_, _, state, _)| state != "open") {
                return;
            }
            let Some((member, _, _, command)) = standing.obligations.first() else {
                // A cooldown runs, and only that.
                "a wait".clone_into(&mut obeyed_last);
                self.stage.wait(Span::seconds(60));
                continue;
            };
            let words = obeyed(command);
            if words[0] == "propose" {
                // What is owed is told with the version that it is owed on.
                let known = standing.proposals.iter().find(|(name, ..)| *name == words[1]);
                let version = known.and_then(|(_, reference, ..)| version_of(reference)).unwrap_or(0);
                self.told.insert((member.clone(), words[1].clone()), version);
            }
            let act = self.act(member, &words);
            let seen = self.stage.act(member, &act);
            assert!(
                !matches!(seen, Seen::Refused { .. }),
                "{member} was told to run {command}, and it was:\n{}{}",
                said(&seen),
                shown(&standing)
            );
            self.remember(member, &act, &seen);
            obeyed_last = format!("{member}: {command}");
        }
        panic!("obedience leads nowhere, last by {obeyed_last}:\n{}", shown(&self.stage.standing()));
    }

    fn remember(&mut self, member: &str, act: &Act, seen: &Seen) {
        let (told, reference) = match (act, seen) {
            (Act::Propose(proposing), Seen::Proposed { reference, .. }) => {
                self.files.insert(proposing.proposal.clone(), proposing.files.clone());
                if let Some(base) = self.stage.base().filter(|_| !proposing.stale) {
                    let changed =
                        proposing.touched.iter().filter(|path| base.get(*path) != proposing.files.get(*path));
                    let changes = changed.map(|path| (path.clone(), proposing.files.get(path).cloned()));
                    self.changes.insert(proposing.proposal.clone(), changes.collect());
                }
                (true, reference)
            }
            (_, Seen::Shown { reference }) => (true, reference),
            (Act::Objections { proposal }, Seen::Objections { .. }) => {
                let standing = self.stage.standing();
                let known = standing.proposals.iter().find(|(name, ..)| name == proposal);
                let version = known.and_then(|(_, reference, ..)| version_of(reference)).unwrap_or(0);
                self.told.insert((member.to_owned(), proposal.clone()), version);
                return;
            }
            _ => return,
        };
        let (short, _) = reference.split_once(':').unwrap();
        let (proposal, _) = short.split_once('@').unwrap();
        self.exact.insert(short.to_owned(), reference.clone());
        if told {
            let version = version_of(reference).unwrap();
            self.told.insert((member.to_owned(), proposal.to_owned()), version);
        }
    }

    fn exact(&self, reference: &str) -> String {
        self.exact.get(reference).cloned().unwrap_or_else(|| reference.to_owned())
    }

    fn act(&mut self, member: &str, words: &[String]) -> Act {
        let mut args = Args::of(words);
        let act = match args.verb.as_str() {
            "propose" => {
                let proposal = args.positional();
                Act::Propose(Box::new(self.proposing(member, proposal, &mut args)))
            }
            "show" => Act::Show { subject: args.positional() },
            "objections" => Act::Objections { proposal: args.positional() },
            "approve" => Act::Approve {
                reference: self.exact(&args.positional()),
                checked: args.all("checked"),
                ran: args.runs("ran"),
                resolve: args.all("resolve"),
                request: args.one("request-id"),
            },
            "object" => Act::Object {
                reference: self.exact(&args.positional()),
                text: args.positional(),
                at: args.all("at"),
                failing_test: args.runs("failing-test").pop(),
                request: args.one("request-id"),
            },
            "note" => Act::Note {
                reference: self.exact(&args.positional()),
                text: args.positional(),
                at: args.all("at"),
            },
            "resolve" => Act::Resolve {
                objection: args.positional(),
                mistaken: args.flag("mistaken"),
                reason: args.one("reason").unwrap_or_default(),
            },
            "overrule" => {
                Act::Overrule { objection: args.positional(), reason: args.one("reason").unwrap_or_default() }
            }
            "withdraw" => {
                Act::Withdraw { proposal: args.positional(), reason: args.one("reason").unwrap_or_default() }
            }
            "check" => {
                assert_eq!(args.positional(), "report", "a check is reported");
                Act::ReportCheck {
                    reference: self.exact(&args.positional()),
                    name: args.positional(),
                    exit: args.one("exit").map(|exit| exit.parse().unwrap()),
                    output: args.one("output"),
                }
            }
            "confirm" => {
                let circle = args.positional();
                let saw = self.circles.get(&(member.to_owned(), circle.clone())).cloned();
                Act::Confirm { reference: saw.unwrap_or(circle) }
            }
            "explain" => Act::Explain { name: args.positional() },
            "called-out" => Act::CalledOut,
            "try" => Act::TryRule { name: args.positional() },
            "adopt" => Act::Adopt {
                charter: charter_text(&args.positional()),
                reason: args.one("reason").unwrap_or_default(),
            },
            "listen" => Act::Listen {
                subjects: args.all("for"),
                kinds: args.all("topic"),
                killed: args.flag("killed"),
            },
            "escalate" => Act::Escalate { subject: args.positional(), text: args.positional() },
            "answer" => Act::Answer {
                escalation: args.positional(),
                decision: args.one("decide").unwrap_or_default(),
                member: args.one("member"),
                reviewer: args.one("reviewer"),
                reason: args.one("reason").unwrap_or_default(),
            },
            "say" => {
                let (claim, ran) = (args.flag("claim"), args.runs("ran"));
                Act::Say {
                    text: args.positional(),
                    to: args.all("to"),
                    reply: args.one("reply"),
                    about: args.one("about"),
                    claim: claim.then(|| (args.all("at"), ran)),
                    request: args.one("request-id"),
                }
            }
            "verdict" => Act::Verdict {
                message: args.positional(),
                verdict: args.positional(),
                text: args.positional(),
                ran: args.runs("ran"),
                at: args.all("at"),
            },
            "transcript" => Act::Transcript,
            verb => panic!("no play knows how to {verb}"),
        };
        args.finish();
        act
    }

    fn proposing(&mut self, member: &str, proposal: String, args: &mut Args) -> Proposing {
        let base = self.stage.base();
        let stale = args.flag("stale");
        let mut files = match (&base, self.changes.get(&proposal)) {
            // The producer's work goes on from where main stands.
            (Some(base), Some(changes)) if !stale => {
                let mut files = base.clone();
                for (path, text) in changes {
                    match text {
                        Some(text) => drop(files.insert(path.clone(), text.clone())),
                        None => drop(files.remove(path)),
                    }
                }
                files
            }
            _ => self.files.get(&proposal).or(base.as_ref()).cloned().unwrap_or_default(),
        };
        let before = base.clone().unwrap_or_else(|| files.clone());
        let given = args.all("file");
        if given.is_empty() {
            self.texts += 1;
            files.insert(format!("src/{proposal}.rs"), format!("text {}\n", self.texts));
        }
        for file in given {
            let (path, text) = file.split_once('=').unwrap();
            files.insert(path.to_owned(), format!("{text}\n"));
        }
        for path in args.all("delete") {
            files.remove(&path);
        }
        let empty = args.flag("empty");
        if empty {
            files = base.unwrap_or_default();
        }
        let paths: BTreeSet<&String> = before.keys().chain(files.keys()).collect();
        let touched =
            paths.into_iter().filter(|path| before.get(*path) != files.get(*path)).cloned().collect();
        let told = self.told.get(&(member.to_owned(), proposal.clone())).copied().unwrap_or(0);
        let split = |answer: String| {
            answer.split_once('=').map(|(id, text)| (id.to_owned(), text.to_owned())).unwrap()
        };
        Proposing {
            files,
            touched,
            author: args.one("author"),
            co_authors: args.all("co-author"),
            empty,
            stale,
            summary: args.one("summary").unwrap_or_default(),
            answers: args.all("answer").into_iter().map(split).collect(),
            after: args.one("after").map_or(told, |after| after.parse().unwrap()),
            request: args.one("request-id"),
            proposal,
        }
    }
}

/// The words of a command with its options; everything must be used.
struct Args {
    verb: String,
    positional: Vec<String>,
    options: Vec<(String, String)>,
}

impl Args {
    const FLAGS: [&'static str; 5] = ["mistaken", "empty", "killed", "claim", "stale"];

    fn of(words: &[String]) -> Self {
        let mut args = Self { verb: words[0].clone(), positional: Vec::new(), options: Vec::new() };
        let mut words = words[1..].iter();
        while let Some(word) = words.next() {
            match word.strip_prefix("--") {
                Some(flag) if Self::FLAGS.contains(&flag) => {
                    args.options.push((flag.to_owned(), String::new()));
                }
                Some(option) => args.options.push((option.to_owned(), words.next().unwrap().clone())),
                None => args.positional.push(word.clone()),
            }
        }
        args.positional.reverse();
        args
    }

    /// The next positional word; empty where there is none, as an optional argument is.
    fn positional(&mut self) -> String {
        self.positional.pop().unwrap_or_default()
    }

    fn all(&mut self, name: &str) -> Vec<String> {
        let (found, rest) =
            std::mem::take(&mut self.options).into_iter().partition(|(option, _)| option == name);
        self.options = rest;
        let found: Vec<(String, String)> = found;
        found.into_iter().map(|(_, value)| value).collect()
    }

    fn one(&mut self, name: &str) -> Option<String> {
        self.all(name).pop()
    }

    fn flag(&mut self, name: &str) -> bool {
        !self.all(name).is_empty()
    }

    /// `--NAME COMMAND` with the `--exit` and `--output` that follow it.
    fn runs(&mut self, name: &str) -> Vec<Ran> {
        let mut runs: Vec<Ran> = Vec::new();
        self.options.retain(|(option, value)| {
            if option == name {
                runs.push(Ran { command: value.clone(), exit: None, output: None });
            } else if let Some(run) = runs.last_mut().filter(|_| option == "exit") {
                run.exit = Some(value.parse().unwrap());
            } else if let Some(run) = runs.last_mut().filter(|_| option == "output") {
                run.output = Some(value.clone());
            } else {
                return true;
            }
            false
        });
        runs
    }

    fn finish(self) {
        assert!(
            self.positional.is_empty() && self.options.is_empty(),
            "{:?} {:?}",
            self.positional,
            self.options
        );
    }
}

/// Words, with `\u{200b}` for a character that nobody would see, and `"…"` or `'…'` around those that hold spaces. `*8` after a quoted text repeats it.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    for c in line.chars() {
        match (c, quote) {
            ('"' | '\'', None) => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (c, Some(open)) if c == open => quote = None,
            (' ', None) => words.extend(word.take()),
            (c, _) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    for word in &mut words {
        while let Some((before, rest)) = word.split_once("\\u{") {
            let (code, after) = rest.split_once('}').unwrap();
            let hidden = char::from_u32(u32::from_str_radix(code, 16).unwrap()).unwrap();
            *word = format!("{before}{hidden}{after}");
        }
        // `a*70000` stands for that many letters.
        if let Some((letter, count)) = word.split_once('*').filter(|(letter, _)| letter.chars().count() == 1)
            && let Ok(count) = count.parse()
        {
            *word = letter.repeat(count);
        }
    }
    words
}

fn version_of(reference: &str) -> Option<u32> {
    reference.split_once('@')?.1.split(':').next()?.parse().ok()
}

/// Whether somebody owes something that is more than an answer in the room, or a cooldown will make it so, wherever something is open.
fn somebody_owes(standing: &Standing) -> bool {
    let open = standing.circles.iter().any(|(_, _, state, _)| state == "open");
    let cooling = standing.proposals.iter().any(|(_, _, state, ..)| state == "withdrawn");
    let owed = standing.obligations.iter().any(|(_, kind, ..)| kind != "answer");
    !open || cooling || owed
}

/// The words of a command that an obligation names, as a play says it.
fn obeyed(command: &str) -> Vec<String> {
    let command = command.strip_prefix("countersign ").unwrap_or_else(|| panic!("no command: {command}"));
    let command = command.strip_prefix("escalations ").unwrap_or(command);
    // The files of a play's version are told otherwise.
    // Whoever obeys says something of their own.
    let said = command
        .replace("=TEXT", "=done")
        .replace(" TEXT", " done")
        .replace(" VERDICT", " unverifiable")
        .replace("--ran CMD", "--ran 'cargo test'");
    words(
        &said
            .replace(" --path DIR", "")
            .replace(" --commit HEAD", "")
            .replace(" --checked PLACE", "")
            .replace("--exit N", "--exit 0"),
    )
}

/// What each member owes, in words.
fn owed(standing: &Standing) -> BTreeMap<String, Vec<String>> {
    let mut owed: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (member, kind, subject, _) in &standing.obligations {
        owed.entry(member.clone()).or_default().push(without_digests(&format!("{kind} {subject}")));
    }
    owed
}
