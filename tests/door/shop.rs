//! A guarded repository in which two producers work, each in a clone of their own.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::place::{Place, Ran, text};

/// How long is waited for what the server does by itself.
const WAIT_MAX: Duration = Duration::from_secs(30);

/// `app` and `bee` produce, `sec` reviews both, `dana` is the person.
pub struct Shop {
    pub place: Place,
}

/// Its charter; `publish` goes into `[publish]`, `confirm` is the phase's kind.
pub fn charter(publish: &str, confirm: &str) -> String {
    format!(
        r#"[team]
name = "atlas"
[repository]
path = "atlas.git"
protected = ["refs/heads/main", "refs/heads/release/*"]
[publish]
target = "refs/heads/main"
{publish}
[members.app]
[members.bee]
[members.sec]
[members.dana]
kind = "human"
[[phases]]
name = "implement"
confirm = "{confirm}"
deliverables = [{{ name = "parser", producer = "app" }}, {{ name = "lexer", producer = "bee" }}]
reviews = [
    {{ reviewer = "sec", of = "app", lens = "security" }},
    {{ reviewer = "sec", of = "bee", lens = "security" }},
]
"#
    )
}

impl Shop {
    /// With a door, and no server.
    pub fn unserved(publish: &str, confirm: &str) -> Self {
        Self::shut(&charter(publish, confirm), |place| {
            place.git(".", &["clone", "-q", "atlas.git", "bee"]);
        })
    }

    /// With a charter and clones of one's own beside the first.
    pub fn of(charter: &str, clones: impl FnOnce(&Place)) -> Self {
        let mut shop = Self::shut(charter, clones);
        shop.place.serve();
        shop
    }

    fn shut(charter: &str, clones: impl FnOnce(&Place)) -> Self {
        let place = Place::empty();
        place.git(".", &["init", "-q", "--bare", "-b", "main", "atlas.git"]);
        place.git(".", &["clone", "-q", "atlas.git", "app"]);
        place.commit("app", "README.md", "# Atlas\n");
        place.git("app", &["push", "-q", "origin", "HEAD:refs/heads/main"]);
        clones(&place);
        place.write("charter.toml", charter);
        place.run(&["init", "--charter", "charter.toml"]).done();
        place.run(&["door", "install"]).done();
        Self { place }
    }

    /// With a door and a server.
    pub fn served(publish: &str, confirm: &str) -> Self {
        let mut shop = Self::unserved(publish, confirm);
        shop.place.serve();
        shop
    }

    /// A command of a member; producers stand in their clones.
    pub fn by(&self, who: &str, args: &[&str]) -> Ran {
        let folder = if who == "bee" { "bee" } else { "app" };
        self.place.run_in(folder, &[&["--as", who, "--json"], args].concat())
    }

    /// Commits a file, proposes it, and has it approved; its exact reference.
    pub fn reviewed(&self, who: &str, deliverable: &str, file: &str, content: &str) -> String {
        self.place.commit(who, file, content);
        self.proposed(who, deliverable, &format!("{file}:1"))
    }

    /// Proposes what the clone has, and has it approved.
    pub fn proposed(&self, who: &str, deliverable: &str, checked: &str) -> String {
        let proposed =
            self.by(who, &["propose", deliverable, "--commit", "HEAD", "--summary", "What it does"]);
        let reference = text(&proposed.done().json()["ref"]);
        let subject = reference.split(':').next().expect("a reference").to_owned();
        self.by("sec", &["show", &subject]).done();
        self.by("sec", &["approve", &reference, "--checked", checked]).done();
        reference
    }

    /// The circle as status shows it.
    pub fn circle(&self, name: &str) -> Value {
        let status = self.by("dana", &["status"]).done().json();
        let circles = status["circles"].as_array().expect("circles");
        let found = circles.iter().find(|circle| circle["name"] == name);
        found.unwrap_or_else(|| panic!("no circle {name}: {status}")).clone()
    }

    /// Has everybody named confirm it; the last one completes it.
    pub fn confirm(&self, circle: &str, members: &[&str]) {
        let reference = text(&self.circle(circle)["ref"]);
        for member in members {
            self.by(member, &["confirm", &reference]).done();
        }
    }

    /// Waits until the circle is in that state.
    pub fn becomes(&self, circle: &str, state: &str) -> Value {
        self.until(&format!("{circle} is {state}"), || {
            let found = self.circle(circle);
            (found["state"] == state).then_some(found)
        })
    }

    /// Asks again and again until it is there.
    pub fn until<T>(&self, what: &str, mut look: impl FnMut() -> Option<T>) -> T {
        let begun = Instant::now();
        loop {
            if let Some(found) = look() {
                return found;
            }
            if begun.elapsed() > WAIT_MAX {
                panic!("{what}: {}", self.by("dana", &["status"]).out);
            }
        }
    }

    /// Waits until a file is there.
    pub fn appears(&self, name: &str) -> PathBuf {
        let path = self.place.path(name);
        self.until(name, || path.exists().then(|| path.clone()))
    }

    /// Where a ref is; empty where it isn't there.
    pub fn at(&self, name: &str) -> String {
        self.place.git("atlas.git", &["for-each-ref", "--format=%(objectname)", name])
    }

    /// Whether main holds that commit.
    pub fn holds(&self, commit: &str) -> bool {
        let held = self.place.git("atlas.git", &["rev-list", "refs/heads/main"]);
        held.lines().any(|line| line == commit)
    }

    /// What the door's audit says moved.
    pub fn moved(&self) -> Vec<String> {
        let audit = self.place.run(&["--json", "door", "audit"]).json();
        let moved = audit["moved"].as_array().unwrap_or_else(|| panic!("{audit}")).clone();
        moved.iter().map(|one| text(&one["ref"])).collect()
    }

    /// Open escalations: cause and subject.
    pub fn escalations(&self) -> Vec<(String, String)> {
        let status = self.by("dana", &["status"]).done().json();
        let open = status["escalations"].as_array().expect("escalations").clone();
        open.iter().map(|one| (text(&one["cause"]), text(&one["subject"]))).collect()
    }
}
