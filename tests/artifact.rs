//! What the server believes about commits and bundles, against a real git and real folders.

// Fixtures unwrap as tests do; clippy excuses the tests alone.
#![allow(missing_docs, clippy::unwrap_used)]

use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use countersign::artifact::bundle::{self, Bundles};
use countersign::artifact::folder::{Extraction, extract, read_dir};
use countersign::artifact::git::Git;
use countersign::artifact::repository::{self, Repository};
use countersign::artifact::{
    Artifacts, Entries, Entry, EntryKind, Failure, Fault, FileStatus, Offer, Refused,
};
use countersign::protocol::artifact::{ArtifactKind, Place, RepoPath};
use countersign::protocol::name::{Digest, ProposalName};
use tempfile::TempDir;

#[path = "artifact/merge.rs"]
mod merge;
#[path = "artifact/publishing.rs"]
mod publishing;
#[path = "artifact/target.rs"]
mod target;

const MAIN: &str = "refs/heads/main";
const SUBMODULE: &str = "1111111111111111111111111111111111111111";

/// A bare repository, and commits made in it without a work tree.
struct Yard {
    folder: TempDir,
}

/// A file of a commit: path, mode, content (of a submodule: its commit).
type TreeFile<'a> = (&'a [u8], &'a str, &'a [u8]);

struct CommitWords<'a> {
    author: (&'a str, &'a str),
    message: &'a str,
    date: &'a str,
}

const APP: CommitWords<'_> =
    CommitWords { author: ("App", "app@team.example"), message: "work\n", date: "1790000000 +0000" };

/// Git as nobody in particular: no configuration but the repository's.
fn plain_git() -> Command {
    let mut command = Command::new("git");
    command
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null");
    command
}

impl Yard {
    fn new() -> Self {
        Self::of_format("sha1")
    }

    fn of_format(format: &str) -> Self {
        let yard = Self { folder: TempDir::new().unwrap() };
        let done = plain_git()
            .args(["init", "-q", "--bare", "--initial-branch=main"])
            .arg(format!("--object-format={format}"))
            .arg(yard.bare())
            .status()
            .expect("these tests need git: apt-get install git");
        assert!(done.success());
        yard
    }

    fn bare(&self) -> PathBuf {
        self.folder.path().join("guarded.git")
    }

    fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    async fn open(&self) -> Repository {
        Repository::open(&self.bare(), &self.home().join("desk")).await.unwrap()
    }

    fn git_as(&self, arguments: &[&str], input: &[u8], words: &CommitWords<'_>) -> String {
        let mut child = plain_git()
            .env("GIT_INDEX_FILE", self.folder.path().join("index"))
            .env("GIT_AUTHOR_NAME", words.author.0)
            .env("GIT_AUTHOR_EMAIL", words.author.1)
            .env("GIT_AUTHOR_DATE", words.date)
            .env("GIT_COMMITTER_NAME", "Anyone")
            .env("GIT_COMMITTER_EMAIL", "anyone@team.example")
            .env("GIT_COMMITTER_DATE", words.date)
            .arg("--git-dir")
            .arg(self.bare())
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(input).unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "git {arguments:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    fn git(&self, arguments: &[&str]) -> String {
        self.git_as(arguments, b"", &APP)
    }

