import { expect, test } from "vitest";
import { ByteMemo } from "./byte-memo.js";

test("a memo converts each piece once, clears itself when full, and never mixes up pieces", () => {
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

test("pieces with equal hashes are distinguished, and beyond a few of them no more are remembered", () => {
  const memo = new ByteMemo((text) => ({ text }));
  const alike = piecesOfOneHash();
  expect(new Set(alike).size).toBe(64);
  const read = (text: string): { text: string } => memo.get(Buffer.from(text), 0, text.length);
  for (let round = 0; round < 2; round++) for (const text of alike) expect(read(text).text).toBe(text);
  // Otherwise a client could choose its paths so that every line searches through all of them.
  expect(memo.size).toBe(32);
  expect(read(alike[0]!)).toBe(read(alike[0]!));
  expect(read(alike[63]!)).not.toBe(read(alike[63]!));
});

/** The hash processes words of four bytes: both pieces of each pair lead from the previous state to the same next one (collisions). */
const pairs = [
  ["lffyebht", "z4hve83i"],
  ["h3m1lozu", "ubz2gt9k"],
  ["dds4ojk5", "jeaivvpr"],
  ["sa3rw4a6", "ccblnyet"],
  ["ne1alimr", "crhsim1q"],
  ["mp6m9uck", "c5wawasd"],
] as const;

function piecesOfOneHash(): string[] {
  let all = [""];
  for (const pair of pairs) all = all.flatMap((text) => pair.map((piece) => text + piece));
  return all;
}
