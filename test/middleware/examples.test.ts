/** Every example is started as its first lines say, asked until it refuses, and stopped. */
import { execFile } from "node:child_process";
import { readdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";
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

test("examples/client.mjs is never refused", async () => {
  const { stdout } = await promisify(execFile)(process.execPath, ["examples/client.mjs"], {
    cwd: root,
    timeout: 30_000,
  });
  expect(stdout.match(/ 200 /g)?.length).toBe(12);
  expect(stdout).toContain("0 refused");
});
