/**
 * Bad input, large input, slow input and no input: no crash, no 5xx, and memory back to its level.
 * The service runs as a process of its own, so that its memory and its end can be seen.
 */
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import fc from "fast-check";
import type { Rule } from "sluice";
import { afterAll, beforeAll, expect, test } from "vitest";
import { LoadConnections } from "./load-connections.js";
import { postJson, type ServiceProcess, startServiceProcess } from "./running-service.js";

const rules: Rule[] = [
  { id: "per-user", key: ["user"], algorithm: "fixed-window", limit: 100, window: "1h" },
  {
    id: "by-tokens",
    key: ["user"],
    match: { kind: "llm" },
    algorithm: "token-bucket",
    limit: 100,
    window: "1h",
    cost: { attribute: "tokens" },
  },
  {
    id: "reserved",
    key: ["user"],
    match: { kind: "reserving" },
    algorithm: "fixed-window",
    limit: 1_000,
    window: "365d",
    cost: { attribute: "tokens" },
    estimate: { default: 100, ttl: "1h" },
  },
];

let service: ServiceProcess;
beforeAll(async () => {
  service = await startServiceProcess({ rules });
});
afterAll(async () => {
  expect(service.child.exitCode).toBeNull();
  expect(await service.end()).toBe(0);
});

const alive = async (): Promise<void> => {
  const { status, body } = await postJson(`${service.http}/v1/check`, {
    attributes: { user: `alive-${Math.random()}` },
  });
  expect([status, body.allowed]).toEqual([200, true]);
};
const port = (): number => Number(new URL(service.http).port);

test("random bodies on every route are answered 2xx or 4xx", async () => {
  const routes = [
    "/v1/check",
    "/v1/check/batch",
    "/v1/peek",
    "/v1/explain",
    "/v1/release",
    "/v1/renew",
    "/v1/refund",
    "/v1/settle",
    "/v1/extend",
    "/v1/cancel",
    "/v1/charge",
    "/v1/forward-auth",
    "/json",
  ];
  const connections = new LoadConnections({ url: service.http, count: 8 });
  const nearly = fc.oneof(
    fc.string(),
    fc.json(),
    fc
      .record({ attributes: fc.object({ maxDepth: 2 }), cost: fc.anything(), id: fc.anything() }, { requiredKeys: [] })
      .map((value) => JSON.stringify(value) ?? ""),
    fc
      .record({ attributes: fc.dictionary(fc.string(), fc.oneof(fc.string(), fc.integer(), fc.boolean())) })
      .map((value) => JSON.stringify(value)),
    fc.record({ lease: fc.string(), id: fc.string() }).map((value) => JSON.stringify(value)),
    fc
      .record({ reservation: fc.string(), attributes: fc.object({ maxDepth: 1 }) })
      .map((value) => JSON.stringify(value)),
    fc.record({ domain: fc.anything(), descriptors: fc.anything() }).map((value) => JSON.stringify(value) ?? ""),
  );
  const statuses = new Map<number, number>();
  await fc.assert(
    fc.asyncProperty(fc.constantFrom(...routes), nearly, async (route, body) => {
      const { status } = await connections.send("POST", route, { body });
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
      expect(status).toBeLessThan(500);
    }),
    { numRuns: 1_500 },
  );
  console.log(`statuses: ${[...statuses].map(([status, count]) => `${status} × ${count}`).join(", ")}`);
  connections.close();
  await alive();
});

