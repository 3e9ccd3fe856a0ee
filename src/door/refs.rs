//! Refs of the guarded repository, as they are.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;

use super::judge::{Guard, RefKind};
use super::moves::{Move, legible};
use crate::artifact::Fault;
use crate::artifact::git::Git;
use crate::artifact::repository::STAGING;
use crate::protocol::name::Digest;

/// What git may print when it lists refs, in bytes.
const LIST_BYTES_MAX: usize = 64 << 20;

/// How many symbolic refs one may lead through another; git gives up after as many.
const DEPTH_MAX: usize = 5;

/// What a file that holds a symbolic ref begins with.
const SYMBOLIC: &[u8] = b"ref:";

/// The most that is read of a ref's file, in bytes.
const REF_BYTES_MAX: u64 = 4096;

/// Every ref that the door guards, by its name, with the object that it is at.
///
/// # Errors
/// What git could not be asked, or more refs than can be told.
pub async fn guarded(git: &Git, guard: &Guard) -> Result<BTreeMap<String, String>, Fault> {
    let listed =
        git.run(&["for-each-ref", "--format=%(objectname) %(refname)"], LIST_BYTES_MAX).await?.ok()?;
    if listed.truncated {
        return Err(listed.unreadable());
    }
    let mut found = BTreeMap::new();
    for line in listed.stdout.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        let space = line.iter().position(|byte| *byte == b' ').ok_or_else(|| listed.unreadable())?;
        let (id, name) = (&line[..space], &line[space + 1..]);
        if matches!(guard.kind(name), RefKind::Protected | RefKind::Kept) {
            found.insert(legible(name), String::from_utf8_lossy(id).into_owned());
        }
    }
    Ok(found)
}

/// The commits that are staged, each by a ref of its own name.
///
/// # Errors
/// What git could not be asked.
pub async fn staged(git: &Git) -> Result<BTreeSet<Digest>, Fault> {
    let asked = ["for-each-ref", "--format=%(objectname) %(refname)", STAGING];
    let listed = git.run(&asked, LIST_BYTES_MAX).await?;
    // Of more than that the rest is told once these are gone.
    let text = String::from_utf8_lossy(&listed.stdout);
    let refs = text.lines().filter_map(|line| line.split_once(' '));
    let own = refs.filter(|(id, name)| name.strip_prefix(STAGING) == Some(*id));
    let staged = own.filter_map(|(id, _)| id.parse().ok()).collect();
    if listed.truncated { Ok(staged) } else { listed.ok().map(|_| staged) }
}

/// The symbolic refs among those that are pushed to, and where each leads in the end. One that leads to a ref that
/// isn't there yet is among them: a push to it makes that ref.
///
/// # Errors
/// What could not be read: a ref that can't be told to be symbolic may be one.
pub async fn aliases(git: &Git, moves: &[Move]) -> Result<BTreeMap<Vec<u8>, Vec<u8>>, Fault> {
    // Git keeps refs in files, unless it was told to keep them in tables; then only git can read them.
    let in_files = !git.folder().join("reftable").is_dir();
    let mut found = BTreeMap::new();
    for one in moves {
        let leads_to = if in_files { follow(git, &one.name)? } else { ask(git, &one.name).await? };
        if let Some(leads_to) = leads_to {
            found.insert(one.name.clone(), leads_to);
        }
    }
    Ok(found)
}

fn follow(git: &Git, name: &[u8]) -> Result<Option<Vec<u8>>, Fault> {
    let mut at = name.to_vec();
    for _ in 0..DEPTH_MAX {
        match step(git, &at)? {
            Some(next) => at = next,
            None => return Ok((at != name).then_some(at)),
        }
    }
    // Git would not follow it either. What leads nowhere that can be told is taken to lead to what is guarded.
    Ok(Some(b"refs/countersign".to_vec()))
}

/// Where a symbolic ref leads next.
fn step(git: &Git, name: &[u8]) -> Result<Option<Vec<u8>>, Fault> {
    // Git lets no such name through; a path is made of it here.
    let below = name
        .strip_prefix(b"refs/")
        .filter(|below| !below.split(|byte| *byte == b'/').any(|part| part == b".."));
    let Some(below) = below else { return Ok(None) };
    let path = git.folder().join("refs").join(OsStr::from_bytes(below));
    // A ref may also be a symbolic link to another's file.
    if let Ok(target) = std::fs::read_link(&path) {
        return Ok(Some(target.as_os_str().as_bytes().to_vec()));
    }
    let file = match std::fs::File::open(&path) {
        Ok(file) => file,
        // Not there, or only packed, and a packed ref is never symbolic.
        Err(why)
            if matches!(why.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory) =>
        {
            return Ok(None);
        }
        Err(why) => return Err(Fault::io(&path)(why)),
    };
    if file.metadata().map_err(Fault::io(&path))?.is_dir() {
        return Ok(None);
    }
    let mut text = Vec::new();
    file.take(REF_BYTES_MAX).read_to_end(&mut text).map_err(Fault::io(&path))?;
    Ok(text.strip_prefix(SYMBOLIC).map(|target| target.trim_ascii().to_vec()))
}

async fn ask(git: &Git, name: &[u8]) -> Result<Option<Vec<u8>>, Fault> {
    let asked = [
        OsStr::new("symbolic-ref"),
        "--quiet".as_ref(),
        "--end-of-options".as_ref(),
        OsStr::from_bytes(name),
    ];
    let answer = git.run(&asked, LIST_BYTES_MAX).await?;
    match answer.code {
        Some(0) => Ok(Some(answer.stdout.trim_ascii().to_vec())),
        Some(1) => Ok(None),
        _ => Err(answer.fault()),
    }
}
