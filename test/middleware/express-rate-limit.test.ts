/** Our store under the real express-rate-limit, with its validations on: not one of them may complain. */
import { createServer } from "node:http";
import express from "express";
import { type Options, rateLimit } from "express-rate-limit";
import { memoryStore } from "sluice";
import { type RollingStoreOptions, rollingStore } from "sluice/express-rate-limit";
import { redisStore } from "sluice/redis";
import { virtualClock } from "sluice/testing";
import { describe, expect, test, vi } from "vitest";
import { whyMissing } from "../../scripts/system-components.mjs";
import { freePort } from "../harness/free-port.js";
import { startRedis } from "../harness/redis-server.js";
import { listening, Stage } from "./apps/served-app.js";

/** An application under express-rate-limit, and what it logged. */
async function serve(store: RollingStoreOptions, options: Partial<Options> = {}) {
  const logged: unknown[] = [];
  const logger = { warn: (...args: unknown[]) => logged.push(args), error: (...args: unknown[]) => logged.push(args) };
  const app = express();
  const ours = rollingStore(store);
  app.use(
    rateLimit({
      windowMs: 60_000,
      limit: 3,
      legacyHeaders: false,
      standardHeaders: "draft-7",
      logger,
      store: ours,
      ...options,
    }),
  );
  app.get("/", (_req, res) => void res.send("ok"));
  const waiting: ((status: number) => void)[] = [];
  app.get("/slow", (_req, res) => void waiting.push((status) => res.status(status).end()));
  app.use(
    (error: { status?: number }, _req: unknown, res: express.Response, _next: unknown) =>
      void res.status(error.status ?? 500).end(),
  );
  const served = await listening(createServer(app), new Stage());
  return { url: served.url, logged, waiting, store: ours, [Symbol.asyncDispose]: () => served[Symbol.asyncDispose]() };
}

async function statuses(url: string, count: number): Promise<number[]> {
  const all: number[] = [];
  for (let i = 0; i < count; i++) all.push((await fetch(url)).status);
  return all;
}

test("the limit holds, refused hits count nothing, and no validation complains", async () => {
  const clock = virtualClock(Date.now());
  await using app = await serve({ store: memoryStore({ clock }) });
  expect(await statuses(app.url, 5)).toEqual([200, 200, 200, 429, 429]);
  // A store that counts refusals would still say no here.
  clock.advance(60_000);
  expect(await statuses(app.url, 4)).toEqual([200, 200, 200, 429]);
  expect(app.logged).toEqual([]);
});

test("the window rolls: half of it later, only the older half has come back", async () => {
  const clock = virtualClock(Date.now());
  await using app = await serve({ store: memoryStore({ clock }) });
  expect(await statuses(app.url, 1)).toEqual([200]);
  clock.advance(30_000);
  expect(await statuses(app.url, 3)).toEqual([200, 200, 429]);
  clock.advance(30_000);
  expect(await statuses(app.url, 2)).toEqual([200, 429]);
});

test.each(["draft-6", "draft-7", "draft-8"] as const)(
  "express-rate-limit's own %s fields tell the truth",
  async (standardHeaders) => {
    await using app = await serve({}, { standardHeaders, legacyHeaders: true });
    const first = await fetch(app.url);
    expect(first.headers.get("x-ratelimit-remaining")).toBe("2");
    await statuses(app.url, 2);
    const refused = await fetch(app.url);
    expect(refused.status).toBe(429);
    expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(58);
    expect(app.logged).toEqual([]);
  },
);

test("skipFailedRequests gives hits back", async () => {
  await using app = await serve({}, { skipFailedRequests: true });
  for (let i = 0; i < 6; i++) {
    expect((await fetch(`${app.url}/absent`)).status).toBe(404);
    await vi.waitFor(async () => expect(await app.store.get("127.0.0.1")).toBeUndefined());
  }
  expect(await statuses(app.url, 4)).toEqual([200, 200, 200, 429]);
  expect(app.logged).toEqual([]);
});

const refusals: readonly [string, Partial<Options>][] = [
  ["which express-rate-limit takes for a failure", { skipFailedRequests: true }],
  ["which its user takes for a success", { skipFailedRequests: true, requestWasSuccessful: () => true }],
  ["beside both kinds of skipping", { skipSuccessfulRequests: true, requestWasSuccessful: () => false }],
];
test.each(refusals)("a refused hit gives nothing back, %s", async (_name, options) => {
  await using app = await serve({}, options);
  expect(await statuses(app.url, 14)).toEqual([200, 200, 200, ...Array.from({ length: 11 }, () => 429)]);
  expect(app.logged).toEqual([]);
});

