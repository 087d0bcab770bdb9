/**
 * Traffic figures: sums and series, the live stream, top keys. Read from the history shared by all instances.
 * The live stream is Server-Sent Events (WHATWG HTML, section 9.2): an event `live` every second, or a comment if there is none.
 */
import type { ServerResponse } from "node:http";
import type { FastifyInstance } from "fastify";
import Type from "typebox";
import { ServiceError } from "../errors.js";
import { bodyErrors } from "../http/problem-schema.js";
import type { Figures } from "../monitoring/figures.js";
import type { LiveView } from "../monitoring/views/stats.js";
import type { StatsWindow } from "../monitoring/views/time.js";
import { callerOf, isStillKnown } from "./access.js";
import { loadView } from "./load-schema.js";
import { type AdministrationOptions, describeRoute } from "./route.js";
import { spendView } from "./spend-schema.js";
import { keyHistoryBody, keyHistoryView, statsQuery, statsView, topKeysQuery, topKeysView } from "./stats-schemas.js";
import { askedTime, type TimeQuery } from "./time-query.js";

interface StatsRequest {
  Querystring: TimeQuery & { rule?: string };
}

interface TopKeysRequest {
  Querystring: {
    window?: StatsWindow;
    rule?: string;
    by?: "traffic" | "refusals" | "spend";
    unit?: string;
    search?: string;
    limit?: string;
    offset?: string;
    group?: "client";
    from?: string;
    to?: string;
  };
}

interface KeyHistoryRequest {
  Body: { attributes: Record<string, string | number | boolean>; from?: string; to?: string };
}

const DEFAULT_KEYS = 20;
/** Everything that the console pages through comes in one read, so that its pages are consistent. */
const MOST_KEYS = 2_000;
const HOUR_MS = 3_600_000;
const MOST_KEY_MS = 48 * HOUR_MS;
/** How often a stream's credential is checked again: deleting a token ends its streams. */
const LOOK_AGAIN_MS = 5_000;
/** Keeps a single token, or a dashboard in a loop, from taking all streams. */
const MOST_STREAMS_PER_TOKEN = 20;
/** Backpressure: a reader with more unsent data than this is disconnected. */
const MOST_WAITING_BYTES = 256 * 1024;

const streamHeaders = {
  "content-type": "text/event-stream; charset=utf-8",
  "cache-control": "no-store",
  "x-content-type-options": "nosniff",
  // Turns off nginx's response buffering.
  "x-accel-buffering": "no",
};

export function registerStatsRoutes(app: FastifyInstance, { figures, tokens, prices }: AdministrationOptions): void {
  app.get<StatsRequest>(
    "/stats",
    describeRoute({
      role: "viewer",
      summary: "The traffic of the last two minutes, hour or day, or of a range of the eight days that are kept",
      querystring: statsQuery,
      reply: statsView,
      errors: ["monitoring-off"],
    }),
    async ({ query }, reply) => {
      const { rule, ...time } = query;
      const view = await counted(figures).readStats({ ...askedTime(time), rule });
      return reply.send(view);
    },
  );

  app.get<StatsRequest>(
    "/load",
    describeRoute({
      role: "viewer",
      summary: "Rules that shed load, move their limits or let requests wait: series, and how they stand now",
      querystring: statsQuery,
      reply: loadView,
      errors: ["monitoring-off"],
    }),
    async ({ query: { rule, ...time } }, reply) => {
      return reply.send(await counted(figures).readLoad({ ...askedTime(time), rule }));
    },
  );

  app.get<StatsRequest>(
    "/spend",
    describeRoute({
      role: "viewer",
      summary: "Units by rule, estimates beside what was settled, and what calls to models used",
      querystring: statsQuery,
      reply: spendView,
      errors: ["monitoring-off"],
    }),
    async ({ query: { rule, ...time } }, reply) => {
      return reply.send(await counted(figures).readSpend({ ...askedTime(time), rule, prices }));
    },
  );

  registerKeyFigures(app, figures);
  registerStream(app, { figures, tokens });
}

