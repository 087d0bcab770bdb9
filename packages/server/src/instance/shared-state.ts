/**
 * Small texts that all instances share, each under a name and with an expiry, changed by compare-and-swap. Heartbeats, the leader
 * election, alerts and the top keys of each instance are such texts.
 * In Redis where the counters live in Redis, else in this process with a snapshot in the data folder. Bounded: 10 000 texts.
 */

export interface SharedState {
  /** Undefined if the text was never written or has expired. Rejects, as the others do, where the state cannot be reached. */
  read(name: string): Promise<string | undefined>;
  /** Every text whose name begins with the prefix, by name. */
  readAll(prefix: string): Promise<ReadonlyMap<string, string>>;
  /** Writes if the text is still `was` (undefined: if there is none); false if another instance was first. */
  swap(name: string, change: Swap): Promise<boolean>;
  close(): Promise<void>;
}

export interface Swap {
  readonly was: string | undefined;
  readonly now: string;
  /** Until it expires. */
  readonly keepMs: number;
}

/** Room for the heartbeats of a fleet and a day of top keys. */
export const MOST_TEXTS = 10_000;
