/**
 * Brings what this instance counted into the history, once a second: the difference between two readings of `traffic.ts`.
 * Nothing on the path of a request waits for it. What cannot be written is lost, and counted by the history.
 * Beside the counts it writes a sign of life, and every few seconds the top keys.
 */
import { randomBytes } from "node:crypto";
import { performance } from "node:perf_hooks";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { Limiter } from "sluice";
import type { Log } from "../log.js";
import type { RuleTotals } from "./decision-counts.js";
import {
  type Counted,
  type History,
  OTHER_SERIES,
  type SeriesCounts,
  seriesOfRule,
  stepAt,
  TOTAL_SERIES,
} from "./history/history.js";
import { OwnText } from "./history/own-text.js";
import { latencyNames } from "./latency-buckets.js";
import { spellSummary } from "./top-keys/key-summary.js";
import { periods } from "./top-keys/read-top-keys.js";
import type { TopKeys } from "./top-keys/top-keys.js";
import type { Traffic } from "./traffic.js";

/** What an instance says of itself every second, under `instance:<id>`. */
export interface Presence {
  readonly atMs: number;
  readonly rulesVersion: number;
  readonly eventLoopUtilisation: number;
  readonly store: "up" | "degraded";
}

export const PRESENCE_PREFIX = "instance:";
/** An instance that was not heard of for this long is gone. */
const PRESENCE_MS = 10_000;
const QUARTER_KEYS_EVERY = 5;
const HOUR_KEYS_EVERY = 60;

/** A timer may come a moment early: what it brings is of the second that is about to end, not of the one before. */
const EARLY_MS = 50;

const RULES_AT_ONCE = 50;

/** In the order in which they are read below. */
const totalNames: readonly Counted[] = [
  "allowed",
  "refused",
  "shadowRefused",
  "degraded",
  "storeErrors",
  ...latencyNames,
];
const ruleNames: readonly Counted[] = [
  "allowed",
  "refused",
  "shadowRefused",
  "candidateAllowed",
  "candidateRefused",
  ...Array.from({ length: 10 }, (_, i): Counted => `use0${i}` as Counted),
];

export interface Recorder {
  /** Writes what was not written yet. */
  close(): Promise<void>;
}

export interface RecorderOptions {
  readonly limiter: Limiter;
  readonly traffic: Traffic;
  readonly history: History;
  readonly log: Log;
}

export function startRecorder(options: RecorderOptions): Recorder {
  const recording = new Recording(options);
  let timer: NodeJS.Timeout;
  let underWay: Promise<void> | undefined;
  const next = (): void => {
    // At the beginning of each second, for the one that has just ended.
    timer = setTimeout(
      () => {
        next();
        // A history that answers late is not asked by ever more writes at once; what was counted meanwhile comes with the next one.
        underWay ??= recording.tick().finally(() => {
          underWay = undefined;
        });
      },
      1_000 - (Date.now() % 1_000),
    );
    timer.unref();
  };
  next();
  return {
    async close() {
      clearTimeout(timer);
      await underWay;
      await recording.end();
    },
  };
}

class Recording {
  readonly #options: RecorderOptions;
  readonly #instance = randomBytes(9).toString("base64url");
  readonly #presence: OwnText;
  readonly #before = new Map<string, readonly number[]>();
  #loopBefore = performance.eventLoopUtilization();
  #store: Presence["store"] = "up";
  #ticks = 0;
  #periodMs = Date.now();
  #quarterText: OwnText;
  #hourText: OwnText;
  #failing = false;

  constructor(options: RecorderOptions) {
    this.#options = options;
    this.#presence = new OwnText(options.history, `${PRESENCE_PREFIX}${this.#instance}`);
    this.#quarterText = this.#keysText("hour");
    this.#hourText = this.#keysText("day");
    options.limiter.on("degraded", () => {
      this.#store = "degraded";
    });
    options.limiter.on("recovered", () => {
      this.#store = "up";
    });
  }

