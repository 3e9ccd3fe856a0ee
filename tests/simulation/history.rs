//! What a history adds up to: each question goes over all of it again, slowly and simply, and keeps
//! nothing. There is no state that could be wrong.

use std::collections::{BTreeMap, BTreeSet};

use super::stored::{Charter, Deliverable, Edge, Escalated, EscalationClosed, Fact, Phase, Proposed};

/// A fact with its time.
pub struct Entry {
    pub at: i64,
    pub fact: Fact,
}

/// Everything that was stored, oldest first. A moment is an index into it.
#[derive(Default)]
pub struct History {
    pub entries: Vec<Entry>,
}

/// A version as it was offered.
pub struct Offer<'a> {
    pub moment: usize,
    pub at: i64,
    pub what: &'a Proposed,
}

/// An objection or a note, and what became of it.
pub struct Remark<'a> {
    pub id: &'a str,
    pub by: &'a str,
    pub proposal: &'a str,
    pub version: u32,
    pub is_note: bool,
    pub failing_test: Option<&'a str>,
    /// `resolved`, `mistaken` or `overruled`.
    pub closed: Option<&'a str>,
    /// Whether the producer was shown it.
    pub read: bool,
    /// Whether it followed the work from another proposal; its version is then the one before that.
    pub followed: bool,
}

impl Remark<'_> {
    pub fn is_open_objection(&self) -> bool {
        !self.is_note && self.closed.is_none()
    }

    /// Whether it says something about its version for ever: open, or answered by another version.
    pub fn stands(&self) -> bool {
        !self.is_note && matches!(self.closed, None | Some("resolved"))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    Approve,
    Object,
}

impl History {
    pub fn charter(&self) -> Option<&Charter> {
        self.entries.iter().rev().find_map(|entry| match &entry.fact {
            Fact::Charter(adopted) => Some(&adopted.charter),
            _ => None,
        })
    }

    pub fn facts(&self) -> impl DoubleEndedIterator<Item = (usize, i64, &Fact)> {
        self.entries.iter().enumerate().map(|(moment, entry)| (moment, entry.at, &entry.fact))
    }

    pub fn is_human(&self, member: &str) -> bool {
        self.was_human(member, self.entries.len())
    }

    /// Whether that member was a person before that moment: who adopts a charter may leave with it.
    pub fn was_human(&self, member: &str, moment: usize) -> bool {
        let charter = self.entries[..moment].iter().rev().find_map(|entry| match &entry.fact {
            Fact::Charter(adopted) => Some(&adopted.charter),
            _ => None,
        });
        let known = charter.and_then(|charter| charter.members.get(member));
        known.is_some_and(|known| known.kind == "human")
    }

    pub fn phases_opened(&self) -> Vec<&str> {
        let facts = self.facts();
        let opened = facts.filter_map(|(_, _, fact)| match fact {
            Fact::Opened(opened) => Some(opened.phase.as_str()),
            _ => None,
        });
        opened.collect()
    }

    /// Where the charter has that proposal.
    pub fn place(&self, proposal: &str) -> Option<(&Phase, &Deliverable)> {
        let phases = &self.charter()?.phases;
        phases.iter().find_map(|phase| {
            let found = phase.deliverables.iter().find(|deliverable| deliverable.name == proposal);
            found.map(|found| (phase, found))
        })
    }

    pub fn producer(&self, proposal: &str) -> &str {
        self.place(proposal).map_or("", |(_, deliverable)| deliverable.producer.as_str())
    }

    /// Who reviews it: by the charter, as persons' decisions left it.
    pub fn edges(&self, proposal: &str) -> Vec<Edge> {
        self.edges_at(proposal, self.entries.len())
    }

