import { expect, test } from "vitest";
import { completionScript, shells } from "./completion-scripts.js";

const tree = [
  {
    path: [],
    commands: [{ name: "rules", description: "it's rules" }],
    options: [{ name: "--help", description: "" }],
  },
  { path: ["rules"], commands: [{ name: "list", description: "a: list" }], options: [] },
  { path: ["rules", "list"], commands: [], options: [{ name: "--json", description: "print $(JSON) `now`" }] },
];

test.each(shells)("the script for %s names every command and option", (shell) => {
  const script = completionScript(shell, tree);
  for (const word of ["rules", "list", "json", "help"]) expect(script).toContain(word);
});

test("descriptions cannot end a quoted word", () => {
  expect(completionScript("zsh", tree)).toContain("'rules:it’s rules'");
  expect(completionScript("fish", tree)).toContain("-d 'print $(JSON) `now`'");
});

test("bash has no descriptions, and completes by the command before the cursor", () => {
  const script = completionScript("bash", tree);
  expect(script).not.toContain("print");
  expect(script).toContain('"rules list") words="--json" ;;');
});
