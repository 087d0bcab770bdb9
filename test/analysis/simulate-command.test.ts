/** `sluice simulate` and `sluice suggest` as they are typed: the built command, on logs of which every answer is known. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { createLimiter, type Rule } from "sluice";
import { virtualClock } from "sluice/testing";
import { expect, test } from "vitest";
import { makeTempFolder } from "../harness/leash.js";

const program = fileURLToPath(new URL("../../packages/server/bin/sluice.js", import.meta.url));
const folder = makeTempFolder("analysis");

interface Ended {
  readonly status: number | null;
  readonly out: string;
  readonly err: string;
}

function sluice(args: readonly string[], input: string | Buffer = ""): Promise<Ended> {
  return new Promise((resolve) => {
    const child = spawn(process.execPath, [program, ...args], { cwd: folder });
    let out = "";
    let err = "";
    child.stdout.on("data", (chunk) => (out += chunk));
    child.stderr.on("data", (chunk) => (err += chunk));
    child.on("close", (status) => resolve({ status, out, err }));
    child.stdin.on("error", () => {}).end(input);
  });
}

function write(name: string, content: string | Buffer): string {
  writeFileSync(join(folder, name), content);
  return name;
}

const START_MS = Date.UTC(2026, 10, 16, 7);
const rulesFile = (name: string, rules: readonly Rule[]): string => write(name, JSON.stringify({ rules }));
const perIp = (limit: number): Rule => ({
  id: "per-ip",
  key: ["ip"],
  algorithm: "rolling-window",
  limit,
  window: "10s",
});

/** `template`: with ms, so that windows can be counted by hand. */
const format = '$remote_addr $msec "$request" $request_time';
const line = (ip: string, atMs: number, { path = "/v1/x", tookMs = 0 } = {}): string =>
  `${ip} ${((START_MS + atMs + tookMs) / 1_000).toFixed(3)} "GET ${path} HTTP/1.1" ${(tookMs / 1_000).toFixed(3)}`;

test("refusals are those of the shipped limiter, request by request, for all algorithms together", async () => {
  const rules: Rule[] = [
    perIp(5),
    { id: "bucket", key: ["ip"], algorithm: "token-bucket", limit: 6, window: "7s" },
    { id: "paced", match: { path: "/b" }, key: [], algorithm: "gcra", limit: 10, window: "3s", burst: 4 },
    { id: "fixed", key: ["path"], algorithm: "fixed-window", limit: 40, window: "10s", mode: "shadow" },
    {
      id: "sliding",
      key: ["ip", "path"],
      algorithm: "sliding-counter",
      limit: 30,
      window: "20s",
      candidate: { limit: 10 },
    },
  ];
  let seed = 5;
  const random = (below: number): number => {
    seed = (Math.imul(seed, 1_103_515_245) + 12_345) & 0x7fff_ffff;
    return (seed >> 8) % below;
  };
  const requests = Array.from({ length: 4_000 }, () => ({
    ip: `10.0.0.${random(6)}`,
    path: ["/a", "/b", "/c"][random(3)]!,
  }));
  let atMs = 0;
  const clock = virtualClock(START_MS);
  const limiter = createLimiter({ rules, clock });
  let refused = 0;
  const byRule = new Map<string, number>();
  const lines: string[] = [];
  for (const { ip, path } of requests) {
    atMs += random(300);
    lines.push(line(ip, atMs, { path }));
    clock.set(START_MS + atMs);
    const decision = await limiter.check({ ip, path, method: "GET", host: "unknown" });
    if (!decision.allowed) refused++;
    for (const { rule, mode, allowed } of decision.checks) {
      const name = `${rule} ${mode}`;
      if (!allowed) byRule.set(name, (byRule.get(name) ?? 0) + 1);
    }
  }
  await limiter.close();
  const { status, out } = await sluice([
    "simulate",
    "--json",
    "--format",
    format,
    "--rules",
    rulesFile("all.json", rules),
    write("all.log", `${lines.join("\n")}\n`),
  ]);
  expect(status).toBe(0);
  const found = JSON.parse(out);
  expect(found).toMatchObject({ total: 4_000, refused, unmatched: 0, malformed: 0, log: { bad: 0, lines: 4_000 } });
  expect(refused).toBeGreaterThan(500);
  const foundByRule = found.rules.filter((one: { refused: number }) => one.refused > 0);
  expect(
    new Map(
      foundByRule.map((one: { rule: string; mode: string; refused: number }) => [
        `${one.rule} ${one.mode}`,
        one.refused,
      ]),
    ),
  ).toEqual(byRule);
});

