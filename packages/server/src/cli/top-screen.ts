/**
 * The screen of `sluice top`: figures in, lines of text out. Pure.
 * Untrusted names are made printable.
 */
import type { TopKeysView } from "../monitoring/views/keys.js";
import type { LiveView } from "../monitoring/views/stats.js";
import { printable } from "../printable.js";
import { rate, figure as spellFigure, share as spellShare } from "./print.js";

interface Screen {
  readonly server: string;
  /** Newest last. */
  readonly views: readonly LiveView[];
  readonly topKeys: TopKeysView | undefined;
  /** Why the figures are stale; undefined while they are current. */
  readonly stale: string | undefined;
  readonly columns: number;
  readonly rows: number;
}

interface Paint {
  bold(text: string): string;
  dim(text: string): string;
  red(text: string): string;
  green(text: string): string;
  yellow(text: string): string;
}

const LEVELS = "▁▂▃▄▅▆▇█";
const SPARK_COLUMNS = 24;
const LEAST_COLUMNS = 60;

export function drawTop(screen: Screen, paint: Paint): string[] {
  const columns = Math.max(LEAST_COLUMNS, screen.columns);
  const last = screen.views.at(-1);
  const title = `sluice top · ${printable(screen.server)}`;
  const stale = screen.stale === undefined ? undefined : printable(screen.stale);
  if (last === undefined) return [paint.bold(title), "", stale ?? "waiting for the first second …"];
  const lines = [
    spread(paint.bold(title), `${new Date(last.atMs).toISOString().slice(11, 19)} UTC`, columns, title.length),
    stale === undefined ? "" : paint.yellow(`STALE: ${stale}`),
    ...summaryLines(screen.views, last, paint),
    "",
  ];
  const left = Math.max(6, screen.rows - lines.length - 4);
  const ruleRows = Math.max(3, Math.ceil(left / 2));
  lines.push(...ruleLines(last, { columns, rows: ruleRows, paint }), "");
  if (screen.topKeys !== undefined)
    lines.push(...keyLines(screen.topKeys, { columns, rows: Math.max(3, left - ruleRows), paint }));
  return lines;
}

function summaryLines(views: readonly LiveView[], last: LiveView, paint: Paint): string[] {
  const { allowedPerSecond: allowed, refusedPerSecond: refused, latency, store } = last;
  const share = refused === 0 ? "" : ` (${spellShare(refused / (allowed + refused))})`;
  const spark = (read: (view: LiveView) => number): string => sparkline(views.map(read));
  const mode = (on: boolean, text: string): string => (on ? paint.red(text) : paint.green(text));
  return [
    `${label("allowed")}${rate(allowed).padStart(9)}/s  ${paint.green(spark((view) => view.allowedPerSecond))}`,
    `${label("refused")}${rate(refused).padStart(9)}/s  ${paint.red(spark((view) => view.refusedPerSecond))}${share}`,
    `${label("latency")}${figure(latency.p99Ms)} ms ${spark((view) => view.latency.p99Ms)} p99; p50 ${latency.p50Ms} ms`,
    `${label("shadow")}${rate(last.shadowRefusedPerSecond).padStart(9)}/s  would be refused; by a failure policy ${rate(last.degradedPerSecond)}/s`,
    "",
    [
      `store ${printable(store.kind)} ${mode(store.state === "degraded", storeWords(store))}`,
      `alerts ${mode(last.alertsFiring > 0, `${last.alertsFiring} firing`)}`,
      `event loop ${Math.round(100 * last.eventLoopUtilisation)} %`,
      last.scope === "instance" ? paint.yellow("this instance alone") : `instances ${last.instances}`,
      `rules version ${last.rulesVersion}`,
    ].join(" · "),
  ];
}

function storeWords({ state, outage }: LiveView["store"]): string {
  if (outage === undefined) return state;
  return `${outage.partial ? "answers most calls" : state} (${printable(outage.cause)})`;
}

