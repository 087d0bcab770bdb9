/** That monitoring is cheap, by the benchmark that anyone can run. */
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { makeTempFolder, removeTempFolder } from "../harness/leash.js";

const root = fileURLToPath(new URL("../..", import.meta.url));

test("with all of monitoring on, the service makes at least 0.95 of the decisions a second that it makes with all of it off", {
  timeout: 150_000,
}, async () => {
  const folder = makeTempFolder("monitoring-cost");
  const file = join(folder, "cost.json");
  await promisify(execFile)(process.execPath, ["bench/monitoring.mjs", "--quick", "--memory", "--json", file], {
    cwd: root,
    timeout: 140_000,
  });
  const { "memory store, 1000 users": cost } = JSON.parse(readFileSync(file, "utf8"));
  removeTempFolder(folder);
  console.log(`monitoring on / off: ${cost.ratio.toFixed(3)}`);
  expect(cost.ratio).toBeGreaterThanOrEqual(0.95);
});
