/**
 * Builds packages/sluice: composes the Lua scripts, then compiles the sources twice.
 * Out: dist/esm for `import`, dist/cjs for `require`, each with its own type declarations.
 */
import { existsSync } from "node:fs";
import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { root, run, runTool } from "./run-command.mjs";

const library = join(root, "packages", "sluice");

/** @param {string} project */
function compile(project) {
  return runTool({ package: "typescript", bin: "bin/tsc", args: ["-p", project], cwd: library, capture: true });
}

async function build() {
  const composer = join(library, "scripts", "compose-scripts.mjs");
  if (existsSync(composer)) {
    const { code } = await run({ command: process.execPath, args: [composer] });
    if (code !== 0) return code;
  }

  // Start clean: a file that was renamed would otherwise live on in the package.
  await rm(join(library, "dist"), { recursive: true, force: true });
  const [esm, cjs] = await Promise.all([compile("tsconfig.json"), compile("tsconfig.cjs.json")]);

  // Both compile the same sources, so both complain alike; once is enough.
  const failed = esm.code !== 0 ? esm : cjs;
  process.stdout.write(failed.output);
  if (failed.code !== 0) return failed.code;

  // The package is of type "module"; without this, Node would read dist/cjs as ESM.
  await writeFile(join(library, "dist", "cjs", "package.json"), '{ "type": "commonjs" }\n');
  return 0;
}

process.exitCode = await build();
