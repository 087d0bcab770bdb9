/**
 * Small texts shared by all instances, each with a name and a TTL, changed by compare-and-swap. Heartbeats, leader election, alerts and
 * each instance's top keys are such texts.
 * Kept in Redis if the counters are, otherwise in this process with a snapshot in the data folder. Bounded: 10 000 texts.
 */

export interface SharedState {
  /** Undefined if the text was never written or has expired. Rejects, like the others, if the state is unreachable. */
  read(name: string): Promise<string | undefined>;
  /** All texts whose names start with the prefix, by name. */
  readAll(prefix: string): Promise<ReadonlyMap<string, string>>;
  /** Writes if the text is still `was` (undefined: absent); false if another instance was faster. */
  swap(name: string, change: Swap): Promise<boolean>;
  close(): Promise<void>;
}

export interface Swap {
  readonly was: string | undefined;
  readonly now: string;
  /** TTL. */
  readonly keepMs: number;
}

/** Enough for a fleet's heartbeats and a day of top keys. */
export const MOST_TEXTS = 10_000;