    fn commit_as(&self, files: &[TreeFile<'_>], parents: &[&Digest], words: &CommitWords<'_>) -> Digest {
        let _ = fs::remove_file(self.folder.path().join("index"));
        let mut index = Vec::new();
        for (path, mode, content) in files {
            let id = match *mode {
                "160000" => String::from_utf8(content.to_vec()).unwrap(),
                _ => self.git_as(&["hash-object", "-w", "--stdin"], content, &APP),
            };
            index.extend_from_slice(format!("{mode} {id}\t").as_bytes());
            index.extend_from_slice(path);
            index.push(0);
        }
        self.git_as(&["update-index", "-z", "--index-info"], &index, &APP);
        let tree = self.git(&["write-tree"]);
        let mut arguments = vec!["commit-tree", &tree];
        for parent in parents {
            arguments.extend(["-p", parent.as_str()]);
        }
        self.git_as(&arguments, words.message.as_bytes(), words).parse().unwrap()
    }

    fn commit(&self, files: &[TreeFile<'_>], parents: &[&Digest]) -> Digest {
        self.commit_as(files, parents, &APP)
    }

    fn set_ref(&self, name: &str, to: &Digest) {
        self.git(&["update-ref", name, to.as_str()]);
    }
}

fn paths_of(paths: &[RepoPath]) -> Vec<&str> {
    paths.iter().map(RepoPath::as_str).collect()
}

fn path(bytes: &[u8]) -> RepoPath {
    RepoPath::from_bytes(bytes)
}

fn place(text: &str) -> Place {
    text.parse().unwrap()
}

fn refused<T>(answer: Result<T, Failure>) -> Refused {
    match answer {
        Err(Failure::Refused(refused)) => refused,
        Err(Failure::Fault(fault)) => panic!("a fault: {fault:?}"),
        Ok(_) => panic!("not refused"),
    }
}

fn file(path: &[u8], bytes: &[u8]) -> Entry {
    Entry { path: RepoPath::from_bytes(path), kind: EntryKind::File, bytes: bytes.to_vec() }
}

async fn all(mut entries: Entries) -> Vec<Entry> {
    let mut out = Vec::new();
    while let Some(entry) = entries.next().await {
        out.push(entry.unwrap());
    }
    out
}

async fn bundle_of(bundles: &Bundles, entries: &[Entry]) -> Digest {
    let mut builder = bundles.builder().unwrap();
    entries.iter().for_each(|entry| builder.add(entry).unwrap());
    builder.finish().await.unwrap()
}

const BEFORE: &[TreeFile<'_>] = &[
    (b"app/moved.rs", "100644", b"the same text\n"),
    (b"gone.rs", "100644", b"x\n"),
    (b"link", "100644", b"target"),
    (b"owned/in.rs", "100644", b"another text\n"),
    (b"run.sh", "100644", b"#!/bin/sh\n"),
    (b"same.rs", "100644", b"a\nb\n"),
    (b"text.rs", "100644", b"one\ntwo\n"),
];

const AFTER: &[TreeFile<'_>] = &[
    (b"app/out.rs", "100644", b"another text\n"),
    (b"link", "120000", b"target"),
    (b"new\nline", "100644", b"n\n"),
    (b"owned/moved.rs", "100644", b"the same text\n"),
    (b"quo\"te\t\\", "100644", b"q"),
    (b"run.sh", "100755", b"#!/bin/sh\n"),
    (b"same.rs", "100644", b"a\nb\n"),
    (b"sub", "160000", SUBMODULE.as_bytes()),
    (b"text.rs", "100644", b"one\n2\nthree\n"),
    (b"\xff\xfe", "100644", b"\0binary"),
];

#[tokio::test]
async fn every_path_that_a_commit_touches_counts_on_both_sides() {
    let yard = Yard::new();
    let base = yard.commit(BEFORE, &[]);
    // Hidden by its own words, if git were to believe them.
    let mut after = AFTER.to_vec();
    after.push((
        b".gitmodules",
        "100644",
        b"[submodule \"sub\"]\n\tpath = sub\n\turl = /x\n\tignore = all\n",
    ));
    let commit = yard.commit(&after, &[&base]);
    yard.set_ref(MAIN, &base);
    let repository = yard.open().await;
    let (artifact, facts) = repository.facts(&commit, MAIN).await.unwrap();
    assert_eq!(
        paths_of(&facts.paths),
        [
            ".gitmodules",
            "\\xff\\xfe",
            "app/moved.rs",
            "app/out.rs",
            "gone.rs",
            "link",
            "new\nline",
            "owned/in.rs",
            "owned/moved.rs",
            "quo\"te\t\\\\",
            "run.sh",
            "sub",
            "text.rs",
        ]
    );
    assert!(!facts.empty);
    assert_eq!(artifact.kind, ArtifactKind::Commit);
    assert_eq!((&artifact.digest, artifact.base.as_ref()), (&commit, Some(&base)));
    assert_eq!(artifact.content.as_str(), yard.git(&["rev-parse", &format!("{commit}^{{tree}}")]));

    let files = repository.files(&commit, Some(&base)).await.unwrap();
    let status = |name: &[u8]| {
        let change = files.iter().find(|change| change.path == path(name)).unwrap();
        (change.status, change.added_lines, change.deleted_lines, change.binary)
    };
    assert_eq!(status(b"app/moved.rs"), (FileStatus::Deleted, 0, 1, false));
    assert_eq!(status(b"owned/moved.rs"), (FileStatus::Added, 1, 0, false));
    assert_eq!(status(b"run.sh"), (FileStatus::ModeChanged, 0, 0, false));
    assert_eq!(status(b"link").0, FileStatus::TypeChanged);
    assert_eq!(status(b"sub").0, FileStatus::Added);
    assert_eq!(status(b"text.rs"), (FileStatus::Modified, 2, 1, false));
    assert_eq!(status(b"\xff\xfe"), (FileStatus::Added, 0, 0, true));
    assert_eq!(status(b"new\nline"), (FileStatus::Added, 1, 0, false));
    assert_eq!(files.len(), facts.paths.len());
}

#[tokio::test]
async fn a_missing_target_is_an_empty_tree() {
    let yard = Yard::new();
    let first = yard.commit_as(BEFORE, &[], &CommitWords { author: ("Old", "old@x"), ..APP });
    let commit = yard.commit(&BEFORE[..2], &[&first]);
    let (artifact, facts) = yard.open().await.facts(&commit, MAIN).await.unwrap();
    assert_eq!(artifact.base, None);
    assert_eq!(paths_of(&facts.paths), ["app/moved.rs", "gone.rs"]);
    let emails: Vec<_> = facts.authors.iter().map(|identity| identity.email.as_str()).collect();
    assert_eq!(emails, ["app@team.example", "old@x"]);
}

#[tokio::test]
async fn only_what_the_commit_did_since_it_left_its_target_counts() {
    let yard = Yard::new();
    let base = yard.commit(&[(b"a", "100644", b"1"), (b"b", "100644", b"1")], &[]);
    let landed = yard.commit(&[(b"a", "100644", b"2"), (b"b", "100644", b"1")], &[&base]);
    let commit = yard.commit(&[(b"a", "100644", b"1"), (b"b", "100644", b"2")], &[&base]);
    yard.set_ref(MAIN, &landed);
    let repository = yard.open().await;
    let (_, facts) = repository.facts(&commit, MAIN).await.unwrap();
    assert_eq!(paths_of(&facts.paths), ["b"]);
    assert_eq!(repository.fork_point(&landed, &commit).await.unwrap(), Some(base));
}

#[tokio::test]
async fn where_both_merged_each_other_neither_side_hides_a_path() {
    let yard = Yard::new();
    let root = yard.commit(&[(b"a", "100644", b"1"), (b"b", "100644", b"1")], &[]);
    let left = yard.commit(&[(b"a", "100644", b"2"), (b"b", "100644", b"1")], &[&root]);
    let right = yard.commit(&[(b"a", "100644", b"1"), (b"b", "100644", b"2")], &[&root]);
    let target = yard.commit(&[(b"a", "100644", b"2"), (b"b", "100644", b"2")], &[&left, &right]);
    yard.set_ref(MAIN, &target);
    // Each undoes one side, and from one of the two merge bases looks as if it touched nothing.
    let repository = yard.open().await;
    for (a, b) in [(b"1", b"2"), (b"2", b"1")] {
        let commit = yard.commit(&[(b"a", "100644", a), (b"b", "100644", b)], &[&right, &left]);
        let (_, facts) = repository.facts(&commit, MAIN).await.unwrap();
        assert_eq!(paths_of(&facts.paths), ["a", "b"]);
    }
}

#[tokio::test]
async fn authors_and_co_authors_are_known_by_lower_case_address() {
    let yard = Yard::new();
    let base = yard.commit_as(BEFORE, &[], &CommitWords { author: ("Landed", "landed@x"), ..APP });
    yard.set_ref(MAIN, &base);
    let one = CommitWords {
        author: ("$(id) ; \u{1b}[2J \u{202e}x", "SEC@Team.Example"),
        message: "one\n\nco-AUTHORED-by: Arch <ARCH@team.example>\nCo-authored-by: A <a@x>, B <b@x>\n",
        ..APP
    };
    let first = yard.commit_as(&BEFORE[1..], &[&base], &one);
    let two = CommitWords {
        message: "two\n\nCo-authored-by: bare@x\nCo-authored-by: Folded\n <folded@x>\nReviewed-by: No <no@x>\n",
        ..APP
    };
    let second = yard.commit_as(&BEFORE[2..], &[&first], &two);
    // Not in the last block, where git alone would look for trailers.
    let three = CommitWords {
        message: "Co-authored-by: Subject <subject@x>\n\n prose\n  co-authored-by : Deep <deep@x>\n---\nCo-Authored-By: Cut <cut@x>\n\nmore prose\n",
        ..APP
    };
    let commit = yard.commit_as(&BEFORE[2..], &[&second], &three);
    let (_, facts) = yard.open().await.facts(&commit, MAIN).await.unwrap();
    let found: Vec<_> = facts.authors.iter().map(|i| (i.email.as_str(), i.name.as_str())).collect();
    assert_eq!(
        found,
        [
            ("a@x", "A"),
            ("app@team.example", "App"),
            ("arch@team.example", "Arch"),
            ("b@x", "B"),
            ("bare@x", ""),
            ("cut@x", "Cut"),
            ("deep@x", "Deep"),
            ("folded@x", "Folded"),
            ("sec@team.example", "$(id) ; \u{1b}[2J \u{202e}x"),
            ("subject@x", "Subject"),
        ]
    );
}

#[tokio::test]
async fn a_commit_has_limits() {
    let yard = Yard::new();
    let repository = yard.open().await;
    let told = |refused: Refused| match refused {
        Refused::TooLarge { what, count, limit } => (what, count, limit),
        other => panic!("{other:?}"),
    };

    let blob = yard.git_as(&["hash-object", "-w", "--stdin"], b"", &APP);
    let index: String = (0..=repository::PATHS_MAX).map(|n| format!("100644 {blob}\tf{n}\0")).collect();
    yard.git_as(&["update-index", "-z", "--index-info"], index.as_bytes(), &APP);
    let tree = yard.git(&["write-tree"]);
    let wide: Digest = yard.git(&["commit-tree", &tree]).parse().unwrap();
    let (paths, authors) = (repository::PATHS_MAX as u64, repository::AUTHORS_MAX as u64);
    let expected = ("paths".to_owned(), paths + 1, paths);
    assert_eq!(told(refused(repository.facts(&wide, MAIN).await)), expected);
    assert_eq!(told(refused(repository.files(&wide, None).await)), expected);

    let trailers: String = (0..authors).map(|n| format!("Co-authored-by: A <a{n}@x>\n")).collect();
    let message = format!("many\n\n{trailers}");
    let crowd = yard.commit_as(&BEFORE[..1], &[], &CommitWords { message: &message, ..APP });
    let expected = ("authors".to_owned(), authors + 1, authors);
    assert_eq!(told(refused(repository.facts(&crowd, MAIN).await)), expected);

    let big = vec![b'\n'; usize::try_from(repository::COUNTED_BYTES_MAX).unwrap() + 1];
    let commit = yard.commit(&[(b"big", "100644", &big), (b"fits", "100644", &big[1..])], &[]);
    assert!(repository.has_place(&commit, &place("big")).await.unwrap());
    assert!(repository.has_place(&commit, &place("fits:8388608")).await.unwrap());
    assert!(!repository.has_place(&commit, &place("fits:8388609")).await.unwrap());
    let (what, count, limit) = told(refused(repository.has_place(&commit, &place("big:1")).await));
    assert_eq!((what.as_str(), count, limit), ("bytes in big", (8 << 20) + 1, repository::COUNTED_BYTES_MAX));
}

#[tokio::test]
async fn a_mailmap_renames_nobody() {
    let yard = Yard::new();
    let map: TreeFile<'_> = (b".mailmap", "100644", b"Other <other@x> <app@team.example>\n");
    let commit = yard.commit(&[map], &[]);
    yard.git(&["config", "mailmap.blob", &format!("{commit}:.mailmap")]);
    yard.git(&["config", "log.mailmap", "true"]);
    let (_, facts) = yard.open().await.facts(&commit, MAIN).await.unwrap();
    assert_eq!(facts.authors[0].email, "app@team.example");
}

/// Git's own list stops early where dates lie, and would name the landed author too.
#[tokio::test]
async fn dates_ten_years_off_change_nothing() {
    let (then, now) = ("1470000000 +0000", "1790000000 +0000");
    for (old, recent) in [(then, now), (now, then)] {
        let yard = Yard::new();
        let landed = CommitWords { author: ("Landed", "landed@x"), date: recent, ..APP };
        let shared = yard.commit_as(&[(b"a", "100644", b"0")], &[], &landed);
        let mut target = shared.clone();
        for step in 1..=12u8 {
            let main = CommitWords { author: ("Main", "main@x"), date: old, ..APP };
            target = yard.commit_as(&[(b"a", "100644", &[step])], &[&target], &main);
        }
        yard.set_ref(MAIN, &target);
        let mine = CommitWords { date: recent, ..APP };
        let commit = yard.commit_as(&[(b"a", "100644", b"0"), (b"b", "100644", b"1")], &[&shared], &mine);
        let (_, facts) = yard.open().await.facts(&commit, MAIN).await.unwrap();
        assert_eq!(paths_of(&facts.paths), ["b"]);
        assert_eq!(facts.authors.len(), 1, "{:?}", facts.authors);
        assert_eq!(facts.authors[0].email, "app@team.example");
    }
}

#[tokio::test]
async fn what_has_landed_another_way_is_empty() {
    let yard = Yard::new();
    let base = yard.commit(&[(b"a", "100644", b"1\n")], &[]);
    let other = yard.commit(&[(b"a", "100644", b"2\n"), (b"b", "100644", b"b\n")], &[&base]);
    let same = yard.commit(&[(b"a", "100644", b"2\n")], &[&base]);
    let clash = yard.commit(&[(b"a", "100644", b"3\n")], &[&base]);
    let nothing = yard.commit(&[(b"a", "100644", b"1\n")], &[&base]);
    let repository = yard.open().await;
    let empty = async |commit: &Digest| repository.facts(commit, MAIN).await.unwrap().1.empty;
    yard.set_ref(MAIN, &base);
    assert!(!empty(&same).await);
    assert!(empty(&nothing).await);
    assert!(empty(&base).await);
    yard.set_ref(MAIN, &other);
    let stored = yard.git(&["count-objects"]);
    assert!(empty(&same).await, "its change is in the target by now");
    assert!(!empty(&clash).await);
    assert_eq!(yard.git(&["count-objects"]), stored, "trying the merge left objects behind");
}

#[tokio::test]
async fn hostile_ref_names_are_inert() {
    let yard = Yard::new();
    let base = yard.commit(&BEFORE[..1], &[]);
    let commit = yard.commit(&BEFORE[..2], &[&base]);
    let repository = yard.open().await;
    for name in [
        "refs/heads/$(id)",
        "refs/heads/;id",
        "refs/heads/<svg/onload=1>",
        "refs/heads/-x",
        "refs/heads/a\u{202e}b",
        "refs/heads/--output=x",
    ] {
        yard.set_ref(name, &base);
        let (artifact, facts) = repository.facts(&commit, name).await.unwrap();
        assert_eq!(artifact.base.as_ref(), Some(&base), "{name}");
        assert_eq!(paths_of(&facts.paths), ["gone.rs"], "{name}");
    }
    for name in
        ["main", "HEAD", "--all", "-x", "refs/heads/*", "refs/heads/a\nb", "refs/heads/main^{tree}", ""]
    {
        let Refused::RefName { name: told } = refused(repository.facts(&commit, name).await) else {
            panic!("{name}");
        };
        assert!(!told.contains('\n'));
    }
}

#[tokio::test]
async fn what_the_repository_is_configured_with_does_not_run() {
    let yard = Yard::new();
    let marker = yard.folder.path().join("ran");
    let script = yard.folder.path().join("evil");
    fs::write(&script, format!("#!/bin/sh\necho ran >> '{}'\nexit 1\n", marker.display())).unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    let evil = script.to_str().unwrap();
    let base = yard.commit(&[(b"a.rs", "100644", b"1\n2\n3\n")], &[]);
    let landed = yard.commit(&[(b"a.rs", "100644", b"0\n2\n3\n")], &[&base]);
    let attributes: TreeFile<'_> = (b".gitattributes", "100644", b"*.rs -diff merge=evil filter=evil\n");
    let commit = yard.commit(&[attributes, (b"a.rs", "100644", b"1\n2\n4\n")], &[&base]);
    let decoy = yard.commit(&BEFORE[..1], &[&base]);
    yard.set_ref(MAIN, &landed);
    yard.set_ref(&format!("refs/countersign/staging/{commit}"), &commit);
    yard.git(&["replace", commit.as_str(), decoy.as_str()]);
    fs::create_dir_all(yard.bare().join("info")).unwrap();
    fs::write(yard.bare().join("info/attributes"), "* diff=evil merge=evil filter=evil\na.rs -diff\n")
        .unwrap();
    fs::create_dir_all(yard.bare().join("hooks")).unwrap();
    for hook in ["reference-transaction", "post-index-change", "update", "fsmonitor-watchman"] {
        fs::copy(&script, yard.bare().join("hooks").join(hook)).unwrap();
    }
    for (key, value) in [
        ("diff.external", evil),
        ("diff.evil.command", evil),
        ("diff.evil.textconv", evil),
        ("merge.evil.driver", evil),
        ("filter.evil.smudge", evil),
        ("filter.evil.clean", evil),
        ("core.fsmonitor", evil),
        ("core.pager", evil),
        ("core.sshCommand", evil),
        ("core.hooksPath", yard.bare().join("hooks").to_str().unwrap()),
        ("diff.noprefix", "true"),
        ("diff.renames", "copies"),
        ("diff.ignoreSubmodules", "all"),
    ] {
        yard.git(&["config", key, value]);
    }
    // The trap works: whoever asks this repository plainly runs it.
    let _ = plain_git().arg("--git-dir").arg(yard.bare()).args(["diff", MAIN, commit.as_str()]).output();
    assert!(marker.exists());
    fs::remove_file(&marker).unwrap();

    let repository = yard.open().await;
    repository.staged(&commit).await.unwrap();
    let (_, facts) = repository.facts(&commit, MAIN).await.unwrap();
    assert_eq!(paths_of(&facts.paths), [".gitattributes", "a.rs"]);
    assert!(!facts.empty);
    repository.pin(&"parser".parse().unwrap(), 1, &commit).await.unwrap();
    assert!(repository.has_place(&commit, &place("a.rs:3")).await.unwrap());
    let diff = repository.diff(Some(&base), &commit, 1 << 20).await.unwrap();
    assert!(diff.text.contains("--- a/a.rs\n+++ b/a.rs\n@@ -1,3 +1,3 @@\n 1\n 2\n-3\n+4\n"), "{}", diff.text);
    assert!(!repository.files(&commit, Some(&base)).await.unwrap().iter().any(|change| change.binary));
    assert_eq!(all(repository.entries(&commit).await.unwrap()).await.len(), 2);
    assert!(!marker.exists(), "a program of the repository's ran");
}

#[tokio::test]
async fn only_a_staged_commit_is_taken() {
    let yard = Yard::new();
    let commit = yard.commit(&BEFORE[..1], &[]);
    let other = yard.commit(&BEFORE[..2], &[]);
    let repository = yard.open().await;
    let not_staged = Refused::NotStaged { commit: commit.clone() };
    assert_eq!(refused(repository.staged(&commit).await), not_staged);
    // Another ref that holds it is not enough, nor is its staging ref with other content.
    yard.set_ref(MAIN, &commit);
    yard.set_ref(&format!("refs/countersign/staging/{commit}"), &other);
    assert_eq!(refused(repository.staged(&commit).await), not_staged);
    yard.set_ref(&format!("refs/countersign/staging/{commit}"), &commit);
    repository.staged(&commit).await.unwrap();
    let tree: Digest = yard.git(&["rev-parse", &format!("{commit}^{{tree}}")]).parse().unwrap();
    yard.set_ref(&format!("refs/countersign/staging/{tree}"), &tree);
    assert_eq!(
        refused(repository.staged(&tree).await),
        Refused::NotACommit { digest: tree.clone(), found: "tree".into() }
    );
    assert!(matches!(refused(repository.facts(&tree, MAIN).await), Refused::NotACommit { .. }));
    let nowhere: Digest = "2".repeat(40).parse().unwrap();
    let unknown = Refused::Unknown { digest: nowhere.clone() };
    assert_eq!(refused(repository.facts(&nowhere, MAIN).await), unknown);
    assert_eq!(refused(repository.staged(&nowhere).await), Refused::NotStaged { commit: nowhere });
}

#[tokio::test]
async fn a_pin_is_idempotent_and_never_moves() {
    let yard = Yard::new();
    let one = yard.commit(&BEFORE[..1], &[]);
    let two = yard.commit(&BEFORE[..2], &[&one]);
    let repository = yard.open().await;
    let parser: ProposalName = "parser".parse().unwrap();
    repository.pin(&parser, 1, &one).await.unwrap();
    repository.pin(&parser, 1, &one).await.unwrap();
    let reference = "refs/countersign/parser/1";
    assert_eq!(
        refused(repository.pin(&parser, 1, &two).await),
        Refused::Pinned { reference: reference.into(), found: one.clone() }
    );
    assert_eq!(yard.git(&["rev-parse", reference]), one.as_str());
    repository.pin(&parser, 2, &two).await.unwrap();
    for name in ["staging", "parser.lock"] {
        let proposal: ProposalName = name.parse().unwrap();
        let answer = repository.pin(&proposal, 1, &one).await;
        assert_eq!(refused(answer), Refused::Unpinnable { name: name.into() });
    }
}

#[tokio::test]
async fn a_sha256_repository_works_and_takes_no_abbreviation() {
    let yard = Yard::of_format("sha256");
    let base = yard.commit(&BEFORE[..2], &[]);
    let commit = yard.commit(&BEFORE[1..3], &[&base]);
    yard.set_ref(MAIN, &base);
    yard.set_ref(&format!("refs/countersign/staging/{commit}"), &commit);
    let repository = yard.open().await;
    repository.staged(&commit).await.unwrap();
    let (artifact, facts) = repository.facts(&commit, MAIN).await.unwrap();
    assert_eq!(artifact.content.as_str().len(), 64);
    assert_eq!(paths_of(&facts.paths), ["app/moved.rs", "link"]);
    assert_eq!(repository.files(&commit, None).await.unwrap().len(), 2);
    repository.pin(&"parser".parse().unwrap(), 1, &commit).await.unwrap();
    let short: Digest = commit.as_str()[..40].parse().unwrap();
    assert!(matches!(refused(repository.facts(&short, MAIN).await), Refused::Unknown { .. }));
    assert!(matches!(refused(repository.staged(&short).await), Refused::NotStaged { .. }));
}

#[tokio::test]
async fn only_a_bare_repository_is_guarded() {
    let folder = TempDir::new().unwrap();
    let desk = folder.path().join("desk");
    let plain = folder.path().join("plain");
    fs::create_dir(&plain).unwrap();
    let opened = Repository::open(&plain, &desk).await;
    assert!(matches!(opened, Err(Failure::Fault(Fault::NotARepository { .. }))), "{opened:?}");
    assert!(plain_git().args(["init", "-q"]).arg(&plain).status().unwrap().success());
    let opened = Repository::open(&plain.join(".git"), &desk).await;
    assert!(matches!(opened, Err(Failure::Fault(Fault::NotBare { .. }))), "{opened:?}");
}

#[tokio::test]
async fn a_call_that_takes_too_long_is_stopped_and_named() {
    let yard = Yard::new();
    // Nobody ever writes into the pipe, so git waits until it is stopped.
    let pipe = yard.folder.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let git = Git::at(&yard.bare()).with_time_max(Duration::from_millis(50));
    let answer = git.run(&["hash-object", "--no-filters", "--", pipe.to_str().unwrap()], 100).await;
    assert!(matches!(&answer, Err(Fault::TimedOut { verb, .. }) if verb == "hash-object"), "{answer:?}");
    let answer = Git::at(&yard.bare()).run(&["rev-parse", "--git-dir"], 3).await.unwrap();
    assert!(answer.truncated);
    assert_eq!(answer.stdout.len(), 3);
}

#[tokio::test]
async fn a_place_is_in_the_commit_or_not_and_is_asked_for_once() {
    let yard = Yard::new();
    let commit = yard.commit(AFTER, &[]);
    let repository = yard.open().await;
    let has = async |text: &str| repository.has_place(&commit, &place(text)).await.unwrap();
    for good in [
        "text.rs",
        "text.rs:3",
        "text.rs:1-3",
        "link:1",
        "sub",
        "new\nline:1",
        "\\xff\\xfe",
        "quo\"te\t\\\\:1",
    ] {
        assert!(has(good).await, "{good}");
    }
    for bad in [
        "text.rs:4",
        "app",
        "app/",
        "sub:1",
        "no.rs",
        "./text.rs",
        "text.rs/",
        "../text.rs",
        "/text.rs",
        ":(glob)*",
        "*",
        "\\xff",
        "quo\"te\t\\",
        "-x",
    ] {
        assert!(!has(bad).await, "{bad}");
    }
    // With the repository gone only what is remembered can be answered.
    fs::remove_dir_all(yard.bare()).unwrap();
    assert!(has("text.rs:2").await);
    assert!(!has("no.rs:7").await);
    assert!(repository.has_place(&commit, &place("run.sh")).await.is_err());
}

#[tokio::test]
async fn a_diff_shows_all_bytes_and_says_when_it_is_cut() {
    let yard = Yard::new();
    let one = yard.commit(&[(b"a", "100644", b"x\n")], &[]);
    let two =
        yard.commit(&[(b"a", "100644", b"x\n\xff \\n \xc3\xa9\n"), (b"caf\xe9", "100644", b"y\n")], &[]);
    let repository = yard.open().await;
    let diff = repository.diff(Some(&one), &two, 1 << 20).await.unwrap();
    assert!(diff.text.contains(" x\n+\\xff \\n é\n"), "{}", diff.text);
    assert!(diff.text.contains("caf\\xe9"), "{}", diff.text);
    assert!(!diff.truncated);
    let cut = repository.diff(Some(&one), &two, 60).await.unwrap();
    assert!(cut.truncated && cut.text.len() <= 60 && cut.text.ends_with('\n'), "{cut:?}");
    let whole = repository.diff(None, &one, 1 << 20).await.unwrap();
    assert!(whole.text.contains("new file mode 100644") && whole.text.contains("+x\n"), "{}", whole.text);
}

#[tokio::test]
async fn a_commit_is_fetched_byte_for_byte() {
    let yard = Yard::new();
    let commit = yard.commit(AFTER, &[]);
    let artifacts = Artifacts::open(&yard.home(), Some(&yard.bare())).await.unwrap();
    let (artifact, _) = artifacts.facts(Offer::Commit { commit: &commit, target: MAIN }).await.unwrap();
    let entries = all(artifacts.entries(&artifact).await.unwrap()).await;
    let into = yard.folder.path().join("out");
    assert_eq!(extract(entries.into_iter().map(Ok), &into).unwrap(), AFTER.len());
    for (path, mode, content) in AFTER {
        let written = into.join(OsStr::from_bytes(path));
        let found = fs::symlink_metadata(&written).unwrap();
        if *mode == "160000" {
            assert!(found.is_dir());
            continue;
        }
        assert!(found.is_file(), "{path:?}");
        assert_eq!(fs::read(&written).unwrap(), *content);
        assert_eq!(found.permissions().mode() & 0o100 != 0, *mode == "100755");
    }
}

#[tokio::test]
async fn the_front_answers_for_both_kinds() {
    let yard = Yard::new();
    let base = yard.commit(&BEFORE[..1], &[]);
    let commit = yard.commit(&BEFORE[..2], &[&base]);
    yard.set_ref(MAIN, &base);
    let artifacts = Artifacts::open(&yard.home(), Some(&yard.bare())).await.unwrap();
    let (artifact, _) = artifacts.facts(Offer::Commit { commit: &commit, target: MAIN }).await.unwrap();
    assert_eq!(artifacts.files(&artifact, None).await.unwrap().len(), 1);
    assert!(artifacts.diff(&artifact, None, 1 << 20).await.unwrap().text.contains("b/gone.rs"));
    assert!(artifacts.has_place(&artifact, &place("gone.rs:1")).await.unwrap());
    let digest = bundle_of(artifacts.bundles(), &[file(b"a", b"1\n")]).await;
    let (bundle, facts) = artifacts.facts(Offer::Bundle { digest: &digest, previous: None }).await.unwrap();
    assert_eq!((bundle.kind, &bundle.content, bundle.base.as_ref()), (ArtifactKind::Bundle, &digest, None));
    assert!(facts.authors.is_empty() && !facts.empty);
    assert_eq!(artifacts.files(&bundle, None).await.unwrap().len(), 1);
    assert!(artifacts.has_place(&bundle, &place("a:1")).await.unwrap());
    assert!(!artifacts.has_place(&bundle, &place("a:2")).await.unwrap());
    assert_eq!(all(artifacts.entries(&bundle).await.unwrap()).await, [file(b"a", b"1\n")]);

    let without = Artifacts::open(&yard.folder.path().join("other"), None).await.unwrap();
    let asked = without.facts(Offer::Commit { commit: &commit, target: MAIN }).await;
    assert_eq!(refused(asked), Refused::NoRepository);
}

#[tokio::test]
async fn a_folder_goes_through_a_bundle_byte_for_byte() {
    let folder = TempDir::new().unwrap();
    let from = folder.path().join("from");
    let files: &[(&[u8], &[u8])] = &[
        (b"a/crlf.txt", b"one\r\ntwo\r\n"),
        (b"a.txt", b"\0\x01\xff"),
        (b"empty", b""),
        ("😀/naïve \u{202e}.rs".as_bytes(), "🦀".as_bytes()),
        (b"caf\xe9\nx", b"latin"),
        (b".gitignore", b"target\n"),
    ];
    for (path, bytes) in files {
        let place = from.join(OsStr::from_bytes(path));
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        fs::write(place, bytes).unwrap();
    }
    fs::set_permissions(from.join("empty"), fs::Permissions::from_mode(0o755)).unwrap();
    fs::create_dir_all(from.join(".git/hooks")).unwrap();
    fs::write(from.join(".git/config"), "secret").unwrap();

    let bundles = Bundles::open(&folder.path().join("home/artifacts")).unwrap();
    let entries: Vec<Entry> = read_dir(&from).unwrap().map(Result::unwrap).collect();
    let mut sorted: Vec<Vec<u8>> = files.iter().map(|(path, _)| path.to_vec()).collect();
    sorted.sort();
    assert_eq!(entries.iter().map(|entry| entry.path.to_bytes()).collect::<Vec<_>>(), sorted);
    let digest = bundle_of(&bundles, &entries).await;

    // The same files in another order, in single bytes, are the same bundle.
    let mut builder = bundles.builder().unwrap();
    for entry in entries.iter().rev() {
        builder.begin(entry.path.clone(), entry.kind).unwrap();
        entry.bytes.chunks(1).for_each(|chunk| builder.chunk(chunk).unwrap());
    }
    assert_eq!(builder.finish().await.unwrap(), digest);

    let into = folder.path().join("into");
    let kept = all(bundles.entries(&digest).await.unwrap()).await;
    assert_eq!(kept, entries);
    extract(kept.into_iter().map(Ok), &into).unwrap();
    for (path, bytes) in files {
        assert_eq!(fs::read(into.join(OsStr::from_bytes(path))).unwrap(), *bytes);
    }
    let again: Vec<Entry> = read_dir(&into).unwrap().map(Result::unwrap).collect();
    assert_eq!(again, entries, "modes and all");
}

#[tokio::test]
async fn kept_files_are_for_the_server_alone_and_prove_themselves() {
    let folder = TempDir::new().unwrap();
    let home = folder.path().join("artifacts");
    let bundles = Bundles::open(&home).unwrap();
    let digest = bundle_of(&bundles, &[file(b"a", b"content")]).await;
    let mut seen = 0;
    let mut folders = vec![home.clone()];
    while let Some(place) = folders.pop() {
        let mode = |path: &Path| fs::symlink_metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&place), 0o700, "{place:?}");
        for item in fs::read_dir(&place).unwrap() {
            let path = item.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                assert_eq!(mode(&path), 0o600, "{path:?}");
                seen += 1;
            }
        }
    }
    assert_eq!(seen, 2, "one file and one manifest, nothing left in incoming");

    let object = "ed7002b439e9ac845f22357d822bac1444730fbdb6016d3ec9432297b9ec9f73";
    fs::write(home.join("objects").join(&object[..2]).join(&object[2..]), "c0ntent").unwrap();
    let read = bundles.entries(&digest).await.unwrap().next().await.unwrap();
    assert!(
        matches!(&read, Err(Failure::Fault(Fault::Damaged { digest, .. })) if digest.as_str() == object),
        "{read:?}"
    );
    // Offering the true bytes again mends it.
    assert_eq!(bundle_of(&bundles, &[file(b"a", b"content")]).await, digest);
    assert_eq!(all(bundles.entries(&digest).await.unwrap()).await, [file(b"a", b"content")]);

    let unknown: Digest = "3".repeat(64).parse().unwrap();
    assert_eq!(refused(bundles.facts(&unknown, None).await), Refused::Unknown { digest: unknown });
}

