//! Claude Code: hooks that read an object from standard input and answer with one on standard output.
//!
//! It checks what a stop hook answers, and takes nothing but `decision`, `reason` and `systemMessage`.
//! An exit of 2 would keep the agent, too, with whatever stands on standard error; so a hook that
//! can't be run must not end with it. Source: code.claude.com/docs/en/hooks, read in 2026.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::{Value, json};

use super::settings::{Object, Settings};
use super::{Asked, Harness, Line, Occasion, Said, Scope, SettingsFault};

/// Characters of one answer that the agent gets to read; a longer one is put into a file.
const SAID_CHARS_MAX: usize = 9_000;

/// Seconds after which a hook that hangs is ended. Ours end by themselves long before.
const HOOK_SECONDS_MAX: u32 = 5;

/// What it says. Fields that we don't need may be anything.
#[derive(Deserialize)]
struct Input {
    cwd: Option<PathBuf>,
    #[serde(default)]
    stop_hook_active: bool,
}

pub(super) fn read(input: &str) -> Result<Asked, String> {
    let input: Input = serde_json::from_str(input).map_err(|why| why.to_string())?;
    Ok(Asked { folder: input.cwd, kept_already: input.stop_hook_active })
}

pub(super) fn print(occasion: Occasion, said: &Said) -> String {
    let short = |text: &str| text.chars().take(SAID_CHARS_MAX).collect::<String>();
    let answer: Value = match said {
        Said::Nothing => return String::new(),
        Said::GoOn(reason) => json!({ "decision": "block", "reason": short(reason) }),
        Said::Beside(text) => json!({
            "hookSpecificOutput": { "hookEventName": event(occasion), "additionalContext": short(text) }
        }),
        Said::Aside(text) => json!({ "systemMessage": short(text) }),
    };
    crate::cli::output::inert(&answer)
}

/// Its own name for a occasion.
fn event(occasion: Occasion) -> &'static str {
    match occasion {
        Occasion::SessionStart => "SessionStart",
        Occasion::Prompt => "UserPromptSubmit",
        Occasion::Stop => "Stop",
    }
}

pub(super) fn settings(scope: Scope, root: &Path, home: &Path) -> PathBuf {
    match scope {
        Scope::Local => root.join(".claude/settings.local.json"),
        Scope::Project => root.join(".claude/settings.json"),
        Scope::User => home.join(".claude/settings.json"),
    }
}

/// `{"hooks": {EVENT: [{"hooks": [{"type": "command", "command": …, "timeout": …}]}]}}`.
pub(super) fn with_lines(text: &str, lines: &[Line]) -> Result<String, SettingsFault> {
    let settings = Settings::parse(&without_lines(text)?, Harness::ClaudeCode)?;
    let hooks = settings.object("hooks")?;
    for Line { occasion, command } in lines {
        let groups = hooks.array(event(*occasion))?;
        groups.push(&json!({
            "hooks": [{ "type": "command", "command": command, "timeout": HOOK_SECONDS_MAX }]
        }));
    }
    Ok(settings.text())
}

pub(super) fn without_lines(text: &str) -> Result<String, SettingsFault> {
    let settings = Settings::parse(text, Harness::ClaudeCode)?;
    if let Some(hooks) = settings.find_object("hooks")? {
        for occasion in Occasion::ALL {
            let Some(groups) = hooks.find_array(event(occasion))? else { continue };
            for group in groups.objects() {
                let Some(held) = group.find_array("hooks")? else { continue };
                let ours = held.objects().into_iter().filter(|hook| {
                    hook.word("command").is_some_and(|word| Harness::ClaudeCode.is_ours(&word))
                });
                let removed = ours.map(Object::remove).count();
                if removed > 0 && held.is_empty() {
                    group.remove();
                }
            }
            if groups.is_empty() {
                hooks.remove_member(event(occasion));
            }
        }
        if hooks.is_empty() {
            settings.remove_member("hooks");
        }
    }
    Ok(settings.text())
}

#[cfg(test)]
mod tests {
    use super::*;

    const OTHERS: &str = r#"{
    // kept by hand
    "model": "opus",
    "hooks": {
        "Stop": [
            { "hooks": [{ "type": "command", "command": "say done" }] }
        ]
    }
}
"#;

    fn with(text: &str) -> String {
        let flags = ["--as".to_owned(), "app".to_owned()];
        Harness::ClaudeCode.with_hooks(text, Path::new("/opt/my tools/countersign"), &flags).unwrap()
    }

    #[test]
    fn hooks_come_and_go_and_the_rest_stays_byte_for_byte() {
        for before in [OTHERS, "{}\n", "{\n  \"env\": {\"A\": \"1\"}\n}"] {
            let with_ours = with(before);
            assert_eq!(with_ours.matches(" --as app hook claude-code ").count(), 3, "{with_ours}");
            assert_eq!(with(&with_ours), with_ours, "again changes nothing");
            let after = Harness::ClaudeCode.without_hooks(&with_ours).unwrap();
            assert_eq!(after, before, "{with_ours}");
        }
        // What was on one line may be on several afterwards.
        let compact = "{\"hooks\":{\"PreToolUse\":[]}}";
        let after = Harness::ClaudeCode.without_hooks(&with(compact)).unwrap();
        let read = |text: &str| serde_json::from_str::<Value>(text).unwrap();
        assert_eq!(read(&after), read(compact));
    }

    #[test]
    fn lines_of_ours_are_of_the_form_that_it_reads() {
        let text = with("");
        let read: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(
            read["hooks"]["Stop"][0]["hooks"][0],
            json!({
                "type": "command",
                "command": "'/opt/my tools/countersign' --as app hook claude-code stop",
                "timeout": 5,
            })
        );
        assert_eq!(read["hooks"].as_object().unwrap().len(), 3);
    }

    #[test]
    fn settings_of_another_form_are_left_alone() {
        let told = |text: &str| Harness::ClaudeCode.without_hooks(text).unwrap_err().to_string();
        assert_eq!(told("{\"hooks\": []}"), "\"hooks\" is not of the form that claude-code reads",);
        assert_eq!(told("{\"hooks\": {\"Stop\": {}}}"), "\"Stop\" is not of the form that claude-code reads");
        assert!(told("{").contains("line 1"), "{}", told("{"));
    }

    #[test]
    fn whatever_else_it_says_may_be_anything() {
        let asked = read(r#"{"session_id":"x","cwd":"/c","stop_hook_active":true,"new":[1]}"#).unwrap();
        assert_eq!(asked, Asked { folder: Some("/c".into()), kept_already: true });
        assert_eq!(read("{}").unwrap(), Asked::default());
        assert!(read("").is_err());
    }

    #[test]
    fn what_is_said_is_one_line_without_anything_that_a_terminal_obeys() {
        let said = Said::GoOn("a\u{1b}]52;c;\u{202e}\nb".to_owned());
        assert_eq!(
            print(Occasion::Stop, &said),
            "{\"decision\":\"block\",\"reason\":\"a\\u001b]52;c;\\u202e\\nb\"}"
        );
        assert_eq!(print(Occasion::Stop, &Said::Nothing), "");
        let beside = print(Occasion::Prompt, &Said::Beside("x".repeat(20_000)));
        assert!(beside.len() < 10_000 && beside.contains("UserPromptSubmit"), "{}", beside.len());
    }
}
