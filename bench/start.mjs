/**
 * From exec to the first answered check, against a Node.js that does nothing: the ratio says how much of a start is ours. With the
 * processor time of the start, and the resident memory of the idle process.
 */
import { execFileSync, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { median } from "./measure.mjs";
import { residentMbOf, treeOf } from "./process-figures.mjs";

const bin = fileURLToPath(new URL("../packages/server/bin/sluice.js", import.meta.url));
const check = { method: "POST", headers: { "content-type": "application/json" }, body: '{"attributes":{"user":"x"}}' };
const IDLE_AFTER_MS = 1_000;

/** @returns {Promise<{ firstAnswerMs: number, bareMs: number, idleMb: number, idleWorkersMb: number }>} */
export async function startSection({ repetitions }, redisUrl) {
  const runs = [];
  for (let i = 0; i < repetitions; i++) runs.push({ bareMs: bareMs(), ...(await startOnce([])) });
  const workers = await startOnce(["--workers", "2", "--store", redisUrl]);
  const of = (name) => median(runs.map((run) => run[name]));
  return {
    firstAnswerMs: of("firstAnswerMs"),
    bareMs: of("bareMs"),
    idleMb: of("idleMb"),
    idleWorkersMb: workers.idleMb,
  };
}

export function printStart({ firstAnswerMs, bareMs, idleMb, idleWorkersMb }) {
  console.log("\nStart of the service: from exec to the first answered check");
  console.log(
    `  ${firstAnswerMs.toFixed(0)} ms, ${(firstAnswerMs / bareMs).toFixed(1)} times \`node -e 0\` (${bareMs.toFixed(0)} ms); ` +
      `idle ${idleMb.toFixed(0)} MB, first process and two workers ${idleWorkersMb.toFixed(0)} MB`,
  );
}

function bareMs() {
  const startMs = performance.now();
  execFileSync(process.execPath, ["-e", "0"]);
  return performance.now() - startMs;
}

async function startOnce(flags) {
  const folder = mkdtempSync(join(tmpdir(), "sluice-bench-"));
  const startMs = performance.now();
  const args = [bin, "serve", "--port", "0", "--grpc-port", "0", "--data-folder", folder, ...flags];
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "ignore"] });
  const ended = new Promise((resolve) => child.once("exit", resolve));
  let output = "";
  for await (const chunk of child.stdout) {
    output += chunk;
    if (output.includes("/v1/check -H")) break;
  }
  await fetch(`${/HTTP +(\S+)/.exec(output)[1]}/v1/check`, check);
  const firstAnswerMs = performance.now() - startMs;
  await sleep(IDLE_AFTER_MS);
  const idleMb = treeOf(child.pid).reduce((sum, pid) => sum + residentMbOf(pid), 0);
  child.kill("SIGINT");
  await ended;
  rmSync(folder, { recursive: true, force: true });
  return { firstAnswerMs, idleMb };
}
