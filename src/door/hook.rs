//! The hook: a few lines of shell in the repository that start this very program.
//!
//! It is put in place in one step, and what was there before is kept beside it and run after it.

use std::ffi::{OsStr, OsString};
use std::fs::{self, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use super::fault::DoorFault;
use crate::artifact::git::Git;
use crate::protocol::name::TeamName;

/// What git runs.
const HOOK: &str = "pre-receive";
/// What was there before, kept beside it.
const KEPT: &str = "pre-receive.before-countersign";
/// By this line a hook is known as ours.
const MARK: &[u8] =
    b"# Countersign's door. Made by `countersign door install`: run that again, and edit nothing here.";
/// What git may print of one setting, in bytes.
const SETTING_BYTES_MAX: usize = 4096;

/// What the hook needs to find its way, all of it written into it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Way {
    /// This program.
    pub program: PathBuf,
    /// The server's home.
    pub home: PathBuf,
    /// The team whose repository it is.
    pub team: TeamName,
    /// The repository: in a folder that several share, others are none of the door's business.
    pub repository: PathBuf,
    /// Whether other repositories take their hooks from the same folder.
    pub shared: bool,
    /// The certificate authority of a server that speaks TLS.
    pub authority: Option<PathBuf>,
}

/// The folder that git takes the repository's hooks from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hooks {
    /// Where it is.
    pub folder: PathBuf,
    /// What the repository's `core.hooksPath` says, where it says something.
    pub configured: Option<String>,
}

/// What stands at the hook's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Ours, as it would be written now.
    Ours,
    /// Ours, but git would not run it.
    NotExecutable,
    /// Ours, with another way written into it, or edited.
    Changed,
    /// Somebody else's.
    Others,
    /// Nothing.
    Missing,
}

impl Standing {
    /// Its stable name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ours => "installed",
            Self::NotExecutable => "not-executable",
            Self::Changed => "changed",
            Self::Others => "replaced",
            Self::Missing => "missing",
        }
    }
}

impl Hooks {
    /// Of that repository, by its own configuration.
    ///
    /// # Errors
    /// [`DoorFault::Git`]; [`DoorFault::HooksPath`] for a path that only some user's shell could follow.
    pub async fn of(git: &Git) -> Result<Self, DoorFault> {
        let asked = ["config", "--local", "--includes", "--null", "--get", "core.hooksPath"];
        let answer = git.run(&asked, SETTING_BYTES_MAX).await?;
        let configured = match answer.code {
            Some(0) => answer.stdout.strip_suffix(b"\0").unwrap_or(&answer.stdout).to_vec(),
            // There is none.
            Some(1) => return Ok(Self { folder: git.folder().join("hooks"), configured: None }),
            _ => return Err(answer.fault().into()),
        };
        let given = String::from_utf8_lossy(&configured).into_owned();
        if configured.is_empty() || configured.starts_with(b"~") || configured.starts_with(b"%(") {
            return Err(DoorFault::HooksPath { given });
        }
        // Git runs a hook of a bare repository in the repository's own folder.
        let folder = git.folder().join(OsStr::from_bytes(&configured));
        Ok(Self { folder, configured: Some(given) })
    }

    /// The hook's own file.
    pub fn hook(&self) -> PathBuf {
        self.folder.join(HOOK)
    }

    /// The hook that was there before, once it is kept.
    pub fn kept(&self) -> PathBuf {
        self.folder.join(KEPT)
    }

    /// Whether a hook from before is kept, and runs after ours.
    pub fn keeps(&self) -> bool {
        self.kept().symlink_metadata().is_ok()
    }

    /// What stands at the hook's place.
    pub fn standing(&self, way: &Way) -> Result<Standing, DoorFault> {
        let hook = self.hook();
        let Some(found) = read(&hook)? else { return Ok(Standing::Missing) };
        if !is_ours(&found) {
            return Ok(Standing::Others);
        }
        let mode = fs::metadata(&hook).map_err(DoorFault::io("reading", &hook))?.permissions().mode();
        Ok(if found != script(way) {
            Standing::Changed
        } else if mode & 0o111 == 0 {
            Standing::NotExecutable
        } else {
            Standing::Ours
        })
    }

