//! The shell: the page's own files, part of the program. They hold nothing of a team.

use axum::extract::Request;
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const JS: &str = "text/javascript; charset=utf-8";
const SVG: &str = "image/svg+xml";

/// Path, kind and text of each.
const FILES: &[(&str, &str, &str)] = &[
    ("/", HTML, include_str!("assets/index.html")),
    ("/style.css", CSS, include_str!("assets/style.css")),
    ("/icon.svg", SVG, include_str!("assets/icon.svg")),
    ("/app.js", JS, include_str!("assets/app.js")),
    ("/server.js", JS, include_str!("assets/server.js")),
    ("/dom.js", JS, include_str!("assets/dom.js")),
    ("/words.js", JS, include_str!("assets/words.js")),
    ("/graph.js", JS, include_str!("assets/graph.js")),
    ("/now.js", JS, include_str!("assets/now.js")),
    ("/board.js", JS, include_str!("assets/board.js")),
    ("/proposal.js", JS, include_str!("assets/proposal.js")),
    ("/diff.js", JS, include_str!("assets/diff.js")),
    ("/room.js", JS, include_str!("assets/room.js")),
    ("/roster.js", JS, include_str!("assets/roster.js")),
    ("/charter.js", JS, include_str!("assets/charter.js")),
];

pub(super) async fn asset(request: Request) -> Response {
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return StatusCode::METHOD_NOT_ALLOWED.into_response();
    }
    let Some((_, kind, text)) = FILES.iter().find(|(path, ..)| *path == request.uri().path()) else {
        return (StatusCode::NOT_FOUND, "there is no such file\n").into_response();
    };
    // Asked again each time: a newer program has newer files, and they must fit one another.
    let kept = HeaderValue::from_static("no-cache");
    ([(header::CONTENT_TYPE, HeaderValue::from_static(kind)), (header::CACHE_CONTROL, kept)], *text)
        .into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All that the first view needs, uncompressed.
    const BYTES_MAX: usize = 150 << 10;

    #[test]
    fn the_shell_is_small_and_whole() {
        let bytes: usize = FILES.iter().map(|(.., text)| text.len()).sum();
        assert!(bytes <= BYTES_MAX, "{bytes} bytes");
        // What a module imports is served, too.
        for (path, _, text) in FILES {
            for line in text.lines().filter(|line| line.starts_with("import ")) {
                let from = line.split('"').nth(1).unwrap_or_default().trim_start_matches('.');
                assert!(FILES.iter().any(|(path, ..)| *path == from), "{path} imports {from}");
            }
        }
    }

    #[test]
    fn no_text_becomes_markup_and_nothing_comes_from_elsewhere() {
        for (path, _, text) in FILES {
            for never in [
                "innerHTML",
                "outerHTML",
                "insertAdjacentHTML",
                "document.write",
                "eval(",
                "new Function",
                "https://",
            ] {
                assert!(!text.contains(never), "{path} has {never}");
            }
        }
    }
}
