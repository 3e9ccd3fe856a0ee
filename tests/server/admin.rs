//! The operator's work, in a running server and without one.

use std::os::unix::fs::PermissionsExt;

use countersign::protocol::name::{MemberName, TeamName};
use countersign::server::operator::{self, CharterFile, OperatorFault};
use countersign::store::Fault;
use countersign::wire::{proto, rejection_of};
use tonic::Code;

use crate::site::{Site, charter, refused};

fn add(site: &Site, charter: &str) -> proto::AddTeamRequest {
    proto::AddTeamRequest {
        file: "charter.toml".to_owned(),
        charter: charter.to_owned().into(),
        folder: site.folder.path().display().to_string(),
        rules: Vec::new(),
    }
}

#[tokio::test]
async fn a_team_is_added_to_a_running_server() {
    let mut site = Site::bundles().await;
    let mut operator = site.operator();
    let added = operator.add_team(add(&site, &charter("bravo"))).await.unwrap().into_inner();
    assert_eq!(
        added.tokens.iter().map(|one| one.member.as_str()).collect::<Vec<_>>(),
        ["app", "arch", "dana", "sec"]
    );
    let taken = operator.add_team(add(&site, &charter("bravo"))).await;
    assert_eq!(refused(taken), ("TEAM_TAKEN".to_owned(), Code::AlreadyExists));

    let teams = operator.list_teams(proto::ListTeamsRequest {}).await.unwrap().into_inner().teams;
    let listed: Vec<_> =
        teams.iter().map(|team| (team.name.as_str(), team.members.len(), team.sequence)).collect();
    assert_eq!(listed, [("atlas", 4, 2), ("bravo", 4, 2)]);

    // With two teams the name is needed; one that is wrong is answered with the nearest.
    let issue = |team: &str, member: &str| proto::IssueTokenRequest {
        team: team.to_owned(),
        member: member.to_owned(),
        keep: false,
    };
    assert_eq!(refused(operator.issue_token(issue("", "app")).await).0, "TEAM_NEEDED");
    let status = operator.issue_token(issue("brave", "app")).await.unwrap_err();
    assert_eq!(rejection_of(&status).unwrap().violations[0].remedy, "use bravo");
    assert_eq!(
        refused(operator.issue_token(issue("bravo", "ap")).await),
        ("UNKNOWN_MEMBER".to_owned(), Code::NotFound)
    );
    assert_eq!(refused(operator.issue_token(issue("Bravo", "")).await).0, "MALFORMED");
    operator.issue_token(issue("bravo", "app")).await.unwrap();

    site.restart().await;
    let teams = site.operator().list_teams(proto::ListTeamsRequest {}).await.unwrap().into_inner().teams;
    assert_eq!(teams.len(), 2);
}

#[tokio::test]
async fn a_charter_that_cannot_be_taken_is_refused_at_its_place() {
    let site = Site::bundles().await;
    let mut operator = site.operator();
    let slip = charter("bravo").replace("reviewer = \"arch\"", "reviewer = \"ach\"");
    let status = operator.add_team(add(&site, &slip)).await.unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument);
    let violation = rejection_of(&status).unwrap().violations.remove(0);
    assert_eq!(violation.code, "CHARTER_REFUSED");
    assert!(
        violation.message.contains("charter.toml:") && violation.message.contains("\n"),
        "{}",
        violation.message
    );

    let own_rules = charter("bravo") + "\n[rules]\nfolder = \"rules\"\n";
    assert_eq!(refused(operator.add_team(add(&site, &own_rules)).await).0, "RULE_REFUSED");
    let relative = proto::AddTeamRequest { folder: ".".to_owned(), ..add(&site, &charter("bravo")) };
    assert_eq!(refused(operator.add_team(relative).await).0, "MALFORMED");
    let teams = operator.list_teams(proto::ListTeamsRequest {}).await.unwrap().into_inner().teams;
    assert_eq!(teams.len(), 1, "nothing came of it");
}

#[tokio::test]
async fn without_a_server_the_operator_does_the_same_work() {
    let site = Site::unserved();
    let app: MemberName = "app".parse().unwrap();
    let nobody = operator::issue_token(&site.home, None, &app, false).await.unwrap_err();
    assert!(matches!(nobody, OperatorFault::NoTeam), "{nobody}");

    let folder = site.folder.path();
    let added = operator::add_team(&site.home, CharterFile::alone("c", charter("atlas").as_bytes(), folder))
        .await
        .unwrap();
    for (member, token) in &added.tokens {
        let file = site.home.write_token(Some(&added.team), member, token).unwrap();
        assert_eq!(file, site.home.path().join("tokens").join(member.as_str()));
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    }
    operator::add_team(&site.home, CharterFile::alone("c", charter("bravo").as_bytes(), folder))
        .await
        .unwrap();
    let bravo: TeamName = "bravo".parse().unwrap();
    let taken = operator::add_team(&site.home, CharterFile::alone("c", charter("bravo").as_bytes(), folder))
        .await
        .unwrap_err();
    assert!(matches!(taken, OperatorFault::TeamTaken { .. }), "{taken}");
    let (team, token) = operator::issue_token(&site.home, Some(&bravo), &app, true).await.unwrap();
    let file = site.home.write_token(Some(&team), &app, &token).unwrap();
    assert_eq!(file, site.home.path().join("teams/bravo/tokens/app"));
    assert_eq!(operator::revoke_tokens(&site.home, Some(&bravo), &app).await.unwrap(), 2);
}

#[tokio::test]
async fn a_home_that_is_served_is_left_to_its_server() {
    let site = Site::bundles().await;
    let app: MemberName = "app".parse().unwrap();
    let held = operator::issue_token(&site.home, None, &app, false).await.unwrap_err();
    let OperatorFault::Store(Fault::Held { holder }) = &held else { panic!("{held}") };
    let addr = site.running.as_ref().unwrap().addr();
    assert_eq!(*holder, format!("process {} at {addr}", std::process::id()));
    assert_eq!(held.code(), "HOME_HELD");
    site.member("app").status().await;
}
