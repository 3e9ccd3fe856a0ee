//! What a text shows by its form: figures, ranges, places, commands, totals. Nothing here knows what words
//! mean; a word counts because it stands there.

/// What stands in a text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Form {
    /// Measured numbers, as they are written: `40 %`, `3x`, `120 ms`, `5,000/s`.
    pub(super) figures: Vec<String>,
    /// Whether a range is given.
    pub(super) range: bool,
    /// Whether it says how something was measured.
    pub(super) method: bool,
    /// Places such as `src/lexer.rs:112`.
    pub(super) places: usize,
    /// Commands in backquotes, or on a line after `$`.
    pub(super) commands: usize,
    /// Sentences that give a total.
    pub(super) totals: Vec<String>,
    /// Numbers, of whatever kind.
    pub(super) numbers: usize,
}

/// The most figures and totals that are named, and the most characters of one: more say nothing more.
const NAMED_MAX: usize = 4;
const TOTAL_CHARS_MAX: usize = 120;

/// What follows a number that was measured: units of time and the per cent sign. Sizes are left out: an
/// input of 2 GiB was chosen, not measured.
const UNITS: &[&str] =
    &["%", "ns", "µs", "us", "ms", "s", "sec", "seconds", "min", "minutes", "percent", "fps", "rps", "qps"];

/// After a number and a dash, words that say by how much one thing is more than another.
const FACTORS: &[&str] = &["x", "×", "times"];

/// What says by how much one thing is more than another: `3 times faster` is measured, `3 times` is counted.
const COMPARISONS: &[&str] =
    &["faster", "slower", "less", "more", "fewer", "smaller", "larger", "better", "worse", "quicker"];

/// What says, in the sentence of a number, that it was measured: a timeout of 30 seconds was set.
const MEASURING_WORDS: &[&str] = &[
    "takes",
    "took",
    "taking",
    "latency",
    "throughput",
    "speedup",
    "improved",
    "improves",
    "improvement",
    "reduced",
    "reduces",
    "saves",
    "saved",
    "overhead",
    "regression",
    "regressed",
    "ran",
    "runs",
    "measured",
    "benchmark",
    "benchmarked",
    "median",
    "average",
    "mean",
];

const METHOD_WORDS: &[&str] = &[
    "measured",
    "benchmark",
    "benchmarked",
    "benchmarks",
    "bench",
    "timed",
    "profiled",
    "sampled",
    "median",
    "mean",
    "average",
    "runs",
    "samples",
    "criterion",
    "perf",
    "hyperfine",
];

/// What ends the name of a file of text, as far as it has no folder before it.
const ENDINGS: &[&str] = &[
    "rs", "py", "js", "ts", "tsx", "jsx", "c", "h", "cc", "cpp", "hpp", "go", "java", "kt", "rb", "swift",
    "sh", "sql", "md", "toml", "json", "yaml", "yml", "html", "css", "txt", "proto", "lock", "xml", "cfg",
    "ini",
];

/// Files that have no ending.
const FILES: &[&str] = &["Makefile", "Dockerfile", "README", "LICENSE", "Cargo.lock"];

/// Programs that a command in plain words begins with.
const PROGRAMS: &[&str] = &[
    "cargo",
    "git",
    "npm",
    "npx",
    "yarn",
    "make",
    "pytest",
    "python",
    "python3",
    "go",
    "curl",
    "bash",
    "node",
    "countersign",
    "docker",
];

impl Form {
    pub(super) fn of(text: &str) -> Self {
        let mut form = Self::default();
        let prose = form.take_commands(text);
        for sentence in sentences(&prose) {
            form.sentence(sentence);
        }
        form
    }

    /// Counts commands; gives the text with spaces in their place, so that no option of one is a figure.
    fn take_commands(&mut self, text: &str) -> String {
        let mut prose = String::with_capacity(text.len());
        for line in text.split_inclusive('\n') {
            let shown = line.trim_start();
            if shown.starts_with("$ ") {
                self.commands += 1;
                prose.push('\n');
                continue;
            }
            let mut rest = line;
            while let Some((before, after)) = rest.split_once('`') {
                prose.push_str(before);
                let Some((quoted, after)) = after.split_once('`') else {
                    rest = after;
                    continue;
                };
                // One word in backquotes is a name in the code; a command has arguments.
                if quoted.trim().contains(char::is_whitespace) {
                    self.commands += 1;
                    prose.push(' ');
                } else if is_place(trimmed(quoted)) {
                    prose.push_str(quoted);
                } else if !quoted.trim().is_empty() {
                    self.places += 1;
                    prose.push_str(quoted);
                }
                rest = after;
            }
            prose.push_str(rest);
        }
        self.method |= self.commands > 0;
        prose
    }

