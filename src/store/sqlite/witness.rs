//! The witness: the head of every log, kept outside the database.
//!
//! The chain proves that a log is sound up to its end, and not that the end is still there. So each
//! commit is followed by a line here, and a log that is shorter, or has another chain at the witnessed
//! row, is refused.
//!
//! A team has two slots of fixed width side by side, in one sector of 512 bytes, written in turn: one
//! that a crash tore leaves the other. Each is a line of text that proves itself by a checksum.
//!
//! It is never ahead of the database, because it is written after the commit; it may be behind. After
//! a kill it is behind by one commit at most, for a write that returned outlives the process. After
//! a power loss it may be behind by as many as were not synced yet: a sync after every commit would
//! double what a command costs, and all that it would add is to notice the loss of rows whose own
//! fsync was already reported as done. A slot's first line alone is synced before its team stores
//! anything, so that a witness without a line is always a damaged one.

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use super::home::{create_private, io_fault, sync_folder};
use crate::protocol::name::{Digest, Seq, TeamName};
use crate::store::Fault;
use crate::store::chain::Tail;

const SLOT_BYTES: usize = 256;
const PAIR_BYTES: usize = 2 * SLOT_BYTES;
const CHECK_DIGITS: usize = 16;
/// How many commits a power loss may take from it.
const UNSYNCED_COMMITS_MAX: u32 = 1_024;
/// How often a reader looks again at a slot pair that the writer may be writing.
const READ_ATTEMPTS: usize = 3;

/// What the witness says of one log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mark {
    /// The last row there was.
    pub seq: Seq,
    /// The chain up to and with it.
    pub chain: Digest,
    /// Whether the log's other line is damaged, so that this may not be the newest one.
    pub alone: bool,
}

impl Mark {
    /// Beside a line that is not whole; one without a byte was never written.
    fn beside(self, other: &[u8]) -> Self {
        Self { alone: other.iter().any(|byte| *byte != 0), ..self }
    }

    /// Refuses a log that ends where its only whole line says, while the other line is damaged. A line that
    /// was torn as it was written followed a commit, so the log reaches past the one before it; a log that
    /// does not was cut, or a byte of the witness was changed.
    pub fn check_reached(&self, path: &Path, team: &TeamName, end: Seq) -> Result<(), Fault> {
        if self.alone && end <= self.seq {
            let what = format!("one of {team}'s lines is damaged, and the log does not reach past the other");
            return Err(fault(path, what));
        }
        Ok(())
    }
}

/// What the witness says of all logs.
pub(super) type Marks = BTreeMap<TeamName, Mark>;

/// The witness, open to write.
#[derive(Debug)]
pub(super) struct Witness {
    file: File,
    path: PathBuf,
    slots: HashMap<TeamName, Slot>,
    pairs: u64,
    unsynced_commits: u32,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    pair: u64,
    /// The half that is written next: the older one.
    next: u64,
}

