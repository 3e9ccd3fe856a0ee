//! Mentions: whom a text names, as `@NAME`.

use std::collections::BTreeSet;

use crate::protocol::name::is_hidden;

/// The name that mentions everybody.
pub const ALL: &str = "all";

/// The names that a text mentions, in order, once each. What stands between backticks is code and mentions nobody;
/// nor does an `@` within a word, as in an address or a version (`app@example.org`, `parser@2`).
///
/// A name reaches as far as letters, digits and single `-`, `_` or `.` between them do, of whatever script: one that
/// only looks like a member's is no member's.
pub fn mentioned(text: &str) -> Vec<&str> {
    let mut names = Vec::new();
    let mut seen = BTreeSet::new();
    let mut rest = text;
    let mut within = None;
    while let Some(c) = rest.chars().next() {
        let after = &rest[c.len_utf8()..];
        if c == '`' {
            let ticks = rest.len() - rest.trim_start_matches('`').len();
            let code = &rest[ticks..];
            rest = after_code(code, ticks).unwrap_or(code);
            within = Some('`');
            continue;
        }
        if c == '@' && !within.is_some_and(is_of_a_word) {
            let name = name(after);
            if !name.is_empty() {
                if seen.insert(name) {
                    names.push(name);
                }
                within = name.chars().next_back();
                rest = &after[name.len()..];
                continue;
            }
        }
        within = Some(c);
        rest = after;
    }
    names
}

/// What follows the code that so many backticks opened; nothing where nothing closes it.
fn after_code(code: &str, ticks: usize) -> Option<&str> {
    let mut rest = code;
    loop {
        let from = rest.find('`')?;
        let found = rest[from..].len() - rest[from..].trim_start_matches('`').len();
        rest = &rest[from + found..];
        if found == ticks {
            return Some(rest);
        }
    }
}

fn is_of_a_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The name at the start of a text.
fn name(text: &str) -> &str {
    let part =
        |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.') || (is_hidden(c) && !c.is_control());
    let end = text.find(|c| !part(c)).unwrap_or(text.len());
    text[..end].trim_end_matches(['-', '_', '.'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mention_is_a_name_behind_its_sign() {
        for (text, names) in [
            ("@sec, look at this. @arch: and you?", vec!["sec", "arch"]),
            ("(@app-2) and @a.b. Then @sec again, @sec!", vec!["app-2", "a.b", "sec"]),
            ("@all", vec!["all"]),
            ("mail app@example.org about parser@2 and x_@sec", vec![]),
            ("`@Override` and ``a ` @param`` but @sec", vec!["sec"]),
            ("```\n@Test\n```\n@sec", vec!["sec"]),
            ("an open ` tick, @sec", vec!["sec"]),
            ("@ @, @@sec @-", vec!["sec"]),
            ("@s\u{435}c @sec\u{200b} @Sec", vec!["s\u{435}c", "sec\u{200b}", "Sec"]),
            ("@sec\u{1b}[2J", vec!["sec"]),
            ("", vec![]),
        ] {
            assert_eq!(mentioned(text), names, "{text:?}");
        }
    }
}
