//! What it takes to ask git about a commit that changes 10,000 files: what a version is when it is proposed, and how
//! it stands to its target whenever that is asked anew.
//!
//! `cargo bench --bench facts [-- --quick]`
//!
//! Budget: each under 2 s. The target moved meanwhile, in half of those files, so that they are merged; and once
//! more for a version that takes all of that back, where every file and commit has to be found.

mod figures;

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use countersign::artifact::repository::Repository;
use countersign::protocol::name::Digest;
use countersign::protocol::review::{Compared, Comparison};
use figures::at_most;

const FILES: usize = 10_000;
const BUDGET_SECONDS: f64 = 2.0;
const TARGET: &str = "refs/heads/main";

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let rounds = if figures::quick() { 1 } else { 5 };
    let folder = tempfile::tempdir().expect("a temporary folder");
    let bare = folder.path().join("guarded.git");
    git(folder.path(), &["init", "-q", "--bare", "-b", "main", "guarded.git"], "");
    git(&bare, &["fast-import", "--quiet", "--force"], &history());
    let repository = Repository::open(&bare, &folder.path().join("desk")).await.expect("it is a repository");
    let at = |name: &str| -> Digest { git(&bare, &["rev-parse", name], "").parse().expect("it is an id") };
    let (tip, mine, back) = (at(TARGET), at("refs/heads/mine"), at("refs/heads/back"));

    println!("seconds to ask git about a commit that changes {FILES} files; the worst of {rounds} rounds");
    let mut worst = [0.0_f64; 3];
    for _ in 0..rounds {
        let begun = Instant::now();
        let (_, facts) = repository.facts(&mine, TARGET).await.expect("it is a commit");
        assert_eq!(facts.paths.len(), FILES);
        worst[0] = worst[0].max(begun.elapsed().as_secs_f64());
        for (index, commit, undone) in [(1, &mine, 0), (2, &back, FILES / 2)] {
            let begun = Instant::now();
            let comparison = comparison(commit);
            let reports = repository.compare(&comparison, Some(&tip)).await.expect("it is a commit");
            let found = reports[0].undone.as_ref().map_or(0, |undone| undone.files_total as usize);
            assert_eq!((found, &reports[0].conflict), (undone, &None));
            worst[index] = worst[index].max(begun.elapsed().as_secs_f64());
        }
    }
    for (what, seconds) in ["what a version is", "against its target", "taking work back"].iter().zip(worst) {
        println!(
            "{what:>20}  {seconds:.2} s, at most {BUDGET_SECONDS} s: {}",
            at_most(seconds, BUDGET_SECONDS)
        );
    }
}

fn comparison(commit: &Digest) -> Comparison {
    let reference = format!("parser@1:{}", commit.short()).parse().expect("it is a reference");
    let version = Compared { reference, commit: commit.clone(), earlier: Vec::new() };
    Comparison { target: TARGET.to_owned(), forward_only: false, versions: vec![version] }
}

/// Files of three lines: main changes the last one of every second file, `mine` the first one of each, and `back` has
/// both in its history and drops what main did.
fn history() -> String {
    let mut stream = String::new();
    let mut commit = |name: &str, mark: u32, parents: &str, text: &dyn Fn(usize) -> Option<String>| {
        let _ = write!(
            stream,
            "commit {name}\nmark :{mark}\ncommitter team <team@example.org> {}00000000 +0000\ndata 4\nwork\n{parents}",
            10 + mark
        );
        for (number, text) in (0..FILES).filter_map(|number| Some((number, text(number)?))) {
            let path = format!("dir{:02}/file{number:05}", number % 100);
            let _ = write!(stream, "M 100644 inline {path}\ndata {}\n{text}\n", text.len());
        }
        stream.push('\n');
    };
    let text = |first: &str, number: usize, last: &str| Some(format!("{first}\n{number}\n\n\n\n{last}\n"));
    commit(TARGET, 1, "", &|number| text("one", number, "one"));
    commit("refs/heads/mine", 2, "from :1\n", &|number| text("two", number, "one"));
    commit(TARGET, 3, "from :1\n", &|number| (number % 2 == 0).then(|| text("one", number, "two")).flatten());
    let drop = |number| (number % 2 == 0).then(|| text("one", number, "one")).flatten();
    commit("refs/heads/back", 4, "from :2\nmerge :3\n", &drop);
    stream
}

fn git(folder: &Path, args: &[&str], input: &str) -> String {
    let mut git = Command::new("git");
    git.current_dir(folder).args(args).env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
    let mut child = git.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("git is needed");
    child.stdin.take().expect("it is a pipe").write_all(input.as_bytes()).expect("git reads");
    let output = child.wait_with_output().expect("git ends");
    assert!(output.status.success(), "git {args:?}");
    String::from_utf8(output.stdout).expect("ids are ASCII").trim().to_owned()
}
