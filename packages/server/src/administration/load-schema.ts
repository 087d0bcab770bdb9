/** The response of `GET /admin/v1/load`, in the shape of `monitoring/views/load.ts`. */
import Type from "typebox";

const count = Type.Number({ minimum: 0 });
const text = Type.String();
const atMs = Type.Integer({ description: "Milliseconds since the epoch." });
const mode = Type.Union([Type.Literal("enforce"), Type.Literal("shadow")]);
const scope = Type.Union([Type.Literal("fleet"), Type.Literal("instance")], {
  description: "`instance`: of the instance that answers; the others cannot be asked.",
});
const series = Type.Array(Type.Union([Type.Number(), Type.Null()]), {
  description: "One value for each of `steps`; null where nothing is known.",
});
const attributes = Type.Optional(Type.Record(text, text));

const shedding = Type.Object({
  rule: text,
  mode,
  signals: Type.Array(text),
  isEstimated: Type.Boolean({ description: "limit: auto" }),
  now: Type.Optional(
    Type.Object({
      utilisation: Type.Record(text, count, { description: "By signal, of the busiest instance." }),
      places: Type.Optional(count),
      inFlight: Type.Optional(count),
    }),
  ),
  utilisation: Type.Record(text, series, { description: "By signal, means over the instances." }),
  places: Type.Optional(series),
  inFlight: Type.Optional(series),
  classes: Type.Array(
    Type.Object({ name: text, threshold: count, passed: count, shed: count, passedBy: series, shedBy: series }),
  ),
});

const move = Type.Object({
  atMs,
  from: count,
  to: count,
  utilisation: Type.Optional(count),
  instance: text,
  alone: Type.Boolean({ description: "Moved for that instance alone, while the store was away." }),
});

const adaptive = Type.Object({
  rule: text,
  mode,
  unit: Type.Optional(text),
  signals: Type.Array(text),
  configured: count,
  min: count,
  max: count,
  target: count,
  now: Type.Optional(Type.Object({ limit: count, utilisation: Type.Optional(count), leader: Type.Optional(text) })),
  limit: series,
  utilisation: series,
  moves: Type.Array(move, { description: "Newest first, at most 50." }),
});

const waiting = Type.Object({
  rule: text,
  mode,
  maxWait: text,
  now: Type.Integer({ minimum: 0, description: "Requests that wait in the service's processes." }),
  turns: count,
  meanWaitMs: Type.Optional(count),
  waitingBy: series,
  turnsBy: series,
  waitMsBy: series,
});

export const loadView = Type.Object(
  {
    atMs,
    window: text,
    scope,
    stepMs: count,
    instances: count,
    steps: Type.Array(Type.Object({ atMs, coveredMs: count, scope })),
    shedding: Type.Array(shedding),
    adaptive: Type.Array(adaptive),
    waiting: Type.Array(waiting),
    waitingKeys: Type.Array(
      Type.Object({ rule: text, attributes, waiting: count, longestMs: count, lastTurnMs: count }),
    ),
    moreKeys: Type.Boolean(),
  },
  { title: "Load" },
);
