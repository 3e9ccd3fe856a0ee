//! Secrets: what must not enter the log, where it would stand for ever. They are known by the forms that
//! their issuers give them, so that a scanner can tell them from words; nothing is guessed.

/// A secret that was found in a text. It is never told itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Secret {
    /// What it is.
    pub kind: &'static str,
    /// Its line; the first is 1.
    pub line: u32,
}

/// How an issuer writes its secrets: a prefix, then at least so many characters of a class.
struct Form {
    kind: &'static str,
    prefix: &'static str,
    class: fn(u8) -> bool,
    least: usize,
}

const fn form(kind: &'static str, prefix: &'static str, class: fn(u8) -> bool, least: usize) -> Form {
    Form { kind, prefix, class, least }
}

fn alphanumeric(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
}

fn upper(byte: u8) -> bool {
    byte.is_ascii_uppercase() || byte.is_ascii_digit()
}

fn hexadecimal(byte: u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'a'..=b'f')
}

fn word(byte: u8) -> bool {
    alphanumeric(byte) || matches!(byte, b'-' | b'_')
}

fn path(byte: u8) -> bool {
    word(byte) || byte == b'/'
}

/// Every form, by its issuer.
const FORMS: &[Form] = &[
    form("a token of this server", "csgn_", hexadecimal, 64),
    form("an AWS access key id", "AKIA", upper, 16),
    form("a temporary AWS access key id", "ASIA", upper, 16),
    form("a GitHub token", "ghp_", alphanumeric, 36),
    form("a GitHub token", "gho_", alphanumeric, 36),
    form("a GitHub token", "ghu_", alphanumeric, 36),
    form("a GitHub token", "ghs_", alphanumeric, 36),
    form("a GitHub token", "ghr_", alphanumeric, 36),
    form("a GitHub token", "github_pat_", word, 40),
    form("a GitLab token", "glpat-", word, 20),
    form("a Slack token", "xoxb-", word, 20),
    form("a Slack token", "xoxp-", word, 20),
    form("a Slack webhook", "https://hooks.slack.com/services/T", path, 20),
    form("a Stripe key", "sk_live_", alphanumeric, 24),
    form("a Stripe key", "rk_live_", alphanumeric, 24),
    form("a Google API key", "AIza", word, 35),
    form("an npm token", "npm_", alphanumeric, 36),
    form("a PyPI token", "pypi-AgEIcHlwaS5vcmc", word, 50),
];

const PEM_BEGIN: &str = "-----BEGIN ";
const PEM_END: &str = "PRIVATE KEY-----";

/// The longest kind of key between the two.
const PEM_KIND_BYTES_MAX: usize = 32;

/// The first secret in a text, by its place.
pub fn find(text: &str) -> Option<Secret> {
    let formed = FORMS.iter().filter_map(|form| Some((find_form(text, form)?, form.kind)));
    let key = find_key(text).map(|at| (at, "a private key"));
    let (at, kind) = formed.chain(key).min_by_key(|(at, _)| *at)?;
    let line = text[..at].matches('\n').count() + 1;
    Some(Secret { kind, line: u32::try_from(line).unwrap_or(u32::MAX) })
}

/// Whether it is worth while to look for a secret in a line. Cheap: every form has a long word in it, or
/// a row of dashes before it.
pub fn may_stand_in(line: &[u8]) -> bool {
    const WORD_BYTES: usize = 16;
    const DASHES: usize = 5;
    let (mut run, mut dashes) = (0, 0);
    line.iter().any(|byte| {
        run = if path(*byte) { run + 1 } else { 0 };
        dashes = if *byte == b'-' { dashes + 1 } else { 0 };
        run >= WORD_BYTES || dashes >= DASHES
    })
}

fn find_form(text: &str, form: &Form) -> Option<usize> {
    let bytes = text.as_bytes();
    let found = text.match_indices(form.prefix).find(|(at, _)| {
        let begins = at.checked_sub(1).is_none_or(|before| !word(bytes[before])) || escaped(&bytes[..*at]);
        let rest = &bytes[at + form.prefix.len()..];
        begins && rest.iter().take(form.least).take_while(|byte| (form.class)(**byte)).count() == form.least
    });
    found.map(|(at, _)| at)
}

/// Whether what ends here is an escape: `\n` in a JSON text, `%2F` in an address.
fn escaped(before: &[u8]) -> bool {
    match before {
        [.., b'\\', letter] => letter.is_ascii_alphabetic(),
        [.., b'%', high, low] => high.is_ascii_hexdigit() && low.is_ascii_hexdigit(),
        _ => false,
    }
}

fn find_key(text: &str) -> Option<usize> {
    let found = text.match_indices(PEM_BEGIN).find(|(at, _)| {
        let rest = &text.as_bytes()[at + PEM_BEGIN.len()..];
        let line = &rest[..rest.len().min(PEM_KIND_BYTES_MAX + PEM_END.len())];
        let end = line.iter().position(|byte| *byte == b'\n').unwrap_or(line.len());
        line[..end].windows(PEM_END.len()).any(|window| window == PEM_END.as_bytes())
    });
    found.map(|(at, _)| at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_known_by_their_forms_and_words_are_none() {
        let secrets = [
            (format!("csgn_{}", "0a".repeat(32)), "a token of this server"),
            ("AKIAIOSFODNN7EXAMPLE".to_owned(), "an AWS access key id"),
            (format!("x=ghp_{}", "a1B2".repeat(9)), "a GitHub token"),
            (format!("\"github_pat_{}\"", "a1_B".repeat(10)), "a GitHub token"),
            (format!("glpat-{}", "a-b_".repeat(5)), "a GitLab token"),
            (format!("xoxb-{}", "1234567890-".repeat(3)), "a Slack token"),
            (format!("sk_live_{}", "abc123".repeat(4)), "a Stripe key"),
            (format!("AIza{}", "Ab-_1".repeat(7)), "a Google API key"),
            ("-----BEGIN PRIVATE KEY-----".to_owned(), "a private key"),
            ("-----BEGIN OPENSSH PRIVATE KEY-----\nb3".to_owned(), "a private key"),
        ];
        for (text, kind) in secrets {
            assert_eq!(find(&text), Some(Secret { kind, line: 1 }), "{text}");
            assert!(text.lines().any(|line| may_stand_in(line.as_bytes())), "{text}");
            let within = format!("one\ntwo ä {text}\nthree");
            assert_eq!(find(&within), Some(Secret { kind, line: 2 }), "{within}");
            for escape in ["\\n", "%2F"] {
                assert_eq!(
                    find(&format!("x{escape}{text}")).map(|found| found.kind),
                    Some(kind),
                    "{escape}{text}"
                );
            }
        }
        for text in [
            "",
            "csgn_ and 256 random bits",
            "csgn_…",
            "AKIA is how they begin",
            "ghp_short",
            "MYAKIAIOSFODNN7EXAMPLE2",
            "a sk_live_ key",
            "-----BEGIN CERTIFICATE-----",
            "-----BEGIN RSA PUBLIC KEY-----",
            "-----BEGIN \nPRIVATE KEY-----",
        ] {
            assert_eq!(find(text), None, "{text}");
        }
    }

    #[test]
    fn the_first_of_several_is_told() {
        let text = format!("a\nAKIAIOSFODNN7EXAMPLE\nghp_{}", "a".repeat(36));
        assert_eq!(find(&text), Some(Secret { kind: "an AWS access key id", line: 2 }));
    }
}
