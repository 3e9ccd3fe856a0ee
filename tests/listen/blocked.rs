//! A blocked listener: what wakes it, what doesn't, and what the others are told of it.

use std::collections::BTreeSet;

use countersign::coordinator::{Arming, Listening, Presence, Refusal, Said, Turned, WakeOutcome, Waking};
use countersign::protocol::Violation;
use countersign::protocol::name::Seq;
use countersign::protocol::time::Span;

use crate::support::coordinated::Coordinated;
use crate::support::play::{Act, Proposing, Seen, Stage, charter_text};

fn proposed() -> Act {
    let files = [("src/parser.rs".to_owned(), "one\n".to_owned())].into();
    let touched = ["src/parser.rs".to_owned()].into();
    Act::Propose(Box::new(Proposing {
        proposal: "parser".to_owned(),
        files,
        touched,
        ..Proposing::default()
    }))
}

fn escalate(text: &str) -> Act {
    Act::Escalate { subject: "parser".to_owned(), text: text.to_owned() }
}

fn blocked(stage: &Coordinated, member: &str, stays: bool) -> Listening {
    let mut listening = stage.arm(member, Arming::default(), stays);
    assert!(matches!(stage.hear(&mut listening), Some(Ok(Said::Armed { .. }))), "{member} is blocked");
    listening
}

fn woken(stage: &Coordinated, listening: &mut Listening) -> Waking {
    match stage.hear_next(listening) {
        Some(Ok(Said::Woken(waking))) => *waking,
        other => panic!("it is not woken: {other:?}"),
    }
}

fn woken_by(waking: &Waking) -> Vec<&str> {
    waking.due.fresh.iter().map(String::as_str).collect()
}

#[test]
fn whoever_owes_is_woken_and_the_sender_knows() {
    let mut stage = Coordinated::with_charter("solo");
    let mut sec = blocked(&stage, "sec", false);
    let done = stage.done("app", &proposed());
    let woke: Vec<_> =
        done.woke.iter().map(|wake| (wake.member.as_str(), wake.outcome, wake.presence)).collect();
    assert_eq!(
        woke,
        [("arch", WakeOutcome::Stored, Presence::NotJoined), ("sec", WakeOutcome::Woke, Presence::Listening)]
    );
    let waking = woken(&stage, &mut sec);
    assert_eq!((waking.due.wake.to_string().as_str(), woken_by(&waking)), ("w1", vec!["review:parser@1"]));
    stage.take("sec", &waking);
    assert!(stage.hear(&mut sec).is_none(), "it was taken, and the listener is over");
    assert!(stage.hear(&mut blocked(&stage, "sec", false)).is_none(), "once for each thing");
}

#[test]
fn a_hundred_events_are_one_wake() {
    let mut stage = Coordinated::with_charter("solo");
    let mut dana = blocked(&stage, "dana", true);
    for _ in 0..100 {
        stage.done("app", &escalate("who decides?"));
        let open = stage.standing().escalations;
        let answer = Act::Answer {
            escalation: open[0].0.clone(),
            decision: "dismiss".to_owned(),
            member: None,
            reviewer: None,
            reason: "later".to_owned(),
        };
        stage.done("dana", &answer);
    }
    stage.done("app", &escalate("who decides now?"));
    let waking = woken(&stage, &mut dana);
    assert_eq!(woken_by(&waking), ["decide:e101"]);
    stage.take("dana", &waking);
    assert!(stage.hear(&mut dana).is_none(), "there was one wake");
}

#[test]
fn ones_own_acts_never_wake_one_and_over_a_lost_connection_neither() {
    let mut stage = Coordinated::with_charter("solo");
    stage.done("app", &proposed());
    let mut dana = blocked(&stage, "dana", false);
    // The person asks a person: she owes the decision by her own doing.
    stage.done("dana", &escalate("do I know?"));
    let Some(Ok(Said::Own(own))) = stage.hear(&mut dana) else { panic!("it is told what is its own") };
    assert_eq!(own.iter().map(String::as_str).collect::<Vec<_>>(), ["decide:e1"]);
    assert!(stage.hear(&mut dana).is_none(), "it wakes nobody");
    stage.restart();
    let mut again = stage.arm("dana", Arming { own, ..Arming::default() }, false);
    assert!(matches!(stage.hear(&mut again), Some(Ok(Said::Armed { .. }))), "nor does it after a restart");
    // Whoever begins to listen is told all that it was never shown.
    let mut fresh = stage.arm("dana", Arming::default(), false);
    assert_eq!(woken_by(&woken(&stage, &mut fresh)), ["decide:e1"]);
}

