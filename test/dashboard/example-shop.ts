/** A shop's rules and its traffic, for pages with something to show. */
import type { Rule } from "sluice";

export const exampleRules: readonly (Rule & { readonly message: string })[] = [
  {
    id: "checkout-per-user",
    description: "Checkout, per user",
    match: { path: "/v1/checkout/**", method: ["POST", "PUT"] },
    key: ["user"],
    algorithm: "rolling-window",
    limit: 220,
    window: "1m",
    overrides: [{ match: { user: "acme" }, limit: 500 }],
    candidate: { limit: 150 },
    message: "checkout had no limit",
  },
  {
    id: "api-per-address",
    description: "Everything, by address",
    key: ["ip"],
    algorithm: "token-bucket",
    limit: 600,
    window: "1m",
    message: "a base limit for everybody",
  },
  {
    id: "search-burst",
    description: "Search, evenly spaced; tried in shadow first",
    match: { path: "/v1/search" },
    key: ["user"],
    algorithm: "gcra",
    limit: 240,
    window: "1m",
    burst: 20,
    mode: "shadow",
    message: "try GCRA in shadow",
  },
  {
    id: "uploads-per-tenant",
    description: "Uploads at once, per tenant",
    match: { path: "/v1/uploads/**" },
    key: ["tenant"],
    algorithm: "concurrency",
    limit: 8,
    ttl: "2s",
    message: "uploads starved the rest",
  },
  {
    id: "login-attempts",
    description: "Guessing passwords takes long",
    match: { path: "/login" },
    key: ["ip"],
    algorithm: "fixed-window",
    limit: 10,
    window: "1h",
    onStoreFailure: "deny",
    message: "password guessing on Sunday",
  },
  {
    id: "exports-per-tenant",
    match: { path: "/v1/exports" },
    key: ["tenant"],
    algorithm: "rolling-window",
    limit: 50,
    window: "1d",
    variants: [
      { name: "control", weight: 80 },
      { name: "tight", weight: 20, limit: 30 },
    ],
    message: "A/B on exports",
  },
];

/** For the pages of load and spending. */
export const exampleLoadRules: readonly (Rule & { readonly message: string })[] = [
  {
    id: "keep-serving",
    description: "Who is served while the database is busy",
    match: { service: "api" },
    key: [],
    algorithm: "load-shedding",
    signal: ["reported", "event-loop"],
    class: { attribute: "criticality", default: "normal" },
    classes: { sheddable: 0.6, normal: 0.8, critical: 1 },
    message: "the database was overrun on Monday",
  },
  {
    id: "reports-tuned",
    description: "Reports, as many as the database bears",
    match: { service: "api" },
    key: ["tenant"],
    algorithm: "token-bucket",
    limit: 100,
    window: "1s",
    adapt: { signal: "reported", target: 0.7, min: 20, max: 200 },
    message: "reports follow the database",
  },
  {
    id: "partner-paced",
    description: "Calls to the partner, one every two seconds",
    match: { path: "/partner/**" },
    key: ["path"],
    algorithm: "gcra",
    limit: 30,
    window: "1m",
    burst: 1,
    maxWait: "5m",
    message: "the partner bans clients that hurry",
  },
  {
    id: "completion-tokens",
    description: "Tokens of answers, per organisation",
    key: ["org"],
    algorithm: "token-bucket",
    limit: 50_000,
    window: "1m",
    unit: "tokens",
    cost: { attribute: "completion_tokens" },
    estimate: { default: 400 },
    message: "tokens are what costs",
  },
];

/** How busy the database is, from 0 to 1: it swings. */
export function exampleUtilisation(round: number): number {
  return 0.66 + 0.2 * Math.sin(round / 150);
}

/** One round of requests: most of it search and checkout, a few of everything, in waves. */
export function exampleAttributes(round: number): Record<string, string>[] {
  const wave = 4 + Math.round(3 * Math.sin(round / 40));
  // Some ask more than others.
  const user = (n: number): string => `user-${Math.floor(12 * (((round * 7 + n * n) % 31) / 31) ** 1.6)}`;
  const requests: Record<string, string>[] = [];
  for (let n = 0; n < wave; n++) {
    requests.push({ user: user(n), path: "/v1/search", method: "GET" });
    requests.push({ user: user(n + 3), path: `/v1/checkout/${n}`, method: "POST" });
    requests.push({ ip: `192.0.2.${(round + n) % 9}`, path: "/", method: "GET" });
  }
  if (round % 8 === 0) requests.push({ ip: "203.0.113.9", path: "/login", method: "POST" });
  if (round % 5 === 0) requests.push({ tenant: "acme", path: "/v1/uploads/1", method: "POST" });
  if (round % 20 === 0) requests.push({ tenant: `tenant-${round % 3}`, path: "/v1/exports", method: "GET" });
  return requests;
}
