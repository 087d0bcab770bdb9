import { expect, test } from "vitest";
import { InstanceCount, PATIENCE_MS } from "./instance-count.js";

/** One whose beats never come back: what it hears is told by hand. */
const silent = () => new InstanceCount(() => new Promise(() => {}));

test("nothing is known before the store was reached", () => {
  expect(silent().known).toBeUndefined();
});

test("a number that grows is believed at once, one that falls after it has held", () => {
  const count = silent();
  count.hear(2, 0);
  count.hear(3, 1_000);
  expect(count.known).toBe(3);
  count.hear(1, 2_000);
  count.hear(1, 1_000 + PATIENCE_MS);
  expect(count.known).toBe(3);
  count.hear(1, 1_001 + PATIENCE_MS);
  expect(count.known).toBe(1);
});

test("after an outage the old number holds until the others had time to be heard of again", () => {
  const count = silent();
  count.hear(4, 0);
  count.hear(1, 60_000);
  expect(count.known).toBe(4);
  count.hear(2, 62_000);
  expect(count.known).toBe(4);
  count.hear(3, 60_001 + PATIENCE_MS);
  expect(count.known).toBe(3);
});
