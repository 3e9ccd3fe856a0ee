//! Phases: whether each can be finished by the people who are in it.

use std::collections::{BTreeMap, BTreeSet};

use super::super::super::name::{MemberName, ProposalName, skeleton};
use super::super::{Charter, ConfirmKind, MemberKind, Phase};
use super::{Findings, Place};

/// Why no proposal can bear that name; nothing where one can.
///
/// `staging` is where members bring commits, beside the proposals' own refs; git takes no ref with a
/// part that ends in `.lock`; the server and the operator act under their names in the log.
pub fn reserved_proposal(name: &ProposalName) -> Option<&'static str> {
    match name.as_str() {
        "staging" => Some("refs/countersign/staging/ is where members bring commits"),
        "server" | "operator" => Some("the log knows it as an actor"),
        other if other.ends_with(".lock") => Some("git takes no ref that ends in .lock"),
        _ => None,
    }
}

pub(super) fn check_phases(charter: &Charter, findings: &mut Findings) {
    if charter.phases.is_empty() {
        findings.refuse_with(
            Place::key("phases"),
            "the charter has no phases",
            "add at least one [[phases]]",
        );
    }
    for (index, phase) in charter.phases.iter().enumerate() {
        let place = Place::key("phases").item(index);
        check_edges(charter, phase, &place, findings);
        check_deliverables(charter, phase, &place, findings);
    }
}

/// Who owns every path, where the producer owns none: whatever it proposed would be outside of its own.
fn shut_out<'a>(charter: &'a Charter, producer: &MemberName) -> Option<&'a MemberName> {
    if charter.members.get(producer).is_none_or(|member| !member.owns.is_empty()) {
        return None;
    }
    let others = charter.members.iter().filter(|(name, _)| *name != producer);
    let mut all = others.filter(|(_, member)| member.owns.iter().any(|pattern| pattern == "**"));
    all.next().map(|(name, _)| name)
}

fn check_deliverables(charter: &Charter, phase: &Phase, place: &Place, findings: &mut Findings) {
    if phase.deliverables.is_empty() {
        match phase.confirm {
            ConfirmKind::Together => findings.refuse_with(
                place.clone(),
                format!("phase {} confirms together, but owes no deliverable", phase.name),
                "add [[phases.deliverables]], or let each proposal finish by itself: confirm = \"each\"",
            ),
            ConfirmKind::Each if phase.reviews.is_empty() => findings.refuse_with(
                place.clone(),
                format!(
                    "in phase {} nobody may propose: it has neither deliverable nor review edge",
                    phase.name
                ),
                "add [[phases.reviews]]: whoever is reviewed may propose",
            ),
            ConfirmKind::Each => {}
        }
    }
    // An edge from oneself is refused as such, and reviews nothing.
    let reviewed: BTreeSet<&MemberName> =
        phase.reviews.iter().filter(|edge| edge.reviewer != edge.of).map(|edge| &edge.of).collect();
    // An edge to somebody unknown is told already, and was perhaps meant for this producer.
    let unknown = phase.reviews.iter().any(|edge| !charter.members.contains_key(&edge.of));
    for (index, deliverable) in phase.deliverables.iter().enumerate() {
        let place = place.clone().then("deliverables").item(index);
        let producer = &deliverable.producer;
        if !takes_part(charter, producer, "produces", place.clone().then("producer"), findings) {
            continue;
        }
        if let Some(owner) = shut_out(charter, producer) {
            findings.refuse_with(
                place.clone().then("producer"),
                format!("{owner} owns every path and {producer} none, so {producer} could touch nothing"),
                format!("give {producer} `owns`, or {owner} a narrower one"),
            );
        }
        if !reviewed.contains(producer) && !unknown {
            let what = format!(
                "nobody reviews {producer} in phase {}, so {} could never be approved",
                phase.name, deliverable.name
            );
            let help = format!("add [[phases.reviews]] with of = \"{producer}\" to this phase");
            findings.refuse_with(place, what, help);
        }
    }
}

fn check_edges(charter: &Charter, phase: &Phase, place: &Place, findings: &mut Findings) {
    let mut seen = BTreeSet::new();
    for (index, edge) in phase.reviews.iter().enumerate() {
        let place = place.clone().then("reviews").item(index);
        takes_part(charter, &edge.reviewer, "reviews", place.clone().then("reviewer"), findings);
        takes_part(charter, &edge.of, "produces", place.clone().then("of"), findings);
        if edge.reviewer == edge.of {
            let what = format!("{} would review their own work", edge.reviewer);
            findings.refuse(place.then("of"), what);
        } else if !seen.insert(edge) {
            let what = format!("{} reviews {} through {} twice", edge.reviewer, edge.of, edge.lens);
            findings.refuse(place, what);
        }
    }
}

/// Whether that member is known and may do so: agents and persons may, the referee watches.
fn takes_part(
    charter: &Charter,
    name: &MemberName,
    does: &str,
    place: Place,
    findings: &mut Findings,
) -> bool {
    match charter.members.get(name).map(|member| member.kind) {
        Some(MemberKind::Agent | MemberKind::Human) => true,
        Some(MemberKind::Referee) => {
            findings.refuse(place, format!("{name} is the referee, who neither produces nor reviews"));
            false
        }
        None => {
            // Offered are only those who could: a correction that is refused in turn helps nobody.
            let able = charter.members.iter().filter(|(_, member)| member.kind != MemberKind::Referee);
            let kind = format!("member who {does}");
            findings.unknown(place, &kind, name.as_str(), able.map(|(name, _)| name.as_str()));
            false
        }
    }
}

/// Phases and proposals both name circles, so no two of them may share a name, or look alike.
pub(super) fn check_circle_names(charter: &Charter, findings: &mut Findings) {
    // What bears the name so far: "phase plan", "deliverable parser".
    let mut exact: BTreeMap<&str, &str> = BTreeMap::new();
    let mut alike: BTreeMap<String, &str> = BTreeMap::new();
    let mut named: Vec<(Place, &str, &str)> = Vec::new();
    for (index, phase) in charter.phases.iter().enumerate() {
        let place = Place::key("phases").item(index);
        named.push((place.clone().then("name"), "phase", phase.name.as_str()));
        for (index, deliverable) in phase.deliverables.iter().enumerate() {
            let place = place.clone().then("deliverables").item(index).then("name");
            if let Some(why) = reserved_proposal(&deliverable.name) {
                let what = format!("no deliverable can be called {}: {why}", deliverable.name);
                findings.refuse(place.clone(), what);
            }
            named.push((place, "deliverable", deliverable.name.as_str()));
        }
    }
    for (place, kind, name) in named {
        if let Some(other_kind) = exact.insert(name, kind) {
            let what = if other_kind == kind {
                format!("two {kind}s are called {name}")
            } else {
                format!("a phase and a deliverable are called {name}")
            };
            findings.refuse_with(place, what, "every circle has a name of its own");
        } else if let Some(other) = alike.insert(skeleton(name), name) {
            findings.refuse(place, format!("{other} and {name} look alike"));
        }
    }
}