    /// The same as it was before that moment.
    fn edges_at(&self, proposal: &str, moment: usize) -> Vec<Edge> {
        let producer = self.producer(proposal);
        let mut edges: Vec<&Edge> = Vec::new();
        // Who stands in for whom; nobody for who is excused.
        let mut places: BTreeMap<&str, Option<&str>> = BTreeMap::new();
        let holder = |places: &BTreeMap<&'_ str, Option<&'_ str>>, place: &str, name: &str| {
            places.get(place).map_or(place == name, |held| *held == Some(name))
        };
        for entry in &self.entries[..moment] {
            match &entry.fact {
                Fact::Charter(event) => {
                    edges.clear();
                    let phases = event.charter.phases.iter();
                    let mut phases =
                        phases.filter(|phase| phase.deliverables.iter().any(|held| held.name == proposal));
                    let phase = phases.next();
                    edges.extend(
                        phase.into_iter().flat_map(|p| &p.reviews).filter(|edge| edge.of == producer),
                    );
                    // Who leaves stands in no longer, and comes back as nobody's stand-in.
                    places.retain(|_, held| {
                        held.is_none_or(|held| held != producer && event.charter.members.contains_key(held))
                    });
                }
                Fact::Replaced(event) | Fact::Excused(event) if event.proposal == proposal => {
                    let held = edges.iter().map(|edge| edge.reviewer.as_str());
                    let held: Vec<&str> =
                        held.filter(|place| holder(&places, place, &event.reviewer)).collect();
                    places.extend(held.into_iter().map(|place| (place, event.stand_in.as_deref())));
                }
                _ => {}
            }
        }
        let held = edges.into_iter().filter_map(|edge| match places.get(edge.reviewer.as_str()) {
            None => Some(edge.clone()),
            Some(held) => held.map(|held| Edge { reviewer: held.to_owned(), ..edge.clone() }),
        });
        held.collect()
    }

    pub fn circle_of(&self, proposal: &str) -> &str {
        let Some((phase, deliverable)) = self.place(proposal) else { return "" };
        if phase.confirm == "together" { &phase.name } else { &deliverable.name }
    }

    /// The proposals of a circle, where its phase opened.
    pub fn circle_proposals(&self, circle: &str) -> Vec<&str> {
        let opened = self.phases_opened();
        let Some(charter) = self.charter() else { return Vec::new() };
        let phases = charter.phases.iter().filter(|phase| opened.contains(&phase.name.as_str()));
        let names = phases.flat_map(|phase| &phase.deliverables).map(|deliverable| deliverable.name.as_str());
        names.filter(|name| self.circle_of(name) == circle && !self.is_dropped(name)).collect()
    }

    pub fn participants(&self, circle: &str) -> BTreeSet<String> {
        let mut participants = BTreeSet::new();
        for proposal in self.circle_proposals(circle) {
            participants.insert(self.producer(proposal).to_owned());
            participants.extend(self.edges(proposal).into_iter().map(|edge| edge.reviewer));
        }
        participants
    }

    pub fn is_dropped(&self, proposal: &str) -> bool {
        self.facts().any(|(_, _, fact)| matches!(fact, Fact::Dropped(event) if event.proposal == proposal))
    }

    pub fn is_closed(&self, phase: &str) -> bool {
        self.facts().any(|(_, _, fact)| matches!(fact, Fact::PhaseClosed(event) if event.phase == phase))
    }

    /// What a producer offers beside the charter's deliverables is owed like one of them from then on.
    pub fn begin_ad_hoc(&mut self, phase: &str, name: &str, producer: &str) {
        let charters = self.entries.iter_mut().rev().filter_map(|entry| match &mut entry.fact {
            Fact::Charter(adopted) => Some(&mut adopted.charter),
            _ => None,
        });
        let phases = charters.take(1).flat_map(|charter| &mut charter.phases);
        for phase in phases.filter(|known| known.name == phase) {
            phase.deliverables.push(Deliverable { name: name.to_owned(), producer: producer.to_owned() });
        }
    }

    pub fn revision(&self) -> u32 {
        let charters = self.facts().filter(|(_, _, fact)| matches!(fact, Fact::Charter(_)));
        u32::try_from(charters.count()).expect("there are few")
    }

