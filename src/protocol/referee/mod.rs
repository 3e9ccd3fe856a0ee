//! The referee: looks at the form of what members write, and has a call-out appended where something is
//! missing. It refuses nothing, wakes nobody, and never judges what a text means.

mod form;

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::charter::RuleMode;
use super::escalation::{Cause, Escalated};
use super::event::Event;
use super::name::MemberName;
use super::rule::{self, Judge, Judgement, Moment, Value, View};
use super::team::Team;
use form::Form;

/// A rule that refuses nothing says that something is missing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CalledOut {
    /// The rule.
    pub rule: String,
    /// Whose text, version or approval it is about.
    pub by: MemberName,
    /// What that is: `objection`, `summary`…; of a rule that warns, when it is asked.
    pub what: String,
    /// What it belongs to: a version, an objection, an escalation, a circle.
    pub subject: String,
    /// What the rule says.
    pub says: String,
}

/// A text that a member wrote.
struct Said<'a> {
    kind: &'static str,
    by: &'a MemberName,
    subject: String,
    body: &'a str,
    /// Places and commands that came with it.
    places: usize,
    commands: usize,
    again: String,
}

/// The call-outs on what was just said.
pub(super) fn call_outs(team: &Team, judge: &dyn Judge, events: &[Event]) -> Vec<Event> {
    let Some(charter) = team.adopted().map(|adopted| &adopted.charter) else { return Vec::new() };
    let mut out = Vec::new();
    for said in events.iter().flat_map(said_in).filter(|said| !said.body.is_empty()) {
        let mut view = None;
        for (index, rule) in judge.rules().iter().enumerate().filter(|(_, rule)| rule.when == Moment::Text) {
            if charter.rules.modes.get(&rule.id) == Some(&RuleMode::Off) {
                continue;
            }
            let view = view.get_or_insert_with(|| said.view());
            let says = match judge.judge(index, view) {
                Judgement::NotApplicable | Judgement::Passes | Judgement::Overruled => continue,
                Judgement::Denies => rule::message(rule, view),
                Judgement::Error(what) => format!("{} could not be judged: {what}", rule.id),
            };
            let (rule, what) = (rule.id.clone(), said.kind.to_owned());
            out.push(
                CalledOut { rule, by: said.by.clone(), what, subject: said.subject.clone(), says }.into(),
            );
        }
    }
    out
}

/// The texts of an event.
fn said_in(event: &Event) -> Vec<Said<'_>> {
    let said = |kind, by, subject: String, body, again: String| Said {
        kind,
        by,
        subject,
        body,
        places: 0,
        commands: 0,
        again,
    };
    match event {
        Event::Proposed(event) => {
            let subject = format!("{}@{}", event.proposal, event.version);
            let again = format!("countersign propose {} --commit HEAD --summary TEXT", event.proposal);
            let summary = said("summary", &event.producer, subject.clone(), &event.summary, again.clone());
            let answers = event.answers.iter().map(|(id, text)| {
                let again = format!("{again} --answer {id}=TEXT");
                said("answer", &event.producer, format!("{subject} {id}"), text, again)
            });
            std::iter::once(summary).chain(answers).collect()
        }
        Event::Objected(event) => {
            let version = format!("{}@{}", event.proposal, event.version);
            vec![Said {
                kind: "objection",
                by: &event.by,
                subject: event.id.to_string(),
                body: &event.text,
                places: event.at.len(),
                commands: usize::from(event.failing_test.is_some()),
                again: format!("countersign object {version} TEXT --at PLACE"),
            }]
        }
        Event::Noted(event) => {
            let again = format!("countersign note {}@{} TEXT --at PLACE", event.proposal, event.version);
            let noted = said("note", &event.by, event.id.to_string(), &event.text, again);
            vec![Said { places: event.at.len(), ..noted }]
        }
        Event::ObjectionClosed(event) => {
            let reason = event.reason.as_deref().unwrap_or_default();
            let again = format!("countersign escalate {} TEXT", event.id);
            vec![said("reason", &event.by, event.id.to_string(), reason, again)]
        }
        Event::Withdrawn(event) => {
            let again = format!("countersign escalate {} TEXT", event.proposal);
            vec![said("reason", &event.by, event.proposal.to_string(), &event.reason, again)]
        }
        Event::Escalated(Escalated { cause: Cause::Asked, member: Some(by), id, subject, text, .. }) => {
            let again = format!("countersign escalate {subject} TEXT");
            vec![said("question", by, id.to_string(), text, again)]
        }
        Event::Said(event) => {
            let (kind, again) = match &event.claim {
                Some(_) => ("claim", "countersign say TEXT --claim --at PLACE"),
                None => ("message", "countersign say TEXT"),
            };
            let text = said(kind, &event.by, event.id.to_string(), &event.text, again.to_owned());
            let evidence = event.claim.as_ref();
            let places = evidence.map_or(0, |evidence| evidence.at.len());
            let commands = evidence.map_or(0, |evidence| evidence.ran.len());
            vec![Said { places, commands, ..text }]
        }
        Event::ClaimJudged(event) => {
            let (id, body) = (event.message, event.text.as_deref().unwrap_or_default());
            let again = format!("countersign say --reply {id} TEXT");
            let text = said("verdict", &event.by, id.to_string(), body, again);
            vec![Said { places: event.at.len(), commands: event.ran.len(), ..text }]
        }
        _ => Vec::new(),
    }
}

impl Said<'_> {
    fn view(&self) -> View {
        let form = Form::of(self.body);
        let commands = form.commands + self.commands;
        let texts = |texts: &[String]| texts.iter().map(|text| Value::from(text.as_str())).collect::<Value>();
        let fields = [
            ("kind", Value::from(self.kind)),
            ("by", self.by.as_str().into()),
            ("subject", self.subject.as_str().into()),
            ("body", Value::Text(Arc::from(self.body))),
            ("figures", texts(&form.figures)),
            ("range", form.range.into()),
            ("method", (form.method || self.commands > 0).into()),
            ("places", count(form.places + self.places)),
            ("commands", count(commands)),
            ("totals", texts(&form.totals)),
            ("numbers", count(form.numbers)),
            ("again", self.again.as_str().into()),
        ];
        View { words: [("text", fields.into_iter().collect())].into_iter().collect() }
    }
}

fn count(of: usize) -> Value {
    i64::try_from(of).unwrap_or(i64::MAX).into()
}
