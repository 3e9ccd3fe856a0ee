//! decide: report what came of a required check on a version.

use super::command::ReportCheck;
use super::event::CheckReported;
use super::vote::{check_current, check_standing, named};
use crate::protocol::answer::Answer;
use crate::protocol::name::nearest;
use crate::protocol::rejection::{Rejection, Violation};
use crate::protocol::team::{Ask, Decision};

/// Records how a required check went on a version, unless, in this order: the version is unknown, the
/// output is too large, the charter requires no check of that name, the version isn't the current one or
/// has another digest, it is withdrawn, or the circle is complete.
///
/// Any member may report, the producer too: who did is kept and shown. The last report counts.
pub(in crate::protocol) fn report_check(ask: Ask<'_>, command: &ReportCheck) -> Decision {
    let (proposal, version) = match named(ask, &command.reference) {
        Ok(found) => found,
        Err(violation) => return Decision::refuse(violation),
    };
    let mut unmet = Vec::new();
    if let Some(output) = &command.output {
        ask.check_text("output", output, &mut unmet);
    }
    let known = &ask.charter.required_checks;
    if !known.contains(&command.name) {
        unmet.push(Violation::UnknownCheck {
            check: crate::protocol::name::shown(&command.name, 80),
            known: known.clone(),
            nearest: nearest(&command.name, known.iter().map(String::as_str)).unwrap_or_default().to_owned(),
        });
    }
    check_current(&command.reference, proposal, version, &mut unmet);
    check_standing(proposal, version, &mut unmet);
    ask.check_circle_open(proposal, &mut unmet);
    if let Some(rejection) = Rejection::of(unmet) {
        return Decision::refuse(rejection);
    }
    let reported = CheckReported {
        proposal: proposal.name.clone(),
        version: version.number,
        name: command.name.clone(),
        exit: command.exit,
        output: command.output.clone(),
        by: ask.by.clone(),
    };
    let reference = version.reference(&proposal.name);
    let (name, exit) = (command.name.clone(), command.exit);
    Decision::accept(vec![reported.into()], Answer::CheckReported { reference, name, exit })
}
