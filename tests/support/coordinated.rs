//! The first stage: the core behind the coordinator, over the memory store, with a clock that moves by
//! hand. What git would know is told as facts.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use countersign::coordinator::{
    Arming, AtOnce, Clock, Coordinator, Done, HandClock, Listening, Narrowed, Presence, Refusal, RequestKey,
    Said, Silent, TeamHandle, Turned, Waking,
};
use countersign::judge::{CelJudge, CelRulebook, own};
use countersign::protocol::artifact::{
    Artifact, ArtifactFacts, ArtifactKind, FoundSecret, Identity, RepoPath,
};
use countersign::protocol::delivery::Acknowledge;
use countersign::protocol::escalation::{self, Decision};
use countersign::protocol::name::{Actor, Digest, Malformed, ProposalName, Seq, VersionRef};
use countersign::protocol::referee::CalledOut;
use countersign::protocol::review::{self, NamedPlace, Requirement, Run, requirement};
use countersign::protocol::room;
use countersign::protocol::time::{Span, Time};
use countersign::protocol::{
    Adopt, Answer, Command, Effect, Event, ObligationKind, Team, Violation, adoption, charter, secret,
};
use countersign::store::Reader;
use countersign::store::memory::MemoryStore;
use countersign::wire::proto;
use countersign::wire::room::entry;
use sha2::{Digest as _, Sha256};
use tokio::runtime::Runtime;

use super::play::{
    Act, Files, Proposing, Ran, Refusal as Shown, Seen, Stage, Standing, candidate_file, charter_text,
    own_rules,
};

/// When every play begins.
pub fn opening() -> Time {
    "2026-01-01T09:00:00Z".parse().unwrap()
}

pub struct Coordinated {
    runtime: Runtime,
    store: MemoryStore,
    clock: Arc<HandClock>,
    team: TeamHandle,
    coordinator: Option<Coordinator>,
    /// The files of each version, by digest: what git would know.
    files: BTreeMap<String, BTreeMap<String, String>>,
    /// Where each version began: how often work had landed then.
    begun: BTreeMap<String, usize>,
    /// What main held, from the start to now.
    main: Vec<Files>,
    commits: u32,
}