    /// What the next charter leaves as it is: what was proposed ad hoc, and what was done in phases that are
    /// over. What of an open phase it doesn't have stands here until it is dropped.
    pub fn carry_over(&self, charter: &mut Charter) {
        let opened = self.phases_opened();
        for known in self.charter().into_iter().flat_map(|charter| &charter.phases) {
            let Some(new) = charter.phases.iter_mut().find(|phase| phase.name == known.name) else {
                continue;
            };
            if !opened.contains(&known.name.as_str()) {
                continue;
            }
            if self.is_over(known, &opened) {
                new.deliverables.clone_from(&known.deliverables);
                continue;
            }
            for held in &known.deliverables {
                match new.deliverables.iter_mut().find(|new| new.name == held.name) {
                    Some(new) if self.current(&held.name).is_some() => {
                        new.producer.clone_from(&held.producer);
                    }
                    Some(_) => {}
                    None => new.deliverables.push(held.clone()),
                }
            }
        }
    }

    /// Whether nothing of a phase that opened is open any longer, and nothing can be.
    fn is_over(&self, phase: &Phase, opened: &[&str]) -> bool {
        let over = |held: &Deliverable| {
            self.is_dropped(&held.name)
                || matches!(self.circle_state(self.circle_of(&held.name)), "published" | "closed")
        };
        self.is_closed(&phase.name)
            || opened.last() != Some(&phase.name.as_str())
            || (phase.confirm == "together" && phase.deliverables.iter().all(over))
    }

    /// Whether a person excused one of those who review it.
    pub fn was_excused(&self, proposal: &str) -> bool {
        self.facts().any(|(_, _, fact)| matches!(fact, Fact::Excused(event) if event.proposal == proposal))
    }

    pub fn is_ad_hoc(&self, proposal: &str) -> bool {
        self.offers(proposal).iter().any(|offer| offer.what.ad_hoc.is_some())
    }

