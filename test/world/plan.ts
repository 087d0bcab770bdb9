/**
 * A plan: everything that happens to a world from outside, as data. A scenario draws it from a seed; a shrunk run leaves steps out.
 */
import type { Attributes, Rule } from "../../packages/sluice/src/rules/rule.js";
import type { NetworkFaults } from "./network.js";
import type { Random } from "./random.js";
import type { RunResult } from "./world.js";

/** Work whose cost is known when it is done. The instance that settles need not be the one that was asked. */
export interface Work {
  readonly afterMs: number;
  readonly instances: readonly number[];
  /** By attribute. */
  readonly costs: Attributes;
  readonly isCancelled?: boolean;
  readonly extension?: { readonly afterMs: number; readonly costs: Attributes };
  /** The client has lost the answer, or somebody else tells other numbers. */
  readonly again?: { readonly afterMs: number; readonly costs: Attributes };
}

/** A request of a client, and what becomes of it. */
export interface CheckStep {
  readonly do: "check";
  readonly atMs: number;
  /** The instances that are asked, one after another, until one answers by the store. Only requests with an id are asked again. */
  readonly instances: readonly number[];
  readonly attributes: Attributes;
  readonly cost?: number;
  readonly id?: string;
  /** Refused by the store, the client comes back after `retryAfterMs`, so often at most. */
  readonly returns?: number;
  /** Charged in full, never refused. */
  readonly charge?: boolean;
  /** Where it holds a lease: for how long it works. It renews as long as it needs to. */
  readonly workMs?: number;
  /** Given back so long after the decision; by the id, from another instance, if it has one. */
  readonly refundAfterMs?: number;
  /** What becomes of its reservation; absent: nobody settles it. */
  readonly work?: Work;
}

export type Step =
  | CheckStep
  | { readonly do: "crash" | "start" | "close" | "cut" | "heal"; readonly atMs: number; readonly instance: number }
  | { readonly do: "store-cut" | "store-heal" | "store-wipe"; readonly atMs: number }
  | { readonly do: "step-store-clock"; readonly atMs: number; readonly byMs: number }
  | { readonly do: "step-clock"; readonly atMs: number; readonly instance: number; readonly byMs: number }
  | { readonly do: "set-rules"; readonly atMs: number; readonly instance: number; readonly rules: readonly Rule[] }
  | {
      readonly do: "reset";
      readonly atMs: number;
      readonly instance: number;
      readonly rule: string;
      readonly attributes: Attributes;
    };

export interface Plan {
  readonly instances: number;
  /** The option of the limiters; undefined lets them count each other by heartbeat. */
  readonly countedInstances: number | undefined;
  readonly rules: readonly Rule[];
  readonly faults: NetworkFaults;
  readonly deadlineMs: number;
  /** Instances remember refusals, as with the Redis store. Default: they do not. */
  readonly rememberRefusals?: boolean;
  /** Each instance's clock runs too fast or too slow by up to so much. */
  readonly driftPpm: number;
  /** The most that all instances together may admit by the policy `local` in one window, of a limit (docs/reliability.md). */
  readonly localBound: (limit: number) => number;
  /** Windows of an hour outlast the run, and only reservations are charged under them: what they count can be summed up. */
  readonly sumsHours?: boolean;
  /** Nothing keeps a settlement from the store until its reservation ends: each one that was told must count. */
  readonly settlesAll?: boolean;
  readonly steps: readonly Step[];
  /** When the last step is over and nothing is under way: the world then must come to rest. */
  readonly endMs: number;
}

export interface Scenario {
  readonly name: string;
  /** What it puts to the test, for the report. */
  readonly about: string;
  plan(random: Random): Plan;
}

/** One that is carried out by a load of its own, drawn from the seed: there are no steps to leave out. */
export interface LoadScenario {
  readonly name: string;
  readonly about: string;
  run(seed: number, log: ((line: string) => void) | undefined): Promise<Omit<RunResult, "digest">>;
}
