//! Pushes in every form: protected refs stay, and everything else is none of the door's business.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use serde_json::Value;

use super::guarded::Guarded;
use super::place::Ran;

#[test]
fn a_direct_push_is_refused_and_says_how_to_propose() {
    let guarded = Guarded::served();
    let told = guarded.refused(&["HEAD:main"]);
    assert!(told.contains("refused DIRECT_PUSH"), "{told}");
    assert!(told.contains("refs/heads/main moves only to what a completed circle holds"), "{told}");
    assert!(told.contains("countersign propose parser --commit HEAD --summary TEXT"), "{told}");
    guarded.push(&["HEAD:refs/heads/free"]).done();
    assert_eq!(guarded.at("refs/heads/free"), guarded.id("HEAD"));

    let status = guarded.place.run(&["--as", "app", "--json", "status"]).done().json();
    let attempts = status["attempts"].as_array().unwrap();
    assert_eq!(attempts.len(), 1, "{status}");
    assert_eq!(attempts[0]["code"], "DIRECT_PUSH");
    assert_eq!((&attempts[0]["ref"], &attempts[0]["count"]), (&"refs/heads/main".into(), &1.into()));
    assert!(attempts[0]["member"].is_null(), "git knows no members");
}

#[test]
fn a_protected_ref_is_neither_made_nor_moved_nor_forced_nor_deleted() {
    let guarded = Guarded::served();
    guarded.place.git("app", &["tag", "-a", "v1", "-m", "one"]);
    let forms: [&[&str]; 13] = [
        &["HEAD:refs/heads/main"],
        &["--force", "HEAD:refs/heads/main"],
        &["+HEAD:refs/heads/main"],
        &["--force-with-lease", "HEAD:refs/heads/main"],
        &["--delete", "main"],
        &[":refs/heads/main"],
        &["HEAD:refs/heads/release/1"],
        &["v1"],
        &["HEAD:refs/tags/v2"],
        &["--delete", "refs/tags/v0"],
        &["--force", "HEAD:refs/tags/v0"],
        &["--follow-tags", "HEAD:refs/heads/main"],
        &["--no-verify", "HEAD:main"],
    ];
    for form in forms {
        let told = guarded.refused(form);
        assert!(told.contains("refused DIRECT_PUSH"), "{form:?}: {told}");
    }
    assert_eq!(guarded.moved(), [""; 0]);
}

#[test]
fn one_protected_ref_among_many_refuses_them_all_whatever_the_push_promises() {
    let guarded = Guarded::served();
    for (count, atomic) in [(25, false), (25, true), (300, false), (300, true)] {
        let mut refspecs: Vec<String> =
            (1..count).map(|number| format!("HEAD:refs/heads/topic/{count}-{atomic}-{number}")).collect();
        refspecs.insert(count / 2, "HEAD:refs/heads/main".to_owned());
        if atomic {
            refspecs.insert(0, "--atomic".to_owned());
        }
        let told = guarded.refused(&refspecs);
        assert!(told.contains(&format!("1 of its {count} refs may not move so")), "{told}");
        let reasons = told.lines().filter(|line| line.contains("countersign: refs/")).count();
        assert_eq!(reasons, 1, "{told}");
        let free: Vec<&String> = refspecs.iter().filter(|one| !one.ends_with("/main")).collect();
        guarded.push(&free).done();
    }
    let several: Vec<String> = (1..=300).map(|number| format!("HEAD:refs/tags/v{number}")).collect();
    let told = guarded.refused(&several);
    let reasons = told.lines().filter(|line| line.contains("countersign: refs/tags/v")).count();
    assert_eq!(reasons, 300, "a reason for each ref");
}

#[test]
fn a_mirror_and_all_branches_are_refused_whole() {
    let guarded = Guarded::served();
    guarded.place.git("app", &["branch", "other"]);
    for form in ["--mirror", "--all"] {
        let told = guarded.refused(&[form]);
        assert!(told.contains("refs/heads/main"), "{told}");
    }
    assert_eq!(guarded.at("refs/heads/other"), "");
}

#[test]
fn a_symbolic_ref_is_what_it_leads_to_also_where_that_is_not_there_yet() {
    let guarded = Guarded::served();
    let lead = |name: &str, to: &str| guarded.place.git("atlas.git", &["symbolic-ref", name, to]);
    lead("refs/heads/alias", "refs/heads/main");
    lead("refs/heads/second", "refs/heads/alias");
    lead("refs/heads/unborn", "refs/heads/release/9");
    lead("refs/heads/fine", "refs/heads/free");
    std::os::unix::fs::symlink("refs/heads/main", guarded.place.path("atlas.git/refs/heads/linked")).unwrap();
    for name in ["alias", "second", "unborn", "linked"] {
        let told = guarded.refused(&[&format!("HEAD:refs/heads/{name}")]);
        assert!(told.contains("refused DIRECT_PUSH"), "{name}: {told}");
    }
    guarded.push(&["HEAD:refs/heads/fine"]).done();
    assert_eq!(guarded.at("refs/heads/free"), guarded.id("HEAD"));
    // A branch may be called so; the repository's own HEAD is no ref that a push reaches.
    guarded.push(&["HEAD:HEAD"]).done();
    assert_eq!(guarded.at("refs/heads/HEAD"), guarded.id("HEAD"));
    assert_eq!(guarded.at("refs/heads/main"), guarded.id("HEAD~1"));
    assert_eq!(guarded.place.git("atlas.git", &["symbolic-ref", "HEAD"]), "refs/heads/main");
    guarded.refused(&["--force", "HEAD:refs/heads/alias", "HEAD:refs/heads/topic"]);
}

