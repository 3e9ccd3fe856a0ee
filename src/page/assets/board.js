// Proposals: a board by state, a card each, a cell for each required reviewer.

import { el } from "./dom.js";
import { badge } from "./now.js";
import { PROPOSAL_STATES, ago, proposalOf, toProposal, who } from "./words.js";

export function board(state) {
  const wanted = state.filter.toLowerCase();
  const matches = (one) => `${one.name} ${one.producer} ${one.summary ?? ""} ${one.circle ?? ""}`.toLowerCase().includes(wanted);
  const shown = state.status.proposals.filter(matches);
  const owed = new Map();
  for (const one of state.status.obligations) {
    if (one.kind === "review") owed.set(`${one.member} ${proposalOf(one.subject)}`, one.since);
  }
  const columns = PROPOSAL_STATES.map(([word, name]) => [word, name, shown.filter((one) => one.state === word)]);
  // Those that a charter rarely meets are shown where there is something in them.
  const columnsShown = columns.filter(([word, , cards]) => cards.length > 0 || !["closed", "dropped"].includes(word));
  return [
    el("div", { class: "head" },
      el("h1", {}, "Proposals"),
      el("label", { class: "filter" }, "Filter ",
        el("input", { type: "search", name: "filter", id: "filter", "data-input": "filter", autocomplete: "off", value: state.filter }))),
    el("div", { class: "board" }, columnsShown.map(([word, name, cards]) =>
      el("section", { "aria-labelledby": `state-${word}`, "data-key": word, class: cards.length ? `state ${word}` : `state ${word} empty` },
        el("h2", { id: `state-${word}` }, name, badge(cards.length)),
        cards.length > 0 && el("ul", { class: "cards" }, cards.map((one) => card(one, owed, state)))))),
  ];
}

function card(one, owed, state) {
  return el("li", { "data-key": one.name },
    el("a", { class: "card", href: toProposal(one.name), "data-row": true },
      el("span", { class: "name" }, one.name, one.version > 0 && el("span", { class: "version" }, `@${one.version}`)),
      el("span", { class: "by" }, who(one.producer, state)),
      one.summary && el("span", { class: "summary" }, one.summary.split("\n")[0]),
      el("span", { class: "cells" }, one.reviewers.map((reviewer) => cell(reviewer, one, owed)))));
}

/** How a reviewer stands to the current version, in a sign and a word. */
export function stands(reviewer, version) {
  if (reviewer.overruled) return ["overruled", "⊘", "overruled"];
  if (reviewer.voted_on === version) {
    return reviewer.vote === "approve" ? ["approved", "✓", "approved"] : ["objected", "✗", "objected"];
  }
  if (!reviewer.eligible) return ["stale", "∅", "own work"];
  if (reviewer.read) return ["read", "◐", "read"];
  if (reviewer.voted_on) return ["stale", "↺", `stale, ${reviewer.vote === "approve" ? "approved" : "objected"} @${reviewer.voted_on}`];
  return ["unread", "○", "not read"];
}

function cell(reviewer, proposal, owed) {
  const [kind, sign, word] = stands(reviewer, proposal.version);
  const since = owed.get(`${reviewer.member} ${proposal.name}`);
  return el("span", { class: `cell ${kind}` },
    el("span", { "aria-hidden": "true" }, sign), " ", `${reviewer.member} `, el("span", { class: "lens" }, reviewer.lens), " ",
    el("span", { class: "word" }, word), since && [" owed ", ago(since)]);
}
