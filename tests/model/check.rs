//! What each event must have been allowed by, and what it makes of the facts. Names of guarantees are those of
//! docs/guarantees.md.

use std::collections::BTreeSet;

use countersign::protocol::adoption::Revise;
use countersign::protocol::escalation::Cause;
use countersign::protocol::event::CharterAdopted;
use countersign::protocol::name::{Actor, ObjectionId};
use countersign::protocol::review::{
    Approved, CircleCompleted, Confirmed, NamedPlace, ObjectionClosed, Proposed, Run,
};
use countersign::protocol::{Command, Event};

use super::facts::{Closed, Facts, Offer, Remark, Ring, Rules, Said, State, Work, passed};

/// A guarantee that doesn't hold, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    pub guarantee: &'static str,
    pub what: String,
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

/// What was asked, for the events that came of it.
pub struct Asking<'a> {
    pub who: &'a Actor,
    pub command: &'a Command,
}

impl Facts {
    /// Judges a refusal: nothing comes of it, but that the first one at a limit goes to a person.
    pub fn refused(&mut self, asking: &Asking<'_>, codes: &[&str], events: &[Event]) -> Verdict {
        for event in events {
            let fits = match event {
                Event::Escalated(opened) => match opened.cause {
                    Cause::RoundLimit => codes.contains(&"ROUND_LIMIT"),
                    Cause::FlipLimit => codes.contains(&"FLIP_LIMIT"),
                    Cause::VoteLimit => codes.contains(&"VOTE_LIMIT"),
                    _ => false,
                },
                Event::EscalationClosed(closed) => closed.by.is_none(),
                _ => false,
            };
            demand!("G7", fits, "{codes:?} changed something: {event:?}");
            self.event(asking, event)?;
        }
        let limits = [
            ("ROUND_LIMIT", Cause::RoundLimit),
            ("FLIP_LIMIT", Cause::FlipLimit),
            ("VOTE_LIMIT", Cause::VoteLimit),
        ];
        for (code, cause) in limits.into_iter().filter(|(code, _)| codes.contains(code)) {
            let told = self.asked.values().any(|asked| asked.cause == cause);
            demand!("G5", told, "{code} is before nobody");
        }
        Ok(())
    }

    /// Judges an answer of which nothing came: what it says must be so already.
    pub fn nothing_came(&self, asking: &Asking<'_>) -> Verdict {
        match asking.command {
            Command::Read(_) | Command::ReadObjections(_) | Command::ReportPublish(_) => {}
            Command::Confirm(confirm) => {
                let circle = confirm.reference.circle.as_str();
                let by = asking.who.to_string();
                let state = self.rings.get(circle).map(|ring| ring.state);
                let done = matches!(state, Some(State::Complete | State::Published));
                demand!("G1", done, "{circle} is {state:?}, and a confirmation of it was answered");
                demand!("G14", self.participants(circle).contains(&by), "{by} has no part in {circle}");
            }
            Command::TimePassed => {}
            other => demand!("G7", false, "{other:?} was accepted, and nothing came of it"),
        }
        Ok(())
    }

