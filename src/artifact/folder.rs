//! Folders of the caller's: reading one for a bundle, and writing an artifact into one.
//!
//! Both stand on the client's side of the wire, and block.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::bundle::{FILE_BYTES_MAX, FILES_MAX};
use super::{Entry, EntryKind, Fault, Refused, Result, path};
use crate::protocol::artifact::RepoPath;

/// Folders that one reading enters. Empty ones leave no trace in a bundle, but walking them costs.
const FOLDERS_MAX: usize = 20_000;

/// The files below a folder, in the order of their paths' bytes.
#[derive(Debug)]
pub struct FolderReader {
    root: PathBuf,
    paths: std::vec::IntoIter<Vec<u8>>,
}

/// Reads the files below `root` for a bundle. The whole folder is walked first, so that one that
/// can't be taken is refused before a byte is read.
///
/// A `.git` directly in `root` is left out: the clone's own history is never part of the work. Any
/// deeper one is refused, because leaving it out would silently drop what stands around it in a
/// nested repository. Empty folders leave no trace.
///
/// # Errors
/// [`Refused::TooLarge`], [`Refused::NotAFile`], [`Refused::UnsafePath`].
pub fn read_dir(root: &Path) -> Result<FolderReader> {
    let mut found: Vec<Vec<u8>> = Vec::new();
    let mut folders: Vec<Vec<u8>> = vec![Vec::new()];
    let mut folders_seen = 0;
    while let Some(folder) = folders.pop() {
        folders_seen += 1;
        if folders_seen > FOLDERS_MAX {
            return Err(too_many("folders", FOLDERS_MAX));
        }
        let place = below(root, &folder);
        for item in fs::read_dir(&place).map_err(Fault::io(&place))? {
            let item = item.map_err(Fault::io(&place))?;
            let name = item.file_name();
            if folder.is_empty() && name.as_bytes() == b".git" {
                continue;
            }
            let mut bytes = folder.clone();
            if !bytes.is_empty() {
                bytes.push(b'/');
            }
            bytes.extend_from_slice(name.as_bytes());
            let repo_path = RepoPath::from_bytes(&bytes);
            path::check(&repo_path)?;
            // Of the entry itself: a symbolic link is not followed.
            let kind = item.file_type().map_err(Fault::io(&item.path()))?;
            if kind.is_dir() {
                folders.push(bytes);
            } else if kind.is_file() {
                found.push(bytes);
                if found.len() > FILES_MAX {
                    return Err(too_many("files", FILES_MAX));
                }
            } else {
                return Err(Refused::NotAFile { path: repo_path, found: name_of(kind) }.into());
            }
        }
    }
    found.sort_unstable();
    Ok(FolderReader { root: root.to_owned(), paths: found.into_iter() })
}

fn too_many(what: &str, limit: usize) -> super::Failure {
    Refused::TooLarge { what: what.to_owned(), count: limit as u64 + 1, limit: limit as u64 }.into()
}

fn name_of(kind: fs::FileType) -> &'static str {
    if kind.is_symlink() {
        "a symbolic link"
    } else if kind.is_fifo() {
        "a pipe"
    } else if kind.is_socket() {
        "a socket"
    } else {
        "a device"
    }
}

fn below(root: &Path, bytes: &[u8]) -> PathBuf {
    if bytes.is_empty() { root.to_owned() } else { root.join(OsStr::from_bytes(bytes)) }
}

impl FolderReader {
    fn read(&self, bytes: &[u8]) -> Result<Entry> {
        let place = below(&self.root, bytes);
        let path = RepoPath::from_bytes(bytes);
        // What was a file during the walk may be something else by now; opening a pipe would hang.
        let kind = fs::symlink_metadata(&place).map_err(Fault::io(&place))?.file_type();
        if !kind.is_file() {
            return Err(Refused::NotAFile { path, found: name_of(kind) }.into());
        }
        let file = File::open(&place).map_err(Fault::io(&place))?;
        let mode = file.metadata().map_err(Fault::io(&place))?.mode();
        let mut content = Vec::new();
        file.take(FILE_BYTES_MAX + 1).read_to_end(&mut content).map_err(Fault::io(&place))?;
        let count = content.len() as u64;
        if count > FILE_BYTES_MAX {
            let what = format!("bytes in {path}");
            return Err(Refused::TooLarge { what, count, limit: FILE_BYTES_MAX }.into());
        }
        let kind = if mode & 0o100 == 0 { EntryKind::File } else { EntryKind::Executable };
        Ok(Entry { path, kind, bytes: content })
    }
}

