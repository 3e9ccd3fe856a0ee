//! Open work and where its target stands: what git says reaches the protocol, and whoever asks.

use countersign::wire::proto;

use crate::site::{Member, Site, Yard, offering_commit, refused};

const APP: &str = "app@example.org";

impl Yard {
    /// Somebody's work lands on main.
    fn land(&self, files: &[(&str, &str)]) -> String {
        let commit = self.commit(files, Some(&self.main()), "lib@example.org");
        self.git(&["update-ref", "refs/heads/main", &commit]);
        commit
    }
}

async fn owed(somebody: &mut Member) -> Vec<(String, String)> {
    let owed = somebody.status().await.obligations.into_iter();
    owed.filter(|owed| owed.kind == "revise").map(|owed| (owed.member, owed.command)).collect()
}

/// How often the log says that git says otherwise than before.
async fn told(somebody: &mut Member) -> usize {
    let events =
        somebody.log.list_events(proto::ListEventsRequest::default()).await.unwrap().into_inner().events;
    events.iter().filter(|event| event.kind == "target-moved").count()
}

#[tokio::test]
async fn a_version_that_takes_landed_work_back_is_told_by_file_and_commit() {
    let (site, yard) = Site::guarding().await;
    let (mut app, mut sec) = (site.member("app"), site.member("sec"));
    let root = yard.main();
    let first = yard.staged(&[("src/parser.rs", "fn parse() {}\n")], &root, APP);
    let proposed = app.review.propose(offering_commit(&first, 0)).await.unwrap().into_inner();
    let target = proposed.target.unwrap();
    assert_eq!(
        (target.name.as_str(), target.undone_total, target.conflict.as_str()),
        ("refs/heads/main", 0, "")
    );
    assert_eq!(told(&mut app).await, 0, "nothing is said where there is nothing to say");

    let fix = yard.land(&[("README.md", "# Atlas, mended\n")]);
    let stale = [("README.md", "# Atlas\n"), ("src/parser.rs", "fn parse() { }\n")];
    let second = yard.staged(&stale, &fix, "app@example.org");
    // README.md is nobody's, so nothing but git speaks for the fix.
    let proposed = app.review.propose(offering_commit(&second, 1)).await.unwrap().into_inner();
    let target = proposed.target.unwrap();
    assert_eq!((target.undone, target.undone_commits), (vec!["README.md".to_owned()], vec![fix.clone()]));
    assert_eq!(owed(&mut app).await[0].0, "app");

    let shown = sec.show("parser").await.version.unwrap().target.unwrap();
    assert_eq!((shown.commit.as_str(), shown.undone_total, shown.undone_commits_total), (fix.as_str(), 1, 1));
    let explained = app.review.explain(proto::ExplainRequest { name: "parser".to_owned() }).await.unwrap();
    let denied = explained.into_inner().requirements.into_iter();
    let denied: Vec<_> = denied.filter(|one| one.name.starts_with("confirm/undoes-landed")).collect();
    assert_eq!(denied[0].state(), proto::RequirementState::Unsatisfied);
    assert!(
        denied[0].detail.contains("README.md") && denied[0].detail.contains(&fix[..12]),
        "{:?}",
        denied[0]
    );
    let circle = app.status().await.circles[0].reference.clone();
    assert_eq!(refused(app.confirm(&circle).await).0, "CONFIRM_BLOCKED");
    assert_eq!(told(&mut app).await, 1, "it is said once");

    let third = yard.staged(&[("src/parser.rs", "fn parse() { }\n")], &fix, APP);
    app.review.propose(offering_commit(&third, 2)).await.unwrap();
    assert_eq!(owed(&mut app).await, []);
    assert!(sec.show("parser@2").await.version.unwrap().target.is_none(), "an older version goes nowhere");
}

