//! What the demo shows of an answer.

use std::fmt::Write as _;

use serde_json::Value;

/// The parts of an answer that tell the story.
pub(super) fn summary(verb: &str, json: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    if json["ok"] == Value::Bool(false) {
        let mut out = format!("refused {}: {}", text(&json["code"]), text(&json["message"]));
        let violations = json["violations"].as_array().map(Vec::as_slice).unwrap_or_default();
        for violation in violations.iter().skip(1) {
            let _ = write!(out, "\n  also {}: {}", text(&violation["code"]), text(&violation["message"]));
        }
        let _ = write!(out, "\n{}", text(&json["remedy"]));
        return out;
    }
    let each = |path: &str, line: &dyn Fn(&Value) -> String| -> String {
        let items = json[path].as_array().map(Vec::as_slice).unwrap_or_default();
        items.iter().map(line).collect::<Vec<_>>().join("\n")
    };
    let mut out = match verb {
        "propose" | "approve" => text(&json["ref"]),
        "show" => format!("{} is {}", text(&json["ref"]), text(&json["state"])),
        "object" => format!("{} on {}", text(&json["objection"]), text(&json["ref"])),
        "objections" => each("objections", &|objection| {
            format!("{} by {}: {}", text(&objection["id"]), text(&objection["by"]), text(&objection["text"]))
        }),
        "withdraw" => {
            format!("withdrawn until {}; {} flips left", text(&json["cooldown_until"]), json["flips_left"])
        }
        "confirm" => match json["complete"].as_bool() {
            Some(true) => "complete".to_owned(),
            _ => format!("confirmed; waiting for {}", each("waiting_for", &text).replace('\n', ", ")),
        },
        "explain" => each("requirements", &|requirement| {
            format!("{:15} {}", text(&requirement["state"]), text(&requirement["name"]))
        }),
        "status" => {
            let circles =
                each("circles", &|circle| format!("{} is {}", text(&circle["ref"]), text(&circle["state"])));
            let owed = each("obligations", &|owed| {
                format!("{} owes: {} {}", text(&owed["member"]), text(&owed["kind"]), text(&owed["subject"]))
            });
            let proposals = each("proposals", &|proposal| {
                format!("{} is {}", text(&proposal["name"]), text(&proposal["state"]))
            });
            [circles, proposals, owed]
                .into_iter()
                .filter(|part| !part.is_empty())
                .collect::<Vec<_>>()
                .join("\n")
        }
        "escalations" => each("escalations", &|one| {
            let (id, cause) = (text(&one["id"]), text(&one["cause"]));
            format!("{id} {cause} on {}: {}", text(&one["subject"]), text(&one["state"]))
        }),
        "log" => format!("{} events", json["events"].as_array().map_or(0, Vec::len)),
        _ => "ok".to_owned(),
    };
    let woke = json["woke"].as_array().map(Vec::as_slice).unwrap_or_default();
    let heard: Vec<String> =
        woke.iter().map(|wake| format!("{} ({})", text(&wake["member"]), text(&wake["outcome"]))).collect();
    if !heard.is_empty() {
        let _ = write!(out, "\nnow they owe something: {}", heard.join(", "));
    }
    out
}
