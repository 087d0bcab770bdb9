/** Every example is started as its first lines say, asked until it refuses, and stopped. */
import { execFile } from "node:child_process";
import { readdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test, vi } from "vitest";
import { startServerProcess } from "../harness/server-process.js";

const root = fileURLToPath(new URL("../..", import.meta.url));
const examples = readdirSync(`${root}/examples`).filter((name) => name.endsWith(".mjs"));
const servers = examples.filter((name) => name !== "client.mjs");

test("there is an example for each entry point that serves or calls", () => {
  const expected = ["client", "express", "express-rate-limit", "fastify", "hono", "koa", "nest"];
  expect(examples).toEqual(expect.arrayContaining(expected.map((name) => `${name}.mjs`)));
});

test.each(servers)("examples/%s serves five requests and refuses the sixth", async (name) => {
  const example = await startServerProcess({
    command: process.execPath,
    args: [`examples/${name}`],
    cwd: root,
    env: { PORT: "0" },
    readyLine: /listening on http:\/\/\S+:\d+/,
  });
  try {
    const url = /http:\/\/\S+:\d+/.exec(example.log())![0];
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
  const example = await startServerProcess({
    command: process.execPath,
    args: ["examples/downloads/server.mjs"],
    cwd: root,
    env: { PORT: "0" },
    readyLine: /listening on http:\/\/\S+:\d+/,
  });
  try {
    const url = /http:\/\/\S+:\d+/.exec(example.log())![0];
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
    expect((await (await file("large")).arrayBuffer()).byteLength).toBe(6_000_000);
    expect(await used()).toBe(6_101_000);
    // There is no room for a second one, but for a small one.
    expect((await file("large")).status).toBe(429);
    expect((await file("small")).status).toBe(200);
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
