/**
 * Steady load on limiters, and the record of every answer for the judge. Beside it runs a timer that does nothing else: how late it comes
 * is how long this process could not have answered anybody.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { CheckOptions, Decision, Limiter } from "sluice";
import { Decision as MadeDecision } from "../../packages/sluice/src/limiter/decision.js";
import type { Answer, LateTurn } from "./judge.js";

export interface LoadOptions {
  /** Checks go to them in turn: several instances that share a store. */
  readonly limiters: readonly Limiter[];
  /** Checks go to them in turn: values of the attribute `user`. */
  readonly users: readonly string[];
  readonly perSecond: number;
  /** More of each check, by its number. */
  readonly options?: (n: number) => CheckOptions;
}

export interface SteadyLoad {
  readonly history: readonly Answer[];
  readonly lateTurns: readonly LateTurn[];
  /** Ends the load and waits for the last answers. */
  stop(): Promise<void>;
}

const TURN_MS = 1;

export function startLoad({ limiters, users, perSecond, options }: LoadOptions): SteadyLoad {
  const history: Answer[] = [];
  const lateTurns: LateTurn[] = [];
  const underWay = new Set<Promise<void>>();
  let running = true;
  let sent = 0;
  let lastTurnMs = performance.now();
  const turns = setInterval(() => {
    const atMs = performance.now();
    if (atMs - lastTurnMs > 2 * TURN_MS) lateTurns.push({ fromMs: lastTurnMs, toMs: atMs });
    lastTurnMs = atMs;
  }, TURN_MS);

  const send = async (n: number): Promise<void> => {
    const user = users[n % users.length]!;
    const sentAtMs = performance.now();
    try {
      const decision = await limiters[n % limiters.length]!.check({ user }, options?.(n) ?? {});
      history.push({ key: user, sentAtMs, answeredAtMs: performance.now(), ...told(decision) });
    } catch (error) {
      const failure = String(error);
      history.push({ key: user, sentAtMs, answeredAtMs: performance.now(), allowed: false, failure });
    }
  };

  const startedMs = performance.now();
  const pacing = (async () => {
    while (running) {
      // As many as are due by now: a late turn is made up for, so that the rate holds on a busy machine.
      const due = Math.floor(((performance.now() - startedMs) * perSecond) / 1_000);
      for (; sent < due && running; sent++) {
        const answer: Promise<void> = send(sent).finally(() => underWay.delete(answer));
        underWay.add(answer);
      }
      await sleep(4);
    }
  })();

  return {
    history,
    lateTurns,
    async stop() {
      running = false;
      await pacing;
      await Promise.all(underWay);
      clearInterval(turns);
    },
  };
}

function told(decision: Decision): Pick<Answer, "allowed" | "degraded" | "decidedAtMs"> {
  const { allowed, degraded } = decision;
  if (degraded !== undefined) return { allowed, degraded };
  return { allowed, decidedAtMs: MadeDecision.originOf(decision).nowMs };
}
