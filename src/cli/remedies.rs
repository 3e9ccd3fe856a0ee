//! Every command that a remedy of the rejection table names is one of this command line.

use std::collections::BTreeSet;

use clap::Parser;

use super::Cli;
use crate::protocol::rejection::Violation;
use crate::protocol::time::Time;

/// One refusal of each code, and a second one where its remedy depends on what is unmet.
fn refusals() -> Vec<Violation> {
    use Violation as V;
    fn of<T: std::str::FromStr<Err: std::fmt::Debug>>(text: &str) -> T {
        text.parse().expect("it is written as its form asks")
    }
    let text = str::to_owned;
    let version = || of("parser@2:41d0c9aa1e53");
    let circle = || of("implement:3fa91c20d8e7");
    let propose = "countersign propose parser --commit HEAD --summary TEXT --answer o1=TEXT";
    let approve =
        "countersign approve parser@2:41d0c9aa1e53 --resolve o1 --ran 'cargo test' --exit 0 --output @FILE";
    let blocked = |command: &str| V::ConfirmBlocked {
        rule: text("confirm/approval-missing"),
        subject: text("parser@2"),
        message: text("sec has not approved it"),
        command: text(command),
        who: vec![of("sec")],
    };
    let producer = |verb: &str| V::NotProducer {
        proposal: of("parser"),
        producer: text("app"),
        member: text("sec"),
        verb: text(verb),
        reviewed: Vec::new(),
    };
    let conflict = |current| V::VersionConflict {
        proposal: of("parser"),
        after: 3,
        current,
        current_ref: text("parser@2:41d0c9aa1e53"),
    };
    let unknown_check =
        |known, nearest: &str| V::UnknownCheck { check: text("c"), known, nearest: text(nearest) };
    let held =
        |on_this_version| V::ObjectionHeld { held: vec![of("o1")], on_this_version, approval: text(approve) };
    let kind = |given: &str, wanted: &str| V::ArtifactKindUnfit { given: text(given), wanted: text(wanted) };
    vec![
        V::Malformed {
            argument: text("ref"),
            expected: text("a reference"),
            given: text("x"),
            form: text("NAME@VERSION"),
        },
        V::TextTooLarge { what: text("reason"), bytes: 1, limit: 1 },
        V::UnknownSubject { subject: text("parsr"), nearest: text("parser") },
        V::UnknownSubject { subject: text("x"), nearest: text("") },
        producer("propose"),
        producer("withdraw"),
        V::NotReviewer { proposal: of("parser"), member: text("dana"), reviewers: vec![of("sec")] },
        V::NotObjector { objection: of("o1"), by: of("sec"), member: text("arch") },
        V::NotAPerson { verb: text("overrule"), member: text("app"), persons: vec![of("dana")] },
        V::NotParticipant { circle: text("implement"), member: text("dana"), participants: vec![of("app")] },
        V::OwnWork { reference: text("parser@2"), member: of("app"), because: text("app proposed it") },
        V::PhaseClosed { phase: of("implement"), state: text("pending") },
        V::PhaseClosed { phase: of("implement"), state: text("published") },
        V::EmptyProposal { proposal: of("parser") },
        V::UnchangedProposal { proposal: of("parser"), same_as: version(), objections: vec![] },
        V::OutsideOwnership { proposal: of("parser"), paths: vec![text("src/a")], owners: vec![of("sec")] },
        conflict(0),
        conflict(2),
        V::UnreadObjections { proposal: of("parser"), unread: vec![of("o1")], by: vec![of("sec")] },
        V::UnansweredObjections {
            proposal: of("parser"),
            unanswered: vec![of("o1")],
            command: text(propose),
        },
        V::CooldownActive { proposal: of("parser"), until: Time(0) },
        V::RuleDenied {
            rule: text("propose/names-a-ticket"),
            subject: text("parser@2"),
            message: text("no ticket is named"),
            command: text(propose),
            who: vec![of("app")],
        },
        V::RuleRefused {
            file: text("confirm/no-friday.toml"),
            line: 3,
            column: 1,
            what: text("unknown word"),
            nearest: text(""),
        },
        V::RoundLimit { proposal: of("parser"), rounds: 1, limit: 1, escalation: text("e1") },
        V::FlipLimit { proposal: of("parser"), flips: 1, limit: 1, escalation: text("e1") },
        V::VoteLimit { reference: version(), changes: 1, limit: 1, escalation: text("e1") },
        V::NoteLimit { reference: version(), notes: 1, limit: 1 },
        V::StaleVersion { given: version(), current: version() },
        V::DigestMismatch { given: version(), actual: version() },
        V::UnreadVersion { reference: version(), member: of("sec") },
        V::Withdrawn { reference: version(), by: of("app") },
        held(vec![]),
        held(vec![of("o1")]),
        V::FailingTest {
            reference: version(),
            objection: of("o1"),
            command: text("cargo test"),
            approval: text(approve),
        },
        V::PlaceUnknown { reference: version(), places: vec![text("src/a:1")] },
        unknown_check(vec![], ""),
        unknown_check(vec![text("ci")], "ci"),
        V::CircleComplete { circle: text("implement"), state: text("published") },
        V::EmptyText { what: text("text") },
        V::ReasonRequired { verb: text("withdraw") },
        V::ObjectionClosed { objection: of("o1"), how: text("resolved") },
        V::NotAnObjection { objection: of("o1") },
        V::NothingChanged { objection: of("o1"), version: 1 },
        V::NothingToWithdraw { proposal: of("parser"), state: text("to-deliver") },
        V::StaleConfirm { given: circle(), current: circle() },
        blocked("countersign show parser@2:41d0c9aa1e53"),
        blocked("countersign check report parser@2:41d0c9aa1e53 ci --exit N --output @FILE"),
        blocked("countersign approve parser@2:41d0c9aa1e53 --checked PLACE --ran CMD"),
        blocked(""),
        V::DecisionUnfit {
            escalation: text("e1"),
            decision: text("extend"),
            fitting: vec![text("raise-limit")],
        },
        V::DecisionImpossible {
            escalation: text("e1"),
            decision: text("excuse"),
            because: text("sec is the only reviewer"),
        },
        V::EscalationOpen { escalation: text("e1"), subject: text("parser"), member: of("sec") },
        V::EscalationClosed { escalation: text("e1"), how: text("answered") },
        V::UnknownMember { member: text("secc"), nearest: text("sec"), members: vec![of("sec")] },
        V::UnknownMember { member: text("x"), nearest: text(""), members: vec![of("sec")] },
        V::MemberLeft { member: text("sec"), revision: 2, members: vec![of("arch")] },
        V::NotAClaim { message: of("m1") },
        V::OwnClaim { message: of("m1"), member: of("sec") },
        V::AlreadyJudged { message: of("m1"), verdict: text("supported") },
        V::NotAWatcher { member: of("sec") },
        V::Superseded { member: of("sec") },
        V::NotAdopted { member: text("dana") },
        V::CharterRefused { line: 1, column: 1, what: text("not TOML"), help: text("") },
        V::UnchangedCharter { revision: 1 },
        V::SecretFound { what: text("reason"), kind: text("a GitHub token"), line: 1 },
        V::CharterUnfit { line: 1, what: text("the team keeps its name") },
        V::RequestIdReused { request_id: text("0193a5c8-0000-7000-8000-000000000000") },
        V::DirectPush { reference: text("refs/heads/main"), deliverable: text("parser") },
        V::DirectPush { reference: text("refs/countersign/parser/1"), deliverable: text("NAME") },
        V::StagingRef { reference: text("refs/countersign/staging/x"), because: text("it is none") },
        V::NotCountersigned { commit: text("41d0c9aa1e53"), target: text(""), holder: text("") },
        V::NotCountersigned { commit: text("41d0"), target: text("refs/heads/main"), holder: text("parser") },
        V::NotStaged { commit: text("41d0c9aa1e53") },
        V::ArtifactTooLarge { what: text("files"), found: 2, limit: 1 },
        V::PathUnsafe { path: text("a"), because: text("it leads out") },
        V::NameUnusable { proposal: of("parser"), because: text("another phase uses it") },
        V::DeliverableDropped { proposal: of("parser"), by: of("dana"), reason: text("it is not needed") },
        V::UnknownCheck { check: text("c"), known: vec![text("ci")], nearest: text("ci") },
        kind("bundle", "commit"),
        kind("commit", "bundle"),
    ]
}

