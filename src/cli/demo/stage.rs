//! Where the demo is played: real git, a real server, and what its members type and call.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tonic::Request;
use tonic::transport::{Channel, Endpoint};

use super::summary::summary;
use super::{DemoFault, Result, Tell};
use crate::wire::proto::review_service_client::ReviewServiceClient;
use crate::wire::{proto, rejection_of};

/// How long the server may take until it is ready.
const READY_WITHIN: Duration = Duration::from_secs(20);

/// The team's charter.
const CHARTER: &str = include_str!("charter.toml");

/// The one rule of its own, and where it stands beside the charter.
const OWN_RULE: (&str, &str) =
    ("rules/propose/says-what-changed.toml", include_str!("rules/propose/says-what-changed.toml"));

/// Where the demo is played: a folder with a bare repository, a clone, a server, and its tokens.
pub(super) struct Stage {
    pub(super) folder: PathBuf,
    pub(super) binary: PathBuf,
    pub(super) server: Serving,
    reviews: ReviewServiceClient<Channel>,
    arch: String,
    tell: Tell,
    pub(super) commands: u32,
    pub(super) calls: u32,
    pub(super) refused: u32,
}

/// A server that this demo started; it ends with it.
pub(super) struct Serving(Option<Child>);

impl Serving {
    pub(super) fn stop(&mut self) {
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
    pub(super) async fn set(into: Option<&Path>, tell: Tell) -> Result<Self> {
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
        let (name, rule) = OWN_RULE;
        write(&folder.join(name), rule)?;
        tell(&format!("── a rule of the team's own, {name}"));
        tell(&indented(rule.split("\n\n").next().unwrap_or(rule)));

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

    pub(super) fn scene(&self, title: &str) {
        self.say(format!("\n── {title}"));
    }

    pub(super) async fn wait(&self, what: &str, time: Duration) {
        self.say(format!("  … {what}"));
        tokio::time::sleep(time).await;
    }

    /// app changes a file in its clone and commits.
    pub(super) fn work(&self, path: &str, text: &str, message: &str) -> Result<()> {
        let clone = self.folder.join("app");
        write(&clone.join(path), text)?;
        self.say(format!("app$ git commit -am {message:?}    # {path}"));
        git(&clone, &["add", "-A"])?;
        git(&clone, &["commit", "-qm", message])
    }

    /// Runs a command as a member, shows it with what it printed, and gives its JSON.
    pub(super) fn cli(&mut self, member: &str, args: &[&str]) -> Result<Said> {
        let (said, step) = self.command(member, args)?;
        if said.json["ok"] != Value::Bool(true) {
            return Err(DemoFault::Step { step, what: said.json.to_string() });
        }
        Ok(said)
    }

    /// The same, where it must be refused with that code.
    pub(super) fn refused_cli(&mut self, member: &str, args: &[&str], code: &str) -> Result<()> {
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
        self.bearing(message)
    }

    /// A call as arch.
    fn bearing<T>(&self, message: T) -> Request<T> {
        let mut request = Request::new(message);
        if let Ok(bearer) = format!("Bearer {}", self.arch).parse() {
            request.metadata_mut().insert("authorization", bearer);
        }
        request
    }

    pub(super) async fn grpc_show(&mut self, subject: &str) -> Result<()> {
        let message = proto::ShowRequest { subject: subject.to_owned(), ..Default::default() };
        let request = self.request("Show", &format!("subject: \"{subject}\""), message);
        let shown = self.reviews.show(request).await.map_err(otherwise("Show"))?.into_inner();
        let version = shown.version.unwrap_or_default();
        let files: Vec<String> =
            shown.files.into_iter().map(|file| format!("{} {}", file.status, file.path)).collect();
        self.say(format!("  {} \"{}\" {}", version.reference, version.summary, files.join(", ")));
        Ok(())
    }

    pub(super) async fn grpc_object(&mut self, reference: &str, text: &str, at: &str) -> Result<String> {
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

    pub(super) async fn grpc_approve(
        &mut self,
        reference: &str,
        checked: Option<&str>,
        resolve: &[&str],
    ) -> Result<()> {
        let request = self.approval(reference, checked, resolve);
        let approved = self.reviews.approve(request).await.map_err(otherwise("Approve"))?.into_inner();
        self.say(format!("  {} approved", approved.reference));
        Ok(())
    }

    pub(super) async fn refused_grpc_approve(&mut self, reference: &str, code: &str) -> Result<()> {
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

    pub(super) async fn grpc_confirm(&mut self, reference: &str) -> Result<()> {
        let message = proto::ConfirmRequest { reference: reference.to_owned(), ..Default::default() };
        let request = self.request("Confirm", &format!("reference: \"{reference}\""), message);
        let confirmed = self.reviews.confirm(request).await.map_err(otherwise("Confirm"))?.into_inner();
        if !confirmed.complete {
            let what = format!("it still waits for {}", confirmed.waiting_for.join(", "));
            return Err(DemoFault::Step { step: "Confirm".to_owned(), what });
        }
        self.say(format!("  {} is complete", confirmed.circle));
        self.published(confirmed.sequence).await
    }

    /// Waits until the server has published the first proposal, as it does by itself after that sequence.
    async fn published(&mut self, mut after: u64) -> Result<()> {
        loop {
            let asked = self.bearing(proto::GetStatusRequest { at_least: after + 1 });
            let answer = tokio::time::timeout(READY_WITHIN, self.reviews.get_status(asked)).await;
            let late =
                |_| DemoFault::Step { step: "publishing".to_owned(), what: "nothing came of it".to_owned() };
            let status = answer.map_err(late)?.map_err(otherwise("GetStatus"))?.into_inner();
            let first = status.proposals.first().map(proto::Proposal::state);
            if first == Some(proto::ProposalState::Published) {
                return Ok(());
            }
            after = status.sequence;
        }
    }
}

/// What a command answered.
pub(super) struct Said {
    json: Value,
    step: String,
}

impl Said {
    /// The text at a dotted path.
    pub(super) fn text(&self, path: &str) -> String {
        self.at(path).and_then(Value::as_str).unwrap_or_default().to_owned()
    }

    pub(super) fn expect(&self, path: &str, wanted: &str) -> Result<()> {
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
