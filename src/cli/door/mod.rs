//! `countersign door`: the guarded repository's hook, as the operator has it, and a person's way past it.

mod pre_receive;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::failure::{Failure, sentence};
use super::operator::Operator;
use super::output::{Answer, visible};
use super::speaker::{Global, Speaker, Write, need_home};
use super::text::Reason;
use super::{json as form, words};
use crate::artifact::git::Git;
use crate::client::proto::BreakGlassRequest;
use crate::client::time_of;
use crate::door::hook::{Hooks, Way, is_shared};
use crate::door::ledger::{Audit, Begun, Logged, Moved, audit};
use crate::door::{DoorFault, Guard, RefKind, bypass, refs};
use crate::home::Home;
use crate::protocol::name::{Digest, TeamName};
use crate::protocol::time::Span;

/// The door of the guarded repository.
#[derive(Args, Debug)]
pub struct Door {
    #[command(subcommand)]
    command: DoorCommand,
}

#[derive(Subcommand, Debug)]
enum DoorCommand {
    /// Puts the hook into the guarded repository, or writes it anew
    #[command(after_help = "Examples:
  countersign door install
  countersign door install --repository atlas.git

A pre-receive hook that is there already is kept beside it, and runs after it. From here on protected
refs move only to what a completed circle holds; where no server runs, they don't move.

Refused with UNKNOWN_TEAM, TEAM_NEEDED, NO_REPOSITORY, OTHER_REPOSITORY, REPOSITORY_UNUSABLE,
HOOK_CONFLICT, DOOR_TAKEN.")]
    Install(Where),
    /// Says whether the hook is in place, and what it guards
    #[command(after_help = "Example:\n  countersign door status")]
    Status(Where),
    /// Finds refs that moved without the server; exits 1 where there are any
    #[command(after_help = "Example:
  countersign --json door audit

Refused with NO_DOOR, REFS_MOVED.")]
    Audit(Where),
    /// Says who could go around the door, and how to close that
    #[command(after_help = "Example:\n  countersign door doctor")]
    Doctor(Where),
    /// Takes the hook out, and puts the one from before back in its place
    #[command(after_help = "Example:\n  countersign door uninstall\n\nRefused with HOOK_CONFLICT.")]
    Uninstall(Where),
    /// Opens the door for one push to protected refs, as a person
    #[command(after_help = "Examples:
  countersign --as dana door break-glass --ref refs/heads/main --reason 'the build server is down'
  countersign --as dana door break-glass --ref refs/tags/v1 --for 30m --lasting --reason 'moving tags'

Every person hears of it, and it stays before them until one dismisses it. A server that ends has
shut the door again.

Refused with MALFORMED, NOT_A_PERSON, REASON_REQUIRED, TEXT_TOO_LARGE, SECRET_FOUND.")]
    BreakGlass(BreakGlass),
    /// What git runs
    #[command(hide = true)]
    PreReceive(pre_receive::PreReceive),
}

#[derive(Args, Debug)]
struct Where {
    /// The guarded repository; the charter names it anyhow
    #[arg(long, value_name = "PATH")]
    repository: Option<PathBuf>,
}

#[derive(Args, Debug)]
struct BreakGlass {
    /// The full name of a ref that may be pushed to; again for more
    #[arg(long = "ref", value_name = "REF")]
    refs: Vec<String>,
    /// For how long; at most 1h
    #[arg(long = "for", value_name = "DUR", default_value = "10m")]
    span: Span,
    /// For any number of pushes within that time; else the first one that needs it uses it up
    #[arg(long)]
    lasting: bool,
    #[command(flatten)]
    reason: Reason,
    #[command(flatten)]
    write: Write,
}

impl Door {
    pub(super) async fn run(self, global: &Global) -> Result<Answer, Failure> {
        match self.command {
            DoorCommand::PreReceive(hook) => hook.run(global).await,
            DoorCommand::BreakGlass(glass) => glass.run(global).await,
            DoorCommand::Install(at) => Site::find(&at, global).await?.install(global).await,
            DoorCommand::Status(at) => Site::find(&at, global).await?.status(global).await,
            DoorCommand::Audit(at) => Site::find(&at, global).await?.audited().await,
            DoorCommand::Doctor(at) => Site::find(&at, global).await?.doctor(global),
            DoorCommand::Uninstall(at) => Site::find(&at, global).await?.uninstall(),
        }
    }
}