#[test]
fn every_code_is_among_the_refusals() {
    let seen: BTreeSet<&str> = refusals().iter().map(Violation::code).collect();
    let all: BTreeSet<&str> = Violation::CODES.iter().map(|(code, _)| *code).collect();
    assert_eq!(seen, all);
}

/// Clap refuses a command that lacks what it needs or has what it doesn't know.
#[test]
fn every_command_of_a_remedy_parses_once_its_placeholders_are_filled_in() {
    let mut commands = 0;
    for refusal in refusals() {
        let (code, remedy) = (refusal.code(), refusal.remedy());
        assert!(!remedy.contains('…') && !remedy.contains("..."), "{code}: {remedy}");
        for (at, _) in remedy.match_indices("countersign ").filter(|(at, _)| !remedy[..*at].ends_with('/')) {
            assert!(remedy[..at].ends_with(": "), "{code}: a command stands behind a colon: {remedy}");
            let command = &remedy[at..];
            assert!(!command.contains(';'), "{code}: a command is the last of its remedy: {remedy}");
            let filled = command.replace("TEXT", "words").replace("FILE", "run.txt").replace("DIR", "work");
            let filled = filled.replace("VERDICT", "refuted");
            let filled = filled.replace("--exit N", "--exit 0");
            let words = words(&filled);
            if let Err(refused) = Cli::try_parse_from(&words) {
                panic!("{code}: {command}\n{refused}");
            }
            commands += 1;
        }
    }
    assert!(commands > 20, "{commands}");
}

/// The words of a command as a shell would take them; of quotes, the single ones.
fn words(command: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quoted = false;
    for c in command.chars() {
        match c {
            '\'' => quoted = !quoted,
            ' ' if !quoted => words.push(String::new()),
            c => words.last_mut().expect("there is a first word").push(c),
        }
    }
    words
}
