//! The home folder: what a server keeps beside its store, and who may read it.
//!
//! ```text
//! .countersign/              0700; files are 0600, whatever the umask
//!   operator.token           the operator's own token, made with the home
//!   server.json              where the running server listens; gone after a clean stop
//!   first-team               the name of the home's first team
//!   tokens/MEMBER            tokens of the first team's members
//!   artifacts/               the first team's bundles
//!   teams/TEAM/folder        the folder that the charter's relative paths are relative to
//!   teams/TEAM/door.json, passed.json   how the refs stood when the door was put in, and what passed it since
//!   teams/TEAM/tokens/MEMBER, teams/TEAM/artifacts/   the same for further teams
//!   countersign.db, witness, lock                     the store's (see `store::sqlite`)
//! ```
//!
//! A folder is kept relative to the home where it lies beside or below it, so that the whole can be
//! moved.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::net::SocketAddr;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::coordinator::token::Token;
use crate::protocol::name::{MemberName, TeamName};
use crate::protocol::time::Time;

const FOLDER_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;

/// A home folder. Cheap to clone; nothing is opened until something is asked of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Home {
    root: PathBuf,
}

/// Why something of a home can't be read or written.
#[derive(Debug, thiserror::Error)]
pub enum HomeFault {
    /// The system refused.
    #[error("{doing} {}: {source}", .path.display())]
    Io {
        /// What was being done.
        doing: &'static str,
        /// With which file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// It held logs, and both the database and its witness are gone.
    #[error("{} held the log of {team}, and its database and witness are gone", .path.display())]
    Bereft {
        /// The folder.
        path: PathBuf,
        /// The home's first team.
        team: TeamName,
    },
    /// A file isn't of its form.
    #[error("{} holds no {expected}", .path.display())]
    Form {
        /// Which file.
        path: PathBuf,
        /// What it should hold.
        expected: &'static str,
    },
}

impl HomeFault {
    /// What to do about it.
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::Bereft { .. } => {
                "put the latest backup in the home's place; or, to begin anew, move the folder away first"
            }
            Self::Io { .. } | Self::Form { .. } => "see that the folder is yours, then run it again",
        }
    }
}

/// What `server.json` says of the running server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerFile {
    /// Where it listens.
    pub addr: SocketAddr,
    /// Its process.
    pub pid: u32,
    /// Since when, as RFC 3339 in UTC.
    pub started_at: String,
    /// Where the room page is, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page: Option<SocketAddr>,
}

impl ServerFile {
    /// For this process.
    pub fn of_this_process(addr: SocketAddr, page: Option<SocketAddr>, started_at: Time) -> Self {
        Self { addr, pid: std::process::id(), started_at: started_at.to_string(), page }
    }
}

