/**
 * Watching and telling, with real parts: states in memory and in Redis, receivers over HTTP. Where time matters to the detectors it is an
 * argument: rounds are run for minutes that never passed.
 */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, test } from "vitest";
import { Heartbeat } from "../../packages/server/src/instance/heartbeat.js";
import { createLog, type Log } from "../../packages/server/src/log.js";
import { Alerts, type AlertsOptions } from "../../packages/server/src/monitoring/alerts/alerts.js";
import type { History, SeriesCounts } from "../../packages/server/src/monitoring/history/history.js";
import type { AlertsView } from "../../packages/server/src/monitoring/views/alerts.js";
import type { TopKey } from "../../packages/server/src/monitoring/views/keys.js";
import type { StoreNode } from "../../packages/server/src/monitoring/views/store.js";
import { webhooks as acceptedWebhooks } from "../../packages/server/src/settings/accepted-settings.js";
import { whyMissing } from "../../scripts/system-components.mjs";
import { eventually } from "../configuration/instance.js";
import { makeTempFolder } from "../harness/leash.js";
import { randomOf } from "../harness/random.js";
import { startRedis } from "../harness/redis-server.js";
import { type KeptState, openMemoryState, openRedisState } from "./kept-state.js";

const silent = createLog("silent");
const MINUTE = 60_000;
const START_MS = Date.UTC(2026, 10, 16, 9);

interface Sent {
  readonly state: string;
  readonly subject: string;
  readonly id: string;
}

