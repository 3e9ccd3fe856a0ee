//! `countersign check`: whether a completed circle holds a commit, and what came of the checks that the charter
//! requires.

use std::path::PathBuf;
use std::{env, fs};

use clap::{Args, Subcommand};
use serde_json::json;

use super::clone::{CloneFolder, Place};
use super::failure::{Exit, Failure};
use super::output::{Answer, visible};
use super::speaker::{Global, Speaker, Write, find_home, server};
use super::text::OutputFile;
use super::{json as form, words};
use crate::client::proto::{CheckCommitRequest, CircleState, ReportCheckRequest};
use crate::client::{self, Caller};
use crate::coordinator::token::Token;

/// Whether a completed circle holds a commit; and checks that the charter requires.
#[derive(Args, Debug)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = "Examples:
  countersign check --commit HEAD
  countersign check --commit 3f5a1c0e6a1f0f7f5a2d0c9b8e7f6a5b4c3d2e1f --ref refs/heads/main

Exit 0 says that a completed circle holds exactly this commit; nothing else does. It is asked as the
operator where there is a home, else with the token in COUNTERSIGN_TOKEN_FILE at COUNTERSIGN_ADDR.

Refused with MALFORMED, NOT_COUNTERSIGNED."
)]
pub struct Check {
    #[command(subcommand)]
    command: Option<CheckCommand>,
    /// The commit: a whole id or, in a clone, any name of it
    #[arg(long, value_name = "SHA", required = true)]
    commit: Option<String>,
    /// The full name of the ref that it was to be reviewed for; any where it is left out
    #[arg(long = "ref", value_name = "NAME")]
    target: Option<String>,
}

#[derive(Subcommand, Debug)]
enum CheckCommand {
    /// Reports what came of a required check on exactly one version; the last report counts
    #[command(after_help = "Examples:
  countersign check report parser@2:41d0c9aa1e53 ci --exit 0 --output @run.txt
  countersign check report parser@2:41d0c9aa1e53 ci

Without --exit the check was skipped, and that is no pass.

Refused with UNKNOWN_SUBJECT, TEXT_TOO_LARGE, UNKNOWN_CHECK, STALE_VERSION, DIGEST_MISMATCH,
WITHDRAWN, CIRCLE_COMPLETE.")]
    Report(Report),
}

#[derive(Args, Debug)]
struct Report {
    /// The exact reference, as `show` printed it: parser@2:41d0c9aa1e53
    #[arg(value_name = "REF")]
    reference: String,
    /// The check's name in the charter's `checks`
    name: String,
    /// How it exited; left out where it was skipped
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    exit: Option<i32>,
    /// What it printed
    #[arg(long, value_name = "@FILE")]
    output: Option<OutputFile>,
    #[command(flatten)]
    write: Write,
}

impl Check {
    pub(super) async fn run(self, global: &Global) -> Result<Answer, Failure> {
        match (self.command, self.commit) {
            (Some(CheckCommand::Report(report)), _) => report.run(global).await,
            (None, Some(commit)) => held(global, &commit, self.target).await,
            (None, None) => Err(Failure::usage("name a commit: --commit SHA")),
        }
    }
}

/// Whether a completed circle holds that commit.
async fn held(global: &Global, commit: &str, target: Option<String>) -> Result<Answer, Failure> {
    let whole = matches!(commit.len(), 40 | 64) && commit.bytes().all(|byte| byte.is_ascii_hexdigit());
    let commit = match CloneFolder::here() {
        Some(clone) if !whole => clone.commit(commit).await?.to_string(),
        _ => commit.to_lowercase(),
    };
    let request = CheckCommitRequest {
        team: global.team.as_ref().map(ToString::to_string).unwrap_or_default(),
        commit: commit.clone(),
        target: target.unwrap_or_default(),
    };
    let named = env::var_os("COUNTERSIGN_TOKEN_FILE").filter(|named| !named.is_empty());
    let home = find_home();
    let found = match (named, &home) {
        (None, Some(home)) => {
            let server = server(global, None, Some(home))?;
            client::connect_operator(&server, &home.operator_token()?).await?.check_commit(request).await?
        }
        (Some(file), home) => {
            let file = PathBuf::from(file);
            let text = fs::read_to_string(&file).map_err(|why| Failure::io(file.display(), &why))?;
            let token = Token::parse(&text).map_err(|_| {
                let what = format!("{} holds no token", file.display());
                Failure::new(
                    Exit::Unauthenticated,
                    "UNAUTHENTICATED",
                    what,
                    "the operator can: countersign member token MEMBER",
                )
            })?;
            let place = CloneFolder::here().as_ref().and_then(Place::of);
            let server = server(global, place.as_ref(), home.as_ref())?;
            let caller = Caller { token, member: None, team: global.team.clone() };
            client::connect(&server, &caller).await?.check_commit(request).await?
        }
        (None, None) => Speaker::connect(global).await?.client.check_commit(request).await?,
    };
    let state = match found.state() {
        CircleState::Published => "published",
        _ => "complete",
    };
    let text =
        format!("{commit} is {}, and {} is {state}\n", visible(&found.reference), visible(&found.circle),);
    Ok(Answer::new(
        json!({
            "commit": commit,
            "ref": found.reference,
            "circle": found.circle,
            "state": state,
            "target": found.target,
            "sequence": found.sequence,
        }),
        text,
    ))
}

impl Report {
    async fn run(self, global: &Global) -> Result<Answer, Failure> {
        let output = self.output.as_ref().map(OutputFile::read).transpose()?;
        let speaker = Speaker::connect(global).await?;
        let request = ReportCheckRequest {
            request_id: self.write.id(),
            reference: self.reference,
            name: self.name,
            exit: self.exit,
            output: output.clone(),
        };
        let reported = speaker.client.report_check(request).await?;
        let stored = [("output".to_owned(), output.as_deref().unwrap_or_default())];
        let status = form::check_status(reported.status());
        let text = format!(
            "the check {} is {status} on {}\n{}{}",
            visible(&reported.name),
            visible(&reported.reference),
            words::stored(&stored),
            words::woke(&reported.woke, words::now())
        );
        Ok(Answer::new(
            json!({
                "ref": reported.reference,
                "check": reported.name,
                "status": status,
                "woke": form::woke(&reported.woke),
                "stored": words::stored_json(&stored),
                "sequence": reported.sequence,
            }),
            text,
        ))
    }
}
