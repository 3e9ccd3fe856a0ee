//! Another page that the same browser has open, on another port of this machine.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::browser::{Browser, Room};

/// Serves one page, whatever is asked.
async fn elsewhere() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}/", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut asked = [0; 4096];
                let _ = stream.read(&mut asked).await;
                let body = "<!doctype html><title>elsewhere</title><p>elsewhere</p>";
                let answer = format!(
                    "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
                    body.len()
                );
                let _ = stream.write_all(answer.as_bytes()).await;
            });
        }
    });
    address
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_on_another_port_gets_nothing_and_does_nothing() {
    let room = Room::bundles().await;
    let browser = Browser::start().await;
    browser.enter(&room.link("dana").await).await;
    browser.sees("Who owes what").await;
    let token = browser.run("return sessionStorage.getItem('countersign-token')").await;
    let token = token.as_str().unwrap();

    // The same tab goes elsewhere; even the token itself is of no use there.
    browser.goto(&elsewhere().await).await;
    assert_eq!(browser.run("return sessionStorage.length").await, 0);
    let page = room.address();
    let gets = |how: &str| {
        format!(
            "fetch('{page}/api/status', {how}).then(async (answer) => done(answer.type + await answer.text()), () => done('nothing'))"
        )
    };
    for how in [
        "{}".to_owned(),
        "{ credentials: 'include' }".to_owned(),
        format!("{{ headers: {{ authorization: 'Bearer {token}' }} }}"),
        "{ mode: 'no-cors' }".to_owned(),
    ] {
        let got = browser.run_until_done(&gets(&how)).await;
        assert!(got == "nothing" || got == "opaque", "{how}: {got}");
    }
    for element in ["script", "iframe", "img"] {
        let script = format!(
            "const node = document.createElement('{element}'); node.src = '{page}/' + ('{element}' === 'script' ? 'app.js' : ''); \
             node.onload = () => done('{element}' === 'iframe' && node.contentDocument === null ? 'refused' : 'loaded'); \
             node.onerror = () => done('refused'); document.body.append(node);"
        );
        assert_eq!(browser.run_until_done(&script).await, "refused", "{element}");
    }
    let written = format!(
        "fetch('{page}/api/do/escalate', {{ method: 'POST', mode: 'no-cors', body: '{{\"subject\":\"parser\",\"text\":\"x\"}}' }}) \
         .then(() => done('sent'), () => done('nothing'))"
    );
    browser.run_until_done(&written).await;
    assert!(room.site.member("dana").status().await.escalations.is_empty());
}