impl Coordinated {
    pub fn with_charter(name: &str) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let (store, clock) = (MemoryStore::new(), Arc::new(HandClock::at(opening())));
        let text = charter_text(name);
        let parsed = charter::parse(&format!("{name}.toml"), &text).unwrap_or_else(|found| panic!("{found}"));
        let digest = Digest::of_bytes(Sha256::digest(&text).into());
        let rules = own_rules(&text);
        let (coordinator, team) = runtime.block_on(async {
            let coordinator = open(&store, &clock);
            let team = coordinator.add_team(Adopt { text, digest, charter: parsed, rules }).await.unwrap();
            (coordinator, team)
        });
        let (coordinator, files) = (Some(coordinator), BTreeMap::new());
        let (begun, main) = (BTreeMap::new(), vec![landed()]);
        Self { runtime, store, clock, team, coordinator, files, begun, main, commits: 0 }
    }

    fn command(&mut self, act: &Act) -> Result<Command, Malformed> {
        Ok(match act {
            Act::Propose(proposing) => Command::Propose(Box::new(self.propose(proposing)?)),
            Act::Show { subject } => Command::Read(review::Read { subject: subject.parse()? }),
            Act::Objections { proposal } => {
                Command::ReadObjections(review::ReadObjections { proposal: proposal.parse()? })
            }
            Act::Approve { reference, checked, ran, resolve, .. } => Command::Approve(review::Approve {
                checked: self.places(reference, checked)?,
                reference: reference.parse()?,
                ran: ran.iter().map(run).collect(),
                resolve: resolve.iter().map(|id| id.parse()).collect::<Result<_, _>>()?,
            }),
            Act::Object { reference, text, at, failing_test, .. } => Command::Object(review::Object {
                at: self.places(reference, at)?,
                reference: reference.parse()?,
                text: text.clone(),
                failing_test: failing_test.as_ref().map(run),
            }),
            Act::Note { reference, text, at } => Command::Note(review::Note {
                at: self.places(reference, at)?,
                reference: reference.parse()?,
                text: text.clone(),
            }),
            Act::Resolve { objection, mistaken, reason } => Command::Resolve(review::Resolve {
                objection: objection.parse()?,
                mistaken: *mistaken,
                reason: reason.clone(),
            }),
            Act::Overrule { objection, reason } => {
                Command::Overrule(review::Overrule { objection: objection.parse()?, reason: reason.clone() })
            }
            Act::Withdraw { proposal, reason } => {
                Command::Withdraw(review::Withdraw { proposal: proposal.parse()?, reason: reason.clone() })
            }
            Act::ReportCheck { reference, name, exit, output } => {
                let (reference, output) = (reference.parse()?, output.clone());
                Command::ReportCheck(review::ReportCheck {
                    reference,
                    name: name.clone(),
                    exit: *exit,
                    output,
                })
            }
            Act::Confirm { reference } => Command::Confirm(review::Confirm { reference: reference.parse()? }),
            Act::Adopt { charter, reason } => {
                let digest = Digest::of_bytes(Sha256::digest(charter).into());
                let (text, reason) = (charter.clone(), reason.clone());
                let rules = own_rules(charter);
                let charter = charter::parse("charter.toml", charter);
                let refused = charter
                    .as_ref()
                    .ok()
                    .and_then(|known| own::check("charter.toml", &text, known, &rules).err());
                let refused = refused.into_iter().flatten().map(adoption::RuleFault::from).collect();
                Command::Revise(Box::new(adoption::Revise { text, digest, charter, rules, refused, reason }))
            }
            Act::Escalate { subject, text } => {
                Command::Escalate(escalation::Escalate { subject: subject.clone(), text: text.clone() })
            }
            Act::Answer { escalation, decision, member, reviewer, reason } => {
                Command::AnswerEscalation(escalation::Answer {
                    escalation: escalation.parse()?,
                    decision: *Decision::ALL
                        .iter()
                        .find(|(name, _)| name == decision)
                        .map(|(_, known)| known)
                        .unwrap(),
                    member: member.as_ref().map(|name| name.parse()).transpose()?,
                    reviewer: reviewer.as_ref().map(|name| name.parse()).transpose()?,
                    reason: reason.clone(),
                })
            }
            Act::Say { text, to, reply, about, claim, .. } => Command::Say(room::Say {
                text: text.clone(),
                to: to.clone(),
                about: about.clone(),
                reply: reply.as_ref().map(|id| id.parse()).transpose()?,
                claim: claim.as_ref().map(|(at, ran)| evidence(at, ran)).transpose()?,
            }),
            Act::Verdict { message, verdict, text, at, ran } => Command::JudgeClaim(room::JudgeClaim {
                message: message.parse()?,
                verdict: verdict.parse()?,
                text: text.clone(),
                evidence: evidence(at, ran)?,
            }),
            Act::Explain { .. }
            | Act::CalledOut
            | Act::TryRule { .. }
            | Act::Listen { .. }
            | Act::Transcript => {
                unreachable!("it is no command")
            }
        })
    }

    fn propose(&mut self, proposing: &Proposing) -> Result<review::Propose, Malformed> {
        let mut content = Sha256::new();
        for (path, text) in &proposing.files {
            content.update(format!("{path}\0{text}\0"));
        }
        let content = Digest::of_bytes(content.finalize().into());
        let identity = |email: &String| Identity { email: email.to_lowercase(), name: email.clone() };
        let mut authors: Vec<Identity> =
            proposing.author.iter().chain(&proposing.co_authors).map(identity).collect();
        authors.sort();
        let left = proposing.touched.iter().filter_map(|path| proposing.files.get(path));
        let files: std::collections::BTreeSet<Digest> =
            left.map(|text| Digest::of_bytes(Sha256::digest(text).into())).collect();
        let files = files.into_iter().collect();
        let in_git = self.team.peek(|team| team.adopted().unwrap().charter.repository.is_some());
        let (kind, digest) = if in_git {
            self.commits += 1;
            let id = Sha256::digest(format!("{content} {}", self.commits));
            (ArtifactKind::Commit, Digest::of_bytes(id.into()))
        } else {
            (ArtifactKind::Bundle, content.clone())
        };
        self.files.insert(digest.to_string(), proposing.files.clone());
        self.begun.insert(digest.to_string(), self.main.len() - 1);
        Ok(review::Propose {
            proposal: proposing.proposal.parse::<ProposalName>()?,
            artifact: Artifact { kind, digest, content, base: None },
            facts: ArtifactFacts {
                empty: proposing.empty || in_git && proposing.touched.is_empty(),
                paths: proposing.touched.iter().map(|path| RepoPath::from_bytes(path.as_bytes())).collect(),
                files,
                authors,
                secrets: secrets(proposing),
            },
            summary: proposing.summary.clone(),
            answers: proposing
                .answers
                .iter()
                .map(|(id, text)| Ok((id.parse()?, text.clone())))
                .collect::<Result<_, Malformed>>()?,
            after: proposing.after,
        })
    }

    fn places(&self, reference: &str, places: &[String]) -> Result<Vec<NamedPlace>, Malformed> {
        let reference: VersionRef = reference.parse()?;
        let named = self.files.iter().find(|(digest, _)| digest.starts_with(reference.digest.as_str()));
        let lines =
            |path: &str| named.and_then(|(_, files)| files.get(path)).map(|text| text.lines().count());
        let mut found = Vec::new();
        for text in places {
            let place: countersign::protocol::artifact::Place = text.parse()?;
            let lines = lines(place.path.as_str());
            let has = lines.is_some_and(|count| place.lines.is_none_or(|(_, last)| last as usize <= count));
            found.push(NamedPlace { place, found: has });
        }
        Ok(found)
    }
}

