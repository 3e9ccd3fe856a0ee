//! The lock: one server at a time, and the next one is told who.
//!
//! The operating system holds it for the life of the process, so a killed server leaves none behind.
//! It is a file of its own, because SQLite takes and drops locks on the database as it works.

use std::fs::{File, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};

use super::home::{io_fault, open_private};
use crate::protocol::name::shown;
use crate::store::Fault;

/// The longest holder's text that is passed on, in characters.
const HOLDER_CHARS_MAX: usize = 200;

/// The lock on a home folder, until it is dropped.
#[derive(Debug)]
pub(super) struct HomeLock {
    file: File,
    path: PathBuf,
}

impl HomeLock {
    /// Takes it at once or not at all.
    pub fn take(path: &Path, holder: &str) -> Result<Self, Fault> {
        let mut file = open_private(path)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut text = String::new();
                // The holder may not have written it yet, and it is only words for a person.
                let _ = file.read_to_string(&mut text);
                let holder = match text.trim() {
                    "" => "a server that has not said who it is".to_owned(),
                    text => shown(text, HOLDER_CHARS_MAX),
                };
                return Err(Fault::Held { holder });
            }
            Err(TryLockError::Error(error)) => return Err(io_fault("locking", path, &error)),
        }
        let lock = Self { file, path: path.to_owned() };
        lock.set_holder(holder)?;
        Ok(lock)
    }

    /// What the next server is told from now on.
    pub fn set_holder(&self, holder: &str) -> Result<(), Fault> {
        let mut file = &self.file;
        let written = file.set_len(0).and_then(|()| file.rewind()).and_then(|()| writeln!(file, "{holder}"));
        written.map_err(|error| io_fault("writing", &self.path, &error))
    }
}

impl Drop for HomeLock {
    /// Closing the file is not enough: a child that was forked at this moment, and has not become its
    /// program yet, shares the lock.
    fn drop(&mut self) {
        if let Err(error) = self.file.unlock() {
            tracing::warn!(path = %self.path.display(), %error, "the lock ends with the process");
        }
    }
}
