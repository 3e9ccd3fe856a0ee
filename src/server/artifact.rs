//! The artifact service: bundles in, versions out, in pieces.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::oneshot;
use tokio_stream::{Stream, StreamExt};
use tonic::{Code, Request, Response, Status, Streaming};

use super::answer::Failure;
use super::call::{Bounds, Call, UPLOAD_TIME_MAX, answered, carried_out, request_key};
use super::review::Reading;
use super::shared::Shared;
use super::{auth, facts};
use crate::artifact::{Entries, EntryKind};
use crate::coordinator::place::Place;
use crate::protocol::artifact::{ArtifactKind, RepoPath};
use crate::protocol::name::VersionRef;
use crate::protocol::{Team, Violation};
use crate::wire::batch::{Batches, Gone, Unbatched, batches};
use crate::wire::proto;
use crate::wire::proto::artifact_service_server::ArtifactService;
use crate::wire::proto::fetch_response::Piece as Sent;
use crate::wire::proto::upload_bundle_request::Piece as Received;
use crate::wire::status_code::{details_room, status_with_reason};

/// Content in one piece, in bytes.
const PIECE_BYTES: usize = 64 << 10;

/// How long the next piece may be waited for, from whoever sends it, or until whoever reads has room for it.
const PIECE_TIME_MAX: Duration = Duration::from_secs(30);

/// The service.
pub(super) struct Artifact(pub(super) Arc<Shared>);

/// The pieces of a version. They end in order only when all were sent: what was cut must not look whole.
pub(super) struct Pieces {
    pieces: Unbatched<Result<proto::FetchResponse, Status>>,
    whole: Option<oneshot::Receiver<()>>,
}

