/** The bound of instances that are cut off one after another is needed: the one of an outage for all does not hold for them. */
import { expect, test } from "vitest";
import type { Scenario } from "./plan.js";
import { oneByOne } from "./scenarios/one-by-one.js";
import { runWorld } from "./world.js";

const SEEDS = [1, 2, 3, 4, 5, 6, 7, 8];

test("cut off one after another, instances admit more than the limit locally, and no more than the bound that is stated", async () => {
  const naive: Scenario = {
    ...oneByOne,
    plan: (random) => {
      const plan = oneByOne.plan(random);
      return { ...plan, localBound: (limit) => Math.max(limit, plan.instances) };
    },
  };
  const found = { stated: 0, naive: 0 };
  for (const seed of SEEDS) {
    if ((await runWorld({ scenario: oneByOne, seed })).violation !== undefined) found.stated++;
    const { violation } = await runWorld({ scenario: naive, seed });
    if (violation?.startsWith("all instances admitted")) found.naive++;
  }
  expect(found.stated).toBe(0);
  expect(found.naive).toBeGreaterThan(0);
});
