// Now: who holds the ball, and why nothing else may happen.

import { el, ways } from "./dom.js";
import { waits } from "./graph.js";
import { age, ago, counted, listed, subject, who } from "./words.js";

/** Decisions that take a member's name. */
const OF_A_MEMBER = new Set(["replace", "excuse", "overrule"]);

export function now(state) {
  const { status } = state;
  return [
    el("h1", {}, "Now"),
    escalations(state),
    owed(state),
    why(state),
    repairs(status.recovery_patches),
    attempts(state),
  ];
}

function escalations(state) {
  const open = state.status.escalations.filter((one) => one.state === "open");
  return el("section", { "aria-labelledby": "escalations", "data-key": "escalations" },
    el("h2", { id: "escalations" }, "Waits for a person", badge(open.length)),
    open.length === 0 && el("p", { class: "good" }, "No escalation is open."),
    open.map((one) => escalation(one, state)));
}

function escalation(one, state) {
  const waiting = new Set(state.status.waiting.filter((wait) => concerns(one, wait, state)).map((wait) => wait.member));
  const said = (owing) => `${owing.member} owes ${owing.kind}, ${age(owing.since)}`;
  const failing = one.deliveries.filter((delivery) => delivery.failures > 0);
  return el("article", { class: "escalation", "data-key": `escalation-${one.id}`, "aria-labelledby": `title-${one.id}`, "data-row": true, tabindex: "0" },
    el("h3", { id: `title-${one.id}` }, one.id, " · ", one.cause, " · ", subject(one.subject, state)),
    el("p", { class: "meta" }, "opened ", ago(one.opened_at, " ago"),
      one.reminders > 0 && `, reminded ${counted(one.reminders, "time")}`),
    el("p", { class: "words" }, one.text),
    waits([...waiting], one.waiting_on, said, state.members),
    one.waiting_on.length > 0 && el("ul", { class: "plain-list" }, one.waiting_on.map((owing) =>
      el("li", {}, who(owing.member, state), ` owes ${owing.kind}, for `, ago(owing.since)))),
    failing.map((delivery) => el("p", { class: "bad" },
      `${delivery.channel} does not take the news: ${counted(delivery.failures, "failure")}, ${delivery.why ?? ""}`)),
    state.person ? decide(one, state) : el("p", { class: "meta" }, "A person decides: ", listed(one.decisions)));
}

const concerns = (one, wait, state) => {
  const proposal = state.status.proposals.find((known) => one.subject === known.name || one.subject.startsWith(`${known.name}@`));
  return wait.circle === one.subject.split(":")[0] || wait.circle === proposal?.circle;
};

function decide(one, state) {
  const ofMember = one.decisions.some((decision) => OF_A_MEMBER.has(decision));
  const reason = `reason-${one.id}`;
  return el("form", { class: "decide", "data-do": "answer", "data-id": one.id, "data-key": "decide" },
    el("label", { for: reason }, "Why (everybody reads it)"),
    el("textarea", { id: reason, name: "reason", rows: "2", required: true, "aria-describedby": `told-${one.id}` }),
    ofMember && named(one, "member", "Member, where the decision is about one", state),
    one.decisions.includes("replace") && named(one, "reviewer", "Whose place that member takes, where several owe a review", state),
    el("div", { class: "buttons" }, ways(one.decisions.map((decision) =>
      el("button", { name: "decision", value: decision, type: "submit", "data-key": decision }, decision)))),
    told(state, `told-${one.id}`));
}

/** Whose name the decision takes: a member's, or that of one who left and still owes something. */
function named(one, name, label, state) {
  const id = `${name}-${one.id}`;
  const members = state.members.filter((member) => member.kind !== "referee").map((member) => member.name);
  const names = new Set([...members, ...(name === "reviewer" ? one.waiting_on.map((owing) => owing.member) : [])]);
  return [
    el("label", { for: id }, label),
    el("select", { id, name, "data-key": name }, el("option", { value: "" }, "—"),
      [...names].sort().map((each) => el("option", { value: each }, each)))];
}

/** What came of the last thing done in a form. */
export function told(state, id) {
  const said = state.told[id];
  return el("p", { id, class: said?.bad ? "bad told" : "told", role: said?.bad ? "alert" : "status" }, said?.text ?? "");
}