test("a reservation is settled by its own id alone, at a whole number, once", async () => {
  const post = async (route: string, body: unknown) => await postJson(`${service.http}/v1/${route}`, body);
  const reserve = async (user: string): Promise<string> => {
    const { body } = await post("check", { attributes: { user, kind: "reserving" } });
    return (body.reservation as { id: string }).id;
  };
  const left = async (user: string): Promise<unknown> => {
    const { body } = await post("peek", { attributes: { user, kind: "reserving", tokens: 0 } });
    return (body.checks as { rule: string; remaining: number }[]).find(({ rule }) => rule === "reserved")?.remaining;
  };
  const [mine, victims] = [await reserve("mallory"), await reserve("victim")];
  const [name, where, spelled] = mine.split(".") as [string, string, string];
  const [victimsName, , victimsSpelled] = victims.split(".") as [string, string, string];
  const forged = Buffer.from(Buffer.from(spelled, "base64url").toString().replace("mallory", "victim"));
  const foreign = [
    `${name}.${where}.${victimsSpelled}`,
    `${name}.${where}.${forged.toString("base64url")}`,
    `${"A".repeat(victimsName.length)}.${where}.${victimsSpelled}`,
  ];
  for (const reservation of foreign) {
    for (const route of ["settle", "cancel"]) {
      const { status, body } = await post(route, {
        reservation,
        ...(route === "settle" && { attributes: { tokens: 0 } }),
      });
      expect([status, body]).toMatchObject([200, { settled: false, reason: "unknown" }]);
    }
    expect((await post("extend", { reservation, attributes: { tokens: 900 } })).status).toBeGreaterThanOrEqual(400);
  }
  for (const tokens of [-1, 0.5, 1e300, 2 ** 53, "1e3", "-0", "0x10", "NaN", " 7", null, [7], { n: 7 }]) {
    for (const route of ["settle", "extend"]) {
      const { status } = await post(route, { reservation: mine, attributes: { tokens } });
      expect([tokens, route, status]).toEqual([tokens, route, 400]);
    }
  }
  expect([await left("mallory"), await left("victim")]).toEqual([900, 900]);
  // Extended in a loop, it holds what was asked for last, and one settlement ends it.
  for (let tokens = 101; tokens <= 300; tokens++) {
    const { body } = await post("extend", { reservation: mine, attributes: { tokens } });
    expect(body.allowed).toBe(true);
  }
  expect(await left("mallory")).toBe(700);
  const first = await post("settle", { reservation: mine, attributes: { tokens: 5 } });
  expect(first.body).toMatchObject({ settled: true, charged: { reserved: 5 } });
  for (const tokens of [0, 999, Number.MAX_SAFE_INTEGER]) {
    expect((await post("settle", { reservation: mine, attributes: { tokens } })).body).toEqual(first.body);
  }
  expect((await post("extend", { reservation: mine, attributes: { tokens: 900 } })).status).toBeGreaterThanOrEqual(400);
  expect([await left("mallory"), await left("victim")]).toEqual([995, 900]);
});

test("headers of 1 MB are 431, targets of 1 MB too", async () => {
  for (const text of [
    `GET /healthz HTTP/1.1\r\nHost: x\r\nX-Large: ${"a".repeat(1_000_000)}\r\n\r\n`,
    `GET /${"a".repeat(1_000_000)} HTTP/1.1\r\nHost: x\r\n\r\n`,
    `GET /healthz HTTP/1.1\r\nHost: x\r\n${"X-A: b\r\n".repeat(100_000)}\r\n`,
  ]) {
    expect(await sendRaw(text)).toMatch(/^HTTP\/1\.1 431 /);
  }
  await alive();
});

test("bytes that are no HTTP are 400 and end the connection", async () => {
  for (const text of [
    "\0\0\0\0",
    "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "\x16\x03\x01\x02\x00\x01",
    "GET\r\n\r\n",
    "GET / HTTP/9.9\r\n\r\n",
  ]) {
    expect(await sendRaw(text)).toMatch(/^(HTTP\/1\.1 (400|505) |$)/);
  }
  await alive();
});

