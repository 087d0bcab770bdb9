/**
 * Leader election: one instance at a time does work that must be done once per fleet. Leadership is a shared text that its holder keeps
 * renewing (a lease); when the holder is gone it expires, and the next instance that asks takes over.
 */
import type { SharedState } from "./shared-state.js";

/** `alone`: the shared state cannot be written, so instances are unaware of each other; each acts on what it can see itself. */
export type Leadership = "leader" | "follower" | "alone";

interface LeaderElectionOptions {
  readonly shared: SharedState;
  /** Elections with the same name share one leader. */
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

  /** Lets the next instance that asks take over at once. */
  async resign(): Promise<void> {
    const { shared, name, instance } = this.#options;
    await shared.swap(name, { was: instance, now: instance, keepMs: 1 }).catch(() => false);
  }
}
