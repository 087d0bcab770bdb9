/** The end of an instance under real connections: what was sent before SIGTERM is answered, and a lame duck still serves. */
import { createServer, type ServerResponse } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import type { Rule } from "sluice";
import { describe, expect, test } from "vitest";
import { whyMissing } from "../../scripts/system-components.mjs";
import { makeTempFolder } from "../harness/leash.js";
import { startRedis } from "../harness/redis-server.js";
import { connectEnvoy, descriptor } from "./envoy-client.js";
import { runSluice, startServiceProcess } from "./running-service.js";

const rules: Rule[] = [{ id: "load", key: ["user"], algorithm: "token-bucket", limit: 1_000_000, window: "1s" }];
const body = JSON.stringify({ attributes: { user: "x" } });
const request = (host: string): string =>
  `POST /v1/check HTTP/1.1\r\nhost: ${host}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`;

/** A connection that sends one request as soon as it stands; resolves with the status line, or how it was lost. */
function sendOne(url: string): { sent: Promise<void>; outcome: Promise<string> } {
  const { hostname, port, host } = new URL(url);
  const socket: Socket = connect({ host: hostname, port: Number(port) });
  let text = "";
  const sent = new Promise<void>((resolve) => {
    socket.once("connect", () => socket.write(request(host), () => resolve()));
    socket.once("close", () => resolve());
  });
  const outcome = new Promise<string>((resolve) => {
    socket.on("data", (chunk) => {
      text += chunk.toString();
      if (text.includes("\r\n")) resolve(text.split("\r\n")[0]!);
    });
    socket.once("error", (error) => resolve(`lost: ${(error as NodeJS.ErrnoException).code}`));
    socket.once("close", () => resolve("lost: closed"));
  });
  void outcome.then(() => socket.destroy());
  return { sent, outcome };
}

const COUNT = 200;

describe("requests that were sent before SIGTERM", () => {
  test.each([
    ["one process", {}],
    ["two workers", { workers: "2" }],
  ])("over HTTP to %s are all answered", async (_, more) => {
    if (whyMissing("redis") && "workers" in more) return;
    await using redis = await startRedis();
    const store = "workers" in more ? { store: redis.url, "store-deadline": "2s" } : {};
    // Longer than a busy machine needs to answer: what is not answered by then is cut off, as the setting says.
    const service = await startServiceProcess({
      rules,
      settings: { "drain-delay": "1s", "drain-timeout": "60s", ...store, ...more },
    });
    const sending = Array.from({ length: COUNT }, () => sendOne(service.http));
    await Promise.all(sending.map(({ sent }) => sent));
    const ended = service.end("SIGTERM");
    const outcomes = await Promise.all(sending.map(({ outcome }) => outcome));
    expect(outcomes.filter((outcome) => outcome !== "HTTP/1.1 200 OK")).toEqual([]);
    expect(await ended, service.output()).toBe(0);
  });

  test.each([
    ["one process", {}],
    ["two workers", { workers: "2" }],
  ])(
    "and connections that came while %s stood still during its end are all answered, over HTTP and gRPC",
    async (_, more) => {
      if (whyMissing("redis") && "workers" in more) return;
      await using redis = await startRedis();
      const store = "workers" in more ? { store: redis.url, "store-deadline": "2s" } : {};
      const service = await startServiceProcess({
        rules,
        settings: { "drain-delay": "5s", "drain-timeout": "30s", ...store, ...more },
      });
      const ended = service.end("SIGTERM");
      await expect.poll(async () => (await fetch(`${service.http}/readyz`)).status).toBe(503);
      // It alone accepts: what comes now waits in the kernel's queue, until long after the workers could have closed.
      service.child.kill("SIGSTOP");
      const sending = Array.from({ length: COUNT }, () => sendOne(service.http));
      await Promise.all(sending.map(({ sent }) => sent));
      const envoys = Array.from({ length: 20 }, () => connectEnvoy(service.grpc));
      const calls = envoys.map((envoy) =>
        envoy.shouldRateLimit({ domain: "d", descriptors: [descriptor({ user: "x" })] }).then(
          () => "answered",
          (error: unknown) => String(error),
        ),
      );
      await sleep(2_500);
      service.child.kill("SIGCONT");
      const outcomes = await Promise.all(sending.map(({ outcome }) => outcome));
      expect(outcomes.filter((outcome) => outcome !== "HTTP/1.1 200 OK")).toEqual([]);
      expect((await Promise.all(calls)).filter((outcome) => outcome !== "answered")).toEqual([]);
      for (const envoy of envoys) envoy.close();
      expect(await ended, service.output()).toBe(0);
    },
  );

  test("through the proxy are all answered by the upstream, those that it answers only after the signal too", async () => {
    const held: ServerResponse[] = [];
    let isOpen = false;
    const upstream = createServer((_request, response) => {
      if (isOpen) response.end("served");
      else held.push(response);
    });
    await new Promise<void>((resolve) => upstream.listen(0, "127.0.0.1", resolve));
    const { port } = upstream.address() as AddressInfo;
    const service = await startServiceProcess({
      rules,
      settings: { "drain-delay": "3s", "drain-timeout": "60s", upstream: `http://127.0.0.1:${port}` },
    });
    try {
      const sending = Array.from({ length: COUNT }, () => sendOne(service.proxy!));
      await Promise.all(sending.map(({ sent }) => sent));
      const ended = service.end("SIGTERM");
      await expect.poll(async () => (await fetch(`${service.http}/readyz`)).status).toBe(503);
      // A lame duck still takes connections, and passes on what comes by them.
      const late = Array.from({ length: 20 }, () => sendOne(service.proxy!));
      await expect.poll(() => held.length, { timeout: 30_000 }).toBe(COUNT + late.length);
      isOpen = true;
      for (const response of held) response.end("served");
      const outcomes = await Promise.all([...sending, ...late].map(({ outcome }) => outcome));
      expect(outcomes.filter((outcome) => outcome !== "HTTP/1.1 200 OK")).toEqual([]);
      expect(await ended, service.output()).toBe(0);
    } finally {
      upstream.closeAllConnections();
      upstream.close();
    }
  });

  test("over gRPC, on connections that go on sending, are all answered, and so are those that a lame duck is sent", async () => {
    // Longer than a busy machine needs to send what is begun here: a call that was never sent would show nothing.
    const service = await startServiceProcess({ rules, settings: { "drain-delay": "10s" } });
    const clients = Array.from({ length: 20 }, () => connectEnvoy(service.grpc));
    const ask = { domain: "d", descriptors: [descriptor({ user: "x" })] };
    for (const client of clients) await client.shouldRateLimit(ask);
    const send = () => clients.flatMap((client) => Array.from({ length: 10 }, () => client.shouldRateLimit(ask)));
    const before = send();
    const ended = service.end("SIGTERM");
    await expect.poll(async () => (await fetch(`${service.http}/readyz`)).status, { timeout: 9_000 }).toBe(503);
    const outcomes = await Promise.allSettled([...before, ...send()]);
    const lost = outcomes.flatMap((outcome) => (outcome.status === "rejected" ? [String(outcome.reason)] : []));
    expect(lost).toEqual([]);
    expect(outcomes).toHaveLength(2 * COUNT);
    for (const client of clients) client.close();
    expect(await ended, service.output()).toBe(0);
  });
});

