//! Steps as a play: what a failed run came to, in the words in which every other case is kept.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use countersign::judge::CelJudge;
use countersign::protocol::name::{Actor, DigestPrefix, ProposalName, Subject, VersionRef};
use countersign::protocol::review::{NamedPlace, Propose, Run, Version};
use countersign::protocol::time::Span;
use countersign::protocol::{Command, Decision, Violation};

use super::dice::Dice;
use super::faults::Mishap;
use super::step::Step;
use super::world::World;

/// The end of a reference that nothing has.
const NOTHING: &str = "000000000000";

/// A play and the charters that it names.
pub struct Script {
    pub name: String,
    pub play: String,
    /// By name.
    pub charters: BTreeMap<String, String>,
    /// What each of its commands came to: its line, and the codes where it was refused. Up to the first
    /// complete circle, which in a play is published at once.
    pub outcomes: Vec<(String, Vec<&'static str>)>,
}

impl Script {
    /// Writes it, with its charters in a folder beside it; gives the play's path.
    pub fn write(&self, folder: &Path) -> std::io::Result<PathBuf> {
        std::fs::create_dir_all(folder.join("charters"))?;
        for (name, text) in &self.charters {
            std::fs::write(folder.join("charters").join(format!("{name}.toml")), text)?;
        }
        let path = folder.join(format!("{}.play", self.name));
        std::fs::write(&path, &self.play)?;
        Ok(path)
    }

    /// Compares with the same play as it was played; how many commands came to the same, or which didn't.
    pub fn agrees_with(&self, played: &str) -> Result<usize, String> {
        let mut lines = played.lines();
        for (line, codes) in &self.outcomes {
            if !lines.any(|played| played == line) {
                return Err(format!("{line}\n  was not played"));
            }
            let shown = lines.clone().take_while(|line| !line.is_empty());
            let code = |line: &str| {
                let code = line.strip_prefix("refused ").or(line.strip_prefix("  also "));
                code.map(str::to_owned)
            };
            let shown: Vec<String> = shown.filter_map(code).collect();
            if shown != *codes {
                return Err(format!("{line}\n  came to {shown:?}, not to {codes:?}"));
            }
        }
        Ok(self.outcomes.len())
    }
}

/// The play of these steps. They are repeated against the core, since what a reference stands for depends
/// on what was accepted.
pub fn of(judge: &CelJudge, charter: &str, steps: &[Step], name: &str, because: &str) -> Script {
    let mut script = Script {
        name: name.to_owned(),
        play: String::new(),
        charters: BTreeMap::from([(name.to_owned(), charter.to_owned())]),
        outcomes: Vec::new(),
    };
    for line in because.lines() {
        let _ = writeln!(script.play, "# {line}");
    }
    let _ = writeln!(script.play, "\ncharter {name}\n");
    let Ok(mut world) = World::new(judge, Dice::of(0), charter, None) else { return script };
    let (mut files, mut open) = (BTreeMap::new(), true);
    for step in steps {
        let all = lines(&world, step, &files, &mut script);
        for line in &all {
            let _ = writeln!(script.play, "{line}\n");
        }
        // What git is made to say here it doesn't say there, and what was complete once is published in the play,
        // also where it opens again here.
        let spoken_of = |version: &Version| version.standing.is_some();
        let spoken =
            world.team.review().proposals().any(|proposal| proposal.current().is_some_and(spoken_of));
        open &= !spoken && world.team.review().circles().all(|circle| circle.completed.is_none());
        let said = match step.clone() {
            Step::Said { said, .. } => said,
            Step::Obeyed { owed, command, .. } => vec![(Actor::Member(owed.member), command)],
            other => {
                // What breaks here broke before.
                drop(world.take(&plain(other)));
                continue;
            }
        };
        let known = all.iter().filter(|line| !line.starts_with('#') && !line.ends_with(": status"));
        let mut known = known.cloned();
        for (who, command) in said {
            let decided = world.say(vec![(who.clone(), command.clone())], Span::ZERO, Mishap::None);
            let decided = decided.ok().and_then(|mut decided| decided.pop());
            let Some(decided) = decided.filter(|_| sayable(&world, &who, &command)) else { continue };
            if let (Command::Propose(propose), Ok(_)) = (&command, &decided.outcome) {
                files.insert(propose.proposal.clone(), touched(propose));
            }
            let codes = codes(&decided);
            // What is unchanged touches nothing in a play, and so nothing that others own.
            let told = !["UNCHANGED_PROPOSAL", "OUTSIDE_OWNERSHIP"].iter().all(|code| codes.contains(code));
            if let Some(line) = known.next().filter(|_| open && told) {
                script.outcomes.push((line, codes));
            }
        }
    }
    script
}

/// The same step with nothing going wrong in a server.
fn plain(step: Step) -> Step {
    match step {
        Step::Pass { span, away, .. } => Step::Pass { span, away, mishap: Mishap::None },
        Step::Repeated { .. } => Step::Pass { span: Span::ZERO, away: false, mishap: Mishap::None },
        other => other,
    }
}

fn codes(decision: &Decision) -> Vec<&'static str> {
    let rejection = decision.outcome.as_ref().err();
    rejection.map_or(Vec::new(), |rejection| rejection.violations().iter().map(Violation::code).collect())
}

