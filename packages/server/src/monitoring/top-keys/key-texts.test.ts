/** Periods that end while requests arrive, and while the shared state is unreachable: no count is lost, and none is reported twice. */
import type { DecidedRequest, Decision } from "sluice";
import { expect, test } from "vitest";
import { MemorySharedState } from "../../instance/memory-shared-state.js";
import type { SharedState, Swap } from "../../instance/shared-state.js";
import { createLog } from "../../log.js";
import { parseSummary } from "./key-summary.js";
import { KeyTexts } from "./key-texts.js";
import { TopKeys } from "./top-keys.js";

const QUARTER_MS = 15 * 60_000;
const DAY_MS = 86_400_000;

/** A shared state that can be unreachable, and calls a listener before each write. */
class Moody implements SharedState {
  readonly #inner: SharedState;
  isAway = false;
  beforeWrite = (): void => {};

  constructor(inner: SharedState) {
    this.#inner = inner;
  }

  read(name: string): Promise<string | undefined> {
    return this.#inner.read(name);
  }

  readAll(prefix: string): Promise<ReadonlyMap<string, string>> {
    return this.#inner.readAll(prefix);
  }

  async swap(name: string, change: Swap): Promise<boolean> {
    this.beforeWrite();
    if (this.isAway) throw new Error("away");
    return this.#inner.swap(name, change);
  }

  close(): Promise<void> {
    return this.#inner.close();
  }
}

function addTo(found: Record<number, number>, period: number, checks: number): void {
  found[period] = (found[period] ?? 0) + checks;
}

async function setUp(nowMs: number) {
  const shared = new Moody(await MemorySharedState.open({ dataFolder: undefined, log: createLog("silent") }));
  const topKeys = new TopKeys(() => ["user"]);
  const logged: { atMs: number }[] = [];
  const refusals = { quarter: () => [...logged] as never[], endQuarter: () => void logged.splice(0) };
  const texts = new KeyTexts({ topKeys, refusals, shared, instance: "one" }, nowMs);
  const add = (): void => {
    const check = { rule: "r", allowed: true, limit: 10, remaining: 5, mode: "enforce" };
    topKeys.add(
      { checks: [check] } as unknown as Decision,
      { checks: [{ key: "r:ann:r" }] } as unknown as DecidedRequest,
    );
    logged.push({ atMs: nowMs });
  };
  /** The number of checks in each period's text, by the period's start relative to the test's. */
  const told = async (kind: "quarter" | "hour"): Promise<Record<number, number>> => {
    const prefix = `top-keys:${kind}:`;
    const found: Record<number, number> = {};
    for (const [name, text] of await shared.readAll(prefix))
      addTo(found, (Number.parseInt(name.slice(prefix.length), 10) - DAY_MS) / QUARTER_MS, parseSummary(text)!.checks);
    return found;
  };
  const refusalsTold = async (): Promise<number[]> =>
    [...(await shared.readAll("refusals:")).values()].map((text) => (JSON.parse(text) as unknown[]).length);
  return { shared, texts, add, told, refusalsTold };
}

test("counts made while an ended quarter is being written belong to the next one", async () => {
  const { shared, texts, add, told, refusalsTold } = await setUp(DAY_MS);
  add();
  add();
  shared.beforeWrite = add;
  await texts.turn(DAY_MS + QUARTER_MS);
  shared.beforeWrite = () => {};
  await texts.writeQuarter();
  await texts.writeHour();
  // Two before the quarter ended; one for each of its two writes.
  expect(await told("quarter")).toEqual({ 0: 2, 1: 2 });
  expect(await told("hour")).toEqual({ 0: 4 });
  expect((await refusalsTold()).sort()).toEqual([2, 2]);
});

test("an hour ends with its last quarter", async () => {
  const { texts, add, told } = await setUp(DAY_MS);
  for (let quarter = 0; quarter < 5; quarter++) {
    await texts.turn(DAY_MS + quarter * QUARTER_MS);
    add();
  }
  await texts.writeQuarter();
  await texts.writeHour();
  expect(await told("quarter")).toEqual({ 0: 1, 1: 1, 2: 1, 3: 1, 4: 1 });
  expect(await told("hour")).toEqual({ 0: 4, 4: 1 });
});

test("quarters that ended while the shared state was unreachable are written later, each under its own time", async () => {
  const { shared, texts, add, told, refusalsTold } = await setUp(DAY_MS);
  add();
  shared.isAway = true;
  await expect(texts.turn(DAY_MS + QUARTER_MS)).rejects.toThrow("away");
  add();
  add();
  await expect(texts.turn(DAY_MS + 2 * QUARTER_MS)).rejects.toThrow("away");
  add();
  shared.isAway = false;
  await texts.turn(DAY_MS + 2 * QUARTER_MS + 1_000);
  await texts.writeQuarter();
  expect(await told("quarter")).toEqual({ 0: 1, 1: 2, 2: 1 });
  expect((await refusalsTold()).sort()).toEqual([1, 1, 2]);
});

test("in a long outage, only the periods that readers still use are kept", async () => {
  const { shared, texts, add, told } = await setUp(DAY_MS);
  shared.isAway = true;
  for (let quarter = 1; quarter <= 100; quarter++) {
    add();
    await expect(texts.turn(DAY_MS + quarter * QUARTER_MS)).rejects.toThrow("away");
  }
  shared.isAway = false;
  await texts.turn(DAY_MS + 100 * QUARTER_MS);
  const kept = Object.keys(await told("quarter")).map(Number);
  expect(kept).toEqual([92, 93, 94, 95, 96, 97, 98, 99]);
  expect(await told("hour")).toEqual({ 92: 4, 96: 4 });
});

test("a clock that steps back across the end of a period loses no counts", async () => {
  const { texts, add, told, refusalsTold } = await setUp(DAY_MS);
  for (const atMs of [0, 4 * QUARTER_MS, 4 * QUARTER_MS - 20, 4 * QUARTER_MS, 4 * QUARTER_MS - 10, 4 * QUARTER_MS]) {
    await texts.turn(DAY_MS + atMs);
    add();
    await texts.writeQuarter();
    await texts.writeHour();
  }
  expect(await told("quarter")).toEqual({ 0: 1, 3: 2, 4: 3 });
  expect(await told("hour")).toEqual({ 0: 3, 4: 3 });
  expect(await refusalsTold()).toEqual(Array(6).fill(1));
});
