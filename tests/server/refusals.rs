//! What is refused: each class has its code, and its details decode.

use countersign::protocol::time::Span;
use countersign::wire::{proto, rejection_of};
use tonic::Code;
use tonic_types::StatusExt;

use crate::site::{Site, refused, request_id};

#[tokio::test]
async fn each_class_has_its_code_and_its_details() {
    let site = Site::bundles().await;
    let (mut app, mut sec, mut dana) = (site.member("app"), site.member("sec"), site.member("dana"));
    let first = app.offer("one\n", 0, &[]).await;

    // Malformed: every argument at once.
    let status = sec
        .review
        .approve(proto::ApproveRequest {
            reference: "parser@latest".to_owned(),
            checked: vec!["src/parser.rs:0".to_owned()],
            resolve: vec!["1".to_owned()],
            ..Default::default()
        })
        .await
        .unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument);
    let details = status.get_error_details();
    let fields = details.bad_request().unwrap().field_violations.iter();
    assert_eq!(
        fields.map(|field| field.field.as_str()).collect::<Vec<_>>(),
        ["reference", "checked", "resolve"]
    );

    // Missing.
    let show = proto::ShowRequest { subject: "parzer".to_owned(), ..Default::default() };
    let status = sec.review.show(show).await.unwrap_err();
    assert_eq!(status.code(), Code::NotFound);
    assert_eq!(rejection_of(&status).unwrap().violations[0].remedy, "use parser, or run: countersign status");

    // Forbidden.
    let offer = sec.offering("mine\n", 1, &[]).await;
    assert_eq!(refused(sec.review.propose(offer).await), ("NOT_PRODUCER".to_owned(), Code::PermissionDenied));
    assert_eq!(refused(dana.approve(&first).await), ("NOT_REVIEWER".to_owned(), Code::PermissionDenied));

    // Precondition, with every violation.
    let circle = app.status().await.circles[0].reference.clone();
    let status = app.confirm(&circle).await.unwrap_err();
    assert_eq!(status.code(), Code::FailedPrecondition);
    let details = status.get_error_details();
    let info = details.error_info().unwrap();
    assert_eq!((info.reason.as_str(), info.domain.as_str()), ("CONFIRM_BLOCKED", "countersign.v1"));
    let unmet = details.precondition_failure().unwrap().violations.len();
    let rejection = rejection_of(&status).unwrap();
    assert_eq!((unmet, rejection.more), (rejection.violations.len(), 0));
    assert!(unmet >= 2, "{rejection:?}");
    assert!(
        rejection.violations.iter().all(|one| one.rule.starts_with("confirm/") && !one.remedy.is_empty())
    );
    assert_eq!(info.metadata["rule"], rejection.violations[0].rule);

    // Conflict.
    let stale = app.offering("two\n", 0, &[]).await;
    let status = app.review.propose(stale).await.unwrap_err();
    assert_eq!(status.code(), Code::Aborted);
    let facts = &rejection_of(&status).unwrap().violations[0].facts;
    assert_eq!(facts["current"].value, Some(proto::fact::Value::Number(1)));
    assert_eq!(facts["current_ref"].value, Some(proto::fact::Value::Text(first.clone())));

    // Limit, with the time until which to wait.
    let withdraw = proto::WithdrawRequest {
        proposal: "parser".to_owned(),
        reason: "not yet".to_owned(),
        ..Default::default()
    };
    let withdrawn = app.review.withdraw(withdraw).await.unwrap().into_inner();
    assert_eq!((withdrawn.flips, withdrawn.flips_left), (1, 1));
    site.clock.advance(Span::seconds(30));
    let again = app.offering("two\n", 1, &[]).await;
    let status = app.review.propose(again.clone()).await.unwrap_err();
    assert_eq!(status.code(), Code::ResourceExhausted);
    let delay = status.get_error_details().retry_info().unwrap().retry_delay.unwrap();
    assert_eq!(delay.as_secs(), 90);
    assert!(app.status().await.proposals[0].cooldown_until.is_some());
    site.clock.advance(Span::seconds(90));
    app.review.propose(again).await.unwrap();
}

