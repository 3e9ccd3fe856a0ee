//! Members: whether they can be told apart, reached, and known by their commits.

use std::collections::BTreeMap;

use super::super::super::name::{MemberName, skeleton};
use super::super::pattern::{PATTERN_BYTES_MAX, glob, patterns};
use super::super::{Charter, Member, MemberKind};
use super::{Findings, Place};

/// Names that mentions and the log use for something else.
const RESERVED: [&str; 5] = ["all", "everyone", "nobody", "server", "operator"];

/// The longest line about a member, in characters.
const ABOUT_CHARS_MAX: usize = 200;

pub(super) fn check_members(charter: &Charter, findings: &mut Findings) {
    if charter.members.is_empty() {
        findings.refuse_with(Place::key("members"), "the team has no members", "add [members.NAME] for each");
        return;
    }
    if charter.humans().next().is_none() {
        findings.refuse_with(
            Place::key("members"),
            "no member is a person, so escalations would reach nobody",
            "add a member with kind = \"human\"",
        );
    }
    let mut alike: BTreeMap<String, &MemberName> = BTreeMap::new();
    for (name, member) in &charter.members {
        let place = || Place::member(name);
        if RESERVED.contains(&name.as_str()) {
            findings
                .refuse(place(), format!("no member can be called {name}: the name means something else"));
        }
        if let Some(other) = alike.insert(skeleton(name.as_str()), name) {
            findings.refuse(place(), format!("members {other} and {name} look alike"));
        }
        if member.about.chars().count() > ABOUT_CHARS_MAX {
            let what = format!("the line about {name} is longer than {ABOUT_CHARS_MAX} characters");
            findings.refuse(place().then("about"), what);
        }
        if member.colour.as_deref().is_some_and(|colour| !is_colour(colour)) {
            findings.refuse_with(
                place().then("colour"),
                format!("the colour of {name} is not of the form #RRGGBB"),
                "such as \"#E07B26\"",
            );
        }
        check_notify(charter, name, member, findings);
        check_owns(name, member, findings);
    }
}

fn check_notify(charter: &Charter, name: &MemberName, member: &Member, findings: &mut Findings) {
    if member.kind != MemberKind::Human && !member.notify.is_empty() {
        findings.refuse_with(
            Place::member(name).then("notify"),
            format!("{name} is no person, and escalations reach persons only"),
            "an agent is woken by `countersign listen`",
        );
    }
    for (index, channel) in member.notify.iter().enumerate() {
        let place = Place::member(name).then("notify").item(index);
        if !charter.channels.contains_key(channel) {
            findings.unknown(place, "channel", channel, charter.channels.keys().map(String::as_str));
        } else if member.notify[..index].contains(channel) {
            findings.refuse(place, format!("{name} is notified by {channel} twice"));
        }
    }
}

fn check_owns(name: &MemberName, member: &Member, findings: &mut Findings) {
    for (index, pattern) in member.owns.iter().enumerate() {
        let place = Place::member(name).then("owns").item(index);
        if pattern.len() > PATTERN_BYTES_MAX {
            findings.refuse(place, format!("the pattern is longer than {PATTERN_BYTES_MAX} bytes"));
        } else if pattern.starts_with('/') || pattern.split('/').any(|part| matches!(part, "." | ".." | "")) {
            // Paths of a tree have no such parts, so the pattern would own nothing.
            findings.refuse_with(
                place,
                format!("\"{pattern}\" matches no path of a tree"),
                "write the path from the top of the tree, such as \"src/**\"",
            );
        } else if let Err(fault) = glob(pattern) {
            findings.refuse(place, format!("\"{pattern}\" is not a pattern: {}", fault.kind()));
        }
    }
    let place = Place::member(name).then("owns");
    if findings.is_empty_at(&place)
        && let Err(fault) = patterns(member.owns.iter().map(String::as_str))
    {
        findings.refuse(place, format!("the patterns don't compile together: {}", fault.kind()));
    }
}

/// Two members who share an e-mail address share their commits: neither could review the other, and
/// no one could say whose work it is.
pub(super) fn check_emails(charter: &Charter, findings: &mut Findings) {
    let mut holders: BTreeMap<String, &MemberName> = BTreeMap::new();
    for (name, member) in &charter.members {
        for (index, email) in member.emails.iter().enumerate() {
            let place = Place::member(name).then("emails").item(index);
            if !is_email(email) {
                findings.refuse_with(
                    place,
                    format!("\"{email}\" is not an e-mail address"),
                    "as git shows it between < and >",
                );
                continue;
            }
            match holders.insert(email.to_ascii_lowercase(), name) {
                Some(other) if other == name => {
                    findings.refuse(place, format!("{email} stands twice"));
                }
                Some(other) => {
                    findings.refuse(place, format!("{email} is claimed by {other} and {name}"));
                }
                None => {}
            }
        }
    }
}

/// What git can hold between `<` and `>`, with one `@`: no more is known of addresses.
fn is_email(text: &str) -> bool {
    let parts = text.split_once('@');
    parts.is_some_and(|(user, host)| !user.is_empty() && !host.is_empty() && !host.contains('@'))
        && !text.contains(|c: char| c.is_whitespace() || c.is_control() || matches!(c, '<' | '>'))
}

fn is_colour(text: &str) -> bool {
    text.strip_prefix('#')
        .is_some_and(|digits| digits.len() == 6 && digits.bytes().all(|b| b.is_ascii_hexdigit()))
}