#[tokio::test]
async fn a_bundle_touches_what_differs_from_the_version_before() {
    let folder = TempDir::new().unwrap();
    let bundles = Bundles::open(folder.path()).unwrap();
    let run = Entry { kind: EntryKind::Executable, ..file(b"run", b"r\n") };
    let old =
        [file(b"changed", b"1\n2\n3\n"), file(b"gone", b"x\n"), file(b"run", b"r\n"), file(b"same", b"s")];
    let new = [file(b"changed", b"1\ntwo\n3\n"), file(b"new", b"n"), run, file(b"same", b"s")];
    let (old, new) = (bundle_of(&bundles, &old).await, bundle_of(&bundles, &new).await);
    let (_, facts) = bundles.facts(&new, Some(&old)).await.unwrap();
    assert_eq!(paths_of(&facts.paths), ["changed", "gone", "new", "run"]);
    let (_, facts) = bundles.facts(&new, None).await.unwrap();
    assert_eq!(paths_of(&facts.paths), ["changed", "new", "run", "same"]);
    let changes = bundles.files(&new, Some(&old)).await.unwrap();
    let statuses: Vec<_> = changes.iter().map(|c| (c.status, c.added_lines, c.deleted_lines)).collect();
    assert_eq!(
        statuses,
        [
            (FileStatus::Modified, 1, 1),
            (FileStatus::Deleted, 0, 1),
            (FileStatus::Added, 1, 0),
            (FileStatus::ModeChanged, 0, 0),
        ]
    );
    let nothing = bundle_of(&bundles, &[]).await;
    assert!(bundles.facts(&nothing, Some(&old)).await.unwrap().1.empty);
}