    fn sentence(&mut self, sentence: &str) {
        let words: Vec<&str> = sentence.split_whitespace().collect();
        let lowered: Vec<String> = words.iter().map(|word| trimmed(word).to_lowercase()).collect();
        let says = |known: &[&str]| lowered.iter().any(|word| known.contains(&word.as_str()));
        let measures =
            says(COMPARISONS) || says(MEASURING_WORDS) || lowered.iter().any(|word| is_percentile(word));
        let commanded = lowered.windows(2).any(|two| PROGRAMS.contains(&two[0].as_str()));
        // `go` and `make` are words, too: a command follows a colon or `run`, or has an option.
        let run = commanded
            && (sentence.contains(':') || says(&["run", "ran", "running"]) || sentence.contains(" -"));
        if run {
            self.commands += 1;
            self.method = true;
        }
        let mut numbers = 0;
        for (index, word) in words.iter().enumerate() {
            let bare = trimmed(word);
            let lower = bare.to_lowercase();
            if METHOD_WORDS.contains(&lower.as_str()) || lower.starts_with("n=") {
                self.method = true;
            }
            if is_place(bare) {
                self.places += 1;
                continue;
            }
            self.range |= is_range(&lower, &words, index);
            let Some(number) = Number::of(bare) else { continue };
            numbers += 1;
            self.range |= number.is_range;
            let next = words.get(index + 1).map(|next| trimmed(next).to_lowercase());
            let after = words.get(index + 2).map(|after| trimmed(after).to_lowercase());
            if measures
                && let Some(figure) = number.figure(bare, next.as_deref(), after.as_deref())
                && self.figures.len() < NAMED_MAX
            {
                self.figures.push(figure);
            }
        }
        let total = (0..lowered.len()).any(|index| is_total(&lowered, index));
        if total && numbers > 0 && self.totals.len() < NAMED_MAX {
            self.totals.push(sentence.trim().chars().take(TOTAL_CHARS_MAX).collect());
        }
        self.numbers += numbers;
    }
}

/// Whether a total is given at that word: `total of 74`, `total: 74`, `74 in total`, `74 altogether`.
fn is_total(words: &[String], index: usize) -> bool {
    let number = |index: usize| words.get(index).is_some_and(|word| number_end(word).is_some());
    let before = || (1..=3).any(|back| index.checked_sub(back).is_some_and(number));
    let follows = |word: &str| words.get(index + 1).is_some_and(|next| next == word);
    match words[index].as_str() {
        "total" | "totals" => {
            number(index + 1)
                || (follows("of") && number(index + 2))
                || (1..=2).any(|back| {
                    // A total failure has no number; 74 tests in total have.
                    index.checked_sub(back).is_some_and(number)
                })
                || (index > 0 && words[index - 1] == "in" && before())
        }
        "totalling" => number(index + 1),
        "altogether" => before() || number(index + 1),
        "all" => {
            index > 0
                && words[index - 1] == "in"
                && (2..=4).any(|back| index.checked_sub(back).is_some_and(number))
        }
        _ => false,
    }
}

/// A word that begins with a number.
struct Number<'a> {
    /// Two numbers with a dash between.
    is_range: bool,
    /// What is written at its end without a space: `%`, `ms`, `x`, `/s`.
    suffix: &'a str,
}

impl<'a> Number<'a> {
    /// Nothing where the word is none: a name such as `p99`, a version such as `1.2.3`, an id such as `0x1f`.
    fn of(word: &'a str) -> Option<Self> {
        let (end, points) = number_end(word)?;
        let mut rest = &word[end..];
        let mut is_range = false;
        if points > 1 {
            return None;
        }
        for dash in ["-", "–", "—", "..", "±"] {
            if let Some(after) = rest.strip_prefix(dash)
                && let Some((end, _)) = number_end(after)
            {
                is_range = true;
                rest = &after[end..];
            }
        }
        let fits = rest.is_empty() || rest.starts_with('/') || rest == "%" || is_word(rest);
        fits.then_some(Self { is_range, suffix: rest })
    }

