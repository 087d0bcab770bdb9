/** Requests and responses of the admin API: these schemas validate requests and generate the OpenAPI document. */
import { type Explanation, type Rule, ruleJsonSchema } from "sluice";
import Type from "typebox";
import { problemMembers } from "../http/problem-schema.js";

/** Unknown fields are refused: a misspelt name would otherwise be ignored silently. */
const exact = { additionalProperties: false } as const;

/** Generated from the rule table. Request bodies are validated by that table, which can express more than a schema. */
export const rule = Type.Unsafe<Rule>({
  title: "Rule",
  ...ruleJsonSchema(),
  description: "A rule; see docs/rules.md.",
});
/** The id is in the path, so it is optional in the body. */
export const ruleBody = Type.Unsafe<Rule>({
  ...ruleJsonSchema(),
  required: ["key", "algorithm", "limit"],
  title: "RuleRequest",
  description: "A rule; see docs/rules.md. Its id is that of the path.",
});
const rules = Type.Array(rule);

const version = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER });
const text = Type.String();

/** Query parameters arrive as text. */
const digits = (description: string) => Type.String({ pattern: "^[0-9]{1,15}$", description });
const message = Type.Optional(
  Type.String({ maxLength: 1_000, description: "Why; kept with the version and in the audit." }),
);

export const ruleId = Type.Object({ id: Type.String({ maxLength: 64 }) });
export const versionNumber = Type.Object({ version: digits("A version's number.") });
export const tokenName = Type.Object({ name: Type.String({ maxLength: 64 }) });

export const changeQuery = Type.Object(
  {
    dryRun: Type.Optional(
      Type.Union([Type.Literal("true"), Type.Literal("false")], { description: "Only tell what would change." }),
    ),
    message,
  },
  exact,
);
const page = {
  before: Type.Optional(digits("Older than this version or audit id; from the `next` of the page before.")),
  limit: Type.Optional(Type.String({ pattern: "^[0-9]{1,3}$", description: "At most 500. Default 50." })),
};
export const versionsQuery = Type.Object(
  {
    ...page,
    rule: Type.Optional(
      Type.String({
        maxLength: 64,
        description: "Only versions that changed this rule, of 500 at a time; `limit` is not used then.",
      }),
    ),
  },
  exact,
);
/** Not `exact`, as requests have other headers too. */
export const guardHeaders = Type.Object({
  "if-match": Type.Optional(
    Type.String({
      pattern: '^\\s*(\\*|(W/)?"?[0-9]{1,15}"?)\\s*$',
      description: 'The version that the change was made from, as `"7"`; another one in force answers 412.',
    }),
  ),
});

const attributes = (description: string) =>
  Type.Unsafe<Record<string, string | number | boolean>>({
    type: "object",
    description,
    additionalProperties: {
      title: "AttributeValue",
      anyOf: [{ type: "string" }, { type: "number" }, { type: "boolean" }],
    },
  });
export const resetBody = Type.Object(
  {
    rule: Type.String({ maxLength: 64 }),
    attributes: attributes("Those that the rule counts by, literally: `*` is a character like any other."),
  },
  { ...exact, title: "ResetRequest" },
);
export const blockBody = Type.Object(
  { ...resetBody.properties, for: Type.String({ maxLength: 32, description: "A duration such as `1h`, from now." }) },
  { ...exact, title: "BlockRequest" },
);
export const blockedQuery = Type.Object({ rule: Type.Optional(Type.String({ maxLength: 64 })) }, exact);
export const explainBody = Type.Object(
  {
    attributes: attributes("What is known of the request."),
    cost: Type.Optional(Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })),
  },
  { ...exact, title: "ExplainRequest" },
);
export const explainReply = Type.Unsafe<Explanation>({
  title: "KeyExplanation",
  type: "object",
  description: "As POST /v1/explain answers.",
});
export const sessionBody = Type.Object(
  { token: Type.String({ minLength: 1, maxLength: 1_024 }) },
  { ...exact, title: "SignIn" },
);
const role = Type.Union([Type.Literal("viewer"), Type.Literal("editor"), Type.Literal("admin")]);
export const session = Type.Object(
  { name: text, role, rulesFrom: Type.Optional(Type.Literal("file")) },
  { title: "Session" },
);
export const tokenBody = Type.Object(
  {
    name: Type.String({ pattern: "^[A-Za-z0-9][A-Za-z0-9@._-]{0,63}$" }),
    role,
    expiresIn: Type.Optional(Type.String({ maxLength: 20, description: "A duration such as 90d. Absent: never." })),
  },
  { ...exact, title: "TokenRequest" },
);

