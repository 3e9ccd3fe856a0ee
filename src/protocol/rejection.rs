//! The protocol's no: one table of every code.
//!
//! A rejection is expected: it has a stable code, one sentence, the facts, and a remedy — the
//! command that would work, or who can. A command stands last in its remedy, behind a colon, so that
//! it runs as it is printed once its placeholders (TEXT, FILE, DIR) are filled in. Codes are never renamed or reused. Each verb checks its
//! conditions in the order in which its row in docs/protocol.md gives them; all unmet ones are
//! reported, and the first is the rejection's code.

use std::collections::BTreeMap;
use std::fmt;

use super::name::{CircleRef, MemberName, MessageId, ObjectionId, PhaseName, ProposalName, VersionRef};
use super::time::Time;

/// What kind of no it is: it decides the gRPC status and whether asking again can help.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// The command isn't well-formed; ask with other content.
    Malformed,
    /// This member may not do it.
    Forbidden,
    /// What it speaks of isn't known.
    Missing,
    /// A condition is unmet; ask again after the remedy.
    Precondition,
    /// Somebody was faster; read, then ask again.
    Conflict,
    /// A limit is reached; later, smaller, or a person.
    Limit,
}

/// A fact of a rejection: an operand of its sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fact {
    /// A name, a reference, a time, a text.
    Text(String),
    /// A count or a version.
    Number(i64),
    /// Several names or references.
    Texts(Vec<String>),
}

macro_rules! rejections {
    ($(
        $(#[doc = $doc:literal])*
        $variant:ident { $($field:ident: $type:ty),* $(,)? } = $code:literal, $class:ident,
            $sentence:expr, $remedy:expr;
    )*) => {
        /// One unmet condition.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum Violation {
            $(
                $(#[doc = $doc])*
                #[allow(missing_docs)] // Each field is an operand of the sentence beside it.
                $variant { $($field: $type),* },
            )*
        }

        impl Violation {
            /// Every code with its class, in the table's order.
            pub const CODES: &[(&str, Class)] = &[$(($code, Class::$class)),*];

            /// What each code stands for, in the table's order.
            pub const MEANINGS: &[&str] = &[$(concat!($($doc),*)),*];

            /// The stable code.
            pub fn code(&self) -> &'static str {
                match self { $(Self::$variant { .. } => $code,)* }
            }

            /// What kind of no it is.
            pub fn class(&self) -> Class {
                match self { $(Self::$variant { .. } => Class::$class,)* }
            }

            /// The operands, by name.
            pub fn facts(&self) -> BTreeMap<&'static str, Fact> {
                match self { $(
                    Self::$variant { $($field),* } => BTreeMap::from([$((stringify!($field), Fact::from($field))),*]),
                )* }
            }

            /// The command that would work, or who can.
            #[allow(unused_variables)]
            pub fn remedy(&self) -> String {
                match self { $(Self::$variant { $($field),* } => $remedy.to_string(),)* }
            }
        }

        impl fmt::Display for Violation {
            #[allow(unused_variables, clippy::unnecessary_to_owned)] // Most sentences have operands.
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self { $(Self::$variant { $($field),* } => f.write_str(&$sentence),)* }
            }
        }
    };
}

