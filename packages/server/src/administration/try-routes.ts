/**
 * Tries a rule on recorded traffic: what a draft would newly refuse before it is saved, and suggested limits from the rule's keys.
 * The work runs on a worker thread (`analysis/traffic-worker.ts`), one task at a time.
 */
import type { FastifyInstance } from "fastify";
import type { Rule } from "sluice";
import Type from "typebox";
import type { SuggestionsView, TryView } from "../analysis/try-on-traffic.js";
import { unknownRule } from "./promote-candidate.js";
import { type AdministrationOptions, describeRoute } from "./route.js";
import { ruleBody, ruleId } from "./schemas.js";

export type TrafficSpan = "10m" | "1h" | "24h";

/** A function is absent if the service lacks its source. */
export interface Traffic {
  /** Throws `no-recording` if the instance does not record. */
  readonly tryDraft: (draft: unknown, span: TrafficSpan) => Promise<TryView>;
  /** From the recording if there is one, otherwise from the history of the busiest keys. */
  readonly suggest: (rule: Rule, span: TrafficSpan) => Promise<SuggestionsView>;
}

interface OfRule {
  Params: { id: string };
  Querystring: { span?: TrafficSpan };
}

const spanQuery = Type.Object(
  {
    span: Type.Optional(
      Type.Union([Type.Literal("10m"), Type.Literal("1h"), Type.Literal("24h")], {
        description: "How far back. Default 1h.",
      }),
    ),
  },
  { additionalProperties: false },
);

const key = Type.Object({ key: Type.String(), refused: Type.Integer() });
const read = {
  total: Type.Integer({ description: "Requests that were read." }),
  from: Type.Optional(Type.String()),
  to: Type.Optional(Type.String()),
  endedBy: Type.Optional(
    Type.Union([Type.Literal("lines"), Type.Literal("time")], {
      description: "What ended the reading before the traffic did.",
    }),
  ),
};

const ruleFigures = Type.Object({
  rule: Type.String(),
  mode: Type.String({ description: "enforce, shadow or candidate." }),
  total: Type.Integer({ description: "Requests that meet the rule." }),
  refused: Type.Integer(),
  share: Type.Number({ description: "Refused, of the total." }),
  keys: Type.Integer({ description: "Keys that meet the rule." }),
  keysRefused: Type.Integer({ description: "Keys with at least one refusal." }),
  exact: Type.Boolean({ description: "Whether the counts of keys are exact; else they are lower bounds." }),
  topKeys: Type.Array(key),
  worstWindow: Type.Optional(
    Type.Object({ key: Type.String(), admitted: Type.Number(), limit: Type.Number(), at: Type.String() }),
  ),
});

const tryView = Type.Object(
  {
    ...read,
    refusedBefore: Type.Integer(),
    refusedAfter: Type.Integer(),
    newlyRefused: Type.Integer(),
    newlyAdmitted: Type.Integer(),
    keysNewlyRefused: Type.Integer({ description: "Keys of the newly refused requests." }),
    keysNewlyAdmitted: Type.Integer({ description: "Keys of the newly admitted requests." }),
    keysExact: Type.Boolean({ description: "Whether these two are exact; else they are lower bounds." }),
    newlyRefusedKeys: Type.Array(key, { description: "The ten with the most requests." }),
    newlyAdmittedKeys: Type.Array(key, { description: "The ten with the most requests." }),
    rules: Type.Array(ruleFigures, { description: "The draft's own figures, and its candidate's." }),
    series: Type.Object({
      startMs: Type.Number(),
      stepMs: Type.Number(),
      rows: Type.Array(Type.Array(Type.Number()), { description: "Requests, refused after, refused before." }),
    }),
  },
  { title: "TryView" },
);

const suggestionsView = Type.Object(
  {
    ...read,
    rule: Type.String(),
    source: Type.Union([Type.Literal("recording"), Type.Literal("history")]),
    keys: Type.Integer(),
    p50: Type.Number(),
    max: Type.Number(),
    headroom: Type.Number(),
    limits: Type.Array(Type.Object({ from: Type.String(), limit: Type.Integer(), keysTouched: Type.Integer() })),
  },
  { title: "SuggestionsView" },
);

export function registerTryRoutes(
  app: FastifyInstance,
  { configuration }: AdministrationOptions,
  traffic: Traffic,
): void {
  app.post<OfRule>(
    "/rules/:id/try",
    describeRoute({
      role: "editor",
      summary: "Tries a draft of a rule on recorded traffic, beside the rules in force; changes nothing",
      params: ruleId,
      querystring: spanQuery,
      body: ruleBody,
      reply: tryView,
      errors: ["invalid-rules", "no-recording"],
    }),
    async ({ params, query, body }) =>
      await traffic.tryDraft({ ...(body as object), id: params.id }, query.span ?? "1h"),
  );

  app.get<OfRule>(
    "/rules/:id/suggestions",
    describeRoute({
      role: "viewer",
      summary: "Limits for a rule, from what its keys did: p99, p99.9 and the most, times headroom",
      params: ruleId,
      querystring: spanQuery,
      reply: suggestionsView,
      errors: ["unknown-rule", "no-recording", "too-busy"],
    }),
    async ({ params, query }) => {
      const rule = configuration.current.rules.find(({ id }) => id === params.id);
      if (rule === undefined) throw unknownRule(params.id);
      return await traffic.suggest(rule, query.span ?? "1h");
    },
  );
}
