//! The JSON of what is spoken of: one form for the commands and the page. Names and words are an interface:
//! see docs/reference/commands.md. Texts are carried verbatim.

use prost_types::Timestamp;
use serde_json::{Map, Value, json};

use super::{proto, time_of};

/// One unmet condition, with what can be done.
#[derive(Clone, Debug, PartialEq)]
pub struct Unmet {
    /// The stable code.
    pub code: String,
    /// What is wrong, in one sentence.
    pub message: String,
    /// The command that would work, or who can.
    pub remedy: String,
    /// The rule that denies; empty where it is no rule.
    pub rule: String,
    /// The operands of the sentence.
    pub facts: Map<String, Value>,
}

impl From<proto::Violation> for Unmet {
    fn from(violation: proto::Violation) -> Self {
        Self {
            code: violation.code,
            message: violation.message,
            remedy: violation.remedy,
            rule: violation.rule,
            facts: violation.facts.into_iter().map(|(name, value)| (name, fact(value))).collect(),
        }
    }
}

/// A refusal: `code`, `message`, `facts` and `remedy` are those of the first condition.
pub fn refusal(unmet: &[Unmet], request_id: Option<&str>, more: u32) -> Map<String, Value> {
    let mut out = Map::new();
    out.insert("ok".to_owned(), false.into());
    if let Some(first) = unmet.first() {
        out.insert("code".to_owned(), first.code.clone().into());
        out.insert("message".to_owned(), first.message.clone().into());
        out.insert("facts".to_owned(), first.facts.clone().into());
        out.insert("remedy".to_owned(), first.remedy.clone().into());
    }
    if let Some(request_id) = request_id {
        out.insert("request_id".to_owned(), request_id.into());
    }
    out.insert("violations".to_owned(), unmet.iter().map(condition).collect());
    if more > 0 {
        out.insert("more".to_owned(), more.into());
    }
    out
}

fn condition(unmet: &Unmet) -> Value {
    let mut out = json!({
        "code": unmet.code,
        "message": unmet.message,
        "facts": unmet.facts,
        "remedy": unmet.remedy,
    });
    if !unmet.rule.is_empty() {
        out["rule"] = unmet.rule.clone().into();
    }
    out
}

/// A fact of a refusal.
pub fn fact(fact: proto::Fact) -> Value {
    match fact.value {
        None => Value::Null,
        Some(proto::fact::Value::Text(text)) => text.into(),
        Some(proto::fact::Value::Number(number)) => number.into(),
        Some(proto::fact::Value::Texts(texts)) => texts.items.into(),
    }
}

/// A word of a proto's enumeration, as people and scripts read it: `under-review`.
pub fn word(name: &str, prefix: &str) -> String {
    name.strip_prefix(prefix).unwrap_or(name).to_ascii_lowercase().replace('_', "-")
}

/// A time in RFC 3339, or null.
pub fn time(stamp: Option<&Timestamp>) -> Value {
    stamp.map_or(Value::Null, |stamp| time_of(stamp).to_string().into())
}

/// Text, or null where it is empty.
pub fn or_null(text: &str) -> Value {
    if text.is_empty() { Value::Null } else { text.into() }
}

/// Whom a command woke.
pub fn woke(woke: &[proto::Wake]) -> Value {
    let one = |wake: &proto::Wake| {
        json!({
            "member": wake.member,
            "outcome": outcome(wake),
            "presence": presence(wake),
            "since": time(wake.since.as_ref()),
        })
    };
    woke.iter().map(one).collect()
}

/// What became of a wake: `woke` or `stored`.
pub fn outcome(wake: &proto::Wake) -> String {
    word(wake.outcome().as_str_name(), "WAKE_OUTCOME_")
}

/// Whether a wake reaches a member now: `listening`, `deaf`…
pub fn presence(wake: &proto::Wake) -> String {
    presence_name(wake.presence())
}

/// The same by its name.
pub fn presence_name(presence: proto::Presence) -> String {
    word(presence.as_str_name(), "PRESENCE_")
}

/// Where a proposal stands: `under-review`, `accepted`…
pub fn proposal_state(state: proto::ProposalState) -> String {
    word(state.as_str_name(), "PROPOSAL_STATE_")
}

/// Where a circle stands: `open`, `complete`…
pub fn circle_state(circle: &proto::Circle) -> String {
    word(circle.state().as_str_name(), "CIRCLE_STATE_")
}