test("the worst window is that of the algorithm: a fixed window admits twice its limit across an edge", async () => {
  const rules: Rule[] = [{ id: "fixed", key: ["ip"], algorithm: "fixed-window", limit: 10, window: "10s" }];
  // Ten just before the edge and ten just after it.
  const lines = [...Array(12)]
    .map((_, i) => line("10.0.0.1", 9_900 + i))
    .concat([...Array(12)].map((_, i) => line("10.0.0.1", 10_000 + i)));
  const { out } = await sluice([
    "simulate",
    "--json",
    "--format",
    format,
    "--rules",
    rulesFile("edge.json", rules),
    write("edge.log", lines.join("\n")),
  ]);
  expect(JSON.parse(out).rules[0]).toMatchObject({
    total: 24,
    refused: 4,
    worstWindow: { admitted: 20, limit: 10, key: "ip=10.0.0.1" },
  });
});

test("places of a concurrency rule are given back when the request ended in the log", async () => {
  const rules: Rule[] = [{ id: "places", key: [], algorithm: "concurrency", limit: 2, ttl: "1m" }];
  // 0-100 and 50-100 hold both places; at 60 there is none, at 100 both are free again.
  const lines = [
    line("10.0.0.3", 60, { tookMs: 0 }),
    line("10.0.0.1", 0, { tookMs: 100 }),
    line("10.0.0.2", 50, { tookMs: 50 }),
    line("10.0.0.4", 100, { tookMs: 0 }),
  ];
  const { out } = await sluice([
    "simulate",
    "--json",
    "--format",
    format,
    "--rules",
    rulesFile("places.json", rules),
    write("places.log", lines.join("\n")),
  ]);
  expect(JSON.parse(out)).toMatchObject({ total: 4, refused: 1, log: { late: 0 } });
});

test("against the rules in force: who would newly be refused or admitted; --fail-if decides the exit status", async () => {
  const lines = [...Array(8)]
    .map((_, i) => line("10.0.0.1", i))
    .concat([...Array(3)].map((_, i) => line("10.0.0.2", 100 + i)));
  const log = write("against.log", lines.join("\n"));
  const draft = rulesFile("draft.json", [perIp(5)]);
  const live = rulesFile("live.json", [perIp(7)]);
  const run = (...more: string[]) =>
    sluice(["simulate", "--json", "--format", format, "--rules", draft, "--against", live, ...more, log]);
  const { status, out } = await run("--fail-if", "newlyRefused > 2");
  expect(status).toBe(0);
  expect(JSON.parse(out)).toMatchObject({
    total: 11,
    refused: 3,
    against: {
      refused: 1,
      newlyRefused: 2,
      newlyAdmitted: 0,
      newlyRefusedKeys: [{ key: "per-ip: ip=10.0.0.1", refused: 2 }],
    },
  });
  expect(await run("--fail-if", "newlyRefused > 10%")).toMatchObject({
    status: 1,
    err: "fail-if: newlyRefused > 10%\n",
  });
  expect(
    await sluice(["simulate", "--rules", live, "--against", draft, "--format", format, "--json", log]).then(
      ({ out: text }) => JSON.parse(text).against,
    ),
  ).toMatchObject({ newlyRefused: 0, newlyAdmitted: 2, keysNewlyRefused: 0, keysNewlyAdmitted: 1, keysExact: true });
  expect(await sluice(["simulate", "--rules", live, "--fail-if", "newlyRefused > 1", log])).toMatchObject({
    status: 2,
    err: expect.stringContaining("needs --against"),
  });
  expect(await sluice(["simulate", "--rules", live, "--fail-if", "nonsense", log])).toMatchObject({
    status: 2,
    err: expect.stringContaining("fail-if: expected one of"),
  });
});

