/**
 * Virtual time. Actors (instances, stores) take turns; each event runs as one actor, on that actor's clocks, and all promises that it
 * settles run before the next event begins. The order of events depends on nothing but the seed.
 *
 * Time, timers and random bytes are what the library reads from Node's globals: while an actor runs, those answer for it
 * (`globals.ts`). Between events they are Node's own again, so that the test runner lives in real time.
 */
import { EventQueue } from "../../packages/server/src/analysis/event-queue.js";
import { installGlobals } from "./globals.js";
import { mixSeed, Random } from "./random.js";

/** 2026-01-01T00:00:00Z. */
const EPOCH_MS = Date.UTC(2026, 0, 1);
/** Events in one turn of the real event loop. */
const EVENTS_PER_TURN = 256;

/** A clock that runs too fast or too slow, and whose wall time may be stepped. */
export class ActorClock {
  /** How much faster than true time. */
  readonly rate: number;
  #wallOffsetMs: number;
  readonly #simulation: Simulation;

  constructor(
    simulation: Simulation,
    { driftPpm = 0, wallOffsetMs = 0 }: { driftPpm?: number; wallOffsetMs?: number },
  ) {
    this.#simulation = simulation;
    this.rate = 1 + driftPpm / 1e6;
    this.#wallOffsetMs = wallOffsetMs;
  }

  monotonicMs(): number {
    return this.#simulation.nowMs * this.rate + 1_000;
  }

  /** Whole ms, as `Date.now()`. */
  wallMs(): number {
    return Math.floor(EPOCH_MS + this.#wallOffsetMs + this.#simulation.nowMs * this.rate);
  }

  step(byMs: number): void {
    this.#wallOffsetMs += byMs;
  }
}

export interface Timer {
  active: boolean;
  readonly actor: Actor;
}

export class Actor {
  readonly name: string;
  readonly clock: ActorClock;
  /** A dead actor's events do not happen. */
  alive = true;
  readonly timers = new Set<Timer>();

  constructor(name: string, clock: ActorClock) {
    this.name = name;
    this.clock = clock;
  }
}

interface Event {
  readonly atMs: number;
  readonly actor: Actor | undefined;
  /** The step of the plan that led to it. */
  readonly cause: number;
  readonly timer: Timer | undefined;
  readonly run: () => void;
}

/** What a failed invariant throws. */
export class Violation extends Error {}

export class Simulation {
  readonly seed: number;
  nowMs = 0;
  /** Who runs now; undefined between events. */
  actor: Actor | undefined;
  cause = 0;
  events = 0;
  /** Called after every event, when its promises have settled. */
  afterEvent: (() => void) | undefined;
  /** Receives a line for each thing that happens, if set. */
  log: ((line: string) => void) | undefined;
  readonly bytes: Random;
  readonly #queue = new EventQueue<Event>();
  readonly #draws = new Map<number, number>();
  #failure: unknown;

  constructor(seed: number) {
    this.seed = seed;
    this.bytes = new Random(mixSeed(seed, 1));
  }

  /** Schedules an event in true time. */
  at(atMs: number, actor: Actor | undefined, run: () => void, timer?: Timer): void {
    const event = { atMs: Math.max(atMs, this.nowMs), actor, cause: this.cause, timer, run };
    this.#queue.add(event.atMs, event);
  }

  /** Randomness for what the present step causes, independent of all other steps. */
  fate(): Random {
    const draw = (this.#draws.get(this.cause) ?? 0) + 1;
    this.#draws.set(this.cause, draw);
    return new Random(mixSeed(this.seed, this.cause, draw, 2));
  }

  say(line: string): void {
    this.log?.(`${this.nowMs.toFixed(3).padStart(12)} ${(this.actor?.name ?? "world").padEnd(8)} ${line}`);
  }

  /** Stops the run with a violation. */
  fail(message: string): void {
    this.say(`VIOLATION ${message}`);
    this.#failure ??= new Violation(message);
  }

  /** Runs all events up to `untilMs` of true time; rejects at the first violation. */
  run(untilMs: number): Promise<void> {
    const restore = installGlobals(this);
    return new Promise<void>((resolve, reject) => {
      let over = false;
      const step = (): void => {
        if (over) return;
        this.#settled();
        if (this.#failure !== undefined || this.#queue.nextMs > untilMs) {
          over = true;
          this.actor = undefined;
          restore();
          if (this.#failure !== undefined) reject(this.#failure);
          else {
            this.nowMs = untilMs;
            resolve();
          }
          return;
        }
        this.#perform(this.#queue.take()!.item);
      };
      const turn = (): void => {
        this.#settled();
        if (over) return;
        for (let i = 0; i < EVENTS_PER_TURN; i++) restore.setImmediate(step);
        restore.setImmediate(turn);
      };
      turn();
    });
  }

  #perform(event: Event): void {
    const { actor, timer } = event;
    this.nowMs = event.atMs;
    if (timer !== undefined && !timer.active) return;
    if (actor !== undefined && !actor.alive) return;
    this.actor = actor;
    this.cause = event.cause;
    this.events++;
    try {
      event.run();
    } catch (error) {
      this.#failure ??= error;
    }
  }

  /** The promises of the event before have run: its actor is done. */
  #settled(): void {
    if (this.events > 0 && this.#failure === undefined) {
      try {
        this.afterEvent?.();
      } catch (error) {
        this.#failure ??= error;
      }
    }
    this.actor = undefined;
  }
}
