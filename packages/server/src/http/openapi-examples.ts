/**
 * An example request and answer, by operationId, for the data plane and for the admin operations that programs call.
 * A test sends the requests to a service and validates both sides against their schemas. No check has an id: people copy examples, and a
 * copied id would be no unique idempotency key.
 */
interface OperationExample {
  readonly request?: unknown;
  readonly answer?: unknown;
}

const LEASE = "eyJydWxlIjoicmVwb3J0cyJ9";
const RESERVATION = "eyJydWxlIjoib3V0cHV0LXRva2VucyJ9";

const rule = {
  id: "per-user",
  description: "Free tier, per user",
  match: { path: "/v1/**" },
  key: ["user"],
  algorithm: "rolling-window",
  limit: 100,
  window: "1m",
};

const allowed = {
  allowed: true,
  rule: "per-user",
  limit: 100,
  remaining: 99,
  retryAfterMs: 0,
  resetAfterMs: 60_000,
  delayMs: 0,
  violated: [],
  rulesVersion: 3,
  guarantee: "atomic",
  checks: [
    {
      rule: "per-user",
      mode: "enforce",
      allowed: true,
      limit: 100,
      remaining: 99,
      retryAfterMs: 0,
      resetAfterMs: 60_000,
    },
  ],
};

const refused = {
  ...allowed,
  allowed: false,
  remaining: 0,
  retryAfterMs: 1_400,
  reason: "limit",
  violated: ["per-user"],
  checks: [{ ...allowed.checks[0], allowed: false, remaining: 0, retryAfterMs: 1_400, reason: "limit" }],
};

const check = { attributes: { user: "42", path: "/v1/orders" } };
const settled = { settled: true, charged: { "output-tokens": 120 }, overrun: {} };

export const examples: Readonly<Record<string, OperationExample>> = {
  check: { request: { ...check, cost: 1 }, answer: refused },
  checkBatch: {
    request: { requests: [check, { attributes: { user: "43" }, cost: 2 }] },
    answer: { decisions: [allowed, refused] },
  },
  charge: { request: { attributes: { org: "acme" }, cost: 1_800 }, answer: allowed },
  peek: { request: check, answer: allowed },
  explain: {
    request: check,
    answer: {
      ...allowed,
      decision: allowed,
      rules: [{ rule: "per-user", matched: true, why: "every condition holds", key: "user=42" }],
    },
  },
  release: { request: { lease: LEASE, outcome: "success" }, answer: { released: true } },
  renew: { request: { lease: LEASE }, answer: { renewed: true, expiresAfterMs: 30_000 } },
  refund: { request: { id: "5f1c0c9e-order-17" }, answer: { refunded: true } },
  settle: { request: { reservation: RESERVATION, attributes: { completion_tokens: 120 } }, answer: settled },
  extend: { request: { reservation: RESERVATION, attributes: { completion_tokens: 900 } }, answer: allowed },
  cancel: { request: { reservation: RESERVATION }, answer: { ...settled, charged: { "output-tokens": 0 } } },
  reportUtilisation: {
    request: { value: 0.72, source: "orders-db", ttl: "10s" },
    answer: { accepted: true, expiresAfterMs: 10_000 },
  },
  shouldRateLimit: {
    request: { domain: "edge", descriptors: [{ entries: [{ key: "remote_address", value: "192.0.2.7" }] }] },
  },
  listRules: { answer: { version: 3, rules: [rule] } },
  replaceRules: { request: { rules: [rule] } },
  getRule: { answer: rule },
  putRule: { request: rule },
  resetKey: { request: { rule: "per-user", attributes: { user: "42" } }, answer: { reset: true } },
  blockKey: { request: { rule: "guard-login", attributes: { ip: "192.0.2.7" }, for: "1h" } },
  createToken: { request: { name: "deploy", role: "editor" } },
};
