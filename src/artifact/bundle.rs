//! Bundles: files kept by digest, for teams without a repository.
//!
//! ```text
//! artifacts/objects/ab/cdef…      a file's bytes, by their SHA-256; files shared by bundles are kept once
//! artifacts/manifests/ab/cdef…    a bundle's files, by the bundle's digest (see `manifest`)
//! artifacts/incoming/…            bundles that are arriving
//! ```
//!
//! Everything is written aside, flushed to the disk, and moved into place; the manifest last, so
//! that a bundle which has a digest is whole. Folders are 0700 and files 0600, whatever the umask
//! leaves out. What is read back is checked against its digest.

use std::collections::BTreeSet;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use sha2::{Digest as _, Sha256};
use tempfile::TempDir;
use tokio::sync::mpsc;

use super::lines::{self, Known, LineCache};
use super::manifest::{BundledFile, Manifest, sha256};
use super::path::PathSet;
use super::{
    Diff, Entries, Entry, EntryKind, Fault, FileChange, FileStatus, Refused, Result, secrets, unified,
};
use crate::protocol::artifact::{
    Artifact, ArtifactFacts, ArtifactKind, FOLLOWED_FILES_MAX, FoundSecret, Place, RepoPath, SECRETS_MAX,
};
use crate::protocol::name::Digest;

/// Files in one bundle.
pub const FILES_MAX: usize = 20_000;
/// All files of one bundle together, in bytes.
pub const BUNDLE_BYTES_MAX: u64 = 64 << 20;
/// One file of a bundle, in bytes.
pub const FILE_BYTES_MAX: u64 = 16 << 20;

/// How long the comparing of lines in one answer may take before it becomes coarser.
const COMPARE_TIME_MAX: Duration = Duration::from_secs(3);

/// The bundles of a server.
#[derive(Clone, Debug)]
pub struct Bundles {
    folders: Arc<Folders>,
    lines: Arc<LineCache>,
}

#[derive(Debug)]
struct Folders {
    objects: PathBuf,
    manifests: PathBuf,
    incoming: PathBuf,
}

impl Bundles {
    /// Opens the bundles below `folder`, made where missing. Whoever opens it is the only one to: what
    /// a server that was killed had half received is cleared away.
    pub fn open(folder: &Path) -> Result<Self> {
        let folders = Folders {
            objects: folder.join("objects"),
            manifests: folder.join("manifests"),
            incoming: folder.join("incoming"),
        };
        for path in [&folders.objects, &folders.manifests, &folders.incoming] {
            make_folder(path)?;
        }
        for left in fs::read_dir(&folders.incoming).map_err(Fault::io(&folders.incoming))? {
            let left = left.map_err(Fault::io(&folders.incoming))?.path();
            fs::remove_dir_all(&left).map_err(Fault::io(&left))?;
        }
        Ok(Self { folders: Arc::new(folders), lines: Arc::default() })
    }

    /// Takes the files of a new bundle as they arrive.
    pub fn builder(&self) -> Result<BundleBuilder> {
        let incoming = tempfile::Builder::new()
            .tempdir_in(&self.folders.incoming)
            .map_err(Fault::io(&self.folders.incoming))?;
        Ok(BundleBuilder {
            folders: self.folders.clone(),
            incoming,
            paths: PathSet::default(),
            manifest: Manifest::default(),
            arrived: BTreeSet::new(),
            open: None,
            total: 0,
        })
    }

    /// What is known of a bundle when it is proposed: the paths are those that were added, changed
    /// or removed since `previous`, and all of them where there is none.
    ///
    /// # Errors
    /// [`Refused::Unknown`].
    pub async fn facts(
        &self,
        digest: &Digest,
        previous: Option<&Digest>,
    ) -> Result<(Artifact, ArtifactFacts)> {
        let (digest, previous) = (digest.clone(), previous.cloned());
        self.blocking(move |folders| {
            let new = folders.manifest(&digest)?;
            let old = folders.manifest_or_nothing(previous.as_ref())?;
            let mut paths: Vec<RepoPath> = pairs(&old, &new).map(|(path, ..)| path.clone()).collect();
            paths.sort_unstable();
            let left = pairs(&old, &new).filter_map(|(.., file)| Some(file?.digest.clone()));
            let files: BTreeSet<Digest> = left.collect();
            let files = files.into_iter().take(FOLLOWED_FILES_MAX).collect();
            let secrets = folders.secrets(&old, &new)?;
            let facts = ArtifactFacts { empty: new.is_empty(), paths, files, authors: Vec::new(), secrets };
            let content = digest.clone();
            Ok((Artifact { kind: ArtifactKind::Bundle, digest, content, base: None }, facts))
        })
        .await
    }

