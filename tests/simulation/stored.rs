//! The log as the oracle reads it: the stored bodies, in words of its own. Nothing of the core is
//! used here, so that a mistake there isn't made here a second time.

use std::collections::BTreeMap;

use serde::Deserialize;

#[derive(Debug, Deserialize)]
pub struct CharterAdopted {
    pub revision: u32,
    #[serde(default)]
    pub reason: Option<String>,
    pub charter: Charter,
}

#[derive(Debug, Deserialize)]
pub struct Charter {
    pub limits: Limits,
    pub members: BTreeMap<String, Member>,
    pub phases: Vec<Phase>,
    pub required_checks: Vec<String>,
    #[serde(default)]
    pub repository: Option<serde_json::Value>,
    pub rules: Rules,
}

#[derive(Debug, Deserialize)]
pub struct Rules {
    /// `enforce` where nothing is said.
    pub modes: BTreeMap<String, String>,
}

/// Durations are microseconds.
#[derive(Debug, Deserialize)]
pub struct Limits {
    pub withdraw_cooldown: i64,
    pub withdraw_flips: usize,
    pub rounds: usize,
    pub vote_changes: usize,
    pub notes: usize,
    pub text_bytes: usize,
    pub stall_after: i64,
    pub escalation_reminders: u32,
}

#[derive(Debug, Deserialize)]
pub struct Member {
    pub kind: String,
    pub emails: Vec<String>,
    pub owns: Vec<String>,
}

#[derive(Debug, Deserialize)]
pub struct Phase {
    pub name: String,
    pub confirm: String,
    pub deliverables: Vec<Deliverable>,
    pub reviews: Vec<Edge>,
}