type Files = BTreeMap<ProposalName, BTreeSet<String>>;

fn lines(world: &World<'_>, step: &Step, files: &Files, script: &mut Script) -> Vec<String> {
    match step {
        Step::Pass { span, away, mishap } => {
            let how = if *away { "away" } else { "wait" };
            let went = (*mishap != Mishap::None).then(|| format!("# {}", mishap.name()));
            let passes = (!span.is_zero()).then(|| format!("{how} {span}"));
            went.into_iter().chain(passes).collect()
        }
        Step::Restarted(_) => vec!["restart".to_owned()],
        Step::Repeated { which, .. } => vec![format!("# request {which} is made once more")],
        Step::Obeyed { owed, command, .. } => {
            said(world, &Actor::Member(owed.member.clone()), command, files, script)
        }
        Step::Said { said: all, mishap, .. } => {
            let mut out = Vec::new();
            if *mishap != Mishap::None {
                out.push(format!("# {}", mishap.name()));
            }
            if all.len() > 1 {
                out.push(format!("# these {} at once", all.len()));
            }
            out.extend(all.iter().flat_map(|(who, command)| said(world, who, command, files, script)));
            out
        }
    }
}

/// Whether a play has words for it.
fn sayable(world: &World<'_>, who: &Actor, command: &Command) -> bool {
    let servers = matches!(
        command,
        Command::Adopt(_)
            | Command::ReportPublish(_)
            | Command::ReportTarget(_)
            | Command::ReportSent(_)
            | Command::ReportMoved(_)
            | Command::ReportUnheard(_)
            | Command::ReportPutBack(_)
            | Command::TimePassed
            | Command::ResumeServer(_)
            | Command::Acknowledge(_)
    );
    !servers && who.member().is_some_and(|member| world.members.contains(member))
}

/// One command as its member says it, with the line before it that it needs.
fn said(
    world: &World<'_>,
    who: &Actor,
    command: &Command,
    files: &Files,
    script: &mut Script,
) -> Vec<String> {
    let member = match who.member() {
        Some(member) if sayable(world, who, command) => member,
        _ => return vec![format!("# {who} asks for what no member can: {command:?}").replace('\n', " ")],
    };
    let mut before = None;
    let text = match command {
        Command::Propose(propose) => proposed(propose, files),
        Command::Read(read) => format!("show {}", subject(world, &read.subject)),
        Command::ReadObjections(read) => format!("objections {}", read.proposal),
        Command::Approve(approve) => {
            let mut text = format!("approve {}", reference(world, &approve.reference));
            places(&mut text, "--checked", &approve.checked);
            if approve.checked.iter().any(|place| place.found) {
                // Which lines a play's files have isn't known here; a command is evidence too.
                text.push_str(" --ran \"less\" --exit 0");
            }
            for run in &approve.ran {
                ran(&mut text, "--ran", run);
            }
            for id in &approve.resolve {
                let _ = write!(text, " --resolve {id}");
            }
            text
        }
        Command::Object(object) => {
            let mut text = format!("object {} {}", reference(world, &object.reference), quoted(&object.text));
            places(&mut text, "--at", &object.at);
            if let Some(test) = &object.failing_test {
                ran(&mut text, "--failing-test", test);
            }
            text
        }
        Command::Note(note) => {
            let mut text = format!("note {} {}", reference(world, &note.reference), quoted(&note.text));
            places(&mut text, "--at", &note.at);
            text
        }
        Command::Resolve(resolve) => {
            let mistaken = if resolve.mistaken { " --mistaken" } else { "" };
            format!("resolve {}{mistaken} --reason {}", resolve.objection, quoted(&resolve.reason))
        }
        Command::Overrule(overrule) => {
            format!("overrule {} --reason {}", overrule.objection, quoted(&overrule.reason))
        }
        Command::Withdraw(withdraw) => {
            format!("withdraw {} --reason {}", withdraw.proposal, quoted(&withdraw.reason))
        }
        Command::ReportCheck(report) => {
            let mut text = format!("check report {} {}", reference(world, &report.reference), report.name);
            if let Some(exit) = report.exit {
                let _ = write!(text, " --exit {exit}");
            }
            if let Some(output) = &report.output {
                let _ = write!(text, " --output {}", quoted(output));
            }
            text
        }
        Command::Confirm(confirm) => {
            let given = &confirm.reference;
            let review = world.team.review();
            let circle = review.circle(&given.circle);
            let current = circle.is_some_and(|circle| match &circle.completed {
                Some(completed) => given.digest.names(&completed.manifest),
                None => review.circle_ref(world.revision(), circle) == *given,
            });
            if current {
                before = Some(format!("{member}: status"));
                format!("confirm {}", given.circle)
            } else {
                format!("confirm {}:{NOTHING}", given.circle)
            }
        }
        Command::Revise(revise) => {
            let name = format!("{}-{}", script.name, script.charters.len());
            let text = format!("adopt {name} --reason {}", quoted(&revise.reason));
            script.charters.insert(name, revise.text.clone());
            text
        }
        Command::Escalate(escalate) => format!("escalate {} {}", escalate.subject, quoted(&escalate.text)),
        Command::AnswerEscalation(answer) => {
            let mut text = format!("answer {} --decide {}", answer.escalation, answer.decision);
            if let Some(named) = &answer.member {
                let _ = write!(text, " --member {named}");
            }
            if let Some(named) = &answer.reviewer {
                let _ = write!(text, " --reviewer {named}");
            }
            let _ = write!(text, " --reason {}", quoted(&answer.reason));
            text
        }
        Command::Say(say) => {
            let mut text = format!("say {}", quoted(&say.text));
            for named in &say.to {
                let _ = write!(text, " --to {named}");
            }
            if let Some(reply) = say.reply {
                let _ = write!(text, " --reply {reply}");
            }
            if let Some(about) = &say.about {
                let _ = write!(text, " --about {about}");
            }
            text.push_str(if say.claim.is_some() { " --claim" } else { "" });
            text
        }
        Command::JudgeClaim(judge) => {
            format!("verdict {} {} {}", judge.message, judge.verdict, quoted(&judge.text))
        }
        Command::BreakGlass(_) => unreachable!("the simulated teams have no door"),
        Command::Adopt(_)
        | Command::ReportPublish(_)
        | Command::ReportTarget(_)
        | Command::ReportSent(_)
        | Command::ReportMoved(_)
        | Command::ReportUnheard(_)
        | Command::ReportPutBack(_)
        | Command::TimePassed
        | Command::ResumeServer(_)
        | Command::Acknowledge(_) => unreachable!("no member says it"),
    };
    before.into_iter().chain([format!("{member}: {text}")]).collect()
}

