//! The oracle: what DESIGN's guarantees demand of a log, written apart from the core. It is told what
//! was asked, by whom, and the stored bodies that came of it; from the bodies before it works out anew
//! whether each of them may stand there.

use std::collections::BTreeMap;
use std::fmt;

use super::history::{Entry, History, Remark, Way};
use super::stored::{
    Approved, CheckReported, CircleCompleted, Confirmed, Edge, Escalated, EscalationClosed, Fact,
    ObjectionClosed, ObjectionsRead, Proposed, Raised, VersionRead, Withdrawn,
};

/// What was asked, as far as a body can't tell.
#[derive(Clone, Debug, Default)]
pub struct Asked {
    pub by: String,
    pub verb: &'static str,
    /// The proposal, objection, circle or escalation that was named.
    pub subject: String,
    pub version: Option<u32>,
    /// The digits of the exact reference.
    pub digits: Option<String>,
    /// Of a proposal: the version that it is to follow.
    pub after: u32,
    /// Of a proposal: what was offered, whole.
    pub artifact: String,
    /// Of a proposal: whether there is nothing in it.
    pub empty: bool,
    /// Of a vote: whether it names a place that the version doesn't have.
    pub misplaced: bool,
    /// Of a report: whether the server couldn't publish.
    pub failure: bool,
    /// Of a message: whom it is to.
    pub mentions: Vec<String>,
    /// Of a report: whom no wake reaches, since when, and when it was heard last.
    pub silent: Vec<(String, i64, Option<i64>)>,
    /// Of a report: of whom nobody knows.
    pub unknown: Vec<String>,
}

/// How long a silence is at least before a person is told of it, in microseconds.
const UNHEARD_MIN: i64 = 120_000_000;

/// A guarantee that doesn't hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    pub guarantee: &'static str,
    pub what: String,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.guarantee, self.what)
    }
}

pub type Verdict = Result<(), Broken>;

/// Breaks a guarantee unless a condition holds.
macro_rules! demand {
    ($guarantee:literal, $condition:expr, $($what:tt)+) => {
        if !$condition {
            return Err(Broken { guarantee: $guarantee, what: format!($($what)+) });
        }
    };
}
pub(super) use demand;

/// The causes that a refusal may put before a person.
pub const LIMITS: [(&str, &str); 3] =
    [("round-limit", "ROUND_LIMIT"), ("flip-limit", "FLIP_LIMIT"), ("vote-limit", "VOTE_LIMIT")];

/// Watches one log.
#[derive(Default)]
pub struct Oracle {
    history: History,
    /// What each manifest stood for, and the other way round: one name for one content.
    contents: BTreeMap<String, String>,
    manifests: BTreeMap<String, String>,
}

impl Oracle {
    pub fn history(&self) -> &History {
        &self.history
    }

    /// Judges one command by its outcome: the codes of a refusal, and what was stored.
    pub fn step(&mut self, asked: &Asked, codes: Option<&[&str]>, stored: Vec<Entry>) -> Verdict {
        let first = self.history.entries.len();
        match codes {
            Some(codes) => self.refused(codes, &stored)?,
            None => self.accepted(asked, &stored)?,
        }
        for mut entry in stored {
            if let Fact::Charter(event) = &mut entry.fact {
                self.history.carry_over(&mut event.charter);
            }
            let before = self.history.entries.last().map_or(i64::MIN, |last| last.at);
            demand!("time", entry.at >= before, "{} comes after {before}", entry.at);
            if let Fact::Proposed(event) = &entry.fact
                && let Some(phase) = &event.ad_hoc
            {
                self.ad_hoc(phase, event)?;
                self.history.begin_ad_hoc(phase, &event.proposal, &event.producer);
            }
            self.fact(asked, &entry, first)?;
            self.history.entries.push(entry);
        }
        self.after(asked, codes.is_none(), first)
    }

    /// A refusal changes nothing, but that the first one at a limit goes to a person.
    fn refused(&self, codes: &[&str], stored: &[Entry]) -> Verdict {
        let followed = |entry: &&Entry| match &entry.fact {
            // What is before a person now lets nobody confirm: who was late with it owes it no longer.
            Fact::EscalationClosed(event) => event.by.is_none() && event.reason == "it is no longer owed",
            _ => false,
        };
        let stored: Vec<&Entry> = stored.iter().filter(|entry| !followed(entry)).collect();
        for entry in &stored {
            let Fact::Escalated(event) = &entry.fact else {
                demand!("refusal", false, "{codes:?} changed something: {:?}", entry.fact);
                continue;
            };
            let fits = LIMITS.iter().any(|(cause, code)| *cause == event.cause && codes.contains(code));
            demand!("refusal", fits, "{codes:?} put {} before a person", event.cause);
        }
        demand!("refusal", stored.len() <= 1, "{codes:?} put {} things before a person", stored.len());
        for (cause, _) in LIMITS.iter().filter(|(_, code)| codes.contains(code)) {
            let open = self.history.escalations().iter().any(|(_, known, _, open)| known == cause && *open);
            demand!("refusal", open || stored.len() == 1, "{cause} is before nobody");
        }
        Ok(())
    }

