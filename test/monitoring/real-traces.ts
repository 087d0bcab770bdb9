/**
 * Labelled series of real traffic (Numenta Anomaly Benchmark) as the detectors would have seen them, minute by minute.
 * In: counts by the step of the recording, and the labelled windows. Out: which windows an alert began in, and alerts outside of any.
 */
import { readFileSync } from "node:fs";
import { AlertBook } from "../../packages/server/src/monitoring/alerts/alert-book.js";
import { MINUTE_MS } from "../../packages/server/src/monitoring/alerts/series-window.js";
import { unusualRate } from "../../packages/server/src/monitoring/alerts/unusual-rate.js";
import type { AlertKind } from "../../packages/server/src/monitoring/views/alerts.js";
import { DAY, type Traffic, windowAt, withQuarters } from "./synthetic-traffic.js";

export interface Trace {
  readonly name: string;
  /** Of the first count, from midnight of its day. */
  readonly firstMinute: number;
  readonly stepMinutes: number;
  readonly counts: readonly number[];
  /** Labelled, in minutes from the same midnight; both ends included. */
  readonly windows: readonly (readonly [from: number, to: number])[];
}

export interface Measured {
  readonly windows: number;
  readonly found: number;
  /** Alerts that began outside of every window. */
  readonly falseAlarms: number;
  readonly days: number;
}

const judged: ReadonlySet<AlertKind> = new Set(["unusual-rate"]);

/** `times`: the same shape at another volume. A step's count is spread evenly over its minutes. */
function minutesOf({ firstMinute, stepMinutes, counts }: Trace, times: number): Traffic {
  const checks = new Float64Array(firstMinute + counts.length * stepMinutes);
  for (const [i, count] of counts.entries()) {
    const from = firstMinute + i * stepMinutes;
    checks.fill((count * times) / stepMinutes, from, from + stepMinutes);
  }
  return withQuarters({ checks, refused: new Float64Array(checks.length) });
}

/**
 * From the third day on: before that, the detectors have no earlier days to compare with.
 * `above`: as `detectors: [{ kind: unusual-rate, above }]` of the alert policy.
 */
export function measure(trace: Trace, { times = 1, above }: { times?: number; above?: number } = {}): Measured {
  const series = minutesOf(trace, times);
  const from = trace.firstMinute + 2 * DAY + 60;
  const windows = trace.windows.filter(([, to]) => to >= from);
  const hit = new Set<number>();
  let falseAlarms = 0;
  const book = new AlertBook();
  for (let minute = from; minute <= series.checks.length; minute++) {
    const finding = unusualRate(windowAt(series, minute, minute - trace.firstMinute), "r", {
      ...(above !== undefined && { above }),
    });
    const findings = finding === undefined ? [] : [finding];
    const { began } = book.judge({ findings, judged, nowMs: minute * MINUTE_MS });
    if (began.length === 0) continue;
    const at = windows.findIndex(([start, end]) => minute >= start && minute <= end);
    if (at < 0) falseAlarms++;
    else hit.add(at);
  }
  return { windows: windows.length, found: hit.size, falseAlarms, days: (series.checks.length - from) / DAY };
}

/** A file of the folder `traces`. */
export function readTrace(name: string): Trace {
  const text = readFileSync(new URL(`./traces/${name}.txt`, import.meta.url), "utf8");
  const [first, windows, ...days] = text.trimEnd().split("\n");
  const [, firstMinute, stepMinutes] = /^first minute (\d+), step (\d+) minutes$/.exec(first!)!;
  return {
    name,
    firstMinute: Number(firstMinute),
    stepMinutes: Number(stepMinutes),
    counts: days.flatMap((day) => day.split(" ").map(Number)),
    windows: Array.from(windows!.matchAll(/(\d+)-(\d+)/g), ([, from, to]) => [Number(from), Number(to)] as const),
  };
}

const tickers = ["AAPL", "AMZN", "CRM", "CVS", "FB", "GOOG", "IBM", "KO", "PFE", "UPS"];
/** The series of the benchmark that count something by the time: requests, messages, passengers. */
const countSeries: readonly (readonly [file: string, stepMinutes: number])[] = [
  ["realAWSCloudwatch/elb_request_count_8c0756.csv", 5],
  ...tickers.map((ticker) => [`realTweets/Twitter_volume_${ticker}.csv`, 5] as const),
  ["realKnownCause/nyc_taxi.csv", 30],
];

/** From a checkout of the benchmark. A step that is missing (8 of them, in one series) repeats the one before. */
export function readBenchmark(folder: string): Trace[] {
  const labels = JSON.parse(readFileSync(`${folder}/labels/combined_windows.json`, "utf8"));
  return countSeries.map(([file, stepMinutes]) => {
    const rows = readFileSync(`${folder}/data/${file}`, "utf8")
      .trim()
      .split("\n")
      .slice(1)
      .map((row) => row.split(","));
    const midnight = Math.floor(minuteOf(rows[0]![0]!) / DAY) * DAY;
    const stepOf = (time: string): number => Math.floor((minuteOf(time) - midnight) / stepMinutes);
    const first = stepOf(rows[0]![0]!);
    const counts: number[] = [];
    for (const [time, value] of rows) {
      const at = stepOf(time!) - first;
      while (counts.length < at) counts.push(counts.at(-1)!);
      counts[at] = Math.round(Number(value));
    }
    const windows = (labels[file] as [string, string][]).map(
      ([from, to]) => [Math.round(minuteOf(from) - midnight), Math.round(minuteOf(to) - midnight)] as const,
    );
    return { name: file.replace(/.*\/|\.csv$/g, ""), firstMinute: first * stepMinutes, stepMinutes, counts, windows };
  });
}

/** "2014-04-10 00:04:00", with or without a fraction; the benchmark names no zone. */
function minuteOf(time: string): number {
  return Date.parse(`${time.slice(0, 19).replace(" ", "T")}Z`) / MINUTE_MS;
}