    /// Judges one event, and keeps what it says.
    pub fn event(&mut self, asking: &Asking<'_>, event: &Event) -> Verdict {
        match event {
            Event::CharterAdopted(event) => self.adopted(asking, event),
            Event::PhaseOpened(event) => self.phase_opened(event.phase.as_str()),
            Event::Proposed(event) => self.proposed(asking, event),
            Event::VersionRead(event) => {
                self.spoke(asking, event.by.as_str())?;
                let Command::Read(read) = asking.command else { return self.nobody_asked(event) };
                let work = self.work(event.proposal.as_str())?;
                let current = work.offers.len() as u32;
                let wanted = read.subject.version.unwrap_or(current);
                demand!("G1", event.version == wanted, "version {} was shown for {wanted}", event.version);
                let digest = &work.offers[wanted as usize - 1].digest;
                let named = read.subject.digest.as_ref().is_none_or(|one| digest.starts_with(one.as_str()));
                demand!("G1", named, "{:?} was shown as {digest}", read.subject.digest);
                if wanted == current {
                    work.shown.insert(event.by.to_string());
                }
                Ok(())
            }
            Event::ObjectionsRead(event) => {
                self.spoke(asking, event.by.as_str())?;
                let work = self.work(event.proposal.as_str())?;
                demand!("G4", work.producer == event.by.as_str(), "{} read what others must", event.by);
                for ObjectionId(id) in &event.objections {
                    work.remarks.get_mut(id).into_iter().for_each(|remark| remark.read = true);
                }
                Ok(())
            }
            Event::Approved(event) => self.approved(asking, event),
            Event::Objected(event) => {
                let Command::Object(object) = asking.command else { return self.nobody_asked(event) };
                self.spoken(
                    asking,
                    event.by.as_str(),
                    event.proposal.as_str(),
                    (event.version, &object.reference, &object.at),
                )?;
                self.given("text", &event.text)?;
                event.failing_test.iter().try_for_each(|run| self.run(run))?;
                let (by, name) = (event.by.to_string(), event.proposal.as_str());
                self.vote_limit(&by, name, false)?;
                let said = Said {
                    approves: false,
                    lenses: event.lenses.iter().map(ToString::to_string).collect(),
                    evidence: false,
                    passed: Default::default(),
                };
                let remark = Remark {
                    by: by.clone(),
                    version: event.version,
                    is_note: false,
                    test: event.failing_test.as_ref().map(|run| run.command.clone()),
                    closed: None,
                    read: false,
                };
                self.remark(event.id.0, name, remark)?;
                self.vote(&by, name, said)
            }
            Event::Noted(event) => {
                let Command::Note(note) = asking.command else { return self.nobody_asked(event) };
                self.spoken(
                    asking,
                    event.by.as_str(),
                    event.proposal.as_str(),
                    (event.version, &note.reference, &note.at),
                )?;
                self.given("text", &event.text)?;
                let limit = self.rules().notes;
                let (by, name) = (event.by.to_string(), event.proposal.as_str());
                let left = self.work(name)?.notes.entry(by.clone()).or_default();
                demand!("G5", *left < limit, "{by} left {left} notes, and one more");
                *left += 1;
                let remark = Remark {
                    by,
                    version: event.version,
                    is_note: true,
                    test: None,
                    closed: None,
                    read: false,
                };
                self.remark(event.id.0, name, remark)
            }
            Event::ObjectionClosed(event) => self.closed(asking, event),
            Event::Withdrawn(event) => {
                self.spoke(asking, event.by.as_str())?;
                let name = event.proposal.as_str();
                self.open(name)?;
                self.given("reason", &event.reason)?;
                let (limit, cooldown) = (self.rules().flips, self.rules().cooldown);
                let work = self.work(name)?;
                demand!("G14", work.producer == event.by.as_str(), "{} withdrew {name}", event.by);
                let current = work.offers.len() as u32;
                demand!("G5", current > 0 && event.version == current, "{name}@{} withdrawn", event.version);
                demand!("G5", !work.withdrawn, "{name} was withdrawn twice");
                demand!("G5", work.cools.is_none(), "{name} was withdrawn while it cools");
                demand!("G5", work.flips < limit, "{name} was withdrawn {} times, and again", work.flips);
                work.withdrawn = true;
                let circle = work.circle.clone();
                for kin in self.kin(name) {
                    let work = self.work(&kin)?;
                    work.flips += 1;
                    work.cools = Some(cooldown);
                }
                self.lapse(&circle);
                Ok(())
            }
            Event::CheckReported(event) => {
                self.spoke(asking, event.by.as_str())?;
                let Command::ReportCheck(report) = asking.command else { return self.nobody_asked(event) };
                let name = event.proposal.as_str();
                self.open(name)?;
                let known = self.rules().checks.contains(&event.name);
                demand!("G7", known, "{} is no check that is required", event.name);
                let work = self.work(name)?;
                let current = work.offers.len() as u32;
                demand!("G2", event.version == current, "{name}@{} was checked", event.version);
                demand!("G2", !work.withdrawn, "{name} is withdrawn, and was checked");
                let digest = &work.offers[current as usize - 1].digest;
                let named = digest.starts_with(report.reference.digest.as_str());
                demand!("G1", named, "{} was checked as {digest}", report.reference);
                work.checks.insert(event.name.clone(), event.exit);
                Ok(())
            }
            Event::Confirmed(event) => self.confirmed(asking, event),
            Event::CircleCompleted(event) => self.completed(event),
            Event::CirclePublished(event) => {
                let ring = self.ring(event.circle.as_str())?;
                let complete = ring.state == State::Complete && *asking.who == Actor::Server;
                demand!("G6", complete, "{} was published and isn't complete", event.circle);
                ring.state = State::Published;
                self.finish(event.circle.as_str())
            }
            Event::CircleReopened(event) => {
                let ring = self.ring(event.circle.as_str())?;
                let complete = ring.state == State::Complete && *asking.who == Actor::Server;
                demand!("G6", complete, "{} was opened again and isn't complete", event.circle);
                ring.state = State::Open;
                ring.confirmed.clear();
                for name in &event.owing {
                    self.work(name.as_str())?.failed = true;
                }
                Ok(())
            }
            Event::Said(event) => {
                self.spoke(asking, event.by.as_str())?;
                self.given("text", &event.text)?;
                self.heard(asking, event)
            }
            Event::ClaimJudged(event) => {
                self.spoke(asking, event.by.as_str())?;
                self.judged(event)
            }
            Event::Escalated(event) => self.escalated(asking, event),
            Event::EscalationClosed(event) => self.answered(asking, event),
            Event::PhaseClosed(event) => {
                self.decides(asking, event.by.as_str(), &event.reason)?;
                let name = event.phase.as_str();
                let phase = self.phases.iter_mut().find(|(known, over)| known == name && !*over);
                demand!("G7", phase.is_some(), "{name} was closed, and isn't open");
                phase.into_iter().for_each(|(_, over)| *over = true);
                for ring in self.rings.values_mut().filter(|ring| ring.phase == name) {
                    demand!("G6", ring.state != State::Complete, "{name} was closed, and publishes");
                    if ring.state == State::Open {
                        ring.state = State::Closed;
                        ring.confirmed.clear();
                    }
                }
                Ok(())
            }
            Event::DeliverableDropped(event) => {
                self.decides(asking, event.by.as_str(), &event.reason)?;
                let name = event.proposal.as_str();
                self.open(name)?;
                self.work(name)?.dropped = true;
                let circle = self.works[name].circle.clone();
                let left = self.works_of(&circle).next().is_some();
                let ring = self.ring(&circle)?;
                ring.confirmed.clear();
                if left { Ok(()) } else { self.close_ring(&circle) }
            }
            Event::ReviewerReplaced(event) => {
                self.decides_who(asking, event.by.as_str(), event.proposal.as_str())?;
                let (from, to) = (event.reviewer.as_str(), event.stand_in.as_str());
                let name = event.proposal.as_str();
                let places = self.places(name, from);
                let current = self.works[name].offers.len() as u32;
                let own = self.own(&self.works[name], current, to);
                demand!("G3", !own, "{to} is to review {name}, and has a hand in it");
                let work = self.work(name)?;
                for place in places {
                    work.stand_ins.insert(place, to.to_owned());
                }
                // What it said was through its own lenses alone; its objection stays until it is answered.
                work.overruled.remove(to);
                let objects = work.remarks.values().any(|remark| remark.blocks() && remark.by == to);
                if !objects {
                    work.votes.remove(to);
                    // What it then says anew is no change of its vote.
                    if let Some((last, _)) = work.changes.get_mut(to) {
                        *last = None;
                    }
                }
                Ok(())
            }
            Event::ReviewerExcused(event) => {
                self.decides_who(asking, event.by.as_str(), event.proposal.as_str())?;
                let name = event.proposal.as_str();
                let (gone, work) = (event.reviewer.as_str(), &self.works[name]);
                let lenses = self.lenses(work, gone);
                let left = self.edges(work);
                let looks = |lens: &String| left.iter().any(|(by, other)| by != gone && other == lens);
                demand!("G1", lenses.iter().all(looks), "{gone} alone looks at {name} and is excused");
                let places = self.places(name, gone);
                self.work(name)?.excused.extend(places);
                Ok(())
            }
            Event::CalledOut(_)
            | Event::DissentCalled(_)
            | Event::EscalationReminded(_)
            | Event::EscalationSent(_) => Ok(()),
            Event::ServerResumed(_) => Ok(()),
            // Nobody listens in these worlds.
            Event::Delivered(_) | Event::OwedAgain(_) | Event::Woken(_) => self.nobody_asked(event),
            Event::RecoveryFired(event) => {
                demand!("recovery", false, "{} fired on {}: {}", event.patch, event.subject, event.found);
                Ok(())
            }
        }
    }

