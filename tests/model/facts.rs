//! What the model itself knows of a state: kept from the raw events of the path, in words of its own, and as
//! little as the guarantees need. Nothing here asks the core.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use countersign::protocol::charter::{Charter, ConfirmKind, MemberKind};
use countersign::protocol::escalation::{Cause, Decision};
use countersign::protocol::review::{Closing, Run};

/// Who reviews, and through which lens.
pub type Edge = (String, String);

/// What a charter says, as far as the guarantees speak of it.
#[derive(Debug, PartialEq, Eq)]
pub struct Rules {
    pub humans: BTreeSet<String>,
    pub members: BTreeSet<String>,
    pub emails: BTreeMap<String, String>,
    /// Folders, each with who owns it.
    pub owned: Vec<(String, String)>,
    pub checks: Vec<String>,
    pub phases: Vec<Stretch>,
    pub cooldown: i64,
    pub flips: u32,
    pub rounds: u32,
    pub changes: u32,
    pub notes: u32,
    pub text_bytes: usize,
}

/// A phase of the charter.
#[derive(Debug, PartialEq, Eq)]
pub struct Stretch {
    pub name: String,
    pub each: bool,
    /// Deliverables with their producers.
    pub owes: Vec<(String, String)>,
    /// Reviewer, whose work, lens.
    pub reviews: Vec<(String, String, String)>,
}

impl Rules {
    pub fn of(charter: &Charter) -> Rc<Self> {
        let limits = &charter.limits;
        let members = || charter.members.iter();
        let human = |kind: MemberKind| kind == MemberKind::Human;
        Rc::new(Self {
            humans: members().filter(|(_, one)| human(one.kind)).map(|(name, _)| name.to_string()).collect(),
            members: members().map(|(name, _)| name.to_string()).collect(),
            emails: members()
                .flat_map(|(name, one)| one.emails.iter().map(|email| (email.clone(), name.to_string())))
                .collect(),
            owned: members()
                .flat_map(|(name, one)| {
                    one.owns.iter().map(|path| (path.trim_end_matches("**").to_owned(), name.to_string()))
                })
                .collect(),
            checks: charter.required_checks.clone(),
            phases: charter
                .phases
                .iter()
                .map(|phase| Stretch {
                    name: phase.name.to_string(),
                    each: phase.confirm == ConfirmKind::Each,
                    owes: phase
                        .deliverables
                        .iter()
                        .map(|one| (one.name.to_string(), one.producer.to_string()))
                        .collect(),
                    reviews: phase
                        .reviews
                        .iter()
                        .map(|edge| (edge.reviewer.to_string(), edge.of.to_string(), edge.lens.to_string()))
                        .collect(),
                })
                .collect(),
            cooldown: limits.withdraw_cooldown.0,
            flips: limits.withdraw_flips,
            rounds: limits.rounds,
            changes: limits.vote_changes,
            notes: limits.notes,
            text_bytes: limits.text_bytes as usize,
        })
    }
}

/// One piece of work: what is offered under one name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Work {
    pub producer: String,
    pub phase: String,
    pub circle: String,
    pub ad_hoc: bool,
    pub offers: Vec<Offer>,
    /// Who was shown the current version.
    pub shown: BTreeSet<String>,
    /// What each reviewer last said of the current version, unless it was taken back.
    pub votes: BTreeMap<String, Said>,
    /// On the current version: the last vote that each cast, and how often it changed since the limit counts.
    pub changes: BTreeMap<String, (Option<bool>, u32)>,
    /// On the current version.
    pub notes: BTreeMap<String, u32>,
    /// Reviewers in whose stead a person decided on the current version, and through which lenses they looked then.
    pub overruled: BTreeMap<String, BTreeSet<String>>,
    /// The last report on the current version.
    pub checks: BTreeMap<String, Option<i32>>,
    /// Whether git says that the current version takes work back.
    pub takes_back: bool,
    pub remarks: BTreeMap<u32, Remark>,
    pub withdrawn: bool,
    /// Until when withdrawn work stays away, from now; nothing where that is past.
    pub cools: Option<i64>,
    pub flips: u32,
    pub rounds: u32,
    pub failed: bool,
    pub dropped: bool,
    /// Whose place is taken by whom.
    pub stand_ins: BTreeMap<String, String>,
    pub excused: BTreeSet<String>,
}

/// One version.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Offer {
    pub digest: String,
    pub content: String,
    pub authors: Vec<String>,
}

/// An approval, or that there is an objection.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Said {
    pub approves: bool,
    pub lenses: BTreeSet<String>,
    pub evidence: bool,
    /// Commands that were shown to pass.
    pub passed: BTreeSet<String>,
}

