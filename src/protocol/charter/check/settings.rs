//! Channels, limits, the repository and the checks.

use std::collections::BTreeSet;

use super::super::super::time::Span;
use super::super::pattern::{PATTERN_BYTES_MAX, is_full_ref, patterns};
use super::super::{Channel, Charter};
use super::{Findings, Place, is_name};

/// The longest duration: what is longer was mistyped.
const SPAN_MAX: Span = Span::seconds(366 * 24 * 3600);

/// The highest count, so that no sum of two overflows.
const COUNT_MAX: u32 = 1_000_000;

/// The highest limit of one text, in bytes.
const TEXT_BYTES_MAX: u32 = 1 << 20;

/// A ref as the door names the commits that members bring.
const STAGED: &str = "refs/countersign/staging/0000000000000000000000000000000000000000";

pub(super) fn check_channels(charter: &Charter, findings: &mut Findings) {
    for (name, channel) in &charter.channels {
        let place = || Place::key("channels").then(name);
        if !is_name(name) {
            findings.refuse_with(
                place(),
                format!("\"{name}\" is not a channel's name"),
                "1 to 64 of a-z and 0-9, a letter first, with single - _ or . between them",
            );
        }
        let Channel { webhook, command, secret_file, allow_private } = channel;
        match (webhook, command) {
            (None, None) => {
                findings.refuse_with(
                    place(),
                    format!("channel {name} leads nowhere"),
                    "give it a `webhook` or a `command`",
                );
            }
            (Some(_), Some(_)) => {
                findings.refuse_with(
                    place().then("command"),
                    format!("channel {name} has both a webhook and a command"),
                    "make two channels of it",
                );
            }
            (Some(_), None) | (None, Some(_)) => {}
        }
        if webhook.as_deref().is_some_and(|url| !is_web_address(url)) {
            findings.refuse(
                place().then("webhook"),
                format!("the webhook of {name} is not an http:// or https:// address"),
            );
        }
        if webhook.is_none() && secret_file.is_some() {
            findings.refuse(
                place().then("secret_file"),
                format!("channel {name} has a secret, but no webhook that it would sign"),
            );
        }
        if webhook.is_none() && *allow_private {
            findings.refuse(
                place().then("allow_private"),
                format!("channel {name} allows private addresses, but has no webhook"),
            );
        }
    }
}

fn is_web_address(url: &str) -> bool {
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
    rest.is_some_and(|rest| !rest.is_empty() && !rest.starts_with(['/', ':', '?', '#']))
        && !url.contains(char::is_whitespace)
}

/// Counts of zero would forbid a verb that the protocol needs; a cooldown of zero would leave churn
/// bounded by counts alone, where it must be bounded under any clock; a stall that is never noticed
/// would leave a standstill to itself.
pub(super) fn check_limits(charter: &Charter, findings: &mut Findings) {
    let limits = &charter.limits;
    for (key, count, least, most) in [
        ("withdraw_flips", limits.withdraw_flips, 1, COUNT_MAX),
        ("rounds", limits.rounds, 1, COUNT_MAX),
        ("vote_changes", limits.vote_changes, 1, COUNT_MAX),
        ("notes", limits.notes, 1, COUNT_MAX),
        ("text_bytes", limits.text_bytes, 1, TEXT_BYTES_MAX),
        ("escalation_reminders", limits.escalation_reminders, 0, COUNT_MAX),
    ] {
        if !(least..=most).contains(&count) {
            findings
                .refuse(Place::key("limits").then(key), format!("{key} is {count}, not {least} to {most}"));
        }
    }
    for (key, span, zero_allowed) in [
        ("withdraw_cooldown", limits.withdraw_cooldown, false),
        ("stall_after", limits.stall_after, false),
        ("answer_within", limits.answer_within, true),
        ("deliver_within", limits.deliver_within, true),
    ] {
        check_span(Place::key("limits").then(key), key, span, zero_allowed, findings);
    }
    let place = Place::key("publish").then("check_timeout");
    check_span(place, "check_timeout", charter.publish.check_timeout, false, findings);
}

fn check_span(place: Place, key: &str, span: Span, zero_allowed: bool, findings: &mut Findings) {
    if span.is_zero() && !zero_allowed {
        findings.refuse(place, format!("{key} is 0s, and must be longer"));
    } else if span > SPAN_MAX {
        findings.refuse(place, format!("{key} is {span}, longer than 366 days ({SPAN_MAX})"));
    }
}