async function receiver() {
  const sent: Sent[] = [];
  const server = createServer(async (request, response) => {
    let body = "";
    for await (const chunk of request) body += chunk;
    sent.push((JSON.parse(body) as { alert: Sent }).alert);
    response.writeHead(204).end();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  return { sent, url, [Symbol.asyncDispose]: async () => void server.close() };
}

interface InstanceState {
  readonly rulesVersion?: number;
  readonly rulesLoaded: boolean;
  readonly configurationError?: string;
  readonly storeDegradedSinceMs?: number;
  readonly storeError?: string;
}

/** What an instance sees, for a test to change. */
interface World {
  state: InstanceState;
  nodes: StoreNode[];
  keys: TopKey[];
}

const well: InstanceState = { rulesVersion: 7, rulesLoaded: true };
const newWorld = (): World => ({ state: well, nodes: [], keys: [] });

/** Alerts beside a heartbeat, which here beats once a round. */
class WatchingInstance extends Alerts {
  readonly #heartbeat: Heartbeat;

  constructor(options: AlertsOptions, heartbeat: Heartbeat) {
    super(options);
    this.#heartbeat = heartbeat;
  }

  override async round(nowMs: number): Promise<void> {
    await this.#heartbeat.beat(nowMs).catch(() => undefined);
    await super.round(nowMs);
  }
}

function instance(
  { history, shared }: KeptState,
  world: World,
  more: Partial<AlertsOptions> & { url?: string; name?: string } = {},
): Alerts {
  const { url, name = "one", ...options } = more;
  const heartbeat = new Heartbeat({
    shared,
    instance: name,
    state: () => {
      const { rulesVersion, rulesLoaded, configurationError, storeDegradedSinceMs } = world.state;
      return {
        store: storeDegradedSinceMs === undefined ? "up" : "degraded",
        rulesVersion: rulesVersion ?? 1,
        sharedVersion: rulesVersion,
        rulesLoaded,
        configurationError,
      };
    },
  });
  const watching: AlertsOptions = {
    history,
    shared,
    log: silent,
    instance: name,
    webhooks: url === undefined ? [] : acceptedWebhooks.parse(url)!,
    allowPrivate: true,
    pauseMs: 5,
    heartbeat,
    storeHealth: {
      get sinceMs() {
        return world.state.storeDegradedSinceMs;
      },
      get failingSinceMs() {
        return world.state.storeDegradedSinceMs;
      },
      get error() {
        return world.state.storeError;
      },
    },
    nodes: async () => world.nodes,
    topKeys: async () => ({ maxError: 10, keys: world.keys }),
    ...options,
  };
  return new WatchingInstance(watching, heartbeat);
}

/** A history and a shared state whose clock is the test's. */
async function stateAt(clock: { nowMs: number }, dataFolder?: string): Promise<KeptState> {
  return await openMemoryState({ dataFolder, log: silent, now: () => clock.nowMs });
}

async function roundAt(alerts: Alerts, clock: { nowMs: number }, nowMs: number): Promise<void> {
  clock.nowMs = nowMs;
  await alerts.round(nowMs);
}

const outage = (nowMs: number): InstanceState => ({
  ...well,
  storeDegradedSinceMs: nowMs - 10_000,
  storeError: "Redis: gone",
});
const firing = (view: AlertsView) => view.alerts.filter(({ state }) => state === "firing").map(({ kind }) => kind);

test("an outage is told once, kept while it lasts, and told again when it is over", async () => {
  await using hook = await receiver();
  const clock = { nowMs: START_MS };
  const world = newWorld();
  const alerts = instance(await stateAt(clock), world, { url: hook.url });
  for (let i = 0; i < 12; i++) {
    clock.nowMs += 5_000;
    world.state = i < 6 ? outage(clock.nowMs) : well;
    await alerts.round(clock.nowMs);
  }
  await eventually("both messages are there", () => hook.sent.length === 2);
  expect(hook.sent.map(({ state, subject }) => [state, subject])).toEqual([
    ["firing", "store-degraded"],
    ["resolved", "store-degraded"],
  ]);
  expect(hook.sent[0]!.id).toBe(hook.sent[1]!.id);
  const { alerts: shown, webhooks } = await alerts.read();
  expect(shown).toMatchObject([{ kind: "store-degraded", state: "resolved", severity: "critical" }]);
  expect(shown[0]!.endedAtMs! - shown[0]!.startedAtMs).toBeGreaterThanOrEqual(20_000);
  expect(webhooks[0]).toMatchObject({ lastSentAtMs: expect.any(Number) });
  await alerts.close();
});

test.skipIf(whyMissing("redis"))(
  "two instances watch, one message is sent, both show the alert, and the other takes over",
  async () => {
    await using hook = await receiver();
    await using redis = await startRedis();
    const states = [openRedisState(redis.url), openRedisState(redis.url)];
    const world = newWorld();
    world.nodes = [fullNode(0.95)];
    const [one, two] = states.map((state, i) =>
      instance(state, world, { url: hook.url, name: `i${i}`, everyMs: 200, quietMs: 1_000 }),
    );
    await eventually("Redis is connected", async () => (await states[0]!.shared.read("x").catch(() => null)) !== null);
    one!.start();
    two!.start();
    await eventually("the alert fires", async () => firing(await one!.read()).length > 0);
    await eventually("both count it", () => one!.firing() === 1 && two!.firing() === 1);
    expect(firing(await two!.read())).toEqual(["store-memory"]);
    await eventually("it was sent", () => hook.sent.length > 0);
    // Whoever watches goes; the other one knows of the alert, does not send it again, and ends it.
    await one!.close();
    world.nodes = [fullNode(0.5)];
    await eventually("the other ends it", () => hook.sent.some(({ state }) => state === "resolved"));
    expect(hook.sent.map(({ state }) => state)).toEqual(["firing", "resolved"]);
    await two!.close();
    for (const state of states) await state.close();
  },
);

const fullNode = (share: number, more: Partial<StoreNode> = {}): StoreNode => ({
  address: "127.0.0.1:6379",
  role: "leader",
  state: "up",
  usedBytes: share * 2 ** 27,
  maxBytes: 2 ** 27,
  maxMemoryPolicy: "noeviction",
  evictedKeys: 0,
  ...more,
});

test("a restart keeps the alert that fires: it is neither told again nor lost", async () => {
  await using hook = await receiver();
  const folder = makeTempFolder("alerts");
  const clock = { nowMs: START_MS };
  const world = newWorld();
  world.nodes = [fullNode(1.01)];
  const before = await stateAt(clock, folder);
  const first = instance(before, world, { url: hook.url });
  await first.round(clock.nowMs);
  await eventually("it was sent", () => hook.sent.length === 1);
  await eventually("that is noted", async () =>
    JSON.stringify([...(await before.shared.readAll("alert:"))]).includes('told\\":true'),
  );
  await first.close();
  await before.close();

  clock.nowMs += 30_000;
  const after = await stateAt(clock, folder);
  const second = instance(after, world, { url: hook.url, name: "two" });
  await second.round(clock.nowMs);
  const { alerts } = await second.read();
  expect(alerts).toMatchObject([
    { kind: "store-memory", state: "firing", startedAtMs: START_MS, id: hook.sent[0]!.id },
  ]);
  expect(hook.sent).toHaveLength(1);
  await second.close();
  await after.close();
});

test("a message that the watching instance did not get rid of is sent by the next one", async () => {
  await using hook = await receiver();
  const clock = { nowMs: START_MS };
  const state = await stateAt(clock);
  const world = newWorld();
  world.nodes = [fullNode(0.95)];
  const first = instance(state, world, { url: "http://127.0.0.1:9/", pauseMs: 60_000 });
  await first.round(clock.nowMs);
  await first.close();
  clock.nowMs += 10_000;
  const second = instance(state, world, { url: hook.url, name: "two" });
  await second.round(clock.nowMs);
  await eventually("the next one sends it", () => hook.sent.length === 1);
  await second.close();
});

test("a message that waited to be tried again when its watcher ended is sent by the next one", async () => {
  await using hook = await receiver();
  const clock = { nowMs: START_MS };
  const state = await stateAt(clock);
  const world = newWorld();
  world.nodes = [fullNode(0.95)];
  const first = instance(state, world, { url: "http://127.0.0.1:9/", pauseMs: 60_000 });
  await first.round(clock.nowMs);
  await eventually("a first attempt failed", async () => (await first.read()).webhooks[0]?.lastError !== undefined);
  await first.close();
  clock.nowMs += 10_000;
  const second = instance(state, world, { url: hook.url, name: "two" });
  await second.round(clock.nowMs);
  await eventually("the next one sends it", () => hook.sent.length === 1);
  await second.close();
});

test("memory near its end warns, a full one is critical, and an evicted counter too", async () => {
  const clock = { nowMs: START_MS };
  const world = newWorld();
  const alerts = instance(await stateAt(clock), world);
  const look = async (node: StoreNode) => {
    clock.nowMs += 5_000;
    world.nodes = [node];
    await alerts.round(clock.nowMs);
    return (await alerts.read()).alerts.map(({ state, severity }) => `${state} ${severity}`);
  };
  expect(await look(fullNode(0.88))).toEqual([]);
  expect(await look(fullNode(0.91))).toEqual(["firing warning"]);
  // Between the two bounds it goes on, instead of ending and beginning again.
  expect(await look(fullNode(0.88))).toEqual(["firing warning"]);
  expect(await look(fullNode(1))).toEqual(["firing critical"]);
  world.nodes = [];
  for (let i = 0; i < 5; i++) await roundAt(alerts, clock, clock.nowMs + 5_000);
  expect(await look(fullNode(0.2, { maxMemoryPolicy: "allkeys-lru", evictedKeys: 5 }))).toEqual(["resolved critical"]);
  expect(await look(fullNode(0.2, { maxMemoryPolicy: "allkeys-lru", evictedKeys: 9 }))).toEqual([
    "firing critical",
    "resolved critical",
  ]);
  await alerts.close();
});

test("an instance that stays at an old version of the rules is named, and one that has none", async () => {
  const clock = { nowMs: START_MS };
  const state = await stateAt(clock);
  const newest = newWorld();
  newest.state = { ...well, rulesVersion: 8 };
  const stuck = newWorld();
  stuck.state = { ...well, configurationError: "the database does not answer" };
  const empty = newWorld();
  empty.state = { ...well, rulesVersion: 8, rulesLoaded: false };
  const fleet = [
    instance(state, newest, { name: "watching" }),
    instance(state, stuck, { name: "stuck" }),
    instance(state, empty, { name: "empty" }),
  ];
  for (let i = 0; i < 4; i++) {
    clock.nowMs += 5_000;
    for (const alerts of fleet) await alerts.round(clock.nowMs);
  }
  const told = (await fleet[0]!.read()).alerts.map(({ summary }) => summary).sort();
  expect(told).toEqual([
    "instance empty has no rules: nothing is limited there",
    expect.stringMatching(/^instance stuck is still at version 7 .* version 8 .*: the database does not answer$/),
  ]);
});

test("instances without a version in common are not held against each other", async () => {
  const clock = { nowMs: START_MS };
  const state = await stateAt(clock);
  const worlds = [newWorld(), newWorld()];
  worlds[0]!.state = { rulesLoaded: true };
  worlds[1]!.state = { ...well, rulesVersion: 5 };
  const fleet = worlds.map((world, i) => instance(state, world, { name: `number-${i}` }));
  for (let i = 0; i < 4; i++) {
    clock.nowMs += 5_000;
    for (const alerts of fleet) await alerts.round(clock.nowMs);
  }
  expect((await fleet[0]!.read()).alerts).toEqual([]);
});

/** Some days of traffic in the history, at `perMinute` with a little noise. */
async function fill(
  history: History,
  fromMs: number,
  toMs: number,
  countsAt: (atMs: number) => readonly SeriesCounts[],
) {
  for (let atMs = fromMs; atMs < toMs; atMs += MINUTE) await history.add(atMs, countsAt(atMs));
}

test("traffic from the history: a rule whose rate trebles is named, with the total; the others are not", async () => {
  const clock = { nowMs: START_MS - 3 * 24 * 60 * MINUTE };
  const state = await stateAt(clock);
  const random = randomOf(1);
  const counts = (times: number) => () => {
    const noisy = (mean: number) => Math.round(mean * (0.9 + 0.2 * random()));
    const busy = noisy(300 * times);
    const calm = noisy(100);
    return [
      { series: "total", counts: { allowed: busy + calm } },
      { series: "busy", counts: { allowed: busy } },
      { series: "calm", counts: { allowed: calm } },
    ];
  };
  const world = newWorld();
  const alerts = instance(state, world);
  // Somebody looked three days ago: that is when the history begins to be known.
  await alerts.round(clock.nowMs);
  const first = clock.nowMs;
  clock.nowMs = START_MS;
  await fill(state.history, first, START_MS, counts(1));
  await alerts.round(clock.nowMs + 6_000);
  expect((await alerts.read()).alerts).toEqual([]);
  await fill(state.history, START_MS, START_MS + 5 * MINUTE, counts(3));
  for (let i = 1; i <= 5; i++) await roundAt(alerts, clock, START_MS + i * MINUTE + 6_000);
  const { alerts: found } = await alerts.read();
  expect(found.map(({ kind, rule }) => `${kind} ${rule}`).sort()).toEqual([
    "unusual-rate busy",
    "unusual-rate undefined",
  ]);
  const busy = found.find(({ rule }) => rule === "busy")!;
  expect(busy.value! / busy.expected!).toBeGreaterThan(2.5);
  await alerts.close();
});

test("minutes that nobody counted are no lack of traffic; minutes without requests are", async () => {
  const clock = { nowMs: START_MS };
  const state = await stateAt(clock);
  const alerts = instance(state, newWorld());
  await alerts.round(clock.nowMs);
  const add = (minute: number, allowed: number) =>
    state.history.add(START_MS + minute * MINUTE, [{ series: "total", counts: { allowed } }], 60);
  for (let i = 0; i < 90; i++) await add(i, 400);
  // The service, or the Redis that keeps the history, was away for ten minutes.
  await roundAt(alerts, clock, START_MS + 100 * MINUTE + 6_000);
  expect((await alerts.read()).alerts).toEqual([]);
  for (let i = 101; i <= 104; i++) {
    await add(i - 1, 400);
    await roundAt(alerts, clock, START_MS + i * MINUTE + 6_000);
    expect((await alerts.read()).alerts).toEqual([]);
  }
  for (let i = 105; i <= 112; i++) {
    await add(i - 1, 0);
    await roundAt(alerts, clock, START_MS + i * MINUTE + 6_000);
  }
  expect((await alerts.read()).alerts).toMatchObject([
    { kind: "unusual-rate", summary: expect.stringMatching(/^few requests/) },
  ]);
  await alerts.close();
});

test("a key that comes out of nowhere with a large share is told; one that was always heavy is not", async () => {
  const clock = { nowMs: START_MS };
  const state = await stateAt(clock);
  const world = newWorld();
  const key = (user: string, count: number): TopKey => ({
    rule: "per-user",
    attributes: { user },
    count,
    refused: 5,
    peakUtilisation: 1,
  });
  world.keys = [key("always", 30_000)];
  const alerts = instance(state, world);
  const counts = () => [
    { series: "total", counts: { allowed: 1_000 } },
    { series: "per-user", counts: { allowed: 1_000 } },
  ];
  await fill(state.history, START_MS, START_MS + 150 * MINUTE, counts);
  for (let i = 1; i <= 65; i++) await roundAt(alerts, clock, START_MS + i * MINUTE + 6_000);
  expect((await alerts.read()).alerts).toEqual([]);
  world.keys = [key("always", 30_000), key("newcomer", 20_000), key("small", 900)];
  await roundAt(alerts, clock, START_MS + 66 * MINUTE + 6_000);
  const { alerts: found } = await alerts.read();
  expect(found).toMatchObject([{ kind: "new-heavy-key", rule: "per-user", state: "firing" }]);
  expect(found[0]!.summary).toContain("user=newcomer");
  // It is known by now: after an hour it is news no more.
  for (let i = 67; i <= 145; i++) await roundAt(alerts, clock, START_MS + i * MINUTE + 6_000);
  expect((await alerts.read()).alerts).toMatchObject([{ kind: "new-heavy-key", state: "resolved" }]);
  await alerts.close();
});

test("five hundred alerts are kept at most, the newest", async () => {
  const clock = { nowMs: START_MS };
  const state = await stateAt(clock);
  const world = newWorld();
  const alerts = instance(state, world);
  for (let i = 0; i < 520; i++) {
    world.nodes = [fullNode(1, { address: `10.0.0.${i}:6379` })];
    await roundAt(alerts, clock, clock.nowMs + 25_000);
  }
  const { alerts: found } = await alerts.read();
  expect(found.length).toBeGreaterThanOrEqual(500);
  expect(found.length).toBeLessThanOrEqual(502);
  expect(found.some(({ summary }) => summary.includes("10.0.0.519:"))).toBe(true);
  await alerts.close();
});

test("an alert begins and ends with a line in the log, and no secret is in it", async () => {
  await using hook = await receiver();
  const said: string[] = [];
  const say = (level: string) => (message: string, fields?: object) =>
    void said.push(`${level} ${message} ${JSON.stringify(fields ?? {})}`);
  const log: Log = { debug: say("debug"), info: say("info"), warn: say("warn"), error: say("error") };
  const clock = { nowMs: START_MS };
  const world = newWorld();
  const secret = "a-secret-that-nobody-sees";
  const alerts = instance(await stateAt(clock), world, { url: `${hook.url}url-secret`, secret, log });
  for (let i = 0; i < 12; i++) {
    clock.nowMs += 5_000;
    world.state = i < 3 ? outage(clock.nowMs) : well;
    await alerts.round(clock.nowMs);
  }
  expect(said.filter((line) => line.startsWith("warn an alert fires"))).toHaveLength(1);
  expect(said.filter((line) => line.startsWith("info an alert is over"))).toHaveLength(1);
  expect(said.join("\n") + JSON.stringify(await alerts.read())).not.toContain("secret");
  await alerts.close();
});

test("with a thousand rules a round lets other work in between", async () => {
  const clock = { nowMs: START_MS };
  const state = await stateAt(clock);
  const alerts = instance(state, newWorld());
  const counts = Array.from({ length: 1_000 }, (_, i) => ({ series: `rule-${i}`, counts: { allowed: 100 } }));
  for (let i = 0; i < 60; i++) await state.history.add(START_MS + i * MINUTE, counts);
  clock.nowMs = START_MS + 60 * MINUTE + 6_000;
  let turns = 0;
  let over = false;
  const count = (): void => {
    turns++;
    if (!over) setImmediate(count);
  };
  setImmediate(count);
  await alerts.round(clock.nowMs);
  over = true;
  expect(turns).toBeGreaterThan(40);
  await alerts.close();
});

test.skipIf(whyMissing("redis"))(
  "an outage of the history is told from memory, and kept when the history is back",
  async () => {
    await using hook = await receiver();
    await using redis = await startRedis();
    const state = openRedisState(redis.url);
    const world = newWorld();
    const alerts = instance(state, world, { url: hook.url });
    await eventually("Redis is connected", async () => (await state.shared.read("x").catch(() => null)) !== null);
    await alerts.round(Date.now());
    await redis.kill();
    world.state = outage(Date.now());
    await eventually("the outage is told", async () => {
      await alerts.round(Date.now());
      return hook.sent.length > 0;
    });
    expect(firing(await alerts.read())).toEqual(["store-degraded"]);
    await redis.restart();
    await eventually("it is kept", async () => {
      await alerts.round(Date.now());
      return (await state.shared.readAll("alert:open:").catch(() => new Map())).size === 1;
    });
    expect(JSON.parse((await state.shared.read("alert:open:store-degraded"))!)).toMatchObject({ id: hook.sent[0]!.id });
    expect(hook.sent).toHaveLength(1);
    await alerts.close();
    await state.close();
  },
);

test("texts that cannot be read do not stop detection", async () => {
  const clock = { nowMs: START_MS };
  const state = await stateAt(clock);
  for (const name of ["alert:open:x", "alert:kept:x", "instance:x", "alerts:webhooks", "alerts:known-keys"]) {
    await state.shared.swap(name, { was: undefined, now: "{", keepMs: 3_600_000 });
  }
  const world = newWorld();
  world.nodes = [fullNode(1)];
  const alerts = instance(state, world);
  await alerts.round(clock.nowMs);
  expect(firing(await alerts.read())).toEqual(["store-memory"]);
  await alerts.close();
});