/// What kind of artifact: `commit` or `bundle`.
pub fn artifact_kind(kind: proto::ArtifactKind) -> String {
    word(kind.as_str_name(), "ARTIFACT_KIND_")
}

/// Whether it blocks: `objection` or `note`.
pub fn objection_kind(objection: &proto::Objection) -> String {
    word(objection.kind().as_str_name(), "OBJECTION_KIND_")
}

/// How an objection stands: `open`, `resolved`, `mistaken` or `overruled`.
pub fn objection_status(objection: &proto::Objection) -> String {
    word(objection.status().as_str_name(), "OBJECTION_STATUS_")
}

/// Whether a requirement holds: `SATISFIED`, `UNSATISFIED`…
pub fn requirement_state(requirement: &proto::Requirement) -> String {
    let name = requirement.state().as_str_name();
    name.strip_prefix("REQUIREMENT_STATE_").unwrap_or(name).to_owned()
}

/// How an escalation stands: `open`, `answered` or `closed`.
pub fn escalation_state(escalation: &proto::Escalation) -> String {
    word(escalation.state().as_str_name(), "ESCALATION_STATE_")
}

/// A command that was run.
pub fn run(run: &proto::Run) -> Value {
    json!({ "command": run.command, "exit": run.exit, "output": run.output })
}

/// An objection or a note.
pub fn objection(objection: &proto::Objection) -> Value {
    json!({
        "id": objection.id,
        "by": objection.by,
        "lens": objection.lenses.join(","),
        "lenses": objection.lenses,
        "version": objection.version,
        "raised_on": or_null(&objection.raised_on),
        "kind": objection_kind(objection),
        "text": objection.text,
        "at": objection.at,
        "failing_test": objection.failing_test.as_ref().map(run),
        "status": objection_status(objection),
        "raised_at": time(objection.raised_at.as_ref()),
        "read": objection.read,
        "closed_by": or_null(&objection.closed_by),
        "reason": or_null(&objection.reason),
        "answers": objection.answers.iter()
            .map(|reply| json!({ "version": reply.version, "text": reply.text }))
            .collect::<Value>(),
    })
}

/// A version, with what its reviewers said.
pub fn version(version: &proto::Version) -> Value {
    let authors = version.authors.iter().map(
        |author| json!({ "name": author.name, "email": author.email, "member": or_null(&author.member) }),
    );
    json!({
        "ref": version.reference,
        "proposal": version.proposal,
        "version": version.version,
        "digest": version.digest,
        "kind": artifact_kind(version.kind()),
        "summary": version.summary,
        "producer": version.producer,
        "proposed_at": time(version.proposed_at.as_ref()),
        "current": version.current,
        "current_ref": or_null(&version.current_reference),
        "state": proposal_state(version.state()),
        "base": or_null(&version.base),
        "authors": authors.collect::<Value>(),
        "reviewers": version.reviewers.iter().map(reviewer).collect::<Value>(),
        "votes": version.votes.iter().map(vote).collect::<Value>(),
        "objections": version.objections.iter().map(objection).collect::<Value>(),
        "answers": version.answers,
        "checks": version.checks.iter().map(check).collect::<Value>(),
        "target": target(version.target.as_ref()),
    })
}

/// How a version stands to the ref that it is meant for.
pub fn target(target: Option<&proto::Target>) -> Value {
    let Some(target) = target else { return Value::Null };
    json!({
        "name": target.name,
        "commit": or_null(&target.commit),
        "landed": target.landed,
        "undone": target.undone,
        "undone_total": target.undone_total,
        "undone_commits": target.undone_commits,
        "undone_commits_total": target.undone_commits_total,
        "conflict": or_null(&target.conflict),
        "conflicts_with": target.conflicts_with,
        "conflicts": target.conflicts,
        "conflicts_total": target.conflicts_total,
    })
}

/// Who must approve, and how that member stands.
fn reviewer(reviewer: &proto::Reviewer) -> Value {
    let voted = reviewer.voted_on > 0;
    json!({
        "member": reviewer.member,
        "lens": reviewer.lens,
        "eligible": reviewer.eligible,
        "read": reviewer.read,
        "vote": voted.then(|| word(reviewer.vote().as_str_name(), "VOTE_KIND_")),
        "voted_on": voted.then_some(reviewer.voted_on),
        "overruled": reviewer.overruled,
    })
}

