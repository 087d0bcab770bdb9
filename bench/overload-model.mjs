/**
 * A server under overload, in virtual time: places that work, a queue before them, and a contestant that decides who comes in.
 * Seeded and deterministic. The contestants are Sluice's own shedder, and what others have published (`overload-peers.mjs`).
 */

/**
 * @typedef {{ class: string, user: string, tenant: string }} Caller
 * @typedef {{ admit(nowMs: number, caller: Caller): object | undefined, end(pass: object, nowMs: number): void, limit?: () => number }} Contestant
 * @typedef {{
 *   name: string, places: number, seconds: number, load: (s: number) => number, slowness?: (s: number) => number, deadlineMs?: number,
 *   warmSeconds?: number, settledSeconds?: number, retries?: number, tenants?: readonly number[], mix?: Readonly<Record<string, number>>,
 *   allCritical?: boolean
 * }} Scenario
 * @typedef {{ goodput: number, critical: number, p99: number, unloadedP99: number, oscillation: number, noisyShare: number, limit: number }} Outcome
 */

export const MIX = { critical: 0.05, important: 0.15, normal: 0.4, sheddable: 0.4 };
const MEAN_MS = 20;
const USERS = 2_000;
/** What a refusal costs the server. */
const REFUSAL_MS = 0.05;
const STEP_MS = 5_000;

