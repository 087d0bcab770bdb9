/** That the pages say what the code does, where the code can be asked. */
import { readFileSync } from "node:fs";
import { SluiceError } from "sluice";
import { expect, test } from "vitest";
import { administrationErrorKinds } from "../../packages/server/src/administration/problem.js";
import { rulesCommand } from "../../packages/server/src/cli/rules.js";
import { configurationErrorKinds } from "../../packages/server/src/configuration/configuration-error.js";

const page = readFileSync(new URL("../../docs/administration.md", import.meta.url), "utf8");

test("every error of the admin API stands on its page with its status", () => {
  const rows = [...page.matchAll(/^\| `([a-z-]+)` \| (\d{3}) \|/gm)].map(([, code, status]) => `${code} ${status}`);
  // Those of the library that the admin API can meet.
  const shared = (["invalid-request", "invalid-rules", "unknown-rule", "store-unavailable"] as const).map(
    (code) => [code, new SluiceError(code, "")] as const,
  );
  const kinds = [...Object.entries({ ...administrationErrorKinds, ...configurationErrorKinds }), ...shared];
  expect(rows.sort()).toEqual(kinds.map(([code, { status }]) => `${code} ${status}`).sort());
});

test("every command of `sluice rules` stands on its page, and every reading one takes --json", () => {
  for (const command of rulesCommand().commands) {
    expect(page, command.name()).toMatch(new RegExp(`^\\|.*\`${command.name()}\\b`, "m"));
    expect(command.options.map(({ long }) => long)).toContain("--json");
  }
});
