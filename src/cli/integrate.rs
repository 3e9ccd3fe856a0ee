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
use super::output::{Answer, visible};
use super::speaker::Global;

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
            self.harness.with_hooks(&before, &program, global.member.as_ref())
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
        if written {
            write(&file, &after)?;
        }
        let diff = if changed { difference(&file, &before, &after) } else { String::new() };
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
                "diff": diff,
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

/// What changes, line by line.
fn difference(file: &Path, before: &str, after: &str) -> String {
    let name = visible(&file.display().to_string());
    let diff = TextDiff::from_lines(before, after);
    diff.unified_diff().context_radius(3).header(&name, &name).to_string()
}

/// In one step: whoever reads the file meanwhile finds the old text or the new one. A file that is a
/// link stays one.
fn write(file: &Path, text: &str) -> Result<(), Failure> {
    let file = fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
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
