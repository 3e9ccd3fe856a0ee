//! The stored form of each event, pinned: a log that was written stays readable for ever.
//!
//! A snapshot here never changes. A new form gets the next number, a case of its own, and the old case
//! still decodes.

// clippy.toml allows it in tests, but takes only functions marked as tests for such.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;

use countersign::protocol::artifact::{Artifact, ArtifactKind, Identity, RepoPath};
use countersign::protocol::deadline::ServerResumed;
use countersign::protocol::delivery::{Delivered, OwedAgain, Woken};
use countersign::protocol::escalation::{
    Cause, Decision, Escalated, EscalationClosed, EscalationReminded, EscalationSent, MovedRef, RefPutBack,
    WaitingOn,
};
use countersign::protocol::event::Unreadable;
use countersign::protocol::name::{Digest, Lens, MemberName, ProposalName, Seq};
use countersign::protocol::recovery::{Patch, RecoveryFired};
use countersign::protocol::referee::CalledOut;
use countersign::protocol::review::{
    Approved, CheckReported, CircleCompleted, CirclePublished, CircleReopened, Closing, CompletedEntry,
    Confirmed, Conflict, CountedApproval, DeliverableDropped, DissentCalled, Noted, Objected,
    ObjectionClosed, ObjectionsRead, PhaseClosed, Proposed, PublishedMerge, PublishedRef, ReviewerExcused,
    ReviewerReplaced, Run, TargetMoved, Undone, VersionRead, Withdrawn,
};
use countersign::protocol::room::{ClaimJudged, Evidence, Said, Verdict};
use countersign::protocol::rule::OwnRule;
use countersign::protocol::{Answer, CharterAdopted, Event, ObligationKind, PhaseOpened, charter};

fn parser() -> ProposalName {
    "parser".parse().unwrap()
}

fn member(name: &str) -> MemberName {
    name.parse().unwrap()
}

fn lenses() -> Vec<Lens> {
    vec!["security".parse().unwrap()]
}

fn digest(digit: &str) -> Digest {
    digit.repeat(64).parse().unwrap()
}

fn run() -> Run {
    Run { command: "cargo test".to_owned(), exit: Some(0), output: Some("ok\n".to_owned()) }
}