test("a lame duck is not ready, still takes connections, and closes them after their answer", async () => {
  const service = await startServiceProcess({ rules, settings: { "drain-delay": "3s" } });
  const ended = service.end("SIGTERM");
  await expect.poll(async () => (await fetch(`${service.http}/readyz`)).status, { timeout: 2_000 }).toBe(503);
  const answer = await fetch(`${service.http}/v1/check`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body,
  });
  expect(answer.status).toBe(200);
  expect(answer.headers.get("connection")).toBe("close");
  expect(await ended, service.output()).toBe(0);
  await expect(fetch(`${service.http}/healthz`)).rejects.toThrow();
});

test("a second signal ends at once, and Ctrl-C waits for no load balancer", async () => {
  const patient = await startServiceProcess({ rules, settings: { "drain-delay": "1m" } });
  const ended = patient.end("SIGTERM");
  await expect.poll(async () => (await fetch(`${patient.http}/readyz`)).status).toBe(503);
  await sleep(600);
  patient.child.kill("SIGTERM");
  expect(await ended).toBe(1);
  const prompt = await startServiceProcess({ rules, settings: { "drain-delay": "1m" } });
  expect(await prompt.end("SIGINT")).toBe(0);
});

describe("what keeps an instance from starting", () => {
  test("a data folder that cannot be made is named, with status 2", async () => {
    const { status, stderr } = await runSluice([
      "serve",
      "--data-folder",
      "/proc/x",
      "--port",
      "0",
      "--grpc-port",
      "0",
    ]);
    expect(status).toBe(2);
    expect(stderr).toContain('data-folder: expected a folder that can be made and written, got "/proc/x"');
  });

  test("a data folder that another instance counts in is named, with its process; after a crash it is free", async () => {
    const first = await startServiceProcess();
    const second = await runSluice(["serve", "--data-folder", first.folder, "--port", "0", "--grpc-port", "0"]);
    expect(second.status).toBe(2);
    expect(second.stderr).toContain(`is in use by process ${first.child.pid}`);
    first.child.kill("SIGKILL");
    await new Promise((resolve) => first.child.once("exit", resolve));
    const third = await startServiceProcess({ settings: { "data-folder": first.folder } });
    expect(await third.end()).toBe(0);
    await first.end();
  });

  test.each([
    ["port", (service: { http: string }) => new URL(service.http).port],
    ["grpc-port", (service: { grpc: string }) => service.grpc.split(":")[1]!],
  ] as const)("a taken %s is named with its setting and EADDRINUSE", async (setting, portOf) => {
    const service = await startServiceProcess();
    const ports = { port: "0", "grpc-port": "0", [setting]: portOf(service) };
    const flags = Object.entries(ports).flatMap(([name, port]) => [`--${name}`, port]);
    const { status, stderr } = await runSluice(["serve", ...flags], { cwd: makeTempFolder("taken") });
    expect(status).toBe(1);
    expect(stderr).toMatch(new RegExp(`${setting}: port ${portOf(service)} on 127.0.0.1 is taken \\(EADDRINUSE\\)`));
    await service.end();
  });
});