function owed(state) {
  const owing = [...state.status.obligations].sort((one, other) => Date.parse(one.since) - Date.parse(other.since));
  return el("section", { "aria-labelledby": "owed", "data-key": "owed" },
    el("h2", { id: "owed" }, "Who owes what, oldest first", badge(owing.length)),
    owing.length === 0 && el("p", { class: "good" }, "Nobody owes anything."),
    owing.length > 0 && el("ol", { class: "owed" }, owing.map((one) => el("li", {
      "data-key": `owed-${one.id}`, "data-row": true, tabindex: "0", class: one.member === state.me ? "mine" : null,
    },
      el("span", { class: "age" }, ago(one.since)),
      el("span", { class: "what" }, who(one.member, state), " ", el("b", {}, one.kind), " ", subject(one.subject, state)),
      one.due && el("span", { class: Date.parse(one.due) < Date.now() ? "bad" : "meta" }, `due ${one.due.slice(0, 16).replace("T", " ")}`),
      el("code", {}, one.command)))));
}

function why(state) {
  const { circles, waiting } = state.status;
  const open = circles.filter((circle) => circle.state === "open");
  const line = (circle) => {
    const ofCircle = waiting.filter((wait) => wait.circle === circle.name);
    const owing = ofCircle[0]?.waiting_for ?? [];
    const parts = owing.map((one) => [who(one.member, state), ` to ${one.kind} (`, ago(one.since), ")"]);
    return el("li", { "data-key": `circle-${circle.ref}` },
      el("b", {}, circle.name), " ", el("code", {}, circle.ref), " ",
      owing.length > 0
        ? ["— ", ofCircle.map((wait, at) => [at > 0 && ", ", who(wait.member, state)]),
           ofCircle.length === 1 ? " waits for " : " wait for ", parts.map((part, at) => [at > 0 && ", ", part]), ". Until then nobody can confirm it."]
        : circle.waiting_for.length > 0
          ? ["— everything else is met; ", circle.waiting_for.map((member, at) => [at > 0 && ", ", who(member, state)]),
             " ", circle.waiting_for.length === 1 ? "has" : "have", " not confirmed it."]
          : "— nothing is open.");
  };
  return el("section", { "aria-labelledby": "why", "data-key": "why" },
    el("h2", { id: "why" }, "Why nothing else may happen"),
    open.length === 0 && el("p", { class: "good" }, "No circle is open."),
    el("ul", { class: "plain-list" }, open.map(line), pending(state)));
}

/** Phases that wait for the one before them. One that owes no deliverable may be open without a circle. */
function pending(state) {
  const phases = state.charter?.phases ?? [];
  const opened = new Set(state.status.circles.map((circle) => circle.phase));
  return phases.map((phase, at) => at > 0 && phase.deliverables.length > 0 && !opened.has(phase.name) &&
    el("li", { "data-key": `phase-${phase.name}` }, el("b", {}, phase.name), ` — not open: it opens once ${phases[at - 1].name} is published.`));
}

function repairs(counters) {
  const fired = Object.entries(counters).filter(([, count]) => count > 0);
  return el("section", { "aria-labelledby": "repairs", "data-key": "repairs" },
    el("h2", { id: "repairs" }, "Repairs that must never be needed"),
    fired.length === 0
      ? el("p", { class: "good" }, `None of the ${Object.keys(counters).length} was ever needed.`)
      : el("ul", { class: "plain-list" }, fired.map(([name, count]) =>
          el("li", { class: "bad" }, `${name}: ${counted(count, "time")}. The rules have a hole.`))));
}

function attempts(state) {
  const { attempts: tried } = state.status;
  if (tried.length === 0) return null;
  return el("section", { "aria-labelledby": "attempts", "data-key": "attempts" },
    el("h2", { id: "attempts" }, "Refused since the server started"),
    el("ul", { class: "plain-list" }, tried.slice(0, 30).map((one) => el("li", {},
      one.member ? who(one.member, state) : el("code", {}, one.ref ?? ""),
      " ", el("b", {}, one.code), ` ${counted(one.count, "time")}, last `, one.at && ago(one.at, " ago"), ": ", one.message))));
}

export const badge = (count) => [" ", el("span", { class: count > 0 ? "badge" : "badge none" }, String(count))];