/// An objection or a note.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Remark {
    pub by: String,
    pub version: u32,
    pub is_note: bool,
    pub test: Option<String>,
    pub closed: Option<Closed>,
    pub read: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Closed {
    Resolved,
    Mistaken,
    Overruled,
}

impl From<Closing> for Closed {
    fn from(how: Closing) -> Self {
        match how {
            Closing::Resolved => Self::Resolved,
            Closing::Mistaken => Self::Mistaken,
            Closing::Overruled => Self::Overruled,
        }
    }
}

impl Remark {
    pub fn blocks(&self) -> bool {
        !self.is_note && self.closed.is_none()
    }

    /// It says something about its version for ever: it is open, or another version answered it.
    pub fn stands(&self) -> bool {
        !self.is_note && matches!(self.closed, None | Some(Closed::Resolved))
    }
}

/// What finishes together.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Ring {
    pub phase: String,
    pub state: State,
    /// Who stands by what it holds now.
    pub confirmed: BTreeSet<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum State {
    #[default]
    Open,
    Complete,
    Published,
    Closed,
}

/// Something that is before a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    pub cause: Cause,
    pub subject: String,
    pub member: Option<String>,
    pub circle: Option<String>,
    pub proposal: Option<String>,
}

/// A message.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Heard {
    pub by: String,
    pub claim: bool,
    pub verdicts: BTreeMap<String, String>,
}

/// Everything that is known of a state.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    pub rules: Option<Rc<Rules>>,
    pub revision: u32,
    pub charter: String,
    /// Phases that opened, and whether they are over.
    pub phases: Vec<(String, bool)>,
    pub works: BTreeMap<String, Work>,
    pub rings: BTreeMap<String, Ring>,
    pub asked: BTreeMap<u32, Asked>,
    pub asked_ever: u32,
    pub remarks_ever: u32,
    /// Messages, and what came of those that are claims.
    pub said: Vec<Heard>,
}

impl Facts {
    pub fn rules(&self) -> &Rules {
        self.rules.as_ref().expect("a charter comes first")
    }

    pub fn stretch(&self, phase: &str) -> Option<&Stretch> {
        self.rules().phases.iter().find(|known| known.name == phase)
    }

    /// What is open, oldest phase first.
    pub fn open_rings(&self) -> impl Iterator<Item = (&String, &Ring)> {
        self.rings.iter().filter(|(_, ring)| ring.state == State::Open)
    }

