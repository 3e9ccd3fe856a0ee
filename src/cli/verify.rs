//! `countersign verify` and `countersign backup`: the home's logs, read alone, with or without a
//! server that runs on them.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, IsTerminal, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::{Value, json};

use super::failure::{Exit, Failure};
use super::output::Answer;
use super::speaker::{Global, need_home};
use super::words;
use crate::home::Home;
use crate::store::Reader;
use crate::store::sqlite::{SqliteReader, SqliteStore};

/// Proves every log of the home, from its first event to its witnessed head.
#[derive(Args, Debug)]
pub struct Verify {
    /// Where the witness is lost, or witnessed more than there is: prove what there is without it, and
    /// witness that from here on. A damaged log is never accepted. No server may run
    #[arg(long)]
    accept_head: bool,
}

impl Verify {
    pub(super) fn run(self, global: &Global) -> Result<Answer, Failure> {
        let home = need_home()?;
        if self.accept_head {
            for (team, head) in SqliteStore::rewitness(home.path())? {
                tracing::warn!(%team, sequence = head.seq.0, "the head was accepted as it stands");
            }
        }
        let reader = SqliteReader::open_read_only(home.path())?;
        let mut teams = reader.teams()?;
        if let Some(wanted) = &global.team {
            if !teams.contains(wanted) {
                return Err(crate::store::Fault::UnknownTeam { team: wanted.clone() }.into());
            }
            teams.retain(|team| team == wanted);
        }
        let mut proved: Vec<Value> = Vec::new();
        let mut rows: Vec<Vec<String>> = Vec::new();
        // Before the logs that are there: those that were, and who may speak.
        let mut broken: Option<Failure> = reader.verify_home().err().map(Failure::from);
        for team in teams {
            tell_progress(&reader, &team);
            match reader.verify(&team) {
                Ok(head) => {
                    let (sequence, chain) = (head.seq.0, head.chain.to_string());
                    proved.push(json!({ "team": team.as_str(), "sequence": sequence, "chain": chain }));
                    rows.push(vec![team.to_string(), sequence.to_string(), chain]);
                }
                // The other teams' logs are proved all the same: what is whole is worth knowing.
                Err(fault) => match (&mut broken, Failure::from(fault)) {
                    (Some(broken), failure) => broken.unmet.extend(failure.unmet),
                    (none, failure) => *none = Some(failure),
                },
            }
        }
        match broken {
            Some(failure) => Err(failure.with("proved", proved)),
            None => {
                let text = format!(
                    "every log proves itself\n\n{}",
                    words::table(&["TEAM", "SEQUENCE", "CHAIN"], rows)
                );
                Ok(Answer::new(json!({ "teams": proved }), text))
            }
        }
    }
}

/// Says which log is being proved and how long it is, where a person watches.
fn tell_progress(reader: &SqliteReader, team: &crate::protocol::name::TeamName) {
    let mut screen = io::stderr();
    if screen.is_terminal() {
        let length = reader.head(team).map_or(0, |head| head.seq.0);
        // Who looks away misses nothing else.
        let _ = writeln!(screen, "{team}: proving {length} events");
    }
}

/// Writes a copy of the home: logs, witness, bundles of files; no tokens.
#[derive(Args, Debug)]
pub struct Backup {
    /// The folder; new or empty
    #[arg(value_name = "DIR")]
    into: PathBuf,
}

impl Backup {
    pub(super) fn run(self, _global: &Global) -> Result<Answer, Failure> {
        let home = need_home()?;
        let reader = SqliteReader::open_read_only(home.path())?;
        reader.backup(&self.into)?;
        // After the logs: whatever they name was kept before it was named, and is never changed.
        copy_beside(&home, &self.into)?;
        let copy = SqliteReader::open_read_only(&self.into)?;
        let mut teams = Vec::new();
        for team in copy.teams()? {
            let head = copy.head(&team)?;
            teams.push(
                json!({ "team": team.as_str(), "sequence": head.seq.0, "chain": head.chain.to_string() }),
            );
        }
        let text = format!(
            "{} copied to {}, where all is proved\nTo restore, put it in the home's place; tokens are not in it: countersign member token MEMBER\n",
            words::counted(teams.len() as u64, "log"),
            self.into.display()
        );
        Ok(Answer::new(json!({ "into": self.into.display().to_string(), "teams": teams }), text))
    }
}

/// Copies what a home keeps beside its logs and can't be made again: bundles, and where charters lie.
fn copy_beside(home: &Home, into: &Path) -> Result<(), Failure> {
    for name in ["first-team", "artifacts"] {
        copy(&home.path().join(name), &into.join(name))?;
    }
    let teams = home.path().join("teams");
    let folders = match fs::read_dir(&teams) {
        Ok(folders) => folders,
        Err(none) if none.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(why) => return Err(Failure::io(teams.display(), &why)),
    };
    for folder in folders {
        let folder = folder.map_err(|why| Failure::io(teams.display(), &why))?.file_name();
        for name in ["folder", "artifacts"] {
            copy(&teams.join(&folder).join(name), &into.join("teams").join(&folder).join(name))?;
        }
    }
    Ok(())
}

/// Copies a file or a folder, closed to others; one that isn't there is nothing to copy.
fn copy(from: &Path, to: &Path) -> Result<(), Failure> {
    let copied = || -> io::Result<()> {
        let kind = match fs::symlink_metadata(from) {
            Ok(found) => found.file_type(),
            Err(none) if none.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(why) => return Err(why),
        };
        if let Some(folder) = to.parent() {
            DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        }
        if kind.is_dir() {
            DirBuilder::new().recursive(true).mode(0o700).create(to)?;
            for item in fs::read_dir(from)? {
                let name = item?.file_name();
                copy(&from.join(&name), &to.join(&name))
                    .map_err(|failure| io::Error::other(failure.unmet[0].message.clone()))?;
            }
        } else if kind.is_file() {
            let mut source = fs::File::open(from)?;
            let mut copy = OpenOptions::new().write(true).create_new(true).mode(0o600).open(to)?;
            io::copy(&mut source, &mut copy)?;
            copy.sync_all()?;
        }
        Ok(())
    };
    copied().map_err(|why| {
        Failure::new(
            Exit::Refused,
            "BACKUP_INCOMPLETE",
            format!("{}: {why}", from.display()),
            "see that there is room, then back up into a fresh folder",
        )
    })
}
