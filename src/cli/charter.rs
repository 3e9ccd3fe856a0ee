//! `countersign charter` and `countersign graph`: the charter in force, and one that is on its way.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use serde_json::json;
use sha2::{Digest as _, Sha256};

use super::failure::Failure;
use super::output::{Answer, visible};
use super::speaker::{Global, Speaker, Write};
use super::text::{Fence, Reason};
use super::{json as form, rules, words};
use crate::client::proto::{AdoptCharterRequest, GetCharterRequest};
use crate::protocol::charter::{self, Charter, Diagnostics, Graph};
use crate::protocol::name::Digest;
use crate::protocol::rejection::counted;
use crate::protocol::rule::{self, OwnRule};

/// The charter.
#[derive(Args, Debug)]
pub struct CharterArgs {
    #[command(subcommand)]
    command: CharterCommand,
}

#[derive(Subcommand, Debug)]
enum CharterCommand {
    /// Checks a charter file, here, and shows what is wrong at its place
    ///
    /// Where a member is named and a server can be asked, also what it would change.
    #[command(
        after_help = "Example:\n  countersign charter check charter.toml\n\nRefused with CHARTER_REFUSED, RULE_REFUSED."
    )]
    Check {
        /// The file
        file: PathBuf,
    },
    /// Puts a charter file in force, as a person
    #[command(after_help = "Example:
  countersign --as dana charter adopt charter.toml --reason 'arch reviews instead of sec'

The rules of the folder that it names go with it.

Refused with NOT_A_PERSON, REASON_REQUIRED, TEXT_TOO_LARGE, CHARTER_REFUSED, RULE_REFUSED,
UNCHANGED_CHARTER, CHARTER_UNFIT.")]
    Adopt {
        /// The file
        file: PathBuf,
        #[command(flatten)]
        reason: Reason,
        #[command(flatten)]
        write: Write,
    },
    /// Shows the charter in force, verbatim, or an earlier revision, or what one changed
    #[command(after_help = "Examples:
  countersign charter show
  countersign charter show --revision 1
  countersign charter show --diff 1..2

Refused with UNKNOWN_SUBJECT.")]
    Show {
        /// The revision; the one in force where none is given
        #[arg(long, value_name = "N", conflicts_with = "diff")]
        revision: Option<u32>,
        /// What changed from revision A to B
        #[arg(long, value_name = "A..B", value_parser = revisions)]
        diff: Option<(u32, u32)>,
    },
}

fn revisions(text: &str) -> Result<(u32, u32), String> {
    let both = text.split_once("..").and_then(|(from, to)| Some((from.parse().ok()?, to.parse().ok()?)));
    let known = both.filter(|(from, to): &(u32, u32)| *from > 0 && *to > 0);
    known.ok_or_else(|| "give two revisions, such as 1..2".to_owned())
}

impl CharterArgs {
    /// `check` where nobody is named to ask a server, or none can be asked.
    pub(super) fn alone(&self, askable: bool) -> Option<Result<Answer, Failure>> {
        match &self.command {
            CharterCommand::Check { file } if !askable => Some(checked(file).map(Checked::answer)),
            _ => None,
        }
    }

    pub(super) async fn run(self, global: &Global) -> Result<Answer, Failure> {
        match self.command {
            CharterCommand::Check { file } => check(&file, global).await,
            CharterCommand::Adopt { file, reason, write } => {
                let reason = reason.read()?;
                adopt(&file, reason, write, global).await
            }
            CharterCommand::Show { revision, diff: None } => show(revision.unwrap_or(0), global).await,
            CharterCommand::Show { diff: Some((from, to)), .. } => difference(from, to, global).await,
        }
    }
}

async fn show(revision: u32, global: &Global) -> Result<Answer, Failure> {
    let speaker = Speaker::connect(global).await?;
    let charter = speaker.client.get_charter(GetCharterRequest { revision, against: 0 }).await?;
    let title = format!("charter of {}, revision {}", charter.team, charter.revision);
    let mut text =
        format!("{} sha256 {}\n{}", title, charter.digest, Fence::fresh()?.around(&title, &charter.text));
    for rule in &charter.rules {
        let title = format!("own rule {}", visible(&rule.id));
        text.push_str(&Fence::fresh()?.around(&title, &rule.text));
    }
    Ok(Answer::new(form::charter(&charter), text))
}

async fn difference(from: u32, to: u32, global: &Global) -> Result<Answer, Failure> {
    let speaker = Speaker::connect(global).await?;
    let charter = speaker.client.get_charter(GetCharterRequest { revision: to, against: from }).await?;
    let text =
        format!("charter of {}, from revision {from} to {to}\n{}", charter.team, lines(&charter.changes));
    Ok(Answer::new(
        json!({
            "team": charter.team,
            "revision": charter.revision,
            "against": charter.against,
            "digest": charter.digest,
            "diff": charter.changes,
        }),
        text,
    ))
}

