/** `sluice bench` against a real service, and against servers that fail in each way that one can. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { program } from "../../packages/server/src/cli/main.js";
import { freePort } from "../harness/free-port.js";
import { leashProcess } from "../harness/leash.js";
import { type RunningService, runSluice, startTestService } from "./running-service.js";

let service: RunningService;
beforeAll(async () => {
  service = await startTestService({
    rules: [
      { id: "per-user", key: ["user"], algorithm: "fixed-window", limit: 2, window: "1d" },
      { id: "per-org", key: ["org"], algorithm: "fixed-window", limit: 30, window: "1d" },
    ],
    settings: { "api-token": "a-token-for-the-bench" },
  });
});
afterAll(() => service.close());

const bench = (...args: string[]) =>
  runSluice(["bench", ...args, "--server", service.http], { env: { SLUICE_API_TOKEN: "a-token-for-the-bench" } });

test("counts decisions, and refusals by rule; the check of the address charges nothing", async () => {
  const { status, stdout, stderr } = await bench("--requests", "300", "--keys", "100", "--json");
  expect([status, stderr]).toEqual([0, ""]);
  const report = JSON.parse(stdout);
  expect(report).toEqual({
    server: service.http,
    loop: "closed",
    connections: 8,
    keys: 100,
    ended: "requests",
    requests: 300,
    requestsPerSecond: expect.any(Number),
    seconds: expect.any(Number),
    latencyMs: { p50: expect.any(Number), p95: expect.any(Number), p99: expect.any(Number), max: expect.any(Number) },
    allowed: 200,
    refused: 100,
    refusedBy: { "per-user": 100 },
    degraded: 0,
    held: 0,
    errors: 0,
    errorsBy: {},
    unsent: 0,
    clientUtilisation: expect.any(Number),
  });
  const { p50, p95, p99, max } = report.latencyMs;
  expect([p50, p95, p99, max]).toEqual([p50, p95, p99, max].sort((a, b) => a - b));
  expect(p50).toBeGreaterThan(0);
});

test("a table for people: attributes and cost are sent, an open loop says so", async () => {
  const { status, stdout } = await bench("org=acme", "user=o-{n}", "--cost", "2", "--requests", "60", "--rate", "400");
  expect(status).toBe(0);
  expect(stdout).toMatch(/open loop at 400 requests a second, 8 connections, 1,000 keys; checks charge its counters\n/);
  expect(stdout).toMatch(/^allowed +15 \(25 %\)$/m);
  expect(stdout).toMatch(/^refused by per-org +45 \(75 %\)$/m);
  expect(stdout).toMatch(/^latency p99 +[\d.]+ m?s$/m);
  expect(stdout).not.toMatch(/Closed loop/);
});

test("exit 1 where nobody answers or the token is missing, 2 for misuse, and nothing is sent to other machines", async () => {
  const port = await freePort();
  const away = await runSluice(["bench", "--server", `http://127.0.0.1:${port}`]);
  expect(away.status).toBe(1);
  expect(away.stderr).toContain(`http://127.0.0.1:${port} did not answer: nothing listens there`);
  const tokenless = await runSluice(["bench", "--server", service.http], { env: { SLUICE_API_TOKEN: "" } });
  expect(tokenless.status).toBe(1);
  expect(tokenless.stderr).toMatch(/401.*--token or SLUICE_API_TOKEN/);
  const foreign = await runSluice(["bench", "--server", "http://192.0.2.1"]);
  expect(foreign.status).toBe(2);
  expect(foreign.stderr).toContain("192.0.2.1 is not this machine");
  for (const args of [["--duration", "0s"], ["--nonsense"]]) {
    const { status, stdout } = await bench(...args);
    expect([args, status, stdout]).toEqual([args, 2, ""]);
  }
});

const bin = fileURLToPath(new URL("../../packages/server/bin/sluice.js", import.meta.url));

/** A server whose answer depends on the user's number; the check of the address is always answered. */
async function startPeer(answer: (user: number, response: ServerResponse) => void): Promise<string> {
  const server = createServer(async (request: IncomingMessage, response) => {
    let text = "";
    for await (const part of request) text += part;
    const { attributes, cost } = JSON.parse(text);
    if (cost === 0) allow(response);
    else answer(Number(attributes.user.slice("bench-".length)), response);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const allow = (response: ServerResponse): void => void response.end(JSON.stringify({ allowed: true }));

test("errors are counted by kind: problems, foreign answers, redirects, resets, deadlines", async () => {
  const server = await startPeer((user, response) => {
    if (user === 0) allow(response);
    if (user === 1) response.writeHead(503).end(JSON.stringify({ code: "overloaded" }));
    if (user === 2) response.end("<html>");
    if (user === 3) response.writeHead(302, { location: "http://192.0.2.1/" }).end("{}");
    if (user === 4) response.destroy();
    // User 5 gets no answer.
  });
  const run = ["bench", "--server", server, "--requests", "12", "--keys", "6", "--connections", "12"];
  const { status, stdout } = await runSluice([...run, "--timeout", "3s", "--json"]);
  expect(status).toBe(0);
  expect(JSON.parse(stdout)).toMatchObject({
    requests: 12,
    allowed: 2,
    errors: 10,
    errorsBy: { "503 overloaded": 2, "200, not JSON": 2, "302": 2, ECONNRESET: 2, timeout: 2 },
  });
});

test("a service that goes away ends the run with status 1, and what was measured is printed", async () => {
  let asked = 0;
  const server = await startPeer((_user, response) => {
    if (++asked <= 50) allow(response);
    else response.destroy();
  });
  const { status, stdout, stderr } = await runSluice(["bench", "--server", server, "--duration", "10m", "--json"]);
  expect(status).toBe(1);
  expect(JSON.parse(stdout)).toMatchObject({ ended: "failed", allowed: 50 });
  expect(stderr).toContain(`${server} did not answer: ECONNRESET`);
});

test("ctrl-c prints what was measured so far", async () => {
  let asked = 0;
  const server = await startPeer((_user, response) => {
    allow(response);
    if (++asked === 50) child.kill("SIGINT");
  });
  const args = [bin, "bench", "--server", server, "--duration", "10m", "--json"];
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
  leashProcess(child);
  let stdout = "";
  child.stdout.on("data", (chunk) => {
    stdout += chunk;
  });
  const [status] = await once(child, "close");
  expect(status).toBe(0);
  const { ended, requests, allowed, errors } = JSON.parse(stdout);
  expect([ended, errors, allowed]).toEqual(["interrupted", 0, requests]);
  // Up to eight answers were still on their way.
  expect(requests).toBeGreaterThanOrEqual(50 - 8);
});

test("docs/cli.md lists every command", async () => {
  const page = readFileSync(new URL("../../docs/cli.md", import.meta.url), "utf8");
  const { commands } = await program(undefined);
  expect(commands.length).toBeGreaterThan(20);
  expect(commands.map((command) => command.name()).filter((name) => !page.includes(`| \`sluice ${name}`))).toEqual([]);
});
