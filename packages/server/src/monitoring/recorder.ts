/**
 * Brings what this instance counted into the history, once a second: the difference between two readings of `traffic.ts`.
 * Nothing on the path of a request waits for it. What cannot be written is lost, and counted by the history; this instance's own history,
 * which lies in its memory, has it.
 * Beside the counts it writes a sign of life, and every few seconds the top keys and the names of attributes.
 */
import { randomBytes } from "node:crypto";
import { performance } from "node:perf_hooks";
import type { Limiter } from "sluice";
import type { Log } from "../log.js";
import { CountedSince } from "./counted-since.js";
import { type History, stepAt } from "./history/history.js";
import { InstanceText } from "./history/instance-text.js";
import type { StoreOutage } from "./store-outage.js";
import { causeInWords } from "./store-outage.js";
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
/** Names of attributes, as JSON: see `read-attributes.ts`. */
export const ATTRIBUTES_PREFIX = "attributes:";
/** An instance that was not heard of for this long is gone. */
const PRESENCE_MS = 10_000;
const QUARTER_KEYS_EVERY = 5;
const HOUR_KEYS_EVERY = 60;
const ATTRIBUTES_EVERY = 5;
const ATTRIBUTES_KEEP_MS = 24 * 3_600_000;
/** As often as they are written though nothing is new: so they outlive the instance by most of a day. */
const ATTRIBUTES_AGAIN = 3_600;

/** A timer may come a moment early: what it brings is of the second that is about to end, not of the one before. */
const EARLY_MS = 50;

export interface Recorder {
  /** Of this instance, as of the last second. */
  presence(): Presence;
  /** Writes what was not written yet. */
  close(): Promise<void>;
}

export interface RecorderOptions {
  readonly limiter: Limiter;
  readonly traffic: Traffic;
  /** Of all instances. */
  readonly history: History;
  /** Of this one alone, in its memory; absent where the other is that already. */
  readonly own: History | undefined;
  readonly outage: StoreOutage;
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
        void recording.note();
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
    presence: () => recording.presence,
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
  readonly #presence: InstanceText;
  readonly #forAll: CountedSince;
  readonly #forOwn: CountedSince;
  readonly #attributes: InstanceText;
  #attributesText = "";
  #loopBefore = performance.eventLoopUtilization();
  #last: Presence;
  #ticks = 0;
  #periodMs = Date.now();
  #quarterText: InstanceText;
  #hourText: InstanceText;
  #failing = false;

  constructor(options: RecorderOptions) {
    this.#options = options;
    this.#presence = new InstanceText(options.history, `${PRESENCE_PREFIX}${this.#instance}`);
    this.#quarterText = this.#keysText("hour");
    this.#hourText = this.#keysText("day");
    this.#attributes = new InstanceText(options.history, `${ATTRIBUTES_PREFIX}${this.#instance}`);
    this.#forAll = new CountedSince(options.traffic, options.limiter, this.#periodMs);
    this.#forOwn = new CountedSince(options.traffic, options.limiter, this.#periodMs);
    this.#last = this.#present(this.#periodMs);
  }

  get presence(): Presence {
    return { ...this.#last, store: this.#state() };
  }

  /** What this instance keeps for itself: each second, however long the history of all takes. */
  async note(): Promise<void> {
    const nowMs = Date.now();
    this.#options.traffic.attributes.nextSecond();
    this.#last = this.#present(nowMs);
    const { own } = this.#options;
    if (own === undefined) return;
    const { counts, seconds } = await this.#forOwn.next(nowMs);
    await own.add(nowMs + EARLY_MS - 1_000, counts, seconds);
  }

  async tick(): Promise<void> {
    const nowMs = Date.now();
    this.#ticks++;
    const { counts, seconds } = await this.#forAll.next(nowMs);
    await this.#options.history.add(nowMs + EARLY_MS - 1_000, counts, seconds);
    await this.#told(async () => {
      await this.#presence.write(JSON.stringify(this.presence), PRESENCE_MS);
      await this.#writeKeys(nowMs);
      await this.#writeAttributes();
    });
  }

  async end(): Promise<void> {
    const { counts } = await this.#forAll.next(Date.now());
    await this.#options.history.add(Date.now(), counts);
    await this.#told(() => this.#writeBoth(this.#options.traffic.topKeys));
  }

  /** The first of several failures in a row is told. */
  async #told(work: () => Promise<void>): Promise<void> {
    try {
      await work();
      this.#failing = false;
    } catch (error) {
      const told = { cause: causeInWords(String(error)), error: String(error) };
      if (!this.#failing) this.#options.log.warn("the monitoring history cannot be reached", told);
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
      store: this.#state(),
    };
  }

  #state(): Presence["store"] {
    return this.#options.outage.sinceMs === undefined ? "up" : "degraded";
  }

  async #writeAttributes(): Promise<void> {
    if (this.#ticks % ATTRIBUTES_EVERY !== 0) return;
    const { names, isComplete } = this.#options.traffic.attributes;
    const text = JSON.stringify({ names, isComplete });
    if (names.length === 0 || (text === this.#attributesText && this.#ticks % ATTRIBUTES_AGAIN !== 0)) return;
    await this.#attributes.write(text, ATTRIBUTES_KEEP_MS);
    this.#attributesText = text;
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

  #keysText(window: keyof typeof periods): InstanceText {
    const name = `${periods[window].prefix}${startOf(window, this.#periodMs)}:${this.#instance}`;
    return new InstanceText(this.#options.history, name);
  }
}

function startOf(window: keyof typeof periods, atMs: number): number {
  return atMs - (atMs % periods[window].lengthMs);
}

async function writeSummary(text: InstanceText, summary: string, window: keyof typeof periods): Promise<void> {
  const { lengthMs, reachMs } = periods[window];
  await text.write(summary, reachMs + 2 * lengthMs);
}
