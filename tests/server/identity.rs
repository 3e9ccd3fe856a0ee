//! Who calls: strangers can do nothing, members only their own.

use countersign::coordinator::token::Token;
use countersign::wire::proto;
use proto::review_service_client::ReviewServiceClient;
use tonic::{Code, Request};

use crate::site::{Bearer, Member, Site, admin, charter, refused};

fn unauthenticated() -> (String, Code) {
    ("UNAUTHENTICATED".to_owned(), Code::Unauthenticated)
}

#[tokio::test]
async fn strangers_can_do_nothing() {
    let site = Site::bundles().await;
    let status = proto::GetStatusRequest::default();
    let mut bare = ReviewServiceClient::new(site.channel());
    assert_eq!(refused(bare.get_status(status).await), unauthenticated());

    let app = site.tokens["app"].expose().to_owned();
    for credential in
        ["", "Bearer", "Bearer ", &app, &format!("Basic {app}"), &format!("Bearer {app}0"), "Bearer csgn_x"]
    {
        let mut request = Request::new(status);
        request.metadata_mut().insert("authorization", credential.parse().unwrap());
        assert_eq!(refused(bare.get_status(request).await), unauthenticated(), "{credential}");
    }
    for scheme in ["bearer", "BEARER"] {
        let mut request = Request::new(status);
        request.metadata_mut().insert("authorization", format!("{scheme} {app}").parse().unwrap());
        assert_eq!(bare.get_status(request).await.unwrap().into_inner().member, "app");
    }

    let mut stranger = Member::new(site.channel(), &Token::generate().unwrap());
    assert_eq!(refused(stranger.review.get_status(status).await), unauthenticated());
    assert_eq!(refused(stranger.upload(&[(b"a", b"x")]).await), unauthenticated());
    let fetch = proto::FetchRequest { subject: "parser".to_owned(), ..Default::default() };
    assert_eq!(refused(stranger.artifact.fetch(fetch).await.map(|_| ())), unauthenticated());
    assert_eq!(refused(stranger.log.verify_log(proto::VerifyLogRequest {}).await), unauthenticated());
    let list = proto::ListEscalationsRequest::default();
    assert_eq!(refused(stranger.escalation.list_escalations(list).await), unauthenticated());
    let mut stranger = admin(site.channel(), &Token::generate().unwrap());
    assert_eq!(refused(stranger.list_teams(proto::ListTeamsRequest {}).await), unauthenticated());
}

#[tokio::test]
async fn the_operator_is_no_member_and_no_member_the_operator() {
    let site = Site::bundles().await;
    let operator = site.home.operator_token().unwrap();
    let mut as_member = ReviewServiceClient::with_interceptor(site.channel(), Bearer::of(operator.expose()));
    assert_eq!(refused(as_member.get_status(proto::GetStatusRequest::default()).await), unauthenticated());
    for member in ["app", "dana"] {
        let mut as_operator = admin(site.channel(), &site.tokens[member]);
        let answer = as_operator.list_teams(proto::ListTeamsRequest {}).await;
        assert_eq!(refused(answer), ("NOT_OPERATOR".to_owned(), Code::PermissionDenied));
    }
}

#[tokio::test]
async fn a_token_speaks_for_its_member_until_it_is_revoked() {
    let mut site = Site::bundles().await;
    let mut operator = site.operator();
    let issue = |keep| proto::IssueTokenRequest { member: "sec".to_owned(), keep, ..Default::default() };
    let issued = |answer: proto::IssueTokenResponse| Token::parse(&answer.token.unwrap().token).unwrap();

    let second = issued(operator.issue_token(issue(true)).await.unwrap().into_inner());
    for token in [&site.tokens["sec"], &second] {
        assert_eq!(Member::new(site.channel(), token).status().await.member, "sec");
    }
    let third = issued(operator.issue_token(issue(false)).await.unwrap().into_inner());
    let status = proto::GetStatusRequest::default();
    for ended in [&site.tokens["sec"], &second] {
        let answer = Member::new(site.channel(), ended).review.get_status(status).await;
        assert_eq!(refused(answer), unauthenticated());
    }
    let revoke = proto::RevokeTokensRequest { member: "sec".to_owned(), ..Default::default() };
    assert_eq!(operator.revoke_tokens(revoke).await.unwrap().into_inner().revoked, 1);
    assert_eq!(
        refused(Member::new(site.channel(), &third).review.get_status(status).await),
        unauthenticated()
    );
    site.restart().await;
    assert_eq!(
        refused(Member::new(site.channel(), &third).review.get_status(status).await),
        unauthenticated()
    );
    assert_eq!(site.member("app").status().await.member, "app", "others go on");
}

#[tokio::test]
async fn a_team_is_nothing_to_another_teams_members() {
    let site = Site::bundles().await;
    let mut operator = site.operator();
    let request = proto::AddTeamRequest {
        file: "charter.toml".to_owned(),
        charter: charter("bravo").into(),
        folder: site.folder.path().display().to_string(),
        rules: Vec::new(),
    };
    let added = operator.add_team(request).await.unwrap().into_inner();
    let token = added.tokens.iter().find(|one| one.member == "app").unwrap();
    let mut theirs = Member::new(site.channel(), &Token::parse(&token.token).unwrap());
    let mut ours = site.member("app");

    let offer = ours.offering("secret\n", 0, &[]).await;
    ours.review.propose(offer.clone()).await.unwrap();
    assert_eq!(theirs.status().await.team, "bravo");
    // Not even the bundle is theirs to name.
    assert_eq!(refused(theirs.review.propose(offer).await).0, "UNKNOWN_SUBJECT");
    assert_eq!(theirs.status().await.proposals[0].version, 0);
    let events = theirs.log.list_events(proto::ListEventsRequest::default()).await.unwrap().into_inner();
    assert!(events.events.iter().all(|event| event.kind != "proposed"));
}
