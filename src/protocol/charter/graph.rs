//! The review graph of a charter, for people: as text, and as a Mermaid flowchart.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Write};

use super::super::name::MemberName;
use super::{Charter, ConfirmKind, MemberKind, Phase};

/// Who reviews whom, phase by phase. Displayed, it is the text form; the same charter always gives
/// the same text.
pub struct Graph<'a> {
    charter: &'a Charter,
}

/// Lenses by producer and reviewer: the edges of a phase, joined where they join the same two.
type Pairs<'a> = BTreeMap<(&'a MemberName, &'a MemberName), Vec<&'a str>>;

impl<'a> Graph<'a> {
    /// The graph of that charter.
    pub fn of(charter: &'a Charter) -> Self {
        Self { charter }
    }

    /// Distinct pairs of a reviewer and a producer, over all phases and whatever the lens.
    pub fn edges(&self) -> usize {
        let edges = self.charter.phases.iter().flat_map(|phase| &phase.reviews);
        edges.map(|edge| (&edge.reviewer, &edge.of)).collect::<BTreeSet<_>>().len()
    }

    /// Members who may review and produce: agents and people, but not the referee.
    pub fn able(&self) -> usize {
        self.charter.members.values().filter(|member| member.kind != MemberKind::Referee).count()
    }

    /// The pairs that [`Graph::able`] could form, as nobody reviews their own work: n·(n−1).
    pub fn possible(&self) -> usize {
        self.able() * self.able().saturating_sub(1)
    }

    /// The graph as a Mermaid flowchart, a box a phase. Labels are escaped, whatever they hold.
    pub fn mermaid(&self) -> String {
        let mut out = String::from("flowchart LR\n");
        self.write_mermaid(&mut out).expect("a String takes every write");
        out
    }

    fn write_mermaid(&self, out: &mut String) -> fmt::Result {
        for (phase_index, phase) in self.charter.phases.iter().enumerate() {
            // Ids are numbers with letters before them: names such as `end` are Mermaid's own words.
            let present: BTreeSet<&MemberName> = phase
                .reviews
                .iter()
                .flat_map(|edge| [&edge.reviewer, &edge.of])
                .chain(phase.deliverables.iter().map(|deliverable| &deliverable.producer))
                .collect();
            let ids: BTreeMap<&MemberName, String> = present
                .iter()
                .zip(0..)
                .map(|(name, index)| (*name, format!("p{phase_index}m{index}")))
                .collect();
            let title = escaped(&format!("{} ({})", phase.name, confirmed(phase)));
            writeln!(out, "  subgraph p{phase_index}[\"{title}\"]")?;
            for (name, id) in &ids {
                let about = self.charter.members.get(*name).map_or("", |member| member.about.as_str());
                let label = if about.is_empty() { name.to_string() } else { format!("{name}: {about}") };
                writeln!(out, "    {id}[\"{}\"]", escaped(&label))?;
            }
            for (index, deliverable) in phase.deliverables.iter().enumerate() {
                let (id, label) = (format!("p{phase_index}d{index}"), escaped(deliverable.name.as_str()));
                writeln!(out, "    {id}([\"{label}\"])")?;
                writeln!(out, "    {} -. produces .-> {id}", ids[&deliverable.producer])?;
            }
            for ((of, reviewer), lenses) in pairs(phase) {
                let lenses = escaped(&lenses.join(", "));
                writeln!(out, "    {} -->|\"{lenses}\"| {}", ids[reviewer], ids[of])?;
            }
            out.write_str("  end\n")?;
        }
        Ok(())
    }
}

impl fmt::Display for Graph<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for phase in &self.charter.phases {
            writeln!(f, "phase {}, confirmed {}", phase.name, confirmed(phase))?;
            for deliverable in &phase.deliverables {
                write!(f, "  {} is owed by {}", deliverable.name, deliverable.producer)?;
                match &deliverable.target {
                    Some(target) => writeln!(f, ", for {target}")?,
                    None => writeln!(f)?,
                }
            }
            for ((of, reviewer), lenses) in pairs(phase) {
                writeln!(f, "  {reviewer} reviews {of}: {}", lenses.join(", "))?;
            }
            writeln!(f)?;
        }
        writeln!(f, "{} review edges of {} possible", self.edges(), self.possible())?;
        writeln!(
            f,
            "(pairs of a reviewer and a producer, whatever the phase and lens, of the pairs that {} agents and \
             people can form)",
            self.able()
        )
    }
}

fn pairs(phase: &Phase) -> Pairs<'_> {
    let mut pairs = Pairs::new();
    for edge in &phase.reviews {
        pairs.entry((&edge.of, &edge.reviewer)).or_default().push(edge.lens.as_str());
    }
    pairs
}

fn confirmed(phase: &Phase) -> &'static str {
    match phase.confirm {
        ConfirmKind::Together => "together",
        ConfirmKind::Each => "each by itself",
    }
}

/// A label as Mermaid shows it: what is no letter, digit or plain punctuation stands as its code,
/// so that no text can end its label or become markup.
fn escaped(label: &str) -> String {
    let mut out = String::with_capacity(label.len());
    for c in label.chars() {
        if c.is_alphanumeric() || matches!(c, ' ' | '.' | ',' | ':' | '-' | '_' | '(' | ')') {
            out.push(c);
        } else {
            out.push_str(&format!("#{};", u32::from(c)));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::{STARTER, parse};
    use super::*;

    #[test]
    fn a_pair_counts_once_whatever_its_phases_and_lenses() {
        let more = "
            [[phases.reviews]]
            reviewer = 'sec'
            of = 'app'
            lens = 'concurrency'
            [[phases]]
            name = 'second'
            confirm = 'each'
            reviews = [{ reviewer = 'sec', of = 'app', lens = 'security' }]
            [members.chair]
            kind = 'referee'";
        let charter = parse("c", &format!("{STARTER}{more}")).unwrap_or_else(|found| panic!("{found}"));
        let graph = Graph::of(&charter);
        // app, sec, arch and dana: 4 · 3.
        assert_eq!((graph.edges(), graph.possible()), (2, 12));
        let text = graph.to_string();
        assert!(text.contains("  sec reviews app: security, concurrency\n"), "{text}");
        assert!(text.contains("\n2 review edges of 12 possible\n"), "{text}");
    }

    #[test]
    fn no_label_becomes_markup() {
        assert_eq!(escaped("a\"]; click #x <b>"), "a#34;#93;#59; click #35;x #60;b#62;");
        let hostile = STARTER.replace("Writes the code", "x\\\"] --> <script>`end`");
        let charter = parse("c", &hostile).unwrap_or_else(|found| panic!("{found}"));
        let mermaid = Graph::of(&charter).mermaid();
        assert!(!mermaid.contains("<script>") && !mermaid.contains("x\"]"), "{mermaid}");
    }
}