fn open(store: &MemoryStore, clock: &Arc<HandClock>) -> Coordinator {
    let (writer, reader) = (store.writer().unwrap(), store.reader());
    // The rules are read once: a play that begins, or a server that comes back, has the same.
    static RULEBOOK: LazyLock<Arc<CelRulebook>> = LazyLock::new(Arc::default);
    let (notifier, publisher) = (Arc::new(Silent), Arc::new(AtOnce));
    let (writer, reader) = (Box::new(writer), Arc::new(reader));
    Coordinator::start_acting(writer, reader, RULEBOOK.clone(), clock.clone(), notifier, publisher).unwrap()
}

fn evidence(at: &[String], ran: &[Ran]) -> Result<room::Evidence, Malformed> {
    let at = at.iter().map(|place| place.parse()).collect::<Result<_, _>>()?;
    Ok(room::Evidence { at, ran: ran.iter().map(run).collect() })
}

fn run(ran: &Ran) -> Run {
    Run { command: ran.command.clone(), exit: ran.exit, output: ran.output.clone() }
}

/// What the guarded repository of a play holds at first.
pub fn landed() -> Files {
    let files =
        [("README.md", "atlas\n"), ("docs/guide.md", "one\ntwo\nthree\n"), ("src/main.rs", "fn main() {}\n")];
    files.map(|(path, text)| (path.to_owned(), text.to_owned())).into()
}

impl Stage for Coordinated {
    fn base(&self) -> Option<Files> {
        let in_git = self.team.peek(|team| team.adopted().unwrap().charter.repository.is_some());
        in_git.then(|| self.main[self.main.len() - 1].clone())
    }

    fn act(&mut self, member: &str, act: &Act) -> Seen {
        let who: Actor = member.parse().unwrap();
        if let Act::Explain { name } = act {
            let member = who.member().unwrap();
            return Seen::Requirements {
                lines: self.team.peek(|team| explained(&self.team, team, name, member)),
            };
        }
        if let Act::CalledOut = act {
            return Seen::CalledOut { lines: self.called_out() };
        }
        if let Act::Transcript = act {
            return Seen::Transcript { lines: self.transcript() };
        }
        if let Act::TryRule { name } = act {
            let candidate = CelJudge::candidate(&candidate_file(name)).unwrap();
            let tried = self.team.peek(|team| requirement::tried(team, &candidate, who.member().unwrap()));
            return Seen::Requirements { lines: tried.iter().map(told).collect() };
        }
        if let Act::Listen { subjects, kinds, killed } = act {
            return self.listen(member, subjects, kinds, *killed);
        }
        let command = match self.command(act) {
            Ok(command) => command,
            Err(malformed) => return refused_as_malformed(&malformed),
        };
        let request = match act {
            Act::Propose(proposing) => proposing.request.clone(),
            Act::Approve { request, .. } | Act::Object { request, .. } | Act::Say { request, .. } => {
                request.clone()
            }
            _ => None,
        };
        let key = request.map(|id| {
            // A commit made anew for the same files is the same request.
            let asked = match act {
                Act::Propose(proposing) => {
                    let (after, touched) = (0, Default::default()); // These depend on what stands.
                    format!("{:?}", Proposing { after, touched, ..(**proposing).clone() })
                }
                act => format!("{act:?}"),
            };
            RequestKey { id, digest: Digest::of_bytes(Sha256::digest(asked).into()) }
        });
        let outcome = self.runtime.block_on(async {
            let done = self.team.submit(who, command, key).await;
            // What the server owes the world is done before anybody looks again.
            let moves_refs =
                |effect: &Effect| matches!(effect, Effect::Publish { .. } | Effect::PutBack { .. });
            while self.team.peek(|team| team.effects().iter().any(moves_refs)) {
                tokio::task::yield_now().await;
            }
            done
        });
        self.compare();
        match outcome {
            Ok(done) => {
                let woke = done.woke.iter().map(|wake| wake.member.to_string()).collect();
                seen(&self.team, act, done.answer, woke)
            }
            Err(Refusal::Rejected { rejection, .. }) => {
                Seen::Refused { violations: rejection.violations().iter().map(shown).collect() }
            }
            Err(fault) => panic!("{fault}"),
        }
    }

