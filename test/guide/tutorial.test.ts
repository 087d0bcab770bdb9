/** The tutorial, run from its first command to its last in an empty folder: it prints what the page shows. */
import { expect, test } from "vitest";
import { blocksOf, placeOf } from "./read-blocks.js";
import { isShown, runPage } from "./run-page.js";

test("every command of the tutorial prints what the page shows", { timeout: 300_000 }, async () => {
  const blocks = blocksOf("docs/tutorial.md");
  const ran = await runPage(blocks, ({ language }) => language === "sh");
  expect(ran.length).toBeGreaterThan(8);
  expect(blocks.filter(({ language }) => language === "sh").map(({ mark }) => mark)).not.toContain("not-run");
  for (const { block, printed, expected } of ran) {
    expect(expected, `${placeOf(block)}: expected a text block behind it`).toBeDefined();
    expect(isShown(printed, expected!), `${placeOf(block)} printed\n${printed}\nand the page shows\n${expected}`).toBe(
      true,
    );
  }
});

test("what a page shows is compared in full", () => {
  expect(isShown("a  b\nc 12 s\n", "a b\nc … s\n")).toBe(true);
  expect(isShown("a b\nc 12 s\nd\n", "a b\nc … s\n")).toBe(false);
  expect(isShown("a b\n", "a c\n")).toBe(false);
  expect(isShown("a.b\n", "a+b\n")).toBe(false);
});
