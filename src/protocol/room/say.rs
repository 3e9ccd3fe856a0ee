//! decide: say. Whom a message mentions, what it is about, and how long its chain of mentions is.

use std::collections::BTreeSet;

use super::command::Say;
use super::event::Said;
use super::mention::{ALL, mentioned};
use crate::protocol::answer::Answer;
use crate::protocol::charter::MemberKind;
use crate::protocol::escalation::{Cause, Escalated};
use crate::protocol::event::Event;
use crate::protocol::name::{EscalationId, MemberName, MessageId, PhaseName, nearest, shown};
use crate::protocol::rejection::{Rejection, Violation, counted, list};
use crate::protocol::team::{Ask, Decision};

/// How long a chain of mentions may be. With a longer one it ends: from there on nobody owes an answer in it, and a
/// person is told.
pub const CHAIN_MAX: u32 = 8;

/// Names of nobody that one refusal tells.
const UNKNOWN_TOLD_MAX: usize = 16;

/// Says something, unless, in this order: the message that it answers is unknown, or what it is about, or a member
/// that it mentions; such a member has left; there is no text, or a text is too large.
pub(in crate::protocol) fn say(ask: Ask<'_>, command: &Say) -> Decision {
    let mut unmet = Vec::new();
    let answered = command.reply.map(|id| ask.message(id));
    unmet.extend(answered.and_then(Result::err));
    if let Some(about) = &command.about {
        check_about(ask, about, &mut unmet);
    }
    let mentions = mentions(ask, command, &mut unmet);
    ask.check_given("text", &command.text, &mut unmet);
    ask.check_text("text", &command.text, &mut unmet);
    let ran = command.claim.iter().flat_map(|evidence| &evidence.ran);
    ran.for_each(|run| ask.check_run(run, &mut unmet));
    if let Some(rejection) = Rejection::of(unmet) {
        return Decision::refuse(rejection);
    }
    let id = ask.team.room().next_id();
    let (root, length) = chain(ask, command.reply, id);
    let over = length > CHAIN_MAX || ask.team.room().is_ended(root);
    let ended = over && !mentions.is_empty();
    let said = Said {
        id,
        by: ask.by.clone(),
        text: command.text.clone(),
        mentions: mentions.clone(),
        about: command.about.clone(),
        reply: command.reply,
        claim: command.claim.clone(),
        root,
        length,
        ended,
    };
    let mut events = vec![Event::from(said)];
    let told = if ended { tell_a_person(ask, root, id, &mentions) } else { None };
    let escalation = told.as_ref().map(|told| told.id);
    events.extend(told.map(Event::from));
    Decision::accept(events, Answer::Said { message: id, mentions, root, length, ended, escalation })
}

/// The chain that a message goes on with, and how long it is with it: that of the message that it answers, or of
/// another one for whose answer its author is waited for, whichever is longer. A person begins anew: persons are
/// whom a chain is put before.
fn chain(ask: Ask<'_>, reply: Option<MessageId>, id: MessageId) -> (MessageId, u32) {
    if ask.charter.is_human(ask.by) {
        return (id, 1);
    }
    let room = ask.team.room();
    let open = room.asked(ask.by).map(|(id, _)| id);
    let known = reply.into_iter().chain(open).filter_map(|id| room.message(id));
    // Of equals the first: what it answers.
    let longest = known.reduce(|one, other| if other.length > one.length { other } else { one });
    longest.map_or((id, 1), |known| (known.root, known.length.saturating_add(1)))
}

/// A person is told of a chain when it ends: it ends once.
fn tell_a_person(ask: Ask<'_>, root: MessageId, id: MessageId, mentions: &[MemberName]) -> Option<Escalated> {
    if ask.team.room().is_ended(root) {
        return None;
    }
    let text = format!(
        "{} of one another began with {root}, and {id} by {} goes on to {}: from here on nobody owes an answer in it\n",
        counted(u64::from(CHAIN_MAX), "mention"),
        ask.by,
        list(mentions)
    );
    let (id, member) = (ask.team.escalations().next_id(), Some(ask.by.clone()));
    Some(Escalated { id, member, ..Escalated::new(Cause::MentionChain, root.to_string(), text) })
}

/// Whom a message mentions, but for its author: everybody who takes part for `all`.
fn mentions(ask: Ask<'_>, command: &Say, unmet: &mut Vec<Violation>) -> Vec<MemberName> {
    let members = &ask.charter.members;
    let mut found = Vec::new();
    let mut seen = BTreeSet::new();
    let mut unknown = 0;
    let given = command.to.iter().map(|name| name.strip_prefix('@').unwrap_or(name));
    for name in given.chain(mentioned(&command.text)).filter(|name| seen.insert(*name)) {
        if name == ALL {
            let take_part = members.iter().filter(|(_, member)| member.kind != MemberKind::Referee);
            found.extend(take_part.map(|(name, _)| name.clone()));
        } else if let Some((known, _)) = members.get_key_value(name) {
            found.push(known.clone());
        } else if unknown < UNKNOWN_TOLD_MAX {
            unknown += 1;
            unmet.push(nobody(ask, name));
        }
    }
    let mut once = BTreeSet::new();
    found.retain(|member| member != ask.by && once.insert(member.clone()));
    found
}

/// Why a name is no member's: it never was, or it left.
fn nobody(ask: Ask<'_>, name: &str) -> Violation {
    let members: Vec<MemberName> = ask.charter.members.keys().cloned().collect();
    let revision = ask.team.adopted().map_or(0, |adopted| adopted.revision);
    let was = |revision: u32| {
        let before = ask.team.revision(revision);
        before.is_some_and(|before| before.charter.members.contains_key(name))
    };
    match (1..revision).rev().find(|revision| was(*revision)) {
        Some(last) => Violation::MemberLeft { member: name.to_owned(), revision: last + 1, members },
        None => {
            let lower = name.to_lowercase();
            let known = ask.charter.members.keys().map(MemberName::as_str).chain([ALL]);
            let nearest = nearest(&lower, known).unwrap_or_default().to_owned();
            Violation::UnknownMember { member: shown(name, 64), nearest, members }
        }
    }
}

/// Refuses what nobody knows: a message may be about anything that has a name here.
fn check_about(ask: Ask<'_>, about: &str, unmet: &mut Vec<Violation>) {
    let review = ask.review();
    let phase = || about.parse().is_ok_and(|phase| review.phase_state(&phase).is_some());
    let message = || about.parse().is_ok_and(|id| ask.team.room().message(id).is_some());
    let escalation =
        || about.parse::<EscalationId>().is_ok_and(|id| ask.team.escalations().get(id).is_some());
    if review.locate(about).is_none() && !phase() && !message() && !escalation() {
        let known = review.proposals().map(|proposal| proposal.name.as_str());
        let known = known.chain(review.circles().map(|circle| circle.name.as_str()));
        unmet.push(ask.unknown(about, known.chain(review.current_phase().map(PhaseName::as_str))));
    }
}
