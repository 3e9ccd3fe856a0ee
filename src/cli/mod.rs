//! The command line: one file a command; [`output`] prints, [`speaker`] finds who speaks to which
//! server, [`failure`] has the exit codes.
//!
//! It decides nothing. A command reads its texts, asks the server, and says what came of it: as JSON
//! for scripts, or in words in which the texts of others stand in fences.

mod approve;
mod brief;
mod charter;
mod check;
mod clone;
mod confirm;
mod demo;
mod diff;
mod door;
mod escalations;
mod evidence;
mod explain;
mod failure;
mod fetch;
mod harness;
mod hook;
mod init;
mod integrate;
mod listen;
mod log;
mod member;
mod minutes;
mod object;
mod objections;
mod operator;
mod output;
mod page;
mod pages;
mod place;
mod propose;
mod reading;
#[cfg(test)]
mod remedies;
mod resolve;
mod roster;
mod rules;
mod say;
mod serve;
mod show;
mod speaker;
mod status;
mod text;
mod told;
mod transcript;
mod verify;
mod withdraw;
mod words;

use std::ffi::OsString;
use std::io;

use clap::{CommandFactory, Parser, Subcommand};
use tokio::runtime::Builder;

use crate::client::{json, sockets_allowed};
pub use failure::{Exit, Failure};
pub use output::Answer;
pub use pages::reference;
use speaker::Global;

/// A protocol for teams of coding agents, enforced by a server.
///
/// Nothing stale, unread or unreviewed passes its door: a version counts once every reviewer approved
/// exactly it, every objection was read and answered, and everybody confirmed.
#[derive(Parser, Debug)]
#[command(
    name = "countersign",
    version,
    propagate_version = false,
    subcommand_required = true,
    arg_required_else_help = true,
    disable_help_subcommand = false,
    max_term_width = 100,
    after_help = "A producer:  propose, objections, check report, confirm, withdraw
A reviewer:  show, diff, fetch, approve, object, note, resolve, confirm
Everybody:   listen, brief, status, explain, roster, say, verdict, transcript, minutes
A person:    page, status, overrule, escalations answer
An operator: init, serve, team add, member token, door, check --commit, verify, backup

Exit codes: 0 done, 1 refused, 2 usage, 3 server not reachable, 4 timed out, 5 not authenticated,
6 superseded by another listener, 7 outcome unknown."
)]
pub struct Cli {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    #[command(after_help = "Example:
  countersign init --charter charter.toml

Refused with CHARTER_REFUSED, RULE_REFUSED, HOME_TAKEN, TEAM_TAKEN, REPOSITORY_UNUSABLE, REPOSITORY_IN_USE.")]
    Init(init::Init),

    #[command(after_help = "Examples:
  countersign serve
  countersign serve --listen 127.0.0.1:0
  countersign serve --page 127.0.0.1:8080

The room page is on this machine alone; for each person a link is printed that signs in once. Where there is no home, one is made from charter.toml in the current folder; where there is no
such file either, a starter is written. One line says when it is ready. COUNTERSIGN_LOG filters
its log, as in COUNTERSIGN_LOG=countersign=debug.

Refused with HOME_HELD, HOME_UNUSABLE, LOG_DAMAGED, STORE_UNUSABLE, CANNOT_LISTEN, NOT_LOOPBACK,
TLS_UNUSABLE, CHARTER_REFUSED, RULE_REFUSED.")]
    Serve(serve::Serve),

    #[command(after_help = "Example:
  countersign page --as dana

What signs in stands behind the link's #: no browser sends it anywhere but to the page.
Refused with PAGE_OFF, LINKS_MAX.")]
    Page(page::Page),

    Team(init::Team),

    Member(member::Member),

