//! What the log says the server owes the world, being done.

use std::collections::BTreeSet;
use std::sync::Arc;

use tokio::sync::{mpsc, oneshot};

use super::notifier::{Notice, Notifier};
use super::presence::Presence;
use super::publisher::{self, FAULTS_MAX, Published, Publisher};
use super::team::{Shared, Submitted};
use super::{Progress, UNPOISONED};
use crate::protocol::escalation::{Escalation, ReportPutBack, ReportSent};
use crate::protocol::name::{Actor, CircleName, Digest, EscalationId, MemberName, Seq, TeamName};
use crate::protocol::review::{PublishFailure, ReportPublish};
use crate::protocol::time::Time;
use crate::protocol::{Command, Effect, Team};

/// Something that is being done to the world. It keeps neither the team's task nor the server.
pub(super) struct Performing {
    pub(super) team: TeamName,
    pub(super) shared: Arc<Shared>,
    pub(super) notifier: Arc<dyn Notifier>,
    pub(super) publisher: Arc<dyn Publisher>,
    pub(super) inbox: mpsc::WeakSender<Submitted>,
    /// The epoch in which it was owed.
    pub(super) epoch: u64,
}

impl Performing {
    /// Does what is owed once the log says so up to `seq`, and reports how it went.
    pub(super) async fn perform(self, effect: Effect, seq: Seq) {
        let mut progress = self.shared.progress.1.clone();
        let void = |progress: &Progress| progress.epoch != self.epoch;
        let reached = progress.wait_for(|progress| progress.stored >= seq.0 || void(progress)).await;
        if reached.map_or(true, |progress| void(&progress)) {
            return;
        }
        let command = match &effect {
            Effect::Publish { circle, manifest } => {
                let Some(report) = self.publish(&effect, circle, manifest).await else { return };
                Command::ReportPublish(report)
            }
            Effect::PutBack { escalation } => {
                let Some(report) = self.put_back(*escalation).await else { return };
                Command::ReportPutBack(report)
            }
            Effect::Notify { escalation, level, channel } => {
                let Some(report) = self.notify(&effect, *escalation, *level, channel).await else { return };
                Command::ReportSent(report)
            }
        };
        let (reply, _) = oneshot::channel();
        let Some(inbox) = self.inbox.upgrade() else { return };
        // A closed inbox: the server is ending, and does this when it starts again.
        drop(inbox.send(Submitted { who: Actor::Server, command, request: None, reply }).await);
    }

    /// Moves refs until they stand at what was reviewed or it is certain that they can't; nothing once that is
    /// not owed any longer. What breaks under us is tried again, and after a while put before persons.
    async fn publish(
        &self,
        effect: &Effect,
        circle: &CircleName,
        manifest: &Digest,
    ) -> Option<ReportPublish> {
        let report = |done: Published| {
            let Published { failure, refs, check } = done;
            Some(ReportPublish { circle: circle.clone(), manifest: manifest.clone(), failure, refs, check })
        };
        let mut faults = 0;
        while self.shared.progress.1.borrow().epoch == self.epoch {
            let publication = {
                let team = self.shared.team.read().expect(UNPOISONED);
                if !team.effects().contains(effect) {
                    return None;
                }
                publisher::publication(&team, circle, manifest)
            };
            // The deliverables' published pointers are moved by the report itself.
            let Some(publication) = publication else {
                return report(Published { failure: None, refs: Vec::new(), check: None });
            };
            let why = match self.publisher.publish(&publication).await {
                Ok(done) => return report(done),
                Err(why) => why,
            };
            faults += 1;
            tracing::error!(team = %self.team, %circle, why, faults, "what was completed can't be published");
            if faults == FAULTS_MAX {
                let because = format!("the server could not publish it: {why}");
                let failure = Some(PublishFailure { because, owing: Vec::new() });
                return report(Published { failure, refs: Vec::new(), check: None });
            }
            let again = self.shared.clock.now() + publisher::pause_after(faults);
            self.shared.clock.wait_until(again).await;
        }
        None
    }

    /// Moves a ref back to where it was left; what came of it is final, and the next audit says where it is.
    async fn put_back(&self, escalation: EscalationId) -> Option<ReportPutBack> {
        let moved = {
            let team = self.shared.team.read().expect(UNPOISONED);
            team.escalations().get(escalation)?.opened.moved.clone()?
        };
        let because = self.publisher.put_back(&self.team, &moved).await.err();
        if let Some(why) = &because {
            tracing::warn!(team = %self.team, %escalation, why, "a ref was not put back");
        }
        Some(ReportPutBack { escalation, because })
    }

    /// Sends the news until it is taken, with longer and longer pauses; nothing once it is not owed any
    /// longer.
    async fn notify(
        &self,
        effect: &Effect,
        escalation: EscalationId,
        level: u32,
        channel: &str,
    ) -> Option<ReportSent> {
        let report = || Some(ReportSent { escalation, level, channel: channel.to_owned() });
        let deliveries = || self.shared.deliveries.lock().expect(UNPOISONED);
        while self.shared.progress.1.borrow().epoch == self.epoch {
            if deliveries().was_sent(escalation, level, channel) {
                return report();
            }
            let Some(notice) = self.notice(effect, escalation, level, channel) else {
                deliveries().dropped(escalation, level, channel);
                return None;
            };
            let Err(why) = self.notifier.send(&notice).await else {
                deliveries().sent(escalation, level, channel);
                return report();
            };
            tracing::warn!(team = %self.team, %escalation, channel, why, "the news was not taken");
            let again = deliveries().failed(escalation, level, channel, why, self.shared.clock.now());
            self.shared.clock.wait_until(again).await;
        }
        None
    }

    /// What is to be told, while it is still owed.
    fn notice(&self, effect: &Effect, id: EscalationId, level: u32, channel: &str) -> Option<Notice> {
        let team = self.shared.team.read().expect(UNPOISONED);
        let charter = &team.adopted()?.charter;
        let owed = team.effects().contains(effect);
        let (escalation, known) = (team.escalations().get(id)?, charter.channels.get(channel)?);
        owed.then(|| Notice {
            team: self.team.clone(),
            name: channel.to_owned(),
            channel: known.clone(),
            escalation: escalation.clone(),
            level,
            at: self.shared.clock.now(),
            hears: self.hears(&team, escalation),
        })
    }

    /// Whether a wake reaches each on whom an escalation waits: each once.
    fn hears(&self, team: &Team, escalation: &Escalation) -> Vec<(MemberName, Presence, Option<Time>)> {
        let members: BTreeSet<&MemberName> =
            escalation.opened.waiting_on.iter().map(|waiting| &waiting.member).collect();
        let mut hears = self.shared.hearing.roster(team);
        hears.retain(|(member, ..)| members.contains(member));
        hears
    }
}
