/** That the built package loads as its users load it: by `import` and by `require`, each entry point, in plain Node. */
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const root = fileURLToPath(new URL("..", import.meta.url));
const manifest: { name: string; exports: Record<string, unknown> } = JSON.parse(
  readFileSync(`${root}/packages/sluice/package.json`, "utf8"),
);
const entryPoints = Object.keys(manifest.exports)
  .filter((subpath) => subpath !== "./package.json")
  .map((subpath) => `${manifest.name}${subpath.slice(1)}`);

/** The names that a module exports, as seen by a fresh process. */
function exportedNames(load: string, type: "module" | "commonjs"): string[] {
  const script = `console.log(JSON.stringify(Object.keys(${load}).sort()))`;
  const output = execFileSync(process.execPath, [`--input-type=${type}`, "-e", script], {
    cwd: root,
    encoding: "utf8",
  });
  return JSON.parse(output);
}

test.each(entryPoints)("%s exports the same names to import and to require", (entryPoint) => {
  const imported = exportedNames(`await import(${JSON.stringify(entryPoint)})`, "module");
  expect(imported.length).toBeGreaterThan(0);
  expect(exportedNames(`require(${JSON.stringify(entryPoint)})`, "commonjs")).toEqual(imported);
});
