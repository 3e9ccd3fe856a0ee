// Two columns and the arrows between them: who waits for whom, who reviews whom.

import { el, visible } from "./dom.js";
import { colour } from "./words.js";

const ROW = 38;
const BOX = 26;

/**
 * `left` and `right` are [{key, text, note}], `edges` [{from, to, text}]. The whole is one picture, said in `label`;
 * what it shows stands in words beside it, too.
 */
export function columns({ left, right, edges, label, members }) {
  const width = 560;
  const [leftEnd, rightStart] = [190, 370];
  const height = Math.max(left.length, right.length, 1) * ROW + 6;
  const at = (list) => new Map(list.map((one, row) => [one.key, row * ROW + ROW / 2 + 3]));
  const [from, to] = [at(left), at(right)];
  const box = (x, end, anchor) => (one, row) => {
    const y = row * ROW + ROW / 2 + 3;
    const text = visible(one.text);
    return el("g", { class: "node" },
      el("rect", { x, y: y - BOX / 2, width: end - x, height: BOX, rx: 5 }),
      el("circle", { cx: x + 13, cy: y, r: 4.5, colour: colour(one.key, members) }),
      el("text", { x: x + 24, y: y + 4 }, cut(text, 20)),
      one.note && el("text", { x: end - 8, y: y + 4, class: "note", "text-anchor": "end" }, one.note),
      el("title", {}, text));
  };
  const arrow = ({ from: start, to: end, text }) => {
    const [y1, y2] = [from.get(start), to.get(end)];
    if (y1 === undefined || y2 === undefined) return null;
    const middle = (leftEnd + rightStart) / 2;
    return el("g", { class: "edge" },
      el("path", { d: `M${leftEnd} ${y1}C${middle} ${y1} ${middle} ${y2} ${rightStart - 7} ${y2}` }),
      el("polygon", { points: `${rightStart - 8},${y2 - 4} ${rightStart},${y2} ${rightStart - 8},${y2 + 4}` }),
      text && el("title", {}, text));
  };
  return el("svg", { class: "graph", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label },
    edges.map(arrow), left.map(box(0, leftEnd)), right.map(box(rightStart, width)));
}

const cut = (text, length) => (text.length > length ? `${text.slice(0, length - 1)}…` : text);

/** Who waits for whom, drawn. `waiting` names those who wait, `owing` is [{member, kind, since}]. */
export function waits(waiting, owing, said, members) {
  const right = [...new Map(owing.map((one) => [one.member, one])).values()];
  const left = waiting.filter((member) => !right.some((one) => one.member === member));
  if (right.length === 0) return null;
  const edges = left.flatMap((member) => right.map((one) => ({ from: member, to: one.member, text: said(one) })));
  const kinds = (member) => [...new Set(owing.filter((one) => one.member === member).map((one) => one.kind))];
  return columns({
    left: left.length ? left.map((member) => ({ key: member, text: member })) : [],
    right: right.map((one) => ({ key: one.member, text: one.member, note: cut(kinds(one.member).join(", "), 12) })),
    edges,
    members,
    label: `${left.join(", ") || "Nobody else"} ${left.length === 1 ? "waits" : "wait"} for ${right.map((one) => one.member).join(", ")}`,
  });
}
