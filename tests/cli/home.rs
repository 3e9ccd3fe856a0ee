//! The home, its tokens and its teams, and what is left elsewhere.

use std::process::Command;

use super::code;
use super::place::{PROGRAM, Place, Ran, charter, mode, text};

#[test]
fn modes_are_the_same_whatever_the_umask_and_the_environment() {
    let place = Place::empty();
    place.write("charter.toml", charter(""));
    let open = |args: &str| {
        let script = format!("umask 000; exec env -i LANG=C {PROGRAM} {args}");
        Ran::of(&Command::new("sh").args(["-c", &script]).current_dir(place.path(".")).output().unwrap())
    };
    open("init --charter charter.toml").done();
    place.git(".", &["init", "-q", "clone"]);
    open("member token app --into clone").done();
    for (path, expected) in [
        (".countersign", 0o700),
        (".countersign/tokens", 0o700),
        (".countersign/tokens/app", 0o600),
        (".countersign/tokens/dana", 0o600),
        (".countersign/operator.token", 0o600),
        (".countersign/countersign.db", 0o600),
        ("clone/.git/countersign", 0o700),
        ("clone/.git/countersign/tokens", 0o700),
        ("clone/.git/countersign/tokens/app", 0o600),
        ("clone/.git/countersign/server.json", 0o600),
    ] {
        assert_eq!(format!("{:o}", mode(&place.path(path))), format!("{expected:o}"), "{path}");
    }
    let help = open("--as app status");
    assert_eq!((help.exit, help.err.lines().next()), (3, Some("SERVER_UNREACHABLE")), "{help:?}");
}

#[test]
fn a_clone_gets_one_members_token_and_the_address() {
    let place = Place::served();
    place.git(".", &["init", "-q", "clone"]);
    let left = place.run(&["--json", "member", "token", "app", "--into", "clone"]).done().json();
    assert_eq!(left["into"]["addr"], place.addr());

    let mut files: Vec<String> = Vec::new();
    let mut folders = vec![place.path("clone/.git/countersign")];
    while let Some(folder) = folders.pop() {
        for item in std::fs::read_dir(folder).unwrap() {
            let path = item.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                files.push(path.file_name().unwrap().to_str().unwrap().to_owned());
            }
        }
    }
    files.sort();
    assert_eq!(files, ["app", "server.json"]);
    let kept = std::fs::read_to_string(place.path("clone/.git/countersign/server.json")).unwrap();
    assert_eq!(kept, format!("{{\"addr\":\"{}\",\"team\":\"atlas\"}}\n", place.addr()));

    // Elsewhere, where no home stands above, it is all that app needs; and it is nobody else.
    let elsewhere = Place::empty();
    std::fs::rename(place.path("clone"), elsewhere.path("clone")).unwrap();
    let status = elsewhere.run_in("clone", &["--json", "status"]).done().json();
    assert_eq!((&status["member"], &status["team"]), (&"app".into(), &"atlas".into()));
    assert_eq!(elsewhere.run_in("clone", &["--as", "sec", "status"]).exit, 5);
    assert_eq!(code(&place.run(&["--json", "member", "token", "app", "--into", "no-clone"])), "NOT_A_CLONE");
}

#[test]
fn a_token_is_rotated_kept_and_revoked() {
    for served in [false, true] {
        let mut place = Place::with(&charter(""));
        if served {
            place.serve();
        }
        let file = place.path(".countersign/tokens/app");
        let before = std::fs::read_to_string(&file).unwrap();
        place.write("before", &before);
        place.run(&["member", "token", "app"]).done();
        let after = std::fs::read_to_string(&file).unwrap();
        assert_ne!(before, after);
        place.write("after", &after);
        let further = place.run(&["--json", "member", "token", "app", "--keep"]).done();
        assert!(!further.out.contains("csgn_"), "a token is never printed: {further:?}");
        let unknown = place.run(&["--json", "member", "token", "nobody"]);
        assert_eq!((unknown.exit, code(&unknown)), (1, "UNKNOWN_MEMBER".to_owned()));

        if !served {
            place.serve();
        }
        let speaks = |file: &str| {
            let mut command = place.command(".", &["--as", "app", "status"]);
            Ran::of(&command.env("COUNTERSIGN_TOKEN_FILE", file).output().unwrap()).exit
        };
        assert_eq!((speaks("before"), speaks("after"), speaks(".countersign/tokens/app")), (5, 0, 0));
        place.run(&["member", "token", "app", "--revoke"]).done();
        assert_eq!((speaks("after"), file.exists()), (5, false));
    }
}