test("if refused clients come back after Retry-After: each wait is the one that it was told", async () => {
  // Six at once, two in ten seconds: two pass at once, two after 10 s, two after 20 s.
  const log = write("come-back.log", [...Array(6)].map(() => line("10.0.0.1", 0)).join("\n"));
  const { out } = await sluice([
    "simulate",
    "--json",
    "--come-back",
    "--format",
    format,
    "--rules",
    rulesFile("two.json", [perIp(2)]),
    log,
  ]);
  expect(JSON.parse(out)).toMatchObject({
    refused: 4,
    comeBack: {
      requests: 6,
      tries: 12,
      admittedAtOnce: 2,
      admittedLater: 4,
      gaveUp: 0,
      meanWaitMs: 15_000,
      longestWaitMs: 20_000,
    },
  });
});

test("several files, one of them gzip, are merged by time; standard input and bad lines are no obstacle", async () => {
  const first = write("a.log", [0, 2_000, 4_000].map((atMs) => line("10.0.0.1", atMs)).join("\n"));
  const second = write("b.log.gz", gzipSync([1_000, 3_000].map((atMs) => line("10.0.0.1", atMs)).join("\n")));
  const rules = rulesFile("minimum.json", [
    { id: "spaced", key: ["ip"], algorithm: "rolling-window", limit: 100, window: "1m", minInterval: "1s" },
  ]);
  const merged = JSON.parse(
    (await sluice(["simulate", "--json", "--format", format, "--rules", rules, first, second])).out,
  );
  // In the order of the files the gaps would be 2 s and more; merged they are exactly 1 s, which passes.
  expect(merged).toMatchObject({ total: 5, refused: 0, log: { late: 0 } });
  const doubled = await sluice(
    ["simulate", "--json", "--format", format, "--rules", rules, first, "-"],
    `${line("10.0.0.1", 500)}\nnot a line\n\n`,
  );
  expect(JSON.parse(doubled.out)).toMatchObject({
    total: 4,
    refused: 1,
    log: { bad: 1, blank: 1, badSamples: [{ file: "-", line: 2, text: "not a line" }] },
  });
});

test("lines longer than any server writes are counted as bad, also where a small file unpacks to them", async () => {
  const long = line("10.0.0.1", 500).replace("/", `/${"a".repeat(70_000)}`);
  const log = write(
    "long.log.gz",
    gzipSync([line("10.0.0.1", 0), ...Array.from({ length: 50 }, () => long)].join("\n")),
  );
  const rules = rulesFile("long.json", [perIp(1)]);
  const { out } = await sluice(["simulate", "--json", "--format", format, "--rules", rules, log]);
  const found = JSON.parse(out);
  expect(found).toMatchObject({ total: 1, log: { bad: 50 } });
  expect(found.log.badSamples[0].text.length).toBeLessThanOrEqual(200);
});