    fn nobody_asked(&self, event: &dyn std::fmt::Debug) -> Verdict {
        demand!("G14", false, "nobody asked for it: {event:?}");
        Ok(())
    }

    pub(super) fn work(&mut self, name: &str) -> Result<&mut Work, Broken> {
        let what = || Broken { guarantee: "G1", what: format!("{name} is no work that is known") };
        self.works.get_mut(name).ok_or_else(what)
    }

    fn ring(&mut self, name: &str) -> Result<&mut Ring, Broken> {
        let what = || Broken { guarantee: "G1", what: format!("{name} is no circle that is known") };
        self.rings.get_mut(name).ok_or_else(what)
    }

    /// Nobody speaks for another, and only members speak (G14).
    fn spoke(&self, asking: &Asking<'_>, by: &str) -> Verdict {
        let same = asking.who.member().is_some_and(|who| who.as_str() == by);
        demand!("G14", same && self.rules().members.contains(by), "{} spoke as {by}", asking.who);
        Ok(())
    }

    /// What persons alone decide, each time with a reason.
    pub(super) fn decides(&self, asking: &Asking<'_>, by: &str, reason: &str) -> Verdict {
        self.spoke(asking, by)?;
        demand!("G7", self.is_human(by), "{by} is no person, and decides");
        self.given("reason", reason)
    }

