/** That the pages on middlewares and answers say what the code knows. */
import { readFileSync } from "node:fs";
import { createLimiter, type Rule } from "sluice";
import { answerOf } from "sluice/http";
import { virtualClock } from "sluice/testing";
import { expect, test } from "vitest";
import { warnings } from "../../packages/sluice/src/http/client-address.js";
import { GATE_FIELDS, NUMBER_FIELDS } from "../../packages/sluice/src/middleware/gate-options.js";
import { numberFieldsOf } from "../../packages/sluice/src/rules/fields.js";

const page = (name: string): string => readFileSync(new URL(`../../docs/${name}.md`, import.meta.url), "utf8");

test("docs/middleware.md names every option and every warning", () => {
  const text = page("middleware");
  // The numbers of the algorithms have their place in docs/rules.md.
  const numbers: readonly string[] = NUMBER_FIELDS.filter((name) => name !== "limit" && name !== "window");
  const names = [...GATE_FIELDS.filter((name) => !numbers.includes(name)), "onRefused", "hook"];
  expect(names.filter((name) => !text.includes(`\`${name}\``))).toEqual([]);
  expect(Object.keys(warnings).filter((name) => !text.includes(`\`SLUICE_${name}\``))).toEqual([]);
});

test("a rule in one line takes every number that a rule has", () => {
  const ofRules = [...numberFieldsOf.values()].flat();
  expect([...new Set(ofRules)].filter((name) => !(NUMBER_FIELDS as readonly string[]).includes(name))).toEqual([]);
});

test("docs/answers.md shows fields and a body as they are sent", async () => {
  const text = page("answers");
  const clock = virtualClock();
  const rule: Rule = { id: "per-user", key: [], algorithm: "fixed-window", limit: 100, window: "1m" };
  const limiter = createLimiter({ clock, rules: [rule] });
  clock.advance("30s");
  const half = await limiter.check({}, { cost: 50 });
  for (const headers of ["draft-11", "draft-7", "draft-6", "legacy"] as const) {
    const fields = Object.entries(answerOf(half, { headers }).headers).map(([name, value]) => `\`${name}: ${value}\``);
    expect(text).toContain(`| \`${headers}\` | ${fields.join(" · ")} |`);
  }
  await limiter.check({}, { cost: 50 });
  clock.advance("500ms");
  const shown: unknown = JSON.parse(/```json\n([\s\S]*?)```/.exec(text)![1]!);
  expect(answerOf(await limiter.check({})).body).toEqual(shown);
});
