//! Who speaks, to which server: how a command that speaks for a member finds its token and its way.
//!
//! | what | from, the first that is there |
//! | --- | --- |
//! | member | `--as`, `COUNTERSIGN_AS`, the only member whose token the clone holds |
//! | token | `COUNTERSIGN_TOKEN_FILE`, the clone's git folder, the home's `tokens/` |
//! | server | `--addr`, `COUNTERSIGN_ADDR`, the clone's git folder, the home's `server.json` |
//! | home | `COUNTERSIGN_HOME`, the nearest `.countersign/` above the current folder |

use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::{env, fs};

use clap::Args;

use super::clone::{CloneFolder, Place};
use super::failure::{Exit, Failure};
use super::told::Told;
use crate::client::{self, Caller, Client, Server, sockets_allowed};
use crate::coordinator::token::Token;
use crate::home::Home;
use crate::protocol::name::{MemberName, TeamName};
use crate::protocol::rejection::list;

/// The name of a home folder.
pub const HOME_NAME: &str = ".countersign";

/// Flags that every command takes.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Global options")]
pub struct Global {
    /// Print JSON: {"ok":true,…} for what was done, {"ok":false,"code":…,"remedy":…} for a refusal
    #[arg(long, global = true)]
    pub json: bool,

    /// Speak for this member
    #[arg(long = "as", value_name = "MEMBER", env = "COUNTERSIGN_AS", hide_env_values = true, global = true)]
    pub member: Option<MemberName>,

    /// The team, where a home holds several
    #[arg(long, value_name = "TEAM", env = "COUNTERSIGN_TEAM", hide_env_values = true, global = true)]
    pub team: Option<TeamName>,

    /// The server's address: HOST:PORT, http://HOST:PORT or https://HOST:PORT
    #[arg(long, value_name = "ADDR", env = "COUNTERSIGN_ADDR", hide_env_values = true, global = true)]
    pub addr: Option<String>,

    /// The certificate authority of a server that speaks TLS, as PEM
    #[arg(long, value_name = "FILE", env = "COUNTERSIGN_CA", hide_env_values = true, global = true)]
    pub ca: Option<PathBuf>,
}

/// The id of a write, with which it can be asked again.
#[derive(Args, Clone, Debug, Default)]
pub struct Write {
    /// This write's own id: asked again with it, the command has one effect and the first answer
    #[arg(long, value_name = "UUID", value_parser = uuid)]
    pub request_id: Option<String>,
}

impl Write {
    /// The given id, or none: the client makes a fresh one then.
    pub fn id(&self) -> String {
        self.request_id.clone().unwrap_or_default()
    }
}

fn uuid(text: &str) -> Result<String, String> {
    let parsed = uuid::Uuid::try_parse(text);
    parsed
        .map(|id| id.to_string())
        .map_err(|_| "give a UUID, such as 0193a5c8-0000-7000-8000-000000000000".to_owned())
}

/// A member who speaks to a server.
#[derive(Debug)]
pub struct Speaker {
    /// The connection.
    pub client: Client,
    /// For whom.
    pub member: MemberName,
    /// In which team, where that is known without asking.
    team: Option<TeamName>,
    clone: Option<CloneFolder>,
    home: Option<Home>,
}