rejections! {
    /// An argument is not of its form.
    Malformed { argument: String, expected: String, given: String, form: String } = "MALFORMED", Malformed,
        format!("{argument}: \"{given}\" is not {expected}"), format!("give {form}");

    /// A text is longer than the charter's `text_bytes`; it is never cut.
    TextTooLarge { what: String, bytes: u64, limit: u64 } = "TEXT_TOO_LARGE", Malformed,
        format!("the {what} has {}; the limit is {limit}", counted(*bytes, "byte")),
        format!("give at most {}, and put the rest into the work itself", counted(*limit, "byte"));

    /// A text holds a secret, which would stand in the log for ever.
    SecretFound { what: String, kind: String, line: u32 } = "SECRET_FOUND", Malformed,
        format!("the {what} holds {kind}, in line {line}"),
        "take it out, and end it where it was issued: others may have seen it".to_owned();

    /// No proposal, version, objection, circle, phase or escalation of that name is known here.
    UnknownSubject { subject: String, nearest: String } = "UNKNOWN_SUBJECT", Missing,
        format!("{subject} is not known here"),
        if nearest.is_empty() { "run: countersign status".to_owned() } else { format!("use {nearest}, or run: countersign status") };

    /// No member of that name is known here.
    UnknownMember { member: String, nearest: String, members: Vec<MemberName> } = "UNKNOWN_MEMBER", Missing,
        format!("nobody here is called {member}"),
        if nearest.is_empty() {
            format!("mention one of: {}; a word that is no mention stands between backticks", list(members))
        } else {
            format!("mention {nearest}; a word that is no mention stands between backticks")
        };

    /// The member has left the team.
    MemberLeft { member: String, revision: u32, members: Vec<MemberName> } = "MEMBER_LEFT", Precondition,
        format!("{member} left the team with revision {revision} of its charter"),
        format!("mention one of: {}", list(members));

    /// The member doesn't produce this deliverable, or, where it is none, is reviewed by nobody in the open phase.
    NotProducer { proposal: ProposalName, producer: String, member: String, verb: String, reviewed: Vec<MemberName> } = "NOT_PRODUCER", Forbidden,
        if producer.is_empty() {
            format!("{proposal} is no deliverable, and nobody reviews {member}, who so can't propose anything else")
        } else {
            format!("{proposal} is produced by {producer}, not by {member}")
        },
        if producer.is_empty() {
            format!("whoever is reviewed can: {}", list(reviewed))
        } else {
            if verb == "withdraw" {
                format!("{producer} can: countersign withdraw {proposal} --reason TEXT")
            } else {
                format!("{producer} can; run: countersign explain {proposal}")
            }
        };

    /// No new proposal can bear this name.
    NameUnusable { proposal: ProposalName, because: String } = "NAME_UNUSABLE", Malformed,
        format!("no proposal can be called {proposal}: {because}"),
        "propose it under another name".to_owned();

    /// The member has no review edge to the producer.
    NotReviewer { proposal: ProposalName, member: String, reviewers: Vec<MemberName> } = "NOT_REVIEWER", Forbidden,
        format!("{member} does not review {proposal}"),
        format!("its reviewers can: {}", list(reviewers));

    /// The objection was raised by another member.
    NotObjector { objection: ObjectionId, by: MemberName, member: String } = "NOT_OBJECTOR", Forbidden,
        format!("{objection} was raised by {by}, not by {member}"),
        format!("a person can overrule it; {by} can: countersign resolve {objection}");

    /// Only a person may do this.
    NotAPerson { verb: String, member: String, persons: Vec<MemberName> } = "NOT_A_PERSON", Forbidden,
        format!("{member} is no person, and only a person may {verb}"),
        format!("ask one of: {}", list(persons));

    /// The member neither produces nor reviews in this circle.
    NotParticipant { circle: String, member: String, participants: Vec<MemberName> } = "NOT_PARTICIPANT", Forbidden,
        format!("{member} neither produces nor reviews in {circle}"),
        format!("its participants can: {}", list(participants));

    /// The member proposed a version of it, or authored a commit in it.
    OwnWork { reference: String, member: MemberName, because: String } = "OWN_WORK", Forbidden,
        format!("{reference} is {member}'s own work: {because}"),
        "another reviewer of it can, or another person decides".to_owned();

    /// The phase isn't open.
    PhaseClosed { phase: PhaseName, state: String } = "PHASE_CLOSED", Precondition,
        format!("phase {phase} is {state}"),
        if state == "pending" {
            "wait until the phase before it is over; run: countersign status".to_owned()
        } else {
            "name a deliverable of the open phase; run: countersign status".to_owned()
        };

    /// A person dropped it: nobody owes anything for it.
    DeliverableDropped { proposal: ProposalName, by: MemberName, reason: String } = "DELIVERABLE_DROPPED", Precondition,
        format!("{proposal} was dropped by {by}: {reason}"),
        "nothing is to be done; run: countersign status".to_owned();

    /// The version changes nothing against its target, or holds no files.
    EmptyProposal { proposal: ProposalName } = "EMPTY_PROPOSAL", Precondition,
        format!("there is nothing in this version of {proposal}"),
        "change something, then propose it as you did; to see what is owed, run: countersign status".to_owned();

    /// The content equals the current version's, or that of one whose objection still stands or was
    /// answered by another version.
    UnchangedProposal { proposal: ProposalName, same_as: VersionRef, objections: Vec<ObjectionId> } = "UNCHANGED_PROPOSAL", Precondition,
        if objections.is_empty() {
            format!("the content is the same as that of {same_as}, the current version")
        } else {
            format!("the content is the same as that of {same_as}, to which {} was raised", list(objections))
        },
        "change the content, then propose it as you did; to see what is owed, run: countersign status".to_owned();

    /// The version touches paths that other members own.
    OutsideOwnership { proposal: ProposalName, paths: Vec<String>, owners: Vec<MemberName> } = "OUTSIDE_OWNERSHIP", Forbidden,
        format!("{proposal} touches paths of {}: {}", list(owners), some(paths)),
        "leave those paths out, or have a person change `owns` in the charter".to_owned();

    /// The version doesn't follow the current one.
    VersionConflict { proposal: ProposalName, after: u32, current: u32, current_ref: String } = "VERSION_CONFLICT", Conflict,
        if *current == 0 {
            format!("{proposal} has no version yet, and this one is to follow version {after}")
        } else {
            format!("{proposal} is at version {current} ({current_ref}), and this one is to follow version {after}")
        },
        if *current == 0 {
            "propose it as you did, with --after 0".to_owned()
        } else {
            format!("propose again once you have read it; run: countersign show {proposal}@{current}")
        };

    /// The producer hasn't read every open objection and note.
    UnreadObjections { proposal: ProposalName, unread: Vec<ObjectionId>, by: Vec<MemberName> } = "UNREAD_OBJECTIONS", Precondition,
        format!("{} by {} {} open and not read", list(unread), list(by), if unread.len() == 1 { "is" } else { "are" }),
        format!("run: countersign objections {proposal}");

    /// The version doesn't answer every open objection.
    UnansweredObjections { proposal: ProposalName, unanswered: Vec<ObjectionId>, command: String } = "UNANSWERED_OBJECTIONS", Precondition,
        format!("{} {} open and not answered", list(unanswered), if unanswered.len() == 1 { "is" } else { "are" }),
        format!("run: {command}");

    /// The work was withdrawn and stays away for a while.
    CooldownActive { proposal: ProposalName, until: Time } = "COOLDOWN_ACTIVE", Limit,
        format!("{proposal} was withdrawn and is cooling down until {until}"),
        format!("ask again at {until}");

    /// Too many versions followed an objected one; it is before a person.
    RoundLimit { proposal: ProposalName, rounds: u32, limit: u32, escalation: String } = "ROUND_LIMIT", Limit,
        format!("{proposal} went through {}; the limit is {limit}", counted((*rounds).into(), "round")),
        format!("a person decides: countersign escalations answer {escalation} --decide raise-limit --reason TEXT");

    /// Withdrawn too often; it is before a person.
    FlipLimit { proposal: ProposalName, flips: u32, limit: u32, escalation: String } = "FLIP_LIMIT", Limit,
        format!("{proposal} was withdrawn {}; the limit is {limit}", counted((*flips).into(), "time")),
        format!("a person decides: countersign escalations answer {escalation} --decide raise-limit --reason TEXT");

    /// The reviewer changed its vote on this version too often; it is before a person.
    VoteLimit { reference: VersionRef, changes: u32, limit: u32, escalation: String } = "VOTE_LIMIT", Limit,
        format!("the vote on {reference} was changed {}; the limit is {limit}", counted((*changes).into(), "time")),
        format!("a person decides: countersign escalations answer {escalation} --decide raise-limit --reason TEXT");

    /// The reviewer left too many notes on this version.
    NoteLimit { reference: VersionRef, notes: u32, limit: u32 } = "NOTE_LIMIT", Limit,
        format!(
            "there {} {} of this reviewer on {reference}; the limit is {limit}",
            if *notes == 1 { "is" } else { "are" },
            counted((*notes).into(), "note")
        ),
        format!("object instead: countersign object {reference} TEXT");

    /// The version isn't the current one.
    StaleVersion { given: VersionRef, current: VersionRef } = "STALE_VERSION", Conflict,
        format!("{given} is not the current version: {current} is"),
        format!("run: countersign show {}@{}", current.proposal, current.version);

    /// The digest isn't that of the version.
    DigestMismatch { given: VersionRef, actual: VersionRef } = "DIGEST_MISMATCH", Conflict,
        format!("{given} does not name what version {} holds: {actual} does", actual.version),
        format!("run: countersign show {}@{}", actual.proposal, actual.version);

    /// The member was never shown this version.
    UnreadVersion { reference: VersionRef, member: MemberName } = "UNREAD_VERSION", Precondition,
        format!("{member} was never shown {reference}"),
        format!("run: countersign show {}@{}", reference.proposal, reference.version);

    /// The version is withdrawn.
    Withdrawn { reference: VersionRef, by: MemberName } = "WITHDRAWN", Precondition,
        format!("{reference} was withdrawn by {by}"),
        format!("wait for {by}'s next version; run: countersign status");

    /// The reviewer holds an open objection and doesn't resolve it in the same call.
    ObjectionHeld { held: Vec<ObjectionId>, on_this_version: Vec<ObjectionId>, approval: String } = "OBJECTION_HELD", Precondition,
        format!("{} {} open", list(held), if held.len() == 1 { "is" } else { "are" }),
        if on_this_version.is_empty() {
            format!("run: {approval}")
        } else {
            format!("wait for a newer version, or run: countersign resolve {} --mistaken --reason TEXT", on_this_version[0])
        };

    /// The reviewer's own failing test isn't shown to pass on this version.
    FailingTest { reference: VersionRef, objection: ObjectionId, command: String, approval: String } = "FAILING_TEST", Precondition,
        format!("the failing test of {objection} is not shown to pass on {reference}: {command}"),
        format!("run it on that version, then: {approval}");

    /// The version has no such place.
    PlaceUnknown { reference: VersionRef, places: Vec<String> } = "PLACE_UNKNOWN", Malformed,
        format!("{reference} has no {}", some(places)),
        format!("name a file and lines of that version; run: countersign show {}@{}", reference.proposal, reference.version);

    /// The charter requires no check of that name.
    UnknownCheck { check: String, known: Vec<String>, nearest: String } = "UNKNOWN_CHECK", Missing,
        if known.is_empty() {
            format!("the charter requires no check, and none named {check}")
        } else {
            format!("the charter requires no check named {check}: it requires {}", list(known))
        },
        if known.is_empty() {
            "nothing is to be done; a person can add it to `required` in the charter's [checks]".to_owned()
        } else if nearest.is_empty() {
            format!("report one of: {}", list(known))
        } else {
            format!("use {nearest}, or report one of: {}", list(known))
        };

    /// The circle is complete: its votes and versions are final.
    CircleComplete { circle: String, state: String } = "CIRCLE_COMPLETE", Precondition,
        format!("{circle} is {state}: its votes and versions are final"),
        format!("take it up in the next phase, or put it before a person: countersign escalate {circle} TEXT");

    /// There is no text.
    EmptyText { what: String } = "EMPTY_TEXT", Malformed,
        format!("there is no {what}"),
        format!("give the {what}, or a file with it: --text-file FILE");

    /// There is no reason.
    ReasonRequired { verb: String } = "REASON_REQUIRED", Malformed,
        format!("to {verb} needs a reason"),
        "give one: --reason TEXT".to_owned();

    /// The objection is closed already.
    ObjectionClosed { objection: ObjectionId, how: String } = "OBJECTION_CLOSED", Precondition,
        format!("{objection} is closed: {how}"),
        "nothing is to be done; run: countersign status".to_owned();

    /// It is a note: it blocks nobody and isn't closed.
    NotAnObjection { objection: ObjectionId } = "NOT_AN_OBJECTION", Precondition,
        format!("{objection} is a note: it blocks nobody"),
        "nothing is to be done".to_owned();

    /// No newer version answers the objection.
    NothingChanged { objection: ObjectionId, version: u32 } = "NOTHING_CHANGED", Precondition,
        format!("no version has followed version {version}, to which {objection} was raised"),
        format!("wait for one, or run: countersign resolve {objection} --mistaken --reason TEXT");

    /// There is no version to withdraw.
    NothingToWithdraw { proposal: ProposalName, state: String } = "NOTHING_TO_WITHDRAW", Precondition,
        format!("{proposal} is {state}"),
        "propose a version first; to see what is owed, run: countersign status".to_owned();

    /// The reference isn't the circle's current one.
    StaleConfirm { given: CircleRef, current: CircleRef } = "STALE_CONFIRM", Conflict,
        format!("{given} is not what {} holds now: {current} is", current.circle),
        "look at what changed, and confirm what it shows; run: countersign status".to_owned();

    /// A rule denies the confirmation.
    ConfirmBlocked { rule: String, subject: String, message: String, command: String, who: Vec<MemberName> } = "CONFIRM_BLOCKED", Precondition,
        message.clone(),
        if command.is_empty() { format!("{} can", list(who)) } else { format!("{} can: {command}", list(who)) };

    /// A rule denies the version or the approval.
    RuleDenied { rule: String, subject: String, message: String, command: String, who: Vec<MemberName> } = "RULE_DENIED", Precondition,
        message.clone(),
        if command.is_empty() { format!("{} can", list(who)) } else { format!("{} can: {command}", list(who)) };

    /// The decision doesn't fit what the escalation asks.
    DecisionUnfit { escalation: String, decision: String, fitting: Vec<String> } = "DECISION_UNFIT", Precondition,
        format!("{decision} does not answer {escalation}"),
        format!("decide one of: {}", list(fitting));

    /// The decision can't be carried out.
    DecisionImpossible { escalation: String, decision: String, because: String } = "DECISION_IMPOSSIBLE", Precondition,
        format!("{escalation} can't be answered with {decision}: {because}"),
        "decide otherwise; run: countersign escalations list".to_owned();

    /// The member put this before a person already, who has not answered yet.
    EscalationOpen { escalation: String, subject: String, member: MemberName } = "ESCALATION_OPEN", Precondition,
        format!("{member} put {subject} before a person already: {escalation} waits for an answer"),
        "wait for the answer; run: countersign escalations list".to_owned();

    /// The escalation is answered or closed already.
    EscalationClosed { escalation: String, how: String } = "ESCALATION_CLOSED", Precondition,
        format!("{escalation} is {how}"),
        "nothing is to be done; run: countersign escalations list".to_owned();

    /// The message is no claim: there is nothing to check.
    NotAClaim { message: MessageId } = "NOT_A_CLAIM", Precondition,
        format!("{message} is no claim"),
        format!("answer it instead: countersign say --reply {message} TEXT");

    /// The member made this claim: another one checks it.
    OwnClaim { message: MessageId, member: MemberName } = "OWN_CLAIM", Forbidden,
        format!("{message} is {member}'s own claim"),
        format!("any other member can: countersign verdict {message} VERDICT TEXT");

    /// The member gave this verdict on this claim already.
    AlreadyJudged { message: MessageId, verdict: String } = "ALREADY_JUDGED", Precondition,
        format!("the verdict on {message} is {verdict} already"),
        format!("say what is new: countersign say --reply {message} TEXT");

    /// Not everybody watches everything that others do.
    NotAWatcher { member: MemberName } = "NOT_A_WATCHER", Precondition,
        format!("{member} may not watch everything: it is no referee, and the charter does not say watch = true"),
        "a person can, with watch = true for that member: countersign charter adopt FILE --reason TEXT".to_owned();

    /// Another listener of the same member took over.
    Superseded { member: MemberName } = "SUPERSEDED", Conflict,
        format!("another listener of {member} took over"),
        "leave it to the other listener; one of a member is enough".to_owned();

    /// The team is adopted by an operator only once; afterwards a person adopts revisions.
    NotAdopted { member: String } = "NOT_ADOPTED", Precondition,
        "the team has no charter yet".to_owned(),
        "the operator can: countersign team add --charter FILE".to_owned();

    /// The text is no charter: what is wrong with it, and where.
    CharterRefused { line: u32, column: u32, what: String, help: String } = "CHARTER_REFUSED", Malformed,
        format!("line {line}, column {column}: {what}"),
        if help.is_empty() { "mend the charter, then run: countersign charter check FILE".to_owned() } else { help.clone() };

    /// A rule that comes with the charter can't be put in force, or the charter names one that isn't there.
    RuleRefused { file: String, line: u32, column: u32, what: String, nearest: String } = "RULE_REFUSED", Malformed,
        if *line == 0 { format!("{file}: {what}") } else { format!("{file}, line {line}, column {column}: {what}") },
        if nearest.is_empty() {
            "mend it, then run: countersign rules test --charter FILE".to_owned()
        } else {
            format!("did you mean {nearest}? Mend it, then run: countersign rules test --charter FILE")
        };

    /// The charter is the one in force, with the same rules.
    UnchangedCharter { revision: u32 } = "UNCHANGED_CHARTER", Precondition,
        format!("this charter is in force, as revision {revision}"),
        "nothing is to be done; run: countersign charter show".to_owned();

    /// The team can't go on under this charter as it stands.
    CharterUnfit { line: u32, what: String } = "CHARTER_UNFIT", Precondition,
        format!("line {line}: {what}"),
        "change that line of the charter, then run: countersign charter adopt FILE --reason TEXT".to_owned();

    /// The same request id came with another body.
    RequestIdReused { request_id: String } = "REQUEST_ID_REUSED", Conflict,
        format!("request {request_id} was another command before"),
        "use a fresh request id for another command".to_owned();

    /// A protected ref is pushed to, or one that keeps a version.
    DirectPush { reference: String, deliverable: String } = "DIRECT_PUSH", Forbidden,
        if reference.starts_with("refs/countersign") {
            format!("{reference} is the server's own: it keeps what was proposed")
        } else {
            format!("{reference} moves only to what a completed circle holds")
        },
        format!("propose it instead; run: countersign propose {deliverable} --commit HEAD --summary TEXT");

    /// A staging ref is made otherwise than once, by the id of its commit.
    StagingRef { reference: String, because: String } = "STAGING_REF", Malformed,
        format!("{reference} can't be pushed like that: {because}"),
        "have it pushed by the command itself: countersign propose NAME --commit HEAD --summary TEXT".to_owned();

    /// No completed circle holds this commit, or not for that ref.
    NotCountersigned { commit: String, target: String, holder: String } = "NOT_COUNTERSIGNED", Precondition,
        format!("no completed circle holds commit {commit}{}", if target.is_empty() { String::new() } else { format!(" for {target}") }),
        if holder.is_empty() {
            "have it reviewed; run: countersign propose NAME --commit HEAD --summary TEXT".to_owned()
        } else {
            format!("see what {holder} still lacks, or where it went: countersign explain {holder}")
        };

    /// The commit wasn't pushed for staging.
    NotStaged { commit: String } = "NOT_STAGED", Precondition,
        format!("commit {commit} is not in the repository's staging area"),
        format!("push it: git push origin {commit}:refs/countersign/staging/{commit}");

    /// The artifact is larger than a version may be.
    ArtifactTooLarge { what: String, found: u64, limit: u64 } = "ARTIFACT_TOO_LARGE", Malformed,
        format!("the version has {found} {what}; the limit is {limit}"),
        "split the work into smaller proposals".to_owned();

    /// A bundle holds a path that can't be laid out safely everywhere.
    PathUnsafe { path: String, because: String } = "PATH_UNSAFE", Malformed,
        format!("{path}: {because}"),
        "rename it, or leave it out".to_owned();

    /// The artifact is of the kind that this team doesn't use.
    ArtifactKindUnfit { given: String, wanted: String } = "ARTIFACT_KIND_UNFIT", Malformed,
        format!("this team's versions are {wanted}s, not {given}s"),
        if wanted == "commit" { "give --commit REV".to_owned() } else { "give --path DIR".to_owned() };
}

