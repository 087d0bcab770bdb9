/** `sluice serve` as the image and the systemd unit run it, with the limits that every rate limit service in these benchmarks has (rls-messages.mjs). */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { COLLECTOR_FLAGS } from "../packages/server/dist/service/collector-flags.js";
import { limits } from "./rls-messages.mjs";

const bin = fileURLToPath(new URL("../packages/server/bin/sluice.js", import.meta.url));

const rules = Object.entries(limits).map(([key, limit]) => ({
  ...{ id: `${key}s`, key: [key], limit },
  ...{ algorithm: "fixed-window", window: "1h" },
}));

/** With those limits in a file. Resolves when it serves. @param {readonly string[]} flags */
export async function startSluice(flags, node = process.execPath) {
  const folder = mkdtempSync(join(tmpdir(), "sluice-bench-"));
  const file = join(folder, "rules.json");
  writeFileSync(file, JSON.stringify({ rules }));
  return await start({ folder, flags: ["--rules", file, ...flags], node });
}

/** With rules that its admin API can change. @param {readonly string[]} flags */
export async function startAdministered(flags) {
  return await start({ folder: mkdtempSync(join(tmpdir(), "sluice-bench-")), flags, node: process.execPath });
}

async function start({ folder, flags, node }) {
  const args = [...COLLECTOR_FLAGS, bin, "serve", "--port", "0", "--grpc-port", "0", "--data-folder", folder, ...flags];
  const child = spawn(node, args, { stdio: ["ignore", "pipe", "inherit"] });
  let output = "";
  for await (const chunk of child.stdout) {
    output += chunk;
    if (/gRPC +\S+:\d+/.test(output)) break;
  }
  child.stdout.resume();
  const [, host, port] = /gRPC +(\S+):(\d+)/.exec(output);
  return {
    host,
    port: Number(port),
    httpPort: Number(/HTTP +\S+:(\d+)/.exec(output)[1]),
    pid: child.pid,
    async stop() {
      const ended = once(child, "exit");
      child.kill("SIGINT");
      await ended;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
