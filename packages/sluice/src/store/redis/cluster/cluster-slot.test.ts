import { expect, test } from "vitest";
import { clusterSlot } from "./cluster-slot.js";

// As answered by `CLUSTER KEYSLOT` of Redis 7.0.15.
test.each([
  ["foo", 12_182],
  ["123456789", 12_739],
  ["sluice:1:{user=42}:per-user:z", "user=42"],
  ["sluice:1:{user=42}!order-7", "user=42"],
  ["{}whole", 10_188],
  ["user=42", 15_256],
])("the slot of %s", (key, slot) => {
  expect(clusterSlot(key)).toBe(typeof slot === "string" ? clusterSlot(slot) : slot);
});