#[test]
fn a_second_listener_takes_over_and_nothing_is_half_consumed() {
    let mut stage = Coordinated::with_charter("solo");
    let mut first = blocked(&stage, "sec", false);
    let mut second = stage.arm("sec", Arming::default(), false);
    let member = "sec".parse().unwrap();
    assert_eq!(stage.hear(&mut first), Some(Err(Turned::Unmet(Violation::Superseded { member }.into()))));
    assert_eq!(stage.hear(&mut first), None);
    drop(first);
    assert!(matches!(stage.hear(&mut second), Some(Ok(Said::Armed { .. }))));
    assert_eq!(stage.presence("sec").0, Presence::Listening, "the end of the first is not the second's");
    stage.done("app", &proposed());
    assert_eq!(woken_by(&woken(&stage, &mut second)), ["review:parser@1"]);
}

#[test]
fn a_wake_that_nobody_takes_comes_again_with_the_same_id() {
    let mut stage = Coordinated::with_charter("solo");
    let mut sec = blocked(&stage, "sec", false);
    stage.done("app", &proposed());
    let waking = woken(&stage, &mut sec);
    assert!(stage.hear(&mut sec).is_none());
    stage.wait(Span::seconds(10));
    assert_eq!(woken(&stage, &mut sec), waking, "on the same stream");
    stage.wait(Span::seconds(10));
    assert!(stage.hear(&mut sec).is_none(), "after twice as long");
    stage.wait(Span::seconds(10));
    assert_eq!(woken(&stage, &mut sec), waking);
    drop(sec);
    let mut next = stage.arm("sec", Arming::default(), false);
    assert_eq!(woken(&stage, &mut next).due, waking.due, "on the next one");
}

#[test]
fn whoever_ends_or_speaks_for_nobody_is_told() {
    let mut stage = Coordinated::with_charter("solo");
    let mut sec = blocked(&stage, "sec", false);
    stage.revoke("sec");
    assert_eq!(stage.hear(&mut sec), Some(Err(Turned::Stranger)));
    let mut arch = blocked(&stage, "arch", false);
    stage.end_listening();
    assert_eq!(stage.hear(&mut arch), Some(Err(Turned::Refused(Refusal::Ended))));
    stage.restart();
}

#[test]
fn presence_is_what_was_heard_last() {
    let mut stage = Coordinated::with_charter("solo");
    stage.done("app", &proposed());
    assert_eq!(stage.presence("sec"), (Presence::NotJoined, None));
    let mut sec = stage.arm("sec", Arming::default(), false);
    let waking = woken(&stage, &mut sec);
    assert_eq!(stage.presence("sec"), (Presence::Thinking, Some(0)), "a wake was sent");
    drop(sec);
    assert_eq!(stage.presence("sec"), (Presence::ReArming, Some(0)), "and killed before it was taken");
    stage.wait(Span::seconds(11));
    assert_eq!(stage.presence("sec"), (Presence::Offline, Some(11)));
    let mut sec = stage.arm("sec", Arming::default(), false);
    assert_eq!(woken(&stage, &mut sec), waking);
    stage.take("sec", &waking);
    drop(sec);
    stage.wait(Span::seconds(60));
    assert_eq!(stage.presence("sec"), (Presence::Thinking, Some(60)));
    stage.done("sec", &Act::Show { subject: "parser@1".to_owned() });
    stage.wait(Span::seconds(140));
    assert_eq!(stage.presence("sec"), (Presence::Deaf, Some(140)), "it spoke, and did not listen again");
    let listening = blocked(&stage, "sec", false);
    stage.wait(Span::seconds(5));
    assert_eq!(stage.presence("sec"), (Presence::Listening, Some(5)));
    drop(listening);
    stage.restart();
    assert_eq!(
        stage.presence("sec"),
        (Presence::Offline, None),
        "nothing of it is stored but what was shown"
    );
    assert_eq!(stage.presence("arch"), (Presence::NotJoined, None));
}

