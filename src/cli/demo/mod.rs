//! `countersign demo`: a scripted team plays a whole phase against a real server on a real temporary git
//! repository. Every line that it shows is a real command, run as shown; one reviewer uses gRPC alone.

mod stage;
mod summary;

use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::json;

use super::Global;
use super::failure::Failure;
use super::output::Answer;
use stage::Stage;

/// Why the demo could not be played to its end.
#[derive(Debug, thiserror::Error)]
pub enum DemoFault {
    /// A program that it needs could not be run.
    #[error("{program} could not be run: {source}")]
    Program {
        /// The program.
        program: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// A file could not be written or read.
    #[error("{path}: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A step went otherwise than it must.
    #[error("{step} went otherwise than it must: {what}")]
    Step {
        /// The command.
        step: String,
        /// What came instead.
        what: String,
    },
}

type Result<T> = std::result::Result<T, DemoFault>;

/// Plays a whole review in a temporary folder, and says what happens.
///
/// A scripted team plays a phase against a real server on a real git repository. Every line that it
/// shows is a real command; the folder is left, to look around in.
#[derive(Debug, clap::Args)]
pub struct Demo {
    /// Play in this folder, instead of a fresh temporary one.
    #[arg(long, value_name = "DIR")]
    into: Option<PathBuf>,
}

/// Where the conversation goes while it happens: with `--json`, standard output is for the answer.
type Tell = fn(&str);

impl Demo {
    /// Plays the whole phase.
    pub async fn run(self, global: &Global) -> std::result::Result<Answer, Failure> {
        let tell: Tell = if global.json {
            |line| tell(&mut io::stderr(), line)
        } else {
            |line| tell(&mut io::stdout(), line)
        };
        if let Some(folder) = &self.into
            && std::fs::read_dir(folder).is_ok_and(|mut held| held.next().is_some())
        {
            return Err(Failure::refused(
                "FOLDER_NOT_EMPTY",
                format!("{} is not empty", folder.display()),
                "name a folder that isn't there yet",
            )
            .with("path", folder.display().to_string()));
        }
        let played = self.play(tell).await;
        played.map_err(|fault| {
            let remedy = "git must be installed, and this machine must allow sockets on loopback";
            Failure::refused("DEMO_FAILED", fault, remedy)
        })
    }

