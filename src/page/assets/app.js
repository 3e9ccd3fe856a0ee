// The room page: what is looked at, kept fresh by the stream, and what a person does.

import { board } from "./board.js";
import { charter } from "./charter.js";
import { el, morph, values, visible, waiting } from "./dom.js";
import { now } from "./now.js";
import { proposal } from "./proposal.js";
import { ENTRIES_MAX, room, toggled } from "./room.js";
import { roster } from "./roster.js";
import { Refused, act, end, follow, get, isOver, post, token } from "./server.js";
import { counted, listed, setClock, tick } from "./words.js";

/** How long the page waits for more before it looks again, in milliseconds. */
const PAUSE = 150;

/** The longest that it waits where looking failed. */
const PAUSE_MAX = 5000;

/** Events of a proposal that are kept at once. */
const EVENTS_MAX = 500;

const VIEWS = [
  { name: "now", title: "Now", key: "n", draw: now },
  { name: "proposals", title: "Proposals", key: "p", draw: (state) => (state.view.name ? proposal(state) : board(state)) },
  { name: "room", title: "Room", key: "r", draw: room },
  { name: "roster", title: "Roster", key: "o", draw: roster },
  { name: "charter", title: "Charter", key: "c", draw: charter },
];

/** What the log said, as far as the page keeps it; `kept` is another one each time that this is dropped. */
const unread = () => ({
  kept: {}, charter: null, members: [], rules: null, revision: null, roster: null, entries: null, earlier: 0,
  record: null, explained: null, timeline: null, missing: null, diff: null,
});

/** What belongs to one sign-in, as it begins. */
const fresh = () => ({
  ...unread(), status: null, me: null, person: false, entering: false, why: null, told: {}, asked: 0,
  filter: "", search: "", draft: "", named: [], reply: null,
});

const state = { view: { view: "now" }, ...fresh() };
const main = document.getElementById("main");
const nav = document.getElementById("views");

// What is looked at ---------------------------------------------------------------------------

