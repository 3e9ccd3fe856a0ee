//! A team whose versions are bundles, from the first offer to the published circle.

use countersign::wire::proto;
use proto::{CircleState, ObjectionStatus, ProposalState, RequirementState};

use crate::site::{Site, content_piece, head, refused};

#[tokio::test]
async fn from_the_first_offer_to_the_published_circle() {
    let mut site = Site::bundles().await;
    let (mut app, mut sec, mut arch) = (site.member("app"), site.member("sec"), site.member("arch"));

    let status = app.status().await;
    assert_eq!((status.team.as_str(), status.member.as_str()), ("atlas", "app"));
    assert_eq!(status.proposals[0].state(), ProposalState::ToDeliver);
    assert_eq!(status.obligations[0].kind, "deliver");

    let first = app.offer("fn parse() {}\n", 0, &[]).await;
    let unread = sec.approve(&first).await;
    assert_eq!(refused(unread).0, "UNREAD_VERSION");

    let shown = sec.show("parser").await;
    let version = shown.version.unwrap();
    assert_eq!((version.reference.as_str(), version.current), (first.as_str(), true));
    assert_eq!((shown.files[0].path.as_str(), shown.files[0].added_lines), ("src/parser.rs", 1));
    assert!(version.reviewers.iter().any(|reviewer| reviewer.member == "sec" && reviewer.read));

    let place = |line| format!("src/parser.rs:{line}");
    let object = |at: String| proto::ObjectRequest {
        reference: first.clone(),
        text: "overflows".to_owned(),
        at: vec![at],
        failing_test: Some(proto::Run {
            command: "cargo test huge".to_owned(),
            exit: Some(101),
            output: Some("boom".to_owned()),
        }),
        ..Default::default()
    };
    assert_eq!(refused(sec.review.object(object(place(2))).await).0, "PLACE_UNKNOWN");
    let objected = sec.review.object(object(place(1))).await.unwrap().into_inner();
    assert_eq!((objected.objection.as_str(), objected.woke[0].member.as_str()), ("o1", "app"));

    let mut revision = app.offering("fn parse() { checked() }\n", 1, &[("o1", "checked add")]).await;
    assert_eq!(refused(app.review.propose(revision.clone()).await).0, "UNREAD_OBJECTIONS");
    let read = app.objections().await;
    assert_eq!((read[0].text.as_str(), read[0].at.as_slice()), ("overflows", &[place(1)][..]));
    assert_eq!(read[0].failing_test.as_ref().unwrap().output.as_deref(), Some("boom"));
    revision.summary = "Checked".to_owned();
    let second = app.review.propose(revision).await.unwrap().into_inner().reference;

    let diff = |from| proto::DiffRequest { subject: "parser@2".to_owned(), from, ..Default::default() };
    assert_eq!(refused(arch.review.diff(diff(1)).await).0, "UNREAD_VERSION");
    assert_eq!(refused(arch.review.diff(diff(7)).await).0, "UNKNOWN_SUBJECT");
    let shown = sec.review.diff(diff(1)).await.unwrap().into_inner();
    assert_eq!((shown.reference.as_str(), shown.truncated), (second.as_str(), false));
    assert!(shown.text.contains("+fn parse() { checked() }"), "{}", shown.text);

    let approve = proto::ApproveRequest {
        reference: second.clone(),
        checked: vec![place(1)],
        ran: vec![proto::Run {
            command: "cargo test huge".to_owned(),
            exit: Some(0),
            output: Some("ok".to_owned()),
        }],
        resolve: vec!["o1".to_owned()],
        ..Default::default()
    };
    sec.review.approve(approve).await.unwrap();
    arch.show("parser@2").await;
    arch.approve(&second).await.unwrap();

    let explain = |name: &str| proto::ExplainRequest { name: name.to_owned() };
    let explained = app.review.explain(explain("parser")).await.unwrap().into_inner();
    let open: Vec<_> = explained
        .requirements
        .iter()
        .filter(|one| one.state() == RequirementState::Unsatisfied && one.mode == "enforce")
        .collect();
    assert!(!explained.requirements.is_empty() && open.is_empty(), "{open:#?}");
    assert_eq!(refused(app.review.explain(explain("parsr")).await).0, "UNKNOWN_SUBJECT");

    let circle = app.status().await.circles[0].reference.clone();
    assert_eq!(circle, explained.circle);
    for (member, left) in [(&mut app, 2), (&mut sec, 1)] {
        let confirmed = member.confirm(&circle).await.unwrap();
        assert_eq!((confirmed.complete, confirmed.waiting_for.len()), (false, left));
    }
    let completed = arch.confirm(&circle).await.unwrap();
    assert!(completed.complete && completed.waiting_for.is_empty());

    // The server publishes and reports it: the next phase opens.
    let published = app.status_at_least(completed.sequence + 2).await;
    assert_eq!(published.circles[0].state(), CircleState::Published);
    assert_eq!(
        published.proposals.iter().map(|one| one.name.as_str()).collect::<Vec<_>>(),
        ["parser", "changelog"]
    );
    assert_eq!(published.proposals[0].state(), ProposalState::Published);
    let closed = &app.show("parser").await.version.unwrap().objections[0];
    assert_eq!(
        (closed.status(), closed.answers[0].text.as_str()),
        (ObjectionStatus::Resolved, "checked add")
    );

    let before = app.status().await;
    site.restart().await;
    let mut app = site.member("app");
    assert_eq!(logged(app.status().await), logged(before), "the log says it all");
}