impl Speaker {
    /// Finds the member's token and the server, and connects.
    pub async fn connect(global: &Global) -> Result<Self, Failure> {
        let clone = CloneFolder::here();
        let place = clone.as_ref().and_then(Place::of);
        let home = find_home();
        let member = who(global, clone.as_ref()).ok_or_else(|| {
            Failure::new(
                Exit::Unauthenticated,
                "UNAUTHENTICATED",
                "nobody is named to speak for",
                "name the member: --as MEMBER, or COUNTERSIGN_AS",
            )
        })?;
        let server = server(global, place.as_ref(), home.as_ref())?;
        let named = env::var_os("COUNTERSIGN_TOKEN_FILE").is_some_and(|named| !named.is_empty());
        let of_home = home.as_ref().filter(|_| {
            // A token that is named, or that the clone keeps, says by itself of which team it is.
            !named && !clone.as_ref().is_some_and(|clone| of_clone(global, clone, &member).exists())
        });
        let of_home = of_home.map(|home| team_in(home, global, &member)).transpose()?.flatten();
        let team = of_home.or_else(|| global.team.clone());
        let token = token(global, team.as_ref(), &member, clone.as_ref(), home.as_ref())?;
        let caller = Caller { token, member: Some(member.clone()), team: global.team.clone() };
        let client = client::connect(&server, &caller).await?;
        let team = team
            .or_else(|| place.map(|place| place.team))
            .or_else(|| home.as_ref().and_then(Home::first_team));
        Ok(Self { client, member, team, clone, home })
    }

    /// The clone that the command is run in.
    pub fn clone_folder(&self) -> Result<&CloneFolder, Failure> {
        self.clone.as_ref().ok_or_else(|| {
            Failure::usage("--commit needs a clone of the repository, and the current folder is in none")
        })
    }

    /// What was told here; none where there is no place to keep it.
    pub async fn told(&self) -> Result<Option<Told>, Failure> {
        let Some(root) = self.told_root() else { return Ok(None) };
        let team = match &self.team {
            Some(team) => team.clone(),
            // With a token file and an address alone, only the server knows.
            None => {
                let charter = self.client.get_charter(client::proto::GetCharterRequest::default()).await?;
                charter.team.parse().map_err(Failure::usage)?
            }
        };
        Ok(Some(Told::below(root, &team, &self.member)))
    }

    fn told_root(&self) -> Option<PathBuf> {
        match (&self.clone, &self.home) {
            (Some(clone), _) => Some(clone.folder()),
            (None, Some(home)) => Some(home.path().to_owned()),
            (None, None) => None,
        }
    }
}

/// Whether somebody is named to speak for here.
pub fn is_anybody(global: &Global) -> bool {
    who(global, CloneFolder::here().as_ref()).is_some()
}

fn who(global: &Global, clone: Option<&CloneFolder>) -> Option<MemberName> {
    global.member.clone().or_else(|| clone?.only_member())
}

/// The home: what `COUNTERSIGN_HOME` names, or the nearest `.countersign/` above the current folder.
pub fn find_home() -> Option<Home> {
    match env::var_os("COUNTERSIGN_HOME") {
        Some(named) if !named.is_empty() => Some(Home::at(absolute(Path::new(&named)))),
        _ => {
            let here = env::current_dir().ok()?;
            let near = here.ancestors().map(|folder| folder.join(HOME_NAME)).find(|home| home.is_dir())?;
            Some(Home::at(near))
        }
    }
}

/// The operator's home, without which there is nothing to operate on.
pub fn need_home() -> Result<Home, Failure> {
    find_home().filter(|home| home.path().is_dir()).ok_or_else(|| {
        Failure::refused(
            "NO_HOME",
            "there is no home here: COUNTERSIGN_HOME names none, and no folder above has a .countersign",
            "run: countersign init --charter FILE",
        )
    })
}

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// Where the server is, with the authority that vouches for it.
pub fn server(global: &Global, place: Option<&Place>, home: Option<&Home>) -> Result<Server, Failure> {
    let named = global.addr.clone().filter(|addr| !addr.is_empty());
    let address =
        named.or_else(|| Some(place?.addr.clone())).or_else(|| Some(home?.read_server()?.addr.to_string()));
    let address = address.ok_or_else(|| {
        let (sought, remedy) = match home {
            Some(home) => (format!("no server runs on {}", home.path().display()), "run: countersign serve"),
            None => (
                "there is no home here, and COUNTERSIGN_ADDR names no server".to_owned(),
                "go to the folder of the home, or to a clone with a token; or name the server: --addr HOST:PORT",
            ),
        };
        Failure::new(Exit::Unreachable, "SERVER_UNREACHABLE", sought, remedy)
    })?;
    if let Err(why) = sockets_allowed() {
        return Err(client::Failure::SocketsForbidden { address, why: why.to_string() }.into());
    }
    let authority = match &global.ca {
        Some(file) => {
            Some(fs::read(file).map_err(|why| Failure::usage(format!("{}: {why}", file.display())))?)
        }
        None => None,
    };
    if authority.is_none() && address.starts_with("https://") {
        return Err(Failure::usage(format!(
            "{address} speaks TLS: name the authority that vouches for it with --ca FILE"
        )));
    }
    Ok(Server { address, authority })
}

