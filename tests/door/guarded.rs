//! A guarded repository with its door, a server, and a clone to push from.

use std::ffi::{OsStr, OsString};
use std::process::{Command, Stdio};

use super::place::{Place, Ran, charter};

/// Refs that are protected here.
const PROTECTED: &str = r#"["refs/heads/main", "refs/heads/release/*", "refs/tags/v*"]"#;

/// A repository `atlas.git`, a clone `app` with one commit that main lacks, and a home.
pub struct Guarded {
    pub place: Place,
}

impl Guarded {
    /// Without a door, and without a server.
    pub fn bare() -> Self {
        let place = Place::empty();
        place.git(".", &["init", "-q", "--bare", "-b", "main", "atlas.git"]);
        place.git(".", &["clone", "-q", "atlas.git", "app"]);
        place.commit("app", "README.md", "# Atlas\n");
        place.git("app", &["push", "-q", "origin", "HEAD:refs/heads/main", "HEAD:refs/tags/v0"]);
        place.git("app", &["push", "-q", "origin", "HEAD:refs/heads/free", "HEAD:refs/tags/free"]);
        place.commit("app", "src/parser.rs", "fn parse() {}\n");
        let repository = format!("[repository]\npath = \"atlas.git\"\nprotected = {PROTECTED}");
        place.write("charter.toml", charter(&repository));
        place.run(&["init", "--charter", "charter.toml"]).done();
        Self { place }
    }

    /// With a door, and no server.
    pub fn unserved() -> Self {
        let guarded = Self::bare();
        guarded.place.run(&["door", "install"]).done();
        guarded
    }

    /// With a door and a server.
    pub fn served() -> Self {
        let mut guarded = Self::unserved();
        guarded.place.serve();
        guarded
    }

    /// A git command in the clone, with nothing of ours in its environment.
    pub fn git_command<A: AsRef<OsStr>>(&self, args: &[A]) -> Command {
        let mut git = self.place.command("app", &[]);
        let envs: Vec<(OsString, Option<OsString>)> =
            git.get_envs().map(|(name, value)| (name.to_owned(), value.map(OsStr::to_owned))).collect();
        git = Command::new("git");
        git.args(args).current_dir(self.place.path("app")).stdin(Stdio::null());
        for (name, value) in envs {
            match value {
                Some(value) => git.env(name, value),
                None => git.env_remove(name),
            };
        }
        git
    }

    /// Pushes from the clone.
    pub fn push<A: AsRef<OsStr>>(&self, args: &[A]) -> Ran {
        let args: Vec<&OsStr> = [OsStr::new("push"), "origin".as_ref()]
            .into_iter()
            .chain(args.iter().map(AsRef::as_ref))
            .collect();
        Ran::of(&self.git_command(&args).output().expect("git"))
    }

    /// A push of which nothing is taken, for a protected ref; what the pusher is told.
    pub fn refused<A: AsRef<OsStr> + std::fmt::Debug>(&self, args: &[A]) -> String {
        let before = self.refs();
        let pushed = self.push(args);
        assert_eq!(pushed.exit, 1, "{args:?}: {pushed:?}");
        assert_eq!(self.refs(), before, "{args:?}: nothing moved");
        pushed.err
    }

    /// Every ref of the repository, with where it is.
    pub fn refs(&self) -> Vec<String> {
        let listed = self.place.git("atlas.git", &["for-each-ref", "--format=%(refname) %(objectname)"]);
        listed.lines().map(str::to_owned).collect()
    }

    /// Where a ref is; empty where it isn't there.
    pub fn at(&self, name: &str) -> String {
        self.place.git("atlas.git", &["for-each-ref", "--format=%(objectname)", name])
    }

    /// A revision of the clone.
    pub fn id(&self, revision: &str) -> String {
        self.place.git("app", &["rev-parse", revision])
    }

    /// The server's process.
    pub fn server(&self) -> String {
        let text = std::fs::read(self.place.path(".countersign/server.json")).expect("a server runs");
        let json: serde_json::Value = serde_json::from_slice(&text).expect("JSON");
        json["pid"].to_string()
    }

    /// Sends the server a signal.
    pub fn signal(&self, signal: &str) {
        kill(signal, &self.server());
    }

    /// What the door's audit says moved.
    pub fn moved(&self) -> Vec<String> {
        let audit = self.place.run(&["--json", "door", "audit"]);
        let json = audit.json();
        let moved = json["moved"].as_array().unwrap_or_else(|| panic!("{audit:?}"));
        assert_eq!(audit.exit, i32::from(!moved.is_empty()), "{audit:?}");
        moved.iter().map(|one| super::place::text(&one["ref"])).collect()
    }
}

/// Sends a process a signal.
pub fn kill(signal: &str, pid: &str) {
    assert!(Command::new("kill").args([signal, pid]).status().expect("kill").success());
}
