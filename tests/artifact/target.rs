//! How versions stand to their target: empty, taking back what landed, in conflict.

use countersign::protocol::review::{Compared, Comparison, NAMED_MAX, TargetMoved};

use super::*;

const MODE: &str = "100644";
/// Ten years before all else, and ten years after it.
const LONG_AGO: CommitWords<'_> = CommitWords { date: "1470000000 +0000", ..APP };
const FAR_OFF: CommitWords<'_> = CommitWords { date: "2110000000 +0000", ..APP };

fn compared(name: &str, commit: &Digest, earlier: &[&Digest]) -> Compared {
    Compared {
        reference: format!("{name}:{}", &commit.as_str()[..12]).parse().unwrap(),
        commit: commit.clone(),
        earlier: earlier.iter().copied().cloned().collect(),
    }
}

async fn said(yard: &Yard, tip: &Digest, versions: Vec<Compared>, forward_only: bool) -> Vec<TargetMoved> {
    let comparison = Comparison { target: MAIN.to_owned(), forward_only, versions };
    yard.set_ref(MAIN, tip);
    let repository = yard.open().await;
    assert_eq!(repository.tip(MAIN).await.unwrap().as_ref(), Some(tip));
    repository.compare(&comparison, Some(tip)).await.unwrap()
}

/// Files that would be taken back, and the commits that brought what would be gone.
async fn taken_back(
    yard: &Yard,
    tip: &Digest,
    commit: &Digest,
    earlier: &[&Digest],
) -> (Vec<String>, Vec<Digest>) {
    let report = said(yard, tip, vec![compared("parser@2", commit, earlier)], false).await.remove(0);
    assert_eq!((report.empty, &report.conflict), (false, &None));
    let Some(undone) = report.undone else { return Default::default() };
    assert_eq!(undone.files.len(), undone.files_total as usize);
    (undone.files.iter().map(|path| path.as_str().to_owned()).collect(), undone.commits)
}

fn nothing() -> (Vec<String>, Vec<Digest>) {
    Default::default()
}

