//! Minutes: the record of a phase or a circle in Markdown, made from the log alone. Who claimed what, who checked it
//! and how; versions, votes and objections; what was put before a person and decided; and what else was said.
//!
//! All words are verbatim, in blocks that they can't end, with what a terminal or a page would obey made visible. The
//! same log gives the same minutes.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::artifact::Place;
use super::event::Event;
use super::evidence::Run;
use super::name::{Actor, CircleName, MessageId, PhaseName, ProposalName, Seq, nearest, push_visible, shown};
use super::rejection::{Violation, list};
use super::review::{Closing, CountedApproval};
use super::room::{ClaimJudged, Said};
use super::team::Team;
use super::time::Time;

/// What an entry is about, as far as that is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Scope {
    phase: Option<PhaseName>,
    circle: Option<CircleName>,
}

/// The parts of the minutes, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Claims,
    Work,
    Decisions,
    Said,
}

impl Part {
    const ALL: [(Self, &'static str, &'static str); 4] = [
        (Self::Claims, "Claims", "Nobody claimed anything."),
        (Self::Work, "Versions, votes and objections", "Nothing was proposed."),
        (Self::Decisions, "Before a person", "Nothing was put before a person."),
        (Self::Said, "What else was said", "Nothing else was said."),
    ];
}

struct Entry {
    scope: Scope,
    part: Part,
    at: (Seq, Time),
    text: String,
}

/// What a log says, as it is read from its beginning.
#[derive(Default)]
pub struct Minutes {
    team: Team,
    entries: Vec<Entry>,
    /// Where each claim stands among the entries, and what each message is about.
    claims: BTreeMap<MessageId, usize>,
    about: BTreeMap<MessageId, Scope>,
}

impl Minutes {
    /// Reads the next event.
    pub fn take(&mut self, seq: Seq, at: Time, actor: &Actor, event: &Event) {
        self.team.apply(seq, at, event);
        let Some((scope, part, text)) = self.told(at, actor, event) else { return };
        if let Event::Said(said) = event {
            self.about.insert(said.id, scope.clone());
            if said.claim.is_some() {
                self.claims.insert(said.id, self.entries.len());
            }
        }
        self.entries.push(Entry { scope, part, at: (seq, at), text });
    }

    /// The minutes of the phase or the circle of that name; of a proposal, those of its circle.
    pub fn of(&self, name: &str) -> Result<String, Violation> {
        let review = self.team.review();
        let phase: Option<PhaseName> = name.parse().ok().filter(|phase| review.phase_state(phase).is_some());
        let circle = name.parse().ok().and_then(|name| review.circle(&name)).map(|circle| &circle.name);
        let proposal = name.parse::<ProposalName>().ok().and_then(|name| review.proposal(&name));
        let circle = circle.or(proposal.map(|proposal| &proposal.circle)).cloned();
        if phase.is_none() && circle.is_none() {
            let known = review.circles().flat_map(|circle| [circle.name.as_str(), circle.phase.as_str()]);
            let nearest = nearest(name, known).unwrap_or_default().to_owned();
            return Err(Violation::UnknownSubject { subject: shown(name, 200), nearest });
        }
        let within = |scope: &Scope| match (&phase, &circle) {
            (Some(phase), _) => scope.phase.as_ref() == Some(phase),
            (None, circle) => scope.circle.is_some() && scope.circle == *circle,
        };
        let (what, title) = match (&phase, &circle) {
            (Some(phase), _) => ("phase", phase.as_str()),
            (None, Some(circle)) => ("circle", circle.as_str()),
            (None, None) => unreachable!("what nobody knows was refused"),
        };
        let entries: Vec<&Entry> = self.entries.iter().filter(|entry| within(&entry.scope)).collect();
        let mut out = format!("# Minutes of {title}\n\n");
        let team = self.team.adopted().map_or("", |adopted| adopted.charter.team.as_str());
        let _ = write!(out, "The {what} {title} of {team}");
        if let (Some(first), Some(last)) = (entries.first(), entries.last()) {
            let _ = write!(out, ", by the log from {} to {}", first.at.0, last.at.0);
            let _ = write!(out, ", {} to {}", first.at.1, last.at.1);
        }
        out.push_str(".\n");
        for (part, title, nothing) in Part::ALL {
            let _ = write!(out, "\n## {title}\n\n");
            let before = out.len();
            for entry in entries.iter().filter(|entry| entry.part == part) {
                out.push_str(&entry.text);
            }
            if out.len() == before {
                let _ = writeln!(out, "{nothing}");
            }
        }
        Ok(out)
    }

