/** Runs of a limiter that are recorded, for tests: rules of every algorithm, and the recording held against itself. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { createLimiter, type Limiter, memoryStore, type Rule, type Store } from "sluice";
import { Recordings } from "../../packages/server/src/analysis/read-recording.js";
import { type Verification, Verifier } from "../../packages/server/src/analysis/verify.js";
import { createLog } from "../../packages/server/src/log.js";
import { HashedValues } from "../../packages/server/src/recording/hash-values.js";
import { Recorder } from "../../packages/server/src/recording/recorder.js";
import { RecordingStore } from "../../packages/server/src/recording/recording-store.js";
import { Segments } from "../../packages/server/src/recording/segments.js";
import { makeTempFolder } from "../harness/leash.js";

/** A clock that the test moves, and that remembers what it was read as: as the service's own does. */
class TestClock {
  lastMs = 0;
  ms = Date.UTC(2026, 0, 1);
  now(): number {
    this.lastMs = this.ms;
    return this.ms;
  }
}

export interface Run {
  readonly limiter: Limiter;
  readonly segments: Segments;
  readonly clock: TestClock;
  readonly folder: string;
  end(): Promise<void>;
}

interface RecordOptions {
  readonly hash?: readonly string[];
  readonly folder?: string;
  readonly id?: string;
  readonly maxBytes?: number;
  readonly store?: Store;
  /** Whether `store` is a Redis that other runs share. */
  readonly isShared?: boolean;
  readonly makeFolder?: () => void;
}

export function record(rules: readonly Rule[], options: RecordOptions = {}): Run {
  const { folder = makeTempFolder("record"), id: instance = "test-instance", hash = [], maxBytes = 2 ** 30 } = options;
  const clock = new TestClock();
  const segments = new Segments({
    folder,
    makeFolder: options.makeFolder ?? (() => {}),
    instance,
    maxBytes,
    maxAgeMs: 3_600_000,
    retryAfterMs: 0,
    log: createLog("silent"),
  });
  const hashed = new HashedValues(hash, "a key");
  const isShared = options.isShared === true;
  const kind = isShared ? "redis" : "memory";
  const recorder = new Recorder({ segments, hashed, instance, store: kind, isFresh: !isShared });
  const inner = options.store ?? memoryStore({ clock });
  const store = new RecordingStore({ store: inner, recorder, clock: isShared ? undefined : clock });
  const limiter = createLimiter({ rules, store });
  recorder.watch(limiter);
  return {
    limiter,
    segments,
    clock,
    folder,
    async end() {
      await limiter.close();
      await segments.close();
    },
  };
}

export const filesIn = (folder: string): string[] => readdirSync(folder).map((name) => join(folder, name));
export const textOf = (folder: string): string =>
  filesIn(folder)
    .map((file) => gunzipSync(readFileSync(file)).toString())
    .join("");

export async function verify(folder: string): Promise<Verification & { bad: number; unfinished: number }> {
  const verifier = new Verifier();
  const recordings = new Recordings(filesIn(folder));
  for await (const { instance, lines } of recordings.lines()) {
    for (const line of lines) verifier.add(instance, line);
  }
  const { bad, unfinished } = recordings.counts;
  return { ...verifier.end(), bad, unfinished: unfinished.length };
}

export const clean = {
  differences: 0,
  otherNumbers: 0,
  uncertain: 0,
  byPolicy: 0,
  prefetched: 0,
  dropped: 0,
  unreadable: [],
  samples: [],
  bad: 0,
  unfinished: 0,
};

export function rulesOf(limit: number): Rule[] {
  return [
    { id: "bucket", match: { kind: "a" }, key: ["user"], algorithm: "token-bucket", limit, window: "1s" },
    { id: "gcra", match: { kind: "b" }, key: ["user"], algorithm: "gcra", limit, window: "2s", burst: 3 },
    {
      id: "fixed",
      match: { kind: ["a", "c"] },
      key: ["user"],
      algorithm: "fixed-window",
      limit: 2 * limit,
      window: "1s",
      blockFor: ["100ms", "300ms"],
      overrides: [{ match: { user: "u1" }, limit: 3 }],
    },
    { id: "sliding", match: { kind: "d" }, key: ["user", "path"], algorithm: "sliding-counter", limit, window: "1s" },
    {
      id: "rolling",
      match: { kind: "e" },
      key: ["user"],
      algorithm: "rolling-window",
      limit,
      window: "1s",
      minInterval: "2ms",
      candidate: { limit: Math.max(1, limit - 2) },
    },
    {
      id: "packed",
      match: { kind: "f" },
      key: ["user"],
      algorithm: "rolling-window",
      storage: "packed",
      limit,
      window: "3s",
      cost: { attribute: "tokens" },
    },
    { id: "places", match: { kind: "g" }, key: ["user"], algorithm: "concurrency", limit, ttl: "1s" },
    {
      id: "variants",
      match: { path: "/v1/**" },
      key: ["user"],
      algorithm: "token-bucket",
      limit: 4 * limit,
      window: "1s",
      mode: "shadow",
      variants: [
        { name: "control", weight: 1 },
        { name: "fixed", weight: 1, algorithm: "fixed-window", limit, window: "500ms" },
      ],
    },
    { id: "all", match: { kind: "c" }, key: [], algorithm: "fixed-window", limit: 400 * limit, window: "1m" },
  ];
}
