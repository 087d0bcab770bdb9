/**
 * A fleet of LLM gateways under steady overload on one budget of tokens: is the budget ever passed, how much of it is used, and what
 * does that cost the store? Lengths come from a public trace (bench/llm-lengths.json); answers stream at 50 tokens a second.
 * In: instances, budget, algorithm, faults. Out: use beyond the limit, utilisation, store calls a request, and the sums that must agree.
 */
import { readFileSync } from "node:fs";
import { createLimiter, type Limiter } from "../../packages/sluice/src/limiter/limiter.js";
import type { Rule } from "../../packages/sluice/src/rules/rule.js";
import type { ExtendReply, Reserved, SettleReply } from "../../packages/sluice/src/store/reserved.js";
import type { StoreReply, StoreRequest } from "../../packages/sluice/src/store/store.js";
import { Network, type NetworkFaults } from "./network.js";
import { mixSeed, Random } from "./random.js";
import { RemoteStore } from "./remote-store.js";
import { Actor, ActorClock, Simulation } from "./simulation.js";
import { StoreServer } from "./store-server.js";

export interface ReservationLoad {
  readonly seed: number;
  readonly instances: number;
  readonly algorithm: "token-bucket" | "gcra" | "fixed-window" | "sliding-counter" | "rolling-window";
  /** Tokens a minute. */
  readonly limit: number;
  /** Of overload; before them the fleet learns at half the limit. */
  readonly minutes: number;
  /** Of what was learned, to be held. Default: the rules' own. */
  readonly quantile?: number;
  readonly faults: NetworkFaults;
  /** A minute, over the whole fleet; each starts anew at once. */
  readonly crashesPerMinute: number;
}

export interface ReservationLoadResult {
  /** Tokens beyond the limit in the worst window, or for a bucket at the worst instant. */
  readonly over: number;
  /** The same, if all that a request cost is counted when it was admitted. */
  readonly overWhereAdmitted: number;
  /** The same, if each token is counted when it was produced. */
  readonly overAsProduced: number;
  /** The share of successive windows of overload that pass the limit by more than a hundredth, counted so. */
  readonly windowsBeyond: number;
  /** The most that requests cost beyond what was held for them, within any window. */
  readonly allowedOver: number;
  /** Of what the limit admits, after the first minutes of overload. */
  readonly utilisation: number;
  /** Calls for an admitted request: its check, its settlement, its part of what is learned. */
  readonly callsPerRequest: number;
  readonly admitted: number;
  readonly settledTwice: number;
  /** What settlements charged, and what the work that they were answered for really cost. */
  readonly charged: number;
  readonly cost: number;
}

const WINDOW_MS = 60_000;
/** Streams that were admitted at the end go on to theirs: none is longer. */
const DRAIN_MS = WINDOW_MS;
/**
 * Requests at half the limit before the overload begins, so that costs are known by then. A fleet that knows none holds all that its requests
 * name; in a rolling window the dent that this leaves comes again every minute.
 */
const REQUESTS_TO_LEARN = 400;
const DEMAND_TO_LEARN = 0.5;
/** The bucket is nearly full when the overload begins. */
const WARM_UP_MINUTES = 3;
const TOKENS_PER_MS = 0.05;
/** The least by which a stream extends its reservation, in tokens. */
const FEWEST_MORE = 64;
/** Demand for each unit of the limit. */
const OVERLOAD = 2;

export const { generatedTokens } = JSON.parse(
  readFileSync(new URL("../../bench/llm-lengths.json", import.meta.url), "utf8"),
) as { generatedTokens: readonly number[] };
const meanTokens = generatedTokens.reduce((sum, tokens) => sum + tokens, 0) / generatedTokens.length;

/** Between the quantiles of the trace. */
export function answerLength(random: Random): number {
  const at = random.between(0, generatedTokens.length - 1);
  const below = Math.floor(at);
  const from = generatedTokens[below]!;
  const to = generatedTokens[Math.min(below + 1, generatedTokens.length - 1)]!;
  return Math.round(from + (to - from) * (at - below));
}

/** Tokens that were used at an instant of the store's clock. */
interface Use {
  readonly atMs: number;
  tokens: number;
}