    #[command(after_help = "Examples:
  countersign propose parser --commit HEAD --summary 'Streaming parser'
  countersign propose parser --commit HEAD --text-file summary.md --answer o1='moved the lock'
  countersign propose report --path out/ --text-file - < summary.md

Refused with UNKNOWN_SUBJECT, TEXT_TOO_LARGE, NOT_PRODUCER, PHASE_CLOSED, DELIVERABLE_DROPPED,
CIRCLE_COMPLETE, NAME_UNUSABLE, EMPTY_PROPOSAL, UNCHANGED_PROPOSAL, OUTSIDE_OWNERSHIP, VERSION_CONFLICT, UNREAD_OBJECTIONS,
UNANSWERED_OBJECTIONS, COOLDOWN_ACTIVE, ROUND_LIMIT, SECRET_FOUND, RULE_DENIED, NOT_STAGED, ARTIFACT_TOO_LARGE,
ARTIFACT_KIND_UNFIT, PATH_UNSAFE.")]
    Propose(propose::Propose),

    #[command(after_help = "Example:
  countersign show parser@2

Refused with UNKNOWN_SUBJECT, DIGEST_MISMATCH.")]
    Show(show::Show),

    #[command(after_help = "Examples:
  countersign diff parser@2
  countersign diff parser@1..2

Refused with UNKNOWN_SUBJECT, DIGEST_MISMATCH, UNREAD_VERSION.")]
    Diff(diff::Diff),

    #[command(after_help = "Example:
  countersign fetch parser@2 -o /tmp/parser-2

Refused with UNKNOWN_SUBJECT, DIGEST_MISMATCH, FOLDER_NOT_EMPTY, PATH_UNSAFE.")]
    Fetch(fetch::Fetch),

    #[command(after_help = "Example:
  countersign objections parser

Refused with UNKNOWN_SUBJECT.")]
    Objections(objections::Objections),

    #[command(after_help = "Examples:
  countersign approve parser@2:41d0c9aa1e53 --checked src/lexer.rs:80-140
  countersign approve parser@2:41d0c9aa1e53 --ran 'cargo test' --exit 0 --output @run.txt
  countersign approve parser@2:41d0c9aa1e53 --checked src/lexer.rs:112 --resolve o1

Refused with UNKNOWN_SUBJECT, TEXT_TOO_LARGE, NOT_REVIEWER, OWN_WORK, STALE_VERSION,
DIGEST_MISMATCH, UNREAD_VERSION, WITHDRAWN, OBJECTION_HELD, FAILING_TEST, PLACE_UNKNOWN,
VOTE_LIMIT, CIRCLE_COMPLETE, RULE_DENIED.")]
    Approve(approve::Approve),

    #[command(after_help = "Examples:
  countersign object parser@2:41d0c9aa1e53 'Overflows on a 2 GiB input' --at src/lexer.rs:112
  countersign object parser@2:41d0c9aa1e53 --text-file - --failing-test 'cargo test' --output @run.txt

Refused with UNKNOWN_SUBJECT, TEXT_TOO_LARGE, NOT_REVIEWER, STALE_VERSION, DIGEST_MISMATCH,
UNREAD_VERSION, WITHDRAWN, PLACE_UNKNOWN, VOTE_LIMIT, CIRCLE_COMPLETE, EMPTY_TEXT.")]
    Object(object::Object),

    #[command(after_help = "Example:
  countersign note parser@2:41d0c9aa1e53 'The name could say more' --at src/lexer.rs:12

Refused as object is, and with NOTE_LIMIT.")]
    Note(object::Note),

    #[command(after_help = "Examples:
  countersign resolve o1
  countersign resolve o1 --mistaken --reason 'I read the wrong branch'

Refused with UNKNOWN_SUBJECT, NOT_OBJECTOR, NOT_AN_OBJECTION, OBJECTION_CLOSED, NOTHING_CHANGED,
UNREAD_VERSION, REASON_REQUIRED.")]
    Resolve(resolve::Resolve),

