//! The artifact service: bundles in, versions out, in pieces.

use std::sync::Arc;

use bytes::Bytes;
use tonic::{Request, Response, Status, Streaming};

use super::answer::Failure;
use super::call::{Bounds, Call, NEVER_CLOSED, UPLOAD_TIME_MAX, answered, carried_out, request_key};
use super::review::{find, read};
use super::shared::Shared;
use super::{auth, facts};
use crate::artifact::{Entries, EntryKind};
use crate::protocol::artifact::{ArtifactKind, RepoPath};
use crate::protocol::name::VersionRef;
use crate::protocol::{Team, Violation};
use crate::wire::batch::{Batches, Gone, Unbatched, batches};
use crate::wire::proto;
use crate::wire::proto::artifact_service_server::ArtifactService;
use crate::wire::proto::fetch_response::Piece as Sent;
use crate::wire::proto::upload_bundle_request::Piece as Received;
use crate::wire::status_code::details_room;

/// Content in one piece, in bytes.
const PIECE_BYTES: usize = 64 << 10;

/// The service.
pub(super) struct Artifact(pub(super) Arc<Shared>);

type Pieces = Unbatched<Result<proto::FetchResponse, Status>>;

#[tonic::async_trait]
impl ArtifactService for Artifact {
    type FetchStream = Pieces;

    async fn upload_bundle(
        &self,
        request: Request<Streaming<proto::UploadBundleRequest>>,
    ) -> Result<Response<proto::UploadBundleResponse>, Status> {
        let (team, member) = auth::member(&self.0, request.metadata())?;
        let bounds = Bounds { time: UPLOAD_TIME_MAX, details: details_room(request.metadata()) };
        let span = tracing::debug_span!("call", verb = "upload", team = %team.name(), %member);
        let call = Call { shared: self.0.clone(), team, member, details: bounds.details };
        let work = async move {
            // The task ends with the time too: an upload that never ends must not hold its place.
            match tokio::time::timeout(UPLOAD_TIME_MAX, upload(call, request.into_inner())).await {
                Ok(uploaded) => uploaded,
                Err(_) => Err(Status::deadline_exceeded("the time is up, and nothing was kept").into()),
            }
        };
        carried_out(&self.0, bounds, span, work).await
    }

    async fn fetch(&self, request: Request<proto::FetchRequest>) -> Result<Response<Pieces>, Status> {
        answered(&self.0, "fetch", request, fetch).await
    }
}

async fn upload(
    call: Call,
    mut pieces: Streaming<proto::UploadBundleRequest>,
) -> Result<proto::UploadBundleResponse, Failure> {
    let guarded = |team: &Team| team.adopted().is_some_and(|adopted| adopted.charter.repository.is_some());
    if call.team.peek(guarded) {
        let name = |kind| facts::name_of(kind).to_owned();
        let (given, wanted) = (name(ArtifactKind::Bundle), name(ArtifactKind::Commit));
        return Err(Violation::ArtifactKindUnfit { given, wanted }.into());
    }
    let artifacts = call.artifacts()?;
    let _place = call.shared.uploads.acquire().await.expect(NEVER_CLOSED);
    let mut bundle = artifacts.builder()?;
    let (mut files, mut bytes) = (0, 0);
    let mut left: Option<(RepoPath, u64)> = None;
    while let Some(message) = pieces.message().await? {
        match message.piece {
            Some(Received::Head(head)) => {
                whole(&left)?;
                let path = RepoPath::from_bytes(&head.path);
                let kind = if head.executable { EntryKind::Executable } else { EntryKind::File };
                bundle.begin(path.clone(), kind)?;
                left = Some((path, head.size));
                files += 1;
            }
            Some(Received::Content(content)) => {
                let size = content.len() as u64;
                match &mut left {
                    Some((_, left)) if *left >= size => *left -= size,
                    Some((path, _)) => return Err(unlike_head(path)),
                    None => return Err(malformed("a piece of a bundle", "content", "a file's head first")),
                }
                bundle.chunk(&content)?;
                bytes += size;
            }
            None => return Err(malformed("a piece of a bundle", "", "a file's head, or content")),
        }
    }
    whole(&left)?;
    let digest = bundle.finish().await?.to_string();
    Ok(proto::UploadBundleResponse { digest, files, bytes })
}

/// That the file that began last is whole: one that was cut on the way must not be kept.
fn whole(left: &Option<(RepoPath, u64)>) -> Result<(), Failure> {
    match left {
        Some((path, 1..)) => Err(unlike_head(path)),
        _ => Ok(()),
    }
}

fn unlike_head(path: &RepoPath) -> Failure {
    malformed("as long as its head says", &path.to_string(), "each file as long as its head says")
}

fn malformed(expected: &str, given: &str, form: &str) -> Failure {
    Violation::Malformed {
        argument: "piece".to_owned(),
        expected: expected.to_owned(),
        given: given.to_owned(),
        form: form.to_owned(),
    }
    .into()
}

async fn fetch(call: Call, request: proto::FetchRequest) -> Result<Pieces, Failure> {
    let key = request_key(&request)?;
    let reference = read(&call, &request.subject, key).await?;
    let artifact = call.team.peek(|team| find(team, &reference).map(|(_, _, found)| found.artifact.clone()));
    let artifact = artifact.ok_or_else(Failure::unexpected)?;
    let entries = {
        let _turn = call.turn().await;
        call.artifacts()?.entries(&artifact).await?
    };
    let (sender, receiver) = batches();
    // Ends with the entries, or when the caller goes away.
    tokio::spawn(async move { send(&call, &reference, entries, sender).await });
    Ok(receiver)
}

/// Sends a version's files until the caller goes away. A submodule holds no files and is left out; a
/// symbolic link is sent as a file that holds its target.
async fn send(
    call: &Call,
    reference: &VersionRef,
    mut entries: Entries,
    mut to: Batches<Result<proto::FetchResponse, Status>>,
) -> Result<(), Gone> {
    let piece = |piece| Ok(proto::FetchResponse { piece: Some(piece) });
    to.put(piece(Sent::Reference(reference.to_string())), 0).await?;
    while let Some(entry) = entries.next().await {
        let entry = match entry {
            Ok(entry) => entry,
            Err(failure) => {
                let status = Failure::from(failure).into_status(call.shared.now(), call.details);
                to.put(Err(status), 0).await?;
                return to.finish().await;
            }
        };
        let executable = match entry.kind {
            EntryKind::Submodule => continue,
            EntryKind::Executable => true,
            EntryKind::File | EntryKind::Symlink => false,
        };
        let (path, size) = (entry.path.to_bytes().into(), entry.bytes.len() as u64);
        let bytes = entry.path.to_bytes().len();
        to.put(piece(Sent::Head(proto::FileHead { path, executable, size })), bytes).await?;
        let mut content = Bytes::from(entry.bytes);
        while !content.is_empty() {
            let next = content.split_to(content.len().min(PIECE_BYTES));
            let bytes = next.len();
            to.put(piece(Sent::Content(next)), bytes).await?;
        }
    }
    to.finish().await
}
