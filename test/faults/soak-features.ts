/**
 * What runs beside the soak's checks, orders and reservations, on instances of its own: units fetched ahead, blocks, load shedding.
 * Each part counts what its clients saw, and compares it with the counters in the end. All must be 0: beyond the bound, charged twice, lost.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { type Attributes, createLimiter, type Decision, type Limiter, type Rule } from "sluice";
import { redisStore } from "sluice/redis";
import { Decision as MadeDecision } from "../../packages/sluice/src/limiter/decision.js";
import { type Answer, type Excess, excesses } from "./judge.js";

export interface FeatureTally {
  /** Decisions from units in hand. */
  readonly prefetched: number;
  readonly blocked: number;
  readonly shed: number;
  readonly beyondBound: number;
  /** What was beyond it, one line each: where to look first. */
  readonly findings: readonly string[];
  readonly chargedTwice: number;
  readonly lost: number;
}

const INSTANCES = 3;
const PREFETCH_MS = 200;
const SUM_LIMIT = 1_000_000;
const lanes = ["l0", "l1"];
const lane = { limit: 90, windowMs: 1_000 };
const BURST = 3;
const rules: Rule[] = [
  {
    id: "lane",
    key: ["lane"],
    algorithm: "rolling-window",
    limit: lane.limit,
    window: "1s",
    prefetch: `${PREFETCH_MS}ms`,
  },
  {
    id: "road",
    key: ["road"],
    algorithm: "rolling-window",
    limit: SUM_LIMIT,
    window: "3650d",
    prefetch: `${PREFETCH_MS}ms`,
  },
  { id: "guard", key: ["intruder"], algorithm: "rolling-window", limit: BURST, window: "1h", blockFor: "1h" },
  { id: "jobs", key: ["queue"], algorithm: "fixed-window", limit: SUM_LIMIT, window: "3650d" },
  {
    id: "busy",
    key: [],
    match: { queue: "*" },
    algorithm: "load-shedding",
    signal: ["reported"],
    class: { attribute: "class", default: "normal" },
    classes: { sheddable: 0.5, normal: 0.9, critical: 2 },
  },
].map((rule) => ("limit" in rule ? { ...rule, onStoreFailure: "deny" } : rule) as Rule);

export function startFeatures(url: string, random: () => number): { stop(): Promise<FeatureTally> } {
  const open = (): Limiter =>
    createLimiter({ store: redisStore(url, { deadlineMs: 200 }), rules, instances: INSTANCES });
  const limiters = Array.from({ length: INSTANCES }, open);
  const anyLimiter = (): Limiter => limiters[Math.floor(random() * limiters.length)]!;
  let running = true;
  const isRunning = (): boolean => running;
  const parts = [
    drive(limiters, isRunning),
    intrude(anyLimiter, isRunning),
    shed(anyLimiter, random, isRunning),
  ] as const;
  return {
    async stop() {
      running = false;
      const [driven, intruded, shedding] = await Promise.all(parts);
      for (const limiter of limiters) await limiter.close();
      // What a lost settlement left is charged at its end.
      await sleep(2 * PREFETCH_MS);
      const reader = open();
      while (!(await reader.ready())) await sleep(50);
      const charged = await chargedOf(reader, [{ road: "r" }]);
      const jobs = await chargedOf(reader, [{ queue: "q", class: "critical" }]);
      await reader.close();
      const lanesOver = excesses(driven.history, lane);
      return {
        findings: [...lanesOver.map((excess) => describe(excess, driven.history)), ...intruded.findings],
        prefetched: driven.prefetched,
        blocked: intruded.blocked,
        shed: shedding.shed,
        beyondBound: lanesOver.reduce((sum, { count }) => sum + count, 0) + intruded.passed,
        chargedTwice: Math.max(0, jobs - shedding.jobs),
        // Units that no fetch could settle in time stand as spent: more may be charged than was used, never less.
        lost: Math.max(0, driven.used - charged) + Math.max(0, shedding.jobs - jobs) + shedding.criticalShed,
      };
    },
  };
}

/** A lane's worst window: how its uses were decided, and how late their callers went on. */
function describe({ key, count, endsAtMs }: Excess, history: readonly Use[]): string {
  const uses = history.filter(
    (use) => use.key === key && use.decidedAtMs! <= endsAtMs && use.decidedAtMs! > endsAtMs - lane.windowMs,
  );
  const spelled = uses.map(
    ({ decidedAtMs, sentAtMs, answeredAtMs, how, instance }) =>
      `${(decidedAtMs! - endsAtMs).toFixed(0)}${how}${instance}/${(answeredAtMs - sentAtMs).toFixed(1)}`,
  );
  return `lane ${key}: ${count} beyond its limit in the window that ends at ${endsAtMs}; uses, each as ms before that, how decided (h: from hand, w: from hand after a wait, s: by the store), instance, ms that its caller waited: ${spelled.join(" ")}`;
}