/// Git is the oracle: the same two trees as commits and as bundles read the same.
#[tokio::test]
async fn bundles_differ_as_commits_do() {
    let text: String = (0..60).map(|line| format!("line {line}\n")).collect();
    let changed =
        text.replace("line 5\n", "").replace("line 30\n", "thirty\n\\x\n").replace("line 59\n", "end");
    let before: &[TreeFile<'_>] = &[
        (b"bin", "100644", b"a\0b"),
        (b"gone", "100644", b"x\ny\n"),
        (b"long", "100644", text.as_bytes()),
        (b"mode", "100644", b"m\n"),
        (b"noeol", "100644", b"a\nb"),
        (b"raw", "100644", b"\\xff\n"),
    ];
    let after: &[TreeFile<'_>] = &[
        (b"bin", "100644", b"a\0c"),
        (b"empty", "100644", b""),
        (b"long", "100644", changed.as_bytes()),
        (b"mode", "100755", b"m\n"),
        (b"new", "100755", b"n\n"),
        (b"noeol", "100644", b"a\nb\n"),
        (b"raw", "100644", b"\xff\n"),
    ];
    let yard = Yard::new();
    let (one, two) = (yard.commit(before, &[]), yard.commit(after, &[]));
    let bundles = Bundles::open(&yard.home()).unwrap();
    let entries = |files: &[TreeFile<'_>]| -> Vec<Entry> {
        let kind = |mode| if mode == "100755" { EntryKind::Executable } else { EntryKind::File };
        files.iter().map(|(path, mode, bytes)| Entry { kind: kind(*mode), ..file(path, bytes) }).collect()
    };
    let old = bundle_of(&bundles, &entries(before)).await;
    let new = bundle_of(&bundles, &entries(after)).await;
    let expected = yard.open().await.diff(Some(&one), &two, 1 << 20).await.unwrap().text;
    // Bundles have no object ids, and no guess at the function around a hunk.
    let expected: String = expected
        .split_inclusive('\n')
        .filter(|line| !line.starts_with("index "))
        .map(|line| match line.rfind(" @@") {
            Some(at) if line.starts_with("@@ ") => format!("{} @@\n", &line[..at]),
            _ => line.to_owned(),
        })
        .collect();
    let diff = bundles.diff(Some(&old), &new, 1 << 20).await.unwrap();
    assert_eq!(diff.text, expected);
    let cut = bundles.diff(Some(&old), &new, 100).await.unwrap();
    assert!(cut.truncated && cut.text.len() <= 100 && expected.starts_with(&cut.text));
}