/** @param {number} seed */
export function randomOf(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Events in the order of time. */
class Agenda {
  /** @type {{ atMs: number, run: (atMs: number) => void }[]} */
  #heap = [];

  /** @param {number} atMs @param {(atMs: number) => void} run */
  add(atMs, run) {
    const heap = this.#heap;
    heap.push({ atMs, run });
    let i = heap.length - 1;
    while (i > 0) {
      const parent = (i - 1) >> 1;
      if (/** @type {any} */ (heap[parent]).atMs <= atMs) break;
      [heap[parent], heap[i]] = [/** @type {any} */ (heap[i]), /** @type {any} */ (heap[parent])];
      i = parent;
    }
  }

  next() {
    const heap = this.#heap;
    const first = heap[0];
    const last = heap.pop();
    if (heap.length > 0 && last !== undefined) {
      heap[0] = last;
      for (let i = 0; ; ) {
        let child = 2 * i + 1;
        if (child >= heap.length) break;
        if (
          child + 1 < heap.length &&
          /** @type {any} */ (heap[child + 1]).atMs < /** @type {any} */ (heap[child]).atMs
        )
          child++;
        if (/** @type {any} */ (heap[i]).atMs <= /** @type {any} */ (heap[child]).atMs) break;
        [heap[i], heap[child]] = [/** @type {any} */ (heap[child]), /** @type {any} */ (heap[i])];
        i = child;
      }
    }
    return first;
  }
}

/**
 * @param {Scenario} scenario
 * @param {(random: () => number) => Contestant} make
 * @param {number} seed
 * @returns {Outcome}
 */
export function runScenario(scenario, make, seed) {
  const { places, seconds, load, slowness = () => 1, deadlineMs = 250, warmSeconds = 0, retries = 0 } = scenario;
  const { settledSeconds = warmSeconds, tenants = [], mix = MIX } = scenario;
  const random = randomOf(seed);
  const agenda = new Agenda();
  const contestant = make(randomOf(seed + 1000));
  const sigma = Math.sqrt(Math.log(2));
  const mu = Math.log(MEAN_MS) - (sigma * sigma) / 2;
  const gaussian = () => {
    let sum = 0;
    for (let i = 0; i < 12; i++) sum += random();
    return sum - 6;
  };
  /** @type {{ caller: Caller, arrivedMs: number, firstMs: number, pass: object }[]} */
  const queue = [];
  let queueHead = 0;
  let busy = 0;
  let refusalDebtMs = 0;
  const capacityPerMs = places / MEAN_MS;
  const endMs = seconds * 1000;
  const warmMs = warmSeconds * 1000;
  const asked = { critical: 0, all: 0 };
  const good = { critical: 0, all: 0, normal: 0, noisy: 0 };
  /** Latency over the slowness of its moment. @type {number[]} */
  const latencies = [];
  /** @type {number[]} */
  const goodPerStep = [];
  let possible = 0;

  /** @param {{ caller: Caller, arrivedMs: number, firstMs: number, pass: object }} request @param {number} nowMs */
  const start = (request, nowMs) => {
    busy++;
    let serviceMs = Math.exp(mu + sigma * gaussian()) * slowness(nowMs / 1000);
    const debtMs = Math.min(refusalDebtMs, 5);
    refusalDebtMs -= debtMs;
    serviceMs += debtMs;
    agenda.add(nowMs + serviceMs, (atMs) => {
      busy--;
      contestant.end(request.pass, atMs);
      const latencyMs = atMs - request.arrivedMs;
      const isGood = latencyMs <= deadlineMs * slowness(request.arrivedMs / 1000);
      if (request.arrivedMs >= warmMs && request.arrivedMs < endMs) {
        latencies.push(latencyMs / slowness(request.arrivedMs / 1000));
        if (isGood) {
          good.all++;
          if (request.caller.class === "critical") good.critical++;
          if (request.caller.class === "normal") good.normal++;
          if (request.caller.class === "normal" && request.caller.tenant === "t0") good.noisy++;
          const step = Math.floor(request.arrivedMs / STEP_MS);
          goodPerStep[step] = (goodPerStep[step] ?? 0) + 1;
        }
      }
      const next = queue[queueHead];
      if (next === undefined) return;
      queueHead++;
      if (queueHead > 10_000) {
        queue.splice(0, queueHead);
        queueHead = 0;
      }
      start(next, atMs);
    });
  };

  /** @param {number} nowMs @param {Caller} caller @param {number} tries @param {number} firstMs */
  const arrive = (nowMs, caller, tries, firstMs) => {
    if (tries === 0 && nowMs >= warmMs) {
      asked.all++;
      if (caller.class === "critical") asked.critical++;
    }
    const pass = contestant.admit(nowMs, caller);
    if (pass !== undefined) {
      const request = { caller, arrivedMs: nowMs, firstMs, pass };
      if (busy < places) start(request, nowMs);
      else queue.push(request);
      return;
    }
    refusalDebtMs += REFUSAL_MS;
    if (tries < retries) agenda.add(nowMs + 50 + random() * 100, (atMs) => arrive(atMs, caller, tries + 1, firstMs));
  };

  const tenantSum = tenants.reduce((sum, weight) => sum + weight, 0);
  const tenantOf = () => {
    let left = random() * tenantSum;
    for (let i = 0; i < tenants.length; i++) {
      left -= /** @type {number} */ (tenants[i]);
      if (left < 0) return `t${i}`;
    }
    return "t";
  };
  const classOf = () => {
    let left = random();
    for (const [name, share] of Object.entries(mix)) {
      left -= share;
      if (left < 0) return name;
    }
    return "sheddable";
  };
  /** @param {number} nowMs */
  const next = (nowMs) => {
    const rate = Math.max(1e-9, capacityPerMs * load(nowMs / 1000));
    const atMs = nowMs - Math.log(1 - random()) / rate;
    if (atMs >= endMs) return;
    agenda.add(atMs, () => {
      const tenant = tenantOf();
      arrive(atMs, { class: classOf(), user: `${tenant}-u${Math.floor(random() * USERS)}`, tenant }, 0, atMs);
      next(atMs);
    });
  };
  next(0);
  for (let event = agenda.next(); event !== undefined && event.atMs < endMs + 20_000; event = agenda.next()) {
    event.run(event.atMs);
  }
  for (let s = warmSeconds; s < seconds; s += 0.01) {
    possible += Math.min(capacityPerMs / slowness(s), capacityPerMs * load(s)) * 10;
  }
  const steps = goodPerStep.slice(Math.ceil((settledSeconds * 1000) / STEP_MS), Math.floor(endMs / STEP_MS));
  const mean = steps.reduce((sum, count) => sum + count, 0) / Math.max(1, steps.length);
  return {
    goodput: good.all / possible,
    critical: asked.critical === 0 ? 1 : good.critical / asked.critical,
    p99: quantile(latencies, 0.99),
    unloadedP99: Math.exp(mu + 2.326 * sigma),
    oscillation: steps.length === 0 ? 0 : Math.max(...steps.map((count) => Math.abs(count - mean) / mean)),
    noisyShare: good.noisy / Math.max(1, good.normal),
    limit: contestant.limit?.() ?? Number.NaN,
  };
}

/** @param {number[]} values @param {number} share */
function quantile(values, share) {
  const sorted = Float64Array.from(values).sort();
  return sorted[Math.floor(share * (sorted.length - 1))] ?? 0;
}

/** Each as the issue names it. @type {readonly Scenario[]} */
export const scenarios = [
  { name: "10x", places: 16, seconds: 30, warmSeconds: 5, settledSeconds: 10, load: () => 10 },
  {
    name: "4x, backend 3x slower from 15 s on",
    places: 16,
    seconds: 40,
    warmSeconds: 5,
    settledSeconds: 20,
    load: () => 4,
    slowness: (s) => (s < 15 ? 1 : 3),
  },
  { name: "10x, 4 places", places: 4, seconds: 30, warmSeconds: 5, settledSeconds: 10, load: () => 10 },
  { name: "10x, 64 places, cold", places: 64, seconds: 20, warmSeconds: 0, settledSeconds: 5, load: () => 10 },
  {
    name: "5x, each retried twice",
    places: 16,
    seconds: 30,
    warmSeconds: 5,
    settledSeconds: 10,
    load: () => 5,
    retries: 2,
  },
  {
    name: "3x, one of 20 tenants has 10 times the traffic",
    places: 16,
    seconds: 30,
    warmSeconds: 5,
    settledSeconds: 10,
    load: () => 3,
    mix: { critical: 0.05, normal: 0.95 },
    tenants: [10, ...Array.from({ length: 19 }, () => 1)],
  },
  {
    name: "2x, backend 5x slower at 10 s, recovers until 40 s",
    places: 16,
    seconds: 50,
    warmSeconds: 5,
    settledSeconds: 40,
    load: () => 2,
    slowness: (s) => (s < 10 ? 1 : s < 20 ? 5 : s < 40 ? 5 - (s - 20) / 5 : 1),
  },
  {
    name: "10x, all of it critical",
    places: 16,
    seconds: 30,
    warmSeconds: 5,
    settledSeconds: 10,
    load: () => 10,
    mix: { critical: 1 },
    allCritical: true,
  },
  {
    name: "idle, then 4x from 15 s on",
    places: 16,
    seconds: 40,
    warmSeconds: 15,
    settledSeconds: 20,
    load: (s) => (s < 15 ? 0.05 : 4),
  },
  { name: "2x", places: 16, seconds: 30, warmSeconds: 5, settledSeconds: 10, load: () => 2 },
  { name: "0.8x", places: 16, seconds: 30, warmSeconds: 5, settledSeconds: 10, load: () => 0.8 },
];
