/** That the Express adapter costs a request no more than express-rate-limit does, by the benchmark that anyone can run. */
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { makeTempFolder, removeTempFolder } from "../harness/leash.js";

const root = fileURLToPath(new URL("../..", import.meta.url));

test("the Express adapter's overhead is at most that of express-rate-limit, each with its own memory store", {
  timeout: 150_000,
}, async () => {
  const folder = makeTempFolder("overhead");
  const file = join(folder, "overhead.json");
  await promisify(execFile)(process.execPath, ["bench/express-overhead.mjs", "--quick", "--json", file], {
    cwd: root,
    timeout: 140_000,
  });
  const { ratios } = JSON.parse(readFileSync(file, "utf8")) as { ratios: Record<string, number> };
  removeTempFolder(folder);
  expect(ratios["defaults against defaults"]).toBeLessThanOrEqual(1);
  expect(ratios["current draft against draft-8"]).toBeLessThanOrEqual(1);
});
