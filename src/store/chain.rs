//! The hash chain: each row proves itself and everything before it.
//!
//! A link is SHA-256 over a domain tag, the link before it, and every stored field of the row, each
//! with its length in front, so that no byte can move from one field to its neighbour unseen. The
//! first link, that of an empty log, depends on the team's name alone: a log does not verify under
//! another name.
//!
//! Pure: rows come in as values, and the stores do the reading.

use std::collections::BTreeMap;

use sha2::{Digest as _, Sha256};

use super::{Batch, CommitFault, Fault, Head, Refused, Row};
use crate::protocol::name::{Digest, Seq, TeamName};
use crate::protocol::time::Time;

/// The bytes of a link.
pub const LINK_BYTES: usize = 32;

const GENESIS_TAG: &[u8] = b"countersign log genesis 1";
const ROW_TAG: &[u8] = b"countersign log row 1";

/// The chain up to and with one row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link([u8; LINK_BYTES]);

impl Link {
    /// The link of that team's empty log.
    pub fn genesis(team: &TeamName) -> Self {
        let mut hash = Sha256::new();
        field(&mut hash, GENESIS_TAG);
        field(&mut hash, team.as_str().as_bytes());
        Self(hash.finalize().into())
    }

    /// The link of `row`, where `self` is the link of the row before it.
    #[must_use]
    pub fn next(&self, team: &TeamName, row: &Row) -> Self {
        let mut hash = Sha256::new();
        field(&mut hash, ROW_TAG);
        field(&mut hash, &self.0);
        field(&mut hash, team.as_str().as_bytes());
        field(&mut hash, &row.seq.0.to_be_bytes());
        field(&mut hash, &row.at.0.to_be_bytes());
        field(&mut hash, row.actor.to_string().as_bytes());
        field(&mut hash, row.kind.as_bytes());
        field(&mut hash, &row.schema.to_be_bytes());
        field(&mut hash, row.body.as_bytes());
        match &row.request {
            // Told apart from a request whose three fields are empty.
            None => hash.update([0]),
            Some(request) => {
                hash.update([1]);
                field(&mut hash, request.id.as_bytes());
                field(&mut hash, request.digest.as_str().as_bytes());
                field(&mut hash, request.answer.as_bytes());
            }
        }
        Self(hash.finalize().into())
    }

    /// The link as it is stored.
    pub fn as_bytes(&self) -> &[u8; LINK_BYTES] {
        &self.0
    }

    /// The link as the world outside the store sees it.
    pub fn digest(&self) -> Digest {
        Digest::of_bytes(self.0)
    }
}

impl From<[u8; LINK_BYTES]> for Link {
    fn from(bytes: [u8; LINK_BYTES]) -> Self {
        Self(bytes)
    }
}

/// Hashes one field with its length in front.
pub(super) fn field(hash: &mut Sha256, bytes: &[u8]) {
    hash.update((bytes.len() as u64).to_be_bytes());
    hash.update(bytes);
}

/// Where a log ends, in the form that appending and proving go on from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tail {
    /// The last row; 0 for an empty log.
    pub seq: Seq,
    /// When it was decided.
    pub at: Time,
    /// Its link.
    pub link: Link,
}

impl Tail {
    /// The end of that team's empty log.
    pub fn empty(team: &TeamName) -> Self {
        Self { seq: Seq(0), at: Time(i64::MIN), link: Link::genesis(team) }
    }

    /// The tail after `row`, which must be the next one and no earlier.
    pub fn follow(&self, team: &TeamName, row: &Row) -> Result<Self, Gap> {
        if row.seq.0 != self.seq.0 + 1 {
            return Err(Gap::Place { after: self.seq, found: row.seq });
        }
        if row.at < self.at {
            return Err(Gap::Time { seq: row.seq, at: row.at, before: self.at });
        }
        Ok(Self { seq: row.seq, at: row.at, link: self.link.next(team, row) })
    }

