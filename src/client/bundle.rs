//! Artifacts over the wire: bundles up, versions down, both in pieces.

use std::path::Path;

use tokio::sync::oneshot;
use tonic::{Request, Streaming};

use super::proto::{FetchRequest, FetchResponse, FileHead, UploadBundleRequest, UploadBundleResponse};
use super::proto::{fetch_response, upload_bundle_request};
use super::{ARTIFACT_TIME_MAX, Client, Failure, failure, fresh_request_id};
use crate::artifact::folder::read_dir;
use crate::artifact::{self, EntryKind};
use crate::wire::batch::batches;

/// Bytes of a file that one message carries.
const PIECE_BYTES: usize = 64 * 1024;

/// Why a folder did not become a bundle of the server's.
#[derive(Debug, thiserror::Error)]
pub enum UploadFailure {
    /// The folder can't be read, or not be taken.
    #[error(transparent)]
    Folder(#[from] artifact::Failure),
    /// The server didn't take it.
    #[error(transparent)]
    Call(#[from] Failure),
}

/// A piece of a version: for each file its head, then its content.
#[derive(Debug)]
pub enum FetchedPiece {
    /// A file begins.
    Head(FileHead),
    /// Content of the file that began last.
    Content(bytes::Bytes),
}

/// The files of a version on their way.
#[derive(Debug)]
pub struct Fetching {
    /// The version's exact reference.
    pub reference: String,
    address: String,
    request_id: String,
    pieces: Streaming<FetchResponse>,
}

impl Client {
    /// Sends the files below `folder`, which is walked whole before the first byte leaves.
    ///
    /// Uploading decides nothing: what a broken connection leaves behind is content without a
    /// proposal, and uploading again is harmless.
    pub async fn upload_bundle(&self, folder: &Path) -> Result<UploadBundleResponse, UploadFailure> {
        let files = read_dir(folder)?;
        let (mut pieces, taken) = batches();
        let (stopped, stop) = oneshot::channel();
        // Reading blocks, so it has a thread; it ends with the stream, whoever ends that.
        let reading = tokio::task::spawn_blocking(move || {
            for entry in files {
                let entry = match entry {
                    Ok(entry) => entry,
                    Err(problem) => {
                        // The call is given up then, so that half a folder is never a bundle.
                        let _ = stopped.send(problem);
                        return;
                    }
                };
                let head = FileHead {
                    path: entry.path.to_bytes().into(),
                    executable: entry.kind == EntryKind::Executable,
                    size: entry.bytes.len() as u64,
                };
                let content = bytes::Bytes::from(entry.bytes);
                let mut messages = vec![upload_bundle_request::Piece::Head(head)];
                let starts = (0..content.len()).step_by(PIECE_BYTES);
                messages.extend(starts.map(|start| {
                    let end = content.len().min(start + PIECE_BYTES);
                    upload_bundle_request::Piece::Content(content.slice(start..end))
                }));
                for piece in messages {
                    let bytes = match &piece {
                        upload_bundle_request::Piece::Head(head) => head.path.len(),
                        upload_bundle_request::Piece::Content(content) => content.len(),
                    };
                    if pieces.put_blocking(UploadBundleRequest { piece: Some(piece) }, bytes).is_err() {
                        return;
                    }
                }
            }
            // Where nobody takes it, the call has an answer already.
            let _ = pieces.finish_blocking();
        });
        let mut service = self.artifact();
        let call = service.upload_bundle(Request::new(taken));
        let answered = self.answer(None, ARTIFACT_TIME_MAX, call);
        tokio::pin!(answered);
        tokio::select! {
            biased;
            Ok(problem) = stop => Err(problem.into()),
            answer = &mut answered => {
                reading.abort();
                Ok(answer?)
            }
        }
    }

    /// Asks for the files of a version; the reading is recorded before the first one comes.
    pub async fn fetch(&self, mut request: FetchRequest) -> Result<Fetching, Failure> {
        if request.request_id.is_empty() {
            request.request_id = fresh_request_id();
        }
        let request_id = request.request_id.clone();
        let mut service = self.artifact();
        let mut pieces =
            self.answer(Some(&request_id), ARTIFACT_TIME_MAX, service.fetch(Request::new(request))).await?;
        let first = pieces.message().await;
        let first = first.map_err(|status| failure::of_status(&self.address, Some(&request_id), &status))?;
        match first.and_then(|message| message.piece) {
            Some(fetch_response::Piece::Reference(reference)) => {
                Ok(Fetching { reference, address: self.address.clone(), request_id, pieces })
            }
            _ => Err(out_of_order()),
        }
    }
}

impl Fetching {
    /// The next piece; none at the end.
    pub async fn next(&mut self) -> Result<Option<FetchedPiece>, Failure> {
        let status = |status| failure::of_status(&self.address, Some(&self.request_id), &status);
        match self.pieces.message().await.map_err(status)? {
            None => Ok(None),
            Some(FetchResponse { piece: Some(fetch_response::Piece::Head(head)) }) => {
                Ok(Some(FetchedPiece::Head(head)))
            }
            Some(FetchResponse { piece: Some(fetch_response::Piece::Content(content)) }) => {
                Ok(Some(FetchedPiece::Content(content)))
            }
            Some(_) => Err(out_of_order()),
        }
    }
}

fn out_of_order() -> Failure {
    Failure::Broken {
        code: "INTERNAL".to_owned(),
        why: "the server sent a version's pieces out of order".to_owned(),
    }
}
