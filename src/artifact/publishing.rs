//! Moving refs to what a circle published: all of them or none, and only from where they were.
//!
//! What is moved is written down first, in the same transaction: a record, which a ref of the server's own keeps in
//! the repository. Git checks every ref before it moves the first. So a record says for certain that all of it was
//! to move; whoever finds one after a crash moves what is left, and reports it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::git::{Git, SHORT};
use super::repository::{Repository, check_ref_name};
use super::{Fault, Result};
use crate::protocol::escalation::MovedRef;
use crate::protocol::name::{Digest, shown};
use crate::protocol::review::{PublishedRef, Run};

/// Where records are kept, each by the digest of what its circle held. No proposal has such a name.
pub const RECORDS: &str = "refs/countersign/+published/";

/// The longest record that is read, in bytes.
const RECORD_BYTES_MAX: usize = 4 << 20;

/// What git may print when it lists records, in bytes.
const LIST_BYTES_MAX: usize = 16 << 20;

/// What one circle published.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// What the circle held, by its whole digest.
    pub manifest: Digest,
    /// Each ref, from where it moved, and where to.
    pub refs: Vec<PublishedRef>,
    /// The check that passed before.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub check: Option<Run>,
}

/// What came of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moving {
    /// All refs stand where they should.
    Done,
    /// One of them was elsewhere by then, or held by another; nothing moved.
    Refused,
}

impl Repository {
    /// Where a ref is, by its full name.
    ///
    /// # Errors
    /// [`Refused::RefName`](super::Refused::RefName).
    pub async fn tip(&self, reference: &str) -> Result<Option<Digest>> {
        check_ref_name(reference)?;
        self.resolve(reference).await
    }

    /// Moves the record's refs in one transaction, and keeps the record in it.
    ///
    /// # Errors
    /// [`Refused::RefName`](super::Refused::RefName).
    pub async fn publish(&self, record: &Record) -> Result<Moving> {
        for one in &record.refs {
            check_ref_name(&one.name)?;
        }
        let text = serde_json::to_vec(record).expect("a record has string keys and no failing part");
        let asked = ["hash-object", "-t", "blob", "-w", "--stdin"];
        let answer = self.desk.run_with_input(&asked, &text, SHORT).await?.ok()?;
        let kept = answer.word()?.to_owned();
        // It comes first: git moves refs in this order, and may be cut off between two of them.
        let mut input = format!("create {}\0{kept}\0", reference_of(&record.manifest)).into_bytes();
        for one in &record.refs {
            input.extend_from_slice(self.update(one).as_bytes());
        }
        self.transact(&input).await
    }

    /// Moves what of a record was left where it was.
    pub async fn finish(&self, record: &Record) -> Result<Moving> {
        let mut input = String::new();
        for one in &record.refs {
            if one.from.as_ref() != Some(&one.to) && self.tip(&one.name).await? == one.from {
                input.push_str(&self.update(one));
            }
        }
        if input.is_empty() { Ok(Moving::Done) } else { self.transact(input.as_bytes()).await }
    }

    /// Moves a ref from where it was found to where it belongs. That it is there already is as good.
    ///
    /// # Errors
    /// [`Refused::RefName`](super::Refused::RefName).
    pub async fn put_back(&self, moved: &MovedRef) -> Result<Moving> {
        let MovedRef { name, from, to } = moved;
        if self.tip(name).await? == *from {
            return Ok(Moving::Done);
        }
        let input = match (from, to) {
            (Some(from), Some(to)) => format!("update {name}\0{from}\0{to}\0"),
            (Some(from), None) => format!("create {name}\0{from}\0"),
            (None, Some(to)) => format!("delete {name}\0{to}\0"),
            (None, None) => return Ok(Moving::Done),
        };
        self.transact(input.as_bytes()).await
    }

    /// The record of what a circle with that content published.
    pub async fn record(&self, manifest: &Digest) -> Result<Option<Record>> {
        match self.resolve(&reference_of(manifest)).await? {
            Some(kept) => Ok(Some(read_record(self.refs(), &kept).await?)),
            None => Ok(None),
        }
    }

    /// Lets go of a record, once the log says the same.
    pub async fn forget_record(&self, manifest: &Digest) -> Result<()> {
        let asked = ["update-ref", "--no-deref", "-d", &reference_of(manifest)];
        self.refs().run(&asked, SHORT).await?.ok()?;
        Ok(())
    }

    fn update(&self, one: &PublishedRef) -> String {
        let nothing = "0".repeat(one.to.as_str().len());
        let from = one.from.as_ref().map_or(nothing.as_str(), Digest::as_str);
        format!("update {}\0{}\0{from}\0", one.name, one.to)
    }

    async fn transact(&self, input: &[u8]) -> Result<Moving> {
        let asked = ["update-ref", "--no-deref", "-z", "--stdin"];
        let answer = self.refs().run_with_input(&asked, input, SHORT).await?;
        match answer.code {
            Some(0) => Ok(Moving::Done),
            // Another holds the ref, or moved it, or made it.
            Some(128) if answer.said.contains("cannot lock ref") => Ok(Moving::Refused),
            _ => Err(answer.fault().into()),
        }
    }
}

/// The ref that keeps the record of a circle with that content.
pub fn reference_of(manifest: &Digest) -> String {
    format!("{RECORDS}{manifest}")
}

/// Every record of a repository, by the name of the ref that keeps it. What can't be read as one is left out.
pub async fn records(git: &Git) -> std::result::Result<BTreeMap<String, Record>, Fault> {
    let listed = git
        .run(&["for-each-ref", "--format=%(objectname) %(refname)", RECORDS], LIST_BYTES_MAX)
        .await?
        .ok()?;
    let mut records = BTreeMap::new();
    let text = String::from_utf8_lossy(&listed.stdout);
    for (kept, name) in text.lines().filter_map(|line| line.split_once(' ')) {
        let Ok(kept) = kept.parse() else { continue };
        if let Ok(record) = read_record(git, &kept).await
            && name == reference_of(&record.manifest)
        {
            records.insert(name.to_owned(), record);
        }
    }
    Ok(records)
}

async fn read_record(git: &Git, kept: &Digest) -> std::result::Result<Record, Fault> {
    let answer = git.run(&["cat-file", "blob", kept.as_str()], RECORD_BYTES_MAX).await?.ok()?;
    serde_json::from_slice(&answer.stdout).map_err(|why| Fault::Unreadable {
        verb: "cat-file".to_owned(),
        said: shown(&format!("{kept} is no record: {why}"), 200),
    })
}
