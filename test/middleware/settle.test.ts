/** Every adapter, over real HTTP: a request holds an estimate, and is charged what its response tells once that is over. */
import { setTimeout as sleep } from "node:timers/promises";
import { createLimiter, type Limiter, type Rule } from "sluice";
import type { EndedResponse } from "sluice/express";
import { virtualClock } from "sluice/testing";
import { describe, expect, test, vi } from "vitest";
import { frameworks } from "./apps/frameworks.js";
import { honoApp } from "./apps/hono-app.js";
import { Stage } from "./apps/served-app.js";

const LIMIT = 10_000;
const rule = (estimate: Partial<Rule["estimate"]> = {}): Rule => ({
  id: "units",
  key: [],
  algorithm: "fixed-window",
  limit: LIMIT,
  window: "1d",
  cost: { attribute: "units" },
  estimate: { default: 100, ...estimate },
});

async function used(limiter: Limiter): Promise<number> {
  const { remaining, debt = 0 } = await limiter.peek({}, { cost: 0 });
  return LIMIT - remaining! + debt;
}

/** A settlement is not awaited by anyone; it is there within a turn or two of the event loop. */
async function becomes(limiter: Limiter, expected: number): Promise<void> {
  await vi.waitFor(async () => expect(await used(limiter)).toBe(expected), { timeout: 10_000, interval: 5 });
}

/** No settlement comes: as many turns of the event loop as no settlement takes. */
async function stays(limiter: Limiter, expected: number): Promise<void> {
  await sleep(50);
  expect(await used(limiter)).toBe(expected);
}

const bodyCost = { units: { body: "/usage/total" } } as const;

