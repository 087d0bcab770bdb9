/**
 * Writes this instance's counts to the history once a second: the difference between two readings of `traffic.ts`.
 * Never on the request path. What cannot be written is dropped and counted as lost by the history; this instance's own in-memory history
 * still has it.
 * Every few seconds it also publishes this instance's top keys and attribute names in the shared state.
 */
import type { Limiter } from "sluice";
import { causeInWords } from "../instance/failure-words.js";
import { InstanceText } from "../instance/instance-text.js";
import type { SharedState } from "../instance/shared-state.js";
import type { Log } from "../log.js";
import { CounterDeltas } from "./counter-deltas.js";
import type { History } from "./history/history.js";
import type { SharedLoad } from "./load/shared-load.js";
import { KeyTexts } from "./top-keys/key-texts.js";
import type { Traffic } from "./traffic.js";

/** Attribute names, as JSON: see `read-attributes.ts`. */
export const ATTRIBUTES_PREFIX = "attributes:";
const QUARTER_KEYS_EVERY = 5;
const HOUR_KEYS_EVERY = 60;
const ATTRIBUTES_EVERY = 5;
const ATTRIBUTES_KEEP_MS = 24 * 3_600_000;
/** How often they are rewritten even without changes, so that they outlive the instance by most of a day. */
const ATTRIBUTES_AGAIN = 3_600;

/** Timers may fire slightly early: those counts belong to the second that is about to end, not to the one before. */
const EARLY_MS = 50;

interface Recorder {
  /** Writes what has not been written yet. */
  close(): Promise<void>;
}

interface RecorderOptions {
  readonly limiter: Limiter;
  readonly traffic: Traffic;
  /** The fleet's. */
  readonly history: History;
  /** This instance's, in memory; absent if the other is that already. */
  readonly own: History | undefined;
  readonly shared: SharedState;
  readonly load: Pick<SharedLoad, "share">;
  readonly instance: string;
  readonly log: Log;
}

export function startRecorder(options: RecorderOptions): Recorder {
  const recording = new Recording(options);
  let timer: NodeJS.Timeout;
  let underWay: Promise<void> | undefined;
  const next = (): void => {
    // At the start of each second, for the previous one.
    timer = setTimeout(
      () => {
        next();
        void recording.note();
        // Do not pile up writes on a slow history; the next write includes what was counted meanwhile.
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
  readonly #forAll: CounterDeltas;
  readonly #forOwn: CounterDeltas;
  readonly #attributes: InstanceText;
  #attributesText = "";
  #ticks = 0;
  readonly #keys: KeyTexts;
  #failing = false;

  constructor(options: RecorderOptions) {
    this.#options = options;
    const { shared, instance, traffic, limiter } = options;
    const nowMs = Date.now();
    this.#keys = new KeyTexts({ topKeys: traffic.topKeys, refusals: traffic.refusals, shared, instance }, nowMs);
    this.#attributes = new InstanceText(shared, `${ATTRIBUTES_PREFIX}${instance}`);
    this.#forAll = new CounterDeltas(traffic, limiter, nowMs);
    this.#forOwn = new CounterDeltas(traffic, limiter, nowMs);
  }

  /** Updates this instance's own history each second, however slow the shared history is. */
  async note(): Promise<void> {
    const nowMs = Date.now();
    this.#options.traffic.attributes.nextSecond();
    this.#options.traffic.load.sample();
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
    await this.#loggingFailures(async () => {
      await this.#writeKeys(nowMs);
      await this.#writeAttributes();
      await this.#options.load.share();
    });
  }

  async end(): Promise<void> {
    const { counts } = await this.#forAll.next(Date.now());
    await this.#options.history.add(Date.now(), counts);
    await this.#loggingFailures(async () => {
      await this.#keys.turn(Date.now());
      await this.#keys.writeQuarter();
      await this.#keys.writeHour();
    });
  }

  /** Logs only the first of consecutive failures. */
  async #loggingFailures(work: () => Promise<void>): Promise<void> {
    try {
      await work();
      this.#failing = false;
    } catch (error) {
      const told = { cause: causeInWords(String(error)), error: String(error) };
      if (!this.#failing) this.#options.log.warn("the monitoring history cannot be reached", told);
      this.#failing = true;
    }
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
    await this.#keys.turn(nowMs);
    if (this.#ticks % QUARTER_KEYS_EVERY === 0) await this.#keys.writeQuarter();
    if (this.#ticks % HOUR_KEYS_EVERY === 0) await this.#keys.writeHour();
  }
}