#[test]
fn whoever_watches_is_woken_by_everything_that_others_do() {
    let mut stage = Coordinated::with_charter("watched");
    let watching = || Arming { watch: true, ..Arming::default() };
    let mut eye = stage.arm("eye", watching(), true);
    let Some(Ok(Said::Armed { seq })) = stage.hear(&mut eye) else { panic!("it is blocked") };
    stage.done("app", &proposed());
    let mut sec = stage.arm("sec", Arming::default(), false);
    let waking = woken(&stage, &mut sec);
    stage.take("sec", &waking);
    let seen = woken(&stage, &mut eye);
    let kinds: Vec<&str> = seen.events.iter().map(|row| &*row.kind).collect();
    assert_eq!((kinds, seen.watched >= Some(Seq(seq.0 + 1))), (vec!["proposed"], true));
    stage.take("eye", &seen);
    assert!(stage.hear(&mut eye).is_none(), "that something was shown is no news");
    stage.restart();
    drop(eye);
    stage.done("app", &say("while nobody watched", "dana"));
    let mut eye = stage.arm("eye", watching(), true);
    let seen = woken(&stage, &mut eye);
    let kinds: Vec<&str> = seen.events.iter().map(|row| &*row.kind).collect();
    assert_eq!(kinds, ["said"], "it goes on from what it was shown, and is shown nothing twice");
    let refused = stage.try_arm("sec", watching());
    let member = "sec".parse().unwrap();
    let unmet = Turned::Unmet(Violation::NotAWatcher { member }.into());
    assert_eq!(refused, Err(unmet), "not everybody watches");
}

fn say(text: &str, to: &str) -> Act {
    Act::Say {
        text: text.to_owned(),
        to: vec![to.to_owned()],
        reply: None,
        about: None,
        claim: None,
        request: None,
    }
}

fn shown(stage: &mut Coordinated, member: &str) -> String {
    match stage.act(member, &Act::Show { subject: "parser@1".to_owned() }) {
        Seen::Shown { reference } => reference,
        other => panic!("{member} is not shown it: {other:?}"),
    }
}

fn approve(stage: &mut Coordinated, member: &str) {
    let reference = shown(stage, member);
    let checked = vec!["src/parser.rs".to_owned()];
    let (ran, resolve, request) = (Vec::new(), Vec::new(), None);
    stage.done(member, &Act::Approve { reference, checked, ran, resolve, request });
}

#[test]
fn what_ones_act_made_one_owe_is_news_once_the_wake_is_taken() {
    let mut stage = Coordinated::with_charter("solo");
    let mut arch = blocked(&stage, "arch", true);
    stage.done("app", &proposed());
    let waking = woken(&stage, &mut arch);
    approve(&mut stage, "sec");
    // It approves last, and so owes its confirmation by its own doing.
    approve(&mut stage, "arch");
    let own = stage.hear(&mut arch);
    assert!(matches!(&own, Some(Ok(Said::Own(own))) if own.len() == 1), "{own:?}");
    assert!(stage.hear(&mut arch).is_none(), "as long as it acts");
    stage.take("arch", &waking);
    let waking = woken(&stage, &mut arch);
    let by = woken_by(&waking);
    assert!(by.len() == 1 && by[0].starts_with("confirm:implement:"), "{by:?}");
    assert_eq!(stage.hear(&mut arch), Some(Ok(Said::Own(BTreeSet::new()))));
}

#[test]
fn what_one_brought_about_oneself_is_shown_once_half_of_its_time_is_over() {
    let mut stage = Coordinated::with_charter("solo");
    let mut dana = blocked(&stage, "dana", false);
    stage.done("dana", &escalate("do I know?"));
    assert!(matches!(stage.hear(&mut dana), Some(Ok(Said::Own(_)))));
    stage.wait(Span::seconds(9 * 60));
    assert!(stage.hear(&mut dana).is_none(), "it is its own");
    stage.wait(Span::seconds(60));
    assert_eq!(woken_by(&woken(&stage, &mut dana)), ["decide:e1"]);
}