    #[command(after_help = "Example:
  countersign overrule o1 --reason 'we ship without it, and mend it in the next phase'

Refused with UNKNOWN_SUBJECT, NOT_A_PERSON, OWN_WORK, NOT_AN_OBJECTION, OBJECTION_CLOSED,
REASON_REQUIRED.")]
    Overrule(resolve::Overrule),

    #[command(after_help = "Example:
  countersign withdraw parser --reason 'one more look at the widths'

Refused with UNKNOWN_SUBJECT, NOT_PRODUCER, NOTHING_TO_WITHDRAW, REASON_REQUIRED,
COOLDOWN_ACTIVE, FLIP_LIMIT, CIRCLE_COMPLETE.")]
    Withdraw(withdraw::Withdraw),

    #[command(after_help = "Example:
  countersign confirm implement:3fa91c20d8e7

Refused with UNKNOWN_SUBJECT, NOT_PARTICIPANT, STALE_CONFIRM, CONFIRM_BLOCKED.")]
    Confirm(confirm::Confirm),

    Check(check::Check),

    #[command(after_help = "Example:
  countersign status")]
    Status(status::Status),

    #[command(after_help = "Example:
  countersign explain parser

Refused with UNKNOWN_SUBJECT.")]
    Explain(explain::Explain),

    #[command(after_help = "Examples:
  countersign listen
  countersign listen --timeout 20m --for parser
  countersign listen --exec 'claude -p \"$(cat)\"'

Exit codes: 0 something is owed, 3 the server stayed away, 4 nothing came in time, 6 another
listener of the member took over. Refused with MALFORMED, NOT_A_WATCHER, SUPERSEDED.")]
    Listen(listen::Listen),

    #[command(after_help = "Example:
  countersign roster")]
    Roster(roster::Roster),

    Door(door::Door),

    #[command(after_help = "Example, as a line of the harness's settings:
  countersign --as app hook claude-code stop

countersign integrate claude-code writes these lines.")]
    Hook(hook::Hook),

    #[command(after_help = "Examples:
  countersign integrate claude-code --dry-run
  countersign --as app integrate claude-code
  countersign integrate claude-code --remove

Refused with SETTINGS_UNREADABLE, IO.")]
    Integrate(integrate::Integrate),

    Charter(charter::CharterArgs),

    Rules(rules::Rules),

    #[command(after_help = "Examples:
  countersign graph
  countersign graph --mermaid > graph.mmd")]
    Graph(charter::GraphArgs),

    #[command(after_help = "Examples:
  countersign log --from 120
  countersign --json log --limit 1000")]
    Log(log::Log),

    #[command(after_help = "Example:
  countersign verify

It reads alone, with or without a running server.
Refused with LOG_DAMAGED, with the first sequence that can't be trusted, STORE_UNUSABLE,
UNKNOWN_TEAM.")]
    Verify(verify::Verify),

    #[command(after_help = "Example:
  countersign backup /backups/monday

It reads alone, with or without a running server; the copy proves itself before it is told.
Refused with
FOLDER_TAKEN, LOG_DAMAGED, STORE_UNUSABLE, BACKUP_INCOMPLETE.")]
    Backup(verify::Backup),

    #[command(after_help = "Example:
  countersign escalate parser 'sec and arch want opposite things'

Refused with UNKNOWN_SUBJECT, EMPTY_TEXT, TEXT_TOO_LARGE.")]
    Escalate(escalations::Escalate),

    Escalations(escalations::Escalations),

    #[command(after_help = "Examples:
  countersign say --text-file - --to sec --about parser < question.md
  countersign say '@sec does this hold for a 2 GiB input?' --about o3
  countersign say --reply m12 'It does: see the test'
  countersign say --claim 'The lexer never allocates' --at src/lexer.rs:80-140 --ran 'cargo test' --exit 0

Refused with UNKNOWN_SUBJECT, UNKNOWN_MEMBER, MEMBER_LEFT, EMPTY_TEXT, TEXT_TOO_LARGE, SECRET_FOUND.")]
    Say(say::Say),