    /// What an answer says that stores nothing must be true already.
    fn accepted(&self, asked: &Asked, stored: &[Entry]) -> Verdict {
        let history = &self.history;
        let Asked { by, subject, .. } = asked;
        match asked.verb {
            "read" => {
                let mut offers = history.offers(subject);
                offers.retain(|offer| asked.version.is_none_or(|version| offer.what.version == version));
                let offer = offers.pop();
                demand!("G1", offer.is_some(), "{by} was shown {subject}, of which there is nothing");
                let offer = offer.expect("it was just demanded");
                let same = asked
                    .digits
                    .as_ref()
                    .is_none_or(|digits| offer.what.artifact.digest.starts_with(digits.as_str()));
                demand!("G1", same, "{by} was shown another {subject} than {:?}", asked.digits);
                let shown = history.was_shown(by, subject, offer.what.version).is_some();
                demand!("G1", shown != (stored.len() == 1), "a reading is recorded once");
            }
            "objections" => {}
            "confirm" if stored.is_empty() => {
                demand!(
                    "G1",
                    history.circle_state(subject) != "open",
                    "{subject} was confirmed without a word"
                );
                let manifest = history.completed_manifest(subject).unwrap_or_default();
                let digits = asked.digits.as_deref().unwrap_or("?");
                demand!(
                    "G1",
                    manifest.starts_with(digits),
                    "{subject} is complete with {manifest}, not {digits}"
                );
                demand!(
                    "G14",
                    history.participants(subject).contains(by.as_str()),
                    "{by} has no part in {subject}"
                );
            }
            "report" => {
                let complete = history.circle_state(subject) == "complete"
                    && history.completed_manifest(subject) == asked.digits.as_deref();
                demand!("G12", complete != stored.is_empty(), "a report on {subject} counts once");
            }
            // Nothing may be late, nothing wait, no ref have moved, and nobody be silent.
            "time" | "resume" | "sent" | "compare" | "moved" | "unheard" | "put back" => {}
            verb => demand!("G7", !stored.is_empty(), "{verb} was accepted and nothing came of it"),
        }
        Ok(())
    }

