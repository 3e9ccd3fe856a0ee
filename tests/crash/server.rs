//! A real server, and the system call at which it is killed or at which its disk fails.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::process::{ChildStderr, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::Value;

use crate::place::Place;

/// Longer than any server here takes to end.
const END_MAX: Duration = Duration::from_secs(60);

/// What happens at a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// The process is killed before it.
    Kill,
    /// It isn't carried out: the disk reports a fault.
    Eio,
    /// It isn't carried out: the disk is full.
    Enospc,
}

/// One fault, at one call of one kind.
#[derive(Clone, Copy, Debug)]
pub struct Fault {
    /// The system call.
    pub call: &'static str,
    /// What happens there.
    pub what: What,
    /// At the first, the second, the third of them on a thread…
    pub at: usize,
}

impl Fault {
    /// How the tracer is told, with the files below the home alone where `beside` is false.
    fn args(self, place: &Place, beside: bool) -> Vec<String> {
        let what = match self.what {
            What::Kill => "signal=KILL",
            What::Eio => "error=EIO",
            What::Enospc => "error=ENOSPC",
        };
        let Self { call, at, .. } = self;
        let mut args: Vec<String> = vec!["-f".to_owned(), "-o".to_owned()];
        args.push(place.path("trace").display().to_string());
        if !beside {
            for file in ["", "/countersign.db", "/countersign.db-wal", "/witness"] {
                let file = place.path(&format!(".countersign{file}"));
                args.extend(["-P".to_owned(), file.display().to_string()]);
            }
        }
        args.extend(["-e".to_owned(), format!("trace={call}")]);
        args.extend(["-e".to_owned(), format!("inject={call}:{what}:when={at}")]);
        args
    }
}

/// Whether the fault took place: a call that failed is written down before it returns, and a death once all
/// that was traced has ended.
pub fn fired(place: &Place) -> bool {
    let trace = fs::read_to_string(place.path("trace")).unwrap();
    trace.contains("(INJECTED)") || trace.contains("killed by SIGKILL")
}

/// Runs the program to its end with that fault.
pub fn run_with_fault(place: &Place, fault: Fault, args: &[&str]) -> ExitStatus {
    let program = place.command(".", args);
    let mut traced = strace();
    traced.args(fault.args(place, true)).arg(program.get_program()).args(program.get_args());
    traced.current_dir(place.path(".")).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    traced.status().expect(NEEDED)
}

const NEEDED: &str = "strace; install it: apt-get install strace";

fn strace() -> Command {
    Command::new("strace")
}

/// A running server.
pub struct Server {
    pid: u32,
    ended: Receiver<ExitStatus>,
    over: bool,
    tracer: Option<(std::process::Child, BufReader<ChildStderr>)>,
}

impl Server {
    /// Starts one on the home of `place`; it is ready.
    pub fn start(place: &Place) -> Self {
        let command = place.command(".", &SERVE);
        Self::launch(place, command).unwrap_or_else(|ended| panic!("{ended}: {}", log(place)))
    }

    /// Starts one that meets a fault on its way; where it ended before it was ready, how.
    pub fn start_with(place: &Place, fault: Fault) -> Result<Self, ExitStatus> {
        let program = place.command(".", &SERVE);
        let mut command = strace();
        command.args(fault.args(place, false)).arg(program.get_program()).args(program.get_args());
        command.current_dir(place.path("."));
        Self::launch(place, command)
    }

    /// That the home is refused; what is said of it, as JSON.
    #[track_caller]
    pub fn refused(place: &Place) -> Value {
        let mut serve = place.command(".", &SERVE);
        let mut serve =
            serve.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut said = String::new();
        BufReader::new(serve.stdout.take().unwrap()).read_line(&mut said).unwrap();
        let json: Value = serde_json::from_str(&said).unwrap();
        if json["ok"] == true {
            serve.kill().unwrap();
        }
        let status = serve.wait().unwrap();
        assert_eq!((status.code(), &json["ok"]), (Some(1), &false.into()), "{said}");
        json
    }

    fn launch(place: &Place, mut command: Command) -> Result<Self, ExitStatus> {
        let log = File::create(place.path("server.log")).unwrap();
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log);
        let mut child = command.spawn().expect(NEEDED);
        let mut ready = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut ready).unwrap();
        let Ok(ready) = serde_json::from_str::<Value>(&ready) else { return Err(child.wait().unwrap()) };
        let Some(pid) = ready["pid"].as_u64() else { return Err(child.wait().unwrap()) };
        let (tell, ended) = channel();
        std::thread::spawn(move || tell.send(child.wait().unwrap()));
        Ok(Self { pid: u32::try_from(pid).unwrap(), ended, over: false, tracer: None })
    }

    /// From here on it meets that fault.
    pub fn meet(&mut self, place: &Place, fault: Fault) {
        let mut tracer = strace()
            .args(fault.args(place, false))
            .args(["-p", &self.pid.to_string()])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect(NEEDED);
        let mut said = BufReader::new(tracer.stderr.take().unwrap());
        let mut line = String::new();
        said.read_line(&mut line).unwrap();
        assert!(line.contains("attached"), "the tracer said {line:?}; it needs the right to trace");
        self.tracer = Some((tracer, said));
    }

    /// Nothing befalls it any longer. What had been traced goes on by itself when its tracer is gone.
    pub fn spare(&mut self) {
        let (mut tracer, _said) = self.tracer.take().unwrap();
        tracer.kill().unwrap();
        tracer.wait().unwrap();
    }

    /// Ends it in good order; how it exited.
    pub fn end(self) -> ExitStatus {
        self.signal("-TERM");
        self.ended()
    }

    /// Kills it.
    pub fn kill(self) {
        self.signal("-KILL");
        assert_eq!(self.ended().signal(), Some(9));
    }

    /// Waits until it ended by itself; how it exited.
    pub fn ended(mut self) -> ExitStatus {
        let status = self.ended.recv_timeout(END_MAX).expect("the server must end, and goes on");
        self.over = true;
        status
    }

    fn signal(&self, signal: &str) {
        // It may have ended by itself a moment ago; what it exits with tells.
        let _ = Command::new("kill").args([signal, &self.pid.to_string()]).stderr(Stdio::null()).status();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if !self.over && self.ended.try_recv().is_err() {
            self.signal("-KILL");
        }
    }
}

/// What the last server wrote to its own log.
pub fn log(place: &Place) -> String {
    fs::read_to_string(place.path("server.log")).unwrap()
}

const SERVE: [&str; 4] = ["--json", "serve", "--listen", "127.0.0.1:0"];