fn touched(propose: &Propose) -> BTreeSet<String> {
    propose.facts.paths.iter().map(ToString::to_string).collect()
}

/// Each content is a text of its own in each of the paths that it touches.
fn proposed(propose: &Propose, files: &Files) -> String {
    let mut text = format!("propose {} --after {}", propose.proposal, propose.after);
    if propose.facts.empty {
        text.push_str(" --empty");
    } else {
        let touched = touched(propose);
        for path in &touched {
            let _ =
                write!(text, " --file {}", quoted(&format!("{path}={}", propose.artifact.content.short())));
        }
        let before = files.get(&propose.proposal).cloned().unwrap_or_default();
        for gone in before.difference(&touched) {
            let _ = write!(text, " --delete {}", quoted(gone));
        }
    }
    let mut option = "--author";
    for author in &propose.facts.authors {
        let _ = write!(text, " {option} {}", author.email);
        option = "--co-author";
    }
    for (id, answer) in &propose.answers {
        let _ = write!(text, " --answer {}", quoted(&format!("{id}={answer}")));
    }
    let _ = write!(text, " --summary {}", quoted(&propose.summary));
    text
}

/// A reference without its digits, which a play fills in, where they are the version's; with none that
/// anything has where they aren't.
fn reference(world: &World<'_>, given: &VersionRef) -> String {
    digits(world, &given.proposal, given.version, Some(&given.digest))
}

fn digits(world: &World<'_>, proposal: &ProposalName, version: u32, digest: Option<&DigestPrefix>) -> String {
    let known = world.team.review().proposal(proposal);
    let known = known.and_then(|known| known.versions.iter().find(|known| known.number == version));
    let exact = digest.is_none_or(|digest| known.is_some_and(|known| digest.names(&known.artifact.digest)));
    if exact { format!("{proposal}@{version}") } else { format!("{proposal}@{version}:{NOTHING}") }
}

fn subject(world: &World<'_>, subject: &Subject) -> String {
    match subject.version {
        Some(version) => digits(world, &subject.proposal, version, subject.digest.as_ref()),
        None => subject.proposal.to_string(),
    }
}

fn places(text: &mut String, option: &str, places: &[NamedPlace]) {
    for place in places.iter().filter(|place| !place.found) {
        let _ = write!(text, " {option} {}", place.place);
    }
}

fn ran(text: &mut String, option: &str, run: &Run) {
    let _ = write!(text, " {option} {}", quoted(&run.command));
    if let Some(exit) = run.exit {
        let _ = write!(text, " --exit {exit}");
    }
    if let Some(output) = &run.output {
        let _ = write!(text, " --output {}", quoted(output));
    }
}

/// As a play quotes: nothing is special within quotes, and a line's end can't be written as it is.
fn quoted(text: &str) -> String {
    // Obedience in a play reads no quote within quotes.
    let text = text.replace("\n", "\\u{a}").replace('\'', "_");
    if text.contains('"') { format!("'{text}'") } else { format!("\"{text}\"") }
}
