//! `countersign demo`: a scripted team plays a whole phase against a real server on a real temporary git
//! repository. Every line that it shows is a real command, run as shown; one reviewer uses gRPC alone.

use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tonic::Request;
use tonic::transport::{Channel, Endpoint};

use super::Global;
use super::failure::Failure;
use super::output::Answer;
use crate::wire::proto::review_service_client::ReviewServiceClient;
use crate::wire::{proto, rejection_of};

/// How long the server may take until it is ready.
const READY_WITHIN: Duration = Duration::from_secs(20);

/// The team's charter.
const CHARTER: &str = include_str!("demo_charter.toml");

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
    stage.grpc_approve(&v2, "src/parser.rs:1", &[&o2]).await?;

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

    stage.scene("nobody can say done before everybody was heard");
    let circle = stage.cli("app", &["status"])?.text("circles.0.ref");
    stage.refused_cli("app", &["confirm", &circle], "CONFIRM_BLOCKED")?;
    stage.cli("sec", &["show", "parser@3"])?;
    stage.cli(
        "sec",
        &["approve", &v3, "--checked", "src/parser.rs:1-5", "--ran", "cargo check", "--exit", "0"],
    )?;
    stage.grpc_show("parser@3").await?;
    stage.grpc_approve(&v3, "src/parser.rs:3", &[]).await?;

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

/// Where the demo is played: a folder with a bare repository, a clone, a server, and its tokens.
struct Stage {
    folder: PathBuf,
    binary: PathBuf,
    server: Serving,
    reviews: ReviewServiceClient<Channel>,
    arch: String,
    tell: Tell,
    commands: u32,
    calls: u32,
    refused: u32,
}

/// A server that this demo started; it ends with it.
struct Serving(Option<Child>);

