//! What is wrong with a charter, and where: a place in the text, with its excerpt.

use std::fmt;
use std::ops::Range;

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};

use super::super::name::{push_visible, shown};

/// Findings that are shown; of the rest, only how many there are.
pub const FINDINGS_SHOWN_MAX: usize = 20;

/// Characters of a charter's name that are shown.
const FILE_CHARS_MAX: usize = 200;

/// Characters of a line that are shown before and after the beginning of a finding.
const EXCERPT_CHARS_BEFORE: usize = 60;
const EXCERPT_CHARS_AFTER: usize = 100;

/// One finding: what is wrong at which place of a charter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// The place in bytes of the text, on the boundaries of characters.
    pub span: Range<usize>,
    /// What is wrong.
    pub what: String,
    /// What would be right, where that is known.
    pub help: Option<String>,
}

/// Everything that is wrong with one charter, in the order of the text; never empty.
///
/// Displayed, it is excerpts with their places, without colour, safe for a terminal whatever the
/// text holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostics {
    /// The charter's name, as the reader was given it.
    pub file: String,
    /// The text that the places are in; empty where it was too long to be read.
    pub text: String,
    /// The findings.
    pub findings: Vec<Diagnostic>,
}

/// A finding before its place is counted in lines.
pub(super) struct Finding {
    pub span: Range<usize>,
    pub what: String,
    pub help: Option<String>,
}

impl Diagnostics {
    pub(super) fn new(file: &str, text: &str, mut found: Vec<Finding>) -> Self {
        // Stable: what was found first at one place stays first.
        found.sort_by_key(|finding| finding.span.start);
        let line_starts: Vec<usize> =
            std::iter::once(0).chain(text.match_indices('\n').map(|(newline, _)| newline + 1)).collect();
        let findings = found
            .into_iter()
            .map(|Finding { span, what, help }| {
                let start = text.floor_char_boundary(span.start);
                let end = text.ceil_char_boundary(span.end).max(start);
                // 1 <= line, for the first line starts at 0 <= start.
                let line = line_starts.partition_point(|line_start| *line_start <= start);
                let column = text[line_starts[line - 1]..start].chars().count() + 1;
                Diagnostic { line, column, span: start..end, what, help }
            })
            .collect();
        Self { file: file.to_owned(), text: text.to_owned(), findings }
    }

    fn render(&self, finding: &Diagnostic) -> String {
        // The place is told in front and not by the renderer, which would count columns in the
        // excerpt: there, hidden characters are longer than in the text.
        let (file, Diagnostic { line, column, .. }) = (shown(&self.file, FILE_CHARS_MAX), finding);
        let title = format!("{file}:{line}:{column}: {}", finding.what);
        let mut report = Group::with_title(Level::ERROR.no_name().primary_title(title));
        let (excerpt, marked) = excerpt(&self.text, &finding.span);
        if !excerpt.is_empty() {
            let source = Snippet::source(&excerpt).line_start(finding.line);
            report = report.element(source.annotation(AnnotationKind::Primary.span(marked)));
        }
        if let Some(help) = &finding.help {
            report = report.element(Level::HELP.message(help));
        }
        Renderer::plain().render(&[report])
    }
}

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = &self.findings[..self.findings.len().min(FINDINGS_SHOWN_MAX)];
        for (index, finding) in shown.iter().enumerate() {
            if index > 0 {
                f.write_str("\n\n")?;
            }
            f.write_str(&self.render(finding))?;
        }
        match self.findings.len() - shown.len() {
            0 => Ok(()),
            more => write!(f, "\n\nand {more} more"),
        }
    }
}

impl std::error::Error for Diagnostics {}

/// The part of its line that a finding stands in, hidden characters made visible, and where in it
/// the finding is.
fn excerpt(text: &str, span: &Range<usize>) -> (String, Range<usize>) {
    let line_start = text[..span.start].rfind('\n').map_or(0, |newline| newline + 1);
    let line_end = text[span.start..].find('\n').map_or(text.len(), |newline| span.start + newline);
    let before = text[line_start..span.start].char_indices().rev().nth(EXCERPT_CHARS_BEFORE);
    let from = before.map_or(line_start, |(cut, _)| line_start + cut);
    let after = text[span.start..line_end].char_indices().nth(EXCERPT_CHARS_AFTER);
    let to = after.map_or(line_end, |(cut, _)| span.start + cut);

    let visible = |range: Range<usize>| {
        let mut out = String::new();
        for c in text[range].trim_end_matches('\r').chars() {
            if c == '\t' { out.push(' ') } else { push_visible(&mut out, c) }
        }
        out
    };
    let end = span.end.clamp(span.start, to);
    let mut out = if before.is_some() { "…".to_owned() } else { String::new() };
    out.push_str(&visible(from..span.start));
    let start_marked = out.len();
    out.push_str(&visible(span.start..end));
    let end_marked = out.len();
    out.push_str(&visible(end..to));
    if after.is_some() {
        out.push('…');
    }
    (out, start_marked..end_marked)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(text: &str, span: Range<usize>) -> Diagnostics {
        Diagnostics::new(
            "charter.toml",
            text,
            vec![Finding { span, what: "it is so".to_owned(), help: None }],
        )
    }

    #[test]
    fn lines_and_columns_are_counted_in_characters_from_one() {
        for (text, offset, line, column) in [
            ("", 0, 1, 1),
            ("abc", 0, 1, 1),
            ("abc", 3, 1, 4),
            ("a\nb", 1, 1, 2),
            ("a\nb", 2, 2, 1),
            ("a\r\nb", 3, 2, 1),
            ("é€😀x", 9, 1, 4),
            // Within a character: its beginning.
            ("é€😀x", 6, 1, 3),
            ("a\n", 2, 2, 1),
            // Past the end: the end.
            ("ab", 9, 1, 3),
        ] {
            let found = &one(text, offset..offset).findings[0];
            assert_eq!((found.line, found.column), (line, column), "{text:?} at {offset}");
        }
    }

    #[test]
    fn an_excerpt_is_inert_and_keeps_its_mark() {
        let text = "a = \"x\u{1b}]52;c;\u{7}\u{202e}\" # \tb\r\nc";
        let rendered = one(text, 4..17).to_string();
        assert!(!rendered.contains(['\u{1b}', '\u{7}', '\u{202e}', '\r', '\t']), "{rendered:?}");
        assert!(rendered.contains(r#"a = "x\u{1b}]52;c;\u{7}\u{202e}" #  b"#), "{rendered}");
    }

    #[test]
    fn an_excerpt_of_a_long_line_is_a_window() {
        let text = "é".repeat(100_000);
        let (out, marked) = excerpt(&text, &(100_000..100_004));
        assert_eq!(out.chars().count(), EXCERPT_CHARS_BEFORE + EXCERPT_CHARS_AFTER + 3);
        assert_eq!(&out[marked], "éé");
        assert!(out.starts_with('…') && out.ends_with('…'));
    }

    #[test]
    fn many_findings_are_counted_instead_of_shown() {
        let finding = |index: usize| Finding { span: 0..0, what: format!("finding {index}"), help: None };
        let all = Diagnostics::new("c", "x", (0..25).map(finding).collect());
        let rendered = all.to_string();
        assert!(rendered.contains("finding 19") && !rendered.contains("finding 20"), "{rendered}");
        assert!(rendered.ends_with("\n\nand 5 more"), "{rendered}");
        assert_eq!(all.findings.len(), 25);
    }
}