export async function runReservationLoad(load: ReservationLoad): Promise<ReservationLoadResult> {
  const { instances, limit, minutes } = load;
  const simulation = new Simulation(load.seed);
  const counts = { refusedCalls: 0, settledTwice: 0, charged: 0, cost: 0 };
  /** By the name of its entries: what each admitted request held or used, and when: by its check, then beyond it. One that is never settled stands as spent. */
  const admitted = new Map<string, Use[]>();
  const settledNames = new Set<string>();
  const ignore = (): void => {};

  const decided = ({ checks, entryId, charge }: StoreRequest, { verdicts }: StoreReply): void => {
    if (!charge) return;
    if (!verdicts[0]!.charged) counts.refusedCalls++;
    else admitted.set(entryId, [{ atMs: server.actor.clock.wallMs(), tokens: checks[0]!.cost }]);
  };
  const extended = ({ counters }: Reserved, { state, held }: ExtendReply): void => {
    const parts = admitted.get(counters[0]!.entryId);
    if (state !== "open" || parts === undefined) return;
    const more = held[0]! - parts.reduce((sum, { tokens }) => sum + tokens, 0);
    if (more > 0) parts.push({ atMs: server.actor.clock.wallMs(), tokens: more });
  };
  const settled = ({ counters }: Reserved, { counters: found, isNew }: SettleReply): void => {
    if (!isNew) return;
    const name = counters[0]!.entryId;
    if (settledNames.has(name)) counts.settledTwice++;
    settledNames.add(name);
    const { held, charged } = found[0]!;
    counts.charged += charged;
    const parts = admitted.get(name)!;
    // What the work used of each part, the first part first.
    let left = charged;
    for (const part of parts) {
      part.tokens = Math.min(part.tokens, left);
      left -= part.tokens;
    }
    if (charged > held) parts.push({ atMs: server.actor.clock.wallMs(), tokens: charged - held });
  };
  const observer = {
    decided,
    extended,
    settled,
    refunded: ignore,
    released: ignore,
    renewed: ignore,
    reset: ignore,
    wiped: ignore,
  };
  const server: StoreServer = new StoreServer(simulation, observer);
  const network = new Network(simulation, load.faults);
  const learnMs = Math.ceil((REQUESTS_TO_LEARN * meanTokens) / (DEMAND_TO_LEARN * limit)) * WINDOW_MS;
  const endMs = learnMs + minutes * WINDOW_MS;

  function start(index: number, life: number): void {
    const random = new Random(mixSeed(load.seed, index, life, 7));
    const actor = new Actor(`i${index}.${life}`, new ActorClock(simulation, {}));
    simulation.cause = index;
    simulation.at(simulation.nowMs, actor, () => {
      const store = new RemoteStore({ simulation, network, server, actor, deadlineMs: 200, rememberRefusals: false });
      arrive(createLimiter({ store, instances, rules: [ruleOf(load)] }), actor, random);
    });
    if (load.crashesPerMinute === 0) return;
    const lifeMs = random.waitMs(load.crashesPerMinute / instances / WINDOW_MS);
    simulation.at(simulation.nowMs + lifeMs, undefined, () => {
      if (simulation.nowMs >= endMs) return;
      actor.alive = false;
      start(index, life + 1);
    });
  }

  function arrive(limiter: Limiter, actor: Actor, random: Random): void {
    const demand = simulation.nowMs < learnMs ? DEMAND_TO_LEARN : OVERLOAD;
    const atMs = simulation.nowMs + random.waitMs((demand * limit) / meanTokens / WINDOW_MS / instances);
    if (atMs >= endMs) return;
    simulation.at(atMs, actor, () => {
      void stream(limiter, actor, answerLength(random));
      arrive(limiter, actor, random);
    });
  }

  async function stream(limiter: Limiter, actor: Actor, tokens: number): Promise<void> {
    const { reservation } = await limiter.check({ max_tokens: 4_096 });
    if (reservation === undefined) return;
    const beganMs = simulation.nowMs;
    const settle = async (): Promise<void> => {
      const { settled: isSettled } = await limiter.settle(reservation.id, { tokens });
      if (isSettled) counts.cost += tokens;
    };
    // When the stream reaches what is held, it says so: then others are not let in for what it goes on to use.
    const goOn = (held: number): void => {
      if (tokens <= held) {
        simulation.at(beganMs + tokens / TOKENS_PER_MS, actor, () => void settle());
        return;
      }
      simulation.at(beganMs + held / TOKENS_PER_MS, actor, () => {
        const more = held + Math.max(FEWEST_MORE, Math.ceil(held / 4));
        // One that has expired while messages were lost goes on unaccounted.
        limiter.extend(reservation.id, { tokens: more }).catch(() => {});
        goOn(more);
      });
    };
    goOn(reservation.held.tokens!);
  }

  for (let i = 0; i < instances; i++) start(i, 0);
  const beganMs = server.actor.clock.wallMs();
  await simulation.run(endMs + DRAIN_MS);
  const inOrder = (list: readonly Use[]): Use[] => [...list].sort((a, b) => a.atMs - b.atMs);
  const uses = inOrder([...admitted.values()].flat());
  const admissions = inOrder(
    [...admitted.values()].map((parts) => ({
      atMs: parts[0]!.atMs,
      tokens: parts.reduce((sum, { tokens }) => sum + tokens, 0),
    })),
  );
  const overruns = inOrder([...admitted.values()].flatMap(([, ...beyond]) => beyond));
  const [fromMs, toMs] = [beganMs + learnMs + WARM_UP_MINUTES * WINDOW_MS, beganMs + endMs];
  const used = uses.reduce((sum, { atMs, tokens }) => (atMs >= fromMs && atMs < toMs ? sum + tokens : sum), 0);
  return {
    over: worstOver(uses, load, limit),
    overWhereAdmitted: worstOver(admissions, load, limit),
    overAsProduced: worstProduced(admissions, load) - limit,
    windowsBeyond: windowsBeyond(admissions, { fromMs, toMs, limit }),
    allowedOver: worstOver(overruns, load, 0),
    utilisation: used / (limit * (minutes - WARM_UP_MINUTES)),
    callsPerRequest: (server.calls - counts.refusedCalls) / admitted.size,
    admitted: admitted.size,
    ...counts,
  };
}

