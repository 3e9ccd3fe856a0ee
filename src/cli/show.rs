//! `countersign show`: a version, its record, and its exact reference.

use clap::Args;

use super::failure::Failure;
use super::output::{Answer, visible};
use super::speaker::{Global, Speaker, Write};
use super::text::Fence;
use super::{json as form, reading};

/// Shows a version: what it changes, its exact reference, who has a say and what they said.
#[derive(Args, Debug)]
pub struct Show {
    /// parser, parser@2 or parser@2:41d0c9aa1e53; the current version where none is given
    #[arg(value_name = "REF")]
    reference: String,
    #[command(flatten)]
    write: Write,
}

impl Show {
    pub(super) async fn run(self, global: &Global) -> Result<Answer, Failure> {
        let speaker = Speaker::connect(global).await?;
        let shown = reading::show(&speaker, &self.reference, self.write.id()).await?;
        let version = shown.version.clone().unwrap_or_default();
        let fence = Fence::fresh()?;
        let mut text = reading::head(&version, &fence);
        text.push_str(&reading::files(&shown));
        text.push_str(&reading::said(&version, &fence));
        let (name, number) = (visible(&version.proposal), version.version);
        text.push_str(&format!("Its diff: countersign diff {name}@{number}\n"));
        if shown.read_before > 0 {
            text.push_str(&format!(
                "What changed since you read version {}: countersign diff {name}@{number} --since-read\n",
                shown.read_before
            ));
        }
        let mut answer = Answer::new(form::shown(&shown), text);
        if version.current {
            reading::keep_told(&speaker, &version.proposal, version.version, &mut answer).await;
        }
        Ok(answer)
    }
}