    /// What an event says, and where it belongs; a verdict goes to its claim.
    fn told(&mut self, at: Time, actor: &Actor, event: &Event) -> Option<(Scope, Part, String)> {
        let line = |text: String| format!("- {at} {text}\n");
        let work = |name: &ProposalName, text: String| (self.of_proposal(name), Part::Work, line(text));
        let circle = |name: &CircleName, text: String| (self.of_circle(name), Part::Work, line(text));
        let told = match event {
            Event::Said(said) => return Some(self.said(at, said)),
            Event::ClaimJudged(judged) => {
                self.judged(at, judged);
                return None;
            }
            Event::Proposed(event) => {
                let (by, digest) = (&event.producer, event.artifact.digest.short());
                let mut text = format!("**{by}** proposed {}@{}:{digest}", event.proposal, event.version);
                quote(&mut text, &event.summary);
                for (id, answer) in &event.answers {
                    let _ = write!(text, "\n  and answered {id}");
                    quote(&mut text, answer);
                }
                work(&event.proposal, text)
            }
            Event::Approved(event) => {
                let lenses = list(&event.lenses);
                let (by, version) = (&event.by, event.version);
                let mut text = format!("**{by}** approved {}@{version} ({lenses})", event.proposal);
                evidence(&mut text, "checked", &event.checked, &event.ran);
                work(&event.proposal, text)
            }
            Event::Objected(event) => {
                let lenses = list(&event.lenses);
                let (by, version, id) = (&event.by, event.version, event.id);
                let mut text = format!("**{by}** objected to {}@{version} ({lenses}): {id}", event.proposal);
                quote(&mut text, &event.text);
                let test: Vec<Run> = event.failing_test.iter().cloned().collect();
                evidence(&mut text, "at", &event.at, &test);
                work(&event.proposal, text)
            }
            Event::Noted(event) => {
                let (by, version, id) = (&event.by, event.version, event.id);
                let mut text = format!("**{by}** noted on {}@{version}: {id}", event.proposal);
                quote(&mut text, &event.text);
                evidence(&mut text, "at", &event.at, &[]);
                work(&event.proposal, text)
            }
            Event::ObjectionClosed(event) => {
                let how = match event.how {
                    Closing::Resolved => "resolved",
                    Closing::Mistaken => "took back as mistaken",
                    Closing::Overruled => "OVERRULED",
                };
                let mut text = format!("**{}** {how} {}", event.by, event.id);
                quote(&mut text, event.reason.as_deref().unwrap_or_default());
                work(&event.proposal, text)
            }
            Event::Withdrawn(event) => {
                let mut text = format!("**{}** withdrew {}@{}", event.by, event.proposal, event.version);
                quote(&mut text, &event.reason);
                work(&event.proposal, text)
            }
            Event::CheckReported(event) => {
                let exit = event.exit.map_or("was skipped".to_owned(), |exit| format!("exited with {exit}"));
                let (by, name) = (&event.by, shown(&event.name, 200));
                let mut text =
                    format!("**{by}** reported: check {name} {exit} on {}@{}", event.proposal, event.version);
                quote(&mut text, event.output.as_deref().unwrap_or_default());
                work(&event.proposal, text)
            }
            Event::TargetMoved(event) => {
                let mut said: Vec<String> = Vec::new();
                if event.empty {
                    said.push("changes nothing any more".to_owned());
                }
                if let Some(undone) = &event.undone {
                    let (files, commits) = (list(&undone.files_told()), list(&undone.commits_told()));
                    said.push(format!("would take back {files}, by {commits}"));
                }
                said.extend(event.conflict.as_ref().map(|conflict| event.conflict_told(conflict)));
                if said.is_empty() {
                    said.push("merges, and takes nothing back".to_owned());
                }
                let target = shown(&event.target, 200);
                let text = format!("against {target}, {} {}", event.reference, list(&said));
                work(&event.reference.proposal, text)
            }
            Event::DissentCalled(event) => {
                let text = format!("a dissent round was called: {} has no evidence", list(&event.proposals));
                circle(&event.circle, text)
            }
            Event::Confirmed(event) => {
                let reference = format!("{}:{}", event.circle, event.manifest.short());
                circle(&event.circle, format!("**{}** confirmed {reference}", event.by))
            }
            Event::CircleCompleted(event) => {
                let mut text = format!("{}:{} is complete", event.circle, event.manifest.short());
                for entry in &event.entries {
                    let by: Vec<String> = entry.approvals.iter().map(counted).collect();
                    let _ = write!(text, "; {}@{} by {}", entry.proposal, entry.version, list(&by));
                }
                circle(&event.circle, text)
            }
            Event::CirclePublished(event) => circle(&event.circle, format!("{} is published", event.circle)),
            Event::CircleReopened(event) => {
                let mut text = format!("{} is open again; {} owes", event.circle, list(&event.owing));
                quote(&mut text, &event.because);
                circle(&event.circle, text)
            }
            Event::ReviewerReplaced(event) => {
                let (by, reviewer, stand_in) = (&event.by, &event.reviewer, &event.stand_in);
                let text = format!("**{by}** has {stand_in} review {} instead of {reviewer}", event.proposal);
                work(&event.proposal, text)
            }
            Event::ReviewerExcused(event) => {
                let text = format!("**{}** excused {} from {}", event.by, event.reviewer, event.proposal);
                work(&event.proposal, text)
            }
            Event::DeliverableDropped(event) => {
                let mut text = format!("**{}** dropped {}", event.by, event.proposal);
                quote(&mut text, &event.reason);
                work(&event.proposal, text)
            }
            Event::PhaseOpened(event) => {
                let scope = Scope { phase: Some(event.phase.clone()), circle: None };
                (scope, Part::Work, line(format!("{} opened", event.phase)))
            }
            Event::PhaseClosed(event) => {
                let mut text = format!("**{}** closed {}", event.by, event.phase);
                quote(&mut text, &event.reason);
                let scope = Scope { phase: Some(event.phase.clone()), circle: None };
                (scope, Part::Decisions, line(text))
            }
            Event::CharterAdopted(event) => {
                let mut text = format!("**{actor}** adopted revision {} of the charter", event.revision);
                quote(&mut text, event.reason.as_deref().unwrap_or_default());
                (self.now(), Part::Decisions, line(text))
            }
            Event::Escalated(event) => {
                let subject = shown(&event.subject, 200);
                let mut text = format!("{}: {} about {subject}", event.id, event.cause);
                if let Some(member) = &event.member {
                    let _ = write!(text, ", of {member}");
                }
                quote(&mut text, &event.text);
                (self.of_escalation(event), Part::Decisions, line(text))
            }
            Event::EscalationClosed(event) => {
                let mut text = match (&event.by, event.decision) {
                    (Some(by), Some(decision)) => format!("**{by}** answered {}: {decision}", event.id),
                    _ => format!("{} closed", event.id),
                };
                quote(&mut text, &event.reason);
                let opened = self.team.escalations().get(event.id)?;
                (self.of_escalation(&opened.opened), Part::Decisions, line(text))
            }
            Event::RefPutBack(event) => {
                let name = shown(&event.name, 200);
                let mut text = format!("the server put {name} back, as {} decides", event.escalation);
                if let Some(because) = &event.because {
                    text = format!("{name} was not put back, as {} decides", event.escalation);
                    quote(&mut text, because);
                }
                let opened = self.team.escalations().get(event.escalation)?;
                (self.of_escalation(&opened.opened), Part::Decisions, line(text))
            }
            Event::CalledOut(event) => {
                let mut text = format!(
                    "called out on the {} {} of {}: {}",
                    event.what,
                    shown(&event.subject, 200),
                    event.by,
                    event.rule
                );
                quote(&mut text, &event.says);
                (self.of_subject(&event.subject).unwrap_or_else(|| self.now()), Part::Said, line(text))
            }
            Event::RecoveryFired(event) => {
                let mut text =
                    format!("the recovery patch {} fired on {}", event.patch, shown(&event.subject, 200));
                quote(&mut text, &event.found);
                let scope = self.of_subject(&event.subject).unwrap_or_else(|| self.now());
                (scope, Part::Decisions, line(text))
            }
            Event::VersionRead(_)
            | Event::ObjectionsRead(_)
            | Event::EscalationReminded(_)
            | Event::EscalationSent(_)
            | Event::Delivered(_)
            | Event::OwedAgain(_)
            | Event::Woken(_)
            | Event::ServerResumed(_) => return None,
        };
        Some(told)
    }

