//! Commands as the oracle hears of them, and as a person reads them.

use countersign::protocol::name::{Actor, VersionRef};
use countersign::protocol::review::NamedPlace;
use countersign::protocol::time::Time;
use countersign::protocol::{Command, Decision, Event, Violation};

pub use super::oracle::Asked;

pub fn asked(who: &Actor, command: &Command) -> Asked {
    let by = who.to_string();
    let of = |verb, subject: &dyn std::fmt::Display| Asked {
        by: by.clone(),
        verb,
        subject: subject.to_string(),
        ..Asked::default()
    };
    let on = |verb, reference: &VersionRef, places: &[NamedPlace]| Asked {
        version: Some(reference.version),
        digits: Some(reference.digest.to_string()),
        misplaced: places.iter().any(|place| !place.found),
        ..of(verb, &reference.proposal)
    };
    match command {
        Command::Adopt(_) => of("adopt", &""),
        Command::Revise(_) => of("revise", &""),
        Command::Propose(propose) => Asked {
            after: propose.after,
            artifact: propose.artifact.digest.to_string(),
            empty: propose.facts.empty,
            ..of("propose", &propose.proposal)
        },
        Command::Read(read) => Asked {
            version: read.subject.version,
            digits: read.subject.digest.as_ref().map(ToString::to_string),
            ..of("read", &read.subject.proposal)
        },
        Command::ReadObjections(read) => of("objections", &read.proposal),
        Command::Approve(approve) => on("approve", &approve.reference, &approve.checked),
        Command::Object(object) => on("object", &object.reference, &object.at),
        Command::Note(note) => on("note", &note.reference, &note.at),
        Command::Resolve(resolve) => of("resolve", &resolve.objection),
        Command::Overrule(overrule) => of("overrule", &overrule.objection),
        Command::Withdraw(withdraw) => of("withdraw", &withdraw.proposal),
        Command::ReportCheck(report) => on("check", &report.reference, &[]),
        Command::Confirm(confirm) => {
            let digits = Some(confirm.reference.digest.to_string());
            Asked { digits, ..of("confirm", &confirm.reference.circle) }
        }
        Command::ReportPublish(report) => Asked {
            digits: Some(report.manifest.to_string()),
            failure: report.failure.is_some(),
            ..of("report", &report.circle)
        },
        Command::ReportTarget(report) => Asked {
            version: Some(report.reference.version),
            digits: Some(report.reference.digest.to_string()),
            ..of("compare", &report.reference.proposal)
        },
        Command::Escalate(escalate) => of("escalate", &escalate.subject),
        Command::AnswerEscalation(answer) => of("answer", &answer.escalation),
        Command::BreakGlass(_) => of("break-glass", &""),
        Command::Acknowledge(took) => of("acknowledge", &took.wake),
        Command::Say(say) => {
            let reply = say.reply.map(|reply| reply.to_string());
            Asked { mentions: say.to.clone(), ..of("say", &reply.unwrap_or_default()) }
        }
        Command::JudgeClaim(judge) => of("verdict", &judge.message),
        Command::ReportSent(report) => of("sent", &report.escalation),
        Command::ReportMoved(_) => of("moved", &""),
        Command::ReportUnheard(report) => Asked {
            silent: report
                .members
                .iter()
                .map(|one| (one.member.to_string(), one.since.0, one.heard.map(|heard| heard.0)))
                .collect(),
            unknown: report.unknown.iter().map(ToString::to_string).collect(),
            ..of("unheard", &"")
        },
        Command::ReportPutBack(report) => of("put back", &report.escalation),
        Command::TimePassed => of("time", &""),
        Command::ResumeServer(_) => of("resume", &""),
    }
}

/// One line of a run's story.
pub fn told(now: Time, who: &Actor, command: &Command, decision: &Decision) -> String {
    let Asked { verb, subject, version, digits, .. } = asked(who, command);
    let version = version.map_or(String::new(), |version| format!("@{version}"));
    let digits = digits.map_or(String::new(), |digits| format!(":{}", &digits[..12]));
    let more = match command {
        Command::Propose(propose) => format!(
            " after {} content {} by {:?} on {:?} answers {:?}",
            propose.after,
            propose.artifact.content.short(),
            propose.facts.authors.iter().map(|author| &author.email).collect::<Vec<_>>(),
            propose.facts.paths,
            propose.answers,
        ),
        Command::Approve(approve) => format!(" resolve {:?} ran {:?}", approve.resolve, approve.ran),
        Command::Object(object) => format!(" test {:?}", object.failing_test),
        Command::Resolve(resolve) if resolve.mistaken => " --mistaken".to_owned(),
        Command::AnswerEscalation(answer) => format!(" {}", answer.decision),
        _ => String::new(),
    };
    let outcome = match &decision.outcome {
        Ok(_) => "ok".to_owned(),
        Err(rejection) => {
            let codes: Vec<&str> = rejection.violations().iter().map(Violation::code).collect();
            format!("refused {}", codes.join(" "))
        }
    };
    let events: Vec<&str> = decision.events.iter().map(Event::kind).collect();
    format!("{now} {who}: {verb} {subject}{version}{digits}{more} → {outcome} [{}]", events.join(" "))
}
