//! `countersign integrate`: puts the hooks into a harness's settings, and takes them out.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

use clap::Args;
use serde_json::json;
use similar::TextDiff;

use super::clone::CloneFolder;
use super::failure::Failure;
use super::harness::{Harness, Scope};
use super::output::{self, Answer, visible};
use super::speaker::Global;

/// Links that are followed from one to the next, as systems do.
const LINKS_MAX: usize = 40;

/// Puts Countersign's hooks into a harness's settings, and shows what that changes
///
/// The hooks tell the agent at a session's start and with each prompt what it owes, and keep it, once,
/// from ending its turn while it owes something. Whatever else stands in the settings stays as it is.
#[derive(Args, Debug)]
pub struct Integrate {
    /// The harness
    harness: Harness,
    /// Show what would change, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Take the hooks out
    #[arg(long)]
    remove: bool,
    /// Which settings
    #[arg(long, value_enum, default_value_t)]
    scope: Scope,
}

impl Integrate {
    pub(super) fn run(self, global: &Global) -> Result<Answer, Failure> {
        let file = self.file()?;
        let before = match fs::read_to_string(&file) {
            Ok(text) => text,
            Err(why) if why.kind() == io::ErrorKind::NotFound => String::new(),
            Err(why) => return Err(Failure::io(file.display(), &why)),
        };
        let after = if self.remove {
            self.harness.without_hooks(&before)
        } else {
            let program = env::current_exe().map_err(|why| Failure::io("this program's path", &why))?;
            self.harness.with_hooks(&before, &program, &given(global)?)
        };
        let after = after.map_err(|fault| {
            Failure::refused(
                "SETTINGS_UNREADABLE",
                format!("{}: {fault}", file.display()),
                "mend the file, then run it again",
            )
            .with("file", file.display().to_string())
        })?;
        let changed = after != before && !(self.remove && before.is_empty());
        let written = changed && !self.dry_run;
        let mut diff = if changed { difference(&file, &before, &after) } else { String::new() };
        let differs = diff.clone();
        if written {
            if !global.json {
                // It is shown first: whoever can't be shown it finds the settings as they were.
                output::put(&Answer::new(json!({}), std::mem::take(&mut diff)), false)
                    .map_err(|why| Failure::io("the difference", &why))?;
            }
            write(&file, &after)?;
        }
        let said = match (changed, written, self.remove) {
            (false, ..) => "nothing to change in",
            (true, false, _) => "would be changed:",
            (true, true, false) => "its hooks are in",
            (true, true, true) => "its hooks are out of",
        };
        let text = format!("{diff}{} {said} {}\n", self.harness, visible(&file.display().to_string()));
        Ok(Answer::new(
            json!({
                "harness": self.harness.to_string(),
                "file": file.display().to_string(),
                "changed": written,
                "diff": differs,
            }),
            text,
        ))
    }

    /// The file of settings: of the clone that the current folder is in, or of that folder.
    fn file(&self) -> Result<PathBuf, Failure> {
        let here = env::current_dir().map_err(|why| Failure::io("the current folder", &why))?;
        let root = here.ancestors().find(|folder| CloneFolder::at(folder)).unwrap_or(&here);
        let home = env::home_dir().ok_or_else(|| Failure::usage("there is no home folder: set HOME"))?;
        Ok(self.harness.settings(self.scope, root, &home))
    }
}

/// The flags that were given, as the hooks are to be run with: a hook runs wherever the harness does.
fn given(global: &Global) -> Result<Vec<String>, Failure> {
    let mut flags = Vec::new();
    let mut give = |flag: &str, value: Option<String>| {
        flags.extend(value.into_iter().flat_map(|value| [flag.to_owned(), value]));
    };
    give("--as", global.member.as_ref().map(ToString::to_string));
    give("--team", global.team.as_ref().map(ToString::to_string));
    give("--addr", global.addr.clone());
    let ca = global.ca.as_ref().map(std::path::absolute).transpose();
    let ca = ca.map_err(|why| Failure::io("the current folder", &why))?;
    give("--ca", ca.map(|file| file.display().to_string()));
    Ok(flags)
}

/// What changes, line by line.
fn difference(file: &Path, before: &str, after: &str) -> String {
    let name = visible(&file.display().to_string());
    let diff = TextDiff::from_lines(before, after);
    diff.unified_diff().context_radius(3).header(&name, &name).to_string()
}

/// In one step: whoever reads the file meanwhile finds the old text or the new one. A file that is a
/// link stays one.
fn write(file: &Path, text: &str) -> Result<(), Failure> {
    let file = target(file).map_err(|why| Failure::io(file.display(), &why))?;
    let failed = |why: &io::Error| Failure::io(file.display(), why);
    let folder = file.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder).map_err(|why| failed(&why))?;
    let mut draft = tempfile::NamedTempFile::new_in(folder).map_err(|why| failed(&why))?;
    draft.write_all(text.as_bytes()).map_err(|why| failed(&why))?;
    // A draft is its maker's alone; settings are as readable as they were.
    let mode = fs::metadata(&file).map(|known| known.permissions());
    if let Ok(mode) = mode {
        draft.as_file().set_permissions(mode).map_err(|why| failed(&why))?;
    }
    draft.persist(&file).map_err(|why| failed(&why.error))?;
    Ok(())
}

/// Where a file is, behind its links: also behind one whose file isn't there yet.
fn target(file: &Path) -> io::Result<PathBuf> {
    let mut file = file.to_owned();
    for _ in 0..LINKS_MAX {
        match fs::read_link(&file) {
            Ok(to) => file = file.parent().unwrap_or(Path::new("")).join(to),
            Err(_) => return Ok(file),
        }
    }
    Err(io::Error::other("its links lead in a circle"))
}