    fn standing(&mut self) -> Standing {
        let (judge, now) = (self.team.judge(), self.clock.now());
        self.team.peek(|team| standing(team, &*judge, now))
    }

    fn wait(&mut self, span: Span) {
        self.clock.advance(span);
        self.settle();
    }

    fn away(&mut self, span: Span) {
        self.end();
        self.clock.pause(span);
        self.begin();
    }

    fn restart(&mut self) {
        self.end();
        self.begin();
    }

    fn land(&mut self, files: &Files) {
        self.main.push(files.clone());
        self.compare();
    }

    fn move_ref(&mut self, name: &str) {
        let commit = |what: &str| Some(Digest::of_bytes(Sha256::digest(format!("{what} {name}")).into()));
        let moved = escalation::MovedRef { name: name.to_owned(), from: commit("left"), to: commit("found") };
        // An audit reports all that stand elsewhere.
        let open = |team: &Team| -> Vec<_> {
            team.escalations().open().filter_map(|one| one.opened.moved.clone()).collect()
        };
        let moved = self.team.peek(open).into_iter().chain([moved]).collect();
        let seen = self.team.peek(Team::seq);
        let command = Command::ReportMoved(escalation::ReportMoved { moved, seen });
        self.runtime.block_on(self.team.submit(Actor::Server, command, None)).unwrap();
    }
}

/// What merging leaves at a path, of what stood there where a version began, and what main and the version have now.
/// Nothing where they conflict. Texts of plays have a line, so that two changes of one file always do.
fn merged([began, main, version]: [Option<&String>; 3]) -> Option<Option<&String>> {
    match () {
        () if version == began || version == main => Some(main),
        () if main == began => Some(version),
        () => None,
    }
}

/// A version's files merged into others; or the paths at which they conflict.
fn merge(began: &Files, main: &Files, version: &Files) -> Result<Files, Vec<RepoPath>> {
    let paths: std::collections::BTreeSet<&String> =
        began.keys().chain(main.keys()).chain(version.keys()).collect();
    let (mut files, mut conflicts) = (Files::new(), Vec::new());
    for path in paths {
        match merged([began, main, version].map(|files| files.get(path))) {
            Some(text) => files.extend(text.map(|text| (path.clone(), text.clone()))),
            None => conflicts.push(RepoPath::from_bytes(path.as_bytes())),
        }
    }
    if conflicts.is_empty() { Ok(files) } else { Err(conflicts) }
}

fn conflict(with: Vec<VersionRef>, paths: Vec<RepoPath>) -> Option<review::Conflict> {
    let paths_total = paths.len() as u32;
    Some(review::Conflict { with, paths, paths_total, not_forward: false })
}

impl Coordinated {
    /// What git would say of everything that is open, told to the core.
    fn compare(&mut self) {
        let asked: Vec<review::Comparison> = self.team.peek(|team| {
            let charter = &team.adopted().unwrap().charter;
            team.review().circles().flat_map(|circle| team.review().comparisons(charter, circle)).collect()
        });
        for report in asked.iter().flat_map(|comparison| self.said_by_git(comparison)) {
            let command = Command::ReportTarget(Box::new(report));
            self.runtime.block_on(self.team.submit(Actor::Server, command, None)).unwrap();
        }
    }

    fn said_by_git(&self, comparison: &review::Comparison) -> Vec<review::TargetMoved> {
        let main = &self.main[self.main.len() - 1];
        let of = |commit: &Digest| {
            let began = self.begun[commit.as_str()];
            (began, &self.files[commit.as_str()])
        };
        let (mut reports, mut before): (Vec<_>, Vec<&review::Compared>) = (Vec::new(), Vec::new());
        let mut all = main.clone();
        for version in &comparison.versions {
            let (began, files) = of(&version.commit);
            let mut report = review::TargetMoved {
                target: comparison.target.clone(),
                commit: None,
                reference: version.reference.clone(),
                empty: false,
                undone: None,
                conflict: None,
            };
            match merge(&self.main[began], main, files) {
                Err(paths) => report.conflict = conflict(Vec::new(), paths),
                Ok(alone) => {
                    report.empty = alone == *main;
                    let earlier = version.earlier.iter().map(|commit| of(commit).0);
                    report.undone = self.undone(&alone, earlier.chain([began]).min().unwrap());
                    match merge(&self.main[began], &all, files) {
                        Ok(further) => (all, ()) = (further, before.push(version)),
                        Err(paths) => {
                            let mut with = before.clone();
                            with.retain(|other| {
                                let (from, theirs) = of(&other.commit);
                                let theirs = merge(&self.main[from], main, theirs).unwrap();
                                merge(&self.main[began], &theirs, files).is_err()
                            });
                            let with = with.into_iter().map(|other| other.reference.clone()).collect();
                            report.conflict = conflict(with, paths);
                        }
                    }
                }
            }
            reports.push(report);
        }
        reports
    }