function viewOf(hash) {
  const [view, name] = hash.replace(/^#\/?/, "").split("/");
  const known = VIEWS.some((one) => one.name === view) ? view : "now";
  let named = null;
  try {
    named = name ? decodeURIComponent(name) : null;
  } catch {
    // A hash that is no name leads to the board.
  }
  return { view: known, name: known === "proposals" ? named : null };
}

function draw() {
  const waits = !state.status && (token.get() || state.entering);
  // Not before the number of what is open is known: it would move what is beside it.
  morph(nav, el("nav", { id: "views", "aria-label": "Views" }, !waits && VIEWS.map((one) => el("a", {
    href: `#/${one.name}`, "data-key": one.name, "aria-current": one.name === state.view.view ? "page" : false,
  }, one.title, one.name === "now" && state.status && [" ", count()]))));
  const view = VIEWS.find((one) => one.name === state.view.view);
  const content = waits ? [waiting()] : state.status ? view.draw(state) : signedOut();
  morph(main, el("main", { id: "main", tabindex: "-1", "data-view": state.view.view }, content));
  document.getElementById("team").textContent = state.status ? `${state.status.team}, as ${state.me}` : "Countersign";
  document.title = `${state.view.name ?? view.title} · ${state.status?.team ?? "Countersign"}`;
}

function count() {
  const open = state.status.escalations.filter((one) => one.state === "open").length;
  return open > 0 && el("span", { class: "badge" }, String(open), el("span", { class: "quiet" }, " open"));
}

function signedOut() {
  return [
    el("h1", {}, "Nobody is signed in"),
    el("p", {}, state.why ?? "A link signs you in, once."),
    el("p", {}, "For one, run: ", el("code", {}, "countersign page --as MEMBER")),
  ];
}

async function refresh() {
  const viewed = state.view;
  const status = await get("status");
  setClock(status.now);
  announce(status);
  state.status = status;
  state.me = status.member;
  if (state.members.length === 0 || viewed.view === "charter") await readCharter();
  if (viewed.name) await readProposal(viewed.name);
  if (viewed.view === "room") await readRoom();
  if (["room", "roster"].includes(viewed.view)) state.roster = (await get("roster")).members;
  if (viewed === state.view) draw();
}

async function readCharter() {
  const [charter, rules] = await Promise.all([get("charter"), state.view.view === "charter" ? get("rules") : null]);
  state.charter = charter;
  state.members = charter.members ?? [];
  state.person = state.members.some((member) => member.name === state.me && member.kind === "human");
  if (rules) state.rules = rules.rules;
}

async function readProposal(name) {
  const path = `proposals/${encodeURIComponent(name)}`;
  const { kept } = state;
  const { ids, sequence } = state.timeline ?? { ids: [], sequence: 0 };
  const since = `${path}/timeline?after=${sequence}&ids=${ids.map(encodeURIComponent).join(",")}`;
  try {
    const [record, explained, more] = await Promise.all([get(path), get(`${path}/explain`), get(since)]);
    if (state.kept !== kept) return;
    Object.assign(state, { record, explained, timeline: joined(state.timeline, more), missing: null });
  } catch (why) {
    if (!(why instanceof Refused) || ![400, 404].includes(why.status)) throw why;
    if (state.kept === kept) Object.assign(state, { record: null, missing: `${why.message}.` });
  }
}

/** What is kept of a proposal's events, with those that came since. */
function joined(held, more) {
  if (!held) return more;
  const events = [...held.events, ...more.events.filter((event) => event.sequence > held.sequence)];
  return { events: events.slice(-EVENTS_MAX), ids: more.ids, sequence: Math.max(held.sequence, more.sequence) };
}

/** The newest page, joined with the older ones that were asked for. */
async function readRoom() {
  const { kept } = state;
  const page = await get("transcript");
  if (state.kept !== kept) return;
  const from = page.messages[0]?.sequence ?? 0;
  const older = (state.entries ?? []).filter((entry) => entry.sequence < from);
  // Where more came at once than a page holds, what is between isn't known.
  const joins = (state.entries ?? []).some((entry) => entry.sequence >= from);
  const held = joins ? [...older, ...page.messages] : page.messages;
  const cut = Math.max(0, held.length - ENTRIES_MAX - state.asked);
  state.earlier = (joins && older.length > 0 ? state.earlier : page.earlier) + cut;
  state.entries = held.slice(cut);
}

// Kept fresh ----------------------------------------------------------------------------------

let [looking, again] = [null, false];

/** Looks again soon, once for however many events; where that fails, until it succeeds. */
function look() {
  again = true;
  looking ??= looks().finally(() => { looking = null; });
  return looking;
}

async function looks() {
  let pause = PAUSE;
  while (again && token.get()) {
    again = false;
    try {
      await refresh();
      [pause, line.looks] = [PAUSE, true];
    } catch (why) {
      again = true;
      if (!isOver(why) && !ended(why)) [pause, line.looks] = [Math.min(pause * 2, PAUSE_MAX), false];
    }
    drawLine();
    await new Promise((go) => setTimeout(go, pause));
  }
}

/** Leaves where that says that the sign-in has ended. */
function ended(why) {
  const is = why instanceof Refused && why.status === 401;
  if (is) leave("The sign-in has ended.");
  return is;
}

/** Whether the stream stands (null: not yet), whether the last look succeeded, and why there is no stream. */
const line = { stands: null, looks: true, why: null };

function drawLine() {
  const node = document.getElementById("line");
  const live = token.get() && line.stands && line.looks;
  node.textContent = !token.get() ? "not signed in"
    : live ? "live"
      : line.stands === false ? line.why ?? "connecting again…"
        : line.looks ? "connecting…" : "out of date, looking again…";
  node.className = live ? "line live" : "line";
}

/** Says new escalations to who doesn't look. */
function announce(status) {
  if (!state.status) return;
  const known = new Set(state.status.escalations.map((one) => one.id));
  const fresh = status.escalations.filter((one) => one.state === "open" && !known.has(one.id));
  if (fresh.length > 0) {
    say("alert", fresh.map((one) => `New escalation ${one.id}: ${one.cause}, about ${one.subject}`).join(". "));
  }
}

function say(where, text) {
  document.getElementById(where).replaceChildren(document.createTextNode(text));
}

function start() {
  Object.assign(line, { stands: null, looks: true, why: null });
  drawLine();
  follow(state.status?.sequence ?? 0, {
    events(piece) {
      if (piece.events.some((event) => event.kind === "charter-adopted")) state.members = [];
      look();
    },
    line(stands, why = null) {
      Object.assign(line, { stands, why });
      drawLine();
      if (stands) look();
    },
    anew() {
      // Another log: nothing that is kept of the one before is joined with it. What is being written stays.
      Object.assign(state, unread());
      look();
    },
    out: () => leave("The sign-in has ended."),
  });
}

function leave(why, entering = false) {
  token.set(null);
  Object.assign(state, fresh(), { why, entering });
  document.getElementById("keys").close();
  trouble(null);
  drawLine();
  draw();
}

/** What went wrong where no place of its own says so; null where nothing is wrong. */
function trouble(text) {
  const node = document.getElementById("trouble");
  node.hidden = !text;
  node.replaceChildren(...(text ? [document.createTextNode(visible(text))] : []));
}

/** Does what was asked for; whatever goes wrong with it is said. */
async function attempt(does) {
  trouble(null);
  try {
    await does();
  } catch (why) {
    if (isOver(why) || ended(why)) return;
    trouble(why instanceof Refused ? `Refused: ${why.message}.` : "The server can't be reached. Try it again.");
  }
}

// What a person does --------------------------------------------------------------------------

/** Does it, and says in the place `told` what came of it. */
async function doing(told, verb, body, said) {
  let answer = null;
  try {
    answer = await act(verb, body);
  } catch (why) {
    if (isOver(why) || ended(why)) return null;
    if (!(why instanceof Refused)) {
      state.told[told] = { bad: true, text: "Nobody can say whether it was done: look before you do it again." };
    } else {
      const unmet = why.told.violations ?? [];
      const all = unmet.map((one) => `${one.code}: ${one.message}. ${one.remedy ? `Then: ${one.remedy}` : ""}`);
      state.told[told] = { bad: true, text: all.join(" — ") || why.message };
    }
    draw();
    return null;
  }
  state.told[told] = { text: [said(answer), woken(answer.woke)].filter(Boolean).join(" ") };
  // It is done, whatever becomes of looking at it.
  await refresh().catch(() => {
    draw();
    look();
  });
  return token.get() ? answer : null;
}

function woken(woke) {
  if (!woke) return "";
  if (woke.length === 0) return "This woke nobody.";
  const of = (outcome) => woke.filter((one) => one.outcome === outcome).map((one) => one.member);
  const stored = woke.filter((one) => one.outcome === "stored").map((one) => `${one.member} (${one.presence})`);
  return [of("woke").length > 0 && `Woke ${listed(of("woke"))}.`, stored.length > 0 && `Stored for ${listed(stored)}.`]
    .filter(Boolean).join(" ");
}

const FORMS = {
  async answer(form, { decision, reason, member, reviewer }) {
    const escalation = form.dataset.id;
    const done = await doing(`told-${escalation}`, "answer", { escalation, decision, reason, member: member ?? "", reviewer: reviewer ?? "" },
      () => `${escalation} is answered: ${decision}.`);
    if (done) say("said", `${escalation} is answered: ${decision}. ${woken(done.woke)}`);
  },
  async vote(form, { verb, text, at }) {
    const places = at ? at.split(/\s+/) : [];
    if (verb === "approve" && text) {
      state.told["told-proposal"] = { bad: true, text: "An approval carries no words. Object or leave a note with them, or take them out." };
      draw();
      return;
    }
    const body = verb === "approve" ? { ref: form.dataset.ref, checked: places } : { ref: form.dataset.ref, text, at: places };
    const done = await doing("told-proposal", verb, body, (answer) => `Done: ${verb} ${answer.ref}.`);
    if (done) form.reset();
  },
  async escalate(form, { text }) {
    const done = await doing("told-proposal", "escalate", { subject: form.dataset.subject, text },
      (answer) => `${answer.escalation} is open.`);
    if (done) form.reset();
  },
  overrule: (form, { reason }) =>
    doing("told-proposal", "overrule", { objection: form.dataset.id, reason }, (answer) => `${answer.objection} is overruled.`),
  mistaken: (form, { reason }) =>
    doing("told-proposal", "resolve", { objection: form.dataset.id, mistaken: true, reason }, (answer) => `${answer.objection} is closed.`),
  async say(form, { text, about }) {
    const done = await doing("told-room", "say", { text, about, reply: state.reply ?? "" }, (answer) => `${answer.message} is said.`);
    if (!done) return;
    form.reset();
    Object.assign(state, { draft: "", named: [], reply: null });
    draw();
    document.getElementById("say")?.focus();
  },
  verdict: (form, { verdict, text }) =>
    doing("told-room", "verdict", { message: form.dataset.id, verdict, text }, (answer) => `${answer.message} is ${verdict}.`),
  async minutes(form, { name }) {
    const { minutes } = await get(`minutes/${encodeURIComponent(name)}`);
    const link = el("a", { download: `${name}-minutes.md`, href: URL.createObjectURL(new Blob([minutes], { type: "text/markdown" })) });
    link.click();
    URL.revokeObjectURL(link.href);
    say("said", `The minutes of ${name} are downloaded.`);
  },
  async diff(form, { from, to, since }) {
    const { name } = form.dataset;
    const base = Number(from);
    const asked = since ? { subject: `${name}@${state.record.version}`, since_read: true } : { subject: `${name}@${to}`, from: base };
    // A version that is compared with was shown by that, too.
    if (!since && base > 0 && !(await doing("told-diff", "show", { subject: `${name}@${base}` }, () => ""))) return;
    const shown = await doing("told-diff", "diff", asked,
      (answer) => (since && answer.from === 0 ? "You were shown no version before it, so this is all of it." : ""));
    if (!shown || state.view.name !== name) return;
    state.diff = shown;
    draw();
  },
};

const CLICKS = {
  skip: () => main.focus(),
  keys: () => showKeys(),
  close: () => document.getElementById("keys").close(),
  read: ({ name }) => doing("told-proposal", "objections", { proposal: name }, (answer) => `${counted(answer.objections.length, "objection")} read.`),
  confirm: ({ ref }) => doing("told-proposal", "confirm", { ref }, (answer) =>
    answer.complete ? `${answer.circle} is complete.` : `Confirmed; it waits for ${listed(answer.waiting_for)}.`),
  resolve: ({ id }) => doing("told-proposal", "resolve", { objection: id }, (answer) => `${answer.objection} is resolved.`),
  async revision({ number }) {
    const revision = await get(`charter?revision=${number}`);
    state.revision = revision;
    draw();
  },
  mention({ name }) {
    const field = document.getElementById("say");
    field.value = toggled(field.value, name);
    field.focus();
    return written(field.value);
  },
  reply({ id }) {
    state.reply = id || null;
    draw();
    document.getElementById("say").focus();
  },
  async earlier() {
    const page = await get(`transcript?before=${state.entries?.[0]?.sequence ?? 0}`);
    if (!state.entries) return;
    // What was asked for stays as long as the view does.
    state.asked += page.messages.length;
    state.entries = [...page.messages, ...state.entries];
    state.earlier = page.earlier;
    draw();
  },
  async out() {
    document.getElementById("keys").close();
    try {
      await post("sign-out", {});
    } catch (why) {
      if (isOver(why) || ended(why)) return;
      trouble("You are still signed in: the server didn't end it. Sign out again.");
      return;
    }
    leave("You signed out.");
  },
};

document.addEventListener("submit", (event) => {
  event.preventDefault();
  const form = event.target;
  const given = values(form);
  if (event.submitter?.name) given[event.submitter.name] = event.submitter.value;
  attempt(() => FORMS[form.dataset.do]?.(form, given));
});

document.addEventListener("click", (event) => {
  const button = event.target.closest("button[data-do]");
  if (button) attempt(() => CLICKS[button.dataset.do]?.(button.dataset));
});

/** What is being written: whom it would wake is the server's to say. */
async function written(text) {
  state.draft = text;
  let names = [];
  try {
    if (text.includes("@")) ({ names } = await post("mentions", { text }));
  } catch (why) {
    if (isOver(why) || ended(why)) return;
    // Said in the place where it is asked.
    names = null;
  }
  if (state.draft !== text) return;
  state.named = names;
  draw();
}

document.addEventListener("input", (event) => {
  const { input } = event.target.dataset;
  if (input === "draft") written(event.target.value);
  else if (input) {
    state[input] = event.target.value;
    draw();
  }
});

// Keys ----------------------------------------------------------------------------------------

const KEYS = [
  ["j, k", "the next row, the one before"],
  ["Enter", "opens it"],
  ...VIEWS.map((one) => [`g ${one.key}`, one.title]),
  ["u", "back to the board"],
  ["d", "a proposal's diff"],
  ["/", "the filter"],
  ["?", "these keys"],
];

function showKeys() {
  const keys = document.getElementById("keys");
  keys.replaceChildren(
    el("h2", { id: "keys-title" }, "Keys"),
    el("table", {}, el("tbody", {}, KEYS.map(([key, does]) => el("tr", {}, el("th", { scope: "row" }, el("kbd", {}, key)), el("td", {}, does))))),
    el("div", { class: "buttons" }, el("button", { "data-do": "close" }, "Close"), token.get() && el("button", { "data-do": "out" }, "Sign out")));
  keys.showModal();
}

let went = 0;

document.addEventListener("keydown", (event) => {
  const writing = event.target.closest("input, textarea, select");
  if (writing && event.key === "Escape") return writing.blur();
  if (writing || event.ctrlKey || event.metaKey || event.altKey || document.getElementById("keys").open) return undefined;
  const goes = Date.now() - went < 1500 && VIEWS.find((one) => one.key === event.key);
  went = 0;
  if (goes) location.hash = `#/${goes.name}`;
  else if (event.key === "g") went = Date.now();
  else if (event.key === "j") step(1);
  else if (event.key === "k") step(-1);
  else if (event.key === "u") location.hash = `#/${state.view.view}`;
  else if (event.key === "d") document.querySelector("form[data-do=diff] button")?.focus();
  else if (event.key === "/") document.querySelector("[type=search]")?.focus();
  else if (event.key === "?") showKeys();
  else if (event.key === "Enter" && event.target.matches("li[data-row], article[data-row]")) (event.target.querySelector("textarea") ?? event.target.querySelector("a, button"))?.focus();
  else return undefined;
  event.preventDefault();
  return undefined;
});

function step(by) {
  const rows = [...main.querySelectorAll("[data-row]")].filter((row) => row.offsetParent !== null);
  const at = rows.indexOf(document.activeElement?.closest("[data-row]"));
  rows[Math.max(0, Math.min(rows.length - 1, at + by))]?.focus();
}

// The beginning -------------------------------------------------------------------------------

window.addEventListener("hashchange", () => {
  if (location.hash.startsWith("#in=")) {
    enter();
    return;
  }
  const before = state.view;
  state.view = viewOf(location.hash);
  if (before.name !== state.view.name) {
    Object.assign(state, { kept: {}, record: null, explained: null, timeline: null, diff: null, missing: null });
  }
  trouble(null);
  state.asked = 0;
  delete state.told["told-proposal"];
  delete state.told["told-diff"];
  if (!token.get()) return;
  draw();
  main.focus({ preventScroll: true });
  window.scrollTo(0, 0);
  look();
});

async function enter() {
  const link = location.hash.slice("#in=".length);
  // What signs in is in no history, whatever comes of it.
  history.replaceState(null, "", "#/now");
  state.view = viewOf("");
  // Whoever was signed in here is so no longer, and nothing of theirs is shown to the next.
  const before = token.get();
  leave(null, true);
  if (before) end(before);
  try {
    const answer = await post("sign-in", { link });
    token.set(answer.token);
    await begin();
  } catch (why) {
    if (!isOver(why)) leave(why instanceof Refused ? `${why.message}.` : "The server can't be reached.");
  }
}

/** Shows what there is, as soon as it can be had, and follows it. */
async function begin() {
  const signedIn = token.get();
  draw();
  if (!signedIn) return;
  try {
    await refresh();
  } catch (why) {
    if (isOver(why) || ended(why)) return;
    await look();
  }
  if (token.get() === signedIn) start();
}

setInterval(() => tick(main), 1000);

// Who can hear is no event, and stands in no log.
let hearing = false;
setInterval(async () => {
  if (hearing || !token.get() || !state.status || document.hidden || !["room", "roster"].includes(state.view.view)) return;
  hearing = true;
  try {
    state.roster = (await get("roster")).members;
    draw();
  } catch {
    // Looking says why, and goes on until it succeeds.
    look();
  } finally {
    hearing = false;
  }
}, 1000);

state.view = viewOf(location.hash);
if (location.hash.startsWith("#in=")) enter();
else begin();
