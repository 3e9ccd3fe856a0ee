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

/** Makes `old` show what `fresh` shows, and keeps what a person has in it: focus, text being written, what is open. */
export function morph(old, fresh) {
  attributes(old, fresh);
  if (old.dataset.same !== undefined && old.dataset.same === fresh.dataset.same && old.dataset.drawn === "yes") return;
  const keyed = new Map();
  for (const child of old.children) if (child.dataset?.key) keyed.set(child.dataset.key, child);
  let at = old.firstChild;
  for (const wanted of [...fresh.childNodes]) {
    const key = wanted.dataset?.key;
    let match = key ? keyed.get(key) : null;
    if (match && match.nodeName !== wanted.nodeName) match = null;
    if (!match && !key && at && at.nodeName === wanted.nodeName && !at.dataset?.key) match = at;
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
  if (fresh.dataset.same !== undefined) old.dataset.drawn = "yes";
}

function attributes(old, fresh) {
  if (old.style && old.style.cssText !== fresh.style.cssText) old.style.cssText = fresh.style.cssText;
  for (const { name } of [...old.attributes]) {
    // What a person opened stays open.
    if (!fresh.hasAttribute(name) && !["open", "style", "data-drawn"].includes(name)) old.removeAttribute(name);
  }
  for (const { name, value } of [...fresh.attributes]) {
    if (["open", "style", "value", "selected"].includes(name)) continue;
    if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
}

/** The values of a form by name. */
export function values(form) {
  return Object.fromEntries([...new FormData(form)].map(([name, value]) => [name, String(value).trim()]));
}