/// A proposal's record: the one at a glance, with its versions and objections.
pub fn record(record: &proto::GetProposalResponse) -> Value {
    let mut out = proposal(&record.proposal.clone().unwrap_or_default());
    let versions = record.versions.iter().map(|one| {
        let mut one = version(one);
        if let Some(members) = one.as_object_mut() {
            members.remove("objections");
        }
        one
    });
    out["versions"] = versions.collect();
    out["objections"] = record.objections.iter().map(objection).collect();
    out["sequence"] = record.sequence.into();
    out
}

/// How a required check stands: `passed`, `failed`, `skipped` or `missing`.
pub fn check_status(status: proto::CheckStatus) -> String {
    word(status.as_str_name(), "CHECK_STATUS_")
}

fn check(check: &proto::Check) -> Value {
    json!({
        "name": check.name,
        "status": check_status(check.status()),
        "by": or_null(&check.by),
        "at": time(check.at.as_ref()),
        "exit": check.exit,
        "output": check.output,
    })
}

/// Which way a vote goes: `approve` or `object`.
pub fn vote_kind(vote: &proto::Vote) -> String {
    word(vote.kind().as_str_name(), "VOTE_KIND_")
}

fn vote(vote: &proto::Vote) -> Value {
    json!({
        "by": vote.by,
        "lens": vote.lenses.join(","),
        "lenses": vote.lenses,
        "version": vote.version,
        "vote": vote_kind(vote),
        "at": time(vote.at.as_ref()),
        "checked": vote.checked,
        "ran": vote.ran.iter().map(run).collect::<Value>(),
    })
}

/// What a check of a claim came to: `supported`, `refuted` or `unverifiable`.
pub fn verdict(verdict: proto::Verdict) -> String {
    word(verdict.as_str_name(), "VERDICT_")
}

/// An entry of the transcript.
pub fn entry(entry: &proto::TranscriptEntry) -> Value {
    let kind = word(entry.kind().as_str_name(), "ENTRY_KIND_");
    let mut out = json!({
        "id": entry.id,
        "kind": kind,
        "by": or_null(&entry.by),
        "at": time(entry.at.as_ref()),
        "text": entry.text,
        "about": or_null(&entry.about),
        "sequence": entry.sequence,
    });
    match entry.kind() {
        proto::EntryKind::Message | proto::EntryKind::Claim => {
            out["mentions"] = entry.mentions.clone().into();
            out["reply"] = or_null(&entry.reply);
            out["chain"] = json!({ "root": entry.root, "length": entry.length, "ended": entry.ended });
        }
        proto::EntryKind::Verdict => out["verdict"] = verdict(entry.verdict()).into(),
        proto::EntryKind::Escalation => out["cause"] = entry.word.clone().into(),
        proto::EntryKind::Decision => out["decision"] = or_null(&entry.word),
        proto::EntryKind::CallOut => out["rule"] = entry.word.clone().into(),
        proto::EntryKind::Unspecified => {}
    }
    if let Some(evidence) = &entry.evidence {
        let ran: Value = evidence.ran.iter().map(run).collect();
        out["evidence"] = json!({ "at": evidence.at, "ran": ran });
    }
    out
}

/// A file that a version changes.
pub fn file(file: &proto::FileChange) -> Value {
    json!({
        "path": file.path,
        "status": file.status,
        "added_lines": file.added_lines,
        "deleted_lines": file.deleted_lines,
        "binary": file.binary,
        "owners": file.owners,
    })
}

/// A proposal at a glance.
pub fn proposal(proposal: &proto::Proposal) -> Value {
    let approvals = proposal.approvals.iter().map(|approval| {
        json!({
            "by": approval.by,
            "lens": approval.lens,
            "version": approval.version,
            "overruled": approval.overruled,
        })
    });
    json!({
        "name": proposal.name,
        "version": proposal.version,
        "ref": or_null(&proposal.reference),
        "state": proposal_state(proposal.state()),
        "producer": proposal.producer,
        "approvals": approvals.collect::<Value>(),
        "open_objections": proposal.open_objections,
        "circle": or_null(&proposal.circle),
        "cooldown_until": time(proposal.cooldown_until.as_ref()),
        "reviewers": proposal.reviewers.iter().map(reviewer).collect::<Value>(),
        "summary": or_null(&proposal.summary),
        "proposed_at": time(proposal.proposed_at.as_ref()),
    })
}