#[tokio::test]
async fn a_target_that_moved_while_no_server_ran_is_seen_at_start() {
    let (mut site, yard) = Site::guarding().await;
    let mut app = site.member("app");
    let commit = yard.staged(&[("src/parser.rs", "mine\n")], &yard.main(), APP);
    app.review.propose(offering_commit(&commit, 0)).await.unwrap();
    yard.land(&[("src/parser.rs", "theirs\n")]);
    assert_eq!(owed(&mut app).await, [], "nobody asked git yet");
    site.restart().await;
    let mut app = site.member("app");
    let (member, command) = owed(&mut app).await.remove(0);
    assert_eq!((member.as_str(), command.starts_with("countersign propose parser")), ("app", true));
    assert_eq!(told(&mut app).await, 1);
    // The same once more is no news, and neither is what doesn't concern the version.
    yard.land(&[("docs/guide.md", "elsewhere\n")]);
    site.restart().await;
    let mut app = site.member("app");
    assert_eq!((told(&mut app).await, owed(&mut app).await.len()), (1, 1));
    // It moves back: nothing stands in the way any longer.
    yard.git(&["update-ref", "refs/heads/main", &yard.git(&["rev-parse", "refs/heads/main~2"])]);
    site.restart().await;
    let mut app = site.member("app");
    assert_eq!((told(&mut app).await, owed(&mut app).await), (2, Vec::new()));
}

#[tokio::test]
async fn nobody_confirms_while_git_cannot_be_asked() {
    let (site, yard) = Site::guarding().await;
    let mut app = site.member("app");
    let commit = yard.staged(&[("src/parser.rs", "mine\n")], &yard.main(), APP);
    app.review.propose(offering_commit(&commit, 0)).await.unwrap();
    let circle = app.status().await.circles[0].reference.clone();
    std::fs::rename(yard.path.join("HEAD"), yard.path.join("HEAD.away")).unwrap();
    let (code, status) = refused(app.confirm(&circle).await);
    assert_ne!(code, "CONFIRM_BLOCKED", "{status:?}");
    std::fs::rename(yard.path.join("HEAD.away"), yard.path.join("HEAD")).unwrap();
    assert_eq!(refused(app.confirm(&circle).await).0, "CONFIRM_BLOCKED");
}

#[tokio::test]
async fn a_reviewer_reads_on_from_its_own_last_reading() {
    let (site, yard) = Site::guarding().await;
    let (mut app, mut sec, mut arch) = (site.member("app"), site.member("sec"), site.member("arch"));
    let root = yard.main();
    for (after, text) in ["one\n", "two\n", "three\n"].into_iter().enumerate() {
        let commit = yard.staged(&[("src/parser.rs", text), ("src/kept.rs", "kept\n")], &root, APP);
        app.review.propose(offering_commit(&commit, after as u32)).await.unwrap();
        if after == 0 {
            assert_eq!(sec.show("parser").await.read_before, 0);
        }
    }
    let since = async |somebody: &mut Member| {
        let subject = "parser".to_owned();
        let asked = proto::DiffRequest { subject, since_read: true, ..Default::default() };
        somebody.review.diff(asked).await.unwrap().into_inner()
    };
    assert_eq!(sec.show("parser").await.read_before, 1);
    let read_on = since(&mut sec).await;
    assert_eq!((read_on.from, read_on.reference.starts_with("parser@3:")), (1, true));
    assert!(read_on.text.contains("-one\n+three\n") && !read_on.text.contains("kept"), "{}", read_on.text);
    let all = since(&mut arch).await;
    assert_eq!(all.from, 0);
    assert!(all.text.contains("+three") && all.text.contains("kept"), "{}", all.text);
    let nothing = proto::DiffRequest { subject: "parsr".to_owned(), since_read: true, ..Default::default() };
    assert_eq!(refused(sec.review.diff(nothing).await).0, "UNKNOWN_SUBJECT");
}

