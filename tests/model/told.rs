//! Commands as members read them: what an obligation prints is read back word by word, and a path of the search
//! is written as a play.

use countersign::protocol::escalation::{Answer, Decision};
use countersign::protocol::name::Actor;
use countersign::protocol::review::{
    Approve, Confirm, NamedPlace, Read, ReadObjections, ReportCheck, Resolve, Run,
};
use countersign::protocol::room::{Evidence, JudgeClaim, Say, Verdict};
use countersign::protocol::time::Time;
use countersign::protocol::{Command, Obligation};

use super::search::Node;
use super::world::{World, fresh};

/// The command behind a printed one, as whoever obeys gives it.
pub fn command(world: &World, node: &Node, owed: &Obligation) -> Result<Command, String> {
    let line = &owed.command;
    let unreadable = |what: &str| format!("{what} in: {line}");
    let said = |word: &str| match word {
        "PLACE" => "lib.rs:1".to_owned(),
        "CMD" => "suite".to_owned(),
        word => word.replace("=TEXT", "=done"),
    };
    let words: Vec<String> = line.split(' ').map(said).collect();
    let texts: Vec<&str> = words.iter().map(String::as_str).collect();
    let ["countersign", verb, rest @ ..] = texts.as_slice() else { return Err(unreadable("no command")) };
    fn parsed<T: std::str::FromStr>(text: &str, line: &str) -> Result<T, String> {
        text.parse().map_err(|_| format!("{text} in: {line}"))
    }
    let command = match (*verb, rest) {
        ("propose", [name, "--path" | "--commit", "DIR" | "HEAD", "--summary", "TEXT", options @ ..]) => {
            let mut answers = Vec::new();
            for pair in options.chunks(2) {
                let ["--answer", answer] = pair else { return Err(unreadable("an unknown option")) };
                let (id, _) = answer.split_once('=').ok_or_else(|| unreadable(answer))?;
                answers.push(parsed(id, line)?);
            }
            let name = parsed(name, line)?;
            Command::Propose(Box::new(fresh(world, &node.facts, &name, &owed.member, &answers)))
        }
        ("show", [subject]) => Command::Read(Read { subject: parsed(subject, line)? }),
        ("objections", [name]) => Command::ReadObjections(ReadObjections { proposal: parsed(name, line)? }),
        ("approve", [reference, options @ ..]) => {
            let mut approve = Approve {
                reference: parsed(reference, line)?,
                checked: Vec::new(),
                ran: Vec::new(),
                resolve: Vec::new(),
            };
            for pair in options.chunks(2) {
                match (pair, approve.ran.last_mut()) {
                    (["--checked", place], _) => {
                        approve.checked.push(NamedPlace { place: parsed(place, line)?, found: true });
                    }
                    (["--resolve", id], _) => approve.resolve.push(parsed(id, line)?),
                    (["--ran", command], _) => {
                        let command = (*command).to_owned();
                        approve.ran.push(Run { command, exit: None, output: None });
                    }
                    (["--exit", code], Some(run)) => run.exit = Some(parsed(code, line)?),
                    (["--output", "@FILE"], Some(run)) => run.output = Some("ok".to_owned()),
                    _ => return Err(unreadable("an unknown option")),
                }
            }
            Command::Approve(approve)
        }
        ("resolve", [id]) => {
            let objection = parsed(id, line)?;
            Command::Resolve(Resolve { objection, mistaken: false, reason: String::new() })
        }
        ("check", ["report", reference, name, "--exit", "N", "--output", "@FILE"]) => {
            Command::ReportCheck(ReportCheck {
                reference: parsed(reference, line)?,
                name: (*name).to_owned(),
                exit: Some(0),
                output: Some("ok".to_owned()),
            })
        }
        ("confirm", [reference]) => Command::Confirm(Confirm { reference: parsed(reference, line)? }),
        ("escalations", ["answer", id, "--decide", decision, "--reason", "TEXT"]) => {
            let known = Decision::ALL.iter().find(|(name, _)| name == decision);
            Command::AnswerEscalation(Answer {
                escalation: parsed(id, line)?,
                decision: known.ok_or_else(|| unreadable(decision))?.1,
                member: None,
                reviewer: None,
                reason: "done".to_owned(),
            })
        }
        ("say", ["--reply", id, "TEXT"]) => Command::Say(Say {
            text: "done".to_owned(),
            to: Vec::new(),
            about: None,
            reply: Some(parsed(id, line)?),
            claim: None,
        }),
        ("verdict", [id, "VERDICT", "TEXT"]) => Command::JudgeClaim(JudgeClaim {
            message: parsed(id, line)?,
            verdict: Verdict::Unverifiable,
            text: "done".to_owned(),
            evidence: Evidence::default(),
        }),
        _ => return Err(unreadable("nothing that anybody could run")),
    };
    Ok(command)
}