describe.each(frameworks)("$name", { concurrent: true }, ({ serve }) => {
  test("a header field of the response tells the cost; the client's own header does not", async () => {
    const limiter = createLimiter({ rules: [rule()] });
    await using app = await serve({ limiter, settle: { units: { header: "X-Cost" } } });
    await (await fetch(`${app.url}/told`, { headers: { "x-cost": "1" } })).text();
    await becomes(limiter, 7);
    // A response that tells nothing is charged what was held, whatever the request says.
    await (await fetch(`${app.url}/?x-cost=0`, { headers: { "x-cost": "0" } })).text();
    await stays(limiter, 107);
  });

  test("a number in the response's JSON tells the cost", async () => {
    const limiter = createLimiter({ rules: [rule()] });
    await using app = await serve({ limiter, settle: bodyCost });
    expect(await (await fetch(`${app.url}/told`)).json()).toMatchObject({ text: "twelve" });
    await becomes(limiter, 12);
  });

  test("events tell running totals: the largest counts, and on abort what was seen", async () => {
    const limiter = createLimiter({ rules: [rule()] });
    await using app = await serve({ limiter, settle: bodyCost });
    const aborting = new AbortController();
    const cutOff = await fetch(`${app.url}/events`, { signal: aborting.signal });
    await cutOff.body!.getReader().read();
    aborting.abort();
    await becomes(limiter, 5);
    app.stage.finish();
    expect(await (await fetch(`${app.url}/events`)).text()).toContain('"total":9');
    await becomes(limiter, 5 + 9);
  });

  test("a function tells the cost once the response is over: status, bytes, whether it is whole, and header fields", async () => {
    const limiter = createLimiter({ rules: [rule()] });
    const ends: (Omit<EndedResponse, "header"> & { cost: string | undefined })[] = [];
    const settle = async (_request: unknown, { header, ...end }: EndedResponse) => {
      ends.push({ ...end, cost: header("X-Cost") });
      return { units: end.bytes };
    };
    await using app = await serve({ limiter, settle });
    const text = await (await fetch(`${app.url}/told`)).text();
    await becomes(limiter, text.length);
    const aborting = new AbortController();
    const cutOff = await fetch(`${app.url}/stream`, { signal: aborting.signal });
    await cutOff.body!.getReader().read();
    aborting.abort();
    await becomes(limiter, text.length + "first ".length);
    expect(ends).toEqual([
      { status: 200, bytes: text.length, isWhole: true, cost: "7" },
      { status: 200, bytes: 6, isWhole: false, cost: undefined },
    ]);
    app.stage.finish();
  });

  test("the bytes of the body are the cost, of HEAD none", async () => {
    const limiter = createLimiter({ rules: [rule()] });
    await using app = await serve({ limiter, settle: { units: "bytes" } });
    const text = await (await fetch(`${app.url}/told`)).text();
    await becomes(limiter, text.length);
    await fetch(`${app.url}/told`, { method: "HEAD" });
    await becomes(limiter, text.length);
  });

  test("a failed response that tells no cost gives back what was held", async () => {
    const limiter = createLimiter({ rules: [rule()] });
    await using app = await serve({ limiter, settle: bodyCost });
    expect((await fetch(`${app.url}/fail`)).status).toBe(500);
    await becomes(limiter, 0);
  });

  test("a client that leaves before the response tells its cost is charged what was held", async () => {
    const limiter = createLimiter({ rules: [rule()] });
    await using app = await serve({ limiter, settle: bodyCost });
    const aborting = new AbortController();
    const cutOff = await fetch(`${app.url}/stream`, { signal: aborting.signal });
    await cutOff.body!.getReader().read();
    aborting.abort();
    await stays(limiter, 100);
    app.stage.finish();
  });

  test("a response that outlives the term of its reservation is settled, and one that uses more holds more", async () => {
    const clock = virtualClock();
    const limiter = createLimiter({ clock, rules: [rule({ default: 1, ttl: "1s" })] });
    await using app = await serve({ limiter, settle: bodyCost });
    const response = await fetch(`${app.url}/events`);
    const body = response.body!.getReader();
    await body.read();
    // Five were used and one was held: a quarter more is held, and at least 64.
    await becomes(limiter, 5 + 64);
    clock.advance(900);
    // Timers run in order, however late: the term, of which a third is 333 ms, has begun anew by then.
    await sleep(700);
    clock.advance(900);
    app.stage.finish();
    while (!(await body.read()).done);
    await becomes(limiter, 9);
  });

  test("under overrun: stop the response is broken off where the limit has no room for it", async () => {
    const stopping: Rule = { ...rule({ default: 1, overrun: "stop" }), limit: 3 };
    const limiter = createLimiter({ rules: [stopping] });
    await using app = await serve({ limiter, settle: bodyCost });
    const body = (await fetch(`${app.url}/events`)).body!.getReader();
    await body.read();
    await expect(body.read()).rejects.toThrow();
    // What it has used is charged all the same.
    await vi.waitFor(async () => expect((await limiter.peek({}, { cost: 0 })).debt).toBe(2), { timeout: 10_000 });
  });

  test("what skipSuccessful gives back is not settled", async () => {
    const limiter = createLimiter({ rules: [rule()] });
    await using app = await serve({ limiter, settle: bodyCost, skipSuccessful: true });
    await (await fetch(`${app.url}/told`)).text();
    await becomes(limiter, 0);
    await stays(limiter, 0);
  });
});

describe("Hono without Node's response", () => {
  test("costs are read from the body on its way, and on abort what was seen", async () => {
    const limiter = createLimiter({ rules: [rule()] });
    const stage = new Stage();
    const app = honoApp({ limiter, settle: bodyCost }, stage);
    const cutOff = (await app.request("/events")).body!.getReader();
    await cutOff.read();
    await cutOff.cancel();
    await becomes(limiter, 5);
    stage.finish();
    await (await app.request("/told")).text();
    await becomes(limiter, 5 + 12);
  });
});

test.each([
  [{}, "settle: expected a table of costs, or a function, got {}"],
  ["bytes", 'settle: expected a table of costs, or a function, got "bytes"'],
  [{ units: "body" }, "settle.units: expected"],
  [{ units: { body: "usage" } }, "settle.units: expected"],
  [{ units: { header: "a b" } }, "settle.units: expected"],
  [{ units: { header: "a", body: "/a" } }, "settle.units: expected"],
])("settle: %j is refused when the middleware is made", async (settle, message) => {
  await expect(async () => frameworks[0]!.serve({ limit: 1, window: "1m", settle: settle as never })).rejects.toThrow(
    message,
  );
});