    /// What merging takes back, of what landed after `since`.
    fn undone(&self, merged: &Files, since: usize) -> Option<review::Undone> {
        let main = &self.main[self.main.len() - 1];
        let mut commits = std::collections::BTreeSet::new();
        let mut taken_back = |path: &&String| {
            let (now, then) = (merged.get(*path), main.get(*path));
            let mut touching = Vec::new();
            for step in (since + 1..self.main.len()).rev() {
                let (old, new) = (self.main[step - 1].get(*path), self.main[step].get(*path));
                touching.extend((old != new).then_some(step));
                if now != then && old != new && old == now {
                    commits.extend(touching);
                    return true;
                }
            }
            false
        };
        let paths: std::collections::BTreeSet<&String> = main.keys().chain(merged.keys()).collect();
        let files: Vec<&String> = paths.into_iter().filter(|path| taken_back(path)).collect();
        let commit = |step: &usize| Digest::of_bytes(Sha256::digest(format!("landed {step}")).into());
        let commits: Vec<Digest> = commits.iter().map(commit).collect();
        (!files.is_empty()).then(|| review::Undone {
            files_total: files.len() as u32,
            files: files.into_iter().map(|path| RepoPath::from_bytes(path.as_bytes())).collect(),
            commits_total: commits.len() as u32,
            commits,
        })
    }
}

/// As git would find them.
fn secrets(proposing: &Proposing) -> Vec<FoundSecret> {
    let touched = proposing.touched.iter().filter_map(|path| Some((path, proposing.files.get(path)?)));
    let found = touched.filter_map(|(path, text)| Some((path, secret::find(text)?)));
    let place = |(path, found): (&String, secret::Secret)| FoundSecret {
        path: RepoPath::from_bytes(path.as_bytes()),
        line: found.line,
        kind: found.kind.to_owned(),
    };
    found.map(place).collect()
}

impl Coordinated {
    /// Has the store keep a snapshot whenever the log has grown by so many rows.
    pub fn keep_snapshots(&self, rows_between: u64) {
        self.store.keep_snapshots(rows_between);
    }

    /// Restarts, and has something happen to the snapshot meanwhile. Says whether there was one.
    pub fn restart_changing(&mut self, change: impl FnOnce(&mut Vec<u8>)) -> bool {
        self.end();
        let changed = self.store.change_snapshot(self.team.name(), change);
        self.begin();
        changed
    }

    /// The team as it is, and as its whole log adds up: in all that it is, and in all that a snapshot has.
    pub fn with_replayed(&self) -> [(String, String); 2] {
        let rows = self.store.reader().rows(self.team.name(), Seq(1), usize::MAX).unwrap();
        let mut replayed = Team::new();
        for row in rows {
            let event = Event::decode(&row.kind, row.schema, &row.body).unwrap();
            replayed.apply(row.seq, row.at, &event);
        }
        let whole = |team: &Team| (format!("{team:?}"), String::from_utf8(team.snapshot()).unwrap());
        [self.team.peek(whole), whole(&replayed)]
    }

    /// Where its log is kept.
    pub fn store(&self) -> MemoryStore {
        self.store.clone()
    }

    /// A listener of that member.
    pub fn arm(&self, member: &str, arming: Arming, stays: bool) -> Listening {
        self.listening(member, arming, stays).unwrap()
    }

    /// The same, of a member who perhaps may not.
    pub fn try_arm(&self, member: &str, arming: Arming) -> Result<(), Turned> {
        self.listening(member, arming, false).map(drop)
    }

    fn listening(&self, member: &str, arming: Arming, stays: bool) -> Result<Listening, Turned> {
        let (coordinator, member) = (self.coordinator.as_ref().unwrap(), member.parse().unwrap());
        self.runtime.block_on(async {
            let token = coordinator.issue_token(self.team.name(), &member, true).await.unwrap();
            coordinator.listen(&token, arming, stays, None)
        })
    }