    /// Whether the bundle holds the file with these lines.
    ///
    /// # Errors
    /// [`Refused::Unknown`].
    pub async fn has_place(&self, digest: &Digest, place: &Place) -> Result<bool> {
        if let Some(known) = self.lines.get(digest, &place.path) {
            return Ok(known.holds(place));
        }
        let (asked, path) = (digest.clone(), place.path.clone());
        let known = self
            .blocking(move |folders| {
                let manifest = folders.manifest(&asked)?;
                let Some(file) = manifest.get(&path) else { return Ok(Known::Absent) };
                Ok(Known::Lines(lines::count(&folders.object(file)?)))
            })
            .await?;
        self.lines.put(digest, &place.path, known);
        Ok(known.holds(place))
    }

    /// The files that differ between `from` (nothing where left out) and the bundle, by path.
    ///
    /// # Errors
    /// [`Refused::Unknown`].
    pub async fn files(&self, digest: &Digest, from: Option<&Digest>) -> Result<Vec<FileChange>> {
        let (digest, from) = (digest.clone(), from.cloned());
        self.blocking(move |folders| {
            let new = folders.manifest(&digest)?;
            let old = folders.manifest_or_nothing(from.as_ref())?;
            let deadline = Instant::now() + COMPARE_TIME_MAX;
            let change = |(path, old, new): (&RepoPath, Option<&BundledFile>, Option<&BundledFile>)| {
                let (old_bytes, new_bytes) = (folders.side(old)?, folders.side(new)?);
                let status = match (old, new) {
                    (None, _) => FileStatus::Added,
                    (_, None) => FileStatus::Deleted,
                    (Some(old), Some(new)) if old.digest == new.digest => FileStatus::ModeChanged,
                    _ => FileStatus::Modified,
                };
                let binary = unified::is_binary(&old_bytes) || unified::is_binary(&new_bytes);
                let (added_lines, deleted_lines) =
                    if binary { (0, 0) } else { unified::count_changes(&old_bytes, &new_bytes, deadline) };
                Ok(FileChange { path: path.clone(), status, added_lines, deleted_lines, binary })
            };
            pairs(&old, &new).map(change).collect()
        })
        .await
    }

    /// The unified difference between `from` (nothing where left out) and `to`, in at most
    /// `bytes_max` bytes before escapes.
    ///
    /// # Errors
    /// [`Refused::Unknown`].
    pub async fn diff(&self, from: Option<&Digest>, to: &Digest, bytes_max: usize) -> Result<Diff> {
        let (from, to) = (from.cloned(), to.clone());
        self.blocking(move |folders| {
            let new = folders.manifest(&to)?;
            let old = folders.manifest_or_nothing(from.as_ref())?;
            let deadline = Instant::now() + COMPARE_TIME_MAX;
            let mut text = Vec::new();
            for (_, old, new) in pairs(&old, &new) {
                // Enough is read to know that it is cut.
                if text.len() > bytes_max {
                    break;
                }
                let (old_bytes, new_bytes) = (folders.side(old)?, folders.side(new)?);
                let old = old.map(|file| (file, old_bytes.as_slice()));
                let new = new.map(|file| (file, new_bytes.as_slice()));
                unified::write_file(&mut text, old, new, deadline);
            }
            Ok(Diff::cut(text, bytes_max, false))
        })
        .await
    }

    /// All that the bundle holds.
    ///
    /// # Errors
    /// [`Refused::Unknown`].
    pub async fn entries(&self, digest: &Digest) -> Result<Entries> {
        let digest = digest.clone();
        let manifest = self.blocking(move |folders| folders.manifest(&digest)).await?;
        let (sender, receiver) = mpsc::channel(4);
        let folders = self.folders.clone();
        tokio::task::spawn_blocking(move || {
            for file in manifest.files() {
                let entry = folders.object(file).map(|bytes| {
                    let kind = if file.executable { EntryKind::Executable } else { EntryKind::File };
                    Entry { path: file.path.clone(), kind, bytes }
                });
                let ends = entry.is_err();
                if sender.blocking_send(entry).is_err() || ends {
                    break;
                }
            }
        });
        Ok(Entries(receiver))
    }

    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Folders) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let folders = self.folders.clone();
        let done = tokio::task::spawn_blocking(move || work(&folders)).await;
        done.map_err(|stopped| Fault::io(&self.folders.objects)(io::Error::other(stopped)))?
    }
}