function ruleLines(
  { rules }: LiveView,
  { columns, rows, paint }: { columns: number; rows: number; paint: Paint },
): string[] {
  const name = nameColumns(columns);
  const head = `${"busiest rules".padEnd(name)}${"allowed/s".padStart(11)}${"refused/s".padStart(11)}`;
  if (rules.length === 0) return [paint.bold(head), paint.dim("no rule was checked in this second")];
  const room = columns - head.length - 2;
  const most = Math.max(...rules.map(({ allowed, refused }) => allowed + refused), 1);
  const shown = rules.slice(0, rows).map(({ rule, allowed, refused }) => {
    const bar = (count: number): string => "█".repeat(Math.round((room * count) / most));
    const red = refused > 0 ? paint.red(bar(refused) || "▏") : "";
    return `${cut(printable(rule), name).padEnd(name)}${figure(allowed, 11)}${figure(refused, 11)}  ${paint.green(bar(allowed))}${red}`;
  });
  return [paint.bold(head), ...shown];
}

function keyLines(
  view: TopKeysView,
  { columns, rows, paint }: { columns: number; rows: number; paint: Paint },
): string[] {
  const numbers = 11 + 11 + 8;
  const name = columns - numbers;
  const error = view.maxError === 0 ? "exact" : `at most ${spellFigure(view.maxError)} too high`;
  const title = `top keys, last ${view.window} (${error})`;
  const head = `${cut(title, name).padEnd(name)}${"checks".padStart(11)}${"refused".padStart(11)}${"peak".padStart(8)}`;
  const shown = view.keys.slice(0, rows).map(({ rule, attributes, count, refused, peakUtilisation }) => {
    const key = Object.entries(attributes).map(([attribute, value]) => `${attribute}=${value}`);
    const text = cut(printable([rule, ...key].join(" ")), name).padEnd(name);
    const peak = spellShare(peakUtilisation).padStart(8);
    return `${text}${figure(count, 11)}${refused > 0 ? paint.red(figure(refused, 11)) : figure(0, 11)}${peak}`;
  });
  return [
    paint.bold(head),
    ...(shown.length === 0 ? [paint.dim("none yet: they are written every few seconds")] : shown),
  ];
}

/** One line per second, for a pipe. */
export function lineOf(view: LiveView): string {
  const { allowedPerSecond, refusedPerSecond, shadowRefusedPerSecond, degradedPerSecond, latency, store } = view;
  return [
    new Date(view.atMs).toISOString(),
    `allowed=${allowedPerSecond}`,
    `refused=${refusedPerSecond}`,
    `shadowRefused=${shadowRefusedPerSecond}`,
    `degraded=${degradedPerSecond}`,
    `p50Ms=${latency.p50Ms}`,
    `p99Ms=${latency.p99Ms}`,
    `store=${store.state}`,
    `alerts=${view.alertsFiring}`,
  ].join("  ");
}

export function sparkline(values: readonly number[]): string {
  const shown = values.slice(-SPARK_COLUMNS);
  const most = Math.max(...shown, 0);
  const bars = shown.map((value) =>
    most === 0 ? LEVELS[0] : LEVELS[Math.round((value / most) * (LEVELS.length - 1))],
  );
  return bars.join("").padStart(SPARK_COLUMNS);
}

function label(text: string): string {
  return text.padEnd(9);
}

function figure(value: number, columns = 9): string {
  return spellFigure(value).padStart(columns);
}

function cut(text: string, columns: number): string {
  const characters = Array.from(text);
  return characters.length < columns ? text : `${characters.slice(0, columns - 2).join("")}… `;
}

function nameColumns(columns: number): number {
  return Math.min(34, Math.floor(columns * 0.4));
}

function spread(left: string, right: string, columns: number, leftColumns: number): string {
  return left + right.padStart(Math.max(right.length + 1, columns - leftColumns));
}