    /// Ends every token of that member.
    pub fn revoke(&self, member: &str) {
        let (coordinator, member) = (self.coordinator.as_ref().unwrap(), member.parse().unwrap());
        self.runtime.block_on(coordinator.revoke_tokens(self.team.name(), &member)).unwrap();
    }

    /// As a server that ends.
    pub fn end_listening(&self) {
        self.coordinator.as_ref().unwrap().end_listening();
    }

    /// What a listener hears, if it hears anything now.
    pub fn hear(&self, listening: &mut Listening) -> Option<Result<Said, Turned>> {
        self.settle();
        self.runtime.block_on(async {
            tokio::select! {
                biased;
                said = listening.next() => said,
                () = idle() => None,
            }
        })
    }

    /// What a listener hears next, which is to come.
    pub fn hear_next(&self, listening: &mut Listening) -> Option<Result<Said, Turned>> {
        self.runtime.block_on(listening.next())
    }

    /// The member says that it took that wake.
    pub fn take(&self, member: &str, waking: &Waking) {
        let obligations = waking.due.owed.iter().map(|owed| owed.id.clone()).collect();
        let took =
            Acknowledge { wake: waking.due.wake, obligations, watched: waking.watched, seq: waking.seq };
        self.runtime.block_on(self.team.acknowledge(&member.parse().unwrap(), took)).unwrap();
    }

    /// Has a command decided, and says what came of it.
    pub fn done(&mut self, member: &str, act: &Act) -> Done {
        let command = self.command(act).unwrap();
        self.runtime.block_on(self.team.submit(member.parse().unwrap(), command, None)).unwrap()
    }

    /// Whether a wake reaches that member, and since how many seconds.
    pub fn presence(&self, member: &str) -> (Presence, Option<i64>) {
        let found = self.team.roster().into_iter().find(|(name, ..)| name.as_str() == member);
        let (_, presence, since) = found.unwrap();
        (presence, since.map(|since| (self.clock.now() - since).0 / 1_000_000))
    }

    fn listen(&self, member: &str, subjects: &[String], kinds: &[String], killed: bool) -> Seen {
        let kinds = kinds.iter().map(|kind| ObligationKind::named(kind).unwrap()).collect();
        let narrowed = Narrowed { subjects: subjects.to_vec(), kinds };
        let mut listening = self.arm(member, Arming { narrowed, ..Arming::default() }, false);
        let said = self.runtime.block_on(listening.next()).unwrap().unwrap();
        let Said::Woken(waking) = said else { return Seen::Heard { woken: None } };
        if !killed {
            self.take(member, &waking);
        }
        let owed: Vec<_> =
            waking.due.owed.iter().map(|owed| format!("{} {}", owed.kind, owed.subject)).collect();
        let fresh = waking.due.owed.iter().filter(|owed| waking.due.fresh.contains(&owed.id));
        let by = fresh.map(|owed| owed.id.clone()).collect();
        Seen::Heard { woken: Some((waking.due.wake.to_string(), owed, by)) }
    }

    fn called_out(&self) -> Vec<String> {
        let rows = self.store.reader().rows(self.team.name(), Seq(1), usize::MAX).unwrap();
        let bodies = rows.iter().filter(|row| row.kind == "called-out").map(|row| row.body.as_str());
        bodies.map(called_out_line).collect()
    }

    /// Where the state says that its entries stand.
    fn transcript(&self) -> Vec<String> {
        let seqs = self.team.peek(|team| team.room().entries().to_vec());
        let one = |seq: &Seq| {
            let row = self.store.reader().rows(self.team.name(), *seq, 1).unwrap().remove(0);
            let event = Event::decode(&row.kind, row.schema, &row.body).unwrap();
            transcript_line(&entry(row.seq, row.at, event).unwrap())
        };
        seqs.iter().map(one).collect()
    }

    fn end(&mut self) {
        let ended = self.coordinator.take().unwrap();
        self.runtime.block_on(ended.shutdown());
    }

    fn begin(&mut self) {
        let name = self.team.name().clone();
        self.runtime.block_on(async {
            let coordinator = open(&self.store, &self.clock);
            self.team = coordinator.team(&name).unwrap();
            self.coordinator = Some(coordinator);
        });
        self.settle();
    }

    /// What time brings is decided before anybody looks.
    fn settle(&self) {
        self.runtime.block_on(self.team.read(|_, _| ())).unwrap();
    }
}

fn shown(violation: &Violation) -> Shown {
    Shown { code: violation.code().to_owned(), message: violation.to_string(), remedy: violation.remedy() }
}

