//! The counters, as a scraper reads them.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::site::Site;
use countersign::wire::proto;

/// One request as plain HTTP, with what comes back.
async fn get(site: &Site, headers: &str) -> String {
    let mut stream = TcpStream::connect(site.running.as_ref().unwrap().addr()).await.unwrap();
    let request = format!("GET /metrics HTTP/1.1\r\nHost: countersign\r\nConnection: close\r\n{headers}\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

#[tokio::test]
async fn the_operator_reads_the_counters_and_nobody_else_does() {
    let site = Site::bundles().await;
    let bearer = |token: &str| format!("Authorization: Bearer {token}\r\n");
    let nobody = get(&site, "").await;
    assert!(nobody.starts_with("HTTP/1.1 401 "), "{nobody}");
    for token in ["csgn_none", site.tokens["app"].expose()] {
        let refused = get(&site, &bearer(token)).await;
        assert!(refused.starts_with("HTTP/1.1 401 ") && !refused.contains("atlas"), "{refused}");
    }

    let request =
        proto::EscalateRequest { subject: "parser".into(), text: "why?".into(), ..Default::default() };
    site.member("app").escalation.escalate(request).await.unwrap();
    let operator = site.home.operator_token().unwrap();
    let page = get(&site, &bearer(operator.expose())).await;
    assert!(page.starts_with("HTTP/1.1 200 OK\r\n"), "{page}");
    assert!(page.to_lowercase().contains("content-type: application/openmetrics-text"), "{page}");
    for line in [
        "countersign_events_total{team=\"atlas\"} 3\n",
        "countersign_recovery_patches_total{team=\"atlas\",patch=\"drop-stale-approval\"} 0\n",
        "countersign_recovery_patches_total{team=\"atlas\",patch=\"break-mutual-wait\"} 0\n",
        "countersign_escalations_open{team=\"atlas\",cause=\"asked\"} 1\n",
        "# EOF\n",
    ] {
        assert!(page.contains(line), "{line} is not in {page}");
    }
}
