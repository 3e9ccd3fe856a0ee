//! The room service: what is said, verdicts, and the transcript, page by page from the log.

use std::sync::Arc;

use tonic::{Code, Request, Response, Status};

use super::answer::{Failure, wakes};
use super::call::{Call, answered, blocking, request_key};
use super::escalation::page_size;
use super::shared::Shared;
use crate::protocol::name::{Seq, TeamName};
use crate::protocol::{Answer, Command, Event, Team, Violation};
use crate::store::{Fault, Reader, Row};
use crate::wire::proto::room_service_server::RoomService;
use crate::wire::{proto, room};

/// Entries of one page where the caller doesn't say, and at most.
const PAGE: usize = 50;
const PAGE_MAX: usize = 1_000;

/// Bodies of one page, in bytes: a page ends with the entry that reaches it.
const PAGE_BYTES: usize = 1 << 20;

/// Rows that are read at once.
const READ_MAX: usize = 32;

/// The service.
pub(super) struct Room(pub(super) Arc<Shared>);

#[tonic::async_trait]
impl RoomService for Room {
    async fn say(&self, request: Request<proto::SayRequest>) -> Result<Response<proto::SayResponse>, Status> {
        answered(&self.0, "say", request, say).await
    }

    async fn judge_claim(
        &self,
        request: Request<proto::JudgeClaimRequest>,
    ) -> Result<Response<proto::JudgeClaimResponse>, Status> {
        answered(&self.0, "verdict", request, judge_claim).await
    }

    async fn list_transcript(
        &self,
        request: Request<proto::ListTranscriptRequest>,
    ) -> Result<Response<proto::ListTranscriptResponse>, Status> {
        answered(&self.0, "list transcript", request, list).await
    }
}

async fn say(call: Call, request: proto::SayRequest) -> Result<proto::SayResponse, Failure> {
    let key = request_key(&request)?;
    let done = call.submit(Command::Say(room::say(request)?), key).await?;
    let Answer::Said { message, mentions, root, length, ended, escalation } = done.answer else {
        return Err(Failure::unexpected());
    };
    Ok(proto::SayResponse {
        sequence: done.seq.0,
        message: message.to_string(),
        mentions: mentions.iter().map(ToString::to_string).collect(),
        root: root.to_string(),
        length,
        ended,
        escalation: escalation.map(|id| id.to_string()).unwrap_or_default(),
        woke: wakes(&done.woke),
        called_out: done.called_out,
    })
}

async fn judge_claim(
    call: Call,
    request: proto::JudgeClaimRequest,
) -> Result<proto::JudgeClaimResponse, Failure> {
    let key = request_key(&request)?;
    let done = call.submit(Command::JudgeClaim(room::judge_claim(request)?), key).await?;
    let Answer::ClaimJudged { message, verdict } = done.answer else { return Err(Failure::unexpected()) };
    Ok(proto::JudgeClaimResponse {
        sequence: done.seq.0,
        message: message.to_string(),
        verdict: room::verdict(verdict).into(),
        woke: wakes(&done.woke),
        called_out: done.called_out,
    })
}

async fn list(
    call: Call,
    request: proto::ListTranscriptRequest,
) -> Result<proto::ListTranscriptResponse, Failure> {
    let from = room::from(&request)?;
    let size = page_size(request.page_size, PAGE, PAGE_MAX);
    let look = |team: &Team, _| {
        let entries = team.room().entries();
        let first = from.map(|id| team.room().known_message(id)).transpose()?;
        let after = first.map_or(request.after, |message| message.seq.0 - 1);
        Ok::<_, Violation>(page(entries, after, request.before, size))
    };
    let (found, seq) = call.team.read(look).await?;
    let Page { seqs, newest, mut earlier, mut later } = found?;
    let (reader, team) = (call.shared.coordinator.reader(), call.team.name().clone());
    let wanted = seqs.len();
    let rows = blocking(move || rows(&*reader, &team, &seqs, newest)).await??;
    // A page of long texts is a shorter one: it stays next to where its caller looked from.
    let left_out = (wanted - rows.len()) as u64;
    *(if newest { &mut earlier } else { &mut later }) += left_out;
    let mut entries = Vec::with_capacity(rows.len());
    for row in rows {
        let event = Event::decode(&row.kind, row.schema, &row.body).map_err(|fault| {
            Failure::fault(Code::DataLoss, "LOG_DAMAGED", "an event of the log can't be read", &fault)
        })?;
        entries.extend(room::entry(row.seq, row.at, event));
    }
    Ok(proto::ListTranscriptResponse { sequence: seq.0, entries, earlier, later })
}

