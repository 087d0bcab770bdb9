/** What the Express adapter costs a request, in bytes. `npm run bench` prints the time beside it. */
import { expect, test } from "vitest";
import { countBytes } from "../harness/count-bytes.js";

const pairs = [
  ["sluice, draft-11 (its default)", "express-rate-limit, legacy (its default)"],
  ["sluice, draft-11 (its default)", "express-rate-limit, draft-8"],
  ["sluice, draft-7", "express-rate-limit, draft-7"],
  ["sluice, legacy", "express-rate-limit, legacy (its default)"],
  ["sluice, no fields", "express-rate-limit, no fields"],
] as const;

test("the Express adapter allocates fewer bytes a request than express-rate-limit, each with its own memory store", async () => {
  const bytes = await countBytes("express-allocations.mjs");
  console.log(`bytes a request: ${JSON.stringify(bytes)}`);
  for (const [ours, theirs] of pairs) {
    expect(bytes[ours]! - bytes.bare!, `${ours} against ${theirs}`).toBeLessThan(bytes[theirs]! - bytes.bare!);
  }
});
