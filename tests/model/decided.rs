//! What is put before persons, and what they decide: see `check` for the rest.

use countersign::protocol::escalation::{Cause, Decision, Escalated, EscalationClosed};
use countersign::protocol::name::Actor;
use countersign::protocol::review::TargetMoved;

use super::check::{Asking, Broken, Verdict, demand};
use super::facts::{Asked, Facts, State, changes};

impl Facts {
    pub(super) fn escalated(&mut self, asking: &Asking<'_>, event: &Escalated) -> Verdict {
        self.asked_ever += 1;
        demand!("G13", event.id.0 == self.asked_ever, "{} is not the next one", event.id);
        demand!("G13", event.cause != Cause::Recovery, "{}: {}", event.subject, event.text);
        let subject = event.subject.clone();
        let member = event.member.as_ref().map(ToString::to_string);
        if event.cause == Cause::Asked {
            let by = asking.who.to_string();
            demand!("G14", member.as_ref() == Some(&by), "{by} asked as {member:?}");
            self.given("text", &event.text)?;
            let named = subject.split(['@', ':']).next().unwrap_or_default();
            let known = self.works.contains_key(named) || self.rings.contains_key(named);
            demand!("G13", known, "nobody knows {subject}, and a person is asked about it");
        }
        let each = matches!(event.cause, Cause::VoteLimit | Cause::Asked | Cause::Overdue);
        let same = |asked: &&Asked| {
            asked.cause == event.cause && asked.subject == subject && (!each || asked.member == member)
        };
        let again = self.asked.values().find(same);
        demand!("G13", again.is_none(), "{} on {subject} is before a person already", event.cause.as_str());
        let proposal = event.proposal.as_ref().map(ToString::to_string);
        let of = proposal.as_ref().and_then(|name| self.works.get(name)).map(|work| work.circle.clone());
        let circle = of.or_else(|| event.circle.as_ref().map(ToString::to_string));
        self.asked.insert(event.id.0, Asked { cause: event.cause, subject, member, circle, proposal });
        Ok(())
    }

    pub(super) fn answered(&mut self, asking: &Asking<'_>, event: &EscalationClosed) -> Verdict {
        let asked = self.asked.remove(&event.id.0);
        demand!("G13", asked.is_some(), "{} closed, and isn't open", event.id);
        let asked = asked.expect("it was just demanded");
        let (Some(by), Some(decision)) = (&event.by, event.decision) else {
            demand!("G7", event.decision.is_none(), "nobody decided {:?}", event.decision);
            let over =
                |circle: &String| self.rings.get(circle).is_some_and(|ring| ring.state == State::Closed);
            let over = asked.circle.as_ref().is_some_and(over)
                || asked.proposal.as_ref().is_some_and(|name| self.works[name].dropped);
            demand!("G13", over || asked.cause != Cause::Asked, "{} closed by itself", event.id);
            return Ok(());
        };
        self.decides(asking, by.as_str(), &event.reason)?;
        let fits = asked.cause.decisions().contains(&decision);
        demand!("G7", fits, "{decision} does not answer {}", asked.cause.as_str());
        if let Some(circle) = asked.circle.clone().filter(|_| changes(decision)) {
            self.lapse(&circle);
        }
        let Some(name) = asked.proposal.filter(|_| decision == Decision::RaiseLimit) else { return Ok(()) };
        match asked.cause {
            Cause::RoundLimit => {
                self.kin(&name).iter().try_for_each(|kin| self.work(kin).map(|work| work.rounds = 0))
            }
            Cause::FlipLimit => {
                self.kin(&name).iter().try_for_each(|kin| self.work(kin).map(|work| work.flips = 0))
            }
            Cause::VoteLimit => {
                let changes = &mut self.work(&name)?.changes;
                let one = asked.member.and_then(|member| changes.get_mut(&member));
                one.into_iter().for_each(|(_, count)| *count = 0);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// What git says is said by the server, of a current version, once.
    pub(super) fn moved(&mut self, asking: &Asking<'_>, event: &TargetMoved) -> Verdict {
        demand!("G14", *asking.who == Actor::Server, "{:?} spoke for git", asking.who);
        let name = event.reference.proposal.as_str();
        self.open(name)?;
        let work = self.work(name)?;
        let current = work.offers.len() as u32;
        demand!("G2", event.reference.version == current, "git spoke of {}", event.reference);
        let says = !event.says_nothing();
        demand!("G12", says != work.takes_back, "of {} git said the same before", event.reference);
        work.takes_back = says;
        Ok(())
    }
}
