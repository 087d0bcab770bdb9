/** The events of a time range, for chart markers: rule changes, promotions, alerts that started firing. */
import type { FastifyInstance } from "fastify";
import Type from "typebox";
import { summaryOf } from "../configuration/diff-text.js";
import type { ChangeKind, VersionSummary } from "../configuration/repository/rule-repository.js";
import type { AlertView, TimelineEvent, TimelineView } from "../monitoring/views/alerts.js";
import { type AdministrationOptions, describeRoute } from "./route.js";
import { timelineQuery } from "./stats-schemas.js";
import { askedTime, type TimeQuery } from "./time-query.js";

interface Timeline {
  Querystring: TimeQuery & { rule?: string };
}

const MOST_EVENTS = 200;
/** Maximum number of versions searched. */
const MOST_VERSIONS = 500;

const atMs = Type.Integer({ description: "Milliseconds since the epoch." });
const timelineView = Type.Object(
  {
    complete: Type.Boolean({ description: "False where there may be more than are listed." }),
    events: Type.Array(
      Type.Union([
        Type.Object({
          kind: Type.Union([Type.Literal("rules"), Type.Literal("promotion"), Type.Literal("rollback")]),
          atMs,
          version: Type.Integer(),
          author: Type.String(),
          text: Type.String(),
        }),
        Type.Object({ kind: Type.Literal("alert"), atMs, alert: Type.String(), text: Type.String() }),
      ]),
      { description: "Oldest first, the newest 200." },
    ),
  },
  { title: "Timeline" },
);

export function registerTimelineRoutes(app: FastifyInstance, options: AdministrationOptions): void {
  app.get<Timeline>(
    "/timeline",
    describeRoute({
      role: "viewer",
      summary: "Changes of rules, promotions and alerts of a range of time",
      querystring: timelineQuery,
      reply: timelineView,
    }),
    async ({ query: { rule, ...time } }): Promise<TimelineView> => {
      const asked = askedTime(time);
      if (asked.window !== "range") return { events: [], complete: true };
      const [versions, alerts] = await Promise.all([
        options.configuration.repository?.versions({ before: undefined, limit: MOST_VERSIONS }) ?? [],
        // While the store is down, rule changes are still available.
        options.alerts?.read().catch(() => undefined),
      ]);
      const oldest = versions.at(-1);
      const sawAll = versions.length < MOST_VERSIONS || (oldest !== undefined && oldest.createdAtMs < asked.fromMs);
      const all = [
        ...versions.filter((one) => isAbout(one, rule)).map(eventOfVersion),
        ...(alerts?.alerts ?? []).filter((one) => rule === undefined || one.rule === rule).map(eventOfAlert),
      ];
      const events = all
        .filter((one) => one.atMs >= asked.fromMs && one.atMs < asked.toMs)
        .sort((a, b) => a.atMs - b.atMs);
      return { events: events.slice(-MOST_EVENTS), complete: sawAll && events.length <= MOST_EVENTS };
    },
  );
}

function isAbout({ diff }: VersionSummary, rule: string | undefined): boolean {
  return rule === undefined || diff.changes.some((one) => one.rule === rule);
}

const kinds: Readonly<Partial<Record<ChangeKind, "promotion" | "rollback">>> = {
  promote: "promotion",
  rollback: "rollback",
};

function eventOfVersion({ version, author, message, kind, createdAtMs, diff }: VersionSummary): TimelineEvent {
  const text = message === "" ? summaryOf(diff) : message;
  return { kind: kinds[kind] ?? "rules", atMs: createdAtMs, version, author, text };
}

function eventOfAlert({ id, startedAtMs, summary }: AlertView): TimelineEvent {
  return { kind: "alert", atMs: startedAtMs, alert: id, text: summary };
}