    fn said(&self, at: Time, said: &Said) -> (Scope, Part, String) {
        let does = match (&said.claim, said.reply) {
            (Some(_), Some(reply)) => format!("claimed, in answer to {reply}"),
            (Some(_), None) => "claimed".to_owned(),
            (None, Some(reply)) => format!("answered {reply}"),
            (None, None) => "said".to_owned(),
        };
        let mut text = format!("- {at} {}: **{}** {does}", said.id, said.by);
        if !said.mentions.is_empty() {
            let _ = write!(text, ", to {}", list(&said.mentions));
        }
        if let Some(about) = &said.about {
            let _ = write!(text, ", about {}", shown(about, 200));
        }
        if said.ended {
            let _ = write!(text, "; the chain of mentions from {} ended here", said.root);
        }
        quote(&mut text, &said.text);
        if let Some(claim) = &said.claim {
            evidence(&mut text, "at", &claim.at, &claim.ran);
        }
        text.push('\n');
        let replied = || said.reply.and_then(|reply| self.about.get(&reply).cloned());
        let about = said.about.as_ref().and_then(|about| self.of_subject(about));
        let scope = about.or_else(replied).unwrap_or_else(|| self.now());
        (scope, if said.claim.is_some() { Part::Claims } else { Part::Said }, text)
    }