    #[command(after_help = "Examples:
  countersign verdict m12 supported --ran 'cargo test lexer' --exit 0 --output @run.txt
  countersign verdict m12 refuted 'It allocates in line 112' --at src/lexer.rs:112

Refused with UNKNOWN_SUBJECT, NOT_A_CLAIM, OWN_CLAIM, ALREADY_JUDGED, TEXT_TOO_LARGE, SECRET_FOUND.")]
    Verdict(say::Verdict),

    #[command(after_help = "Examples:
  countersign transcript
  countersign transcript --from m12
  countersign transcript --before 480 --limit 200

Refused with UNKNOWN_SUBJECT.")]
    Transcript(transcript::Transcript),

    #[command(after_help = "Example:
  countersign minutes implement > minutes.md

Refused with UNKNOWN_SUBJECT, EVENT_UNREADABLE.")]
    Minutes(minutes::Minutes),

    #[command(after_help = "Examples:
  countersign brief
  countersign brief --paste --as sec")]
    Brief(brief::Brief),

    #[command(after_help = "Examples:
  countersign demo
  countersign demo --into played

Refused with FOLDER_NOT_EMPTY, DEMO_FAILED.")]
    Demo(demo::Demo),

    #[command(after_help = "Example:
  countersign completions bash > /etc/bash_completion.d/countersign")]
    Completions(pages::Completions),

    #[command(after_help = "Examples:
  countersign man | man -l -
  countersign man /usr/local/share/man/man1")]
    Man(pages::Man),

    /// Prints the reference page of all commands
    #[command(hide = true)]
    Reference,
}

/// The definition of the command line.
pub fn command() -> clap::Command {
    Cli::command()
}

/// Parses `args`, the program's name first, does what they say, and prints it.
pub fn run(args: impl IntoIterator<Item = OsString>) -> Exit {
    let args: Vec<OsString> = args.into_iter().collect();
    let hook_asked = hook::is_asked_for(&args);
    let wants_json = args.iter().any(|arg| arg == "--json") && !hook_asked;
    let cli = match Cli::try_parse_from(args) {
        Ok(cli) => cli,
        Err(told) if told.use_stderr() && wants_json => {
            return output::print(&Err(misunderstood(&told)), true);
        }
        Err(told) => {
            // Help and version are no mistakes; where nobody reads them, nothing is lost.
            let _ = told.print();
            return match told.use_stderr() {
                // To a harness the parser's code is an order to its agent.
                true if hook_asked => Exit::Refused,
                true => Exit::Usage,
                false => Exit::Done,
            };
        }
    };
    let as_json = cli.global.json;
    output::print(&outcome(cli), as_json)
}

/// What the parser says, for scripts: its first paragraph.
fn misunderstood(told: &clap::Error) -> Failure {
    let told = told.to_string();
    let said = told.split("\n\n").next().unwrap_or_default();
    Failure::usage(said.strip_prefix("error: ").unwrap_or(said).trim())
}

fn outcome(cli: Cli) -> Result<Answer, Failure> {
    let Cli { global, command } = cli;
    // These need no server, and no runtime either.
    let command = match command {
        Command::Verify(verify) => return verify.run(&global),
        Command::Backup(backup) => return backup.run(&global),
        Command::Completions(completions) => return completions.run(),
        Command::Man(man) => return man.run(),
        Command::Integrate(integrate) => return integrate.run(&global),
        Command::Reference => return Ok(Answer::verbatim(reference())),
        Command::Charter(charter) => {
            match charter.alone(global.member.is_some() && sockets_allowed().is_ok()) {
                Some(checked) => return checked,
                None => Command::Charter(charter),
            }
        }
        Command::Rules(rules) => match rules.alone() {
            Some(tested) => return tested,
            None => Command::Rules(rules),
        },
        other => other,
    };
    // The runtime takes signals by a pair of sockets; where there are none to be had it would panic.
    if let Err(why) = sockets_allowed() {
        return Err(sockets_forbidden(&why));
    }
    let mut runtime = match command {
        Command::Serve(_) | Command::Demo(_) => Builder::new_multi_thread(),
        _ => Builder::new_current_thread(),
    };
    let runtime = runtime.enable_all().build().map_err(|why| Failure::io("the runtime", &why))?;
    let outcome = runtime.block_on(dispatch(command, &global));
    // A thread that still waits for standard input or a disk must not keep what is done.
    runtime.shutdown_background();
    outcome
}

