import { expect, test } from "vitest";
import { InstanceCount, PATIENCE_MS } from "./instance-count.js";

/** One whose heartbeats are never answered: the test passes in what it hears. */
const silent = () => new InstanceCount(() => new Promise(() => {}));

test("nothing is known before the store was reached", () => {
  expect(silent().known).toBeUndefined();
});

test("a rising count is believed at once, a falling one after it has held", () => {
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

test("after an outage the old count holds until the others had time to be counted again", () => {
  const count = silent();
  count.hear(4, 0);
  count.hear(1, 60_000);
  expect(count.known).toBe(4);
  count.hear(2, 62_000);
  expect(count.known).toBe(4);
  count.hear(3, 60_001 + PATIENCE_MS);
  expect(count.known).toBe(3);
});
