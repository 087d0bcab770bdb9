import { afterAll, beforeAll, expect, test, vi } from "vitest";
import type { Attributes } from "../rules/rule.js";
import { compileRuleBook } from "../rules/rule-book.js";
import { parseRules } from "../rules/validate-rules.js";
import { LoadShedder } from "./load-shedder.js";

// Ranks change with the wall clock every ten minutes: keep them constant here.
beforeAll(() => void vi.useFakeTimers({ toFake: ["Date"], now: 0 }));
afterAll(() => void vi.useRealTimers());

function shedderOf(more: object) {
  const rule = { id: "s", key: [], algorithm: "load-shedding", signal: "inflight", limit: 10, ...more };
  const book = compileRuleBook(parseRules([rule]), 1).shedding!;
  const clock = { nowMs: 0 };
  let count = 0;
  const shedder = new LoadShedder({ now: () => clock.nowMs, random: () => 0.5, newId: () => `p${count++}` });
  const admit = (attributes: Attributes) => shedder.admit([[book, attributes]], { looks: false, holds: true })!;
  return { shedder, clock, admit };
}

/** This many requests arrive each millisecond, each admitted one runs for 20 ms; returns which were admitted, from a moment on. */
function overload(
  { shedder, clock, admit }: ReturnType<typeof shedderOf>,
  options: { lastMs: number; callers: (ms: number) => readonly Attributes[]; fromMs?: number },
): Map<Attributes["user"], number> {
  const admitted = new Map<Attributes["user"], number>();
  const running: { place: string; endsAtMs: number }[] = [];
  for (let ms = 0; ms < options.lastMs; ms++) {
    clock.nowMs++;
    while (running[0] !== undefined && running[0].endsAtMs <= clock.nowMs) shedder.release(running.shift()!.place);
    for (const caller of options.callers(ms)) {
      const { place } = admit(caller);
      if (place === undefined) continue;
      running.push({ place, endsAtMs: clock.nowMs + 20 });
      if (ms >= (options.fromMs ?? 0)) admitted.set(caller.user, (admitted.get(caller.user) ?? 0) + 1);
    }
  }
  for (const { place } of running) shedder.release(place);
  return admitted;
}

const sum = (counts: readonly number[]): number => counts.reduce((total, count) => total + count, 0);
const users = Array.from({ length: 40 }, (_, i) => ({ user: `u${i}` }));
/** Four per millisecond, in a different order each time: the order of arrival must not decide. */
const four = (ms: number) => [0, 1, 2, 3].map((i) => users[(i * 11 + ms * 7 + (ms >> 3)) % users.length]!);

test("under steady overload the same users pass", () => {
  const admitted = overload(shedderOf({ limit: 20 }), { lastMs: 20_000, callers: four, fromMs: 10_000 });
  const counts = [...admitted.values()].sort((a, b) => b - a);
  // One of four fits. By chance, ten of forty users would get a quarter of what was served.
  expect(sum(counts.slice(0, 10)) / sum(counts)).toBeGreaterThan(0.6);
  expect(sum(counts)).toBeGreaterThan(9_000);
});

test("a key that is all the traffic is served up to the limit, and never shut out", () => {
  const everything = Array.from({ length: 10 }, () => ({ user: "one", tenant: "one" }));
  const setup = shedderOf({ limit: 20, fairBy: "tenant" });
  const admitted = overload(setup, { lastMs: 4_000, callers: () => everything, fromMs: 2_000 });
  // Twenty places of 20 ms each serve one a millisecond.
  expect(admitted.get("one")!).toBeGreaterThan(1_200);
  expect(admitted.get("one")!).toBeLessThanOrEqual(2_020);
});

test("when the overload is over, everyone passes at once", () => {
  const setup = shedderOf({ limit: 20 });
  overload(setup, { lastMs: 10_000, callers: four });
  const after = overload(setup, { lastMs: 400, callers: (ms) => (ms % 10 === 0 ? [users[ms / 10]!] : []) });
  expect(sum([...after.values()])).toBe(40);
});

test("requests that are aborted at once take no more of the server than others do", () => {
  const setup = shedderOf({ limit: 20 });
  const { shedder, clock, admit } = setup;
  // The server works 20 ms for each admitted request, whether its client waits or not.
  overload(setup, { lastMs: 1_000, callers: (ms) => (ms % 20 === 0 ? [users[0]!] : []) });
  const workUntilMs: number[] = [];
  let most = 0;
  for (let ms = 0; ms < 2_000; ms++) {
    clock.nowMs++;
    while (workUntilMs[0] !== undefined && workUntilMs[0] <= clock.nowMs) workUntilMs.shift();
    for (const caller of four(ms)) {
      const { place } = admit(caller);
      if (place === undefined) continue;
      workUntilMs.push(clock.nowMs + 20);
      shedder.release(place, "left");
    }
    most = Math.max(most, workUntilMs.length);
  }
  expect(most).toBeLessThanOrEqual(20);
  expect(most).toBeGreaterThan(10);
});

test("a process that was paused for an hour frees what has ended meanwhile", () => {
  const { shedder, clock, admit } = shedderOf({ limit: 4 });
  for (let i = 0; i < 4; i++) expect(admit({}).refused).toBe(false);
  expect(admit({}).refused).toBe(true);
  clock.nowMs += 3_600_000;
  expect(admit({}).refused).toBe(false);
  expect(shedder.stats()[0]!.inFlight).toBe(1);
});

test("a report from another process counts like a local one", () => {
  const { shedder, clock, admit } = shedderOf({ signal: "reported", limit: undefined });
  shedder.report({ value: 0.4, source: "db", key: "", ttlMs: 1_000 });
  admit({});
  expect(shedder.stats()[0]).toMatchObject({ utilisation: 0.4, limit: undefined });
  clock.nowMs = 2_000;
  admit({});
  expect(shedder.stats()[0]).toMatchObject({ utilisation: 0 });
});

test("made-up classes get the default class, and neither they nor made-up tenants leave anything behind", () => {
  const { shedder, admit } = shedderOf({ class: { attribute: "class", default: "normal" }, fairBy: "tenant" });
  const hostile = ["__proto__", "constructor", "CRITICAL", " critical", "critical\0", "critical,critical"];
  for (let i = 0; i < 5_000; i++) admit({ class: hostile[i % hostile.length]!, tenant: `t${i}`, user: "x".repeat(i) });
  const [{ classes }, ...others] = shedder.stats() as [ReturnType<LoadShedder["stats"]>[number]];
  expect(others).toEqual([]);
  expect(classes.map(({ name }) => name)).toEqual(["sheddable", "normal", "important", "critical"]);
  const asked = Object.fromEntries(classes.map(({ name, passed, shed }) => [name, passed + shed]));
  expect(asked).toEqual({ sheddable: 0, normal: 5_000, important: 0, critical: 0 });
});
