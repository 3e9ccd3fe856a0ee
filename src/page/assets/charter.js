// The charter: who reviews whom, what the rules denied so far, and how it changed.

import { el, waiting } from "./dom.js";
import { columns } from "./graph.js";
import { counted, listed, who } from "./words.js";

export function charter(state) {
  const { charter, rules } = state;
  if (!charter) return [el("h1", {}, "Charter"), waiting()];
  return [
    el("div", { class: "head" }, el("h1", {}, "Charter"),
      el("p", { class: "meta" }, `revision ${charter.revision} · `, el("code", {}, charter.digest.slice(0, 12)))),
    el("section", { "aria-labelledby": "graph", "data-key": "graph" },
      el("h2", { id: "graph" }, "Who reviews whom"),
      (charter.phases ?? []).map((phase) => phaseOf(phase, state))),
    rulesOf(rules ?? [], state),
    revisions(charter, state),
    el("section", { "aria-labelledby": "text", "data-key": "text" },
      el("h2", { id: "text" }, "Its text"),
      el("details", {}, el("summary", { "data-row": true }, "charter.toml"), el("pre", { tabindex: "0" }, charter.text))),
  ];
}

function phaseOf(phase, state) {
  const lenses = new Map();
  for (const { reviewer, of, lens } of phase.reviews) {
    const pair = `${reviewer}\n${of}`;
    lenses.set(pair, [...(lenses.get(pair) ?? []), lens]);
  }
  const edges = [...lenses].map(([pair, of]) => ({ from: pair.split("\n")[0], to: pair.split("\n")[1], text: of.join(", ") }));
  const column = (names) => [...new Set(names)].map((name) => ({ key: name, text: name }));
  const producers = [...phase.deliverables.map((one) => one.producer), ...phase.reviews.map((edge) => edge.of)];
  return el("article", { "data-key": phase.name },
    el("h3", {}, phase.name),
    el("p", { class: "meta" }, phase.deliverables.length === 0 ? "It owes no deliverable." : ["It owes ", listed(phase.deliverables.map((one) => `${one.name} (${one.producer})`)), "."]),
    edges.length > 0 && columns({
      left: column(edges.map((edge) => edge.from)), right: column(producers), edges, members: state.members,
      label: `${phase.name}: ${edges.map((edge) => `${edge.from} reviews ${edge.to} for ${edge.text}`).join("; ")}`,
    }),
    el("ul", { class: "plain-list" }, edges.map((edge) =>
      el("li", {}, who(edge.from, state), " reviews ", who(edge.to, state), " ", el("span", { class: "lens" }, edge.text)))));
}

function rulesOf(rules, state) {
  const denied = rules.reduce((sum, rule) => sum + rule.denied, 0);
  return el("section", { "aria-labelledby": "rules", "data-key": "rules" },
    el("h2", { id: "rules" }, "Rules"),
    el("p", { class: "meta" }, `${counted(rules.length, "rule")}; they denied ${counted(denied, "command")} since the server started.`),
    el("ul", { class: "rules" }, rules.map((rule) => el("li", { "data-key": rule.id },
      el("details", {}, el("summary", { "data-row": true },
        el("code", {}, rule.id), " ", el("span", { class: rule.mode === "enforce" ? "meta" : "bad" }, rule.mode), rule.own && el("span", { class: "meta" }, " own"),
        rule.denied > 0 && el("b", {}, ` denied ${counted(rule.denied, "time")}`), rule.called_out > 0 && el("b", {}, ` called out ${counted(rule.called_out, "time")}`),
        el("span", { class: "title" }, rule.title)),
        el("p", { class: "meta" }, rule.incident),
        el("p", { class: "meta" }, `When it denies, ${rule.owes} owes: `, el("code", {}, rule.remedy)))))));
}

function revisions(charter, state) {
  const current = state.revision ?? charter;
  const numbers = Array.from({ length: charter.revision }, (_, at) => charter.revision - at);
  return el("section", { "aria-labelledby": "revisions", "data-key": "revisions" },
    el("h2", { id: "revisions" }, "Revisions"),
    el("p", { class: "buttons" }, numbers.map((number) => el("button", {
      type: "button", "data-do": "revision", "data-number": String(number), "data-key": `r${number}`, "data-row": true,
      "aria-pressed": number === current.revision ? "true" : "false",
    }, `Revision ${number}`))),
    el("h3", {}, `What revision ${current.revision} changed`),
    current.diff.length === 0
      ? el("p", { class: "meta" }, current.revision === 1 ? "It is the first." : "Nothing.")
      : el("ul", {}, current.diff.map((line) => el("li", {}, line))));
}