#[tokio::test]
async fn a_text_is_stored_whole_or_refused_with_its_limit() {
    let site = Site::bundles().await;
    let (mut app, mut sec) = (site.member("app"), site.member("sec"));
    let first = app.offer("one\n", 0, &[]).await;
    sec.show("parser").await;
    let hostile = "`$HOME` \"'\r\n\u{1b}]52;c;x\u{7}\u{202e}\u{200b}\u{e0041}\u{9b}31m 🦀";
    let long = |bytes: usize| "é".repeat(bytes / 2) + if bytes % 2 == 1 { "x" } else { "" };
    let texts = [hostile.to_owned(), long(65_535), long(65_536)];
    for text in &texts {
        sec.object(&first, text).await.unwrap();
    }
    let stored: Vec<String> = app.objections().await.into_iter().map(|objection| objection.text).collect();
    assert_eq!(stored, texts);
    assert_eq!(refused(sec.object(&first, "before\0after").await).0, "MALFORMED");
    let status = sec.object(&first, &long(65_537)).await.unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument);
    let violation = &rejection_of(&status).unwrap().violations[0];
    assert_eq!(
        (violation.code.as_str(), violation.message.as_str()),
        ("TEXT_TOO_LARGE", "the text has 65537 bytes; the limit is 65536")
    );
    assert_eq!(refused(sec.object(&first, " \n").await).0, "EMPTY_TEXT");
}

#[tokio::test]
async fn names_have_one_form_and_what_is_shown_of_others_is_inert() {
    let site = Site::bundles().await;
    let mut sec = site.member("sec");
    for hostile in ["Parser", "parser\0", "pаrser", "../parser", "parser\u{1b}[2J", "", &"p".repeat(65)] {
        let show = proto::ShowRequest { subject: hostile.to_owned(), ..Default::default() };
        let status = sec.review.show(show).await.unwrap_err();
        let rejection = rejection_of(&status).unwrap();
        assert_eq!(rejection.violations[0].code, "MALFORMED", "{hostile:?}");
        assert!(!rejection.violations[0].message.contains(['\0', '\u{1b}']), "{rejection:?}");
        let explain = proto::ExplainRequest { name: hostile.to_owned() };
        assert_eq!(refused(sec.review.explain(explain).await).1, Code::NotFound, "{hostile:?}");
    }
}

#[tokio::test]
async fn a_message_that_is_too_long_is_refused_unread() {
    let site = Site::bundles().await;
    let mut app = site.member("app");
    let request = proto::ProposeRequest { summary: "x".repeat(5 << 20), ..Default::default() };
    assert_eq!(app.review.propose(request).await.unwrap_err().code(), Code::OutOfRange);
    assert_eq!(app.status().await.sequence, 2, "nothing came of it, and the connection is alive");

    let first = app.offer("one\n", 0, &[]).await;
    let mut sec = site.member("sec");
    sec.show("parser").await;
    let checked = vec!["src/parser.rs".to_owned(); 257];
    let request = proto::ApproveRequest { reference: first, checked, ..Default::default() };
    assert_eq!(refused(sec.review.approve(request).await).0, "MALFORMED");
}

#[tokio::test]
async fn a_repeated_request_has_one_effect_and_one_answer() {
    let mut site = Site::bundles().await;
    let (mut app, mut sec) = (site.member("app"), site.member("sec"));
    let first = app.offer("one\n", 0, &[]).await;
    sec.show("parser").await;
    let request = proto::ObjectRequest {
        request_id: request_id(7),
        reference: first.clone(),
        text: "overflows".to_owned(),
        ..Default::default()
    };
    let answer = sec.review.object(request.clone()).await.unwrap().into_inner();
    assert_eq!(sec.review.object(request.clone()).await.unwrap().into_inner(), answer);
    let upper = proto::ObjectRequest { request_id: request.request_id.to_uppercase(), ..request.clone() };
    assert_eq!(sec.review.object(upper).await.unwrap().into_inner(), answer);

    // Another command with the same id: another text, another method.
    let other = proto::ObjectRequest { text: "leaks".to_owned(), ..request.clone() };
    assert_eq!(refused(sec.review.object(other).await), ("REQUEST_ID_REUSED".to_owned(), Code::Aborted));
    let note = proto::NoteRequest {
        request_id: request.request_id.clone(),
        reference: first,
        text: request.text.clone(),
        ..Default::default()
    };
    assert_eq!(refused(sec.review.note(note).await).0, "REQUEST_ID_REUSED");
    // An id is its member's own: app's same id is another request.
    let objections =
        proto::ObjectionsRequest { request_id: request.request_id.clone(), proposal: "parser".to_owned() };
    app.review.objections(objections).await.unwrap();

    site.restart().await;
    let mut sec = site.member("sec");
    let again = sec.review.object(request.clone()).await.unwrap().into_inner();
    assert_eq!(
        (again.objection, again.reference, again.woke),
        (answer.objection, answer.reference, answer.woke)
    );
    assert_eq!(sec.objections().await.len(), 1);
    let bad = proto::ObjectRequest { request_id: "seven".to_owned(), ..request };
    assert_eq!(refused(sec.review.object(bad).await), ("MALFORMED".to_owned(), Code::InvalidArgument));
}
