import { runAtOnce } from "sluice/internal";
import { expect, test } from "vitest";
import { type Domain, parseDomains } from "./descriptor-config.js";
import { readingLines, writeLines } from "./limit-lines.js";

function domainsOf(text: string): Domain[] {
  const outcome = parseDomains(text);
  if ("mistakes" in outcome) throw new Error(outcome.mistakes.join("\n"));
  return outcome.domains;
}

test("domains survive the round trip: depths, flags, limits, metadata, any text", () => {
  const domains = domainsOf(`
domain: "a\\nb"
descriptors:
  - key: k
    value: "ü\\n\\u2028"
    shadow_mode: true
    descriptors:
      - key: l
        value: x*
        share_threshold: true
        quota_mode: true
        descriptors:
          - { key: m, detailed_metric: true, value_to_metric: true }
          - { key: n, rate_limit: { unit: day, requests_per_unit: 3, name: n, replaces: [{ name: o }], count_refused: false } }
      - { key: p, rate_limit: { requests_per_unit: 5, window: 30s, algorithm: rolling-window, negative_hits: true } }
  - { key: q, rate_limit: { unlimited: true }, metadata: { a: { b: [1, two] } } }
---
domain: empty
`);
  expect(runAtOnce(readingLines(writeLines(domains)))).toStrictEqual(domains);
});

test("many descriptors become many chunks, and reading them yields in between", () => {
  const [limited] = domainsOf("domain: d\ndescriptors: [{ key: k, rate_limit: { unit: day } }]")[0]!.descriptors;
  const domains = [
    { domain: "d", descriptors: Array.from({ length: 10_000 }, (_, i) => ({ ...limited!, value: `v${i}` })) },
  ];
  const chunks = writeLines(domains);
  expect(chunks.length).toBeGreaterThan(10);
  const work = readingLines(chunks);
  let pauses = 0;
  for (;;) {
    const step = work.next();
    if (step.done) {
      expect(step.value).toStrictEqual(domains);
      break;
    }
    pauses++;
  }
  // At most 128 limits per slice.
  expect(pauses).toBeGreaterThanOrEqual(Math.floor(10_000 / 128));
});
