/**
 * `user=42 path=/v1/x` on the command line, as attributes.
 */
import { ownField, setOwn } from "../own-fields.js";
import { CommandFailure, exitStatus } from "./command-failure.js";

export function parseAttributes(given: readonly string[]): Record<string, string> {
  const attributes: Record<string, string> = {};
  for (const pair of given) {
    const equalsAt = pair.indexOf("=");
    if (equalsAt < 1) {
      throw new CommandFailure(`expected attributes such as user=42, got ${JSON.stringify(pair)}`, exitStatus.misuse);
    }
    const name = pair.slice(0, equalsAt);
    const value = pair.slice(equalsAt + 1);
    // One of the two would be dropped: `user=1 user=2` is a slip, and the answer would be about another key than one of them.
    const before = ownField(attributes, name);
    if (before !== undefined) {
      const both = `${JSON.stringify(before)} and ${JSON.stringify(value)}`;
      throw new CommandFailure(`${name}: expected one value, got ${both}`, exitStatus.misuse);
    }
    setOwn(attributes, name, value);
  }
  return attributes;
}

/** For `--cost`. */
export function parseCost(text: string): number {
  const cost = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
  if (Number.isSafeInteger(cost)) return cost;
  throw new CommandFailure(`--cost: expected a whole number of at least 0, got ${text}`, exitStatus.misuse);
}
