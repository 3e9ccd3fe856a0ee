//! What a play shows of what a member gets to see.

use std::fmt::Write as _;

use super::play::{Seen, Standing};

pub(super) fn shown(standing: &Standing) -> String {
    let mut out = String::new();
    for (name, _, state, confirmed) in &standing.circles {
        let _ = write!(out, "circle {name}: {state}");
        if !confirmed.is_empty() {
            let _ = write!(out, ", confirmed by {}", confirmed.join(", "));
        }
        out.push('\n');
    }
    for (name, reference, state, approvals, open) in &standing.proposals {
        let at = if reference.is_empty() { name } else { reference };
        let _ = write!(out, "{at}: {state}");
        if !approvals.is_empty() {
            let _ = write!(out, ", approved by {}", approvals.join(", "));
        }
        if !open.is_empty() {
            let _ = write!(out, ", open {}", open.join(", "));
        }
        out.push('\n');
    }
    for (id, cause, subject) in &standing.escalations {
        let _ = writeln!(out, "{id} before a person: {cause} of {subject}");
    }
    out
}

pub(super) fn said(seen: &Seen) -> String {
    let several = |items: &[String]| items.join(", ");
    match seen {
        Seen::Proposed { reference, escalated } if escalated.is_empty() => format!("{reference} stands\n"),
        Seen::Proposed { reference, escalated } => {
            format!("{reference} stands; {} before a person\n", several(escalated))
        }
        Seen::Shown { reference } => format!("shown {reference}\n"),
        Seen::Objections { lines } if lines.is_empty() => "none\n".to_owned(),
        Seen::CalledOut { lines } | Seen::Requirements { lines } if lines.is_empty() => {
            "nothing\n".to_owned()
        }
        Seen::Objections { lines } | Seen::Requirements { lines } | Seen::CalledOut { lines } => {
            lines.join("\n") + "\n"
        }
        Seen::Approved { reference } => format!("{reference} approved\n"),
        Seen::Raised { id, reference } => format!("{id} on {reference}\n"),
        Seen::Closed { id } => format!("{id} closed\n"),
        Seen::Withdrawn { flips, flips_left, until } => {
            format!("withdrawn, {flips} flips, {flips_left} left, back at {until}\n")
        }
        Seen::Checked { name, status, reference } => format!("check {name} is {status} on {reference}\n"),
        Seen::Confirmed { complete: true, .. } => "complete\n".to_owned(),
        Seen::Confirmed { waiting_for, .. } => format!("confirmed, waiting for {}\n", several(waiting_for)),
        Seen::Escalated { id } => format!("{id} before a person\n"),
        Seen::Heard { woken: None } => "blocked\n".to_owned(),
        Seen::Heard { woken: Some((wake, owed, by)) } => {
            format!("{wake}: {}\nwoken by {}\n", several(owed), several(by))
        }
        Seen::Answered { id } => format!("{id} answered\n"),
        Seen::Said { id, ended, escalation, woke } => {
            let woke = if woke.is_empty() {
                "this woke nobody".to_owned()
            } else {
                format!("for {}", several(woke))
            };
            let told = escalation.as_ref().map(|id| format!("; {id} before a person")).unwrap_or_default();
            let ended = if *ended { "; the chain ended" } else { "" };
            format!("{id} stands, {woke}{ended}{told}\n")
        }
        Seen::Judged { id, verdict } => format!("{id} is {verdict}\n"),
        Seen::Transcript { lines } if lines.is_empty() => "nothing\n".to_owned(),
        Seen::Transcript { lines } => lines.join("\n") + "\n",
        Seen::Adopted { revision } => format!("revision {revision} in force\n"),
        Seen::Refused { violations } => {
            let mut out = String::new();
            for (index, violation) in violations.iter().enumerate() {
                let lead = if index == 0 { "refused" } else { "  also" };
                let _ = writeln!(out, "{lead} {}", violation.code);
                // An argument is called as the command line or the message calls it.
                let message = match violation.message.split_once(": ") {
                    Some((_, rest)) if violation.code == "MALFORMED" => rest,
                    _ => &violation.message,
                };
                let _ = writeln!(out, "  {}", shortened(message));
                let _ = writeln!(out, "  > {}", shortened(&violation.remedy));
            }
            out
        }
    }
}

fn shortened(text: &str) -> String {
    let text: String = text.replace('\n', " / ");
    if text.chars().count() <= 300 { text } else { text.chars().take(300).chain(['…']).collect() }
}

/// Digests differ between stages; a play speaks of versions.
pub(super) fn without_digests(text: &str) -> String {
    let hex = |c: char| c.is_ascii_digit() || ('a'..='f').contains(&c);
    let mut out = String::new();
    let mut rest = text;
    while let Some(colon) = rest.find(':') {
        out.push_str(&rest[..colon]);
        let after = &rest[colon + 1..];
        let digits = after.chars().take_while(|c| hex(*c)).count();
        if digits == 12 {
            rest = &after[digits..];
        } else {
            out.push(':');
            rest = after;
        }
    }
    out.push_str(rest);
    out
}
