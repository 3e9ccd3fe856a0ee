//! Requests to commands, given the facts that the core can't know.

use crate::protocol::Rejection;
use crate::protocol::artifact::{Artifact, ArtifactFacts, ArtifactKind, Place};
use crate::protocol::escalation::{self, Decision};
use crate::protocol::name::MemberName;
use crate::protocol::name::{Digest, ObjectionId, ProposalName, Subject, VersionRef};
use crate::protocol::review::{
    Approve, Confirm, NamedPlace, Note, Object, Overrule, Propose, Read, ReadObjections, ReportCheck,
    Resolve, Run, Withdraw,
};

use super::proto;
use super::request::Arguments;

/// Places that one vote or note may name. Each is looked up in the version.
pub const PLACES_MAX: usize = 256;

/// A proposal's request, before anything is known of its artifact.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offered {
    /// Which deliverable.
    pub proposal: ProposalName,
    /// What it is.
    pub kind: ArtifactKind,
    /// Its digest.
    pub digest: Digest,
    summary: String,
    answers: std::collections::BTreeMap<ObjectionId, String>,
    /// The version that it follows; 0 for none.
    pub after: u32,
}

impl Offered {
    /// Reads a request.
    pub fn of(request: proto::ProposeRequest) -> Result<Self, Rejection> {
        let mut arguments = Arguments::default();
        let proposal = arguments.read("proposal", &request.proposal);
        let kind = match request.kind() {
            proto::ArtifactKind::Commit => Some(ArtifactKind::Commit),
            proto::ArtifactKind::Bundle => Some(ArtifactKind::Bundle),
            proto::ArtifactKind::Unspecified => {
                let given = request.kind.to_string();
                arguments.refuse("kind", "a kind of artifact", &given, "a commit or a bundle");
                None
            }
        };
        let digest = arguments.read("digest", &request.digest);
        let mut answers = std::collections::BTreeMap::new();
        bounded(&mut arguments, "answers", request.answers.len());
        for (id, text) in request.answers.into_iter().take(PLACES_MAX) {
            answers.extend(arguments.read("answers", &id).map(|id: ObjectionId| (id, text)));
        }
        let read = proposal.zip(kind).zip(digest);
        let ((proposal, kind), digest) = arguments.finish(read)?;
        Ok(Self { proposal, kind, digest, summary: request.summary, answers, after: request.after })
    }

    /// The command, once the artifact is known.
    pub fn command(self, artifact: Artifact, facts: ArtifactFacts) -> Propose {
        let Self { proposal, summary, answers, after, .. } = self;
        Propose { proposal, artifact, facts, summary, answers, after }
    }
}

/// A vote's or note's request, before its places are looked up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placed<T> {
    /// The version that it speaks of.
    pub reference: VersionRef,
    /// The places that it names.
    pub places: Vec<Place>,
    rest: T,
}

/// What an approval says beside its places.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Evidence {
    ran: Vec<Run>,
    resolve: Vec<ObjectionId>,
}

/// What an objection or a note says beside its places.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Words {
    text: String,
    failing_test: Option<Run>,
}

/// Reads an approval.
pub fn approve(request: proto::ApproveRequest) -> Result<Placed<Evidence>, Rejection> {
    let mut arguments = Arguments::default();
    let reference = arguments.read("reference", &request.reference);
    let places = places(&mut arguments, "checked", &request.checked);
    bounded(&mut arguments, "ran", request.ran.len());
    bounded(&mut arguments, "resolve", request.resolve.len());
    let resolve =
        arguments.read_all("resolve", request.resolve.get(..PLACES_MAX).unwrap_or(&request.resolve));
    let ran = request.ran.into_iter().map(run).collect();
    let reference = arguments.finish(reference)?;
    Ok(Placed { reference, places, rest: Evidence { ran, resolve } })
}

/// Reads an objection.
pub fn object(request: proto::ObjectRequest) -> Result<Placed<Words>, Rejection> {
    words(&request.reference, &request.at, request.text, request.failing_test.map(run))
}

/// Reads a note.
pub fn note(request: proto::NoteRequest) -> Result<Placed<Words>, Rejection> {
    words(&request.reference, &request.at, request.text, None)
}

impl Placed<Evidence> {
    /// The command; `found` says of each place in order whether the version has it.
    pub fn command(self, found: &[bool]) -> Approve {
        let checked = named(self.places, found);
        Approve { reference: self.reference, checked, ran: self.rest.ran, resolve: self.rest.resolve }
    }
}

impl Placed<Words> {
    /// An objection; `found` says of each place in order whether the version has it.
    pub fn objection(self, found: &[bool]) -> Object {
        let Words { text, failing_test } = self.rest;
        Object { reference: self.reference, text, at: named(self.places, found), failing_test }
    }

    /// A note; `found` says of each place in order whether the version has it.
    pub fn note(self, found: &[bool]) -> Note {
        Note { reference: self.reference, text: self.rest.text, at: named(self.places, found) }
    }
}

