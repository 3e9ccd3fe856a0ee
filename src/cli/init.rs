//! `countersign init` and `countersign team`: a home, and teams in it.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

use clap::{Args, Subcommand};
use serde_json::json;

use super::failure::Failure;
use super::operator::Operator;
use super::output::Answer;
use super::speaker::{Global, HOME_NAME, need_home};
use super::{charter, rules};
use crate::home::Home;
use crate::protocol::name::TeamName;
use crate::store::Reader;
use crate::store::sqlite::SqliteReader;

/// Makes a home beside the charter, with its first team and a token for every member.
#[derive(Args, Debug)]
pub struct Init {
    /// The charter
    #[arg(long, value_name = "FILE")]
    charter: PathBuf,
}

impl Init {
    pub(super) async fn run(self, _global: &Global) -> Result<Answer, Failure> {
        let mut made = Made::default();
        let done = init(&self.charter, &mut made).await;
        if done.is_err() {
            made.unmake();
        }
        let (home, team, tokens) = done?;
        let path = home.path().display().to_string();
        let text = format!(
            "{team} is in {path}, with a token for each of its {} members\nThen: countersign serve\n",
            tokens.len()
        );
        Ok(Answer::new(json!({ "home": path, "team": team.as_str(), "tokens": shown(&tokens) }), text))
    }
}

/// What a command made that wasn't there before it.
#[derive(Debug, Default)]
pub struct Made(pub Vec<PathBuf>);

impl Made {
    /// Takes it all away again: what is refused leaves nothing behind.
    pub fn unmake(self) {
        for path in self.0 {
            // What can't be removed is no harm, and the refusal is what there is to tell.
            let _ = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
        }
    }
}

/// Makes the home of that charter: where `COUNTERSIGN_HOME` says, or beside the charter. `made` is told
/// of it where it wasn't there.
pub async fn init(file: &PathBuf, made: &mut Made) -> Result<(Home, TeamName, Vec<PathBuf>), Failure> {
    // Before anything is made: what is refused leaves nothing behind.
    let (bytes, charter) = charter::read(file)?;
    let rules = rules::check_own(file, &bytes, &charter)?;
    let path = match env::var_os("COUNTERSIGN_HOME").filter(|named| !named.is_empty()) {
        Some(named) => PathBuf::from(named),
        None => {
            let file = std::path::absolute(file).map_err(|why| Failure::io(file.display(), &why))?;
            file.parent().unwrap_or(Path::new("/")).join(HOME_NAME)
        }
    };
    if path.join("countersign.db").exists() {
        let teams = SqliteReader::open_read_only(&path)?.teams()?;
        // A team of this name whose first charter was cut off by a crash is taken up again below.
        if let Some(other) = teams.iter().find(|team| **team != charter.team) {
            return Err(Failure::refused(
                "HOME_TAKEN",
                format!("{} holds {other} already", path.display()),
                "run: countersign team add --charter FILE",
            )
            .with("home", path.display().to_string()));
        }
    }
    if !is_there(&path) {
        made.0.push(path.clone());
    }
    let home = Home::create(&path)?;
    let (team, tokens) = Operator::Alone(home.clone()).add_team(file, &bytes, rules).await?;
    Ok((home, team, tokens))
}

/// Teams of a home.
#[derive(Args, Debug)]
pub struct Team {
    #[command(subcommand)]
    command: TeamCommand,
}

#[derive(Subcommand, Debug)]
enum TeamCommand {
    /// Adds a further team to a home, with a token for every member
    #[command(after_help = "Example:
  countersign team add --charter other.toml

Refused with CHARTER_REFUSED, RULE_REFUSED, TEAM_TAKEN, REPOSITORY_UNUSABLE, REPOSITORY_IN_USE.")]
    Add {
        /// The team's charter
        #[arg(long, value_name = "FILE")]
        charter: PathBuf,
    },
}

impl Team {
    pub(super) async fn run(self, global: &Global) -> Result<Answer, Failure> {
        let TeamCommand::Add { charter: file } = self.command;
        let (bytes, charter) = charter::read(&file)?;
        let rules = rules::check_own(&file, &bytes, &charter)?;
        let operator = Operator::of(need_home()?, global).await?;
        let (team, tokens) = operator.add_team(&file, &bytes, rules).await?;
        let path = operator.home().path().display().to_string();
        let text = format!(
            "{team} is added to {path}, with a token for each of its {} members\nIts commands: countersign --team {team} status\n",
            tokens.len()
        );
        Ok(Answer::new(json!({ "home": path, "team": team.as_str(), "tokens": shown(&tokens) }), text))
    }
}

fn shown(tokens: &[PathBuf]) -> Vec<String> {
    tokens.iter().map(|path| path.display().to_string()).collect()
}

/// Whether a file is there at all, whatever it is.
pub fn is_there(path: &Path) -> bool {
    !matches!(path.symlink_metadata(), Err(none) if none.kind() == io::ErrorKind::NotFound)
}