/// Every event, with all that it can hold and with as little as it can hold.
fn every_event() -> Vec<Event> {
    let text = include_str!("plays/charters/solo.toml");
    let commit: Digest = "1".repeat(40).parse().unwrap();
    let artifact = |kind, base| Artifact {
        kind,
        digest: commit.clone(),
        content: "2".repeat(40).parse().unwrap(),
        base,
    };
    let author = Identity { email: "app@example.org".to_owned(), name: "App \u{202e}".to_owned() };
    let proposed = Proposed {
        proposal: parser(),
        version: 2,
        producer: member("app"),
        artifact: artifact(ArtifactKind::Commit, Some("3".repeat(40).parse().unwrap())),
        summary: "Streaming \"parser\"\n".to_owned(),
        answers: [("o1".parse().unwrap(), "moved it".to_owned())].into(),
        paths: vec![RepoPath::from_bytes(b"src/\xff.rs")],
        authors: vec![author],
        round: true,
        ad_hoc: None,
        files: Vec::new(),
        follows: Vec::new(),
    };
    let bare = Proposed {
        artifact: artifact(ArtifactKind::Bundle, None),
        answers: Default::default(),
        paths: Vec::new(),
        authors: Vec::new(),
        round: false,
        ..proposed.clone()
    };
    let approved = Approved {
        proposal: parser(),
        version: 2,
        by: member("sec"),
        lenses: lenses(),
        checked: vec!["src/lexer.rs:80-140".parse().unwrap()],
        ran: vec![run()],
    };
    let objected = Objected {
        id: "o1".parse().unwrap(),
        proposal: parser(),
        version: 1,
        by: member("sec"),
        lenses: lenses(),
        text: "overflows".to_owned(),
        at: vec!["src/lexer.rs:112".parse().unwrap()],
        failing_test: Some(Run { exit: None, output: None, ..run() }),
    };
    let noted = Noted {
        id: "o2".parse().unwrap(),
        proposal: parser(),
        version: 1,
        by: member("arch"),
        lenses: lenses(),
        text: "a nicer name?".to_owned(),
        at: vec!["src/lexer.rs".parse().unwrap()],
    };
    let closed = |how, reason: Option<&str>| ObjectionClosed {
        id: "o1".parse().unwrap(),
        proposal: parser(),
        by: member("sec"),
        how,
        version: 2,
        reason: reason.map(str::to_owned),
    };
    let counted = |by: &str, overruled| CountedApproval {
        by: member(by),
        lens: "security".parse().unwrap(),
        version: 2,
        overruled,
    };
    let entry = CompletedEntry {
        proposal: parser(),
        version: 2,
        digest: commit.clone(),
        approvals: vec![counted("sec", false), counted("arch", true)],
        target: Some("refs/heads/main".to_owned()),
    };
    let circle = || "implement".parse().unwrap();
    let escalated = Escalated {
        id: "e1".parse().unwrap(),
        proposal: Some(parser()),
        member: Some(member("sec")),
        ..Escalated::new(Cause::RoundLimit, "parser", "both sides' words".to_owned())
    };
    let said = Said {
        id: "m2".parse().unwrap(),
        by: member("sec"),
        text: "@app it never allocates\n".to_owned(),
        mentions: vec![member("app")],
        about: Some("parser@1".to_owned()),
        reply: Some("m1".parse().unwrap()),
        claim: Some(Evidence { at: vec!["src/lexer.rs:80-140".parse().unwrap()], ran: vec![run()] }),
        root: "m1".parse().unwrap(),
        length: 2,
        ended: false,
    };
    let judged = ClaimJudged {
        message: "m2".parse().unwrap(),
        by: member("app"),
        verdict: Verdict::Refuted,
        text: Some("it does in line 112".to_owned()),
        at: vec!["src/lexer.rs:112".parse().unwrap()],
        ran: vec![run()],
    };
    let overdue = Escalated {
        id: "e1".parse().unwrap(),
        circle: Some(circle()),
        obligation: Some("confirm:implement:3fa91c20d8e7".to_owned()),
        member: Some(member("sec")),
        waiting_on: vec![WaitingOn {
            member: member("sec"),
            kind: ObligationKind::Confirm,
            subject: "implement:3fa91c20d8e7".to_owned(),
            since: "2026-01-01T09:00:00Z".parse().unwrap(),
        }],
        ..Escalated::new(Cause::Overdue, "implement:3fa91c20d8e7", "sec owes".to_owned())
    };
    let reported = CheckReported {
        proposal: parser(),
        version: 2,
        name: "ci".to_owned(),
        exit: Some(0),
        output: Some("ok\n".to_owned()),
        by: member("app"),
    };
    let published = CirclePublished {
        circle: circle(),
        manifest: digest("b"),
        refs: vec![PublishedRef {
            name: "refs/heads/main".to_owned(),
            from: Some("1".repeat(40).parse().unwrap()),
            to: "4".repeat(40).parse().unwrap(),
            merges: vec![PublishedMerge {
                commit: "4".repeat(40).parse().unwrap(),
                version: "parser@2:333333333333".parse().unwrap(),
            }],
        }],
        check: Some(Run { command: "make test".to_owned(), exit: Some(0), output: Some("ok\n".to_owned()) }),
    };
    let reopened = CircleReopened {
        circle: circle(),
        because: "it conflicts".to_owned(),
        owing: vec![parser()],
        check: Some(Run { command: "make test".to_owned(), exit: None, output: Some("…\n".to_owned()) }),
    };
    let astray = MovedRef {
        name: "refs/heads/main".to_owned(),
        from: Some("1".repeat(40).parse().unwrap()),
        to: None,
    };
    let answered = EscalationClosed {
        id: "e1".parse().unwrap(),
        by: Some(member("dana")),
        decision: Some(Decision::RaiseLimit),
        reason: "one more".to_owned(),
    };
    let moved = TargetMoved {
        target: "refs/heads/main".to_owned(),
        commit: Some(commit.clone()),
        reference: "parser@2:41d0c9aa1e53".parse().unwrap(),
        empty: false,
        undone: Some(Undone {
            files: vec![RepoPath::from_bytes(b"src/\xff.rs")],
            files_total: 2,
            commits: vec![commit.clone()],
            commits_total: 1,
        }),
        conflict: Some(Conflict {
            with: vec!["lexer@1:7d049f3c2a1b".parse().unwrap()],
            paths: vec![RepoPath::from_bytes(b"src/lexer.rs")],
            paths_total: 1,
            not_forward: false,
        }),
    };
    let not_forward = Conflict { with: Vec::new(), paths: Vec::new(), paths_total: 0, not_forward: true };
    let ad_hoc = Proposed {
        ad_hoc: Some("build".parse().unwrap()),
        files: vec![digest("d")],
        follows: vec!["lexer".parse().unwrap()],
        ..bare.clone()
    };
    vec![
        CharterAdopted {
            revision: 1,
            digest: digest("a"),
            reason: None,
            text: text.to_owned(),
            charter: charter::parse("charter.toml", text).unwrap(),
            rules: Vec::new(),
        }
        .into(),
        CharterAdopted {
            revision: 2,
            digest: digest("a"),
            reason: Some("no merges on Fridays".into()),
            text: text.to_owned(),
            charter: charter::parse("charter.toml", text).unwrap(),
            rules: vec![OwnRule { id: "confirm/no-friday".into(), text: "title = \"…\"\n".into() }],
        }
        .into(),
        PhaseOpened { phase: "implement".parse().unwrap() }.into(),
        proposed.into(),
        bare.into(),
        ad_hoc.into(),
        VersionRead { proposal: parser(), version: 2, by: member("sec") }.into(),
        ObjectionsRead { proposal: parser(), by: member("app"), objections: vec!["o1".parse().unwrap()] }
            .into(),
        approved.clone().into(),
        Approved { checked: Vec::new(), ran: Vec::new(), ..approved }.into(),
        objected.clone().into(),
        Objected { at: Vec::new(), failing_test: None, ..objected }.into(),
        noted.into(),
        closed(Closing::Resolved, None).into(),
        closed(Closing::Mistaken, Some("read the wrong file")).into(),
        closed(Closing::Overruled, Some("we ship")).into(),
        Withdrawn { proposal: parser(), version: 2, by: member("app"), reason: "one more look".to_owned() }
            .into(),
        Confirmed { circle: circle(), manifest: digest("b"), by: member("arch") }.into(),
        CalledOut {
            rule: "text/number-without-method".into(),
            by: member("app"),
            what: "summary".into(),
            subject: "parser@1".into(),
            says: "40 %: a number".into(),
        }
        .into(),
        moved.clone().into(),
        TargetMoved { commit: None, empty: true, undone: None, conflict: None, ..moved.clone() }.into(),
        TargetMoved { undone: None, conflict: Some(not_forward), ..moved }.into(),
        DissentCalled { circle: circle(), manifest: digest("b"), proposals: vec![parser()] }.into(),
        reported.clone().into(),
        CheckReported { exit: None, output: None, ..reported }.into(),
        CircleCompleted { circle: circle(), manifest: digest("b"), entries: vec![entry] }.into(),
        published.clone().into(),
        CirclePublished { refs: Vec::new(), check: None, ..published }.into(),
        reopened.clone().into(),
        CircleReopened { check: None, ..reopened }.into(),
        escalated.clone().into(),
        Escalated { cause: Cause::Asked, proposal: None, member: None, ..escalated }.into(),
        answered.clone().into(),
        EscalationClosed { by: None, decision: None, ..answered }.into(),
        ReviewerReplaced {
            proposal: parser(),
            reviewer: member("sec"),
            stand_in: member("arch"),
            by: member("dana"),
        }
        .into(),
        ReviewerExcused { proposal: parser(), reviewer: member("sec"), by: member("dana") }.into(),
        PhaseClosed { phase: "implement".parse().unwrap(), by: member("dana"), reason: "we ship".to_owned() }
            .into(),
        DeliverableDropped { proposal: parser(), by: member("dana"), reason: "not needed".to_owned() }.into(),
        overdue.into(),
        EscalationReminded { id: "e1".parse().unwrap(), level: 1 }.into(),
        Delivered {
            member: member("sec"),
            wake: "w3".parse().unwrap(),
            obligations: vec!["review:parser@2".to_owned()],
            earlier: vec!["confirm:implement:3fa91c20d8e7".to_owned()],
            watched: Some(Seq(17)),
        }
        .into(),
        Delivered {
            member: member("sec"),
            wake: "w1".parse().unwrap(),
            obligations: Vec::new(),
            earlier: Vec::new(),
            watched: None,
        }
        .into(),
        OwedAgain { member: member("sec"), obligations: vec!["review:parser@2".to_owned()] }.into(),
        Woken {
            member: member("sec"),
            wake: "w1".parse().unwrap(),
            obligations: vec!["review:parser@2".to_owned()],
        }
        .into(),
        EscalationSent { id: "e1".parse().unwrap(), level: 0, channel: "ops".to_owned() }.into(),
        said.clone().into(),
        Said { mentions: Vec::new(), about: None, reply: None, claim: None, ended: true, ..said }.into(),
        judged.clone().into(),
        ClaimJudged { verdict: Verdict::Unverifiable, text: None, at: Vec::new(), ran: Vec::new(), ..judged }
            .into(),
        RefPutBack {
            escalation: "e1".parse().unwrap(),
            name: "refs/heads/main".to_owned(),
            because: Some("it was moved on meanwhile".to_owned()),
        }
        .into(),
        Escalated {
            id: "e1".parse().unwrap(),
            moved: Some(astray),
            ..Escalated::new(Cause::MovedRef, "refs/heads/main", "moved".to_owned())
        }
        .into(),
        RecoveryFired {
            patch: Patch::DropStaleApproval,
            subject: "implement".to_owned(),
            found: "it counted parser@1".to_owned(),
        }
        .into(),
        ServerResumed {
            from: "2026-01-01T09:00:00Z".parse().unwrap(),
            to: "2026-01-01T10:00:00Z".parse().unwrap(),
        }
        .into(),
    ]
}

