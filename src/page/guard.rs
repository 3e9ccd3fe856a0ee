//! Before any route: does the request come from this page, or from another one that a browser has open?
//!
//! A page of another origin can send requests here, with a host name of its own that it had resolved to this machine,
//! but it can't choose Host, Origin and Sec-Fetch-Site. So exactly our own are taken, and nothing is said to others.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{self, Body};
use axum::extract::{Request, State};
use axum::http::header::{self, HeaderName};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::Shared;
use super::api::told;

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// No inline script, no frame, nothing from elsewhere, no text that becomes markup.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
                      require-trusted-types-for 'script'; trusted-types 'none'";

/// What every answer says, whatever it is.
const SAID: [(HeaderName, &str); 6] = [
    (header::CONTENT_SECURITY_POLICY, POLICY),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
];

/// How long a request's body may take to arrive.
const BODY_TIME_MAX: Duration = Duration::from_secs(5);

/// The longest body, in bytes.
const BODY_BYTES_MAX: usize = 2 << 20;

pub(super) async fn guard(State(shared): State<Arc<Shared>>, request: Request, next: Next) -> Response {
    let mut response = if is_ours(&shared.host, &request) {
        match whole(request).await {
            // What is still arriving takes no turn from what can be answered.
            Ok(request) => match shared.requests.acquire().await {
                Ok(_turn) => next.run(request).await,
                Err(_) => StatusCode::SERVICE_UNAVAILABLE.into_response(),
            },
            Err(refused) => refused,
        }
    } else {
        tracing::debug!("a request that doesn't come from the page was refused");
        let message = "only the room page itself is answered here";
        told(StatusCode::FORBIDDEN, "FOREIGN_PAGE", message, "countersign page --as MEMBER")
    };
    let headers = response.headers_mut();
    for (name, value) in SAID {
        headers.insert(name, HeaderValue::from_static(value));
    }
    // What is of a team is kept nowhere; the shell says for itself how it is kept.
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}

/// The request with all of its body.
async fn whole(request: Request) -> Result<Request, Response> {
    let (head, arriving) = request.into_parts();
    match tokio::time::timeout(BODY_TIME_MAX, body::to_bytes(arriving, BODY_BYTES_MAX)).await {
        Ok(Ok(arrived)) => Ok(Request::from_parts(head, Body::from(arrived))),
        Ok(Err(_)) => {
            let message = "the body is too long, or broke off";
            Err(told(StatusCode::PAYLOAD_TOO_LARGE, "MALFORMED", message, "send less at once"))
        }
        Err(_) => {
            let message = "the body took too long to arrive";
            Err(told(StatusCode::REQUEST_TIMEOUT, "BODY_LATE", message, "send it again"))
        }
    }
}

/// Whether exactly this page, or the person who opens it, sends the request.
fn is_ours(host: &str, request: &Request) -> bool {
    let (headers, uri) = (request.headers(), request.uri());
    let named = only(headers, &header::HOST) == Some(host)
        && uri.authority().is_none_or(|authority| authority.as_str() == host);
    let is_api = uri.path() == "/api" || uri.path().starts_with("/api/");
    let reads = matches!(*request.method(), Method::GET | Method::HEAD);
    let origin = match headers.contains_key(header::ORIGIN) {
        // A browser names the origin with every request that isn't a plain reading.
        false => reads,
        true => {
            only(headers, &header::ORIGIN).and_then(|origin| origin.strip_prefix("http://")) == Some(host)
        }
    };
    let site = match headers.contains_key(&SEC_FETCH_SITE) {
        // What is of a team is only for a browser that says where its requests come from.
        false => !is_api,
        true => match only(headers, &SEC_FETCH_SITE) {
            Some("same-origin") => true,
            // A person typed it, or followed a link of another program.
            Some("none") => !is_api,
            _ => false,
        },
    };
    named && origin && site
}

/// The header's value, where there is exactly one.
fn only<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?.to_str().ok()?;
    values.next().is_none().then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::body::Body;

    const HOST: &str = "127.0.0.1:7412";

    fn ours(method: &str, path: &str, headers: &[(&str, &str)]) -> bool {
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        is_ours(HOST, &request.body(Body::empty()).unwrap())
    }

    #[test]
    fn the_pages_own_requests_are_taken_and_no_others() {
        let (host, site) = (("host", HOST), ("sec-fetch-site", "same-origin"));
        let origin = ("origin", "http://127.0.0.1:7412");
        assert!(ours("GET", "/", &[host, ("sec-fetch-site", "none")]));
        assert!(ours("GET", "/style.css", &[host, site]));
        assert!(ours("GET", "/api/status", &[host, site]));
        assert!(ours("POST", "/api/do/answer", &[host, site, origin]));
        for (method, path, headers) in [
            // Of another name that leads here.
            ("GET", "/", vec![("host", "page.example:7412")]),
            ("GET", "/", vec![("host", "localhost:7412")]),
            ("GET", "/", vec![("host", "127.0.0.1")]),
            ("GET", "/", vec![]),
            ("GET", "/", vec![host, host]),
            ("GET", "http://page.example/", vec![host]),
            // Of another page, also on another port of this machine.
            ("GET", "/", vec![host, ("sec-fetch-site", "same-site")]),
            ("GET", "/app.js", vec![host, ("sec-fetch-site", "cross-site")]),
            ("GET", "/api/status", vec![host, ("sec-fetch-site", "same-site")]),
            ("GET", "/api/status", vec![host, ("sec-fetch-site", "none")]),
            ("GET", "/api/status", vec![host]),
            ("GET", "/api/status", vec![host, site, site]),
            // With an origin that isn't ours, or none where a browser names one.
            ("GET", "/api/status", vec![host, site, ("origin", "http://127.0.0.1:8000")]),
            ("GET", "/api/status", vec![host, site, ("origin", "null")]),
            ("POST", "/api/do/answer", vec![host, site, ("origin", "https://127.0.0.1:7412")]),
            ("POST", "/api/do/answer", vec![host, site, origin, origin]),
            ("POST", "/api/do/answer", vec![host, site]),
            ("POST", "/api/sign-in", vec![host, ("sec-fetch-site", "cross-site"), origin]),
        ] {
            assert!(!ours(method, path, &headers), "{method} {path} {headers:?}");
        }
    }
}