/// Which entries a page has, and how many stand around it.
#[derive(Debug, PartialEq, Eq)]
struct Page {
    seqs: Vec<Seq>,
    /// Whether it ends where its caller looked from, and doesn't begin there.
    newest: bool,
    earlier: u64,
    later: u64,
}

fn page(entries: &[Seq], after: u64, before: u64, size: usize) -> Page {
    let first = entries.partition_point(|seq| seq.0 <= after);
    let last = if before == 0 { entries.len() } else { entries.partition_point(|seq| seq.0 < before) };
    let last = last.max(first);
    let newest = after == 0;
    let (first, last) =
        if newest { (first.max(last.saturating_sub(size)), last) } else { (first, last.min(first + size)) };
    let (earlier, later) = (first as u64, (entries.len() - last) as u64);
    Page { seqs: entries[first..last].to_vec(), newest, earlier, later }
}

/// These rows of a log, until they fill a page: from the last one back where it is to end there. Those that stand side
/// by side are read at once, up to a few.
fn rows(reader: &dyn Reader, team: &TeamName, seqs: &[Seq], newest: bool) -> Result<Vec<Row>, Fault> {
    let (mut found, mut bytes, mut left) = (Vec::new(), 0, seqs);
    while let Some(of) = next_run(&mut left, newest) {
        let mut rows = reader.rows(team, of[0], of.len())?;
        if newest {
            rows.reverse();
        }
        for row in rows {
            if bytes >= PAGE_BYTES {
                left = &[];
                break;
            }
            bytes += row.body.len();
            found.push(row);
        }
    }
    if newest {
        found.reverse();
    }
    Ok(found)
}

/// The first few that stand side by side, or the last few; `left` is what is left of them.
fn next_run<'a>(left: &mut &'a [Seq], newest: bool) -> Option<&'a [Seq]> {
    let mut runs = left.chunk_by(|one, next| one.0 + 1 == next.0);
    let run = if newest { runs.next_back()? } else { runs.next()? };
    let count = run.len().min(READ_MAX);
    let (before, after) = left.split_at(if newest { left.len() - count } else { count });
    let (run, rest) = if newest { (after, before) } else { (before, after) };
    *left = rest;
    Some(run)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_says_what_stands_around_it() {
        let entries: Vec<Seq> = [3, 4, 7, 9, 12].map(Seq).to_vec();
        let at = |after, before, size| {
            let page = page(&entries, after, before, size);
            (page.seqs.iter().map(|seq| seq.0).collect::<Vec<_>>(), page.earlier, page.later)
        };
        assert_eq!(at(0, 0, 2), (vec![9, 12], 3, 0), "the newest");
        assert_eq!(at(0, 9, 2), (vec![4, 7], 1, 2), "before the ninth");
        assert_eq!(at(0, 3, 2), (vec![], 0, 5));
        assert_eq!(at(4, 0, 2), (vec![7, 9], 2, 1), "after the fourth");
        assert_eq!(at(2, 8, 9), (vec![3, 4, 7], 0, 2), "between");
        assert_eq!(at(12, 0, 9), (vec![], 5, 0));
        assert_eq!(at(9, 4, 9), (vec![], 4, 1), "nothing stands between");
        assert_eq!(page(&[], 0, 0, 9).seqs, []);
    }
}