#[test]
fn the_stored_form_of_each_event_is_pinned() {
    let mut pinned = String::new();
    for event in every_event() {
        let mut body = event.encode();
        if let Event::CharterAdopted(_) = event {
            // The text stands whole beside what it was read as; the latter is what has a form.
            let mut json: serde_json::Value = serde_json::from_str(&body).unwrap();
            json["text"] = "…".into();
            body = json.to_string();
        }
        pinned.push_str(&format!("{} {}\n{body}\n\n", event.kind(), event.schema()));
    }
    insta::assert_snapshot!(pinned);
}

#[test]
fn each_event_reads_back_as_it_was_written() {
    for event in every_event() {
        let read = Event::decode(event.kind(), event.schema(), &event.encode()).unwrap();
        assert_eq!(read, event);
        assert_eq!(read.encode(), event.encode());
    }
    let pinned: BTreeSet<&str> = every_event().iter().map(Event::kind).collect();
    let known: BTreeSet<&str> = Event::KINDS.iter().map(|(kind, _)| *kind).collect();
    assert_eq!(pinned, known, "every event is pinned");
}

#[test]
fn an_event_that_this_version_does_not_know_is_refused_by_name() {
    let unknown = Event::decode("teleported", 1, "{}");
    assert!(matches!(unknown, Err(Unreadable::Unknown { kind, schema: 1 }) if kind == "teleported"));
    let newer = Event::decode("withdrawn", 2, "{}");
    assert!(matches!(newer, Err(Unreadable::Unknown { schema: 2, .. })));
    let torn = Event::decode("withdrawn", 1, "{\"proposal\":");
    assert!(matches!(torn, Err(Unreadable::Form { .. })));
}