/** When a use counts, on the clock that Redis and this process share: a decision of the store when it was made there, one from units in hand now. */
function usedAtMs(decision: Decision): number {
  return decision.guarantee === "prefetched" ? Date.now() : MadeDecision.originOf(decision as MadeDecision).nowMs;
}

interface Use extends Answer {
  readonly how: "h" | "w" | "s";
  readonly instance: number;
}

/** Twice as many requests as the lanes may pass, on every instance; and a road that is never full, to add up. */
async function drive(limiters: readonly Limiter[], isRunning: () => boolean) {
  const found = { history: [] as Use[], used: 0, prefetched: 0 };
  const underWay = new Set<Promise<void>>();
  const use = async (limiter: Limiter, attributes: Attributes): Promise<void> => {
    const sentAtMs = performance.now();
    const made = limiter.checkNow(attributes);
    const decision = made instanceof Promise ? await made : made;
    const { allowed, degraded, guarantee } = decision;
    if (!allowed || degraded !== undefined) return;
    if (guarantee === "prefetched") found.prefetched++;
    if (attributes.road !== undefined) found.used++;
    else {
      const key = String(attributes.lane);
      const decidedAtMs = usedAtMs(decision);
      const how = guarantee !== "prefetched" ? "s" : made instanceof Promise ? "w" : "h";
      const instance = limiters.indexOf(limiter);
      found.history.push({ key, sentAtMs, answeredAtMs: performance.now(), allowed, decidedAtMs, how, instance });
    }
  };
  while (isRunning()) {
    for (const limiter of limiters) {
      for (const attributes of [...lanes.map((name) => ({ lane: name })), { road: "r" }]) {
        const answer: Promise<void> = use(limiter, attributes).finally(() => underWay.delete(answer));
        underWay.add(answer);
      }
    }
    // 60 a second on each of three instances.
    await sleep(16);
  }
  await Promise.all(underWay);
  return found;
}

/** One intruder after the other: as many pass as the burst allows, and none once one was refused. */
async function intrude(anyLimiter: () => Limiter, isRunning: () => boolean) {
  const found = { blocked: 0, passed: 0, findings: [] as string[] };
  for (let n = 0; isRunning(); n++) {
    const attributes = { intruder: `i${n}` };
    let admitted = 0;
    let isBlocked = false;
    for (let tries = 0; tries < 50 && !isBlocked && isRunning(); tries++) {
      const answers = await Promise.all(Array.from({ length: 2 }, () => anyLimiter().check(attributes)));
      const decided = answers.filter(({ degraded }) => degraded === undefined);
      admitted += decided.filter(({ allowed }) => allowed).length;
      isBlocked = decided.some(({ allowed }) => !allowed);
      await sleep(5);
    }
    const after = await Promise.all(Array.from({ length: 4 }, () => anyLimiter().check(attributes)));
    const passed = isBlocked ? after.filter(({ allowed }) => allowed).length : 0;
    if (isBlocked) found.blocked++;
    found.passed += passed + Math.max(0, admitted - BURST);
    if (passed > 0) found.findings.push(`intruder ${n}: ${passed} passed after a refusal`);
    if (admitted > BURST) found.findings.push(`intruder ${n}: ${admitted} admitted, ${BURST} allowed`);
    await sleep(50);
  }
  return found;
}

/** Jobs with an id, repeated until one is decided: those that were shed are charged nowhere, critical ones are never shed. */
async function shed(anyLimiter: () => Limiter, random: () => number, isRunning: () => boolean) {
  const found = { jobs: 0, shed: 0, criticalShed: 0 };
  const classes = ["sheddable", "normal", "critical"];
  for (let n = 0; isRunning(); n++) {
    if (n % 20 === 0) void anyLimiter().reportUtilisation(random(), { source: "soak", ttlMs: 1_000 });
    const attributes = { queue: "q", class: classes[n % classes.length]! };
    const ask = () => anyLimiter().check(attributes, { id: `job-${n}` });
    let decision = await ask();
    let tries = 1;
    // Shed at once, it was never charged. One without an answer may have been: it is asked for until the store knows its id.
    for (; decision.degraded !== undefined || (decision.reason === "load" && tries > 1); tries++) {
      await sleep(20);
      decision = await ask();
    }
    if (decision.allowed) found.jobs++;
    else if (decision.reason === "load") {
      found.shed++;
      if (attributes.class === "critical") found.criticalShed++;
    }
    await decision.lease?.release();
    await sleep(10);
  }
  return found;
}

async function chargedOf(limiter: Limiter, keys: readonly Attributes[]): Promise<number> {
  let sum = 0;
  for (const key of keys) {
    let found = await limiter.peek(key, { cost: 0 });
    for (; found.degraded !== undefined; found = await limiter.peek(key, { cost: 0 })) await sleep(50);
    sum += SUM_LIMIT - found.remaining!;
  }
  return sum;
}
