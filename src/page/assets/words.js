// What things are called, how old they are, and which colour a name has.

import { el } from "./dom.js";

/** What the server's clock is ahead of this one, in milliseconds. */
let ahead = 0;
export const setClock = (now) => { ahead = Date.parse(now) - Date.now(); };
export const now = () => Date.now() + ahead;

const UNITS = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];

/** 4 min; a time that has not come is 0 s old. */
export function age(since) {
  const seconds = Math.max(0, Math.round((now() - Date.parse(since)) / 1000));
  const [size, unit] = UNITS.find(([size]) => seconds >= size) ?? [1, "s"];
  return `${Math.floor(seconds / size)} ${unit}`;
}

/** An age that goes on by itself. */
export function ago(since, after = "") {
  return el("time", { datetime: since, title: since, "data-after": after }, `${age(since)}${after}`);
}

export function tick(root) {
  for (const time of root.querySelectorAll("time[datetime]")) {
    const said = `${age(time.dateTime)}${time.dataset.after ?? ""}`;
    if (time.textContent !== said) time.textContent = said;
  }
}

export const counted = (count, one, many = `${one}s`) => `${count} ${count === 1 ? one : many}`;
export const listed = (items) =>
  items.length < 2 ? items.join("") : `${items.slice(0, -1).join(", ")} and ${items.at(-1)}`;

/** A name's colour, the same whether its owner is there or not: the charter's, or one by its place in the charter. */
export function colour(name, members = []) {
  const given = members.find((member) => member.name === name)?.colour;
  if (given) return given;
  const at = members.findIndex((member) => member.name === name);
  // Each step of this angle is far from all before it. Who left the charter is grey.
  return at < 0 ? "hsl(0 0% 50%)" : `hsl(${Math.round(at * 137.5) % 360} 62% 48%)`;
}

/** A member's name with its colour beside it. */
export function who(name, state) {
  const me = name === state.me ? el("span", { class: "me" }, "you") : null;
  return el("span", { class: "who", colour: colour(name, state.members) }, name, me && " ", me);
}

export const PROPOSAL_STATES = [
  ["to-deliver", "To deliver"],
  ["under-review", "Under review"],
  ["objected", "Objected"],
  ["accepted", "Accepted"],
  ["complete", "Complete"],
  ["published", "Published"],
  ["withdrawn", "Withdrawn"],
  ["closed", "Closed"],
  ["dropped", "Dropped"],
];
export const stateName = (state) => PROPOSAL_STATES.find(([word]) => word === state)?.[1] ?? state;

/** The proposal that a subject is about: parser@2:41d0c9aa1e53 → parser. */
export const proposalOf = (subject) => subject.split("@")[0];

/** The hash of a proposal's own page. */
export const toProposal = (name) => `#/proposals/${encodeURIComponent(name)}`;

/** A subject, as a link where it is a proposal's. */
export function subject(text, state) {
  const name = proposalOf(text);
  const known = state.status?.proposals.some((proposal) => proposal.name === name);
  return known ? el("a", { href: toProposal(name) }, text) : text;
}
