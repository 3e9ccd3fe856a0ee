//! Files that a clone gets from the operator: one member's token, and where its server is.

use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use super::clone::{CloneFolder, Place};
use super::failure::Failure;
use crate::coordinator::token::Token;
use crate::protocol::name::MemberName;

/// Leaves a member's token and the server's address in a clone's git folder; nothing else of the home.
pub fn leave(clone: &CloneFolder, member: &MemberName, token: &Token, place: &Place) -> Result<(), Failure> {
    let text = serde_json::to_string(place).expect("two plain fields have a JSON form");
    let left = || -> io::Result<()> {
        let tokens = clone.token_file(member);
        let folder = tokens.parent().expect("a token's file stands in a folder");
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        write_private(&tokens, format!("{}\n", token.expose()).as_bytes())?;
        write_private(&clone.place_file(), format!("{text}\n").as_bytes())
    };
    left().map_err(|why| Failure::io(clone.folder().display(), &why))
}

/// Writes a file that its owner alone may read, whatever the umask, aside and then in its place.
fn write_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let aside = path.with_file_name(format!(".{name}.{}", std::process::id()));
    let mut file: File =
        OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&aside)?;
    // The file may have been there, left by a process of this number that was killed.
    file.set_permissions(Permissions::from_mode(0o600))?;
    file.write_all(bytes)?;
    file.sync_all()?;
    std::fs::rename(&aside, path)
}