impl Violation {
    /// The rule that denies, where it is one.
    pub fn rule(&self) -> Option<&str> {
        match self {
            Self::ConfirmBlocked { rule, .. } | Self::RuleDenied { rule, .. } => Some(rule),
            _ => None,
        }
    }
}

/// The protocol's no, whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejection {
    violations: Vec<Violation>,
}

impl Rejection {
    /// From every unmet condition, in order of precedence; none where there is none.
    pub fn of(violations: Vec<Violation>) -> Option<Self> {
        #[cfg(feature = "planted")]
        let violations = super::planted::left(violations);
        if violations.is_empty() { None } else { Some(Self { violations }) }
    }

    /// Every unmet condition; at least one.
    pub fn violations(&self) -> &[Violation] {
        &self.violations
    }

    /// The first unmet condition.
    pub fn first(&self) -> &Violation {
        &self.violations[0]
    }

    /// The first unmet condition's code.
    pub fn code(&self) -> &'static str {
        self.first().code()
    }
}

impl From<Violation> for Rejection {
    fn from(violation: Violation) -> Self {
        Self { violations: vec![violation] }
    }
}

impl From<Vec<Violation>> for Rejection {
    /// # Panics
    /// When there is no violation.
    fn from(violations: Vec<Violation>) -> Self {
        assert!(!violations.is_empty(), "a rejection has a cause");
        Self { violations }
    }
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code(), self.first())
    }
}