#[tokio::test]
async fn a_version_is_shown_as_what_it_would_change_on_its_target_now() {
    let (site, yard) = Site::guarding().await;
    let (mut app, mut sec) = (site.member("app"), site.member("sec"));
    let files = [("src/parser.rs", "mine\n"), ("src/lexer.rs", "same\n")];
    let commit = yard.staged(&files, &yard.main(), APP);
    app.review.propose(offering_commit(&commit, 0)).await.unwrap();
    let tip = yard.land(&[("src/lexer.rs", "same\n"), ("free.txt", "theirs\n")]);
    let mut diff = async |on_target: bool| {
        let asked = proto::DiffRequest { subject: "parser".to_owned(), on_target, ..Default::default() };
        sec.review.diff(asked).await.unwrap().into_inner()
    };
    let base = diff(false).await;
    assert!(base.text.contains("+same") && base.text.contains("+mine") && base.target.is_empty());
    let now = diff(true).await;
    assert_eq!(now.target, format!("refs/heads/main at {tip}"));
    assert!(
        now.text.contains("+mine") && !now.text.contains("same") && !now.text.contains("theirs"),
        "{}",
        now.text
    );
    yard.land(&[("src/parser.rs", "theirs\n")]);
    let conflicting = diff(true).await;
    assert_eq!((conflicting.target.as_str(), conflicting.text), ("", base.text));
}

#[tokio::test]
async fn each_file_is_shown_with_who_owns_it() {
    let (site, yard) = Site::guarding().await;
    let (mut app, mut sec) = (site.member("app"), site.member("sec"));
    let commit = yard.staged(&[("src/parser.rs", "mine\n"), ("free.txt", "x\n")], &yard.main(), APP);
    app.review.propose(offering_commit(&commit, 0)).await.unwrap();
    let files = sec.show("parser").await.files;
    let owners: Vec<_> = files.into_iter().map(|file| (file.path, file.owners.join(","))).collect();
    let pair = |path: &str, owner: &str| (path.to_owned(), owner.to_owned());
    assert_eq!(owners, [pair("free.txt", ""), pair("src/parser.rs", "app")]);
}

/// Two circles, each meant for a branch of its own.
const EACH: &str = r#"
[team]
name = "atlas"
[repository]
path = "atlas.git"
protected = ["refs/heads/main", "refs/heads/next"]
[members.app]
[members.sec]
[members.dana]
kind = "human"
[[phases]]
name = "implement"
confirm = "each"
deliverables = [
    { name = "lexer", producer = "app", target = "refs/heads/next" },
    { name = "parser", producer = "app" },
]
reviews = [{ reviewer = "sec", of = "app", lens = "security" }]
"#;

#[tokio::test]
async fn what_git_cannot_say_of_one_circle_keeps_nobody_from_the_others() {
    let mut site = Site::unserved();
    let yard = Yard::init(&site.folder.path().join("atlas.git"));
    site.add_team(EACH).await;
    site.start().await;
    let mut app = site.member("app");
    for (name, file) in [("lexer", "src/lexer.rs"), ("parser", "src/parser.rs")] {
        let commit = yard.staged(&[(file, "mine\n")], &yard.main(), APP);
        let offered = proto::ProposeRequest { proposal: name.to_owned(), ..offering_commit(&commit, 0) };
        app.review.propose(offered).await.unwrap();
    }
    // Git lets nobody do that to a branch; whoever may write its files does.
    let blob = yard.git(&["rev-parse", "refs/heads/main:README.md"]);
    std::fs::write(yard.path.join("refs/heads/next"), format!("{blob}\n")).unwrap();
    yard.land(&[("src/parser.rs", "theirs\n")]);
    site.restart().await;
    let mut app = site.member("app");
    assert_eq!((told(&mut app).await, owed(&mut app).await.len()), (1, 1), "parser is told of");
    let circles = app.status().await.circles;
    let confirmed = async |app: &mut Member, name: &str| {
        let circle = circles.iter().find(|circle| circle.name == name).unwrap();
        refused(app.confirm(&circle.reference).await).0
    };
    assert_eq!(confirmed(&mut app, "parser").await, "CONFIRM_BLOCKED");
    assert_ne!(confirmed(&mut app, "lexer").await, "CONFIRM_BLOCKED", "git can't say, so nobody confirms");
}
