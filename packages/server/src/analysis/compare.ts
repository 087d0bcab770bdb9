/**
 * Measures the paper's two tables: what each algorithm admits and refuses of the same load, and its cost on a real Redis. In: a limit, a
 * window, a load, and optionally a Redis. Out: a row per algorithm and storage.
 */
import type { CountingRule, Rule } from "sluice";
import { type Measured, measureRules } from "./measure-redis.js";
import { type Arrival, Replay, type Replayed } from "./replay.js";
import { WorstWindow } from "./worst-window.js";

interface CompareOptions {
  readonly limit: number;
  readonly window: string;
  readonly windowMs: number;
  /** The key attributes. */
  readonly key: readonly string[];
  /** Read only once for all algorithms, as standard input cannot be read again. */
  readonly load: AsyncIterable<Arrival> | Iterable<Arrival>;
  /** Absent: no measurements on Redis. */
  readonly store?: string | undefined;
  readonly requests: number;
  /** Called before each algorithm is measured on Redis. */
  readonly onMeasure?: (algorithm: string) => void;
}

export interface ComparedRow {
  readonly algorithm: string;
  readonly requests: number;
  readonly refused: number;
  /** The most that one key was admitted in any rolling window, and the excess over the limit; absent for concurrency limits. */
  readonly worstWindow?: number;
  readonly overLimit?: number;
  /** `MEMORY USAGE` of a key at its limit. */
  readonly bytesPerKey?: number;
  readonly microseconds?: number;
  readonly scriptMicroseconds?: number;
  readonly commands?: number;
  /** The paper's memory per user and its rating of the accuracy (section 2.4); absent if it has none. */
  readonly paperBytes?: number;
  readonly paperAccuracy?: string;
}

export interface Compared {
  readonly limit: number;
  readonly window: string;
  readonly redisVersion?: string;
  readonly rows: readonly ComparedRow[];
}

interface PaperFigures {
  readonly accuracy: string;
  /** Bytes per user, from the paper's memory table; L is the limit, C the places. */
  readonly bytes: (limit: number) => number;
}

const rolling: PaperFigures = { accuracy: "high", bytes: (limit) => 8 * limit };
const contestants: readonly {
  readonly name: string;
  readonly numbers: (options: CompareOptions) => object;
  readonly paper?: PaperFigures;
}[] = [
  {
    name: "token-bucket",
    numbers: ({ window }) => ({ algorithm: "token-bucket", window }),
    paper: { accuracy: "medium", bytes: () => 16 },
  },
  { name: "gcra", numbers: ({ window }) => ({ algorithm: "gcra", window }) },
  {
    name: "fixed-window",
    numbers: ({ window }) => ({ algorithm: "fixed-window", window }),
    paper: { accuracy: "low", bytes: () => 16 },
  },
  { name: "sliding-counter", numbers: ({ window }) => ({ algorithm: "sliding-counter", window }) },
  {
    name: "rolling-window, packed",
    numbers: ({ window }) => ({ algorithm: "rolling-window", window, storage: "packed" }),
    paper: rolling,
  },
  {
    name: "rolling-window, sorted-set",
    numbers: ({ window }) => ({ algorithm: "rolling-window", window, storage: "sorted-set" }),
    paper: rolling,
  },
  {
    name: "concurrency",
    numbers: ({ window }) => ({ algorithm: "concurrency", ttl: window }),
    paper: { accuracy: "high", bytes: (limit) => 16 * limit },
  },
];

const MEASURED_KEYS = 200;
const VALUE_LENGTH = 16;

export async function compareAlgorithms(options: CompareOptions): Promise<Compared> {
  const { key, limit, store, window } = options;
  const rules = contestants.map(
    ({ numbers }) => ({ id: "compared", key, limit, ...numbers(options) }) as unknown as CountingRule,
  );
  const replayed = await replayAll(rules, options);
  const rows: ComparedRow[] = [];
  let redisVersion: string | undefined;
  for (const [i, { name, paper }] of contestants.entries()) {
    const rule = rules[i]!;
    if (store !== undefined) options.onMeasure?.(name);
    const measured = store === undefined ? undefined : await measure(rule, store, options.requests);
    redisVersion ??= measured?.redisVersion;
    rows.push({
      algorithm: name,
      ...replayed[i]!,
      ...(measured && {
        bytesPerKey: Math.round(measured.bytesPerKey.get(rule.id) ?? 0),
        microseconds: measured.microseconds,
        scriptMicroseconds: measured.scriptMicroseconds,
        commands: measured.commands,
      }),
      ...(paper && { paperBytes: paper.bytes(limit), paperAccuracy: paper.accuracy }),
    });
  }
  return { limit, window, ...(redisVersion !== undefined && { redisVersion }), rows };
}

type ReplayedRow = Pick<ComparedRow, "requests" | "refused" | "worstWindow" | "overLimit">;

async function replayAll(rules: readonly Rule[], { limit, windowMs, load }: CompareOptions): Promise<ReplayedRow[]> {
  const each = rules.map((rule) => new OneRule(rule, windowMs));
  for await (const arrival of load) {
    for (const one of each) {
      const waits = one.add(arrival);
      if (waits !== undefined) await waits;
    }
  }
  return await Promise.all(each.map((one) => one.end(limit)));
}

class OneRule {
  readonly #replay: Replay;
  readonly #admitted: WorstWindow;
  readonly #hasWindow: boolean;
  #requests = 0;
  #refused = 0;

  constructor(rule: Rule, windowMs: number) {
    this.#replay = new Replay([rule]);
    this.#admitted = new WorstWindow(windowMs);
    this.#hasWindow = rule.algorithm !== "concurrency";
  }

  add(arrival: Arrival): Promise<void> | undefined {
    const replayed = this.#replay.decide(arrival);
    if (replayed instanceof Promise) return replayed.then((made) => this.#count(made));
    this.#count(replayed);
    return undefined;
  }

  #count({ decision, asked }: Replayed): void {
    this.#requests++;
    if (!decision.allowed) this.#refused++;
    else if (asked[0] !== undefined) this.#admitted.add(asked[0].key, asked[0].cost, this.#replay.nowMs);
  }

  async end(limit: number): Promise<ReplayedRow> {
    await this.#replay.close();
    const counts = { requests: this.#requests, refused: this.#refused };
    if (!this.#hasWindow) return counts;
    const worstWindow = this.#admitted.worst()?.max ?? 0;
    return { ...counts, worstWindow, overLimit: Math.max(0, worstWindow / limit - 1) };
  }
}

function measure(rule: CountingRule, url: string, requests: number): Promise<Measured> {
  const unitsOf = (): number => rule.limit;
  return measureRules({ url, rules: [rule], keys: MEASURED_KEYS, unitsOf, requests, valueLength: VALUE_LENGTH });
}