#[test]
fn no_unsafe_path_gets_in_or_out() {
    let folder = TempDir::new().unwrap();
    let bundles = Bundles::open(&folder.path().join("artifacts")).unwrap();
    let long = "a/".repeat(512) + "b";
    for bad in [
        "",
        "/etc/passwd",
        "..",
        "../escape",
        "a/../../escape",
        "a/..",
        ".",
        "a/./b",
        "a//b",
        "a/",
        "a\0b",
        ".git/hooks/x",
        "a/.GIT/x",
        "git~1/x",
        ".git./x",
        ".g\u{200c}it/x",
        &long,
    ] {
        let entry = file(bad.as_bytes(), b"x");
        let taken = bundles.builder().unwrap().add(&entry);
        assert!(matches!(refused(taken), Refused::UnsafePath { .. }), "{bad:?}");
        let into = folder.path().join("into");
        let written = extract([Ok(entry)], &into);
        assert!(matches!(refused(written), Refused::UnsafePath { .. }), "{bad:?}");
        assert_eq!(fs::read_dir(&into).unwrap().count(), 0, "{bad:?}");
    }
    assert!(!folder.path().join("escape").exists());
    for (one, two) in [("a", "a"), ("README", "readme"), ("a", "a/b"), ("a/b", "a")] {
        let mut builder = bundles.builder().unwrap();
        builder.add(&file(one.as_bytes(), b"x")).unwrap();
        assert!(matches!(refused(builder.add(&file(two.as_bytes(), b"y"))), Refused::PathTaken { .. }));
    }
    for kind in [EntryKind::Symlink, EntryKind::Submodule] {
        let taken = bundles.builder().unwrap().begin(path(b"odd"), kind);
        assert!(matches!(refused(taken), Refused::NotAFile { path: named, .. } if named == path(b"odd")));
    }
}