/// Who holds the ball.
pub fn status(status: &proto::GetStatusResponse) -> Value {
    json!({
        "team": status.team,
        "member": status.member,
        "circles": status.circles.iter().map(circle).collect::<Value>(),
        "proposals": status.proposals.iter().map(proposal).collect::<Value>(),
        "obligations": status.obligations.iter().map(obligation).collect::<Value>(),
        "waiting": status.waiting.iter().map(waiting).collect::<Value>(),
        "escalations": status.escalations.iter().map(escalation).collect::<Value>(),
        "recovery_patches": status.recovery_patches,
        "attempts": status.attempts.iter().map(attempt).collect::<Value>(),
        "sequence": status.sequence,
    })
}

/// What a circle's completion requires.
pub fn explained(name: &str, explained: &proto::ExplainResponse) -> Value {
    let mut out = json!({
        "name": name,
        "circle": explained.circle,
        "requirements": explained.requirements.iter().map(requirement).collect::<Value>(),
        "sequence": explained.sequence,
    });
    let publishing = explained.about.as_ref().map(publishing);
    if let Some(publishing) = publishing.filter(|told| *told != json!({})) {
        out["publishing"] = publishing;
    }
    out
}

/// A version that was shown, with its files.
pub fn shown(shown: &proto::ShowResponse) -> Value {
    let mut out = version(&shown.version.clone().unwrap_or_default());
    out["files"] = shown.files.iter().map(file).collect();
    out["files_total"] = json!(shown.files_total.max(shown.files.len() as u64));
    out["sequence"] = shown.sequence.into();
    out["read_before"] = if shown.read_before == 0 { Value::Null } else { shown.read_before.into() };
    out
}

/// A charter, with what it changed.
pub fn charter(charter: &proto::GetCharterResponse) -> Value {
    json!({
        "team": charter.team,
        "revision": charter.revision,
        "digest": charter.digest,
        "text": charter.text,
        "repository": charter.repository,
        "rules": charter.rules.iter().map(|rule| json!({ "id": rule.id, "text": rule.text })).collect::<Value>(),
        "diff": charter.changes,
    })
}

/// A rule, with what it denied so far.
pub fn rule(rule: &proto::Rule) -> Value {
    json!({
        "id": rule.id,
        "title": rule.title,
        "when": rule.when,
        "about": rule.about,
        "owes": rule.owes,
        "mode": rule.mode,
        "own": rule.own,
        "denied": rule.denied,
        "called_out": rule.called_out,
        "incident": rule.incident,
        "remedy": rule.remedy,
    })
}

/// A circle at a glance.
pub fn circle(circle: &proto::Circle) -> Value {
    let mut out = json!({
        "name": circle.name,
        "ref": circle.reference,
        "state": circle_state(circle),
        "confirmed": circle.confirmed,
        "waiting_for": circle.waiting_for,
        "proposals": circle.proposals,
        "phase": circle.phase,
    });
    if let (Value::Object(of), Value::Object(more)) = (&mut out, publishing(circle)) {
        of.extend(more);
    }
    out
}

/// How publishing a circle goes or went.
pub fn publishing(circle: &proto::Circle) -> Value {
    let mut out = json!({});
    if circle.publishing_since.is_some() {
        out["publishing_since"] = time(circle.publishing_since.as_ref());
    }
    if !circle.published.is_empty() {
        out["published"] = circle.published.iter().map(published_ref).collect();
    }
    if !circle.unpublished_because.is_empty() {
        out["unpublished_because"] = circle.unpublished_because.as_str().into();
    }
    if let Some(check) = &circle.publish_check {
        out["publish_check"] = json!({ "command": check.command, "exit": check.exit });
        if !check.output.is_empty() {
            out["publish_check"]["output"] = check.output.as_str().into();
        }
    }
    out
}

fn published_ref(one: &proto::PublishedRef) -> Value {
    let from = Some(one.from.as_str()).filter(|from| !from.is_empty());
    json!({ "ref": one.name, "from": from, "to": one.to, "merges": one.merges })
}

/// What a member owes.
pub fn obligation(obligation: &proto::Obligation) -> Value {
    let mut out = json!({
        "id": obligation.id,
        "member": obligation.member,
        "kind": obligation.kind,
        "subject": obligation.subject,
        "since": time(obligation.since.as_ref()),
        "command": obligation.command,
    });
    if obligation.due.is_some() {
        out["due"] = time(obligation.due.as_ref());
    }
    out
}

