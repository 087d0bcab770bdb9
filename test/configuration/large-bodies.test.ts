/** Large bodies of rules are read on a thread of their own. On the built package: a thread needs something to start. */
import { expect, test } from "vitest";
import { type ReadBody, readBodyInWorker } from "../../packages/server/dist/configuration/rule-worker.js";

const rule = (i: number) => ({ id: `r${i}`, key: ["user"], algorithm: "fixed-window", limit: 5, window: "1m" });
const read = (body: unknown, id?: string): Promise<ReadBody> =>
  readBodyInWorker({ body: Buffer.from(typeof body === "string" ? body : JSON.stringify(body)), id });
const documentIn = (body: ReadBody): unknown =>
  "document" in body ? JSON.parse(Buffer.from(body.document).toString()) : body;

test("a document is parsed and judged apart, and comes back as what is read in slices", async () => {
  const rules = Array.from({ length: 2_000 }, (_, i) => rule(i));
  const body = await read({ version: 7, rules });
  expect(body).toMatchObject({ ranInWorker: true, version: 7 });
  expect(documentIn(body)).toEqual({ rules });
  expect(documentIn(await read(rules))).toEqual({ rules });
});

test("one rule takes its id from the path, and a mistake in it is told", async () => {
  const { id: _, ...unnamed } = rule(1);
  expect(documentIn(await read(unnamed, "mine"))).toEqual({ rules: [{ id: "mine", ...unnamed }] });
  expect(await read({ ...unnamed, limit: -1 }, "mine")).toMatchObject({
    ranInWorker: true,
    mistakes: [{ path: "rules[0].limit" }],
  });
});

test("mistakes come back in a bounded number, and what is no JSON is said to be none", async () => {
  const fields = Object.fromEntries(Array.from({ length: 50_000 }, (_, i) => [`f${i}`, i]));
  expect(await read({ rules: [{ ...rule(1), ...fields }] })).toMatchObject({
    mistakes: [{ path: "rules[0]", message: "expected at most 100 fields, got 50005" }],
  });
  expect(await read('{"rules": [')).toMatchObject({ ranInWorker: true, unreadable: expect.stringContaining("JSON") });
});

test("bodies that wait for their turn are bounded", async () => {
  const outcomes = await Promise.allSettled(Array.from({ length: 20 }, () => read([rule(1)])));
  expect(outcomes.filter(({ status }) => status === "fulfilled")).toHaveLength(16);
  for (const outcome of outcomes)
    if (outcome.status === "rejected") expect(outcome.reason).toMatchObject({ code: "too-busy" });
});
