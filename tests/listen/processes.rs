//! Real listeners, each a process of its own, and a real server that is killed under them.

use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use super::place::{PROGRAM, Place, Process};

/// Resident memory that one blocked listener may take, in KiB; a debug build's.
const LISTENER_KIB_MAX: u64 = 64 * 1024;

struct Home {
    place: Place,
}

impl Home {
    fn with_charter(charter: &str) -> Self {
        let mut place = Place::with(charter);
        place.serve();
        Self { place }
    }

    fn command(&self, member: &str, args: &[&str]) -> Command {
        let mut command = self.place.command(".", args);
        command.env("COUNTERSIGN_AS", member).stdin(Stdio::null());
        command
    }

    fn run(&self, member: &str, args: &[&str]) -> (i32, String) {
        let output = self.command(member, args).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap();
        (output.status.code().unwrap(), text)
    }

    fn json(&self, member: &str, args: &[&str]) -> Value {
        let (_, text) = self.run(member, &[&["--json"], args].concat());
        serde_json::from_str(text.lines().next().unwrap_or_default()).unwrap_or_else(|_| panic!("{text}"))
    }

    fn listen(&self, member: &str, args: &[&str]) -> Child {
        let args = [&["--json", "listen"], args].concat();
        self.command(member, &args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// Waits until so many members have that presence, asking the server each time.
    fn until(&self, presence: &str, count: usize) {
        loop {
            let roster = self.json("dana", &["roster"]);
            let members = roster["members"].as_array().unwrap();
            if members.iter().filter(|entry| entry["presence"] == presence).count() == count {
                return;
            }
        }
    }

    fn propose(&self, member: &str, name: &str) -> Value {
        self.place.write(&format!("{name}/text"), name);
        let proposed = self.json(member, &["propose", name, "--path", name, "--summary", "it works"]);
        assert_eq!(proposed["ok"], true, "{proposed}");
        proposed
    }
}

/// How a listener ended, and what it printed.
fn ended(mut listener: Child) -> (i32, String) {
    let mut said = String::new();
    listener.stdout.take().unwrap().read_to_string(&mut said).unwrap();
    (listener.wait().unwrap().code().unwrap_or(-1), said)
}

fn resident_kib(process: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// `p1`… produce `d1`…, which `m1`… review; there are more of these.
fn charter(works: usize, listeners: usize) -> String {
    let mut text = "[team]\nname = \"atlas\"\n[members.dana]\nkind = \"human\"\n".to_owned();
    (1..=works).for_each(|n| text.push_str(&format!("[members.p{n}]\n")));
    (1..=listeners).for_each(|n| text.push_str(&format!("[members.m{n}]\n")));
    text.push_str("[[phases]]\nname = \"implement\"\nconfirm = \"together\"\n");
    let deliverable = |n| format!("{{ name = \"d{n}\", producer = \"p{n}\" }}");
    let edge = |n| format!("{{ reviewer = \"m{n}\", of = \"p{n}\", lens = \"security\" }}");
    let list = |one: &dyn Fn(usize) -> String| (1..=works).map(one).collect::<Vec<_>>().join(",\n");
    text.push_str(&format!("deliverables = [{}]\nreviews = [{}]\n", list(&deliverable), list(&edge)));
    text
}

#[test]
fn fifty_listeners_over_a_killed_server_and_everyone_hears_exactly_theirs() {
    const WORKS: usize = 20;
    const LISTENERS: usize = 50;
    let mut home = Home::with_charter(&charter(WORKS, LISTENERS));
    let mut listeners: Vec<Child> = (1..=LISTENERS).map(|n| home.listen(&format!("m{n}"), &[])).collect();
    home.until("listening", LISTENERS);
    home.place.drop_server();
    home.place.serve();
    // They come back while it happens.
    (1..=WORKS).for_each(|n| drop(home.propose(&format!("p{n}"), &format!("d{n}"))));
    let idle = listeners.split_off(WORKS);
    for (n, listener) in (1..).zip(listeners) {
        let (code, said) = ended(listener);
        let wake: Value = serde_json::from_str(&said).unwrap_or_else(|_| panic!("m{n}: {said}"));
        assert_eq!((code, &wake["woke_by"]), (0, &format!("review:d{n}@1").into()), "{wake}");
        assert_eq!(wake["obligations"].as_array().unwrap().len(), 1, "{wake}");
        let again = home.run(&format!("m{n}"), &["listen", "--timeout", "1ms"]);
        assert_eq!(again.0, 4, "none is told twice: {}", again.1);
    }
    home.until("listening", LISTENERS - WORKS);
    for mut listener in idle {
        let kib = resident_kib(listener.id());
        assert!(kib <= LISTENER_KIB_MAX, "a blocked listener takes {kib} KiB");
        listener.kill().unwrap();
        listener.wait().unwrap();
    }
    home.until("listening", 0);
}

#[test]
fn a_listener_that_can_not_print_took_nothing() {
    let home = Home::with_charter(&charter(1, 1));
    home.propose("p1", "d1");
    // Nobody reads what it prints: as good as killed between the write and the flush.
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let lost = home.command("m1", &["listen"]).stdout(full).output().unwrap();
    assert_eq!(lost.status.code(), Some(1), "{lost:?}");
    let wake = home.json("m1", &["listen"]);
    assert_eq!((&wake["wake"], &wake["woke_by"]), (&"w1".into(), &"review:d1@1".into()), "{wake}");
    assert_eq!(wake["obligations"][0]["command"], "countersign show d1@1");
    assert_eq!(home.json("m1", &["listen", "--timeout", "1ms"])["code"], "TIMED_OUT");
}

#[test]
fn a_killed_listener_is_seen_at_once_and_the_sender_is_told() {
    let home = Home::with_charter(&charter(2, 2));
    let mut listener = home.listen("m1", &[]);
    home.until("listening", 1);
    let killed = std::time::Instant::now();
    listener.kill().unwrap();
    listener.wait().unwrap();
    home.until("re-arming", 1);
    assert!(killed.elapsed().as_secs() < 2, "it took {:?}", killed.elapsed());
    let woke = &home.propose("p1", "d1")["woke"];
    assert_eq!(
        (&woke[0]["outcome"], &woke[0]["presence"]),
        (&"stored".into(), &"re-arming".into()),
        "{woke}"
    );
    let listener = home.listen("m2", &[]);
    home.until("listening", 1);
    let woke = &home.propose("p2", "d2")["woke"];
    assert_eq!((&woke[0]["outcome"], &woke[0]["presence"]), (&"woke".into(), &"listening".into()), "{woke}");
    assert_eq!(ended(listener).0, 0);
}

#[test]
fn each_end_has_its_exit_code_and_the_last_line_names_what_woke() {
    let mut home = Home::with_charter(&charter(1, 1));
    let first = home.listen("m1", &[]);
    home.until("listening", 1);
    let second = home.command("m1", &["listen"]).stdout(Stdio::piped()).spawn().unwrap();
    let (code, said) = ended(first);
    let said: Value = serde_json::from_str(&said).unwrap();
    assert_eq!((code, &said["code"], &said["facts"]["member"]), (6, &"SUPERSEDED".into(), &"m1".into()));
    home.until("listening", 1);
    home.propose("p1", "d1");
    let (code, said) = ended(second);
    assert_eq!((code, said.lines().last()), (0, Some("woken by review:d1@1")), "{said}");
    home.place.drop_server();
    let (code, said) = home.run("m1", &["listen", "--patience", "50ms"]);
    assert_eq!(code, 3, "{said}");
    home.place.serve();
    let said = home.json("m1", &["listen", "--watch"]);
    assert_eq!((&said["code"], &said["facts"]["member"]), (&"NOT_A_WATCHER".into(), &"m1".into()), "{said}");
    let (code, said) = home.run("m1", &["listen", "--topic", "nothing"]);
    assert_eq!((code, said.contains("MALFORMED")), (1, true), "{said}");
}

#[test]
fn a_command_is_run_on_each_wake_and_one_that_fails_gets_it_again() {
    let home = Home::with_charter(&charter(2, 1).replace("reviewer = \"m2\"", "reviewer = \"m1\""));
    let script = home.place.path("hear");
    fs::write(&script, "#!/bin/sh\ncat >> heard\necho >> runs\n[ \"$(wc -l < runs)\" != 1 ]\n").unwrap();
    let run = |path: &Path| format!("sh {}", path.display());
    let mut listener = home.listen("m1", &["--exec", &run(&script)]);
    home.until("listening", 1);
    home.propose("p1", "d1");
    let heard = || fs::read_to_string(home.place.path("heard")).unwrap_or_default();
    // Refused the first time, it comes again; then it is taken, and the listener stays.
    while heard().lines().count() < 2 {
        std::thread::yield_now();
    }
    home.until("listening", 1);
    home.propose("p2", "d2");
    while heard().lines().count() < 3 {
        std::thread::yield_now();
    }
    let wakes: Vec<Value> = heard().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let told: Vec<_> = wakes.iter().map(|wake| (wake["wake"].as_str(), wake["woke_by"].as_str())).collect();
    let (first, second) = ((Some("w1"), Some("review:d1@1")), (Some("w2"), Some("review:d2@1")));
    assert_eq!(told, [first, first, second]);
    listener.kill().unwrap();
    listener.wait().unwrap();
}

#[test]
fn a_command_that_approves_last_is_woken_to_confirm() {
    let home = Home::with_charter(&charter(1, 1));
    let script = home.place.path("act");
    // It does what it is told, as an agent would.
    let text = r#"#!/bin/sh
read -r wake
field() { printf '%s' "$wake" | sed "s/.*\"$1\":\"\([^\"]*\)\".*/\1/"; }
reference=$(field subject)
case $(field woke_by) in
    review:*) "$PROGRAM" show "$reference" && "$PROGRAM" approve "$reference" --checked text ;;
    confirm:*) "$PROGRAM" confirm "$reference" ;;
esac > said 2>&1
echo "$(field woke_by)" >> heard
"#;
    fs::write(&script, text).unwrap();
    let act = format!("sh {}", script.display());
    let mut listener = home.command("m1", &["--json", "listen", "--exec", &act]);
    let _listener = Process(listener.env("PROGRAM", PROGRAM).spawn().unwrap());
    home.until("listening", 1);
    home.propose("p1", "d1");
    let heard = || fs::read_to_string(home.place.path("heard")).unwrap_or_default();
    while heard().lines().count() < 2 {
        std::thread::yield_now();
    }
    let heard = heard();
    let heard: Vec<&str> = heard.lines().collect();
    assert_eq!((heard[0], heard[1].starts_with("confirm:implement:")), ("review:d1@1", true), "{heard:?}");
    let said = fs::read_to_string(home.place.path("said")).unwrap();
    assert!(said.contains("is confirmed"), "{said}");
}

#[test]
fn a_server_that_stood_still_blames_nobody() {
    let home = Home::with_charter(&charter(2, 2));
    let mut gone = home.listen("m2", &[]);
    let listener = home.listen("m1", &[]);
    home.until("listening", 2);
    gone.kill().unwrap();
    gone.wait().unwrap();
    home.until("re-arming", 1);
    home.place.pause_server(true);
    // Longer than one may take to listen again; somebody waits for the server meanwhile.
    let (code, said) = home.run("p1", &["listen", "--patience", "11s"]);
    home.place.pause_server(false);
    assert_eq!(code, 3, "{said}");
    let roster = home.json("dana", &["roster"]);
    let members = roster["members"].as_array().unwrap();
    let of = |member: &str| members.iter().find(|entry| entry["name"] == member).unwrap();
    assert_eq!(of("m2")["presence"], "re-arming", "{roster}");
    assert!(["listening", "re-arming"].iter().any(|is| of("m1")["presence"] == *is), "{roster}");
    home.until("listening", 1);
    home.propose("p1", "d1");
    let (code, said) = ended(listener);
    assert_eq!((code, said.contains("\"woke_by\":\"review:d1@1\"")), (0, true), "{said}");
}
