/** The recipes of docs/combining-rules.md are in force as they are written: each block is read, loaded, and does what its text says. */
import { readFileSync } from "node:fs";
import { createLimiter, type Limiter, type Rule } from "sluice";
import { virtualClock } from "sluice/testing";
import { expect, test } from "vitest";
import { parse } from "yaml";

const page = readFileSync(new URL("../docs/combining-rules.md", import.meta.url), "utf8");
/** The rules of the block under a heading. */
function recipe(heading: string): Rule[] {
  const section = page.split(/^## /m).find((text) => text.startsWith(heading))!;
  return (parse(/```yaml\n(.*?)```/s.exec(section)![1]!) as { rules: Rule[] }).rules;
}

const clock = virtualClock();
const start = (heading: string): Limiter => createLimiter({ clock, rules: recipe(heading) });

test("every recipe of the page is run here", () => {
  const sections = page.split(/^## /m).filter((text) => text.includes("```yaml"));
  const headings = sections.map((text) => text.slice(0, text.indexOf("\n")));
  expect(headings).toEqual(["An API with tiers", "A partner with a strict rate", "A database behind everything"]);
});

test("an API with tiers: normal requests are shed where critical ones pass, and a refusal charges nothing", async () => {
  const limiter = start("An API with tiers");
  const ask = (api_key: string, criticality: string) => limiter.check({ api_key, criticality });
  // The estimate begins at 16 places, of which normal requests get fifteen at most.
  const normal = await Promise.all(Array.from({ length: 24 }, (_, i) => ask(`other-${i}`, "normal")));
  const shed = normal.filter(({ allowed }) => !allowed);
  expect(shed.length).toBeGreaterThanOrEqual(9);
  expect(new Set(shed.map(({ reason }) => reason))).toEqual(new Set(["load"]));
  expect((await ask("k", "critical")).allowed).toBe(true);
  await Promise.all(normal.map(({ lease }) => lease?.release()));

  const places = await Promise.all(Array.from({ length: 30 }, () => ask("k", "critical")));
  const passed = 1 + places.filter(({ allowed }) => allowed).length;
  expect(passed).toBe(20);
  const { checks } = await limiter.peek({ api_key: "k", criticality: "critical" }, { cost: 0 });
  const left = Object.fromEntries(checks.map(({ rule, remaining }) => [rule, remaining]));
  expect(left).toMatchObject({ burst: 50 - passed, sustained: 10_000 - passed, places: 0 });
  await limiter.close();
});

test("a partner with a strict rate: callers wait a tenth of a second each, and nobody until tomorrow", async () => {
  const limiter = start("A partner with a strict rate");
  const delays: number[] = [];
  for (let i = 0; i < 52; i++) {
    const decision = await limiter.check({ partner: "acme" });
    if (!decision.allowed) {
      expect(decision).toMatchObject({ violated: ["partner-rate"], reason: "limit" });
      break;
    }
    delays.push(decision.delayMs);
  }
  expect(delays).toEqual(Array.from({ length: 51 }, (_, i) => 100 * i));
  await limiter.close();
});

test("a database behind everything: a report sheds the least important, and the shared limit stands beside it", async () => {
  const limiter = start("A database behind everything");
  expect(await limiter.check({})).toMatchObject({ allowed: true, rule: "queries", limit: 2_000 });
  await limiter.reportUtilisation(1, { source: "database" });
  let isShed = false;
  // The share that passes shrinks with time.
  for (let second = 0; second < 60 && !isShed; second++) {
    clock.advance(1_000);
    await limiter.reportUtilisation(1, { source: "database" });
    isShed = (await limiter.check({ criticality: "sheddable" })).reason === "load";
  }
  expect(isShed).toBe(true);
  expect((await limiter.check({ criticality: "critical" })).allowed).toBe(true);
  expect(limiter.adaptiveStats()).toMatchObject([{ rule: "queries", min: 200, max: 4_000, target: 0.7 }]);
  await limiter.close();
});
