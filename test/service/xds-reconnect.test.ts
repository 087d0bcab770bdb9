/** When a lost control plane is asked again, and when its silence is reported: the client's own timers, run by hand, against a real server. */
import { afterEach, expect, test } from "vitest";
import { XdsClient } from "../../packages/server/src/enforcement/envoy/xds/xds-client.js";
import { xdsCodec } from "../../packages/server/src/enforcement/envoy/xds/xds-messages.js";
import type { Log } from "../../packages/server/src/log.js";
import { freePort } from "../harness/free-port.js";
import { startXdsServer } from "./xds-server.js";

const SILENCE_MS = 15_000;
const good = { domain: "d", descriptors: [{ key: "user", rateLimit: { unit: 4, requestsPerUnit: 1 } }] };

interface Timer {
  readonly delayMs: number;
  readonly run: () => void;
  isCancelled: boolean;
}

const clients: XdsClient[] = [];
afterEach(() => {
  for (const client of clients.splice(0)) client.close();
});

function follow(address: string, accept = async (): Promise<void> => undefined) {
  const timers: Timer[] = [];
  const warnings: string[] = [];
  const outcomes: string[] = [];
  const log = { info: () => undefined, error: () => undefined, warn: (text: string) => warnings.push(text) };
  const client = new XdsClient({
    server: { address, nodeId: "test-node", nodeMetadata: {}, headers: {}, tls: undefined },
    codec: xdsCodec(),
    log: log as unknown as Log,
    accept,
    onOutcome: (outcome) => outcomes.push(outcome),
    onConnection: () => undefined,
    after: (delayMs, run) => {
      const timer = { delayMs, run, isCancelled: false };
      timers.push(timer);
      return () => {
        timer.isCancelled = true;
      };
    },
  });
  clients.push(client);
  const pauses = () => timers.filter(({ delayMs }) => delayMs !== SILENCE_MS);
  const pausesOf = async (count: number): Promise<Timer[]> => {
    await expect.poll(() => pauses().length, { timeout: 30_000 }).toBeGreaterThanOrEqual(count);
    return pauses();
  };
  const silences = () => timers.filter(({ delayMs }) => delayMs === SILENCE_MS);
  return { client, timers, warnings, outcomes, pausesOf, silences };
}

function expectCurve(pauses: readonly Timer[], longest: readonly number[]): void {
  for (const [i, longestMs] of longest.entries()) {
    // Jitter takes away up to half.
    expect(pauses[i]!.delayMs).toBeGreaterThanOrEqual(longestMs / 2);
    expect(pauses[i]!.delayMs).toBeLessThanOrEqual(longestMs);
  }
}

test("pauses double from a quarter of a second to 15 seconds, one attempt each", async () => {
  const { pausesOf, silences } = follow(`127.0.0.1:${await freePort()}`);
  const curve = [250, 500, 1_000, 2_000, 4_000, 8_000, 15_000, 15_000, 15_000];
  for (let attempt = 1; attempt <= curve.length; attempt++) {
    const pauses = await pausesOf(attempt);
    expect(pauses).toHaveLength(attempt);
    // A stream that failed does not warn of its silence, too.
    expect(silences().map(({ isCancelled }) => isCancelled)).toEqual(Array(attempt).fill(true));
    if (attempt < curve.length) pauses.at(-1)!.run();
  }
  expectCurve(await pausesOf(curve.length), curve);
});

test("limits that came in force start the curve anew; those with mistakes, and garbage, do not", async () => {
  await using xds = await startXdsServer();
  let isGood = false;
  const { pausesOf, outcomes } = follow(xds.address, async () => {
    if (!isGood) throw new Error("a mistake");
  });
  const lose = async (count: number): Promise<void> => {
    xds.sendBytes(Buffer.from([0xff, 0xff]));
    await pausesOf(count);
  };
  xds.send("1", [good]);
  await expect.poll(() => outcomes, { timeout: 30_000 }).toEqual(["failed"]);
  await lose(1);
  (await pausesOf(1))[0]!.run();
  await expect.poll(() => outcomes, { timeout: 30_000 }).toEqual(["failed", "failed"]);
  await lose(2);
  isGood = true;
  (await pausesOf(2))[1]!.run();
  await expect.poll(() => outcomes, { timeout: 30_000 }).toEqual(["failed", "failed", "loaded"]);
  await lose(3);
  expectCurve(await pausesOf(3), [250, 500, 250]);
});

test("15 seconds of silence are reported once; a control plane that answers is not silent", async () => {
  await using xds = await startXdsServer({ node: "another-node" });
  const { warnings, silences } = follow(xds.address);
  await xds.received((request) => request.node?.id === "test-node");
  expect(silences()).toHaveLength(1);
  expect(silences()[0]!.isCancelled).toBe(false);
  expect(warnings).toEqual([]);
  silences()[0]!.run();
  expect(warnings).toEqual(["the control plane has sent no limits yet; does it know this node?"]);

  await using known = await startXdsServer();
  known.send("1", [good]);
  const heard = follow(known.address);
  await known.received((request) => request.versionInfo === "1");
  expect(heard.silences().map(({ isCancelled }) => isCancelled)).toEqual([true]);
});

test("a closed client asks no more", async () => {
  const { client, pausesOf } = follow(`127.0.0.1:${await freePort()}`);
  const [pause] = await pausesOf(1);
  client.close();
  expect(pause!.isCancelled).toBe(true);
});
