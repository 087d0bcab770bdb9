/** The recipes: each a page, its rules and a program, in docs/recipes and examples/recipes; the program prints what the page shows. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { blocksOf, root } from "./read-blocks.js";
import { isShown, runPage } from "./run-page.js";

const names = readdirSync(join(root, "docs/recipes"))
  .map((file) => file.replace(/\.md$/, ""))
  .sort();

test("every program of examples/recipes has its rules and its page, and there are twelve", () => {
  const files = readdirSync(join(root, "examples/recipes"));
  const programs = files.filter((file) => file.endsWith(".mjs") && file !== "small-websocket.mjs");
  expect(programs.map((file) => file.replace(/\.mjs$/, "")).sort()).toEqual(names);
  expect(names.filter((name) => !files.includes(`${name}.yaml`))).toEqual([]);
  expect(names).toHaveLength(12);
});

test.each(names)(
  "%s: the page shows the rules as they are, and the program prints what the page shows",
  async (name) => {
    const blocks = blocksOf(`docs/recipes/${name}.md`);
    const rules = blocks.find(({ language }) => language === "yaml");
    expect(rules?.code).toBe(readFileSync(join(root, `examples/recipes/${name}.yaml`), "utf8"));
    const ran = await runPage(blocks, ({ language }) => language === "sh");
    expect(ran.map(({ block }) => block.code)).toContain(`node examples/recipes/${name}.mjs\n`);
    for (const { printed, expected } of ran) {
      expect(isShown(printed, expected!), `printed\n${printed}\nand the page shows\n${expected}`).toBe(true);
    }
  },
);
