//! A team that guards a real git repository.

use countersign::server::operator::{self, CharterFile, OperatorFault};
use countersign::wire::proto;
use tonic::Code;

use crate::site::{Site, guarding_charter, offering_commit, refused, request_id};

const APP: &str = "app@example.org";

#[tokio::test]
async fn a_commit_is_staged_proposed_and_pinned() {
    let (site, yard) = Site::guarding().await;
    let (mut app, mut sec) = (site.member("app"), site.member("sec"));
    let commit = yard.commit(&[("src/parser.rs", "fn parse() {}\n")], Some(&yard.main()), APP);

    let status = app.review.propose(offering_commit(&commit, 0)).await.unwrap_err();
    let rejection = countersign::wire::rejection_of(&status).unwrap();
    assert_eq!(
        (rejection.violations[0].code.as_str(), status.code()),
        ("NOT_STAGED", Code::FailedPrecondition)
    );
    assert!(rejection.violations[0].remedy.contains("git push"), "{}", rejection.violations[0].remedy);

    yard.git(&["update-ref", &format!("refs/countersign/staging/{commit}"), &commit]);
    let proposed = app.review.propose(offering_commit(&commit, 0)).await.unwrap().into_inner();
    assert_eq!((proposed.version, proposed.digest.as_str()), (1, commit.as_str()));
    assert_eq!(yard.git(&["rev-parse", "refs/countersign/parser/1"]), commit);

    let shown = sec.show("parser@1").await;
    let version = shown.version.unwrap();
    assert_eq!((version.base.as_str(), version.kind()), (yard.main().as_str(), proto::ArtifactKind::Commit));
    assert_eq!((version.authors[0].email.as_str(), version.authors[0].member.as_str()), (APP, "app"));
    assert_eq!(
        (shown.files_total, shown.files[0].path.as_str(), shown.files[0].status.as_str()),
        (1, "src/parser.rs", "added")
    );
    let diff = proto::DiffRequest { subject: "parser".to_owned(), ..Default::default() };
    let diff = sec.review.diff(diff).await.unwrap().into_inner();
    assert!(diff.text.contains("+fn parse() {}"), "{}", diff.text);

    let charter = sec.review.get_charter(proto::GetCharterRequest::default()).await.unwrap().into_inner();
    assert_eq!(charter.repository, yard.path.canonicalize().unwrap().display().to_string());
    assert_eq!((charter.text.as_str(), charter.revision), (guarding_charter("atlas").as_str(), 1));
    assert!(charter.mermaid.starts_with("flowchart") && charter.graph.contains("sec reviews app"));

    assert_eq!(refused(app.upload(&[(b"a", b"x")]).await).0, "ARTIFACT_KIND_UNFIT");
}

#[tokio::test]
async fn what_git_knows_reaches_the_protocol() {
    let (site, yard) = Site::guarding().await;
    let (mut app, mut sec) = (site.member("app"), site.member("sec"));
    let main = yard.main();

    yard.git(&["update-ref", &format!("refs/countersign/staging/{main}"), &main]);
    assert_eq!(refused(app.review.propose(offering_commit(&main, 0)).await).0, "EMPTY_PROPOSAL");
    let foreign = yard.staged(&[("docs/plan.md", "mine now\n")], &main, APP);
    let refusal = refused(app.review.propose(offering_commit(&foreign, 0)).await);
    assert_eq!(refusal, ("OUTSIDE_OWNERSHIP".to_owned(), Code::PermissionDenied));
    let tree = yard.git(&["rev-parse", &format!("{main}^{{tree}}")]);
    yard.git(&["update-ref", &format!("refs/countersign/staging/{tree}"), &tree]);
    assert_eq!(refused(app.review.propose(offering_commit(&tree, 0)).await).0, "MALFORMED");

    // sec is an author of it, so nobody is left on sec's edge: a person hears of it at once.
    let theirs = yard.staged(&[("src/parser.rs", "fn parse() {}\n")], &main, "sec@example.org");
    let proposed = app.review.propose(offering_commit(&theirs, 0)).await.unwrap().into_inner();
    assert_eq!(proposed.escalated, ["e1"]);
    sec.show("parser").await;
    assert_eq!(
        refused(sec.approve(&proposed.reference).await),
        ("OWN_WORK".to_owned(), Code::PermissionDenied)
    );
}