impl Iterator for FolderReader {
    type Item = Result<Entry>;

    fn next(&mut self) -> Option<Self::Item> {
        let bytes = self.paths.next()?;
        Some(self.read(&bytes))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.paths.size_hint()
    }
}

/// Writes entries into a folder that holds nothing else, and never outside it.
///
/// Files are 0644 and those that may be run 0755, less the umask. A symbolic link is written as a
/// file that holds its target, as git does where there are none: following it is then nobody's
/// accident. A submodule is an empty folder.
#[derive(Debug)]
pub struct Extraction {
    root: PathBuf,
    // Only folders that were made here are entered, so no link that stood there before is followed.
    made: BTreeSet<Vec<u8>>,
}

impl Extraction {
    /// Into a new folder, made here, or an empty one.
    ///
    /// # Errors
    /// [`Refused::NotEmpty`].
    pub fn into_new(root: &Path) -> Result<Self> {
        match DirBuilder::new().mode(0o755).create(root) {
            Ok(()) => {}
            Err(exists) if exists.kind() == io::ErrorKind::AlreadyExists => {
                let is_empty = fs::symlink_metadata(root).map_err(Fault::io(root))?.is_dir()
                    && fs::read_dir(root).map_err(Fault::io(root))?.next().is_none();
                if !is_empty {
                    return Err(Refused::NotEmpty { path: root.to_owned() }.into());
                }
            }
            Err(other) => return Err(Fault::io(root)(other).into()),
        }
        Ok(Self { root: root.to_owned(), made: BTreeSet::new() })
    }

    /// Writes one entry.
    ///
    /// # Errors
    /// [`Refused::UnsafePath`]; [`Refused::PathTaken`] where something is there already.
    pub fn write(&mut self, entry: &Entry) -> Result<()> {
        let bytes = path::check(&entry.path)?;
        let slashes = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'/');
        for end in slashes.map(|(at, _)| at) {
            self.make(&entry.path, &bytes[..end])?;
        }
        let mode = match entry.kind {
            EntryKind::Submodule => return self.make(&entry.path, &bytes),
            EntryKind::Executable => 0o755,
            EntryKind::File | EntryKind::Symlink => 0o644,
        };
        let place = below(&self.root, &bytes);
        // create_new follows no link and replaces nothing.
        match OpenOptions::new().write(true).create_new(true).mode(mode).open(&place) {
            Ok(mut file) => Ok(file.write_all(&entry.bytes).map_err(Fault::io(&place))?),
            Err(problem) => Err(taken(&entry.path, &place, problem)),
        }
    }

    fn make(&mut self, path: &RepoPath, bytes: &[u8]) -> Result<()> {
        if self.made.contains(bytes) {
            return Ok(());
        }
        let place = below(&self.root, bytes);
        match DirBuilder::new().mode(0o755).create(&place) {
            Ok(()) => {
                self.made.insert(bytes.to_owned());
                Ok(())
            }
            Err(problem) => Err(taken(path, &place, problem)),
        }
    }
}

fn taken(path: &RepoPath, place: &Path, problem: io::Error) -> super::Failure {
    match problem.kind() {
        io::ErrorKind::AlreadyExists | io::ErrorKind::NotADirectory => {
            Refused::PathTaken { path: path.clone(), why: "is there already" }.into()
        }
        _ => Fault::io(place)(problem).into(),
    }
}

/// Writes all entries into a new or empty folder; how many there were. What was written before a
/// failure stays, for the caller to look at.
///
/// # Errors
/// Those of [`Extraction`], and the first failure among `entries`.
pub fn extract(entries: impl IntoIterator<Item = Result<Entry>>, into: &Path) -> Result<usize> {
    let mut extraction = Extraction::into_new(into)?;
    let mut count = 0;
    for entry in entries {
        extraction.write(&entry?)?;
        count += 1;
    }
    Ok(count)
}
