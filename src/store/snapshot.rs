//! Snapshots: what a log added up to at some place, so that a start need not read all of it.
//!
//! A cache: every one can be deleted at any time, and nothing but time is lost. To the store its content is
//! bytes. It is sealed with a SHA-256 over all of it, and tells whose it is, which row it stands at, that row's
//! link in the chain, and which core wrote it. A snapshot that is damaged, of another team or core, or at a row
//! whose link is another one in the log, is as good as none.
//!
//! Pure: the stores do the reading and writing.

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::{Fault, Head};
use crate::protocol::name::{Digest, Seq, TeamName};

/// The form of what stands around the content.
const FORM: u32 = 1;

/// The bytes of the seal.
const SEAL_BYTES: usize = 32;

/// A team's state at a place in its log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// The last row that is in it, and its link.
    pub head: Head,
    /// Which core wrote it.
    pub core: String,
    /// The state.
    pub state: Vec<u8>,
}

/// Where snapshots are kept: one for each team.
pub trait Snapshots: Send + Sync {
    /// So many rows after the last snapshot the next one is worth its while.
    fn rows_between(&self) -> u64;

    /// The one of that team; nothing where there is none, or none that is whole.
    fn load(&self, team: &TeamName) -> Option<Snapshot>;

    /// Puts one in the place of the one before it.
    fn keep(&self, team: &TeamName, snapshot: &Snapshot) -> Result<(), Fault>;

    /// Takes it away, if there is one.
    fn forget(&self, team: &TeamName) -> Result<(), Fault>;
}

/// The first line of a kept snapshot.
#[derive(Serialize, Deserialize)]
struct Label {
    snapshot: u32,
    team: TeamName,
    seq: u64,
    chain: Digest,
    core: String,
}

/// The bytes that are kept: a line of JSON, the state, the seal.
pub(super) fn encode(team: &TeamName, snapshot: &Snapshot) -> Vec<u8> {
    let label = Label {
        snapshot: FORM,
        team: team.clone(),
        seq: snapshot.head.seq.0,
        chain: snapshot.head.chain.clone(),
        core: snapshot.core.clone(),
    };
    let mut bytes = serde_json::to_vec(&label).expect("a label has string keys and no failing part");
    bytes.reserve(1 + snapshot.state.len() + SEAL_BYTES);
    bytes.push(b'\n');
    bytes.extend(&snapshot.state);
    let seal = Sha256::digest(&bytes);
    bytes.extend(seal);
    bytes
}

/// The snapshot of that team in these bytes; nothing where they are not exactly what was kept.
pub(super) fn decode(team: &TeamName, mut bytes: Vec<u8>) -> Option<Snapshot> {
    let sealed = bytes.len().checked_sub(SEAL_BYTES)?;
    let (content, seal) = bytes.split_at(sealed);
    if Sha256::digest(content)[..] != *seal {
        return None;
    }
    let line = content.iter().position(|byte| *byte == b'\n')?;
    let label: Label = serde_json::from_slice(&content[..line]).ok()?;
    if label.snapshot != FORM || label.team != *team {
        return None;
    }
    bytes.truncate(sealed);
    let state = bytes.split_off(line + 1);
    Some(Snapshot { head: Head { seq: Seq(label.seq), chain: label.chain }, core: label.core, state })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept() -> (TeamName, Snapshot) {
        let chain = Digest::of_bytes([7; 32]);
        let head = Head { seq: Seq(5), chain };
        let state = b"{\"a\":1}\n\n".to_vec();
        ("demo".parse().unwrap(), Snapshot { head, core: "c0".to_owned(), state })
    }

    #[test]
    fn what_is_kept_comes_back_and_for_its_own_team_alone() {
        let (team, snapshot) = kept();
        let bytes = encode(&team, &snapshot);
        assert_eq!(decode(&team, bytes.clone()), Some(snapshot));
        assert_eq!(decode(&"other".parse().unwrap(), bytes), None);
    }

    #[test]
    fn a_snapshot_with_any_byte_flipped_cut_or_added_is_none() {
        let (team, snapshot) = kept();
        let bytes = encode(&team, &snapshot);
        for at in 0..bytes.len() {
            let mut flipped = bytes.clone();
            flipped[at] ^= 1;
            assert_eq!(decode(&team, flipped), None, "byte {at}");
            assert_eq!(decode(&team, bytes[..at].to_vec()), None, "cut at {at}");
        }
        assert_eq!(decode(&team, [bytes, vec![0]].concat()), None);
    }
}
