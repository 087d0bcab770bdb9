/**
 * A fleet whose callers wait for turns (`maxWait`), under overload: is the order kept, is the spacing exact at the store, and are turns that
 * callers abandon taken by those who come later? Judged at every decision of the store, by its clock.
 */
import { createLimiter, type Limiter } from "../../packages/sluice/src/limiter/limiter.js";
import type { Rule } from "../../packages/sluice/src/rules/rule.js";
import type { RefundRequest, StoreReply, StoreRequest } from "../../packages/sluice/src/store/store.js";
import { Network, type NetworkFaults } from "./network.js";
import { mixSeed, Random } from "./random.js";
import { RemoteStore } from "./remote-store.js";
import { Actor, ActorClock, Simulation } from "./simulation.js";
import { StoreServer } from "./store-server.js";

export interface TurnLoad {
  readonly seed: number;
  readonly instances: number;
  readonly rule: Rule;
  /** Between two turns. */
  readonly intervalMs: number;
  readonly seconds: number;
  /** Of the callers, who leave before their turn. */
  readonly leaving: number;
  readonly faults: NetworkFaults;
}

export interface TurnLoadResult {
  readonly granted: number;
  readonly abandoned: number;
  /** Turns that somebody else took over. */
  readonly reused: number;
  /** Callers that went on. */
  readonly served: number;
  /** What must not be: one line each. */
  readonly violations: readonly string[];
}

/** Callers for each turn. */
const OVERLOAD = 1.2;

export async function runTurnLoad(load: TurnLoad): Promise<TurnLoadResult> {
  const { instances, intervalMs, rule } = load;
  const simulation = new Simulation(load.seed);
  const violations: string[] = [];
  const counts = { granted: 0, abandoned: 0, reused: 0, served: 0 };
  /** By the name of the request: when its turn comes. */
  const turns = new Map<string, number>();
  const vacant = new Set<number>();
  let lastTurnMs = 0;

  const decided = ({ entryId, charge, id }: StoreRequest, reply: StoreReply): void => {
    const verdict = reply.verdicts[0]!;
    if (!charge || !verdict.charged || reply.repeated !== undefined) return;
    const turnMs = reply.nowMs + verdict.delayMs;
    const name = `${id ?? entryId} at ${reply.nowMs}: turn ${turnMs}`;
    counts.granted++;
    const free = [...vacant].filter((atMs) => atMs > reply.nowMs);
    if (vacant.delete(turnMs)) counts.reused++;
    else if (turnMs < lastTurnMs + intervalMs) violations.push(`${name}, ${turnMs - lastTurnMs} ms behind the last`);
    if (free.some((atMs) => atMs < turnMs)) violations.push(`${name}, though ${Math.min(...free)} was free`);
    lastTurnMs = Math.max(lastTurnMs, turnMs);
    turns.set(entryId, turnMs);
  };
  const refunded = ({ charges }: RefundRequest): void => {
    for (const { entryId } of charges) {
      const turnMs = turns.get(entryId);
      if (turnMs === undefined) continue;
      counts.abandoned++;
      vacant.add(turnMs);
    }
  };
  const ignore = (): void => {};
  const server = new StoreServer(simulation, {
    decided,
    refunded,
    released: ignore,
    renewed: ignore,
    reset: ignore,
    wiped: ignore,
  });
  const network = new Network(simulation, load.faults);
  const endMs = load.seconds * 1_000;

  function arrive(limiter: Limiter, actor: Actor, random: Random): void {
    const atMs = simulation.nowMs + random.waitMs(OVERLOAD / intervalMs / instances);
    if (atMs >= endMs) return;
    simulation.at(atMs, actor, () => {
      void call(limiter, actor, random);
      arrive(limiter, actor, random);
    });
  }

  async function call(limiter: Limiter, actor: Actor, random: Random): Promise<void> {
    const controller = new AbortController();
    if (random.chance(load.leaving))
      simulation.at(simulation.nowMs + random.between(1, 20 * intervalMs), actor, () => controller.abort());
    try {
      const { allowed } = await limiter.acquire({}, { signal: controller.signal });
      if (allowed) counts.served++;
    } catch {
      // Left.
    }
  }

  for (let i = 0; i < instances; i++) {
    const actor = new Actor(`i${i}`, new ActorClock(simulation, {}));
    simulation.cause = i;
    simulation.at(0, actor, () => {
      const store = new RemoteStore({ simulation, network, server, actor, deadlineMs: 200, rememberRefusals: false });
      arrive(createLimiter({ store, instances, rules: [rule] }), actor, new Random(mixSeed(load.seed, i, 3)));
    });
  }
  await simulation.run(endMs + 60_000);
  return { ...counts, violations };
}
