/**
 * Reachable bytes of a replay after a log's first lines and after ten times as many, of the same clients: what a line leaves behind
 * would show. Names of clients are long, so that a remembered part of a line would keep the line.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Logs } from "../packages/server/dist/analysis/log/read-logs.js";
import { Simulator } from "../packages/server/dist/analysis/simulate.js";
import { writeLog } from "./log-lines.mjs";

const LINES = 20_000;
const CLIENTS = 2_000;

const folder = mkdtempSync(join(tmpdir(), "sluice-log-memory-"));
try {
  const found = {};
  for (const format of ["combined", "caddy"]) {
    const file = join(folder, format);
    const clientOf = (share) => `2001:db8:0:${Math.floor(share * CLIENTS).toString(16)}:ffff:ffff:ffff:ffff`;
    await writeLog(file, { format, lines: 10 * LINES, clientOf });
    found[format] = await reachable(file);
  }
  console.log(JSON.stringify(found));
} finally {
  rmSync(folder, { recursive: true });
}

async function reachable(file) {
  const rules = [{ id: "r", key: ["ip"], algorithm: "rolling-window", limit: 20, window: "10s" }];
  const attributesOf = ({ method, target, peer }) => ({ method, path: target.split("?")[0], ip: peer });
  const simulator = new Simulator({ rules, against: rules, comeBack: false, attributesOf });
  const logs = new Logs({ files: [file], headers: new Set() });
  let first;
  for await (const batch of logs.requests()) {
    await simulator.addAll(batch);
    if (first === undefined && logs.counts.lines >= LINES) first = bytes();
  }
  return { first, last: bytes() };
}

function bytes() {
  globalThis.gc();
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
}
