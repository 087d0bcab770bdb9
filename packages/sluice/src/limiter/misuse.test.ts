/** Calls as plain JavaScript may make them: each mistake is an `invalid-request` that names it, never a TypeError from inside. */
import { afterAll, expect, test } from "vitest";
import { createLimiter, type Decision } from "../index.js";

const limiter = createLimiter({ rules: [{ id: "r", key: ["user"], algorithm: "gcra", limit: 5, window: "1m" }] });
afterAll(() => limiter.close());
const user = { user: "ann" };
// What the types forbid.
const untyped = limiter as unknown as Record<string, (...args: unknown[]) => unknown>;

const withOptions = ["check", "checkNow", "acquire", "charge", "peek", "explain", "giveBack"];
test.each(withOptions.flatMap((call) => [null, 5, "x", true, 7n].map((options) => [call, options] as const)))(
  "%s refuses %s in the place of its options",
  async (call, options) => {
    const made = (async () => await untyped[call]!.call(limiter, user, options))();
    await expect(made).rejects.toMatchObject({
      code: "invalid-request",
      message: expect.stringMatching(/^options: expected an object such as \{ cost: 2 \}, got (null|5|"x"|true|7n)$/),
    });
  },
);

test("a cost in the place of the options charges nothing", async () => {
  await expect(untyped.check!.call(limiter, { user: "bob" }, 3)).rejects.toThrow("options: expected an object");
  expect((await limiter.peek({ user: "bob" }, { cost: 0 })).remaining).toBe(5);
});

test.each(["checkAll", "giveBackAll"])("%s refuses parts that are no list", async (call) => {
  for (const parts of [undefined, null, 5, user]) {
    await expect(untyped[call]!.call(limiter, parts)).rejects.toMatchObject({
      code: "invalid-request",
      message: expect.stringMatching(/^parts: expected a list of \{ attributes, cost \}, got /),
    });
  }
});

test("a copy of a decision is not refunded, and the message names what is", async () => {
  const decision = await limiter.check({ user: "cyd" });
  const copies = [{ ...decision }, JSON.parse(JSON.stringify(decision)), undefined, null, 5];
  for (const copy of copies as Decision[]) {
    await expect(limiter.refund(copy)).rejects.toMatchObject({
      code: "invalid-request",
      message: expect.stringMatching(/^decision: expected a decision as the limiter made it, or the id of its request/),
    });
  }
  expect(await limiter.refund(decision)).toBe(true);
});

test("a utilisation without its source is refused, and each value is shown as it came", () => {
  const call = (...args: unknown[]): unknown => untyped.reportUtilisation!.apply(limiter, args);
  expect(() => call(0.5)).toThrow('options: expected an object such as { source: "db-1" }, got nothing');
  expect(() => call(0.5, {})).toThrow("source: expected a name of 1 to 256 characters, got nothing");
  expect(() => call(0.5, { source: 5 })).toThrow("source: expected a name of 1 to 256 characters, got 5");
  expect(() => call(0.5, { source: "db", ttlMs: 0 })).toThrow("ttl: expected 1 ms to 300 s, got 0 ms");
});

test("an id of any kind is refused by name", async () => {
  for (const id of [5, 7n, "", null]) {
    await expect(limiter.check(user, { id: id as string })).rejects.toThrow("id: expected a string of 1 to 1024");
  }
});