async fn adopt(file: &Path, reason: String, write: Write, global: &Global) -> Result<Answer, Failure> {
    let name = file.display().to_string();
    let charter = std::fs::read(file).map_err(|why| Failure::usage(format!("{name}: {why}")))?;
    // What is no charter is the server's to refuse.
    let own = match charter::parse_bytes(&name, &charter) {
        Ok(parsed) => rules::own_rules(file, &parsed)?,
        Err(_) => Vec::new(),
    };
    let speaker = Speaker::connect(global).await?;
    let request = AdoptCharterRequest {
        request_id: write.id(),
        file: name,
        charter: charter.into(),
        reason: reason.clone(),
        rules: rules::sent(own),
    };
    let adopted = speaker.client.adopt_charter(request).await?;
    let stored = [("reason".to_owned(), reason.as_str())];
    let text = format!(
        "revision {} is in force, sha256 {}; the circles' confirmations are void\n{}{}{}",
        adopted.revision,
        adopted.digest,
        lines(&adopted.changes),
        words::stored(&stored),
        words::woke(&adopted.woke, words::now())
    );
    Ok(Answer::new(
        json!({
            "revision": adopted.revision,
            "digest": adopted.digest,
            "diff": adopted.changes,
            "woke": form::woke(&adopted.woke),
            "stored": words::stored_json(&stored),
            "sequence": adopted.sequence,
        }),
        text,
    ))
}

/// Each change on a line of its own.
fn lines(changes: &[String]) -> String {
    if changes.is_empty() {
        return "nothing changed\n".to_owned();
    }
    changes.iter().map(|change| format!("  {}\n", visible(change))).collect()
}

/// A file that is a charter, and what is told of it.
struct Checked {
    charter: Charter,
    own: Vec<OwnRule>,
    digest: Digest,
    json: serde_json::Value,
    text: String,
}

impl Checked {
    fn answer(self) -> Answer {
        Answer::new(self.json, self.text)
    }
}

fn checked(file: &Path) -> Result<Checked, Failure> {
    let (bytes, charter) = read(file)?;
    let own = rules::check_own(file, &bytes, &charter)?;
    let digest = Digest::of_bytes(Sha256::digest(&bytes).into());
    let graph = Graph::of(&charter);
    let with = match own.len() {
        0 => String::new(),
        count => format!(", with {} of its own", counted(count as u64, "rule")),
    };
    let text =
        format!("{} is a charter of {}{with}, sha256 {digest}\n\n{graph}", file.display(), charter.team);
    let json = json!({
        "team": charter.team.as_str(),
        "digest": digest.as_str(),
        "edges": graph.edges(),
        "possible": graph.possible(),
        "rules": own.iter().map(|rule| rule.id.as_str()).collect::<Vec<_>>(),
    });
    Ok(Checked { charter, own, digest, json, text })
}

async fn check(file: &Path, global: &Global) -> Result<Answer, Failure> {
    let mut checked = checked(file)?;
    // Without a server the file stands alone.
    let Ok(speaker) = Speaker::connect(global).await else { return Ok(checked.answer()) };
    let Ok(current) = speaker.client.get_charter(GetCharterRequest::default()).await else {
        return Ok(checked.answer());
    };
    let Ok(in_force) = charter::parse("charter.toml", &current.text) else { return Ok(checked.answer()) };
    let mut changes = charter::diff(&in_force, &checked.charter);
    changes.extend(rule::changes(&rules::received(current.rules), &checked.own));
    let same = current.digest == checked.digest.as_str() && changes.is_empty();
    let revision = if same { current.revision } else { current.revision + 1 };
    checked.text.push_str(&if same {
        format!("\nit is in force, as revision {revision}\n")
    } else {
        let against = current.revision;
        format!("\nadopted, it becomes revision {revision}; against revision {against}:\n{}", lines(&changes))
    });
    checked.json["revision"] = revision.into();
    checked.json["against"] = current.revision.into();
    checked.json["diff"] = changes.into();
    Ok(checked.answer())
}

/// Reads and checks a charter file.
pub fn read(file: &Path) -> Result<(Vec<u8>, Charter), Failure> {
    let name = file.display().to_string();
    let bytes = std::fs::read(file).map_err(|why| Failure::usage(format!("{name}: {why}")))?;
    let charter = charter::parse_bytes(&name, &bytes).map_err(|found| refused(&found))?;
    Ok((bytes, charter))
}

/// What is wrong with a charter, each finding with its place.
pub fn refused(found: &Diagnostics) -> Failure {
    let places = found.findings.iter().map(|finding| {
        json!({
            "line": finding.line,
            "column": finding.column,
            "what": finding.what,
            "help": finding.help,
        })
    });
    let places: Vec<serde_json::Value> = places.collect();
    Failure::refused("CHARTER_REFUSED", found, "mend the charter, then run: countersign charter check FILE")
        .with("file", found.file.clone())
        .with("findings", places)
}

/// Shows who reviews whom and through which lens.
#[derive(Args, Debug)]
pub struct GraphArgs {
    /// As a Mermaid flowchart
    #[arg(long)]
    mermaid: bool,
}

impl GraphArgs {
    pub(super) async fn run(self, global: &Global) -> Result<Answer, Failure> {
        let speaker = Speaker::connect(global).await?;
        let charter = speaker.client.get_charter(GetCharterRequest::default()).await?;
        let mut json = json!({
            "team": charter.team,
            "revision": charter.revision,
            "digest": charter.digest,
            "graph": charter.graph,
            "mermaid": charter.mermaid,
        });
        // Of a charter whose grammar is newer than this program only the server's pictures are told.
        if let Ok(parsed) = charter::parse("charter.toml", &charter.text) {
            let graph = Graph::of(&parsed);
            json["edges"] = graph.edges().into();
            json["possible"] = graph.possible().into();
        }
        Ok(Answer::new(json, if self.mermaid { charter.mermaid } else { charter.graph }))
    }
}