test("what a log names is printed without its control characters, and escaped in the report", async () => {
  const rules = rulesFile("by-agent.json", [
    { id: "agent", key: ["agent"], algorithm: "fixed-window", limit: 1, window: "1d" },
  ]);
  const evil = "<script>alert(1)</script>\u001b[31m";
  const log = write("evil.log", [0, 1, 2].map((atMs) => `${line("10.0.0.1", atMs)} "${evil}"`).join("\n"));
  const { status, out } = await sluice([
    "simulate",
    "--format",
    `${format} "$http_user_agent"`,
    "--attribute",
    "agent=http_user_agent",
    "--rules",
    rules,
    "--html",
    "report.html",
    log,
  ]);
  expect(status).toBe(0);
  expect(out).not.toContain("\u001b[31m");
  expect(out).toContain("agent=<script>");
  const html = readFileSync(join(folder, "report.html"), "utf8");
  expect(html).not.toContain("<script");
  expect(html).toContain("&lt;script&gt;");
  expect(html).toContain("<svg");
});

test("a reader that leaves early, such as head, is no failure", async () => {
  const log = write("head.log", Array.from({ length: 200 }, (_, i) => line(`10.0.${i}.1`, i)).join("\n"));
  const rules = rulesFile("head.json", [perIp(1)]);
  const child = spawn(process.execPath, [program, "simulate", "--format", format, "--rules", rules, log], {
    cwd: folder,
  });
  let err = "";
  child.stderr.on("data", (chunk) => (err += chunk));
  child.stdout.destroy();
  const status = await new Promise((resolve) => child.on("close", resolve));
  expect([status, err]).toEqual([0, ""]);
});

test("mistakes of the caller are named: no such file, no known format, no rules", async () => {
  const rules = rulesFile("ok.json", [perIp(1)]);
  expect(await sluice(["simulate", "--rules", rules, "absent.log"])).toMatchObject({
    status: 2,
    err: "absent.log: there is no such file\n",
  });
  expect(await sluice(["simulate", "--rules", rules, write("noise.log", "noise\nnoise\n")])).toMatchObject({
    status: 2,
    err: expect.stringContaining('expected an access log in a known format (--format names one), got "noise"'),
  });
  expect((await sluice(["simulate", "a.log"])).status).toBe(2);
  const empty = await sluice(["simulate", "--json", "--rules", rules, write("empty.log", "")]);
  expect([empty.status, JSON.parse(empty.out).total]).toEqual([0, 0]);
});

test("suggest: exact maxima of each key, limits with headroom, and the keys that each would touch", async () => {
  // 200 clients with one request a second for ten seconds, and one with 50 in its worst second.
  const lines: { atMs: number; text: string }[] = [];
  for (let client = 0; client < 200; client++) {
    for (let second = 0; second < 10; second++)
      lines.push({ atMs: second * 1_000, text: line(`10.0.1.${client}`, second * 1_000) });
  }
  for (let i = 0; i < 50; i++) lines.push({ atMs: 5_500 + i, text: line("10.9.9.9", 5_500 + i) });
  const log = write(
    "suggest.log",
    lines
      .sort((a, b) => a.atMs - b.atMs)
      .map(({ text }) => text)
      .join("\n"),
  );
  const { status, out } = await sluice([
    "suggest",
    "--json",
    "--format",
    format,
    "--window",
    "1s,1m",
    "--headroom",
    "1.5",
    log,
  ]);
  expect(status).toBe(0);
  const found = JSON.parse(out);
  expect(found.windows).toMatchObject([
    {
      window: "1s",
      keys: 201,
      p50: 1,
      p99: 1,
      p999: 50,
      max: 50,
      busiest: [{ key: "ip=10.9.9.9", max: 50, at: new Date(START_MS + 5_549).toISOString() }, {}, {}, {}, {}],
      limits: [
        { from: "p99", limit: 2, keysTouched: 1 },
        { from: "p99.9", limit: 75, keysTouched: 0 },
        { from: "max", limit: 75, keysTouched: 0 },
      ],
    },
    { window: "1m", keys: 201, p50: 10, p99: 10, max: 50 },
  ]);
  // The rules that it suggests are valid, and refuse nobody of this log.
  const suggested = write("suggested.json", JSON.stringify({ rules: found.rules }));
  const tried = await sluice(["simulate", "--json", "--format", format, "--rules", suggested, log]);
  expect(JSON.parse(tried.out).rules).toMatchObject([
    { rule: "ip-burst", mode: "shadow", refused: 0 },
    { rule: "ip-sustained", mode: "shadow", refused: 0 },
  ]);
  expect((await sluice(["suggest", "--key", "user", "--format", format, log])).out).toContain(
    "nothing to suggest from",
  );
});