#[test]
fn a_wake_that_comes_again_shows_what_is_owed_by_then() {
    let mut stage = Coordinated::with_charter("solo");
    let mut sec = blocked(&stage, "sec", true);
    stage.done("app", &proposed());
    let first = woken(&stage, &mut sec);
    stage.wait(Span::seconds(5));
    stage.done("app", &Act::Withdraw { proposal: "parser".to_owned(), reason: "not yet".to_owned() });
    stage.done("app", &say("is it fast?", "sec"));
    assert!(stage.hear(&mut sec).is_none(), "not each thing that happens meanwhile");
    stage.wait(Span::seconds(5));
    let again = woken(&stage, &mut sec);
    assert_eq!((again.due.wake, woken_by(&again)), (first.due.wake, vec!["answer:m1"]));
    stage.done("dana", &say("is it still?", "sec"));
    assert!(stage.hear(&mut sec).is_none());
    stage.wait(Span::seconds(10));
    assert_eq!(woken_by(&woken(&stage, &mut sec)), ["answer:m1", "answer:m2"], "after twice as long, or ten");
    let reply = |id: &str| Act::Say {
        text: "it is".to_owned(),
        to: Vec::new(),
        reply: Some(id.to_owned()),
        about: None,
        claim: None,
        request: None,
    };
    stage.done("sec", &reply("m1"));
    stage.done("sec", &reply("m2"));
    stage.wait(Span::seconds(300));
    assert!(stage.hear(&mut sec).is_none(), "what is owed no longer is not sent");
    assert_eq!(stage.presence("sec").0, Presence::Listening, "and it is blocked again");
    stage.done("app", &say("and now?", "sec"));
    woken(&stage, &mut sec);
    stage.revoke("sec");
    assert_eq!(stage.hear(&mut sec), Some(Err(Turned::Stranger)), "nor is it to whoever speaks for nobody");
}

#[test]
fn a_wake_is_taken_once_and_only_the_one_that_was_sent() {
    let mut stage = Coordinated::with_charter("solo");
    let mut sec = blocked(&stage, "sec", true);
    stage.done("app", &proposed());
    let first = woken(&stage, &mut sec);
    stage.take("sec", &first);
    assert!(stage.hear(&mut sec).is_none());
    stage.take("sec", &first);
    assert_eq!(
        stage.presence("sec").0,
        Presence::Listening,
        "it is blocked, whatever is said of an old wake"
    );
    let done = stage.done("app", &say("is it fast?", "sec"));
    assert_eq!(done.woke[0].outcome, WakeOutcome::Woke);
    let second = woken(&stage, &mut sec);
    stage.take("sec", &first);
    stage.wait(Span::seconds(10));
    assert_eq!(woken(&stage, &mut sec).due.wake, second.due.wake, "it was not taken by the one before");
}

#[test]
fn what_ended_and_is_owed_again_before_the_wake_is_taken_was_not_shown() {
    let mut stage = Coordinated::with_charter("solo");
    stage.done("app", &proposed());
    let mut sec = stage.arm("sec", Arming::default(), false);
    let waking = woken(&stage, &mut sec);
    assert_eq!(woken_by(&waking), ["review:parser@1"]);
    let whole = charter_text("solo");
    let edge = "[[phases.reviews]]\nreviewer = \"sec\"\nof = \"app\"\nlens = \"security\"\n";
    for charter in [whole.replacen(edge, "", 1), whole] {
        stage.done("dana", &Act::Adopt { charter, reason: "who reviews it".to_owned() });
    }
    stage.take("sec", &waking);
    let mut sec = stage.arm("sec", Arming::default(), false);
    assert_eq!(woken_by(&woken(&stage, &mut sec)), ["review:parser@1"], "it is owed anew");
}

