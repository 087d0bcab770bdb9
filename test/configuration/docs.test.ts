/** That the pages say what the code does, where the code can be asked. */
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { rulesCommand } from "../../packages/server/src/cli/rules.js";

const page = readFileSync(new URL("../../docs/administration.md", import.meta.url), "utf8");

test("every command of `sluice rules` stands on its page, and every reading one takes --json", () => {
  for (const command of rulesCommand().commands) {
    expect(page, command.name()).toMatch(new RegExp(`^\\|.*\`${command.name()}\\b`, "m"));
    expect(command.options.map(({ long }) => long)).toContain("--json");
  }
});