    /// Puts the hook in place; says whether one from before is kept beside it. Doing it again writes it anew.
    ///
    /// # Errors
    /// [`DoorFault::OthersDoor`] where it serves another home or team, [`DoorFault::TwoHooks`] where somebody
    /// replaced it and one from before is kept.
    pub fn install(&self, way: &Way) -> Result<bool, DoorFault> {
        let (hook, kept) = (self.hook(), self.kept());
        fs::create_dir_all(&self.folder).map_err(DoorFault::io("making", &self.folder))?;
        match read(&hook)? {
            Some(found) if is_ours(&found) => {
                let same = |line: &[u8]| found.split(|byte| *byte == b'\n').any(|known| known == line);
                let words = [variable("home", &way.home), variable("team", OsStr::new(way.team.as_str()))];
                if !words.iter().all(|word| same(word)) {
                    return Err(DoorFault::OthersDoor { hook });
                }
            }
            // An installation that was cut off after it had kept the hook left it in both places.
            Some(_) if self.keeps() && same_hook(&hook, &kept) => {}
            Some(_) if self.keeps() => return Err(DoorFault::TwoHooks { hook, kept }),
            // Linked first, then replaced: there is no moment without a hook.
            Some(_) => link(&hook, &kept)?,
            None => {}
        }
        let aside = self.folder.join(format!(".{HOOK}.{}", std::process::id()));
        let write = || {
            match fs::remove_file(&aside) {
                Err(why) if why.kind() != io::ErrorKind::NotFound => return Err(why),
                _ => {}
            }
            let mut file = OpenOptions::new().write(true).create_new(true).mode(0o755).open(&aside)?;
            file.set_permissions(Permissions::from_mode(0o755))?;
            file.write_all(&script(way))?;
            file.sync_all()?;
            fs::rename(&aside, &hook)
        };
        write().map_err(DoorFault::io("writing", &hook))?;
        Ok(self.keeps())
    }

    /// Takes the hook out, and puts the one from before back in its place; says whether there was one of ours.
    ///
    /// # Errors
    /// [`DoorFault::NotOurs`].
    pub fn uninstall(&self) -> Result<bool, DoorFault> {
        let (hook, kept) = (self.hook(), self.kept());
        let ours = match read(&hook)? {
            Some(found) if is_ours(&found) => true,
            Some(_) => return Err(DoorFault::NotOurs { hook }),
            None => false,
        };
        if self.keeps() {
            fs::rename(&kept, &hook).map_err(DoorFault::io("putting back", &hook))?;
        } else if ours {
            fs::remove_file(&hook).map_err(DoorFault::io("removing", &hook))?;
        }
        Ok(ours)
    }
}

/// Whether the folder is outside of the repository, so that others may take their hooks from it too.
pub fn is_shared(folder: &Path, repository: &Path) -> bool {
    let whole = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    !whole(folder).starts_with(whole(repository))
}

/// The kept hook's place beside the hook that git runs as `hook`.
pub fn kept_beside(hook: &Path) -> PathBuf {
    hook.with_file_name(KEPT)
}

fn same_hook(one: &Path, other: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    match (fs::read_link(one), fs::read_link(other)) {
        (Ok(one), Ok(other)) => one == other,
        (Err(_), Err(_)) => {
            let place = |path: &Path| fs::metadata(path).map(|found| (found.dev(), found.ino())).ok();
            place(one).is_some() && place(one) == place(other)
        }
        _ => false,
    }
}

fn link(hook: &Path, kept: &Path) -> Result<(), DoorFault> {
    // A symbolic link is kept as one. A file system that knows no hard links gets a moment without a hook.
    let linked = match fs::read_link(hook) {
        Ok(target) => std::os::unix::fs::symlink(target, kept),
        Err(_) => fs::hard_link(hook, kept).or_else(|_| fs::rename(hook, kept)),
    };
    linked.map_err(DoorFault::io("keeping", hook))
}

fn read(hook: &Path) -> Result<Option<Vec<u8>>, DoorFault> {
    match fs::read(hook) {
        Ok(found) => Ok(Some(found)),
        // A link that leads nowhere stands there all the same.
        Err(why) if why.kind() == io::ErrorKind::NotFound => {
            Ok(hook.symlink_metadata().is_ok().then(Vec::new))
        }
        Err(why) => Err(DoorFault::io("reading", hook)(why)),
    }
}

fn is_ours(hook: &[u8]) -> bool {
    hook.split(|byte| *byte == b'\n').nth(1) == Some(MARK)
}