impl Witness {
    /// Opens it, with what it says; none where there is no such file.
    pub fn open(path: &Path) -> Result<Option<(Self, Marks)>, Fault> {
        let file = match OpenOptions::new().read(true).write(true).open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(fault(path, error.to_string())),
        };
        let bytes = fs::read(path).map_err(|error| fault(path, error.to_string()))?;
        let read = Contents::of(path, &bytes)?;
        // A pair that was begun and never finished is written over: its team has no events yet.
        let pairs = (bytes.len() / PAIR_BYTES) as u64;
        let witness = Self { file, path: path.to_owned(), slots: read.slots, pairs, unsynced_commits: 0 };
        Ok(Some((witness, read.marks)))
    }

    /// Makes a new one, durable, in the place of any that was there.
    pub fn create(path: &Path, tails: &[(TeamName, Tail)]) -> Result<Self, Fault> {
        let unfinished = path.with_extension("new");
        match fs::remove_file(&unfinished) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(io_fault("removing", &unfinished, &error));
            }
            _ => {}
        }
        let file = create_private(&unfinished)?;
        let mut witness =
            Self { file, path: path.to_owned(), slots: HashMap::new(), pairs: 0, unsynced_commits: 0 };
        let written = tails
            .iter()
            .try_for_each(|(team, tail)| witness.append(team, tail))
            .and_then(|()| witness.sync())
            .and_then(|()| fs::rename(&unfinished, path));
        written.map_err(|error| io_fault("writing", path, &error))?;
        if let Some(folder) = path.parent() {
            sync_folder(folder)?;
        }
        Ok(witness)
    }

    /// Witnesses that this log ends there. A team's first line is to be synced before the team stores
    /// anything; later ones are from time to time.
    pub fn write(&mut self, team: &TeamName, tail: &Tail) -> io::Result<()> {
        let Some(Slot { pair, next }) = self.slots.get(team).copied() else {
            self.append(team, tail)?;
            self.unsynced_commits = UNSYNCED_COMMITS_MAX;
            return Ok(());
        };
        let at = pair * PAIR_BYTES as u64 + next * SLOT_BYTES as u64;
        self.file.write_all_at(line(team, tail.seq, &tail.link.digest()).as_bytes(), at)?;
        self.slots.insert(team.clone(), Slot { pair, next: 1 - next });
        Ok(())
    }

    /// Counts a commit whose lines were all written.
    pub fn committed(&mut self) {
        self.unsynced_commits += 1;
    }

    /// Whether what was written may stay unsynced no longer.
    pub fn owes_sync(&self) -> bool {
        self.unsynced_commits >= UNSYNCED_COMMITS_MAX
    }

    /// Makes durable what was written.
    pub fn sync(&mut self) -> io::Result<()> {
        self.file.sync_all()?;
        self.unsynced_commits = 0;
        Ok(())
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn append(&mut self, team: &TeamName, tail: &Tail) -> io::Result<()> {
        let line = line(team, tail.seq, &tail.link.digest());
        let pair = self.pairs;
        self.file.write_all_at(line.repeat(2).as_bytes(), pair * PAIR_BYTES as u64)?;
        self.slots.insert(team.clone(), Slot { pair, next: 0 });
        self.pairs += 1;
        Ok(())
    }
}

/// Reads what the witness says, also while a server writes it.
pub(super) fn read(path: &Path) -> Result<Marks, Fault> {
    let mut attempt = 1;
    loop {
        let bytes = fs::read(path).map_err(|error| fault(path, error.to_string()))?;
        match Contents::of(path, &bytes) {
            Ok(contents) => return Ok(contents.marks),
            Err(fault) if attempt == READ_ATTEMPTS => return Err(fault),
            Err(_) => attempt += 1,
        }
    }
}

/// The fault of a witness that can't be used.
pub(super) fn fault(path: &Path, what: String) -> Fault {
    Fault::Witness { path: path.display().to_string(), what }
}

/// The fault of a log with rows that the witness has no line for.
pub(super) fn unmarked(path: &Path, team: &TeamName) -> Fault {
    fault(path, format!("it has no line for {team}, which has a log"))
}

struct Contents {
    marks: Marks,
    slots: HashMap<TeamName, Slot>,
}

impl Contents {
    fn of(path: &Path, bytes: &[u8]) -> Result<Self, Fault> {
        let mut contents = Self { marks: BTreeMap::new(), slots: HashMap::new() };
        for (pair, halves) in (0..).zip(bytes.chunks_exact(PAIR_BYTES)) {
            let (first, second) = halves.split_at(SLOT_BYTES);
            let (team, mark, next) =
                match (parse(first), parse(second)) {
                    (Some((team, first)), Some((other, second))) if team == other => {
                        if first.seq >= second.seq { (team, first, 1) } else { (team, second, 0) }
                    }
                    (Some((team, mark)), None) => (team, mark.beside(second), 1),
                    (None, Some((team, mark))) => (team, mark.beside(first), 0),
                    // A file grew before its bytes arrived: a team that never stored anything.
                    (None, None) if halves.iter().all(|byte| *byte == 0) => continue,
                    _ => {
                        return Err(fault(
                            path,
                            format!("its lines {} and {} are damaged", 2 * pair + 1, 2 * pair + 2),
                        ));
                    }
                };
            contents.slots.insert(team.clone(), Slot { pair, next });
            if contents.marks.insert(team.clone(), mark).is_some() {
                return Err(fault(path, format!("it has two pairs of lines for {team}")));
            }
        }
        Ok(contents)
    }
}