    /// The tail after the stored `row`, proved against its stored link.
    pub fn prove(&self, team: &TeamName, row: &Row, stored: &Link) -> Result<Self, Fault> {
        // The row that is named is the one that should stand here: in a gap the row that was
        // found instead is sound.
        let damaged = |what| Fault::Damaged { team: team.clone(), seq: Seq(self.seq.0 + 1), what };
        let next = self.follow(team, row).map_err(|gap| damaged(gap.to_string()))?;
        if next.link != *stored {
            return Err(damaged("the row does not match its chain".to_owned()));
        }
        Ok(next)
    }

    /// The same for those who only need to know where the log ends.
    pub fn head(&self) -> Head {
        Head { seq: self.seq, chain: self.link.digest() }
    }
}

/// Why a row can't stand after another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Gap {
    /// It has another place.
    #[error("after row {after} stands row {found}")]
    Place {
        /// The row before it.
        after: Seq,
        /// Its own place.
        found: Seq,
    },
    /// It is earlier than the row before it.
    #[error("row {seq} is of {at}, and the row before it of {before}")]
    Time {
        /// Its place.
        seq: Seq,
        /// Its time.
        at: Time,
        /// The time of the row before it.
        before: Time,
    },
}

/// What a batch adds to its log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Extension {
    /// A link for each of its rows.
    pub links: Vec<Link>,
    /// Where the log ends then.
    pub tail: Tail,
}

