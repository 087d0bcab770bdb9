/**
 * A server under overload, in virtual time: places that work, a queue before them, and a contestant that decides who comes in.
 * Seeded and deterministic. The contestants are Sluice's own shedder, and what others have published (`overload-peers.mjs`).
 */
import { playedSeconds, SIGMA, Tally } from "./overload-tally.mjs";

/**
 * @typedef {{ class: string, user: string, tenant: string }} Caller
 * @typedef {{ admit(nowMs: number, caller: Caller): object | undefined, end(pass: object, nowMs: number): void, late?(integral: number): void, limit?: () => number }} Contestant `late`: what the process was late by, as `loop-lateness.ts` measures it
 * @typedef {{
 *   name: string, places: number, seconds: number, load: (s: number) => number, slowness?: (s: number) => number,
 *   warmSeconds?: number, settledSeconds?: number, retries?: number, tenants?: readonly number[], mix?: Readonly<Record<string, number>>,
 *   allCritical?: boolean, meanMs?: number, pauses?: { everyMs: number, meanMs: number }, handlingMs?: number, real?: { capacityPerS?: number, load?: (s: number) => number, seconds?: number,
 *   warmSeconds?: number, settledSeconds?: number }
 * }} Scenario `meanMs`: of serving one request; `pauses`: of the process that decides, while its backend works on; `handlingMs`: its work for each arrival and end; `real`: what is other in
 *   real time
 * @typedef {import("./overload-tally.mjs").Outcome} Outcome
 */

const MIX = { critical: 0.05, important: 0.15, normal: 0.4, sheddable: 0.4 };
const MEAN_MS = 20;
const USERS = 2_000;
/** What a refusal costs the server. */
const REFUSAL_MS = 0.05;

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

/** When a process that is paused now and then, as on a starved machine, or busy with every request, gets to what happens. */
class Process {
  #scenario;
  #random;
  #onLate;
  #freeMs = 0;
  #beginMs = 0;
  #endMs = 0;

  /** @param {Scenario} scenario @param {() => number} random @param {(integral: number) => void} onLate */
  constructor(scenario, random, onLate) {
    this.#scenario = scenario;
    this.#random = random;
    this.#onLate = onLate;
  }

  /** When it handles what becomes ready at `atMs`. Asked in the order of time. @param {number} atMs */
  handlesMs(atMs) {
    const { handlingMs = 0 } = this.#scenario;
    const handledMs = this.#over(Math.max(atMs, this.#freeMs));
    // While it works, what becomes ready is late by the rest of the work and by what waits already.
    if (handlingMs > 0) this.#onLate(handlingMs * (handledMs - atMs + handlingMs / 2));
    this.#freeMs = handledMs + handlingMs;
    return handledMs;
  }

  /** `atMs`, or the end of the pause that it falls into. @param {number} atMs */
  #over(atMs) {
    const { pauses } = this.#scenario;
    if (pauses === undefined) return atMs;
    while (atMs >= this.#endMs) {
      this.#beginMs = this.#endMs - Math.log(1 - this.#random()) * pauses.everyMs;
      this.#endMs = this.#beginMs - Math.log(1 - this.#random()) * pauses.meanMs;
      this.#onLate((this.#endMs - this.#beginMs) ** 2 / 2);
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
  #process;
  #endMs;

  /** @param {Scenario} scenario @param {Contestant} contestant @param {() => number} random */
  constructor(scenario, contestant, random) {
    this.#scenario = { retries: 0, ...scenario };
    this.#contestant = contestant;
    const { meanMs = MEAN_MS } = scenario;
    this.#traffic = new Traffic(scenario, random, meanMs);
    this.#tally = new Tally(scenario, meanMs);
    this.#process = new Process(scenario, randomOf(99), (integral) => contestant.late?.(integral));
    this.#endMs = playedSeconds(scenario, meanMs) * 1000;
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
      this.#handle(atMs, (nowMs) => this.#arrive(nowMs, this.#traffic.caller(), 0, atMs));
      this.#next(atMs);
    });
  }

  /** Runs something now, or when the process gets to it. @param {number} atMs @param {(nowMs: number) => void} run */
  #handle(atMs, run) {
    const handledMs = this.#process.handlesMs(atMs);
    if (handledMs === atMs) run(atMs);
    else this.#agenda.add(handledMs, run);
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
      this.#handle(atMs, (nowMs) => {
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
    // A hundred a second when it is slow: fewer would make the steps of the oscillation longer than what they are to find.
    real: { capacityPerS: 300 },
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

const starved = { places: 16, seconds: 60, warmSeconds: 10, settledSeconds: 20, load: () => 10 };

/**
 * Processes that are late: the machine leaves them five eighths or a third of the time, or refusals keep them busy. No bar holds there but
 * one: the limit does not run away. @type {readonly Scenario[]}
 */
export const lateProcesses = [
  {
    ...starved,
    name: "10x, the process pauses for 60 ms ten times in 1.6 s",
    pauses: { everyMs: 100, meanMs: 60 },
  },
  {
    ...starved,
    name: "10x, the process pauses for 200 ms ten times in 3 s",
    pauses: { everyMs: 100, meanMs: 200 },
  },
  {
    name: "3x, 64 places, the process pauses for 60 ms ten times in 1.6 s",
    places: 64,
    seconds: 40,
    warmSeconds: 10,
    settledSeconds: 15,
    load: () => 3,
    pauses: { everyMs: 100, meanMs: 60 },
    real: { capacityPerS: 640 },
  },
  {
    ...starved,
    name: "10x, the process is busy with refusals",
    handlingMs: 0.36,
    pauses: { everyMs: 300, meanMs: 60 },
  },
];

/** Requests a second that a server of the real benchmark does: ten times as many refusals must be a part of one core. */
const REAL_CAPACITY_PER_S = 200;

/** As it is played in real time: the same places, each slower. @param {Scenario} scenario @returns {Scenario} */
export function inRealTime(scenario) {
  const { capacityPerS = REAL_CAPACITY_PER_S, ...changes } = scenario.real ?? {};
  return { ...scenario, ...changes, meanMs: (1000 * scenario.places) / capacityPerS };
}
