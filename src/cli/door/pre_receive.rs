//! `countersign door pre-receive`: what git runs before any ref of a push moves.
//!
//! It reads the lines, asks the server, and says no for every reason to doubt: no home, no server, no answer in
//! time, an answer that can't be read. What it may ask is written into the hook; whoever pushes has no say in it.

use std::env;
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use clap::Args;

use super::super::failure::Failure;
use super::super::output::{Answer, visible};
use super::super::speaker::Global;
use crate::artifact::git::Git;
use crate::client::proto::{CheckPushRequest, CheckPushResponse, RefMove, RefRefusal};
use crate::client::{self, Server, proto};
use crate::door::hook::kept_beside;
use crate::door::{Guard, MOVES_BYTES_MAX, Move, RefKind, parse_moves};
use crate::home::Home;

/// How long the door may take to say yes.
const TIME_MAX: Duration = Duration::from_secs(10);

/// Commits that one push may leave for staging.
const STAGED_MAX: usize = 64;

/// Refs whose reasons are told to the pusher; of further ones, only how many there are.
const REASONS_MAX: usize = 1_000;

#[derive(Args, Debug)]
pub(super) struct PreReceive {
    /// The server's home
    #[arg(long)]
    home: PathBuf,
    /// The guarded repository
    #[arg(long)]
    repository: PathBuf,
    /// The hook, as git runs it
    #[arg(long)]
    hook: PathBuf,
    /// Other repositories take their hooks from the same folder
    #[arg(long)]
    shared: bool,
}

impl PreReceive {
    pub(super) async fn run(self, global: &Global) -> Result<Answer, Failure> {
        let mut input = Vec::new();
        let most = MOVES_BYTES_MAX as u64 + 1;
        io::stdin()
            .take(most)
            .read_to_end(&mut input)
            .map_err(|why| shut(format!("standard input: {why}")))?;
        if input.len() > MOVES_BYTES_MAX {
            return Err(shut("this push names more refs than the door can look at"));
        }
        if self.is_ours()? {
            let moves = parse_moves(&input).map_err(shut)?;
            let asked = tokio::time::timeout(TIME_MAX, self.ask(global, moves.clone())).await;
            let said = asked
                .map_err(|_| shut(format!("the server said nothing within {} s", TIME_MAX.as_secs())))??;
            tell(&moves, &said)?;
        }
        before(&self.hook, &input)
    }

    /// Whether the push goes to the guarded repository. In a folder of hooks that several share, the others' pushes
    /// are none of the door's business.
    fn is_ours(&self) -> Result<bool, Failure> {
        let whole =
            |path: &Path| path.canonicalize().map_err(|why| shut(format!("{}: {why}", path.display())));
        let here = env::var_os("GIT_DIR").map_or_else(|| PathBuf::from("."), PathBuf::from);
        let (here, guarded) = (whole(&here)?, whole(&self.repository)?);
        if here == guarded || self.shared {
            return Ok(here == guarded);
        }
        Err(shut(format!("the hook was made for {}, and this is {}", guarded.display(), here.display())))
    }

    async fn ask(&self, global: &Global, mut moves: Vec<Move>) -> Result<CheckPushResponse, Failure> {
        let home = Home::at(&self.home);
        let token = home
            .operator_token()
            .map_err(|_| shut(format!("this user may not ask the server of {}", self.home.display())))?;
        let server = home.read_server().ok_or_else(|| shut("no server runs"))?;
        let authority = match &global.ca {
            Some(file) => {
                Some(std::fs::read(file).map_err(|why| shut(format!("{}: {why}", file.display())))?)
            }
            None => None,
        };
        self.look(&mut moves).await?;
        let team = global.team.as_ref().ok_or_else(|| shut("the hook names no team"))?;
        let repository = self.repository.canonicalize().map_err(shut)?;
        let request = CheckPushRequest {
            team: team.to_string(),
            repository: repository.as_os_str().as_bytes().to_vec().into(),
            moves: moves.into_iter().map(asked).collect(),
        };
        let server = Server { address: server.addr.to_string(), authority };
        let door = client::connect_operator(&server, &token).await.map_err(shut)?;
        door.check_push(request).await.map_err(shut)
    }