/// With a repository every target must be protected: a ref that anybody can push to is no door, and
/// what stands on it is not what was reviewed.
pub(super) fn check_repository(charter: &Charter, findings: &mut Findings) {
    let targets = || {
        charter.phases.iter().enumerate().flat_map(|(phase_index, phase)| {
            phase.deliverables.iter().enumerate().filter_map(move |(index, deliverable)| {
                let place = Place::key("phases").item(phase_index).then("deliverables").item(index);
                Some((place.then("target"), deliverable.target.as_deref()?))
            })
        })
    };
    let Some(repository) = &charter.repository else {
        for (place, target) in targets() {
            findings.refuse_with(
                place,
                format!("{target} is a ref, but the team has no repository"),
                "add [repository], or leave `target` out",
            );
        }
        return;
    };
    let place = || Place::key("repository").then("protected");
    if repository.protected.is_empty() {
        findings.refuse(place(), "a repository without a protected ref has no door");
    }
    for (index, pattern) in repository.protected.iter().enumerate() {
        let place = place().item(index);
        if pattern.len() > PATTERN_BYTES_MAX {
            findings.refuse(place, format!("the pattern is longer than {PATTERN_BYTES_MAX} bytes"));
        } else if !pattern.starts_with("refs/") {
            findings.refuse_with(
                place,
                format!("\"{pattern}\" is not a pattern of full ref names"),
                format!("a branch is refs/heads/…, a tag refs/tags/…: perhaps \"refs/heads/{pattern}\""),
            );
        } else if is_servers_own(pattern) {
            let what = format!("\"{pattern}\" is under refs/countersign/, which the server keeps itself");
            findings.refuse(place, what);
        } else if pattern.ends_with('/') || pattern.contains("//") || pattern.contains(char::is_whitespace) {
            // It would look like a door, and be none.
            findings.refuse(place, format!("\"{pattern}\" matches no ref"));
        } else {
            match patterns([pattern.as_str()]) {
                Ok(set) if set.is_match(STAGED) => {
                    findings.refuse_with(
                        place,
                        format!(
                            "\"{pattern}\" covers refs/countersign/staging/, where members bring commits"
                        ),
                        "name refs/heads/ and refs/tags/ apart",
                    );
                }
                Ok(_) => {}
                Err(fault) => {
                    findings.refuse(place, format!("\"{pattern}\" is not a pattern: {}", fault.kind()));
                }
            }
        }
    }
    let protected = match patterns(repository.protected.iter().map(String::as_str)) {
        Ok(protected) => protected,
        Err(fault) => {
            // Told above already, unless they are too large together only.
            if findings.is_empty_at(&place()) {
                findings.refuse(place(), format!("the patterns don't compile together: {}", fault.kind()));
            }
            return;
        }
    };
    // The default target is written nowhere, but the list that lacks it may be.
    let publish = (Place::key("publish").then("target"), place(), charter.publish.target.as_str());
    let deliverables = targets().map(|(place, target)| (place.clone(), place, target));
    for (named, unprotected, target) in std::iter::once(publish).chain(deliverables) {
        if !is_full_ref(target) || is_servers_own(target) {
            findings.refuse_with(
                named,
                format!("\"{target}\" is not a ref that can be published to"),
                "a full name, such as refs/heads/main",
            );
        } else if !protected.is_match(target) {
            findings.refuse_with(
                unprotected,
                format!("{target} is published to, but not protected"),
                "add it to `protected` in [repository]",
            );
        }
    }
}

/// Whether a ref, or a pattern of refs, is one of those that the server keeps.
fn is_servers_own(name: &str) -> bool {
    name.strip_prefix("refs/countersign").is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

pub(super) fn check_required_checks(charter: &Charter, findings: &mut Findings) {
    let mut seen = BTreeSet::new();
    for (index, name) in charter.required_checks.iter().enumerate() {
        let place = Place::key("checks").then("required").item(index);
        if !is_name(name) {
            findings.refuse_with(
                place,
                format!("\"{name}\" is not a check's name"),
                "1 to 64 of a-z and 0-9, a letter first, with single - _ or . between them",
            );
        } else if !seen.insert(name) {
            findings.refuse(place, format!("check {name} is required twice"));
        }
    }
}