#[tokio::test]
async fn a_retry_gets_its_answer_also_when_the_staged_ref_is_gone() {
    let (mut site, yard) = Site::guarding().await;
    let mut app = site.member("app");
    let commit = yard.staged(&[("src/parser.rs", "fn parse() {}\n")], &yard.main(), APP);
    let request = proto::ProposeRequest { request_id: request_id(1), ..offering_commit(&commit, 0) };
    let first = app.review.propose(request.clone()).await.unwrap().into_inner();
    yard.git(&["update-ref", "-d", &format!("refs/countersign/staging/{commit}")]);
    // A pin that was lost is made again by the retry.
    yard.git(&["update-ref", "-d", "refs/countersign/parser/1"]);
    let again = app.review.propose(request.clone()).await.unwrap().into_inner();
    assert_eq!(again, first);
    assert_eq!(yard.git(&["rev-parse", "refs/countersign/parser/1"]), commit);

    site.restart().await;
    let mut app = site.member("app");
    let again = app.review.propose(request.clone()).await.unwrap().into_inner();
    assert_eq!((again.reference, again.woke), (first.reference, first.woke));
    let other = proto::ProposeRequest { summary: "another".to_owned(), ..request };
    assert_eq!(refused(app.review.propose(other).await).0, "REQUEST_ID_REUSED");
    assert_eq!(app.status().await.proposals[0].version, 1, "one effect");
}

#[tokio::test]
async fn a_version_that_lost_its_pin_is_pinned_at_start() {
    let (mut site, yard) = Site::guarding().await;
    let mut app = site.member("app");
    let commit = yard.staged(&[("src/parser.rs", "fn parse() {}\n")], &yard.main(), APP);
    app.review.propose(offering_commit(&commit, 0)).await.unwrap();
    yard.git(&["update-ref", "-d", "refs/countersign/parser/1"]);
    site.restart().await;
    assert_eq!(yard.git(&["rev-parse", "refs/countersign/parser/1"]), commit);
}

#[tokio::test]
async fn an_accepted_version_that_cannot_be_pinned_is_no_success_yet() {
    let (site, yard) = Site::guarding().await;
    let mut app = site.member("app");
    let commit = yard.staged(&[("src/parser.rs", "fn parse() {}\n")], &yard.main(), APP);
    // Somebody with a shell on the server's machine stands in the way.
    yard.git(&["update-ref", "refs/countersign/parser/1", &yard.main()]);
    let request = proto::ProposeRequest { request_id: request_id(1), ..offering_commit(&commit, 0) };
    let answer = app.review.propose(request.clone()).await;
    assert_eq!(refused(answer), ("OUTCOME_UNKNOWN".to_owned(), Code::Unavailable));
    yard.git(&["update-ref", "-d", "refs/countersign/parser/1"]);
    let again = app.review.propose(request).await.unwrap().into_inner();
    assert_eq!((again.version, yard.git(&["rev-parse", "refs/countersign/parser/1"])), (1, commit));
}

#[tokio::test]
async fn a_repository_that_keeps_another_logs_versions_is_refused() {
    let site = Site::unserved();
    let add = async |charter: &str| {
        let file = CharterFile::alone("charter.toml", charter.as_bytes(), site.folder.path());
        operator::add_team(&site.home, file).await
    };
    let missing = add(&guarding_charter("atlas")).await.unwrap_err();
    assert!(matches!(missing, OperatorFault::Repository { .. }), "{missing}");
    assert!(missing.remedy().contains("git init --bare"));

    let yard = crate::site::Yard::init(&site.folder.path().join("atlas.git"));
    yard.git(&["update-ref", "refs/countersign/parser/1", &yard.main()]);
    let used = add(&guarding_charter("atlas")).await.unwrap_err();
    assert!(used.to_string().contains("refs/countersign/parser/1"), "{used}");
    yard.git(&["update-ref", "-d", "refs/countersign/parser/1"]);
    assert_eq!(add(&guarding_charter("atlas")).await.unwrap().tokens.len(), 4);
}
