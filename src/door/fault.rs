//! What can go wrong at the door.

use std::io;
use std::path::{Path, PathBuf};

use crate::artifact;

/// Why the door can't be looked at or changed.
#[derive(Debug, thiserror::Error)]
pub enum DoorFault {
    /// The system refused.
    #[error("{doing} {}: {source}", .path.display())]
    Io {
        /// What was being done.
        doing: &'static str,
        /// With which file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Git could not be asked, or did not answer.
    #[error(transparent)]
    Git(#[from] artifact::Fault),
    /// The pre-receive hook is somebody else's, and so is the one that was kept beside it.
    #[error("{} is not Countersign's, and {} is kept from before", .hook.display(), .kept.display())]
    TwoHooks {
        /// The hook as it is.
        hook: PathBuf,
        /// The one that was put beside it.
        kept: PathBuf,
    },
    /// The hook belongs to another home or team.
    #[error("{} belongs to another team or home", .hook.display())]
    OthersDoor {
        /// The hook as it is.
        hook: PathBuf,
    },
    /// The hook there isn't ours to remove.
    #[error("{} is not Countersign's", .hook.display())]
    NotOurs {
        /// The hook as it is.
        hook: PathBuf,
    },
    /// A configured hooks folder isn't one that can be used.
    #[error("core.hooksPath is \"{}\", which is no path that can be followed here", .given)]
    HooksPath {
        /// What is configured.
        given: String,
    },
}

impl DoorFault {
    /// A stable code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Io { .. } => "IO",
            Self::Git(_) => "REPOSITORY_UNUSABLE",
            Self::TwoHooks { .. } | Self::NotOurs { .. } | Self::HooksPath { .. } => "HOOK_CONFLICT",
            Self::OthersDoor { .. } => "DOOR_TAKEN",
        }
    }

    /// What to do about it.
    pub fn remedy(&self) -> String {
        match self {
            Self::Io { .. } => "look at the path and its permissions, then run it again".to_owned(),
            Self::Git(_) => {
                "see that the charter's repository is a bare one, and that git works there".to_owned()
            }
            Self::TwoHooks { hook, kept } => format!(
                "put what both do into {}, remove {}, then run: countersign door install",
                kept.display(),
                hook.display()
            ),
            Self::OthersDoor { .. } => {
                "give each team a repository of its own, or uninstall the other door from its home first"
                    .to_owned()
            }
            Self::NotOurs { .. } => "nothing was removed; look at the hook, and remove it by hand".to_owned(),
            Self::HooksPath { .. } => "give core.hooksPath an absolute path, or unset it".to_owned(),
        }
    }

    pub(super) fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |source| Self::Io { doing, path, source }
    }
}