impl std::error::Error for Rejection {}

/// `a`, `a and b`, `a, b and c`.
pub fn list<T: fmt::Display>(items: &[T]) -> String {
    match items {
        [] => "nobody".to_owned(),
        [one] => one.to_string(),
        [before @ .., last] => {
            let before: Vec<String> = before.iter().map(ToString::to_string).collect();
            format!("{} and {last}", before.join(", "))
        }
    }
}

/// So many of something: `1 round`, `2 rounds`.
pub fn counted(count: u64, what: &str) -> String {
    match count {
        1 => format!("1 {what}"),
        count => format!("{count} {what}s"),
    }
}

/// The first few, and how many more.
fn some(items: &[String]) -> String {
    const SHOWN: usize = 5;
    if items.len() <= SHOWN {
        return list(items);
    }
    format!("{} and {} more", items[..SHOWN].join(", "), items.len() - SHOWN)
}

/// A text as one word of a POSIX shell.
pub fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@=,%+".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

macro_rules! text_facts {
    ($($type:ty),*) => {$(
        impl From<&$type> for Fact {
            fn from(value: &$type) -> Self {
                Self::Text(value.to_string())
            }
        }
    )*};
}

text_facts!(String, ProposalName, MemberName, MessageId, PhaseName, ObjectionId, VersionRef, CircleRef, Time);

impl From<&u32> for Fact {
    fn from(value: &u32) -> Self {
        Self::Number((*value).into())
    }
}

impl From<&u64> for Fact {
    fn from(value: &u64) -> Self {
        Self::Number(i64::try_from(*value).unwrap_or(i64::MAX))
    }
}

impl<T: fmt::Display> From<&Vec<T>> for Fact {
    fn from(values: &Vec<T>) -> Self {
        Self::Texts(values.iter().map(ToString::to_string).collect())
    }
}
