/**
 * The rules of a first run: small enough that one person with curl meets a refusal, loose enough to try things out under.
 * They are for that person alone: traffic of an Envoy never meets them, nor does an instance that was given limits of its own.
 */
import type { Rule } from "sluice";

export const starterRules: readonly Rule[] = [
  {
    id: "starter-per-user",
    description: "Five requests in any ten seconds for each user. Replace me.",
    key: ["user"],
    algorithm: "rolling-window",
    limit: 5,
    window: "10s",
  },
  {
    id: "starter-per-address",
    description: "For requests that come by address: forward-auth, the proxy. Replace me.",
    key: ["ip"],
    algorithm: "token-bucket",
    limit: 100,
    window: "1m",
  },
];

const numbersOf = ({ id, key, algorithm, limit, window, match }: Rule & { window?: unknown }): string =>
  JSON.stringify([id, key, algorithm, limit, window, Object.keys(match ?? {}).length]);
const untouched = new Map(starterRules.map((rule) => [rule.id, numbersOf(rule)]));

/** Whether a rule is one of these, unchanged. */
export function isStarterRule(rule: Rule): boolean {
  // By its id first: requests wait while a hundred thousand rules are looked through.
  const numbers = untouched.get(rule.id);
  return numbers !== undefined && numbers === numbersOf(rule);
}
