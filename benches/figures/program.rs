//! The program that is shipped, as a process.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// The program in a folder, whose home is `.countersign` in it.
pub fn program(root: &Path, args: &[&str]) -> Command {
    let mut program = Command::new(env!("CARGO_BIN_EXE_countersign"));
    program.current_dir(root).env("COUNTERSIGN_HOME", root.join(".countersign")).args(args);
    program
}

/// Runs it to its end; what it printed.
pub fn ran(command: &mut Command) -> String {
    ran_with(command, "")
}

/// The same with something on its standard input.
pub fn ran_with(command: &mut Command, input: &str) -> String {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut running = command.spawn().expect("the program starts");
    // Most commands read nothing.
    let _ = running.stdin.take().expect("its input is piped").write_all(input.as_bytes());
    let output = running.wait_with_output().expect("it ends");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{command:?}: {}{}", text(&output.stdout), text(&output.stderr));
    text(&output.stdout)
}

/// A server that ends with its bench.
pub struct Served(Child);

impl Served {
    /// Starts one, and waits until it is ready.
    pub fn start(root: &Path) -> Self {
        let mut serve = program(root, &["serve", "--listen", "127.0.0.1:0", "--no-page"]);
        serve.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut serve = serve.spawn().expect("the program starts");
        let out = serve.stdout.take().expect("its output is piped");
        let served = Self(serve);
        BufReader::new(out).read_line(&mut String::new()).expect("its line");
        served
    }

    /// Its process.
    pub fn id(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.0.kill().expect("it runs");
        self.0.wait().expect("it ends");
    }
}
