/** Every example is started as its first lines say, asked until it refuses, and stopped. */
import { execFile } from "node:child_process";
import { once } from "node:events";
import { readdirSync } from "node:fs";
import { connect } from "node:net";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test, vi } from "vitest";
import { type ServerProcess, startServerProcess } from "../harness/server-process.js";

const root = fileURLToPath(new URL("../..", import.meta.url));
const examples = readdirSync(`${root}/examples`).filter((name) => name.endsWith(".mjs"));
const servers = examples.filter((name) => name !== "client.mjs");

test("there is an example for each entry point that serves or calls", () => {
  const expected = ["client", "express", "express-rate-limit", "fastify", "hono", "koa", "nest"];
  expect(examples).toEqual(expect.arrayContaining(expected.map((name) => `${name}.mjs`)));
});

async function startExample(file: string): Promise<{ example: ServerProcess; url: string }> {
  const example = await startServerProcess({
    command: process.execPath,
    args: [`examples/${file}`],
    cwd: root,
    env: { PORT: "0" },
    readyLine: /listening on http:\/\/\S+:\d+/,
  });
  return { example, url: /http:\/\/\S+:\d+/.exec(example.log())![0] };
}

test.each(servers)("examples/%s serves five requests and refuses the sixth", async (name) => {
  const { example, url } = await startExample(name);
  try {
    const responses: Response[] = [];
    for (let i = 0; i < 6; i++) responses.push(await fetch(url));
    expect(responses.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200, 429]);
    expect(await responses[0]!.json()).toMatchObject({ hello: "world" });
    expect(Number(responses[5]!.headers.get("retry-after"))).toBeGreaterThan(0);
    expect(responses[5]!.headers.get("ratelimit")).toMatch(/^"[^"]+"; ?r=0; ?t=\d+$/);
  } finally {
    await example.stop();
  }
});

test("examples/downloads charges the bytes that were sent, of ranges too, and none for HEAD", async () => {
  const { example, url } = await startExample("downloads/server.mjs");
  try {
    const file = (name: string, init: RequestInit = {}): Promise<Response> => fetch(`${url}/files/${name}`, init);
    /** Settled behind the response, together with the lease: whoever sees four places sees what was charged. */
    const used = async (): Promise<number> => {
      let left: Record<string, number> = {};
      await vi.waitFor(
        async () => {
          left = (await (await fetch(`${url}/left`)).json()) as Record<string, number>;
          expect(left["at-once"]).toBe(4);
        },
        { timeout: 10_000, interval: 5 },
      );
      return 10_000_000 - left.egress!;
    };
    await (await file("small")).arrayBuffer();
    expect(await used()).toBe(100_000);
    await file("large", { method: "HEAD" });
    expect((await file("absent")).status).toBe(404);
    expect(await used()).toBe(100_000);
    const range = await file("large", { headers: { range: "bytes=5-1004" } });
    expect([range.status, (await range.arrayBuffer()).byteLength]).toEqual([206, 1_000]);
    expect(await used()).toBe(101_000);
    const behind = await file("large", { headers: { range: "bytes=9999999-" } });
    expect([behind.status, behind.headers.get("content-range")]).toEqual([416, "bytes */6000000"]);
    for (const range of ["nonsense", "bytes=0-4,9-12"]) {
      const whole = await file("small", { headers: { range } });
      expect([whole.status, (await whole.arrayBuffer()).byteLength]).toEqual([200, 100_000]);
    }
    expect(await used()).toBe(301_000);
    expect((await (await file("large")).arrayBuffer()).byteLength).toBe(6_000_000);
    expect(await used()).toBe(6_301_000);
    // There is no room for a second one, but for a small one.
    expect((await file("large")).status).toBe(429);
    expect((await file("small")).status).toBe(200);
  } finally {
    await example.stop();
  }
});

test("examples/downloads charges a client that leaves what it was sent, not the file", async () => {
  const { example, url } = await startExample("downloads/server.mjs");
  try {
    // A client that reads nothing: what is sent to it waits in the buffers of two sockets.
    const socket = connect(Number(new URL(url).port), "127.0.0.1").pause();
    socket.write("GET /files/large HTTP/1.1\r\nHost: x\r\n\r\n");
    await once(socket, "readable");
    socket.destroy();
    const left = async () => (await (await fetch(`${url}/left`)).json()) as { egress: number; "at-once": number };
    await vi.waitFor(async () => expect((await left())["at-once"]).toBe(4), { timeout: 10_000, interval: 5 });
    const used = 10_000_000 - (await left()).egress;
    expect([used > 0, used < 6_000_000]).toEqual([true, true]);
  } finally {
    await example.stop();
  }
});

test("examples/client.mjs is never refused", async () => {
  const { stdout } = await promisify(execFile)(process.execPath, ["examples/client.mjs"], {
    cwd: root,
    timeout: 30_000,
  });
  expect(stdout.match(/^ *\d+ {2}200 /gm)?.length).toBe(12);
  expect(stdout).toContain("0 refused");
});
