/**
 * A server under overload, in virtual time: places that work, a queue before them, and a contestant that decides who comes in.
 * Seeded and deterministic. The contestants are Sluice's own shedder, and what others have published (`overload-peers.mjs`).
 */

/**
 * @typedef {{ class: string, user: string, tenant: string }} Caller
 * @typedef {{ admit(nowMs: number, caller: Caller): object | undefined, end(pass: object, nowMs: number): void, limit?: () => number }} Contestant
 * @typedef {{
 *   name: string, places: number, seconds: number, load: (s: number) => number, slowness?: (s: number) => number,
 *   warmSeconds?: number, settledSeconds?: number, retries?: number, tenants?: readonly number[], mix?: Readonly<Record<string, number>>,
 *   allCritical?: boolean, meanMs?: number, pauses?: { everyMs: number, meanMs: number }, real?: { capacityPerS?: number, load?: (s: number) => number, seconds?: number,
 *   warmSeconds?: number, settledSeconds?: number }
 * }} Scenario `meanMs`: of serving one request; `pauses`: of the process that decides, while its backend works on; `real`: what is other in
 *   real time
 * @typedef {{ goodput: number, critical: number, p99: number, unloadedP99: number, oscillation: number, noisyShare: number, limit: number }} Outcome
 */

const MIX = { critical: 0.05, important: 0.15, normal: 0.4, sheddable: 0.4 };
const MEAN_MS = 20;
/** Requests that take longer have failed, as multiples of the mean service time. */
const DEADLINE_MEANS = 12.5;
const USERS = 2_000;
/** What a refusal costs the server. */
const REFUSAL_MS = 0.05;
const STEP_MS = 5_000;
/** Lognormal, with a standard deviation as large as the mean. */
const SIGMA = Math.sqrt(Math.log(2));

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

/** @typedef {{ caller: Caller, arrivedMs: number, pass: object }} Admitted */

/** Who asks, when, and how long a request takes to serve: drawn from one scenario. */
export class Traffic {
  #scenario;
  #random;
  #capacityPerMs;
  #mu;

  /** @param {Scenario} scenario @param {() => number} random @param {number} meanMs of serving one request */
  constructor(scenario, random, meanMs) {
    this.#scenario = { slowness: () => 1, tenants: [], mix: MIX, ...scenario };
    this.#random = random;
    this.#capacityPerMs = scenario.places / meanMs;
    this.#mu = Math.log(meanMs) - (SIGMA * SIGMA) / 2;
  }