fn sockets_forbidden(why: &io::Error) -> Failure {
    Failure::new(
        Exit::Unreachable,
        "SOCKETS_FORBIDDEN",
        format!("this sandbox forbids sockets, so nothing is known about the server: {why}"),
        "let this process use the network, or run the command outside the sandbox",
    )
}

async fn dispatch(command: Command, global: &Global) -> Result<Answer, Failure> {
    match command {
        Command::Init(init) => init.run(global).await,
        Command::Serve(serve) => Box::pin(serve.run(global)).await,
        Command::Page(page) => page.run(global).await,
        Command::Team(team) => team.run(global).await,
        Command::Member(member) => member.run(global).await,
        Command::Propose(propose) => Box::pin(propose.run(global)).await,
        Command::Show(show) => show.run(global).await,
        Command::Diff(diff) => diff.run(global).await,
        Command::Fetch(fetch) => fetch.run(global).await,
        Command::Objections(objections) => objections.run(global).await,
        Command::Approve(approve) => approve.run(global).await,
        Command::Object(object) => object.run(global).await,
        Command::Note(note) => note.run(global).await,
        Command::Resolve(resolve) => resolve.run(global).await,
        Command::Overrule(overrule) => overrule.run(global).await,
        Command::Withdraw(withdraw) => withdraw.run(global).await,
        Command::Confirm(confirm) => confirm.run(global).await,
        Command::Check(check) => check.run(global).await,
        Command::Listen(listen) => Box::pin(listen.run(global)).await,
        Command::Roster(roster) => roster.run(global).await,
        Command::Door(door) => Box::pin(door.run(global)).await,
        Command::Hook(hook) => hook.run(global).await,
        Command::Status(status) => status.run(global).await,
        Command::Explain(explain) => explain.run(global).await,
        Command::Charter(charter) => charter.run(global).await,
        Command::Graph(graph) => graph.run(global).await,
        Command::Log(log) => log.run(global).await,
        Command::Escalate(escalate) => escalate.run(global).await,
        Command::Rules(rules) => rules.run(global).await,
        Command::Escalations(escalations) => escalations.run(global).await,
        Command::Say(say) => say.run(global).await,
        Command::Verdict(verdict) => verdict.run(global).await,
        Command::Transcript(transcript) => transcript.run(global).await,
        Command::Minutes(minutes) => minutes.run(global).await,
        Command::Brief(brief) => brief.run(global).await,
        Command::Demo(demo) => Box::pin(demo.run(global)).await,
        Command::Verify(_)
        | Command::Backup(_)
        | Command::Completions(_)
        | Command::Man(_)
        | Command::Integrate(_)
        | Command::Reference => unreachable!("it was done without a runtime"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_is_consistent() {
        command().debug_assert();
    }

    #[test]
    fn every_command_says_what_it_does_and_shows_it() {
        fn check(command: &clap::Command) {
            let name = command.get_name();
            assert!(command.get_about().is_some(), "{name} says what it does");
            let groups = command.get_subcommands().next().is_some();
            let example = command.get_after_help().is_some_and(|help| help.to_string().contains("Example"));
            assert!(groups || command.is_hide_set() || example, "{name} has an example");
            command.get_subcommands().for_each(check);
        }
        command().get_subcommands().for_each(check);
    }
}
