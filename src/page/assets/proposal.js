// A proposal's own page: versions, votes, objections, what is still required, the diff, what happened.

import { stands } from "./board.js";
import { diff } from "./diff.js";
import { el, waiting, ways } from "./dom.js";
import { told } from "./now.js";
import { ago, proposalOf, stateName, who } from "./words.js";

export function proposal(state) {
  const { record } = state;
  if (!record) return [el("h1", {}, state.view.name), state.missing ? el("p", { class: "meta" }, state.missing) : waiting()];
  return [
    el("div", { class: "head" },
      el("h1", {}, record.name, record.version > 0 && el("span", { class: "version" }, `@${record.version}`)),
      el("p", { class: `state-of ${record.state}` }, stateName(record.state)),
      el("p", { class: "meta" }, "by ", who(record.producer, state), record.circle && [", in ", el("b", {}, record.circle)])),
    record.ref && el("p", {}, el("code", { class: "ref" }, record.ref)),
    record.summary && el("p", { class: "words" }, record.summary),
    record.cooldown_until && el("p", { class: "meta" }, `It may come back at ${record.cooldown_until}.`),
    mine(state, record),
    el("div", { class: "two" },
      el("div", {}, checklist(state), objections(state, record)),
      el("div", {}, versions(state, record))),
    differences(state, record),
    timeline(state),
  ];
}

/** What the member who looks owes here, and what it can do. */
function mine(state, record) {
  const owed = state.status.obligations.filter((one) => one.member === state.me
    && (proposalOf(one.subject) === record.name || one.subject.split(":")[0] === record.circle));
  const mayVote = record.reviewers.some((one) => one.member === state.me);
  const circle = state.status.circles.find((one) => one.name === record.circle);
  const mayConfirm = owed.some((one) => one.kind === "confirm");
  const open = ["under-review", "objected", "accepted"].includes(record.state);
  return el("section", { "aria-labelledby": "mine", "data-key": "mine" },
    el("h2", { id: "mine" }, "Your part"),
    owed.length === 0 ? el("p", { class: "meta" }, "You owe nothing here.") : el("ul", { class: "plain-list" }, owed.map((one) =>
      el("li", { class: "mine" }, "You owe ", el("b", {}, one.kind), ", for ", ago(one.since), " ", el("code", {}, one.command)))),
    record.producer === state.me && record.objections.length > 0 &&
      el("button", { type: "button", "data-do": "read", "data-name": record.name }, "Record that you read the objections"),
    mayConfirm && el("button", { type: "button", "data-do": "confirm", "data-ref": circle?.ref ?? "" }, `Confirm ${circle?.ref ?? ""}`),
    mayVote && open && el("form", { class: "vote", "data-do": "vote", "data-ref": record.ref, "data-key": "vote" },
      el("label", { for: "vote-text" }, "Your words, for an objection or a note"),
      el("textarea", { id: "vote-text", name: "text", rows: "2" }),
      el("label", { for: "vote-at" }, "Places, such as src/lexer.rs:112, with spaces between"),
      el("input", { id: "vote-at", name: "at", autocomplete: "off" }),
      el("div", { class: "buttons" }, ways(["approve", "object", "note"].map((verb) =>
        el("button", { name: "verb", value: verb, "data-key": verb }, `${verb[0].toUpperCase()}${verb.slice(1)} ${record.name}@${record.version}`))))),
    el("details", { "data-key": "escalate" }, el("summary", {}, "Put it before a person"),
      el("form", { "data-do": "escalate", "data-subject": record.name },
        el("label", { for: "escalate-text" }, "What the person is asked"),
        el("textarea", { id: "escalate-text", name: "text", rows: "2", required: true }),
        el("div", { class: "buttons" }, el("button", {}, "Escalate")))),
    told(state, "told-proposal"));
}

const REQUIREMENT = { SATISFIED: "✓", UNSATISFIED: "✗", OVERRULED: "⊘", NOT_APPLICABLE: "–", ERROR: "!" };

