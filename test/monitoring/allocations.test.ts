/** What monitoring costs a decision, in bytes. `npm run bench` prints the decisions a second with monitoring on and off. */
import { expect, test } from "vitest";
import { countBytes } from "../harness/count-bytes.js";

test("monitoring allocates at most 600 bytes a decision of a known user", async () => {
  const { on, off } = await countBytes("monitoring-allocations.mjs");
  console.log(`bytes a decision: ${on} with monitoring, ${off} without`);
  expect(on! - off!).toBeLessThan(600);
});