    /// Says of what is staged what kind of object it is: until the push is let in, only git's hook can see it.
    async fn look(&self, moves: &mut [Move]) -> Result<(), Failure> {
        let guard = Guard::of_patterns(&[]).ok_or_else(|| shut("staging refs can't be told"))?;
        let staged = |one: &&mut Move| guard.kind(&one.name) == RefKind::Staging && !one.deletes();
        let mut git = Git::at(&self.repository).with_time_max(TIME_MAX);
        if let Some(objects) =
            env::var_os("GIT_OBJECT_DIRECTORY").filter(|_| env::var_os("GIT_QUARANTINE_PATH").is_some())
        {
            // Both are relative to the folder that git runs the hook in, or absolute.
            let objects = std::path::absolute(objects).map_err(shut)?;
            git = git.with_quarantine(
                &objects,
                env::var_os("GIT_ALTERNATE_OBJECT_DIRECTORIES").unwrap_or_default(),
            );
        }
        for (count, one) in moves.iter_mut().filter(staged).enumerate() {
            if count == STAGED_MAX {
                return Err(shut(format!("one push stages at most {STAGED_MAX} commits")));
            }
            let answer = git.run(&["cat-file", "-t", &one.to], 64).await.map_err(shut)?;
            one.kind = answer.word().unwrap_or_default().to_owned();
        }
        Ok(())
    }
}

fn asked(one: Move) -> RefMove {
    RefMove { name: one.name.into(), from: one.from, to: one.to, kind: one.kind }
}

/// Tells the pusher each reason; what passes by a person's word is told too.
fn tell(moves: &[Move], said: &CheckPushResponse) -> Result<(), Failure> {
    let name = |index: u32| moves.get(index as usize).map_or_else(String::new, |one| visible(&one.shown()));
    let mut out = String::new();
    for passed in &said.passed {
        let proto::RefPassed { index, by, escalation } = passed;
        out.push_str(&format!("countersign: {by} opened the door for {} ({escalation})\n", name(*index)));
    }
    let Some(first) = said.refused.first() else {
        // Who doesn't listen has pushed all the same.
        let _ = io::stderr().write_all(out.as_bytes());
        return Ok(());
    };
    for RefRefusal { index, message, .. } in said.refused.iter().take(REASONS_MAX) {
        out.push_str(&format!("countersign: {}: {}\n", name(*index), visible(message)));
    }
    if let Some(more) = said.refused.len().checked_sub(REASONS_MAX).filter(|more| *more > 0) {
        out.push_str(&format!("countersign: and {more} more\n"));
    }
    let _ = io::stderr().write_all(out.as_bytes());
    let (refused, all) = (said.refused.len(), moves.len());
    let of = if all == 1 { "the ref".to_owned() } else { format!("{refused} of its {all} refs") };
    Err(Failure::refused(
        &first.code,
        format!("nothing of this push was taken: {of} may not move so"),
        first.remedy.clone(),
    ))
}

fn shut(why: impl std::fmt::Display) -> Failure {
    Failure::refused(
        "DOOR_SHUT",
        format!("the door stays shut: {why}"),
        "have the operator look: countersign door status",
    )
}

/// Runs the hook that was here before, with the same lines and in the same environment; its no counts.
fn before(hook: &Path, input: &[u8]) -> Result<Answer, Failure> {
    let kept = kept_beside(hook);
    let executable = match std::fs::metadata(&kept) {
        // One that may not be run was none to git either.
        Ok(found) => found.is_file() && found.permissions().mode() & 0o111 != 0,
        Err(why) if why.kind() == io::ErrorKind::NotFound => false,
        Err(why) => return Err(shut(format!("{}: {why}", kept.display()))),
    };
    if !executable {
        return Ok(Answer::default());
    }
    // A name without a slash would be looked for elsewhere.
    let kept = std::path::absolute(&kept).map_err(shut)?;
    let started = Command::new(&kept).stdin(Stdio::piped()).spawn();
    let mut child = started.map_err(|why| shut(format!("{}: {why}", kept.display())))?;
    if let Some(mut stdin) = child.stdin.take() {
        // It may end without reading all of it.
        match stdin.write_all(input) {
            Err(why) if why.kind() != io::ErrorKind::BrokenPipe => return Err(shut(why)),
            _ => {}
        }
    }
    let ended = child.wait().map_err(shut)?;
    if ended.success() {
        return Ok(Answer::default());
    }
    Err(Failure::refused(
        "HOOK_REFUSED",
        format!("the hook that was here before refuses this push: {ended}"),
        "see what it said above",
    ))
}