/// As the server answers a text that is not of its form.
pub fn refused_as_malformed(malformed: &Malformed) -> Seen {
    let violation = Violation::Malformed {
        argument: "argument".to_owned(),
        expected: malformed.expected.to_owned(),
        given: malformed.given.clone(),
        form: malformed.form.to_owned(),
    };
    Seen::Refused { violations: vec![shown(&violation)] }
}

fn seen(team: &TeamHandle, act: &Act, answer: Answer, woke: Vec<String>) -> Seen {
    match answer {
        Answer::Proposed { reference, escalated, .. } => Seen::Proposed {
            reference: reference.to_string(),
            escalated: escalated.iter().map(ToString::to_string).collect(),
        },
        Answer::Read { reference } => Seen::Shown { reference: reference.to_string() },
        Answer::ObjectionsRead { proposal } => {
            let Act::Objections { .. } = act else { unreachable!() };
            Seen::Objections { lines: team.peek(|team| objections(team, &proposal)) }
        }
        Answer::Approved { reference, .. } => Seen::Approved { reference: reference.to_string() },
        Answer::Raised { objection, reference } => {
            Seen::Raised { id: objection.to_string(), reference: reference.to_string() }
        }
        Answer::ObjectionClosed { objection } => Seen::Closed { id: objection.to_string() },
        Answer::Withdrawn { cooldown_until, flips, flips_left } => {
            Seen::Withdrawn { flips, flips_left, until: cooldown_until.to_string() }
        }
        Answer::CheckReported { reference, name, exit } => {
            let status = match exit {
                None => "skipped",
                Some(0) => "passed",
                Some(_) => "failed",
            };
            Seen::Checked { name, status: status.to_owned(), reference: reference.to_string() }
        }
        Answer::Confirmed { complete, waiting_for, .. } => {
            Seen::Confirmed { complete, waiting_for: waiting_for.iter().map(ToString::to_string).collect() }
        }
        Answer::Escalated { escalation } => Seen::Escalated { id: escalation.to_string() },
        Answer::Said { message, ended, escalation, .. } => {
            let escalation = escalation.map(|id| id.to_string());
            Seen::Said { id: message.to_string(), ended, escalation, woke }
        }
        Answer::ClaimJudged { message, verdict } => {
            Seen::Judged { id: message.to_string(), verdict: verdict.to_string() }
        }
        Answer::Adopted { revision } => Seen::Adopted { revision },
        Answer::EscalationAnswered { escalation } => Seen::Answered { id: escalation.to_string() },
        other => panic!("no member gets {other:?}"),
    }
}

/// Every objection and note on a proposal, a line each.
pub fn objections(team: &Team, proposal: &ProposalName) -> Vec<String> {
    let known = &team.review().proposal(proposal).unwrap().objections;
    let line = |objection: &review::Objection| {
        let places: Vec<String> = objection.places.iter().map(ToString::to_string).collect();
        let lenses: Vec<String> = objection.lenses.iter().map(ToString::to_string).collect();
        let kind = match objection.kind {
            review::ObjectionKind::Objection => "objection",
            review::ObjectionKind::Note => "note",
        };
        objection_line(
            &objection.id.to_string(),
            kind,
            objection.by.as_str(),
            &lenses,
            &objection.from.as_ref().map_or_else(
                || format!("version {}", objection.version),
                |(proposal, version)| format!("{proposal}@{version}"),
            ),
            objection.status(),
            &objection.text,
            &places,
        )
    };
    known.iter().map(line).collect()
}

/// One objection or note, as a play shows it.
#[allow(clippy::too_many_arguments)] // A line has as many parts.
pub fn objection_line(
    id: &str,
    kind: &str,
    by: &str,
    lenses: &[String],
    on: &str,
    status: &str,
    text: &str,
    places: &[String],
) -> String {
    let at = if places.is_empty() { String::new() } else { format!(" at {}", places.join(", ")) };
    format!("{id} {kind} by {by} ({}) on {on}, {status}: \"{text}\"{at}", lenses.join(", "))
}

fn explained(
    handle: &TeamHandle,
    team: &Team,
    name: &str,
    member: &countersign::protocol::name::MemberName,
) -> Vec<String> {
    let charter = &team.adopted().unwrap().charter;
    let proposal = team.review().proposals().find(|proposal| proposal.name.as_str() == name);
    let circle = match proposal {
        Some(proposal) => team.review().circle(&proposal.circle).unwrap(),
        None => team.review().circles().find(|circle| circle.name.as_str() == name).unwrap(),
    };
    let all = requirement::of_circle(team, charter, &*handle.judge(), circle, member);
    let about = |requirement: &&Requirement| {
        proposal.is_none_or(|wanted| requirement.proposal.as_ref().is_none_or(|named| *named == wanted.name))
    };
    all.iter().filter(about).map(told).collect()
}

