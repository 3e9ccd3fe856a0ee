// The room: what was said, who checked it, and who will be woken by the next words.

import { el, ways } from "./dom.js";
import { told } from "./now.js";
import { ago, listed, subject, who } from "./words.js";

/** Entries that are kept at once, beside the older ones that were asked for. */
export const ENTRIES_MAX = 400;

/** Members that can be mentioned. */
const mentionable = (state) =>
  state.members.filter((member) => member.name !== state.me && member.kind !== "referee").map((member) => member.name);

/** Puts a mention into a text, or takes it out again. */
export function toggled(text, name) {
  const there = new RegExp(`(^|\\s)@${name}(?![a-z0-9_-])`);
  return there.test(text) ? text.replace(there, "").trimStart() : `${text}${text === "" || /\s$/.test(text) ? "" : " "}@${name} `;
}

export function room(state) {
  const wanted = state.search.toLowerCase();
  const entries = (state.entries ?? []).filter((entry) =>
    `${entry.id} ${entry.by ?? ""} ${entry.text} ${entry.about ?? ""}`.toLowerCase().includes(wanted));
  const phases = [...new Set(state.status.circles.map((circle) => circle.phase))];
  return [
    el("div", { class: "head" }, el("h1", {}, "Room"),
      el("form", { class: "row", "data-do": "minutes" },
        el("label", { for: "minutes" }, "Minutes of"),
        el("select", { id: "minutes", name: "name" }, phases.map((name) => el("option", { value: name }, name))),
        el("button", {}, "Download")),
      el("label", { class: "filter" }, "Search ", el("input", { type: "search", id: "search", "data-input": "search", autocomplete: "off", value: state.search }))),
    compose(state),
    el("section", { "aria-label": "Transcript", "data-key": "transcript" },
      state.earlier > 0 && el("button", { type: "button", "data-do": "earlier" }, `Show earlier ones (${state.earlier})`),
      entries.length === 0 && el("p", { class: "meta" }, wanted ? "Nothing of what is shown says that." : "Nothing was said yet."),
      el("ol", { class: "transcript" }, [...entries].reverse().map((entry) => line(entry, state)))),
  ];
}

/** Before the words are sent: whom they wake. After: whom they woke. */
function compose(state) {
  // As the server reads it, so that what is shown is what will be. Null where it can't be asked.
  const read = state.named ?? [];
  const named = read.includes("all") ? mentionable(state) : read.filter((name) => name !== state.me);
  const strange = named.filter((name) => !mentionable(state).includes(name));
  const presence = new Map((state.roster ?? []).map((entry) => [entry.name, entry.presence]));
  const hears = named.filter((name) => presence.get(name) === "listening");
  const away = named.filter((name) => !hears.includes(name)).map((name) => `${name} (${presence.get(name) ?? "not known"})`);
  return el("form", { class: "compose", "data-do": "say", "data-key": "compose" },
    el("label", { for: "say" }, "Say something"),
    el("textarea", { id: "say", name: "text", rows: "3", required: true, "data-input": "draft", value: state.draft, "aria-describedby": "wakes told-room" }),
    el("p", { class: "buttons", role: "group", "aria-label": "Mention" },
      [...mentionable(state), "all"].map((name) =>
        el("button", { type: "button", "data-do": "mention", "data-name": name, "data-key": name,
          "aria-pressed": read.includes(name) ? "true" : "false" }, `@${name}`))),
    el("p", { id: "wakes", class: "meta" }, state.named === null
      ? "Whom it will wake can't be said: the server can't be reached."
      : named.length === 0 ? "It will wake nobody."
      : strange.length > 0 ? `Nobody here is called ${listed(strange)}.` : [hears.length > 0 && `It will wake ${listed(hears)}. `, away.length > 0 && `It will be stored for ${listed(away)}.`]),
    state.reply && el("p", { class: "meta" }, `It answers ${state.reply}. `, el("button", { type: "button", "data-do": "reply", "data-id": "" }, "It doesn't")),
    el("div", { class: "buttons" }, el("label", { for: "about" }, "About"),
      el("select", { id: "about", name: "about" }, el("option", { value: "" }, "nothing in particular"),
        state.status.proposals.map((one) => el("option", { value: one.name }, one.name))),
      el("button", {}, "Say it")),
    told(state, "told-room"));
}

function line(entry, state) {
  const head = {
    message: () => el("span", { class: "meta" }, entry.reply && `answers ${entry.reply}`),
    claim: () => el("b", { class: "claim" }, "claims"),
    verdict: () => el("b", { class: `verdict ${entry.verdict}` }, `${entry.id} is ${entry.verdict}`),
    escalation: () => el("b", { class: "bad" }, `opened ${entry.id}: ${entry.cause}`),
    decision: () => el("b", {}, `${entry.id}: ${entry.decision ?? "closed by progress"}`),
    "call-out": () => el("span", { class: "call-out" }, `call-out by ${entry.rule} on ${entry.id}`),
  }[entry.kind]?.();
  return el("li", { class: `entry is-${entry.kind}`, "data-key": String(entry.sequence), "data-row": true, tabindex: "0" },
    el("p", {}, entry.by && who(entry.by, state), " ", head, " ",
      ["message", "claim"].includes(entry.kind) && el("code", { class: "meta" }, entry.id),
      entry.about && [el("span", { class: "meta" }, " about "), subject(entry.about, state)],
      " ", el("span", { class: "meta" }, ago(entry.at, " ago")),
      entry.kind === "message" && [" ", el("button", { type: "button", class: "plain", "data-do": "reply", "data-id": entry.id, "aria-label": `Answer ${entry.id}` }, "answer")]),
    entry.text && el("p", { class: "words" }, entry.text),
    entry.mentions?.length > 0 && el("p", { class: "meta" }, "to ", entry.mentions.map((name, at) => [at > 0 && ", ", who(name, state)])),
    entry.chain?.ended && el("p", { class: "bad" }, "The chain of mentions is at its end: nobody owes an answer to this."),
    entry.evidence && el("p", {}, entry.evidence.at.map((place) => el("code", { class: "place" }, place)),
      entry.evidence.ran.map((ran) => el("details", {}, el("summary", {}, "ran ", el("code", {}, ran.command), ran.exit === null ? "" : ` → exit ${ran.exit}`),
        ran.output ? el("pre", { tabindex: "0" }, ran.output) : "Its output was not kept."))),
    entry.kind === "claim" && entry.by !== state.me && !(state.entries ?? []).some((one) => one.kind === "verdict" && one.id === entry.id) &&
      el("form", { class: "row", "data-do": "verdict", "data-id": entry.id },
        el("label", { for: `judge-${entry.id}` }, "How you checked it"),
        el("input", { id: `judge-${entry.id}`, name: "text", autocomplete: "off" }),
        ways(["supported", "refuted", "unverifiable"].map((verdict) => el("button", { name: "verdict", value: verdict, "data-key": verdict }, verdict)))));
}
