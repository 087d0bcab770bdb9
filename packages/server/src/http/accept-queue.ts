/**
 * Connections that wait to be accepted: to close a listener resets them. Every listener of the process counts here, so that a close can
 * wait until none came for a few looks.
 *
 * A moment is counted in looks, not by the clock: a process that was held up has accepted nothing meanwhile.
 */
import type { Server } from "node:net";
import { setImmediate as endOfTurn, setTimeout as sleep } from "node:timers/promises";

const LOOK_EVERY_MS = 20;
const QUIET_LOOKS = 5;
/** There may be clients that never stop. */
const MOST_LOOKS = 50;
const SHORT_TURN_MS = 0.2;
const MOST_TURNS = 2_000;

let accepted = 0;

export function countAccepted(server: Server): void {
  server.on("connection", () => {
    accepted++;
  });
}

/** Resolves when no connection came for a few looks. */
export async function untilQueueIsEmpty(): Promise<void> {
  let before = accepted;
  let quiet = 0;
  for (let looks = 0; quiet < QUIET_LOOKS && looks < MOST_LOOKS; looks++) {
    await nextLook();
    quiet = accepted === before ? quiet + 1 : 0;
    before = accepted;
  }
}

/**
 * Resolves at the end of a short turn of the event loop in which no connection came. Each turn accepts all connections that wait, so a
 * listener that is closed before the next `await` resets only those that came within this turn.
 */
export async function untilNobodyWaits(): Promise<void> {
  for (let turns = 0; turns < MOST_TURNS; turns++) {
    const before = accepted;
    const startMonotonicMs = performance.now();
    await endOfTurn();
    if (accepted === before && performance.now() - startMonotonicMs < SHORT_TURN_MS) return;
  }
}

/** Timers come first in a turn of the event loop: what has arrived by then is accepted and read before the look. */
export async function nextLook(): Promise<void> {
  await sleep(LOOK_EVERY_MS);
  await endOfTurn();
}
