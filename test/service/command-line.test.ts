/** `sluice check|peek|explain|release|reset|top` against a running service, as a shell would use them. */

import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Rule } from "sluice";
import { afterAll, beforeAll, expect, test } from "vitest";
import { freePort } from "../harness/free-port.js";
import { runSluice, type ServiceProcess, startServiceProcess } from "./running-service.js";

const rules: Rule[] = [
  { id: "per-user", key: ["user"], algorithm: "fixed-window", limit: 2, window: "1d" },
  { id: "places", key: ["job"], algorithm: "concurrency", limit: 1 },
  {
    id: "bytes",
    key: ["org"],
    algorithm: "fixed-window",
    limit: 100,
    window: "1d",
    cost: { attribute: "bytes" },
    estimate: { default: 50, overrun: "stop" },
  },
];

let service: ServiceProcess;
beforeAll(async () => {
  service = await startServiceProcess({ rules });
});
afterAll(() => service.end());

const sluice = (...args: string[]) => runSluice([...args, "--server", service.http]);

test("check is 0 when allowed and 3 when refused, and says by which rule", async () => {
  expect((await sluice("check", "user=42", "path=/v1/x")).status).toBe(0);
  const second = await sluice("check", "user=42", "--json");
  expect(JSON.parse(second.stdout)).toMatchObject({ allowed: true, remaining: 0 });
  const third = await sluice("check", "user=42");
  expect(third.status).toBe(3);
  expect(third.stdout).toMatch(/^refused by per-user: limit, retry after \d+ (h|min|s)/);
  expect(third.stdout).toContain("per-user  enforce  refused: limit  0");
  // No colour and no frames where the output is piped.
  expect(third.stdout).not.toContain("\u001b");
  expect(third.stdout).not.toContain("│");
});

test("peek looks without charging and is always 0; --cost and --id are sent", async () => {
  for (let i = 0; i < 3; i++) expect((await sluice("peek", "user=7")).status).toBe(0);
  await sluice("check", "user=7", "--cost", "2", "--id", "once");
  await sluice("check", "user=7", "--cost", "2", "--id", "once");
  expect(JSON.parse((await sluice("peek", "user=7", "--json")).stdout)).toMatchObject({ allowed: false, remaining: 0 });
});

test("charge is never refused, and shows how far a counter is past its limit", async () => {
  const charged = await sluice("charge", "user=8", "--cost", "5");
  expect(charged.status).toBe(0);
  expect(charged.stdout).toMatch(/^allowed\n[\s\S]*per-user {2}enforce {2}allowed {2}-3 /);
  expect((await sluice("check", "user=8")).status).toBe(3);
});

test("charge notes the rules that take their cost from an attribute instead of --cost", async () => {
  const elsewhere = await sluice("charge", "org=noted", "--cost", "70");
  expect([elsewhere.status, elsewhere.stderr]).toEqual([
    0,
    "note: bytes counts bytes, not --cost, and charged 1: pass bytes=70\n",
  ]);
  expect(elsewhere.stdout).toMatch(/bytes {2}enforce {2}allowed {2}99 /);
  const meant = await sluice("charge", "org=noted", "bytes=70", "--cost", "70");
  expect([meant.stderr, meant.stdout]).toEqual(["", expect.stringMatching(/bytes {2}enforce {2}allowed {2}29 /)]);
});

test("a reservation is settled, extended and cancelled by its id, and each says what it did", async () => {
  const reserve = async (): Promise<string> =>
    JSON.parse((await sluice("check", "org=acme", "--json")).stdout).reservation.id as string;
  const [first, second] = [await reserve(), await reserve()];
  expect((await sluice("settle", first, "bytes=70")).stdout).toBe(
    "settled\n  bytes: 70, 20 of them beyond what was held\n",
  );
  expect((await sluice("extend", second, "bytes=900")).status).toBe(3);
  expect((await sluice("cancel", second)).stdout).toBe("settled\n  bytes: 0\n");
  expect((await sluice("settle", second)).status).toBe(2);
  expect((await sluice("check", "org=other")).stdout).toMatch(
    /\nreservation \S+ \(holds 50 of bytes; ends after 5 min\)\n$/,
  );
});

test("explain tells why each rule applies or not", async () => {
  const { stdout } = await sluice("explain", "user=9");
  expect(stdout).toMatch(/per-user +yes +applies to every request that has user +nothing +now/);
  expect(stdout).toMatch(/places +no/);
  await sluice("check", "user=9", "--cost", "2");
  const used = (await sluice("explain", "user=9")).stdout;
  expect(used).toMatch(/2 counted, the last at 20\d\d-\S+Z +20\d\d-\S+Z/);
});

test("explain tells what a request would hold, and how much debt there is to be paid first", async () => {
  await sluice("charge", "org=debtor", "bytes=130");
  const { stdout } = await sluice("explain", "org=debtor");
  expect(stdout).toMatch(/\nbytes would hold 50 requests \(too little is known yet\); this instance: \d+ held, /);
  expect(stdout).toMatch(/bytes {2}enforce {2}refused: limit {2}-30 /);
  expect(JSON.parse((await sluice("explain", "org=debtor", "--json")).stdout)).toMatchObject({
    allowed: false,
    debt: 30,
    rules: expect.arrayContaining([
      expect.objectContaining({
        rule: "bytes",
        costAttribute: "bytes",
        estimate: expect.objectContaining({ holds: 50 }),
      }),
    ]),
  });
});