#[test]
fn whoever_watches_hears_behind_much_that_is_no_news_and_no_longer_than_it_may() {
    let mut stage = Coordinated::with_charter("watched");
    let mut eye = stage.arm("eye", Arming { watch: true, ..Arming::default() }, true);
    assert!(matches!(stage.hear(&mut eye), Some(Ok(Said::Armed { .. }))));
    for _ in 0..1_100 {
        stage.done("eye", &say("noted", "dana"));
    }
    stage.done("app", &proposed());
    let seen = woken(&stage, &mut eye);
    assert_eq!(seen.events.iter().map(|row| &*row.kind).collect::<Vec<_>>(), ["proposed"]);
    stage.take("eye", &seen);
    assert!(stage.hear(&mut eye).is_none());
    let charter = charter_text("watched").replace("watch = true", "about = \"It watched\"");
    stage.done("dana", &Act::Adopt { charter, reason: "it saw enough".to_owned() });
    let member = "eye".parse().unwrap();
    let unmet = Turned::Unmet(Violation::NotAWatcher { member }.into());
    assert_eq!(stage.hear_next(&mut eye), Some(Err(unmet)));
}

/// What is before a person.
fn told(stage: &mut Coordinated) -> Vec<String> {
    let open = stage.standing().escalations;
    open.into_iter().map(|(id, cause, subject)| format!("{id} {cause} of {subject}")).collect()
}

#[test]
fn a_person_is_told_once_of_each_silence_while_others_wait() {
    let mut stage = Coordinated::with_charter("solo");
    // It listened, and its listener is gone before it is ever woken.
    drop(blocked(&stage, "sec", false));
    stage.done("app", &proposed());
    stage.wait(Span::seconds(299));
    assert_eq!(told(&mut stage), [""; 0], "it has a quarter of its time");
    stage.wait(Span::seconds(1));
    assert_eq!(told(&mut stage), ["e1 member-deaf of sec"]);
    stage.wait(Span::seconds(120));
    assert_eq!(told(&mut stage), ["e1 member-deaf of sec"], "once");
    let mut sec = stage.arm("sec", Arming::default(), false);
    let waking = woken(&stage, &mut sec);
    assert_eq!(told(&mut stage), [""; 0], "it hears");
    stage.take("sec", &waking);
    drop(sec);
    stage.wait(Span::seconds(1));
    shown(&mut stage, "sec");
    stage.wait(Span::seconds(299));
    assert_eq!(told(&mut stage), [""; 0], "it spoke");
    stage.wait(Span::seconds(1));
    assert_eq!(told(&mut stage), ["e2 member-deaf of sec"], "and is silent again");
    shown(&mut stage, "sec");
    assert_eq!(told(&mut stage), [""; 0], "whatever it does is a sign");
    stage.away(Span::seconds(3_600));
    assert_eq!(told(&mut stage), [""; 0], "while no server runs nobody is silent");
    stage.wait(Span::seconds(240));
    stage.restart();
    stage.wait(Span::seconds(60));
    assert_eq!(told(&mut stage), [""; 0], "a server that just began knows of nobody");
}

#[test]
fn a_silence_is_told_of_though_nothing_else_happens_and_over_a_server_that_begins_anew() {
    // It took its wake and read, and was never seen again.
    let mut stage = Coordinated::with_charter("solo");
    stage.done("app", &proposed());
    let mut sec = stage.arm("sec", Arming::default(), false);
    let waking = woken(&stage, &mut sec);
    stage.take("sec", &waking);
    drop(sec);
    stage.wait(Span::seconds(1));
    shown(&mut stage, "sec");
    for _ in 0..60 {
        stage.wait(Span::seconds(10));
    }
    assert_eq!(told(&mut stage), ["e1 member-deaf of sec"]);

    // It listened and was never woken, so that the log doesn't know it.
    let mut stage = Coordinated::with_charter("solo");
    drop(blocked(&stage, "sec", false));
    stage.done("app", &proposed());
    stage.wait(Span::seconds(300));
    assert_eq!(told(&mut stage), ["e1 member-deaf of sec"]);
    stage.restart();
    for _ in 0..6 {
        stage.wait(Span::seconds(120));
        assert_eq!(told(&mut stage), ["e1 member-deaf of sec"], "it gave no sign");
    }
}
