//! decide: what reads. A reading is recorded once; reading again changes nothing.

use super::command::{Read, ReadObjections};
use super::event::{ObjectionsRead, VersionRead};
use super::state::{Proposal, Version};
use crate::protocol::answer::Answer;
use crate::protocol::artifact::Artifact;
use crate::protocol::event::Event;
use crate::protocol::name::{MemberName, Subject, nearest};
use crate::protocol::rejection::Violation;
use crate::protocol::team::{Ask, Decision, Team};

/// Records that the member was shown exactly this version, unless it is unknown or has another
/// digest.
pub(in crate::protocol) fn read(ask: Ask<'_>, command: &Read) -> Decision {
    let subject = &command.subject;
    let proposal = match ask.proposal(&subject.proposal) {
        Ok(proposal) => proposal,
        Err(violation) => return Decision::refuse(violation),
    };
    let version: Option<&Version> = match subject.version {
        Some(number) => proposal.version(number),
        None => proposal.current(),
    };
    let Some(version) = version else {
        let current = proposal.current().map(|version| version.reference(&proposal.name).to_string());
        return Decision::refuse(Violation::UnknownSubject {
            subject: match subject.version {
                Some(_) => subject.to_string(),
                None => format!("a version of {subject}"),
            },
            nearest: current.unwrap_or_default(),
        });
    };
    let reference = version.reference(&proposal.name);
    if let Some(digest) = subject.digest.as_ref().filter(|digest| !digest.names(&version.artifact.digest)) {
        let given = crate::protocol::name::VersionRef { digest: digest.clone(), ..reference.clone() };
        return Decision::refuse(Violation::DigestMismatch { given, actual: reference });
    }
    let events = if version.read_by.contains_key(ask.by) {
        Vec::new()
    } else {
        let event =
            VersionRead { proposal: proposal.name.clone(), version: version.number, by: ask.by.clone() };
        vec![Event::from(event)]
    };
    Decision::accept(events, Answer::Read { reference })
}

/// Records that the producer was shown every open objection and note; for others there is nothing to
/// record.
pub(in crate::protocol) fn read_objections(ask: Ask<'_>, command: &ReadObjections) -> Decision {
    let proposal = match ask.proposal(&command.proposal) {
        Ok(proposal) => proposal,
        Err(violation) => return Decision::refuse(violation),
    };
    let unread: Vec<_> = proposal.unread().map(|objection| objection.id).collect();
    let events = if proposal.producer != *ask.by || unread.is_empty() {
        Vec::new()
    } else {
        let event =
            ObjectionsRead { proposal: proposal.name.clone(), by: ask.by.clone(), objections: unread };
        vec![Event::from(event)]
    };
    Decision::accept(events, Answer::ObjectionsRead { proposal: proposal.name.clone() })
}

/// The newest version before that one which the member was shown.
pub fn last_read(proposal: &Proposal, by: &MemberName, before: u32) -> Option<u32> {
    let mut earlier = proposal.versions.iter().rev().filter(|version| version.number < before);
    earlier.find(|version| version.read_by.contains_key(by)).map(|version| version.number)
}

/// The version with which a later one is compared for somebody who reads on: the last one that the member was
/// shown before it. 0 where there is none, so that all of it is new.
pub fn read_last(team: &Team, by: &MemberName, subject: &Subject) -> Result<u32, Violation> {
    let Some(proposal) = team.review().proposal(&subject.proposal) else {
        let known = team.review().proposals().map(|proposal| proposal.name.as_str());
        let nearest = nearest(subject.proposal.as_str(), known).unwrap_or_default().to_owned();
        return Err(Violation::UnknownSubject { subject: subject.to_string(), nearest });
    };
    let version = subject.version.unwrap_or_else(|| proposal.current_number());
    Ok(last_read(proposal, by, version).unwrap_or(0))
}

/// The earlier version with which a version is compared, where the member was shown it. A reading is
/// never taken back, so what this says stays true.
pub fn read_before(
    team: &Team,
    by: &MemberName,
    subject: &Subject,
    earlier: u32,
) -> Result<Artifact, Violation> {
    let proposal = team.review().proposal(&subject.proposal);
    let Some((proposal, version)) = proposal.and_then(|found| Some((found, found.version(earlier)?))) else {
        let nearest = proposal.map(Proposal::current_ref).unwrap_or_default();
        return Err(Violation::UnknownSubject {
            subject: format!("{}@{earlier}", subject.proposal),
            nearest,
        });
    };
    if !version.read_by.contains_key(by) {
        let reference = version.reference(&proposal.name);
        return Err(Violation::UnreadVersion { reference, member: by.clone() });
    }
    Ok(version.artifact.clone())
}