    fn fact(&mut self, asked: &Asked, entry: &Entry, first: usize) -> Verdict {
        let by_asker = |by: &str, verbs: &[&str]| -> Verdict {
            demand!("G14", asked.by == by, "{} spoke as {by}", asked.by);
            demand!("G14", verbs.contains(&asked.verb), "{} became {:?}", asked.verb, entry.fact);
            demand!("G14", self.knows(by), "{by} is no member");
            Ok(())
        };
        match &entry.fact {
            Fact::Charter(event) => {
                let first = self.history.entries.is_empty() && event.revision == 1;
                let next = event.revision == self.history.revision() + 1;
                let revised = asked.verb == "revise" && next && self.history.is_human(&asked.by);
                let begun = first && asked.by == ":operator";
                demand!("G14", begun || revised, "{} adopted revision {}", asked.by, event.revision);
                if revised {
                    self.given("reason", event.reason.as_deref().unwrap_or_default())?;
                }
            }
            Fact::Opened(event) => self.opened(&event.phase)?,
            Fact::Proposed(event) => {
                by_asker(&event.producer, &["propose"])?;
                self.proposed(asked, event, entry.at)?;
            }
            Fact::Read(event) => {
                by_asker(&event.by, &["read"])?;
                self.read(asked, event)?;
            }
            Fact::ObjectionsRead(event) => {
                by_asker(&event.by, &["objections"])?;
                self.objections_read(event)?;
            }
            Fact::Approved(event) => {
                by_asker(&event.by, &["approve"])?;
                self.approved(asked, event)?;
            }
            Fact::Objected(event) => {
                by_asker(&event.by, &["object"])?;
                self.raised(asked, event)?;
                self.vote_limit(&event.by, &event.proposal, event.version, Way::Object, event.lenses.len())?;
            }
            Fact::Noted(event) => {
                by_asker(&event.by, &["note"])?;
                self.raised(asked, event)?;
                let remarks = self.history.remarks_on(&event.proposal);
                let own = |remark: &&Remark<'_>| {
                    remark.is_note && remark.by == event.by && remark.version == event.version
                };
                let notes = remarks.iter().filter(own).count();
                demand!("G5", notes < self.limits().notes, "{} left {notes} notes and one more", event.by);
            }
            Fact::Closed(event) => {
                by_asker(&event.by, &["resolve", "overrule", "approve", "answer"])?;
                self.closed(event)?;
            }
            Fact::Withdrawn(event) => {
                by_asker(&event.by, &["withdraw"])?;
                self.withdrawn(event, entry.at)?;
            }
            Fact::CheckReported(event) => {
                by_asker(&event.by, &["check"])?;
                self.check_reported(event)?;
            }
            Fact::CalledOut(event) => {
                let texts = [
                    "propose", "object", "note", "resolve", "overrule", "withdraw", "escalate", "answer",
                    "say", "verdict",
                ];
                by_asker(&event.by, &texts)?;
                demand!("G7", event.rule.starts_with("text/"), "{} refuses nothing", event.rule);
            }
            Fact::DissentCalled(event) => {
                for name in &event.proposals {
                    let (unmet, evidence) = (self.history.unmet(name), self.history.evidence(name));
                    let called =
                        unmet.is_none() && evidence == 0 && self.history.circle_of(name) == event.circle;
                    demand!("G1", called, "{name} is called into question: {unmet:?}, evidence {evidence}");
                }
            }
            Fact::Confirmed(event) => {
                by_asker(&event.by, &["confirm"])?;
                self.confirmed(asked, event)?;
            }
            Fact::Completed(event) => {
                demand!("G1", asked.verb == "confirm", "{} completed {}", asked.verb, event.circle);
                demand!("G1", first < self.history.entries.len(), "{} completed by itself", event.circle);
                self.completed(event)?;
            }
            Fact::Published(event) => {
                let reported = asked.by == ":server" && asked.verb == "report" && !asked.failure;
                demand!("G6", reported, "{} published {}", asked.by, event.circle);
                let manifest = self.history.completed_manifest(&event.circle);
                let complete = self.history.circle_state(&event.circle) == "complete";
                demand!(
                    "G6",
                    complete && manifest == Some(&event.manifest),
                    "{} wasn't complete",
                    event.circle
                );
            }
            Fact::Reopened(event) => {
                let reported = asked.by == ":server" && asked.verb == "report" && asked.failure;
                demand!("G6", reported, "{} reopened {}", asked.by, event.circle);
                let complete = self.history.circle_state(&event.circle) == "complete";
                demand!("G6", complete, "{} wasn't complete and opened again", event.circle);
            }
            Fact::Said(event) => {
                by_asker(&event.by, &["say"])?;
                self.said(asked, event)?;
            }
            Fact::ClaimJudged(event) => {
                by_asker(&event.by, &["verdict"])?;
                self.claim_judged(asked, event)?;
            }
            Fact::Moved(event) => {
                let known = asked.by == ":server" && asked.verb == "compare";
                demand!("G14", known, "{} said what git says of {}", asked.by, event.reference);
                self.open_circle(&asked.subject)?;
                let current = self.history.current_reference(&asked.subject);
                let exact = current.as_ref() == Some(&event.reference);
                demand!("G2", exact, "{current:?} is current, and git spoke of {}", event.reference);
                let before = self.history.said_by_git(&asked.subject);
                let before = before.map(|known| (known.empty, &known.undone, &known.conflict));
                let now = (event.empty, &event.undone, &event.conflict);
                demand!(
                    "G12",
                    before.unwrap_or((false, &None, &None)) != now,
                    "git said so before: {event:?}"
                );
            }
            Fact::Escalated(event) => self.escalated(asked, event, entry.at)?,
            Fact::EscalationClosed(event) => self.escalation_closed(asked, event)?,
            Fact::Reminded(event) => {
                let open = self.history.escalations().iter().any(|(id, .., open)| *id == event.id && *open);
                demand!(
                    "G13",
                    open && asked.verb == "time",
                    "{} is closed, and a person is reminded",
                    event.id
                );
                let before = self.history.reminders(&event.id);
                let cap = self.limits().escalation_reminders;
                let next = event.level == before + 1 && event.level <= cap;
                demand!("G13", next, "{}: reminder {} after {before} of {cap}", event.id, event.level);
            }
            Fact::Sent(event) => {
                let known = asked.verb == "sent" && asked.subject == event.id && asked.by == ":server";
                demand!("G13", known, "{} was sent by {}", event.id, asked.by);
                let again = self.history.was_sent(&event.id, event.level, &event.channel);
                demand!("G13", !again, "{} was sent twice by {}", event.id, event.channel);
            }
            Fact::PutBack(event) => {
                let known = asked.verb == "put back" && asked.subject == event.escalation;
                demand!("G6", known, "a ref was put back for {} by {}", event.escalation, asked.verb);
            }
            Fact::Resumed(event) => {
                let known = asked.verb == "resume" && event.from < event.to && event.to <= entry.at;
                demand!("time", known, "away from {} to {} at {}", event.from, event.to, entry.at);
            }
            Fact::PhaseClosed(event) => {
                let decided = asked.verb == "answer" && self.history.is_human(&event.by);
                demand!("G7", decided, "{} closed {}", event.by, event.phase);
                self.given("reason", &event.reason)?;
                let opened = self.history.phases_opened();
                let open = opened.last() == Some(&event.phase.as_str());
                demand!("G7", open && !self.history.is_closed(&event.phase), "{} was closed", event.phase);
                let complete = |circle: &&str| self.history.circle_state(circle) == "complete";
                let lost = self.history.circles().into_iter().find(complete);
                demand!("G6", lost.is_none(), "{lost:?} was complete and its phase was closed");
            }
            Fact::Dropped(event) => {
                let decides = matches!(asked.verb, "answer" | "revise") && asked.by == event.by;
                let decided = decides && self.history.was_human(&event.by, first);
                demand!("G7", decided, "{} dropped {}", event.by, event.proposal);
                self.given("reason", &event.reason)?;
                self.open_circle(&event.proposal)?;
            }
            Fact::Replaced(event) | Fact::Excused(event) => {
                let decided = asked.verb == "answer" && self.history.is_human(&event.by);
                demand!("G7", decided, "{} decided about {}", event.by, event.reviewer);
            }
        }
        Ok(())
    }

    fn knows(&self, member: &str) -> bool {
        self.history.charter().is_some_and(|charter| charter.members.contains_key(member))
    }

    fn limits(&self) -> &super::stored::Limits {
        &self.history.charter().expect("the charter is the first fact of a log").limits
    }

    fn text(&self, what: &str, text: &str) -> Verdict {
        let (bytes, limit) = (text.len(), self.limits().text_bytes);
        demand!("limits", bytes <= limit, "the {what} has {bytes} bytes of {limit}");
        Ok(())
    }

    fn given(&self, what: &str, text: &str) -> Verdict {
        demand!("limits", !text.trim().is_empty(), "there is no {what}");
        self.text(what, text)
    }

    fn open_circle(&self, proposal: &str) -> Verdict {
        let opened = self.history.phases_opened();
        let phase = self.history.place(proposal).map_or("", |(phase, _)| phase.name.as_str());
        demand!("G1", opened.contains(&phase), "{proposal} moved before its phase opened");
        let circle = self.history.circle_of(proposal);
        let state = self.history.circle_state(circle);
        demand!("G1", state == "open", "{proposal} changed while {circle} is {state}");
        demand!("G1", !self.history.is_dropped(proposal), "{proposal} was dropped and changed");
        Ok(())
    }

    fn opened(&self, phase: &str) -> Verdict {
        let opened = self.history.phases_opened();
        let charter = self.history.charter();
        let next = charter.and_then(|charter| charter.phases.get(opened.len()));
        demand!("G7", next.is_some_and(|next| next.name == phase), "{phase} opened out of turn");
        for proposal in
            charter.iter().flat_map(|charter| &charter.phases[..opened.len()]).flat_map(|p| &p.deliverables)
        {
            let state = self.history.circle_state(self.history.circle_of(&proposal.name));
            let over = matches!(state, "published" | "closed");
            demand!("G7", over, "{phase} opened while {} is {state}", proposal.name);
        }
        let before = charter.and_then(|charter| charter.phases[..opened.len()].last());
        let by_itself = before.is_none_or(|before| before.confirm == "together");
        let closed = before.is_some_and(|before| self.history.is_closed(&before.name));
        demand!("G7", by_itself || closed, "{phase} opened and nobody closed the one before");
        Ok(())
    }

    /// Nothing but the first version of a new name, by somebody who is reviewed in an open phase of its kind.
    fn ad_hoc(&self, phase: &str, event: &Proposed) -> Verdict {
        let (history, name) = (&self.history, event.proposal.as_str());
        let fresh = event.version == 1 && history.place(name).is_none();
        demand!("G14", fresh, "{name} is known, and was proposed ad hoc");
        let open = history.phases_opened().last() == Some(&phase) && !history.is_closed(phase);
        let charter = history.charter().expect("the charter is the first fact of a log");
        let found = charter.phases.iter().find(|known| known.name == phase);
        let fits = found.is_some_and(|found| {
            found.confirm == "each" && found.reviews.iter().any(|edge| edge.of == event.producer)
        });
        demand!("G3", open && fits, "{} proposed {name} in {phase}", event.producer);
        Ok(())
    }

    fn proposed(&self, asked: &Asked, event: &Proposed, at: i64) -> Verdict {
        let (history, name) = (&self.history, event.proposal.as_str());
        demand!("G14", *name == asked.subject, "{} became {name}", asked.subject);
        demand!("G14", event.producer == history.producer(name), "{} doesn't produce {name}", event.producer);
        self.open_circle(name)?;
        let offers = history.offers(name);
        let current = offers.last().map_or(0, |offer| offer.what.version);
        demand!("G2", event.version == current + 1, "{name}@{} follows {current}", event.version);
        demand!("G2", asked.after == current, "{name} was to follow {} and followed {current}", asked.after);
        demand!(
            "G2",
            event.artifact.digest == asked.artifact,
            "{name} holds something else than was offered"
        );
        demand!("G2", !asked.empty, "{name}@{} holds nothing", event.version);
        let remarks = history.remarks_on(name);
        for offer in offers.iter().filter(|offer| offer.what.artifact.content == event.artifact.content) {
            let version = offer.what.version;
            demand!("G2", version != current, "{name}@{} changes nothing", event.version);
            let there = |remark: &&Remark<'_>| remark.version == version && !remark.followed;
            let standing = remarks.iter().filter(there).find(|remark| remark.stands());
            demand!("G2", standing.is_none(), "{name}@{version} is back, with all that was objected to");
        }
        for path in &event.paths {
            demand!("G14", self.may_touch(&event.producer, path), "{} touches {path}", event.producer);
        }
        self.text("summary", &event.summary)?;
        let mut taken_up = Vec::new();
        for source in &event.follows {
            let same = history.producer(source) == event.producer;
            demand!("G3", same && source != name, "{} took up {source}", event.producer);
            let open = history.remarks_on(source).into_iter().filter(Remark::is_open_objection);
            taken_up.extend(open);
        }
        for (id, answer) in &event.answers {
            self.text("answer", answer)?;
            demand!(
                "G4",
                remarks.iter().chain(&taken_up).any(|remark| remark.id == id),
                "{id} is answered and isn't on {name}"
            );
        }
        for remark in remarks.iter().chain(&taken_up).filter(|remark| remark.closed.is_none()) {
            demand!("G4", remark.read, "{} by {} was never read", remark.id, remark.by);
            let answer = event.answers.get(remark.id).map_or("", |answer| answer.trim());
            demand!("G4", remark.is_note || !answer.is_empty(), "{} is not answered", remark.id);
        }
        if let Some((_, flip)) = history.flips(name).last().filter(|_| history.is_withdrawn(name)) {
            let until = flip.saturating_add(self.limits().withdraw_cooldown);
            demand!("G5", at >= until, "{name} came back at {at}, before {until}");
        }
        let objected =
            remarks.iter().any(|remark| remark.version == current && !remark.followed && remark.stands());
        let follows = !event.follows.is_empty() && event.round;
        let round = follows || objected && !history.publish_failed(name);
        demand!("G5", event.round == round, "{name}@{} counts as a round: {}", event.version, event.round);
        let rounds = history.rounds(name, history.raised("round-limit", name, None)) + usize::from(round);
        demand!("G5", rounds <= self.limits().rounds || !round, "{name} went through {rounds} rounds");
        Ok(())
    }

    /// Owned paths, as the charters of the simulation write them: a folder with all in it, or a file.
    fn may_touch(&self, producer: &str, path: &str) -> bool {
        let Some(charter) = self.history.charter() else { return false };
        let owns = |member: &super::stored::Member| {
            member.owns.iter().any(|pattern| match pattern.strip_suffix("**") {
                Some(folder) => path.starts_with(folder),
                None => path == pattern,
            })
        };
        charter.members.get(producer).is_some_and(owns) || !charter.members.values().any(owns)
    }

    fn read(&self, asked: &Asked, event: &VersionRead) -> Verdict {
        demand!("G1", event.proposal == asked.subject, "{} was shown for {}", event.proposal, asked.subject);
        let current = self.history.current(&event.proposal).map_or(0, |offer| offer.what.version);
        let wanted = asked.version.unwrap_or(current);
        demand!("G1", event.version == wanted, "version {} was shown for {wanted}", event.version);
        Ok(())
    }

    fn objections_read(&self, event: &ObjectionsRead) -> Verdict {
        let producer = self.history.producer(&event.proposal);
        demand!("G4", event.by == producer, "{} read what {producer} must", event.by);
        Ok(())
    }

    /// What a vote or a note demands of its version and its member.
    fn spoken(&self, asked: &Asked, by: &str, proposal: &str, version: u32, lenses: &[String]) -> Verdict {
        let history = &self.history;
        demand!("G1", asked.subject == proposal, "{} became {proposal}", asked.subject);
        demand!("G1", asked.version == Some(version), "{:?} became {version}", asked.version);
        let current = history.current(proposal);
        demand!("G2", current.is_some(), "{by} speaks of {proposal}, which has no version");
        let current = current.expect("it was just demanded").what;
        demand!(
            "G2",
            current.version == version,
            "{by} speaks of version {version}, not {}",
            current.version
        );
        let digits = asked.digits.as_deref().unwrap_or("?");
        let named = current.artifact.digest.starts_with(digits);
        demand!("G1", named, "{by} speaks of {digits}, and it is {}", current.artifact.digest);
        demand!(
            "G1",
            history.was_shown(by, proposal, version).is_some(),
            "{by} wasn't shown {proposal}@{version}"
        );
        demand!("G2", !history.is_withdrawn(proposal), "{proposal}@{version} is withdrawn");
        self.open_circle(proposal)?;
        let edges = history.edges(proposal);
        let own: Vec<&String> =
            edges.iter().filter(|edge| edge.reviewer == by).map(|edge| &edge.lens).collect();
        demand!("G1", !own.is_empty(), "{by} doesn't review {proposal}");
        demand!("G1", own == lenses.iter().collect::<Vec<_>>(), "{by} speaks for {lenses:?}, not {own:?}");
        demand!("G1", !asked.misplaced, "{by} names a place that {proposal}@{version} doesn't have");
        Ok(())
    }

    fn approved(&self, asked: &Asked, event: &Approved) -> Verdict {
        let Approved { by, proposal, version, ran, .. } = event;
        self.spoken(asked, by, proposal, *version, &event.lenses)?;
        let own = self.history.own_work(by, proposal, *version);
        demand!("G3", own.is_none(), "{by} approves own work: {own:?}");
        for remark in self.history.remarks_on(proposal).iter().filter(|remark| remark.by == by) {
            demand!("G1", !remark.is_open_objection(), "{by} approves and holds {}", remark.id);
            let Some(test) = remark.failing_test.filter(|_| remark.stands()) else { continue };
            let passes =
                ran.iter().any(|run| run.command == test && run.exit == Some(0) && run.output.is_some());
            demand!("G1", passes, "{test} of {} isn't shown to pass", remark.id);
        }
        for run in ran {
            self.given("command", &run.command)?;
            self.text("output", run.output.as_deref().unwrap_or_default())?;
        }
        self.vote_limit(by, proposal, *version, Way::Approve, event.lenses.len())
    }

    fn raised(&self, asked: &Asked, event: &Raised) -> Verdict {
        self.spoken(asked, &event.by, &event.proposal, event.version, &event.lenses)?;
        self.given("text", &event.text)?;
        if let Some(test) = &event.failing_test {
            self.given("command", &test.command)?;
            self.text("output", test.output.as_deref().unwrap_or_default())?;
        }
        let raised = self.history.remarks().iter().filter(|remark| !remark.followed).count();
        let fresh = format!("o{}", raised + 1);
        demand!("G4", event.id == fresh, "{} was given instead of {fresh}", event.id);
        Ok(())
    }

    fn vote_limit(&self, by: &str, proposal: &str, version: u32, way: Way, lenses: usize) -> Verdict {
        let Some(current) = self.history.current(proposal) else { return Ok(()) };
        let reference = format!("{proposal}@{version}:{}", &current.what.artifact.digest[..12]);
        let since = self.history.raised("vote-limit", &reference, Some(by));
        let mut votes = self.history.votes(by, proposal, version);
        votes.push((self.history.entries.len(), way));
        // What is owed anew, through a further lens that a person gave, is no change of what was said before.
        let through = |moment: usize| match self.history.entries.get(moment).map(|entry| &entry.fact) {
            Some(Fact::Approved(event)) => event.lenses.len(),
            Some(Fact::Objected(event)) => event.lenses.len(),
            _ => lenses,
        };
        let changed = |pair: &&[(usize, Way)]| {
            pair[0].1 != pair[1].1 && pair[1].0 > since && through(pair[0].0) >= through(pair[1].0)
        };
        let changes = votes.windows(2).filter(changed).count();
        // A charter may lower the limit below what was used: what is said once more is no change.
        let again = votes.windows(2).last().is_none_or(|last| !changed(&last));
        demand!(
            "G5",
            again || changes <= self.limits().vote_changes,
            "{by} changed its vote {changes} times"
        );
        Ok(())
    }

    fn closed(&self, event: &ObjectionClosed) -> Verdict {
        let (history, by) = (&self.history, event.by.as_str());
        let remarks = history.remarks();
        let found = remarks.iter().find(|remark| remark.id == event.id && remark.proposal == event.proposal);
        demand!("G4", found.is_some(), "{} closed and was never raised", event.id);
        let remark = found.expect("it was just demanded");
        demand!("G4", !remark.is_note, "{} is a note and closed", event.id);
        demand!("G4", remark.closed.is_none(), "{} closed twice", event.id);
        self.open_circle(remark.proposal)?;
        let current = history.current(remark.proposal).map_or(0, |offer| offer.what.version);
        demand!("G2", event.version == current, "{} closed on {}, not {current}", event.id, event.version);
        let reason = event.reason.as_deref().unwrap_or_default();
        self.text("reason", reason)?;
        match event.how.as_str() {
            "resolved" => {
                demand!("G1", remark.by == by, "{by} resolved {}, of {}", event.id, remark.by);
                demand!("G1", current > remark.version, "{} resolved and nothing changed", event.id);
                let shown = history.was_shown(by, remark.proposal, current).is_some();
                demand!("G1", shown, "{by} resolved {} unseen", event.id);
            }
            "mistaken" => {
                demand!("G1", remark.by == by, "{by} took back {}, of {}", event.id, remark.by);
                self.given("reason", reason)?;
            }
            "overruled" => {
                demand!("G7", history.is_human(by), "{by} is no person and overruled {}", event.id);
                let own = history.own_work(by, remark.proposal, remark.version);
                demand!("G3", own.is_none(), "{by} overruled on own work: {own:?}");
                self.given("reason", reason)?;
            }
            other => demand!("G7", false, "{} closed as {other}", event.id),
        }
        Ok(())
    }

    fn withdrawn(&self, event: &Withdrawn, at: i64) -> Verdict {
        let (history, name) = (&self.history, event.proposal.as_str());
        demand!("G14", history.producer(name) == event.by, "{} withdrew {name}", event.by);
        let current = history.current(name).map_or(0, |offer| offer.what.version);
        demand!("G5", current > 0 && event.version == current, "{name}@{} was withdrawn", event.version);
        demand!("G5", !history.is_withdrawn(name), "{name} was withdrawn twice");
        self.given("reason", &event.reason)?;
        self.open_circle(name)?;
        let flips = history.flips(name);
        if let Some((_, last)) = flips.last() {
            let until = last.saturating_add(self.limits().withdraw_cooldown);
            demand!("G5", at >= until, "{name} was withdrawn at {at}, before {until}");
        }
        let since = history.raised("flip-limit", name, None);
        let count = flips.iter().filter(|(moment, _)| *moment > since).count() + 1;
        demand!("G5", count <= self.limits().withdraw_flips, "{name} was withdrawn {count} times");
        Ok(())
    }

    fn check_reported(&self, event: &CheckReported) -> Verdict {
        let (history, name) = (&self.history, event.proposal.as_str());
        self.open_circle(name)?;
        let required = history.charter().is_some_and(|charter| charter.required_checks.contains(&event.name));
        demand!("G7", required, "{} is no check that is required", event.name);
        let current = history.current(name).map_or(0, |offer| offer.what.version);
        demand!("G2", event.version == current, "{name}@{} was checked, not {current}", event.version);
        demand!("G2", !history.is_withdrawn(name), "{name} is withdrawn and was checked");
        self.text("output", event.output.as_deref().unwrap_or_default())
    }

    fn confirmed(&mut self, asked: &Asked, event: &Confirmed) -> Verdict {
        let (history, circle) = (&self.history, event.circle.as_str());
        demand!("G1", asked.subject == circle, "{} was confirmed for {}", circle, asked.subject);
        let digits = asked.digits.as_deref().unwrap_or("?");
        demand!("G1", event.manifest.starts_with(digits), "{digits} became {}", event.manifest);
        demand!("G1", history.circle_state(circle) == "open", "{circle} is final and was confirmed");
        demand!(
            "G14",
            history.participants(circle).contains(event.by.as_str()),
            "{} has no part in {circle}",
            event.by
        );
        for proposal in history.circle_proposals(circle) {
            // A reviewer may confirm what couldn't be published; its producer can't, so that it lapses.
            let denied = history.denied(proposal, history.producer(proposal) == event.by);
            demand!("G1", denied.is_empty(), "{circle} was confirmed, but of {proposal} {denied:?}");
        }
        let asked = history.asked_of_persons(circle);
        let decides = !history.enforces("confirm/open-escalation");
        demand!("G7", asked.is_empty() || decides, "{circle} was confirmed, and persons are asked {asked:?}");
        let content = history.content(circle);
        let known = self.contents.entry(event.manifest.clone()).or_insert_with(|| content.clone());
        demand!("G1", *known == content, "{} names both {known} and {content}", event.manifest);
        let named = self.manifests.entry(content.clone()).or_insert_with(|| event.manifest.clone());
        demand!("G1", *named == event.manifest, "{content} is named {named} and {}", event.manifest);
        Ok(())
    }

    fn completed(&self, event: &CircleCompleted) -> Verdict {
        let (history, circle) = (&self.history, event.circle.as_str());
        demand!("G1", history.circle_state(circle) == "open", "{circle} was completed twice");
        let content = history.content(circle);
        let named = self.manifests.get(&content);
        demand!(
            "G1",
            named == Some(&event.manifest),
            "{circle} completed with {}, not {content}",
            event.manifest
        );
        for member in history.participants(circle) {
            let confirms = history.confirms(&member, circle, &event.manifest);
            demand!("G1", confirms, "{circle} completed without {member}");
        }
        let held: Vec<&str> = event.entries.iter().map(|entry| entry.proposal.as_str()).collect();
        let mut owed = history.circle_proposals(circle);
        if !history.enforces("confirm/undelivered") {
            owed.retain(|name| history.current(name).is_some());
        }
        let same = held.len() == owed.len() && owed.iter().all(|name| held.contains(name));
        demand!("G1", same, "{circle} completed with {held:?} of {owed:?}");
        for entry in &event.entries {
            let name = entry.proposal.as_str();
            // As strict as the charter, which may take less than G1 asks.
            let unmet = history.unmet(name).filter(|_| history.enforces_all());
            demand!("G1", unmet.is_none(), "{circle} completed, but of {name} {unmet:?}");
            let denied = history.denied(name, false);
            demand!("G1", denied.is_empty(), "{circle} completed, but of {name} {denied:?}");
            let current = history.current(name).expect("it was just counted").what;
            let exact = entry.version == current.version && entry.digest == current.artifact.digest;
            demand!("G1", exact, "{name}@{}:{} completed", entry.version, entry.digest);
            let edges = history.edges(name);
            let strict = history.enforces("confirm/approval-missing")
                && history.enforces("confirm/reviewer-ineligible")
                && history.enforces("confirm/undelivered");
            let all = edges.len() == entry.approvals.len();
            demand!("G1", all || !strict, "{name}: {:?} counted of {edges:?}", entry.approvals);
            for counted in &entry.approvals {
                let same = |edge: &Edge| edge.reviewer == counted.by && edge.lens == counted.lens;
                let edge = edges.iter().find(|edge| same(edge));
                demand!("G1", edge.is_some(), "{name}: {counted:?} counted for {edges:?}");
                demand!("G2", counted.version == current.version, "{name}: {counted:?} counted");
                let approves = history.approves(&counted.by, name, current.version);
                demand!("G1", approves != counted.overruled, "{name}: {counted:?} counted");
                let own = history.own_work(&counted.by, name, current.version);
                demand!("G3", counted.overruled || own.is_none(), "{name}: {counted:?} counted, {own:?}");
            }
        }
        Ok(())
    }

    /// G13: whatever has stood still for too long, not counting the time without a server, is before a
    /// person.
    pub fn nothing_stalls_unseen(&self, now: i64) -> Verdict {
        let Some(charter) = self.history.charter() else { return Ok(()) };
        for circle in
            self.history.circles().into_iter().filter(|circle| self.history.circle_state(circle) == "open")
        {
            let since = self.history.progress_at(circle);
            let still = now - since - self.history.away(since, now);
            let told = self
                .history
                .escalations()
                .iter()
                .any(|(_, cause, subject, open)| *cause == "stall" && *subject == circle && *open);
            let due = charter.limits.stall_after > 0 && still >= charter.limits.stall_after;
            demand!("G13", due == told || (told && !due), "{circle} stands still for {still}, told {told}");
            demand!("G13", told || !due, "{circle} stands still for {still} and nobody is told");
        }
        Ok(())
    }

    fn escalated(&self, asked: &Asked, event: &Escalated, at: i64) -> Verdict {
        let by_time = matches!(event.cause.as_str(), "stall" | "overdue");
        demand!("G13", by_time == (asked.verb == "time"), "{} by {}", event.cause, asked.verb);
        let all = self.history.escalations();
        if event.cause == "asked" {
            let subject = event.subject.as_str();
            let own = asked.verb == "escalate" && event.member.as_ref() == Some(&asked.by);
            demand!("G14", own && asked.subject == subject, "{} asked about {subject}", asked.by);
            self.text("text", &event.text)?;
            let proposal = subject.split('@').next().unwrap_or_default();
            let known = self.history.remarks().iter().any(|remark| remark.id == subject)
                || self.history.place(proposal).is_some()
                || self.history.phases_opened().contains(&subject)
                || !self.history.circle_proposals(subject).is_empty();
            demand!("G13", known, "nobody knows {subject}, and it is before a person");
        }
        demand!("G13", event.id == format!("e{}", all.len() + 1), "{} is not the next escalation", event.id);
        demand!("G13", !event.text.trim().is_empty(), "{} says nothing", event.id);
        // Each reviewer has a vote limit of its own; everything else is before a person once.
        let known = self.history.before_a_person(&event.cause, &event.subject);
        let again = match event.cause.as_str() {
            "overdue" => self.history.is_overdue(event.obligation.as_deref(), event.member.as_deref()),
            "vote-limit" | "asked" => known.contains(&event.member.as_deref()),
            _ => !known.is_empty(),
        };
        demand!("G13", !again, "{} on {} is before a person already", event.cause, event.subject);
        if event.cause == "member-deaf" {
            self.told_unheard(asked, event, at)?;
        }
        Ok(())
    }

    /// A person is told of a silence once: of one that is long enough, and that nobody answered.
    fn told_unheard(&self, asked: &Asked, event: &Escalated, at: i64) -> Verdict {
        let member = event.member.as_deref().unwrap_or_default();
        let found = asked.silent.iter().find(|(silent, ..)| silent == member);
        demand!("G13", asked.verb == "unheard" && found.is_some(), "{member} hears, and was told of");
        let (_, since, heard) = found.expect("it was just demanded");
        demand!("G13", at - since >= UNHEARD_MIN, "{member} was told of after {}", at - since);
        let last = self.history.answered_unheard(member);
        let same = heard.is_some_and(|heard| last.is_some_and(|last| last >= heard));
        demand!("G13", !same, "a person answered for the silence of {member} already");
        Ok(())
    }

    fn escalation_closed(&self, asked: &Asked, event: &EscalationClosed) -> Verdict {
        let all = self.history.escalations();
        let found = all.iter().find(|(id, ..)| *id == event.id);
        demand!("G13", found.is_some_and(|(.., open)| *open), "{} closed and wasn't open", event.id);
        let (_, cause, subject, _) = found.expect("it was just demanded");
        let Some(by) = &event.by else {
            demand!("G7", event.decision.is_none(), "nobody decided {:?}", event.decision);
            let ended = self.history.circle_state(self.history.circle_of(subject)) == "closed"
                || self.history.ended(&event.id);
            let lasting = !ended && *cause == "asked" || matches!(*cause, "recovery" | "mention-chain");
            let limit = !ended
                && asked.verb != "revise"
                && *cause == "flip-limit"
                && self.history.circle_state(self.history.circle_of(subject)) == "open";
            demand!("G13", !lasting && !limit, "{subject} closed by itself: {cause}");
            let told_at = self.history.told_at(&event.id);
            let silent = |(member, _, heard): &(String, i64, Option<i64>)| {
                member == subject && heard.is_none_or(|heard| heard < told_at)
            };
            let unheard =
                asked.unknown.iter().any(|member| member == subject) || asked.silent.iter().any(silent);
            let wrongly = *cause == "member-deaf" && unheard && event.reason.contains("heard");
            demand!("G13", !wrongly, "{subject} was not heard again");
            return Ok(());
        };
        demand!("G14", *by == asked.by && asked.verb == "answer", "{by} answered by {}", asked.verb);
        demand!("G14", asked.subject == event.id, "{} was answered as {}", asked.subject, event.id);
        demand!("G7", self.history.is_human(by), "{by} is no person and decided {}", event.id);
        self.given("reason", &event.reason)?;
        let fitting: &[&str] = match *cause {
            "stall" | "overdue" => {
                &["extend", "overrule", "replace", "excuse", "drop-deliverable", "close-phase", "dismiss"]
            }
            "member-deaf" => &["dismiss", "overrule", "replace", "excuse", "drop-deliverable", "close-phase"],
            "round-limit" => &["raise-limit", "overrule", "drop-deliverable", "close-phase"],
            "vote-limit" => &["raise-limit", "replace", "drop-deliverable", "close-phase"],
            "flip-limit" => &["raise-limit", "drop-deliverable", "close-phase", "dismiss"],
            "reviewer-not-eligible" => &["dismiss", "replace", "excuse", "drop-deliverable", "close-phase"],
            "overruled-again" => &["dismiss", "overrule", "drop-deliverable", "close-phase"],
            "reviewer-gone" => &["overrule", "drop-deliverable", "close-phase"],
            "publish-failure" => &["dismiss", "drop-deliverable", "close-phase"],
            "moved-ref" => &["put-back", "accept-move"],
            "asked" => {
                &["dismiss", "extend", "overrule", "replace", "excuse", "drop-deliverable", "close-phase"]
            }
            _ => &["dismiss"],
        };
        let decision = event.decision.as_deref().unwrap_or_default();
        demand!("G7", fitting.contains(&decision), "{decision} doesn't answer {cause}");
        Ok(())
    }

    /// What a batch must hold together.
    fn after(&self, asked: &Asked, accepted: bool, first: usize) -> Verdict {
        if !accepted {
            return Ok(());
        }
        let history = &self.history;
        let batch = || history.entries[first..].iter().map(|entry| &entry.fact);
        match asked.verb {
            "say" => self.chains_are_told()?,
            "revise" => {
                let charter = history.charter().expect("one was just adopted");
                for circle in history.circles() {
                    if history.circle_state(circle) != "open" {
                        continue;
                    }
                    for proposal in history.circle_proposals(circle) {
                        let producer = history.producer(proposal);
                        let here = charter.members.contains_key(producer);
                        let reviewed = !history.edges(proposal).is_empty() || history.was_excused(proposal);
                        demand!("G8", here && reviewed, "{proposal} of {producer} is nobody's any longer");
                        for remark in history.remarks_on(proposal).iter().filter(|r| r.is_open_objection()) {
                            let gone = !charter.members.contains_key(remark.by);
                            let told = history.escalations().iter().any(|(_, cause, subject, open)| {
                                *open && *cause == "reviewer-gone" && *subject == remark.id
                            });
                            demand!("G13", told || !gone, "{} of {} is nobody's", remark.id, remark.by);
                        }
                    }
                }
            }
            "confirm" => {
                let circle = asked.subject.as_str();
                let confirmed = batch().find_map(|fact| match fact {
                    Fact::Confirmed(event) => Some(event.manifest.as_str()),
                    _ => None,
                });
                let Some(manifest) = confirmed else { return Ok(()) };
                let all = history
                    .participants(circle)
                    .iter()
                    .all(|member| history.confirms(member, circle, manifest));
                let complete = history.circle_state(circle) == "complete";
                demand!("G8", all == complete, "{circle}: confirmed by all {all}, complete {complete}");
            }
            "report" => {
                let done = history.phases_opened();
                let charter = history.charter().expect("a circle has a charter");
                let phase = &charter.phases[done.len() - 1];
                let over = |name: &String| {
                    matches!(history.circle_state(history.circle_of(name)), "published" | "closed")
                };
                let last =
                    phase.confirm == "together" && phase.deliverables.iter().all(|held| over(&held.name));
                demand!(
                    "G8",
                    !last || done.len() == charter.phases.len(),
                    "{done:?} are done and nothing opened"
                );
            }
            "propose" => {
                let name = asked.subject.as_str();
                let current = history.current(name).expect("a version was just accepted").what;
                let edges = history.edges(name);
                let blocked = edges
                    .iter()
                    .any(|edge| history.own_work(&edge.reviewer, name, current.version).is_some());
                let told = batch().any(
                    |fact| matches!(fact, Fact::Escalated(event) if event.cause == "reviewer-not-eligible"),
                );
                demand!("G8", blocked == told, "{name}@{}: blocked {blocked}, told {told}", current.version);
                let old = |subject: &str| {
                    let version = subject.strip_prefix(name).and_then(|rest| rest.strip_prefix('@'));
                    let number = version.and_then(|rest| rest.split(':').next());
                    number.is_some_and(|number| number != current.version.to_string())
                };
                let stale = history
                    .escalations()
                    .into_iter()
                    .find(|(_, cause, subject, open)| *open && *cause != "asked" && old(subject));
                demand!("G13", stale.is_none(), "{stale:?} is past, and before a person");
            }
            "object" => {
                let again = history.is_overruled(&asked.by, &asked.subject, asked.version.unwrap_or(0));
                let told = history.escalations().iter().any(|(_, cause, subject, open)| {
                    let of = format!("{}@{}:", asked.subject, asked.version.unwrap_or(0));
                    *open && *cause == "overruled-again" && subject.starts_with(&of)
                });
                demand!(
                    "G7",
                    told || !again,
                    "{} was overruled, objects again, and nobody is told",
                    asked.by
                );
            }
            "approve" | "resolve" | "overrule" => {
                let closed = batch().find_map(|fact| match fact {
                    Fact::Closed(event) => Some(event.proposal.as_str()),
                    _ => None,
                });
                let Some(name) = closed else { return Ok(()) };
                let open = history.remarks_on(name).iter().any(Remark::is_open_objection);
                let round = history
                    .escalations()
                    .iter()
                    .any(|(_, cause, subject, open)| *open && *cause == "round-limit" && *subject == name);
                demand!(
                    "G13",
                    open || !round,
                    "nothing on {name} is open, and its rounds are before a person"
                );
            }
            _ => {}
        }
        Ok(())
    }
}
