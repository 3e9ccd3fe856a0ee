//! Staged commits: what nobody proposed is let go after a day, by a clock that is moved by hand.

use countersign::protocol::time::Span;
use countersign::wire::proto;
use proto::door_service_client::DoorServiceClient;

use crate::site::{Bearer, Site, offering_commit};

#[tokio::test]
async fn what_nobody_proposed_is_let_go_after_a_day_and_what_a_version_holds_stays() {
    let (site, yard) = Site::guarding().await;
    let root = yard.main();
    let proposed = yard.staged(&[("src/parser.rs", "one\n")], &root, "app@example.org");
    let left = yard.staged(&[("src/parser.rs", "two\n")], &root, "app@example.org");
    site.member("app").review.propose(offering_commit(&proposed, 0)).await.unwrap();
    let token = site.home.operator_token().unwrap();
    let mut door = DoorServiceClient::with_interceptor(site.channel(), Bearer::of(token.expose()));
    let staged = || yard.git(&["for-each-ref", "--format=%(objectname)", "refs/countersign/staging/"]);
    assert!(staged().contains(&left));
    let mut hours = 0;
    while staged().contains(&left) {
        // Whoever asks has the server look; how long it takes is its own.
        door.describe_door(proto::DescribeDoorRequest::default()).await.unwrap();
        site.clock.advance(Span::seconds(60 * 60));
        hours += 1;
        assert!(hours < 10_000, "it is never let go");
    }
    assert!(hours >= 24, "let go after {hours} h");
    assert_eq!(staged(), proposed);
    // And a version that is offered from there takes another push.
    assert!(site.member("app").review.propose(offering_commit(&left, 1)).await.is_err());
    yard.git(&["update-ref", &format!("refs/countersign/staging/{left}"), &left]);
    site.member("app").review.propose(offering_commit(&left, 1)).await.unwrap();
}