impl Home {
    /// The home at that path, which may not be there yet.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self { root: path.into() }
    }

    /// Makes the folder, closed to others, with the operator's token. What is there already stays.
    pub fn create(path: impl Into<PathBuf>) -> Result<Self, HomeFault> {
        let home = Self::at(path);
        home.check_not_bereft()?;
        make_folder(&home.root)?;
        let token_file = home.operator_token_file();
        if !token_file.exists() {
            let token = Token::generate()
                .map_err(|error| io_fault("making a token for", &token_file)(io::Error::other(error)))?;
            write_private(&token_file, format!("{}\n", token.expose()).as_bytes())?;
        }
        Ok(home)
    }

    /// Refuses a home that lost what it held: begun anew, it would be silently shorter. The first team is
    /// named only once there is a database.
    fn check_not_bereft(&self) -> Result<(), HomeFault> {
        let lost = ["countersign.db", "witness"].iter().all(|file| !self.root.join(file).exists());
        match self.first_team() {
            Some(team) if lost => Err(HomeFault::Bereft { path: self.root.clone(), team }),
            _ => Ok(()),
        }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.root
    }

    /// The operator's token: it speaks for whoever holds this folder.
    pub fn operator_token(&self) -> Result<Token, HomeFault> {
        read_token(&self.operator_token_file())
    }

    /// Where the operator's token is.
    pub fn operator_token_file(&self) -> PathBuf {
        self.root.join("operator.token")
    }

    /// Where a member's token is: `tokens/MEMBER` for the first team (and where no team is given),
    /// `teams/TEAM/tokens/MEMBER` for further ones.
    pub fn token_file(&self, team: Option<&TeamName>, member: &MemberName) -> PathBuf {
        let of_team = team.map_or_else(|| self.root.clone(), |team| self.team_home(team));
        of_team.join("tokens").join(member.as_str())
    }

    /// Writes a member's token to its place, over the one before it. Says where.
    pub fn write_token(
        &self,
        team: Option<&TeamName>,
        member: &MemberName,
        token: &Token,
    ) -> Result<PathBuf, HomeFault> {
        let file = self.token_file(team, member);
        make_folder_of(&file)?;
        write_private(&file, format!("{}\n", token.expose()).as_bytes())?;
        Ok(file)
    }

    /// Reads a member's token from its place.
    pub fn read_token(&self, team: Option<&TeamName>, member: &MemberName) -> Result<Token, HomeFault> {
        read_token(&self.token_file(team, member))
    }

    /// What keeps a team's own files: the home itself for the first team.
    pub fn team_home(&self, team: &TeamName) -> PathBuf {
        if self.first_team().as_ref() == Some(team) { self.root.clone() } else { self.team_folder(team) }
    }

    /// The home's first team, once there is one.
    pub fn first_team(&self) -> Option<TeamName> {
        fs::read_to_string(self.root.join("first-team")).ok()?.trim().parse().ok()
    }

    /// Says which team is the home's first.
    pub fn set_first_team(&self, team: &TeamName) -> Result<(), HomeFault> {
        write_private(&self.root.join("first-team"), format!("{team}\n").as_bytes())
    }

    /// Keeps the folder that a team's charter lies in.
    pub fn set_charter_folder(&self, team: &TeamName, folder: &Path) -> Result<(), HomeFault> {
        let folder = folder.canonicalize().map_err(io_fault("reading", folder))?;
        let root = self.root.canonicalize().map_err(io_fault("reading", &self.root))?;
        let beside = root.parent().and_then(|parent| folder.strip_prefix(parent).ok());
        let kept = beside.map_or_else(|| folder.clone(), |below| Path::new("..").join(below));
        let file = self.team_folder(team).join("folder");
        make_folder_of(&file)?;
        write_private(&file, kept.as_os_str().as_bytes())
    }

    /// The folder that a team's charter lies in, as an absolute path.
    pub fn charter_folder(&self, team: &TeamName) -> Result<PathBuf, HomeFault> {
        let file = self.team_folder(team).join("folder");
        let kept = fs::read(&file).map_err(io_fault("reading", &file))?;
        if kept.is_empty() {
            return Err(HomeFault::Form { path: file, expected: "path" });
        }
        let kept = PathBuf::from(std::ffi::OsString::from_vec(kept));
        let root = self.root.canonicalize().map_err(io_fault("reading", &self.root))?;
        let folder = root.join(kept);
        folder.canonicalize().map_err(io_fault("reading", &folder))
    }

    /// Says where the server listens, in one step: whoever reads it sees all of it or nothing.
    pub fn write_server(&self, server: &ServerFile) -> Result<(), HomeFault> {
        let text = serde_json::to_string(server).expect("four plain fields have a JSON form");
        write_private(&self.server_file(), format!("{text}\n").as_bytes())
    }

    /// Says that a server runs at that time. Lost with the machine it costs nothing but a little of the
    /// time that deadlines are given back, so it is neither flushed nor put in place in one step.
    pub fn write_alive(&self, at: Time) -> Result<(), HomeFault> {
        let file = self.alive_file();
        let write = || {
            let mut open =
                OpenOptions::new().write(true).create(true).truncate(true).mode(FILE_MODE).open(&file)?;
            open.set_permissions(Permissions::from_mode(FILE_MODE))?;
            open.write_all(format!("{at}\n").as_bytes())
        };
        write().map_err(io_fault("writing", &file))
    }

    /// When a server was last seen to run, where that is known.
    pub fn read_alive(&self) -> Option<Time> {
        fs::read_to_string(self.alive_file()).ok()?.trim().parse().ok()
    }

    fn alive_file(&self) -> PathBuf {
        self.root.join("alive")
    }

    /// Where the running server says who it is.
    pub fn server_file(&self) -> PathBuf {
        self.root.join("server.json")
    }

    /// The running server, where one said so and didn't end in good order since.
    pub fn read_server(&self) -> Option<ServerFile> {
        serde_json::from_slice(&fs::read(self.server_file()).ok()?).ok()
    }

    /// Removes what that server said of itself, unless another has taken its place.
    pub fn remove_server(&self, server: &ServerFile) -> Result<(), HomeFault> {
        if self.read_server().as_ref() != Some(server) {
            return Ok(());
        }
        let file = self.server_file();
        fs::remove_file(&file).map_err(io_fault("removing", &file))
    }

    /// Keeps how the refs of a team's repository stood when its door was put in.
    pub fn write_door(&self, team: &TeamName, begun: &[u8]) -> Result<(), HomeFault> {
        let file = self.door_file(team);
        make_folder_of(&file)?;
        write_private(&file, begun)
    }

    /// How they stood; nothing where there is no door.
    pub fn read_door(&self, team: &TeamName) -> Result<Option<Vec<u8>>, HomeFault> {
        read_if_there(&self.door_file(team))
    }

    /// Forgets the door of a team, and what passed it.
    pub fn remove_door(&self, team: &TeamName) -> Result<(), HomeFault> {
        for file in [self.door_file(team), self.passed_file(team)] {
            match fs::remove_file(&file) {
                Err(why) if why.kind() != io::ErrorKind::NotFound => {
                    return Err(io_fault("removing", &file)(why));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Keeps the pushes that persons let past a team's door.
    pub fn write_passed(&self, team: &TeamName, passed: &[u8]) -> Result<(), HomeFault> {
        let file = self.passed_file(team);
        make_folder_of(&file)?;
        write_private(&file, passed)
    }

    /// Those pushes; nothing where there was none.
    pub fn read_passed(&self, team: &TeamName) -> Result<Option<Vec<u8>>, HomeFault> {
        read_if_there(&self.passed_file(team))
    }

    /// That what is kept of a door can't be read.
    pub fn unreadable_door(&self, team: &TeamName) -> HomeFault {
        HomeFault::Form { path: self.door_file(team), expected: "record of a door" }
    }

    /// That the pushes past it can't be read.
    pub fn unreadable_passed(&self, team: &TeamName) -> HomeFault {
        HomeFault::Form { path: self.passed_file(team), expected: "record of pushes past a door" }
    }

    fn door_file(&self, team: &TeamName) -> PathBuf {
        self.team_folder(team).join("door.json")
    }

    fn passed_file(&self, team: &TeamName) -> PathBuf {
        self.team_folder(team).join("passed.json")
    }

    fn team_folder(&self, team: &TeamName) -> PathBuf {
        self.root.join("teams").join(team.as_str())
    }
}

fn read_if_there(file: &Path) -> Result<Option<Vec<u8>>, HomeFault> {
    match fs::read(file) {
        Ok(text) => Ok(Some(text)),
        Err(why) if why.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(why) => Err(io_fault("reading", file)(why)),
    }
}

fn io_fault(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> HomeFault + use<> {
    let path = path.to_owned();
    move |source| HomeFault::Io { doing, path, source }
}

fn read_token(file: &Path) -> Result<Token, HomeFault> {
    let text = fs::read_to_string(file).map_err(io_fault("reading", file))?;
    Token::parse(&text).map_err(|_| HomeFault::Form { path: file.to_owned(), expected: "token" })
}

/// Makes a folder where there is none; closed to others in any case.
fn make_folder(path: &Path) -> Result<(), HomeFault> {
    DirBuilder::new().recursive(true).mode(FOLDER_MODE).create(path).map_err(io_fault("making", path))?;
    fs::set_permissions(path, Permissions::from_mode(FOLDER_MODE))
        .map_err(io_fault("closing to others", path))
}

fn make_folder_of(file: &Path) -> Result<(), HomeFault> {
    let folder = file.parent().expect("a home's files stand in folders");
    make_folder(folder)
}

/// Writes a file that only its owner may read, whatever the umask, aside and then into its place.
fn write_private(path: &Path, bytes: &[u8]) -> Result<(), HomeFault> {
    let name = path.file_name().expect("a home's files have names").to_string_lossy();
    // A name that no member, team or file of ours has, and no other process uses.
    let aside = path.with_file_name(format!(".{name}.{}", std::process::id()));
    let write = || {
        // What a killed process of the same number left is no obstacle.
        match fs::remove_file(&aside) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file = OpenOptions::new().write(true).create_new(true).mode(FILE_MODE).open(&aside)?;
        // An umask can only have taken bits away.
        file.set_permissions(Permissions::from_mode(FILE_MODE))?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&aside, path)?;
        path.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())
    };
    write().map_err(io_fault("writing", path))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    fn name<T: std::str::FromStr<Err: std::fmt::Debug>>(text: &str) -> T {
        text.parse().unwrap()
    }

    #[test]
    fn what_a_home_holds_is_its_owners_alone() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::create(folder.path().join("work/.countersign")).unwrap();
        assert_eq!(mode(home.path()), 0o700);
        assert_eq!(mode(&home.operator_token_file()), 0o600);
        let operator = home.operator_token().unwrap();
        assert_eq!(Home::create(home.path()).unwrap().operator_token().unwrap().hash(), operator.hash());

        let (atlas, bravo): (TeamName, TeamName) = (name("atlas"), name("bravo"));
        let app: MemberName = name("app");
        home.set_first_team(&atlas).unwrap();
        let token = Token::generate().unwrap();
        let first = home.write_token(Some(&atlas), &app, &token).unwrap();
        assert_eq!(first, home.path().join("tokens/app"));
        assert_eq!(first, home.token_file(None, &app));
        let further = home.write_token(Some(&bravo), &app, &token).unwrap();
        assert_eq!(further, home.path().join("teams/bravo/tokens/app"));
        assert_eq!((mode(&first), mode(&further)), (0o600, 0o600));
        assert_eq!(mode(first.parent().unwrap()), 0o700);
        assert_eq!(home.read_token(None, &app).unwrap().hash(), token.hash());
    }

    #[test]
    fn a_home_that_lost_its_database_and_its_witness_does_not_begin_anew() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::create(folder.path().join("home")).unwrap();
        for file in ["countersign.db", "witness"] {
            fs::write(home.path().join(file), "").unwrap();
        }
        home.set_first_team(&name("atlas")).unwrap();
        // One of the two is the store's to judge.
        fs::remove_file(home.path().join("countersign.db")).unwrap();
        Home::create(home.path()).unwrap();
        fs::remove_file(home.path().join("witness")).unwrap();
        let refused = Home::create(home.path()).unwrap_err();
        assert!(matches!(&refused, HomeFault::Bereft { team, .. } if team.as_str() == "atlas"), "{refused}");
    }

    #[test]
    fn a_home_that_is_moved_with_its_charter_still_finds_it() {
        let folder = tempfile::tempdir().unwrap();
        let before = folder.path().join("before");
        let home = Home::create(before.join(".countersign")).unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        let (near, far): (TeamName, TeamName) = (name("near"), name("far"));
        home.set_charter_folder(&near, &before).unwrap();
        home.set_charter_folder(&far, elsewhere.path()).unwrap();

        let after = folder.path().join("after");
        fs::rename(&before, &after).unwrap();
        let home = Home::at(after.join(".countersign"));
        assert_eq!(home.charter_folder(&near).unwrap(), after.canonicalize().unwrap());
        assert_eq!(home.charter_folder(&far).unwrap(), elsewhere.path().canonicalize().unwrap());
    }

    #[test]
    fn only_the_server_that_wrote_it_removes_its_file() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::create(folder.path().join("home")).unwrap();
        assert_eq!(home.read_server(), None);
        let addr = "127.0.0.1:4170".parse().unwrap();
        let ours = ServerFile::of_this_process(addr, None, Time(0));
        home.write_server(&ours).unwrap();
        assert_eq!((home.read_server(), mode(&home.server_file())), (Some(ours.clone()), 0o600));
        let theirs = ServerFile { pid: ours.pid + 1, ..ours.clone() };
        home.write_server(&theirs).unwrap();
        home.remove_server(&ours).unwrap();
        assert_eq!(home.read_server(), Some(theirs.clone()));
        home.remove_server(&theirs).unwrap();
        assert_eq!(home.read_server(), None);
    }
}