/// Where the clone keeps that member's token; nowhere that is there, where another team is named: a clone's
/// token is of the clone's team.
fn of_clone(global: &Global, clone: &CloneFolder, member: &MemberName) -> PathBuf {
    if global.team.is_none() || Place::of(clone).map(|place| place.team) == global.team {
        clone.token_file(member)
    } else {
        PathBuf::new()
    }
}

/// The team of a home that is meant: the one that is named, or the only one in which the home keeps a token
/// for the member.
fn team_in(home: &Home, global: &Global, member: &MemberName) -> Result<Option<TeamName>, Failure> {
    let mut teams: Vec<TeamName> = held(&home.path().join("teams"));
    teams.sort();
    if let Some(named) = &global.team {
        if teams.is_empty() || teams.contains(named) {
            return Ok(Some(named.clone()));
        }
        return Err(Failure::refused(
            "UNKNOWN_TEAM",
            format!("there is no team {named} here; there is {}", list(&teams)),
            format!("name one of them: --team {}", teams[0]),
        )
        .with("team", named.to_string())
        .with("teams", texts(&teams)));
    }
    teams.retain(|team| home.token_file(Some(team), member).exists());
    if teams.len() > 1 {
        return Err(Failure::refused(
            "TEAM_NEEDED",
            format!("{member} is in several teams here: {}", list(&teams)),
            format!("name the team: --team {}, or COUNTERSIGN_TEAM", teams[0]),
        )
        .with("teams", texts(&teams)));
    }
    Ok(teams.pop())
}

/// The names that the files of a folder bear.
fn held<T: FromStr>(folder: &Path) -> Vec<T> {
    let Ok(files) = fs::read_dir(folder) else { return Vec::new() };
    files.filter_map(|file| file.ok()?.file_name().to_str()?.parse().ok()).collect()
}

fn texts(names: &[impl ToString]) -> Vec<String> {
    names.iter().map(ToString::to_string).collect()
}

fn token(
    global: &Global,
    team: Option<&TeamName>,
    member: &MemberName,
    clone: Option<&CloneFolder>,
    home: Option<&Home>,
) -> Result<Token, Failure> {
    let none = |why: String| {
        Failure::new(
            Exit::Unauthenticated,
            "UNAUTHENTICATED",
            why,
            format!("the operator can: countersign member token {member} --into CLONE"),
        )
        .with("member", member.to_string())
    };
    let read = |path: &Path| -> Result<Token, Failure> {
        let text = fs::read_to_string(path).map_err(|why| none(format!("{}: {why}", path.display())))?;
        Token::parse(&text).map_err(|_| none(format!("{} holds no token", path.display())))
    };
    if let Some(named) = env::var_os("COUNTERSIGN_TOKEN_FILE").filter(|named| !named.is_empty()) {
        return read(Path::new(&named));
    }
    let places =
        [clone.map(|clone| of_clone(global, clone, member)), home.map(|home| home.token_file(team, member))];
    let places: Vec<PathBuf> = places.into_iter().flatten().collect();
    if let Some(path) = places.iter().find(|path| path.exists()) {
        return read(path);
    }
    let mut others: Vec<MemberName> = places.iter().filter_map(|path| path.parent()).flat_map(held).collect();
    others.sort();
    others.dedup();
    Err(none(if others.is_empty() {
        format!("there is no token for {member} here")
    } else {
        format!("there is no token for {member} here; there are tokens for {}", list(&others))
    }))
}
