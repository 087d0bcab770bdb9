/** The alert policy at work, with a virtual clock: thresholds, tuned detectors, silences, routes, acknowledgements, reminders, renewed texts. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, expect, test } from "vitest";
import type { PolicyInForce, Silence } from "../../packages/server/src/configuration/alert-policies.js";
import { type AlertPolicy, emptyPolicy } from "../../packages/server/src/configuration/alert-policy.js";
import { createLog } from "../../packages/server/src/log.js";
import { Alerts, type AlertsOptions } from "../../packages/server/src/monitoring/alerts/alerts.js";
import type { SeriesCounts } from "../../packages/server/src/monitoring/history/history.js";
import type { StoreNode } from "../../packages/server/src/monitoring/views/store.js";
import { eventually } from "../configuration/instance.js";
import { openMemoryState } from "./kept-state.js";

const MINUTE = 60_000;
const START_MS = Date.UTC(2026, 10, 16, 9);
const closers: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

interface Sent {
  readonly path: string;
  readonly state: string;
  readonly event?: string;
  readonly summary: string;
  readonly condition?: string;
  readonly rule?: string;
}

/** Receivers are told apart by their path. */
async function receiver() {
  const sent: Sent[] = [];
  const server = createServer(async (request, response) => {
    let body = "";
    for await (const chunk of request) body += chunk;
    sent.push({ path: request.url!, ...(JSON.parse(body) as { alert: Omit<Sent, "path"> }).alert });
    response.writeHead(204).end();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  closers.push(() => server.close().closeAllConnections());
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { sent, url, told: () => sent.map(({ path, state, event = "" }) => `${path} ${state} ${event}`.trim()) };
}

/** One instance whose clock, traffic, store and policy are the test's. */
async function watch(hook: { url: string }, ids: readonly string[] = ["ops"], more: Partial<AlertsOptions> = {}) {
  const clock = { nowMs: START_MS };
  const state = await openMemoryState({ dataFolder: undefined, log: createLog("silent"), now: () => clock.nowMs });
  const world = { nodes: [] as StoreNode[], policy: {} as Partial<AlertPolicy>, silences: [] as Silence[], version: 1 };
  const receivers = ids.map((id) => ({ id, type: "webhook" as const }));
  const secrets = Object.fromEntries(ids.map((id) => [id, { url: `${hook.url}/${id}` }]));
  const alerts = new Alerts({
    ...state,
    log: createLog("silent"),
    instance: "one",
    webhooks: [],
    allowPrivate: true,
    pauseMs: 5,
    heartbeat: {
      report: () => ({ instance: "one", atMs: clock.nowMs, store: "up", rulesLoaded: true }) as never,
      readAll: async () => [],
    },
    storeHealth: { sinceMs: undefined, failingSinceMs: undefined, error: undefined },
    nodes: async () => world.nodes,
    topKeys: async () => ({ maxError: 0, keys: [] }),
    tagsOf: (rule) => (rule === "login" ? ["payments"] : []),
    tagged: (tag) => (tag === "payments" ? ["login"] : []),
    policy: async (): Promise<PolicyInForce> => ({
      version: world.version,
      policy: { ...emptyPolicy, receivers, ...world.policy },
      secrets,
      silences: world.silences,
    }),
    ...more,
  });
  closers.push(
    () => state.close(),
    () => alerts.close(),
  );
  return {
    alerts,
    world,
    clock,
    async round(ms: number) {
      clock.nowMs += ms;
      await alerts.round(clock.nowMs);
    },
    /** Minutes of traffic, each followed by a round. */
    async minutes(count: number, counts: readonly SeriesCounts[]) {
      for (let i = 0; i < count; i++) {
        const startMs = Math.floor(clock.nowMs / MINUTE) * MINUTE;
        await state.history.add(startMs, counts);
        clock.nowMs = startMs + MINUTE + 6_000;
        await alerts.round(clock.nowMs);
      }
    },
  };
}

const traffic = (allowed: number, refused: number, rule = "login"): SeriesCounts[] => [
  { series: "total", counts: { allowed, refused } },
  { series: rule, counts: { allowed, refused } },
];
const full = (share: number): StoreNode => ({
  address: "127.0.0.1:6379",
  role: "leader",
  state: "up",
  usedBytes: share * 2 ** 27,
  maxBytes: 2 ** 27,
  maxMemoryPolicy: "noeviction",
  evictedKeys: 0,
});
const silence = (endsAtMs: number, match: Silence["match"] = {}): Silence => ({
  id: "s1",
  match,
  reason: "deploy",
  author: "ada",
  createdAtMs: START_MS,
  endsAtMs,
});
const firing = async (alerts: Alerts) => (await alerts.read()).alerts.filter(({ state }) => state === "firing");

test("a threshold fires after its minutes, is renewed while it lasts, and ends; another rule's traffic does not count", async () => {
  const hook = await receiver();
  const { alerts, world, minutes } = await watch(hook);
  world.policy = {
    conditions: [
      { id: "refusals", rule: "login", metric: "refused-share", above: 0.2, for: "3m", severity: "critical" },
    ],
  };
  await minutes(3, traffic(90, 10));
  await minutes(2, traffic(60, 40));
  expect(await firing(alerts)).toEqual([]);
  await minutes(1, traffic(60, 40));
  expect(await firing(alerts)).toMatchObject([
    {
      kind: "threshold",
      condition: "refusals",
      rule: "login",
      severity: "critical",
      summary: "refusals: 40 % of the checks are refused (rule login), above 20 % for 3 min",
    },
  ]);
  await minutes(1, traffic(30, 70));
  expect((await firing(alerts))[0]!.summary).toContain("70 % of the checks");
  await minutes(3, [...traffic(100, 0), { series: "other", counts: { allowed: 0, refused: 500 } }]);
  expect(await firing(alerts)).toEqual([]);
  await eventually("both were sent", () => hook.sent.length === 2);
  expect(hook.told()).toEqual(["/ops firing", "/ops resolved"]);
});

test("a threshold by tag names each of its rules, and one below asks for traffic where there is none", async () => {
  const hook = await receiver();
  const { alerts, world, minutes } = await watch(hook);
  world.policy = {
    conditions: [
      { id: "silent", tag: "payments", metric: "checks", below: 5, for: "2m" },
      { id: "many", metric: "checks", above: 50, for: "1m" },
    ],
  };
  await minutes(5, traffic(100, 0, "other"));
  expect((await firing(alerts)).map(({ condition, rule }) => `${condition} ${rule}`).sort()).toEqual([
    "many undefined",
    "silent login",
  ]);
});

test("a detector that is off stays quiet, and a tuned one has the severity that was set", async () => {
  const hook = await receiver();
  const { alerts, world, round } = await watch(hook);
  world.nodes = [full(0.95)];
  world.policy = { detectors: [{ kind: "store-memory", mode: "off" }] };
  await round(5_000);
  expect(await firing(alerts)).toEqual([]);
  world.policy = { detectors: [{ kind: "store-memory", severity: "critical" }] };
  await round(5_000);
  expect(await firing(alerts)).toMatchObject([{ kind: "store-memory", severity: "critical" }]);
});

test("a silence holds the message back and shows so; when it ends the alert is sent, if it still fires", async () => {
  const hook = await receiver();
  const { alerts, world, clock, round } = await watch(hook);
  world.silences = [silence(Date.now() + 3_600_000, { kind: "store-memory" })];
  world.nodes = [full(0.95)];
  for (let i = 0; i < 3; i++) await round(5_000);
  expect(await firing(alerts)).toMatchObject([{ kind: "store-memory", silencedUntilMs: expect.any(Number) }]);
  expect(hook.sent).toEqual([]);
  world.silences = [silence(clock.nowMs - 1)];
  await round(5_000);
  await eventually("it is sent", () => hook.sent.length === 1);
  world.nodes = [full(0.2)];
  for (let i = 0; i < 5; i++) await round(5_000);
  await eventually("and its end", () => hook.sent.length === 2);
  expect(hook.told()).toEqual(["/ops firing", "/ops resolved"]);
});

test("an alert that began and ended under a silence sends nothing; one that was sent before is resolved under it", async () => {
  const hook = await receiver();
  const { world, round } = await watch(hook);
  const forever = [silence(Date.now() + 10 ** 10)];
  world.silences = forever;
  world.nodes = [full(0.95)];
  await round(5_000);
  world.nodes = [full(0.2)];
  for (let i = 0; i < 5; i++) await round(5_000);
  world.silences = [];
  world.nodes = [full(0.95)];
  await round(5_000);
  await eventually("the second is sent", () => hook.sent.length === 1);
  world.silences = forever;
  world.nodes = [full(0.2)];
  for (let i = 0; i < 5; i++) await round(5_000);
  await eventually("and resolved", () => hook.sent.length === 2);
  expect(hook.told()).toEqual(["/ops firing", "/ops resolved"]);
});

test("routes choose the receivers by severity, rule and tag; an alert that none fits goes nowhere", async () => {
  const hook = await receiver();
  const { world, minutes } = await watch(hook, ["pager", "chat", "team"]);
  world.policy = {
    conditions: [
      { id: "hot", rule: "login", metric: "checks", above: 50, for: "1m", severity: "critical" },
      { id: "warm", rule: "other", metric: "checks", above: 50, for: "1m" },
    ],
    routes: [
      { match: { severity: "critical" }, receivers: ["pager", "chat"] },
      { match: { tag: "payments" }, receivers: ["team", "chat"] },
    ],
  };
  // A minute is known once the instance has looked for as long.
  await minutes(3, [...traffic(100, 0), { series: "other", counts: { allowed: 100 } }]);
  await eventually("all have it", () => hook.sent.length === 3);
  await minutes(1, [...traffic(100, 0), { series: "other", counts: { allowed: 100 } }]);
  expect(hook.sent.map(({ path, condition }) => `${path} ${condition}`).sort()).toEqual([
    "/chat hot",
    "/pager hot",
    "/team hot",
  ]);
});

test("a firing alert is repeated with its newest text until somebody acknowledges it, and all are told who", async () => {
  const hook = await receiver();
  const { alerts, world, round, clock } = await watch(hook);
  world.policy = { routes: [{ receivers: ["ops"], repeat: "10m" }] };
  world.nodes = [full(0.91)];
  await round(5_000);
  await eventually("it is sent", () => hook.sent.length === 1);
  world.nodes = [full(0.95)];
  await round(9 * MINUTE);
  expect(hook.sent).toHaveLength(1);
  await round(2 * MINUTE);
  await eventually("it is repeated", () => hook.sent.length === 2);
  expect(hook.sent[1]).toMatchObject({ event: "reminder", summary: expect.stringContaining("95 %") });
  await round(5_000);
  expect(hook.sent).toHaveLength(2);
  const [open] = await firing(alerts);
  const given = { by: "ada", atMs: clock.nowMs, note: "on it" };
  expect(await alerts.acknowledge(open!.id, given)).toMatchObject({ id: open!.id, acknowledged: given });
  expect(await alerts.acknowledge("nobody", given)).toBeUndefined();
  expect(await firing(alerts)).toMatchObject([{ acknowledged: { by: "ada", note: "on it" } }]);
  await round(5_000);
  await eventually("the others are told", () => hook.sent.length === 3);
  await round(60 * MINUTE);
  await round(5_000);
  expect(hook.told()).toEqual(["/ops firing", "/ops firing reminder", "/ops firing acknowledged"]);
});

test("a receiver's test message arrives or tells why not, and is no alert", async () => {
  const hook = await receiver();
  const { alerts } = await watch(hook, ["ops"]);
  expect(await alerts.test("ops", "ada")).toEqual({ delivered: true });
  expect(hook.sent).toMatchObject([{ event: "test", summary: expect.stringContaining("ada") }]);
  expect(await alerts.test("nobody", "ada")).toBeUndefined();
  expect((await alerts.read()).alerts).toEqual([]);
  const away = await watch({ url: "http://127.0.0.1:9" });
  expect(await away.alerts.test("ops", "ada")).toEqual({ delivered: false, error: "ECONNREFUSED" });
});