/// The files that differ, each with its two sides, in the order of their paths' bytes.
fn pairs<'a>(
    old: &'a Manifest,
    new: &'a Manifest,
) -> impl Iterator<Item = (&'a RepoPath, Option<&'a BundledFile>, Option<&'a BundledFile>)> {
    let paths: std::collections::BTreeMap<Vec<u8>, &RepoPath> =
        old.files().chain(new.files()).map(|file| (file.path.to_bytes(), &file.path)).collect();
    paths.into_values().map(|path| (path, old.get(path), new.get(path))).filter(|(_, old, new)| old != new)
}

impl Folders {
    fn manifest(&self, digest: &Digest) -> Result<Manifest> {
        let path = place(&self.manifests, digest);
        let bytes = match fs::read(&path) {
            Err(missing) if missing.kind() == io::ErrorKind::NotFound => {
                return Err(Refused::Unknown { digest: digest.clone() }.into());
            }
            read => read.map_err(Fault::io(&path))?,
        };
        let damaged = || Fault::Damaged { digest: digest.clone(), what: "the manifest has another digest" };
        if sha256(&bytes) != *digest {
            return Err(damaged().into());
        }
        Ok(Manifest::decode(&bytes).ok_or_else(damaged)?)
    }

    /// Secrets in lines that the new files add to the old ones.
    fn secrets(&self, old: &Manifest, new: &Manifest) -> Result<Vec<FoundSecret>> {
        let mut found = Vec::new();
        for (path, old, new) in pairs(old, new) {
            let Some(new) = new else { continue };
            if found.len() >= SECRETS_MAX {
                break;
            }
            let bytes = self.object(new)?;
            let Some(first) = secrets::first_added(path, &[], &bytes) else { continue };
            // What was there before is only read where it matters.
            match old {
                Some(old) => found.extend(secrets::first_added(path, &self.object(old)?, &bytes)),
                None => found.push(first),
            }
        }
        Ok(found)
    }

    fn manifest_or_nothing(&self, digest: Option<&Digest>) -> Result<Manifest> {
        digest.map_or_else(|| Ok(Manifest::default()), |digest| self.manifest(digest))
    }

    fn object(&self, file: &BundledFile) -> Result<Vec<u8>> {
        let damaged = |what| Fault::Damaged { digest: file.digest.clone(), what };
        let path = place(&self.objects, &file.digest);
        let bytes = match fs::read(&path) {
            Err(missing) if missing.kind() == io::ErrorKind::NotFound => {
                return Err(damaged("the file is missing").into());
            }
            read => read.map_err(Fault::io(&path))?,
        };
        if sha256(&bytes) != file.digest {
            return Err(damaged("the bytes have another digest").into());
        }
        Ok(bytes)
    }

    fn side(&self, file: Option<&BundledFile>) -> Result<Vec<u8>> {
        file.map_or_else(|| Ok(Vec::new()), |file| self.object(file))
    }
}

/// Where something is kept: `ab/cdef…`.
fn place(below: &Path, digest: &Digest) -> PathBuf {
    let (shelf, rest) = digest.as_str().split_at(2);
    below.join(shelf).join(rest)
}

fn make_folder(path: &Path) -> std::result::Result<(), Fault> {
    DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(Fault::io(path))
}

fn flush_folder(path: &Path) -> std::result::Result<(), Fault> {
    File::open(path).and_then(|folder| folder.sync_all()).map_err(Fault::io(path))
}

/// A bundle that is arriving: [`begin`](Self::begin) a file, give its chunks, and
/// [`finish`](Self::finish). After a refusal it is dropped, and leaves nothing.
///
/// Chunks go straight to a file that is not flushed yet, so that taking one does not wait for the
/// disk; `finish` does the waiting on a thread of its own.
#[derive(Debug)]
pub struct BundleBuilder {
    folders: Arc<Folders>,
    incoming: TempDir,
    paths: PathSet,
    manifest: Manifest,
    arrived: BTreeSet<Digest>,
    open: Option<Arriving>,
    total: u64,
}

#[derive(Debug)]
struct Arriving {
    path: RepoPath,
    executable: bool,
    file: File,
    size: u64,
    hash: Sha256,
}

