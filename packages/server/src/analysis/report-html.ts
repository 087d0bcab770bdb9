/**
 * A simulation as a single HTML file: no scripts, no external resources, light and dark. Everything from a log or a rule is escaped. Pure.
 */
import type { LogCounts } from "./log/read-logs.js";
import type { RuleFigures } from "./rule-figures.js";
import type { Simulation } from "./simulate.js";
import { endsOf, type Series } from "./time-series.js";

const numbers = new Intl.NumberFormat("en", { maximumFractionDigits: 2 });
const figure = (value: number): string => numbers.format(value);
const percent = (part: number): string => `${numbers.format(100 * part)} %`;

const style = `
:root { color-scheme: light dark; --ink: #1c2430; --dim: #5b6675; --line: #d9dee6; --ground: #fff; --ok: #2f8f5b; --bad: #c8372d; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6eaf0; --dim: #9aa5b4; --line: #38414d; --ground: #14181e; --ok: #4cc38a; --bad: #ff6b5e; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--ground); max-width: 64rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
.dim { color: var(--dim); } .bad { color: var(--bad); }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: .35rem .75rem .35rem 0; border-bottom: 1px solid var(--line); vertical-align: top; overflow-wrap: anywhere; }
th { color: var(--dim); font-weight: 600; } td.n, th.n { text-align: right; white-space: nowrap; }
svg { width: 100%; height: auto; } svg text { fill: var(--dim); font-size: 11px; }
.scroll { overflow-x: auto; }`;

export function reportHtml(simulation: Simulation, counts: LogCounts): string {
  const { total, refused, share, unmatched, malformed, from, to, rules, against, comeBack, series } = simulation;
  const parts = [
    "<h1>What the rules would have done</h1>",
    `<p class="dim">${figure(counts.lines)} lines of ${escaped([...counts.formats.keys()].join(", "))}; ${escaped(from ?? "-")} to ${escaped(to ?? "-")}</p>`,
    `<p>${figure(total)} requests, <strong class="${refused > 0 ? "bad" : ""}">${figure(refused)} refused (${percent(share)})</strong>; ${figure(unmatched)} met no rule${malformed > 0 ? `; ${figure(malformed)} more are malformed` : ""}${counts.bad > 0 ? `; ${figure(counts.bad)} lines could not be read` : ""}.</p>`,
    chart(series),
    "<h2>Rules</h2>",
    table(
      ["rule", "mode", "asked", "refused", "share", "keys", "keys refused", "worst window"],
      rules.map((rule) => [
        escaped(rule.rule),
        escaped(rule.mode),
        figure(rule.total),
        figure(rule.refused),
        percent(rule.share),
        ...[rule.keys, rule.keysRefused].map((keys) => `${rule.exact ? "" : "at least "}${figure(keys)}`),
        worst(rule),
      ]),
      new Set([2, 3, 4, 5, 6]),
    ),
    ...rules.filter(({ topKeys }) => topKeys.length > 0).map(topKeys),
  ];
  if (against !== undefined) {
    parts.push(
      "<h2>Against the rules in force</h2>",
      `<p>The rules in force refuse ${figure(against.refused)}. ${figure(against.newlyRefused)} requests (${percent(total === 0 ? 0 : against.newlyRefused / total)}) would newly be refused, ${figure(against.newlyAdmitted)} newly admitted.</p>`,
      keyTable("newly refused", against.newlyRefusedKeys),
      keyTable("newly admitted", against.newlyAdmittedKeys),
    );
  }
  if (comeBack !== undefined) {
    parts.push(
      "<h2>If refused clients come back after Retry-After</h2>",
      `<p>${figure(comeBack.tries)} tries for ${figure(comeBack.requests)} requests: ${figure(comeBack.admittedAtOnce)} admitted at once, ${figure(comeBack.admittedLater)} later (after ${figure(comeBack.meanWaitMs / 1_000)} s on average, ${figure(comeBack.longestWaitMs / 1_000)} s at most), ${figure(comeBack.gaveUp)} give up.</p>`,
    );
  }
  return `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Sluice: simulation</title><style>${style}</style></head><body><main>${parts.join("\n")}</main></body></html>\n`;
}

function worst({ worstWindow }: RuleFigures): string {
  if (worstWindow === undefined) return "-";
  return `${figure(worstWindow.admitted)} of ${figure(worstWindow.limit)}<br><span class="dim">${escaped(worstWindow.key)}</span>`;
}

function topKeys({ rule, topKeys: keys }: RuleFigures): string {
  return `<h2>Refused most by ${escaped(rule)}</h2>${keyTable("key", keys)}`;
}

function keyTable(head: string, keys: readonly { key: string; refused: number }[]): string {
  if (keys.length === 0) return "";
  return table(
    [head, "requests"],
    keys.map(({ key, refused }) => [escaped(key), figure(refused)]),
    new Set([1]),
  );
}

function table(head: readonly string[], rows: readonly (readonly string[])[], numeric: ReadonlySet<number>): string {
  const cell = (tag: "td" | "th", text: string, at: number): string =>
    `<${tag}${numeric.has(at) ? ' class="n"' : ""}>${text}</${tag}>`;
  const line = (tag: "td" | "th", cells: readonly string[]): string =>
    `<tr>${cells.map((text, at) => cell(tag, text, at)).join("")}</tr>`;
  return `<div class="scroll"><table><thead>${line("th", head)}</thead><tbody>${rows.map((row) => line("td", row)).join("")}</tbody></table></div>`;
}

const WIDTH = 960;
const HEIGHT = 220;
const BOTTOM = 24;
const TOP = 16;

/** Stacked columns: admitted below, refused on top. */
function chart(series: Series): string {
  const { stepMs, rows } = series;
  const highest = Math.max(0, ...rows.map(([requests]) => requests!));
  if (highest === 0) return "";
  const step = WIDTH / rows.length;
  const scale = (HEIGHT - BOTTOM - TOP) / highest;
  const bar = (at: number, from: number, count: number, colour: string): string =>
    count === 0
      ? ""
      : `<rect x="${(at * step).toFixed(1)}" y="${(HEIGHT - BOTTOM - (from + count) * scale).toFixed(1)}" width="${Math.max(0.5, step - 0.5).toFixed(1)}" height="${(count * scale).toFixed(1)}" fill="var(${colour})"/>`;
  const bars = rows.map(
    ([requests, refused], at) =>
      bar(at, 0, requests! - refused!, "--ok") + bar(at, requests! - refused!, refused!, "--bad"),
  );
  const { from, to } = endsOf(series);
  return `<svg viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img" aria-label="Requests over time, refused ones on top">${bars.join("")}<text x="0" y="11">${figure((highest * 1000) / stepMs)}/s</text><text x="0" y="${HEIGHT - 6}">${from} UTC</text><text x="${WIDTH}" y="${HEIGHT - 6}" text-anchor="end">${to} UTC</text><text x="${WIDTH}" y="11" text-anchor="end"><tspan fill="var(--ok)">■</tspan> admitted <tspan fill="var(--bad)">■</tspan> refused</text></svg>`;
}

const entities: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (character) => entities[character]!);
}