/// Reads what is to be shown.
pub fn read(subject: &str) -> Result<Read, Rejection> {
    one("subject", subject).map(|subject: Subject| Read { subject })
}

/// Reads whose objections are to be shown.
pub fn objections(request: &proto::ObjectionsRequest) -> Result<ReadObjections, Rejection> {
    one("proposal", &request.proposal).map(|proposal| ReadObjections { proposal })
}

/// Reads a resolve.
pub fn resolve(request: proto::ResolveRequest) -> Result<Resolve, Rejection> {
    let objection = one("objection", &request.objection)?;
    Ok(Resolve { objection, mistaken: request.mistaken, reason: request.reason })
}

/// Reads an overruling.
pub fn overrule(request: proto::OverruleRequest) -> Result<Overrule, Rejection> {
    Ok(Overrule { objection: one("objection", &request.objection)?, reason: request.reason })
}

/// Reads a withdrawal.
pub fn withdraw(request: proto::WithdrawRequest) -> Result<Withdraw, Rejection> {
    Ok(Withdraw { proposal: one("proposal", &request.proposal)?, reason: request.reason })
}

/// Reads a report of a check.
pub fn report_check(request: proto::ReportCheckRequest) -> Result<ReportCheck, Rejection> {
    let reference = one("reference", &request.reference)?;
    Ok(ReportCheck { reference, name: request.name, exit: request.exit, output: request.output })
}

/// Reads a confirmation.
pub fn confirm(request: &proto::ConfirmRequest) -> Result<Confirm, Rejection> {
    one("reference", &request.reference).map(|reference| Confirm { reference })
}

/// Reads what is put before a person.
pub fn escalate(request: proto::EscalateRequest) -> escalation::Escalate {
    escalation::Escalate { subject: request.subject, text: request.text }
}

/// Reads a person's answer.
pub fn answer(request: proto::AnswerEscalationRequest) -> Result<escalation::Answer, Rejection> {
    let mut arguments = Arguments::default();
    let escalation = arguments.read("escalation", &request.escalation);
    let named = Decision::ALL.iter().find(|(name, _)| *name == request.decision);
    let decision = named.map(|(_, decision)| *decision);
    if decision.is_none() {
        let names: Vec<&str> = Decision::ALL.iter().map(|(name, _)| *name).collect();
        let form = format!("one of: {}", names.join(", "));
        arguments.refuse("decision", "a decision", &request.decision, &form);
    }
    let mut member = |name: &str, text: &str| {
        if text.is_empty() { None } else { arguments.read::<MemberName>(name, text) }
    };
    let (stand_in, reviewer) = (member("member", &request.member), member("reviewer", &request.reviewer));
    let (escalation, decision) = arguments.finish(escalation.zip(decision))?;
    Ok(escalation::Answer { escalation, decision, member: stand_in, reviewer, reason: request.reason })
}

/// Reads for which refs, and for how long, a person opens the door.
pub fn break_glass(request: proto::BreakGlassRequest) -> Result<escalation::BreakGlass, Rejection> {
    let span = one("span", &request.span)?;
    Ok(escalation::BreakGlass { refs: request.refs, span, once: !request.lasting, reason: request.reason })
}

pub(super) fn one<T>(name: &str, text: &str) -> Result<T, Rejection>
where
    T: std::str::FromStr<Err = crate::protocol::name::Malformed>,
{
    let mut arguments = Arguments::default();
    let value = arguments.read(name, text);
    arguments.finish(value)
}

fn words(
    reference: &str,
    at: &[String],
    text: String,
    failing_test: Option<Run>,
) -> Result<Placed<Words>, Rejection> {
    let mut arguments = Arguments::default();
    let reference = arguments.read("reference", reference);
    let places = places(&mut arguments, "at", at);
    let reference = arguments.finish(reference)?;
    Ok(Placed { reference, places, rest: Words { text, failing_test } })
}

fn places(arguments: &mut Arguments, name: &str, texts: &[String]) -> Vec<Place> {
    bounded(arguments, name, texts.len());
    arguments.read_all(name, texts.get(..PLACES_MAX).unwrap_or(texts))
}

/// Refuses a list that is longer than anybody reads.
pub(super) fn bounded(arguments: &mut Arguments, name: &str, count: usize) {
    if count > PLACES_MAX {
        arguments.refuse(
            name,
            &format!("at most {PLACES_MAX}"),
            &count.to_string(),
            "those that matter most",
        );
    }
}

fn named(places: Vec<Place>, found: &[bool]) -> Vec<NamedPlace> {
    debug_assert_eq!(places.len(), found.len(), "every place was looked up");
    places.into_iter().zip(found).map(|(place, found)| NamedPlace { place, found: *found }).collect()
}

pub(super) fn run(run: proto::Run) -> Run {
    Run { command: run.command, exit: run.exit, output: run.output }
}
