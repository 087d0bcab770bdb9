import { expect, test } from "vitest";
import { verdict } from "../../../algorithms/model.js";
import type { Check } from "../../../check.js";
import type { StoreReply, StoreRequest } from "../../store.js";
import type { RedisCalls } from "../calls.js";
import { Blocks } from "./blocks.js";

const block = { key: "{a}1!b", lengthsMs: [60_000] };
const check = (more: Partial<Check> = {}): Check =>
  ({ key: "{a}1", cost: 1, live: -1, plan: { rule: "r", mode: "enforce" }, block, ...more }) as unknown as Check;

/** Decides next to a block that lasts so long; every check at a cost is refused by its counter too if `isFull`. */
async function around(checks: readonly Check[], { leftMs = 0, isFull = false }) {
  const steps: unknown[] = [];
  const charged = new Set<string>();
  const run = async (_name: string, _keys: readonly string[], [step]: readonly unknown[]) => {
    steps.push(step);
    return [1_000_000, leftMs, 60_000];
  };
  const decide = async (request: StoreRequest): Promise<StoreReply> => {
    expect(request.checks.every((asked) => asked.block === undefined)).toBe(true);
    const verdicts = request.checks.map((asked) => {
      const found = verdict(!isFull || asked.cost === 0, 0, isFull ? 10 : 0, 10, isFull ? "limit" : undefined);
      found.charged = request.charge && asked.cost > 0 && (asked.charge === true || found.allowed);
      if (found.charged) charged.add(asked.key);
      return found;
    });
    return { nowMs: 1_000, verdicts, guarantee: "atomic" };
  };
  const request = { checks, charge: true, entryId: "e", id: undefined } as unknown as StoreRequest;
  const { verdicts } = await new Blocks({ run } as unknown as RedisCalls).around(request, 0, decide);
  return { steps, verdicts, charged: [...charged] };
}

test("a key that is blocked is refused, and charged nothing", async () => {
  const { verdicts, charged } = await around([check()], { leftMs: 500 });
  expect(verdicts).toMatchObject([{ allowed: false, reason: "blocked", retryAfterMs: 500, charged: false }]);
  expect(charged).toEqual([]);
});

test("a refusal begins a block", async () => {
  const { steps, verdicts } = await around([check()], { isFull: true });
  expect(verdicts).toMatchObject([{ allowed: false, reason: "limit", retryAfterMs: 60_000 }]);
  expect(steps).toEqual(["see", "begin"]);
});

test("a charge is made although its key is blocked, and begins no block", async () => {
  const one = await around([check({ charge: true })], { leftMs: 500, isFull: true });
  expect(one).toMatchObject({ steps: [], charged: ["{a}1"], verdicts: [{ charged: true, reason: "limit" }] });
  const beside = await around([check(), check({ key: "{a}2", charge: true })], { leftMs: 500 });
  expect(beside.charged).toEqual(["{a}2"]);
  expect(beside.verdicts).toMatchObject([{ allowed: false, reason: "blocked" }, { charged: true }]);
});
