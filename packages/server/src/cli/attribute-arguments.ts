/**
 * `user=42 path=/v1/x` on the command line, as attributes.
 */
import { CommandFailure, exitStatus } from "./command-failure.js";

export function parseAttributes(given: readonly string[]): Record<string, string> {
  const attributes: Record<string, string> = {};
  for (const pair of given) {
    const equalsAt = pair.indexOf("=");
    if (equalsAt < 1) {
      throw new CommandFailure(`expected attributes such as user=42, got ${JSON.stringify(pair)}`, exitStatus.misuse);
    }
    attributes[pair.slice(0, equalsAt)] = pair.slice(equalsAt + 1);
  }
  return attributes;
}

/** For `--cost`. */
export function parseCost(text: string): number {
  const cost = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
  if (Number.isSafeInteger(cost)) return cost;
  throw new CommandFailure(`--cost: expected a whole number of at least 0, got ${text}`, exitStatus.misuse);
}