  /** When the next request comes after `nowMs`. @param {number} nowMs */
  nextMs(nowMs) {
    const rate = Math.max(1e-9, this.#capacityPerMs * this.#scenario.load(nowMs / 1000));
    return nowMs - Math.log(1 - this.#random()) / rate;
  }

  /** @returns {Caller} */
  caller() {
    const tenant = this.#tenant();
    const user = `${tenant}-u${Math.floor(this.#random() * USERS)}`;
    return { class: this.#class(), user, tenant };
  }

  /** @param {number} nowMs */
  serviceMs(nowMs) {
    return Math.exp(this.#mu + SIGMA * this.#gaussian()) * this.#scenario.slowness(nowMs / 1000);
  }

  /** How long a refused caller waits before it tries again. */
  pauseMs() {
    return 50 + this.#random() * 100;
  }

  #gaussian() {
    let sum = 0;
    for (let i = 0; i < 12; i++) sum += this.#random();
    return sum - 6;
  }

  #tenant() {
    const { tenants } = this.#scenario;
    let left = this.#random() * tenants.reduce((sum, weight) => sum + weight, 0);
    for (const [i, weight] of tenants.entries()) {
      left -= weight;
      if (left < 0) return `t${i}`;
    }
    return "t";
  }

  #class() {
    let left = this.#random();
    for (const [name, share] of Object.entries(this.#scenario.mix)) {
      left -= share;
      if (left < 0) return name;
    }
    return "sheddable";
  }
}

/** What came of the requests of one run. */
export class Tally {
  #asked = { critical: 0 };
  #good = { critical: 0, all: 0, normal: 0, noisy: 0 };
  /** Over the slowness of their moment. @type {number[]} */
  #latencies = [];
  /** @type {number[]} */
  #goodPerStep = [];
  #scenario;
  #meanMs;

  /** @param {Scenario} scenario @param {number} meanMs of serving one request */
  constructor(scenario, meanMs) {
    this.#scenario = { slowness: () => 1, warmSeconds: 0, ...scenario };
    this.#meanMs = meanMs;
  }

  /** How long a caller waits for a request that it sends now. @param {number} nowMs */
  deadlineMs(nowMs) {
    return DEADLINE_MEANS * this.#meanMs * this.#scenario.slowness(nowMs / 1000);
  }

  /** A first try. @param {Caller} caller @param {number} nowMs */
  asked(caller, nowMs) {
    if (nowMs >= this.#scenario.warmSeconds * 1000 && caller.class === "critical") this.#asked.critical++;
  }

  /** @param {Caller} caller @param {number} arrivedMs @param {number} nowMs */
  served(caller, arrivedMs, nowMs) {
    const { warmSeconds, seconds } = this.#scenario;
    const isInTime = nowMs - arrivedMs <= this.deadlineMs(arrivedMs);
    // By when it was served: what still waits at the end would be more than the places can do.
    if (isInTime && nowMs >= warmSeconds * 1000 && nowMs < seconds * 1000) this.#good.all++;
    if (arrivedMs < warmSeconds * 1000) return;
    this.#latencies.push((nowMs - arrivedMs) / this.#scenario.slowness(arrivedMs / 1000));
    if (!isInTime) return;
    const good = this.#good;
    if (caller.class === "critical") good.critical++;
    if (caller.class === "normal") good.normal++;
    if (caller.class === "normal" && caller.tenant === "t0") good.noisy++;
    const step = Math.floor(arrivedMs / STEP_MS);
    this.#goodPerStep[step] = (this.#goodPerStep[step] ?? 0) + 1;
  }

  /** @param {number | undefined} limit @param {number} [drawnMeanMs] what serving one request really took @returns {Outcome} */
  outcome(limit, drawnMeanMs = this.#meanMs) {
    const good = this.#good;
    return {
      goodput: good.all / this.#possible(drawnMeanMs),
      critical: this.#asked.critical === 0 ? 1 : good.critical / this.#asked.critical,
      p99: quantile(this.#latencies, 0.99),
      unloadedP99: Math.exp(Math.log(this.#meanMs) - (SIGMA * SIGMA) / 2 + 2.326 * SIGMA),
      oscillation: this.#oscillation(),
      noisyShare: good.noisy / Math.max(1, good.normal),
      limit: limit ?? Number.NaN,
    };
  }

  /** What a server that wastes nothing would serve. @param {number} drawnMeanMs */
  #possible(drawnMeanMs) {
    const { places, warmSeconds, seconds, slowness, load } = this.#scenario;
    let possible = 0;
    for (let s = warmSeconds; s < seconds; s += 0.01) {
      possible += Math.min(1 / slowness(s) / drawnMeanMs, load(s) / this.#meanMs) * places * 10;
    }
    return possible;
  }

  #oscillation() {
    const { seconds, warmSeconds, settledSeconds = warmSeconds } = this.#scenario;
    const steps = this.#goodPerStep.slice(
      Math.ceil((settledSeconds * 1000) / STEP_MS),
      Math.floor((seconds * 1000) / STEP_MS),
    );
    if (steps.length === 0) return 0;
    const mean = steps.reduce((sum, count) => sum + count, 0) / steps.length;
    return Math.max(...steps.map((count) => Math.abs(count - mean) / mean));
  }
}

/** When a process that is paused now and then, as on a starved machine, gets to what happens. */
class Pauses {
  #scenario;
  #random;
  #beginMs = 0;
  #endMs = 0;

  /** @param {Scenario} scenario @param {() => number} random */
  constructor(scenario, random) {
    this.#scenario = scenario;
    this.#random = random;
  }

  /** `atMs`, or the end of the pause that it falls into. Asked in the order of time. @param {number} atMs */
  over(atMs) {
    const { pauses } = this.#scenario;
    if (pauses === undefined) return atMs;
    while (atMs >= this.#endMs) {
      this.#beginMs = this.#endMs - Math.log(1 - this.#random()) * pauses.everyMs;
      this.#endMs = this.#beginMs - Math.log(1 - this.#random()) * pauses.meanMs;
    }
    return atMs < this.#beginMs ? atMs : this.#endMs;
  }
}

/** One run of one contestant in one scenario. */
class Run {
  #agenda = new Agenda();
  /** @type {Admitted[]} */
  #queue = [];
  #queueHead = 0;
  #busy = 0;
  #refusalDebtMs = 0;
  #scenario;
  #contestant;
  #traffic;
  #tally;
  #pauses;
  #endMs;

  /** @param {Scenario} scenario @param {Contestant} contestant @param {() => number} random */
  constructor(scenario, contestant, random) {
    this.#scenario = { retries: 0, ...scenario };
    this.#contestant = contestant;
    const { meanMs = MEAN_MS } = scenario;
    this.#traffic = new Traffic(scenario, random, meanMs);
    this.#tally = new Tally(scenario, meanMs);
    this.#pauses = new Pauses(scenario, randomOf(99));
    this.#endMs = scenario.seconds * 1000;
  }

  /** @returns {Outcome} */
  run() {
    this.#next(0);
    for (let event = this.#agenda.next(); event && event.atMs < this.#endMs + 20_000; event = this.#agenda.next()) {
      event.run(event.atMs);
    }
    return this.#tally.outcome(this.#contestant.limit?.());
  }

  /** @param {number} nowMs */
  #next(nowMs) {
    const atMs = this.#traffic.nextMs(nowMs);
    if (atMs >= this.#endMs) return;
    this.#agenda.add(atMs, () => {
      this.#awake(atMs, (nowMs) => this.#arrive(nowMs, this.#traffic.caller(), 0, atMs));
      this.#next(atMs);
    });
  }

  /** Runs something now, or when the process is awake again. @param {number} atMs @param {(nowMs: number) => void} run */
  #awake(atMs, run) {
    const awakeMs = this.#pauses.over(atMs);
    if (awakeMs === atMs) run(atMs);
    else this.#agenda.add(awakeMs, run);
  }

  /** @param {number} nowMs @param {Caller} caller @param {number} tries @param {number} sentMs */
  #arrive(nowMs, caller, tries, sentMs = nowMs) {
    if (tries === 0) this.#tally.asked(caller, nowMs);
    const pass = this.#contestant.admit(nowMs, caller);
    if (pass === undefined) {
      this.#refusalDebtMs += REFUSAL_MS;
      const againMs = nowMs + this.#traffic.pauseMs();
      if (tries < this.#scenario.retries) this.#agenda.add(againMs, (atMs) => this.#arrive(atMs, caller, tries + 1));
      return;
    }
    const request = { caller, arrivedMs: sentMs, pass };
    if (this.#busy < this.#scenario.places) this.#start(request, nowMs);
    else this.#queue.push(request);
  }

  /** @param {Admitted} request @param {number} nowMs */
  #start(request, nowMs) {
    this.#busy++;
    const debtMs = Math.min(this.#refusalDebtMs, 5);
    this.#refusalDebtMs -= debtMs;
    this.#agenda.add(nowMs + this.#traffic.serviceMs(nowMs) + debtMs, (atMs) => {
      this.#busy--;
      this.#awake(atMs, (nowMs) => {
        this.#contestant.end(request.pass, nowMs);
        this.#tally.served(request.caller, request.arrivedMs, nowMs);
      });
      const next = this.#queue[this.#queueHead];
      if (next === undefined) return;
      this.#queueHead++;
      if (this.#queueHead > 10_000) {
        this.#queue.splice(0, this.#queueHead);
        this.#queueHead = 0;
      }
      this.#start(next, atMs);
    });
  }
}

