/** A Redis as a store under test, through one of its clients. */
import { createLimiter, type Limiter, type Rule } from "sluice";
import { redisStore } from "sluice/redis";
import type { StoreUnderTest } from "./conformance.js";

// The table's waits are tight against its windows, not against this machine: a stall must not look like an outage.
const options = { deadlineMs: 60_000 };

export function redisUnderTest({
  name,
  client,
  clear,
}: {
  readonly name: string;
  readonly client: Parameters<typeof redisStore>[0];
  readonly clear: () => Promise<unknown>;
}): StoreUnderTest {
  let prefixes = 0;
  const limiterUnder = (prefix: string, rules: readonly Rule[]): Limiter =>
    createLimiter({ store: redisStore(client, { ...options, prefix }), rules });
  return {
    name,
    clear,
    limiter: (rules) => limiterUnder("", rules),
    limiterApart: (rules) => limiterUnder(`${name.replaceAll(" ", "-")}-${prefixes++}:`, rules),
    wait: (ms) => new Promise((resolve) => setTimeout(resolve, ms)),
  };
}
