/** Every block of code on the site is run, compiled or parsed; what no test can run is marked, and few. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Command } from "commander";
import { expect, test } from "vitest";
import { program } from "../../packages/server/src/cli/main.js";
import { runTool } from "../../scripts/run-command.mjs";
import { removeTempFolder } from "../harness/leash.js";
import { commandMistakes, parseBlock, type Treatment, treatmentOf } from "./check-blocks.js";
import { compiledFile } from "./compile-blocks.js";
import { blocksOf, docPages, placeOf, root } from "./read-blocks.js";
import { isShown, runPage } from "./run-page.js";

const blocks = docPages.flatMap(blocksOf);
const under = (treatment: Treatment) => blocks.filter((block) => treatmentOf(block) === treatment);

test("few blocks are not run, and each says so in its fence", () => {
  const counts = Object.fromEntries(
    (["run", "compiled", "parsed", "known", "shown", "not run"] as const).map((name) => [name, under(name).length]),
  );
  console.log(`blocks of docs/: ${JSON.stringify(counts)}; not run: ${under("not run").map(placeOf).join(", ")}`);
  expect(under("not run").every(({ mark }) => mark === "not-run")).toBe(true);
  expect(counts["not run"]).toBeLessThanOrEqual(6);
  expect(counts.run).toBeGreaterThan(45);
});

test("fences have marks that mean something", () => {
  const marks = blocks.filter(({ language, mark }) => {
    if (mark === "" || mark === "not-run") return false;
    return language !== "sh" || (mark !== "run" && mark !== "background");
  });
  expect(marks.map(placeOf)).toEqual([]);
});

test.each(under("parsed").map((block) => [placeOf(block), block] as const))(
  "%s is accepted by its parser",
  (_place, block) => {
    expect(() => parseBlock(block)).not.toThrow();
  },
);

test("every command of the shell blocks exists, with its options", async () => {
  const commands = await sluiceCommands();
  const mistakes = blocks
    .filter(({ language }) => language === "sh")
    .flatMap((block) => commandMistakes(block, commands).map((mistake) => `${placeOf(block)} ${mistake}`));
  expect(mistakes).toEqual([]);
  // A block with none of them would be held to nothing.
  expect(
    under("known")
      .filter(({ code }) => !/\b(sluice|npm run) \w/.test(code))
      .map(placeOf),
  ).toEqual([]);
});

test("a command or option that does not exist is found", async () => {
  const block = {
    page: "p",
    line: 1,
    language: "sh",
    mark: "",
    code: "npx sluice rules aply x.yaml\nsluice top --onc\nnpm run nothing\n",
  };
  expect(commandMistakes(block, await sluiceCommands())).toEqual([
    "no command rules aply: npx sluice rules aply x.yaml",
    "no option --onc: sluice top --onc",
    "no script nothing: npm run nothing",
  ]);
});

test("the TypeScript and JavaScript of the pages compiles, strictly", async () => {
  // Within the checkout, so that packages are found as in a program.
  const folder = join(root, "packages/guide/blocks-of-docs");
  removeTempFolder(folder);
  mkdirSync(folder, { recursive: true });
  try {
    const compiled = under("compiled");
    expect(compiled.length).toBeGreaterThan(10);
    for (const [at, block] of compiled.entries()) writeFileSync(join(folder, `block-${at}.ts`), compiledFile(block));
    writeFileSync(
      join(folder, "tsconfig.json"),
      JSON.stringify({
        extends: "../../../tsconfig.base.json",
        compilerOptions: {
          noEmit: true,
          declaration: false,
          sourceMap: false,
          experimentalDecorators: true,
          noUnusedLocals: false,
          noUnusedParameters: false,
          types: ["node"],
        },
        include: ["."],
      }),
    );
    const { code, output } = await runTool({
      package: "typescript",
      bin: "bin/tsc",
      args: ["-p", folder, "--pretty", "false"],
      capture: true,
    });
    const told = output.replaceAll(
      /block-(\d+)\.ts/g,
      (_, at) => `${placeOf(compiled[Number(at)]!)} as block-${at}.ts`,
    );
    expect(told).toBe("");
    expect(code).toBe(0);
  } finally {
    removeTempFolder(folder);
  }
});

const pagesToRun = [...new Set(blocks.filter(({ mark }) => mark === "run").map(({ page }) => page))];

test.each(pagesToRun)(
  "%s: the shell blocks that are marked run, and print what is shown",
  { timeout: 300_000 },
  async (page) => {
    const ran = await runPage(blocksOf(page), ({ mark }) => mark === "run" || mark === "background");
    for (const { block, printed, expected } of ran) {
      expect(printed, placeOf(block)).not.toBe("");
      if (expected !== undefined)
        expect(isShown(printed, expected), `${placeOf(block)} printed\n${printed}`).toBe(true);
    }
  },
);

async function sluiceCommands(): Promise<ReadonlyMap<string, Command>> {
  return new Map((await program(undefined)).commands.map((command) => [command.name(), command]));
}
