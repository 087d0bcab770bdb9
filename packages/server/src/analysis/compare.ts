/**
 * The paper's two tables, measured: what each algorithm admits and refuses of one load, and what it takes on a real Redis. In: a limit, a
 * window, a load, and a Redis if there is one. Out: a row for each algorithm and storage.
 */
import type { CountingRule, Rule } from "sluice";
import { type Measured, measureRules } from "./measure-redis.js";
import { type Arrival, Replay } from "./replay.js";
import { RollingMaxima } from "./rolling-maxima.js";

interface CompareOptions {
  readonly limit: number;
  readonly window: string;
  readonly windowMs: number;
  /** The attributes that counters are kept for. */
  readonly key: readonly string[];
  /** Called once for each algorithm: a load that can be had again. */
  readonly load: () => AsyncIterable<Arrival> | Iterable<Arrival>;
  /** Absent: nothing is measured on Redis. */
  readonly store?: string | undefined;
  readonly requests: number;
}

export interface ComparedRow {
  readonly algorithm: string;
  readonly requests: number;
  readonly refused: number;
  /** The most that one key was admitted in any rolling window, and how far beyond the limit that is; absent for places. */
  readonly worstWindow?: number;
  readonly overLimit?: number;
  /** `MEMORY USAGE` of a key at its limit. */
  readonly bytesPerKey?: number;
  readonly microseconds?: number;
  readonly scriptMicroseconds?: number;
  readonly commands?: number;
  /** The paper's figure for the memory of one user, and its word for the accuracy (section 2.4); absent for what it does not have. */
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
  /** Bytes a user, from its table of memory; L is the limit, C the places. */
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
  const rows: ComparedRow[] = [];
  let redisVersion: string | undefined;
  for (const { name, numbers, paper } of contestants) {
    const rule = { id: "compared", key: options.key, limit: options.limit, ...numbers(options) } as CountingRule;
    const replayed = await replay(rule, options);
    const measured = options.store === undefined ? undefined : await measure(rule, options.store, options.requests);
    redisVersion ??= measured?.redisVersion;
    rows.push({
      algorithm: name,
      ...replayed,
      ...(measured && {
        bytesPerKey: Math.round(measured.bytesPerKey.get(rule.id) ?? 0),
        microseconds: measured.microseconds,
        scriptMicroseconds: measured.scriptMicroseconds,
        commands: measured.commands,
      }),
      ...(paper && { paperBytes: paper.bytes(options.limit), paperAccuracy: paper.accuracy }),
    });
  }
  return { limit: options.limit, window: options.window, ...(redisVersion !== undefined && { redisVersion }), rows };
}

async function replay(
  rule: Rule,
  { limit, windowMs, load }: CompareOptions,
): Promise<Pick<ComparedRow, "requests" | "refused" | "worstWindow" | "overLimit">> {
  const replayed = new Replay([rule]);
  const admitted = new RollingMaxima(windowMs, "worst");
  let requests = 0;
  let refused = 0;
  for await (const arrival of load()) {
    const { decision, asked } = await replayed.decide(arrival);
    requests++;
    if (!decision.allowed) refused++;
    else if (asked[0] !== undefined) admitted.add(asked[0].key, asked[0].cost, replayed.nowMs);
  }
  await replayed.close();
  if (rule.algorithm === "concurrency") return { requests, refused };
  const worstWindow = admitted.worst()?.max ?? 0;
  return { requests, refused, worstWindow, overLimit: Math.max(0, worstWindow / limit - 1) };
}

function measure(rule: CountingRule, url: string, requests: number): Promise<Measured> {
  const unitsOf = (): number => rule.limit;
  return measureRules({ url, rules: [rule], keys: MEASURED_KEYS, unitsOf, requests, valueLength: VALUE_LENGTH });
}
