//! The room as messages: what is said, verdicts, and the transcript.

use super::command::{PLACES_MAX, bounded, one, run};
use super::request::Arguments;
use super::{proto, texts, timestamp};
use crate::protocol::artifact::Place;
use crate::protocol::evidence::Run;
use crate::protocol::name::{MessageId, Seq};
use crate::protocol::room::{Evidence, JudgeClaim, Say, Verdict};
use crate::protocol::time::Time;
use crate::protocol::{Event, Rejection};

/// Reads what is said.
pub fn say(request: proto::SayRequest) -> Result<Say, Rejection> {
    let mut arguments = Arguments::default();
    let reply = match request.reply.as_str() {
        "" => None,
        reply => arguments.read("reply", reply),
    };
    bounded(&mut arguments, "to", request.to.len());
    let claim = request.claim.map(|claim| evidence(&mut arguments, claim));
    arguments.finish(Some(()))?;
    let about = Some(request.about).filter(|about| !about.is_empty());
    Ok(Say { text: request.text, to: request.to, about, reply, claim })
}

/// Reads a verdict.
pub fn judge_claim(request: proto::JudgeClaimRequest) -> Result<JudgeClaim, Rejection> {
    let mut arguments = Arguments::default();
    let message = arguments.read("message", &request.message);
    let verdict = match request.verdict() {
        proto::Verdict::Supported => Some(Verdict::Supported),
        proto::Verdict::Refuted => Some(Verdict::Refuted),
        proto::Verdict::Unverifiable => Some(Verdict::Unverifiable),
        proto::Verdict::Unspecified => {
            let given = request.verdict.to_string();
            arguments.refuse("verdict", "a verdict", &given, "one of: supported, refuted, unverifiable");
            None
        }
    };
    let evidence = evidence(&mut arguments, request.evidence.unwrap_or_default());
    let (message, verdict) = arguments.finish(message.zip(verdict))?;
    Ok(JudgeClaim { message, verdict, text: request.text, evidence })
}

/// Reads the id of the message with which a page begins.
pub fn from(request: &proto::ListTranscriptRequest) -> Result<Option<MessageId>, Rejection> {
    match request.from.as_str() {
        "" => Ok(None),
        from => one("from", from).map(Some),
    }
}

fn evidence(arguments: &mut Arguments, evidence: proto::Evidence) -> Evidence {
    bounded(arguments, "at", evidence.at.len());
    bounded(arguments, "ran", evidence.ran.len());
    let at: Vec<Place> = arguments.read_all("at", evidence.at.get(..PLACES_MAX).unwrap_or(&evidence.at));
    Evidence { at, ran: evidence.ran.into_iter().map(run).collect() }
}

/// A verdict as a message.
pub fn verdict(verdict: Verdict) -> proto::Verdict {
    match verdict {
        Verdict::Supported => proto::Verdict::Supported,
        Verdict::Refuted => proto::Verdict::Refuted,
        Verdict::Unverifiable => proto::Verdict::Unverifiable,
    }
}

/// An event as an entry of the transcript; nothing where it stands in none.
pub fn entry(seq: Seq, at: Time, event: Event) -> Option<proto::TranscriptEntry> {
    use proto::EntryKind;
    let entry = |kind: EntryKind| proto::TranscriptEntry {
        sequence: seq.0,
        at: Some(timestamp(at)),
        kind: kind.into(),
        ..Default::default()
    };
    Some(match event {
        Event::Said(said) => proto::TranscriptEntry {
            id: said.id.to_string(),
            by: said.by.to_string(),
            text: said.text,
            mentions: texts(said.mentions),
            about: said.about.unwrap_or_default(),
            reply: said.reply.map(|reply| reply.to_string()).unwrap_or_default(),
            root: said.root.to_string(),
            length: said.length,
            ended: said.ended,
            evidence: said.claim.as_ref().map(|claim| shown(&claim.at, &claim.ran)),
            ..entry(if said.claim.is_some() { EntryKind::Claim } else { EntryKind::Message })
        },
        Event::ClaimJudged(judged) => proto::TranscriptEntry {
            id: judged.message.to_string(),
            by: judged.by.to_string(),
            evidence: Some(shown(&judged.at, &judged.ran)),
            text: judged.text.unwrap_or_default(),
            verdict: verdict(judged.verdict).into(),
            ..entry(EntryKind::Verdict)
        },
        Event::Escalated(opened) => proto::TranscriptEntry {
            id: opened.id.to_string(),
            by: opened.member.map(|member| member.to_string()).unwrap_or_default(),
            text: opened.text,
            about: opened.subject,
            word: opened.cause.to_string(),
            ..entry(EntryKind::Escalation)
        },
        Event::EscalationClosed(closed) => proto::TranscriptEntry {
            id: closed.id.to_string(),
            by: closed.by.map(|by| by.to_string()).unwrap_or_default(),
            text: closed.reason,
            word: closed.decision.map(|decision| decision.to_string()).unwrap_or_default(),
            ..entry(EntryKind::Decision)
        },
        Event::CalledOut(called) => proto::TranscriptEntry {
            id: called.subject,
            about: called.what,
            text: called.says,
            word: called.rule,
            by: called.by.to_string(),
            ..entry(EntryKind::CallOut)
        },
        _ => return None,
    })
}

fn shown(at: &[Place], ran: &[Run]) -> proto::Evidence {
    let run =
        |run: &Run| proto::Run { command: run.command.clone(), exit: run.exit, output: run.output.clone() };
    proto::Evidence { at: texts(at), ran: ran.iter().map(run).collect() }
}
