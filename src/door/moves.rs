//! What a push asks for, as git tells a pre-receive hook: a line `old new ref` for each ref.

/// All lines of one push, in bytes: what fits into one question to the server.
pub const MOVES_BYTES_MAX: usize = 3 << 20;

/// One ref, and where a push wants it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Move {
    /// The ref's full name. Git lets it be any bytes but a few.
    pub name: Vec<u8>,
    /// Where it is; zeros where it isn't there.
    pub from: String,
    /// Where it is to be; zeros to delete it.
    pub to: String,
    /// What kind of object that is; empty where nobody looked.
    pub kind: String,
}

/// Lines that are not of git's form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {0} is not \"OLD NEW REF\"")]
pub struct NotMoves(pub usize);

impl Move {
    /// Whether the ref isn't there yet.
    pub fn creates(&self) -> bool {
        is_nothing(&self.from)
    }

    /// Whether the ref is to go.
    pub fn deletes(&self) -> bool {
        is_nothing(&self.to)
    }

    /// The name for people: bytes that are no text are shown as what they are.
    pub fn shown(&self) -> String {
        legible(&self.name)
    }
}

/// Reads a hook's standard input.
///
/// # Errors
/// [`NotMoves`] for anything that git doesn't write: what can't be read can't be judged.
pub fn parse_moves(input: &[u8]) -> Result<Vec<Move>, NotMoves> {
    let mut moves = Vec::new();
    let Some(lines) = input.strip_suffix(b"\n") else {
        return if input.is_empty() { Ok(moves) } else { Err(NotMoves(1)) };
    };
    for (index, line) in lines.split(|byte| *byte == b'\n').enumerate() {
        let read = || {
            let mut words = line.splitn(3, |byte| *byte == b' ');
            let (from, to, name) = (id(words.next()?)?, id(words.next()?)?, words.next()?);
            let sound = name.starts_with(b"refs/") && from.len() == to.len();
            sound.then(|| Move { name: name.to_vec(), from, to, kind: String::new() })
        };
        moves.push(read().ok_or(NotMoves(index + 1))?);
    }
    Ok(moves)
}

/// A whole object id.
fn id(word: &[u8]) -> Option<String> {
    let digits = word.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    let text = std::str::from_utf8(word).ok()?;
    (matches!(word.len(), 40 | 64) && digits).then(|| text.to_owned())
}

/// Whether an id says that there is nothing.
pub fn is_nothing(id: &str) -> bool {
    id.bytes().all(|byte| byte == b'0')
}

/// A ref's name as a text: itself where it is one, else with its bytes escaped.
pub(super) fn legible(name: &[u8]) -> String {
    match std::str::from_utf8(name) {
        Ok(text) => text.to_owned(),
        Err(_) => name.escape_ascii().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_git_does_not_write_is_not_read() {
        let (nothing, one) = ("0".repeat(40), "1".repeat(40));
        let good = format!("{nothing} {one} refs/heads/a b\n{one} {nothing} refs/tags/\u{202e}\n");
        let moves = parse_moves(good.as_bytes()).unwrap();
        assert_eq!(moves.len(), 2);
        assert!(moves[0].creates() && !moves[0].deletes() && moves[1].deletes());
        assert_eq!(moves[0].name, b"refs/heads/a b");
        assert_eq!(parse_moves(b""), Ok(Vec::new()));
        for (bad, line) in [
            (format!("{nothing} {one} refs/heads/main"), 1),
            (format!("{nothing} {one} HEAD\n"), 1),
            (format!("{nothing} {one}\n"), 1),
            (format!("{nothing} {one} refs/heads/a\n\n"), 2),
            (format!("{} {one} refs/heads/a\n", "0".repeat(64)), 1),
            (format!("{nothing} HEAD refs/heads/a\n"), 1),
            (format!("{} {} refs/heads/a\n", "A".repeat(40), one), 1),
        ] {
            assert_eq!(parse_moves(bad.as_bytes()), Err(NotMoves(line)), "{bad:?}");
        }
    }
}
