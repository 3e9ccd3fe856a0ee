//! The watch is set before, during and after the event: it is never lost, and wakes once.

use std::sync::Arc;

use countersign::coordinator::token::Token;
use countersign::coordinator::{Arming, Coordinator, HandClock, Listening, Said, TeamHandle};
use countersign::judge::CelRulebook;
use countersign::protocol::delivery::Acknowledge;
use countersign::protocol::escalation::{Answer, Decision, Escalate};
use countersign::protocol::name::{Actor, Digest, EscalationId, MemberName};
use countersign::protocol::time::Time;
use countersign::protocol::{Adopt, Answer as Answered, Command, charter};
use countersign::store::memory::MemoryStore;
use sha2::{Digest as _, Sha256};

use crate::support::play::charter_text;

const TIMES: u32 = 10_000;

struct Raced {
    coordinator: Coordinator,
    team: TeamHandle,
    dana: MemberName,
    token: Token,
}

impl Raced {
    async fn begin() -> Self {
        let store = MemoryStore::new();
        let (writer, reader) = (store.writer().unwrap(), store.reader());
        let (rules, clock) = (Arc::new(CelRulebook::default()), Arc::new(HandClock::at(Time(0))));
        let coordinator = Coordinator::start(Box::new(writer), Arc::new(reader), rules, clock).unwrap();
        let text = charter_text("solo");
        let parsed = charter::parse("charter.toml", &text).unwrap_or_else(|found| panic!("{found}"));
        let digest = Digest::of_bytes(Sha256::digest(&text).into());
        let adopt = Adopt { text, digest, charter: parsed, rules: Vec::new() };
        let team = coordinator.add_team(adopt).await.unwrap();
        let dana: MemberName = "dana".parse().unwrap();
        let token = coordinator.issue_token(team.name(), &dana, false).await.unwrap();
        Self { coordinator, team, dana, token }
    }

    fn arm(&self) -> Listening {
        self.coordinator.listen(&self.token, Arming::default(), false, None).unwrap()
    }

    async fn escalate(&self) -> EscalationId {
        let ask = Escalate { subject: "parser".to_owned(), text: "who decides?".to_owned() };
        let done = self.team.submit("app".parse().unwrap(), Command::Escalate(ask), None).await.unwrap();
        let Answered::Escalated { escalation } = done.answer else { panic!("{done:?}") };
        escalation
    }

    async fn dismiss(&self, escalation: EscalationId) {
        let answer = Answer {
            escalation,
            decision: Decision::Dismiss,
            member: None,
            reviewer: None,
            reason: "later".to_owned(),
        };
        let who = Actor::Member(self.dana.clone());
        self.team.submit(who, Command::AnswerEscalation(answer), None).await.unwrap();
    }
}

/// The ids that woke, in order, until the wake was taken.
async fn taken(raced: &Raced, mut listening: Listening) -> Vec<String> {
    loop {
        match listening.next().await.unwrap().unwrap() {
            Said::Woken(waking) => {
                let obligations = waking.due.owed.iter().map(|owed| owed.id.clone()).collect();
                let took = Acknowledge { wake: waking.due.wake, obligations, watched: None, seq: waking.seq };
                raced.team.acknowledge(&raced.dana, took).await.unwrap();
                return waking.due.fresh.into_iter().collect();
            }
            Said::Armed { .. } | Said::Own(_) => {}
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_watch_that_is_set_before_during_or_after_the_event_is_woken_once() {
    let raced = Arc::new(Raced::begin().await);
    for turn in 0..TIMES {
        let (escalation, woken_by) = match turn % 3 {
            0 => {
                let mut listening = raced.arm();
                assert!(matches!(listening.next().await, Some(Ok(Said::Armed { .. }))), "{turn}");
                let escalation = raced.escalate().await;
                (escalation, taken(&raced, listening).await)
            }
            1 => {
                let asking = {
                    let raced = raced.clone();
                    tokio::spawn(async move { raced.escalate().await })
                };
                let woken_by = taken(&raced, raced.arm()).await;
                (asking.await.unwrap(), woken_by)
            }
            _ => {
                let escalation = raced.escalate().await;
                (escalation, taken(&raced, raced.arm()).await)
            }
        };
        assert_eq!(woken_by, [format!("decide:{escalation}")], "{turn}");
        let mut again = raced.arm();
        assert!(matches!(again.next().await, Some(Ok(Said::Armed { .. }))), "{turn}: it is not woken twice");
        raced.dismiss(escalation).await;
    }
}