#[test]
fn hostile_names_are_inert_and_shown_escaped() {
    let guarded = Guarded::served();
    let names = [
        "$(touch${IFS}pwned)",
        ";id",
        "<svg/onload=1>",
        "a\u{202e}b",
        "-x",
        "`id`",
        "'",
        "\"",
        "&&id",
        "%s%n",
    ];
    for name in names {
        guarded.push(&[format!("HEAD:refs/heads/{name}")]).done();
        // Below a folder the pattern does not match; the names with a slash are other refs.
        let flat = name.replace('/', "-");
        let told = guarded.refused(&[format!("HEAD:refs/heads/release/{flat}")]);
        assert!(told.contains("refused DIRECT_PUSH"), "{name}: {told}");
        let ours: Vec<&str> = told.lines().filter(|line| line.contains("countersign: ")).collect();
        assert!(ours.iter().all(|line| !line.contains('\u{202e}')), "{ours:?}");
    }
    let bytes = OsString::from_vec(b"HEAD:refs/heads/release/\xff\xfe\x9b".to_vec());
    let pushed = guarded.push(&[bytes]);
    assert_eq!(pushed.exit, 1, "{pushed:?}");
    assert!(pushed.err.contains("\\xff\\xfe\\x9b"), "{pushed:?}");
    for folder in ["app", "atlas.git", "."] {
        assert!(!guarded.place.path(folder).join("pwned").exists());
    }
    assert_eq!(guarded.moved(), [""; 0]);
}

#[test]
fn a_staging_ref_is_made_once_by_the_whole_id_of_its_commit() {
    let guarded = Guarded::served();
    let (head, before) = (guarded.id("HEAD"), guarded.id("HEAD~1"));
    guarded.place.git("app", &["tag", "-a", "note", "-m", "a tag object"]);
    let tag = guarded.id("refs/tags/note");
    let staging = |from: &str, name: &str| format!("{from}:refs/countersign/staging/{name}");
    for (what, refspec) in [
        ("another's name", staging("HEAD", &before)),
        ("a short name", staging("HEAD", &head[..12])),
        ("a word", staging("HEAD", "mine")),
        ("no commit", staging("refs/tags/note", &tag)),
        ("something below", staging("HEAD", &format!("{head}/x"))),
    ] {
        let told = guarded.refused(&[&refspec]);
        assert!(told.contains("refused STAGING_REF"), "{what}: {told}");
    }
    let status = guarded.place.run(&["--as", "app", "--json", "status"]).done().json();
    let codes: Vec<&Value> = status["attempts"].as_array().unwrap().iter().map(|one| &one["code"]).collect();
    assert_eq!(codes, ["STAGING_REF"; 5], "each is counted by its ref");
    for kept in ["refs/countersign/parser/1", "refs/countersign/staging", "refs/countersign"] {
        let told = guarded.refused(&[format!("HEAD:{kept}")]);
        assert!(told.contains("refused DIRECT_PUSH"), "{kept}: {told}");
    }
    guarded.push(&[staging("HEAD", &head)]).done();
    for (what, args) in [
        ("deleted", vec!["--delete".to_owned(), format!("refs/countersign/staging/{head}")]),
        ("moved", vec!["--force".to_owned(), staging("HEAD~1", &head)]),
        ("staged beside a push to main", vec![staging("HEAD~1", &before), "HEAD:main".to_owned()]),
    ] {
        let told = guarded.refused(&args);
        assert!(
            told.contains("refused STAGING_REF") || told.contains("refused DIRECT_PUSH"),
            "{what}: {told}"
        );
    }
    // The way by which the command itself goes.
    let proposed = ["--as", "app", "--json", "propose", "parser", "--commit", "HEAD", "--summary", "Parser"];
    guarded.place.run_in("app", &proposed).done();
    assert_eq!(guarded.at("refs/countersign/parser/1"), head);
    guarded.refused(&["HEAD~1:refs/countersign/parser/1", "--force"]);
    guarded.refused(&["--delete", "refs/countersign/parser/1"]);
    assert_eq!(guarded.moved(), [""; 0]);
}

#[test]
fn a_push_over_ssh_meets_the_same_door_with_nothing_of_the_pushers_environment() {
    let guarded = Guarded::served();
    // What sshd does with a command: it runs it by a shell, in an environment of its own.
    guarded
        .place
        .write("ssh", "#!/bin/sh\nshift\nexec env -i PATH=\"$PATH\" HOME=/nonexistent sh -c \"$*\"\n");
    let ssh = guarded.place.path("ssh");
    std::fs::set_permissions(&ssh, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let url = format!("ssh://forge.example.org{}", guarded.place.path("atlas.git").display());
    let push = |refspec: &str| {
        let mut push = guarded.git_command(&["push", &url, refspec]);
        let push = push.env("GIT_SSH", &ssh).env("GIT_SSH_VARIANT", "simple");
        Ran::of(&push.output().unwrap())
    };
    let refused = push("HEAD:refs/heads/main");
    assert!(refused.exit == 1 && refused.err.contains("refused DIRECT_PUSH"), "{refused:?}");
    let head = guarded.id("HEAD");
    push(&format!("HEAD:refs/countersign/staging/{head}")).done();
    assert_eq!(guarded.at(&format!("refs/countersign/staging/{head}")), head);
    assert_eq!(guarded.at("refs/heads/main"), guarded.id("HEAD~1"));
}
