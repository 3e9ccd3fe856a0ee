//! What this clone was last told of a proposal: the version that its producer's next one follows.
//!
//! `propose` offers a version *after* the one its caller knows. That is never asked of the server at
//! the call, because then the caller would follow a version that it never saw: it is what a successful
//! propose or reading told here, kept as a small file a proposal, and 0 where nothing was.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::PathBuf;

use crate::protocol::name::{MemberName, ProposalName, TeamName};

/// The record of one member of one team, in one clone.
#[derive(Clone, Debug)]
pub struct Told {
    folder: PathBuf,
}

impl Told {
    /// Below `root`: a clone's own folder, or the home where there is no clone.
    pub fn below(root: PathBuf, team: &TeamName, member: &MemberName) -> Self {
        Self { folder: root.join("told").join(team.as_str()).join(member.as_str()) }
    }

    /// The version that was told last; 0 where none was.
    pub fn version(&self, proposal: &ProposalName) -> u32 {
        let text = fs::read_to_string(self.folder.join(proposal.as_str()));
        text.ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0)
    }

    /// Records the current version.
    pub fn current(&self, proposal: &ProposalName, version: u32) -> io::Result<()> {
        if self.version(proposal) == version {
            return Ok(());
        }
        self.keep(proposal.as_str(), &version.to_string())
    }

    /// The version that the last propose said it follows, where it bore this request id: a repetition asks
    /// for the very same, whatever was told since.
    pub fn asked(&self, proposal: &ProposalName, request_id: &str) -> Option<u32> {
        let text = fs::read_to_string(self.folder.join(asked_file(proposal))).ok()?;
        let (id, after) = text.trim().split_once(' ')?;
        if id == request_id { after.parse().ok() } else { None }
    }

    /// Records what a propose is about to ask.
    pub fn asks(&self, proposal: &ProposalName, request_id: &str, after: u32) -> io::Result<()> {
        self.keep(&asked_file(proposal), &format!("{request_id} {after}"))
    }

    fn keep(&self, name: &str, line: &str) -> io::Result<()> {
        DirBuilder::new().recursive(true).mode(0o700).create(&self.folder)?;
        // Aside and then in its place: whoever reads meanwhile sees the one or the other.
        let aside = self.folder.join(format!(".{name}.{}", std::process::id()));
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&aside)?;
        writeln!(file, "{line}")?;
        fs::rename(&aside, self.folder.join(name))
    }
}

/// No proposal's name begins with a point.
fn asked_file(proposal: &ProposalName) -> String {
    format!(".asked.{proposal}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_told_is_kept_by_member_and_proposal() {
        let root = tempfile::tempdir().unwrap();
        let told = |member: &str| {
            Told::below(root.path().to_owned(), &"atlas".parse().unwrap(), &member.parse().unwrap())
        };
        let parser: ProposalName = "parser".parse().unwrap();
        assert_eq!(told("app").version(&parser), 0);
        told("app").current(&parser, 3).unwrap();
        assert_eq!(told("app").version(&parser), 3);
        // A team that began anew under the same name: what is current is believed.
        told("app").current(&parser, 1).unwrap();
        assert_eq!(told("app").version(&parser), 1);
        assert_eq!(told("sec").version(&parser), 0);
        let kept = fs::read_dir(root.path().join("told/atlas/app")).unwrap().count();
        assert_eq!(kept, 1, "nothing is left aside");
        told("app").asks(&parser, "r1", 1).unwrap();
        assert_eq!((told("app").asked(&parser, "r1"), told("app").asked(&parser, "r2")), (Some(1), None));
    }
}
