//! What a new charter changes, in lines that a person can judge before adopting it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{Debug, Display};

use super::super::name::shown;
use super::{Channel, Charter, Deliverable, Limits, Member, Phase, Publish, Repository, RuleSettings};

/// The longest value in a line, in characters.
const VALUE_CHARS_MAX: usize = 120;

/// Every difference, a line each: `member arch: removed`, `limit rounds: 5 → 6`. Nothing where the
/// charters are equal, and at least one line where they aren't.
///
/// In the order of the grammar; names in alphabetical order, phases in that of the new charter.
pub fn diff(old: &Charter, new: &Charter) -> Vec<String> {
    // Taken apart by name, so that a new field can't be forgotten here.
    let Charter { team, repository, publish, limits, members, channels, rules, required_checks, phases } =
        new;
    let mut lines = Lines::default();
    lines.value("team", &old.team, team);
    lines.repository(old.repository.as_ref(), repository.as_ref());
    lines.publish(&old.publish, publish);
    lines.limits(&old.limits, limits);
    lines.by_name("member", &old.members, members, |member| word(&member.kind), Lines::member);
    let by = |channel: &Channel| if channel.webhook.is_some() { "a webhook" } else { "a command" };
    lines.by_name("channel", &old.channels, channels, |channel| by(channel).to_owned(), Lines::channel);
    lines.rules(&old.rules, rules);
    lines.set("required check", &old.required_checks, required_checks);
    lines.phases(&old.phases, phases);
    if lines.0.is_empty() && old != new {
        // What is left: the order within a list, or a rule that is enforced said to be so.
        lines.0.push("order or spelling of entries: changed".to_owned());
    }
    lines.0
}

#[derive(Default)]
struct Lines(Vec<String>);

impl Lines {
    fn value(&mut self, what: &str, old: &(impl Display + PartialEq), new: &(impl Display + PartialEq)) {
        let (old, new) = (old.to_string(), new.to_string());
        if old != new {
            self.0.push(format!(
                "{what}: {} → {}",
                shown(&old, VALUE_CHARS_MAX),
                shown(&new, VALUE_CHARS_MAX)
            ));
        }
    }

    fn optional(&mut self, what: &str, old: Option<&String>, new: Option<&String>) {
        let none = "none".to_owned();
        match (old, new) {
            // A text that happens to be "none" isn't the absence of one.
            (None, Some(new)) => self.0.push(format!("{what}: added, {}", shown(new, VALUE_CHARS_MAX))),
            (Some(old), None) => self.0.push(format!("{what}: removed, was {}", shown(old, VALUE_CHARS_MAX))),
            (old, new) => self.value(what, old.unwrap_or(&none), new.unwrap_or(&none)),
        }
    }

    fn word(&mut self, what: &str, old: &impl Debug, new: &impl Debug) {
        self.value(what, &word(old), &word(new));
    }

    /// Removals, then additions, each in alphabetical order.
    fn set<T: Ord + Display>(&mut self, what: &str, old: &[T], new: &[T]) {
        let (old, new): (BTreeSet<&T>, BTreeSet<&T>) = (old.iter().collect(), new.iter().collect());
        for gone in old.difference(&new) {
            self.0.push(format!("{what} {}: removed", shown(&gone.to_string(), VALUE_CHARS_MAX)));
        }
        for added in new.difference(&old) {
            self.0.push(format!("{what} {}: added", shown(&added.to_string(), VALUE_CHARS_MAX)));
        }
    }

    fn by_name<K: Ord + Display, V: PartialEq>(
        &mut self,
        what: &str,
        old: &BTreeMap<K, V>,
        new: &BTreeMap<K, V>,
        described: impl Fn(&V) -> String,
        changed: impl Fn(&mut Self, &str, &V, &V),
    ) {
        for name in old.keys().chain(new.keys()).collect::<BTreeSet<_>>() {
            let label = format!("{what} {name}");
            match (old.get(name), new.get(name)) {
                (Some(old), Some(new)) => changed(self, &label, old, new),
                (Some(_), None) => self.0.push(format!("{label}: removed")),
                (None, Some(new)) => self.0.push(format!("{label}: added, {}", described(new))),
                (None, None) => {}
            }
        }
    }

    fn repository(&mut self, old: Option<&Repository>, new: Option<&Repository>) {
        match (old, new) {
            (Some(old), Some(new)) => {
                let Repository { path, url, protected } = new;
                self.value("repository path", &old.path, path);
                self.optional("repository url", old.url.as_ref(), url.as_ref());
                self.set("protected", &old.protected, protected);
            }
            (None, Some(new)) => {
                self.0.push(format!("repository {}: added", shown(&new.path, VALUE_CHARS_MAX)));
            }
            (Some(old), None) => {
                self.0.push(format!("repository {}: removed", shown(&old.path, VALUE_CHARS_MAX)));
            }
            (None, None) => {}
        }
    }