test("a failed request among refused ones gives back its own hit, and only that", async () => {
  await using app = await serve({}, { skipFailedRequests: true });
  const finish = [1, 2, 3].map(() => fetch(`${app.url}/slow`));
  await vi.waitFor(() => expect(app.waiting.length).toBe(3));
  expect(await statuses(app.url, 5)).toEqual([429, 429, 429, 429, 429]);
  // One of the three fails, after five refusals.
  app.waiting[0]!(500);
  app.waiting[1]!(200);
  app.waiting[2]!(200);
  await Promise.all(finish);
  await vi.waitFor(async () => expect(await app.store.get("127.0.0.1")).toMatchObject({ totalHits: 2 }));
  expect(await statuses(app.url, 3)).toEqual([200, 429, 429]);
});

test("two limiters of different numbers count apart by default; equal ones are warned of", async () => {
  const warned = vi.spyOn(process, "emitWarning").mockImplementation(() => undefined);
  const store = memoryStore();
  await using strict = await serve({ store }, { limit: 1, windowMs: 61_000 });
  await using loose = await serve({ store }, { limit: 2, windowMs: 61_000 });
  expect(await statuses(strict.url, 2)).toEqual([200, 429]);
  expect(await statuses(loose.url, 3)).toEqual([200, 200, 429]);
  expect(warned).not.toHaveBeenCalled();
  await using again = await serve({ store }, { limit: 2, windowMs: 61_000 });
  expect(await statuses(again.url, 1)).toEqual([429]);
  expect(warned.mock.calls.map(([, options]) => (options as { code: string }).code)).toEqual(["SLUICE_SHARED_PREFIX"]);
  warned.mockRestore();
});

test("keys can be looked at, taken back and reset", async () => {
  const store = rollingStore();
  store.init({ windowMs: 60_000, limit: 2 } as Options);
  expect(await store.get("a")).toBeUndefined();
  await store.increment("a");
  expect(await store.increment("a")).toMatchObject({ totalHits: 2 });
  expect(await store.increment("a")).toMatchObject({ totalHits: 3 });
  expect(await store.get("a")).toMatchObject({ totalHits: 2 });
  await store.decrement("a");
  expect(await store.get("a")).toMatchObject({ totalHits: 1 });
  await store.decrement("a");
  await store.decrement("a");
  await store.decrement("never seen");
  expect(await store.get("a")).toBeUndefined();
  await store.increment("a");
  await store.resetKey("a");
  expect(await store.get("a")).toBeUndefined();
  await store.shutdown();
});

test("hits that come before init wait for it, and are refused with a reason if it never comes", async () => {
  const store = rollingStore();
  const hits = [store.increment("a"), store.increment("a"), store.increment("a")];
  store.init({ windowMs: 60_000, limit: 2 } as Options);
  expect((await Promise.all(hits)).map(({ totalHits }) => totalHits)).toEqual([1, 2, 3]);
  await expect(rollingStore().increment("a")).rejects.toThrow(/which starts it/);
});

test("a limit that is a function counts every hit, as with other stores", async () => {
  await using app = await serve({}, { limit: async () => 2 });
  expect(await statuses(app.url, 4)).toEqual([200, 200, 429, 429]);
  expect(await app.store.get("127.0.0.1")).toMatchObject({ totalHits: 4 });
  expect(app.logged).toEqual([]);
});

test("a prefix that cannot name a rule is refused at once", () => {
  expect(() => rollingStore({ prefix: "rl:" })).toThrow(/^prefix: expected/);
});

test("with the store away, each process counts for itself, lets requests pass, or fails as express-rate-limit is told to", async () => {
  const away = `redis://127.0.0.1:${await freePort()}`;
  await using local = await serve({ store: redisStore(away) });
  expect(await statuses(local.url, 5)).toEqual([200, 200, 200, 429, 429]);
  await using lenient = await serve({ store: redisStore(away), onStoreFailure: "allow" });
  expect(await statuses(lenient.url, 5)).toEqual([200, 200, 200, 200, 200]);
  await using strict = await serve({ store: redisStore(away), onStoreFailure: "deny" });
  expect(await statuses(strict.url, 1)).toEqual([503]);
  await using passing = await serve({ store: redisStore(away), onStoreFailure: "deny" }, { passOnStoreError: true });
  expect(await statuses(passing.url, 1)).toEqual([200]);
});

describe.skipIf(whyMissing("redis"))("on Redis", () => {
  test("two processes' worth of stores share one limit, and no validation complains", async () => {
    await using redis = await startRedis();
    const patient = { deadlineMs: 5_000 };
    const [left, right] = [redisStore(redis.url, patient), redisStore(redis.url, patient)];
    // The first decision must not race the connection.
    await Promise.all([left.ready(), right.ready()]);
    await using one = await serve({ store: left });
    await using two = await serve({ store: right });
    expect(await statuses(one.url, 2)).toEqual([200, 200]);
    expect(await statuses(two.url, 2)).toEqual([200, 429]);
    expect([...one.logged, ...two.logged]).toEqual([]);
    await Promise.all([one.store.shutdown(), two.store.shutdown()]);
  });
});
