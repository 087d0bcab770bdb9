/** Three instances, each a process under load, on one Redis and one PostgreSQL: a change is in force on all, and how long that took is printed. */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { whyMissing } from "../../scripts/system-components.mjs";
import { leashProcess, makeTempFolder } from "../harness/leash.js";
import { startPostgres } from "../harness/postgres.js";
import { startRedis } from "../harness/redis-server.js";
import { makeUrgent } from "../harness/server-process.js";
import { ADMIN_TOKEN, eventually, perUser } from "./instance.js";

const CHANGES = 60;
const INSTANCES = 3;

interface Running {
  readonly child: ChildProcess;
  readonly url: string;
  /** When each version came into force here. */
  readonly inForceAtMs: Map<number, number>;
}

async function startProcess(settings: Record<string, unknown>): Promise<Running> {
  const script = fileURLToPath(new URL("./instance-process.mjs", import.meta.url));
  const child = fork(script, [JSON.stringify({ ...settings, dataFolder: makeTempFolder("data") })], { execArgv: [] });
  leashProcess(child);
  // What is measured is how a change travels, not who else has the processors.
  makeUrgent(child.pid);
  const inForceAtMs = new Map<number, number>();
  const url = await new Promise<string>((resolve, reject) => {
    child.on("message", (message: { url?: string; version?: number; atMs?: number }) => {
      if (message.url !== undefined) resolve(message.url);
      if (message.version !== undefined) inForceAtMs.set(message.version, message.atMs!);
    });
    child.once("exit", () => reject(new Error("the instance ended")));
  });
  return { child, url, inForceAtMs };
}

async function reportOf({
  child,
}: Running): Promise<{ checks: number; failed: number; degraded: number; slowestMs: number }> {
  child.send("report");
  for (;;) {
    const [message] = await once(child, "message");
    if (message.met !== undefined) return message.met;
  }
}

describe.skipIf(whyMissing("redis", "postgresql"))("a change through any of three instances", () => {
  test("is in force on all by its announcement, before any instance polls, and no check fails", async () => {
    makeUrgent();
    // Their processes inherit it.
    await using postgres = await startPostgres();
    await using redis = await startRedis();
    const settings = {
      database: postgres.createDatabase("rules"),
      redisUrl: redis.url,
      adminToken: ADMIN_TOKEN,
      starterRules: [perUser(1_000_000)],
      checksPerTick: 5,
      // Longer than the test: what is in force was announced.
      pollMs: 3_600_000,
    };
    const running = await Promise.all(Array.from({ length: INSTANCES }, () => startProcess(settings)));
    // What compiling code and opening connections costs is not a matter of changes.
    await new Promise((resolve) => setTimeout(resolve, 500));
    for (const { child } of running) child.send("reset");

    const takenMs: number[] = [];
    for (let i = 0; i < CHANGES; i++) {
      const sentAtMs = Date.now();
      const reply = await fetch(`${running[i % INSTANCES]!.url}/admin/v1/rules/per-user`, {
        method: "PUT",
        headers: { authorization: `Bearer ${ADMIN_TOKEN}`, "content-type": "application/json" },
        body: JSON.stringify(perUser(1_000_001 + i)),
      });
      expect(reply.status).toBe(200);
      const { version } = (await reply.json()) as { version: number };
      await eventually(`version ${version} is everywhere`, () => running.every((one) => one.inForceAtMs.has(version)));
      const lastAtMs = Math.max(...running.map((one) => one.inForceAtMs.get(version)!));
      // From the request, not from its answer: nothing is left out.
      takenMs.push(lastAtMs - sentAtMs);
    }
    const reports = await Promise.all(running.map(reportOf));
    for (const { child } of running) child.send("stop");
    await Promise.all(running.map(({ child }) => once(child, "exit")));

    takenMs.sort((a, b) => a - b);
    const at = (share: number) => takenMs[Math.ceil(takenMs.length * share) - 1]!;
    const checks = reports.reduce((sum, one) => sum + one.checks, 0);
    const slowestMs = Math.max(...reports.map((one) => one.slowestMs));
    console.info(
      `${CHANGES} changes, in force on ${INSTANCES} instances: median ${at(0.5)} ms, p99 ${at(0.99)} ms, slowest ${at(1)} ms; ` +
        `${checks} checks beside, slowest ${slowestMs.toFixed(0)} ms`,
    );
    for (const { failed, degraded } of reports) expect({ failed, degraded }).toEqual({ failed: 0, degraded: 0 });
    expect(checks).toBeGreaterThan(1_000);
  });
});