/// A question put to a person.
pub fn escalation(escalation: &proto::Escalation) -> Value {
    let waiting = escalation.waiting_on.iter().map(owing);
    json!({
        "id": escalation.id,
        "cause": escalation.cause,
        "subject": escalation.subject,
        "text": escalation.text,
        "opened_at": time(escalation.opened_at.as_ref()),
        "waiting_on": waiting.collect::<Value>(),
        "reminders": escalation.reminders,
        "deliveries": escalation.deliveries.iter().map(delivery).collect::<Value>(),
        "state": escalation_state(escalation),
        "decisions": escalation.decisions,
        "decision": or_null(&escalation.decision),
        "answered_by": or_null(&escalation.answered_by),
        "reason": or_null(&escalation.reason),
    })
}

/// One on whom something waits, and whether a wake reaches it.
fn owing(waiting: &proto::Waiting) -> Value {
    let mut out = json!({
        "member": waiting.member,
        "kind": waiting.kind,
        "since": time(waiting.since.as_ref()),
    });
    if waiting.presence() != proto::Presence::Unspecified {
        out["presence"] = presence_name(waiting.presence()).into();
        out["present_since"] = time(waiting.present_since.as_ref());
    }
    out
}

/// What became of an escalation at one channel.
fn delivery(delivery: &proto::Delivery) -> Value {
    json!({
        "channel": delivery.channel,
        "level": delivery.level,
        "sent_at": time(delivery.sent_at.as_ref()),
        "failures": delivery.failures,
        "why": or_null(&delivery.why),
        "next_at": time(delivery.next_at.as_ref()),
    })
}

/// A member who waits, and for whom.
pub fn waiting(waiting: &proto::WaitFor) -> Value {
    let on = waiting.waiting_for.iter().map(owing);
    json!({
        "member": waiting.member,
        "circle": waiting.circle,
        "waiting_for": on.collect::<Value>(),
    })
}

/// What one member was refused with one code.
pub fn attempt(attempt: &proto::Attempt) -> Value {
    json!({
        "member": if attempt.member.is_empty() { Value::Null } else { attempt.member.clone().into() },
        "ref": if attempt.reference.is_empty() { Value::Null } else { attempt.reference.clone().into() },
        "code": attempt.code,
        "count": attempt.count,
        "at": attempt.at.as_ref().map(|at| time_of(at).to_string()),
        "message": attempt.message,
    })
}

/// A member, and whether a wake reaches it now.
pub fn member(entry: &proto::RosterEntry) -> Value {
    json!({
        "name": entry.name,
        "presence": presence_name(entry.presence()),
        "since": time(entry.since.as_ref()),
        "owes": entry.owes,
    })
}

/// A requirement, as explain shows it.
pub fn requirement(requirement: &proto::Requirement) -> Value {
    json!({
        "name": requirement.name,
        "state": requirement_state(requirement),
        "who": requirement.who,
        "command": requirement.command,
        "detail": requirement.detail,
        "rule": requirement.rule,
        "subject": requirement.subject,
        "mode": requirement.mode,
    })
}

/// An event of the log. Its body is the JSON that is stored; what can't be read as such stands as text.
pub fn event(event: &proto::Event) -> Value {
    let body: Value = serde_json::from_str(&event.body).unwrap_or_else(|_| event.body.clone().into());
    json!({
        "sequence": event.sequence,
        "at": time(event.at.as_ref()),
        "actor": event.actor,
        "kind": event.kind,
        "schema": event.schema,
        "body": body,
    })
}

/// Ends an answer: how many bytes of which text were stored, where that is told, and what it reflects.
fn ending(mut out: Value, stored: Option<Value>, sequence: u64) -> Value {
    if let Some(stored) = stored {
        out["stored"] = stored;
    }
    out["sequence"] = sequence.into();
    out
}

/// What Approve answers.
pub fn approved(answer: &proto::ApproveResponse, stored: Option<Value>) -> Value {
    let out = json!({
        "ref": answer.reference,
        "woke": woke(&answer.woke),
        "called_out": answer.called_out,
    });
    ending(out, stored, answer.sequence)
}