    fn publish(&mut self, old: &Publish, new: &Publish) {
        let Publish { target, how, check, check_timeout } = new;
        self.value("publish target", &old.target, target);
        self.word("publish how", &old.how, how);
        self.optional("publish check", old.check.as_ref(), check.as_ref());
        self.value("publish check_timeout", &old.check_timeout, check_timeout);
    }

    fn limits(&mut self, old: &Limits, new: &Limits) {
        let Limits {
            withdraw_cooldown,
            withdraw_flips,
            rounds,
            vote_changes,
            notes,
            stall_after,
            answer_within,
            deliver_within,
            text_bytes,
            escalation_reminders,
        } = new;
        self.value("limit withdraw_cooldown", &old.withdraw_cooldown, withdraw_cooldown);
        self.value("limit withdraw_flips", &old.withdraw_flips, withdraw_flips);
        self.value("limit rounds", &old.rounds, rounds);
        self.value("limit vote_changes", &old.vote_changes, vote_changes);
        self.value("limit notes", &old.notes, notes);
        self.value("limit stall_after", &old.stall_after, stall_after);
        self.value("limit answer_within", &old.answer_within, answer_within);
        self.value("limit deliver_within", &old.deliver_within, deliver_within);
        self.value("limit text_bytes", &old.text_bytes, text_bytes);
        self.value("limit escalation_reminders", &old.escalation_reminders, escalation_reminders);
    }

    fn member(&mut self, label: &str, old: &Member, new: &Member) {
        let Member { kind, about, emails, owns, colour, workdir, watch, notify } = new;
        self.word(&format!("{label} kind"), &old.kind, kind);
        if old.about != *about {
            let quoted = [&old.about, about].map(|about| format!("\"{about}\""));
            self.value(&format!("{label} about"), &quoted[0], &quoted[1]);
        }
        self.set(&format!("{label} email"), &old.emails, emails);
        self.set(&format!("{label} owns"), &old.owns, owns);
        self.optional(&format!("{label} colour"), old.colour.as_ref(), colour.as_ref());
        self.optional(&format!("{label} workdir"), old.workdir.as_ref(), workdir.as_ref());
        self.value(&format!("{label} watch"), &old.watch, watch);
        self.set(&format!("{label} notify"), &old.notify, notify);
    }

    fn channel(&mut self, label: &str, old: &Channel, new: &Channel) {
        let Channel { webhook, command, secret_file, allow_private } = new;
        // A webhook's address is often itself the secret, so it isn't shown.
        if old.webhook != *webhook {
            self.0.push(format!("{label} webhook: changed"));
        }
        self.optional(&format!("{label} command"), old.command.as_ref(), command.as_ref());
        self.optional(&format!("{label} secret_file"), old.secret_file.as_ref(), secret_file.as_ref());
        self.value(&format!("{label} allow_private"), &old.allow_private, allow_private);
    }

    fn rules(&mut self, old: &RuleSettings, new: &RuleSettings) {
        let RuleSettings { folder, modes } = new;
        self.optional("rules folder", old.folder.as_ref(), folder.as_ref());
        for id in old.modes.keys().chain(modes.keys()).collect::<BTreeSet<_>>() {
            // Where nothing is said, a rule is enforced: to say so changes nothing that is judged.
            let mode = |settings: &RuleSettings| settings.modes.get(id).copied().unwrap_or_default();
            self.word(&format!("rule {id}"), &mode(old), &mode(new));
        }
    }

    fn phases(&mut self, old: &[Phase], new: &[Phase]) {
        for gone in old.iter().filter(|phase| !new.iter().any(|other| other.name == phase.name)) {
            self.0.push(format!("phase {}: removed", gone.name));
        }
        let order = |phases: &[Phase], others: &[Phase]| {
            let both = phases.iter().filter(|phase| others.iter().any(|other| other.name == phase.name));
            both.map(|phase| phase.name.to_string()).collect::<Vec<_>>().join(", ")
        };
        self.value("phases", &order(old, new), &order(new, old));
        let nothing: (&[Deliverable], &[super::ReviewEdge]) = (&[], &[]);
        for phase in new {
            let before = old.iter().find(|other| other.name == phase.name);
            match before {
                Some(before) => {
                    self.word(&format!("phase {} confirm", phase.name), &before.confirm, &phase.confirm);
                }
                None => {
                    self.0.push(format!("phase {}: added, confirmed {}", phase.name, word(&phase.confirm)));
                }
            }
            let (deliverables, reviews) =
                before.map_or(nothing, |before| (&before.deliverables, &before.reviews));
            self.deliverables(deliverables, &phase.deliverables);
            self.reviews(phase, reviews);
        }
    }

