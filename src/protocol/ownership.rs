//! Who owns which paths.

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

use super::artifact::RepoPath;
use super::charter::Charter;
use super::name::MemberName;

/// The charter's `owns` patterns, compiled.
#[derive(Clone, Debug, Default)]
pub(super) struct Ownership {
    owners: Vec<(MemberName, GlobSet)>,
}

impl Ownership {
    pub(super) fn of(charter: &Charter) -> Self {
        let owning = charter.members.iter().filter(|(_, member)| !member.owns.is_empty());
        let owners = owning.map(|(name, member)| {
            let mut set = GlobSetBuilder::new();
            // A pattern that doesn't compile was refused with its charter.
            for pattern in &member.owns {
                if let Ok(glob) = GlobBuilder::new(pattern).literal_separator(true).build() {
                    set.add(glob);
                }
            }
            (name.clone(), set.build().unwrap_or_default())
        });
        Self { owners: owners.collect() }
    }

    /// Who owns a path.
    pub(super) fn owners<'a>(&'a self, path: &RepoPath) -> Vec<&'a MemberName> {
        let owning = self.owners.iter().filter(|(_, set)| set.is_match(path.as_str()));
        owning.map(|(name, _)| name).collect()
    }

    /// The paths of these that others own and `producer` does not, each with its owners.
    pub(super) fn foreign<'a>(
        &'a self,
        producer: &'a MemberName,
        paths: &'a [RepoPath],
    ) -> impl Iterator<Item = (&'a RepoPath, Vec<&'a MemberName>)> {
        paths.iter().filter_map(move |path| {
            let owners = self.owners(path);
            (!owners.is_empty() && !owners.contains(&producer)).then_some((path, owners))
        })
    }
}
