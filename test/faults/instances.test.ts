/** Every instance of a service is restarted in turn, behind a client that turns to another one: no check fails, and the count is one. */
import { setTimeout as sleep } from "node:timers/promises";
import type { Rule } from "sluice";
import { describe, expect, test } from "vitest";
import { whyMissing } from "../../scripts/system-components.mjs";
import { startCluster } from "../harness/redis-cluster.js";
import { type ServiceProcess, startServiceProcess } from "../service/running-service.js";

const LIMIT = 100_000;
const rules: Rule[] = [
  { id: "all", key: ["user"], algorithm: "rolling-window", limit: LIMIT, window: "1h", onStoreFailure: "deny" },
];

describe.skipIf(whyMissing("redis"))("a rolling restart of a service", () => {
  test("of three instances on one cluster: every check is answered by one of them, and each is counted once", async () => {
    await using cluster = await startCluster({ leaders: 3, replicasEach: 1 });
    const settings = { store: cluster.url, "store-deadline": "2s" };
    const start = (): Promise<ServiceProcess> => startServiceProcess({ rules, settings });
    const instances = await Promise.all([start(), start(), start()]);
    const tally = { answered: 0, turned: 0, failures: [] as string[], byPolicy: 0 };
    let running = true;

    /** Asks one; where nobody listens, or the instance is ending, the next. Its id makes a second try harmless. */
    const check = async (n: number): Promise<void> => {
      const body = JSON.stringify({ attributes: { user: "ann" }, id: `check-${n}` });
      for (let i = 0; i < instances.length; i++) {
        try {
          const answer = await fetch(`${instances[(n + i) % instances.length]!.http}/v1/check`, {
            method: "POST",
            headers: { "content-type": "application/json" },
            body,
          });
          const { allowed, degraded } = (await answer.json()) as { allowed: boolean; degraded?: string };
          if (degraded !== undefined) tally.byPolicy++;
          if (answer.status === 200 && allowed) {
            tally.answered++;
            return;
          }
        } catch {
          tally.turned++;
        }
      }
      tally.failures.push(`check-${n}`);
    };
    let sent = 0;
    const clients = Array.from({ length: 4 }, async () => {
      while (running) {
        await check(sent++);
        await sleep(10);
      }
    });
    for (let i = 0; i < instances.length; i++) {
      await sleep(300);
      expect(await instances[i]!.end("SIGTERM")).toBe(0);
      instances[i] = await start();
    }
    await sleep(300);
    running = false;
    await Promise.all(clients);

    const look = await fetch(`${instances[0]!.http}/v1/peek`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ attributes: { user: "ann" }, cost: 0 }),
    });
    const { remaining } = (await look.json()) as { remaining: number };
    console.log(
      `rolling restart of 3 instances: ${sent} checks, ${tally.failures.length} failed, ${tally.turned} turned to another instance, ${LIMIT - remaining} counted`,
    );
    await Promise.all(instances.map((instance) => instance.end()));
    expect(tally.failures).toEqual([]);
    expect(tally.byPolicy).toBe(0);
    expect(tally.answered).toBe(sent);
    expect(LIMIT - remaining).toBe(sent);
  }, 90_000);
});
