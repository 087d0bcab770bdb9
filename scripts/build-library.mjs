/**
 * Builds packages/sluice: composes the Lua scripts, then compiles the sources twice.
 * Out: dist/esm for `import`, dist/cjs for `require`, each with its own type declarations.
 */
import { existsSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { refreshFolder } from "./refresh-folder.mjs";
import { root, run, runTool } from "./run-command.mjs";

const library = join(root, "packages", "sluice");

/**
 * @param {string} project
 * @param {string} outDir
 * @param {string[]} [more]
 */
function compile(project, outDir, more = []) {
  const args = ["-p", project, "--outDir", outDir, ...more];
  return runTool({ package: "typescript", bin: "bin/tsc", args, cwd: library, capture: true });
}

/** @param {string} dist */
async function build(dist) {
  const composer = join(library, "scripts", "compose-scripts.mjs");
  if (existsSync(composer)) {
    const { code } = await run({ command: process.execPath, args: [composer] });
    if (code !== 0) return code;
  }

  const [esm, cjs] = await Promise.all([
    compile("tsconfig.json", join(dist, "esm")),
    // The same sources: their types are checked above.
    compile("tsconfig.cjs.json", join(dist, "cjs"), ["--noCheck"]),
  ]);

  const failed = esm.code !== 0 ? esm : cjs;
  process.stdout.write(failed.output);
  if (failed.code !== 0) return failed.code;

  // The package is of type "module"; without this, Node would read dist/cjs as ESM.
  await writeFile(join(dist, "cjs", "package.json"), '{ "type": "commonjs" }\n');
  return 0;
}

process.exitCode = await refreshFolder(join(library, "dist"), build);