    /// Nobody decides who reviews own work.
    fn decides_who(&self, asking: &Asking<'_>, by: &str, name: &str) -> Verdict {
        let Command::AnswerEscalation(answer) = asking.command else { return self.nobody_asked(&by) };
        self.decides(asking, by, &answer.reason)?;
        self.open(name)?;
        let work = &self.works[name];
        let own = self.own(work, work.offers.len() as u32, by);
        demand!("G3", !own, "{by} decides who reviews {name}, and has a hand in it");
        Ok(())
    }

    /// Every place that a member fills in the charter's edges.
    fn places(&self, name: &str, member: &str) -> Vec<String> {
        let work = &self.works[name];
        let Some(stretch) = self.stretch(&work.phase) else { return Vec::new() };
        let reviewers = stretch.reviews.iter().filter(|(_, of, _)| *of == work.producer);
        let places = reviewers.map(|(reviewer, ..)| reviewer);
        places
            .filter(|place| work.stand_ins.get(*place).map_or(place.as_str(), String::as_str) == member)
            .cloned()
            .collect()
    }

    pub(super) fn given(&self, what: &str, text: &str) -> Verdict {
        demand!("limits", !text.trim().is_empty(), "there is no {what}");
        self.text(what, text)
    }

    fn text(&self, what: &str, text: &str) -> Verdict {
        let short = text.len() <= self.rules().text_bytes;
        demand!("limits", short, "the {what} has {} bytes", text.len());
        demand!("limits", !text.contains('\0'), "the {what} holds a NUL");
        demand!("limits", !text.contains("AKIA"), "the {what} holds a key, which now stands in the log");
        Ok(())
    }

    fn run(&self, run: &Run) -> Verdict {
        self.given("command", &run.command)?;
        self.text("output", run.output.as_deref().unwrap_or_default())
    }

    /// Its circle is open, and nobody dropped it.
    fn open(&self, name: &str) -> Verdict {
        let found = self.works.get(name).and_then(|work| Some((work, self.rings.get(&work.circle)?)));
        let open = found.is_some_and(|(work, ring)| ring.state == State::Open && !work.dropped);
        demand!("G1", open, "{name} changed, and is final: {:?}", found.map(|(_, ring)| ring.state));
        Ok(())
    }

    fn adopted(&mut self, asking: &Asking<'_>, event: &CharterAdopted) -> Verdict {
        let first = self.rules.is_none();
        demand!("G14", event.revision == self.revision + 1, "revision {} follows", event.revision);
        if let Command::Revise(revise) = asking.command {
            let Revise { reason, .. } = &**revise;
            let by = asking.who.to_string();
            self.decides(asking, &by, reason)?;
            demand!("G12", event.digest.as_str() != self.charter, "the charter in force was adopted again");
        } else {
            demand!("G14", first && *asking.who == Actor::Operator, "{} adopted a charter", asking.who);
        }
        self.revision = event.revision;
        event.digest.as_str().clone_into(&mut self.charter);
        self.rules = Some(Rules::of(&event.charter));
        let Some((phase, _)) = self.phases.iter().find(|(_, over)| !over).cloned() else { return Ok(()) };
        self.owe(&phase);
        let rings: Vec<String> = self.open_rings().map(|(name, _)| name.clone()).collect();
        for circle in &rings {
            // The charter's revision is part of what is confirmed.
            self.lapse(circle);
            let names: Vec<String> = self.works_of(circle).map(|(name, _)| name.clone()).collect();
            for name in names {
                let work = &self.works[&name];
                let fits = |one: &String| *one != work.producer && self.rules().members.contains(one);
                let stays =
                    |(place, one): (&String, &String)| fits(one).then(|| (place.clone(), one.clone()));
                let stand_ins = work.stand_ins.iter().filter_map(stays).collect();
                self.work(&name)?.stand_ins = stand_ins;
                self.lapse_votes(&name)?;
            }
        }
        Ok(())
    }

