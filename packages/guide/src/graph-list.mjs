/**
 * A Mermaid flowchart as lists: each box with those that it points to. Mermaid itself is megabytes of script; lists can be read aloud.
 * In: `flowchart TD` as scripts/write-architecture-page.mjs writes it. Out: HTML. Pure.
 */
import { escapeHtml } from "./html-text.mjs";

/** @param {string} source */
export function graphList(source) {
  const names = new Map(Array.from(source.matchAll(/^ *(\w+)\["([^"]+)"\]/gm), ([, id, name]) => [id, name]));
  const nameOf = (/** @type {string | undefined} */ id) => escapeHtml(names.get(id) ?? String(id));
  /** @type {Map<string, string[]>} */
  const targets = new Map();
  for (const [, from, arrow, to] of source.matchAll(/^ *(\w+) (-->|-\.->) (\w+)/gm)) {
    const kind = arrow === "-.->" ? " <small>(types)</small>" : "";
    targets.set(nameOf(from), [...(targets.get(nameOf(from)) ?? []), `<b>${nameOf(to)}</b>${kind}`]);
  }
  const rows = [...targets].map(([from, to]) => `<li><b>${from}</b> imports ${to.join(", ")}</li>`);
  return `<ul class="graph">${rows.join("")}</ul>\n`;
}
