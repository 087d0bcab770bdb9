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
