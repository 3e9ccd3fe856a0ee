//! What the three commands that show a version have in common: its record, and what it tells this
//! clone.

use super::failure::Failure;
use super::output::{Answer, visible};
use super::speaker::Speaker;
use super::text::Fence;
use super::{json as form, words};
use crate::client::proto::{ShowRequest, ShowResponse, Target, Version};
use crate::client::time_of;
use crate::protocol::name::ProposalName;

/// Files that are listed to a person; `--json` lists what the server sends.
const FILES_SHOWN_MAX: usize = 40;

/// Asks for a version's record, which is a reading of it.
pub async fn show(speaker: &Speaker, subject: &str, request_id: String) -> Result<ShowResponse, Failure> {
    let request = ShowRequest { request_id, subject: subject.to_owned() };
    Ok(speaker.client.show(request).await?)
}

/// Keeps what a reading told about the current version.
///
/// The reading stands whatever becomes of this, so what goes wrong is a warning.
pub async fn keep_told(speaker: &Speaker, proposal: &str, current: u32, answer: &mut Answer) {
    let proposal: Option<ProposalName> = proposal.parse().ok();
    let Some(proposal) = proposal else { return };
    let kept = match speaker.told().await {
        Ok(Some(told)) => told.current(&proposal, current).map_err(|problem| problem.to_string()),
        Ok(None) => Ok(()),
        Err(failure) => Err(failure.unmet.first().map_or_else(String::new, |unmet| unmet.message.clone())),
    };
    if let Err(why) = kept {
        answer.warnings.push(format!(
            "that {proposal} is at version {current} could not be kept here ({why}): propose with --after {current}"
        ));
    }
}

/// Whether something is to be said against a version.
pub fn is_in_the_way(target: &Target) -> bool {
    target.landed || !target.undone.is_empty() || !target.conflict.is_empty()
}

/// How a version stands to the ref that it is meant for; one line where nothing is to be said against it.
pub fn target(target: Option<&Target>) -> String {
    let Some(target) = target else { return String::new() };
    let name = visible(&target.name);
    let at =
        if target.commit.is_empty() { String::new() } else { format!(" at {}", visible(&target.commit)) };
    let mut out = String::new();
    if target.landed {
        out.push_str(&format!("CHANGES NOTHING: what it does has landed on {name}{at}\n"));
    }
    let named = |named: &[String], total: u32| {
        let shown: Vec<_> = named.iter().map(|one| visible(one)).collect();
        let more = (total as usize).saturating_sub(named.len());
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        format!("{}{more}", shown.join(", "))
    };
    if !target.undone.is_empty() {
        out.push_str(&format!(
            "TAKES BACK what landed on {name}{at} since its base: {}, by {}\n",
            named(&target.undone, target.undone_total),
            named(&target.undone_commits, target.undone_commits_total)
        ));
    }
    if !target.conflict.is_empty() {
        out.push_str(&format!("NOT MERGEABLE: it {}\n", visible(&target.conflict)));
    }
    if out.is_empty() {
        out = format!("target {name}{at}: it merges, and takes nothing back\n");
    }
    out
}

/// The record's head in words: what it is, where it stands, who has a say.
pub fn head(version: &Version, fence: &Fence) -> String {
    let mut out = format!("{} by {}", visible(&version.reference), visible(&version.producer));
    if let Some(at) = &version.proposed_at {
        out.push_str(&format!(" at {}", time_of(at)));
    }
    out.push_str(&format!(", {}\n", form::proposal_state(version.state())));
    if !version.current {
        out.push_str(&format!("NOT the current version: that is {}\n", visible(&version.current_reference)));
    }
    out.push_str(&format!("{} {}", form::artifact_kind(version.kind()), version.digest));
    if !version.base.is_empty() {
        out.push_str(&format!(" on {}", version.base));
    }
    out.push('\n');
    out.push_str(&target(version.target.as_ref()));
    for author in &version.authors {
        let whose =
            if author.member.is_empty() { String::new() } else { format!(", who is {}", author.member) };
        out.push_str(&format!(
            "author {} <{}>{}\n",
            visible(&author.name),
            visible(&author.email),
            visible(&whose)
        ));
    }
    for reviewer in &version.reviewers {
        let read = if reviewer.read { "was shown it" } else { "was not shown it yet" };
        let may = if reviewer.eligible { "" } else { "; NOT eligible: it proposed or authored this work" };
        out.push_str(&format!(
            "reviewer {} ({}) {read}{may}\n",
            visible(&reviewer.member),
            visible(&reviewer.lens)
        ));
    }
    out.push_str(&fence.around(&format!("summary by {}", visible(&version.producer)), &version.summary));
    for (id, answer) in &version.answers {
        out.push_str(&fence.around(&format!("answer to {}", visible(id)), answer));
    }
    out
}

/// The files that a version changes.
pub fn files(shown: &ShowResponse) -> String {
    let rows = shown.files.iter().take(FILES_SHOWN_MAX).map(|file| {
        let lines = if file.binary {
            "binary".to_owned()
        } else {
            format!("+{} -{}", file.added_lines, file.deleted_lines)
        };
        vec![file.status.clone(), lines, file.path.clone(), file.owners.join(", ")]
    });
    let owned = shown.files.iter().take(FILES_SHOWN_MAX).any(|file| !file.owners.is_empty());
    // Where nobody owns anything there is no column of nobody.
    let heads = ["FILE", "LINES", "PATH", "OWNERS"];
    let columns = if owned { 4 } else { 3 };
    let rows = rows.map(|row: Vec<String>| row.into_iter().take(columns).collect());
    let mut out = words::table(&heads[..columns], rows);
    let total = usize::try_from(shown.files_total).unwrap_or(usize::MAX).max(shown.files.len());
    match total - shown.files.len().min(FILES_SHOWN_MAX) {
        0 => {}
        more => out.push_str(&format!("and {more} more files\n")),
    }
    out
}

/// What its reviewers said.
pub fn said(version: &Version, fence: &Fence) -> String {
    let mut out = String::new();
    for vote in &version.votes {
        let (by, kind) = (visible(&vote.by), form::vote_kind(vote));
        out.push_str(&format!("vote of {by} ({}): {kind}", visible(&vote.lenses.join(", "))));
        if !vote.checked.is_empty() {
            out.push_str(&format!(", checked {}", visible(&vote.checked.join(", "))));
        }
        out.push('\n');
        for run in &vote.ran {
            out.push_str(&words::run("evidence", &by, run, fence));
        }
    }
    for check in &version.checks {
        let (name, status) = (visible(&check.name), form::check_status(check.status()));
        out.push_str(&format!("check {name}: {status}"));
        if !check.by.is_empty() {
            out.push_str(&format!(", reported by {}", visible(&check.by)));
        }
        if let Some(exit) = check.exit {
            out.push_str(&format!(", exit {exit}"));
        }
        out.push('\n');
        if let Some(output) = &check.output {
            out.push_str(&fence.around(&format!("output of check {name}"), output));
        }
    }
    for objection in &version.objections {
        out.push_str(&words::objection(objection, fence));
    }
    out
}
