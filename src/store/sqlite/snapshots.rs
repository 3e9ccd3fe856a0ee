//! Snapshots as files beside the database, one for each team: `snapshots/TEAM`.

use std::fs::{self, DirBuilder, OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};

use super::home::{FILE_MODE, FOLDER_MODE, Home, io_fault};
use crate::protocol::name::TeamName;
use crate::store::Fault;
use crate::store::snapshot::{self, Snapshot, Snapshots};

/// To read so many rows again costs some milliseconds; less is not worth a file.
const ROWS_BETWEEN: u64 = 1_000;

/// The largest snapshot that is read.
const BYTES_MAX: u64 = 256 << 20;

impl Snapshots for Home {
    fn rows_between(&self) -> u64 {
        ROWS_BETWEEN
    }

    fn load(&self, team: &TeamName) -> Option<Snapshot> {
        let file = self.snapshots().join(team.as_str());
        // A pipe would never end, and what is larger than any team is no snapshot.
        let fits = |found: &fs::Metadata| found.is_file() && found.len() <= BYTES_MAX;
        if fs::symlink_metadata(&file).is_ok_and(|found| !fits(&found)) {
            tracing::warn!(%team, "the snapshot is no file of its size, and the whole log is read instead");
            return None;
        }
        match fs::read(&file) {
            Ok(bytes) => {
                let found = snapshot::decode(team, bytes);
                if found.is_none() {
                    tracing::warn!(%team, "the snapshot is damaged, and the whole log is read instead");
                }
                found
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => {
                tracing::warn!(%team, %error, "the snapshot can't be read, and the whole log is read instead");
                None
            }
        }
    }

    fn keep(&self, team: &TeamName, snapshot: &Snapshot) -> Result<(), Fault> {
        let folder = self.snapshots();
        let made = DirBuilder::new().recursive(true).mode(FOLDER_MODE).create(&folder);
        made.map_err(|error| io_fault("making", &folder, &error))?;
        let file = folder.join(team.as_str());
        // Aside and then into its place: whoever reads it sees one or the other. It is not flushed: its seal
        // tells a torn one, and what is lost is time.
        let aside = folder.join(format!(".{team}"));
        let write = || {
            let mut open =
                OpenOptions::new().write(true).create(true).truncate(true).mode(FILE_MODE).open(&aside)?;
            open.set_permissions(Permissions::from_mode(FILE_MODE))?;
            open.write_all(&snapshot::encode(team, snapshot))?;
            fs::rename(&aside, &file)
        };
        write().map_err(|error| io_fault("writing", &file, &error))
    }

    fn forget(&self, team: &TeamName) -> Result<(), Fault> {
        let file = self.snapshots().join(team.as_str());
        match fs::remove_file(&file) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(io_fault("removing", &file, &error)),
            _ => Ok(()),
        }
    }
}