    /// Whoever looks through a further lens now says anew what it sees: no word of before, and no decision in its
    /// stead, was about that.
    fn lapse_votes(&mut self, name: &str) -> Verdict {
        let work = &self.works[name];
        let fewer = |member: &String, lenses: &BTreeSet<String>| !self.lenses(work, member).is_subset(lenses);
        let decided: Vec<String> = work
            .overruled
            .iter()
            .filter(|(member, lenses)| fewer(member, lenses))
            .map(|(member, _)| member.clone())
            .collect();
        let current = work.offers.len() as u32;
        let lapsed: Vec<String> = work
            .votes
            .iter()
            .filter(|(by, said)| said.approves && (fewer(by, &said.lenses) || self.own(work, current, by)))
            .map(|(member, _)| member.clone())
            .collect();
        let work = self.work(name)?;
        lapsed.iter().for_each(|member| drop(work.votes.remove(member)));
        for member in decided {
            work.overruled.remove(&member);
            if !work.remarks.values().any(|remark| remark.blocks() && remark.by == member) {
                work.votes.remove(&member);
                work.changes.entry(member).and_modify(|(last, _)| *last = None);
            }
        }
        Ok(())
    }

    /// What the charter has in an open phase is owed.
    fn owe(&mut self, phase: &str) {
        let Some(stretch) = self.stretch(phase) else { return };
        let (each, owes) = (stretch.each, stretch.owes.clone());
        for (name, producer) in owes {
            let circle = if each { name.clone() } else { phase.to_owned() };
            if let Some(known) = self.works.get_mut(&name) {
                if known.offers.is_empty() {
                    known.producer = producer;
                }
                continue;
            }
            let ring = Ring { phase: phase.to_owned(), ..Ring::default() };
            self.rings.entry(circle.clone()).or_insert(ring).confirmed.clear();
            let work = Work { producer, phase: phase.to_owned(), circle, ..Work::default() };
            self.works.insert(name, work);
        }
    }

    fn phase_opened(&mut self, phase: &str) -> Verdict {
        let before = self.phases.last();
        demand!("G7", before.is_none_or(|(_, over)| *over), "{phase} opened beside {before:?}");
        let known = self.phases.iter().any(|(known, _)| known == phase);
        demand!("G7", !known && self.stretch(phase).is_some(), "{phase} opened again");
        self.phases.push((phase.to_owned(), false));
        self.owe(phase);
        Ok(())
    }

    fn close_ring(&mut self, circle: &str) -> Verdict {
        self.ring(circle)?.state = State::Closed;
        self.finish(circle)
    }

    /// A phase that finishes together is over with its circle.
    fn finish(&mut self, circle: &str) -> Verdict {
        let phase = self.ring(circle)?.phase.clone();
        let each = self.stretch(&phase).is_some_and(|stretch| stretch.each);
        if !each {
            self.phases.iter_mut().filter(|(name, _)| *name == phase).for_each(|(_, over)| *over = true);
        }
        Ok(())
    }

