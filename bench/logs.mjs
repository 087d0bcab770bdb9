/**
 * Access logs through `sluice simulate`: lines a second of one core, beside a bare read of the same lines in the same run.
 * Processor time, not wall time: a busy machine does not count. Each run is a process of its own, its start included.
 *   node bench/logs.mjs
 */
import { execFile } from "node:child_process";
import { createReadStream } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { argumentsFor, formats, writeLog } from "./log-lines.mjs";

const QUICK_LINES = 100_000;
const LINES = 1_000_000;
const MOST_SECONDS_A_MILLION = 10;

const rules = [
  { id: "per-ip", key: ["ip"], algorithm: "rolling-window", limit: 100, window: "1m" },
  { id: "per-path", match: { path: "/v1/**" }, key: ["ip"], algorithm: "token-bucket", limit: 20, window: "10s" },
];

export async function logsSection({ quick }) {
  const folder = await mkdtemp(join(tmpdir(), "sluice-bench-logs-"));
  const lines = quick ? QUICK_LINES : LINES;
  try {
    const rulesFile = join(folder, "rules.json");
    await writeFile(rulesFile, JSON.stringify({ rules }));
    const rows = [];
    for (const format of formats) {
      const file = join(folder, format);
      await writeLog(file, { format, lines });
      const bare = await measure(["read", file]);
      const simulated = await measure(
        ["simulate", "--rules", rulesFile, ...(argumentsFor[format] ?? []), "--json", file],
        lines,
      );
      rows.push({ format, lines, bareUs: bare / lines, simulatedUs: simulated / lines });
      await rm(file);
    }
    return rows;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

export function printLogs(rows) {
  console.log("\nAccess logs through two rules, `sluice simulate`: processor time, the start of the process included");
  for (const { format, lines, bareUs, simulatedUs } of rows) {
    const perSecond = Math.round(1e6 / simulatedUs).toLocaleString("en-US");
    const ratio = (simulatedUs / bareUs).toFixed(1);
    console.log(
      `  ${format.padEnd(10)} ${lines.toLocaleString("en-US")} lines: ${perSecond} lines/s, ${simulatedUs.toFixed(1)} us a line, ${ratio} times a bare read of the lines (${bareUs.toFixed(2)} us)`,
    );
  }
}

export function logsBars(rows) {
  return rows.map(({ format, simulatedUs }) => ({
    what: `a million ${format} log lines: seconds of one core`,
    wanted: `at most ${MOST_SECONDS_A_MILLION}`,
    measured: simulatedUs,
    met: simulatedUs <= MOST_SECONDS_A_MILLION,
  }));
}

/** Microseconds of processor time. `lines`: that must have been replayed, each of them. */
async function measure(args, lines) {
  const { stdout, stderr } = await promisify(execFile)(process.execPath, [fileURLToPath(import.meta.url), ...args], {
    maxBuffer: 2 ** 26,
  });
  if (lines !== undefined && JSON.parse(stdout).total !== lines) {
    throw new Error(`expected ${lines} requests, got ${JSON.parse(stdout).total} of ${args.at(-1)}`);
  }
  return Number(stderr.trim().split("\n").at(-1));
}

async function read(file) {
  let lines = 0;
  let rest = "";
  const decoder = new TextDecoder();
  for await (const chunk of createReadStream(file, { highWaterMark: 2 ** 18 })) {
    const split = (rest + decoder.decode(chunk, { stream: true })).split("\n");
    rest = split.pop();
    lines += split.length;
  }
  return lines;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [, , command, ...args] = process.argv;
  if (command === undefined) printLogs(await logsSection({ quick: false }));
  else {
    process.on("exit", () => {
      const { user, system } = process.cpuUsage();
      console.error(user + system);
    });
    if (command === "read") await read(args[0]);
    else {
      const { main } = await import("../packages/server/bundle/main.js");
      await main([process.argv[0], "sluice", command, ...args]);
    }
  }
}
