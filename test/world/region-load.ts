/**
 * Regions under load on one hot key with `scope: global`: is the limit ever passed, how much of it is used, and how many requests wait?
 * In: regions, instances of each, load, faults, cuts. Out: uses beyond the limit in any window, utilisation, waits, fetches home.
 */
import { createLimiter, type Limiter } from "../../packages/sluice/src/limiter/limiter.js";
import type { Rule } from "../../packages/sluice/src/rules/rule.js";
import type { Store } from "../../packages/sluice/src/store/store.js";
import { Network, type NetworkFaults } from "./network.js";
import { mixSeed, Random } from "./random.js";
import { RemoteStore } from "./remote-store.js";
import { Actor, ActorClock, Simulation } from "./simulation.js";
import { StoreServer } from "./store-server.js";
import { UseMeter } from "./use-meter.js";

export interface RegionLoad {
  readonly seed: number;
  readonly regions: number;
  readonly instances: number;
  readonly algorithm: "rolling-window" | "token-bucket" | "gcra" | "fixed-window";
  readonly limit: number;
  readonly windowMs: number;
  /** Of the instances' own units; 0 for none. */
  readonly prefetchMs: number;
  readonly onStoreFailure: "deny" | "local";
  /** Requests for each unit of the limit. */
  readonly overload: number;
  readonly windows: number;
  /** Within a region, and from a region to home. */
  readonly near: NetworkFaults;
  readonly far: NetworkFaults;
  readonly driftPpm: number;
  /** A second, over all instances; each starts anew at once. */
  readonly crashesPerSecond: number;
  /** How often the hottest region is another one. */
  readonly hotSpotMs: number;
  /** Requests of a region for each unit of the limit, instead of a hot spot. */
  readonly pattern?: (region: number, nowMs: number) => number;
  /** When the instances of region 0 start anew. */
  readonly crashMs?: number;
  /** Region 0 reaches home no more. */
  readonly cut?: readonly [fromMs: number, untilMs: number];
  /** So many regions do not, the first ones; each so long after the one before. */
  readonly cutRegions?: number;
  readonly cutApartMs?: number;
  /** When the store of region 0, or home, comes back empty. */
  readonly regionWipedMs?: number;
  readonly homeWipedMs?: number;
  /** Steps of the clock of region 0's store: when, and by how much. */
  readonly regionStep?: readonly [atMs: number, byMs: number];
  /** More than so many uses beyond the limit end the run with a violation. */
  readonly mostOver?: number;
  /** Receives every line of the event log. */
  readonly log?: (line: string) => void;
  /** A mistake to be found: stands between instances and a store. */
  readonly mistake?: { readonly region?: (store: Store) => Store; readonly home?: (store: Store) => Store };
}

export interface RegionLoadResult {
  /** In the worst window, or for a bucket at the worst instant; 0 if the limit held. */
  readonly over: number;
  /** Of the smaller of what the limit admits and what was asked, after the first window. */
  readonly utilisation: number;
  readonly requests: number;
  /** For a fetch, or the rest of one. */
  readonly waited: number;
  readonly fetches: number;
  readonly byPolicy: number;
  /** Admitted by policy in the worst window, of all regions that are cut off; the most that a decision of each stated as its share, and their sum. */
  readonly worstLocal: number;
  readonly statedShares: readonly number[];
  readonly statedShare: number;
  /** Admitted in the worst window, by policy or not. */
  readonly worst: number;
  readonly events: number;
  readonly messages: { readonly sent: number; readonly lost: number; readonly doubled: number };
}

/** How often a region without traffic looks whether that has changed. */
const QUIET_MS = 20;

