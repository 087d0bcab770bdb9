/**
 * The options of the memory store, and their validation.
 */
import { SluiceError } from "../../errors.js";
import type { MemoryUse } from "./memory-limit.js";

/** Where the time comes from; `sluice/testing` gives one that stands still. */
export interface Clock {
  now(): number;
}

export interface MemoryStoreOptions {
  /**
   * How many bytes counters and request ids may take, estimated; a quarter of them at most by ids. Default 256 MiB, about a million
   * counters. Past it, idle counters give way first (`counter-map.ts`), and the oldest ids.
   */
  maxBytes?: number;
  clock?: Clock;
  /** Called once whenever live counters or ids begin to give way. Default: a process warning. */
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