/// What Object answers.
pub fn objected(answer: &proto::ObjectResponse, stored: Option<Value>) -> Value {
    let out = json!({
        "objection": answer.objection,
        "ref": answer.reference,
        "woke": woke(&answer.woke),
        "called_out": answer.called_out,
    });
    ending(out, stored, answer.sequence)
}

/// What Resolve answers.
pub fn resolved(answer: &proto::ResolveResponse, stored: Option<Value>) -> Value {
    ending(json!({ "objection": answer.objection, "woke": woke(&answer.woke) }), stored, answer.sequence)
}

/// What Confirm answers.
pub fn confirmed(answer: &proto::ConfirmResponse) -> Value {
    let out = json!({
        "circle": answer.circle,
        "complete": answer.complete,
        "waiting_for": answer.waiting_for,
        "woke": woke(&answer.woke),
    });
    ending(out, None, answer.sequence)
}

/// What Objections answers.
pub fn objections(proposal: &str, answer: &proto::ObjectionsResponse) -> Value {
    let out = json!({
        "proposal": proposal,
        "version": answer.version,
        "objections": answer.objections.iter().map(objection).collect::<Value>(),
    });
    ending(out, None, answer.sequence)
}

/// Adds to a version what it was compared with, and how it differs.
pub fn compared(mut version: Value, diff: &proto::DiffResponse) -> Value {
    version["from"] = diff.from.into();
    version["on"] = or_null(&diff.target);
    version["diff"] = diff.text.as_str().into();
    version["truncated"] = diff.truncated.into();
    version
}

/// What Escalate answers, with the escalation itself.
pub fn escalated(answer: &proto::EscalateResponse, escalations: &Value, stored: Option<Value>) -> Value {
    let out = json!({
        "escalation": answer.escalation,
        "escalations": escalations,
        "woke": woke(&answer.woke),
    });
    ending(out, stored, answer.sequence)
}

/// What AnswerEscalation answers to that decision, with the escalation itself.
pub fn answered(
    answer: &proto::AnswerEscalationResponse,
    decision: &str,
    escalations: &Value,
    stored: Option<Value>,
) -> Value {
    let out = json!({
        "escalation": answer.escalation,
        "escalations": escalations,
        "decision": decision,
        "woke": woke(&answer.woke),
    });
    ending(out, stored, answer.sequence)
}

/// What Say answers.
pub fn said(answer: &proto::SayResponse, stored: Option<Value>) -> Value {
    let out = json!({
        "message": answer.message,
        "mentions": answer.mentions,
        "woke": woke(&answer.woke),
        "chain": { "root": answer.root, "length": answer.length, "ended": answer.ended },
        "escalation": or_null(&answer.escalation),
        "called_out": answer.called_out,
    });
    ending(out, stored, answer.sequence)
}

/// What JudgeClaim answers.
pub fn judged(answer: &proto::JudgeClaimResponse, stored: Option<Value>) -> Value {
    let out = json!({
        "message": answer.message,
        "verdict": verdict(answer.verdict()),
        "woke": woke(&answer.woke),
        "called_out": answer.called_out,
    });
    ending(out, stored, answer.sequence)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_those_of_the_reference() {
        use proto::{ProposalState, RequirementState};
        let states = [
            ProposalState::ToDeliver,
            ProposalState::UnderReview,
            ProposalState::Objected,
            ProposalState::Accepted,
            ProposalState::Withdrawn,
            ProposalState::Complete,
            ProposalState::Published,
            ProposalState::Closed,
            ProposalState::Dropped,
        ];
        assert_eq!(
            states.map(proposal_state),
            [
                "to-deliver",
                "under-review",
                "objected",
                "accepted",
                "withdrawn",
                "complete",
                "published",
                "closed",
                "dropped"
            ]
        );
        let wake = |presence: proto::Presence| proto::Wake {
            presence: presence.into(),
            outcome: proto::WakeOutcome::Stored.into(),
            ..Default::default()
        };
        assert_eq!(presence(&wake(proto::Presence::ReArming)), "re-arming");
        assert_eq!(presence(&wake(proto::Presence::NotJoined)), "not-joined");
        assert_eq!(outcome(&wake(proto::Presence::Deaf)), "stored");
        let requirement =
            proto::Requirement { state: RequirementState::NotApplicable.into(), ..Default::default() };
        assert_eq!(requirement_state(&requirement), "NOT_APPLICABLE");
    }
}
