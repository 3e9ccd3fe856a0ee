//! `countersign object` and `countersign note`: against exactly one version, or beside it.

use clap::Args;

use super::failure::Failure;
use super::output::{Answer, visible};
use super::speaker::{Global, Speaker, Write};
use super::text::{OutputFile, TextFile};
use super::{json as form, words};
use crate::client::proto::{NoteRequest, ObjectRequest, ObjectResponse, Run};

/// Objects to exactly one version; it blocks until it is resolved or overruled.
#[derive(Args, Debug)]
pub struct Object {
    /// The exact reference, as `show` printed it: parser@2:41d0c9aa1e53
    #[arg(value_name = "REF")]
    reference: String,
    /// What is wrong
    text: Option<String>,
    #[command(flatten)]
    text_file: TextFile,
    /// Where: PATH, PATH:LINE or PATH:FIRST-LAST; may be given several times
    #[arg(long, value_name = "PLACE")]
    at: Vec<String>,
    /// A command that fails, and passes once this is mended
    #[arg(long, value_name = "CMD")]
    failing_test: Option<String>,
    /// What the failing test printed
    #[arg(long, value_name = "@FILE", requires = "failing_test")]
    output: Option<OutputFile>,
    /// How the failing test exited
    #[arg(long, value_name = "N", requires = "failing_test", allow_negative_numbers = true)]
    exit: Option<i32>,
    #[command(flatten)]
    write: Write,
}

impl Object {
    pub(super) async fn run(self, global: &Global) -> Result<Answer, Failure> {
        let text = self.text_file.or(self.text, "TEXT", "text")?;
        let output = self.output.as_ref().map(OutputFile::read).transpose()?;
        let failing_test =
            self.failing_test.map(|command| Run { command, exit: self.exit, output: output.clone() });
        let speaker = Speaker::connect(global).await?;
        let request = ObjectRequest {
            request_id: self.write.id(),
            reference: self.reference,
            text: text.clone(),
            at: self.at,
            failing_test,
        };
        let objected = speaker.client.object(request).await?;
        let stored =
            [("text".to_owned(), &*text), ("output".to_owned(), output.as_deref().unwrap_or_default())];
        Ok(raised(&objected, "objects to", &stored))
    }
}

/// Leaves a note on exactly one version: it must be read before the next one, and blocks nobody.
#[derive(Args, Debug)]
pub struct Note {
    /// The exact reference, as `show` printed it: parser@2:41d0c9aa1e53
    #[arg(value_name = "REF")]
    reference: String,
    /// What is noted
    text: Option<String>,
    #[command(flatten)]
    text_file: TextFile,
    /// Where: PATH, PATH:LINE or PATH:FIRST-LAST; may be given several times
    #[arg(long, value_name = "PLACE")]
    at: Vec<String>,
    #[command(flatten)]
    write: Write,
}

impl Note {
    pub(super) async fn run(self, global: &Global) -> Result<Answer, Failure> {
        let text = self.text_file.or(self.text, "TEXT", "text")?;
        let speaker = Speaker::connect(global).await?;
        let request = NoteRequest {
            request_id: self.write.id(),
            reference: self.reference,
            text: text.clone(),
            at: self.at,
        };
        let noted = speaker.client.note(request).await?;
        let noted = ObjectResponse {
            objection: noted.objection,
            reference: noted.reference,
            woke: noted.woke,
            called_out: noted.called_out,
            sequence: noted.sequence,
        };
        Ok(raised(&noted, "is noted on", &[("text".to_owned(), &*text)]))
    }
}

/// An objection or a note as it was stored.
fn raised(answer: &ObjectResponse, does: &str, stored: &[(String, &str)]) -> Answer {
    let text = format!(
        "{} {does} {}\n{}{}{}",
        visible(&answer.objection),
        visible(&answer.reference),
        words::stored(stored),
        words::woke(&answer.woke, words::now()),
        words::called_out(&answer.called_out)
    );
    Answer::new(form::objected(answer, Some(words::stored_json(stored))), text)
}