/**
 * @param {Scenario} scenario
 * @param {(random: () => number) => Contestant} make
 * @param {number} seed
 */
export function runScenario(scenario, make, seed) {
  return new Run(scenario, make(randomOf(seed + 1000)), randomOf(seed)).run();
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
  {
    name: "10x, 4 places",
    places: 4,
    seconds: 30,
    warmSeconds: 5,
    settledSeconds: 10,
    load: () => 10,
    // Of 20 ms, as in virtual time, a few are lost whenever the event loop is at another request.
    real: { capacityPerS: 100, seconds: 60, warmSeconds: 10, settledSeconds: 20 },
  },
  {
    name: "10x, 64 places, cold",
    places: 64,
    seconds: 20,
    warmSeconds: 0,
    settledSeconds: 5,
    load: () => 10,
    // 64 places that served 200 requests a second would take a third of a second for each: a cold start would be the whole run.
    real: { capacityPerS: 640, load: () => 3, seconds: 40, settledSeconds: 20 },
  },
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

/** On a machine that leaves the process five eighths of the time. No bar holds for it but one: the limit does not run away. @type {Scenario} */
export const starved = {
  name: "10x, the process pauses for 60 ms ten times in 1.6 s",
  places: 16,
  seconds: 60,
  warmSeconds: 10,
  settledSeconds: 20,
  load: () => 10,
  pauses: { everyMs: 100, meanMs: 60 },
};

/** Requests a second that a server of the real benchmark does: ten times as many refusals must be a part of one core. */
const REAL_CAPACITY_PER_S = 200;

/** As it is played in real time: the same places, each slower. @param {Scenario} scenario @returns {Scenario} */
export function inRealTime(scenario) {
  const { capacityPerS = REAL_CAPACITY_PER_S, ...changes } = scenario.real ?? {};
  return { ...scenario, ...changes, meanMs: (1000 * scenario.places) / capacityPerS };
}
