//! `countersign page`: the way into the room page.

use clap::Args;
use serde_json::json;

use super::failure::Failure;
use super::json as form;
use super::output::Answer;
use super::speaker::{Global, Speaker};
use crate::client::proto::OpenPageRequest;

/// Prints a link to the room page that signs you in: once, within ten minutes.
#[derive(Args, Debug)]
pub struct Page {}

impl Page {
    pub(super) async fn run(self, global: &Global) -> Result<Answer, Failure> {
        let speaker = Speaker::connect(global).await?;
        let opened = speaker.client.open_page(OpenPageRequest {}).await?;
        let text = format!(
            "{}\nIt signs {} in once, within ten minutes: open it in a browser on the server's machine\n",
            opened.link, speaker.member
        );
        let json = json!({
            "member": speaker.member.as_str(),
            "link": opened.link,
            "expires_at": form::time(opened.expires_at.as_ref()),
        });
        Ok(Answer::new(json, text))
    }
}