/// The hook. It holds no rule, and hands the push over to the program; where that is gone, it says so and refuses.
fn script(way: &Way) -> Vec<u8> {
    let mut lines: Vec<Vec<u8>> = vec![
        b"#!/bin/sh".to_vec(),
        MARK.to_vec(),
        variable("program", &way.program),
        variable("home", &way.home),
        variable("team", OsStr::new(way.team.as_str())),
        variable("repository", &way.repository),
        b"if [ ! -x \"$program\" ]; then".to_vec(),
        b"  echo \"countersign: $program is not there, so the door stays shut\" >&2".to_vec(),
        b"  echo \"  The operator can: countersign door install\" >&2".to_vec(),
        b"  exit 1".to_vec(),
        b"fi".to_vec(),
        // Where the door is asked is said here, not by whoever pushes.
        b"unset COUNTERSIGN_HOME COUNTERSIGN_AS COUNTERSIGN_TEAM COUNTERSIGN_ADDR COUNTERSIGN_CA COUNTERSIGN_TOKEN_FILE"
            .to_vec(),
    ];
    let mut run = b"exec \"$program\" door pre-receive --home \"$home\" --team \"$team\" --repository \"$repository\" --hook \"$0\"".to_vec();
    if way.shared {
        run.extend(b" --shared");
    }
    if let Some(authority) = &way.authority {
        lines.push(variable("authority", authority));
        run.extend(b" --ca \"$authority\"");
    }
    lines.push(run);
    let mut script = lines.join(&b'\n');
    script.push(b'\n');
    script
}

/// A shell variable of exactly that value.
fn variable(name: &str, value: impl AsRef<OsStr>) -> Vec<u8> {
    let mut line = OsString::from(format!("{name}='")).into_vec();
    for byte in value.as_ref().as_bytes() {
        match byte {
            b'\'' => line.extend(b"'\\''"),
            byte => line.push(*byte),
        }
    }
    line.push(b'\'');
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn way(home: &str) -> Way {
        Way {
            program: "/opt/it's here/countersign".into(),
            home: home.into(),
            team: "atlas".parse().unwrap(),
            repository: "/r".into(),
            shared: false,
            authority: None,
        }
    }

    fn hooks(folder: &Path) -> Hooks {
        Hooks { folder: folder.to_owned(), configured: None }
    }

    #[test]
    fn a_path_reaches_the_program_as_it_is_whatever_the_shell_would_make_of_it() {
        let odd = "/tmp/$(id) `x` \"y\" 'z'\\n;&";
        let line = variable("home", OsStr::new(odd));
        let mut script = line;
        script.extend(b"\nprintf %s \"$home\"");
        let told =
            std::process::Command::new("sh").arg("-c").arg(OsString::from_vec(script)).output().unwrap();
        assert_eq!(String::from_utf8(told.stdout).unwrap(), odd);
    }

    #[test]
    fn a_hook_from_before_is_kept_through_reinstalling_and_put_back() {
        let folder = tempfile::tempdir().unwrap();
        let hooks = hooks(folder.path());
        fs::write(hooks.hook(), "#!/bin/sh\necho before\n").unwrap();
        assert_eq!(hooks.standing(&way("/h")).unwrap(), Standing::Others);
        for _ in 0..2 {
            assert!(hooks.install(&way("/h")).unwrap());
            assert_eq!(hooks.standing(&way("/h")).unwrap(), Standing::Ours);
            assert_eq!(fs::read_to_string(hooks.kept()).unwrap(), "#!/bin/sh\necho before\n");
        }
        assert_eq!(hooks.standing(&way("/other")).unwrap(), Standing::Changed);
        assert!(matches!(hooks.install(&way("/other")), Err(DoorFault::OthersDoor { .. })));
        fs::write(hooks.hook(), "#!/bin/sh\n").unwrap();
        assert!(matches!(hooks.install(&way("/h")), Err(DoorFault::TwoHooks { .. })));
        assert!(matches!(hooks.uninstall(), Err(DoorFault::NotOurs { .. })));
        // As an installation leaves it that is cut off halfway.
        fs::remove_file(hooks.hook()).unwrap();
        fs::hard_link(hooks.kept(), hooks.hook()).unwrap();
        hooks.install(&way("/h")).unwrap();
        assert!(hooks.uninstall().unwrap());
        assert_eq!(fs::read_to_string(hooks.hook()).unwrap(), "#!/bin/sh\necho before\n");
        assert!(!hooks.keeps());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing of ours is left");
    }

    #[test]
    fn a_hook_that_is_a_link_is_kept_as_one_also_where_it_leads_nowhere() {
        let folder = tempfile::tempdir().unwrap();
        let hooks = hooks(folder.path());
        std::os::unix::fs::symlink("elsewhere", hooks.hook()).unwrap();
        assert!(hooks.install(&way("/h")).unwrap());
        assert_eq!(fs::read_link(hooks.kept()).unwrap(), Path::new("elsewhere"));
        assert_eq!(hooks.standing(&way("/h")).unwrap(), Standing::Ours);
        hooks.uninstall().unwrap();
        assert_eq!(fs::read_link(hooks.hook()).unwrap(), Path::new("elsewhere"));
    }
}