    fn proposed(&mut self, asking: &Asking<'_>, event: &Proposed) -> Verdict {
        let (name, by) = (event.proposal.as_str(), event.producer.as_str());
        self.spoke(asking, by)?;
        let Command::Propose(propose) = asking.command else { return self.nobody_asked(event) };
        if let Some(phase) = &event.ad_hoc {
            self.ad_hoc(phase.as_str(), name, by)?;
        }
        self.open(name)?;
        let work = &self.works[name];
        demand!("G14", work.producer == by, "{by} doesn't produce {name}");
        let current = work.offers.len() as u32;
        demand!("G2", event.version == current + 1, "{name}@{} follows {current}", event.version);
        demand!("G2", propose.after == current, "{name} was to follow {}, not {current}", propose.after);
        let same = event.artifact == propose.artifact && propose.proposal == event.proposal;
        demand!("G2", same, "{name} holds something else than was offered");
        demand!("G2", !propose.facts.empty, "{name}@{} holds nothing", event.version);
        let content = event.artifact.content.as_str();
        for (index, _) in work.offers.iter().enumerate().filter(|(_, offer)| offer.content == content) {
            let version = index as u32 + 1;
            demand!("G2", version != current, "{name}@{} changes nothing", event.version);
            let stands = work.remarks.values().any(|remark| remark.version == version && remark.stands());
            demand!("G2", !stands, "{name}@{version} is back, with all that was objected to");
        }
        for path in &event.paths {
            let path = path.to_string();
            let owners = self.rules().owned.iter().filter(|(folder, _)| path.starts_with(folder));
            let owners: Vec<&String> = owners.map(|(_, owner)| owner).collect();
            let free = owners.is_empty() || owners.iter().any(|owner| *owner == by);
            demand!("G14", free, "{by} touches {path}, of {owners:?}");
        }
        self.text("summary", &event.summary)?;
        for (id, answer) in &event.answers {
            self.text("answer", answer)?;
            demand!("G4", work.remarks.contains_key(&id.0), "{id} is answered, and isn't on {name}");
        }
        for (id, remark) in work.remarks.iter().filter(|(_, remark)| remark.closed.is_none()) {
            demand!("G4", remark.read, "o{id} by {} was never read", remark.by);
            let answer = event.answers.get(&ObjectionId(*id)).map_or("", |answer| answer.trim());
            demand!("G4", remark.is_note || !answer.is_empty(), "o{id} is not answered");
        }
        let away = work.withdrawn || work.ad_hoc && work.offers.is_empty();
        demand!("G5", !away || work.cools.is_none(), "{name} came back, {:?} too early", work.cools);
        let objected = work.remarks.values().any(|remark| remark.version == current && remark.stands());
        let round = current > 0 && objected && !work.failed;
        demand!("G5", event.round == round, "{name}@{} counts as a round: {}", event.version, event.round);
        let (rounds, limit) = (work.rounds + u32::from(round), self.rules().rounds);
        demand!("G5", !round || rounds <= limit, "{name} went through {rounds} rounds");
        let circle = work.circle.clone();
        for kin in self.kin(name) {
            self.work(&kin)?.rounds = rounds;
        }
        let work = self.work(name)?;
        work.offers.push(Offer {
            digest: event.artifact.digest.to_string(),
            content: content.to_owned(),
            authors: event.authors.iter().map(|author| author.email.clone()).collect(),
        });
        // What was said of the version before counts nothing here (G2).
        work.shown.clear();
        work.votes.clear();
        work.changes.clear();
        work.notes.clear();
        work.overruled.clear();
        work.checks.clear();
        (work.withdrawn, work.failed) = (false, false);
        self.lapse(&circle);
        Ok(())
    }

    fn ad_hoc(&mut self, phase: &str, name: &str, by: &str) -> Verdict {
        demand!("G14", !self.works.contains_key(name), "{name} is known, and was proposed ad hoc");
        let open = self.phases.iter().any(|(known, over)| known == phase && !over);
        let fits = self
            .stretch(phase)
            .is_some_and(|stretch| stretch.each && stretch.reviews.iter().any(|(_, of, _)| of == by));
        demand!("G3", open && fits, "{by} proposed {name} in {phase}, and is reviewed by nobody");
        let phases = &self.rules().phases;
        let named = phases.iter().any(|known| known.name == name);
        demand!("G14", !named, "{name} is a phase, and was proposed");
        let kin = |work: &&Work| work.ad_hoc && work.producer == by && work.phase == phase;
        let kin: Vec<&Work> = self.works.values().filter(kin).collect();
        let work = Work {
            producer: by.to_owned(),
            phase: phase.to_owned(),
            circle: name.to_owned(),
            ad_hoc: true,
            flips: kin.iter().map(|work| work.flips).max().unwrap_or(0),
            rounds: kin.iter().map(|work| work.rounds).max().unwrap_or(0),
            cools: kin.iter().filter_map(|work| work.cools).max(),
            ..Work::default()
        };
        self.works.insert(name.to_owned(), work);
        let ring = Ring { phase: phase.to_owned(), ..Ring::default() };
        self.rings.insert(name.to_owned(), ring);
        Ok(())
    }

    /// What a vote or a note demands of its version and its member.
    fn spoken(
        &self,
        asking: &Asking<'_>,
        by: &str,
        name: &str,
        (version, given, places): (u32, &countersign::protocol::name::VersionRef, &[NamedPlace]),
    ) -> Verdict {
        self.spoke(asking, by)?;
        self.open(name)?;
        let work = &self.works[name];
        let current = work.offers.len() as u32;
        demand!("G2", version == current, "{by} speaks of {name}@{version}, and {current} is current");
        let named = given.version == version && given.proposal.as_str() == name;
        demand!("G1", named, "{given} became {name}@{version}");
        let offer = work.offers.last().expect("it has a current version");
        let exact = offer.digest.starts_with(given.digest.as_str());
        demand!("G1", exact, "{given} was taken for {}", offer.digest);
        demand!("G1", work.shown.contains(by), "{by} wasn't shown {name}@{version}");
        demand!("G2", !work.withdrawn, "{name}@{version} is withdrawn, and {by} speaks of it");
        demand!("G1", !self.lenses(work, by).is_empty(), "{by} doesn't review {name}");
        let there = places.iter().all(|place| place.found);
        demand!("G1", there, "{by} names a place that {name}@{version} doesn't have");
        Ok(())
    }

