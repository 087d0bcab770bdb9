/**
 * Every adapter, with its real framework over real HTTP, through one table of cases: what clients are answered.
 * What happens after the answer (leases, refunds) is in `after-the-response.test.ts`.
 */
import { createLimiter, NEVER_MS, type Rule } from "sluice";
import { redisStore } from "sluice/redis";
import { virtualClock } from "sluice/testing";
import { describe, expect, test } from "vitest";
import { freePort } from "../harness/free-port.js";
import { frameworks } from "./apps/frameworks.js";
import { rateLimitHeaders, readDictionary, readList } from "./read-fields.js";

const perIp: Rule = { id: "per-ip", key: ["ip"], algorithm: "rolling-window", limit: 2, window: "1m" };
const daily: Rule = { id: "daily", key: ["ip"], algorithm: "fixed-window", limit: 1000, window: "1d" };

/** A limiter whose time stands still, so that every second in a header is known. */
function still(...rules: Rule[]) {
  const clock = virtualClock();
  return { clock, limiter: createLimiter({ clock, rules }) };
}

describe.each(frameworks)("$name", ({ serve, legacyReset }) => {
  test("one line limits by client address, and allowed responses carry the fields", async () => {
    await using app = await serve({ limit: 2, window: "1m" });
    const response = await fetch(app.url);
    expect(response.status).toBe(200);
    expect(await response.text()).toBe("ok");
    expect(rateLimitHeaders(response.headers)).toEqual({
      "ratelimit-policy": '"2-per-1m";q=2;w=60',
      ratelimit: '"2-per-1m";r=1;t=60',
    });
    expect(app.stage.decisions[0]).toMatchObject({ allowed: true, remaining: 1 });
  });

  test("a refused request gets 429, Retry-After, the fields and a problem body", async () => {
    const { clock, limiter } = still(perIp);
    await using app = await serve({ limiter });
    await fetch(app.url);
    clock.advance(30_500);
    await fetch(app.url);
    const refused = await fetch(app.url);
    expect(refused.status).toBe(429);
    expect(rateLimitHeaders(refused.headers)).toEqual({
      "ratelimit-policy": '"per-ip";q=2;w=60',
      ratelimit: '"per-ip";r=0;t=30',
      "retry-after": "30",
    });
    expect(refused.headers.get("content-type")).toMatch(/^application\/problem\+json\b/);
    expect(await refused.json()).toEqual({
      type: "https://iana.org/assignments/http-problem-types#quota-exceeded",
      title: "Request cannot be satisfied as assigned quota has been exceeded",
      status: 429,
      detail: 'The quota of "per-ip" (2 per 1m) is used up. Try again in 30 s.',
      "violated-policies": ["per-ip"],
      retryAfterMs: 29_500,
    });
    clock.advance(29_500);
    expect((await fetch(app.url)).status).toBe(200);
  });

  test("fields are spelled as each draft has it, and a Structured Fields parser reads them back", async () => {
    const { clock, limiter } = still(perIp, daily);
    const epoch = Math.ceil((clock.now() + 60_000) / 1000);
    const ask = async (headers: "draft-11" | "draft-7" | "draft-6" | "legacy" | false | ["draft-11", "legacy"]) => {
      await limiter.reset("per-ip", { ip: "127.0.0.1" });
      await using app = await serve({ limiter, headers });
      return rateLimitHeaders((await fetch(app.url)).headers);
    };
    const draft11 = await ask("draft-11");
    expect(draft11).toEqual({
      "ratelimit-policy": '"per-ip";q=2;w=60, "daily";q=1000;w=86400',
      ratelimit: '"per-ip";r=1;t=60',
    });
    expect(readList(draft11["ratelimit-policy"]!)).toEqual([
      { name: "per-ip", parameters: { q: 2, w: 60 } },
      { name: "daily", parameters: { q: 1000, w: 86_400 } },
    ]);
    expect(readList(draft11.ratelimit!)).toEqual([{ name: "per-ip", parameters: { r: 1, t: 60 } }]);

    const draft7 = await ask("draft-7");
    expect(draft7).toEqual({
      "ratelimit-policy": "2;w=60, 1000;w=86400",
      ratelimit: "limit=2, remaining=1, reset=60",
    });
    expect(readDictionary(draft7.ratelimit!)).toEqual({ limit: 2, remaining: 1, reset: 60 });
    expect(readList(draft7["ratelimit-policy"]!)[0]).toEqual({ name: 2, parameters: { w: 60 } });

    expect(await ask("draft-6")).toEqual({
      "ratelimit-policy": "2;w=60, 1000;w=86400",
      "ratelimit-limit": "2",
      "ratelimit-remaining": "1",
      "ratelimit-reset": "60",
    });
    const legacy = {
      "x-ratelimit-limit": "2",
      "x-ratelimit-remaining": "1",
      "x-ratelimit-reset": legacyReset === "epoch" ? String(epoch) : "60",
    };
    expect(await ask("legacy")).toEqual(legacy);
    expect(await ask(["draft-11", "legacy"])).toEqual({ ...draft11, ...legacy });
    expect(await ask(false)).toEqual({});
  });

  test("of several rules, each policy is listed and Retry-After is that of the refusing one", async () => {
    const burst: Rule = { id: "burst", key: ["ip"], algorithm: "token-bucket", limit: 2, window: "10s" };
    const { limiter } = still(daily, burst, { ...perIp, limit: 50 });
    await using app = await serve({ limiter });
    await fetch(app.url);
    await fetch(app.url);
    const refused = await fetch(app.url);
    expect(refused.status).toBe(429);
    expect(rateLimitHeaders(refused.headers)).toEqual({
      "ratelimit-policy": '"daily";q=1000;w=86400, "burst";q=2;w=10, "per-ip";q=50;w=60',
      ratelimit: '"burst";r=0;t=5',
      "retry-after": "5",
    });
    expect(await refused.json()).toMatchObject({ "violated-policies": ["burst"], retryAfterMs: 5000 });
  });

  test("shadow rules decide nothing and are told to nobody", async () => {
    const { limiter } = still({ ...perIp, mode: "shadow", limit: 1 }, daily);
    await using app = await serve({ limiter });
    await fetch(app.url);
    const response = await fetch(app.url);
    expect(response.status).toBe(200);
    expect(response.headers.get("ratelimit-policy")).toBe('"daily";q=1000;w=86400');
  });

  test("a request that no rule applies to carries no fields", async () => {
    const { limiter } = still({ ...perIp, match: { path: "/elsewhere" } });
    await using app = await serve({ limiter });
    const response = await fetch(app.url);
    expect(response.status).toBe(200);
    expect(rateLimitHeaders(response.headers)).toEqual({});
  });

  test("rules see method and path, and the attributes that the application adds", async () => {
    const { limiter } = still(
      { ...perIp, id: "by-path", match: { path: "/nested/**", method: "GET" } },
      { ...perIp, id: "by-user", key: ["user"], limit: 1 },
    );
    await using app = await serve({ limiter, attributes: async (header) => ({ user: header("x-user") }) });
    const policies = async (path: string, headers: Record<string, string> = {}) =>
      readList((await fetch(app.url + path, { headers })).headers.get("ratelimit-policy")).map(({ name }) => name);
    expect(await policies("/")).toEqual([]);
    expect(await policies("/nested/leaf?page=2")).toEqual(["by-path"]);
    expect(await policies("/", { "x-user": "ann" })).toEqual(["by-user"]);
    expect((await fetch(app.url, { headers: { "x-user": "ann" } })).status).toBe(429);
    expect((await fetch(app.url, { headers: { "x-user": "bob" } })).status).toBe(200);
  });

  test("a cost is a number or comes from the request, and one that no wait helps names no time", async () => {
    const { limiter } = still({ ...perIp, limit: 10 });
    await using app = await serve({ limiter, cost: (header) => Number(header("x-cost") ?? 1) });
    const ask = (cost: number) => fetch(app.url, { headers: { "x-cost": String(cost) } });
    expect((await ask(7)).headers.get("ratelimit")).toBe('"per-ip";r=3;t=60');
    expect((await ask(4)).status).toBe(429);
    expect((await ask(3)).headers.get("ratelimit")).toBe('"per-ip";r=0;t=60');
    const hopeless = await ask(11);
    expect(hopeless.status).toBe(429);
    expect(hopeless.headers.get("retry-after")).toBeNull();
    expect(await hopeless.json()).toMatchObject({ retryAfterMs: NEVER_MS, "violated-policies": ["per-ip"] });

    await using fixed = await serve({ limiter: still({ ...perIp, limit: 10 }).limiter, cost: 4 });
    expect((await fetch(fixed.url)).headers.get("ratelimit")).toBe('"per-ip";r=6;t=60');
  });

  test("skipped requests are neither counted nor marked", async () => {
    const { limiter } = still({ ...perIp, limit: 1 });
    await using app = await serve({ limiter, skip: (header) => header("x-internal") === "yes" });
    for (let i = 0; i < 3; i++) {
      const response = await fetch(app.url, { headers: { "x-internal": "yes" } });
      expect(response.status).toBe(200);
      expect(rateLimitHeaders(response.headers)).toEqual({});
    }
    expect((await fetch(app.url)).status).toBe(200);
    expect((await fetch(app.url)).status).toBe(429);
  });

  test("HEAD and OPTIONS count like any request, and HEAD is refused without a body", async () => {
    const { limiter } = still({ ...perIp, limit: 2 });
    await using app = await serve({ limiter });
    const head = await fetch(app.url, { method: "HEAD" });
    expect(head.status).toBe(200);
    expect(head.headers.get("ratelimit")).toBe('"per-ip";r=1;t=60');
    expect((await fetch(app.url, { method: "OPTIONS" })).headers.get("ratelimit")).toBe('"per-ip";r=0;t=60');
    const refused = await fetch(app.url, { method: "HEAD" });
    expect(refused.status).toBe(429);
    expect(refused.headers.get("retry-after")).toBe("60");
    expect(await refused.text()).toBe("");
    expect((await fetch(app.url, { method: "OPTIONS" })).status).toBe(429);
  });

  test("a request that passes the same limits in mounted routers is counted once", async () => {
    const { limiter } = still({ ...perIp, limit: 3 });
    await using app = await serve({ limiter });
    const response = await fetch(`${app.url}/nested/leaf`);
    expect(response.status).toBe(200);
    expect(rateLimitHeaders(response.headers)).toEqual({
      "ratelimit-policy": '"per-ip";q=3;w=60',
      ratelimit: '"per-ip";r=2;t=60',
    });
    expect((await limiter.peek({ ip: "127.0.0.1" }, { cost: 0 })).remaining).toBe(2);
  });

  test("an application can answer refusals itself, with the status and the fields in place", async () => {
    const { limiter } = still({ ...perIp, limit: 1 });
    await using app = await serve({ limiter, ownRefusal: true });
    await fetch(app.url);
    const refused = await fetch(app.url);
    expect(refused.status).toBe(429);
    expect(await refused.text()).toBe("refused by hand");
    expect(refused.headers.get("content-type")).not.toContain("problem");
    expect(rateLimitHeaders(refused.headers)).toEqual({
      "ratelimit-policy": '"per-ip";q=1;w=60',
      ratelimit: '"per-ip";r=0;t=60',
      "retry-after": "60",
    });
  });

  test("with the store away, rules answer by their policy: 200 under allow, 503 under deny", async () => {
    const away = () => redisStore(`redis://127.0.0.1:${closedPort}`);
    const closedPort = await freePort();
    await using lenient = await serve({ rules: [{ ...perIp, onStoreFailure: "allow" }], store: away() });
    const allowed = await fetch(lenient.url);
    expect(allowed.status).toBe(200);
    // What remains is not known, so it is not told.
    expect(rateLimitHeaders(allowed.headers)).toEqual({ "ratelimit-policy": '"per-ip";q=2;w=60' });

    await using strict = await serve({ rules: [{ ...perIp, onStoreFailure: "deny" }], store: away() });
    const denied = await fetch(strict.url);
    expect(denied.status).toBe(503);
    expect(rateLimitHeaders(denied.headers)).toEqual({ "ratelimit-policy": '"per-ip";q=2;w=60', "retry-after": "1" });
    expect(await denied.json()).toMatchObject({
      type: "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity",
      status: 503,
      retryAfterMs: 1000,
    });

    await using local = await serve({ rules: [{ ...perIp, onStoreFailure: "local" }], store: away() });
    const statuses = [await fetch(local.url), await fetch(local.url), await fetch(local.url)].map(
      ({ status }) => status,
    );
    expect(statuses).toEqual([200, 200, 429]);
  });

  test("X-Forwarded-For counts only from trusted proxies, read from the right", async () => {
    const ask = async (url: string, forwarded: string) =>
      (await fetch(url, { headers: { "x-forwarded-for": forwarded } })).status;
    await using closed = await serve({ limiter: still({ ...perIp, limit: 1 }).limiter });
    expect(await ask(closed.url, "203.0.113.1")).toBe(200);
    expect(await ask(closed.url, "203.0.113.2")).toBe(429);

    await using open = await serve({ limiter: still({ ...perIp, limit: 1 }).limiter, trustProxy: "loopback" });
    expect(await ask(open.url, "203.0.113.1")).toBe(200);
    expect(await ask(open.url, "203.0.113.2")).toBe(200);
    // What stands left of the address that our proxy saw was written by the client.
    expect(await ask(open.url, "198.51.100.1, 203.0.113.1")).toBe(429);
    expect(await ask(open.url, "198.51.100.2, ::ffff:203.0.113.1")).toBe(429);
    // One /56 is one client.
    expect(await ask(open.url, "2001:db8:0:1200::1")).toBe(200);
    expect(await ask(open.url, "2001:db8:0:12ff:ffff::2")).toBe(429);
    expect(await ask(open.url, "2001:db8:0:1300::1")).toBe(200);
  });

  test("an application's function that throws is an error of the application, and the next request is served", async () => {
    await using app = await serve({
      limiter: still(perIp).limiter,
      attributes: (header) => {
        if (header("x-broken") !== undefined) throw new Error("no such user");
        return {};
      },
    });
    expect((await fetch(app.url, { headers: { "x-broken": "yes" } })).status).toBe(500);
    expect((await fetch(app.url)).status).toBe(200);
  });
});