/// What each batch of a commit adds to its log, in order, or why it is refused; `tail_of` says where
/// a team's log ends now. A batch follows those of its team before it that weren't refused.
///
/// A batch whose rows can't stand in any log, with a gap in it or running back in time, is a fault
/// of the caller's: nothing of the commit is stored, rather than a log that won't verify.
pub(super) fn plan(
    batches: &[Batch],
    tail_of: impl Fn(&TeamName) -> Option<Tail>,
) -> Result<Vec<Result<Extension, Refused>>, CommitFault> {
    let mut tails: BTreeMap<&TeamName, Tail> = BTreeMap::new();
    let mut planned = Vec::with_capacity(batches.len());
    for Batch { team, rows } in batches {
        let Some(tail) = tails.get(team).copied().or_else(|| tail_of(team)) else {
            planned.push(Err(Refused::UnknownTeam { team: team.clone() }));
            continue;
        };
        if let Some(first) = rows.first().filter(|first| first.seq.0 != tail.seq.0 + 1) {
            let expected = Seq(first.seq.0.saturating_sub(1));
            planned.push(Err(Refused::Conflict { team: team.clone(), expected, found: tail.seq }));
            continue;
        }
        let mut extension = Extension { links: Vec::with_capacity(rows.len()), tail };
        for row in rows {
            extension.tail = extension.tail.follow(team, row).map_err(|gap| CommitFault::NotStored {
                reason: format!("a batch for {team} is not in order: {gap}"),
            })?;
            extension.links.push(extension.tail.link);
        }
        tails.insert(team, extension.tail);
        planned.push(Ok(extension));
    }
    Ok(planned)
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use proptest::prelude::*;

    use super::*;
    use crate::protocol::name::Actor;
    use crate::store::Request;

    fn team() -> TeamName {
        "demo".parse().unwrap()
    }

    fn request() -> impl Strategy<Value = Request> {
        (".{0,8}", any::<[u8; 32]>(), ".{0,8}").prop_map(|(id, digest, answer)| Request {
            id,
            digest: Digest::of_bytes(digest),
            answer,
        })
    }

    fn rows() -> impl Strategy<Value = Vec<Row>> {
        let row =
            (0..50_i64, "[a-z]{1,4}", "[a-z]{1,4}", any::<u32>(), ".{0,12}", prop::option::of(request()));
        prop::collection::vec(row, 1..6).prop_map(|fields| {
            let mut at = Time(1_000);
            let rows = fields.into_iter().zip(1..);
            rows.map(|((later, actor, kind, schema, body, request), seq)| {
                at = Time(at.0 + later);
                let actor = Actor::Member(actor.parse().unwrap());
                Row { seq: Seq(seq), at, actor, kind: Cow::Owned(kind), schema, body, request }
            })
            .collect()
        })
    }

    fn links(team: &TeamName, rows: &[Row]) -> Vec<Link> {
        let mut tail = Tail::empty(team);
        rows.iter()
            .map(|row| {
                tail = tail.follow(team, row).unwrap();
                tail.link
            })
            .collect()
    }

    fn prove(team: &TeamName, rows: &[Row], links: &[Link]) -> Result<Tail, Fault> {
        rows.iter().zip(links).try_fold(Tail::empty(team), |tail, (row, link)| tail.prove(team, row, link))
    }

    /// Every way to change one field of a row, by number.
    fn edit(row: &mut Row, field: usize) {
        let turned = |digest: &Digest| {
            let first = if digest.as_str().starts_with('0') { "1" } else { "0" };
            format!("{first}{}", &digest.as_str()[1..]).parse().unwrap()
        };
        match (field, &mut row.request) {
            (0, _) => row.seq.0 += 1,
            (1, _) => row.at.0 += 1,
            (2, _) => row.at.0 -= 1,
            (3, _) => row.actor = Actor::Server,
            (4, _) => row.kind.to_mut().push('x'),
            (5, _) => row.schema ^= 1,
            (6, _) => row.body.push('x'),
            (7, Some(request)) => request.id.push('x'),
            (8, Some(request)) => request.digest = turned(&request.digest),
            (9, Some(request)) => request.answer.push('x'),
            (10, some @ Some(_)) => *some = None,
            (_, request) => {
                // Also one byte moved over the border of two fields.
                if let Some(request) = request {
                    match request.answer.pop() {
                        Some(last) => request.id.push(last),
                        None => request.answer.push('x'),
                    }
                } else {
                    let (digest, id, answer) = (Digest::of_bytes([0; 32]), String::new(), String::new());
                    *request = Some(Request { id, digest, answer });
                }
            }
        }
    }

    proptest! {
        #[test]
        fn a_change_of_any_field_of_any_row_is_found_at_that_row(
            rows in rows(), which in any::<prop::sample::Index>(), field in 0..12_usize,
        ) {
            let links = links(&team(), &rows);
            prop_assert!(prove(&team(), &rows, &links).is_ok());
            let which = which.index(rows.len());
            let mut edited = rows.clone();
            edit(&mut edited[which], field);
            prop_assert_ne!(&edited, &rows);
            match prove(&team(), &edited, &links) {
                Err(Fault::Damaged { seq, .. }) => prop_assert_eq!(seq, rows[which].seq),
                other => prop_assert!(false, "{:?}", other),
            }
        }

        #[test]
        fn a_row_left_out_or_a_log_under_another_name_is_found(
            rows in rows(), which in any::<prop::sample::Index>(),
        ) {
            let mut links = links(&team(), &rows);
            let other: TeamName = "omed".parse().unwrap();
            prop_assert!(prove(&other, &rows, &links).is_err());
            let which = which.index(rows.len());
            let mut rows = rows;
            rows.remove(which);
            links.remove(which);
            // The last row alone can go unseen: that is what the witness is for.
            prop_assert_eq!(prove(&team(), &rows, &links).is_ok(), which == rows.len());
        }
    }

    #[test]
    fn a_link_is_what_it_was_in_the_first_release() {
        let digest = Digest::of_bytes([7; 32]);
        let row = Row {
            seq: Seq(1),
            at: Time(2),
            actor: Actor::Operator,
            kind: Cow::Borrowed("proposed"),
            schema: 1,
            body: "{}".to_owned(),
            request: Some(Request { id: "r".to_owned(), digest, answer: "{}".to_owned() }),
        };
        let genesis = Link::genesis(&team());
        insta::assert_snapshot!(
            format!("{}\n{}", genesis.digest(), genesis.next(&team(), &row).digest()),
            @"
        15d97ba5f5d7dee8cbca8553f4627d44778ef160fb775a200aa86aec0943e7d8
        fbfd978f0542ea51ff3098d6aa717f0aff78b2cdfb865d4f15a20e9c5849024a
        "
        );
    }
}