/** Figures by key: the top keys, and a single key. */
function registerKeyFigures(app: FastifyInstance, figures: Figures | undefined): void {
  app.get<TopKeysRequest>(
    "/keys/top",
    describeRoute({
      role: "viewer",
      summary: "The keys with the most traffic, or the most refusals",
      querystring: topKeysQuery,
      reply: topKeysView,
      errors: ["monitoring-off"],
    }),
    async ({ query }, reply) => {
      const { window, by = "traffic", unit, rule, search, group, from, to } = query;
      const limit = query.limit === undefined ? DEFAULT_KEYS : Math.min(MOST_KEYS, Number(query.limit));
      const offset = Number(query.offset ?? 0);
      const time = askedTime({ ...(window && { window }), ...(from && { from }), ...(to && { to }) });
      const range = time.window === "range" ? { fromMs: time.fromMs, toMs: time.toMs } : {};
      const asked = { window: window ?? "hour", by, unit, rule, search, limit, offset, group, ...range };
      return reply.send(await counted(figures).readTopKeys(asked));
    },
  );

  app.post<KeyHistoryRequest>(
    "/keys/history",
    describeRoute({
      role: "viewer",
      summary: "One key's traffic by rule, and its last refusals; by default of the last hour",
      body: keyHistoryBody,
      isChange: false,
      reply: keyHistoryView,
      errors: [...bodyErrors, "monitoring-off"],
    }),
    async ({ body: { attributes, from, to } }, reply) => {
      const nowMs = Date.now();
      const time = askedTime({ from: from ?? String(nowMs - HOUR_MS), to: to ?? String(nowMs) });
      const range = time.window === "range" ? time : { fromMs: nowMs - HOUR_MS, toMs: nowMs };
      // Key data is kept for two days: a longer range would only add empty steps.
      const fromMs = Math.max(range.fromMs, nowMs - MOST_KEY_MS);
      const toMs = Math.min(Math.max(range.toMs, fromMs + 1), nowMs);
      return reply.send(await counted(figures).readKey({ attributes, fromMs, toMs }));
    },
  );
}

type StreamOptions = Pick<AdministrationOptions, "figures" | "tokens">;

/** The live stream, with backpressure: a reader that is too slow is disconnected. */
function registerStream(app: FastifyInstance, { figures, tokens }: StreamOptions): void {
  const streams = new Map<string, number>();
  const countStream = (name: string, change: 1 | -1): void => {
    const count = (streams.get(name) ?? 0) + change;
    if (count === 0) streams.delete(name);
    else streams.set(name, count);
  };

  app.get(
    "/stats/stream",
    describeRoute({
      role: "viewer",
      summary: "Server-Sent Events: one event `live` a second",
      replyType: "text/event-stream",
      reply: Type.String({ description: "Open until either side closes it." }),
      errors: ["monitoring-off", "too-many-streams"],
    }),
    (request, reply) => {
      const { live } = counted(figures);
      // HEAD has no body to stream.
      if (request.method === "HEAD") return reply.headers(streamHeaders).send();
      const { name } = callerOf(request);
      if ((streams.get(name) ?? 0) >= MOST_STREAMS_PER_TOKEN) {
        throw new ServiceError("too-many-streams", `the token ${name} holds ${MOST_STREAMS_PER_TOKEN} streams already`);
      }
      const stop = live.watch({
        next: (view) => sendEvent(reply.raw, view),
        end: () => reply.raw.end(),
      });
      if (stop === undefined) throw new ServiceError("too-many-streams", "as many streams as are served are open");
      countStream(name, 1);
      reply.hijack();
      reply.raw.writeHead(200, streamHeaders);
      reply.raw.write(": welcome\n\n");
      const timer = setInterval(async () => {
        if (await isStillKnown(request, tokens)) return;
        // Stop the views first: a write after the end is an unhandled error, which would crash the process.
        stop();
        reply.raw.end();
      }, LOOK_AGAIN_MS);
      timer.unref();
      reply.raw.once("close", () => {
        clearInterval(timer);
        countStream(name, -1);
        stop();
      });
    },
  );
}

function sendEvent(response: ServerResponse, view: LiveView | undefined): void {
  if (response.writableLength > MOST_WAITING_BYTES) response.destroy();
  else if (view === undefined) response.write(": the history does not answer\n\n");
  else response.write(`event: live\ndata: ${JSON.stringify(view)}\n\n`);
}

function counted(figures: Figures | undefined): Figures {
  if (figures !== undefined) return figures;
  throw new ServiceError("monitoring-off", "this service does not count its traffic");
}
