//! What a command prints: JSON for scripts, words for people and agents.

use std::io::{self, Write};

use serde_json::{Map, Value};

use super::failure::{Exit, Failure, Unmet};
use crate::protocol::name::{is_hidden, push_visible};

/// Unmet conditions that are shown to a person; of the rest, only how many there are. With their
/// remedies they stay on one screen.
const UNMET_SHOWN_MAX: usize = 8;

/// Characters of a sentence that are shown to a person.
const SENTENCE_CHARS_MAX: usize = 600;

/// What a command that is done has to say.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    /// For scripts, beside `"ok": true`; none where the words are all there is, such as a script.
    pub json: Option<Map<String, Value>>,
    /// For people and agents; texts of others are fenced in it already.
    pub text: String,
    /// What went wrong beside it, and didn't undo it.
    pub warnings: Vec<String>,
}

impl Answer {
    /// Of a JSON object and its words.
    pub fn new(json: Value, text: impl Into<String>) -> Self {
        let json = match json {
            Value::Object(members) => members,
            other => Map::from_iter([("value".to_owned(), other)]),
        };
        Self { json: Some(json), text: text.into(), warnings: Vec::new() }
    }

    /// Words alone, such as a script or a page, whatever form was asked for.
    pub fn verbatim(text: impl Into<String>) -> Self {
        Self { json: None, text: text.into(), warnings: Vec::new() }
    }
}

/// Prints the outcome and says how the process ends.
///
/// A reader that went away (`| head`) is nobody's mistake: what the command did stands, so its exit
/// code does too.
pub fn print(outcome: &Result<Answer, Failure>, as_json: bool) -> Exit {
    match outcome {
        Ok(answer) => {
            let written = put(answer, as_json);
            answer.warnings.iter().for_each(|said| warn(said));
            match written {
                Err(problem) if problem.kind() != io::ErrorKind::BrokenPipe => {
                    let _ =
                        line(&mut io::stderr(), &format!("it is done, but could not be printed: {problem}"));
                    Exit::Refused
                }
                _ => Exit::Done,
            }
        }
        Err(failure) => {
            // A reader that went away, again: the exit code says what there is to say.
            let _ = if as_json {
                line(&mut io::stdout(), &inert(&failure.json()))
            } else {
                line(&mut io::stderr(), &words(failure))
            };
            failure.exit
        }
    }
}

/// Puts out what a command that is done has to say, and flushes it.
pub fn put(answer: &Answer, as_json: bool) -> io::Result<()> {
    match &answer.json {
        Some(json) if as_json => {
            let mut members = Map::from_iter([("ok".to_owned(), Value::Bool(true))]);
            members.extend(json.clone());
            line(&mut io::stdout(), &inert(&Value::Object(members)))
        }
        Some(_) => line(&mut io::stdout(), &shown(&answer.text)),
        None => line(&mut io::stdout(), &answer.text),
    }
}

/// Says on standard error what went wrong beside it.
pub fn warn(said: &str) {
    let _ = line(&mut io::stderr(), &visible(said));
}

/// Lines of ours, in which nothing is left that a terminal would obey: a path of the caller's own can hold it, too.
fn shown(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' | '\t' => out.push(c),
            c => push_visible(&mut out, c),
        }
    }
    out
}

/// JSON of the same value, in which whatever a terminal would obey or hide is escaped.
pub fn inert(json: &Value) -> String {
    let mut out = String::new();
    // Outside of its texts JSON has no such character, so every one that is found may be escaped.
    for c in json.to_string().chars() {
        if is_hidden(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                out.push_str(&format!("\\u{unit:04x}"));
            }
        } else {
            out.push(c);
        }
    }
    out
}

fn line(out: &mut dyn Write, text: &str) -> io::Result<()> {
    if text.is_empty() {
        return Ok(());
    }
    out.write_all(text.as_bytes())?;
    if !text.ends_with('\n') {
        out.write_all(b"\n")?;
    }
    out.flush()
}

/// A failure in words: the code, each sentence, and below it what to do.
pub fn words(failure: &Failure) -> String {
    let mut out = match failure.exit {
        Exit::Usage => String::new(),
        Exit::Refused => format!("refused {}\n", failure.code()),
        _ => format!("{}\n", failure.code()),
    };
    let shown = &failure.unmet[..failure.unmet.len().min(UNMET_SHOWN_MAX)];
    for Unmet { code, message, remedy, rule, .. } in shown {
        out.push_str("  ");
        if code != failure.code() {
            out.push_str(&format!("{code}: "));
        }
        if !rule.is_empty() {
            out.push_str(&format!("[{}] ", visible(rule)));
        }
        out.push_str(&indented(message));
        out.push('\n');
        if !remedy.is_empty() {
            out.push_str(&match remedy.strip_prefix("run: ") {
                Some(command) => format!("  Run: {}\n", indented(command)),
                None => format!("  Then: {}\n", indented(remedy)),
            });
        }
    }
    match failure.unmet.len() - shown.len() + failure.more as usize {
        0 => {}
        more => out.push_str(&format!("  and {more} more\n")),
    }
    out
}

/// One paragraph, safe for a terminal, of bounded length.
fn indented(text: &str) -> String {
    let mut out = String::new();
    for (index, c) in text.chars().enumerate() {
        match c {
            _ if index == SENTENCE_CHARS_MAX => {
                out.push('…');
                break;
            }
            '\n' => out.push_str("\n    "),
            c => push_visible(&mut out, c),
        }
    }
    out
}

/// A line of somebody's, with whatever a terminal would obey shown instead.
pub fn visible(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        push_visible(&mut out, c);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_one_screen_and_inert() {
        let mut failure = Failure::refused(
            "CONFIRM_BLOCKED",
            "x\u{1b}]52;c;\u{202e}".repeat(400),
            "run: countersign status",
        );
        failure.unmet = vec![failure.unmet[0].clone(); 40];
        let words = words(&failure);
        assert!(words.lines().count() <= 24, "{words}");
        assert!(!words.contains(['\u{1b}', '\u{202e}']));
        assert!(words.starts_with("refused CONFIRM_BLOCKED\n"));
        assert!(words.contains("  Run: countersign status\n"));
        assert!(words.ends_with("  and 32 more\n"));
    }

    #[test]
    fn an_answer_is_inert_whatever_a_path_holds() {
        let shown = shown("copied to \u{1b}[2J/x\n\tdone ä😀\n");
        assert!(shown.starts_with("copied to ") && shown.ends_with("/x\n\tdone ä😀\n"), "{shown}");
        assert!(!shown.contains('\u{1b}'), "{shown}");
        assert_eq!(super::shown(&shown), shown, "what is shown already stays");
    }

    #[test]
    fn json_is_inert_and_keeps_its_value() {
        let hostile = "a\u{9b}2J\u{202e}\u{e0041}\u{1b}\u{7f}\u{200b}\n\"é😀";
        let value = serde_json::json!({ "text": hostile, "\u{202e}": [hostile] });
        let printed = inert(&value);
        assert!(!printed.chars().any(is_hidden), "{printed:?}");
        assert!(printed.contains("\\u009b2J\\u202e\\udb40\\udc41"), "{printed}");
        assert_eq!(serde_json::from_str::<Value>(&printed).unwrap(), value);
    }

    #[test]
    fn a_remedy_that_is_no_command_is_not_told_as_one() {
        let failure = Failure::refused("WITHDRAWN", "parser@2 was withdrawn", "wait for app's next version");
        assert_eq!(
            words(&failure),
            "refused WITHDRAWN\n  parser@2 was withdrawn\n  Then: wait for app's next version\n"
        );
    }
}