    async fn play(&self, tell: Tell) -> Result<Answer> {
        let began = Instant::now();
        let mut stage = Stage::set(self.into.as_deref(), tell).await?;
        let played = play(&mut stage).await;
        stage.server.stop();
        played?;
        let Stage { folder, binary, commands, calls, refused, .. } = &stage;
        let (folder, binary) = (folder.display(), binary.display());
        let seconds = began.elapsed().as_secs_f64();
        let text = format!(
            "\n{commands} commands and {calls} gRPC calls in {seconds:.1} s; {refused} of them were refused, as \
             they had to be.\nEverything is left in {folder}. Look around:\n  cd {folder}\n  {binary} verify\n  \
             {binary} serve &\n  {binary} --as dana status\n"
        );
        let told = json!({
            "folder": folder.to_string(), "commands": commands, "calls": calls, "refused": refused,
        });
        Ok(Answer::new(told, text))
    }
}

/// A reader that went away (`| head`) is nobody's mistake, and the play goes on to its end.
fn tell(out: &mut dyn io::Write, line: &str) {
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}

async fn play(stage: &mut Stage) -> Result<()> {
    stage.scene("app produces the parser; it works in its own clone and may not push to main");
    stage.work("src/parser.rs", "fn parse() { let n: u32 = 4_000_000_000 * 2; }\n", "Streaming parser")?;
    stage.scene("a rule of the team's own is asked before a version is taken");
    let unnamed = ["propose", "parser", "--commit", "HEAD", "--summary", "fix"];
    stage.refused_cli("app", &unnamed, "RULE_DENIED")?;
    let v1 = stage
        .cli("app", &["propose", "parser", "--commit", "HEAD", "--summary", "Streaming parser"])?
        .text("ref");

    stage.scene("nobody approves what they were not shown");
    stage.refused_cli("sec", &["approve", &v1, "--checked", "src/parser.rs:1"], "UNREAD_VERSION")?;
    stage.cli("sec", &["show", "parser@1"])?;
    stage.grpc_show("parser@1").await?;

    stage.scene("two reviewers, two lenses, two objections");
    let overflow = ["object", &v1, "8 billion does not fit into u32", "--at", "src/parser.rs:1"];
    let o1 = stage.cli("sec", &overflow)?.text("objection");
    let o2 = stage.grpc_object(&v1, "nobody can call it: it returns nothing", "src/parser.rs:1").await?;

    stage.scene("every open objection is read and answered before the work is revised");
    stage.work("src/parser.rs", "pub fn parse() -> u64 { 4_000_000_000 * 2 }\n", "Wider, and returns it")?;
    let first_try = ["propose", "parser", "--commit", "HEAD", "--summary", "Wider, and returns it"];
    stage.refused_cli("app", &first_try, "UNREAD_OBJECTIONS")?;
    stage.cli("app", &["objections", "parser"])?;
    let (a1, a2) = (format!("{o1}=u64 now"), format!("{o2}=public, and returns the sum"));
    let answered = [first_try.as_slice(), &["--answer", a1.as_str(), "--answer", a2.as_str()]].concat();
    let v2 = stage.cli("app", &answered)?.text("ref");

    stage.scene("an approval speaks of exactly one version: the old one can't be approved any more");
    stage.refused_cli("sec", &["approve", &v1, "--checked", "src/parser.rs:1"], "STALE_VERSION")?;
    stage.refused_grpc_approve(&v2, "UNREAD_VERSION").await?;
    stage.cli("sec", &["show", "parser@2"])?;
    stage.cli("sec", &["approve", &v2, "--checked", "src/parser.rs:1", "--resolve", &o1])?;
    stage.grpc_show("parser@2").await?;
    stage.grpc_approve(&v2, Some("src/parser.rs:1"), &[&o2]).await?;

    stage.scene("app takes it back; the approvals are gone, and it stays away for a while");
    stage.cli("app", &["withdraw", "parser", "--reason", "the constant wants a name"])?;
    stage.work(
        "src/parser.rs",
        "const LINES: u64 = 4_000_000_000;\n\npub fn parse() -> u64 {\n    LINES * 2\n}\n",
        "Name the constant",
    )?;
    let named = ["propose", "parser", "--commit", "HEAD", "--summary", "Name the constant"];
    stage.refused_cli("app", &named, "COOLDOWN_ACTIVE")?;
    stage.wait("the cooldown of the charter: 2 s", Duration::from_millis(2_100)).await;
    let v3 = stage.cli("app", &named)?.text("ref");

    stage.scene("going back and forth has a limit; what comes after it is a person's to say");
    let again = ["withdraw", "parser", "--reason", "perhaps another name"];
    stage.refused_cli("app", &again, "FLIP_LIMIT")?;

    stage.scene("all approve, and nobody says what they looked at: that calls a dissent round");
    stage.cli("sec", &["show", "parser@3"])?;
    stage.cli("sec", &["approve", &v3])?;
    stage.grpc_show("parser@3").await?;
    stage.grpc_approve(&v3, None, &[]).await?;
    let circle = stage.cli("app", &["status"])?.text("circles.0.ref");

    stage.scene("nobody can say done over either");
    stage.refused_cli("app", &["confirm", &circle], "CONFIRM_BLOCKED")?;
    stage.cli(
        "sec",
        &["approve", &v3, "--checked", "src/parser.rs:1-5", "--ran", "cargo check", "--exit", "0"],
    )?;
    let asked = stage.cli("dana", &["escalations", "list"])?.text("escalations.0.id");
    let enough =
        ["escalations", "answer", &asked, "--decide", "dismiss", "--reason", "the name is good enough"];
    stage.cli("dana", &enough)?;

    stage.scene("all confirm exactly what the circle holds; the last confirmation completes it");
    stage.cli("app", &["explain", "parser"])?;
    stage.cli("app", &["confirm", &circle])?;
    stage.cli("sec", &["confirm", &circle])?;
    stage.grpc_confirm(&circle).await?;
    let status = stage.cli("dana", &["status"])?;
    status.expect("proposals.0.state", "published")?;
    stage.refused_cli("sec", &["object", &v3, "too late", "--at", "src/parser.rs:1"], "CIRCLE_COMPLETE")?;

    stage.scene("the log proves itself, from its first event to its head");
    stage.cli("dana", &["log"])?;
    stage.cli("dana", &["verify"])?;
    Ok(())
}