    /// A verdict stands below its claim.
    fn judged(&mut self, at: Time, judged: &ClaimJudged) {
        let Some(claim) = self.claims.get(&judged.message).and_then(|index| self.entries.get_mut(*index))
        else {
            return;
        };
        let (by, verdict) = (&judged.by, judged.verdict);
        let mut text = format!("- {at} {}: {verdict}, says **{by}**", judged.message);
        quote(&mut text, judged.text.as_deref().unwrap_or_default());
        evidence(&mut text, "at", &judged.at, &judged.ran);
        claim.text.push_str(&text);
        claim.text.push('\n');
    }

    /// What belongs to nothing else belongs to the phase that is open.
    fn now(&self) -> Scope {
        Scope { phase: self.team.review().current_phase().cloned(), circle: None }
    }

    fn of_proposal(&self, name: &ProposalName) -> Scope {
        let proposal = self.team.review().proposal(name);
        Scope {
            phase: proposal.map(|proposal| proposal.phase.clone()),
            circle: proposal.map(|proposal| proposal.circle.clone()),
        }
    }

    fn of_circle(&self, name: &CircleName) -> Scope {
        let circle = self.team.review().circle(name);
        Scope {
            phase: circle.map(|circle| circle.phase.clone()),
            circle: circle.map(|circle| circle.name.clone()),
        }
    }

    fn of_escalation(&self, opened: &super::escalation::Escalated) -> Scope {
        match self.team.circle_of(opened) {
            Some(circle) => self.of_circle(&circle.name),
            None => self.of_subject(&opened.subject).unwrap_or_else(|| self.now()),
        }
    }

    /// Where that which members name belongs.
    fn of_subject(&self, subject: &str) -> Option<Scope> {
        let review = self.team.review();
        if let Some((_, circle)) = review.locate(subject) {
            return Some(self.of_circle(&circle.name));
        }
        if let Some(scope) = subject.parse().ok().and_then(|id| self.about.get(&id)) {
            return Some(scope.clone());
        }
        if let Some(known) = subject.parse().ok().and_then(|id| self.team.escalations().get(id)) {
            // An escalation is about no other escalation.
            return self.team.circle_of(&known.opened).map(|circle| self.of_circle(&circle.name));
        }
        let phase = subject.parse().ok().filter(|phase| review.phase_state(phase).is_some());
        phase.map(|phase| Scope { phase: Some(phase), circle: None })
    }
}

fn counted(approval: &CountedApproval) -> String {
    let CountedApproval { by, lens, version, overruled } = approval;
    let stands = if *overruled { ", overruled".to_owned() } else { format!(", version {version}") };
    format!("{by} ({lens}{stands})")
}

/// Appends words in a block that they can't end; nothing where there are none.
fn quote(out: &mut String, words: &str) {
    if words.is_empty() {
        return;
    }
    let longest = words.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    let _ = write!(out, "\n\n  {fence}text\n  ");
    for c in words.strip_suffix('\n').unwrap_or(words).chars() {
        match c {
            '\n' => out.push_str("\n  "),
            '\t' => out.push('\t'),
            c => push_visible(out, c),
        }
    }
    let _ = write!(out, "\n  {fence}\n");
}

fn evidence(out: &mut String, looked: &str, places: &[Place], ran: &[Run]) {
    let mut words = String::new();
    for place in places {
        let _ = writeln!(words, "{looked} {place}");
    }
    for run in ran {
        let exit = run.exit.map_or("exit not told".to_owned(), |exit| format!("exit {exit}"));
        let _ = writeln!(words, "$ {}\n{exit}", run.command);
        words.push_str(run.output.as_deref().unwrap_or_default());
        if !words.ends_with('\n') {
            words.push('\n');
        }
    }
    quote(out, &words);
}