  async tick(): Promise<void> {
    const nowMs = Date.now();
    this.#ticks++;
    await this.#options.history.add(nowMs + EARLY_MS - 1_000, await this.#counted());
    await this.#told(async () => {
      await this.#presence.write(JSON.stringify(this.#present(nowMs)), PRESENCE_MS);
      await this.#writeKeys(nowMs);
    });
  }

  async end(): Promise<void> {
    await this.#options.history.add(Date.now(), await this.#counted());
    await this.#told(() => this.#writeBoth(this.#options.traffic.topKeys));
  }

  /** The first of several failures in a row is told. */
  async #told(work: () => Promise<void>): Promise<void> {
    try {
      await work();
      this.#failing = false;
    } catch (error) {
      if (!this.#failing) this.#options.log.warn("the monitoring history cannot be reached", { error: String(error) });
      this.#failing = true;
    }
  }

  #present(atMs: number): Presence {
    const now = performance.eventLoopUtilization();
    const { utilization } = performance.eventLoopUtilization(now, this.#loopBefore);
    this.#loopBefore = now;
    return {
      atMs,
      rulesVersion: this.#options.limiter.rulesVersion,
      eventLoopUtilisation: Math.round(utilization * 1_000) / 1_000,
      store: this.#store,
    };
  }

  /** What came since the call before. In slices, between which checks are answered: there may be a thousand rules. */
  async #counted(): Promise<SeriesCounts[]> {
    const { decisions, requests } = this.#options.traffic;
    const { allowed, refused, shadowRefused, degraded } = decisions.requests;
    const byPolicy = degraded.allow + degraded.deny + degraded.local;
    const storeErrors = this.#options.limiter.storeStats()?.errors ?? 0;
    const total = [allowed, refused, shadowRefused, byPolicy, storeErrors, ...requests.latencies()];
    const counted: SeriesCounts[] = [];
    this.#addSince(counted, { series: TOTAL_SERIES, names: totalNames, now: total });
    let rules = 0;
    for (const totals of decisions.totals()) {
      this.#addSince(counted, { series: seriesOf(totals.rule), names: ruleNames, now: valuesOf(totals) });
      if (++rules % RULES_AT_ONCE === 0) await nextTurn();
    }
    return counted;
  }

  #addSince(
    counted: SeriesCounts[],
    read: { series: string; names: readonly Counted[]; now: readonly number[] },
  ): void {
    const { series, names, now } = read;
    const before = this.#before.get(series);
    this.#before.set(series, now);
    const counts: Partial<Record<Counted, number>> = {};
    let came = false;
    for (let i = 0; i < names.length; i++) {
      const difference = now[i]! - (before?.[i] ?? 0);
      if (difference <= 0) continue;
      counts[names[i]!] = difference;
      came = true;
    }
    if (came) counted.push({ series, counts });
  }

  async #writeKeys(nowMs: number): Promise<void> {
    const { topKeys } = this.#options.traffic;
    if (stepAt("quarter", nowMs) !== stepAt("quarter", this.#periodMs)) {
      await this.#writeBoth(topKeys);
      const endsHour = startOf("day", nowMs) !== startOf("day", this.#periodMs);
      topKeys.endQuarter({ endsHour });
      this.#periodMs = nowMs;
      this.#quarterText = this.#keysText("hour");
      if (endsHour) this.#hourText = this.#keysText("day");
    } else if (this.#ticks % HOUR_KEYS_EVERY === 0) await this.#writeBoth(topKeys);
    else if (this.#ticks % QUARTER_KEYS_EVERY === 0) await this.#writeQuarter(topKeys);
  }

  async #writeBoth(topKeys: TopKeys): Promise<void> {
    await this.#writeQuarter(topKeys);
    await writeSummary(this.#hourText, spellSummary(topKeys.hour()), "day");
  }

  async #writeQuarter(topKeys: TopKeys): Promise<void> {
    await writeSummary(this.#quarterText, spellSummary(topKeys.quarter()), "hour");
  }

  #keysText(window: keyof typeof periods): OwnText {
    const name = `${periods[window].prefix}${startOf(window, this.#periodMs)}:${this.#instance}`;
    return new OwnText(this.#options.history, name);
  }
}

function startOf(window: keyof typeof periods, atMs: number): number {
  return atMs - (atMs % periods[window].lengthMs);
}

async function writeSummary(text: OwnText, summary: string, window: keyof typeof periods): Promise<void> {
  const { lengthMs, reachMs } = periods[window];
  await text.write(summary, reachMs + 2 * lengthMs);
}

function seriesOf(rule: string): string {
  return rule === OTHER_SERIES ? OTHER_SERIES : seriesOfRule(rule);
}

function valuesOf(totals: RuleTotals): number[] {
  const { allowed, refused, shadowRefused, candidateAllowed, candidateRefused, use } = totals;
  return [allowed, refused, shadowRefused, candidateAllowed, candidateRefused, ...use];
}