#[test]
fn a_bundle_has_limits() {
    let folder = TempDir::new().unwrap();
    let bundles = Bundles::open(folder.path()).unwrap();
    let megabyte = vec![b'x'; 1 << 20];
    let mut builder = bundles.builder().unwrap();
    builder.begin(path(b"big"), EntryKind::File).unwrap();
    for _ in 0..16 {
        builder.chunk(&megabyte).unwrap();
    }
    let Refused::TooLarge { what, count, limit } = refused(builder.chunk(b"x")) else { panic!() };
    assert_eq!((what.as_str(), count, limit), ("bytes in big", (16 << 20) + 1, bundle::FILE_BYTES_MAX));

    drop(builder);
    let mut builder = bundles.builder().unwrap();
    for name in [b"a", b"b", b"c", b"d"] {
        builder.begin(path(name), EntryKind::File).unwrap();
        (0..16).for_each(|_| builder.chunk(&megabyte).unwrap());
    }
    builder.begin(path(b"e"), EntryKind::File).unwrap();
    let Refused::TooLarge { what, limit, .. } = refused(builder.chunk(b"x")) else { panic!() };
    assert_eq!((what.as_str(), limit), ("bytes", bundle::BUNDLE_BYTES_MAX));

    drop(builder);
    let mut builder = bundles.builder().unwrap();
    for number in 0..bundle::FILES_MAX {
        builder.begin(path(format!("f{number}").as_bytes()), EntryKind::File).unwrap();
    }
    let Refused::TooLarge { what, limit, .. } = refused(builder.begin(path(b"last"), EntryKind::File)) else {
        panic!()
    };
    assert_eq!((what.as_str(), limit), ("files", bundle::FILES_MAX as u64));
    drop(builder);
    assert_eq!(fs::read_dir(folder.path().join("incoming")).unwrap().count(), 0);
}

