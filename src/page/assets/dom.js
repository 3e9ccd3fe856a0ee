// Elements from data. Text is text: nothing here reads markup, and what a screen would hide is written out.

// Controls, line and paragraph separators, marks of direction, and what has no width.
const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\ud800-\udfff]|[\u{e0000}-\u{e0fff}]/gu;

/** The text with whatever is not seen as what it is written out: \u{202e}. */
export function visible(text) {
  return String(text ?? "").replace(HIDDEN, (c) => `\\u{${c.codePointAt(0).toString(16)}}`);
}

const SVG = new Set(["svg", "g", "path", "rect", "text", "line", "circle", "marker", "defs", "title", "polygon"]);

/** An element. `colour` is a custom property, for this page has no inline styles; false and null leave out. */
export function el(tag, attributes, ...children) {
  const node = SVG.has(tag) ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === false || value === null || value === undefined) continue;
    if (name === "colour") node.style.setProperty("--of", value);
    else if (name === "value") node.value = value;
    else node.setAttribute(name, value === true ? "" : visible(value));
  }
  add(node, children);
  return node;
}

function add(node, children) {
  for (const child of children.flat(Infinity)) {
    if (child === false || child === null || child === undefined || child === "") continue;
    node.append(child instanceof Node ? child : document.createTextNode(visible(child)));
  }
}

/** What a node is known by among its neighbours. An option is its value: by its place it would become another one. */
const keyOf = (node) => node.dataset?.key ?? (node.nodeName === "OPTION" ? `value ${node.value}` : null);

/** Makes `old` show what `fresh` shows, and keeps what a person has in it: focus, text being written, what is chosen or open. */
export function morph(old, fresh) {
  attributes(old, fresh);
  if (old.dataset.same !== undefined && old.dataset.same === fresh.dataset.same && old.dataset.drawn === "yes") return;
  // What nobody chose is what is now shown first; what somebody chose stays.
  const chosen = old.nodeName !== "SELECT" ? null : old.value === initial(old) ? initial(fresh) : old.value;
  const wants = new Set([...fresh.children].map(keyOf));
  const keyed = new Map();
  for (const child of [...old.children]) {
    const key = keyOf(child);
    if (!key) continue;
    // What goes doesn't stand in the way of what stays: an element that is moved loses the focus.
    if (wants.has(key)) keyed.set(key, child);
    else child.remove();
  }
  let at = old.firstChild;
  for (const wanted of [...fresh.childNodes]) {
    const key = keyOf(wanted);
    let match = key ? keyed.get(key) : null;
    if (match && match.nodeName !== wanted.nodeName) match = null;
    if (!match && !key && at && at.nodeName === wanted.nodeName && !keyOf(at)) match = at;
    if (!match) {
      old.insertBefore(wanted, at);
      continue;
    }
    keyed.delete(key);
    if (match === at) at = at.nextSibling;
    else old.insertBefore(match, at);
    if (match.nodeType === Node.TEXT_NODE) {
      if (match.data !== wanted.data) match.data = wanted.data;
    } else morph(match, wanted);
  }
  while (at) {
    const next = at.nextSibling;
    at.remove();
    at = next;
  }
  if (chosen !== null && [...old.options].some((option) => option.value === chosen)) old.value = chosen;
  if (fresh.dataset.same !== undefined) old.dataset.drawn = "yes";
}

/** What a select shows before anybody chooses. */
const initial = ({ options: [...options] }) => (options.find((option) => option.defaultSelected) ?? options[0])?.value ?? null;

/** Where a value is what a person wrote or chose. */
const WRITTEN = new Set(["INPUT", "TEXTAREA", "SELECT"]);

function attributes(old, fresh) {
  if (old.style && old.style.cssText !== fresh.style.cssText) old.style.cssText = fresh.style.cssText;
  for (const { name } of [...old.attributes]) {
    // What a person opened stays open.
    if (!fresh.hasAttribute(name) && !["open", "style", "data-drawn"].includes(name)) old.removeAttribute(name);
  }
  for (const { name, value } of [...fresh.attributes]) {
    if (["open", "style"].includes(name) || (name === "value" && WRITTEN.has(old.nodeName))) continue;
    if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
}

/**
 * The buttons of a form that say which way it goes. Enter in a field presses a form's first button, whatever that says:
 * here it presses one that does nothing, so that no way is gone but by its own button.
 */
export const ways = (...buttons) => [el("button", { type: "submit", disabled: true, hidden: true }), buttons];

/** What stands where nothing is known yet. It has a key, so that no paragraph of what comes is made of it and moves. */
export const waiting = () => el("p", { class: "meta", "data-key": "waiting" }, "…");

/** The values of a form by name. */
export function values(form) {
  return Object.fromEntries([...new FormData(form)].map(([name, value]) => [name, String(value).trim()]));
}
