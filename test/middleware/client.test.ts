/** The caller's side, against real HTTP: a server under real limits, and a stand-in for the service. */
import { createServer, type IncomingMessage, type RequestListener } from "node:http";
import express from "express";
import { createLimiter, type Rule } from "sluice";
import { createClient, createFetch, ServiceError } from "sluice/client";
import { rateLimit } from "sluice/express";
import { describe, expect, test } from "vitest";
import { listening, Stage } from "./apps/served-app.js";

const serve = (listener: RequestListener) => listening(createServer(listener), new Stage());

/** An Express application under these rules, and the statuses that it has answered. */
async function limited(headers: "draft-11" | "draft-7" | "draft-6" | "legacy" | false, ...rules: Rule[]) {
  const statuses: number[] = [];
  const app = express();
  app.use((_req, res, next) => {
    res.on("finish", () => statuses.push(res.statusCode));
    next();
  });
  app.use(rateLimit({ limiter: createLimiter({ rules }), headers }));
  app.use((_req, res) => void res.send("ok"));
  const served = await serve(app);
  return { url: served.url, statuses, [Symbol.asyncDispose]: () => served[Symbol.asyncDispose]() };
}

const fivePerSecond: Rule = { id: "five", key: [], algorithm: "rolling-window", limit: 5, window: "1s" };

