/**
 * Ports on loopback that nobody listens on, for servers that tests start.
 * Taken from below the range from which the system picks ports for outgoing connections (32768 and up on Linux):
 * a server that is stopped and started again on its port would otherwise find it taken now and then. For the same reason each of
 * vitest's processes has a range of its own, and no range reaches into the cluster bus ports of another.
 */
import { randomInt } from "node:crypto";
import { createServer } from "node:net";

const RANGES = 8;
const PORTS_PER_RANGE = 1_250;
const LOWEST = 10_000 + (Number(process.env.VITEST_POOL_ID ?? 0) % RANGES) * PORTS_PER_RANGE;
const HIGHEST = LOWEST + PORTS_PER_RANGE;
const TRIES = 50;

/** Given to callers of this process: between the answer and the server's start a port still looks free. */
const given = new Set<number>();

/** For the next test file of this process: the servers of the last one have ended. */
export function forgetPorts(): void {
  given.clear();
}

/** A Redis Cluster node also listens at its port plus this. */
const CLUSTER_BUS_OFFSET = 10_000;

/** The port and its cluster bus port are free at the time of the answer; no two callers of a process get the same. */
export async function freePort(): Promise<number> {
  for (let attempt = 0; attempt < TRIES; attempt++) {
    const port = randomInt(LOWEST, HIGHEST);
    if (given.has(port)) continue;
    given.add(port);
    if ((await isFree(port)) && (await isFree(port + CLUSTER_BUS_OFFSET))) return port;
  }
  throw new Error(`no free port between ${LOWEST} and ${HIGHEST} in ${TRIES} tries`);
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = createServer();
    probe.once("error", () => resolve(false));
    probe.listen(port, "127.0.0.1", () => probe.close(() => resolve(true)));
  });
}