    /// The work that finishes with a circle.
    pub fn works_of<'a>(&'a self, circle: &'a str) -> impl Iterator<Item = (&'a String, &'a Work)> {
        self.works.iter().filter(move |(_, work)| work.circle == circle && !work.dropped)
    }

    /// Who reviews it now: by the charter, as persons' decisions left it.
    pub fn edges(&self, work: &Work) -> Vec<Edge> {
        let Some(stretch) = self.stretch(&work.phase) else { return Vec::new() };
        let of = stretch.reviews.iter().filter(|(_, of, _)| *of == work.producer);
        let stays = of.filter(|(reviewer, ..)| !work.excused.contains(reviewer));
        let edges = stays.map(|(reviewer, _, lens)| {
            let now = work.stand_ins.get(reviewer).unwrap_or(reviewer);
            (now.clone(), lens.clone())
        });
        edges.collect()
    }

    pub fn lenses(&self, work: &Work, member: &str) -> BTreeSet<String> {
        let edges = self.edges(work).into_iter();
        edges.filter(|(reviewer, _)| reviewer == member).map(|(_, lens)| lens).collect()
    }

    pub fn participants(&self, circle: &str) -> BTreeSet<String> {
        let mut all = BTreeSet::new();
        for (_, work) in self.works_of(circle) {
            all.insert(work.producer.clone());
            all.extend(self.edges(work).into_iter().map(|(reviewer, _)| reviewer));
        }
        all
    }

    /// Whether that member has a hand in that version.
    pub fn own(&self, work: &Work, version: u32, member: &str) -> bool {
        let offer = work.offers.get((version as usize).wrapping_sub(1));
        let wrote = |email: &String| self.rules().emails.get(email).is_some_and(|known| known == member);
        work.producer == member || offer.is_some_and(|offer| offer.authors.iter().any(wrote))
    }

    /// What keeps a work from being accepted on exactly its current version: nothing where it is (G1, G2, G3).
    pub fn unmet(&self, name: &str, work: &Work) -> Option<String> {
        let current = work.offers.len() as u32;
        if current == 0 {
            return Some(format!("{name} has no version"));
        }
        if work.withdrawn {
            return Some(format!("{name}@{current} is withdrawn"));
        }
        if let Some((id, _)) = work.remarks.iter().find(|(_, remark)| remark.blocks()) {
            return Some(format!("o{id} on {name} is open"));
        }
        let edges = self.edges(work);
        if edges.is_empty() {
            return Some(format!("nobody reviews {name}"));
        }
        let missing = edges.iter().find(|(reviewer, _)| {
            let approves = self.approves(work, reviewer) && !self.own(work, current, reviewer);
            !approves && !self.decided(work, reviewer)
        });
        missing.map(|(reviewer, lens)| format!("{reviewer} ({lens}) doesn't approve {name}@{current}"))
    }

    /// Whether that member's word on the current version is an approval, through all lenses that it has now.
    pub fn approves(&self, work: &Work, member: &str) -> bool {
        let said = work.votes.get(member).filter(|said| said.approves);
        said.is_some_and(|said| self.lenses(work, member).is_subset(&said.lenses))
    }

    /// Whether a person decided in that member's stead, about all lenses that it has now.
    pub fn decided(&self, work: &Work, member: &str) -> bool {
        let lenses = work.overruled.get(member);
        lenses.is_some_and(|lenses| self.lenses(work, member).is_subset(lenses))
    }

    /// What a confirmation claims and nobody shows: nothing where all is shown.
    pub fn unproven(&self, name: &str, work: &Work) -> Option<String> {
        for check in &self.rules().checks {
            if work.checks.get(check) != Some(&Some(0)) {
                return Some(format!("{check} is not known to pass on {name}"));
            }
        }
        let edges = self.edges(work);
        let reviewers: BTreeSet<&String> = edges.iter().map(|(reviewer, _)| reviewer).collect();
        let approving = reviewers.iter().filter(|by| self.approves(work, by));
        let approving: Vec<&Said> = approving.map(|by| &work.votes[*by]).collect();
        if !approving.is_empty() && approving.iter().all(|said| !said.evidence) {
            return Some(format!("nobody who approves {name} says what was checked"));
        }
        for (id, remark) in &work.remarks {
            let resolved = remark.closed == Some(Closed::Resolved);
            let Some(test) = remark.test.as_ref().filter(|_| resolved && !approving.is_empty()) else {
                continue;
            };
            // Whoever was overruled on this version shows nothing on it: a person decided.
            let decided = self.decided(work, &remark.by);
            let shown = approving.iter().any(|said| said.passed.contains(test));
            if !shown && !decided {
                return Some(format!("{test} of o{id} is not shown to pass on {name}"));
            }
        }
        None
    }

    /// What is before a person in a circle, and waits for a decision.
    pub fn undecided(&self, circle: &str) -> Option<&Asked> {
        let told = |cause| matches!(cause, Cause::Stall | Cause::Overdue | Cause::Recovery);
        self.asked.values().find(|asked| asked.circle.as_deref() == Some(circle) && !told(asked.cause))
    }

    /// The names under which the same work goes on: ad hoc, all that a producer offers in a phase.
    pub fn kin(&self, name: &str) -> Vec<String> {
        let Some(own) = self.works.get(name) else { return Vec::new() };
        let same = |work: &Work| work.ad_hoc && work.producer == own.producer && work.phase == own.phase;
        let kin = self.works.iter().filter(|(other, work)| **other == name || own.ad_hoc && same(work));
        kin.map(|(name, _)| name.clone()).collect()
    }

    pub fn is_human(&self, member: &str) -> bool {
        self.rules().humans.contains(member)
    }

    /// Time passes: what cools down has less to wait.
    pub fn pass(&mut self, span: i64) {
        for work in self.works.values_mut() {
            work.cools = work.cools.map(|left| left - span).filter(|left| *left > 0);
        }
    }

    /// Whatever was confirmed in a circle no longer is.
    pub fn lapse(&mut self, circle: &str) {
        if let Some(ring) = self.rings.get_mut(circle) {
            ring.confirmed.clear();
        }
    }

    /// Everything that two states must share to be the same one.
    pub fn hash(&self, hasher: &mut impl std::hash::Hasher) {
        use std::hash::Hash;
        (&self.charter, &self.phases, &self.works, &self.rings).hash(hasher);
        // Which number an escalation bears makes no difference.
        let mut asked: Vec<&Asked> = self.asked.values().collect();
        asked.sort_by_key(|asked| (asked.cause, &asked.subject, &asked.member));
        for one in asked {
            (one.cause.as_str(), &one.subject, &one.member, &one.circle).hash(hasher);
        }
    }
}

/// The runs that show something: exit 0, with output.
pub fn passed(ran: &[Run]) -> BTreeSet<String> {
    let shows = |run: &&Run| run.exit == Some(0) && run.output.is_some();
    ran.iter().filter(shows).map(|run| run.command.clone()).collect()
}

/// Whether a decision changes what a circle's participants confirm.
pub fn changes(decision: Decision) -> bool {
    !matches!(decision, Decision::Extend | Decision::RaiseLimit | Decision::Dismiss)
}
