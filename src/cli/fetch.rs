//! `countersign fetch`: the files of a version.

use std::path::PathBuf;

use clap::Args;

use super::failure::Failure;
use super::output::Answer;
use super::speaker::{Global, Speaker, Write};
use super::text::Fence;
use super::words;
use super::{json as form, reading};
use crate::artifact::folder::Extraction;
use crate::artifact::repository::FETCHED_BYTES_MAX;
use crate::artifact::{Entry, EntryKind};
use crate::client::proto::{FetchRequest, FileHead};
use crate::client::{FetchedPiece, Fetching};
use crate::protocol::artifact::RepoPath;

/// Writes the files of a version into a new or empty folder.
#[derive(Args, Debug)]
pub struct Fetch {
    /// parser, parser@2 or parser@2:41d0c9aa1e53; the current version where none is given
    #[arg(value_name = "REF")]
    reference: String,
    /// The folder; new or empty
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,
    #[command(flatten)]
    write: Write,
}

impl Fetch {
    pub(super) async fn run(self, global: &Global) -> Result<Answer, Failure> {
        let speaker = Speaker::connect(global).await?;
        // Before anything is asked: a reading of what can't be laid down would be none.
        let mut extraction = Extraction::into_new(&self.output)?;
        let request = FetchRequest { request_id: self.write.id(), subject: self.reference };
        let mut fetching = speaker.client.fetch(request).await?;
        let (files, bytes) = lay_down(&mut fetching, &mut extraction).await?;

        let shown = reading::show(&speaker, &fetching.reference, String::new()).await?;
        let version = shown.version.clone().unwrap_or_default();
        let fence = Fence::fresh()?;
        let mut text = reading::head(&version, &fence);
        text.push_str(&format!(
            "{}, {}, in {}\n",
            words::counted(files, "file"),
            words::counted(bytes, "byte"),
            self.output.display()
        ));
        let mut json = form::shown(&shown);
        json["output"] = self.output.display().to_string().into();
        json["fetched"] = serde_json::json!({ "files": files, "bytes": bytes });
        let mut answer = Answer::new(json, text);
        if version.current {
            reading::keep_told(&speaker, &version.proposal, version.version, &mut answer).await;
        }
        Ok(answer)
    }
}

/// Writes the files as they come; how many there were, and their bytes.
async fn lay_down(fetching: &mut Fetching, extraction: &mut Extraction) -> Result<(u64, u64), Failure> {
    let (mut files, mut bytes) = (0, 0);
    let mut open: Option<(FileHead, Vec<u8>)> = None;
    loop {
        let piece = fetching.next().await?;
        match (piece, &mut open) {
            (Some(FetchedPiece::Content(content)), Some((head, collected))) => {
                // The announced size bounds what a file may take, and the limit of all files bounds that.
                if (collected.len() + content.len()) as u64 > head.size {
                    return Err(broken("a file is longer than it was announced"));
                }
                collected.extend_from_slice(&content);
            }
            (Some(FetchedPiece::Content(_)), None) => return Err(broken("content comes before its file")),
            (piece, _) => {
                if let Some((head, collected)) = open.take() {
                    if collected.len() as u64 != head.size {
                        return Err(broken("a file is shorter than it was announced"));
                    }
                    files += 1;
                    bytes += head.size;
                    let kind = if head.executable { EntryKind::Executable } else { EntryKind::File };
                    let path = RepoPath::from_bytes(&head.path);
                    extraction.write(&Entry { path, kind, bytes: collected })?;
                }
                match piece {
                    Some(FetchedPiece::Head(head)) if head.size > FETCHED_BYTES_MAX - bytes => {
                        return Err(broken("its files are larger than those of a version may be"));
                    }
                    Some(FetchedPiece::Head(head)) => open = Some((head, Vec::new())),
                    _ => return Ok((files, bytes)),
                }
            }
        }
    }
}

fn broken(what: &str) -> Failure {
    Failure::refused(
        "FETCH_BROKEN",
        format!("the server's answer can't be right: {what}"),
        "fetch into a fresh folder, again",
    )
}
