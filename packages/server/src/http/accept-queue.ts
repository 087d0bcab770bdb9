/**
 * Drains the kernel's accept queue before a listener closes: closing resets connections that are still queued. Every listener of the
 * process counts its accepted connections here, so that a close can wait until none arrived for a few polls.
 *
 * Quiet time is counted in polls, not by the clock: a process that was stalled accepted nothing in the meantime.
 */
import type { Server } from "node:net";
import { setImmediate as endOfTurn, setTimeout as sleep } from "node:timers/promises";

const LOOK_EVERY_MS = 20;
const QUIET_LOOKS = 5;
/** Upper bound, as some clients never stop connecting. */
const MOST_LOOKS = 50;
const SHORT_TURN_MS = 0.2;
const MOST_TURNS = 2_000;

let accepted = 0;

export function countAccepted(server: Server): void {
  server.on("connection", () => {
    accepted++;
  });
}

/** Resolves when no connection was accepted for a few polls. */
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
 * Resolves at the end of a short event-loop turn in which no connection was accepted. Each turn accepts all queued connections, so a
 * listener that is closed before the next `await` resets only those that arrived within this turn.
 */
export async function untilNobodyWaits(): Promise<void> {
  for (let turns = 0; turns < MOST_TURNS; turns++) {
    const before = accepted;
    const startMonotonicMs = performance.now();
    await endOfTurn();
    if (accepted === before && performance.now() - startMonotonicMs < SHORT_TURN_MS) return;
  }
}

/** Timers run first in an event-loop turn, so wait for its end: by then everything that has arrived is accepted and read. */
export async function nextLook(): Promise<void> {
  await sleep(LOOK_EVERY_MS);
  await endOfTurn();
}