/// A step as a line of a play; what no play can do stands behind a `#`.
pub fn line(who: &Actor, command: &Command, passed: i64) -> String {
    let places = |flag: &str, places: &[NamedPlace]| -> String {
        places.iter().map(|one| format!(" --{flag} {}", one.place)).collect()
    };
    let runs = |flag: &str, ran: &[Run]| -> String {
        let one = |run: &Run| {
            let exit = run.exit.map_or(String::new(), |code| format!(" --exit {code}"));
            let output = run.output.as_ref().map_or(String::new(), |text| format!(" --output {text:?}"));
            format!(" --{flag} {:?}{exit}{output}", run.command)
        };
        ran.iter().map(one).collect()
    };
    let short = |reference: &countersign::protocol::name::VersionRef| {
        format!("{}@{}", reference.proposal, reference.version)
    };
    let said = match command {
        Command::Propose(propose) => {
            let files = propose
                .facts
                .paths
                .iter()
                .map(|path| format!(" --file {path}={}", propose.artifact.content.short()));
            let wrote = propose.facts.authors.iter().skip(1);
            let co = wrote.map(|author| format!(" --co-author {}", author.email));
            let answers = propose.answers.iter().map(|(id, text)| format!(" --answer {id}={text:?}"));
            let empty = if propose.facts.empty { " --empty" } else { "" };
            let more: String = files.chain(co).chain(answers).collect();
            format!("propose {}{more}{empty} --after {}", propose.proposal, propose.after)
        }
        Command::Read(read) => format!("show {}", read.subject),
        Command::ReadObjections(read) => format!("objections {}", read.proposal),
        Command::Approve(approve) => {
            let resolve: String = approve.resolve.iter().map(|id| format!(" --resolve {id}")).collect();
            let (checked, ran) = (places("checked", &approve.checked), runs("ran", &approve.ran));
            format!("approve {}{checked}{ran}{resolve}", short(&approve.reference))
        }
        Command::Object(object) => {
            let test: Vec<Run> = object.failing_test.iter().cloned().collect();
            let (at, test) = (places("at", &object.at), runs("failing-test", &test));
            format!("object {} {:?}{at}{test}", short(&object.reference), object.text)
        }
        Command::Note(note) => {
            format!("note {} {:?}{}", short(&note.reference), note.text, places("at", &note.at))
        }
        Command::Resolve(resolve) if resolve.mistaken => {
            format!("resolve {} --mistaken --reason {:?}", resolve.objection, resolve.reason)
        }
        Command::Resolve(resolve) => format!("resolve {}", resolve.objection),
        Command::Overrule(overrule) => {
            format!("overrule {} --reason {:?}", overrule.objection, overrule.reason)
        }
        Command::Withdraw(withdraw) => {
            format!("withdraw {} --reason {:?}", withdraw.proposal, withdraw.reason)
        }
        Command::ReportCheck(report) => {
            let exit = report.exit.map_or(String::new(), |code| format!(" --exit {code} --output ok"));
            format!("check report {} {}{exit}", short(&report.reference), report.name)
        }
        // A play confirms what the member last saw in status.
        Command::Confirm(confirm) => format!("confirm {}", confirm.reference),
        Command::Escalate(escalate) => format!("escalate {} {:?}", escalate.subject, escalate.text),
        Command::Say(say) => {
            let to: String = say.to.iter().map(|member| format!(" --to {member}")).collect();
            let reply = say.reply.map_or(String::new(), |id| format!(" --reply {id}"));
            let claim = if say.claim.is_some() { " --claim" } else { "" };
            format!("say {:?}{to}{reply}{claim}", say.text)
        }
        Command::JudgeClaim(judge) => format!("verdict {} {} {:?}", judge.message, judge.verdict, judge.text),
        Command::AnswerEscalation(answer) => {
            let member = answer.member.as_ref().map_or(String::new(), |one| format!(" --member {one}"));
            let (id, decision) = (answer.escalation, answer.decision);
            format!("answer {id} --decide {decision}{member} --reason {:?}", answer.reason)
        }
        Command::Revise(revise) => {
            format!("adopt {} --reason {:?}", revise.digest.short(), revise.reason)
        }
        Command::TimePassed => return format!("wait {}s", passed / 1_000_000),
        Command::ReportPublish(report) => {
            let failed = report.failure.as_ref().map(|failure| format!("fails: {:?} owe", failure.owing));
            let how = failed.unwrap_or_else(|| "succeeds".to_owned());
            return format!("# the server publishes {}, which {how}", report.circle);
        }
        Command::ReportTarget(report) => {
            let says = if report.says_nothing() { "all is well with" } else { "work is taken back by" };
            return format!("# git says that {says} {}", short(&report.reference));
        }
        other => format!("{other:?}"),
    };
    format!("{who}: {said}")
}

/// How long it was from one moment to another.
pub fn between(from: Time, to: Time) -> i64 {
    (to - from).0
}