impl Stream for Pieces {
    type Item = Result<proto::FetchResponse, Status>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if let Some(piece) = ready!(Pin::new(&mut self.pieces).poll_next(context)) {
            return Poll::Ready(Some(piece));
        }
        let Some(whole) = &mut self.whole else { return Poll::Ready(None) };
        let ended = ready!(Pin::new(whole).poll(context));
        self.whole = None;
        Poll::Ready(ended.err().map(|_| {
            let message = "nothing was taken for too long, and the rest was not sent: fetch again";
            Err(status_with_reason(Code::DeadlineExceeded, "FETCH_IDLE", message, &[]))
        }))
    }
}

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
    let place = call.shared.uploads.take(call.team.name(), &call.member).await;
    let _place: Place = place.ok_or_else(|| too_many("bundles arrive"))?;
    let mut bundle = artifacts.builder()?;
    let (mut files, mut bytes) = (0, 0);
    let mut left: Option<(RepoPath, u64)> = None;
    while let Some(message) = next_piece(&mut pieces, PIECE_TIME_MAX).await? {
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

/// The next piece of a bundle. One that stays away ends the upload: its place is for others.
async fn next_piece<T>(
    pieces: &mut (impl Stream<Item = Result<T, Status>> + Unpin),
    within: Duration,
) -> Result<Option<T>, Status> {
    match tokio::time::timeout(within, pieces.next()).await {
        Ok(piece) => piece.transpose(),
        Err(_) => {
            let message = "no piece of the bundle came for too long, and nothing was kept: upload it again";
            Err(status_with_reason(Code::DeadlineExceeded, "UPLOAD_IDLE", message, &[]))
        }
    }
}

/// Ends a transfer whose reader takes nothing for too long.
async fn taken(put: impl Future<Output = Result<(), Gone>>, within: Duration) -> Result<(), Gone> {
    tokio::time::timeout(within, put).await.unwrap_or(Err(Gone))
}

fn too_many(what: &str) -> Failure {
    let message = format!("as many {what} for you as may at the same time: ask again when one has ended");
    status_with_reason(Code::ResourceExhausted, "TRANSFERS_MAX", &message, &[]).into()
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
    let place = call.shared.fetches.take(call.team.name(), &call.member).await;
    let place = place.ok_or_else(|| too_many("versions are fetched"))?;
    let artifacts = call.artifacts()?;
    let mut reading = Reading::of(&call, &request.subject).await?;
    let entries = loop {
        let entries = {
            let _turn = call.turn().await;
            artifacts.entries(&reading.artifact).await?
        };
        if reading.record(&call, &key).await? {
            break entries;
        }
    };
    let reference = reading.reference;
    let (sender, receiver) = batches();
    let (sent, whole) = oneshot::channel();
    // Ends with the entries, or when the caller goes away or takes nothing for too long.
    tokio::spawn(async move {
        let _place: Place = place;
        if send(&call, &reference, entries, sender).await.is_ok() {
            // Nobody listens any more: nobody misses it.
            let _ = sent.send(());
        }
    });
    Ok(Pieces { pieces: receiver, whole: Some(whole) })
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
    taken(to.put(piece(Sent::Reference(reference.to_string())), 0), PIECE_TIME_MAX).await?;
    while let Some(entry) = entries.next().await {
        let entry = match entry {
            Ok(entry) => entry,
            Err(failure) => {
                let status = Failure::from(failure).into_status(call.shared.now(), call.details);
                taken(to.put(Err(status), 0), PIECE_TIME_MAX).await?;
                return taken(to.finish(), PIECE_TIME_MAX).await;
            }
        };
        let executable = match entry.kind {
            EntryKind::Submodule => continue,
            EntryKind::Executable => true,
            EntryKind::File | EntryKind::Symlink => false,
        };
        let (path, size) = (entry.path.to_bytes().into(), entry.bytes.len() as u64);
        let bytes = entry.path.to_bytes().len();
        taken(to.put(piece(Sent::Head(proto::FileHead { path, executable, size })), bytes), PIECE_TIME_MAX)
            .await?;
        let mut content = Bytes::from(entry.bytes);
        while !content.is_empty() {
            let next = content.split_to(content.len().min(PIECE_BYTES));
            let bytes = next.len();
            taken(to.put(piece(Sent::Content(next)), bytes), PIECE_TIME_MAX).await?;
        }
    }
    taken(to.finish(), PIECE_TIME_MAX).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::reason_of;

    // No time at all: what is ready counts, what stays away is let go.
    #[tokio::test]
    async fn an_upload_ends_when_its_next_piece_stays_away() {
        let mut pieces = tokio_stream::iter([Ok(1), Ok(2)]).chain(tokio_stream::pending());
        for piece in 1..=2 {
            assert_eq!(next_piece(&mut pieces, Duration::ZERO).await.unwrap(), Some(piece));
        }
        let idle = next_piece(&mut pieces, Duration::ZERO).await.unwrap_err();
        assert_eq!((idle.code(), reason_of(&idle).as_deref()), (Code::DeadlineExceeded, Some("UPLOAD_IDLE")));
    }

    #[tokio::test]
    async fn a_fetch_ends_when_nobody_takes_what_is_sent_and_never_looks_whole_then() {
        let (mut to, from) = batches();
        let (sent, whole) = oneshot::channel::<()>();
        let mut put = 0;
        let content = || Ok(proto::FetchResponse { piece: Some(Sent::Content(Bytes::new())) });
        while taken(to.put(content(), PIECE_BYTES), Duration::ZERO).await.is_ok() {
            put += 1;
        }
        assert!(put > 0);
        drop((to, sent));
        let mut pieces: Vec<_> = Pieces { pieces: from, whole: Some(whole) }.collect().await;
        let end = pieces.pop().unwrap().unwrap_err();
        assert_eq!(reason_of(&end).as_deref(), Some("FETCH_IDLE"));
        assert!(pieces.iter().all(Result::is_ok));
    }

    #[tokio::test]
    async fn a_fetch_whose_pieces_were_all_sent_ends_in_order() {
        let (mut to, from) = batches();
        let (sent, whole) = oneshot::channel();
        to.put(Ok(proto::FetchResponse { piece: None }), 0).await.unwrap();
        to.finish().await.unwrap();
        sent.send(()).unwrap();
        let pieces: Vec<_> = Pieces { pieces: from, whole: Some(whole) }.collect().await;
        assert_eq!(pieces.into_iter().map(Result::unwrap).count(), 1);
    }
}
