import { expect, test } from "vitest";
import { ByteMemo } from "./byte-memo.js";

test("a memo makes each piece once, forgets all when it is full, and never mixes pieces", () => {
  let made = 0;
  const memo = new ByteMemo((text) => {
    made++;
    return text;
  });
  const read = (text: string): void => {
    const found = memo.get(Buffer.from(`<${text}>`), 1, text.length + 1);
    if (found !== text) throw new Error(`expected ${text}, got ${found}`);
  };
  for (let round = 0; round < 3; round++) for (let i = 0; i < 5_000; i++) read(`client ${i}`);
  expect(made).toBe(5_000);
  for (let i = 0; i < 100_000; i++) read(String(i));
  expect(memo.size).toBeLessThanOrEqual(2 ** 15);
  read("x".repeat(1_000));
});
