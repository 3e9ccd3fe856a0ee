//! `countersign charter` and `countersign graph`: the charter in force, and one that is on its way.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use serde_json::json;
use sha2::{Digest as _, Sha256};

use super::failure::Failure;
use super::output::Answer;
use super::speaker::{Global, Speaker};
use super::text::Fence;
use crate::client::proto::GetCharterRequest;
use crate::protocol::charter::{self, Charter, Diagnostics, Graph};
use crate::protocol::name::Digest;

/// The charter.
#[derive(Args, Debug)]
pub struct CharterArgs {
    #[command(subcommand)]
    command: CharterCommand,
}

#[derive(Subcommand, Debug)]
enum CharterCommand {
    /// Checks a charter file, here, and shows what is wrong at its place
    #[command(
        after_help = "Example:\n  countersign charter check charter.toml\n\nRefused with CHARTER_REFUSED."
    )]
    Check {
        /// The file
        file: PathBuf,
    },
    /// Shows the charter in force, verbatim
    #[command(after_help = "Example:\n  countersign charter show")]
    Show,
}

impl CharterArgs {
    /// `check`, which needs no server.
    pub(super) fn check(&self) -> Option<Result<Answer, Failure>> {
        match &self.command {
            CharterCommand::Check { file } => Some(check(file)),
            CharterCommand::Show => None,
        }
    }

    pub(super) async fn show(self, global: &Global) -> Result<Answer, Failure> {
        let speaker = Speaker::connect(global).await?;
        let charter = speaker.client.get_charter(GetCharterRequest {}).await?;
        let title = format!("charter of {}, revision {}", charter.team, charter.revision);
        let text =
            format!("{} sha256 {}\n{}", title, charter.digest, Fence::fresh()?.around(&title, &charter.text));
        Ok(Answer::new(
            json!({
                "team": charter.team,
                "revision": charter.revision,
                "digest": charter.digest,
                "text": charter.text,
                "repository": charter.repository,
            }),
            text,
        ))
    }
}

fn check(file: &PathBuf) -> Result<Answer, Failure> {
    let (bytes, charter) = read(file)?;
    let digest = Digest::of_bytes(Sha256::digest(&bytes).into());
    let graph = Graph::of(&charter);
    let text = format!("{} is a charter of {}, sha256 {digest}\n\n{graph}", file.display(), charter.team);
    Ok(Answer::new(
        json!({
            "team": charter.team.as_str(),
            "digest": digest.as_str(),
            "edges": graph.edges(),
            "possible": graph.possible(),
        }),
        text,
    ))
}

/// Reads and checks a charter file.
pub fn read(file: &PathBuf) -> Result<(Vec<u8>, Charter), Failure> {
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
        let charter = speaker.client.get_charter(GetCharterRequest {}).await?;
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
