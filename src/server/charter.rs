//! The charter's part of the review service: shown, and adopted by a person.

use std::path::Path;

use sha2::{Digest as _, Sha256};
use tonic::Code;

use super::answer::{Failure, wakes};
use super::call::{Call, request_key};
use crate::judge::own;
use crate::protocol::adoption::{Revise, RuleFault};
use crate::protocol::charter::{self, Graph, Repository};
use crate::protocol::name::Digest;
use crate::protocol::rule::{self, OwnRule};
use crate::protocol::{Adopted, Answer, Command, Team, Violation};
use crate::wire::proto;

/// Puts another charter in force.
pub(super) async fn adopt_charter(
    call: Call,
    request: proto::AdoptCharterRequest,
) -> Result<proto::AdoptCharterResponse, Failure> {
    let key = request_key(&request)?;
    let charter = charter::parse_bytes(&request.file, &request.charter);
    let rules = own_rules(request.rules);
    let digest = Digest::of_bytes(Sha256::digest(&request.charter).into());
    let text = String::from_utf8_lossy(&request.charter).into_owned();
    let person =
        call.team.peek(|team| team.adopted().is_some_and(|adopted| adopted.charter.is_human(&call.member)));
    // Who may not adopt has nothing compiled; and what is compiled holds nobody up.
    let refused = match charter.clone() {
        Ok(charter) if person => {
            let _turn = call.shared.compiling.lock().await;
            let (file, text, rules) = (request.file.clone(), text.clone(), rules.clone());
            let checked = move || own::check(&file, &text, &charter, &rules).err().unwrap_or_default();
            tokio::task::spawn_blocking(checked).await.map_err(|_| Failure::unexpected())?
        }
        _ => Vec::new(),
    };
    let refused = refused.into_iter().map(RuleFault::from).collect();
    let revise = Revise { text, digest, charter, rules, refused, reason: request.reason };
    let done = call.submit(Command::Revise(Box::new(revise)), key).await?;
    let Answer::Adopted { revision } = done.answer else { return Err(Failure::unexpected()) };
    let look = |team: &Team| {
        let (new, old) = (team.revision(revision)?, team.revision(revision.checked_sub(1)?)?);
        Some((new.digest.to_string(), changes(old, new)))
    };
    let (digest, changes) = call.team.peek(look).ok_or_else(Failure::unexpected)?;
    let woke = wakes(&done.woke);
    Ok(proto::AdoptCharterResponse { sequence: done.seq.0, revision, digest, changes, woke })
}

/// The charter in force, or the revision that was asked for, with its changes.
pub(super) async fn get_charter(
    call: Call,
    request: proto::GetCharterRequest,
) -> Result<proto::GetCharterResponse, Failure> {
    let look = |team: &Team, _| {
        let asked = match request.revision {
            0 => team.adopted(),
            revision => team.revision(revision),
        };
        let asked = asked.ok_or(request.revision)?;
        let against = match request.against {
            0 => team.revision(asked.revision.saturating_sub(1)),
            other => Some(team.revision(other).ok_or(other)?),
        };
        Ok((asked.clone(), against.cloned()))
    };
    let (found, seq) = call.team.read(look).await?;
    let (adopted, against) = found.map_err(|revision: u32| {
        let nearest = String::new();
        Violation::UnknownSubject { subject: format!("charter revision {revision}"), nearest }
    })?;
    let changes = against.iter().flat_map(|against| changes(against, &adopted));
    let graph = Graph::of(&adopted.charter);
    let repository = match &adopted.charter.repository {
        None => String::new(),
        Some(repository) => {
            let folder = call.shared.home.charter_folder(call.team.name()).map_err(|fault| {
                let message = "the charter's folder can't be found; the server's log says why";
                Failure::fault(Code::Internal, "HOME_UNUSABLE", message, &fault)
            })?;
            pushed_to(&folder, repository)
        }
    };
    Ok(proto::GetCharterResponse {
        sequence: seq.0,
        revision: adopted.revision,
        digest: adopted.digest.to_string(),
        text: adopted.text.to_string(),
        graph: graph.to_string(),
        mermaid: graph.mermaid(),
        repository,
        team: adopted.charter.team.to_string(),
        changes: changes.collect(),
        against: against.as_ref().map_or(0, |against| against.revision),
        rules: adopted.rules.iter().map(own_rule).collect(),
    })
}

/// What changed from one revision to another, a line each.
fn changes(old: &Adopted, new: &Adopted) -> Vec<String> {
    let mut changes = charter::diff(&old.charter, &new.charter);
    changes.extend(rule::changes(&old.rules, &new.rules));
    changes
}

/// Rules of a team's own, by id.
pub(super) fn own_rules(sent: Vec<proto::OwnRule>) -> Vec<OwnRule> {
    let mut rules: Vec<OwnRule> =
        sent.into_iter().map(|rule| OwnRule { id: rule.id, text: rule.text }).collect();
    rules.sort_by(|one, other| one.id.cmp(&other.id));
    rules
}

fn own_rule(rule: &OwnRule) -> proto::OwnRule {
    proto::OwnRule { id: rule.id.clone(), text: rule.text.clone() }
}

/// What members push to: the address, or the repository's absolute path.
fn pushed_to(folder: &Path, repository: &Repository) -> String {
    // `host:path` and `scheme://` are addresses; git takes a text with a slash before its first
    // colon for a path.
    let is_address =
        |url: &String| url.find(':').is_some_and(|colon| !url[..colon].contains('/')) || url.contains("://");
    match &repository.url {
        Some(url) if is_address(url) => url.clone(),
        Some(path) => folder.join(path).display().to_string(),
        None => folder.join(&repository.path).display().to_string(),
    }
}
