//! Publishing to a real repository: forward, by merge, checked, cut off at each step, and in a race.

use super::place::text;
use super::shop::Shop;

/// Nobody looks at the targets before publishing does: as where one moves after the last confirmation.
const UNSEEN: &str = "\n[rules]\n\"confirm/unmerged\" = \"off\"\n";

#[test]
fn a_circle_is_published_at_once_by_forward_and_merge() {
    let shop = Shop::served("", "together");
    let before = shop.at("refs/heads/main");
    shop.reviewed("app", "parser", "src/parser.rs", "fn parse() {}\n");
    let lexer = shop.reviewed("bee", "lexer", "src/lexer.rs", "fn lex() {}\n");
    shop.confirm("implement", &["app", "bee", "sec"]);
    let published = shop.becomes("implement", "published");
    let (parser_commit, lexer_commit) =
        (shop.place.git("app", &["rev-parse", "HEAD"]), shop.place.git("bee", &["rev-parse", "HEAD"]));
    let main = shop.at("refs/heads/main");
    assert_eq!(
        published["published"],
        serde_json::json!([{ "ref": "refs/heads/main", "from": before, "to": main, "merges": [main] }])
    );
    assert_eq!(
        shop.place.git("atlas.git", &["log", "-1", "--format=%P", &main]),
        format!("{parser_commit} {lexer_commit}")
    );
    assert_eq!(
        shop.place.git("atlas.git", &["ls-tree", "-r", "--name-only", "main"]),
        "README.md\nsrc/lexer.rs\nsrc/parser.rs"
    );
    let trailers = shop.place.git("atlas.git", &["log", "-1", "--format=%(trailers:only,unfold)", "main"]);
    assert!(trailers.contains(&format!("Countersign-Proposal: {lexer}")), "{trailers}");
    assert!(trailers.contains("Approved-by: sec (security)"), "{trailers}");

    // The same door for a forge's CI: the recorded merge, what it merged, and nothing else.
    for (commit, passes) in [(&main, true), (&parser_commit, true), (&lexer_commit, true), (&before, false)] {
        let checked = shop.place.run_in("app", &["--json", "check", "--commit", commit]);
        assert_eq!(checked.exit, i32::from(!passes), "{commit}: {checked:?}");
    }
    let named = shop.place.run_in("app", &["--json", "check", "--commit", &main, "--ref", "refs/heads/main"]);
    assert_eq!(named.done().json()["ref"], lexer.as_str());
    let elsewhere = ["--json", "check", "--commit", &main, "--ref", "refs/heads/release/1"];
    assert_eq!(shop.place.run_in("app", &elsewhere).exit, 1);
    assert_eq!(shop.moved(), [""; 0], "the audit knows who moved it");
}

#[test]
fn a_target_that_moved_so_that_it_conflicts_reopens_the_circle_and_names_who_owes() {
    let shop = Shop::served(UNSEEN, "each");
    shop.reviewed("app", "parser", "src/main.rs", "fn main() { parse() }\n");
    shop.reviewed("bee", "lexer", "src/main.rs", "fn main() { lex() }\n");
    shop.confirm("parser", &["app", "sec"]);
    shop.becomes("parser", "published");
    let main = shop.at("refs/heads/main");
    let failed = shop.by("bee", &["confirm", &text(&shop.circle("lexer")["ref"])]).exit;
    let reference = text(&shop.circle("lexer")["ref"]);
    if failed == 0 {
        shop.by("sec", &["confirm", &reference]).done();
    }
    let reopened = shop.until("lexer reopens", || {
        let circle = shop.circle("lexer");
        circle["unpublished_because"].is_string().then_some(circle)
    });
    assert_eq!(reopened["state"], "open");
    let because = text(&reopened["unpublished_because"]);
    assert!(
        because.contains("does not merge into refs/heads/main") && because.contains("src/main.rs"),
        "{because}"
    );
    assert_eq!(shop.at("refs/heads/main"), main, "nothing moved");
    assert!(shop.escalations().contains(&("publish-failure".to_owned(), "lexer".to_owned())));
    let status = shop.by("bee", &["status"]).done().json();
    let owed = status["obligations"].as_array().unwrap();
    assert!(owed.iter().any(|one| one["member"] == "bee" && one["kind"] == "revise"), "{status}");

    // What it owes works: a version that merges, which is no round.
    shop.place.git("bee", &["fetch", "-q", "origin"]);
    shop.place.git("bee", &["reset", "-q", "--hard", "origin/main"]);
    shop.place.commit("bee", "src/main.rs", "fn main() { parse(); lex() }\n");
    shop.proposed("bee", "lexer", "src/main.rs:1");
    shop.confirm("lexer", &["bee", "sec"]);
    let published = shop.becomes("lexer", "published");
    assert_eq!(published["published"][0]["merges"], serde_json::json!([]));
    assert_eq!(shop.at("refs/heads/main"), shop.place.git("bee", &["rev-parse", "HEAD"]));
    assert_eq!(shop.escalations(), []);
}

