/** Queries and responses of the statistics routes, in the shapes of `monitoring/views/`. */
import Type from "typebox";

const exact = { additionalProperties: false } as const;
const count = Type.Integer({ minimum: 0 });
const share = Type.Number({ minimum: 0, maximum: 1 });
const text = Type.String();
const atMs = Type.Integer({ description: "Milliseconds since the epoch." });

const window = Type.Union([Type.Literal("hour"), Type.Literal("day")]);
const span = Type.Union([Type.Literal("live"), Type.Literal("hour"), Type.Literal("day")], {
  description: "`live`: the last two minutes, by the second.",
});
/** The window of a response. */
const shownSpan = Type.Union([...span.anyOf, Type.Literal("range")]);
const rule = Type.Optional(Type.String({ maxLength: 64, description: "Only this rule." }));
const scope = Type.Union([Type.Literal("fleet"), Type.Literal("instance")], {
  description: "`instance`: the history cannot be read; what the instance that answers has counted itself.",
});

const instant = Type.String({
  minLength: 1,
  maxLength: 32,
  description: "Milliseconds since the epoch, or a time such as 2026-06-01T12:00:00Z.",
});
/** Whole steps: seconds in the last two minutes, minutes in the last two hours, quarter hours in the last eight days. */
const rangeQuery = { from: Type.Optional(instant), to: Type.Optional(instant) };

export const statsQuery = Type.Object({ window: Type.Optional(span), ...rangeQuery, rule }, exact);
export const timelineQuery = Type.Object({ from: instant, to: Type.Optional(instant), rule }, exact);
export const topKeysQuery = Type.Object(
  {
    window: Type.Optional(window),
    rule,
    by: Type.Optional(Type.Union([Type.Literal("traffic"), Type.Literal("refusals"), Type.Literal("spend")])),
    unit: Type.Optional(Type.String({ minLength: 1, maxLength: 64, description: "With `spend`: a unit of rules." })),
    search: Type.Optional(
      Type.String({ minLength: 1, maxLength: 100, description: "A part of a key attribute's value, in any case." }),
    ),
    limit: Type.Optional(Type.String({ pattern: "^[1-9][0-9]{0,3}$", description: "At most 2000. Default 20." })),
    offset: Type.Optional(Type.String({ pattern: "^[0-9]{1,4}$", description: "Keys to leave out before the first." })),
    group: Type.Optional(
      Type.Literal("client", { description: "One entry for all rules that count by the same attributes." }),
    ),
    ...rangeQuery,
  },
  exact,
);

const latency = { p50Ms: Type.Number(), p95Ms: Type.Number(), p99Ms: Type.Number() };
const counts = { allowed: count, refused: count, shadowRefused: count };
const candidateCounts = { candidateAllowed: count, candidateRefused: count };
const coveredMs = Type.Integer({
  minimum: 0,
  description: "How much of the step was counted. 0: its counts are unknown.",
});
const point = { atMs, coveredMs, scope, ...counts, ...candidateCounts, degraded: count };
const comparison = Type.Object(
  {
    sinceMs: Type.Optional(atMs),
    bothAllowed: count,
    bothRefused: count,
    onlyLiveRefused: count,
    onlyCandidateRefused: count,
  },
  { description: "The candidate beside the live rule on the same requests, since both have their form of now." },
);

export const statsView = Type.Object(
  {
    atMs,
    window: shownSpan,
    scope,
    stepMs: count,
    instances: Type.Integer({ description: "Instances that reported in the last ten seconds." }),
    rulesVersion: count,
    total: Type.Object({
      ...counts,
      degraded: count,
      unmatched: Type.Integer({ minimum: 0, description: "Requests that met no rule." }),
      latency: Type.Object(latency),
      points: Type.Array(Type.Object({ ...point, ...latency })),
    }),
    rules: Type.Array(
      Type.Object({
        rule: text,
        ...counts,
        ...candidateCounts,
        violationRate: share,
        utilisation: Type.Array(count, { description: "Checks by the tenth of the limit that was used after them." }),
        points: Type.Optional(Type.Array(Type.Object(point))),
        comparison: Type.Optional(comparison),
      }),
    ),
    complete: Type.Boolean({ description: "False where rules that are not listed may have had traffic." }),
  },
  { title: "Stats" },
);

