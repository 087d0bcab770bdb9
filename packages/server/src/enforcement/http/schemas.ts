/** Schemas of the HTTP API's requests and responses: they validate bodies and generate the OpenAPI document. */
import Type, { type Static } from "typebox";
import { problemSchema } from "../../http/problem-schema.js";

const attributes = Type.Unsafe<Record<string, string | number | boolean>>({
  type: "object",
  description: "What is known of the request: user, ip, path, method, tier, region, any other name.",
  additionalProperties: {
    title: "AttributeValue",
    anyOf: [{ type: "string" }, { type: "number" }, { type: "boolean" }],
  },
});

const cost = Type.Integer({
  minimum: 0,
  maximum: Number.MAX_SAFE_INTEGER,
  description: "0 only looks. Default: the rule's own.",
});
const id = Type.String({
  minLength: 1,
  maxLength: 1024,
  description:
    "The same request with the same id within a minute gets the same decision and is charged once. Another request with that id is invalid.",
});

/** Unknown fields are refused: a misspelt "cost" would otherwise charge 1 for years. */
const exact = { additionalProperties: false } as const;

export const checkBody = Type.Object(
  { attributes, cost: Type.Optional(cost), id: Type.Optional(id) },
  { ...exact, title: "CheckRequest" },
);
export type CheckBody = Static<typeof checkBody>;

const MOST_REQUESTS_PER_BATCH = 1_000;
export const batchBody = Type.Object(
  { requests: Type.Array(checkBody, { maxItems: MOST_REQUESTS_PER_BATCH }) },
  { ...exact, title: "BatchRequest" },
);
export type BatchBody = Static<typeof batchBody>;

const lease = Type.String({ minLength: 1, maxLength: 8192, description: "The lease's id, as a decision gave it." });
export const releaseBody = Type.Object(
  {
    lease,
    outcome: Type.Optional(
      Type.String({ maxLength: 64, description: "How the work under the lease ended, such as success or failure." }),
    ),
  },
  { ...exact, title: "ReleaseRequest" },
);
export type ReleaseBody = Static<typeof releaseBody>;
export const renewBody = Type.Object({ lease }, { ...exact, title: "RenewRequest" });
export type RenewBody = Static<typeof renewBody>;
export const refundBody = Type.Object({ id }, { ...exact, title: "RefundRequest" });
export type RefundBody = Static<typeof refundBody>;

export const utilisationBody = Type.Object(
  {
    value: Type.Number({ minimum: 0, maximum: 1, description: "How busy the backend is: 0 idle, 1 all it can do." }),
    source: Type.String({
      minLength: 1,
      maxLength: 256,
      description: "Which backend reports; replaces its last report.",
    }),
    key: Type.Optional(
      Type.String({
        maxLength: 256,
        description: "Only for the gauge of these key values of a rule, joined by commas. Default: all.",
      }),
    ),
    ttl: Type.Optional(
      Type.String({ maxLength: 32, description: 'How long it holds, such as "30s"; at most 5m. Default 10s.' }),
    ),
  },
  { ...exact, title: "UtilisationReport" },
);
export type UtilisationBody = Static<typeof utilisationBody>;
export const utilisationAnswer = Type.Object(
  { accepted: Type.Boolean(), expiresAfterMs: Type.Integer() },
  { title: "UtilisationAnswer" },
);

const reservationId = Type.String({
  minLength: 1,
  maxLength: 16_384,
  description: "The reservation's id, as a decision gave it.",
});
export const settleBody = Type.Object(
  { reservation: reservationId, attributes },
  {
    ...exact,
    title: "SettleRequest",
    description: "The attributes hold the real costs, by the names that the rules' `cost` has.",
  },
);
export type SettleBody = Static<typeof settleBody>;
export const cancelBody = Type.Object({ reservation: reservationId }, { ...exact, title: "CancelRequest" });
export type CancelBody = Static<typeof cancelBody>;

const unitsByRule = Type.Unsafe<Record<string, number>>({
  type: "object",
  additionalProperties: { type: "integer" },
  description: "Units by rule.",
});
export const settleAnswer = Type.Object(
  {
    settled: Type.Boolean(),
    charged: unitsByRule,
    overrun: unitsByRule,
    reason: Type.Optional(Type.Enum(["unknown", "expired", "pending"])),
  },
  { title: "Settlement" },
);