    fn approved(&mut self, asking: &Asking<'_>, event: &Approved) -> Verdict {
        let Command::Approve(approve) = asking.command else { return self.nobody_asked(event) };
        let (by, name) = (event.by.as_str(), event.proposal.as_str());
        self.spoken(asking, by, name, (event.version, &approve.reference, &approve.checked))?;
        event.ran.iter().try_for_each(|run| self.run(run))?;
        let work = &self.works[name];
        demand!("G3", !self.own(work, event.version, by), "{by} approves own work, {name}");
        let shown = passed(&event.ran);
        for (id, remark) in work.remarks.iter().filter(|(_, remark)| remark.by == by) {
            demand!("G1", !remark.blocks(), "{by} approves and holds o{id}");
            let Some(test) = remark.test.as_ref().filter(|_| remark.stands()) else { continue };
            demand!("G1", shown.contains(test), "{test} of o{id} isn't shown to pass");
        }
        self.vote_limit(by, name, true)?;
        let said = Said {
            approves: true,
            lenses: event.lenses.iter().map(ToString::to_string).collect(),
            evidence: !event.checked.is_empty() || !event.ran.is_empty(),
            passed: shown,
        };
        self.vote(by, name, said)
    }

    fn vote_limit(&mut self, by: &str, name: &str, approves: bool) -> Verdict {
        let limit = self.rules().changes;
        let (last, count) = self.work(name)?.changes.get(by).copied().unwrap_or_default();
        let changed = last.is_some_and(|last| last != approves);
        demand!("G5", !changed || count < limit, "{by} changed its vote on {name} {count} times, and again");
        Ok(())
    }

    fn vote(&mut self, by: &str, name: &str, said: Said) -> Verdict {
        let work = self.work(name)?;
        let (last, count) = work.changes.entry(by.to_owned()).or_default();
        *count += u32::from(last.is_some_and(|last| last != said.approves));
        *last = Some(said.approves);
        work.votes.insert(by.to_owned(), said);
        let circle = work.circle.clone();
        // A later vote of a member lapses its own confirmation.
        self.ring(&circle)?.confirmed.remove(by);
        Ok(())
    }

    fn remark(&mut self, id: u32, name: &str, remark: Remark) -> Verdict {
        self.remarks_ever += 1;
        demand!("G4", id == self.remarks_ever, "o{id} is not the next one");
        self.work(name)?.remarks.insert(id, remark);
        Ok(())
    }

    fn closed(&mut self, asking: &Asking<'_>, event: &ObjectionClosed) -> Verdict {
        let (by, name, id) = (event.by.as_str(), event.proposal.as_str(), event.id.0);
        self.spoke(asking, by)?;
        self.open(name)?;
        let work = &self.works[name];
        let current = work.offers.len() as u32;
        let remark = work.remarks.get(&id);
        demand!("G4", remark.is_some(), "o{id} closed, and isn't on {name}");
        let remark = remark.expect("it was just demanded");
        demand!("G4", !remark.is_note, "o{id} is a note, and closed");
        demand!("G4", remark.closed.is_none(), "o{id} closed twice");
        let reason = event.reason.as_deref().unwrap_or_default();
        self.text("reason", reason)?;
        let how = Closed::from(event.how);
        match how {
            Closed::Resolved => {
                demand!("G1", remark.by == by, "{by} resolved o{id}, of {}", remark.by);
                demand!("G1", current > remark.version, "o{id} is resolved, and nothing changed");
                demand!("G1", work.shown.contains(by), "{by} resolved o{id} unseen");
                demand!("G1", !matches!(asking.command, Command::Overrule(_)), "o{id} was overruled");
            }
            Closed::Mistaken => {
                demand!("G1", remark.by == by, "{by} took back o{id}, of {}", remark.by);
                self.given("reason", reason)?;
            }
            Closed::Overruled => {
                demand!("G7", self.is_human(by), "{by} is no person, and overruled o{id}");
                self.given("reason", reason)?;
                // Whose work answers an objection decides no more about it than whose it was raised on.
                let own = (remark.version..=current).any(|version| self.own(work, version, by));
                demand!("G3", !own, "{by} overruled o{id} on own work");
            }
        }
        let (raised_on, objector) = (remark.version, remark.by.clone());
        let lenses = self.lenses(work, &objector);
        let work = self.work(name)?;
        work.remarks.get_mut(&id).into_iter().for_each(|remark| remark.closed = Some(how));
        let holds = |remark: &Remark| remark.blocks() && remark.by == objector && remark.version == raised_on;
        let holds_more = work.remarks.values().any(holds);
        if raised_on == current {
            if how == Closed::Overruled {
                work.overruled.entry(objector).or_default().extend(lenses);
            } else if !holds_more {
                // An earlier approval is never revived.
                work.votes.remove(&objector);
            }
        }
        Ok(())
    }