impl Serving {
    fn stop(&mut self) {
        let Some(mut child) = self.0.take() else { return };
        // It is asked first, so that it closes its log in good order.
        let asked = Command::new("sh").args(["-c", &format!("kill -TERM {}", child.id())]).status();
        if !asked.is_ok_and(|status| status.success()) {
            drop(child.kill());
        }
        drop(child.wait());
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Stage {
    async fn set(into: Option<&Path>, tell: Tell) -> Result<Self> {
        let folder = match into {
            Some(folder) => {
                std::fs::create_dir_all(folder).map_err(|source| file(folder, source))?;
                folder.canonicalize().map_err(|source| file(folder, source))?
            }
            None => {
                let made = tempfile::Builder::new().prefix("countersign-demo-").tempdir();
                made.map_err(|source| file(&std::env::temp_dir(), source))?.keep()
            }
        };
        let binary = std::env::current_exe()
            .map_err(|source| DemoFault::Program { program: "countersign".to_owned(), source })?;
        tell(&format!("── a team in {}", folder.display()));
        git(&folder, &["init", "-q", "--bare", "-b", "main", "atlas.git"])?;
        git(&folder, &["clone", "-q", "atlas.git", "app"])?;
        let clone = folder.join("app");
        write(&clone.join("README.md"), "# Atlas\n")?;
        write(&clone.join("src/main.rs"), "fn main() {}\n")?;
        git(&clone, &["checkout", "-q", "-B", "main"])?;
        git(&clone, &["add", "-A"])?;
        git(&clone, &["commit", "-qm", "Start"])?;
        git(&clone, &["push", "-q", "origin", "main"])?;
        write(&folder.join("charter.toml"), CHARTER)?;
        tell(&indented(CHARTER));

        show_command(tell, "operator", &["init", "--charter", "charter.toml"]);
        let output = run_in(&binary, &folder, None, &["init", "--charter", "charter.toml"], false)?;
        tell(&indented(&String::from_utf8_lossy(&output.stdout)));
        if !output.status.success() {
            let what = String::from_utf8_lossy(&output.stderr).into_owned();
            return Err(DemoFault::Step { step: "init".to_owned(), what });
        }

        show_command(tell, "operator", &["serve", "--listen", "127.0.0.1:0"]);
        let mut serve = Command::new(&binary);
        serve.current_dir(&folder).args(["serve", "--listen", "127.0.0.1:0"]);
        without_settings(&mut serve);
        let log = folder.join("serve.log");
        let out = std::fs::File::create(&log).map_err(|source| file(&log, source))?;
        let errors = out.try_clone().map_err(|source| file(&log, source))?;
        serve.stdin(Stdio::null()).stdout(out).stderr(errors);
        let child = serve
            .spawn()
            .map_err(|source| DemoFault::Program { program: binary.display().to_string(), source })?;
        let mut server = Serving(Some(child));
        let addr = ready(&folder, &log, &mut server).await?;
        tell(&format!("  serving on {addr}"));
        let token = folder.join(".countersign/tokens/arch");
        let arch = std::fs::read_to_string(&token).map_err(|source| file(&token, source))?;
        let unreachable = |what: String| DemoFault::Step { step: format!("connecting to {addr}"), what };
        let endpoint =
            Endpoint::from_shared(format!("http://{addr}")).map_err(|e| unreachable(e.to_string()))?;
        let channel = endpoint.connect().await.map_err(|error| unreachable(error.to_string()))?;
        let reviews = ReviewServiceClient::new(channel);
        let arch = arch.trim().to_owned();
        Ok(Self { folder, binary, server, reviews, arch, tell, commands: 2, calls: 0, refused: 0 })
    }

    fn say(&self, text: impl AsRef<str>) {
        (self.tell)(text.as_ref());
    }

    fn scene(&self, title: &str) {
        self.say(format!("\n── {title}"));
    }

    async fn wait(&self, what: &str, time: Duration) {
        self.say(format!("  … {what}"));
        tokio::time::sleep(time).await;
    }

    /// app changes a file in its clone and commits.
    fn work(&self, path: &str, text: &str, message: &str) -> Result<()> {
        let clone = self.folder.join("app");
        write(&clone.join(path), text)?;
        self.say(format!("app$ git commit -am {message:?}    # {path}"));
        git(&clone, &["add", "-A"])?;
        git(&clone, &["commit", "-qm", message])
    }

    /// Runs a command as a member, shows it with what it printed, and gives its JSON.
    fn cli(&mut self, member: &str, args: &[&str]) -> Result<Said> {
        let (said, step) = self.command(member, args)?;
        if said.json["ok"] != Value::Bool(true) {
            return Err(DemoFault::Step { step, what: said.json.to_string() });
        }
        Ok(said)
    }

    /// The same, where it must be refused with that code.
    fn refused_cli(&mut self, member: &str, args: &[&str], code: &str) -> Result<()> {
        let (said, step) = self.command(member, args)?;
        if said.json["ok"] != Value::Bool(false) || said.json["code"] != code {
            return Err(DemoFault::Step { step, what: said.json.to_string() });
        }
        self.refused += 1;
        Ok(())
    }

    fn command(&mut self, member: &str, args: &[&str]) -> Result<(Said, String)> {
        self.commands += 1;
        show_command(self.tell, member, args);
        let cwd = if member == "app" { self.folder.join("app") } else { self.folder.clone() };
        let output = run_in(&self.binary, &cwd, Some(member), args, true)?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let step = format!("{member}: countersign {}", args.join(" "));
        let json: Value = serde_json::from_str(text.trim()).map_err(|_| DemoFault::Step {
            step: step.clone(),
            what: format!("{text}{}", String::from_utf8_lossy(&output.stderr)),
        })?;
        self.say(indented(&summary(args[0], &json)));
        Ok((Said { json, step: step.clone() }, step))
    }

    fn request<T>(&mut self, method: &str, shown: &str, message: T) -> Request<T> {
        self.calls += 1;
        self.say(format!("arch> ReviewService.{method} {{ {shown} }}    # gRPC"));
        let mut request = Request::new(message);
        if let Ok(bearer) = format!("Bearer {}", self.arch).parse() {
            request.metadata_mut().insert("authorization", bearer);
        }
        request
    }

    async fn grpc_show(&mut self, subject: &str) -> Result<()> {
        let message = proto::ShowRequest { subject: subject.to_owned(), ..Default::default() };
        let request = self.request("Show", &format!("subject: \"{subject}\""), message);
        let shown = self.reviews.show(request).await.map_err(otherwise("Show"))?.into_inner();
        let version = shown.version.unwrap_or_default();
        let files: Vec<String> =
            shown.files.into_iter().map(|file| format!("{} {}", file.status, file.path)).collect();
        self.say(format!("  {} \"{}\" {}", version.reference, version.summary, files.join(", ")));
        Ok(())
    }

    async fn grpc_object(&mut self, reference: &str, text: &str, at: &str) -> Result<String> {
        let message = proto::ObjectRequest {
            reference: reference.to_owned(),
            text: text.to_owned(),
            at: vec![at.to_owned()],
            ..Default::default()
        };
        let shown = format!("reference: \"{reference}\", text: \"{text}\", at: [\"{at}\"]");
        let request = self.request("Object", &shown, message);
        let raised = self.reviews.object(request).await.map_err(otherwise("Object"))?.into_inner();
        self.say(format!("  {} on {}", raised.objection, raised.reference));
        Ok(raised.objection)
    }

    async fn grpc_approve(&mut self, reference: &str, checked: &str, resolve: &[&str]) -> Result<()> {
        let request = self.approval(reference, Some(checked), resolve);
        let approved = self.reviews.approve(request).await.map_err(otherwise("Approve"))?.into_inner();
        self.say(format!("  {} approved", approved.reference));
        Ok(())
    }

    async fn refused_grpc_approve(&mut self, reference: &str, code: &str) -> Result<()> {
        let request = self.approval(reference, None, &[]);
        let status = match self.reviews.approve(request).await {
            Err(status) => status,
            Ok(_) => {
                let step = "Approve".to_owned();
                return Err(DemoFault::Step { step, what: "it was accepted".to_owned() });
            }
        };
        let rejection = rejection_of(&status).unwrap_or_default();
        match rejection.violations.first() {
            Some(first) if first.code == code => {
                self.say(format!(
                    "  {:?}: refused {}: {}\n  {}",
                    status.code(),
                    first.code,
                    first.message,
                    first.remedy
                ));
                self.refused += 1;
                Ok(())
            }
            _ => Err(otherwise("Approve")(status)),
        }
    }

    fn approval(
        &mut self,
        reference: &str,
        checked: Option<&str>,
        resolve: &[&str],
    ) -> Request<proto::ApproveRequest> {
        let resolve: Vec<String> = resolve.iter().map(ToString::to_string).collect();
        let mut shown = format!("reference: \"{reference}\"");
        if let Some(checked) = checked {
            let _ = write!(shown, ", checked: [\"{checked}\"]");
        }
        if !resolve.is_empty() {
            let _ = write!(shown, ", resolve: {resolve:?}");
        }
        let checked = checked.into_iter().map(str::to_owned).collect();
        let message =
            proto::ApproveRequest { reference: reference.to_owned(), checked, resolve, ..Default::default() };
        self.request("Approve", &shown, message)
    }

    async fn grpc_confirm(&mut self, reference: &str) -> Result<()> {
        let message = proto::ConfirmRequest { reference: reference.to_owned(), ..Default::default() };
        let request = self.request("Confirm", &format!("reference: \"{reference}\""), message);
        let confirmed = self.reviews.confirm(request).await.map_err(otherwise("Confirm"))?.into_inner();
        if !confirmed.complete {
            let what = format!("it still waits for {}", confirmed.waiting_for.join(", "));
            return Err(DemoFault::Step { step: "Confirm".to_owned(), what });
        }
        self.say(format!("  {} is complete", confirmed.circle));
        Ok(())
    }
}

/// What a command answered.
struct Said {
    json: Value,
    step: String,
}

impl Said {
    /// The text at a dotted path.
    fn text(&self, path: &str) -> String {
        self.at(path).and_then(Value::as_str).unwrap_or_default().to_owned()
    }

    fn expect(&self, path: &str, wanted: &str) -> Result<()> {
        let found = self.text(path);
        if found == wanted {
            return Ok(());
        }
        let what = format!("{path} is {found:?}, not {wanted:?}");
        Err(DemoFault::Step { step: self.step.clone(), what })
    }

    fn at(&self, path: &str) -> Option<&Value> {
        path.split('.').try_fold(&self.json, |value, part| match part.parse::<usize>() {
            Ok(index) => value.get(index),
            Err(_) => value.get(part),
        })
    }
}

/// The parts of an answer that tell the story.
fn summary(verb: &str, json: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    if json["ok"] == Value::Bool(false) {
        let mut out = format!("refused {}: {}", text(&json["code"]), text(&json["message"]));
        let violations = json["violations"].as_array().map(Vec::as_slice).unwrap_or_default();
        for violation in violations.iter().skip(1) {
            let _ = write!(out, "\n  also {}: {}", text(&violation["code"]), text(&violation["message"]));
        }
        let _ = write!(out, "\n{}", text(&json["remedy"]));
        return out;
    }
    let each = |path: &str, line: &dyn Fn(&Value) -> String| -> String {
        let items = json[path].as_array().map(Vec::as_slice).unwrap_or_default();
        items.iter().map(line).collect::<Vec<_>>().join("\n")
    };
    let mut out = match verb {
        "propose" | "approve" => text(&json["ref"]),
        "show" => format!("{} is {}", text(&json["ref"]), text(&json["state"])),
        "object" => format!("{} on {}", text(&json["objection"]), text(&json["ref"])),
        "objections" => each("objections", &|objection| {
            format!("{} by {}: {}", text(&objection["id"]), text(&objection["by"]), text(&objection["text"]))
        }),
        "withdraw" => {
            format!("withdrawn until {}; {} flips left", text(&json["cooldown_until"]), json["flips_left"])
        }
        "confirm" => match json["complete"].as_bool() {
            Some(true) => "complete".to_owned(),
            _ => format!("confirmed; waiting for {}", each("waiting_for", &text).replace('\n', ", ")),
        },
        "explain" => each("requirements", &|requirement| {
            format!("{:15} {}", text(&requirement["state"]), text(&requirement["name"]))
        }),
        "status" => {
            let circles =
                each("circles", &|circle| format!("{} is {}", text(&circle["ref"]), text(&circle["state"])));
            let owed = each("obligations", &|owed| {
                format!("{} owes: {} {}", text(&owed["member"]), text(&owed["kind"]), text(&owed["subject"]))
            });
            let proposals = each("proposals", &|proposal| {
                format!("{} is {}", text(&proposal["name"]), text(&proposal["state"]))
            });
            [circles, proposals, owed]
                .into_iter()
                .filter(|part| !part.is_empty())
                .collect::<Vec<_>>()
                .join("\n")
        }
        "log" => format!("{} events", json["events"].as_array().map_or(0, Vec::len)),
        _ => "ok".to_owned(),
    };
    let woke = json["woke"].as_array().map(Vec::as_slice).unwrap_or_default();
    let heard: Vec<String> =
        woke.iter().map(|wake| format!("{} ({})", text(&wake["member"]), text(&wake["outcome"]))).collect();
    if !heard.is_empty() {
        let _ = write!(out, "\nnow they owe something: {}", heard.join(", "));
    }
    out
}

fn show_command(tell: Tell, member: &str, args: &[&str]) {
    let words: Vec<String> = args.iter().map(|arg| crate::protocol::rejection::quoted(arg)).collect();
    tell(&format!("{member}$ countersign {}", words.join(" ")));
}

fn indented(text: &str) -> String {
    text.trim_end().lines().map(|line| format!("  {line}")).collect::<Vec<_>>().join("\n")
}

fn run_in(binary: &Path, cwd: &Path, member: Option<&str>, args: &[&str], json: bool) -> Result<Output> {
    let mut command = Command::new(binary);
    command.current_dir(cwd).stdin(Stdio::null());
    without_settings(&mut command);
    if let Some(member) = member {
        command.args(["--as", member]);
    }
    if json {
        command.arg("--json");
    }
    let output = command.args(args).output();
    output.map_err(|source| DemoFault::Program { program: binary.display().to_string(), source })
}

/// The demo's team is its own, whatever the shell is set to.
fn without_settings(command: &mut Command) {
    for name in ["HOME", "AS", "ADDR", "TEAM", "TOKEN_FILE"] {
        command.env_remove(format!("COUNTERSIGN_{name}"));
    }
    command.env("GIT_CONFIG_GLOBAL", "/dev/null");
}

async fn ready(folder: &Path, log: &Path, server: &mut Serving) -> Result<String> {
    let path = folder.join(".countersign/server.json");
    let until = Instant::now() + READY_WITHIN;
    loop {
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        if let Ok(Value::String(addr)) = serde_json::from_str::<Value>(&text).map(|json| json["addr"].clone())
        {
            return Ok(addr);
        }
        let ended =
            server.0.as_mut().is_some_and(|child| child.try_wait().is_ok_and(|status| status.is_some()));
        if ended || Instant::now() > until {
            let what = std::fs::read_to_string(log).unwrap_or_default();
            return Err(DemoFault::Step { step: "serve".to_owned(), what });
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

fn git(cwd: &Path, args: &[&str]) -> Result<()> {
    let mut command = Command::new("git");
    command.current_dir(cwd).args(args).stdin(Stdio::null());
    command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
    for role in ["AUTHOR", "COMMITTER"] {
        command.env(format!("GIT_{role}_NAME"), "app").env(format!("GIT_{role}_EMAIL"), "app@example.org");
    }
    let output =
        command.output().map_err(|source| DemoFault::Program { program: "git".to_owned(), source })?;
    if output.status.success() {
        return Ok(());
    }
    let what = String::from_utf8_lossy(&output.stderr).into_owned();
    Err(DemoFault::Step { step: format!("git {}", args.join(" ")), what })
}

fn write(path: &Path, text: &str) -> Result<()> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(|source| file(folder, source))?;
    }
    std::fs::write(path, text).map_err(|source| file(path, source))
}

fn file(path: &Path, source: std::io::Error) -> DemoFault {
    DemoFault::File { path: path.to_owned(), source }
}

fn otherwise(method: &'static str) -> impl Fn(tonic::Status) -> DemoFault {
    move |status| DemoFault::Step { step: format!("ReviewService.{method}"), what: status.to_string() }
}