    /// The figure, where it was measured.
    fn figure(&self, word: &str, next: Option<&str>, after: Option<&str>) -> Option<String> {
        let suffix = self.suffix.to_lowercase();
        let compared = |word: Option<&str>| word.is_some_and(|word| COMPARISONS.contains(&word));
        if !suffix.is_empty() {
            let measured = UNITS.contains(&suffix.as_str())
                || FACTORS.contains(&suffix.as_str())
                || (suffix.starts_with('/') && suffix.len() > 1 && is_word(&suffix[1..]));
            return measured.then(|| word.to_owned());
        }
        let next = next?;
        let measured = UNITS.contains(&next)
            || next == "/s"
            || (FACTORS.contains(&next) && (next != "times" || compared(after)))
            || (next == "per" && matches!(after, Some("second" | "s" | "minute" | "hour")));
        let shown = || match next {
            "per" => format!("{word} per {}", after.unwrap_or_default()),
            next => format!("{word} {next}"),
        };
        measured.then(shown)
    }
}

/// Where the number at the start of a word ends, and how many points are in it.
fn number_end(word: &str) -> Option<(usize, usize)> {
    let bytes = word.as_bytes();
    let start = usize::from(matches!(bytes.first(), Some(b'+' | b'-' | b'~')));
    if !bytes.get(start)?.is_ascii_digit() {
        return None;
    }
    let mut points = 0;
    let mut end = start;
    while let Some(byte) = bytes.get(end) {
        let inside = bytes.get(end + 1).is_some_and(u8::is_ascii_digit);
        match byte {
            b'0'..=b'9' => {}
            b'.' if inside => points += 1,
            b',' | b'_' if inside => {}
            _ => break,
        }
        end += 1;
    }
    Some((end, points))
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && text.chars().all(char::is_alphabetic) || FACTORS.contains(&text)
}

/// A word without the marks around it.
fn trimmed(word: &str) -> &str {
    let mark = |c: char| matches!(c, '(' | ')' | '[' | ']' | '"' | '\'' | ',' | ';' | ':' | '!' | '?' | '*');
    word.trim_start_matches(mark).trim_end_matches(|c| c == '.' || mark(c))
}

/// `src/lexer.rs`, `src/lexer.rs:112`, `lexer.rs:80-140`.
fn is_place(word: &str) -> bool {
    let (path, lines) = match word.split_once(':') {
        Some((path, lines)) => (path, Some(lines)),
        None => (word, None),
    };
    let lined = lines.is_some_and(|lines| {
        !lines.is_empty() && lines.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'-' | b':'))
    });
    let name = path.rsplit('/').next().unwrap_or(path);
    let ending = name.rsplit_once('.').map(|(stem, ending)| (!stem.is_empty(), ending));
    let file = ending.is_some_and(|(named, ending)| {
        named
            && (1..=8).contains(&ending.len())
            && ending.bytes().all(|byte| byte.is_ascii_alphanumeric())
            && ending.bytes().any(|byte| byte.is_ascii_alphabetic())
    });
    let deep = path.contains('/') && !path.contains("//");
    let known =
        ending.is_some_and(|(named, ending)| named && ENDINGS.contains(&ending)) || FILES.contains(&name);
    let linked = word.starts_with("https://") || word.starts_with("http://");
    if linked {
        return true;
    }
    // `lexer.rs#L112`, as forges write it.
    if let Some((path, line)) = word.split_once('#') {
        return line.starts_with('L') && is_place(path);
    }
    if lines.is_some() { lined && (file || deep || known) } else { (deep && file) || known }
}

/// Whether a range is given at that word: `±`, `p99`, `at most`, `between`, `10 to 20`, `10 – 20`.
fn is_range(lower: &str, words: &[&str], index: usize) -> bool {
    let next = || words.get(index + 1).map(|next| trimmed(next).to_lowercase());
    let numbered = |index: Option<usize>| {
        let word = index.and_then(|index| words.get(index));
        word.is_some_and(|word| number_end(trimmed(word)).is_some())
    };
    match lower {
        "±" | "between" => true,
        "at" => matches!(next().as_deref(), Some("most" | "least")),
        // A unit may stand between: 10 ms to 20 ms.
        "to" | "-" | "–" | "—" => {
            numbered(Some(index + 1)) && (numbered(index.checked_sub(1)) || numbered(index.checked_sub(2)))
        }
        _ => is_percentile(lower),
    }
}