impl BundleBuilder {
    /// Begins the next file.
    ///
    /// # Errors
    /// [`Refused::NotAFile`], [`Refused::UnsafePath`], [`Refused::PathTaken`],
    /// [`Refused::TooLarge`].
    pub fn begin(&mut self, path: RepoPath, kind: EntryKind) -> Result<()> {
        self.end()?;
        let refuse = |found| Err(Refused::NotAFile { path: path.clone(), found }.into());
        let executable = match kind {
            EntryKind::File => false,
            EntryKind::Executable => true,
            EntryKind::Symlink => return refuse("a symbolic link"),
            EntryKind::Submodule => return refuse("a submodule"),
        };
        self.paths.insert(&path)?;
        let limit = FILES_MAX as u64;
        if self.paths.len() > FILES_MAX {
            return Err(Refused::TooLarge { what: "files".into(), count: limit + 1, limit }.into());
        }
        let name = self.incoming.path().join("arriving");
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&name);
        let file = file.map_err(Fault::io(&name))?;
        self.open = Some(Arriving { path, executable, file, size: 0, hash: Sha256::new() });
        Ok(())
    }

    /// Takes the next bytes of the file that was begun last.
    ///
    /// # Errors
    /// [`Refused::TooLarge`].
    ///
    /// # Panics
    /// When no file was begun: the caller's mistake.
    pub fn chunk(&mut self, bytes: &[u8]) -> Result<()> {
        let open = self.open.as_mut().expect("a chunk follows the file that it belongs to");
        open.size += bytes.len() as u64;
        self.total += bytes.len() as u64;
        for (what, count, limit) in [
            (format!("bytes in {}", open.path), open.size, FILE_BYTES_MAX),
            ("bytes".to_owned(), self.total, BUNDLE_BYTES_MAX),
        ] {
            if count > limit {
                return Err(Refused::TooLarge { what, count, limit }.into());
            }
        }
        open.hash.update(bytes);
        open.file.write_all(bytes).map_err(Fault::io(self.incoming.path()))?;
        Ok(())
    }

    /// Takes a whole file.
    ///
    /// # Errors
    /// Those of [`begin`](Self::begin) and [`chunk`](Self::chunk).
    pub fn add(&mut self, entry: &Entry) -> Result<()> {
        self.begin(entry.path.clone(), entry.kind)?;
        self.chunk(&entry.bytes)
    }

    fn end(&mut self) -> std::result::Result<(), Fault> {
        let Some(Arriving { path, executable, file, size, hash }) = self.open.take() else { return Ok(()) };
        drop(file);
        let digest = Digest::of_bytes(hash.finalize().into());
        let name = self.incoming.path().join("arriving");
        let aside = self.incoming.path().join(digest.as_str());
        // The same bytes again replace the same bytes.
        fs::rename(&name, &aside).map_err(Fault::io(&aside))?;
        self.arrived.insert(digest.clone());
        self.manifest.insert(BundledFile { path, executable, size, digest });
        Ok(())
    }

    /// Puts the bundle into the store, on the disk; its digest.
    pub async fn finish(mut self) -> Result<Digest> {
        self.end()?;
        let incoming = self.incoming.path().to_owned();
        let stored = tokio::task::spawn_blocking(move || self.store()).await;
        Ok(stored.map_err(|stopped| Fault::io(&incoming)(io::Error::other(stopped)))??)
    }

    fn store(self) -> std::result::Result<Digest, Fault> {
        let mut shelves = BTreeSet::new();
        for digest in &self.arrived {
            let aside = self.incoming.path().join(digest.as_str());
            shelves.insert(shelve(&aside, &self.folders.objects, digest)?);
        }
        // The files' names are on the disk before the manifest that promises them.
        shelves.iter().try_for_each(|shelf| flush_folder(shelf))?;
        flush_folder(&self.folders.objects)?;
        let digest = self.manifest.digest();
        let aside = self.incoming.path().join("manifest");
        let written = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&aside)
            .and_then(|mut file| file.write_all(&self.manifest.encode()));
        written.map_err(Fault::io(&aside))?;
        let shelf = shelve(&aside, &self.folders.manifests, &digest)?;
        flush_folder(&shelf)?;
        flush_folder(&self.folders.manifests)?;
        Ok(digest)
    }
}

/// Flushes a file and moves it to its place; the folder that it is in then. One that is there
/// already has the same bytes, unless it was damaged: then it is mended.
fn shelve(aside: &Path, below: &Path, digest: &Digest) -> std::result::Result<PathBuf, Fault> {
    let kept = place(below, digest);
    let shelf = kept.parent().expect("a place is below its shelf").to_owned();
    make_folder(&shelf)?;
    File::open(aside).and_then(|file| file.sync_all()).map_err(Fault::io(aside))?;
    fs::rename(aside, &kept).map_err(Fault::io(&kept))?;
    Ok(shelf)
}
