//! What a condition may be before anyone parses it, and what it may cost. Every limit has its home
//! here.

/// The longest rule file, in bytes.
pub const RULE_FILE_BYTES_MAX: usize = 16 << 10;
/// The most rules in a team's own folder.
pub const RULES_MAX: usize = 256;
/// The most bytes of all rules in a team's own folder: they stand in the log with each charter.
pub const OWN_RULES_BYTES_MAX: usize = 512 << 10;
/// The longest condition, in bytes.
pub const CONDITION_BYTES_MAX: usize = 2 << 10;
/// The deepest that brackets of a condition may stand in one another, of all kinds together.
pub const BRACKETS_DEEP_MAX: usize = 24;
/// The most parts of a condition: words, constants, operators and calls.
pub const PARTS_MAX: usize = 300;
/// The deepest that parts of a condition may stand in one another. A chain of `+` is as deep as it is
/// long, and so is the stack of whoever walks it.
pub const PARTS_DEEP_MAX: usize = 64;
/// The deepest that `all`, `exists` and `exists_one` may stand in one another.
pub const QUANTIFIERS_DEEP_MAX: usize = 2;
/// The longest pattern of `matches`, in bytes.
pub const PATTERN_BYTES_MAX: usize = 256;
/// The most patterns of one condition.
pub const PATTERNS_MAX: usize = 8;
/// The most patterns of all rules of a team's own: a compiled one takes as much memory as a small file.
pub const OWN_PATTERNS_MAX: usize = 128;
/// The largest compiled pattern, in bytes: room for a few Unicode classes.
pub const PATTERN_SIZE_MAX: usize = 256 << 10;
/// The longest text that a pattern is tried on, in bytes.
pub const PATTERN_TEXT_BYTES_MAX: usize = 4 << 10;
/// The most steps of one evaluation: one for each part seen, one for each 64 bytes of text compared or
/// searched, one for each byte that a pattern is tried on.
pub const STEPS_MAX: u32 = 50_000;

/// The stack of the thread that parses and compiles. The parser descends some fifteen frames for each
/// bracket; a condition within the bounds above takes well under a tenth of this.
pub(super) const STACK_BYTES: usize = 64 << 20;

/// Checks a condition's text before the parser sees it. Says where and what, if it is refused.
///
/// Brackets and quotes are read as CEL's lexer reads them. Where the two should ever disagree, the
/// parser's own limit on recursion and the large stack under it still hold.
pub(super) fn check(source: &str) -> Result<(), (usize, String)> {
    if source.len() > CONDITION_BYTES_MAX {
        let text = format!("a condition of {} bytes; {CONDITION_BYTES_MAX} are allowed", source.len());
        return Err((0, text));
    }
    // Names are ASCII, and so a look-alike letter can only be there to mislead whoever reads the rule.
    // A text that needs another letter has `\u00e9`.
    let plain = |c: char| c.is_ascii_graphic() || matches!(c, ' ' | '\n' | '\t');
    if let Some((at, c)) = source.char_indices().find(|(_, c)| !plain(*c)) {
        return Err((at, format!("the character U+{:04X}; a condition is plain ASCII", u32::from(c))));
    }
    let mut open = 0_usize;
    let mut rest = source;
    while let Some(c) = rest.chars().next() {
        let at = source.len() - rest.len();
        rest = match c {
            '"' | '\'' => &rest[text_len(rest, is_raw(&source[..at]))..],
            '/' if rest.starts_with("//") => &rest[rest.find('\n').unwrap_or(rest.len())..],
            _ => {
                match c {
                    '(' | '[' | '{' => open += 1,
                    ')' | ']' | '}' => open = open.saturating_sub(1),
                    _ => {}
                }
                if open > BRACKETS_DEEP_MAX {
                    return Err((at, format!("brackets more than {BRACKETS_DEEP_MAX} deep")));
                }
                &rest[1..]
            }
        };
    }
    Ok(())
}

/// Whether the prefix before a quote makes the text raw: `r"\"` is whole.
fn is_raw(before: &str) -> bool {
    before.ends_with(['r', 'R'])
}

/// The length of the text that `rest` begins with, its quotes included; all of it where it doesn't end.
fn text_len(rest: &str, raw: bool) -> usize {
    let triple = rest.starts_with("\"\"\"") || rest.starts_with("'''");
    let quote = &rest[..if triple { 3 } else { 1 }];
    let mut at = quote.len();
    while at < rest.len() {
        if rest[at..].starts_with(quote) {
            return at + quote.len();
        }
        at += if rest[at..].starts_with('\\') && !raw { 2 } else { 1 };
    }
    rest.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brackets_are_counted_outside_texts_and_comments_alone() {
        let deep = "(".repeat(BRACKETS_DEEP_MAX);
        assert_eq!(check(&deep), Ok(()));
        assert_eq!(check(&format!("{deep}(")).map_err(|(at, _)| at), Err(BRACKETS_DEEP_MAX));
        // Closers that are text must not hide openers that are not.
        for hidden in ["\"))))\"", "'))))'", "'''))))'''", r#"r"\" + "))))""#, r#""\"))))""#, "// ))))\n"] {
            let source = format!("{deep}{hidden}(");
            assert!(check(&source).is_err(), "{source}");
        }
        assert_eq!(check(&format!("'{}' == 'x'", "(".repeat(200))), Ok(()));
        assert_eq!(check("'never ended ("), Ok(()));
        assert_eq!(check("'\\"), Ok(()));
    }

    #[test]
    fn size_and_letters_are_bounded() {
        assert_eq!(check(&"1".repeat(CONDITION_BYTES_MAX)), Ok(()));
        assert!(check(&"1".repeat(CONDITION_BYTES_MAX + 1)).is_err());
        // A Cyrillic letter that looks like a Latin one.
        assert_eq!(check("prop\u{043e}sal.name").map_err(|(at, _)| at), Err(4));
        assert!(check("a\u{0}b").is_err());
    }
}
