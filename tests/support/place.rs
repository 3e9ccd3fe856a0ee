//! A folder with a home, the real program, and a server that it started.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

/// The program under test.
pub const PROGRAM: &str = env!("CARGO_BIN_EXE_countersign");

/// A charter of one producer, two reviewers and a person; `more` goes in front of its phases.
pub fn charter(more: &str) -> String {
    format!(
        r#"[team]
name = "atlas"
{more}
[members.app]
[members.sec]
[members.arch]
[members.dana]
kind = "human"
[[phases]]
name = "implement"
confirm = "together"
deliverables = [{{ name = "parser", producer = "app" }}]
reviews = [
    {{ reviewer = "sec", of = "app", lens = "security" }},
    {{ reviewer = "arch", of = "app", lens = "design" }},
]
"#
    )
}

/// A process that ends with its test.
pub struct Process(pub Child);

impl Drop for Process {
    fn drop(&mut self) {
        // Both fail only where it has ended already, and then the test says so.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A temporary folder with a home in it.
pub struct Place {
    folder: TempDir,
    server: Option<Process>,
}

/// What a run of the program gave.
#[derive(Debug)]
pub struct Ran {
    /// Its exit code.
    pub exit: i32,
    /// What it printed.
    pub out: String,
    /// What it told beside that.
    pub err: String,
}

impl Ran {
    /// Of a process that ended.
    pub fn of(output: &Output) -> Self {
        Self {
            exit: output.status.code().unwrap_or(-1),
            out: String::from_utf8(output.stdout.clone()).expect("what is printed is UTF-8"),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// Its JSON.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|wrong| panic!("{wrong}: {self:?}"))
    }

    /// That it is done.
    pub fn done(self) -> Self {
        assert_eq!(self.exit, 0, "{self:?}");
        self
    }
}

impl Place {
    /// An empty folder.
    pub fn empty() -> Self {
        Self { folder: tempfile::tempdir().expect("a temporary folder"), server: None }
    }

    /// With a home of that charter.
    pub fn with(charter: &str) -> Self {
        let place = Self::empty();
        std::fs::write(place.path("charter.toml"), charter).expect("a charter");
        place.run(&["init", "--charter", "charter.toml"]).done();
        place
    }

    /// With a home of the usual charter, and a server.
    pub fn served() -> Self {
        let mut place = Self::with(&charter(""));
        place.serve();
        place
    }

    /// With a guarded repository and a clone named `seed`.
    pub fn with_repository() -> Self {
        let place = Self::empty();
        place.git(".", &["init", "-q", "--bare", "-b", "main", "atlas.git"]);
        place.git(".", &["clone", "-q", "atlas.git", "seed"]);
        place.commit("seed", "README.md", "# Atlas\n");
        place.git("seed", &["push", "-q", "origin", "HEAD:main"]);
        let repository = "[repository]\npath = \"atlas.git\"\nprotected = [\"refs/heads/main\"]";
        std::fs::write(place.path("charter.toml"), charter(repository)).expect("a charter");
        place.run(&["init", "--charter", "charter.toml"]).done();
        place
    }

    /// Starts a server and waits for the line that says it is ready.
    pub fn serve(&mut self) -> String {
        self.serve_with(&[])
    }

    /// The same, with more arguments.
    pub fn serve_with(&mut self, more: &[&str]) -> String {
        let server = self.command(".", &[&["serve", "--listen", "127.0.0.1:0"], more].concat());
        self.begin(server)
    }

    /// The same, with something in its environment.
    pub fn serve_in(&mut self, environment: &[(&str, &str)]) -> String {
        let mut server = self.command(".", &["serve", "--listen", "127.0.0.1:0"]);
        server.envs(environment.iter().copied());
        self.begin(server)
    }

    fn begin(&mut self, mut server: Command) -> String {
        let mut server = server
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the program");
        let mut ready = String::new();
        let out = server.stdout.take().expect("its output is piped");
        BufReader::new(out).read_line(&mut ready).expect("its line");
        assert!(ready.starts_with("serving "), "the server said {ready:?}");
        self.server = Some(Process(server));
        ready
    }

    /// Ends the server in good order; how it exited.
    pub fn end_server(&mut self) -> i32 {
        let Process(server) = &mut self.server.take().expect("a server runs");
        let killed = Command::new("kill").args(["-TERM", &server.id().to_string()]).status();
        assert!(killed.expect("kill").success());
        server.wait().expect("it ends").code().unwrap_or(-1)
    }

    /// Has the server stand still, or go on, as a machine that sleeps does.
    pub fn pause_server(&self, stands_still: bool) {
        let Process(server) = self.server.as_ref().expect("a server runs");
        let signal = if stands_still { "-STOP" } else { "-CONT" };
        let sent = Command::new("kill").args([signal, &server.id().to_string()]).status();
        assert!(sent.expect("kill is there").success());
    }

    /// Kills the server, or finds it dead; all that it wrote stays.
    pub fn drop_server(&mut self) {
        drop(self.server.take().expect("a server runs"));
    }

    /// The same, but for the file that says where it listens.
    pub fn kill_server(&mut self) {
        self.drop_server();
        std::fs::remove_file(self.path(".countersign/server.json")).expect("it stays behind");
    }

    /// Waits until the server has died by itself.
    pub fn server_died(&mut self) {
        let Process(server) = &mut self.server.take().expect("a server runs");
        let ended = server.wait().expect("it ends");
        assert!(!ended.success(), "{ended}");
        std::fs::remove_file(self.path(".countersign/server.json")).expect("it stays behind");
    }

    /// A path below the folder.
    pub fn path(&self, below: &str) -> PathBuf {
        self.folder.path().join(below)
    }

    /// Where the server listens.
    pub fn addr(&self) -> String {
        let text = std::fs::read(self.path(".countersign/server.json")).expect("a server runs");
        let json: Value = serde_json::from_slice(&text).expect("JSON");
        json["addr"].as_str().expect("an address").to_owned()
    }

    /// The program in that folder, with an environment that holds nothing of ours.
    pub fn command(&self, folder: &str, args: &[&str]) -> Command {
        let mut command = Command::new(PROGRAM);
        command.args(args).current_dir(self.path(folder));
        for (name, _) in std::env::vars_os() {
            let name = name.to_string_lossy().into_owned();
            if name.starts_with("COUNTERSIGN_") || name.starts_with("GIT_") {
                command.env_remove(name);
            }
        }
        git_identity(&mut command);
        command
    }

    /// Runs the program in the folder.
    pub fn run(&self, args: &[&str]) -> Ran {
        self.run_in(".", args)
    }

    /// Runs it in a folder below.
    pub fn run_in(&self, folder: &str, args: &[&str]) -> Ran {
        Ran::of(&self.command(folder, args).stdin(Stdio::null()).output().expect("the program"))
    }

    /// Runs it with something on its standard input.
    pub fn run_with(&self, input: &[u8], args: &[&str]) -> Ran {
        let mut command = self.command(".", args);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the program");
        let mut stdin = child.stdin.take().expect("its input is piped");
        let input = input.to_vec();
        // It may end without reading all of it; that is what some of the tests are about.
        let writing = std::thread::spawn(move || drop(stdin.write_all(&input)));
        let output = child.wait_with_output().expect("the program");
        writing.join().expect("the writer");
        Ran::of(&output)
    }

    /// Runs git in a folder below; what it printed.
    pub fn git(&self, folder: &str, args: &[&str]) -> String {
        let mut git = Command::new("git");
        git.args(args).current_dir(self.path(folder));
        git_identity(&mut git);
        let output = git.output().expect("git; install it: apt-get install git");
        assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    /// Commits a file in a clone.
    pub fn commit(&self, clone: &str, file: &str, content: &str) {
        let path = self.path(clone).join(file);
        std::fs::create_dir_all(path.parent().expect("a file stands in a folder")).expect("a folder");
        std::fs::write(path, content).expect("a file");
        self.git(clone, &["add", "-A"]);
        self.git(clone, &["commit", "-q", "-m", file]);
    }

    /// Writes a file below the folder, and the folders above it.
    pub fn write(&self, below: &str, content: impl AsRef<[u8]>) {
        let path = self.path(below);
        std::fs::create_dir_all(path.parent().expect("a file stands in a folder")).expect("a folder");
        std::fs::write(path, content).expect("a file");
    }

    /// Proposes a bundle of one file as app; its exact reference.
    pub fn propose(&self, content: &str) -> String {
        self.write("work/src/lexer.rs", content);
        let proposed = self.run(&[
            "--as",
            "app",
            "--json",
            "propose",
            "parser",
            "--path",
            "work",
            "--summary",
            "Streaming parser",
        ]);
        text(&proposed.done().json()["ref"])
    }
}

/// A text of some JSON.
pub fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("{value} is no text")).to_owned()
}

/// The permissions of a file or folder.
pub fn mode(path: &Path) -> u32 {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(path).unwrap_or_else(|wrong| panic!("{}: {wrong}", path.display())).permissions().mode()
        & 0o777
}

fn git_identity(command: &mut Command) {
    command
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_AUTHOR_NAME", "team")
        .env("GIT_AUTHOR_EMAIL", "team@example.org")
        .env("GIT_COMMITTER_NAME", "team")
        .env("GIT_COMMITTER_EMAIL", "team@example.org");
}