#[test]
fn a_folder_that_can_not_be_a_bundle_is_refused_by_name() {
    let folder = TempDir::new().unwrap();
    let new = |name: &str| {
        let root = folder.path().join(name);
        fs::create_dir_all(root.join("sub")).unwrap();
        root
    };
    let root = new("link");
    symlink("/etc/passwd", root.join("sub/passwd")).unwrap();
    let Refused::NotAFile { path: named, found } = refused(read_dir(&root)) else { panic!() };
    assert_eq!((named.as_str(), found), ("sub/passwd", "a symbolic link"));

    let root = new("socket");
    let _socket = std::os::unix::net::UnixListener::bind(root.join("s")).unwrap();
    assert!(matches!(refused(read_dir(&root)), Refused::NotAFile { found: "a socket", .. }));

    let root = new("nested");
    fs::create_dir(root.join("sub/.git")).unwrap();
    let Refused::UnsafePath { path: named, .. } = refused(read_dir(&root)) else { panic!() };
    assert_eq!(named.as_str(), "sub/.git");

    let root = new("many");
    for number in 0..=bundle::FILES_MAX {
        fs::File::create(root.join(format!("{number}"))).unwrap();
    }
    let Refused::TooLarge { what, limit, .. } = refused(read_dir(&root)) else { panic!() };
    assert_eq!((what.as_str(), limit), ("files", bundle::FILES_MAX as u64));
}

