import { expect, test } from "vitest";
import { ServerClocks } from "./server-clocks.js";

test("a node's clock is known from its last reply on, and each node has its own", () => {
  const clocks = new ServerClocks();
  expect(clocks.atLeastMs("a")).toBe(0);
  clocks.showed("a", 1_794_804_076_699);
  clocks.showed("b", 5_000);
  expect(clocks.atLeastMs("a")).toBeGreaterThanOrEqual(1_794_804_076_699);
  expect(clocks.atLeastMs("b")).toBeLessThan(1_794_804_076_699);
  const before = clocks.atLeastMs("b");
  const until = performance.now() + 3;
  while (performance.now() < until);
  expect(clocks.atLeastMs("b")).toBeGreaterThanOrEqual(before + 2);
});

test("a clock that was set back is taken as in its last reply", () => {
  const clocks = new ServerClocks();
  clocks.showed("a", 9_000_000);
  clocks.showed("a", 1_000);
  expect(clocks.atLeastMs("a")).toBeLessThan(9_000_000);
});

test("only a bounded number of nodes is remembered", () => {
  const clocks = new ServerClocks();
  for (let n = 0; n <= 1_024; n++) clocks.showed(`node ${n}`, 1_000);
  expect([clocks.atLeastMs("node 0"), clocks.atLeastMs("node 1024") >= 1_000]).toEqual([0, true]);
});
