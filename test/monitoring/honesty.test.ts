/** That figures are never more than what is known: steps that last, time that nobody counted, a candidate that is new. */
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, describe, expect, test, vi } from "vitest";
import { causeInWords } from "../../packages/server/src/instance/failure-words.js";
import { createLog } from "../../packages/server/src/log.js";
import { MemoryHistory } from "../../packages/server/src/monitoring/history/memory-history.js";
import { readLive, readStats } from "../../packages/server/src/monitoring/read-stats.js";
import { SeenAttributes } from "../../packages/server/src/monitoring/seen-attributes.js";
import type { StatsView } from "../../packages/server/src/monitoring/views/stats.js";
import { type Json, postJson, startTestService } from "../service/running-service.js";
import { sourcesOf } from "./stats-sources.js";

const silent = createLog("silent");
const noon = Date.UTC(2026, 5, 1, 12);
const token = "an-admin-token-for-tests";

async function call(http: string, method: string, path: string, body?: unknown): Promise<Json> {
  const answer = await fetch(`${http}/admin/v1${path}`, {
    method,
    headers: { authorization: `Bearer ${token}`, ...(body !== undefined && { "content-type": "application/json" }) },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  return await answer.json();
}

async function until<T>(read: () => Promise<T>, holds: (value: T) => boolean): Promise<T> {
  let last: T | undefined;
  for (let i = 0; i < 100; i++) {
    last = await read();
    if (holds(last)) return last;
    await sleep(200);
  }
  throw new Error(`not within 20 s; last: ${JSON.stringify(last)}`);
}

describe("time", () => {
  afterEach(() => void vi.useRealTimers());

  /** 147 requests in each of the seconds from `from` to `to`, counted from noon. */
  async function historyOf(spans: readonly { from: number; to: number; allowed?: number }[]): Promise<MemoryHistory> {
    const history = await MemoryHistory.open({ dataFolder: undefined, log: silent, now: () => Date.now() });
    for (const { from, to, allowed = 147 } of spans) {
      for (let second = from; second < to; second++) {
        await history.add(noon + second * 1_000, [{ series: "total", counts: { allowed, latency04: allowed } }], 1);
      }
    }
    return history;
  }

  test("the step that lasts is known for as long as it has lasted, in an hour and in a day", async () => {
    vi.useFakeTimers({ toFake: ["Date"], now: noon + 184_500 });
    const history = await historyOf([{ from: 0, to: 184 }]);
    const sources = sourcesOf(history);
    for (const [window, seconds] of [
      ["hour", 4],
      ["day", 184],
    ] as const) {
      const { total } = await readStats(sources, { window });
      const last = total.points.at(-1)!;
      expect([last.allowed, last.coveredMs], window).toEqual([147 * seconds, 1_000 * seconds]);
    }
    const { total, stepMs } = await readStats(sources, { window: "live" });
    expect(stepMs).toBe(1_000);
    expect(total.points.map(({ allowed, coveredMs }) => (1_000 * allowed) / coveredMs)).toEqual(Array(110).fill(147));
  });

  test("time in which nobody counted is unknown, and quiet time is not", async () => {
    vi.useFakeTimers({ toFake: ["Date"], now: noon + 300_000 });
    const history = await historyOf([
      { from: 0, to: 60 },
      { from: 60, to: 90, allowed: 0 },
      { from: 240, to: 300 },
    ]);
    const { total } = await readStats(sourcesOf(history), { window: "hour" });
    // Of the minute that has just begun nothing is known yet.
    expect(total.points.slice(-7).map(({ allowed, coveredMs }) => [allowed, coveredMs])).toEqual([
      [0, 0],
      [147 * 60, 60_000],
      [0, 30_000],
      [0, 0],
      [0, 0],
      [147 * 60, 60_000],
      [0, 0],
    ]);
  });

  test("where the history has nothing of a step, the instance tells what it counted itself, and says so", async () => {
    vi.useFakeTimers({ toFake: ["Date"], now: noon + 200_000 });
    const history = await historyOf([
      { from: 0, to: 60 },
      { from: 180, to: 200 },
    ]);
    const own = await historyOf([{ from: 0, to: 200, allowed: 10 }]);
    const { total, scope } = await readStats(sourcesOf(history, { own }), { window: "hour" });
    expect(scope).toBe("fleet");
    expect(total.points.slice(-4).map((point) => [point.allowed, point.coveredMs, point.scope])).toEqual([
      [147 * 60, 60_000, "fleet"],
      [600, 60_000, "instance"],
      [600, 60_000, "instance"],
      [147 * 20, 20_000, "fleet"],
    ]);
    expect(total.allowed).toBe(147 * 80 + 1_200);
  });

  test("a history that cannot be written, though it can be read, leaves no second at zero", async () => {
    vi.useFakeTimers({ toFake: ["Date"], now: noon + 30_500 });
    const history = await historyOf([{ from: 0, to: 10 }]);
    const own = await historyOf([{ from: 0, to: 30, allowed: 12 }]);
    const outage = () => ({ sinceMs: noon + 10_000, cause: "Redis is out of memory", partial: false });
    const view = await readLive(sourcesOf(history, { own, outage }));
    expect(view).toMatchObject({
      scope: "instance",
      instances: 1,
      allowedPerSecond: 12,
      store: { state: "degraded", degradedInstances: 1, outage: outage() },
    });
  });

  test("an instance that was late tells a rate, not the sum of its seconds", async () => {
    vi.useFakeTimers({ toFake: ["Date"], now: noon + 12_500 });
    const history = await MemoryHistory.open({ dataFolder: undefined, log: silent });
    await history.add(noon + 10_000, [{ series: "total", counts: { allowed: 300 } }], 3);
    expect((await readLive(sourcesOf(history))).allowedPerSecond).toBe(100);
  });
});

test("a candidate is compared with its rule on the same requests: since it began, and anew when it changes", async () => {
  await using service = await startTestService({ settings: { "admin-token": token } });
  const rule = { key: ["user"], algorithm: "fixed-window", limit: 4, window: "1h" };
  const put = (more: object) => call(service.http, "PUT", "/rules/compared", { ...rule, ...more });
  const send = async (user: string, times: number): Promise<void> => {
    for (let i = 0; i < times; i++) await postJson(`${service.http}/v1/check`, { attributes: { user } });
  };
  const comparison = (requests: number) =>
    until(
      async () => {
        const { rules } = (await call(service.http, "GET", "/stats?rule=compared")) as StatsView;
        return rules[0];
      },
      (stats) => (stats?.allowed ?? 0) + (stats?.refused ?? 0) === requests,
    );
  await put({});
  await send("ann", 3);
  expect((await comparison(3))?.comparison).toBeUndefined();

  await put({ candidate: { limit: 2 } });
  await send("bob", 5);
  const first = await comparison(8);
  expect(first?.comparison).toMatchObject({
    bothAllowed: 2,
    onlyCandidateRefused: 2,
    bothRefused: 1,
    onlyLiveRefused: 0,
  });
  expect(first?.comparison?.sinceMs).toBeGreaterThan(Date.now() - 120_000);

  await put({ candidate: { limit: 40 }, description: "words change nothing" });
  await send("cat", 5);
  await put({ candidate: { limit: 40 }, description: "of the comparison" });
  await send("cat", 1);
  expect((await comparison(14))?.comparison).toMatchObject({
    bothAllowed: 4,
    onlyLiveRefused: 2,
    bothRefused: 0,
    onlyCandidateRefused: 0,
  });
});

test("a rule that asks for attributes which no request had is warned of, once requests were seen", async () => {
  await using service = await startTestService({ settings: { "admin-token": token } });
  const rule = {
    match: { path: "/v1/**", teir: "free" },
    key: ["/v1/search"],
    algorithm: "gcra",
    limit: 4,
    window: "1h",
  };
  const dryRun = () => call(service.http, "PUT", "/rules/mistaken?dryRun=true", rule);
  expect((await dryRun()).warnings).toBeUndefined();
  await postJson(`${service.http}/v1/check`, { attributes: { user: "ann", path: "/v1/search" } });
  const { warnings } = await until(dryRun, (answer) => answer.warnings !== undefined);
  expect(warnings).toEqual([
    {
      path: "key[0]",
      message:
        'no request lately had the attribute "/v1/search", so the rule applies to none: requests had path, user. ' +
        'To limit that path, put it under match: path: "/v1/search"',
    },
    {
      path: "match.teir",
      message: 'no request lately had the attribute "teir", so the rule applies to none: requests had path, user',
    },
  ]);
  const known = { ...rule, match: { path: "/v1/**" }, key: ["user"] };
  expect((await call(service.http, "PUT", "/rules/mistaken?dryRun=true", known)).warnings).toBeUndefined();
});

test("names of attributes are bounded, say so when there are more, and are found at any rate", () => {
  const seen = new SeenAttributes();
  for (let i = 0; i < 10_000; i++) seen.add({ user: "x", ...(i % 20 === 0 && { rare: "x" }) });
  expect([seen.names, seen.isComplete]).toEqual([["rare", "user"], true]);
  for (let i = 0; i < 100_000; i++) seen.add({ [`a${i}`]: "x" });
  expect([seen.names.length, seen.isComplete]).toEqual([256, false]);
  // A day later, and another: the flood is over.
  for (let second = 0; second < 2 * 86_400; second++) seen.nextSecond();
  seen.add({ user: "x" });
  expect([seen.names, seen.isComplete]).toEqual([["user"], true]);
});

test("why a store does not answer is told in words, whatever its client calls it", () => {
  const said = {
    "Redis: not connected (connect ECONNREFUSED 127.0.0.1:1); check the address": "nothing listens at its address",
    "Redis: NOAUTH Authentication required.": "does not accept the password",
    "Redis: no answer within 50 ms": "does not answer in time",
    "OOM command not allowed when used memory > 'maxmemory'.": "out of memory",
    "ERR max number of clients reached": "no more connections",
    "Redis: the connection broke": "the connection to Redis is lost",
    "Connection is closed.": "the connection to Redis is lost",
    "Redis: Stream isn't writeable and enableOfflineQueue options is false": "the connection to Redis is lost",
    undefined: "Redis does not answer",
  };
  for (const [error, words] of Object.entries(said)) expect(causeInWords(error), error).toContain(words);
});