/// The guarded repository, as the operator has it before them.
struct Site {
    operator: Operator,
    team: TeamName,
    git: Git,
    hooks: Hooks,
    protected: Vec<String>,
    log: Logged,
    guard: Guard,
}

impl Site {
    async fn find(at: &Where, global: &Global) -> Result<Self, Failure> {
        let operator = Operator::of(need_home()?, global).await?;
        let guarded = operator.guarded(global.team.as_ref()).await?;
        if let Some(given) = &at.repository {
            let found = given.canonicalize().map_err(|why| Failure::io(given.display(), &why))?;
            if found != guarded.repository {
                return Err(Failure::refused(
                    "OTHER_REPOSITORY",
                    format!("{} guards {}", guarded.team, guarded.repository.display()),
                    "leave --repository out, or name the team whose it is: --team TEAM",
                ));
            }
        }
        let git = Git::at(&guarded.repository);
        let hooks = Hooks::of(&git).await?;
        let guard = Guard::of_patterns(&guarded.protected).ok_or_else(unusable_patterns)?;
        let (team, protected, log) = (guarded.team, guarded.protected, guarded.log);
        Ok(Self { operator, team, git, hooks, protected, log, guard })
    }

    fn home(&self) -> &Home {
        self.operator.home()
    }

    fn way(&self, global: &Global) -> Result<Way, Failure> {
        let whole = |path: &Path| path.canonicalize().map_err(|why| Failure::io(path.display(), &why));
        let program = std::env::current_exe().map_err(|why| Failure::io("this program", &why))?;
        Ok(Way {
            program: whole(&program)?,
            home: whole(self.home().path())?,
            team: self.team.clone(),
            repository: self.git.folder().to_owned(),
            shared: is_shared(&self.hooks.folder, self.git.folder()),
            authority: global.ca.as_deref().map(whole).transpose()?,
        })
    }

    fn begun(&self) -> Result<Option<Begun>, Failure> {
        let Some(text) = self.home().read_door(&self.team)? else { return Ok(None) };
        let read = serde_json::from_slice(&text).map_err(|_| self.home().unreadable_door(&self.team))?;
        Ok(Some(read))
    }

    async fn install(&self, global: &Global) -> Result<Answer, Failure> {
        // Whose folder it is can be told once it is there.
        std::fs::create_dir_all(&self.hooks.folder)
            .map_err(|why| Failure::io(self.hooks.folder.display(), &why))?;
        let way = self.way(global)?;
        let keeps = self.hooks.install(&way)?;
        // Read once the hook stands: what moves from here on doesn't go unseen.
        let now = refs::guarded(&self.git, &self.guard).await.map_err(DoorFault::from)?;
        let begun = match self.begun()? {
            Some(begun) => {
                let found = self.hold(&begun, &now)?;
                begun.joined(&self.protected, &found.unwatched, &now)
            }
            None => {
                let ours = |name: &str| self.guard.kind(name.as_bytes()) == RefKind::Protected;
                let refs =
                    now.iter().filter(|(name, _)| ours(name)).map(|(name, at)| (name.clone(), at.clone()));
                Begun { protected: self.protected.clone(), refs: refs.collect() }
            }
        };
        let text = serde_json::to_vec(&begun).expect("plain fields have a JSON form");
        self.home().write_door(&self.team, &text)?;
        let hook = self.hooks.hook();
        let mut told =
            format!("the door of {} stands: {}\n", self.team, visible(&hook.display().to_string()));
        if let Some(configured) = &self.hooks.configured {
            told.push_str(&format!(
                "  core.hooksPath of the repository is {}, and was followed\n",
                visible(configured)
            ));
        }
        if way.shared {
            told.push_str(
                "  other repositories may take their hooks from there; their pushes are not looked at\n",
            );
        }
        if keeps {
            let kept = self.hooks.kept();
            told.push_str(&format!(
                "  the hook from before runs after it: {}\n",
                visible(&kept.display().to_string())
            ));
        }
        told.push_str(&format!("  protected: {}\n", visible(&self.protected.join(", "))));
        told.push_str("Who could go around it: countersign door doctor\n");
        Ok(Answer::new(
            json!({
                "team": self.team.as_str(),
                "repository": self.git.folder().display().to_string(),
                "hook": hook.display().to_string(),
                "hooks_path": self.hooks.configured,
                "shared": way.shared,
                "kept_hook": keeps.then(|| self.hooks.kept().display().to_string()),
                "protected": self.protected,
                "watched": begun.refs.len(),
            }),
            told,
        ))
    }