#[test]
fn an_extraction_stays_in_its_folder() {
    let folder = TempDir::new().unwrap();
    let outside = folder.path().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("kept"), "kept").unwrap();

    // A link in the artifact is written as a file, so nothing goes through it.
    let link = Entry { kind: EntryKind::Symlink, ..file(b"d", outside.as_os_str().as_bytes()) };
    let into = folder.path().join("one");
    let written = extract([Ok(link), Ok(file(b"d/x", b"x"))], &into);
    assert!(matches!(refused(written), Refused::PathTaken { .. }));
    assert!(fs::symlink_metadata(into.join("d")).unwrap().is_file());

    // Links that somebody plants while it runs are not followed, be they a folder or a file.
    let into = folder.path().join("two");
    let mut extraction = Extraction::into_new(&into).unwrap();
    symlink(&outside, into.join("d")).unwrap();
    symlink(outside.join("kept"), into.join("f")).unwrap();
    symlink(outside.join("new"), into.join("g")).unwrap();
    for name in [&b"d/x"[..], b"f", b"g", b"d"] {
        assert!(matches!(refused(extraction.write(&file(name, b"evil"))), Refused::PathTaken { .. }));
    }
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 1);
    assert_eq!(fs::read(outside.join("kept")).unwrap(), b"kept");

    // Nor is anything that was there before written over.
    assert!(matches!(refused(Extraction::into_new(&outside).map(|_| ())), Refused::NotEmpty { .. }));
    symlink(folder.path().join("nowhere"), folder.path().join("three")).unwrap();
    let dangling = Extraction::into_new(&folder.path().join("three"));
    assert!(matches!(refused(dangling), Refused::NotEmpty { .. }));
}
