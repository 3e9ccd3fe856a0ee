//! obligations: answers that members owe in the room. They belong to no circle, and hold none up.

use super::state::Room;
use crate::protocol::charter::Charter;
use crate::protocol::obligation::{Obligation, ObligationKind, deadline};

/// Every answer that is owed.
pub(in crate::protocol) fn obligations(room: &Room, charter: &Charter, owed: &mut Vec<Obligation>) {
    for (member, asked) in &room.asked {
        for (id, since) in asked {
            let claim = room.message(*id).is_some_and(|message| message.claim);
            let command = if claim {
                format!("countersign verdict {id} VERDICT TEXT")
            } else {
                format!("countersign say --reply {id} TEXT")
            };
            owed.push(Obligation {
                id: format!("answer:{id}"),
                member: member.clone(),
                kind: ObligationKind::Answer,
                subject: id.to_string(),
                since: *since,
                due: deadline(*since, charter.limits.answer_within),
                command,
            });
        }
    }
}
