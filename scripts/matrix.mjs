/**
 * `npm run matrix`: the stores, the entry points and the service on every supported Node and server of Redis's protocol, as a table.
 * `-- --quick` runs the corners alone: the oldest Node on the oldest server, the newest on the newest. Not part of `npm test`: it takes minutes.
 * Exit status 1 if a cell failed; a program that cannot be had here is said, and fails nothing.
 */
import { delimiter, dirname } from "node:path";
import { newerDebianServer } from "./newer-debian-programs.mjs";
import { findNpmProgram, installNpmProgram } from "./npm-programs.mjs";
import { run, seconds } from "./run-command.mjs";
import { components } from "./system-components.mjs";

const tests = ["test/conformance/redis.test.ts", "test/entry-points.test.ts", "test/service/first-start.test.ts"];

/** @typedef {{ label: string, file: string }} Found */

/** @param {Found[]} list */
const corners = (list) => [...new Set([list[0], list.at(-1)])].filter((one) => one !== undefined);

async function findNodes() {
  /** @type {Found[]} */
  const found = [];
  for (const name of /** @type {const} */ (["node20", "node22", "node24"])) {
    const problem = findNpmProgram(name) === undefined ? await installNpmProgram(name) : "";
    const file = findNpmProgram(name);
    if (file === undefined) console.log(`${name} cannot be had here: ${problem.trim()}`);
    else found.push({ label: `Node ${await versionOf(file)}`, file });
  }
  return found;
}

async function findServers() {
  /** @type {Found[]} */
  const found = [];
  const installed = components.redis.find();
  if (installed !== undefined) found.push({ label: `Redis ${await versionOf(installed)}`, file: installed });
  for (const [id, label] of /** @type {const} */ ([
    ["valkey", "Valkey"],
    ["redis", "Redis"],
  ])) {
    const server = await newerDebianServer(id);
    if ("why" in server) console.log(`${label} of a newer Debian cannot be had here: ${server.why}`);
    else found.push({ label: `${label} ${await versionOf(server.file)}`, file: server.file });
  }
  return found;
}

/** @param {string} file */
async function versionOf(file) {
  const { output } = await run({ command: file, args: ["--version"], capture: true });
  return /v=?(\d+\.\d+\.\d+)/.exec(output)?.[1] ?? output.trim();
}

/**
 * @param {Found} node
 * @param {Found} server
 */
async function runCell(node, server) {
  const { code, output, tookMs } = await run({
    command: node.file,
    args: ["node_modules/vitest/vitest.mjs", "run", "--reporter=dot", ...tests],
    // Tests that start `node` by name get this one too.
    env: { REDIS_SERVER_BIN: server.file, PATH: `${dirname(node.file)}${delimiter}${process.env.PATH}` },
    capture: true,
  });
  const counts = /Tests .*?((?:\d+ failed)?)[^\d]*(\d+ passed)/.exec(withoutColour(output));
  const verdict = counts === null ? "did not run" : [counts[1], counts[2]].filter(Boolean).join(", ");
  if (code !== 0) console.log(`\n${node.label}, ${server.label}:\n${output}`);
  return { ok: code === 0, text: `${verdict} (${seconds(tookMs)})` };
}

/** @param {string} text */
function withoutColour(text) {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: that is what colour is.
  return text.replaceAll(/\u001b\[\d+m/g, "");
}

const quick = process.argv.includes("--quick");
const nodes = await findNodes();
const servers = await findServers();
/** @type {string[][]} */
const rows = [["", ...servers.map(({ label }) => label)]];
let failed = nodes.length === 0 || servers.length === 0;
for (const node of nodes) {
  const row = [node.label];
  for (const server of servers) {
    const isCorner = corners(nodes).indexOf(node) === corners(servers).indexOf(server) && corners(nodes).includes(node);
    if (quick && !isCorner) {
      row.push("-");
      continue;
    }
    const cell = await runCell(node, server);
    failed ||= !cell.ok;
    row.push(cell.text);
  }
  rows.push(row);
}
const widths = rows[0]?.map((_, at) => Math.max(...rows.map((row) => row[at]?.length ?? 0))) ?? [];
for (const row of rows)
  console.log(
    row
      .map((cell, at) => cell.padEnd(widths[at] ?? 0))
      .join("  ")
      .trimEnd(),
  );
process.exitCode = failed ? 1 : 0;