fn told(requirement: &Requirement) -> String {
    let who: Vec<String> = requirement.who.iter().map(ToString::to_string).collect();
    let (state, name) = (requirement.state.as_str(), requirement.name());
    requirement_line(state, &name, &who, &requirement.detail, &requirement.command)
}

/// A call-out, from its stored form.
pub fn called_out_line(body: &str) -> String {
    let said: CalledOut = serde_json::from_str(body).unwrap();
    format!("{} on the {} {} of {}: {}", said.rule, said.what, said.subject, said.by, said.says)
}

/// An entry of the transcript, as a play shows it: without its time.
pub fn transcript_line(entry: &proto::TranscriptEntry) -> String {
    let lower = |name: &str, prefix: &str| name.trim_start_matches(prefix).to_lowercase().replace('_', "-");
    let mut out = format!("{} {}", entry.id, lower(entry.kind().as_str_name(), "ENTRY_KIND_"));
    let mut add = |what: &str, words: &str| {
        if !words.is_empty() {
            out.push_str(&format!(" {what}{words}"));
        }
    };
    add("by ", &entry.by);
    add("to ", &entry.mentions.join(", "));
    add("about ", &entry.about);
    add("in answer to ", &entry.reply);
    add("", if entry.ended { "(the chain ended)" } else { "" });
    add("", &entry.word);
    let verdict = lower(entry.verdict().as_str_name(), "VERDICT_");
    add("", if verdict == "unspecified" { "" } else { &verdict });
    if let Some(evidence) = &entry.evidence {
        add("at ", &evidence.at.join(", "));
        for ran in &evidence.ran {
            add("ran ", &ran.command);
        }
    }
    let text = entry.text.trim_end().replace('\n', " / ");
    add("", &if text.is_empty() { text } else { format!("\"{text}\"") });
    out
}

/// One requirement, as a play shows it: what is met in one line, what isn't with its remedy.
pub fn requirement_line(state: &str, name: &str, who: &[String], detail: &str, command: &str) -> String {
    if who.is_empty() {
        format!("{state} {name}")
    } else {
        format!("{state} {name}: {detail}; {} can: {command}", who.join(", "))
    }
}

/// Long enough for whatever is ready, and for what a thread reads.
async fn idle() {
    for _ in 0..20 {
        tokio::task::yield_now().await;
        tokio::task::spawn_blocking(|| ()).await.unwrap();
    }
}

/// The standing, from the state.
pub fn standing(team: &Team, judge: &dyn countersign::protocol::rule::Judge, now: Time) -> Standing {
    let adopted = team.adopted().unwrap();
    let review = team.review();
    let circles = review.circles().map(|circle| {
        let reference = review.circle_ref(adopted.revision, circle);
        let manifest = match &circle.completed {
            Some(completed) => completed.manifest.clone(),
            None => review.manifest(adopted.revision, circle),
        };
        let confirmed = review.confirmed(circle, &manifest).map(ToString::to_string).collect();
        (circle.name.to_string(), reference.to_string(), circle.state.as_str().to_owned(), confirmed)
    });
    let proposals = review.proposals().chain(review.dropped()).map(|proposal| {
        let (_, phase) = adopted.charter.phase(&proposal.phase).unwrap();
        let counts = proposal.edges(phase).filter_map(|edge| {
            let current = proposal.current().filter(|_| proposal.withdrawal.is_none())?;
            let approved = current.approved_by(edge.reviewer);
            let overruled = current.overruled.contains(edge.reviewer);
            let mark = if approved { "" } else { ", overruled" };
            (approved || overruled).then(|| format!("{} ({}{mark})", edge.reviewer, edge.lens))
        });
        let reference = proposal.current().map(|_| proposal.current_ref()).unwrap_or_default();
        (
            proposal.name.to_string(),
            reference,
            review.proposal_state(proposal).as_str().to_owned(),
            counts.collect(),
            proposal.open_objections().map(|objection| objection.id.to_string()).collect(),
        )
    });
    let obligations = team
        .all_obligations(judge, now)
        .into_iter()
        .map(|owed| (owed.member.to_string(), owed.kind.as_str().to_owned(), owed.subject, owed.command));
    let escalations = team.escalations().open().map(|escalation| {
        let opened = &escalation.opened;
        (opened.id.to_string(), opened.cause.to_string(), opened.subject.clone())
    });
    Standing {
        circles: circles.collect(),
        proposals: proposals.collect(),
        obligations: obligations.collect(),
        escalations: escalations.collect(),
    }
}
