/** One Envoy and several workers: told to make few calls at once on a connection, it opens more, and every worker has some. */
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { whyMissing } from "../../scripts/system-components.mjs";
import { startRedis } from "../harness/redis-server.js";
import { LoadConnections } from "./load-connections.js";
import { startApp, startEnvoy } from "./real-envoy.js";
import { type ServiceProcess, startServiceProcess } from "./running-service.js";

const LIMIT = 1_500;
const REFUSED = 500;
const IN_FLIGHT = 64;
const limits = `domain: d\ndescriptors: [{ key: user, rate_limit: { unit: year, requests_per_unit: ${LIMIT} } }]`;
const byUser = [{ actions: [{ request_headers: { header_name: "x-user", descriptor_key: "user" } }] }];
const ESTABLISHED = "01";

/** How many connections to a port each worker serves. */
function connectionsOf({ child, grpc }: ServiceProcess): number[] {
  const port = Number(grpc.split(":")[1]).toString(16).toUpperCase().padStart(4, "0");
  const inodes = new Set(
    readFileSync("/proc/net/tcp", "utf8")
      .trim()
      .split("\n")
      .slice(1)
      .map((line) => line.trim().split(/\s+/))
      .filter((fields) => fields[1]!.endsWith(`:${port}`) && fields[3] === ESTABLISHED)
      .map((fields) => fields[9]!),
  );
  const workers = readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, "utf8").trim().split(" ");
  return workers.map((pid) => {
    const files = readdirSync(`/proc/${pid}/fd`).map((fd) => {
      try {
        return readlinkSync(`/proc/${pid}/fd/${fd}`);
      } catch {
        return "";
      }
    });
    return files.filter((file) => inodes.has(/^socket:\[(\d+)\]$/.exec(file)?.[1] ?? "")).length;
  });
}

describe.skipIf(whyMissing("redis") ?? whyMissing("envoy"))("few calls at once on a gRPC connection", () => {
  test("spread one Envoy over all workers, and each request is counted once", async () => {
    const app = await startApp((_request, response) => response.end("ok"));
    await using redis = await startRedis();
    const service = await startServiceProcess({
      files: { "limits/d.yaml": limits },
      settings: {
        workers: "2",
        "envoy-config": "limits",
        store: redis.url,
        "store-deadline": "10s",
        "grpc-streams": "1",
      },
    });
    const envoy = await startEnvoy({
      limiter: service.grpc,
      app: app.at,
      domain: "d",
      rateLimits: byUser,
      failureModeDeny: [true],
      timeout: "60s",
    });
    const load = new LoadConnections({ url: envoy.url, count: IN_FLIGHT });
    const outcomes = new Map<number, number>();
    let most: number[] = [];
    let left = LIMIT + REFUSED;
    const goOn = async (): Promise<void> => {
      while (left-- > 0) {
        const { status } = await load.send("GET", "/", { headers: "x-user: all\r\n" });
        outcomes.set(status, (outcomes.get(status) ?? 0) + 1);
        if (left % 500 === 0) most = connectionsOf(service).map((count, i) => Math.max(count, most[i] ?? 0));
      }
    };
    await Promise.all(Array.from({ length: IN_FLIGHT }, goOn));
    console.log(`connections of each worker ${most.join(", ")}`);
    expect(Object.fromEntries(outcomes)).toEqual({ 200: LIMIT, 429: REFUSED });
    // One for each thread of Envoy would be two in all.
    expect(most.reduce((sum, count) => sum + count)).toBeGreaterThan(4);
    expect(Math.min(...most)).toBeGreaterThan(0);
    await envoy.stop();
    expect(await service.end(), service.output()).toBe(0);
    app.close();
  });
});