    async fn status(&self, global: &Global) -> Result<Answer, Failure> {
        let standing = self.hooks.standing(&self.way(global)?)?;
        let begun = self.begun()?;
        let watched = begun.as_ref().map(|begun| begun.refs.len());
        let passed = self.operator.passed(&self.team)?.len();
        let server = self.home().read_server().map(|server| server.addr.to_string());
        let staged = refs::staged(&self.git).await.map_err(DoorFault::from)?;
        let proposed = |commit: &Digest| self.log.kept.values().any(|kept| kept == commit.as_str());
        let unproposed = staged.iter().filter(|commit| !proposed(commit)).count();
        let told = format!(
            "the hook of {} is {}: {}\n  protected: {}\n  {}, {}\n  staged, and in no version: {unproposed}\n",
            self.team,
            standing.as_str(),
            visible(&self.hooks.hook().display().to_string()),
            visible(&self.protected.join(", ")),
            watched.map_or_else(
                || "nothing is watched".to_owned(),
                |count| format!("watched since it was put in: {count}")
            ),
            match &server {
                Some(addr) => format!("asks the server at {addr}"),
                None => "shut: no server runs".to_owned(),
            },
        );
        Ok(Answer::new(
            json!({
                "team": self.team.as_str(),
                "repository": self.git.folder().display().to_string(),
                "hook": self.hooks.hook().display().to_string(),
                "standing": standing.as_str(),
                "hooks_path": self.hooks.configured,
                "kept_hook": self.hooks.keeps().then(|| self.hooks.kept().display().to_string()),
                "protected": self.protected,
                "watched": watched,
                "passed": passed,
                "unproposed": unproposed,
                "server": server,
            }),
            told,
        ))
    }

    fn hold(&self, begun: &Begun, now: &BTreeMap<String, String>) -> Result<Audit, Failure> {
        let before = Guard::of_patterns(&begun.protected).ok_or_else(unusable_patterns)?;
        let was_protected = |name: &str| before.kind(name.as_bytes()) == RefKind::Protected;
        Ok(audit(begun, &self.operator.passed(&self.team)?, &self.log, now, was_protected))
    }

    async fn audited(&self) -> Result<Answer, Failure> {
        let begun = self.begun()?.ok_or_else(|| {
            let what = format!("no door was put into {}", self.git.folder().display());
            Failure::refused("NO_DOOR", what, "run: countersign door install")
        })?;
        let now = refs::guarded(&self.git, &self.guard).await.map_err(DoorFault::from)?;
        let found = self.hold(&begun, &now)?;
        let moved: Vec<Value> = found
            .moved
            .iter()
            .map(|one| json!({ "ref": one.name, "from": one.from, "to": one.to }))
            .collect();
        let json = json!({
            "team": self.team.as_str(),
            "moved": moved,
            "unwatched": found.unwatched,
            "sound": found.sound,
        });
        if found.moved.is_empty() {
            let mut told =
                format!("{} where the door left them\n", words::counted(found.sound as u64, "ref"));
            if !found.unwatched.is_empty() {
                let names = visible(&found.unwatched.join(", "));
                told.push_str(&format!(
                    "  protected since, and not watched yet: {names}\n  Run: countersign door install\n"
                ));
            }
            return Ok(Answer::new(json, told));
        }
        let mut failure =
            Failure::refused("REFS_MOVED", told_of(&found.moved), self.way_back(&found.moved[0]));
        if let Value::Object(members) = json {
            failure.found = Some(Box::new(members));
        }
        Err(failure)
    }

