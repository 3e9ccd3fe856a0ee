//! The hook in a repository: beside one that was there before, in a folder of its own, and out again.

use std::os::unix::fs::PermissionsExt;

use super::guarded::Guarded;

/// A hook from before: it keeps what it was given, and refuses what is called bad.
const BEFORE: &str =
    "#!/bin/sh\ncat > seen\nif grep -q /bad seen; then echo 'no bad names here' >&2; exit 7; fi\n";

/// Writes a program there.
pub fn executable(guarded: &Guarded, path: &str, text: &str) {
    guarded.place.write(path, text);
    let mode = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(guarded.place.path(path), mode).unwrap();
}

#[test]
fn a_hook_from_before_runs_after_ours_with_the_same_lines_and_its_no_counts() {
    let mut guarded = Guarded::bare();
    executable(&guarded, "atlas.git/hooks/pre-receive", BEFORE);
    let seen = guarded.place.path("atlas.git/seen");
    for _ in 0..2 {
        let installed = guarded.place.run(&["--json", "door", "install"]).done().json();
        assert!(installed["kept_hook"].is_string(), "{installed}");
    }
    guarded.place.serve();
    guarded.refused(&["HEAD:refs/heads/main"]);
    assert!(!seen.exists(), "it doesn't run where ours refused");
    let told = guarded.refused(&["HEAD:refs/heads/bad"]);
    assert!(told.contains("no bad names here") && told.contains("refused HOOK_REFUSED"), "{told}");
    guarded.push(&["HEAD:refs/heads/good", "HEAD:refs/heads/free"]).done();
    let (old, head, none) = (guarded.id("HEAD~1"), guarded.id("HEAD"), "0".repeat(40));
    let lines = std::fs::read_to_string(&seen).unwrap();
    assert_eq!(lines, format!("{old} {head} refs/heads/free\n{none} {head} refs/heads/good\n"));

    // One that git would not have run is not run either.
    let kept = guarded.place.path("atlas.git/hooks/pre-receive.before-countersign");
    std::fs::set_permissions(&kept, std::fs::Permissions::from_mode(0o644)).unwrap();
    guarded.push(&["HEAD:refs/heads/bad"]).done();
    std::fs::set_permissions(&kept, std::fs::Permissions::from_mode(0o755)).unwrap();

    guarded.place.run(&["door", "uninstall"]).done();
    let hook = std::fs::read_to_string(guarded.place.path("atlas.git/hooks/pre-receive")).unwrap();
    assert_eq!(hook, BEFORE);
    assert!(!kept.exists());
    guarded.push(&["HEAD:refs/heads/main"]).done();
}

#[test]
fn an_uninstalled_door_leaves_nothing_behind_and_doing_it_again_says_so() {
    let guarded = Guarded::bare();
    let folder = guarded.place.path("atlas.git/hooks");
    let files = || {
        let mut files: Vec<_> =
            std::fs::read_dir(&folder).unwrap().map(|file| file.unwrap().file_name()).collect();
        files.sort();
        files
    };
    let before = files();
    guarded.place.run(&["door", "install"]).done();
    assert_eq!(files().len(), before.len() + 1);
    let removed = guarded.place.run(&["--json", "door", "uninstall"]).done().json();
    assert_eq!(removed["removed"], true);
    assert_eq!(files(), before);
    let again = guarded.place.run(&["--json", "door", "uninstall"]).done().json();
    assert_eq!(again["removed"], false);
    guarded.push(&["HEAD:refs/heads/main"]).done();
}

#[test]
fn a_hooks_folder_that_is_configured_is_followed_and_told() {
    let mut guarded = Guarded::bare();
    for (configured, place) in
        [("own-hooks", "atlas.git/own-hooks/pre-receive"), ("../shared", "shared/pre-receive")]
    {
        guarded.place.git("atlas.git", &["config", "core.hooksPath", configured]);
        let installed = guarded.place.run(&["--json", "door", "install"]).done().json();
        assert_eq!(installed["hooks_path"], configured);
        assert_eq!(installed["shared"], configured == "../shared");
        assert!(guarded.place.path(place).exists());
    }
    guarded.place.serve();
    let told = guarded.refused(&["HEAD:main"]);
    assert!(told.contains("refused DIRECT_PUSH"), "{told}");
    // Another repository takes its hooks from the same folder: its pushes are none of the door's business.
    guarded.place.git(".", &["init", "-q", "--bare", "-b", "main", "other.git"]);
    guarded.place.git("other.git", &["config", "core.hooksPath", "../shared"]);
    guarded.place.git("app", &["push", "-q", "../other.git", "HEAD:main"]);
    guarded.place.git("atlas.git", &["config", "core.hooksPath", "~/hooks"]);
    let refused = guarded.place.run(&["--json", "door", "install"]);
    assert_eq!((refused.exit, &refused.json()["code"]), (1, &"HOOK_CONFLICT".into()));
}

#[test]
fn a_hook_that_replaced_ours_is_told_and_neither_overwritten_nor_removed() {
    let guarded = Guarded::bare();
    executable(&guarded, "atlas.git/hooks/pre-receive", BEFORE);
    guarded.place.run(&["door", "install"]).done();
    executable(&guarded, "atlas.git/hooks/pre-receive", "#!/bin/sh\nexit 0\n");
    let status = guarded.place.run(&["--json", "door", "status"]).done().json();
    assert_eq!(status["standing"], "replaced");
    for verb in ["install", "uninstall"] {
        let refused = guarded.place.run(&["--json", "door", verb]);
        assert_eq!((refused.exit, &refused.json()["code"]), (1, &"HOOK_CONFLICT".into()), "{verb}");
    }
    let hook = std::fs::read_to_string(guarded.place.path("atlas.git/hooks/pre-receive")).unwrap();
    assert_eq!(hook, "#!/bin/sh\nexit 0\n");
}

#[test]
fn another_repository_than_the_charters_gets_no_door() {
    let guarded = Guarded::bare();
    guarded.place.git(".", &["init", "-q", "--bare", "other.git"]);
    let refused = guarded.place.run(&["--json", "door", "install", "--repository", "other.git"]);
    assert_eq!((refused.exit, &refused.json()["code"]), (1, &"OTHER_REPOSITORY".into()));
    guarded.place.run(&["door", "install", "--repository", "atlas.git"]).done();
    let bundles = super::place::Place::with(&super::place::charter(""));
    let refused = bundles.run(&["--json", "door", "install"]);
    assert_eq!((refused.exit, &refused.json()["code"]), (1, &"NO_REPOSITORY".into()));
}