#[test]
fn a_home_holds_further_teams() {
    let place = Place::served();
    let other =
        charter("").replace("atlas", "bravo").replace("[members.arch]", "[members.arch]\n[members.zoe]");
    place.write("other/charter.toml", other);
    place.run(&["team", "add", "--charter", "other/charter.toml"]).done();
    let team =
        |args: &[&str]| text(&place.run(&[&["--json", "--as", "app"], args].concat()).done().json()["team"]);
    let needed = place.run(&["--json", "--as", "app", "status"]);
    assert_eq!((needed.exit, code(&needed)), (1, "TEAM_NEEDED".to_owned()), "{needed:?}");
    assert_eq!(needed.json()["facts"]["teams"], serde_json::json!(["atlas", "bravo"]));
    let unknown = place.run(&["--json", "--as", "app", "--team", "nope", "status"]);
    assert_eq!((unknown.exit, code(&unknown)), (1, "UNKNOWN_TEAM".to_owned()), "{unknown:?}");
    assert_eq!(
        text(&place.run(&["--json", "--as", "zoe", "status"]).done().json()["team"]),
        "bravo",
        "who is in one team alone needs not name it"
    );
    assert_eq!(team(&["--team", "atlas", "status"]), "atlas");
    assert_eq!(team(&["--team", "bravo", "status"]), "bravo");
    for again in [
        &["team", "add", "--charter", "other/charter.toml"] as &[&str],
        &["init", "--charter", "charter.toml"],
    ] {
        let taken = place.run(&[&["--json"], again].concat());
        assert_eq!(taken.exit, 1, "{taken:?}");
        assert!(["TEAM_TAKEN", "HOME_TAKEN"].contains(&code(&taken).as_str()), "{taken:?}");
    }
}

#[test]
fn a_charter_that_can_not_be_satisfied_leaves_nothing_behind() {
    let place = Place::empty();
    place.write("charter.toml", charter("").replace("reviewer = \"sec\"", "reviewer = \"app\""));
    let refused = place.run(&["--json", "init", "--charter", "charter.toml"]);
    assert_eq!((refused.exit, code(&refused)), (1, "CHARTER_REFUSED".to_owned()));
    assert!(text(&refused.json()["message"]).contains("charter.toml:"), "{refused:?}");
    assert!(refused.json()["facts"]["findings"][0]["line"].as_u64().is_some(), "{refused:?}");
    assert!(!place.path(".countersign").exists());
    place.write(
        "charter.toml",
        charter("[repository]\npath = \"none.git\"\nprotected = [\"refs/heads/main\"]\n"),
    );
    let refused = place.run(&["--json", "init", "--charter", "charter.toml"]);
    assert_eq!((refused.exit, code(&refused)), (1, "REPOSITORY_UNUSABLE".to_owned()));
    assert!(!place.path(".countersign").exists());
    let empty = Place::empty();
    let open = empty.run(&["--json", "serve", "--listen", "0.0.0.0:0"]);
    assert_eq!(code(&open), "NOT_LOOPBACK");
    assert!(!empty.path(".countersign").exists() && !empty.path("charter.toml").exists(), "{open:?}");
    place.write("charter.toml", charter("").replace("reviewer = \"sec\"", "reviewer = \"app\""));
    assert_eq!(place.run(&["charter", "check", "charter.toml"]).exit, 1);
    place.write("charter.toml", charter(""));
    let checked = place.run(&["charter", "check", "charter.toml"]).done();
    assert!(checked.out.contains("2 review edges of 12 possible"), "{checked:?}");
}
