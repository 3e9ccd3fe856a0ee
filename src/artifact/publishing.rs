//! Moving refs to what a circle published: all of them or none, and only from where they were.
//!
//! What is moved is written down first, in the same transaction: a record, which a ref of the server's own keeps in
//! the repository. Git checks every ref before it moves the first. Who may write the repository's files may write a
//! record, too: whoever finds one believes nothing of it that merging again doesn't give, and counts a ref as moved
//! only where it stands at what the record says, or follows that.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::git::{Answer, Git, SHORT};
use super::merge::is_ancestor;
use super::repository::{Repository, check_ref_name};
use super::{Fault, Result};
use crate::protocol::escalation::{MovedRef, RECORDS, record_ref};
use crate::protocol::name::{Digest, shown};
use crate::protocol::review::{PublishedRef, Run};

/// The longest record that is read, in bytes.
const RECORD_BYTES_MAX: usize = 4 << 20;

/// What git may print when it lists records, in bytes.
const LIST_BYTES_MAX: usize = 16 << 20;

/// How long moving refs may take: whoever ends git between two of them leaves some where they were.
const TRANSACTION_TIME_MAX: Duration = Duration::from_secs(600);

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
    /// One of them was elsewhere by then; nothing moved.
    Refused,
}

/// How far a record's refs are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// All of them stand at what was published, or follow it.
    Done,
    /// These do. Of the others at least one is elsewhere, or none was moved yet.
    Partly(Vec<PublishedRef>),
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

    /// Moves the record's refs in one transaction, and keeps the record in it. Those in `done` were moved before.
    ///
    /// # Errors
    /// [`Refused::RefName`](super::Refused::RefName). [`Fault::Git`] where git refuses although every ref is where it
    /// was: something else holds them.
    pub async fn publish(&self, record: &Record, done: &[PublishedRef]) -> Result<Moving> {
        for one in &record.refs {
            check_ref_name(&one.name)?;
        }
        let text = serde_json::to_vec(record).expect("a record has string keys and no failing part");
        let asked = ["hash-object", "-t", "blob", "-w", "--stdin"];
        let answer = self.desk.run_with_input(&asked, &text, SHORT).await?.ok()?;
        let kept = answer.word()?.to_owned();
        // It comes first: git moves refs in this order, and may be cut off between two of them.
        let mut input = format!("create {}\0{kept}\0", record_ref(&record.manifest)).into_bytes();
        let moving: Vec<&PublishedRef> = record.refs.iter().filter(|one| !done.contains(one)).collect();
        for one in &moving {
            input.extend_from_slice(self.update(one).as_bytes());
        }
        let Some(refusal) = self.transact(&input).await? else { return Ok(Moving::Done) };
        if self.resolve(&record_ref(&record.manifest)).await?.is_some() {
            return Ok(Moving::Refused);
        }
        for one in moving {
            if self.tip(&one.name).await? != one.from {
                return Ok(Moving::Refused);
            }
        }
        Err(refusal.fault().into())
    }

    /// How far a record's refs are. A crash between two of them leaves the ones behind it where they were: where
    /// some were moved these are, too. Where none was, nothing is moved by a record alone.
    ///
    /// # Errors
    /// [`Refused::RefName`](super::Refused::RefName).
    pub async fn finish(&self, record: &Record) -> Result<Standing> {
        let (mut done, mut left) = (Vec::new(), Vec::new());
        let mut elsewhere = false;
        for one in &record.refs {
            let tip = self.tip(&one.name).await?;
            match &tip {
                Some(tip) if is_ancestor(&self.desk, &one.to, tip).await? => done.push(one.clone()),
                _ if tip == one.from => left.push(one),
                _ => elsewhere = true,
            }
        }
        let moved = done.iter().any(|one| one.from.as_ref() != Some(&one.to));
        if elsewhere || (!left.is_empty() && !moved) {
            return Ok(Standing::Partly(done));
        }
        let input: String = left.iter().map(|one| self.update(one)).collect();
        if input.is_empty() {
            return Ok(Standing::Done);
        }
        match self.transact(input.as_bytes()).await? {
            None => Ok(Standing::Done),
            // Moved meanwhile, perhaps: whoever looks again sees it.
            Some(refusal) => Err(refusal.fault().into()),
        }
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
        match self.transact(input.as_bytes()).await? {
            None => Ok(Moving::Done),
            Some(_) if self.tip(name).await? != *to => Ok(Moving::Refused),
            Some(refusal) => Err(refusal.fault().into()),
        }
    }

    /// The record of what a circle with that content published.
    pub async fn record(&self, manifest: &Digest) -> Result<Option<Record>> {
        match self.resolve(&record_ref(manifest)).await? {
            Some(kept) => Ok(Some(read_record(self.refs(), &kept).await?)),
            None => Ok(None),
        }
    }

    /// Lets go of a record, once the log says the same.
    pub async fn forget_record(&self, manifest: &Digest) -> Result<()> {
        let asked = ["update-ref", "--no-deref", "-d", &record_ref(manifest)];
        self.refs().run(&asked, SHORT).await?.ok()?;
        Ok(())
    }

    fn update(&self, one: &PublishedRef) -> String {
        let nothing = "0".repeat(one.to.as_str().len());
        let from = one.from.as_ref().map_or(nothing.as_str(), Digest::as_str);
        format!("update {}\0{}\0{from}\0", one.name, one.to)
    }

    /// All of it, or git's refusal.
    async fn transact(&self, input: &[u8]) -> Result<Option<Answer>> {
        let asked = ["update-ref", "--no-deref", "-z", "--stdin"];
        let git = self.refs().clone().with_time_max(TRANSACTION_TIME_MAX);
        let answer = git.run_with_input(&asked, input, SHORT).await?;
        match answer.code {
            Some(0) => Ok(None),
            // Another holds the ref, or moved it, or made it.
            Some(128) if answer.said.contains("cannot lock ref") => Ok(Some(answer)),
            _ => Err(answer.fault().into()),
        }
    }
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
            && name == record_ref(&record.manifest)
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