test("attributes come from the mapping file of the service: a trusted proxy's client, a header, a part of the path", async () => {
  const mapping = {
    trustedProxies: ["10.9.0.0/16"],
    attributes: { tenant: { header: "x-tenant" }, item: { path: "/v1/items/{id}" } },
  };
  const attributes = write("mapping.yaml", JSON.stringify(mapping));
  const rule = (id: string, key: string): Rule => ({
    id,
    key: [key],
    algorithm: "fixed-window",
    limit: 2,
    window: "1h",
  });
  const rules = rulesFile("mapped.json", [rule("by-ip", "ip"), rule("by-tenant", "tenant"), rule("by-item", "item")]);
  const template = '$remote_addr $msec "$request" "$http_x_forwarded_for" "$http_x_tenant"';
  const requests = Array.from({ length: 6 }, (_, i) => {
    const client = `192.0.2.${i % 2}`;
    const at = ((START_MS + i) / 1_000).toFixed(3);
    return `10.9.0.1 ${at} "GET /v1/items/${i % 3}?q=1 HTTP/1.1" "${client}" "${i < 3 ? "a" : "-"}"`;
  });
  const log = write("mapped.log", requests.join("\n"));
  const args = ["simulate", "--json", "--format", template, "--rules", rules, "--attributes", attributes, log];
  const { out } = await sluice(args);
  const { total, rules: found } = JSON.parse(out) as {
    total: number;
    rules: { rule: string; total: number; refused: number; topKeys: { key: string }[] }[];
  };
  expect(total).toBe(6);
  // The tenant refuses the third request, which charges nothing; the second client's third is the sixth.
  expect(found.map(({ rule: id, total: asked, refused, topKeys }) => [id, asked, refused, topKeys[0]?.key])).toEqual([
    ["by-ip", 6, 1, "ip=192.0.2.1"],
    ["by-tenant", 3, 1, "tenant=a"],
    ["by-item", 6, 0, undefined],
  ]);
});

test("compare reads a log once, from standard input too, and prints one table as text, Markdown, JSON and SVG", async () => {
  const lines = [0, 1, 2, 9_900, 9_901, 10_100, 10_101, 10_102].map((atMs) => line("10.0.0.1", atMs));
  const log = write("compared.log", lines.join("\n"));
  const args = ["compare", "--limit", "3", "--window", "10s", "--format", format];
  const [named, piped] = [
    await sluice([...args, "--json", log]),
    await sluice([...args, "--json", "-"], lines.join("\n")),
  ];
  expect(piped.out).toBe(named.out);
  const { rows } = JSON.parse(piped.out) as { rows: { algorithm: string; requests: number; worstWindow?: number }[] };
  expect(rows.map(({ requests }) => requests)).toEqual(Array(7).fill(8));
  const worst = Object.fromEntries(rows.map(({ algorithm, worstWindow }) => [algorithm, worstWindow]));
  // 9.9 s is in the window before the edge: three and three within 10.1 s, of which a rolling window admits three.
  expect(worst).toMatchObject({ "fixed-window": 3, "rolling-window, packed": 3, "rolling-window, sorted-set": 3 });
  const told = await sluice([...args, "--markdown", "--svg", "compared.svg", log]);
  expect(told.out).toContain("| rolling-window, packed |");
  expect(readFileSync(join(folder, "compared.svg"), "utf8")).toMatch(
    /^<svg [\s\S]*rolling-window, packed[\s\S]*<\/svg>\s*$/,
  );
  expect((await sluice([...args, log])).out).toContain("8 requests");
});

