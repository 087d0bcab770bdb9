/** What the admin API tells while Redis is stopped or hangs: what is unknown, why, and what this instance counted itself. */
import { setTimeout as sleep } from "node:timers/promises";
import type { Explanation } from "sluice";
import { describe, expect, test } from "vitest";
import type { AlertsView } from "../../packages/server/src/monitoring/views/alerts.js";
import type { TopKeysView } from "../../packages/server/src/monitoring/views/keys.js";
import type { LiveView, StatsView } from "../../packages/server/src/monitoring/views/stats.js";
import type { StoreView } from "../../packages/server/src/monitoring/views/store.js";
import { whyMissing } from "../../scripts/system-components.mjs";
import { startRedis } from "../harness/redis-server.js";
import { type Json, postJson, startTestService } from "../service/running-service.js";

const token = "an-admin-token-for-tests";
const headers = { authorization: `Bearer ${token}` };
const rules = [
  { id: "locally", key: ["user"], algorithm: "fixed-window", limit: 50, window: "1h", onStoreFailure: "local" },
  { id: "openly", match: { path: "/o" }, key: [], algorithm: "gcra", limit: 9, window: "1h", onStoreFailure: "allow" },
  { id: "never", match: { path: "/n" }, key: [], algorithm: "gcra", limit: 9, window: "1h", onStoreFailure: "deny" },
] as const;

async function get<T>(http: string, path: string): Promise<T> {
  const answer = await fetch(`${http}/admin/v1${path}`, { headers });
  const body = (await answer.json()) as Json;
  if (!answer.ok) throw new Error(`${answer.status} ${body.code}`);
  return body as T;
}

async function until<T>(what: string, read: () => Promise<T>, holds: (value: T) => boolean): Promise<T> {
  let last: T | undefined;
  for (let i = 0; i < 100; i++) {
    last = await read();
    if (holds(last)) return last;
    await sleep(200);
  }
  throw new Error(`not within 20 s: ${what}; last: ${JSON.stringify(last)}`);
}

/** The events of a live stream, as they come. */
async function watch(http: string): Promise<{ views: LiveView[]; stop(): void }> {
  const ending = new AbortController();
  const answer = await fetch(`${http}/admin/v1/stats/stream`, { headers, signal: ending.signal });
  const views: LiveView[] = [];
  void (async () => {
    let text = "";
    for await (const chunk of answer.body!.pipeThrough(new TextDecoderStream())) {
      text += chunk;
      for (const [, data] of text.matchAll(/event: live\ndata: (.+)\n\n/g)) views.push(JSON.parse(data!));
      text = text.slice(text.lastIndexOf("\n\n") + 2);
    }
  })().catch(() => undefined);
  return { views, stop: () => ending.abort() };
}

const ways = [
  { way: "is stopped", causes: /nothing listens at its address|connection to Redis is lost/ },
  { way: "hangs", causes: /does not answer in time|connection to Redis is lost/ },
] as const;

describe.skipIf(whyMissing("redis")).each(ways)("while Redis $way", ({ way, causes }) => {
  test("every view says what is unknown and why, and tells what the instance counted; then all come back", async () => {
    await using redis = await startRedis();
    await using service = await startTestService({
      rules: rules as never,
      settings: { store: redis.url, "admin-token": token },
    });
    const { http } = service;
    const check = (attributes: Record<string, string>) => postJson(`${http}/v1/check`, { attributes });
    const explain = async (attributes: object): Promise<Explanation> =>
      (await postJson(`${http}/admin/v1/keys/explain`, { attributes }, headers)).body;
    for (let i = 0; i < 7; i++) await check({ user: "ann" });
    await until(
      "counted in Redis",
      () => get<StatsView>(http, "/stats"),
      ({ scope, total }) => scope === "fleet" && total.allowed === 7,
    );
    const before = await until(
      "the store's memory is measured",
      () => get<StoreView>(http, "/store"),
      ({ memory }) => memory.measuredBytes! > 0,
    );
    expect([before.state, before.outage]).toEqual(["up", undefined]);
    const { views, stop } = await watch(http);

    if (way === "hangs") redis.pause();
    else await redis.kill();
    try {
      await until(
        "requests are answered by policy",
        () => check({ user: "bob" }),
        ({ body }) => body.degraded === "local",
      );
      const live = await until(
        "the live stream tells the outage and the requests",
        async () => views.at(-1),
        (view) => view?.scope === "instance" && view.store.outage !== undefined,
      );
      expect(live!.store).toMatchObject({ kind: "redis", state: "degraded", degradedInstances: 1 });
      expect(live!.store.outage!.cause).toMatch(causes);
      expect(live!.store.outage!.sinceMs).toBeGreaterThan(Date.now() - 60_000);
      await until(
        "requests by policy are seen",
        async () => views,
        (seen) => seen.some(({ degradedPerSecond, scope }) => degradedPerSecond > 0 && scope === "instance"),
      );

      const stats = await until(
        "what this instance counted",
        () => get<StatsView>(http, "/stats"),
        ({ scope, total }) => scope === "instance" && total.degraded > 0,
      );
      expect(stats.total.allowed).toBeGreaterThan(7);
      expect(stats.rules.map(({ rule }) => rule)).toEqual(["locally"]);

      const keys = await get<TopKeysView>(http, "/keys/top");
      expect(keys.scope).toBe("instance");
      expect(keys.keys).toContainEqual(expect.objectContaining({ attributes: { user: "ann" }, count: 7 }));
      await until(
        "alerts of this instance alone",
        () => get<AlertsView>(http, "/alerts"),
        ({ scope }) => scope === "instance",
      );
      const store = await until(
        "the store's view",
        () => get<StoreView>(http, "/store"),
        ({ nodes }) => nodes.every(({ state }) => state === "down"),
      );
      expect([store.state, store.outage?.cause]).toEqual(["degraded", expect.stringMatching(causes)]);

      const { decision, rules: told } = await explain({ user: "ann", path: "/n" });
      expect(decision.degraded).toBe("deny");
      expect(told.map(({ rule, state, degraded }) => [rule, state, degraded])).toEqual([
        ["locally", undefined, "local"],
        ["openly", undefined, undefined],
        ["never", undefined, "deny"],
      ]);
      const open = await explain({ path: "/o" });
      expect(open.decision.degraded).toBe("allow");
      expect(open.rules[1]).toMatchObject({ rule: "openly", degraded: "allow" });
    } finally {
      if (way === "hangs") redis.resume();
      else await redis.restart();
    }

    await until(
      "figures of all again",
      async () => {
        await check({ user: "cat" });
        return views.at(-1);
      },
      (view) => view?.scope === "fleet" && view.store.state === "up" && view.store.outage === undefined,
    );
    const after = await explain({ user: "cat" });
    expect(after.decision.degraded).toBeUndefined();
    expect(after.rules[0]?.state?.count).toBeGreaterThan(0);
    // What was counted meanwhile is not lost to who looks here.
    const seconds = (await get<StatsView>(http, "/stats?window=live")).total.points;
    const degraded = seconds.filter((point) => point.degraded > 0);
    expect(degraded.length).toBeGreaterThan(0);
    for (const point of degraded) expect(point.coveredMs).toBeGreaterThan(0);
    expect((await get<AlertsView>(http, "/alerts")).scope).toBe("fleet");
    const metrics = await (await fetch(`${http}/metrics`)).text();
    expect(metrics).toMatch(/sluice_history_lost_writes_total [1-9]/);
    expect(metrics).toMatch(/sluice_degraded_decisions_total\{policy="local"\} [1-9]/);
    stop();
  });
});
