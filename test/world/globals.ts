/**
 * Node's time, timers and random bytes, answered by the simulation while one of its actors runs, by Node itself otherwise.
 * In: a simulation. Out: a function that restores what was there, with the real `setImmediate` on it.
 */
import crypto from "node:crypto";
import { syncBuiltinESMExports } from "node:module";
import type { Actor, Simulation, Timer } from "./simulation.js";

/** As Node's timers: whole ms, at least one, and not more than this. */
const LONGEST_TIMER_MS = 2_147_483_647;

interface Restore {
  (): void;
  readonly setImmediate: typeof setImmediate;
}

class VirtualTimer implements Timer {
  active = true;
  readonly actor: Actor;

  constructor(actor: Actor) {
    this.actor = actor;
    actor.timers.add(this);
  }

  clear(): void {
    this.active = false;
    this.actor.timers.delete(this);
  }

  ref(): this {
    return this;
  }

  unref(): this {
    return this;
  }

  hasRef(): boolean {
    return false;
  }
}

type Callback = (...args: unknown[]) => void;

export function installGlobals(simulation: Simulation): Restore {
  const real = {
    setTimeout: globalThis.setTimeout,
    clearTimeout: globalThis.clearTimeout,
    setInterval: globalThis.setInterval,
    clearInterval: globalThis.clearInterval,
    setImmediate: globalThis.setImmediate,
    clearImmediate: globalThis.clearImmediate,
  };
  const dateNow = Date.now;
  const performanceNow = performance.now;
  const randomBytes = crypto.randomBytes;

  const arm = (actor: Actor, waitMs: number, run: () => void, timer = new VirtualTimer(actor)): VirtualTimer => {
    const wholeMs = waitMs >= 1 && waitMs <= LONGEST_TIMER_MS ? Math.trunc(waitMs) : 1;
    simulation.at(simulation.nowMs + wholeMs / actor.clock.rate, actor, run, timer);
    return timer;
  };
  const setTimeoutHere = (callback: Callback, waitMs = 1, ...args: unknown[]): unknown => {
    const { actor } = simulation;
    if (actor === undefined) return real.setTimeout(callback, waitMs, ...args);
    const timer: VirtualTimer = arm(actor, waitMs, () => {
      timer.clear();
      callback(...args);
    });
    return timer;
  };
  const setIntervalHere = (callback: Callback, everyMs = 1, ...args: unknown[]): unknown => {
    const { actor } = simulation;
    if (actor === undefined) return real.setInterval(callback, everyMs, ...args);
    const beat = (): void => {
      arm(actor, everyMs, beat, timer);
      callback(...args);
    };
    const timer: VirtualTimer = arm(actor, everyMs, beat);
    return timer;
  };
  const setImmediateHere = (callback: Callback, ...args: unknown[]): unknown => {
    const { actor } = simulation;
    if (actor === undefined) return real.setImmediate(callback, ...args);
    const timer = new VirtualTimer(actor);
    simulation.at(
      simulation.nowMs,
      actor,
      () => {
        timer.clear();
        callback(...args);
      },
      timer,
    );
    return timer;
  };
  const clearer =
    (clear: (timer: never) => void) =>
    (timer: unknown): void => {
      if (timer instanceof VirtualTimer) timer.clear();
      else clear(timer as never);
    };
  Object.assign(globalThis, {
    setTimeout: setTimeoutHere,
    clearTimeout: clearer(real.clearTimeout),
    setInterval: setIntervalHere,
    clearInterval: clearer(real.clearInterval),
    setImmediate: setImmediateHere,
    clearImmediate: clearer(real.clearImmediate),
  });
  Date.now = () => simulation.actor?.clock.wallMs() ?? dateNow();
  performance.now = () => simulation.actor?.clock.monotonicMs() ?? performanceNow.call(performance);
  const seededBytes = (size: number): Buffer => {
    if (simulation.actor === undefined) return randomBytes(size);
    return Buffer.from(Array.from({ length: size }, () => simulation.bytes.whole(0, 255)));
  };
  crypto.randomBytes = seededBytes as typeof crypto.randomBytes;
  syncBuiltinESMExports();

  const restore = (): void => {
    Object.assign(globalThis, real);
    Date.now = dateNow;
    performance.now = performanceNow;
    crypto.randomBytes = randomBytes;
    syncBuiltinESMExports();
  };
  return Object.assign(restore, { setImmediate: real.setImmediate });
}