/// But for what is in memory alone: what was tried and refused, and who hears.
fn logged(status: proto::GetStatusResponse) -> proto::GetStatusResponse {
    let mut status = proto::GetStatusResponse { attempts: Vec::new(), ..status };
    for waiting in status.waiting.iter_mut().flat_map(|waiting| &mut waiting.waiting_for) {
        *waiting = proto::Waiting { presence: 0, present_since: None, ..waiting.clone() };
    }
    status
}

#[tokio::test]
async fn what_is_fetched_is_what_was_uploaded() {
    let site = Site::bundles().await;
    let (mut app, mut sec) = (site.member("app"), site.member("sec"));
    let big = vec![7_u8; 200_000];
    let files: [(&[u8], &[u8]); 3] =
        [(b"src/\xff.bin", &big), (b"src/empty", b""), (b"src/parser.rs", b"fn\r\n\0")];
    let uploaded = app.upload(&files).await.unwrap();
    assert_eq!((uploaded.files, uploaded.bytes), (3, 200_005));
    let request = proto::ProposeRequest {
        proposal: "parser".to_owned(),
        kind: proto::ArtifactKind::Bundle.into(),
        digest: uploaded.digest,
        ..Default::default()
    };
    let reference = app.review.propose(request).await.unwrap().into_inner().reference;

    let request = proto::FetchRequest { subject: "parser".to_owned(), ..Default::default() };
    let mut pieces = sec.artifact.fetch(request).await.unwrap().into_inner();
    let mut fetched: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
    let mut told = String::new();
    while let Some(piece) = pieces.message().await.unwrap() {
        match piece.piece.unwrap() {
            proto::fetch_response::Piece::Reference(reference) => told = reference,
            proto::fetch_response::Piece::Head(head) => fetched.push((head.path.to_vec(), Vec::new())),
            proto::fetch_response::Piece::Content(content) => fetched.last_mut().unwrap().1.extend(content),
        }
    }
    assert_eq!(told, reference);
    // In the order of the paths' bytes.
    let expected: Vec<(Vec<u8>, Vec<u8>)> =
        [1, 2, 0].map(|index: usize| (files[index].0.to_vec(), files[index].1.to_vec())).into();
    assert_eq!(fetched, expected);
    // Who fetched it has read it.
    sec.approve(&reference).await.unwrap();
}

#[tokio::test]
async fn uploads_that_stand_still_are_one_members_own_affair() {
    let site = Site::bundles().await;
    let mut idle = tokio::task::JoinSet::new();
    for _ in 0..5 {
        let mut app = site.member("app");
        idle.spawn(async move { app.artifact.upload_bundle(tokio_stream::pending()).await });
    }
    // Four have their places, in whatever order they came.
    let fifth = idle.join_next().await.unwrap().unwrap();
    assert_eq!(refused(fifth).0, "TRANSFERS_MAX");
    assert!(site.member("sec").upload(&[(b"a", b"x")]).await.is_ok());
    assert_eq!(idle.len(), 4);
}

#[tokio::test]
async fn a_bundle_that_cannot_be_taken_is_refused_by_its_place() {
    let site = Site::bundles().await;
    let mut app = site.member("app");
    for path in [&b"../outside"[..], b"/etc/passwd", b"src/.git/hooks/x", b"a\0b", b""] {
        assert_eq!(refused(app.upload(&[(path, b"x")]).await).0, "PATH_UNSAFE", "{path:?}");
    }
    assert_eq!(refused(app.upload(&[(b"README", b"x"), (b"readme", b"y")]).await).0, "PATH_UNSAFE");
    for pieces in [
        vec![content_piece(b"no head")],
        vec![head(b"a", 3), content_piece(b"xx")],
        vec![head(b"a", 3), content_piece(b"xxxx")],
        vec![head(b"a", 1), head(b"b", 1), content_piece(b"x")],
        vec![proto::UploadBundleRequest { piece: None }],
    ] {
        assert_eq!(refused(app.upload_pieces(pieces).await).0, "MALFORMED");
    }
    let megabyte = vec![0_u8; 1 << 20];
    let mut pieces = vec![head(b"big", 17 << 20)];
    pieces.extend((0..17).map(|_| content_piece(&megabyte)));
    assert_eq!(refused(app.upload_pieces(pieces).await).0, "ARTIFACT_TOO_LARGE");
    // Nothing of it is left.
    let incoming = site.home.path().join("artifacts/incoming");
    assert_eq!(std::fs::read_dir(incoming).unwrap().count(), 0);

    let never_uploaded = proto::ProposeRequest {
        proposal: "parser".to_owned(),
        kind: proto::ArtifactKind::Bundle.into(),
        digest: "0".repeat(64),
        ..Default::default()
    };
    assert_eq!(refused(app.review.propose(never_uploaded.clone()).await).0, "UNKNOWN_SUBJECT");
    let commit = proto::ProposeRequest { kind: proto::ArtifactKind::Commit.into(), ..never_uploaded };
    assert_eq!(refused(app.review.propose(commit).await).0, "ARTIFACT_KIND_UNFIT");
}

