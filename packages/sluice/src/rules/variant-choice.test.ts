import { expect, test } from "vitest";
import { VariantChoice } from "./variant-choice.js";

test("keys keep their variant across releases", () => {
  const choice = new VariantChoice("api-per-user", [50, 30, 20]);
  const chosen = Array.from({ length: 24 }, (_, i) => choice.choose(`user=${i}`)).join("");
  // Changing these digits moves live keys between variants and spoils every running experiment.
  expect(chosen).toBe("110102010000011010010201");
});

test("shares follow the weights", () => {
  const choice = new VariantChoice("api-per-user", [50, 30, 20]);
  const counts = [0, 0, 0];
  for (let i = 0; i < 100_000; i++) counts[choice.choose(`user=${i}`)]!++;
  expect(counts[0]! / 100_000).toBeCloseTo(0.5, 1.9);
  expect(counts[1]! / 100_000).toBeCloseTo(0.3, 1.9);
  expect(counts[2]! / 100_000).toBeCloseTo(0.2, 1.9);
});

test("a variant of weight 0 gets no key, whatever its position", () => {
  for (const weights of [
    [0, 1, 0],
    [0, 0, 3],
    [0.1, 0, 0],
  ]) {
    const choice = new VariantChoice("r", weights);
    for (let i = 0; i < 1000; i++) expect(weights[choice.choose(`user=${i}`)]).toBeGreaterThan(0);
  }
});

test("two rules split the same keys differently", () => {
  const one = new VariantChoice("one", [1, 1]);
  const other = new VariantChoice("other", [1, 1]);
  let same = 0;
  for (let i = 0; i < 10_000; i++) if (one.choose(`user=${i}`) === other.choose(`user=${i}`)) same++;
  expect(same / 10_000).toBeCloseTo(0.5, 1.5);
});
