/**
 * Brings what this instance counted into the history, once a second: the difference between two readings of `traffic.ts`.
 * Nothing on the path of a request waits for it. The recorder drops what it cannot write, and the history counts the loss; this instance's own history,
 * which lies in its memory, has it.
 * Every few seconds it also writes this instance's top keys and names of attributes into the shared state.
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

/** Names of attributes, as JSON: see `read-attributes.ts`. */
export const ATTRIBUTES_PREFIX = "attributes:";
const QUARTER_KEYS_EVERY = 5;
const HOUR_KEYS_EVERY = 60;
const ATTRIBUTES_EVERY = 5;
const ATTRIBUTES_KEEP_MS = 24 * 3_600_000;
/** As often as they are written though nothing is new: so they outlive the instance by most of a day. */
const ATTRIBUTES_AGAIN = 3_600;

/** A timer may come a moment early: what it brings is of the second that is about to end, not of the one before. */
const EARLY_MS = 50;

interface Recorder {
  /** Writes what was not written yet. */
  close(): Promise<void>;
}

interface RecorderOptions {
  readonly limiter: Limiter;
  readonly traffic: Traffic;
  /** Of all instances. */
  readonly history: History;
  /** Of this one alone, in its memory; absent where the other is that already. */
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

  /** This instance's own history: each second, however long the shared history takes. */
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

  /** The first of several failures in a row is told. */
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