const rate = Type.Number({ minimum: 0, description: "Over the last seconds." });

export const regionsView = Type.Object(
  {
    atMs,
    scope: Type.Union([Type.Literal("all"), Type.Literal("region"), Type.Literal("instance")], {
      description:
        "`all`: from the global store. `region`: it does not answer, and only this region is known. `instance`: nor does the region's store.",
    }),
    own: Type.Optional(Type.String({ description: "The region of the instance that answers." })),
    regions: Type.Array(
      Type.Object({
        region: text,
        state: Type.Union([Type.Literal("up"), Type.Literal("cut-off"), Type.Literal("silent")], {
          description:
            "`cut-off`: none of its instances reaches the global store. `silent`: heard of within a day, not in the last ten seconds.",
        }),
        sinceMs: Type.Optional(
          Type.Integer({ description: "Unless it is up: since when, or when it was last heard of. By its own clock." }),
        ),
        instances: count,
        cutOffInstances: count,
        requestsPerSecond: rate,
        refusedPerSecond: rate,
        globalPerSecond: Type.Number({ minimum: 0, description: "Requests under rules with scope global." }),
        waitedPerSecond: Type.Number({ minimum: 0, description: "Of these, those that waited for units." }),
        byPolicyPerSecond: Type.Number({ minimum: 0, description: "Of these, those that a failure policy answered." }),
        fetchesPerSecond: rate,
        units: Type.Number({ minimum: 0, description: "Units in the region's pools, as they were filled." }),
        pools: count,
        roundTripMs: Type.Optional(
          Type.Number({ description: "To the global store; the median of the region's instances." }),
        ),
      }),
    ),
  },
  { title: "Regions" },
);

export const topKeysView = Type.Object(
  {
    atMs,
    window,
    by: text,
    unit: Type.Optional(text),
    units: Type.Optional(Type.Array(text)),
    scope,
    maxError: Type.Integer({ description: "No count is more than this above the truth, and none is below it." }),
    keys: Type.Array(
      Type.Object({
        rule: text,
        attributes: Type.Record(text, text),
        digest: Type.Optional(
          Type.String({ description: "Where long values were cut: they name no key, the digest tells two apart." }),
        ),
        count,
        refused: count,
        rules: Type.Optional(Type.Array(Type.Object({ rule: text, count, refused: count }))),
        peakUtilisation: share,
        spent: Type.Optional(count),
      }),
    ),
    more: Type.Boolean({ description: "Whether there are more after these." }),
  },
  { title: "TopKeys" },
);

export const keyHistoryBody = Type.Object(
  {
    attributes: Type.Record(text, Type.Union([text, Type.Number(), Type.Boolean()]), { minProperties: 1 }),
    from: Type.Optional(instant),
    to: Type.Optional(instant),
  },
  { ...exact, title: "KeyHistoryRequest" },
);
const counted = Type.Array(count, { description: "One for each period." });
export const keyHistoryView = Type.Object(
  {
    atMs,
    scope,
    periodMs: count,
    periods: Type.Array(Type.Object({ atMs, isKnown: Type.Boolean() })),
    rules: Type.Array(Type.Object({ rule: text, checks: counted, refused: counted })),
    refusals: Type.Array(Type.Object({ atMs, rule: text, reason: text, attributes: Type.Record(text, text) })),
    refusalValues: Type.Union([Type.Literal("shown"), Type.Literal("hidden"), Type.Literal("off")]),
  },
  { title: "KeyHistory" },
);