#[tokio::test]
async fn a_version_that_merged_the_target_and_dropped_it_takes_it_back() {
    // Whatever the dates say, and whichever parent comes first.
    for words in [&APP, &LONG_AGO, &FAR_OFF] {
        let yard = Yard::new();
        let root = yard.commit(&[(b"a", MODE, b"1\n"), (b"b", MODE, b"1\n")], &[]);
        let fix = yard.commit_as(&[(b"a", MODE, b"2\n"), (b"b", MODE, b"1\n")], &[&root], words);
        let mine = yard.commit(&[(b"a", MODE, b"1\n"), (b"b", MODE, b"1\n"), (b"c", MODE, b"1\n")], &[&root]);
        let dropped: &[TreeFile<'_>] = &[(b"a", MODE, b"1\n"), (b"b", MODE, b"1\n"), (b"c", MODE, b"1\n")];
        let found = (vec!["a".to_owned()], vec![fix.clone()]);
        for parents in [[&mine, &fix], [&fix, &mine]] {
            let merge = yard.commit(dropped, &parents);
            assert_eq!(taken_back(&yard, &fix, &merge, &[]).await, found);
        }
        // Taken in, and taken out again later.
        let kept: &[TreeFile<'_>] = &[(b"a", MODE, b"2\n"), (b"b", MODE, b"1\n"), (b"c", MODE, b"1\n")];
        let merge = yard.commit(kept, &[&mine, &fix]);
        assert_eq!(taken_back(&yard, &fix, &merge, &[]).await, nothing());
        let later = yard.commit_as(dropped, &[&merge], words);
        assert_eq!(taken_back(&yard, &fix, &later, &[]).await, found);
        // What never saw the fix merges with it, and so do own words in the same file after it was seen.
        assert_eq!(taken_back(&yard, &fix, &mine, &[]).await, nothing());
        let own = yard.commit(&[(b"a", MODE, b"3\n"), (b"b", MODE, b"1\n"), (b"c", MODE, b"1\n")], &[&merge]);
        assert_eq!(taken_back(&yard, &fix, &own, &[]).await, nothing());
    }
}

#[tokio::test]
async fn old_content_on_the_targets_head_is_measured_by_where_the_proposal_began() {
    let yard = Yard::new();
    let root = yard.commit(&[(b"a", MODE, b"1\n")], &[]);
    let first = yard.commit(&[(b"a", MODE, b"1\n"), (b"c", MODE, b"1\n")], &[&root]);
    let fix = yard.commit(&[(b"a", MODE, b"2\n")], &[&root]);
    let squashed = yard.commit(&[(b"a", MODE, b"1\n"), (b"c", MODE, b"2\n")], &[&fix]);
    assert_eq!(
        taken_back(&yard, &fix, &squashed, &[&first]).await,
        (vec!["a".to_owned()], vec![fix.clone()])
    );
    // Work that began with the fix and reverts it says so: it is a revert, and reviewed as one.
    assert_eq!(taken_back(&yard, &fix, &squashed, &[]).await, nothing());
}

#[tokio::test]
async fn an_older_state_in_between_names_only_what_came_after_it() {
    let yard = Yard::new();
    let root = yard.commit(&[(b"a", MODE, b"1\n")], &[]);
    let one = yard.commit(&[(b"a", MODE, b"2\n")], &[&root]);
    let other = yard.commit(&[(b"a", MODE, b"2\n"), (b"z", MODE, b"1\n")], &[&one]);
    // Landed by a merge: it is the merge that the target's own line has.
    let side = yard.commit(&[(b"a", MODE, b"3\n")], &[&one]);
    let two = yard.commit(&[(b"a", MODE, b"3\n"), (b"z", MODE, b"1\n")], &[&other, &side]);
    let mine = yard.commit(&[(b"a", MODE, b"1\n"), (b"c", MODE, b"1\n")], &[&root]);
    let files = |a: &'static [u8]| -> Vec<TreeFile<'static>> {
        vec![(b"a", MODE, a), (b"c", MODE, b"1\n"), (b"z", MODE, b"1\n")]
    };
    let back = yard.commit(&files(b"2\n"), &[&mine, &two]);
    assert_eq!(taken_back(&yard, &two, &back, &[]).await, (vec!["a".to_owned()], vec![two.clone()]));
    let further = yard.commit(&files(b"1\n"), &[&mine, &two]);
    assert_eq!(taken_back(&yard, &two, &further, &[]).await, (vec!["a".to_owned()], vec![one, two]));
}

#[tokio::test]
async fn files_of_every_kind_and_name_can_be_taken_back() {
    let yard = Yard::new();
    let names: [&[u8]; 7] =
        [b"-x", b":(top)a", b"*", b"new\nline", b"quo\"te", b"\xff\xfe", "bidi\u{202e}".as_bytes()];
    let other = "2".repeat(40);
    let with = |text: &'static [u8]| -> Vec<TreeFile<'static>> {
        names.iter().map(|name| (*name, MODE, text)).collect()
    };
    let mut before = with(b"1\n");
    before.extend([(b"link".as_slice(), "120000", b"a".as_slice()), (b"run", MODE, b"1\n")]);
    before.push((b"sub", "160000", SUBMODULE.as_bytes()));
    let mut landed = with(b"2\n");
    landed.extend([(b"link".as_slice(), "120000", b"b".as_slice()), (b"run", "100755", b"1\n")]);
    landed.push((b"sub", "160000", other.as_bytes()));
    landed.push((b"new", MODE, b"new\n"));
    let root = yard.commit(&before, &[]);
    let fix = yard.commit(&landed, &[&root]);
    let mut mine = before.clone();
    mine.push((b"c", MODE, b"1\n"));
    let merge = yard.commit(&mine, &[&root, &fix]);
    let (files, commits) = taken_back(&yard, &fix, &merge, &[]).await;
    let mut all: Vec<String> =
        names.iter().map(|name| RepoPath::from_bytes(name).as_str().to_owned()).collect();
    all.extend(["link", "new", "run", "sub"].map(str::to_owned));
    all.sort();
    assert_eq!((files, commits), (all, vec![fix.clone()]));

    // What moved elsewhere isn't gone, also with a line changed.
    let text: &[u8] = b"one\ntwo\nthree\nfour\nfive\nsix\n";
    let landed = yard.commit(&[(b"a", MODE, b"1\n"), (b"new", MODE, text)], &[&root]);
    let moved = b"one\ntwo\nthree\nfour\nfive\nseven\n";
    let moved = yard.commit(&[(b"a", MODE, b"1\n"), (b"else/new", MODE, moved)], &[&root, &landed]);
    let (files, _) = taken_back(&yard, &landed, &moved, &[]).await;
    assert!(!files.contains(&"new".to_owned()), "{files:?}");
}

#[tokio::test]
async fn more_than_is_named_is_counted() {
    let yard = Yard::new();
    let names: Vec<String> = (0..300).map(|number| format!("dir/{number:03}")).collect();
    let files = |text: &'static [u8]| -> Vec<TreeFile<'_>> {
        names.iter().map(|name| (name.as_bytes(), MODE, text)).collect()
    };
    let root = yard.commit(&files(b"1\n"), &[]);
    let fix = yard.commit(&files(b"2\n"), &[&root]);
    let mut mine = files(b"1\n");
    mine.push((b"c", MODE, b"1\n"));
    let merge = yard.commit(&mine, &[&root, &fix]);
    let report = said(&yard, &fix, vec![compared("parser@1", &merge, &[])], false).await.remove(0);
    let undone = report.undone.unwrap();
    assert_eq!((undone.files.len(), undone.files_total), (NAMED_MAX, 300));
    assert_eq!((undone.commits, undone.commits_total), (vec![fix], 1));
}

#[tokio::test]
async fn what_landed_by_another_way_leaves_nothing_and_what_conflicts_says_where() {
    let yard = Yard::new();
    let root = yard.commit(&[(b"a", MODE, b"1\n"), (b"b", MODE, b"1\n")], &[]);
    let mine = yard.commit(&[(b"a", MODE, b"2\n"), (b"b", MODE, b"1\n")], &[&root]);
    let same = yard.commit(&[(b"a", MODE, b"2\n"), (b"b", MODE, b"2\n")], &[&root]);
    let other = yard.commit(&[(b"a", MODE, b"3\n"), (b"b", MODE, b"2\n")], &[&root]);
    let report = async |tip: &Digest, forward: bool| {
        said(&yard, tip, vec![compared("parser@1", &mine, &[])], forward).await.remove(0)
    };
    assert!(report(&same, false).await.empty);
    assert!(report(&mine, false).await.empty, "it is what landed");
    assert!(report(&root, false).await.says_nothing());
    let conflict = report(&other, false).await.conflict.unwrap();
    assert_eq!(
        (conflict.with.len(), conflict.paths, conflict.paths_total),
        (0, vec![RepoPath::from_bytes(b"a")], 1)
    );
    let conflict = report(&same, true).await.conflict.unwrap();
    assert_eq!((conflict.not_forward, conflict.paths.len()), (true, 0), "such a target moves only forward");
    assert!(report(&root, true).await.says_nothing());
}

#[tokio::test]
async fn of_two_that_do_not_merge_the_later_one_is_in_the_way() {
    let yard = Yard::new();
    let root = yard.commit(&[(b"a", MODE, b"1\n"), (b"b", MODE, b"1\n")], &[]);
    let one = yard.commit(&[(b"a", MODE, b"2\n"), (b"b", MODE, b"1\n")], &[&root]);
    let beside = yard.commit(&[(b"a", MODE, b"1\n"), (b"b", MODE, b"2\n")], &[&root]);
    let later = yard.commit(&[(b"a", MODE, b"3\n"), (b"b", MODE, b"1\n")], &[&root]);
    let versions = ["one@1", "beside@1", "later@1"].into_iter().zip([&one, &beside, &later]);
    let versions: Vec<Compared> = versions.map(|(name, commit)| compared(name, commit, &[])).collect();
    let reports = said(&yard, &root, versions.clone(), false).await;
    assert!(reports[..2].iter().all(TargetMoved::says_nothing));
    let conflict = reports[2].conflict.as_ref().unwrap();
    assert_eq!((&conflict.with, conflict.paths_total), (&vec![versions[0].reference.clone()], 1));

    let turned: Vec<Compared> = versions.into_iter().rev().collect();
    let reports = said(&yard, &root, turned.clone(), false).await;
    assert!(reports[..2].iter().all(TargetMoved::says_nothing));
    assert_eq!(reports[2].conflict.as_ref().unwrap().with, vec![turned[0].reference.clone()]);
}

#[tokio::test]
async fn a_target_that_does_not_exist_yet_has_nothing_to_take_back() {
    let yard = Yard::new();
    let one = yard.commit(&[(b"a", MODE, b"1\n")], &[]);
    let comparison = |target: &str| {
        let versions = vec![compared("parser@1", &one, &[])];
        Comparison { target: target.to_owned(), forward_only: false, versions }
    };
    let repository = yard.open().await;
    assert_eq!(repository.tip("refs/heads/none").await.unwrap(), None);
    let reports = repository.compare(&comparison("refs/heads/none"), None).await.unwrap();
    assert!(reports[0].says_nothing() && reports[0].commit.is_none());
    for hostile in ["main", "HEAD", "-x", "--all", "refs/heads/a..b", "refs/heads/a^", "refs/heads/a\nb"] {
        let refused = repository.tip(hostile).await.unwrap_err();
        assert!(matches!(refused, Failure::Refused(Refused::RefName { .. })), "{hostile}");
    }
    for inert in ["refs/heads/$(id)", "refs/heads/;id", "refs/heads/-x", "refs/heads/\u{202e}x"] {
        yard.set_ref(inert, &one);
        assert_eq!(repository.tip(inert).await.unwrap().as_ref(), Some(&one), "{inert}");
    }
}

#[tokio::test]
async fn a_version_that_shares_many_beginnings_with_its_target_is_compared_all_the_same() {
    let yard = Yard::new();
    let root = yard.commit(&[(b"a", MODE, b"1\n")], &[]);
    let name = |n: usize| format!("f{n:02}").into_bytes();
    let names: Vec<Vec<u8>> = (0..20).map(name).collect();
    let begun: Vec<Digest> = names
        .iter()
        .map(|name| yard.commit(&[(b"a", MODE, b"1\n"), (name.as_slice(), MODE, b"1\n")], &[&root]))
        .collect();
    let parents: Vec<&Digest> = begun.iter().collect();
    let all = |content: &'static [u8]| -> Vec<TreeFile<'_>> {
        let files = names.iter().map(|name| (name.as_slice(), MODE, b"1\n".as_slice()));
        std::iter::once((b"a".as_slice(), MODE, content)).chain(files).collect()
    };
    let tip = yard.commit(&all(b"1\n"), &parents);
    let mine = yard.commit(&all(b"2\n"), &parents);
    let report = said(&yard, &tip, vec![compared("parser@2", &mine, &[])], false).await.remove(0);
    assert!(report.says_nothing(), "{report:?}");
    // Whoever offers one now is told.
    let refused = yard.open().await.facts(&mine, MAIN).await.unwrap_err();
    assert!(matches!(refused, Failure::Refused(Refused::TooLarge { .. })), "{refused}");
}