/// `countersign-witness 1 TEAM SEQ CHAIN CHECK`, padded.
fn line(team: &TeamName, seq: Seq, chain: &Digest) -> String {
    let fact =
        format!("countersign-witness 1 {team:<64} {seq:020} {chain}", team = team.as_str(), seq = seq.0);
    let check = Digest::of_bytes(Sha256::digest(fact.as_bytes()).into());
    let line = format!("{fact} {}", &check.as_str()[..CHECK_DIGITS]);
    format!("{line:<width$}\n", width = SLOT_BYTES - 1)
}

fn parse(slot: &[u8]) -> Option<(TeamName, Mark)> {
    let mut words = std::str::from_utf8(slot).ok()?.split_ascii_whitespace().skip(2);
    let team: TeamName = words.next()?.parse().ok()?;
    let seq = Seq(words.next()?.parse().ok()?);
    let chain: Digest = words.next()?.parse().ok()?;
    // Written again it must be the same, byte for byte: that checks the checksum too.
    (line(&team, seq, &chain).as_bytes() == slot).then_some((team, Mark { seq, chain, alone: false }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::time::Time;
    use crate::store::chain::Link;

    fn tail(seq: u64) -> Tail {
        Tail { seq: Seq(seq), at: Time(0), link: Link::from([u8::try_from(seq).unwrap(); 32]) }
    }

    fn team(name: &str) -> TeamName {
        name.parse().unwrap()
    }

    fn marks(path: &Path) -> Marks {
        read(path).unwrap()
    }

    #[test]
    fn a_line_has_the_width_of_its_slot_for_the_longest_name() {
        let longest = team(&"a".repeat(64));
        for team in [longest, team("a")] {
            let line = line(&team, Seq(u64::MAX), &tail(1).link.digest());
            assert_eq!(line.len(), SLOT_BYTES);
            assert_eq!(parse(line.as_bytes()).unwrap().0, team);
        }
    }

    #[test]
    fn the_newest_line_counts_and_a_torn_one_leaves_the_one_before() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("witness");
        let mut witness = Witness::create(&path, &[(team("one"), tail(0)), (team("two"), tail(7))]).unwrap();
        for seq in 1..=3 {
            witness.write(&team("one"), &tail(seq)).unwrap();
            assert_eq!(marks(&path)[&team("one")].seq, Seq(seq));
        }
        assert_eq!(marks(&path)[&team("two")].seq, Seq(7));
        let whole = fs::read(&path).unwrap();
        // Lines 1 and 3 went into the first half, line 2 into the second: tear line 3.
        for cut in [0, 100, SLOT_BYTES - 2] {
            let mut torn = whole.clone();
            torn[cut] ^= 1;
            fs::write(&path, &torn).unwrap();
            let (mut reopened, found) = Witness::open(&path).unwrap().unwrap();
            assert_eq!(found[&team("one")].seq, Seq(2));
            // The good half is not the one that is written next.
            reopened.write(&team("one"), &tail(4)).unwrap();
            assert_eq!(fs::read(&path).unwrap()[SLOT_BYTES..PAIR_BYTES], whole[SLOT_BYTES..PAIR_BYTES]);
            assert_eq!(marks(&path)[&team("one")].seq, Seq(4));
        }
    }

    #[test]
    fn a_pair_that_is_damaged_in_both_halves_is_refused_and_an_unfinished_one_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("witness");
        Witness::create(&path, &[(team("one"), tail(1))]).unwrap();
        let whole = fs::read(&path).unwrap();
        let mut damaged = whole.clone();
        damaged[90] ^= 1;
        damaged[SLOT_BYTES + 90] ^= 1;
        fs::write(&path, &damaged).unwrap();
        assert!(matches!(read(&path), Err(Fault::Witness { .. })));
        for unfinished in
            [&line(&team("two"), Seq(0), &tail(0).link.digest()).as_bytes()[..80], &[0; PAIR_BYTES]]
        {
            fs::write(&path, [&whole, unfinished].concat()).unwrap();
            let (mut witness, found) = Witness::open(&path).unwrap().unwrap();
            assert_eq!(found.len(), 1);
            witness.write(&team("two"), &tail(0)).unwrap();
            assert_eq!(marks(&path).len(), 2);
        }
    }
}
