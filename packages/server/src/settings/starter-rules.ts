/**
 * The rules of a first run: tight enough that a person with curl meets a refusal, loose enough to experiment.
 * They apply to that person only: never to Envoy traffic, nor to an instance with its own limits.
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

/** Whether a rule is an unchanged starter rule. */
export function isStarterRule(rule: Rule): boolean {
  // Compare ids first: requests wait while a hundred thousand rules are checked.
  const numbers = untouched.get(rule.id);
  return numbers !== undefined && numbers === numbersOf(rule);
}
