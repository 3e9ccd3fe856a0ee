//! `countersign check`: what came of the checks that the charter requires.

use clap::{Args, Subcommand};
use serde_json::json;

use super::failure::Failure;
use super::output::{Answer, visible};
use super::speaker::{Global, Speaker, Write};
use super::text::OutputFile;
use super::{json as form, words};
use crate::client::proto::ReportCheckRequest;

/// Checks that the charter requires.
#[derive(Args, Debug)]
pub struct Check {
    #[command(subcommand)]
    command: CheckCommand,
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
        match self.command {
            CheckCommand::Report(report) => report.run(global).await,
        }
    }
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
