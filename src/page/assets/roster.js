// The roster: every member, also those who are away, and whether a wake reaches them now.

import { el } from "./dom.js";
import { ago, counted, subject, who } from "./words.js";

const PRESENCE = {
  listening: ["●", "listening: a wake reaches it now"],
  thinking: ["◐", "thinking: woken, and not back yet"],
  "re-arming": ["◌", "re-arming: between two listens"],
  deaf: ["○", "deaf: it spoke, and does not listen"],
  offline: ["○", "offline"],
  "not-joined": ["·", "never seen"],
};

export function roster(state) {
  const entries = state.roster ?? [];
  const presence = new Map(entries.map((entry) => [entry.name, entry]));
  const about = new Map(state.members.map((member) => [member.name, member]));
  const names = [...new Set([...about.keys(), ...presence.keys()])].sort();
  const hears = entries.filter((entry) => entry.presence === "listening").length;
  return [
    el("div", { class: "head" }, el("h1", {}, "Roster"),
      el("p", { class: "meta" }, `${counted(names.length, "member")}, ${hears} of them can hear now`)),
    el("ul", { class: "roster" }, names.map((name) => member(name, about.get(name), presence.get(name), state))),
  ];
}

function member(name, about, entry, state) {
  const owed = state.status.obligations.filter((one) => one.member === name);
  const [sign, says] = PRESENCE[entry?.presence] ?? ["·", entry?.presence ?? "not known"];
  return el("li", { "data-key": name, "data-row": true, tabindex: "0", class: name === state.me ? "mine" : null },
    el("span", {}, who(name, state), " ", el("span", { class: "meta" }, about?.kind ?? "left")),
    el("span", { class: `presence ${entry?.presence ?? ""}` }, el("span", { "aria-hidden": "true" }, sign), " ", says, entry?.since && [", for ", ago(entry.since)]),
    el("span", { class: "meta about" }, about?.about ?? ""),
    el("span", { class: "owes" }, owed.length === 0 ? el("span", { class: "meta" }, "owes nothing") : owed.map((one) =>
      el("span", { class: "owe" }, el("b", {}, one.kind), " ", subject(one.subject, state), " ", el("span", { class: "meta" }, "for ", ago(one.since)), " "))));
}