test("a log without client addresses says so, and where to find them; a field takes their place", async () => {
  const envoy = (client: string): string =>
    `[2026-11-16T07:00:00.000Z] "GET / HTTP/1.1" 200 - 0 10 1 1 "${client}" "curl" "id" "shop.example" "10.0.0.7:80"`;
  const log = write("envoy.log", [envoy("10.0.0.1"), envoy("10.0.0.2")].join("\n"));
  const rules = rulesFile("envoy.json", [perIp(1)]);
  const { out } = await sluice(["simulate", "--rules", rules, log]);
  expect(out).toContain("2 requests without a client address: ip is 0.0.0.0");
  expect(out).toContain("2 requests, 1 refused");
  const mapped = ["--attribute", "ip=http_x_forwarded_for"];
  const { out: json } = await sluice(["simulate", "--json", ...mapped, "--rules", rules, log]);
  expect(JSON.parse(json)).toMatchObject({ total: 2, refused: 0, log: { withoutAddress: 2 } });
});

test("an attribute of any name is taken from a field of the log", async () => {
  const log = write("named.log", `${line("10.0.0.1", START_MS)}\n`);
  const args = ["--format", format, "--attribute", "__proto__=remote_addr", "--key", "__proto__", "--json", log];
  const { status, out } = await sluice(["suggest", ...args]);
  expect(status).toBe(0);
  expect(JSON.parse(out).windows[0].busiest).toMatchObject([{ key: "__proto__=10.0.0.1", max: 1 }]);
});

test("suggest: an attribute or a window that is named twice counts once", async () => {
  const log = write("twice.log", `${line("10.0.0.1", START_MS)}\n`);
  const args = ["--format", format, "--key", "ip,ip", "--window", "60s,1m,1s", "--json", log];
  const { windows, rules } = JSON.parse((await sluice(["suggest", ...args])).out);
  expect(windows.map(({ window }: { window: string }) => window)).toEqual(["1s", "1m"]);
  expect(rules.map(({ key }: { key: string[] }) => key)).toEqual([["ip"], ["ip"]]);
});

test("a file that cannot be written is named, without a stack", async () => {
  const { status, err } = await sluice(["compare", "--limit", "2", "--svg", "no/such/folder.svg"]);
  expect([status, err]).toEqual([1, expect.stringMatching(/^no\/such\/folder\.svg: could not be written: .*\n$/)]);
});

test.skipIf(process.platform !== "linux")("a full disk behind the output is told in one line", async () => {
  const full = openSync("/dev/full", "w");
  const child = spawn(process.execPath, [program, "compare", "--limit", "2"], { stdio: ["ignore", full, "pipe"] });
  let err = "";
  child.stderr!.on("data", (chunk) => (err += chunk));
  const [status] = await once(child, "close");
  closeSync(full);
  expect([status, err]).toEqual([1, expect.stringMatching(/^output: could not be written: ENOSPC.*\n$/)]);
});

test("a worst window beyond the limit is explained, where there is one", async () => {
  // Two at the end of one window of ten seconds, two at the start of the next.
  const log = write("edge.log", `${[9_000, 9_500, 10_100, 10_200].map((atMs) => line("1.1.1.1", atMs)).join("\n")}\n`);
  const fixed: Rule = { id: "per-ip", key: ["ip"], algorithm: "fixed-window", limit: 2, window: "10s" };
  const printed = async (rule: Rule): Promise<string> => {
    const rules = rulesFile(`${rule.algorithm}.json`, [rule]);
    return (await sluice(["simulate", "--rules", rules, "--format", format, log])).out;
  };
  expect(await printed(fixed)).toMatch(/4 of 2[\s\S]*It passes the limit where the algorithm/);
  expect(await printed(perIp(2))).not.toContain("passes the limit");
});
