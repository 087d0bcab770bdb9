import { expect, test } from "vitest";
import type { ResponseReading } from "./response-reading.js";
import { toldCosts } from "./settle-option.js";

test("a cost may have any name, even one that every object inherits", () => {
  const settle = Object.fromEntries([
    ["__proto__", { header: "X-Cost" }],
    ["constructor", { header: "x-absent" }],
    ["tokens", { header: "x-cost" }],
  ]);
  const headerOf = (name: string): string | undefined => (name === "x-cost" ? "7" : undefined);
  const told = toldCosts(settle, { reading: {} as ResponseReading, headerOf });
  expect(Object.entries(told)).toEqual([
    ["__proto__", 7],
    ["tokens", 7],
  ]);
});
