/** That a thousand rules with traffic all day are read without holding up the checks. */
import { expect, test } from "vitest";
import { createLog } from "../../packages/server/src/log.js";
import { MemoryHistory } from "../../packages/server/src/monitoring/history/memory-history.js";
import { readStats } from "../../packages/server/src/monitoring/read-stats.js";
import { sourcesOf } from "./stats-sources.js";

test("reading a day of a thousand rules leaves turns of the event loop to the checks", async () => {
  const history = await MemoryHistory.open({ dataFolder: undefined, log: createLog("silent") });
  const nowMs = Date.now();
  const counts = { allowed: 1_000, refused: 10, use00: 900, use05: 90, use09: 20 };
  const rules = Array.from({ length: 999 }, (_, i) => ({ series: `rule-${i}`, counts }));
  for (let i = 0; i < 96; i++) await history.add(nowMs - i * 900_000, rules);
  let turns = 0;
  let reading = true;
  const count = (): void => {
    turns++;
    if (reading) setImmediate(count);
  };
  setImmediate(count);
  const view = await readStats(sourcesOf(history), { window: "day" });
  reading = false;
  expect(view.rules).toHaveLength(999);
  expect(view.rules[0]).toMatchObject({
    allowed: 96_000,
    refused: 960,
    utilisation: [86_400, 0, 0, 0, 0, 8_640, 0, 0, 0, 1_920],
  });
  // One for each step of the day, and one for each fifty rules.
  expect(turns).toBeGreaterThan(100);
  await history.close();
});
