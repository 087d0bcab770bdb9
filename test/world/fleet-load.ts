/**
 * A fleet under steady overload on one hot key with prefetch: is the limit ever passed, and how much of it is used?
 * In: instances, load, algorithm, faults. Out: uses beyond the limit in any window, utilisation, store calls a request.
 */
import { createLimiter, type Limiter } from "../../packages/sluice/src/limiter/limiter.js";
import type { Rule } from "../../packages/sluice/src/rules/rule.js";
import type { StoreReply, StoreRequest } from "../../packages/sluice/src/store/store.js";
import { Network, type NetworkFaults } from "./network.js";
import { mixSeed, Random } from "./random.js";
import { RemoteStore } from "./remote-store.js";
import { Actor, ActorClock, Simulation } from "./simulation.js";
import { StoreServer } from "./store-server.js";
import { UseMeter } from "./use-meter.js";

export interface FleetLoad {
  readonly seed: number;
  readonly instances: number;
  readonly algorithm: "rolling-window" | "token-bucket" | "gcra" | "fixed-window";
  readonly limit: number;
  readonly windowMs: number;
  readonly prefetchMs: number;
  /** Requests for each unit of the limit. */
  readonly overload: number;
  readonly windows: number;
  readonly faults: NetworkFaults;
  readonly deadlineMs: number;
  readonly driftPpm: number;
  /** A second, over the whole fleet; each starts anew at once. */
  readonly crashesPerSecond: number;
}

export interface FleetLoadResult {
  /** In the worst window, or for a bucket at the worst instant; 0 if the limit held. */
  readonly over: number;
  /** Of what the limit admits after the first window. */
  readonly utilisation: number;
  readonly storeCallsPerRequest: number;
  readonly fromHand: number;
  readonly requests: number;
}

export async function runFleetLoad(load: FleetLoad): Promise<FleetLoadResult> {
  const { instances, limit, windowMs, overload, windows } = load;
  const simulation = new Simulation(load.seed);
  const meter = new UseMeter(load);
  const decided = ({ checks }: StoreRequest, { verdicts }: StoreReply): void => {
    for (const [i, { cost }] of checks.entries())
      if (verdicts[i]!.charged) meter.use(cost, server.actor.clock.wallMs());
  };
  const ignore = (): void => {};
  const observer = { decided, refunded: ignore, released: ignore, renewed: ignore, reset: ignore, wiped: ignore };
  const server: StoreServer = new StoreServer(simulation, observer);
  const network = new Network(simulation, load.faults);
  const endMs = windows * windowMs;
  const counts = { requests: 0, fromHand: 0 };

  function start(index: number, life: number): void {
    const random = new Random(mixSeed(load.seed, index, life, 4));
    const driftPpm = new Random(mixSeed(load.seed, index, 5)).between(-load.driftPpm, load.driftPpm);
    const actor = new Actor(`i${index}.${life}`, new ActorClock(simulation, { driftPpm }));
    simulation.cause = index;
    simulation.at(simulation.nowMs, actor, () => {
      const store = new RemoteStore({
        simulation,
        network,
        server,
        actor,
        deadlineMs: load.deadlineMs,
        rememberRefusals: true,
      });
      const limiter = createLimiter({ store, instances, rules: [ruleOf(load)] });
      arrive(limiter, actor, random);
    });
    if (load.crashesPerSecond === 0) return;
    const lifeMs = random.waitMs(load.crashesPerSecond / instances / 1_000);
    simulation.at(simulation.nowMs + lifeMs, undefined, () => {
      if (simulation.nowMs >= endMs) return;
      actor.alive = false;
      start(index, life + 1);
    });
  }

  function arrive(limiter: Limiter, actor: Actor, random: Random): void {
    const atMs = simulation.nowMs + random.waitMs((overload * limit) / windowMs / instances);
    if (atMs >= endMs) return;
    simulation.at(atMs, actor, () => {
      counts.requests++;
      const decision = limiter.checkNow({});
      // What the store decided, and what a policy did, the store's own record counts, or nobody.
      if (!(decision instanceof Promise) && decision.guarantee === "prefetched" && decision.allowed) {
        counts.fromHand++;
        meter.use(1, server.actor.clock.wallMs());
      } else if (decision instanceof Promise) {
        void decision.then(({ guarantee, allowed }) => {
          if (guarantee !== "prefetched" || !allowed) return;
          counts.fromHand++;
          meter.use(1, server.actor.clock.wallMs());
        });
      }
      arrive(limiter, actor, random);
    });
  }

  for (let i = 0; i < instances; i++) start(i, 0);
  await simulation.run(endMs);
  const { over, admitted } = meter;
  const utilisation = admitted / (limit * (windows - 1));
  return { over, utilisation, storeCallsPerRequest: server.calls / counts.requests, ...counts };
}

function ruleOf({ algorithm, limit, windowMs, prefetchMs }: FleetLoad): Rule {
  const numbers = { limit, window: `${windowMs}ms`, prefetch: `${prefetchMs}ms` };
  return { id: "hot", key: [], onStoreFailure: "deny", algorithm, ...numbers };
}