function checklist(state) {
  const requirements = state.explained?.requirements ?? [];
  const unmet = requirements.filter((one) => ["UNSATISFIED", "ERROR"].includes(one.state));
  const met = requirements.filter((one) => !unmet.includes(one));
  return el("section", { "aria-labelledby": "required", "data-key": "required" },
    el("h2", { id: "required" }, "What it still waits for"),
    requirements.length > 0 && unmet.length === 0 && el("p", { class: "good" }, "Every requirement is met."),
    requirementsOf(unmet, unmet, state),
    met.length > 0 && el("details", { "data-key": "met" },
      el("summary", { "data-row": true }, `${met.length} that are met, or don't apply`), requirementsOf(met, unmet, state)));
}

function requirementsOf(requirements, unmet, state) {
  return el("ul", { class: "checklist" }, requirements.map((one) =>
      el("li", { class: one.state.toLowerCase(), "data-key": one.name },
        el("span", { class: "sign", "aria-hidden": "true" }, REQUIREMENT[one.state] ?? "?"),
        el("div", {}, el("b", {}, one.name), " ", el("span", { class: "word" }, one.state.toLowerCase().replace("_", " ")),
          one.mode && one.mode !== "enforce" && el("span", { class: "meta" }, ` (${one.mode})`),
          unmet.includes(one) && [
            el("p", {}, one.detail),
            el("p", { class: "meta" }, one.who.map((member, at) => [at > 0 && ", ", who(member, state)]), " can: ", el("code", {}, one.command))]))));
}

function objections(state, record) {
  return el("section", { "aria-labelledby": "objections", "data-key": "objections" },
    el("h2", { id: "objections" }, "Objections and notes"),
    record.objections.length === 0 && el("p", { class: "meta" }, "There is none."),
    [...record.objections].reverse().map((one) => el("article", { class: `objection ${one.status}`, "data-key": one.id },
      el("h3", {}, one.id, " ", el("span", { class: "meta" }, one.kind, " by "), who(one.by, state),
        el("span", { class: "meta" }, ` (${one.lens}) on version ${one.version} · `), el("span", { class: "status" }, one.status)),
      el("p", { class: "words" }, one.text),
      one.at.length > 0 && el("p", {}, one.at.map((place) => el("code", { class: "place" }, place))),
      one.failing_test && run(one.failing_test, "Failing test"),
      one.answers.map((reply) => el("p", { class: "answer" }, el("b", {}, `Answered with version ${reply.version}: `), reply.text)),
      one.closed_by && el("p", { class: "meta" }, `${one.status} by `, who(one.closed_by, state), one.reason && `: ${one.reason}`),
      one.status === "open" && one.kind === "objection" && state.person && reasoned("overrule", one, "Overrule it"),
      one.status === "open" && one.by === state.me && [
        el("button", { type: "button", "data-do": "resolve", "data-id": one.id }, "The current version answers it"),
        reasoned("mistaken", one, "It was a mistake")])));
}

function reasoned(verb, one, label) {
  const id = `${verb}-${one.id}`;
  return el("details", { "data-key": id }, el("summary", {}, label),
    el("form", { "data-do": verb, "data-id": one.id },
      el("label", { for: id }, "Why (everybody reads it)"),
      el("textarea", { id, name: "reason", rows: "2", required: true }),
      el("div", { class: "buttons" }, el("button", {}, label))));
}

function run(ran, label) {
  const ended = ran.exit === null || ran.exit === undefined ? "" : ` → exit ${ran.exit}`;
  return el("details", { class: "run" }, el("summary", {}, `${label}: `, el("code", {}, ran.command), ended),
    ran.output ? el("pre", { tabindex: "0" }, ran.output) : el("p", { class: "meta" }, "Its output was not kept."));
}