const fieldChange = Type.Object({ path: text, from: Type.Optional(Type.Unknown()), to: Type.Optional(Type.Unknown()) });
const diff = Type.Object(
  {
    added: Type.Integer(),
    removed: Type.Integer(),
    changed: Type.Integer(),
    reordered: Type.Boolean(),
    changes: Type.Array(
      Type.Object({
        rule: text,
        change: Type.Union([Type.Literal("added"), Type.Literal("removed"), Type.Literal("changed")]),
        fields: Type.Optional(Type.Array(fieldChange)),
        more: Type.Optional(Type.Integer()),
      }),
    ),
  },
  { title: "RuleDiff" },
);
export const applied = Type.Object(
  {
    version,
    changed: Type.Boolean({ description: "False for a dry run, and where nothing differs." }),
    diff,
    text: Type.String({ description: "The difference for people to read." }),
    warnings: Type.Optional(
      Type.Array(Type.Object({ path: text, message: text }), {
        description:
          "Of one rule: what is allowed and most likely not meant, such as an attribute that no request had.",
      }),
    ),
  },
  { title: "AppliedChange" },
);
const author = { author: text, message: text, createdAt: Type.String({ format: "date-time" }), kind: text };
export const versionList = Type.Object(
  {
    versions: Type.Array(Type.Object({ version, ...author, summary: text })),
    next: Type.Optional(version),
  },
  { title: "VersionList" },
);
export const versionDetail = Type.Object(
  { version, ...author, summary: text, diff, text, rules },
  { title: "VersionDetail" },
);
const instant = Type.String({ maxLength: 30, description: "A time such as 2026-11-17T09:00:00Z." });
const auditFilter = {
  actor: Type.Optional(Type.String({ maxLength: 200, description: "Whose." })),
  action: Type.Optional(Type.String({ maxLength: 64 })),
  rule: Type.Optional(Type.String({ maxLength: 64, description: "Entries about this rule." })),
  from: Type.Optional(instant),
  to: Type.Optional(instant),
};
export const auditQuery = Type.Object({ ...page, ...auditFilter }, exact);
export const auditExportQuery = Type.Object(
  { ...auditFilter, format: Type.Optional(Type.Union([Type.Literal("csv"), Type.Literal("json")])) },
  exact,
);
export const sessionList = Type.Object(
  {
    sessions: Type.Array(
      Type.Object({
        id: text,
        name: text,
        createdAtMs: Type.Integer(),
        endsAtMs: Type.Integer(),
        agent: text,
        own: Type.Boolean({ description: "The session of this request." }),
      }),
    ),
  },
  { title: "SessionList" },
);
export const sessionId = Type.Object({ id: Type.String({ maxLength: 64 }) });
export const auditList = Type.Object(
  {
    entries: Type.Array(
      Type.Object({
        id: Type.Integer(),
        at: Type.String({ format: "date-time" }),
        actor: text,
        action: text,
        target: text,
        details: Type.Record(text, Type.Unknown()),
      }),
    ),
    next: Type.Optional(Type.Integer()),
  },
  { title: "AuditList" },
);
export const document = Type.Object({ version, rules }, { title: "RuleDocument" });
/** Bodies may also be just the list; a `version` in the body acts like If-Match. */
export const documentBody = Type.Object({ version: Type.Optional(version), rules }, { title: "RuleDocumentRequest" });
export const resetReply = Type.Object({ reset: Type.Boolean() }, { title: "ResetAnswer" });
export const blockReply = Type.Object(
  { blocked: Type.Boolean(), blockedForMs: Type.Integer() },
  { title: "BlockAnswer" },
);
const blockedKey = Type.Object(
  {
    rule: text,
    attributes: Type.Optional(
      Type.Record(Type.String(), Type.String(), {
        description: "Absent where they are so long that only a digest is kept.",
      }),
    ),
    leftMs: Type.Integer({ description: "How long the block lasts still." }),
  },
  { title: "BlockedKey" },
);
export const blockedKeys = Type.Object(
  {
    atMs: Type.Integer(),
    keys: Type.Array(blockedKey, { description: "The longest first, at most 1000." }),
    complete: Type.Boolean({ description: "False where there may be more." }),
  },
  { title: "BlockedKeys" },
);
const token = Type.Object(
  {
    name: text,
    role,
    createdAt: Type.String({ format: "date-time" }),
    createdBy: text,
    expiresAt: Type.Optional(Type.String({ format: "date-time" })),
    lastUsedAt: Type.Optional(Type.String({ format: "date-time", description: "To the minute." })),
  },
  { title: "Token" },
);
export const tokenList = Type.Object({ tokens: Type.Array(token) }, { title: "TokenList" });
export const newToken = Type.Object(
  {
    name: text,
    role,
    token: Type.String({ description: "Shown this once." }),
    expiresAt: Type.Optional(Type.String({ format: "date-time" })),
  },
  { title: "CreatedToken" },
);
export const versionMismatch = Type.Object(
  { ...problemMembers, currentVersion: version, diff: Type.Optional(diff) },
  { title: "VersionMismatch", description: "A problem that holds what changed since the version of If-Match." },
);
