/**
 * Leader election: one instance at a time does what must be done once for all. Leadership is a shared text that its holder prolongs;
 * when the holder is gone the text expires, and the next instance that asks takes over.
 */
import type { SharedState } from "./shared-state.js";

/** `alone`: the shared state cannot be written, so no instance knows of the others; each then acts on what it can see itself. */
export type Leadership = "leader" | "follower" | "alone";

interface LeaderElectionOptions {
  readonly shared: SharedState;
  /** The election's name: elections of the same name have one leader. */
  readonly name: string;
  readonly instance: string;
  readonly keepMs: number;
}

export class LeaderElection {
  readonly #options: LeaderElectionOptions;

  constructor(options: LeaderElectionOptions) {
    this.#options = options;
  }

  async ask(): Promise<Leadership> {
    const { shared, name, instance, keepMs } = this.#options;
    const keep = { now: instance, keepMs };
    try {
      if (await shared.swap(name, { was: instance, ...keep })) return "leader";
      return (await shared.swap(name, { was: undefined, ...keep })) ? "leader" : "follower";
    } catch {
      return "alone";
    }
  }

  /** The next instance that asks takes over at once. */
  async resign(): Promise<void> {
    const { shared, name, instance } = this.#options;
    await shared.swap(name, { was: instance, now: instance, keepMs: 1 }).catch(() => false);
  }
}
