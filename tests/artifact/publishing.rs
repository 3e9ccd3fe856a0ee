//! Moving refs to what was published, and what a record is worth.

use countersign::artifact::publishing::{Moving, Record, Standing};
use countersign::protocol::review::PublishedRef;

use super::*;

const NEXT: &str = "refs/heads/next";

fn to(name: &str, from: Option<&Digest>, to: &Digest) -> PublishedRef {
    PublishedRef { name: name.to_owned(), from: from.cloned(), to: to.clone(), merges: Vec::new() }
}

fn record(refs: &[&PublishedRef]) -> Record {
    let manifest = "ab".repeat(32).parse().unwrap();
    Record { manifest, refs: refs.iter().copied().cloned().collect(), check: None }
}

/// Three commits, each after the one before; main is at the first.
fn line(yard: &Yard) -> [Digest; 3] {
    let one = yard.commit(&[(b"a", "100644", b"1\n")], &[]);
    let two = yard.commit(&[(b"a", "100644", b"2\n")], &[&one]);
    let three = yard.commit(&[(b"a", "100644", b"3\n")], &[&two]);
    yard.set_ref(MAIN, &one);
    [one, two, three]
}

#[tokio::test]
async fn a_ref_that_is_held_did_not_move_and_git_says_what_holds_it() {
    let yard = Yard::new();
    let [one, two, three] = line(&yard);
    let repository = yard.open().await;
    let record = record(&[&to(MAIN, Some(&one), &two)]);
    let lock = yard.bare().join("refs/heads/main.lock");
    fs::write(&lock, "").unwrap();
    let held = repository.publish(&record, &[]).await.unwrap_err().to_string();
    assert!(held.contains("main.lock") && held.contains("File exists"), "{held}");
    let moved = countersign::protocol::escalation::MovedRef {
        name: MAIN.to_owned(),
        from: Some(two.clone()),
        to: Some(one.clone()),
    };
    let held = repository.put_back(&moved).await.unwrap_err().to_string();
    assert!(held.contains("main.lock"), "{held}");
    fs::remove_file(&lock).unwrap();
    assert_eq!(repository.record(&record.manifest).await.unwrap(), None, "nothing moved");
    // It moved: that is no fault.
    yard.set_ref(MAIN, &three);
    assert_eq!(repository.publish(&record, &[]).await.unwrap(), Moving::Refused);
    yard.set_ref(MAIN, &one);
    assert_eq!(repository.publish(&record, &[]).await.unwrap(), Moving::Done);
    assert_eq!(repository.record(&record.manifest).await.unwrap(), Some(record));
}

#[tokio::test]
async fn a_ref_is_done_only_where_it_is_at_what_was_published_or_follows_it() {
    let yard = Yard::new();
    let [one, two, three] = line(&yard);
    let aside = yard.commit(&[(b"b", "100644", b"1\n")], &[&one]);
    let repository = yard.open().await;
    let (main, next) = (to(MAIN, Some(&one), &two), to(NEXT, None, &two));
    let record = record(&[&main, &next]);
    let none = || Standing::Partly(Vec::new());
    let finished = async || repository.finish(&record).await.unwrap();

    assert_eq!(finished().await, none(), "a record alone moves nothing");
    yard.set_ref(MAIN, &aside);
    assert_eq!(finished().await, none(), "elsewhere is not done");
    yard.git(&["update-ref", "-d", MAIN]);
    assert_eq!(finished().await, none(), "gone is not done");
    assert_eq!(repository.tip(NEXT).await.unwrap(), None);

    // Git was cut off between the two.
    yard.set_ref(MAIN, &two);
    assert_eq!(finished().await, Standing::Done);
    assert_eq!(repository.tip(NEXT).await.unwrap(), Some(two.clone()));
    for (at_main, at_next) in [(&three, &two), (&two, &three), (&three, &three)] {
        yard.set_ref(MAIN, at_main);
        yard.set_ref(NEXT, at_next);
        assert_eq!(finished().await, Standing::Done, "what follows holds it");
    }
    yard.set_ref(NEXT, &aside);
    assert_eq!(finished().await, Standing::Partly(vec![main.clone()]));
    assert_eq!(repository.tip(NEXT).await.unwrap(), Some(aside), "it is merged onto again");
}