#[tokio::test]
async fn the_log_is_listed_in_pages_and_proves_itself() {
    let site = Site::bundles().await;
    let (mut app, mut sec) = (site.member("app"), site.member("sec"));
    app.offer("one\n", 0, &[]).await;
    sec.show("parser").await;
    let mut kinds = Vec::new();
    let mut from = 0;
    loop {
        let request = proto::ListEventsRequest { from, page_size: 2 };
        let page = sec.log.list_events(request).await.unwrap().into_inner();
        kinds.extend(page.events.into_iter().map(|event| (event.sequence, event.actor, event.kind)));
        match page.next {
            0 => break,
            next => from = next,
        }
    }
    let said: Vec<_> = kinds.iter().map(|(_, actor, kind)| format!("{actor} {kind}")).collect();
    let expected =
        [":operator charter-adopted", ":operator phase-opened", "app proposed", "sec version-read"];
    assert_eq!(said, expected);
    let proved = sec.log.verify_log(proto::VerifyLogRequest {}).await.unwrap().into_inner();
    assert_eq!((proved.sequence, proved.chain.len()), (4, 64));
}

#[tokio::test]
async fn escalations_say_who_waits_on_whom_and_are_answered_by_a_person() {
    let site = Site::bundles().await;
    let (mut app, mut sec, mut dana) = (site.member("app"), site.member("sec"), site.member("dana"));
    app.offer("one\n", 0, &[]).await;
    let escalate = |subject: &str| proto::EscalateRequest {
        subject: subject.to_owned(),
        text: "who decides about the format?".to_owned(),
        ..Default::default()
    };
    assert_eq!(refused(app.escalation.escalate(escalate("lexer")).await).0, "UNKNOWN_SUBJECT");
    for subject in ["parser", "parser@1", "implement"] {
        app.escalation.escalate(escalate(subject)).await.unwrap();
    }
    assert_eq!(refused(app.escalation.escalate(escalate("parser")).await).0, "ESCALATION_OPEN");
    let list = |page_size, page_token: &str| proto::ListEscalationsRequest {
        all: false,
        page_size,
        page_token: page_token.to_owned(),
    };
    let page = dana.escalation.list_escalations(list(2, "")).await.unwrap().into_inner();
    assert_eq!((page.escalations.len(), page.next_page_token.as_str()), (2, "e2"));
    let waiting: Vec<_> =
        page.escalations[0].waiting_on.iter().map(|one| (one.member.as_str(), one.kind.as_str())).collect();
    assert_eq!(waiting, [("sec", "review"), ("arch", "review")]);
    let page = dana.escalation.list_escalations(list(2, "e2")).await.unwrap().into_inner();
    assert_eq!((page.escalations.len(), page.next_page_token.as_str()), (1, ""));
    assert_eq!(refused(dana.escalation.list_escalations(list(2, "2")).await).0, "MALFORMED");

    let answer = |decision: &str| proto::AnswerEscalationRequest {
        escalation: "e1".to_owned(),
        decision: decision.to_owned(),
        reason: "the RFC's".to_owned(),
        ..Default::default()
    };
    assert_eq!(refused(sec.escalation.answer_escalation(answer("dismiss")).await).0, "NOT_A_PERSON");
    assert_eq!(refused(dana.escalation.answer_escalation(answer("shrug")).await).0, "MALFORMED");
    assert_eq!(refused(dana.escalation.answer_escalation(answer("raise-limit")).await).0, "DECISION_UNFIT");
    dana.escalation.answer_escalation(answer("dismiss")).await.unwrap();
    assert_eq!(app.status().await.escalations.len(), 2);
    let all = proto::ListEscalationsRequest { all: true, ..Default::default() };
    let all = dana.escalation.list_escalations(all).await.unwrap().into_inner().escalations;
    assert_eq!((all[0].answered_by.as_str(), all[0].reason.as_str()), ("dana", "the RFC's"));
    assert!(all[0].waiting_on.is_empty());
}