#[test]
fn what_may_only_move_forward_is_never_merged() {
    let shop = Shop::served(&format!("how = \"fast-forward\"{UNSEEN}"), "together");
    shop.reviewed("app", "parser", "src/parser.rs", "fn parse() {}\n");
    shop.reviewed("bee", "lexer", "src/lexer.rs", "fn lex() {}\n");
    let main = shop.at("refs/heads/main");
    shop.confirm("implement", &["app", "bee", "sec"]);
    let because = shop
        .until("it reopens", || shop.circle("implement")["unpublished_because"].as_str().map(str::to_owned));
    assert!(
        because.starts_with("lexer@1:") && because.contains("does not follow refs/heads/main"),
        "{because}"
    );
    assert_eq!(shop.at("refs/heads/main"), main);
}

#[test]
fn a_check_sees_the_merged_tree_and_nothing_but_an_exit_of_zero_is_a_pass() {
    let check = "check = \"sh check.sh\"\ncheck_timeout = \"20s\"";
    let shop = Shop::served(check, "together");
    // It passes by itself and fails with what the other did: only the merged tree tells.
    shop.place.commit(
        "app",
        "check.sh",
        "echo looking; if [ -e src/lexer.rs ]; then echo both are there >&2; exit 3; fi\n",
    );
    shop.reviewed("app", "parser", "src/parser.rs", "fn parse() {}\n");
    shop.reviewed("bee", "lexer", "src/lexer.rs", "fn lex() {}\n");
    let main = shop.at("refs/heads/main");
    shop.confirm("implement", &["app", "bee", "sec"]);
    let failed = shop.until("it reopens", || {
        let circle = shop.circle("implement");
        circle["unpublished_because"].is_string().then_some(circle)
    });
    let because = text(&failed["unpublished_because"]);
    assert_eq!(because, "the check \"sh check.sh\" on refs/heads/main ended with exit 3: both are there");
    assert_eq!(shop.at("refs/heads/main"), main, "nothing moved");
    let explained = shop.by("sec", &["explain", "implement"]).done().json();
    let output = text(&explained["publishing"]["publish_check"]["output"]);
    assert!(output.contains("looking\n") && output.contains("both are there\n"), "{output}");
    let told = shop.place.run_in("app", &["--as", "sec", "explain", "implement"]).done().out;
    assert!(
        told.contains("It could not be published:\n----- begin why -----")
            && told.contains("----- begin output -----")
            && told.contains("\nboth are there\n----- end output -----"),
        "{told}"
    );
    let told = shop.place.run_in("app", &["--as", "sec", "status"]).done().out;
    assert!(told.contains("implement could not be published: the check"), "{told}");
    let status = shop.by("dana", &["status"]).done().json();
    let owed = status["obligations"].as_array().unwrap();
    for producer in ["app", "bee"] {
        let owes = |one: &&serde_json::Value| one["member"] == producer && one["kind"] == "revise";
        assert!(owed.iter().any(|one| owes(&one)), "{producer} owes: {status}");
    }

    shop.place.commit(
        "app",
        "check.sh",
        "test -x tool && test -h link && test -e src/lexer.rs && ! test -e .git && env\n",
    );
    let tool = shop.place.path("app/tool");
    std::fs::write(&tool, "#!/bin/sh\n").unwrap();
    std::fs::set_permissions(&tool, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    std::os::unix::fs::symlink("tool", shop.place.path("app/link")).unwrap();
    // Attributes and their filters have no say in what is checked, or how.
    std::fs::write(shop.place.path("app/.gitattributes"), "* text eol=crlf\n").unwrap();
    shop.reviewed("app", "parser", "src/parser.rs", "fn parse() -> u64 {}\n");
    shop.reviewed("bee", "lexer", "src/lexer.rs", "fn lex() -> u64 {}\n");
    shop.confirm("implement", &["app", "bee", "sec"]);
    shop.becomes("implement", "published");
    let explained = shop.by("sec", &["explain", "implement"]).done().json();
    let check = &explained["publishing"]["publish_check"];
    assert_eq!(check["exit"], 0);
    let output = text(&check["output"]);
    assert!(output.contains("COUNTERSIGN_TARGET=refs/heads/main") && !output.contains("CARGO"), "{output}");
}

#[test]
fn a_check_that_takes_too_long_or_is_killed_is_no_pass_and_leaves_nothing_running() {
    for (script, because) in [
        ("sleep 300 & echo $! > \"$PIDS\"; wait", "took longer than 1 s, and was ended"),
        ("echo $$ > \"$PIDS\"; kill -KILL $$", "was killed"),
    ] {
        let pids = tempfile::tempdir().unwrap();
        let pids = pids.path().join("pids");
        let script = script.replace("$PIDS", &pids.display().to_string());
        let check = format!("check = '''{script}'''\ncheck_timeout = \"1s\"");
        let shop = Shop::served(&check, "each");
        shop.reviewed("app", "parser", "src/parser.rs", "fn parse() {}\n");
        let main = shop.at("refs/heads/main");
        shop.confirm("parser", &["app", "sec"]);
        let said = shop
            .until("it reopens", || shop.circle("parser")["unpublished_because"].as_str().map(str::to_owned));
        assert!(said.contains(because), "{said}");
        assert_eq!(shop.at("refs/heads/main"), main);
        let pid = std::fs::read_to_string(&pids).unwrap();
        shop.until("what it left running ends", || gone(pid.trim()).then_some(()));
    }
}

/// Whether no process of that id runs; one that nobody asked about yet counts as gone.
fn gone(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
    stat.map_or(true, |stat| stat.rsplit(')').next().is_some_and(|rest| rest.trim().starts_with('Z')))
}

#[test]
fn a_server_that_is_killed_during_the_check_runs_it_again_and_nothing_of_it_goes_on() {
    let check = "check = '''echo $$ >> ../../../../../began; read go < ../../../../../go; echo went on'''";
    let mut shop = Shop::served(check, "each");
    let made = std::process::Command::new("mkfifo").arg(shop.place.path("go")).status().unwrap();
    assert!(made.success());
    shop.reviewed("app", "parser", "src/parser.rs", "fn parse() {}\n");
    shop.confirm("parser", &["app", "sec"]);
    let began = shop.appears("began");
    let circle = shop.circle("parser");
    assert_eq!((circle["state"].as_str(), circle["publishing_since"].is_string()), (Some("complete"), true));
    let told = shop.place.run_in("app", &["--as", "sec", "status"]).done().out;
    assert!(told.contains("complete, publishing for"), "{told}");
    let pids =
        shop.until("it began", || std::fs::read_to_string(&began).ok().filter(|pids| pids.ends_with('\n')));
    shop.place.kill_server();
    let first = pids.trim().to_owned();
    let ended = std::time::Instant::now();
    while !gone(&first) {
        assert!(ended.elapsed().as_secs() < 30, "the check goes on without its server");
    }
    shop.place.serve();
    shop.until("it begins again", || {
        let pids = std::fs::read_to_string(&began).unwrap();
        (pids.lines().count() == 2).then_some(())
    });
    std::fs::write(shop.place.path("go"), "go\n").unwrap();
    shop.becomes("parser", "published");
    assert_eq!(shop.at("refs/heads/main"), shop.place.git("app", &["rev-parse", "HEAD"]));
}

#[test]
fn a_server_that_dies_before_or_after_the_refs_moved_publishes_once() {
    for cut in ["before-move", "after-move"] {
        let mut shop = Shop::unserved("", "together");
        shop.place.serve_in(&[("COUNTERSIGN_CUT", cut)]);
        let before = shop.at("refs/heads/main");
        shop.reviewed("app", "parser", "src/parser.rs", "fn parse() {}\n");
        shop.reviewed("bee", "lexer", "src/lexer.rs", "fn lex() {}\n");
        let reference = text(&shop.circle("implement")["ref"]);
        shop.by("app", &["confirm", &reference]).done();
        shop.by("bee", &["confirm", &reference]).done();
        // The answer may be lost with the server; what it completed is not.
        shop.by("sec", &["confirm", &reference]);
        shop.place.server_died();
        let moved = shop.at("refs/heads/main");
        assert_eq!(moved == before, cut == "before-move", "{cut}");
        assert_eq!(shop.moved(), [""; 0], "{cut}: a move that is not reported yet is no stranger's");
        shop.place.serve();
        let published = shop.becomes("implement", "published");
        let main = shop.at("refs/heads/main");
        assert!(cut == "before-move" || main == moved, "it is not merged twice");
        assert_eq!(published["published"][0]["from"], before.as_str(), "{cut}");
        assert_eq!(published["published"][0]["to"], main.as_str(), "{cut}");
        let merges = shop.place.git("atlas.git", &["rev-list", "--count", "--merges", "main"]);
        assert_eq!(merges, "1", "{cut}");
        let log = shop.by("dana", &["log"]).done().out;
        assert_eq!(log.matches("circle-published").count(), 1, "{cut}");
        assert_eq!(shop.moved(), [""; 0], "{cut}");
        shop.place.run(&["verify"]).done();
    }
}

/// Fifty rounds, in five repositories.
macro_rules! races {
    ($($name:ident)*) => {
        $(#[test]
        fn $name() {
            two_circles_race_to_one_branch_and_both_land_or_one_owes_a_rebase();
        })*
    };
}

races! { race_one race_two race_three race_four race_five }

fn two_circles_race_to_one_branch_and_both_land_or_one_owes_a_rebase() {
    const ROUNDS: usize = 10;
    let shop = Shop::served("", "each");
    let (mut landed, mut owing) = (0, 0);
    for round in 0..ROUNDS {
        // Every fifth round they touch the same line.
        let same = round % 5 == 4;
        let files = if same { ["src/both.rs", "src/both.rs"] } else { ["src/a.rs", "src/b.rs"] };
        let names = [format!("a-{round}"), format!("b-{round}")];
        let members = ["app", "bee"];
        for ((who, name), file) in members.iter().zip(&names).zip(files) {
            shop.place.git(who, &["fetch", "-q", "origin"]);
            shop.place.git(who, &["reset", "-q", "--hard", "origin/main"]);
            shop.reviewed(who, name, file, &format!("{who} {round}\n"));
        }
        for (who, name) in members.iter().zip(&names) {
            let reference = text(&shop.circle(name)["ref"]);
            shop.by(who, &["confirm", &reference]).done();
        }
        // The last confirmations are given at once.
        std::thread::scope(|scope| {
            for name in &names {
                let shop = &shop;
                let reference = text(&shop.circle(name)["ref"]);
                scope.spawn(move || shop.by("sec", &["confirm", &reference]));
            }
        });
        let mut outcomes = 0;
        for (who, name) in members.iter().zip(&names) {
            let circle = shop.until("it is decided", || {
                let circle = shop.circle(name);
                (circle["state"] == "published" || circle["unpublished_because"].is_string())
                    .then_some(circle)
            });
            let commit = shop.place.git(who, &["rev-parse", "HEAD"]);
            let published = circle["state"] == "published";
            assert_eq!(shop.holds(&commit), published, "round {round}: {circle}");
            outcomes += i32::from(published);
            if published {
                landed += 1;
            } else {
                owing += 1;
                // The person drops it, so that the next round begins with nothing open.
                let open = shop.by("dana", &["status"]).done().json();
                let open = open["escalations"].as_array().unwrap();
                assert_eq!((open.len(), &open[0]["cause"]), (1, &"publish-failure".into()), "{open:?}");
                let id = text(&open[0]["id"]);
                let answer =
                    ["escalations", "answer", &id, "--decide", "drop-deliverable", "--reason", "a race"];
                shop.by("dana", &answer).done();
            }
        }
        assert_eq!(outcomes, if same { 1 } else { 2 }, "round {round}");
    }
    assert_eq!((landed, owing), (18, 2));
    assert_eq!(shop.moved(), [""; 0]);
    shop.place.git("atlas.git", &["fsck", "--strict"]);
}
