/**
 * Tests run on the sources: `sluice` and its entry points are read from src, not from dist.
 * Processes that a test starts with plain node see dist, which `npm test` builds first.
 */
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { Alias } from "vite";
import { defineConfig } from "vitest/config";
import { LongestFirst } from "./test/harness/longest-first.js";

const packages = fileURLToPath(new URL("./packages/", import.meta.url));

interface Manifest {
  readonly name: string;
  readonly exports?: Readonly<Record<string, string | { readonly import?: { readonly default?: string } }>>;
}

/** Each entry point that a manifest exports from dist/esm/X.js is src/X.ts here. */
function sourceAliases(folder: string): Alias[] {
  const manifest: Manifest = JSON.parse(readFileSync(`${packages}${folder}/package.json`, "utf8"));
  return Object.entries(manifest.exports ?? {}).flatMap(([subpath, target]) => {
    const built = typeof target === "string" ? undefined : target.import?.default;
    const stem = built?.match(/^\.\/dist\/esm\/(.+)\.js$/)?.[1];
    if (stem === undefined) return [];
    const specifier = `${manifest.name}${subpath.slice(1)}`;
    return [{ find: new RegExp(`^${specifier}$`), replacement: `${packages}${folder}/src/${stem}.ts` }];
  });
}

/**
 * Files with a process of their own: those that judge time or memory, that replace clocks or modules, and that expect a warning which
 * is told once per process. The others share the processes of a few workers, one file after the other, and the modules with them:
 * to load the sources anew takes a second of processor time for each file.
 */
const apart = [
  "test/{conformance,faults,races,twins,world}/**/*.test.ts",
  "test/**/*memory*.test.ts",
  "test/configuration/propagation.test.ts",
  "test/middleware/{express-rate-limit,nest,warnings}.test.ts",
];

export default defineConfig({
  resolve: { alias: readdirSync(packages).flatMap(sourceAliases) },
  test: {
    setupFiles: ["test/harness/own-surroundings.ts"],
    sequence: { sequencer: LongestFirst },
    projects: [
      {
        extends: true,
        // Small and pure, and many: a process and a module graph for each would take longer than the tests.
        test: { name: "unit", include: ["packages/*/src/**/*.test.ts"], isolate: false },
      },
      { extends: true, test: { name: "system", include: ["test/**/*.test.ts"], exclude: apart, isolate: false } },
      { extends: true, test: { name: "apart", include: apart } },
    ],
    // Most tests wait for real servers rather than compute: with two workers two cores stand idle for a part of the run. With a fourth the run
    // takes as long, each test twice as long, and what waits for a moment misses it.
    pool: "forks",
    maxWorkers: 3,
    // Concurrent tests are those that wait for time, with counters of their own: vitest's five at a time would wait in a queue.
    maxConcurrency: 30,
    // A timeout only ends what hangs: on a machine that is busy with other work, a test of one second may take thirty.
    testTimeout: 120_000,
    hookTimeout: 180_000,
  },
});
