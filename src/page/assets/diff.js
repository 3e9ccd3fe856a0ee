// A unified diff, line by line, a fold for each file. What is long is drawn when it is opened.

import { el } from "./dom.js";

/** Lines of one file that are drawn at once. */
const LINES_MAX = 1500;

export function files(text) {
  const found = [];
  let file = null;
  let [before, after] = [0, 0];
  for (const line of text.split("\n")) {
    if (line.startsWith("diff ") || (!file && line !== "")) {
      file = { path: line.replace(/^diff --git a\/.* b\//, "").replace(/^diff /, ""), lines: [], added: 0, deleted: 0 };
      found.push(file);
      [before, after] = [0, 0];
      if (line.startsWith("diff ")) continue;
    }
    if (!file) continue;
    const hunk = line.match(/^@@ -(\d+)(?:,\d+)? \+(\d+)/);
    if (hunk) {
      [before, after] = [Number(hunk[1]), Number(hunk[2])];
      file.lines.push(["hunk", "", "", line]);
    } else if (before + after === 0) {
      if (line !== "") file.lines.push(["about", "", "", line]);
      if (line.startsWith("+++ ") && line !== "+++ /dev/null") file.path = line.slice(4).replace(/^b\//, "").replace(/\t$/, "");
    } else if (line.startsWith("+")) {
      file.added += 1;
      file.lines.push(["add", "", after++, line.slice(1)]);
    } else if (line.startsWith("-")) {
      file.deleted += 1;
      file.lines.push(["del", before++, "", line.slice(1)]);
    } else if (line.startsWith(" ")) file.lines.push(["same", before++, after++, line.slice(1)]);
    else if (line !== "") file.lines.push(["about", "", "", line]);
  }
  return found;
}

const SIGNS = { add: "+", del: "−", same: " ", hunk: "", about: "" };
const SAID = { add: "added", del: "deleted" };

export function diff(shown) {
  const found = files(shown.diff);
  return el("div", { class: "diff", "data-same": `${shown.ref} ${shown.from}` },
    shown.truncated && el("p", { class: "bad" }, "The diff is longer than what is shown: fetch the version to see all of it."),
    found.length === 0 && el("p", { class: "good" }, "Nothing differs."),
    found.map((file, at) => el("details", { open: at < 20, "data-key": file.path },
      el("summary", { "data-row": true }, el("code", {}, file.path), " ", el("span", { class: "plus" }, `+${file.added}`), " ", el("span", { class: "minus" }, `−${file.deleted}`)),
      el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": `Changes of ${file.path}` },
        el("table", { class: "lines" }, el("tbody", {}, file.lines.slice(0, LINES_MAX).map(([kind, before, after, text]) =>
          el("tr", { class: kind },
            el("td", { class: "number" }, String(before)), el("td", { class: "number" }, String(after)),
            el("td", { class: "sign" }, SIGNS[kind], SAID[kind] && el("span", { class: "quiet" }, SAID[kind])),
            el("td", { class: "text" }, text || " ")))))),
      file.lines.length > LINES_MAX && el("p", { class: "meta" }, `${file.lines.length - LINES_MAX} more lines: fetch the version to see them.`))));
}