    /// `open`, `complete`, `published` or `closed`.
    pub fn circle_state(&self, circle: &str) -> &'static str {
        if self.facts().any(|(_, _, fact)| matches!(fact, Fact::Published(event) if event.circle == circle)) {
            return "published";
        }
        let ended = |fact: &Fact| matches!(fact, Fact::PhaseClosed(_) | Fact::Dropped(_));
        if self.facts().any(|(_, _, fact)| ended(fact)) {
            let charter = self.charter();
            let held = charter.iter().flat_map(|charter| &charter.phases).flat_map(|phase| {
                phase.deliverables.iter().map(move |held| (phase.name.as_str(), held.name.as_str()))
            });
            let mut held = held.filter(|(_, name)| self.circle_of(name) == circle).peekable();
            let known = held.peek().is_some();
            if known && held.all(|(phase, name)| self.is_closed(phase) || self.is_dropped(name)) {
                return "closed";
            }
        }
        let last = self.facts().rev().find_map(|(_, _, fact)| match fact {
            Fact::Completed(event) if event.circle == circle => Some("complete"),
            Fact::Published(event) if event.circle == circle => Some("published"),
            Fact::Reopened(event) if event.circle == circle => Some("open"),
            _ => None,
        });
        last.unwrap_or("open")
    }

    /// The circles of every phase that opened.
    pub fn circles(&self) -> BTreeSet<&str> {
        let opened = self.phases_opened();
        let Some(charter) = self.charter() else { return BTreeSet::new() };
        let phases = charter.phases.iter().filter(|phase| opened.contains(&phase.name.as_str()));
        phases.flat_map(|phase| &phase.deliverables).map(|held| self.circle_of(&held.name)).collect()
    }

    /// When a version, a vote, a resolve, a confirmation or a decision last moved a circle, or it opened.
    pub fn progress_at(&self, circle: &str) -> i64 {
        let of = |proposal: &str| self.circle_of(proposal) == circle;
        let phase = self.circle_proposals(circle).first().and_then(|name| self.place(name));
        let moves = |fact: &Fact| match fact {
            Fact::Opened(event) => phase.is_some_and(|(phase, _)| phase.name == event.phase),
            Fact::Proposed(event) => of(&event.proposal),
            Fact::Approved(event) => of(&event.proposal),
            Fact::Objected(event) => of(&event.proposal),
            Fact::Closed(event) => of(&event.proposal),
            Fact::Confirmed(event) => event.circle == circle,
            Fact::Dropped(event) => of(&event.proposal),
            Fact::EscalationClosed(event) => event.by.is_some() && self.decides(&event.id, circle),
            _ => false,
        };
        let moved = self.facts().rev().find(|(_, _, fact)| moves(fact)).map_or(0, |(_, at, _)| at);
        moved.max(self.owed_since(circle))
    }

    /// When the first charter was adopted that has a circle of one proposal.
    fn owed_since(&self, circle: &str) -> i64 {
        let has =
            |charter: &Charter| charter.phases.iter().flat_map(|p| &p.deliverables).any(|h| h.name == circle);
        let mut facts = self.facts().filter_map(|(_, at, fact)| match fact {
            Fact::Charter(event) if has(&event.charter) => Some(at),
            _ => None,
        });
        facts.next().unwrap_or(0)
    }

    /// Whether that escalation is about a circle.
    fn decides(&self, id: &str, circle: &str) -> bool {
        let of = |proposal: &str| self.circle_of(proposal) == circle;
        self.facts().any(|(_, _, fact)| {
            matches!(fact, Fact::Escalated(event) if event.id == id
                && (event.circle.as_deref() == Some(circle) || event.proposal.as_deref().is_some_and(of)))
        })
    }

    /// How often a person decided about a circle.
    fn decided(&self, circle: &str) -> usize {
        let decides = |fact: &Fact| matches!(fact, Fact::EscalationClosed(event) if changes(event) && self.decides(&event.id, circle));
        self.facts().filter(|(_, _, fact)| decides(fact)).count()
    }

    /// How long no server ran between then and now.
    pub fn away(&self, since: i64, now: i64) -> i64 {
        let stretches = self.facts().filter_map(|(_, _, fact)| match fact {
            Fact::Resumed(event) => Some((event.from.max(since), event.to.min(now))),
            _ => None,
        });
        stretches.map(|(from, to)| (to - from).max(0)).sum()
    }

    /// Whether what an escalation is about was dropped, or its circle closed.
    pub fn ended(&self, id: &str) -> bool {
        self.facts().any(|(_, _, fact)| {
            matches!(fact, Fact::Escalated(event) if event.id == id
            && (event.circle.as_deref().is_some_and(|circle| self.circle_state(circle) == "closed")
                || event.proposal.as_deref().is_some_and(|name| {
                    self.is_dropped(name) || self.circle_state(self.circle_of(name)) == "closed"
                })))
        })
    }

    /// Whether a channel took the news of an escalation at that level.
    pub fn was_sent(&self, id: &str, level: u32, channel: &str) -> bool {
        self.facts().any(|(_, _, fact)| {
            matches!(fact, Fact::Sent(event)
                if event.id == id && event.level == level && event.channel == channel)
        })
    }

    /// How often a person was reminded of an escalation.
    pub fn reminders(&self, id: &str) -> u32 {
        let of = |fact: &Fact| match fact {
            Fact::Reminded(event) if event.id == id => Some(event.level),
            _ => None,
        };
        self.facts().filter_map(|(_, _, fact)| of(fact)).max().unwrap_or(0)
    }

    pub fn reopened(&self, circle: &str) -> usize {
        let again = |fact: &Fact| matches!(fact, Fact::Reopened(event) if event.circle == circle);
        self.facts().filter(|(_, _, fact)| again(fact)).count()
    }

    /// The manifest with which the circle was last completed.
    pub fn completed_manifest(&self, circle: &str) -> Option<&str> {
        self.facts().rev().find_map(|(_, _, fact)| match fact {
            Fact::Completed(event) if event.circle == circle => Some(event.manifest.as_str()),
            _ => None,
        })
    }

    pub fn offers(&self, proposal: &str) -> Vec<Offer<'_>> {
        let facts = self.facts();
        let offer = facts.filter_map(|(moment, at, fact)| match fact {
            Fact::Proposed(what) if what.proposal == proposal => Some(Offer { moment, at, what }),
            _ => None,
        });
        offer.collect()
    }

    pub fn current(&self, proposal: &str) -> Option<Offer<'_>> {
        self.offers(proposal).pop()
    }

    pub fn is_withdrawn(&self, proposal: &str) -> bool {
        let last = self.facts().rev().find_map(|(_, _, fact)| match fact {
            Fact::Proposed(event) if event.proposal == proposal => Some(false),
            Fact::Withdrawn(event) if event.proposal == proposal => Some(true),
            _ => None,
        });
        last.unwrap_or(false)
    }

    /// When it was withdrawn, each time.
    pub fn flips(&self, proposal: &str) -> Vec<(usize, i64)> {
        let flip = |fact: &Fact| matches!(fact, Fact::Withdrawn(event) if event.proposal == proposal);
        self.facts().filter(|(_, _, fact)| flip(fact)).map(|(moment, at, _)| (moment, at)).collect()
    }

    /// Whether a failed publish left it owing a version.
    pub fn publish_failed(&self, proposal: &str) -> bool {
        let last = self.facts().rev().find_map(|(_, _, fact)| match fact {
            Fact::Proposed(event) if event.proposal == proposal => Some(false),
            Fact::Reopened(event) if event.owing.iter().any(|owing| owing == proposal) => Some(true),
            _ => None,
        });
        last.unwrap_or(false)
    }

    pub fn remarks(&self) -> Vec<Remark<'_>> {
        let mut remarks: Vec<Remark<'_>> = Vec::new();
        for (_, _, fact) in self.facts() {
            match fact {
                Fact::Objected(raised) | Fact::Noted(raised) => remarks.push(Remark {
                    id: &raised.id,
                    by: &raised.by,
                    proposal: &raised.proposal,
                    version: raised.version,
                    is_note: matches!(fact, Fact::Noted(_)),
                    failing_test: raised.failing_test.as_ref().map(|run| run.command.as_str()),
                    closed: None,
                    read: false,
                    followed: false,
                }),
                Fact::Proposed(event) => {
                    for source in &event.follows {
                        let known: Vec<&str> = remarks
                            .iter()
                            .filter(|remark| remark.proposal == event.proposal)
                            .map(|remark| remark.id)
                            .collect();
                        let open = remarks.iter().filter(|remark| {
                            remark.proposal == source
                                && remark.is_open_objection()
                                && !known.contains(&remark.id)
                        });
                        let (proposal, version) = (event.proposal.as_str(), event.version - 1);
                        let followed: Vec<Remark<'_>> = open
                            .map(|remark| Remark { proposal, version, followed: true, ..*remark })
                            .collect();
                        remarks.extend(followed);
                    }
                }
                Fact::Closed(event) => {
                    for remark in remarks.iter_mut().filter(|remark| remark.id == event.id) {
                        remark.closed = Some(&event.how);
                    }
                }
                Fact::ObjectionsRead(event) => {
                    for remark in remarks.iter_mut().filter(|remark| remark.proposal == event.proposal) {
                        let shown = event.objections.iter().any(|id| id == remark.id);
                        remark.read |= shown && event.by == self.producer(remark.proposal);
                    }
                }
                _ => {}
            }
        }
        remarks
    }

    pub fn remarks_on(&self, proposal: &str) -> Vec<Remark<'_>> {
        let mut remarks = self.remarks();
        remarks.retain(|remark| remark.proposal == proposal);
        remarks
    }

    /// When that member was first shown that version.
    pub fn was_shown(&self, member: &str, proposal: &str, version: u32) -> Option<usize> {
        let shown = |fact: &Fact| {
            matches!(fact, Fact::Read(read)
                if read.by == member && read.proposal == proposal && read.version == version)
        };
        self.facts().find(|(_, _, fact)| shown(fact)).map(|(moment, _, _)| moment)
    }

    /// That member's votes on that version, oldest first.
    pub fn votes(&self, member: &str, proposal: &str, version: u32) -> Vec<(usize, Way)> {
        let votes = self.facts().filter_map(|(moment, _, fact)| {
            let (cast, way) = match fact {
                Fact::Approved(event) => ((&event.by, &event.proposal, event.version), Way::Approve),
                Fact::Objected(event) => ((&event.by, &event.proposal, event.version), Way::Object),
                _ => return None,
            };
            (cast.0 == member && cast.1 == proposal && cast.2 == version).then_some((moment, way))
        });
        votes.collect()
    }

    /// Whether that member's last word on exactly that version is an approval, given after the version
    /// was offered by somebody who had been shown it.
    pub fn approves(&self, member: &str, proposal: &str, version: u32) -> bool {
        let Some(offer) = self.offers(proposal).into_iter().find(|offer| offer.what.version == version)
        else {
            return false;
        };
        let Some((moment, Way::Approve)) = self.votes(member, proposal, version).last().copied() else {
            return false;
        };
        let shown = self.was_shown(member, proposal, version);
        let appointed = self.appointed(member, proposal);
        shown.is_some_and(|shown| offer.moment < shown && shown < moment && appointed <= moment)
            && !self.lapsed(member, proposal, moment)
    }

    /// Whether an approval was void under a charter adopted since, through a lens it wasn't given through.
    fn lapsed(&self, member: &str, proposal: &str, moment: usize) -> bool {
        let Fact::Approved(given) = &self.entries[moment].fact else { return false };
        self.adopted_since(moment).any(|adopted| {
            self.lenses_at(member, proposal, adopted + 1).iter().any(|lens| !given.lenses.contains(lens))
        })
    }

    /// Whether a charter adopted since had that member look through a lens that the one before it didn't name: what
    /// was decided in its stead wasn't about that one.
    fn decision_lapsed(&self, member: &str, proposal: &str, moment: usize) -> bool {
        self.adopted_since(moment).any(|adopted| {
            let before = self.lenses_at(member, proposal, adopted);
            self.lenses_at(member, proposal, adopted + 1).iter().any(|lens| !before.contains(lens))
        })
    }

    fn adopted_since(&self, moment: usize) -> impl Iterator<Item = usize> {
        let later = self.facts().skip(moment);
        later.filter(|(_, _, fact)| matches!(fact, Fact::Charter(_))).map(|(moment, ..)| moment)
    }

    fn lenses_at(&self, member: &str, proposal: &str, moment: usize) -> Vec<String> {
        let edges = self.edges_at(proposal, moment).into_iter();
        edges.filter(|edge| edge.reviewer == member).map(|edge| edge.lens).collect()
    }

    /// When that member last took another's place, or began: only what it says after that is through all
    /// of its lenses.
    fn appointed(&self, member: &str, proposal: &str) -> usize {
        let takes = |fact: &Fact| {
            matches!(fact, Fact::Replaced(event)
                if event.proposal == proposal && event.stand_in.as_deref() == Some(member))
        };
        self.facts().rfind(|(_, _, fact)| takes(fact)).map_or(0, |(moment, ..)| moment)
    }

    /// Whether a person decided on exactly that version in that reviewer's stead.
    pub fn is_overruled(&self, member: &str, proposal: &str, version: u32) -> bool {
        let remarks = self.remarks_on(proposal);
        remarks.iter().any(|remark| {
            let there = remark.version == version && !remark.followed;
            let when = self.facts().find_map(|(moment, _, fact)| match fact {
                Fact::Closed(event) if event.id == remark.id => Some(moment),
                _ => None,
            });
            let after = when >= Some(self.appointed(member, proposal));
            let lapsed = || when.is_some_and(|when| self.decision_lapsed(member, proposal, when));
            there && after && !lapsed() && remark.by == member && remark.closed == Some("overruled")
        })
    }

    /// Why that member has a hand in that version.
    pub fn own_work(&self, member: &str, proposal: &str, version: u32) -> Option<String> {
        let offers = self.offers(proposal);
        if self.producer(proposal) == member || offers.iter().any(|offer| offer.what.producer == member) {
            return Some(format!("{member} proposed a version of {proposal}"));
        }
        let emails = &self.charter()?.members.get(member)?.emails;
        let offer = offers.iter().find(|offer| offer.what.version == version)?;
        let theirs = |email: &str| emails.iter().any(|own| own.to_lowercase() == email.to_lowercase());
        let author = offer.what.authors.iter().find(|author| theirs(&author.email))?;
        Some(format!("{} is {member}'s", author.email))
    }

    /// What keeps a proposal from being accepted: nothing where it is.
    pub fn unmet(&self, proposal: &str) -> Option<String> {
        let failed = self.publish_failed(proposal).then(|| "its version couldn't be published".to_owned());
        failed.or_else(|| self.unapproved(proposal))
    }

    /// What G1 demands of one proposal and isn't so.
    pub fn unapproved(&self, proposal: &str) -> Option<String> {
        let Some(current) = self.current(proposal) else { return Some("it has no version".to_owned()) };
        let version = current.what.version;
        if self.is_withdrawn(proposal) {
            return Some(format!("version {version} is withdrawn"));
        }
        let remarks = self.remarks_on(proposal);
        if let Some(open) = remarks.iter().find(|remark| remark.is_open_objection()) {
            return Some(format!("{} by {} is open", open.id, open.by));
        }
        let missing = |edge: &Edge| {
            let approves = self.approves(&edge.reviewer, proposal, version)
                && self.own_work(&edge.reviewer, proposal, version).is_none();
            !approves && !self.is_overruled(&edge.reviewer, proposal, version)
        };
        let edges = self.edges(proposal);
        edges
            .into_iter()
            .find(missing)
            .map(|edge| format!("{} doesn't approve version {version}", edge.reviewer))
    }

    /// Places and commands that those who review it name with their approvals of the current version.
    pub fn evidence(&self, proposal: &str) -> usize {
        let Some(current) = self.current(proposal) else { return 0 };
        let version = current.what.version;
        let reviewers: std::collections::BTreeSet<String> =
            self.edges(proposal).into_iter().map(|edge| edge.reviewer).collect();
        let approvals = reviewers.iter().filter(|by| self.approves(by, proposal, version)).filter_map(|by| {
            self.facts().rev().find_map(|(_, _, fact)| match fact {
                Fact::Approved(event)
                    if event.by == *by && event.proposal == proposal && event.version == version =>
                {
                    Some(event.checked.len() + event.ran.len())
                }
                _ => None,
            })
        });
        approvals.sum()
    }

    /// Escalations that are open in a circle and wait for a decision.
    pub fn asked_of_persons(&self, circle: &str) -> Vec<String> {
        let open: Vec<&str> =
            self.escalations().into_iter().filter(|(.., open)| *open).map(|(id, ..)| id).collect();
        let within = |event: &Escalated| {
            let of = event.proposal.as_deref().map(|proposal| self.circle_of(proposal));
            of.or(event.circle.as_deref()) == Some(circle)
        };
        self.facts()
            .filter_map(|(_, _, fact)| match fact {
                Fact::Escalated(event)
                    if open.contains(&event.id.as_str())
                        && within(event)
                        && !["stall", "overdue", "recovery", "member-deaf"]
                            .contains(&event.cause.as_str()) =>
                {
                    Some(event.cause.clone())
                }
                _ => None,
            })
            .collect()
    }

    /// The moment from which a limit counts: the last decision of a person to raise it.
    pub fn raised(&self, cause: &str, subject: &str, member: Option<&str>) -> usize {
        let mut raises = self.facts().rev().filter_map(|(moment, _, fact)| {
            let Fact::EscalationClosed(closed) = fact else { return None };
            (closed.decision.as_deref() == Some("raise-limit")).then_some((moment, closed.id.as_str()))
        });
        let about = |id: &str| {
            self.facts().any(|(_, _, fact)| {
                matches!(fact, Fact::Escalated(event) if event.id == id && event.cause == cause
                    && (event.subject == subject
                        // What is the same work is of the same producer, and raised together.
                        || (member.is_none() && self.producer(&event.subject) == self.producer(subject)))
                    && member.is_none_or(|member| event.member.as_deref() == Some(member)))
            })
        };
        raises.find(|(_, id)| about(id)).map_or(0, |(moment, _)| moment)
    }

    /// Versions since that moment that followed an objected one.
    pub fn rounds(&self, proposal: &str, since: usize) -> usize {
        self.offers(proposal).iter().filter(|offer| offer.moment > since && offer.what.round).count()
    }

    /// Escalations with their cause, subject and whether they are open.
    pub fn escalations(&self) -> Vec<(&str, &str, &str, bool)> {
        let mut all: Vec<(&str, &str, &str, bool)> = Vec::new();
        for (_, _, fact) in self.facts() {
            match fact {
                Fact::Escalated(event) => all.push((&event.id, &event.cause, &event.subject, true)),
                Fact::EscalationClosed(event) => {
                    all.iter_mut().filter(|(id, ..)| *id == event.id).for_each(|(.., open)| *open = false);
                }
                _ => {}
            }
        }
        all
    }

    /// When a person was told of that escalation.
    pub fn told_at(&self, id: &str) -> i64 {
        let opened =
            self.facts().find(|(_, _, fact)| matches!(fact, Fact::Escalated(event) if event.id == id));
        opened.map_or(i64::MIN, |(_, at, _)| at)
    }

    /// When a person was told last of a silence of that member that a person answered.
    pub fn answered_unheard(&self, member: &str) -> Option<i64> {
        let answered: Vec<&str> = self
            .facts()
            .filter_map(|(_, _, fact)| match fact {
                Fact::EscalationClosed(event) if event.by.is_some() => Some(event.id.as_str()),
                _ => None,
            })
            .collect();
        let of = |fact: &Fact| {
            matches!(fact, Fact::Escalated(event) if event.cause == "member-deaf"
                && event.member.as_deref() == Some(member)
                && answered.contains(&event.id.as_str()))
        };
        self.facts().filter(|(_, _, fact)| of(fact)).map(|(_, at, _)| at).max()
    }

    /// Whether that obligation of that member is before a person: one may owe several things about one subject.
    pub fn is_overdue(&self, obligation: Option<&str>, member: Option<&str>) -> bool {
        let open: Vec<&str> =
            self.escalations().into_iter().filter(|(.., open)| *open).map(|(id, ..)| id).collect();
        self.facts().any(|(_, _, fact)| {
            matches!(fact, Fact::Escalated(event) if open.contains(&event.id.as_str())
                && event.cause == "overdue"
                && event.obligation.as_deref() == obligation
                && event.member.as_deref() == member)
        })
    }

    /// Whose open escalations these are: of that cause on that subject.
    pub fn before_a_person(&self, cause: &str, subject: &str) -> Vec<Option<&str>> {
        let open: Vec<&str> =
            self.escalations().into_iter().filter(|(.., open)| *open).map(|(id, ..)| id).collect();
        let mut members = Vec::new();
        for (_, _, fact) in self.facts() {
            if let Fact::Escalated(event) = fact
                && event.cause == cause
                && event.subject == subject
                && open.contains(&event.id.as_str())
            {
                members.push(event.member.as_deref());
            }
        }
        members
    }

    /// Whether that member stands by a confirmation of exactly that manifest.
    pub fn confirms(&self, member: &str, circle: &str, manifest: &str) -> bool {
        let mut stands = false;
        for (_, _, fact) in self.facts() {
            match fact {
                Fact::Confirmed(event) if event.circle == circle && event.by == member => {
                    stands = event.manifest == manifest;
                }
                Fact::Proposed(event) if self.circle_of(&event.proposal) == circle => stands = false,
                Fact::Withdrawn(event) if self.circle_of(&event.proposal) == circle => stands = false,
                Fact::Reopened(event) if event.circle == circle => stands = false,
                Fact::EscalationClosed(event) if changes(event) && self.decides(&event.id, circle) => {
                    stands = false;
                }
                Fact::Approved(event) if event.by == member => {
                    stands &= self.circle_of(&event.proposal) != circle;
                }
                Fact::Objected(event) if event.by == member => {
                    stands &= self.circle_of(&event.proposal) != circle;
                }
                _ => {}
            }
        }
        stands
    }

    /// What a circle holds, in words: what a manifest must name.
    pub fn content(&self, circle: &str) -> String {
        let held = self.circle_proposals(circle).into_iter().map(|proposal| match self.current(proposal) {
            Some(offer) => format!("{proposal}@{}:{}", offer.what.version, offer.what.artifact.digest),
            None => format!("{proposal}@0"),
        });
        format!(
            "{circle} by revision {}, opened again {} times, decided {} times: {}",
            self.revision(),
            self.reopened(circle),
            self.decided(circle),
            held.collect::<Vec<_>>().join(" ")
        )
    }
}

/// Whether a person's answer changes what a circle's participants confirm.
fn changes(closed: &EscalationClosed) -> bool {
    closed.by.is_some() && !matches!(closed.decision.as_deref(), Some("extend" | "raise-limit" | "dismiss"))
}