test("release frees a lease", async () => {
  const held = JSON.parse((await sluice("check", "job=nightly", "--json")).stdout);
  expect((await sluice("check", "job=nightly")).status).toBe(3);
  expect((await sluice("release", held.lease.id)).stdout).toBe("released\n");
  expect((await sluice("release", held.lease.id)).stdout).toBe("was not held any more\n");
});

test("reset forgets a key, with the admin token", async () => {
  await sluice("check", "user=reset", "--cost", "2");
  const token = readFileSync(join(service.folder, "admin-token"), "utf8").trim();
  expect((await sluice("reset", "per-user", "user=reset")).status).toBe(1);
  expect((await sluice("reset", "per-user", "user=reset", "--token", token)).status).toBe(0);
  expect((await sluice("check", "user=reset", "--cost", "2")).status).toBe(0);
  const unknown = await sluice("reset", "no-such-rule", "user=1", "--token", token);
  expect([unknown.status, unknown.stderr]).toEqual([1, expect.stringContaining("unknown-rule")]);
});

test("top shows rates, rules and keys once, as text or JSON, and asks for the admin token", async () => {
  const token = readFileSync(join(service.folder, "admin-token"), "utf8").trim();
  const refused = await sluice("top", "--once", "--token", "not-the-admin-token");
  expect([refused.status, refused.stderr]).toEqual([1, expect.stringContaining("unauthorized")]);
  const { live, topKeys } = JSON.parse((await sluice("top", "--once", "--json", "--token", token)).stdout);
  expect(live).toMatchObject({ instances: 1, store: { kind: "memory", state: "up" }, rules: expect.any(Array) });
  expect(topKeys).toMatchObject({ window: "hour", by: "traffic", keys: expect.any(Array) });
  const { status, stdout } = await sluice("top", "--once", "--token", token);
  expect(status).toBe(0);
  for (const text of ["allowed", "refused", "latency", "store memory up", "busiest rules", "top keys, last hour"]) {
    expect(stdout).toContain(text);
  }
});

test.each([
  ["an attribute without a value", ["check", "user"], "expected attributes such as user=42"],
  ["a cost that is none", ["check", "user=1", "--cost", "-1"], "--cost: expected a whole number"],
  ["an unknown command", ["chekc"], "unknown command"],
  ["an unknown option", ["check", "--colour"], "unknown option"],
])("%s is misuse: 2", async (_what, args, message) => {
  const { status, stderr } = await runSluice(args);
  expect(status).toBe(2);
  expect(stderr).toContain(message);
});

test("a service that is not there fails with 1 and a hint", async () => {
  const port = await freePort();
  const server = `http://127.0.0.1:${port}`;
  for (const command of [
    ["check", "user=1"],
    ["rules", "list"],
  ]) {
    const { status, stderr } = await runSluice([...command, "--server", server]);
    expect(status).toBe(1);
    expect(stderr).toContain(
      `${server} did not answer: nothing listens there. Start it with "sluice serve --port ${port}"`,
    );
  }
  // A port that fetch itself refuses to speak to.
  const barred = await runSluice(["check", "user=1", "--server", "http://127.0.0.1:9"]);
  expect(barred.stderr).toContain("http://127.0.0.1:9 was not asked: browsers and fetch never call this port");
});

test("without an admin token, commands that need one say where they look for it", async () => {
  for (const command of [
    ["reset", "per-user", "user=1"],
    ["rules", "list"],
  ]) {
    const { status, stderr } = await sluice(...command);
    expect(status).toBe(1);
    for (const place of ["--token", "SLUICE_ADMIN_TOKEN", ".sluice/admin-token"]) expect(stderr).toContain(place);
  }
});

test("a folder instead of a rule file is told as such", async () => {
  const { status, stderr } = await runSluice(["rules", "lint", "."], { cwd: service.folder });
  expect([status, stderr]).toEqual([2, ".: is a folder; name its files, such as rules/*.yaml\n"]);
});

test("the list of commands is grouped, and its descriptions stand in one column of a terminal of 80", async () => {
  const { stdout } = await runSluice(["--help"]);
  for (const heading of ["Run the service:", "Decide:", "Rules and keys:", "Operate:", "Choose limits:", "More:"])
    expect(stdout).toContain(`\n${heading}\n  `);
  expect(stdout).not.toContain("Commands:");
  const [, term] = /^( {2}serve +)serve HTTP/m.exec(stdout)!;
  expect(term!.length).toBeLessThan(24);
  expect(stdout.split("\n").filter((line) => line.length > 80)).toEqual([]);
});

test("help and version are 0", async () => {
  expect((await runSluice(["--version"])).stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
  for (const command of ["serve", "check", "peek", "explain", "release", "reset", "top", "rules"]) {
    const { status, stdout } = await runSluice([command, "--help"]);
    expect([command, status]).toEqual([command, 0]);
    expect(stdout).toContain("Usage: sluice");
  }
});