#[derive(Clone, Debug, Deserialize)]
pub struct Deliverable {
    pub name: String,
    pub producer: String,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub struct Edge {
    pub reviewer: String,
    pub of: String,
    pub lens: String,
}

#[derive(Debug, Deserialize)]
pub struct PhaseOpened {
    pub phase: String,
}

#[derive(Debug, Deserialize)]
pub struct Proposed {
    pub proposal: String,
    pub version: u32,
    pub producer: String,
    pub artifact: Artifact,
    pub summary: String,
    #[serde(default)]
    pub answers: BTreeMap<String, String>,
    #[serde(default)]
    pub paths: Vec<String>,
    #[serde(default)]
    pub authors: Vec<Identity>,
    pub round: bool,
    #[serde(default)]
    pub ad_hoc: Option<String>,
    #[serde(default)]
    pub follows: Vec<String>,
}

#[derive(Debug, Deserialize)]
pub struct Artifact {
    pub digest: String,
    pub content: String,
}

#[derive(Debug, Deserialize)]
pub struct Identity {
    pub email: String,
}

#[derive(Debug, Deserialize)]
pub struct VersionRead {
    pub proposal: String,
    pub version: u32,
    pub by: String,
}

#[derive(Debug, Deserialize)]
pub struct ObjectionsRead {
    pub proposal: String,
    pub by: String,
    pub objections: Vec<String>,
}

#[derive(Debug, Deserialize)]
pub struct Run {
    pub command: String,
    #[serde(default)]
    pub exit: Option<i32>,
    #[serde(default)]
    pub output: Option<String>,
}

#[derive(Debug, Deserialize)]
pub struct Approved {
    pub proposal: String,
    pub version: u32,
    pub by: String,
    pub lenses: Vec<String>,
    #[serde(default)]
    pub checked: Vec<String>,
    #[serde(default)]
    pub ran: Vec<Run>,
}

#[derive(Debug, Deserialize)]
pub struct CheckReported {
    pub proposal: String,
    pub version: u32,
    pub name: String,
    #[serde(default)]
    pub exit: Option<i32>,
    #[serde(default)]
    pub output: Option<String>,
    pub by: String,
}

#[derive(Debug, Deserialize)]
pub struct CalledOut {
    pub rule: String,
    pub by: String,
}

#[derive(Debug, Deserialize)]
pub struct DissentCalled {
    pub circle: String,
    pub proposals: Vec<String>,
}

/// An objection; or a note, which has no failing test.
#[derive(Debug, Deserialize)]
pub struct Raised {
    pub id: String,
    pub proposal: String,
    pub version: u32,
    pub by: String,
    pub lenses: Vec<String>,
    pub text: String,
    #[serde(default)]
    pub failing_test: Option<Run>,
}

#[derive(Debug, Deserialize)]
pub struct ObjectionClosed {
    pub id: String,
    pub proposal: String,
    pub by: String,
    pub how: String,
    pub version: u32,
    #[serde(default)]
    pub reason: Option<String>,
}

#[derive(Debug, Deserialize)]
pub struct Withdrawn {
    pub proposal: String,
    pub version: u32,
    pub by: String,
    pub reason: String,
}

#[derive(Debug, Deserialize)]
pub struct Confirmed {
    pub circle: String,
    pub manifest: String,
    pub by: String,
}

#[derive(Debug, Deserialize)]
pub struct CircleCompleted {
    pub circle: String,
    pub manifest: String,
    pub entries: Vec<CompletedEntry>,
}

#[derive(Debug, Deserialize)]
pub struct CompletedEntry {
    pub proposal: String,
    pub version: u32,
    pub digest: String,
    pub approvals: Vec<CountedApproval>,
}

#[derive(Debug, Deserialize)]
pub struct CountedApproval {
    pub by: String,
    pub lens: String,
    pub version: u32,
    #[serde(default)]
    pub overruled: bool,
}

#[derive(Debug, Deserialize)]
pub struct CirclePublished {
    pub circle: String,
    pub manifest: String,
}

#[derive(Debug, Deserialize)]
pub struct CircleReopened {
    pub circle: String,
    pub owing: Vec<String>,
}

#[derive(Debug, Deserialize)]
pub struct TargetMoved {
    /// NAME@VERSION:DIGITS.
    pub reference: String,
    #[serde(default)]
    pub empty: bool,
    #[serde(default)]
    pub undone: Option<serde_json::Value>,
    #[serde(default)]
    pub conflict: Option<Conflict>,
}

#[derive(Debug, Deserialize, PartialEq)]
pub struct Conflict {
    #[serde(default)]
    pub with: Vec<String>,
    pub paths: Vec<String>,
}

#[derive(Debug, Deserialize)]
pub struct Escalated {
    pub id: String,
    pub cause: String,
    pub subject: String,
    #[serde(default)]
    pub proposal: Option<String>,
    #[serde(default)]
    pub member: Option<String>,
    #[serde(default)]
    pub circle: Option<String>,
    #[serde(default)]
    pub obligation: Option<String>,
    pub text: String,
}

#[derive(Debug, Deserialize)]
pub struct EscalationClosed {
    pub id: String,
    #[serde(default)]
    pub by: Option<String>,
    #[serde(default)]
    pub decision: Option<String>,
    pub reason: String,
}

#[derive(Debug, Deserialize)]
pub struct EscalationReminded {
    pub id: String,
    pub level: u32,
}

#[derive(Debug, Deserialize)]
pub struct EscalationSent {
    pub id: String,
    pub level: u32,
    pub channel: String,
}

#[derive(Debug, Deserialize)]
pub struct RefPutBack {
    pub escalation: String,
}

#[derive(Debug, Deserialize)]
pub struct ServerResumed {
    pub from: i64,
    pub to: i64,
}

#[derive(Debug, Deserialize)]
pub struct PhaseClosed {
    pub phase: String,
    pub by: String,
    pub reason: String,
}

#[derive(Debug, Deserialize)]
pub struct DeliverableDropped {
    pub proposal: String,
    pub by: String,
    pub reason: String,
}

#[derive(Clone, Debug, Deserialize)]
pub struct Said {
    pub id: String,
    pub by: String,
    pub text: String,
    #[serde(default)]
    pub mentions: Vec<String>,
    #[serde(default)]
    pub reply: Option<String>,
    #[serde(default)]
    pub claim: Option<serde_json::Value>,
    pub root: String,
    pub length: u32,
    #[serde(default)]
    pub ended: bool,
}

#[derive(Clone, Debug, Deserialize)]
pub struct ClaimJudged {
    pub message: String,
    pub by: String,
    pub verdict: String,
    #[serde(default)]
    pub text: Option<String>,
}

/// By a stand-in, or by nobody.
#[derive(Debug, Deserialize)]
pub struct HandedOver {
    pub proposal: String,
    pub reviewer: String,
    #[serde(default)]
    pub stand_in: Option<String>,
    pub by: String,
}

macro_rules! facts {
    ($($kind:literal => $variant:ident($body:ty),)*) => {
        /// What the log says happened.
        #[derive(Debug)]
        pub enum Fact {
            $($variant($body),)*
        }

        impl Fact {
            pub fn read(kind: &str, body: &str) -> Result<Self, String> {
                match kind {
                    $($kind => serde_json::from_str(body).map(Self::$variant)
                        .map_err(|fault| format!("{kind}: {fault}: {body}")),)*
                    other => Err(format!("the oracle doesn't know the event {other}")),
                }
            }

            pub fn kind(&self) -> &'static str {
                match self {
                    $(Self::$variant(_) => $kind,)*
                }
            }
        }
    };
}

facts! {
    "charter-adopted" => Charter(CharterAdopted),
    "phase-opened" => Opened(PhaseOpened),
    "proposed" => Proposed(Proposed),
    "version-read" => Read(VersionRead),
    "objections-read" => ObjectionsRead(ObjectionsRead),
    "approved" => Approved(Approved),
    "objected" => Objected(Raised),
    "noted" => Noted(Raised),
    "objection-closed" => Closed(ObjectionClosed),
    "withdrawn" => Withdrawn(Withdrawn),
    "check-reported" => CheckReported(CheckReported),
    "dissent-called" => DissentCalled(DissentCalled),
    "called-out" => CalledOut(CalledOut),
    "confirmed" => Confirmed(Confirmed),
    "circle-completed" => Completed(CircleCompleted),
    "circle-published" => Published(CirclePublished),
    "circle-reopened" => Reopened(CircleReopened),
    "target-moved" => Moved(TargetMoved),
    "escalated" => Escalated(Escalated),
    "escalation-closed" => EscalationClosed(EscalationClosed),
    "escalation-reminded" => Reminded(EscalationReminded),
    "escalation-sent" => Sent(EscalationSent),
    "ref-put-back" => PutBack(RefPutBack),
    "server-resumed" => Resumed(ServerResumed),
    "said" => Said(Said),
    "claim-judged" => ClaimJudged(ClaimJudged),
    "reviewer-replaced" => Replaced(HandedOver),
    "reviewer-excused" => Excused(HandedOver),
    "phase-closed" => PhaseClosed(PhaseClosed),
    "deliverable-dropped" => Dropped(DeliverableDropped),
}
