//! Obligations as they are told: the printed command is read back, word by word, and performed, so
//! that "what they are told to do works" is tried with exactly what they are told.

use std::collections::BTreeMap;

use countersign::protocol::Command;
use countersign::protocol::escalation::{self, Decision};
use countersign::protocol::review::{self, Run};
use countersign::protocol::room;

use super::world::World;

/// The command behind a printed one.
pub fn command(world: &mut World<'_>, line: &str) -> Result<Command, String> {
    // Whoever obeys says something of their own.
    let line_said = line.replace("=TEXT", "=done").replace(" TEXT", " done").replace(" CMD", " true");
    let words = words(&line_said);
    let texts: Vec<&str> = words.iter().map(String::as_str).collect();
    let ["countersign", verb, rest @ ..] = texts.as_slice() else {
        return Err(format!("no command: {line}"));
    };
    let unreadable = |what: &dyn std::fmt::Display| format!("{what} in: {line}");
    let command = match (*verb, rest) {
        ("propose", [name, artifact @ ("--commit" | "--path"), _, "--summary", _, options @ ..]) => {
            if (*artifact == "--commit") != world.in_git {
                return Err(unreadable(artifact));
            }
            let mut answers = BTreeMap::new();
            for pair in options.chunks(2) {
                let ["--answer", answer] = pair else { return Err(unreadable(&"an unknown option")) };
                let (id, text) = answer.split_once('=').ok_or_else(|| unreadable(answer))?;
                answers.insert(id.parse().map_err(|malformed| unreadable(&malformed))?, text.to_owned());
            }
            let name = name.parse().map_err(|malformed| unreadable(&malformed))?;
            Command::Propose(Box::new(world.fresh_version(name, answers)))
        }
        ("show", [subject]) => {
            Command::Read(review::Read { subject: subject.parse().map_err(|m| unreadable(&m))? })
        }
        ("objections", [proposal]) => Command::ReadObjections(review::ReadObjections {
            proposal: proposal.parse().map_err(|m| unreadable(&m))?,
        }),
        ("approve", [reference, options @ ..]) => {
            let (mut ran, mut resolve): (Vec<Run>, Vec<_>) = (Vec::new(), Vec::new());
            for pair in options.chunks(2) {
                match (pair, ran.last_mut()) {
                    (["--checked", "PLACE"], _) => {}
                    (["--resolve", id], _) => resolve.push(id.parse().map_err(|m| unreadable(&m))?),
                    (["--ran", command], _) => {
                        ran.push(Run { command: (*command).to_owned(), exit: None, output: None });
                    }
                    (["--exit", code], Some(run)) => {
                        run.exit = Some(code.parse().map_err(|m| unreadable(&m))?);
                    }
                    (["--output", _], Some(run)) => run.output = Some("ok".to_owned()),
                    _ => return Err(unreadable(&"an unknown option")),
                }
            }
            let reference = reference.parse().map_err(|m| unreadable(&m))?;
            Command::Approve(review::Approve { reference, checked: Vec::new(), ran, resolve })
        }
        ("resolve", [id]) => Command::Resolve(review::Resolve {
            objection: id.parse().map_err(|m| unreadable(&m))?,
            mistaken: false,
            reason: String::new(),
        }),
        ("check", ["report", reference, name, "--exit", "N", "--output", _]) => {
            Command::ReportCheck(review::ReportCheck {
                reference: reference.parse().map_err(|m| unreadable(&m))?,
                name: (*name).to_owned(),
                exit: Some(0),
                output: Some("ok".to_owned()),
            })
        }
        ("confirm", [reference]) => {
            Command::Confirm(review::Confirm { reference: reference.parse().map_err(|m| unreadable(&m))? })
        }
        ("escalations", ["answer", id, "--decide", decision, "--reason", reason]) => {
            let known = Decision::ALL.iter().find(|(name, _)| name == decision);
            let (_, decision) = known.ok_or_else(|| unreadable(decision))?;
            Command::AnswerEscalation(escalation::Answer {
                escalation: id.parse().map_err(|m| unreadable(&m))?,
                decision: *decision,
                member: None,
                reviewer: None,
                reason: (*reason).to_owned(),
            })
        }
        ("say", ["--reply", id, text]) => Command::Say(room::Say {
            text: (*text).to_owned(),
            to: Vec::new(),
            about: None,
            reply: Some(id.parse().map_err(|m| unreadable(&m))?),
            claim: None,
        }),
        ("verdict", [id, "VERDICT", text]) => Command::JudgeClaim(room::JudgeClaim {
            message: id.parse().map_err(|m| unreadable(&m))?,
            verdict: room::Verdict::Unverifiable,
            text: (*text).to_owned(),
            evidence: room::Evidence::default(),
        }),
        _ => return Err(format!("no command that anybody could run: {line}")),
    };
    Ok(command)
}

/// The words of a line, as a POSIX shell splits it where nothing but quotes is special.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let (mut quoted, mut escaped) = (false, false);
    for c in line.chars() {
        match c {
            '\'' if !escaped => {
                quoted = !quoted;
                word.get_or_insert_default();
            }
            '\\' if !quoted && !escaped => escaped = true,
            ' ' if !quoted && !escaped => words.extend(word.take()),
            other => {
                word.get_or_insert_default().push(other);
                escaped = false;
            }
        }
    }
    words.extend(word);
    words
}
