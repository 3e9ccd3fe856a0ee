//! Merging what a circle holds onto its target.

use countersign::artifact::merge::{CONFLICT_PATHS_MAX, MergeOutcome, Merged, Merging, Part};
use countersign::protocol::time::Time;

use super::*;

const AT: Time = Time(1_790_000_000_000_000);

fn part(reference: &str, commit: &Digest) -> Part {
    Part {
        reference: format!("{reference}:{}", &commit.as_str()[..12]).parse().unwrap(),
        commit: commit.clone(),
        summary: "What it does".to_owned(),
        trailers: vec![
            format!("Countersign-Proposal: {reference}"),
            "Approved-by: sec (security)".to_owned(),
        ],
    }
}

fn onto<'a>(tip: &'a Digest, parts: &'a [Part]) -> Merging<'a> {
    Merging { tip: Some(tip), parts, forward_only: false, at: AT }
}

fn merged(outcome: MergeOutcome) -> Merged {
    match outcome {
        MergeOutcome::Merged(merged) => merged,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn versions_are_merged_one_after_the_other() {
    let yard = Yard::new();
    let root = yard.commit(&[(b"README", "100644", b"a\n")], &[]);
    let tip = yard.commit(&[(b"README", "100644", b"b\n")], &[&root]);
    let one = yard.commit(&[(b"README", "100644", b"a\n"), (b"one", "100644", b"1\n")], &[&root]);
    let two = yard.commit(&[(b"README", "100644", b"a\n"), (b"two", "100755", b"2\n")], &[&root]);
    yard.set_ref(MAIN, &tip);
    let repository = yard.open().await;
    let parts = [part("one@1", &one), part("two@3", &two)];

    let tried = merged(repository.try_merge(onto(&tip, &parts)).await.unwrap());
    let asked = ["cat-file", "-e", tried.to.as_str()];
    let there = plain_git().arg("--git-dir").arg(yard.bare()).args(asked).stderr(Stdio::null()).status();
    assert!(!there.unwrap().success(), "a trial leaves nothing behind");

    let done = merged(repository.merge(onto(&tip, &parts)).await.unwrap());
    assert_eq!(done, tried, "the same again is the same commit");
    assert_eq!(yard.git(&["ls-tree", "-r", "--name-only", done.tree.as_str()]), "README\none\ntwo");
    assert_eq!(yard.git(&["rev-parse", MAIN]), tip.as_str(), "no ref moves");
    let made: Vec<String> = done.merges.iter().map(|made| made.reference.to_string()).collect();
    assert_eq!(made, [parts[0].reference.to_string(), parts[1].reference.to_string()]);
    assert_eq!(done.merges[1].commit, done.to);
    let parents = format!("{} {two}", done.merges[0].commit);
    assert_eq!(yard.git(&["log", "-1", "--format=%P", done.to.as_str()]), parents);
    assert_eq!(
        yard.git(&["log", "-1", "--format=%an|%ct|%s|%(trailers:unfold,separator=%x7C)", done.to.as_str()]),
        "Countersign|1790000000|Publish two@3: What it does|Countersign-Proposal: two@3|Approved-by: sec (security)"
    );
    yard.git(&["fsck", "--strict", "--no-dangling"]);
}

#[tokio::test]
async fn what_follows_the_target_moves_it_forward_and_what_it_holds_adds_nothing() {
    let yard = Yard::new();
    let root = yard.commit(&[(b"README", "100644", b"a\n")], &[]);
    let one = yard.commit(&[(b"README", "100644", b"b\n")], &[&root]);
    let two = yard.commit(&[(b"README", "100644", b"c\n")], &[&one]);
    let repository = yard.open().await;
    let (parts, again) = ([part("two@1", &two), part("one@1", &one)], [part("one@1", &one)]);
    let done = merged(repository.merge(onto(&root, &parts)).await.unwrap());
    assert_eq!((done.to, done.merges.len()), (two.clone(), 0));
    let done = merged(repository.merge(onto(&two, &again)).await.unwrap());
    assert_eq!((done.to, done.merges.len()), (two.clone(), 0), "it is there already");

    let nowhere = Merging { tip: None, parts: &again, forward_only: true, at: AT };
    assert_eq!(merged(repository.merge(nowhere).await.unwrap()).to, one, "a new ref begins with it");

    let aside = yard.commit(&[(b"README", "100644", b"a\n"), (b"x", "100644", b"x\n")], &[&root]);
    let parts = [part("aside@1", &aside)];
    let strict = Merging { forward_only: true, ..onto(&two, &parts) };
    let reference = parts[0].reference.clone();
    assert_eq!(repository.merge(strict).await.unwrap(), MergeOutcome::NotForward { reference });
}

#[tokio::test]
async fn a_conflict_names_the_version_and_its_paths() {
    let yard = Yard::new();
    let hostile = b"src/\n\x1b[31m\xff";
    let root = yard.commit(&[(b"a", "100644", b"a\n"), (hostile, "100644", b"a\n")], &[]);
    let one = yard.commit(&[(b"a", "100644", b"b\n"), (hostile, "100644", b"b\n")], &[&root]);
    let two = yard.commit(&[(b"a", "100644", b"a\n"), (hostile, "100644", b"c\n")], &[&root]);
    let repository = yard.open().await;
    let parts = [part("one@1", &one), part("two@1", &two)];
    let before = yard.git(&["count-objects"]);
    let outcome = repository.merge(onto(&root, &parts)).await.unwrap();
    let MergeOutcome::Conflict { reference, paths, count } = outcome else { panic!("{outcome:?}") };
    assert_eq!((reference, count), (parts[1].reference.clone(), 1));
    assert_eq!(paths, [path(hostile)]);
    assert_eq!(yard.git(&["count-objects"]), before, "nothing of it is kept");

    let many: Vec<Vec<u8>> = (0..30).map(|n| format!("f{n:02}").into_bytes()).collect();
    let all = |content: &'static [u8]| -> Vec<TreeFile<'_>> {
        many.iter().map(|name| (name.as_slice(), "100644", content)).collect()
    };
    let one = yard.commit(&all(b"1\n"), &[]);
    let two = yard.commit(&all(b"2\n"), &[]);
    let parts = [part("two@1", &two)];
    let outcome = repository.try_merge(onto(&one, &parts)).await.unwrap();
    let MergeOutcome::Conflict { paths, count, .. } = outcome else { panic!("{outcome:?}") };
    assert_eq!((paths.len(), count), (CONFLICT_PATHS_MAX, 30));
}

#[tokio::test]
async fn no_attribute_and_no_driver_has_a_say_in_a_merge() {
    let yard = Yard::new();
    let attributes: TreeFile<'_> = (b".gitattributes", "100644", b"* merge=ours\n");
    let root = yard.commit(&[attributes, (b"a", "100644", b"a\n")], &[]);
    let one = yard.commit(&[attributes, (b"a", "100644", b"b\n")], &[&root]);
    let two = yard.commit(&[attributes, (b"a", "100644", b"c\n")], &[&root]);
    yard.set_ref(MAIN, &one);
    let ran = yard.folder.path().join("ran");
    fs::create_dir_all(yard.bare().join("info")).unwrap();
    fs::write(yard.bare().join("info/attributes"), "* merge=ours\n").unwrap();
    yard.git(&["config", "merge.ours.driver", &format!("touch {}", ran.display())]);
    let parts = [part("two@1", &two)];
    let outcome = yard.open().await.merge(onto(&one, &parts)).await.unwrap();
    assert!(matches!(outcome, MergeOutcome::Conflict { .. }), "{outcome:?}");
    assert!(!ran.exists());
}

#[tokio::test]
async fn what_is_no_commit_here_is_not_merged() {
    let yard = Yard::of_format("sha256");
    let root = yard.commit(&[(b"a", "100644", b"a\n")], &[]);
    let aside = yard.commit(&[(b"b", "100644", b"b\n")], &[]);
    let repository = yard.open().await;
    let parts = [part("one@1", &aside)];
    assert_eq!(merged(repository.merge(onto(&root, &parts)).await.unwrap()).merges.len(), 1);
    let unknown = [part("one@1", &"1".repeat(64).parse().unwrap())];
    assert!(matches!(refused(repository.merge(onto(&root, &unknown)).await), Refused::Unknown { .. }));
    let blob = yard.git_as(&["hash-object", "-w", "--stdin"], b"x", &APP).parse().unwrap();
    let unknown = [part("one@1", &blob)];
    assert!(matches!(refused(repository.merge(onto(&root, &unknown)).await), Refused::NotACommit { .. }));
}