function versions(state, record) {
  return el("section", { "aria-labelledby": "versions", "data-key": "versions" },
    el("h2", { id: "versions" }, "Versions"),
    record.versions.length === 0 && el("p", { class: "meta" }, "None was offered yet."),
    [...record.versions].reverse().map((one) => el("article", { class: one.current ? "version-of current" : "version-of", "data-key": one.ref },
      el("h3", {}, `@${one.version}`, " ", el("span", { class: "meta" }, "offered ", ago(one.proposed_at, " ago"), " by "), who(one.producer, state),
        one.current ? el("span", { class: "status" }, " current") : null),
      one.summary !== record.summary && el("p", { class: "words" }, one.summary),
      el("ul", { class: "plain-list" }, one.reviewers.map((reviewer) => {
        const [kind, sign, word] = stands(reviewer, one.version);
        const vote = one.votes.find((vote) => vote.by === reviewer.member);
        return el("li", { class: `cell ${kind}` }, el("span", { "aria-hidden": "true" }, sign), " ", who(reviewer.member, state), " ",
          el("span", { class: "lens" }, reviewer.lens), " ", word, vote && [" ", ago(vote.at, " ago")],
          vote?.checked.length > 0 && el("p", {}, "checked ", vote.checked.map((place) => el("code", { class: "place" }, place))),
          vote?.ran.map((ran) => run(ran, "Ran")));
      })),
      one.checks.length > 0 && el("ul", { class: "plain-list" }, one.checks.map((check) =>
        el("li", {}, `check ${check.name}: `, el("b", {}, check.status), check.by && [" by ", who(check.by, state)],
          check.output && el("details", {}, el("summary", {}, "its output"), el("pre", { tabindex: "0" }, check.output))))))));
}

function differences(state, record) {
  if (record.versions.length === 0) return null;
  const numbers = record.versions.map((one) => one.version);
  const choice = (name, label, options, chosen) => [
    el("label", { for: `diff-${name}` }, label),
    el("select", { id: `diff-${name}`, name }, options.map(([value, text]) =>
      el("option", { value: String(value), selected: value === chosen }, text)))];
  const to = record.version;
  return el("section", { "aria-labelledby": "diff", "data-key": "diff" },
    el("h2", { id: "diff" }, "The diff"),
    el("form", { class: "row", "data-do": "diff", "data-name": record.name },
      choice("from", "from", [[0, "its base"], ...numbers.map((number) => [number, `@${number}`])], 0),
      choice("to", "to", numbers.map((number) => [number, `@${number}`]), to),
      el("button", {}, "Show (recorded as a reading)"),
      to > 1 && el("button", { name: "since", value: "read", "data-key": "since" }, "Since my last reading")),
    told(state, "told-diff"),
    state.diff && state.diff.ref.startsWith(`${record.name}@`) && [
      el("p", { class: "meta" }, el("code", {}, state.diff.ref), state.diff.from ? ` against @${state.diff.from}` : " against its base"),
      diff(state.diff)]);
}

const EVENTS = {
  proposed: (body) => `offered version ${body.version}`,
  "version-read": (body) => `was shown version ${body.version}`,
  "objections-read": () => "read the objections",
  approved: (body) => `approved version ${body.version}`,
  objected: (body) => `objected to version ${body.version}: ${body.id}`,
  noted: (body) => `left note ${body.id} on version ${body.version}`,
  "objection-closed": (body) => `${body.id} is ${body.how}`,
  withdrawn: (body) => `withdrew version ${body.version}: ${body.reason}`,
  escalated: (body) => `${body.id} was opened: ${body.cause}`,
  "escalation-closed": (body) => (body.decision ? `${body.id} was answered: ${body.decision}` : `${body.id} was closed`),
  "check-reported": (body) => `reported check ${body.name}${body.exit === undefined ? ", skipped" : `, exit ${body.exit}`}`,
  "circle-completed": () => "everybody confirmed: complete",
  "circle-published": () => "published",
  "circle-reopened": (body) => `opened again: ${body.because}`,
  "called-out": (body) => `called out by ${body.rule}: ${body.says}`,
  confirmed: () => "confirmed",
};

function timeline(state) {
  return el("section", { "aria-labelledby": "timeline", "data-key": "timeline" },
    el("h2", { id: "timeline" }, "What happened"),
    el("ol", { class: "timeline" }, [...(state.timeline?.events ?? [])].reverse().map((event) =>
      el("li", { "data-key": String(event.sequence) },
        el("span", { class: "age" }, ago(event.at)), " ", who(event.actor, state), " ",
        EVENTS[event.kind]?.(event.body) ?? event.kind))));
}