/** In the worst window; for a bucket, which may be `capacity` behind, at the worst instant. */
function worstOver(uses: readonly Use[], { algorithm, limit }: ReservationLoad, capacity: number): number {
  let worst = Number.NEGATIVE_INFINITY;
  let sum = 0;
  let first = 0;
  let lastMs = 0;
  for (const { atMs, tokens } of uses) {
    if (algorithm === "token-bucket" || algorithm === "gcra") {
      sum = Math.max(0, sum - ((atMs - lastMs) * limit) / WINDOW_MS);
      lastMs = atMs;
    } else {
      const fromMs = algorithm === "fixed-window" ? atMs - (atMs % WINDOW_MS) - 1 : atMs - WINDOW_MS;
      for (; uses[first]!.atMs <= fromMs; first++) sum -= uses[first]!.tokens;
    }
    sum += tokens;
    worst = Math.max(worst, sum - capacity);
  }
  return uses.length === 0 ? 0 : worst;
}

/** The most tokens that streams produced within a window, or that a bucket of them would lack at once, to the tenth of a second. */
function worstProduced(admissions: readonly Use[], { algorithm, limit }: ReservationLoad): number {
  const STEP_MS = 100;
  const firstMs = admissions[0]?.atMs ?? 0;
  // Fixed windows begin with a step.
  const startMs = firstMs - (firstMs % WINDOW_MS);
  const produced: number[] = [];
  for (const { atMs, tokens } of admissions) {
    const [first, last] = [atMs - startMs, atMs - startMs + tokens / TOKENS_PER_MS];
    for (let step = Math.floor(first / STEP_MS); step * STEP_MS < last; step++) {
      const ms = Math.min(last, (step + 1) * STEP_MS) - Math.max(first, step * STEP_MS);
      produced[step] = (produced[step] ?? 0) + ms * TOKENS_PER_MS;
    }
  }
  let [worst, sum] = [0, 0];
  for (let step = 0; step < produced.length; step++) {
    if (algorithm === "fixed-window" && step % (WINDOW_MS / STEP_MS) === 0) sum = 0;
    sum += produced[step] ?? 0;
    if (algorithm === "rolling-window" || algorithm === "sliding-counter")
      sum -= produced[step - WINDOW_MS / STEP_MS] ?? 0;
    if (algorithm === "token-bucket" || algorithm === "gcra") sum = Math.max(0, sum - (limit * STEP_MS) / WINDOW_MS);
    worst = Math.max(worst, sum);
  }
  return worst;
}

function windowsBeyond(
  admissions: readonly Use[],
  { fromMs, toMs, limit }: { fromMs: number; toMs: number; limit: number },
): number {
  const windows = new Array<number>(Math.floor((toMs - fromMs) / WINDOW_MS)).fill(0);
  for (const { atMs, tokens } of admissions) {
    const window = Math.floor((atMs - fromMs) / WINDOW_MS);
    if (window >= 0 && window < windows.length) windows[window]! += tokens;
  }
  return windows.filter((tokens) => tokens > 1.01 * limit).length / windows.length;
}

function ruleOf({ algorithm, limit, quantile }: ReservationLoad): Rule {
  return {
    id: "tokens",
    key: [],
    algorithm,
    limit,
    window: "1m",
    onStoreFailure: "deny",
    cost: { attribute: "tokens" },
    estimate: { attribute: "max_tokens", default: 400, ttl: "2m", ...(quantile !== undefined && { quantile }) },
  };
}