const reason = Type.Enum([
  "limit",
  "min-interval",
  "concurrency",
  "load",
  "cost-exceeds-limit",
  "blocked",
  "too-many-waiting",
  "store-unavailable",
]);
const numbers = {
  limit: Type.Integer(),
  remaining: Type.Integer(),
  debt: Type.Optional(Type.Integer({ description: "By how many units the counter is past its limit, if it is" })),
  retryAfterMs: Type.Integer(),
  resetAfterMs: Type.Integer(),
};

const checkResult = Type.Object(
  {
    rule: Type.String(),
    mode: Type.Enum(["enforce", "shadow", "candidate"]),
    allowed: Type.Boolean(),
    ...numbers,
    reason: Type.Optional(reason),
    variant: Type.Optional(Type.String()),
    delayMs: Type.Optional(
      Type.Integer({ description: "How long until the request's turn under this rule comes, if it has not (maxWait)" }),
    ),
  },
  { title: "CheckResult" },
);

/** Contract, section 3. */
export const decision = Type.Object(
  {
    allowed: Type.Boolean(),
    rule: Type.Optional(Type.String()),
    limit: Type.Optional(Type.Integer()),
    remaining: Type.Optional(Type.Integer()),
    debt: numbers.debt,
    retryAfterMs: Type.Integer(),
    resetAfterMs: Type.Integer(),
    delayMs: Type.Integer({
      description: "How long to wait before the request may go on (rules with maxWait); else 0",
    }),
    reason: Type.Optional(reason),
    violated: Type.Array(Type.String()),
    rulesVersion: Type.Integer(),
    guarantee: Type.Enum(["atomic", "compensated", "prefetched"]),
    checks: Type.Array(checkResult),
    lease: Type.Optional(Type.Object({ id: Type.String(), expiresAfterMs: Type.Integer() }, { title: "Lease" })),
    reservation: Type.Optional(
      Type.Object(
        {
          id: Type.String(),
          expiresAfterMs: Type.Integer(),
          held: unitsByRule,
          mayOverrun: Type.Optional(unitsByRule),
        },
        { title: "Reservation" },
      ),
    ),
    degraded: Type.Optional(Type.Enum(["deny", "local", "allow"])),
  },
  { title: "Decision", description: "Allowed or not: a refusal is an answer, not an error." },
);

export const explanation = Type.Object(
  {
    ...decision.properties,
    decision,
    rules: Type.Array(
      Type.Object({
        rule: Type.String(),
        matched: Type.Boolean(),
        why: Type.String(),
        key: Type.Optional(Type.String()),
        override: Type.Optional(Type.Integer()),
        variant: Type.Optional(Type.String()),
        state: Type.Optional(
          Type.Unsafe<Record<string, number>>({ type: "object", additionalProperties: { type: "number" } }),
        ),
        nextAllowedAt: Type.Optional(Type.String()),
        unit: Type.Optional(Type.String()),
        costAttribute: Type.Optional(
          Type.String({ description: "Whose value is the cost under the rule, whatever cost the request names" }),
        ),
        estimate: Type.Optional(
          Type.Object({
            holds: Type.Integer({ description: "Units that a check would hold now" }),
            learned: Type.Optional(Type.Integer({ description: "The quantile of what requests of this class cost" })),
            held: Type.Integer(),
            settled: Type.Integer(),
            overrun: Type.Integer(),
          }),
        ),
      }),
    ),
    more: Type.Optional(
      Type.Integer({ description: "How many more rules do not apply; a hundred of them are listed." }),
    ),
  },
  { title: "Explanation", description: "A decision, and why: `decision` repeats it without its reasons." },
);

export const releaseAnswer = Type.Object({ released: Type.Boolean() }, { title: "ReleaseAnswer" });
export const renewAnswer = Type.Object(
  { renewed: Type.Boolean(), expiresAfterMs: Type.Integer() },
  { title: "RenewAnswer" },
);
export const refundAnswer = Type.Object({ refunded: Type.Boolean() }, { title: "RefundAnswer" });

export const batchAnswer = Type.Object(
  { decisions: Type.Array(Type.Union([decision, problemSchema])) },
  { title: "BatchAnswer" },
);
