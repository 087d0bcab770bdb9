/**
 * Ten thousand rules and a hundred thousand overrides: they load, and every step of a change leaves turns of the event loop to checks.
 * Turns are counted on a clock of the test's own: each look at it finds it a millisecond later. `npm run bench` prints the longest
 * pauses in milliseconds.
 */
import { setImmediate as nextTurn } from "node:timers/promises";
import { createLimiter, parseRulesInSlices, type Rule } from "sluice";
import { TimeSlice } from "sluice/internal";
import { afterEach, describe, expect, test, vi } from "vitest";
import { startConfiguration } from "../../packages/server/src/configuration/configuration.js";
import { digestOf, readDocument, writeDocument } from "../../packages/server/src/configuration/document-text.js";
import { diffRules } from "../../packages/server/src/configuration/rule-diff.js";
import { makeTempFolder } from "../harness/leash.js";
import { perUser } from "./instance.js";

const quiet = { info: () => undefined, warn: () => undefined, error: () => undefined };
/** A step is at most one rule with its ten overrides or 128 overrides, and a slice ends at the fifth look at the latest. */
const FEWEST_TURNS = 100;

const override = (i: number, limit: number) => ({ match: { user: `u${i}` }, limit });
const ruleFor = (i: number) => perUser(100, { id: `r${i}`, match: { tenant: `t${i}`, path: "/v1/**" } });

const shapes = {
  "ten overrides a rule": (limit: number) =>
    Array.from({ length: 10_000 }, (_, i) => ({
      ...ruleFor(i),
      overrides: Array.from({ length: 10 }, (_, j) => override(j, limit + j)),
    })),
  "all overrides under one rule": (limit: number) =>
    Array.from({ length: 10_000 }, (_, i) => ({
      ...ruleFor(i),
      ...(i === 0 && { overrides: Array.from({ length: 100_000 }, (_, j) => override(j, limit + j)) }),
    })),
} satisfies Record<string, (limit: number) => Rule[]>;

afterEach(() => vi.restoreAllMocks());

/** The turns of the event loop that the work left to others. */
async function turnsOf(work: () => Promise<unknown>): Promise<number> {
  let nowMs = 0;
  const clock = vi.spyOn(performance, "now").mockImplementation(() => {
    nowMs += 0.25;
    return nowMs;
  });
  let isDone = false;
  let turns = 0;
  const working = work().finally(() => {
    isDone = true;
  });
  for (; !isDone; turns++) await nextTurn();
  await working;
  clock.mockRestore();
  return turns;
}

describe.each(Object.entries(shapes))("10 000 rules and 100 000 overrides, %s,", (_, rulesOf) => {
  test("are read, validated, compared and written in many turns each", async () => {
    const old = rulesOf(1);
    const text = await writeDocument(rulesOf(2), new TimeSlice());
    let document: unknown;
    let rules: readonly Rule[] = [];
    const turns = {
      reading: await turnsOf(async () => {
        document = await readDocument(text, new TimeSlice());
      }),
      validating: await turnsOf(async () => {
        rules = await parseRulesInSlices(document);
      }),
      comparing: await turnsOf(async () => {
        expect((await diffRules(old, rules, new TimeSlice())).changed).toBeGreaterThan(0);
      }),
      writing: await turnsOf(async () => {
        expect(digestOf(await writeDocument(rules, new TimeSlice()))).toBe(digestOf(text));
      }),
    };
    console.info(turns);
    for (const [step, count] of Object.entries(turns)) expect(count, step).toBeGreaterThan(FEWEST_TURNS);
  });

  test("load from the database, and come into force on another instance in many turns", async () => {
    const dataFolder = makeTempFolder("data");
    const writer = await startConfiguration({ dataFolder, starterRules: rulesOf(1), log: quiet, pollMs: 60_000 });
    const reader = await startConfiguration({ dataFolder, log: quiet, pollMs: 50 });
    expect(reader.current.rules).toHaveLength(10_000);
    const limiter = createLimiter({ rules: [] });
    let swapTurns = 0;
    const swapped = new Promise<void>((resolve) => {
      reader.onChange(async ({ rules, version }) => {
        swapTurns = await turnsOf(() => limiter.swapRules(rules, version));
        resolve();
      });
    });
    const { version } = await writer.apply({ author: "a", kind: "document", edit: () => ({ rules: rulesOf(2) }) });
    await swapped;
    expect(limiter.rulesVersion).toBe(version);
    expect(swapTurns).toBeGreaterThan(FEWEST_TURNS);
    await Promise.all([writer.close(), reader.close()]);
  });
});
