/**
 * Builds packages/server: compiles the sources to dist, then bundles the `sluice` command from there. The library must be built before: its
 * types are read from its dist, and its code is part of the bundle.
 * Out: dist, one file per source, for tests and types; bundle, a few files, for bin/sluice.js: to find and read 1800 files took most of a start.
 * The published package holds the bundle alone: what is bundled is a devDependency, what stays external a dependency.
 */
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { rolldown } from "rolldown";
import { refreshFolder } from "./refresh-folder.mjs";
import { root, runTool } from "./run-command.mjs";
import { thirdPartyNotices } from "./third-party-notices.mjs";

const server = join(root, "packages", "server");
const dist = join(server, "dist");

/** Loaded when first used, or with files of their own beside their code (binaries, protos, pages): these stay in node_modules. */
const external = [
  /^libsql/,
  /^pg$/,
  /^@fastify\/swagger/,
  /^@grpc\/(reflection|proto-loader)$/,
  // Of Fastify, and never used: its own schema compilers.
  /^@fastify\/(ajv|fast-json-stringify)-compiler$/,
];

/** What `serve` reads before its ports open: one file, and nothing of Node.js that takes long to load (node:crypto takes 8 ms). */
const door = [
  /server.dist.cli.(quick-serve|run-service|read-flags|report-failure|command-failure)\.js$/,
  /server.dist.settings.(given-settings|setting-specs|accepted-settings|setting-conflicts|inherited-sockets)\.js$/,
  /server.dist.settings.(reference-environment|service-links)\.js$/,
  /server.dist.(printable|service.(open-ports|inherit-ports)|http.(listen|accept-queue|waiting-listener|own-hosts))\.js$/,
  /sluice.dist.esm.(errors|key-prefix)\.js$/,
];

const ground = [
  /server.dist.(errors|own-package|threads.run-in-thread|enforcement.envoy.struct-message|service.stop-signal)\.js$/,
  /server.dist.(configuration.(diff-text|rule-diff)|recording.hash-values|monitoring.top-keys.frequent-items)\.js$/,
  /sluice.dist.esm.(time-slices|rules.(rule|duration|cidr|rule-memory|nearest-name)|algorithms.memory-model)\.js$/,
];

/** @param {RegExp[]} patterns @returns {(id: string) => boolean} */
const isOneOf = (patterns) => (id) => patterns.some((pattern) => pattern.test(id));

/** @param {string} into */
async function compile(into) {
  const args = ["-p", "tsconfig.json", "--outDir", into];
  const { code, output } = await runTool({
    package: "typescript",
    bin: "bin/tsc",
    args,
    cwd: server,
    capture: true,
  });
  process.stdout.write(output);
  return code;
}

/** ioredis's table of commands without its indentation: a start reads every byte of a file. As a text, V8 also reads it faster. */
const compactCommands = {
  name: "compact-commands",
  load: {
    filter: { id: /@ioredis.commands.built.commands\.json$/ },
    /** @param {string} id */
    async handler(id) {
      const text = JSON.stringify(JSON.parse(await readFile(id, "utf8")));
      return { code: `module.exports = JSON.parse(${JSON.stringify(text)});`, moduleType: "js" };
    },
  },
};

/** @param {string} into */
async function bundle(into) {
  const bundled = await rolldown({
    input: {
      main: join(dist, "cli", "main.js"),
      "quick-serve": join(dist, "cli", "quick-serve.js"),
      "rule-worker-thread": join(dist, "configuration", "rule-worker-thread.js"),
      "limit-worker-thread": join(dist, "enforcement", "envoy", "limit-worker-thread.js"),
      "traffic-worker-thread": join(dist, "analysis", "traffic-worker-thread.js"),
    },
    platform: "node",
    external,
    plugins: [compactCommands],
    logLevel: "warn",
  });
  // Not minified: a stack in a log should name functions and lines that can be found. Comments alone were a tenth of what a start reads.
  const { output } = await bundled.write({
    dir: into,
    format: "esm",
    entryFileNames: "[name].js",
    chunkFileNames: "[name]-[hash].js",
    comments: { legal: true, annotation: false, jsdoc: false },
    // Small, and needed by every command: files of their own would cost more than they hold.
    codeSplitting: {
      groups: [
        { name: "door", test: isOneOf(door), priority: 2 },
        { name: "ground", test: isOneOf(ground), priority: 1 },
      ],
    },
  });
  await bundled.close();
  const modules = output.flatMap((file) => (file.type === "chunk" ? file.moduleIds : []));
  await writeFile(join(into, "THIRD-PARTY-NOTICES.txt"), thirdPartyNotices(modules));
  return 0;
}

process.exitCode = (await refreshFolder(dist, compile)) || (await refreshFolder(join(server, "bundle"), bundle));
