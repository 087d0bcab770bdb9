/**
 * The options of the memory store, and their validation.
 */
import { SluiceError } from "../../errors.js";
import type { MemoryUse } from "./memory-limit.js";

/** The source of time; `sluice/testing` has one that stands still. */
export interface Clock {
  now(): number;
}

export interface MemoryStoreOptions {
  /**
   * How many bytes counters and request ids may take, estimated; ids take at most a quarter of them. Default 256 MiB, about a million
   * counters. Beyond it, idle counters are evicted first (`counter-map.ts`), and the oldest ids.
   */
  maxBytes?: number;
  clock?: Clock;
  /** Called once whenever live counters or ids begin to be evicted. Default: a process warning. */
  onMemoryLimit?: (use: MemoryUse) => void;
}

const DEFAULT_BYTES = 256 * 2 ** 20;
const LEAST_BYTES = 2 ** 20;

export function checkedMaxBytes({ maxBytes = DEFAULT_BYTES }: MemoryStoreOptions): number {
  if (Number.isSafeInteger(maxBytes) && maxBytes >= LEAST_BYTES) return maxBytes;
  throw new SluiceError(
    "invalid-setting",
    `maxBytes: expected a whole number of at least ${LEAST_BYTES}, got ${String(maxBytes)}`,
  );
}
