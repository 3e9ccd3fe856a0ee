//! The folder and its files: where they are, who may read them, and whether they are still the same.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::store::Fault;

pub(super) const FOLDER_MODE: u32 = 0o700;
pub(super) const FILE_MODE: u32 = 0o600;

/// A home folder.
#[derive(Clone, Debug)]
pub(in crate::store) struct Home {
    root: PathBuf,
}

impl Home {
    pub fn new(root: &Path) -> Self {
        Self { root: root.to_owned() }
    }

    pub fn database(&self) -> PathBuf {
        self.root.join("countersign.db")
    }

    pub fn wal(&self) -> PathBuf {
        self.root.join("countersign.db-wal")
    }

    fn shm(&self) -> PathBuf {
        self.root.join("countersign.db-shm")
    }

    pub fn witness(&self) -> PathBuf {
        self.root.join("witness")
    }

    pub fn snapshots(&self) -> PathBuf {
        self.root.join("snapshots")
    }

    pub fn lock(&self) -> PathBuf {
        self.root.join("lock")
    }

    /// Makes the folder where there is none, for its owner alone whatever the umask. One that is open
    /// to others is closed to them, unless it holds somebody else's files: then it is refused.
    pub fn prepare(&self) -> Result<(), Fault> {
        let root = &self.root;
        DirBuilder::new()
            .recursive(true)
            .mode(FOLDER_MODE)
            .create(root)
            .map_err(|error| io_fault("making", root, &error))?;
        let mode = fs::metadata(root).map_err(|error| io_fault("reading", root, &error))?.mode() & 0o777;
        if mode & 0o077 != 0 && !self.database().exists() && !is_empty(root)? {
            let root = root.display();
            return Err(Fault::Failed {
                what: format!("the folder {root} is open to others (mode {mode:o}) and holds other things"),
            });
        }
        set_mode(root, FOLDER_MODE)
    }

    /// Closes the files to others: copies and restored backups may have come with other modes. SQLite
    /// gives new files beside the database the database's mode.
    pub fn tighten(&self) -> Result<(), Fault> {
        let files = [self.database(), self.wal(), self.shm(), self.witness(), self.lock()];
        files.iter().filter(|file| file.exists()).try_for_each(|file| set_mode(file, FILE_MODE))
    }

    /// Makes names that were added to the folder durable.
    pub fn sync(&self) -> Result<(), Fault> {
        sync_folder(&self.root)
    }

    /// Removes the files of a copy that came to nothing, and where asked the folder.
    pub fn remove(&self, folder_too: bool) {
        // Best effort: the fault that led here is the one to tell.
        for file in [self.database(), self.wal(), self.shm(), self.witness()] {
            let _ = fs::remove_file(file);
        }
        if folder_too {
            let _ = fs::remove_dir(&self.root);
        }
    }

    /// Which files the database's paths name now.
    pub fn identity(&self) -> Result<Identity, Fault> {
        let database = FileId::of(&self.database()).ok_or_else(|| self.replaced())?;
        Ok(Identity { database, wal: FileId::of(&self.wal()) })
    }

    /// Refuses where the paths no longer name the files that were opened. `opened` learns of a WAL
    /// that was not there before.
    pub fn check_identity(&self, opened: &mut Identity) -> Result<(), Fault> {
        let now = self.identity()?;
        if now.database != opened.database || (opened.wal.is_some() && now.wal != opened.wal) {
            return Err(self.replaced());
        }
        opened.wal = now.wal;
        Ok(())
    }

    /// Which files the paths of those name now that stand beside the database.
    pub fn beside(&self) -> Beside {
        Beside { witness: FileId::of(&self.witness()), lock: FileId::of(&self.lock()) }
    }

    /// Refuses where the witness or the lock is no longer the file that was opened: what is witnessed would
    /// be found by nobody, and a second server would be let in.
    pub fn check_beside(&self, opened: &Beside) -> Result<(), Fault> {
        let now = self.beside();
        let replaced = |path: PathBuf| Err(Fault::Replaced { path: path.display().to_string() });
        match (now.witness == opened.witness, now.lock == opened.lock) {
            (false, _) => replaced(self.witness()),
            (_, false) => replaced(self.lock()),
            _ => Ok(()),
        }
    }

    fn replaced(&self) -> Fault {
        Fault::Replaced { path: self.database().display().to_string() }
    }
}

/// The files beside the database that a writer has open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::store) struct Beside {
    witness: Option<FileId>,
    lock: Option<FileId>,
}

/// The files that a connection has open, by what the file system calls them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::store) struct Identity {
    database: FileId,
    wal: Option<FileId>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FileId {
    device: u64,
    inode: u64,
}

impl FileId {
    fn of(path: &Path) -> Option<Self> {
        let found = fs::metadata(path).ok()?;
        Some(Self { device: found.dev(), inode: found.ino() })
    }
}

/// Makes a folder for a copy. One that is there already must be empty: nothing is overwritten.
pub(in crate::store) fn fresh(folder: &Path) -> Result<Home, Fault> {
    if folder.exists()
        && let Some(holds) = first_in(folder)?
    {
        return Err(Fault::NotEmpty { path: folder.display().to_string(), holds });
    }
    let home = Home::new(folder);
    home.prepare()?;
    Ok(home)
}

/// Makes an empty file that only its owner may read, whatever the umask. It must not be there yet.
pub(super) fn create_private(path: &Path) -> Result<File, Fault> {
    let made = OpenOptions::new().read(true).write(true).create_new(true).mode(FILE_MODE).open(path);
    let file = made.map_err(|error| io_fault("making", path, &error))?;
    // An umask can only have taken bits away.
    file.set_permissions(Permissions::from_mode(FILE_MODE))
        .map_err(|error| io_fault("closing to others", path, &error))?;
    Ok(file)
}

/// Opens a file to read and write, made for its owner alone where there is none.
pub(super) fn open_private(path: &Path) -> Result<File, Fault> {
    let opened =
        OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(FILE_MODE).open(path);
    let file = opened.map_err(|error| io_fault("opening", path, &error))?;
    set_mode(path, FILE_MODE)?;
    Ok(file)
}

pub(super) fn sync_folder(folder: &Path) -> Result<(), Fault> {
    let synced = File::open(folder).and_then(|folder| folder.sync_all());
    synced.map_err(|error| io_fault("syncing", folder, &error))
}

pub(super) fn missing(path: &Path) -> Fault {
    Fault::Failed { what: format!("there is no database {}", path.display()) }
}

pub(super) fn io_fault(doing: &str, path: &Path, error: &io::Error) -> Fault {
    Fault::Failed { what: format!("{doing} {}: {error}", path.display()) }
}

fn is_empty(folder: &Path) -> Result<bool, Fault> {
    Ok(first_in(folder)?.is_none())
}

/// Something that is in a folder: the first by name.
fn first_in(folder: &Path) -> Result<Option<String>, Fault> {
    let reading = |error: io::Error| io_fault("reading", folder, &error);
    let mut first = None;
    for entry in fs::read_dir(folder).map_err(reading)? {
        let name = entry.map_err(reading)?.file_name().to_string_lossy().into_owned();
        if first.as_ref().is_none_or(|first| name < *first) {
            first = Some(name);
        }
    }
    Ok(first)
}

fn set_mode(path: &Path, mode: u32) -> Result<(), Fault> {
    fs::set_permissions(path, Permissions::from_mode(mode))
        .map_err(|error| io_fault("closing to others", path, &error))
}