export async function runRegionLoad(load: RegionLoad): Promise<RegionLoadResult> {
  const { regions, instances, limit, windowMs, overload, windows, algorithm } = load;
  const simulation = new Simulation(load.seed);
  simulation.log = load.log;
  const meter = new UseMeter(load);
  // Whose clock runs a little faster, and whose answers take a moment.
  const localMeter = new UseMeter({ ...load, limit: 0, windowMs: windowMs * 0.998 - 2 });
  const allMeter = new UseMeter({ ...load, limit: 0, windowMs: windowMs * 0.998 - 2 });
  const ignore = (): void => {};
  const observer = {
    decided: ignore,
    refunded: ignore,
    released: ignore,
    renewed: ignore,
    reset: ignore,
    wiped: ignore,
  };
  const drift = new Random(mixSeed(load.seed, 9));
  const serverOf = (name: string): StoreServer =>
    new StoreServer(simulation, observer, { driftPpm: drift.between(-load.driftPpm, load.driftPpm) }, name);
  const home = serverOf("home");
  const servers = Array.from({ length: regions }, (_, i) => serverOf(`store${i}`));
  const near = new Network(simulation, load.near);
  const far = Array.from({ length: regions }, () => new Network(simulation, load.far));
  const endMs = windows * windowMs;
  const counts = { requests: 0, byPolicy: 0 };
  const statedShares = new Array<number>(regions).fill(0);
  const limiters = new Set<Limiter>();
  let fetches = 0;
  let waited = 0;
  let late = 0;

  function storesOf(actor: Actor, region: number): { store: Store; globalStore: Store } {
    const common = { simulation, actor, rememberRefusals: true };
    const here = new RemoteStore({ ...common, network: near, server: servers[region]!, deadlineMs: 50 });
    const there = new RemoteStore({ ...common, network: far[region]!, server: home, deadlineMs: 1_000 });
    const { mistake } = load;
    return { store: mistake?.region?.(here) ?? here, globalStore: mistake?.home?.(there) ?? there };
  }

  function start(region: number, index: number, life: number): void {
    const number = region * instances + index;
    const random = new Random(mixSeed(load.seed, number, life, 4));
    const driftPpm = new Random(mixSeed(load.seed, number, 5)).between(-load.driftPpm, load.driftPpm);
    const actor = new Actor(`r${region}.${index}.${life}`, new ActorClock(simulation, { driftPpm }));
    simulation.cause = number;
    simulation.at(simulation.nowMs, actor, () => {
      const stores = storesOf(actor, region);
      const limiter = createLimiter({ ...stores, region: `r${region}`, instances, rules: [ruleOf(load)] });
      limiters.add(limiter);
      arrive(limiter, actor, random, region);
    });
    const isDoomed = region === 0 && life === 0 && load.crashMs !== undefined;
    if (load.crashesPerSecond === 0 && !isDoomed) return;
    const lifeMs = isDoomed ? load.crashMs! : random.waitMs(load.crashesPerSecond / (regions * instances) / 1_000);
    simulation.at(simulation.nowMs + lifeMs, undefined, () => {
      if (simulation.nowMs >= endMs) return;
      actor.alive = false;
      start(region, index, life + 1);
    });
  }

  /** The hottest region has the most, the others less and less; who is hottest moves on. */
  const weights = Array.from({ length: regions }, (_, i) => 1 / (i + 1));
  const sum = weights.reduce((a, b) => a + b);
  const shareOf = (region: number): number =>
    weights[(region + 7 * Math.floor(simulation.nowMs / load.hotSpotMs)) % regions]! / sum;

  function arrive(limiter: Limiter, actor: Actor, random: Random, region: number): void {
    const asked = load.pattern?.(region, simulation.nowMs) ?? overload * shareOf(region);
    const atMs = simulation.nowMs + (asked === 0 ? QUIET_MS : random.waitMs((asked * limit) / windowMs / instances));
    if (atMs >= endMs) return;
    simulation.at(atMs, actor, () => {
      arrive(limiter, actor, random, region);
      if (asked === 0) return;
      counts.requests++;
      void limiter.check({}).then(({ allowed, degraded, checks }) => {
        if (degraded !== undefined) counts.byPolicy++;
        if (degraded === "local") statedShares[region] = Math.max(statedShares[region]!, checks[0]!.limit);
        if (!allowed) return;
        allMeter.use(1, home.actor.clock.wallMs());
        if (degraded === undefined) {
          meter.use(1, home.actor.clock.wallMs());
          if (meter.over > (load.mostOver ?? Number.POSITIVE_INFINITY))
            simulation.fail(`${meter.over} uses beyond the limit of ${limit} in all regions`);
        } else {
          late++;
          localMeter.use(1, home.actor.clock.wallMs());
        }
      });
    });
  }

  for (let region = 0; region < regions; region++) {
    for (let i = 0; i < instances; i++) start(region, i, 0);
  }
  if (load.cut !== undefined) {
    const [fromMs, untilMs] = load.cut;
    for (let region = 0; region < (load.cutRegions ?? 1); region++) {
      const laterMs = region * (load.cutApartMs ?? 0);
      simulation.at(fromMs + laterMs, undefined, () => far[region]!.cutOff(home.actor));
      simulation.at(untilMs, undefined, () => far[region]!.heal(home.actor));
    }
  }
  if (load.regionWipedMs !== undefined) simulation.at(load.regionWipedMs, servers[0]!.actor, () => servers[0]!.wipe());
  if (load.homeWipedMs !== undefined) simulation.at(load.homeWipedMs, home.actor, () => home.wipe());
  if (load.regionStep !== undefined) {
    const [atMs, byMs] = load.regionStep;
    simulation.at(atMs, undefined, () => servers[0]!.actor.clock.step(byMs));
  }
  await simulation.run(endMs);
  for (const limiter of limiters) {
    fetches += limiter.regionStats()!.fetches;
    waited += limiter.regionStats()!.waited;
  }
  const admitted = meter.admitted + late;
  const utilisation = admitted / (Math.min(1, overload) * limit * (windows - 1));
  const isBucket = algorithm === "token-bucket" || algorithm === "gcra";
  const total = (of: (network: Network) => number): number => [near, ...far].reduce((all, one) => all + of(one), 0);
  return {
    over: meter.over,
    utilisation,
    fetches,
    waited,
    worstLocal: isBucket ? 0 : localMeter.over,
    worst: isBucket ? 0 : allMeter.over,
    statedShares,
    statedShare: statedShares.reduce((total, share) => total + share, 0),
    ...counts,
    events: simulation.events,
    messages: {
      sent: total(({ sent }) => sent),
      lost: total(({ lost }) => lost),
      doubled: total(({ doubled }) => doubled),
    },
  };
}

function ruleOf({ algorithm, limit, windowMs, prefetchMs, onStoreFailure }: RegionLoad): Rule {
  const numbers = { limit, window: `${windowMs}ms`, ...(prefetchMs > 0 && { prefetch: `${prefetchMs}ms` }) };
  return { id: "hot", key: [], scope: "global", onStoreFailure, algorithm, ...numbers };
}