    /// How the first ref gets back to where the door left it.
    fn way_back(&self, moved: &Moved) -> String {
        let folder = self.git.folder().display();
        match (&moved.from, &moved.to) {
            (Some(from), Some(to)) => {
                format!("put it back, in {folder}: git update-ref {} {from} {to}", moved.name)
            }
            (Some(from), None) => format!("put it back, in {folder}: git update-ref {} {from}", moved.name),
            _ => format!("take it away, in {folder}: git update-ref -d {}", moved.name),
        }
    }

    fn doctor(&self, global: &Global) -> Result<Answer, Failure> {
        let way = self.way(global)?;
        let standing = self.hooks.standing(&way)?;
        let ways = bypass::look(&self.git, &self.hooks, &way, standing);
        let mut told = match ways.len() {
            0 => "nobody is known who could go around the door\n".to_owned(),
            some => format!("{} around the door\n", words::counted(some as u64, "way")),
        };
        for one in &ways {
            told.push_str(&format!(
                "  {}: {}\n    Close it: {}\n",
                one.name,
                visible(&one.who),
                visible(&one.close)
            ));
        }
        let listed = ways.iter().map(|one| json!({ "name": one.name, "who": one.who, "close": one.close }));
        Ok(Answer::new(json!({ "team": self.team.as_str(), "ways": listed.collect::<Value>() }), told))
    }

    fn uninstall(&self) -> Result<Answer, Failure> {
        let kept = self.hooks.keeps();
        let removed = self.hooks.uninstall()?;
        self.home().remove_door(&self.team)?;
        let mut told = match removed {
            true => format!("{} has no door any longer\n", self.team),
            false => format!("{} had no door\n", self.team),
        };
        if kept {
            told.push_str("  the hook from before is back in its place\n");
        }
        Ok(Answer::new(json!({ "team": self.team.as_str(), "removed": removed, "restored": kept }), told))
    }
}

fn told_of(moved: &[Moved]) -> String {
    let short =
        |id: &Option<String>| id.as_ref().map_or("nowhere".to_owned(), |id| id.chars().take(12).collect());
    let mut told = format!("{} moved without the server", words::counted(moved.len() as u64, "ref"));
    for one in moved {
        told.push_str(&format!("\n{} from {} to {}", visible(&one.name), short(&one.from), short(&one.to)));
    }
    told
}

fn unusable_patterns() -> Failure {
    Failure::refused(
        "CHARTER_REFUSED",
        "the charter's protected patterns can't be used",
        "mend them in the charter",
    )
}

impl BreakGlass {
    async fn run(self, global: &Global) -> Result<Answer, Failure> {
        let reason = self.reason.read()?;
        let speaker = Speaker::connect(global).await?;
        let request = BreakGlassRequest {
            request_id: self.write.id(),
            refs: self.refs.clone(),
            span: self.span.to_string(),
            lasting: self.lasting,
            reason,
        };
        let opened = speaker.client.break_glass(request).await?;
        let until = opened.until.as_ref().map(|until| time_of(until).to_string());
        let how = if self.lasting { "any push" } else { "one push" };
        let told = format!(
            "{}: the door is open for {how} to {} until {}\n{}",
            visible(&opened.escalation),
            visible(&self.refs.join(", ")),
            until.as_deref().unwrap_or_default(),
            words::woke(&opened.woke, words::now()),
        );
        Ok(Answer::new(
            json!({
                "escalation": opened.escalation,
                "refs": self.refs,
                "lasting": self.lasting,
                "until": until,
                "woke": form::woke(&opened.woke),
                "sequence": opened.sequence,
            }),
            told,
        ))
    }
}

impl From<DoorFault> for Failure {
    fn from(fault: DoorFault) -> Self {
        Self::refused(fault.code(), sentence(&fault), fault.remedy())
    }
}
