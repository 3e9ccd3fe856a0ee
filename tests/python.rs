//! A client in another language: the example reviewer in Python, over gRPC, against the real server.
//!
//! It needs grpcio, which `./test` installs beside the other tools.

#[path = "support/place.rs"]
#[allow(dead_code)] // It is shared with the tests of the command line.
mod place;

use std::io::{BufRead, BufReader, Lines};
use std::path::{Path, PathBuf};
use std::process::{ChildStdout, Command, Stdio};

use place::{Place, Process, Ran, text};

/// The Python that has grpcio.
fn python() -> PathBuf {
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.or_else(|| Some(std::env::home_dir()?.join(".cache"))).expect("a cache folder");
    let python = cache.join("countersign-tools/python/bin/python");
    assert!(python.exists(), "{} is missing: ./test installs it", python.display());
    python
}

/// The example, as it runs for one member.
struct Reviewer {
    _process: Process,
    said: Lines<BufReader<ChildStdout>>,
}

impl Reviewer {
    fn start(place: &Place, member: &str) -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let stubs = place.path("stubs");
        std::fs::create_dir_all(&stubs).expect("a folder");
        let protos = std::fs::read_dir(root.join("proto/countersign/v1")).expect("the protos");
        let protos = protos.map(|file| file.expect("a proto").path());
        let mut generate = Command::new(python());
        generate.args(["-m", "grpc_tools.protoc", "-I"]).arg(root.join("proto"));
        generate.arg("--python_out").arg(&stubs).arg("--grpc_python_out").arg(&stubs).args(protos);
        Ran::of(&generate.output().expect("the generator")).done();

        let mut run = Command::new(python());
        run.arg(root.join("examples/python/reviewer.py")).env("PYTHONPATH", &stubs);
        run.env("COUNTERSIGN_ADDR", place.addr());
        run.env("COUNTERSIGN_TOKEN_FILE", place.path(&format!(".countersign/tokens/{member}")));
        let mut process = run.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("the reviewer");
        let said = BufReader::new(process.stdout.take().expect("its output is piped")).lines();
        Self { _process: Process(process), said }
    }

    /// The next thing that it says.
    fn says(&mut self) -> String {
        self.said.next().expect("it says something more").expect("it is UTF-8")
    }
}

#[test]
fn a_reviewer_in_python_listens_objects_approves_and_confirms() {
    let place = Place::served();
    let mut sec = Reviewer::start(&place, "sec");
    let first = place.propose("fn lex() {} // FIXME: lock\n");
    assert_eq!(sec.says(), format!("objected to {first} with o1 at src/lexer.rs:1"));

    let read = place.run(&["--json", "--as", "app", "objections", "parser"]).done().json();
    assert_eq!(text(&read["objections"][0]["by"]), "sec");
    place.write("work/src/lexer.rs", "fn lex() {}\n");
    let revise = ["--json", "--as", "app", "propose", "parser", "--path", "work", "--summary", "Without"];
    let second = place.run(&[&revise[..], &["--answer", "o1=it is gone"]].concat()).done().json();
    let second = text(&second["ref"]);
    assert_eq!(sec.says(), format!("approved {second} and resolved o1"));

    place.run(&["--as", "arch", "show", "parser"]).done();
    place.run(&["--as", "arch", "approve", &second, "--checked", "src/lexer.rs:1"]).done();
    let confirmed = sec.says();
    assert!(confirmed.starts_with("confirmed implement:"), "{confirmed}");
    let circle = confirmed["confirmed ".len()..].split(',').next().expect("its reference").to_owned();
    for member in ["app", "arch"] {
        place.run(&["--as", member, "confirm", &circle]).done();
    }
    let status = place.run(&["--json", "--as", "dana", "status"]).done().json();
    assert_eq!(status["circles"][0]["state"], "published", "{status}");
}

#[test]
fn a_reviewer_in_python_that_approves_last_confirms() {
    let place = Place::served();
    let first = place.propose("fn lex() {}\n");
    place.run(&["--as", "arch", "show", "parser"]).done();
    place.run(&["--as", "arch", "approve", &first, "--checked", "src/lexer.rs:1"]).done();
    let mut sec = Reviewer::start(&place, "sec");
    assert_eq!(sec.says(), format!("approved {first}"));
    let confirmed = sec.says();
    assert!(confirmed.starts_with("confirmed implement:"), "what its own act made it owe: {confirmed}");
}
