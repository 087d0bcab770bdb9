/** A replay's memory is that of its keys and windows, whatever the length of the log. Bytes, not times. */
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";

const program = fileURLToPath(new URL("../../bench/log-memory.mjs", import.meta.url));

/** Tables of V8 grow by doubling; lines that stayed reachable would be 40 MB. */
const MOST_GROWTH = 4 * 2 ** 20;

test("ten times as many lines of the same clients leave no more reachable bytes behind", async () => {
  const { stdout } = await promisify(execFile)(process.execPath, ["--expose-gc", program]);
  const found = JSON.parse(stdout) as Record<string, { first: number; last: number }>;
  expect(Object.keys(found)).toEqual(["combined", "caddy"]);
  for (const { first, last } of Object.values(found)) expect(last - first).toBeLessThan(MOST_GROWTH);
});