test("HTTP/1.1 without a host is a problem like any other, HTTP/1.0 needs none, and nothing behind it is read", async () => {
  const check = (user: string) => JSON.stringify({ attributes: { user } });
  const lines = (version: string, body: string) =>
    `POST /v1/check HTTP/${version}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
  const answer = await sendRaw(lines("1.1", check("no-host")).repeat(2));
  expect(answer.match(/HTTP\/1\.1 \d+/g)).toEqual(["HTTP/1.1 400"]);
  expect(answer).toContain("application/problem+json");
  expect(answer).toContain("host: expected one, got none");
  expect(await sendRaw(lines("1.0", check("no-host")))).toMatch(/^HTTP\/1\.1 200 /);
  const { body } = await postJson(`${service.http}/v1/peek`, { attributes: { user: "no-host" } });
  expect(body.remaining).toBe(99);
});

test("a body that never comes is waited for no longer than its time, and holds nobody else", async () => {
  const stuck = await Promise.all(
    Array.from({ length: 50 }, () =>
      openSocket("POST /v1/check HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 50\r\n\r\n{"),
    ),
  );
  const ended = stuck.map((socket) => once(socket, "close"));
  const first = await Promise.race([
    alive().then(() => "answered"),
    Promise.race(ended).then(() => "a stuck one ended"),
  ]);
  expect(first).toBe("answered");
  await Promise.all(ended);
});

test("10 000 idle connections cost little, hold nobody, and leave nothing behind", async () => {
  const liveMbOnce = async (isReached: (mb: number) => boolean): Promise<number> => {
    let mb = await service.liveMb();
    for (let looks = 0; looks < 40 && !isReached(mb); looks++) {
      await sleep(500);
      mb = await service.liveMb();
    }
    return mb;
  };
  const openAndClose = async (): Promise<{ heldMb: number; leftMb: number }> => {
    const sockets: Socket[] = [];
    for (let batch = 0; batch < 20; batch++) {
      sockets.push(...(await Promise.all(Array.from({ length: 500 }, () => openSocket("")))));
    }
    await alive();
    // A connection that a client has is not yet one that the service has accepted, and the service hears of each close by itself: on a
    // busy machine both take a while.
    const heldMb = await liveMbOnce((mb) => mb > beforeMb + 10);
    for (const socket of sockets) socket.destroy();
    return { heldMb, leftMb: await liveMbOnce((mb) => mb < beforeMb + 5) };
  };
  const beforeMb = await service.liveMb();
  const first = await openAndClose();
  const second = await openAndClose();
  const spell = ({ heldMb, leftMb }: typeof first): string => `${heldMb.toFixed(1)} -> ${leftMb.toFixed(1)} MB`;
  console.log(
    `10 000 idle connections, twice: live memory ${beforeMb.toFixed(1)} -> ${spell(first)}, then ${spell(second)}`,
  );
  expect(first.heldMb).toBeGreaterThan(beforeMb + 10);
  expect(second.leftMb).toBeLessThan(beforeMb + 5);
});

test("memory is back at its level after a flood of distinct large requests", async () => {
  const connections = new LoadConnections({ url: service.http, count: 16 });
  const flood = async (): Promise<void> => {
    let next = 0;
    await Promise.all(
      Array.from({ length: 16 }, async () => {
        while (next++ < 3_000) {
          await connections.send("POST", "/v1/peek", {
            body: JSON.stringify({ attributes: { user: `${next}-${"x".repeat(20_000)}` } }),
          });
        }
      }),
    );
  };
  await flood();
  const beforeMb = await service.liveMb();
  await flood();
  await flood();
  await sleep(500);
  const leftMb = await service.liveMb();
  console.log(`60 MB of requests, twice: live memory ${beforeMb.toFixed(1)} -> ${leftMb.toFixed(1)} MB`);
  expect(leftMb).toBeLessThan(beforeMb + 10);
  connections.close();
});

async function openSocket(text: string): Promise<Socket> {
  const socket = connect(port(), "127.0.0.1");
  socket.on("error", () => undefined);
  await once(socket, "connect");
  socket.resume();
  if (text !== "") socket.write(text);
  return socket;
}

/** What comes back until the connection ends. */
async function sendRaw(text: string): Promise<string> {
  const socket = connect(port(), "127.0.0.1");
  let received = "";
  socket.on("data", (chunk) => {
    received += chunk;
  });
  // A server that has answered and closed while we still send resets the connection; the answer has been read by then.
  socket.on("error", () => undefined);
  const ended = new Promise((resolve) => socket.once("close", resolve));
  socket.write(text);
  const patience = setTimeout(() => socket.destroy(), 12_000);
  await ended;
  clearTimeout(patience);
  return received;
}