describe("a fetch that respects limits", () => {
  test("a caller that sends one after the other stays below the quota and is never refused", async () => {
    await using server = await limited("draft-11", fivePerSecond);
    const paced = createFetch();
    for (let i = 0; i < 12; i++) expect((await paced(server.url)).status).toBe(200);
    expect(server.statuses).toEqual(Array(12).fill(200));
  });

  test.each(["draft-11", "draft-7", "draft-6", "legacy", false] as const)(
    "a burst of callers under %s is served in the end, however often some were refused",
    async (headers) => {
      await using server = await limited(headers, fivePerSecond);
      const paced = createFetch({ maxRetries: 20 });
      const responses = await Promise.all(Array.from({ length: 12 }, () => paced(server.url)));
      expect(responses.map(({ status }) => status)).toEqual(Array(12).fill(200));
    },
  );

  test.each([Number.POSITIVE_INFINITY, 90 * 86_400_000])(
    "a deadline of %d ms is no deadline of now",
    async (deadlineMs) => {
      const told: unknown[] = [];
      await using server = await serve((req, res) => {
        told.push(req.headers["x-deadline-ms"]);
        setTimeout(() => res.end("ok"), 20);
      });
      const patient = createFetch({ deadlineMs, deadlineHeader: "x-deadline-ms" });
      expect((await patient(server.url)).status).toBe(200);
      expect(told).toEqual([Number.isFinite(deadlineMs) ? expect.stringMatching(/^77\d{8}$/) : undefined]);
    },
  );

  test("waits are never shorter than the server says", async () => {
    const arrivedMs: number[] = [];
    await using server = await serve((_req, res) => {
      arrivedMs.push(performance.now());
      if (arrivedMs.length === 1) res.writeHead(429, { "retry-after": "1" });
      res.end();
    });
    const response = await createFetch()(server.url);
    expect(response.status).toBe(200);
    expect(arrivedMs[1]! - arrivedMs[0]!).toBeGreaterThanOrEqual(995);
  });

  test("a wait beyond the deadline is not begun: the refusal is returned as it came", async () => {
    await using server = await serve((_req, res) => void res.writeHead(429, { "retry-after": "60" }).end("later"));
    const fetching = createFetch({ deadlineMs: 2_000 })(server.url);
    const first = await Promise.race([fetching, new Promise((resolve) => setTimeout(resolve, 30_000, "it waited"))]);
    expect(first).toMatchObject({ status: 429 });
    expect(await (await fetching).text()).toBe("later");
  });

  test("a request that would exceed the quota past the deadline is not sent", async () => {
    await using server = await limited("draft-11", { ...fivePerSecond, limit: 1, window: "1h" });
    const paced = createFetch({ deadlineMs: 500 });
    await paced(server.url);
    await expect(paced(server.url)).rejects.toMatchObject({ name: "TimeoutError" });
    expect(server.statuses).toEqual([200]);
  });

  test("a server that does not answer is given up at the deadline", async () => {
    await using server = await serve(() => {});
    await expect(createFetch({ deadlineMs: 100 })(server.url)).rejects.toMatchObject({ name: "TimeoutError" });
  });

  test("the caller's signal ends a wait", async () => {
    await using server = await serve((_req, res) => void res.writeHead(429, { "retry-after": "30" }).end());
    const controller = new AbortController();
    const call = createFetch()(server.url, { signal: controller.signal });
    setTimeout(() => controller.abort(new Error("never mind")), 50);
    await expect(call).rejects.toThrow("never mind");
  });

  test("a refusal that no wait helps is returned at once", async () => {
    await using server = await limited("draft-11", { ...fivePerSecond, cost: 9 });
    expect((await createFetch()(server.url)).status).toBe(429);
    expect(server.statuses).toEqual([429]);
  });

  test("bodies are sent again, streams are not, and a 503 is repeated only where that is safe", async () => {
    const seen: string[] = [];
    let status = 429;
    await using server = await serve(async (req, res) => {
      seen.push(`${req.method} ${await textOf(req)}`);
      res.writeHead(seen.length === 1 ? status : 200, { "retry-after": "0" }).end();
    });
    const calls = createFetch();
    expect((await calls(server.url, { method: "POST", body: "hello" })).status).toBe(200);
    expect(seen.splice(0)).toEqual(["POST hello", "POST hello"]);
    expect((await calls(new Request(server.url, { method: "POST", body: "again" }))).status).toBe(200);
    expect(seen.splice(0)).toEqual(["POST again", "POST again"]);
    const stream = new Blob(["once"]).stream();
    expect((await calls(server.url, { method: "POST", body: stream, duplex: "half" } as RequestInit)).status).toBe(429);
    expect(seen.splice(0)).toEqual(["POST once"]);
    status = 503;
    expect((await calls(server.url, { method: "POST", body: "x" })).status).toBe(503);
    seen.splice(0);
    expect((await calls(server.url)).status).toBe(200);
  });

  test("against a server that sheds everything of a class, most requests of that class are not sent", async () => {
    let received = 0;
    await using server = await serve((req, res) => {
      received++;
      const isShed = req.headers["x-criticality"] === "sheddable";
      res.writeHead(isShed ? 503 : 200, isShed ? { "retry-after": "1" } : {}).end();
    });
    const calls = createFetch({ criticality: "sheddable", maxRetries: 0 });
    let dropped = 0;
    for (let i = 0; i < 200; i++) {
      const response = await calls(server.url);
      expect(response.status).toBe(503);
      if (response.headers.get("x-sluice-throttled") === "client") dropped++;
    }
    expect(received).toBe(200 - dropped);
    expect(dropped).toBeGreaterThan(120);
    const critical = { headers: { "x-criticality": "critical" } };
    for (let i = 0; i < 20; i++) expect((await calls(server.url, critical)).status).toBe(200);
  });

  test("retries after a 503 stay within the budget", async () => {
    let received = 0;
    await using server = await serve((_req, res) => {
      received++;
      res.writeHead(503, { "retry-after": "0" }).end();
    });
    const calls = createFetch({ throttle: false, jitter: 0 });
    for (let i = 0; i < 20; i++) expect((await calls(server.url)).status).toBe(503);
    // Ten that are saved up, and a tenth of the requests.
    expect(received).toBeLessThanOrEqual(20 + 12);
  });

  test("class and deadline are passed on beside the caller's own headers", async () => {
    const seen: Record<string, unknown>[] = [];
    await using server = await serve((req, res) => {
      seen.push(req.headers);
      res.end();
    });
    const calls = createFetch({ criticality: "important", deadlineHeader: "x-deadline-ms", deadlineMs: 5_000 });
    await calls(server.url, { headers: { "x-own": "1" } });
    await calls(new Request(server.url, { headers: { "x-own": "2", "x-criticality": "critical" } }));
    expect(seen[0]).toMatchObject({ "x-own": "1", "x-criticality": "important" });
    expect(seen[1]).toMatchObject({ "x-own": "2", "x-criticality": "critical" });
    expect(Number(seen[0]!["x-deadline-ms"])).toBeGreaterThan(0);
    expect(Number(seen[0]!["x-deadline-ms"])).toBeLessThanOrEqual(5_000);
  });
});