    fn deliverables(&mut self, old: &[Deliverable], new: &[Deliverable]) {
        let by_name = |all: &[Deliverable]| -> BTreeMap<_, _> {
            all.iter().map(|deliverable| (deliverable.name.clone(), deliverable.clone())).collect()
        };
        let described = |deliverable: &Deliverable| format!("producer {}", deliverable.producer);
        self.by_name("deliverable", &by_name(old), &by_name(new), described, |lines, label, old, new| {
            let Deliverable { name: _, producer, target } = new;
            lines.value(&format!("{label} producer"), &old.producer, producer);
            lines.optional(&format!("{label} target"), old.target.as_ref(), target.as_ref());
        });
    }

    fn reviews(&mut self, phase: &Phase, old: &[super::ReviewEdge]) {
        let edges = |all: &[super::ReviewEdge]| -> Vec<String> {
            let line = |edge: &super::ReviewEdge| {
                format!("{} → {} ({}) in {}", edge.reviewer, edge.of, edge.lens, phase.name)
            };
            all.iter().map(line).collect()
        };
        self.set("edge", &edges(old), &edges(&phase.reviews));
    }
}

/// A variant's name as the charter writes it: `FastForward` is `fast-forward`.
fn word(variant: &impl Debug) -> String {
    let mut out = String::new();
    for c in format!("{variant:?}").chars() {
        if c.is_ascii_uppercase() && !out.is_empty() {
            out.push('-');
        }
        out.push(c.to_ascii_lowercase());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::{STARTER, parse};
    use super::*;

    fn charter(text: &str) -> Charter {
        parse("charter.toml", text).unwrap_or_else(|found| panic!("{found}"))
    }

    fn changed(edits: &[(&str, &str)]) -> Vec<String> {
        let mut text = STARTER.to_owned();
        for (from, to) in edits {
            assert!(text.contains(from), "{from}");
            text = text.replacen(from, to, 1);
        }
        diff(&charter(STARTER), &charter(&text))
    }

    #[test]
    fn equal_charters_differ_in_nothing() {
        assert_eq!(changed(&[]), Vec::<String>::new());
        assert_eq!(changed(&[("[team]", "# a comment\n[team]")]), Vec::<String>::new());
    }

    #[test]
    fn every_difference_is_one_readable_line() {
        let lines = changed(&[
            ("rounds = 5", "rounds = 6"),
            ("[members.arch]\nabout = \"Keeps the whole simple\"", "[members.art]"),
            ("about = \"Writes the code\"", "owns = ['src/**']\ncolour = '#e07b26'"),
            ("reviewer = \"arch\"", "reviewer = \"art\""),
            ("name = \"parser\"", "name = \"printer\""),
            ("confirm = \"together\"", "confirm = \"each\""),
            ("[team]", "rules = { 'confirm/unchecked-consensus' = 'off' }\n[team]"),
        ]);
        assert_eq!(
            lines,
            [
                "limit rounds: 5 → 6",
                "member app about: \"Writes the code\" → \"\"",
                "member app owns src/**: added",
                "member app colour: added, #e07b26",
                "member arch: removed",
                "member art: added, agent",
                "rule confirm/unchecked-consensus: enforce → off",
                "phase implement confirm: together → each",
                "deliverable parser: removed",
                "deliverable printer: added, producer app",
                "edge arch → app (design) in implement: removed",
                "edge art → app (design) in implement: added",
            ]
        );
    }

    #[test]
    fn a_webhook_is_not_shown_and_a_phase_comes_with_all_that_is_in_it() {
        let channel = "[channels.ops]\nwebhook = 'https://hooks.example.org/s3cret'\n[team]";
        let other = channel.replace("s3cret", "other");
        let phase = "[[phases]]\nname = 'plan'\nconfirm = 'each'\nreviews = \
                     [{ reviewer = 'sec', of = 'arch', lens = 'plan' }]\n\n[[phases]]";
        assert_eq!(changed(&[("[team]", channel)]), ["channel ops: added, a webhook"]);
        let (old, new) =
            (charter(&STARTER.replace("[team]", channel)), charter(&STARTER.replace("[team]", &other)));
        assert_eq!(diff(&old, &new), ["channel ops webhook: changed"]);
        assert_eq!(
            changed(&[("[[phases]]", phase)]),
            ["phase plan: added, confirmed each", "edge sec → arch (plan) in plan: added"]
        );
    }

    #[test]
    fn a_mere_order_is_told_too() {
        let old = charter(STARTER);
        let mut new = old.clone();
        new.phases[0].reviews.reverse();
        assert_eq!(diff(&old, &new), ["order or spelling of entries: changed"]);
    }
}