/// `p50`, `p99`.
fn is_percentile(lower: &str) -> bool {
    lower.strip_prefix('p').is_some_and(|digits| {
        (2..=3).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit())
    })
}

/// Parts that end with a line or with a point before a space.
fn sentences(text: &str) -> impl Iterator<Item = &str> {
    text.lines().flat_map(|line| line.split_inclusive(". ")).filter(|part| !part.trim().is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(text: &str) -> Vec<String> {
        Form::of(text).figures
    }

    #[test]
    fn figures_are_numbers_that_were_measured() {
        for (text, expected) in [
            ("40 % faster", vec!["40 %"]),
            ("now 40% faster.", vec!["40%"]),
            ("3x faster, 3 times faster", vec!["3x", "3 times"]),
            ("takes 120 ms (was 1.5s)", vec!["120 ms", "1.5s"]),
            ("throughput is 5,000/s, or 5000 per second", vec!["5,000/s", "5000 per second"]),
            ("a 2 GiB input, 12 tests, 3 times, version 1.2.3, o1, p99, 0x1f", vec![]),
            ("`bench --time 40s --runs 3` says so", vec![]),
            ("$ bench --time 40s\nall is well", vec![]),
            ("80-140 lines", vec![]),
        ] {
            assert_eq!(figures(text), expected, "{text}");
        }
        // What was set, agreed or merely counted was not measured.
        for text in [
            "Set the timeout to 30 seconds as the RFC says",
            "Why is the poll interval 1s?",
            "CSS width should be 50% here",
            "100 % agree",
            "I'm 90% sure",
            "Add a rate limit of 5/min",
            "The 1980s called",
            "Case 1: x is NaN",
            "Step 3: s is uninitialised",
            "a 2x asset",
        ] {
            assert_eq!(figures(text), Vec::<String>::new(), "{text}");
        }
    }

    #[test]
    fn ranges_and_methods_are_seen_by_their_form() {
        for (text, range, method) in [
            ("38–42 %, median of 5 runs", true, true),
            ("10 ms to 20 ms", true, false),
            ("120 ms ± 3", true, false),
            ("p99 is 3 ms", true, false),
            ("at most 3 ms", true, false),
            ("at once 3 ms, then to 20", false, false),
            ("3 ms by `cargo bench lexer`", false, true),
            ("3 ms in `lexer`", false, false),
            ("n=30: 3 ms", false, true),
        ] {
            let form = Form::of(text);
            assert_eq!((form.range, form.method), (range, method), "{text}");
        }
    }

    #[test]
    fn places_commands_and_totals_are_counted() {
        for (text, places, commands, totals, numbers) in [
            ("see src/lexer.rs:112, and (src/main.rs).", 2, 0, 0, 0),
            ("lexer.rs:80-140 but not lexer, 10:30 or a/b", 1, 0, 0, 0),
            ("README.md, Makefile and lexer.rs#L112 disagree", 3, 0, 0, 0),
            ("https://example.org/a.html#L3 shows it", 1, 0, 0, 0),
            ("run `cargo test lexer`, not `lexer`", 1, 1, 0, 0),
            ("Run: cargo test -p lexer", 0, 1, 0, 0),
            ("I make it so, and go on", 0, 0, 0, 0),
            ("$ cargo test\nfails", 0, 1, 0, 0),
            ("74 tests in total", 0, 0, 1, 1),
            ("74 in all: 40 and 34. A total of 3 is right.", 0, 0, 2, 4),
            ("a total failure", 0, 0, 0, 0),
            ("In all 3 call sites", 0, 0, 0, 1),
            ("Overall 2 things bother me", 0, 0, 0, 1),
            ("The sum type has 3 variants", 0, 0, 0, 1),
            ("If the total is 0, the division panics", 0, 0, 0, 1),
            ("a ` that never ends", 0, 0, 0, 0),
        ] {
            let form = Form::of(text);
            let found = (form.places, form.commands, form.totals.len(), form.numbers);
            assert_eq!(found, (places, commands, totals, numbers), "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_has_a_form(text in ".{0,200}", marks in "[0-9.,%`$ \n–±/:xp-]{0,80}") {
            Form::of(&text);
            Form::of(&marks);
        }
    }
}