describe("the client of the service", () => {
  const decision = {
    allowed: true,
    retryAfterMs: 0,
    resetAfterMs: 0,
    violated: [],
    rulesVersion: 1,
    guarantee: "atomic",
    checks: [],
  };
  const answers: Record<string, (body: { requests?: unknown[]; lease?: string }) => unknown> = {
    "/v1/check": () => ({ ...decision, lease: { id: "L1", expiresAfterMs: 30_000 } }),
    "/v1/check/batch": ({ requests }) => ({ decisions: requests!.map((_, i) => ({ ...decision, rulesVersion: i })) }),
    "/v1/peek": () => decision,
    "/v1/explain": () => ({ decision, rules: [{ rule: "a", matched: false, why: "mode is off" }] }),
    "/v1/release": ({ lease }) => ({ released: lease === "L1" }),
    "/v1/renew": ({ lease }) => ({ renewed: lease === "L1", expiresAfterMs: 30_000 }),
    "/v1/refund": () => ({ refunded: true }),
  };

  async function standIn(prefix = "") {
    const seen: { call: string; body: unknown; authorization: string | undefined }[] = [];
    const served = await serve(async (req, res) => {
      const body = JSON.parse(await textOf(req));
      seen.push({ call: `${req.method} ${req.url}`, body, authorization: req.headers.authorization });
      const answer = answers[req.url!.slice(prefix.length)];
      res.setHeader("content-type", "application/json");
      if (answer !== undefined) res.end(JSON.stringify(answer(body)));
      else res.writeHead(404).end(JSON.stringify({ code: "not-found", detail: "no such call" }));
    });
    return { url: served.url, seen, [Symbol.asyncDispose]: () => served[Symbol.asyncDispose]() };
  }

  test("every call is the POST of the contract, with the token", async () => {
    await using service = await standIn();
    const sluice = createClient({ server: service.url, token: "secret" });
    const made = await sluice.check({ user: "42" }, { cost: 2, id: "r-1" });
    expect(made).toMatchObject({ allowed: true, lease: { id: "L1", expiresAfterMs: 30_000 } });
    expect(await made.lease!.renew()).toBe(true);
    expect(await made.lease!.release("done")).toBe(true);
    expect(await sluice.release("L0")).toBe(false);
    expect(await sluice.renew("L0")).toBe(false);
    expect(await sluice.peek({ user: "42" })).toEqual(decision);
    expect((await sluice.explain({ user: "42" })).rules[0]!.why).toBe("mode is off");
    expect(await sluice.refund("r-1")).toBe(true);
    expect(service.seen.map(({ call }) => call)).toEqual(
      ["check", "renew", "release", "release", "renew", "peek", "explain", "refund"].map((name) => `POST /v1/${name}`),
    );
    expect(service.seen.map(({ body }) => body).slice(0, 3)).toEqual([
      { attributes: { user: "42" }, cost: 2, id: "r-1" },
      { lease: "L1" },
      { lease: "L1", outcome: "done" },
    ]);
    expect(service.seen.every(({ authorization }) => authorization === "Bearer secret")).toBe(true);
  });

  test("batches keep their order, and those too large for one call are split", async () => {
    await using service = await standIn();
    const requests = Array.from({ length: 1_500 }, (_, i) => ({ attributes: { user: String(i) } }));
    const decisions = await createClient({ server: service.url }).checkBatch(requests);
    expect(decisions.length).toBe(1_500);
    expect(service.seen.map(({ body }) => (body as { requests: unknown[] }).requests.length)).toEqual([1_000, 500]);
    expect(await createClient({ server: service.url }).checkBatch([])).toEqual([]);
  });

  test("a lease frees itself at the end of its block", async () => {
    await using service = await standIn();
    {
      const { lease } = await createClient({ server: service.url }).check({});
      await using _held = lease!;
    }
    expect(service.seen.at(-1)!.call).toBe("POST /v1/release");
  });

  test("a service below a path is reached there", async () => {
    await using service = await standIn("/limits");
    await createClient({ server: `${service.url}/limits` }).peek({});
    expect(service.seen[0]!.call).toBe("POST /limits/v1/peek");
  });

  test("an error of the service is thrown with its code, one of a stranger as unreadable", async () => {
    await using service = await standIn("/nothing-here");
    const refusal = await createClient({ server: service.url })
      .check({})
      .catch((error: unknown) => error);
    expect(refusal).toBeInstanceOf(ServiceError);
    expect(refusal).toMatchObject({ code: "not-found", status: 404, message: "no such call" });
    await using stranger = await serve((_req, res) => void res.writeHead(502).end("<html>"));
    await expect(createClient({ server: stranger.url }).check({})).rejects.toMatchObject({
      code: "unreadable-answer",
      status: 502,
    });
  });

  test("a service that does not answer is given up after the timeout", async () => {
    await using service = await serve(() => {});
    await expect(createClient({ server: service.url, timeoutMs: 50 }).check({})).rejects.toMatchObject({
      name: "TimeoutError",
    });
  });
});

async function textOf(request: IncomingMessage): Promise<string> {
  let text = "";
  for await (const chunk of request) text += String(chunk);
  return text;
}
