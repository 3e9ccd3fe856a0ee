//! Ways around the door: a hook can't close them to whoever may write the repository, so the audit sees them.

use std::os::unix::fs::PermissionsExt;

use serde_json::Value;

use super::guarded::Guarded;
use super::place::Ran;

#[test]
fn a_ref_that_moved_behind_the_door_is_found_by_name() {
    let guarded = Guarded::served();
    assert_eq!(guarded.moved(), [""; 0]);
    let (head, main) = (guarded.id("HEAD"), guarded.at("refs/heads/main"));
    guarded.push(&["HEAD:refs/heads/free"]).done();
    guarded.place.git("atlas.git", &["update-ref", "refs/heads/main", &head]);
    guarded.place.git("atlas.git", &["update-ref", "refs/heads/release/1", &head]);
    guarded.place.git("atlas.git", &["update-ref", "-d", "refs/tags/v0"]);
    guarded.place.git("atlas.git", &["update-ref", "refs/countersign/parser/1", &head]);
    guarded.place.git("atlas.git", &["pack-refs", "--all"]);
    let audit = guarded.place.run(&["--json", "door", "audit"]);
    assert_eq!(audit.exit, 1);
    let json = audit.json();
    assert_eq!((&json["ok"], &json["code"]), (&Value::Bool(false), &Value::from("REFS_MOVED")));
    let expected = serde_json::json!([
        { "ref": "refs/countersign/parser/1", "from": null, "to": head },
        { "ref": "refs/heads/main", "from": main, "to": head },
        { "ref": "refs/heads/release/1", "from": null, "to": head },
        { "ref": "refs/tags/v0", "from": main, "to": null },
    ]);
    assert_eq!(json["moved"], expected);
    // Installing again makes none of it right; putting the refs back does.
    guarded.place.run(&["door", "install"]).done();
    assert_eq!(guarded.moved().len(), 4);
    guarded.place.git("atlas.git", &["update-ref", "refs/heads/main", &main, &head]);
    guarded.place.git("atlas.git", &["update-ref", "refs/tags/v0", &main]);
    guarded.place.git("atlas.git", &["update-ref", "-d", "refs/heads/release/1"]);
    guarded.place.git("atlas.git", &["update-ref", "-d", "refs/countersign/parser/1"]);
    assert_eq!(guarded.moved(), [""; 0]);
}

#[test]
fn an_audit_needs_no_server_and_says_where_there_is_no_door() {
    let guarded = Guarded::bare();
    let none = guarded.place.run(&["--json", "door", "audit"]);
    assert_eq!((none.exit, &none.json()["code"]), (1, &"NO_DOOR".into()));
    guarded.place.run(&["door", "install"]).done();
    assert_eq!(guarded.moved(), [""; 0]);
    let head = guarded.id("HEAD");
    guarded.place.git("atlas.git", &["fetch", "-q", "../app", "HEAD"]);
    guarded.place.git("atlas.git", &["update-ref", "refs/heads/main", &head]);
    assert_eq!(guarded.moved(), ["refs/heads/main"]);
}

#[test]
fn what_the_client_says_of_hooks_counts_for_nothing() {
    let guarded = Guarded::served();
    for setting in ["core.hooksPath=/dev/null", "core.hooksPath=", "receive.denyDeletes=false"] {
        let pushed = guarded.git_command(&["-c", setting, "push", "origin", "HEAD:main"]).output().unwrap();
        let pushed = Ran::of(&pushed);
        assert!(pushed.exit == 1 && pushed.err.contains("refused DIRECT_PUSH"), "{setting}: {pushed:?}");
    }
    let mut push = guarded.git_command(&["push", "-o", "countersign=yes", "origin", "HEAD:main"]);
    guarded.place.git("atlas.git", &["config", "receive.advertisePushOptions", "true"]);
    let pushed = Ran::of(&push.output().unwrap());
    assert!(pushed.exit == 1 && pushed.err.contains("refused DIRECT_PUSH"), "{pushed:?}");
    assert_eq!(guarded.moved(), [""; 0]);
}

#[test]
fn a_receive_pack_of_the_clients_own_goes_around_the_hook_and_is_seen() {
    let guarded = Guarded::served();
    let own = "--receive-pack=git -c core.hooksPath=/dev/null receive-pack";
    Ran::of(&guarded.git_command(&["push", own, "origin", "HEAD:main"]).output().unwrap()).done();
    assert_eq!(guarded.moved(), ["refs/heads/main"]);
    let plain = "--receive-pack=git receive-pack";
    let pushed = guarded.git_command(&["push", plain, "origin", "HEAD:refs/tags/v9"]).output().unwrap();
    assert!(Ran::of(&pushed).err.contains("refused DIRECT_PUSH"));
}

#[test]
fn a_users_own_hooks_folder_is_named_by_the_doctor_and_closed_as_it_says() {
    let guarded = Guarded::served();
    guarded.place.write("gitconfig", "[core]\n\thooksPath = /nowhere\n");
    let config = guarded.place.path("gitconfig");
    let push = |guarded: &Guarded, refspec: &str| {
        let mut push = guarded.git_command(&["push", "origin", refspec]);
        Ran::of(&push.env("GIT_CONFIG_GLOBAL", &config).output().unwrap())
    };
    push(&guarded, "HEAD:main").done();
    assert_eq!(guarded.moved(), ["refs/heads/main"], "it went around, and is seen");
    let ways = |guarded: &Guarded| {
        let mut doctor = guarded.place.command(".", &["--json", "door", "doctor"]);
        let doctor = Ran::of(&doctor.env("GIT_CONFIG_GLOBAL", &config).output().unwrap()).done().json();
        let names = doctor["ways"].as_array().unwrap().iter().map(|way| super::place::text(&way["name"]));
        names.collect::<Vec<String>>()
    };
    assert_eq!(ways(&guarded), ["hooks-path", "same-user"]);
    guarded.place.git("atlas.git", &["config", "core.hooksPath", "hooks"]);
    assert_eq!(ways(&guarded), ["same-user"]);
    let refused = push(&guarded, "HEAD:refs/tags/v9");
    assert!(refused.err.contains("refused DIRECT_PUSH"), "{refused:?}");
}

#[test]
fn the_doctor_names_files_that_others_may_write_and_a_hook_that_is_gone() {
    let guarded = Guarded::unserved();
    let names = |guarded: &Guarded| {
        let doctor = guarded.place.run(&["--json", "door", "doctor"]).done().json();
        let ways = doctor["ways"].as_array().unwrap().clone();
        ways.iter()
            .map(|way| (super::place::text(&way["name"]), super::place::text(&way["who"])))
            .collect::<Vec<_>>()
    };
    let closed = |guarded: &Guarded| names(guarded).into_iter().map(|(name, _)| name).collect::<Vec<_>>();
    assert_eq!(closed(&guarded), ["same-user"]);
    let refs = guarded.place.path("atlas.git/refs");
    std::fs::set_permissions(&refs, std::fs::Permissions::from_mode(0o777)).unwrap();
    let found = names(&guarded);
    assert_eq!(found[0].0, "permissions");
    assert!(found[0].1.contains("atlas.git/refs (everybody)"), "{found:?}");
    std::fs::set_permissions(&refs, std::fs::Permissions::from_mode(0o755)).unwrap();
    std::fs::remove_file(guarded.place.path("atlas.git/hooks/pre-receive")).unwrap();
    assert_eq!(closed(&guarded), ["hook", "same-user"]);
}