    fn confirmed(&mut self, asking: &Asking<'_>, event: &Confirmed) -> Verdict {
        let (by, circle) = (event.by.as_str(), event.circle.as_str());
        self.spoke(asking, by)?;
        let Command::Confirm(confirm) = asking.command else { return self.nobody_asked(event) };
        let given = &confirm.reference;
        let exact = given.circle == event.circle && given.digest.names(&event.manifest);
        demand!("G1", exact, "{given} was confirmed as {}", event.manifest);
        demand!("G1", self.ring(circle)?.state == State::Open, "{circle} is final and was confirmed");
        demand!("G14", self.participants(circle).contains(by), "{by} has no part in {circle}");
        for (name, work) in self.works_of(circle) {
            if let Some(unmet) = self.unmet(name, work) {
                demand!("G1", false, "{circle} was confirmed, but {unmet}");
            }
            // A reviewer may confirm what couldn't be published; its producer can't, so that it lapses.
            let again = !work.failed || work.producer != by;
            demand!("G1", again, "{by} confirmed {name}, which couldn't be published");
            let unread = work.remarks.iter().find(|(_, remark)| remark.closed.is_none() && !remark.read);
            demand!("G4", unread.is_none(), "{circle} was confirmed, and {unread:?} on {name} is unread");
            if let Some(unproven) = self.unproven(name, work) {
                demand!("G7", false, "{circle} was confirmed, but {unproven}");
            }
        }
        let asked = self.undecided(circle);
        demand!("G7", asked.is_none(), "{circle} was confirmed, and a person is asked {asked:?}");
        self.ring(circle)?.confirmed.insert(by.to_owned());
        Ok(())
    }

    /// G1 and G2, of what everybody stands by.
    fn completed(&mut self, event: &CircleCompleted) -> Verdict {
        let circle = event.circle.as_str();
        demand!("G1", self.ring(circle)?.state == State::Open, "{circle} was completed twice");
        let confirmed = &self.rings[circle].confirmed;
        let missing: Vec<String> =
            self.participants(circle).into_iter().filter(|one| !confirmed.contains(one)).collect();
        demand!("G1", missing.is_empty(), "{circle} completed without {missing:?}");
        let held: Vec<&String> = self.works_of(circle).map(|(name, _)| name).collect();
        let all = held.len() == event.entries.len();
        demand!("G1", all, "{circle} completed with {:?} of {held:?}", event.entries);
        for entry in &event.entries {
            let name = entry.proposal.as_str();
            let work = self.works.get(name).filter(|work| work.circle == circle && !work.dropped);
            demand!("G1", work.is_some(), "{circle} completed with {name}");
            let work = work.expect("it was just demanded");
            if let Some(unmet) = self.unmet(name, work) {
                demand!("G1", false, "{circle} completed, but {unmet}");
            }
            demand!("G1", !work.failed, "{circle} completed, but {name} couldn't be published");
            let current = work.offers.last().expect("what is met has a version");
            let exact =
                entry.version as usize == work.offers.len() && entry.digest.as_str() == current.digest;
            demand!("G1", exact, "{name}@{}:{} completed", entry.version, entry.digest);
            let edges = self.edges(work);
            demand!("G1", edges.len() == entry.approvals.len(), "{name}: {:?} counted", entry.approvals);
            for ((reviewer, lens), counted) in edges.iter().zip(&entry.approvals) {
                let same = *reviewer == counted.by.as_str() && *lens == counted.lens.as_str();
                demand!("G1", same, "{name}: {counted:?} counted for {reviewer}");
                demand!("G2", counted.version == entry.version, "{name}: {counted:?} counted");
                let approves = self.approves(work, reviewer);
                demand!("G1", approves != counted.overruled, "{name}: {counted:?} counted");
                let own = self.own(work, entry.version, reviewer);
                demand!("G3", counted.overruled || !own, "{name}: {counted:?} counted, of own work");
            }
        }
        self.ring(circle)?.state = State::Complete;
        Ok(())
    }
}