#[test]
fn the_stored_form_of_each_answer_is_pinned() {
    let reference: countersign::protocol::name::VersionRef = "parser@2:41d0c9aa1e53".parse().unwrap();
    let answers = [
        Answer::Adopted { revision: 1 },
        Answer::Proposed {
            reference: reference.clone(),
            digest: digest("a"),
            escalated: vec!["e1".parse().unwrap()],
        },
        Answer::Read { reference: reference.clone() },
        Answer::ObjectionsRead { proposal: parser() },
        Answer::Approved { reference: reference.clone(), resolved: vec!["o1".parse().unwrap()] },
        Answer::Raised { objection: "o1".parse().unwrap(), reference },
        Answer::ObjectionClosed { objection: "o1".parse().unwrap() },
        Answer::Withdrawn {
            cooldown_until: "2026-01-01T09:00:00Z".parse().unwrap(),
            flips: 1,
            flips_left: 1,
        },
        Answer::Confirmed {
            circle: "implement:3fa91c20d8e7".parse().unwrap(),
            complete: false,
            waiting_for: vec![member("sec")],
        },
        Answer::CheckReported {
            reference: "parser@2:41d0c9aa1e53".parse().unwrap(),
            name: "ci".to_owned(),
            exit: Some(0),
        },
        Answer::Escalated { escalation: "e1".parse().unwrap() },
        Answer::EscalationAnswered { escalation: "e1".parse().unwrap() },
        Answer::Said {
            message: "m9".parse().unwrap(),
            mentions: vec![member("sec")],
            root: "m1".parse().unwrap(),
            length: 9,
            ended: true,
            escalation: Some("e1".parse().unwrap()),
        },
        Answer::Said {
            message: "m1".parse().unwrap(),
            mentions: Vec::new(),
            root: "m1".parse().unwrap(),
            length: 1,
            ended: false,
            escalation: None,
        },
        Answer::ClaimJudged { message: "m1".parse().unwrap(), verdict: Verdict::Supported },
        Answer::Recorded,
    ];
    let lines: Vec<String> = answers.iter().map(|answer| serde_json::to_string(answer).unwrap()).collect();
    for (line, answer) in lines.iter().zip(&answers) {
        assert_eq!(serde_json::from_str::<Answer>(line).unwrap(), *answer);
    }
    insta::assert_snapshot!(lines.join("\n"));
}
